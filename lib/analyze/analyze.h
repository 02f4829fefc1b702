/* SPDX-License-Identifier: MIT */
/* analyze: studies of a trained network: damaged copies of it, its activations, figures of both. */
#ifndef ANALYZE_H
#define ANALYZE_H

#include "plot.h"
#include "run.h"

/* A trained network and the cases it is studied on. */
typedef struct Subject {
	Ctx *cx;
	const Net *net;
	const Options *opt; /* with the error function to measure by */
	const Target *target;
	const Data *data; /* scaled; NULL: none is given */
	const double *w;  /* [links] */
	bool right;       /* the share of cases whose best guess is right is a figure of these targets */
	/* Activations of a group at a tick, [cases * units]. */
	void (*activations)(void *user, const Group *g, uint32_t tick, double *out);
	void *user;
} Subject;

/* A study: words are options, as --name=value or --flag. The report goes to `out`, figures and tables to the files that
 * options name. */
typedef void StudyFn(const Subject *s, int argc, const char *const *argv, Buf *out);
StudyFn lesion_study, analyze_study, network_study, hinton_study, activations_study, links_study;

/* ---- sets.c: sets of cases ---------------------------------------------------------------------- */

/* Cases may be in several sets. */
typedef struct CaseSet {
	const char *name;
	uint8_t *holds; /* [cases] */
	uint64_t cases;
} CaseSet;
/* "regular=reg*,first=1..10|15": numbers of cases, from 1, or patterns of their names; NULL: one set of all. */
uint32_t sets_read(Ctx *cx, const Data *d, const char *text, CaseSet **set);
const char *case_name(Arena *a, const Data *d, uint64_t i); /* or its number, from 1 */

/* ---- places.c: groups and blocks by name -------------------------------------------------------- */

/* Where a network is damaged: some of its units, or links from one group to another. */
typedef struct Place {
	const char *name; /* "hidden", "hidden->out" */
	bool units;
	const Group *from, *to; /* from NULL: the true unit; units: `from` alone */
	uint32_t count;         /* units or links: what is removed one by one */
	uint64_t *link;         /* [links] those of the place: of units, all that lead out of them and of their copies */
	uint32_t *item;         /* [links] the unit, or the link, that goes with it; below count */
	uint64_t links;
	Unit *unit;          /* [members] units of the place, and those of contexts that hold what these were, */
	uint32_t *member_of; /* [members] and the unit of the place that goes with each; links have none, nor have inputs */
	uint32_t members;
	double sd; /* of their weights */
} Place;
/* Lists with commas between; both NULL: the hidden groups. */
uint32_t places_read(const Subject *s, const char *units, const char *links, Place **place);
/* Does unit u stand for a unit of g, in it or in a context that is a copy of it, of any age? *number: of that unit. */
bool unit_stands_for(const Net *net, const Group *g, Unit u, uint32_t *number);
/* A group as a place of its units. */
void place_units(const Subject *s, const Group *g, Place *p);
/* ---- damage.c: many damaged copies of a network at once ----------------------------------------- */

/* What is damaged in a network: nothing yet. */
typedef struct Damaged {
	uint8_t *removed; /* [units] zeros; set where a unit sends 0 and counts as 0 */
	uint64_t *link;   /* [links of the network] those whose weights are others, each once, */
	double *weight;   /* their weights, */
	uint64_t links;   /* and how many they are */
	void *scratch;    /* of the thread: zeros before the first network; of the bytes that were asked for */
} Damaged;
/* Removes some units or links of a place. */
void place_remove(const Place *p, const uint32_t *item, uint32_t count, Damaged *net);
/* Damages network `number`. Runs on any thread; what it does depends on the number alone. */
typedef void DamageFn(const void *arg, uint64_t number, Damaged *net);
typedef struct Networks {
	uint64_t count;
	DamageFn *damage;
	const void *arg;
	size_t scratch; /* bytes */
	const CaseSet *set;
	uint32_t sets;
	Tally *tally; /* [count * sets], zeros: the same on any number of threads */
} Networks;
void damage_run(const Subject *s, const Networks *n);

/* ---- distance.c: distances and clusters of items ------------------------------------------------ */

enum { DISTANCE_EUCLIDEAN, DISTANCE_CORRELATION, DISTANCE_COSINE, DISTANCES };
extern const char *const distance_names[DISTANCES];
/* x: [items][units]; returns [items][items], in scratch, as do all that follow. */
double *distances_of(Ctx *cx, const double *x, uint32_t items, uint32_t units, int kind);
Merge *tree_of(Ctx *cx, const double *distance, uint32_t items); /* [items - 1] by average linkage */

/* ---- eigen.c ------------------------------------------------------------------------------------ */

enum { MOST_EIGEN = 512, MOST_COMPONENTS = 4 };
/* Eigenvalues of a, largest first, and their vectors as rows; a is overwritten. */
void eigen_symmetric(Arena *arena, double *a, uint32_t n, double *value, double *vector);
typedef struct Components { /* principal components; count 0: the matrix is too large */
	uint32_t count;
	double variance[MOST_COMPONENTS], total;
	double *loading; /* [count][units] */
	double *score;   /* [items][count] */
} Components;
Components components_of(Ctx *cx, const double *activation, uint32_t items, uint32_t units);
typedef struct Scaled { /* at NULL: the matrix is too large */
	double *at;         /* [items][2] */
	double share;       /* of the sizes of all eigenvalues */
} Scaled;
Scaled scaling_of(Ctx *cx, const double *distance, uint32_t items);

/* ---- report.c ----------------------------------------------------------------------------------- */

typedef struct Spread {         /* of some measurements */
	double mean, sd, low, high; /* low, high: confidence interval of the mean, 95 % (Student's t) */
	uint64_t n;
} Spread;
Spread spread_of(const double *v, uint64_t n);
/* Limits of the shades for activations of a group: those of its function, or both 0. */
void heat_range(HeatPlot *p, const Group *g);
void text_save(Ctx *cx, const char *path, const Buf *text); /* path NULL: nothing */

#endif
