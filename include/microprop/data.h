/* SPDX-License-Identifier: MIT */
/* Data tools: write, split and scale data sets. */
#ifndef MICROPROP_DATA_H
#define MICROPROP_DATA_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

MP_API mp_status mp_data_save(mp_data *data, const char *path); /* format by name: .npz .npy .csv .txt .idx */

/* Cut into two by example, at random: about `share` of the examples into *first. */
MP_API mp_status mp_data_split(mp_data *data, double share, uint64_t seed, mp_data **first, mp_data **rest);
/* Scale the inputs to 0..1 ("range") or mean 0 and deviation 1 ("zscore"), fitted on `data`, and apply the same to
 * `also` (or NULL). */
MP_API mp_status mp_data_scale(mp_data *data, const char *kind, mp_data *also);

/* Outputs of the network of a run, as mp_run_test gives them, as a float64 npy file. */
MP_API mp_status mp_run_write_outputs(mp_run *run, const char *path, const double *outputs, uint64_t cases);
/* A text beside the files of a run. It is replaced as a whole or not at all, as are all files that this library
 * writes. */
MP_API mp_status mp_run_write_text(mp_run *run, const char *path, const char *text, size_t len);

#ifdef __cplusplus
}
#endif
#endif
