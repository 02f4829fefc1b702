/* SPDX-License-Identifier: MIT */
/* Silent data corruption: detected, reported, undone. In: a run between any two steps of an update. Out: the same run,
 * or one rolled back to an earlier update.
 *
 * Training is deterministic, so a run that was rolled back ends with the bits of an undisturbed one, and a guard that
 * finds nothing changes nothing. There are no false alarms, as every check compares bits that must agree:
 *
 *   state      weights, their other layouts and rule state: checksum after an update, verified before the next
 *   sums       gradients: checksum by the target while they are stored (Monitor.check_sums)
 *   data       checksum at the start, verified before an epoch comes to them (data.c)
 *   tables     all that stays as it is: checksum at the start, verified when a pass over the data begins, before a save
 *              and before the end (tables.c)
 *   order      of examples: hash when it is made, verified before it is made anew, and with the tables
 *   leaves     one, now and then, is recomputed on another core, or by another rank (ranks.c)
 *   outliers   an error or a weight change far above recent ones proves nothing: the run is rolled back and replayed,
 *              and if the replay gives the same, it was no fault. A Budget limits how often that is done
 *
 * Snapshots of the state (state.c): a recent one, for faults in what got its checksum later; two more, taken at the
 * start of a pass over the data: a corrupted block may have been so since the pass before, so the run is rolled back
 * to the start of that. With `light`, and for snapshots, passes and leaves, a Budget limits the time spent.
 *
 * Ranks roll back together. One that finds a fault sends a request, which the others receive in their next exchange:
 * before the sums of a batch, or at the end. So they take snapshots after an exchange, for only then all know that no
 * rank found a fault in the last update. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "parts.h"
#include "ranks.h"

enum { SMALL_BLOCKS = (64 << 20) / CHECKSUM_BLOCK }; /* so much data is verified before every save: milliseconds */
enum { REPLAY_UPDATES = 200 }; /* at least so many from one replay of an outlier to the next, whatever the clock says */
static const double error_outlier = 2, change_outlier = 8, decay = 0.99;

/* Shares of the time, by level. */
typedef struct Shares {
	double state, snapshots, data, leaves, outliers;
} Shares;
static const Shares shares[] = {
	[GUARD_LIGHT] = { .state = 0.004, .snapshots = 0.002, .data = 0.003, .outliers = 0.002 },
	[GUARD_FULL] = { .state = 1, .snapshots = 0.005, .data = 0.01, .leaves = 0.01, .outliers = 0.01 },
};

/* Bits of Message.due. */
enum { DUE_SNAPSHOT, DUE_PASS, DUE_LEAF };

static bool due(const Budget *b, double share, double now) { return now - b->last >= b->cost / share - b->cost; }

static void spent(Budget *b, double began)
{
	b->last = clock_seconds();
	b->cost = b->last - began;
}

static bool recomputes_leaves(const Guard *g) { return g->level == GUARD_FULL && g->r->target->guard->recompute; }

/* By this rank's clock. A comparison of leaves in progress is not due again. */
static uint32_t tasks_due(const Guard *g)
{
	const Shares *share = &shares[g->level];
	double now = clock_seconds();
	bool leaf = recomputes_leaves(g) && !g->neighbours && due(&g->leaves, share->leaves, now);
	return (uint32_t)due(&g->snapshots, share->snapshots, now) << DUE_SNAPSHOT |
	       (uint32_t)due(&g->passes, share->data, now) << DUE_PASS | (uint32_t)leaf << DUE_LEAF;
}

/* Ranks do collective tasks at the same update: when they are due by the clock of rank 0, as the last exchange said. */
static bool task_due(const Guard *g, int task)
{
	const Ranks *k = g->r->ranks;
	return (k ? k->due : tasks_due(g)) >> task & 1;
}

/* ---- snapshots ---- */

static void take_snapshot(Guard *g, int which)
{
	if (!g->checksummed)
		state_checksum(&g->state);
	g->checksummed = true;
	snapshot_take(&g->state, which);
	g->count.taken++;
}

/* Binding other data may have moved the weights: then all begins anew. */
static void locate_state(Guard *g)
{
	if (!state_locate(&g->state))
		return;
	if (g->fused) {
		g->monitor.before = NEW(&g->own, g->state.blocks, uint64_t);
		g->monitor.after = NEW(&g->own, g->state.blocks, uint64_t);
	}
	g->checksummed = g->in_pass = false;
	take_snapshot(g, SNAPSHOT_RECENT);
	take_snapshot(g, SNAPSHOT_PREVIOUS);
}

static uint64_t best_hash_now(const Guard *g)
{
	const Run *r = g->r;
	return best_hash(r, r->opt.keep_best ? r->best_weights : NULL, &r->best_at);
}

/* ---- checks ---- */

/* found: as state_mismatch. */
static Status verify_state(Guard *g, const uint64_t *found)
{
	const char *mismatch = state_mismatch(&g->state, found);
	g->count.checks++;
	return mismatch ? guard_fault(g, &g->count.state, SNAPSHOT_RECENT, mismatch) : MP_OK;
}

static Status before_export(void *self)
{
	Guard *g = self;
	return g->checksummed ? verify_state(g, NULL) : MP_OK;
}

/* As the target reads it. */
static const Data *data_read(const Guard *g)
{
	const Run *r = g->r;
	return r->target->guard->bound_data ? r->target->guard->bound_data(r->program) : g->bound;
}

/* All that nothing writes to while the run trains. */
static void checksum_tables(Guard *g)
{
	Run *r = g->r;
	Tables *t = &g->tables;
	const Data *d = g->bound, *read = data_read(g);
	tables_clear(t, r);
	table_add(t, (Region){ "options", &r->net, offsetof(Run, at) - offsetof(Run, net) });
	table_add(t, (Region){ "scale and classes", &r->scale, offsetof(Run, report) - offsetof(Run, scale) });
	tables_add_arena(t, "network", r->net->arena);
	tables_add_arena(t, "layout of the network", &r->cx.fixed);
	table_add(t, (Region){ "description of the data", (void *)d, offsetof(Data, extra) });
	if (read != d)
		table_add(t, (Region){ "description of the data", (void *)read, offsetof(Data, extra) });
	table_add(t, (Region){ "order of examples", g->order, offsetof(Order, epoch) });
	table_add(t, g->loop);
	if (!r->ranks) /* they add checksums of cases of other ranks */
		tables_add_arena(t, "checksums of the data", &g->fixed);
	if (r->target->guard->tables)
		r->target->guard->tables(r->program, table_add, t);
	tables_checksum(t);
}

/* They may have changed since tables were last verified: the run is rolled back to before that. */
static Status verify_tables(Guard *g)
{
	const GuardHooks *hooks = g->r->target->guard;
	const char *mismatch = tables_mismatch(&g->tables, &g->count.repaired);
	uint64_t ones = hooks->tables ? hooks->tables(g->r->program, NULL, NULL) : 0;
	g->count.repaired += ones;
	if (mismatch || ones)
		return guard_fault(g, &g->count.tables, SNAPSHOT_PREVIOUS,
		                   mismatch ? mismatch : "a unit that is always 1 changed by itself, and was repaired");
	if (!order_intact(g->order))
		return guard_fault(g, &g->count.order, SNAPSHOT_PREVIOUS, "the order of examples changed by itself");
	if (g->state.best_hash != best_hash_now(g))
		return guard_fault(g, &g->count.best, SNAPSHOT_PREVIOUS, "the weights of the best epoch changed by themselves");
	return MP_OK;
}

/* Of all data, or of this rank's cases. */
static void checksum_data(Guard *g, uint64_t batch)
{
	const Run *r = g->r;
	const Data *d = data_read(g);
	uint64_t examples = run_examples(r->net, d), begin = 0, end = d->cases;
	g->data = data_checksums_new(&g->fixed, d, g->r);
	if (!batch)
		g->count.data_blocks = data_checksums_add(g->data, d, begin, end);
	for (uint64_t i = 0; batch && i * batch < examples; i++)
		if (rank_cases(r->ranks, r->net, d, batch, i, &begin, &end))
			g->count.data_blocks += data_checksums_add(g->data, d, begin, end);
}

/* Examples first .. first + count - 1; count 0: all data. */
static Status verify_data(Guard *g, uint64_t first, uint64_t count)
{
	const char *mismatch = data_mismatch(g->data, data_read(g), g->r->net, first, count, &g->count.repaired);
	return mismatch ? guard_fault(g, &g->count.data, SNAPSHOT_PREVIOUS, mismatch) : MP_OK;
}

/* Nothing but the end of an update or an epoch changes it. */
static Status verify_position(Guard *g)
{
	if (memcmp(&g->at, &g->r->at, sizeof g->at) == 0)
		return MP_OK;
	g->r->at = g->at;
	return guard_fault(g, &g->count.position, SNAPSHOT_RECENT, "the position of the run changed by itself");
}

/* With `full`, the weights were trained on intact data and tables. */
static Status before_save(void *self)
{
	Guard *g = self;
	test_hook_call(&g->monitor, HOOK_SAVE, NULL, 0);
	TRY(before_export(g));
	g->at.seconds = g->r->at.seconds; /* with ranks, the clock was read since */
	TRY(verify_position(g));
	if (g->level != GUARD_FULL)
		return MP_OK;
	TRY(verify_tables(g));
	double began = clock_seconds();
	if (g->count.data_blocks > SMALL_BLOCKS && !due(&g->saves, shares[g->level].data, began))
		return MP_OK;
	TRY(verify_data(g, 0, 0));
	spent(&g->saves, began);
	return MP_OK;
}

/* Recomputes the leaf on another core. If the results differ, a third computation tells which was wrong. */
static Status verify_leaf(Guard *g, const Batch *b)
{
	Run *r = g->r;
	int second, third;
	double began = clock_seconds();
	uint64_t found = r->target->guard->recompute(r->program, b, g->monitor.leaf, 0, &second);
	g->count.recomputed++;
	spent(&g->leaves, began);
	if (found == g->monitor.leaf_checksum)
		return MP_OK;
	TRY(verify_data(g, 0, 0)); /* corrupted data would have the same effect */
	uint64_t verdict = r->target->guard->recompute(r->program, b, g->monitor.leaf, 1, &third);
	int wrong = verdict == found ? g->monitor.leaf_core : verdict == g->monitor.leaf_checksum ? second : -1;
	Buf text = { .arena = &r->cx.scratch };
	if (wrong >= 0)
		buf_printf(&text,
		           "core %d computed leaf %u of the batch wrongly: core %d has another result, and core %d agrees "
		           "with that",
		           wrong, g->monitor.leaf, wrong == second ? g->monitor.leaf_core : second, third);
	else
		buf_printf(&text, "leaf %u of the batch, recomputed on core %d and then on core %d, has come out differently",
		           g->monitor.leaf, second, third);
	return guard_fault(g, &g->count.leaves, SNAPSHOT_RECENT, text.s);
}

/* A leaf of another rank: its cases may not have been validated here. */
static bool leaf_readable(void *self, const Batch *b, uint32_t leaf)
{
	Guard *g = self;
	const Run *r = g->r;
	uint64_t first, count, begin, end, cases, last, added;
	Validation seen = { 0 };
	if (b->example) /* shuffled: every rank has validated all cases */
		return true;
	leaf_range(b->count, leaf_count(b->count), leaf, &first, &count);
	run_example(r->net, g->bound, b->first + first, &begin, &cases);
	run_example(r->net, g->bound, b->first + first + count - 1, &last, &cases);
	end = last + cases;
	added = data_checksums_add(g->data, data_read(g), begin, end);
	g->count.data_blocks += added;
	if (added)
		cases_validate(g->bound, run_domain(r->net, r->opt.error), begin, end, &seen);
	return !seen.invalid;
}

/* Neither reports nor repairs: the other ranks are in the middle of a comparison. */
static bool all_intact(void *self, const Batch *b, uint32_t leaf)
{
	Guard *g = self;
	(void)b, (void)leaf;
	return !(g->checksummed && state_mismatch(&g->state, NULL)) &&
	       !data_mismatch(g->data, data_read(g), g->r->net, 0, 0, NULL);
}

/* After the sum of a batch: neighbouring ranks compare leaves, if that is due. */
static void compare_leaves(void *self, const Batch *b)
{
	Guard *g = self;
	if (!g->neighbours)
		return;
	double began = clock_seconds();
	pairs_compare(g->r, b, &g->monitor, g->at.updates, leaf_readable, all_intact, g, g->pair);
	g->count.recomputed++;
	spent(&g->leaves, began);
}

/* The result of that. Corrupted state or data would have the same effect. */
static Status verify_pairs(Guard *g)
{
	g->neighbours = false;
	for (int i = 0; i < PAIRS; i++) {
		const char *fault = pair_fault(&g->r->cx.scratch, &g->pair[i], i == PAIR_OWN);
		if (g->pair[i].differs) {
			TRY(before_export(g));
			TRY(verify_data(g, 0, 0));
		}
		if (fault)
			return guard_fault(g, &g->count.leaves, SNAPSHOT_RECENT, fault);
	}
	return MP_OK;
}

/* ---- outliers ---- */

/* Values that are not finite are always replayed, whatever the budget: that happens once. */
static bool is_outlier(const Guard *g, double error, float change)
{
	if (!isfinite(error) || !isfinite(change))
		return true;
	return g->has_maxima && (error > error_outlier * g->error || change > change_outlier * g->change) &&
	       (!g->count.replays || g->r->at.updates >= g->outlier.replayed + REPLAY_UPDATES) &&
	       due(&g->outliers, shares[g->level].outliers, clock_seconds());
}

static void note_maxima(Guard *g, double error, float change)
{
	g->error = fmax(decay * g->error, isfinite(error) ? error : 0);
	g->change = fmax(decay * g->change, isfinite(change) ? change : 0);
	g->has_maxima = true;
}

/* The first time, an outlier is replayed without a report. */
static Status check_outlier(Guard *g, const Tally *t)
{
	Run *r = g->r;
	double error = tally_mean(t);
	float change = g->monitor.max_change;
	bool outlier = is_outlier(g, error, change), replayed = g->outlier.update == r->at.updates;
	if (replayed && memcmp(&g->outlier.error, &error, sizeof error) == 0 &&
	    memcmp(&g->outlier.change, &change, sizeof change) == 0) {
		g->count.replays++;
		g->outlier.replayed = g->outlier.update;
		g->outlier.update = 0;
		spent(&g->outliers, g->outlier.began);
		note_maxima(g, error, change);
		return verify_data(g, 0, 0); /* corrupted data would give the same again */
	}
	if (replayed)
		return guard_fault(g, &g->count.outliers, SNAPSHOT_RECENT,
		                   "the error or a weight change jumped, and was another when the update was replayed");
	if (outlier && !(r->ranks && r->ranks->mpi_sum)) { /* sums of the MPI library may differ without a fault */
		g->outlier.update = r->at.updates;
		g->outlier.error = error;
		g->outlier.change = change;
		g->outlier.began = clock_seconds();
		return guard_roll_back(g, SNAPSHOT_RECENT, NULL);
	}
	note_maxima(g, error, change);
	return MP_OK;
}

/* ---- observer of the training loop ---- */

/* After an update, as it must be. The clock may say anything. */
static void expect_update(Guard *g, const Tally *t)
{
	g->at.updates++;
	g->at.done += g->batch_count;
	tally_add(&g->at.tally, t);
	g->at.seconds = g->r->at.seconds;
	g->at.simulated = g->r->at.simulated;
}

/* After an epoch; what test data and the best epoch make of it cannot be known. */
static void expect_epoch(Guard *g)
{
	const Position *at = &g->r->at;
	g->at.last = g->at.tally;
	g->at.tally = (Tally){ 0 };
	g->at.done = 0;
	g->at.epoch++;
	g->at.best = at->best;
	g->at.best_epoch = at->best_epoch;
	g->at.test = at->test;
	g->at.seconds = at->seconds;
}

static Status before_update(void *self)
{
	Guard *g = self;
	test_hook_call(&g->monitor, HOOK_BATCH, NULL, 0);
	return verify_position(g);
}

/* A pass over the data ends when the next epoch begins; then another may begin. */
static Status pass_step(Guard *g)
{
	const Position *at = &g->r->at;
	if (g->in_pass && g->pass_epoch == at->epoch)
		return MP_OK;
	if (g->in_pass) {
		Snapshot *s = g->state.snapshot, done = s[SNAPSHOT_PASS];
		s[SNAPSHOT_PASS] = s[SNAPSHOT_PREVIOUS];
		s[SNAPSHOT_PREVIOUS] = done;
		s[SNAPSHOT_PASS].valid = g->in_pass = false;
		g->count.passes++;
	}
	double now = clock_seconds();
	if (at->done || !task_due(g, DUE_PASS))
		return MP_OK;
	TRY(before_export(g));
	TRY(verify_tables(g));
	take_snapshot(g, SNAPSHOT_PASS);
	g->in_pass = true;
	g->pass_epoch = at->epoch;
	g->entered = 0;
	spent(&g->passes, now);
	return MP_OK;
}

static Status begin_epoch(void *self)
{
	Guard *g = self;
	test_hook_call(&g->monitor, HOOK_EPOCH, NULL, 0);
	TRY(before_update(g));
	return g->r->ranks ? MP_OK : pass_step(g);
}

static void snapshot_step(Guard *g)
{
	if (!task_due(g, DUE_SNAPSHOT))
		return;
	double now = clock_seconds();
	take_snapshot(g, SNAPSHOT_RECENT);
	spent(&g->snapshots, now);
}

/* After an exchange in which no rank reported a fault: the last update may be kept. */
static Status collective_steps(Guard *g)
{
	if (!g->r->at.done)
		TRY(pass_step(g));
	if (task_due(g, DUE_SNAPSHOT))
		TRY(before_export(g));
	snapshot_step(g);
	return MP_OK;
}

/* Blocks of examples that the batch is the first to use. */
static Status verify_blocks(Guard *g, const Batch *b)
{
	uint64_t last = (g->at.done + b->count - 1) / SHUFFLE_BLOCK, count;
	for (; g->entered <= last; g->entered++) {
		double began = clock_seconds();
		uint64_t first = order_block(g->order, g->entered, &count);
		if (first + count > g->order->examples)
			return guard_fault(g, &g->count.order, SNAPSHOT_PREVIOUS, "the order of examples changed by itself");
		if (count)
			TRY(verify_data(g, first, count));
		g->passes.cost += clock_seconds() - began;
	}
	return MP_OK;
}

static void choose_leaf(Guard *g, const Batch *b)
{
	const Run *r = g->r;
	g->neighbours = r->ranks && task_due(g, DUE_LEAF);
	g->monitor.leaf = NO_LEAF;
	if (g->neighbours)
		g->monitor.leaf = rank_leaf(r, b, r->ranks->comm->rank, g->at.updates);
	else if (!r->ranks && recomputes_leaves(g) && due(&g->leaves, shares[g->level].leaves, clock_seconds()))
		g->monitor.leaf =
			(uint32_t)random_below((uint64_t)r->opt.seed, STREAM_SPLIT, r->at.updates, leaf_count(b->count));
}

static Status before_batch(void *self, const Batch *b)
{
	Guard *g = self;
	g->batch_count = b->count;
	choose_leaf(g, b);
	return g->in_pass ? verify_blocks(g, b) : MP_OK;
}

/* What has been found to have changed while the batch was computed. */
static Status verify_use(Guard *g)
{
	if (g->monitor.corrupted_lists)
		return guard_fault(g, &g->count.tables, SNAPSHOT_RECENT,
		                   "transposed index lists changed by themselves before they were used");
	return g->order->damaged
	           ? guard_fault(g, &g->count.order, SNAPSHOT_PREVIOUS, "the order of examples changed by itself")
	           : MP_OK;
}

static Status after_sum(void *self, const Batch *b)
{
	Guard *g = self;
	test_hook_call(&g->monitor, HOOK_SUMMED, NULL, 0);
	TRY(verify_position(g));
	TRY(verify_use(g));
	if (g->r->ranks)
		TRY(collective_steps(g));
	if (g->neighbours)
		TRY(verify_pairs(g));
	else if (g->monitor.leaf != NO_LEAF)
		TRY(verify_leaf(g, b));
	if (g->fused) {
		memset(g->monitor.before, 0, g->state.blocks * sizeof *g->monitor.before);
		memset(g->monitor.after, 0, g->state.blocks * sizeof *g->monitor.after);
		return MP_OK;
	}
	if (!g->checksummed)
		return MP_OK;
	double began = g->level == GUARD_LIGHT ? clock_seconds() : 0;
	TRY(verify_state(g, NULL));
	if (g->level == GUARD_LIGHT)
		g->checks.cost += clock_seconds() - began;
	g->checksummed = false; /* the update changes it */
	return MP_OK;
}

static Status verify_sums(Guard *g)
{
	return g->monitor.corrupted_sums ? guard_fault(g, &g->count.sums, SNAPSHOT_RECENT,
	                                               "a sum of gradients changed by itself before it was used")
	                                 : MP_OK;
}

static Status after_apply(void *self, const Tally *t)
{
	Guard *g = self;
	Run *r = g->r;
	if (g->fused)
		TRY(verify_state(g, g->monitor.before));
	g->checksummed = false;
	TRY(verify_sums(g));
	TRY(check_outlier(g, t));
	bool checksummed = true;
	double now = clock_seconds();
	if (g->fused)
		memcpy(g->state.checksum, g->monitor.after, g->state.blocks * sizeof *g->state.checksum);
	else if (g->level == GUARD_FULL || due(&g->checks, shares[g->level].state, now))
		state_checksum(&g->state);
	else
		checksummed = false;
	g->checksummed = checksummed;
	if (checksummed && g->level == GUARD_LIGHT)
		spent(&g->checks, now);
	expect_update(g, t);
	TRY(verify_position(g));
	if (!r->ranks)
		snapshot_step(g);
	if (r->at.updates > g->furthest) {
		g->furthest = r->at.updates;
		g->attempts = 0;
	}
	test_hook_call(&g->monitor, HOOK_APPLIED, NULL, 0);
	return MP_OK;
}

static void after_epoch(void *self)
{
	Guard *g = self;
	expect_epoch(g);
	if (g->r->report.best)
		g->state.best_hash = best_hash_now(g);
	locate_state(g);
	if (g->options_changed)
		checksum_tables(g);
	g->options_changed = false;
}

void guard_options_changed(Guard *g)
{
	if (!g || !g->r->training)
		return;
	checksum_tables(g);
	g->options_changed = true;
}

static Status before_end(void *self)
{
	Guard *g = self;
	test_hook_call(&g->monitor, HOOK_END, NULL, 0);
	TRY(before_export(g));
	TRY(verify_position(g));
	TRY(verify_tables(g));
	if (g->level == GUARD_FULL)
		TRY(verify_data(g, 0, 0));
	return g->r->ranks ? ranks_vote(g->r, (Message){ 0 }, MSG_END) : MP_OK;
}

const Observer guard_observer = {
	.begin_epoch = begin_epoch,
	.before_update = before_update,
	.before_batch = before_batch,
	.after_sum = after_sum,
	.after_apply = after_apply,
	.before_export = before_export,
	.before_save = before_save,
	.after_epoch = after_epoch,
	.before_end = before_end,
};

/* ---- observer of the ranks' exchanges ---- */

/* All ranks must have the same weights; checksum 0: not known. */
static Status before_vote(void *self, Message *own)
{
	Guard *g = self;
	const State *s = &g->state;
	TRY(verify_sums(g));
	if (g->level == GUARD_FULL && g->checksummed)
		own->vote[0].checksum = XXH3_64bits(s->checksum, checksum_blocks(s->region[0].bytes) * sizeof *s->checksum);
	own->due = tasks_due(g);
	return MP_OK;
}

static const RankObserver rank_observer = {
	.before_vote = before_vote,
	.roll_back = guard_roll_back_ranks,
	.after_reduce = compare_leaves,
};

/* ---- start ---- */

static void guard_free(void *arg)
{
	Guard *g = arg;
	arena_free(&g->own);
	arena_free(&g->fixed);
	arena_free(&g->tables.arena);
}

static Guard *guard_new(Run *r)
{
	Guard *g = r->guard;
	if (!g) {
		g = NEW(&r->cx.keep, 1, Guard);
		g->own.cx = g->fixed.cx = g->tables.arena.cx = &r->cx;
		arena_defer(&r->cx.keep, guard_free, g);
	}
	guard_free(g);
	return g;
}

Guard *guard_begin(Run *r, const Data *data, Order *order, uint64_t batch, const Region *loop)
{
	Ctx *cx = &r->cx;
	if (r->target->guard)
		r->target->guard->attach(r->program, NULL);
	if (!r->opt.guard)
		return NULL;
	if (!r->target->guard)
		fail(cx, MP_BAD_INPUT, "leave --guard out, or train with --target cpu",
		     "target %s cannot be guarded: its memory is not this machine's", r->target->name);
	Guard *g = guard_new(r);
	*g = (Guard){ .own.cx = cx,
		          .fixed.cx = cx,
		          .tables.arena.cx = cx,
		          .r = r,
		          .level = r->opt.guard,
		          .bound = data,
		          .order = order,
		          .loop = *loop };
	order->guarded = g->level == GUARD_FULL;
	g->state = (State){ .r = r, .arena = &g->own };
	g->fused = g->level == GUARD_FULL && r->target->guard->fused_checksums;
	g->monitor = (Monitor){
		.check_sums = g->level == GUARD_FULL, .leaf = NO_LEAF, .test_hook = r->test_hook, .test_user = r->test_hook_user
	};
	r->target->guard->attach(r->program, &g->monitor);
	double began = clock_seconds();
	checksum_data(g, batch);
	checksum_tables(g);
	g->state.best_hash = best_hash_now(g);
	spent(&g->passes, began);
	g->passes.last = began;
	began = clock_seconds();
	locate_state(g);
	spent(&g->snapshots, began);
	g->checks = g->snapshots;
	g->leaves.last = g->snapshots.last;
	if (r->ranks) {
		r->ranks->observer = &rank_observer;
		r->ranks->observer_self = g;
		r->ranks->due = (uint32_t)recomputes_leaves(g) << DUE_LEAF; /* from the first batch on */
	}
	g->at = r->at;
	return g;
}

/* ---- for tests ---- */

uint32_t guard_snapshots(const Guard *g, Region *r)
{
	uint32_t n = 0;
	for (int i = 0; i < SNAPSHOTS; i++)
		if (g->state.snapshot[i].valid)
			r[n++] = (Region){ "snapshots", g->state.snapshot[i].bytes, g->state.bytes };
	return n;
}

uint64_t guard_tables(const Guard *g, Region *r, uint64_t most)
{
	for (uint64_t i = 0; i < g->tables.count && i < most; i++)
		r[i] = g->tables.table[i].is;
	return g->tables.count;
}

const GuardCount *guard_count(const Guard *g) { return &g->count; }
