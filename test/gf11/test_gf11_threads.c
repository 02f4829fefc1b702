/* SPDX-License-Identifier: MIT */
/* Threads and the switch: any number of threads gives the bits of one thread and of the traced run, through shifts,
 * exchanges and random configurations, call after call; deferred calls are executed in order. */
#include "test.h"

#include "execute.h"
#include "gf11_short.h"

enum { PROCS = 300, SRAM = 128, DRAM = 64, PORTS = 324, BASES = 4, WORDS = 24, SETS = 4 };
enum { SHIFT_1, SHIFT_64, SHIFT_77, EXCHANGE_1, EXCHANGE_64, RANDOM, SPARSE, CONFIGURATIONS };

/* Five blocks of processors, the last not full. */
static const Machine machine = {
	.name = "switched",
	.processors = PROCS,
	.registers = 256,
	.sram = SRAM,
	.dram = DRAM,
	.conditions = 8,
	.relocations = BASES,
	SHORT_PIPELINES,
	.switch_ports = PORTS,
	.crossbar = 18,
	.configurations = CONFIGURATIONS,
	.microcode = 65536,
	.block = 8192,
	.host_call = 100,
	.host_word = 10,
};

typedef struct Hall {
	Ctx cx;
	Switch *sw;
	Processors *traced, *set[SETS]; /* those of 1, 2, 3 and 5 threads */
} Hall;

static void store_shift(Ctx *cx, Switch *sw, uint32_t by, bool exchange)
{
	uint16_t to[PORTS];
	memset(to, 0xFF, sizeof to); /* NO_ROUTE */
	for (uint32_t i = 0; i < PROCS; i++)
		if (!exchange || (i ^ by) < PROCS)
			to[i] = (uint16_t)(exchange ? i ^ by : (i + by) % PROCS);
	switch_store(cx, sw, to);
}

static void hall_open(Ctx *cx, void *arg)
{
	static const uint32_t threads[SETS] = { 1, 2, 3, 5 };
	Hall *h = arg;
	uint16_t to[PORTS];
	h->sw = switch_new(cx, &machine);
	store_shift(cx, h->sw, 1, false);
	store_shift(cx, h->sw, 64, false);
	store_shift(cx, h->sw, 77, false);
	store_shift(cx, h->sw, 1, true);
	store_shift(cx, h->sw, 64, true);
	permutation_random(1, PORTS, PORTS, to);
	switch_store(cx, h->sw, to);
	permutation_random(2, PORTS, PORTS / 2, to);
	switch_store(cx, h->sw, to);
	h->traced = processors_new(cx, &machine, h->sw, PROCS, 1);
	for (uint32_t i = 0; i < SETS; i++)
		h->set[i] = processors_new(cx, &machine, h->sw, PROCS, threads[i]);
}

static int set_up(void **state)
{
	Hall *h = calloc(1, sizeof *h);
	ctx_init(&h->cx, NULL);
	assert_int_equal(guarded(&h->cx, hall_open, h), MP_OK);
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	Hall *h = *state;
	ctx_free(&h->cx);
	free(h);
	return 0;
}

/* Sums of these round differently in every order, and some are no numbers. */
static void fill(Processors *p)
{
	for (uint32_t w = 0; w < SRAM; w++)
		for (uint32_t i = 0; i < p->lanes; i++) {
			uint32_t n = (w * 7919 + i * 104729) % 65536;
			p->sram[w * p->lanes + i] = n == 13 ? 0x7fa00001 : (Cell){ .f = (float)n / 4099 - 7 }.u;
		}
	memset(p->dram, 0, DRAM * p->lanes * sizeof *p->dram);
}

static void fill_all(Hall *h)
{
	fill(h->traced);
	for (uint32_t i = 0; i < SETS; i++)
		fill(h->set[i]);
}

static bool same(const Processors *p, const Processors *q)
{
	for (uint32_t w = 0; w < SRAM; w++)
		if (memcmp(p->sram + w * p->lanes, q->sram + w * q->lanes, PROCS * sizeof *p->sram))
			return false;
	return true;
}

static void in_context(void (*body)(Ctx *, void *), void *arg)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, body, arg), MP_OK);
	ctx_free(&cx);
}

/* ---- through the switch ---- */

/* WORDS words under base 1 sent through one configuration after the other, each added to what sent it. */
static void make_sums(Gen *g, const uint32_t *configuration, uint32_t count, bool add)
{
	Reg sum[WORDS];
	for (uint32_t i = 0; i < WORDS; i++)
		sum[i] = g_load(g, (Addr){ 1, i });
	for (uint32_t k = 0; k < count; k++)
		for (uint32_t i = 0; i < WORDS; i++) {
			Reg came = g_xfer(g, configuration[k], sum[i]);
			sum[i] = add ? g_fadd(g, sum[i], came) : came;
		}
	for (uint32_t i = 0; i < WORDS; i++)
		g_store(g, (Addr){ 2, i }, sum[i]);
}

static Routine *sums_routine(Ctx *cx, const uint32_t *configuration, uint32_t count, bool add)
{
	Gen *g = gen_record(cx, &machine, "sums");
	make_sums(g, configuration, count, add);
	Routine *r = schedule(cx, &machine, gen_end(g), &(ScheduleOptions){ 0, 0 });
	assert_null(check_routine(cx, &machine, r));
	return r;
}

static const uint32_t there[BASES] = { 0, 0, WORDS, 0 };

static void run_everywhere(Ctx *cx, Hall *h, const Routine *r)
{
	fill_all(h);
	execute_traced(h->traced, r, there, NULL, NULL);
	for (uint32_t i = 0; i < SETS; i++)
		for (uint32_t kernel = 0; kernel < kernel_count; kernel++) {
			if (!kernel_runs(kernel))
				continue;
			const Prepared *q = execute_prepare(cx, h->set[i], r);
			fill(h->set[i]);
			execute_with(h->set[i], q->no_alias, q, there, kernel);
			assert_true(same(h->set[i], h->traced));
			fill(h->set[i]);
			execute_with(h->set[i], q->may_alias, q, there, kernel);
			assert_true(same(h->set[i], h->traced));
		}
}

static void every_configuration_body(Ctx *cx, void *arg)
{
	for (uint32_t k = 0; k < CONFIGURATIONS; k++)
		for (int add = 0; add < 2; add++)
			run_everywhere(cx, arg, sums_routine(cx, &k, 1, add));
}

static void every_configuration(void **state) { in_context(every_configuration_body, *state); }

/* An add of what was sent is part of the transfer, and a stage has one wait for others. Recompute and again on what the
 * call before left: a word read too late or too early would spread. */
static void sums_body(Ctx *cx, void *arg)
{
	static const uint32_t levels[] = { SHIFT_1, SHIFT_77, EXCHANGE_64, RANDOM, SHIFT_64, EXCHANGE_1, SPARSE, SHIFT_77 };
	enum { CALLS = 40 };
	Hall *h = arg;
	Routine *r = sums_routine(cx, levels, COUNT(levels), true);
	run_everywhere(cx, h, r);
	const Prepared *q = execute_prepare(cx, h->set[0], r);
	assert_int_equal(q->no_alias->transfers, WORDS * COUNT(levels));
	assert_int_equal(q->no_alias->stages, COUNT(levels) + 1);
	assert_int_equal(q->no_alias->insts, 2 * WORDS); /* loads, for words are sent from slots; stores */
	fill_all(h);
	for (uint32_t i = 0; i < SETS; i++)
		for (uint32_t k = 0; k < CALLS; k++)
			execute_fast(h->set[i], q, (uint32_t[BASES]){ 0, k % 2 * WORDS, (k + 1) % 2 * WORDS, 0 });
	for (uint32_t i = 1; i < SETS; i++)
		assert_true(same(h->set[i], h->set[0]));
}

static void sums(void **state) { in_context(sums_body, *state); }

/* ---- per-processor addresses ---- */

/* Words as indexes: nearly all lie beyond SRAM and wrap around. */
static void indexed_body(Ctx *cx, void *arg)
{
	Gen *g = gen_record(cx, &machine, "indexed");
	for (uint32_t i = 0; i < WORDS; i++) {
		Reg index = g_load(g, (Addr){ 1, i });
		g_put(g, (Addr){ 2, i }, index, g_lookup(g, (Addr){ 2, 2 * i }, index));
	}
	Routine *r = schedule(cx, &machine, gen_end(g), &(ScheduleOptions){ 0, 0 });
	assert_null(check_routine(cx, &machine, r));
	run_everywhere(cx, arg, r);
}

static void indexed(void **state) { in_context(indexed_body, *state); }

/* ---- calls put off ---- */

static Routine *product_routine(Ctx *cx)
{
	Gen *g = gen_record(cx, &machine, "products");
	for (uint32_t i = 0; i < WORDS; i++)
		g_store(g, (Addr){ 2, i }, g_fmul(g, g_load(g, (Addr){ 1, i }), g_load(g, (Addr){ 3, 0 })));
	return schedule(cx, &machine, gen_end(g), &(ScheduleOptions){ 0, 0 });
}

/* Calls with transfers and without, words that the host writes and reads, in an order that matters. */
static uint32_t run_calls(Ctx *cx, Processors *p, bool put_off)
{
	enum { CALLS = 1000 }; /* more than can wait */
	Controller *c = controller_new(cx, p);
	uint32_t products = controller_load(c, product_routine(cx)), seen = 0;
	uint32_t sums = controller_load(c, sums_routine(cx, (uint32_t[]){ SHIFT_1 }, 1, true));
	controller_defer_calls(c, put_off);
	for (uint32_t k = 0; k < CALLS; k++) {
		Cell word = { .f = 0.3f + (float)(k % 13) / 16 };
		controller_base(c, 1, k % 3 * WORDS);
		controller_base(c, 2, k * 7 % 5 % 3 * WORDS);
		controller_base(c, 3, 3 * WORDS + k % 4);
		controller_call(c, k % 100 == 57 ? sums : products);
		if (k % 17 == 0)
			host_write(c, k % PROCS, false, 3 * WORDS + k % 4, &word, 1);
		if (k % 23 == 0)
			host_read(c, k % PROCS, false, k % 3 * WORDS, &word, 1);
		seen = seen * 31 + word.u;
	}
	controller_defer_calls(c, false);
	assert_int_equal(c->account.calls, CALLS);
	return seen;
}

static void put_off_body(Ctx *cx, void *arg)
{
	Hall *h = arg;
	fill_all(h);
	uint32_t seen = run_calls(cx, h->traced, false);
	for (uint32_t i = 0; i < SETS; i++) {
		assert_int_equal(run_calls(cx, h->set[i], true), seen);
		assert_true(same(h->set[i], h->traced));
	}
}

static void put_off(void **state) { in_context(put_off_body, *state); }

/* ---- memory running out ---- */

static void starve_body(Ctx *cx, void *arg)
{
	Hall *h = arg;
	Processors *p = processors_new(cx, &machine, h->sw, PROCS, 2);
	Controller *c = controller_new(cx, p);
	controller_load(c, sums_routine(cx, (uint32_t[]){ RANDOM }, 1, true));
	controller_call(c, 0);
}

static void starving(void **state)
{
	for (long n = 1;; n++) {
		Meter meter = { .fail_at = n };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &meter });
		Status status = guarded(&cx, starve_body, *state);
		ctx_free(&cx);
		assert_int_equal(meter.live, 0);
		if (status == MP_OK)
			break;
		assert_int_equal(status, MP_NO_MEMORY);
	}
}

/* ---- measuring ---- */

static void measured_body(Ctx *cx, void *arg)
{
	(void)arg;
	assert_true(execute_measure(cx, &machine, product_routine(cx), PROCS, 2, 0.01).rate > 0);
	assert_non_null(kernel_name());
}

static void measured(void **state) { in_context(measured_body, *state); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_configuration),
		cmocka_unit_test(sums),
		cmocka_unit_test(indexed),
		cmocka_unit_test(put_off),
		cmocka_unit_test(starving),
		cmocka_unit_test(measured),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
