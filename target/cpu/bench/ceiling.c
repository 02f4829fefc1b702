/* SPDX-License-Identifier: MIT */
/* Peak rates of this computer.  In: the number of threads.  Out: multiply-adds or tile products per second on
 * registers, bytes per second copied in memory.
 *
 * All threads start a window together and count their operations until its time is over; rates are summed over threads,
 * and the best window counts. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "system.h"

enum { WINDOWS = 10, MOST_CPUS = CPU_SETSIZE };

typedef struct Job Job;
/* Works for about this long; rerepeats a rate. */
typedef double WindowFn(const Job *j, char *memory, double seconds);

struct Job {
	const Cpus *cpus;
	WindowFn *window;
	CeilingFn *fn; /* what window_arithmetic calls */
	size_t bytes;  /* of memory for each thread */
	/* Windows begin together. Not by a barrier of POSIX threads: macOS has none. */
	pthread_mutex_t lock; /* of what follows; held until all threads are created */
	pthread_cond_t all_wait;
	uint32_t threads, waiting, window_number;
};

typedef struct Worker {
	Job *job;
	uint32_t number;
	double rate[WINDOWS];
	pthread_t thread;
} Worker;

Cpus cpus_here(Ctx *cx)
{
	cpu_set_t set;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	Cpus c = { .count = 0 };

	if (sched_getaffinity(0, sizeof set, &set))
		return (Cpus){ .count = online > 0 ? (uint32_t)online : 1 };
	c.number = NEW(&cx->keep, MOST_CPUS, int);
	for (int i = 0; i < MOST_CPUS; i++)
		if (CPU_ISSET(i, &set))
			c.number[c.count++] = i;
	return c;
}

CeilingFn *ceiling_of(int isa)
{
	static CeilingFn *const fns[ISA_COUNT] = {
		[ISA_GENERIC] = ceiling_generic,
#if defined __x86_64__ && !defined MP_PORTABLE
		[ISA_AVX2] = ceiling_avx2,
		[ISA_AVX512] = ceiling_avx512,
		[ISA_AMX] = ceiling_amx,
#elif defined __aarch64__ && !defined MP_PORTABLE
		[ISA_NEON] = ceiling_neon,
#endif
	};

	return fns[isa];
}

/* ---- work of a thread in a window ---- */

static double window_arithmetic(const Job *j, char *memory, double seconds)
{
	double began = clock_seconds(), now, done = 0;
	uint64_t repeats = 1;

	(void)memory;
	do {
		done += j->fn(repeats);
		now = clock_seconds() - began;
		if (now < seconds / 16) /* read the clock rarely */
			repeats *= 2;
	} while (now < seconds);
	return done / now;
}

static double window_copy(const Job *j, char *memory, double seconds)
{
	double began = clock_seconds();
	size_t half = j->bytes / 2;

	(void)seconds;
	if (!memory)
		return 0;
	memcpy(memory + half, memory, half);
	return (double)j->bytes / (clock_seconds() - began);
}

/* ---- threads ---- */

static void pin(const Cpus *c, uint32_t number)
{
	cpu_set_t set;

	if (!c->number)
		return;
	CPU_ZERO(&set);
	CPU_SET(c->number[number % c->count], &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* Touched first by the thread that uses it. */
static char *memory_take(size_t bytes)
{
	char *memory = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 1, bytes);
	return memory;
}

static void wait_for_all(Job *j)
{
	pthread_mutex_lock(&j->lock);
	uint32_t number = j->window_number;
	if (++j->waiting == j->threads) {
		j->waiting = 0;
		j->window_number++;
		pthread_cond_broadcast(&j->all_wait);
	}
	while (number == j->window_number)
		pthread_cond_wait(&j->all_wait, &j->lock);
	pthread_mutex_unlock(&j->lock);
}

static void *worker_main(void *arg)
{
	Worker *h = arg;
	Job *j = h->job;
	const double seconds = 0.002;

	pin(j->cpus, h->number);
	char *memory = memory_take(j->bytes);
	for (int i = 0; i < WINDOWS; i++) {
		wait_for_all(j);
		h->rate[i] = j->window(j, memory, seconds);
	}
	if (memory)
		munmap(memory, j->bytes);
	return NULL;
}

/* The best window; 0 if no thread can be created. */
static double job_run(Ctx *cx, Job *j, uint32_t threads)
{
	Worker *worker = NEW(&cx->scratch, threads, Worker);
	double best = 0;
	uint32_t created;

	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->all_wait, NULL);
	pthread_mutex_lock(&j->lock);
	for (created = 0; created < threads; created++) {
		worker[created] = (Worker){ .job = j, .number = created };
		if (thread_start(&worker[created].thread, worker_main, &worker[created]))
			break;
	}
	j->threads = created;
	pthread_mutex_unlock(&j->lock);
	for (uint32_t i = 0; i < created; i++)
		pthread_join(worker[i].thread, NULL);
	pthread_cond_destroy(&j->all_wait);
	pthread_mutex_destroy(&j->lock);
	for (int w = 0; w < WINDOWS; w++) {
		double sum = 0;
		for (uint32_t i = 0; i < created; i++)
			sum += worker[i].rate[w];
		best = sum > best ? sum : best;
	}
	return best * 1e-9;
}

double ceiling_gflops(Ctx *cx, const Cpus *c, uint32_t threads, CeilingFn *fn)
{
	Job j = { .cpus = c, .window = window_arithmetic, .fn = fn };

	return job_run(cx, &j, threads);
}

/* More than the caches hold, at most an eighth of the memory. */
double ceiling_copy(Ctx *cx, const Cpus *c, uint32_t threads)
{
	const uint64_t most = memory_total() / 8, wanted = (uint64_t)256 << 20, line = 4096;
	uint64_t bytes = (most < wanted ? most : wanted) / threads / line * line;
	Job j = { .cpus = c, .window = window_copy, .bytes = bytes };

	return job_run(cx, &j, threads);
}
