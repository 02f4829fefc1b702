/* SPDX-License-Identifier: MIT */
/* Weights in 8 bits.  In: a Recipe and data that is like what the network will see.  Out: the weights of each unit from
 * a run of sources as 8-bit integers with a common scale, the ranges of the sources, and what that costs.
 *
 * Weights from the true unit and single links stay as they are: they are few. */
#include <math.h>
#include <string.h>

#include "export.h"

/* Outputs of all cases, in order. */
static float *outputs_of(Ctx *cx, Evaluator *e, const Data *d)
{
	const Net *net = e->r->net;
	float *x = NEW(&cx->scratch, d->inputs, float), *y = NEW(&cx->scratch, d->cases * net->outputs, float);
	for (uint64_t k = 0; k < run_examples(net, d); k++) {
		uint64_t first, count;
		run_example(net, d, k, &first, &count);
		evaluator_reset(e);
		for (uint64_t i = first; i < first + count; i++) {
			data_x(d, i, x);
			evaluate(e, x, y + i * net->outputs);
		}
	}
	return y;
}

static void quantize_work(Recipe *r, Work *w, float range)
{
	w->range = range > 0 ? range : 1;
	w->at8 = r->weights8;
	w->scale_at = r->scales;
	for (uint32_t j = 0; j < w->count; j++) {
		const float *from = r->weight + w->at + j;
		float most = 0;
		for (uint32_t i = 0; i < w->sources; i++)
			most = fmaxf(most, fabsf(from[(size_t)i * w->stride]));
		most = most > 0 ? most : 1;
		r->scale[r->scales++] = most / 127 * (w->range / 127);
		for (uint32_t i = 0; i < w->sources; i++)
			r->weight8[r->weights8++] = (int8_t)lrintf(from[(size_t)i * w->stride] / most * 127);
	}
}

/* The best guess, as scores have it: nearest code word, largest output, side of 0.5. */
static uint32_t guess(const Data *d, const float *y, uint32_t n, double *wide)
{
	uint32_t best = 0;
	for (uint32_t k = 0; k < n; k++)
		wide[k] = (double)y[k];
	if (d->codes && d->targets == n)
		return code_nearest(d->codes, d->code_count, n, wide, NULL);
	if (n == 1)
		return y[0] >= 0.5f;
	for (uint32_t k = 1; k < n; k++)
		best = y[k] > y[best] ? k : best;
	return best;
}

static void measure(Ctx *cx, const Data *d, uint32_t outputs, const float *y, const float *y8, Loss *loss)
{
	float *target = NEW(&cx->scratch, max_u32(d->targets, 1), float);
	double *wide = NEW(&cx->scratch, outputs, double);
	uint64_t right = 0, right8 = 0, changed = 0, known = 0;
	double sum = 0;
	for (uint64_t i = 0; i < d->cases; i++, y += outputs, y8 += outputs) {
		for (uint32_t k = 0; k < outputs; k++) {
			double off = fabs((double)y8[k] - (double)y[k]);
			loss->largest = fmax(loss->largest, off);
			sum += off * off;
		}
		uint32_t a = guess(d, y, outputs, wide), b = guess(d, y8, outputs, wide);
		changed += a != b;
		if (d->targets != outputs)
			continue;
		data_y(d, i, target);
		if (isnan(target[0]))
			continue;
		uint32_t t = guess(d, target, outputs, wide);
		known++;
		right += a == t;
		right8 += b == t;
	}
	loss->cases = d->cases;
	loss->rms = d->cases ? sqrt(sum / ((double)d->cases * outputs)) : 0;
	loss->changed = d->cases ? (double)changed / (double)d->cases : 0;
	loss->right = known ? (double)right / (double)known : (double)NAN;
	loss->right_int8 = known ? (double)right8 / (double)known : (double)NAN;
}

void recipe_quantize(Ctx *cx, Recipe *r, const Data *d, Loss *loss)
{
	Evaluator *e = evaluator_new(r, false);
	uint64_t scales = 0, weights = 0, starts = 0;
	e->range = NEW(&cx->scratch, r->works, float);
	const float *y = outputs_of(cx, e, d);
	for (uint32_t i = 0; i < r->works; i++) {
		const Work *w = &r->work[i];
		scales += w->kind == WORK_DENSE ? w->count : 0;
		weights += w->kind == WORK_DENSE ? (uint64_t)w->count * w->sources : 0;
		starts += w->kind == WORK_START ? w->count : 0;
	}
	r->scale = NEW(&cx->scratch, scales, float);
	r->weight8 = NEW(&cx->scratch, weights, int8_t);
	for (uint32_t i = 0; i < r->works; i++)
		if (r->work[i].kind == WORK_DENSE)
			quantize_work(r, &r->work[i], e->range[i]);
	measure(cx, d, r->net->outputs, y, outputs_of(cx, evaluator_new(r, true), d), loss);
	loss->bytes = (weights + starts + r->links) * sizeof(float);
	loss->bytes_int8 = weights + (scales + starts + r->links) * sizeof(float);
}
