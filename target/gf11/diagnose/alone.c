/* SPDX-License-Identifier: MIT */
/* Isolated training test (section 8): all processors train on the same cases, weights and rule state, without
 * communication. In: a network, processors, cases. Out: for each processor a few words that must be identical on
 * all, bit by bit: total error, checksums of its outputs and of everything that an update leaves in DRAM.
 *
 * It runs the program that will be used: same microcode, same addresses. Only the switch settings differ: every
 * processor receives its own words, so the update runs too, with meaningful data. These loopback routes are tested
 * like those of a program. Where a switch with dead parts has too few routes for all processors at once, they are
 * tested in rounds; on a machine with only a ring nothing is sent.
 *
 * What a processor knows of itself (its number, whether it is a leftover) selects other operands and addresses.
 * Here all of them take the role of one processor, and the update is run for several roles.
 *
 * The program is compiled for the number of processors that will run it; if more must be tested, rounds are used
 * too. Checksums over DRAM are computed by the processors; the host reads one word of each. */
#include <assert.h>
#include <string.h>

#include "gf11_diagnose.h"
#include "gf11_sum.h"

enum { STREAM_ALONE = 65 };       /* random stream; streams of lib/ have small numbers */
enum { CHUNK = 256, CHAINS = 8 }; /* words per call of the checksum; independent sums */
enum { NEAR = 1, FAR, AT };       /* relocation registers: words in SRAM, in DRAM; the sum */

typedef struct Lone {
	Alone *t;
	Bp *b;
	Controller *sums;     /* holds the checksum routines, which are not part of the program */
	uint32_t whole, rest; /* routines: for a whole chunk, for the last words */
	uint64_t drawn;       /* random numbers */
} Lone;

/* ---- words that are equal in all processors ---- */

static float draw(Lone *k, float scale) { return scale * (2 * (float)random_unit(1, STREAM_ALONE, k->drawn++) - 1); }

static void row_fill(const Bp *b, uint32_t word, float v)
{
	uint32_t *row = b->p->dram + (size_t)word * b->p->lanes;
	for (uint32_t i = 0; i < b->p->procs; i++)
		row[i] = (Cell){ .f = v }.u;
}

/* Case i is in slot i of every processor. */
static void load_cases(Lone *k)
{
	Bp *b = k->b;
	Ctx *cx = b->cx;
	uint32_t inputs = b->net->inputs, outputs = b->net->outputs, slots = b->at.slots;
	float *x = NEW(&cx->scratch, (size_t)slots * inputs, float), *y = NEW(&cx->scratch, (size_t)slots * outputs, float);
	uint64_t count = (uint64_t)slots * b->o.procs, *number = NEW(&cx->scratch, count, uint64_t);
	for (size_t i = 0; i < (size_t)slots * inputs; i++)
		x[i] = draw(k, 1);
	for (size_t i = 0; i < (size_t)slots * outputs; i++)
		y[i] = draw(k, 1) > 0;
	assert(b->at.group > 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t slot = i / b->o.procs;
		bool goes_on = b->net->copies && slot >= b->at.group && slot / b->at.group % 3;
		number[i] = slot | (goes_on ? CASE_GOES_ON : 0);
	}
	const Data d = { .name = "diagnosis",
		             .cases = slots,
		             .inputs = inputs,
		             .targets = outputs,
		             .x = x,
		             .x_type = T_F32,
		             .y = y,
		             .y_type = T_F32 };
	bp_load_cases(b, &d, number, count);
}

static void apply_faults(const Lone *k)
{
	if (k->t->faults)
		faults_apply(k->t->faults, k->b->p);
}

/* ---- checksums ---- */

/* Sum of words times distinct powers of an odd number: any single wrong word is detected. */
static uint32_t load_checksum(Lone *k, uint32_t words)
{
	const Bp *b = k->b;
	Gen *g = gen_record(b->cx, b->m, "checksum");
	Reg factor = g_const_bits(g, 0x01000193u), sum[CHAINS], all = g_load(g, (Addr){ AT, 0 });
	for (uint32_t i = 0; i < words; i++) {
		g_fetch(g, (Addr){ NEAR, i }, (Addr){ FAR, i });
		Reg word = g_load(g, (Addr){ NEAR, i });
		sum[i % CHAINS] = i < CHAINS ? word : g_op(g, GOP_IADD, g_op(g, GOP_IMUL, sum[i % CHAINS], factor), word);
	}
	for (uint32_t i = 0; i < CHAINS && i < words; i++)
		all = g_op(g, GOP_IADD, g_op(g, GOP_IMUL, all, factor), sum[i]);
	g_store(g, (Addr){ AT, 0 }, all);
	return controller_load(k->sums, test_routine(b->cx, b->m, gen_end(g)));
}

static uint32_t checksum_words(const Bp *b) { return CHUNK / (uint32_t)b->m->dram_banks * (uint32_t)b->m->dram_banks; }

static uint32_t *result(const Lone *k, uint32_t proc, uint32_t which)
{
	assert(which < RESULTS);
	return &k->t->result[(size_t)proc * RESULTS + which];
}

/* Of all words of DRAM from the weights on. */
static void take_checksum(Lone *k, uint32_t which)
{
	const Bp *b = k->b;
	const Cell none = { 0 };
	uint32_t near = b->at.scratch, at = near + CHUNK, chunk = checksum_words(b);
	static_assert((int)CHUNK < (int)MIN_SCRATCH, "the checksum needs more words than there are");
	for (uint32_t i = 0; i < b->o.procs; i++)
		host_write(k->sums, i, false, at, &none, 1);
	controller_base(k->sums, NEAR, near);
	controller_base(k->sums, AT, at);
	for (uint32_t far = b->at.weights; far < b->at.dram_end; far += chunk) {
		controller_base(k->sums, FAR, far);
		controller_call(k->sums, b->at.dram_end - far < chunk ? k->rest : k->whole);
	}
	for (uint32_t i = 0; i < b->o.procs; i++)
		host_read(k->sums, i, false, at, (Cell *)result(k, i, which), 1);
}

/* ---- rounds ---- */

/* Loopback: every processor receives its own words. */
static const Wanted *loopback(void *user, uint32_t procs)
{
	Alone *t = user;
	for (uint32_t i = 0; i < procs; i++)
		t->self[i] = (uint16_t)i;
	t->back.procs = procs;
	return &t->back;
}

static void join(Alone *t, uint32_t port)
{
	uint32_t k = 0;
	while (t->candidate[k] != port)
		k++;
	t->reached[k] = 1;
	t->member[t->members++] = k;
	if (!t->m->ring_only)
		t->to[port] = (uint16_t)port;
}

/* Adds the processors that have a loopback route. There may be many rounds, so memory of the test is freed after each;
 * located parts are kept. */
static void choose_by_test(Ctx *own, void *arg)
{
	Alone *t = arg;
	SwitchTest test = t->loop;
	test.located = NULL;
	test.locateds = test.capacity = 0;
	switch_test(own, &test);
	for (uint32_t i = 0; i < test.placed->procs; i++)
		join(t, test.placed->port[i]);
	for (uint32_t i = 0; i < test.locateds; i++)
		located_add(t->cx, &t->loop, &test.located[i]);
	t->loop.cycles = test.cycles;
	t->loop.host_seconds = test.host_seconds;
	t->loop.configurations = test.configurations;
}

/* Processors of the next round: those not yet tested, if they have a loopback route, which is tested first. */
static bool choose(Ctx *cx, Alone *t)
{
	uint16_t *left = NEW(&cx->scratch, t->candidates, uint16_t);
	uint32_t count = 0;
	for (uint32_t i = 0; i < t->candidates; i++)
		if (!t->reached[i] && !port_dead(t->known, t->candidate[i]))
			left[count++] = t->candidate[i];
	memset(t->to, 0xFF, t->known->ports * sizeof *t->to); /* NO_ROUTE */
	t->members = 0;
	if (!count)
		return false;
	t->loop.candidate = left;
	t->loop.candidates = count;
	if (!t->m->ring_only)
		with_subcontext(cx, choose_by_test, t);
	for (uint32_t i = 0; i < count && i < t->procs && t->m->ring_only; i++)
		join(t, left[i]);
	return true;
}

/* ---- training ---- */

static void train(Lone *k)
{
	Bp *b = k->b;
	uint32_t last = b->o.procs - 1, parts[] = { 0, last, last / 3, last - last / 3 };
	static_assert((int)COUNT(parts) + (int)RESULT_UPDATES == (int)RESULTS, "a checksum for each update");
	Update u = test_update(b->opt);
	for (uint64_t i = 0; i < b->net->links; i++)
		row_fill(b, b->at.weights + b->place[i], draw(k, 1));
	/* State of rule and summing per weight, and its address; a negative factor marks a frozen weight. */
	for (uint32_t word = b->at.states; word < b->at.dram_end; word++)
		row_fill(b, word, draw(k, 0.125f));
	for (uint32_t i = 0; b->factor && i < b->at.words; i++)
		row_fill(b, b->at.factors + i, b->factor[i]);
	load_cases(k);
	apply_faults(k);
	bp_accumulate(b);
	/* Results of the pass, read by the host: total error, outputs. */
	for (uint32_t i = 0; i < b->o.procs; i++) {
		uint32_t sum = 0;
		for (uint32_t slot = 0; slot < b->at.slots; slot++) {
			const float *out = bp_outputs(b, (uint64_t)slot * b->o.procs + i);
			for (uint32_t j = 0; j < b->net->outputs; j++)
				sum = sum * 0x01000193u + (Cell){ .f = out[j] }.u;
		}
		host_read(b->c, i, false, b->at.total, (Cell *)result(k, i, RESULT_ERROR), 1);
		*result(k, i, RESULT_OUTPUTS) = sum;
	}
	take_checksum(k, RESULT_CHANGES);
	for (uint32_t i = 0; i < COUNT(parts); i++) {
		if (i) {
			for (uint64_t j = 0; j < k->b->net->links; j++)
				row_fill(k->b, k->b->at.changes + k->b->place[j], draw(k, 4));
			k->b->started = true;
			apply_faults(k);
		}
		sum_words_as(b, parts[i]);
		sum_update(b, &u);
		take_checksum(k, RESULT_UPDATES + i);
	}
	k->t->cycles += clock_on(k->t->faults, b->c) + clock_on(k->t->faults, k->sums);
	k->t->host_seconds += b->c->account.host_seconds + k->sums->account.host_seconds;
}

/* One round, with a machine of its own. */
static void round_run(Ctx *own, void *arg)
{
	Alone *t = arg;
	BpOptions o = t->o;
	uint16_t *port = NEW(&own->keep, t->procs, uint16_t);
	uint8_t *in = NEW(&t->cx->scratch, t->candidates, uint8_t);
	uint32_t count = 0;
	for (; count < t->members; count++) {
		port[count] = t->candidate[t->member[count]];
		in[t->member[count]] = 1;
	}
	for (uint32_t i = 0; count < t->procs; i++)
		if (!in[i])
			port[count++] = t->candidate[i];
	o.procs = t->procs;
	o.port = port;
	o.known = t->known;
	o.alone = t->to;
	o.faults = t->faults;
	o.log = NULL;
	Lone k = { .t = t, .b = bp_new(own, t->plan, t->opt, t->m, &o, t->cases) };
	if (!k.b->summing)
		sum_compile(k.b);
	const Bp *b = k.b;
	uint32_t words = b->at.dram_end - b->at.weights, chunk = checksum_words(b);
	k.sums = controller_new(b->cx, b->p);
	if (k.t->faults)
		faults_attach(k.t->faults, k.sums);
	k.whole = words >= chunk ? load_checksum(&k, chunk) : 0;
	k.rest = words % chunk ? load_checksum(&k, words % chunk) : 0;
	train(&k);
}

void alone_train(Ctx *cx, Alone *t)
{
	uint32_t *all = NEW(&cx->keep, (size_t)t->candidates * RESULTS, uint32_t);
	assert(t->procs <= t->candidates);
	t->cx = cx;
	t->result = NEW(&cx->scratch, (size_t)t->procs * RESULTS, uint32_t);
	t->to = NEW(&cx->scratch, t->known->ports, uint16_t);
	t->member = NEW(&cx->scratch, t->procs, uint32_t);
	t->self = NEW(&cx->scratch, t->procs, uint16_t);
	t->reached = NEW(&cx->keep, t->candidates, uint8_t);
	t->back = (Wanted){ .count = 1, .to = &t->self };
	t->loop = (SwitchTest){
		.m = t->m, .faults = t->faults, .most = t->procs, .wanted = loopback, .user = t, .known = t->known
	};
	while (choose(cx, t)) {
		with_subcontext(cx, round_run, t);
		for (uint32_t i = 0; i < t->members; i++)
			memcpy(all + (size_t)t->member[i] * RESULTS, t->result + (size_t)i * RESULTS, RESULTS * sizeof *all);
		t->rounds++;
	}
	t->result = all;
	t->cycles += t->loop.cycles;
	t->host_seconds += t->loop.host_seconds;
}

/* ---- comparing ---- */

static bool same(const Alone *t, uint32_t i, uint32_t k)
{
	return memcmp(t->result + (size_t)i * RESULTS, t->result + (size_t)k * RESULTS, RESULTS * sizeof *t->result) == 0;
}

uint32_t alone_common(const Alone *t, uint8_t *common)
{
	uint32_t most = 0, best = 0, next = 0; /* processors with the most common result, with the second */
	for (uint32_t i = 0; i < t->candidates; i++) {
		uint32_t count = 0;
		bool first = true;
		for (uint32_t k = 0; k < t->candidates; k++) {
			bool here = t->reached[k] && same(t, i, k);
			count += here;
			first &= !here || k >= i;
		}
		if (!first || !t->reached[i])
			continue;
		next = count > most ? most : count > next ? count : next;
		if (count > most) {
			most = count;
			best = i;
		}
	}
	for (uint32_t i = 0; i < t->candidates; i++)
		common[i] = t->reached[i] && same(t, i, best);
	return most > next ? most : 0;
}
