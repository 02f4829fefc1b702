/* SPDX-License-Identifier: MIT */
/* npz: a data set as named arrays in a zip file, numpy's own format and ours.
 *
 * In: the file.  Out: checked data; or the other way round.  Keys are those of the table below; any other is kept and
 * written back.  Arrays of a file larger than half the memory stay in the mapped file if type and alignment allow. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data.h"

enum {
	K_X,
	K_INDPTR,
	K_INDICES,
	K_VALUES,
	K_SHAPE,
	K_Y,
	K_SEQ,
	K_MASK,
	K_WEIGHT,
	K_TICKS,
	K_NAMES,
	K_CODES,
	K_CODE_NAMES,
	K_OFFSET,
	K_FACTOR,
	K_SCALE,
	K_CLASSES,
	K_X_NAMES,
	K_Y_NAMES,
	K_COUNT
};
static const struct {
	const char *key;
	bool text;
} keys[K_COUNT] = {
	[K_X] = { "x", false },
	[K_INDPTR] = { "x_indptr", false },
	[K_INDICES] = { "x_indices", false },
	[K_VALUES] = { "x_values", false },
	[K_SHAPE] = { "x_shape", false },
	[K_Y] = { "y", false },
	[K_SEQ] = { "seq", false },
	[K_MASK] = { "mask", false },
	[K_WEIGHT] = { "weight", false },
	[K_TICKS] = { "ticks", false },
	[K_NAMES] = { "names", true },
	[K_CODES] = { "codes", false },
	[K_CODE_NAMES] = { "code_names", true },
	[K_OFFSET] = { "x_offset", false },
	[K_FACTOR] = { "x_factor", false },
	[K_SCALE] = { "x_scale", true },
	[K_CLASSES] = { "classes", true },
	[K_X_NAMES] = { "x_names", true },
	[K_Y_NAMES] = { "y_names", true },
};

typedef struct Load {
	Ctx *cx;
	Data *d;
	const Src *src;
	int place;
	bool shared; /* ranks validate the cases that they train on */
	const Zip *zip;
	Npy *a[K_COUNT]; /* NULL: not there */
	Loc at[K_COUNT];
	const ZipMember *deferred[K_COUNT]; /* its CRC is not checked yet; NULL: it is */
} Load;

/* ---- reading: members ---- */

static void keep_extra(Load *l, const char *key, const Src *bytes, bool in_scratch)
{
	Data *d = l->d;
	bool stays = l->place && !in_scratch;
	d->extra = arena_grow(&l->cx->keep, d->extra, d->extras, d->extras + 1, sizeof *d->extra);
	const char *npy = stays ? bytes->text
	                  : in_scratch
	                      ? arena_move(&l->cx->scratch, &l->cx->keep, (char *)(uintptr_t)bytes->text, bytes->len, 1)
	                      : arena_copy(&l->cx->keep, bytes->text, bytes->len);
	d->extra[d->extras++] = (Extra){ key, npy, bytes->len };
	d->mapped |= stays;
	d->bytes += stays ? 0 : bytes->len;
}

/* Arrays with one row per case: a rank may need some rows only. */
static const int per_case[DEFERRED_COUNT] = {
	[DEFERRED_X] = K_X, [DEFERRED_INDICES] = K_INDICES, [DEFERRED_VALUES] = K_VALUES,
	[DEFERRED_Y] = K_Y, [DEFERRED_MASK] = K_MASK,       [DEFERRED_WEIGHT] = K_WEIGHT,
};

static bool is_per_case(int k)
{
	for (int i = 0; i < DEFERRED_COUNT; i++)
		if (per_case[i] == k)
			return true;
	return false;
}

static void take_member(Load *l, const ZipMember *m)
{
	static const char magic[] = "\x93NUMPY";
	Ctx *cx = l->cx;
	Src *bytes = zip_read(cx, l->zip, m);
	size_t n = strlen(m->name);
	bool is_npy = n > 4 && strcmp(m->name + n - 4, ".npy") == 0;
	const char *key = arena_copy(&cx->keep, m->name, is_npy ? n - 4 : n);
	int k = 0;
	while (k < K_COUNT && (!is_npy || strcmp(key, keys[k].key) != 0))
		k++;
	bool deferred = k < K_COUNT && l->shared && m->method == 0 && is_per_case(k);
	if (deferred)
		l->deferred[k] = m;
	else
		zip_check(cx, l->zip, m, bytes);
	if (is_npy && (bytes->len < sizeof magic - 1 || memcmp(bytes->text, magic, sizeof magic - 1) != 0))
		fail_at(cx, (Loc){ bytes, 0 }, "write it with numpy.savez", "this is no npy array");
	if (k == K_COUNT) {
		keep_extra(l, key, bytes, m->method != 0);
		return;
	}
	Npy *a = NEW(&cx->scratch, 1, Npy);
	*a = npy_parse(cx, bytes, 0, bytes->len);
	if (m->method != 0) {
		a->block = (char *)(uintptr_t)bytes->text;
		a->block_len = bytes->len;
	}
	npy_normalize(cx, a);
	l->a[k] = a;
	l->at[k] = (Loc){ bytes, 0 };
	if (a->string != keys[k].text)
		fail_at(cx, l->at[k], keys[k].text ? "save it as an array of strings" : "save it as an array of numbers",
		        "'%s' holds %s", key, a->string ? "text" : "numbers, not text");
}

/* ---- reading: keys ---- */

static void want_count(Load *l, int k, uint64_t count, const char *what)
{
	if (l->a[k]->count != count)
		fail_at(l->cx, l->at[k], "give it as many elements as its partner arrays ask for",
		        "'%s' has %" PRIu64 " elements, but %s is %" PRIu64, keys[k].key, l->a[k]->count, what, count);
}

static void want_partner(Load *l, int k, int partner)
{
	if (l->a[k] && !l->a[partner])
		fail_at(l->cx, l->at[k], "save both or neither", "there is '%s' but no '%s'", keys[k].key, keys[partner].key);
}

static const void *keep(Load *l, int k, DType want) { return npy_keep(l->cx, l->d, l->a[k], l->place, want); }

static void no_inputs(Load *l)
{
	Buf b = { .arena = &l->cx->scratch };
	buf_puts(&b, "");
	for (uint32_t i = 0; i < l->d->extras && b.len < 200; i++)
		buf_printf(&b, "%s %.40s", i ? "," : "; it holds", l->d->extra[i].key);
	fail_at(l->cx, (Loc){ l->src, 0 }, "save the inputs under the key x: numpy.savez(file, x=inputs, y=targets)",
	        "the file has no array 'x'%s", b.s);
}

static void take_dense(Load *l)
{
	Npy *x = l->a[K_X];
	if (x->dims == 0)
		fail_at(l->cx, l->at[K_X], "save an array [cases, inputs]", "'x' is a single number");
	l->d->cases = x->dim[0];
	l->d->inputs = npy_columns(l->cx, x, l->at[K_X]);
	data_set_inputs(l->cx, l->d, x, l->place);
}

static void take_lists(Load *l)
{
	Data *d = l->d;
	const Npy *shape = l->a[K_SHAPE];
	want_count(l, K_SHAPE, 2, "[cases, inputs]");
	double n = dtype_get(shape->type, shape->data, 0), inputs = dtype_get(shape->type, shape->data, 1);
	if (!(inputs >= 0 && inputs <= MAX_UNITS && n >= 0 && n < 4503599627370496.0))
		fail_at(l->cx, l->at[K_SHAPE], "save the number of cases and of inputs",
		        "'x_shape' is [%g, %g], which is no size of data", n, inputs);
	d->cases = (uint64_t)n;
	d->inputs = (uint32_t)inputs;
	want_count(l, K_INDPTR, d->cases + 1, "the number of cases and one");
	d->x_indptr = keep(l, K_INDPTR, T_U64);
	d->x_indices = keep(l, K_INDICES, T_U32);
	want_count(l, K_INDICES, d->x_indptr[d->cases], "the last number of 'x_indptr'");
	if (l->a[K_VALUES]) {
		want_count(l, K_VALUES, l->a[K_INDICES]->count, "the number of indices");
		d->x_values = keep(l, K_VALUES, T_F32);
	}
}

static void take_inputs(Load *l)
{
	if (!l->a[K_X] && !l->a[K_INDPTR])
		no_inputs(l);
	if (l->a[K_X] && l->a[K_INDPTR])
		fail_at(l->cx, l->at[K_X], "save one of them", "there are both 'x' and 'x_indptr', two sets of inputs");
	want_partner(l, K_INDPTR, K_INDICES);
	want_partner(l, K_INDPTR, K_SHAPE);
	want_partner(l, K_INDICES, K_INDPTR);
	want_partner(l, K_VALUES, K_INDPTR);
	if (l->a[K_X])
		take_dense(l);
	else
		take_lists(l);
}

static void take_targets(Load *l)
{
	const Npy *y = l->a[K_Y];
	Data *d = l->d;
	if (!y)
		return;
	if (y->dims == 0 || y->dim[0] != d->cases)
		fail_at(l->cx, l->at[K_Y], "give every case one row of targets",
		        "'y' has %" PRIu64 " rows, but there are %" PRIu64 " cases", y->dims ? y->dim[0] : 1, d->cases);
	d->targets = npy_columns(l->cx, y, l->at[K_Y]);
	d->y_type = y->type;
	d->y = keep(l, K_Y, T_COUNT);
}

static void take_rest(Load *l)
{
	Data *d = l->d;
	if (l->a[K_SEQ]) {
		if (l->a[K_SEQ]->count < 2)
			fail_at(l->cx, l->at[K_SEQ], "save the offset of each sequence's first case, and the number of cases last",
			        "'seq' holds fewer than two offsets");
		d->sequences = l->a[K_SEQ]->count - 1;
		d->seq = keep(l, K_SEQ, T_U64);
	}
	if (l->a[K_MASK]) {
		want_count(l, K_MASK, d->cases * d->targets, "cases times targets");
		d->mask = keep(l, K_MASK, T_U8);
	}
	if (l->a[K_WEIGHT]) {
		want_count(l, K_WEIGHT, d->cases, "the number of cases");
		d->weight = keep(l, K_WEIGHT, T_F32);
	}
	if (l->a[K_TICKS]) {
		want_count(l, K_TICKS, d->cases, "the number of cases");
		d->ticks = keep(l, K_TICKS, T_U32);
		for (uint64_t i = 0; i < d->cases; i++)
			if (d->ticks[i] > MAX_TICKS)
				fail_at(l->cx, l->at[K_TICKS], "save the number of ticks, or 0 for that of the network",
				        "case %" PRIu64 " has %" PRIu32 " ticks: %d is the limit", i, d->ticks[i], MAX_TICKS);
	}
	if (l->a[K_NAMES]) {
		want_count(l, K_NAMES, d->cases, "the number of cases");
		d->names = npy_texts(l->cx, d, l->a[K_NAMES], l->at[K_NAMES]);
	}
}

enum { MAX_CODES = 1 << 24 };

static void take_codes(Load *l)
{
	Data *d = l->d;
	const Npy *c = l->a[K_CODES];
	want_partner(l, K_CODE_NAMES, K_CODES);
	if (!c)
		return;
	if (d->targets == 0 || c->dims < 1 || c->dim[0] == 0 || npy_columns(l->cx, c, l->at[K_CODES]) != d->targets)
		fail_at(l->cx, l->at[K_CODES], "save one row per code, with one column per target",
		        "'codes' does not fit %" PRIu32 " targets", d->targets);
	if (c->dim[0] > MAX_CODES)
		fail_at(l->cx, l->at[K_CODES], "keep those that are wanted",
		        "'codes' has %" PRIu64 " rows; at most %d can be told apart", c->dim[0], MAX_CODES);
	d->code_count = (uint32_t)c->dim[0];
	d->codes = keep(l, K_CODES, T_F64);
	if (l->a[K_CODE_NAMES]) {
		want_count(l, K_CODE_NAMES, d->code_count, "the number of codes");
		d->code_names = npy_texts(l->cx, d, l->a[K_CODE_NAMES], l->at[K_CODE_NAMES]);
	}
}

static void take_scale(Load *l)
{
	Data *d = l->d;
	static const int together[] = { K_SCALE, K_OFFSET, K_FACTOR };
	for (size_t i = 0; i < COUNT(together); i++)
		for (size_t k = 0; k < COUNT(together); k++)
			want_partner(l, together[i], together[k]);
	if (!l->a[K_SCALE])
		return;
	want_count(l, K_SCALE, 1, "a word");
	const Text *name = npy_texts(l->cx, d, l->a[K_SCALE], l->at[K_SCALE]);
	d->scale.kind = scale_find(*name);
	if (d->scale.kind < 0)
		fail_at(l->cx, l->at[K_SCALE], "write none, range or zscore", "'x_scale' is '%.40s', which is no kind of scale",
		        name->s);
	want_count(l, K_OFFSET, d->inputs, "the number of inputs");
	want_count(l, K_FACTOR, d->inputs, "the number of inputs");
	/* Casts away const: a scale is written only by data_scale_fit, on data that has none. */
	d->scale.offset = (double *)(uintptr_t)keep(l, K_OFFSET, T_F64);
	d->scale.factor = (double *)(uintptr_t)keep(l, K_FACTOR, T_F64);
}

static bool is_name(Text t) { return !t.len || (!memchr(t.s, 0, t.len) && !control_find(t.s, t.len)); }

/* Names that do not fit are those of another program: they are not used. */
static const Text *take_names(Load *l, int k, uint64_t count)
{
	if (!l->a[k] || l->a[k]->count != count)
		return NULL;
	const Text *t = npy_texts(l->cx, l->d, l->a[k], l->at[k]);
	for (uint64_t i = 0; i < count; i++)
		if (!is_name(t[i]))
			return NULL;
	return t;
}

/* Of classes, inputs and targets. */
static void take_labels(Load *l)
{
	Data *d = l->d;
	const Text *classes = take_names(l, K_CLASSES, d->targets), *x = take_names(l, K_X_NAMES, d->inputs);
	if (classes && !d->codes && d->targets > 1 && d->targets <= LABEL_CLASSES)
		classes_set(l->cx, d, classes, d->targets);
	classes_of_codes(l->cx, d);
	bool label = d->classes && l->a[K_Y_NAMES] && l->a[K_Y_NAMES]->count == 1;
	uint32_t targets = !l->a[K_Y_NAMES] ? 0 : label ? 1 : d->targets;
	const Text *y = targets ? take_names(l, K_Y_NAMES, targets) : NULL;
	if (!x || (d->targets && !y))
		return;
	DataColumn *column = NEW(&l->cx->keep, d->inputs + targets, DataColumn);
	for (uint32_t i = 0; i < d->inputs + targets; i++) {
		Text t = i < d->inputs ? x[i] : y[i - d->inputs];
		column[i] = (DataColumn){ arena_copy(&l->cx->keep, t.s, t.len), i < d->inputs ? COLUMN_INPUT : COLUMN_TARGET,
			                      i >= d->inputs && label };
	}
	d->column = column;
	d->columns = d->inputs + targets;
}

/* CRCs of arrays that stay in the mapped file are checked with their cases; copied arrays are checked now. */
static void defer_crcs(Load *l)
{
	Data *d = l->d;
	const void *const in[DEFERRED_COUNT] = {
		[DEFERRED_X] = d->x, [DEFERRED_INDICES] = d->x_indices, [DEFERRED_VALUES] = d->x_values,
		[DEFERRED_Y] = d->y, [DEFERRED_MASK] = d->mask,         [DEFERRED_WEIGHT] = d->weight,
	};
	for (int i = 0; i < DEFERRED_COUNT; i++) {
		const ZipMember *m = l->deferred[per_case[i]];
		const Src *bytes = l->at[per_case[i]].src;
		if (m && in[i] == l->a[per_case[i]]->data)
			d->deferred[i] = (DeferredCrc){ bytes,
				                            (uint64_t)((const char *)in[i] - bytes->text),
				                            m->crc,
				                            arena_copy(&l->cx->keep, m->name, strlen(m->name)),
				                            { l->src, m->at } };
		else if (m)
			zip_check(l->cx, l->zip, m, bytes);
	}
	d->unchecked = l->shared && d->mapped;
}

Data *read_npz(Ctx *cx, const Src *s, const DataOptions *opt)
{
	Data *d = NEW(&cx->keep, 1, Data);
	Load l = {
		.cx = cx, .d = d, .src = s, .place = array_placement(s, opt), .shared = opt && opt->shared && !opt->first
	};
	d->name = arena_copy(&cx->keep, s->name, strlen(s->name));
	l.zip = zip_open(cx, s);
	for (uint32_t i = 0; i < l.zip->members; i++)
		take_member(&l, &l.zip->member[i]);
	take_inputs(&l);
	take_targets(&l);
	take_rest(&l);
	take_codes(&l);
	take_scale(&l);
	take_labels(&l);
	defer_crcs(&l);
	data_check(cx, d, (Loc){ s, 0 });
	data_truncate(cx, d, opt ? opt->first : 0);
	return d;
}

/* ---- writing ---- */

typedef struct Save {
	Ctx *cx;
	ZipOut *zip;
} Save;

static void put_array(Save *s, int k, DType t, const void *v, uint64_t rows, uint64_t cols, int dims)
{
	char head[NPY_HEADER], name[32];
	size_t n = npy_header(t, (uint64_t[]){ rows, cols }, dims, head, sizeof head);
	snprintf(name, sizeof name, "%s.npy", keys[k].key);
	zip_add(s->zip, name, head, n, v, rows * cols * dtypes[t].size);
}

/* Next character of UTF-8 text; the byte itself with the 31st bit set where it is none. */
static uint32_t next_char(const Text *t, uint32_t *i)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	uint8_t first = (uint8_t)t->s[(*i)++];
	uint32_t more = first < 0x80 ? 0 : first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
	uint32_t c = more ? first & (0x3Fu >> more) : first;
	uint32_t bad = 0x80000000u | first;
	if (first >= 0x80 && (first < 0xC2 || first > 0xF4))
		return bad;
	for (uint32_t k = 0; k < more; k++) {
		if (*i + k >= t->len || ((uint8_t)t->s[*i + k] & 0xC0) != 0x80)
			return bad;
		c = c << 6 | ((uint8_t)t->s[*i + k] & 0x3Fu);
	}
	if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
		return bad;
	*i += more;
	return c;
}

/* Strings as numpy's unicode; where some are not UTF-8, all as bytes. */
static void put_texts(Save *s, int k, const Text *t, uint64_t count, int dims)
{
	uint32_t chars = 1, bytes = 1;
	bool unicode = true;
	for (uint64_t n = 0; n < count; n++) {
		uint32_t have = 0;
		for (uint32_t i = 0; i < t[n].len; have++)
			if (next_char(&t[n], &i) & 0x80000000u)
				unicode = false;
		chars = have > chars ? have : chars;
		bytes = t[n].len > bytes ? t[n].len : bytes;
	}
	Npy a = { .type = unicode ? T_U32 : T_U8, .string = true, .width = unicode ? chars * 4 : bytes };
	uint8_t *v = arena_alloc(&s->cx->scratch, count, a.width);
	for (uint64_t n = 0; n < count; n++) {
		uint8_t *out = v + n * a.width;
		if (!unicode && t[n].len)
			memcpy(out, t[n].s, t[n].len);
		for (uint32_t i = 0; unicode && i < t[n].len; out += 4)
			memcpy(out, &(uint32_t){ next_char(&t[n], &i) }, 4);
	}
	char head[NPY_HEADER], name[32];
	size_t n = npy_header_like(&a, &count, dims, head, sizeof head);
	snprintf(name, sizeof name, "%s.npy", keys[k].key);
	zip_add(s->zip, name, head, n, v, count * a.width);
}

static void put_inputs(Save *s, const Data *d)
{
	if (!d->x_indptr) {
		put_array(s, K_X, d->x_type, d->x, d->cases, d->inputs, 2);
		return;
	}
	uint64_t count = d->x_indptr[d->cases];
	int64_t shape[] = { (int64_t)d->cases, d->inputs };
	put_array(s, K_SHAPE, T_I64, shape, 2, 1, 1);
	put_array(s, K_INDPTR, T_I64, d->x_indptr, d->cases + 1, 1, 1);
	put_array(s, K_INDICES, T_I32, d->x_indices, count, 1, 1); /* below MAX_UNITS: the same bits as unsigned */
	if (d->x_values)
		put_array(s, K_VALUES, T_F32, d->x_values, count, 1, 1);
}

static void put_scale(Save *s, const Data *d)
{
	const char *name = scale_names[d->scale.kind];
	put_texts(s, K_SCALE, &(Text){ name, (uint32_t)strlen(name) }, 1, 0);
	put_array(s, K_OFFSET, T_F64, d->scale.offset, d->inputs, 1, 1);
	put_array(s, K_FACTOR, T_F64, d->scale.factor, d->inputs, 1, 1);
}

static void put_extras(Save *s, const Data *d)
{
	for (uint32_t i = 0; i < d->extras; i++) {
		const Extra *e = &d->extra[i];
		bool is_npy = e->len >= 6 && memcmp(e->npy, "\x93NUMPY", 6) == 0;
		Buf name = { .arena = &s->cx->scratch };
		buf_printf(&name, is_npy ? "%s.npy" : "%s", e->key);
		zip_add(s->zip, name.s, e->npy, e->len, NULL, 0);
	}
}

static void put_columns(Save *s, const Data *d)
{
	Text *name = NEW(&s->cx->scratch, d->columns, Text);
	uint32_t targets = 0, labels = 0;
	for (uint32_t i = 0; i < d->columns; i++) {
		name[i] = (Text){ d->column[i].name, (uint32_t)strlen(d->column[i].name) };
		targets += d->column[i].role == COLUMN_TARGET;
		labels += d->column[i].label;
	}
	if (labels && !(targets == 1 && d->classes)) {
		data_note_lost(s->cx, d, "npz with several labels", ~(unsigned)HOLDS_COLUMNS);
		return;
	}
	put_texts(s, K_X_NAMES, name, d->inputs, 1);
	if (targets)
		put_texts(s, K_Y_NAMES, name + d->inputs, targets, 1);
}

static void put_classes(Save *s, const Data *d)
{
	Text *name = NEW(&s->cx->scratch, d->class_count, Text);
	for (uint32_t i = 0; i < d->class_count; i++)
		name[i] = (Text){ d->classes[i], (uint32_t)strlen(d->classes[i]) };
	put_texts(s, K_CLASSES, name, d->class_count, 1);
}

void write_npz(Ctx *cx, const Data *d, const char *path)
{
	Save s = { cx, zip_create(cx, path, UINT32_MAX) };
	put_inputs(&s, d);
	if (d->targets)
		put_array(&s, K_Y, d->y_type, d->y, d->cases, d->targets, 2);
	if (d->mask)
		put_array(&s, K_MASK, T_U8, d->mask, d->cases, d->targets, 2);
	if (d->seq)
		put_array(&s, K_SEQ, T_I64, d->seq, d->sequences + 1, 1, 1);
	if (d->weight)
		put_array(&s, K_WEIGHT, T_F32, d->weight, d->cases, 1, 1);
	if (d->ticks)
		put_array(&s, K_TICKS, T_U32, d->ticks, d->cases, 1, 1);
	if (d->names)
		put_texts(&s, K_NAMES, d->names, d->cases, 1);
	if (d->codes)
		put_array(&s, K_CODES, T_F64, d->codes, d->code_count, d->targets, 2);
	if (d->code_names)
		put_texts(&s, K_CODE_NAMES, d->code_names, d->code_count, 1);
	if (d->scale.kind != SCALE_NONE)
		put_scale(&s, d);
	if (d->classes && !d->codes)
		put_classes(&s, d);
	if (!columns_numbered(d))
		put_columns(&s, d);
	put_extras(&s, d);
	zip_commit(cx, s.zip);
}
