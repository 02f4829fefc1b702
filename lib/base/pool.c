/* SPDX-License-Identifier: MIT */
/* A pool of threads.  In: a function and its argument.  Out: it has run once on every thread.
 *
 * Calls come every few dozen microseconds, less than it takes to wake a thread: who waits first looks by itself for
 * a while, lets others run, and only then sleeps. Where a pool has a thread for every core this process may use,
 * each worker is bound to one, so that what it has in its caches stays there (MICROPROP_PIN=0: it is not); smaller
 * pools, of which several may run at once, are left to the system. What must hold: everything written before
 * pool_run or pool_barrier is seen after. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

enum { LOOKS = 300, TURNS = 10 }; /* some 5 microseconds; so often before a thread sleeps */

typedef struct Worker {
	Pool *pool;
	uint32_t number;
	pthread_t thread;
} Worker;

/* A number that some wait for to change. */
typedef struct Bell {
	_Atomic uint32_t value, asleep;
} Bell;

struct Pool {
	uint32_t threads; /* with the caller's */
	Worker *worker;
	PoolFn *fn;
	void *arg;
	Bell round;               /* counts calls */
	Bell working;             /* workers that have not finished this one */
	Bell passed;              /* barrier: how often all were there, */
	_Atomic uint32_t arrived; /* and how many are */
	_Atomic bool stop;
};

static void rest(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#endif
}

/* Until the value is no longer `old`. */
static void bell_wait(Bell *b, uint32_t old)
{
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = 0; i < LOOKS; i++) {
			if (atomic_load_explicit(&b->value, memory_order_acquire) != old)
				return;
			rest();
		}
		sched_yield();
	}
	atomic_fetch_add(&b->asleep, 1);
	while (atomic_load(&b->value) == old)
		syscall(SYS_futex, &b->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
	atomic_fetch_sub(&b->asleep, 1);
}

/* Who sets a value and then finds nobody asleep can be sure that whoever falls asleep later sees it. */
static void bell_add(Bell *b, uint32_t n)
{
	atomic_fetch_add(&b->value, n);
	if (atomic_load(&b->asleep))
		syscall(SYS_futex, &b->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void *worker_main(void *arg)
{
	Worker *w = arg;
	Pool *p = w->pool;

	for (uint32_t round = 0;; round++) {
		bell_wait(&p->round, round);
		if (atomic_load(&p->stop))
			return NULL;
		p->fn(p->arg, w->number);
		bell_add(&p->working, (uint32_t)-1);
	}
}

void pool_run(Pool *p, PoolFn *fn, void *arg)
{
	if (p->threads > 1) {
		p->fn = fn;
		p->arg = arg;
		atomic_store(&p->working.value, p->threads - 1);
		bell_add(&p->round, 1);
	}
	fn(arg, 0);
	for (uint32_t left; (left = atomic_load(&p->working.value)) != 0;)
		bell_wait(&p->working, left);
}

void pool_barrier(Pool *p)
{
	if (p->threads == 1)
		return;
	uint32_t passed = atomic_load(&p->passed.value);
	if (atomic_fetch_add(&p->arrived, 1) + 1 < p->threads) {
		bell_wait(&p->passed, passed);
		return;
	}
	atomic_store(&p->arrived, 0);
	bell_add(&p->passed, 1);
}

static void pool_end(void *pool)
{
	Pool *p = pool;

	atomic_store(&p->stop, true);
	bell_add(&p->round, 1);
	for (uint32_t i = 1; i < p->threads; i++)
		pthread_join(p->worker[i].thread, NULL);
}

/* The cores this process may use; how many. */
static uint32_t cores(cpu_set_t *set) { return sched_getaffinity(0, sizeof *set, set) ? 0 : (uint32_t)CPU_COUNT(set); }

/* Ranks of a job on this host, which share its cores unless their launcher gave each some of its own. */
static uint32_t local_ranks(void)
{
	static const char *const signs[] = { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE" };
	const char *text = NULL;

	for (size_t i = 0; i < COUNT(signs) && !text; i++)
		text = getenv(signs[i]);
	long ranks = text ? strtol(text, NULL, 10) : 1;
	return ranks > 1 ? (uint32_t)ranks : 1;
}

uint32_t pool_cores(void)
{
	cpu_set_t all;
	uint32_t own = cores(&all), ranks = local_ranks();
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (!own)
		own = online > 0 ? (uint32_t)online : 1;
	if (online > 0 && own < (uint32_t)online) /* they are its own */
		return own;
	return own / ranks ? own / ranks : 1;
}

/* Worker i gets the i-th core after `core`, on which the caller's thread was when the first one was made: on the
 * same one they would take turns until the system moves one of them, longer than a short run takes. */
static void pin(const Worker *w, const cpu_set_t *all, int core)
{
	cpu_set_t one;

	for (uint32_t left = w->number; left; left--)
		do
			core = (core + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(core, all));
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	pthread_setaffinity_np(w->thread, sizeof one, &one);
}

Pool *pool_new(Ctx *cx, uint32_t threads)
{
	Pool *p = NEW(&cx->keep, 1, Pool);
	cpu_set_t all;
	int core = sched_getcpu(); /* once: where the caller moves on meanwhile, two workers would get the same */
	const char *wish = getenv("MICROPROP_PIN");
	bool pinned = threads == cores(&all) && local_ranks() == 1 && !(wish && *wish == '0');

	p->worker = NEW(&cx->keep, threads, Worker);
	arena_defer(&cx->keep, pool_end, p);
	for (p->threads = 1; p->threads < threads; p->threads++) {
		Worker *w = &p->worker[p->threads];
		*w = (Worker){ .pool = p, .number = p->threads };
		if (pthread_create(&w->thread, NULL, worker_main, w))
			break;
		if (pinned)
			pin(w, &all, core < 0 ? 0 : core);
	}
	return p;
}

uint32_t pool_threads(const Pool *p) { return p->threads; }
