/* SPDX-License-Identifier: MIT */
/* Rows of cases forward and backward. In: which cases of the bound data stand in which row. Out: outputs, errors,
 * deltas of all units in those rows, and what they add to the sums of weight changes.
 *
 * A pass goes over the parts and for each over its panels; a panel is one Product. Must hold: sums run over panels
 * in the order of the layout, each going on where the one before stopped, so a unit's sum is one chain however it
 * is cut.
 *
 * A network that remembers goes through its sequences side by side: step t computes case t of all sequences that
 * have one. Rows stand sequence after sequence all the same, for that is the order in which gradients are summed. */
#include <math.h>
#include <string.h>

#include "half.h"

/* Some rows of a space: side by side from `first`, or those that `at` names. */
typedef struct Slice {
	uint32_t first, rows;
	const uint32_t *at;
} Slice;

static float *column(const Program *p, float *base, const Slice *r, uint32_t col)
{
	return base + (size_t)r->first * p->layout->cols + col;
}

static Rows rows_of(const Program *p, const Slice *r, uint32_t cols)
{
	return (Rows){ .rows = r->rows, .cols = cols, .at = r->at, .row = p->layout->cols };
}

/* Bytes of a part in a row, with its padding. That means nothing, but goes through sums with the rest; guards seal
 * it there, so it has to come out the same each time. */
static size_t part_bytes(const Part *t) { return (t->count + LANES - 1) / LANES * LANES * sizeof(float); }

static void rows_zero(const Program *p, const Slice *r, const Part *t, float *to)
{
	for (uint32_t m = 0; m < r->rows; m++)
		memset(to + (r->at ? r->at[m] : r->first + m) * (size_t)p->layout->cols + t->col, 0, part_bytes(t));
}

/* ---- loading ---- */

static void load_inputs(const Program *p, Space *s, uint32_t row)
{
	const Layout *l = p->layout;
	const Data *d = p->data;
	float *act = s->act + (size_t)row * l->cols;
	uint64_t i = s->cases[row];

	if (l->inputs == 1) {
		data_x(d, i, act + l->part[l->input].col);
		return;
	}
	data_x(d, i, s->x);
	for (uint32_t k = 0; k < l->parts; k++) {
		const Part *t = &l->part[k];
		if (t->role == ROLE_INPUT && t->group >= 0)
			memcpy(act + t->col, s->x + t->input, t->count * sizeof *act);
	}
}

/* Index lists stay where they are. */
static inline void find_lists(const Data *d, Space *s, uint32_t first, uint32_t rows)
{
	const uint64_t *cases = s->cases, *from = d->x_indptr;

	for (uint32_t m = first; m < first + rows; m++) {
		s->index[m] = d->x_indices + from[cases[m]];
		s->lengths[m] = (uint32_t)(from[cases[m] + 1] - from[cases[m]]);
	}
	for (uint32_t m = first; d->x_values && m < first + rows; m++)
		s->values[m] = d->x_values + from[cases[m]];
}

enum {
	/* cases that are under way from memory, a tile of them; bytes of one, at most */
	CASES_AHEAD = 12,
	MOST_FETCHED = 2048
};

static void fetch(const void *base, uint64_t from, uint64_t bytes)
{
	const char *at = (const char *)base + from;

	for (uint64_t i = 0; i < bytes && i < MOST_FETCHED; i += 64)
		__builtin_prefetch(at + i);
}

/* Of cases that stand side by side the CPU finds the next by itself; of others it has to be told. */
void case_fetch(const Data *d, uint64_t i)
{
	uint64_t row = (uint64_t)d->targets * dtypes[d->y_type].size;

	if (d->x_indptr)
		fetch(d->x_indices, d->x_indptr[i] * sizeof *d->x_indices,
		      (d->x_indptr[i + 1] - d->x_indptr[i]) * sizeof *d->x_indices);
	else
		fetch(d->x, i * d->inputs * dtypes[d->x_type].size, (uint64_t)d->inputs * dtypes[d->x_type].size);
	fetch(d->y, i * row, row);
}

/* Products call the others. */
void rows_ahead(const Program *p, const uint64_t *example, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count && i < CASES_AHEAD; i++)
		case_fetch(p->data, example ? example[i] : first + i);
}

/* Floats are not copied but read where they stand. Products read up to a vector past the end of a row, so some must
 * follow. */
static bool inputs_stand(const Program *p, const Space *s, uint32_t rows)
{
	const Data *d = p->data;
	const Layout *l = p->layout;

	if (p->half || l->inputs != 1 || l->lists || l->recalled || (!s->in_turn && (l->input_rows || p->net->copies)))
		return false;
	if (d->x_indptr || d->x_type != T_F32 || (uintptr_t)d->x % sizeof(float))
		return false;
	uint64_t last = (LANES + d->inputs - 1) / d->inputs, most = d->cases > last ? d->cases - last : 0;
	for (uint32_t m = 0; m < rows; m++)
		if (s->cases[m] >= most)
			return false;
	return true;
}

static bool targets_stand(const Data *d)
{
	return d->y_type == T_F32 && !d->mask && (uintptr_t)d->y % sizeof(float) == 0;
}

void rows_find(const Program *p, Space *s, uint32_t rows)
{
	const Data *d = p->data;

	s->in_turn = true;
	for (uint32_t m = 1; m < rows; m++)
		s->in_turn &= s->cases[m] == s->cases[0] + m;
	s->direct = NULL;
	s->by_input = NULL;
	if (p->half)
		half_find(p, p->half, s->half, s->cases, s->in_turn);
	if (inputs_stand(p, s, rows))
		s->direct = (const float *)d->x + (s->in_turn ? s->cases[0] * d->inputs : 0);
	s->target = s->y;
	s->target_at = NULL;
	if (targets_stand(d) && (s->in_turn || !p->codes)) {
		s->target = (const float *)d->y + (s->in_turn ? s->cases[0] * d->targets : 0);
		s->target_at = s->in_turn ? NULL : s->cases;
	}
}

void rows_load(const Program *p, Space *s, uint32_t first, uint32_t rows, bool targets)
{
	const Data *d = p->data;
	const uint64_t *cases = s->cases;
	bool inputs = !s->direct && (!p->half || p->layout->lists),
		 copied = inputs && (!p->index || p->layout->lists || p->layout->recalled);

	if (p->half)
		half_load(p, p->half, s->half, s->cases, first, rows);
	for (uint32_t m = first; inputs && (copied || !s->in_turn) && m < first + rows; m++) {
		if (!s->in_turn && m + CASES_AHEAD < first + rows)
			case_fetch(d, cases[m + CASES_AHEAD]);
		if (copied)
			load_inputs(p, s, m);
	}
	if (p->index)
		find_lists(d, s, first, rows);
	for (uint32_t m = first; targets && s->target == s->y && m < first + rows; m++)
		data_y(d, cases[m], s->y + (size_t)m * d->targets);
	for (uint32_t m = first; d->weight && m < first + rows; m++)
		s->weight[m] = d->weight[cases[m]];
}

void row_load(const Program *p, Space *s, bool in_place, bool targets)
{
	const Data *d = p->data;

	if (!p->index || !targets || !targets_stand(d) || d->weight) {
		rows_find(p, s, 1);
		s->direct = in_place ? s->direct : NULL;
		rows_load(p, s, 0, 1, targets);
		return;
	}
	s->direct = NULL;
	s->target = (const float *)d->y + s->cases[0] * d->targets;
	s->target_at = NULL;
	find_lists(d, s, 0, 1);
}

/* ---- forward ---- */

/* in, c: of row 0 and column 0 of the space. */
static void run_links(const Program *p, const Space *s, const Slice *r, const Panel *panel, const LinkSums *of,
                      float *in, float *c, bool go_on)
{
	p->kern->links(&(Links){ .of = of,
	                         .rows = r->rows,
	                         .at = r->at,
	                         .row = p->layout->cols,
	                         .in = column(p, in, r, 0),
	                         .w = p->w + panel->at,
	                         .c = column(p, c, r, 0),
	                         .go_on = go_on,
	                         .room = s->links });
}

static bool by_index(const Program *p, const Panel *panel) { return p->index && from_inputs(p->layout, panel); }

/* Outputs of the panel's sources in the first row, and how far it is to the next; or the rows are numbered. */
typedef struct Outputs {
	const float *at;
	size_t row;
	const uint64_t *number;
} Outputs;

static Outputs outputs_of(const Program *p, const Space *s, const Panel *panel)
{
	const Part *from = &p->layout->part[panel->from];

	if (s->direct && from_inputs(p->layout, panel))
		return (Outputs){ s->direct + panel->source - from->col, p->data->inputs, s->in_turn ? NULL : s->cases };
	return (Outputs){ s->act + panel->source, p->layout->cols, NULL };
}

/* c = start + outputs of the panel's sources times its weights; `whole`: that is the whole sum. Says whether c
 * became the outputs. */
static bool forward_panel(const Program *p, Space *s, const Slice *r, const Panel *panel, const float *start,
                          size_t start_row, float *c, bool whole)
{
	size_t cols = p->layout->cols;
	Form w = form_by_source(p, panel);
	const Part *from = &p->layout->part[panel->from], *t = &p->layout->part[panel->part];

	if (panel->list) {
		run_links(p, s, r, panel, &panel->list->forward, s->act, t->fn == FN_GAUSSIAN ? s->net : s->act, false);
	} else if (by_index(p, panel)) {
		uint32_t low = from->input + panel->source - from->col;
		p->kern->lists_forward(&(Lists){ .rows = r->rows,
		                                 .cols = panel->targets,
		                                 .index = s->index + r->first,
		                                 .value = p->data->x_values ? s->values + r->first : NULL,
		                                 .count = s->lengths + r->first,
		                                 .low = low,
		                                 .high = low + panel->sources,
		                                 .b = w.w,
		                                 .b_row = w.row,
		                                 .start = start,
		                                 .start_row = start_row,
		                                 .c = c,
		                                 .c_row = cols,
		                                 .sigmoid = whole && t->fn == FN_SIGMOID,
		                                 .at = r->at });
		return whole && t->fn == FN_SIGMOID;
	} else {
		Outputs of = outputs_of(p, s, panel);
		Product q = { .rows = r->rows,
			          .cols = panel->targets,
			          .depth = panel->sources,
			          .a = of.at + (of.number ? 0 : r->first * of.row),
			          .a_row = of.row,
			          .a_at = of.number ? of.number + r->first : NULL,
			          .a_step = 1,
			          .b = w.w,
			          .b_row = w.row,
			          .start = start,
			          .start_row = start_row,
			          .c = c,
			          .c_row = cols,
			          .at = r->at,
			          .far = from_inputs(p->layout, panel) };
		if (p->half)
			half_forward(p, p->half, s->half, panel, r->first, &q);
		else
			p->kern->product(&q);
	}
	return false;
}

const float *first_weights(const Program *p, const Part *t, uint32_t *k)
{
	const Layout *l = p->layout;
	const Panel *panel = &l->panel[t->in];

	if (t->ins && panel->from == 0 && !panel->list) {
		++*k;
		return form_by_source(p, panel).w;
	}
	for (uint32_t i = 0; i < t->ins; i++)
		if (panel[i].bias) {
			Form w = form_by_source(p, &panel[i]);
			return w.w + panel[i].sources * w.row;
		}
	return p->zero;
}

/* Panels of a stepped part that come before the first one whose sources are stepped too are summed for all rows at
 * once: the number of that one. */
static uint32_t first_stepped(const Program *p, const Part *t)
{
	const Layout *l = p->layout;
	uint32_t k = t->in;

	for (; k < t->in + t->ins && !l->panel[k].list; k++) {
		const Part *from = &l->part[l->panel[k].from];
		if (from->role == ROLE_CONTEXT || from->phase == PHASE_STEPPED)
			break;
	}
	return k;
}

static float *net_inputs(const Program *p, Space *s, const Slice *r, const Part *t)
{
	return column(p, t->fn == FN_GAUSSIAN ? s->net : s->act, r, t->col);
}

/* Sums over panels first .. end - 1; what comes before is in them, if anything does. Says whether they became
 * outputs. */
static bool forward_sums(const Program *p, Space *s, const Slice *r, const Part *t, uint32_t first, uint32_t end)
{
	size_t cols = p->layout->cols, start_row = 0;
	bool made = false;
	float *net = net_inputs(p, s, r, t);
	uint32_t k = t->in;
	const float *start = first_weights(p, t, &k);

	if (k == end && first == t->in)
		p->kern->product(&(Product){ .rows = r->rows,
		                             .cols = t->count,
		                             .a = net,
		                             .b = net,
		                             .start = start,
		                             .c = net,
		                             .c_row = cols,
		                             .at = r->at });
	if (first > t->in) {
		start = net;
		start_row = cols;
		k = first;
	}
	for (; k < end; k++) {
		made = forward_panel(p, s, r, &p->layout->panel[k], start, start_row, net, k + 1 == t->in + t->ins);
		start = net;
		start_row = cols;
	}
	return made;
}

static void forward_part(const Program *p, Space *s, const Slice *r, const Part *t)
{
	size_t cols = p->layout->cols;
	float *out = column(p, s->act, r, t->col);
	Rows rows = rows_of(p, r, t->count);

	bool made = forward_sums(p, s, r, t, t->phase == PHASE_STEPPED ? first_stepped(p, t) : t->in, t->in + t->ins);
	if (!made && !(s->late && t->role == ROLE_OUTPUT))
		p->kern->units(&rows, t->fn, net_inputs(p, s, r, t), out);
	for (uint32_t m = 0; t->one && m < r->rows; m++)
		out[(r->at ? r->at[m] : m) * cols + t->count] = 1;
}

static void forward_phase(const Program *p, Space *s, const Slice *r, int phase)
{
	const Layout *l = p->layout;

	for (uint32_t i = 0; i < l->forwards; i++)
		if (l->part[l->forward[i]].phase == phase)
			forward_part(p, s, r, &l->part[l->forward[i]]);
}

/* Do the columns of a group follow each other? */
static bool side_by_side(const Layout *l, const Group *g)
{
	return l->col_of[g->first + g->size - 1] - l->col_of[g->first] == g->size - 1;
}

/* Contexts of a row are what their sources were in the row before; at the start of a sequence, their start value. */
static void take_contexts(const Program *p, Space *s, const Slice *r, bool first)
{
	const Layout *l = p->layout;

	for (uint32_t k = 0; k < p->net->copies; k++) {
		const Group *to = &p->net->group[p->net->copy[k].to_group], *from = &p->net->group[p->net->copy[k].from_group];
		bool together = !first && side_by_side(l, to) && side_by_side(l, from);
		size_t into = l->col_of[to->first], last = l->col_of[from->first];
		for (uint32_t m = 0; m < r->rows; m++) {
			float *act = s->act + (size_t)r->at[m] * l->cols;
			if (together)
				memcpy(act + into, act + last - l->cols, to->size * sizeof *act);
			for (uint32_t j = 0; !together && j < to->size; j++)
				act[l->col_of[to->first + j]] = first ? to->start : act[l->col_of[from->first + j] - (size_t)l->cols];
		}
	}
}

static Slice step_rows(const Space *s, uint32_t step)
{
	return (Slice){ .rows = s->step_at[step + 1] - s->step_at[step], .at = s->step + s->step_at[step] };
}

void rows_forward(const Program *p, Space *s, uint32_t first, uint32_t rows)
{
	const Layout *l = p->layout;
	Slice all = { .first = first, .rows = rows };

	forward_phase(p, s, &all, PHASE_BEFORE);
	if (!p->net->copies)
		return;
	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *t = &l->part[l->forward[i]];
		if (t->phase == PHASE_STEPPED && first_stepped(p, t) > t->in)
			forward_sums(p, s, &all, t, t->in, first_stepped(p, t));
	}
	for (uint32_t step = 0; step < s->steps; step++) {
		Slice now = step_rows(s, step);
		take_contexts(p, s, &now, step == 0);
		forward_phase(p, s, &now, PHASE_STEPPED);
	}
	forward_phase(p, s, &all, PHASE_AFTER);
}

/* ---- scores ---- */

void rows_outputs(const Program *p, const Space *s, uint32_t row, double *out)
{
	const Layout *l = p->layout;

	for (uint32_t k = 0; k < l->parts; k++) {
		const Part *t = &l->part[k];
		for (uint32_t j = 0; t->role == ROLE_OUTPUT && j < t->count; j++)
			out[t->output + j] = s->act[(size_t)row * l->cols + t->col + j];
	}
}

/* Outputs of all parts side by side; where there is one part alone they are so already. */
static const float *gather_outputs(const Program *p, Space *s, const Slice *r, size_t *row)
{
	const Layout *l = p->layout;
	size_t width = l->outputs_padded;

	*row = l->cols;
	if (l->outputs == 1)
		return column(p, s->act, r, l->part[l->output].col);
	*row = width;
	for (uint32_t k = 0; k < l->parts; k++) {
		const Part *t = &l->part[k];
		for (uint32_t m = r->first; t->role == ROLE_OUTPUT && m < r->first + r->rows; m++)
			memcpy(s->out + m * width + t->output, s->act + (size_t)m * l->cols + t->col, t->count * sizeof *s->out);
	}
	return s->out + r->first * width;
}

static bool is_matched(const Program *p, const Part *t)
{
	return t->role == ROLE_OUTPUT && p->scorer.err->matched == t->fn;
}

static float slope_offset(const Program *p, const Part *t)
{
	return t->fn == FN_SIGMOID ? (float)p->opt->prime_offset : 0;
}

/* Targets of row `first`: the first of them, or where to find which they are. */
static const float *targets_from(const Program *p, const Space *s, uint32_t first, const uint64_t **at)
{
	*at = s->target_at ? s->target_at + first : NULL;
	return s->target_at ? s->target : s->target + (size_t)first * p->data->targets;
}

bool rows_late(const Program *p)
{
	const Layout *l = p->layout;
	const Part *t = &l->part[l->output];

	if (p->half || l->outputs != 1 || t->fn != FN_SIGMOID || t->outs || !t->level || p->opt->error != ERR_SQUARED ||
	    p->data->weight)
		return false;
	for (uint32_t k = 0; k < p->net->copies; k++)
		if (p->net->copy[k].from_group == t->group)
			return false;
	for (uint32_t k = t->in; k < t->in + t->ins; k++)
		if (by_index(p, &l->panel[k]))
			return false;
	return t->count > 1 && t->count <= OUTCOME_COLS;
}

/* Where nothing else comes to the errors of a part, they are made deltas at once. */
static Errors errors_of(const Program *p, Space *s, const Slice *r, const Part *t, bool back)
{
	const uint64_t *y_at;
	const float *y = targets_from(p, s, r->first, &y_at);

	return (Errors){ .of = rows_of(p, r, t->count),
		             .error = (int)(p->scorer.err - error_fns),
		             .fn = t->fn,
		             .out = column(p, s->act, r, t->col),
		             .y = y + t->output,
		             .y_row = p->data->targets,
		             .y_at = y_at,
		             .net = p->layout->nets ? column(p, s->net, r, t->col) : NULL,
		             .deltas = t->level && !t->own && !is_matched(p, t) && t->fn != FN_LINEAR,
		             .offset = slope_offset(p, t),
		             .weight = p->data->weight ? s->weight + r->first : NULL,
		             .back = !back ? NULL : column(p, t->own ? s->own : s->err, r, t->col),
		             .value = s->value + r->first,
		             .made = column(p, s->act, r, t->col) };
}

static Scores scores_of(const Program *p, Space *s, const Slice *r)
{
	size_t row;
	const uint64_t *y_at;
	const float *y = targets_from(p, s, r->first, &y_at), *out = gather_outputs(p, s, r, &row);

	return (Scores){ .of = { .rows = r->rows, .cols = p->net->outputs, .row = row },
		             .out = out,
		             .y = y,
		             .y_row = p->data->targets,
		             .y_at = y_at,
		             .threshold = (float)p->scorer.threshold,
		             .middle = (float)p->scorer.middle,
		             .right = !p->codes,
		             .verdict = s->verdict + r->first };
}

bool row_scoring(const Program *p, Space *s, Errors *e, Scores *scores)
{
	Slice r = { .rows = 1 };

	if (p->codes || p->layout->outputs != 1)
		return false;
	s->target = s->y;
	s->target_at = NULL;
	*e = errors_of(p, s, &r, &p->layout->part[p->layout->output], true);
	*scores = scores_of(p, s, &r);
	return true;
}

void rows_score(const Program *p, Space *s, uint32_t first, uint32_t rows, bool back)
{
	const Layout *l = p->layout;
	Slice r = { .first = first, .rows = rows };
	Scores scores = scores_of(p, s, &r);
	const float *out = scores.out, *y = scores.y;
	size_t row = scores.of.row;

	if (s->late) {
		Errors e = errors_of(p, s, &r, &l->part[l->output], true);
		p->kern->outcomes(&e, &scores);
	} else {
		memset(s->value + first, 0, rows * sizeof *s->value);
		for (uint32_t k = 0; k < l->parts; k++)
			if (l->part[k].role == ROLE_OUTPUT) {
				Errors e = errors_of(p, s, &r, &l->part[k], back);
				p->kern->errors(&e);
			}
		p->kern->scores(&scores);
	}
	if (p->codes)
		codes_right(p->codes, &(CodesArgs){ .scorer = &p->scorer,
		                                    .kern = p->kern,
		                                    .most = l->largest_output,
		                                    .rows = rows,
		                                    .out = out,
		                                    .y = y,
		                                    .row = row,
		                                    .room = s->room,
		                                    .verdict = s->verdict + first });
}

void rows_tally(const Space *s, uint32_t first, uint32_t rows, Tally *t)
{
	for (uint32_t m = first; m < first + rows; m++) {
		t->error += (double)s->value[m];
		t->scored += (s->verdict[m] & VERDICT_SCORED) != 0;
		t->right += (s->verdict[m] & VERDICT_RIGHT) != 0;
		t->within += (s->verdict[m] & VERDICT_WITHIN) != 0;
	}
	t->cases += rows;
}

/* ---- backward ---- */

/* Adds to the errors of the sources of an outlet what its targets' deltas tell them; start: where the sums begin. */
static void backward_outlet(const Program *p, Space *s, const Slice *r, const Outlet *o, const float *start,
                            size_t start_row)
{
	const Layout *l = p->layout;
	const Panel *panel = &l->panel[o->panel];
	size_t cols = l->cols;

	if (panel->list) {
		run_links(p, s, r, panel, o->links, s->err, s->err, true);
		return;
	}
	Form w = form_by_target(p, panel);
	float *c = column(p, s->err, r, panel->source);
	Product q = { .rows = r->rows,
		          .cols = panel->sources,
		          .depth = panel->targets,
		          .a = column(p, s->err, r, l->part[panel->part].col),
		          .a_row = cols,
		          .a_step = 1,
		          .b = w.w,
		          .b_row = w.row,
		          .turned = w.turned,
		          .start = start ? start : c,
		          .start_row = start_row,
		          .c = c,
		          .c_row = cols,
		          .at = r->at };
	if (p->half)
		half_backward(p, p->half, s->half, panel, &q);
	else
		p->kern->product(&q);
}

static void rows_copy(const Program *p, const Slice *r, const Part *t, const float *from, float *to)
{
	for (uint32_t m = 0; m < r->rows; m++) {
		size_t row = (r->at ? r->at[m] : r->first + m) * (size_t)p->layout->cols + t->col;
		memcpy(to + row, from + row, part_bytes(t));
	}
}

static void rows_add(const Program *p, const Slice *r, const Part *t, const float *from, float *to)
{
	for (uint32_t m = 0; m < r->rows; m++) {
		size_t row = (r->at ? r->at[m] : r->first + m) * (size_t)p->layout->cols + t->col;
		for (uint32_t j = 0; j < t->count; j++)
			to[row + j] += from[row + j];
	}
}

/* Is the row the last of its sequence?  Steps hold rows by example, in ascending order. */
static bool is_last(const Space *s, uint32_t row)
{
	uint32_t low = 0, high = s->examples;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (s->begin[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return row + 1 == s->begin[low + 1];
}

/* What the contexts of the row after want changed, their sources do in this one. */
static void carry_back(const Program *p, Space *s, const Slice *r, const Part *t)
{
	const Layout *l = p->layout;

	for (uint32_t k = 0; k < p->net->copies; k++) {
		const Group *to = &p->net->group[p->net->copy[k].to_group];
		if (p->net->copy[k].from_group != t->group)
			continue;
		Unit first = t->first - p->net->group[t->group].first;
		for (uint32_t m = 0; m < r->rows; m++) {
			uint32_t row = r->at ? r->at[m] : r->first + m;
			float *err = s->err + (size_t)row * l->cols;
			if (is_last(s, row))
				continue;
			for (uint32_t j = 0; j < t->count; j++)
				err[t->col + j] += err[l->cols + l->col_of[to->first + first + j]];
		}
	}
}

/* Errors that come to a part from its targets, on top of those that it has by itself or from the row after.  A hidden
 * part whose first outlet is a whole panel starts its sums at zero by itself. */
static void gather_errors(const Program *p, Space *s, const Slice *r, const Part *t, bool matched, bool carried)
{
	const Layout *l = p->layout;
	const Outlet *o = &l->outlet[t->out];
	bool plain = !t->own && !carried && t->outs && !l->panel[o->panel].list && l->panel[o->panel].sources == t->count;

	if (t->own && !matched)
		rows_copy(p, r, t, s->own, s->err);
	else if (!plain)
		rows_zero(p, r, t, s->err);
	if (carried)
		carry_back(p, s, r, t);
	for (uint32_t i = 0; i < t->outs; i++)
		backward_outlet(p, s, r, &o[i], plain && !i ? p->zero : NULL, plain && !i ? 0 : l->cols);
}

/* Errors of a part become its deltas.  Those of outputs that lead nowhere are deltas already. */
static void backward_part(const Program *p, Space *s, const Slice *r, const Part *t, bool carried)
{
	bool matched = is_matched(p, t);
	Rows rows = rows_of(p, r, t->count);

	if (t->role == ROLE_OUTPUT && !t->own)
		return;
	gather_errors(p, s, r, t, matched, carried);
	if (t->level && t->fn != FN_LINEAR)
		p->kern->deltas(&rows, t->fn, slope_offset(p, t), p->layout->nets ? column(p, s->net, r, t->col) : NULL,
		                column(p, s->act, r, t->col), column(p, s->err, r, t->col));
	if (matched)
		rows_add(p, r, t, s->own, s->err);
}

static void backward_phase(const Program *p, Space *s, const Slice *r, int phase, bool carried)
{
	const Layout *l = p->layout;

	for (uint32_t i = l->forwards; i-- > 0;)
		if (l->part[l->forward[i]].phase == phase)
			backward_part(p, s, r, &l->part[l->forward[i]], carried);
}

void rows_backward(const Program *p, Space *s, uint32_t first, uint32_t rows)
{
	const Layout *l = p->layout;
	Slice all = { .first = first, .rows = rows };

	if (p->net->copies)
		backward_phase(p, s, &all, PHASE_AFTER, false);
	if (p->net->copies && p->opt->bptt == BPTT_COPY)
		backward_phase(p, s, &all, PHASE_STEPPED, false);
	for (uint32_t step = s->steps; p->net->copies && p->opt->bptt == BPTT_FULL && step-- > 0;) {
		Slice now = step_rows(s, step);
		backward_phase(p, s, &now, PHASE_STEPPED, true);
		for (uint32_t i = 0; i < l->parts; i++)
			if (l->part[i].role == ROLE_CONTEXT)
				backward_part(p, s, &now, &l->part[i], true);
	}
	backward_phase(p, s, &all, PHASE_BEFORE, p->net->copies && p->opt->bptt == BPTT_FULL);
}

/* ---- gradient ---- */

static void share(uint32_t n, uint32_t i, uint32_t of, uint32_t *first, uint32_t *count)
{
	*first = (uint32_t)((uint64_t)n * i / of);
	*count = (uint32_t)((uint64_t)n * (i + 1) / of) - *first;
}

/* The true unit's weights alone: deltas summed, which is a product with a column of ones. */
static void gradient_bias(const Program *p, const Space *s, uint32_t rows, bool fresh, const Panel *panel, float *sum)
{
	size_t cols = p->layout->cols;
	const float *delta = s->err + p->layout->part[panel->part].col;

	sum += panel->at + (size_t)panel->sources * panel->row;
	p->kern->product(&(Product){ .rows = 1,
	                             .cols = panel->targets,
	                             .depth = rows,
	                             .a = s->act,
	                             .a_step = cols,
	                             .b = delta,
	                             .b_row = cols,
	                             .start = fresh ? p->zero : sum,
	                             .c = sum });
}

/* Threads share the columns, sixteens of targets. */
static void gradient_index(const Program *p, const Space *s, uint32_t rows, bool fresh, const Panel *panel, uint32_t i,
                           uint32_t n, float *sum)
{
	const Part *from = &p->layout->part[panel->from], *to = &p->layout->part[panel->part];
	uint32_t low = from->input + panel->source - from->col, first, count;

	share((panel->targets + LANES - 1) / LANES, i, n, &first, &count);
	if (i == 0 && panel->bias)
		gradient_bias(p, s, rows, fresh, panel, sum);
	sum += panel->at + first * LANES;
	for (uint32_t k = 0; fresh && !s->by_input && k < panel->sources; k++)
		memset(sum + (size_t)k * panel->row, 0, count * LANES * sizeof *sum);
	p->kern->lists_gradient(&(Lists){ .rows = rows,
	                                  .cols = count * LANES,
	                                  .index = s->index,
	                                  .value = p->data->x_values ? s->values : NULL,
	                                  .count = s->lengths,
	                                  .low = low,
	                                  .high = low + panel->sources,
	                                  .delta = s->err + to->col + first * LANES,
	                                  .delta_row = p->layout->cols,
	                                  .sum = sum,
	                                  .sum_row = panel->row,
	                                  .by_input = s->by_input,
	                                  .fresh = fresh });
}

/* Threads share the links, sixteens of them. */
static void gradient_list(const Program *p, const Space *s, uint32_t rows, bool fresh, const Panel *panel, uint32_t i,
                          uint32_t n, float *sum)
{
	const LinkList *list = panel->list;
	uint32_t first, count;

	share(panel->row / LANES, i, n, &first, &count);
	sum += panel->at;
	if (fresh)
		memset(sum + (size_t)first * LANES, 0, (size_t)count * LANES * sizeof *sum);
	p->kern->links_gradient(&(LinkGradient){ .of = &list->forward,
	                                         .rows = rows,
	                                         .row = p->layout->cols,
	                                         .act = s->act,
	                                         .delta = s->err + p->layout->part[panel->part].col,
	                                         .to = list->to,
	                                         .begins = list->begins,
	                                         .first = (uint64_t)first * LANES,
	                                         .end = (uint64_t)(first + count) * LANES,
	                                         .sum = sum,
	                                         .room = s->links });
}

/* Where inputs are read from the data there is no column of ones beside them, and what is read beyond them is not
 * one: the true unit's weights, the last column of each row, are saved and summed by themselves. */
static void bias_move(const Panel *panel, uint32_t first, uint32_t count, float *sum, float *bias, bool save)
{
	for (uint32_t t = first; t < first + count; t++) {
		float *at = sum + panel->at + (size_t)t * panel->row + panel->sources;
		if (save)
			bias[t - first] = *at;
		else
			*at = bias[t - first];
	}
}

static void gradient_direct(const Program *p, const Space *s, uint32_t rows, bool fresh, const Panel *panel,
                            uint32_t first, Product *q, float *sum)
{
	const float *delta = s->err + p->layout->part[panel->part].col + first;
	uint32_t count = q->rows;
	size_t cols = p->layout->cols;

	if (panel->by_source) {
		if (panel->bias && first + count > panel->sources) {
			gradient_bias(p, s, rows, fresh, panel, sum);
			q->rows--;
		}
		p->kern->product(q);
		return;
	}
	q->cols = panel->sources;
	if (panel->bias)
		bias_move(panel, first, count, sum, s->bias, true);
	p->kern->product(q);
	if (!panel->bias)
		return;
	p->kern->product(&(Product){ .rows = 1,
	                             .cols = count,
	                             .depth = rows,
	                             .a = s->act,
	                             .a_step = cols,
	                             .b = delta,
	                             .b_row = cols,
	                             .start = fresh ? p->zero : s->bias,
	                             .c = s->bias });
	bias_move(panel, first, count, sum, s->bias, false);
}

static void gradient_product(const Program *p, const Space *s, uint32_t rows, bool fresh, const Panel *panel,
                             uint32_t i, uint32_t n, float *sum)
{
	const Part *to = &p->layout->part[panel->part];
	size_t cols = p->layout->cols;
	Outputs of = outputs_of(p, s, panel);
	const float *delta = s->err + to->col;
	uint32_t sources = panel->sources + panel->bias, first, count;

	share(panel->by_source ? sources : panel->targets, i, n, &first, &count);
	float *c = sum + panel->at + (size_t)first * panel->row;
	Product q = { .rows = count,
		          .cols = panel->by_source ? panel->targets : sources,
		          .depth = rows,
		          .a = (panel->by_source ? of.at : delta) + first,
		          .a_row = 1,
		          .a_step = panel->by_source ? of.row : cols,
		          .b = panel->by_source ? delta : of.at,
		          .b_row = panel->by_source ? cols : of.row,
		          .b_at = of.number,
		          .start = fresh ? p->zero : c,
		          .start_row = fresh ? 0 : panel->row,
		          .c = c,
		          .c_row = panel->row };
	if (p->half)
		half_gradient(p, p->half, s->half, panel, first, &q);
	else if (s->direct && from_inputs(p->layout, panel))
		gradient_direct(p, s, rows, fresh, panel, first, &q, sum);
	else
		p->kern->product(&q);
}

void rows_gradient(const Program *p, const Space *s, uint32_t rows, bool fresh, uint32_t i, uint32_t n, float *sum)
{
	const Layout *l = p->layout;

	for (uint32_t k = 0; k < l->panels; k++) {
		const Panel *panel = &l->panel[k];
		if (panel->frozen)
			continue;
		if (panel->list) {
			gradient_list(p, s, rows, fresh, panel, i, n, sum);
		} else if (by_index(p, panel)) {
			gradient_index(p, s, rows, fresh, panel, i, n, sum);
		} else {
			gradient_product(p, s, rows, fresh, panel, i, n, sum);
		}
	}
}
