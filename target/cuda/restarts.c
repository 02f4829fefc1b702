/* SPDX-License-Identifier: MIT */
/* Restarts: many seeds of one network. In: a program with data bound, seeds. Out: the result that a run with each seed
 * would have. A tiny network has a thread per seed (lane_restarts.c), others a block per seed (block_restarts.c). What
 * neither covers, target cpu trains. */
#include "cuda.h"
#include "pass.h"

extern const Target target_cpu;

uint32_t host_threads(const Cuda *c) { return c->cpu->pool ? pool_threads(c->cpu->pool) : 1; }

void host_run(const Cuda *c, PoolFn *fn, void *arg)
{
	if (c->cpu->pool)
		pool_run(c->cpu->pool, fn, arg);
	else
		fn(arg, 0);
}

static bool cuda_run_restarts(Ctx *cx, Program *p, Restarts *all)
{
	Cuda *c = cuda_of(p);

	if (c->bf16) {
		if (!blocks_run(c, all))
			fail(cx, MP_BAD_INPUT, "leave --precision out, or use --target cpu",
			     "target cuda has no bf16 kernel for restarts of this network and batch");
		return true;
	}
	if (lanes_run(c, all) || blocks_run(c, all))
		return true;
	if (target_cpu.restarts->run(cx, c->cpu, all)) {
		all->note =
			"target cpu trained these seeds, with the same results: the GPU has no kernel for many of this network";
		return true;
	}
	all->note = "no kernel trains many seeds of this network at once: the GPU trains one after the other";
	return false;
}

const RestartHooks cuda_restarts = { .run = cuda_run_restarts };
