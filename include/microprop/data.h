/* SPDX-License-Identifier: MIT */
/* Data tools: view arrays as data; write, split and scale data sets. */
#ifndef MICROPROP_DATA_H
#define MICROPROP_DATA_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cases in arrays of the caller: zero, but for `size`, cases, inputs and x, is a valid default. */
typedef struct mp_cases {
	size_t size;
	const char *name; /* what messages call it; NULL: "data" */
	uint64_t cases;
	uint32_t inputs, targets;
	/* [cases * inputs] row by row, of this type: "float32", "float64", "float16", "uint8", "int8", "uint16", "int16",
	 * "uint32", "int32", "uint64", "int64", "bool"; NULL: "float32" */
	const void *x;
	const char *x_type;
	/* Instead of x, CSR: inputs of case i that are not zero are x_indices[x_indptr[i]] .. x_indices[x_indptr[i + 1] -
	 * 1], ascending; x_values NULL: they are 1. */
	const uint64_t *x_indptr; /* [cases + 1] */
	const uint32_t *x_indices;
	const float *x_values;
	const void *y; /* [cases * targets]; NaN: no target */
	const char *y_type;
	const uint8_t *mask; /* [cases * targets] 0: no target; NULL: there is one unless it is NaN */
	const uint64_t *seq; /* [sequences + 1] offsets of sequences, the first 0, the last `cases`; NULL: none */
	uint64_t sequences;
	const float *weight;             /* [cases]; NULL: all count the same */
	const uint32_t *ticks;           /* [cases] of a settling network; NULL: as its options say */
	const char *const *names;        /* [cases]; NULL: none */
	const char *const *input_names;  /* [inputs]; NULL: none */
	const char *const *target_names; /* [targets], or with classes [1]; NULL: none */
	const char *const *classes;      /* [class_count == targets] of one-of-n targets; NULL: no classes */
	uint32_t class_count;
} mp_cases;
/* Data without a copy of the arrays: they must stay as they are until it is closed. */
MP_API mp_status mp_data_view(mp_data **data, const mp_cases *cases, const mp_allocator *alloc);
/* The next mp_run_train may be given other data: weights, rule state and counts go on from an epoch's end. */
MP_API mp_status mp_run_change_data(mp_run *run);

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
