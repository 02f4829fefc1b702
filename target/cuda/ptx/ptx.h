/* SPDX-License-Identifier: MIT */
/* ptx: PTX text read and executed, so that a machine without a GPU runs the very text that a GPU gets.
 *
 *   text --parse.c, instruction.c--> Kernel (Insn[]) --grid.c--> blocks of warps --execute.c, access.c--> memory
 *
 * A warp is 32 lanes that execute one instruction under a mask; lanes that diverged join again at the lowest pc. All
 * blocks of a grid are resident; which warp runs next, and for how long, depends on a seed. What a GPU would not notice
 * is refused with the line of the text: registers and shared words that were never written, accesses out of bounds or
 * misaligned, copies that nothing waited for, barriers that not all reach, a grid that only polls; and, if asked,
 * accesses to the same word that nothing orders (races.c).
 *
 * Memory of the device is memory of the host: addresses are pointers. Errors unwind through the Ctx of the emulator. */
#ifndef PTX_H
#define PTX_H

#include "base.h"

/* ---- emulator.c: a device: memory and modules ------------------------------------------------------- */

typedef struct EmulatorOptions {
	uint64_t seed;   /* order of warps, of copies; 0: in order, each as long as it can */
	bool races;      /* also check that barriers, or acquire and release, order all accesses to a word */
	uint64_t memory; /* bytes of the device; 0: any number */
	uint64_t idle;   /* instructions of warps after which a grid that changed nothing has hung; 0: IDLE_MOST */
} EmulatorOptions;
enum { IDLE_MOST = 1 << 23 };

typedef struct Emulator Emulator;
typedef struct Module Module;
typedef struct Kernel Kernel;

Emulator *emulator_new(Ctx *cx, const EmulatorOptions *o); /* freed with cx->keep */
void emulator_reseed(Emulator *e, uint64_t seed);
void *emulator_alloc(Emulator *e, uint64_t bytes); /* contents undefined: NaNs; NULL: no memory of the device is left */
void emulator_free(Emulator *e, void *at);
bool emulator_holds(const Emulator *e, const void *at, uint64_t bytes); /* for copies by the host */
Module *emulator_load(Emulator *e, const char *text, size_t len); /* fails with the line of what it does not accept */
const Kernel *emulator_kernel(const Module *m, const char *name); /* NULL: there is none of this name */
uint32_t emulator_param_bytes(const Kernel *k);                   /* of all parameters */
void *emulator_symbol(const Module *m, const char *name, uint64_t *bytes); /* a .global array; NULL: none */
void emulator_unload(Module *m);

/* As cuLaunchKernel, in one dimension; returns when the grid has ended. param: pointers to the values. */
typedef struct Launch {
	uint32_t blocks, threads;
	uint32_t cluster; /* blocks; 0 or 1: none */
	uint32_t shared;  /* bytes of dynamic shared memory */
	void *const *param;
} Launch;
void emulator_launch(Emulator *e, const Kernel *k, const Launch *l);
uint64_t emulator_executed(const Emulator *e); /* instructions of warps so far */

#endif
