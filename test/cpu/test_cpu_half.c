/* SPDX-License-Identifier: MIT */
/* bf16 on the cpu target. The kernels against the definition of a product, element by element, and AMX against
 * them: by the CPU's own tiles or, where it has none, with its instructions carried out by hand. Then random
 * networks: the same bits with all vectors, threads and forms of the inputs, and near the oracle. */
#if !defined _GNU_SOURCE
#define _GNU_SOURCE /* for the names of registers in a signal's context */
#endif
#include "cpu_nets.h"

#include "guard.h"
#include "amx.h"

#if defined __x86_64__ && !defined MP_PORTABLE
#include <cpuid.h>

#include "tiles_by_hand.h"
#endif

/* ---- kernels ---- */

enum { MOST_ROWS = 110, MOST_DEPTH = 150, MOST_COLS = 75, WIDE = MOST_DEPTH + 32 };

/* What packing rounds a float to. */
static float rounded(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	if ((u & 0x7fffffff) < 0x00800000)
		u &= 0x80000000; /* tiny numbers are zero */
	else
		u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* Ordinary numbers; or halfway between two bf16 numbers, tiny, huge. */
static float roll_number(Dice *d, uint32_t kind)
{
	uint32_t u = (uint32_t)random_u64(d->seed, STREAM_DATA, d->count++);
	float x;
	if (kind == 1)
		u = (u & 0x83ff0000) | 0x3c008000; /* ties */
	else if (kind == 2)
		u = (u & 0x8fffffff) | 0x10000000; /* products underflow */
	else if (kind == 3)
		u &= 0x80ffffff; /* denormals */
	else
		return (float)(int32_t)u * 0x1p-31f;
	memcpy(&x, &u, sizeof x);
	return x;
}

typedef struct Case {
	uint32_t rows, cols, depth;
	bool across, halves, numbered, one_start;
	float a[WIDE * WIDE], b[WIDE * WIDE], start[WIDE * WIDE];
	Half a_half[WIDE * WIDE], b_half[WIDE * WIDE];
	uint32_t at[MOST_ROWS];
	size_t c_row;
} Case;

static void roll_matrix(Dice *d, float *f, Half *h, uint32_t kind)
{
	for (size_t i = 0; i < (size_t)WIDE * WIDE; i++) {
		float r;
		uint32_t u;
		f[i] = roll_number(d, one_in(d, 4) ? kind : 0);
		r = rounded(f[i]);
		memcpy(&u, &r, sizeof u);
		h[i] = (Half)(u >> 16);
	}
}

static void roll_case(Dice *d, Case *c)
{
	uint32_t kind = roll(d, 4);
	c->rows = 1 + roll(d, MOST_ROWS);
	c->cols = 1 + roll(d, MOST_COLS);
	c->depth = one_in(d, 6) ? roll(d, 3) : 1 + roll(d, MOST_DEPTH);
	c->across = one_in(d, 2);
	c->halves = one_in(d, 3);
	c->numbered = one_in(d, 3);
	c->one_start = one_in(d, 3);
	c->c_row = (c->cols + LANES - 1) / LANES * LANES + LANES * roll(d, 2);
	for (uint32_t m = 0; m < c->rows; m++)
		c->at[m] = c->rows - 1 - m;
	roll_matrix(d, c->a, c->a_half, kind);
	roll_matrix(d, c->b, c->b_half, kind);
	roll_matrix(d, c->start, c->a_half, kind);
	for (size_t i = 0; i < (size_t)WIDE * WIDE; i++) {
		float r = rounded(c->a[i]);
		uint32_t u;
		memcpy(&u, &r, sizeof u);
		c->a_half[i] = (Half)(u >> 16);
	}
}

/* The definition. fma is exact enough: a float's product is exact in double, and the sum is rounded to odd on the
 * way. */
static float fused(float a, float b, float c)
{
	double p = (double)a * b, s = p + c, back = s - p, lost = (p - (s - back)) + (c - back);
	uint64_t u;
	memcpy(&u, &s, sizeof u);
	if (lost > 0 || lost < 0)
		u = (u - ((lost < 0) != (s < 0))) | 1;
	memcpy(&s, &u, sizeof s);
	return (float)s;
}

static float defined_at(const Case *c, uint32_t m, uint32_t n)
{
	size_t row = c->numbered ? c->at[m] : m;
	float sum = c->start[(c->one_start ? 0 : row * c->c_row) + n];
	for (uint32_t k = 0; k < c->depth; k += TILE_DEPTH) {
		float chain[2] = { 0, 0 };
		for (uint32_t i = k; i < k + TILE_DEPTH; i++) {
			bool there = i < c->depth;
			float a =
				!there
					? 0
					: rounded(c->a[c->across ? (size_t)i * WIDE + m : (c->numbered ? c->at[m] : m) * (size_t)WIDE + i]);
			float b = there ? rounded(c->b[(size_t)i * WIDE + n]) : 0;
			chain[i % 2] = fused(a, b, chain[i % 2]);
		}
		float both = chain[0] + chain[1];
		sum += both;
	}
	return sum;
}

static void compute(const HalfKern *h, const Case *c, float *to)
{
	size_t row = half_row(c->depth);
	Half *a = calloc(half_room_rows(c->rows, c->depth) + 1, sizeof *a),
		 *b = calloc(half_room_tiles(c->depth, c->cols) + 1, sizeof *b);
	Matrix from_a = { .row = WIDE, .at = c->numbered && !c->across ? c->at : NULL }, from_b = { .row = WIDE };
	from_a.f = c->halves ? NULL : c->a;
	from_a.h = c->a_half;
	from_b.f = c->halves ? NULL : c->b;
	from_b.h = c->b_half;
	(c->across ? h->pack_across : h->pack_rows)(c->rows, c->depth, &from_a, a, row);
	h->pack_pairs(c->depth, c->cols, &from_b, b);
	h->enter();
	h->multiply(&(Multiply){ .rows = c->rows,
	                         .cols = c->cols,
	                         .depth = c->depth,
	                         .a = a,
	                         .a_row = row,
	                         .b = b,
	                         .start = c->start,
	                         .start_row = c->one_start ? 0 : c->c_row,
	                         .c = to,
	                         .c_row = c->c_row,
	                         .at = c->numbered ? c->at : NULL });
	h->leave();
	free(a);
	free(b);
}

static void holds(const HalfKern *h, const Case *c)
{
	size_t rows = (c->rows + 1) * c->c_row;
	float *to = calloc(rows, sizeof *to);
	compute(h, c, to);
	for (uint32_t m = 0; m < c->rows; m++)
		for (uint32_t n = 0; n < c->cols; n++) {
			float want = defined_at(c, m, n), have = to[(c->numbered ? c->at[m] : m) * c->c_row + n];
			if (memcmp(&want, &have, sizeof want) == 0)
				continue;
			print_error("%s: %ux%ux%u, row %u, column %u: %a, should be %a\n", h->name, c->rows, c->cols, c->depth, m,
			            n, (double)have, (double)want);
			assert_true(false);
		}
	for (size_t i = c->rows * c->c_row; i < rows; i++)
		assert_true(to[i] == 0); /* nothing past the last row */
	free(to);
}

static void plain_holds(void **state)
{
	static Case c;
	Dice d = { 11, 0 };
	(void)state;
	for (int i = 0; i < 60; i++) {
		unsigned before = cpu_enter();
		roll_case(&d, &c);
		for (int isa = 0; isa < ISA_AMX; isa++)
			if (isa_has(isa))
				holds(isa_half(isa), &c);
		cpu_leave(before);
	}
}

static void amx_holds(void **state)
{
	(void)state;
#if defined __x86_64__ && !defined MP_PORTABLE
	static Case c;
	Dice d = { 12, 0 };
	unsigned a, b, unused;
	bool rounds = __get_cpuid_count(7, 1, &a, &b, &unused, &unused) && a >> 5 & 1; /* AVX512-BF16, for packing */
	if (!isa_has(ISA_AVX512) || !rounds)
		skip();
	if (!isa_has(ISA_AMX))
		tiles_by_hand();
	for (int i = 0; i < 120; i++) {
		unsigned before = cpu_enter();
		roll_case(&d, &c);
		holds(&half_amx, &c);
		cpu_leave(before);
	}
	assert_true(isa_has(ISA_AMX) || tiles.products > 100);
	tiles_no_more();
#else
	skip();
#endif
}

/* ---- networks ---- */

#define NEAR_OUTPUT   0.01 /* of the largest output, or of 1; a rounding is 2^-9 */
#define NEAR_GRADIENT 0.02 /* of the largest gradient */

enum { MOST_WAYS = 8 };

typedef struct Trial {
	Draft draft;
	char text[sizeof((Draft *)0)->text + 32];
	Cases c;
	Side ref, way[MOST_WAYS];
	uint32_t ways;
	double *want, *have, *other;
} Trial;

static double worst_output, worst_gradient; /* shown with MICROPROP_LOUD */

static void same(const Trial *t, const Side *s, const char *what, uint64_t n)
{
	uint64_t i = 0;
	while (i < n &&
	       (memcmp(t->have + i, t->other + i, sizeof *t->have) == 0 || (isnan(t->have[i]) && isnan(t->other[i]))))
		i++;
	if (i == n)
		return;
	print_error("%s%s, %d threads, %s inputs: %s %llu is %a, not %a\n", t->text, isa_name(s->way.isa), s->way.threads,
	            s->way.index ? "index" : "dense", what, (unsigned long long)i, t->other[i], t->have[i]);
	assert_true(false);
}

static double farthest(const Trial *t, uint64_t n, double least)
{
	double far = 0, reach = least;
	for (uint64_t i = 0; i < n; i++) {
		reach = fmax(reach, fabs(t->want[i]));
		far = fmax(far, fabs(t->want[i] - t->have[i]));
	}
	return far / reach;
}

/* Relu and linear units pass errors on in full, and the sign of a relu's sum may change: these are not held to the
 * oracle. */
static bool is_bounded(const Draft *d)
{
	for (uint32_t g = d->inputs + d->contexts; g < d->groups; g++)
		if (d->fn[g] == FN_RELU || d->fn[g] == FN_LINEAR)
			return false;
	return d->contexts == 0;
}

static void near_oracle(const Trial *t, const char *what, uint64_t n, double least, double most, double *ever)
{
	double far = farthest(t, n, least);
	if (!is_bounded(&t->draft))
		return;
	*ever = fmax(*ever, far);
	if (far > most)
		print_error("%s: %s off by %g of the largest\n", t->text, what, far);
	assert_true(far <= most);
}

static void outputs_agree(Trial *t, uint64_t examples, uint64_t n)
{
	Tally tally = { 0 };
	side_ok(&t->ref, t->ref.target->evaluate(t->ref.program, 0, examples, &t->ref.stop, t->want, &tally));
	for (uint32_t k = 0; k < t->ways; k++) {
		Side *s = &t->way[k];
		side_ok(s, s->target->evaluate(s->program, 0, examples, &s->stop, k ? t->other : t->have, &tally));
		if (k)
			same(t, s, "output", n);
	}
	near_oracle(t, "output", n, 1, NEAR_OUTPUT, &worst_output);
}

static void gradients_agree(Trial *t, uint64_t examples)
{
	uint64_t links = t->ref.net->links;
	side_learn(&t->ref, (Batch){ .count = examples });
	t->ref.target->gradient(t->ref.program, t->want);
	for (uint32_t k = 0; k < t->ways; k++) {
		Side *s = &t->way[k];
		side_learn(s, (Batch){ .count = examples });
		s->target->gradient(s->program, k ? t->other : t->have);
		for (uint64_t i = 0; i < links; i++)
			if (net_block(s->net, net_target(s->net, i), i)->frozen)
				(k ? t->other : t->have)[i] = t->want[i] = 0;
		if (k)
			same(t, s, "gradient", links);
	}
	near_oracle(t, "gradient", links, 1e-6, NEAR_GRADIENT, &worst_gradient);
}

static void weights_agree(Trial *t, uint64_t number)
{
	for (uint32_t k = 0; k < t->ways; k++) {
		Side *s = &t->way[k];
		side_update(s, number);
		s->target->get(s->program, 0, 0, ALL_LINKS, k ? t->other : t->have);
		if (k)
			same(t, s, "weight", s->net->links);
	}
}

static void open_ways(Trial *t)
{
	static const int threads[] = { 1, 2, 3, 8 };
	Dice *d = &t->draft.d;
	for (int isa = 0; isa < ISA_COUNT; isa++)
		for (int i = 0; isa_has(isa) && i < 2; i++)
			side_open(&t->way[t->ways++], &target_cpu, t->text,
			          (Way){ .isa = isa,
			                 .threads = i ? threads[roll(d, COUNT(threads))] : 1,
			                 .index = one_in(d, 2),
			                 .pieces = one_in(d, 4) });
}

static void agree(uint64_t seed)
{
	static Trial t;
	Monitor watch = { .leaf = NO_LEAF };
	t = (Trial){ .ways = 0 };
	draft(&t.draft, seed, seed % 3 ? 60 : 20, false);
	snprintf(t.text, sizeof t.text, "%strain precision bf16\n", t.draft.text);
	side_open(&t.ref, &target_ref, t.text, (Way){ .threads = 1 });
	open_ways(&t);
	const Net *net = t.ref.net;
	uint64_t many = 2200000 / net->links + 1, cases = seed % 2 ? 1 + roll(&t.draft.d, 80) : many < 1300 ? many : 1300;
	t.c = cases_make(&t.draft.d, net, cases, false);
	uint64_t examples = run_examples(net, &t.c.dense), room = net->links + cases * net->outputs;
	t.want = calloc(room, sizeof *t.want);
	t.have = calloc(room, sizeof *t.have);
	t.other = calloc(room, sizeof *t.other);
	side_take(&t.ref, &t.c);
	for (uint32_t k = 0; k < t.ways; k++) {
		side_take(&t.way[k], &t.c);
		if (k % 2)
			target_cpu.guard->attach(t.way[k].program, &watch); /* rounded inputs are not kept */
	}
	outputs_agree(&t, examples, cases * net->outputs);
	gradients_agree(&t, examples);
	weights_agree(&t, 1);
	for (uint32_t k = 0; k < t.ways; k++)
		side_learn(&t.way[k], (Batch){ .count = 1 + examples / 2 });
	weights_agree(&t, 2);
	uint64_t *order = calloc(examples, sizeof *order);
	for (uint64_t i = 0; i < examples; i++)
		order[i] = (i * 7 + 3) % examples;
	for (uint32_t k = 0; k < t.ways; k++)
		side_learn(&t.way[k], (Batch){ .example = order, .count = 1 + examples / 2 });
	weights_agree(&t, 3);
	free(order);
	cases_free(&t.c);
	side_close(&t.ref);
	for (uint32_t k = 0; k < t.ways; k++)
		side_close(&t.way[k]);
	free(t.want);
	free(t.have);
	free(t.other);
}

static void networks_agree(void **state)
{
	const char *more = getenv("MICROPROP_NETWORKS");
	(void)state;
	for (uint64_t seed = 1; seed <= 24 + (more ? strtoull(more, NULL, 10) : 0); seed++)
		agree(seed);
	if (getenv("MICROPROP_LOUD"))
		print_message("worst: outputs %g, gradients %g\n", worst_output, worst_gradient);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_holds),
		cmocka_unit_test(amx_holds),
		cmocka_unit_test(networks_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
