/* SPDX-License-Identifier: MIT */
/* Tallies. In: errors and verdicts of rows, in global memory. Out: tallies of leaves, of epochs; is what was wanted
 * reached? Must hold: errors are added in the order of the rows, leaves join as doc/arithmetic.md says. */
#include "emit.h"
#include "kern.h"

static Reg ballot_count(Emit *e, Reg verdict, uint32_t bit)
{
	Reg p = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", verdict, imm(bit)), imm(0)), all = reg(e, REG_R);

	ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", all, p);
	return op1(e, REG_R, "popc.b32", all);
}

static const uint32_t verdict_bit[3] = { VERDICT_SCORED, VERDICT_RIGHT, VERDICT_WITHIN };

static void tally_store(Kernel *k, Reg sum, Reg cases, const Reg total[3], Reg weight)
{
	Emit *e = k->e;
	static const size_t field[3] = { offsetof(Tally, scored), offsetof(Tally, right), offsetof(Tally, within) };
	Reg to = place(e, POINTER(k, leaf_tally), k->leaf_number, sizeof(Tally));
	uint32_t end = if_begin(e, same(e, op2(e, REG_R, "and.b32", k->tid, imm(31)), imm(0)));

	ins(e, "st.global.f64 [$+#], $", to, (uint32_t)offsetof(Tally, error), sum);
	ins(e, "st.global.u64 [$+#], $", to, (uint32_t)offsetof(Tally, cases), op1(e, REG_D, "cvt.u64.u32", cases));
	for (int i = 0; i < 3; i++)
		ins(e, "st.global.u64 [$+#], $", to, (uint32_t)field[i], op1(e, REG_D, "cvt.u64.u32", total[i]));
	ins(e, "st.global.f64 [$+#], $", to, (uint32_t)offsetof(Tally, weight), weight);
	if_end(e, end);
}

/* Adds 32 numbers of lanes to a sum, in order. */
static void add_lanes(Emit *e, Reg sum, Reg x)
{
	Reg bits = op1(e, REG_R, "mov.b32", x);

	for (uint32_t i = 0; i < 32; i++) {
		Reg one = reg(e, REG_R);
		ins(e, "shfl.sync.idx.b32 $, $, #, 31, 0xffffffff", one, bits, i);
		ins(e, "add.rn.f64 $, $, $", sum, sum, op1(e, REG_G, "cvt.f64.f32", op1(e, REG_F, "mov.b32", one)));
	}
}

/* Errors and verdicts of every 32nd row, from that of the lane on: all loads are under way together. */
enum { LANE_ROWS = 16 };

static void lane_rows(Kernel *k, Reg lane, uint32_t turns, Reg error[LANE_ROWS], Reg verdict[LANE_ROWS])
{
	Emit *e = k->e;

	assert(turns <= LANE_ROWS);
	for (uint32_t t = 0; t < turns; t++) {
		Reg row = add(e, lane, imm(32 * t)), is_row = less(e, row, k->rows);
		error[t] = op1(e, REG_F, "mov.f32", imm_f(0));
		verdict[t] = op1(e, REG_R, "mov.u32", imm(0));
		if (k->at_scores) {
			Reg at = mad(e, row, 8, k->memory);
			ins(e, "@$ ld.shared.f32 $, [$+#]", is_row, error[t], at, k->at_scores);
			ins(e, "@$ ld.shared.u32 $, [$+#]", is_row, verdict[t], at, k->at_scores + 4);
			continue;
		}
		ins(e, "@$ ld.global.f32 $, [$]", is_row, error[t], place(e, k->row_error, row, 4));
		ins(e, "@$ ld.global.u8 $, [$]", is_row, verdict[t], place(e, k->verdict, row, 1));
	}
}

/* bf16: a sum of the numbers of lanes: i and i + 16, 8, 4, 2, 1. */
static Reg lanes_total(Emit *e, Reg sum)
{
	for (uint32_t n = 16; n; n /= 2) {
		Reg low = reg(e, REG_R), high = reg(e, REG_R), bits = op1(e, REG_D, "mov.b64", sum), other = reg(e, REG_D);
		ins(e, "mov.b64 {$, $}, $", low, high, bits);
		low = lanes_xor(e, low, n);
		high = lanes_xor(e, high, n);
		ins(e, "mov.b64 $, {$, $}", other, low, high);
		sum = op2(e, REG_G, "add.rn.f64", sum, op1(e, REG_G, "mov.b64", other));
	}
	return sum;
}

/* bf16: a lane adds every 32nd row, then lanes join, so that nothing waits for a chain of all rows. */
static void tally_half(Kernel *k)
{
	Emit *e = k->e;
	bool weights = k->s->job->data.weight != NULL;
	uint32_t turns = k->s->job->data.targets ? (uint32_t)ceil_div(k->s->leaf_rows, 32) : 0;
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(31)), sum = literal(e, 0), weight = literal(e, 0);
	Reg total[3], error[LANE_ROWS], verdict[LANE_ROWS];

	remark(e, "tally of a leaf, bf16");
	lane_rows(k, lane, turns, error, verdict);
	for (int i = 0; i < 3; i++)
		total[i] = op1(e, REG_R, "mov.u32", imm(0));
	for (uint32_t t = 0; t < turns; t++) {
		sum = op2(e, REG_G, "add.rn.f64", sum, op1(e, REG_G, "cvt.f64.f32", error[t]));
		for (int i = 0; i < 3; i++)
			ins(e, "add.u32 $, $, $", total[i], total[i], ballot_count(e, verdict[t], verdict_bit[i]));
		if (weights) {
			Reg w = op1(e, REG_F, "mov.f32", imm_f(0)), number = reg(e, REG_R), row = add(e, lane, imm(32 * t));
			Reg scored =
				op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", verdict[t], imm(VERDICT_SCORED)), imm(0));
			case_load(k, number, row, scored);
			ins(e, "@$ ld.global.nc.f32 $, [$]", scored, w, place(e, POINTER(k, data.weight), number, 4));
			weight = op2(e, REG_G, "add.rn.f64", weight, op1(e, REG_G, "cvt.f64.f32", w));
		}
	}
	sum = lanes_total(e, sum);
	weight = weights ? lanes_total(e, weight) : op1(e, REG_G, "cvt.rn.f64.u32", total[0]);
	tally_store(k, sum, k->rows, total, weight);
}

/* Errors of 32 rows from `row` on, the same in all lanes; 0 past the last row. */
enum { ERRORS_AHEAD = 32 };

static void errors_load(Kernel *k, Reg row, const Reg x[ERRORS_AHEAD])
{
	Emit *e = k->e;
	Reg at = place(e, k->row_error, row, 4);

	for (uint32_t i = 0; i < ERRORS_AHEAD; i++)
		ins(e, "mov.f32 $, 0f00000000", x[i]);
	for (uint32_t i = 0; i < ERRORS_AHEAD && k->s->tiled; i++) /* leaves begin anywhere */
		ins(e, "@$ ld.global.f32 $, [$+#]", less(e, add(e, row, imm(i)), k->rows), x[i], at, 4 * i);
	for (uint32_t i = 0; i < ERRORS_AHEAD && !k->s->tiled; i += 4)
		ins(e, "@$ ld.global.v4.f32 {$, $, $, $}, [$+#]", less(e, add(e, row, imm(i)), k->rows), x[i], x[i + 1],
		    x[i + 2], x[i + 3], at, 4 * i);
}

/* Adds them in order: they are converted first, so that the next ones are under way while these are added. */
static void errors_add(Kernel *k, Reg sum, Reg row, const Reg x[ERRORS_AHEAD])
{
	Emit *e = k->e;
	Reg wide[ERRORS_AHEAD];

	for (uint32_t i = 0; i < ERRORS_AHEAD; i++) {
		Reg is_row = less(e, add(e, row, imm(i)), k->rows);
		wide[i] = op1(e, REG_G, "cvt.f64.f32", op3(e, REG_F, "selp.f32", x[i], imm_f(0), is_row));
	}
	errors_load(k, add(e, row, imm(ERRORS_AHEAD)), x);
	for (uint32_t i = 0; i < ERRORS_AHEAD; i++)
		ins(e, "add.rn.f64 $, $, $", sum, sum, wide[i]);
}

/* ---- a leaf whose errors go through shared memory ---- */

enum { SUMMED = 16 }; /* errors that are loaded while those before are added */

uint64_t tally_bytes(const Kernel *k)
{
	const DeviceData *d = &k->s->job->data;

	return k->deferred_scores && !k->bf16 && !d->weight && d->targets && k->s->leaf_rows <= 512
	           ? (round_up(k->s->leaf_rows, 32) + SUMMED) * 8
	           : 0;
}

static void summed_load(Kernel *k, Reg at, uint32_t first, const Reg x[SUMMED])
{
	for (uint32_t i = 0; i < SUMMED; i++)
		ins(k->e, "ld.shared.f64 $, [$+#]", x[i], at, k->at_doubles + 8 * (first + i));
}

/* Is the sum of these errors of all lanes exact, so that any order gives the bits of the contract's? Every error is
 * a multiple of the last bit of the smallest one that is not 0. If the largest is at most 2^20 times as large, all
 * sums of up to 512 of them have 53 bits or fewer. No numbers (the largest exponent) are far from others, or all the
 * same: those are not exact. */
static Reg sums_exact(Kernel *k, const Reg *error, uint32_t count)
{
	enum { SPREAD = 20, LARGEST = 255 };
	Emit *e = k->e;
	Reg most = op1(e, REG_R, "mov.u32", imm(0)), least = op1(e, REG_R, "mov.u32", imm(LARGEST - SPREAD - 1));

	assert(count <= LANE_ROWS); /* of each of 32 lanes: 512 */
	for (uint32_t t = 0; t < count; t++) {
		Reg exponent = op3(e, REG_R, "bfe.u32", op1(e, REG_R, "mov.b32", error[t]), imm(23), imm(8));
		Reg some = op2(e, REG_P, "setp.ne.u32", exponent, imm(0));
		most = op2(e, REG_R, "max.u32", most, exponent);
		least = op3(e, REG_R, "selp.u32", op2(e, REG_R, "min.u32", least, exponent), least, some);
	}
	Reg all[2] = { reg(e, REG_R), reg(e, REG_R) };
	ins(e, "redux.sync.max.u32 $, $, 0xffffffff", all[0], most);
	ins(e, "redux.sync.min.u32 $, $, 0xffffffff", all[1], least);
	return op2(e, REG_P, "setp.le.u32", all[0], add(e, all[1], imm(SPREAD)));
}

/* One after the other. A lane has converted every 32nd error, so that the chain of additions waits for nothing else. */
static void errors_chain(Kernel *k, Reg sum, Reg lane, const Reg *error, uint32_t turns)
{
	Emit *e = k->e;
	Reg to = mad(e, lane, 8, k->memory), at = op1(e, REG_R, "mov.u32", k->memory), x[2][SUMMED];

	for (uint32_t t = 0; t < turns; t++)
		ins(e, "st.shared.f64 [$+#], $", to, k->at_doubles + 32 * 8 * t, op1(e, REG_G, "cvt.f64.f32", error[t]));
	ins(e, "bar.warp.sync 0xffffffff");
	for (uint32_t i = 0; i < 2 * SUMMED; i++)
		x[i / SUMMED][i % SUMMED] = reg(e, REG_G);
	summed_load(k, at, 0, x[0]);
	Loop l = loop_begin(e, imm(0), k->rows, 2 * SUMMED);
	for (uint32_t half = 0; half < 2; half++) {
		summed_load(k, at, (half + 1) * SUMMED, x[1 - half]);
		for (uint32_t i = 0; i < SUMMED; i++)
			ins(e, "add.rn.f64 $, $, $", sum, sum, x[half][i]);
	}
	ins(e, "add.u32 $, $, #", at, at, 2 * SUMMED * 8);
	loop_end(e, &l);
}

/* By all lanes where the order does not matter: a chain of 501 additions takes 8,000 cycles, others wait for it. */
static void tally_chain(Kernel *k)
{
	Emit *e = k->e;
	uint32_t turns = (uint32_t)ceil_div(k->s->leaf_rows, 32);
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(31)), sum = literal(e, 0), total[3], error[LANE_ROWS],
		verdict[LANE_ROWS];

	remark(e, "tally of a leaf, through shared memory");
	lane_rows(k, lane, turns, error, verdict);
	uint32_t done = label(e), inexact = if_begin(e, sums_exact(k, error, turns));
	Reg part = literal(e, 0);
	for (uint32_t t = 0; t < turns; t++)
		part = op2(e, REG_G, "add.rn.f64", part, op1(e, REG_G, "cvt.f64.f32", error[t]));
	ins(e, "mov.f64 $, $", sum, lanes_total(e, part));
	ins(e, "bra L#", done);
	if_end(e, inexact);
	errors_chain(k, sum, lane, error, turns);
	label_here(e, done);
	for (int i = 0; i < 3; i++) {
		total[i] = op1(e, REG_R, "mov.u32", imm(0));
		for (uint32_t t = 0; t < turns; t++)
			ins(e, "add.u32 $, $, $", total[i], total[i], ballot_count(e, verdict[t], verdict_bit[i]));
	}
	tally_store(k, sum, k->rows, total, op1(e, REG_G, "cvt.rn.f64.u32", total[0]));
}

/* Errors of the rows of a leaf, in order, and what verdicts count: by one warp. */
void tally_leaf(Kernel *k, Reg fresh)
{
	if (k->bf16 || k->at_doubles) {
		if (k->bf16)
			tally_half(k);
		else
			tally_chain(k);
		return;
	}
	Emit *e = k->e;
	bool weights = k->s->job->data.weight != NULL, general = k->s->general, targets = k->s->job->data.targets != 0;
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(31)), sum = literal(e, 0), weight = literal(e, 0), total[3];
	static const size_t field[3] = { offsetof(Tally, scored), offsetof(Tally, right), offsetof(Tally, within) };
	Reg to = place(e, POINTER(k, leaf_tally), k->leaf_number, sizeof(Tally)), cases = k->rows;

	remark(e, "tally of a leaf");
	for (int i = 0; i < 3; i++)
		total[i] = op1(e, REG_R, "mov.u32", imm(0));
	if (general) { /* rows may be ticks; chunks before may have begun the tally */
		cases = op1(e, REG_R, "mov.u32", imm(0));
		uint32_t first = unless_begin(e, fresh);
		for (int i = 0; i < 3; i++)
			ins(e, "ld.global.u32 $, [$+#]", total[i], to, (uint32_t)field[i]);
		ins(e, "ld.global.u32 $, [$+#]", cases, to, (uint32_t)offsetof(Tally, cases));
		ins(e, "ld.global.f64 $, [$+#]", sum, to, (uint32_t)offsetof(Tally, error));
		ins(e, "ld.global.f64 $, [$+#]", weight, to, (uint32_t)offsetof(Tally, weight));
		if_end(e, first);
	}
	Reg errors[ERRORS_AHEAD];
	for (uint32_t i = 0; i < ERRORS_AHEAD; i++)
		errors[i] = reg(e, REG_F);
	if (targets)
		errors_load(k, imm(0), errors);
	Loop l = loop_begin(e, imm(0), targets || general ? k->rows : imm(0), 32); /* without targets: cases only */
	Reg row = add(e, l.i, lane), is_row = less(e, row, k->rows), verdict = reg(e, REG_R);
	ins(e, "mov.u32 $, 0", verdict);
	Reg counts = is_row;
	if (general) {
		Reg flags = op1(e, REG_R, "mov.u32", imm(ROW_NOT_LAST)), all = reg(e, REG_R);
		ins(e, "@$ ld.global.nc.u32 $, [$]", is_row, flags, place(e, k->cases, row, 4));
		counts = op1(e, REG_P, "not.pred", has_flag(k, flags, ROW_NOT_LAST));
		ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", all, counts);
		ins(e, "add.u32 $, $, $", cases, cases, op1(e, REG_R, "popc.b32", all));
	}
	if (targets) {
		ins(e, "@$ ld.global.u8 $, [$]", counts, verdict, place(e, k->verdict, row, 1));
		errors_add(k, sum, l.i, errors);
	}
	for (int i = 0; i < 3; i++)
		ins(e, "add.u32 $, $, $", total[i], total[i], ballot_count(e, verdict, verdict_bit[i]));
	if (weights) {
		Reg w = reg(e, REG_F), number = reg(e, REG_R);
		Reg scored = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", verdict, imm(VERDICT_SCORED)), imm(0));
		ins(e, "mov.f32 $, 0f00000000", w);
		case_load(k, number, row, scored);
		ins(e, "@$ ld.global.nc.f32 $, [$]", scored, w, place(e, POINTER(k, data.weight), number, 4));
		add_lanes(e, weight, w);
	}
	loop_end(e, &l);
	if (!weights)
		ins(e, "cvt.rn.f64.u32 $, $", weight, total[0]);
	if (general)
		ins(e, "bar.warp.sync 0xffffffff"); /* all lanes have read what was there */
	tally_store(k, sum, cases, total, weight);
}

/* A field of a tally, by its lane: two are doubles, the others integers. */
Reg add_field(Emit *e, Reg a, Reg b, Reg is_double)
{
	Reg x = op2(e, REG_G, "add.rn.f64", op1(e, REG_G, "mov.b64", a), op1(e, REG_G, "mov.b64", b));

	return op3(e, REG_D, "selp.b64", op1(e, REG_D, "mov.b64", x), op2(e, REG_D, "add.u64", a, b), is_double);
}

static Reg join_fields(Emit *e, Reg from, uint32_t leaves, Reg is_double)
{
	JoinKnown j = { .is_double = is_double };

	for (uint32_t n = 0; n < leaves; n++)
		known_add(e, &j, load(e, REG_D, "ld.global.u64", from, n * (uint32_t)sizeof(Tally)));
	return known_end(e, &j);
}

static Reg param_g(Kernel *k, size_t field)
{
	Reg g = reg(k->e, REG_G);

	ins(k->e, "ld.param.f64 $, [job+#]", g, (uint32_t)field);
	return g;
}

static Reg counted_share(Emit *e, Reg count, Reg scored, Reg any)
{
	Reg n = op1(e, REG_G, "cvt.rn.f64.u64", count);

	return op3(e, REG_G, "selp.f64", op2(e, REG_G, "div.rn.f64", n, scored), literal(e, 0), any);
}

enum { FIELDS = sizeof(Tally) / 8 };
#define FIELD(name) (offsetof(Tally, name) / 8)

/* Is what the epoch was to reach reached? field: its tally, of type D */
static Reg is_reached(Kernel *k, const Reg field[FIELDS])
{
	Emit *e = k->e;
	Reg count = field[FIELD(scored)];
	Reg any = op2(e, REG_P, "setp.ne.u64", count, imm(0)), n = op1(e, REG_G, "cvt.rn.f64.u64", count);
	Reg weight = op1(e, REG_G, "mov.b64", field[FIELD(weight)]);
	Reg weighs = op2(e, REG_P, "setp.gt.f64", weight, literal(e, 0));
	Reg error = op2(e, REG_G, "div.rn.f64", op1(e, REG_G, "mov.b64", field[FIELD(error)]), weight);

	error = op3(e, REG_G, "selp.f64", error, literal(e, 0), weighs);
	Reg within = op2(e, REG_P, "setp.ge.f64", counted_share(e, field[FIELD(within)], n, any),
	                 param_g(k, offsetof(Job, until_within)));
	Reg right = op2(e, REG_P, "setp.ge.f64", counted_share(e, field[FIELD(right)], n, any),
	                param_g(k, offsetof(Job, until_right)));
	Reg low = op2(e, REG_P, "setp.lt.f64", error, param_g(k, offsetof(Job, until_error)));
	return op2(e, REG_P, "or.pred", op2(e, REG_P, "or.pred", within, right), low);
}

Reg tally_decides(Kernel *k)
{
	Emit *e = k->e;
	Reg error = op2(e, REG_P, "setp.ge.f64", param_g(k, offsetof(Job, until_error)), literal(e, 0));
	Reg right = op2(e, REG_P, "setp.le.f64", param_g(k, offsetof(Job, until_right)), literal(e, 1));
	Reg within = op2(e, REG_P, "setp.le.f64", param_g(k, offsetof(Job, until_within)), literal(e, 1));

	return op2(e, REG_P, "or.pred", error, op2(e, REG_P, "or.pred", right, within));
}

/* What lane i has, in all lanes. */
static Reg lane_field(Emit *e, Reg x, uint32_t i)
{
	Reg half[2] = { reg(e, REG_R), reg(e, REG_R) }, all[2] = { reg(e, REG_R), reg(e, REG_R) }, d = reg(e, REG_D);

	ins(e, "mov.b64 {$, $}, $", half[0], half[1], x);
	for (uint32_t n = 0; n < 2; n++)
		ins(e, "shfl.sync.idx.b32 $, $, #, 31, 0xffffffff", all[n], half[n], i);
	ins(e, "mov.b64 $, {$, $}", d, all[0], all[1]);
	return d;
}

/* All that does not depend on the leaves is loaded before they are there. */
TallyPrefetch tally_prefetch(Kernel *k, Reg update)
{
	Emit *e = k->e;
	TallyPrefetch a = { .lane = op2(e, REG_R, "and.b32", k->tid, imm(31)), .field = reg(e, REG_D), .first = imm(0) };
	Reg result = POINTER(k, result);

	a.epoch = load(e, REG_R, "ld.global.u32", result, offsetof(JobResult, epoch));
	a.done = load(e, REG_D, "ld.global.u64", result, offsetof(JobResult, done));
	a.leaves = load(e, REG_R, "ld.global.u32", update, offsetof(DeviceUpdate, leaves));
	a.ends = load(e, REG_R, "ld.global.u8", update, offsetof(DeviceUpdate, ends_epoch));
	a.to = place(e, place(e, POINTER(k, tally), a.epoch, sizeof(Tally)), a.lane, 8);
	a.is_field = less(e, a.lane, imm(FIELDS));
	ins(e, "mov.u64 $, 0", a.field);
	ins(e, "@$ ld.global.u64 $, [$]", a.is_field, a.field, a.to);
	return a;
}

void tally_finish(Kernel *k, const TallyPrefetch *a)
{
	Emit *e = k->e;
	Reg result = POINTER(k, result), sum = reg(e, REG_D), field[FIELDS];
	Reg is_double = op2(e, REG_P, "or.pred", same(e, a->lane, imm(FIELD(error))), same(e, a->lane, imm(FIELD(weight))));

	remark(e, "tally of an update");
	uint32_t end = if_begin(e, a->is_field);
	Reg from = place(e, place(e, POINTER(k, leaf_tally), a->first, sizeof(Tally)), a->lane, 8);
	if (k->s->general) {
		JoinLevels levels = join_begin(k, REG_D, is_double);
		Loop l = loop_begin(e, imm(0), a->leaves, 1);
		join_add(k, &levels, load(e, REG_D, "ld.global.u64", place(e, from, l.i, sizeof(Tally)), 0));
		loop_end(e, &l);
		ins(e, "mov.u64 $, $", sum, join_end(k, &levels));
	}
	for (uint32_t i = 0; i < k->s->kinds_of_leaves && !k->s->general; i++) {
		uint32_t other = if_begin(e, same(e, a->leaves, imm(k->s->leaves[i])));
		ins(e, "mov.u64 $, $", sum, join_fields(e, from, k->s->leaves[i], is_double));
		if_end(e, other);
	}
	ins(e, "mov.u64 $, $", a->field, add_field(e, a->field, sum, is_double));
	ins(e, "st.global.u64 [$], $", a->to, a->field);
	if_end(e, end);
	ins(e, "bar.warp.sync 0xffffffff");
	for (uint32_t i = 0; i < FIELDS; i++)
		field[i] = lane_field(e, a->field, i);
	uint32_t rest = if_begin(e, same(e, a->lane, imm(0)));
	Reg error = op1(e, REG_G, "mov.b64", field[FIELD(error)]), stop = reg(e, REG_P);
	ins(e, "setp.neu.f64 $, $, $", stop, op2(e, REG_G, "sub.rn.f64", error, error), literal(e, 0));
	uint32_t inside = if_begin(e, op2(e, REG_P, "setp.ne.u32", a->ends, imm(0)));
	ins(e, "or.pred $, $, $", stop, stop, is_reached(k, field));
	ins(e, "st.global.u32 [$+#], $", result, (uint32_t)offsetof(JobResult, epoch), add(e, a->epoch, imm(1)));
	if_end(e, inside);
	flag_set(k, stop, offsetof(JobResult, stop));
	ins(e, "st.global.u64 [$+#], $", result, (uint32_t)offsetof(JobResult, done),
	    op2(e, REG_D, "add.u64", a->done, imm(1)));
	if_end(e, rest);
}

void tally_update(Kernel *k, Reg update)
{
	TallyPrefetch a = tally_prefetch(k, update);

	tally_finish(k, &a);
}
