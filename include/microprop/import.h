/* SPDX-License-Identifier: MIT */
/* Networks of other programs: SNNS, FANN, LENS, tlearn, ONNX. mp_net_open reads them too, if all of the file can
 * be carried over. */
#ifndef MICROPROP_IMPORT_H
#define MICROPROP_IMPORT_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How to read a file; zero, but for `size`, is the default. */
typedef struct mp_import {
	size_t size;
	const char *format;  /* "snns", "fann", "lens", "tlearn", "onnx"; NULL: by content */
	int lossy;           /* what cannot be carried over is left out, with a note; 0: that is an error */
	const char *weights; /* lens, tlearn: a file of weights (.wt, .wts); NULL: none */
} mp_import;
MP_API mp_status mp_net_import(mp_net **net, const char *path, const mp_import *how, const mp_allocator *alloc);
/* The text of the network as a topology file, without weights. */
MP_API mp_status mp_net_save(mp_net *net, const char *path);
/* Network and weights of a run as a file of another simulator: "snns" or "fann". */
MP_API mp_status mp_run_export(mp_run *run, const char *path, const char *format);

#ifdef __cplusplus
}
#endif
#endif
