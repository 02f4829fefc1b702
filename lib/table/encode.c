/* SPDX-License-Identifier: MIT */
/* Rows of a table as cases of a network.  In: a table, a schema, the part of every row.  Out: Data.
 *
 * Columns of the schema are found in the table by name, in any order.  A missing number is the mean of the training
 * rows; a word that training has not seen is none of the categories: all its units are 0.
 * Sums run in double over the rows in order: the same bits everywhere. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "table.h"

/* ---- fitting ---- */

typedef struct Extent {
	double mean, deviation, low, high;
	uint64_t n; /* values, the missing ones aside */
} Extent;

static void scale_field(Field *c, int scale, bool pixel, const Extent *e)
{
	double width = scale == SCALE_RANGE ? (pixel ? 255 : e->high - e->low) : e->deviation;
	c->offset = scale == SCALE_ZSCORE ? e->mean : scale == SCALE_RANGE && !pixel ? e->low : 0;
	c->factor = scale != SCALE_NONE && width > 0 && isfinite(1 / width) ? 1 / width : 1;
	c->fill = c->role == COLUMN_INPUT ? (e->mean - c->offset) * c->factor : 0;
}

/* By the training rows.  Targets: mean 0 and deviation 1.  Inputs as s->scale asks for; a range of pixels is that of a
 * byte.  One value only: all become 0. */
void schema_fit(Ctx *cx, Schema *s, const Frame *t, const uint8_t *part)
{
	double *value = NEW(&cx->scratch, t->columns, double);
	Extent *extent = NEW(&cx->scratch, t->columns, Extent);
	uint64_t *missing = NEW(&cx->scratch, t->columns, uint64_t);
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < t->rows; i++) {
			if (part && part[i] != PART_TRAIN)
				continue;
			row_values(t, i, value);
			for (uint32_t k = 0; k < t->columns; k++) {
				Extent *e = &extent[k];
				double v = value[k];
				if (!s->column[k].units)
					continue;
				if (isnan(value[k])) {
					missing[k] += pass;
				} else if (pass == 0) {
					e->mean += v;
					e->low = e->n ? fmin(e->low, v) : v;
					e->high = e->n ? fmax(e->high, v) : v;
					e->n++;
				} else {
					e->deviation += (v - e->mean) * (v - e->mean);
				}
			}
		}
		for (uint32_t k = 0; k < t->columns && pass == 0; k++)
			extent[k].mean /= extent[k].n ? (double)extent[k].n : 1;
	}
	for (uint32_t k = 0; k < t->columns; k++) {
		Field *c = &s->column[k];
		extent[k].deviation = extent[k].n ? sqrt(extent[k].deviation / (double)extent[k].n) : 0;
		c->indicator = c->role == COLUMN_INPUT && missing[k] > 0;
		c->offset = c->fill = 0;
		c->factor = 1;
		if (c->kind == VALUE_NUMBER && c->units)
			scale_field(c, c->role == COLUMN_INPUT ? s->scale : SCALE_ZSCORE, t->images, &extent[k]);
	}
	schema_units(cx, s);
}

double target_decode(const Field *c, double encoded)
{
	return c->kind == VALUE_NUMBER ? encoded / c->factor + c->offset : encoded;
}

/* ---- matching ---- */

/* Where a column of the schema is in a table. */
typedef struct Place {
	int64_t column; /* -1: not there */
	int32_t *unit;  /* category: the unit of every word of the table; -1: not seen in training */
} Place;

static bool number_of(Text t, double *v)
{
	float narrow;
	if (!t.len || number_read(t.s, t.s + t.len, &narrow) != t.s + t.len)
		return false;
	*v = isfinite(narrow) ? number_double(t.s, t.s + t.len) : (double)narrow;
	return true;
}

/* Names of categories are float32 numbers; from 2^24 on, where these merge whole numbers, float64. */
static bool same_number(double a, double b) { return a == b || (fabs(a) < 16777216 && (float)a == (float)b); }

/* The category that a word is; 1.0 is the same as 1. */
static int32_t category_find(const Dict *known, const Field *c, Text word)
{
	uint32_t k;
	double v, w;
	if (dict_find(known, word, &k))
		return (int32_t)k;
	if (!number_of(word, &v))
		return -1;
	for (k = 0; k < c->categories; k++) {
		const char *name = c->category[k];
		if (number_of((Text){ name, (uint32_t)strlen(name) }, &w) && same_number(v, w))
			return (int32_t)k;
	}
	return -1;
}

static void match_words(Ctx *cx, const FrameColumn *from, const Field *c, Place *p)
{
	Dict known = { .arena = &cx->scratch };
	for (uint32_t k = 0; k < c->categories; k++)
		dict_add(&known, (Text){ c->category[k], (uint32_t)strlen(c->category[k]) });
	p->unit = NEW(&cx->scratch, from->words.count, int32_t);
	for (uint32_t w = 0; w < from->words.count; w++)
		p->unit[w] = category_find(&known, c, from->words.text[w]);
}

static void list_name(Buf *b, uint32_t n, const char *name)
{
	if (n < 8)
		buf_printf(b, "%s'%.40s'", n ? ", " : "", name);
	else if (n == 8)
		buf_puts(b, ", ...");
}

static Place *match(Ctx *cx, const Frame *t, const Schema *s)
{
	Place *place = NEW(&cx->scratch, s->columns, Place);
	Dict names = { .arena = &cx->scratch };
	bool *wanted = NEW(&cx->scratch, t->columns, bool);
	Buf absent = { .arena = &cx->scratch }, extra = { .arena = &cx->scratch };
	uint32_t absents = 0, extras = 0;
	for (uint32_t i = 0; i < t->columns; i++)
		dict_add(&names, t->column[i].name);
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *c = &s->column[i];
		uint32_t at = 0;
		bool there = dict_find(&names, (Text){ c->name, (uint32_t)strlen(c->name) }, &at);
		place[i].column = there && c->role != COLUMN_UNUSED ? (int64_t)at : -1;
		if (there)
			wanted[at] = true;
		if (!there && c->role == COLUMN_INPUT)
			list_name(&absent, absents++, c->name);
	}
	if (absents)
		fail_at(cx, (Loc){ t->src, 0 }, "give the columns that the model was trained on; their order does not matter",
		        "%s has no column %s, which the model needs", t->name, absent.s);
	for (uint32_t i = 0; i < t->columns; i++)
		if (!wanted[i])
			list_name(&extra, extras++, arena_copy(&cx->scratch, t->column[i].name.s, t->column[i].name.len));
	if (extras)
		note(cx, NULL, "%s: column%s %s not used: the model does not know %s", t->name, extras > 1 ? "s" : "", extra.s,
		     extras > 1 ? "them" : "it");
	return place;
}

/* A number column of the schema must be one in the table. */
static void check_kinds(Ctx *cx, const Frame *t, const Schema *s, Place *place)
{
	for (uint32_t i = 0; i < s->columns; i++) {
		const Field *c = &s->column[i];
		if (place[i].column < 0 || !c->units)
			continue;
		const FrameColumn *from = &t->column[place[i].column];
		if (c->kind == VALUE_CATEGORY) {
			if (from->kind == VALUE_CATEGORY)
				match_words(cx, from, c, &place[i]);
		} else if (from->kind == VALUE_CATEGORY) {
			error_at(cx, (Loc){ t->src, from->first_text }, "write a number, or nothing where it is missing",
			         "column '%.40s' holds a text here, but the model knows it as numbers", c->name);
		}
	}
	check_errors(cx);
}

/* ---- encoding ---- */

typedef struct Encoder {
	Ctx *cx;
	const Frame *t;
	const Schema *s;
	const Place *place;
	uint64_t unseen;       /* words of inputs that training has not seen */
	const char *unseen_in; /* the first column with one */
	Text unseen_word;      /* and the word */
	uint64_t row;
	double *value; /* [columns] of it */
} Encoder;

static _Noreturn void unknown_class(Encoder *e, const Field *c, uint32_t column, double v)
{
	static const char remedy[] = "leave out the case, or correct it";
	Text field = { 0 };
	if (e->t->src) {
		Loc at = field_at(e->cx, e->t, e->row, column, &field);
		fail_at(e->cx, at, remedy, "'%s' is none of the %u classes of '%.40s' that were learnt",
		        text_shown(e->cx, field), c->categories, c->name);
	}
	Buf b = { .arena = &e->cx->scratch };
	if (e->t->class)
		field = e->t->column[column].words.text[(uint32_t)v];
	else
		number_put(&b, (float)v);
	fail(e->cx, MP_BAD_INPUT, remedy,
	     "%s: case %" PRIu64 ": '%s' is none of the %u classes of '%.40s' that were learnt", e->t->name, e->row + 1,
	     b.s ? b.s : text_shown(e->cx, field), c->categories, c->name);
}

/* Sets the units of one column, which are all 0, of a case. */
static void encode(Encoder *e, uint32_t column, float *unit)
{
	const Field *c = &e->s->column[column];
	const Place *p = &e->place[column];
	double v = p->column < 0 ? (double)NAN : e->value[p->column];
	if (isnan(v)) {
		if (c->role == COLUMN_INPUT && c->kind == VALUE_NUMBER)
			unit[0] = (float)c->fill;
		if (c->indicator)
			unit[c->units - 1] = 1;
		else if (c->role == COLUMN_TARGET)
			for (uint32_t k = 0; k < c->units; k++)
				unit[k] = NAN;
		return;
	}
	if (c->kind != VALUE_CATEGORY) {
		unit[0] = (float)((v - c->offset) * c->factor);
		return;
	}
	int32_t k = -1;
	if (p->unit) {
		k = p->unit[(uint32_t)v];
	} else { /* classes that are numbers */
		for (uint32_t i = 0; i < c->categories && k < 0; i++) {
			double w;
			if (number_of((Text){ c->category[i], (uint32_t)strlen(c->category[i]) }, &w) && same_number(v, w))
				k = (int32_t)i;
		}
	}
	if (k >= 0) {
		unit[k] = 1;
		return;
	}
	if (c->role == COLUMN_TARGET)
		unknown_class(e, c, (uint32_t)p->column, v);
	if (e->unseen++)
		return;
	e->unseen_in = c->name;
	Buf number = { .arena = &e->cx->scratch };
	if (!p->unit)
		number_put(&number, (float)v);
	e->unseen_word =
		p->unit ? e->t->column[p->column].words.text[(uint32_t)v] : (Text){ number.s, (uint32_t)number.len };
}

static int64_t place_of(const Encoder *e, int role)
{
	for (uint32_t i = 0; i < e->s->columns; i++)
		if (e->s->column[i].role == role)
			return e->place[i].column;
	return -1;
}

static Text word_at(const FrameColumn *c, uint64_t row)
{
	return c->word[row] == NO_WORD ? (Text){ "", 0 } : c->words.text[c->word[row]];
}

/* Names, weights and sequences of the chosen rows. */
static void encode_others(Encoder *e, Data *d, const uint64_t *row)
{
	Arena *keep = &e->cx->keep;
	int64_t name = place_of(e, COLUMN_NAME), weight = place_of(e, COLUMN_WEIGHT), seq = place_of(e, COLUMN_SEQUENCE);
	const Data *from = e->t->data;
	Text *names = (from ? from->names != NULL : name >= 0) ? NEW(keep, d->cases, Text) : NULL;
	float *weights = (from ? from->weight != NULL : weight >= 0) ? NEW(keep, d->cases, float) : NULL;
	uint64_t *starts = (from ? from->seq != NULL : seq >= 0) ? NEW(keep, d->cases + 1, uint64_t) : NULL, n = 0, s = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		uint64_t r = row[i];
		if (names)
			names[i] = from ? from->names[r] : word_at(&e->t->column[name], r);
		if (weights)
			weights[i] = from ? from->weight[r] : e->t->column[weight].number[r];
		if (!starts)
			continue;
		bool begins = i == 0 || row[i - 1] + 1 != r;
		if (from) {
			while (s < from->sequences && from->seq[s] < r)
				s++;
			begins |= from->seq[s] == r;
		} else {
			const FrameColumn *c = &e->t->column[seq];
			begins |= c->word[r] != NO_WORD && i > 0 && c->word[r] != c->word[row[i - 1]];
		}
		if (begins)
			starts[n++] = i;
	}
	if (starts)
		starts[n] = d->cases;
	d->names = names;
	d->weight = weights;
	d->seq = starts;
	d->sequences = n;
}

static void set_classes(Ctx *cx, const Schema *s, Data *d)
{
	const Field *c = schema_target(s, 0);
	if (s->task != TASK_CLASSES || !d->targets)
		return;
	Text *name = NEW(&cx->scratch, c->categories, Text);
	for (uint32_t i = 0; i < c->categories; i++)
		name[i] = (Text){ c->category[i], (uint32_t)strlen(c->category[i]) };
	classes_set(cx, d, name, c->categories);
}

/* The targets that the table has: all of those of the schema, or none. */
static bool has_targets(const Encoder *e)
{
	uint32_t there = 0, targets = 0;
	for (uint32_t i = 0; i < e->s->columns; i++) {
		if (e->s->column[i].role == COLUMN_TARGET) {
			targets++;
			there += e->place[i].column >= 0;
		}
	}
	return targets && there == targets;
}

Data *table_encode(Ctx *cx, const Frame *t, const Schema *s, const uint8_t *part, int which)
{
	Place *place = match(cx, t, s);
	check_kinds(cx, t, s, place);
	Encoder e = { .cx = cx, .t = t, .s = s, .place = place, .value = NEW(&cx->scratch, t->columns, double) };
	uint64_t *row = NEW(&cx->scratch, t->rows, uint64_t);
	Data *d = NEW(&cx->keep, 1, Data);
	for (uint64_t i = 0; i < t->rows; i++)
		if (!part || part[i] == which)
			row[d->cases++] = i;
	d->name = arena_copy(&cx->keep, t->name, strlen(t->name));
	d->inputs = s->inputs;
	d->targets = has_targets(&e) ? s->targets : 0;
	d->x_type = d->y_type = T_F32;
	float *x = arena_alloc(&cx->keep, d->cases, d->inputs * sizeof *x);
	float *y = d->targets ? arena_alloc(&cx->keep, d->cases, d->targets * sizeof *y) : NULL;
	d->x = x;
	d->y = y;
	for (uint64_t i = 0; i < d->cases; i++) {
		e.row = row[i];
		row_values(t, e.row, e.value);
		for (uint32_t k = 0; k < s->columns; k++) {
			const Field *c = &s->column[k];
			if (c->role == COLUMN_INPUT)
				encode(&e, k, x + i * d->inputs + c->unit);
			else if (c->role == COLUMN_TARGET && y)
				encode(&e, k, y + i * d->targets + c->unit);
		}
	}
	encode_others(&e, d, row);
	set_classes(cx, s, d);
	if (e.unseen == 1)
		note(cx, NULL, "one category was not seen in training: '%s' in column '%.40s'", text_shown(cx, e.unseen_word),
		     e.unseen_in);
	else if (e.unseen)
		note(cx, NULL, "%" PRIu64 " values were not seen in training, the first is '%s' in column '%.40s'", e.unseen,
		     text_shown(cx, e.unseen_word), e.unseen_in);
	Buf json = { .arena = &cx->keep };
	schema_print(s, &json);
	d->schema = json.s;
	data_check(cx, d, (Loc){ t->src, 0 });
	data_pack(cx, d);
	return d;
}

void data_balance(Ctx *cx, Data *d)
{
	uint32_t classes = d->targets > 1 ? d->targets : 2;
	double *total = NEW(&cx->scratch, classes, double), all = 0;
	float *row = NEW(&cx->scratch, d->targets, float), *weight = NEW(&cx->keep, d->cases, float);
	uint32_t *class = NEW(&cx->scratch, d->cases, uint32_t), there = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, row);
		int64_t one = d->targets > 1 ? row_one_of_n(row, d->targets) : row[0] == 1;
		if (one < 0)
			fail(cx, MP_BAD_INPUT, "leave it out", "only classes can be balanced, and the targets are none");
		weight[i] = d->weight ? d->weight[i] : 1;
		class[i] = (uint32_t)one;
		total[one] += (double)weight[i];
		all += (double)weight[i];
	}
	for (uint32_t c = 0; c < classes; c++)
		there += total[c] > 0;
	for (uint64_t i = 0; i < d->cases; i++)
		weight[i] = (float)((double)weight[i] * all / (there * total[class[i]]));
	d->weight = weight;
}
