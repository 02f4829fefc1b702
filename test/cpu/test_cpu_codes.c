/* SPDX-License-Identifier: MIT */
/* Code words of the cpu target: random tables, outputs and targets, with every kernel this CPU can run, against
 * lib/score.c. */
#include <math.h>

#include "test.h"

#include "pass.h"

enum { TABLES = 400, ROWS = 50, MOST_WORDS = 90, MOST_COLS = 80 };

static uint64_t drawn;
static uint32_t draw(uint32_t n) { return (uint32_t)random_below(11, STREAM_DATA, drawn++, n); }
static double unit(void) { return random_unit(12, STREAM_DATA, drawn++); }

typedef struct Case {
	uint32_t words, cols;
	double codes[MOST_WORDS * MOST_COLS];
	float out[ROWS * MOST_COLS + 2 * LANES], y[ROWS * MOST_COLS];
	size_t row;
	double most;
} Case;

/* Of bits, all pairs of a beginning and an ending, or any numbers; some words are there twice. */
static void roll_table(Case *c)
{
	uint32_t kind = draw(4), begins = 1 + draw(12), ends = 1 + draw(MOST_WORDS / 12), cut;

	c->cols = 2 + draw(draw(3) ? 28 : MOST_COLS - 2);
	c->words = kind == 1 ? begins * ends : 1 + draw(MOST_WORDS);
	cut = 1 + draw(c->cols - 1);
	for (uint32_t k = 0; k < c->words; k++)
		for (uint32_t i = 0; i < c->cols; i++) {
			uint32_t like = i < cut ? k / ends * ends : k % ends; /* an earlier word that has this element too */
			double *at = &c->codes[(size_t)k * c->cols + i];
			*at = kind == 3 ? (draw(2) ? 3 * unit() - 1 : 0) : draw(5) == 0;
			if (kind == 1 && like < k)
				*at = c->codes[(size_t)like * c->cols + i];
		}
	for (uint32_t k = 1; k < c->words; k++)
		if (draw(10) == 0)
			memcpy(c->codes + (size_t)k * c->cols, c->codes + (size_t)draw(k) * c->cols, c->cols * sizeof *c->codes);
}

/* Near a word, half-way between two, anywhere; sometimes what no sum is sure of. */
static float roll_output(const Case *c, uint32_t kind, const double *a, const double *b, uint32_t i)
{
	static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, 0.5f, -0.0f };

	if (isinf(c->most) && draw(200) == 0)
		return odd[draw(COUNT(odd))];
	switch (kind) {
	case 0: return (float)((a[i] + b[i]) / 2);
	case 1: return (float)((a[i] + b[i]) / 2 + (unit() - 0.5) * 1e-7);
	case 2: return (float)(0.9 * a[i] + 0.1 * unit());
	case 3: return draw(2) ? 0.5f : (float)a[i];
	default: return (float)unit();
	}
}

static void roll_rows(Case *c)
{
	c->most = draw(2) ? 4 : INFINITY;
	c->row = (c->cols + LANES - 1) / LANES * LANES;
	for (uint32_t m = 0; m < ROWS; m++) {
		const double *a = c->codes + (size_t)draw(c->words) * c->cols, *b = c->codes + (size_t)draw(c->words) * c->cols;
		uint32_t kind = draw(6), wanted = draw(8);
		for (uint32_t i = 0; i < c->cols; i++) {
			float *y = &c->y[m * c->cols + i];
			c->out[m * c->row + i] = roll_output(c, kind, a, b, i);
			*y = wanted == 0 ? (float)draw(2) : wanted == 1 ? (float)unit() : (float)(wanted == 2 ? b[i] : a[i]);
			if (wanted == 7 && draw(3) == 0)
				*y = NAN;
		}
	}
}

static void compare(Ctx *cx, const Case *c, const Kern *kern)
{
	Data d = { .codes = c->codes, .code_count = c->words, .targets = c->cols, .cases = ROWS };
	Scorer scorer = {
		.err = &error_fns[ERR_SQUARED], .threshold = 0.1, .targets = c->cols, .codes = c->codes, .code_count = c->words
	};
	uint8_t verdict[ROWS] = { 0 };
	Codes *known[KNOWN_CODES] = { NULL }, *codes = codes_make(cx, known, &d), *other;
	double word[MOST_COLS] = { 0 };
	Data test = { .codes = word, .code_count = 1, .targets = c->cols };

	other = codes_make(cx, known, &test);
	for (int turn = 0; turn < 2; turn++) { /* as in every epoch */
		assert_ptr_equal(codes_make(cx, known, &d), codes);
		assert_ptr_equal(codes_make(cx, known, &test), other);
	}
	kern->scores(&(Scores){ .of = { .rows = ROWS, .cols = c->cols, .row = c->row },
	                        .out = c->out,
	                        .y = c->y,
	                        .y_row = c->cols,
	                        .threshold = 0.1f,
	                        .verdict = verdict });
	codes_right(codes, &(CodesArgs){ .scorer = &scorer,
	                                 .kern = kern,
	                                 .most = c->most,
	                                 .rows = ROWS,
	                                 .out = c->out,
	                                 .y = c->y,
	                                 .row = c->row,
	                                 .scratch = floats_take(&cx->scratch, codes_scratch(codes)),
	                                 .verdict = verdict });
	for (uint32_t m = 0; m < ROWS; m++) {
		double out[MOST_COLS];
		Tally t = { 0 };
		for (uint32_t i = 0; i < c->cols; i++)
			out[i] = c->out[m * c->row + i];
		score_case(&scorer, out, NULL, c->y + m * c->cols, 1, &t);
		assert_int_equal((verdict[m] & VERDICT_SCORED) != 0, t.scored);
		assert_int_equal((verdict[m] & VERDICT_RIGHT) != 0, t.right);
	}
}

static void test_against_score(void **state)
{
	Ctx cx;
	static Case c;
	(void)state;
	for (int i = 0; i < TABLES; i++) {
		ctx_init(&cx, NULL);
		roll_table(&c);
		roll_rows(&c);
		for (int isa = ISA_GENERIC; isa <= ISA_AVX512; isa++)
			if (isa_has(isa))
				compare(&cx, &c, isa_kern(isa));
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_against_score) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
