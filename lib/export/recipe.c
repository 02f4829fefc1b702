/* SPDX-License-Identifier: MIT */
/* The order of work of one case.  In: a network and its weights.  Out: a Recipe: sums and unit functions over one array
 * of units, level by level, with the weights in the order in which they are read.
 *
 * Must hold: the sum of every unit is one chain over its links in canonical order, the weight from the true unit first.
 * Units side by side with the same sources are dense; others have single links.  Subnormal weights are zero. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "export.h"

enum { LEAST_LINKS = 8 }; /* of a run of sources, on average, from which on units are dense */

static Work *work_add(Recipe *r, int kind, Unit first, uint32_t count)
{
	r->work = arena_reserve(r->arena, r->work, r->works, &r->work_cap, sizeof *r->work);
	r->work[r->works] = (Work){ .kind = kind, .first = first, .count = count };
	return &r->work[r->works++];
}

static float weight_of(const Model *m, uint64_t link)
{
	float w = (float)m->w[link];
	return fabsf(w) < FLT_MIN ? 0 : w;
}

static void weight_add(Recipe *r, float w)
{
	r->weight = arena_reserve(r->arena, r->weight, r->weights, &r->weight_cap, sizeof *r->weight);
	r->weight[r->weights++] = w;
}

static bool has_bias(const Net *net, Unit u)
{
	return net->row[u + 1] > net->row[u] && net_source(net, u, net->row[u]) == 0;
}

static void add_start(Recipe *r, const Model *m, Unit first, uint32_t count)
{
	const Net *net = m->net;
	work_add(r, WORK_START, first, count)->at = r->weights;
	for (Unit u = first; u < first + count; u++)
		weight_add(r, has_bias(net, u) ? weight_of(m, net->row[u]) : 0);
}

/* Units with the same sources: a Work for each run of consecutive ones. */
static void add_dense(Recipe *r, const Model *m, Unit first, uint32_t count)
{
	const Net *net = m->net;
	uint64_t bias = has_bias(net, first), n = net->row[first + 1] - net->row[first] - bias, run;
	for (uint64_t k = 0; k < n; k += run) {
		Unit from = net_source(net, first, net->row[first] + bias + k);
		for (run = 1; k + run < n && net_source(net, first, net->row[first] + bias + k + run) == from + run;)
			run++;
		Work *w = work_add(r, WORK_DENSE, first, count);
		w->at = r->weights;
		w->from = from;
		w->sources = (uint32_t)run;
		r->widest = max_u32(r->widest, w->sources);
		w->stride = count < 4 ? count : (count + 7) / 8 * 8;
		for (uint64_t i = 0; i < run; i++)
			for (uint32_t j = 0; j < w->stride; j++)
				weight_add(r, j < count ? weight_of(m, net->row[first + j] + bias + k + i) : 0);
	}
}

static void row_add(Recipe *r)
{
	r->row = arena_reserve(r->arena, r->row, r->rows, &r->row_cap, sizeof *r->row);
	r->row[r->rows++] = (int32_t)r->links;
}

static void add_links(Recipe *r, const Model *m, Unit first, uint32_t count)
{
	const Net *net = m->net;
	uint64_t before = r->links;
	Work *w = work_add(r, WORK_LINKS, first, count);
	w->at = r->rows;
	for (Unit u = first; u < first + count; u++) {
		row_add(r);
		for (uint64_t l = net->row[u] + has_bias(net, u); l < net->row[u + 1]; l++) {
			r->from = arena_reserve(r->arena, r->from, r->links, &r->from_cap, sizeof *r->from);
			r->link = arena_reserve(r->arena, r->link, r->links, &r->link_cap, sizeof *r->link);
			r->from[r->links] = (int32_t)net_source(net, u, l);
			r->link[r->links++] = weight_of(m, l);
		}
	}
	row_add(r);
	if (r->links == before) { /* nothing but weights from the true unit */
		r->works--;
		r->rows = w->at;
	}
}

static uint32_t alike(const Net *net, Unit u, Unit end)
{
	Unit v = u + 1;
	while (v < end && net_same_sources(net, u, v))
		v++;
	return v - u;
}

/* `same` units from u on have the same sources: are these few enough runs of consecutive ones? */
static bool is_dense(const Net *net, Unit u, uint32_t same)
{
	uint64_t first = net->row[u] + has_bias(net, u), end = net->row[u + 1], runs = 0;
	for (uint64_t l = first; l < end; l++)
		runs += l == first || net_source(net, u, l) != net_source(net, u, l - 1) + 1;
	return runs <= 1 || (end - first) * same >= LEAST_LINKS * runs;
}

static void add_sums(Recipe *r, const Model *m, const Span *s)
{
	Unit end = s->first + s->count;
	add_start(r, m, s->first, s->count);
	for (Unit u = s->first; u < end;) {
		uint32_t same = alike(m->net, u, end);
		if (is_dense(m->net, u, same)) {
			add_dense(r, m, u, same);
			u += same;
			continue;
		}
		Unit first = u; /* single links of all units up to the next dense ones */
		while (u < end && !is_dense(m->net, u, same)) {
			u += same;
			same = u < end ? alike(m->net, u, end) : 0;
		}
		add_links(r, m, first, u - first);
	}
}

static uint32_t remember(Recipe *r, Unit from, Unit to, uint32_t count, float start)
{
	r->remember[r->remembers++] =
		(Remember){ .from = from, .to = to, .count = count, .state = r->states, .start = start };
	r->states += count;
	return r->states - count;
}

static void add_integrate(Recipe *r, const Model *m, const Span *s, float start)
{
	Work *w = work_add(r, WORK_INTEGRATE, s->first, s->count);
	w->dt = (float)group_dt(s->group, m->opt);
	w->state = remember(r, s->first, s->first, s->count, start);
}

static void add_span(Recipe *r, const Model *m, const Span *s)
{
	const Group *g = s->group;
	add_sums(r, m, s);
	if (g->integrate == INTEGRATE_INPUT)
		add_integrate(r, m, s, 0);
	if (g->fn != FN_LINEAR)
		work_add(r, WORK_UNITS, s->first, s->count)->fn = g->fn;
	if (g->integrate == INTEGRATE_OUTPUT)
		add_integrate(r, m, s, g->start);
}

Recipe *recipe_make(Ctx *cx, Arena *arena, const Model *m)
{
	const Net *net = m->net;
	const Plan *plan = plan_make(cx, net, &(Caps){ .target = "export", .lanes = 1 });
	Recipe *r = NEW(arena, 1, Recipe);
	r->arena = arena;
	if (net->links > INT32_MAX)
		fail(cx, MP_BAD_INPUT, "keep it as .safetensors", "a network of more than %d links is not exported so",
		     INT32_MAX);
	r->net = net;
	r->ticks = ticks_make(net, m->opt);
	r->remember = NEW(arena, (size_t)net->copies + plan->spans, Remember);
	for (uint32_t i = 0; i < net->copies; i++) {
		const Group *from = &net->group[net->copy[i].from_group], *to = &net->group[net->copy[i].to_group];
		remember(r, from->first, to->first, to->size, to->start);
	}
	for (uint32_t i = 0; i < plan->spans; i++)
		add_span(r, m, &plan->span[i]);
	return r;
}

void steps_table(int fn, float out[19])
{
	const StepLines *s = fn == FN_STEPWISE ? &sigmoid_steps : &tanh_steps;
	for (int i = 0; i < STEP_POINTS; i++) {
		out[i] = s->x[i];
		out[STEP_POINTS + i] = s->y[i];
		if (i + 1 < STEP_POINTS)
			out[2 * STEP_POINTS + i] = (float)steps_slope(s, i);
	}
	out[17] = s->low;
	out[18] = s->high;
}
