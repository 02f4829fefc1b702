/* SPDX-License-Identifier: MIT */
/* Eigenvalues of symmetric matrices (Jacobi), principal components, classical multidimensional scaling.
 *
 * In: activations of items, or distances between them.  Out: variances and coordinates, largest first.
 * Must hold: the same bits on every CPU: additions, products, quotients and square roots in a fixed order.  Signs: the
 * element of a component that is largest in size, the first of equals, is positive. */
#include <math.h>
#include <string.h>

#include "analyze.h"

enum { MOST_SWEEPS = 60 };

/* One rotation that makes a[p][q] zero; rows of v are the eigenvectors. */
static void rotate(double *a, double *v, uint32_t n, uint32_t p, uint32_t q)
{
	double apq = a[(size_t)p * n + q];
	if (apq == 0)
		return;
	double theta = (a[(size_t)q * n + q] - a[(size_t)p * n + p]) / (2 * apq);
	double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
	double c = 1 / sqrt(t * t + 1), s = t * c;
	for (uint32_t k = 0; k < n; k++) {
		double x = a[(size_t)k * n + p], y = a[(size_t)k * n + q];
		a[(size_t)k * n + p] = c * x - s * y;
		a[(size_t)k * n + q] = s * x + c * y;
	}
	double *rp = a + (size_t)p * n, *rq = a + (size_t)q * n, *vp = v + (size_t)p * n, *vq = v + (size_t)q * n;
	for (uint32_t k = 0; k < n; k++) {
		double x = rp[k], y = rq[k], vx = vp[k], vy = vq[k];
		rp[k] = c * x - s * y;
		rq[k] = s * x + c * y;
		vp[k] = c * vx - s * vy;
		vq[k] = s * vx + c * vy;
	}
}

static double off_diagonal(const double *a, uint32_t n)
{
	double sum = 0;
	for (uint32_t p = 0; p < n; p++)
		for (uint32_t q = p + 1; q < n; q++)
			sum += a[(size_t)p * n + q] * a[(size_t)p * n + q];
	return sum;
}

void eigen_symmetric(Arena *arena, double *a, uint32_t n, double *value, double *vector)
{
	double *v = NEW(arena, (size_t)n * n, double), all = 0;
	for (size_t i = 0; i < (size_t)n * n; i++)
		all += a[i] * a[i];
	for (uint32_t i = 0; i < n; i++)
		v[(size_t)i * n + i] = 1;
	for (int sweep = 0; sweep < MOST_SWEEPS && off_diagonal(a, n) > 1e-26 * all; sweep++)
		for (uint32_t p = 0; p < n; p++)
			for (uint32_t q = p + 1; q < n; q++)
				rotate(a, v, n, p, q);
	uint32_t *order = NEW(arena, n, uint32_t);
	for (uint32_t i = 0; i < n; i++) { /* by insertion: the first of equals stays first */
		uint32_t k = i;
		for (; k > 0 && a[(size_t)order[k - 1] * n + order[k - 1]] < a[(size_t)i * n + i]; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		value[i] = a[(size_t)order[i] * n + order[i]];
		memcpy(vector + (size_t)i * n, v + (size_t)order[i] * n, n * sizeof *v);
	}
}

/* -1 if the largest element is negative. */
static double sign_of(const double *v, uint64_t n, size_t step)
{
	double largest = 0;
	for (uint64_t i = 0; i < n; i++)
		if (fabs(v[i * step]) > fabs(largest) * (1 + 1e-9))
			largest = v[i * step];
	return largest < 0 ? -1 : 1;
}

/* ---- principal components ---- */

/* x: [items][units], centred. Products of columns, or of rows, by what there is less of. */
static double *products(Arena *a, const double *x, uint32_t items, uint32_t units, bool columns)
{
	uint32_t n = columns ? units : items, m = columns ? items : units;
	size_t step = columns ? units : 1, next = columns ? 1 : units;
	double *p = NEW(a, (size_t)n * n, double);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i; k < n; k++) {
			double sum = 0;
			for (uint32_t j = 0; j < m; j++)
				sum += x[i * next + j * step] * x[k * next + j * step];
			p[(size_t)i * n + k] = p[(size_t)k * n + i] = items > 1 ? sum / (items - 1) : 0;
		}
	return p;
}

Components components_of(Ctx *cx, const double *activation, uint32_t items, uint32_t units)
{
	Arena *a = &cx->scratch;
	bool columns = units <= items;
	uint32_t n = columns ? units : items;
	Components c = { .count = n < MOST_COMPONENTS ? n : MOST_COMPONENTS };
	if (n > MOST_EIGEN)
		return (Components){ 0 };
	double *x = NEW(a, (size_t)items * units, double), *value = NEW(a, n, double);
	double *vector = NEW(a, (size_t)n * n, double);
	for (uint32_t k = 0; k < units; k++) {
		double mean = 0;
		for (uint32_t i = 0; i < items; i++)
			mean += activation[(size_t)i * units + k] / items;
		for (uint32_t i = 0; i < items; i++)
			x[(size_t)i * units + k] = activation[(size_t)i * units + k] - mean;
	}
	eigen_symmetric(a, products(a, x, items, units, columns), n, value, vector);
	for (uint32_t i = 0; i < n; i++)
		c.total += fmax(value[i], 0);
	c.loading = NEW(a, (size_t)c.count * units, double);
	c.score = NEW(a, (size_t)items * c.count, double);
	for (uint32_t k = 0; k < c.count; k++) {
		double *l = c.loading + (size_t)k * units, length = 0;
		c.variance[k] = fmax(value[k], 0);
		for (uint32_t j = 0; j < units; j++) {
			l[j] = columns ? vector[(size_t)k * n + j] : 0;
			for (uint32_t i = 0; !columns && i < items; i++)
				l[j] += vector[(size_t)k * n + i] * x[(size_t)i * units + j];
			length += l[j] * l[j];
		}
		double scale = sign_of(l, units, 1) / (length > 0 ? sqrt(length) : 1);
		for (uint32_t j = 0; j < units; j++)
			l[j] *= scale;
		for (uint32_t i = 0; i < items; i++)
			for (uint32_t j = 0; j < units; j++)
				c.score[(size_t)i * c.count + k] += x[(size_t)i * units + j] * l[j];
	}
	return c;
}

/* ---- multidimensional scaling (Torgerson) ---- */

Scaled scaling_of(Ctx *cx, const double *distance, uint32_t items)
{
	Arena *a = &cx->scratch;
	uint32_t n = items;
	if (n > MOST_EIGEN || n < 2)
		return (Scaled){ 0 };
	double *b = NEW(a, (size_t)n * n, double), *row = NEW(a, n, double), *value = NEW(a, n, double), all = 0;
	double *vector = NEW(a, (size_t)n * n, double), sizes = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < n; k++)
			row[i] += distance[(size_t)i * n + k] * distance[(size_t)i * n + k] / n;
		all += row[i] / n;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++) {
			double d = distance[(size_t)i * n + k];
			b[(size_t)i * n + k] = -0.5 * (d * d - row[i] - row[k] + all);
		}
	eigen_symmetric(a, b, n, value, vector);
	Scaled s = { .at = NEW(a, (size_t)2 * n, double) };
	for (uint32_t i = 0; i < n; i++)
		sizes += fabs(value[i]);
	for (uint32_t k = 0; k < 2; k++) {
		double scale = sqrt(fmax(value[k], 0)) * sign_of(vector + (size_t)k * n, n, 1);
		s.share += sizes > 0 ? fmax(value[k], 0) / sizes : 0;
		for (uint32_t i = 0; i < n; i++)
			s.at[2 * i + k] = scale * vector[(size_t)k * n + i];
	}
	return s;
}
