/* SPDX-License-Identifier: MIT */
/* Rates of a rank on this computer. In: a network, data or none. Out: seconds for a case of a leaf, for joining two
 * sums, for an update; each is the best of several measurements.
 *
 * A batch of one leaf may use other code, such as an update fused with the gradient, and its fixed costs matter: it is
 * measured as a whole, for its size; of a small network, bulk updates.
 *
 * The hooks of target cpu are called as ranks_batch and the trainer call them. Without data, cases are random: real
 * inputs, binary targets; sequences of 20 where the network has copies. */
#include <assert.h>

#include "model.h"
#include "train.h"

enum { RANDOM_CASES = 4096, RANDOM_SEQUENCE = 20, MOST_PICKS = 1 << 16, RATED_UPDATES = 4096 };

static const StopFlag never = 0;
static const double one_time = 0.02, all_time = 0.25; /* seconds: of one measurement, of all measurements of a rate */

typedef struct Trial {
	const Target *target;
	Program *program;
	Options opt;
	uint64_t examples, cases;
	uint32_t leaves; /* of all examples */
	uint32_t some;   /* that one measurement computes */
	float *sum[2];
	uint64_t floats, updates;
	Order *order;              /* batches of one leaf: */
	uint64_t batch, at, picks; /* examples of a batch; the next of `picks` examples */
	uint64_t *picked;
	Bulk *bulk; /* bulk updates, and their position: */
	Position position;
} Trial;

static const Data *data_random(Ctx *cx, const Net *net)
{
	Data *d = NEW(&cx->keep, 1, Data);
	float *x = NEW(&cx->keep, (uint64_t)RANDOM_CASES * net->inputs, float),
		  *y = NEW(&cx->keep, (uint64_t)RANDOM_CASES * net->outputs, float);

	*d = (Data){ .name = "random",
		         .cases = RANDOM_CASES,
		         .inputs = net->inputs,
		         .targets = net->outputs,
		         .x_type = T_F32,
		         .y_type = T_F32,
		         .x = x,
		         .y = y };
	for (uint64_t i = 0; i < d->cases * d->inputs; i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i);
	for (uint64_t i = 0; i < d->cases * d->targets; i++)
		y[i] = (float)(random_u64(2, STREAM_DATA, i) & 1);
	if (net->copies) {
		uint64_t *seq = NEW(&cx->keep, RANDOM_CASES / RANDOM_SEQUENCE + 2, uint64_t);
		while (seq[d->sequences] < d->cases) {
			uint64_t end = seq[d->sequences] + RANDOM_SEQUENCE;
			seq[++d->sequences] = end < d->cases ? end : d->cases;
		}
		d->seq = seq;
	}
	return d;
}

/* The learning rate is so small that weights hardly change: saturated units would take other times. */
static void trial_start(Ctx *cx, Trial *t, const Net *net, const Data *data, uint32_t threads, int64_t batch)
{
	double *weights = NEW(&cx->scratch, net->links, double);
	Caps caps;

	t->target = target_find("cpu");
	assert(t->target && t->target->ranks);
	t->opt = net->options;
	t->opt.target = t->target->name;
	t->opt.threads = threads;
	t->opt.batch = batch;
	t->opt.rate = 1e-9;
	t->target->caps(&caps);
	t->program = t->target->compile(cx, plan_make(cx, net, &caps), &t->opt);
	net_weights(net, 1, 0, ALL_LINKS, weights);
	t->target->set(t->program, 0, 0, ALL_LINKS, weights);
	t->target->bind(cx, t->program, data);
	t->examples = run_examples(net, data);
	t->cases = data->cases;
	t->leaves = leaf_count(t->examples);
	t->some = 1;
	t->floats = t->target->ranks->sum_floats(t->program);
	for (int i = 0; i < 2; i++)
		t->sum[i] = NEW(&cx->scratch, t->floats, float);
}

/* ---- work for one measurement; rerepeats the cases, floats or updates done ---- */

/* The first `some` leaves and their sums. */
static double do_leaves(Trial *t)
{
	uint64_t cases = 0;
	Batch b = { .count = t->examples };
	Share s;

	t->target->ranks->partial_sums(t->program, &b, 0, t->some, true, &never, &s);
	for (uint32_t i = 0; i < t->some; i++)
		cases += s.tally[i].cases;
	return (double)cases;
}

static double do_join(Trial *t)
{
	t->target->ranks->add(t->program, t->sum[0], t->sum[1], t->floats);
	return (double)t->floats;
}

static double do_update(Trial *t)
{
	Update u;

	t->target->ranks->use_total(t->program);
	update_fill(&t->opt, ++t->updates, 0, 1, &u);
	t->target->apply(t->program, &u);
	return 1;
}

/* The next batch in the order of the epoch, and its update. */
static double do_batch(Trial *t)
{
	Tally tally = { 0 };
	Update u;

	if (t->at + t->batch > t->picks) {
		order_epoch(t->order, t->updates);
		order_copy(t->order, 0, t->picks, t->picked);
		t->at = 0;
	}
	uint64_t left = t->picks - t->at - t->batch;
	Batch b = { .example = t->picked + t->at, .count = t->batch, .next_count = left < t->batch ? left : t->batch };
	update_fill(&t->opt, ++t->updates, 0, 1, &u);
	t->target->accumulate(t->program, &b, 0, 1, &never, &tally);
	t->target->apply(t->program, &u);
	t->at += t->batch;
	return 1;
}

/* Bulk updates, counted by their examples. */
static double do_bulk(Trial *t)
{
	Position *at = &t->position;
	uint64_t left = bulk_run(t->bulk, at, bulk_limit(t->bulk, at, BULK_EPOCHS)), examples = 0;

	at->updates += left;
	while (left) {
		uint64_t of_epoch = updates_left(t->examples, t->batch, at->done), some = left < of_epoch ? left : of_epoch;
		uint64_t count = some < of_epoch ? some * t->batch : t->examples - at->done;
		examples += count;
		left -= some;
		at->done = (at->done + count) % t->examples;
		at->epoch += at->done == 0;
	}
	return (double)examples / (double)t->batch;
}

static double best_seconds(Trial *t, double (*work)(Trial *t))
{
	double best = 1e30, began = clock_seconds(), now;
	uint64_t repeats = 1;

	work(t); /* warm up caches, wake threads */
	do {
		double done = 0, start = clock_seconds();
		for (uint64_t i = 0; i < repeats; i++)
			done += work(t);
		now = clock_seconds();
		if (now - start < one_time / 8)
			repeats *= 2;
		else if (done > 0 && (now - start) / done < best)
			best = (now - start) / done;
	} while (best == 1e30 || now - began < all_time);
	return best;
}

/* Enough leaves for a measurement, or all. */
static void choose_some(Trial *t)
{
	while (t->some < t->leaves) {
		double start = clock_seconds();
		do_leaves(t);
		if (clock_seconds() - start >= one_time)
			return;
		t->some = 2 * t->some < t->leaves ? 2 * t->some : t->leaves;
	}
}

Rated rates_measure(Ctx *cx, const Net *net, const Data *data, uint32_t threads, bool timed)
{
	Trial t = { 0 };
	Rated out = { 0 };

	trial_start(cx, &t, net, data ? data : data_random(cx, net), threads, BATCH_ALL);
	if (timed) {
		choose_some(&t);
		out.rates.cases = best_seconds(&t, do_leaves);
		out.rates.join = best_seconds(&t, do_join);
		out.rates.update = best_seconds(&t, do_update);
	}
	out.floats = t.floats;
	out.examples = t.examples;
	out.cases = t.cases;
	return out;
}

double rates_alone(Ctx *cx, const Net *net, const Data *data, uint32_t threads, uint64_t batch)
{
	Trial t = { .batch = batch };
	Until until;

	assert(leaf_count(batch) == 1);
	trial_start(cx, &t, net, data ? data : data_random(cx, net), threads, (int64_t)batch);
	if (t.examples < batch)
		return 0;
	t.order = order_new(&cx->scratch, t.examples, 1, t.opt.shuffle != 0 && batch < t.examples);
	until_parse("never", &until);
	t.bulk = NEW(&cx->scratch, 1, Bulk);
	*t.bulk = (Bulk){ .target = t.target,
		              .program = t.program,
		              .opt = &t.opt,
		              .examples = t.examples,
		              .batch = batch,
		              .order = t.order,
		              .until = &until,
		              .stop = &never };
	bulk_init(t.bulk, &cx->scratch);
	t.bulk->call_updates = RATED_UPDATES;
	if (t.target->run_updates && do_bulk(&t) > 0)
		return best_seconds(&t, do_bulk);
	t.picks = t.examples < MOST_PICKS ? t.examples : MOST_PICKS;
	t.picked = NEW(&cx->scratch, t.picks, uint64_t);
	t.at = t.picks;
	return best_seconds(&t, do_batch);
}
