/* SPDX-License-Identifier: MIT */
/* Looking inside a network: activations of its groups, fingerprint of its weights. */
#ifndef MICROPROP_INSIDE_H
#define MICROPROP_INSIDE_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Activations of any group for every case of data, [cases * units of the group], at a tick of a settling network, from
 * 1, or 0: at its last: inputs as the network gets them, contexts as they were when the case was computed. NaN
 * for cases that have fewer ticks. Targets of the data are ignored and need not fit. */
MP_API mp_status mp_run_activations(mp_run *run, const mp_data *data, const char *group, uint32_t tick,
                                    double *activations);
MP_API uint32_t mp_run_get_ticks(const mp_run *run); /* of a case, unless the data says; 1: it does not settle */
/* Fingerprint of the weights as they are now, 32 hexadecimal digits; valid until the next call. NULL: failed. */
MP_API const char *mp_run_get_fingerprint(mp_run *run);
/* A matrix as a float64 npy file. */
MP_API mp_status mp_run_write_matrix(mp_run *run, const char *path, const double *values, uint64_t rows,
                                     uint64_t columns);

#ifdef __cplusplus
}
#endif
#endif
