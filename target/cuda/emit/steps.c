/* SPDX-License-Identifier: MIT */
/* Steps of the general kernel: rows and weights in global memory, a thread for each result. Must hold: every sum is one
 * chain in the order of its sources, targets or rows. */
#include "emit.h"
#include "units.h"

enum { LIST_LANES = 8, UNROLLED = 4 }; /* threads of an index list; turns of a loop */

static Reg fma_of(Emit *e, Reg a, Reg b, Reg c) { return op3(e, REG_F, "fma.rn.ftz.f32", a, b, c); }
static Reg sum_of(Emit *e, Reg a, Reg b) { return op2(e, REG_F, "add.rn.ftz.f32", a, b); }
static Reg product_of(Emit *e, Reg a, Reg b) { return op2(e, REG_F, "mul.rn.ftz.f32", a, b); }

/* ---- cells: rows by columns ---- */

typedef struct Cell {
	Loop loop;
	Reg row, n, base, at; /* numbers of row and column; address of column 0, of this one */
} Cell;

static Cell cell_begin(Kernel *k, uint32_t cols)
{
	Emit *e = k->e;
	Cell c = { .loop = loop_begin(e, k->tid, mul(e, k->my_rows, cols), k->s->threads) };
	Reg m = divide(e, c.loop.i, cols);

	c.n = modulo(e, c.loop.i, cols, m);
	c.row = row_number(k, m);
	c.base = row_address(k, c.row);
	c.at = place(e, c.base, c.n, 4);
	return c;
}

static Reg cell_load(Kernel *k, const Cell *c, uint32_t buf, uint32_t col)
{
	return load(k->e, REG_F, "ld.global.f32", c->at, column_at(k, buf, col));
}

static void cell_store(Kernel *k, const Cell *c, uint32_t buf, uint32_t col, Reg v)
{
	ins(k->e, "st.global.f32 [$+#], $", c->at, column_at(k, buf, col), v);
}

/* The same column of the row before or after, in rows that are adjacent in memory. */
static Reg neighbour_at(Kernel *k, const Cell *c, bool next)
{
	Reg d = reg(k->e, REG_D);

	ins(k->e, next ? "add.u64 $, $, #" : "sub.u64 $, $, #", d, c->at, k->row);
	return d;
}

/* A table of a step, which is on the device. */
static Reg step_table(Kernel *k, const DeviceStep *s, size_t field)
{
	Reg d = reg(k->e, REG_D);
	uint64_t number = (uint64_t)(s - k->s->step);

	ins(k->e, "ld.global.nc.u64 $, [$+#]", d, place_at(k->e, POINTER(k, list.step), number * sizeof *s),
	    (uint32_t)field);
	return d;
}
#define TABLE(k, s, field) step_table(k, s, offsetof(DeviceStep, field))

static Reg table_at(Kernel *k, Reg table, Reg i)
{
	return load(k->e, REG_R, "ld.global.nc.u32", place(k->e, table, i, 4), 0);
}

static Reg numbers_at(Kernel *k, const float *from)
{
	return from == k->s->job->zero ? POINTER(k, zero) : weight_place(k, from);
}

/* ---- inputs ---- */

static Reg case_of(Kernel *k, Reg flags) { return op2(k->e, REG_R, "and.b32", flags, imm(ROW_CASE)); }

static void load_step(Kernel *k)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	for (uint32_t i = 0; i < j->input_columns; i++) {
		const InputColumns *in = &k->s->input[i];
		Cell c = cell_begin(k, in->count);
		Reg flags = row_flags(k, c.row), x = place(e, POINTER(k, data.x), case_of(k, flags), j->data.x_row * 4);
		Reg value = load(e, REG_F, "ld.global.nc.f32", place(e, x, c.n, 4), in->input * 4);
		cell_store(k, &c, BUF_ACT, in->col,
		           op3(e, REG_F, "selp.f32", imm_f(0), value, has_flag(k, flags, ROW_NO_INPUTS)));
		loop_end(e, &c.loop);
	}
}

/* An index list: numbers first .. end - 1 of the index, as 32 bits from the address `from` on. */
typedef struct ListOf {
	Reg index, value; /* addresses */
	Reg count;
} ListOf;

static ListOf list_of(Kernel *k, Reg row)
{
	Emit *e = k->e;
	Reg flags = row_flags(k, row), from = place(e, POINTER(k, data.from), case_of(k, flags), 8);
	Reg first = load(e, REG_D, "ld.global.nc.u64", from, 0), end = load(e, REG_D, "ld.global.nc.u64", from, 8);
	Reg count = op1(e, REG_R, "cvt.u32.u64", op2(e, REG_D, "sub.u64", end, first));
	ListOf l = { .count = op3(e, REG_R, "selp.u32", imm(0), count, has_flag(k, flags, ROW_NO_INPUTS)) };

	l.index = op3(e, REG_D, "mad.lo.u64", first, imm(4), POINTER(k, data.index));
	if (k->s->job->data.value)
		l.value = op3(e, REG_D, "mad.lo.u64", first, imm(4), POINTER(k, data.value));
	return l;
}

/* for all numbers of the index lists of rows: some threads for each row */
typedef struct ListLoop {
	Loop rows, list;
	Reg row, input, number;
	ListOf of;
} ListLoop;

static ListLoop lists_begin(Kernel *k)
{
	Emit *e = k->e;
	ListLoop l = { .rows = loop_begin(e, k->tid, mul(e, k->my_rows, LIST_LANES), k->s->threads) };

	l.row = row_number(k, op2(e, REG_R, "shr.u32", l.rows.i, imm(3)));
	l.of = list_of(k, l.row);
	l.list = loop_begin(e, op2(e, REG_R, "and.b32", l.rows.i, imm(LIST_LANES - 1)), l.of.count, LIST_LANES);
	l.input = table_at(k, l.of.index, l.list.i);
	return l;
}

static void lists_end(Kernel *k, const ListLoop *l)
{
	loop_end(k->e, &l->list);
	loop_end(k->e, &l->rows);
}

static void scatter_step(Kernel *k)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	for (uint32_t i = 0; i < j->input_columns; i++) {
		Cell c = cell_begin(k, k->s->input[i].count);
		cell_store(k, &c, BUF_ACT, k->s->input[i].col, imm_f(0));
		loop_end(e, &c.loop);
	}
	barrier_block(e);
	ListLoop l = lists_begin(k);
	Reg base = row_address(k, l.row), value = imm_f(1);
	if (j->data.value)
		value = load(e, REG_F, "ld.global.nc.f32", place(e, l.of.value, l.list.i, 4), 0);
	for (uint32_t i = 0; i < j->input_columns; i++) {
		const InputColumns *in = &k->s->input[i];
		Reg n = op2(e, REG_R, "sub.u32", l.input, imm(in->input));
		uint32_t end = if_begin(e, less(e, n, imm(in->count)));
		ins(e, "st.global.f32 [$+#], $", place(e, base, n, 4), column_at(k, BUF_ACT, in->col), value);
		if_end(e, end);
	}
	lists_end(k, &l);
}

/* The team's masks: [inputs][mask_words] bits of rows. */
static Reg masks_of(Kernel *k)
{
	return place(k->e, POINTER(k, mask), k->team, 4 * k->s->job->data.inputs * k->s->job->mask_words);
}

static void mark_step(Kernel *k)
{
	Emit *e = k->e;
	Reg mask = masks_of(k);
	ListLoop l = lists_begin(k);
	Reg word = mad(e, l.input, k->s->job->mask_words, op2(e, REG_R, "shr.u32", l.row, imm(5)));
	Reg bit = op2(e, REG_R, "shl.b32", imm(1), op2(e, REG_R, "and.b32", l.row, imm(31)));

	ins(e, "red.global.or.b32 [$], $", place(e, mask, word, 4), bit);
	lists_end(k, &l);
}

/* ---- sums ---- */

static Reg start_of(Kernel *k, const DeviceStep *s, const Cell *c)
{
	if (!s->start)
		return cell_load(k, c, s->c, s->c_col);
	if (s->start == k->s->job->zero)
		return imm_f(0);
	return load(k->e, REG_F, "ld.global.f32", place(k->e, weight_place(k, s->start), c->n, 4), 0);
}

/* sum += a[i] b[i], i < count, where both are so many bytes apart. */
static void chain_emit(Kernel *k, Reg sum, Reg a, uint32_t a_step, Reg b, uint32_t b_step, Reg count)
{
	Emit *e = k->e;
	Reg at_a = op1(e, REG_D, "mov.u64", a), at_b = op1(e, REG_D, "mov.u64", b), left = op1(e, REG_R, "mov.u32", count);

	for (uint32_t turns = UNROLLED; turns; turns = turns == UNROLLED ? 1 : 0) {
		uint32_t top = label(e), done = label(e);
		label_here(e, top);
		ins(e, "@$ bra L#", less(e, left, imm(turns)), done);
		Reg x[UNROLLED], y[UNROLLED];
		for (uint32_t i = 0; i < turns; i++) {
			x[i] = load(e, REG_F, "ld.global.f32", at_a, i * a_step);
			y[i] = load(e, REG_F, "ld.global.f32", at_b, i * b_step);
		}
		for (uint32_t i = 0; i < turns; i++)
			ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, x[i], y[i], sum);
		ins(e, "add.u64 $, $, #", at_a, at_a, turns * a_step);
		ins(e, "add.u64 $, $, #", at_b, at_b, turns * b_step);
		ins(e, "sub.u32 $, $, #", left, left, turns);
		ins(e, "bra L#", top);
		label_here(e, done);
	}
}

static void product_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	remark(e, "product: %u columns of %u", s->cols, s->depth);
	Cell c = cell_begin(k, s->cols);
	Reg sum = op1(e, REG_F, "mov.f32", start_of(k, s, &c));
	if (s->depth)
		chain_emit(k, sum, place_at(e, c.base, column_at(k, s->a, s->a_col)), 4, place(e, numbers_at(k, s->b), c.n, 4),
		           s->b_row * 4, imm(s->depth));
	if (s->after == AFTER_UNITS) {
		if (s->c != BUF_ACT)
			cell_store(k, &c, s->c, s->c_col, sum);
		cell_store(k, &c, BUF_ACT, s->c_col, unit_value(e, s->fn, sum));
	} else if (s->after == AFTER_DELTAS) {
		Reg out = cell_load(k, &c, BUF_ACT, s->c_col);
		Reg net = s->keeps_net ? cell_load(k, &c, BUF_NET, s->c_col) : out;
		cell_store(k, &c, s->c, s->c_col,
		           product_of(e, sum, sum_of(e, unit_slope(e, s->fn, net, out), imm_f(s->offset))));
	} else {
		cell_store(k, &c, s->c, s->c_col, sum);
	}
	loop_end(e, &c.loop);
}

static void index_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	remark(e, "index lists: %u columns of %u", s->cols, s->depth);
	Cell c = cell_begin(k, s->cols);
	Reg sum = op1(e, REG_F, "mov.f32", start_of(k, s, &c)), b = place(e, numbers_at(k, s->b), c.n, 4);
	ListOf list = list_of(k, c.row);
	Loop l = loop_begin(e, imm(0), list.count, 1);
	Reg source = op2(e, REG_R, "sub.u32", table_at(k, list.index, l.i), imm(s->low));
	uint32_t end = if_begin(e, less(e, source, imm(s->depth)));
	Reg w = load(e, REG_F, "ld.global.f32", place(e, b, source, s->b_row * 4), 0);
	if (k->s->job->data.value)
		ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, load(e, REG_F, "ld.global.nc.f32", place(e, list.value, l.i, 4), 0), w,
		    sum);
	else
		ins(e, "add.rn.ftz.f32 $, $, $", sum, w, sum);
	if_end(e, end);
	loop_end(e, &l);
	cell_store(k, &c, s->c, s->c_col, s->sigmoid ? unit_value(e, FN_SIGMOID, sum) : sum);
	loop_end(e, &c.loop);
}

static void links_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Reg unit = TABLE(k, s, unit), link = TABLE(k, s, link), col = TABLE(k, s, col), w = weight_place(k, s->b);
	Reg order = s->order ? TABLE(k, s, order) : imm(0);

	remark(e, "links of %u units", s->units);
	Cell c = cell_begin(k, s->units);
	Reg to = place(e, c.base, table_at(k, unit, c.n), 4), sum = reg(e, REG_F), at = place(e, link, c.n, 8);
	if (s->go_on)
		ins(e, "ld.global.f32 $, [$+#]", sum, to, column_at(k, s->c, 0));
	else
		ins(e, "mov.f32 $, 0f00000000", sum);
	Reg first = op1(e, REG_R, "cvt.u32.u64", load(e, REG_D, "ld.global.nc.u64", at, 0));
	Reg past = op1(e, REG_R, "cvt.u32.u64", load(e, REG_D, "ld.global.nc.u64", at, 8));
	Loop l = loop_begin(e, first, past, 1);
	Reg x = load(e, REG_F, "ld.global.f32", place(e, c.base, table_at(k, col, l.i), 4), column_at(k, s->a, 0));
	Reg number = s->order ? table_at(k, order, l.i) : l.i;
	ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, x, load(e, REG_F, "ld.global.f32", place(e, w, number, 4), 0), sum);
	loop_end(e, &l);
	ins(e, "st.global.f32 [$+#], $", to, column_at(k, s->c, 0), sum);
	loop_end(e, &c.loop);
}

/* ---- units ---- */

static void units_step(Kernel *k, const DeviceStep *s)
{
	if (s->fn == FN_SOFTMAX) {
		softmax_emit(k, s);
		return;
	}
	Cell c = cell_begin(k, s->cols);
	cell_store(k, &c, s->c, s->c_col, unit_value(k->e, s->fn, cell_load(k, &c, s->a, s->a_col)));
	loop_end(k->e, &c.loop);
}

static void fill_step(Kernel *k, uint32_t buf, uint32_t col, uint32_t cols, float value)
{
	Cell c = cell_begin(k, cols);

	cell_store(k, &c, buf, col, imm_f(value));
	loop_end(k->e, &c.loop);
}

/* Activations of the row before, or what contexts start with. */
static void contexts_step(Kernel *k)
{
	Emit *e = k->e;
	Reg table = POINTER(k, context);
	Cell c = cell_begin(k, k->s->job->contexts);
	Reg at = place(e, table, c.n, sizeof(ContextColumn)), v = reg(e, REG_F), first = same(e, k->time, imm(0));
	Reg to = load(e, REG_R, "ld.global.nc.u32", at, offsetof(ContextColumn, to));
	Reg from = load(e, REG_R, "ld.global.nc.u32", at, offsetof(ContextColumn, from));
	Reg before = reg(e, REG_D);

	ins(e, "sub.u64 $, $, #", before, place(e, c.base, from, 4), k->row);
	ins(e, "@$ ld.global.nc.f32 $, [$+#]", first, v, at, (uint32_t)offsetof(ContextColumn, start));
	ins(e, "@!$ ld.global.f32 $, [$+#]", first, v, before, column_at(k, BUF_ACT, 0));
	ins(e, "st.global.f32 [$+#], $", place(e, c.base, to, 4), column_at(k, BUF_ACT, 0), v);
	loop_end(e, &c.loop);
}

/* What a group integrates moves from its value in the row before towards the new one, by dt. */
static void integrate_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Cell c = cell_begin(k, s->cols);
	Reg last = op1(e, REG_F, "mov.f32", imm_f(s->begin)), later = op2(e, REG_P, "setp.ne.u32", k->time, imm(0));

	ins(e, "@$ ld.global.f32 $, [$+#]", later, last, neighbour_at(k, &c, false), column_at(k, s->c, s->c_col));
	Reg x = op2(e, REG_F, "sub.rn.ftz.f32", cell_load(k, &c, s->a, s->c_col), last);
	cell_store(k, &c, s->c, s->c_col, sum_of(e, last, product_of(e, imm_f(s->dt), x)));
	loop_end(e, &c.loop);
}

/* ---- noise, settings of groups ---- */

static Reg param_d(Kernel *k, size_t field)
{
	Reg d = reg(k->e, REG_D);

	ins(k->e, "ld.param.u64 $, [job+#]", d, (uint32_t)field);
	return d;
}

NoiseKey noise_key_emit(Kernel *k, uint32_t at, uint32_t group)
{
	return noise_key_of(k->e, param_d(k, offsetof(Job, seed)), k->update_number, STREAM_NOISE + at, group);
}

static void noise_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	NoiseKey key = noise_key_emit(k, s->noise_at, s->group);
	Reg cases = op2(e, REG_D, "sub.u64", k->cases, POINTER(k, cases)), numbers = POINTER(k, numbers);

	_Static_assert(sizeof(RowNumber) == 4 * sizeof(uint32_t), "cases are numbers of 32 bits");
	remark(e, "noise of %u columns", s->cols);
	numbers = op3(e, REG_D, "mad.lo.u64", cases, imm(4), numbers);
	Cell c = cell_begin(k, s->cols);
	Reg at = place(e, numbers, c.row, sizeof(RowNumber));
	Reg number = load(e, REG_D, "ld.global.nc.u64", at, offsetof(RowNumber, number));
	Reg tick = load(e, REG_R, "ld.global.nc.u32", at, offsetof(RowNumber, tick));
	Reg word = noise_word_of(e, key, number, tick, op2(e, REG_R, "add.u32", c.n, imm(s->low)));
	Reg x = cell_load(k, &c, s->a, s->a_col);
	cell_store(k, &c, s->c, s->c_col, noise_applied(e, s->noise, s->amount, s->scale, word, x));
	loop_end(e, &c.loop);
}

static void gain_step(Kernel *k, const DeviceStep *s)
{
	Cell c = cell_begin(k, s->cols);

	cell_store(k, &c, s->c, s->c_col, product_of(k->e, cell_load(k, &c, s->c, s->c_col), imm_f(s->offset)));
	loop_end(k->e, &c.loop);
}

/* As target_near of lib/net/shape.c. */
static void near_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Cell c = cell_begin(k, s->cols);
	Reg target = load(e, REG_F, "ld.global.nc.f32", place(e, target_address(k, c.row), c.n, 4), 4 * s->y);
	Reg y = op1(e, REG_G, "cvt.ftz.f64.f32", target),
		out = op1(e, REG_G, "cvt.ftz.f64.f32", cell_load(k, &c, BUF_ACT, s->a_col));
	Reg distance = op2(e, REG_G, "sub.rn.f64", out, y), radius = literal(e, s->radius);
	Reg most = literal(e, s->radius > s->zero_radius ? s->radius : s->zero_radius);
	Reg is_near = op2(e, REG_P, "setp.le.f64", op1(e, REG_G, "abs.f64", distance), most);
	Reg above = op2(e, REG_P, "setp.gt.f64", distance, literal(e, 0));

	y = op3(e, REG_G, "selp.f64", op2(e, REG_G, "add.rn.f64", y, radius), op2(e, REG_G, "sub.rn.f64", y, radius),
	        above);
	Reg to = op1(e, REG_F, "cvt.rn.ftz.f32.f64", y);
	cell_store(k, &c, BUF_NEAR, s->a_col, op3(e, REG_F, "selp.f32", imm_f(__builtin_nanf("")), to, is_near));
	loop_end(e, &c.loop);
}

/* ---- backward ---- */

static void errors_step(Kernel *k, const DeviceStep *s, bool adds)
{
	Cell c = cell_begin(k, s->cols);
	Reg v = cell_load(k, &c, BUF_ERROR, s->c_col);

	if (adds)
		v = sum_of(k->e, cell_load(k, &c, BUF_DELTA, s->c_col), v);
	cell_store(k, &c, BUF_DELTA, s->c_col, v);
	loop_end(k->e, &c.loop);
}

/* Adds the errors of contexts in the next row to those of their sources in this one. */
static void carry_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Reg table = TABLE(k, s, col);
	Cell c = cell_begin(k, s->cols);
	uint32_t cut = unless_begin(e, has_flag(k, row_flags(k, c.row), ROW_CUT));
	Reg sum = cell_load(k, &c, BUF_DELTA, s->c_col), next = place_at(e, c.base, k->row);

	for (uint32_t i = 0; i < s->units; i++) {
		Reg col = table_at(k, table, add(e, c.n, imm(i * s->cols)));
		sum = sum_of(e, sum, load(e, REG_F, "ld.global.f32", place(e, next, col, 4), column_at(k, BUF_DELTA, 0)));
	}
	cell_store(k, &c, BUF_DELTA, s->c_col, sum);
	if_end(e, cut);
	loop_end(e, &c.loop);
}

/* Of the errors of what a group integrates, a share goes to the new value, the rest to the row before. */
static void integrate_back_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Cell c = cell_begin(k, s->cols);
	Reg held = op1(e, REG_F, "mov.f32", cell_load(k, &c, BUF_DELTA, s->c_col));

	if (s->carried) {
		uint32_t cut = unless_begin(e, has_flag(k, row_flags(k, c.row), ROW_CUT));
		Reg next = load(e, REG_F, "ld.global.f32", neighbour_at(k, &c, true), column_at(k, BUF_HELD, s->c_col));
		ins(e, "add.rn.ftz.f32 $, $, $", held, held, product_of(e, imm_f(1 - s->dt), next));
		if_end(e, cut);
	}
	cell_store(k, &c, BUF_HELD, s->c_col, held);
	cell_store(k, &c, BUF_DELTA, s->c_col, product_of(e, imm_f(s->dt), held));
	loop_end(e, &c.loop);
}

static void deltas_step(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	if (s->fn == FN_SOFTMAX) {
		softmax_deltas_emit(k, s);
		return;
	}
	Cell c = cell_begin(k, s->cols);
	Reg out = cell_load(k, &c, s->a, s->c_col), net = s->keeps_net ? cell_load(k, &c, BUF_NET, s->c_col) : out;
	Reg slope = sum_of(e, unit_slope(e, s->fn, net, out), imm_f(s->offset));
	cell_store(k, &c, s->c, s->c_col, product_of(e, cell_load(k, &c, s->c, s->c_col), slope));
	loop_end(e, &c.loop);
}

static void step_emit(Kernel *k, const DeviceStep *s)
{
	switch (s->kind) {
	case STEP_LOAD: load_step(k); break;
	case STEP_SCATTER: scatter_step(k); break;
	case STEP_MARK: mark_step(k); break;
	case STEP_PRODUCT: product_step(k, s); break;
	case STEP_INDEX: index_step(k, s); break;
	case STEP_LINKS: links_step(k, s); break;
	case STEP_UNITS: units_step(k, s); break;
	case STEP_ONE: fill_step(k, BUF_ACT, s->c_col, 1, 1); break;
	case STEP_CONTEXTS: contexts_step(k); break;
	case STEP_INTEGRATE: integrate_step(k, s); break;
	case STEP_NOISE: noise_step(k, s); break;
	case STEP_GAIN: gain_step(k, s); break;
	case STEP_NEAR: near_step(k, s); break;
	case STEP_ERRORS: errors_emit(k, s); break;
	case STEP_SCORES: verdicts_emit(k); break;
	case STEP_ZERO: fill_step(k, s->c, s->c_col, s->cols, 0); break;
	case STEP_COPY_ERROR: errors_step(k, s, false); break;
	case STEP_ADD_ERROR: errors_step(k, s, true); break;
	case STEP_CARRY: carry_step(k, s); break;
	case STEP_INTEGRATE_BACK: integrate_back_step(k, s); break;
	case STEP_DELTAS: deltas_step(k, s); break;
	}
}

void general_steps(Kernel *k, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const DeviceStep *s = &k->s->step[i];
		if (s->kind == STEP_CODES) /* part of another */
			continue;
		step_emit(k, s);
		barrier_block(k->e);
		spent(k, SPENT_KINDS + 1 + min_u32(i, 25));
	}
}

/* ---- the gradient ---- */

/* for some places of a leaf's sum, by the team */
typedef struct Place {
	Loop loop;
	Reg sum, to; /* so far; its address */
} Place;

/* Tasks are row * cols + col of a matrix with rows of `row` floats. */
static Place gradient_begin(Kernel *k, const DeviceStep *s, uint32_t rows, uint32_t cols, uint32_t row, Reg fresh)
{
	Emit *e = k->e;
	const Job *j = k->s->job;
	Place p = { .sum = reg(e, REG_F) };
	Reg number = op2(e, REG_R, "and.b32", k->leaf_number, imm(j->sums - 1)), base = reg(e, REG_D),
		floats = reg(e, REG_D);

	ins(e, "mov.u64 $, #", floats, (uint32_t)(j->floats * 4));
	ins(e, "mad.lo.u64 $, $, $, $", base, op1(e, REG_D, "cvt.u64.u32", number), floats, POINTER(k, sum));
	p.loop = loop_begin(e, mad(e, k->member, k->workers, k->tid), imm(rows * cols), k->s->team_blocks * k->workers);
	Reg i = divide(e, p.loop.i, cols), n = modulo(e, p.loop.i, cols, i);
	p.to = place(e, place_at(e, base, s->at * 4), mad(e, i, row, n), 4);
	ins(e, "mov.f32 $, 0f00000000", p.sum);
	ins(e, "@!$ ld.global.f32 $, [$]", fresh, p.sum, p.to);
	return p;
}

static void gradient_end(Kernel *k, const Place *p)
{
	ins(k->e, "st.global.f32 [$], $", p->to, p->sum);
	loop_end(k->e, &p->loop);
}

static void gradient_dense(Kernel *k, const DeviceStep *s, Reg fresh)
{
	Emit *e = k->e;

	remark(e, "gradient: %u rows of %u", s->depth, s->cols);
	Place p = gradient_begin(k, s, s->depth, s->cols, s->sum_row, fresh);
	Reg i = divide(e, p.loop.i, s->cols), n = modulo(e, p.loop.i, s->cols, i);
	Reg a = place_at(e, place(e, k->base, i, 4), column_at(k, s->a, s->a_col));
	Reg b = place_at(e, place(e, k->base, n, 4), column_at(k, s->c, s->c_col));
	chain_emit(k, p.sum, a, k->row, b, k->row, k->rows);
	gradient_end(k, &p);
}

/* The value of an input in a case that has it: by bisection. */
static Reg value_of(Kernel *k, Reg row, Reg input)
{
	Emit *e = k->e;
	ListOf list = list_of(k, row);
	Reg low = op1(e, REG_R, "mov.u32", imm(0)), high = op1(e, REG_R, "mov.u32", list.count);
	uint32_t top = label(e), done = label(e);

	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.le.u32", op2(e, REG_R, "sub.u32", high, low), imm(1)), done);
	Reg middle = op2(e, REG_R, "shr.u32", add(e, low, high), imm(1));
	Reg more = op2(e, REG_P, "setp.le.u32", table_at(k, list.index, middle), input);
	ins(e, "selp.u32 $, $, $, $", low, middle, low, more);
	ins(e, "selp.u32 $, $, $, $", high, high, middle, more);
	ins(e, "bra L#", top);
	label_here(e, done);
	return load(e, REG_F, "ld.global.nc.f32", place(e, list.value, low, 4), 0);
}

/* The rows that have an input are those of the bits in its mask; all have the true unit, which comes last. */
static void gradient_lists(Kernel *k, const DeviceStep *s, Reg fresh)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	remark(e, "gradient by index lists: %u rows of %u", s->depth, s->cols);
	Reg masks = masks_of(k);
	Place p = gradient_begin(k, s, s->depth + s->bias, s->cols, s->sum_row, fresh);
	Reg i = divide(e, p.loop.i, s->cols), n = modulo(e, p.loop.i, s->cols, i);
	Reg delta = place_at(e, place(e, k->base, n, 4), column_at(k, BUF_DELTA, s->c_col));
	uint32_t input = label(e), end = label(e);
	ins(e, "@$ bra L#", less(e, i, imm(s->depth)), input);
	Loop all = loop_begin(e, imm(0), k->rows, 1);
	ins(e, "add.rn.ftz.f32 $, $, $", p.sum, p.sum, load(e, REG_F, "ld.global.f32", place(e, delta, all.i, k->row), 0));
	loop_end(e, &all);
	ins(e, "bra L#", end);
	label_here(e, input);
	Reg words = op2(e, REG_R, "shr.u32", add(e, k->rows, imm(31)), imm(5));
	Reg mask = place(e, masks, add(e, i, imm(s->low)), j->mask_words * 4), bits = reg(e, REG_R);
	Loop w = loop_begin(e, imm(0), words, 1);
	ins(e, "ld.global.u32 $, [$]", bits, place(e, mask, w.i, 4));
	uint32_t top = label(e), done = label(e);
	label_here(e, top);
	ins(e, "@$ bra L#", same(e, bits, imm(0)), done);
	Reg row = mad(e, w.i, 32, op1(e, REG_R, "clz.b32", op1(e, REG_R, "brev.b32", bits)));
	Reg x = load(e, REG_F, "ld.global.f32", place(e, delta, row, k->row), 0);
	if (j->data.value)
		ins(e, "mov.f32 $, $", p.sum, fma_of(e, value_of(k, row, add(e, i, imm(s->low))), x, p.sum));
	else
		ins(e, "add.rn.ftz.f32 $, $, $", p.sum, x, p.sum);
	ins(e, "and.b32 $, $, $", bits, bits, add(e, bits, imm(UINT32_MAX)));
	ins(e, "bra L#", top);
	label_here(e, done);
	loop_end(e, &w);
	label_here(e, end);
	gradient_end(k, &p);
}

static void gradient_links(Kernel *k, const DeviceStep *s, Reg fresh)
{
	Emit *e = k->e;
	Reg col = TABLE(k, s, col), to = TABLE(k, s, to);

	remark(e, "gradient of %u links", (uint32_t)s->links);
	Place p = gradient_begin(k, s, 1, (uint32_t)s->links, 0, fresh);
	Reg act = place_at(e, place(e, k->base, table_at(k, col, p.loop.i), 4), column_at(k, BUF_ACT, 0));
	Reg delta = place_at(e, place(e, k->base, table_at(k, to, p.loop.i), 4), column_at(k, BUF_DELTA, s->c_col));
	chain_emit(k, p.sum, delta, k->row, act, k->row, k->rows);
	gradient_end(k, &p);
}

void general_gradient(Kernel *k, Reg fresh)
{
	for (uint32_t i = k->s->list->gradient; i < k->s->list->steps; i++) {
		const DeviceStep *s = &k->s->step[i];
		switch (s->kind) {
		case STEP_GRADIENT: gradient_dense(k, s, fresh); break;
		case STEP_GRADIENT_INDEX: gradient_lists(k, s, fresh); break;
		case STEP_GRADIENT_LINKS: gradient_links(k, s, fresh); break;
		}
	}
}
