/* SPDX-License-Identifier: MIT */
/* Messages and sums between ranks, timed; bench/ranks starts it. In: a job (mpirun -n 2 ranks_bench WEIGHTS...).
 * Out, by rank 0: a JSON object with latency, overhead and bandwidth, and for each number of weights the seconds of
 * our exact sum (lib/ranks/reduce.c, through a target that does nothing but add) and of the library's own.
 *
 * Both kinds of sum take turns, and the best counts: what disturbs one disturbs the other. A time is that of the
 * rank that takes longest. Rank 0's clock says when it is enough. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "ranks.h"

enum { SMALL = 8, LARGE = 1 << 22, MANY = 64, PINGS = 100, LEAST_ROUNDS = 9 };
/* Seconds: one measurement is short, so that some fall between what else the computer does; and there are many. */
static const double long_enough = 0.0005, in_all = 1.5;

struct Program {
	float *sum, *total;
};

/* ---- a target that adds ---- */

static void plain_add(Program *p, float *into, const float *from, uint64_t floats)
{
	(void)p;
	for (uint64_t i = 0; i < floats; i++)
		into[i] += from[i];
}

static void plain_use_total(Program *p) { (void)p; }

static const RankHooks hooks = { .add = plain_add, .use_total = plain_use_total };
static const Target plain = { .name = "plain", .ranks = &hooks };

/* ---- timing ---- */

static double longest(const Comm *c, double seconds)
{
	double all[4096], most = 0;

	c->allgather(c->self, &seconds, sizeof seconds, all);
	for (uint32_t i = 0; i < c->size; i++)
		most = all[i] > most ? all[i] : most;
	return most;
}

static bool more(const Comm *c, double began, uint32_t rounds)
{
	uint8_t go = rounds < LEAST_ROUNDS || clock_seconds() - began < in_all;

	c->broadcast(c->self, &go, 1, 0);
	return go;
}

static double smaller(double a, double b) { return a < b ? a : b; }

/* Ranks 0 and 1, to and fro. */
static double ping(const Comm *c, char *bytes, size_t length, int times)
{
	double began = clock_seconds();

	for (int i = 0; i < 2 * times && c->rank < 2; i++) {
		if ((i & 1) == (int)c->rank)
			c->send(c->self, bytes, length, 1 - c->rank);
		else
			c->receive(c->self, bytes, length, 1 - c->rank);
		c->wait(c->self);
	}
	return (clock_seconds() - began) / (2 * times);
}

/* Ranks 0 and 1 exchange `many` messages at once. */
static double swap(const Comm *c, char *bytes, size_t length, int many, int times)
{
	double began = clock_seconds();

	for (int i = 0; i < times && c->rank < 2; i++) {
		for (int k = 0; k < many; k++) {
			c->receive(c->self, bytes + (size_t)(many + k) * length, length, 1 - c->rank);
			c->send(c->self, bytes + (size_t)k * length, length, 1 - c->rank);
		}
		c->wait(c->self);
	}
	return (clock_seconds() - began) / times;
}

static void links_print(const Comm *c, char *bytes)
{
	double latency = 1, many = 1, large = 1;

	double began = clock_seconds();
	for (uint32_t i = 0; more(c, began, i); i++) {
		latency = smaller(latency, longest(c, ping(c, bytes, SMALL, PINGS)));
		many = smaller(many, longest(c, swap(c, bytes, SMALL, MANY, PINGS / 10)));
		large = smaller(large, longest(c, swap(c, bytes, LARGE, 1, 1)));
	}
	if (c->rank == 0)
		printf("\"latency_us\": %.3f, \"overhead_us\": %.3f, \"bandwidth_mbs\": %.1f, ", 1e6 * latency,
		       1e6 * (many > latency ? many - latency : 0) / MANY,
		       1e-6 * LARGE / (large > latency ? large - latency : large));
}

/* ---- sums ---- */

typedef struct Sum {
	Run run;
	Share share;
	Ranks *ranks;
} Sum;

static double sum_seconds(Sum *s, bool library, uint64_t times)
{
	const Comm *c = s->ranks->comm;

	s->ranks->mpi_sum = library;
	longest(c, 0); /* begin together */
	double began = clock_seconds();
	for (uint64_t i = 0; i < times; i++)
		ranks_allreduce(&s->run, &s->share, c->size);
	return longest(c, clock_seconds() - began) / (double)times;
}

static void sum_print(Ctx *cx, const Comm *c, uint64_t weights, bool first)
{
	uint64_t floats = (weights + 15) / 16 * 16, times[2];
	Program p = { NEW(&cx->scratch, floats, float), NEW(&cx->scratch, floats, float) };
	Sum s = { .run = { .target = &plain, .program = &p } };
	double best[2] = { 1e9, 1e9 };

	s.ranks = ranks_new(cx, c);
	s.run.ranks = s.ranks;
	s.share = (Share){ .sum = { p.sum }, .sums = 1, .floats = floats, .total = p.total };
	ranks_reserve(cx, s.ranks, floats, (uint64_t)c->size * LEAF_EXAMPLES);
	for (int k = 0; k < 2; k++) {
		sum_seconds(&s, k, 1); /* pages, connections */
		times[k] = (uint64_t)(long_enough / sum_seconds(&s, k, 1)) + 1;
		c->broadcast(c->self, &times[k], sizeof times[k], 0);
	}
	double began = clock_seconds();
	for (uint32_t i = 0; more(c, began, i); i++)
		for (int k = 0; k < 2; k++)
			best[k] = smaller(best[k], sum_seconds(&s, k, times[k]));
	if (c->rank == 0)
		printf("%s{\"weights\": %llu, \"exact\": %.9f, \"library\": %.9f}", first ? "" : ", ",
		       (unsigned long long)weights, best[0], best[1]);
}

int main(int argc, char **argv)
{
	Ctx cx;
	jmp_buf edge;

	ctx_init(&cx, NULL);
	cx.edge = &edge;
	if (setjmp(edge)) {
		fputs(ctx_messages(&cx), stderr);
		return 1;
	}
	const Comm *c = comm_open(&cx);
	if (!c || c->size > 4096) {
		fputs("start this with mpirun -n 2 or more\n", stderr);
		return 2;
	}
	if (c->rank == 0)
		printf("{\"library\": \"%s\", \"ranks\": %u, ", c->name, c->size);
	links_print(c, arena_alloc(&cx.keep, 2, LARGE));
	if (c->rank == 0)
		printf("\"sums\": [");
	for (int i = 1; i < argc; i++)
		sum_print(&cx, c, strtoull(argv[i], NULL, 10), i == 1);
	if (c->rank == 0)
		printf("]}\n");
	fflush(stdout);
	c->finalize(c->self);
	ctx_free(&cx);
	return 0;
}
