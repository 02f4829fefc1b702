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
#include "gf11_net.h"

enum { PIPELINE = 64, NETS = 128, TILE = 24, MOST_TOGETHER = 12 };

static Addr at(uint16_t base, uint32_t off) { return (Addr){ base, off }; }

/* ---- moves ---- */

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

static void moves_rest(Moves *v) { moves_until(v, 1, 1); }

/* A call clears the changes of its bundle.  The last one fetches its own, so the one before clears these as well. */
static void move_zeros(Moves *v, const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	uint32_t words = bundle + 2 == b->bundles ? n->words + n[1].links : n->links;
	for (uint32_t i = 0; b->changes_start && i < words; i++)
		move_add(v, true, at(0, TABLE_CONSTANT + K_ZERO), at(BP_FAR_BACK, i));
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

/* ---- units of a bundle ---- */

static bool wants(const Bp *b, Unit source) { return b->plan->level_of[source] > 0; }

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
	uint32_t parts = most ? (cases + most - 1) / most : cases;
	return (cases + parts - 1) / parts;
}

/* ---- forward ---- */

/* Net inputs of a target, while the bundle adds to them. */
typedef struct NetInputs {
	Reg *sum;
	bool there, opens;
	Tree *tree;
} NetInputs; /* [cases] */

typedef struct Forward {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	uint32_t first, cases; /* taken together now */
	Ends to;
	NetInputs *net; /* [to.units] */
	Reg out[NETS];
} Forward;

static void forward_start(Forward *f)
{
	for (uint32_t i = 0; i < f->to.units; i++)
		f->net[i].there = f->net[i].opens = false;
}

static void forward_link(Forward *f, uint32_t i)
{
	Gen *g = f->g;
	const BpLink *l = &f->n->link[i];
	NetInputs *net = &f->net[f->to.number[l->target]];
	if (i == 0 || l->source != l[-1].source)
		for (uint32_t k = 0; k < f->cases; k++)
			f->out[k] = g_load(g, out_at(f->b, f->n, l->source, f->first + k));
	Reg weight = g_load(g, at(BP_NEAR_WEIGHTS, i));
	net->opens |= f->n->opens[i];
	for (uint32_t k = 0; k < f->cases; k++) {
		tree_add(g, &net->tree[k], g_fmul(g, weight, f->out[k]));
		if (!f->n->ends[i])
			continue;
		Reg sum = tree_end(g, &net->tree[k]);
		if (!net->there && !net->opens)
			net->sum[k] = g_load(g, net_at(f->b, f->n, l->target, f->first + k));
		net->sum[k] = net->there || !net->opens ? g_fadd(g, net->sum[k], sum) : sum;
	}
	net->there |= f->n->ends[i];
}

static void forward_store(Forward *f)
{
	for (uint32_t i = 0; i < f->to.units; i++)
		for (uint32_t k = 0; k < f->cases; k++)
			g_store(f->g, net_at(f->b, f->n, f->to.unit[i], f->first + k), f->net[i].sum[k]);
}

/* Cases whose net inputs find room in registers, with what their trees hold. */
static uint32_t forward_cases(const Bp *b, const BpBundle *n, uint32_t targets)
{
	uint32_t most = NETS / (targets * (1 + n->levels));
	return together(b->at.group, most ? most : 1);
}

Code *record_best_forward(const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	Forward f = { .b = b, .n = n, .g = gen_record(b->cx, b->m, "forward"), .to = bundle_ends(b, n, false) };
	uint32_t cases = b->at.group, each = forward_cases(b, n, f.to.units);
	f.net = NEW(&b->cx->scratch, f.to.units, NetInputs);
	for (uint32_t i = 0; i < f.to.units; i++) {
		f.net[i].sum = NEW(&b->cx->scratch, each, Reg);
		f.net[i].tree = NEW(&b->cx->scratch, each, Tree);
	}
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
		forward_start(&f);
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

typedef struct Source {
	Reg *out, *error;
	bool there;
	Tree *tree;
} Source; /* [cases] */

typedef struct Backward {
	const Bp *b;
	const BpBundle *n;
	Gen *g;
	uint32_t first, cases;
	const uint32_t *order; /* [links] by target, then by source */
	Ends from;
	Source *source;       /* [from.units] */
	Reg *change, *weight; /* [links] */
} Backward;

/* Links of one or more whole targets from order[begin] on, enough to fill the pipeline. */
static uint32_t tile_end(const Backward *k, uint32_t begin)
{
	uint32_t end = begin;
	while (end < k->n->links &&
	       (end - begin < TILE || k->n->link[k->order[end]].target == k->n->link[k->order[end - 1]].target))
		end++;
	return end;
}

static Source *source_of(Backward *k, Unit source) { return &k->source[k->from.number[source]]; }

static void source_open(Backward *k, Unit source)
{
	Source *s = source_of(k, source);
	if (s->there)
		return;
	s->there = true;
	for (uint32_t i = 0; i < k->cases; i++) {
		s->out[i] = g_load(k->g, out_at(k->b, k->n, source, k->first + i));
		if (wants(k->b, source))
			s->error[i] = g_load(k->g, back_at(k->b, k->n, source, k->first + i));
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

static void link_case(Backward *k, uint32_t l, uint32_t i, Reg delta)
{
	Gen *g = k->g;
	Unit unit = k->n->link[l].source;
	Source *s = source_of(k, unit);
	if (wants(k->b, unit)) {
		tree_add(g, &s->tree[i], g_fmul(g, k->weight[l], delta));
		if (k->n->ends_back[l])
			s->error[i] = g_fadd(g, s->error[i], tree_end(g, &s->tree[i]));
	}
	k->change[l] = g_fadd(g, k->change[l], g_fmul(g, delta, s->out[i]));
}

static void tile_case(Backward *k, uint32_t begin, uint32_t end, uint32_t i)
{
	Reg delta = 0;
	for (uint32_t j = begin; j < end; j++) {
		Unit target = k->n->link[k->order[j]].target;
		if (j == begin || target != k->n->link[k->order[j - 1]].target)
			delta = g_load(k->g, net_at(k->b, k->n, target, k->first + i));
		link_case(k, k->order[j], i, delta);
	}
}

static void errors_store(Backward *k)
{
	for (uint32_t j = 0; j < k->from.units; j++)
		for (uint32_t i = 0; wants(k->b, k->from.unit[j]) && i < k->cases; i++)
			g_store(k->g, back_at(k->b, k->n, k->from.unit[j], k->first + i), k->source[j].error[i]);
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

/* Cases whose outputs, errors and trees find room in registers, beside a tile of changes and weights. */
static uint32_t backward_cases(const Bp *b, const BpBundle *n, const Ends *from)
{
	uint32_t wanting = 0, room = (uint32_t)b->m->registers;
	for (uint32_t i = 0; i < from->units; i++)
		wanting += wants(b, from->unit[i]);
	uint32_t tile = (TILE + from->units) * (wanting ? 2 : 1) + PIPELINE;
	uint32_t most = room > tile ? (room - tile) / (from->units + wanting * (1 + n->levels_back)) : 1;
	return together(b->at.group, most < 1 ? 1 : most > MOST_TOGETHER ? MOST_TOGETHER : most);
}

static Backward backward_new(const Bp *b, const BpBundle *n, uint32_t *each)
{
	Arena *scratch = &b->cx->scratch;
	Backward k = { .b = b,
		           .n = n,
		           .g = gen_record(b->cx, b->m, "backward"),
		           .order = bundle_by_target(b, n),
		           .from = bundle_ends(b, n, true),
		           .change = NEW(scratch, n->links, Reg),
		           .weight = NEW(scratch, n->links, Reg) };
	*each = backward_cases(b, n, &k.from);
	k.source = NEW(scratch, k.from.units, Source);
	for (uint32_t i = 0; i < k.from.units; i++)
		k.source[i] = (Source){ NEW(scratch, *each, Reg), NEW(scratch, *each, Reg), false, NEW(scratch, *each, Tree) };
	return k;
}

Code *record_best_backward(const Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	uint32_t cases = b->at.group, each;
	Backward k = backward_new(b, n, &each);
	Moves v = backward_moves(b, k.g, bundle);
	for (k.first = 0; k.first < cases; k.first += k.cases) {
		k.cases = cases - k.first < each ? cases - k.first : each;
		for (uint32_t i = 0; i < k.from.units; i++)
			k.source[i].there = false;
		for (uint32_t begin = 0, end; begin < n->links; begin = end) {
			end = tile_end(&k, begin);
			tile_load(&k, begin, end);
			for (uint32_t i = 0; i < k.cases; i++) {
				tile_case(&k, begin, end, i);
				moves_until(&v, (uint64_t)k.first * n->links + (uint64_t)begin * k.cases, (uint64_t)cases * n->links);
			}
			for (uint32_t j = begin; j < end; j++)
				g_store(k.g, at(BP_NEAR_CHANGES, k.order[j]), k.change[k.order[j]]);
		}
		errors_store(&k);
	}
	moves_rest(&v);
	return gen_end(k.g);
}
