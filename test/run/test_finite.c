/* SPDX-License-Identifier: MIT */
/* Training whose numbers grow beyond all bounds ends with a sentence, and with the files that were there before: on
 * every target, guarded or not, alone or one of many seeds, with inputs as rows or as lists. */
#include "runs.h"

/* A weight whose input is zero shows in no error. With such a rate, decay throws it out of all bounds in one
 * update. */
#define WILD                                                                                     \
	"group a 2 input\ngroup o 1 output\nconnect a[0] -> o weights %s\nconnect a[1], true -> o\n" \
	"train rate 1e6 decay 0.5 momentum 0 until never\n"

static mp_net *wild_net(const char *weights)
{
	char text[400];
	snprintf(text, sizeof text, WILD, weights);
	return net_of(text);
}

static mp_data *two_cases(void)
{
	static const float x[] = { 0, 1, 0, 0 }, y[] = { 1, 0 };
	mp_data *data;
	assert_int_equal(mp_data_new(&data, 2, 2, 1, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

static void set_all(mp_run *run, const char *const (*option)[2], size_t count)
{
	for (size_t i = 0; i < count; i++)
		need(run, mp_run_set(run, option[i][0], option[i][1]));
}

static void expect_diverged(mp_run *run, mp_status status, const char *when)
{
	assert_int_equal(status, MP_FAILED);
	expect_words(mp_run_messages(run), "is not finite in epoch");
	expect_words(mp_run_messages(run), when);
	expect_words(mp_run_messages(run), "rate");
	assert_string_equal(mp_run_get_report(run)->stopped_by, "diverged");
}

/* In the last update, when no error is measured any more; an existing file stays unchanged. */
static void the_last_update(void **state)
{
	static const struct {
		const char *target, *option, *value, *when;
	} how[] = {
		{ "ref", "guard", "off", "epoch 1, update 1:" },     { "cpu", "guard", "off", "epoch 1, update 1:" },
		{ "cpu", "guard", "full", "epoch 1, update 1:" },    { "cpu", "precision", "bf16", "epoch 1, update 1:" },
		{ "cpu", "batch", "1", "epoch 1, updates 1 to 2:" }, { "cpu", "updates", "1", "epoch 1, update 1:" },
		{ "gf11", "procs", "4", "epoch 1, update 1:" },
	};
	(void)state;
	const char *path = in_folder("last.safetensors");
	for (size_t i = 0; i < COUNT(how); i++) {
		mp_net *net = wild_net("1e38 1e38");
		mp_data *data = two_cases();
		mp_run *run = run_of(net);
		need(run, mp_run_set(run, "target", how[i].target));
		need(run, mp_run_set(run, how[i].option, how[i].value));
		need(run, mp_run_set(run, "epochs", "1"));
		if (!strcmp(how[i].target, "ref"))
			need(run, mp_run_set_weights(run, (double[]){ 0, 1e305, 0 }, 3));
		put_bytes(path, "good", 4);
		expect_diverged(run, mp_run_train(run, data, NULL, NULL, NULL), how[i].when);
		assert_int_equal(mp_run_save(run, path), MP_FAILED);
		expect_words(mp_run_messages(run), "not saved");
		size_t len;
		char *bytes = file_bytes(path, &len);
		assert_memory_equal(bytes, "good", len);
		free(bytes);
		mp_run_close(run);
		mp_data_close(data);
		mp_net_close(net);
	}
}

/* ---- rows and lists ---- */

/* Of the second, the weights of inputs become infinite at once, which lists whose inputs come but once do not
 * notice. */
static const char *const sparse_nets[] = {
	"group a 40 input\ngroup h 20 relu\ngroup o 3 linear output\nconnect a, true -> h\nconnect h, true -> o\n",
	"group a 40 input\ngroup h 20\ngroup o 3 output\nconnect a -> h rate 1e36\nconnect true -> h\nconnect h, true -> "
	"o\n",
};

/* Inputs of their own, or some of ten. */
static mp_data *sparse_cases(bool own)
{
	enum { CASES = 40, INPUTS = 40, OUTPUTS = 3 };
	static float x[CASES * INPUTS], y[CASES * OUTPUTS];
	mp_data *data;
	for (uint64_t i = 0; i < CASES * INPUTS; i++)
		x[i] = own ? i / INPUTS == i % INPUTS : random_below(1, STREAM_DATA, i, 10) == 0;
	for (uint64_t i = 0; i < CASES * OUTPUTS; i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	assert_int_equal(mp_data_new(&data, CASES, INPUTS, OUTPUTS, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

static mp_run *sparse_run(const mp_net *net, const char *input, const char *rate, const char *batch, bool best)
{
	const char *const option[][2] = { { "target", "cpu" },
		                              { "input", input },
		                              { "rate", rate },
		                              { "batch", batch },
		                              { "until", "never" },
		                              { "epochs", "40" },
		                              { "keep-best", best ? "1" : "0" } };
	mp_run *run = run_of(net);
	set_all(run, option, COUNT(option));
	return run;
}

/* The same sentence, and the same weights kept.  Whether it diverged. */
static bool row_and_list(const mp_net *net, const mp_data *data, const char *rate, const char *batch, bool best)
{
	mp_run *run[2];
	mp_status status[2];
	for (int k = 0; k < 2; k++) {
		run[k] = sparse_run(net, k ? "index" : "dense", rate, batch, best);
		status[k] = mp_run_train(run[k], data, NULL, NULL, NULL);
	}
	assert_int_equal(status[0], status[1]);
	assert_string_equal(mp_run_messages(run[0]), mp_run_messages(run[1]));
	assert_int_equal(run[0]->best_at.epoch, run[1]->best_at.epoch);
	if (best) {
		assert_memory_equal(run[0]->best_weights, run[1]->best_weights, best_bytes(run[0]));
		for (uint64_t i = 0; i < net->net->links; i++)
			assert_true(isfinite(best_weight(run[0], i)));
	}
	mp_run_close(run[0]);
	mp_run_close(run[1]);
	return status[0] == MP_FAILED;
}

static void rows_and_lists(void **state)
{
	static const char *const rate[] = { "1e-36", "0.003", "0.1", "1", "1e3", "1e6" }, *const batch[] = { "1", "7",
		                                                                                                 "all" };
	uint64_t tried = 0, ended = 0;
	(void)state;
	for (size_t k = 0; k < COUNT(sparse_nets); k++) {
		mp_data *data = sparse_cases(k);
		mp_net *net = net_of(sparse_nets[k]);
		for (size_t i = 0; i < 2 * COUNT(rate) * COUNT(batch); i++, tried++)
			ended += row_and_list(net, data, rate[i / 2 / COUNT(batch)], batch[i / 2 % COUNT(batch)], i % 2);
		mp_net_close(net);
		mp_data_close(data);
	}
	assert_in_range(ended, 20, tried - 10);
}

/* ---- checkpoints ---- */

static int save_now(void *user, mp_run *run)
{
	need(run, mp_run_save_wait(run));
	need(run, mp_run_save_background(run, user, NULL, 2));
	return 0;
}

/* Weights that are no longer finite, though every error is, do not get into a checkpoint, and the run ends at once. */
static void checkpoints_stay_good(void **state)
{
	static const char *const option[][2] = {
		{ "target", "cpu" }, { "batch", "1" }, { "shuffle", "0" }, { "epochs", "1000" }
	};
	(void)state;
	mp_net *net = net_of(
		"group a 40 input\ngroup o 3 output\nconnect a, true -> o\ntrain rate 100 decay 0.5 momentum 0 until never\n");
	mp_data *data = sparse_cases(false);
	mp_run *run = run_of(net), *again = run_of(net);
	char *path = strdup(in_folder("tick.safetensors"));
	set_all(run, option, COUNT(option));
	mp_run_on_tick(run, 0, save_now, path);
	expect_diverged(run, mp_run_train(run, data, NULL, NULL, NULL), "epoch 1, updates 1 to 40:");
	assert_true(run->diverged); /* that is who noticed */
	need(run, mp_run_save_wait(run));
	need(again, mp_run_resume(again, path));
	assert_int_equal(again->at.updates + 1, run->at.updates);
	mp_run_close(again);
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
	free(path);
}

static void files_with_other_than_numbers(void **state)
{
	static const char header[] = "{\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
								 "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}";
	char bytes[8 + sizeof header - 1 + 24] = { sizeof header - 1 };
	const float w[] = { 1, 2, 3, NAN, 5, 6 };
	(void)state;
	memcpy(bytes + 8, header, sizeof header - 1);
	memcpy(bytes + sizeof bytes - sizeof w, w, sizeof w);
	put_bytes(in_folder("nan.safetensors"), bytes, sizeof bytes);
	mp_net *net = net_of(tiny);
	mp_run *run = run_of(net);
	assert_int_equal(mp_run_load(run, in_folder("nan.safetensors")), MP_BAD_INPUT);
	expect_words(mp_run_messages(run), "not all weights of the file are finite");
	mp_run_close(run);
	mp_net_close(net);
}

/* ---- seeds ---- */

/* Some begin with a weight that is too large, side by side or one by one: these have failed, the others have not. */
static void seeds(void **state)
{
	mp_seed first[20];
	(void)state;
	for (int alone = 0; alone < 2; alone++) {
		const char *const option[][2] = { { "target", "cpu" },
			                              { "epochs", "1" },
			                              { "guard", alone ? "light" : "off" } };
		mp_net *net = wild_net("0 1e33");
		mp_data *data = two_cases();
		mp_run *run = run_of(net);
		set_all(run, option, COUNT(option));
		need(run, mp_run_restarts(run, data, NULL, COUNT(first), NULL, NULL, NULL));
		const mp_restarts *m = mp_run_get_restarts(run);
		assert_int_equal(m->lanes, !alone);
		assert_int_equal(m->done, COUNT(first));
		assert_in_range(m->failed, 1, COUNT(first) - 1);
		assert_false(mp_run_get_seed(run, m->best)->failed);
		for (size_t i = 0; i < COUNT(first); i++) {
			if (!alone)
				first[i] = *mp_run_get_seed(run, i);
			assert_int_equal(mp_run_get_seed(run, i)->failed, first[i].failed);
			assert_int_equal(mp_run_get_seed(run, i)->epochs, first[i].epochs);
			assert_string_equal(mp_run_get_seed(run, i)->fingerprint, first[i].fingerprint);
		}
		mp_run_close(run);
		mp_data_close(data);
		mp_net_close(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_update),
		cmocka_unit_test(rows_and_lists),
		cmocka_unit_test(checkpoints_stay_good),
		cmocka_unit_test(files_with_other_than_numbers),
		cmocka_unit_test(seeds),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
