/* SPDX-License-Identifier: MIT */
/* The device: memory and modules. In: sizes, texts. Out: addresses, kernels. Must hold: allocations are sorted by
 * address, with a gap after each. */
#include <string.h>

#include "emulator.h"

enum {
	POISON = 0xff, /* bytes of floats that are NaNs, of indices that are out of bounds */
	GAP = 256,
	BIG = 1 << 14 /* an arena block of its own, which can be freed alone */
};

static void emulator_close(void *arg)
{
	Emulator *e = arg;

	grid_end(&e->running);
	for (Module *m = e->module; m; m = m->next)
		arena_free(&m->arena);
	arena_free(&e->memory);
}

Emulator *emulator_new(Ctx *cx, const EmulatorOptions *o)
{
	Emulator *e = NEW(&cx->keep, 1, Emulator);

	e->cx = cx;
	e->opt = *o;
	e->memory.cx = e->running.arena.cx = cx;
	arena_defer(&cx->keep, emulator_close, e);
	return e;
}

void emulator_reseed(Emulator *e, uint64_t seed) { e->opt.seed = seed; }
uint64_t emulator_executed(const Emulator *e) { return e->executed; }

/* Binary search: number of allocations that begin at or before the address. */
static uint64_t begin_before(const Emulator *e, uint64_t address)
{
	uint64_t low = 0, high = e->allocations;

	while (low < high) {
		uint64_t mid = (low + high) / 2;
		if ((uintptr_t)e->allocation[mid].at <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

Allocation *allocation_find(const Emulator *e, uint64_t address)
{
	uint64_t n = begin_before(e, address);

	if (!n)
		return NULL;
	Allocation *a = &e->allocation[n - 1];
	return address - (uintptr_t)a->at < a->bytes ? a : NULL;
}

uint8_t *allocation_add(Emulator *e, uint64_t bytes, bool constant)
{
	uint64_t taken;

	if (bytes > UINT64_MAX / 2 || (e->opt.memory && bytes > e->opt.memory - e->used))
		return NULL;
	taken = max_u64(bytes + GAP, BIG);
	uint8_t *at = arena_alloc_raw(&e->memory, taken, 1);
	uint64_t n = begin_before(e, (uintptr_t)at);
	memset(at, POISON, taken);
	e->allocation =
		arena_reserve(&e->cx->keep, e->allocation, e->allocations, &e->allocation_cap, sizeof *e->allocation);
	memmove(e->allocation + n + 1, e->allocation + n, (e->allocations - n) * sizeof *e->allocation);
	e->allocation[n] = (Allocation){ .at = at, .bytes = bytes, .taken = taken, .constant = constant };
	e->allocations++;
	e->used += bytes;
	return at;
}

void *emulator_alloc(Emulator *e, uint64_t bytes) { return allocation_add(e, bytes, false); }

void emulator_free(Emulator *e, void *at)
{
	uint64_t n = begin_before(e, (uintptr_t)at);

	if (!n || e->allocation[n - 1].at != at)
		fail(e->cx, MP_FAILED, NULL, "memory was freed that was not allocated");
	Allocation old = e->allocation[n - 1];
	memmove(e->allocation + n - 1, e->allocation + n, (e->allocations - n) * sizeof *e->allocation);
	e->allocations--;
	e->used -= old.bytes;
	arena_drop(&e->memory, old.at, old.taken, 1);
}

bool emulator_holds(const Emulator *e, const void *at, uint64_t bytes)
{
	const Allocation *a = allocation_find(e, (uintptr_t)at);

	return !bytes || (a && bytes <= a->bytes - (uint64_t)((const uint8_t *)at - a->at));
}

Module *emulator_load(Emulator *e, const char *text, size_t len)
{
	Module *m = NEW(&e->cx->keep, 1, Module);

	if (len > UINT32_MAX / 2)
		fail(e->cx, MP_BAD_INPUT, NULL, "PTX of more than 2 GB");
	m->emulator = e;
	m->arena.cx = e->cx;
	m->next = e->module; /* freed with the emulator, also if parsing fails */
	e->module = m;
	m->src = (Src){ .name = "ptx", .text = arena_copy(&m->arena, text, len), .len = len };
	module_parse(m);
	return m;
}

const Kernel *emulator_kernel(const Module *m, const char *name)
{
	for (const Kernel *k = m->kernel; k; k = k->next)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

uint32_t emulator_param_bytes(const Kernel *k) { return k->param_bytes; }

void emulator_unload(Module *m)
{
	for (const Global *g = m->global; g; g = g->next)
		emulator_free(m->emulator, g->at);
	m->global = NULL;
	m->kernel = NULL;
	arena_free(&m->arena);
}
