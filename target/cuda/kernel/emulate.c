/* SPDX-License-Identifier: MIT */
/* Emulation of a device: the text of the kernel, with a fiber for each thread of the grid. In: a job. Out: what the
 * device would have computed. Fibers run one at a time, to the next barrier or poll; a seed determines which is next,
 * so that tests can try other orders. Weak memory order, bank conflicts and registers are not emulated. */
#include <assert.h>
#include <math.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include "isa.h"
#include "units.h"
#include "kernel.inc"

#include "emulate.h"

enum { STACK_BYTES = 65536, MOST_IDLE = 100000 };

/* Where a fiber goes on. On x86 a switch is a few instructions; swapcontext asks the kernel for signal masks, which
 * takes most of the time of a test. */
#ifdef __x86_64__
typedef struct Context {
	void *stack;
} Context;

void emulate_switch(void **from, void *to);
__asm__(".text\n"
        ".type emulate_switch, @function\n"
        ".hidden emulate_switch\n"
        ".globl emulate_switch\n"
        "emulate_switch:\n"
        "	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
        "	movq %rsp, (%rdi)\n"
        "	movq %rsi, %rsp\n"
        "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
        "	ret\n"
        ".size emulate_switch, . - emulate_switch\n");

static void context_switch(Context *from, const Context *to) { emulate_switch(&from->stack, to->stack); }

/* The first switch returns to `main`, with a stack that is aligned as after a call. */
static void context_make(Context *c, uint8_t *stack, size_t bytes, void (*main)(void))
{
	void **top = (void **)(stack + bytes) - 1;

	*top = NULL;
	__builtin_memcpy(--top, &main, sizeof main);
	c->stack = top - 6;
}
#else
typedef struct Context {
	ucontext_t of;
} Context;

static void context_switch(Context *from, const Context *to) { swapcontext(&from->of, &to->of); }

static void context_make(Context *c, uint8_t *stack, size_t bytes, void (*main)(void))
{
	getcontext(&c->of);
	c->of.uc_stack.ss_sp = stack;
	c->of.uc_stack.ss_size = bytes;
	makecontext(&c->of, main, 0);
}
#endif

typedef struct Fiber {
	Context context;
	uint32_t block, thread;
	uint32_t barriers; /* that it has arrived at */
	bool waits, ended;
} Fiber;

typedef struct Emulation {
	Fiber *fiber, *now;
	uint32_t blocks, threads;
	float *shared; /* [blocks][shared_floats] */
	size_t shared_floats;
	uint32_t *arrived; /* [blocks] threads at the barrier, or ended */
	Context scheduler;
	const Job *job;
	uint64_t random;
	uint32_t idle; /* polls since the last barrier */
} Emulation;

static _Thread_local Emulation *running;

uint32_t thread_number(void) { return running->now->thread; }
uint32_t thread_count(void) { return running->threads; }
uint32_t block_number(void) { return running->now->block; }
uint32_t block_count(void) { return running->blocks; }
float *shared_memory(void) { return running->shared + running->now->block * running->shared_floats; }

static void yield(void) { context_switch(&running->now->context, &running->scheduler); }

void block_barrier(void)
{
	running->now->waits = true;
	running->arrived[running->now->block]++;
	running->idle = 0;
	yield();
}

void spin(void)
{
	running->idle++;
	assert(running->idle < MOST_IDLE); /* else no thread will ever arrive */
	yield();
}

static void fiber_main(void)
{
	microprop_train(running->job);
	running->now->ended = true;
	running->idle = 0;
	yield();
}

static uint64_t next_random(Emulation *e)
{
	e->random = e->random * 6364136223846793005u + 1442695040888963407u;
	return e->random >> 33;
}

/* All threads of a block that wait go on when the last has arrived. */
static void release(Emulation *e, uint32_t block)
{
	if (e->arrived[block] < e->threads)
		return;
	e->arrived[block] = 0;
	for (uint32_t i = 0; i < e->threads; i++)
		e->fiber[block * e->threads + i].waits = false;
}

/* Every fiber that can run, once, in an order that begins anywhere and takes any step; number: of all fibers. */
static bool round_robin(Emulation *e, uint32_t number)
{
	assert(number > 0);
	uint32_t begin = (uint32_t)(next_random(e) % number), step = e->random & 1 ? 1 : number - 1;
	bool any = false;

	for (uint32_t i = 0; i < number; i++) {
		Fiber *f = &e->fiber[(begin + (uint64_t)i * step) % number];
		if (f->waits || f->ended)
			continue;
		any = true;
		e->now = f;
		context_switch(&e->scheduler, &f->context);
		release(e, f->block);
	}
	return any;
}

void emulate_grid(Arena *a, const Job *job, uint32_t blocks, uint32_t threads, uint64_t seed)
{
	uint32_t number = blocks * threads;
	Emulation e = { .blocks = blocks, .threads = threads, .job = job, .random = seed };
	uint8_t *stacks = arena_alloc_raw(a, number, STACK_BYTES);
	unsigned before = cpu_enter();

	e.shared_floats = job->shared_floats;
	e.shared = arena_alloc(a, blocks * e.shared_floats + 1, sizeof *e.shared);
	e.fiber = NEW(a, number, Fiber);
	e.arrived = NEW(a, blocks, uint32_t);
	running = &e;
	for (uint32_t i = 0; i < number; i++) {
		Fiber *f = &e.fiber[i];
		f->block = i / threads;
		f->thread = i % threads;
		context_make(&f->context, stacks + (size_t)i * STACK_BYTES, STACK_BYTES, fiber_main);
	}
	while (round_robin(&e, number))
		;
	for (uint32_t i = 0; i < number; i++)
		assert(e.fiber[i].ended); /* else a barrier was not reached by all */
	running = NULL;
	cpu_leave(before);
}
