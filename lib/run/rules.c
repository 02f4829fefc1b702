/* SPDX-License-Identifier: MIT */
/* Update rules: the table of rules.def as data, and the numbers that one update needs.
 *
 * In: options and how far the run is.  Out: an Update: rate by schedule, Adam's corrections, the rest as it stands
 * in the options.  Must hold: the same numbers on every machine, so powers are products and the cosine is our own. */
#include <math.h>
#include <string.h>

#include "run.h"

#define NAMES(...)  \
	{               \
		__VA_ARGS__ \
	}
#define STARTS(...) \
	{               \
		__VA_ARGS__ \
	}
#define RULE(rule, text, norm, count, code, names, starts) \
	{ .name = rule,                                        \
	  .about = text,                                       \
	  .needs_norm = norm,                                  \
	  .needs_count = count,                                \
	  .formula = code,                                     \
	  .state = names,                                      \
	  .start = starts,                                     \
	  .states = COUNT(((const char *[])names)) },
const Rule rules[] = {
#include "rules.def"
};
const uint32_t rule_count = COUNT(rules);

const char *const param_names[P_COUNT] = {
	[P_RATE] = "rate",
	[P_MOMENTUM] = "momentum",
	[P_DECAY] = "decay",
	[P_CLIP] = "clip",
	[P_BETA1] = "beta1",
	[P_BETA2] = "beta2",
	[P_FIX1] = "fix1",
	[P_FIX2] = "fix2",
	[P_EPSILON] = "epsilon",
	[P_MU] = "mu",
	[P_UP] = "up",
	[P_DOWN] = "down",
	[P_STEP_MIN] = "step_min",
	[P_STEP_MAX] = "step_max",
	[P_KAPPA] = "kappa",
	[P_PHI] = "phi",
	[P_THETA] = "theta",
	[P_SHARE] = "share",
	[P_SHARE1] = "share1",
	[P_SHARE2] = "share2",
	[P_SHRINK] = "shrink",
};

double rule_start(const Rule *rule, int state, const Options *o, double factor)
{
	size_t at = rule->start[state];

	return at ? *(const double *)((const char *)o + at) * factor : 0;
}

static double square_sum(GradientFn *gradient, const void *arg, uint64_t first, uint64_t count)
{
	double g[512], sum = 0;

	for (uint64_t end = first + count, some; first < end; first += some) {
		some = end - first < COUNT(g) ? end - first : COUNT(g);
		gradient(arg, first, some, g);
		for (uint64_t i = 0; i < some; i++)
			sum += g[i] * g[i];
	}
	return sum;
}

/* Links are cut and joined as the examples of a batch are, so that any cut of the weights gives the same length. */
double rule_length(GradientFn *gradient, const void *arg, uint64_t n)
{
	double sum[32] = { 0 }; /* more than 1 + log2(MAX_LEAVES) */
	uint32_t leaves = leaf_count(n), depth = 0;
	uint64_t first, count;

	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		leaf_range(n, leaves, leaf, &first, &count);
		sum[depth++] = square_sum(gradient, arg, first, count);
		for (uint32_t joins = leaf_joins(leaf, leaves); joins; joins--, depth--)
			sum[depth - 2] += sum[depth - 1];
	}
	return sqrt(sum[0]);
}

typedef struct Array {
	const double *g;
	const uint8_t *frozen;
} Array;

static void array_gradient(const void *arg, uint64_t first, uint64_t count, double *g)
{
	const Array *a = arg;

	for (uint64_t i = 0; i < count; i++)
		g[i] = a->frozen && a->frozen[first + i] ? 0 : a->g[first + i];
}

double rule_norm(const double *g, const uint8_t *frozen, uint64_t n)
{
	return rule_length(array_gradient, &(Array){ g, frozen }, n);
}

static double power(double x, uint64_t n)
{
	double y = 1;

	for (; n; n /= 2, x *= x)
		if (n % 2)
			y *= x;
	return y;
}

/* Schedules: the rate after `epochs` epochs, from the options. */
static double rate_constant(const Options *o, double epochs)
{
	(void)epochs;
	return o->rate;
}

static double rate_step(const Options *o, double epochs)
{
	return o->rate * power(o->step_factor, (uint64_t)(epochs / o->step_epochs));
}

/* Cosine from the rate to rate-end; a run without a last epoch stays at the rate. */
static double rate_cosine(const Options *o, double epochs)
{
	double way = o->epochs > 0 ? fmin(epochs / (double)o->epochs, 1) : 0;

	return o->rate_end + (o->rate - o->rate_end) * 0.5 * (1 + arith_cospi(way));
}

static double (*const schedules[])(const Options *o, double epochs) = { rate_constant, rate_step, rate_cosine };

/* Versions without metadata `arithmetic` in their files formed these from numbers rounded to single precision. */
bool rule_numbers_changed(const Options *o)
{
	const char *name = rules[o->rule].name;
	float beta1 = (float)o->beta1, beta2 = (float)o->beta2, theta = (float)o->theta, mu = (float)o->mu;

	if (strcmp(name, "adam") == 0)
		return 1 - beta1 != (float)(1 - o->beta1) || 1 - beta2 != (float)(1 - o->beta2);
	if (strcmp(name, "delta-bar-delta") == 0)
		return 1 - theta != (float)(1 - o->theta);
	return strcmp(name, "quickprop") == 0 && mu / (1 + mu) != (float)(o->mu / (1 + o->mu));
}

void update_fill(const Options *o, uint64_t update, double epochs, double share, Update *u)
{
	/* never zero: the first update counts */
	double warm = o->warmup > epochs + share ? (epochs + share) / o->warmup : 1;

	u->rule = &rules[o->rule];
	u->param[P_RATE] = warm * schedules[o->schedule](o, epochs);
	u->param[P_MOMENTUM] = o->momentum;
	u->param[P_DECAY] = o->decay;
	u->param[P_CLIP] = 1; /* the target computes it from the norm of the gradient */
	u->param[P_BETA1] = o->beta1;
	u->param[P_BETA2] = o->beta2;
	u->param[P_FIX1] = u->rule->needs_count ? 1 / (1 - power(o->beta1, update)) : 1;
	u->param[P_FIX2] = u->rule->needs_count ? 1 / (1 - power(o->beta2, update)) : 1;
	u->param[P_EPSILON] = o->epsilon;
	u->param[P_MU] = o->mu;
	u->param[P_UP] = o->up;
	u->param[P_DOWN] = o->down;
	u->param[P_STEP_MIN] = o->step_min;
	u->param[P_STEP_MAX] = o->step_max;
	u->param[P_KAPPA] = o->kappa;
	u->param[P_PHI] = o->phi;
	u->param[P_THETA] = o->theta;
	u->param[P_SHARE] = 1 - o->theta;
	u->param[P_SHARE1] = 1 - o->beta1;
	u->param[P_SHARE2] = 1 - o->beta2;
	u->param[P_SHRINK] = o->mu / (1 + o->mu);
}
