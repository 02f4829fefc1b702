/* SPDX-License-Identifier: MIT */
/* What ranks on a cluster would take:
 *
 *   FILE.cluster --cluster.c--> Cluster \
 *                                        scaling.c --> Scaling of a batch, an epoch
 *   network, data --rates.c--> Rates    /
 *
 * scalecmd.c is the command `microprop model` around it. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "run.h"

/* ---- cluster.c: the parameters, from a cluster file --------------------------------------------- */

typedef struct Cluster {
	const char *name;
	const Provenance *from; /* [cluster_row_count] */
#define CLUSTER_INT(field, ...)  int64_t field;
#define CLUSTER_REAL(field, ...) double field;
#include "cluster.def"
} Cluster;

extern const Param cluster_rows[];
extern const size_t cluster_row_count;

Cluster *cluster_open(Ctx *cx, const char *name); /* a path, or one of those built in */
Cluster *cluster_parse(Ctx *cx, const Src *src);
void cluster_print(const Cluster *c, Buf *out);

/* ---- scaling.c: the model ----------------------------------------------------------------------- */

/* Seconds that a rank takes, with cores enough. */
typedef struct Rates {
	double cases;  /* for a case of a leaf, its joins into the rank's sums with it */
	double join;   /* for a float of two sums */
	double update; /* for an update of all weights */
	/* for a batch that is one leaf, with its update; 0: not known, its cases and the update are counted */
	double alone;
} Rates;

typedef struct Workload {
	uint64_t links, floats;   /* weights; floats of a sum, a few more */
	uint64_t examples, cases; /* of an epoch */
	uint64_t batch;           /* examples of an update: no more than that */
	uint32_t threads;         /* of a rank */
} Workload;

typedef struct Scaling {
	uint32_t ranks, leaves, sums; /* leaves of a batch that the busiest rank has; sums that it sends */
	int way;                      /* WAY_..., of a full batch; -1: nothing travels */
	uint64_t bytes, messages;     /* that the busiest rank sends of sums in a full batch */
	double arithmetic, travel, meeting, update, total; /* seconds of an epoch */
	double mcps;
} Scaling;

Scaling scaling_epoch(const Cluster *c, const Rates *r, const Workload *w, uint32_t ranks);
/* Where more ranks begin to cost more than they save, if sums go by halving and leaves could be cut at will. */
double scaling_optimum(const Cluster *c, const Rates *r, const Workload *w);

/* ---- rates.c: what this computer takes ---------------------------------------------------------- */

typedef struct Rated {
	Rates rates;
	uint64_t floats, examples, cases;
} Rated;
/* The network on data, or on made-up cases if that is NULL, for a second or so; not timed: counts alone, at once. */
Rated rates_measure(Ctx *cx, const Net *net, const Data *data, uint32_t threads, bool timed);
/* Seconds of a batch of so many examples, one leaf, and its update; 0: there are not so many. */
double rates_alone(Ctx *cx, const Net *net, const Data *data, uint32_t threads, uint64_t batch);

/* ---- scalecmd.c --------------------------------------------------------------------------------- */

void cluster_tool(Ctx *cx, int argc, const char *const *argv, Buf *out);

#endif
