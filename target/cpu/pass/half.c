/* SPDX-License-Identifier: MIT */
/* Products with operands rounded to bf16.  In: a Product, as for floats.  Out: its c.
 *
 * Weights are rounded and made into tiles once per update, for both directions. Inputs are rounded when a case is
 * loaded for the first time, and kept: half the bytes come from memory then, and contiguous cases are used in place.
 * Outputs and deltas when a product takes them, strip by strip into a scratch that stays in a near cache:
 * each is taken once in each form, so nothing is kept. Must hold: sums are cut into 32s counted from where a
 * Product's depth begins, whatever threads there are, so chunks of cases end at full 32s or with the leaf. */
#include <string.h>

#include "half.h"

enum {
	STRIP = 32,          /* two tiles: rows of a, or columns of b, at a time; */
	STRIP_BYTES = 16384, /* more rows where they do not fill so much */
	KEPT_MIB = 1024,     /* inputs are kept if they take no more, those of training and test data together */
	CASES_AHEAD = 8      /* prefetch distance */
};

static uint32_t strip_rows(uint32_t depth)
{
	return (uint32_t)max_u64(STRIP_BYTES / sizeof(Half) / half_row(depth) / STRIP * STRIP, STRIP);
}

static size_t scratch_room(const Layout *l, uint32_t rows)
{
	size_t most = 0;

	for (uint32_t i = 0; i < l->panels; i++) {
		uint32_t sources = l->panel[i].sources + 1, targets = l->panel[i].targets;
		most = max_u64(most, half_room_rows(strip_rows(sources), sources));
		most = max_u64(most, half_room_rows(strip_rows(targets), targets));
		most = max_u64(most, half_room_rows(max_u64(sources, targets), rows) + half_room_tiles(rows, STRIP));
	}
	return most;
}

/* On a cache line. */
static Half *halves_room(Arena *a, size_t n)
{
	enum { LINE = 64 };
	char *p = arena_alloc_raw(a, n * sizeof(Half) + LINE, 1);

	return (Half *)(void *)(p + (LINE - (uintptr_t)p % LINE) % LINE);
}

static Half *halves_take(Ctx *cx, size_t n) { return memset(halves_room(&cx->keep, n), 0, n * sizeof(Half)); }

HalfSpace *half_take(Ctx *cx, const Program *p, const Halves *h, uint32_t rows)
{
	HalfSpace *t = NEW(&cx->keep, 1, HalfSpace);

	t->x = halves_take(cx, ((size_t)rows + TILE_ROWS) * h->x_row);
	t->scratch = halves_take(cx, scratch_room(p->layout, rows));
	t->row = NEW(&cx->keep, p->net->inputs, float);
	return t;
}

/* ---- inputs ---- */

static bool is_input(const Part *t) { return t->role == ROLE_INPUT && t->group >= 0; }

static const Half *input_rows(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, uint32_t first)
{
	return t->rows + (size_t)first * h->x_row + h->x_at[panel->from] + panel->source - p->layout->part[panel->from].col;
}

enum { ONE = 0x3f80 };

/* A row of inputs: each part has full 32s of its own, and a 1 behind its units if its panels want one. */
static void load_floats(const Program *p, const Halves *h, const float *x, Half *row)
{
	for (uint32_t k = 0; k < p->layout->parts; k++) {
		const Part *t = &p->layout->part[k];
		if (!is_input(t))
			continue;
		h->kern->pack_rows(1, t->count, &(Matrix){ .f = x + t->input }, row + h->x_at[k], 0);
		if (t->one)
			row[h->x_at[k] + t->count] = ONE;
	}
}

/* The same from a list of ones, where inputs are one part. */
static void load_ones(const Program *p, const Halves *h, uint64_t i, Half *row)
{
	const Part *t = &p->layout->part[p->layout->input];
	const Data *d = p->bound->data;

	memset(row, 0, h->x_row * sizeof *row);
	for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++)
		row[d->x_indices[k]] = ONE;
	if (t->one)
		row[t->count] = ONE;
}

static void load_row(const Program *p, const Halves *h, const HalfSpace *t, uint64_t i, Half *row)
{
	const Data *d = p->bound->data;

	if (d->x_indptr && !d->x_values && p->layout->inputs == 1) {
		load_ones(p, h, i, row);
	} else if (!d->x_indptr && d->x_type == T_F32 && (uintptr_t)d->x % sizeof(float) == 0) {
		load_floats(p, h, (const float *)d->x + i * d->inputs, row);
	} else {
		data_x(d, i, t->row);
		load_floats(p, h, t->row, row);
	}
}

static const Half *kept_row(const Program *p, const Halves *h, const HalfSpace *t, uint64_t i)
{
	Half *row = p->bound->kept->x + i * h->x_row;

	if (!p->bound->kept->known[i]) {
		memset(row, 0, h->x_row * sizeof *row); /* what lies behind a part is multiplied by zeros */
		load_row(p, h, t, i, row);
		p->bound->kept->known[i] = 1;
	}
	return row;
}

static void prefetch(const Program *p, const Halves *h, uint64_t i)
{
	for (uint32_t k = 0; k < h->x_row; k += TILE_DEPTH)
		__builtin_prefetch(p->bound->kept->x + i * h->x_row + k);
}

/* A guard looks at data and not at what is made of it. */
static bool keeps(const Program *p) { return p->bound->kept && !p->monitor; }

void half_find(const Program *p, const Halves *h, HalfSpace *t, const uint64_t *cases, bool contiguous)
{
	t->rows = keeps(p) && contiguous ? p->bound->kept->x + cases[0] * h->x_row : t->x;
}

void half_load(const Program *p, const Halves *h, const HalfSpace *t, const uint64_t *cases, uint32_t first,
               uint32_t rows)
{
	for (uint32_t m = first; m < first + rows; m++) {
		Half *row = t->x + (size_t)m * h->x_row;

		if (!keeps(p)) {
			load_row(p, h, t, cases[m], row);
		} else if (t->rows != t->x) {
			kept_row(p, h, t, cases[m]);
		} else {
			prefetch(p, h, cases[m + CASES_AHEAD < first + rows ? m + CASES_AHEAD : m]);
			memcpy(row, kept_row(p, h, t, cases[m]), h->x_row * sizeof *row);
		}
	}
}

/* ---- products ---- */

/* Rows first .. of the product, with a packed. */
static void multiply_rows(const Halves *h, const Product *q, uint32_t first, uint32_t rows, const Half *a, size_t a_row,
                          const Half *b)
{
	size_t skip = q->at ? 0 : first; /* numbered rows count from the first of all */

	h->kern->multiply(&(Multiply){ .rows = rows,
	                               .cols = q->cols,
	                               .depth = q->depth,
	                               .a = a,
	                               .a_row = a_row,
	                               .b = b,
	                               .start = q->start + skip * q->start_row,
	                               .start_row = q->start_row,
	                               .c = q->c + skip * q->c_row,
	                               .c_row = q->c_row,
	                               .at = q->at ? q->at + first : NULL });
}

/* Rows of a are packed strip by strip. */
static void product(const Halves *h, const HalfSpace *t, const Product *q, const Matrix *a, const Half *b)
{
	uint32_t strip = strip_rows(q->depth);
	size_t row = half_row(q->depth);

	for (uint32_t m = 0; m < q->rows; m += strip) {
		uint32_t rows = min_u32(q->rows - m, strip);
		Matrix some = *a;

		if (a->at)
			some.at += m;
		else if (a->f)
			some.f += m * a->row;
		else
			some.h += m * a->row;
		h->kern->pack_rows(rows, q->depth, &some, t->scratch, row);
		multiply_rows(h, q, m, rows, t->scratch, row, b);
	}
}

void half_forward(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, uint32_t first,
                  const Product *q)
{
	const Half *b = h->w + h->by_source[panel - p->layout->panel];

	if (!is_input(&p->layout->part[panel->from]))
		product(h, t, q, &(Matrix){ .f = q->a, .row = q->a_row, .at = q->at }, b);
	else if (q->at)
		product(h, t, q, &(Matrix){ .h = input_rows(p, h, t, panel, first), .row = h->x_row, .at = q->at }, b);
	else
		multiply_rows(h, q, 0, q->rows, input_rows(p, h, t, panel, first), h->x_row, b);
}

void half_backward(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, const Product *q)
{
	product(h, t, q, &(Matrix){ .f = q->a, .row = q->a_row, .at = q->at },
	        h->w + h->by_target[panel - p->layout->panel]);
}

void half_gradient(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, uint32_t from,
                   const Product *q)
{
	const HalfKern *kern = h->kern;
	Matrix a = { .f = q->a, .row = q->a_step }, b = { .f = q->b, .row = q->b_row };
	Matrix *outputs = panel->by_source ? &a : &b;
	size_t row = half_row(q->depth);
	Half *tiles = t->scratch + half_room_rows(q->rows, q->depth);

	if (is_input(&p->layout->part[panel->from]))
		*outputs = (Matrix){ .h = input_rows(p, h, t, panel, 0) + (panel->by_source ? from : 0), .row = h->x_row };
	kern->pack_across(q->rows, q->depth, &a, t->scratch, row);
	for (uint32_t n = 0; n < q->cols; n += STRIP) {
		uint32_t cols = min_u32(q->cols - n, STRIP);
		Matrix some = { b.f ? b.f + n : NULL, b.f ? NULL : b.h + n, b.row, NULL };

		kern->pack_pairs(q->depth, cols, &some, tiles);
		kern->multiply(&(Multiply){ .rows = q->rows,
		                            .cols = cols,
		                            .depth = q->depth,
		                            .a = t->scratch,
		                            .a_row = row,
		                            .b = tiles,
		                            .start = q->start + n,
		                            .start_row = q->start_row,
		                            .c = q->c + n,
		                            .c_row = q->c_row });
	}
}

/* ---- weights ---- */

Halves *halves_make(Ctx *cx, const Layout *l, int isa)
{
	Halves *h = NEW(&cx->fixed, 1, Halves);
	size_t room = 0;
	bool beside = false;

	h->kern = isa_half(isa);
	h->by_source = NEW(&cx->fixed, l->panels, size_t);
	h->by_target = NEW(&cx->fixed, l->panels, size_t);
	h->x_at = NEW(&cx->fixed, l->parts, uint32_t);
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *panel = &l->panel[i];
		if (panel->list)
			continue;
		h->by_source[i] = room;
		room += half_room_tiles(panel->sources, panel->targets);
		h->by_target[i] = room;
		room += l->part[panel->from].error ? half_room_tiles(panel->targets, panel->sources) : 0;
	}
	h->w = halves_take(cx, room);
	h->room = room;
	for (uint32_t k = 0; k < l->parts; k++)
		if (is_input(&l->part[k])) {
			h->x_at[k] = h->x_row;
			h->x_row += (uint32_t)half_blocks(l->part[k].count + l->part[k].one) * TILE_DEPTH;
		}
	for (uint32_t i = 0; i < l->panels; i++) /* a tile that begins inside a part ends behind it */
		beside |=
			is_input(&l->part[l->panel[i].from]) && (l->panel[i].source - l->part[l->panel[i].from].col) % TILE_DEPTH;
	h->x_row = (uint32_t)half_row(h->x_row + (beside ? TILE_DEPTH : 0));
	return h;
}

/* One vector more: tiles are read whole. */
KeptHalves *halves_keep(Arena *a, const Program *p, const Halves *h)
{
	const Bound *other = &p->bounds[BOUND_BEFORE];
	uint64_t cases = p->bound->data->cases, row = h->x_row * sizeof(Half);
	uint64_t most = ((uint64_t)KEPT_MIB << 20) - (other->of && other->kept ? other->kept->bytes : 0);

	if (cases > most / row || cases + TILE_ROWS > most / row)
		return NULL;
	KeptHalves *k = NEW(a, 1, KeptHalves);
	k->known = NEW(a, cases, uint8_t);
	k->x = halves_room(a, (cases + TILE_ROWS) * h->x_row);
	k->bytes = (cases + TILE_ROWS) * row;
	return k;
}

/* Weights in the other form are transposed, a tile at a time. */
static void pack_transposed(const Program *p, const Halves *h, Form w, uint32_t depth, uint32_t cols, Half *to)
{
	_Alignas(64) float b[TILE_DEPTH * LANES];

	for (uint32_t n = 0; n < cols; n += LANES)
		for (uint32_t k = 0; k < depth; k += TILE_DEPTH, to += TILE_SIZE) {
			uint32_t deep = min_u32(depth - k, TILE_DEPTH), wide = min_u32(cols - n, LANES);
			p->kern->transpose(wide, deep, w.w + n * w.row + k, w.row, b, LANES);
			h->kern->pack_pairs(deep, wide, &(Matrix){ .f = b, .row = LANES }, to);
		}
}

/* Thread i of n takes its share of the columns, in full vectors. */
static void pack_share(const Program *p, const Halves *h, Form w, uint32_t depth, uint32_t cols, uint32_t i, uint32_t n,
                       Half *to)
{
	uint64_t tiles = (cols + LANES - 1) / LANES;
	uint32_t first = (uint32_t)(tiles * i / n) * LANES, end = min_u32(cols, (uint32_t)(tiles * (i + 1) / n) * LANES);

	to += half_room_tiles(depth, first);
	if (first < end && w.transposed)
		pack_transposed(p, h, (Form){ w.w + first * w.row, w.row, true }, depth, end - first, to);
	else if (first < end)
		h->kern->pack_pairs(depth, end - first, &(Matrix){ .f = w.w + first, .row = w.row }, to);
}

void halves_weights(const Program *p, const Halves *h, uint32_t i, uint32_t n)
{
	const Layout *l = p->layout;

	for (uint32_t k = 0; k < l->panels; k++) {
		const Panel *panel = &l->panel[k];
		if (panel->list)
			continue;
		pack_share(p, h, form_by_source(p, panel), panel->sources, panel->targets, i, n, h->w + h->by_source[k]);
		if (l->part[panel->from].error)
			pack_share(p, h, form_by_target(p, panel), panel->targets, panel->sources, i, n, h->w + h->by_target[k]);
	}
}
