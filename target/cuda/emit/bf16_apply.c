/* SPDX-License-Identifier: MIT */
/* bf16: single_block: the rule for gradients in registers. In: sums of tiles as a warp has them; weights and rule
 * state in shared memory (kept) or in global memory. Out: new weights in fp32 and, where products read them, bf16.
 * Must hold: bf16 weights from the true unit are 0, as sums start with them. */
#include "bf16_emit.h"

/* ---- weights and state that stay in shared memory ---- */

void bf16_kept_plan(Kernel *k)
{
	for (uint32_t i = 0; i < gradient_steps(k); i++) {
		const DevicePanel *p = gradient_panel(k, i);
		KeptPanel *to = &k->bf16->panel[i];
		to->swizzled = p->row * 4 % 128 == 64;
		to->pitch = p->row * 4 + (to->swizzled ? 0 : 32);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			if (formula_variables(k) >> v & 1)
				to->at[v] = shared_take(k, p->size / p->row * to->pitch);
	}
}

/* Where bytes `at` of a row are in it: the swizzle exchanges adjacent 32 bytes. */
static Reg kept_byte(Emit *e, const KeptPanel *p, Reg row, Reg at)
{
	if (!p->swizzled)
		return at;
	Reg other = op2(e, REG_R, "and.b32", op2(e, REG_R, "shl.b32", row, imm(4)), imm(32));
	return op2(e, REG_R, "xor.b32", at, other);
}

/* Between global and shared memory, 16 bytes a thread. */
void bf16_kept_move(Kernel *k, bool out)
{
	Emit *e = k->e;

	if (k->bf16->warpgroups) {
		warpgroup_kept_move(k, out);
		return;
	}
	for (uint32_t i = 0; k->bf16->kept && i < gradient_steps(k); i++) {
		const DevicePanel *p = gradient_panel(k, i);
		const KeptPanel *to = &k->bf16->panel[i];
		uint32_t each = p->row / 4;
		Loop l = loop_begin(e, k->tid, imm((uint32_t)(p->size / 4)), k->s->threads);
		Reg row = divide(e, l.i, each), part = mul(e, modulo(e, l.i, each, row), 16);
		Reg here = add(e, mad(e, row, to->pitch, k->memory), kept_byte(e, to, row, part));
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
			if (!(formula_variables(k) >> v & 1))
				continue;
			Reg there = variable_at(k, v, p, mul(e, l.i, 4)), q[4];
			if (out) {
				load_quad(e, "shared", q, here, to->at[v]);
				store_quad(e, "global", there, 0, q);
			} else {
				ins(e, "cp.async.cg.shared.global [$+#], [$], 16", here, to->at[v], there);
			}
		}
		loop_end(e, &l);
	}
}

/* ---- the rule ---- */

/* Weight by weight, where they differ in their link class. */
static void weights_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RuleTiles *q)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < 4 * q->high * q->wide; i++) {
		uint32_t tile = i / 4;
		Reg row = add(e, q->row, imm(16 * (tile / q->wide) + 8 * (i / 2 % 2)));
		Reg col = add(e, q->col, imm(8 * (tile % q->wide) + i % 2));
		uint32_t none = if_begin(e, less(e, row, imm(q->depth)));
		rule_apply(k, n, p, row, col, mad(e, row, p->row, col), q->sum[tile][i % 4]);
		if_end(e, none);
	}
}

/* Where the lane's first weight is: with its state; in bf16 in shared memory, if products read it there. */
typedef struct TilePlaces {
	Reg at[2 + MAX_STATE]; /* in global memory, unless kept: */
	const KeptPanel *kept;
	Reg kept_at[2]; /* of even and of odd tiles */
	const Bf16Region *region;
	Reg bf16;
	Reg row[8], row_here[8], col[8], second[8]; /* P: rows of the panel, of the region, columns, second ones exist */
} TilePlaces;

static TilePlaces tile_places(Kernel *k, const DevicePanel *p, const RuleTiles *q)
{
	Emit *e = k->e;
	uint32_t used = formula_variables(k);
	TilePlaces t = { .region = NULL };
	Reg first = mad(e, q->row, p->row, q->col);

	for (uint32_t i = 0; i < k->bf16->regions; i++)
		if (k->bf16->region[i].from == p->at)
			t.region = &k->bf16->region[i];
	for (uint32_t v = 1; v < 2 + MAX_STATE && !k->bf16->kept; v++)
		if (used >> v & 1)
			t.at[v] = variable_at(k, v, p, first);
	if (k->bf16->kept) {
		t.kept = &k->bf16->panel[q->number];
		for (uint32_t i = 0; i < 2; i++)
			t.kept_at[i] = add(e, mad(e, q->row, t.kept->pitch, k->memory),
			                   kept_byte(e, t.kept, q->row, mad(e, q->col, 4, imm(32 * i))));
	}
	if (t.region)
		t.bf16 = add(e, mad(e, q->row, t.region->pitch, mad(e, q->col, 2, k->memory)), imm(t.region->at));
	for (uint32_t r = 0; r < 2 * q->high; r++) {
		t.row[r] = less(e, q->row, imm(q->depth - min_u32(q->depth, 8 * r)));
		t.row_here[r] = t.row[r];
		if (t.region && t.region->rows != q->depth) /* a row that products lack is the true unit's */
			t.row_here[r] = less(e, q->row, imm(t.region->rows - min_u32(t.region->rows, 8 * r)));
	}
	for (uint32_t j = 0; j < q->wide; j++) {
		t.col[j] = less(e, q->col, imm(p->cols - min_u32(p->cols, 8 * j)));
		if (p->cols % 2)
			t.second[j] = less(e, add(e, q->col, imm(8 * j + 1)), imm(p->cols));
	}
	return t;
}

/* Weights from the true unit: to the row that sums start with; their bf16 is 0. */
static void tiles_bias(Kernel *k, const DevicePanel *p, const RuleTiles *q, const TilePlaces *t)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	if (p->bias == NO_BIAS)
		return;
	const float *start = p->bias_across ? j->copies + p->copy + (uint64_t)p->bias * p->copy_row
	                                    : j->w + p->at + (uint64_t)p->bias * p->row;
	const WeightRegion *s = region_of(k, start);
	Reg own = p->bias_across ? q->col : q->row;
	uint32_t past = p->bias_across ? 8 * q->wide : 16 * q->high; /* of the warp's tiles; lanes begin in the first 8 */
	Reg near = less(e, op2(e, REG_R, "sub.u32", imm(p->bias), op2(e, REG_R, "and.b32", own, imm(~7u))), imm(past));
	uint32_t none = if_begin(e, near);
	for (uint32_t i = 0; i < 4 * q->high * q->wide; i++) {
		uint32_t tile = i / 4, down = tile / q->wide * 2 + i / 2 % 2, across = tile % q->wide;
		uint32_t place_of = p->bias_across ? 8 * across + i % 2 : 8 * down;
		Reg is = op2(e, REG_P, "and.pred", same(e, own, imm(p->bias - place_of)), t->row[down]);
		if (!p->bias_across)
			is = op2(e, REG_P, "and.pred", is, i % 2 && p->cols % 2 ? t->second[across] : t->col[across]);
		if (p->bias < place_of)
			continue;
		Reg to = p->bias_across ? add(e, q->row, imm(8 * down)) : add(e, q->col, imm(8 * across + i % 2));
		if (s)
			ins(e, "@$ st.shared.f32 [$+#], $", is, mad(e, to, 4, k->memory), s->at, q->sum[tile][i % 4]);
		if (t->region) {
			Reg here = op2(e, REG_P, "and.pred", is, t->row_here[down]), zero = reg(e, REG_H);
			ins(e, "mov.u16 $, 0", zero);
			ins(e, "@$ st.shared.u16 [$+#], $", here, t->bf16, 8 * down * t->region->pitch + 16 * across + 2 * (i % 2),
			    zero);
		}
	}
	if_end(e, none);
}

/* The rule for a pair. If the second column is padding, its gradient is 0. */
static void pair_apply(Kernel *k, const PlaceNumbers *n, const RuleTiles *q, const TilePlaces *t, uint32_t pair,
                       Reg value[2 + MAX_STATE][2], Reg finite)
{
	Emit *e = k->e;
	uint32_t tile = pair / 2, down = tile / q->wide * 2 + pair % 2, across = tile % q->wide;
	Reg *sum = q->sum[tile] + pair % 2 * 2, real = op2(e, REG_P, "and.pred", t->row[down], t->col[across]);

	for (uint32_t c = 0; c < 2; c++) {
		Reg variable[2 + MAX_STATE] = { sum[c] };
		if (c && t->second[across].type == REG_P)
			variable[0] = op3(e, REG_F, "selp.f32", sum[c], imm_f(0), t->second[across]);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			variable[v] = value[v][c];
		place_values(k, n, variable);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			value[v][c] = variable[v];
		ins(e, "mov.f32 $, $", sum[c], variable[1]);
		ins(e, "@$ fma.rn.ftz.f32 $, $, 0f00000000, $", real, finite, variable[1], finite);
	}
	if (!t->region)
		return;
	Reg rounded = bf16_pair(e, sum[0], sum[1]), here = op2(e, REG_P, "and.pred", t->row_here[down], t->col[across]);
	if (t->second[across].type == REG_P)
		rounded = op3(e, REG_R, "selp.u32", rounded, op2(e, REG_R, "and.b32", rounded, imm(0xffff)), t->second[across]);
	ins(e, "@$ st.shared.u32 [$+#], $", here, t->bf16, 8 * down * t->region->pitch + 16 * across, rounded);
}

/* Loads of several pairs come first, so that they overlap. */
void rule_tiles(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RuleTiles *q)
{
	enum { AT_ONCE = 8 };
	Emit *e = k->e;
	const Formula *f = k->s->formula;
	uint32_t loads = formula_uses(f, OP_LOAD), stores = formula_uses(f, OP_STORE), all = 2 * q->high * q->wide;

	if (p->kind) {
		weights_apply(k, n, p, q);
		return;
	}
	TilePlaces t = tile_places(k, p, q);
	PlaceNumbers own = known_numbers(k, n, &k->s->factor[p->factor]);
	Reg finite = zero_float(e), value[AT_ONCE][2 + MAX_STATE][2];
	for (uint32_t first = 0; first < all; first += AT_ONCE) {
		for (uint32_t moves = 0; moves < 3; moves++) /* loads, the rule, stores */
			for (uint32_t i = 0; i < AT_ONCE && first + i < all; i++) {
				uint32_t tile = (first + i) / 2, down = tile / q->wide * 2 + (first + i) % 2, across = tile % q->wide;
				uint32_t at = (8 * down * p->row + 8 * across) * 4;
				if (t.kept)
					at = 8 * down * t.kept->pitch + across / 2 * 64;
				Reg real = op2(e, REG_P, "and.pred", t.row[down], t.col[across]);
				if (moves == 1)
					pair_apply(k, &own, q, &t, first + i, value[i], finite);
				for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
					Reg *x = value[i][v];
					if (!moves && ((loads | stores) >> v & 1))
						for (uint32_t c = 0; c < 2; c++)
							x[c] = op1(e, REG_F, "mov.f32", imm_f(0));
					uint32_t here = t.kept ? at + t.kept->at[v] : at;
					Reg from = t.kept ? t.kept_at[across % 2] : t.at[v];
					if (!moves && (loads >> v & 1))
						ins(e, t.kept ? "@$ ld.shared.v2.f32 {$, $}, [$+#]" : "@$ ld.global.v2.f32 {$, $}, [$+#]", real,
						    x[0], x[1], from, here);
					if (moves == 2 && (stores >> v & 1))
						ins(e, t.kept ? "@$ st.shared.v2.f32 [$+#], {$, $}" : "@$ st.global.v2.f32 [$+#], {$, $}", real,
						    from, here, x[0], x[1]);
				}
			}
	}
	infinite_check(k, op2(e, REG_P, "setp.neu.ftz.f32", finite, finite));
	tiles_bias(k, p, q, &t);
}

/* ---- the end of a job ---- */

/* Weights that updates have changed in shared memory only: bf16, kept, and transposed ones from the true unit. */
void bf16_weights_store(Kernel *k)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	barrier_block(e);
	bf16_kept_move(k, true);
	if (k->bf16->warpgroups)
		warpgroup_weights_move(k, true);
	for (uint32_t i = 0; i < k->bf16->regions && !k->bf16->warpgroups; i++) {
		const Bf16Region *r = &k->bf16->region[i];
		uint32_t each = r->row / 2;
		Reg to = place_at(e, POINTER(k, half), r->from * 2);
		Loop l = loop_begin(e, k->tid, imm(r->rows * each), k->s->threads);
		Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row);
		Reg two = load(e, REG_R, "ld.shared.u32", mad(e, row, r->pitch, mad(e, part, 4, k->memory)), r->at);
		ins(e, "st.global.u32 [$], $", place(e, to, l.i, 4), two);
		loop_end(e, &l);
	}
	for (uint32_t i = 0; i < j->panels; i++) {
		const DevicePanel *p = &k->s->panel[i];
		if (p->bias == NO_BIAS || !p->bias_across || p->copy == NO_COPY)
			continue;
		const WeightRegion *r = region_of(k, j->copies + p->copy + (uint64_t)p->bias * p->copy_row);
		if (!r)
			continue;
		Loop l = loop_begin(e, k->tid, imm(r->row), k->s->threads);
		Reg w = load(e, REG_F, "ld.shared.f32", mad(e, l.i, 4, k->memory), r->at);
		ins(e, "st.global.f32 [$], $", place(e, weight_place(k, r->from), l.i, 4), w);
		loop_end(e, &l);
	}
}
