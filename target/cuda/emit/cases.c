/* SPDX-License-Identifier: MIT */
/* Cases of a leaf in shared memory, and weights. In: numbers of cases. Out: index lists by row, filled up with
 * NO_INPUT; the same lists by input, in groups of LIST_PAD rows, filled up with a row of -0; inputs and targets of the
 * block's rows; code words.
 *
 * Lists by input come from masks of rows, so that their rows ascend whichever thread is first. The word of an input
 * has the first group of its list in the low half, the number of groups in the high half. */
#include "bf16_emit.h"

enum { UNROLLED = 8 };

static uint32_t mask_words(const Kernel *k) { return (uint32_t)ceil_div(k->s->leaf_rows, 32); }
static uint32_t mask_row(const Kernel *k) { return (mask_words(k) | 1) * 4; } /* bytes; odd: other banks */
uint32_t masks_bytes(const Kernel *k) { return (uint32_t)round_up(k->s->job->data.inputs * mask_row(k), 16); }
uint32_t lengths_at(const Kernel *k) { return k->at_mask + masks_bytes(k); }

void case_load(Kernel *k, Reg number, Reg row, Reg is_row)
{
	ins(k->e, "mov.u32 $, 0", number);
	ins(k->e, "@$ ld.global.nc.u32 $, [$]", is_row, number, place(k->e, k->cases, row, 4));
	ins(k->e, "and.b32 $, $, #", number, number, (uint32_t)ROW_CASE);
}

/* The list of one row; its bits are added to the masks. */
static void list_stage(Kernel *k, Reg row)
{
	Emit *e = k->e;
	uint32_t quads = k->list_row / 16;
	assert(quads <= 8 && k->s->list_longest <= 8 * quads);
	Reg is_row = less(e, row, k->rows), number = reg(e, REG_R), pair[8][4];
	Reg to = add(e, mad(e, row, k->list_row, k->memory), imm(k->at_lists));

	case_load(k, number, row, is_row);
	Reg from = place(e, POINTER(k, data.short_list), number, k->list_row);
	for (uint32_t q = 0; q < quads; q++) {
		for (uint32_t i = 0; i < 4; i++)
			pair[q][i] = op1(e, REG_R, "mov.u32", imm(UINT32_MAX));
		ins(e, "@$ ld.global.nc.v4.u32 {$, $, $, $}, [$+#]", is_row, pair[q][0], pair[q][1], pair[q][2], pair[q][3],
		    from, 16 * q);
	}
	Reg word = op2(e, REG_R, "shl.b32", op2(e, REG_R, "shr.u32", row, imm(5)), imm(2));
	Reg bit = op2(e, REG_R, "shl.b32", imm(1), op2(e, REG_R, "and.b32", row, imm(31)));
	Reg at = add(e, add(e, k->memory, imm(k->at_mask)), word);
	for (uint32_t q = 0; q < quads; q++)
		ins(e, "st.shared.v4.u32 [$+#], {$, $, $, $}", to, 16 * q, pair[q][0], pair[q][1], pair[q][2], pair[q][3]);
	for (uint32_t j = 0; j < k->s->list_longest && !k->s->test; j++) {
		Reg two = pair[j / 8][j % 8 / 2];
		Reg i = j % 2 ? op2(e, REG_R, "shr.u32", two, imm(16)) : op2(e, REG_R, "and.b32", two, imm(0xffff));
		ins(e, "@$ red.shared.or.b32 [$], $", op2(e, REG_P, "setp.ne.u32", i, imm(NO_INPUT)),
		    mad(e, i, mask_row(k), at), bit);
	}
}

static void lists_stage(Kernel *k)
{
	Emit *e = k->e;
	uint32_t words = k->s->test ? 0 : k->s->job->data.inputs * mask_row(k) / 4;

	remark(e, "index lists");
	Loop clear = loop_begin(e, k->tid, imm(words), k->s->threads);
	ins(e, "st.shared.u32 [$+#], 0", mad(e, clear.i, 4, k->memory), k->at_mask);
	loop_end(e, &clear);
	barrier_block(e);
	Loop rows = loop_begin(e, k->tid, imm(k->s->leaf_rows), k->s->threads);
	list_stage(k, rows.i);
	loop_end(e, &rows);
	barrier_block(e);
}

static void store_row(Kernel *k, Reg group, Reg index, Reg row)
{
	Emit *e = k->e;
	Reg at = add(e, mad(e, group, 2 * LIST_PAD, k->memory), op2(e, REG_R, "shl.b32", index, imm(1)));
	Reg half = reg(e, REG_H);

	ins(e, "cvt.u16.u32 $, $", half, row);
	ins(e, "st.shared.u16 [$+#], $", at, k->at_csc, half);
}

/* Ranks that the block computes the gradient of: every so many, from the first on. Where several matrices are cut in
 * different ways, all. */
static const GradientCut *only_cut(const Kernel *k)
{
	const GradientCut *only = NULL;
	uint32_t lists = 0;

	for (uint32_t i = k->s->list->gradient; i < k->s->list->steps && !k->s->images; i++)
		if (k->s->step[i].kind == STEP_GRADIENT_INDEX) {
			only = &k->cut[i - k->s->list->gradient];
			lists++;
		}
	return lists == 1 ? only : NULL;
}

static uint32_t ranks_apart(const Kernel *k) { return only_cut(k) ? only_cut(k)->down : 1; }

static Reg first_rank(Kernel *k)
{
	const GradientCut *c = only_cut(k);

	return c && c->down > 1 ? op2(k->e, REG_R, "min.u32", divide(k->e, k->member, c->across), imm(c->down - 1))
	                        : imm(0);
}

/* 16 lanes make the list of an input: each has a word of its mask. */
static void by_input(Kernel *k)
{
	Emit *e = k->e;
	uint32_t words = mask_words(k), inputs = k->s->job->data.inputs, at_once = k->s->threads / 16;

	remark(e, "lists by input");
	uint32_t one = if_begin(e, same(e, k->tid, imm(0)));
	ins(e, "st.shared.u32 [$+#], 0", k->memory, k->at_info); /* where the next list begins */
	if_end(e, one);
	barrier_block(e);
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(15)), group = op2(e, REG_R, "shr.u32", k->tid, imm(4));
	uint32_t down = ranks_apart(k);
	Loop turns = loop_count(e, (uint32_t)ceil_div(ceil_div(inputs, down), at_once)); /* equal: lanes exchange */
	Reg rank = mad(e, turns.i, at_once, group), is_input, bits = reg(e, REG_R), first = first_rank(k);
	rank = add(e, mul(e, rank, down), first);
	is_input = less(e, rank, imm(inputs));
	rank = op3(e, REG_R, "selp.u32", rank, imm(0), is_input);
	Reg input = load(e, REG_R, "ld.shared.u32", mad(e, rank, 4, k->memory), k->at_rank);
	Reg mine = op2(e, REG_P, "and.pred", is_input, less(e, lane, imm(words)));
	ins(e, "mov.u32 $, 0", bits);
	ins(e, "@$ ld.shared.u32 $, [$+#]", mine, bits, add(e, mad(e, input, mask_row(k), k->memory), mul(e, lane, 4)),
	    k->at_mask);
	Reg count = op1(e, REG_R, "popc.b32", bits), sum = reg(e, REG_R);
	ins(e, "mov.u32 $, $", sum, count);
	for (uint32_t n = 1; n < 16; n *= 2) {
		Reg before = reg(e, REG_R), has = op2(e, REG_P, "setp.ge.u32", lane, imm(n));
		ins(e, "shfl.sync.up.b32 $, $, #, 0x1000, 0xffffffff", before, sum, n);
		ins(e, "@$ add.u32 $, $, $", has, sum, sum, before);
	}
	Reg total = reg(e, REG_R), begin = reg(e, REG_R), start = reg(e, REG_R);
	ins(e, "shfl.sync.idx.b32 $, $, 15, 0x101f, 0xffffffff", total, sum);
	Reg groups = op2(e, REG_R, "shr.u32", add(e, total, imm(LIST_PAD - 1)), imm(3));
	ins(e, "mov.u32 $, 0", begin);
	Reg leads = op2(e, REG_P, "and.pred", is_input, same(e, lane, imm(0)));
	ins(e, "@$ atom.shared.add.u32 $, [$+#], $", leads, begin, k->memory, k->at_info, groups);
	ins(e, "@$ st.shared.u32 [$+#], $", leads, mad(e, input, 4, k->memory), k->at_csc_start,
	    op2(e, REG_R, "or.b32", begin, op2(e, REG_R, "shl.b32", groups, imm(16))));
	if (turns_sorted(k))
		ins(e, "@$ st.shared.u32 [$+#], $", leads, mad(e, input, 4, k->memory), lengths_at(k), total);
	ins(e, "shfl.sync.idx.b32 $, $, 0, 0x101f, 0xffffffff", start, begin);
	/* rows of the word, one after the other */
	Reg at = reg(e, REG_R), row0 = op2(e, REG_R, "shl.b32", lane, imm(5));
	ins(e, "sub.u32 $, $, $", at, sum, count);
	uint32_t top = label(e), done = label(e);
	label_here(e, top);
	ins(e, "@$ bra L#", same(e, bits, imm(0)), done);
	Reg lowest = op1(e, REG_R, "clz.b32", op1(e, REG_R, "brev.b32", bits));
	store_row(k, start, at, add(e, row0, lowest));
	ins(e, "add.u32 $, $, 1", at, at);
	ins(e, "and.b32 $, $, $", bits, bits, add(e, bits, imm(UINT32_MAX)));
	ins(e, "bra L#", top);
	label_here(e, done);
	Reg past = add(e, total, lane), lacks = less(e, past, op2(e, REG_R, "shl.b32", groups, imm(3)));
	uint32_t pad = if_begin(e, op2(e, REG_P, "and.pred", is_input, lacks));
	store_row(k, start, past, imm(k->csc_pad));
	if_end(e, pad);
	loop_end(e, &turns);
}

/* Where targets are bits: those of a row, and the code word that they are; under way. */
static void word_stage(Kernel *k, Reg row, Reg number)
{
	Emit *e = k->e;

	remark(e, "targets as bits");
	ins(e, "cp.async.ca.shared.global [$+#], [$], 4", mad(e, row, 4, k->memory), k->at_targets,
	    place(e, POINTER(k, data.y_bits), number, 4));
	if (k->s->job->data.code_count)
		ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, row, sizeof(CodeOwn), k->memory), k->at_own,
		    place(e, POINTER(k, data.own), number, sizeof(CodeOwn)));
}

/* ---- images ---- */

bool rows_full(const Kernel *k) { return k->s->images && k->s->lists_full; }

/* Where instructions count: is the number of an input a byte of its weights' address? They have 256 bytes, and no list
 * is padded with NO_INPUT. */
static bool numbers_are_bytes(const Kernel *k, const DeviceStep *s, const WeightRegion *r)
{
	return k->e->busy && rows_full(k) && !s->low && s->depth == k->s->job->data.inputs && r->rows <= 256 &&
	       r->row == 64 && s->cols <= 64;
}

ListWeights list_weights(Kernel *k, const DeviceStep *s, Reg quad)
{
	const WeightRegion *r = region_of(k, s->b);
	ListWeights l = { .s = s, .r = r, .bytes = numbers_are_bytes(k, s, r) };

	l.base = add(k->e, mad(k->e, quad, 16, k->memory), imm(r->at));
	l.quad = l.bytes ? mul(k->e, quad, 16) : imm(0);
	return l;
}

/* Of number `pair` >> 16 * high: its row of weights, or the row of -0. */
static Reg weight_row(Kernel *k, const ListWeights *l, Reg pair, uint32_t high)
{
	Emit *e = k->e;
	const DeviceStep *s = l->s;
	Reg i = high ? op2(e, REG_R, "shr.u32", pair, imm(16)) : op2(e, REG_R, "and.b32", pair, imm(0xffff));

	if (!s->low && s->depth == k->s->job->data.inputs) {
		if (!rows_full(k))
			i = op2(e, REG_R, "min.u32", i, imm(l->r->rows));
	} else {
		i = op2(e, REG_R, "sub.u32", i, imm(s->low));
		i = op3(e, REG_R, "selp.u32", i, imm(l->r->rows), less(e, i, imm(s->depth)));
	}
	return mad(e, i, l->r->row * 4, l->base);
}

void list_weights_load(Kernel *k, const ListWeights *l, Reg pair, uint32_t high, Reg w[4])
{
	Emit *e = k->e;
	enum {
		LOW = 0x5504,
		HIGH = 0x5524
	}; /* bytes of an address: the lowest one of a quad, one of a pair, two that are 0 */

	if (!l->bytes) {
		load_quad(e, "shared", w, weight_row(k, l, pair, high), 0);
		return;
	}
	Reg at = op3(e, REG_R, "prmt.b32", pair, l->quad, imm(high ? HIGH : LOW));
	load_quad(e, "shared", w, add(e, at, k->memory), l->r->at);
}

/* Lists of rows past the last one of the leaf. */
static void rows_fill(Kernel *k)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, add(e, k->end_row, k->tid), imm(k->s->leaf_rows), k->s->threads);

	for (uint32_t q = 0; q < k->list_row / 16; q++)
		ins(e, "st.shared.v4.u32 [$+#], {0, 0, 0, 0}", mad(e, l.i, k->list_row, k->memory), k->at_lists + 16 * q);
	loop_end(e, &l);
}

/* Starts of lists, then the lists, then turns. */
uint32_t image_bytes(const Kernel *k) { return (uint32_t)round_up(k->at_turns + turns_bytes(k) - k->at_csc_start, 16); }

void image_make(Kernel *k, Reg index)
{
	Emit *e = k->e;
	uint32_t bytes = image_bytes(k);

	lists_stage(k);
	by_input(k);
	turns_make(k);
	barrier_block(e);
	Reg to = place(e, POINTER(k, images), index, bytes);
	Loop l = loop_begin(e, mul(e, k->tid, 16), imm(bytes), k->s->threads * 16);
	Reg q[4];
	load_quad(e, "shared", q, add(e, k->memory, l.i), k->at_csc_start);
	store_quad(e, "global", place(e, to, l.i, 1), 0, q);
	loop_end(e, &l);
	barrier_block(e);
}

/* The image, and index lists of the block's rows; under way. */
static void image_stage(Kernel *k, const LeafFound *f)
{
	Emit *e = k->e;
	uint32_t bytes = image_bytes(k), quads = k->list_row / 16;
	Reg from = reg(e, REG_D);

	remark(e, "image of lists by input, %u bytes", bytes);
	ins(e, "mad.lo.u64 $, $, #, $", from, f->index, bytes, POINTER(k, images));
	Loop l = loop_begin(e, mul(e, k->tid, 16), imm(bytes), k->s->threads * 16);
	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", add(e, k->memory, l.i), k->at_csc_start, place(e, from, l.i, 1));
	loop_end(e, &l);
	Loop r = loop_begin(e, k->tid, op2(e, REG_R, "sub.u32", k->end_row, k->first_row), k->s->threads);
	Reg number = reg(e, REG_R), row = add(e, k->first_row, r.i);
	if (f->knows_case)
		ins(e, "and.b32 $, $, #", number, f->own, (uint32_t)ROW_CASE);
	else
		case_load(k, number, row, less(e, row, k->rows));
	Reg list = place(e, POINTER(k, data.short_list), number, k->list_row);
	for (uint32_t q = 0; q < quads; q++)
		ins(e, "cp.async.cg.shared.global [$+#], [$+#], 16", mad(e, row, k->list_row, k->memory), k->at_lists + 16 * q,
		    list, 16 * q);
	if (k->y_bits)
		word_stage(k, row, number);
	loop_end(e, &r);
	if (rows_full(k))
		rows_fill(k);
}

/* ---- targets ---- */

/* Words that the targets of the block's rows are. */
static void own_stage(Kernel *k)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, k->my_rows, k->s->threads);
	Reg number = reg(e, REG_R);

	case_load(k, number, add(e, k->row0, l.i), less(e, l.i, k->my_rows));
	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, l.i, sizeof(CodeOwn), k->memory), k->at_own,
	    place(e, POINTER(k, data.own), number, sizeof(CodeOwn)));
	loop_end(e, &l);
}

/* Of all rows of the leaf, where targets are bits; under way. */
static void words_stage(Kernel *k)
{
	Emit *e = k->e;

	Loop l = loop_begin(e, k->tid, k->rows, k->s->threads);
	Reg number = reg(e, REG_R);
	case_load(k, number, l.i, less(e, l.i, k->rows));
	word_stage(k, l.i, number);
	loop_end(e, &l);
}

/* Copies under way. */
void targets_stage(Kernel *k)
{
	Emit *e = k->e;
	uint32_t targets = k->s->job->data.targets, all = k->block_rows * targets;
	Reg y = POINTER(k, data.y);

	if (!targets || k->y_bits)
		return;
	if (k->s->job->data.code_count)
		own_stage(k);
	remark(e, "targets");
	if (k->bf16 && k->bf16->y_bits) {
		Loop l = loop_begin(e, k->tid, k->my_rows, k->s->threads);
		Reg number = reg(e, REG_R);
		case_load(k, number, add(e, k->row0, l.i), less(e, l.i, k->my_rows));
		ins(e, "cp.async.ca.shared.global [$+#], [$], 4", mad(e, l.i, 4, k->memory), k->at_targets,
		    place(e, POINTER(k, data.y_bits), number, 4));
		loop_end(e, &l);
		return;
	}
	for (uint32_t first = 0; first < all; first += k->s->threads * UNROLLED) {
		Reg number[UNROLLED], col[UNROLLED], row[UNROLLED], is_row[UNROLLED];
		uint32_t n = (uint32_t)min_u64(ceil_div(all - first, k->s->threads), UNROLLED);
		for (uint32_t i = 0; i < n; i++) {
			Reg task = add(e, k->tid, imm(first + i * k->s->threads));
			row[i] = divide(e, task, targets);
			col[i] = modulo(e, task, targets, row[i]);
			is_row[i] = less(e, row[i], k->my_rows);
			case_load(k, number[i] = reg(e, REG_R), add(e, k->row0, row[i]), is_row[i]);
		}
		for (uint32_t i = 0; i < n; i++)
			ins(e, "@$ cp.async.ca.shared.global [$+#], [$], 4", is_row[i],
			    mad(e, row[i], k->target_row, mad(e, col[i], 4, k->memory)), k->at_targets,
			    place(e, place(e, y, number[i], 4 * targets), col[i], 4));
	}
}

/* ---- inputs ---- */

/* `cols` copies of `width` floats for each of the block's rows, from input `input` to column `col` of a row. Numbers of
 * cases are loaded before the first copy begins: these loads wait for memory, copies do not. */
static void input_copies(Kernel *k, uint32_t input, uint32_t col, uint32_t cols, uint32_t width)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;
	uint32_t all = k->block_rows * cols, together = (uint32_t)min_u64(ceil_div(all, k->s->threads), UNROLLED);
	Reg number[UNROLLED], row[UNROLLED], n[UNROLLED], is[UNROLLED], x = POINTER(k, data.x);

	if (!cols)
		return;
	Loop l = loop_begin(e, k->tid, imm(all), k->s->threads * together);
	for (uint32_t i = 0; i < together; i++) {
		Reg task = add(e, l.i, imm(i * k->s->threads));
		row[i] = divide(e, task, cols);
		n[i] = modulo(e, task, cols, row[i]);
		is[i] = less(e, row[i], k->my_rows);
		number[i] = reg(e, REG_R);
		if (any_straight(k)) { /* numbers of all cases of the leaf are there */
			ins(e, "mov.u32 $, 0", number[i]);
			ins(e, "@$ ld.shared.u32 $, [$+#]", is[i], number[i], mad(e, add(e, k->row0, row[i]), 4, k->memory),
			    k->at_cases);
		} else {
			case_load(k, number[i], add(e, k->row0, row[i]), is[i]);
		}
	}
	for (uint32_t i = 0; i < together; i++) {
		Reg from = place(e, place(e, x, number[i], d->x_row * 4), n[i], width * 4);
		Reg to = add(e, mad(e, row[i], k->row, mad(e, n[i], width * 4, k->memory)),
		             imm(k->at_rows + column_at(k, BUF_ACT, col)));
		ins(e,
		    width == 4 ? "@$ cp.async.cg.shared.global [$], [$+#], 16" : "@$ cp.async.ca.shared.global [$], [$+#], 4",
		    is[i], to, from, input * 4);
	}
	loop_end(e, &l);
}

/* Inputs of a row that are copied in quads. */
static uint32_t wide_inputs(const InputColumns *in)
{
	return in->col % 4 == 0 && in->input % 4 == 0 && in->count >= 4 ? in->count / 4 * 4 : 0;
}

/* The same as copies of the device, one for each row. */
static void input_rows(Kernel *k, const InputColumns *in)
{
	Emit *e = k->e;
	uint32_t wide = wide_inputs(in);

	if (!wide)
		return;
	Loop l = loop_begin(e, k->tid, k->my_rows, k->s->threads);
	bulk_fence(k, false);
	Reg number = load(e, REG_R, "ld.shared.u32", mad(e, add(e, k->row0, l.i), 4, k->memory), k->at_cases);
	Reg from = place_at(e, place(e, POINTER(k, data.x), number, k->s->job->data.x_row * 4), in->input * 4);
	bulk_copy(k, add(e, mad(e, l.i, k->row, k->memory), imm(k->at_rows + column_at(k, BUF_ACT, in->col))), from,
	          imm(wide * 4), rows_bar(k));
	loop_end(e, &l);
}

void bulk_rows_wait(Kernel *k)
{
	Emit *e = k->e;
	uint32_t row = 0;

	for (uint32_t i = 0; i < k->s->job->input_columns; i++)
		row += wide_inputs(&k->s->input[i]) * 4;
	uint32_t other = if_begin(e, same(e, k->tid, imm(0)));
	bulk_expect(k, rows_bar(k), mul(e, k->my_rows, row));
	if_end(e, other);
	ins(e, "bar.warp.sync 0xffffffff"); /* lanes do not poll before that one has arrived */
	bulk_wait(k, rows_bar(k), k->rows_parity);
	ins(e, "xor.b32 $, $, 1", k->rows_parity, k->rows_parity);
}

void inputs_stage(Kernel *k)
{
	for (uint32_t i = 0; i < k->s->job->input_columns; i++) {
		const InputColumns *in = &k->s->input[i];
		uint32_t wide = wide_inputs(in);
		remark(k->e, "inputs %u .. %u", in->input, in->input + in->count - 1);
		if (k->bulk_rows)
			input_rows(k, in);
		else
			input_copies(k, in->input, in->col, wide / 4, 4);
		input_copies(k, in->input + wide, in->col + wide, in->count - wide, 1);
	}
}

/* Numbers of all cases of the leaf. */
static void numbers_stage(Kernel *k)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, k->rows, k->s->threads);
	Reg number = reg(e, REG_R);

	case_load(k, number, l.i, less(e, l.i, k->rows));
	ins(e, "st.shared.u32 [$+#], $", mad(e, l.i, 4, k->memory), k->at_cases, number);
	loop_end(e, &l);
}

void cases_stage(Kernel *k, const LeafFound *f)
{
	bool lists = k->s->job->data.from, image = lists && k->s->images;

	if (any_straight(k))
		numbers_stage(k);
	if (image) {
		image_stage(k, f);
	} else if (lists) {
		lists_stage(k);
		if (!k->s->test) {
			by_input(k);
			turns_make(k);
		}
	}
	if (k->y_bits && !image) /* else beside index lists */
		words_stage(k);
	if (!k->y_bits && k->chunks == 1 && !k->inliners)
		targets_stage(k);
	if (!image || !k->s->solo) /* else leaf_emit has the next one, when copies are there */
		barrier_block(k->e);
}

/* ---- columns of ones ---- */

/* Does a step read it in rows, or what stores them for other blocks? Biases are weights of their own, and where a
 * gradient is ahead, none reads rows. */
static bool one_is_read(const Kernel *k, uint32_t col)
{
	Access a[8];

	for (uint32_t i = 0; i < k->s->list->gradient && k->ahead_steps; i++)
		for (uint32_t n = step_access(k, &k->s->step[i], a); n--;)
			if (!a[n].writes && a[n].buf == BUF_ACT && col - a[n].col < a[n].count)
				return true;
	for (uint32_t i = 0; i < k->exchanges && k->ahead_steps; i++)
		if (k->exchanged[i].buf == BUF_ACT && col - k->exchanged[i].col < 4 * k->exchanged[i].quads)
			return true;
	return !k->ahead_steps;
}

void one_emit(Kernel *k, uint32_t col)
{
	Emit *e = k->e;

	if (!one_is_read(k, col))
		return;
	Loop l = loop_begin(e, k->tid, imm(k->block_rows), k->s->threads);
	Reg at = add(e, mad(e, l.i, k->row, k->memory), imm(k->at_rows));
	for (uint32_t i = 0; i < (k->flipped ? 2 : 1); i++)
		ins(e, "st.shared.f32 [$+#], $", at, column_at(k, BUF_ACT, col) + i * k->flipped, imm_f(1));
	loop_end(e, &l);
}

/* Columns that are always 1, where rows have them. */
void ones_emit(Kernel *k)
{
	for (uint32_t i = 0; i < k->s->one_columns; i++)
		if (k->map[BUF_ACT][k->s->ones[i] / COLUMN_BLOCK] != NO_BLOCK)
			one_emit(k, k->s->ones[i]);
}

void all_ones(Kernel *k)
{
	ones_emit(k);
	for (uint32_t i = 0; i < k->s->list->gradient; i++)
		if (k->s->step[i].kind == STEP_ONE)
			one_emit(k, k->s->step[i].c_col);
}

/* Inputs are there, and no one reads columns of ones. */
bool load_is_done(const Kernel *k)
{
	for (uint32_t i = 0; i < k->s->one_columns; i++)
		if (k->map[BUF_ACT][k->s->ones[i] / COLUMN_BLOCK] != NO_BLOCK && one_is_read(k, k->s->ones[i]))
			return false;
	return k->early;
}

/* ---- weights ---- */

enum { COPIED = 8 }; /* copies of a thread */

/* Copies of 16 bytes by all threads, under way. */
static void copy_bytes(Kernel *k, Reg from, uint32_t to, uint32_t bytes)
{
	Emit *e = k->e;
	uint32_t quads = bytes / 16, turn = k->s->threads * COPIED;
	Reg at = add(e, mad(e, k->tid, 16, k->memory), imm(to)), source = place(e, from, k->tid, 16);

	if (quads >= 2 * turn) {
		uint32_t turns = quads / turn;
		Reg s = reg(e, REG_D), d = reg(e, REG_R);
		ins(e, "mov.u64 $, $", s, source);
		ins(e, "mov.u32 $, $", d, at);
		Loop l = loop_count(e, turns);
		for (uint32_t i = 0; i < COPIED; i++)
			ins(e, "cp.async.cg.shared.global [$+#], [$+#], 16", d, i * k->s->threads * 16, s, i * k->s->threads * 16);
		ins(e, "add.u64 $, $, #", s, s, turn * 16);
		ins(e, "add.u32 $, $, #", d, d, turn * 16);
		loop_end(e, &l);
		source = s;
		at = d;
		quads -= turns * turn;
	}
	for (uint32_t i = 0; i * k->s->threads < quads; i++) {
		uint32_t left = quads - i * k->s->threads, offset = i * k->s->threads * 16;
		if (left >= k->s->threads)
			ins(e, "cp.async.cg.shared.global [$+#], [$+#], 16", at, offset, source, offset);
		else
			ins(e, "@$ cp.async.cg.shared.global [$+#], [$+#], 16", less(e, k->tid, imm(left)), at, offset, source,
			    offset);
	}
}

Reg weight_place(Kernel *k, const float *from)
{
	const Job *j = k->s->job;
	bool copy = from >= j->copies && from < j->copies + k->s->copies;

	if (j->noisy && from >= j->noisy && from < j->noisy + j->floats)
		return place_at(k->e, POINTER(k, noisy), (uint64_t)(from - j->noisy) * 4);
	if (j->noisy && from >= j->noisy_copies && from < j->noisy_copies + k->s->copies)
		return place_at(k->e, POINTER(k, noisy_copies), (uint64_t)(from - j->noisy_copies) * 4);
	return place_at(k->e, copy ? POINTER(k, copies) : POINTER(k, w), (uint64_t)(from - (copy ? j->copies : j->w)) * 4);
}

void weights_stage(Kernel *k)
{
	remark(k->e, "weights");
	for (uint32_t i = 0; i < k->regions; i++) {
		const WeightRegion *r = &k->region[i];
		copy_bytes(k, weight_place(k, r->from), r->at, r->row * r->rows * 4);
	}
	ins(k->e, "cp.async.commit_group");
}

void weights_store(Kernel *k)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < k->regions; i++) {
		const WeightRegion *r = &k->region[i];
		Loop l = loop_begin(e, mul(e, k->tid, 16), imm(r->row * r->rows * 4), k->s->threads * 16);
		Reg v[4];
		load_quad(e, "shared", v, add(e, k->memory, l.i), r->at);
		store_quad(e, "global", place(e, weight_place(k, r->from), l.i, 1), 0, v);
		loop_end(e, &l);
	}
}
