/* SPDX-License-Identifier: MIT */
/* Many damaged copies of a network.  In: the intact weights, a function that damages them.  Out: tallies by set of
 * cases.
 *
 * Each thread has a program of its own, on one thread, and takes every n-th network: it sets the damaged weights, and
 * runs all cases forward.  Must hold: a network's tally depends on its number alone. */
#include <string.h>

#include "analyze.h"

typedef struct Worker {
	Ctx cx;
	const struct Damage *all;
	Options opt;
	Program *program;
	Tally *one; /* [cases] */
	double *out;
	Damaged net;
	float *y;
	Scorer scorer;
	Status status;
	bool open; /* cx is initialised */
} Worker;

typedef struct Damage {
	const Subject *s;
	Networks n;
	uint32_t threads;
	Worker *worker;
	Pool *pool;
} Damage;

static void workers_free(void *arg)
{
	Damage *d = arg;
	for (uint32_t i = d->threads; i-- > 0;)
		if (d->worker[i].open)
			ctx_free(&d->worker[i].cx);
}

static void worker_make(Ctx *own, void *arg)
{
	Worker *k = arg;
	const Subject *s = k->all->s;
	Caps caps;
	k->opt = *s->opt;
	k->opt.threads = 1;
	if (s->net->settles && !s->data->ticks) /* only the last tick is measured */
		k->opt.targets_from = k->opt.ticks * k->opt.intervals;
	s->target->caps(&caps);
	k->program = s->target->compile(own, plan_make(own, s->net, &caps), &k->opt);
	k->net.w = NEW(&own->keep, s->net->links, double);
	k->out = NEW(&own->keep, s->data->cases * s->net->outputs, double);
	k->net.silent = NEW(&own->keep, s->net->outputs, uint8_t);
	k->net.scratch = arena_alloc(&own->keep, k->all->n.scratch, 1);
	k->y = NEW(&own->keep, s->net->outputs, float);
	s->target->set(k->program, 0, 0, ALL_LINKS, s->w);
	k->one = NEW(&own->keep, s->data->cases, Tally);
	s->target->bind(own, k->program, s->data);
	scorer_init(&k->scorer, &k->opt, s->data);
}

static void pool_make(Ctx *own, void *arg)
{
	Damage *d = arg;
	d->pool = pool_new(own, d->threads);
}

/* Where outputs are removed, cases differ in their ticks, or the target gives no tallies of cases: by the outputs of
 * the last tick. */
static void score(Worker *k)
{
	const Data *data = k->all->s->data;
	uint32_t n = data->targets;
	for (uint64_t i = 0; i < data->cases; i++) {
		double *out = k->out + i * n;
		for (uint32_t j = 0; j < n; j++)
			out[j] = k->net.silent[j] ? 0 : out[j];
		data_y(data, i, k->y);
		score_case(&k->scorer, out, NULL, k->y, data->weight ? (double)data->weight[i] : 1, &k->one[i]);
	}
}

/* The tally of a case is added to that of every set it is in. */
static void sets_add(const Worker *k, uint64_t number)
{
	const Damage *d = k->all;
	for (uint32_t m = 0; m < d->n.sets; m++)
		for (uint64_t i = 0; i < d->s->data->cases; i++)
			if (d->n.set[m].holds[i])
				tally_add(&d->n.tally[number * d->n.sets + m], &k->one[i]);
}

static void worker_run(Ctx *own, void *arg)
{
	static const StopFlag never = 0;
	Worker *k = arg;
	const Damage *d = k->all;
	const Subject *s = d->s;
	uint64_t examples = run_examples(s->net, s->data);
	bool can_watch = s->target->watch && s->target->watch->cases;
	for (uint64_t i = (uint64_t)(k - d->worker); i < d->n.count; i += d->threads) {
		Tally unused = { 0 };
		memcpy(k->net.w, s->w, s->net->links * sizeof *s->w);
		memset(k->net.silent, 0, s->net->outputs);
		d->n.damage(d->n.arg, i, &k->net);
		s->target->set(k->program, 0, 0, ALL_LINKS, k->net.w);
		bool by_target =
			can_watch && !memchr(k->net.silent, 1, s->net->outputs) && !(s->net->settles && s->data->ticks);
		memset(k->one, 0, s->data->cases * sizeof *k->one);
		if (can_watch)
			s->target->watch->cases(k->program, by_target ? k->one : NULL);
		if (s->target->evaluate(k->program, 0, examples, &never, by_target ? NULL : k->out, &unused) != MP_OK)
			fail(own, MP_FAILED, NULL, "a damaged network could not be evaluated");
		if (!by_target)
			score(k);
		sets_add(k, i);
	}
}

static void thread_run(void *arg, uint32_t thread)
{
	Damage *d = arg;
	Worker *k = &d->worker[thread];
	k->status = subcontext_run(&k->cx, worker_run, k);
}

void damage_run(const Subject *s, const Networks *n)
{
	Ctx *cx = s->cx;
	if (s->target->simulator)
		fail(cx, MP_BAD_INPUT, "use target cpu or ref",
		     "target %s is a simulated machine: damaged networks would take hours", s->target->name);
	uint64_t threads = min_u64(n->count, s->opt->threads ? (uint64_t)s->opt->threads : pool_cores());
	Damage *d = NEW(&cx->scratch, 1, Damage);
	*d = (Damage){ .s = s, .n = *n, .threads = (uint32_t)threads };
	d->worker = NEW(&cx->scratch, d->threads, Worker);
	arena_defer(&cx->scratch, workers_free, d);
	for (uint32_t i = 0; i < d->threads; i++) {
		Worker *k = &d->worker[i];
		k->all = d;
		ctx_init(&k->cx, &cx->alloc);
		k->open = true;
		k->status = subcontext_run(&k->cx, worker_make, k);
		if (i == 0 && k->status == MP_OK && d->threads > 1) {
			k->status = subcontext_run(&k->cx, pool_make, d);
			d->threads = d->pool ? pool_threads(d->pool) : 1;
		}
		if (k->status != MP_OK) {
			k->open = false;
			subcontext_fail(cx, &k->cx, k->status);
		}
	}
	if (d->pool)
		pool_run(d->pool, thread_run, d);
	else
		thread_run(d, 0);
	for (uint32_t i = 0; i < d->threads; i++)
		if (d->worker[i].status != MP_OK) {
			d->worker[i].open = false;
			subcontext_fail(cx, &d->worker[i].cx, d->worker[i].status);
		}
}
