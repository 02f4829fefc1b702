/* SPDX-License-Identifier: MIT */
/* Memory instructions of a warp: loads, stores, atomics, ldmatrix, cp.async. In: an instruction and its lanes. Out:
 * memory, registers. Must hold: every access is aligned and within one allocation; no shared word is read that was
 * never written or that a pending copy will write. */
#include <string.h>

#include "emulator.h"

static uint64_t lane_word(const Grid *g, const Warp *w, uint32_t slot, uint32_t lane, bool wide)
{
	const uint32_t *v = operand_lanes(g, w, slot);
	uint64_t r = v[lane];

	if (wide)
		memcpy(&r, v + 2 * (uint64_t)lane, sizeof r);
	return r;
}

/* The access of a lane. */
typedef struct LaneAccess {
	uint8_t *at;
	uint64_t address; /* in the state space */
	uint32_t bytes;
	uint32_t word;          /* shared: index in Block.word */
	Block *block;           /* shared: that has the memory */
	Allocation *allocation; /* global */
} LaneAccess;

_Noreturn static void fail_bounds(Grid *g, const Warp *w, uint32_t lane, const LaneAccess *p, Space space,
                                  uint64_t bytes)
{
	if (space == IN_GLOBAL || space == IN_CONST)
		grid_fail(g, w, lane, "%u bytes at address 0x%llx: no allocation holds them", p->bytes,
		          (unsigned long long)p->address);
	grid_fail(g, w, lane, "%u bytes at %lld of .%s memory, which has %llu", p->bytes, (long long)(int64_t)p->address,
	          space_names[space], (unsigned long long)bytes);
}

static void check_bounds(Grid *g, const Warp *w, uint32_t lane, LaneAccess *p, Space space, uint8_t *from,
                         uint64_t bytes)
{
	if (p->address > bytes || bytes - p->address < p->bytes)
		fail_bounds(g, w, lane, p, space, bytes);
	p->at = from + p->address;
}

static LaneAccess lane_access(Grid *g, const Warp *w, Space space, uint64_t address, uint32_t lane, uint32_t bytes)
{
	LaneAccess p = { .address = address, .bytes = bytes };

	if (address & (bytes - 1))
		grid_fail(g, w, lane, "%u bytes at address 0x%llx are misaligned", bytes, (unsigned long long)address);
	switch (space) {
	case IN_PARAM: check_bounds(g, w, lane, &p, space, g->param, g->k->param_bytes); break;
	case IN_LOCAL: check_bounds(g, w, lane, &p, space, w->local + (uint64_t)lane * g->k->local, g->k->local); break;
	case IN_SHARED:
		p.block = w->block;
		check_bounds(g, w, lane, &p, space, w->block->shared, g->shared_bytes);
		p.word = (uint32_t)(address / 4);
		break;
	default:
		if (!g->last || address - (uintptr_t)g->last->at >= g->last->bytes)
			g->last = allocation_find(g->e, address);
		p.allocation = g->last;
		if (!p.allocation || p.allocation->bytes - (address - (uintptr_t)p.allocation->at) < bytes)
			fail_bounds(g, w, lane, &p, space, 0);
		p.at = p.allocation->at + (address - (uintptr_t)p.allocation->at);
		break;
	}
	return p;
}

/* The block of a shared::cluster address: mapa puts 1 + rank above REMOTE_SHIFT; 0: this block. */
Block *block_at(Grid *g, const Warp *w, uint32_t address, uint32_t lane)
{
	uint32_t rank = address >> REMOTE_SHIFT;

	if (rank > g->cluster)
		grid_fail(g, w, lane, "an address of block %u of a cluster of %u", rank - 1, g->cluster);
	return rank ? &g->block[w->block->number / g->cluster * g->cluster + rank - 1] : w->block;
}

static LaneAccess remote_access(Grid *g, const Warp *w, uint32_t address, uint32_t lane, uint32_t bytes)
{
	LaneAccess p = { .address = address & (((uint32_t)1 << REMOTE_SHIFT) - 1), .bytes = bytes };

	p.block = block_at(g, w, address, lane);
	if (p.address & (bytes - 1))
		grid_fail(g, w, lane, "%u bytes at address 0x%llx are misaligned", bytes, (unsigned long long)p.address);
	if (!p.block->live)
		grid_fail(g, w, lane, "block %u, whose shared memory this is, has ended", p.block->number);
	check_bounds(g, w, lane, &p, IN_SHARED, p.block->shared, g->shared_bytes);
	p.word = (uint32_t)(p.address / 4);
	return p;
}

static LaneAccess access_of(Grid *g, const Warp *w, const Insn *i, uint32_t lane, uint32_t bytes)
{
	bool wide = i->space == IN_GLOBAL || i->space == IN_CONST;
	uint64_t address = lane_word(g, w, i->a[0], lane, wide) + (uint64_t)i->offset;

	if (i->remote)
		return remote_access(g, w, (uint32_t)address, lane, bytes);
	return lane_access(g, w, (Space)i->space, i->space == IN_SHARED ? (uint32_t)address : address, lane, bytes);
}

/* ---- checks ---- */

static uint8_t byte_mask(const LaneAccess *p)
{
	return p->bytes >= 4 ? WORD_DEFINED : (uint8_t)(((1u << p->bytes) - 1) << (p->address & 3));
}

static Shadow *shared_shadow(Grid *g, const Warp *w, Block *b)
{
	return b->shadow ? b->shadow : (b->shadow = shadow_new(g, w, g->shared_bytes, true));
}

static Shadow *global_shadow(Grid *g, const Warp *w, Allocation *a)
{
	return a->shadow ? a->shadow : (a->shadow = shadow_new(g, w, a->bytes, false));
}

static void access_record(Grid *g, Warp *w, Space space, const LaneAccess *p, uint32_t lane, Access how)
{
	uint32_t words = p->bytes > 4 ? p->bytes / 4 : 1;

	if (!g->races || (space != IN_SHARED && space != IN_GLOBAL))
		return;
	Shadow *m = space == IN_SHARED ? shared_shadow(g, w, p->block) : global_shadow(g, w, p->allocation);
	uint64_t first = space == IN_SHARED ? p->word : (uint64_t)(p->at - p->allocation->at) / 4;
	for (uint32_t k = 0; k < words; k++)
		races_access(g, w, lane, m, first + k, byte_mask(p), how);
}

_Noreturn static void fail_in_flight(Grid *g, const Warp *w, uint32_t lane, const Block *block, uint64_t address)
{
	const Bulk *b = bulk_to(g, block, address);

	if (b)
		grid_fail(g, w, lane, "shared word at %llu: a copy by cp.async.bulk in line %u is on its way to it",
		          (unsigned long long)address, line_of(g, b->insn->at));
	grid_fail(g, w, lane, "shared word at %llu: a copy by cp.async is on its way to it", (unsigned long long)address);
}

static void check_read(Grid *g, Warp *w, const LaneAccess *p, uint32_t lane)
{
	uint32_t words = p->bytes > 4 ? p->bytes / 4 : 1;
	uint8_t need = byte_mask(p);

	for (uint32_t k = 0; k < words; k++) {
		uint8_t state = p->block->word[p->word + k];
		if (state & WORD_IN_FLIGHT)
			fail_in_flight(g, w, lane, p->block, p->address + 4 * k);
		if (need & ~state)
			grid_fail(g, w, lane, "shared word at %llu was never written", (unsigned long long)p->address + 4 * k);
	}
}

static void mark_written(Grid *g, Warp *w, const LaneAccess *p, uint32_t lane)
{
	uint32_t words = p->bytes > 4 ? p->bytes / 4 : 1;

	for (uint32_t k = 0; k < words; k++) {
		if (p->block->word[p->word + k] & WORD_IN_FLIGHT)
			fail_in_flight(g, w, lane, p->block, p->address + 4 * k);
		p->block->word[p->word + k] |= byte_mask(p);
	}
}

static void mark_in_flight(const LaneAccess *p)
{
	for (uint32_t k = 0; k < p->bytes / 4; k++)
		p->block->word[p->word + k] |= WORD_IN_FLIGHT;
}

/* ---- loads and stores ---- */

static uint64_t extend(Type t, uint64_t v)
{
	switch (t) {
	case T_S8: return (uint64_t)(int64_t)(int8_t)v;
	case T_S16: return (uint64_t)(int64_t)(int16_t)v;
	case T_S32: return (uint64_t)(int64_t)(int32_t)v;
	default: return v;
	}
}

/* Fast path for 4-byte words in shared or global memory: if all lanes are aligned and within bounds, returns the memory
 * and their offsets in `at`. NULL: lanes are processed one by one, with all checks. */
static uint8_t *vector_addresses(Grid *g, const Warp *w, const Insn *i, uint32_t mask, uint32_t bytes, uint64_t *at)
{
	uint64_t low = UINT64_MAX, high = 0, bits = 0, from = 0, length = g->shared_bytes;
	const uint32_t *base = operand_lanes(g, w, i->a[0]);
	uint8_t *memory = w->block->shared;

	if ((g->races && (i->op != OP_LOAD || i->order != O_WEAK)) || i->remote || type_bytes((Type)i->type) != 4 ||
	    (i->space != IN_SHARED && i->space != IN_GLOBAL))
		return NULL;
	for (uint32_t l = 0; l < LANES; l++) {
		if (i->space == IN_SHARED)
			at[l] = (uint32_t)(base[l] + (uint32_t)i->offset);
		else
			memcpy(&at[l], base + 2 * (uint64_t)l, sizeof *at), at[l] += (uint64_t)i->offset;
		if (mask >> l & 1) {
			low = min_u64(low, at[l]);
			high = max_u64(high, at[l]);
			bits |= at[l];
		}
	}
	if (i->space == IN_GLOBAL) {
		if (!g->last || low - (uintptr_t)g->last->at >= g->last->bytes)
			g->last = allocation_find(g->e, low);
		if (!g->last || g->last->constant)
			return NULL;
		memory = g->last->at;
		from = (uintptr_t)memory;
		length = g->last->bytes;
	}
	if (bits & (bytes - 1) || length < bytes || high - from > length - bytes)
		return NULL;
	for (uint32_t l = 0; from && l < LANES; l++)
		at[l] -= from;
	return memory;
}

static bool load_words(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint64_t at[LANES];
	const uint8_t *memory = vector_addresses(g, w, i, mask, 4u * i->width, at);

	if (!memory)
		return false;
	for (uint32_t l = 0; i->space == IN_SHARED && l < LANES; l++)
		for (uint32_t k = 0; mask >> l & 1 && k < i->width; k++)
			if ((w->block->word[at[l] / 4 + k] & (WORD_DEFINED | WORD_IN_FLIGHT)) != WORD_DEFINED)
				return false;
	if (g->races)
		races_load(g, w, mask, i->space == IN_SHARED ? shared_shadow(g, w, w->block) : global_shadow(g, w, g->last), at,
		           i->width);
	for (uint32_t k = 0; k < i->width; k++) {
		if (i->d[k] == NO_SLOT)
			continue;
		uint32_t *to = w->reg + (uint64_t)i->d[k] * LANES;
		for (uint32_t l = 0; l < LANES; l++)
			if (mask >> l & 1)
				memcpy(to + l, memory + at[l] + 4 * (uint64_t)k, 4);
		w->defined[i->d[k]] |= mask;
	}
	return true;
}

static bool store_words(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint64_t at[LANES];
	uint8_t *memory = i->order == O_WEAK ? vector_addresses(g, w, i, mask, 4u * i->width, at) : NULL;

	if (!memory)
		return false;
	for (uint32_t l = 0; i->space == IN_SHARED && l < LANES; l++)
		for (uint32_t k = 0; mask >> l & 1 && k < i->width; k++)
			if (w->block->word[at[l] / 4 + k] & WORD_IN_FLIGHT)
				return false;
	for (uint32_t k = 0; k < i->width; k++) {
		const uint32_t *from = operand_lanes(g, w, i->a[1 + k]);
		for (uint32_t l = 0; l < LANES; l++) {
			if (!(mask >> l & 1))
				continue;
			uint8_t *to = memory + at[l] + 4 * (uint64_t)k;
			if (memcmp(to, from + l, 4) != 0)
				g->idle = 0;
			memcpy(to, from + l, 4);
			if (i->space == IN_SHARED)
				w->block->word[at[l] / 4 + k] |= WORD_DEFINED;
		}
	}
	return true;
}

void access_load(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	Type t = (Type)i->type;
	uint32_t each = type_bytes(t), bytes = each * i->width;
	bool atomic = i->order != O_WEAK, wide = each == 8;

	if (load_words(g, w, i, mask)) {
		g->budget = atomic && i->space == IN_GLOBAL ? 0 : g->budget;
		return;
	}
	for (uint32_t l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		LaneAccess p = access_of(g, w, i, l, bytes);
		if (i->space == IN_SHARED)
			check_read(g, w, &p, l);
		if (g->races && atomic && !i->local_scope)
			races_acquire(g, w, (uintptr_t)p.at, i->order == O_ACQUIRE);
		access_record(g, w, (Space)i->space, &p, l, atomic ? ACCESS_ATOMIC_READ : ACCESS_READ);
		for (uint32_t k = 0; k < i->width; k++) {
			uint64_t v = 0;
			if (i->d[k] == NO_SLOT)
				continue;
			memcpy(&v, p.at + (uint64_t)k * each, each);
			v = extend(t, v);
			if (wide)
				memcpy(w->reg + (uint64_t)i->d[k] * LANES + 2 * (uint64_t)l, &v, sizeof v);
			else
				w->reg[(uint64_t)i->d[k] * LANES + l] = (uint32_t)v;
		}
	}
	for (uint32_t k = 0; k < i->width; k++)
		if (i->d[k] != NO_SLOT)
			w->defined[i->d[k]] |= mask;
	if (atomic && i->space == IN_GLOBAL)
		g->budget = 0; /* it may be a poll: another warp runs */
}

/* ---- ldmatrix ---- */

/* Lane 8 k + r has the address of row r of matrix k. Every lane gets two adjacent elements of a row, or of a column
 * (.trans). */
void access_matrices(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	enum { SIDE = 8 };
	uint16_t half[4][SIDE][SIDE] = { 0 };

	if (mask != UINT32_MAX)
		grid_fail(g, w, NO_LANE, "only lanes 0x%08x of the warp execute it, and all must", mask);
	for (uint32_t l = 0; l < (uint32_t)i->width * SIDE; l++) {
		LaneAccess p = access_of(g, w, i, l, 16);
		check_read(g, w, &p, l);
		access_record(g, w, IN_SHARED, &p, l, ACCESS_READ);
		memcpy(half[l / SIDE][l % SIDE], p.at, sizeof half[0][0]);
	}
	for (uint32_t k = 0; k < i->width; k++) {
		uint32_t *to = w->reg + (uint64_t)i->d[k] * LANES;
		for (uint32_t l = 0; l < LANES; l++) {
			uint32_t major = l / 4, minor = 2 * (l % 4);
			uint16_t low = i->sub ? half[k][minor][major] : half[k][major][minor];
			uint16_t high = i->sub ? half[k][minor + 1][major] : half[k][major][minor + 1];
			to[l] = (uint32_t)high << 16 | low;
		}
		w->defined[i->d[k]] = mask;
	}
}

static void check_same_word(Grid *g, const Warp *w, const Insn *i, uint32_t mask, const LaneAccess *place,
                            const uint8_t *data)
{
	uint32_t bytes = place[__builtin_ctz(mask)].bytes;

	for (uint32_t l = 0; l < LANES; l++)
		for (uint32_t k = l + 1; mask >> l & 1 && k < LANES; k++)
			if (mask >> k & 1 && place[l].at == place[k].at && memcmp(data + 16 * l, data + 16 * k, bytes) != 0)
				grid_fail(g, w, l, "lanes %u and %u write different values to the same place of .%s", l, k,
				          space_names[i->space]);
}

void access_store(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint32_t each = type_bytes((Type)i->type), bytes = each * i->width;
	bool atomic = i->order != O_WEAK;
	LaneAccess place[LANES];
	uint8_t data[LANES * 16];

	if (store_words(g, w, i, mask))
		return;
	for (uint32_t l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		LaneAccess p = place[l] = access_of(g, w, i, l, bytes);
		for (uint32_t k = 0; k < i->width; k++) {
			uint64_t v = lane_word(g, w, i->a[1 + k], l, each == 8);
			memcpy(data + 16 * l + (uint64_t)k * each, &v, each);
		}
		if (i->space == IN_SHARED)
			mark_written(g, w, &p, l);
		if (i->space == IN_GLOBAL && p.allocation->constant)
			grid_fail(g, w, l, "a store to an array of .const");
		bool changes = memcmp(p.at, data + 16 * l, bytes) != 0;
		access_record(g, w, (Space)i->space, &p, l,
		              !atomic   ? ACCESS_WRITE
		              : changes ? ACCESS_ATOMIC_STORE
		                        : ACCESS_ATOMIC);
		if (g->races && atomic && !i->local_scope)
			races_release(g, w, (uintptr_t)p.at, i->order == O_RELEASE, true);
		if (changes) {
			g->idle = 0;
			memcpy(p.at, data + 16 * l, bytes);
		}
	}
	if (g->races && i->space != IN_LOCAL)
		check_same_word(g, w, i, mask, place, data);
}

uint64_t lane_wide(const Grid *g, const Warp *w, uint32_t slot, uint32_t lane)
{
	return lane_word(g, w, slot, lane, true);
}

uint32_t lane_value(const Grid *g, const Warp *w, uint32_t slot, uint32_t lane)
{
	return (uint32_t)lane_word(g, w, slot, lane, false);
}

uint8_t *shared_place(Grid *g, Warp *w, const Insn *i, uint32_t lane, uint32_t bytes, Access how)
{
	LaneAccess p = access_of(g, w, i, lane, bytes);

	if (how == ACCESS_WRITE || how == ACCESS_BULK_WRITE)
		mark_written(g, w, &p, lane);
	else
		check_read(g, w, &p, lane);
	if (how == ACCESS_BULK_WRITE)
		mark_in_flight(&p);
	access_record(g, w, IN_SHARED, &p, lane, how);
	return p.at;
}

const uint8_t *shared_read(Grid *g, Warp *w, uint32_t address, uint32_t lane, uint32_t bytes, Access how)
{
	LaneAccess p = lane_access(g, w, IN_SHARED, address, lane, bytes);

	check_read(g, w, &p, lane);
	access_record(g, w, IN_SHARED, &p, lane, how);
	return p.at;
}

const uint8_t *global_place(Grid *g, Warp *w, uint32_t slot, int64_t offset, uint32_t lane, uint32_t bytes)
{
	LaneAccess p = lane_access(g, w, IN_GLOBAL, lane_word(g, w, slot, lane, true) + (uint64_t)offset, lane, bytes);

	access_record(g, w, IN_GLOBAL, &p, lane, ACCESS_BULK_READ);
	return p.at;
}

/* ---- atomics ---- */

uint64_t atomic_apply(AtomicOp op, Type t, uint64_t old, uint64_t b, uint64_t c)
{
	bool is_signed = t == T_S32 || t == T_S64, less;

	if (t == T_S32)
		old = extend(T_S32, old), b = extend(T_S32, b);
	less = is_signed ? (int64_t)b < (int64_t)old : b < old;
	switch (op) {
	case A_ADD: return old + b;
	case A_AND: return old & b;
	case A_OR: return old | b;
	case A_XOR: return old ^ b;
	case A_MIN: return less ? b : old;
	case A_MAX: return less ? old : b;
	case A_EXCH: return b;
	case A_CAS: return old == b ? c : old;
	case A_INC: return old >= b ? 0 : old + 1;
	default: return old == 0 || old > b ? b : old - 1;
	}
}

void access_atomic(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	uint32_t bytes = type_bytes((Type)i->type), from = g->e->opt.seed ? (uint32_t)grid_random(g) % LANES : 0;
	bool wide = bytes == 8, acquire = i->order == O_ACQUIRE || i->order == O_ACQ_REL;
	bool release = i->order == O_RELEASE || i->order == O_ACQ_REL;

	for (uint32_t n = 0; n < LANES; n++) {
		uint32_t l = (n + from) % LANES;
		uint64_t old = 0, new;
		if (!(mask >> l & 1))
			continue;
		LaneAccess p = access_of(g, w, i, l, bytes);
		if (i->space == IN_SHARED)
			check_read(g, w, &p, l);
		if (g->races && !i->local_scope)
			races_acquire(g, w, (uintptr_t)p.at, acquire);
		access_record(g, w, (Space)i->space, &p, l, ACCESS_ATOMIC);
		if (g->races && !i->local_scope)
			races_release(g, w, (uintptr_t)p.at, release, false);
		memcpy(&old, p.at, bytes);
		new = atomic_apply((AtomicOp)i->sub, (Type)i->type, old, lane_word(g, w, i->a[1], l, wide),
		                   i->sources > 2 ? lane_word(g, w, i->a[2], l, wide) : 0);
		if (memcmp(p.at, &new, bytes) != 0) {
			g->idle = 0;
			memcpy(p.at, &new, bytes);
		}
		if (!i->results)
			continue;
		if (wide)
			memcpy(w->reg + (uint64_t)i->d[0] * LANES + 2 * (uint64_t)l, &old, sizeof old);
		else
			w->reg[(uint64_t)i->d[0] * LANES + l] = (uint32_t)old;
	}
	if (i->results)
		w->defined[i->d[0]] |= mask;
	if (i->results && i->space == IN_GLOBAL)
		g->budget = 0;
}

/* ---- cp.async: completes when it is waited for, in random order ---- */

void access_copy(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	for (uint32_t l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		uint32_t bytes = i->width;
		if (i->sources > 2)
			bytes = (uint32_t)lane_word(g, w, i->a[2], l, false);
		if (bytes > i->width)
			grid_fail(g, w, l, "a copy of %u bytes from %u", i->width, bytes);
		uint32_t to = (uint32_t)lane_word(g, w, i->a[0], l, false) + i->target;
		LaneAccess p = lane_access(g, w, IN_SHARED, to, l, i->width);
		uint64_t address = lane_word(g, w, i->a[1], l, true) + (uint64_t)i->offset;
		Copy c = { .to = to, .bytes = bytes, .zeros = i->width - bytes, .from = address, .lane = (uint8_t)l };
		c.group = w->copy_group[l];
		c.at = i->at;
		if (bytes) {
			LaneAccess q = lane_access(g, w, IN_GLOBAL, address, l, i->width);
			access_record(g, w, IN_GLOBAL, &q, l, ACCESS_READ);
		}
		access_record(g, w, IN_SHARED, &p, l, ACCESS_WRITE);
		mark_written(g, w, &p, l);
		mark_in_flight(&p);
		c.read = g->e->opt.seed && grid_random(g) & 1;
		if (c.read)
			memcpy(c.data, (const void *)(uintptr_t)address, bytes);
		w->copy = arena_reserve(&g->arena, w->copy, w->copies, &w->copy_cap, sizeof *w->copy);
		w->copy[w->copies++] = c;
	}
}

void access_commit(Warp *w, uint32_t mask)
{
	for (uint32_t l = 0; l < LANES; l++)
		w->copy_group[l] += mask >> l & 1;
}

static void complete(Grid *g, Warp *w, Copy *c)
{
	uint8_t *to = w->block->shared + c->to;
	LaneAccess p = { .at = to, .address = c->to, .word = c->to / 4, .bytes = c->bytes + c->zeros, .block = w->block };

	if (!c->read)
		memcpy(c->data, (const void *)(uintptr_t)c->from, c->bytes);
	memcpy(to, c->data, c->bytes);
	memset(to + c->bytes, 0, c->zeros);
	for (uint32_t k = 0; k < p.bytes / 4; k++)
		w->block->word[p.word + k] &= (uint8_t)~WORD_IN_FLIGHT;
	access_record(g, w, IN_SHARED, &p, c->lane, ACCESS_WRITE);
	g->idle = 0;
}

void access_wait(Grid *g, Warp *w, int64_t left, uint32_t mask)
{
	uint64_t kept = 0;

	for (uint64_t n = w->copies; g->e->opt.seed && n > 1; n--) { /* shuffle */
		uint64_t k = grid_random(g) % n;
		Copy c = w->copy[k];
		w->copy[k] = w->copy[n - 1];
		w->copy[n - 1] = c;
	}
	for (uint64_t n = 0; n < w->copies; n++) {
		Copy *c = &w->copy[n];
		bool mine = mask >> c->lane & 1;
		bool due = mine && (left < 0 || (int64_t)c->group + left < (int64_t)w->copy_group[c->lane]);
		if (due)
			complete(g, w, c);
		else
			w->copy[kept++] = *c;
	}
	w->copies = kept;
}
