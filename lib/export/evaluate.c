/* SPDX-License-Identifier: MIT */
/* A Recipe, computed.  In: the scaled inputs of a case.  Out: its outputs, with the bits of target cpu, by the text
 * that exported C files have. */
#include <math.h>
#include <string.h>

#define PORTABLE /* no mode of the CPU is changed here */
#include "runtime.h"

#include "export.h"

Evaluator *evaluator_new(const Recipe *r, bool int8)
{
	Evaluator *e = NEW(r->arena, 1, Evaluator);
	e->r = r;
	e->u = NEW(r->arena, r->net->units, float);
	e->state = NEW(r->arena, r->states, float);
	e->q = NEW(r->arena, r->widest, int8_t);
	e->int8 = int8;
	evaluator_reset(e);
	return e;
}

void evaluator_reset(Evaluator *e)
{
	for (uint32_t i = 0; i < e->r->remembers; i++) {
		const Remember *m = &e->r->remember[i];
		for (uint32_t k = 0; k < m->count; k++)
			e->state[m->state + k] = m->start;
	}
}

static void units(float *u, int count, int fn)
{
	static void (*const functions[FN_COUNT])(float *, int) = {
		[FN_SIGMOID] = sigmoid,   [FN_TANH] = hyperbolic,   [FN_RELU] = relu,       [FN_SOFTMAX] = softmax,
		[FN_GAUSSIAN] = gaussian, [FN_SIGMOID2] = sigmoid2, [FN_ELLIOTT] = elliott, [FN_SOFTSIGN] = softsign,
	};
	float table[19];
	if (fn == FN_STEPWISE || fn == FN_STEPWISE_TANH) {
		steps_table(fn, table);
		steps(u, count, table);
	} else if (functions[fn]) {
		functions[fn](u, count);
	}
}

static void source_range(Evaluator *e, uint32_t work)
{
	const Work *w = &e->r->work[work];
	for (uint32_t i = 0; i < w->sources; i++)
		e->range[work] = fmaxf(e->range[work], fabsf(e->u[w->from + i]));
}

static void work(Evaluator *e, uint32_t i)
{
	const Recipe *r = e->r;
	const Work *w = &r->work[i];
	float *u = e->u + w->first;
	int count = (int)w->count;
	switch (w->kind) {
	case WORK_START: memcpy(u, r->weight + w->at, w->count * sizeof *u); break;
	case WORK_DENSE:
		if (e->range)
			source_range(e, i);
		if (e->int8)
			dense8(u, count, e->u + w->from, (int)w->sources, 127 / w->range, r->weight8 + w->at8,
			       r->scale + w->scale_at, e->q);
		else
			dense(u, count, e->u + w->from, (int)w->sources, r->weight + w->at);
		break;
	case WORK_LINKS: links(e->u, (int)w->first, count, r->row + w->at, r->from, r->link); break;
	case WORK_UNITS: units(u, count, w->fn); break;
	default: integrate(u, e->state + w->state, count, w->dt);
	}
}

static void tick(Evaluator *e, const float *x)
{
	const Recipe *r = e->r;
	for (uint32_t i = 0; i < r->net->groups; i++) {
		const Group *g = &r->net->group[i];
		for (uint32_t k = 0; g->role == ROLE_INPUT && k < g->size; k++)
			e->u[g->first + k] = x ? flushed(*x++) : 0;
	}
	for (uint32_t i = 0; i < r->remembers; i++)
		if (r->remember[i].from != r->remember[i].to)
			memcpy(e->u + r->remember[i].to, e->state + r->remember[i].state, r->remember[i].count * sizeof *e->u);
	for (uint32_t i = 0; i < r->works; i++)
		work(e, i);
	for (uint32_t i = 0; i < r->remembers; i++)
		if (r->remember[i].from != r->remember[i].to)
			memcpy(e->state + r->remember[i].state, e->u + r->remember[i].from, r->remember[i].count * sizeof *e->u);
}

void evaluate(Evaluator *e, const float *x, float *y)
{
	const Recipe *r = e->r;
	for (uint32_t t = 0; t < r->ticks.each; t++)
		tick(e, t < r->ticks.inputs_end ? x : NULL);
	for (uint32_t i = 0; i < r->net->groups; i++) {
		const Group *g = &r->net->group[i];
		for (uint32_t k = 0; g->role == ROLE_OUTPUT && k < g->size; k++)
			*y++ = e->u[g->first + k];
	}
}
