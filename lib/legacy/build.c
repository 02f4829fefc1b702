/* SPDX-License-Identifier: MIT */
/* Units and links to a topology.  In: units with roles and functions, links with weights.  Out: the text of a topology
 * file, the network it parses to, and its weights.
 *
 * Inputs are one group, so that a case's inputs keep their order.  Outputs are one for each run of equal functions,
 * hidden units one for each level and function, contexts one for each run of equal start values.  What a context
 * becomes at the next case is a group of its own, NAME-next, that a copy carries over, unless it is just what one group
 * was.  Links between two groups are written as rectangles: targets side by side with the same sources, and each run
 * of those; a single link is the smallest rectangle. */
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "legacy.h"

typedef struct OldGroup {
	char name[32];
	int role, fn;
	double start;
	uint32_t size, first; /* first: into `order` */
	uint32_t next;        /* context: the group it is a copy of */
	bool fed;             /* NAME-next: its units are what contexts become */
} OldGroup;

typedef struct Builder {
	const Old *o;
	OldNet *n;
	OldGroup *group;
	uint32_t groups;
	uint64_t group_cap;
	uint32_t *order; /* units by group */
	uint64_t *row;   /* [units + 1]: links by target */
	uint32_t *made;  /* [units] a context's group NAME-next; NO_UNIT: none */
	Buf text;
} Builder;

/* ---- levels ------------------------------------------------------------------------------------- */

static int by_target(const void *a, const void *b)
{
	const OldLink *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void sort_links(Builder *b)
{
	OldNet *n = b->n;
	if (n->links)
		qsort(n->link, n->links, sizeof *n->link, by_target);
	b->row = NEW(&b->o->cx->scratch, n->units + 1, uint64_t);
	for (uint64_t i = 0; i < n->links; i++) {
		b->row[n->link[i].to + 1]++;
		if (i && n->link[i].to == n->link[i - 1].to && n->link[i].from == n->link[i - 1].from)
			error_at(b->o->cx, n->link[i].at, "add their weights", "there are two links between the same units");
	}
	for (uint64_t i = 0; i < n->units; i++)
		b->row[i + 1] += b->row[i];
	check_errors(b->o->cx);
}

static bool is_source(int role) { return role == ROLE_INPUT || role == ROLE_CONTEXT; }

/* Longest path to every unit: a pass over all links for each level would be quadratic for a chain, so units are counted
 * down as in Kahn's algorithm, along links sorted by source. */
static void find_levels(Builder *b)
{
	OldNet *n = b->n;
	Arena *scratch = &b->o->cx->scratch;
	uint64_t *out = NEW(scratch, n->units + 1, uint64_t), done = 0;
	uint64_t *by_source = NEW(scratch, n->links, uint64_t), *fill = NEW(scratch, n->units, uint64_t);
	uint64_t *waits = NEW(scratch, n->units, uint64_t);
	uint32_t *queue = NEW(scratch, n->units, uint32_t);
	for (uint64_t i = 0; i < n->links; i++)
		out[n->link[i].from + 1]++;
	for (uint64_t i = 0; i < n->units; i++)
		out[i + 1] += out[i];
	for (uint64_t i = 0; i < n->links; i++)
		by_source[out[n->link[i].from] + fill[n->link[i].from]++] = i;
	uint64_t queued = 0;
	for (uint32_t u = 0; u < n->units; u++) {
		waits[u] = is_source(n->unit[u].role) ? 0 : b->row[u + 1] - b->row[u];
		if (!waits[u])
			queue[queued++] = u;
	}
	for (; done < queued; done++) {
		uint32_t u = queue[done];
		for (uint64_t k = out[u]; k < out[u + 1]; k++) {
			uint32_t to = n->link[by_source[k]].to;
			if (is_source(n->unit[to].role))
				continue;
			n->unit[to].level = max_u32(n->unit[to].level, n->unit[u].level + 1);
			if (--waits[to] == 0)
				queue[queued++] = to;
		}
	}
	for (uint32_t u = 0; u < n->units; u++)
		if (waits[u])
			fail_at(b->o->cx, n->unit[u].at, "give feedback through context units, which hold the case before",
			        "the unit depends on itself: there is a cycle of links");
}

/* ---- groups ------------------------------------------------------------------------------------- */

static OldGroup *group_add(Builder *b)
{
	b->group = arena_reserve(&b->o->cx->scratch, b->group, b->groups, &b->group_cap, sizeof *b->group);
	return &b->group[b->groups++];
}

typedef struct Key {
	int role, fn;
	uint32_t level, unit;
	double start;
} Key;

static int key_order(const void *a, const void *b)
{
	static const int rank[ROLE_COUNT] = { [ROLE_INPUT] = 0, [ROLE_CONTEXT] = 1, [ROLE_HIDDEN] = 2, [ROLE_OUTPUT] = 3 };
	const Key *x = a, *y = b;
	if (x->role != y->role)
		return rank[x->role] < rank[y->role] ? -1 : 1;
	if (x->role == ROLE_HIDDEN && x->level != y->level)
		return x->level < y->level ? -1 : 1;
	if (x->role == ROLE_HIDDEN && x->fn != y->fn)
		return x->fn < y->fn ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static bool same_group(const Key *a, const Key *b)
{
	if (a->role != b->role)
		return false;
	if (a->role == ROLE_INPUT)
		return true;
	return a->fn == b->fn && a->start == b->start && (a->role != ROLE_HIDDEN || a->level == b->level);
}

static void make_groups(Builder *b)
{
	static const char *const names[ROLE_COUNT] = {
		[ROLE_INPUT] = "input", [ROLE_HIDDEN] = "hidden", [ROLE_OUTPUT] = "output", [ROLE_CONTEXT] = "context"
	};
	OldNet *n = b->n;
	Key *key = NEW(&b->o->cx->scratch, n->units, Key);
	uint32_t named[ROLE_COUNT] = { 0 };
	b->order = NEW(&b->o->cx->scratch, 2 * n->units, uint32_t); /* contexts may come twice */
	for (uint32_t u = 0; u < n->units; u++) {
		const OldUnit *unit = &n->unit[u];
		key[u] = (Key){ .role = unit->role, .fn = unit->fn, .level = unit->level, .unit = u };
		key[u].start = unit->role == ROLE_CONTEXT ? unit->start : 0;
	}
	qsort(key, n->units, sizeof *key, key_order);
	for (uint32_t i = 0; i < n->units; i++) {
		if (!i || !same_group(&key[i - 1], &key[i])) {
			int role = key[i].role;
			OldGroup *g = group_add(b);
			*g = (OldGroup){ .role = role, .fn = key[i].fn, .start = key[i].start, .first = i };
			named[role]++;
			snprintf(g->name, sizeof g->name, named[role] > 1 ? "%s%" PRIu32 : "%s", names[role], named[role]);
		}
		OldUnit *unit = &n->unit[key[i].unit];
		unit->group = b->groups - 1;
		unit->place = b->group[b->groups - 1].size++;
		b->order[i] = key[i].unit;
	}
}

/* ---- contexts ----------------------------------------------------------------------------------- */

/* The group that a context group is a plain copy of: one link of weight 1 into each, in order, and none other but of
 * weight 0 from itself. */
static uint32_t copied_group(const Builder *b, const OldGroup *g)
{
	uint32_t from = NO_UNIT;
	for (uint32_t i = 0; i < g->size; i++) {
		uint32_t u = b->order[g->first + i], source = NO_UNIT;
		if (b->n->unit[u].fn != FN_LINEAR || b->n->unit[u].biased)
			return NO_UNIT;
		for (uint64_t k = b->row[u]; k < b->row[u + 1]; k++) {
			const OldLink *l = &b->n->link[k];
			if (l->weight == 0 && l->from == u)
				continue;
			if (l->weight != 1 || source != NO_UNIT)
				return NO_UNIT;
			source = l->from;
		}
		if (source == NO_UNIT || b->n->unit[source].place != i || (i && b->n->unit[source].group != from))
			return NO_UNIT;
		from = b->n->unit[source].group;
	}
	return b->group[from].size == g->size ? from : NO_UNIT;
}

/* Contexts that are no plain copy: a group that computes what they become. */
static void make_next(Builder *b)
{
	uint32_t groups = b->groups, count = (uint32_t)b->n->units;
	b->made = NEW(&b->o->cx->scratch, b->n->units, uint32_t);
	memset(b->made, 0xff, b->n->units * sizeof *b->made);
	for (uint32_t i = 0; i < groups; i++) {
		if (b->group[i].role != ROLE_CONTEXT)
			continue;
		b->group[i].next = copied_group(b, &b->group[i]);
		if (b->group[i].next != NO_UNIT)
			continue;
		OldGroup *g = group_add(b), *context = &b->group[i];
		*g = (OldGroup){ .role = ROLE_HIDDEN, .fn = context->fn, .size = context->size, .first = count, .fed = true };
		char name[24];
		snprintf(name, sizeof name, "%.20s", context->name);
		snprintf(g->name, sizeof g->name, "%s-next", name);
		context->next = b->groups - 1;
		for (uint32_t k = 0; k < context->size; k++) {
			uint32_t u = b->order[context->first + k];
			b->order[count++] = u;
			b->made[u] = context->next;
		}
	}
}

/* ---- text --------------------------------------------------------------------------------------- */

static void put_end(Builder *b, const OldGroup *g, uint32_t first, uint32_t count)
{
	buf_printf(&b->text, "%s", g->name);
	if (count == g->size)
		return;
	if (count == 1)
		buf_printf(&b->text, "[%" PRIu32 "]", first);
	else
		buf_printf(&b->text, "[%" PRIu32 ":%" PRIu32 "]", first, first + count - 1);
}

typedef struct Run {
	uint32_t first, count; /* places of sources */
} Run;
typedef struct Runs {
	Run *run;
	uint64_t count, cap;
} Runs;

/* Places in group s of the sources of unit u that are linked with the given frozenness. */
static void source_runs(const Builder *b, uint32_t u, uint32_t s, bool frozen, Runs *r)
{
	const OldNet *n = b->n;
	uint32_t count = 0, *place = NEW(&b->o->cx->scratch, b->row[u + 1] - b->row[u] + 1, uint32_t);
	r->count = 0;
	for (uint64_t k = b->row[u]; k < b->row[u + 1]; k++)
		if (n->unit[n->link[k].from].group == s && n->link[k].frozen == frozen)
			place[count++] = n->unit[n->link[k].from].place; /* ascending: links are sorted by source, places too */
	for (uint32_t i = 0; i < count; i++) {
		if (r->count && r->run[r->count - 1].first + r->run[r->count - 1].count == place[i]) {
			r->run[r->count - 1].count++;
			continue;
		}
		r->run = arena_reserve(&b->o->cx->scratch, r->run, r->count, &r->cap, sizeof *r->run);
		r->run[r->count++] = (Run){ place[i], 1 };
	}
	arena_drop(&b->o->cx->scratch, place, b->row[u + 1] - b->row[u] + 1, sizeof *place);
}

static bool same_runs(const Runs *a, const Runs *b)
{
	return a->count == b->count && (!a->count || memcmp(a->run, b->run, a->count * sizeof *a->run) == 0);
}

/* The link from place `from` of group s to place `to` of t. */
static const OldLink *link_at(const Builder *b, uint32_t s, uint32_t from, const OldGroup *t, uint32_t to)
{
	OldLink key = { .from = b->order[b->group[s].first + from], .to = b->order[t->first + to] };
	return bsearch(&key, b->n->link, b->n->links, sizeof key, by_target);
}

/* Frozen links keep their weights in the topology alone; of a rectangle if they are equal. */
static bool same_weights(const Builder *b, uint32_t s, Run r, const OldGroup *t, uint32_t first, uint32_t count)
{
	double w = link_at(b, s, r.first, t, first)->weight;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < r.count; k++)
			if (link_at(b, s, r.first + k, t, first + i)->weight != w)
				return false;
	return true;
}

static const char *range_of(const Builder *b) { return b->n->range ? b->n->range : ""; }

static void put_frozen(Builder *b, uint32_t s, Run r, const OldGroup *t, uint32_t first, uint32_t count)
{
	bool same = same_weights(b, s, r, t, first, count);
	uint32_t high = same ? 1 : count, wide = same ? 1 : r.count;
	for (uint32_t i = 0; i < high; i++) {
		for (uint32_t k = 0; k < wide; k++) {
			double w = link_at(b, s, r.first + k, t, first + i)->weight;
			buf_puts(&b->text, "connect ");
			put_end(b, &b->group[s], r.first + k, same ? r.count : 1);
			buf_puts(&b->text, " -> ");
			put_end(b, t, first + i, same ? count : 1);
			if (isnan(w))
				buf_printf(&b->text, "%s frozen\n", range_of(b));
			else
				buf_printf(&b->text, " weights %.9g %.9g frozen\n", w, w);
		}
	}
}

static void put_runs(Builder *b, uint32_t s, const Runs *r, const OldGroup *t, uint32_t first, uint32_t count,
                     bool frozen)
{
	for (uint64_t i = 0; i < r->count; i++) {
		if (frozen) {
			put_frozen(b, s, r->run[i], t, first, count);
			continue;
		}
		buf_puts(&b->text, "connect ");
		put_end(b, &b->group[s], r->run[i].first, r->run[i].count);
		buf_puts(&b->text, " -> ");
		put_end(b, t, first, count);
		buf_printf(&b->text, "%s\n", range_of(b));
	}
}

/* Each target has one source, the one at its place; if frozen, all with weight *w. */
static bool one_to_one(const Builder *b, uint32_t s, const OldGroup *t, bool frozen, Runs *r, double *w)
{
	if (b->group[s].size != t->size || t->size < 2)
		return false;
	for (uint32_t i = 0; i < t->size; i++) {
		source_runs(b, b->order[t->first + i], s, frozen, r);
		if (r->count != 1 || r->run[0].count != 1 || r->run[0].first != i)
			return false;
		const OldLink *link = link_at(b, s, i, t, i);
		assert(link);
		double own = link->weight;
		if (frozen && (isnan(own) || (i && own != *w)))
			return false;
		*w = own;
	}
	return true;
}

static void put_links(Builder *b, uint32_t s, const OldGroup *t, bool frozen, Runs *now, Runs *last)
{
	double w = 0;
	if (one_to_one(b, s, t, frozen, now, &w)) {
		buf_printf(&b->text, "connect %s -> %s one-to-one", b->group[s].name, t->name);
		if (frozen)
			buf_printf(&b->text, " weights %.9g %.9g frozen\n", w, w);
		else
			buf_printf(&b->text, "%s\n", range_of(b));
		return;
	}
	uint32_t first = 0;
	last->count = 0;
	for (uint32_t i = 0; i < t->size; i++) {
		source_runs(b, b->order[t->first + i], s, frozen, now);
		if (same_runs(now, last))
			continue;
		put_runs(b, s, last, t, first, i - first, frozen);
		first = i;
		Runs swap = *last;
		*last = *now;
		*now = swap;
	}
	put_runs(b, s, last, t, first, t->size - first, frozen);
}

static void put_biases(Builder *b, const OldGroup *t)
{
	for (uint32_t i = 0, first; i < t->size; i++) {
		const OldUnit *u = &b->n->unit[b->order[t->first + i]];
		if (!u->biased)
			continue;
		if (t->fed) { /* not trained */
			buf_printf(&b->text, "connect true -> %s[%" PRIu32 "] weights %.9g %.9g frozen\n", t->name, i, u->bias,
			           u->bias);
			continue;
		}
		for (first = i; i < t->size && b->n->unit[b->order[t->first + i]].biased; i++) {
		}
		buf_puts(&b->text, "connect true -> ");
		put_end(b, t, first, i - first);
		buf_printf(&b->text, "%s\n", range_of(b));
	}
}

/* Groups that send at least one link to t, marked. */
static void mark_sources(const Builder *b, const OldGroup *t, bool *mark, bool *frozen)
{
	for (uint32_t i = 0; i < t->size; i++) {
		uint32_t u = b->order[t->first + i];
		for (uint64_t k = b->row[u]; k < b->row[u + 1]; k++) {
			mark[b->n->unit[b->n->link[k].from].group] = true;
			*frozen = *frozen || b->n->link[k].frozen;
		}
	}
}

static void put_all_links(Builder *b)
{
	Runs now = { 0 }, last = { 0 };
	for (uint32_t i = 0; i < b->groups; i++) {
		const OldGroup *t = &b->group[i];
		if (is_source(t->role))
			continue;
		bool *mark = NEW(&b->o->cx->scratch, b->groups, bool), some_frozen = false;
		mark_sources(b, t, mark, &some_frozen);
		for (uint32_t s = 0; s < b->groups; s++)
			for (int frozen = 0; mark[s] && frozen <= (int)some_frozen; frozen++)
				put_links(b, s, t, frozen, &now, &last);
		put_biases(b, t);
	}
	for (uint32_t i = 0; i < b->groups; i++) {
		const OldGroup *g = &b->group[i];
		if (g->role == ROLE_CONTEXT)
			buf_printf(&b->text, g->start != 0 ? "copy %s -> %s start %.9g\n" : "copy %s -> %s\n",
			           b->group[g->next].name, g->name, g->start);
	}
}

static void put_group(Builder *b, const OldGroup *g)
{
	static const char *const words[ROLE_COUNT] = { " input", "", " output", " context" };
	buf_printf(&b->text, "group %s %" PRIu32, g->name, g->size);
	if (!is_source(g->role))
		buf_printf(&b->text, " %s", unit_fns[g->fn].name);
	buf_printf(&b->text, "%s\n", words[g->role]);
}

/* ---- weights ------------------------------------------------------------------------------------ */

/* Groups of the network are those of the builder, in the same order. */
static void give_weights(const Builder *b, Net *net)
{
	const OldNet *n = b->n;
	double *w = NEW(&b->o->cx->keep, net->links, double);
	for (uint32_t u = 0; u < n->units; u++) {
		const OldUnit *unit = &n->unit[u];
		uint32_t group = unit->role == ROLE_CONTEXT ? b->made[u] : unit->group;
		if (group == NO_UNIT || unit->role == ROLE_INPUT)
			continue;
		Unit to = net->group[group].first + unit->place;
		for (uint64_t k = b->row[u]; k < b->row[u + 1]; k++) {
			const OldUnit *source = &n->unit[n->link[k].from];
			uint64_t link = link_between(net, net->group[source->group].first + source->place, to);
			assert(link < net->links);
			w[link] = n->link[k].weight;
		}
		if (unit->biased) {
			uint64_t link = link_between(net, 0, to);
			assert(link < net->links);
			w[link] = unit->bias;
		}
	}
	net->weights = w;
}

Net *old_parse(const Old *o, const char *text, size_t len)
{
	Src *src = NEW(&o->cx->keep, 1, Src);
	Buf name = { .arena = &o->cx->keep };
	buf_printf(&name, "%s as a topology", o->src->name);
	*src = (Src){ .name = name.s, .text = arena_copy(&o->cx->keep, text, len), .len = len };
	Net *net = net_parse(o->cx, src, DEFAULTS_1989);
	net->name = o->src->name;
	return net;
}

static void check_weight(const Builder *b, double w, Loc at)
{
	if (fabs(w) > (double)FLT_MAX)
		error_at(b->o->cx, at, "weights are single-precision numbers", "a weight of %g is too large", w);
}

/* Links into inputs, and units that nothing could use. */
static void check_links(const Builder *b)
{
	const OldNet *n = b->n;
	for (uint64_t i = 0; i < n->links; i++)
		check_weight(b, n->link[i].weight, n->link[i].at);
	for (uint64_t u = 0; u < n->units; u++)
		check_weight(b, n->unit[u].bias, n->unit[u].at);
	for (uint64_t i = 0; i < n->links; i++)
		if (n->unit[n->link[i].to].role == ROLE_INPUT)
			old_lost(b->o, n->link[i].at, "a link leads to an input unit");
	bool in = false, out = false;
	for (uint64_t u = 0; u < n->units; u++) {
		in = in || n->unit[u].role == ROLE_INPUT;
		out = out || n->unit[u].role == ROLE_OUTPUT;
	}
	if (!in || !out)
		error_at(b->o->cx, (Loc){ b->o->src, 0 }, NULL, "the network has no %s units", in ? "output" : "input");
	check_errors(b->o->cx);
}

/* Hidden units from which no output and no context is reached are left out, and links into inputs. */
static void drop_unused(const Old *o, OldNet *n)
{
	bool *used = NEW(&o->cx->scratch, n->units, bool), more = true;
	uint32_t *now = NEW(&o->cx->scratch, n->units, uint32_t), units = 0;
	for (uint64_t u = 0; u < n->units; u++)
		used[u] = n->unit[u].role != ROLE_HIDDEN;
	while (more) { /* once for each layer, mostly */
		more = false;
		for (uint64_t i = n->links; i-- > 0;)
			if (used[n->link[i].to] && n->unit[n->link[i].to].role != ROLE_INPUT && !used[n->link[i].from])
				more = used[n->link[i].from] = true;
	}
	for (uint32_t u = 0; u < n->units; u++) {
		now[u] = units;
		if (used[u])
			n->unit[units++] = n->unit[u];
		else
			note_at(o->cx, n->unit[u].at, NULL, "the unit reaches no output: left out");
	}
	uint64_t kept = 0;
	for (uint64_t i = 0; i < n->links; i++) {
		OldLink l = n->link[i];
		if (!used[l.to] || !used[l.from])
			continue;
		l.to = now[l.to];
		l.from = now[l.from];
		if (n->unit[l.to].role != ROLE_INPUT)
			n->link[kept++] = l;
	}
	n->units = units;
	n->links = kept;
}

Net *old_build(const Old *o, OldNet *n)
{
	Builder b = { .o = o, .n = n, .text = { .arena = &o->cx->scratch } };
	check_links(&b);
	drop_unused(o, n);
	sort_links(&b);
	find_levels(&b);
	make_groups(&b);
	make_next(&b);
	buf_printf(&b.text, "%sdefaults 1989\n", n->title);
	for (uint32_t i = 0; i < b.groups; i++)
		put_group(&b, &b.group[i]);
	put_all_links(&b);
	buf_puts(&b.text, n->train);
	Net *net = old_parse(o, b.text.s, b.text.len);
	if (!n->range)
		give_weights(&b, net);
	return net;
}
