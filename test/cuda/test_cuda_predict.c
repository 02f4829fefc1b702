/* SPDX-License-Identifier: MIT */
/* Predictions for an H200 have the figures of doc/cuda.md. Steps in time count. */
#include "cpu_nets.h"
#include "cuda.h"

extern const Target target_cuda;

typedef struct Figure {
	const char *net;
	uint64_t cases, batch, seeds; /* seeds: 0: one network, whose data are index lists */
	double operations;            /* of a row */
	double measured;              /* seconds of an epoch of all */
} Figure;

#define NETTALK                                             \
	"group in 203 input\ngroup h 60\ngroup out 26 output\n" \
	"connect in, true -> h\nconnect h, true -> out\ntrain error squared rule momentum shuffle off batch "
#define ENCODER                                         \
	"group in 8 input\ngroup h 3\ngroup out 8 output\n" \
	"connect in, true -> h\nconnect h, true -> out\ntrain error squared rule momentum batch all\n"
#define LINKS     13866.0
#define LIST_WORK 9477.0 /* seven inputs of a case are 1 */

static const Figure figures[] = {
	{ NETTALK "all\n", 12022, 12022, 0, LIST_WORK, 14.7e-6 },
	{ NETTALK "512\n", 12288, 512, 0, LIST_WORK, 24 * 5.8e-6 },
	{ NETTALK "512\n", 12288, 512, 1056, LIST_WORK, 1056 * LINKS * 12288 / 25.4e12 },
	{ ENCODER, 8, 8, 100000, 4.5 * 59, 100000 / 16e6 / 341 }, /* the median seed needs 341 epochs */
};

static double predicted(const Figure *f, double steps)
{
	Side s;
	Prediction p = { 0 };

	side_open(&s, &target_cuda, f->net, (Way){ .isa = best_isa(), .threads = 1, .batch = (int64_t)f->batch });
	uint64_t *lists = calloc(f->cases + 1, sizeof *lists);
	Data d = { .cases = f->cases, .inputs = s.net->inputs, .targets = s.net->outputs, .x_indptr = lists };
	TrainingWork w = { .net = s.net,
		               .opt = &s.opt,
		               .data = &d,
		               .rows = (double)f->cases * steps,
		               .operations = f->operations,
		               .steps = steps,
		               .batch = f->batch,
		               .updates = ceil_div(f->cases, f->batch),
		               .seeds = max_u64(f->seeds, 1),
		               .together = f->seeds > 0 };
	target_cuda.time->predict(&s.cx, &w, &p);
	assert_null(p.why_not);
	free(lists);
	side_close(&s);
	return p.epoch;
}

static void figures_are_those_measured(void **state)
{
	(void)state;
	setenv("MICROPROP_CUDA", "emulate", 1);
	for (size_t i = 0; i < COUNT(figures); i++) {
		double share = predicted(&figures[i], 1) / figures[i].measured;
		if (share < 0.8 || share > 1.25)
			print_error("figure %zu: predicted is %.3g times what was measured\n", i, share);
		assert_true(share >= 0.8 && share <= 1.25);
	}
}

static void steps_take_their_time(void **state)
{
	static const Figure elman = { "group in 2 input\ngroup h 4\ngroup c 4 context\ncopy h -> c\ngroup out 1 output\n"
		                          "connect in, c, true -> h\nconnect h, true -> out\n",
		                          1,
		                          1,
		                          0,
		                          100,
		                          0 };

	(void)state;
	setenv("MICROPROP_CUDA", "emulate", 1);
	assert_true(predicted(&elman, 1) >= 100e-6);
	assert_true(predicted(&elman, 1500) >= 15e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_those_measured),
		cmocka_unit_test(steps_take_their_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
