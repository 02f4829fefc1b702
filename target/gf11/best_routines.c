/* SPDX-License-Identifier: MIT */
/* Routines of the bundles for all cases of a group in one call, with the DRAM moves of the call after them in between.
 * In: a bundle with its neighbours.  Out: recorded code, of bases as in bp_routines.c and besides
 *
 *   NEXT_WEIGHTS, NEXT_CHANGES   caches of the bundle before or after
 *   FAR_WEIGHTS, FAR_CHANGES     where these come from; at the last bundle FAR_CHANGES are its own
 *   FAR_BACK                     where changes of the bundle before this call go back to; forward: what is cleared
 *   NEAR_DATA, FAR_DATA          inputs that the next bundle is the first to use
 *   FAR_TARGETS                  targets and weights of the cases
 *
 * Weights and changes of a network that stays in SRAM are not moved here.
 *
 * Cases are taken some at a time: on the way forward a weight is loaded once for all of them, on the way back a weight
 * change is loaded and stored once.  What must hold: sums run in the same order as for one case at a time, so both
 * compilers give the same bits. */
#include <string.h>

#include "backprop.h"

enum { PIPELINE = 64, NETS = 128, TILE = 24, MOST_TOGETHER = 12 };

static Addr at(uint16_t base, uint32_t off)
{
	return (Addr){ base, off };
}

/* ---- moves ---- */

typedef struct Move { bool flush; Addr mem, far; } Move;
typedef struct Moves { Gen *g; Move *move; uint32_t moves, done; } Moves;

static void move_add(Moves *v, bool flush, Addr mem, Addr far)
{
	v->move[v->moves++] = (Move){ flush, mem, far };
}

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

/* Moves are spread evenly over the recording, so that the scheduler finds them where there is room. */
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

static void moves_rest(Moves *v)
{
	moves_until(v, 1, 1);
}

/* A call clears the changes of its bundle.  The last one fetches its own, so the one before clears these as well. */
static void move_zeros(Moves *v, const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	uint32_t words = bundle + 2 == b->bundles ? n->words + n[1].links : n->links;
	for (uint32_t i = 0; b->changes_start && i < words; i++)
		move_add(v, true, at(0, TABLE_CONSTANT + K_ZERO), at(BP_FAR_BACK, i));
}

Code *record_best_open(const Bp *b)
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
	moves_rest(&v);
	return gen_end(g);
}

/* ---- units of a bundle ---- */

/* Different targets or sources among the links. */
typedef struct Ends { uint32_t sources, targets, wanting; } Ends;  /* wanting: sources that want an error */

static bool wants(const Bp *b, Unit source)
{
	return b->plan->level_of[source] > 0;
}

static Ends ends_of(const Bp *b, const BpBundle *n)
{
	Ends e = { 0 };
	bool *seen = NEW(&b->cx->scratch, b->net->units, bool);
	for (uint32_t i = 0; i < n->links; i++) {
		const BpLink *l = &n->link[i];
		e.targets += !seen[l->target];
		seen[l->target] = true;
		if (i == 0 || l->source != l[-1].source) {
			e.sources++;
			e.wanting += wants(b, l->source);
		}
	}
	return e;
}

static Addr out_at(const Bp *b, const BpBundle *n, Unit source, uint32_t i)
{
	if (source < n->source)                              /* the true unit */
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
	uint32_t parts = most ? (cases + most - 1) / most : cases;
	return (cases + parts - 1) / parts;
}

/* ---- forward ---- */

typedef struct Forward {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	uint32_t first, cases;            /* taken together now */
	Reg *net;                         /* [units * cases] */
	bool *there;                      /* [units] */
	Reg out[NETS];
} Forward;

static void forward_link(Forward *f, uint32_t i)
{
	Gen *g = f->g;
	const BpLink *l = &f->n->link[i];
	if (i == 0 || l->source != l[-1].source)
		for (uint32_t k = 0; k < f->cases; k++)
			f->out[k] = g_load(g, out_at(f->b, f->n, l->source, f->first + k));
	Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i)), *net = f->net + (size_t)l->target * f->cases;
	for (uint32_t k = 0; k < f->cases; k++) {
		Reg product = g_fmul(g, weight, f->out[k]);
		if (!f->n->opens[i] && !f->there[l->target])
			net[k] = g_load(g, net_at(f->b, f->n, l->target, f->first + k));
		net[k] = f->n->opens[i] ? product : g_fadd(g, net[k], product);
	}
	f->there[l->target] = true;
}

static void forward_store(Forward *f)
{
	for (Unit u = f->n->target; u < f->b->net->units; u++)
		for (uint32_t k = 0; f->there[u] && k < f->cases; k++)
			g_store(f->g, net_at(f->b, f->n, u, f->first + k), f->net[(size_t)u * f->cases + k]);
}

Code *record_best_forward(const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	uint32_t cases = b->at.group, most = NETS / ends_of(b, n).targets, each = together(cases, most ? most : 1);
	Forward f = { .b = b, .n = n, .g = gen_record(b->cx, b->m, "forward"),
	              .net = NEW(&b->cx->scratch, (size_t)b->net->units * each, Reg),
	              .there = NEW(&b->cx->scratch, b->net->units, bool) };
	Moves v = moves_new(b, f.g);
	if (bundle + 1 < b->bundles) {
		move_block(&v, false, BP_NEXT_WEIGHTS, BP_FAR_WEIGHTS, b->at.resident ? 0 : n[1].links);
		move_inputs(&v, b, &b->best->fresh[bundle + 1]);
		move_zeros(&v, b, bundle);
	} else {
		move_block(&v, false, BP_NEAR_CHANGES, BP_FAR_CHANGES, b->at.resident ? 0 : n->links);
		move_targets(&v, b);
	}
	for (f.first = 0; f.first < cases; f.first += f.cases) {
		f.cases = cases - f.first < each ? cases - f.first : each;
		memset(f.there, 0, b->net->units * sizeof *f.there);
		for (uint32_t i = 0; i < n->links; i++) {
			forward_link(&f, i);
			moves_until(&v, (uint64_t)f.first * n->links + (uint64_t)i * f.cases, (uint64_t)cases * n->links);
		}
		forward_store(&f);
	}
	moves_rest(&v);
	return gen_end(f.g);
}

/* ---- backward ---- */

typedef struct Backward {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	uint32_t first, cases;
	const uint32_t *order;            /* [links] by target, then by source */
	Reg *out, *error;                 /* [units * cases] of the sources */
	bool *there;                      /* [units] */
	Reg *change, *weight;             /* [links] */
} Backward;

/* Links of one or more whole targets from order[begin] on, enough to fill the pipeline. */
static uint32_t tile_end(const Backward *k, uint32_t begin)
{
	uint32_t end = begin;
	while (end < k->n->links && (end - begin < TILE
	       || k->n->link[k->order[end]].target == k->n->link[k->order[end - 1]].target))
		end++;
	return end;
}

static void source_open(Backward *k, Unit source)
{
	if (k->there[source])
		return;
	k->there[source] = true;
	for (uint32_t i = 0; i < k->cases; i++) {
		size_t r = (size_t)source * k->cases + i;
		k->out[r] = g_load(k->g, out_at(k->b, k->n, source, k->first + i));
		if (wants(k->b, source))
			k->error[r] = g_load(k->g, back_at(k->b, k->n, source, k->first + i));
	}
}

static void tile_load(Backward *k, uint32_t begin, uint32_t end)
{
	for (uint32_t j = begin; j < end; j++) {
		uint32_t l = k->order[j];
		Unit source = k->n->link[l].source;
		source_open(k, source);
		k->change[l] = g_load(k->g, at(BP_NEAR_CHANGES, l));
		if (wants(k->b, source))
			k->weight[l] = g_load(k->g, at(BP_NEAR_WEIGHTS, l));
	}
}

static void tile_case(Backward *k, uint32_t begin, uint32_t end, uint32_t i)
{
	Gen *g = k->g;
	Reg delta = 0;
	for (uint32_t j = begin; j < end; j++) {
		uint32_t l = k->order[j];
		const BpLink *link = &k->n->link[l];
		size_t r = (size_t)link->source * k->cases + i;
		if (j == begin || link->target != k->n->link[k->order[j - 1]].target)
			delta = g_load(g, net_at(k->b, k->n, link->target, k->first + i));
		if (wants(k->b, link->source))
			k->error[r] = g_fadd(g, k->error[r], g_fmul(g, k->weight[l], delta));
		k->change[l] = g_fadd(g, k->change[l], g_fmul(g, delta, k->out[r]));
	}
}

static void errors_store(Backward *k)
{
	for (Unit u = k->n->source; u < k->b->net->units; u++)
		for (uint32_t i = 0; k->there[u] && wants(k->b, u) && i < k->cases; i++)
			g_store(k->g, back_at(k->b, k->n, u, k->first + i), k->error[(size_t)u * k->cases + i]);
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

/* Cases whose outputs and errors find room in registers, beside a tile of changes and weights. */
static uint32_t backward_cases(const Bp *b, const BpBundle *n)
{
	Ends e = ends_of(b, n);
	uint32_t tile = (TILE + e.sources) * (e.wanting ? 2 : 1) + PIPELINE, room = (uint32_t)b->m->registers;
	uint32_t most = room > tile ? (room - tile) / (e.sources + e.wanting) : 1;
	return together(b->at.group, most < 1 ? 1 : most > MOST_TOGETHER ? MOST_TOGETHER : most);
}

Code *record_best_backward(const Bp *b, uint32_t bundle)
{
	Arena *scratch = &b->cx->scratch;
	const BpBundle *n = &b->bundle[bundle];
	uint32_t cases = b->at.group, each = backward_cases(b, n);
	size_t words = (size_t)b->net->units * each;
	Backward k = { .b = b, .n = n, .g = gen_record(b->cx, b->m, "backward"), .order = bundle_by_target(b, n),
	               .out = NEW(scratch, words, Reg), .error = NEW(scratch, words, Reg),
	               .there = NEW(scratch, b->net->units, bool), .change = NEW(scratch, n->links, Reg),
	               .weight = NEW(scratch, n->links, Reg) };
	Moves v = backward_moves(b, k.g, bundle);
	for (k.first = 0; k.first < cases; k.first += k.cases) {
		k.cases = cases - k.first < each ? cases - k.first : each;
		memset(k.there, 0, b->net->units * sizeof *k.there);
		for (uint32_t begin = 0, end; begin < n->links; begin = end) {
			end = tile_end(&k, begin);
			tile_load(&k, begin, end);
			for (uint32_t i = 0; i < k.cases; i++) {
				tile_case(&k, begin, end, i);
				moves_until(&v, (uint64_t)k.first * n->links + (uint64_t)begin * k.cases,
				            (uint64_t)cases * n->links);
			}
			for (uint32_t j = begin; j < end; j++)
				g_store(k.g, at(BP_NEAR_CHANGES, k.order[j]), k.change[k.order[j]]);
		}
		errors_store(&k);
	}
	moves_rest(&v);
	return gen_end(k.g);
}
