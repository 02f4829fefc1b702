/* SPDX-License-Identifier: MIT */
/* Times target cuda: cuda_bench TOPOLOGY DATA BATCH INPUT UPDATES [OPTION VALUE]...
 *
 * Prints microseconds per update, 10^12 connections times cases per second, and, with MICROPROP_CUDA_TIME=1, the cycles
 * that the first thread spent on rows, waiting for its team, gradient, team, grid, update, grid, and on steps.
 * bench/cuda-selftest runs it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda.h"
#include "formats.h"

extern const Target target_cuda;

typedef struct Bench {
	const char *topology, *data, *batch, *input;
	uint64_t updates;
	char **option; /* NULL after the last */
} Bench;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void set(Ctx *cx, Options *o, const char *name, const char *value)
{
	const char *remedy, *wrong = option_set(cx, o, name, value, &remedy);

	if (wrong)
		fail(cx, MP_BAD_INPUT, remedy, "%s", wrong);
}

enum { ORDERED_EPOCHS = 64, MOST_EPOCHS = 1024 }; /* of a call, as the trainer has them */

/* In calls of up to MOST_EPOCHS epochs. order: NULL, or that of the examples of ORDERED_EPOCHS. */
static void train(Program *p, const Options *o, uint64_t examples, uint64_t batch, const uint64_t *order,
                  uint64_t updates)
{
	static const StopFlag never = 0;
	uint64_t each = ceil_div(examples, batch), at = 0, passed = 0;
	assert(each > 0);
	Update u;

	update_fill(o, 1, 0, 0, &u);
	while (updates) {
		Tally tally[MOST_EPOCHS] = { { 0 } };
		Updates s = { .examples = examples,
			          .batch = batch,
			          .done = at * batch,
			          .count = min_u64(updates, order       ? ORDERED_EPOCHS * each - at
			                                    : each == 1 ? MOST_EPOCHS
			                                                : each - at),
			          .example = order ? order + at * batch : NULL,
			          .update = &u,
			          .same = true,
			          .until = &(Until){ -1, 2, 2 },
			          .stop = &never,
			          .tally = tally,
			          .epoch = passed / each,
			          .few_counts = true };
		uint64_t done = target_cuda.run_updates(p, &s);
		updates -= done;
		passed += done;
		at = (at + done) % each;
	}
}

static void run(Ctx *cx, const Bench *b)
{
	Net *net = net_parse(cx, src_open(cx, &cx->keep, b->topology), DEFAULTS_NEWEST);
	Options *o = NEW(&cx->keep, 1, Options);
	Caps caps;

	*o = net->options;
	set(cx, o, "batch", b->batch);
	set(cx, o, "input", b->input);
	set(cx, o, "rule", "momentum");
	set(cx, o, "rate", "0.00001");
	for (char **p = b->option; p[0] && p[1]; p += 2)
		set(cx, o, p[0], p[1]);
	const Data *d = data_open(cx, b->data, NULL);
	uint64_t examples = run_examples(net, d),
			 batch = o->batch == BATCH_ALL ? examples : min_u64((uint64_t)o->batch, examples);
	uint64_t ordered = examples * ORDERED_EPOCHS, *order = batch < examples ? NEW(&cx->keep, ordered, uint64_t) : NULL;
	for (uint64_t i = 0; order && i < ordered; i++)
		order[i] = (i % examples * 7919 + 3) % examples;
	target_cuda.caps(&caps);
	Program *p = target_cuda.compile(cx, plan_make(cx, net, &caps), o);
	double *w = NEW(&cx->keep, net->links, double);
	net_weights(net, 1, 0, ALL_LINKS, w);
	target_cuda.set(p, 0, 0, ALL_LINKS, w);
	target_cuda.bind(cx, p, d);
	train(p, o, examples, batch, order, ceil_div(examples, batch));
	double begin = now();
	train(p, o, examples, batch, order, b->updates);
	double us = (now() - begin) / (double)b->updates * 1e6;
	const Cuda *c = (const Cuda *)p;
	printf("batch %s, %s: %.2f us an update, %.3f TCPS, %u teams of %u; cycles:", b->batch, b->input, us,
	       (double)batch * (double)net->links / us * 1e-6, c->teams, c->team_blocks);
	for (int i = 0; i < SPENT_KINDS; i++)
		printf(" %.0f", (double)c->last.cycles[i] / (double)max_u64(1, c->last.done));
	printf("\n");
	for (uint32_t i = 0, steps = 0; i < STEPS_TIMED; i++)
		if (c->last.step_cycles[i])
			printf("%s %u: %.0f%s", steps++ ? "," : "  steps", i,
			       (double)c->last.step_cycles[i] / (double)max_u64(1, c->last.done),
			       i + 1 < STEPS_TIMED && c->last.step_cycles[i + 1] ? "" : "\n");
}

int main(int argc, char **argv)
{
	Bench b = { .topology = argc > 1 ? argv[1] : "examples/letters.topo",
		        .data = argc > 2 ? argv[2] : "make:letters",
		        .batch = argc > 3 ? argv[3] : "all",
		        .input = argc > 4 ? argv[4] : "auto",
		        .updates = argc > 5 ? strtoull(argv[5], NULL, 10) : 1000,
		        .option = argv + min_u32((uint32_t)argc, 6) };
	jmp_buf edge;
	Ctx cx;

	ctx_init(&cx, NULL);
	cx.edge = &edge;
	cx.status = MP_OK;
	if (setjmp(edge) == 0)
		run(&cx, &b);
	else
		printf("%s\n", ctx_messages(&cx));
	cx.edge = NULL;
	int status = cx.status != MP_OK;
	ctx_free(&cx);
	return status;
}
