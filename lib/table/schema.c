/* SPDX-License-Identifier: MIT */
/* A schema as JSON, in the metadata of a model:
 *
 *     {"version":1,"task":"classes","columns":[
 *       {"name":"age","role":"input","kind":"number","offset":41.5,"factor":0.081,"indicator":true},
 *       {"name":"sex","role":"input","kind":"category","categories":["f","m"]},
 *       {"name":"species","role":"target","kind":"category","categories":["setosa","virginica"]}]}
 *
 * With "plain":true, of data that a topology file was trained on: names and roles only.
 *
 * The text comes from a file that anyone may have written: everything is checked. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "table.h"

const char *const column_roles[COLUMN_ROLES] = { "unused", "input", "target", "name", "weight", "sequence", "fold" };
const char *const value_kinds[VALUE_KINDS] = { "number", "binary", "category" };
const char *const task_names[TASK_COUNT] = { "none", "classes", "binary", "regression" };

enum { VERSION = 1 };

bool schema_find(const Schema *s, Text name, uint32_t *column)
{
	for (uint32_t i = 0; i < s->columns; i++) {
		if (text_is(name, s->column[i].name)) {
			*column = i;
			return true;
		}
	}
	return false;
}

const Field *schema_target(const Schema *s, uint32_t i)
{
	for (uint32_t k = 0; k < s->columns; k++)
		if (s->column[k].role == COLUMN_TARGET && i-- == 0)
			return &s->column[k];
	return NULL;
}

/* A column of plain data may be input and target. */
static bool names_unique(Ctx *cx, const Schema *s)
{
	Dict seen[COLUMN_ROLES] = { 0 };
	for (int i = 0; i < COLUMN_ROLES; i++)
		seen[i].arena = &cx->scratch;
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *c = &s->column[i];
		Dict *d = &seen[s->plain ? c->role : 0];
		uint32_t known = d->count;
		if (dict_add(d, (Text){ c->name, (uint32_t)strlen(c->name) }) != known)
			return false;
	}
	return true;
}

Schema *schema_plain(Ctx *cx, const Data *d)
{
	if (!d->columns || d->columns > MAX_COLUMNS)
		return NULL;
	Schema *s = NEW(&cx->keep, 1, Schema);
	*s = (Schema){ .column = NEW(&cx->keep, d->columns, Field), .columns = d->columns, .plain = true };
	for (uint32_t i = 0; i < d->columns; i++) {
		const DataColumn *c = &d->column[i];
		if (control_find(c->name, strlen(c->name)))
			return NULL;
		s->column[i] = (Field){ .name = c->name, .role = c->role, .factor = 1 };
		s->column[i].kind = c->label ? VALUE_CATEGORY : VALUE_NUMBER;
	}
	if (!names_unique(cx, s))
		return NULL;
	schema_units(cx, s);
	return s;
}

void schema_units(Ctx *cx, Schema *s)
{
	uint64_t inputs = 0, targets = 0;
	for (uint32_t i = 0; i < s->columns; i++) {
		Field *c = &s->column[i];
		uint64_t *total = c->role == COLUMN_TARGET ? &targets : &inputs;
		c->units = 0;
		if (c->role != COLUMN_INPUT && c->role != COLUMN_TARGET)
			continue;
		c->unit = (uint32_t)*total;
		c->units =
			(c->kind == VALUE_CATEGORY && !s->plain ? c->categories : 1) + (c->role == COLUMN_INPUT && c->indicator);
		*total += c->units;
		if (*total > MAX_UNITS)
			fail(cx, MP_BAD_INPUT, "choose fewer columns with --inputs", "the columns need more than %u units",
			     MAX_UNITS);
	}
	s->inputs = (uint32_t)inputs;
	s->targets = (uint32_t)targets;
}

Schema *schema_copy(Arena *a, const Schema *s)
{
	Schema *copy = NEW(a, 1, Schema);
	*copy = *s;
	copy->column = NEW(a, s->columns, Field);
	for (uint32_t i = 0; i < s->columns; i++) {
		Field *c = &copy->column[i];
		*c = s->column[i];
		c->name = arena_copy(a, c->name, strlen(c->name));
		c->category = classes_copy(a, c->category, c->categories);
	}
	return copy;
}

/* ---- writing ---- */

void schema_print(const Schema *s, Buf *json)
{
	JsonWriter j = { .out = json };
	jw_start(&j, NULL, '{');
	jw_count(&j, "version", VERSION);
	jw_text(&j, "task", task_names[s->task]);
	if (s->plain)
		jw_flag(&j, "plain", true);
	jw_start(&j, "columns", '[');
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *c = &s->column[i];
		if (c->role == COLUMN_UNUSED)
			continue;
		jw_start(&j, NULL, '{');
		jw_text(&j, "name", name_escape(json->arena, c->name));
		jw_text(&j, "role", column_roles[c->role]);
		if (c->role == COLUMN_INPUT || c->role == COLUMN_TARGET)
			jw_text(&j, "kind", value_kinds[c->kind]);
		if (s->plain) { /* numbers as they are; the model's classes are those of a label */
			jw_end(&j, '}');
			continue;
		}
		if (c->units && c->kind == VALUE_NUMBER) {
			jw_real(&j, "offset", "%.17g", c->offset);
			jw_real(&j, "factor", "%.17g", c->factor);
			if (c->fill != 0)
				jw_real(&j, "fill", "%.17g", c->fill);
			if (c->wide)
				jw_flag(&j, "wide", true);
		}
		if (c->units && c->kind == VALUE_CATEGORY) {
			jw_start(&j, "categories", '[');
			for (uint32_t k = 0; k < c->categories; k++)
				jw_text(&j, NULL, name_escape(json->arena, c->category[k]));
			jw_end(&j, ']');
		}
		if (c->indicator)
			jw_flag(&j, "indicator", true);
		jw_end(&j, '}');
	}
	jw_end(&j, ']');
	jw_end(&j, '}');
}

/* ---- reading ---- */

static const char *name_of(const MetaReader *r, const json_t *v, const char *what)
{
	const char *text = json_string_value(v);
	const char *name = text && json_string_length(v) == strlen(text) ? name_read(&r->cx->keep, text) : NULL;
	if (!name || control_find(name, strlen(name)))
		meta_wrong(r, what);
	return name;
}

static double finite_of(const MetaReader *r, const json_t *v, const char *what)
{
	double x = json_number_value(v);
	if (!json_is_number(v) || !isfinite(x))
		meta_wrong(r, what);
	return x;
}

static void read_categories(const MetaReader *r, const json_t *list, Field *c)
{
	size_t n = json_array_size(list);
	uint32_t most = c->role == COLUMN_TARGET ? (uint32_t)LABEL_CLASSES : (uint32_t)MAX_CATEGORIES;
	if (!json_is_array(list) || n == 0 || n > most)
		meta_wrong(r, "a column has no categories, or too many");
	const char **category = NEW(&r->cx->keep, n, const char *);
	Dict seen = { .arena = &r->cx->scratch };
	for (size_t i = 0; i < n; i++) {
		category[i] = name_of(r, json_array_get(list, i), "a category is no name");
		if (dict_add(&seen, (Text){ category[i], (uint32_t)strlen(category[i]) }) != i)
			meta_wrong(r, "a category is listed twice");
	}
	c->category = category;
	c->categories = (uint32_t)n;
}

static void read_column(const MetaReader *r, const json_t *v, bool plain, Field *c)
{
	c->name = name_of(r, json_object_get(v, "name"), "a column has no name");
	c->role = meta_word(r, json_object_get(v, "role"), column_roles, COLUMN_ROLES, "a column has no role");
	if (c->role != COLUMN_INPUT && c->role != COLUMN_TARGET)
		return;
	c->kind = meta_word(r, json_object_get(v, "kind"), value_kinds, VALUE_KINDS, "a column has no kind");
	c->indicator = c->role == COLUMN_INPUT && json_is_true(json_object_get(v, "indicator"));
	c->factor = 1;
	if (plain)
		return;
	if (c->kind == VALUE_CATEGORY)
		read_categories(r, json_object_get(v, "categories"), c);
	if (c->kind == VALUE_NUMBER) {
		c->offset = finite_of(r, json_object_get(v, "offset"), "an offset is no number");
		c->factor = finite_of(r, json_object_get(v, "factor"), "a factor is no number");
		if (c->factor == 0)
			meta_wrong(r, "a factor is zero");
		const json_t *fill = json_object_get(v, "fill"); /* without: 0 */
		if (fill)
			c->fill = finite_of(r, fill, "a fill is no number");
		c->wide = json_is_true(json_object_get(v, "wide"));
	}
}

/* Targets of one kind, as the task says. */
static void check_task(const MetaReader *r, const Schema *s)
{
	static const int kinds[TASK_COUNT] = { -1, VALUE_CATEGORY, VALUE_BINARY, VALUE_NUMBER };
	uint32_t targets = 0;
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *c = &s->column[i];
		if (c->role != COLUMN_TARGET)
			continue;
		targets++;
		if (c->kind != kinds[s->task])
			meta_wrong(r, "a target is not of the kind of the task");
	}
	if ((s->task == TASK_NONE) != (targets == 0) || (s->task == TASK_CLASSES && targets != 1))
		meta_wrong(r, "the number of targets does not fit the task");
}

Schema *schema_parse(Ctx *cx, Loc at, const char *json)
{
	MetaReader r = { cx, at, "schema" };
	const json_t *tree = meta_read(&r, json, VERSION), *list = json_object_get(tree, "columns");
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > MAX_COLUMNS)
		meta_wrong(&r, "it has no columns, or too many");
	Schema *s = NEW(&cx->keep, 1, Schema);
	s->columns = (uint32_t)json_array_size(list);
	s->column = NEW(&cx->keep, s->columns, Field);
	s->task = meta_word(&r, json_object_get(tree, "task"), task_names, TASK_COUNT, "it has no task");
	s->plain = json_is_true(json_object_get(tree, "plain"));
	for (uint32_t i = 0; i < s->columns; i++)
		read_column(&r, json_array_get(list, i), s->plain, &s->column[i]);
	if (!names_unique(cx, s))
		meta_wrong(&r, "a column is listed twice");
	if (!s->plain)
		check_task(&r, s);
	schema_units(cx, s);
	if (!s->inputs)
		meta_wrong(&r, "it has no inputs");
	return s;
}
