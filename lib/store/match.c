/* SPDX-License-Identifier: MIT */
/* Tensors of other programs, found by shape.  In: a file whose tensors have other names, such as 0.weight or fc1.bias
 * of PyTorch.  Out: slots that are called like the tensors that fit them, and a note that lists them.
 *
 * Tensors in the order of their names (numbers in them by value) are given to slots in the order of their target and
 * source groups: to each the first that has its shape.  Weights from the true unit prefer the tensor whose name begins
 * like that of the group's other weights.  Nothing changes unless every slot gets one. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* fc2 before fc10. */
static int by_name(const void *a, const void *b)
{
	const char *x = (*(const Tensor *const *)a)->name, *y = (*(const Tensor *const *)b)->name;
	while (*x && *y) {
		if (is_digit(*x) && is_digit(*y)) {
			char *after_x, *after_y;
			unsigned long long p = strtoull(x, &after_x, 10), q = strtoull(y, &after_y, 10);
			if (p != q)
				return p < q ? -1 : 1;
			x = after_x;
			y = after_y;
		} else if (*x++ != *y++) {
			return (unsigned char)x[-1] < (unsigned char)y[-1] ? -1 : 1;
		}
	}
	return (*x != 0) - (*y != 0);
}

static int by_groups(const void *a, const void *b)
{
	const Slot *x = *(const Slot *const *)a, *y = *(const Slot *const *)b;
	if (x->to_group != y->to_group)
		return x->to_group < y->to_group ? -1 : 1;
	int32_t p = x->from_group < 0 ? INT32_MAX : x->from_group, q = y->from_group < 0 ? INT32_MAX : y->from_group;
	return p < q ? -1 : p > q;
}

static bool fits(const Slot *s, const Tensor *t)
{
	if (!safe_is_real(t->type) || !s->dense)
		return false;
	return s->from_group < 0 ? t->dims == 1 && t->dim[0] == s->to_count
	                         : t->dims == 2 && t->dim[0] == s->to_count && t->dim[1] == s->from_count;
}

/* Bytes up to the last dot. */
static size_t stem(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? (size_t)(dot - name) : 0;
}

static bool same_stem(const char *a, const char *b)
{
	size_t n = stem(a);
	return n && n == stem(b) && strncmp(a, b, n) == 0;
}

typedef struct Match {
	Tensor **tensor;
	bool *taken;
	uint32_t tensors;
} Match;

static const Tensor *match_one(Match *m, const Slot *s, const char *like)
{
	uint32_t found = m->tensors;
	for (uint32_t i = 0; i < m->tensors; i++) {
		if (m->taken[i] || !fits(s, m->tensor[i]))
			continue;
		if (like && same_stem(like, m->tensor[i]->name)) {
			found = i;
			break;
		}
		found = found == m->tensors ? i : found;
	}
	if (found == m->tensors)
		return NULL;
	m->taken[found] = true;
	return m->tensor[found];
}

void slots_match(Ctx *cx, const SafeFile *f, Slot *slot, uint32_t slots)
{
	Match m = { .tensor = NEW(&cx->scratch, f->tensors, Tensor *), .taken = NEW(&cx->scratch, f->tensors, bool) };
	Slot **order = NEW(&cx->scratch, slots, Slot *);
	const char **name = NEW(&cx->scratch, slots, const char *), *like = NULL;
	Buf said = { .arena = &cx->scratch };
	int32_t like_group = -1;
	for (uint32_t i = 0; i < slots; i++) {
		order[i] = &slot[i];
		if (safe_find(f, slot[i].name))
			return; /* names are ours */
	}
	for (uint32_t i = 0; i < f->tensors; i++)
		m.tensor[m.tensors++] = &f->tensor[i];
	qsort(m.tensor, m.tensors, sizeof *m.tensor, by_name);
	qsort(order, slots, sizeof *order, by_groups);
	for (uint32_t i = 0; i < slots; i++) {
		const Slot *s = order[i];
		bool bias = s->from_group < 0;
		const Tensor *t = match_one(&m, s, bias && like_group == s->to_group ? like : NULL);
		if (!t)
			return;
		name[i] = t->name;
		if (!bias) {
			like = t->name;
			like_group = s->to_group;
		}
		if (i < 8)
			buf_printf(&said, "%s%.60s is %s", i ? ", " : "", t->name, s->name);
		else if (i == 8)
			buf_puts(&said, ", ...");
	}
	for (uint32_t i = 0; i < slots; i++)
		order[i]->name = name[i];
	note(cx, "other names are matched by shape, in their order; rename tensors where that is wrong", "%s: %s",
	     f->src->name, said.s);
}
