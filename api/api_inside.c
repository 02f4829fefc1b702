/* SPDX-License-Identifier: MIT */
/* Public calls that look inside a network. */
#include <string.h>

#include "api.h"
#include "microprop/data.h"
#include "microprop/inside.h"

typedef struct InsideArgs {
	Run *r;
	const mp_data *data;
	const char *group;
	uint32_t tick;
	double *out;
} InsideArgs;

static void activations_body(void *arg)
{
	InsideArgs *a = arg;
	Ctx *cx = &a->r->cx;
	const Data *d = data_readable(cx, a->data);
	_Static_assert(LAST_TICK == (uint32_t)0 - 1, "tick 0 is the last");
	Text name = { a->group, (uint32_t)strlen(a->group) };
	run_activations(a->r, d, net_group_named(cx, a->r->net, NULL, name), a->tick - 1, a->out);
}

mp_status mp_run_activations(mp_run *run, const mp_data *data, const char *group, uint32_t tick, double *activations)
{
	return api_call(&run->cx, activations_body, &(InsideArgs){ run, data, group, tick, activations });
}

uint32_t mp_run_get_ticks(const mp_run *run) { return run->net ? ticks_make(run->net, &run->opt).each : 1; }

typedef struct MatrixArgs {
	Run *r;
	const char *path;
	const double *v;
	uint64_t rows, columns;
} MatrixArgs;

static void matrix_body(void *arg)
{
	MatrixArgs *a = arg;
	write_npy_doubles(&a->r->cx, a->path, a->v, a->rows, a->columns);
}

mp_status mp_run_write_matrix(mp_run *run, const char *path, const double *values, uint64_t rows, uint64_t columns)
{
	return api_call(&run->cx, matrix_body, &(MatrixArgs){ run, path, values, rows, columns });
}

mp_status mp_run_write_outputs(mp_run *run, const char *path, const double *outputs, uint64_t cases)
{
	return mp_run_write_matrix(run, path, outputs, cases, run->net->outputs);
}
