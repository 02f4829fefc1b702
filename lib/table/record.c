/* SPDX-License-Identifier: MIT */
/* Metrics as JSON, in the metadata of a model: those of the rows held out when it was saved.
 *
 *     {"version":1,"kind":"classes","cases":30,"held_out":true,"accuracy":0.9667,"log_loss":0.11,"auc":0.99,
 *      "bits_right":null,"rmse":null,"mae":null,"r2":null,"confusion":[[10,0,0],...],
 *      "per_class":[{"cases":10,"precision":1,"recall":1,"f1":1,"auc":1},...]}
 *
 * The text comes from a file that anyone may have written: everything is checked. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "table.h"

enum { VERSION = 1 };

const char *const metrics_kinds[METRICS_KINDS] = { "classes", "binary", "bits", "numbers" };

/* Every figure with its range. */
typedef struct Figure {
	const char *key;
	size_t off;
	double low, high;
} Figure;

static const Figure figures[] = {
	{ "accuracy", offsetof(Metrics, accuracy), 0, 1 }, { "log_loss", offsetof(Metrics, log_loss), 0, INFINITY },
	{ "auc", offsetof(Metrics, auc), 0, 1 },           { "bits_right", offsetof(Metrics, bits_right), 0, 1 },
	{ "rmse", offsetof(Metrics, rmse), 0, INFINITY },  { "mae", offsetof(Metrics, mae), 0, INFINITY },
	{ "r2", offsetof(Metrics, r2), -INFINITY, 1 },
};
static const Figure class_figures[] = {
	{ "precision", offsetof(ClassMetrics, precision), 0, 1 },
	{ "recall", offsetof(ClassMetrics, recall), 0, 1 },
	{ "f1", offsetof(ClassMetrics, f1), 0, 1 },
	{ "auc", offsetof(ClassMetrics, auc), 0, 1 },
};

static double figure_get(const Figure *f, const void *from)
{
	double v;
	memcpy(&v, (const char *)from + f->off, sizeof v);
	return v;
}

void metrics_print(const Metrics *m, Buf *json)
{
	JsonWriter j = { .out = json };
	uint32_t classes = m->classes <= RECORDED_CLASSES && m->confusion ? m->classes : 0;
	jw_start(&j, NULL, '{');
	jw_count(&j, "version", VERSION);
	jw_text(&j, "kind", metrics_kinds[m->kind]);
	jw_count(&j, "cases", m->cases);
	jw_flag(&j, "held_out", m->held_out);
	for (size_t i = 0; i < COUNT(figures); i++)
		jw_real(&j, figures[i].key, "%.17g", figure_get(&figures[i], m));
	jw_start(&j, "confusion", '[');
	for (uint32_t i = 0; i < classes; i++) {
		jw_start(&j, NULL, '[');
		for (uint32_t k = 0; k < classes; k++)
			jw_count(&j, NULL, m->confusion[(size_t)i * classes + k]);
		jw_end(&j, ']');
	}
	jw_end(&j, ']');
	jw_start(&j, "per_class", '[');
	for (uint32_t i = 0; i < classes; i++) {
		jw_start(&j, NULL, '{');
		jw_count(&j, "cases", m->per_class[i].cases);
		for (size_t k = 0; k < COUNT(class_figures); k++)
			jw_real(&j, class_figures[k].key, "%.17g", figure_get(&class_figures[k], &m->per_class[i]));
		jw_end(&j, '}');
	}
	jw_end(&j, ']');
	jw_end(&j, '}');
}

Metrics *metrics_copy(Arena *a, const Metrics *m)
{
	Metrics *copy = NEW(a, 1, Metrics);
	size_t cells = (size_t)m->classes * m->classes;
	*copy = *m;
	if (m->confusion)
		copy->confusion = memcpy(NEW(a, cells, uint64_t), m->confusion, cells * sizeof *m->confusion);
	if (m->per_class)
		copy->per_class = memcpy(NEW(a, m->classes, ClassMetrics), m->per_class, m->classes * sizeof *m->per_class);
	return copy;
}

/* ---- reading ---- */

static uint64_t count_of(const MetaReader *r, const json_t *v)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		meta_wrong(r, "a count is no whole number from 0 up");
	return (uint64_t)json_integer_value(v);
}

/* null: not meaningful. */
static void read_figure(const MetaReader *r, const json_t *from, const Figure *f, void *into)
{
	const json_t *v = json_object_get(from, f->key);
	double x = json_is_null(v) ? (double)NAN : json_number_value(v);
	if (!json_is_null(v) && (!json_is_number(v) || !(x >= f->low && x <= f->high)))
		meta_wrong(r, "a figure is missing, or out of its range");
	memcpy((char *)into + f->off, &x, sizeof x);
}

static void read_classes(const MetaReader *r, const json_t *tree, uint32_t outputs, Metrics *m)
{
	const json_t *matrix = json_object_get(tree, "confusion"), *list = json_object_get(tree, "per_class");
	uint32_t n = m->kind == METRICS_CLASSES ? outputs : m->kind == METRICS_BINARY ? 2 : 0;
	uint64_t sum = 0;
	if (n == 0 || n > RECORDED_CLASSES)
		return;
	if (!json_is_array(matrix) || !json_is_array(list) || json_array_size(matrix) != n || json_array_size(list) != n)
		meta_wrong(r, "the confusion matrix does not fit the outputs of the network");
	m->classes = n;
	m->confusion = NEW(&r->cx->keep, (size_t)n * n, uint64_t);
	m->per_class = NEW(&r->cx->keep, n, ClassMetrics);
	for (uint32_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(matrix, i), *class = json_array_get(list, i);
		if (!json_is_array(row) || json_array_size(row) != n || !json_is_object(class))
			meta_wrong(r, "the confusion matrix does not fit the outputs of the network");
		for (uint32_t k = 0; k < n; k++) {
			uint64_t c = m->confusion[(size_t)i * n + k] = count_of(r, json_array_get(row, k));
			sum = c > m->cases || sum > m->cases ? UINT64_MAX : sum + c;
		}
		m->per_class[i].cases = count_of(r, json_object_get(class, "cases"));
		for (size_t k = 0; k < COUNT(class_figures); k++)
			read_figure(r, class, &class_figures[k], &m->per_class[i]);
	}
	if (sum != m->cases)
		meta_wrong(r, "the confusion matrix does not add up to the number of cases");
}

Metrics *metrics_parse(Ctx *cx, Loc at, const char *json, uint32_t outputs)
{
	MetaReader r = { cx, at, "record of metrics" };
	const json_t *tree = meta_read(&r, json, VERSION);
	Metrics *m = NEW(&cx->keep, 1, Metrics);
	m->kind = meta_word(&r, json_object_get(tree, "kind"), metrics_kinds, METRICS_KINDS, "it has no kind");
	m->cases = count_of(&r, json_object_get(tree, "cases"));
	m->weight = (double)m->cases;
	m->held_out = json_is_true(json_object_get(tree, "held_out"));
	for (size_t i = 0; i < COUNT(figures); i++)
		read_figure(&r, tree, &figures[i], m);
	read_classes(&r, tree, outputs, m);
	return m;
}
