/* SPDX-License-Identifier: MIT */
/* A small network from text, bound to target ref, for tests of the arithmetic. */
#ifndef TOY_H
#define TOY_H

#include "test.h"

extern const Target target_ref;

typedef struct Toy {
	Ctx cx;
	const char *text;
	Net *net;
	Plan *plan;
	Program *program;
	Data data;
	StopFlag stop;
} Toy;

static inline void toy_build(Ctx *cx, void *arg)
{
	Toy *t = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = t->text, .len = strlen(t->text) };
	t->net = net_parse(cx, src, DEFAULTS_1989);
	Caps caps;
	target_ref.caps(&caps);
	t->plan = plan_make(cx, t->net, &caps);
	t->program = target_ref.compile(cx, t->plan, &t->net->options);
}

static inline void toy_bind_body(Ctx *cx, void *arg)
{
	Toy *t = arg;
	target_ref.bind(cx, t->program, &t->data);
}

static inline void toy_ok(const Toy *t, Status s)
{
	if (s != MP_OK)
		print_error("%s\n%s\n", t->text, t->cx.messages.s ? t->cx.messages.s : "");
	assert_int_equal(s, MP_OK);
}

static inline void toy_open(Toy *t, const char *text)
{
	*t = (Toy){ .text = text };
	ctx_init(&t->cx, NULL);
	toy_ok(t, guarded(&t->cx, toy_build, t));
}

static inline void toy_close(Toy *t) { ctx_free(&t->cx); }

/* The data is the caller's; x has the net's inputs, y its outputs, in each of `cases` rows. */
static inline void toy_bind(Toy *t, uint64_t cases, const float *x, const float *y)
{
	t->data.name = "toy";
	t->data.cases = cases;
	t->data.inputs = t->net->inputs;
	t->data.targets = t->net->outputs;
	t->data.x = x;
	t->data.y = y;
	t->data.x_type = t->data.y_type = T_F32;
	toy_ok(t, guarded(&t->cx, toy_bind_body, t));
}

/* The summed error over all examples. */
static inline double toy_error(Toy *t)
{
	Tally tally = { 0 };
	assert_int_equal(target_ref.evaluate(t->program, 0, run_examples(t->net, &t->data), &t->stop, NULL, &tally), MP_OK);
	return tally.error;
}

static inline Tally toy_learn(Toy *t, Batch b)
{
	Tally tally = { 0 };
	assert_int_equal(target_ref.accumulate(t->program, &b, 0, leaf_count(b.count), &t->stop, &tally), MP_OK);
	return tally;
}

/* A stopped batch leaves no sum. */
static inline void toy_forget(Toy *t)
{
	Batch b = { .count = 1 };
	Tally tally = { 0 };
	t->stop = 1;
	assert_int_equal(target_ref.accumulate(t->program, &b, 0, 1, &t->stop, &tally), MP_STOPPED);
	t->stop = 0;
}

/* The gradient over all examples; nothing stays pending. */
static inline void toy_gradient(Toy *t, double *g)
{
	toy_learn(t, (Batch){ .count = run_examples(t->net, &t->data) });
	target_ref.gradient(t->program, g);
	toy_forget(t);
}

/* Weights between -reach and reach, the same ones for the same seed. */
static inline void toy_weights(Toy *t, uint64_t seed, double reach)
{
	double *w = calloc(t->net->links + 1, sizeof *w);
	for (uint64_t i = 0; i < t->net->links; i++)
		w[i] = reach * (2 * random_unit(seed, STREAM_WEIGHTS, i) - 1);
	target_ref.set(t->program, 0, 0, ALL_LINKS, w);
	free(w);
}

#endif
