/* SPDX-License-Identifier: MIT */
/* Operations of a vec_*.h and of flush.h against exact integers: results rounded once, subnormal operands and results
 * flushed as flush.h says; where nothing is flushed, fmaf of the C library must agree. Then the product kernel against
 * f_fma. Needs headers of the library and nothing else, so that it also runs where there is a compiler only;
 * test/check/cross has the command.
 *   operations [COUNT] */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern.h"
#include VEC
#include "product.inc"

#if FLUSH_BY_CPU
#include <xmmintrin.h>
#endif

__extension__ typedef unsigned __int128 Big;

/* ---- exact ---- */

typedef struct Exact { /* m 2^e */
	bool negative;
	Big m;
	int e;
} Exact;

static bool is_finite(uint32_t u) { return (u & 0x7f800000) != 0x7f800000; }

static Exact exact_of(uint32_t u)
{
	int e = (int)(u >> 23 & 255);
	return (Exact){ u >> 31, e ? (u & 0x7fffff) | 0x800000 : 0, e - 150 }; /* subnormal: zero */
}

static int top_bit(Big m)
{
	int n = -1;
	for (; m; m >>= 1)
		n++;
	return n;
}

/* Up to place `top` of the highest bit; bits that fall off below leave a 1 in the last place. */
static Exact placed(Exact x, int top)
{
	int by = x.m ? top - top_bit(x.m) : 0;
	if (by >= 0)
		x.m <<= by;
	else
		x.m = (x.m >> -by) | ((x.m & (((Big)1 << -by) - 1)) != 0);
	x.e -= by;
	return x;
}

static Exact exact_sum(Exact x, Exact y)
{
	if (!x.m && !y.m)
		return (Exact){ x.negative && y.negative, 0, 0 };
	if (!x.m || (y.m && top_bit(y.m) + y.e > top_bit(x.m) + x.e)) {
		Exact t = x;
		x = y;
		y = t;
	}
	x = placed(x, 120);
	if (y.m) {
		int by = x.e - y.e; /* y is shifted right by this */
		if (by > 0)
			y.m = by > 120 ? 1 : (y.m >> by) | ((y.m & (((Big)1 << by) - 1)) != 0);
		else
			y.m <<= -by;
	}
	x.m = x.negative == y.negative ? x.m + y.m : x.m - y.m; /* x may be the smaller by its lower bits */
	if (x.m >> 127) {
		x.m = -x.m;
		x.negative = !x.negative;
	}
	if (!x.m)
		x.negative = false;
	return x;
}

static Exact exact_product(Exact x, Exact y) { return (Exact){ x.negative != y.negative, x.m * y.m, x.e + y.e }; }

static uint32_t rounded(Exact x)
{
	uint32_t sign = (uint32_t)x.negative << 31;
	if (!x.m)
		return sign;
	x = placed(x, 60);
	uint64_t all = (uint64_t)x.m, m = all >> 37, rest = all & ((1ull << 37) - 1), half = 1ull << 36;
	int e = x.e + 37;
	m += rest > half || (rest == half && (m & 1));
	if (m >> 24) {
		m >>= 1;
		e++;
	}
	if (e + 23 < -126)
		return sign;
	if (e + 23 > 127)
		return sign | 0x7f800000;
	return sign | (uint32_t)(e + 150) << 23 | ((uint32_t)m & 0x7fffff);
}

/* ---- operands ---- */

static uint64_t state = 88172645463325252u;

static uint32_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static uint32_t special(void)
{
	static const uint32_t of[] = { 0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
		                           0x80800000, 0x00800001, 0x00ffffff, 0x01000000, 0x3f800000, 0xbf800000, 0x3f7fffff,
		                           0x3f800001, 0x7f7fffff, 0xff7fffff, 0x5f800000, 0xdf800000, 0x20000000, 0x33800000 };
	return of[next() % (sizeof of / sizeof *of)];
}

static uint32_t with_exponent(int e) { return (next() & 0x807fffff) | (uint32_t)(e + 127) << 23; }
static int between(int low, int high) { return low + (int)(next() % (uint32_t)(high - low + 1)); }

/* a b just below 2^-126, or anywhere near. */
static void edge_product(uint32_t *a, uint32_t *b)
{
	uint32_t m = 0x800000 | (next() & 0x7fffff), n = (uint32_t)((1ull << 47) / m);
	int e = between(-100, -26);

	n -= n * (uint64_t)m == 1ull << 47;
	n += (next() & 7) == 0;
	n = n > 0xffffff ? 0xffffff : n;
	*a = (next() & 0x80000000) | (uint32_t)(e + 127) << 23 | (m & 0x7fffff);
	*b = (next() & 0x80000000) | (uint32_t)(-126 - e - 1 + 127) << 23 | (n & 0x7fffff);
}

static void operands(uint32_t x[3])
{
	int e;

	switch (next() % 6) {
	case 0:
		for (int i = 0; i < 3; i++)
			x[i] = special();
		break;
	case 1:
		for (int i = 0; i < 3; i++)
			x[i] = next();
		break;
	case 2:
		edge_product(&x[0], &x[1]);
		x[2] = next() & 1 ? 0 : special();
		break;
	case 3: /* a sum just above 2^-126 less a little */
		x[2] = (next() & 0x80000000) | (0x00800000 + next() % 3);
		e = between(-90, -60);
		x[0] = next() & 1 ? with_exponent(e) : (next() & 0x80000000) | (uint32_t)(e + 127) << 23;
		x[1] = next() & 1 ? with_exponent(between(-153, -149) - e) : (uint32_t)(between(-153, -149) - e + 127) << 23;
		break;
	case 4: /* cancellation */
		e = between(-126, 60);
		x[2] = with_exponent(e);
		x[0] = with_exponent(e / 2);
		x[1] = with_exponent(e - e / 2 > 127 ? 127 : e - e / 2);
		break;
	default:
		for (int i = 0; i < 3; i++)
			x[i] = with_exponent(between(-60, 60));
	}
	for (int i = 0; i < 3; i++)
		if (!is_finite(x[i]))
			x[i] &= 0xbfffffff;
}

/* ---- comparison ---- */

static long wrong, checked, edges;

static void check(const char *what, float got, uint32_t want, const uint32_t x[3])
{
	checked++;
	edges += (want & 0x7fffffff) == 0x00800000;
	if (float_bits(got) != want && wrong++ < 10)
		printf("%s of %a %a %a: %a instead of %a\n", what, (double)bits_float(x[0]), (double)bits_float(x[1]),
		       (double)bits_float(x[2]), (double)got, (double)bits_float(want));
}

static bool is_plain(uint32_t u) { return (u & 0x7f800000) || !(u & 0x7fffffff); } /* not subnormal */
static uint32_t flushed(uint32_t u) { return u & 0x7f800000 ? u : u & 0x80000000; }

static void check_lanes(float in[3][16])
{
	float out[8][16];
	V a = v_load(in[0]), b = v_load(in[1]), c = v_load(in[2]);

	v_store(out[0], v_add(a, c));
	v_store(out[1], v_sub(a, c));
	v_store(out[2], v_mul(a, b));
	v_store(out[3], v_fma(a, b, c));
	v_store(out[4], v_fnma(a, b, c));
	v_store(out[5], v_min(a, c));
	v_store(out[6], v_max(a, c));
	v_store(out[7], v_div(a, b));
	uint32_t less = m_bits(v_lt(a, c)), equal = m_bits(v_eq(a, c));
	for (int i = 0; i < 16; i++) {
		uint32_t x[3] = { float_bits(in[0][i]), float_bits(in[1][i]), float_bits(in[2][i]) };
		Exact ea = exact_of(x[0]), eb = exact_of(x[1]), ec = exact_of(x[2]), minus = ec, negated = ea;
		minus.negative = !minus.negative;
		negated.negative = !negated.negative;
		uint32_t sum = rounded(exact_sum(ea, ec)), difference = rounded(exact_sum(ea, minus)),
				 product = rounded(exact_product(ea, eb)), fused = rounded(exact_sum(exact_product(ea, eb), ec));
		check("v_add", out[0][i], sum, x);
		check("v_sub", out[1][i], difference, x);
		check("v_mul", out[2][i], product, x);
		check("v_fma", out[3][i], fused, x);
		check("v_fnma", out[4][i], rounded(exact_sum(exact_product(negated, eb), ec)), x);
		check("f_add", f_add(in[0][i], in[2][i]), sum, x);
		check("f_sub", f_sub(in[0][i], in[2][i]), difference, x);
		check("f_mul", f_mul(in[0][i], in[1][i]), product, x);
		check("f_fma", f_fma(in[0][i], in[1][i], in[2][i]), fused, x);
		if (is_plain(x[0]) && is_plain(x[1]) && is_plain(x[2]) && (fused & 0x7fffffff) > 0x00800000)
			check("fmaf", fmaf(in[0][i], in[1][i], in[2][i]), fused, x);
		if (eb.m) {
			Exact wide = placed(ea, 100);
			Big q = wide.m / eb.m;
			uint32_t quotient =
				rounded((Exact){ ea.negative != eb.negative, q << 1 | (wide.m % eb.m != 0), wide.e - eb.e - 1 });
			check("v_div", out[7][i], quotient, x);
			check("f_div", f_div(in[0][i], in[1][i]), quotient, x);
		}
		uint32_t p = flushed(x[0]), r = flushed(x[2]);
		bool below = exact_sum(ea, minus).negative && (ea.m || ec.m);
		bool same = !exact_sum(ea, minus).m;
		check("v_min", out[5][i], below ? p : r, x);
		check("v_max", out[6][i], !below && !same ? p : r, x);
		check("v_lt", (float)(less >> i & 1), float_bits((float)below), x);
		check("v_eq", (float)(equal >> i & 1), float_bits((float)same), x);
	}
}

/* ---- products ---- */

enum { ROWS = 14, DEPTH = 9, WIDTH = 48 };

/* Any operands, also such that sums underflow on the way; the first row is the start of all. */
static void check_product(void)
{
	static float a[ROWS][DEPTH], b[DEPTH][WIDTH], start[ROWS][WIDTH], c[ROWS][WIDTH];
	Product p = { .rows = (uint32_t)between(1, ROWS),
		          .cols = (uint32_t)between(1, WIDTH),
		          .depth = (uint32_t)between(1, DEPTH),
		          .a = a[0],
		          .a_row = DEPTH,
		          .a_step = 1,
		          .b = b[0],
		          .b_row = WIDTH,
		          .start = start[0],
		          .start_row = next() & 1 ? WIDTH : 0,
		          .c = c[0],
		          .c_row = WIDTH };
	uint32_t x[3];

	for (int m = 0; m < ROWS; m++)
		for (int k = 0; k < DEPTH; k++) {
			operands(x);
			a[m][k] = bits_float(x[0]);
			for (int n = 0; n < WIDTH && m == 0; n++) {
				operands(x);
				b[k][n] = bits_float(x[1]);
			}
		}
	for (int m = 0; m < ROWS; m++)
		for (int n = 0; n < WIDTH; n++) {
			if (n % 4 == 0) {
				operands(x);
				a[m][0] = bits_float(x[0]);
				b[0][n] = bits_float(x[1]);
			}
			start[m][n] = bits_float(x[2]);
		}
	kernel_product(&p);
	for (uint32_t m = 0; m < p.rows; m++)
		for (uint32_t n = 0; n < p.cols; n++) {
			float sum = start[p.start_row ? m : 0][n];
			for (uint32_t k = 0; k < p.depth; k++)
				sum = f_fma(a[m][k], b[k][n], sum);
			if (sum == sum) /* NaNs have any bits */
				check("product", c[m][n], float_bits(sum),
				      (uint32_t[]){ float_bits(a[m][0]), float_bits(b[0][n]), p.depth });
		}
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 20000;

#if FLUSH_BY_CPU
	_mm_setcsr(0x1f80 | 0x8040);
#elif defined __aarch64__ && !defined MP_PORTABLE
	__asm__ volatile("msr fpcr, %0" : : "r"(1ul << 24));
#endif
	for (long i = 0; i < count; i++) {
		float in[3][16];
		for (int l = 0; l < 16; l++) {
			uint32_t x[3];
			operands(x);
			for (int k = 0; k < 3; k++) /* now and then all lanes are alike: some forms treat all as the worst one */
				in[k][l] = l && i % 4 == 3 ? in[k][0] : bits_float(x[k]);
		}
		check_lanes(in);
		if (i % 8 == 0)
			check_product();
	}
	printf("%s: %ld operations, %ld results of 2^-126, %ld wrong\n", VEC, checked, edges, wrong);
	return wrong || edges < count / 10;
}
