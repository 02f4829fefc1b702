/* SPDX-License-Identifier: MIT */
/* Weights from a file into a network, or why they do not fit.  In: a file (safe_read) and a Net.  Out: the weights in
 * canonical order, by chunks; else every difference, at its place in the topology file.
 *
 * Our own files carry the network's fingerprint, its groups, its copies and the links of every tensor: weights fit if
 * the links are the same, in whatever blocks they are written.  Files of other programs fit if they have every tensor
 * of the network in the right shape. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "store.h"

static const char other_net[] = "use the topology the weights were trained with, or train this one anew";

/* ---- the network in the metadata ---------------------------------------------------------------- */

const char *net_groups_text(Arena *arena, const Net *net)
{
	Buf b = { .arena = arena };
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		buf_puts(&b, i ? ",{\"name\":" : "[{\"name\":");
		json_put(&b, g->name);
		buf_printf(&b, ",\"size\":%u,\"function\":\"%s\",\"role\":\"%s\"}", g->size, unit_fns[g->fn].name,
		           role_names[g->role]);
	}
	buf_puts(&b, "]");
	return b.s;
}

const char *net_copies_text(Arena *arena, const Net *net)
{
	Buf b = { .arena = arena };
	buf_puts(&b, "[");
	for (uint32_t i = 0; i < net->copies; i++) {
		const Group *to = &net->group[net->copy[i].to_group];
		buf_puts(&b, i ? ",{\"from\":" : "{\"from\":");
		json_put(&b, net->group[net->copy[i].from_group].name);
		buf_puts(&b, ",\"to\":");
		json_put(&b, to->name);
		buf_printf(&b, ",\"start\":\"%.9g\"}", (double)to->start);
	}
	buf_puts(&b, "]");
	return b.s;
}

/* ---- groups ------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "?";
}

static const json_t *group_find(const json_t *groups, const char *name)
{
	for (size_t i = 0; i < json_array_size(groups); i++)
		if (strcmp(text_of(json_array_get(groups, i), "name"), name) == 0)
			return json_array_get(groups, i);
	return NULL;
}

static void explain_group(Ctx *cx, const Group *g, const json_t *said)
{
	long long size = (long long)json_integer_value(json_object_get(said, "size"));
	const char *function = text_of(said, "function"), *role = text_of(said, "role");
	if (size != (long long)g->size)
		error_at(cx, g->at, other_net, "the file has group %s with %lld units, the network has %u", g->name, size,
		         g->size);
	if (strcmp(function, unit_fns[g->fn].name) != 0)
		error_at(cx, g->at, other_net, "functions differ: group %s is %s in the file, %s in the network", g->name,
		         function, unit_fns[g->fn].name);
	if (strcmp(role, role_names[g->role]) != 0)
		error_at(cx, g->at, other_net, "roles differ: group %s is %s in the file, %s in the network", g->name, role,
		         role_names[g->role]);
}

static void explain_groups(Ctx *cx, const SafeFile *f, const Net *net, const json_t *groups)
{
	int before = cx->errors;
	for (uint32_t i = 0; i < net->groups; i++) {
		const json_t *said = group_find(groups, net->group[i].name);
		if (said)
			explain_group(cx, &net->group[i], said);
		else
			error_at(cx, net->group[i].at, other_net, "the file has no group %s", net->group[i].name);
	}
	for (size_t k = 0; k < json_array_size(groups); k++) {
		const char *name = text_of(json_array_get(groups, k), "name");
		bool known = false;
		for (uint32_t i = 0; i < net->groups; i++)
			known |= strcmp(net->group[i].name, name) == 0;
		if (!known)
			error_at(cx, safe_loc(f, "groups"), other_net, "the file has a group %s, the network has none", name);
	}
	for (uint32_t i = 0; i < net->groups && cx->errors == before; i++)
		if (strcmp(text_of(json_array_get(groups, i), "name"), net->group[i].name) != 0)
			error_at(cx, net->group[i].at, other_net,
			         "groups stand in another order: the file has %s here, the network %s",
			         text_of(json_array_get(groups, i), "name"), net->group[i].name);
}

void weights_sizes(Ctx *cx, const char *path, const Net *open, uint32_t *inputs, uint32_t *outputs)
{
	Src *src = src_open(cx, &cx->scratch, path);
	src->binary = true;
	const SafeFile *f = safe_read(cx, src);
	const json_t *groups = safe_meta(f, "groups") ? safe_json(cx, f, "groups") : NULL;
	*inputs = open->inputs;
	*outputs = open->outputs;
	for (uint32_t i = 0; i < open->groups; i++) {
		const Group *g = &open->group[i];
		if (!g->open)
			continue;
		const json_t *said = groups ? group_find(groups, g->name) : NULL;
		json_int_t size = said ? json_integer_value(json_object_get(said, "size")) : 0;
		if (size < 1 || size > MAX_UNITS)
			fail_at(cx, g->at, "give its size in the topology file", "%s does not say how large group '%s' is", path,
			        g->name);
		*(g->role == ROLE_INPUT ? inputs : outputs) += (uint32_t)size;
	}
}

/* ---- tensors ------------------------------------------------------------------------------------ */

static void shape_print(Buf *b, const uint64_t *dim, int dims)
{
	buf_puts(b, "[");
	for (int i = 0; i < dims; i++)
		buf_printf(b, "%s%" PRIu64, i ? ", " : "", dim[i]);
	buf_puts(b, "]");
}

static Loc slot_loc(const Net *net, const Slot *s) { return net->group[s->to_group].at; }

/* Records an error unless the tensor exists with this shape and one of these types. */
static void tensor_check(Ctx *cx, const SafeFile *f, const Net *net, const Slot *s, const char *ending,
                         const uint64_t *dim, int dims, bool index)
{
	Buf name = { .arena = &cx->scratch };
	buf_printf(&name, "%s%s", s->name, ending);
	Tensor *t = safe_find(f, name.s);
	if (!t) {
		error_at(cx, slot_loc(net, s), other_net, "tensor %s is missing in %s", name.s, f->src->name);
		return;
	}
	t->used = true;
	if (t->dims != dims || memcmp(t->dim, dim, (size_t)dims * sizeof *dim) != 0) {
		Buf said = { .arena = &cx->scratch }, right = { .arena = &cx->scratch };
		shape_print(&said, t->dim, t->dims);
		shape_print(&right, dim, dims);
		error_at(cx, safe_loc(f, name.s), other_net, "tensor %s has the shape %s, the network needs %s", name.s, said.s,
		         right.s);
		return;
	}
	bool fits = index ? t->type == SAFE_I32 || t->type == SAFE_I64 : safe_is_real(t->type);
	if (!fits)
		error_at(cx, safe_loc(f, name.s), index ? "indices are I32 or I64" : "weights are F32, F64, F16 or BF16",
		         "tensor %s has the dtype %s", name.s, safe_type_name(t->type));
}

static void slot_check(Ctx *cx, const SafeFile *f, const Net *net, const Slot *s)
{
	bool bias = s->from_group < 0;
	if (s->dense) {
		tensor_check(cx, f, net, s, "", (uint64_t[]){ s->to_count, s->from_count }, bias ? 1 : 2, false);
		return;
	}
	tensor_check(cx, f, net, s, ".values", &s->links, 1, false);
	tensor_check(cx, f, net, s, ".to", &s->links, 1, true);
	if (!bias)
		tensor_check(cx, f, net, s, ".from", &s->links, 1, true);
}

static bool is_link_tensor(const char *name)
{
	return strncmp(name, "state.", 6) != 0 && strncmp(name, "scale.", 6) != 0 && strcmp(name, "best.weights") != 0;
}

/* ---- opening ---------------------------------------------------------------------------------- */

static void explain(Ctx *cx, const SafeFile *f, const Net *net)
{
	const char *copies = safe_meta(f, "copies");
	if (safe_meta(f, "groups"))
		explain_groups(cx, f, net, safe_json(cx, f, "groups"));
	check_errors(cx);
	const char *ours = net_copies_text(&cx->scratch, net);
	if (copies && strcmp(copies, ours) != 0)
		error_at(cx, net->copies ? net->copy[0].at : net->group[0].at, other_net,
		         "copies differ: the file has %s, the network %s", copies, ours);
}

/* Tensors of a slot. */
typedef struct Place {
	const Tensor *values, *to, *from;
	bool ordered;  /* links are in canonical order, as in our own files */
	uint64_t next; /* value to be read */
} Place;

struct WeightReader {
	Ctx *cx;
	const SafeFile *file;
	const Net *net;
	const Slot *slot;
	uint32_t slots;
	Place *place;      /* [slots] */
	bool ordered;      /* all slots are */
	double *all;       /* all weights, if not */
	uint8_t *seen;     /* [links] during opening: has a weight */
	double non_finite; /* sum of v - v: NaN if some weight is not finite, else 0 */
};

static void scan_value(WeightReader *k, const Place *p, uint64_t i)
{
	double v = safe_number(k->file, p->values, i);
	k->non_finite += v - v;
}

static void link_missing(const WeightReader *k, const Slot *s, double from, double to)
{
	error_at(k->cx, k->net->group[s->to_group].at, other_net,
	         "links differ: %s of the file has one from unit %.0f to unit %.0f, the network has not", s->name, from,
	         to);
}

/* Every link of a dense slot must exist, once. */
static void scan_dense(WeightReader *k, const Slot *s, const Place *p)
{
	const Net *net = k->net;
	Unit first = s->from_group < 0 ? 0 : net->group[s->from_group].first + s->from_first;
	for (uint32_t t = 0; t < s->to_count; t++) {
		Unit unit = net->group[s->to_group].first + s->to_first + t;
		uint64_t link = link_find(net, unit, first);
		for (uint32_t i = 0; i < s->from_count; i++, link++) {
			if (link >= net->row[unit + 1] || net_source(net, unit, link) != first + i || k->seen[link]) {
				link_missing(k, s, s->from_first + i, s->to_first + t);
				return;
			}
			k->seen[link] = 1;
			scan_value(k, p, (uint64_t)t * s->from_count + i);
		}
	}
}

/* Link i of a sparse slot; net->links if the network does not have it. */
static uint64_t sparse_link(const WeightReader *k, const Slot *s, const Place *p, uint64_t i)
{
	const Net *net = k->net;
	assert(net->group);
	const Group *source = s->from_group < 0 ? NULL : &net->group[s->from_group], *target = &net->group[s->to_group];
	double from = p->from ? safe_number(k->file, p->from, i) : 0, to = safe_number(k->file, p->to, i);
	if (!(from >= 0 && from < (source ? source->size : 1) && to >= 0 && to < target->size))
		return net->links;
	Unit first = (source ? source->first : 0) + (Unit)from, last = target->first + (Unit)to;
	uint64_t link = link_find(net, last, first);
	return link < net->row[last + 1] && net_source(net, last, link) == first ? link : net->links;
}

static void scan_sparse(WeightReader *k, const Slot *s, Place *p)
{
	p->ordered = true;
	for (uint64_t i = 0, last = 0; i < p->values->count; i++) {
		uint64_t link = sparse_link(k, s, p, i);
		if (link == k->net->links || k->seen[link]) {
			link_missing(k, s, p->from ? safe_number(k->file, p->from, i) : 0, safe_number(k->file, p->to, i));
			return;
		}
		k->seen[link] = 1;
		scan_value(k, p, i);
		p->ordered = p->ordered && link >= last;
		last = link;
	}
	k->ordered = k->ordered && p->ordered;
}

/* Reports the first link without a weight. */
static void check_seen(const WeightReader *k)
{
	const Net *net = k->net;
	char from[128], to[128];
	for (Unit u = 0; u < net->units; u++) {
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			if (k->seen[i])
				continue;
			net_unit_name(net, net_source(net, u, i), from, sizeof from);
			net_unit_name(net, u, to, sizeof to);
			error_at(k->cx, net_block(net, u, i)->at, other_net, "links differ: the file has none from %s to %s", from,
			         to);
			return;
		}
	}
}

static const Tensor *slot_tensor(const WeightReader *k, const Slot *s, const char *ending)
{
	Buf name = { .arena = &k->cx->scratch };
	buf_printf(&name, "%s%s", s->name, ending);
	return safe_find(k->file, name.s);
}

static void scan_all(WeightReader *k)
{
	k->place = NEW(&k->cx->scratch, k->slots, Place);
	k->seen = NEW(&k->cx->scratch, k->net->links, uint8_t);
	k->ordered = true;
	for (uint32_t i = 0; i < k->slots; i++) {
		const Slot *s = &k->slot[i];
		Place *p = &k->place[i];
		p->values = slot_tensor(k, s, s->dense ? "" : ".values");
		if (s->dense) {
			scan_dense(k, s, p);
			continue;
		}
		p->to = slot_tensor(k, s, ".to");
		p->from = s->from_group < 0 ? NULL : slot_tensor(k, s, ".from");
		scan_sparse(k, s, p);
	}
	check_seen(k);
	check_errors(k->cx);
	if (k->non_finite != 0)
		fail_at(k->cx, safe_loc(k->file, "__metadata__"), "take a file that was saved before training diverged",
		        "not all weights of the file are finite");
	arena_drop(&k->cx->scratch, k->seen, k->net->links, sizeof *k->seen);
}

/* ---- reading ---------------------------------------------------------------------------- */

static void read_dense(const WeightReader *k, const Slot *s, const Place *p, uint64_t first, uint64_t end, double *w)
{
	Unit begin = k->net->group[s->to_group].first + s->to_first, low = net_target(k->net, first),
		 high = net_target(k->net, end - 1);
	for (Unit u = low > begin ? low : begin; u <= high && u < begin + s->to_count; u++) {
		uint64_t from, last, row = (uint64_t)(u - begin) * s->from_count;
		slot_row(k->net, s, u - begin, &from, &last);
		for (uint64_t link = from > first ? from : first; link < last && link < end; link++)
			w[link - first] = safe_number(k->file, p->values, row + (link - from));
	}
}

static void read_sparse(const WeightReader *k, const Slot *s, Place *p, uint64_t first, uint64_t end, double *w)
{
	for (; p->next < p->values->count; p->next++) {
		uint64_t link = sparse_link(k, s, p, p->next);
		if (link >= end)
			return;
		if (link >= first) /* false only if the file was changed meanwhile */
			w[link - first] = safe_number(k->file, p->values, p->next);
	}
}

static void read_links(WeightReader *k, uint64_t first, uint64_t end, double *w)
{
	for (uint32_t i = 0; first < end && i < k->slots; i++) {
		if (k->slot[i].dense)
			read_dense(k, &k->slot[i], &k->place[i], first, end, w);
		else
			read_sparse(k, &k->slot[i], &k->place[i], first, end, w);
	}
}

WeightReader *weights_open(Ctx *cx, const SafeFile *f, const Net *net)
{
	WeightReader *k = NEW(&cx->scratch, 1, WeightReader);
	const char *fingerprint = safe_meta(f, "network");
	bool other = fingerprint && strcmp(fingerprint, net->fingerprint) != 0;
	bool listed = fingerprint && !other && safe_meta(f, "links");
	*k = (WeightReader){ .cx = cx, .file = f, .net = net };
	Slot *slot = listed ? slots_read(cx, f, net, &k->slots) : slots_make(cx, net, &k->slots);
	if (!fingerprint)
		slots_match(cx, f, slot, k->slots);
	k->slot = slot;
	if (other)
		explain(cx, f, net);
	for (uint32_t i = 0; i < k->slots; i++)
		slot_check(cx, f, net, &k->slot[i]);
	for (uint32_t i = 0; other && i < f->tensors; i++)
		if (!f->tensor[i].used && is_link_tensor(f->tensor[i].name))
			error_at(cx, safe_loc(f, f->tensor[i].name), other_net, "the file has links %s, the network has not",
			         f->tensor[i].name);
	check_errors(cx);
	scan_all(k);
	if (other)
		fail_at(cx, safe_loc(f, "network"), other_net,
		        "the file belongs to another network: its fingerprint is %s, not %s", fingerprint, net->fingerprint);
	if (!k->ordered) {
		k->all = NEW(&cx->scratch, net->links, double);
		read_links(k, 0, net->links, k->all);
	}
	safe_release(f);
	return k;
}

void weights_next(WeightReader *k, uint64_t first, uint64_t count, double *w)
{
	if (k->all)
		memcpy(w, k->all + first, count * sizeof *w);
	else
		read_links(k, first, first + count, w);
}
