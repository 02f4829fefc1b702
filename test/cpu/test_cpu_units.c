/* SPDX-License-Identifier: MIT */
/* Kernels of the cpu target that go element by element: unit functions, deltas, errors, verdicts, updates,
 * transposition. Every kind of vector unit that is here gives the bits of plain C, and plain C what lib/ says in
 * double. */
#include <math.h>

#include "formula_once.h"

#include "isa.h"
#include "target.h"
#include "vec_generic.h"
#include "functions.h"

enum { ROWS = 7, COLS = 45, WIDTH = 48, AREA = ROWS * WIDTH, SHAPES = 60 };
#define ULP   0x1p-23
#define GUARD 12345.0f /* stands where nothing may be written */

/* ---- numbers ---- */

static uint64_t drawn;

static double unit(void) { return random_unit(7, STREAM_DATA, drawn++); }
static uint32_t below(uint32_t n) { return (uint32_t)random_below(7, STREAM_DATA, drawn++, n); }
static float between(double low, double high) { return (float)(low + (high - low) * unit()); }

static float from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* Any float, often a special value. */
static float anything(void)
{
	static const uint32_t odd[] = {
		0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc01234,
		1, 0x807fffff, 0x00800000, 0x7f7fffff, 0x3f800000, 0xbf800000,
	};
	uint32_t kind = below(4);
	if (kind == 0)
		return from_bits(odd[below(COUNT(odd))]);
	return kind == 1 ? from_bits((uint32_t)random_u64(7, STREAM_DATA, drawn++)) : between(-4, 4);
}

static void fill(float *x, size_t n, float (*fn)(void))
{
	for (size_t i = 0; i < n; i++)
		x[i] = fn();
}

/* The same bits, but of NaNs there is only one, and tiny numbers count as zero: who hands one on may do it either
 * way. */
static bool same(float a, float b)
{
	return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)) || (a == 0 && b == 0 && !signbit(a) == !signbit(b));
}

static void assert_same(const float *a, const float *b, size_t n, const char *what, const char *kern)
{
	for (size_t i = 0; i < n; i++)
		if (!same(a[i], b[i])) {
			print_error("%s: %s gives %a instead of %a at %zu\n", what, kern, (double)b[i], (double)a[i], i);
			assert_true(false);
		}
}

static void assert_near(double got, double want, double tolerance, const char *what, double at)
{
	if (isnan(got) && isnan(want))
		return;
	if (!(fabs(got - want) <= tolerance) && got != want) {
		print_error("%s: %.9g instead of %.9g (%.3g) at %.9g\n", what, got, want, got - want, at);
		assert_true(false);
	}
}

/* ---- kinds of vector unit: plain C first, then what is here ---- */

static const Kern *kern[ISA_COUNT];
static int kerns;

static int enter(void **state)
{
	(void)state;
	for (int i = 0; i <= ISA_AVX512; i++)
		if (isa_has(i))
			kern[kerns++] = isa_kern(i);
	cpu_enter();
	return 0;
}

/* Rows of any size, in any order, that fit into AREA. */
static Rows some_rows(uint32_t at[ROWS])
{
	Rows r = { .rows = 1 + below(ROWS), .cols = 1 + below(COLS), .row = WIDTH, .at = below(2) ? at : NULL };
	uint32_t turn = below(ROWS);
	for (uint32_t m = 0; m < ROWS; m++)
		at[m] = (m * 3 + turn) % ROWS;
	return r;
}

static size_t place(const Rows *r, uint32_t m, uint32_t n) { return (r->at ? r->at[m] : m) * r->row + n; }

/* ---- functions ---- */

typedef struct Sweeping {
	const char *name;
	double (*want)(double x);
	double absolute, relative; /* bounds, in units of 2^-23 */
	double from;               /* the relative bound holds from here on */
} Sweeping;

static double positive_log(double x) { return x > 0 ? arith_log(x) : x < 0 ? NAN : x == 0 ? -INFINITY : x; }

/* x and y have n floats. */
static void check_values(const Sweeping *s, const float *x, const float *y, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double a = fpclassify(x[i]) == FP_SUBNORMAL ? 0 : (double)x[i], want = s->want(a);
		if (isinf((float)want)) {
			assert_true(y[i] == (float)want);
			continue;
		}
		double bound = s->absolute * ULP;
		if (fabs(want) < 0x1p-125)
			bound = 0x1p-125;
		else if (a >= s->from && s->relative * ULP * fabs(want) < bound)
			bound = s->relative * ULP * fabs(want);
		assert_near(y[i], want, bound, s->name, a);
	}
}

/* Every `stride`-th float there is, in blocks. */
enum { STRIDE = 10007, BLOCK = 1024 };
static bool next_block(float *x, uint64_t *bits)
{
	for (size_t i = 0; i < BLOCK; i++, *bits += STRIDE)
		x[i] = from_bits((uint32_t)*bits);
	return *bits < (uint64_t)1 << 32;
}

static double sigmoid(double x) { return unit_fns[FN_SIGMOID].value(x); }
static double sigmoid2(double x) { return unit_fns[FN_SIGMOID2].value(x); }
static double gaussian(double x) { return unit_fns[FN_GAUSSIAN].value(x); }
static double relu(double x) { return unit_fns[FN_RELU].value(x); }

static void test_functions(void **state)
{
	static const struct {
		int fn;
		Sweeping s;
	} of[] = {
		{ FN_SIGMOID, { "sigmoid far below", sigmoid, 0.85, 3.3, -1e30 } },
		{ FN_SIGMOID, { "sigmoid", sigmoid, 0.85, 2.6, -20 } },
		{ FN_SIGMOID2, { "sigmoid2", sigmoid2, 0.85, 2.6, -1e30 } },
		{ FN_TANH, { "tanh", arith_tanh, 1.1, 2, -1e30 } },
		{ FN_GAUSSIAN, { "gaussian", gaussian, 0.55, 0.9, -1e30 } },
		{ FN_RELU, { "relu", relu, 0, 0, 0 } },
	};
	float x[BLOCK], y[BLOCK], z[BLOCK];
	Rows r = { .rows = 1, .cols = BLOCK };
	(void)state;
	for (size_t k = 0; k < COUNT(of); k++)
		for (uint64_t bits = 0; next_block(x, &bits);) {
			kern[0]->units(&r, of[k].fn, x, y);
			check_values(&of[k].s, x, y, BLOCK);
			for (int i = 1; i < kerns; i++) {
				kern[i]->units(&r, of[k].fn, x, z);
				assert_same(y, z, BLOCK, of[k].s.name, kern[i]->name);
			}
		}
}

/* Those that units are made from; other machines show theirs in softmax and in errors. */
static void test_exp_and_log(void **state)
{
	static const Sweeping exp_bounds = { "exp", arith_exp, INFINITY, 0.8, -1e30 };
	static const Sweeping log_bounds = { "log", positive_log, INFINITY, 0.9, -1e30 };
	float x[BLOCK], y[BLOCK], z[BLOCK];
	(void)state;
	for (uint64_t bits = 0; next_block(x, &bits);) {
		for (size_t i = 0; i < BLOCK; i += LANES) {
			v_store(y + i, v_exp(v_load(x + i)));
			v_store(z + i, v_log(v_load(x + i)));
		}
		check_values(&exp_bounds, x, y, BLOCK);
		check_values(&log_bounds, x, z, BLOCK);
	}
}

static void test_limits(void **state)
{
	static const float x[LANES] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-30f, -1e-30f, 100, -100 };
	static const struct {
		int fn;
		float y[11];
	} of[] = {
		{ FN_SIGMOID, { 0.5f, 0.5f, 1, 0, NAN, 1, 0, 0.5f, 0.5f, 1, 0 } },
		{ FN_SIGMOID2, { 0.5f, 0.5f, 1, 0, NAN, 1, 0, 0.5f, 0.5f, 1, 0x1p-100f } },
		{ FN_TANH, { 0, -0.0f, 1, -1, NAN, 1, -1, 1e-30f, -1e-30f, 1, -1 } },
		{ FN_GAUSSIAN, { 1, 1, 0, 0, NAN, 0, 0, 1, 1, 0, 0 } },
		{ FN_LINEAR, { 0, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-30f, -1e-30f, 100, -100 } },
	};
	float y[LANES];
	(void)state;
	for (int i = 0; i < kerns; i++)
		for (size_t k = 0; k < COUNT(of); k++) {
			kern[i]->units(&(Rows){ .rows = 1, .cols = 11 }, of[k].fn, x, y);
			assert_same(of[k].y, y, 11, unit_fns[of[k].fn].name, kern[i]->name);
		}
}

static void check_softmax(const Rows *r, const float *net, const float *out)
{
	for (uint32_t m = 0; m < r->rows; m++) {
		double largest = -INFINITY, sum = 0;
		for (uint32_t n = 0; n < r->cols; n++)
			largest = fmax(largest, (double)net[place(r, m, n)]);
		for (uint32_t n = 0; n < r->cols; n++)
			sum += arith_exp(net[place(r, m, n)] - largest);
		for (uint32_t n = 0; n < r->cols; n++) {
			double want = arith_exp(net[place(r, m, n)] - largest) / sum;
			assert_near(out[place(r, m, n)], want, 20 * ULP * want, "softmax", net[place(r, m, n)]);
		}
	}
}

static float moderate(void) { return between(-9, 9); }

static void test_softmax(void **state)
{
	float net[AREA], out[AREA], other[AREA];
	uint32_t at[ROWS];
	(void)state;
	for (int shape = 0; shape < SHAPES; shape++) {
		Rows r = some_rows(at);
		fill(net, AREA, shape % 2 ? anything : moderate);
		fill(out, AREA, moderate);
		memcpy(other, net, sizeof net);
		kern[0]->units(&r, FN_SOFTMAX, net, out);
		if (shape % 2 == 0)
			check_softmax(&r, net, out);
		for (int i = 0; i < kerns; i++) {
			memcpy(other, net, sizeof net);
			kern[i]->units(&r, FN_SOFTMAX, other, other);
			for (uint32_t m = 0; m < r.rows; m++)
				assert_same(out + place(&r, m, 0), other + place(&r, m, 0), r.cols, "softmax", kern[i]->name);
		}
	}
}

/* ---- deltas ---- */

static double want_delta(const Rows *r, int fn, double offset, const float *net, const float *out, const float *err,
                         uint32_t m, uint32_t n)
{
	size_t i = place(r, m, n);
	double mean = 0;
	if (fn != FN_SOFTMAX)
		return err[i] * (unit_fns[fn].slope(net[i], out[i]) + offset);
	for (uint32_t k = 0; k < r->cols; k++)
		mean += (double)out[place(r, m, k)] * err[place(r, m, k)];
	return out[i] * (err[i] - mean);
}

static void deltas_once(int fn, float (*number)(void))
{
	float net[AREA], out[AREA], err[AREA], got[AREA], other[AREA], offset = below(2) ? 0.125f : 0;
	uint32_t at[ROWS];
	Rows r = some_rows(at);
	fill(net, AREA, number);
	fill(err, AREA, number);
	fill(out, AREA, number);
	if (number == moderate)
		kern[0]->units(&(Rows){ .rows = ROWS, .cols = WIDTH, .row = WIDTH }, fn, net, out);
	memcpy(got, err, sizeof err);
	kern[0]->deltas(&r, fn, offset, net, out, got);
	for (uint32_t m = 0; number == moderate && m < r.rows; m++)
		for (uint32_t n = 0; n < r.cols; n++)
			assert_near(got[place(&r, m, n)], want_delta(&r, fn, offset, net, out, err, m, n), 1e-5, unit_fns[fn].name,
			            net[place(&r, m, n)]);
	for (int i = 1; i < kerns; i++) {
		memcpy(other, err, sizeof err);
		kern[i]->deltas(&r, fn, offset, net, out, other);
		for (uint32_t m = 0; m < r.rows; m++)
			assert_same(got + place(&r, m, 0), other + place(&r, m, 0), r.cols, unit_fns[fn].name, kern[i]->name);
	}
}

static void test_deltas(void **state)
{
	(void)state;
	for (int shape = 0; shape < SHAPES; shape++)
		for (int fn = 0; fn < FN_COUNT; fn++)
			deltas_once(fn, shape % 2 ? anything : moderate);
}

/* ---- errors ---- */

/* Outputs from 0 to 1, including the ends and values near them. */
static float output(void)
{
	static const float odd[] = { 0, 1, 0.5f, 0x1p-41f, 0x1p-39f, 0x1.fffffep-1f };
	return below(3) ? between(0, 1) : odd[below(COUNT(odd))];
}

static float zero_or_one(void) { return (float)below(2); }
static float soft_target(void) { return below(3) ? output() : zero_or_one(); }
static float sparse_target(void) { return below(3) ? zero_or_one() : NAN; }
static float sparse_soft_target(void) { return below(3) ? soft_target() : NAN; }

/* What goes back for one output, in double. */
static double want_back(const Errors *e, uint32_t m, uint32_t n)
{
	const ErrorFn *fn = &error_fns[e->error];
	const float *y = e->y + m * e->y_row;
	double o = e->out[place(&e->of, m, n)], weight = e->weight ? e->weight[m] : 1, total = 0;
	if (fn->matched == e->fn && e->fn == FN_SOFTMAX) {
		for (uint32_t k = 0; k < e->of.cols; k++)
			total += isnan(y[k]) ? 0 : y[k];
		return weight * (o * total - (isnan(y[n]) ? 0 : y[n]));
	}
	if (isnan(y[n]))
		return 0;
	return weight * (fn->matched == e->fn ? o - y[n] : fn->slope(o, y[n]));
}

static void check_errors_of(const Errors *e, float before)
{
	const ErrorFn *fn = &error_fns[e->error];
	for (uint32_t m = 0; m < e->of.rows; m++) {
		double sum = 0, size = 0, weight = e->weight ? e->weight[m] : 1;
		for (uint32_t n = 0; n < e->of.cols; n++) {
			double y = e->y[m * e->y_row + n], o = e->out[place(&e->of, m, n)], back = want_back(e, m, n);
			if (!isnan(y)) {
				sum += weight * fn->value(o, y);
				size += weight * (fabs(fn->value(o, y)) + 1);
			}
			if (e->back)
				assert_near(e->back[place(&e->of, m, n)], back, 4 * ULP * (fabs(back) + weight), fn->name, o);
		}
		assert_near(e->value[m], before + sum, 4 * ULP * size + ULP, fn->name, m);
	}
}

static void errors_once(int error, int fn, float (*out_of)(void), float (*target)(void), bool exact)
{
	float out[AREA], weight[ROWS], back[2][AREA], value[2][ROWS];
	uint32_t at[ROWS];
	Rows r = some_rows(at);
	size_t y_row = r.cols + below(3), last = (r.rows - 1) * y_row + r.cols;
	float *y = malloc(last * sizeof *y); /* so that the sanitizer sees who reads past the end */
	bool weighted = below(2), wanted = below(4);
	fill(out, AREA, out_of);
	fill(y, last, target);
	fill(weight, ROWS, output);
	for (int i = 0; i < kerns; i++) {
		int k = i > 0;
		for (int m = 0; m < ROWS; m++)
			value[k][m] = 2;
		Errors e = {
			.of = r,
			.error = error,
			.fn = fn,
			.out = out,
			.y = y,
			.y_row = y_row,
			.weight = weighted ? weight : NULL,
			.back = wanted ? back[k] : NULL,
			.value = value[k],
		};
		memset(back[k], 0, sizeof back[k]);
		kern[i]->errors(&e);
		if (i == 0 && exact)
			check_errors_of(&e, 2);
		assert_same(value[0], value[k], ROWS, error_fns[error].name, kern[i]->name);
		for (uint32_t m = 0; m < r.rows; m++)
			assert_same(back[0] + place(&r, m, 0), back[k] + place(&r, m, 0), r.cols, error_fns[error].name,
			            kern[i]->name);
	}
	free(y);
}

static void test_errors(void **state)
{
	static float (*const targets[])(void) = { zero_or_one, soft_target, sparse_target, sparse_soft_target };
	(void)state;
	for (int shape = 0; shape < SHAPES; shape++)
		for (int error = 0; error < ERR_COUNT; error++)
			for (int fn = 0; fn < FN_COUNT; fn++) {
				if (!error_fits(error, fn))
					continue;
				errors_once(error, fn, output, targets[shape % COUNT(targets)], true);
				errors_once(error, fn, anything, targets[shape % COUNT(targets)], false);
			}
}

/* The dearest error there is, and its slope. */
static void test_saturated(void **state)
{
	const float out[LANES] = { 1, 0, 1, 0 }, y[4] = { 0, 1, 1, 0 };
	float back[LANES], value = 0;
	(void)state;
	for (int i = 0; i < kerns; i++, value = 0) {
		kern[i]->errors(&(Errors){ .of = { .rows = 1, .cols = 4 },
		                           .error = ERR_CROSS_ENTROPY,
		                           .fn = FN_SIGMOID2,
		                           .out = out,
		                           .y = y,
		                           .back = back,
		                           .value = &value });
		assert_near(value, 80 * 0.69314718, 1e-5, "saturated", 0);
		assert_true(back[0] == 0x1p40f && back[1] == -0x1p40f && back[2] == 0 && back[3] == 0);
	}
}

/* Cross-entropy of sigmoids and divergence of softmax against double precision from the net inputs, over all that a
 * float output cannot tell: relative, but for what is below the normal numbers. */
static void test_error_from_net(void **state)
{
	enum { UNITS = 3 };
	static const int fns[] = { FN_SIGMOID, FN_SOFTMAX, FN_SOFTMAX };
	static const int errors[] = { ERR_CROSS_ENTROPY, ERR_CROSS_ENTROPY, ERR_DIVERGENCE };
	(void)state;
	for (int trial = 0; trial < 60000; trial++) {
		size_t kind = below(COUNT(fns));
		float net[LANES] = { 0 }, out[LANES], y[UNITS], value[8] = { 0 };
		double in[UNITS], wide[UNITS], want = 0;
		Logs logs[UNITS];
		uint32_t one = below(UNITS + 1);
		float far = below(2) ? 100 : 10;
		for (uint32_t i = 0; i < UNITS; i++) {
			in[i] = net[i] = between(-far, far);
			y[i] = i == one;
			wide[i] = 0.5;
		}
		group_logs(fns[kind], UNITS, in, wide, logs);
		for (uint32_t i = 0; i < UNITS; i++)
			want += error_fns[errors[kind]].from_logs(0.5, logs[i].out, logs[i].rest, y[i]);
		for (int i = 0; i < kerns; i++) {
			Errors e = { .of = { .rows = 1, .cols = UNITS },
				         .error = errors[kind],
				         .fn = fns[kind],
				         .out = out,
				         .net = net,
				         .y = y,
				         .value = &value[i] };
			kern[i]->units(&e.of, fns[kind], net, out);
			kern[i]->errors(&e);
			assert_near(value[i], want, 1e-6 * want + 1e-37, error_fns[errors[kind]].name, net[0]);
			assert_true(value[i] == value[0]);
		}
	}
}

/* A NaN in the outputs shows in the error. */
static void test_error_nan(void **state)
{
	const float out[LANES] = { 0.5f, NAN }, y[2] = { 0.25f, 1 }, hard[2] = { 0, 1 };
	static const int fn[ERR_COUNT] = { FN_SIGMOID, FN_SIGMOID, FN_SOFTMAX };
	(void)state;
	for (int i = 0; i < kerns; i++)
		for (int error = 0; error < ERR_COUNT; error++)
			for (int k = 0; k < 2; k++) {
				float value = 0;
				kern[i]->errors(&(Errors){ .of = { .rows = 1, .cols = 2 },
				                           .error = error,
				                           .fn = fn[error],
				                           .out = out,
				                           .y = k ? hard : y,
				                           .value = &value });
				assert_true(isnan(value));
			}
}

/* ---- verdicts ---- */

/* Few values, so that there are equals; sometimes NaN. */
static float coarse(void) { return below(12) ? (float)below(4) / 4 : NAN; }
static float coarse_target(void) { return below(4) ? (float)below(4) / 4 : NAN; }
static float never_nan(void) { return (float)below(4) / 4; }

static uint8_t want_verdict(const Scores *s, uint32_t m)
{
	Scorer scorer = {
		.err = &error_fns[ERR_SQUARED], .threshold = s->threshold, .targets = s->of.cols, .middle = s->middle
	};
	double out[COLS];
	Tally t = { 0 };
	for (uint32_t n = 0; n < s->of.cols; n++)
		out[n] = s->out[place(&s->of, m, n)];
	score_case(&scorer, out, NULL, s->y + m * s->y_row, 1, &t);
	return (uint8_t)((t.scored ? VERDICT_SCORED : 0) | (t.right && s->right ? VERDICT_RIGHT : 0) |
	                 (t.within ? VERDICT_WITHIN : 0));
}

static void test_scores(void **state)
{
	float out[AREA];
	uint32_t at[ROWS];
	(void)state;
	for (int shape = 0; shape < 40 * SHAPES; shape++) {
		Rows r = some_rows(at);
		if (shape % 3 == 0)
			r.cols = 1 + below(3);
		size_t y_row = r.cols + below(3), last = (r.rows - 1) * y_row + r.cols;
		float *y = malloc(last * sizeof *y);
		uint8_t verdict[ROWS];
		fill(out, AREA, shape % 2 ? coarse : never_nan);
		fill(y, last, shape % 5 ? coarse_target : never_nan);
		for (uint32_t m = 0; m < r.rows && shape % 4 == 0; m++) /* near enough to be within, at times */
			for (uint32_t n = 0; n < r.cols; n++)
				out[place(&r, m, n)] = y[m * y_row + n] + 0.25f;
		Scores s = { .of = r,
			         .out = out,
			         .y = y,
			         .y_row = y_row,
			         .threshold = 0.25f,
			         .middle = 0.5f,
			         .right = r.cols == 1 || below(8),
			         .verdict = verdict };
		for (int i = 0; i < kerns; i++) {
			kern[i]->scores(&s);
			for (uint32_t m = 0; m < r.rows; m++)
				assert_int_equal(verdict[m], want_verdict(&s, m));
		}
		free(y);
	}
}

/* One after the other: units, errors and scores of plain C. */
static void want_outcomes(const Errors *e, const Scores *s)
{
	kern[0]->units(&e->of, FN_SIGMOID, e->made, e->made);
	memset(e->value, 0, e->of.rows * sizeof *e->value);
	kern[0]->errors(e);
	kern[0]->scores(s);
}

static void test_outcomes(void **state)
{
	float net[AREA], out[AREA], want[AREA], back[AREA], want_back[AREA], value[ROWS], want_value[ROWS];
	uint8_t verdict[ROWS], want_verdicts[ROWS];
	uint32_t at[ROWS];
	(void)state;
	for (int shape = 0; shape < 10 * SHAPES; shape++) {
		Rows r = some_rows(at);
		r.cols = r.cols > 1 ? r.cols : 2;
		size_t y_row = r.cols + below(3), last = (r.rows - 1) * y_row + r.cols;
		float *y = malloc(last * sizeof *y);
		fill(net, AREA, shape % 3 ? coarse : anything);
		fill(y, last, shape % 5 ? coarse_target : never_nan);
		for (size_t i = 0; shape % 2 && i < last; i++)
			y[i] = (float)below(2);
		Scores s = { .of = r,
			         .out = want,
			         .y = y,
			         .y_row = y_row,
			         .threshold = 0.4f,
			         .middle = 0.5f,
			         .right = below(4),
			         .verdict = want_verdicts };
		Errors e = { .of = r,
			         .error = ERR_SQUARED,
			         .fn = FN_SIGMOID,
			         .out = want,
			         .made = want,
			         .y = y,
			         .y_row = y_row,
			         .back = want_back,
			         .deltas = true,
			         .offset = below(2) ? 0.1f : 0,
			         .value = want_value };
		memcpy(want, net, sizeof net);
		want_outcomes(&e, &s);
		for (int i = 0; i < kerns; i++) {
			memcpy(out, net, sizeof net);
			s.out = e.out = e.made = out;
			e.back = back;
			e.value = value;
			s.verdict = verdict;
			kern[i]->outcomes(&e, &s);
			assert_memory_equal(verdict, want_verdicts, r.rows);
			assert_same(value, want_value, r.rows, "errors", kern[i]->name);
			for (uint32_t m = 0; m < r.rows; m++) {
				assert_same(out + place(&r, m, 0), want + place(&r, m, 0), r.cols, "outputs", kern[i]->name);
				assert_same(back + place(&r, m, 0), want_back + place(&r, m, 0), r.cols, "deltas", kern[i]->name);
			}
		}
		free(y);
	}
}

/* ---- updates ---- */

enum { WEIGHTS = 7 * LANES, VARIABLES = 2 + MAX_STATE };
typedef struct Weights {
	float v[VARIABLES][WEIGHTS];
} Weights;

static void parse_body(Ctx *cx, void *arg)
{
	Formula *f = arg;
	formula_parse(cx, &rules[f->ops], f);
}

static Formula formula_of(uint32_t rule)
{
	Formula f = { .ops = rule };
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, parse_body, &f), MP_OK);
	ctx_free(&cx);
	return f;
}

static void options_body(Ctx *cx, void *arg)
{
	(void)cx;
	options_init(arg, DEFAULTS_1989);
}

static void numbers_of(uint32_t rule, float param[P_COUNT])
{
	Options o;
	Update u;
	Ctx cx;
	ctx_init(&cx, NULL);
	guarded(&cx, options_body, &o);
	ctx_free(&cx);
	o.rule = (int)rule;
	o.decay = 0.0625;
	update_fill(&o, 3, 0, 0, &u);
	for (int i = 0; i < P_COUNT; i++)
		param[i] = (float)u.param[i];
}

static void want_update(const Formula *f, const float *param, double variable[VARIABLES])
{
	double wide[P_COUNT];
	for (int i = 0; i < P_COUNT; i++)
		wide[i] = param[i];
	formula_once(f, wide, variable);
}

/* Steps, gradients and weights so coarse that no comparison hangs on the last bit. */
static float coarse_number(void) { return (float)((int)below(65) - 32) / 64; }
static float rate_like(void) { return (float)(1 + below(64)) / 64; }

static Sweep sweep_of(const Formula *f, const float *param, const uint32_t *real, Weights *w, size_t n)
{
	Sweep s = { .formula = f, .real = real, .n = n };
	memcpy(s.param, param, sizeof s.param);
	for (int i = 0; i < VARIABLES; i++)
		s.variable[i] = w->v[i];
	return s;
}

static void check_update(const Formula *f, const float *param, const uint32_t *real, const Weights *before,
                         const Weights *after, size_t n, const char *name)
{
	for (size_t j = 0; j < WEIGHTS; j++) {
		double variable[VARIABLES];
		for (int i = 0; i < VARIABLES; i++)
			variable[i] = before->v[i][j];
		if (j < n && (!real || real[j / 32] >> j % 32 & 1))
			want_update(f, param, variable);
		for (int i = 0; i < VARIABLES; i++)
			assert_near(after->v[i][j], variable[i], 20 * ULP * (1 + fabs(variable[i])), name, (double)i);
	}
}

static void update_once(uint32_t rule, const Formula *f, float (*number)(void), bool exact)
{
	static Weights before, after, other;
	float param[P_COUNT];
	uint32_t real[WEIGHTS / 32 + 1];
	bool masked = below(2);
	size_t n = below(WEIGHTS / LANES + 1) * LANES;
	numbers_of(rule, param);
	for (size_t i = 0; i < COUNT(real); i++)
		real[i] = (uint32_t)random_u64(7, STREAM_DATA, drawn++);
	for (int i = 0; i < VARIABLES; i++)
		fill(before.v[i], WEIGHTS, exact && rules[rule].start[i > 1 ? i - 2 : 0] && i > 1 ? rate_like : number);
	if (exact && strcmp(rules[rule].name, "adam") == 0)
		fill(before.v[3], WEIGHTS, rate_like); /* a mean square is not negative */
	after = before;
	Sweep s = sweep_of(f, param, masked ? real : NULL, &after, n);
	kern[0]->update(&s);
	if (exact)
		check_update(f, param, s.real, &before, &after, n, rules[rule].name);
	for (int i = 1; i < kerns; i++) {
		other = before;
		s = sweep_of(f, param, masked ? real : NULL, &other, n);
		kern[i]->update(&s);
		assert_same(after.v[0], other.v[0], VARIABLES * WEIGHTS, rules[rule].name, kern[i]->name);
	}
}

static void test_update(void **state)
{
	(void)state;
	for (uint32_t rule = 0; rule < rule_count; rule++) {
		Formula f = formula_of(rule);
		for (int shape = 0; shape < SHAPES; shape++) {
			update_once(rule, &f, coarse_number, true);
			update_once(rule, &f, anything, false);
		}
	}
}

/* Momentum and adam have kernels of their own.  With an op more, which changes nothing, they are any formula: the same
 * bits. */
static void check_own_kernel(uint32_t rule)
{
	static Weights before, fast, plain;
	Formula f = formula_of(rule), longer = f;
	float param[P_COUNT];
	uint32_t real[WEIGHTS / 32 + 1];
	longer.op[longer.ops++] = (Op){ .op = OP_CONST, .value = 1 };
	numbers_of(rule, param);
	for (int shape = 0; shape < SHAPES; shape++)
		for (int i = 0; i < kerns; i++) {
			param[P_DECAY] = shape % 2 ? 0.0625f : 0;
			param[P_EPSILON] = shape % 5 ? param[P_EPSILON] : 0;
			for (size_t k = 0; k < COUNT(real); k++)
				real[k] = (uint32_t)random_u64(7, STREAM_DATA, drawn++);
			fill(before.v[0], VARIABLES * WEIGHTS, anything);
			if (shape % 4 == 0)
				memset(before.v[0], 0, sizeof before.v[0] / 2); /* no gradient: with no mean square, no step */
			if (shape % 4 == 0)
				memset(before.v[3], 0, sizeof before.v[3]);
			fast = plain = before;
			Sweep a = sweep_of(&f, param, shape % 3 ? real : NULL, &fast, WEIGHTS), b = a;
			b = sweep_of(&longer, param, a.real, &plain, WEIGHTS);
			kern[i]->update(&a);
			kern[i]->update(&b);
			assert_same(plain.v[0], fast.v[0], VARIABLES * WEIGHTS, rules[rule].name, kern[i]->name);
		}
}

static void test_own_kernels(void **state)
{
	(void)state;
	for (uint32_t rule = 0; rule < rule_count; rule++)
		if (strcmp(rules[rule].name, "momentum") == 0 || strcmp(rules[rule].name, "adam") == 0)
			check_own_kernel(rule);
}

/* The mean square of a first gradient of 1 is 1 - beta2, rounded once. */
static void test_adam_square(void **state)
{
	static Weights w;
	uint32_t rule = 0;
	float param[P_COUNT];
	(void)state;
	while (strcmp(rules[rule].name, "adam"))
		rule++;
	Formula f = formula_of(rule);
	numbers_of(rule, param);
	param[P_DECAY] = 0;
	for (int i = 0; i < kerns; i++) {
		memset(&w, 0, sizeof w);
		w.v[0][0] = 1;
		Sweep s = sweep_of(&f, param, NULL, &w, LANES);
		kern[i]->update(&s);
		assert_true(w.v[2][0] == (float)(1 - 0.9) && w.v[3][0] == (float)(1 - 0.999));
	}
}

/* ---- arrays ---- */

static void test_add(void **state)
{
	float a[AREA], b[AREA], sum[AREA];
	(void)state;
	fill(a, AREA, moderate);
	fill(b, AREA, moderate);
	for (int i = 0; i < kerns; i++) {
		memcpy(sum, a, sizeof a);
		kern[i]->add(sum, b, AREA - LANES);
		for (int k = 0; k < AREA; k++)
			assert_true(sum[k] == (k < AREA - LANES ? a[k] + b[k] : a[k]));
	}
}

static void test_transpose(void **state)
{
	enum { SIDE = 48, AROUND = 64 };
	static float from[SIDE * SIDE], to[SIDE * AROUND];
	(void)state;
	for (int shape = 0; shape < SHAPES; shape++)
		for (int i = 0; i < kerns; i++) {
			uint32_t rows = 1 + below(SIDE), cols = 1 + below(SIDE), padded = (rows + LANES - 1) / LANES * LANES;
			fill(from, COUNT(from), anything);
			for (size_t k = 0; k < COUNT(to); k++)
				to[k] = GUARD;
			kern[i]->transpose(rows, cols, from, SIDE, to, AROUND);
			for (uint32_t n = 0; n < SIDE; n++)
				for (uint32_t m = 0; m < AROUND; m++) {
					float want = n >= cols || m >= padded ? GUARD : m >= rows ? 0 : from[m * SIDE + n];
					assert_memory_equal(&to[n * AROUND + m], &want, sizeof want);
				}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),   cmocka_unit_test(test_exp_and_log),    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_softmax),     cmocka_unit_test(test_deltas),         cmocka_unit_test(test_errors),
		cmocka_unit_test(test_saturated),   cmocka_unit_test(test_error_from_net), cmocka_unit_test(test_error_nan),
		cmocka_unit_test(test_scores),      cmocka_unit_test(test_outcomes),       cmocka_unit_test(test_update),
		cmocka_unit_test(test_own_kernels), cmocka_unit_test(test_adam_square),    cmocka_unit_test(test_add),
		cmocka_unit_test(test_transpose),
	};
	return cmocka_run_group_tests(tests, enter, NULL);
}
