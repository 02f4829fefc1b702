/* SPDX-License-Identifier: MIT */
/* Trained networks in forms that other programs run: ONNX, C, JavaScript, numpy arrays. */
#ifndef MICROPROP_EXPORT_H
#define MICROPROP_EXPORT_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How to write a file; zero, but for `size`, is the default. */
typedef struct mp_export {
	size_t size;
	const char *format;         /* "onnx", "c", "js", "npz"; NULL: by the ending of the path */
	const mp_data *calibration; /* "c": weights in 8 bits, with ranges from this data; NULL: float32 */
	int plain;                  /* "onnx": matrix products, faster, instead of sums in the order of predict */
} mp_export;

/* What was written. Valid until the next call on the run. */
typedef struct mp_exported {
	size_t size;
	const char *format;
	const char *second;             /* a second file that was written, or NULL */
	uint64_t inputs, outputs;       /* numbers of a case, and of its result */
	uint64_t calibration_cases;     /* 0: float32; else what 8 bits cost, over these cases: */
	double largest_difference, rms; /* of an output */
	double changed;                 /* share of cases whose best guess changed */
	double right, right_int8;       /* shares of cases; NaN: no targets */
	uint64_t bytes, bytes_int8;     /* of the weights */
} mp_exported;

/* The network, its weights, its scale and its classes as a file. `how` and `result` may be NULL; set result->size. */
MP_API mp_status mp_run_export_model(mp_run *run, const char *path, const mp_export *how, mp_exported *result);

#ifdef __cplusplus
}
#endif
#endif
