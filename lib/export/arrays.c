/* SPDX-License-Identifier: MIT */
/* Arrays.  In: a Model.  Out: an npz file with the tensors of a weights file (doc/files.md): [to, from] of dense
 * blocks, [to] of weights from the true unit, values with indices of others; scale and classes. */
#include <string.h>

#include "export.h"

typedef struct Arrays {
	Ctx *cx;
	const Model *m;
	ZipOut *zip;
} Arrays;

static void put(Arrays *a, const char *name, const char *ending, DType t, const void *v, const uint64_t *dim, int dims)
{
	char head[NPY_HEADER];
	Buf key = { .arena = &a->cx->scratch };
	uint64_t count = 1;
	for (int i = 0; i < dims; i++)
		count *= dim[i];
	buf_printf(&key, "%s%s.npy", name, ending);
	size_t n = npy_header(t, dim, dims, head, sizeof head);
	zip_add(a->zip, key.s, head, n, v, count * dtypes[t].size);
}

static void put_slot(Arrays *a, const Slot *s)
{
	const Net *net = a->m->net;
	uint64_t n = 0, first, end;
	float *value = NEW(&a->cx->scratch, s->links, float);
	int32_t *to = NEW(&a->cx->scratch, s->links, int32_t), *from = NEW(&a->cx->scratch, s->links, int32_t);
	for (uint32_t t = 0; t < s->to_count; t++) {
		slot_row(net, s, t, &first, &end);
		Unit unit = net->group[s->to_group].first + s->to_first + t;
		for (uint64_t l = first; l < end; l++) {
			if (!slot_has(net, s, t, l))
				continue;
			value[n] = (float)a->m->w[l];
			to[n] = (int32_t)(s->to_first + t);
			from[n++] = s->from_group < 0 ? 0 : (int32_t)(net_source(net, unit, l) - net->group[s->from_group].first);
		}
	}
	if (s->dense) {
		put(a, s->name, "", T_F32, value, (uint64_t[]){ s->to_count, s->from_count }, s->from_group < 0 ? 1 : 2);
		return;
	}
	put(a, s->name, ".values", T_F32, value, &n, 1);
	put(a, s->name, ".to", T_I32, to, &n, 1);
	if (s->from_group >= 0)
		put(a, s->name, ".from", T_I32, from, &n, 1);
}

/* Strings as numpy's bytes. */
static void put_names(Arrays *a, const char *key, const char *const *name, uint32_t count)
{
	char head[NPY_HEADER];
	Npy npy = { .type = T_U8, .string = true, .width = 1 };
	for (uint32_t i = 0; i < count; i++)
		npy.width = max_u32(npy.width, (uint32_t)strlen(name[i]));
	char *v = arena_alloc(&a->cx->scratch, count, npy.width);
	for (uint32_t i = 0; i < count; i++)
		memcpy(v + (size_t)i * npy.width, name[i], strlen(name[i]));
	size_t n = npy_header_like(&npy, &(uint64_t){ count }, 1, head, sizeof head);
	zip_add(a->zip, key, head, n, v, (size_t)count * npy.width);
}

void arrays_write(const Writing *w)
{
	Arrays a = { w->cx, w->m, zip_create(w->cx, w->path, UINT32_MAX) };
	uint32_t count;
	const Slot *slot = slots_make(w->cx, w->m->net, &count);
	const Columns *c = w->columns;
	uint64_t inputs = w->m->net->inputs;
	for (uint32_t i = 0; i < count; i++)
		put_slot(&a, &slot[i]);
	if (c->scaled) {
		double *offset = NEW(&w->cx->scratch, inputs, double), *factor = NEW(&w->cx->scratch, inputs, double);
		for (uint64_t i = 0; i < inputs; i++) {
			offset[i] = c->feed[i].offset;
			factor[i] = c->feed[i].factor;
		}
		put(&a, "scale.offset", "", T_F64, offset, &inputs, 1);
		put(&a, "scale.factor", "", T_F64, factor, &inputs, 1);
	}
	if (c->name)
		put_names(&a, "columns.npy", c->name, c->count);
	if (c->target)
		put_names(&a, c->classes ? "classes.npy" : "targets.npy", c->target, w->m->net->outputs);
	zip_commit(w->cx, a.zip);
}
