/* SPDX-License-Identifier: MIT */
/* What reports of studies share: mean and spread of measurements, files. */
#include <math.h>

#include "analyze.h"

/* 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom; from 31 on by the expansion of Cornish and
 * Fisher. */
static double student(uint64_t freedom)
{
	static const double table[] = { 12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
		                            2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
		                            2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423 };
	double z = 1.959964, n = (double)freedom;
	return freedom <= COUNT(table) ? table[freedom - 1] : z + (z * z * z + z) / (4 * n);
}

Spread spread_of(const double *v, uint64_t n)
{
	Spread s = { .n = n, .mean = v[0] };
	double rest = 0, squares = 0;
	for (uint64_t i = 0; i < n; i++)
		rest += v[i] - v[0]; /* exactly 0 where all are the same */
	s.mean += rest / (double)n;
	for (uint64_t i = 0; i < n; i++)
		squares += (v[i] - s.mean) * (v[i] - s.mean);
	s.sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	double half = n > 1 ? student(n - 1) * s.sd / sqrt((double)n) : 0;
	s.low = s.mean - half;
	s.high = s.mean + half;
	return s;
}

void heat_range(HeatPlot *p, const Group *g)
{
	const UnitFn *f = &unit_fns[g->fn];
	if (g->role == ROLE_INPUT || !isfinite(f->low) || !isfinite(f->high))
		return;
	p->low = f->low;
	p->high = f->high;
}

void text_save(Ctx *cx, const char *path, const Buf *text)
{
	if (!path)
		return;
	OutFile *f = file_create(cx, &cx->scratch, path);
	file_write(f, text->s, text->len);
	file_commit(cx, f);
}
