/* SPDX-License-Identifier: MIT */
/* The training loop: epochs of batches, each a sum of weight changes over leaves and one update.
 *
 * In: a Run (network, options), data to learn and perhaps to test on. Out: weights in the Run's program, a Position
 * from which the run can be continued with the same bits, reports. Between two updates nothing is half done: when
 * the run is stopped in the middle of a batch the batch is forgotten, and resuming starts it again. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "guard.h"
#include "train.h"
#include "ranks.h"

enum { PICKS_AHEAD = 64 }; /* examples that are picked in one go, beside those of this batch and the next */

typedef struct Loop { /* what one call of run_train needs besides the Run */
	Run *r;
	const Data *data, *test;
	uint64_t examples, batch;
	bool shuffled;
	Order *order;
	uint64_t ahead;                         /* blocks of examples that were asked for in this epoch */
	uint64_t *picked;                       /* examples of the current batch and more, if shuffled: */
	uint64_t picked_from, picks, pick_room; /* the place of the first in the epoch; how many */
	double *piece;                          /* of weights, with keep-best */
	Until until;
	mp_report_fn *fn;
	void *user;
	double reported;     /* when the last report was given, */
	double counted;      /* and until when time is counted */
	double ticked;       /* when the last tick was */
	uint64_t look_every; /* so many epochs the weights are looked at */
	bool rolled;         /* back to an earlier Position, from which it goes on */
	bool at_once;        /* the target may do several updates in one go: */
	Many many;
} Loop;

/* ---- starting ---- */

/* ---- reporting ---- */

/* Ranks end together: by what they agreed on, not by what one of them has just heard. */
static bool to_stop(const Run *r) { return r->ranks ? r->ranks->stop : r->stop; }

/* Why the run ends now, or NULL. */
static const char *end_reason(const Loop *l)
{
	const Run *r = l->r;
	const Options *o = &r->opt;
	double seconds = r->ranks ? r->ranks->seconds : r->at.seconds;
	if (r->report.solved)
		return "until";
	if (o->epochs && r->at.epoch >= (uint64_t)o->epochs)
		return "epochs";
	if (o->updates && r->at.updates >= (uint64_t)o->updates)
		return "updates";
	if (o->time > 0 && seconds >= o->time)
		return "time";
	if (o->patience && r->at.epoch - r->at.best_epoch >= (uint64_t)o->patience)
		return "patience";
	return to_stop(r) ? "signal" : NULL;
}

static bool report_due(const Loop *l)
{
	if (l->r->opt.report)
		return l->r->at.epoch % (uint64_t)l->r->opt.report == 0;
	return clock_seconds() - l->reported >= 0.1;
}

static void give_report(Loop *l)
{
	l->reported = clock_seconds();
	bool speaks = !l->r->ranks || l->r->ranks->comm->rank == 0;
	if (speaks && l->fn && l->fn(l->user, l->r, &l->r->report) != 0)
		l->r->stop = 1;
}

/* ---- one update, one epoch ---- */

/* Data and test data live and stay as they are until the run ends: a caller's report may save, but not change them. */
static void turn_to(Run *r, const Data *d)
{
	(r->target->rebind ? r->target->rebind : r->target->bind)(&r->cx, r->program, d);
}

/* Is not stopped half-way: a resumed run could not know the result, and it decides which epoch was best. */
static void measure(Run *r, const Data *d, Tally *t)
{
	static const volatile int never = 0;
	turn_to(r, d);
	*t = (Tally){ 0 };
	if (r->ranks)
		ranks_batch(r, &(Batch){ .count = run_examples(r->net, d) }, false, &never, t);
	else
		r->target->evaluate(r->program, 0, run_examples(r->net, d), &never, NULL, t);
}

static void finish(Run *r)
{
	if (r->target->simulator)
		r->target->simulator->finish(&r->cx, r->program);
}

static _Noreturn void diverged(Loop *l, uint64_t epoch)
{
	finish(l->r);
	run_diverged(l->r, l->data, epoch, updates_left(l->examples, l->batch, 0));
}

/* Before the epoch that it belongs to is counted. */
static void check_error(Loop *l, const Tally *t)
{
	if (!isfinite(t->error))
		diverged(l, l->r->at.epoch + 1);
}

/* After an epoch, or in one.  A guard is asked first whether somebody else has changed the weights. */
static void check_weights(Loop *l)
{
	Run *r = l->r;
	if (run_finite(r))
		return;
	l->rolled = r->guard && !guard_state(r->guard);
	if (!l->rolled)
		diverged(l, r->at.epoch + (r->at.done > 0));
}

static bool look_due(const Loop *l) { return !l->r->seed && l->r->at.epoch % l->look_every == 0; }

/* While the examples of a block are learnt, those of the next are read. */
static void read_ahead(Loop *l)
{
	uint64_t place = l->r->at.done / SHUFFLE_BLOCK + 2, count;

	for (; l->data->mapped && !l->r->ranks && l->ahead < place; l->ahead++) {
		uint64_t first = order_block(l->order, l->ahead, &count);
		data_prefetch(l->data, first, count);
	}
}

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* So many examples from where the epoch is; those that were picked before stay. */
static const uint64_t *pick(Loop *l, uint64_t count)
{
	uint64_t done = l->r->at.done, passed = done - l->picked_from;

	if (passed + count > l->picks) {
		uint64_t kept = l->picks - passed;
		memmove(l->picked, l->picked + passed, kept * sizeof *l->picked);
		l->picked_from = done;
		l->picks = lesser(l->pick_room, l->examples - done);
		for (uint64_t i = kept; i < l->picks; i++)
			l->picked[i] = order_at(l->order, done + i);
		passed = 0;
	}
	return l->picked + passed;
}

static Batch next_batch(Loop *l)
{
	uint64_t done = l->r->at.done, left = l->examples - done;
	Batch b = { .first = done, .count = lesser(l->batch, left) };

	read_ahead(l);
	b.next_count = lesser(l->batch, left - b.count);
	if (l->picked)
		b.example = pick(l, b.count + b.next_count);
	return b;
}

static double simulated(const Run *r) { return r->target->simulator ? r->target->simulator->seconds(r->program) : 0; }

/* Time since it was counted last: one look at the clock an update. */
static void count_time(Loop *l)
{
	double now = clock_seconds();
	l->r->at.seconds += now - l->counted;
	l->counted = now;
}

/* Guarded ranks have to meet before they know that the last update is worth a file: then it comes before the next. */
static bool ticks_late(const Run *r) { return r->ranks && r->guard; }

/* Between two updates.  What it takes is not training. */
static void tick(Loop *l)
{
	Run *r = l->r;
	bool speaks = !r->ranks || r->ranks->comm->rank == 0;
	if (!r->tick || !speaks || l->counted - l->ticked < r->tick_seconds)
		return;
	if (ticks_late(r))
		count_time(l);
	l->ticked = l->counted;
	l->rolled = r->guard && !guard_state(r->guard); /* weights may go into a file */
	if (l->rolled)
		return;
	if (r->tick(r->tick_user, r) != 0)
		r->stop = 1;
	if (r->diverged && !r->seed)
		diverged(l, r->at.epoch + (r->at.done > 0));
	l->counted = clock_seconds();
}

static Status one_update(Loop *l, Update *u)
{
	Run *r = l->r;
	Position *at = &r->at;
	l->rolled = r->guard && !guard_place(r->guard);
	if (l->rolled)
		return MP_OK;
	Batch b = next_batch(l);
	Tally t = { 0 };
	double began = simulated(r);
	l->rolled = r->guard && !guard_batch(r->guard, &b);
	if (l->rolled)
		return MP_OK;
	Status s = r->ranks ? ranks_batch(r, &b, true, &r->stop, &t)
	                    : r->target->accumulate(r->program, &b, 0, leaf_count(b.count), &r->stop, &t);
	l->rolled = r->ranks && r->ranks->back;
	if (s != MP_OK || l->rolled)
		return s;
	update_fill(&r->opt, at->updates + 1, (double)at->epoch + (double)at->done / (double)l->examples,
	            (double)b.count / (double)l->examples, u);
	l->rolled = r->guard && !guard_summed(r->guard, &b);
	if (!l->rolled && ticks_late(r))
		tick(l);
	if (l->rolled)
		return MP_OK;
	r->target->apply(r->program, u);
	count_time(l);
	at->simulated += simulated(r) - began;
	at->updates++;
	at->done += b.count;
	tally_add(&at->tally, &t);
	l->rolled = r->guard && !guard_applied(r->guard, &t);
	if (l->rolled)
		return MP_OK;
	check_error(l, &t);
	if (at->done < l->examples && !ticks_late(r)) /* else when the epoch is noted */
		tick(l);
	return MP_OK;
}

static void note_best(Loop *l)
{
	Run *r = l->r;
	double e = l->test ? r->report.test_error : r->report.error;
	r->report.best = e < r->at.best;
	if (!r->report.best)
		return;
	r->at.best = e;
	r->at.best_epoch = r->at.epoch;
	if (r->opt.keep_best && !look_due(l))
		check_weights(l);
	if (r->opt.keep_best && !l->rolled) {
		for (uint64_t i = 0; i < r->net->links; i += CHUNK_LINKS) {
			r->target->get(r->program, 0, i, CHUNK_LINKS, l->piece);
			best_put(r, i, net_chunk(r->net, i, CHUNK_LINKS), l->piece);
		}
		r->best_at = r->at;
	}
}

/* The epoch is counted, tested and noted.  Sound: its weights are known to be finite. */
static void epoch_end(Loop *l, double rate, bool sound)
{
	Run *r = l->r;
	Position *at = &r->at;
	at->last = at->tally;
	at->tally = (Tally){ 0 };
	at->done = 0;
	at->epoch++;
	l->ahead = 0;
	if (r->guard && (l->test || r->opt.keep_best)) {
		l->rolled = !guard_state(r->guard);
		if (l->rolled)
			return;
	}
	if (!sound && look_due(l))
		check_weights(l);
	if (l->rolled)
		return;
	if (l->test) {
		measure(r, l->test, &at->test);
		turn_to(r, l->data);
		l->rolled = r->ranks && r->ranks->back;
		if (l->rolled)
			return;
	}
	report_fill(r, l->data, rate);
	r->report.solved = until_reached(&l->until, &at->last);
	note_best(l);
	report_note(r);
	if (r->guard && !l->rolled)
		guard_moved(r->guard);
}

static Status one_epoch(Loop *l, Update *u)
{
	Run *r = l->r;
	Position *at = &r->at;
	l->rolled = r->guard && !guard_epoch(r->guard);
	if (l->rolled)
		return MP_OK;
	order_epoch(l->order, at->epoch);
	l->picked_from = at->done;
	l->picks = 0;
	l->ahead = at->done / SHUFFLE_BLOCK;
	l->counted = clock_seconds();
	while (at->done < l->examples && !l->rolled) {
		Status s = one_update(l, u);
		if (s != MP_OK)
			return s;
		if (!l->rolled && at->done < l->examples && end_reason(l))
			return MP_OK;
	}
	l->rolled = l->rolled || (r->guard && !guard_place(r->guard));
	if (l->rolled)
		return MP_OK;
	epoch_end(l, u->param[P_RATE], false);
	return MP_OK;
}

/* ---- many updates at once ---- */

/* How many updates may pass before somebody wants to know. */
static uint64_t updates_at_once(Loop *l)
{
	const Options *o = &l->r->opt;
	const Position *at = &l->r->at;
	uint64_t epochs = EPOCHS_AT_ONCE;

	if (o->epochs)
		epochs = lesser(epochs, (uint64_t)o->epochs - at->epoch);
	if (o->report)
		epochs = lesser(epochs, (uint64_t)o->report - at->epoch % (uint64_t)o->report);
	if (l->test || o->keep_best || (!o->report && report_due(l))) /* at the end of an epoch: it is not to be passed */
		epochs = 1;
	uint64_t n = many_most(&l->many, at, epochs);
	if (o->updates)
		n = lesser(n, (uint64_t)o->updates - at->updates);
	if (l->r->tick && l->r->tick_seconds <= 0) /* after every one */
		n = lesser(n, 1);
	return n;
}

/* Some updates, if the target can do them in one go.  False: it cannot. */
static bool many_updates(Loop *l, Update *u)
{
	Position *at = &l->r->at;
	uint64_t count = l->at_once ? updates_at_once(l) : 0;

	if (!count)
		return false;
	l->counted = clock_seconds();
	order_epoch(l->order, at->epoch);
	read_ahead(l);
	uint64_t done = many_do(&l->many, at, count), left = done;
	count_time(l);
	l->at_once = done > 0;
	for (const Tally *t = l->many.tally; left; t++) {
		uint64_t of_epoch = updates_left(l->examples, l->batch, at->done), some = lesser(left, of_epoch);
		left -= some;
		*u = l->many.update[l->many.same ? 0 : done - left - 1];
		at->updates += some;
		at->tally = *t;
		check_error(l, t);
		if (some == of_epoch)
			epoch_end(l, u->param[P_RATE], left > 0);
		else
			at->done += some * l->batch;
	}
	return done > 0;
}

/* ---- the loop ---- */

/* Data as the run's scale asks for it: scaled with the first data of the run, or as the weights it loaded were. */
static const Data *scaled(Run *r, const Data *d)
{
	if (r->scale.kind == SCALE_NONE)
		return d;
	Data *copy = NEW(&r->cx.scratch, 1, Data);
	*copy = *d;
	data_scale_apply(&r->cx, &r->cx.scratch, copy, &r->scale);
	return copy;
}

/* Where the run goes on, if it was interrupted, must be the data it began with. */
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

/* Ranks look at cases together. */
static void check_sizes(Run *r, const Data *d) { run_check_data(&r->cx, r->net, d, true); }

static uint64_t hash_text(const char *text) { return XXH3_64bits(text, strlen(text)); }

/* Options that change what is computed, or when it ends. */
static uint64_t hash_options(Ctx *cx, const Options *o)
{
	const mp_option *option;
	Buf b = { .arena = &cx->scratch };
	for (size_t i = 0; (option = option_at(i)) != NULL; i++)
		if (strcmp(option->name, "threads") != 0 && strcmp(option->name, "input") != 0)
			buf_printf(&b, "%s=%s\n", option->name, option_get(&cx->scratch, o, option->name));
	return hash_text(b.s);
}

/* ---- ranks ---- */

/* Does a rank have to look at all of the data? Of what lies in a file it reads its own cases alone. These are the
 * same in every epoch, unless the order changes: then sooner or later all cases come to every rank. */
static bool reads_all(const Loop *l, const Data *d)
{
	return !d->unchecked || (d == l->data && l->shuffled && !l->r->job->alone);
}

/* A few cases that every rank looks at, whoever has them: other data is hardly the same in all of these. */
static uint64_t sample_checksum(const Data *d)
{
	enum { SAMPLES = 16 };
	Validation l = { 0 };

	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t at = i * ((d->cases - 1) / (SAMPLES - 1));
		cases_validate(d, NULL, at, at + 1, &l);
	}
	return l.checksum;
}

/* What this rank has to look at of the data, and has to say about it. */
static void look_at(const Loop *l, const Data *d, int which, uint64_t batch)
{
	const Run *r = l->r;
	Ranks *k = r->job;
	const ErrorFn *e = &error_fns[r->opt.error];
	uint64_t examples = run_examples(r->net, d), batches = examples / batch + (examples % batch != 0);
	Validation *own = &k->own.look[which];

	if (reads_all(l, d) || (k->alone && !k->comm->rank))
		cases_validate(d, e, 0, d->cases, own);
	for (uint64_t i = 0; !reads_all(l, d) && !k->alone && i < batches; i++) {
		uint64_t begin, end;
		if (rank_cases(k, r->net, d, batch, i, &begin, &end))
			cases_validate(d, e, begin, end, own);
	}
	k->own.same[SAME_DATA + which] = data_checksum_with(d, reads_all(l, d) ? own->checksum : sample_checksum(d));
	if (reads_all(l, d) && k->comm->rank) /* rank 0 has said it */
		*own = (Validation){ .invalid = own->invalid, .check = own->check, .place = own->place };
}

/* The data as all ranks together saw it. */
static const Data *looked_at(Loop *l, const Data *d, int which, uint64_t *checksum)
{
	Validation all;
	Data *copy = NEW(&l->r->cx.scratch, 1, Data);

	ranks_look(&l->r->cx, l->r->job, which, d, &error_fns[l->r->opt.error], &all);
	*copy = *d;
	copy->signs = all.negative ? SIGNS_NEGATIVE : SIGNS_PLAIN;
	*checksum = data_checksum_with(d, all.checksum);
	return copy;
}

/* Ranks meet before they begin, to see that they are at the same work. Where a batch is a single leaf, or the
 * target knows no shares, rank 0 trains as if it were alone. */
static uint64_t share_out(Loop *l)
{
	Run *r = l->r;
	Ctx *cx = &r->cx;
	Ranks *k = r->job;
	char text[33];
	uint64_t checksum, unused;
	run_fingerprint(r, text);
	k->own = (Saying){ .seconds = r->at.seconds };
	k->own.same[SAME_NET] = hash_text(r->net->fingerprint);
	k->own.same[SAME_OPTIONS] = hash_options(cx, &r->opt);
	k->own.same[SAME_WEIGHTS] = hash_text(text) + r->at.updates;
	k->alone = !r->target->ranks || leaf_count(l->batch) < 2;
	look_at(l, l->data, LOOK_DATA, l->batch);
	if (l->test)
		look_at(l, l->test, LOOK_TEST, run_examples(r->net, l->test));
	ranks_meet(cx, k, SAY_START);
	ranks_same(cx, k);
	k->seconds = k->all.seconds;
	k->stop = false;
	const RanksOptions *own = options_of(&r->opt, &ranks_options);
	k->library = own->allreduce == ALLREDUCE_MPI;
	l->data = looked_at(l, l->data, LOOK_DATA, &checksum);
	if (l->test)
		l->test = looked_at(l, l->test, LOOK_TEST, &unused);
	return checksum;
}

/* When the target has the data, and knows how long its sums are. */
static void share_begin(Loop *l)
{
	Run *r = l->r;
	Ctx *cx = &r->cx;
	Ranks *k = r->job;
	if (!k->alone) {
		k->room = 0; /* what there was went with an earlier run */
		ranks_room(cx, k, r->target->ranks->sum_floats(r->program), l->batch);
		ranks_room(cx, k, r->target->ranks->sum_floats(r->program), l->examples % l->batch);
		r->ranks = k;
		return;
	}
	if (!r->target->ranks)
		note(cx, "run it without mpirun, or with --target cpu",
		     "target %s stays in one process: rank 0 trains, the others wait", r->target->name);
	else
		note(cx, "ranks share batches of more than 512 examples",
		     "a batch of %llu examples is one leaf: rank 0 trains, the others wait", (unsigned long long)l->batch);
}

static void loop_init(Loop *l, Run *r, const Data *data, const Data *test)
{
	Ctx *cx = &r->cx;
	void (*check)(Run * r, const Data *d) = r->job ? check_sizes : run_check_training;
	check(r, data);
	if (test)
		check(r, test);
	if (r->opt.patience && !test)
		fail(cx, MP_BAD_INPUT, "give test data with --test",
		     "patience watches the error on test data, and there is none");
	run_start(r);
	if (r->scale.kind == SCALE_NONE)
		r->scale = scale_copy(&cx->keep, &data->scale, data->inputs);
	if (data->classes) {
		r->classes = classes_copy(&cx->keep, data->classes, data->class_count);
		r->class_count = data->class_count;
	}
	l->data = data = scaled(r, data);
	l->test = test ? scaled(r, test) : NULL;
	until_parse(r->opt.until, &l->until);
	l->examples = run_examples(r->net, data);
	if (r->net->copies && !data->seq)
		note(cx, "mark sequences in the data if there are several (npz key seq, csv --sequence)",
		     "%s has no sequence boundaries; all its cases are taken as one sequence", data->name);
	l->batch = r->opt.batch == BATCH_ALL || (uint64_t)r->opt.batch > l->examples ? l->examples : (uint64_t)r->opt.batch;
	l->shuffled = r->opt.shuffle < 0 ? l->batch < l->examples : r->opt.shuffle != 0;
	uint64_t checksum = r->job ? share_out(l) : data_checksum(data);
	data = l->data;
	if (r->job)
		r->job->gone = true; /* all have the same checkpoint and data */
	check_same_data(r, data, checksum);
	if (r->job)
		r->job->gone = false;
	l->order = order_new(&cx->scratch, l->examples, (uint64_t)r->opt.seed, l->shuffled);
	l->ahead = r->at.done / SHUFFLE_BLOCK;
	l->look_every = epochs_between_looks(r->net, data);
	l->pick_room = 2 * l->batch + PICKS_AHEAD;
	if (l->shuffled)
		l->picked = NEW(&cx->scratch, l->pick_room, uint64_t);
	if (r->opt.keep_best && !r->best_weights)
		r->best_weights = arena_alloc(&cx->keep, best_bytes(r), 1);
	if (r->opt.keep_best)
		l->piece = NEW(&cx->scratch, net_chunk(r->net, 0, CHUNK_LINKS), double);
	r->points = 0;
	r->stride = 1;
	if (l->test && r->opt.guard)
		r->target->bind(cx, r->program, l->test); /* if that moves weights, it had better be now */
	r->target->bind(cx, r->program, data);
	if (r->job)
		share_begin(l);
	r->guard = guard_begin(r, data, l->order, r->ranks && !reads_all(l, data) ? l->batch : 0);
	l->at_once = r->target->run_updates && !r->ranks && !r->guard;
	l->many = (Many){ .target = r->target,
		              .program = r->program,
		              .opt = &r->opt,
		              .examples = l->examples,
		              .batch = l->batch,
		              .order = l->order,
		              .until = &l->until,
		              .stop = &r->stop };
	if (l->at_once)
		many_init(&l->many, &cx->scratch);
}

/* Report and tick functions may ask for much, but the data that is bound must stay. */
static void check_idle(Run *r)
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

Status run_train(Run *r, const Data *data, const Data *test, mp_report_fn *fn, void *user)
{
	Loop l = { .r = r, .fn = fn, .user = user, .reported = -INFINITY, .ticked = clock_seconds() };
	Update u;
	run_occupy(r);
	r->diverged = false;
	loop_init(&l, r, data, test);
	if (r->job && r->job->alone && r->job->comm->rank)
		return MP_OK;
	data = l.data;
	update_fill(&r->opt, r->at.updates + 1, (double)r->at.epoch, 0, &u);
	r->report = (mp_report){ 0 };
	report_fill(r, data, u.param[P_RATE]);
	r->report.solved = r->at.epoch && until_reached(&l.until, &r->at.last);
	const char *end = end_reason(&l);
	Status s = MP_OK;
	while (!end) {
		s = many_updates(&l, &u) ? MP_OK : one_epoch(&l, &u);
		bool whole = s == MP_OK && r->at.done == 0;
		if (s == MP_FAILED) {
			finish(r);
			return s;
		}
		if (l.rolled)
			continue;
		end = s == MP_STOPPED ? "signal" : end_reason(&l);
		if (end && r->guard && !guard_end(r->guard)) {
			r->report.solved = 0;
			end = NULL;
			continue;
		}
		if (whole && !end && report_due(&l))
			give_report(&l);
		if (!end && !ticks_late(r))
			tick(&l);
		if (!end && to_stop(r))
			end = "signal";
	}
	report_fill(r, data, u.param[P_RATE]);
	r->report.stopped_by = end;
	if (!run_finite(r))
		diverged(&l, r->at.epoch + (r->at.done > 0));
	run_fingerprint(r, r->fingerprint);
	r->report.fingerprint = r->fingerprint;
	r->training = false;
	give_report(&l);
	finish(r);
	bool asked = strcmp(end, "signal") == 0;
	r->stop = 0;
	return asked ? MP_STOPPED : MP_OK;
}

void run_test(Run *r, const Data *data, mp_result *result, double *outputs)
{
	Ctx *cx = &r->cx;
	bool labelled = result && data->targets;
	check_idle(r);
	run_check_data(cx, r->net, data, labelled);
	run_start(r);
	Data seen = *scaled(r, data);
	if (!labelled)
		seen.targets = 0;
	Options own = r->opt;
	if (r->saved_error >= 0 && !r->error_set && !r->at.updates)
		own.error = r->saved_error; /* what the weights were trained to make small */
	if (labelled)
		score_check(cx, &own, &seen);
	int error = r->opt.error;
	r->opt.error = own.error;
	r->target->bind(cx, r->program, &seen);
	Tally t = { 0 };
	double start = clock_seconds();
	Status s = r->target->evaluate(r->program, 0, run_examples(r->net, &seen), &r->stop, outputs, &t);
	r->opt.error = error;
	if (s != MP_OK)
		fail(cx, s, NULL, "stopped");
	if (result)
		*result = (mp_result){ .cases = seen.cases,
			                   .total_error = t.error,
			                   .seconds = clock_seconds() - start,
			                   .error = t.cases ? t.error / (double)t.cases : 0,
			                   .right = share_of(t.right, t.scored),
			                   .within = share_of(t.within, t.scored) };
}
