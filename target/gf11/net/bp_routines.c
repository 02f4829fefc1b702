/* SPDX-License-Identifier: MIT */
/* Routines of the bundles and of the moves between DRAM and SRAM, for one case (section 5).
 * In: a bundle.  Out: recorded code whose addresses start from the bundle's own bases, so that bundles of the same
 * shape give the same code.
 *
 * What must hold: units that a bundle reads and writes are different ones (targets are of one level, sources of lower
 * ones), so no word is reached through two relocation registers. */
#include <stdlib.h>
#include <string.h>

#include "gf11_net.h"

static Addr at(uint16_t base, uint32_t off) { return (Addr){ base, off }; }

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

/* A net input while a bundle adds to it: what is there already, and the tree that comes next. */
typedef struct NetInput {
	Reg sum;
	bool there, opens;
	Tree tree;
} NetInput;

static void net_add(const Bp *b, const BpBundle *n, Gen *g, NetInput *net, uint32_t i, Reg product)
{
	net->opens |= n->opens[i];
	tree_add(g, &net->tree, product);
	if (!n->ends[i])
		return;
	Reg sum = tree_end(g, &net->tree);
	if (!net->there && !net->opens)
		net->sum = g_load(g, net_at(b, n, n->link[i].target));
	net->sum = net->there || !net->opens ? g_fadd(g, net->sum, sum) : sum;
	net->there = true;
}

/* By source: additions to one net input are as far apart as the bundle has targets. */
Code *record_forward(const Bp *b, const BpBundle *n)
{
	Gen *g = gen_record(b->cx, b->m, "forward");
	Ends to = bundle_ends(b, n, false);
	NetInput *net = NEW(&b->cx->scratch, to.units, NetInput);
	Reg out = 0;
	for (uint32_t i = 0; i < n->links; i++) {
		const BpLink *l = &n->link[i];
		if (i == 0 || l->source != l[-1].source)
			out = g_load(g, source_out(b, n, l->source));
		Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i)), product = g_fmul(g, weight, out);
		net_add(b, n, g, &net[to.number[l->target]], i, product);
	}
	for (uint32_t i = 0; i < to.units; i++)
		g_store(g, net_at(b, n, to.unit[i]), net[i].sum);
	return gen_end(g);
}

/* ---- backward ---- */

typedef struct Source {
	Reg out, error;
	bool there;
	Tree tree;
} Source;

typedef struct Back {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	Ends from;
	Source *source; /* [from.units] */
} Back;

static bool wants(const Bp *b, Unit source) { return b->plan->level_of[source] > 0; }

static Source *source_open(Back *k, Unit unit)
{
	Source *s = &k->source[k->from.number[unit]];
	if (s->there)
		return s;
	s->there = true;
	s->out = g_load(k->g, source_out(k->b, k->n, unit));
	if (wants(k->b, unit))
		s->error = g_load(k->g, back_at(k->b, k->n, unit));
	return s;
}

/* Error of the source += weight * error of the target; weight change += error of the target * output of the source. */
static void link_back(Back *k, uint32_t i, Reg delta)
{
	Gen *g = k->g;
	Unit unit = k->n->link[i].source;
	Source *s = source_open(k, unit);
	if (wants(k->b, unit)) {
		Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i));
		tree_add(g, &s->tree, g_fmul(g, weight, delta));
		if (k->n->ends_back[i])
			s->error = g_fadd(g, s->error, tree_end(g, &s->tree));
	}
	Reg change = g_load(g, at(BP_NEAR_CHANGES, i));
	g_store(g, at(BP_NEAR_CHANGES, i), g_fadd(g, change, g_fmul(g, delta, s->out)));
}

Code *record_backward(const Bp *b, const BpBundle *n)
{
	Back k = { b, n, gen_record(b->cx, b->m, "backward"), bundle_ends(b, n, true), NULL };
	k.source = NEW(&b->cx->scratch, k.from.units, Source);
	const uint32_t *order = bundle_by_target(b, n);
	Reg delta = 0;
	for (uint32_t i = 0; i < n->links; i++) {
		Unit target = n->link[order[i]].target;
		if (i == 0 || target != n->link[order[i - 1]].target)
			delta = g_load(k.g, net_at(b, n, target));
		link_back(&k, order[i], delta);
	}
	for (uint32_t i = 0; i < k.from.units; i++)
		if (wants(b, k.from.unit[i]))
			g_store(k.g, back_at(b, n, k.from.unit[i]), k.source[i].error);
	return gen_end(k.g);
}

/* ---- moves ---- */

/* One array after the other: sequential addresses use the banks in turn (section 6.2.1). */
Code *record_move(const Bp *b, unsigned what, uint32_t words)
{
	Gen *g = gen_record(b->cx, b->m,
	                    what & MOVE_BACK      ? "flush changes"
	                    : what & MOVE_CHANGES ? "fetch both"
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
