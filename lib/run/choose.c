/* SPDX-License-Identifier: MIT */
/* Target auto. In: a network, options, data, a position. Out: the target of least predicted time among those that give
 * the bits of target cpu, and a note that says why.
 *
 * A run is judged by the limits that it states. One that may end before them is judged by an assumption, which the note
 * states. A limit of time is one of training: the target that trains more until then is the better one. */
#include <math.h>
#include <string.h>

#include "run.h"

enum { EPOCHS_ASSUMED = 100 }; /* of a run that may end before its limits: most do, long before */

bool target_is_auto(const Options *o) { return strcmp(o->target, "auto") == 0; }

/* ---- the work ---- */

/* Links whose source is an input: index lists skip them where it is 0. */
static double links_of_inputs(const Net *net)
{
	double n = 0;

	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		if (b->from_group >= 0 && net->group[b->from_group].role == ROLE_INPUT)
			n += (double)b->links;
	}
	return n;
}

double row_operations(const Net *net, const Data *data)
{
	double share = data && data->x_indptr && data->cases
	                   ? (double)data->x_indptr[data->cases] / ((double)data->cases * (double)max_u32(data->inputs, 1))
	                   : 1;

	return 4.5 * ((double)net->links - links_of_inputs(net) * (1 - share));
}

uint64_t example_rows(const Net *net, const TickPlan *ticks, const Data *data)
{
	uint64_t examples = run_examples(net, data), most = 0, first, count;

	for (uint64_t i = 0; i < examples; i++) {
		run_example(net, data, i, &first, &count);
		most = max_u64(most, ticks_example(ticks, data, first, count));
	}
	return most;
}

static TrainingWork workload_of(const Run *r, const Data *data, uint64_t seeds)
{
	TickPlan ticks = ticks_make(r->net, &r->opt);
	uint64_t examples = run_examples(r->net, data);
	uint64_t batch = r->opt.batch == BATCH_ALL ? examples : min_u64((uint64_t)r->opt.batch, examples);

	return (TrainingWork){ .net = r->net,
		                   .opt = &r->opt,
		                   .data = data,
		                   .rows = (double)ticks_example(&ticks, data, 0, data->cases),
		                   .operations = row_operations(r->net, data),
		                   .steps = (double)example_rows(r->net, &ticks, data),
		                   .batch = batch,
		                   .updates = batch ? ceil_div(examples, batch) : 0,
		                   .seeds = seeds ? seeds : 1,
		                   .together = seeds && !r->opt.patience && !r->opt.guard };
}

/* ---- how much of it ---- */

/* What is left of a run. */
typedef struct Extent {
	double epochs, seconds; /* of training; INFINITY: no limit */
	double unit;            /* epochs of what is counted in the note: an epoch, or an update */
	const char *name;       /* of that */
	const char *early;      /* NULL, or the option that may end the run before its limits: epochs are an assumption */
	double limit;           /* early: the epochs of these */
} Extent;

static double left(double limit, double passed) { return limit > 0 ? fmax(0, limit - passed) : INFINITY; }

static Extent extent_of(const Run *r, const TrainingWork *w)
{
	const Options *o = &r->opt;
	double of_update = 1 / (double)max_u64(w->updates, 1), examples = (double)run_examples(r->net, w->data);
	double epochs = left((double)o->epochs, (double)r->at.epoch + (double)r->at.done / fmax(examples, 1));
	double updates = of_update * left((double)o->updates, (double)r->at.updates);
	Extent e = { .epochs = fmin(epochs, updates), .seconds = left(o->time, r->at.seconds), .unit = 1, .name = "epoch" };

	if (updates < epochs) {
		e.unit = of_update;
		e.name = "update";
	}
	const char *early = strcmp(o->until, "never") != 0 ? "until" : o->patience ? "patience" : NULL;
	if (early && e.epochs > EPOCHS_ASSUMED)
		e = (Extent){ EPOCHS_ASSUMED, e.seconds, 1, "epoch", early, e.epochs };
	return e;
}

/* Epochs that a target trains until then. */
static double epochs_trained(const Extent *e, const Prediction *p)
{
	return p->epoch > 0 ? fmin(e->epochs, e->seconds / p->epoch) : e->epochs;
}

static double seconds_in_all(const Extent *e, const Prediction *p)
{
	return p->start + epochs_trained(e, p) * p->epoch;
}

/* More is trained, or the same in less time. */
static bool better(const Extent *e, const Prediction *a, const Prediction *b)
{
	double x = epochs_trained(e, a), y = epochs_trained(e, b);

	return x != y ? x > y : seconds_in_all(e, a) < seconds_in_all(e, b);
}

/* ---- the note ---- */

static void time_put(Buf *b, double seconds)
{
	if (seconds < 1e-3)
		buf_printf(b, "%.3g us", seconds * 1e6);
	else if (seconds < 1)
		buf_printf(b, "%.3g ms", seconds * 1e3);
	else if (seconds < 1000)
		buf_printf(b, "%.3g s", seconds);
	else
		buf_printf(b, "%.0f s", seconds);
}

/* 20,000 */
static void whole_put(Buf *b, double n)
{
	if (n >= 1000)
		whole_put(b, floor(n / 1000));
	buf_printf(b, n >= 1000 ? ",%03.0f" : "%.0f", fmod(n, 1000));
}

/* "20,000 epochs": whole ones, of what can be counted */
static void count_put(Buf *b, double n, const char *name)
{
	double whole = floor(n * (1 + 1e-12));

	if (n < 1 && n > 0)
		buf_printf(b, "%.3g", n);
	else if (whole < 1e15)
		whole_put(b, whole);
	else
		buf_printf(b, "%.3g", n);
	buf_printf(b, " %s%s", name, whole == 1 ? "" : "s");
}

/* "100 epochs (until may end the run before its 1,000)" */
static void extent_put(Buf *b, const Extent *e, uint64_t seeds)
{
	if (seeds) {
		count_put(b, (double)seeds, "seed");
		buf_puts(b, " of ");
	}
	if (!isinf(e->epochs))
		count_put(b, e->epochs / e->unit, e->name);
	if (!isinf(e->seconds)) {
		buf_puts(b, isinf(e->epochs) ? "" : ", at most ");
		time_put(b, e->seconds);
		buf_puts(b, " of training");
	}
	if (!e->early)
		return;
	buf_printf(b, " (%s may end %s", e->early, seeds ? "a seed" : "the run");
	if (!isinf(e->limit)) {
		buf_puts(b, " before ");
		whole_put(b, floor(e->limit));
	}
	buf_puts(b, ")");
}

/* "cuda 1.1 s (0.8 s of it before the first)" */
static void prediction_put(Buf *b, const char *target, const Extent *e, const Prediction *p)
{
	buf_printf(b, "%s ", target);
	if (!isinf(e->seconds)) {
		count_put(b, epochs_trained(e, p) / e->unit, e->name);
		buf_puts(b, " in ");
	}
	time_put(b, seconds_in_all(e, p));
	if (p->start > 0) {
		buf_puts(b, " (");
		time_put(b, p->start);
		buf_puts(b, " of it before the first)");
	}
}

/* ---- the choice ---- */

/* A run that has begun goes on with targets that have its bits. */
static bool can_choose(const Run *r, const Target *t) { return t->time && (!r->program || run_can_move(r, t->name)); }

static bool has_choice(const Run *r)
{
	uint32_t targets = 0;

	for (size_t i = 0; target_table[i]; i++)
		targets += can_choose(r, target_table[i]);
	return targets > 1;
}

static const Target *fastest(Run *r, const TrainingWork *w, const Extent *e, Buf *why)
{
	const Target *best = NULL;
	Prediction least = { 0 };

	for (size_t i = 0; target_table[i]; i++) {
		const Target *t = target_table[i];
		Prediction p = { 0 };
		if (!can_choose(r, t))
			continue;
		t->time->predict(&r->cx, w, &p);
		buf_puts(why, !why->len ? "" : p.why_not ? "; " : ", ");
		if (p.why_not) {
			buf_printf(why, "%s cannot: %s", t->name, p.why_not);
			continue;
		}
		prediction_put(why, t->name, e, &p);
		if (!best || better(e, &p, &least)) {
			best = t;
			least = p;
		}
	}
	return best;
}

static void target_set(Run *r, const char *name)
{
	r->opt.target = name;
	if (r->program && strcmp(r->target->name, name) != 0)
		run_move(r);
}

void target_choose(Run *r, const Data *data, uint64_t seeds)
{
	Ctx *cx = &r->cx;

	if (target_is_auto(&r->opt))
		r->target_from = TARGET_OPEN;
	if (r->target_from != TARGET_OPEN)
		return;
	options_check(cx, &r->opt);
	ticks_check(cx, r->net, &r->opt);
	r->target_from = TARGET_CHOSEN;
	if (r->program && !has_choice(r)) {
		note(cx, NULL, "target auto is %s: this run began there, and no other target has its bits", r->target->name);
		return;
	}
	TrainingWork w = workload_of(r, data, seeds);
	Extent e = extent_of(r, &w);
	Buf much = { .arena = &cx->scratch }, why = { .arena = &cx->scratch };
	const Target *best = fastest(r, &w, &e, &why);
	extent_put(&much, &e, seeds);
	target_set(r, best ? best->name : "cpu");
	note(cx, NULL, "target auto is %s; predicted for %s: %s", r->opt.target, much.s, why.s);
}

void target_begin(Run *r, void (*fn)(void *arg), void *arg)
{
	Ctx *cx = &r->cx;
	size_t said = cx->message_count;
	bool chosen = r->target_from == TARGET_CHOSEN && !r->job && run_can_move(r, "cpu");

	r->target_from = TARGET_GIVEN;
	if (!chosen || strcmp(r->opt.target, "cpu") == 0) {
		fn(arg);
		return;
	}
	Status s = caught(cx, fn, arg);
	if (s == MP_OK)
		return;
	if (s == MP_NO_MEMORY) /* of this computer: target cpu needs as much */
		fail_recorded(cx, s);
	const mp_error *e = ctx_error(cx, said);
	const char *why = e ? arena_copy(&cx->scratch, e->text, strlen(e->text)) : "its target failed";
	messages_drop(cx, said);
	target_set(r, "cpu");
	note(cx, NULL, "target auto is cpu: %s", why);
	fn(arg);
}
