/* SPDX-License-Identifier: MIT */
/* Silent corruption: found, told, undone.  In: a run between any two steps of an update.  Out: the same run, or one that stands
 * where it stood some updates before.
 *
 * Must hold: training is deterministic, so a run that was rolled back ends with the bits of one that never was disturbed, and a
 * guard that finds nothing changes nothing.  There are no false alarms, for every verdict compares bits that have to agree:
 *
 *   state      weights, their other forms and rule state are sealed after an update and looked at before the next
 *   sums       of weight changes are sealed by the target while they rest (Watch.sums)
 *   data       are sealed at the start and looked at before an epoch comes to them (guard_data.c)
 *   leaves     one, now and then, is computed again on another core
 *   jumps      an error or a weight change far beyond those before is only odd: the run goes back, and if it comes out the same
 *              again, then that is how it is.  A run that jumps all the time is not done twice: a Budget says how often
 *
 * Copies of the state, each with its seals: `recent`, for faults in what was sealed after it; `before` and `pass`, taken where a
 * pass over the data began: a block that is found broken may have been so since it was looked at last, so the run goes back
 * to where the pass before began.  With `light`, and for copies, passes and leaves, a Budget holds down what is spent. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "guard_data.h"
#include "ranks.h"

enum { MOST_NOTES = 20, PATIENCE = 6 };    /* faults told one by one; faults without an update between them */
static const double error_jump = 2, reach_jump = 8, fading = 0.99;

/* Shares of the time, by level. */
typedef struct Shares { double state, copies, data, leaves, jumps; } Shares;
static const Shares shares[] = {
	[GUARD_LIGHT] = { .state = 0.004, .copies = 0.002, .data = 0.003, .jumps = 0.002 },
	[GUARD_FULL] = { .state = 1, .copies = 0.005, .data = 0.01, .leaves = 0.015, .jumps = 0.01 },
};

typedef struct Budget { double cost, last; } Budget;         /* of the last time, and when that was */

typedef struct Kept {
	bool valid;
	Position at, best_at;
	uint8_t *bytes;           /* all regions, one after the other */
	uint64_t *seal;
	double *best;             /* with keep-best */
} Kept;

struct Guard {
	Run *r;
	int level;
	Arena own;                /* all memory of one call of run_train */
	Watch watch;
	GuardCount count;

	Region region[MOST_REGIONS]; uint32_t regions;
	uint64_t bytes, pieces;   /* of all regions */
	uint64_t *seal;           /* [pieces] */
	bool sealed;              /* they are of the state as it should be now */
	bool swept;               /* updates look at the state and seal it: Watch.was, Watch.is */
	Position at;              /* as it should be now */
	Kept recent, pass, before;

	const Data *bound;
	DataSeals *data;
	Order *order;
	bool passing;             /* blocks of examples are looked at when the epoch comes to them, */
	uint64_t pass_epoch;      /* in this one; */
	uint64_t entered;         /* so many already */

	Budget looks, copies, passes, leaves, jumps;
	double error, reach;      /* largest of late: fading */
	bool seen;
	struct { uint64_t update; double error; float reach; double began; } odd; /* update 0: none is; began: going back */
	uint64_t furthest;        /* update */
	uint32_t vain, notes;     /* faults since the furthest update moved; notes given */
};

uint64_t seal_of(const void *at, uint64_t bytes)
{
	uint64_t seal = 0;
	for (uint64_t done = 0, n; done < bytes; done += n) {
		uint32_t word = 0;
		n = bytes - done < sizeof word ? bytes - done : sizeof word;
		memcpy(&word, (const uint8_t *)at + done, n);
		seal += word * seal_factor(done / sizeof word);
	}
	return seal;
}

void watch_moment(const Watch *w, int moment, void *sum, uint64_t bytes)
{
	if (w->moment)
		w->moment(w->user, moment, sum, bytes);
}

static bool due(const Budget *b, double share, double now)
{
	return now - b->last >= b->cost / share - b->cost;
}

static void spent(Budget *b, double began)
{
	b->last = clock_seconds();
	b->cost = b->last - began;
}

/* ---- state ---- */

static uint64_t seal_piece(const Guard *g, const void *at, uint64_t bytes)
{
	return g->r->target->seal ? g->r->target->seal(g->r->program, at, bytes) : seal_of(at, bytes);
}

static void state_seal(Guard *g)
{
	uint64_t *seal = g->seal;
	for (uint32_t i = 0; i < g->regions; i++)
		for (uint64_t at = 0; at < g->region[i].bytes; at += PIECE)
			*seal++ = seal_piece(g, (uint8_t *)g->region[i].at + at, piece_size(g->region[i].bytes, at));
	g->sealed = true;
}

static bool copy_is_good(const Guard *g, const Kept *k)
{
	const uint8_t *bytes = k->bytes;
	uint64_t n = 0;
	for (uint32_t i = 0; i < g->regions; bytes += g->region[i++].bytes)
		for (uint64_t at = 0; at < g->region[i].bytes; at += PIECE)
			if (k->seal[n++] != seal_piece(g, bytes + at, piece_size(g->region[i].bytes, at)))
				return false;
	return true;
}

static Kept kept_new(Guard *g)
{
	return (Kept){ .bytes = arena_room(&g->own, g->bytes, 1), .seal = NEW(&g->own, g->pieces, uint64_t),
	               .best = g->r->opt.keep_best ? NEW(&g->own, g->r->net->links, double) : NULL };
}

/* The state as it is now, which has its seals: the copy has the same. */
static void keep(Guard *g, Kept *k)
{
	const Run *r = g->r;
	uint8_t *to = k->bytes;
	if (!g->sealed)
		state_seal(g);
	for (uint32_t i = 0; i < g->regions; to += g->region[i++].bytes)
		memcpy(to, g->region[i].at, g->region[i].bytes);
	memcpy(k->seal, g->seal, g->pieces * sizeof *k->seal);
	k->at = r->at;
	k->best_at = r->best_at;
	if (k->best)
		memcpy(k->best, r->best_weights, r->net->links * sizeof *k->best);
	k->valid = true;
	g->count.kept++;
}

/* Other data may have changed where weights stand: then all begins anew from here. */
static void state_take(Guard *g)
{
	Region now[MOST_REGIONS] = { { 0 } };
	uint32_t regions = g->r->target->regions(g->r->program, now);
	if (g->seal && regions == g->regions && memcmp(now, g->region, sizeof now) == 0)
		return;
	memcpy(g->region, now, sizeof now);
	g->regions = regions;
	g->bytes = g->pieces = 0;
	for (uint32_t i = 0; i < regions; i++) {
		g->bytes += now[i].bytes;
		g->pieces += pieces_of(now[i].bytes);
	}
	g->seal = NEW(&g->own, g->pieces, uint64_t);
	if (g->swept) {
		g->watch.was = NEW(&g->own, g->pieces, uint64_t);
		g->watch.is = NEW(&g->own, g->pieces, uint64_t);
	}
	g->recent = kept_new(g);
	g->pass = kept_new(g);
	g->before = kept_new(g);
	g->sealed = g->passing = false;
	keep(g, &g->recent);
	keep(g, &g->before);
}

/* ---- going back ---- */

static void roll_back(Guard *g, Kept *to)
{
	Run *r = g->r;
	Kept *const older[] = { to, &g->pass, &g->before };
	for (size_t i = 0; i < COUNT(older); i++) {
		Kept *k = older[i];
		if (!k->valid || k->at.updates > to->at.updates)
			continue;
		if (!copy_is_good(g, k)) {
			k->valid = false;
			g->count.copies++;
			continue;
		}
		const uint8_t *from = k->bytes;
		for (uint32_t n = 0; n < g->regions; from += g->region[n++].bytes)
			memcpy(g->region[n].at, from, g->region[n].bytes);
		memcpy(g->seal, k->seal, g->pieces * sizeof *g->seal);
		double seconds = r->at.seconds;
		r->at = k->at;
		r->at.seconds = seconds;
		r->best_at = k->best_at;
		if (k->best)
			memcpy(r->best_weights, k->best, r->net->links * sizeof *k->best);
		g->at = r->at;
		g->sealed = true;
		g->watch.broken = 0;
		r->target->watch(r->program, &g->watch);     /* the batch in hand is forgotten */
		if (k != &g->recent)
			g->recent.valid = false;
		if (g->passing && r->at.epoch < g->pass_epoch)
			g->passing = g->pass.valid = false;
		return;
	}
	fail(&r->cx, MP_FAILED, "start again from the last checkpoint, on another machine", "every copy of the weights in memory is broken too");
}

static const char remedy[] = "training goes on from a copy of before; look into the memory of this machine if it happens again";

/* A fault: it is told, and the run goes back.  Ranks cannot go back alone. */
static bool fault(Guard *g, uint64_t *count, Kept *to, const char *what)
{
	Run *r = g->r;
	++*count;
	if (r->ranks)
		fail(&r->cx, MP_FAILED, "start the job again from its last checkpoint", "rank %u, update %llu: %s", r->ranks->comm->rank,
		     (unsigned long long)r->at.updates, what);
	if (++g->vain > PATIENCE)
		fail(&r->cx, MP_FAILED, "start again from the last checkpoint, on another machine or on other cores (taskset)",
		     "update %llu fails again and again: %s", (unsigned long long)r->at.updates, what);
	if (g->notes++ < MOST_NOTES)
		note(&r->cx, remedy, "silent corruption in epoch %llu, update %llu: %s", (unsigned long long)r->at.epoch + 1,
		     (unsigned long long)r->at.updates, what);
	g->count.rollbacks++;
	g->odd.update = 0;
	roll_back(g, to->valid ? to : g->pass.valid ? &g->pass : &g->before);
	return false;
}

/* ---- what is looked at ---- */

/* A piece of a region has this seal. */
static bool piece_changed(Guard *g, const Region *region, uint64_t at, uint64_t should, uint64_t is)
{
	Buf b = { .arena = &g->r->cx.scratch };
	uint64_t size = piece_size(region->bytes, at), bit;
	if (flipped_bit(size, should, is, &bit))
		buf_printf(&b, "bit %llu of number %llu of the %s changed by itself", (unsigned long long)bit % 32,
		           (unsigned long long)(8 * at + bit) / 32, region->name);
	else
		buf_printf(&b, "some of bytes %llu to %llu of the %s changed by themselves", (unsigned long long)at,
		           (unsigned long long)(at + size - 1), region->name);
	return fault(g, &g->count.state, &g->recent, b.s);
}

/* Seals as they are: found by an update, or made here. */
static bool state_compare(Guard *g, const uint64_t *found)
{
	uint64_t piece = 0;
	g->count.checks++;
	for (uint32_t i = 0; i < g->regions; i++)
		for (uint64_t at = 0; at < g->region[i].bytes; at += PIECE, piece++) {
			const Region *region = &g->region[i];
			uint64_t is = found ? found[piece] : seal_piece(g, (uint8_t *)region->at + at, piece_size(region->bytes, at));
			if (is != g->seal[piece])
				return piece_changed(g, region, at, g->seal[piece], is);
		}
	return true;
}

static bool state_look(Guard *g)
{
	return state_compare(g, NULL);
}

bool guard_state(Guard *g)
{
	return !g->sealed || state_look(g);
}

/* Examples first .. first + count - 1, or all data if there are none. */
static bool data_look(Guard *g, uint64_t first, uint64_t count)
{
	const Run *r = g->r;
	const Data *d = r->target->reads ? r->target->reads(r->program) : g->bound;
	const char *what = data_seals_look(g->data, d, r->net, first, count, &g->count.repaired);
	return !what || fault(g, &g->count.data, &g->before, what);
}

static bool data_all(Guard *g)
{
	return data_look(g, 0, 0);
}

/* The leaf that was noted, on another core.  A third time says who was right. */
static bool leaf_look(Guard *g, const Batch *b)
{
	Run *r = g->r;
	int second, third;
	double began = clock_seconds();
	uint64_t made = r->target->again(r->program, b, g->watch.leaf, 0, &second);
	g->count.again++;
	spent(&g->leaves, began);
	if (made == g->watch.made)
		return true;
	if (!data_all(g))                                    /* broken data would have done this too */
		return false;
	uint64_t verdict = r->target->again(r->program, b, g->watch.leaf, 1, &third);
	int wrong = verdict == made ? g->watch.core : verdict == g->watch.made ? second : -1;
	Buf text = { .arena = &r->cx.scratch };
	if (wrong >= 0)
		buf_printf(&text, "core %d computed leaf %u of the batch wrongly: core %d has it otherwise, and core %d agrees with that", wrong,
		           g->watch.leaf, wrong == second ? g->watch.core : second, third);
	else
		buf_printf(&text, "leaf %u of the batch, computed again on core %d and then on core %d, has come out differently", g->watch.leaf,
		           second, third);
	return fault(g, &g->count.leaves, &g->recent, text.s);
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
	float reach = g->watch.reach;
	bool odd = is_odd(g, error, reach), again = g->odd.update == r->at.updates;
	if (again && memcmp(&g->odd.error, &error, sizeof error) == 0 && memcmp(&g->odd.reach, &reach, sizeof reach) == 0) {
		g->count.replays++;
		g->odd.update = 0;
		spent(&g->jumps, g->odd.began);
		levels_note(g, error, reach);
		return data_all(g);                          /* that would come out the same, too */
	}
	if (again)
		return fault(g, &g->count.jumps, &g->recent, "the error or a weight change jumped, and was another when the update was done again");
	if (odd && !r->ranks) {
		g->odd.update = r->at.updates;
		g->odd.error = error;
		g->odd.reach = reach;
		g->odd.began = clock_seconds();
		roll_back(g, g->recent.valid ? &g->recent : g->pass.valid ? &g->pass : &g->before);
		return false;
	}
	levels_note(g, error, reach);
	return true;
}

/* ---- the loop's calls ---- */

static void guard_free(void *arg)
{
	arena_free(&((Guard *)arg)->own);
}

Guard *guard_begin(Run *r, const Data *data, Order *order)
{
	Ctx *cx = &r->cx;
	Guard *g = r->guard;
	if (r->target->watch)
		r->target->watch(r->program, NULL);
	if (!r->opt.guard)
		return NULL;
	if (!r->target->regions)
		fail(cx, MP_BAD_INPUT, "leave --guard out, or train with --target cpu", "target %s cannot be guarded: its memory is not this machine's",
		     r->target->name);
	if (!g) {
		g = NEW(&cx->keep, 1, Guard);
		g->own.cx = cx;
		arena_defer(&cx->keep, guard_free, g);
	}
	guard_free(g);
	*g = (Guard){ .own.cx = cx, .r = r, .level = r->opt.guard, .bound = data, .order = order };
	g->swept = g->level == GUARD_FULL && r->target->seals;
	g->watch = (Watch){ .sums = g->level == GUARD_FULL, .leaf = NO_LEAF, .moment = r->moment, .user = r->moment_user };
	r->target->watch(r->program, &g->watch);
	double began = clock_seconds();
	g->data = data_seals_new(&g->own, r->target->reads ? r->target->reads(r->program) : data, r);
	spent(&g->passes, began);
	g->passes.last = began;
	began = clock_seconds();
	state_take(g);
	spent(&g->copies, began);
	g->looks = g->copies;
	g->leaves.last = g->copies.last;
	guard_moved(g);
	return g;
}

void guard_moved(Guard *g)
{
	g->at = g->r->at;
	state_take(g);
}

bool guard_place(Guard *g)
{
	watch_moment(&g->watch, MOMENT_BATCH, NULL, 0);
	if (memcmp(&g->at, &g->r->at, sizeof g->at) == 0)
		return true;
	g->r->at = g->at;
	return fault(g, &g->count.position, &g->recent, "where the run stands changed by itself");
}

/* A pass has come round when the next epoch begins; then another may. */
bool guard_epoch(Guard *g)
{
	const Position *at = &g->r->at;
	watch_moment(&g->watch, MOMENT_EPOCH, NULL, 0);
	if (!guard_place(g))
		return false;
	if (g->passing && g->pass_epoch == at->epoch)
		return true;
	if (g->passing) {
		Kept done = g->pass;
		g->pass = g->before;
		g->before = done;
		g->pass.valid = g->passing = false;
		g->count.passes++;
	}
	double now = clock_seconds();
	if (at->done || !due(&g->passes, shares[g->level].data, now))
		return true;
	if (!guard_state(g))
		return false;
	keep(g, &g->pass);
	g->passing = true;
	g->pass_epoch = at->epoch;
	g->entered = 0;
	spent(&g->passes, now);
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

static void leaf_choose(Guard *g, const Batch *b)
{
	const Ranks *k = g->r->ranks;
	uint32_t first = 0, last = leaf_count(b->count);
	g->watch.leaf = NO_LEAF;
	if (g->level != GUARD_FULL || !g->r->target->again || !due(&g->leaves, shares[g->level].leaves, clock_seconds()))
		return;
	if (k)
		rank_leaves(last, k->comm->size, k->comm->rank, &first, &last);
	if (first < last)
		g->watch.leaf = first + (uint32_t)random_below((uint64_t)g->r->opt.seed, STREAM_SPLIT, g->r->at.updates, last - first);
}

bool guard_batch(Guard *g, const Batch *b)
{
	leaf_choose(g, b);
	return !g->passing || blocks_look(g, b);
}

bool guard_summed(Guard *g, const Batch *b)
{
	watch_moment(&g->watch, MOMENT_SUMMED, NULL, 0);
	if (g->watch.leaf != NO_LEAF && !leaf_look(g, b))
		return false;
	if (g->swept) {
		memset(g->watch.was, 0, g->pieces * sizeof *g->watch.was);
		memset(g->watch.is, 0, g->pieces * sizeof *g->watch.is);
		return true;
	}
	if (!g->sealed)
		return true;
	double began = g->level == GUARD_LIGHT ? clock_seconds() : 0;
	if (!state_look(g))
		return false;
	if (g->level == GUARD_LIGHT)
		g->looks.cost += clock_seconds() - began;
	g->sealed = false;                                   /* from here on it is the update's */
	return true;
}

bool guard_applied(Guard *g, const Tally *t)
{
	Run *r = g->r;
	if (g->swept && !state_compare(g, g->watch.was))
		return false;
	g->sealed = false;
	if (g->watch.broken)
		return fault(g, &g->count.sums, &g->recent, "a sum of weight changes changed by itself before it was used");
	if (!jump_look(g, t))
		return false;
	double now = clock_seconds();
	if (g->swept) {
		memcpy(g->seal, g->watch.is, g->pieces * sizeof *g->seal);
		g->sealed = true;
	} else if (g->level == GUARD_FULL) {
		state_seal(g);
	} else if (due(&g->looks, shares[g->level].state, now)) {
		state_seal(g);
		spent(&g->looks, now);
	}
	if (due(&g->copies, shares[g->level].copies, now)) {
		now = clock_seconds();
		keep(g, &g->recent);
		spent(&g->copies, now);
	}
	g->at = r->at;
	if (r->at.updates > g->furthest) {
		g->furthest = r->at.updates;
		g->vain = 0;
	}
	watch_moment(&g->watch, MOMENT_APPLIED, NULL, 0);
	return true;
}

bool guard_end(Guard *g)
{
	return guard_state(g) && (g->level != GUARD_FULL || data_all(g));
}

/* ---- ranks ---- */

uint64_t guard_word(const Guard *g)
{
	return g && g->level == GUARD_FULL && g->sealed ? seal_of(g->seal, pieces_of(g->region[0].bytes) * sizeof *g->seal) : 0;
}

void guard_rank(Run *r, uint32_t rank)
{
	static const char again[] = "start the job again from its last checkpoint";
	if (rank == UINT32_MAX)
		fail(&r->cx, MP_FAILED, again, "silent corruption before update %llu: the ranks' weights differ", (unsigned long long)r->at.updates + 1);
	fail(&r->cx, MP_FAILED, again, "silent corruption before update %llu: rank %u has other weights than most",
	     (unsigned long long)r->at.updates + 1, rank);
}

/* ---- for tests ---- */

uint32_t guard_copies(const Guard *g, Region *r)
{
	const Kept *const kept[] = { &g->recent, &g->pass, &g->before };
	uint32_t n = 0;
	for (size_t i = 0; i < COUNT(kept); i++)
		if (kept[i]->valid)
			r[n++] = (Region){ "copies", kept[i]->bytes, g->bytes };
	return n;
}

const GuardCount *guard_count(const Guard *g)
{
	return &g->count;
}
