/* SPDX-License-Identifier: MIT */
/* What this build of the library is and can do. */
#ifndef MICROPROP_BUILD_H
#define MICROPROP_BUILD_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Write a JSON object: version; build (its type), compiler; isa, the vector instructions in use, and isas, those that
 * this CPU supports; targets; mpi, the message-passing modules found. MP_BAD_INPUT: MICROPROP_ISA names none of
 * them. */
MP_API mp_status mp_build_describe(mp_write_fn *write, void *user);

/* A word of another program, such as "lr" or "batch-size": how to say it here; *same is our option if it means the
 * same, else NULL. NULL: no such word. */
MP_API const char *mp_option_hint(const char *word, const char **same);

#ifdef __cplusplus
}
#endif
#endif
