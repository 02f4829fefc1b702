/* SPDX-License-Identifier: MIT */
/* Restarts: many seeds of one network. Hands out seeds, decides when a seed ends, sums up the results.
 *
 * In: the first seed, their number. Out: a result for each, the best of them. No result depends on the order in which
 * seeds end, so threads and lanes take them in any order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

void restarts_init(Restarts *all, Run *r, uint64_t count, uint32_t ranks, const Data *data, const Data *test)
{
	Ctx *cx = &r->cx;

	if (r->program)
		fail(cx, MP_BAD_INPUT,
		     "every seed starts from weights of its own: begin with a new run, without --load or --resume",
		     "this run has already started");
	if (!count)
		fail(cx, MP_BAD_INPUT, "give how many seeds to train, 1 or more", "there are no seeds to train");
	if (count - 1 > (uint64_t)(INT64_MAX - r->opt.seed))
		fail(cx, MP_BAD_INPUT, "begin with a smaller seed", "%llu seeds from %lld on are more than there are",
		     (unsigned long long)count, (long long)r->opt.seed);
	if (r->opt.time > 0)
		fail(cx, MP_BAD_INPUT, "limit epochs or updates",
		     "a limit of time ends a run at another epoch each time: no seed's result could be had again");
	if (option_is_set(&cx->scratch, &r->opt, "fault"))
		fail(cx, MP_BAD_INPUT, "train one seed, or leave --fault out",
		     "faults go on from one seed to the next: no seed's result could be had again");
	run_check_training(r, data);
	if (test)
		run_check_training(r, test);
	target_choose(r, data, ceil_div(count, ranks));
	run_start(r);
	*all = (Restarts){ .first = (uint64_t)r->opt.seed, .count = count, .run = r };
	all->seed = NEW(&cx->keep, count, mp_seed);
	r->restarts = (mp_restarts){ 0 };
	restarts_share(all, 0, 1);
}

void restarts_share(Restarts *all, uint32_t rank, uint32_t ranks)
{
	all->rank = rank;
	all->ranks = ranks;
	all->own = all->count / ranks + (rank < all->count % ranks);
	all->began = all->reported = clock_seconds();
}

bool restarts_ended(const mp_seed *s) { return s->failed || s->fingerprint[0]; }

void run_restart(Run *r, uint64_t seed)
{
	const Rule *rule = &rules[r->opt.rule];
	double *v = NEW(&r->cx.scratch, r->net->links, double);

	r->opt.seed = (int64_t)seed;
	run_start(r);
	run_first_weights(&r->cx, r->net, r->target, r->program, seed);
	for (int k = 0; k < rule->states; k++) {
		for (Unit u = 0; u < r->net->units; u++)
			for (uint64_t i = r->net->row[u]; i < r->net->row[u + 1]; i++) {
				const Block *b = net_block(r->net, u, i);
				v[i] = rule_start(rule, k, &r->opt, r->target->f64 ? b->exact_rate : (double)b->rate);
			}
		r->target->set(r->program, k + 1, 0, ALL_LINKS, v);
	}
	r->at = (Position){ .best = INFINITY };
	r->best_at = (Position){ 0 };
}

/* ---- while it lasts ---- */

bool restarts_take(Restarts *all, uint64_t *number)
{
	if (all->run->stop)
		return false;
	uint64_t next = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED);
	*number = next * all->ranks + all->rank;
	return next < all->own;
}

uint64_t restarts_take_some(Restarts *all, uint64_t most, uint64_t *first)
{
	if (all->run->stop)
		return 0;
	uint64_t next = __atomic_fetch_add(&all->next, most, __ATOMIC_RELAXED);
	*first = next * all->ranks + all->rank;
	return next < all->own ? min_u64(most, all->own - next) : 0;
}

void restarts_count(Restarts *all, const uint64_t *number, uint64_t count)
{
	uint64_t epochs = 0, solved = 0, failed = 0;

	for (uint64_t i = 0; i < count; i++) {
		const mp_seed *s = &all->seed[number[i]];
		epochs += s->epochs;
		solved += s->solved != 0;
		failed += s->failed != 0;
	}
	__atomic_fetch_add(&all->epochs, epochs, __ATOMIC_RELAXED);
	__atomic_fetch_add(&all->solved, solved, __ATOMIC_RELAXED);
	__atomic_fetch_add(&all->failed, failed, __ATOMIC_RELAXED);
	__atomic_fetch_add(&all->ended, count, __ATOMIC_RELEASE);
}

void restarts_end(Restarts *all, uint64_t number, const mp_seed *result)
{
	all->seed[number] = *result;
	restarts_count(all, &number, 1);
}

static mp_restarts so_far(Restarts *all)
{
	double seconds = clock_seconds() - all->began;
	uint64_t done = __atomic_load_n(&all->ended, __ATOMIC_ACQUIRE);

	return (mp_restarts){ .size = sizeof(mp_restarts),
		                  .count = all->count,
		                  .done = done,
		                  .solved = __atomic_load_n(&all->solved, __ATOMIC_RELAXED),
		                  .failed = __atomic_load_n(&all->failed, __ATOMIC_RELAXED),
		                  .seconds = seconds,
		                  .seeds_per_second = seconds > 0 ? (double)done / seconds : 0 };
}

void restarts_report(Restarts *all)
{
	double now = clock_seconds();

	if (!all->fn || now - all->reported < 0.1)
		return;
	all->reported = now;
	mp_restarts now_at = so_far(all);
	now_at.count = all->own;
	if (all->fn(all->user, all->run, &now_at) != 0)
		all->run->stop = 1;
}

bool seed_ends(const Options *o, const Until *u, const Tally *t, uint64_t epoch, uint64_t updates, mp_seed *result)
{
	result->epochs = epoch;
	result->error = tally_mean(t);
	result->right = share_of(t->right, t->scored);
	result->within = share_of(t->within, t->scored);
	result->solved = epoch && until_reached(u, t);
	return result->solved || (o->epochs && epoch >= (uint64_t)o->epochs) ||
	       (o->updates && updates >= (uint64_t)o->updates);
}

/* ---- at the end ---- */

/* Is a better than b? Solved before not, not failed before failed; then fewer epochs if both are solved, or less
 * error. */
static bool better(const mp_seed *a, const mp_seed *b)
{
	if (a->solved != b->solved)
		return a->solved;
	if (a->failed != b->failed)
		return b->failed;
	if (a->solved && a->epochs != b->epochs)
		return a->epochs < b->epochs;
	return a->error < b->error;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void restarts_sum(Restarts *all, uint64_t cases)
{
	mp_restarts *m = &all->run->restarts;
	uint64_t *epochs = NEW(&all->run->cx.scratch, all->count, uint64_t), solved = 0;

	*m = so_far(all);
	m->mcps =
		m->seconds > 0 ? (double)all->run->net->links * (double)cases * (double)all->epochs / m->seconds / 1e6 : 0;
	all->run->seeds = all->seed;
	m->done = 0;
	for (uint64_t i = 0; i < all->count; i++) {
		if (!restarts_ended(&all->seed[i]))
			continue;
		mp_seed *s = &all->seed[m->done];
		*s = all->seed[i];
		s->size = sizeof *s;
		if (s->solved)
			epochs[solved++] = s->epochs;
		if (better(s, &all->seed[m->best]))
			m->best = m->done;
		m->done++;
	}
	if (!solved)
		return;
	qsort(epochs, solved, sizeof *epochs, by_number);
	m->epochs_min = epochs[0];
	m->epochs_median = epochs[(solved - 1) / 2];
	m->epochs_max = epochs[solved - 1];
}
