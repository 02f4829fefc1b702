/* SPDX-License-Identifier: MIT */
/* Data in arrays of the caller. In: mp_cases. Out: Data whose arrays are those of the caller, checked as a file's are;
 * sparse 0/1 rows become index lists of our own. */
#include <string.h>

#include "api.h"
#include "microprop/data.h"

typedef struct ViewArgs {
	mp_data *d;
	const mp_cases *given;
} ViewArgs;

static DType type_named(Ctx *cx, const char *name)
{
	Buf known = { .arena = &cx->scratch };
	if (!name)
		return T_F32;
	for (int i = 0; i < T_COUNT; i++) {
		if (strcmp(dtypes[i].name, name) == 0)
			return (DType)i;
		buf_printf(&known, "%s%s", i ? ", " : "the types are ", dtypes[i].name);
	}
	fail(cx, MP_BAD_INPUT, known.s, "there is no type '%s'", name);
}

static void need(Ctx *cx, bool there, const char *remedy, const char *what)
{
	if (!there)
		fail(cx, MP_BAD_INPUT, remedy, "%s", what);
}

static const Text *texts(Arena *a, const char *const *name, uint64_t count)
{
	Text *t = NEW(a, count, Text);
	for (uint64_t i = 0; i < count; i++)
		t[i] = (Text){ name[i], (uint32_t)strlen(name[i]) };
	return t;
}

/* Inputs, then targets: a single label where there are classes. */
static void name_columns(Ctx *cx, Data *d, const mp_cases *c)
{
	uint32_t targets = c->classes ? 1 : d->targets;
	if (!c->input_names)
		return;
	need(cx, !d->targets || c->target_names, "name the targets too, or no column", "the targets have no names");
	DataColumn *column = NEW(&cx->keep, (size_t)d->inputs + targets, DataColumn);
	for (uint32_t i = 0; i < d->inputs; i++)
		column[i] = (DataColumn){ c->input_names[i], COLUMN_INPUT, false };
	for (uint32_t i = 0; i < targets; i++)
		column[d->inputs + i] = (DataColumn){ c->target_names[i], COLUMN_TARGET, c->classes };
	d->column = columns_copy(&cx->keep, column, d->inputs + targets);
	d->columns = d->inputs + targets;
}

static void view_body(void *arg)
{
	ViewArgs *a = arg;
	Ctx *cx = &a->d->cx;
	mp_cases c;
	if (!api_take(&c, sizeof c, a->given))
		fail(cx, MP_BAD_INPUT, "set mp_cases.size to sizeof(mp_cases), and what you do not use to 0",
		     "these cases are not of this version of the library");
	need(cx, c.x || (c.x_indptr && c.x_indices), "set x, or x_indptr and x_indices", "there are no inputs");
	need(cx, c.cases && c.inputs, "give at least one case of one input", "there are no cases");
	need(cx, !c.targets || c.y, "set y, or targets to 0", "there are no targets");
	need(cx, !c.classes || c.class_count == c.targets, "give every target a class",
	     "the numbers of classes and of targets differ");
	Data *d = NEW(&cx->keep, 1, Data);
	*d = (Data){ .name = c.name ? arena_copy(&cx->keep, c.name, strlen(c.name)) : "data",
		         .cases = c.cases,
		         .inputs = c.inputs,
		         .targets = c.targets,
		         .x = c.x,
		         .x_type = type_named(cx, c.x_type),
		         .y = c.targets ? c.y : NULL,
		         .y_type = type_named(cx, c.y_type),
		         .mask = c.targets ? c.mask : NULL,
		         .seq = c.seq,
		         .sequences = c.seq ? c.sequences : 0,
		         .weight = c.weight,
		         .ticks = c.ticks,
		         .lent = true };
	if (!c.x) {
		d->x_indptr = c.x_indptr;
		d->x_indices = c.x_indices;
		d->x_values = c.x_values;
	}
	if (c.classes)
		classes_set(cx, d, texts(&cx->scratch, c.classes, c.class_count), c.class_count);
	data_check(cx, d, (Loc){ 0 });
	if (c.names)
		d->names = texts(&cx->keep, c.names, c.cases);
	name_columns(cx, d, &c);
	api_data_schema(cx, d);
	data_count_bytes(d);
	data_pack(cx, d);
	a->d->data = d;
}

mp_status mp_data_view(mp_data **data, const mp_cases *cases, const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)data, sizeof **data, alloc);
	return s != MP_OK ? s : api_call(&(*data)->cx, view_body, &(ViewArgs){ *data, cases });
}

static void change_body(void *arg)
{
	Run *r = arg;
	if (r->at.done)
		fail(&r->cx, MP_BAD_INPUT, "train to the end of the epoch first, on the data that it began with",
		     "this run has trained on %llu examples of an epoch that is not over", (unsigned long long)r->at.done);
	r->at.cases = r->at.data = 0;
}

mp_status mp_run_change_data(mp_run *run) { return api_call(&run->cx, change_body, run); }
