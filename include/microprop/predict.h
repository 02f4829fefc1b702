/* SPDX-License-Identifier: MIT */
/* Predictors: outputs of single cases with the least delay.
 *
 *     mp_predictor_new(&p, run, NULL);
 *     float *x = mp_predictor_inputs(p);
 *     for (;;) { ... fill x ...;  const double *out = mp_predictor_run(p); ... }
 *
 * A predictor has a copy of the weights: the run may be trained on, used by another thread, or closed. */
#ifndef MICROPROP_PREDICT_H
#define MICROPROP_PREDICT_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mp_predictor mp_predictor;

/* The network of a run with its weights as they are now, on the same target. The net must outlive it. */
MP_API mp_status mp_predictor_new(mp_predictor **predictor, mp_run *run, const mp_allocator *alloc);
MP_API void mp_predictor_close(mp_predictor *predictor);
/* As for networks. */
MP_API const char *mp_predictor_messages(const mp_predictor *predictor);
MP_API const mp_error *mp_predictor_get_error(const mp_predictor *predictor, size_t i);

/* Its buffer for the inputs of a case, before any scaling: [inputs of the net]. */
MP_API float *mp_predictor_inputs(mp_predictor *predictor);
/* Its buffer for the outputs: [outputs of the net]. */
MP_API const double *mp_predictor_outputs(const mp_predictor *predictor);
/* Compute them, with the bits of mp_run_test, in the calling thread; returns mp_predictor_outputs. A case is a sequence
 * of its own: contexts are at their start value. NULL: it could not be made. */
MP_API const double *mp_predictor_run(mp_predictor *predictor);

/* Sequences, case after case: as mp_predictor_run, but contexts have what the case before left, with the bits of
 * mp_run_test for the whole sequence. NULL: it could not be made, or mp_predictor_reset says why not. */
MP_API const double *mp_predictor_step(mp_predictor *predictor);
/* The next step begins a sequence, as the first does. MP_BAD_INPUT: this network cannot be computed step by step. */
MP_API mp_status mp_predictor_reset(mp_predictor *predictor);

#ifdef __cplusplus
}
#endif
#endif
