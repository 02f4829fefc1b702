/* SPDX-License-Identifier: MIT */
/* Interpreter loop of the fast path.  In: instructions over rows.  Out: values in slots and memory of one block.
 *
 * Expands ops.def in loops over lanes, which the compiler vectorizes, once per instruction set.
 * Must hold: all kernels are bit-identical, so no fused multiply-add and no reordered sums.
 * Extensions of gcc and clang: target attributes, vector types, loop pragmas. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3", "no-trapping-math") /* vectorize the lane loops at any optimization level */
#endif
#if defined __x86_64__ && !defined MP_PORTABLE
#include <immintrin.h>
#endif

#include "cell.h"
#include "execute.h"

#if defined __clang__
#define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < lanes; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (int l = 0; l < lanes; l++)
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float Vector __attribute__((vector_size(32), may_alias));
typedef int32_t Mask __attribute__((vector_size(32), may_alias));
enum { VECTOR = sizeof(Vector) / sizeof(float), MOST_VECTORS = LANES / VECTOR };

INLINE void *row(const Frame *f, RowRef p) { return f->space[p.space] + (size_t)p.off * ROW_BYTES; }

/* The sum stays in vector registers.  A NaN propagates to the end, where it becomes the canonical NaN. */
INLINE void chain_plain(const Inst *i, const Term *t, const Frame *f, const int lanes)
{
	const int vectors = lanes / VECTOR;
	const Term *end = t + i->terms;
	Vector sum[MOST_VECTORS];
	const Vector *a = row(f, i->a);
	for (int v = 0; v < vectors; v++)
		sum[v] = a[v];
	for (; t < end; t++) {
		const Vector *x = row(f, t->x), *y = row(f, t->y);
		for (int v = 0; v < vectors; v++)
			sum[v] = sum[v] + x[v] * y[v];
	}
	Mask *dst = row(f, i->dst);
	for (int v = 0; v < vectors; v++) {
		Mask number = sum[v] == sum[v];
		dst[v] = ((Mask)sum[v] & number) | (CELL_NAN & ~number);
	}
}

/* Indexed SRAM addresses of the lanes, relative to the first lane. */
INLINE void own_addresses(const Frame *f, const Inst *i, const uint32_t *index, uint64_t address[LANES],
                          const int lanes)
{
	uint32_t first = f->base[i->base] + i->k.u, words = f->words, lanes_of_row = f->lanes, mask = words - 1;
	if (words & mask)
		EACH_LANE
	address[l] = (uint64_t)((first + index[l]) % words) * lanes_of_row + (uint64_t)l;
	else EACH_LANE address[l] = (uint64_t)((first + index[l]) & mask) * lanes_of_row + (uint64_t)l;
}

INLINE void lookup_plain(const Inst *i, const Frame *f, const int lanes)
{
	uint64_t address[LANES];
	uint32_t *dst = row(f, i->dst);
	const uint32_t *sram = f->sram;
	own_addresses(f, i, row(f, i->a), address, lanes);
	EACH_LANE
	dst[l] = sram[address[l]];
}

INLINE void put_plain(const Inst *i, const Frame *f, const int lanes)
{
	uint64_t address[LANES];
	const uint32_t *value = row(f, i->a);
	own_addresses(f, i, row(f, i->b), address, lanes);
	for (int l = 0; l < lanes; l++)
		f->sram[address[l]] = value[l];
}

/* Operations beside those of ops.def, for which an instruction set may have better code than the compiler finds:
 * KOP_CHAIN, and KOP_LOOKUP and KOP_PUT, which copy words at per-processor addresses to or from a row. */
typedef struct WideOps {
	void (*chain)(const Inst *i, const Term *t, const Frame *f, const int lanes);
	void (*lookup)(const Inst *i, const Frame *f, const int lanes);
	void (*put)(const Inst *i, const Frame *f, const int lanes);
} WideOps;
static const WideOps plain_ops = { chain_plain, lookup_plain, put_plain };

INLINE void prefetch_rows(const Sequence *s, const Inst *i, const Frame *f, const int lanes)
{
	for (const RowRef *p = s->prefetch + i->prefetch, *end = p + i->prefetches; p < end; p++) {
		const char *prefetch = row(f, *p);
		for (int b = 0; b < 4 * lanes; b += 64)
			__builtin_prefetch(prefetch + b);
	}
}

INLINE void run_stage(const Sequence *s, const Stage *st, const Frame *f, const int lanes, const WideOps *wide)
{
	const Inst *end = s->inst + st->inst + st->insts;
	for (const Inst *i = s->inst + st->inst; i < end; i++) {
		uint32_t *dst = row(f, i->dst);
		const uint32_t *row_a = row(f, i->a), *row_b = row(f, i->b), *row_c = row(f, i->c);
		const uint32_t constant = i->k.u;
		prefetch_rows(s, i, f, lanes);
		switch (i->op) {
#define OP(NAME, name, unit, form, latency, meaning, about)                           \
	case GOP_##NAME:                                                                  \
		EACH_LANE                                                                     \
		{                                                                             \
			Cell a = { .u = row_a[l] }, b = { .u = row_b[l] }, k = { .u = constant }; \
			uint32_t cc = row_c[l];                                                   \
			(void)a, (void)b, (void)cc, (void)k;                                      \
			dst[l] = CELL(meaning).u;                                                 \
		}                                                                             \
		break;
#include "ops.def"
		case KOP_CHAIN: wide->chain(i, s->term + i->first, f, lanes); break;
		case KOP_LOOKUP: wide->lookup(i, f, lanes); break;
		case KOP_PUT: wide->put(i, f, lanes); break;
		}
	}
}

INLINE void run_lanes(const Sequence *s, const Stage *st, const Frame *f, uint32_t count, const WideOps *wide)
{
	if (count == LANES)
		run_stage(s, st, f, LANES, wide);
	else
		run_stage(s, st, f, HALF, wide);
}

/* ---- the switch --------------------------------------------------------------------------------- */

/* add and dst may be the same slot. */
static void send_plain(const Processors *p, const Transfer *t, uint32_t transfers, uint32_t lane, uint32_t count)
{
	const int32_t *from = t->route->from + lane;
	uint32_t *mine = block_row(p, lane / LANES, 0) + lane % LANES;
	for (const Transfer *end = t + transfers; t < end; t++) {
		const uint32_t *src = block_row(p, 0, t->src), *add = mine + (size_t)(t->add == NONE ? 0 : t->add) * LANES;
		uint32_t *dst = mine + (size_t)t->dst * LANES;
		for (uint32_t l = 0; l < count; l++) {
			Cell word = { .u = from[l] < 0 ? 0 : src[from[l]] };
			dst[l] = t->add == NONE ? word.u : from_float((Cell){ .u = add[l] }.f + word.f).u;
		}
	}
}

/* ---- one kernel per instruction set ------------------------------------------------------------- */

#if defined __x86_64__ && !defined MP_PORTABLE
#if defined __clang__
#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#else
#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif
/* With vectors of 64 bytes; those of the plain chain, of 32, suit AVX2 and cost a seventh more here. */
INLINE __attribute__((target(AVX512))) void chain_avx512(const Inst *i, const Term *t, const Frame *f, const int lanes)
{
	const Term *end = t + i->terms;
	const int vectors = lanes / STRIP;
	__m512 sum[LANES / STRIP];
	const float *a = row(f, i->a);
	for (int v = 0; v < vectors; v++)
		sum[v] = _mm512_loadu_ps(a + v * STRIP);
	for (; t < end; t++) {
		const float *x = row(f, t->x), *y = row(f, t->y);
		for (int v = 0; v < vectors; v++)
			sum[v] =
				_mm512_add_ps(sum[v], _mm512_mul_ps(_mm512_loadu_ps(x + v * STRIP), _mm512_loadu_ps(y + v * STRIP)));
	}
	uint32_t *dst = row(f, i->dst);
	for (int v = 0; v < vectors; v++) {
		__mmask16 is_nan = _mm512_cmp_ps_mask(sum[v], sum[v], _CMP_UNORD_Q);
		_mm512_storeu_si512(dst + v * STRIP, _mm512_mask_set1_epi32(_mm512_castps_si512(sum[v]), is_nan, CELL_NAN));
	}
}

/* Gather and scatter take 32-bit offsets, which the standard machine's SRAM needs less than a hundredth of. */
INLINE bool offsets_fit(const Frame *f)
{
	return !(f->words & (f->words - 1)) && (uint64_t)f->words * f->lanes < INT32_MAX;
}

INLINE __attribute__((target(AVX512))) __m512i own_offsets(const Inst *i, const Frame *f, const uint32_t *index,
                                                           int lane)
{
	const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i word =
		_mm512_add_epi32(_mm512_loadu_si512(index + lane), _mm512_set1_epi32((int)(f->base[i->base] + i->k.u)));
	word = _mm512_and_si512(word, _mm512_set1_epi32((int)(f->words - 1)));
	word = _mm512_mullo_epi32(word, _mm512_set1_epi32((int)f->lanes));
	return _mm512_add_epi32(word, _mm512_add_epi32(count, _mm512_set1_epi32(lane)));
}

INLINE __attribute__((target(AVX512))) void lookup_avx512(const Inst *i, const Frame *f, const int lanes)
{
	if (!offsets_fit(f)) {
		lookup_plain(i, f, lanes);
		return;
	}
	uint32_t *dst = row(f, i->dst);
	const uint32_t *index = row(f, i->a);
	for (int l = 0; l < lanes; l += STRIP)
		_mm512_storeu_si512(dst + l, _mm512_i32gather_epi32(own_offsets(i, f, index, l), (const int *)f->sram, 4));
}

INLINE __attribute__((target(AVX512))) void put_avx512(const Inst *i, const Frame *f, const int lanes)
{
	if (!offsets_fit(f)) {
		put_plain(i, f, lanes);
		return;
	}
	const uint32_t *value = row(f, i->a), *index = row(f, i->b);
	for (int l = 0; l < lanes; l += STRIP)
		_mm512_i32scatter_epi32((int *)f->sram, own_offsets(i, f, index, l), _mm512_loadu_si512(value + l), 4);
}

static const WideOps avx512_ops = { chain_avx512, lookup_avx512, put_avx512 };

__attribute__((target(AVX512))) static void run_avx512(const Sequence *s, const Stage *st, const Frame *f,
                                                       uint32_t count)
{
	run_lanes(s, st, f, count, &avx512_ops);
}

INLINE __attribute__((target(AVX512))) __m512i add_words(__m512i a, __m512i b)
{
	__m512 sum = _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
	__mmask16 is_nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
	return _mm512_mask_set1_epi32(_mm512_castps_si512(sum), is_nan, CELL_NAN);
}

/* Most configurations are shifts: the words of a strip come from one or two strips. */
__attribute__((target(AVX512))) static void send_avx512(const Processors *p, const Transfer *t, uint32_t transfers,
                                                        uint32_t first_lane, uint32_t count)
{
	const SwitchRoute *r = t->route;
	const uint32_t *rows = block_row(p, 0, 0);
	uint32_t *block = block_row(p, first_lane / LANES, 0);
	for (uint32_t l = first_lane; l < first_lane + count; l += STRIP) {
		const uint32_t *first = r->first + l / STRIP;
		const StripSource *part = r->part + first[0], *end = r->part + first[1];
		uint32_t *mine = block + l % LANES;
		__m512i lane = _mm512_loadu_si512(r->from + l); /* permutexvar uses the low four bits */
		for (uint32_t i = 0; i < transfers; i++) {
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

__attribute__((target("avx2"))) static void run_avx2(const Sequence *s, const Stage *st, const Frame *f, uint32_t count)
{
	run_lanes(s, st, f, count, &plain_ops);
}
#endif

static void run_plain(const Sequence *s, const Stage *st, const Frame *f, uint32_t count)
{
	run_lanes(s, st, f, count, &plain_ops);
}

const Kernel kernels[] = {
#if defined __x86_64__ && !defined MP_PORTABLE
	{ "avx512", run_avx512, send_avx512 },
	{ "avx2", run_avx2, send_plain },
#endif
	{ "plain", run_plain, send_plain },
};
const uint32_t kernel_count = COUNT(kernels);

bool kernel_runs(uint32_t kernel)
{
#if defined __x86_64__ && !defined MP_PORTABLE
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
