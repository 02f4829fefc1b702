/* SPDX-License-Identifier: MIT */
/* Steps of the forward and backward pass of a block's rows, all in shared memory. Must hold: every sum is one chain in
 * the order of its sources or targets; threads cut what is not summed. */
#include <string.h>

#include "bf16_emit.h"
#include "units.h"

enum { MOST_HIGH = 8, STRAIGHT = 32 }; /* rows of a thread; sources of no loop, beside other work twice as many */

static void fma_to(Emit *e, Reg sum, Reg a, Reg b) { ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, a, b, sum); }

/* ---- tasks: rows by quads ---- */

/* A thread has `high` rows, `groups` rows apart, by one quad of columns. In blocks: four lanes have two groups of
 * rows by two quads. A load of 16 bytes a lane takes two wavefronts of shared memory where each four lanes read two
 * addresses at most, and four otherwise, also where other lanes read the same: with blocks, loads of rows and of
 * weights take two. Of an odd number of groups or quads, lanes of the last blocks have nothing to do; or all blocks are
 * full, and the last group and the last quad follow them (full): fewer warps, some of which load in four. */
typedef struct Tasks {
	uint32_t quads, high, groups, rounds; /* quads: threads for a row; some may have none */
	uint32_t real;                        /* quads that there are; 0: all */
	uint32_t all;                         /* threads */
	bool blocks, full;
} Tasks;

/* Threads in full blocks. */
static uint32_t tasks_paired(const Tasks *t) { return 4 * (t->quads / 2) * (t->groups / 2); }

static void tasks_count(const Kernel *k, Tasks *t)
{
	bool padded = t->blocks && !t->full;

	t->all = padded ? (uint32_t)(4 * ceil_div(t->quads, 2) * ceil_div(t->groups, 2)) : t->quads * t->groups;
	t->rounds = (uint32_t)ceil_div(t->all, k->s->threads);
}

/* Cycles, measured on an H200: a warp alone on its scheduler issues some 0.6 instructions a cycle, several together
 * 0.75. For four sources a thread adds 16 products for each of its rows and loads a quad of each row and of each
 * source, two wavefronts each. Unit functions of a row are chains. */
static double issue_cycles(uint32_t warps, double instructions)
{
	uint32_t each = (warps + 3) / 4;

	return each * instructions / (each == 1 ? 0.6 : 0.75);
}

static double tasks_cost(const Tasks *t, uint32_t depth)
{
	enum { VALUE = 40, CHAIN = 280 }; /* instructions of a unit function; cycles of a row */
	uint32_t warps = (t->all + 31) / 32, loads = 4 + t->high;
	uint32_t apart = t->full ? (t->all - tasks_paired(t) + 31) / 32 : 0;
	double adds = issue_cycles(warps, t->high * 16 + loads + 4), memory = (warps + apart) * 2.0 * loads;
	double row = issue_cycles(warps, 4 * VALUE);

	return depth / 4 * (memory > adds ? memory : adds) + t->high * (row > CHAIN ? row : CHAIN);
}

static Tasks tasks_of(const Kernel *k, uint32_t cols, uint32_t depth, uint32_t most)
{
	Tasks best = { 0 };
	double least = 0;

	for (uint32_t i = 0; i < 2 * most; i++) {
		Tasks t = { .quads = (uint32_t)ceil_div(cols, 4), .groups = (uint32_t)ceil_div(k->block_rows, i / 2 + 1) };
		t.high = (uint32_t)ceil_div(k->block_rows, t.groups);
		t.blocks = t.quads > 1;
		t.full = t.blocks && i % 2 && !k->overlaid;
		tasks_count(k, &t);
		double cost = tasks_cost(&t, depth);
		if (!least || cost < least) {
			least = cost;
			best = t;
		}
	}
	return best;
}

typedef struct Task {
	Reg quad, row; /* address of the first of its rows, */
	Reg group;     /* and its number */
	uint32_t end[3], ends;
} Task;

static void task_guard(Kernel *k, Task *t, Reg value, uint32_t end)
{
	t->end[t->ends++] = if_begin(k->e, less(k->e, value, imm(end)));
}

/* The last group and the last quad, where these are odd in number: those of the quad first. */
static void task_apart(Kernel *k, const Tasks *t, Reg number, Task *task)
{
	Emit *e = k->e;
	uint32_t column = t->quads % 2 ? t->groups / 2 * 2 : 0;
	Reg n = op2(e, REG_R, "sub.u32", number, imm(tasks_paired(t)));
	Reg paired = less(e, number, imm(tasks_paired(t))), in_column = less(e, n, imm(column));
	Reg group = op3(e, REG_R, "selp.u32", n, imm(t->groups - 1), in_column);
	Reg quad = op3(e, REG_R, "selp.u32", imm(t->quads - 1), op2(e, REG_R, "sub.u32", n, imm(column)), in_column);

	task->group = op3(e, REG_R, "selp.u32", task->group, group, paired);
	task->quad = op3(e, REG_R, "selp.u32", task->quad, quad, paired);
}

/* Task `number`; below: all numbers are less than that. */
static Task task_at(Kernel *k, const Tasks *t, Reg number, uint32_t below)
{
	Emit *e = k->e;
	Task task = { 0 };

	if (below > t->all)
		task_guard(k, &task, number, t->all);
	uint32_t across = t->full ? t->quads / 2 : t->blocks ? (uint32_t)ceil_div(t->quads, 2) : t->quads;
	Reg place_of = t->blocks ? op2(e, REG_R, "shr.u32", number, imm(2)) : number;
	task.group = divide(e, place_of, across);
	task.quad = modulo(e, place_of, across, task.group);
	if (t->blocks) {
		Reg odd = op2(e, REG_R, "and.b32", number, imm(1)), low = op2(e, REG_R, "and.b32", number, imm(2));
		task.quad = mad(e, task.quad, 2, odd);
		task.group = mad(e, task.group, 2, op2(e, REG_R, "shr.u32", low, imm(1)));
		if (t->full)
			task_apart(k, t, number, &task);
		else if (t->groups % 2)
			task_guard(k, &task, task.group, t->groups);
	}
	uint32_t real = t->real ? t->real : t->quads;
	if (!t->full && real < (t->blocks ? 2 * across : across))
		task_guard(k, &task, task.quad, real);
	task.row = add(e, mad(e, task.group, k->row, k->memory), imm(k->at_rows));
	return task;
}

static Task task_begin(Kernel *k, const Tasks *t, uint32_t round)
{
	uint32_t first = round * k->s->threads;

	return task_at(k, t, add(k->e, k->tid, imm(first)), first + k->s->threads);
}

static void task_end(Kernel *k, const Task *t)
{
	for (uint32_t i = t->ends; i--;)
		if_end(k->e, t->end[i]);
}

/* Columns of a quad at `at` + offset; of the last quad, only those that there are. */
static void store_columns(Kernel *k, Reg at, uint32_t offset, Reg quad, uint32_t cols, bool aligned, const Reg v[4])
{
	Emit *e = k->e;
	uint32_t last = (cols - 1) / 4, rest = cols - last * 4;

	if (aligned && rest == 4) {
		store_quad(e, "shared", at, offset, v);
		return;
	}
	Reg is_last = same(e, quad, imm(last));
	uint32_t partial = if_begin(e, is_last), done = label(e);
	for (uint32_t i = 0; i < rest; i++)
		ins(e, "st.shared.f32 [$+#], $", at, offset + 4 * i, v[i]);
	ins(e, "bra L#", done);
	if_end(e, partial);
	if (aligned)
		store_quad(e, "shared", at, offset, v);
	for (uint32_t i = 0; i < 4 && !aligned; i++)
		ins(e, "st.shared.f32 [$+#], $", at, offset + 4 * i, v[i]);
	label_here(e, done);
}

static void load_columns(Emit *e, Reg v[4], Reg at, uint32_t offset, bool aligned)
{
	if (aligned)
		load_quad(e, "shared", v, at, offset);
	for (uint32_t i = 0; i < 4 && !aligned; i++)
		v[i] = load(e, REG_F, "ld.shared.f32", at, offset + 4 * i);
}

uint32_t flips(const Kernel *k, uint32_t buf) { return buf == BUF_ACT ? k->flipped : 0; }
Reg row_flip(Kernel *k, Reg row, uint32_t buf) { return flips(k, buf) ? add(k->e, row, k->flip) : row; }

Reg leaf_row(Kernel *k, Reg row)
{
	return op2(k->e, REG_R, "min.u32", add(k->e, k->row0, row), imm(k->s->leaf_rows - 1));
}

Reg target_word(Kernel *k, Reg row)
{
	return load(k->e, REG_R, "ld.shared.u32", mad(k->e, leaf_row(k, row), 4, k->memory), k->at_targets);
}

/* What sums begin with. at: of the task's quad in its first row. */
static void sums_begin(Kernel *k, const DeviceStep *s, const Tasks *t, const Task *task, Reg at, Reg sum[][4])
{
	Emit *e = k->e;
	const float *zero = k->s->job->zero;
	Reg start[4];

	if (s->start && s->start != zero)
		load_quad(e, "shared", start, add(e, mad(e, task->quad, 16, k->memory), imm(weight_at(k, s->start))), 0);
	for (uint32_t h = 0; h < t->high; h++) {
		if (!s->start)
			load_columns(e, sum[h], at, h * t->groups * k->row, s->c_col % 4 == 0);
		for (uint32_t i = 0; i < 4 && s->start; i++) {
			sum[h][i] = reg(e, REG_F);
			ins(e, "mov.f32 $, $", sum[h][i], s->start == zero ? imm_f(0) : start[i]);
		}
	}
}

/* With what is added to it. A sigmoid unit has no slope of -0, so that 0 need not be added. */
static Reg slope_of(Emit *e, const DeviceStep *s, Reg net, Reg out)
{
	Reg slope = unit_slope(e, s->fn, s->keeps_net ? net : out, out);

	if (s->offset == 0 && s->fn == FN_SIGMOID)
		return slope;
	return op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(s->offset));
}

/* Outputs that errors are formed from later; their deltas replace net inputs. */
static void outputs_end(Kernel *k, const DeviceStep *s, const DeviceStep *errors, const Tasks *t, const Task *task,
                        uint32_t h, Reg sum[4])
{
	Emit *e = k->e;
	uint32_t rows = h * t->groups; /* after the first one of the task */
	Reg quad = mad(e, task->quad, 16, k->memory), late = mad(e, task->group, k->deferred_row, quad);
	Reg y = mad(e, task->group, k->target_row, quad), weight = imm_f(1), word = imm(0), out[4];
	uint32_t late_offset = k->at_deferred + rows * k->deferred_row, y_offset = k->at_targets + rows * k->target_row;

	for (uint32_t i = 0; i < 4; i++)
		out[i] = unit_value(e, s->fn, sum[i]);
	store_quad(e, "shared", late, late_offset + deferred_at(k, errors, false), out);
	if (errors->known_net)
		store_quad(e, "shared", late, late_offset + deferred_at(k, errors, true), sum);
	const DeviceStep *deltas = deferred_deltas(k, errors);
	if (errors->c >= BUFS)
		return;
	if (k->s->job->data.weight) {
		Reg number = reg(e, REG_R), row = add(e, task->group, imm(rows));
		case_load(k, number, add(e, k->row0, row), less(e, row, k->my_rows));
		weight = load(e, REG_F, "ld.global.nc.f32", place(e, POINTER(k, data.weight), number, 4), 0);
	}
	if (k->y_bits) { /* past the last row of the leaf something else is there, which does not matter */
		Reg first = mad(e, add(e, k->row0, task->group), 4, k->memory);
		word = load(e, REG_R, "ld.shared.u32", first, k->at_targets + rows * 4);
		word = op2(e, REG_R, "shr.u32", word, mul(e, task->quad, 4));
	}
	for (uint32_t i = 0; i < 4; i++) {
		ErrorOf of = { .fn = s->fn, .error = errors->error, .known_net = errors->known_net, .out = out[i] };
		of.net = errors->known_net ? sum[i] : out[i];
		of.y = k->y_bits ? y_bit(e, word, (errors->y + i) % 32)
		                 : load(e, REG_F, "ld.shared.f32", y, y_offset + 4 * (errors->y + i));
		Reg net = sum[i];
		sum[i] = output_delta(e, errors, &of, k->y_bits ? imm(1) : is_number(e, of.y), weight, imm_f(0));
		if (deltas) {
			sum[i] = op2(e, REG_F, "mul.rn.ftz.f32", sum[i], slope_of(e, deltas, net, out[i]));
		}
	}
}

/* Sums of row h of a task: stored, or what the step that was fused with the product makes of them. */
static void row_end(Kernel *k, const DeviceStep *s, const Tasks *t, const Task *task, const Outward *outward,
                    uint32_t h, Reg sum[4])
{
	Emit *e = k->e;
	Reg at = mad(e, task->quad, 16, task->row), v[4];
	bool aligned = s->c_col % 4 == 0, sigmoid = s->kind == STEP_INDEX && s->sigmoid;
	const DeviceStep *late = deferred_errors(k, s);
	uint32_t to = column_of(k, s->c, s->c_col), result = result_buffer(k, s), offset = h * t->groups * k->row;

	memcpy(v, sum, sizeof v);
	if (late) {
		outputs_end(k, s, late, t, task, h, v);
	} else if (s->after == AFTER_UNITS || sigmoid) {
		if (s->c != BUF_ACT)
			store_columns(k, at, offset + to, task->quad, s->cols, aligned, v);
		for (uint32_t i = 0; i < 4; i++)
			v[i] = unit_value(e, sigmoid ? FN_SIGMOID : s->fn, v[i]);
	} else if (s->after == AFTER_DELTAS) {
		Reg out[4], net[4];
		load_columns(e, out, row_flip(k, at, BUF_ACT), offset + column_at(k, BUF_ACT, s->c_col), aligned);
		memcpy(net, out, sizeof net);
		if (s->keeps_net)
			load_columns(e, net, at, offset + column_at(k, BUF_NET, s->c_col), aligned);
		for (uint32_t i = 0; i < 4; i++)
			v[i] = op2(e, REG_F, "mul.rn.ftz.f32", v[i], slope_of(e, s, net[i], out[i]));
	}
	if (outward->regions)
		outward_store(k, outward, task->group, h * t->groups, v);
	if (result < BUFS && !only_exchanged(k, s))
		store_columns(k, row_flip(k, at, result), offset + column_at(k, result, s->c_col), task->quad,
		              k->overlaid ? padded_columns(k, s) : s->cols, aligned, v);
}

/* A loop over the rows of a task: sums move up by a row in every turn. The code of an update is larger than the
 * caches of instructions next to schedulers, so that straight code waits for the next cache. */
static void rows_end(Kernel *k, const DeviceStep *s, const Tasks *t, const Task *task, Outward *outward, Reg sum[][4])
{
	Emit *e = k->e;
	Task now = *task;

	now.row = op1(e, REG_R, "mov.u32", task->row);
	now.group = op1(e, REG_R, "mov.u32", task->group);
	for (uint32_t n = 0; n < outward->regions; n++) {
		Reg at = reg(e, REG_D);
		ins(e, "mov.u64 $, $", at, outward->at[n]);
		outward->at[n] = at;
	}
	uint32_t each = t->high % 2 || !gradients_are_long(k) ? 1 : 2; /* rows of a turn */
	Loop l = loop_count(e, t->high / each);
	for (uint32_t h = 0; h < each; h++)
		row_end(k, s, t, &now, outward, h, sum[h]);
	for (uint32_t h = 0; h + each < t->high; h++)
		for (uint32_t i = 0; i < 4; i++)
			ins(e, "mov.f32 $, $", sum[h][i], sum[h + each][i]);
	ins(e, "add.u32 $, $, #", now.row, now.row, each * t->groups * k->row);
	ins(e, "add.u32 $, $, #", now.group, now.group, each * t->groups);
	for (uint32_t n = 0; n < outward->regions; n++)
		ins(e, "add.u64 $, $, #", outward->at[n], outward->at[n], each * t->groups * outward->pitch[n]);
	loop_end(e, &l);
}

static void sums_end(Kernel *k, const DeviceStep *s, const Tasks *t, const Task *task, Reg sum[][4])
{
	Outward outward;

	outward_begin(k, s, task->quad, task->group, &outward);
	if (t->high > 2 && !k->overlaid)
		rows_end(k, s, t, task, &outward, sum);
	else
		for (uint32_t h = 0; h < t->high; h++)
			row_end(k, s, t, task, &outward, h, sum[h]);
}

/* ---- products ---- */

/* Operands of four sources: of each row, and of their weights. */
typedef struct Sources {
	Reg x[MOST_HIGH][4], w[4][4];
} Sources;

static Sources *sources_new(Kernel *k)
{
	Sources *s = NEW(&k->s->cx->scratch, 1, Sources);

	for (uint32_t i = 0; i < MOST_HIGH + 4; i++)
		for (uint32_t n = 0; n < 4; n++)
			*(i < MOST_HIGH ? &s->x[i][n] : &s->w[i - MOST_HIGH][n]) = reg(k->e, REG_F);
	return s;
}

/* Sources from a + source on, whose weights are at b. */
static void sources_load(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, uint32_t source,
                         const Sources *to)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < 4; i++)
		load_quad_to(e, "shared", to->w[i], b, (source + i) * s->b_row * 4);
	for (uint32_t h = 0; h < t->high; h++) {
		uint32_t at = h * t->groups * k->row + source * 4;
		if (s->a_col % 4 == 0)
			load_quad_to(e, "shared", to->x[h], a, at);
		for (uint32_t i = 0; i < 4 && s->a_col % 4; i++)
			ins(e, "ld.shared.f32 $, [$+#]", to->x[h][i], a, at + 4 * i);
	}
}

/* Back and forth over columns: an instruction then has an operand of the one before, which is not read again. A bank
 * delivers one register a cycle, those of even numbers and of odd ones have a bank each. */
static void sources_add(Kernel *k, const Tasks *t, const Sources *from, Reg sum[][4])
{
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t h = 0; h < t->high; h++)
			for (uint32_t n = 0; n < 4; n++) {
				uint32_t c = h % 2 ? 3 - n : n;
				fma_to(k->e, sum[h][c], from->x[h][i], from->w[i][c]);
			}
}

/* Eight sources, of which the first four are loaded already: four are loaded while those before are added. more: there
 * are others after them. */
static void product_turn(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, Sources *const two[2], bool more,
                         Reg sum[][4])
{
	Emit *e = k->e;

	sources_load(k, s, t, a, b, 4, two[1]);
	sources_add(k, t, two[0], sum);
	ins(e, "add.u32 $, $, 32", a, a);
	ins(e, "add.u32 $, $, #", b, b, 8 * s->b_row * 4);
	if (more)
		sources_load(k, s, t, a, b, 0, two[0]);
	sources_add(k, t, two[1], sum);
}

/* Returns how many quads are done; a and b are then at the next source. */
static uint32_t product_pairs(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, uint32_t quads,
                              Reg sum[][4])
{
	Emit *e = k->e;
	uint32_t turns = quads / 2;
	Sources *two[2] = { sources_new(k), sources_new(k) };

	if (!turns)
		return 0;
	sources_load(k, s, t, a, b, 0, two[0]);
	uint32_t alike = quads % 2 ? turns : turns - 1; /* others follow */
	if (alike) {
		Loop l = loop_count(e, alike);
		product_turn(k, s, t, a, b, two, true, sum);
		loop_end(e, &l);
	}
	if (alike < turns)
		product_turn(k, s, t, a, b, two, false, sum);
	if (quads % 2) {
		sources_add(k, t, two[0], sum);
		ins(e, "add.u32 $, $, 16", a, a);
		ins(e, "add.u32 $, $, #", b, b, 4 * s->b_row * 4);
	}
	return quads;
}

/* ---- products that load a source ahead ---- */

/* Long products: operands of rows are loaded four sources ahead, some with each source, weights one source ahead.
 * Loads stay in order: see dense_rows. AHEAD_TURN quads without a jump, an even number: the assembler waits at the end
 * of a loop for what was loaded; many more would not fit into the caches of instructions. */
enum { AHEAD_TURN = 6 };
typedef struct Ahead {
	Reg x[2][MOST_HIGH][4], w[2][4];
} Ahead;

static Ahead *ahead_new(Kernel *k)
{
	Ahead *o = NEW(&k->s->cx->scratch, 1, Ahead);

	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t n = 0; n < 4; n++) {
			o->w[i][n] = reg(k->e, REG_F);
			for (uint32_t h = 0; h < MOST_HIGH; h++)
				o->x[i][h][n] = reg(k->e, REG_F);
		}
	return o;
}

/* Source `source` after a and b. more: there is a next one; four_more: there are others after its quad. */
static void source_turn(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, const Ahead *o, uint32_t source,
                        bool more, bool four_more, Reg sum[][4])
{
	Emit *e = k->e;
	uint32_t i = source % 4, set = source / 4 % 2, each = (uint32_t)ceil_div(t->high, 3);

	if (more)
		load_quad_to(e, "volatile.shared", o->w[(source + 1) % 2], b, (source + 1) * s->b_row * 4);
	for (uint32_t h = i * each; h < min_u32((i + 1) * each, t->high) && four_more; h++)
		load_quad_to(e, "volatile.shared", o->x[!set][h], a, h * t->groups * k->row + (source / 4 + 1) * 16);
	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t n = 0; n < 4; n++) {
			uint32_t c = h % 2 ? 3 - n : n;
			fma_to(e, sum[h][c], o->x[set][h][i], o->w[source % 2][c]);
		}
}

static uint32_t product_ahead(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, uint32_t quads,
                              Reg sum[][4])
{
	Emit *e = k->e;
	const Ahead *o = ahead_new(k);
	uint32_t turns = (quads - 1) / AHEAD_TURN, rest = quads - turns * AHEAD_TURN; /* others follow each turn */

	load_quad_to(e, "shared", o->w[0], b, 0);
	for (uint32_t h = 0; h < t->high; h++)
		load_quad_to(e, "shared", o->x[0][h], a, h * t->groups * k->row);
	sums_alternate(k, sum, t->high);
	Loop l = loop_count(e, turns);
	for (uint32_t i = 0; i < 4 * AHEAD_TURN; i++)
		source_turn(k, s, t, a, b, o, i, true, true, sum);
	ins(e, "add.u32 $, $, #", a, a, AHEAD_TURN * 16);
	ins(e, "add.u32 $, $, #", b, b, AHEAD_TURN * 16 * s->b_row);
	loop_end(e, &l);
	for (uint32_t i = 0; i < 4 * rest; i++)
		source_turn(k, s, t, a, b, o, i, i + 1 < 4 * rest, i / 4 + 1 < rest, sum);
	ins(e, "add.u32 $, $, #", a, a, rest * 16);
	ins(e, "add.u32 $, $, #", b, b, rest * 16 * s->b_row);
	return quads;
}

/* The same without a loop: the assembler knows best how far ahead to load. */
static uint32_t product_straight(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, uint32_t quads,
                                 Reg sum[][4])
{
	for (uint32_t i = 0; i < quads; i++) {
		Sources *from = sources_new(k);
		sources_load(k, s, t, a, b, 4 * i, from);
		sources_add(k, t, from, sum);
	}
	ins(k->e, "add.u32 $, $, #", a, a, quads * 16);
	ins(k->e, "add.u32 $, $, #", b, b, quads * 16 * s->b_row);
	return quads;
}

static void product_one(Kernel *k, const DeviceStep *s, const Tasks *t, Reg a, Reg b, uint32_t source, Reg sum[][4])
{
	Emit *e = k->e;
	Reg w[4];

	load_quad(e, "shared", w, b, source * s->b_row * 4);
	for (uint32_t h = 0; h < t->high; h++) {
		Reg x = load(e, REG_F, "ld.shared.f32", a, h * t->groups * k->row + source * 4);
		for (uint32_t n = 0; n < 4; n++)
			fma_to(e, sum[h][n], x, w[n]);
	}
}

static void product_task(Kernel *k, const DeviceStep *s, const Tasks *t, const Task *task)
{
	Emit *e = k->e;
	uint32_t depth = s->b == k->s->job->zero ? 0 : s->depth;
	Reg sum[MOST_HIGH][4], a = reg(e, REG_R), b = reg(e, REG_R);

	sums_begin(k, s, t, task, add(e, mad(e, task->quad, 16, task->row), imm(column_of(k, s->c, s->c_col))), sum);
	ins(e, "add.u32 $, $, #", a, row_flip(k, task->row, s->a), s->depth ? column_at(k, s->a, s->a_col) : 0);
	ins(e, "add.u32 $, $, #", b, mad(e, task->quad, 16, k->memory), depth ? weight_at(k, s->b) : 0);
	bool straight = k->next_steps ? depth <= 2 * STRAIGHT : depth <= STRAIGHT && t->high > 4;
	bool ahead = !k->overlaid && s->a_col % 4 == 0 && depth / 4 >= (gradients_are_long(k) ? 2 : 4) * AHEAD_TURN;
	uint32_t done = 4 * (straight ? product_straight
	                     : ahead  ? product_ahead
	                              : product_pairs)(k, s, t, a, b, depth / 4, sum);
	for (uint32_t i = done; i < depth; i++)
		product_one(k, s, t, a, b, i - done, sum);
	sums_end(k, s, t, task, sum);
}

/* Rows of a thread. Results that other blocks wait for go out in two rounds, beside gradients: those of the first are
 * under way while the second is computed. */
static uint32_t most_high(const Kernel *k, const DeviceStep *s)
{
	enum { HIGH_SENT = 3 };

	return k->regular && k->e->meeting && is_direct(k, s) ? HIGH_SENT : MOST_HIGH;
}

static void product_emit(Kernel *k, const DeviceStep *s)
{
	Tasks t = tasks_of(k, s->cols, s->depth, most_high(k, s));

	remark(k->e, "product %u x %u, a thread has %u rows by 4", s->depth, s->cols, t.high);
	for (uint32_t round = 0; round < t.rounds; round++) {
		Task task = task_begin(k, &t, round);
		product_task(k, s, &t, &task);
		task_end(k, &task);
	}
}

/* ---- products beside other work ---- */

/* Tiles with the least of work in all, adding products and loading them, that give a fourth of the warps something to
 * do. */
static Tasks tasks_beside(const Kernel *k, const DeviceStep *s)
{
	Tasks best = { 0 };
	uint32_t least = 0;

	for (uint32_t high = 1; high <= MOST_HIGH; high++) {
		Tasks t = { .quads = (uint32_t)ceil_div(s->cols, 4), .groups = (uint32_t)ceil_div(k->block_rows, high) };
		t.high = (uint32_t)ceil_div(k->block_rows, t.groups);
		t.blocks = t.quads > 1;
		tasks_count(k, &t);
		uint32_t warps = (uint32_t)ceil_div(t.all, 32), cost = warps * (16 * t.high + 4 + t.high);
		if (!least || (cost < least && warps > k->s->threads / 128)) {
			least = cost;
			best = t;
		}
	}
	return best;
}

uint32_t product_adds(const Kernel *k, const DeviceStep *s) { return 4 * tasks_beside(k, s).high * s->depth; }

uint32_t product_warps(const Kernel *k, const DeviceStep *s)
{
	Tasks t = tasks_beside(k, s);

	return (uint32_t)ceil_div(t.all, 32);
}

void product_part(Kernel *k, const DeviceStep *s, Reg warp)
{
	Emit *e = k->e;
	Tasks t = tasks_beside(k, s);

	remark(e, "product %u x %u, a thread has %u rows by 4, %u warps", s->depth, s->cols, t.high, product_warps(k, s));
	Task task = task_at(k, &t, mad(e, warp, 32, op2(e, REG_R, "and.b32", k->tid, imm(31))), UINT32_MAX);
	product_task(k, s, &t, &task);
	task_end(k, &task);
}

/* ---- index lists ---- */

static void index_task(Kernel *k, const DeviceStep *s, const Tasks *t, const Task *task)
{
	Emit *e = k->e;
	ListWeights of = list_weights(k, s, task->quad);
	Reg sum[MOST_HIGH][4];
	Reg list = add(e, mad(e, add(e, task->group, k->row0), k->list_row, k->memory), imm(k->at_lists));

	sums_begin(k, s, t, task, add(e, mad(e, task->quad, 16, task->row), imm(column_of(k, s->c, s->c_col))), sum);
	for (uint32_t j = 0; j < k->s->list_longest; j += 2)
		for (uint32_t h = 0; h < t->high; h++) {
			Reg pair = load(e, REG_R, "ld.shared.u32", list, h * t->groups * k->list_row + 2 * j), w[2][4];
			uint32_t n = j + 1 < k->s->list_longest ? 2 : 1;
			for (uint32_t i = 0; i < n; i++)
				list_weights_load(k, &of, pair, i, w[i]);
			for (uint32_t i = 0; i < n; i++)
				for (uint32_t c = 0; c < 4; c++)
					ins(e, "add.rn.ftz.f32 $, $, $", sum[h][c], w[i][c], sum[h][c]);
		}
	sums_end(k, s, t, task, sum);
}

static Tasks index_tasks(const Kernel *k, const DeviceStep *s)
{
	uint32_t quads = (uint32_t)ceil_div(s->cols, 4), power = 1;
	Tasks t = { .quads = quads, .high = k->next_steps ? 4 : 1 };

	while (power < quads)
		power *= 2;
	if (power > quads && power <= 32 && power - quads <= power / 8) { /* rows of a warp then meet in no bank */
		t.quads = power;
		t.real = quads;
	}
	while (t.high < 4 && ceil_div(k->block_rows, t.high) * t.quads > k->s->threads)
		t.high++;
	t.groups = (uint32_t)ceil_div(k->block_rows, t.high);
	t.high = (uint32_t)ceil_div(k->block_rows, t.groups);
	tasks_count(k, &t);
	return t;
}

static void index_emit(Kernel *k, const DeviceStep *s)
{
	Tasks t = index_tasks(k, s);

	remark(k->e, "index lists, %u columns, a thread has %u rows by 4", s->cols, t.high);
	for (uint32_t round = 0; round < t.rounds; round++) {
		Task task = task_begin(k, &t, round);
		index_task(k, s, &t, &task);
		task_end(k, &task);
	}
}

uint32_t index_warps(const Kernel *k, const DeviceStep *s)
{
	Tasks t = index_tasks(k, s);

	return (uint32_t)ceil_div(t.all, 32);
}

void index_part(Kernel *k, const DeviceStep *s, Reg warp)
{
	Tasks t = index_tasks(k, s);

	remark(k->e, "index lists, %u columns, a thread has %u rows by 4, %u warps", s->cols, t.high, index_warps(k, s));
	Task task = task_at(k, &t, mad(k->e, warp, 32, op2(k->e, REG_R, "and.b32", k->tid, imm(31))), UINT32_MAX);
	index_task(k, s, &t, &task);
	task_end(k, &task);
}

/* ---- columns one by one ---- */

typedef struct Column {
	Reg at, n; /* address of column 0 of its row; number */
	Loop loop;
	uint32_t end;
} Column;

/* for each of the block's rows and `cols` columns */
static Column column_begin(Kernel *k, uint32_t cols)
{
	Emit *e = k->e;
	uint32_t all = k->block_rows * cols;
	Column c = { .loop = loop_begin(e, k->tid, imm(all), k->s->threads) };
	Reg row = divide(e, c.loop.i, cols);

	c.n = modulo(e, c.loop.i, cols, row);
	c.at = mad(e, c.n, 4, add(e, mad(e, row, k->row, k->memory), imm(k->at_rows)));
	return c;
}

static Reg column_load(Kernel *k, const Column *c, uint32_t buf, uint32_t col)
{
	return load(k->e, REG_F, "ld.shared.f32", c->at, column_at(k, buf, col));
}

static void column_store(Kernel *k, const Column *c, uint32_t buf, uint32_t col, Reg v)
{
	ins(k->e, "st.shared.f32 [$+#], $", c->at, column_at(k, buf, col), v);
}

static void units_emit(Kernel *k, const DeviceStep *s)
{
	if (s->fn == FN_SOFTMAX) {
		softmax_emit(k, s);
		return;
	}
	remark(k->e, "units of %u columns", s->cols);
	Column c = column_begin(k, s->cols);
	column_store(k, &c, s->c, s->c_col, unit_value(k->e, s->fn, column_load(k, &c, s->a, s->a_col)));
	loop_end(k->e, &c.loop);
}

static void deltas_emit(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;

	if (s->fn == FN_SOFTMAX) {
		softmax_deltas_emit(k, s);
		return;
	}
	remark(e, "deltas of %u columns", s->cols);
	Column c = column_begin(k, s->cols);
	Reg out = column_load(k, &c, s->a, s->c_col), net = s->keeps_net ? column_load(k, &c, BUF_NET, s->c_col) : out;
	Reg slope = op2(e, REG_F, "add.rn.ftz.f32", unit_slope(e, s->fn, net, out), imm_f(s->offset));
	column_store(k, &c, s->c, s->c_col, op2(e, REG_F, "mul.rn.ftz.f32", column_load(k, &c, s->c, s->c_col), slope));
	loop_end(e, &c.loop);
}

static void error_columns(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Column c = column_begin(k, s->cols);
	Reg v = imm_f(0);

	if (s->kind != STEP_ZERO)
		v = column_load(k, &c, BUF_ERROR, s->c_col);
	if (s->kind == STEP_ADD_ERROR)
		v = op2(e, REG_F, "add.rn.ftz.f32", column_load(k, &c, BUF_DELTA, s->c_col), v);
	column_store(k, &c, s->kind == STEP_ZERO ? s->c : BUF_DELTA, s->c_col, v);
	loop_end(e, &c.loop);
}

static void load_emit(Kernel *k)
{
	if (!k->early) {
		inputs_stage(k);
		ins(k->e, "cp.async.wait_all");
	}
	ones_emit(k);
}

void row_step(Kernel *k, const DeviceStep *s)
{
	switch (s->kind) {
	case STEP_LOAD: load_emit(k); break;
	case STEP_PRODUCT: product_emit(k, s); break;
	case STEP_INDEX: index_emit(k, s); break;
	case STEP_UNITS: units_emit(k, s); break;
	case STEP_ONE: one_emit(k, s->c_col); break;
	case STEP_ERRORS: errors_emit(k, s); break;
	case STEP_ZERO:
	case STEP_COPY_ERROR:
	case STEP_ADD_ERROR: error_columns(k, s); break;
	case STEP_DELTAS: deltas_emit(k, s); break;
	}
}

/* Sums of code words read it as an output of 0. */
static void padding_clear(Kernel *k)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, imm(k->block_rows), k->s->threads);

	ins(e, "st.shared.f32 [$+#], 0f00000000", mad(e, l.i, k->row, k->memory), k->at_rows + k->row - 16);
	loop_end(e, &l);
}

/* Verdicts come last: others wait for deltas. */
void steps_emit(Kernel *k, uint32_t first, uint32_t end)
{
	const EmitSource *s = k->s;

	if (s->job->data.code_count && !k->deferred_scores)
		padding_clear(k);
	if (s->job->data.from && first == 0) /* else when inputs are loaded */
		ones_emit(k);
	for (uint32_t i = first; i < end; i++) {
		const DeviceStep *d = &s->step[i];
		if (d->kind == STEP_MARK || d->kind == STEP_SCORES || d->kind == STEP_CODES || is_deferred(k, d) ||
		    (d->kind == STEP_ONE && k->next_steps) || (d->kind == STEP_LOAD && load_is_done(k)))
			continue;
		row_step(k, d);
		if (d->kind != STEP_ONE)
			barrier_block(k->e);
		spent(k, SPENT_KINDS + 1 + min_u32(i, 25));
	}
}
