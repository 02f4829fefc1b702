/* SPDX-License-Identifier: MIT */
/* Tiny networks with updates after one or a few cases. In: a program, the data bound to it, the lanes of units. Out:
 * stages of units and dense cases for kernel_tiny_steps, or NULL if the network or the batch does not fit. */
#include <string.h>

#include "small_net.h"

enum { MOST_BATCH = 16 };

/* Larger batches are faster with cases in the lanes. */
static bool fits(const Program *p)
{
	const Net *net = p->net;
	bool computed = false;

	for (uint32_t i = 0; i < net->groups; i++) {
		if (computed && net->group[i].role == ROLE_INPUT) /* sums begin with the inputs */
			return false;
		computed |= net->group[i].role != ROLE_INPUT;
	}
	return p->opt->batch > 0 && p->opt->batch <= MOST_BATCH;
}

/* ---- stages ---- */

/* Does a link lead from the unit to the part? */
static bool leads_to(const Net *net, Unit from, const Part *part)
{
	for (Unit u = part->first; u < part->first + part->count; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
			if (net_source(net, u, i) == from)
				return true;
	return false;
}

static bool comes_from(const Net *net, Unit to, const Part *part)
{
	for (uint64_t i = net->row[to]; i < net->row[to + 1]; i++)
		if (net_source(net, to, i) >= part->first && net_source(net, to, i) < part->first + part->count)
			return true;
	return false;
}

static TinyStage stage_of(Arena *a, const Program *p, const uint8_t *lane_of, const Part *part)
{
	const Net *net = p->net;
	TinyLink *from = NEW(a, net->units, TinyLink);
	uint8_t *to = NEW(a, net->units, uint8_t);
	TinyStage s = { .row = part->first,
		            .lane = lane_of[part->first],
		            .units = part->count,
		            .fn = part->fn,
		            .is_output = part->role == ROLE_OUTPUT,
		            .from = from,
		            .to = to };

	s.lanes = ((1u << part->count) - 1) << s.lane;
	for (Unit u = 1; u < net->units; u++) {
		bool source = leads_to(net, u, part), given = net_group(net, u)->role == ROLE_INPUT;
		s.inputs |= source && given;
		if (source && !given)
			from[s.froms++] = (TinyLink){ (uint8_t)u, lane_of[u] };
		if (comes_from(net, u, part))
			to[s.tos++] = lane_of[u];
	}
	return s;
}

static void take_stages(Arena *a, const Program *p, const uint8_t *lane_of, TinySteps *t)
{
	const Layout *l = p->layout;
	TinyStage *stage = NEW(a, l->forwards, TinyStage);

	for (uint32_t i = 0; i < l->forwards; i++)
		stage[i] = stage_of(a, p, lane_of, &l->part[l->forward[i]]);
	t->stage = stage;
	t->stages = l->forwards;
}

/* Rows up to the last that has targets. */
static void take_rows(Arena *a, const Program *p, const uint8_t *lane_of, TinySteps *t)
{
	const Net *net = p->net;
	uint16_t *real = NEW(a, net->units, uint16_t);

	for (Unit u = 1; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			Unit from = net_source(net, u, i);
			real[from] |= (uint16_t)(1u << lane_of[u]);
			t->sources = max_u32(t->sources, from + 1);
		}
	t->given = min_u32(1 + net->inputs, t->sources);
	t->real = real;
	t->lane = lane_of;
}

/* ---- cases ---- */

/* Inputs that are not zero, then the others; returns how many are not. */
static uint8_t list_inputs(const float *x, uint32_t given, uint8_t *listed)
{
	uint8_t on = 0, all;

	for (uint32_t row = 1; row < given; row++)
		if (x[row] != 0)
			listed[on++] = (uint8_t)row;
	all = on;
	for (uint32_t row = 1; row < given; row++)
		if (x[row] == 0)
			listed[all++] = (uint8_t)row;
	return on;
}

static void take_cases(Ctx *cx, Arena *a, const Program *p, TinySteps *t)
{
	const Data *d = p->bound->data;
	float *row = NEW(&cx->scratch, p->net->inputs, float), *x = NEW(a, d->cases * t->given, float),
		  *y = floats_take(a, d->cases * LANES);
	uint8_t *listed = NEW(a, d->cases * t->given, uint8_t), *on = NEW(a, d->cases, uint8_t),
			*top = NEW(a, d->cases, uint8_t);

	for (uint64_t i = 0; i < d->cases; i++) {
		float *own = x + i * t->given;
		data_x(d, i, row);
		own[0] = 1;
		memcpy(own + 1, row, (t->given - 1) * sizeof *x);
		on[i] = list_inputs(own, t->given, listed + i * (t->given - 1));
		data_y(d, i, y + i * LANES);
		top[i] = (uint8_t)first_largest(y + i * LANES, t->outputs);
	}
	t->x = x;
	t->y = y;
	t->listed = listed;
	t->on = on;
	t->top = top;
}

TinySteps *tiny_steps_make(Ctx *cx, Arena *a, const Program *p, bool momentum, const uint8_t *lane_of)
{
	if (!fits(p))
		return NULL;
	TinySteps *t = NEW(a, 1, TinySteps);
	t->outputs = p->net->outputs;
	t->matched = p->opt->error != ERR_SQUARED;
	t->momentum = momentum;
	t->offset = (float)p->opt->prime_offset;
	t->middle = (float)p->bound->scorer.middle;
	take_stages(a, p, lane_of, t);
	take_rows(a, p, lane_of, t);
	take_cases(cx, a, p, t);
	return t;
}
