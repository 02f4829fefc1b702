/* SPDX-License-Identifier: MIT */
/* Noise, dropout and settings of single groups and blocks on the cpu target: the distribution of the numbers, the same
 * bits with other vectors, threads and forms of the inputs, results near those of the oracle. */
#include "cpu_nets.h"
#include "kern.h"

/* ---- numbers ---- */

enum { UNITS = 203, CASES = 3000, FIRST = 7 }; /* a part that does not begin a vector, and one that does */

static void make_numbers(const Kern *kern, int kind, uint32_t first, float *v)
{
	static uint64_t cases[CASES];
	static TickRow tick[CASES];
	for (uint32_t i = 0; i < CASES; i++) {
		cases[i] = ((uint64_t)1 << 33) - 2000 + 3 * i; /* more than 32 bits from some on */
		tick[i].number = i % 4;
	}
	for (size_t i = 0; i < (size_t)CASES * UNITS; i++)
		v[i] = kind == NOISE_DROPOUT;
	unsigned before = cpu_enter();
	kern->noise(&(NoiseRows){ .of = { .rows = CASES, .cols = UNITS, .row = UNITS },
	                          .in = v,
	                          .out = v,
	                          .cases = cases,
	                          .tick = tick,
	                          .first = first,
	                          .kind = kind,
	                          .amount = kind == NOISE_DROPOUT ? 0.25f : 1,
	                          .scale = 1 / 0.75f,
	                          .key = noise_key(&(Options){ .seed = 5 }, 17, NOISE_AT_NET, 3) });
	cpu_leave(before);
}

/* As lib/run/noise.c defines them, on every instruction set. */
static void numbers_are_those_of_the_definition(void **state)
{
	static float want[CASES * UNITS], have[CASES * UNITS];
	(void)state;
	for (int kind = NOISE_GAUSSIAN; kind <= NOISE_DROPOUT; kind++)
		for (uint32_t first = 0; first <= FIRST; first += FIRST) {
			Noise n = { kind, kind == NOISE_DROPOUT ? 0.25f : 1, kind == NOISE_DROPOUT ? 0.25 : 1 };
			make_numbers(&kern_generic, kind, first, want);
			for (int isa = ISA_GENERIC + 1; isa <= best_isa(); isa++) {
				make_numbers(isa_kern(isa), kind, first, have);
				assert_memory_equal(have, want, sizeof want);
			}
			uint64_t key = noise_key(&(Options){ .seed = 5 }, 17, NOISE_AT_NET, 3);
			for (uint32_t i = 0; i < CASES; i += 97)
				for (uint32_t u = 0; u < UNITS; u++) {
					uint32_t word = noise_word(key, ((uint64_t)1 << 33) - 2000 + 3 * i, i % 4, first + u);
					double v = noise_apply(&n, word, kind == NOISE_DROPOUT);
					assert_true(fabs(v - (double)want[i * UNITS + u]) <= 3e-6);
				}
		}
}

/* Mean, variance and kurtosis of a million numbers: within five standard errors; and the share that is dropped. */
static void numbers_are_distributed(void **state)
{
	static float v[CASES * UNITS];
	static const struct {
		int kind;
		double mean, variance, kurtosis; /* of the fourth moment: 3 of normal deviates, 9/5 of uniform ones */
		double errors[3];
	} kinds[] = {
		{ NOISE_GAUSSIAN, 0, 1, 3, { 1, 1.4143, 9.8 } },
		{ NOISE_UNIFORM, 0, 1.0 / 3, 1.8, { 0.5774, 0.2982, 2.4 } },
		{ NOISE_DROPOUT, 1, 1.0 / 3, 2.3334, { 0.5774, 0.385, 6 } },
	};
	const double n = (double)CASES * UNITS, root = sqrt(n);
	(void)state;
	for (size_t k = 0; k < COUNT(kinds); k++) {
		double mean = 0, second = 0, fourth = 0, largest = 0;
		make_numbers(isa_kern(best_isa()), kinds[k].kind, 0, v);
		for (size_t i = 0; i < COUNT(v); i++)
			mean += v[i] / n;
		for (size_t i = 0; i < COUNT(v); i++) {
			double d = v[i] - kinds[k].mean;
			second += d * d / n;
			fourth += d * d * d * d / n;
			largest = fmax(largest, fabs(d));
		}
		assert_true(fabs(mean - kinds[k].mean) <= 5 * kinds[k].errors[0] / root);
		assert_true(fabs(second - kinds[k].variance) <= 5 * kinds[k].errors[1] / root);
		assert_true(fabs(fourth / (second * second) - kinds[k].kurtosis) <= 5 * kinds[k].errors[2] / root);
		assert_true(kinds[k].kind == NOISE_GAUSSIAN ? largest > 4.5 && largest < 6 : largest <= 1);
	}
	/* neighbours in a row, and in a column, are not correlated */
	make_numbers(isa_kern(best_isa()), NOISE_GAUSSIAN, 0, v);
	double across = 0, down = 0;
	for (size_t i = 0; i + UNITS < COUNT(v); i++) {
		across += (double)v[i] * v[i + 1] / n;
		down += (double)v[i] * v[i + UNITS] / n;
	}
	assert_true(fabs(across) <= 5 / root && fabs(down) <= 5 / root);
}

/* ---- networks ---- */

static const char *const texts[] = {
	/* weights: matrices, with gaps, lists of links */
	"group x 30 input\ngroup h 40 tanh\ngroup o 9 output\nconnect x, true -> h\nconnect h, true -> o\n"
	"noise x -> h gaussian 0.1\nnoise true -> h uniform 0.2\nnoise h -> o uniform 0.1\n",
	"group x 30 input\ngroup h 70 tanh\ngroup k 40\ngroup o 9 output\nconnect x, true -> h random 0.5 seed 1\n"
	"connect h -> k random 0.06 seed 2\nconnect x -> k random 0.05 seed 3 rate 0.5\nconnect k, true -> o\n"
	"noise x -> h gaussian 0.1\nnoise h -> k uniform 0.2\nnoise x -> k gaussian 0.05\n",
	/* shared weights */
	"group x 30 input\ngroup h 20 tanh\ngroup o 30 output\nconnect x, true -> h limits 0.3\n"
	"connect h -> o tied x -> h transposed\nconnect true -> o decay 0.01\nnoise x -> h gaussian 0.05\n",
	"group x 20 input\ngroup h 20 tanh\ngroup k 20 tanh\ngroup o 6 output\nconnect x -> h\nconnect h -> k\n"
	"connect x -> k tied x -> h\nconnect k, true -> o\nconnect true -> h\nconnect true -> k tied true -> h\n"
	"connect h -> o tied k -> o\ntrain rule doug\n",
	"group x 20 input\ngroup a 24 tanh\ngroup b 24 tanh\ngroup o 6 output\nconnect x -> a random 0.3 seed 4\n"
	"connect a -> b one-to-one\nconnect a -> o\nconnect x -> b tied x -> a\nconnect b -> o tied a -> o\n"
	"train rule adam\n",
	/* noise of everything, in parts that do not begin a vector */
	"group x 33 input\ngroup h 50 tanh gain 1.2\ngroup o 9 output error squared\n"
	"connect x[0:15] -> h[0:20]\nconnect x[10:32] -> h[21:49]\nconnect h, true -> o\nnoise x gaussian 0.1\n"
	"dropout x 0.1\nnoise h net uniform 0.2\nnoise h gaussian 0.1\ndropout h 0.3\nnoise o gaussian 0.1\n",
};

static void texts_agree(void **state)
{
	static const Way ways[] = {
		{ .threads = 1, .batch = BATCH_ALL },
		{ .threads = 2, .batch = 1, .index = true },
		{ .threads = 3, .batch = 16, .pieces = true },
		{ .threads = 8, .batch = BATCH_ALL, .index = true },
	};
	enum { UPDATES = 3 };
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		Side ref, s;
		side_open(&ref, &target_ref, texts[i], (Way){ .threads = 1 });
		uint64_t links = ref.net->links, cases = 2100000 / links;
		Cases c = cases_make(&(Dice){ i + 1, 0 }, ref.net, cases, true);
		double *want = calloc(links, sizeof *want), *have = calloc(links, sizeof *have),
			   *oracle = calloc(links, sizeof *oracle), reach = 0.1;
		side_take(&ref, &c);
		ref.opt.rate = 1e-5; /* few updates, so that rules that look at signs do not part */
		for (uint64_t u = 0; u < UPDATES; u++) {
			side_learn(&ref, (Batch){ .count = cases, .update = u });
			side_update(&ref, u + 1);
		}
		ref.target->get(ref.program, 0, 0, ALL_LINKS, oracle);
		for (uint64_t l = 0; l < links; l++)
			reach = fmax(reach, fabs(oracle[l]));
		for (int isa = best_isa(); isa >= 0; isa--)
			for (size_t k = 0; k < COUNT(ways); k += isa == ISA_GENERIC ? 2 : 1) {
				Way way = ways[k];
				way.isa = isa;
				side_open(&s, &target_cpu, texts[i], way);
				s.opt.rate = ref.opt.rate;
				side_take(&s, &c);
				for (uint64_t u = 0; u < UPDATES; u++) {
					side_learn(&s, (Batch){ .count = cases, .update = u });
					side_update(&s, u + 1);
				}
				s.target->get(s.program, 0, 0, ALL_LINKS, have);
				if (isa == best_isa() && !k)
					memcpy(want, have, links * sizeof *want);
				for (uint64_t l = 0; l < links; l++) {
					if (have[l] != want[l] || fabs(have[l] - oracle[l]) > 1e-5 * reach)
						print_error("%s%s, %d threads: weight %llu is %.9g, should be %.9g; oracle %.9g\n", texts[i],
						            isa_name(isa), way.threads, (unsigned long long)l, have[l], want[l], oracle[l]);
					assert_true(have[l] == want[l] && fabs(have[l] - oracle[l]) <= 1e-5 * reach);
					assert_true(!s.net->tie || have[l] == have[s.net->tie[l]]);
				}
				side_close(&s);
			}
		free(want);
		free(have);
		free(oracle);
		cases_free(&c);
		side_close(&ref);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_definition),
		cmocka_unit_test(numbers_are_distributed),
		cmocka_unit_test(texts_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
