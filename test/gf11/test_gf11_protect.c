/* SPDX-License-Identifier: MIT */
/* Training on a faulty machine: checksums detect every wrong bit of the data, weights are restored from snapshots in
 * processor memory, averages make processors agree; without faults no bit of the result changes.
 *
 * Faults are injected into memory directly, between two epochs; the host program is a reduced form of target.c. */
#include "gf11_nets.h"

#include <unistd.h>

#include "gf11_protect.h"

static const char toy[] = "group x 10 input\ngroup h 14\ngroup o 4 output\nconnect x, true -> h\nconnect h, true -> o\n"
						  "train rate 0.05 momentum 0.8\n";
enum { CASES = 50, EPOCHS = 30 };

/* ---- a network, a machine, its cases ---- */

typedef struct Way {
	int sum, compiler;
	uint32_t procs;
	const char *machine;
} Way;

typedef struct Bench {
	Ctx cx;
	Way way;
	Options opt;
	Bp *b;
	Guard guard;
	Protect *t;
	Cases c;
	Update update;
	bool loaded;
	double error; /* of the last epoch */
} Bench;

static void bench_build(Ctx *cx, void *arg)
{
	Bench *s = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = toy, .len = strlen(toy) };
	Net *net = net_parse(cx, src, DEFAULTS_1989);
	s->opt.rate = net->options.rate;
	s->opt.momentum = net->options.momentum;
	Caps caps = { .target = "gf11", .lanes = 566, .bundle = 1000 };
	BpOptions o = {
		.procs = s->way.procs, .sum = s->way.sum, .sigmoid = SIGMOID_POWER2, .compiler = s->way.compiler, .threads = 1
	};
	s->b = bp_new(cx, plan_make(cx, net, &caps), &s->opt, machine_open(cx, s->way.machine ? s->way.machine : "gf11"),
	              &o, CASES);
	sum_compile(s->b);
	s->t = protect_new(s->b, gf11_own(&s->opt), &s->guard);
	double *w = NEW(&cx->scratch, net->links, double);
	net_weights(net, 1, 0, ALL_LINKS, w);
	bp_weights_write(s->b, 0, w);
	Dice d = { 11, 0 };
	s->c = cases_make(&d, net, CASES);
	s->c.d.weight = NULL;
	for (uint32_t i = 0; i < CASES * 4; i++) /* a learnable function */
		s->c.y[i] = s->c.x[i / 4 * 10 + i % 4] * s->c.x[i / 4 * 10 + 5] > 0 ? 0.9f : 0.1f;
	update_fill(&s->opt, 1, 0, 0, &s->update);
}

static Bench *bench_open(const Way *way, const char *const (*option)[2])
{
	Bench *s = calloc(1, sizeof *s);
	const char *remedy;
	s->way = *way;
	ctx_init(&s->cx, NULL);
	options_init(&s->opt, DEFAULTS_1989);
	for (; option && (*option)[0]; option++)
		assert_null(option_set(&s->cx, &s->opt, (*option)[0], (*option)[1], &remedy));
	Status status = guarded(&s->cx, bench_build, s);
	if (status != MP_OK)
		print_error("%s\n", ctx_messages(&s->cx));
	assert_int_equal(status, MP_OK);
	assert_int_equal(s->b->summing->sum, way->procs > 2 ? way->sum : SUM_TREE);
	return s;
}

static void bench_close(Bench *s)
{
	cases_free(&s->c);
	ctx_free(&s->cx);
	free(s);
}

static void align(const Bench *s)
{
	const Bp *b = s->b;
	for (uint32_t i = 0; i < b->at.words && sum_home(b, 0).everywhere; i++)
		for (uint32_t k = 0; k <= state_count(b); k++) {
			uint32_t *row = b->p->dram + (size_t)((k ? state_first(b, k - 1) : b->at.weights) + i) * b->p->lanes;
			for (uint32_t proc = 1; proc < b->o.procs; proc++)
				row[proc] = row[0];
		}
}

static void epoch_body(Ctx *cx, void *arg)
{
	Bench *s = arg;
	Bp *b = s->b;
	double *none = NEW(&cx->scratch, b->net->links, double);
	bool again = false;
	bool there = s->t ? protect_finds(s->t, &s->c.d, NULL, CASES, s->loaded) : s->loaded;
	if (!there)
		bp_load_cases(b, &s->c.d, NULL, CASES);
	if (!there && s->t)
		protect_loaded(s->t, false);
	s->loaded = true;
	if (s->t)
		protect_begin(s->t);
	do {
		if (again)
			bp_weights_write(b, 1, none);
		bp_accumulate(b);
		s->error = bp_total_error(b);
		again = s->t && protect_again(s->t, &(Tally){ .error = s->error, .cases = CASES });
	} while (again);
	sum_update(b, &s->update);
	if (gf11_own(&s->opt)->agree == AGREE_HOST)
		align(s);
	if (s->t)
		protect_updated(s->t, CASES);
}

static Status epoch_try(Bench *s)
{
	Status status = guarded(&s->cx, epoch_body, s);
	arena_free(&s->cx.scratch);
	return status;
}

static void epochs(Bench *s, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		Status status = epoch_try(s);
		if (status != MP_OK)
			print_error("%s\n", ctx_messages(&s->cx));
		assert_int_equal(status, MP_OK);
	}
}

static uint32_t *dram(const Bench *s, uint32_t word, uint32_t proc)
{
	return s->b->p->dram + (size_t)word * s->b->p->lanes + proc;
}

/* Weights and rule state of every processor, as bits. */
static void same_bits(const Bench *a, const Bench *b)
{
	for (uint64_t i = 0; i < a->b->net->links; i++) {
		SumHome home = sum_home(a->b, a->b->place[i]);
		for (uint32_t proc = 0; proc < a->way.procs; proc++) {
			uint32_t at = a->b->at.weights + a->b->place[i];
			assert_int_equal(*dram(a, at, proc), *dram(b, at, proc));
			if (home.everywhere || home.proc == proc)
				assert_int_equal(*dram(a, state_word(&home, 0), proc), *dram(b, state_word(&home, 0), proc));
		}
		if (!home.everywhere)
			assert_int_equal(*dram(a, home.weight, home.proc), *dram(b, home.weight, home.proc));
	}
}

/* As it was before the first epoch. */
static void bench_again(Bench *s)
{
	const Bp *b = s->b;
	double *w = calloc(b->net->links, sizeof *w);
	for (uint32_t k = 0; k <= state_count(b); k++)
		bp_weights_write(s->b, k ? (int)k + 1 : 0, w);
	net_weights(b->net, 1, 0, ALL_LINKS, w);
	bp_weights_write(s->b, 0, w);
	free(w);
	s->guard = (Guard){ 0 };
	memset(s->t->state, COPY_NONE, sizeof s->t->state);
	s->t->begun = s->t->older_tried = false;
	s->t->tries = s->t->newest = 0;
}

/* Every summation method, both compilers, some numbers of processors; one machine has a ring alone. */
static const Way ways[] = {
	{ SUM_TREE, COMPILER_1989, 6, NULL },
	{ SUM_TREE, COMPILER_BEST, 8, NULL },
	{ SUM_RING, COMPILER_1989, 5, NULL },
	{ SUM_PIPELINED, COMPILER_1989, 7, NULL },
	{ SUM_HALVING, COMPILER_1989, 8, NULL },
	{ SUM_HALVING, COMPILER_BEST, 11, NULL },
	{ SUM_PIPELINED, COMPILER_BEST, 5, "gf11-ring" },
	{ SUM_TREE, COMPILER_1989, 1, NULL },
	{ SUM_TREE, COMPILER_BEST, 2, NULL },
	{ SUM_HALVING, COMPILER_1989, 3, NULL },
};

/* ---- checksums ---- */

static uint32_t turn(uint32_t *word, uint32_t words, Dice *d, uint32_t bits)
{
	uint32_t turned = 0;
	for (; turned < bits; turned++) {
		uint32_t at = roll(d, words);
		word[at] ^= 1u << roll(d, 32);
	}
	return turned;
}

/* Two wrong bits that x does not see, in words of any number; then any one to three. */
static void sums_find_three_bits(void **state)
{
	(void)state;
	Dice d = { 3, 0 };
	enum { WORDS = 40 };
	uint32_t word[WORDS], *most = calloc(MOST_SUMMED, sizeof *most);
	for (uint32_t i = 0; i < WORDS; i++)
		word[i] = roll(&d, UINT32_MAX);
	SumPair right = sums_of(word, WORDS);
	for (uint32_t k = 0; k < WORDS; k++)
		for (uint32_t l = 0; l < k; l++)
			for (uint32_t bit = 0; bit < 32; bit++) {
				word[k] ^= 1u << bit;
				word[l] ^= 1u << bit;
				SumPair s = sums_of(word, WORDS);
				assert_true(s.x == right.x && s.b != right.b);
				word[k] ^= 1u << bit;
				word[l] ^= 1u << bit;
			}
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t wrong[WORDS];
		memcpy(wrong, word, sizeof wrong);
		turn(wrong, WORDS, &d, 1 + i % 3);
		SumPair s = sums_of(wrong, WORDS);
		assert_true(memcmp(wrong, word, sizeof wrong) == 0 || s.x != right.x || s.b != right.b);
	}
	for (uint32_t i = 0; i < 2000; i++) { /* far apart: the largest numbers there are */
		uint32_t k = roll(&d, MOST_SUMMED), l = roll(&d, MOST_SUMMED), bit = i % 32;
		most[k] ^= 1u << bit;
		most[l] ^= 1u << bit;
		SumPair s = sums_of(most, MOST_SUMMED);
		assert_true(k == l || s.b != 0);
		most[k] = most[l] = 0;
	}
	free(most);
}

/* Word of case i that is its j-th. */
static uint32_t case_word(const Bench *s, uint64_t i, uint32_t j)
{
	const Layout *at = &s->b->at;
	uint64_t slot = i / s->way.procs;
	return at->data +
	       (uint32_t)(slot / at->data_side * at->data_words + slot % at->data_side + (uint64_t)j * at->data_step);
}

/* 100 of 100: one to three wrong bits of one case are found at the next check, by processor and number, and the run
 * goes on as if nothing had been. */
static void data_faults_are_found(void **state)
{
	(void)state;
	static const char *const option[][2] = { { "data-check", "1" }, { NULL, NULL } };
	uint32_t found = 0;
	for (size_t w = 0; w < COUNT(ways); w++) {
		Bench *clean = bench_open(&ways[w], NULL), *s = bench_open(&ways[w], option);
		Dice d = { w + 1, 0 };
		epochs(clean, 11);
		epochs(s, 1);
		for (uint32_t i = 0; i < 10; i++) {
			uint32_t number = roll(&d, CASES), proc = number % s->way.procs, bits = 1 + roll(&d, 3);
			uint32_t all = 32 * layout_data(s->b), first = roll(&d, all), next = i % 3 ? 1 + roll(&d, all / 3) : 32;
			uint64_t before = s->guard.bad_cases;
			for (uint32_t k = 0; k < bits; k++) {
				uint32_t bit = (first + k * next) % all;
				*dram(s, case_word(s, number, bit / 32), proc) ^= 1u << bit % 32;
			}
			epochs(s, 1);
			char says[80];
			snprintf(says, sizeof says, "processor %u: the checksum of case %u did not match", proc, number);
			expect_words(ctx_messages(&s->cx), says);
			found += s->guard.bad_cases == before + 1;
			messages_drop(&s->cx, 0);
			s->guard.notes = 0;
		}
		same_bits(clean, s);
		bench_close(clean);
		bench_close(s);
	}
	assert_int_equal(found, 100);
}

/* Wrong bits among the checksums, in the tables and in values sent by the host: corrected as well. */
static void other_words_are_put_right(void **state)
{
	(void)state;
	static const char *const option[][2] = { { "data-check", "1" }, { NULL, NULL } };
	Bench *clean = bench_open(&ways[0], NULL), *s = bench_open(&ways[0], option);
	epochs(clean, 4);
	epochs(s, 1);
	*dram(s, s->t->data.sums + EXPECTED_B, 3) ^= 1u << 7;
	epochs(s, 1);
	assert_int_equal(s->guard.bad_cases, 1);
	s->b->p->sram[(size_t)(TABLE_POWER + 17) * s->b->p->lanes + 2] ^= 1u << 22;
	s->b->p->sram[(size_t)(SUM_WORDS_AT + WORD_SELF) * s->b->p->lanes + 4] ^= 1;
	epochs(s, 1);
	assert_int_equal(s->guard.bad_tables, 1);
	expect_words(ctx_messages(&s->cx), "processor 2: the checksum of its tables did not match");
	epochs(s, 1);
	assert_int_equal(s->guard.bad_cases, 1);
	same_bits(clean, s);
	bench_close(clean);
	bench_close(s);
}

/* ---- copies ---- */

static const char *const places[] = { "own", "spread" };

static void scribble(const Bench *s, Dice *d)
{
	const Bp *b = s->b;
	for (uint64_t i = 0; i < b->net->links; i++)
		for (uint32_t proc = 0; proc < s->way.procs; proc++) {
			SumHome home = sum_home(b, b->place[i]);
			*dram(s, b->at.weights + b->place[i], proc) = roll(d, UINT32_MAX);
			*dram(s, state_word(&home, 0), proc) = roll(d, UINT32_MAX);
			if (!home.everywhere)
				*dram(s, home.weight, proc) = roll(d, UINT32_MAX);
		}
}

typedef struct Restoring {
	Bench *s;
	uint32_t copy;
	bool fine;
} Restoring;

static void save_body(Ctx *cx, void *arg)
{
	(void)cx;
	copy_save(((Restoring *)arg)->s->t, ((Restoring *)arg)->copy);
}

static void restore_body(Ctx *cx, void *arg)
{
	Restoring *r = arg;
	(void)cx;
	r->fine = copy_restore(r->s->t, r->copy);
}

/* Three epochs, a copy, nonsense over all that was copied, the copy back, and one epoch more. */
static void there_and_back(Bench *s, Dice *d, bool wrong_bit)
{
	Restoring r = { s, 1, false };
	bench_again(s);
	epochs(s, 3);
	assert_int_equal(guarded(&s->cx, save_body, &r), MP_OK);
	scribble(s, d);
	if (wrong_bit)
		*dram(s, s->t->place[1] + s->t->region[0].copy + roll(d, 4), roll(d, s->way.procs)) ^= 1u << 30;
	assert_int_equal(guarded(&s->cx, restore_body, &r), MP_OK);
	assert_true(r.fine || wrong_bit);
	if (r.fine)
		epochs(s, 1);
	else
		assert_true(s->t->spread || s->way.procs == 1);
}

/* A wrong bit in one processor's copy is outvoted where there are others, or found. */
static void copies_come_back(void **state)
{
	(void)state;
	for (size_t w = 0; w < COUNT(ways); w++) {
		Bench *clean = bench_open(&ways[w], NULL);
		Dice d = { w + 1, 0 };
		epochs(clean, 4);
		for (size_t i = 0; i < COUNT(places); i++) {
			const char *const option[][2] = { { "memory-checkpoint", "1000" },
				                              { "checkpoint-place", places[i] },
				                              { NULL, NULL } };
			Bench *s = bench_open(&ways[w], option);
			there_and_back(s, &d, true);
			if (!s->t->spread && ways[w].procs > 1)
				same_bits(clean, s);
			there_and_back(s, &d, false);
			same_bits(clean, s);
			bench_close(s);
		}
		bench_close(clean);
	}
}

/* A run that is rolled back once learns as one that is younger by the epochs lost. */
static void only_the_epochs_since_are_lost(void **state)
{
	(void)state;
	static const char *const option[][2] = { { "memory-checkpoint", "4" }, { NULL, NULL } };
	for (size_t w = 0; w < COUNT(ways); w++) {
		Bench *clean = bench_open(&ways[w], NULL), *s = bench_open(&ways[w], option);
		epochs(s, 7);
		for (uint32_t i = 0; i < s->b->at.words; i++)
			for (uint32_t proc = 0; proc < s->way.procs; proc++)
				*dram(s, s->b->at.weights + i, proc) ^= 0x40000000;
		epochs(s, 8);
		assert_int_equal(s->guard.rollbacks, 1);
		expect_words(ctx_messages(&s->cx), "epoch 8: the error");
		epochs(clean, 4 + 8);
		same_bits(clean, s);
		bench_close(clean);
		bench_close(s);
	}
}

/* A jump that is learning's own comes again after the rollback, and is accepted; one that stays without number ends
 * it. */
static void jumps_of_learning_are_accepted(void **state)
{
	(void)state;
	static const char *const option[][2] = { { "memory-checkpoint", "1000" }, { "jump", "1.01" }, { NULL, NULL } };
	Bench *s = bench_open(&ways[0], option);
	s->update.param[P_RATE] = 4;
	epochs(s, 12);
	assert_true(s->guard.rollbacks > 0 && s->guard.accepted > 0);
	bench_close(s);
	s = bench_open(&ways[0], option);
	epochs(s, 2);
	s->update.param[P_RATE] = NAN;
	Status status = MP_OK;
	for (uint32_t i = 0; i < 30 && status == MP_OK; i++)
		status = epoch_try(s);
	assert_int_equal(status, MP_FAILED);
	expect_words(ctx_messages(&s->cx), "is not finite in epoch");
	expect_words(ctx_messages(&s->cx), "recurred after");
	bench_close(s);
}

/* ---- weights that are wrong ---- */

/* Any bit of any weight, as its owner has it if it has one, or of its rule state, of any processor. */
static void bit_turn(const Bench *s, Dice *d, uint32_t n)
{
	uint32_t bit = n % 3 ? roll(d, 32) : 23 + roll(d, 8), place = s->b->place[roll(d, (uint32_t)s->b->net->links)];
	SumHome home = sum_home(s->b, place);
	uint32_t at = n % 4 == 0 ? state_word(&home, 0) : home.everywhere ? s->b->at.weights + place : home.weight;
	*dram(s, at, home.everywhere ? roll(d, s->way.procs) : home.proc) ^= 1u << bit;
}

/* 100 of 100, half of them with averages, half with copies alone. */
static void weight_faults_are_survived(void **state)
{
	(void)state;
	static const char *const option[][4][2] = {
		{ { "memory-checkpoint", "3" }, { "agree", "average" }, { "average-every", "1" }, { NULL, NULL } },
		{ { "memory-checkpoint", "3" }, { NULL, NULL } },
	};
	double worst = 0;
	uint32_t survived = 0, rollbacks = 0;
	for (uint32_t k = 0; k < 10; k++) {
		Bench *s = bench_open(&ways[k / 2], option[k % 2]);
		epochs(s, EPOCHS);
		double clean = s->error;
		for (uint32_t n = 0; n < 10; n++) {
			Dice d = { 100 + 10 * k + n, 0 };
			uint32_t when = 2 + roll(&d, EPOCHS - 12);
			bench_again(s);
			epochs(s, when);
			bit_turn(s, &d, n);
			epochs(s, EPOCHS - when);
			double off = s->error / clean - 1;
			worst = off > worst ? off : worst;
			survived += off <= 0.1;
			rollbacks += (uint32_t)s->guard.rollbacks;
			if (!(off <= 0.1))
				print_error("%u: epoch %u, error %g, clean %g\n", 10 * k + n, when, s->error, clean);
		}
		bench_close(s);
	}
	if (getenv("MICROPROP_LOUD"))
		print_message("%u of 100 survived, %u rollbacks, worst error %g above the clean one\n", survived, rollbacks,
		              worst);
	assert_int_equal(survived, 100);
	assert_true(rollbacks > 0);
}

/* ---- agreement ---- */

static void drift_shows_and_goes(void **state)
{
	(void)state;
	static const char *const never[][2] = { { "agree", "never" }, { NULL, NULL } };
	static const char *const average[][2] = { { "agree", "average" }, { "average-every", "5" }, { NULL, NULL } };
	for (size_t w = 0; w < COUNT(ways); w++) {
		const Way *way = &ways[w];
		Bench *a = bench_open(way, never), *b = bench_open(way, average);
		bool apart = sum_home(a->b, 0).everywhere && way->procs > 2;
		epochs(a, 10);
		epochs(b, 10);
		Drift free_drift = protect_drift(a->b), held = protect_drift(b->b);
		assert_true(apart ? free_drift.largest > 0 && free_drift.mean > 0 : free_drift.largest == 0);
		assert_true(held.largest == 0 && held.mean == 0);
		assert_int_equal(b->guard.averages, 2);
		assert_int_equal(b->guard.unreasonable, 0);
		epochs(b, 1);
		held = protect_drift(b->b);
		assert_true(apart ? held.largest > 0 : held.largest == 0);
		assert_true(fabs(a->error - b->error) <= 1e-2 * a->error);
		if (!apart) { /* no copy differs, so no bit does */
			epochs(a, 1);
			same_bits(a, b);
		}
		bench_close(a);
		bench_close(b);
	}
}

/* One processor with nonsense does not move the mean, whichever it is. */
static void nonsense_takes_no_part(void **state)
{
	(void)state;
	static const char *const option[][2] = { { "agree", "average" }, { "average-every", "1000" }, { NULL, NULL } };
	static const float nonsense[] = { NAN, INFINITY, -1e38f, 1e20f, 7, 0 };
	const Way *way = &ways[0];
	Bench *s = bench_open(way, option);
	epochs(s, 3);
	align(s);
	uint32_t at = s->b->at.weights + s->b->place[5], right = *dram(s, at, 0);
	for (uint32_t proc = 0; proc < way->procs; proc++)
		for (size_t i = 0; i < COUNT(nonsense); i++) {
			*dram(s, at, proc) = (Cell){ .f = nonsense[i] }.u;
			average_all(s->t);
			for (uint32_t k = 0; k < way->procs; k++)
				assert_int_equal(*dram(s, at, k), right);
		}
	assert_true(s->guard.unreasonable >= way->procs * (COUNT(nonsense) - 1));
	bench_close(s);
}

/* ---- nothing is wrong ---- */

static void nothing_changes_where_nothing_is_wrong(void **state)
{
	(void)state;
	for (size_t w = 0; w < COUNT(ways); w++) {
		Bench *a = bench_open(&ways[w], NULL);
		epochs(a, 5);
		for (size_t i = 0; i < COUNT(places); i++) {
			const char *const all[][2] = {
				{ "data-check", "2" }, { "memory-checkpoint", "2" }, { "checkpoint-place", places[i] }, { NULL, NULL }
			};
			Bench *b = bench_open(&ways[w], all);
			epochs(b, 5);
			same_bits(a, b);
			assert_int_equal(b->guard.rollbacks + b->guard.bad_cases + b->guard.bad_tables, 0);
			assert_int_equal(b->guard.checks, 2);
			assert_int_equal(b->guard.copies, 3);
			assert_true(bp_cycles(b->b) == bp_cycles(a->b) + b->guard.cycles);
			bench_close(b);
		}
		bench_close(a);
	}
}

/* ---- memory of an earlier run ---- */

static mp_run *run_with(const mp_net *net, const mp_data *data, const char *memory)
{
	static const char *const option[][2] = {
		{ "target", "gf11" }, { "procs", "6" }, { "epochs", "3" }, { "until", "never" }
	};
	mp_run *run = run_of(net);
	for (size_t i = 0; i < COUNT(option); i++)
		need(run, mp_run_set(run, option[i][0], option[i][1]));
	if (memory)
		need(run, mp_run_set(run, "machine-memory", memory));
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	return run;
}

static void expect_reuse(const mp_net *net, const mp_data *data, const char *memory, const char *says, char *print)
{
	mp_run *run = run_with(net, data, memory);
	if (says)
		expect_words(mp_run_messages(run), says);
	if (*print)
		assert_string_equal(mp_run_get_report(run)->fingerprint, print);
	snprintf(print, 40, "%s", mp_run_get_report(run)->fingerprint);
	mp_run_close(run);
}

static void data_of_an_earlier_run_is_used(void **state)
{
	(void)state;
	mp_net *net = net_of(toy);
	mp_data *data, *other;
	float x[CASES * 10], y[CASES * 4];
	for (uint32_t i = 0; i < COUNT(x); i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i);
	for (uint32_t i = 0; i < COUNT(y); i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	assert_int_equal(mp_data_new(&data, CASES, 10, 4, x, y, NULL, 0, NULL), MP_OK);
	x[10 * 17 + 3] += 1;
	y[4 * 31 + 1] = 0.25f;
	assert_int_equal(mp_data_new(&other, CASES, 10, 4, x, y, NULL, 0, NULL), MP_OK);
	char path[600], print[40] = "", different[40] = "";
	snprintf(path, sizeof path, "%s", in_folder("memory"));
	unlink(path);
	expect_reuse(net, data, NULL, NULL, print);
	expect_reuse(net, data, path, "0 of 50 cases were there already, 50 were loaded", print);
	expect_reuse(net, data, path, "50 of 50 cases were there already, 0 were loaded", print);
	expect_reuse(net, other, NULL, NULL, different);
	expect_reuse(net, other, path, "48 of 50 cases were there already, 2 were loaded", different);
	FILE *f = fopen(path, "r+b"); /* another user's program */
	assert_non_null(f);
	fseek(f, sysconf(_SC_PAGESIZE) + 128, SEEK_SET);
	fputs("nothing of interest", f);
	fclose(f);
	expect_reuse(net, other, path, "of 50 cases were there already", different);
	expect_reuse(net, other, path, "50 of 50 cases were there already, 0 were loaded", different);
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "gf11"));
	need(run, mp_run_set(run, "machine-memory", "/nowhere/memory"));
	assert_int_equal(mp_run_train(run, data, NULL, NULL, NULL), MP_BAD_INPUT);
	expect_words(mp_run_messages(run), "/nowhere/memory");
	mp_run_close(run);
	f = fopen(path, "wb"); /* not memory of a machine: it stays unchanged */
	fputs("a letter to a friend, longer than the line that memory of a machine begins with\n", f);
	fclose(f);
	run = run_of(net);
	need(run, mp_run_set(run, "target", "gf11"));
	need(run, mp_run_set(run, "machine-memory", path));
	assert_int_equal(mp_run_train(run, data, NULL, NULL, NULL), MP_BAD_INPUT);
	expect_words(mp_run_messages(run), "holds something else");
	mp_run_close(run);
	mp_data_close(data);
	mp_data_close(other);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_find_three_bits),
		cmocka_unit_test(data_faults_are_found),
		cmocka_unit_test(other_words_are_put_right),
		cmocka_unit_test(copies_come_back),
		cmocka_unit_test(only_the_epochs_since_are_lost),
		cmocka_unit_test(jumps_of_learning_are_accepted),
		cmocka_unit_test(weight_faults_are_survived),
		cmocka_unit_test(drift_shows_and_goes),
		cmocka_unit_test(nonsense_takes_no_part),
		cmocka_unit_test(nothing_changes_where_nothing_is_wrong),
		cmocka_unit_test_setup_teardown(data_of_an_earlier_run_is_used, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
