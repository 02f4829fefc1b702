/* SPDX-License-Identifier: MIT */
/* Studies of a trained network: the public call.  In: a run, data, the name and options of a study.  Out: text, through
 * the function of the caller, and the files that options name. */
#include <string.h>

#include "analyze.h"
#include "api.h"
#include "microprop/tool.h"
#include "train.h"

static const struct {
	const char *name;
	StudyFn *run;
	bool targets; /* it needs data with targets */
} studies[] = {
	{ "lesion", lesion_study, true },  { "analyze", analyze_study, true },          { "network", network_study, false },
	{ "hinton", hinton_study, false }, { "activations", activations_study, false }, { "links", links_study, false },
};

typedef struct StudyArgs {
	Run *r;
	const mp_data *data;
	const char *name;
	int argc;
	const char *const *argv;
	mp_write_fn *write;
	void *user;
	const Data *cases;
} StudyArgs;

static void activations(void *user, const Group *g, uint32_t tick, double *out)
{
	StudyArgs *a = user;
	run_activations(a->r, a->cases, g, tick, out);
}

/* Best guesses are a figure of classes and code words, not of several bits or of numbers. */
static bool right_counts(Ctx *cx, const Net *net, const Data *d)
{
	for (uint32_t i = 0; i < net->groups; i++)
		if (net->group[i].role == ROLE_OUTPUT && net->group[i].fn == FN_SOFTMAX)
			return true;
	int kind = d->targets ? metrics_kind(cx, d, NULL) : METRICS_NUMBERS;
	bool levels = kind == METRICS_NUMBERS && d->targets && targets_two_valued(cx, d);
	return d->code_count || levels || (kind != METRICS_BITS && kind != METRICS_NUMBERS);
}

static void study_body(void *arg)
{
	StudyArgs *a = arg;
	Run *r = a->r;
	Ctx *cx = &r->cx;
	Buf out = { .arena = &cx->scratch };
	size_t i = 0;
	while (i < COUNT(studies) && strcmp(a->name, studies[i].name) != 0)
		i++;
	if (i == COUNT(studies))
		fail(cx, MP_BAD_INPUT, "see: microprop --help", "there is no study '%.40s'", a->name);
	a->cases = a->data ? data_readable(cx, a->data) : NULL;
	if (studies[i].targets && (!a->cases || !a->cases->targets))
		fail(cx, MP_BAD_INPUT, "give data with targets", "%s needs targets to measure by", a->name);
	if (a->cases)
		run_check_data(cx, r->net, a->cases, studies[i].targets);
	run_start(r);
	Options own = r->opt;
	own.error = run_error(r);
	double *w = NEW(&cx->scratch, r->net->links, double);
	r->target->get(r->program, 0, 0, ALL_LINKS, w);
	Subject s = { .cx = cx,
		          .net = r->net,
		          .opt = &own,
		          .target = r->target,
		          .data = a->cases ? data_scaled(r, a->cases) : NULL,
		          .w = w,
		          .right = a->cases && right_counts(cx, r->net, a->cases),
		          .activations = activations,
		          .user = a };
	if (s.data && studies[i].targets)
		targets_check(cx, &own, s.data);
	studies[i].run(&s, a->argc, a->argv, &out);
	if (out.len)
		a->write(a->user, out.s, out.len);
}

mp_status mp_run_study(mp_run *run, const mp_data *data, const char *study, int argc, const char *const *argv,
                       mp_write_fn *write, void *user)
{
	return api_call(&run->cx, study_body, &(StudyArgs){ run, data, study, argc, argv, write, user, NULL });
}
