/* SPDX-License-Identifier: MIT */
/* Links in canonical order.  In: blocks.  Out: row, from and block_of, sorted by target unit and then by source
 * unit; every link at most once, or an error that names both blocks.
 *
 * A counting sort by target.  Blocks are taken in the order of their first source, so rows nearly always come out
 * sorted by source; only those where blocks interleave are sorted again.  For one target unit the sources of any
 * block are a range. */
#include <stdlib.h>
#include <string.h>

#include "lib.h"

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

/* Puts them in, each at its target's cursor. */
static void block_fill(Net *net, uint32_t number, uint64_t *cursor)
{
	const Block *b = &net->block[number];
	Unit to = net->group[b->to_group].first, base = from_unit(net, b) - b->from_first;
	for (uint32_t t = first_target(b); t < b->to_first + b->to_count; t++) {
		uint32_t first, end;
		uint64_t at = cursor[to + t];
		source_range(b, t, &first, &end);
		for (uint32_t s = first; s < end; s++) {
			if (is_chosen(b, s, t)) {
				net->from[at] = base + s;
				net->block_of[at++] = number;
			}
		}
		cursor[to + t] = at;
	}
}

/* Block numbers in the order of their first source units. */
static uint32_t *blocks_by_source(Ctx *cx, const Net *net)
{
	uint32_t *order = NEW(&cx->scratch, net->blocks, uint32_t);
	uint32_t *place = NEW(&cx->scratch, net->units + 1, uint32_t);
	for (uint32_t i = 0; i < net->blocks; i++)
		place[from_unit(net, &net->block[i]) + 1]++;
	for (uint32_t u = 0; u < net->units; u++)
		place[u + 1] += place[u];
	for (uint32_t i = 0; i < net->blocks; i++)
		order[place[from_unit(net, &net->block[i])]++] = i;
	return order;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Source and block packed into one number: equal sources end up side by side, the earlier block first. */
static void row_sort(Net *net, uint64_t first, uint64_t end, uint64_t *packed)
{
	for (uint64_t i = first; i < end; i++)
		packed[i - first] = (uint64_t)net->from[i] << 32 | net->block_of[i];
	qsort(packed, end - first, sizeof *packed, compare);
	for (uint64_t i = first; i < end; i++) {
		net->from[i] = (Unit)(packed[i - first] >> 32);
		net->block_of[i] = (uint32_t)packed[i - first];
	}
}

static bool row_is_sorted(const Net *net, uint64_t first, uint64_t end)
{
	for (uint64_t i = first + 1; i < end; i++)
		if (net->from[i] <= net->from[i - 1])
			return false;
	return true;
}

static void report_duplicate(Ctx *cx, const Net *net, Unit to, uint64_t link)
{
	char from_name[96], to_name[96];
	net_unit_name(net, net->from[link], from_name, sizeof from_name);
	net_unit_name(net, to, to_name, sizeof to_name);
	error_at(cx, net->block[net->block_of[link]].at, "leave one of them out, or take slices that do not overlap",
	         "the link %s -> %s is made twice", from_name, to_name);
	note_at(cx, net->block[net->block_of[link - 1]].at, NULL, "it is first made here");
}

/* Rows that are not strictly ascending: sorts them, reports the first duplicate of every block. */
static void rows_mend(Ctx *cx, Net *net)
{
	uint64_t longest = 0;
	bool *reported = NULL;
	for (Unit u = 0; u < net->units; u++)
		if (net->row[u + 1] - net->row[u] > longest)
			longest = net->row[u + 1] - net->row[u];
	uint64_t *packed = NULL;
	for (Unit u = 0; u < net->units; u++) {
		uint64_t first = net->row[u], end = net->row[u + 1];
		if (row_is_sorted(net, first, end))
			continue;
		if (!packed)
			packed = NEW(&cx->scratch, longest, uint64_t);
		row_sort(net, first, end, packed);
		for (uint64_t i = first + 1; i < end; i++) {
			if (net->from[i] != net->from[i - 1])
				continue;
			if (!reported)
				reported = NEW(&cx->scratch, net->blocks, bool);
			if (!reported[net->block_of[i]])
				report_duplicate(cx, net, u, i);
			reported[net->block_of[i]] = true;
		}
	}
}

void net_link(Ctx *cx, Net *net)
{
	net->row = NEW(&cx->keep, (size_t)net->units + 1, uint64_t);
	for (uint32_t i = 0; i < net->blocks; i++) {
		Block *b = &net->block[i];
		b->links = block_count(net, b, net->row);
		if (b->links == 0)
			error_at(cx, b->at, "raise the density, or choose another seed",
			         "this block has no links at density %g", b->density);
	}
	for (Unit u = 0; u < net->units; u++)
		net->row[u + 1] += net->row[u];
	net->links = net->row[net->units];
	net->from = NEW(&cx->keep, net->links, Unit);
	net->block_of = NEW(&cx->keep, net->links, uint32_t);
	uint64_t *cursor = NEW(&cx->scratch, net->units, uint64_t);
	memcpy(cursor, net->row, net->units * sizeof *cursor);
	const uint32_t *order = blocks_by_source(cx, net);
	for (uint32_t i = 0; i < net->blocks; i++)
		block_fill(net, order[i], cursor);
	rows_mend(cx, net);
}
