/* SPDX-License-Identifier: MIT */
/* Products and index lists of the cpu target: every kernel this CPU can run against one plain chain of fmaf, bit
 * for bit; checksums against the plain one; errors of single outputs against those of rows. */
#include <float.h>
#include <math.h>

#include "test.h"

#include "kerns.h"
#include "guard.h"

enum { ROOM = 1 << 18 };
#define UNTOUCHED 12345.0f

/* One set of operands for all; every kernel has a c and start of its own. */
static float of_a[ROOM], of_b[ROOM], begin[ROOM], got[MOST_KERNS + 1][ROOM];
static float *const want = got[MOST_KERNS];

static uint64_t seed;
static uint64_t draw(uint64_t n) { return random_below(1, STREAM_DATA, seed++, n); }

/* Numbers of very different size, so that a product rounded on its own or a sum rounded twice shows. */
static float number(int spread)
{
	float x = (float)random_unit(2, STREAM_DATA, seed++) - 0.5f;
	return ldexpf(x, spread ? (int)draw(2 * (uint64_t)spread + 1) - spread : 0);
}

static void fill(float *x, size_t n, int spread)
{
	assert_true(n <= ROOM);
	for (size_t i = 0; i < n; i++)
		x[i] = number(spread);
}

static size_t padded(size_t n) { return (n + LANES - 1) / LANES * LANES; }

/* `rows` numbers below 2 rows in random order, none twice. */
static void row_numbers(uint32_t *at, uint32_t rows)
{
	for (uint32_t i = 0; i < 2 * rows; i++) {
		uint32_t j = (uint32_t)draw(i + 1);
		at[i] = at[j];
		at[j] = i;
	}
}

static void plain_product(const Product *p)
{
	for (uint32_t m = 0; m < p->rows; m++) {
		size_t row = p->at ? p->at[m] : m;
		for (uint32_t n = 0; n < p->cols; n++) {
			float sum = p->start[row * p->start_row + n];
			for (uint32_t k = 0; k < p->depth; k++)
				sum = fmaf(p->a[row * p->a_row + k * p->a_step],
				           p->b[p->transposed ? n * p->b_row + k : k * p->b_row + n], sum);
			p->c[row * p->c_row + n] = sum;
		}
	}
}

/* Same bits in columns that count, nothing written where no row is; padding up to the next multiple of 16 columns may
 * be anything. */
static void compare(uint32_t all_rows, uint32_t cols, size_t row, const float *other, const char *name)
{
	for (uint32_t m = 0; m < all_rows; m++)
		for (size_t n = 0; n < row; n++) {
			const float *x = want + m * row + n, *y = other + m * row + n;
			if ((n >= cols && n < padded(cols)) || memcmp(x, y, sizeof *x) == 0)
				continue;
			print_error("%s: row %u, column %zu is %a and should be %a\n", name, m, n, *y, *x);
			assert_true(false);
		}
}

/* Runs p on every kernel.  In place: start is c. */
static void try_product(Product p, bool in_place)
{
	uint32_t all_rows = p.at ? 2 * p.rows : p.rows;
	size_t size = all_rows * p.c_row;

	assert_true(size <= ROOM);
	for (int i = 0; i <= kern_count; i++) {
		Product q = p;
		q.c = i < kern_count ? got[i] : want;
		q.start = in_place ? q.c : begin;
		q.start_row = in_place ? q.c_row : p.start_row;
		for (size_t j = 0; j < size; j++)
			q.c[j] = in_place ? begin[j] : UNTOUCHED;
		if (i < kern_count)
			kerns[i]->product(&q);
		else
			plain_product(&q);
	}
	for (int i = 0; i < kern_count; i++)
		compare(all_rows, p.cols, p.c_row, got[i], kerns[i]->name);
}

/* Operands of any strides for a product of this size. */
static void try_size(uint32_t rows, uint32_t cols, uint32_t depth, int spread)
{
	static uint32_t at[1024];
	size_t wide = padded(cols);
	bool listed = draw(3) == 0, across = draw(2), transposed = draw(4) == 0;
	uint32_t all_rows = listed ? 2 * rows : rows;
	Product p = { .rows = rows, .cols = cols, .depth = depth, .a = of_a, .b = of_b, .transposed = transposed };

	assert_true(all_rows <= COUNT(at));
	p.a_row = draw(10) == 0 ? 0 : across ? 1 : depth + draw(20);
	p.a_step = draw(10) == 0 ? 0 : across ? all_rows + draw(20) : 1;
	p.b_row = draw(10) == 0 ? 0 : (transposed ? padded(depth) : wide) + draw(3) * LANES;
	p.c_row = wide + draw(3) * LANES;
	p.start_row = draw(2) ? 0 : wide + draw(2) * LANES;
	p.at = listed ? at : NULL;
	row_numbers(at, listed ? rows : 0);
	fill(of_a, all_rows * p.a_row + depth * p.a_step + 1, spread);
	fill(of_b, (transposed ? cols : depth) * p.b_row + (transposed ? padded(depth) : wide), spread);
	fill(begin, all_rows * (p.c_row > p.start_row ? p.c_row : p.start_row) + wide, spread);
	try_product(p, draw(3) == 0);
}

static void products_of_all_small_sizes(void **state)
{
	(void)state;
	for (uint32_t rows = 0; rows <= 40; rows++)
		for (uint32_t vectors = 0; vectors <= 10; vectors++)
			try_size(rows, vectors * LANES - (vectors ? (uint32_t)draw(LANES) : 0), (uint32_t)draw(12), 0);
}

static void products_of_random_sizes(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++)
		try_size((uint32_t)draw(70), (uint32_t)draw(150), (uint32_t)draw(90), (int)draw(3) * 10);
}

/* Deep enough to be cut, rows enough to copy b, in rows that share sets of the cache. */
static void products_of_large_sizes(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++)
		try_size(14 + (uint32_t)draw(60), 1 + (uint32_t)draw(100), 200 + (uint32_t)draw(700), 0);
	for (int i = 0; i < 6; i++) {
		Product p = { .rows = 192 + (uint32_t)draw(20),
			          .cols = 30 + (uint32_t)draw(60),
			          .depth = 150 + (uint32_t)draw(500) };
		p.a = of_a;
		p.a_row = 1;
		p.a_step = p.rows;
		p.b = of_b;
		p.b_row = i % 2 ? 128 : 256;
		p.c_row = 96;
		fill(of_a, p.a_step * p.depth, 4);
		fill(of_b, p.b_row * p.depth, 4);
		fill(begin, p.c_row, 4);
		try_product(p, false);
	}
}

/* What fmaf would make of numbers near the smallest is another matter: here all kernels agree, and leave none of
 * them. */
static void tiny_numbers_are_zero(void **state)
{
	Product p = {
		.rows = 8, .cols = 64, .depth = 5, .a = of_a, .a_row = 5, .a_step = 1, .b = of_b, .b_row = 64, .c_row = 64
	};

	(void)state;
	for (int round = 0; round < 200; round++) {
		fill(of_a, 40, 75);
		fill(of_b, 5 * 64, 75);
		fill(begin, 8 * 64, 75);
		p.start = begin;
		p.start_row = 64;
		for (int i = 0; i < kern_count; i++) {
			p.c = got[i];
			kerns[i]->product(&p);
			assert_memory_equal(got[i], got[0], 8 * 64 * sizeof(float));
		}
		for (int j = 0; j < 8 * 64; j++)
			assert_true(fpclassify(got[0][j]) != FP_SUBNORMAL);
	}
}

static void infinities_and_nan_pass_through(void **state)
{
	static const float odd[] = { INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1.0f, FLT_MAX, -FLT_MAX };
	Product p = {
		.rows = 8, .cols = 16, .depth = 2, .a = of_a, .a_row = 2, .a_step = 1, .b = of_b, .b_row = 16, .c_row = 16
	};

	(void)state;
	p.start = begin;
	p.start_row = 16;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 16; i++)
			of_a[i] = odd[draw(COUNT(odd))];
		for (int i = 0; i < 32; i++)
			of_b[i] = odd[draw(COUNT(odd))];
		for (int i = 0; i < 128; i++)
			begin[i] = odd[draw(COUNT(odd))];
		p.c = want;
		plain_product(&p);
		for (int i = 0; i < kern_count; i++) {
			p.c = got[i];
			kerns[i]->product(&p);
			for (int j = 0; j < 128; j++)
				assert_true(isnan(want[j]) ? isnan(got[i][j]) : memcmp(want + j, got[i] + j, sizeof(float)) == 0);
		}
	}
}

/* ---- index lists ---- */

enum { LIST_ROWS = 40, LIST_UNITS = 60 };
static uint32_t list_index[LIST_ROWS][LIST_UNITS];
static float list_value[LIST_ROWS][LIST_UNITS];
static const uint32_t *index_of[LIST_ROWS];
static const float *value_of[LIST_ROWS];
static uint32_t list_count[LIST_ROWS];

static void random_lists(uint32_t dense)
{
	for (uint32_t m = 0; m < LIST_ROWS; m++) {
		list_count[m] = 0;
		for (uint32_t i = 0; i < LIST_UNITS; i++)
			if (draw(10) < dense) {
				list_value[m][list_count[m]] = number(3);
				list_index[m][list_count[m]++] = i;
			}
		index_of[m] = list_index[m];
		value_of[m] = list_value[m];
	}
}

static void plain_forward(const Lists *l)
{
	for (uint32_t m = 0; m < l->rows; m++)
		for (uint32_t n = 0; n < l->cols; n++) {
			float sum = l->start[m * l->start_row + n];
			for (uint32_t i = 0; i < l->count[m]; i++) {
				uint32_t k = l->index[m][i];
				if (k >= l->low && k < l->high)
					sum = fmaf(l->value ? l->value[m][i] : 1, l->b[(k - l->low) * l->b_row + n], sum);
			}
			l->c[m * l->c_row + n] = sum;
		}
}

static void plain_gradient(const Lists *l)
{
	for (uint32_t m = 0; m < l->rows; m++)
		for (uint32_t i = 0; i < l->count[m]; i++) {
			uint32_t k = l->index[m][i];
			if (k >= l->low && k < l->high)
				for (uint32_t n = 0; n < l->cols; n++) {
					float *sum = l->sum + (k - l->low) * l->sum_row + n;
					*sum = fmaf(l->delta[m * l->delta_row + n], l->value ? l->value[m][i] : 1, *sum);
				}
		}
}

static Lists random_task(void)
{
	Lists l = {
		.rows = (uint32_t)draw(LIST_ROWS + 1), .cols = (uint32_t)draw(200), .index = index_of, .count = list_count
	};
	size_t wide = padded(l.cols);

	random_lists((uint32_t)draw(11));
	l.value = draw(2) ? value_of : NULL;
	l.low = draw(2) ? 0 : (uint32_t)draw(LIST_UNITS);
	l.high = draw(2) ? LIST_UNITS : l.low + (uint32_t)draw(LIST_UNITS - l.low + 1);
	l.b = of_b;
	l.b_row = wide + draw(2) * LANES;
	l.start = begin;
	l.start_row = draw(2) ? 0 : wide;
	l.c_row = l.sum_row = wide + draw(2) * LANES;
	l.delta = of_a;
	l.delta_row = wide;
	fill(of_a, LIST_ROWS * wide, 5);
	fill(of_b, LIST_UNITS * l.b_row, 5);
	fill(begin, LIST_UNITS * l.sum_row, 5);
	return l;
}

static void lists_forward(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		Lists l = random_task();
		l.sigmoid = draw(2);
		for (int i = 0; i <= kern_count; i++) {
			l.c = i < kern_count ? got[i] : want;
			for (size_t j = 0; j < LIST_ROWS * l.c_row; j++)
				l.c[j] = UNTOUCHED;
			if (i < kern_count)
				kerns[i]->lists_forward(&l);
			else
				plain_forward(&l);
		}
		if (l.sigmoid)
			kerns[0]->units(&(Rows){ .rows = l.rows, .cols = l.cols, .row = l.c_row }, FN_SIGMOID, want, want);
		for (int i = 0; i < kern_count; i++)
			compare(LIST_ROWS, l.cols, l.c_row, got[i], kerns[i]->name);
	}
}

/* The lists of a task by input. */
static InputRows by_input(const Lists *l)
{
	static InputRun run[LIST_UNITS];
	static uint16_t row[LIST_ROWS * LIST_UNITS];
	static float value[LIST_ROWS * LIST_UNITS];
	uint32_t runs = 0, n = 0;

	for (uint32_t source = 0; source < LIST_UNITS; source++) {
		uint32_t before = n;
		for (uint32_t m = 0; m < l->rows; m++)
			for (uint32_t k = 0; k < l->count[m]; k++)
				if (l->index[m][k] == source) {
					row[n] = (uint16_t)m;
					value[n++] = l->value ? l->value[m][k] : 1;
				}
		if (n > before)
			run[runs++] = (InputRun){ source, n };
	}
	return (InputRows){ .runs = runs, .run = run, .row = row, .value = l->value ? value : NULL };
}

static void lists_gradient(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		Lists l = random_task();
		InputRows transposed = by_input(&l);
		l.by_input = draw(2) ? &transposed : NULL;
		for (int i = 0; i <= kern_count; i++) {
			l.sum = i < kern_count ? got[i] : want;
			memcpy(l.sum, begin, LIST_UNITS * l.sum_row * sizeof(float));
			if (i < kern_count)
				kerns[i]->lists_gradient(&l);
			else
				plain_gradient(&l);
		}
		for (int i = 0; i < kern_count; i++)
			compare(LIST_UNITS, l.cols, l.sum_row, got[i], kerns[i]->name);
	}
}

static void checksums(void **state)
{
	(void)state;
	uint8_t *piece = (uint8_t *)of_a;
	fill(of_a, CHECKSUM_BLOCK / sizeof *of_a, 20);
	for (int k = 0; k < kern_count; k++)
		for (int n = 0; n < 500; n++) {
			size_t bytes = n < 200 ? (size_t)n : 1 + draw(CHECKSUM_BLOCK),
				   cut = bytes / CHECKSUM_ROW ? CHECKSUM_ROW * draw(bytes / CHECKSUM_ROW) : 0;
			uint64_t parts = kerns[k]->checksum(piece, cut, 0) +
			                 kerns[k]->checksum(piece + cut, bytes - cut, (uint32_t)(cut / CHECKSUM_ROW));
			assert_true(kerns[k]->checksum(piece, bytes, 0) == checksum_of(piece, bytes));
			assert_true(parts == checksum_of(piece, bytes));
		}
}

/* A single sigmoid has rows computed together. Beside a second output without a target it is a row by itself: the same
 * errors and slopes, bit for bit. */
static void errors_of_one_sigmoid(void **state)
{
	enum { ROWS = 50, ROW = LANES };
	static float net[ROWS * ROW], out[ROWS * ROW], y[2][ROWS * 2], weight[ROWS], back[2][ROWS * ROW], value[2][ROWS];
	(void)state;
	for (int n = 0; n < 200; n++)
		for (int k = 0; k < kern_count; k++) {
			uint32_t rows = 1 + (uint32_t)draw(ROWS), at[2 * ROWS];
			uint64_t y_at[ROWS];
			row_numbers(at, ROWS / 2);
			fill(net, COUNT(net), 8);
			fill(weight, COUNT(weight), 2);
			kerns[k]->units(&(Rows){ .rows = ROWS, .cols = 2, .row = ROW }, FN_SIGMOID, net, out);
			for (uint32_t m = 0; m < ROWS; m++) {
				float target = draw(5) ? (float)draw(2) : draw(2) ? NAN : (float)draw(5) / 4;
				y[0][m] = y[1][2 * m] = target;
				y[1][2 * m + 1] = NAN;
				y_at[m] = draw(ROWS);
				value[0][m] = value[1][m] = 0.25f;
			}
			for (uint32_t cols = 1; cols <= 2; cols++) {
				Errors e = { .of = { .rows = rows, .cols = cols, .row = ROW, .at = n % 2 ? at : NULL },
					         .error = ERR_CROSS_ENTROPY,
					         .fn = FN_SIGMOID,
					         .out = out,
					         .net = net,
					         .y = y[cols - 1],
					         .y_row = cols,
					         .y_at = n % 3 ? y_at : NULL,
					         .weight = n % 5 ? weight : NULL,
					         .back = n % 7 ? back[cols - 1] : NULL,
					         .value = value[cols - 1] };
				memset(back[cols - 1], 0, sizeof back[0]);
				kerns[k]->errors(&e);
			}
			assert_memory_equal(value[0], value[1], sizeof value[0]);
			for (uint32_t m = 0; m < ROWS; m++)
				assert_memory_equal(&back[0][m * ROW], &back[1][m * ROW], sizeof(float));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_of_all_small_sizes),
		cmocka_unit_test(products_of_random_sizes),
		cmocka_unit_test(products_of_large_sizes),
		cmocka_unit_test(tiny_numbers_are_zero),
		cmocka_unit_test(infinities_and_nan_pass_through),
		cmocka_unit_test(lists_forward),
		cmocka_unit_test(lists_gradient),
		cmocka_unit_test(checksums),
		cmocka_unit_test(errors_of_one_sigmoid),
	};

	kerns_find();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
