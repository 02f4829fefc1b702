/* SPDX-License-Identifier: MIT */
/* The links of every tensor.  In: a Net, or the metadata `links` of a file.  Out: slots, each the links of one tensor
 * (or of one tensor with its two index tensors), with names as in PyTorch code.
 *
 *     connect a -> b              a_to_b            [b, a]         a full block is dense
 *     connect a[0:29] -> b        a[0:29]_to_b      [b, 30]
 *     connect true -> b           b_bias            [b]
 *     random, one-to-one, single  a_to_b.values, a_to_b.from, a_to_b.to   all such links of two groups, together
 *     links inside a group        likewise: full, but only to later units
 *
 * Every link is in exactly one slot; links of a slot are in canonical order, row by row for a dense one.
 * The same links can be written in other blocks (say, to freeze some): the file's metadata lists its slots. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "store.h"

/* A full block; but one link of larger groups is a single link, even from the true unit. */
static bool block_is_dense(const Net *net, const Block *b)
{
	bool whole = b->to_count == net->group[b->to_group].size &&
	             (b->from_group < 0 || b->from_count == net->group[b->from_group].size);
	return b->kind == LINK_FULL && b->links == (uint64_t)b->from_count * b->to_count && (b->links > 1 || whole);
}

static Unit first_source(const Net *net, const Slot *s)
{
	return s->from_group < 0 ? 0 : net->group[s->from_group].first + s->from_first;
}

uint64_t link_find(const Net *net, Unit unit, Unit source)
{
	uint64_t low = net->row[unit], high = net->row[unit + 1];
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (net_source(net, unit, middle) < source)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void slot_row(const Net *net, const Slot *s, uint32_t t, uint64_t *first, uint64_t *end)
{
	Unit unit = net->group[s->to_group].first + s->to_first + t, source = first_source(net, s);
	*first = link_find(net, unit, source);
	*end = link_find(net, unit, source + s->from_count);
}

bool slot_has(const Net *net, const Slot *s, uint32_t t, uint64_t link)
{
	return s->dense || !block_is_dense(net, net_block(net, net->group[s->to_group].first + s->to_first + t, link));
}

/* ---- from a network -------------------------------------------------------------------------------- */

static Slot dense_slot(const Net *net, const Block *b, Arena *arena)
{
	Buf name = { .arena = arena };
	if (b->from_group >= 0) {
		block_print_end(net, b, false, &name);
		buf_puts(&name, "_to_");
	}
	block_print_end(net, b, true, &name);
	if (b->from_group < 0)
		buf_puts(&name, "_bias");
	return (Slot){ .name = name.s,
		           .dense = true,
		           .from_group = b->from_group,
		           .to_group = b->to_group,
		           .from_first = b->from_first,
		           .from_count = b->from_count,
		           .to_first = b->to_first,
		           .to_count = b->to_count,
		           .links = b->links };
}

static Slot sparse_slot(const Net *net, const Block *b, Arena *arena)
{
	const Group *to = &net->group[b->to_group], *from = b->from_group < 0 ? NULL : &net->group[b->from_group];
	Buf name = { .arena = arena };
	if (from)
		buf_printf(&name, "%s_to_%s", from->name, to->name);
	else
		buf_printf(&name, "%s_bias", to->name);
	return (Slot){ .name = name.s,
		           .from_group = b->from_group,
		           .to_group = b->to_group,
		           .from_count = from ? from->size : 1,
		           .to_count = to->size };
}

static int by_groups(const void *a, const void *b)
{
	const Block *x = *(const Block *const *)a, *y = *(const Block *const *)b;
	if (x->to_group != y->to_group)
		return x->to_group < y->to_group ? -1 : 1;
	return (x->from_group > y->from_group) - (x->from_group < y->from_group);
}

/* The stem of a tensor's name, common to its slot.  A group may itself be called `b.values`. */
static size_t stem_length(const Slot *s)
{
	static const char *const endings[] = { ".values", ".from", ".to" };
	size_t len = strlen(s->name);
	for (size_t i = 0; s->dense && i < COUNT(endings); i++)
		if (len > strlen(endings[i]) && strcmp(s->name + len - strlen(endings[i]), endings[i]) == 0)
			return len - strlen(endings[i]);
	return len;
}

static int compare_stems(const Slot *x, const Slot *y)
{
	size_t m = stem_length(x), n = stem_length(y);
	int order = memcmp(x->name, y->name, m < n ? m : n);
	return order ? order : (m > n) - (m < n);
}

static int by_stem(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	int order = compare_stems(x, y);
	return order ? order : (x > y) - (x < y);
}

/* Groups `a`, `b_to_c` and `a_to_b`, `c` make the same name: number the later ones. */
static void names_part(Ctx *cx, Slot *slot, uint32_t count)
{
	Slot **order = NEW(&cx->scratch, count, Slot *);
	const char **name = NEW(&cx->scratch, count, const char *);
	for (uint32_t i = 0; i < count; i++)
		order[i] = &slot[i];
	qsort(order, count, sizeof *order, by_stem);
	for (uint32_t i = 1, same = 1; i < count; i++) {
		same = compare_stems(order[i - 1], order[i]) == 0 ? same + 1 : 1;
		if (same == 1)
			continue;
		Buf b = { .arena = &cx->scratch };
		buf_printf(&b, "%s#%u", order[i]->name, same);
		name[i] = b.s;
	}
	for (uint32_t i = 0; i < count; i++)
		if (name[i])
			order[i]->name = name[i];
}

Slot *slots_make(Ctx *cx, const Net *net, uint32_t *count)
{
	Slot *slot = NEW(&cx->scratch, net->blocks, Slot);
	const Block **sparse = NEW(&cx->scratch, net->blocks, const Block *);
	uint32_t slots = 0, left = 0;
	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		if (b->links == 0)
			continue;
		if (block_is_dense(net, b))
			slot[slots++] = dense_slot(net, b, &cx->scratch);
		else
			sparse[left++] = b;
	}
	qsort(sparse, left, sizeof *sparse, by_groups);
	for (uint32_t i = 0; i < left; i++) {
		if (i == 0 || by_groups(&sparse[i - 1], &sparse[i]) != 0)
			slot[slots++] = sparse_slot(net, sparse[i], &cx->scratch);
		slot[slots - 1].links += sparse[i]->links;
	}
	names_part(cx, slot, slots);
	*count = slots;
	return slot;
}

/* ---- metadata ---------------------------------------------------------------------------- */

static void end_text(Buf *b, const char *key, const char *group, uint32_t first, uint32_t count)
{
	buf_printf(b, ",\"%s\":", key);
	json_put(b, group);
	buf_printf(b, ",\"%s_first\":%u,\"%s_count\":%u", key, first, key, count);
}

const char *slots_text(Arena *arena, const Net *net, const Slot *slot, uint32_t count)
{
	Buf b = { .arena = arena };
	buf_puts(&b, "[");
	for (uint32_t i = 0; i < count; i++) {
		const Slot *s = &slot[i];
		buf_puts(&b, i ? ",{\"name\":" : "{\"name\":");
		json_put(&b, s->name);
		if (s->from_group >= 0)
			end_text(&b, "from", net->group[s->from_group].name, s->from_first, s->from_count);
		end_text(&b, "to", net->group[s->to_group].name, s->to_first, s->to_count);
		buf_printf(&b, ",\"dense\":%s}", s->dense ? "true" : "false");
	}
	buf_puts(&b, "]");
	return b.s;
}

/* One side of a slot: a group of the network and some of its units. */
static bool end_read(const Net *net, const json_t *v, const char *key, int32_t *group, uint32_t *first, uint32_t *count)
{
	char name[16];
	const char *said = json_string_value(json_object_get(v, key));
	*group = -1;
	for (uint32_t i = 0; said && i < net->groups; i++)
		if (strcmp(net->group[i].name, said) == 0)
			*group = (int32_t)i;
	if (*group < 0)
		return false;
	snprintf(name, sizeof name, "%s_first", key);
	json_int_t begin = json_integer_value(json_object_get(v, name)), size = net->group[*group].size;
	snprintf(name, sizeof name, "%s_count", key);
	json_int_t some = json_integer_value(json_object_get(v, name));
	if (begin < 0 || some < 1 || begin >= size || some > size - begin)
		return false;
	*first = (uint32_t)begin;
	*count = (uint32_t)some;
	return true;
}

static bool slot_read(const Net *net, const SafeFile *f, const json_t *v, Slot *s)
{
	s->name = json_string_value(json_object_get(v, "name"));
	s->dense = json_is_true(json_object_get(v, "dense"));
	s->from_group = -1;
	s->from_count = 1;
	if (!s->name || !end_read(net, v, "to", &s->to_group, &s->to_first, &s->to_count))
		return false;
	if (json_object_get(v, "from") && !end_read(net, v, "from", &s->from_group, &s->from_first, &s->from_count))
		return false;
	s->links = (uint64_t)s->from_count * s->to_count;
	if (!s->dense) {
		char name[512];
		snprintf(name, sizeof name, "%s.values", s->name);
		const Tensor *t = safe_find(f, name);
		s->links = t ? t->count : 0;
	}
	return true;
}

Slot *slots_read(Ctx *cx, const SafeFile *f, const Net *net, uint32_t *count)
{
	const json_t *tree = safe_json(cx, f, "links");
	Slot *slot = NEW(&cx->scratch, json_array_size(tree), Slot);
	*count = (uint32_t)json_array_size(tree);
	for (uint32_t i = 0; i < *count; i++)
		if (!slot_read(net, f, json_array_get(tree, i), &slot[i]))
			fail_at(cx, safe_loc(f, "links"), "load another copy of the file",
			        "entry %u of metadata links does not belong to this network", i);
	return slot;
}
