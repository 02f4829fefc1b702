/* SPDX-License-Identifier: MIT */
/* comm: message passing between the processes of a job. */
#ifndef OPEN_H
#define OPEN_H

#include "comm.h"
#include "base.h"

const Comm *comm_open(Ctx *cx);             /* NULL: there is no job, or it has one process */
bool comm_found(Ctx *cx, const char *name); /* is there a module for this MPI? */

#endif
