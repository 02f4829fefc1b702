/* SPDX-License-Identifier: MIT */
/* A pool of threads.  In: a function and its argument.  Out: it has run once on every thread.
 *
 * Calls come every few dozen microseconds, less than it takes to wake a thread: a worker first looks for the next
 * call by itself for a while, and sleeps only then.  Who looks in vain lets others run: there may be fewer cores than
 * threads.  What must hold: everything written before pool_run or pool_barrier is seen after. */
#include <sched.h>

#include "execute.h"

enum { LOOKS = 300, TURNS = 10 };                            /* some 5 microseconds; so often before a worker sleeps */

typedef struct Worker { Pool *pool; uint32_t number; pthread_t thread; } Worker;

struct Pool {
	uint32_t threads;                 /* with the caller's */
	Worker *worker;
	PoolFn *fn;
	void *arg;
	_Atomic uint32_t round;           /* counts calls */
	_Atomic uint32_t working;         /* workers that have not finished this one */
	_Atomic uint32_t arrived, passed; /* barrier: how many are there, how often all were */
	_Atomic bool stop;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint32_t asleep;                  /* under lock */
};

static void rest(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#endif
}

/* Until *what is no longer `old`, or all looks were in vain. */
static bool look(const _Atomic uint32_t *what, uint32_t old)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		if (atomic_load_explicit(what, memory_order_acquire) != old)
			return true;
		rest();
	}
	sched_yield();
	return false;
}

static void wait_round(Pool *p, uint32_t old)
{
	for (uint32_t turn = 0; turn < TURNS; turn++)
		if (look(&p->round, old))
			return;
	pthread_mutex_lock(&p->lock);
	p->asleep++;
	while (atomic_load(&p->round) == old)
		pthread_cond_wait(&p->wake, &p->lock);
	p->asleep--;
	pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
	Worker *w = arg;
	Pool *p = w->pool;
	for (uint32_t round = 0;; round++) {
		wait_round(p, round);
		if (atomic_load(&p->stop))
			return NULL;
		p->fn(p->arg, w->number);
		atomic_fetch_sub(&p->working, 1);
	}
}

/* The lock is taken so that no worker can be between looking at the round and sleeping. */
static void next_round(Pool *p)
{
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->round, 1);
	if (p->asleep)
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void pool_run(Pool *p, PoolFn *fn, void *arg)
{
	if (p->threads > 1) {
		p->fn = fn;
		p->arg = arg;
		atomic_store(&p->working, p->threads - 1);
		next_round(p);
	}
	fn(arg, 0);
	for (uint32_t left; (left = atomic_load(&p->working)) != 0;)
		look(&p->working, left);
}

void pool_barrier(Pool *p)
{
	if (p->threads == 1)
		return;
	uint32_t passed = atomic_load(&p->passed);
	if (atomic_fetch_add(&p->arrived, 1) + 1 == p->threads) {
		atomic_store(&p->arrived, 0);
		atomic_fetch_add(&p->passed, 1);
		return;
	}
	while (!look(&p->passed, passed))
		;
}

static void pool_end(void *pool)
{
	Pool *p = pool;
	atomic_store(&p->stop, true);
	next_round(p);
	for (uint32_t i = 1; i < p->threads; i++)
		pthread_join(p->worker[i].thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

Pool *pool_new(Ctx *cx, uint32_t threads)
{
	Pool *p = NEW(&cx->keep, 1, Pool);
	p->worker = NEW(&cx->keep, threads, Worker);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	arena_defer(&cx->keep, pool_end, p);
	for (p->threads = 1; p->threads < threads; p->threads++) {
		Worker *w = &p->worker[p->threads];
		*w = (Worker){ .pool = p, .number = p->threads };
		if (pthread_create(&w->thread, NULL, worker_main, w))
			break;
	}
	return p;
}

uint32_t pool_threads(const Pool *p)
{
	return p->threads;
}
