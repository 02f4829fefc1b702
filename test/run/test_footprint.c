/* SPDX-License-Identifier: MIT */
/* How much memory training takes, by what is asked of the allocator: weights, their changes, rule state and sums as
 * floats, and nothing else that grows with the weights. Cases are few: then rows take next to nothing. And data:
 * once, also while it is read. */
#include "runs.h"

enum { SIDE = 704, CASES = 16 };

static const char text[] =
	"group a 704 input\ngroup b 704\ngroup c 704 output\nconnect a, true -> b\nconnect b, true -> c\n";
static Meter meter;

static mp_net *metered_net(void)
{
	mp_net *net;
	assert_int_equal(
		net_parse_1989(&net, text, "net.topo", &(mp_allocator){ sizeof(mp_allocator), meter_resize, &meter }), MP_OK);
	return net;
}

static mp_data *some_cases(void)
{
	static float x[CASES * SIDE], y[CASES * SIDE];
	mp_data *data;
	for (uint64_t i = 0; i < COUNT(x); i++) {
		x[i] = (float)random_unit(1, STREAM_DATA, i);
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	}
	assert_int_equal(mp_data_new(&data, CASES, SIDE, SIDE, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

/* A block takes as much as one of its targets. */
static void full_blocks_are_small(void **state)
{
	(void)state;
	meter = (Meter){ 0 };
	mp_net *net = metered_net();
	assert_true(meter.bytes < net->net->links / 4);
	for (uint64_t l = 0; l < net->net->links; l += 997) {
		Unit u = net_target(net->net, l);
		uint64_t place = l - net->net->row[u];
		bool first = u <= 2 * SIDE;
		assert_int_equal(net_source(net->net, u, l), place ? (first ? 0 : SIDE) + place : 0);
		assert_int_equal(net_block(net->net, u, l)->from_group, place ? (first ? 0 : 1) : -1);
	}
	mp_net_close(net);
	assert_int_equal(meter.bytes, 0);
}

/* What a run may have at most, in floats for each weight: 4 for weights, state, a sum and room for one that waits; the
 * rest is padding and what does not grow. */
typedef struct Case {
	const char *option[2];
	const char *load, *resume, *save;
	double most;
} Case;

static const Case cases[] = {
	{ .option = { "rule", "momentum" }, .save = "a", .most = 4.5 },
	{ .option = { "rule", "doug" }, .most = 4.5 },
	{ .option = { "keep-best", "1" }, .save = "b", .most = 5.5 },
	{ .option = { "rule", "momentum" }, .load = "a", .most = 4.5 },
	{ .option = { "epochs", "4" }, .resume = "a", .most = 4.5 },
	{ .option = { "epochs", "4" }, .resume = "b", .save = "c", .most = 5.5 },
};

static void run_case(const Case *c, const mp_net *net, const mp_data *data)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, &(mp_allocator){ sizeof(mp_allocator), meter_resize, &meter }), MP_OK);
	if (c->resume) {
		need(run, mp_run_resume(run, in_folder(c->resume)));
	} else {
		need(run, mp_run_set(run, "threads", "1"));
		need(run, mp_run_set(run, "until", "never"));
		need(run, mp_run_set(run, "rate", "0.001"));
		need(run, mp_run_set(run, "epochs", "2"));
	}
	need(run, mp_run_set(run, c->option[0], c->option[1]));
	if (c->load)
		need(run, mp_run_load(run, in_folder(c->load)));
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	if (c->save)
		need(run, mp_run_save(run, in_folder(c->save)));
	mp_run_close(run);
}

static void weights_are_there_once(void **state)
{
	(void)state;
	mp_data *data = some_cases();
	for (size_t i = 0; i < COUNT(cases); i++) {
		meter = (Meter){ 0 };
		mp_net *net = metered_net();
		meter.most = meter.bytes;
		run_case(&cases[i], net, data);
		double floats = (double)meter.most / sizeof(float) / (double)net->net->links;
		if (floats > cases[i].most)
			print_error("case %zu: %.2f floats a weight\n", i, floats);
		assert_true(floats <= cases[i].most);
		mp_net_close(net);
		assert_int_equal(meter.live, 0);
	}
	mp_data_close(data);
}

/* Two epochs, a file in pieces, two more: as four. */
static void pieces_of_files_fit_together(void **state)
{
	(void)state;
	mp_data *data = some_cases();
	mp_net *net = net_of(text);
	mp_run *run[2];
	for (int k = 0; k < 2; k++) {
		assert_int_equal(mp_run_new(&run[k], net, NULL), MP_OK);
		if (k)
			need(run[k], mp_run_resume(run[k], in_folder("a")));
		else
			need(run[k], mp_run_set(run[k], "until", "never"));
		if (!k)
			need(run[k], mp_run_set(run[k], "rate", "0.001"));
		need(run[k], mp_run_set(run[k], "epochs", "4"));
		need(run[k], mp_run_train(run[k], data, NULL, NULL, NULL));
	}
	assert_string_equal(run[0]->fingerprint, run[1]->fingerprint);
	same_part(run[0], run[1], 0);
	same_part(run[0], run[1], 1);
	mp_run_close(run[0]);
	mp_run_close(run[1]);
	mp_net_close(net);
	mp_data_close(data);
}

/* Panels, with gaps or without, lists, links inside a group: any piece of their weights, whichever way the target
 * has them. */
static void any_piece_of_weights(void **state)
{
	(void)state;
	static const char *const nets[] = {
		"group a 20 input\ngroup b 17\ngroup c 5 output\nconnect a, true -> b\nconnect b, true -> c\n",
		"group a 20 input\ngroup b 40\ngroup c 5 output\nconnect a -> b random 0.6\nconnect true -> b\nconnect b, true "
		"-> c\n",
		"group a 60 input\ngroup b 40\ngroup c 5 output\nconnect a -> b random 0.05\nconnect true -> b\nconnect b, "
		"true -> c\n",
		"group a 9 input\ngroup b 12\ngroup c 3 output\nconnect a, true -> b\nconnect b -> b\nconnect a[2:5] -> "
		"c\nconnect b -> c\n",
	};
	for (size_t i = 0; i < 2 * COUNT(nets); i++) {
		mp_net *net = net_of(nets[i / 2]);
		mp_run *run = run_of(net);
		uint64_t n = net->net->links;
		double *all = malloc(n * sizeof *all), *some = malloc(n * sizeof *some);
		need(run, mp_run_set(run, "target", i % 2 ? "cpu" : "ref"));
		run_start_quietly(run);
		for (uint64_t piece = 1; piece < n; piece = piece * 3 + 1) {
			for (uint64_t k = 0; k < n; k++)
				all[k] = (double)(piece * n + k);
			for (uint64_t k = 0; k < n; k += piece)
				run->target->set(run->program, 0, k, piece, all + k);
			run->target->get(run->program, 0, 0, ALL_LINKS, some);
			same_vector(all, some, n);
			memset(some, 0, n * sizeof *some);
			for (uint64_t k = 0; k < n; k += piece)
				run->target->get(run->program, 0, k, piece, some + k);
			same_vector(all, some, n);
			net_weights(net->net, 3, 0, ALL_LINKS, all);
			for (uint64_t k = 0; k < n; k += piece)
				net_weights(net->net, 3, k, piece, some + k);
			same_vector(all, some, n);
		}
		free(all);
		free(some);
		mp_run_close(run);
		mp_net_close(net);
	}
}

/* ---- data ---- */

/* Many cases of the same line, then the last; more than a MiB, so that the file is mapped. */
typedef struct File {
	const char *head, *line, *last;
	uint64_t cases;
} File;

static mp_data *open_text(const File *f)
{
	mp_data *data;
	FILE *out = fopen(in_folder("cases.txt"), "w");
	assert_non_null(out);
	fputs(f->head, out);
	for (uint64_t i = 1; i < f->cases; i++)
		fputs(f->line, out);
	fputs(f->last, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(mp_data_open(&data, in_folder("cases.txt"), NULL,
	                              &(mp_allocator){ sizeof(mp_allocator), meter_resize, &meter }),
	                 MP_OK);
	assert_int_equal(data->data->cases, f->cases);
	return data;
}

/* Arrays are what they will be, and a piece; what no case has takes no room. */
static void text_is_in_memory_once(void **state)
{
	(void)state;
	static const File files[] = {
		{ "", "1 2 3 4 5 6 7 8 : .5\n", "1 2 3 4 5 6 7 9 : .5\n", 50000 },
		{ "", ".25 : .5\n", ".5 : .5\n", 200000 },
		{ "inputs 99\n", "[1 5 9 11 15 19 21 25 29] : 1\n", "[1 98] : 0\n", 50000 },
		{ "inputs 99\n", "[1 5 9 11 15 19 21 25 29] : 1\n", "\"late\" [1 98=2] : 0 weight 3\n", 50000 },
	};
	for (size_t i = 0; i < COUNT(files); i++) {
		meter = (Meter){ 0 };
		mp_data *data = open_text(&files[i]);
		if ((double)meter.most > 1.25 * (double)data->data->bytes + (1 << 18))
			print_error("file %zu: %zu bytes for %llu\n", i, meter.most, (unsigned long long)data->data->bytes);
		assert_true((double)meter.most <= 1.25 * (double)data->data->bytes + (1 << 18));
		mp_data_close(data);
		assert_int_equal(meter.live, 0);
	}
}

/* Names, weights and values that come late: those before are none, 1 and 1. */
static void what_comes_late_is_read(void **state)
{
	(void)state;
	mp_data *data = open_text(&(File){ "inputs 3\n", "[0 2] : 1\n", "\"late\" [1=2] : 0 weight 3\n", 10000 });
	const Data *d = data->data;
	for (uint64_t i = 0; i < d->cases; i++) {
		bool last = i + 1 == d->cases;
		float x[3], y;
		mp_data_get_case(data, i, x, &y);
		assert_true(x[0] == !last && x[1] == 2 * last && x[2] == !last && y == !last);
		assert_true(d->weight[i] == (last ? 3 : 1));
		assert_int_equal(d->names[i].len, last ? 4 : 0);
	}
	assert_memory_equal(d->names[d->cases - 1].s, "late", 4);
	mp_data_close(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_blocks_are_small),        cmocka_unit_test(weights_are_there_once),
		cmocka_unit_test(pieces_of_files_fit_together), cmocka_unit_test(any_piece_of_weights),
		cmocka_unit_test(text_is_in_memory_once),       cmocka_unit_test(what_comes_late_is_read),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
