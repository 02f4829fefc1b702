/* SPDX-License-Identifier: MIT */
/* Cuts the links of a network into bundles and its units into chunks, each small enough for one routine (section 4.2).
 * In: a Plan, the machine's registers, the size asked for.  Out: Bp's bundles and chunks in forward order, and the
 * place and the factor of every weight.
 *
 * Targets of a level are taken some dozens at a time, their sources so many that near a thousand links come together:
 * net inputs then stay in registers on the way forward, outputs and errors of the sources on the way back.  Cuts are
 * even, so that most bundles of a full layer look the same and share their routines. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gf11_net.h"

/* Of the sizes that are about 1000, as the report says, 720 (12 by 60) leaves room for 24 cases of NETtalk in SRAM:
 * Table 1 looks as if 512 processors had taken their 24 in one group. */
enum { BUNDLE_LINKS = 720, LONG_BUNDLE_LINKS = 1024, MOST_TARGETS = 64, CHUNK_UNITS = 256 };
enum { PIPELINE_REGISTERS = 64 }; /* hold what is on its way through the pipelines */

/* What a bundle may have at most; for best.c also lines of microcode with so many cases in a call. */
typedef struct Limits {
	uint32_t links, sources, targets, cases, lines;
} Limits;

/* Links of some targets, by source, that are to be cut. */
typedef struct Part {
	const BpLink *link;
	uint64_t count;
	Shape shape;
} Part;

/* As the user asks; else as many as are usual and as one routine can fetch with their changes. */
static uint32_t bundle_links(const Bp *b, uint32_t usual)
{
	return b->o.bundle ? b->o.bundle : min_u32(usual, moves_a_call(b->m) / 2);
}

static Limits limits_of(const Bp *b)
{
	uint32_t registers = (uint32_t)b->m->registers;
	uint32_t room = registers > 2 * PIPELINE_REGISTERS ? registers - PIPELINE_REGISTERS : registers / 2;
	Limits l = { .links = bundle_links(b, BUNDLE_LINKS), .sources = room / 2 };
	l.targets = min_u32(min_u32(room, MOST_TARGETS), l.links);
	return l;
}

/* ---- links of some targets ---- */

static int by_source(const void *a, const void *b)
{
	const BpLink *x = a, *y = b;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

static uint64_t links_of(const Net *net, const Unit *target, uint32_t targets, BpLink *link)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < targets; i++)
		for (uint64_t l = net->row[target[i]]; l < net->row[target[i] + 1]; l++)
			link[count++] = (BpLink){ net_source(net, target[i], l), target[i], l };
	qsort(link, count, sizeof *link, by_source);
	return count;
}

/* Where the links of the same source as link[i] end. */
static uint64_t source_end(const BpLink *link, uint64_t count, uint64_t i)
{
	uint64_t end = i + 1;
	while (end < count && link[end].source == link[i].source)
		end++;
	return end;
}

/* Where the tree of link i ends: nothing is cut before. */
static uint64_t tree_after(const Part *p, uint64_t i)
{
	uint64_t end = i + 1;
	while (end < p->count && p->shape.tree[end] == p->shape.tree[i])
		end++;
	return end;
}

/* End of part k of `parts` of about the same size, in whole trees. */
static uint64_t part_end(const Part *p, uint32_t parts, uint32_t k, uint64_t begin)
{
	uint64_t ideal = p->count * (k + 1) / parts, end = begin;
	while (end < p->count) {
		uint64_t next = tree_after(p, end);
		if (end > begin && next > ideal && next - ideal > ideal - (end < ideal ? end : ideal))
			break;
		end = next;
	}
	return end;
}

static uint32_t sources_in(const BpLink *link, uint64_t count)
{
	uint32_t sources = 0;
	for (uint64_t i = 0; i < count; i = source_end(link, count, i))
		sources++;
	return sources;
}

/* Does every part keep the limits?  One tree alone always does. */
static bool parts_fit(const Part *p, uint32_t parts, const Limits *l)
{
	uint64_t begin = 0;
	for (uint32_t k = 0; k < parts && begin < p->count; k++) {
		uint64_t end = k + 1 < parts ? part_end(p, parts, k, begin) : p->count;
		uint32_t sources = sources_in(p->link + begin, end - begin);
		if (end > tree_after(p, begin) && (sources > l->sources || end - begin > l->links))
			return false;
		begin = end;
	}
	return begin == p->count;
}

/* ---- bundles ---- */

static bool is_given(const Bp *b, Unit u) { return !b->back[u]; }

static const void *kept(const Bp *b, const void *from, uint32_t count, size_t size)
{
	return memcpy(arena_alloc(&b->cx->keep, count, size), from, count * size);
}

static void bundle_add(Bp *b, uint32_t level, const Part *p, uint64_t begin, uint64_t end, bool *opened)
{
	uint32_t count = (uint32_t)(end - begin);
	const BpLink *own = kept(b, p->link + begin, count, sizeof *own);
	bool *opens = NEW(&b->cx->keep, count, bool);
	BpBundle n = { .level = level,
		           .first = b->at.words,
		           .links = count,
		           .source = UINT32_MAX,
		           .target = UINT32_MAX,
		           .input = true,
		           .link = own,
		           .opens = opens,
		           .ends = kept(b, p->shape.ends + begin, count, sizeof(bool)),
		           .ends_back = kept(b, p->shape.ends_back + begin, count, sizeof(bool)),
		           .levels = p->shape.levels,
		           .levels_back = p->shape.levels_back };
	for (uint32_t i = 0; i < count; i++) {
		n.target = min_u32(n.target, own[i].target);
		n.input &= is_given(b, own[i].source);
		opens[i] = !opened[own[i].target];
		opened[own[i].target] = true;
		b->place[own[i].link] = n.first + i;
	}
	/* The true unit stands apart from most others; alone it would be the first unit of all bundles that have it. */
	n.source = own[0].source || own[count - 1].source == 0 ? own[0].source : own[source_end(own, count, 0)].source;
	n.source -= n.source == 1 && own[0].source == 0;
	n.words = (uint32_t)round_up(count, (uint64_t)b->m->dram_banks);
	b->at.words += n.words;
	b->bundle = arena_grow(&b->cx->keep, b->bundle, b->bundles, b->bundles + 1, sizeof n);
	b->bundle[b->bundles++] = n;
}

/* Cuts for a call with many cases: as many whole trees as keep the limits, so that all but the last are alike.  A
 * link takes an add and a multiply for each case, backward twice that if its source needs an error. */
static uint64_t full_end(const Bp *b, const Part *p, uint64_t begin, const Limits *l)
{
	uint64_t end = begin, lines = 0, sources = 0;
	while (end < p->count) {
		uint64_t next = tree_after(p, end);
		sources += sources_in(p->link + end, next - end);
		for (uint64_t i = end; i < next; i++)
			lines += l->cases * (is_given(b, p->link[i].source) ? 2u : 4u);
		if (end > begin && (lines > l->lines || next - begin > l->links || sources > l->sources))
			break;
		end = next;
	}
	return end;
}

/* Registers of a source on the way back: output, error, and what a tree of its error holds. */
static Limits limits_for(const Shape *s, const Limits *l)
{
	Limits own = *l;
	own.sources = 2 * l->sources / (2 + s->levels_back);
	return own;
}

static void targets_cut(Bp *b, uint32_t level, const Unit *target, uint32_t targets, const Limits *limits, bool *opened)
{
	const Net *net = b->net;
	uint64_t count = 0, begin = 0;
	for (uint32_t i = 0; i < targets; i++)
		count += net->row[target[i] + 1] - net->row[target[i]];
	BpLink *link = NEW(&b->cx->scratch, count, BpLink);
	count = links_of(net, target, targets, link);
	Part p = { link, count, shape_of(b, link, count) };
	const Limits own = limits_for(&p.shape, limits), *l = &own;
	for (uint64_t end; l->cases && begin < count; begin = end) {
		end = full_end(b, &p, begin, l);
		bundle_add(b, level, &p, begin, end, opened);
	}
	uint32_t parts = (uint32_t)((count + l->links - 1) / l->links);
	while (begin < count && !parts_fit(&p, parts, l))
		parts++;
	for (uint32_t k = 0; k < parts && begin < count; k++) {
		uint64_t end = k + 1 < parts ? part_end(&p, parts, k, begin) : count;
		bundle_add(b, level, &p, begin, end, opened);
		begin = end;
	}
}

/* Units of a level that have links, in order. */
static uint32_t level_targets(const Bp *b, uint32_t level, Unit *target)
{
	const Level *v = &b->plan->level[level];
	uint32_t count = 0;
	for (uint32_t i = 0; i < v->spans; i++) {
		Span s = b->plan->span[v->span + i];
		for (Unit u = s.first; u < s.first + s.count; u++)
			if (b->net->row[u + 1] > b->net->row[u])
				target[count++] = u;
	}
	return count;
}

/* ---- chunks ---- */

/* The error's slope cancels this unit's own; sigmoid2 differs by a factor. */
static bool is_direct(const Bp *b, int fn)
{
	int matched = error_fns[b->opt->error].matched;
	return fn == matched || (matched == FN_SIGMOID && fn == FN_SIGMOID2);
}

/* What each unit is for, as far as chunks need it. */
typedef struct Role {
	int32_t output;
	bool sends;
} Role;

static Role *roles_of(const Bp *b)
{
	Role *role = NEW(&b->cx->scratch, b->net->units, Role);
	for (Unit u = 0; u < b->net->units; u++)
		role[u].output = -1;
	for (uint32_t i = 0; i < b->net->outputs; i++)
		role[b->output[i]].output = (int32_t)i;
	for (Unit u = 0; u < b->net->units; u++)
		for (uint64_t l = b->net->row[u]; l < b->net->row[u + 1]; l++)
			role[net_source(b->net, u, l)].sends = true;
	for (uint32_t i = 0; i < b->net->copies; i++) { /* errors of the next tick come from contexts */
		const Group *from = &b->net->group[b->net->copy[i].from_group], *to = &b->net->group[b->net->copy[i].to_group];
		for (uint32_t j = 0; j < from->size; j++)
			role[from->first + j].sends |= b->back[to->first + j];
	}
	return role;
}

static void chunk_end(Bp *b, uint32_t level, BpUnit *unit, uint32_t *units)
{
	if (!*units)
		return;
	BpUnit *own = NEW(&b->cx->keep, *units, BpUnit);
	memcpy(own, unit, *units * sizeof *own);
	BpChunk k = { .level = level, .first = own[0].unit, .unit = own, .units = *units, .slope = b->slopes };
	for (uint32_t i = 0; i < k.units; i++)
		b->slopes += own[i].fn == FN_GAUSSIAN;
	for (uint32_t i = 0; i < k.units && own[0].fn == FN_SOFTMAX; i++)
		own[0].final &= own[i].final; /* one for all, see below */
	for (uint32_t i = 0; i < k.units && own[0].fn == FN_SOFTMAX; i++)
		own[i].final = own[0].final;
	b->chunk = arena_grow(&b->cx->keep, b->chunk, b->chunks, b->chunks + 1, sizeof k);
	b->chunk[b->chunks++] = k;
	*units = 0;
}

/* A softmax group is a chunk by itself: its units have no errors of their own. */
static void level_chunks(Bp *b, uint32_t level, const Role *role)
{
	const Level *v = &b->plan->level[level];
	BpUnit *unit = NEW(&b->cx->scratch, b->net->units, BpUnit);
	uint32_t units = 0;
	for (uint32_t i = 0; i < v->spans; i++) {
		Span s = b->plan->span[v->span + i];
		int fn = s.group->fn;
		if (fn == FN_SOFTMAX)
			chunk_end(b, level, unit, &units);
		for (Unit u = s.first; u < s.first + s.count; u++) {
			bool linked = b->net->row[u + 1] > b->net->row[u];
			bool direct = role[u].output >= 0 && is_direct(b, fn) && s.group->integrate != INTEGRATE_OUTPUT;
			unit[units++] = (BpUnit){ u, fn, role[u].output, linked, direct, direct && !role[u].sends };
			if (units == CHUNK_UNITS && fn != FN_SOFTMAX)
				chunk_end(b, level, unit, &units);
		}
		if (fn == FN_SOFTMAX)
			chunk_end(b, level, unit, &units);
	}
	chunk_end(b, level, unit, &units);
}

/* ---- sharing ---- */

/* Links of the same distances from their bundle's first units. Units before a bundle's first source are the true unit,
 * whose address is its own. */
bool bundles_alike(const Bp *b, const BpBundle *x, const BpBundle *y)
{
	const uint32_t *word = b->net_word;
	for (uint32_t i = 0; i < x->links && x->links == y->links; i++) {
		const BpLink *k = &x->link[i], *l = &y->link[i];
		bool biases = k->source < x->source || l->source < y->source;
		if (biases
		        ? k->source != l->source || k->source >= x->source || l->source >= y->source
		        : k->source - x->source != l->source - y->source || is_given(b, k->source) != is_given(b, l->source) ||
		              word[k->source] - word[x->source] != word[l->source] - word[y->source])
			return false;
		if (k->target - x->target != l->target - y->target ||
		    word[k->target] - word[x->target] != word[l->target] - word[y->target] || x->opens[i] != y->opens[i] ||
		    x->ends[i] != y->ends[i] || x->ends_back[i] != y->ends_back[i])
			return false;
	}
	return x->links == y->links;
}

/* ---- the whole ---- */

/* Of all weights, if those of some blocks are frozen or have a rate of their own. */
static const float *factors_of(const Bp *b)
{
	const Net *net = b->net;
	bool any = false;
	for (uint32_t i = 0; i < net->blocks; i++)
		any |= net->block[i].frozen || net->block[i].rate != 1;
	if (!any)
		return NULL;
	float *factor = NEW(&b->cx->keep, b->at.words, float);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			const Block *k = net_block(net, u, l);
			factor[b->place[l]] = k->frozen ? -1 : k->rate > 0 ? k->rate : 0;
		}
	return factor;
}

static uint32_t alike_end(const Net *net, const Unit *target, uint32_t targets, uint32_t begin)
{
	uint32_t end = begin + 1;
	while (end < targets && net_same_sources(net, target[begin], target[end]))
		end++;
	return end;
}

/* Targets that are cut together: those that have the same sources, so that equal blocks are cut in equal places and
 * share routines (section 9); or all up to the next that do, where these are few. */
static uint32_t region_end(const Net *net, const Unit *target, uint32_t targets, uint32_t begin)
{
	enum { LEAST_ALIKE = 16 };
	uint32_t end = alike_end(net, target, targets, begin);
	if (end - begin >= LEAST_ALIKE)
		return end;
	while (end < targets) {
		uint32_t next = alike_end(net, target, targets, end);
		if (next - end >= LEAST_ALIKE)
			break;
		end = next;
	}
	return end;
}

static void region_cut(Bp *b, uint32_t level, const Unit *target, uint32_t targets, const Limits *l, bool *opened)
{
	assert(l->targets > 0);
	uint32_t parts = (targets + l->targets - 1) / l->targets;
	for (uint32_t k = 0; k < parts; k++) {
		uint32_t begin = (uint32_t)((uint64_t)targets * k / parts);
		uint32_t end = (uint32_t)((uint64_t)targets * (k + 1) / parts);
		targets_cut(b, level, target + begin, end - begin, l, opened);
	}
}

static void bundles_cut(Bp *b, Limits l)
{
	const Net *net = b->net;
	bool *opened = NEW(&b->cx->scratch, net->units, bool);
	Unit *target = NEW(&b->cx->scratch, net->units, Unit);
	const Role *role = roles_of(b);
	b->place = NEW(&b->cx->keep, net->links, uint32_t);
	for (uint32_t level = 0; level < b->plan->levels; level++) {
		uint32_t targets = level_targets(b, level, target);
		for (uint32_t begin = 0, end; begin < targets; begin = end) {
			end = targets > l.targets ? region_end(net, target, targets, begin) : targets;
			region_cut(b, level, target + begin, end - begin, &l, opened);
		}
		level_chunks(b, level, role);
	}
	b->factor = factors_of(b);
}

void bundles_make(Bp *b) { bundles_cut(b, limits_of(b)); }

void bundles_make_for(Bp *b, uint32_t cases, uint32_t lines)
{
	Limits l = limits_of(b);
	l.links = bundle_links(b, LONG_BUNDLE_LINKS);
	l.sources /= 2; /* several cases are in registers at once */
	l.cases = cases;
	l.lines = lines;
	bundles_cut(b, l);
}

uint32_t *bundle_by_target(const Bp *b, const BpBundle *n)
{
	uint32_t *order = NEW(&b->cx->scratch, n->links, uint32_t);
	uint32_t *place = NEW(&b->cx->scratch, b->net->units + 1u, uint32_t);
	for (uint32_t i = 0; i < n->links; i++)
		place[n->link[i].target + 1]++;
	for (Unit u = n->target; u < b->net->units; u++)
		place[u + 1] += place[u];
	for (uint32_t i = 0; i < n->links; i++)
		order[place[n->link[i].target]++] = i;
	return order;
}

Ends bundle_ends(const Bp *b, const BpBundle *n, bool sources)
{
	Arena *scratch = &b->cx->scratch;
	Ends e = { .number = NEW(scratch, b->net->units, uint32_t) };
	uint32_t most = min_u32(n->links, b->net->units);
	for (uint32_t i = 0; i < n->links; i++)
		e.number[sources ? n->link[i].source : n->link[i].target] = 1;
	e.unit = NEW(scratch, most, Unit);
	for (Unit u = 0; u < b->net->units; u++)
		if (e.number[u]) {
			e.unit[e.units] = u;
			e.number[u] = e.units++;
		}
	return e;
}
