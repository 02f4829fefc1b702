/* SPDX-License-Identifier: MIT */
/* Guarded training by several ranks, which are threads: bits flip on one of them, and all go back together. Every
 * rank ends with the bits of a single process that was left alone, or all end with the same message.
 *
 * GUARD_RANK_FLIPS says how many flips. In a job of an MPI (GUARD_MPI=1) ranks are its processes, and this is all
 * that is done. */
#include "hall.h"

static const char network[] =
	"group in 12 input\ngroup mid 40 tanh\ngroup out 3 output\nconnect in -> mid\nconnect mid -> out\n"
	"connect true -> mid, out\ntrain rate 0.001 until never epochs 4 batch 1100\n";
enum { CASES = 2600, INPUTS = 12, TARGETS = 3, SOME = 60 };
static const char *const full[] = { "threads", "1", "guard", "full", NULL };
static const char *const best[] = { "threads", "1", "guard", "full", "keep-best", "1", "rule", "adam", NULL };
static const char *const light[] = { "threads", "1", "guard", "light", NULL };

static void flip_in(void *bytes, uint64_t size, uint64_t random)
{
	uint64_t bit = random % (8 * size);
	((uint8_t *)bytes)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* ---- what is done to a rank ---- */

enum { IN_STATE, IN_SUMS, IN_INPUTS, IN_POSITION, IN_COPIES, PLACES };

typedef struct Harm {
	uint32_t rank; /* to this one; UINT32_MAX: to all */
	int place;
	uint64_t at, seen[SOME_RANKS]; /* moments of its kind that pass before it; so far */
	uint64_t random;
	bool always;
	bool done;
} Harm;

static void harm_state(const mp_run *run, uint64_t random)
{
	Region r[MOST_REGIONS];
	const Region *chosen = &r[random % run->target->guard->regions(run->program, r)];
	if (chosen->bytes)
		flip_in(chosen->at, chosen->bytes, random / MOST_REGIONS);
}

static void harm_now(const Harm *h, Rank *k, void *sum, uint64_t bytes)
{
	Region r[MOST_REGIONS];
	switch (h->place) {
	case IN_STATE: harm_state(k->run, h->random); break;
	case IN_SUMS: flip_in(sum, bytes, h->random); break;
	case IN_INPUTS: flip_in((void *)k->own[k->rank]->data->x, CASES * INPUTS * sizeof(float), h->random); break;
	case IN_POSITION: flip_in(&k->run->at, sizeof k->run->at, h->random); break;
	case IN_COPIES: /* all of them, and weights too: another rank's are needed */
		for (uint32_t i = guard_snapshots(k->run->guard, r); i-- > 0;)
			flip_in(r[i].at, r[i].bytes, h->random);
		harm_state(k->run, MOST_REGIONS * h->random);
		break;
	}
}

static void harm_moment(void *user, int moment, void *sum, uint64_t bytes)
{
	Rank *k = user;
	Harm *h = k->user;
	bool here = h->place == IN_SUMS       ? moment == HOOK_LEAF_STORED
	            : h->place == IN_POSITION ? moment == HOOK_BATCH
	                                      : moment != HOOK_LEAF_SUM;
	if (!here || (h->rank != UINT32_MAX && h->rank != k->rank))
		return;
	if (h->seen[k->rank]++ == h->at || (h->always && moment == HOOK_SUMMED)) {
		harm_now(h, k, sum, bytes);
		h->done = true;
	}
}

static void harm_begin(Rank *k)
{
	k->run->test_hook = harm_moment;
	k->run->test_hook_user = k;
}

/* ---- runs ---- */

/* One process and data for each rank: what flips in one's memory does not flip in another's. */
typedef struct Scene {
	mp_net *net;
	mp_data *own[SOME_RANKS];
	Rank one;
	Rank like;
} Scene;

static void scene_open(Scene *s, const char *const *option)
{
	s->net = net_new(network);
	for (int i = 0; i < SOME_RANKS; i++)
		s->own[i] = data_new(CASES, INPUTS, TARGETS, NULL, 0);
	s->like =
		(Rank){ .net = s->net, .data = s->own[0], .own = s->own, .test = s->own[SOME_RANKS - 1], .option = option };
	ranks_run(1, &s->one, s->like);
	assert_int_equal(s->one.status, MP_OK);
	s->like.begin = harm_begin;
}

static void scene_close(Scene *s)
{
	for (int i = 0; i < SOME_RANKS; i++)
		mp_data_close(s->own[i]);
	mp_net_close(s->net);
}

static uint64_t faults(const GuardCount *c)
{
	return c->state + c->sums + c->data + c->leaves + c->outliers + c->position + c->snapshots;
}

static void ranks_go_back_together(void **state)
{
	(void)state;
	static const uint32_t sizes[] = { 2, 3, 4 };
	static const char *const *const options[] = { full, best };
	const char *text = getenv("GUARD_RANK_FLIPS");
	uint64_t flips = text ? strtoull(text, NULL, 10) : SOME;
	for (size_t o = 0; o < COUNT(options); o++) {
		Scene s;
		scene_open(&s, options[o]);
		for (uint64_t n = 0; n < flips / COUNT(options); n++) {
			uint32_t size = sizes[n % COUNT(sizes)];
			Rank rank[SOME_RANKS];
			Harm h = { .rank = (uint32_t)random_below(1, STREAM_SPLIT, n, size),
				       .place = (int)(n / COUNT(sizes) % PLACES),
				       .random = random_u64(2, STREAM_SPLIT, n) >> 8 };
			h.at = random_below(3, STREAM_SPLIT, n, h.place == IN_SUMS ? 6 : h.place == IN_POSITION ? 8 : 30);
			s.like.user = &h;
			ranks_run(size, rank, s.like);
			if (!h.done)
				continue;
			for (uint32_t i = 0; i < size; i++)
				if (rank[i].status != MP_OK || strcmp(rank[i].fingerprint, s.one.fingerprint) != 0)
					print_error("flip %llu: rank %u of %u, place %d of rank %u at %llu: %s\n", (unsigned long long)n, i,
					            size, h.place, h.rank, (unsigned long long)h.at, rank[i].said);
			compare(&s.one, rank, size);
			for (uint32_t i = 0; i < size; i++)
				assert_int_equal(faults(&rank[i].found) > 0, i == h.rank);
			char name[20];
			snprintf(name, sizeof name, ": rank %u: ", h.rank);
			assert_non_null(strstr(rank[0].said, name));
		}
		scene_close(&s);
	}
}

static void nothing_is_found_where_nothing_is(void **state)
{
	(void)state;
	static const char *const *const options[] = { full, best, light };
	for (size_t o = 0; o < COUNT(options); o++) {
		Scene s;
		Harm none = { .rank = SOME_RANKS };
		scene_open(&s, options[o]);
		s.like.user = &none;
		for (uint32_t size = 2; size < 6; size++) {
			Rank rank[SOME_RANKS];
			ranks_run(size, rank, s.like);
			compare(&s.one, rank, size);
			for (uint32_t i = 0; i < size; i++)
				assert_int_equal(faults(&rank[i].found), 0);
		}
		scene_close(&s);
	}
}

/* A core that computes wrongly: the first leaf of a rank is always looked at. */
static void wrong_leaf(void *user, int moment, void *sum, uint64_t bytes)
{
	bool *done = user;
	if (moment == HOOK_LEAF_SUM && !*done) {
		*done = true;
		flip_in(sum, bytes, 8 * 77 + 3);
	}
}

static void wrong_begin(Rank *k)
{
	if (k->rank != 1)
		return;
	k->run->test_hook = wrong_leaf;
	k->run->test_hook_user = k->user;
}

static void rank_and_core_are_named(void **state)
{
	(void)state;
	bool done = false;
	Rank rank[SOME_RANKS];
	Scene s;
	scene_open(&s, full);
	s.like.begin = wrong_begin;
	s.like.user = &done;
	ranks_run(3, rank, s.like);
	compare(&s.one, rank, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(rank[i].found.leaves, i == 1);
		assert_non_null(strstr(rank[i].said, "update 0: rank 1: core "));
		assert_non_null(strstr(rank[i].said, " computed leaf 1 of the batch wrongly"));
	}
	scene_close(&s);
}

/* ---- messages that change on their way ---- */

static int waits;

/* The fourth sum that comes has a bit changed. */
static void changing_wait(void *self)
{
	Seat *s = self;
	void *to = NULL;
	for (uint32_t i = 0; i < s->wanteds; i++)
		if (s->wanted[i].bytes != sizeof(Message))
			to = s->wanted[i].to;
	hall_wait(self);
	if (to && ++waits == 4)
		flip_in(to, sizeof(float), 20);
}

static void change_messages(Rank *k)
{
	if (k->rank == 1)
		seat[k->rank].comm.wait = changing_wait;
}

static void ranks_that_differ_go_back(void **state)
{
	(void)state;
	for (uint32_t size = 2; size < 4; size++) {
		Rank rank[SOME_RANKS];
		Scene s;
		scene_open(&s, full);
		s.like.begin = change_messages;
		waits = 0;
		ranks_run(size, rank, s.like);
		compare(&s.one, rank, size);
		assert_non_null(
			strstr(rank[0].said, size == 2 ? "the ranks' weights differ" : "rank 1 has other weights than most"));
		scene_close(&s);
	}
}

/* ---- what cannot be undone ---- */

static void all_end_with_one_message(void **state)
{
	(void)state;
	static const struct {
		Harm harm;
		const char *said;
	} ends[] = {
		{ { .rank = 1, .place = IN_STATE, .at = UINT64_MAX, .always = true, .random = MOST_REGIONS * 99 },
		  "fails again and again: rank 1: bit 3 of number 3 of the weights changed by itself" },
		{ { .rank = UINT32_MAX, .place = IN_COPIES, .at = 9, .random = 77 },
		  "every snapshot of the weights in memory is corrupted too" },
	};
	for (size_t i = 0; i < COUNT(ends); i++) {
		Rank rank[SOME_RANKS];
		Harm h = ends[i].harm;
		Scene s;
		scene_open(&s, full);
		s.like.user = &h;
		ranks_run(3, rank, s.like);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(rank[k].status, MP_FAILED);
			if (!strstr(rank[k].said, ends[i].said))
				print_error("rank %d: %s", k, rank[k].said);
			assert_non_null(strstr(rank[k].said, ends[i].said));
		}
		scene_close(&s);
	}
}

/* ---- processes ---- */

/* The same Harm in all of them: it has its rank. */
static int by_mpi(void)
{
	mp_job *job;
	Scene s;
	uint64_t wrong = 0;
	assert_int_equal(mp_job_join(&job, NULL), MP_OK);
	scene_open(&s, best);
	s.like.job = job;
	for (uint64_t n = 0; n < 4 * PLACES; n++) {
		Harm h = { .rank = (uint32_t)(n % mp_job_size(job)),
			       .place = (int)(n % PLACES),
			       .random = random_u64(4, STREAM_SPLIT, n) >> 8,
			       .at = n % 6 };
		Rank k = s.like;
		k.rank = mp_job_rank(job);
		k.user = &h;
		rank_run(&k);
		bool right = k.status == MP_OK && strcmp(k.fingerprint, s.one.fingerprint) == 0;
		bool found = (faults(&k.found) > 0) == (h.rank == k.rank);
		if (!right || !found)
			fprintf(stderr, "rank %u, flip %llu in place %d of rank %u: %s, %s\n", k.rank, (unsigned long long)n,
			        h.place, h.rank, found ? "found" : "not found", k.said);
		wrong += !right || !found;
	}
	scene_close(&s);
	uint32_t rank = mp_job_rank(job), size = mp_job_size(job);
	int status = mp_job_leave(job, wrong ? MP_FAILED : MP_OK, "");
	if (!status && rank == 0)
		printf("all flips were undone by %u ranks\n", size);
	mp_job_close(job);
	return status;
}

int main(void)
{
	if (getenv("GUARD_MPI"))
		return by_mpi();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_where_nothing_is), cmocka_unit_test(ranks_go_back_together),
		cmocka_unit_test(rank_and_core_are_named),           cmocka_unit_test(ranks_that_differ_go_back),
		cmocka_unit_test(all_end_with_one_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
