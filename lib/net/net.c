/* SPDX-License-Identifier: MIT */
/* Checks of a whole network.  In: a Net with canonical links.  Out: errors for cycles, unreachable groups and missing
 * roles; the fingerprint; levels, names of units, initial weights. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* the state's size, so that it can live in an arena */
#include <xxhash.h>

#include "net.h"

const char *const role_names[ROLE_COUNT] = { "input", "hidden", "output", "context" };
const char *const integrate_names[INTEGRATE_COUNT] = { "none", "input", "output" };
const char *const init_names[INIT_COUNT] = { "range", "fan-in", "glorot", "he" };

Group *net_group(const Net *net, Unit u)
{
	uint32_t low = 0, high = net->groups;
	if (u == 0)
		return NULL;
	while (high - low > 1) { /* group[low].first <= u */
		uint32_t middle = low + (high - low) / 2;
		if (net->group[middle].first <= u)
			low = middle;
		else
			high = middle;
	}
	return &net->group[low];
}

const char *name_made(Arena *a, Text text)
{
	enum { LONGEST = 64 };
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", others[] = "0123456789-.";
	Buf b = { .arena = a };
	if (!text.len || !strchr(letters, text.s[0]))
		buf_puts(&b, "_");
	for (uint32_t i = 0; i < text.len && b.len < LONGEST; i++) {
		bool fits = text.s[i] && (strchr(letters, text.s[i]) || strchr(others, text.s[i]));
		buf_add(&b, fits ? &text.s[i] : "_", 1);
	}
	static const char *const taken[] = { "group", "connect", "copy",     "train", "data",
		                                 "test",  "include", "defaults", "true",  "bias" };
	for (size_t i = 0; i < COUNT(taken); i++)
		if (strcmp(b.s, taken[i]) == 0)
			buf_puts(&b, "_");
	return b.s;
}

void net_unit_name(const Net *net, Unit u, char *buf, size_t size)
{
	const Group *g = net_group(net, u);
	if (g)
		snprintf(buf, size, "%s[%u]", g->name, u - g->first);
	else
		snprintf(buf, size, "true");
}

static bool is_computed(const Group *g) { return g->role == ROLE_HIDDEN || g->role == ROLE_OUTPUT; }

/* ---- levels: depth-first search from each unit to its sources ---- */

enum { MAX_CYCLES = 100, CYCLE_SHOWN = 8 };
#define UNSEEN UINT32_MAX
#define ACTIVE (UINT32_MAX - 1) /* on the current path */

typedef struct Step { /* of the current path */
	Unit node;
	uint32_t level; /* highest among the sources seen so far */
	Unit unit;      /* of the node, */
	uint64_t link;  /* and its current link */
} Step;

typedef struct Walk {
	Ctx *cx;
	const Net *net;
	uint32_t *level;  /* of nodes; units of a softmax group get theirs when the group is done */
	Unit *node, *end; /* [units]: a unit's node is its first unit; end: one past its last */
	Step *path;
	uint32_t depth;
	Unit *order;
	uint32_t done;
	bool *reported; /* [blocks] that a cycle was reported for */
	uint32_t cycles;
} Walk;

static void walk_init(Walk *w, Ctx *cx, const Net *net, uint32_t *level, Unit *order)
{
	*w = (Walk){ .cx = cx, .net = net, .level = level, .order = order };
	w->node = NEW(&cx->scratch, net->units, Unit);
	w->end = NEW(&cx->scratch, net->units, Unit);
	w->path = NEW(&cx->scratch, net->units, Step);
	level[0] = 0;
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		bool whole = g->fn == FN_SOFTMAX;
		for (Unit u = g->first; u < g->first + g->size; u++) {
			level[u] = is_computed(g) ? UNSEEN : 0;
			w->node[u] = whole ? g->first : u;
			w->end[u] = whole ? g->first + g->size : u + 1;
		}
	}
}

static void walk_push(Walk *w, Unit node)
{
	w->path[w->depth++] = (Step){ .node = node, .unit = node, .link = w->net->row[node] };
	w->level[node] = ACTIVE;
}

/* A node's name in a cycle: softmax units act as one. */
static void node_print(const Walk *w, Unit node, Buf *b)
{
	char name[96];
	const Group *g = net_group(w->net, node);
	assert(g); /* the true unit is in no cycle */
	net_unit_name(w->net, node, name, sizeof name);
	buf_puts(b, g->fn == FN_SOFTMAX ? g->name : name);
}

/* The path from step `first` on and the current link of its last step are a cycle.  Some link of every cycle leads to
 * a unit that is not later in the file: report that one. */
static void cycle_report(Walk *w, uint32_t first)
{
	const Net *net = w->net;
	uint32_t blamed = UINT32_MAX, length = w->depth - first;
	for (uint32_t i = first; i < w->depth && blamed == UINT32_MAX; i++) {
		const Step *s = &w->path[i];
		if (w->node[net_source(net, s->unit, s->link)] >= s->node)
			blamed = (uint32_t)(net_block(net, s->unit, s->link) - net->block);
	}
	if (!w->reported)
		w->reported = NEW(&w->cx->scratch, net->blocks, bool);
	if (w->reported[blamed])
		return;
	w->reported[blamed] = true;
	Buf b = { .arena = &w->cx->scratch };
	node_print(w, w->path[first].node, &b); /* the path leads from targets to sources: print it backwards */
	for (uint32_t i = 0; i < length && i < CYCLE_SHOWN; i++) {
		buf_puts(&b, " -> ");
		node_print(w, w->path[w->depth - 1 - i].node, &b);
	}
	if (length > CYCLE_SHOWN)
		buf_printf(&b, " -> ... (%u units in all)", length);
	error_at(
		w->cx, net->block[blamed].at,
		"feed back through a context group instead: copy GROUP -> CONTEXT; or let the network settle: train ticks 8",
		"these links make a cycle: %s", b.s);
}

static void cycle_found(Walk *w, Unit node)
{
	uint32_t i = w->depth - 1;
	if (w->cycles++ >= MAX_CYCLES)
		return;
	while (w->path[i].node != node)
		i--;
	cycle_report(w, i);
}

/* Follows the links of the last step up to one from an unseen node; false if there is none. */
static bool walk_deeper(Walk *w)
{
	const Net *net = w->net;
	Step *s = &w->path[w->depth - 1];
	for (uint64_t end = net->row[w->end[s->node]]; s->link < end; s->link++) {
		while (s->link >= net->row[s->unit + 1])
			s->unit++;
		Unit source = w->node[net_source(net, s->unit, s->link)];
		uint32_t level = w->level[source];
		if (level == UNSEEN) {
			walk_push(w, source);
			return true;
		}
		if (level == ACTIVE)
			cycle_found(w, source);
		else if (level > s->level)
			s->level = level;
	}
	return false;
}

static void walk_back(Walk *w)
{
	Step *s = &w->path[--w->depth];
	for (Unit u = s->node; u < w->end[s->node]; u++)
		w->level[u] = s->level + 1;
	w->order[w->done++] = s->node;
}

uint32_t net_levels(Ctx *cx, const Net *net, uint32_t *level, Unit *order)
{
	Walk w;
	walk_init(&w, cx, net, level, order);
	for (Unit u = 1; u < net->units; u++) {
		if (level[u] != UNSEEN)
			continue;
		walk_push(&w, w.node[u]);
		while (w.depth > 0)
			if (!walk_deeper(&w))
				walk_back(&w);
	}
	return w.done;
}

/* ---- checks ---- */

static void check_roles(Ctx *cx, const Net *net)
{
	Loc last = net->group[net->groups - 1].at;
	if (net->inputs == 0)
		error_at(cx, last, "declare one: group NAME SIZE input", "the network has no input group");
	if (net->outputs == 0)
		error_at(cx, last, "declare one: group NAME SIZE output", "the network has no output group");
}

static void check_copies(Ctx *cx, const Net *net)
{
	const Copy **copy = NEW(&cx->scratch, net->groups, const Copy *);
	for (uint32_t i = 0; i < net->copies; i++) {
		const Copy *c = &net->copy[i], *other = copy[c->to_group];
		if (other) {
			error_at(cx, c->at, "keep one of them", "context group '%s' already has a copy",
			         net->group[c->to_group].name);
			note_at(cx, other->at, NULL, "the first one is here");
		}
		copy[c->to_group] = c;
	}
	Buf remedy = { .arena = &cx->scratch };
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		if (g->role != ROLE_CONTEXT || copy[i])
			continue;
		remedy.len = 0;
		buf_printf(&remedy, "write: copy GROUP -> %s", g->name);
		error_at(cx, g->at, remedy.s, "nothing is copied into context group '%s'", g->name);
	}
}

enum { REACHED = 1, USED = 2 }; /* from an input or a context; for an output or a copy */

/* Marks every unit: forward, then backward. */
static uint8_t *find_marks(Ctx *cx, const Net *net, const Unit *order, uint32_t nodes)
{
	uint8_t *mark = NEW(&cx->scratch, net->units, uint8_t);
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		int start = (is_computed(g) ? 0 : REACHED) | (g->role == ROLE_OUTPUT ? USED : 0);
		memset(mark + g->first, start, g->size);
	}
	for (uint32_t i = 0; i < net->copies; i++) {
		const Group *g = &net->group[net->copy[i].from_group];
		for (Unit u = g->first; u < g->first + g->size; u++)
			mark[u] |= USED;
	}
	for (uint32_t i = 0; i < nodes; i++) {
		const Group *g = net_group(net, order[i]);
		assert(g); /* the true unit is not computed */
		Unit end = g->fn == FN_SOFTMAX ? g->first + g->size : order[i] + 1;
		for (Unit u = order[i]; u < end; u++)
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
				mark[u] |= mark[net_source(net, u, l)] & REACHED;
	}
	for (uint32_t i = nodes; i-- > 0;) {
		const Group *g = net_group(net, order[i]);
		assert(g); /* the true unit is not computed */
		Unit end = g->fn == FN_SOFTMAX ? g->first + g->size : order[i] + 1;
		for (Unit u = order[i]; u < end; u++)
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
				mark[net_source(net, u, l)] |= mark[u] & USED;
	}
	return mark;
}

/* Marks of a group's units, combined. */
typedef struct Seen {
	uint8_t any;
	uint32_t alone, first_alone;
} Seen; /* alone: units without incoming links */

static Seen group_seen(const Net *net, const Group *g, const uint8_t *mark)
{
	Seen seen = { 0 };
	for (uint32_t i = g->size; i-- > 0;) {
		Unit u = g->first + i;
		seen.any |= mark[u];
		if (net->row[u] == net->row[u + 1]) {
			seen.alone++;
			seen.first_alone = i;
		}
	}
	return seen;
}

static void check_group(Ctx *cx, const Group *g, Seen seen)
{
	const char *role = role_names[g->role];
	if (is_computed(g) && seen.alone == g->size)
		error_at(cx, g->at, "connect something to it", "%s group '%s' receives no links", role, g->name);
	else if (!(seen.any & REACHED))
		error_at(cx, g->at, "connect an input to it, directly or through other groups",
		         "nothing that comes from an input reaches %s group '%s'", role, g->name);
	else if (!(seen.any & USED) && g->role != ROLE_INPUT)
		error_at(cx, g->at, "connect it to an output, directly or through other groups, or remove it",
		         "nothing of %s group '%s' reaches an output or a copy", role, g->name);
}

static bool remark_group(Ctx *cx, const Group *g, Seen seen)
{
	bool unused = !(seen.any & USED), some_alone = is_computed(g) && seen.alone;
	if (unused)
		note_at(cx, g->at, "connect it if that is not meant", "input group '%s' is not used", g->name);
	else if (some_alone)
		note_at(cx, g->at, "connect them if that is not meant",
		        "%u of the %u units of '%s' receive no link, first %s[%u]", seen.alone, g->size, g->name, g->name,
		        seen.first_alone);
	return unused || some_alone;
}

/* Texts with their NUL, numbers little-endian. */
static void fingerprint(Ctx *cx, Net *net)
{
	XXH3_state_t *x = NEW(&cx->scratch, 1, XXH3_state_t);
	int32_t *source = NEW(&cx->scratch, net->groups, int32_t); /* of copies: group number + 1 */
	XXH3_128bits_reset(x);
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		XXH3_128bits_update(x, g->name, strlen(g->name) + 1);
		XXH3_128bits_update(x, &g->size, sizeof g->size);
		XXH3_128bits_update(x, unit_fns[g->fn].name, strlen(unit_fns[g->fn].name) + 1);
		XXH3_128bits_update(x, role_names[g->role], strlen(role_names[g->role]) + 1);
		XXH3_128bits_update(x, &g->start, sizeof g->start);
		if (g->integrate) {
			XXH3_128bits_update(x, integrate_names[g->integrate], strlen(integrate_names[g->integrate]) + 1);
			XXH3_128bits_update(x, &g->dt_factor, sizeof g->dt_factor);
		}
		if (g->gain != 1)
			XXH3_128bits_update(x, &g->gain, sizeof g->gain);
	}
	for (uint32_t i = 0; i < net->copies; i++)
		source[net->copy[i].to_group] = net->copy[i].from_group + 1;
	XXH3_128bits_update(x, source, net->groups * sizeof *source);
	XXH3_128bits_update(x, net->row, ((size_t)net->units + 1) * sizeof *net->row);
	for (Unit u = 0; u < net->units; u++)
		XXH3_128bits_update(x, net->from + (net->row[u] + net->from_at[u]),
		                    (net->row[u + 1] - net->row[u]) * sizeof *net->from);
	hash_hex(x, net->fingerprint);
}

void net_check(Ctx *cx, Net *net)
{
	int errors = cx->errors, notes = 0;
	uint32_t *level = NEW(&cx->scratch, net->units, uint32_t);
	Unit *order = NEW(&cx->scratch, net->units, Unit);
	check_roles(cx, net);
	check_copies(cx, net);
	uint32_t nodes = net_levels(cx, net, level, order);
	if (cx->errors > errors) /* reachability means little then */
		return;
	const uint8_t *mark = find_marks(cx, net, order, nodes);
	for (uint32_t i = 0; i < net->groups; i++)
		check_group(cx, &net->group[i], group_seen(net, &net->group[i], mark));
	for (uint32_t i = 0; i < net->groups && cx->errors == 0 && notes < MAX_ERRORS; i++)
		notes += remark_group(cx, &net->group[i], group_seen(net, &net->group[i], mark));
	fingerprint(cx, net);
}

/* Groups of different functions share none but squared. */
int net_error(const Net *net)
{
	bool softmax = true, sigmoid = true;
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		softmax &= g->role != ROLE_OUTPUT || g->fn == FN_SOFTMAX;
		sigmoid &= g->role != ROLE_OUTPUT || g->fn == FN_SIGMOID;
	}
	return softmax ? ERR_DIVERGENCE : sigmoid ? ERR_CROSS_ENTROPY : ERR_SQUARED;
}

/* ---- initial weights ---- */

uint64_t net_chunk(const Net *net, uint64_t first, uint64_t count)
{
	assert(first <= net->links);
	return min_u64(count, net->links - first);
}

/* Of one link into a unit with n others. */
static double init_range(const Block *b, uint64_t n)
{
	double in = n ? (double)n : 1;
	if (b->init == INIT_FAN_IN)
		return (float)(1 / sqrt(in));
	if (b->from_group < 0)
		return 0;
	if (b->init == INIT_GLOROT)
		in += (double)b->links / b->from_count;
	return (float)sqrt(6 / in);
}

void net_weight_range(const Net *net, Unit u, uint64_t l, double *low, double *width)
{
	uint64_t row = net->row[u], fan_in = net->row[u + 1] - row - (net_source(net, u, row) == 0);
	const Block *b = net_block(net, u, l);
	double r = b->init == INIT_RANGE ? 0 : init_range(b, fan_in);
	*low = b->init == INIT_RANGE ? b->low : -r;
	*width = (b->init == INIT_RANGE ? b->high : r) - *low;
}

static double drawn_weight(const Net *net, uint64_t seed, Unit u, uint64_t l)
{
	double low, width;
	net_weight_range(net, u, l, &low, &width);
	return (float)(low + width * random_unit(seed, STREAM_WEIGHTS, l));
}

/* Links l .. end - 1 of a unit; those of a block have one range. */
static void unit_weights(const Net *net, uint64_t seed, Unit u, uint64_t l, uint64_t end, double *w)
{
	const Block *last = NULL;
	double low = 0, width = 0;

	random_units(seed, STREAM_WEIGHTS, l, end - l, w);
	for (uint64_t i = l; i < end; i++) {
		const Block *b = net_block(net, u, i);
		if (b != last)
			net_weight_range(net, u, i, &low, &width);
		last = b;
		w[i - l] = (float)(low + width * w[i - l]);
	}
}

/* A tied link has the weight of the one that it is tied to. */
void net_weights(const Net *net, uint64_t seed, uint64_t first, uint64_t count, double *w)
{
	uint64_t last = first + net_chunk(net, first, count);
	for (uint64_t l = first; net->weights && l < last; l++)
		w[l - first] = net->weights[l];
	for (uint64_t l = first, end; !net->weights && l < last; l = end) {
		Unit u = net_target(net, l);
		end = min_u64(last, net->row[u + 1]);
		if (!net->tie)
			unit_weights(net, seed, u, l, end, w + (l - first));
		for (uint64_t i = l; net->tie && i < end; i++) {
			uint64_t own = net->tie[i];
			w[i - first] = drawn_weight(net, seed, own == i ? u : net_target(net, own), own);
		}
	}
}

const Group *net_group_named(Ctx *cx, const Net *net, const char *option, Text name)
{
	const char **names = NEW(&cx->scratch, net->groups + 1, const char *);
	Buf known = { .arena = &cx->scratch };
	for (uint32_t i = 0; i < net->groups; i++) {
		if (text_is(name, net->group[i].name))
			return &net->group[i];
		names[i] = net->group[i].name;
	}
	const char *word = arena_copy(&cx->scratch, name.s, name.len), *near = nearest_name(word, names, net->groups);
	buf_puts(&known, "the groups are:");
	for (uint32_t i = 0; i < net->groups; i++)
		buf_printf(&known, "%s %s", i ? "," : "", names[i]);
	fail(cx, MP_BAD_INPUT, known.s, "%s%s%s has no group '%.40s'%s%s%s", option ? option : "", option ? ": " : "",
	     net->name, word, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
