/* SPDX-License-Identifier: MIT */
/* Tile instructions for CPUs that have none, for tests: the CPU stops at each, and this carries it out, as the
 * manual of the instructions says. Slow, but every instruction of amx.c runs as it stands in the program. */
#ifndef TILES_BY_HAND_H
#define TILES_BY_HAND_H

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <xmmintrin.h>

typedef struct Tiles {
	uint8_t row[8][16][64];
	uint16_t bytes[8];
	uint8_t rows[8];
	uint64_t products; /* done so far */
} Tiles;
static Tiles tiles;

/* What a mod-rm byte with its sib and displacement says, and where the instruction ends. */
typedef struct Operand {
	uint64_t base, index;
	const uint8_t *end;
} Operand;

static uint64_t machine_register(const ucontext_t *u, unsigned n)
{
	static const int at[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	return (uint64_t)u->uc_mcontext.gregs[at[n]];
}

static Operand operand(const ucontext_t *u, const uint8_t *code, unsigned x, unsigned b)
{
	unsigned mode = code[0] >> 6, rm = code[0] & 7;
	const uint8_t *next = code + 1;
	Operand o = { 0, 0, NULL };
	unsigned base = rm;
	int32_t far;

	if (rm == 4) {
		unsigned index = (*next >> 3 & 7) + 8 * x;
		o.index = index == 4 ? 0 : machine_register(u, index) << (*next >> 6);
		base = *next++ & 7;
	}
	if (mode == 0 && base == 5)
		mode = 2; /* without a base: displacement alone; with rm 5, from the next instruction */
	else
		o.base = machine_register(u, base + 8 * b);
	if (mode == 1)
		o.base += (uint64_t)(int64_t)(int8_t)*next++;
	if (mode == 2) {
		memcpy(&far, next, sizeof far);
		next += sizeof far;
		o.base += (uint64_t)(int64_t)far + (rm == 5 && code[0] >> 6 == 0 ? (uint64_t)(uintptr_t)next : 0);
	}
	o.end = next;
	return o;
}

static float bf16_at(const uint8_t *p)
{
	uint16_t half;
	uint32_t u;
	float x;

	memcpy(&half, p, sizeof half);
	u = (uint32_t)half << 16;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* a b + c with one rounding: the product is exact in double, and the sum rounded to odd there. */
static float fused_once(float a, float b, float c)
{
	double p = (double)a * b, s = p + c, back = s - p, lost = (p - (s - back)) + (c - back);
	uint64_t u;

	memcpy(&u, &s, sizeof u);
	if (lost > 0 || lost < 0)
		u = (u - ((lost < 0) != (s < 0))) | 1;
	memcpy(&s, &u, sizeof s);
	return (float)s;
}

static void tiles_multiply(unsigned into, unsigned first, unsigned second)
{
	for (unsigned m = 0; m < tiles.rows[into]; m++)
		for (unsigned n = 0; n < tiles.bytes[into] / 4u; n++) {
			float chain[2] = { 0, 0 }, c;
			for (unsigned k = 0; k < tiles.bytes[first] / 4u; k++)
				for (unsigned odd = 0; odd < 2; odd++)
					chain[odd] = fused_once(bf16_at(&tiles.row[first][m][4 * k + 2 * odd]),
					                        bf16_at(&tiles.row[second][k][4 * n + 2 * odd]), chain[odd]);
			memcpy(&c, &tiles.row[into][m][4 * n], sizeof c);
			c += chain[0] + chain[1];
			memcpy(&tiles.row[into][m][4 * n], &c, sizeof c);
		}
	tiles.products++;
}

static void tiles_configure(const uint8_t *shape)
{
	memset(tiles.row, 0, sizeof tiles.row);
	for (unsigned i = 0; i < 8; i++) {
		memcpy(&tiles.bytes[i], shape + 16 + 2 * i, 2);
		tiles.rows[i] = shape[48 + i];
	}
}

static void tile_move(unsigned t, Operand o, int store)
{
	for (unsigned r = 0; r < tiles.rows[t]; r++) {
		void *memory = (void *)(uintptr_t)(o.base + r * o.index);
		if (store)
			memcpy(memory, tiles.row[t][r], tiles.bytes[t]);
		else
			memcpy(tiles.row[t][r], memory, tiles.bytes[t]);
	}
}

static void tile_instruction(int number, siginfo_t *info, void *context)
{
	enum { PLAIN, P66, PF3, PF2 };
	ucontext_t *u = context;
	const uint8_t *code = (const uint8_t *)(uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	unsigned prefix = code[2] & 3, vvvv = ~code[2] >> 3 & 15, x = !(code[1] & 0x40), b = !(code[1] & 0x20);
	unsigned reg = code[4] >> 3 & 7, rm = code[4] & 7, registers = code[4] >> 6 == 3;
	unsigned before = _mm_getcsr();
	const uint8_t *end = code + 5;

	(void)info;
	_mm_setcsr(0x9fc0); /* nearest, tiny numbers are zero, as the manual says of tiles */
	if (code[0] != 0xc4 || (code[1] & 0x1f) != 2) {
		signal(number, SIG_DFL); /* not ours: stop there again, for good */
		end = code;
	} else if (code[3] == 0x49 && prefix == PLAIN && registers) {
		memset(tiles.row, 0, sizeof tiles.row);
	} else if (code[3] == 0x49 && prefix == PLAIN) {
		Operand o = operand(u, code + 4, x, b);
		tiles_configure((const uint8_t *)(uintptr_t)(o.base + o.index));
		end = o.end;
	} else if (code[3] == 0x49 && prefix == PF2) {
		memset(tiles.row[reg], 0, sizeof tiles.row[reg]);
	} else if (code[3] == 0x4b) {
		Operand o = operand(u, code + 4, x, b);
		tile_move(reg, o, prefix == PF3);
		end = o.end;
	} else if (code[3] == 0x5c && prefix == PF3) {
		tiles_multiply(reg, rm, vvvv);
	} else {
		signal(number, SIG_DFL);
		end = code;
	}
	_mm_setcsr(before);
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)end;
}

static void tiles_by_hand(void)
{
	struct sigaction act;

	memset(&act, 0, sizeof act);
	act.sa_sigaction = tile_instruction;
	act.sa_flags = SA_SIGINFO;
	sigaction(SIGILL, &act, NULL);
}

static void tiles_no_more(void) { signal(SIGILL, SIG_DFL); }

#endif
