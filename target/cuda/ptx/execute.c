/* SPDX-License-Identifier: MIT */
/* Execution of a warp: ALU, predicates, cross-lane instructions, control. In: a warp that can run. Out: its
 * registers and pc. Must hold: a register is read only in lanes that have written it. */
#include <string.h>

#include "emulator.h"

/* ---- functions of ops.def ---- */

static uint64_t multiply_high(uint64_t x, uint64_t y)
{
	uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
	uint64_t middle = x1 * y0 + (x0 * y0 >> 32), low = x0 * y1 + (uint32_t)middle;

	return x1 * y1 + (middle >> 32) + (low >> 32);
}

static uint32_t lop3(uint32_t x, uint32_t y, uint32_t z, uint32_t table)
{
	uint32_t r = 0;

	for (uint32_t i = 0; i < 8; i++)
		if (table >> i & 1)
			r |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
	return r;
}

static uint32_t reverse_bits(uint32_t x)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (x >> i & 1) << (31 - i);
	return r;
}

static uint32_t extract_bits(uint32_t x, uint32_t at, uint32_t len)
{
	at &= 255, len &= 255;
	x = at > 31 ? 0 : x >> at;
	return len > 31 ? x : x & ((1u << len) - 1);
}

static uint32_t insert_bits(uint32_t x, uint32_t into, uint32_t at, uint32_t len)
{
	at &= 255, len &= 255;
	uint64_t mask = (((uint64_t)1 << min_u32(len, 32)) - 1) << min_u32(at, 32);
	return (uint32_t)((into & ~mask) | ((uint64_t)x << min_u32(at, 32) & mask));
}

static uint32_t permute_bytes(uint32_t x, uint32_t y, uint32_t select)
{
	uint64_t bytes = (uint64_t)y << 32 | x;
	uint32_t r = 0;

	for (int i = 0; i < 4; i++) {
		uint32_t s = select >> 4 * i & 15, byte = (uint32_t)(bytes >> 8 * (s & 7)) & 0xff;
		r |= (s & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << 8 * i;
	}
	return r;
}

static uint32_t dot_bytes(uint32_t x, uint32_t y, uint32_t sum)
{
	for (int i = 0; i < 4; i++)
		sum += (x >> 8 * i & 0xff) * (y >> 8 * i & 0xff);
	return sum;
}

/* dp2a.lo: two halfwords by the two low bytes. */
static uint32_t dot_halves(uint32_t x, uint32_t y, uint32_t sum)
{
	return sum + (x & 0xffff) * (y & 0xff) + (x >> 16) * (y >> 8 & 0xff);
}

static uint32_t to_unsigned(double x) { return !(x > 0) ? 0 : x >= 0x1p32 ? UINT32_MAX : (uint32_t)x; }
static int32_t to_signed(double x)
{
	return x != x ? 0 : x <= -0x1p31 ? INT32_MIN : x >= 0x1p31 ? INT32_MAX : (int32_t)x;
}

static uint16_t to_bf16(float x)
{
	uint32_t b;

	memcpy(&b, &x, sizeof b);
	if (x != x)
		return 0x7fff;
	return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/* ---- registers ---- */

typedef uint32_t LaneB16, LaneU16, LaneB32, LaneU32;
typedef int32_t LaneS32;
typedef float LaneF32;
typedef uint64_t LaneB64, LaneU64;
typedef int64_t LaneS64;
typedef double LaneF64;
typedef uint32_t LaneNONE;

static const void *source(const Grid *g, const Warp *w, uint32_t slot) { return operand_lanes(g, w, slot); }
static uint32_t source_pred(const Warp *w, uint32_t slot) { return w->reg[(uint64_t)slot * LANES]; }

static void write32(Warp *w, uint32_t slot, const void *from, uint32_t mask)
{
	uint32_t *to = w->reg + (uint64_t)slot * LANES;
	const uint32_t *v = from;

	if (mask == UINT32_MAX) {
		memcpy(to, from, LANES * sizeof *to);
	} else {
		for (uint32_t i = 0; i < LANES; i++)
			to[i] = mask >> i & 1 ? v[i] : to[i];
	}
	w->defined[slot] |= mask;
}

static void write64(Warp *w, uint32_t slot, const void *from, uint32_t mask)
{
	uint64_t *to = (uint64_t *)(void *)(w->reg + (uint64_t)slot * LANES);
	const uint64_t *v = from;

	if (mask == UINT32_MAX) {
		memcpy(to, from, LANES * sizeof *to);
	} else {
		for (uint32_t i = 0; i < LANES; i++)
			to[i] = mask >> i & 1 ? v[i] : to[i];
	}
	w->defined[slot] |= mask;
}

static void write_pred(Warp *w, uint32_t slot, uint32_t value, uint32_t mask)
{
	uint32_t *to = w->reg + (uint64_t)slot * LANES;

	*to = (*to & ~mask) | (value & mask);
	w->defined[slot] |= mask;
}

static uint32_t one_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }

static void check_sources(Grid *g, const Warp *w, const Insn *i, uint32_t mask)
{
	for (uint32_t k = 0; k < i->sources; k++)
		if (!(i->a[k] & CONSTANT) && mask & ~w->defined[i->a[k]])
			grid_fail(g, w, one_lane(mask & ~w->defined[i->a[k]]), "operand %u is a register that was never written",
			          k + 1 + i->results);
}

/* The same value in all lanes of the mask. */
static uint32_t uniform(Grid *g, const Warp *w, uint32_t slot, uint32_t mask, const char *what)
{
	const uint32_t *v = source(g, w, slot);
	uint32_t first = v[one_lane(mask)];

	for (uint32_t i = 0; i < LANES; i++)
		if (mask >> i & 1 && v[i] != first)
			grid_fail(g, w, i, "%s is not the same in all lanes", what);
	return first;
}

/* ---- ALU ---- */

static void execute_alu(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const void *a = source(g, w, i->a[0]), *b = source(g, w, i->a[i->sources > 1 ? 1 : 0]);
	const void *c = source(g, w, i->a[i->sources > 2 ? 2 : 0]);
	uint32_t table = (uint32_t)i->offset;
	_Alignas(64) uint64_t result[LANES];

	(void)table;
	switch (i->op) {
#define OP(id, names, D, A, B, C, value)             \
	case OP_##id: {                                  \
		const Lane##A *xs = a;                       \
		const Lane##B *ys = b;                       \
		const Lane##C *zs = c;                       \
		Lane##D *to = (void *)result;                \
		for (uint32_t l = 0; l < LANES; l++) {       \
			Lane##A x = xs[l];                       \
			Lane##B y = T_##B != T_NONE ? ys[l] : 0; \
			Lane##C z = T_##C != T_NONE ? zs[l] : 0; \
			(void)x, (void)y, (void)z;               \
			to[l] = value;                           \
		}                                            \
		if (sizeof(Lane##D) == 8)                    \
			write64(w, i->d[0], result, mask);       \
		else                                         \
			write32(w, i->d[0], result, mask);       \
		break;                                       \
	}
#include "ops.def"
#undef OP
	default: break;
	}
}

static void execute_float(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	_Alignas(64) uint32_t d[LANES];
	const uint32_t *b = i->sources > 1 ? source(g, w, i->a[1]) : NULL;
	const uint32_t *c = i->sources > 2 ? source(g, w, i->a[2]) : NULL;

	floats_apply((FloatOp)i->sub, i->ftz, d, source(g, w, i->a[0]), b, c);
	write32(w, i->d[0], d, mask);
}

/* Does the comparison hold? order: -1, 0, 1 */
static bool holds(uint32_t compare, int order, bool is_nan)
{
	if (compare == C_NUM || compare == C_NAN)
		return is_nan == (compare == C_NAN);
	if (is_nan)
		return compare >= C_UNORDERED;
	switch (compare >= C_UNORDERED ? compare - C_UNORDERED : compare) {
	case C_EQ: return order == 0;
	case C_NE: return order != 0;
	case C_LT: return order < 0;
	case C_LE: return order <= 0;
	case C_GT: return order > 0;
	default: return order >= 0;
	}
}

/* Masks of lanes; a lane in none of them compares a NaN (unordered). */
typedef struct Ordered {
	uint32_t less, equal, greater;
} Ordered;
#define ORDER(type)                                    \
	do {                                               \
		const type *x = a, *y = b;                     \
		for (uint32_t l = 0; l < LANES; l++) {         \
			o.less |= (uint32_t)(x[l] < y[l]) << l;    \
			o.equal |= (uint32_t)(x[l] == y[l]) << l;  \
			o.greater |= (uint32_t)(x[l] > y[l]) << l; \
		}                                              \
	} while (0)

static Ordered compare_lanes(const Insn *i, const void *a, const void *b)
{
	Ordered o = { 0, 0, 0 };
	float fa[LANES], fb[LANES];

	if (i->ftz) {
		for (uint32_t l = 0; l < LANES; l++) {
			fa[l] = float_flush(((const float *)a)[l]);
			fb[l] = float_flush(((const float *)b)[l]);
		}
		a = fa, b = fb;
	}
	switch (i->type) {
	case T_S16:
	case T_S32: ORDER(int32_t); break;
	case T_U64:
	case T_B64: ORDER(uint64_t); break;
	case T_S64: ORDER(int64_t); break;
	case T_F32: ORDER(float); break;
	case T_F64: ORDER(double); break;
	default: ORDER(uint32_t); break;
	}
	return o;
}
#undef ORDER

static uint32_t combine_preds(uint32_t how, uint32_t a, uint32_t b)
{
	return how == P_AND ? a & b : how == P_OR ? a | b : how == P_XOR ? a ^ b : how == P_NOT ? ~a : a;
}

static void execute_setp(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	Ordered o = compare_lanes(i, source(g, w, i->a[0]), source(g, w, i->a[1]));
	uint32_t none = ~(o.less | o.equal | o.greater), r = 0;

	r |= holds(i->sub, -1, false) ? o.less : 0;
	r |= holds(i->sub, 0, false) ? o.equal : 0;
	r |= holds(i->sub, 1, false) ? o.greater : 0;
	r |= holds(i->sub, 0, true) ? none : 0;
	uint32_t other = ~r;
	if (i->combine) {
		uint32_t c = source_pred(w, i->a[2]) ^ (i->last_not ? UINT32_MAX : 0);
		r = combine_preds(i->combine, r, c);
		other = combine_preds(i->combine, other, c);
	}
	write_pred(w, i->d[0], r, mask);
	if (i->results > 1)
		write_pred(w, i->d[1], other, mask);
}

static void execute_selp(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const void *a = source(g, w, i->a[0]), *b = source(g, w, i->a[1]);
	uint32_t p = source_pred(w, i->a[2]);
	uint64_t t64[LANES];
	uint32_t t32[LANES];

	if (type_bytes((Type)i->type) == 8) {
		const uint64_t *x = a, *y = b;
		for (uint32_t l = 0; l < LANES; l++)
			t64[l] = p >> l & 1 ? x[l] : y[l];
		write64(w, i->d[0], t64, mask);
	} else {
		const uint32_t *x = a, *y = b;
		for (uint32_t l = 0; l < LANES; l++)
			t32[l] = p >> l & 1 ? x[l] : y[l];
		write32(w, i->d[0], t32, mask);
	}
}

static void execute_pack(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const uint32_t *a = source(g, w, i->a[0]), *b = source(g, w, i->a[1]);
	uint64_t t64[LANES];
	uint32_t t32[LANES];

	for (uint32_t l = 0; l < LANES; l++) {
		t64[l] = (uint64_t)b[l] << 32 | a[l];
		t32[l] = b[l] << 16 | (a[l] & 0xffff);
	}
	if (i->type == T_B64)
		write64(w, i->d[0], t64, mask);
	else
		write32(w, i->d[0], t32, mask);
}

static void execute_unpack(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const void *a = source(g, w, i->a[0]);
	uint32_t low[LANES], high[LANES];

	for (uint32_t l = 0; l < LANES; l++) {
		if (i->type == T_B64) {
			low[l] = (uint32_t)((const uint64_t *)a)[l];
			high[l] = (uint32_t)(((const uint64_t *)a)[l] >> 32);
		} else {
			low[l] = ((const uint32_t *)a)[l] & 0xffff;
			high[l] = ((const uint32_t *)a)[l] >> 16;
		}
	}
	if (i->d[0] != NO_SLOT)
		write32(w, i->d[0], low, mask);
	if (i->d[1] != NO_SLOT)
		write32(w, i->d[1], high, mask);
}

/* ---- cross-lane ---- */

/* The lanes of a membermask must execute the instruction together: a GPU would deadlock. */
static uint32_t check_members(Grid *g, const Warp *w, uint32_t slot, uint32_t mask)
{
	uint32_t m = uniform(g, w, slot, mask, "the mask of lanes");

	if (mask & ~m)
		grid_fail(g, w, one_lane(mask & ~m), "a lane executes it that is not in its mask 0x%08x", m);
	if (m & ~mask)
		grid_fail(g, w, one_lane(m & ~mask), "the mask is 0x%08x, but only lanes 0x%08x execute it", m, mask);
	return m;
}

static void execute_shuffle(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const uint32_t *a = source(g, w, i->a[0]), *b = source(g, w, i->a[1]), *c = source(g, w, i->a[2]);
	uint32_t t[LANES], in_range = 0;

	check_members(g, w, i->a[3], mask);
	for (uint32_t l = 0; l < LANES; l++) {
		uint32_t clamp = c[l] & 31, segment = c[l] >> 8 & 31, by = b[l] & 31, from;
		uint32_t most = (l & segment) | (clamp & ~segment), least = l & segment;
		bool ok;
		switch (i->sub) {
		case S_UP: ok = l >= most + by, from = l - by; break;
		case S_DOWN: from = l + by, ok = from <= most; break;
		case S_BFLY: from = l ^ by, ok = from <= most; break;
		default: from = least | (by & ~segment), ok = from <= most; break;
		}
		from = ok ? from : l;
		t[l] = a[from];
		in_range |= (uint32_t)ok << l;
		if (mask >> l & 1 && !(mask >> from & 1))
			grid_fail(g, w, l, "the value comes from lane %u, which does not take part", from);
	}
	write32(w, i->d[0], t, mask);
	if (i->results > 1)
		write_pred(w, i->d[1], in_range, mask);
}

static void execute_vote(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint32_t p = (source_pred(w, i->a[0]) ^ (i->last_not ? UINT32_MAX : 0)) & mask, t[LANES];

	check_members(g, w, i->a[1], mask);
	for (uint32_t l = 0; l < LANES; l++)
		t[l] = p;
	switch (i->sub) {
	case V_BALLOT: write32(w, i->d[0], t, mask); break;
	case V_ANY: write_pred(w, i->d[0], p ? UINT32_MAX : 0, mask); break;
	case V_ALL: write_pred(w, i->d[0], p == mask ? UINT32_MAX : 0, mask); break;
	default: write_pred(w, i->d[0], p == mask || !p ? UINT32_MAX : 0, mask); break;
	}
}

static void execute_match(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const uint32_t *a = source(g, w, i->a[0]);
	uint32_t t[LANES] = { 0 };

	check_members(g, w, i->a[1], mask);
	for (uint32_t l = 0; l < LANES; l++)
		for (uint32_t k = 0; k < LANES; k++)
			t[l] |= (uint32_t)(mask >> k & 1 && a[k] == a[l]) << k;
	write32(w, i->d[0], t, mask);
}

static void execute_redux(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const uint32_t *a = source(g, w, i->a[0]);
	uint32_t first = one_lane(mask), t[LANES];
	uint64_t sum = a[first];

	check_members(g, w, i->a[1], mask);
	for (uint32_t l = first + 1; l < LANES; l++)
		if (mask >> l & 1)
			sum = atomic_apply((AtomicOp)i->sub, (Type)i->type, sum, a[l], 0);
	for (uint32_t l = 0; l < LANES; l++)
		t[l] = (uint32_t)sum;
	write32(w, i->d[0], t, mask);
}

/* ---- barriers, time ---- */

static void execute_barrier(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint32_t number = uniform(g, w, i->a[0], mask, "the number of the barrier"), pred = 0, count = 0;
	bool red = i->sub >= B_POPC, counted = i->sources == (red ? 3 : 2);

	if (mask != w->live)
		grid_fail(g, w, one_lane(w->live & ~mask), "only lanes 0x%08x of the warp reach this barrier", mask);
	if (number >= BARRIERS)
		grid_fail(g, w, NO_LANE, "barrier %u: there are 16", number);
	if (counted)
		count = uniform(g, w, i->a[1], mask, "the number of threads");
	if (counted && (!count || count % LANES || count > g->block_warps * LANES))
		grid_fail(g, w, NO_LANE, "a barrier for %u threads: not whole warps of a block of %u", count, g->threads);
	if (red)
		pred = source_pred(w, i->a[i->sources - 1]) ^ (i->last_not ? UINT32_MAX : 0);
	block_barrier_arrive(g, w, i, number, count, pred, mask);
}

static void execute_cluster(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	if (mask != w->live)
		grid_fail(g, w, one_lane(w->live & ~mask), "only lanes 0x%08x of the warp reach this barrier", mask);
	if (i->sub == B_ARRIVE)
		cluster_arrive(g, w);
	else
		cluster_wait(g, w);
}

static void execute_clock(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint64_t t64[LANES];
	uint32_t t32[LANES];

	for (uint32_t l = 0; l < LANES; l++) {
		t64[l] = g->executed;
		t32[l] = (uint32_t)g->executed;
	}
	if (type_bytes((Type)i->type) == 8)
		write64(w, i->d[0], t64, mask);
	else
		write32(w, i->d[0], t32, mask);
}

/* ---- control: divergent lanes run one group at a time, the one with the lowest pc ----
 *
 * On a GPU, lanes that leave a loop wait where it ends for the others, but not always if it polls, so that these cannot
 * wait for what those would do. Then they run ahead, as far as an instruction that all lanes execute together. */

/* Makes the lanes with the lowest pc active. */
static void reconverge(Warp *w)
{
	uint32_t low = NO_PC, next = NO_PC, lanes = w->live;

	w->ahead &= w->live;
	if (w->ahead)
		lanes = w->ahead;
	for (uint32_t l = 0; l < LANES; l++)
		if (lanes >> l & 1 && w->lane_pc[l] < low)
			low = w->lane_pc[l];
	w->active = 0;
	for (uint32_t l = 0; l < LANES; l++)
		if (lanes >> l & 1) {
			if (w->lane_pc[l] == low)
				w->active |= 1u << l;
			else if (w->lane_pc[l] < next)
				next = w->lane_pc[l];
		}
	w->pc = low;
	w->next_pc = next;
}

static void set_lanes(Warp *w, uint32_t mask, uint32_t pc)
{
	for (uint32_t l = 0; l < LANES; l++)
		if (mask >> l & 1)
			w->lane_pc[l] = pc;
}

static void execute_branch(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	if (mask == w->active) {
		w->pc = i->target;
		return;
	}
	set_lanes(w, w->active & ~mask, w->pc);
	set_lanes(w, mask, i->target);
	if (g->ahead && i->leaves_poll && !w->ahead && grid_random(g) % 2)
		w->ahead = mask;
	reconverge(w);
}

/* Lanes that run ahead wait there for the others. */
static bool needs_all_lanes(const Insn *i)
{
	switch ((Op)i->op) {
	case OP_BARRIER:
	case OP_CLUSTER_BARRIER:
	case OP_WARP_SYNC:
	case OP_SHUFFLE:
	case OP_VOTE:
	case OP_MATCH:
	case OP_REDUX:
	case OP_MMA:
	case OP_LDMATRIX:
	case OP_WGMMA:
	case OP_WGMMA_COMMIT:
	case OP_WGMMA_WAIT: return true;
	default: return false;
	}
}

_Noreturn static void hangs(Grid *g, const Warp *w)
{
	for (const Warp *x = g->warp; x < g->warp + g->warps; x++)
		if (x->ahead && x->state == WARP_READY) {
			g->now = &g->k->code[x->pc];
			grid_fail(g, x, one_lane(x->ahead),
			          "lanes 0x%08x poll here, ahead of others of their warp: bar.warp.sync before it lets them meet",
			          x->ahead);
		}
	grid_fail(g, w, NO_LANE, "no memory has changed for %llu instructions: the grid waits for nothing",
	          (unsigned long long)g->idle_most);
}

static void execute_exit(Grid *g, Warp *w, uint32_t mask)
{
	set_lanes(w, w->active, w->pc);
	w->live &= ~mask;
	g->idle = 0;
	if (w->live) {
		reconverge(w);
		return;
	}
	w->state = WARP_DONE;
	warp_unready(g, w);
	if (!--w->block->live)
		bulk_block_ended(g, w->block);
	barrier_recheck(g, w->block);
}

static void execute_one(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	switch ((Op)i->op) {
	case OP_FLOAT: execute_float(g, w, i, mask); break;
	case OP_SETP: execute_setp(g, w, i, mask); break;
	case OP_SELP: execute_selp(g, w, i, mask); break;
	case OP_PRED:
		write_pred(w, i->d[0],
		           combine_preds(i->sub, source_pred(w, i->a[0]), source_pred(w, i->a[i->sources > 1 ? 1 : 0])), mask);
		break;
	case OP_PACK: execute_pack(g, w, i, mask); break;
	case OP_UNPACK: execute_unpack(g, w, i, mask); break;
	case OP_CLOCK: execute_clock(g, w, i, mask); break;
	case OP_LOAD: access_load(g, w, i, mask); break;
	case OP_STORE: access_store(g, w, i, mask); break;
	case OP_ATOMIC: access_atomic(g, w, i, mask); break;
	case OP_CP_ASYNC: access_copy(g, w, i, mask); break;
	case OP_CP_COMMIT: access_commit(w, mask); break;
	case OP_CP_WAIT: access_wait(g, w, i->offset, mask); break;
	case OP_NOP: break;
	case OP_BARRIER: execute_barrier(g, w, i, mask); break;
	case OP_CLUSTER_BARRIER: execute_cluster(g, w, i, mask); break;
	case OP_MBARRIER: mbarrier_execute(g, w, i, mask); break;
	case OP_STORE_ASYNC: store_async_execute(g, w, i, mask); break;
	case OP_CP_BULK: bulk_execute(g, w, i, mask); break;
	case OP_PROXY_FENCE: races_proxy_fence(g, w, i->sub); break;
	case OP_WARP_SYNC:
		check_members(g, w, i->a[0], mask);
		races_warp_sync(w);
		break;
	case OP_FENCE:
		if (!i->local_scope)
			races_fence(g, w);
		break;
	case OP_SHUFFLE: execute_shuffle(g, w, i, mask); break;
	case OP_VOTE: execute_vote(g, w, i, mask); break;
	case OP_MATCH: execute_match(g, w, i, mask); break;
	case OP_REDUX: execute_redux(g, w, i, mask); break;
	case OP_MMA: mma_execute(g, w, i, mask); break;
	case OP_LDMATRIX: access_matrices(g, w, i, mask); break;
	case OP_WGMMA: wgmma_execute(g, w, i, mask); break;
	case OP_WGMMA_COMMIT: wgmma_commit(w); break;
	case OP_WGMMA_WAIT: wgmma_wait(w, (uint32_t)i->offset); break;
	case OP_BRANCH: execute_branch(g, w, i, mask); break;
	case OP_EXIT: execute_exit(g, w, mask); break;
	case OP_TRAP: grid_fail(g, w, one_lane(mask), "trap"); break;
	case OP_SLEEP: g->budget = 0; break;
	default: execute_alu(g, w, i, mask); break;
	}
}

void warp_run(Grid *g, Warp *w)
{
	while (w->state == WARP_READY) {
		if (w->pc >= w->next_pc) { /* the group reconverges with another, or has passed it */
			set_lanes(w, w->active, w->pc);
			reconverge(w);
		}
		if (w->ahead && needs_all_lanes(&g->k->code[w->pc])) {
			w->ahead = 0;
			set_lanes(w, w->active, w->pc);
			reconverge(w);
			continue;
		}
		const Insn *i = &g->k->code[w->pc++];
		uint32_t mask = w->active;
		g->now = i;
		if (i->guard != NO_SLOT) {
			if (mask & ~w->defined[i->guard])
				grid_fail(g, w, one_lane(mask & ~w->defined[i->guard]), "the predicate was never written");
			mask &= source_pred(w, i->guard) ^ (i->guard_not ? UINT32_MAX : 0);
		}
		g->executed++;
		if (++g->idle > g->idle_most)
			hangs(g, w);
		if (mask) {
			check_sources(g, w, i, mask);
			execute_one(g, w, i, mask);
		}
		if (!g->budget)
			return;
		g->budget--;
	}
}
