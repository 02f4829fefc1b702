/* SPDX-License-Identifier: MIT */
/* Data for a network that was trained on columns with names, by a topology file.  In: a path, reading options, a plain
 * schema.  Out: Data with the inputs in the schema's order.
 *
 * A CSV file whose columns are already read in that order is read as any other.  Otherwise the names become lists of
 * columns for the reader.  Targets may be absent: the data is then unlabelled. */
#include <string.h>

#include "formats.h"
#include "table.h"

static Text text_of(const char *s) { return (Text){ s, (uint32_t)strlen(s) }; }

/* The next column of a role from *i on; NULL: none. */
static const Field *next_of(const Schema *s, int role, uint32_t *i)
{
	while (*i < s->columns)
		if (s->column[(*i)++].role == role)
			return &s->column[*i - 1];
	return NULL;
}

/* Whether the columns that would be inputs (or targets) are those of the schema, in its order. */
static bool planned_same(const CsvColumns *p, const Schema *s, int role, Ctx *cx)
{
	uint32_t count = role == COLUMN_INPUT ? p->inputs : p->targets, n = 0, at = 0;
	const CsvColumn **col = NEW(&cx->scratch, count, const CsvColumn *);
	for (uint32_t i = 0; i < p->count; i++) {
		int64_t k = role == COLUMN_INPUT ? p->col[i].x : p->col[i].y;
		if (k >= 0)
			col[k] = &p->col[i];
	}
	for (const Field *f; (f = next_of(s, role, &at)); n++)
		if (n >= count || !text_is(col[n]->name, f->name))
			return false;
	return n == count;
}

/* A list as options have it: names in quotes, separated by commas. */
static void list_add(Buf *b, const char *name)
{
	buf_puts(b, b->len ? ",\"" : "\"");
	for (; *name; name++)
		buf_printf(b, *name == '"' ? "\"\"" : "%c", *name);
	buf_puts(b, "\"");
}

static void name_add(Buf *b, uint32_t n, const char *name)
{
	if (n < 8)
		buf_printf(b, "%s'%.40s'", n ? ", " : "", name);
	else if (n == 8)
		buf_puts(b, ", ...");
}

typedef struct Match {
	Ctx *cx;
	const Src *src;
	const Schema *s;
	Dict names;   /* of the file */
	bool *wanted; /* [names] the schema has it */
} Match;

static bool has(const Match *m, const char *name)
{
	uint32_t i;
	return dict_find(&m->names, text_of(name), &i);
}

static void match_inputs(const Match *m, DataOptions *opt)
{
	Buf list = { .arena = &m->cx->scratch }, absent = { .arena = &m->cx->scratch };
	uint32_t at = 0, absents = 0;
	for (const Field *f; (f = next_of(m->s, COLUMN_INPUT, &at));) {
		list_add(&list, f->name);
		if (!has(m, f->name))
			name_add(&absent, absents++, f->name);
	}
	if (absents)
		fail_at(m->cx, (Loc){ m->src, src_text_start(m->src) },
		        "give the columns that the network was trained on, in any order, or choose others with --inputs",
		        "there is no column %s, which the network was trained on", absent.s);
	opt->inputs = list.s;
}

static void match_targets(const Match *m, DataOptions *opt)
{
	Buf list = { .arena = &m->cx->scratch }, labels = { .arena = &m->cx->scratch };
	uint32_t at = 0;
	bool all = true;
	if (opt->unlabelled || opt->targets || opt->labels)
		return;
	for (const Field *f; (f = next_of(m->s, COLUMN_TARGET, &at));) {
		list_add(&list, f->name);
		if (f->kind == VALUE_CATEGORY)
			list_add(&labels, f->name);
		all = all && has(m, f->name);
	}
	if (!list.s || !all) {
		opt->unlabelled = 1;
		return;
	}
	opt->targets = list.s;
	opt->labels = labels.s;
}

static void match_single(const Match *m, int role, const char **option)
{
	uint32_t at = 0;
	const Field *f = next_of(m->s, role, &at);
	if (!*option && f && has(m, f->name))
		*option = f->name;
}

static void note_extra(const Match *m, const DataOptions *opt)
{
	const char *const named[] = { opt->sequence, opt->weight, opt->names };
	Buf extra = { .arena = &m->cx->scratch };
	uint32_t extras = 0;
	if (opt->targets || opt->labels)
		return;
	for (uint32_t i = 0; i < m->names.count; i++) {
		bool known = m->wanted[i];
		for (size_t k = 0; k < COUNT(named); k++)
			known |= named[k] && text_is(m->names.text[i], named[k]);
		if (!known)
			name_add(&extra, extras++, arena_copy(&m->cx->scratch, m->names.text[i].s, m->names.text[i].len));
	}
	if (extras)
		note(m->cx, NULL, "%s: column%s %s not used: the network does not know %s", m->src->name, extras > 1 ? "s" : "",
		     extra.s, extras > 1 ? "them" : "it");
}

static DataOptions match_csv(Ctx *cx, const Src *src, const CsvColumns *c, const DataOptions *opt, const Schema *s)
{
	DataOptions own = *opt;
	Match m = { .cx = cx, .src = src, .s = s, .names = { .arena = &cx->scratch } };
	for (uint32_t i = 0; i < c->count; i++) {
		uint32_t known = m.names.count, at, name = dict_add(&m.names, c->col[i].name);
		if (name != known && schema_find(s, c->col[i].name, &at))
			fail_at(cx, (Loc){ src, c->col[i].off }, "give every column a name of its own",
			        "two columns are called '%s'", text_shown(cx, c->col[i].name));
	}
	m.wanted = NEW(&cx->scratch, m.names.count, bool);
	for (uint32_t i = 0; i < s->columns; i++) {
		uint32_t at;
		if (dict_find(&m.names, text_of(s->column[i].name), &at))
			m.wanted[at] = true;
	}
	match_inputs(&m, &own);
	note_extra(&m, opt);
	match_targets(&m, &own);
	match_single(&m, COLUMN_NAME, &own.names);
	match_single(&m, COLUMN_WEIGHT, &own.weight);
	match_single(&m, COLUMN_SEQUENCE, &own.sequence);
	return own;
}

/* Another format that keeps names: the inputs are put in order. */
static void order_inputs(Ctx *cx, Data *d, const Schema *s)
{
	Dict names = { .arena = &cx->scratch };
	uint32_t *from = NEW(&cx->scratch, d->inputs, uint32_t), at = 0, n = 0;
	bool same = true;
	if (!d->columns || s->inputs != d->inputs)
		return;
	for (uint32_t i = 0; i < d->inputs; i++)
		dict_add(&names, text_of(d->column[i].name));
	for (const Field *f; (f = next_of(s, COLUMN_INPUT, &at)); n++) {
		if (!dict_find(&names, text_of(f->name), &from[n]))
			fail(cx, MP_BAD_INPUT, "give the columns that the network was trained on, in any order",
			     "%s has no column '%.40s', which the network was trained on", d->name, f->name);
		same = same && from[n] == n;
	}
	if (same)
		return;
	data_validate(cx, d);
	float *x = arena_alloc(&cx->keep, d->cases, d->inputs * sizeof *x), *row = NEW(&cx->scratch, d->inputs, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			x[i * d->inputs + k] = row[from[k]];
	}
	DataColumn *column = NEW(&cx->keep, d->columns, DataColumn);
	Scale scale = scale_copy(&cx->keep, &d->scale, d->inputs);
	memcpy(column, d->column, d->columns * sizeof *column);
	for (uint32_t k = 0; k < d->inputs; k++) {
		column[k] = d->column[from[k]];
		if (scale.kind != SCALE_NONE) {
			scale.offset[k] = d->scale.offset[from[k]];
			scale.factor[k] = d->scale.factor[from[k]];
		}
	}
	d->column = column;
	d->scale = scale;
	d->x = x;
	d->x_type = T_F32;
	d->x_indptr = NULL;
	d->x_indices = NULL;
	d->x_values = NULL;
	data_pack(cx, d);
}

Data *data_open_like(Ctx *cx, const char *path, const DataOptions *opt, const Schema *s)
{
	DataSource from = data_locate(cx, path, opt);
	if (!from.csv) {
		Data *d = data_load(cx, &from, opt);
		order_inputs(cx, d, s);
		return d;
	}
	src_check_text(cx, from.src);
	const CsvColumns *c = columns_header(cx, from.src);
	if (!c->header || opt->inputs)
		return data_load(cx, &from, opt);
	const CsvColumns *plan = columns_plan(cx, from.src, opt);
	if (planned_same(plan, s, COLUMN_INPUT, cx) &&
	    (plan->own || opt->targets || opt->labels || planned_same(plan, s, COLUMN_TARGET, cx)))
		return data_load(cx, &from, opt);
	DataOptions own = match_csv(cx, from.src, c, opt, s);
	return data_load(cx, &from, &own);
}
