/* SPDX-License-Identifier: MIT */
/* Routines of the bundles and of the moves between DRAM and SRAM, for one case (section 5).
 * In: a bundle.  Out: recorded code whose addresses start from the bundle's own bases, so that bundles of the same
 * shape give the same code.
 *
 * What must hold: units that a bundle reads and writes are different ones (targets are of one level, sources of lower
 * ones), so no word is reached through two relocation registers. */
#include <stdlib.h>
#include <string.h>

#include "backprop.h"

static Addr at(uint16_t base, uint32_t off)
{
	return (Addr){ base, off };
}

/* A source before the bundle's first is the true unit. */
static Addr source_out(const Bp *b, const BpBundle *n, Unit source)
{
	return source < n->source ? at(BP_CASE, b->at.case_out + source) : at(BP_OUT, source - n->source);
}

static Addr net_at(const Bp *b, const BpBundle *n, Unit target)
{
	return at(BP_NET, b->net_word[target] - b->net_word[n->target]);
}

static Addr back_at(const Bp *b, const BpBundle *n, Unit source)
{
	return at(BP_BACK, b->net_word[source] - b->net_word[n->source]);
}

/* ---- forward ---- */

/* By source: additions to one net input are as far apart as the bundle has targets. */
Code *record_forward(const Bp *b, const BpBundle *n)
{
	Gen *g = gen_record(b->cx, b->m, "forward");
	Reg *net = NEW(&b->cx->scratch, b->net->units, Reg), out = 0;
	bool *there = NEW(&b->cx->scratch, b->net->units, bool);
	for (uint32_t i = 0; i < n->links; i++) {
		const BpLink *l = &n->link[i];
		if (i == 0 || l->source != l[-1].source)
			out = g_load(g, source_out(b, n, l->source));
		Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i)), product = g_fmul(g, weight, out);
		if (n->opens[i]) {
			net[l->target] = product;
		} else {
			if (!there[l->target])
				net[l->target] = g_load(g, net_at(b, n, l->target));
			net[l->target] = g_fadd(g, net[l->target], product);
		}
		there[l->target] = true;
	}
	for (Unit u = n->target; u < b->net->units; u++)
		if (there[u])
			g_store(g, net_at(b, n, u), net[u]);
	return gen_end(g);
}

/* ---- backward ---- */

typedef struct Back {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	Reg *out, *error;                 /* [units] of the sources */
	bool *there;
} Back;

static void source_open(Back *k, Unit source)
{
	if (k->there[source])
		return;
	k->there[source] = true;
	k->out[source] = g_load(k->g, source_out(k->b, k->n, source));
	if (k->b->plan->level_of[source] > 0)
		k->error[source] = g_load(k->g, back_at(k->b, k->n, source));
}

/* Error of the source += weight * error of the target; weight change += error of the target * output of the source. */
static void link_back(Back *k, uint32_t i, Reg delta)
{
	Gen *g = k->g;
	Unit source = k->n->link[i].source;
	source_open(k, source);
	if (k->b->plan->level_of[source] > 0) {
		Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i));
		k->error[source] = g_fadd(g, k->error[source], g_fmul(g, weight, delta));
	}
	Reg change = g_load(g, at(BP_NEAR_CHANGES, i));
	g_store(g, at(BP_NEAR_CHANGES, i), g_fadd(g, change, g_fmul(g, delta, k->out[source])));
}

Code *record_backward(const Bp *b, const BpBundle *n)
{
	Arena *scratch = &b->cx->scratch;
	Back k = { b, n, gen_record(b->cx, b->m, "backward"), NEW(scratch, b->net->units, Reg),
	           NEW(scratch, b->net->units, Reg), NEW(scratch, b->net->units, bool) };
	const uint32_t *order = bundle_by_target(b, n);
	Reg delta = 0;
	for (uint32_t i = 0; i < n->links; i++) {
		Unit target = n->link[order[i]].target;
		if (i == 0 || target != n->link[order[i - 1]].target)
			delta = g_load(k.g, net_at(b, n, target));
		link_back(&k, order[i], delta);
	}
	for (Unit u = n->source; u < b->net->units; u++)
		if (k.there[u] && b->plan->level_of[u] > 0)
			g_store(k.g, back_at(b, n, u), k.error[u]);
	return gen_end(k.g);
}

/* ---- moves ---- */

/* One array after the other: sequential addresses use the banks in turn (section 6.2.1). */
Code *record_move(const Bp *b, unsigned what, uint32_t words)
{
	Gen *g = gen_record(b->cx, b->m, what & MOVE_BACK ? "flush changes" : what & MOVE_CHANGES ? "fetch both"
	                                                                                            : "fetch weights");
	for (uint32_t i = 0; what & MOVE_WEIGHTS && i < words; i++)
		g_fetch(g, at(BP_NEAR_WEIGHTS, i), at(BP_FAR_WEIGHTS, i));
	for (uint32_t i = 0; what & MOVE_CHANGES && i < words; i++)
		g_fetch(g, at(BP_NEAR_CHANGES, i), at(BP_FAR_CHANGES, i));
	for (uint32_t i = 0; what & MOVE_BACK && i < words; i++)
		g_flush(g, at(BP_FAR_CHANGES, i), at(BP_NEAR_CHANGES, i));
	return gen_end(g);
}

/* Inputs go to their units, targets and weight follow each other. */
Code *record_fetch_case(const Bp *b, uint32_t first, uint32_t count)
{
	Gen *g = gen_record(b->cx, b->m, "fetch case");
	uint32_t inputs = b->net->inputs;
	for (uint32_t i = first; i < first + count; i++)
		g_fetch(g, at(BP_CASE, i < inputs ? b->at.case_out + b->input[i] : b->at.case_target + i - inputs),
		        at(BP_FAR_WEIGHTS, i));
	return gen_end(g);
}

Code *record_clear(const Bp *b)
{
	Gen *g = gen_record(b->cx, b->m, "clear");
	g_store(g, at(0, b->at.total), g_const(g, 0));
	return gen_end(g);
}
