/* SPDX-License-Identifier: MIT */
/* The list of steps as text. In: a list. Out: a line for each step: its name, what it writes, what it reads. */
#include "pass.h"

static const char *const buffers[] = { [ROW_ACT] = "act",     [ROW_DELTA] = "delta", [ROW_NET] = "net",
	                                   [ROW_ERROR] = "error", [ROW_HELD] = "held",   [ROW_CLEAN] = "clean" };

/* Units from number `first` of a part on. */
static void print_units(const Program *p, const char *buffer, const Part *t, uint32_t first, uint32_t count, Buf *out)
{
	const Group *g = t->group < 0 ? NULL : &p->net->group[t->group];

	if (g)
		first += t->first - g->first;
	buf_printf(out, "%s%s%s[%u:%u]", buffer, *buffer ? " " : "", g ? g->name : "true", first, first + count - 1);
}

static void print_part(const Program *p, int buffer, const Part *t, Buf *out)
{
	print_units(p, buffers[buffer], t, 0, t->count, out);
}

static void print_sources(const Program *p, const char *buffer, const Panel *panel, Buf *out)
{
	const Part *from = &p->layout->part[panel->from];

	print_units(p, buffer, from, panel->source - from->col, panel->sources, out);
}

static uint32_t panel_number(const Program *p, const Panel *panel) { return (uint32_t)(panel - p->layout->panel); }

/* " = START + ", or " += " */
static void print_start(const Program *p, const float *start, Buf *out)
{
	buf_puts(out, !start ? " += " : start == p->zero ? " = " : " = bias + ");
}

static void print_weights(const Program *p, const Panel *panel, const float *w, bool transposed, Buf *out)
{
	const float *copies = p->noisy ? p->noisy->copies : p->copies;
	bool copy = (w >= p->copies && w < p->copies + p->layout->copy_floats) ||
	            (w >= copies && w < copies + p->layout->copy_floats);

	buf_printf(out, " * W%u%s%s", panel_number(p, panel),
	           transposed ? " transposed"
	           : copy     ? " copy"
	                      : "",
	           panel->like->noise.kind ? " with noise" : "");
}

static void print_sums(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	const Panel *panel = st->panel;
	const Part *to = &p->layout->part[panel->part];
	bool back = st->a == ROW_DELTA;

	if (st->run == run_links || st->run == run_links_back) {
		print_part(p, st->c, st->part, out);
		buf_printf(out, "%s%s * W%u, link by link", back ? " += " : " = ", buffers[st->a], panel_number(p, panel));
		return;
	}
	if (back)
		print_sources(p, buffers[st->c], panel, out);
	else
		print_part(p, st->c, to, out);
	if (st->run == run_index) {
		print_start(p, st->lists.start, out);
		print_sources(p, b->data->x_values ? "lists" : "binary lists", panel, out);
		print_weights(p, panel, st->lists.b, false, out);
		buf_puts(out, st->lists.sigmoid ? ", sigmoid" : "");
		return;
	}
	print_start(p, st->product.start, out);
	if (back)
		print_part(p, st->a, to, out);
	else
		print_sources(p, st->from_data ? "inputs" : buffers[st->a], panel, out);
	print_weights(p, panel, st->product.b, st->product.transposed, out);
	buf_printf(out, ", %u x %u", st->product.depth, st->product.cols);
}

static void print_gradient(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	const Panel *panel = st->panel;

	buf_printf(out, "G%u += ", panel_number(p, panel));
	if (panel->list)
		buf_printf(out, "act * delta, for each of %llu links", (unsigned long long)panel->list->links);
	else
		print_sources(p, st->run == run_gradient_index ? b->data->x_values ? "lists" : "binary lists" : "act", panel,
		              out);
	if (panel->list)
		return;
	buf_puts(out, panel->bias ? " and true * " : " * ");
	print_part(p, ROW_DELTA, st->part, out);
	buf_puts(out, ", over all rows");
}

static void print_load(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	(void)st;
	buf_printf(out, "%s of %u inputs, %u targets", b->index ? "index lists" : "rows", p->net->inputs, b->data->targets);
}

static void print_units_step(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	(void)b;
	print_part(p, st->c, st->part, out);
	buf_printf(out, " = %s(%s)", unit_fns[st->part->fn].name, st->a == ROW_NET ? "net" : "sums");
}

static void print_scored(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	(void)b;
	if (st->c != ROW_NONE)
		print_part(p, st->c, st->part, out);
	buf_printf(out, "%sslope of %s%s", st->c == ROW_NONE ? "" : " = ", error_fns[st->errors.error].name,
	           st->errors.deltas ? ", times the slope of units" : "");
}

static void print_written(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	(void)b;
	if (!st->part)
		buf_puts(out, st->run == run_contexts ? "of all groups, from the row before" : "of all outputs");
	else
		print_part(p, st->c, st->part, out);
	if (st->part && st->run == run_deltas)
		buf_printf(out, " *= slope of %s", unit_fns[st->part->fn].name);
}

static void print_noise(const Program *p, const Bound *b, const Step *st, Buf *out)
{
	(void)b;
	print_part(p, st->c, st->part, out);
	buf_printf(out, " = %s %g of %s", noise_names[st->noise->kind], st->noise->exact, buffers[st->a]);
}

static const struct {
	StepFn *run;
	const char *name;
	void (*print)(const Program *p, const Bound *b, const Step *st, Buf *out);
} names[] = {
	{ run_load, "load", print_load },
	{ run_product, "product", print_sums },
	{ run_product_bf16, "product bf16", print_sums },
	{ run_back_bf16, "product bf16", print_sums },
	{ run_index, "index", print_sums },
	{ run_links, "links", print_sums },
	{ run_links_back, "links", print_sums },
	{ run_units, "units", print_units_step },
	{ run_one, "set one after", print_written },
	{ run_contexts, "contexts", print_written },
	{ run_gather, "gather outputs", print_written },
	{ run_errors, "errors", print_scored },
	{ run_scores, "scores", print_written },
	{ run_outcomes, "units, errors, scores", print_scored },
	{ run_codes, "code words", print_written },
	{ run_zero, "zero", print_written },
	{ run_copy_error, "copy errors", print_written },
	{ run_add_error, "add errors", print_written },
	{ run_carry, "errors of contexts", print_written },
	{ run_spread, "copy to other ticks", print_written },
	{ run_integrate, "integrate", print_written },
	{ run_integrate_back, "integrate back", print_written },
	{ run_noise, "noise", print_noise },
	{ run_gain, "gain", print_written },
	{ run_near, "near targets", print_written },
	{ run_within, "within", print_written },
	{ run_deltas, "deltas", print_written },
	{ run_gradient, "gradient", print_gradient },
	{ run_gradient_bf16, "gradient bf16", print_gradient },
	{ run_gradient_index, "gradient index", print_gradient },
	{ run_gradient_links, "gradient links", print_gradient },
};

void step_print(const Program *p, const Bound *b, const Step *st, const char *name, Buf *out)
{
	for (size_t i = 0; i < COUNT(names); i++) {
		if (names[i].run != st->run)
			continue;
		buf_printf(out, "\t%-22s", name ? name : names[i].name);
		if (st->run == run_product && !st->panel) { /* sums without sources */
			print_part(p, st->c, st->part, out);
			buf_puts(out, st->product.start == p->zero ? " = 0" : " = bias");
		} else {
			names[i].print(p, b, st, out);
		}
		buf_puts(out, "\n");
	}
}

void list_print(const Program *p, const Bound *b, const List *list, Buf *out)
{
	static const char *const each[] = { "all rows of a chunk", "for each time step", "for each time step, in reverse",
		                                "first ticks of cases", "ticks that have targets" };

	for (const Stage *g = list->stage; g < list->stage + list->stages; g++) {
		if (g->first == g->end)
			continue;
		buf_printf(out, "%s: %s\n", g->name, each[g->each]);
		for (uint32_t i = g->first; i < g->end; i++)
			step_print(p, b, &list->step[i], NULL, out);
	}
}
