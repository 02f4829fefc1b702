/* SPDX-License-Identifier: MIT */
/* Public calls on data. */
#include <math.h>
#include <string.h>

#include "api.h"
#include "formats.h"
#include "microprop/data.h"

typedef struct DataArgs {
	mp_data *d;
	const char *path;
	const mp_data_options *opt;
	/* mp_data_new */
	uint64_t cases, sequences;
	uint32_t inputs, targets;
	const float *x, *y;
	const uint64_t *seq;
	/* splitting and scaling */
	const mp_data *from;
	double share;
	uint64_t seed;
	bool rest;
	const char *kind;
	mp_data *also;
} DataArgs;

static mp_status handle_new(mp_data **data, DataArgs *a, void (*body)(void *), const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)data, sizeof **data, alloc);
	if (s != MP_OK)
		return s;
	a->d = *data;
	s = api_call(&(*data)->cx, body, a);
	if (s != MP_OK)
		(*data)->data = NULL;
	return s;
}

/* A handle of data that could not be read exists for its messages only. */
static Data *readable(Ctx *cx, const mp_data *d)
{
	if (!d->data)
		fail(cx, MP_BAD_INPUT, "check what mp_data_open returned", "this data could not be read");
	data_validate(cx, d->data);
	return d->data;
}

static void scale_fit(mp_data *d, const char *name)
{
	Ctx *cx = &d->cx;
	readable(cx, d);
	int kind = scale_find((Text){ name, (uint32_t)strlen(name) });
	if (kind <= SCALE_NONE)
		fail(cx, MP_BAD_INPUT, "scale with range (to 0..1) or zscore (mean 0, deviation 1)", "there is no scale '%s'",
		     name);
	data_scale_fit(cx, d->data, kind);
}

void api_data_schema(Ctx *cx, Data *d)
{
	const Schema *s = schema_plain(cx, d);
	Buf json = { .arena = &cx->keep };
	if (s)
		schema_print(s, &json);
	d->schema = json.s;
}

void api_data_open(mp_data *d, const char *path, const mp_data_options *opt, const Schema *like)
{
	d->data = like ? data_open_like(&d->cx, path, opt, like) : data_open(&d->cx, path, opt);
	api_data_schema(&d->cx, d->data);
	if (opt && opt->groups)
		d->data->groups = arena_copy(&d->cx.keep, opt->groups, strlen(opt->groups));
	if (opt && opt->scale && strcmp(opt->scale, scale_names[SCALE_NONE]) != 0)
		scale_fit(d, opt->scale);
}

static void open_body(void *arg)
{
	DataArgs *a = arg;
	Ctx *cx = &a->d->cx;
	mp_data_options own = { 0 };
	if (a->opt && !api_take(&own, sizeof own, a->opt))
		fail(cx, MP_BAD_INPUT, "set mp_data_options.size to sizeof(mp_data_options), and the rest to 0",
		     "these data options are not of this version of the library");
	const char *like = own.like && own.like->data ? own.like->data->schema : NULL;
	if (!own.groups && own.like && own.like->data)
		own.groups = own.like->data->groups;
	const Schema *s = like ? schema_parse(cx, (Loc){ 0 }, like) : NULL;
	api_data_open(a->d, a->path, a->opt ? &own : NULL, s && s->plain ? s : NULL);
}

mp_status mp_data_open(mp_data **data, const char *path, const mp_data_options *options, const mp_allocator *alloc)
{
	return handle_new(data, &(DataArgs){ .path = path, .opt = options }, open_body, alloc);
}

static void *copied(Arena *arena, const void *from, uint64_t count, size_t size)
{
	void *to = arena_alloc(arena, count, size);
	return memcpy(to, from, count * size);
}

static void new_body(void *arg)
{
	DataArgs *a = arg;
	Arena *keep = &a->d->cx.keep;
	Data *d = NEW(keep, 1, Data);
	d->name = "data";
	d->cases = a->cases;
	d->inputs = a->inputs;
	d->targets = a->targets;
	if (!a->cases || !a->inputs)
		fail(&a->d->cx, MP_BAD_INPUT, "give at least one case of one input", "there are no cases");
	if (a->cases > SIZE_MAX / 8 / a->inputs || (a->targets && a->cases > SIZE_MAX / 8 / a->targets))
		fail(&a->d->cx, MP_NO_MEMORY, NULL, "%llu cases are too many", (unsigned long long)a->cases);
	d->x = copied(keep, a->x, a->cases * a->inputs, sizeof *a->x);
	if (a->targets)
		d->y = copied(keep, a->y, a->cases * a->targets, sizeof *a->y);
	d->x_type = d->y_type = T_F32;
	if (a->seq) {
		d->seq = copied(keep, a->seq, a->sequences + 1, sizeof *a->seq);
		d->sequences = a->sequences;
	}
	d->bytes = a->cases * ((uint64_t)a->inputs + a->targets) * sizeof(float);
	data_check(&a->d->cx, d, (Loc){ 0 });
	data_pack(&a->d->cx, d);
	a->d->data = d;
}

mp_status mp_data_new(mp_data **data, uint64_t cases, uint32_t inputs, uint32_t targets, const float *x, const float *y,
                      const uint64_t *seq, uint64_t sequences, const mp_allocator *alloc)
{
	return handle_new(
		data,
		&(DataArgs){
			.cases = cases, .inputs = inputs, .targets = targets, .x = x, .y = y, .seq = seq, .sequences = sequences },
		new_body, alloc);
}

void mp_data_close(mp_data *data) { api_close(data, sizeof *data); }

const char *mp_data_messages(const mp_data *data) { return api_messages(data); }

const mp_error *mp_data_get_error(const mp_data *data, size_t i) { return api_error(data, i); }

static void info_body(void *arg)
{
	DataArgs *a = arg;
	readable(&a->d->cx, a->d);
	data_describe(&a->d->cx, a->d->data, &a->d->info);
	a->d->info.size = sizeof a->d->info;
}

mp_status mp_data_get_info(mp_data *data, const mp_data_info **info)
{
	*info = &data->info;
	if (data->info.name) /* known, and unchanged since */
		return MP_OK;
	return api_call(&data->cx, info_body, &(DataArgs){ .d = data });
}

static void save_body(void *arg)
{
	DataArgs *a = arg;
	data_write(&a->d->cx, readable(&a->d->cx, a->d), a->path);
}

mp_status mp_data_save(mp_data *data, const char *path)
{
	return api_call(&data->cx, save_body, &(DataArgs){ .d = data, .path = path });
}

static void part_body(void *arg)
{
	DataArgs *a = arg;
	a->d->data = data_split(&a->d->cx, readable(&a->d->cx, a->from), a->share, a->seed, a->rest);
	api_data_schema(&a->d->cx, a->d->data);
}

mp_status mp_data_split(mp_data *data, double share, uint64_t seed, mp_data **first, mp_data **rest)
{
	DataArgs a = { .from = data, .share = share, .seed = seed };
	mp_allocator same = { sizeof same, data->cx.alloc.resize, data->cx.alloc.user };
	*rest = NULL;
	mp_status s = handle_new(first, &a, part_body, &same);
	a.rest = true;
	return s != MP_OK ? s : handle_new(rest, &a, part_body, &same);
}

static void scale_body(void *arg)
{
	DataArgs *a = arg;
	scale_fit(a->d, a->kind);
	a->d->info.name = NULL;
}

static void scale_also_body(void *arg)
{
	DataArgs *a = arg;
	if (readable(&a->d->cx, a->d)->inputs != a->from->data->inputs)
		fail(&a->d->cx, MP_BAD_INPUT, "scale data of the same width together", "the two sets have %u and %u inputs",
		     a->from->data->inputs, a->d->data->inputs);
	data_scale_apply(&a->d->cx, &a->d->cx.keep, a->d->data, &a->from->data->scale);
	a->d->info.name = NULL;
}

mp_status mp_data_scale(mp_data *data, const char *kind, mp_data *also)
{
	mp_status s = api_call(&data->cx, scale_body, &(DataArgs){ .d = data, .kind = kind });
	if (s != MP_OK || !also)
		return s;
	return api_call(&also->cx, scale_also_body, &(DataArgs){ .d = also, .from = data });
}

void mp_data_get_case(const mp_data *data, uint64_t i, float *x, float *y)
{
	Validation l = { 0 };
	if (data->data->unchecked) /* index lists may be wrong */
		cases_validate(data->data, NULL, i, i + 1, &l);
	for (uint32_t k = 0; l.invalid && x && k < data->data->inputs; k++)
		x[k] = NAN;
	for (uint32_t k = 0; l.invalid && y && k < data->data->targets; k++)
		y[k] = NAN;
	if (l.invalid)
		return;
	if (x)
		data_x(data->data, i, x);
	if (y && data->data->targets)
		data_y(data->data, i, y);
}

/* ---- names ---- */

typedef struct NameArgs {
	mp_data *d;
	uint64_t i;
	const double *outputs;
} NameArgs;

static Buf *fresh_text(mp_data *d)
{
	d->text.arena = &d->cx.keep;
	d->text.len = 0;
	buf_puts(&d->text, "");
	return &d->text;
}

static void name_body(void *arg)
{
	NameArgs *a = arg;
	const Data *d = a->d->data;
	Buf *b = fresh_text(a->d);
	if (d->names)
		buf_add(b, d->names[a->i].s, d->names[a->i].len);
}

const char *mp_data_get_name(mp_data *data, uint64_t i)
{
	return api_call(&data->cx, name_body, &(NameArgs){ .d = data, .i = i }) == MP_OK ? data->text.s : "";
}

static void guess_body(void *arg)
{
	NameArgs *a = arg;
	const Data *d = a->d->data;
	Buf *b = fresh_text(a->d);
	uint32_t best = 0;
	if (d->codes) {
		best = code_nearest(d->codes, d->code_count, d->targets, a->outputs, NULL);
		if (d->code_names) {
			buf_add(b, d->code_names[best].s, d->code_names[best].len);
			return;
		}
	} else if (d->targets == 1) {
		buf_printf(b, "%g", a->outputs[0]);
		return;
	} else {
		for (uint32_t i = 1; i < d->targets; i++)
			if (a->outputs[i] > a->outputs[best])
				best = i;
	}
	buf_printf(b, "%u", best);
}

const char *mp_data_get_guess(mp_data *data, const double *outputs)
{
	return api_call(&data->cx, guess_body, &(NameArgs){ .d = data, .outputs = outputs }) == MP_OK ? data->text.s : "";
}

const char *const *mp_data_get_classes(const mp_data *data, uint32_t *count)
{
	*count = data->data ? data->data->class_count : 0;
	return data->data ? data->data->classes : NULL;
}
