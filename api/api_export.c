/* SPDX-License-Identifier: MIT */
/* Public calls that write networks for other programs. */
#include <string.h>

#include "api.h"
#include "export.h"
#include "microprop/export.h"

typedef struct ExportArgs {
	Run *r;
	const char *path;
	const mp_export *how;
	mp_exported *result;
} ExportArgs;

static void fill_result(const ExportArgs *a, const ExportOptions *o, uint32_t inputs)
{
	const Loss *l = &o->loss;
	mp_exported own = { .size = sizeof own,
		                .format = o->format_used,
		                .second = o->second,
		                .inputs = inputs,
		                .outputs = a->r->net->outputs,
		                .calibration_cases = l->cases,
		                .largest_difference = l->largest,
		                .rms = l->rms,
		                .changed = l->changed,
		                .right = l->right,
		                .right_int8 = l->right_int8,
		                .bytes = l->bytes,
		                .bytes_int8 = l->bytes_int8 };
	own.size = min_u64(a->result->size, sizeof own);
	memcpy(a->result, &own, own.size);
}

static void export_body(void *arg)
{
	ExportArgs *a = arg;
	Run *r = a->r;
	Ctx *cx = &r->cx;
	mp_export own = { .size = sizeof own };
	if (a->how && !api_take(&own, sizeof own, a->how))
		fail(cx, MP_BAD_INPUT, "set mp_export.size to sizeof(mp_export), and the rest to 0",
		     "these options are not of this version of the library");
	if (a->result && a->result->size < sizeof a->result->size)
		fail(cx, MP_BAD_INPUT, "set mp_exported.size to sizeof(mp_exported)", "this result has no size");
	run_start(r);
	char fingerprint[33];
	run_fingerprint(r, fingerprint);
	double *w = NEW(&cx->scratch, r->net->links, double);
	r->target->get(r->program, 0, 0, ALL_LINKS, w);
	const Data *given = own.calibration ? data_readable(cx, own.calibration) : NULL;
	Data scaled = { 0 };
	if (given) {
		run_check_data(cx, r->net, given, false);
		if (!given->cases)
			fail(cx, MP_BAD_INPUT, "give some cases", "%s has no case to calibrate with", given->name);
		scaled = *given;
		data_scale_apply(cx, &cx->scratch, &scaled, &r->scale);
	}
	Model m = { .net = r->net,
		        .opt = &r->opt,
		        .w = w,
		        .scale = r->scale,
		        .classes = r->classes,
		        .schema = run_schema(r),
		        .fingerprint = fingerprint };
	ExportOptions o = { .format = own.format, .plain = own.plain != 0, .calibration = given ? &scaled : NULL };
	export_write(cx, &m, a->path, &o);
	if (a->result)
		fill_result(a, &o, m.columns);
}

mp_status mp_run_export_model(mp_run *run, const char *path, const mp_export *how, mp_exported *result)
{
	return api_call(&run->cx, export_body, &(ExportArgs){ run, path, how, result });
}
