/* SPDX-License-Identifier: MIT */
/* lanes.c with cases in a loop, if each case has the same small number of inputs of 1 and all others are 0. In: the
 * network, its data. Out: a table of cases; instructions of a thread.
 *
 * Unrolled cases are 50 kB of instructions; the loop has a tenth of them and is a tenth faster (8-3-8 on an H200).
 * Registers cannot be indexed, so input weights and their gradients are in shared memory: quads of units, by input. A
 * row of the table has targets, offsets of the quads of the inputs, and the target's class. */
#include <assert.h>

#include "lanes.h"

bool is_input(const LaneSource *s, Unit u)
{
	for (uint32_t i = 0; i < s->net->inputs; i++)
		if (s->input[i] == u)
			return true;
	return false;
}

/* Number of inputs of a case that are 1; 0: none, or some are neither 0 nor 1. */
static uint32_t ones_of(const LaneSource *s, uint64_t c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->net->inputs; i++) {
		float x = s->x[c * s->net->inputs + i];
		if (x != 0 && x != 1)
			return 0;
		n += x == 1;
	}
	return n;
}

/* Does a unit have links from all inputs, in order, or from none? first: number of the first link. */
static bool links_fit(const LaneSource *s, Unit u, uint64_t *first)
{
	uint32_t n = 0;

	*first = NO_LINKS;
	for (uint64_t l = s->net->row[u]; l < s->net->row[u + 1]; l++) {
		Unit from = net_source(s->net, u, l);
		if (!is_input(s, from))
			continue;
		if (net_block(s->net, u, l)->frozen || n == s->net->inputs || s->input[n] != from || (n && l != *first + n))
			return false;
		*first = n ? *first : l;
		n++;
	}
	return !n || n == s->net->inputs;
}

const SparsePlan *sparse_plan(const LaneSource *s)
{
	enum { MOST_ONES = 4 };
	Arena *a = &s->cx->scratch;
	SparsePlan *p = NEW(a, 1, SparsePlan);
	uint64_t work = 0;

	p->ones = ones_of(s, 0);
	p->input = NEW(a, s->net->units + 1, bool);
	p->first = NEW(a, s->net->units + 1, uint64_t);
	p->unit = NEW(a, s->net->units + 1, Unit);
	for (uint64_t c = 0; c < s->cases; c++)
		if (ones_of(s, c) != p->ones)
			return NULL;
	for (uint32_t i = 0; i < s->net->inputs; i++)
		p->input[s->input[i]] = true;
	for (uint32_t i = 0; i < s->computed; i++) {
		Unit u = s->unit[i].unit;
		if (!links_fit(s, u, &p->first[u]))
			return NULL;
		if (p->first[u] != NO_LINKS)
			p->unit[p->units++] = u;
		work += s->net->row[u + 1] - s->net->row[u];
	}
	p->quads = (uint32_t)ceil_div(p->units, 4);
	p->row_words = (uint32_t)(round_up(s->net->outputs, 4) + round_up(p->ones + 1, 4));
	p->at_w = (uint32_t)round_up(s->cases * p->row_words * 4, 128);
	p->at_g = p->at_w + s->net->inputs * p->quads * s->threads * 16;
	p->bytes = 2 * p->at_g - p->at_w;
	bool fits = p->ones && p->ones <= MOST_ONES && p->units && p->bytes <= s->shared;
	return fits && work * s->cases >= SPARSE_WORK ? p : NULL;
}

const uint32_t *sparse_rows(const LaneSource *s, const SparsePlan *p)
{
	uint32_t *row = NEW(&s->cx->scratch, s->cases * p->row_words + 1, uint32_t), *all = row;

	for (uint64_t c = 0; c < s->cases; c++, row += p->row_words) {
		uint32_t *to = row + round_up(s->net->outputs, 4);
		for (uint32_t n = 0; n < s->net->outputs; n++)
			row[n] = imm_f(s->y[c * s->net->outputs + n]).n;
		for (uint32_t i = 0; i < s->net->inputs; i++)
			if (s->x[c * s->net->inputs + i] == 1)
				*to++ = i * p->quads * s->threads * 16;
		*to = s->target_class[c];
	}
	return all;
}

/* ---- instructions ---- */

/* Copies the table to shared memory. */
void sparse_begin(Lanes *k, Reg tid)
{
	Emit *e = k->e;
	const SparsePlan *p = k->sparse;
	Reg memory = special_register(e, "memory"), rows = param_load(e, REG_D, offsetof(LaneJob, rows));
	Loop l = loop_begin(e, tid, imm((uint32_t)k->s->cases * p->row_words), k->s->threads);

	ins(e, "st.shared.u32 [$], $", mad(e, l.i, 4, memory),
	    load(e, REG_R, "ld.global.nc.u32", place(e, rows, l.i, 4), 0));
	loop_end(e, &l);
	barrier_block(e);
	k->table = memory;
	k->quads_at = mad(e, tid, 16, memory);
}

static uint32_t quad_at(const Lanes *k, uint32_t input, uint32_t quad)
{
	return (input * k->sparse->quads + quad) * k->s->threads * 16;
}

/* Registers of the links from an input to a quad of units. */
static void quad_of(const Lanes *k, const Reg *link, uint32_t input, uint32_t quad, Reg q[4])
{
	const SparsePlan *p = k->sparse;

	for (uint32_t n = 0; n < 4; n++) {
		uint32_t u = 4 * quad + n;
		q[n] = u < p->units ? link[p->first[p->unit[u]] + input] : imm_f(0);
	}
}

static void quad_store(Lanes *k, uint32_t at, uint32_t input, uint32_t quad, const Reg q[4])
{
	ins(k->e, "st.shared.v4.f32 [$+#], {$, $, $, $}", k->quads_at, at + quad_at(k, input, quad), q[0], q[1], q[2],
	    q[3]);
}

void sparse_put(Lanes *k)
{
	const Reg zero[4] = { imm_f(0), imm_f(0), imm_f(0), imm_f(0) };

	for (uint32_t i = 0; i < k->s->net->inputs; i++)
		for (uint32_t n = 0; n < k->sparse->quads; n++) {
			Reg q[4];
			quad_of(k, k->w, i, n, q);
			quad_store(k, k->sparse->at_w, i, n, q);
			quad_store(k, k->sparse->at_g, i, n, zero);
		}
}

void sparse_get(Lanes *k)
{
	for (uint32_t i = 0; i < k->s->net->inputs; i++)
		for (uint32_t n = 0; n < k->sparse->quads; n++) {
			Reg q[4];
			load_quad(k->e, "shared", q, k->quads_at, k->sparse->at_w + quad_at(k, i, n));
			for (uint32_t m = 0; m < 4 && 4 * n + m < k->sparse->units; m++)
				ins(k->e, "mov.f32 $, $", k->w[k->sparse->first[k->sparse->unit[4 * n + m]] + i], q[m]);
		}
}

/* Loads case c: targets, weights of its inputs. Returns the target's class. */
Reg sparse_case(Lanes *k, Reg c)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	const SparsePlan *p = k->sparse;
	Reg row = mad(e, c, p->row_words * 4, k->table), y[4];
	uint32_t at = (uint32_t)round_up(s->net->outputs, 4) * 4;

	for (uint32_t n = 0; n < s->net->outputs; n++) {
		if (n % 4 == 0)
			load_quad(e, "shared", y, row, 4 * n);
		k->y[n] = y[n % 4];
	}
	k->input_at = NEW(&s->cx->scratch, p->ones, Reg);
	k->input_w = NEW(&s->cx->scratch, p->ones * p->quads * 4, Reg);
	for (uint32_t i = 0; i < p->ones; i++) {
		k->input_at[i] = add(e, k->quads_at, load(e, REG_R, "ld.shared.u32", row, at + 4 * i));
		for (uint32_t n = 0; n < p->quads; n++)
			load_quad(e, "shared", k->input_w + (i * p->quads + n) * 4, k->input_at[i], p->at_w + quad_at(k, 0, n));
	}
	return load(e, REG_R, "ld.shared.u32", row, at + 4 * p->ones);
}

Reg sparse_forward(Lanes *k, Unit u, Reg sum)
{
	const SparsePlan *p = k->sparse;
	uint32_t n = 0;

	while (p->unit[n] != u)
		n++;
	for (uint32_t i = 0; i < p->ones; i++) {
		Reg w = k->input_w[i * p->quads * 4 + n];
		sum = sum.type == REG_FLOAT ? w : op2(k->e, REG_F, "add.rn.ftz.f32", w, sum);
	}
	return sum;
}

void sparse_gradient(Lanes *k)
{
	Emit *e = k->e;
	const SparsePlan *p = k->sparse;

	for (uint32_t i = 0; i < p->ones; i++)
		for (uint32_t n = 0; n < p->quads; n++) {
			Reg q[4];
			load_quad(e, "shared", q, k->input_at[i], p->at_g + quad_at(k, 0, n));
			for (uint32_t m = 0; m < 4 && 4 * n + m < p->units; m++)
				q[m] = op2(e, REG_F, "add.rn.ftz.f32", k->delta[p->unit[4 * n + m]], q[m]);
			store_quad(e, "shared", k->input_at[i], p->at_g + quad_at(k, 0, n), q);
		}
}

/* Updates input weights; resets their gradients. */
void sparse_update(Lanes *k, const RuleNumbers *numbers)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	const SparsePlan *p = k->sparse;
	const Reg zero[4] = { imm_f(0), imm_f(0), imm_f(0), imm_f(0) };

	for (uint32_t i = 0; i < s->net->inputs; i++)
		for (uint32_t n = 0; n < p->quads; n++) {
			Reg w[4], g[4];
			load_quad(e, "shared", w, k->quads_at, p->at_w + quad_at(k, i, n));
			load_quad(e, "shared", g, k->quads_at, p->at_g + quad_at(k, i, n));
			for (uint32_t m = 0; m < 4 && 4 * n + m < p->units; m++) {
				Unit u = p->unit[4 * n + m];
				w[m] = link_update(k, u, p->first[u] + i, numbers, g[m], w[m]);
			}
			quad_store(k, p->at_w, i, n, w);
			quad_store(k, p->at_g, i, n, zero);
		}
}
