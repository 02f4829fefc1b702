/* SPDX-License-Identifier: MIT */
/* Steps of the forward pass, of scores and of the backward pass. In: a step, rows of a space. Out: activations, errors
 * and deltas in those rows. */
#include <string.h>

#include "half.h"

/* ---- rows ---- */

float *row_at(const Program *p, const Space *s, int buffer, const Slice *r, uint32_t col)
{
	return s->rows.row[buffer] + (size_t)r->first * p->layout->cols + col;
}

static uint32_t row_number(const Slice *r, uint32_t m) { return r->at ? r->at[m] : r->first + m; }

/* Of the step before this row. */
static uint32_t row_before(const Slice *r, uint32_t row)
{
	return !r->pair ? row - 1 : r->first ? row - r->pair : row + r->pair;
}

/* Bytes of a part in a row, with its padding: that has no meaning, but goes through sums, whose checksums include
 * it. */
static size_t part_bytes(const Part *t) { return round_up(t->count, LANES) * sizeof(float); }

static Rows rows_of(const Program *p, const Slice *r, uint32_t cols)
{
	return (Rows){ .rows = r->rows, .cols = cols, .at = r->at, .row = p->layout->cols };
}

void run_load(const Program *p, Space *s, const Step *st, const Slice *r)
{
	(void)st;
	rows_load(p, s, r->first, r->rows, p->bound->data->targets != 0);
}

/* ---- sums ---- */

static void product_rolled(const Program *p, const Space *s, const Step *st, const Slice *r, Product *q)
{
	if (st->held)
		q->start = s->rows.row[ROW_DELTA] + st->c_col;
	if (st->constant)
		q->a = s->rows.row[st->a] + st->a_col;
	if (st->before && r->time)
		q->a = s->rows.row[st->a] + (size_t)(r->first ? 0 : r->pair) * p->layout->cols + st->a_before;
	else if (st->before && st->zero)
		q->depth = 0;
}

static Product product_of(const Program *p, const Space *s, const Step *st, const Slice *r)
{
	const Chunk *c = &s->chunk;
	Product q = st->product;

	q.rows = r->rows;
	q.at = r->at;
	q.c = row_at(p, s, st->c, r, st->c_col);
	q.a = row_at(p, s, st->a, r, st->a_col);
	if (!q.start)
		q.start = q.c;
	if (r->pair)
		product_rolled(p, s, st, r, &q);
	else if (st->from_data && c->inputs) {
		q.a_row = p->bound->data->inputs;
		q.a = c->inputs + st->a_col - p->layout->part[st->panel->from].col + (c->contiguous ? r->first * q.a_row : 0);
		q.a_at = c->contiguous ? NULL : c->cases + r->first;
	}
	return q;
}

void run_product(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Product q = product_of(p, s, st, r);

	p->kern->product(&q);
}

void run_product_bf16(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Product q = product_of(p, s, st, r);

	half_forward(p, p->half, s->half, st->panel, r->first, &q);
}

void run_back_bf16(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Product q = product_of(p, s, st, r);

	half_backward(p, p->half, s->half, st->panel, &q);
}

void run_index(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Lists l = st->lists;

	l.rows = r->rows;
	l.at = r->at;
	uint32_t first = r->pair ? 0 : r->first;
	l.index = s->rows.index + first;
	l.value = p->bound->data->x_values ? s->rows.values + first : NULL;
	l.count = s->rows.lengths + first;
	l.c = row_at(p, s, st->c, r, st->c_col);
	if (!l.start)
		l.start = r->pair && st->held ? s->rows.row[ROW_DELTA] + st->c_col : l.c;
	p->kern->lists_forward(&l);
}

static void sum_links(const Program *p, Space *s, const Step *st, const Slice *r, bool go_on)
{
	p->kern->links(&(Links){ .of = st->links,
	                         .rows = r->rows,
	                         .at = r->at,
	                         .row = p->layout->cols,
	                         .in = row_at(p, s, st->a, r, 0),
	                         .w = st->link_weights,
	                         .c = row_at(p, s, st->c, r, 0),
	                         .go_on = go_on,
	                         .scratch = s->scratch.links });
}

void run_links(const Program *p, Space *s, const Step *st, const Slice *r) { sum_links(p, s, st, r, false); }

void run_links_back(const Program *p, Space *s, const Step *st, const Slice *r) { sum_links(p, s, st, r, true); }

void run_units(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Rows rows = rows_of(p, r, st->part->count);

	p->kern->units(&rows, st->part->fn, row_at(p, s, st->a, r, st->a_col), row_at(p, s, st->c, r, st->c_col));
}

void run_one(const Program *p, Space *s, const Step *st, const Slice *r)
{
	for (uint32_t m = 0; m < r->rows; m++)
		s->rows.row[ROW_ACT][row_number(r, m) * (size_t)p->layout->cols + st->c_col + st->part->count] = 1;
}

bool group_contiguous(const Layout *l, const Group *g)
{
	return l->col_of[g->first + g->size - 1] - l->col_of[g->first] == g->size - 1;
}

/* Contexts of a row are what their sources were in the row before; at the start of a sequence, their start value. */
void run_contexts(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Layout *l = p->layout;
	bool first = r->time == 0;

	(void)st;
	for (uint32_t k = 0; k < p->net->copies; k++) {
		const Group *to = &p->net->group[p->net->copy[k].to_group], *from = &p->net->group[p->net->copy[k].from_group];
		bool together = !first && group_contiguous(l, to) && group_contiguous(l, from);
		size_t into = l->col_of[to->first], last = l->col_of[from->first];
		for (uint32_t m = 0; m < r->rows; m++) {
			float *act = s->rows.row[ROW_ACT] + (size_t)r->at[m] * l->cols;
			if (together)
				memcpy(act + into, act + last - l->cols, to->size * sizeof *act);
			for (uint32_t j = 0; !together && j < to->size; j++)
				act[l->col_of[to->first + j]] = first ? to->start : (act - l->cols)[l->col_of[from->first + j]];
		}
	}
}

/* Where ticks alternate between blocks, sums read contexts in the block of the tick before; but in the first tick. */
void run_starts(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Group *g = &p->net->group[st->part->group];

	for (uint32_t m = 0; !r->time && g->start != 0 && m < r->rows; m++) {
		float *act = s->rows.row[ROW_ACT] + row_number(r, m) * (size_t)p->layout->cols + st->part->col;
		for (uint32_t j = 0; j < st->part->count; j++)
			act[j] = g->start;
	}
}

/* Units that are removed send 0. Where ticks alternate, contexts are read in the first one only. */
void run_mask(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Masks *masks = s->chunk.masks;
	Rows rows = rows_of(p, r, st->part->count);

	if (!masks->part[st->part - p->layout->part] || (st->part->role == ROLE_CONTEXT && r->pair && r->time))
		return;
	if (!r->at) {
		p->kern->mask(&rows, masks->factor + st->c_col, masks->network + (r->pair ? 0 : r->first),
		              row_at(p, s, st->c, r, st->c_col));
		return;
	}
	rows.rows = 1;
	rows.at = NULL;
	for (uint32_t m = 0; m < r->rows; m++)
		p->kern->mask(&rows, masks->factor + st->c_col, &masks->network[r->at[m]],
		              s->rows.row[st->c] + (size_t)r->at[m] * p->layout->cols + st->c_col);
}

/* What does not change from tick to tick is computed for the first one of a case. */
void run_spread(const Program *p, Space *s, const Step *st, const Slice *r)
{
	size_t cols = p->layout->cols;
	float *to = s->rows.row[st->c] + st->c_col;

	for (uint32_t m = r->first; m < r->first + r->rows; m++)
		if (s->chunk.tick[m].number)
			memcpy(to + m * cols, to + (m - 1) * cols, part_bytes(st->part));
}

/* What a group integrates moves from its value in the row before towards the new one, by dt. */
void run_integrate(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const float *in = s->rows.row[st->a] + st->a_col;
	float *out = s->rows.row[st->c] + st->c_col, dt = st->dt;

	for (uint32_t m = 0; m < r->rows; m++) {
		uint32_t row = row_number(r, m);
		size_t at = row * (size_t)p->layout->cols, before = r->time ? row_before(r, row) * (size_t)p->layout->cols : at;
		for (uint32_t j = 0; j < st->part->count; j++) {
			float last = r->time ? out[before + j] : st->start;
			out[at + j] = f_add(last, f_mul(dt, f_sub(in[at + j], last)));
		}
	}
}

/* ---- scores ---- */

void run_gather(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Layout *l = p->layout;

	(void)st;
	for (uint32_t k = 0; k < l->parts; k++) {
		const Part *t = &l->part[k];
		for (uint32_t m = r->first; t->role == ROLE_OUTPUT && m < r->first + r->rows; m++)
			memcpy(s->rows.out + (size_t)m * l->outputs_padded + t->output,
			       s->rows.row[ROW_ACT] + (size_t)m * l->cols + t->col, t->count * sizeof(float));
	}
}

const float *targets_at(const Program *p, const Space *s, uint32_t first, const uint64_t **at)
{
	const Chunk *c = &s->chunk;

	*at = c->target_at ? c->target_at + first : NULL;
	return c->target_at ? c->target : c->target + (size_t)first * p->bound->data->targets;
}

static Errors errors_of(const Program *p, const Space *s, const Step *st, const Slice *r)
{
	Errors e = st->errors;

	e.of.rows = r->rows;
	e.out = e.made = row_at(p, s, ROW_ACT, r, st->part->col);
	e.y = targets_at(p, s, r->first, &e.y_at) + st->part->output;
	e.net = s->rows.row[ROW_NET] && st->part->integrate != INTEGRATE_OUTPUT ? row_at(p, s, ROW_NET, r, st->part->col)
	                                                                        : NULL;
	e.weight = p->bound->data->weight ? s->rows.weight + r->first : NULL;
	e.back = st->c == ROW_NONE ? NULL : row_at(p, s, st->c, r, st->part->col);
	e.value = s->rows.error + r->first;
	if (st->near) {
		e.y = s->rows.near + (size_t)r->first * p->bound->data->targets + st->part->output;
		e.y_at = NULL;
	}
	if (st->error_scale != 1) {
		for (uint32_t m = 0; m < r->rows; m++)
			s->rows.scaled[r->first + m] = f_mul(st->error_scale, e.weight ? e.weight[m] : 1);
		e.weight = s->rows.scaled + r->first;
	}
	return e;
}

/* Outputs of all parts; one part alone needs no gathering. */
static const float *outputs_at(const Program *p, const Space *s, const Slice *r)
{
	const Layout *l = p->layout;

	return l->outputs == 1 ? row_at(p, s, ROW_ACT, r, l->part[l->output].col)
	                       : s->rows.out + (size_t)r->first * l->outputs_padded;
}

static Scores scores_of(const Program *p, const Space *s, const Step *st, const Slice *r)
{
	Scores scores = st->scores;

	scores.of.rows = r->rows;
	scores.out = outputs_at(p, s, r);
	scores.y = targets_at(p, s, r->first, &scores.y_at);
	scores.threshold = (float)p->bound->scorer.threshold;
	scores.verdict = s->rows.verdict + r->first;
	return scores;
}

/* Of several output parts, the first one's errors set those of the cases. */
void run_errors(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Errors e = errors_of(p, s, st, r);

	if (st->part == &p->layout->part[p->layout->output])
		memset(e.value, 0, r->rows * sizeof *e.value);
	p->kern->errors(&e);
}

void run_scores(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Scores scores = scores_of(p, s, st, r);

	p->kern->scores(&scores);
}

void run_outcomes(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Errors e = errors_of(p, s, st, r);
	Scores scores = scores_of(p, s, st, r);

	p->kern->outcomes(&e, &scores);
}

void run_codes(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Layout *l = p->layout;
	const uint64_t *at;

	(void)st;
	codes_right(p->bound->codes, &(CodesArgs){ .scorer = &p->bound->scorer,
	                                           .kern = p->kern,
	                                           .most = l->largest_output,
	                                           .rows = r->rows,
	                                           .out = outputs_at(p, s, r),
	                                           .y = targets_at(p, s, r->first, &at),
	                                           .row = l->outputs == 1 ? l->cols : l->outputs_padded,
	                                           .scratch = s->scratch.codes,
	                                           .verdict = s->rows.verdict + r->first });
}

void rows_tally(const Program *p, const Space *s, uint32_t first, uint32_t rows, Tally *t)
{
	bool weighted = p->bound->data->weight != NULL;
	const TickRow *tick = s->chunk.tick;
	uint64_t before = t->scored;

	for (uint32_t m = first; tick && m < first + rows; m++)
		t->cases += tick[m].last;
	t->cases += tick ? 0 : rows;
	for (uint32_t m = first; p->bound->data->targets && m < first + rows; m++) {
		t->error += (double)s->rows.error[m];
		if (tick && !tick[m].last)
			continue;
		if (weighted && s->rows.verdict[m] & VERDICT_SCORED)
			t->weight += (double)s->rows.weight[m];
		t->scored += (s->rows.verdict[m] & VERDICT_SCORED) != 0;
		t->right += (s->rows.verdict[m] & VERDICT_RIGHT) != 0;
		t->within += (s->rows.verdict[m] & VERDICT_WITHIN) != 0;
	}
	if (!weighted)
		t->weight += (double)(t->scored - before);
}

void row_outputs(const Program *p, const Space *s, uint32_t row, double *out)
{
	const Layout *l = p->layout;
	const float *act = s->rows.row[ROW_ACT] + (size_t)row * l->cols;

	for (uint32_t j = 0; j < p->watched.count; j++)
		out[j] = act[l->col_of[p->watched.first + j]];
	for (uint32_t k = 0; !p->watched.count && k < l->parts; k++) {
		const Part *t = &l->part[k];
		for (uint32_t j = 0; t->role == ROLE_OUTPUT && j < t->count; j++)
			out[t->output + j] = act[t->col + j];
	}
}

/* ---- backward ---- */

void run_zero(const Program *p, Space *s, const Step *st, const Slice *r)
{
	for (uint32_t m = 0; m < r->rows; m++)
		memset(s->rows.row[st->c] + row_number(r, m) * (size_t)p->layout->cols + st->c_col, 0, part_bytes(st->part));
}

void run_copy_error(const Program *p, Space *s, const Step *st, const Slice *r)
{
	for (uint32_t m = 0; m < r->rows; m++) {
		size_t at = row_number(r, m) * (size_t)p->layout->cols + st->c_col;
		memcpy(s->rows.row[ROW_DELTA] + at, s->rows.row[ROW_ERROR] + at, part_bytes(st->part));
	}
}

void run_add_error(const Program *p, Space *s, const Step *st, const Slice *r)
{
	for (uint32_t m = 0; m < r->rows; m++) {
		size_t at = row_number(r, m) * (size_t)p->layout->cols + st->c_col;
		p->kern->add(s->rows.row[ROW_DELTA] + at, s->rows.row[ROW_ERROR] + at, round_up(st->part->count, LANES));
	}
}

/* Adds the errors of contexts in the next row to those of their sources in this one. */
void run_carry(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Layout *l = p->layout;
	const Part *t = st->part;

	for (uint32_t k = 0; k < p->net->copies; k++) {
		const Group *to = &p->net->group[p->net->copy[k].to_group];
		if (p->net->copy[k].from_group != t->group)
			continue;
		Unit first = t->first - p->net->group[t->group].first;
		uint32_t next = l->cols + l->col_of[to->first + first];
		bool together =
			next % LANES == 0 && l->col_of[to->first + first + t->count - 1] + l->cols - next == t->count - 1;
		for (uint32_t m = 0; m < r->rows; m++) {
			uint32_t row = row_number(r, m);
			float *delta = s->rows.row[ROW_DELTA] + (size_t)row * l->cols;
			if (!s->chunk.carried[row])
				continue;
			if (together)
				p->kern->add(delta + t->col, delta + next, round_up(t->count, LANES));
			for (uint32_t j = 0; !together && j < t->count; j++)
				delta[t->col + j] = f_add(delta[t->col + j], delta[l->cols + l->col_of[to->first + first + j]]);
		}
	}
}

/* Of the errors of what a group integrates, a share goes to the new value, the rest to the row before. */
void run_integrate_back(const Program *p, Space *s, const Step *st, const Slice *r)
{
	size_t cols = p->layout->cols;
	float dt = st->dt, rest = f_sub(1, dt);

	for (uint32_t m = 0; m < r->rows; m++) {
		uint32_t row = row_number(r, m);
		float *held = s->rows.row[ROW_HELD] + row * cols + st->c_col,
			  *delta = s->rows.row[ROW_DELTA] + row * cols + st->c_col;
		bool carried = st->carried && s->chunk.carried[row];
		for (uint32_t j = 0; j < st->part->count; j++) {
			held[j] = carried ? f_add(delta[j], f_mul(rest, held[cols + j])) : delta[j];
			delta[j] = f_mul(dt, held[j]);
		}
	}
}

void run_deltas(const Program *p, Space *s, const Step *st, const Slice *r)
{
	Rows rows = rows_of(p, r, st->part->count);

	p->kern->deltas(&rows, st->part->fn, st->offset, p->layout->nets ? row_at(p, s, ROW_NET, r, st->a_col) : NULL,
	                row_at(p, s, st->a, r, st->a_col), row_at(p, s, ROW_DELTA, r, st->c_col));
}

/* ---- the list ---- */

/* Rows without targets have no errors. */
static void no_errors(const Program *p, Space *s, const Step *first, const Step *last, const Slice *r)
{
	for (const Step *st = first; st < last; st++)
		if ((st->run == run_errors || st->run == run_outcomes) && st->c != ROW_NONE)
			run_zero(p, s, st, r);
	memset(s->rows.error + r->first, 0, r->rows * sizeof *s->rows.error);
	memset(s->rows.verdict + r->first, 0, r->rows * sizeof *s->rows.verdict);
}

/* Ticks of a case that have targets are adjacent rows. */
static void steps_of_targets(const Program *p, Space *s, const Step *first, const Step *last, const Slice *r)
{
	const TickRow *tick = s->chunk.tick;
	uint32_t from = p->bound->ticks.targets_from;

	for (uint32_t m = r->first, end; m < r->first + r->rows; m = end) {
		bool has = tick[m].number >= from;
		for (end = m + 1; end < r->first + r->rows && tick[end].number && (tick[end].number >= from) == has; end++)
			;
		Slice now = { .first = m, .rows = end - m };
		for (const Step *st = first; has && st < last; st++)
			st->run(p, s, st, &now);
		if (!has)
			no_errors(p, s, first, last, &now);
	}
}

/* The last tick is that of block 0. */
static void steps_of_ticks(const Program *p, Space *s, const Step *first, const Step *last, const Slice *r)
{
	uint32_t ticks = p->bound->ticks.each, n = r->rows;

	for (uint32_t t = 0; t < ticks; t++) {
		Slice now = { .first = (ticks - 1 - t) % 2 * n, .rows = n, .time = t, .pair = n };
		for (const Step *st = first; st < last; st++)
			st->run(p, s, st, &now);
	}
}

void steps_run(const Program *p, Space *s, const List *list, uint32_t stage, uint32_t end, const Slice *r)
{
	const Chunk *c = &s->chunk;

	for (; stage < end; stage++) {
		const Stage *g = &list->stage[stage];
		const Step *first = list->step + g->first, *last = list->step + g->end;
		if (g->each == EACH_ROW)
			for (const Step *st = first; st < last; st++)
				st->run(p, s, st, r);
		if (g->each == EACH_CASE)
			for (const Step *st = first; st < last; st++)
				st->run(p, s, st, &(Slice){ .rows = c->cases_at, .at = c->case_at });
		if (g->each == EACH_TARGET)
			steps_of_targets(p, s, first, last, r);
		if (g->each == EACH_TICK)
			steps_of_ticks(p, s, first, last, r);
		for (uint32_t i = 0; (g->each == EACH_TIME || g->each == EACH_TIME_BACK) && i < c->steps; i++) {
			uint32_t time = g->each == EACH_TIME ? i : c->steps - 1 - i;
			Slice now = { .rows = c->step_at[time + 1] - c->step_at[time],
				          .at = c->step + c->step_at[time],
				          .time = time };
			for (const Step *st = first; st < last; st++)
				st->run(p, s, st, &now);
		}
	}
}
