/* SPDX-License-Identifier: MIT */
/* Ranks as threads of one process, for tests: messages between them are copies; a run for each, and what became of
 * it. */
#ifndef HALL_H
#define HALL_H

#include "test_data.h"

#include <pthread.h>

#include "api.h"
#include "guard.h"
#include "ranks.h"

enum { MOST_RANKS = 1000, SOME_RANKS = 12 };

/* ---- messages between threads ---- */

typedef struct Packet Packet;
struct Packet {
	Packet *next;
	size_t bytes;
	uint32_t source;
	char body[];
};
typedef struct Wanted {
	void *to;
	size_t bytes;
	uint32_t source;
} Wanted;

typedef struct Seat { /* of a rank, with what has come for it */
	Comm comm;
	pthread_mutex_t mutex;
	pthread_cond_t came;
	Packet *first, **last;
	Wanted wanted[MOST_RANKS];
	uint32_t wanteds;
} Seat;

static Seat seat[MOST_RANKS];

static inline void hall_send(void *self, const void *from, size_t bytes, uint32_t to)
{
	Packet *m = malloc(sizeof *m + bytes);
	Seat *s = &seat[to];
	*m = (Packet){ .bytes = bytes, .source = ((Seat *)self)->comm.rank };
	memcpy(m->body, from, bytes);
	pthread_mutex_lock(&s->mutex);
	*s->last = m;
	s->last = &m->next;
	pthread_cond_signal(&s->came);
	pthread_mutex_unlock(&s->mutex);
}

static inline void hall_receive(void *self, void *to, size_t bytes, uint32_t from)
{
	Seat *s = self;
	assert_true(s->wanteds < MOST_RANKS);
	s->wanted[s->wanteds++] = (Wanted){ to, bytes, from };
}

/* Messages between two ranks arrive in order. */
static inline Packet *take(Seat *s, uint32_t source)
{
	Packet **m = &s->first;
	while (*m && (*m)->source != source)
		m = &(*m)->next;
	Packet *found = *m;
	if (!found)
		return NULL;
	*m = found->next;
	s->last = found->next ? s->last : m;
	return found;
}

static inline void hall_wait(void *self)
{
	Seat *s = self;
	pthread_mutex_lock(&s->mutex);
	for (uint32_t i = 0; i < s->wanteds; i++) {
		Packet *m;
		while ((m = take(s, s->wanted[i].source)) == NULL)
			pthread_cond_wait(&s->came, &s->mutex);
		assert_int_equal(m->bytes, s->wanted[i].bytes);
		memcpy(s->wanted[i].to, m->body, m->bytes);
		free(m);
	}
	s->wanteds = 0;
	pthread_mutex_unlock(&s->mutex);
}

static uint32_t hall_size;

static inline void hall_broadcast(void *self, void *bytes, size_t count, uint32_t from)
{
	Seat *s = self;
	for (uint32_t i = 0; s->comm.rank == from && i < hall_size; i++)
		if (i != from)
			hall_send(self, bytes, count, i);
	if (s->comm.rank != from)
		hall_receive(self, bytes, count, from);
	hall_wait(self);
}

static inline void hall_allgather(void *self, const void *own, size_t bytes, void *all)
{
	for (uint32_t i = 0; i < hall_size; i++) {
		hall_send(self, own, bytes, i);
		hall_receive(self, (char *)all + i * bytes, bytes, i);
	}
	hall_wait(self);
}

static inline void hall_open(uint32_t size)
{
	hall_size = size;
	for (uint32_t i = 0; i < size; i++) {
		seat[i] = (Seat){ .comm = { .rank = i,
			                        .size = size,
			                        .name = "threads",
			                        .self = &seat[i],
			                        .send = hall_send,
			                        .receive = hall_receive,
			                        .wait = hall_wait,
			                        .allgather = hall_allgather,
			                        .broadcast = hall_broadcast } };
		seat[i].last = &seat[i].first;
		pthread_mutex_init(&seat[i].mutex, NULL);
		pthread_cond_init(&seat[i].came, NULL);
	}
}

/* ---- runs ---- */

typedef struct Rank {
	uint32_t rank;
	const mp_net *net;
	const mp_data *data, *test;
	mp_data *const *own; /* NULL, or data of each rank */
	const char *const *option;
	const char *last_rate; /* NULL, or the rate of the last rank */
	uint64_t restarts;     /* 0, or it trains so many seeds, */
	int more_on_last;      /* and the last rank so many more */
	mp_seed seed[64];      /* their results */
	mp_restarts found_seeds;
	mp_job *job; /* NULL, or ranks are not threads, but those of this */
	mp_run *run;
	mp_status status;
	char fingerprint[33], said[2000];
	mp_report report;
	uint64_t sent, floats;
	void (*begin)(struct Rank *k);
	void *user;       /* NULL, or called before it trains */
	GuardCount found; /* by its guard */
} Rank;

static inline void *rank_run(void *arg)
{
	Rank *k = arg;
	assert_int_equal(mp_run_new(&k->run, k->net, NULL), MP_OK);
	for (const char *const *o = k->option; *o; o += 2)
		assert_int_equal(mp_run_set(k->run, o[0], o[1]), MP_OK);
	if (k->last_rate && k->rank + 1 == hall_size)
		assert_int_equal(mp_run_set(k->run, "rate", k->last_rate), MP_OK);
	if (k->job)
		mp_run_share(k->run, k->job);
	else if (hall_size > 1)
		k->run->job = ranks_new(&k->run->cx, &seat[k->rank].comm);
	if (k->begin)
		k->begin(k);
	const mp_data *data = k->own ? k->own[k->rank] : k->data;
	if (k->restarts) {
		uint64_t count = k->restarts + (k->rank + 1 == hall_size ? (uint64_t)k->more_on_last : 0);
		k->status = mp_run_restarts(k->run, data, k->test, count, NULL, NULL, NULL);
		if (mp_run_get_restarts(k->run))
			k->found_seeds = *mp_run_get_restarts(k->run);
		for (uint64_t i = 0; i < k->found_seeds.done; i++)
			k->seed[i] = *mp_run_get_seed(k->run, i);
	} else {
		k->status = mp_run_train(k->run, data, k->test, NULL, NULL);
	}
	k->report = *mp_run_get_report(k->run);
	snprintf(k->said, sizeof k->said, "%s", mp_run_messages(k->run));
	snprintf(k->fingerprint, sizeof k->fingerprint, "%s", k->report.fingerprint ? k->report.fingerprint : "");
	k->floats = k->run->program && k->run->target->ranks ? k->run->target->ranks->sum_floats(k->run->program) : 0;
	k->sent = k->run->job ? k->run->job->sent : 0;
	if (k->run->guard)
		k->found = *guard_count(k->run->guard);
	if (k->run->job && !k->job)
		ranks_leave(k->run->job, k->status, k->said);
	mp_run_close(k->run);
	return NULL;
}

/* A thread for each rank, on a stack that leaves room for many. */
static inline void ranks_start(uint32_t size, void *(*work)(void *), void *arg, size_t step)
{
	static pthread_t thread[MOST_RANKS];
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 18);
	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(pthread_create(&thread[i], &small, work, (char *)arg + i * step), 0);
	for (uint32_t i = 0; i < size; i++)
		pthread_join(thread[i], NULL);
	pthread_attr_destroy(&small);
	for (uint32_t i = 0; i < size; i++)
		assert_null(seat[i].first); /* what was sent was wanted */
}

static inline void ranks_run(uint32_t size, Rank *rank, Rank like)
{
	hall_open(size);
	for (uint32_t i = 0; i < size; i++) {
		rank[i] = like;
		rank[i].rank = i;
	}
	ranks_start(size, rank_run, rank, sizeof *rank);
}

static inline mp_net *net_new(const char *text)
{
	mp_net *net;
	assert_int_equal(net_parse_1989(&net, text, "net.topo", NULL), MP_OK);
	return net;
}

static inline mp_data *data_new(uint64_t cases, uint32_t inputs, uint32_t targets, const uint64_t *seq,
                                uint64_t sequences)
{
	float *x = malloc(cases * inputs * sizeof *x), *y = malloc(cases * targets * sizeof *y);
	for (uint64_t i = 0; i < cases * inputs; i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i);
	for (uint64_t i = 0; i < cases * targets; i++)
		y[i] = (float)(random_u64(2, STREAM_DATA, i) % 2);
	mp_data *data;
	assert_int_equal(mp_data_new(&data, cases, inputs, targets, x, y, seq, sequences, NULL), MP_OK);
	free(x);
	free(y);
	return data;
}

static inline void compare(const Rank *one, const Rank *rank, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		assert_int_equal(rank[i].status, one->status);
		assert_string_equal(rank[i].fingerprint, one->fingerprint);
		assert_memory_equal(&rank[i].report.total_error, &one->report.total_error, sizeof(double));
		assert_memory_equal(&rank[i].report.test_total_error, &one->report.test_total_error, sizeof(double));
		assert_true(rank[i].report.right == one->report.right && rank[i].report.epoch == one->report.epoch);
	}
}

#endif
