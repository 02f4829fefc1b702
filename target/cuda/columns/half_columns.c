/* SPDX-License-Identifier: MIT */
/* bf16: the plan, weights, and the loop of updates of the workers. In: steps of the device. Out: where things are, or
 * why there is no such kernel.
 *
 * Blocks have columns of hidden units and rows as columns.h says; products and gradients are those of tensor cores, in
 * the order of doc/arithmetic.md. Inputs are bits. Eight columns are a tile: where there are more blocks than tiles,
 * several blocks share columns. All of them have the rounded weights; each computes the activations of some rows, and
 * the gradient and the rule for some inputs, all rows, and sends new weights to the others (FROM).
 *
 * Activations go to the block of the row as floats, since slopes need these; deltas of hidden units come back rounded,
 * to all blocks of the column. A block forms the gradient of weights to outputs of its own slices; these weights are
 * tiles of 16 by 8, and sums of slices go to the block of the tile (DELTA), which joins them in order, applies the rule
 * and sends new weights to all, for the next update (counted by its ACT).
 *
 * What an update waits for is latency, of the network between blocks and of chains of products. So operands of bits are
 * made before what they are multiplied with is there, and half of the warps turn bits and form sums of weights to
 * outputs while the others have the rows. A tile of weights from inputs has two warps, if there are enough: one without
 * rows sums the first slices, one with rows those that follow, and goes on when the sum of the first is there. No
 * worker waits for verdicts, for the rule of weights to outputs, or twice for other blocks between deltas and weights.
 * What a warp sends lies side by side in the other block as its lanes have it: the network takes 32 bytes that lie
 * apart as long as 64 to 128 that do not.
 *
 * Every block has a tile of weights to outputs, and all blocks send all of their slices in every update, also those
 * without rows, after they have said what they expect; weights from inputs are there (FROM) only when the block has
 * waited for these. So barriers of all blocks are in the same update, and sync.c says the rest. No warp is in an update
 * while another one of its block is in the update before or after: all wait for FROM. */
#include "columns.h"
#include "units.h"

enum { TILE = 512 }; /* bytes of the sums of a tile: a quad for each lane */

static uint32_t odd_16s(uint64_t bytes) { return (uint32_t)(ceil_div(bytes, 16) | 1) * 16; }

/* ---- plan ---- */

static const char *steps_find(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	const DeviceStep **product[] = { &c->index, &c->out, &c->back };
	uint32_t products = 0;

	if (!half_is_through(k))
		return "layers";
	for (uint32_t i = 0; i < s->list->gradient; i++)
		if (s->step[i].kind == STEP_PRODUCT)
			*product[products++] = &s->step[i];
	c->errors = late_errors(k, c->out);
	if (s->list->steps - s->list->gradient != 2)
		return "gradients";
	for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
		const DeviceStep *g = &s->step[i];
		if (g->kind != STEP_GRADIENT)
			return "gradients";
		bool a = bits_of(k, g->a, g->a_col), b = bits_of(k, g->c, g->c_col);
		*(a || b ? &c->lists : &c->dense) = g;
		if (a || b)
			c->half->in = a ? bits_of(k, g->a, g->a_col) : bits_of(k, g->c, g->c_col);
	}
	if (!c->lists || !c->dense || !bits_of(k, c->index->a, c->index->a_col))
		return "inputs";
	return NULL;
}

/* Is the gradient that of all links from columns of one buffer, and perhaps the true unit, to those of another? */
static bool is_gradient(const DeviceStep *g, const DevicePanel *p, uint32_t sources, uint32_t targets, uint32_t col)
{
	bool by_source = g->a == BUF_ACT;
	uint32_t bias = p->bias != NO_BIAS;

	return g->a + g->c == BUF_ACT + BUF_DELTA && (by_source ? g->c_col : g->a_col) == col &&
	       (by_source ? g->depth : g->cols) == sources + bias && (by_source ? g->cols : g->depth) == targets &&
	       (!bias || (p->bias == sources && p->bias_across != by_source));
}

/* Do the steps fit together? */
static const char *steps_check(const Columns *c)
{
	const DeviceStep *x = c->index, *o = c->out, *b = c->back, *g = c->dense;

	if (x->depth != c->inputs || x->half_at != c->from->at ||
	    !is_gradient(c->lists, c->from, c->inputs, c->hidden, b->c_col))
		return "weights from inputs";
	if (o->half_at != c->to->at || b->half_at != c->to->at || !is_gradient(g, c->to, c->hidden, c->outputs, b->a_col) ||
	    (g->a == BUF_ACT ? g->a_col : g->c_col) != x->c_col)
		return "weights to outputs";
	return c->errors && c->errors->c == BUF_DELTA ? NULL : "errors";
}

/* Tiles of all warps that share rows are there. */
static bool splits(uint32_t cols, uint32_t split)
{
	return ceil_div(ceil_div(cols, 8), split) * split * 8 <= round_up(cols, 16);
}

static void plan_rows(Columns *c)
{
	Kernel *k = c->k;
	HalfColumns *h = c->half;

	k->block_rows = (uint32_t)round_up(ceil_div(k->s->leaf_rows, c->blocks), 32);
	c->parts = 1;
	c->rows = c->part_rows = k->block_rows * c->blocks;
	c->part_block = k->block_rows;
	c->team_warps = c->warps;
	h->slices = c->rows / 32;
	h->row_tiles = k->block_rows / 16;
	for (h->split = 4; h->split > 1; h->split /= 2)
		if (2 * h->row_tiles * h->split <= c->warps && splits(c->hidden, h->split) && splits(c->outputs, h->split))
			break;
	c->pass_warps = h->row_tiles * h->split;
	h->once = c->rows <= 16 * c->warps * h->shares;
	bool two = h->own_down <= min_u32(c->pass_warps, c->warps - c->pass_warps) && h->own_down <= HALF_CHAINS;
	h->chain = two && h->slices % 2 == 0 && h->slices / 2 * h->tiles <= SLICES_KEPT ? 2 : 1;
}

static void plan_memory(Columns *c)
{
	Kernel *k = c->k;
	HalfColumns *h = c->half;
	uint32_t values = 1 + plan_states(c), bias = c->to->bias != NO_BIAS;

	plan_cases_begin(c);
	k->half->at_bits = take(c, bits_bytes(k, c->rows));
	plan_cases_end(c);
	k->half->at_transposed = take(c, transposed_bytes(k, c->rows));
	h->from_pitch = odd_16s(16 * h->tiles);
	h->at_from = take(c, (uint64_t)round_up(16 * h->down, 32) * h->from_pitch);
	h->at_start = take(c, 32 * h->tiles);
	h->master_size = h->own_down * h->tiles * TILE;
	h->at_master = take(c, (uint64_t)h->master_size * values);
	h->at_prefix = take(c, h->chain > 1 ? h->master_size : 0);
	h->to_tile = (uint32_t)round_up(c->outputs, 16) * 16;
	h->to_start = (uint32_t)round_up(c->hidden, 16) / 8 * h->to_tile;
	h->to_size = h->to_start + (uint32_t)round_up(c->outputs, 16) * 4;
	h->at_to = take(c, 2 * (uint64_t)h->to_size);
	h->own_size = h->own_tiles * TILE;
	h->at_own = take(c, (uint64_t)h->own_size * values);
	h->at_act = take(c, (uint64_t)round_up(c->hidden, 16) * 4 * k->block_rows);
	h->act_pitch = odd_16s(2 * round_up(c->hidden + bias, 16));
	h->at_act_h = take(c, (uint64_t)h->act_pitch * k->block_rows);
	h->delta_pitch = odd_16s(2 * round_up(c->outputs, 16));
	h->at_delta_h = take(c, (uint64_t)h->delta_pitch * k->block_rows);
	h->hidden_pitch = odd_16s(16 * h->tiles);
	h->at_hidden = take(c, (uint64_t)h->hidden_pitch * c->rows);
	h->at_sums = take(c, (uint64_t)h->slices * h->own_size);
}

uint32_t half_columns_each(uint32_t hidden, uint32_t blocks)
{
	return 8 * (uint32_t)ceil_div(ceil_div(hidden, 8), blocks);
}

const char *half_columns_plan(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	HalfColumns *h = c->half = NEW(&s->cx->scratch, 1, HalfColumns);

	k->half = NEW(&s->cx->scratch, 1, Half);
	k->e->near = true;
	bits_plan(k);
	if (!k->half->bits)
		return "inputs";
	const char *why = steps_find(c);
	if (why)
		return why;
	k->half->y_bits = s->job->data.y_bits && s->job->outputs <= 32;
	c->from = &s->panel[c->lists->panel];
	c->to = &s->panel[c->dense->panel];
	plan_sizes(c);
	c->own = half_columns_each(c->hidden, c->blocks);
	c->own_quads = c->own / 4;
	why = steps_check(c);
	if (why)
		return why;
	h->tiles = c->own / 8;
	h->shares = c->blocks / (uint32_t)ceil_div(c->hidden, c->own);
	h->from_rows = c->inputs + (c->from->bias != NO_BIAS);
	h->down = (uint32_t)ceil_div(h->from_rows, 16);
	h->own_down = (uint32_t)ceil_div(h->down, h->shares);
	h->to_down = (uint32_t)ceil_div(c->outputs, 16);
	h->to_across = (uint32_t)ceil_div(c->hidden + (c->to->bias != NO_BIAS), 8);
	if (h->to_down * h->to_across < c->blocks)
		return "weights to outputs";
	h->own_tiles = (uint32_t)ceil_div(h->to_down * h->to_across, c->blocks);
	h->sent_bytes = h->to_down * (uint32_t)ceil_div(c->hidden, 8) * 256 + (c->to->bias != NO_BIAS ? c->outputs * 4 : 0);
	plan_rows(c);
	plan_row_turns(c);
	if (c->own > MOST_COLUMNS || c->all_turns > MOST_TURNS || c->warps < 2 || c->pass_warps > c->warps)
		return "hidden units, or rows";
	k->bytes = 0;
	plan_memory(c);
	return k->bytes > s->shared ? "shared memory" : NULL;
}

/* ---- the beginning and the end of a job ---- */

void half_places(Columns *c)
{
	Emit *e = c->k->e;
	Half *h = c->k->half;

	c->half->group = divide(e, c->k->member, c->half->shares);
	c->half->share = modulo(e, c->k->member, c->half->shares, c->half->group);
	c->first_column = mul(e, c->half->group, c->own);
	h->warp = c->warp;
	h->lane = c->lane;
	h->row_of_lane = op2(e, REG_R, "shr.u32", c->lane, imm(2));
	h->col_of_lane = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", c->lane, imm(3)), imm(1));
	h->bits_shift = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", c->lane, imm(3)), imm(2));
}

/* The column of ones. */
void half_columns_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	if (c->to->bias == NO_BIAS)
		return;
	Reg one = reg(e, REG_H);
	Loop l = loop_begin(e, k->tid, imm(k->block_rows), k->s->threads);
	ins(e, "mov.u16 $, 0x3f80", one);
	ins(e, "st.shared.u16 [$+#], $", mad(e, l.i, c->half->act_pitch, k->memory), c->half->at_act_h + 2 * c->hidden,
	    one);
	loop_end(e, &l);
}

/* A weight that a thread moves; real: P */
typedef struct Place {
	const DevicePanel *panel;
	const DeviceStep *gradient;   /* its own */
	Reg source, target, real, at; /* at: address of the weight in shared memory */
	uint32_t size;                /* bytes to its state */
} Place;

static bool by_source(const Place *p) { return p->gradient->a == BUF_ACT; }

/* Its place in the panel. */
static Reg panel_place(Emit *e, const Place *p)
{
	return by_source(p) ? mad(e, p->source, p->panel->row, p->target) : mad(e, p->target, p->panel->row, p->source);
}

static void place_move(Columns *c, const Place *p, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg place_of = panel_place(e, p);
	uint32_t none = if_begin(e, p->real);

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
		if (!c->state[v])
			continue;
		Reg there = variable_at(k, v, p->panel, place_of);
		if (out) {
			Reg x = load(e, REG_F, "ld.shared.f32", p->at, (v - 1) * p->size);
			ins(e, "st.global.f32 [$], $", there, x);
			if (v == 1)
				half_weight(k, p->panel, by_source(p) ? p->source : p->target, by_source(p) ? p->target : p->source,
				            place_of, x);
		} else {
			ins(e, "st.shared.f32 [$+#], $", p->at, (v - 1) * p->size, load(e, REG_F, "ld.global.f32", there, 0));
		}
	}
	if_end(e, none);
}

static Reg half_load(Kernel *k, const Place *p)
{
	Emit *e = k->e;
	Reg h = reg(e, REG_H);

	ins(e, "ld.global.u16 $, [$]", h, place(e, place_at(e, POINTER(k, half), p->panel->at * 2), panel_place(e, p), 2));
	return h;
}

/* Row and column of value i of a lane, from the first ones of a tile on. */
static Reg value_row(Emit *e, Reg first, Reg lane, Reg i)
{
	return add(e, add(e, first, op2(e, REG_R, "shr.u32", lane, imm(2))),
	           op2(e, REG_R, "shl.b32", op2(e, REG_R, "shr.u32", i, imm(1)), imm(3)));
}

static Reg value_col(Emit *e, Reg first, Reg lane, Reg i)
{
	Reg pair = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", lane, imm(3)), imm(1));

	return add(e, add(e, first, pair), op2(e, REG_R, "and.b32", i, imm(1)));
}

/* Of the block's tiles. */
static void from_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Loop l = loop_begin(e, k->tid, imm(h->master_size / 4), k->s->threads);
	Reg tile = divide(e, l.i, TILE / 4), rest = modulo(e, l.i, TILE / 4, tile), lane = divide(e, rest, 4);
	Reg i = modulo(e, rest, 4, lane), down = divide(e, tile, h->tiles), across = modulo(e, tile, h->tiles, down);
	Reg input = value_row(e, mul(e, add(e, half_first(c), down), 16), lane, i);
	Reg own = value_col(e, mul(e, across, 8), lane, i);
	Place p = { .panel = c->from, .gradient = c->lists, .source = input, .size = h->master_size };

	p.target = add(e, c->first_column, own);
	p.at = add(e, mad(e, l.i, 4, k->memory), imm(h->at_master));
	p.real = op2(e, REG_P, "and.pred", less(e, p.target, imm(c->hidden)), less(e, input, imm(h->from_rows)));
	place_move(c, &p, out);
	loop_end(e, &l);
}

/* All rounded weights to the block's columns, and what sums begin with. */
static void from_load(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Loop l = loop_begin(e, k->tid, imm(h->from_rows * c->own), k->s->threads);
	Reg input = divide(e, l.i, c->own), own = modulo(e, l.i, c->own, input);
	Place p = { .panel = c->from, .gradient = c->lists, .source = input, .target = add(e, c->first_column, own) };
	uint32_t none = if_begin(e, less(e, p.target, imm(c->hidden)));
	Reg is_input = less(e, input, imm(c->inputs));

	ins(e, "@$ st.shared.u16 [$+#], $", is_input, mad(e, input, h->from_pitch, mad(e, own, 2, k->memory)), h->at_from,
	    half_load(k, &p));
	if (c->from->bias != NO_BIAS)
		ins(e, "@!$ st.shared.f32 [$+#], $", is_input, mad(e, own, 4, k->memory), h->at_start,
		    load(e, REG_F, "ld.global.f32", variable_at(k, 1, c->from, panel_place(e, &p)), 0));
	if_end(e, none);
	loop_end(e, &l);
}

Reg half_first(Columns *c) { return mul(c->k->e, c->half->share, c->half->own_down); }

Reg half_tile(Columns *c, uint32_t slot)
{
	Emit *e = c->k->e;

	return add(e, op2(e, REG_R, "sub.u32", imm(c->blocks - 1), c->k->member), imm(slot * c->blocks));
}

static void own_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	uint32_t units = c->hidden + (c->to->bias != NO_BIAS);

	for (uint32_t slot = 0; slot < h->own_tiles; slot++) {
		Reg tile = half_tile(c, slot), down = divide(e, tile, h->to_across),
			across = modulo(e, tile, h->to_across, down);
		Loop l = loop_begin(e, k->tid, imm(TILE / 4), k->s->threads);
		Reg lane = divide(e, l.i, 4), i = modulo(e, l.i, 4, lane);
		Place p = { .panel = c->to, .gradient = c->dense, .size = h->own_size };
		p.target = value_row(e, mul(e, down, 16), lane, i);
		p.source = value_col(e, mul(e, across, 8), lane, i);
		p.at = add(e, mad(e, l.i, 4, k->memory), imm(h->at_own + slot * TILE));
		p.real = op2(e, REG_P, "and.pred", less(e, p.target, imm(c->outputs)), less(e, p.source, imm(units)));
		place_move(c, &p, out);
		loop_end(e, &l);
	}
}

/* All rounded weights to outputs, and what sums begin with. */
static void to_load(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Place p = { .panel = c->to, .gradient = c->dense };
	Loop l = loop_begin(e, k->tid, imm(c->outputs * c->hidden), k->s->threads);

	p.target = divide(e, l.i, c->hidden);
	p.source = modulo(e, l.i, c->hidden, p.target);
	Reg tile = divide(e, p.source, 8), col = modulo(e, p.source, 8, tile);
	ins(e, "st.shared.u16 [$+#], $", mad(e, tile, h->to_tile, mad(e, p.target, 16, mad(e, col, 2, k->memory))),
	    h->at_to, half_load(k, &p));
	loop_end(e, &l);
	if (c->to->bias == NO_BIAS)
		return;
	Loop o = loop_begin(e, k->tid, imm(c->outputs), k->s->threads);
	p.target = o.i;
	p.source = op1(e, REG_R, "mov.u32", imm(c->hidden));
	ins(e, "st.shared.f32 [$+#], $", mad(e, o.i, 4, k->memory), h->at_to + h->to_start,
	    load(e, REG_F, "ld.global.f32", variable_at(k, 1, c->to, panel_place(e, &p)), 0));
	loop_end(e, &o);
}

void half_weights_move(Columns *c, bool out)
{
	remark(c->k->e, out ? "weights to global memory" : "weights");
	from_move(c, out);
	own_move(c, out);
	if (out)
		return;
	from_load(c);
	to_load(c);
}

/* ---- updates ---- */

/* Rows of the update, up to the end of a slice. */
static Reg whole_slices(Emit *e, Reg rows) { return op2(e, REG_R, "and.b32", add(e, rows, imm(31)), imm(~31u)); }

/* Rounded weights that other blocks with the same columns send: pairs of columns of their inputs, and of the true
 * unit. */
static Reg from_bytes(Columns *c)
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	Reg first = mul(e, half_first(c), 16), bytes;

	Reg own = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", first, imm(c->inputs)), first);
	own = op2(e, REG_R, "min.u32", own, imm(16 * h->own_down));
	bytes = mul(e, op2(e, REG_R, "sub.u32", imm(c->inputs), own), 4);
	if (c->from->bias != NO_BIAS) {
		Reg before = op2(e, REG_R, "sub.u32", imm(c->inputs), first);
		bytes = add(e, bytes, op3(e, REG_R, "selp.u32", imm(0), imm(8), less(e, before, imm(16 * h->own_down))));
	}
	return op3(e, REG_R, "selp.u32", mul(e, bytes, 4 * h->tiles), imm(0), c->has_columns);
}

void half_from_wait(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t first = unless_begin(e, same(e, c->update, imm(0)));

	bar_wait(c, bar_at(c, BAR_FROM), op2(e, REG_R, "xor.b32", c->parity, imm(1)));
	if_end(e, first);
}

static void stores_expect(Columns *c, Reg new_weights)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	uint32_t other = if_begin(e, same(e, k->tid, imm(c->workers - 1)));
	uint32_t hidden = (uint32_t)ceil_div(c->hidden, 8);
	Reg before = mul(e, h->group, h->tiles), own;

	own = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", before, imm(hidden)), before);
	own = op2(e, REG_R, "min.u32", own, imm(h->tiles));
	Reg rows = op2(e, REG_R, "and.b32", add(e, k->my_rows, imm(15)), imm(~15u)); /* in whole tiles */
	bar_expect(c, BAR_ACT, add(e, mul(e, rows, hidden * 32), new_weights));
	bar_expect(c, BAR_FROM, h->shares > 1 ? from_bytes(c) : imm(0));
	for (uint32_t i = 0; i < h->chain; i++) {
		Reg some = whole_slices(e, rows_in(c, imm(i * (c->rows / h->chain)), c->rows / h->chain));
		Reg bytes = op2(e, REG_R, "mul.lo.u32", mul(e, some, 16), own);
		bar_expect(c, BAR_HIDDEN + i, h->chain > 1 ? add(e, bytes, imm(4)) : bytes);
	}
	ins(e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], 4", turn_bar(c, BAR_TALLIED));
	if_end(e, other);
}

/* Warps without rows make words of inputs, and sums of weights to outputs when deltas are there. What all need of the
 * others, and the cases of the next update, they have when they meet; so has the warp that copies these read TALLIED,
 * which is used again two updates later, after LATE of the next one. */
static void rows_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t others = c->warps - c->pass_warps, end = label(e);
	bool two = c->half->chain > 1;

	if (!others)
		half_turn(c);
	uint32_t other = if_begin(e, less(e, c->warp, imm(c->pass_warps)));
	bar_wait(c, bar_at(c, BAR_ACT), c->parity);
	spent(k, SPENT_KINDS + 3);
	half_rows_pass(c);
	spent(k, SPENT_KINDS + 5);
	if (others)
		meet(c, imm(NAMED_TURNED), c->warps + 1);
	if (two)
		half_from_second(c);
	ins(e, "bra L#", end);
	if_end(e, other);
	if (others) {
		half_turn(c);
		tell(c, imm(NAMED_TURNED), c->warps + 1);
		if (two)
			meet(c, imm(NAMED_WORDS), others);
		const struct FromTiles *x = two ? half_from_begin(c, 0) : NULL;
		meet(c, imm(NAMED_OUTPUTS), c->warps + 1);
		half_dense(c, c->pass_warps, others);
		if (two)
			half_from_first(c, x);
	}
	label_here(e, end);
	if (!others) {
		meet(c, imm(NAMED_OUTPUTS), c->warps + 1);
		half_dense(c, 0, c->warps);
		meet(c, imm(NAMED_TURNED), c->warps + 1);
	}
	if (!two)
		half_from(c);
	spent(k, SPENT_KINDS + 6);
}

void half_workers(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg sent = op1(e, REG_R, "mov.u32", imm(0));

	UpdateLoop l = updates_begin(c);
	update_begin(c);
	half_hidden(c);
	stores_expect(c, sent);
	spent(k, SPENT_KINDS + 2);
	rows_emit(c);
	spent(k, SPENT_KINDS + 11);
	tell(c, imm(NAMED_END), c->warps + 2);
	ins(e, "mov.u32 $, #", sent, c->half->sent_bytes);
	updates_end(c, &l);
	spent(k, SPENT_GRADIENT);
	/* weights that are still on their way */
	places_derive(c);
	half_from_wait(c);
	uint32_t other = if_begin(e, same(e, k->tid, imm(c->workers - 1)));
	bar_expect(c, BAR_ACT, imm(c->half->sent_bytes));
	if_end(e, other);
	bar_wait(c, bar_at(c, BAR_ACT), c->parity);
}
