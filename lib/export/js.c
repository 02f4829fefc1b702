/* SPDX-License-Identifier: MIT */
/* JavaScript.  In: a Model.  Out: an ES module: the steps of the Recipe as data, weights in base64, and runtime.js that
 * computes them. */
#include <inttypes.h>
#include <string.h>

#include "export.h"

static void put_base64(Buf *b, const void *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = bytes;
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
		char out[4] = { digits[v >> 18], digits[v >> 12 & 63], '=', '=' };
		if (n > 1)
			out[2] = digits[v >> 6 & 63];
		if (n > 2)
			out[3] = digits[v & 63];
		buf_add(b, out, 4);
	}
}

static void put_weights(Buf *b, const char *name, const float *v, uint64_t n)
{
	buf_printf(b, "\t%s: decoded(\"", name);
	put_base64(b, v, n * sizeof *v);
	buf_puts(b, "\"),\n");
}

static void put_ints(Buf *b, const char *name, const int32_t *v, uint64_t n)
{
	buf_printf(b, "\t%s: [", name);
	for (uint64_t i = 0; i < n; i++)
		buf_printf(b, "%s%" PRId32, i ? "," : "", v[i]);
	buf_puts(b, "],\n");
}

static void put_groups(Buf *b, const Net *net, const char *name, int role)
{
	uint32_t at = 0;
	buf_printf(b, "\t%s: [", name);
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		if (g->role != role)
			continue;
		buf_printf(b, "{ first: %u, count: %u, at: %u }, ", g->first, g->size, at);
		at += g->size;
	}
	buf_puts(b, "],\n");
}

static void put_work(Buf *b, const Work *w)
{
	switch (w->kind) {
	case WORK_START: buf_printf(b, "\t\t[\"start\", %u, %u, %zu],\n", w->first, w->count, w->at); break;
	case WORK_DENSE:
		buf_printf(b, "\t\t[\"dense\", %u, %u, %zu, %u, %u, %u],\n", w->first, w->count, w->at, w->from, w->sources,
		           w->stride);
		break;
	case WORK_LINKS: buf_printf(b, "\t\t[\"links\", %u, %u, %zu],\n", w->first, w->count, w->at); break;
	case WORK_UNITS:
		buf_printf(b, "\t\t[\"units\", %u, %u, \"%s\"],\n", w->first, w->count, unit_fns[w->fn].name);
		break;
	default: buf_printf(b, "\t\t[\"integrate\", %u, %u, %u, %.9g],\n", w->first, w->count, w->state, (double)w->dt);
	}
}

static void put_feeds(Buf *b, const Columns *c, uint32_t inputs)
{
	buf_puts(b, "\tfeed: [\n");
	for (uint32_t i = 0; i < inputs; i++) {
		const Feed *f = &c->feed[i];
		buf_printf(b, "\t\t{ column: %u", f->column);
		if (f->wide)
			buf_puts(b, ", wide: true");
		if (f->kind == FEED_CATEGORY)
			buf_printf(b, ", category: %u", f->category);
		else if (f->kind == FEED_MISSING)
			buf_puts(b, ", missing: true");
		else
			buf_printf(b, ", offset: %.17g, factor: %.17g, fill: %.17g", f->offset, f->factor,
			           f->kind == FEED_NUMBER ? f->fill : 0);
		buf_puts(b, " },\n");
	}
	buf_puts(b, "\t],\n");
}

static void put_model(Buf *b, const Recipe *r, const Columns *c)
{
	static const int stepwise[] = { FN_STEPWISE, FN_STEPWISE_TANH };
	const Net *net = r->net;
	buf_printf(b, "const model = {\n\tunits: %u,\n\tstates: %u,\n\tticks: %u,\n\tinputsEnd: %u,\n", net->units,
	           r->states, r->ticks.each, r->ticks.inputs_end);
	put_groups(b, net, "inputs", ROLE_INPUT);
	put_groups(b, net, "outputs", ROLE_OUTPUT);
	buf_puts(b, "\tremember: [\n");
	for (uint32_t i = 0; i < r->remembers; i++) {
		const Remember *m = &r->remember[i];
		buf_printf(b, "\t\t{ from: %u, to: %u, count: %u, at: %u, start: %.9g },\n", m->from, m->to, m->count, m->state,
		           (double)m->start);
	}
	buf_puts(b, "\t],\n\twork: [\n");
	for (uint32_t i = 0; i < r->works; i++)
		put_work(b, &r->work[i]);
	buf_puts(b, "\t],\n");
	if (c->scaled || c->table)
		put_feeds(b, c, net->inputs);
	if (c->offset) {
		buf_puts(b, "\tdecode: [\n");
		for (uint32_t i = 0; i < net->outputs; i++)
			buf_printf(b, "\t\t{ offset: %.17g, factor: %.17g },\n", c->offset[i], c->factor[i]);
		buf_puts(b, "\t],\n");
	}
	for (size_t i = 0; i < COUNT(stepwise); i++) {
		float table[19];
		steps_table(stepwise[i], table);
		for (uint32_t k = 0; k < r->works; k++) {
			if (r->work[k].kind == WORK_UNITS && r->work[k].fn == stepwise[i]) {
				put_weights(b, unit_fns[stepwise[i]].name, table, COUNT(table));
				break;
			}
		}
	}
	put_weights(b, "weight", r->weight, r->weights);
	if (r->links) {
		put_weights(b, "link", r->link, r->links);
		put_ints(b, "from", r->from, r->links);
		put_ints(b, "row", r->row, r->rows);
	}
	buf_puts(b, "};\n\n");
}

void js_write(const Writing *w)
{
	Ctx *cx = w->cx;
	const Recipe *r = recipe_make(cx, &cx->scratch, w->m);
	Buf b = { .arena = &cx->scratch };
	size_t len;
	const char *text = runtime_text("runtime.js", &len);
	buf_printf(&b,
	           "// %s: made by microprop %s.  import { predict } from \"./%s.js\"; predict([...]) gives the outputs.\n",
	           w->m->name, MP_VERSION, w->m->name);
	buf_puts(&b, "export const about = ");
	columns_describe(w->columns, w->m, &b);
	buf_puts(&b, ";\n\n");
	put_model(&b, r, w->columns);
	buf_add(&b, text, len);
	text_file(cx, w->path, &b);
}
