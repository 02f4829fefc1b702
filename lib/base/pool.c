/* SPDX-License-Identifier: MIT */
/* A thread pool.  In: a function and its argument.  Out: it has run once on every thread.
 *
 * Calls come every few dozen microseconds, less than it takes to wake a thread: a waiting thread first spins, then
 * yields, and only then sleeps on a futex (or, where there is none, for 50 microseconds at a time).  If the pool has a
 * thread for every core of the process, workers are pinned, one to a core, to keep their caches (MICROPROP_PIN=0: not);
 * smaller pools, of which several may run at once, are scheduled by the system.
 * Must hold: everything written before pool_run or pool_barrier is visible after it. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"
#include "system.h"

#if defined __linux__ && defined _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#else
#include <time.h>
#endif

enum { SPINS = 300, YIELDS = 10 }; /* spins take about 5 microseconds; yields before sleeping */

typedef struct Worker {
	Pool *pool;
	uint32_t number;
	pthread_t thread;
} Worker;

/* A counter that threads wait on. */
typedef struct Event {
	_Atomic uint32_t value, asleep;
} Event;

struct Pool {
	uint32_t threads; /* with the caller's */
	Worker *worker;
	PoolFn *fn;
	void *arg;
	Event round;              /* number of calls */
	Event working;            /* workers that have not finished this call */
	Event passed;             /* barrier: how often it opened, */
	_Atomic uint32_t arrived; /* and how many wait at it */
	_Atomic bool stop;
};

static void cpu_relax(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("isb"); /* yield does nothing on most cores */
#endif
}

/* While the value is `old`, or a little less: callers look again. */
static void event_sleep(Event *e, uint32_t old)
{
#if defined SYS_futex
	syscall(SYS_futex, &e->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
#else
	(void)e, (void)old;
	nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
#endif
}

static void event_wake(Event *e)
{
#if defined SYS_futex
	syscall(SYS_futex, &e->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
#else
	(void)e;
#endif
}

/* Until the value differs from `old`. */
static void event_wait(Event *e, uint32_t old)
{
	for (uint32_t k = 0; k < YIELDS; k++) {
		for (uint32_t i = 0; i < SPINS; i++) {
			if (atomic_load_explicit(&e->value, memory_order_acquire) != old)
				return;
			cpu_relax();
		}
		sched_yield();
	}
	atomic_fetch_add(&e->asleep, 1);
	while (atomic_load(&e->value) == old)
		event_sleep(e, old);
	atomic_fetch_sub(&e->asleep, 1);
}

/* Sequentially consistent: a thread not yet counted in `asleep` sees the new value before it sleeps. */
static void event_add(Event *e, uint32_t n)
{
	atomic_fetch_add(&e->value, n);
	if (atomic_load(&e->asleep))
		event_wake(e);
}

static void *worker_main(void *arg)
{
	Worker *w = arg;
	Pool *p = w->pool;

	for (uint32_t round = 0;; round++) {
		event_wait(&p->round, round);
		if (atomic_load(&p->stop))
			return NULL;
		p->fn(p->arg, w->number);
		event_add(&p->working, (uint32_t)-1);
	}
}

void pool_run(Pool *p, PoolFn *fn, void *arg)
{
	if (p->threads > 1) {
		assert(atomic_load(&p->working.value) == 0);
		p->fn = fn;
		p->arg = arg;
		atomic_store(&p->working.value, p->threads - 1);
		event_add(&p->round, 1);
	}
	fn(arg, 0);
	for (uint32_t left; (left = atomic_load(&p->working.value)) != 0;)
		event_wait(&p->working, left);
}

void pool_barrier(Pool *p)
{
	if (p->threads == 1)
		return;
	uint32_t passed = atomic_load(&p->passed.value);
	if (atomic_fetch_add(&p->arrived, 1) + 1 < p->threads) {
		event_wait(&p->passed, passed);
		return;
	}
	atomic_store(&p->arrived, 0);
	event_add(&p->passed, 1);
}

static void pool_end(void *pool)
{
	Pool *p = pool;

	atomic_store(&p->stop, true);
	event_add(&p->round, 1);
	for (uint32_t i = 1; i < p->threads; i++)
		pthread_join(p->worker[i].thread, NULL);
}

/* The cores this process may use, and their number. */
static uint32_t cores(cpu_set_t *set) { return sched_getaffinity(0, sizeof *set, set) ? 0 : (uint32_t)CPU_COUNT(set); }

uint32_t pool_cores(void)
{
	cpu_set_t all;
	uint32_t own = cores(&all), ranks = launcher_local_ranks(); /* that share the cores, unless each is bound */
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (!own)
		own = online > 0 ? (uint32_t)online : 1;
	if (online > 0 && own < (uint32_t)online) /* bound by the launcher */
		return own;
	return own / ranks ? own / ranks : 1;
}

/* Worker i gets the i-th core after `core`, the caller's: two threads on one core would alternate until the system
 * moves one of them, longer than a short run takes. */
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

/* The stack is as large as kernels need, whatever the limit of the process (ulimit -s) is. */
int thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg)
{
	enum { STACK = 1 << 20 };
	pthread_attr_t own;
	int failed = pthread_attr_init(&own);

	if (failed)
		return failed;
	pthread_attr_setstacksize(&own, STACK);
	failed = pthread_create(thread, &own, body, arg);
	pthread_attr_destroy(&own);
	return failed;
}

Pool *pool_new(Ctx *cx, uint32_t threads)
{
	Pool *p = NEW(&cx->keep, 1, Pool);
	cpu_set_t all;
	int core = sched_getcpu(); /* once: the caller may migrate, and two workers would get one core */
	const char *pin_option = getenv("MICROPROP_PIN");
	bool pinned = threads == cores(&all) && launcher_local_ranks() == 1 && !(pin_option && *pin_option == '0');

	p->worker = NEW(&cx->keep, threads, Worker);
	arena_defer(&cx->keep, pool_end, p);
	for (p->threads = 1; p->threads < threads; p->threads++) {
		Worker *w = &p->worker[p->threads];
		*w = (Worker){ .pool = p, .number = p->threads };
		if (thread_start(&w->thread, worker_main, w))
			break;
		if (pinned)
			pin(w, &all, core < 0 ? 0 : core);
	}
	return p;
}

uint32_t pool_threads(const Pool *p) { return p->threads; }
