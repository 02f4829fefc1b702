/* SPDX-License-Identifier: MIT */
/* Distances between items, and the tree of their clusters by average linkage.
 *
 * In: activations [items][units].  Out: [items][items] distances; merges, nearest first.
 * Must hold: of pairs that are equally near, the one with the lowest numbers is merged first. */
#include <math.h>
#include <string.h>

#include "analyze.h"

const char *const distance_names[DISTANCES] = { "euclidean", "correlation", "cosine" };

/* 1 - the cosine, or the correlation, of two vectors; 0 for equal ones, 1 where one of them is constant. */
static double angle(const double *a, const double *b, uint32_t n, bool centred)
{
	double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
	for (uint32_t k = 0; centred && k < n; k++) {
		ma += a[k] / n;
		mb += b[k] / n;
	}
	for (uint32_t k = 0; k < n; k++) {
		ab += (a[k] - ma) * (b[k] - mb);
		aa += (a[k] - ma) * (a[k] - ma);
		bb += (b[k] - mb) * (b[k] - mb);
	}
	if (memcmp(a, b, n * sizeof *a) == 0)
		return 0;
	return aa > 0 && bb > 0 ? fmax(0, 1 - ab / sqrt(aa * bb)) : 1;
}

double *distances_of(Ctx *cx, const double *x, uint32_t items, uint32_t units, int kind)
{
	double *d = NEW(&cx->scratch, (size_t)items * items, double);
	for (uint32_t i = 0; i < items; i++)
		for (uint32_t k = i + 1; k < items; k++) {
			const double *a = x + (size_t)i * units, *b = x + (size_t)k * units;
			double sum = 0;
			for (uint32_t j = 0; kind == DISTANCE_EUCLIDEAN && j < units; j++)
				sum += (a[j] - b[j]) * (a[j] - b[j]);
			double v = kind == DISTANCE_EUCLIDEAN ? sqrt(sum) : angle(a, b, units, kind == DISTANCE_CORRELATION);
			d[(size_t)i * items + k] = d[(size_t)k * items + i] = v;
		}
	return d;
}

typedef struct Clusters {
	double *d; /* [n][n] between clusters, which are stored at the place of their first item */
	uint32_t n;
	uint32_t *node;    /* number in the tree */
	uint32_t *size;    /* 0: merged into another */
	uint32_t *nearest; /* of those behind it */
} Clusters;

static double near(const Clusters *c, uint32_t i) { return c->d[(size_t)i * c->n + c->nearest[i]]; }

static void nearest_find(Clusters *c, uint32_t i)
{
	c->nearest[i] = i;
	for (uint32_t k = i + 1; k < c->n; k++)
		if (c->size[k] && (c->nearest[i] == i || c->d[(size_t)i * c->n + k] < near(c, i)))
			c->nearest[i] = k;
}

/* Cluster b becomes part of a, a < b; distances are means over all pairs of items. */
static void merge(Clusters *c, uint32_t a, uint32_t b)
{
	double na = c->size[a], nb = c->size[b];
	for (uint32_t k = 0; k < c->n; k++) {
		if (!c->size[k] || k == a || k == b)
			continue;
		double v = (na * c->d[(size_t)a * c->n + k] + nb * c->d[(size_t)b * c->n + k]) / (na + nb);
		c->d[(size_t)a * c->n + k] = c->d[(size_t)k * c->n + a] = v;
	}
	c->size[a] += c->size[b];
	c->size[b] = 0;
	for (uint32_t k = 0; k <= b; k++) {
		if (!c->size[k])
			continue;
		if (k == a || c->nearest[k] == a || c->nearest[k] == b)
			nearest_find(c, k);
		else if (k < a && (c->d[(size_t)k * c->n + a] < near(c, k)))
			c->nearest[k] = a;
	}
}

Merge *tree_of(Ctx *cx, const double *distance, uint32_t n)
{
	Arena *a = &cx->scratch;
	Clusters c = { NEW(a, (size_t)n * n, double), n, NEW(a, n, uint32_t), NEW(a, n, uint32_t), NEW(a, n, uint32_t) };
	Merge *m = NEW(a, n, Merge);
	memcpy(c.d, distance, (size_t)n * n * sizeof *distance);
	for (uint32_t i = 0; i < n; i++) {
		c.node[i] = i;
		c.size[i] = 1;
	}
	for (uint32_t i = 0; i < n; i++)
		nearest_find(&c, i);
	for (uint32_t step = 0; step + 1 < n; step++) {
		uint32_t best = n;
		for (uint32_t i = 0; i < n; i++)
			if (c.size[i] && c.nearest[i] != i && (best == n || near(&c, i) < near(&c, best)))
				best = i;
		uint32_t other = c.nearest[best];
		m[step] = (Merge){ c.node[best], c.node[other], near(&c, best) };
		merge(&c, best, other);
		c.node[best] = n + step;
	}
	return m;
}
