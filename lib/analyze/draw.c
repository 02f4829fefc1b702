/* SPDX-License-Identifier: MIT */
/* Figures of `microprop show --figure`: the network, the weights of a block (Hinton diagram), activations over time.
 * In: a network with its weights, and cases.  Out: an SVG file, or the same drawn with characters. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"

/* Without its folder. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

enum { MOST_SIDE = 400, SHOWN_CASES = 60 };

typedef struct Figure {
	const Subject *s;
	const char *svg, *block, *group;
	uint64_t number; /* of the case or sequence, from 1 */
} Figure;

static const CommandOption options[] = {
	{ "svg", ARG_TEXT, offsetof(Figure, svg), 0 },
	{ "block", ARG_TEXT, offsetof(Figure, block), 0 },
	{ "group", ARG_TEXT, offsetof(Figure, group), 0 },
	{ "case", ARG_COUNT, offsetof(Figure, number), UINT32_MAX },
};
static const CommandArgs words = { .of = "show", .row = options, .rows = COUNT(options) };

static Figure figure_read(const Subject *s, int argc, const char *const *argv)
{
	Figure f = { .s = s, .number = 1 };
	tool_args_read(s->cx, &words, argc, argv, &f);
	return f;
}

static void figure_write(const Figure *f, const HeatPlot *p, Buf *out)
{
	Buf svg = { .arena = &f->s->cx->scratch };
	if (!f->svg) {
		heat_text(p, out);
		return;
	}
	heat_svg(p, &svg);
	text_save(f->s->cx, f->svg, &svg);
	buf_printf(out, "drawn in %s\n", text_escaped(out->arena, f->svg));
}

static const char *number_name(Arena *a, uint64_t n)
{
	Buf b = { .arena = a };
	buf_printf(&b, "%" PRIu64, n);
	return b.s;
}

/* ---- the network ---- */

/* Contexts that a settling network makes for itself stand for their sources. */
static uint32_t shown_group(const Net *net, int32_t g)
{
	for (uint32_t i = 0; i < net->copies; i++)
		if (net->copy[i].to_group == g && net->group[g].before)
			return (uint32_t)net->copy[i].from_group;
	return (uint32_t)g;
}

/* Rows: inputs and contexts at the bottom; any other group above all that it reads of the same time step. */
static uint32_t *levels_make(const Net *net, Arena *a)
{
	uint32_t *level = NEW(a, net->groups, uint32_t);
	for (uint32_t round = 0; round < net->groups; round++)
		for (uint32_t i = 0; i < net->blocks; i++) {
			const Block *b = &net->block[i];
			uint32_t from = b->from_group < 0 ? 0 : shown_group(net, b->from_group);
			bool back = b->from_group >= 0 && net->group[b->from_group].before && from >= (uint32_t)b->to_group;
			if (b->from_group < 0 || back)
				continue;
			uint32_t least = level[from] + 1;
			level[b->to_group] = least > level[b->to_group] ? least : level[b->to_group];
		}
	return level;
}

void network_study(const Subject *s, int argc, const char *const *argv, Buf *out)
{
	const Net *net = s->net;
	Arena *a = &s->cx->scratch;
	Figure f = figure_read(s, argc, argv);
	if (!f.svg)
		fail(s->cx, MP_BAD_INPUT, "name a file: --svg net.svg; without --figure, show prints the network as text",
		     "the drawing of a network is an SVG file");
	uint32_t *level = levels_make(net, a), *number = NEW(a, net->groups, uint32_t), boxes = 0, arrows = 0;
	NetworkBox *box = NEW(a, net->groups, NetworkBox);
	NetworkArrow *arrow = NEW(a, net->blocks + net->copies + 1, NetworkArrow);
	uint64_t *links = NEW(a, net->blocks + net->copies + 1, uint64_t);
	bool *biased = NEW(a, net->groups, bool), before = false;
	for (uint32_t i = 0; i < net->blocks; i++)
		biased[net->block[i].to_group] |= net->block[i].from_group < 0;
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		Buf text = { .arena = a };
		if (g->before)
			continue;
		buf_printf(&text, "%u %s%s", g->size,
		           g->role == ROLE_INPUT || g->role == ROLE_CONTEXT ? role_names[g->role] : unit_fns[g->fn].name,
		           biased[i] ? ", biases" : "");
		number[i] = boxes;
		box[boxes++] = (NetworkBox){ g->name, text.s, level[i], g->role == ROLE_INPUT || g->role == ROLE_OUTPUT };
	}
	for (uint32_t i = 0; i < net->blocks; i++) { /* blocks between the same two groups are one arrow */
		const Block *b = &net->block[i];
		if (b->from_group < 0)
			continue;
		NetworkArrow one = { number[shown_group(net, b->from_group)], number[b->to_group],
			                 net->group[b->from_group].before, NULL };
		uint32_t k = 0;
		while (k < arrows && (arrow[k].from != one.from || arrow[k].to != one.to || arrow[k].before != one.before))
			k++;
		arrow[k] = one;
		arrows += k == arrows;
		links[k] += b->links;
		before |= one.before;
	}
	for (uint32_t k = 0; k < arrows; k++)
		arrow[k].label = number_name(a, links[k]);
	for (uint32_t i = 0; i < net->copies; i++)
		if (!net->group[net->copy[i].to_group].before) {
			arrow[arrows++] =
				(NetworkArrow){ number[net->copy[i].from_group], number[net->copy[i].to_group], true, "copy" };
			before = true;
		}
	Buf title = { .arena = a }, svg = title;
	buf_puts(&title, "Network ");
	svg_cut(&title, file_name(net->name), 40);
	buf_printf(&title, ", %" PRIu64 " links", net->links);
	network_svg(&(NetworkPlot){ title.s, box, boxes, arrow, arrows,
	                            !before        ? NULL
	                            : net->settles ? "from the tick before"
	                                           : "from the case before" },
	            &svg);
	text_save(s->cx, f.svg, &svg);
	buf_printf(out, "drawn in %s\n", text_escaped(out->arena, f.svg));
}

/* ---- Hinton diagram ---- */

typedef struct Units {
	const Group *g; /* NULL: the true unit */
	uint32_t first, count;
} Units;

/* NAME, NAME[3] or NAME[3:7]. */
static Units units_read(const Subject *s, const char *word, size_t len)
{
	char *end = NULL;
	size_t n = 0;
	while (n < len && word[n] != '[')
		n++;
	Text name = { word, (uint32_t)n };
	if (text_is(name, "true"))
		return (Units){ NULL, 0, 1 };
	Units u = { net_group_named(s->cx, s->net, "--block", name), 0, 0 };
	u.count = u.g->size;
	if (n == len)
		return u;
	const char *text = arena_copy(&s->cx->scratch, word + n + 1, len - n - 1);
	unsigned long first = strtoul(text, &end, 10), last = first;
	if (end != text && *end == ':')
		last = strtoul(end + 1, &end, 10);
	if (end == text || *end != ']' || end[1] || last < first || last >= u.g->size)
		fail(s->cx, MP_BAD_INPUT, "write units as [FIRST:LAST], counted from 0", "--block: '%.*s' has no such units",
		     (int)(len < 40 ? len : 40), word);
	u.first = (uint32_t)first;
	u.count = (uint32_t)(last - first + 1);
	return u;
}

static const char **unit_names(const Subject *s, const Units *u)
{
	const char **name = NEW(&s->cx->scratch, u->count, const char *);
	for (uint32_t i = 0; i < u->count; i++)
		name[i] = u->g ? number_name(&s->cx->scratch, u->first + i) : "true";
	return name;
}

/* The first block that is not of biases. */
static const char *block_default(const Subject *s)
{
	const Net *net = s->net;
	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		Buf text = { .arena = &s->cx->scratch };
		if (b->from_group < 0)
			continue;
		buf_printf(&text, "%s->%s", net->group[shown_group(net, b->from_group)].name, net->group[b->to_group].name);
		return text.s;
	}
	return "true->?";
}

void hinton_study(const Subject *s, int argc, const char *const *argv, Buf *out)
{
	const Net *net = s->net;
	Arena *a = &s->cx->scratch;
	Figure f = figure_read(s, argc, argv);
	const char *block = f.block ? f.block : block_default(s), *arrow = strstr(block, "->");
	if (!arrow)
		fail(s->cx, MP_BAD_INPUT, "write FROM->TO, in quotes: --block 'hidden->out'",
		     "--block: '%.40s' does not say from where to where", block);
	Units from = units_read(s, block, (size_t)(arrow - block)), to = units_read(s, arrow + 2, strlen(arrow + 2));
	if (!to.g || from.count > MOST_SIDE || to.count > MOST_SIDE)
		fail(s->cx, MP_BAD_INPUT, "choose some units: --block 'in[0:99]->hidden[0:99]'",
		     to.g ? "--block: more than %d units on a side" : "--block: no link leads to the true unit", MOST_SIDE);
	double *v = NEW(a, (size_t)from.count * to.count, double);
	uint64_t found = 0;
	for (size_t i = 0; i < (size_t)from.count * to.count; i++)
		v[i] = NAN;
	for (uint32_t i = 0; i < to.count; i++) {
		Unit u = to.g->first + to.first + i;
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			Unit source = net_source(net, u, l);
			uint32_t number = 0;
			bool in = from.g ? unit_stands_for(net, from.g, source, &number) : source == 0;
			if (!in || number < from.first || number - from.first >= from.count)
				continue;
			v[(size_t)i * from.count + number - from.first] = s->w[l];
			found++;
		}
	}
	if (!found)
		fail(s->cx, MP_BAD_INPUT, "see the blocks with: microprop show", "--block: there is no link %.60s", block);
	Buf title = { .arena = a }, rows = title, columns = title;
	buf_printf(&title, "Weights %s of ", block);
	svg_cut(&title, file_name(net->name), 30);
	buf_printf(&rows, "to unit of %s", to.g->name);
	buf_printf(&columns, "from unit of %s", from.g ? from.g->name : "true");
	figure_write(&f,
	             &(HeatPlot){ .title = title.s,
	                          .rows = rows.s,
	                          .columns = columns.s,
	                          .scale = "weight",
	                          .row_name = unit_names(s, &to),
	                          .column_name = unit_names(s, &from),
	                          .value = v,
	                          .height = to.count,
	                          .width = from.count,
	                          .squares = true },
	             out);
}

/* ---- activations over time ---- */

/* Columns are the ticks of a case, the cases of a sequence, or some cases. */
void activations_study(const Subject *s, int argc, const char *const *argv, Buf *out)
{
	const Net *net = s->net;
	Arena *a = &s->cx->scratch;
	Figure f = figure_read(s, argc, argv);
	const Data *d = s->data;
	const Group *g = NULL;
	if (!d)
		fail(s->cx, MP_BAD_INPUT, "write: microprop show FILE.topo WEIGHTS DATA --figure activations",
		     "activations need cases");
	for (uint32_t i = 0; !f.group && !g && i < net->groups; i++)
		g = net->group[i].role == ROLE_HIDDEN ? &net->group[i] : NULL;
	if (!g)
		g = net_group_named(s->cx, net, "--group",
		                    (Text){ f.group ? f.group : "", f.group ? (uint32_t)strlen(f.group) : 0 });
	if (g->size > MOST_SIDE)
		fail(s->cx, MP_BAD_INPUT, "write them to a file: microprop predict --group", "%s has more than %d units",
		     g->name, MOST_SIDE);
	uint64_t examples = net->settles ? d->cases : run_examples(net, d), first = 0, count = 0;
	bool sequence = !net->settles && (net->copies || d->seq);
	if (f.number > examples)
		fail(s->cx, MP_BAD_INPUT, "count from 1", "--case: there is no %s %" PRIu64 " of %" PRIu64,
		     sequence ? "sequence" : "case", f.number, examples);
	if (sequence)
		run_example(net, d, f.number - 1, &first, &count);
	else
		first = f.number - 1;
	TickPlan plan = ticks_make(net, s->opt);
	uint32_t ticks = ticks_case(&plan, d, first), width;
	count = sequence ? count : d->cases - first;
	width = net->settles ? ticks : (uint32_t)min_u64(count, sequence ? MOST_SIDE : SHOWN_CASES);
	double *all = NEW(a, d->cases * g->size, double), *v = NEW(a, (size_t)width * g->size, double);
	const char **column = NEW(a, width, const char *);
	for (uint32_t k = 0; k < width; k++) {
		if (net->settles || !k)
			s->activations(s->user, g, net->settles ? k : LAST_TICK, all);
		uint64_t i = net->settles ? first : first + k;
		column[k] = net->settles ? number_name(a, k + 1) : case_name(a, d, i);
		for (uint32_t j = 0; j < g->size; j++)
			v[(size_t)j * width + k] = all[i * g->size + j];
	}
	Buf title = { .arena = a }, rows = title;
	buf_printf(&title, "Activations of %s", g->name);
	if (net->settles || sequence) {
		buf_printf(&title, ", %s ", sequence ? "sequence" : "case");
		svg_cut(&title, sequence ? number_name(a, f.number) : case_name(a, d, first), 30);
	}
	buf_printf(&rows, "unit of %s", g->name);
	Units units = { g, 0, g->size };
	HeatPlot plot = { .title = title.s,
		              .rows = rows.s,
		              .columns = net->settles ? "tick"
		                         : sequence   ? "case of the sequence, in order"
		                                      : "case",
		              .scale = "activation",
		              .row_name = unit_names(s, &units),
		              .column_name = column,
		              .value = v,
		              .height = g->size,
		              .width = width };
	heat_range(&plot, g);
	figure_write(&f, &plot, out);
}
