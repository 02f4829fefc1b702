/* SPDX-License-Identifier: MIT */
/* What a case of an exported network is.  In: scale, schema and classes of a model.  Out: the numbers that a case has,
 * and how each input unit follows from them, as table_encode and data_scale_apply do it. */
#include <math.h>
#include <string.h>

#include "export.h"

static void table_feeds(Ctx *cx, const Schema *s, Columns *c)
{
	for (uint32_t i = 0; i < s->columns; i++)
		c->count += s->column[i].role == COLUMN_INPUT;
	c->name = NEW(&cx->scratch, c->count, const char *);
	c->field = NEW(&cx->scratch, c->count, const Field *);
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *f = &s->column[i];
		if (f->role != COLUMN_INPUT)
			continue;
		c->name[n] = f->name;
		c->field[n] = f;
		c->wide |= f->wide && f->kind == VALUE_NUMBER;
		for (uint32_t k = 0; k < f->units; k++) {
			Feed *u = &c->feed[f->unit + k];
			*u = (Feed){ .kind = FEED_NUMBER, .column = n, .wide = f->wide, .offset = f->offset, .factor = f->factor };
			if (f->indicator && k + 1 == f->units)
				u->kind = FEED_MISSING;
			else if (f->kind == VALUE_CATEGORY)
				u->kind = FEED_CATEGORY;
			u->fill = f->kind == VALUE_NUMBER ? f->fill : 0;
			u->category = k;
		}
		n++;
	}
}

static void table_targets(Ctx *cx, const Model *m, Columns *c)
{
	const Schema *s = m->schema;
	uint32_t n = 0;
	c->classes = s->task == TASK_CLASSES;
	c->bits = s->task == TASK_BINARY;
	c->target = NEW(&cx->scratch, m->net->outputs, const char *);
	if (s->task == TASK_REGRESSION) {
		c->offset = NEW(&cx->scratch, m->net->outputs, double);
		c->factor = NEW(&cx->scratch, m->net->outputs, double);
	}
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *f = &s->column[i];
		for (uint32_t k = 0; f->role == COLUMN_TARGET && k < f->units; k++, n++) {
			c->target[n] = f->kind == VALUE_CATEGORY ? f->category[k] : f->name;
			if (c->offset) {
				c->offset[n] = f->kind == VALUE_NUMBER ? f->offset : 0;
				c->factor[n] = f->kind == VALUE_NUMBER ? f->factor : 1;
			}
		}
	}
}

static void plain_feeds(Ctx *cx, const Model *m, Columns *c)
{
	const Schema *s = m->schema;
	bool scaled = m->scale.kind != SCALE_NONE;
	uint32_t n = 0;
	c->count = m->net->inputs;
	for (uint32_t i = 0; i < c->count; i++)
		c->feed[i] = (Feed){ .kind = FEED_PLAIN,
			                 .column = i,
			                 .offset = scaled ? m->scale.offset[i] : 0,
			                 .factor = scaled ? m->scale.factor[i] : 1 };
	if (s && s->inputs == c->count) {
		c->name = NEW(&cx->scratch, c->count, const char *);
		for (uint32_t i = 0; i < s->columns && n < c->count; i++)
			if (s->column[i].role == COLUMN_INPUT)
				c->name[n++] = s->column[i].name;
		c->name = n == c->count ? c->name : NULL;
	}
	c->classes = m->classes != NULL;
	if (m->classes) {
		c->target = NEW(&cx->scratch, m->net->outputs, const char *);
		memcpy(c->target, m->classes, m->net->outputs * sizeof *c->target);
	}
}

Columns *columns_make(Ctx *cx, const Model *m)
{
	Columns *c = NEW(&cx->scratch, 1, Columns);
	c->feed = NEW(&cx->scratch, m->net->inputs, Feed);
	c->table = m->schema && !m->schema->plain;
	if (c->table) {
		table_feeds(cx, m->schema, c);
		table_targets(cx, m, c);
	} else {
		plain_feeds(cx, m, c);
	}
	for (uint32_t i = 0; i < m->net->inputs; i++)
		c->scaled |= c->feed[i].offset != 0 || c->feed[i].factor != 1;
	return c;
}

void columns_encode(const Columns *c, uint32_t inputs, const double *row, float *x)
{
	for (uint32_t i = 0; i < inputs; i++) {
		const Feed *f = &c->feed[i];
		double v = f->wide ? row[f->column] : (double)(float)row[f->column];
		if (f->kind == FEED_CATEGORY)
			x[i] = v == f->category;
		else if (f->kind == FEED_MISSING)
			x[i] = isnan(v);
		else
			x[i] = f->kind == FEED_NUMBER && isnan(v) ? (float)f->fill : (float)((v - f->offset) * f->factor);
	}
}

static void names_put(JsonWriter *j, const char *key, const char *const *name, uint32_t count)
{
	jw_start(j, key, '[');
	for (uint32_t i = 0; i < count; i++)
		jw_text(j, NULL, name[i]);
	jw_end(j, ']');
}

void columns_describe(const Columns *c, const Model *m, Buf *json)
{
	JsonWriter j = { .out = json };
	jw_start(&j, NULL, '{');
	jw_count(&j, "inputs", c->count);
	jw_count(&j, "outputs", m->net->outputs);
	if (c->name) {
		jw_start(&j, "columns", '[');
		for (uint32_t i = 0; i < c->count; i++) {
			jw_start(&j, NULL, '{');
			jw_text(&j, "name", c->name[i]);
			if (c->field && c->field[i]->kind == VALUE_CATEGORY)
				names_put(&j, "categories", c->field[i]->category, c->field[i]->categories);
			jw_end(&j, '}');
		}
		jw_end(&j, ']');
	}
	if (c->target)
		names_put(&j, c->classes ? "classes" : "targets", c->target, m->net->outputs);
	jw_text(&j, "network", m->net->fingerprint);
	jw_text(&j, "fingerprint", m->fingerprint);
	jw_end(&j, '}');
}
