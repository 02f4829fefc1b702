/* SPDX-License-Identifier: MIT */
/* Jobs: several processes, started by mpirun or the like, that train one network. */
#ifndef MICROPROP_JOB_H
#define MICROPROP_JOB_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All ranks make the same calls; each does its share of the leaves of every batch (mp_run_restarts: of the seeds), and
 * all have the weights of a single process, to the last bit. A process that was started alone is a job of one. */
typedef struct mp_job mp_job;

MP_API mp_status mp_job_join(mp_job **job, const mp_allocator *alloc); /* once in a process */
MP_API uint32_t mp_job_launched_rank(void); /* by the environment, before joining; 0: there is no launcher */
MP_API const char *mp_job_messages(const mp_job *job);
MP_API const mp_error *mp_job_get_error(const mp_job *job, size_t i);
MP_API uint32_t mp_job_rank(const mp_job *job);
MP_API uint32_t mp_job_size(const mp_job *job);
/* Fails, on all ranks, unless all pass the same value of an option; NULL: it is not given.  All options that the
 * library knows are compared when training starts: this is for those of the caller. */
MP_API mp_status mp_job_same(mp_job *job, const char *option, const char *value);
/* A file, by the name that all ranks pass; *found: the name itself where the file exists, else that of a copy received
 * from rank 0, which is deleted when the job ends. */
MP_API mp_status mp_job_file(mp_job *job, const char *path, const char **found);
MP_API void mp_run_share(mp_run *run, mp_job *job); /* before training; only rank 0 reports */
/* The last call: this rank's status and, if that is not 0, a text for the other ranks' messages. Returns the largest
 * status of all ranks. */
MP_API int mp_job_leave(mp_job *job, int status, const char *text);
MP_API void mp_job_close(mp_job *job);

#ifdef __cplusplus
}
#endif
#endif
