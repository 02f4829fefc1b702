/* SPDX-License-Identifier: MIT */
/* Background saves: checkpoints written while training goes on. */
#ifndef MICROPROP_BACKGROUND_H
#define MICROPROP_BACKGROUND_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Save in the background, between two updates: a snapshot of the run is written to a new file, read back, and only
 * then put in place of the older one; best (may be NULL) is the file for the best epoch's weights. The keep - 1 older
 * files stay, as PATH.1, PATH.2, ... Does nothing while the last save is still being written. Returns the result of
 * the save before it, unless that was already returned. */
MP_API mp_status mp_run_save_background(mp_run *run, const char *path, const char *best, unsigned keep);
MP_API mp_status mp_run_save_wait(mp_run *run);             /* until it is written; its result */
MP_API const char *mp_run_save_messages(const mp_run *run); /* why a background save failed */

#ifdef __cplusplus
}
#endif
#endif
