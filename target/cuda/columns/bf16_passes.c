/* SPDX-License-Identifier: MIT */
/* Forward and backward passes, bf16. In: inputs (bits) and targets of the update, bf16 weights. Out: activations in the
 * block of the row, deltas of outputs, deltas of hidden units in the blocks of the column. Must hold: a sum begins with
 * its initial value and adds sources in steps of 16, in order. */
#include "columns.h"
#include "units.h"

enum { AHEAD = 4 }; /* steps of 16 sources whose loads are in flight together */
enum { SLICE = 32 };
enum { NAMED_TILES = 8 }; /* first of the named barriers of warps that share a tile of rows */

enum { ACT_TILE = 512 }; /* bytes of a fragment of 16 rows by 8 columns: a quad per lane */

static uint32_t act_across(const Columns *c) { return (uint32_t)round_up(c->hidden, 16) / 8; }

static uint32_t hidden_tiles(const Columns *c) { return (uint32_t)ceil_div(c->hidden, 8); }

/* ---- hidden units ---- */

static void pair_load(Emit *e, Reg v[2], Reg at, uint32_t offset)
{
	v[0] = reg(e, REG_F);
	v[1] = reg(e, REG_F);
	ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", v[0], v[1], at, offset);
}

/* Fragments of 16 rows from `row` on: `steps` steps of 16 inputs. */
static void rows_fragments(Columns *c, Reg row, uint32_t first, uint32_t steps, Reg (*f)[4])
{
	Kernel *k = c->k;
	Reg at = bits_row_at(update_kernel(c), c->bf16->input, row);

	for (uint32_t step = 0; step < steps; step += 2) {
		Reg word[2];
		for (uint32_t r = 0; r < 2; r++)
			word[r] = load(k->e, REG_R, "ld.shared.u32", at, 8 * r * k->bf16->bits_row + 2 * (first + step));
		bits_fragments(k, word, 2, f + step);
	}
}

static void hidden_start(Columns *c, Reg (*sum)[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg at = mad(e, k->bf16->col_of_lane, 4, k->memory);

	for (uint32_t j = 0; j < c->bf16->col_tiles; j++) {
		Reg start[2];
		pair_load(e, start, at, c->bf16->smem.hidden_start + 32 * j);
		for (uint32_t i = 0; i < 4; i++)
			sum[j][i] = op1(e, REG_F, "mov.f32", start[i % 2]);
	}
}

/* Net inputs of 16 rows from `row` on. waits: for input weights, after fragments of the first steps are made. */
static void hidden_sums(Columns *c, Reg row, bool waits, Reg (*sum)[4])
{
	enum { AT_ONCE = 14, LOADS = 4 }; /* steps; loads in flight */
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg b = add(e, mad(e, c->reg.lane, h->smem.input_w_row, k->memory), imm(h->smem.input_w)), f[AT_ONCE][4];
	Reg w[AT_ONCE / 2 * MAX_COLUMNS / 8][4];
	uint32_t steps = (uint32_t)ceil_div(c->inputs, 16);

	for (uint32_t first = 0; first < steps; first += AT_ONCE) {
		uint32_t some = min_u32(AT_ONCE, steps - first), loads = (some + 1) / 2 * h->col_tiles;
		rows_fragments(c, row, first, some, f);
		if (!first) {
			if (waits)
				bf16_input_w_wait(c);
			hidden_start(c, sum);
		}
		for (uint32_t n = 0; n < loads + LOADS; n++) {
			uint32_t m = n - LOADS, step = m / h->col_tiles * 2, j = m % h->col_tiles;
			if (n < loads)
				fragments_load(k, w[n], 4, true, b,
				               16 * (first + n / h->col_tiles * 2) * h->smem.input_w_row + 16 * (n % h->col_tiles));
			for (uint32_t s = 0; n >= LOADS && s < 2 && step + s < some; s++)
				multiply_add(e, sum[j], f[step + s], w[m] + 2 * s, NULL);
		}
	}
}

/* Sends activations of column tile j, 16 rows from `row` on, to the block of the rows. */
static void hidden_send(Columns *c, Reg row, uint32_t j, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg owner = divide(e, row, k->block_rows), within = modulo(e, row, k->block_rows, owner);
	Reg tile = mad(e, h->group, h->col_tiles, imm(j)), at = mad(e, divide(e, within, 16), act_across(c), tile);
	Reg to = add(e, mad(e, at, ACT_TILE, mad(e, c->reg.lane, 16, k->memory)), imm(h->smem.act));

	for (uint32_t i = 0; i < 4; i++)
		sum[i] = unit_value(e, c->step.hidden->fn, sum[i]);
	quad_send(c, h->col_tiles > 1 ? less(e, tile, imm(hidden_tiles(c))) : imm(1), cluster_address(c, owner, to), 0, sum,
	          cluster_address(c, owner, bar_address(c, BAR_ACT)));
}

static void hidden_tile(Columns *c, Reg row)
{
	const Bf16Columns *h = c->bf16;
	Reg sum[MAX_COLUMNS / 8][4];

	hidden_sums(c, row, h->once, sum);
	for (uint32_t j = 0; j < h->col_tiles; j++)
		hidden_send(c, row, j, sum[j]);
}

/* Blocks with the same columns alternate over tiles of rows. All warps wait for input weights, so that none of the
 * block is still in the update before. */
void bf16_hidden(Columns *c)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	Reg first = mul(e, mad(e, c->reg.warp, h->shares, h->share), 16);
	Reg is = op2(e, REG_P, "and.pred", c->reg.has_columns, less(e, first, c->reg.rows));
	uint32_t end = label(e);

	remark(e, "activations of %u columns in %u blocks, bf16", c->block_cols, h->shares);
	if (!h->once)
		bf16_input_w_wait(c);
	uint32_t none = if_begin(e, is);
	if (h->once) {
		hidden_tile(c, first);
		ins(e, "bra L#", end);
	} else {
		Loop l = loop_begin(e, first, c->reg.rows, c->warps * h->shares * 16);
		hidden_tile(c, l.i);
		loop_end(e, &l);
	}
	if_end(e, none);
	if (h->once)
		bf16_input_w_wait(c);
	label_here(e, end);
}

/* Transposes the block's inputs, of all rows: squares of 32 by 32 bits. A warp has two at a time: instruction-level
 * parallelism. */
void bf16_transpose_inputs(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t first = c->pass_warps < c->warps ? c->pass_warps : 0, warps = c->warps - first;
	uint32_t words = h->block_input_tiles / 2 + 1, squares = h->slices * words;
	uint32_t at_once = min_u32(SQUARES_AT_ONCE, (uint32_t)ceil_div(squares, warps));
	Reg row = bit_column(e, c->reg.lane), x[SQUARES_AT_ONCE], is[SQUARES_AT_ONCE], to[SQUARES_AT_ONCE];
	Reg first_word = add(e, divide(e, bf16_first_tile(c), 2), imm(h->input->word));

	remark(e, "words of inputs");
	uint32_t none = if_begin(e, c->reg.has_columns);
	Loop l = loop_begin(e, op2(e, REG_R, "sub.u32", c->reg.warp, imm(first)), imm(squares), warps * at_once);
	for (uint32_t i = 0; i < at_once; i++) {
		Reg number = add(e, l.i, imm(i * warps)), slice = divide(e, number, words);
		Reg word = add(e, first_word, modulo(e, number, words, slice));
		Reg from = mad(e, mad(e, slice, SLICE, row), k->bf16->bits_row, mad(e, word, 4, c->reg.cases));
		to[i] = mad(e, slice, k->bf16->transposed_row, mad(e, word, 128, mad(e, row, 4, k->memory)));
		is[i] = less(e, word, imm(k->s->job->data.bits_row));
		is[i] = op2(e, REG_P, "and.pred", is[i], less(e, number, imm(squares)));
		x[i] = op1(e, REG_R, "mov.u32", imm(0));
		ins(e, "@$ ld.shared.u32 $, [$+#]", is[i], x[i], from, k->bf16->at_bits);
	}
	squares_transpose(k, x, at_once);
	for (uint32_t i = 0; i < at_once; i++)
		ins(e, "@$ st.shared.u32 [$+#], $", is[i], to[i], k->bf16->at_transposed, x[i]);
	loop_end(e, &l);
	if_end(e, none);
}

/* ---- rows of the block ---- */

/* A warp has 16 rows and some column tiles of each product. */
typedef struct RowTile {
	Reg tile;    /* of rows, in the block */
	Reg side;    /* which of the warps that share it */
	Reg base;    /* first row of the tile, in the block */
	Reg row;     /* first row of the lane; it also has the one 8 further */
	Reg real[2]; /* P: these rows are of the batch, not padding */
	Reg act;     /* address: fp32 fragments of the lane */
	Reg act_h;   /* address: bf16 activations, the lane's first pair */
	Reg to;      /* address: output weights of this update */
} RowTile;

/* Column tiles of a product that a warp has. */
typedef struct Side {
	Reg first; /* tile */
	Reg col;   /* first column of the lane */
	uint32_t tiles;
} Side;

static Side side_of(Columns *c, const RowTile *x, uint32_t cols)
{
	Emit *e = c->k->e;
	Side s = { .tiles = (uint32_t)ceil_div(ceil_div(cols, 8), c->bf16->row_warps) };

	s.first = mul(e, x->side, s.tiles);
	s.col = mad(e, s.first, 8, c->k->bf16->col_of_lane);
	return s;
}

static RowTile row_tile(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	RowTile x = { .tile = divide(e, c->reg.warp, h->row_warps) };

	x.side = modulo(e, c->reg.warp, h->row_warps, x.tile);
	x.base = mul(e, x.tile, 16);
	x.row = add(e, x.base, k->bf16->row_of_lane);
	for (uint32_t r = 0; r < 2; r++)
		x.real[r] = less(e, add(e, x.row, imm(8 * r)), k->my_rows);
	x.act = add(e, mad(e, x.tile, act_across(c) * ACT_TILE, mad(e, c->reg.lane, 16, k->memory)), imm(h->smem.act));
	x.act_h = add(e, mad(e, x.row, h->smem.act_row, mad(e, k->bf16->col_of_lane, 2, k->memory)), imm(h->smem.act_bf16));
	x.to = add(e, mad(e, c->reg.parity, h->smem.output_w_size, k->memory), imm(h->smem.output_w));
	return x;
}

/* The lane's fragment of 8 columns: pairs of two rows. */
static void act_load(Columns *c, Reg at, uint32_t tile, Reg v[2][2])
{
	Reg q[4];

	load_quad(c->k->e, "shared", q, at, tile * ACT_TILE);
	for (uint32_t i = 0; i < 4; i++)
		v[i / 2][i % 2] = q[i];
}

/* bf16 activations, for the gradient: the warps of the tile store some steps each, without branches. */
static void acts_store(Columns *c, const RowTile *x, Reg (*f)[4])
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t steps = (uint32_t)ceil_div(c->hidden, 16);
	Reg own = mad(e, x->side, 16, c->k->bf16->col_of_lane), at = mad(e, x->side, 32, x->act_h), is[4];

	for (uint32_t s = 1; s < h->row_warps; s++)
		is[s] = same(e, x->side, imm(s));
	for (uint32_t first = 0; first < steps; first += h->row_warps)
		for (uint32_t i = 0; i < 4; i++) {
			uint32_t col = 16 * first + i / 2 * 8, offset = 8 * (i % 2) * h->smem.act_row + 2 * col;
			Reg v = f[first][i];
			for (uint32_t s = 1; s < h->row_warps && first + s < steps; s++)
				v = op3(e, REG_R, "selp.u32", f[first + s][i], v, is[s]);
			if (16 * (h->row_warps - 1) + col + 8 <= c->hidden)
				ins(e, "st.shared.u32 [$+#], $", at, offset, v);
			else
				ins(e, "@$ st.shared.u32 [$+#], $", less(e, own, imm(c->hidden > col ? c->hidden - col : 0)), at,
				    offset, v);
		}
}

/* Fragments of output weights, which are contiguous for an output: of some steps, for pairs of column tiles. by_depth:
 * for the backward pass. */
typedef Reg OutputWeights[AHEAD][TILES_WIDE / 2][4];

static void output_w_load(Columns *c, const RowTile *x, const Side *side, bool by_depth, uint32_t first, uint32_t steps,
                          OutputWeights w)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t across = c->bf16->smem.output_w_tile, tile = by_depth ? across : 8 * 16;
	Reg col = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->reg.lane, imm(by_depth ? 4 : 3)), imm(1));
	Reg row = by_depth ? op2(e, REG_R, "and.b32", c->reg.lane, imm(15))
	                   : mad(e, op2(e, REG_R, "shr.u32", c->reg.lane, imm(4)), 8,
	                         op2(e, REG_R, "and.b32", c->reg.lane, imm(7)));
	Reg at = mad(e, side->first, tile, mad(e, col, across, mad(e, row, 16, x->to)));

	for (uint32_t step = 0; step < steps; step++)
		for (uint32_t j = 0; j < side->tiles; j += 2)
			fragments_load(k, w[step][j / 2], 2 * min_u32(2, side->tiles - j), by_depth, at,
			               (first + step) * (by_depth ? 16 * 16 : 2 * across) + j * tile);
}

static void step_multiply(Emit *e, const Side *side, const Reg f[4], Reg (*w)[4], Reg (*sum)[4])
{
	for (uint32_t j = 0; j < side->tiles; j++)
		multiply_add(e, sum[j], f, w[j / 2] + 2 * (j % 2), NULL);
}

/* Net inputs of outputs. f: fragments of activations, which are returned */
static void outputs_sums(Columns *c, const RowTile *x, const Side *side, Reg (*f)[4], Reg (*sum)[4])
{
	Emit *e = c->k->e;
	uint32_t steps = (uint32_t)ceil_div(c->hidden, 16);

	for (uint32_t j = 0; j < side->tiles; j++) {
		Reg start[2] = { imm_f(0), imm_f(0) };
		if (c->output_panel->bias != NO_BIAS)
			pair_load(e, start, mad(e, side->col, 4, x->to), c->bf16->smem.output_start + 32 * j);
		for (uint32_t i = 0; i < 4; i++)
			sum[j][i] = op1(e, REG_F, "mov.f32", start[i % 2]);
	}
	for (uint32_t first = 0; first < steps; first += AHEAD) {
		uint32_t some = min_u32(AHEAD, steps - first);
		Reg v[AHEAD][4][2];
		OutputWeights w;
		for (uint32_t i = 0; i < 2 * some; i++)
			act_load(c, x->act, 2 * first + i, v[i / 2] + 2 * (i % 2));
		output_w_load(c, x, side, false, first, some, w);
		for (uint32_t i = 0; i < 4 * some; i++)
			f[first + i / 4][i % 4] = bf16_pair(e, v[i / 4][i % 4][0], v[i / 4][i % 4][1]);
		for (uint32_t i = 0; i < some; i++)
			step_multiply(e, side, f[first + i], w[i], sum);
	}
}

/* Epilogue. In: net inputs. Out: deltas of outputs, in shared memory. */
static void outputs_end(Columns *c, const RowTile *x, const Side *side, Sums *sums)
{
	Kernel *k = c->k, *one = update_kernel(c);
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;

	for (uint32_t i = 0; i < 2 * side->tiles; i++) {
		uint32_t j = i / 2, r = i % 2;
		Reg *v = sums->sum[j] + 2 * r, col = add(e, side->col, imm(8 * j));
		bf16_outputs(one, c->step.outputs, c->step.errors, sums, r, j, x->real[r], v);
		Reg is = op2(e, REG_P, "and.pred", x->real[r], less(e, col, imm(c->outputs)));
		Reg pair = op3(e, REG_R, "selp.u32", bf16_pair(e, v[0], v[1]), imm(0), is);
		Reg at = mad(e, x->row, h->smem.delta_row, mad(e, side->col, 2, k->memory));
		ins(e, "st.shared.u32 [$+#], $", at, h->smem.delta_bf16 + 8 * r * h->smem.delta_row + 16 * j, pair);
	}
}

/* ---- deltas of hidden units ---- */

/* Operands of the backward pass that are loaded before deltas of outputs are there. */
typedef struct Back {
	Side side;
	Reg slope[TILES_WIDE][4];
	bool ahead; /* also the weights: they are few */
	OutputWeights w;
} Back;

static void back_load(Columns *c, const RowTile *x, Back *b)
{
	Emit *e = c->k->e;
	const DeviceStep *s = c->step.back;
	uint32_t steps = (uint32_t)ceil_div(c->outputs, 16);

	b->side = side_of(c, x, c->hidden);
	Reg at = mad(e, b->side.first, ACT_TILE, x->act);
	for (uint32_t j = 0; j < b->side.tiles; j++) {
		Reg o[2][2];
		act_load(c, at, j, o);
		for (uint32_t i = 0; i < 4; i++)
			b->slope[j][i] = slope_offset(e, s, unit_slope(e, s->fn, o[i / 2][i % 2], o[i / 2][i % 2]));
	}
	b->ahead = steps <= AHEAD && steps * b->side.tiles <= AHEAD;
	if (b->ahead)
		output_w_load(c, x, &b->side, true, 0, steps, b->w);
}

/* The HIDDEN barrier of a row: two warps divide the slices, each waits for its half. */
static Reg hidden_bar(Columns *c, Reg row)
{
	Emit *e = c->k->e;
	Reg bar = bar_address(c, BAR_HIDDEN);

	if (c->bf16->tile_warps == 1)
		return bar;
	return op3(e, REG_R, "selp.u32", bar, bar_address(c, BAR_HIDDEN + 1), less(e, row, imm(c->rows / 2)));
}

/* Sends the deltas of a tile, a pair of columns for each of two rows, to the blocks of their columns. */
static void hidden_back(Columns *c, const RowTile *x, Reg first, uint32_t side_tiles, uint32_t j, const Reg pair[2])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg col = mad(e, first, 8, add(e, k->bf16->col_of_lane, imm(8 * j))), is = imm(1);

	if (side_tiles * h->row_warps > hidden_tiles(c))
		is = less(e, add(e, first, imm(j)), imm(hidden_tiles(c)));
	Reg group = divide(e, col, c->block_cols), own = modulo(e, col, c->block_cols, group),
		tile = add(e, k->row0, x->base);
	Reg row = add(e, tile, k->bf16->row_of_lane), bar = hidden_bar(c, tile);
	Reg to = add(e, mad(e, row, h->smem.hidden_delta_row, mad(e, own, 2, k->memory)), imm(h->smem.hidden_delta));

	for (uint32_t i = 0; i < h->shares; i++) {
		Reg rank = mad(e, group, h->shares, imm(i)), there = cluster_address(c, rank, to),
			told = cluster_address(c, rank, bar);
		for (uint32_t r = 0; r < 2; r++)
			words_send(c, is, there, 8 * r * h->smem.hidden_delta_row, pair + r, 1, told);
	}
}

static void back_pass(Columns *c, const RowTile *x, Back *b)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t steps = (uint32_t)ceil_div(c->outputs, 16);
	Reg sum[TILES_WIDE][4], at = add(e, mad(e, x->base, h->smem.delta_row, k->memory), imm(h->smem.delta_bf16));

	at = add(e, at, ldmatrix_offset(k, h->smem.delta_row, false));
	for (uint32_t i = 0; i < 4 * b->side.tiles; i++)
		sum[i / 4][i % 4] = op1(e, REG_F, "mov.f32", imm_f(0));
	for (uint32_t step = 0; step < steps; step++) {
		Reg f[4];
		fragments_load(k, f, 4, false, at, 32 * step);
		if (!b->ahead)
			output_w_load(c, x, &b->side, true, step, 1, b->w);
		step_multiply(e, &b->side, f, b->w[b->ahead ? step : 0], sum);
	}
	for (uint32_t j = 0; j < b->side.tiles; j++) {
		Reg pair[2], v[4];
		for (uint32_t i = 0; i < 4; i++)
			v[i] = op2(e, REG_F, "mul.rn.ftz.f32", sum[j][i], b->slope[j][i]);
		for (uint32_t r = 0; r < 2; r++)
			pair[r] = op3(e, REG_R, "selp.u32", bf16_pair(e, v[2 * r], v[2 * r + 1]), imm(0), x->real[r]);
		hidden_back(c, x, b->side.first, b->side.tiles, j, pair);
	}
}

/* A tile of a slice without rows: its deltas of outputs are 0, for the gradient; nothing is sent. */
static void rows_none(Columns *c, const RowTile *x)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Side side = side_of(c, x, c->outputs);
	Reg at = mad(e, x->row, h->smem.delta_row, mad(e, side.col, 2, k->memory));

	for (uint32_t i = 0; i < 2 * side.tiles; i++)
		ins(e, "st.shared.u32 [$+#], 0", at, h->smem.delta_bf16 + 8 * (i % 2) * h->smem.delta_row + 16 * (i / 2));
}

void bf16_rows_pass(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	RowTile x = row_tile(c);
	uint32_t others = c->warps - c->pass_warps, past = label(e), end = label(e);
	Reg slice = op2(e, REG_R, "and.b32", x.base, imm(~31u)), any = less(e, slice, k->my_rows), f[STEPS_KNOWN][4];
	Side side = side_of(c, &x, c->outputs);
	Sums sums = { .row = x.row, .col = side.col, .has_targets = k->bf16->y_bits };
	Back *b = NEW(&k->s->cx->scratch, 1, Back);

	remark(e, "outputs and deltas: %u warps have 16 rows", c->bf16->row_warps);
	ins(e, "@!$ bra L#", any, past);
	outputs_sums(c, &x, &side, f, sums.sum);
	for (uint32_t r = 0; r < 2 && sums.has_targets; r++)
		sums.target[r] = bf16_target_word(update_kernel(c), &sums, r);
	back_load(c, &x, b);
	acts_store(c, &x, f);
	outputs_end(c, &x, &side, &sums);
	if (c->bf16->row_warps > 1)
		warps_sync(c, add(e, x.tile, imm(NAMED_TILES)), c->bf16->row_warps);
	else
		ins(e, "bar.warp.sync 0xffffffff");
	if (others)
		warps_arrive(c, imm(NAMED_OUTPUTS), c->warps + 1);
	spent(k, SPENT_KINDS + 4);
	back_pass(c, &x, b);
	ins(e, "bra L#", end);
	label_here(e, past);
	rows_none(c, &x);
	if (others)
		warps_arrive(c, imm(NAMED_OUTPUTS), c->warps + 1);
	label_here(e, end);
	bar_arrive_warp(c, alternate_bar(c, BAR_OUTPUTS));
}
