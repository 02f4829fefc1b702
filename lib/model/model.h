/* SPDX-License-Identifier: MIT */
/* The cost of training on a cluster:
 *
 *   FILE.cluster --cluster.c--> Cluster \
 *                                        scaling.c --> Scaling: seconds of an epoch
 *   network, data --rates.c--> Rates    /
 *
 * command.c is the command `microprop model`. */
#ifndef MODEL_H
#define MODEL_H

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

/* Seconds of a rank that has its cores to itself. */
typedef struct Rates {
	double cases;  /* a case of a leaf, joins of leaves included */
	double join;   /* adding a float of one sum to another */
	double update; /* an update of all weights */
	double alone;  /* a batch of one leaf with its update; 0: unknown, use cases and update */
} Rates;

typedef struct Workload {
	uint64_t links, floats;   /* weights; floats of a sum, padding included */
	uint64_t examples, cases; /* of an epoch */
	uint64_t batch;           /* examples of an update, at most `examples` */
	uint32_t threads;         /* of a rank */
} Workload;

typedef struct Scaling {
	uint32_t ranks, leaves, sums;                /* leaves and sums of the busiest rank, of a full batch */
	int way;                                     /* WAY_..., of a full batch; -1: no sums are sent */
	uint64_t bytes, messages;                    /* of sums, sent by the busiest rank in a full batch */
	double compute, reduce, vote, update, total; /* seconds of an epoch */
	double mcps;
} Scaling;

Scaling scaling_epoch(const Cluster *c, const Rates *r, const Workload *w, uint32_t ranks);
/* The number of ranks beyond which an epoch takes longer, for recursive halving and leaves of any size. */
double scaling_optimum(const Cluster *c, const Rates *r, const Workload *w);

/* ---- rates.c: measured rates of this computer --------------------------------------------------- */

typedef struct Rated {
	Rates rates;
	uint64_t floats, examples, cases;
} Rated;
/* On data, or on random cases if that is NULL, for about a second; !timed: counts only, at once. */
Rated rates_measure(Ctx *cx, const Net *net, const Data *data, uint32_t threads, bool timed);
/* Seconds of a batch of one leaf with its update; 0: there are fewer examples. */
double rates_alone(Ctx *cx, const Net *net, const Data *data, uint32_t threads, uint64_t batch);

/* ---- command.c ---------------------------------------------------------------------------------- */

void cluster_tool(Ctx *cx, int argc, const char *const *argv, Buf *out);

#endif
