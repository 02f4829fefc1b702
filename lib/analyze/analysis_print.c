/* SPDX-License-Identifier: MIT */
/* The report of an analysis as text, JSON and CSV. */
#include <inttypes.h>
#include <math.h>

#include "inside.h"

enum { TEXT_LEAVES = 80, TEXT_UNITS = 40 };

/* ---- text ---- */

static void components_text(const Analysis *a, Buf *t)
{
	double sum = 0;
	buf_puts(t, a->pca.count ? "\nprincipal components: share of the variance\n"
	                         : "\nprincipal components are left out: the group and the cases are too many\n");
	for (uint32_t k = 0; k < a->pca.count; k++) {
		double share = a->pca.total > 0 ? a->pca.variance[k] / a->pca.total : 0;
		sum += share;
		buf_printf(t, "  %u %8.1f %%   together %6.1f %%\n", k + 1, 100 * share, 100 * sum);
	}
	if (a->mds.at)
		buf_printf(t, "two dimensions of scaling hold %.1f %% of the %s distances\n", 100 * a->mds.share,
		           distance_names[a->kind]);
}

static void units_text(const Analysis *a, Buf *t)
{
	Arena *arena = t->arena;
	Source *from = NEW(arena, a->top, Source);
	uint32_t *item = NEW(arena, a->top, uint32_t);
	buf_printf(t, "\nunits: strongest links, %s that activate it most%s\n", a->average ? "means" : "cases",
	           a->change ? ", change of error without it" : "");
	for (uint32_t i = 0; i < a->units && i < TEXT_UNITS; i++) {
		uint32_t n = sources_of(a, i, (uint32_t)a->top, from), m = items_for(a, i, (uint32_t)a->top, item);
		buf_printf(t, "%s", a->unit_name[i]);
		if (a->change)
			buf_printf(t, "  %+.4g", a->change[i].error);
		buf_puts(t, "\n   from");
		for (uint32_t k = 0; k < n; k++) {
			char name[200];
			net_unit_name(a->s->net, from[k].from, name, sizeof name);
			buf_printf(t, " %s %.3g%s", name, from[k].weight, k + 1 < n ? "," : "");
		}
		buf_puts(t, n ? "\n   by  " : " nothing\n   by  ");
		for (uint32_t k = 0; k < m; k++)
			buf_printf(t, " %s %.3g%s", text_escaped(arena, a->item_name[item[k]]),
			           a->x[(size_t)item[k] * a->units + i], k + 1 < m ? "," : "");
		buf_puts(t, "\n");
	}
	if (a->units > TEXT_UNITS)
		buf_printf(t, "... and %u more units: see --json\n", a->units - TEXT_UNITS);
}

static void contrast_text(const Analysis *a, Buf *t)
{
	const uint32_t *order = contrast_order(a);
	buf_printf(t, "\ncontrast of %s and %s: mean activations, difference in pooled standard deviations\n",
	           text_escaped(t->arena, a->set[a->contrasted[0]].name),
	           text_escaped(t->arena, a->set[a->contrasted[1]].name));
	for (uint32_t i = 0; i < a->units && i < TEXT_UNITS; i++) {
		const Contrast *c = &a->contrast[order[i]];
		buf_printf(t, "%-20s %8.4f %8.4f %8.3f\n", a->unit_name[order[i]], c->mean[0], c->mean[1], c->d);
	}
}

static void report_text(const Analysis *a, Buf *t)
{
	Arena *arena = t->arena;
	Buf axis = { .arena = arena };
	buf_printf(t, "# %s on %s: group %s, %u units, %u %s\n", text_escaped(arena, a->s->net->name),
	           text_escaped(arena, a->s->data->name), a->group->name, a->units, a->items,
	           a->average ? "means" : "cases");
	buf_printf(&axis, "%s distance", distance_names[a->kind]);
	if (a->items <= TEXT_LEAVES) {
		buf_puts(t, "\n");
		tree_text(&(TreePlot){ "", axis.s, a->item_name, a->items, a->merge }, t);
	} else {
		buf_printf(t, "\nthe tree of more than %d items is in --json and --figures\n", TEXT_LEAVES);
	}
	components_text(a, t);
	units_text(a, t);
	if (a->contrast)
		contrast_text(a, t);
	if (a->figures) {
		buf_printf(t, "\ndrawn in %s:", text_escaped(arena, a->figures));
		for (uint32_t i = 0; i < a->figure_count; i++)
			buf_printf(t, "%s %s", i ? "," : "", a->drawn[i]);
		buf_puts(t, "\n");
	}
}

/* ---- JSON ---- */

static void numbers(JsonWriter *j, const char *key, const double *v, uint64_t n)
{
	jw_start(j, key, '[');
	for (uint64_t i = 0; i < n; i++)
		jw_real(j, NULL, "%.10g", v[i]);
	jw_end(j, ']');
}

static void space_json(const Analysis *a, JsonWriter *j)
{
	jw_start(j, "items", '[');
	for (uint32_t i = 0; i < a->items; i++)
		jw_text(j, NULL, a->item_name[i]);
	jw_end(j, ']');
	jw_text(j, "distance", distance_names[a->kind]);
	jw_start(j, "tree", '[');
	for (uint32_t i = 0; i + 1 < a->items; i++) {
		jw_start(j, NULL, '{');
		jw_count(j, "a", a->merge[i].a);
		jw_count(j, "b", a->merge[i].b);
		jw_real(j, "distance", "%.10g", a->merge[i].distance);
		jw_end(j, '}');
	}
	jw_end(j, ']');
	if (a->pca.count) {
		jw_start(j, "pca", '{');
		numbers(j, "variance", a->pca.variance, a->pca.count);
		jw_real(j, "total_variance", "%.10g", a->pca.total);
		jw_start(j, "loadings", '[');
		for (uint32_t k = 0; k < a->pca.count; k++)
			numbers(j, NULL, a->pca.loading + (size_t)k * a->units, a->units);
		jw_end(j, ']');
		jw_start(j, "scores", '[');
		for (uint32_t i = 0; i < a->items; i++)
			numbers(j, NULL, a->pca.score + (size_t)i * a->pca.count, a->pca.count);
		jw_end(j, ']');
		jw_end(j, '}');
	}
	if (a->mds.at) {
		jw_start(j, "mds", '{');
		jw_real(j, "share", "%.10g", a->mds.share);
		jw_start(j, "coordinates", '[');
		for (uint32_t i = 0; i < a->items; i++)
			numbers(j, NULL, a->mds.at + 2 * (size_t)i, 2);
		jw_end(j, ']');
		jw_end(j, '}');
	}
}

static void unit_json(const Analysis *a, JsonWriter *j, uint32_t i, Source *from, uint32_t *item)
{
	uint32_t n = sources_of(a, i, (uint32_t)a->top, from), m = items_for(a, i, (uint32_t)a->top, item);
	jw_start(j, NULL, '{');
	jw_text(j, "unit", a->unit_name[i]);
	jw_start(j, "sources", '[');
	for (uint32_t k = 0; k < n; k++) {
		char name[200];
		net_unit_name(a->s->net, from[k].from, name, sizeof name);
		jw_start(j, NULL, '{');
		jw_text(j, "from", name);
		jw_real(j, "weight", "%.9g", from[k].weight);
		jw_end(j, '}');
	}
	jw_end(j, ']');
	jw_start(j, "activated_by", '[');
	for (uint32_t k = 0; k < m; k++) {
		jw_start(j, NULL, '{');
		jw_text(j, "item", a->item_name[item[k]]);
		jw_real(j, "activation", "%.9g", a->x[(size_t)item[k] * a->units + i]);
		jw_end(j, '}');
	}
	jw_end(j, ']');
	if (a->change) {
		jw_start(j, "contribution", '{');
		jw_real(j, "error", "%.9g", a->change[i].error);
		jw_real(j, "right", "%.9g", a->change[i].right);
		jw_real(j, "within", "%.9g", a->change[i].within);
		jw_end(j, '}');
	}
	if (a->contrast) {
		jw_start(j, "contrast", '{');
		numbers(j, "mean", a->contrast[i].mean, 2);
		numbers(j, "sd", a->contrast[i].sd, 2);
		jw_real(j, "d", "%.9g", a->contrast[i].d);
		jw_end(j, '}');
	}
	jw_end(j, '}');
}

static void report_json(const Analysis *a, Buf *out)
{
	JsonWriter writer = { .out = out }, *j = &writer;
	Source *from = NEW(out->arena, a->top, Source);
	uint32_t *item = NEW(out->arena, a->top, uint32_t);
	jw_start(j, NULL, '{');
	jw_text(j, "network", a->s->net->name);
	jw_text(j, "data", a->s->data->name);
	jw_count(j, "cases", a->s->data->cases);
	jw_text(j, "group", a->group->name);
	jw_text(j, "average", a->average);
	space_json(a, j);
	if (a->contrast) {
		jw_start(j, "contrasted", '[');
		for (int k = 0; k < 2; k++)
			jw_text(j, NULL, a->set[a->contrasted[k]].name);
		jw_end(j, ']');
	}
	jw_start(j, "units", '[');
	for (uint32_t i = 0; i < a->units; i++)
		unit_json(a, j, i, from, item);
	jw_end(j, ']');
	if (a->figures) {
		jw_text(j, "figures_folder", a->figures);
		jw_start(j, "figures", '[');
		for (uint32_t i = 0; i < a->figure_count; i++)
			jw_text(j, NULL, a->drawn[i]);
		jw_end(j, ']');
	}
	jw_end(j, '}');
	buf_puts(out, "\n");
}

/* ---- CSV ---- */

/* A line for each item: name, set, components, scaling, activations. */
static void items_csv(const Analysis *a)
{
	Arena *arena = &a->s->cx->scratch;
	Buf csv = { .arena = arena };
	uint32_t n = 2 + a->pca.count + (a->mds.at ? 2 : 0) + a->units, c;
	Column *column = NEW(arena, n, Column);
	TableCell *cell = NEW(arena, n, TableCell);
	column[0].key = "item";
	column[1].key = "set";
	for (c = 2; c < n; c++) {
		Buf key = { .arena = arena };
		uint32_t k = c - 2;
		if (k < a->pca.count)
			buf_printf(&key, "pca%u", k + 1);
		else if (k - a->pca.count < (a->mds.at ? 2u : 0))
			buf_printf(&key, "mds%u", k - a->pca.count + 1);
		else
			buf_puts(&key, a->unit_name[k - a->pca.count - (a->mds.at ? 2 : 0)]);
		column[c] = (Column){ .key = key.s, .exact = "%.9g" };
	}
	const Table t = { .column = column, .columns = n, .csv = &csv };
	table_start(&t, NULL);
	for (uint32_t i = 0; i < a->items; i++) {
		c = 0;
		cell[c++] = tc_text(a->item_name[i]);
		cell[c++] = tc_text(a->set_name[a->item_set[i]]);
		for (uint32_t k = 0; k < a->pca.count; k++)
			cell[c++] = tc_real(a->pca.score[(size_t)i * a->pca.count + k]);
		for (uint32_t k = 0; a->mds.at && k < 2; k++)
			cell[c++] = tc_real(a->mds.at[2 * (size_t)i + k]);
		for (uint32_t k = 0; k < a->units; k++)
			cell[c++] = tc_real(a->x[(size_t)i * a->units + k]);
		table_row(&t, cell);
	}
	text_save(a->s->cx, a->csv, &csv);
}

static void distances_csv(const Analysis *a)
{
	Arena *arena = &a->s->cx->scratch;
	Buf csv = { .arena = arena };
	Column *column = NEW(arena, a->items + 1, Column);
	TableCell *cell = NEW(arena, a->items + 1, TableCell);
	column[0].key = "item";
	for (uint32_t i = 0; i < a->items; i++)
		column[i + 1] = (Column){ .key = a->item_name[i], .exact = "%.9g" };
	const Table t = { .column = column, .columns = a->items + 1, .csv = &csv };
	table_start(&t, NULL);
	for (uint32_t i = 0; i < a->items; i++) {
		cell[0] = tc_text(a->item_name[i]);
		for (uint32_t k = 0; k < a->items; k++)
			cell[k + 1] = tc_real(a->distance[(size_t)i * a->items + k]);
		table_row(&t, cell);
	}
	text_save(a->s->cx, a->distances_file, &csv);
}

void analysis_print(Analysis *a, Buf *out)
{
	if (a->csv)
		items_csv(a);
	if (a->distances_file)
		distances_csv(a);
	if (a->as_json)
		report_json(a, out);
	else
		report_text(a, out);
}
