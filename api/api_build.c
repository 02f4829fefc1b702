/* SPDX-License-Identifier: MIT */
/* What this build is and can do, as JSON. */
#include "api.h"
#include "microprop/build.h"
#include "open.h"

typedef struct BuildArgs {
	Ctx cx;
	Buf out;
} BuildArgs;

static void describe_body(void *arg)
{
	BuildArgs *a = arg;
	Buf *b = &a->out;
	b->arena = &a->cx.keep;
	buf_printf(b, "{\"version\": \"%s\", \"build\": \"%s\", \"compiler\": ", MP_VERSION, MP_BUILD_TYPE);
	json_put(b, MP_COMPILER);
	targets_describe(&a->cx, b);
	buf_puts(b, ", \"mpi\": [");
	static const char *const mpi[] = { "openmpi", "mpich" };
	for (size_t i = 0, n = 0; i < COUNT(mpi); i++)
		if (comm_found(&a->cx, mpi[i]))
			buf_printf(b, "%s\"%s\"", n++ ? ", " : "", mpi[i]);
	buf_puts(b, "]}");
}

mp_status mp_build_describe(mp_write_fn *write, void *user)
{
	BuildArgs a = { 0 };
	ctx_init(&a.cx, NULL);
	Status s = api_call(&a.cx, describe_body, &a);
	if (s == MP_OK)
		write(user, a.out.s, a.out.len);
	ctx_free(&a.cx);
	return s;
}
