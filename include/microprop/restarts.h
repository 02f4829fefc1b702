/* SPDX-License-Identifier: MIT */
/* Restarts: many seeds of one network. */
#ifndef MICROPROP_RESTARTS_H
#define MICROPROP_RESTARTS_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each seed is trained as mp_run_train would train it, to the last bit. Where the target supports it and the network
 * is small they are trained in parallel, 16 per thread, else one after the other. */
typedef struct mp_seed {
	size_t size;
	uint64_t seed;
	int solved; /* the stop criterion was met */
	int failed; /* the error or a weight was not finite in the epoch after `epochs`; only seed and epochs are set */
	uint64_t epochs;             /* finished */
	double error, right, within; /* of the last of them */
	char fingerprint[33];        /* of the weights at its end */
} mp_seed;

typedef struct mp_restarts {
	size_t size;
	uint64_t count, done;    /* seeds asked for, and finished */
	uint64_t solved, failed; /* of those finished */
	/* to solve it, over those solved; median: the lower of two.  0: none was */
	uint64_t epochs_min, epochs_median, epochs_max;
	double seconds, seeds_per_second; /* without the final run of the best seed */
	double mcps;                      /* million connections per second, all seeds together */
	uint64_t best; /* index (mp_run_get_seed) of the best: solved in the fewest epochs, or else of least error */
	int lanes;     /* they were trained in parallel, a seed in each lane of a vector, or thread or block of a GPU: */
	uint64_t parallel; /* so many by a thread of the CPU, or by the GPU; 0: one after the other */
} mp_restarts;

/* Called at most ten times a second during the search, when epochs_... and best are not known yet.  Not 0: stop. */
typedef int mp_restarts_fn(void *user, mp_run *run, const mp_restarts *so_far);

/* Trains seeds s, s + 1, ... s + count - 1, where s is option `seed`; then the best of them is trained again as
 * mp_run_train would, with its reports, and the run is that of this seed from then on: weights, options, history.
 * The run must be a new one. A stop ends the search, and the best of those done is taken: MP_STOPPED. MP_FAILED:
 * every seed failed. Ranks of a job (mp_run_share) share the seeds; progress is that of rank 0 with its own. */
MP_API mp_status mp_run_restarts(mp_run *run, const mp_data *data, const mp_data *test, uint64_t count,
                                 mp_restarts_fn *progress, mp_report_fn *report, void *user);
MP_API const mp_restarts *mp_run_get_restarts(const mp_run *run); /* of the last such call; NULL if there was none */
/* The i-th of its finished seeds, in ascending order of seed; NULL past the last. */
MP_API const mp_seed *mp_run_get_seed(const mp_run *run, uint64_t i);

#ifdef __cplusplus
}
#endif
#endif
