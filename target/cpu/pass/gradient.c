/* SPDX-License-Identifier: MIT */
/* Steps of the gradient. In: activations and deltas of all rows of a chunk. Out: a thread's share of the sum of weight
 * changes, set or added to. Must hold: rows are summed in order. */
#include <string.h>

#include "half.h"

static void share(uint32_t n, const Slice *r, uint32_t *first, uint32_t *count)
{
	*first = (uint32_t)((uint64_t)n * r->thread / r->threads);
	*count = (uint32_t)((uint64_t)n * (r->thread + 1) / r->threads) - *first;
}

/* Sums deltas of `count` units, from column `col` on, over all rows: a product with the column of ones. */
static Product delta_sums(const Program *p, const Space *s, const Slice *r, uint32_t col, uint32_t count, float *sum)
{
	size_t cols = p->layout->cols;

	return (Product){ .rows = 1,
		              .cols = count,
		              .depth = r->rows,
		              .a = s->rows.row[ROW_ACT],
		              .a_step = cols,
		              .b = s->rows.row[ROW_DELTA] + col,
		              .b_row = cols,
		              .start = r->fresh ? p->zero : sum,
		              .c = sum };
}

/* Of a panel by source: bias weights are the row after those of the sources. */
static Product bias_row(const Program *p, const Space *s, const Step *st, const Slice *r)
{
	const Panel *panel = st->panel;

	return delta_sums(p, s, r, st->part->col, panel->targets, r->sum + panel->at + (size_t)panel->sources * panel->row);
}

/* Threads share the columns, in vectors of targets. */
void run_gradient_index(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Panel *panel = st->panel;
	Lists l = st->lists;
	uint32_t first, count;

	share((uint32_t)ceil_div(panel->targets, LANES), r, &first, &count);
	if (r->thread == 0 && panel->bias) {
		Product q = bias_row(p, s, st, r);
		p->kern->product(&q);
	}
	l.rows = r->rows;
	l.cols = count * LANES;
	l.index = s->rows.index;
	l.value = p->bound->data->x_values ? s->rows.values : NULL;
	l.count = s->rows.lengths;
	l.delta = s->rows.row[ROW_DELTA] + st->c_col + first * LANES;
	l.sum = r->sum + panel->at + first * LANES;
	l.by_input = s->chunk.by_input;
	l.fresh = r->fresh;
	for (uint32_t k = 0; r->fresh && !l.by_input && k < panel->sources; k++)
		memset(l.sum + (size_t)k * panel->row, 0, l.cols * sizeof *l.sum);
	p->kern->lists_gradient(&l);
}

/* Threads share the links, in vectors. */
void run_gradient_links(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Panel *panel = st->panel;
	const LinkList *list = panel->list;
	float *sum = r->sum + panel->at;
	uint32_t first, count;

	share(panel->row / LANES, r, &first, &count);
	if (r->fresh)
		memset(sum + (size_t)first * LANES, 0, (size_t)count * LANES * sizeof *sum);
	p->kern->links_gradient(&(LinkGradient){ .of = &list->forward,
	                                         .rows = r->rows,
	                                         .row = p->layout->cols,
	                                         .act = s->rows.row[ROW_ACT],
	                                         .delta = s->rows.row[ROW_DELTA] + st->c_col,
	                                         .to = list->to,
	                                         .begins = list->begins,
	                                         .first = (uint64_t)first * LANES,
	                                         .end = (uint64_t)(first + count) * LANES,
	                                         .sum = sum,
	                                         .scratch = s->scratch.links });
}

/* Rows *first .. *first + rows - 1 of a panel's weights are the thread's. */
static Product product_of(const Program *p, const Space *s, const Step *st, const Slice *r, uint32_t *first)
{
	const Panel *panel = st->panel;
	const Chunk *c = &s->chunk;
	Product q = st->product;
	const float *delta = s->rows.row[ROW_DELTA] + st->c_col, *act = s->rows.row[ROW_ACT] + st->a_col;
	size_t act_row = p->layout->cols;

	if (st->from_data && c->inputs) {
		act = c->inputs + st->a_col - p->layout->part[panel->from].col;
		act_row = p->bound->data->inputs;
		q.b_at = c->contiguous ? NULL : c->cases;
	}
	share(panel->by_source ? panel->sources + panel->bias : panel->targets, r, first, &q.rows);
	q.depth = r->rows;
	q.a = (panel->by_source ? act : delta) + *first;
	q.b = panel->by_source ? delta : act;
	*(panel->by_source ? &q.a_step : &q.b_row) = act_row;
	q.c = r->sum + panel->at + (size_t)*first * panel->row;
	q.start = r->fresh ? p->zero : q.c;
	q.start_row = r->fresh ? 0 : panel->row;
	return q;
}

/* The bias weights of a panel by target are the last column of each row. */
static void bias_column(const Panel *panel, const Product *q, float *bias, bool save)
{
	for (uint32_t t = 0; t < q->rows; t++) {
		float *at = q->c + (size_t)t * panel->row + panel->sources;
		*(save ? &bias[t] : at) = *(save ? at : &bias[t]);
	}
}

/* Inputs in the data have no column of ones beside them: bias weights are summed separately. */
void run_gradient(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Panel *panel = st->panel;
	uint32_t first;
	Product q = product_of(p, s, st, r, &first), bias = { 0 };
	bool apart = panel->bias && st->from_data && s->chunk.inputs;

	if (apart && panel->by_source && first + q.rows > panel->sources) {
		bias = bias_row(p, s, st, r);
		q.rows--;
	}
	if (apart && !panel->by_source) {
		bias_column(panel, &q, s->scratch.bias, true);
		bias = delta_sums(p, s, r, st->c_col + first, q.rows, s->scratch.bias);
		q.cols = panel->sources;
	}
	p->kern->product(&q);
	if (bias.rows)
		p->kern->product(&bias);
	if (apart && !panel->by_source)
		bias_column(panel, &q, s->scratch.bias, false);
}

void run_gradient_bf16(const Program *p, Space *s, const Step *st, const Slice *r)
{
	uint32_t first;
	Product q = product_of(p, s, st, r, &first);

	half_gradient(p, p->half, s->half, st->panel, first, &q);
}
