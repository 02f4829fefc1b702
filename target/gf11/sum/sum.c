/* SPDX-License-Identifier: MIT */
/* The update: weight changes summed over all processors, weights changed by them (sections 4.4 and 10.2). In:
 * changes, weights and rule state in the DRAM of every processor, numbers of the update.  Out: new weights in all
 * processors, new state, changes zero.
 *
 *   total  = changes of all processors, added as float in the order of the method
 *   weight and state by the formula of the rule (rule.c), with the total as gradient, each operation rounded
 *
 * Where weights have factors of their own a word stands in DRAM for each, rate is rate * factor, and less than zero
 * says that the weight is frozen: it stays, and so does its state.
 *
 * Words behind the tables hold a processor's number and flags, and parameters from the host (rate, momentum). */
#include <assert.h>
#include <string.h>

#include "gf11_sum.h"

static_assert((int)TABLE_CONSTANT + (int)CONSTANTS <= (int)SUM_WORDS_AT, "words of the tables and of the update meet");

/* No schedule is perfect, and each fills and drains its pipelines. */
uint32_t sum_lines(const Bp *b)
{
	uint32_t block = (uint32_t)b->m->block, usual = 3 * (uint32_t)b->m->alu_latency,
			 length = (uint32_t)b->summing->rule->length;
	uint32_t slack = SLACK + (length > usual ? length - usual : 0) + (uint32_t)range_time(b);
	return block > 2 * slack ? block - slack - block / 24 : block / 3;
}

Addr sum_word(uint32_t word) { return (Addr){ 0, SUM_WORDS_AT + word }; }

/* ---- routines and calls ---- */

Code *sum_code(Gen *g, bool timed)
{
	Code *code = gen_end(g);
	code->update = true;
	code->prescheduled = timed;
	return code;
}

uint32_t sum_load_routine(Bp *b, Routine *r)
{
	if (r->lines > b->m->block)
		fail(b->cx, MP_BAD_INPUT, "ask for fewer weights in an update call, or use a machine file with longer blocks",
		     "%s: %u lines are more than the %lld of a block of %s", r->name, r->lines, (long long)b->m->block,
		     b->m->name);
	const char *fault = r->report.checked || b->o.estimate ? NULL : check_routine(b->cx, b->m, r);
	if (fault)
		fail(b->cx, MP_FAILED, NULL, "%s: the schedule breaks a rule of the machine: %s", r->name, fault);
	if (r->report.spills)
		fail(b->cx, MP_BAD_INPUT, "ask for fewer weights in an update call, or use a machine file with more registers",
		     "%s: %u words find no register of the %lld of %s", r->name, r->report.spills, (long long)b->m->registers,
		     b->m->name);
	r->report.checked = true;
	return controller_load(b->c, r);
}

uint32_t sum_load(Bp *b, Code *code) { return sum_load_routine(b, bp_schedule(b, code)); }

void sum_call(Bp *b, const SumCall *call)
{
	BpSum *s = b->summing;
	if (s->calls == s->capacity) {
		uint32_t capacity = s->capacity ? 2 * s->capacity : 64;
		s->call = arena_grow(&b->cx->keep, s->call, s->capacity, capacity, sizeof *s->call);
		s->capacity = capacity;
	}
	s->call[s->calls++] = *call;
}

/* ---- the switch: configurations are of ports, routines count processors ---- */

static void join(const Bp *b, uint16_t *to, uint32_t from, uint32_t into) { to[b->p->port[from]] = b->p->port[into]; }

static uint16_t *nowhere(Bp *b)
{
	uint16_t *to = NEW(&b->cx->scratch, b->sw->ports, uint16_t);
	memset(to, 0xFF, b->sw->ports * sizeof *to); /* NO_ROUTE */
	return to;
}

uint32_t sum_shift(Bp *b, uint32_t procs, uint32_t by)
{
	uint16_t *to = nowhere(b);
	for (uint32_t i = 0; i < procs; i++)
		join(b, to, i, (i + by) % procs);
	return switch_store(b->cx, b->sw, to);
}

uint32_t sum_exchange(Bp *b, uint32_t bit)
{
	uint16_t *to = nowhere(b);
	for (uint32_t i = 0; i < b->o.procs; i++)
		join(b, to, i, i ^ bit);
	return switch_store(b->cx, b->sw, to);
}

/* Leftovers n >= 2^levels and their buddies n - 2^levels, both ways (section 4.4.2). */
static void configure_buddies(Bp *b, BpSum *s)
{
	uint32_t power = 1u << s->levels;
	uint16_t *to = nowhere(b), *from = nowhere(b);
	for (uint32_t i = 0; i < s->leftovers; i++) {
		join(b, to, power + i, i);
		join(b, from, i, power + i);
	}
	s->to_buddy = switch_store(b->cx, b->sw, to);
	s->from_buddy = switch_store(b->cx, b->sw, from);
}

/* ---- places ---- */

/* Arrays of the states follow one another, and the array of factors follows them. */
Addr sum_state(const Bp *b, int state, uint32_t i) { return (Addr){ SUM_STATES, (uint32_t)state * b->at.words + i }; }

Addr sum_factor(const Bp *b, uint32_t i) { return sum_state(b, b->rule->states, i); }

/* ---- compiling ---- */

static const struct {
	bool (*fits)(const Bp *b);
	void (*compile)(Bp *b);
} methods[SUMS] = {
	[SUM_RING] = { NULL, ring_compile },
	[SUM_TREE] = { NULL, tree_compile },
	[SUM_PIPELINED] = { pipelined_fits, pipelined_compile },
	[SUM_HALVING] = { halving_fits, halving_compile },
};

/* Factors never change. */
static void factors_write(Bp *b)
{
	for (uint32_t i = 0; b->factor && i < b->at.words && !b->o.dry; i++) {
		SumHome home = sum_home(b, i);
		Cell *word = (Cell *)(b->p->dram + (size_t)home.factor * b->p->lanes);
		for (uint32_t proc = 0; proc < b->o.procs; proc++)
			if (home.everywhere || proc == home.proc)
				word[proc].f = b->factor[i];
	}
}

void sum_compile(Bp *b)
{
	BpSum *s = b->summing = NEW(&b->cx->keep, 1, BpSum);
	s->sum = b->o.sum;
	s->procs = b->o.procs;
	while ((2u << s->levels) <= b->o.procs)
		s->levels++;
	s->leftovers = b->o.procs - (1u << s->levels);
	for (uint32_t i = 0; b->factor && i < b->at.words; i++)
		s->frozen |= b->factor[i] < 0;
	s->rule = rule_make(b);
	range_prepare(b);
	if (methods[s->sum].fits && !methods[s->sum].fits(b))
		s->sum = b->m->ring_only ? SUM_RING : SUM_TREE;
	if (s->sum == SUM_TREE && s->leftovers)
		configure_buddies(b, s);
	methods[s->sum].compile(b);
	factors_write(b);
	if (b->c->faults && !b->o.dry)
		faults_apply(b->c->faults, b->p);
}

uint32_t sum_steps(int sum, uint32_t procs)
{
	uint32_t levels = 0;
	while ((2u << levels) <= procs)
		levels++;
	switch (procs > 1 ? sum : SUMS) {
	case SUM_RING: return procs - 1;
	case SUM_TREE: return levels + 2 * (procs > 1u << levels);
	case SUM_PIPELINED:
	case SUM_HALVING: return 2; /* a little less: 2 (procs - 1) / procs */
	default: return 0;
	}
}

/* ---- updating ---- */

static Cell flag(bool set) { return (Cell){ .u = set ? UINT32_MAX : 0 }; }

void sum_words_write(Bp *b)
{
	const BpSum *s = b->summing;
	for (uint32_t proc = 0; proc < b->o.procs && !s->written; proc++) {
		uint32_t i = s->alike ? s->as : proc;
		Cell word[SUM_WORDS] = { [WORD_SELF] = { .u = i }, [WORD_WRAPPED] = { .u = i - b->o.procs } };
		word[WORD_LIMIT] = (Cell){ .f = b->range };
		word[WORD_BUDDY] = flag(i < s->leftovers);
		word[WORD_LEFTOVER] = flag(i >= 1u << s->levels);
		for (uint32_t k = 0; k < MOST_LEVELS; k++)
			word[WORD_BIT + k] = flag(i >> k & 1);
		host_write(b->c, proc, false, SUM_WORDS_AT, word, SUM_WORDS);
	}
}

/* Numbers of the update that changed since the last one. */
static void rates_write(Bp *b, BpSum *s, const Update *u)
{
	Cell word[SUM_UNIFORMS] = { 0 };
	rule_words(s->rule, u, word);
	if (s->written && memcmp(word, s->word, sizeof word) == 0)
		return;
	memcpy(s->word, word, sizeof word);
	for (uint32_t i = 0; i < b->o.procs; i++)
		host_write(b->c, i, false, SUM_WORDS_AT + WORD_RULE, word, s->rule->words);
}

void sum_update(Bp *b, const Update *u)
{
	BpSum *s = b->summing;
	sum_words_write(b);
	rates_write(b, s, u);
	s->written = true;
	uint64_t before = b->c->account.cycles - b->cycles_receive;
	for (uint32_t i = 0; i < s->calls; i++) {
		for (uint32_t k = 1; k < (range_checked(b) ? SUM_BASES : SUM_FLAGS); k++)
			controller_base(b->c, k, s->call[i].base[k]);
		controller_call(b->c, s->call[i].routine);
		if (b->disk)
			disk_between(b);
	}
	if (s->borrows)
		controller_call(b->c, s->restore);
	b->started = false;
	b->cycles_update += b->c->account.cycles - b->cycles_receive - before;
	if (range_checked(b) && !b->o.dry)
		range_collect(b);
}

void sum_words_as(Bp *b, uint32_t proc)
{
	b->summing->alike = true;
	b->summing->as = proc;
	b->summing->written = false;
}

SumHome sum_home(const Bp *b, uint32_t place)
{
	const BpSum *s = b->summing;
	const Rows *r = &s->rows;
	bool everywhere = s->sum == SUM_RING || s->sum == SUM_TREE;
	uint32_t at = place, stride = b->at.words;
	SumHome home = { .everywhere = everywhere };
	if (!everywhere) {
		uint32_t row = place / r->words, slot = place % r->words;
		at = row * r->own + slot / b->o.procs;
		stride = r->rows * r->own;
		home.proc = (slot % b->o.procs + r->shift) % b->o.procs;
		home.weight = b->at.states + (uint32_t)b->rule->states * stride + at;
	}
	for (int k = 0; k < b->rule->states; k++)
		home.state[k] = b->at.states + (uint32_t)k * stride + at;
	home.factor = b->at.factors + at;
	return home;
}
