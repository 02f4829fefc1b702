/* SPDX-License-Identifier: MIT */
/* bf16: plan, weights, and the loop over updates of the workers. In: steps of the device. Out: offsets in shared
 * memory, or why there is no such kernel.
 *
 * Columns and rows are divided as columns.h says; products run on tensor cores, in the order of doc/arithmetic.md.
 * Inputs are bits. A column tile has eight columns: if there are more blocks than tiles, several blocks share
 * columns. All of them have the bf16 weights; each computes the activations of some rows, and gradient and rule for
 * some inputs, over all rows, and sends new weights to the others (INPUT_W).
 *
 * Activations are sent as fp32, since slopes need them; deltas of hidden units return in bf16, to all blocks of the
 * column. A block forms the output gradient of its own slices of rows. Master weights are tiles of 16 by 8; slice
 * sums are sent to the block of the tile (DELTA), which adds them in order, applies the rule and sends new weights
 * to all, for the next update (ACT counts them).
 *
 * An update is bound by latency: of messages between blocks and of chains of products. Therefore operands made of
 * bits are ready before the other operand arrives; half of the warps transpose bits and form slice sums while the
 * others have the rows; a tile of input weights has two warps, if there are enough, of which one sums the first
 * slices and the other the rest. No worker waits for scores, for the rule of output weights, or twice between deltas
 * and weights. What a warp sends is contiguous in the receiver's memory, in the order of its lanes: 32 scattered
 * bytes take the network as long as 64 to 128 contiguous ones.
 *
 * Every block has a tile of output weights, and all blocks send all of their slice sums in every update, also those
 * without rows, after they have declared what they expect; INPUT_W is complete only when the block has waited for
 * these. So barriers of all blocks are in the same update; sync.c has the rest. No warp is in an update while
 * another one of its block is in the one before or after: all wait for INPUT_W. */
#include "columns.h"
#include "units.h"

enum { TILE = 512 }; /* bytes of the sums of a tile: a quad for each lane */

static uint32_t odd_16s(uint64_t bytes) { return (uint32_t)(ceil_div(bytes, 16) | 1) * 16; }

/* ---- plan ---- */

static const char *steps_find(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	const DeviceStep **product[] = { &c->step.hidden, &c->step.outputs, &c->step.back };
	uint32_t products = 0;

	if (!bf16_fuses_layers(k))
		return "layers";
	for (uint32_t i = 0; i < s->list->gradient; i++)
		if (s->step[i].kind == STEP_PRODUCT)
			*product[products++] = &s->step[i];
	c->step.errors = deferred_errors(k, c->step.outputs);
	if (s->list->steps - s->list->gradient != 2)
		return "gradients";
	for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
		const DeviceStep *g = &s->step[i];
		if (g->kind != STEP_GRADIENT)
			return "gradients";
		bool a = bit_columns(k, g->a, g->a_col), b = bit_columns(k, g->c, g->c_col);
		*(a || b ? &c->step.input_gradient : &c->step.output_gradient) = g;
		if (a || b)
			c->bf16->input = a ? bit_columns(k, g->a, g->a_col) : bit_columns(k, g->c, g->c_col);
	}
	if (!c->step.input_gradient || !c->step.output_gradient ||
	    !bit_columns(k, c->step.hidden->a, c->step.hidden->a_col))
		return "inputs";
	return NULL;
}

/* Is the gradient that of all links of panel p, from `sources` units, and perhaps the true one, at column `col`, to
 * `targets` units? */
static bool is_gradient(const DeviceStep *g, const DevicePanel *p, uint32_t sources, uint32_t targets, uint32_t col)
{
	bool by_source = g->a == BUF_ACT;
	uint32_t bias = p->bias != NO_BIAS;

	return g->a + g->c == BUF_ACT + BUF_DELTA && (by_source ? g->c_col : g->a_col) == col &&
	       (by_source ? g->depth : g->cols) == sources + bias && (by_source ? g->cols : g->depth) == targets &&
	       (!bias || (p->bias == sources && p->bias_across != by_source));
}

/* Does each step read what the one before writes? */
static const char *steps_check(const Columns *c)
{
	const DeviceStep *x = c->step.hidden, *o = c->step.outputs, *b = c->step.back, *g = c->step.output_gradient;

	if (x->depth != c->inputs || x->half_at != c->input_panel->at ||
	    !is_gradient(c->step.input_gradient, c->input_panel, c->inputs, c->hidden, b->c_col))
		return "weights from inputs";
	if (o->half_at != c->output_panel->at || b->half_at != c->output_panel->at ||
	    !is_gradient(g, c->output_panel, c->hidden, c->outputs, b->a_col) ||
	    (g->a == BUF_ACT ? g->a_col : g->c_col) != x->c_col)
		return "weights to outputs";
	return c->step.errors && c->step.errors->c == BUF_DELTA ? NULL : "errors";
}

/* Can `split` warps divide the column tiles of a product evenly? */
static bool splits(uint32_t cols, uint32_t split)
{
	return ceil_div(ceil_div(cols, 8), split) * split * 8 <= round_up(cols, 16);
}

static void plan_rows(Columns *c)
{
	Kernel *k = c->k;
	Bf16Columns *h = c->bf16;

	k->block_rows = (uint32_t)round_up(ceil_div(k->s->leaf_rows, c->blocks), 32);
	c->parts = 1;
	c->rows = c->part_rows = k->block_rows * c->blocks;
	c->part_block_rows = k->block_rows;
	c->part_warps = c->warps;
	h->slices = c->rows / 32;
	h->row_tiles = k->block_rows / 16;
	for (h->row_warps = 4; h->row_warps > 1; h->row_warps /= 2)
		if (2 * h->row_tiles * h->row_warps <= c->warps && splits(c->hidden, h->row_warps) &&
		    splits(c->outputs, h->row_warps))
			break;
	c->pass_warps = h->row_tiles * h->row_warps;
	h->once = c->rows <= 16 * c->warps * h->shares;
	bool two =
		h->block_input_tiles <= min_u32(c->pass_warps, c->warps - c->pass_warps) && h->block_input_tiles <= BF16_CHAINS;
	h->tile_warps = two && h->slices % 2 == 0 && h->slices / 2 * h->col_tiles <= SLICES_KEPT ? 2 : 1;
}

static void plan_memory(Columns *c)
{
	Kernel *k = c->k;
	Bf16Columns *h = c->bf16;
	uint32_t values = 1 + plan_states(c), bias = c->output_panel->bias != NO_BIAS;

	plan_cases_begin(c);
	k->bf16->at_bits = take(c, bits_bytes(k, c->rows));
	plan_cases_end(c);
	k->bf16->at_transposed = take(c, transposed_bytes(k, c->rows));
	h->smem.input_w_row = odd_16s(16 * h->col_tiles);
	h->smem.input_w = take(c, (uint64_t)round_up(16 * h->input_tiles, 32) * h->smem.input_w_row);
	h->smem.hidden_start = take(c, 32 * h->col_tiles);
	h->smem.input_master_size = h->block_input_tiles * h->col_tiles * TILE;
	h->smem.input_master = take(c, (uint64_t)h->smem.input_master_size * values);
	h->smem.prefix = take(c, h->tile_warps > 1 ? h->smem.input_master_size : 0);
	h->smem.output_w_tile = (uint32_t)round_up(c->outputs, 16) * 16;
	h->smem.output_start = (uint32_t)round_up(c->hidden, 16) / 8 * h->smem.output_w_tile;
	h->smem.output_w_size = h->smem.output_start + (uint32_t)round_up(c->outputs, 16) * 4;
	h->smem.output_w = take(c, 2 * (uint64_t)h->smem.output_w_size);
	h->smem.block_master_size = h->block_tiles * TILE;
	h->smem.block_master = take(c, (uint64_t)h->smem.block_master_size * values);
	h->smem.act = take(c, (uint64_t)round_up(c->hidden, 16) * 4 * k->block_rows);
	h->smem.act_row = odd_16s(2 * round_up(c->hidden + bias, 16));
	h->smem.act_bf16 = take(c, (uint64_t)h->smem.act_row * k->block_rows);
	h->smem.delta_row = odd_16s(2 * round_up(c->outputs, 16));
	h->smem.delta_bf16 = take(c, (uint64_t)h->smem.delta_row * k->block_rows);
	h->smem.hidden_delta_row = odd_16s(16 * h->col_tiles);
	h->smem.hidden_delta = take(c, (uint64_t)h->smem.hidden_delta_row * c->rows);
	h->smem.slice_sums = take(c, (uint64_t)h->slices * h->smem.block_master_size);
}

uint32_t bf16_columns_each(uint32_t hidden, uint32_t blocks)
{
	return 8 * (uint32_t)ceil_div(ceil_div(hidden, 8), blocks);
}

const char *bf16_columns_plan(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	Bf16Columns *h = c->bf16 = NEW(&s->cx->scratch, 1, Bf16Columns);

	k->bf16 = NEW(&s->cx->scratch, 1, Bf16);
	k->e->near = true;
	bits_plan(k);
	if (!k->bf16->bits)
		return "inputs";
	const char *why = steps_find(c);
	if (why)
		return why;
	k->bf16->y_bits = s->job->data.y_bits && s->job->outputs <= 32;
	c->input_panel = &s->panel[c->step.input_gradient->panel];
	c->output_panel = &s->panel[c->step.output_gradient->panel];
	plan_sizes(c);
	c->block_cols = bf16_columns_each(c->hidden, c->blocks);
	c->block_quads = c->block_cols / 4;
	why = steps_check(c);
	if (why)
		return why;
	h->col_tiles = c->block_cols / 8;
	h->shares = c->blocks / (uint32_t)ceil_div(c->hidden, c->block_cols);
	h->input_rows = c->inputs + (c->input_panel->bias != NO_BIAS);
	h->input_tiles = (uint32_t)ceil_div(h->input_rows, 16);
	h->block_input_tiles = (uint32_t)ceil_div(h->input_tiles, h->shares);
	h->output_tiles = (uint32_t)ceil_div(c->outputs, 16);
	h->unit_tiles = (uint32_t)ceil_div(c->hidden + (c->output_panel->bias != NO_BIAS), 8);
	if (h->output_tiles * h->unit_tiles < c->blocks)
		return "weights to outputs";
	h->block_tiles = (uint32_t)ceil_div(h->output_tiles * h->unit_tiles, c->blocks);
	h->output_w_bytes = h->output_tiles * (uint32_t)ceil_div(c->hidden, 8) * 256 +
	                    (c->output_panel->bias != NO_BIAS ? c->outputs * 4 : 0);
	plan_rows(c);
	plan_lane_rows(c);
	if (c->block_cols > MAX_COLUMNS || c->lane_rows > MAX_LANE_ROWS || c->warps < 2 || c->pass_warps > c->warps)
		return "hidden units, or rows";
	k->bytes = 0;
	plan_memory(c);
	return k->bytes > s->shared ? "shared memory" : NULL;
}

/* ---- prologue and epilogue of a job ---- */

void bf16_registers(Columns *c)
{
	Emit *e = c->k->e;
	Bf16 *h = c->k->bf16;

	c->bf16->group = divide(e, c->k->member, c->bf16->shares);
	c->bf16->share = modulo(e, c->k->member, c->bf16->shares, c->bf16->group);
	c->reg.first_column = mul(e, c->bf16->group, c->block_cols);
	h->warp = c->reg.warp;
	h->lane = c->reg.lane;
	h->row_of_lane = op2(e, REG_R, "shr.u32", c->reg.lane, imm(2));
	h->col_of_lane = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", c->reg.lane, imm(3)), imm(1));
	h->bits_shift = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", c->reg.lane, imm(3)), imm(2));
}

/* The column of ones, for the weights from the true unit. */
void bf16_columns_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	if (c->output_panel->bias == NO_BIAS)
		return;
	Reg one = reg(e, REG_H);
	Loop l = loop_begin(e, k->tid, imm(k->block_rows), k->s->threads);
	ins(e, "mov.u16 $, 0x3f80", one);
	ins(e, "st.shared.u16 [$+#], $", mad(e, l.i, c->bf16->smem.act_row, k->memory),
	    c->bf16->smem.act_bf16 + 2 * c->hidden, one);
	loop_end(e, &l);
}

/* A weight that a thread moves. */
typedef struct Place {
	const DevicePanel *panel;
	const DeviceStep *gradient; /* of the panel */
	Reg source, target;
	Reg real;      /* P: it is a weight, not padding */
	Reg at;        /* address in shared memory */
	uint32_t size; /* bytes from a variable to the next */
} Place;

static bool by_source(const Place *p) { return p->gradient->a == BUF_ACT; }

/* Its place in the panel, in global memory. */
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
		if (!c->keeps[v])
			continue;
		Reg there = variable_at(k, v, p->panel, place_of);
		if (out) {
			Reg x = load(e, REG_F, "ld.shared.f32", p->at, (v - 1) * p->size);
			ins(e, "st.global.f32 [$], $", there, x);
			if (v == 1)
				bf16_weight(k, p->panel, by_source(p) ? p->source : p->target, by_source(p) ? p->target : p->source,
				            place_of, x);
		} else {
			ins(e, "st.shared.f32 [$+#], $", p->at, (v - 1) * p->size, load(e, REG_F, "ld.global.f32", there, 0));
		}
	}
	if_end(e, none);
}

static Reg bf16_load(Kernel *k, const Place *p)
{
	Emit *e = k->e;
	Reg h = reg(e, REG_H);

	ins(e, "ld.global.u16 $, [$]", h, place(e, place_at(e, POINTER(k, half), p->panel->at * 2), panel_place(e, p), 2));
	return h;
}

/* Row and column of value i of a lane's fragment of a tile. */
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

/* Master input weights of the block, and their state. */
static void input_weights_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Loop l = loop_begin(e, k->tid, imm(h->smem.input_master_size / 4), k->s->threads);
	Reg tile = divide(e, l.i, TILE / 4), rest = modulo(e, l.i, TILE / 4, tile), lane = divide(e, rest, 4);
	Reg i = modulo(e, rest, 4, lane), down = divide(e, tile, h->col_tiles),
		across = modulo(e, tile, h->col_tiles, down);
	Reg input = value_row(e, mul(e, add(e, bf16_first_tile(c), down), 16), lane, i);
	Reg own = value_col(e, mul(e, across, 8), lane, i);
	Place p = {
		.panel = c->input_panel, .gradient = c->step.input_gradient, .source = input, .size = h->smem.input_master_size
	};

	p.target = add(e, c->reg.first_column, own);
	p.at = add(e, mad(e, l.i, 4, k->memory), imm(h->smem.input_master));
	p.real = op2(e, REG_P, "and.pred", less(e, p.target, imm(c->hidden)), less(e, input, imm(h->input_rows)));
	place_move(c, &p, out);
	loop_end(e, &l);
}

/* bf16 input weights of the block's columns, and initial values of sums. */
static void input_w_load(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Loop l = loop_begin(e, k->tid, imm(h->input_rows * c->block_cols), k->s->threads);
	Reg input = divide(e, l.i, c->block_cols), own = modulo(e, l.i, c->block_cols, input);
	Place p = { .panel = c->input_panel,
		        .gradient = c->step.input_gradient,
		        .source = input,
		        .target = add(e, c->reg.first_column, own) };
	uint32_t none = if_begin(e, less(e, p.target, imm(c->hidden)));
	Reg is_input = less(e, input, imm(c->inputs));

	ins(e, "@$ st.shared.u16 [$+#], $", is_input, mad(e, input, h->smem.input_w_row, mad(e, own, 2, k->memory)),
	    h->smem.input_w, bf16_load(k, &p));
	if (c->input_panel->bias != NO_BIAS)
		ins(e, "@!$ st.shared.f32 [$+#], $", is_input, mad(e, own, 4, k->memory), h->smem.hidden_start,
		    load(e, REG_F, "ld.global.f32", variable_at(k, 1, c->input_panel, panel_place(e, &p)), 0));
	if_end(e, none);
	loop_end(e, &l);
}

Reg bf16_first_tile(Columns *c) { return mul(c->k->e, c->bf16->share, c->bf16->block_input_tiles); }

Reg bf16_block_tile(Columns *c, uint32_t slot)
{
	Emit *e = c->k->e;

	return add(e, op2(e, REG_R, "sub.u32", imm(c->blocks - 1), c->k->member), imm(slot * c->blocks));
}

static void block_tiles_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t units = c->hidden + (c->output_panel->bias != NO_BIAS);

	for (uint32_t slot = 0; slot < h->block_tiles; slot++) {
		Reg tile = bf16_block_tile(c, slot), down = divide(e, tile, h->unit_tiles),
			across = modulo(e, tile, h->unit_tiles, down);
		Loop l = loop_begin(e, k->tid, imm(TILE / 4), k->s->threads);
		Reg lane = divide(e, l.i, 4), i = modulo(e, l.i, 4, lane);
		Place p = { .panel = c->output_panel, .gradient = c->step.output_gradient, .size = h->smem.block_master_size };
		p.target = value_row(e, mul(e, down, 16), lane, i);
		p.source = value_col(e, mul(e, across, 8), lane, i);
		p.at = add(e, mad(e, l.i, 4, k->memory), imm(h->smem.block_master + slot * TILE));
		p.real = op2(e, REG_P, "and.pred", less(e, p.target, imm(c->outputs)), less(e, p.source, imm(units)));
		place_move(c, &p, out);
		loop_end(e, &l);
	}
}

/* All bf16 output weights, and initial values of sums. */
static void output_w_load(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Place p = { .panel = c->output_panel, .gradient = c->step.output_gradient };
	Loop l = loop_begin(e, k->tid, imm(c->outputs * c->hidden), k->s->threads);

	p.target = divide(e, l.i, c->hidden);
	p.source = modulo(e, l.i, c->hidden, p.target);
	Reg tile = divide(e, p.source, 8), col = modulo(e, p.source, 8, tile);
	ins(e, "st.shared.u16 [$+#], $",
	    mad(e, tile, h->smem.output_w_tile, mad(e, p.target, 16, mad(e, col, 2, k->memory))), h->smem.output_w,
	    bf16_load(k, &p));
	loop_end(e, &l);
	if (c->output_panel->bias == NO_BIAS)
		return;
	Loop o = loop_begin(e, k->tid, imm(c->outputs), k->s->threads);
	p.target = o.i;
	p.source = op1(e, REG_R, "mov.u32", imm(c->hidden));
	ins(e, "st.shared.f32 [$+#], $", mad(e, o.i, 4, k->memory), h->smem.output_w + h->smem.output_start,
	    load(e, REG_F, "ld.global.f32", variable_at(k, 1, c->output_panel, panel_place(e, &p)), 0));
	loop_end(e, &o);
}

void bf16_weights_move(Columns *c, bool out)
{
	remark(c->k->e, out ? "weights to global memory" : "weights");
	input_weights_move(c, out);
	block_tiles_move(c, out);
	if (out)
		return;
	input_w_load(c);
	output_w_load(c);
}

/* ---- updates ---- */

/* Rounds rows up to whole slices. */
static Reg whole_slices(Emit *e, Reg rows) { return op2(e, REG_R, "and.b32", add(e, rows, imm(31)), imm(~31u)); }

/* Bytes that other blocks with the same columns send: bf16 weights of their inputs, fp32 ones of the true unit. */
static Reg input_w_bytes(Columns *c)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	Reg first = mul(e, bf16_first_tile(c), 16), bytes;

	Reg own = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", first, imm(c->inputs)), first);
	own = op2(e, REG_R, "min.u32", own, imm(16 * h->block_input_tiles));
	bytes = mul(e, op2(e, REG_R, "sub.u32", imm(c->inputs), own), 4);
	if (c->input_panel->bias != NO_BIAS) {
		Reg before = op2(e, REG_R, "sub.u32", imm(c->inputs), first);
		bytes =
			add(e, bytes, op3(e, REG_R, "selp.u32", imm(0), imm(8), less(e, before, imm(16 * h->block_input_tiles))));
	}
	return op3(e, REG_R, "selp.u32", mul(e, bytes, 4 * h->col_tiles), imm(0), c->reg.has_columns);
}

void bf16_input_w_wait(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t first = unless_begin(e, same(e, c->reg.update, imm(0)));

	bar_wait(c, bar_address(c, BAR_INPUT_W), op2(e, REG_R, "xor.b32", c->reg.parity, imm(1)));
	if_end(e, first);
}

static void stores_expect(Columns *c, Reg new_weights)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t other = if_begin(e, same(e, k->tid, imm(c->workers - 1)));
	uint32_t hidden = (uint32_t)ceil_div(c->hidden, 8);
	Reg before = mul(e, h->group, h->col_tiles), own;

	own = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", before, imm(hidden)), before);
	own = op2(e, REG_R, "min.u32", own, imm(h->col_tiles));
	Reg rows = op2(e, REG_R, "and.b32", add(e, k->my_rows, imm(15)), imm(~15u)); /* in whole tiles */
	bar_expect(c, BAR_ACT, add(e, mul(e, rows, hidden * 32), new_weights));
	bar_expect(c, BAR_INPUT_W, h->shares > 1 ? input_w_bytes(c) : imm(0));
	for (uint32_t i = 0; i < h->tile_warps; i++) {
		Reg some = whole_slices(e, rows_in(c, imm(i * (c->rows / h->tile_warps)), c->rows / h->tile_warps));
		Reg bytes = op2(e, REG_R, "mul.lo.u32", mul(e, some, 16), own);
		bar_expect(c, BAR_HIDDEN + i, h->tile_warps > 1 ? add(e, bytes, imm(4)) : bytes);
	}
	ins(e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], 4", alternate_bar(c, BAR_GO));
	if_end(e, other);
}

/* Warps without rows transpose inputs, and form slice sums of the output gradient when deltas are there. At
 * NAMED_OUTPUTS and NAMED_TRANSPOSED all have what they need of each other, and the cases of the next update; the
 * prefetching warp has read GO by then, which is used again two updates later, after OUTPUTS of the next one. */
static void row_warps_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t others = c->warps - c->pass_warps, end = label(e);
	bool two = c->bf16->tile_warps > 1;

	if (!others)
		bf16_transpose_inputs(c);
	uint32_t other = if_begin(e, less(e, c->reg.warp, imm(c->pass_warps)));
	bar_wait(c, bar_address(c, BAR_ACT), c->reg.parity);
	spent(k, SPENT_KINDS + 3);
	bf16_rows_pass(c);
	spent(k, SPENT_KINDS + 5);
	if (others)
		warps_sync(c, imm(NAMED_TRANSPOSED), c->warps + 1);
	if (two)
		bf16_input_second(c);
	ins(e, "bra L#", end);
	if_end(e, other);
	if (others) {
		bf16_transpose_inputs(c);
		warps_arrive(c, imm(NAMED_TRANSPOSED), c->warps + 1);
		if (two)
			warps_sync(c, imm(NAMED_WORDS), others);
		const struct InputTiles *x = two ? bf16_input_begin(c, 0) : NULL;
		warps_sync(c, imm(NAMED_OUTPUTS), c->warps + 1);
		bf16_slice_sums(c, c->pass_warps, others);
		if (two)
			bf16_input_first(c, x);
	}
	label_here(e, end);
	if (!others) {
		warps_sync(c, imm(NAMED_OUTPUTS), c->warps + 1);
		bf16_slice_sums(c, 0, c->warps);
		warps_sync(c, imm(NAMED_TRANSPOSED), c->warps + 1);
	}
	if (!two)
		bf16_input_weights(c);
	spent(k, SPENT_KINDS + 6);
}

void bf16_workers(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg sent = op1(e, REG_R, "mov.u32", imm(0));

	UpdateLoop l = updates_begin(c);
	update_begin(c);
	bf16_hidden(c);
	stores_expect(c, sent);
	spent(k, SPENT_KINDS + 2);
	row_warps_emit(c);
	spent(k, SPENT_KINDS + 11);
	warps_arrive(c, imm(NAMED_END), c->warps + 2);
	ins(e, "mov.u32 $, #", sent, c->bf16->output_w_bytes);
	updates_end(c, &l);
	spent(k, SPENT_GRADIENT);
	/* drain: weights of the last update are still being sent */
	registers_derive(c);
	bf16_input_w_wait(c);
	uint32_t other = if_begin(e, same(e, k->tid, imm(c->workers - 1)));
	bar_expect(c, BAR_ACT, imm(c->bf16->output_w_bytes));
	if_end(e, other);
	bar_wait(c, bar_address(c, BAR_ACT), c->reg.parity);
}
