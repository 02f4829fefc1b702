/* SPDX-License-Identifier: MIT */
/* microprop analyze.  In: a trained network, cases, a group.  Out: distances between the activations of items, the tree
 * of their clusters, principal components, multidimensional scaling; of each unit its strongest sources, the items that
 * activate it most, what the network loses without it; the contrast between two sets of cases. */
#include <string.h>

#include "inside.h"

static const CommandOption options[] = {
	{ "group", ARG_TEXT, offsetof(Analysis, group_name), 0 },
	{ "distance", ARG_TEXT, offsetof(Analysis, distance_name), 0 },
	{ "average", ARG_TEXT, offsetof(Analysis, average), 0 },
	{ "sets", ARG_TEXT, offsetof(Analysis, sets_text), 0 },
	{ "contrast", ARG_TEXT, offsetof(Analysis, contrast_text), 0 },
	{ "top", ARG_COUNT, offsetof(Analysis, top), MOST_TOP },
	{ "figures", ARG_TEXT, offsetof(Analysis, figures), 0 },
	{ "csv", ARG_TEXT, offsetof(Analysis, csv), 0 },
	{ "distances", ARG_TEXT, offsetof(Analysis, distances_file), 0 },
	{ "json", ARG_FLAG, offsetof(Analysis, as_json), 0 },
};
static const CommandArgs words = { .of = "analyze", .row = options, .rows = COUNT(options) };

static void group_take(Analysis *a)
{
	const Net *net = a->s->net;
	Arena *arena = &a->s->cx->scratch;
	for (uint32_t i = 0; !a->group_name && !a->group && i < net->groups; i++)
		a->group = net->group[i].role == ROLE_HIDDEN ? &net->group[i] : NULL;
	if (!a->group && !a->group_name)
		fail(a->s->cx, MP_BAD_INPUT, "name another group with --group", "%s has no hidden group to analyze", net->name);
	if (a->group_name)
		a->group = net_group_named(a->s->cx, net, "--group", (Text){ a->group_name, (uint32_t)strlen(a->group_name) });
	a->units = a->group->size;
	a->unit_name = NEW(arena, a->units, const char *);
	for (uint32_t i = 0; i < a->units; i++) {
		char name[200];
		net_unit_name(net, a->group->first + i, name, sizeof name);
		a->unit_name[i] = arena_copy(arena, name, strlen(name));
	}
}

static void sets_take(Analysis *a)
{
	enum { MOST_SETS = 100 };
	a->sets = sets_read(a->s->cx, a->s->data, a->sets_text, &a->set);
	if (a->sets > MOST_SETS)
		fail(a->s->cx, MP_BAD_INPUT, "define fewer", "--sets: more than %d sets", MOST_SETS);
	a->set_name = NEW(&a->s->cx->scratch, a->sets + 1, const char *);
	for (uint32_t i = 0; i < a->sets; i++)
		a->set_name[i] = a->set[i].name;
	a->set_name[a->sets] = "others";
}

static int distance_read(const Analysis *a)
{
	for (int i = 0; i < DISTANCES; i++)
		if (!a->distance_name || strcmp(a->distance_name, distance_names[i]) == 0)
			return i;
	fail(a->s->cx, MP_BAD_INPUT, "it is euclidean, correlation or cosine", "--distance cannot be '%.40s'",
	     a->distance_name);
}

void analyze_study(const Subject *s, int argc, const char *const *argv, Buf *out)
{
	Analysis a = { .s = s, .top = 5 };
	tool_args_read(s->cx, &words, argc, argv, &a);
	a.kind = distance_read(&a);
	group_take(&a);
	sets_take(&a);
	items_make(&a);
	a.distance = distances_of(s->cx, a.x, a.items, a.units, a.kind);
	a.merge = tree_of(s->cx, a.distance, a.items);
	a.pca = components_of(s->cx, a.x, a.items, a.units);
	a.mds = scaling_of(s->cx, a.distance, a.items);
	contrast_make(&a);
	changes_make(&a);
	if (a.figures)
		analysis_draw(&a);
	analysis_print(&a, out);
}
