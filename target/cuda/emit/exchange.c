/* SPDX-License-Identifier: MIT */
/* What blocks of a team exchange for the gradient: columns of the leaf's rows, through global memory.
 *
 * An operand of a gradient is a region, [part][row][quads of a part]: a part for each block that reads it, so that it
 * is one piece of memory for its reader. Products store their results there themselves (direct), if nothing changes
 * them afterwards; rows_exchange stores the rest. Pieces of operands are staged in shared memory, by threads or by
 * copies of the device. */
#include "emit.h"

/* ---- plan ---- */

/* The buffer that a product or sum of index lists leaves its results in. */
uint32_t result_buffer(const Kernel *k, const DeviceStep *s)
{
	const DeviceStep *late = deferred_errors(k, s);

	return late ? late->c : s->kind == STEP_PRODUCT && s->after == AFTER_UNITS ? BUF_ACT : s->c;
}

static bool overlaps(uint32_t a, uint32_t a_count, uint32_t b, uint32_t b_count)
{
	return a < b + b_count && b < a + a_count;
}

uint32_t last_writer(const Kernel *k, uint32_t buf, uint32_t col, uint32_t count)
{
	uint32_t last = NO_STEP;

	for (uint32_t i = 0; i < k->s->list->gradient; i++) {
		Access a[8];
		uint32_t n = step_access(k, &k->s->step[i], a);
		for (uint32_t x = 0; x < n; x++)
			if (a[x].writes && a[x].buf == buf && overlaps(a[x].col, a[x].count, col, count))
				last = i;
	}
	return last;
}

/* Does any other step use these columns? */
static bool is_shared(const Kernel *k, uint32_t step, uint32_t buf, uint32_t col, uint32_t count)
{
	for (uint32_t i = 0; i < k->s->list->steps; i++) {
		Access a[8];
		uint32_t n = step_access(k, &k->s->step[i], a);
		for (uint32_t x = 0; x < n && i != step; x++)
			if (a[x].buf == buf && overlaps(a[x].col, a[x].count, col, count))
				return true;
	}
	return false;
}

/* Quads that a product can store itself: full ones, and the last if the rest of it is padding. */
static uint32_t own_quads(const Kernel *k, const DeviceStep *s)
{
	uint32_t end = (uint32_t)round_up(s->cols, 4), i = (uint32_t)(s - k->s->step);

	return s->cols % 4 && is_shared(k, i, result_buffer(k, s), s->c_col + s->cols, end - s->cols) ? s->cols / 4
	                                                                                              : end / 4;
}

uint32_t padded_columns(const Kernel *k, const DeviceStep *s) { return max_u32(s->cols, 4 * own_quads(k, s)); }

static bool is_region(const Kernel *k, uint32_t buf, uint32_t col, uint32_t count)
{
	for (uint32_t i = 0; i < k->exchanges; i++) {
		const Exchange *x = &k->exchanged[i];
		if (x->buf == buf && overlaps(x->col, 4 * x->quads, col, count))
			return true;
	}
	return false;
}

/* All or none of its quads. */
bool is_direct(const Kernel *k, const DeviceStep *s)
{
	uint32_t buf = result_buffer(k, s), quads, i = (uint32_t)(s - k->s->step);

	if ((s->kind != STEP_PRODUCT && s->kind != STEP_INDEX) || s->c_col % 4 || buf >= BUFS || k->s->test || k->local ||
	    k->s->tiled || k->s->general)
		return false;
	quads = own_quads(k, s);
	for (uint32_t q = 0; q < quads; q++)
		if (last_writer(k, buf, s->c_col + 4 * q, 4) != i)
			return false;
	return quads && is_region(k, buf, s->c_col, 4 * quads);
}

bool stored_direct(const Kernel *k, uint32_t buf, uint32_t col)
{
	uint32_t last = last_writer(k, buf, col, 4);
	const DeviceStep *s = &k->s->step[last];

	return last != NO_STEP && is_direct(k, s) && result_buffer(k, s) == buf && col >= s->c_col &&
	       col < s->c_col + 4 * own_quads(k, s);
}

bool only_exchanged(const Kernel *k, const DeviceStep *s)
{
	uint32_t buf;

	if (!is_direct(k, s) || own_quads(k, s) * 4 < s->cols)
		return false;
	buf = result_buffer(k, s);
	for (uint32_t i = 0; i < k->s->list->steps; i++) {
		Access a[8];
		uint32_t n = step_access(k, &k->s->step[i], a);
		if (i >= k->s->list->gradient && !k->cut[i - k->s->list->gradient].inlined)
			continue;
		for (uint32_t x = 0; x < n; x++)
			if (!a[x].writes && a[x].buf == buf && overlaps(a[x].col, a[x].count, s->c_col, s->cols))
				return false;
	}
	return s->kind != STEP_PRODUCT || s->after != AFTER_UNITS || s->c == BUF_ACT || deferred_errors(k, s);
}

/* Rows of a region: some more, which are read in vain. */
static uint32_t rows_turn(const Kernel *k) { return rings(k) ? BULK_TURN : ROWS_TURN; }
static uint64_t region_rows(const Kernel *k) { return round_up(k->s->leaf_rows, rows_turn(k)); }
static uint64_t part_bytes(const Kernel *k, const Exchange *x) { return region_rows(k) * x->part * 16; }
static uint64_t region_bytes(const Kernel *k, const Exchange *x)
{
	return ceil_div(x->quads, x->part) * part_bytes(k, x);
}

static uint64_t regions_bytes(const Kernel *k)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < k->exchanges; i++)
		bytes += region_bytes(k, &k->exchanged[i]);
	return bytes;
}

static bool region_add(Kernel *k, uint32_t buf, uint32_t col, uint32_t count, uint32_t part, uint32_t *number)
{
	Exchange x = { buf, col, (uint32_t)ceil_div(count, 4), part, regions_bytes(k) };

	for (uint32_t i = 0; i < k->exchanges; i++) {
		const Exchange *o = &k->exchanged[i];
		if (o->buf == buf && o->col == col && o->quads == x.quads && o->part == part) {
			*number = i;
			return true;
		}
	}
	if (k->exchanges == MOST_EXCHANGES || col % 4)
		return false;
	*number = k->exchanges;
	k->exchanged[k->exchanges++] = x;
	return true;
}

bool plan_exchange(Kernel *k)
{
	const EmitSource *s = k->s;

	for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
		const DeviceStep *g = &s->step[i];
		GradientCut *c = &k->cut[i - s->list->gradient];
		bool dense = g->kind == STEP_GRADIENT;
		if (c->inlined && g->a_col % 4 == 0 && g->c_col % 4 == 0)
			continue;
		if (dense && (!c->straight || c->across_x) &&
		    !region_add(k, g->a, g->a_col, g->depth, (uint32_t)ceil_div(c->rows, 4), &c->from_a))
			return false;
		if (!c->across_x && !region_add(k, dense ? g->c : BUF_DELTA, g->c_col, matrix_cols(k, g), c->quads, &c->from_b))
			return false;
	}
	return true;
}

/* Quads of a row of inputs of cases that a block has for a gradient. */
static uint32_t inputs_quads(const Kernel *k, uint32_t gradient)
{
	const GradientCut *c = &k->cut[gradient];

	return !c->straight ? 0 : c->across_x ? c->quads : a_quads(&k->s->step[k->s->list->gradient + gradient], c);
}

/* Blocks may begin the next update while others read rows of this one. */
static uint64_t buffers_bytes(const Kernel *k) { return regions_bytes(k) * (k->posts ? 2 : 1); }

/* Where they are, for copies of the device: behind the regions, [gradient][block][row][quad]. */
static uint64_t inputs_at(const Kernel *k, uint32_t gradient)
{
	uint64_t bytes = buffers_bytes(k);

	for (uint32_t i = 0; i < gradient && k->bulk; i++)
		bytes += k->s->team_blocks * region_rows(k) * inputs_quads(k, i) * 16;
	return bytes;
}

uint64_t exchange_bytes(const Kernel *k) { return inputs_at(k, k->s->list->steps - k->s->list->gradient); }

static Reg exchange_of_team(Kernel *k)
{
	return place(k->e, POINTER(k, exchange), k->team, (uint32_t)exchange_bytes(k));
}

void exchange_begin(Kernel *k)
{
	Emit *e = k->e;

	if (!k->posts) {
		k->exchange = exchange_of_team(k);
		return;
	}
	Reg odd = number_is_odd(k);
	ins(e, "mov.u64 $, $", k->exchange, place(e, exchange_of_team(k), odd, (uint32_t)regions_bytes(k)));
}

/* Address of row `row` of a part. */
Reg exchange_address(Kernel *k, uint32_t region, Reg part, Reg row)
{
	const Exchange *x = &k->exchanged[region];
	Reg at = place(k->e, place_at(k->e, k->exchange, x->at), part, (uint32_t)part_bytes(k, x));

	return place(k->e, at, row, x->part * 16);
}

/* ---- stores ---- */

/* Address of quad `quad` of a region, in row `row`. */
static Reg quad_address(Kernel *k, uint32_t region, Reg quad, Reg row)
{
	const Exchange *x = &k->exchanged[region];
	Reg part = divide(k->e, quad, x->part);

	return place(k->e, exchange_address(k, region, part, row), modulo(k->e, quad, x->part, part), 16);
}

void outward_begin(Kernel *k, const DeviceStep *s, Reg quad, Reg row, Outward *o)
{
	Emit *e = k->e;
	uint32_t buf = result_buffer(k, s), own;

	o->regions = 0;
	if (!is_direct(k, s))
		return;
	own = own_quads(k, s);
	for (uint32_t i = 0; i < k->exchanges; i++) {
		const Exchange *x = &k->exchanged[i];
		if (x->buf != buf || !overlaps(x->col, 4 * x->quads, s->c_col, 4 * own))
			continue;
		uint32_t n = o->regions++, before = x->col > s->c_col ? (x->col - s->c_col) / 4 : 0;
		uint32_t after = x->col < s->c_col ? (s->c_col - x->col) / 4 : 0; /* quads of the region before the step's */
		uint32_t quads = min_u32(own - before, x->quads - after);
		Reg mine = add(e, quad, imm(after));
		if (before)
			mine = op2(e, REG_R, "sub.u32", mine, imm(before));
		o->all[n] = !before && quads * 4 >= s->cols;
		if (!o->all[n]) {
			o->has[n] = less(e, op2(e, REG_R, "sub.u32", quad, imm(before)), imm(quads));
			mine = op3(e, REG_R, "selp.u32", mine, imm(0), o->has[n]);
		}
		o->at[n] = quad_address(k, i, mine, add(e, k->row0, row));
		o->pitch[n] = x->part * 16;
	}
}

void outward_store(Kernel *k, const Outward *o, Reg row, uint32_t rows, const Reg v[4])
{
	Emit *e = k->e;
	Reg is_row = less(e, add(e, row, imm(rows)), k->my_rows);

	for (uint32_t n = 0; n < o->regions; n++)
		ins(e, "@$ st.global.v4.f32 [$+#], {$, $, $, $}",
		    o->all[n] ? is_row : op2(e, REG_P, "and.pred", is_row, o->has[n]), o->at[n], rows * o->pitch[n], v[0], v[1],
		    v[2], v[3]);
}

/* Quads first .. first + count - 1 of a region. */
static void quads_exchange(Kernel *k, uint32_t region, uint32_t first, uint32_t count)
{
	Emit *e = k->e;
	const Exchange *x = &k->exchanged[region];
	Loop l = loop_begin(e, k->tid, imm(k->block_rows * count), k->s->threads);
	Reg row = divide(e, l.i, count), quad = modulo(e, l.i, count, row), v[4];
	uint32_t end = if_begin(e, less(e, row, k->my_rows));

	load_quad(e, "shared", v, mad(e, row, k->row, mad(e, quad, 16, k->memory)),
	          k->at_rows + column_at(k, x->buf, x->col + 4 * first));
	store_quad(e, "global", quad_address(k, region, add(e, quad, imm(first)), add(e, k->row0, row)), 0, v);
	if_end(e, end);
	loop_end(e, &l);
}

void rows_exchange(Kernel *k, bool ahead)
{
	for (uint32_t i = 0; i < k->exchanges; i++) {
		const Exchange *x = &k->exchanged[i];
		for (uint32_t q = 0; q < x->quads && plans_ahead(k, i) == ahead;) { /* runs that rows have side by side */
			uint32_t run = 0;
			while (q + run < x->quads && !stored_direct(k, x->buf, x->col + 4 * (q + run)) &&
			       column_at(k, x->buf, x->col + 4 * (q + run)) == column_at(k, x->buf, x->col + 4 * q) + 16 * run)
				run++;
			if (run) {
				remark(k->e, "exchange of %u quads", run);
				quads_exchange(k, i, q, run);
			}
			q += max_u32(run, 1);
		}
	}
}

/* ---- staging: operands of gradients in shared memory ---- */

/* Those that are ahead have threads and a time of their own. */
bool gradient_takes(const Kernel *k, uint32_t gradient) { return k->cut[gradient].ahead == k->is_ahead; }

/* Rows of zeros up to a full turn of rows. */
static void rows_pad(Kernel *k, uint32_t bytes, Reg to, Reg rows)
{
	Emit *e = k->e;
	Reg full = op2(e, REG_R, "and.b32", add(e, rows, imm(ROWS_TURN - 1)), imm(~(uint32_t)(ROWS_TURN - 1)));
	Loop pad = loop_begin(e, add(e, mul(e, rows, bytes), mul(e, k->tid, 16)), mul(e, full, bytes), k->workers * 16);

	ins(e, "st.shared.v4.f32 [$], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", add(e, to, pad.i));
	loop_end(e, &pad);
}

/* Rows row0 .. row0 + rows - 1 of a part, which are one piece of memory. */
static void part_stage(Kernel *k, uint32_t region, Reg part, Reg to, Reg row0, Reg rows)
{
	Emit *e = k->e;
	uint32_t bytes = k->exchanged[region].part * 16, turn = k->workers * 16, most = k->piece * bytes;
	Reg from = place(e, exchange_address(k, region, part, row0), k->tid, 16), at = mad(e, k->tid, 16, to);
	Reg mine = reg(e, REG_R); /* bytes from this thread's first quad to the end; not positive: none */

	ins(e, "sub.s32 $, $, $", mine, mul(e, rows, bytes), mul(e, k->tid, 16));
	for (uint32_t done = 0; done < most; done += turn)
		ins(e, "@$ cp.async.cg.shared.global [$+#], [$+#], 16", op2(e, REG_P, "setp.gt.s32", mine, imm(done)), at, done,
		    from, done);
	rows_pad(k, bytes, to, rows);
}

/* The same of inputs of cases: `quads` of them, from the quad `first` of the matrix on. Lanes that are a power of
 * two have a row, so that a thread has the same quad of all its rows. */
static void inputs_part_stage(Kernel *k, const GradientCut *c, Reg first, uint32_t quads, Reg to, Reg row0, Reg rows)
{
	Emit *e = k->e;
	enum { UNROLLED = 8 };
	const DeviceData *d = &k->s->job->data;
	uint32_t lanes = 1;

	while (lanes < quads && lanes < 32)
		lanes *= 2;
	uint32_t together = k->workers / lanes, turns = (uint32_t)ceil_div(quads, lanes);
	for (uint32_t turn = 0; turn < turns; turn++) {
		Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(lanes - 1)), own = add(e, lane, imm(turn * lanes));
		Reg quad = add(e, add(e, first, imm(c->x / 4)), own), row = divide(e, k->tid, lanes);
		Reg from = place(e, POINTER(k, data.x), quad, 16), at = mad(e, row, quads * 16, mad(e, own, 16, to));
		Reg has = op2(e, REG_P, "and.pred", less(e, own, imm(quads)), less(e, quad, imm(d->x_row / 4)));
		Reg last = op3(e, REG_R, "selp.u32", rows, imm(0), has); /* rows of the thread */
		Reg numbers = mad(e, add(e, row0, row), 4, k->memory), number[UNROLLED], is[UNROLLED];
		if (k->workers % lanes)
			last = op3(e, REG_R, "selp.u32", last, imm(0), less(e, row, imm(together)));
		for (uint32_t begin = 0; begin < k->piece; begin += together * UNROLLED) {
			uint32_t n = (uint32_t)min_u64(ceil_div(k->piece - begin, together), UNROLLED);
			for (uint32_t i = 0; i < n; i++) {
				is[i] = less(e, add(e, row, imm(begin + i * together)), last);
				number[i] = op1(e, REG_R, "mov.u32", imm(0));
				ins(e, "@$ ld.shared.u32 $, [$+#]", is[i], number[i], numbers,
				    k->at_cases + (begin + i * together) * 4);
			}
			for (uint32_t i = 0; i < n; i++)
				ins(e, "@$ cp.async.cg.shared.global [$+#], [$], 16", is[i], at, (begin + i * together) * quads * 16,
				    place(e, from, number[i], d->x_row * 4));
		}
	}
	rows_pad(k, quads * 16, to, rows);
}

/* The row of -0 that lists are filled up with. */
static void pads_stage(Kernel *k, const GradientCut *c)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, imm(c->quads), k->workers);

	ins(e, "st.shared.v4.f32 [$+#], {0f80000000, 0f80000000, 0f80000000, 0f80000000}", mad(e, l.i, 16, k->memory),
	    c->at_b + k->csc_pad * c->quads * 16);
	loop_end(e, &l);
}

Range range_of(Kernel *k, const GradientCut *c)
{
	Emit *e = k->e;

	if (c->run) /* quads of two blocks may overlap */
		return (Range){ imm(0), k->member, imm(0),
			            mul(e, divide(e, mul(e, k->member, c->run / 4), (uint32_t)ceil_div(cut_groups(c), 2)), 2),
			            less(e, k->member, imm(c->across)) };
	Reg down = divide(e, k->member, c->across), across = modulo(e, k->member, c->across, down);

	return (Range){ down, across, mul(e, down, c->rows), mul(e, across, c->quads), less(e, down, imm(c->down)) };
}

/* Inputs of cases of gradients begin .. end_step - 1, `offset` bytes behind those of the first piece; under way. */
void inputs_parts_stage(Kernel *k, uint32_t begin, uint32_t end_step, Reg row0, Reg rows, Reg offset)
{
	Emit *e = k->e;

	for (uint32_t i = begin; i < end_step; i++) {
		const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
		const GradientCut *c = &k->cut[i];
		if (!gradient_takes(k, i) || !c->straight)
			continue;
		Range r = range_of(k, c);
		uint32_t end = if_begin(e, r.is_mine);
		Reg to = add(e, add(e, k->memory, imm(c->across_x ? c->at_b : c->at_a)), offset);
		inputs_part_stage(k, c, c->across_x ? r.quad : mul(e, r.down, c->rows / 4),
		                  c->across_x ? c->quads : a_quads(g, c), to, row0, rows);
		if_end(e, end);
	}
}

/* Their other operands. */
void piece_stage(Kernel *k, uint32_t begin, uint32_t end_step, Reg row0, Reg rows, Reg offset)
{
	Emit *e = k->e;

	for (uint32_t i = begin; i < end_step; i++) {
		const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
		const GradientCut *c = &k->cut[i];
		if (!gradient_takes(k, i))
			continue;
		Range r = range_of(k, c);
		uint32_t end = if_begin(e, r.is_mine);
		Reg a = add(e, add(e, k->memory, imm(c->at_a)), offset), b = add(e, add(e, k->memory, imm(c->at_b)), offset);
		if (g->kind == STEP_GRADIENT && (!c->straight || c->across_x))
			part_stage(k, c->from_a, r.down, a, row0, rows);
		if (!c->across_x)
			part_stage(k, c->from_b, r.across, b, row0, rows);
		if (g->kind == STEP_GRADIENT_INDEX)
			pads_stage(k, c);
		if_end(e, end);
	}
	ins(e, "cp.async.commit_group");
}

/* ---- copies of the device, counted at barriers in shared memory (mbarrier) ---- */

enum { MOST_POLLS = 1 << 24 };

static void bar_new(Kernel *k, Reg bar, uint32_t arrivals)
{
	ins(k->e, "mbarrier.init.shared.b64 [$], #", bar, arrivals);
}

void bulk_expect(Kernel *k, Reg bar, Reg bytes)
{
	ins(k->e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], $", bar, bytes);
}

static void warp_arrives(Kernel *k, Reg bar)
{
	Emit *e = k->e;

	ins(e, "bar.warp.sync 0xffffffff");
	uint32_t other = if_begin(e, same(e, op2(e, REG_R, "and.b32", k->tid, imm(31)), imm(0)));
	ins(e, "mbarrier.arrive.shared.b64 _, [$]", bar);
	if_end(e, other);
}

void bulk_wait(Kernel *k, Reg bar, Reg parity)
{
	Emit *e = k->e;
	uint32_t top = label(e), done = label(e);
	Reg polls = op1(e, REG_R, "mov.u32", imm(0)), is = reg(e, REG_P);

	label_here(e, top);
	ins(e, "mbarrier.try_wait.parity.shared.b64 $, [$], $", is, bar, parity);
	ins(e, "@$ bra L#", is, done);
	ins(e, "add.u32 $, $, 1", polls, polls);
	ins(e, "@$ bra L#", less(e, polls, imm(MOST_POLLS)), top);
	ins(e, "trap"); /* some block has failed */
	label_here(e, done);
}

void bulk_copy(Kernel *k, Reg to, Reg from, Reg bytes, Reg bar)
{
	ins(k->e, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$], [$], $, [$]", to, from, bytes,
	    bar);
}

void bulk_fence(Kernel *k, bool global) { ins(k->e, global ? "fence.proxy.async" : "fence.proxy.async.shared::cta"); }

/* ---- staging by these ---- */

static uint32_t gradient_count(const Kernel *k) { return k->s->list->steps - k->s->list->gradient; }

/* Address of row `row` of a block's inputs of cases. */
static Reg inputs_address(Kernel *k, uint32_t gradient, Reg row)
{
	uint32_t bytes = inputs_quads(k, gradient) * 16;
	Reg own = place(k->e, place_at(k->e, exchange_of_team(k), inputs_at(k, gradient)), k->member,
	                (uint32_t)region_rows(k) * bytes);

	return place(k->e, own, row, bytes);
}

/* The first quad of these in the data. */
static Reg inputs_first(Kernel *k, const GradientCut *c, const Range *r)
{
	return add(k->e, c->across_x ? r->quad : mul(k->e, r->down, c->rows / 4), imm(c->x / 4));
}

/* Rows past the last are 0. */
static void inputs_keep(Kernel *k, uint32_t gradient)
{
	Emit *e = k->e;
	const GradientCut *c = &k->cut[gradient];
	const DeviceData *d = &k->s->job->data;
	uint32_t quads = inputs_quads(k, gradient);
	Range r = range_of(k, c);
	uint32_t end = if_begin(e, r.is_mine);
	Reg first = inputs_first(k, c, &r), to = inputs_address(k, gradient, imm(0));
	Loop l = loop_begin(e, k->tid, imm((uint32_t)region_rows(k) * quads), k->s->threads);
	Reg row = divide(e, l.i, quads), quad = add(e, first, modulo(e, l.i, quads, row)), v[4];
	Reg has = op2(e, REG_P, "and.pred", less(e, row, k->rows), less(e, quad, imm(d->x_row / 4)));
	Reg number = op1(e, REG_R, "mov.u32", imm(0));

	ins(e, "@$ ld.shared.u32 $, [$+#]", has, number, mad(e, row, 4, k->memory), k->at_cases);
	for (uint32_t i = 0; i < 4; i++)
		v[i] = op1(e, REG_F, "mov.f32", imm_f(0));
	ins(e, "@$ ld.global.nc.v4.f32 {$, $, $, $}, [$]", has, v[0], v[1], v[2], v[3],
	    place(e, place(e, POINTER(k, data.x), number, d->x_row * 4), quad, 16));
	store_quad(e, "global", place(e, to, l.i, 16), 0, v);
	loop_end(e, &l);
	if_end(e, end);
}

/* Rows of a region past those of the leaf: 0. */
static void region_pad(Kernel *k, uint32_t region)
{
	Emit *e = k->e;
	const Exchange *x = &k->exchanged[region];
	uint32_t all = (uint32_t)round_up(x->quads, x->part);
	Reg past = op2(e, REG_R, "sub.u32", imm((uint32_t)region_rows(k)), k->rows);
	Loop l = loop_begin(e, k->tid, mul(e, past, all), k->s->threads);
	Reg row = divide(e, l.i, all), column = modulo(e, l.i, all, row), part = divide(e, column, x->part);

	ins(e, "st.global.v4.f32 [$], {0f00000000, 0f00000000, 0f00000000, 0f00000000}",
	    place(e, exchange_address(k, region, part, add(e, k->rows, row)), modulo(e, column, x->part, part), 16));
	loop_end(e, &l);
}

/* Rows past the last of a leaf. Of the buffer of this update: others have read what it held (teams_poll of the update
 * before). A leaf that is not the one before is another one in every update, so that each buffer gets its own; in the
 * first update both do, for a leaf that stays. */
static void regions_pad(Kernel *k)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < k->exchanges; i++)
		region_pad(k, i);
	if (!k->posts)
		return;
	uint32_t other = if_begin(e, op2(e, REG_P, "setp.eq.u64", k->number, imm(0)));
	Kernel next = *k;
	next.exchange = place_at(e, k->exchange, regions_bytes(k));
	for (uint32_t i = 0; i < k->exchanges; i++)
		region_pad(&next, i);
	if_end(e, other);
}

void bulk_begin(Kernel *k)
{
	Emit *e = k->e;

	remark(e, "inputs for the gradient");
	for (uint32_t i = 0; i < gradient_count(k); i++)
		if (k->cut[i].straight)
			inputs_keep(k, i);
	bulk_fence(k, true); /* once for a leaf; the copies that read these inputs are made in every update */
	uint32_t other = if_begin(e, same(e, k->member, imm(0)));
	regions_pad(k);
	if_end(e, other);
}

/* Rows of an operand at `at` of the first place, if the block has a part of it. */
static void rows_bulk(Kernel *k, Reg is, uint32_t at, uint32_t quads, Reg from, Reg rows, Reg bar)
{
	uint32_t end = if_begin(k->e, is);

	bulk_copy(k, add(k->e, add(k->e, k->memory, imm(at)), place_offset(k)), from, mul(k->e, rows, quads * 16), bar);
	if_end(k->e, end);
}

static void inputs_parts_bulk(Kernel *k, Reg row0, Reg rows, Reg bar)
{
	for (uint32_t i = 0; i < gradient_count(k); i++) {
		const GradientCut *c = &k->cut[i];
		if (gradient_takes(k, i) && c->straight)
			rows_bulk(k, range_of(k, c).is_mine, c->across_x ? c->at_b : c->at_a, inputs_quads(k, i),
			          inputs_address(k, i, row0), rows, bar);
	}
}

static void piece_bulk(Kernel *k, Reg row0, Reg rows, Reg bar)
{
	for (uint32_t i = 0; i < gradient_count(k); i++) {
		const GradientCut *c = &k->cut[i];
		if (!gradient_takes(k, i))
			continue;
		Range r = range_of(k, c);
		if (!c->straight || c->across_x)
			rows_bulk(k, r.is_mine, c->at_a, a_quads(&k->s->step[k->s->list->gradient + i], c),
			          exchange_address(k, c->from_a, r.down, row0), rows, bar);
		if (!c->across_x)
			rows_bulk(k, r.is_mine, c->at_b, c->quads, exchange_address(k, c->from_b, r.across, row0), rows, bar);
	}
}

static Reg bulk_bytes(Kernel *k, Reg rows)
{
	Emit *e = k->e;
	Reg quads = op1(e, REG_R, "mov.u32", imm(0));

	for (uint32_t i = 0; i < gradient_count(k); i++) {
		const GradientCut *c = &k->cut[i];
		uint32_t own = a_quads(&k->s->step[k->s->list->gradient + i], c) + c->quads;
		if (gradient_takes(k, i))
			quads = add(e, quads, op3(e, REG_R, "selp.u32", imm(own), imm(0), range_of(k, c).is_mine));
	}
	return mul(e, op2(e, REG_R, "mul.lo.u32", quads, rows), 16);
}

/* ---- a ring of pieces of operands ----
 *
 * Of each place, a barrier that counts the bytes of a piece, and one at which warps arrive that have added it. Places
 * are taken in turns, also by pieces of the next leaf: the thread that copies and those that add go through them
 * alike. */

bool rings(const Kernel *k) { return k->s->bulk && any_straight(k); }
bool in_ring(const Kernel *k) { return k->bulk && k->stagers && k->next_at; }
uint32_t bars_bytes(const Kernel *k) { return k->s->bulk ? MOST_PLACES * PLACE_BARS * 8 : 0; }

static Reg place_number(Kernel *k) { return op2(k->e, REG_R, "and.b32", k->ring.next, imm(0xffff)); }

Reg place_bar(Kernel *k, uint32_t bar)
{
	return add(k->e, add(k->e, k->memory, place_number(k)), imm(k->ring.at_bars + bar * MOST_PLACES * 8));
}

Reg place_parity(Kernel *k) { return op2(k->e, REG_R, "shr.u32", k->ring.next, imm(31)); }
Reg place_offset(Kernel *k) { return mul(k->e, place_number(k), k->next_at / 8); }

Reg rows_bar(Kernel *k) { return add(k->e, k->memory, imm(k->at_rows_bar)); }

/* By one thread; warps: that add pieces. */
static void ring_bars(Kernel *k, const Ring *r, uint32_t places, uint32_t warps)
{
	for (uint32_t i = 0; i < places * PLACE_BARS; i++)
		bar_new(k, add(k->e, k->memory, imm(r->at_bars + (i % PLACE_BARS * MOST_PLACES + i / PLACE_BARS) * 8)),
		        i % PLACE_BARS == BAR_FULL ? 1 : warps);
}

void bulk_bars(Kernel *k)
{
	Emit *e = k->e;
	uint32_t other = if_begin(e, same(e, k->tid, imm(0)));

	ring_bars(k, &k->ring, in_ring(k) ? k->places : 0, k->stagers / 32);
	ring_bars(k, &k->ahead_ring, k->ahead_places, k->ahead_threads / 32);
	bar_new(k, rows_bar(k), 1);
	bulk_fence(k, false);
	if_end(e, other);
	k->ring.next = op1(e, REG_R, "mov.u32", imm(0));
	k->ahead_ring.next = op1(e, REG_R, "mov.u32", imm(0));
	k->rows_parity = op1(e, REG_R, "mov.u32", imm(0));
}

static void place_next(Kernel *k)
{
	Emit *e = k->e;
	const Ring *r = &k->ring;

	ins(e, "add.u32 $, $, 8", r->next, r->next);
	Reg last = same(e, place_number(k), imm(8 * k->places));
	ins(e, "@$ xor.b32 $, $, #", last, r->next, r->next, 1u << 31);
	ins(e, "@$ and.b32 $, $, #", last, r->next, r->next, 1u << 31);
}

void place_free(Kernel *k)
{
	warp_arrives(k, place_bar(k, BAR_ADDED));
	place_next(k);
}

/* The first piece is the shortest: others wait for it. As if rows began before the first one. */
static uint32_t rows_before(const Kernel *k) { return k->piece - k->first_piece; }

/* Rows of all leaves, so that pieces are known when the kernel is generated: the assembler then knows which branches
 * all lanes of a warp take. */
static uint32_t ring_total(const Kernel *k) { return (uint32_t)round_up(k->s->leaf_rows, BULK_TURN); }

Loop pieces_begin(Kernel *k) { return loop_begin(k->e, imm(0), imm(ring_total(k) + rows_before(k)), k->piece); }

Reg piece_row(Kernel *k, Reg i)
{
	Emit *e = k->e;

	return op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", i, imm(rows_before(k))), imm(rows_before(k)));
}

Reg ring_rows(Kernel *k, Reg row)
{
	Emit *e = k->e;
	Reg most = op3(e, REG_R, "selp.u32", imm(k->first_piece), imm(k->piece), same(e, row, imm(0)));

	return op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", imm(ring_total(k)), row), most);
}

void ring_before(Kernel *k)
{
	uint32_t other = if_begin(k->e, same(k->e, k->tid, imm(k->stagers)));

	bulk_fence(k, false);
	inputs_parts_bulk(k, imm(0), ring_rows(k, imm(0)), place_bar(k, BAR_FULL));
	if_end(k->e, other);
}

/* The first piece of what other blocks have stored, by a warp: it is on the way of the gradient, and the fence that
 * copies of the device need takes as long as their latency. Few quads: loads of all are under way together. */
enum { FIRST_QUADS = 16 }; /* of a lane */

static uint32_t first_quads(const Kernel *k)
{
	uint32_t quads = 0;

	for (uint32_t i = 0; i < gradient_count(k); i++) {
		const GradientCut *c = &k->cut[i];
		if (!gradient_takes(k, i))
			continue;
		quads += !c->straight || c->across_x ? a_quads(&k->s->step[k->s->list->gradient + i], c) : 0;
		quads += c->across_x ? 0 : c->quads;
	}
	return quads * k->first_piece;
}

static bool first_by_warp(const Kernel *k) { return first_quads(k) <= 32 * FIRST_QUADS; }

static void first_load(Kernel *k, Reg from, uint32_t at, uint32_t quads, Reg lane)
{
	Emit *e = k->e;
	uint32_t turns = (uint32_t)ceil_div(quads, 32);
	Reg v[FIRST_QUADS][4], source = place(e, from, lane, 16);
	Reg to = add(e, mad(e, lane, 16, k->memory), imm(at));

	for (uint32_t n = 0; n < turns; n++)
		load_quad(e, "global", v[n], source, n * 512);
	for (uint32_t n = 0; n < turns; n++)
		store_quad(e, "shared", add(e, to, place_offset(k)), n * 512, v[n]);
}

static void first_copy(Kernel *k)
{
	Emit *e = k->e;
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(31));

	for (uint32_t i = 0; i < gradient_count(k); i++) {
		const GradientCut *c = &k->cut[i];
		if (!gradient_takes(k, i))
			continue;
		Range r = range_of(k, c);
		uint32_t a = a_quads(&k->s->step[k->s->list->gradient + i], c), end = if_begin(e, r.is_mine);
		if (!c->straight || c->across_x)
			first_load(k, exchange_address(k, c->from_a, r.down, imm(0)), c->at_a, a * k->first_piece, lane);
		if (!c->across_x)
			first_load(k, exchange_address(k, c->from_b, r.across, imm(0)), c->at_b, c->quads * k->first_piece, lane);
		if_end(e, end);
	}
	ins(e, "bar.warp.sync 0xffffffff");
}

static Reg inputs_bytes(Kernel *k)
{
	Emit *e = k->e;
	Reg quads = op1(e, REG_R, "mov.u32", imm(0));

	for (uint32_t i = 0; i < gradient_count(k); i++)
		if (gradient_takes(k, i) && k->cut[i].straight)
			quads = add(e, quads,
			            op3(e, REG_R, "selp.u32", imm(inputs_quads(k, i)), imm(0), range_of(k, &k->cut[i]).is_mine));
	return mul(e, quads, k->first_piece * 16);
}

/* Pieces from row `row` of l on, by one thread. */
static void pieces_copy(Kernel *k, Loop l, bool had_first)
{
	Emit *e = k->e;
	Reg row = piece_row(k, l.i), full = place_bar(k, BAR_FULL), rows = ring_rows(k, row);

	bulk_wait(k, place_bar(k, BAR_ADDED), op2(e, REG_R, "xor.b32", place_parity(k), imm(1)));
	bulk_expect(k, full, bulk_bytes(k, rows));
	piece_bulk(k, row, rows, full);
	if (!had_first) {
		uint32_t first = unless_begin(e, same(e, row, imm(0))); /* else ring_before has them */
		inputs_parts_bulk(k, row, rows, full);
		if_end(e, first);
	} else {
		inputs_parts_bulk(k, row, rows, full);
	}
	place_next(k);
	loop_end(e, &l);
}

static void ring_copy_by_warp(Kernel *k)
{
	Emit *e = k->e;
	Reg thread = op2(e, REG_R, "sub.u32", k->tid, imm(k->stagers));
	uint32_t other = if_begin(e, less(e, thread, imm(32)));
	uint32_t lane = if_begin(e, same(e, thread, imm(0)));

	barrier_poll(k, k->awaits);
	if_end(e, lane);
	ins(e, "bar.warp.sync 0xffffffff");
	first_copy(k);
	lane = if_begin(e, same(e, thread, imm(0)));
	bulk_expect(k, place_bar(k, BAR_FULL), inputs_bytes(k));
	place_next(k);
	bulk_fence(k, true); /* rows that other blocks have stored; the first piece, which copies overwrite */
	pieces_copy(k, loop_begin(e, imm(k->piece), imm(ring_total(k) + rows_before(k)), k->piece), true);
	if_end(e, lane);
	if_end(e, other);
}

void ring_copy(Kernel *k)
{
	if (first_by_warp(k)) {
		ring_copy_by_warp(k);
		return;
	}
	uint32_t other = if_begin(k->e, same(k->e, k->tid, imm(k->stagers)));

	barrier_poll(k, k->awaits);
	bulk_fence(k, true); /* rows that other blocks have stored */
	pieces_copy(k, pieces_begin(k), false);
	if_end(k->e, other);
}
