/* SPDX-License-Identifier: MIT */
/* Commands that look inside a trained network. */
#ifndef INSIDE_H
#define INSIDE_H

#include "cli.h"

/* ---- study.c: each returns the exit status, messages shown ---- */

int study_open(Args *a, Session *s); /* network, weights, data with targets; files of --svg and --csv are checked */
/* The options of the command's first group go to the study of this name, its report to standard output. */
int study_run(Args *a, Session *s, const char *name);

/* The same with the options of this list, to `write`. */
int study_call(Args *a, Session *s, const char *name, const Option *list, mp_write_fn *write, void *user);

#endif
