/* SPDX-License-Identifier: MIT */
/* Links one by one on the cpu target: every kernel this CPU can run against one plain chain of fmaf, bit for bit.
 * Who is linked with whom is made here, not by the layout. */
#include <math.h>

#include "test.h"

#include "kerns.h"

enum {
	MOST_ROWS = 150,
	MOST_STRIPS = 6,
	COLS = 9 * LANES,
	MOST_LINKS = 1200,
	SIZE = 2 * MOST_ROWS * COLS,
	ROOM = 2 * MOST_STRIPS * LANES * LINK_ROWS
};

static float in[SIZE], begin[SIZE], got[SIZE], want[SIZE], w[MOST_LINKS], room[ROOM];

static uint64_t seed;
static uint32_t draw(uint32_t n) { return (uint32_t)random_below(1, STREAM_DATA, seed++, n); }

/* Numbers of very different size, so that a product rounded on its own or a sum rounded twice shows. */
static void fill(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = ldexpf((float)random_unit(2, STREAM_DATA, seed++) - 0.5f, (int)draw(11) - 5);
}

/* ---- who is linked with whom ---- */

typedef struct Task {
	LinkSums of;
	uint32_t strip[MOST_STRIPS], slot[MOST_LINKS + LANES], unit[COLS], order[MOST_LINKS], to[MOST_LINKS + LANES];
	uint64_t first[COLS + 1];
	uint16_t begins[MOST_LINKS / LANES + 1];
} Task;

/* Some of the columns, ascending. */
static uint32_t choose(uint32_t *to, uint32_t from, uint32_t step, uint32_t most)
{
	uint32_t n = 0;
	while (!n)
		for (uint32_t i = 0; i < from && n < most; i++)
			if (draw(3))
				to[n++] = i * step;
	return n;
}

/* Units have 0 to `most` links each. */
static void make_task(Task *t, uint32_t most, bool ordered)
{
	LinkSums *of = &t->of;
	uint32_t links = 0;

	memset(t, 0, sizeof *t);
	*of = (LinkSums){
		.strip = t->strip, .slot = t->slot, .unit = t->unit, .first = t->first, .order = ordered ? t->order : NULL
	};
	of->strips = choose(t->strip, COLS / LANES, LANES, 1 + draw(MOST_STRIPS));
	of->units = choose(t->unit, 1 + draw(COLS), 1, COLS);
	for (uint32_t u = 0; u < of->units; u++) {
		for (uint32_t k = draw(most + 1); k && links < MOST_LINKS; k--, links++) {
			t->slot[links] = draw(of->strips * LANES);
			t->to[links] = u;
		}
		t->first[u + 1] = links;
	}
	for (uint32_t k = links; k && k < links + LANES; k++) {
		t->slot[k] = t->slot[k - 1];
		t->to[k] = t->to[k - 1];
	}
	for (uint32_t k = 1; k < links + LANES && k / LANES < COUNT(t->begins); k++)
		t->begins[k / LANES] |= (uint16_t)((k % LANES && t->to[k] != t->to[k - 1]) << k % LANES);
	for (uint32_t k = 0; k < links; k++) { /* another order of the weights */
		uint32_t j = draw(k + 1);
		t->order[k] = t->order[j];
		t->order[j] = k;
	}
}

static uint32_t column_of(const LinkSums *of, uint64_t k)
{
	return of->strip[of->slot[k] / LANES] + of->slot[k] % LANES;
}

/* ---- sums ---- */

static void plain_links(const Links *l)
{
	const LinkSums *of = l->of;
	for (uint32_t m = 0; m < l->rows; m++) {
		size_t row = (l->at ? l->at[m] : m) * l->row;
		for (uint32_t u = 0; u < of->units; u++) {
			float sum = l->go_on ? l->c[row + of->unit[u]] : 0;
			for (uint64_t k = of->first[u]; k < of->first[u + 1]; k++)
				sum = fmaf(l->in[row + column_of(of, k)], l->w[of->order ? of->order[k] : k], sum);
			l->c[row + of->unit[u]] = sum;
		}
	}
}

/* Padding of unit vectors: unchanged, or zero. */
static float beside(const Links *l, uint32_t col, float before)
{
	for (uint32_t u = 0; !l->go_on && u < l->of->units; u++)
		if (l->of->unit[u] / LANES == col / LANES)
			return 0;
	return before;
}

static void expect_beside(const Links *l)
{
	for (uint32_t m = 0; m < l->rows; m++)
		for (uint32_t col = 0; col < COLS; col++) {
			float *c = want + (l->at ? l->at[m] : m) * l->row + col;
			*c = beside(l, col, *c);
		}
}

static void try_links(Links l)
{
	for (int i = 0; i < kern_count; i++) {
		memcpy(want, begin, sizeof want);
		memcpy(got, begin, sizeof got);
		expect_beside(&l);
		l.c = want;
		plain_links(&l);
		l.c = got;
		l.scratch = room;
		kerns[i]->links(&l);
		for (size_t j = 0; j < SIZE; j++)
			if (memcmp(&got[j], &want[j], sizeof *got)) {
				print_error("%s: %u rows, row %zu, column %zu is %a and should be %a\n", kerns[i]->name, l.rows,
				            j / COLS, j % COLS, (double)got[j], (double)want[j]);
				assert_true(false);
			}
	}
}

/* `rows` of twice as many in random order. */
static void number_rows(uint32_t *at, uint32_t rows)
{
	for (uint32_t i = 0; i < 2 * rows; i++) {
		uint32_t j = draw(i + 1);
		at[i] = at[j];
		at[j] = i;
	}
}

static void sums_of_any_rows_and_links(void **state)
{
	static Task t;
	static uint32_t at[2 * MOST_ROWS];
	(void)state;
	fill(in, SIZE);
	fill(begin, SIZE);
	fill(w, MOST_LINKS);
	for (uint32_t rows = 0; rows <= 70; rows++)
		for (uint32_t i = 0; i < 4; i++) {
			make_task(&t, draw(3) ? 1 + draw(6) : 40, i & 1);
			number_rows(at, rows);
			try_links((Links){
				.of = &t.of, .rows = rows, .at = draw(2) ? at : NULL, .row = COLS, .in = in, .w = w, .go_on = i & 2 });
		}
	for (uint32_t rows = 71; rows <= MOST_ROWS; rows += 1 + draw(12)) {
		make_task(&t, 20, draw(2));
		try_links((Links){ .of = &t.of, .rows = rows, .row = COLS, .in = in, .w = w, .go_on = draw(2) });
	}
}

/* ---- gradients ---- */

static void plain_gradient(const LinkGradient *l)
{
	for (uint32_t m = 0; m < l->rows; m++)
		for (uint64_t k = l->first; k < l->end; k++)
			l->sum[k] = fmaf(l->delta[m * l->row + l->to[k]], l->act[m * l->row + column_of(l->of, k)], l->sum[k]);
}

static void try_gradient(LinkGradient l)
{
	for (int i = 0; i < kern_count; i++) {
		memcpy(want, begin, sizeof want);
		memcpy(got, begin, sizeof got);
		l.sum = want;
		plain_gradient(&l);
		l.sum = got;
		l.scratch = room;
		kerns[i]->links_gradient(&l);
		for (size_t j = 0; j < SIZE; j++)
			if (memcmp(&got[j], &want[j], sizeof *got)) {
				print_error("%s: %u rows, link %zu of %llu is %a and should be %a\n", kerns[i]->name, l.rows, j,
				            (unsigned long long)l.end, (double)got[j], (double)want[j]);
				assert_true(false);
			}
	}
}

/* One unit, or as many as there are links, or between; all links, or some of them. */
static void gradients_of_any_rows_and_links(void **state)
{
	static Task t;
	static float delta[SIZE];
	static const uint32_t most[] = { 1, 2, 5, 16, 40 };
	(void)state;
	fill(in, SIZE);
	fill(delta, SIZE);
	fill(begin, SIZE);
	for (uint32_t rows = 0; rows <= 70; rows++)
		for (uint32_t i = 0; i < COUNT(most); i++) {
			make_task(&t, most[i], false);
			uint32_t vectors = (uint32_t)(t.first[t.of.units] / LANES), first = draw(2) ? 0 : draw(vectors + 1);
			uint32_t end = draw(2) ? vectors : first + draw(vectors - first + 1);
			try_gradient((LinkGradient){ .of = &t.of,
			                             .rows = rows,
			                             .row = COLS,
			                             .act = in,
			                             .delta = delta,
			                             .to = t.to,
			                             .begins = t.begins,
			                             .first = first * LANES,
			                             .end = end * LANES });
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_any_rows_and_links),
		cmocka_unit_test(gradients_of_any_rows_and_links),
	};

	kerns_find();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
