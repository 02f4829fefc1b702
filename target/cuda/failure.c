/* SPDX-License-Identifier: MIT */
/* Failures of a device, one sentence each; faults of the emulated device, for tests. In: calls. Out: a failure. Must
 * hold: weights that were saved before are not touched.
 *
 * MICROPROP_CUDA_FAULT: driver, old, none (no driver, one too old, no GPU); memory:N (the N-th allocation fails);
 * copy:N, job:N (the device is lost at the N-th copy or job). */
#include "cuda.h"

_Noreturn void gpu_refuse(const Gpu *m, const char *why)
{
	fail(m->cx, MP_BAD_INPUT, "use --target cpu, which in fp32 gives the same weights", "target cuda: %s", why);
}

_Noreturn void gpu_no_memory(const Gpu *m, uint64_t bytes)
{
	fail(m->cx, MP_BAD_INPUT, "use --target cpu, or less data at a time", "%s has no memory for %llu bytes more",
	     m->name, (unsigned long long)bytes);
}

_Noreturn void gpu_failed(const Gpu *m, const char *what, const char *text)
{
	fail(m->cx, MP_FAILED, "go on from the last checkpoint, if there is one, with --resume; --target cpu needs no GPU",
	     "%s failed (%s: %s)", m->name, what, text);
}

const char *const gpu_no_driver = "there is no NVIDIA driver (libcuda.so.1) here",
				  *const gpu_old_driver = "the NVIDIA driver is too old: it must support CUDA 11 or later",
				  *const gpu_none = "there is no NVIDIA GPU here";

/* By option device, else MICROPROP_CUDA_DEVICE, else by rank among the processes of this host. */
int gpu_number(const Gpu *m, int count)
{
	int64_t number = m->device;
	LaunchedJob job;

	if (number == INT_AUTO)
		number = (int64_t)environment_number(m->cx, "MICROPROP_CUDA_DEVICE", (uint64_t)INT_AUTO);
	if (number == INT_AUTO)
		number = launcher_job(&job) ? job.rank % max_u32(job.local, 1) % (uint32_t)count : 0;
	if (number < 0 || number >= count)
		gpu_refuse(m, "--device, or MICROPROP_CUDA_DEVICE, is not the number of a GPU here");
	return (int)number;
}

/* ---- emulated faults ---- */

void fault_open(const Gpu *m)
{
	uint64_t unused;

	if (environment_fault(m->cx, "driver", &unused))
		gpu_refuse(m, gpu_no_driver);
	if (environment_fault(m->cx, "old", &unused))
		gpu_refuse(m, gpu_old_driver);
	if (environment_fault(m->cx, "none", &unused))
		gpu_refuse(m, gpu_none);
}

void fault_alloc(Gpu *m, uint64_t bytes)
{
	uint64_t n;

	if (environment_fault(m->cx, "memory", &n) && ++m->allocations == n)
		gpu_no_memory(m, bytes);
}

void fault_call(Gpu *m, const char *word, const char *what)
{
	uint64_t n;

	if (environment_fault(m->cx, word, &n) && ++m->calls == n)
		m->lost = true;
	if (m->lost)
		gpu_failed(m, what, "the device is lost");
}
