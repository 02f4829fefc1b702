/* SPDX-License-Identifier: MIT */
/* Predictors. In: a run. Out: a run of its own with the same weights, bound to data of one case, whose inputs are
 * overwritten for every prediction. */
#include <string.h>

#include "api.h"
#include "export.h"
#include "microprop/inside.h"
#include "microprop/predict.h"

struct mp_predictor {
	Run run;          /* its Ctx is that of the handle */
	Data data;        /* one case, without targets */
	float *given;     /* [inputs] */
	float *scaled;    /* [inputs] what the network gets: the same array where there is no scale */
	double *out;      /* [outputs]; NULL: it could not be made */
	Evaluator *steps; /* of a network with contexts; NULL: there is none */
	float *step_out;  /* [outputs] */
};

typedef struct PredictorArgs {
	mp_predictor *p;
	Run *from;
} PredictorArgs;

static void start_body(void *run) { run_start(run); }

/* Texts of options are copied: those of the other run end with it. */
static void copy_options(Ctx *cx, Options *to, const Options *from)
{
	const char *remedy;
	for (size_t i = 0; option_at(i); i++) {
		const char *name = option_at(i)->name;
		const char *wrong = option_set(cx, to, name, option_get(&cx->scratch, from, name), &remedy);
		if (wrong)
			fail(cx, MP_BAD_INPUT, remedy, "%s", wrong);
	}
}

static void copy_weights(Ctx *cx, Run *to, const Run *from)
{
	uint64_t links = to->net->links;
	double *w = NEW(&cx->scratch, net_chunk(to->net, 0, CHUNK_LINKS), double);
	for (uint64_t i = 0; i < links; i += CHUNK_LINKS) {
		from->target->get(from->program, 0, i, CHUNK_LINKS, w);
		to->target->set(to->program, 0, i, CHUNK_LINKS, w);
	}
}

/* The network as exported C computes it, which has the bits of target cpu and keeps what a case leaves to the next. */
static void steps_make(mp_predictor *p)
{
	Run *r = &p->run;
	Ctx *cx = &r->cx;
	if (!r->net->copies || strcmp(r->target->name, "cpu") != 0 || r->opt.noise)
		return;
	for (const Group *g = r->net->group; g < r->net->group + r->net->groups; g++)
		if (g->gain != 1)
			return;
	double *w = NEW(&cx->scratch, r->net->links, double);
	r->target->get(r->program, 0, 0, ALL_LINKS, w);
	p->steps = evaluator_new(recipe_make(cx, &cx->keep, &(Model){ .net = r->net, .opt = &r->opt, .w = w }), false);
	p->step_out = NEW(&cx->keep, r->net->outputs, float);
}

static void predictor_body(void *arg)
{
	PredictorArgs *a = arg;
	mp_predictor *p = a->p;
	Run *r = &p->run;
	Ctx *cx = &r->cx;
	r->net = a->from->net;
	r->saved_error = -1;
	if (!r->net || r->net->open)
		fail(cx, MP_BAD_INPUT, "check what mp_run_new returned", "this run has no network");
	r->opt = r->net->options;
	copy_options(cx, &r->opt, &a->from->opt);
	r->opt.error = run_error(a->from);
	r->opt.threads = 1;
	run_start(r); /* fails as the other run did */
	if (!a->from->program)
		fail(cx, MP_FAILED, NULL, "this run could not be started");
	copy_weights(cx, r, a->from);
	r->scale = scale_copy(&cx->keep, &a->from->scale, r->net->inputs);
	p->given = NEW(&cx->keep, r->net->inputs, float);
	p->scaled = r->scale.kind == SCALE_NONE ? p->given : NEW(&cx->keep, r->net->inputs, float);
	p->data = (Data){ .name = "case", .cases = 1, .inputs = r->net->inputs, .x = p->scaled, .x_type = T_F32 };
	r->target->bind(cx, r->program, &p->data);
	steps_make(p);
	p->out = NEW(&cx->keep, r->net->outputs, double);
}

mp_status mp_predictor_new(mp_predictor **predictor, mp_run *run, const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)predictor, sizeof **predictor, alloc);
	if (s != MP_OK)
		return s;
	if (run->net && !run->program)
		(void)api_call(&run->cx, start_body, run);
	s = api_call(&(*predictor)->run.cx, predictor_body, &(PredictorArgs){ *predictor, run });
	if (s != MP_OK)
		(*predictor)->out = NULL;
	return s;
}

void mp_predictor_close(mp_predictor *predictor) { api_close(predictor, sizeof *predictor); }

const char *mp_predictor_messages(const mp_predictor *predictor) { return api_messages(predictor); }

const mp_error *mp_predictor_get_error(const mp_predictor *predictor, size_t i) { return api_error(predictor, i); }

float *mp_predictor_inputs(mp_predictor *predictor) { return predictor->given; }

const double *mp_predictor_outputs(const mp_predictor *predictor) { return predictor->out; }

static void scale_inputs(mp_predictor *p)
{
	const Run *r = &p->run;
	for (uint32_t k = 0; r->scale.kind != SCALE_NONE && k < r->net->inputs; k++)
		p->scaled[k] = (float)(((double)p->given[k] - r->scale.offset[k]) * r->scale.factor[k]);
}

/* Without api_call: nothing here allocates or fails. */
const double *mp_predictor_run(mp_predictor *predictor)
{
	Run *r = &predictor->run;
	Tally t = { 0 };
	if (!predictor->out)
		return NULL;
	scale_inputs(predictor);
	r->target->evaluate(r->program, 0, 1, &r->stop, predictor->out, &t);
	return predictor->out;
}

const double *mp_predictor_step(mp_predictor *predictor)
{
	if (!predictor->out || (!predictor->steps && predictor->run.net->copies))
		return NULL;
	if (!predictor->steps)
		return mp_predictor_run(predictor);
	scale_inputs(predictor);
	evaluate(predictor->steps, predictor->scaled, predictor->step_out);
	for (uint32_t k = 0; k < predictor->run.net->outputs; k++)
		predictor->out[k] = (double)predictor->step_out[k];
	return predictor->out;
}

static void reset_body(void *predictor)
{
	mp_predictor *p = predictor;
	if (!p->out)
		fail(&p->run.cx, MP_BAD_INPUT, "check what mp_predictor_new returned", "this predictor could not be made");
	if (p->steps)
		evaluator_reset(p->steps);
	else if (p->run.net->copies)
		fail(&p->run.cx, MP_BAD_INPUT, "give mp_run_test whole sequences",
		     "networks with contexts are computed step by step on target cpu only, without gain and noise");
}

mp_status mp_predictor_reset(mp_predictor *predictor) { return api_call(&predictor->run.cx, reset_body, predictor); }

/* ---- fingerprint ---- */

static void fingerprint_body(void *arg)
{
	Run *r = arg;
	run_start(r);
	run_fingerprint(r, r->fingerprint);
}

const char *mp_run_get_fingerprint(mp_run *run)
{
	return api_call(&run->cx, fingerprint_body, run) == MP_OK ? run->fingerprint : NULL;
}
