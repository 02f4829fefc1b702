/* SPDX-License-Identifier: MIT */
/* A leaf by its team: cases, rows forward and backward, gradients; errors and verdicts beside them. In: the update.
 * Out: sums of weight changes of the leaf, or the update itself. */
#include <assert.h>

#include "emit.h"

/* Cases and rows of a chunk of this number. */
static void chunk_cases(Kernel *k, Reg chunk, LeafFound *f)
{
	Emit *e = k->e;

	chunk = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", chunk, imm(sizeof(DeviceChunk))), POINTER(k, chunk));
	f->cases = load(e, REG_D, "ld.global.nc.u64", chunk, offsetof(DeviceChunk, cases));
	f->rows = load(e, REG_R, "ld.global.nc.u32", chunk, offsetof(DeviceChunk, rows));
}

/* Cases and rows of a leaf; its address is known. */
static void leaf_cases(Kernel *k, LeafFound *f)
{
	chunk_cases(k, load(k->e, REG_D, "ld.global.nc.u64", f->leaf, offsetof(DeviceLeaf, chunk)), f);
}

static void cases_take(Kernel *k, const LeafFound *f)
{
	ins(k->e, "mov.u32 $, $", k->rows, f->rows);
	ins(k->e, "add.u64 $, $, $", k->cases, op2(k->e, REG_D, "shl.b64", f->cases, imm(2)), POINTER(k, cases));
}

/* Leaf k->leaf_number of the update. */
static LeafFound leaf_address(Kernel *k, Reg update)
{
	Emit *e = k->e;
	LeafFound f = { .index = load(e, REG_D, "ld.global.nc.u64", update, offsetof(DeviceUpdate, leaf)) };

	f.index = op2(e, REG_D, "add.u64", f.index, op1(e, REG_D, "cvt.u64.u32", k->leaf_number));
	f.leaf = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", f.index, imm(sizeof(DeviceLeaf))), POINTER(k, leaf));
	return f;
}

static void own_load(Kernel *k, LeafFound *f)
{
	Emit *e = k->e;
	Reg cases = op2(e, REG_D, "add.u64", op2(e, REG_D, "shl.b64", f->cases, imm(2)), POINTER(k, cases));

	ins(e, "mov.u32 $, 0", f->own);
	ins(e, "@$ ld.global.nc.u32 $, [$]", less(e, k->tid, f->rows), f->own, place(e, cases, k->tid, 4));
}

LeafFound leaf_locate(Kernel *k, Reg update)
{
	LeafFound f = leaf_address(k, update);

	leaf_cases(k, &f);
	f.knows_case = k->s->leaf_rows <= k->s->threads && k->s->team_blocks == 1;
	if (f.knows_case) {
		f.own = reg(k->e, REG_R);
		own_load(k, &f);
	}
	return f;
}

/* What an update needs, in shared memory: of the leaf after its own, the index, cases and rows; whether it ends an
 * epoch; numbers of the rule. */
enum { RECORD_INDEX = 0, RECORD_CASES = 8, RECORD_ROWS = 16, RECORD_ENDS = 20, RECORD_NUMBERS = 24 };

uint32_t record_bytes(void) { return RECORD_NUMBERS + 8 * P_COUNT; }

void coming_find(Kernel *k, Reg update, Reg next, Reg record)
{
	Emit *e = k->e;
	Kernel own = *k;
	RuleNumbers n;
	LeafFound f = leaf_address(k, next);
	Reg param = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, param));
	Reg ends = load(e, REG_R, "ld.global.nc.u8", update, offsetof(DeviceUpdate, ends_epoch));

	own.param = place(e, POINTER(k, param), param, P_COUNT * 8);
	leaf_cases(k, &f);
	rule_numbers_load(&own, &n);
	uint32_t one = if_begin(e, same(e, k->tid, imm(k->workers)));
	ins(e, "st.shared.u64 [$+#], $", record, RECORD_INDEX, f.index);
	ins(e, "st.shared.u64 [$+#], $", record, RECORD_CASES, f.cases);
	ins(e, "st.shared.u32 [$+#], $", record, RECORD_ROWS, f.rows);
	ins(e, "st.shared.u32 [$+#], $", record, RECORD_ENDS, ends);
	for (uint32_t p = 0; p < P_COUNT; p++)
		if (n.has >> p & 1)
			ins(e, "st.shared.f64 [$+#], $", record, RECORD_NUMBERS + 8 * p, p == P_RATE ? n.rate : n.wide[p]);
	if_end(e, one);
}

void coming_begin(Kernel *k, RuleNumbers *n, Coming *c)
{
	Emit *e = k->e;

	c->numbers = n;
	c->leaf = (LeafFound){ .index = reg(e, REG_D),
		                   .cases = reg(e, REG_D),
		                   .rows = reg(e, REG_R),
		                   .own = reg(e, REG_R),
		                   .knows_case = k->s->leaf_rows <= k->s->threads };
	k->coming = c;
}

void coming_rule(Kernel *k)
{
	Coming *c = k->coming;

	if (!c)
		return;
	*c->numbers = rule_numbers_kept(k, c->record, RECORD_NUMBERS);
	rule_numbers_take(k, c->numbers);
}

static void coming_cases(Kernel *k)
{
	LeafFound *f = &k->coming->leaf;

	ins(k->e, "ld.shared.u64 $, [$+#]", f->cases, k->coming->record, RECORD_CASES);
	ins(k->e, "ld.shared.u32 $, [$+#]", f->rows, k->coming->record, RECORD_ROWS);
}

void coming_case(Kernel *k)
{
	if (!k->coming || !k->coming->leaf.knows_case)
		return;
	coming_cases(k);
	own_load(k, &k->coming->leaf);
}

LeafFound coming_leaf(Kernel *k)
{
	Emit *e = k->e;
	LeafFound *f = &k->coming->leaf;

	coming_cases(k);
	ins(e, "ld.shared.u64 $, [$+#]", f->index, k->coming->record, RECORD_INDEX);
	f->leaf =
		op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", f->index, imm(sizeof(DeviceLeaf))), POINTER(k, leaf));
	return *f;
}

Reg coming_ends(Kernel *k, Reg record) { return load(k->e, REG_R, "ld.shared.u32", record, RECORD_ENDS); }

/* found: NULL, or what leaf_locate has loaded. Nothing is loaded again that is there already. */
void leaf_begin(Kernel *k, Reg update, Reg staged, const LeafFound *found)
{
	Emit *e = k->e;
	LeafFound f = found ? *found : leaf_address(k, update);
	uint32_t end = 0;

	if (!k->overlaid) /* else the last gradient has overwritten lists and targets */
		end = unless_begin(e, op2(e, REG_P, "setp.eq.u64", f.leaf, staged));
	if (k->bulk_rows) { /* inputs of another leaf are on their way */
		uint32_t none = unless_begin(e, op2(e, REG_P, "setp.eq.u64", staged, imm(0)));
		bulk_rows_wait(k);
		if_end(e, none);
	}
	if (k->posts && k->prefetches)
		barrier_block(e); /* warps of the update before may still prefetch by its numbers of cases */
	ins(e, "mov.u64 $, $", staged, f.leaf);
	if (!found)
		leaf_cases(k, &f);
	cases_take(k, &f);
	uint32_t blocks = k->s->team_blocks;
	Reg product = op2(e, REG_R, "mul.lo.u32", k->rows, k->member);
	ins(e, "mov.u32 $, $", k->first_row, divide(e, product, blocks));
	ins(e, "mov.u32 $, $", k->end_row, divide(e, op2(e, REG_R, "add.u32", product, k->rows), blocks));
	ins(e, "mov.u32 $, $", k->row0, k->first_row);
	ins(e, "sub.u32 $, $, $", k->my_rows, k->end_row, k->row0);
	cases_stage(k, &f);
	if (k->bulk)
		bulk_begin(k);
	if (k->prefetches) { /* those of the last leaf may be under way */
		ins(e, "cp.async.wait_all");
		barrier_block(e);
		inputs_stage(k);
	}
	if (!k->overlaid)
		if_end(e, end);
	if (k->early && !k->prefetches)
		inputs_stage(k);
}

/* Index lists by input of all leaves of a job, for a kernel that has other leaves in every update. */
void images_emit(Kernel *k)
{
	Emit *e = k->e;
	Reg leaves = reg(e, REG_R), blocks = reg(e, REG_R), i = reg(e, REG_R);
	uint32_t top = label(e), done = label(e);

	ins(e, "ld.param.u32 $, [job+#]", leaves, (uint32_t)offsetof(Job, leaves));
	buf_printf(&e->text, "\tmov.u32 %%r%u, %%nctaid.x;\n", blocks.n);
	ins(e, "mov.u32 $, $", i, k->block);
	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", i, leaves), done);
	LeafFound f = { .leaf = place(e, POINTER(k, leaf), i, sizeof(DeviceLeaf)) };
	leaf_cases(k, &f);
	cases_take(k, &f);
	image_make(k, i);
	ins(e, "add.u32 $, $, $", i, i, blocks);
	ins(e, "bra L#", top);
	label_here(e, done);
}

bool has_step(const Kernel *k, uint32_t kind)
{
	for (uint32_t i = 0; i < k->s->list->gradient; i++)
		if (k->s->step[i].kind == kind)
			return true;
	return false;
}

Reg is_from(Kernel *k, uint32_t thread)
{
	bool whole = k->knows_warp && thread % 32 == 0;

	return op2(k->e, REG_P, "setp.ge.u32", whole ? k->warp : k->tid, imm(whole ? thread / 32 : thread));
}

/* Outputs of the block's rows, for a test that wants them. */
void outputs_store(Kernel *k)
{
	Emit *e = k->e;
	const Job *j = k->s->job;
	Reg out = POINTER(k, out), first = POINTER(k, out_first);
	uint32_t none = unless_begin(e, op2(e, REG_P, "setp.eq.u64", out, imm(0)));
	Loop l = loop_begin(e, k->tid, imm(k->block_rows * j->outputs), k->s->threads);
	Reg row = divide(e, l.i, j->outputs), n = modulo(e, l.i, j->outputs, row), number = reg(e, REG_R);
	uint32_t end = if_begin(e, less(e, row, k->my_rows));

	case_load(k, number, add(e, k->row0, row), less(e, row, k->my_rows));
	Reg from = mad(e, row, k->row, mad(e, n, 4, k->memory));
	Reg value;
	if (j->output_col)
		value = load(e, REG_F, "ld.shared.f32", from, k->at_rows + column_at(k, BUF_ACT, j->output_col));
	else
		value = load(e, REG_F, "ld.shared.f32",
		             add(e, mad(e, row, k->row, k->memory),
		                 load(e, REG_R, "ld.shared.u32", mad(e, n, 4, k->memory), k->at_outputs)),
		             k->at_rows);
	Reg at = op2(e, REG_D, "sub.u64", op1(e, REG_D, "cvt.u64.u32", number), first);
	at = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", at, imm(j->outputs * 4)), out);
	ins(e, "st.global.f32 [$], $", place(e, at, n, 4), value);
	if_end(e, end);
	loop_end(e, &l);
	if_end(e, none);
}

static void rows_emit(Kernel *k)
{
	steps_emit(k, 0, k->s->list->gradient);
	if (k->s->test)
		outputs_store(k);
	else if (!k->local)
		rows_exchange(k, false);
}

void verdicts_emit(Kernel *k)
{
	if (k->deferred_scores)
		deferred_score_rows(k, 0, k->s->threads);
	if (k->deferred_scores || !has_step(k, STEP_SCORES))
		return;
	uint32_t end = if_begin(k->e, less(k->e, k->tid, imm(k->workers)));
	scores_emit(k, has_step(k, STEP_CODES), 0, k->workers);
	if_end(k->e, end);
}

/* ---- chunks ----
 *
 * Work of a chunk is cut into tasks of a warp. Some warps have those of one kind, others those of another. */

typedef struct Crew {
	Reg slot; /* the task at hand */
	uint32_t top, done, warps;
} Crew;

/* For each of `tasks` tasks (a number, or R): by warps first .. first + warps - 1. */
static Crew crew_begin(Kernel *k, uint32_t first, uint32_t warps, Reg tasks)
{
	Emit *e = k->e;
	Crew c = { .slot = reg(e, REG_R), .top = label(e), .done = label(e), .warps = warps };

	ins(e, "sub.u32 $, $, #", c.slot, k->s->solo ? k->warp : op2(e, REG_R, "shr.u32", k->tid, imm(5)), first);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", c.slot, imm(warps)), c.done);
	label_here(e, c.top);
	ins(e, "bar.warp.sync 0xffffffff");
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", c.slot, tasks), c.done);
	return c;
}

static void crew_end(Kernel *k, const Crew *c)
{
	ins(k->e, "add.u32 $, $, #", c->slot, c->slot, c->warps);
	ins(k->e, "bra L#", c->top);
	label_here(k->e, c->done);
}

static Reg lane_of(Kernel *k) { return op2(k->e, REG_R, "and.b32", k->tid, imm(31)); }
static uint32_t warps_of(const Kernel *k) { return k->s->threads / 32; }

/* Warps for parts of the last product: so few that these take as long as the gradient beside them. A scheduler then
 * issues of both in turn, and neither is left alone in the end. */
static uint32_t last_warps(const Kernel *k)
{
	const DeviceStep *last = &k->s->step[k->last];
	uint32_t each = 4 * inlined_high(k) * k->block_rows / max_u32(product_adds(k, last), 1);

	return (uint32_t)ceil_div(product_warps(k, last), max_u32(each, 1));
}

static void verdict_task(Kernel *k, Reg slot)
{
	remark(k->e, "errors and verdicts, a thread for each row");
	deferred_score_row(k, mad(k->e, slot, 32, lane_of(k)));
}

/* Verdicts on 32 rows each, and parts of the last product: by warps that add no gradient. */
static void last_tasks(Kernel *k)
{
	Emit *e = k->e;
	const DeviceStep *last = &k->s->step[k->last];
	uint32_t judged = (uint32_t)ceil_div(k->block_rows, 32), parts = product_warps(k, last), busy = k->inliners / 32;
	uint32_t product = label(e), next = label(e);

	if (busy + judged + last_warps(k) <= warps_of(k)) {
		Crew v = crew_begin(k, busy, judged, imm(judged));
		verdict_task(k, v.slot);
		crew_end(k, &v);
		Crew p = crew_begin(k, busy + judged, last_warps(k), imm(parts));
		product_part(k, last, p.slot);
		crew_end(k, &p);
		return;
	}
	Crew c = crew_begin(k, busy, warps_of(k) - busy, imm(judged + parts));

	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", c.slot, imm(judged)), product);
	verdict_task(k, c.slot);
	ins(e, "bra L#", next);
	label_here(e, product);
	product_part(k, last, op2(e, REG_R, "sub.u32", c.slot, imm(judged)));
	label_here(e, next);
	crew_end(k, &c);
}

/* Of the next chunk. */
typedef struct NextChunk {
	Reg row, rows, flip;
} NextChunk;

static void next_part(Kernel *k, const NextChunk *n, Reg warp)
{
	Reg row0 = k->row0, my_rows = k->my_rows, flip = k->flip;

	k->row0 = n->row;
	k->my_rows = n->rows;
	k->flip = n->flip;
	index_part(k, &k->s->step[k->next_steps - 1], warp);
	k->row0 = row0;
	k->my_rows = my_rows;
	k->flip = flip;
}

/* The first product of a chunk, if the step after its index lists is one; else NO_STEP. */
static uint32_t first_product(const Kernel *k)
{
	uint32_t i = k->next_steps;

	while (i < k->last && k->s->step[i].kind == STEP_ONE)
		i++;
	return i < k->last && k->s->step[i].kind == STEP_PRODUCT ? i : NO_STEP;
}

/* Sums of index lists beside the first product: two for each warp that has no part of it. */
static uint32_t early_parts(const Kernel *k)
{
	uint32_t first = first_product(k), all = index_warps(k, &k->s->step[k->next_steps - 1]);
	uint32_t busy = first == NO_STEP ? warps_of(k) : product_warps(k, &k->s->step[first]);

	return busy < warps_of(k) ? min_u32(all, 2 * (warps_of(k) - busy)) : 0;
}

/* Parts of the first product of a chunk; some sums of index lists of the next one beside them. */
static void first_tasks(Kernel *k, const NextChunk *n, uint32_t step)
{
	const DeviceStep *first = &k->s->step[step];
	uint32_t all = product_warps(k, first);
	uint32_t warps = min_u32(all, warps_of(k)), early = early_parts(k);
	/* by the last ones: those that add gradients afterwards have index lists here, which end sooner */
	Crew c = crew_begin(k, early ? warps_of(k) - warps : 0, warps, imm(all));

	product_part(k, first, c.slot);
	crew_end(k, &c);
	if (early) {
		Reg some = op2(k->e, REG_P, "setp.ne.u32", n->rows, imm(0));
		Crew d = crew_begin(k, 0, warps_of(k) - warps, op3(k->e, REG_R, "selp.u32", imm(early), imm(0), some));
		next_part(k, n, d.slot);
		crew_end(k, &d);
	}
	barrier_block(k->e);
}

/* Sums of index lists of the next chunk but the first `early`, by warps from `busy` on. */
static void next_tasks(Kernel *k, const NextChunk *n, uint32_t busy, uint32_t early)
{
	Emit *e = k->e;
	Reg parts = imm(index_warps(k, &k->s->step[k->next_steps - 1]) - early);

	if (!parts.n)
		return;
	Reg some = op2(e, REG_P, "setp.ne.u32", n->rows, imm(0));
	Crew c = crew_begin(k, busy, warps_of(k) - busy, op3(e, REG_R, "selp.u32", parts, imm(0), some));

	next_part(k, n, early ? add(e, c.slot, imm(early)) : c.slot);
	crew_end(k, &c);
}

/* Inlined gradients by some threads, verdicts by the others. */
static void chunk_end(Kernel *k)
{
	Emit *e = k->e;
	uint32_t others = label(e), end = label(e), rest = k->s->threads - k->inliners;
	Reg partial = op2(e, REG_R, "and.b32", k->my_rows, imm(inlined_turn(k) - 1));
	uint32_t full = if_begin(e, op2(e, REG_P, "setp.ne.u32", partial, imm(0)));

	inlined_pads(k);
	barrier_block(e);
	if_end(e, full);
	ins(e, "@$ bra L#", is_from(k, k->inliners), others);
	inlined_rows(k);
	if (k->last != NO_STEP) {
		label_here(e, others);
		last_tasks(k);
		return;
	}
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->deferred_scores)
		deferred_score_rows(k, k->inliners, rest);
	else if (has_step(k, STEP_SCORES))
		scores_emit(k, has_step(k, STEP_CODES), k->inliners, rest);
	label_here(e, end);
}

static void next_rows(Kernel *k, const NextChunk *n)
{
	ins(k->e, "min.u32 $, $, #", n->rows, op2(k->e, REG_R, "sub.u32", k->end_row, n->row), k->block_rows);
}

/* Index lists of a chunk are added while gradients of the one before are: what waits for shared memory beside what
 * adds. */
static void chunks_beside(Kernel *k)
{
	Emit *e = k->e;
	NextChunk n = { .row = op1(e, REG_R, "mov.u32", k->first_row),
		            .rows = reg(e, REG_R),
		            .flip = op1(e, REG_R, "mov.u32", imm(0)) };
	uint32_t top = label(e), first = first_product(k);

	k->flip = op1(e, REG_R, "mov.u32", imm(0));
	all_ones(k);
	next_rows(k, &n);
	next_tasks(k, &n, 0, 0);
	barrier_block(e);
	spent(k, SPENT_KINDS + 24);
	label_here(e, top);
	ins(e, "mov.u32 $, $", k->row0, n.row);
	ins(e, "mov.u32 $, $", k->my_rows, n.rows);
	ins(e, "mov.u32 $, $", k->flip, n.flip);
	ins(e, "add.u32 $, $, $", n.row, n.row, n.rows);
	ins(e, "sub.u32 $, #, $", n.flip, k->flipped, n.flip);
	next_rows(k, &n);
	if (first != NO_STEP)
		first_tasks(k, &n, first);
	spent(k, SPENT_KINDS + 25);
	steps_emit(k, first == NO_STEP ? k->next_steps : first + 1, k->last);
	chunk_end(k);
	next_tasks(k, &n, k->inliners / 32, early_parts(k));
	barrier_block(e);
	spent(k, SPENT_KINDS + 26);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", n.rows, imm(0)), top);
}

static void chunks_emit(Kernel *k)
{
	Emit *e = k->e;

	if (k->inliners)
		inlined_begin(k);
	if (k->next_steps) {
		chunks_beside(k);
		return;
	}
	Loop l = loop_begin(e, k->first_row, k->end_row, k->block_rows);
	ins(e, "mov.u32 $, $", k->row0, l.i);
	ins(e, "min.u32 $, $, #", k->my_rows, op2(e, REG_R, "sub.u32", k->end_row, l.i), k->block_rows);
	targets_stage(k);
	ins(e, "cp.async.wait_all");
	barrier_block(e);
	if (k->last != NO_STEP)
		steps_emit(k, 0, k->last);
	else
		rows_emit(k);
	if (k->inliners)
		chunk_end(k);
	else
		verdicts_emit(k);
	barrier_block(e);
	spent(k, SPENT_KINDS + 26);
	loop_end(e, &l);
}

bool gradients_are_long(const Kernel *k) { return k->regular && k->bulk; }
bool tallies_early(const Kernel *k) { return k->ahead_steps && gradients_are_long(k); }

/* A warp that has formed the tally of its leaf. */
static void leaf_tallied(Kernel *k, const Barriers *b)
{
	Emit *e = k->e;

	ins(e, "bar.warp.sync 0xffffffff");
	barrier_turn(k, &b->tallied);
	uint32_t lane = if_begin(e, same(e, op2(e, REG_R, "and.b32", k->tid, imm(31)), imm(0)));
	ins(e, "red.release.gpu.global.add.u32 [$], 1", b->tallied.counter);
	if_end(e, lane);
}

/* That of the last block joins those of all leaves. */
static void tallies_wait(Kernel *k, Reg update, const Barriers *b)
{
	Emit *e = k->e;
	uint32_t other = if_begin(e, same(e, k->block, imm(k->s->teams * k->s->team_blocks - 1)));
	barrier_poll(k, &b->tallied);
	tally_update(k, update);
	if_end(e, other);
}

/* The last warp of the last block. */
static void leaf_tally(Kernel *k, Reg update, const Barriers *b, bool direct)
{
	Emit *e = k->e;
	uint32_t other = if_begin(e, same(e, k->member, imm(k->s->team_blocks - 1)));
	uint32_t before = unless_begin(e, less(e, k->tid, imm(k->s->threads - TALLY_WARP)));

	barrier_poll(k, &b->scored);
	tally_leaf(k, imm(1));
	if (k->posts || tallies_early(k))
		leaf_tallied(k, b);
	if (tallies_early(k)) {
		tallies_wait(k, update, b);
	} else if (direct) {
		ins(e, "bar.warp.sync 0xffffffff");
		tally_update(k, update);
	}
	if_end(e, before);
	if_end(e, other);
}

/* Threads that do not compute the gradient. late: errors and verdicts are still to be formed. */
static void others_emit(Kernel *k, Reg update, const Barriers *b, bool direct, bool late)
{
	Emit *e = k->e;
	uint32_t threads = k->s->threads - k->workers;

	coming_case(k);
	if (k->coming)
		coming_find(k, k->coming->update, k->coming->after, k->coming->other);
	if (k->posts && !k->ahead_steps) { /* else leaf_ahead has done it */
		end_check(k, update, &b->grid, late);
		ins(e, "bar.sync 2, #", threads);
	}
	uint32_t ended = k->posts ? unless_begin(e, ended_before(k)) : 0;
	if (late) {
		deferred_score_rows(k, k->workers, threads);
		ins(e, "bar.sync 2, #", threads);
		barrier_signal(k, &b->scored);
	}
	if (b->team.cluster)
		cluster_meet(k); /* all threads wait before they arrive again */
	assert(!k->posts || !b->team.cluster);
	if (k->posts) { /* no block reads weights any more that the update resets; the last warp tallies */
		uint32_t rest = if_begin(e, less(e, k->tid, imm(k->workers + 32)));
		teams_poll(k, &b->team);
		if_end(e, rest);
		if_end(e, ended);
		rest = if_begin(e, less(e, k->tid, imm(k->workers + 32)));
		if (!k->prefetches)
			ins(e, "bar.arrive #, #", UPDATE_BEGINS, update_meets(k));
		if_end(e, rest);
		ended = unless_begin(e, ended_before(k));
	}
	leaf_tally(k, update, b, direct);
	if (k->posts)
		if_end(e, ended);
}

/* Cycles of thread 0, where other threads count theirs meanwhile. */
static void spent_apart(Kernel *k, uint32_t on, Reg since)
{
	Emit *e = k->e;

	if (!k->times_steps)
		return;
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	Reg now = reg(e, REG_D), sum = load(e, REG_D, "ld.shared.u64", k->memory, k->at_cycles + 8 + 8 * on);
	ins(e, "mov.u64 $, %clock64", now);
	ins(e, "st.shared.u64 [$+#], $", k->memory, k->at_cycles + 8 + 8 * on,
	    op2(e, REG_D, "add.u64", sum, op2(e, REG_D, "sub.u64", now, since)));
	if_end(e, end);
}

/* Rows of other blocks: by all workers, unless one thread copies all operands. */
static void gradient_awaits(Kernel *k, const Barrier *b)
{
	k->awaits = b;
	if (!in_ring(k))
		workers_wait(k, b);
}

static Kernel ahead_of(const Kernel *k)
{
	Kernel first = *k;

	first.is_ahead = true;
	first.workers = k->ahead_threads;
	first.meets = 3;
	first.times_steps = false;
	first.piece = (uint32_t)round_up(k->s->leaf_rows, ROWS_TURN);
	first.next_at = 0;
	if (k->ahead_places) {
		first.piece = first.first_piece = k->ahead_piece;
		first.next_at = k->ahead_next;
		first.places = k->ahead_places;
		first.ring = k->ahead_ring;
		first.stagers = k->ahead_threads; /* all of them add: ahead_copy */
	}
	return first;
}

/* A thread of the last warp, which is likely to have nothing else to do. */
static void ahead_copy(Kernel *rest, Kernel *k, const Barriers *b)
{
	Kernel first = ahead_of(k);

	if (!k->ahead_places)
		return;
	first.tid = rest->tid;
	first.stagers = rest->workers - 32;
	first.awaits = &b->ahead;
	ring_copy(&first);
}

/* By the first threads, beside the backward pass. */
static void ahead_emit(Kernel *k, const Barriers *b)
{
	Kernel first = ahead_of(k);
	Reg since = reg(k->e, REG_D);

	if (k->times_steps)
		ins(k->e, "mov.u64 $, %clock64", since);
	gradient_awaits(&first, &b->ahead);
	gradient_emit(&first);
	spent_apart(k, SPENT_KINDS + 25, since);
}

/* Number of the barrier that verdicts wait at. */
enum { BACKWARD_DONE = 4 };

/* By the workers after those. */
static void backward_emit(Kernel *k, const Barriers *b)
{
	Kernel rest = *k;
	EmitSource source = *k->s;

	source.threads = rest.workers = k->workers - k->ahead_threads;
	rest.s = &source;
	rest.tid = op2(k->e, REG_R, "sub.u32", k->tid, imm(k->ahead_threads));
	if (k->knows_warp)
		rest.warp = op2(k->e, REG_R, "sub.u32", k->warp, imm(k->ahead_threads / 32));
	rest.signals = 0;
	k->e->meeting = rest.workers;
	steps_emit(&rest, k->ahead_steps, source.list->gradient);
	ins(k->e, "bar.arrive #, #", BACKWARD_DONE, k->s->threads - k->ahead_threads);
	rows_exchange(&rest, false);
	spent(&rest, SPENT_ROWS);
	barrier_arrive(&rest, &b->team);
	gradient_before(&rest);
	ahead_copy(&rest, k, b);
	gradient_awaits(&rest, &b->team);
	spent(&rest, SPENT_TEAM);
	gradient_emit(&rest);
	spent(&rest, SPENT_GRADIENT);
	k->e->meeting = 0;
}

/* Three things side by side after the first steps: gradients whose operands are there, the backward pass and the other
 * gradients, verdicts. */
static void leaf_ahead(Kernel *k, Reg update, const Barriers *b)
{
	Emit *e = k->e;
	uint32_t others = label(e), rest = label(e), end = label(e);

	steps_emit(k, 0, k->ahead_steps);
	rows_exchange(k, true);
	barrier_arrive(k, &b->ahead);
	ins(e, "@$ bra L#", is_from(k, k->workers), others);
	ins(e, "@$ bra L#", is_from(k, k->ahead_threads), rest);
	ahead_emit(k, b);
	ins(e, "bra L#", end);
	label_here(e, rest);
	backward_emit(k, b);
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->posts)
		end_check(k, update, &b->grid, true);
	/* Verdicts are straight code, as the backward pass is, for which others wait: both would fetch instructions. */
	ins(e, "bar.sync #, #", BACKWARD_DONE, k->s->threads - k->ahead_threads);
	others_emit(k, update, b, false, true);
	label_here(e, end);
}

void leaf_emit(Kernel *k, Reg update, Reg staged, const Barriers *b, bool direct)
{
	Emit *e = k->e;

	if (!direct)
		leaf_begin(k, update, staged, NULL);
	counted_stage(k);
	ins(e, "cp.async.wait_all");
	if (k->bulk_rows)
		bulk_rows_wait(k);
	barrier_block(e);
	spent(k, SPENT_KINDS + 0);
	if (k->ahead_steps) {
		leaf_ahead(k, update, b);
		return;
	}
	bool chunks = k->chunks > 1 || k->inliners;
	bool late =
		k->deferred_scores && !chunks && !k->overlaid; /* else operands of the gradient are staged over targets */
	if (k->posts && !late) { /* until the tally of the update before has read its scores, which rows may store */
		uint32_t one = if_begin(e, same(e, k->tid, imm(0)));
		update_signal(k, &b->grid);
		update_before_wait(k, &b->grid);
		if_end(e, one);
		barrier_block(e);
	}
	if (chunks)
		chunks_emit(k);
	else
		rows_emit(k);
	coming_rule(k);
	spent(k, SPENT_ROWS);
	bool met = k->s->solo && chunks; /* after the last chunk; no one else has to be told */
	if (!met)
		barrier_arrive(k, &b->team);
	if (!chunks && !late)
		verdicts_emit(k); /* others need not wait for them */
	if (!late && !met)
		barrier_arrive(k, &b->scored);
	spent(k, SPENT_KINDS + 28);
	uint32_t others = label(e), end = label(e);
	ins(e, "@$ bra L#", is_from(k, k->workers), others);
	if (!k->s->test)
		gradient_before(k);
	gradient_awaits(k, &b->team);
	spent(k, SPENT_TEAM);
	if (!k->s->test)
		gradient_emit(k);
	ins(e, "bra L#", end);
	label_here(e, others);
	others_emit(k, update, b, direct, late);
	label_here(e, end);
	spent(k, SPENT_GRADIENT);
}
