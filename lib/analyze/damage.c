/* SPDX-License-Identifier: MIT */
/* Many damaged copies of a network.  In: a function that damages it.  Out: tallies by set of cases.
 *
 * Each thread has a program of its own, on one thread, and takes some networks at a time.  A target that can evaluates
 * those with removed units at once; else damaged weights are set for one after the other, and all cases run forward.
 * Must hold: a network's tally depends on its number alone. */
#include <string.h>

#include "analyze.h"

enum {
	TOGETHER_CASES = 2048, /* cases times networks that are evaluated at once, */
	TOGETHER_BYTES = 1 << 24,
	SHARES = 4 /* times that a thread should come for more */
};

typedef struct Worker {
	Ctx cx;
	struct Damage *all;
	Options opt;
	Program *program;
	uint32_t most;    /* networks at a time */
	uint8_t *removed; /* [most][units] */
	Tally *one;       /* [most][cases] */
	double *out;      /* [most][cases][outputs] */
	double *w;        /* [links] NULL: never set */
	Damaged net;
	float *y;
	Scorer scorer;
	Status status;
	bool open; /* cx is initialised */
} Worker;

typedef struct Damage {
	const Subject *s;
	Networks n;
	uint64_t next;  /* network that no thread has taken yet */
	uint32_t taken; /* at a time */
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
	const Net *net = s->net;
	Arena *a = &own->keep;
	Caps caps;
	k->opt = *s->opt;
	k->opt.threads = 1;
	if (net->settles && !s->data->ticks) /* only the last tick is measured */
		k->opt.targets_from = k->opt.ticks * k->opt.intervals;
	s->target->caps(&caps);
	k->program = s->target->compile(own, plan_make(own, net, &caps), &k->opt);
	s->target->set(k->program, 0, 0, ALL_LINKS, s->w);
	s->target->bind(own, k->program, s->data);
	k->most = k->all->taken;
	k->removed = NEW(a, (size_t)k->most * net->units, uint8_t);
	k->one = NEW(a, k->most * s->data->cases, Tally);
	k->out = arena_alloc_raw(a, k->most * s->data->cases * net->outputs, sizeof *k->out);
	k->net.link = NEW(a, net->links, uint64_t);
	k->net.weight = NEW(a, net->links, double);
	k->net.scratch = arena_alloc(a, k->all->n.scratch, 1);
	k->y = NEW(a, net->outputs, float);
	scorer_init(&k->scorer, &k->opt, s->data);
	scorer_shape(&k->scorer, s->net);
}

static void pool_make(Ctx *own, void *arg)
{
	Damage *d = arg;
	d->pool = pool_new(own, d->threads);
}

/* Where outputs are removed, cases differ in their ticks, or the target gives no tallies of cases: by the outputs of
 * the last tick. */
static bool by_outputs(const Worker *k, const uint8_t *removed)
{
	const Subject *s = k->all->s;
	bool outputs = !s->target->watch || !s->target->watch->cases || (s->net->settles && s->data->ticks);
	for (uint32_t i = 0; i < s->net->groups && !outputs; i++) {
		const Group *g = &s->net->group[i];
		outputs = g->role == ROLE_OUTPUT && memchr(removed + g->first, 1, g->size);
	}
	return outputs;
}

static void score(Worker *k, const uint8_t *removed, double *out, Tally *one)
{
	const Subject *s = k->all->s;
	const Data *data = s->data;
	uint32_t n = data->targets;
	for (uint64_t i = 0; i < data->cases; i++, out += n) {
		const Group *g = s->net->group;
		for (uint32_t j = 0; j < n; g++)
			for (uint32_t u = 0; g->role == ROLE_OUTPUT && u < g->size; u++, j++)
				out[j] = removed[g->first + u] ? 0 : out[j];
		data_y(data, i, k->y);
		score_case(&k->scorer, out, NULL, k->y, data->weight ? (double)data->weight[i] : 1, &one[i]);
	}
}

/* Weights out of removed units are 0. */
static void weights_set(Ctx *own, Worker *k, const uint8_t *removed)
{
	const Subject *s = k->all->s;
	const Net *net = s->net;
	if (!k->w)
		k->w = NEW(&own->keep, net->links, double);
	memcpy(k->w, s->w, net->links * sizeof *s->w);
	for (uint64_t i = 0; i < k->net.links; i++)
		k->w[k->net.link[i]] = k->net.weight[i];
	for (Unit u = 1; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			if (removed[net_source(net, u, l)])
				k->w[l] = 0;
	s->target->set(k->program, 0, 0, ALL_LINKS, k->w);
}

static void one_run(Ctx *own, Worker *k, const uint8_t *removed, Tally *one, double *out)
{
	static const StopFlag never = 0;
	const Subject *s = k->all->s;
	Tally unused = { 0 };
	weights_set(own, k, removed);
	if (s->target->watch && s->target->watch->cases)
		s->target->watch->cases(k->program, out ? NULL : one);
	if (s->target->evaluate(k->program, 0, run_examples(s->net, s->data), &never, out, &unused) != MP_OK)
		fail(own, MP_FAILED, NULL, "a damaged network could not be evaluated");
}

/* The tally of a case is added to that of every set it is in. */
static void sets_add(const Worker *k, const Tally *one, uint64_t number)
{
	const Damage *d = k->all;
	for (uint32_t m = 0; m < d->n.sets; m++)
		for (uint64_t i = 0; i < d->s->data->cases; i++)
			if (d->n.set[m].holds[i])
				tally_add(&d->n.tally[number * d->n.sets + m], &one[i]);
}

/* Networks number, number + 1, ... */
static void networks_run(Ctx *own, Worker *k, uint64_t number, uint32_t count)
{
	const Subject *s = k->all->s;
	size_t units = s->net->units, cases = s->data->cases, outs = cases * s->net->outputs;
	double *out = by_outputs(k, k->removed) ? k->out : NULL;
	memset(k->one, 0, count * cases * sizeof *k->one);
	const Damages d = { count, k->removed, k->net.links, k->net.link, k->net.weight };
	const WatchHooks *watch = s->target->watch;
	bool done = watch && watch->damaged && watch->damaged(own, k->program, &d, k->one, out);
	for (uint32_t i = 0; i < count; i++) {
		Tally *one = k->one + i * cases;
		if (!done)
			one_run(own, k, k->removed + i * units, one, out ? out + i * outs : NULL);
		if (out)
			score(k, k->removed + i * units, out + i * outs, one);
		sets_add(k, one, number + i);
	}
}

/* Damages networks number .. end - 1, and runs those together that are alike: units are removed, and all are scored in
 * the same way. */
static void networks_take(Ctx *own, Worker *k, uint64_t number, uint64_t end)
{
	const Damage *d = k->all;
	size_t units = d->s->net->units;
	uint32_t count = 0;
	for (; number < end; number++) {
		uint8_t *removed = k->net.removed = k->removed + count * units;
		memset(removed, 0, units);
		k->net.links = 0;
		d->n.damage(d->n.arg, number, &k->net);
		if (count && (k->net.links || by_outputs(k, removed) != by_outputs(k, k->removed))) {
			uint64_t links = k->net.links;
			k->net.links = 0;
			networks_run(own, k, number - count, count);
			k->net.links = links;
			memcpy(k->removed, removed, units);
			count = 0;
		}
		count++;
		if (k->net.links || count == k->most) {
			networks_run(own, k, number + 1 - count, count);
			count = 0;
		}
	}
	if (count)
		networks_run(own, k, end - count, count);
}

static void worker_run(Ctx *own, void *arg)
{
	Worker *k = arg;
	Damage *d = k->all;
	uint64_t number;
	while ((number = __atomic_fetch_add(&d->next, d->taken, __ATOMIC_RELAXED)) < d->n.count)
		networks_take(own, k, number, min_u64(number + d->taken, d->n.count));
}

/* Networks that a thread takes at a time. */
static uint32_t networks_together(const Subject *s, uint64_t count, uint64_t threads)
{
	uint64_t most = max_u64(TOGETHER_CASES / s->data->cases, 1);
	most = min_u64(most, TOGETHER_BYTES / (s->net->units + s->data->cases * (s->net->outputs + 6) * sizeof(double)));
	return (uint32_t)max_u64(min_u64(most, ceil_div(count, threads * SHARES)), 1);
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
	*d = (Damage){ .s = s, .n = *n, .taken = networks_together(s, n->count, threads), .threads = (uint32_t)threads };
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
