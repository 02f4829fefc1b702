/* SPDX-License-Identifier: MIT */
/* Interpreter loop of the fast path.  In: instructions over rows.  Out: values in slots and memory of one block.
 *
 * Expands ops.def in loops over lanes, which the compiler vectorizes, once per instruction set.
 * Must hold: all kernels are bit-identical, so no fused multiply-add and no reordered sums.
 * Extensions of gcc and clang: target attributes, vector types, loop pragmas. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3", "no-trapping-math") /* vectorize the lane loops at any optimization level */
#endif
#if defined __x86_64__
#include <immintrin.h>
#endif

#include "cell.h"
#include "execute.h"

#if defined __clang__
#define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < LANES; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float Vector __attribute__((vector_size(32), may_alias));
typedef int32_t Mask __attribute__((vector_size(32), may_alias));
enum { VECTORS = ROW_BYTES / sizeof(Vector) };

INLINE void *row(const Frame *f, RowRef p) { return f->space[p.space] + (size_t)p.off * ROW_BYTES; }

/* The sum stays in vector registers.  A NaN propagates to the end, where it becomes the canonical NaN. */
INLINE void run_chain(const Inst *i, const Term *t, const Frame *f)
{
	const Term *end = t + i->terms;
	Vector sum[VECTORS];
	const Vector *a = row(f, i->a);
	for (int v = 0; v < VECTORS; v++)
		sum[v] = a[v];
	for (; t < end; t++) {
		const Vector *x = row(f, t->x), *y = row(f, t->y);
		for (int v = 0; v < VECTORS; v++)
			sum[v] = sum[v] + x[v] * y[v];
	}
	Mask *dst = row(f, i->dst);
	for (int v = 0; v < VECTORS; v++) {
		Mask number = sum[v] == sum[v];
		dst[v] = ((Mask)sum[v] & number) | (CELL_NAN & ~number);
	}
}

/* Indexed SRAM addresses of the lanes of a block, relative to the block's first lane. */
INLINE void own_addresses(const Frame *f, const Inst *i, const uint32_t *index, uint64_t address[LANES])
{
	uint32_t first = f->base[i->base] + i->k.u, words = f->words, lanes = f->lanes, mask = words - 1;
	if (words & mask)
		EACH_LANE
	address[l] = (uint64_t)((first + index[l]) % words) * lanes + (uint64_t)l;
	else EACH_LANE address[l] = (uint64_t)((first + index[l]) & mask) * lanes + (uint64_t)l;
}

INLINE void run_lookup(const Inst *i, const Frame *f)
{
	uint64_t address[LANES];
	uint32_t *dst = row(f, i->dst);
	const uint32_t *sram = f->sram;
	own_addresses(f, i, row(f, i->a), address);
	EACH_LANE
	dst[l] = sram[address[l]];
}

INLINE void run_put(const Inst *i, const Frame *f)
{
	uint64_t address[LANES];
	const uint32_t *value = row(f, i->a);
	own_addresses(f, i, row(f, i->b), address);
	for (uint32_t l = 0; l < LANES; l++)
		f->sram[address[l]] = value[l];
}

INLINE void prefetch_rows(const Sequence *s, const Inst *i, const Frame *f)
{
	for (const RowRef *p = s->prefetch + i->prefetch, *end = p + i->prefetches; p < end; p++) {
		const char *prefetch = row(f, *p);
		for (int b = 0; b < ROW_BYTES; b += 64)
			__builtin_prefetch(prefetch + b);
	}
}

INLINE void run_stage(const Sequence *s, const Stage *st, const Frame *f)
{
	const Inst *end = s->inst + st->inst + st->insts;
	for (const Inst *i = s->inst + st->inst; i < end; i++) {
		uint32_t *dst = row(f, i->dst);
		const uint32_t *row_a = row(f, i->a), *row_b = row(f, i->b), *row_c = row(f, i->c);
		const Cell k = i->k;
		prefetch_rows(s, i, f);
		switch (i->op) {
#define OP(NAME, name, unit, form, latency, meaning, about)    \
	case GOP_##NAME:                                           \
		EACH_LANE                                              \
		{                                                      \
			Cell a = { .u = row_a[l] }, b = { .u = row_b[l] }; \
			uint32_t cc = row_c[l];                            \
			(void)a, (void)b, (void)cc;                        \
			dst[l] = CELL(meaning).u;                          \
		}                                                      \
		break;
#include "ops.def"
		case KOP_CHAIN: run_chain(i, s->term + i->first, f); break;
		case KOP_LOOKUP: run_lookup(i, f); break;
		case KOP_PUT: run_put(i, f); break;
		}
	}
}

/* ---- the switch --------------------------------------------------------------------------------- */

/* add and dst may be the same slot. */
static void send_plain(const Processors *p, const Transfer *t, uint32_t count, uint32_t block)
{
	const int32_t *from = t->route->from + (size_t)block * LANES;
	for (const Transfer *end = t + count; t < end; t++) {
		const uint32_t *src = block_row(p, 0, t->src), *add = block_row(p, block, t->add == NONE ? 0 : t->add);
		uint32_t *dst = block_row(p, block, t->dst);
		for (uint32_t l = 0; l < LANES; l++) {
			Cell word = { .u = from[l] < 0 ? 0 : src[from[l]] };
			dst[l] = t->add == NONE ? word.u : from_float((Cell){ .u = add[l] }.f + word.f).u;
		}
	}
}

/* ---- one kernel per instruction set ------------------------------------------------------------- */

#if defined __x86_64__
#if defined __clang__
#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#else
#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif
__attribute__((target(AVX512))) static void run_avx512(const Sequence *s, const Stage *st, const Frame *f)
{
	run_stage(s, st, f);
}

__attribute__((target(AVX512))) static inline __m512i add_words(__m512i a, __m512i b)
{
	__m512 sum = _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
	__mmask16 is_nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
	return _mm512_mask_set1_epi32(_mm512_castps_si512(sum), is_nan, CELL_NAN);
}

/* Most configurations are shifts: the words of a strip come from one or two strips. */
__attribute__((target(AVX512))) static void send_avx512(const Processors *p, const Transfer *t, uint32_t count,
                                                        uint32_t block)
{
	const SwitchRoute *r = t->route;
	const uint32_t *rows = block_row(p, 0, 0);
	for (uint32_t s = 0; s < STRIPS; s++) {
		const uint32_t *first = r->first + (size_t)block * STRIPS + s;
		const StripSource *part = r->part + first[0], *end = r->part + first[1];
		uint32_t *mine = block_row(p, block, 0) + s * STRIP;
		__m512i lane =
			_mm512_loadu_si512(r->from + (size_t)block * LANES + s * STRIP); /* permutexvar uses the low four bits */
		for (uint32_t i = 0; i < count; i++) {
			const uint32_t *src = rows + (size_t)t[i].src * LANES;
			__m512i words = _mm512_setzero_si512();
			for (const StripSource *k = part; k < end; k++)
				words = _mm512_mask_permutexvar_epi32(words, k->lanes, lane, _mm512_load_si512(src + k->from));
			if (t[i].add != NONE)
				words = add_words(_mm512_load_si512(mine + (size_t)t[i].add * LANES), words);
			_mm512_store_si512(mine + (size_t)t[i].dst * LANES, words);
		}
	}
}

__attribute__((target("avx2"))) static void run_avx2(const Sequence *s, const Stage *st, const Frame *f)
{
	run_stage(s, st, f);
}
#endif

static void run_plain(const Sequence *s, const Stage *st, const Frame *f) { run_stage(s, st, f); }

const Kernel kernels[] = {
#if defined __x86_64__
	{ "avx512", run_avx512, send_avx512 },
	{ "avx2", run_avx2, send_plain },
#endif
	{ "plain", run_plain, send_plain },
};
const uint32_t kernel_count = COUNT(kernels);

bool kernel_runs(uint32_t kernel)
{
#if defined __x86_64__
	bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	return (bool[]){ avx512, __builtin_cpu_supports("avx2"), true }[kernel];
#else
	return kernel == 0;
#endif
}

uint32_t kernel_best(void)
{
	uint32_t kernel = 0;
	while (!kernel_runs(kernel))
		kernel++;
	return kernel;
}

const char *kernel_name(void) { return kernels[kernel_best()].name; }
