/* SPDX-License-Identifier: MIT */
/* Outputs against targets: errors, their slopes, verdicts. 16 lanes have a row: column n is that of lane n % 16, and
 * lanes are added as target cpu does: i and i + 8, then 4, 2, 1. */
#include "emit.h"
#include "kern.h"
#include "units.h"

enum { ROW_LANES = 16, KEPT_COLUMNS = 64 };

/* for all rows of the block: all threads take part in every turn, since lanes exchange values */
typedef struct RowLanes {
	Loop loop;
	Reg lane, row, base, at; /* base, at: addresses of columns 0 and `lane` of the row */
	Reg y;                   /* address of its first target */
	Reg is_row, is_first;
} RowLanes;

/* first, threads: that take part. */
static RowLanes lanes_begin(Kernel *k, uint32_t first, uint32_t threads)
{
	Emit *e = k->e;
	uint32_t at_once = threads / ROW_LANES;
	Reg number = first ? op2(e, REG_R, "sub.u32", k->tid, imm(first)) : k->tid;
	RowLanes l = { .lane = op2(e, REG_R, "and.b32", k->tid, imm(ROW_LANES - 1)) };

	Reg group = op2(e, REG_R, "shr.u32", number, imm(4));
	if (k->s->general) {
		l.loop = loop_begin(e, imm(0), k->my_rows, at_once);
		l.row = add(e, l.loop.i, group);
	} else {
		l.loop = loop_count(e, (uint32_t)ceil_div(k->block_rows, at_once));
		l.row = mad(e, l.loop.i, at_once, group);
	}
	l.is_row = less(e, l.row, k->my_rows);
	l.row = op3(e, REG_R, "selp.u32", l.row, imm(0), l.is_row);
	if (k->s->general) {
		l.row = row_number(k, l.row);
		l.base = row_address(k, l.row);
		l.y = k->s->job->data.targets ? target_address(k, l.row) : l.base;
	} else {
		l.base = add(e, mad(e, l.row, k->row, k->memory), imm(k->at_rows));
		l.y = add(e, mad(e, l.row, k->target_row, k->memory), imm(k->at_targets));
	}
	l.at = address_add(e, l.base, mul(e, l.lane, 4));
	l.is_first = op2(e, REG_P, "and.pred", l.is_row, same(e, l.lane, imm(0)));
	return l;
}

static Reg lanes_sum(Emit *e, Reg x)
{
	for (uint32_t n = ROW_LANES / 2; n; n /= 2)
		x = op2(e, REG_F, "add.rn.ftz.f32", x, lanes_xor(e, x, n));
	return x;
}

/* for each 16 columns of a row: written out in full if they are few */
typedef struct ColumnBlocks {
	Reg offset, has; /* bytes from column `lane` on; has the lane a column? */
	uint32_t n, cols;
	bool looped;
	Loop loop;
} ColumnBlocks;
enum { BLOCKS_UNROLLED = 4 };

static bool blocks_next(Emit *e, const RowLanes *l, ColumnBlocks *b, uint32_t cols)
{
	if (b->looped)
		loop_end(e, &b->loop);
	if (b->n >= cols)
		return false;
	b->looped = cols > BLOCKS_UNROLLED * ROW_LANES;
	if (b->looped) {
		b->loop = loop_count(e, (uint32_t)ceil_div(cols, ROW_LANES));
		b->offset = mul(e, b->loop.i, ROW_LANES * 4);
		b->has = less(e, mad(e, b->loop.i, ROW_LANES, l->lane), imm(cols));
		b->n = cols;
		return true;
	}
	b->offset = imm(b->n * 4);
	b->has = less(e, l->lane, imm(min_u32(cols - b->n, ROW_LANES)));
	b->n += ROW_LANES;
	return true;
}

/* Lanes without a row read nothing: others may write there. */
static Reg row_load(Kernel *k, const RowLanes *l, Reg offset, uint32_t buf, uint32_t col)
{
	Reg at = address_add(k->e, l->at, offset), x = zero_float(k->e);

	ins(k->e, k->s->general ? "@$ ld.global.f32 $, [$+#]" : "@$ ld.shared.f32 $, [$+#]", l->is_row, x, at,
	    column_at(k, buf, col));
	return x;
}

/* has: of lanes that have a column */
static void row_store(Kernel *k, const RowLanes *l, const ColumnBlocks *b, uint32_t buf, uint32_t col, Reg value)
{
	Reg stores = op2(k->e, REG_P, "and.pred", b->has, l->is_row);

	if (k->bf16 && has_bf16(k, buf, col))
		bf16_store(k, l->row, add(k->e, l->lane, op2(k->e, REG_R, "shr.u32", b->offset, imm(2))), buf, col, value,
		           stores);
	if (!has_floats(k, buf, col))
		return;
	ins(k->e, row_space(k, "@$ st.shared.f32 [$+#], $"), stores, address_add(k->e, l->at, b->offset),
	    column_at(k, buf, col), value);
}

/* Output number n. row: address of column 0. */
static Reg output_load(Kernel *k, Reg row, Reg n)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	if (j->output_col)
		return load(e, REG_F, row_space(k, "ld.shared.f32"), address_add(e, row, mul(e, n, 4)),
		            column_at(k, BUF_ACT, j->output_col));
	if (!k->s->general)
		return load(e, REG_F, "ld.shared.f32",
		            add(e, row, load(e, REG_R, "ld.shared.u32", mad(e, n, 4, k->memory), k->at_outputs)), 0);
	Reg col = load(e, REG_R, "ld.global.nc.u32", place(e, POINTER(k, output), n, 4), 0);
	return load(e, REG_F, "ld.global.f32", place(e, row, col, 4), column_at(k, BUF_ACT, 0));
}

static Reg target_at(Kernel *k, const RowLanes *l, Reg offset, uint32_t first)
{
	Reg at = address_add(k->e, l->y, add(k->e, mul(k->e, l->lane, 4), offset));

	return load(k->e, REG_F, row_space(k, "ld.shared.f32"), at, 4 * first);
}

Reg is_number(Emit *e, Reg x) { return op2(e, REG_P, "setp.eq.ftz.f32", x, x); }

static Reg case_number(Kernel *k, const RowLanes *l)
{
	Reg number = reg(k->e, REG_R);

	case_load(k, number, add(k->e, k->row0, l->row), l->is_row);
	return number;
}

static Reg case_weight(Kernel *k, const RowLanes *l, float scale)
{
	if (!k->s->job->data.weight)
		return imm_f(scale);
	Reg weight = load(k->e, REG_F, "ld.global.nc.f32", place(k->e, POINTER(k, data.weight), case_number(k, l), 4), 0);
	return scale == 1 ? weight : op2(k->e, REG_F, "mul.rn.ftz.f32", imm_f(scale), weight);
}

static Reg times(Emit *e, Reg a, Reg b)
{
	return b.type == REG_FLOAT && b.n == imm_f(1).n ? a : op2(e, REG_F, "mul.rn.ftz.f32", a, b);
}

/* Lanes of this row whose predicate holds. */
static Reg lanes_where(Kernel *k, Reg p)
{
	Emit *e = k->e;
	Reg all = reg(e, REG_R), shift = op2(e, REG_R, "and.b32", k->tid, imm(16));

	ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", all, p);
	return op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", all, shift), imm(0xffff));
}

/* ---- errors ---- */

/* The error of the row: 0 and this, or what other outputs gave and this. */
static void row_error(Kernel *k, const DeviceStep *s, const RowLanes *l, Reg sum, Reg weight)
{
	Emit *e = k->e;
	uint32_t end = if_begin(e, l->is_first);
	Reg at = place(e, k->row_error, add(e, k->row0, l->row), 4);
	Reg value = s->error == ERR_SQUARED ? op2(e, REG_F, "mul.rn.ftz.f32", imm_f(0.5f), sum) : sum;
	Reg before = s->first ? imm_f(0) : load(e, REG_F, "ld.global.f32", at, 0);

	ins(e, "st.global.f32 [$], $", at, op2(e, REG_F, "add.rn.ftz.f32", before, times(e, value, weight)));
	if_end(e, end);
}

Reg zero_float(Emit *e) { return op1(e, REG_F, "mov.f32", imm_f(0)); }

/* Of a row: the sum of all targets; of a softmax group the largest net input, where it is, and what its output lacks of
 * 1; whether an output is so small that the error comes from net inputs alone. */
typedef struct TopRow {
	Reg total, largest, at, rest, far;
} TopRow;

static Reg row_largest(Kernel *k, const RowLanes *l, uint32_t buf, uint32_t col, uint32_t cols)
{
	Emit *e = k->e;
	Reg most = op1(e, REG_F, "mov.f32", imm_f(-__builtin_inff()));

	for (ColumnBlocks b = { 0 }; blocks_next(e, l, &b, cols);) {
		Reg x = row_load(k, l, b.offset, buf, col), more = op2(e, REG_P, "setp.gt.ftz.f32", x, most);
		ins(e, "@$ mov.f32 $, $", op2(e, REG_P, "and.pred", more, b.has), most, x);
	}
	for (uint32_t n = ROW_LANES / 2; n; n /= 2) {
		Reg x = lanes_xor(e, most, n);
		ins(e, "@$ mov.f32 $, $", op2(e, REG_P, "setp.gt.ftz.f32", x, most), most, x);
	}
	return most;
}

static bool from_softmax(const DeviceStep *s) { return s->fn == FN_SOFTMAX && s->known_net && s->error != ERR_SQUARED; }

static TopRow tops_emit(Kernel *k, const DeviceStep *s, const RowLanes *l)
{
	Emit *e = k->e;
	TopRow t = { .total = imm_f(0) };

	if (s->error == ERR_DIVERGENCE) {
		Reg sum = zero_float(e);
		for (ColumnBlocks b = { 0 }; blocks_next(e, l, &b, s->cols);) {
			Reg y = target_at(k, l, b.offset, s->y), known = op2(e, REG_P, "and.pred", b.has, is_number(e, y));
			ins(e, "add.rn.ftz.f32 $, $, $", sum, sum, op3(e, REG_F, "selp.f32", y, imm_f(0), known));
		}
		t.total = lanes_sum(e, sum);
	}
	if (!from_softmax(s))
		return t;
	t.largest = row_largest(k, l, BUF_NET, s->a_col, s->cols);
	t.at = op1(e, REG_R, "mov.u32", imm(UINT32_MAX));
	for (ColumnBlocks b = { 0 }; blocks_next(e, l, &b, s->cols);) { /* the first of equals */
		Reg is = op2(e, REG_P, "setp.eq.ftz.f32", row_load(k, l, b.offset, BUF_NET, s->a_col), t.largest);
		Reg n = add(e, l->lane, op2(e, REG_R, "shr.u32", b.offset, imm(2)));
		ins(e, "@$ min.u32 $, $, $", op2(e, REG_P, "and.pred", is, b.has), t.at, t.at, n);
	}
	for (uint32_t n = ROW_LANES / 2; n; n /= 2)
		ins(e, "min.u32 $, $, $", t.at, t.at, lanes_xor(e, t.at, n));
	Reg sum = zero_float(e), far = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));
	for (ColumnBlocks b = { 0 }; blocks_next(e, l, &b, s->cols);) {
		Reg net = row_load(k, l, b.offset, BUF_NET, s->a_col), out = row_load(k, l, b.offset, BUF_ACT, s->a_col);
		Reg o = softmax_part(e, out, net, t.largest), low = op2(e, REG_P, "setp.lt.ftz.f32", o, imm_f(least_output()));
		Reg n = add(e, l->lane, op2(e, REG_R, "shr.u32", b.offset, imm(2)));
		Reg other = op2(e, REG_P, "and.pred", b.has, op2(e, REG_P, "setp.ne.u32", n, t.at));
		ins(e, "or.pred $, $, $", far, far, op2(e, REG_P, "and.pred", low, b.has));
		ins(e, "@$ add.rn.ftz.f32 $, $, $", other, sum, sum, o);
	}
	t.rest = lanes_sum(e, sum);
	t.far = op2(e, REG_P, "setp.ne.u32", lanes_where(k, far), imm(0));
	return t;
}

/* Slopes of sigmoids are never -0, which 0 would change. */
Reg slope_offset(Emit *e, const DeviceStep *s, Reg slope)
{
	return s->offset == 0 && s->fn == FN_SIGMOID ? slope : op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(s->offset));
}

Reg output_delta(Emit *e, const DeviceStep *s, const ErrorOf *of, Reg known, Reg weight, Reg total)
{
	ErrorOf mine = *of;

	if (s->error == ERR_DIVERGENCE) /* all outputs of the row have a part in each target: also those without */
		mine.y = op3(e, REG_F, "selp.f32", of->y, imm_f(0), known);
	Reg back = times(e, error_slope(e, &mine, total), weight);
	if (s->error != ERR_DIVERGENCE && known.type == REG_P)
		back = op3(e, REG_F, "selp.f32", back, imm_f(0), known);
	if (!s->deltas)
		return back;
	Reg slope = slope_offset(e, s, unit_slope(e, s->fn, of->net, of->out));
	return op2(e, REG_F, "mul.rn.ftz.f32", back, slope);
}

/* Most targets are 0 or 1: a warp that has no others takes the short way. */
static Reg error_of(Emit *e, const ErrorOf *of, Reg known)
{
	Reg value = reg(e, REG_F), all = reg(e, REG_P);
	uint32_t other = label(e), end = label(e);

	if (of->error == ERR_SQUARED)
		return error_value(e, of);
	Reg binary = op2(e, REG_P, "setp.eq.ftz.f32", op2(e, REG_F, "mul.rn.ftz.f32", of->y, of->y), of->y);
	binary = op2(e, REG_P, "or.pred", binary, op1(e, REG_P, "not.pred", known));
	ins(e, "vote.sync.all.pred $, $, 0xffffffff", all, binary);
	ins(e, "@!$ bra L#", all, other);
	e->binary = true;
	ins(e, "mov.f32 $, $", value, error_value(e, of));
	e->binary = false;
	ins(e, "bra L#", end);
	label_here(e, other);
	ins(e, "mov.f32 $, $", value, error_value(e, of));
	label_here(e, end);
	return value;
}

void errors_emit(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	remark(e, "errors of %u outputs", s->cols);
	RowLanes l = lanes_begin(k, 0, k->s->threads);
	DeviceStep near = *s;
	if (s->near) {
		l.y = place_at(e, l.base, column_at(k, BUF_NEAR, s->a_col));
		near.y = 0;
		s = &near;
	}
	TopRow top = tops_emit(k, s, &l);
	Reg weight = case_weight(k, &l, s->scale), sum = zero_float(e);
	for (ColumnBlocks b = { 0 }; blocks_next(e, &l, &b, s->cols);) {
		ErrorOf of = { .fn = s->fn, .error = s->error, .known_net = s->known_net };
		of.y = target_at(k, &l, b.offset, s->y);
		of.out = row_load(k, &l, b.offset, BUF_ACT, s->a_col);
		of.net = s->known_net ? row_load(k, &l, b.offset, BUF_NET, s->a_col) : of.out;
		if (from_softmax(s)) {
			Reg n = add(e, l.lane, op2(e, REG_R, "shr.u32", b.offset, imm(2)));
			of.largest = top.largest;
			of.rest = top.rest;
			of.is_top = same(e, n, top.at);
		}
		Reg known = op2(e, REG_P, "and.pred", b.has, is_number(e, of.y));
		Reg value = op3(e, REG_F, "selp.f32", error_of(e, &of, known), imm_f(0), known);
		if (s->error == ERR_SQUARED)
			ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, value, value, sum);
		else
			ins(e, "add.rn.ftz.f32 $, $, $", sum, sum, value);
		if (s->c < BUFS)
			row_store(k, &l, &b, s->c, s->c_col, output_delta(e, s, &of, known, weight, top.total));
	}
	sum = op1(e, REG_F, "mov.f32", lanes_sum(e, sum));
	if (from_softmax(s)) {
		uint32_t end = if_begin(e, op2(e, REG_P, "and.pred", top.far, l.is_first));
		SoftmaxRow far = { s->cols, s->error, row_space(k, "ld.shared.f32"),
			               l.base,  l.y,      column_at(k, BUF_NET, s->a_col),
			               4 * s->y };
		ins(e, "mov.f32 $, $", sum, softmax_far(e, &far));
		if_end(e, end);
	}
	row_error(k, s, &l, sum, weight);
	loop_end(e, &l.loop);
}

void softmax_emit(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	remark(e, "softmax of %u columns", s->cols);
	RowLanes l = lanes_begin(k, 0, k->s->threads);
	Reg largest = row_largest(k, &l, s->a, s->a_col, s->cols), sum = zero_float(e);
	for (ColumnBlocks b = { 0 }; blocks_next(e, &l, &b, s->cols);) {
		Reg x = op2(e, REG_F, "sub.rn.ftz.f32", row_load(k, &l, b.offset, s->a, s->a_col), largest);
		Reg y = exp_value(e, x);
		ins(e, "@$ add.rn.ftz.f32 $, $, $", b.has, sum, sum, y);
		row_store(k, &l, &b, s->c, s->c_col, y);
	}
	Reg share = op2(e, REG_F, "div.rn.ftz.f32", imm_f(1), lanes_sum(e, sum));
	for (ColumnBlocks b = { 0 }; blocks_next(e, &l, &b, s->cols);)
		row_store(k, &l, &b, s->c, s->c_col,
		          op2(e, REG_F, "mul.rn.ftz.f32", row_load(k, &l, b.offset, s->c, s->c_col), share));
	loop_end(e, &l.loop);
}

void softmax_deltas_emit(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	remark(e, "softmax deltas of %u columns", s->cols);
	RowLanes l = lanes_begin(k, 0, k->s->threads);
	Reg sum = zero_float(e);
	for (ColumnBlocks b = { 0 }; blocks_next(e, &l, &b, s->cols);) {
		Reg o = row_load(k, &l, b.offset, s->a, s->c_col), x = row_load(k, &l, b.offset, s->c, s->c_col);
		ins(e, "@$ fma.rn.ftz.f32 $, $, $, $", b.has, sum, o, x, sum);
	}
	Reg mean = lanes_sum(e, sum);
	for (ColumnBlocks b = { 0 }; blocks_next(e, &l, &b, s->cols);) {
		Reg o = row_load(k, &l, b.offset, s->a, s->c_col), x = row_load(k, &l, b.offset, s->c, s->c_col);
		Reg delta = op2(e, REG_F, "mul.rn.ftz.f32", o, op2(e, REG_F, "sub.rn.ftz.f32", x, mean));
		row_store(k, &l, &b, s->c, s->c_col, delta);
	}
	loop_end(e, &l.loop);
}

/* ---- verdicts ---- */

/* Nothing compares to a NaN. */
Best best_begin(Emit *e)
{
	Best b = { reg(e, REG_F), reg(e, REG_R) };

	ins(e, "mov.f32 $, 0fFF800000", b.value);
	ins(e, "mov.u32 $, 0xffffffff", b.at);
	return b;
}

void best_of(Emit *e, const Best *b, Reg value, Reg at, Reg valid)
{
	Reg more = op2(e, REG_P, "setp.gt.ftz.f32", value, b->value);
	Reg equal = op2(e, REG_P, "setp.eq.ftz.f32", value, b->value), sooner = less(e, at, b->at);
	Reg better = op2(e, REG_P, "or.pred", more, op2(e, REG_P, "and.pred", equal, sooner));

	if (valid.type == REG_P)
		better = op2(e, REG_P, "and.pred", better, valid);
	ins(e, "@$ mov.f32 $, $", better, b->value, value);
	ins(e, "@$ mov.u32 $, $", better, b->at, at);
}

static void best_of_lanes(Emit *e, const Best *b)
{
	for (uint32_t n = ROW_LANES / 2; n; n /= 2) {
		Reg value = lanes_xor(e, b->value, n), at = lanes_xor(e, b->at, n);
		best_of(e, b, value, at, imm(0));
	}
}

Reg param_f(Kernel *k, size_t field)
{
	Reg f = reg(k->e, REG_F);

	ins(k->e, "ld.param.f32 $, [job+#]", f, (uint32_t)field);
	return f;
}

/* unit: rounding of the sums. */
double code_margin(const Job *j, double unit)
{
	double largest = j->data.code_largest, most = j->data.largest_output, square = most * most * j->outputs;

	return 4 * (j->outputs + 2.0) *
	       (unit * (largest + 2 * __builtin_sqrt(largest * square)) + 0x1p-53 * (largest + square));
}

/* Columns of the sums that a lane has: they stay in registers from row to row, if they are few. */
typedef struct CodeLanes {
	uint32_t sums; /* of a lane */
	bool kept;
	Reg start[8], column[KEPT_COLUMNS];
} CodeLanes;

static CodeLanes codes_begin(Kernel *k)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;
	uint32_t all = d->part_count[0] + d->part_count[1], longest = k->s->code_longest;
	CodeLanes c = { .sums = (uint32_t)ceil_div(all, ROW_LANES) };
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(ROW_LANES - 1));

	c.kept = c.sums <= COUNT(c.start) && c.sums * longest <= KEPT_COLUMNS;
	for (uint32_t i = 0; i < c.sums && c.kept; i++) {
		Reg number = op2(e, REG_R, "min.u32", add(e, lane, imm(i * ROW_LANES)), imm(all - 1));
		Reg start = load(e, REG_G, "ld.shared.f64", mad(e, number, 8, k->memory), k->at_codes);
		c.start[i] = op1(e, REG_F, "cvt.rn.f32.f64", start);
		for (uint32_t n = 0; n < longest; n++)
			c.column[i * longest + n] =
				load(e, REG_R, "ld.shared.u32", mad(e, number, longest * 4, k->memory), k->at_elements + 4 * n);
	}
	return c;
}

/* The same sums in single precision tell of most rows whether a word is nearer than the target's own. */
typedef struct CodeGuess {
	Reg wrong, doubtful;
} CodeGuess;

static Reg float_of_lane(Emit *e, const Reg *sum, uint32_t sums, Reg number)
{
	Reg mine = sum[0], turn = op2(e, REG_R, "shr.u32", number, imm(4)), bits = reg(e, REG_R);

	for (uint32_t i = 1; i < sums; i++)
		mine = op3(e, REG_F, "selp.f32", sum[i], mine, same(e, turn, imm(i)));
	ins(e, "shfl.sync.idx.b32 $, $, $, 0x101f, 0xffffffff", bits, op1(e, REG_R, "mov.b32", mine), number);
	return op1(e, REG_F, "mov.b32", bits);
}

static CodeGuess codes_guess(Kernel *k, const CodeLanes *c, Reg row, Reg lane, const Reg number[2], uint32_t out)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	uint32_t first = s->job->data.part_count[0], all = first + s->job->data.part_count[1];
	float margin = (float)code_margin(s->job, 0x1p-24);
	Reg sum[8] = { { 0, 0 } }, mine[2];
	CodeGuess guess = { op2(e, REG_P, "setp.ne.u32", imm(0), imm(0)), op2(e, REG_P, "setp.ne.u32", imm(0), imm(0)) };

	for (uint32_t i = 0; i < c->sums; i++) {
		Reg x = imm_f(0);
		for (uint32_t n = 0; n < s->code_longest; n++) {
			Reg column = c->column[i * s->code_longest + n],
				o = load(e, REG_F, row_space(k, "ld.shared.f32"), address_add(e, row, column), out);
			x = op2(e, REG_F, "add.rn.ftz.f32", x, o);
		}
		sum[i] = op3(e, REG_F, "fma.rn.ftz.f32", imm_f(s->code_twice), x, c->start[i]);
	}
	mine[0] = mine[1] = float_of_lane(e, sum, c->sums, number[0]);
	if (number[1].type == REG_R)
		mine[1] = float_of_lane(e, sum, c->sums, number[1]);
	for (uint32_t i = 0; i < c->sums; i++) {
		Reg n = add(e, lane, imm(i * ROW_LANES)), second = op2(e, REG_P, "setp.ge.u32", n, imm(first));
		Reg own = op3(e, REG_R, "selp.u32", number[1], number[0], second), base;
		base = op3(e, REG_F, "selp.f32", mine[1], mine[0], second);
		Reg other = op2(e, REG_P, "and.pred", op2(e, REG_P, "setp.ne.u32", n, own), less(e, n, imm(all)));
		Reg more = op2(e, REG_F, "sub.rn.ftz.f32", sum[i], base);
		Reg nearer = op2(e, REG_P, "setp.gt.ftz.f32", more, imm_f(margin));
		Reg open = op2(e, REG_P, "setp.geu.ftz.f32", more, imm_f(-margin));
		ins(e, "@$ or.pred $, $, $", other, guess.wrong, guess.wrong, nearer);
		ins(e, "@$ or.pred $, $, $", other, guess.doubtful, guess.doubtful, open);
	}
	return guess;
}

/* Sum number `number` of the code words, from the elements of its list: all have the same length. */
static Reg code_sum(Kernel *k, Reg number, Reg row, uint32_t out)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Reg sum = load(e, REG_G, "ld.shared.f64", mad(e, number, 8, k->memory), k->at_codes);
	Reg at = mad(e, number, s->code_longest * 4, k->memory);
	Reg twice = literal(e, (double)s->code_twice);

	for (uint32_t i = 0; i < s->code_longest; i++) {
		Reg column = load(e, REG_R, "ld.shared.u32", at, k->at_elements + 4 * i);
		Reg o = op1(e, REG_G, "cvt.f64.f32",
		            load(e, REG_F, row_space(k, "ld.shared.f32"), address_add(e, row, column), out));
		sum = op3(e, REG_G, "fma.rn.f64", twice, o, sum); /* the product is exact */
	}
	return sum;
}

/* A sum that another lane of the row has: number n is that of lane n % 16. */
static Reg sum_of_lane(Emit *e, const Reg *sum, uint32_t sums, Reg number)
{
	Reg mine = sum[0], turn = op2(e, REG_R, "shr.u32", number, imm(4)), half[2] = { reg(e, REG_R), reg(e, REG_R) };

	for (uint32_t i = 1; i < sums; i++)
		mine = op3(e, REG_G, "selp.f64", sum[i], mine, same(e, turn, imm(i)));
	ins(e, "mov.b64 {$, $}, $", half[0], half[1], mine);
	for (int i = 0; i < 2; i++)
		ins(e, "shfl.sync.idx.b32 $, $, $, 0x101f, 0xffffffff", half[i], half[i], number);
	mine = reg(e, REG_G);
	ins(e, "mov.b64 $, {$, $}", mine, half[0], half[1]);
	return mine;
}

/* The word that the target of the row is. */
static Reg own_address(Kernel *k, const RowLanes *l)
{
	if (k->s->general)
		return place(k->e, POINTER(k, data.own), case_number(k, l), sizeof(CodeOwn));
	return add(k->e, mad(k->e, l->row, sizeof(CodeOwn), k->memory), imm(k->at_own));
}

static Reg own_load(Kernel *k, Reg own, size_t field)
{
	return load(k->e, REG_R, k->s->general ? "ld.global.nc.u32" : "ld.shared.u32", own, (uint32_t)field);
}

/* Squared distance of a row from word k over the outputs that have a target. */
static Reg code_reach(Kernel *k, Reg word, const RowLanes *l)
{
	Emit *e = k->e;
	uint32_t outputs = k->s->job->outputs;
	Reg at = place(e, POINTER(k, data.codes), word, outputs * 8), sum = literal(e, 0);
	Loop n = loop_count(e, outputs);
	Reg target = load(e, REG_F, row_space(k, "ld.shared.f32"), address_add(e, l->y, mul(e, n.i, 4)), 0);
	Reg o = op1(e, REG_G, "cvt.f64.f32", output_load(k, l->base, n.i));
	Reg d = op2(e, REG_G, "sub.rn.f64", load(e, REG_G, "ld.global.nc.f64", place(e, at, n.i, 8), 0), o);
	Reg square = op2(e, REG_G, "mul.rn.f64", d, d);
	ins(e, "@$ add.rn.f64 $, $, $", is_number(e, target), sum, sum, square);
	loop_end(e, &n);
	return sum;
}

/* Distances of all words, of rows where `measure` holds: is one nearer than the target's own? To is_wrong, lanes of the
 * row that found one. */
static void words_measure(Kernel *k, const RowLanes *l, Reg word, Reg measure, Reg is_wrong)
{
	Emit *e = k->e;
	uint32_t count = k->s->job->data.code_count;
	Reg any = reg(e, REG_P), farther = reg(e, REG_P);

	ins(e, "vote.sync.any.pred $, $, 0xffffffff", any, measure);
	uint32_t end = if_begin(e, any);
	Reg enough = code_reach(k, word, l);
	ins(e, "setp.neu.f64 $, $, $", farther, enough, enough);
	Loop words = loop_count(e, (uint32_t)ceil_div(count, ROW_LANES));
	Reg w = mad(e, words.i, ROW_LANES, l->lane), has = less(e, w, imm(count));
	w = op3(e, REG_R, "selp.u32", w, imm(0), has);
	Reg nearer = op2(e, REG_P, "setp.lt.f64", code_reach(k, w, l), enough);
	ins(e, "or.pred $, $, $", farther, farther, op2(e, REG_P, "and.pred", nearer, has));
	loop_end(e, &words);
	Reg measured = lanes_where(k, farther);
	ins(e, "@$ mov.u32 $, $", measure, is_wrong, measured);
	if_end(e, end);
}

/* Is no code word nearer than the target's own? Where sums do not tell, all distances are measured. Rows that are not
 * asked for answer anything. */
static Reg codes_measure(Kernel *k, const RowLanes *l, Reg asked, uint32_t out)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;
	uint32_t first = d->part_count[0], all = first + d->part_count[1];
	Reg own = own_address(k, l), word = own_load(k, own, offsetof(CodeOwn, word));
	Reg near = own_load(k, own, offsetof(CodeOwn, near)), mine[2];
	Reg number[2] = { own_load(k, own, offsetof(CodeOwn, number)), imm(UINT32_MAX) };
	Reg wrong = reg(e, REG_P), doubtful = op2(e, REG_P, "setp.ne.u32", near, imm(0)),
		margin = literal(e, code_margin(k->s->job, k->s->job->data.code_unit));
	Reg less_margin = op1(e, REG_G, "neg.f64", margin);

	uint32_t sums = (uint32_t)ceil_div(all, ROW_LANES);
	Reg row = l->base, *sum = NEW(&k->s->cx->scratch, sums, Reg);
	for (uint32_t i = 0; i < sums; i++)
		sum[i] = code_sum(k, op2(e, REG_R, "min.u32", add(e, l->lane, imm(i * ROW_LANES)), imm(all - 1)), row, out);
	mine[0] = mine[1] = sum_of_lane(e, sum, sums, number[0]);
	if (d->part_count[1]) {
		number[1] = add(e, own_load(k, own, offsetof(CodeOwn, number) + 4), imm(first));
		mine[1] = sum_of_lane(e, sum, sums, number[1]);
	}
	ins(e, "setp.ne.u32 $, 0, 0", wrong);
	for (uint32_t n = 0; n < all; n += ROW_LANES) {
		Reg i = add(e, l->lane, imm(n)), has = less(e, i, imm(all));
		Reg second = op2(e, REG_P, "setp.ge.u32", i, imm(first));
		Reg base = op3(e, REG_G, "selp.f64", mine[1], mine[0], second);
		Reg more = op2(e, REG_G, "sub.rn.f64", sum[n / ROW_LANES], base);
		Reg other = op2(e, REG_P, "setp.ne.u32", i, op3(e, REG_R, "selp.u32", number[1], number[0], second));
		other = op2(e, REG_P, "and.pred", other, has);
		Reg nearer = op2(e, REG_P, "setp.gt.f64", more, margin);
		Reg tells = op2(e, REG_P, "setp.lt.f64", more, less_margin);
		ins(e, "@$ or.pred $, $, $", other, wrong, wrong, nearer);
		ins(e, "@$ or.pred $, $, $", other, doubtful, doubtful, op1(e, REG_P, "not.pred", tells));
	}
	/* a target that is no word is measured whatever sums say */
	Reg is_near = op2(e, REG_P, "setp.ne.u32", near, imm(0)), is_wrong = reg(e, REG_R), is_doubtful;
	ins(e, "@$ setp.ne.u32 $, 0, 0", is_near, wrong);
	ins(e, "mov.u32 $, $", is_wrong, lanes_where(k, wrong));
	is_doubtful = lanes_where(k, doubtful);
	Reg measure = op2(e, REG_P, "setp.ne.u32", is_doubtful, imm(0));
	measure = op2(e, REG_P, "and.pred", measure, op2(e, REG_P, "setp.eq.u32", is_wrong, imm(0)));
	measure = op2(e, REG_P, "and.pred", measure, asked);
	words_measure(k, l, word, measure, is_wrong);
	return op2(e, REG_P, "setp.eq.u32", is_wrong, imm(0));
}

/* Without tables of sums all distances are measured. */
static Reg codes_general(Kernel *k, const RowLanes *l, Reg asked)
{
	Emit *e = k->e;
	Reg is_wrong = op1(e, REG_R, "mov.u32", imm(0));
	Reg word = own_load(k, own_address(k, l), offsetof(CodeOwn, word));

	words_measure(k, l, word, asked, is_wrong);
	return op2(e, REG_P, "setp.eq.u32", is_wrong, imm(0));
}

static Reg codes_right(Kernel *k, const CodeLanes *c, const RowLanes *l, Reg asked, uint32_t out)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;

	if (!k->has_codes)
		return codes_general(k, l, asked);
	if (!c->kept)
		return codes_measure(k, l, asked, out);
	Reg own = own_address(k, l), near = own_load(k, own, offsetof(CodeOwn, near)), row = l->base;
	Reg number[2] = { own_load(k, own, offsetof(CodeOwn, number)), imm(UINT32_MAX) };
	if (d->part_count[1])
		number[1] = add(e, own_load(k, own, offsetof(CodeOwn, number) + 4), imm(d->part_count[0]));
	CodeGuess g = codes_guess(k, c, row, l->lane, number, out);
	Reg wrong = lanes_where(k, g.wrong), right = op2(e, REG_P, "setp.eq.u32", wrong, imm(0)), any = reg(e, REG_P);
	Reg open = op2(e, REG_P, "setp.ne.u32", lanes_where(k, g.doubtful), imm(0));
	Reg is_near = op2(e, REG_P, "setp.ne.u32", near, imm(0));
	open = op2(e, REG_P, "or.pred", op2(e, REG_P, "and.pred", open, right), is_near);
	open = op2(e, REG_P, "and.pred", open, asked);
	ins(e, "vote.sync.any.pred $, $, 0xffffffff", any, open);
	uint32_t end = if_begin(e, any);
	Reg measured = codes_measure(k, l, open, out);
	ins(e, "@$ and.pred $, $, $", open, right, measured, measured);
	if_end(e, end);
	return right;
}

void scores_emit(Kernel *k, bool codes, uint32_t from, uint32_t threads)
{
	Emit *e = k->e;
	const Job *j = k->s->job;
	uint32_t out = j->output_col ? column_at(k, BUF_ACT, j->output_col) : 0; /* else the table has whole offsets */

	remark(e, "verdicts");
	CodeLanes c = { 0 };
	if (codes && k->has_codes)
		c = codes_begin(k);
	RowLanes l = lanes_begin(k, from, threads);
	Best wanted = best_begin(e), guess = best_begin(e);
	Reg far = reg(e, REG_P), count = op1(e, REG_R, "mov.u32", imm(0)), first = reg(e, REG_R),
		threshold = param_f(k, offsetof(Job, threshold));
	ins(e, "setp.ne.u32 $, 0, 0", far);
	ins(e, "mov.u32 $, 0xffffffff", first);
	for (ColumnBlocks b = { 0 }; blocks_next(e, &l, &b, j->outputs);) {
		Reg at = add(e, l.lane, op2(e, REG_R, "shr.u32", b.offset, imm(2)));
		Reg y = target_at(k, &l, b.offset, 0), o;
		if (j->output_col)
			o = row_load(k, &l, b.offset, BUF_ACT, j->output_col);
		else
			o = output_load(k, l.base, op2(e, REG_R, "min.u32", at, imm(j->outputs - 1)));
		Reg known = op2(e, REG_P, "and.pred", b.has, is_number(e, y));
		if (j->right_here) {
			best_of(e, &wanted, y, at, known);
			best_of(e, &guess, o, at, known);
			ins(e, "@$ min.u32 $, $, $", known, first, first, at);
		}
		if (j->criteria) {
			Reg at_most = op2(e, REG_R, "min.u32", at, imm(j->outputs - 1));
			threshold = load(e, REG_F, "ld.global.nc.f32", place(e, POINTER(k, criteria), at_most, 4), 0);
		}
		Reg away = op1(e, REG_F, "abs.f32", op2(e, REG_F, "sub.rn.ftz.f32", o, y));
		Reg within = op2(e, REG_P, "setp.le.ftz.f32", away, threshold);
		ins(e, "@$ or.pred $, $, $", known, far, far, op1(e, REG_P, "not.pred", within));
		ins(e, "add.u32 $, $, $", count, count, op1(e, REG_R, "popc.b32", lanes_where(k, known)));
	}
	if (j->right_here) {
		best_of_lanes(e, &wanted);
		best_of_lanes(e, &guess);
		for (uint32_t n = ROW_LANES / 2; n; n /= 2)
			ins(e, "min.u32 $, $, $", first, first, lanes_xor(e, first, n));
	}
	Reg scored = op2(e, REG_P, "setp.ne.u32", count, imm(0)), right, is_far = lanes_where(k, far);
	if (j->right_here) {
		Reg at = op3(e, REG_R, "selp.u32", first, imm(0), scored), middle = param_f(k, offsetof(Job, middle));
		Reg o = output_load(k, l.base, at);
		Reg y = load(e, REG_F, row_space(k, "ld.shared.f32"), address_add(e, l.y, mul(e, at, 4)), 0);
		Reg found = op3(e, REG_R, "selp.u32", guess.at, first, is_number(e, o)); /* a NaN that is first stays */
		Reg one = op2(e, REG_P, "xor.pred", op2(e, REG_P, "setp.gt.ftz.f32", o, middle),
		              op2(e, REG_P, "setp.gt.ftz.f32", y, middle));
		Reg several = op2(e, REG_P, "setp.gt.u32", count, imm(1)), equal = same(e, found, wanted.at);
		right = op2(e, REG_P, "or.pred", op2(e, REG_P, "and.pred", several, equal),
		            op1(e, REG_P, "not.pred", op2(e, REG_P, "or.pred", several, one)));
	} else {
		right = codes ? codes_right(k, &c, &l, op2(e, REG_P, "and.pred", scored, l.is_row), out) : scored;
	}
	Reg v = op3(e, REG_R, "selp.u32", imm(VERDICT_SCORED), imm(0), scored);
	v = op2(e, REG_R, "or.b32", v, op3(e, REG_R, "selp.u32", imm(VERDICT_RIGHT), imm(0), right));
	v = op2(e, REG_R, "or.b32", v, op3(e, REG_R, "selp.u32", imm(VERDICT_WITHIN), imm(0), same(e, is_far, imm(0))));
	v = op3(e, REG_R, "selp.u32", v, imm(0), scored);
	ins(e, "@$ st.global.u8 [$], $", l.is_first, place(e, k->verdict, add(e, k->row0, l.row), 1), v);
	loop_end(e, &l.loop);
}
