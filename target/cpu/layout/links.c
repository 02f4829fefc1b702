/* SPDX-License-Identifier: MIT */
/* Lists of links, for those that are too scattered to make a matrix. In: a layout whose parts and columns are
 * known, and a part. Out: its links in canonical order, the vectors of columns that they read, and the same
 * for each part that errors go back to. Must hold: links of a source are in the order of targets; the work is in
 * proportion to the links. */
#include <stdlib.h>

#include "cpu_layout.h"

typedef struct Lister {
	Ctx *cx;
	const Layout *l;
	const uint32_t *part_of; /* [units] */
	uint32_t *number;        /* [cols / LANES] of strips while they are looked for; else 0 */
	const Part *t;
	uint64_t first, links; /* of the net, that lead to the part */
} Lister;

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Columns that links read become slots of strips. Kernels read full vectors: the last one is padded with its last
 * slot. */
static void find_strips(const Lister *m, LinkSums *s, const uint32_t *col, uint64_t n)
{
	Arena *keep = &m->cx->fixed;
	uint64_t room = (n + LANES - 1) / LANES * LANES;
	uint32_t *found = NEW(&m->cx->scratch, n, uint32_t);

	for (uint64_t k = 0; k < n; k++)
		if (!m->number[col[k] / LANES]) {
			m->number[col[k] / LANES] = 1;
			found[s->strips++] = col[k] / LANES;
		}
	qsort(found, s->strips, sizeof *found, ascending);
	s->strip = NEW(keep, s->strips, uint32_t);
	for (uint32_t i = 0; i < s->strips; i++) {
		m->number[found[i]] = i;
		s->strip[i] = found[i] * LANES;
	}
	s->slot = NEW(keep, room, uint32_t);
	for (uint64_t k = 0; k < room; k++) {
		uint32_t c = col[k < n ? k : n - 1];
		s->slot[k] = m->number[c / LANES] * LANES + c % LANES;
	}
	for (uint32_t i = 0; i < s->strips; i++)
		m->number[found[i]] = 0;
}

static void forward_sums(const Lister *m, LinkSums *s)
{
	const Net *net = m->l->net;
	Arena *keep = &m->cx->fixed;
	uint32_t *col = NEW(&m->cx->scratch, m->links, uint32_t);

	s->units = m->t->count;
	s->unit = NEW(keep, s->units, uint32_t);
	s->first = NEW(keep, (size_t)s->units + 1, uint64_t);
	for (uint32_t i = 0; i < s->units; i++) {
		Unit u = m->t->first + i;
		s->unit[i] = m->t->col + i;
		s->first[i + 1] = net->row[u + 1] - m->first;
		for (uint64_t k = net->row[u]; k < net->row[u + 1]; k++)
			col[k - m->first] = m->l->col_of[net_source(net, u, k)];
	}
	find_strips(m, s, col, m->links);
}

/* Numbers of the links by source and, for one source, by target: slots are counted. */
static uint32_t *order_by_source(const Lister *m, const LinkSums *s)
{
	uint64_t slots = (uint64_t)s->strips * LANES, *at = NEW(&m->cx->scratch, slots + 1, uint64_t);
	uint32_t *order = NEW(&m->cx->fixed, m->links, uint32_t);

	for (uint64_t k = 0; k < m->links; k++)
		at[s->slot[k] + 1]++;
	for (uint64_t i = 0; i < slots; i++)
		at[i + 1] += at[i];
	for (uint64_t k = 0; k < m->links; k++)
		order[at[s->slot[k]]++] = (uint32_t)k;
	return order;
}

/* Links order[0] .. order[n - 1] lead out of one part. */
static void backward_sums(const Lister *m, const LinkList *list, uint32_t *order, uint64_t n, LinkSums *s)
{
	Arena *keep = &m->cx->fixed;
	uint32_t *col = NEW(&m->cx->scratch, n, uint32_t);

	for (uint64_t k = 0; k < n; k++)
		s->units += k == 0 || list->forward.slot[order[k]] != list->forward.slot[order[k - 1]];
	s->unit = NEW(keep, s->units, uint32_t);
	s->first = NEW(keep, (size_t)s->units + 1, uint64_t);
	s->order = order;
	for (uint64_t k = 0, u = 0; k < n; k++) {
		uint32_t slot = list->forward.slot[order[k]];
		if (k && slot != list->forward.slot[order[k - 1]])
			u++;
		s->unit[u] = list->forward.strip[slot / LANES] + slot % LANES;
		s->first[u + 1] = k + 1;
		col[k] = m->t->col + list->to[order[k]];
	}
	find_strips(m, s, col, n);
}

/* The part that link k of the list leads from. */
static uint32_t from_part(const Lister *m, const LinkList *list, uint32_t k)
{
	Unit u = m->t->first + list->to[k];
	return m->part_of[net_source(m->l->net, u, m->first + k)];
}

/* One for each part that links lead from and errors must reach. */
static void make_backs(const Lister *m, LinkList *list)
{
	uint32_t *order = order_by_source(m, &list->forward), most = 0;

	for (uint64_t k = 0; k < m->links; k++)
		most += k == 0 || from_part(m, list, order[k]) != from_part(m, list, order[k - 1]);
	list->back = NEW(&m->cx->fixed, most, LinkBack);
	for (uint64_t k = 0, end; k < m->links; k = end) {
		uint32_t part = from_part(m, list, order[k]);
		for (end = k + 1; end < m->links && from_part(m, list, order[end]) == part;)
			end++;
		if (!m->l->part[part].error)
			continue;
		list->back[list->backs].part = part;
		backward_sums(m, list, order + k, end - k, &list->back[list->backs++].sums);
	}
}

/* The kind of a link: blocks with the same rate are one. */
static LinkKind *link_kind(const Lister *m, LinkList *list, const Block *b)
{
	for (uint32_t i = 0; i < list->kinds; i++)
		if (block_alike(list->kind[i].like, b))
			return &list->kind[i];
	list->kind = arena_grow(&m->cx->fixed, list->kind, list->kinds, list->kinds + 1, sizeof *list->kind);
	LinkKind *k = &list->kind[list->kinds++];
	*k = (LinkKind){ b, b->rate, b->frozen, NEW(&m->cx->fixed, list->links / 32 + 1, uint32_t) };
	return k;
}

static void make_targets(const Lister *m, LinkList *list)
{
	uint64_t room = (m->links + LANES - 1) / LANES * LANES;

	list->to = NEW(&m->cx->fixed, room, uint32_t);
	list->begins = NEW(&m->cx->fixed, room / LANES, uint16_t);
	for (uint32_t i = 0; i < m->t->count; i++)
		for (uint64_t k = list->forward.first[i]; k < list->forward.first[i + 1]; k++)
			list->to[k] = i;
	for (uint64_t k = m->links; k && k < room; k++)
		list->to[k] = list->to[k - 1];
	for (uint64_t k = 0; k < room; k++)
		if (k % LANES && list->to[k] != list->to[k - 1])
			list->begins[k / LANES] |= (uint16_t)(1u << k % LANES);
}

/* Floats that a thread needs to transpose rows. */
static uint64_t room_for(const LinkList *list, uint32_t targets)
{
	uint64_t strips = list->forward.strips, gradient = (strips + (targets + LANES - 1) / LANES) * LANES * LANES;

	for (uint32_t i = 0; i < list->backs; i++)
		strips = list->back[i].sums.strips > strips ? list->back[i].sums.strips : strips;
	return strips * LANES * LINK_ROWS > gradient ? strips * LANES * LINK_ROWS : gradient;
}

LinkList *links_list(Ctx *cx, const Layout *l, const uint32_t *part_of, const Part *t, uint32_t *number)
{
	const Net *net = l->net;
	uint64_t first = net->row[t->first];
	Lister m = { .cx = cx,
		         .l = l,
		         .part_of = part_of,
		         .number = number,
		         .t = t,
		         .first = first,
		         .links = net->row[t->first + t->count] - first };
	LinkList *list = NEW(&cx->fixed, 1, LinkList);

	list->links = m.links;
	forward_sums(&m, &list->forward);
	make_targets(&m, list);
	make_backs(&m, list);
	for (uint64_t k = 0; k < m.links; k++)
		link_kind(&m, list, net_block(net, t->first + list->to[k], first + k))->real[k / 32] |= 1u << k % 32;
	list->room = room_for(list, t->count);
	return list;
}
