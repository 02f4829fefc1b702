/* SPDX-License-Identifier: MIT */
/* Silent corruption: found, told, undone. In: a run between any two steps of an update. Out: the same run, or one
 * that stands where it stood some updates before.
 *
 * Must hold: training is deterministic, so a run that was rolled back ends with the bits of one that never was
 * disturbed, and a guard that finds nothing changes nothing. There are no false alarms, for every verdict compares
 * bits that have to agree:
 *
 *   state      weights, their other forms and rule state are sealed after an update and looked at before the next
 *   sums       of weight changes are sealed by the target while they rest (Monitor.sums)
 *   data       are sealed at the start and looked at before an epoch comes to them (guard_data.c)
 *   leaves     one, now and then, is computed again on another core, or by another rank (guard_ranks.c)
 *   jumps      an error or a weight change far beyond those before is only odd: the run goes back, and if it comes
 *              out the same again, then that is how it is. A run that jumps all the time is not done twice: a
 *              Budget says how often
 *
 * Copies of the state (guard_state.c): a recent one, for faults in what was sealed after it; two more, taken where
 * a pass over the data began: a block that is found broken may have been so since it was looked at last, so the run
 * goes back to where the pass before began. With `light`, and for copies, passes and leaves, a Budget holds down
 * what is spent.
 *
 * Ranks go back together. One that finds a fault says so, and the others hear it where they meet next: before the
 * sums of a batch, or at the end. So they keep copies when they have met, for only then does each know that all
 * found the last update well. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "guard_data.h"
#include "ranks.h"

enum { MOST_NOTES = 20, PATIENCE = 6 }; /* faults told one by one; faults without an update between them */
static const double error_jump = 2, reach_jump = 8, fading = 0.99;

/* Shares of the time, by level. */
typedef struct Shares {
	double state, copies, data, leaves, jumps;
} Shares;
static const Shares shares[] = {
	[GUARD_LIGHT] = { .state = 0.004, .copies = 0.002, .data = 0.003, .jumps = 0.002 },
	[GUARD_FULL] = { .state = 1, .copies = 0.005, .data = 0.01, .leaves = 0.01, .jumps = 0.01 },
};

typedef struct Budget {
	double cost, last;
} Budget; /* of the last time, and when that was */

struct Guard {
	Run *r;
	int level;
	Arena own; /* all memory of one call of run_train */
	Monitor monitor;
	GuardCount count;

	State state;
	bool sealed; /* its seals are of the state as it should be now */
	bool swept;  /* updates look at the state and seal it: Monitor.was, Monitor.is */
	Position at; /* as it should be now */

	const Data *bound;
	DataSeals *data;
	Order *order;
	bool passing;        /* blocks of examples are looked at when the epoch comes to them, */
	uint64_t pass_epoch; /* in this one; */
	uint64_t entered;    /* so many already */

	bool neighbours;  /* the leaf of the batch in hand, if there is one, is for the next rank */
	Pair pair[PAIRS]; /* what came of that */

	Budget looks, copies, passes, leaves, jumps;
	double error, reach; /* largest of late: fading */
	bool seen;
	struct {
		uint64_t update;
		double error;
		float reach;
		double began;
	} odd;                /* update 0: none is; began: going back */
	uint64_t furthest;    /* update */
	uint32_t vain, notes; /* faults since the furthest update moved; notes given */
};

static bool due(const Budget *b, double share, double now) { return now - b->last >= b->cost / share - b->cost; }

static void spent(Budget *b, double began)
{
	b->last = clock_seconds();
	b->cost = b->last - began;
}

/* Ranks do at the same update what not all of them can do when they like: rank 0's clock says when, as all have
 * heard. */
static bool due_together(const Guard *g, int what)
{
	const Ranks *k = g->r->ranks;
	return (k ? k->due : guard_due(g)) >> what & 1;
}

static bool leaves_again(const Guard *g) { return g->level == GUARD_FULL && g->r->target->guard->recompute; }

/* ---- state ---- */

/* The state as it is now, which has its seals: the copy has the same. */
static void keep(Guard *g, int copy)
{
	if (!g->sealed)
		state_seal(&g->state);
	g->sealed = true;
	state_keep(&g->state, copy);
	g->count.kept++;
}

/* Other data may have changed where weights stand: then all begins anew from here. */
static void take(Guard *g)
{
	if (!state_take(&g->state))
		return;
	if (g->swept) {
		g->monitor.before = NEW(&g->own, g->state.pieces, uint64_t);
		g->monitor.after = NEW(&g->own, g->state.pieces, uint64_t);
	}
	g->sealed = g->passing = false;
	keep(g, COPY_RECENT);
	keep(g, COPY_BEFORE);
}

/* ---- going back ---- */

/* To the latest copy that is good, alone or with all ranks.  what: NULL, or the fault because of which. */
static void roll_back(Guard *g, int newest, const char *what)
{
	Run *r = g->r;
	bool enough = what && ++g->vain > PATIENCE;
	unsigned long long update = r->at.updates;
	int copy = state_choose(&g->state, newest, &enough, &g->count.copies);
	if (r->ranks)
		r->ranks->gone = copy < 0; /* all say the same, and leave without another word */
	if (enough)
		fail(&r->cx, MP_FAILED, "start again from the last checkpoint, on another machine or on other cores (taskset)",
		     "update %llu fails again and again: %s", update, what ? what : "it jumps");
	if (copy < 0)
		fail(&r->cx, MP_FAILED, "start again from the last checkpoint, on another machine",
		     "every copy of the weights in memory is broken too");
	state_restore(&g->state, copy);
	g->at = r->at;
	g->sealed = true;
	g->monitor.corrupted_sums = 0;
	if (r->ranks)
		r->ranks->due = 0;                             /* nobody knows what the others were about to do */
	r->target->guard->attach(r->program, &g->monitor); /* the batch in hand is forgotten */
	if (copy != COPY_RECENT)
		g->state.kept[COPY_RECENT].valid = false;
	if (g->passing && r->at.epoch < g->pass_epoch)
		g->passing = g->state.kept[COPY_PASS].valid = false;
	if (what) {
		g->count.rollbacks++;
		g->odd.update = 0; /* if it was odd, this was why */
	}
}

static const char remedy[] =
	"training goes on from a copy of before; look into the memory of this machine if it happens again";

/* What happened, and before it where the run stood. */
static const char *placed(Guard *g, const char *what)
{
	Buf b = { .arena = &g->r->cx.scratch };
	buf_printf(&b, "epoch %llu, update %llu: %s", (unsigned long long)g->r->at.epoch + 1,
	           (unsigned long long)g->r->at.updates, what);
	return b.s;
}

/* Tells what `placed` made, here or on a rank; the end of it, with the rank. */
static const char *told(Guard *g, uint32_t rank, const char *text)
{
	Buf b = { .arena = &g->r->cx.scratch };
	int place = (int)(strchr(text, ':') - text);
	if (rank != UINT32_MAX)
		buf_printf(&b, "rank %u: ", rank);
	buf_puts(&b, text + place + 2);
	if (g->notes++ < MOST_NOTES)
		note(&g->r->cx, remedy, "silent corruption in %.*s: %s", place, text, b.s);
	return b.s;
}

void guard_together(Guard *g, const char *what)
{
	const Saying *all = &g->r->ranks->all;
	bool back = all->kind == SAY_BACK;
	const char *last = NULL;
	if (what)
		last = told(g, UINT32_MAX, placed(g, what));
	else if (back && *all->text)
		last = told(g, all->odd, all->text);
	roll_back(g, back ? all->back : COPY_RECENT, last);
}

/* Alone, or with all others as soon as they meet. */
static void go_back(Guard *g, int newest, const char *what)
{
	const char *text = what ? placed(g, what) : "";
	if (!g->r->ranks) {
		roll_back(g, newest, what ? told(g, UINT32_MAX, text) : NULL);
		return;
	}
	ranks_back(&g->r->cx, g->r->ranks, newest, text);
	guard_together(g, NULL);
}

/* A fault: it is told, and the run goes back. */
static bool fault(Guard *g, uint64_t *count, int newest, const char *what)
{
	++*count;
	go_back(g, newest, what);
	return false;
}

/* ---- what is looked at ---- */

/* found: as state_look. */
static bool look(Guard *g, const uint64_t *found)
{
	const char *what = state_look(&g->state, found);
	g->count.checks++;
	return !what || fault(g, &g->count.state, COPY_RECENT, what);
}

bool guard_state(Guard *g) { return !g->sealed || look(g, NULL); }

/* As the target has it. */
static const Data *data_read(const Guard *g)
{
	const Run *r = g->r;
	return r->target->guard->bound_data ? r->target->guard->bound_data(r->program) : g->bound;
}

/* What is to be guarded of the data: all of it, or this rank's cases. */
static void data_seal(Guard *g, uint64_t batch)
{
	const Run *r = g->r;
	const Data *d = data_read(g);
	uint64_t examples = run_examples(r->net, d), begin = 0, end = d->cases;
	g->data = data_seals_new(&g->own, d, g->r);
	if (!batch)
		g->count.sealed = data_seals_add(g->data, d, begin, end);
	for (uint64_t i = 0; batch && i * batch < examples; i++)
		if (rank_cases(r->ranks, r->net, d, batch, i, &begin, &end))
			g->count.sealed += data_seals_add(g->data, d, begin, end);
}

/* Examples first .. first + count - 1, or all data if there are none. */
static bool data_look(Guard *g, uint64_t first, uint64_t count)
{
	const char *what = data_seals_look(g->data, data_read(g), g->r->net, first, count, &g->count.repaired);
	return !what || fault(g, &g->count.data, COPY_BEFORE, what);
}

static bool data_all(Guard *g) { return data_look(g, 0, 0); }

/* The leaf that was noted, on another core.  A third time says who was right. */
static bool leaf_look(Guard *g, const Batch *b)
{
	Run *r = g->r;
	int second, third;
	double began = clock_seconds();
	uint64_t made = r->target->guard->recompute(r->program, b, g->monitor.leaf, 0, &second);
	g->count.again++;
	spent(&g->leaves, began);
	if (made == g->monitor.leaf_checksum)
		return true;
	if (!data_all(g)) /* broken data would have done this too */
		return false;
	uint64_t verdict = r->target->guard->recompute(r->program, b, g->monitor.leaf, 1, &third);
	int wrong = verdict == made ? g->monitor.leaf_core : verdict == g->monitor.leaf_checksum ? second : -1;
	Buf text = { .arena = &r->cx.scratch };
	if (wrong >= 0)
		buf_printf(
			&text,
			"core %d computed leaf %u of the batch wrongly: core %d has it otherwise, and core %d agrees with that",
			wrong, g->monitor.leaf, wrong == second ? g->monitor.leaf_core : second, third);
	else
		buf_printf(&text,
		           "leaf %u of the batch, computed again on core %d and then on core %d, has come out differently",
		           g->monitor.leaf, second, third);
	return fault(g, &g->count.leaves, COPY_RECENT, text.s);
}

/* A rank's memory may hold another part of the data than those it has looked at so far. */
static bool leaf_readable(void *guard, const Batch *b, uint32_t leaf)
{
	Guard *g = guard;
	const Run *r = g->r;
	uint64_t first, count, begin, end, cases, low, added;
	Validation seen = { 0 };
	if (b->example) /* all cases come to every rank, sooner or later: it has looked at them */
		return true;
	leaf_range(b->count, leaf_count(b->count), leaf, &first, &count);
	run_example(r->net, g->bound, b->first + first, &begin, &cases);
	run_example(r->net, g->bound, b->first + first + count - 1, &low, &cases);
	end = low + cases;
	added = data_seals_add(g->data, data_read(g), begin, end);
	g->count.sealed += added;
	if (added)
		cases_validate(g->bound, &error_fns[r->opt.error], begin, end, &seen);
	return !seen.invalid;
}

/* Nothing is told, and nothing put right, where the others would not hear it. */
static bool all_is_well(void *guard, const Batch *b, uint32_t leaf)
{
	Guard *g = guard;
	(void)b;
	(void)leaf;
	return !(g->sealed && state_look(&g->state, NULL)) &&
	       !data_seals_look(g->data, data_read(g), g->r->net, 0, 0, NULL);
}

void guard_leaves(Guard *g, const Batch *b)
{
	if (!g->neighbours)
		return;
	double began = clock_seconds();
	pairs_compare(g->r, b, &g->monitor, g->at.updates, leaf_readable, all_is_well, g, g->pair);
	g->count.again++;
	spent(&g->leaves, began);
}

/* What came of that.  Broken state or data would have done this too. */
static bool pairs_look(Guard *g)
{
	g->neighbours = false;
	for (int i = 0; i < PAIRS; i++) {
		const char *what = pair_fault(&g->r->cx.scratch, &g->pair[i], i == PAIR_OWN);
		if (g->pair[i].differs && (!guard_state(g) || !data_all(g)))
			return false;
		if (what)
			return fault(g, &g->count.leaves, COPY_RECENT, what);
	}
	return true;
}

/* ---- jumps ---- */

/* What is not finite is looked at whatever it costs: it happens once. */
static bool is_odd(const Guard *g, double error, float reach)
{
	if (!isfinite(error) || !isfinite(reach))
		return true;
	return g->seen && (error > error_jump * g->error || reach > reach_jump * g->reach) &&
	       due(&g->jumps, shares[g->level].jumps, clock_seconds());
}

static void levels_note(Guard *g, double error, float reach)
{
	g->error = fmax(fading * g->error, isfinite(error) ? error : 0);
	g->reach = fmax(fading * g->reach, isfinite(reach) ? reach : 0);
	g->seen = true;
}

/* What is odd is done again; the first time nobody is told. */
static bool jump_look(Guard *g, const Tally *t)
{
	Run *r = g->r;
	double error = t->cases ? t->error / (double)t->cases : 0;
	float reach = g->monitor.max_change;
	bool odd = is_odd(g, error, reach), again = g->odd.update == r->at.updates;
	if (again && memcmp(&g->odd.error, &error, sizeof error) == 0 && memcmp(&g->odd.reach, &reach, sizeof reach) == 0) {
		g->count.replays++;
		g->odd.update = 0;
		spent(&g->jumps, g->odd.began);
		levels_note(g, error, reach);
		return data_all(g); /* that would come out the same, too */
	}
	if (again)
		return fault(g, &g->count.jumps, COPY_RECENT,
		             "the error or a weight change jumped, and was another when the update was done again");
	if (odd && !(r->ranks && r->ranks->library)) { /* sums of the library may come out otherwise without a fault */
		g->odd.update = r->at.updates;
		g->odd.error = error;
		g->odd.reach = reach;
		g->odd.began = clock_seconds();
		go_back(g, COPY_RECENT, NULL);
		return false;
	}
	levels_note(g, error, reach);
	return true;
}

/* ---- the loop's calls ---- */

static void guard_free(void *arg) { arena_free(&((Guard *)arg)->own); }

Guard *guard_begin(Run *r, const Data *data, Order *order, uint64_t batch)
{
	Ctx *cx = &r->cx;
	Guard *g = r->guard;
	if (r->target->guard)
		r->target->guard->attach(r->program, NULL);
	if (!r->opt.guard)
		return NULL;
	if (!r->target->guard)
		fail(cx, MP_BAD_INPUT, "leave --guard out, or train with --target cpu",
		     "target %s cannot be guarded: its memory is not this machine's", r->target->name);
	if (!g) {
		g = NEW(&cx->keep, 1, Guard);
		g->own.cx = cx;
		arena_defer(&cx->keep, guard_free, g);
	}
	guard_free(g);
	*g = (Guard){ .own.cx = cx, .r = r, .level = r->opt.guard, .bound = data, .order = order };
	g->state = (State){ .r = r, .arena = &g->own };
	g->swept = g->level == GUARD_FULL && r->target->guard->fused_checksums;
	g->monitor = (Monitor){
		.check_sums = g->level == GUARD_FULL, .leaf = NO_LEAF, .test_hook = r->test_hook, .test_user = r->test_hook_user
	};
	r->target->guard->attach(r->program, &g->monitor);
	double began = clock_seconds();
	data_seal(g, batch);
	spent(&g->passes, began);
	g->passes.last = began;
	began = clock_seconds();
	take(g);
	spent(&g->copies, began);
	g->looks = g->copies;
	g->leaves.last = g->copies.last;
	if (r->ranks)
		r->ranks->due = (uint32_t)leaves_again(g) << DUE_LEAF; /* the first batch is looked at */
	guard_moved(g);
	return g;
}

void guard_moved(Guard *g)
{
	g->at = g->r->at;
	take(g);
}

bool guard_place(Guard *g)
{
	test_hook_call(&g->monitor, HOOK_BATCH, NULL, 0);
	if (memcmp(&g->at, &g->r->at, sizeof g->at) == 0)
		return true;
	g->r->at = g->at;
	return fault(g, &g->count.position, COPY_RECENT, "where the run stands changed by itself");
}

/* A pass has come round when the next epoch begins; then another may. */
static bool pass_turn(Guard *g)
{
	const Position *at = &g->r->at;
	if (g->passing && g->pass_epoch == at->epoch)
		return true;
	if (g->passing) {
		Kept *kept = g->state.kept, done = kept[COPY_PASS];
		kept[COPY_PASS] = kept[COPY_BEFORE];
		kept[COPY_BEFORE] = done;
		kept[COPY_PASS].valid = g->passing = false;
		g->count.passes++;
	}
	double now = clock_seconds();
	if (at->done || !due_together(g, DUE_PASS))
		return true;
	if (!guard_state(g))
		return false;
	keep(g, COPY_PASS);
	g->passing = true;
	g->pass_epoch = at->epoch;
	g->entered = 0;
	spent(&g->passes, now);
	return true;
}

bool guard_epoch(Guard *g)
{
	test_hook_call(&g->monitor, HOOK_EPOCH, NULL, 0);
	return guard_place(g) && (g->r->ranks || pass_turn(g));
}

static void copy_turn(Guard *g)
{
	if (!due_together(g, DUE_COPY))
		return;
	double now = clock_seconds();
	keep(g, COPY_RECENT);
	spent(&g->copies, now);
}

/* No rank has found anything since the last update: what that made may be kept. */
static bool turns_together(Guard *g)
{
	if (!g->r->ranks)
		return true;
	if (!g->r->at.done && !pass_turn(g))
		return false;
	if (due_together(g, DUE_COPY) && !guard_state(g))
		return false;
	copy_turn(g);
	return true;
}

/* Blocks of examples that the batch is the first to come to. */
static bool blocks_look(Guard *g, const Batch *b)
{
	uint64_t last = (g->at.done + b->count - 1) / SHUFFLE_BLOCK, count;
	for (; g->entered <= last; g->entered++) {
		double began = clock_seconds();
		uint64_t first = order_block(g->order, g->entered, &count);
		if (count && !data_look(g, first, count))
			return false;
		g->passes.cost += clock_seconds() - began;
	}
	return true;
}

/* Ranks do it together; one alone, when it likes. */
static void leaf_choose(Guard *g, const Batch *b)
{
	const Run *r = g->r;
	g->neighbours = r->ranks && due_together(g, DUE_LEAF);
	g->monitor.leaf = NO_LEAF;
	if (g->neighbours)
		g->monitor.leaf = rank_leaf(r, b, r->ranks->comm->rank, g->at.updates);
	else if (!r->ranks && leaves_again(g) && due(&g->leaves, shares[g->level].leaves, clock_seconds()))
		g->monitor.leaf =
			(uint32_t)random_below((uint64_t)r->opt.seed, STREAM_SPLIT, r->at.updates, leaf_count(b->count));
}

bool guard_batch(Guard *g, const Batch *b)
{
	leaf_choose(g, b);
	return !g->passing || blocks_look(g, b);
}

bool guard_summed(Guard *g, const Batch *b)
{
	test_hook_call(&g->monitor, HOOK_SUMMED, NULL, 0);
	if (!turns_together(g))
		return false;
	if (g->neighbours ? !pairs_look(g) : g->monitor.leaf != NO_LEAF && !leaf_look(g, b))
		return false;
	if (g->swept) {
		memset(g->monitor.before, 0, g->state.pieces * sizeof *g->monitor.before);
		memset(g->monitor.after, 0, g->state.pieces * sizeof *g->monitor.after);
		return true;
	}
	if (!g->sealed)
		return true;
	double began = g->level == GUARD_LIGHT ? clock_seconds() : 0;
	if (!look(g, NULL))
		return false;
	if (g->level == GUARD_LIGHT)
		g->looks.cost += clock_seconds() - began;
	g->sealed = false; /* from here on it is the update's */
	return true;
}

bool guard_sums(Guard *g)
{
	return !g->monitor.corrupted_sums ||
	       fault(g, &g->count.sums, COPY_RECENT, "a sum of weight changes changed by itself before it was used");
}

bool guard_applied(Guard *g, const Tally *t)
{
	Run *r = g->r;
	if (g->swept && !look(g, g->monitor.before))
		return false;
	g->sealed = false;
	if (!guard_sums(g) || !jump_look(g, t))
		return false;
	bool sealed = true;
	double now = clock_seconds();
	if (g->swept)
		memcpy(g->state.seal, g->monitor.after, g->state.pieces * sizeof *g->state.seal);
	else if (g->level == GUARD_FULL || due(&g->looks, shares[g->level].state, now))
		state_seal(&g->state);
	else
		sealed = false;
	g->sealed = sealed;
	if (sealed && g->level == GUARD_LIGHT)
		spent(&g->looks, now);
	if (!r->ranks)
		copy_turn(g);
	g->at = r->at;
	if (r->at.updates > g->furthest) {
		g->furthest = r->at.updates;
		g->vain = 0;
	}
	test_hook_call(&g->monitor, HOOK_APPLIED, NULL, 0);
	return true;
}

bool guard_end(Guard *g)
{
	if (!guard_state(g) || (g->level == GUARD_FULL && !data_all(g)))
		return false;
	return !g->r->ranks || !ranks_gather(g->r, (Saying){ 0 }, SAY_END);
}

/* ---- ranks ---- */

/* Leaves that are under way are not due again. */
uint32_t guard_due(const Guard *g)
{
	const Shares *share = &shares[g->level];
	double now = clock_seconds();
	bool leaf = leaves_again(g) && !g->neighbours && due(&g->leaves, share->leaves, now);
	return (uint32_t)due(&g->copies, share->copies, now) << DUE_COPY |
	       (uint32_t)due(&g->passes, share->data, now) << DUE_PASS | (uint32_t)leaf << DUE_LEAF;
}

uint64_t guard_word(const Guard *g)
{
	const State *s = &g->state;
	return g->level == GUARD_FULL && g->sealed
	           ? XXH3_64bits(s->seal, checksum_blocks(s->region[0].bytes) * sizeof *s->seal)
	           : 0;
}

/* ---- for tests ---- */

uint32_t guard_copies(const Guard *g, Region *r)
{
	uint32_t n = 0;
	for (int i = 0; i < COPIES; i++)
		if (g->state.kept[i].valid)
			r[n++] = (Region){ "copies", g->state.kept[i].bytes, g->state.bytes };
	return n;
}

const GuardCount *guard_count(const Guard *g) { return &g->count; }
