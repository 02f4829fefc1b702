/* SPDX-License-Identifier: MIT */
/* Metrics of outputs against targets.  In: the outputs of a network for all cases of some data, its schema if it has
 * one.  Out: accuracy, log loss, area under the ROC curve, confusion matrix, precision, recall and F1 of classes;
 * root mean squared error, mean absolute error and R2 of numbers, in the units of the table.
 *
 * Targets decide the kind: one of n is a class, a lone 0 or 1 is a class of two, several of 0 and 1 are bits, all
 * others are numbers.  Cases without a target do not count; a case of weight w counts w times.  NaN: not meaningful. */
#include <math.h>
#include <string.h>

#include "table.h"

static double weight_of(const Data *d, uint64_t i) { return d->weight ? (double)d->weight[i] : 1; }

/* ---- the kind of the targets ---- */

typedef struct Seen {
	bool zero_one, one_of_n;
} Seen;

bool targets_two_valued(Ctx *cx, const Data *d)
{
	float *row = NEW(&cx->scratch, d->targets, float), value[2];
	uint32_t values = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, row);
		for (uint32_t k = 0; k < d->targets; k++) {
			uint32_t at = 0;
			while (at < values && value[at] != row[k])
				at++;
			if (isnan(row[k]) || at < values)
				continue;
			if (values == 2)
				return false;
			value[values++] = row[k];
		}
	}
	return true;
}

int metrics_kind(Ctx *cx, const Data *d, const Schema *s)
{
	static const int by_task[TASK_COUNT] = { METRICS_NUMBERS, METRICS_CLASSES, METRICS_BITS, METRICS_NUMBERS };
	if (s && s->task != TASK_NONE)
		return s->task == TASK_BINARY && d->targets == 1 ? METRICS_BINARY : by_task[s->task];
	float *row = NEW(&cx->scratch, d->targets, float);
	Seen seen = { true, d->targets > 1 };
	for (uint64_t i = 0; i < d->cases && seen.zero_one; i++) {
		bool any = false;
		data_y(d, i, row);
		for (uint32_t k = 0; k < d->targets; k++) {
			any |= !isnan(row[k]);
			seen.zero_one &= isnan(row[k]) || row[k] == 0 || row[k] == 1;
		}
		if (seen.one_of_n && any)
			seen.one_of_n = row_one_of_n(row, d->targets) >= 0;
	}
	if (!seen.zero_one)
		return METRICS_NUMBERS;
	return seen.one_of_n ? METRICS_CLASSES : d->targets == 1 ? METRICS_BINARY : METRICS_BITS;
}

/* ---- classes ---- */

/* The class of a case and what the network guesses; false: no target. */
static bool class_case(const Data *d, int kind, uint64_t i, const double *out, float *row, uint32_t *truth,
                       uint32_t *guess)
{
	data_y(d, i, row);
	if (isnan(row[0]))
		return false;
	if (kind == METRICS_BINARY) {
		*truth = row[0] >= 0.5f;
		*guess = out[0] >= 0.5;
		return true;
	}
	uint32_t best = 0;
	int class = row_one_of_n(row, d->targets);
	if (class < 0) /* other data than the schema's */
		return false;
	for (uint32_t k = 1; k < d->targets; k++)
		best = out[k] > out[best] ? k : best;
	*truth = (uint32_t) class;
	*guess = best;
	return true;
}

/* Of one case: the probability given to its class; NaN: the outputs are no probabilities. */
double metrics_probability(int kind, const double *out, uint32_t outputs, uint32_t class)
{
	double sum = 0;
	if (kind == METRICS_BINARY)
		return out[0] >= 0 && out[0] <= 1 ? class ? out[0] : 1 - out[0] : NAN;
	for (uint32_t k = 0; k < outputs; k++) {
		if (!(out[k] >= 0 && out[k] <= 1))
			return NAN;
		sum += out[k];
	}
	return sum > 0 ? out[class] / sum : NAN;
}

static void measure_classes(Ctx *cx, const Data *d, const double *out, Metrics *m)
{
	uint32_t n = m->classes = m->kind == METRICS_BINARY ? 2 : d->targets, outputs = d->targets;
	float *row = NEW(&cx->scratch, outputs, float);
	Scored *scored = NEW(&cx->scratch, d->cases, Scored);
	double right = 0, loss = 0, area = 0, areas = 0;
	m->confusion = NEW(&cx->keep, (size_t)n * n, uint64_t);
	m->per_class = NEW(&cx->keep, n, ClassMetrics);
	for (uint64_t i = 0; i < d->cases; i++) {
		uint32_t truth, guess;
		if (!class_case(d, m->kind, i, out + i * outputs, row, &truth, &guess))
			continue;
		double w = weight_of(d, i), p = metrics_probability(m->kind, out + i * outputs, outputs, truth);
		m->cases++;
		m->weight += w;
		right += w * (truth == guess);
		loss -= w * arith_log(p < 1e-15 ? 1e-15 : p); /* NaN stays */
		m->confusion[(size_t)truth * n + guess]++;
	}
	m->accuracy = right / m->weight;
	m->log_loss = loss / m->weight;
	for (uint32_t c = 0; c < n; c++) {
		ClassMetrics *k = &m->per_class[c];
		uint64_t hit = m->confusion[(size_t)c * n + c], guessed = 0, there = 0;
		for (uint32_t i = 0; i < n; i++) {
			guessed += m->confusion[(size_t)i * n + c];
			there += m->confusion[(size_t)c * n + i];
		}
		k->cases = there;
		k->precision = guessed ? (double)hit / (double)guessed : NAN;
		k->recall = there ? (double)hit / (double)there : NAN;
		k->f1 = guessed + there ? 2 * (double)hit / (double)(guessed + there) : NAN;
		k->auc = roc_area(scored, roc_scores(d, m->kind, out, c, row, scored), NULL);
		if (isnan(k->auc))
			continue;
		area += k->auc;
		areas++;
	}
	m->auc = areas > 0 ? area / areas : NAN;
}

/* ---- bits ---- */

static void measure_bits(Ctx *cx, const Data *d, const double *out, Metrics *m)
{
	float *row = NEW(&cx->scratch, d->targets, float);
	double bits = 0, all = 0, patterns = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		uint32_t there = 0, right = 0;
		data_y(d, i, row);
		for (uint32_t k = 0; k < d->targets; k++) {
			if (isnan(row[k]))
				continue;
			there++;
			right += (out[i * d->targets + k] >= 0.5) == (row[k] >= 0.5f);
		}
		if (!there)
			continue;
		double w = weight_of(d, i);
		m->cases++;
		m->weight += w;
		bits += w * right;
		all += w * there;
		patterns += w * (right == there);
	}
	m->bits_right = bits / all;
	m->accuracy = patterns / m->weight;
}

/* ---- numbers ---- */

static void measure_numbers(Ctx *cx, const Data *d, const Schema *s, const double *out, Metrics *m)
{
	float *row = NEW(&cx->scratch, d->targets, float);
	double squares = 0, absolute = 0, all = 0, r2 = 0, r2s = 0;
	for (uint32_t k = 0; k < d->targets; k++) {
		const Field *c = s ? schema_target(s, k) : NULL;
		double mean = 0, weight = 0, residual = 0, total = 0;
		for (int pass = 0; pass < 2; pass++) {
			for (uint64_t i = 0; i < d->cases; i++) {
				data_y(d, i, row);
				if (isnan(row[k]))
					continue;
				double w = weight_of(d, i), y = (double)row[k], o = out[i * d->targets + k];
				y = c ? target_decode(c, y) : y;
				o = c ? target_decode(c, o) : o;
				if (pass == 0) {
					mean += w * y;
					weight += w;
				} else {
					residual += w * (o - y) * (o - y);
					total += w * (y - mean) * (y - mean);
					absolute += w * fabs(o - y);
				}
			}
			mean /= pass == 0 ? weight : 1;
		}
		squares += residual;
		all += weight;
		if (total > 0) {
			r2 += 1 - residual / total;
			r2s++;
		}
	}
	for (uint64_t i = 0; i < d->cases; i++) {
		bool any = false;
		data_y(d, i, row);
		for (uint32_t k = 0; k < d->targets; k++)
			any |= !isnan(row[k]);
		m->cases += any;
	}
	m->weight = all;
	m->rmse = sqrt(squares / all);
	m->mae = absolute / all;
	m->r2 = r2s > 0 ? r2 / r2s : NAN;
}

Metrics *metrics_measure(Ctx *cx, const Data *d, const Schema *s, const double *outputs)
{
	Metrics *m = NEW(&cx->keep, 1, Metrics);
	m->kind = metrics_kind(cx, d, s);
	m->accuracy = m->log_loss = m->auc = m->bits_right = m->rmse = m->mae = m->r2 = NAN;
	if (m->kind == METRICS_NUMBERS)
		measure_numbers(cx, d, s, outputs, m);
	else if (m->kind == METRICS_BITS)
		measure_bits(cx, d, outputs, m);
	else
		measure_classes(cx, d, outputs, m);
	return m;
}

/* ---- one case ---- */

bool metrics_case(const Data *d, int kind, const double *outputs, uint64_t i, float *row, CaseMetrics *c)
{
	const double *out = outputs + i * d->targets;
	*c = (CaseMetrics){ .weight = weight_of(d, i), .p_target = NAN, .p_guess = NAN };
	if (kind == METRICS_CLASSES || kind == METRICS_BINARY) {
		if (!class_case(d, kind, i, out, row, &c->target, &c->guess))
			return false;
		c->right = c->target == c->guess;
		c->p_target = metrics_probability(kind, out, d->targets, c->target);
		c->p_guess = metrics_probability(kind, out, d->targets, c->guess);
		return true;
	}
	bool any = false;
	data_y(d, i, row);
	c->right = kind == METRICS_BITS;
	for (uint32_t k = 0; k < d->targets; k++) {
		if (isnan(row[k]))
			continue;
		any = true;
		c->right &= (out[k] >= 0.5) == (row[k] >= 0.5f);
	}
	return any;
}
