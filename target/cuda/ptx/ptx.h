/* SPDX-License-Identifier: MIT */
/* ptx: an instruction-set simulator for PTX, so that a machine without a GPU runs the very text that a GPU gets.
 *
 *   text --parse.c, operand.c, instruction.c--> Insn[] --registers.c--> Kernel
 *   launch --grid.c--> blocks, warps, barriers --execute.c--> ALU, control; access.c, bulk.c, mbarrier.c--> memory
 *
 * A warp is 32 lanes that execute one instruction under an active mask. Divergent groups of lanes run one at a time,
 * the one with the lowest pc first, and reconverge when their pcs are equal. All blocks of a grid are resident. A
 * seed decides which warp runs next, and for how long. What a GPU would not notice is an error at the line of the
 * text: reads of registers and shared memory that were never written, accesses out of bounds or misaligned,
 * asynchronous copies that nothing waited for, barriers that not all threads reach, a grid that only polls; and, if
 * asked, data races (races.c).
 *
 * Device memory is host memory: addresses are pointers. Errors unwind through the Ctx of the emulator. */
#ifndef PTX_H
#define PTX_H

#include "base.h"

/* ---- emulator.c: a device: memory and modules ------------------------------------------------------- */

typedef struct EmulatorOptions {
	uint64_t seed;   /* schedule of warps and copies; 0: warps in order, each runs until it waits */
	bool races;      /* find accesses to the same word that no synchronization orders */
	bool ahead;      /* lanes that leave a loop that polls may run ahead of those that still poll */
	uint64_t memory; /* bytes of the device; 0: unlimited */
	uint64_t idle;   /* warp instructions without a change of memory after which the grid has hung; 0: IDLE_MOST */
} EmulatorOptions;
enum { IDLE_MOST = 1 << 23 };

typedef struct Emulator Emulator;
typedef struct Module Module;
typedef struct Kernel Kernel;

Emulator *emulator_new(Ctx *cx, const EmulatorOptions *o); /* freed with cx->keep */
void emulator_reseed(Emulator *e, uint64_t seed);
void *emulator_alloc(Emulator *e, uint64_t bytes); /* poisoned with NaNs; NULL: no memory is left */
void emulator_free(Emulator *e, void *at);
bool emulator_holds(const Emulator *e, const void *at, uint64_t bytes); /* for copies by the host */
Module *emulator_load(Emulator *e, const char *text, size_t len);       /* errors have the line of the text */
const Kernel *emulator_kernel(const Module *m, const char *name);       /* NULL: there is none of this name */
uint32_t emulator_param_bytes(const Kernel *k);                         /* of all parameters */
void emulator_unload(Module *m);

/* Like cuLaunchKernel, in one dimension; returns when the grid has ended. param: pointers to the values. */
typedef struct Launch {
	uint32_t blocks, threads;
	uint32_t cluster; /* blocks; 0 or 1: none */
	uint32_t shared;  /* bytes of dynamic shared memory */
	void *const *param;
} Launch;
void emulator_launch(Emulator *e, const Kernel *k, const Launch *l);
uint64_t emulator_executed(const Emulator *e); /* instructions of warps so far */

#endif
