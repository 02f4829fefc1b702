/* SPDX-License-Identifier: MIT */
/* Points of the figures that show a classifier.  In: outputs and targets.  Out: the ROC curve of a class against all
 * others; how often the class is right where the network gives it a probability (calibration). */
#include <math.h>
#include <stdlib.h>

#include "table.h"

static int by_falling_score(const void *a, const void *b)
{
	double x = ((const Scored *)a)->score, y = ((const Scored *)b)->score;
	return (x < y) - (x > y);
}

uint64_t roc_scores(const Data *d, int kind, const double *outputs, uint32_t class, float *row, Scored *s)
{
	uint64_t n = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		CaseMetrics c;
		if (!metrics_case(d, kind, outputs, i, row, &c))
			continue;
		double out = kind == METRICS_BINARY ? class ? outputs[i] : -outputs[i] : outputs[i * d->targets + class];
		s[n++] = (Scored){ out, c.weight, c.target == class };
	}
	return n;
}

/* Points nearer than 1/CURVE_POINTS to the last one kept are left out, except the last. */
static void curve_add(CurvePoints *c, double x, double y, bool last)
{
	if (!last && c->points && fabs(x - c->x[c->points - 1]) + fabs(y - c->y[c->points - 1]) < 2.0 / CURVE_POINTS)
		return;
	c->x[c->points] = x;
	c->y[c->points++] = y;
}

/* The probability that a positive case scores higher than a negative one, ties counting one half. */
double roc_area(Scored *s, uint64_t n, CurvePoints *points)
{
	double positive = 0, negative = 0, hits = 0, alarms = 0, area = 0;
	for (uint64_t i = 0; i < n; i++)
		*(s[i].positive ? &positive : &negative) += s[i].weight;
	if (!(positive > 0 && negative > 0))
		return NAN;
	qsort(s, n, sizeof *s, by_falling_score);
	if (points)
		curve_add(points, 0, 0, true);
	for (uint64_t first = 0, end; first < n; first = end) {
		double hit = 0, alarm = 0;
		for (end = first; end < n && (end == first || s[end].score == s[first].score); end++) /* NaN equals nothing */
			*(s[end].positive ? &hit : &alarm) += s[end].weight;
		area += alarm * (hits + hit / 2);
		hits += hit;
		alarms += alarm;
		if (points)
			curve_add(points, alarms / negative, hits / positive, end == n);
	}
	return area / (positive * negative);
}

CurvePoints curve_roc(Ctx *cx, const Data *d, int kind, const double *outputs, uint32_t class)
{
	CurvePoints c = { NEW(&cx->scratch, CURVE_POINTS + 3, double), NEW(&cx->scratch, CURVE_POINTS + 3, double), 0, 0 };
	Scored *s = NEW(&cx->scratch, d->cases, Scored);
	float *row = NEW(&cx->scratch, d->targets, float);
	c.area = roc_area(s, roc_scores(d, kind, outputs, class, row, s), &c);
	return c;
}

CurvePoints curve_calibration(Ctx *cx, const Data *d, int kind, const double *outputs, uint32_t class, uint64_t *count)
{
	CurvePoints c = { NEW(&cx->scratch, CALIBRATION_BINS, double), NEW(&cx->scratch, CALIBRATION_BINS, double), 0, 0 };
	double p[CALIBRATION_BINS] = { 0 }, weight[CALIBRATION_BINS] = { 0 }, right[CALIBRATION_BINS] = { 0 };
	uint64_t cases[CALIBRATION_BINS] = { 0 };
	float *row = NEW(&cx->scratch, d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		CaseMetrics k;
		if (!metrics_case(d, kind, outputs, i, row, &k) || isnan(k.p_target))
			continue;
		uint32_t of = class == CALIBRATE_GUESS ? k.guess : class;
		double share = metrics_probability(kind, outputs + i * d->targets, d->targets, of);
		int bin = share >= 1 ? CALIBRATION_BINS - 1 : (int)(share * CALIBRATION_BINS);
		p[bin] += k.weight * share;
		weight[bin] += k.weight;
		right[bin] += k.weight * (k.target == of);
		cases[bin]++;
	}
	for (int i = 0; i < CALIBRATION_BINS; i++) {
		if (!(weight[i] > 0))
			continue;
		count[c.points] = cases[i];
		c.x[c.points] = p[i] / weight[i];
		c.y[c.points++] = right[i] / weight[i];
	}
	return c;
}
