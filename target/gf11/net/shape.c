/* SPDX-License-Identifier: MIT */
/* The shape of sums over links: a chain, or short trees whose sums are chained (section 10.3).
 * In: the links of some targets of one level.  Out: where each tree ends, on the way forward and on the way back.
 *
 * A chain of additions takes a latency for each, whatever else there is to do; with few targets there is little
 * else. Then the products of some sources in a row are added up in a tree, and its sum to the net input: the chain
 * gets shorter by that factor. On the way back the same goes for errors of sources and targets in a row.
 *
 * What must hold: the shape is a function of the network and the machine, not of how links are cut into bundles, so
 * both compilers add in the same order. Cuts therefore come only between trees. */
#include <assert.h>
#include <string.h>

#include "gf11_net.h"

const char *const small_names[SMALLS] = { "auto", "straight", "tree" };

/* ---- a tree while it is recorded ---- */

static Reg join(Gen *g, const Tree *t, Reg a, Reg b) { return (t->join ? t->join : g_fadd)(g, a, b); }

/* Like a binary counter: two sums of as many products become one. */
void tree_add(Gen *g, Tree *t, Reg x)
{
	uint32_t level = 0;
	if (t->chain && t->count) {
		t->part[0] = join(g, t, t->part[0], x);
		return;
	}
	for (uint32_t count = t->count++; count & 1; count >>= 1)
		x = join(g, t, t->part[level++], x);
	t->part[level] = x;
}

Reg tree_end(Gen *g, Tree *t)
{
	uint32_t level = 0, count = t->count;
	for (; !(count & 1); count >>= 1)
		level++;
	Reg sum = t->part[level];
	for (count >>= 1, level++; count; count >>= 1, level++)
		if (count & 1)
			sum = join(g, t, t->part[level], sum);
	t->count = 0;
	return sum;
}

/* ---- chains against work ---- */

/* Links are looked at so many sources at a time: about what a bundle has. */
enum { WINDOW = 48, PIPELINE_REGISTERS = 64 };

/* Additions that wait for each other, cycles there are operations for, the longest single sum. */
typedef struct Load {
	uint64_t chain, work, longest;
} Load;

typedef struct Part {
	const Bp *b;
	const BpLink *link;
	uint64_t count;
	uint32_t *source; /* [count] number of its source among those of the part */
	uint32_t *target; /* [units] number of a target among them */
	uint32_t sources, targets;
} Part;

static void part_number(Part *p)
{
	Arena *scratch = &p->b->cx->scratch;
	uint32_t units = p->b->net->units;
	p->source = NEW(scratch, p->count, uint32_t);
	p->target = NEW(scratch, units, uint32_t);
	for (uint64_t i = 0; i < p->count; i++) {
		p->sources += i > 0 && p->link[i].source != p->link[i - 1].source;
		p->source[i] = p->sources;
		p->target[p->link[i].target] = 1;
	}
	p->sources += p->count > 0;
	for (Unit u = 0; u < units; u++)
		if (p->target[u])
			p->target[u] = p->targets++;
}

static bool needs_error(const Part *p, uint64_t i) { return p->b->back[p->link[i].source]; }

static Load load_plus(Load l, uint64_t longest, uint64_t work)
{
	return (Load){ l.chain + longest, l.work + work, max_u64(l.longest, longest) };
}

/* Of one window: forward an add and a multiply for each link, backward twice that if its source needs an error. */
static uint64_t window_measure(const Part *p, uint64_t begin, uint32_t *in, Load *forward, Load *back)
{
	uint64_t end = begin, into = 0, out = 0, of_source = 0, wanted = 0;
	uint32_t last = p->source[begin] / WINDOW;
	memset(in, 0, p->targets * sizeof *in);
	for (; end < p->count && p->source[end] / WINDOW == last; end++) {
		into = max_u64(into, ++in[p->target[p->link[end].target]]);
		of_source = end > begin && p->source[end] == p->source[end - 1] ? of_source + 1 : 1;
		out = needs_error(p, end) ? max_u64(out, of_source) : out;
		wanted += needs_error(p, end);
	}
	*forward = load_plus(*forward, into, 2 * (end - begin));
	*back = load_plus(*back, out, 2 * (end - begin) + 2 * wanted);
	return end;
}

/* ---- how large trees are ---- */

static uint32_t levels_of(uint32_t size)
{
	uint32_t levels = 0;
	while (1u << levels < size)
		levels++;
	return levels;
}

/* Cycles of the chain with trees of this size. */
static uint64_t path(const Part *p, const Load *l, uint32_t size)
{
	return (uint64_t)p->b->m->alu_latency * ((l->chain + size - 1) / size + levels_of(size));
}

/* Products in a tree: the fewest with which the chain is no longer than the work, or the best there are. `sums` of
 * them stand in registers side by side. */
static uint32_t tree_size(const Part *p, const Load *l, uint32_t sums)
{
	int small = p->b->o.small;
	uint32_t best = 1,
			 room = (uint32_t)max_u64((uint64_t)p->b->m->registers, 2 * PIPELINE_REGISTERS) - PIPELINE_REGISTERS;
	if (small == SMALL_STRAIGHT)
		return 1;
	for (uint32_t size = 2; size <= MOST_TREE && size < 2 * l->longest; size *= 2) {
		bool enough = path(p, l, best) <= l->work && (best > 1 || small == SMALL_AUTO);
		if (enough || (uint64_t)sums * (1 + levels_of(size)) > room)
			break;
		if (path(p, l, size) < path(p, l, best) || (best == 1 && small == SMALL_TREE))
			best = size;
	}
	return best;
}

/* Units in a row that hold about so many links of one sum. */
static uint32_t row_of(uint32_t size, uint64_t units, uint64_t chain)
{
	return (uint32_t)(size > 1 ? min_u64(ceil_div(size * units, chain), WINDOW) : 1);
}

/* Places before the first unit, so that if the trees of all units are not all full it is the first one: what comes
 * last should be as much as can be, for then there is nothing else to do while it is added up. */
static uint32_t places_before(uint32_t units, uint32_t row)
{
	assert(row > 0);
	return (row - units % row) % row;
}

/* ---- where they end ---- */

static void mark_ends(const Part *p, Shape *s, uint32_t targets_in_row)
{
	uint32_t before = places_before(p->targets, targets_in_row);
	uint32_t *next = NEW(&p->b->cx->scratch, p->targets, uint32_t); /* tree of the next link to each, + 1 */
	for (uint64_t i = p->count; i-- > 0;) {
		const BpLink *l = &p->link[i];
		uint32_t target = p->target[l->target];
		s->ends[i] = next[target] != s->tree[i] + 1;
		next[target] = s->tree[i] + 1;
		s->ends_back[i] = i + 1 == p->count || l[1].source != l->source ||
		                  (before + p->target[l[1].target]) / targets_in_row != (before + target) / targets_in_row;
	}
}

Shape shape_of(const Bp *b, const BpLink *link, uint64_t count)
{
	Arena *scratch = &b->cx->scratch;
	Part p = { .b = b, .link = link, .count = count };
	Shape s = { .tree = NEW(scratch, count, uint32_t),
		        .ends = NEW(scratch, count, bool),
		        .ends_back = NEW(scratch, count, bool) };
	Load forward = { 0 }, back = { 0 };
	part_number(&p);
	uint32_t *in = NEW(scratch, p.targets, uint32_t);
	for (uint64_t i = 0; i < count;)
		i = window_measure(&p, i, in, &forward, &back);
	uint32_t size = tree_size(&p, &forward, p.targets), size_back = tree_size(&p, &back, 0);
	uint32_t row = row_of(size, p.sources, forward.chain), row_back = row_of(size_back, p.targets, back.longest);
	for (uint64_t i = 0; i < count; i++)
		s.tree[i] = (places_before(p.sources, row) + p.source[i]) / row;
	mark_ends(&p, &s, row_back);
	s.levels = levels_of(row); /* of the fullest there can be */
	s.levels_back = levels_of(row_back);
	return s;
}
