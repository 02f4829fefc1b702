/* SPDX-License-Identifier: MIT */
/* The error of a case, and whether its outputs count as right and within the threshold.
 *
 * In: outputs and targets of one case; for errors that are logarithms also those of the outputs.
 * Out: a Tally that adds up.
 * Outputs without a target (NaN) are ignored; a case without any target is not scored.
 *
 * Right means, over the outputs that have a target:
 * - with a code table: no code word is nearer to the outputs than the target's own (the code word nearest to the
 *   target);
 * - one output alone: it lies on the same side of the middle as its target;
 * - else: the largest output, the first of equals, stands where the largest target stands. */
#include <float.h>
#include <math.h>

#include "run.h"

static bool any_negative(const Data *d)
{
	Validation l = { 0 };

	if (d->signs == SIGNS_UNKNOWN)
		validate_signs(d, 0, d->cases, &l);
	return l.negative || d->signs == SIGNS_NEGATIVE;
}

/* The middle is used with a single output only. */
void scorer_init(Scorer *s, const Options *o, const Data *d)
{
	*s = (Scorer){
		.err = &error_fns[o->error],
		.threshold = o->threshold,
		.targets = d->targets,
		.middle = 0.5,
		.codes = d->codes,
		.code_count = d->code_count,
	};
	if (d->targets == 1 && any_negative(d))
		s->middle = 0;
}

void scorer_shape(Scorer *s, const Net *net) { s->net = net->shaped ? net : NULL; }

/* Squared, over the elements that have a target; target NULL: over all. Stops at `enough`, which most code words of a
 * long table reach after a few elements. */
static double code_distance(const double *code, uint32_t width, const double *out, const float *target, double enough)
{
	double sum = 0;

	for (uint32_t j = 0; j < width && !(sum >= enough); j++)
		if (!target || !isnan(target[j]))
			sum += (code[j] - out[j]) * (code[j] - out[j]);
	return sum;
}

static double target_distance(const double *code, uint32_t width, const float *target, double enough)
{
	double sum = 0;

	for (uint32_t j = 0; j < width && !(sum >= enough); j++)
		if (!isnan(target[j]))
			sum += (code[j] - target[j]) * (code[j] - target[j]);
	return sum;
}

uint32_t code_nearest(const double *codes, uint32_t count, uint32_t width, const double *out, const float *target)
{
	double least = INFINITY;
	uint32_t best = 0;

	for (uint32_t k = 0; k < count; k++) {
		double d = code_distance(codes + (size_t)k * width, width, out, target, least);
		if (d < least) {
			least = d;
			best = k;
		}
	}
	return best;
}

/* The target's own code word; most targets are one, and words that differ from it at all need not be measured. */
static uint32_t code_of(const Scorer *s, const float *target)
{
	double least = INFINITY;
	uint32_t best = 0;

	for (uint32_t k = 0; k < s->code_count; k++)
		if (target_distance(s->codes + (size_t)k * s->targets, s->targets, target, DBL_TRUE_MIN) == 0)
			return k;
	for (uint32_t k = 0; k < s->code_count; k++) {
		double d = target_distance(s->codes + (size_t)k * s->targets, s->targets, target, least);
		if (d < least) {
			least = d;
			best = k;
		}
	}
	return best;
}

/* Only whether a word is nearer than the own one counts, not which is nearest: most words are left after a few
 * elements, and the rest of the table after the first that is. */
static bool code_right(const Scorer *s, const double *out, const float *target)
{
	const double *own = s->codes + (size_t)code_of(s, target) * s->targets;
	double enough = code_distance(own, s->targets, out, target, INFINITY);
	bool right = !isnan(enough);

	for (uint32_t k = 0; k < s->code_count && right; k++)
		right = !(code_distance(s->codes + (size_t)k * s->targets, s->targets, out, target, enough) < enough);
	return right;
}

static bool largest_right(const Scorer *s, const double *out, const float *target)
{
	uint32_t guess = s->targets, wanted = s->targets; /* none yet */

	for (uint32_t j = 0; j < s->targets; j++) {
		if (isnan(target[j]))
			continue;
		if (guess == s->targets || out[j] > out[guess])
			guess = j;
		if (wanted == s->targets || target[j] > target[wanted])
			wanted = j;
	}
	return guess == wanted;
}

/* The output group that output j, the first of it, belongs to. */
static const Group *output_group(const Net *net, uint32_t j)
{
	const Group *g = net->group;
	for (uint32_t at = 0;; g++) {
		if (g->role != ROLE_OUTPUT)
			continue;
		if (j < at + g->size)
			return g;
		at += g->size;
	}
}

/* Error of output j; its group may have its own function, factor, radii and threshold. */
static double output_error(const Scorer *s, const Group *g, double out, const Logs *logs, double target)
{
	const ErrorFn *err = g ? &error_fns[group_error(g, (int)(s->err - error_fns))] : s->err;
	if (g && group_has_radius(g))
		target = target_near(g, out, target);
	if (isnan(target))
		return 0;
	double error =
		logs && err->from_logs ? err->from_logs(out, logs->out, logs->rest, target) : err->value(out, target);
	return g ? g->error_scale * error : error;
}

void score_case(const Scorer *s, const double *out, const Logs *logs, const float *target, double weight, Tally *t)
{
	enum { MANY = 64 };
	uint32_t count = 0, last = 0;
	double error = 0, value[MANY];
	bool plain = !s->net && !s->group, within = true;
	bool many = plain && !logs && s->err == &error_fns[ERR_CROSS_ENTROPY] && s->targets >= 8;

	t->cases++;
	for (uint32_t j = 0; j < s->targets; j++) {
		if (many && j % MANY == 0)
			cross_values(out + j, target + j, min_u32(s->targets - j, MANY), value);
		if (isnan(target[j]))
			continue;
		const Group *g = s->group ? s->group : s->net ? output_group(s->net, j) : NULL;
		error += many ? value[j % MANY] : output_error(s, g, out[j], logs ? &logs[j] : NULL, target[j]);
		within &= fabs(out[j] - target[j]) <= (g ? group_criterion(g, s->threshold) : s->threshold);
		last = j;
		count++;
	}
	if (!count)
		return;
	t->error += weight * error;
	t->scored++;
	t->weight += weight;
	t->within += within;
	if (s->code_count)
		t->right += code_right(s, out, target);
	else if (count == 1)
		t->right += (out[last] > s->middle) == (target[last] > s->middle);
	else
		t->right += largest_right(s, out, target);
}

void tally_add(Tally *into, const Tally *t)
{
	into->error += t->error;
	into->cases += t->cases;
	into->scored += t->scored;
	into->right += t->right;
	into->within += t->within;
	into->weight += t->weight;
}

double tally_mean(const Tally *t) { return t->weight > 0 ? t->error / t->weight : 0; }

Tally tally_leaves(const Tally *leaf, uint32_t first, uint32_t end)
{
	if (end - first == 1)
		return leaf[first];
	uint32_t middle = first + leaf_split(end - first);
	Tally a = tally_leaves(leaf, first, middle), b = tally_leaves(leaf, middle, end);
	tally_add(&a, &b);
	return a;
}
