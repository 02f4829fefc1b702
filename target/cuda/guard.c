/* SPDX-License-Identifier: MIT */
/* Guards against silent data corruption on the device. In: host regions that mirror weights and rule state of the
 * device. Out: checksums of what the device holds now. --guard full also checks the sum that waits for its update,
 * and has target cpu, which has the same bits, recompute single leaves. Must hold: a region is downloaded whenever
 * its checksum is taken, so the host copy is that of the last checksum; after a rollback the host copy is the newer
 * one. */
#include "cuda.h"
#include "monitor.h"
#include "pass.h"

extern const Target target_cpu;

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

/* Of device memory that `at` mirrors, or part of it. */
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

/* ---- --guard full ---- */

static bool checks_sums(const Cuda *c) { return c->guard.monitor && c->guard.monitor->check_sums; }

static float *sum_get(Cuda *c, const float *from)
{
	if (!c->guard.sum || c->guard.floats != c->floats)
		c->guard.sum = NEW(&c->cx->keep, c->floats + LANES, float);
	c->guard.floats = c->floats;
	gpu_download(c->gpu, c->guard.sum, from, c->floats * sizeof *from);
	return c->guard.sum;
}

void guard_pending(Cuda *c)
{
	if (checks_sums(c))
		c->guard.pending = checksum_of(sum_get(c, c->job.pending), c->floats * sizeof(float));
}

void guard_verify(Cuda *c)
{
	if (checks_sums(c) && checksum_of(sum_get(c, c->job.pending), c->floats * sizeof(float)) != c->guard.pending)
		c->guard.monitor->corrupted_sums++;
}

/* After a job on leaves first .. first + count - 1: takes the checksum of Monitor.leaf, if it is one of them. False:
 * its sum is gone, since there were more leaves than sums, or they were streamed. */
static bool guard_leaf(Cuda *c, uint32_t first, uint32_t count)
{
	Monitor *m = c->guard.monitor;
	Tally tally;

	if (!checks_sums(c) || m->leaf < first || m->leaf >= first + count)
		return true;
	if (count > c->job.sums || (c->bound->streamed && count > 1))
		return false;
	float *v = sum_get(c, c->bound->streamed ? c->job.pending : c->job.sum + (m->leaf - first) * c->floats);
	gpu_download(c->gpu, &tally, (const Tally *)c->device_tally + (m->leaf - first), sizeof tally);
	m->leaf_checksum = leaf_checksum(c->cpu, v, &tally);
	m->leaf_core = -1;
	return true;
}

/* Computes the leaf alone, takes its checksum, then computes the sum of the batch again. */
static void leaf_recompute(Cuda *c, const Work *w)
{
	Tally unused = { 0 };
	Work one = *w, all = *w;
	uint32_t leaf = c->guard.monitor->leaf;

	one.leaf_first = leaf;
	one.leaf_end = leaf + 1;
	one.tally = all.tally = &unused;
	work_run(c, &one);
	guard_leaf(c, leaf, 1);
	work_run(c, &all);
}

void guard_summed(Cuda *c, const Work *w, uint32_t first, uint32_t count)
{
	if (!guard_leaf(c, first, count))
		leaf_recompute(c, w);
}

static uint64_t recompute(Program *p, const Batch *b, uint32_t leaf, uint32_t attempt, int *core)
{
	Cuda *c = cuda_of(p);

	cpu_ready(c);
	c->cpu->monitor = c->guard.monitor;
	c->cpu->space[0].sums.depth = 0;
	sum_next(c->cpu, &c->cpu->space[0].sums); /* frozen weights have no gradient: zero */
	uint64_t checksum = target_cpu.guard->recompute(c->cpu, b, leaf, attempt, core);
	c->cpu->monitor = NULL;
	return checksum;
}

static void attach(Program *p, Monitor *m)
{
	Cuda *c = cuda_of(p);

	if (m && m->check_sums && c->bf16)
		fail(c->cx, MP_BAD_INPUT, "use --guard light, or fp32",
		     "bf16 on target cuda has no --guard full: no other machine has its bits to compare with");
	c->guard.monitor = m;
	if (c->guard.attached && m) { /* a rollback has changed the host's copy */
		c->host_newer = true;
		c->device_newer = false;
	}
	c->pending_full = false;
	c->guard.attached = m != NULL;
}

const GuardHooks cuda_guard = { .regions = regions, .attach = attach, .checksum = checksum, .recompute = recompute };
