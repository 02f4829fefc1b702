/* SPDX-License-Identifier: MIT */
/* npy pairs: inputs in one npy file, targets in another that is found by its name.
 *
 * In: the file of the inputs.  Out: data with these inputs and the partner's targets, unlabelled where there is no
 * partner.  NAME-x.npy goes with NAME-y.npy, NAME_x.npy with NAME_y.npy, x.npy with y.npy, any other NAME.npy with
 * NAME-y.npy. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "data.h"

/* Where the targets of the inputs in `path` would lie. */
static const char *partner_name(Arena *a, const char *path)
{
	size_t n = strlen(path), stem = n >= 4 && strcmp(path + n - 4, ".npy") == 0 ? n - 4 : n;
	bool alone = stem > 0 && path[stem - 1] == 'x' && (stem == 1 || strchr("-_/.", path[stem - 2]));
	Buf b = { .arena = a };
	buf_add(&b, path, alone ? stem - 1 : stem);
	buf_puts(&b, alone ? "y" : "-y");
	buf_puts(&b, path + stem);
	return b.s;
}

static Npy read_array(Ctx *cx, const Src *s)
{
	Npy a = npy_parse(cx, s, 0, s->len);
	Loc at = { s, 0 };
	if (a.string)
		fail_at(cx, at, "save numbers; class names go into csv or npz", "the array holds text, not numbers");
	if (a.dims == 0)
		fail_at(cx, at, "save an array [cases, columns]", "the array is a single number");
	npy_normalize(cx, &a);
	return a;
}

uint32_t npy_columns(Ctx *cx, const Npy *a, Loc at)
{
	uint64_t n = 1;
	for (int i = 1; i < a->dims; i++)
		n *= a->dim[i];
	if (n > MAX_UNITS)
		fail_at(cx, at, "cut it into smaller parts", "%" PRIu64 " columns are more than a network can have units (%u)",
		        n, MAX_UNITS);
	return (uint32_t)n;
}

Data *read_npy(Ctx *cx, const Src *s, const DataOptions *opt)
{
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, s->name, strlen(s->name));
	Npy x = read_array(cx, s);
	d->cases = x.dim[0];
	d->inputs = npy_columns(cx, &x, (Loc){ s, 0 });
	const char *partner = opt && opt->partner ? opt->partner : NULL;
	if (!partner && s->name[0] != '<') {
		const char *found = partner_name(&cx->scratch, s->name);
		partner = access(found, F_OK) == 0 ? found : NULL;
	}
	int place = array_placement(s, opt);
	data_set_inputs(cx, d, &x, place);
	if (partner) {
		Src *t = src_open_data(cx, &cx->keep, partner, src_any);
		t->binary = true;
		Npy y = read_array(cx, t);
		if (y.dim[0] != d->cases)
			fail_at(cx, (Loc){ t, 0 }, "give every case one row of targets",
			        "there are targets for %" PRIu64 " cases, but %s has %" PRIu64, y.dim[0], s->name, d->cases);
		d->targets = npy_columns(cx, &y, (Loc){ t, 0 });
		int own = array_placement(t, opt);
		d->y_type = y.type;
		d->y = npy_keep(cx, d, &y, own > place ? own : place, T_COUNT);
	}
	d->unchecked = d->mapped && opt && opt->shared;
	data_check(cx, d, (Loc){ s, 0 });
	data_truncate(cx, d, opt ? opt->first : 0);
	return d;
}

/* ---- writing ---- */

static void put_array(OutFile *f, DType t, const void *v, uint64_t rows, uint64_t cols)
{
	char head[NPY_HEADER];
	file_write(f, head, npy_header(t, (uint64_t[]){ rows, cols }, 2, head, sizeof head));
	file_write(f, v, rows * cols * dtypes[t].size);
}

/* Index lists as dense rows: bytes if all values are ones, else floats. */
static void put_lists(Ctx *cx, OutFile *f, const Data *d)
{
	char head[NPY_HEADER];
	DType t = d->x_values ? T_F32 : T_U8;
	file_write(f, head, npy_header(t, (uint64_t[]){ d->cases, d->inputs }, 2, head, sizeof head));
	float *row = NEW(&cx->scratch, d->inputs, float);
	uint8_t *bytes = NEW(&cx->scratch, d->inputs, uint8_t);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			bytes[k] = row[k] != 0;
		file_write(f, t == T_F32 ? (void *)row : (void *)bytes, (size_t)d->inputs * dtypes[t].size);
	}
}

/* Targets that are masked have no place of their own here: they become NaN. */
static void put_targets(Ctx *cx, OutFile *f, const Data *d)
{
	if (!d->mask) {
		put_array(f, d->y_type, d->y, d->cases, d->targets);
		return;
	}
	char head[NPY_HEADER];
	float *row = NEW(&cx->scratch, d->targets, float);
	file_write(f, head, npy_header(T_F32, (uint64_t[]){ d->cases, d->targets }, 2, head, sizeof head));
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, row);
		file_write(f, row, d->targets * sizeof *row);
	}
}

void write_npy(Ctx *cx, const Data *d, const char *path)
{
	const char *partner = partner_name(&cx->scratch, path);
	if (d->targets == 0 && access(partner, F_OK) == 0)
		fail(cx, MP_BAD_INPUT, "remove it, or write under another name",
		     "%s is there and would be taken for the targets of %s", partner, path);
	data_note_lost(cx, d, "npy", 0);
	OutFile *fx = file_create(cx, &cx->scratch, path), *fy = NULL;
	if (d->targets) {
		fy = file_create(cx, &cx->scratch, partner);
		put_targets(cx, fy, d);
	}
	if (d->x_indptr)
		put_lists(cx, fx, d);
	else
		put_array(fx, d->x_type, d->x, d->cases, d->inputs);
	if (fy)
		file_commit(cx, fy);
	file_commit(cx, fx);
}

void write_npy_doubles(Ctx *cx, const char *path, const double *v, uint64_t rows, uint64_t cols)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	put_array(f, T_F64, v, rows, cols);
	file_commit(cx, f);
}
