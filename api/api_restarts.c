/* SPDX-License-Identifier: MIT */
/* Training many seeds: side by side if the target can, else one after the other; then the best once more. Ranks of a
 * job share the seeds; the best one is then trained as any run is: ranks share its leaves, or rank 0 trains alone. */
#include <assert.h>
#include <string.h>

#include "api.h"
#include "ranks.h"

typedef struct Job {
	Run *r;
	const mp_data *data, *test;
	mp_report_fn *report;
	mp_restarts_fn *fn;
	void *user;
	uint64_t count, number; /* number: of the seed being trained */
	Restarts all;
	bool lanes, stopped;
	const char **note; /* [notes] said before the first seed: each call drops those of the one before */
	uint32_t notes;
	Ranks *ranks; /* that share the seeds; NULL: this process trains them all */
} Job;

typedef struct BindArgs {
	Run *r;
	const Data *data;
} BindArgs;

static void bind_data(void *arg)
{
	const BindArgs *a = arg;

	a->r->target->bind(&a->r->cx, a->r->program, a->data);
}

static void notes_keep(Job *j)
{
	Ctx *cx = &j->r->cx;
	const mp_error *e;

	j->note = NEW(&cx->keep, cx->message_count + 1, const char *);
	j->notes = 0;
	while ((e = ctx_error(cx, j->notes)))
		j->note[j->notes++] = arena_copy(&cx->keep, e->text, strlen(e->text));
}

static void begin_body(void *arg)
{
	Job *j = arg;
	Run *r = j->r;
	const Data *data = data_readable(&r->cx, j->data), *test = data_readable(&r->cx, j->test);

	run_occupy(r);
	restarts_init(&j->all, r, j->count, r->job ? (uint32_t)r->job->comm->size : 1, data, test);
	j->all.fn = j->fn;
	j->all.user = j->user;
	if (r->job)
		ranks_share_seeds(r, &j->all, data, test);
	if (r->job && r->job->comm->rank)
		j->all.fn = NULL; /* rank 0 reports the progress of its own share */
	notes_keep(j);
	if (r->job) /* ranks keep the target that they have agreed on */
		r->target_from = TARGET_GIVEN;
	j->ranks = r->job;
	r->job = NULL;                                   /* until the results are gathered */
	bool beside = !r->opt.patience && !r->opt.guard; /* patience: test error ends a run */
	if ((beside && r->target->restarts) || r->target_from == TARGET_CHOSEN)
		target_begin(r, bind_data, &(BindArgs){ r, data });
	notes_keep(j);
	if (!beside || !r->target->restarts)
		return;
	j->lanes = r->target->restarts->run(&r->cx, r->program, &j->all);
}

static int seed_report(void *user, mp_run *run, const mp_report *report)
{
	Job *j = user;

	(void)run;
	(void)report;
	restarts_report(&j->all);
	return 0;
}

/* Without test passes, unless they may end it, best epoch and reports. */
static void seed_body(void *arg)
{
	Job *j = arg;
	Run *r = j->r;
	Options own = r->opt;

	r->opt.keep_best = 0;
	r->opt.report = 0;
	r->seed = true;
	run_restart(r, j->all.first + j->number);
	r->cx.status = run_train(r, j->data->data, r->opt.patience && j->test ? j->test->data : NULL, seed_report, j);
	r->opt = own;
}

/* One seed that fails does not end the others. */
static Status each_seed(Job *j)
{
	Run *r = j->r;

	while (restarts_take(&j->all, &j->number)) {
		Options own = r->opt;
		Status s = api_call(&r->cx, seed_body, j);
		const mp_report *p = &r->report;
		mp_seed one = { .seed = j->all.first + j->number, .failed = s == MP_FAILED, .epochs = r->at.epoch };
		r->opt = own;
		r->seed = false;
		if (s != MP_OK && s != MP_FAILED)
			return s;
		if (s == MP_OK) {
			one.solved = p->solved;
			one.error = p->error;
			one.right = p->right;
			one.within = p->within;
			memcpy(one.fingerprint, r->fingerprint, sizeof one.fingerprint);
		}
		restarts_end(&j->all, j->number, &one);
	}
	return r->stop ? MP_STOPPED : MP_OK;
}

static void sum_body(void *arg)
{
	Job *j = arg;

	if (j->r->job && ranks_gather_seeds(j->r, &j->all))
		j->stopped = true;
	restarts_sum(&j->all, j->data->data->cases);
	j->r->restarts.lanes = j->lanes;
	j->r->restarts.parallel = j->lanes ? j->all.parallel : 0;
}

static void best_body(void *arg)
{
	Job *j = arg;
	Run *r = j->r;
	const mp_seed *best = &r->seeds[r->restarts.best];

	for (uint32_t i = 0; i < j->notes; i++)
		note(&r->cx, NULL, "%s", j->note[i]);
	if (j->all.note)
		note(&r->cx, NULL, "%s", j->all.note);
	run_restart(r, best->seed);
	r->cx.status = run_train(r, j->data->data, j->test ? j->test->data : NULL, j->report, j->user);
	bool trained = !r->job || !r->job->root_only || !r->job->comm->rank;
	assert(r->cx.status != MP_OK || !trained || !strcmp(best->fingerprint, r->fingerprint));
}

mp_status mp_run_restarts(mp_run *run, const mp_data *data, const mp_data *test, uint64_t count,
                          mp_restarts_fn *progress, mp_report_fn *report, void *user)
{
	Job j = { .r = run, .data = data, .test = test, .count = count, .fn = progress, .report = report, .user = user };
	Status s = api_call(&run->cx, begin_body, &j), summed = MP_OK;

	if (s == MP_OK && !j.lanes)
		s = each_seed(&j);
	if (j.ranks)
		run->job = j.ranks;
	if (s != MP_OK && s != MP_STOPPED)
		return s;
	j.stopped = s == MP_STOPPED || run->stop;
	summed = api_call(&run->cx, sum_body, &j);
	run->stop = 0;
	if (summed != MP_OK)
		return summed;
	if (run->restarts.done)
		s = api_call(&run->cx, best_body, &j);
	return s == MP_OK && j.stopped ? MP_STOPPED : s;
}

const mp_restarts *mp_run_get_restarts(const mp_run *run) { return run->restarts.count ? &run->restarts : NULL; }

const mp_seed *mp_run_get_seed(const mp_run *run, uint64_t i) { return i < run->restarts.done ? &run->seeds[i] : NULL; }
