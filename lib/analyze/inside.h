/* SPDX-License-Identifier: MIT */
/* What the files of microprop analyze share. */
#ifndef INSIDE_H
#define INSIDE_H

#include "analyze.h"

enum { MOST_ITEMS = 2000, MOST_TOP = 1000 };

typedef struct Contrast { /* of one unit between two sets of cases */
	double mean[2], sd[2];
	double d; /* Cohen's: difference of means in pooled standard deviations; 0 where these are 0 */
} Contrast;

typedef struct Change { /* by the removal of a unit */
	double error, right, within;
} Change;

typedef struct Analysis {
	const Subject *s;
	const char *group_name, *distance_name, *average, *sets_text, *contrast_text;
	const char *figures, *csv, *distances_file;
	uint64_t top;
	bool as_json;
	const Group *group;
	uint32_t units;
	const char **unit_name; /* [units] */
	double *activation;     /* [cases][units] */
	/* items: cases, or means over cases */
	uint32_t items;
	const char **item_name;
	double *x; /* [items][units] */
	uint8_t *item_set;
	CaseSet *set;
	uint32_t sets;
	const char **set_name; /* [sets + 1], with "others" */
	int kind;              /* DISTANCE_... */
	double *distance;      /* [items][items] */
	Merge *merge;          /* [items - 1] */
	Components pca;
	Scaled mds;
	Tally intact;
	Change *change;    /* [units]; NULL: there are no targets */
	int contrasted[2]; /* numbers of sets; -1: none */
	Contrast *contrast;
	const char *drawn[8]; /* files of figures */
	uint32_t figure_count;
} Analysis;

/* ---- items.c ---- */

void items_make(Analysis *a);

/* ---- units.c ---- */

typedef struct Source {
	Unit from;
	double weight;
} Source;
uint32_t sources_of(const Analysis *a, uint32_t unit, uint32_t most, Source *to);  /* strongest first */
uint32_t items_for(const Analysis *a, uint32_t unit, uint32_t most, uint32_t *to); /* that activate it most */
void changes_make(Analysis *a);
void contrast_make(Analysis *a);
uint32_t *contrast_order(const Analysis *a); /* units by the size of d */

/* ---- analysis_print.c, analysis_draw.c ---- */

void analysis_print(Analysis *a, Buf *out);
void analysis_draw(Analysis *a);

#endif
