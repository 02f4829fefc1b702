/* SPDX-License-Identifier: MIT */
/* The public handles, and the boundary between them and the library. */
#ifndef API_H
#define API_H

#include "microprop/table.h"
#include "store.h"
#include "table.h"
#include "train.h"

struct mp_net {
	Ctx cx;
	Net *net; /* NULL if reading failed */
	mp_net_info info;
	mp_group_info *group; /* [info.groups] */
	mp_block_info *block; /* [info.blocks] */
};

struct mp_data {
	Ctx cx;
	Data *data; /* NULL if reading failed */
	mp_data_info info;
	Buf text; /* of the last name or guess */
};

/* Calls body(arg) under the setjmp that failures unwind to. Discards earlier messages, and frees scratch memory at the
 * end, unless it is nested in another call on the same handle (a report function that saves). */
Status api_call(Ctx *cx, void (*body)(void *arg), void *arg);

/* api_run.c: the data, NULL of NULL; fails if it could not be read. */
const Data *data_readable(Ctx *cx, const mp_data *d);

/* api_table.c: of the table that the run was trained on; NULL: none. */
const Schema *run_schema(Run *r);

/* api_metrics.c: the last measurement of a run. */
typedef struct Measurement {
	const Data *data; /* NULL: metrics of the file that was loaded, no cases */
	const Schema *schema;
	Metrics *metrics;
	double *outputs;   /* [cases * targets] */
	uint64_t capacity; /* of outputs */
	mp_metrics show;
	mp_class_metrics *per_class; /* [show.classes] */
	Scorer scorer;
	mp_case one;
	float *row;     /* [targets] */
	double *values; /* [2 * targets]: targets and outputs of `one` */
	uint32_t groups;
	mp_case_group *group; /* [groups] output groups of `one` */
	Buf *words;           /* [2 * groups] their guesses and rivals */
	float *all_targets;   /* [cases][targets] NULL: not known yet, or there are no guesses of groups */
	uint32_t *tick;       /* [cases][groups + 1] reaction times, all outputs last; NULL: not known yet */
	Buf rival;
} Measurement;

/* api_data.c: reads data; with the columns of a plain schema, if there is one. */
void api_data_open(mp_data *d, const char *path, const mp_data_options *opt, const Schema *like);

/* A schema of the names of its columns, if it has some. */
void api_data_schema(Ctx *cx, Data *d);

/* targets.c: adds `, "isa": "avx512", "isas": ["generic", ...], "targets": ["cpu", ...]`. */
void targets_describe(Ctx *cx, Buf *json);

/* A handle is a struct whose first member is its Ctx. Memory for one, zeroed, with its Ctx initialised. */
Status api_handle(void **handle, size_t size, const mp_allocator *alloc);
void api_close(void *handle, size_t size);
const char *api_messages(const void *handle);
const mp_error *api_error(const void *handle, size_t i);

/* A struct that the caller filled, of which the first member is its size, as the library knows it: fields that the
 * caller does not know are 0. False: no size, or fields are set that the library does not know. */
bool api_take(void *into, size_t size, const void *given);

#endif
