/* SPDX-License-Identifier: MIT */
/* The update on the GF11: weights, rule state and changes of every processor against plain C that adds in the same
 * order, bit for bit, for every summation method and many numbers of processors; twice, so that an update can use the
 * state of the previous one. Rules that divide or take roots: within NEAR, since the machine has neither operation. */
#include <math.h>

#include "test.h"

#include "gf11_sum.h"

enum { MOST_PROCS = 64, MOST_WORDS = 404, EPOCHS = 2 };
#define NEAR 4e-6f

/* ---- models: the total of weight change w in processor p ---- */

typedef float Array[MOST_PROCS][MOST_WORDS];
typedef struct World {
	uint32_t procs, words;
	Array change, state[MAX_STATE], weight, total;
	uint32_t caught[MOST_PROCS][MOST_WORDS];
	float factor[MOST_WORDS]; /* less than zero: frozen */
} World;
static World world;

static void total_ring(uint32_t w)
{
	uint32_t n = world.procs;
	for (uint32_t p = 0; p < n; p++) {
		float sum = world.change[p][w];
		for (uint32_t k = 1; k < n; k++)
			sum += world.change[(p + n - k) % n][w];
		world.total[p][w] = sum;
	}
}

static void total_tree(uint32_t w)
{
	uint32_t n = world.procs, power = 1;
	while (2 * power <= n)
		power *= 2;
	float sum[MOST_PROCS], next[MOST_PROCS];
	for (uint32_t p = 0; p < power; p++)
		sum[p] = power + p < n ? world.change[p][w] + world.change[power + p][w] : world.change[p][w];
	for (uint32_t step = 1; step < power; step *= 2) {
		for (uint32_t p = 0; p < power; p++)
			next[p] = sum[p] + sum[(p + power - step) % power];
		memcpy(sum, next, sizeof sum);
	}
	for (uint32_t p = 0; p < n; p++)
		world.total[p][w] = sum[p % power];
}

/* All processors get the total that the one owner computes; slot: which of its block the word is. */
static void total_pipelined(uint32_t w, uint32_t slot)
{
	float sum = world.change[slot][w];
	for (uint32_t k = 1; k < world.procs; k++)
		sum += world.change[(slot + k) % world.procs][w];
	for (uint32_t p = 0; p < world.procs; p++)
		world.total[p][w] = sum;
}

/* At each level the words of the upper half go to the processor that sums them further. */
static void total_halving(uint32_t w, uint32_t slot)
{
	uint32_t n = world.procs;
	float sum[MOST_PROCS];
	bool select = (n & (n - 1)) == 0;
	for (uint32_t p = 0; p < n; p++)
		sum[p] = world.change[p][w];
	for (uint32_t size = n, half; size > 1; size = half) {
		half = (size + 1) / 2;
		for (uint32_t p = 0; p < n; p++) {
			uint32_t i = (slot + n - p) % n, to = select ? p ^ half : (p + half) % n;
			bool has = select ? ((p ^ slot) & ~(size - 1)) == 0 : i < size;
			bool sends = select ? (p ^ slot) & half : i >= half;
			if (has && sends)
				sum[to] += sum[p];
		}
	}
	for (uint32_t p = 0; p < n; p++)
		world.total[p][w] = sum[slot];
}

static void totals(const Bp *b)
{
	for (uint32_t w = 0; w < world.words; w++) {
		SumHome home = sum_home(b, w);
		if (b->o.sum == SUM_RING || (home.everywhere && b->m->ring_only))
			total_ring(w);
		else if (home.everywhere)
			total_tree(w);
		else if (b->o.sum == SUM_PIPELINED)
			total_pipelined(w, (home.proc + 1) % world.procs);
		else
			total_halving(w, home.proc);
	}
}

/* ---- the rule, by its formula ---- */

/* Numbers of the update alone stay as they are; all else is rounded to float, product and sum of an fma each. */
typedef struct Number {
	double v;
	bool uniform;
} Number;

static double operation(const Op *o, double a, double b, double c)
{
	switch (o->op) {
	case OP_ADD: return a + b;
	case OP_SUB: return a - b;
	case OP_MUL: return a * b;
	case OP_DIV: return a / b;
	case OP_FMA: return (float)(a * b) + c;
	case OP_NEG: return -a;
	case OP_ABS: return fabs(a);
	case OP_SQRT: return sqrt(a);
	case OP_MIN: return a < b ? a : b;
	case OP_MAX: return a > b ? a : b;
	case OP_LT: return a < b;
	case OP_LE: return a <= b;
	default: return a != 0 ? b : c;
	}
}

static Number number(const Op *o, const Number *done)
{
	bool takes[] = { true, o->op != OP_NEG && o->op != OP_ABS && o->op != OP_SQRT,
		             o->op == OP_FMA || o->op == OP_SELECT };
	Number in[] = { done[o->a], done[takes[1] ? o->b : 0], done[takes[2] ? o->c : 0] };
	bool uniform = in[0].uniform && (!takes[1] || in[1].uniform) && (!takes[2] || in[2].uniform);
	for (int k = 0; k < 3 && !uniform; k++)
		in[k].v = (float)in[k].v;
	double v = operation(o, in[0].v, in[1].v, in[2].v);
	return (Number){ uniform ? v : (float)v, uniform };
}

/* variable: of the weight, as the formula counts; new values take their places. */
static void expected_update(const Formula *f, const Update *u, float factor, bool decays, float *variable)
{
	Number done[MAX_OPS];
	float new[2 + MAX_STATE];
	memcpy(new, variable, sizeof new);
	for (uint32_t i = 0; i < f->ops; i++) {
		const Op *o = &f->op[i];
		bool rate = o->op == OP_PARAM && o->a == P_RATE && factor != 1,
			 fall = o->op == OP_FMA && f->op[o->a].op == OP_PARAM && f->op[o->a].a == P_DECAY;
		if (o->op == OP_CONST)
			done[i] = (Number){ o->value, true };
		else if (o->op == OP_PARAM)
			done[i] = (Number){ rate ? (float)u->param[P_RATE] * factor : u->param[o->a], !rate };
		else if (o->op == OP_LOAD)
			done[i] = (Number){ variable[o->a], false };
		else if (o->op == OP_STORE)
			new[o->a] = (float)done[o->b].v;
		else
			done[i] = fall && !decays ? done[o->c] : number(o, done);
	}
	memcpy(variable, new, sizeof new);
}

/* Each processor checks the totals that it updates by. */
static void world_check(const Bp *b)
{
	for (uint32_t w = 0; w < world.words && b->range > 0; w++) {
		SumHome home = sum_home(b, w);
		for (uint32_t p = 0; p < world.procs; p++) {
			bool inside = fabsf(world.total[p][w]) <= b->range;
			world.caught[p][w] += !inside && (home.everywhere || home.proc == p);
			world.total[p][w] = inside ? world.total[p][w] : 0;
			assert_int_equal(range_count(b->log, p, w), world.caught[p][w]);
		}
	}
}

static void world_update(const Bp *b, const Formula *f, const Update *u)
{
	totals(b);
	world_check(b);
	for (uint32_t p = 0; p < world.procs; p++)
		for (uint32_t w = 0; w < world.words; w++) {
			float v[2 + MAX_STATE] = { world.total[p][w], world.weight[p][w] };
			for (int k = 0; k < b->rule->states; k++)
				v[2 + k] = world.state[k][p][w];
			world.change[p][w] = b->changes_start ? world.change[p][w] : 0;
			if (world.factor[w] < 0)
				continue;
			expected_update(f, u, world.factor[w], b->decay > 0, v);
			world.weight[p][w] = v[1];
			for (int k = 0; k < b->rule->states; k++)
				world.state[k][p][w] = v[2 + k];
		}
}

/* ---- memory ---- */

/* Splitmix64: the library's own generator takes longer than all the rest here. */
static float any(uint64_t number)
{
	uint64_t z = (number + 1) * 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (float)(z >> 40) * 0x1p-22f - 2;
}

static void world_fill(uint32_t procs, uint32_t words)
{
	world.procs = procs;
	world.words = words;
	for (uint32_t p = 0; p < procs; p++)
		for (uint32_t w = 0; w < words; w++) {
			world.weight[p][w] = any(2 * w);
			for (int k = 0; k < MAX_STATE; k++)
				world.state[k][p][w] =
					fabsf(any(2 * w + 1 + (uint64_t)k * MOST_WORDS)) - (k == 0 && w % 3 == 0 ? 2 : 0);
		}
}

/* spoilt: what a broken processor might make of some of its changes; 0 is as good as any. */
static void changes_fill(uint64_t epoch, float spoilt)
{
	for (uint32_t p = 0; p < world.procs; p++)
		for (uint32_t w = 0; w < world.words; w++)
			world.change[p][w] = (w + epoch) % 29 == 7 && p == 0 ? spoilt : any((epoch + 1) << 32 | p << 16 | w);
}

static Cell *dram(const Bp *b, uint32_t word, uint32_t proc)
{
	return (Cell *)b->p->dram + (size_t)word * b->p->lanes + proc;
}

static void weights_put(const Bp *b)
{
	for (uint32_t p = 0; p < world.procs; p++)
		for (uint32_t w = 0; w < world.words; w++) {
			SumHome home = sum_home(b, w);
			dram(b, b->at.weights + w, p)->f = world.weight[p][w];
			if (home.everywhere || home.proc == p)
				for (int k = 0; k < b->rule->states; k++)
					dram(b, home.state[k], p)->f = world.state[k][p][w];
			if (!home.everywhere && home.proc == p)
				dram(b, home.weight, p)->f = world.weight[p][w];
		}
}

static void changes_put(const Bp *b)
{
	for (uint32_t p = 0; p < world.procs; p++)
		for (uint32_t w = 0; w < world.words; w++)
			dram(b, b->at.changes + w, p)->f = world.change[p][w];
}

static void same(const Bp *b, const char *what, uint32_t word, uint32_t proc, float should)
{
	Cell found = *dram(b, word, proc), want = { .f = should };
	bool rounds = strchr(b->rule->formula, '/') || strstr(b->rule->formula, "sqrt");
	if (found.u == want.u || (rounds && fabsf(found.f - want.f) <= NEAR * (1 + fabsf(want.f))))
		return;
	print_error("%s, %s, %s, %u processors, %u weights: %s in word %u of processor %u is %g, should be %g\n",
	            b->rule->name, sum_names[b->o.sum], compiler_names[b->o.compiler], world.procs, world.words, what, word,
	            proc, (double)found.f, (double)want.f);
	assert_true(false);
}

static void world_compare(const Bp *b)
{
	for (uint32_t p = 0; p < world.procs; p++)
		for (uint32_t w = 0; w < world.words; w++) {
			SumHome home = sum_home(b, w);
			same(b, "weight", b->at.weights + w, p, world.weight[p][w]);
			same(b, "change", b->at.changes + w, p, world.change[p][w]);
			if (home.everywhere || home.proc == p)
				for (int k = 0; k < b->rule->states; k++)
					same(b, b->rule->state[k], home.state[k], p, world.state[k][p][w]);
		}
	for (uint32_t p = 0; p < world.procs; p++) /* nothing is written beside the arrays */
		for (uint32_t k = 0; k < 4; k++) {
			same(b, "word before", b->at.weights - 1 - k, p, 0);
			same(b, "word after", b->at.dram_end + k, p, 0);
		}
}

/* ---- networks without units: only what an update needs ---- */

/* kinds: of factors, and 0 if all are 1; from the third on it is less than zero */
typedef struct Try {
	const Machine *m;
	uint32_t procs, words, scratch, kinds;
	BpOptions o;
	bool changes_start;
	float decay, range;
	int64_t rule;
} Try;

static void factors_fill(const Try *t)
{
	static const float some[] = { 1, 0.5f, -1, 0 };
	for (uint32_t w = 0; w < t->words; w++)
		world.factor[w] = t->kinds ? some[w * 7 / 3 % t->kinds] : 1;
}

static Bp *bp_make(Ctx *cx, const Try *t)
{
	Bp *b = NEW(&cx->keep, 1, Bp);
	*b = (Bp){ .cx = cx,
		       .o = t->o,
		       .m = t->m,
		       .changes_start = t->changes_start,
		       .decay = t->decay,
		       .range = t->range,
		       .rule = &rules[t->rule],
		       .factor = t->kinds ? world.factor : NULL };
	b->o.procs = t->procs;
	b->sw = switch_new(cx, t->m);
	b->p = processors_new(cx, t->m, b->sw, t->procs, t->o.threads);
	if (t->o.port)
		processors_map(cx, b->p, t->o.port);
	b->c = controller_new(cx, b->p);
	b->c->traced = t->o.traced;
	b->cache = schedule_cache_new(cx);
	uint32_t scratch = t->scratch ? t->scratch : MIN_SCRATCH, gap = 8;
	b->at = (Layout){ .scratch = TABLE_WORDS + 4,
		              .scratch_words = scratch,
		              .words = t->words,
		              .cases = TABLE_WORDS + 4 + scratch,
		              .case_words = 5,
		              .group = 3,
		              .stride = 1,
		              .case_step = 5,
		              .spill = 16384 - SPILL_WORDS };
	b->at.weights = gap;
	b->at.changes = gap + t->words;
	b->at.states = gap + 2 * t->words;
	b->at.factors = gap + (2 + (uint32_t)b->rule->states) * t->words;
	b->at.dram_end = gap + (uint32_t)layout_arrays(b) * t->words;
	Cell table[TABLE_WORDS];
	tables_fill(table);
	for (uint32_t p = 0; p < t->procs; p++)
		host_write(b->c, p, false, 0, table, TABLE_WORDS);
	sum_compile(b);
	return b;
}

static void true_units(const Bp *b, bool put)
{
	for (uint32_t i = 0; i < b->at.group; i++)
		for (uint32_t p = 0; p < b->o.procs; p++) {
			Cell *out = (Cell *)b->p->sram + (size_t)(b->at.cases + i * b->at.case_step) * b->p->lanes + p;
			if (put)
				out->f = 1;
			assert_true(out->f == 1);
		}
}

static void try_updates(Ctx *cx, void *arg)
{
	const Try *t = arg;
	Options o;
	Formula f;
	factors_fill(t);
	Bp *b = bp_make(cx, t);
	options_init(&o, DEFAULTS_1989);
	o.rule = t->rule;
	o.decay = (double)t->decay;
	formula_parse(cx, b->rule, &f);
	world_fill(t->procs, t->words);
	memset(world.caught, 0, sizeof world.caught);
	weights_put(b);
	true_units(b, true);
	for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
		Update u;
		o.rate = 0.1 / (epoch + 1);
		update_fill(&o, epoch + 1, 0, 0, &u);
		changes_fill(epoch, t->range > 0 ? (epoch ? NAN : 1e30f) : 0);
		changes_put(b);
		uint64_t before = b->c->account.cycles;
		sum_update(b, &u);
		assert_int_equal(b->c->account.cycles - before, b->cycles_update / (epoch + 1));
		world_update(b, &f, &u);
		world_compare(b);
		true_units(b, false);
	}
	for (uint32_t i = 0; i < b->c->routines; i++)
		assert_true(b->c->routine[i]->report.checked);
}

static void try_one(Ctx *cx, Try t)
{
	t.o.threads = t.o.threads ? t.o.threads : 1;
	Status status = guarded(cx, try_updates, &t);
	if (status)
		print_error("%s\n", ctx_messages(cx));
	assert_int_equal(status, MP_OK);
}

static void open_machine(Ctx *cx, void *arg) { *(const Machine **)arg = machine_open(cx, "gf11"); }

/* With a context of its own for each, so that memory goes. */
static void try_with(Try t, const Machine *change)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m;
	const Machine *made = NULL;
	assert_int_equal(guarded(&cx, open_machine, &made), MP_OK);
	m = *made;
	m.block = change && change->block ? change->block : m.block;
	m.switch_latency = change && change->switch_latency ? change->switch_latency : m.switch_latency;
	m.ring_only = change && change->ring_only;
	m.fixed_address = change && change->fixed_address;
	t.m = &m;
	try_one(&cx, t);
	ctx_free(&cx);
}

/* ---- tests ---- */

static const uint32_t procs[] = { 1, 2, 3, 5, 8, 13, 40, 64 };

static void try_all(int sum, int compiler)
{
	for (size_t i = 0; i < COUNT(procs); i++)
		try_with((Try){ .procs = procs[i], .words = 100, .o = { .sum = sum, .compiler = compiler } }, NULL);
}

static void test_ring(void **state)
{
	(void)state;
	try_all(SUM_RING, COMPILER_1989);
}
static void test_tree_1989(void **state)
{
	(void)state;
	try_all(SUM_TREE, COMPILER_1989);
}
static void test_tree_best(void **state)
{
	(void)state;
	try_all(SUM_TREE, COMPILER_BEST);
}
static void test_pipelined(void **state)
{
	(void)state;
	try_all(SUM_PIPELINED, COMPILER_BEST);
}
static void test_halving(void **state)
{
	(void)state;
	try_all(SUM_HALVING, COMPILER_BEST);
}

/* Weights that make one chunk or row, several, or none at all whole; calls as the user wants them. */
static void test_sizes(void **state)
{
	(void)state;
	static const uint32_t words[] = { 4, 36, 100, 404 }, update[] = { 4, 20, 200 };
	for (int sum = 0; sum < SUMS; sum++) {
		for (size_t i = 0; i < COUNT(words); i++)
			try_with((Try){ .procs = 13, .words = words[i], .o = { .sum = sum, .compiler = (int)(i % 2) } }, NULL);
		for (size_t i = 0; i < COUNT(update); i++)
			try_with(
				(Try){ .procs = 12, .words = 212, .o = { .sum = sum, .compiler = (int)(i % 2), .update = update[i] } },
				NULL);
	}
}

/* Backward starts changes at zero: the update leaves them. */
static void test_changes_start(void **state)
{
	(void)state;
	for (int sum = 0; sum < SUMS; sum++)
		try_with(
			(Try){ .procs = 6, .words = 100, .o = { .sum = sum, .compiler = COMPILER_BEST }, .changes_start = true },
			NULL);
}

/* Weights with factors of their own, frozen ones among them, and decay. */
static void test_factors_and_decay(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8 * SUMS; i++)
		try_with((Try){ .procs = procs[i / SUMS],
		                .words = 100 + 4 * (i % 8),
		                .kinds = i / 3 % 5,
		                .decay = i % 2 ? 0.01f : 0,
		                .o = { .sum = (int)(i % SUMS), .compiler = (int)(i / 8 % 2) },
		                .changes_start = i % 5 == 0 },
		         NULL);
	const Machine small = { .block = 1600 };
	for (int sum = 0; sum < SUMS; sum++) {
		try_with((Try){ .procs = 40, .words = 204, .kinds = 4, .decay = 0.01f, .o.sum = sum }, &small);
		try_with((Try){ .procs = 16, .words = 404, .kinds = 3, .o = { .sum = sum, .compiler = COMPILER_BEST } }, NULL);
	}
}

/* Every rule the machine has, every summation method; some with factors, decay and frozen weights, some in short
 * blocks. */
static void test_rules(void **state)
{
	(void)state;
	const Machine small = { .block = 3000 };
	for (uint32_t i = 0; i < rule_count * SUMS * 2; i++) {
		Try t = { .rule = (int64_t)(i / 2 / SUMS),
			      .procs = procs[1 + i * 5 % 6],
			      .words = 100 + 4 * (i % 5),
			      .kinds = (i + i / 8) % 2 ? 0 : 4,
			      .decay = i % 3 ? 0 : 0.01f,
			      .o = { .sum = (int)(i / 2 % SUMS), .compiler = (int)(i % 2) } };
		if (!rules[t.rule].needs_norm)
			try_with(t, i % 7 ? NULL : &small);
	}
}

/* Totals out of range, or no numbers: zero, and counted by processor and weight. */
static void test_range(void **state)
{
	(void)state;
	const Machine small = { .block = 2400 };
	for (uint32_t i = 0; i < 6 * SUMS; i++) {
		Try t = { .rule = i % 5 == 4 ? 3 : 0,
			      .procs = procs[i * 3 % COUNT(procs)],
			      .words = 100 + 24 * (i % 7),
			      .kinds = i % 3 ? 0 : 4,
			      .range = 0.5f * (float)(1 + i % 8),
			      .o = { .sum = (int)(i % SUMS), .compiler = (int)(i / 4 % 2), .traced = i == 9 },
			      .changes_start = i % 2 };
		try_with(t, i % 7 == 5 ? &small : NULL);
	}
}

static void test_threads_and_traced(void **state)
{
	(void)state;
	for (int sum = 0; sum < SUMS; sum++) {
		try_with((Try){ .procs = 64, .words = 72, .o = { .sum = sum, .threads = 2 } }, NULL);
		try_with((Try){ .procs = 7, .words = 68, .o = { .sum = sum, .compiler = COMPILER_BEST, .traced = true } },
		         NULL);
	}
}

/* Any processors of the machine, in any order, do what its first ones do; those of a ring in the order of the ring. */
static void test_scattered(void **state)
{
	(void)state;
	const Machine ring = { .ring_only = 1 };
	uint16_t port[64], rising[9];
	for (uint32_t i = 0; i < COUNT(port); i++)
		port[i] = (uint16_t)(i * 229 % 566);
	for (uint32_t i = 0; i < COUNT(rising); i++)
		rising[i] = (uint16_t)(3 + i * i * 7);
	for (int sum = 0; sum < SUMS; sum++)
		for (size_t i = 0; i < COUNT(procs); i++)
			try_with((Try){ .procs = procs[i],
			                .words = 100,
			                .o = { .sum = sum, .compiler = (int)(i % 2), .port = port, .traced = i == 5 } },
			         NULL);
	try_with((Try){ .procs = 9, .words = 100, .o = { .sum = SUM_RING, .port = rising } }, &ring);
	try_with(
		(Try){ .procs = 9, .words = 100, .o = { .sum = SUM_PIPELINED, .compiler = COMPILER_BEST, .port = rising } },
		&ring);
}

/* Steps of the ring that do not fit in one block of microcode wait in SRAM from call to call. */
static void test_short_blocks(void **state)
{
	(void)state;
	const Machine small = { .block = 1600 };
	const Machine slow = { .block = 1600, .switch_latency = 90 }; /* not even one weight goes round in a block */
	for (int sum = 0; sum < SUMS; sum++)
		try_with((Try){ .procs = 40, .words = 204, .o = { .sum = sum, .compiler = COMPILER_BEST } }, &small);
	try_with((Try){ .procs = 40, .words = 204, .o = { .sum = SUM_RING } }, &slow);
	try_with((Try){ .procs = 7, .words = 204, .o = { .sum = SUM_RING } }, &slow);
}

static void test_ring_only(void **state)
{
	(void)state;
	const Machine ring = { .ring_only = 1 };
	try_with((Try){ .procs = 9, .words = 100, .o = { .sum = SUM_RING } }, &ring);
	try_with((Try){ .procs = 9, .words = 100, .o = { .sum = SUM_PIPELINED, .compiler = COMPILER_BEST } }, &ring);
}

/* Without addresses of its own a processor falls back to the tree, but for the pairs of a power of two. */
static void test_fixed_address(void **state)
{
	(void)state;
	const Machine fixed = { .fixed_address = 1 }, ring = { .fixed_address = 1, .ring_only = 1 };
	for (uint32_t i = 0; i < 2 * SUMS; i++)
		try_with((Try){ .procs = i < SUMS ? 9 : 16,
		                .words = 100,
		                .o = { .sum = (int)(i % SUMS), .compiler = COMPILER_BEST } },
		         &fixed);
	try_with((Try){ .procs = 9, .words = 100, .o = { .sum = SUM_PIPELINED } }, &ring);
}

static void test_steps(void **state)
{
	(void)state;
	assert_int_equal(sum_steps(SUM_RING, 512), 511);
	assert_int_equal(sum_steps(SUM_TREE, 512), 9);
	assert_int_equal(sum_steps(SUM_TREE, 566), 11);
	assert_int_equal(sum_steps(SUM_HALVING, 566), 2);
	for (int sum = 0; sum < SUMS; sum++)
		assert_int_equal(sum_steps(sum, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_tree_1989),
		cmocka_unit_test(test_tree_best),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_halving),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_changes_start),
		cmocka_unit_test(test_factors_and_decay),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_threads_and_traced),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_short_blocks),
		cmocka_unit_test(test_ring_only),
		cmocka_unit_test(test_fixed_address),
		cmocka_unit_test(test_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
