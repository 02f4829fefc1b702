/* SPDX-License-Identifier: MIT */
/* Links in canonical order.  In: blocks.  Out: row, and lists of sources and blocks, sorted by target unit and then by
 * source unit; every link at most once, or an error that names both blocks.
 *
 * A sweep over target units with the active blocks, those that lead to the current unit, in the order of their first
 * source: rows nearly always come out sorted by source, and only those with interleaved blocks are sorted.  For one
 * target the sources of any block are a range.  If all active blocks are full and the same as at the unit before, the
 * lists are shared. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

const char *const link_kinds[LINK_KINDS] = { "full", "one-to-one", "random", "single" };

bool block_is_later(const Block *b)
{
	bool pairwise = b->kind == LINK_FULL || b->kind == LINK_RANDOM;
	return pairwise && b->from_group == b->to_group && b->from_first < b->to_first + b->to_count &&
	       b->to_first < b->from_first + b->from_count;
}

uint64_t block_pairs(const Block *b)
{
	if (b->kind == LINK_ONE_TO_ONE || b->kind == LINK_SINGLE)
		return b->to_count;
	if (!block_is_later(b))
		return (uint64_t)b->from_count * b->to_count;
	/* Target t has the sources from_first .. min(t, from_end) - 1: first a staircase, then all of them. */
	uint64_t from_end = (uint64_t)b->from_first + b->from_count, to_end = (uint64_t)b->to_first + b->to_count;
	uint64_t first = b->to_first > b->from_first ? b->to_first - b->from_first : 0;
	uint64_t last = (to_end < from_end ? to_end : from_end) - b->from_first;
	uint64_t stairs = last * (last - 1) / 2 - (first ? first * (first - 1) / 2 : 0);
	return stairs + (to_end > from_end ? (to_end - from_end) * b->from_count : 0);
}

static Unit from_unit(const Net *net, const Block *b)
{
	return b->from_group < 0 ? 0 : net->group[b->from_group].first + b->from_first;
}

/* First target, counted inside the group, that has any source. */
static uint32_t first_target(const Block *b)
{
	bool skips = block_is_later(b) && b->to_first <= b->from_first;
	return skips ? b->from_first + 1 : b->to_first;
}

/* Sources of target t as [*first, *end) inside their group. */
static void source_range(const Block *b, uint32_t t, uint32_t *first, uint32_t *end)
{
	*first = b->from_first;
	*end = b->from_first + b->from_count;
	if (b->kind == LINK_ONE_TO_ONE) {
		*first += t - b->to_first;
		*end = *first + 1;
	} else if (block_is_later(b) && t < *end) {
		*end = t;
	}
}

static bool is_chosen(const Block *b, uint32_t s, uint32_t t)
{
	uint64_t pair = (uint64_t)(s - b->from_first) * b->to_count + (t - b->to_first);
	return b->kind != LINK_RANDOM || random_unit(b->seed, STREAM_DENSITY, pair) < b->density;
}

/* Adds the links of a block to the counts of its targets: count[u + 1] is that of unit u. */
static uint64_t block_count(const Net *net, const Block *b, uint64_t *count)
{
	uint64_t links = 0;
	Unit to = net->group[b->to_group].first;
	for (uint32_t t = first_target(b); t < b->to_first + b->to_count; t++) {
		uint32_t first, end;
		source_range(b, t, &first, &end);
		uint64_t n = end - first;
		if (b->kind == LINK_RANDOM) {
			n = 0;
			for (uint32_t s = first; s < end; s++)
				n += is_chosen(b, s, t);
		}
		count[to + t + 1] += n;
		links += n;
	}
	return links;
}

/* ---- the lists of one unit ---- */

typedef struct Linker {
	Ctx *cx;
	Net *net;
	const uint32_t *order; /* blocks by first target and, of one target, by first source: */
	uint32_t next;         /* from here on they begin at later units */
	uint32_t *active;      /* those that lead to the current unit, by first source */
	uint32_t actives;
	Unit *from; /* links of the current unit */
	uint32_t *block;
	uint64_t *packed;       /* buffer to sort them in, allocated on first use */
	uint64_t longest;       /* row */
	uint64_t froms, blocks; /* used length of net->from and net->block_of */
	bool *reported;         /* [net->blocks] that a duplicate was reported for */
} Linker;

static Unit first_unit(const Net *net, const Block *b) { return net->group[b->to_group].first + b->to_first; }

static uint64_t row_fill(Linker *k, Unit u)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < k->actives; i++) {
		const Block *b = &k->net->block[k->active[i]];
		Unit base = from_unit(k->net, b) - b->from_first;
		uint32_t t = u - k->net->group[b->to_group].first, first, end;
		if (t < first_target(b))
			continue;
		source_range(b, t, &first, &end);
		for (uint32_t s = first; s < end; s++) {
			if (is_chosen(b, s, t)) {
				k->from[n] = base + s;
				k->block[n++] = k->active[i];
			}
		}
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Source and block packed into one key: equal sources become neighbours, the earlier block first. */
static void row_sort(Linker *k, uint64_t n)
{
	if (!k->packed)
		k->packed = NEW(&k->cx->scratch, k->longest, uint64_t);
	for (uint64_t i = 0; i < n; i++)
		k->packed[i] = (uint64_t)k->from[i] << 32 | k->block[i];
	qsort(k->packed, n, sizeof *k->packed, compare);
	for (uint64_t i = 0; i < n; i++) {
		k->from[i] = (Unit)(k->packed[i] >> 32);
		k->block[i] = (uint32_t)k->packed[i];
	}
}

static bool row_is_sorted(const Linker *k, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++)
		if (k->from[i] <= k->from[i - 1])
			return false;
	return true;
}

static void report_duplicate(Linker *k, Unit to, uint64_t link)
{
	const Net *net = k->net;
	char from_name[96], to_name[96];
	net_unit_name(net, k->from[link], from_name, sizeof from_name);
	net_unit_name(net, to, to_name, sizeof to_name);
	error_at(k->cx, net->block[k->block[link]].at, "leave one of them out, or take slices that do not overlap",
	         "the link %s -> %s is made twice", from_name, to_name);
	note_at(k->cx, net->block[k->block[link - 1]].at, NULL, "it is first made here");
}

/* A row that is not strictly ascending: sorts it, reports the first duplicate of every block. */
static void row_repair(Linker *k, Unit u, uint64_t n)
{
	row_sort(k, n);
	for (uint64_t i = 1; i < n; i++) {
		if (k->from[i] != k->from[i - 1])
			continue;
		if (!k->reported)
			k->reported = NEW(&k->cx->scratch, k->net->blocks, bool);
		if (!k->reported[k->block[i]])
			report_duplicate(k, u, i);
		k->reported[k->block[i]] = true;
	}
}

/* ---- the sweep ---- */

/* Appends a list to `all`; if the last list, from `last` on, is a prefix of it, only the rest.  Returns its start. */
static uint64_t list_share(uint32_t *all, uint64_t *taken, uint64_t last, const uint32_t *list, uint64_t n)
{
	uint64_t same = min_u64(*taken - last, n);
	if (memcmp(all + last, list, same * sizeof *list) != 0) {
		last = *taken;
		same = 0;
	}
	memcpy(all + *taken, list + same, (n - same) * sizeof *list);
	*taken += n - same;
	return last;
}

/* Counting sort of block numbers by a unit, stable over the order `before`. */
static uint32_t *sorted(Ctx *cx, const Net *net, const uint32_t *before, Unit (*key)(const Net *, const Block *))
{
	uint32_t *order = NEW(&cx->scratch, net->blocks, uint32_t);
	uint32_t *place = NEW(&cx->scratch, net->units + 1, uint32_t);
	for (uint32_t i = 0; i < net->blocks; i++)
		place[key(net, &net->block[i]) + 1]++;
	for (uint32_t u = 0; u < net->units; u++)
		place[u + 1] += place[u];
	for (uint32_t i = 0; i < net->blocks; i++) {
		uint32_t b = before ? before[i] : i;
		order[place[key(net, &net->block[b])]++] = b;
	}
	arena_drop(&cx->scratch, place, net->units + 1, sizeof *place);
	return order;
}

/* Insertion by first source, then by number. */
static void active_add(Linker *k, uint32_t number)
{
	const Net *net = k->net;
	uint64_t key = (uint64_t)from_unit(net, &net->block[number]) << 32 | number;
	uint32_t i = k->actives++;
	for (; i; i--) {
		uint32_t other = k->active[i - 1];
		if (((uint64_t)from_unit(net, &net->block[other]) << 32 | other) < key)
			break;
		k->active[i] = other;
	}
	k->active[i] = number;
}

/* Removes blocks that end before the unit, adds those that begin there.  False: same blocks as before, all full. */
static bool active_move(Linker *k, Unit u)
{
	const Net *net = k->net;
	uint32_t kept = 0;
	bool other = false;
	for (uint32_t i = 0; i < k->actives; i++) {
		const Block *b = &net->block[k->active[i]];
		if (first_unit(net, b) + b->to_count > u)
			k->active[kept++] = k->active[i];
	}
	other = kept < k->actives;
	k->actives = kept;
	for (; k->next < net->blocks && first_unit(net, &net->block[k->order[k->next]]) == u; k->next++) {
		active_add(k, k->order[k->next]);
		other = true;
	}
	for (uint32_t i = 0; i < k->actives && !other; i++) {
		const Block *b = &net->block[k->active[i]];
		other = (b->kind != LINK_FULL && b->kind != LINK_SINGLE) || block_is_later(b);
	}
	return other;
}

/* The lists of all units.  Allocated for every link, then trimmed: pages never written cost nothing. */
static void sweep(Linker *k)
{
	Net *net = k->net;
	uint64_t last_from = 0, last_block = 0;
	net->from = arena_alloc_raw(&k->cx->keep, net->links, sizeof *net->from);
	net->block_of = arena_alloc_raw(&k->cx->keep, net->links, sizeof *net->block_of);
	for (Unit u = 0; u < net->units; u++) {
		uint64_t first = net->row[u], n = net->row[u + 1] - first;
		if (active_move(k, u) && n) {
			row_fill(k, u);
			if (!row_is_sorted(k, n))
				row_repair(k, u, n);
			last_from = list_share(net->from, &k->froms, last_from, k->from, n);
			last_block = list_share(net->block_of, &k->blocks, last_block, k->block, n);
		}
		net->from_at[u] = last_from - first;
		net->block_at[u] = last_block - first;
	}
	assert(k->froms <= net->links && k->blocks <= net->links);
	net->from = arena_trim(&k->cx->keep, net->from, net->links, k->froms, sizeof *net->from);
	net->block_of = arena_trim(&k->cx->keep, net->block_of, net->links, k->blocks, sizeof *net->block_of);
}

void net_link(Ctx *cx, Net *net)
{
	net->row = NEW(&cx->keep, (size_t)net->units + 1, uint64_t);
	net->from_at = NEW(&cx->keep, net->units, uint64_t);
	net->block_at = NEW(&cx->keep, net->units, uint64_t);
	for (uint32_t i = 0; i < net->blocks; i++) {
		Block *b = &net->block[i];
		b->links = block_count(net, b, net->row);
		if (b->links == 0)
			error_at(cx, b->at, "raise the density, or choose another seed", "this block has no links at density %g",
			         b->density);
	}
	Linker k = { .cx = cx, .net = net };
	for (Unit u = 0; u < net->units; u++) {
		k.longest = max_u64(k.longest, net->row[u + 1]);
		net->row[u + 1] += net->row[u];
	}
	net->links = net->row[net->units];
	k.from = NEW(&cx->scratch, k.longest, Unit);
	k.block = NEW(&cx->scratch, k.longest, uint32_t);
	k.active = NEW(&cx->scratch, net->blocks, uint32_t);
	k.order = sorted(cx, net, sorted(cx, net, NULL, from_unit), first_unit);
	sweep(&k);
}

/* ---- queries ---- */

uint64_t link_between(const Net *net, Unit from, Unit to)
{
	uint64_t low = net->row[to], high = net->row[to + 1];
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		if (net_source(net, to, mid) < from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < net->row[to + 1] && net_source(net, to, low) == from ? low : net->links;
}

Unit net_target(const Net *net, uint64_t link)
{
	Unit low = 0, high = net->units;
	while (high - low > 1) { /* row[low] <= link < row[high] */
		Unit middle = low + (high - low) / 2;
		if (net->row[middle] <= link)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool net_same_sources(const Net *net, Unit u, Unit v)
{
	uint64_t n = net->row[u + 1] - net->row[u];
	const Unit *a = net->from + (net->row[u] + net->from_at[u]), *b = net->from + (net->row[v] + net->from_at[v]);
	return net->row[v + 1] - net->row[v] == n && (a == b || memcmp(a, b, n * sizeof *a) == 0);
}
