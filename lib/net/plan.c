/* SPDX-License-Identifier: MIT */
/* The order of work, independent of the target.  In: a checked Net and the Caps of a target.  Out: levels, the spans of
 * units that are computed together, bundles of their incoming links, and the counts of the performance model
 * (section 6.1).
 *
 * Units of a level depend only on lower levels.  Spans and bundles are in forward order, level by level and
 * inside a level by unit; a softmax group is always one span.  Backward is the reverse. */
#include <assert.h>
#include <string.h>

#include "net.h"

static bool is_given(const Net *net, Unit u)
{
	const Group *g = net_group(net, u);
	return g->role == ROLE_INPUT || g->role == ROLE_CONTEXT;
}

/* W, Wi, U.  A true unit's link belongs to the input layer if the unit's other sources do. */
static void count_links(Plan *plan)
{
	const Net *net = plan->net;
	plan->W = net->links;
	plan->U = net->units - 1;
	for (Unit u = 1; u < net->units; u++) {
		uint64_t first = net->row[u], end = net->row[u + 1], given = 0;
		uint64_t has_true = first < end && net_source(net, u, first) == 0;
		for (uint64_t l = first + has_true; l < end; l++)
			given += plan->level_of[net_source(net, u, l)] == 0;
		plan->Wi += given + (has_true && given == end - first - 1);
	}
}

/* Units sorted by level, inside a level by number; first[i] is where level i + 1 begins. */
static Unit *units_by_level(Ctx *cx, Plan *plan, uint32_t *first)
{
	const Net *net = plan->net;
	Unit *sorted = NEW(&cx->scratch, net->units, Unit);
	for (Unit u = 0; u < net->units; u++)
		if (plan->level_of[u] > 0)
			first[plan->level_of[u]]++;
	for (uint32_t i = 0; i < plan->levels; i++)
		first[i + 1] += first[i];
	uint32_t *place = NEW(&cx->scratch, plan->levels, uint32_t);
	for (uint32_t i = 0; i < plan->levels; i++)
		place[i] = first[i];
	for (Unit u = 0; u < net->units; u++)
		if (plan->level_of[u] > 0)
			sorted[place[plan->level_of[u] - 1]++] = u;
	return sorted;
}

/* Where the span that begins at sorted[i] ends: consecutive units of one group. */
static uint32_t span_end(const Net *net, const Unit *sorted, uint32_t i, uint32_t end)
{
	const Group *g = net_group(net, sorted[i]);
	uint32_t j = i + 1;
	while (j < end && sorted[j] == sorted[j - 1] + 1 && sorted[j] < g->first + g->size)
		j++;
	return j;
}

/* Units from `first` on that go into one bundle: as many as the limit allows, at least one. */
static uint32_t bundle_units(const Plan *plan, Unit first, Unit end)
{
	const uint64_t *row = plan->net->row;
	Unit u = first + 1;
	while (u < end && (plan->caps.bundle == 0 || row[u + 1] - row[first] <= plan->caps.bundle))
		u++;
	return u - first;
}

static void span_bundle(Plan *plan, Span span)
{
	const uint64_t *row = plan->net->row;
	for (Unit u = span.first, end = span.first + span.count; u < end;) {
		uint32_t count = bundle_units(plan, u, end);
		plan->bundle[plan->bundles++] = (Bundle){ { u, count, span.group }, row[u], row[u + count] - row[u] };
		u += count;
	}
}

Plan *plan_make(Ctx *cx, const Net *net, const Caps *caps)
{
	Plan *plan = NEW(&cx->fixed, 1, Plan);
	plan->net = net;
	plan->caps = *caps;
	plan->level_of = NEW(&cx->fixed, net->units, uint32_t);
	net_levels(cx, net, plan->level_of, NEW(&cx->scratch, net->units, Unit));
	for (Unit u = 0; u < net->units; u++)
		if (plan->level_of[u] > plan->levels)
			plan->levels = plan->level_of[u];
	count_links(plan);

	uint32_t *first = NEW(&cx->scratch, (size_t)plan->levels + 1, uint32_t);
	const Unit *sorted = units_by_level(cx, plan, first);
	uint32_t computed = first[plan->levels]; /* spans and bundles have a unit each, at least */
	plan->level = NEW(&cx->fixed, plan->levels, Level);
	plan->span = NEW(&cx->scratch, computed, Span);
	plan->bundle = NEW(&cx->scratch, computed, Bundle);
	for (uint32_t i = 0; i < plan->levels; i++) {
		Level *level = &plan->level[i];
		level->span = plan->spans;
		level->bundle = plan->bundles;
		for (uint32_t j = first[i], end; j < first[i + 1]; j = end) {
			end = span_end(net, sorted, j, first[i + 1]);
			plan->span[plan->spans++] = (Span){ sorted[j], end - j, net_group(net, sorted[j]) };
			span_bundle(plan, plan->span[plan->spans - 1]);
		}
		level->spans = plan->spans - level->span;
		level->bundles = plan->bundles - level->bundle;
	}
	assert(plan->spans <= computed && plan->bundles <= computed);
	plan->span = memcpy(NEW(&cx->fixed, plan->spans, Span), plan->span, plan->spans * sizeof(Span));
	plan->bundle = memcpy(NEW(&cx->fixed, plan->bundles, Bundle), plan->bundle, plan->bundles * sizeof(Bundle));
	return plan;
}

/* ---- printing ---- */

static void span_print(Span s, Buf *out)
{
	const Group *g = s.group;
	uint32_t first = s.first - g->first;
	buf_puts(out, g->name);
	if (s.count == 1 && g->size > 1)
		buf_printf(out, "[%u]", first);
	else if (s.count < g->size)
		buf_printf(out, "[%u:%u]", first, first + s.count - 1);
}

static void level_print(const Plan *plan, uint32_t number, Buf *out)
{
	const Level *level = &plan->level[number];
	uint64_t units = 0, links = 0;
	for (uint32_t i = 0; i < level->spans; i++)
		units += plan->span[level->span + i].count;
	for (uint32_t i = 0; i < level->bundles; i++)
		links += plan->bundle[level->bundle + i].links;
	buf_printf(out, "level %u: %llu unit%s, %llu links\n", number + 1, (unsigned long long)units, units == 1 ? "" : "s",
	           (unsigned long long)links);
	for (uint32_t i = 0; i < level->spans; i++) {
		Span s = plan->span[level->span + i];
		buf_puts(out, "  span ");
		span_print(s, out);
		buf_printf(out, " %s\n", unit_fns[s.group->fn].name);
	}
	for (uint32_t i = 0; i < level->bundles; i++) {
		const Bundle *b = &plan->bundle[level->bundle + i];
		buf_printf(out, "  bundle %u: ", level->bundle + i);
		span_print(b->units, out);
		buf_printf(out, ", %llu links from %llu\n", (unsigned long long)b->links, (unsigned long long)b->link);
	}
}

void plan_print(const Plan *plan, Buf *out)
{
	const Net *net = plan->net;
	buf_printf(out, "plan for %s: %u lanes, ", plan->caps.target, plan->caps.lanes);
	if (plan->caps.bundle)
		buf_printf(out, "at most %u weights in a bundle\n", plan->caps.bundle);
	else
		buf_puts(out, "bundles of any size\n");
	buf_printf(out, "counts: W %llu, Wi %llu, U %llu\n", (unsigned long long)plan->W, (unsigned long long)plan->Wi,
	           (unsigned long long)plan->U);
	buf_puts(out, "level 0: true");
	for (uint32_t i = 0; i < net->groups; i++)
		if (is_given(net, net->group[i].first))
			buf_printf(out, ", %s", net->group[i].name);
	buf_puts(out, "\n");
	for (uint32_t i = 0; i < plan->levels; i++)
		level_print(plan, i, out);
	for (uint32_t i = 0; i < net->copies; i++)
		buf_printf(out, "after the %s: copy %s -> %s\n", net->settles ? "tick" : "case",
		           net->group[net->copy[i].from_group].name, net->group[net->copy[i].to_group].name);
}
