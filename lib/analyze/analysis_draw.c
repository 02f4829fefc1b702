/* SPDX-License-Identifier: MIT */
/* Figures of an analysis: tree, planes of components and scaling, heat map, Hinton diagram of incoming weights,
 * contributions, contrast. */
#include <math.h>

#include "inside.h"

enum { MOST_LEAVES = 300, MOST_POINTS = 600, MOST_CELLS = 40000, MOST_BARS = 100 };

static void figure_save(Analysis *a, const char *name, const Buf *svg)
{
	Buf path = { .arena = &a->s->cx->scratch };
	buf_printf(&path, "%s/%s", a->figures, name);
	text_save(a->s->cx, path.s, svg);
	a->drawn[a->figure_count++] = name;
}

static const char *title_of(const Analysis *a, const char *what)
{
	Buf b = { .arena = &a->s->cx->scratch };
	buf_printf(&b, "%s, group %s, %u %s", what, a->group->name, a->items, a->average ? "means" : "cases");
	return b.s;
}

static void tree_draw(Analysis *a)
{
	Buf svg = { .arena = &a->s->cx->scratch }, axis = svg;
	if (a->items > MOST_LEAVES)
		return;
	buf_printf(&axis, "%s distance of activations (average linkage)", distance_names[a->kind]);
	tree_svg(&(TreePlot){ title_of(a, "Clusters"), axis.s, a->item_name, a->items, a->merge }, &svg);
	figure_save(a, "tree.svg", &svg);
}

static void plane_draw(Analysis *a, const char *file, PlanePlot p)
{
	Buf svg = { .arena = &a->s->cx->scratch };
	bool others = false;
	for (uint32_t i = 0; i < a->items; i++)
		others |= a->item_set[i] == a->sets;
	p.name = a->item_name;
	p.points = a->items;
	p.set = a->item_set;
	p.set_name = a->sets_text ? a->set_name : NULL;
	p.sets = a->sets + others;
	plane_svg(&p, &svg);
	figure_save(a, file, &svg);
}

static void planes_draw(Analysis *a)
{
	Arena *arena = &a->s->cx->scratch;
	Buf x = { .arena = arena }, y = x, title = x;
	if (a->items > MOST_POINTS)
		return;
	if (a->pca.count) {
		double(*at)[2] = arena_alloc(arena, a->items, sizeof *at);
		for (uint32_t i = 0; i < a->items; i++)
			for (uint32_t k = 0; k < 2; k++)
				at[i][k] = k < a->pca.count ? a->pca.score[(size_t)i * a->pca.count + k] : 0;
		double total = a->pca.total > 0 ? a->pca.total : 1;
		buf_printf(&x, "component 1 (%.1f %% of the variance)", 100 * a->pca.variance[0] / total);
		buf_printf(&y, "component 2 (%.1f %% of the variance)",
		           100 * (a->pca.count > 1 ? a->pca.variance[1] : 0) / total);
		plane_draw(a, "pca.svg",
		           (PlanePlot){ .title = title_of(a, "Principal components"), .x = x.s, .y = y.s, .at = at });
	}
	if (a->mds.at) {
		buf_printf(&title, "Scaling of %s distances", distance_names[a->kind]);
		plane_draw(a, "mds.svg",
		           (PlanePlot){ .title = title_of(a, title.s),
		                        .x = "dimension 1 (units of the distance)",
		                        .y = "dimension 2 (units of the distance)",
		                        .at = (double(*)[2])(void *)a->mds.at });
	}
}

/* Rows in the order of the tree: what is alike is adjacent. */
static void activations_draw(Analysis *a)
{
	Arena *arena = &a->s->cx->scratch;
	if ((uint64_t)a->items * a->units > MOST_CELLS || a->items > MOST_LEAVES)
		return;
	uint32_t *order = tree_order(arena, &(TreePlot){ .leaves = a->items, .merge = a->merge });
	const char **row = NEW(arena, a->items, const char *), **column = NEW(arena, a->units, const char *);
	double *v = NEW(arena, (size_t)a->items * a->units, double);
	for (uint32_t i = 0; i < a->items; i++) {
		row[i] = a->item_name[order[i]];
		for (uint32_t k = 0; k < a->units; k++)
			v[(size_t)i * a->units + k] = a->x[(size_t)order[i] * a->units + k];
	}
	for (uint32_t k = 0; k < a->units; k++) {
		Buf b = { .arena = arena };
		buf_printf(&b, "%u", k);
		column[k] = b.s;
	}
	Buf svg = { .arena = arena }, units = svg;
	buf_printf(&units, "unit of %s", a->group->name);
	HeatPlot plot = { .title = title_of(a, "Activations"),
		              .rows = a->average ? "mean over cases" : "case",
		              .columns = units.s,
		              .scale = "activation",
		              .row_name = row,
		              .column_name = column,
		              .value = v,
		              .height = a->items,
		              .width = a->units };
	heat_range(&plot, a->group);
	heat_svg(&plot, &svg);
	figure_save(a, "activations.svg", &svg);
}

static void bars_draw(Analysis *a, const char *file, const char *title, const char *axis, const uint32_t *order,
                      const double *value)
{
	Arena *arena = &a->s->cx->scratch;
	uint32_t n = a->units < MOST_BARS ? a->units : MOST_BARS;
	const char **name = NEW(arena, n, const char *);
	double *v = NEW(arena, n, double);
	for (uint32_t i = 0; i < n; i++) {
		name[i] = a->unit_name[order[i]];
		v[i] = value[order[i]];
	}
	Buf svg = { .arena = arena }, full = svg;
	buf_printf(&full, n < a->units ? "%s, the first %u of %u units" : "%s", title, n, a->units);
	bars_svg(&(BarPlot){ full.s, axis, name, v, n }, &svg);
	figure_save(a, file, &svg);
}

void analysis_draw(Analysis *a)
{
	Arena *arena = &a->s->cx->scratch;
	tree_draw(a);
	planes_draw(a);
	activations_draw(a);
	if (a->change) {
		double *v = NEW(arena, a->units, double);
		uint32_t *order = NEW(arena, a->units, uint32_t);
		for (uint32_t i = 0; i < a->units; i++) {
			uint32_t k = i;
			v[i] = a->change[i].error;
			for (; k > 0 && v[order[k - 1]] < v[i]; k--)
				order[k] = order[k - 1];
			order[k] = i;
		}
		bars_draw(a, "contribution.svg", "Contribution of units", "change of the mean error of a case without the unit",
		          order, v);
	}
	if (a->contrast) {
		double *v = NEW(arena, a->units, double);
		Buf title = { .arena = arena };
		for (uint32_t i = 0; i < a->units; i++)
			v[i] = a->contrast[i].d;
		buf_puts(&title, "Contrast of ");
		svg_cut(&title, a->set[a->contrasted[0]].name, 20);
		buf_puts(&title, " and ");
		svg_cut(&title, a->set[a->contrasted[1]].name, 20);
		bars_draw(a, "contrast.svg", title.s, "difference of mean activations (pooled standard deviations)",
		          contrast_order(a), v);
	}
}
