/* SPDX-License-Identifier: MIT */
/* The start of training. In: a Run, its data. Out: a Loop: data validated, scaled and bound, buffers allocated, a
 * guard attached. Fails if data, options or ranks do not fit together. */
#include <string.h>

#include "loop.h"

/* ---- the run is in use ---- */

/* Report and tick functions may make most calls, but the bound data must stay. */
void check_idle(Run *r)
{
	if (r->training)
		fail(&r->cx, MP_BAD_INPUT, "give the data to mp_run_train as test data, or do it when the last report has come",
		     "a run that is training can neither test nor train on other data meanwhile");
}

static void training_over(void *run) { ((Run *)run)->training = false; }

void run_occupy(Run *r)
{
	check_idle(r);
	arena_defer(&r->cx.scratch, training_over, r);
	r->training = true;
}

void loop_finish(Run *r)
{
	if (r->target->simulator)
		r->target->simulator->finish(&r->cx, r->program);
}

/* ---- data ---- */

/* By the scale of the run's first data, or that of the weights it loaded. */
const Data *data_scaled(Run *r, const Data *d)
{
	if (r->scale.kind == SCALE_NONE)
		return d;
	Data *copy = NEW(&r->cx.scratch, 1, Data);
	*copy = *d;
	data_scale_apply(&r->cx, &r->cx.scratch, copy, &r->scale);
	return copy;
}

/* A resumed run needs the data it began with. */
static void check_same_data(Run *r, const Data *data, uint64_t checksum)
{
	if (r->at.cases && (r->at.cases != data->cases || r->at.data != checksum))
		fail(&r->cx, MP_BAD_INPUT,
		     "resume with the data of the interrupted run, or start a new one from its weights with --load",
		     "this run began on other data: %llu cases then, %llu in %s, and checksums %016llx and %016llx",
		     (unsigned long long)r->at.cases, (unsigned long long)data->cases, data->name,
		     (unsigned long long)r->at.data, (unsigned long long)checksum);
	r->at.cases = data->cases;
	r->at.data = checksum;
}

/* Of ranks, each validates its own cases later, and all share the result. */
static void check_data(Run *r, const Data *d)
{
	if (r->job && run_domain(r->net, r->opt.error))
		run_check_data(&r->cx, r->net, d, true);
	else
		run_check_training(r, d);
}

/* ---- without a guard ---- */

static Status ok(void *self)
{
	(void)self;
	return MP_OK;
}

static Status ok_batch(void *self, const Batch *b)
{
	(void)self, (void)b;
	return MP_OK;
}

static Status ok_tally(void *self, const Tally *t)
{
	(void)self, (void)t;
	return MP_OK;
}

static void nothing(void *self) { (void)self; }

static const Observer no_observer = {
	.begin_epoch = ok,
	.before_update = ok,
	.before_batch = ok_batch,
	.after_sum = ok_batch,
	.after_apply = ok_tally,
	.before_export = ok,
	.before_save = ok,
	.after_epoch = nothing,
	.before_end = ok,
};

/* ---- all of it ---- */

static void take_data(Loop *l, const Data *data, const Data *test)
{
	Run *r = l->r;
	Ctx *cx = &r->cx;
	check_data(r, data);
	if (test)
		check_data(r, test);
	if (r->opt.patience && !test)
		fail(cx, MP_BAD_INPUT, "give test data with --test",
		     "patience watches the error on test data, and there is none");
	target_choose(r, data, 0);
	run_start(r);
	run_check_error(cx, r->net, r->opt.error); /* loaded weights may have another one */
	if (r->scale.kind == SCALE_NONE)
		r->scale = scale_copy(&cx->fixed, &data->scale, data->inputs);
	if (data->classes) {
		r->classes = classes_copy(&cx->fixed, data->classes, data->class_count);
		r->class_count = data->class_count;
	}
	r->kept_metrics = NULL; /* of weights that are about to change */
	if (data->schema)
		r->schema = arena_copy(&cx->keep, data->schema, strlen(data->schema));
	l->data = data_scaled(r, data);
	l->test = test ? data_scaled(r, test) : NULL;
	if (!test)
		r->at.test = (Tally){ 0 }; /* of the run that was resumed */
	until_parse(r->opt.until, &l->until);
	l->examples = run_examples(r->net, l->data);
	if (r->net->copies && !r->net->settles && !data->seq)
		note(cx, "mark sequences in the data if there are several (npz key seq, csv --sequence)",
		     "%s has no sequence boundaries; all its cases are taken as one sequence", data->name);
	if (data->ticks && !r->net->settles)
		note(cx, "let the network settle: train ticks 8", "%s has ticks of cases, and the network does not settle",
		     data->name);
	l->batch = r->opt.batch == BATCH_ALL ? l->examples : min_u64((uint64_t)r->opt.batch, l->examples);
}

static void bind_data(void *loop)
{
	Loop *l = loop;
	Run *r = l->r;

	if (l->test && r->opt.guard)
		r->target->bind(&r->cx, r->program, l->test); /* this may move weights: do it before they are guarded */
	r->target->bind(&r->cx, r->program, l->data);
}

void loop_start(Loop *l, const Data *data, const Data *test)
{
	Run *r = l->r;
	Ctx *cx = &r->cx;
	run_occupy(r);
	r->diverged = false;
	take_data(l, data, test);
	bool shuffled = r->opt.shuffle < 0 ? l->batch < l->examples : r->opt.shuffle != 0;
	uint64_t checksum = r->job ? ranks_prepare(r, &l->data, &l->test, l->batch, shuffled) : data_checksum(l->data);
	if (r->job)
		r->job->ended = true; /* all ranks have the same checkpoint and data, so all fail here, or none */
	check_same_data(r, l->data, checksum);
	if (r->job)
		r->job->ended = false;
	Order *order = order_new(&cx->scratch, l->examples, (uint64_t)r->opt.seed, shuffled);
	l->finite_every = epochs_between_checks(r->net, l->data);
	if (r->opt.keep_best && !r->best_weights)
		r->best_weights = arena_alloc(&cx->keep, best_bytes(r), 1);
	if (r->opt.keep_best)
		l->chunk = NEW(&cx->scratch, net_chunk(r->net, 0, CHUNK_LINKS), double);
	r->points = 0;
	r->stride = 1;
	target_begin(r, bind_data, l);
	if (r->job)
		ranks_begin(r, l->examples, l->batch);
	l->batches = (Batches){ .data = l->data,
		                    .order = order,
		                    .examples = l->examples,
		                    .batch = l->batch,
		                    .prefetch = l->data->mapped && !r->ranks,
		                    .prefetched = r->at.done / SHUFFLE_BLOCK };
	batches_init(&l->batches, &cx->scratch);
	l->observer = r->opt.guard ? &guard_observer : &no_observer;
	bool own_cases = r->ranks && !ranks_read_all(r->job, l->data, shuffled);
	Region loop = { "numbers of the training loop", l, offsetof(Loop, batches) + offsetof(Batches, prefetched) };
	r->guard = guard_begin(r, l->data, order, own_cases ? l->batch : 0, &loop);
	l->bulk = r->target->run_updates && !r->ranks && !r->guard;
	if (l->bulk && shuffled && !r->order_pool)
		r->order_pool = bulk_pool(cx, r->target, &r->opt);
	l->updates = (Bulk){ .target = r->target,
		                 .program = r->program,
		                 .opt = &r->opt,
		                 .examples = l->examples,
		                 .batch = l->batch,
		                 .order = order,
		                 .until = &l->until,
		                 .stop = &r->stop,
		                 .pool = r->order_pool };
	if (l->bulk)
		bulk_init(&l->updates, &cx->scratch);
}
