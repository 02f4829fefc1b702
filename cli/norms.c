/* SPDX-License-Identifier: MIT */
/* Norms of a run while it is trained: of its weights, of their change per update, of the gradient.
 *
 * In: the run at a report.  Out: members of a line of metrics.
 * The targets keep no gradient between updates, and fused ones never form it. So a second run (the probe) takes one
 * step of rate 1 on a sample of the cases from the weights of the first: the change is the gradient.
 * Must hold: the run's bits do not change, and all this takes at most one two-hundredth of its time. */
#include <math.h>
#include <stdlib.h>

#include "cli.h"

enum {
	MOST_LINKS = 1 << 20,  /* of a network whose norms are computed */
	SAMPLE = 512,          /* cases */
	SAMPLE_WORK = 4 << 20, /* links times cases, but 16 cases at least */
	SHARE = 200,
};

struct Norms {
	double *w, *before, *after; /* weights: now, when last looked at, after the step of the probe */
	uint64_t links, updates;    /* updates: when last looked at */
	mp_run *probe;              /* NULL: this network has no gradient here */
	mp_data *sample;
	uint64_t cases, probes;
	double looked, cost;           /* when, in seconds; how long it took */
	bool fresh;                    /* they are of the report at hand */
	double weight, step, gradient; /* NaN: not known */
};

static double distance(const double *a, const double *b, uint64_t n)
{
	double sum = 0;
	for (uint64_t i = 0; i < n; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sqrt(sum);
}

/* Cases at equal distances: data is often sorted by class. */
static bool sample_take(Norms *n, const Session *s)
{
	const mp_net_info *net = mp_net_get_info(s->net);
	const mp_data_info *info;
	if (mp_data_get_info(s->data, &info) != MP_OK || info->sequences || info->targets != net->outputs)
		return false;
	uint64_t most = SAMPLE_WORK / n->links < 16 ? 16 : SAMPLE_WORK / n->links;
	most = most < SAMPLE ? most : SAMPLE;
	n->cases = info->cases < most ? info->cases : most;
	float *x = calloc(n->cases * net->inputs, sizeof *x), *y = calloc(n->cases * net->outputs, sizeof *y);
	for (uint64_t i = 0; i < n->cases && x && y; i++)
		mp_data_get_case(s->data, i * info->cases / n->cases, x + i * net->inputs, y + i * net->outputs);
	bool taken = x && y && mp_data_new(&n->sample, n->cases, net->inputs, net->outputs, x, y, NULL, 0, NULL) == MP_OK;
	free(x);
	free(y);
	return taken;
}

/* Gradient descent in its plainest form; error function and ticks are those of the run. */
static bool probe_make(Norms *n, const Session *s)
{
	static const char *const options[][2] = {
		{ "target", "cpu" },  { "threads", "1" },   { "rule", "momentum" },
		{ "momentum", "0" },  { "rate", "1" },      { "schedule", "constant" },
		{ "warmup", "0" },    { "decay", "0" },     { "batch", "all" },
		{ "shuffle", "off" }, { "until", "never" }, { "patience", "0" },
		{ "epochs", "0" },    { "time", "0" },      { "updates", "1" },
	};
	static const char *const same[] = { "error",  "prime-offset", "ticks",        "intervals",
		                                "settle", "dt",           "targets-from", "inputs-until" };
	bool made = mp_run_new(&n->probe, s->net, NULL) == MP_OK;
	for (size_t i = 0; i < COUNT(options) && made; i++)
		made = mp_run_set(n->probe, options[i][0], options[i][1]) == MP_OK;
	for (size_t i = 0; i < COUNT(same) && made; i++)
		made = mp_run_set(n->probe, same[i], mp_run_get(s->run, same[i])) == MP_OK;
	return made;
}

static void probe_close(Norms *n)
{
	mp_run_close(n->probe);
	mp_data_close(n->sample);
	n->probe = NULL;
	n->sample = NULL;
}

static double gradient_norm(Norms *n)
{
	char limit[24];
	snprintf(limit, sizeof limit, "%llu", (unsigned long long)++n->probes);
	bool stepped = n->probe && mp_run_set_weights(n->probe, n->w, n->links) == MP_OK &&
	               mp_run_set(n->probe, "updates", limit) == MP_OK &&
	               mp_run_train(n->probe, n->sample, NULL, NULL, NULL) == MP_OK &&
	               mp_run_get_weights(n->probe, n->after, n->links) == MP_OK;
	return stepped ? distance(n->w, n->after, n->links) / (double)n->cases : NAN;
}

Norms *norms_start(const Session *s, bool alone)
{
	uint64_t links = mp_net_get_info(s->net)->connections;
	Norms *n = links && links <= MOST_LINKS ? calloc(1, sizeof *n) : NULL;
	if (!n)
		return NULL;
	n->links = links;
	n->w = calloc(links, sizeof *n->w);
	n->before = calloc(links, sizeof *n->before);
	n->after = calloc(links, sizeof *n->after);
	if (!n->w || !n->before || !n->after) {
		norms_stop(n);
		return NULL;
	}
	if (!alone || !sample_take(n, s) || !probe_make(n, s)) /* ranks hold other cases each */
		probe_close(n);
	gradient_norm(n); /* the first one prepares the probe, which takes longer */
	return n;
}

void norms_stop(Norms *n)
{
	if (!n)
		return;
	probe_close(n);
	free(n->w);
	free(n->before);
	free(n->after);
	free(n);
}

void norms_look(Norms *n, mp_run *run, const mp_report *r)
{
	double now = wall_clock();
	if (!n)
		return;
	n->fresh = (!n->looked || r->stopped_by || now - n->looked >= SHARE * n->cost) &&
	           mp_run_get_weights(run, n->w, n->links) == MP_OK;
	if (!n->fresh)
		return;
	for (uint64_t i = 0; i < n->links; i++)
		n->after[i] = 0;
	n->weight = distance(n->w, n->after, n->links);
	n->step = n->updates && r->updates > n->updates
	              ? distance(n->w, n->before, n->links) / (double)(r->updates - n->updates)
	              : NAN;
	n->gradient = gradient_norm(n);
	double *last = n->before;
	n->before = n->w;
	n->w = last;
	n->updates = r->updates;
	n->looked = wall_clock();
	n->cost = n->looked - now;
}

void json_norms(Json *j, const Norms *n)
{
	if (!n || !n->fresh)
		return;
	json_number(j, "weight_norm", n->weight);
	if (!isnan(n->step))
		json_number(j, "step_norm", n->step);
	if (!isnan(n->gradient))
		json_number(j, "gradient_norm", n->gradient);
}
