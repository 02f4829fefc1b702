/* SPDX-License-Identifier: MIT */
/* Policy: when data is verified, weights are copied, rolled back and averaged, and the notes about it (section
 * 10.4). In: options, cases as they are loaded, errors of batches, updates. Out: calls of the other files of this
 * module.
 *
 * Snapshots: the weights before the first pass, then after every N epochs. A snapshot is new until the next batch
 * has a plausible error; then it is good. There are two slots, and the one with the newest good snapshot is never
 * overwritten. An error is implausible if it is not finite, or if its mean per case exceeds `jump` times the
 * smallest of the last LAST_ERRORS epochs, each represented by its worst batch. Then the newest good snapshot is
 * restored and the batch is repeated; epochs continue to count.
 * A corrupt weight may saturate a unit permanently while the error hardly changes. So after every epoch processors
 * compute their largest weight; if the median exceeds GROWTH times the previous epoch's, and SMALL, that is a jump
 * as well. Corruption in a minority of processors is left to averaging.
 *
 * A transient fault does not recur. If the same error recurs after a rollback, the snapshot may be damaged
 * undetected and the older one is restored; if it recurs again, or there is no older one, it is accepted as part of
 * the training. So it is after TRIES rollbacks without a new snapshot, if the error is finite; else training fails. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "gf11_protect.h"

enum { TRIES = 8, MOST_NOTES = 20 };
#define SAME_AGAIN 1e-3 /* in proportion */
#define GROWTH     8
#define SMALL      16

/* ---- shared inside the module ---- */

uint32_t protect_reserve(Protect *t, uint64_t words)
{
	const Machine *m = t->b->m;
	uint64_t first = round_to(t->dram_end, (uint32_t)m->dram_banks);
	if (first + words > (uint64_t)m->dram)
		fail(t->b->cx, MP_BAD_INPUT,
		     "use more processors, a smaller batch or network, or set data-check and memory-checkpoint to 0",
		     "checksums and copies take words %llu to %llu of DRAM; %s has %lld", (unsigned long long)first,
		     (unsigned long long)(first + words), m->name, (long long)m->dram);
	t->dram_end = t->b->p->dram_used = (uint32_t)(first + words);
	return (uint32_t)first;
}

uint32_t protect_buffer(const Protect *t)
{
	return NEAR_PARTIAL + (2 + EXPECTED_WORDS) * (uint32_t)t->b->m->dram_banks;
}

Addr near_word(uint32_t word) { return (Addr){ PROTECT_AT, word }; }

void protect_call(Protect *t, uint32_t routine, uint32_t from, uint32_t into, uint32_t sums)
{
	Controller *c = t->b->c;
	uint64_t before = bp_cycles(t->b);
	controller_base(c, PROTECT_AT, t->b->at.scratch);
	controller_base(c, PROTECT_FROM, from);
	controller_base(c, PROTECT_INTO, into);
	controller_base(c, PROTECT_SUMS, sums);
	controller_call(c, routine);
	t->guard->cycles += bp_cycles(t->b) - before;
}

void protect_clear(Protect *t) { protect_call(t, t->clear, 0, 0, 0); }

uint32_t protect_count(Protect *t, uint32_t proc)
{
	Cell count;
	host_read(t->b->c, proc, false, t->b->at.scratch + NEAR_COUNT, &count, 1);
	return count.u;
}

bool protect_may_note(Protect *t)
{
	if (t->guard->notes == MOST_NOTES)
		note(t->b->cx, NULL, "there were more faults; the figures of --json count all");
	return t->guard->notes++ < MOST_NOTES;
}

uint32_t protect_hops(const Protect *t) { return t->b->m->ring_only ? (1u << t->levels) - 1 : t->levels; }

Reg protect_hop(Gen *g, const Protect *t, uint32_t level, Reg v)
{
	for (uint32_t i = t->b->m->ring_only ? 1u << level : 1; i > 0; i--)
		v = g_xfer(g, t->hop[t->b->m->ring_only ? 0 : level], v);
	return v;
}

uint32_t state_count(const Bp *b) { return (uint32_t)b->rule->states; }

uint32_t state_word(const SumHome *home, uint32_t state) { return home->state[state]; }

uint32_t state_first(const Bp *b, uint32_t state)
{
	SumHome home = sum_home(b, 0);
	return state_word(&home, state);
}

/* ---- compiling ---- */

static Code *record_clear_count(const Bp *b)
{
	Gen *g = gen_record(b->cx, b->m, "no faults");
	g_store(g, near_word(NEAR_COUNT), g_const_bits(g, 0));
	return sum_code(g, false);
}

static bool memory_wanted(const Gf11Options *opt) { return strcmp(opt->machine_memory, "none") != 0; }

Protect *protect_new(Bp *b, const Gf11Options *opt, Guard *guard)
{
	bool memory = memory_wanted(opt), checks = opt->data_check > 0 || memory;
	bool copies = opt->memory_checkpoint > 0, averages = opt->agree == AGREE_AVERAGE;
	if (!checks && !copies && !averages)
		return NULL;
	Protect *t = NEW(&b->cx->keep, 1, Protect);
	*t = (Protect){ .b = b,
		            .guard = guard,
		            .dram_end = b->at.dram_end,
		            .checks = checks,
		            .copies = copies,
		            .averages = averages,
		            .spread = copies && opt->checkpoint_place == PLACE_SPREAD,
		            .unknown = memory };
	/* Configurations of an exchange. */
	while (t->levels < MOST_LEVELS && 1u << t->levels < b->o.procs)
		t->levels++;
	for (uint32_t k = 0; k < t->levels && (!k || !b->m->ring_only); k++)
		t->hop[k] = sum_shift(b, b->o.procs, 1u << k);
	t->ring = t->hop[0];
	t->clear = sum_load(b, record_clear_count(b));
	if (checks)
		data_check_make(t);
	if (copies || averages)
		shares_make(t);
	if (copies)
		copies_make(t);
	if (averages)
		average_make(t);
	if (memory)
		memory_keep(b->cx, b->p, opt->machine_memory, b->at.weights);
	return t;
}

/* ---- data ---- */

static void check_now(Protect *t)
{
	t->guard->bad_cases += check_data(t, false);
	t->guard->checks++;
	t->checked = t->guard->epochs;
}

static bool check_due(const Protect *t)
{
	uint64_t every = (uint64_t)t->b->gf11->data_check;
	return every && t->guard->epochs >= t->checked + every;
}

bool protect_finds(Protect *t, const Data *d, const uint64_t *cases, uint64_t count, bool there)
{
	t->loaded = d;
	t->cases = cases;
	t->count = count;
	if (there && t->checks && check_due(t))
		check_now(t);
	if (there || !t->unknown)
		return there;
	t->unknown = false;
	bp_loaded(t->b, cases, count);
	/* Contents of an earlier run are kept if their checksums match the cases. */
	uint64_t all = 0;
	for (uint64_t i = 0; i < t->count; i++)
		all += !t->cases || t->cases[i] != NO_CASE;
	data_sums_write(t);
	uint64_t bad = check_data(t, true);
	t->guard->reused += all - bad;
	note(t->b->cx, NULL, "machine-memory %s: %llu of %llu cases were there already, %llu were loaded",
	     t->b->gf11->machine_memory, (unsigned long long)(all - bad), (unsigned long long)all, (unsigned long long)bad);
	return true;
}

/* Data from disks may be wrong on arrival. */
void protect_loaded(Protect *t, bool disks)
{
	t->checked = t->guard->epochs;
	if (t->checks)
		data_sums_write(t);
	if (t->checks && disks)
		check_now(t);
}

/* ---- copies ---- */

static void copy_make(Protect *t) { copy_save(t, t->state[t->newest] == COPY_GOOD ? 1 - t->newest : t->newest); }

void protect_begin(Protect *t)
{
	if (t->copies && !t->begun) {
		t->reached = largest_weight(t);
		copy_make(t);
	}
	t->begun = true;
}

static double least_error(const Guard *k)
{
	double least = INFINITY;
	for (uint32_t i = 0; i < k->errors && i < LAST_ERRORS; i++)
		least = k->error[i] < least ? k->error[i] : least;
	return least;
}

static double error_a_case(const Tally *batch) { return batch->cases ? batch->error / (double)batch->cases : 0; }

static bool same_again(const Protect *t, Jump j)
{
	if (!t->tries || j.weight != t->rejected.weight)
		return false;
	if (isfinite(j.value) && isfinite(t->rejected.value))
		return fabs(j.value - t->rejected.value) <= SAME_AGAIN * t->rejected.value;
	return isfinite(j.value) == isfinite(t->rejected.value);
}

/* The snapshot to restore, or COPIES. */
static uint32_t copy_choose(Protect *t, Jump j)
{
	uint32_t older = 1 - t->newest;
	bool good = t->state[t->newest] == COPY_GOOD, other = t->state[older] == COPY_GOOD;
	if (other && (!good || (same_again(t, j) && !t->older_tried))) {
		t->older_tried = true;
		return older;
	}
	return good ? t->newest : COPIES;
}

static const char *jump_name(Jump j) { return j.weight ? "largest weight" : "error a case"; }

/* A jump that recurred is part of the training. */
static bool jump_accepted(Protect *t, Jump j)
{
	unsigned long long epoch = t->guard->epochs + 1;
	bool older = t->state[1 - t->newest] == COPY_GOOD && !t->older_tried;
	if (t->tries < TRIES && (!isfinite(j.value) || !same_again(t, j) || older))
		return false;
	if (!isfinite(j.value))
		fail(t->b->cx, MP_FAILED, "run microprop gf11 diagnose: a processor may be broken; or take a smaller rate",
		     "the %s is not finite in epoch %llu, and recurred after %u rollbacks", jump_name(j), epoch, t->tries);
	t->guard->accepted++;
	t->guard->errors = 0;
	if (protect_may_note(t))
		note(t->b->cx, NULL, "epoch %llu: the %s is %g again, after a rollback; training continues from it", epoch,
		     jump_name(j), j.value);
	return true;
}

/* Restores a snapshot, unless it is invalid. */
static bool jump_undone(Protect *t, Jump j)
{
	if (jump_accepted(t, j))
		return false;
	for (uint32_t i = 0; i < COPIES; i++)
		if (t->state[i] == COPY_NEW)
			t->state[i] = COPY_NONE;
	unsigned long long epoch = t->guard->epochs + 1;
	uint32_t copy = copy_choose(t, j);
	t->b->summing->written = false; /* host-written words may be corrupt too */
	if (copy < COPIES && !copy_restore(t, copy)) {
		t->state[copy] = COPY_NONE;
		copy = t->state[1 - copy] == COPY_GOOD && copy_restore(t, 1 - copy) ? 1 - copy : COPIES;
	}
	if (copy == COPIES)
		fail(t->b->cx, MP_FAILED, "start again from a checkpoint on disk, with memory-checkpoint at shorter intervals",
		     "epoch %llu: the %s is %g, and there is no good copy of the weights to restore", epoch, jump_name(j),
		     j.value);
	t->tries++;
	t->rejected = j;
	t->guard->error[0] = t->error[copy]; /* the new baseline */
	t->guard->errors = 1;
	t->guard->rollbacks++;
	if (protect_may_note(t))
		note(t->b->cx, NULL, "epoch %llu: the %s is %g, which is a jump; weights are restored from a copy", epoch,
		     jump_name(j), j.value);
	return true;
}

bool protect_again(Protect *t, const Tally *batch)
{
	Guard *k = t->guard;
	double error = error_a_case(batch);
	bool jump = !isfinite(error) || error > t->b->gf11->jump * least_error(k);
	if (t->copies && jump && jump_undone(t, (Jump){ false, error }))
		return true;
	k->worst = error > k->worst ? error : k->worst;
	if (t->copies) {
		for (uint32_t i = 0; i < COPIES; i++)
			if (t->state[i] == COPY_NEW) {
				t->state[i] = COPY_GOOD;
				t->newest = i;
				t->error[i] = error;
				t->tries = 0;
				t->older_tried = false;
			}
	}
	return false;
}

/* Baseline: the weights of a plausible epoch. */
static void largest_check(Protect *t)
{
	double largest = largest_weight(t), known = t->reached;
	if (largest > SMALL && !(largest <= GROWTH * known) && jump_undone(t, (Jump){ true, largest }))
		return;
	t->reached = largest;
}

/* ---- updates, epochs ---- */

void protect_updated(Protect *t, uint64_t cases)
{
	Guard *k = t->guard;
	k->updates++;
	k->cases += cases;
	if (t->averages && k->updates % (uint64_t)t->b->gf11->average_every == 0)
		average_all(t);
	if (t->loaded && k->cases >= t->loaded->cases) {
		k->error[k->errors++ % LAST_ERRORS] = k->worst;
		k->worst = 0;
		k->cases = 0;
		if (t->copies)
			largest_check(t);
		k->epochs++;
		if (t->copies && k->epochs % (uint64_t)t->b->gf11->memory_checkpoint == 0)
			copy_make(t);
	}
}

/* ---- figures ---- */

void protect_report(const Gf11Options *opt, const Guard *k, const Bp *b, Buf *json)
{
	JsonWriter j = { .out = json, .comma = json->len > 0 };
	if (memory_wanted(opt))
		jw_count(&j, "cases_reused", k->reused);
	if (opt->data_check) {
		jw_count(&j, "data_checks", k->checks);
		jw_count(&j, "data_faults", k->bad_cases);
		jw_count(&j, "table_faults", k->bad_tables);
	}
	if (opt->memory_checkpoint) {
		jw_count(&j, "copies", k->copies);
		jw_count(&j, "rollbacks", k->rollbacks);
		jw_count(&j, "jumps_accepted", k->accepted);
	}
	if (opt->agree == AGREE_AVERAGE) {
		jw_count(&j, "averages", k->averages);
		jw_count(&j, "unreasonable", k->unreasonable);
	}
	if (k->cycles)
		jw_count(&j, "protection_cycles", k->cycles);
	if (opt->agree != AGREE_HOST && b) {
		Drift d = protect_drift(b);
		jw_real(&j, "drift_max", "%.17g", d.largest);
		jw_real(&j, "drift_mean", "%.17g", d.mean);
	}
}
