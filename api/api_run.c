/* SPDX-License-Identifier: MIT */
/* Public calls on runs. */
#include <math.h>
#include <string.h>

#include "api.h"
#include "guard.h"
#include "legacy.h"
#include "microprop/background.h"
#include "microprop/data.h"
#include "microprop/import.h"

static void new_body(void *arg)
{
	Run *r = arg;
	if (!r->net)
		fail(&r->cx, MP_BAD_INPUT, "check what mp_net_open returned", "this network could not be read");
	if (r->net->open)
		net_open_fail(&r->cx, r->net);
	r->opt = r->net->options;
}

/* Fails if the data could not be read. */
const Data *data_readable(Ctx *cx, const mp_data *d)
{
	if (d && !d->data)
		fail(cx, MP_BAD_INPUT, "check what mp_data_open returned", "this data could not be read");
	if (d)
		data_validate(cx, d->data);
	return d ? d->data : NULL;
}

/* Ranks of a job check only the cases that they train on. */
static const Data *data_shared(Run *r, const mp_data *d)
{
	return r->job && d && d->data ? d->data : data_readable(&r->cx, d);
}

mp_status mp_run_new(mp_run **run, const mp_net *net, const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)run, sizeof **run, alloc);
	if (s != MP_OK)
		return s;
	(*run)->net = net->net;
	(*run)->saved_error = -1;
	(*run)->report.size = sizeof(*run)->report;
	return api_call(&(*run)->cx, new_body, *run);
}

void mp_run_close(mp_run *run) { api_close(run, sizeof *run); }

const char *mp_run_messages(const mp_run *run) { return api_messages(run); }

const mp_error *mp_run_get_error(const mp_run *run, size_t i) { return api_error(run, i); }

/* ---- options ---- */

typedef struct SetArgs {
	Run *r;
	const char *option, *value;
} SetArgs;

static void set_body(void *arg)
{
	SetArgs *a = arg;
	Ctx *cx = &a->r->cx;
	const char *name = option_name(a->option), *remedy;
	Options o = a->r->opt;
	const char *wrong = option_set(cx, &o, a->option, a->value, &remedy);
	if (wrong)
		fail(cx, MP_BAD_INPUT, remedy, "%s", wrong);
	const char *old = option_get(&cx->scratch, &a->r->opt, name);
	bool fixed = option_is_fixed(name) || (o.schedule == SCHEDULE_COSINE && strcmp(name, "epochs") == 0);
	bool is_open = a->r->program && target_is_auto(&o);
	if (is_open)
		o.target = a->r->opt.target; /* until it trains */
	bool changed = strcmp(old, option_get(&cx->scratch, &o, name)) != 0;
	bool moves = a->r->program && changed && strcmp(name, "target") == 0 && run_can_move(a->r, o.target);
	if (a->r->program && fixed && changed && !moves)
		fail(cx, MP_BAD_INPUT, "leave it out, or start a new run from these weights with --load",
		     "%s was %s when this run began and cannot become %s: the result would be that of neither run", name, old,
		     a->value);
	if (moves && a->r->training)
		fail(cx, MP_BAD_INPUT, "set it when the training has ended",
		     "a run cannot move to another target while it trains");
	if (o.error == ERR_AUTO)
		o.error = net_error(a->r->net);
	a->r->opt = o;
	if (strcmp(name, "target") == 0)
		a->r->target_from = is_open ? TARGET_OPEN : TARGET_GIVEN;
	a->r->error_set |= strcmp(name, "error") == 0;
	if (moves)
		run_move(a->r);
	guard_options_changed(a->r->guard);
}

mp_status mp_run_set(mp_run *run, const char *option, const char *value)
{
	return api_call(&run->cx, set_body, &(SetArgs){ run, option, value });
}

typedef struct GetArgs {
	Run *r;
	const char *option, *value;
} GetArgs;

static void get_body(void *arg)
{
	GetArgs *a = arg;
	const char *value = option_get(&a->r->cx.scratch, &a->r->opt, a->option);
	if (!value)
		return;
	Buf *b = &a->r->text;
	b->arena = &a->r->cx.keep;
	b->len = 0;
	buf_puts(b, value);
	a->value = b->s;
}

const char *mp_run_get(mp_run *run, const char *option)
{
	GetArgs a = { run, option, NULL };
	return api_call(&run->cx, get_body, &a) == MP_OK ? a.value : NULL;
}

/* ---- files ---- */

typedef struct FileArgs {
	Run *r;
	const char *path;
	const char *best;
	uint32_t keep;
	const char *text;
	size_t len;
} FileArgs;

static void load_body(void *arg)
{
	FileArgs *a = arg;
	checkpoint_load(a->r, a->path, false);
}

static void resume_body(void *arg)
{
	FileArgs *a = arg;
	if (a->r->program)
		fail(&a->r->cx, MP_BAD_INPUT, "resume into a new run", "this run has already started");
	checkpoint_load(a->r, a->path, true);
	a->r->report.epoch = a->r->at.epoch; /* so that it is known before the first report */
}

static void save_body(void *arg)
{
	FileArgs *a = arg;
	run_start(a->r);
	checkpoint_save(a->r, a->path, false);
}

static void save_best_body(void *arg)
{
	FileArgs *a = arg;
	if (!a->r->best_weights || !a->r->best_at.epoch)
		fail(&a->r->cx, MP_BAD_INPUT, "set option keep-best before training", "there is no best epoch to save");
	checkpoint_save(a->r, a->path, true);
}

static void save_background_body(void *arg)
{
	FileArgs *a = arg;
	Status before = background_status(a->r, false);
	background_save(a->r, a->path, a->best, a->keep);
	a->r->cx.status = before;
}

static void save_wait_body(void *arg)
{
	FileArgs *a = arg;
	a->r->cx.status = background_status(a->r, true);
}

static void text_body(void *arg)
{
	FileArgs *a = arg;
	OutFile *f = file_create(&a->r->cx, &a->r->cx.scratch, a->path);
	file_write(f, a->text, a->len);
	file_commit(&a->r->cx, f);
}

mp_status mp_run_load(mp_run *run, const char *path)
{
	return api_call(&run->cx, load_body, &(FileArgs){ .r = run, .path = path });
}

mp_status mp_run_resume(mp_run *run, const char *path)
{
	return api_call(&run->cx, resume_body, &(FileArgs){ .r = run, .path = path });
}

mp_status mp_run_save(mp_run *run, const char *path)
{
	return api_call(&run->cx, save_body, &(FileArgs){ .r = run, .path = path });
}

mp_status mp_run_save_best(mp_run *run, const char *path)
{
	return api_call(&run->cx, save_best_body, &(FileArgs){ .r = run, .path = path });
}

mp_status mp_run_save_background(mp_run *run, const char *path, const char *best, unsigned keep)
{
	return api_call(&run->cx, save_background_body, &(FileArgs){ .r = run, .path = path, .best = best, .keep = keep });
}

mp_status mp_run_save_wait(mp_run *run) { return api_call(&run->cx, save_wait_body, &(FileArgs){ .r = run }); }

const char *mp_run_save_messages(const mp_run *run) { return background_message(run); }

mp_status mp_run_write_text(mp_run *run, const char *path, const char *text, size_t len)
{
	return api_call(&run->cx, text_body, &(FileArgs){ .r = run, .path = path, .text = text, .len = len });
}

static void export_body(void *arg)
{
	FileArgs *a = arg;
	Ctx *cx = &a->r->cx;
	run_start(a->r);
	double *w = NEW(&cx->scratch, a->r->net->links, double);
	a->r->target->get(a->r->program, 0, 0, ALL_LINKS, w);
	old_write(cx, a->r->net, w, a->path, a->text);
}

mp_status mp_run_export(mp_run *run, const char *path, const char *format)
{
	return api_call(&run->cx, export_body, &(FileArgs){ .r = run, .path = path, .text = format });
}

/* ---- training and testing ---- */

typedef struct TrainArgs {
	Run *r;
	const mp_data *data, *test;
	mp_report_fn *fn;
	void *user;
	mp_result *result;
	double *out;
} TrainArgs;

static void train_body(void *arg)
{
	TrainArgs *a = arg;
	Ctx *cx = &a->r->cx;
	cx->status = run_train(a->r, data_shared(a->r, a->data), data_shared(a->r, a->test), a->fn, a->user);
}

mp_status mp_run_train(mp_run *run, const mp_data *data, const mp_data *test, mp_report_fn *report, void *user)
{
	return api_call(&run->cx, train_body,
	                &(TrainArgs){ .r = run, .data = data, .test = test, .fn = report, .user = user });
}

const mp_report *mp_run_get_report(const mp_run *run) { return &run->report; }

const mp_point *mp_run_get_point(const mp_run *run, size_t i) { return i < run->points ? &run->history[i] : NULL; }

const char *const *mp_run_get_classes(const mp_run *run, uint32_t *count)
{
	*count = run->class_count;
	return run->classes;
}

static void figures_body(void *arg)
{
	GetArgs *a = arg;
	Buf *b = &a->r->text;
	b->arena = &a->r->cx.keep;
	b->len = 0;
	Buf members = { .arena = &a->r->cx.scratch };
	if (a->r->program && a->r->target->simulator)
		a->r->target->simulator->report(a->r->program, &members);
	buf_printf(b, "{%s}", members.s ? members.s : "");
	a->value = b->s;
}

const char *mp_run_get_figures(mp_run *run)
{
	GetArgs a = { .r = run };
	return api_call(&run->cx, figures_body, &a) == MP_OK ? a.value : NULL;
}

void mp_run_on_tick(mp_run *run, double seconds, mp_tick_fn *fn, void *user)
{
	run->tick = fn;
	run->tick_user = user;
	run->tick_seconds = seconds;
}

void mp_run_stop(mp_run *run) { run->stop = 1; }

static bool any_target(Ctx *cx, const Data *d)
{
	float *row = NEW(&cx->scratch, d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, row);
		for (uint32_t k = 0; k < d->targets; k++)
			if (!isnan(row[k]))
				return true;
	}
	return false;
}

static void test_body(void *arg)
{
	TrainArgs *a = arg;
	Ctx *cx = &a->r->cx;
	mp_result own = { .size = sizeof own };
	if (a->result && a->result->size < sizeof own.size)
		fail(cx, MP_BAD_INPUT, "set mp_result.size to sizeof(mp_result)", "this result has no size");
	const Data *d = data_readable(cx, a->data);
	if (a->result && d && d->targets && !any_target(cx, d))
		fail(cx, MP_BAD_INPUT, "give data with targets", "no case of %s has a target to measure by", d->name);
	run_test(a->r, d, a->result ? &own : NULL, a->out);
	if (!a->result)
		return;
	own.size = min_u64(a->result->size, sizeof own);
	memcpy(a->result, &own, own.size);
}

mp_status mp_run_test(mp_run *run, const mp_data *data, mp_result *result, double *outputs)
{
	return api_call(&run->cx, test_body, &(TrainArgs){ .r = run, .data = data, .result = result, .out = outputs });
}

/* ---- weights ---- */

typedef struct WeightArgs {
	Run *r;
	double *out;
	const double *in;
	size_t count;
} WeightArgs;

static void weights_body(void *arg)
{
	WeightArgs *a = arg;
	run_start(a->r);
	if (a->count != a->r->net->links)
		fail(&a->r->cx, MP_BAD_INPUT, "ask mp_net_get_info for the number of connections",
		     "there are %llu weights, not %zu", (unsigned long long)a->r->net->links, a->count);
	if (a->in)
		a->r->target->set(a->r->program, 0, 0, ALL_LINKS, a->in);
	else
		a->r->target->get(a->r->program, 0, 0, ALL_LINKS, a->out);
}

mp_status mp_run_get_weights(mp_run *run, double *w, size_t count)
{
	return api_call(&run->cx, weights_body, &(WeightArgs){ .r = run, .out = w, .count = count });
}

mp_status mp_run_set_weights(mp_run *run, const double *w, size_t count)
{
	return api_call(&run->cx, weights_body, &(WeightArgs){ .r = run, .in = w, .count = count });
}
