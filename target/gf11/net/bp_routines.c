/* SPDX-License-Identifier: MIT */
/* Routines of the bundles and of the moves between DRAM and SRAM (section 5).
 * In: a bundle with its neighbours. Out: recorded code whose addresses start from the bundle's own bases, so that
 * bundles of the same shape give the same code.
 *
 * Compiler 1989: one case per call, moves in routines of their own. Compiler best: all cases of a group in one call,
 * which also does the DRAM moves of the next call, under these bases:
 *
 *   NEXT_WEIGHTS, NEXT_CHANGES   caches of the bundle before or after
 *   FAR_WEIGHTS, FAR_CHANGES     where these come from; at the last bundle FAR_CHANGES are its own
 *   FAR_BACK                     where changes of the bundle before this call go back to; forward: what is cleared
 *   NEAR_DATA, FAR_DATA          inputs that the next bundle is the first to use
 *   FAR_TARGETS                  targets and weights of the cases
 *
 * Weights and changes of a network that stays in SRAM are not moved. Cases are processed some at a time: forward, a
 * weight is loaded once for all of them; backward, a weight change is loaded and stored once.
 *
 * Must hold: sums run in the same order for any number of cases, so both compilers give the same bits. Units that a
 * bundle reads and writes are different ones (targets are of one level, sources of lower ones), so no word is reached
 * through two relocation registers. */
#include <assert.h>

#include "gf11_net.h"

enum { PIPELINE = 64, NETS = 128, TILE = 24, MOST_TOGETHER = 12 };

static Addr at(uint16_t base, uint32_t off) { return (Addr){ base, off }; }

/* ---- units of a bundle ---- */

static bool needs_error(const Bp *b, Unit source) { return b->back[source]; }

static Addr out_at(const Bp *b, const BpBundle *n, Unit source, uint32_t i)
{
	if (source < n->source) /* the true unit */
		return at(BP_CASE, (b->at.case_out + source) * b->at.stride + i);
	return at(BP_OUT, (source - n->source) * b->at.stride + i);
}

static Addr net_at(const Bp *b, const BpBundle *n, Unit target, uint32_t i)
{
	return at(BP_NET, (b->net_word[target] - b->net_word[n->target]) * b->at.stride + i);
}

static Addr back_at(const Bp *b, const BpBundle *n, Unit source, uint32_t i)
{
	return at(BP_BACK, (b->net_word[source] - b->net_word[n->source]) * b->at.stride + i);
}

/* Cases that are taken together, of a group: parts of about the same size. */
static uint32_t together(uint32_t cases, uint32_t most)
{
	uint32_t parts = (uint32_t)ceil_div(cases, most ? most : 1);
	return (cases + parts - 1) / parts;
}

/* ---- moves beside other work: compiler best ---- */

typedef struct Move {
	bool flush;
	Addr mem, far;
} Move;
typedef struct Moves {
	Gen *g;
	Move *move;
	uint32_t moves, done;
} Moves;

static void move_add(Moves *v, bool flush, Addr mem, Addr far) { v->move[v->moves++] = (Move){ flush, mem, far }; }

static void move_block(Moves *v, bool flush, uint16_t near, uint16_t far, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		move_add(v, flush, at(near, i), at(far, i));
}

static void move_inputs(Moves *v, const Bp *b, const BpFresh *f)
{
	for (uint32_t k = 0; k < f->inputs; k++)
		for (uint32_t i = 0; i < b->at.group; i++)
			move_add(v, false, at(BP_NEAR_DATA, (b->input[f->input[k]] - b->input[f->input[0]]) * b->at.stride + i),
			         at(BP_FAR_DATA, (f->input[k] - f->input[0]) * b->at.data_step + i));
}

static void move_targets(Moves *v, const Bp *b)
{
	for (uint32_t k = 0; k <= b->at.outputs; k++)
		for (uint32_t i = 0; i < b->at.group; i++)
			move_add(v, false, at(BP_CASE, (b->at.case_target + k) * b->at.stride + i),
			         at(BP_FAR_TARGETS, k * b->at.data_step + i));
}

static Moves moves_new(const Bp *b, Gen *g)
{
	size_t most = 4 * (size_t)b->at.cache_words + ((size_t)b->net->inputs + b->at.outputs + 1) * b->at.group;
	return (Moves){ .g = g, .move = NEW(&b->cx->scratch, most, Move) };
}

/* Spreads moves evenly over the recording, within the window of the scheduler. */
static void moves_until(Moves *v, uint64_t step, uint64_t steps)
{
	for (; v->done < v->moves && v->done * steps <= v->moves * step; v->done++) {
		const Move *m = &v->move[v->done];
		if (m->flush)
			g_flush(v->g, m->far, m->mem);
		else
			g_fetch(v->g, m->mem, m->far);
	}
}

static void moves_rest(Moves *v) { moves_until(v, 1, 1); }

/* A call clears the changes of its bundle.  The last one fetches its own, so the one before clears these as well. */
static void move_zeros(Moves *v, const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	uint32_t words = bundle + 2 == b->bundles ? n->words + n[1].links : n->links;
	for (uint32_t i = 0; b->changes_start && i < words; i++)
		move_add(v, true, at(0, TABLE_CONSTANT + K_ZERO), at(BP_FAR_BACK, i));
}

/* What the next call needs; at the last bundle, what the way back needs. */
static Moves forward_moves(const Bp *b, Gen *g, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	Moves v = moves_new(b, g);
	if (bundle + 1 < b->bundles) {
		move_block(&v, false, BP_NEXT_WEIGHTS, BP_FAR_WEIGHTS, b->at.resident ? 0 : n[1].links);
		move_inputs(&v, b, &b->best->fresh[bundle + 1]);
		move_zeros(&v, b, bundle);
	} else {
		move_block(&v, false, BP_NEAR_CHANGES, BP_FAR_CHANGES, b->at.resident ? 0 : n->links);
		move_targets(&v, b);
	}
	return v;
}

static Moves backward_moves(const Bp *b, Gen *g, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	Moves v = moves_new(b, g);
	if (b->at.resident)
		return v;
	if (bundle + 1 < b->bundles)
		move_block(&v, true, BP_NEXT_CHANGES, BP_FAR_BACK, n[1].links);
	if (bundle > 0)
		move_block(&v, false, BP_NEXT_CHANGES, BP_FAR_CHANGES, n[-1].links);
	if (bundle > 0 && !n[-1].input)
		move_block(&v, false, BP_NEXT_WEIGHTS, BP_FAR_WEIGHTS, n[-1].links);
	return v;
}

/* A group of many cases has more inputs than one routine can fetch. */
Code *record_best_open(const Bp *b, uint32_t *first)
{
	Gen *g = gen_record(b->cx, b->m, "open");
	Moves v = moves_new(b, g);
	if (b->bundles == 1)
		move_zeros(&v, b, 0);
	if (b->bundles) {
		move_block(&v, false, BP_NEAR_WEIGHTS, BP_FAR_WEIGHTS, b->at.resident ? 0 : b->bundle[0].links);
		move_inputs(&v, b, &b->best->fresh[0]);
	} else {
		move_targets(&v, b);
	}
	uint32_t most = moves_a_call(b->m), all = v.moves;
	v.done = *first;
	v.moves = all - *first > most ? *first + most : all;
	moves_rest(&v);
	*first = v.moves < all ? v.moves : 0;
	return gen_end(g);
}

/* ---- forward ---- */

/* Net inputs of a target, while the bundle adds to them. */
typedef struct NetInputs {
	Reg *sum;
	bool there, opens;
	Tree *tree;
} NetInputs; /* [cases] */

/* By source: additions to one net input are as far apart as the bundle has targets. Takes as many cases together as
 * their net inputs, and what their trees hold, find registers for. */
Code *record_forward(const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	Gen *g = gen_record(b->cx, b->m, "forward");
	Ends to = bundle_ends(b, n, false);
	uint32_t cases = b->best ? b->at.group : 1, most = NETS / (to.units * (1 + n->levels)),
			 each = together(cases, most);
	NetInputs *nets = NEW(&b->cx->scratch, to.units, NetInputs);
	Reg out[NETS];
	for (uint32_t i = 0; i < to.units; i++)
		nets[i] = (NetInputs){ .sum = NEW(&b->cx->scratch, each, Reg), .tree = NEW(&b->cx->scratch, each, Tree) };
	Moves v = b->best ? forward_moves(b, g, bundle) : (Moves){ 0 };
	for (uint32_t first = 0, count; first < cases; first += count) {
		count = min_u32(cases - first, each);
		for (uint32_t i = 0; i < to.units; i++)
			nets[i].there = nets[i].opens = false;
		for (uint32_t i = 0; i < n->links; i++) {
			const BpLink *l = &n->link[i];
			NetInputs *net = &nets[to.number[l->target]];
			for (uint32_t k = 0; (i == 0 || l->source != l[-1].source) && k < count; k++)
				out[k] = g_load(g, out_at(b, n, l->source, first + k));
			Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i));
			net->opens |= n->opens[i];
			for (uint32_t k = 0; k < count; k++) {
				tree_add(g, &net->tree[k], g_fmul(g, weight, out[k]));
				if (!n->ends[i])
					continue;
				Reg sum = tree_end(g, &net->tree[k]);
				if (!net->there && !net->opens)
					net->sum[k] = g_load(g, net_at(b, n, l->target, first + k));
				net->sum[k] = net->there || !net->opens ? g_fadd(g, net->sum[k], sum) : sum;
			}
			net->there |= n->ends[i];
			moves_until(&v, (uint64_t)first * n->links + (uint64_t)i * count, (uint64_t)cases * n->links);
		}
		for (uint32_t i = 0; i < to.units; i++)
			for (uint32_t k = 0; k < count; k++)
				g_store(g, net_at(b, n, to.unit[i], first + k), nets[i].sum[k]);
	}
	moves_rest(&v);
	return gen_end(g);
}

/* ---- backward ---- */

/* A source while the bundle adds to its errors. */
typedef struct Source {
	Reg *out, *error;
	bool there;
	Tree *tree;
} Source; /* [cases] */

typedef struct Backward {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	uint32_t first, cases; /* at hand */
	const uint32_t *order; /* [links] by target, then by source */
	Ends from;
	Source *source; /* [from.units] */
} Backward;

static Backward backward_new(const Bp *b, const BpBundle *n)
{
	return (Backward){ .b = b,
		               .n = n,
		               .g = gen_record(b->cx, b->m, "backward"),
		               .cases = 1,
		               .order = bundle_by_target(b, n),
		               .from = bundle_ends(b, n, true) };
}

static void sources_new(Backward *k, uint32_t cases)
{
	Arena *scratch = &k->b->cx->scratch;
	k->source = NEW(scratch, k->from.units, Source);
	for (uint32_t i = 0; i < k->from.units; i++)
		k->source[i] = (Source){ NEW(scratch, cases, Reg), NEW(scratch, cases, Reg), false, NEW(scratch, cases, Tree) };
}

/* Loads its outputs and errors when the first of its links comes. */
static Source *source_open(Backward *k, Unit source)
{
	Source *s = &k->source[k->from.number[source]];
	for (uint32_t i = 0; !s->there && i < k->cases; i++) {
		s->out[i] = g_load(k->g, out_at(k->b, k->n, source, k->first + i));
		if (needs_error(k->b, source))
			s->error[i] = g_load(k->g, back_at(k->b, k->n, source, k->first + i));
	}
	s->there = true;
	return s;
}

/* Error of the source += weight * error of the target. */
static void error_add(Backward *k, Source *s, uint32_t l, uint32_t i, Reg weight, Reg delta)
{
	tree_add(k->g, &s->tree[i], g_fmul(k->g, weight, delta));
	if (k->n->ends_back[l])
		s->error[i] = g_fadd(k->g, s->error[i], tree_end(k->g, &s->tree[i]));
}

/* Is link order[j] the first one of its target, from order[begin] on? */
static bool target_begins(const Backward *k, uint32_t begin, uint32_t j)
{
	return j == begin || k->n->link[k->order[j]].target != k->n->link[k->order[j - 1]].target;
}

static void errors_store(Backward *k)
{
	for (uint32_t j = 0; j < k->from.units; j++)
		for (uint32_t i = 0; needs_error(k->b, k->from.unit[j]) && i < k->cases; i++)
			g_store(k->g, back_at(k->b, k->n, k->from.unit[j], k->first + i), k->source[j].error[i]);
}

/* Compiler 1989: link by link. Weight change += error of the target * output of the source. */
static Code *backward_1989(const Bp *b, const BpBundle *n)
{
	Backward k = backward_new(b, n);
	Gen *g = k.g;
	Reg delta = 0;
	sources_new(&k, 1);
	for (uint32_t j = 0; j < n->links; j++) {
		uint32_t l = k.order[j];
		if (target_begins(&k, 0, j))
			delta = g_load(g, net_at(b, n, n->link[l].target, 0));
		Source *s = source_open(&k, n->link[l].source);
		if (needs_error(b, n->link[l].source))
			error_add(&k, s, l, 0, g_load(g, at(BP_NEAR_WEIGHTS, l)), delta);
		Reg change = g_load(g, at(BP_NEAR_CHANGES, l));
		g_store(g, at(BP_NEAR_CHANGES, l), g_fadd(g, change, g_fmul(g, delta, s->out[0])));
	}
	errors_store(&k);
	return gen_end(g);
}

/* Cases whose outputs, errors and trees fit into registers beside a tile of changes and weights. */
static uint32_t backward_cases(const Bp *b, const BpBundle *n, const Ends *from)
{
	uint32_t needing = 0, room = (uint32_t)b->m->registers;
	assert(from->units > 0);
	for (uint32_t i = 0; i < from->units; i++)
		needing += needs_error(b, from->unit[i]);
	uint32_t tile = (TILE + from->units) * (needing ? 2 : 1) + PIPELINE;
	uint32_t most = room > tile ? (room - tile) / (from->units + needing * (1 + n->levels_back)) : 1;
	return together(b->at.group, min_u32(most, MOST_TOGETHER));
}

/* Compiler best: tiles of links of one or more whole targets, enough to fill the pipeline; changes and weights of a
 * tile stay in registers for all cases at hand. */
static Code *backward_best(const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	Backward k = backward_new(b, n);
	Gen *g = k.g;
	uint32_t cases = b->at.group, each = backward_cases(b, n, &k.from);
	Reg *change = NEW(&b->cx->scratch, n->links, Reg), *weight = NEW(&b->cx->scratch, n->links, Reg), delta = 0;
	sources_new(&k, each);
	Moves v = backward_moves(b, g, bundle);
	for (k.first = 0; k.first < cases; k.first += k.cases) {
		k.cases = min_u32(cases - k.first, each);
		for (uint32_t i = 0; i < k.from.units; i++)
			k.source[i].there = false;
		for (uint32_t begin = 0, end; begin < n->links; begin = end) {
			for (end = begin; end < n->links && (end - begin < TILE || !target_begins(&k, begin, end)); end++) {
				uint32_t l = k.order[end];
				source_open(&k, n->link[l].source);
				change[l] = g_load(g, at(BP_NEAR_CHANGES, l));
				if (needs_error(b, n->link[l].source))
					weight[l] = g_load(g, at(BP_NEAR_WEIGHTS, l));
			}
			for (uint32_t i = 0; i < k.cases; i++) {
				for (uint32_t j = begin; j < end; j++) {
					uint32_t l = k.order[j];
					Source *s = &k.source[k.from.number[n->link[l].source]];
					if (target_begins(&k, begin, j))
						delta = g_load(g, net_at(b, n, n->link[l].target, k.first + i));
					if (needs_error(b, n->link[l].source))
						error_add(&k, s, l, i, weight[l], delta);
					change[l] = g_fadd(g, change[l], g_fmul(g, delta, s->out[i]));
				}
				moves_until(&v, (uint64_t)k.first * n->links + (uint64_t)begin * k.cases, (uint64_t)cases * n->links);
			}
			for (uint32_t j = begin; j < end; j++)
				g_store(g, at(BP_NEAR_CHANGES, k.order[j]), change[k.order[j]]);
		}
		errors_store(&k);
	}
	moves_rest(&v);
	return gen_end(g);
}

Code *record_backward(const Bp *b, uint32_t bundle)
{
	return b->best ? backward_best(b, bundle) : backward_1989(b, &b->bundle[bundle]);
}

/* ---- moves in routines of their own ---- */

/* One array after the other: sequential addresses cycle through the banks (section 6.2.1). */
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
