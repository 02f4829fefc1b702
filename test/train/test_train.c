/* SPDX-License-Identifier: MIT */
/* The training loop through the public calls: what ends a run, what is reported, and resuming with the same bits. */
#include <math.h>
#include <unistd.h>

#include "api.h"
#include "test.h"

static const char xor_net[] = "group in 2 input\n"
							  "group hidden 3 sigmoid\n"
							  "group out 1 sigmoid output\n"
							  "connect in -> hidden, out\n"
							  "connect hidden -> out\n"
							  "connect true -> hidden, out\n"
							  "train rate 0.5 momentum 0.9 epochs 5000\n";

static const char elman_net[] = "group in 1 input\n"
								"group context 4 context\n"
								"group hidden 4 sigmoid\n"
								"group out 1 sigmoid output\n"
								"connect in, context -> hidden\n"
								"connect hidden -> out\n"
								"connect true -> hidden, out\n"
								"copy hidden -> context start 0.5\n"
								"train rate 0.1 batch 7\n";

typedef struct Fixture {
	mp_net *net;
	mp_data *data;
	mp_run *run;
} Fixture;

static Fixture open_fixture(const char *net, const char *data)
{
	Fixture f;
	if (net_parse_1989(&f.net, net, "test.topo", NULL) != MP_OK)
		print_error("%s", mp_net_messages(f.net));
	assert_int_equal(mp_data_open(&f.data, data, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_new(&f.run, f.net, NULL), MP_OK);
	return f;
}

static void close_fixture(Fixture *f)
{
	mp_run_close(f->run);
	mp_data_close(f->data);
	mp_net_close(f->net);
}

static void set(mp_run *run, const char *option, const char *value)
{
	if (mp_run_set(run, option, value) != MP_OK)
		print_error("%s", mp_run_messages(run));
	assert_string_equal(mp_run_messages(run), "");
}

static void xor_is_learnt(void **state)
{
	(void)state;
	Fixture f = open_fixture(xor_net, "make:xor");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	const mp_report *p = mp_run_get_report(f.run);
	assert_true(p->solved);
	assert_string_equal(p->stopped_by, "until");
	assert_string_equal(p->target, "cpu");
	assert_int_equal(p->connections, 15);
	assert_int_equal(p->cases, 4);
	assert_true(p->within == 1 && p->right == 1 && p->updates == p->epoch);
	assert_true(fabs(p->total_error / 4 - p->error) < 1e-12);
	assert_int_equal(strlen(p->fingerprint), 32);
	mp_result r = { .size = sizeof r };
	double out[4];
	assert_int_equal(mp_run_test(f.run, f.data, &r, out), MP_OK);
	assert_true(r.cases == 4 && r.right == 1 && out[0] < 0.5 && out[1] > 0.5);
	close_fixture(&f);
}

/* Trains to the end and gives the fingerprint. */
static void fingerprint_of(Fixture *f, char out[33])
{
	assert_string_equal(mp_run_train(f->run, f->data, NULL, NULL, NULL) == MP_OK ? "" : mp_run_messages(f->run), "");
	strcpy(out, mp_run_get_report(f->run)->fingerprint);
}

static void resume_from_every_update(const char *net, const char *data, const char *rule, const char *epochs)
{
	char whole[33], parts[33], path[64];
	snprintf(path, sizeof path, "resume-%d.safetensors", (int)getpid());
	Fixture f = open_fixture(net, data);
	set(f.run, "rule", rule);
	set(f.run, "epochs", epochs);
	set(f.run, "until", "never");
	fingerprint_of(&f, whole);
	mp_report last = *mp_run_get_report(f.run);
	close_fixture(&f);
	for (uint64_t k = 0; k <= last.updates; k++) {
		char updates[24];
		snprintf(updates, sizeof updates, "%llu", (unsigned long long)k);
		f = open_fixture(net, data);
		set(f.run, "rule", rule);
		set(f.run, "epochs", epochs);
		set(f.run, "until", "never");
		if (k) {
			set(f.run, "updates", updates);
			assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
		}
		assert_int_equal(mp_run_save(f.run, path), MP_OK);
		mp_run_close(f.run);
		assert_int_equal(mp_run_new(&f.run, f.net, NULL), MP_OK);
		assert_string_equal(mp_run_resume(f.run, path) == MP_OK ? "" : mp_run_messages(f.run), "");
		set(f.run, "updates", "0");
		fingerprint_of(&f, parts);
		assert_string_equal(parts, whole);
		const mp_report *p = mp_run_get_report(f.run);
		assert_true(p->error == last.error && p->right == last.right && p->epoch == last.epoch);
		assert_true(p->updates == last.updates);
		close_fixture(&f);
	}
	unlink(path);
}

static void resuming_gives_the_same_bits(void **state)
{
	(void)state;
	char net[512];
	snprintf(net, sizeof net, "%strain batch 3\n", xor_net);
	for (uint32_t i = 0; i < rule_count; i++)
		resume_from_every_update(net, "make:xor", rules[i].name, "4");
	resume_from_every_update(elman_net, "make:temporal-xor", "momentum", "1");
}

static void resumed_runs_keep_their_options(void **state)
{
	(void)state;
	Fixture f = open_fixture(xor_net, "make:xor");
	const char *path = "options.safetensors";
	set(f.run, "rate", "0.25");
	set(f.run, "epochs", "3");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_save(f.run, path), MP_OK);
	assert_int_equal(mp_run_set(f.run, "rate", "0.5"), MP_BAD_INPUT);
	assert_int_equal(mp_run_resume(f.run, path), MP_BAD_INPUT);
	mp_run_close(f.run);
	assert_int_equal(mp_run_new(&f.run, f.net, NULL), MP_OK);
	assert_int_equal(mp_run_resume(f.run, path), MP_OK);
	assert_string_equal(mp_run_get(f.run, "rate"), "0.25");
	assert_int_equal(mp_run_set(f.run, "rate", "0.5"), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(f.run), "rate was 0.25"));
	set(f.run, "rate", "0.25");
	set(f.run, "epochs", "5");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_get_report(f.run)->epoch, 5);
	close_fixture(&f);
	unlink(path);
}

/* ---- what ends a run ---- */

static int stop_at_three(void *user, mp_run *run, const mp_report *p)
{
	(void)run;
	++*(int *)user;
	return p->epoch == 3;
}

static void runs_end_for_the_reason_they_say(void **state)
{
	(void)state;
	static const char *const ends[][3] = {
		{ "epochs", "7", "epochs" },      { "updates", "5", "updates" },     { "time", "1e-9", "time" },
		{ "until", "error:10", "until" }, { "until", "right:0.1", "until" }, { "until", "within:0", "until" },
	};
	for (size_t i = 0; i < COUNT(ends); i++) {
		Fixture f = open_fixture(xor_net, "make:xor");
		set(f.run, ends[i][0], ends[i][1]);
		assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
		const mp_report *p = mp_run_get_report(f.run);
		assert_string_equal(p->stopped_by, ends[i][2]);
		assert_int_equal(p->solved, strcmp(ends[i][2], "until") == 0);
		close_fixture(&f);
	}
}

/* A callback between two updates cannot close the data. */
typedef struct Meddler {
	mp_data *other;
	int refused, done;
} Meddler;

static int meddle(void *user, mp_run *run)
{
	Meddler *m = user;
	mp_result result = { .size = sizeof result };
	const mp_status s[] = { mp_run_test(run, m->other, &result, NULL), mp_run_train(run, m->other, NULL, NULL, NULL),
		                    mp_run_restarts(run, m->other, NULL, 2, NULL, NULL, NULL) };
	for (size_t i = 0; i < COUNT(s); i++)
		m->refused += s[i] == MP_BAD_INPUT;
	assert_non_null(strstr(mp_run_messages(run), "a run that is training"));
	return 0;
}

static int meddle_or_test(void *user, mp_run *run, const mp_report *p)
{
	Meddler *m = user;
	mp_result result = { .size = sizeof result };
	if (!p->stopped_by)
		return meddle(user, run);
	m->done += mp_run_test(run, m->other, &result, NULL) == MP_OK;
	return 0;
}

static void data_stays_while_it_trains(void **state)
{
	(void)state;
	static const char *const batches[] = { "1", "all" };
	Meddler m = { NULL, 0, 0 };
	assert_int_equal(mp_data_open(&m.other, "make:parity:2", NULL, NULL), MP_OK);
	for (size_t i = 0; i < COUNT(batches); i++) {
		Fixture f = open_fixture(xor_net, "make:xor"), g = open_fixture(xor_net, "make:xor");
		set(f.run, "report", "1");
		mp_run_on_tick(f.run, 0, meddle, &m);
		for (size_t k = 0; k < 2; k++) {
			mp_run *run = k ? g.run : f.run;
			set(run, "batch", batches[i]);
			set(run, "epochs", "3");
			set(run, "until", "never");
		}
		assert_int_equal(mp_run_train(f.run, f.data, NULL, meddle_or_test, &m), MP_OK);
		assert_int_equal(mp_run_train(g.run, g.data, NULL, NULL, NULL), MP_OK);
		assert_string_equal(mp_run_get_report(f.run)->fingerprint, mp_run_get_report(g.run)->fingerprint);
		close_fixture(&f);
		close_fixture(&g);
	}
	assert_int_equal(m.done, 2);
	assert_int_equal(m.refused, 3 * (2 + 11 + 2 + 2)); /* two reports, and a tick after all updates but the last */
	mp_data_close(m.other);
}

static void report_function_stops(void **state)
{
	(void)state;
	int calls = 0;
	Fixture f = open_fixture(xor_net, "make:xor");
	set(f.run, "report", "1");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, stop_at_three, &calls), MP_STOPPED);
	assert_int_equal(calls, 4); /* three epochs and the last word */
	assert_int_equal(mp_run_get_report(f.run)->epoch, 3);
	assert_string_equal(mp_run_get_report(f.run)->stopped_by, "signal");
	close_fixture(&f);
	f = open_fixture(xor_net, "make:xor");
	mp_run_stop(f.run);
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_STOPPED);
	assert_int_equal(mp_run_get_report(f.run)->updates, 0);
	close_fixture(&f);
}

static int save_best_now(void *user, mp_run *run, const mp_report *p)
{
	(void)p;
	return mp_run_save_best(run, user) != MP_OK && p->epoch > 0;
}

static void test_data_patience_and_best(void **state)
{
	(void)state;
	const char *path = "best.safetensors";
	Fixture f = open_fixture(xor_net, "make:xor");
	set(f.run, "patience", "5");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_BAD_INPUT);
	set(f.run, "rate", "0"); /* nothing ever gets better */
	set(f.run, "keep-best", "on");
	assert_int_equal(mp_run_save_best(f.run, path), MP_BAD_INPUT);
	assert_int_equal(mp_run_train(f.run, f.data, f.data, save_best_now, (void *)path), MP_OK);
	const mp_report *p = mp_run_get_report(f.run);
	assert_string_equal(p->stopped_by, "patience");
	assert_true(p->tested && p->epoch == 6);
	assert_true(fabs(p->test_error - p->error) < 1e-12);
	mp_run *again;
	assert_int_equal(mp_run_new(&again, f.net, NULL), MP_OK);
	assert_int_equal(mp_run_load(again, path), MP_OK);
	mp_run_close(again);
	close_fixture(&f);
	unlink(path);
}

static void errors_that_explode_are_named(void **state)
{
	(void)state;
	static const char net[] =
		"group in 2 input\ngroup out 1 linear output\nconnect in -> out\ntrain rate 1e6 until never\n";
	Fixture f = open_fixture(net, "make:xor");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_FAILED);
	assert_non_null(strstr(mp_run_messages(f.run), "not finite in epoch"));
	assert_non_null(strstr(mp_run_messages(f.run), "rate"));
	close_fixture(&f);
	float x[] = { 3e30f, 1 }, y[] = { 1 };
	f = open_fixture(net, "make:xor");
	mp_data *large;
	assert_int_equal(mp_data_new(&large, 1, 2, 1, x, y, NULL, 0, NULL), MP_OK);
	assert_int_equal(mp_run_train(f.run, large, NULL, NULL, NULL), MP_FAILED);
	assert_non_null(strstr(mp_run_messages(f.run), "scale"));
	mp_data_close(large);
	close_fixture(&f);
}

static void data_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	Fixture f = open_fixture(xor_net, "make:parity:3");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(f.run), "3 inputs"));
	close_fixture(&f);
	f = open_fixture(xor_net, "make:encoder:2-1");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(f.run), "2 targets"));
	close_fixture(&f);
	f = open_fixture(xor_net, "make:xor");
	assert_int_equal(mp_run_set(f.run, "target", "abacus"), MP_OK);
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(f.run), "the targets here are"));
	close_fixture(&f);
	f = open_fixture("group a 2 input\ngroup b 1 linear output\nconnect a -> b\ntrain error cross-entropy\n",
	                 "make:xor");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(f.run), "sigmoid or softmax"));
	close_fixture(&f);
}

static void memory_without_boundaries_is_one_sequence(void **state)
{
	(void)state;
	Fixture f = open_fixture(elman_net, "make:temporal-xor");
	float x[] = { 0, 1, 1, 0, 1 }, y[] = { 1, 0, 1, 1, 0 };
	mp_data *plain;
	assert_int_equal(mp_data_new(&plain, 5, 1, 1, x, y, NULL, 0, NULL), MP_OK);
	set(f.run, "epochs", "2");
	assert_int_equal(mp_run_train(f.run, plain, NULL, NULL, NULL), MP_OK);
	assert_non_null(strstr(mp_run_messages(f.run), "one sequence"));
	assert_int_equal(mp_run_get_report(f.run)->updates, 2);
	mp_data_close(plain);
	close_fixture(&f);
}

/* Weights remember how the inputs were scaled, after the data is gone; raw data is then scaled the same way. */
static void scale_goes_with_the_weights(void **state)
{
	(void)state;
	const char *path = "scaled.safetensors";
	Fixture f = open_fixture(xor_net, "make:xor");
	float x[] = { 10, 3, 10, 5, 20, 3, 20, 5 }, y[] = { 0, 1, 1, 0 };
	mp_data *raw, *ready;
	mp_result a = { .size = sizeof a }, b = a;
	assert_int_equal(mp_data_new(&raw, 4, 2, 1, x, y, NULL, 0, NULL), MP_OK);
	assert_int_equal(mp_data_new(&ready, 4, 2, 1, x, y, NULL, 0, NULL), MP_OK);
	assert_int_equal(mp_data_scale(ready, "zscore", NULL), MP_OK);
	set(f.run, "epochs", "20");
	assert_int_equal(mp_run_train(f.run, ready, raw, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_test(f.run, ready, &a, NULL), MP_OK);
	assert_true(mp_run_get_report(f.run)->test_error == a.error); /* raw test data was scaled too */
	mp_data_close(ready);
	assert_int_equal(mp_run_save(f.run, path), MP_OK);
	mp_run_close(f.run);
	assert_int_equal(mp_run_new(&f.run, f.net, NULL), MP_OK);
	assert_int_equal(mp_run_load(f.run, path), MP_OK);
	assert_int_equal(mp_run_test(f.run, raw, &b, NULL), MP_OK);
	assert_true(a.error == b.error);
	assert_int_equal(mp_data_scale(raw, "range", NULL), MP_OK);
	assert_int_equal(mp_run_test(f.run, raw, &b, NULL), MP_BAD_INPUT); /* scaled in another way */
	mp_data_close(raw);
	close_fixture(&f);
	unlink(path);
}

/* Testing measures the error the weights were trained with, unless an option says otherwise. */
static void error_function_goes_with_the_weights(void **state)
{
	(void)state;
	const char *path = "error.safetensors";
	mp_result a = { .size = sizeof a }, b = a;
	Fixture f = open_fixture(xor_net, "make:xor");
	set(f.run, "error", "cross-entropy");
	set(f.run, "epochs", "3");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_test(f.run, f.data, &a, NULL), MP_OK);
	assert_int_equal(mp_run_save(f.run, path), MP_OK);
	for (int told = 0; told < 2; told++) {
		mp_run_close(f.run);
		assert_int_equal(mp_run_new(&f.run, f.net, NULL), MP_OK);
		if (told)
			set(f.run, "error", "squared");
		assert_int_equal(mp_run_load(f.run, path), MP_OK);
		assert_int_equal(mp_run_test(f.run, f.data, &b, NULL), MP_OK);
		assert_int_equal(a.error == b.error, !told);
	}
	close_fixture(&f);
	unlink(path);
}

/* Trained for an epoch of one update, and tested with its weights. */
static mp_result errors_of(const char *target, const char *batch, uint64_t cases, const float *x, const float *y,
                           const float *weight, double *trained)
{
	mp_result result = { .size = sizeof result };
	Fixture f = open_fixture(xor_net, "make:xor");
	mp_data_close(f.data);
	assert_int_equal(mp_data_new(&f.data, cases, 2, 1, x, y, NULL, 0, NULL), MP_OK);
	f.data->data->weight = weight;
	set(f.run, "target", target);
	set(f.run, "batch", batch);
	set(f.run, "rate", "1e-6"); /* online, errors of later cases hardly change */
	set(f.run, "shuffle", "off");
	set(f.run, "epochs", "1");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	*trained = f.run->report.error;
	assert_int_equal(mp_run_test(f.run, f.data, &result, NULL), MP_OK);
	close_fixture(&f);
	return result;
}

/* A case of weight 2 is two cases, one without a target none. */
static void error_is_a_mean_over_scored_cases(void **state)
{
	(void)state;
	static const char *const targets[] = { "cpu", "ref", "gf11" }, *const batches[] = { "all", "1" };
	static const float x[] = { 0, 0, 0, 1, 0, 1, 1, 1, 1, 0 }, y[] = { 0, 1, 1, 0, NAN };
	static const float one[] = { 0, 0, 0, 1, 1, 1, 1, 0 }, y_one[] = { 0, 1, 0, NAN }, weight[] = { 1, 2, 1, 3 };
	for (size_t t = 0; t < COUNT(targets); t++)
		for (size_t b = 0; b < COUNT(batches); b++) {
			double plain, masked, weighted;
			mp_result p = errors_of(targets[t], batches[b], 4, x, y, NULL, &plain);
			mp_result m = errors_of(targets[t], batches[b], 5, x, y, NULL, &masked);
			mp_result w = errors_of(targets[t], batches[b], 4, one, y_one, weight, &weighted);
			assert_true(fabs(masked - plain) < 1e-6 * plain && fabs(weighted - plain) < 1e-6 * plain);
			assert_true(fabs(m.error - p.error) < 1e-6 * p.error && fabs(w.error - p.error) < 1e-6 * p.error);
			assert_true(fabs(w.total_error - 4 * w.error) < 1e-12);
		}
}

/* The error of a run whose outputs are rounded to 0 or 1 is that of the net inputs, on every path of target cpu: tiny
 * networks, online, rows; and in tests. */
static void error_of_saturated_outputs(void **state)
{
	(void)state;
	static const struct {
		const char *out, *error; /* group, error function */
		double want;
	} nets[] = {
		{ "1", "cross-entropy", 17 },
		{ "1", "cross-entropy", 100 },
		{ "20", "cross-entropy", 20 * 17 },
		{ "1 sigmoid2", "cross-entropy", 17 * 0.69314718055994531 },
	};
	static const char *const targets[] = { "cpu", "ref" }, *const batches[] = { "all", "1" };
	for (size_t i = 0; i < COUNT(nets) * COUNT(targets) * COUNT(batches); i++) {
		const char *target = targets[i % 2], *batch = batches[i / 2 % 2];
		double want = nets[i / 4].want, net = want == 100 ? 100 : 17;
		float x = 1, y[20] = { 0 };
		char text[300];
		mp_result result = { .size = sizeof result };
		snprintf(text, sizeof text,
		         "group x 1 input\ngroup o %s output\nconnect x -> o weights %g %g\ntrain rate 0 momentum 0 epochs 1\n",
		         nets[i / 4].out, net, net);
		Fixture f = open_fixture(text, "make:xor");
		mp_data_close(f.data);
		assert_int_equal(mp_data_new(&f.data, 1, 1, (uint32_t)atoi(nets[i / 4].out), &x, y, NULL, 0, NULL), MP_OK);
		set(f.run, "target", target);
		set(f.run, "batch", batch);
		set(f.run, "error", nets[i / 4].error);
		assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
		assert_int_equal(mp_run_test(f.run, f.data, &result, NULL), MP_OK);
		assert_true(fabs(f.run->report.error - want) < 1e-6 * want);
		assert_true(fabs(result.error - want) < 1e-6 * want);
		close_fixture(&f);
	}
}

static void handles_that_failed_are_refused(void **state)
{
	(void)state;
	mp_net *net;
	mp_data *data, *first, *rest;
	mp_run *run;
	const mp_data_info *info;
	assert_int_equal(mp_net_parse(&net, "group", "bad.topo", NULL), MP_BAD_INPUT);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_BAD_INPUT);
	assert_true(*mp_run_messages(run));
	mp_run_close(run);
	mp_net_close(net);
	Fixture f = open_fixture(xor_net, "make:xor");
	assert_int_equal(mp_data_open(&data, "/no/such.npz", NULL, NULL), MP_BAD_INPUT);
	assert_int_equal(mp_run_train(f.run, data, NULL, NULL, NULL), MP_BAD_INPUT);
	assert_int_equal(mp_run_train(f.run, f.data, data, NULL, NULL), MP_BAD_INPUT);
	mp_result r = { .size = sizeof r };
	assert_int_equal(mp_run_test(f.run, data, &r, NULL), MP_BAD_INPUT);
	assert_int_equal(mp_data_get_info(data, &info), MP_BAD_INPUT);
	assert_int_equal(mp_data_save(data, "x.npz"), MP_BAD_INPUT);
	assert_int_equal(mp_data_scale(data, "range", NULL), MP_BAD_INPUT);
	assert_int_equal(mp_data_scale(f.data, "range", data), MP_BAD_INPUT);
	assert_int_equal(mp_data_split(data, 0.5, 1, &first, &rest), MP_BAD_INPUT);
	mp_data_close(first);
	mp_data_close(rest);
	mp_data_close(data);
	close_fixture(&f);
}

static void history_is_thinned_out(void **state)
{
	(void)state;
	Fixture f = open_fixture(xor_net, "make:xor");
	size_t count = 0;
	set(f.run, "until", "never");
	set(f.run, "epochs", "5000");
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	const mp_point *first = mp_run_get_point(f.run, 0), *last = first, *p;
	for (; (p = mp_run_get_point(f.run, count)); last = p)
		assert_int_equal(p->epoch, ++count * first->epoch);
	assert_in_range(count, 250, 512);
	assert_true(last->epoch > 4900 && first->error > last->error);
	close_fixture(&f);
}

/* The whole path with the n-th allocation failing: no crash, no leak, always a status and a message. */
static mp_status whole_path(const mp_allocator *alloc)
{
	mp_net *net = NULL;
	mp_data *data = NULL;
	mp_run *run = NULL, *again = NULL;
	const char *path = "starved.safetensors";
	mp_status s = net_parse_1989(&net, xor_net, "xor.topo", alloc);
	if (s == MP_OK)
		s = mp_data_open(&data, "make:xor", NULL, alloc);
	if (s == MP_OK)
		s = mp_run_new(&run, net, alloc);
	if (s == MP_OK)
		s = mp_run_set(run, "epochs", "2");
	if (s == MP_OK)
		s = mp_run_train(run, data, data, NULL, NULL);
	if (s == MP_OK)
		s = mp_run_save(run, path);
	if (s == MP_OK)
		s = mp_run_new(&again, net, alloc);
	if (s == MP_OK)
		s = mp_run_resume(again, path);
	if (s != MP_OK && data && !run)
		assert_non_null(mp_data_messages(data));
	mp_run_close(again);
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
	unlink(path);
	return s;
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	mp_status s = MP_NO_MEMORY;
	long n;
	for (n = 1; s == MP_NO_MEMORY; n++) {
		Meter m = { .fail_at = n };
		s = whole_path(&(mp_allocator){ sizeof(mp_allocator), meter_resize, &m });
		assert_int_equal(m.live, 0);
	}
	assert_int_equal(s, MP_OK);
	assert_true(n > 10);
}

static const char parity_net[] =
	"group in 9 input\ngroup hidden 300\ngroup out 1 output\nconnect in -> hidden\n"
	"connect hidden -> out\nconnect true -> hidden, out\ntrain batch 100 epochs 1 until never";

/* Trains after a test whose n-th allocation failed; false: it has fewer. */
static bool train_after(const Fixture *f, const char *option, const char *value, long n, char fingerprint[33])
{
	Meter m = { 0 };
	mp_run *run;
	mp_result result = { .size = sizeof result };
	double weight;
	assert_int_equal(mp_run_new(&run, f->net, &(mp_allocator){ sizeof(mp_allocator), meter_resize, &m }), MP_OK);
	set(run, option, value);
	mp_run_get_weights(run, &weight, 1); /* refused, but the run has begun */
	m.fail_at = n ? m.calls + n : 0;
	mp_status s = n ? mp_run_test(run, f->data, &result, NULL) : MP_NO_MEMORY;
	m.fail_at = 0;
	if (mp_run_train(run, f->data, NULL, NULL, NULL) != MP_OK)
		print_error("%s", mp_run_messages(run));
	strcpy(fingerprint, mp_run_get_report(run)->fingerprint);
	mp_run_close(run);
	assert_int_equal(m.live, 0);
	return s == MP_NO_MEMORY;
}

/* With index lists weights move when data is bound; with bf16 there is more room to take. */
static void runs_go_on_after_memory_ran_out(void **state)
{
	(void)state;
	static const char *const ways[][2] = { { "input", "dense" }, { "input", "index" }, { "precision", "bf16" } };
	Fixture f = open_fixture(parity_net, "make:parity:9");
	for (size_t i = 0; i < COUNT(ways); i++) {
		char plain[33], again[33];
		long n = 1;
		assert_true(train_after(&f, ways[i][0], ways[i][1], 0, plain));
		for (; train_after(&f, ways[i][0], ways[i][1], n, again); n++)
			assert_string_equal(again, plain);
		assert_true(n > 3);
	}
	close_fixture(&f);
}

/* A new target is a dozen hooks; what only some support stands in tables of its own. */
enum { HOOK = sizeof(void (*)(void)), OPTIONAL_TABLES = 6 };
_Static_assert(sizeof(Target) - offsetof(Target, caps) <= (13 + OPTIONAL_TABLES) * HOOK, "13 hooks at most");
_Static_assert(sizeof(WatchHooks) <= 6 * HOOK && sizeof(TimeHooks) <= 6 * HOOK, "6 hooks at most");
_Static_assert(sizeof(RankHooks) <= 6 * HOOK && sizeof(RestartHooks) <= 6 * HOOK, "6 hooks at most");
_Static_assert(offsetof(GuardHooks, fused_checksums) <= 6 * HOOK, "6 hooks at most");
_Static_assert(offsetof(SimulatorHooks, faults) <= 6 * HOOK, "6 hooks at most");

static void targets_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; target_table[i]; i++) {
		const Target *t = target_table[i];
		assert_true(t->name && t->about && t->caps && t->compile && t->print && t->bind && t->accumulate && t->apply);
		assert_true(t->evaluate && t->get && t->set && t->gradient);
		if (t->ranks)
			assert_true(t->ranks->partial_sums && t->ranks->add && t->ranks->sum_floats && t->ranks->use_total);
		if (t->guard)
			assert_true(t->guard->regions && t->guard->attach);
		if (t->restarts)
			assert_non_null(t->restarts->run);
		if (t->simulator)
			assert_true(t->simulator->cycles && t->simulator->cycle && t->simulator->report && t->simulator->finish);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_complete),
		cmocka_unit_test(xor_is_learnt),
		cmocka_unit_test(resuming_gives_the_same_bits),
		cmocka_unit_test(resumed_runs_keep_their_options),
		cmocka_unit_test(runs_end_for_the_reason_they_say),
		cmocka_unit_test(report_function_stops),
		cmocka_unit_test(data_stays_while_it_trains),
		cmocka_unit_test(test_data_patience_and_best),
		cmocka_unit_test(errors_that_explode_are_named),
		cmocka_unit_test(data_that_does_not_fit_is_refused),
		cmocka_unit_test(memory_without_boundaries_is_one_sequence),
		cmocka_unit_test(scale_goes_with_the_weights),
		cmocka_unit_test(error_function_goes_with_the_weights),
		cmocka_unit_test(error_is_a_mean_over_scored_cases),
		cmocka_unit_test(error_of_saturated_outputs),
		cmocka_unit_test(handles_that_failed_are_refused),
		cmocka_unit_test(history_is_thinned_out),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(runs_go_on_after_memory_ran_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
