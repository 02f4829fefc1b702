/* SPDX-License-Identifier: MIT */
/* --guard light: weights and rule state of the device are compared with their checksums. In: memory of the host that
 * has a copy of them. Out: checksums of what the device holds now. Must hold: a block is fetched from the device
 * whenever its checksum is asked for, so the host's copy is that of the last checksum; after a rollback the host's is
 * the newer one. */
#include "cuda.h"
#include "monitor.h"
#include "pass.h"

static uint32_t regions(Program *p, Region *r)
{
	Cuda *c = cuda_of(p);
	uint64_t bytes = c->floats * sizeof(float);
	uint32_t n = 0;

	weights_download(c);
	r[n++] = (Region){ "weights", c->cpu->w, bytes };
	for (int k = 0; k < c->rule->states; k++)
		r[n++] = (Region){ c->rule->state[k], c->cpu->state[k], bytes };
	return n;
}

static bool inside(const void *at, uint64_t bytes, const float *of, uint64_t floats)
{
	const char *first = (const char *)of, *place = at;

	return place >= first && place + bytes <= first + floats * sizeof *of;
}

/* Of the device's memory, where `at` is a copy of some of it. */
static uint64_t checksum(const Program *p, const void *at, uint64_t bytes)
{
	Cuda *c = cuda_of((Program *)p);

	for (int k = -1; k < c->rule->states && !c->host_newer; k++) {
		float *host = k < 0 ? c->cpu->w : c->cpu->state[k], *device = k < 0 ? c->job.w : c->job.state[k];
		if (inside(at, bytes, host, c->floats))
			gpu_download(c->gpu, (void *)at, (const char *)device + ((const char *)at - (const char *)host), bytes);
	}
	return checksum_of(at, bytes);
}

static void attach(Program *p, Monitor *m)
{
	Cuda *c = cuda_of(p);

	if (m && m->check_sums)
		fail(c->cx, MP_BAD_INPUT, "use --guard light, or --target cpu", "target cuda has no --guard full");
	if (c->guarded && m) { /* a rollback has changed the host's copy */
		c->host_newer = true;
		c->device_newer = false;
	}
	c->pending_full = false;
	c->guarded = m != NULL;
}

const GuardHooks cuda_guard = { .regions = regions, .attach = attach, .checksum = checksum };
