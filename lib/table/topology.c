/* SPDX-License-Identifier: MIT */
/* A network for a table.  In: a schema, the number of cases.  Out: the text of a topology file: one hidden layer, or
 * those that are asked for; outputs by the kind of the target. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

enum { MAX_LAYERS = 16, PATIENCE = 50 };

/* Measured (doc/defaults.md). Direct links from inputs to outputs carry what is linear. */
enum { FEW_ROWS = 1000 };
static const struct {
	uint32_t hidden, batch;
} sizes[] = { { 100, 32 }, { 40, 16 } }; /* the latter below FEW_ROWS */

/* in, hidden, out; with several hidden layers hidden1, hidden2, ... */
static const char *layer_name(Arena *a, uint32_t layer, uint32_t hidden)
{
	Buf b = { .arena = a };
	buf_puts(&b, layer == 0 ? "in" : layer > hidden ? "out" : "hidden");
	if (layer > 0 && layer <= hidden && hidden > 1)
		buf_printf(&b, "%u", layer);
	return b.s;
}

static uint32_t hidden_read(Ctx *cx, const char *list, uint32_t *size)
{
	uint32_t n = 0;
	for (const char *p = list; *p;) {
		char *end;
		unsigned long long v = isdigit((unsigned char)*p) ? strtoull(p, &end, 10) : 0;
		if (!v || v > MAX_UNITS || n == MAX_LAYERS || (*end && *end != ',') || (*end == ',' && !end[1]))
			fail(cx, MP_BAD_INPUT, "write sizes with commas between, such as 64,32, or 0 for no hidden layer",
			     "--hidden cannot be '%.40s'", list);
		size[n++] = (uint32_t)v;
		p = *end ? end + 1 : end;
	}
	return n;
}

void topology_print(Ctx *cx, const Schema *s, const NetworkFor *n, Buf *out)
{
	static const char *const output[TASK_COUNT] = { "linear", "softmax", "sigmoid", "linear" };
	uint32_t size[MAX_LAYERS], layers = 1;
	bool few = n->rows < FEW_ROWS;
	size[0] = sizes[few].hidden;
	if (n->hidden)
		layers = strcmp(n->hidden, "0") == 0 ? 0 : hidden_read(cx, n->hidden, size);
	buf_printf(out, "# for the table %s: %" PRIu64 " cases to train on\n", n->data, n->cases);
	buf_puts(out, "defaults 2026\n");
	buf_printf(out, "group in %u input\n", s->inputs);
	Arena *a = &cx->scratch;
	for (uint32_t i = 1; i <= layers; i++)
		buf_printf(out, "group %s %u %s\n", layer_name(a, i, layers), size[i - 1], n->function ? n->function : "relu");
	buf_printf(out, "group out %u %s output\n", s->targets, output[s->task]);
	for (uint32_t i = 0; i <= layers; i++)
		buf_printf(out, "connect %s, true -> %s\n", layer_name(a, i, layers), layer_name(a, i + 1, layers));
	if (layers)
		buf_puts(out, "connect in -> out\n");
	static const char *const error[TASK_COUNT] = { "squared", "divergence", "cross-entropy", "squared" };
	buf_printf(out, "train rule adam rate 0.003 batch %u decay 0.1 error %s until never epochs %u\n", sizes[few].batch,
	           error[s->task], n->held_out ? 1000 : 100);
	if (n->held_out)
		buf_printf(out, "train keep-best on patience %d\n", PATIENCE);
}
