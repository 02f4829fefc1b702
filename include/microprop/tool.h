/* SPDX-License-Identifier: MIT */
/* Benchmarks, cost models and the reports of target gf11, as `microprop bench`, `model` and `gf11` run them.
 * They are in libmicroprop-study, which contains libmicroprop: link with -lmicroprop-study instead of -lmicroprop. */
#ifndef MICROPROP_TOOL_H
#define MICROPROP_TOOL_H

#include <microprop.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mp_tool mp_tool;

/* Runs a command of tool "cpu", "gf11" or "cluster". argv[0] is the command, then come operands and options, as
 * --name=value or --flag, as the command line has them: { "microcode", "forward", "--json" } of "gf11"; "cluster" has
 * one command and begins with its operands. The report goes to `write`, also when the status is MP_FAILED. */
MP_API mp_status mp_tool_run(mp_tool **tool, const char *name, int argc, const char *const *argv, mp_write_fn *write,
                             void *user, const mp_allocator *alloc);
MP_API const char *mp_tool_messages(const mp_tool *tool);
MP_API void mp_tool_close(mp_tool *tool);

/* A figure of the last mp_run_measure as SVG: "confusion", "roc", "calibration", or "predicted" (against true, of one
 * target); or "curve", the learning curve of the run. Nothing is written where the targets have no such figure. */
MP_API mp_status mp_run_figure(mp_run *run, const char *kind, uint32_t target, mp_write_fn *write, void *user);

/* A study of a trained network, as the command of that name runs it: "lesion" (damaged copies of it), "analyze"
 * (activations of a group), "network", "hinton" and "activations" (figures), "links" (JSON: the units that every
 * weight leads from and to). Words are its options, as --name=value or --flag; figures and tables go to the files
 * that they name, the report to `write`. data may be NULL where a study needs none. */
MP_API mp_status mp_run_study(mp_run *run, const mp_data *data, const char *study, int argc, const char *const *argv,
                              mp_write_fn *write, void *user);

#ifdef __cplusplus
}
#endif
#endif
