/* SPDX-License-Identifier: MIT */
/* Ranks that share the leaves of every batch, as threads of one process: messages are copies. Any number of ranks
 * has the bits and the figures of one, by each way of summing; ranks that differ, or end early, are found out.
 *
 * RANK_EPOCHS says for how many epochs seeds are trained. */
#include "formats.h"
#include "hall.h"

#include "model.h"

static const char small[] = "group a 5 input\ngroup h 7\ngroup o 3 output\nconnect a -> h\nconnect h -> o\nconnect a "
							"-> o\nconnect true -> h, o\n";
static const char large[] =
	"group a 40 input\ngroup h 90\ngroup o 30 output\nconnect a -> h\nconnect h -> o\nconnect true -> h, o\n";
static const char memory[] =
	"group a 3 input\ngroup h 6\ngroup c 6 context\ngroup o 2 output\nconnect a -> h\nconnect c -> h\n"
	"connect h -> o\nconnect true -> h, o\ncopy h -> c\n";

static void all_ranks(const char *text, const mp_data *data, const mp_data *test, const char *const *option)
{
	static const uint32_t sizes[] = { 2, 3, 4, 5, 7, 8, 12 };
	mp_net *net = net_new(text);
	Rank one, rank[SOME_RANKS];
	Rank like = { .net = net, .data = data, .test = test, .option = option };
	ranks_run(1, &one, like);
	assert_int_equal(one.status, MP_OK);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		ranks_run(sizes[i], rank, like);
		compare(&one, rank, sizes[i]);
	}
	mp_net_close(net);
}

static void any_number_has_the_bits_of_one(void **state)
{
	(void)state;
	static const char *const pooled[] = { "epochs", "3", "until", "never", "rate", "0.001", "threads", "1", NULL };
	static const char *const team[] = { "epochs", "2", "until", "never", "rate", "0.001", "threads", "3", NULL };
	static const char *const parts[] = { "epochs", "2",    "until",   "never", "rate", "0.001",
		                                 "batch",  "1500", "threads", "1",     NULL };
	mp_data *few = data_new(700, 5, 3, NULL, 0), *many = data_new(5000, 5, 3, NULL, 0),
			*eight = data_new(4096, 40, 30, NULL, 0);
	mp_data *wide = data_new(2100, 40, 30, NULL, 0);
	all_ranks(small, few, NULL, pooled); /* two leaves, together */
	all_ranks(small, many, few, team);
	all_ranks(small, many, few, parts);    /* the last batch is a single leaf */
	all_ranks(large, eight, NULL, pooled); /* halving */
	all_ranks(large, wide, wide, team);    /* parts */
	mp_data_close(few);
	mp_data_close(many);
	mp_data_close(eight);
	mp_data_close(wide);
}

/* The limit is of time spent in training, not of a clock. */
static void a_limit_of_time_is_not_reached(void **state)
{
	static const char *const long_time[] = { "epochs", "3",       "until",   "never", "rate", "0.001",
		                                     "time",   "1000000", "threads", "1",     NULL };
	(void)state;
	mp_net *net = net_new(small);
	mp_data *data = data_new(1100, 5, 3, NULL, 0);
	Rank rank[SOME_RANKS];
	ranks_run(2, rank, (Rank){ .net = net, .data = data, .option = long_time });
	assert_int_equal(rank[0].report.epoch, 3);
	mp_data_close(data);
	mp_net_close(net);
}

static void sequences_too(void **state)
{
	(void)state;
	static const char *const pooled[] = { "epochs", "2", "until", "never", "rate", "0.001", "threads", "1", NULL };
	uint64_t seq[1101] = { 0 };
	for (uint64_t i = 0; i < 1100; i++)
		seq[i + 1] = seq[i] + 1 + i % 4;
	mp_data *data = data_new(seq[1100], 3, 2, seq, 1100);
	all_ranks(memory, data, NULL, pooled);
	mp_data_close(data);
}

/* More ranks than leaves, and than anyone has cores. */
static void a_thousand_have_the_bits_of_one(void **state)
{
	(void)state;
	static const char *const option[] = { "epochs", "2", "until", "never", "rate", "0.001", "threads", "1", NULL };
	static Rank rank[MOST_RANKS];
	mp_net *net = net_new(small);
	mp_data *data = data_new(5000, 5, 3, NULL, 0);
	Rank one, like = { .net = net, .data = data, .option = option };
	ranks_run(1, &one, like);
	ranks_run(MOST_RANKS, rank, like);
	compare(&one, rank, MOST_RANKS);
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- meetings ---- */

typedef struct Guest {
	uint32_t rank, leaves, culprit, leaver, mixed;
	const Tally *leaf;
	Tally all;
	mp_status status;
	char said[200];
} Guest;

static void guest_body(Ctx *cx, void *arg)
{
	Guest *g = arg;
	Ranks *k = ranks_new(cx, &seat[g->rank].comm);
	uint32_t first, last;
	if (g->rank == g->leaver) {
		ranks_leave(k, MP_BAD_INPUT, "error: no such file\n");
		return;
	}
	rank_leaves(g->leaves, hall_size, g->rank, &first, &last);
	k->own = (Message){ .leaves = g->leaves, .match = { [MATCH_OPTIONS] = g->rank >= g->culprit } };
	own_tallies(&k->own, g->leaf, 0, g->leaves, first, last);
	ranks_exchange(cx, k, g->rank == g->mixed ? MSG_FILE : MSG_BATCH);
	assert_int_equal(k->all.tallies, 1);
	g->all = k->all.tally[0];
	ranks_check_match(cx, k);
}

static void *guest_meet(void *arg)
{
	Guest *g = arg;
	Ctx cx;
	ctx_init(&cx, NULL);
	g->status = guarded(&cx, guest_body, g);
	snprintf(g->said, sizeof g->said, "%s", ctx_messages(&cx));
	ctx_free(&cx);
	return NULL;
}

static void meet(uint32_t size, Guest *guest, Guest like)
{
	hall_open(size);
	for (uint32_t i = 0; i < size; i++) {
		guest[i] = like;
		guest[i].rank = i;
	}
	ranks_start(size, guest_meet, guest, sizeof *guest);
}

static void greeting_body(Ctx *cx, void *arg)
{
	const Guest *g = arg;
	ranks_check_program(cx, ranks_new(cx, &seat[g->rank].comm),
	                    g->rank == g->mixed     ? 0
	                    : g->rank == g->culprit ? 5
	                                            : 7);
}

static void *guest_greet(void *arg)
{
	Guest *g = arg;
	Ctx cx;
	ctx_init(&cx, NULL);
	g->status = guarded(&cx, greeting_body, g);
	snprintf(g->said, sizeof g->said, "%s", ctx_messages(&cx));
	ctx_free(&cx);
	return NULL;
}

/* Another program, or one that cannot be read, is found by all. */
static void greetings_are_compared(void **state)
{
	(void)state;
	enum { NO_RANK = 99 };
	static const struct {
		uint32_t culprit, mixed;
		mp_status status;
		const char *says;
	} rows[] = {
		{ NO_RANK, NO_RANK, MP_OK, "" },
		{ 2, NO_RANK, MP_BAD_INPUT, "rank 2 has another microprop than rank 0" },
		{ NO_RANK, 0, MP_BAD_INPUT, "rank 0 cannot read its own program" },
		{ 1, 2, MP_BAD_INPUT, "rank 2 cannot read its own program" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		Guest guest[3];
		hall_open(3);
		for (uint32_t r = 0; r < 3; r++)
			guest[r] = (Guest){ .rank = r, .culprit = rows[i].culprit, .mixed = rows[i].mixed };
		ranks_start(3, guest_greet, guest, sizeof *guest);
		for (int r = 0; r < 3; r++) {
			assert_int_equal(guest[r].status, rows[i].status);
			assert_non_null(strstr(guest[r].said, rows[i].says));
		}
	}
}

/* Any number of ranks comes to the same tally, that of the tree; and all hear of the first who differs or leaves. */
static void meetings_of_any_size(void **state)
{
	(void)state;
	static const uint32_t sizes[] = { 2, 3, 4, 5, 6, 7, 8, 9, 13, 64, 100, 1000 }, leaves[] = { 1, 3, 40, 1000, 4096 };
	static Guest guest[MOST_RANKS];
	static Tally leaf[MAX_LEAVES];
	for (uint32_t i = 0; i < MAX_LEAVES; i++)
		leaf[i] = (Tally){ .error = random_unit(3, STREAM_DATA, i), .cases = 1 };
	const Guest like = { .culprit = UINT32_MAX, .leaver = UINT32_MAX, .mixed = UINT32_MAX, .leaf = leaf };
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (size_t n = 0; n < COUNT(leaves); n++) {
			Guest g = like;
			g.leaves = leaves[n];
			meet(sizes[i], guest, g);
			Tally right = tally_leaves(leaf, 0, g.leaves);
			for (uint32_t k = 0; k < sizes[i]; k++)
				assert_memory_equal(&guest[k].all, &right, sizeof right);
		}
		const struct {
			Guest how;
			const char *says;
			uint32_t rank;
		} wrong[] = {
			{ { .culprit = sizes[i] / 2, .leaver = UINT32_MAX, .mixed = UINT32_MAX },
			  "rank %u has other options",
			  sizes[i] / 2 },
			{ { .culprit = UINT32_MAX, .leaver = sizes[i] - 1, .mixed = UINT32_MAX }, "rank %u of", sizes[i] - 1 },
			{ { .culprit = 1, .leaver = sizes[i] / 3, .mixed = 0 }, "rank %u of", sizes[i] / 3 },
			{ { .culprit = UINT32_MAX, .leaver = UINT32_MAX, .mixed = 0 }, "the ranks are not at the same work", 0 },
		};
		for (size_t w = 0; w < COUNT(wrong); w++) {
			char says[80];
			Guest g = wrong[w].how;
			g.leaf = leaf;
			g.leaves = 40;
			snprintf(says, sizeof says, wrong[w].says, wrong[w].rank);
			meet(sizes[i], guest, g);
			for (uint32_t k = 0; k < sizes[i]; k++)
				if (k != g.leaver)
					assert_non_null(strstr(guest[k].said, says));
		}
	}
}

/* The model of scaling.c says how many bytes the rank sends that sends most. */
static void the_model_counts_what_is_sent(void **state)
{
	(void)state;
	static const char *const option[] = { "epochs", "1", "until", "never", "rate", "0.001", "threads", "1", NULL };
	static const struct {
		const char *text;
		uint64_t cases;
		uint32_t inputs, outputs, ranks;
		int way;
	} runs[] = {
		{ small, 5000, 5, 3, 7, REDUCE_GATHER },     { large, 4096, 40, 30, 8, REDUCE_HALVING },
		{ large, 4096, 40, 30, 2, REDUCE_GATHER },   { large, 4096, 40, 30, 4, REDUCE_HALVING },
		{ large, 4096, 40, 30, 3, REDUCE_SCATTER },  { large, 2100, 40, 30, 4, REDUCE_SCATTER },
		{ large, 2100, 40, 30, 12, REDUCE_SCATTER },
	};
	const Cluster c = { .bandwidth = 1 };
	const Rates r = { 1, 1, 1, 0 };
	for (size_t i = 0; i < COUNT(runs); i++) {
		mp_net *net = net_new(runs[i].text);
		mp_data *data = data_new(runs[i].cases, runs[i].inputs, runs[i].outputs, NULL, 0);
		Rank rank[SOME_RANKS], like = { .net = net, .data = data, .option = option };
		ranks_run(runs[i].ranks, rank, like);
		Workload w = { .links = 1,
			           .floats = rank[0].floats,
			           .examples = runs[i].cases,
			           .cases = runs[i].cases,
			           .batch = runs[i].cases,
			           .threads = 1 };
		Scaling s = scaling_epoch(&c, &r, &w, runs[i].ranks);
		uint64_t most = 0;
		for (uint32_t k = 0; k < runs[i].ranks; k++)
			most = rank[k].sent > most ? rank[k].sent : most;
		assert_int_equal(s.way, runs[i].way);
		assert_true((double)s.bytes > 0.97 * (double)most && (double)s.bytes < 1.03 * (double)most);
		mp_data_close(data);
		mp_net_close(net);
	}
}

/* A batch of one leaf: rank 0 has the weights, the others none to show. */
static void one_leaf_is_for_rank_0(void **state)
{
	(void)state;
	static const char *const option[] = { "epochs", "3", "until", "never", "batch", "100", "threads", "1", NULL };
	mp_net *net = net_new(small);
	mp_data *data = data_new(700, 5, 3, NULL, 0);
	Rank one, rank[SOME_RANKS], like = { .net = net, .data = data, .option = option };
	ranks_run(1, &one, like);
	ranks_run(3, rank, like);
	assert_string_equal(rank[0].fingerprint, one.fingerprint);
	assert_non_null(strstr(rank[0].said, "is one leaf"));
	assert_int_equal(rank[2].status, MP_OK);
	mp_data_close(data);
	mp_net_close(net);
}

static void other_options_are_found(void **state)
{
	(void)state;
	static const char *const option[] = { "epochs", "3", "until", "never", "threads", "1", NULL };
	mp_net *net = net_new(small);
	mp_data *data = data_new(700, 5, 3, NULL, 0);
	Rank rank[SOME_RANKS], like = { .net = net, .data = data, .option = option, .last_rate = "0.25" };
	ranks_run(4, rank, like);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rank[i].status, MP_BAD_INPUT);
		assert_non_null(strstr(rank[i].said, "rank 3 has other options than rank 0"));
	}
	mp_data_close(data);
	mp_net_close(net);
}

static void whoever_ends_early_is_heard(void **state)
{
	(void)state;
	static const char *const option[] = { "epochs", "3", "until", "never", "threads", "1", NULL };
	mp_net *net = net_new(small);
	mp_data *data = data_new(700, 5, 3, NULL, 0);
	Rank rank[SOME_RANKS], like = { .net = net, .data = data, .option = option, .last_rate = "1e-30" };
	like.test = NULL;
	hall_open(2);
	rank[0] = rank[1] = like;
	rank[1].rank = 1;
	pthread_t thread;
	rank[0].last_rate = NULL;
	assert_int_equal(pthread_create(&thread, NULL, rank_run, &rank[0]), 0);
	Ctx cx;
	ctx_init(&cx, NULL);
	ranks_leave(ranks_new(&cx, &seat[1].comm), MP_BAD_INPUT, "error: cannot open it\n  look elsewhere\n");
	pthread_join(thread, NULL);
	ctx_free(&cx);
	assert_int_equal(rank[0].status, MP_BAD_INPUT);
	assert_non_null(strstr(rank[0].said, "rank 1 of 2 ended early: cannot open it"));
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- data in files ---- */

static const char *const pooled[] = { "epochs", "2",     "until", "never",   "rate", "0.001", "threads",
	                                  "1",      "batch", "1500",  "shuffle", "0",    NULL };

static mp_data *shared_open(const char *path)
{
	mp_data *data;
	assert_int_equal(
		mp_data_open(&data, path, &(mp_data_options){ .size = sizeof(mp_data_options), .shared = 1 }, NULL), MP_OK);
	return data;
}

/* A copy of the data in which inputs are right only where ranks first .. first + some - 1 look at them. */
static void write_spoilt(mp_data *from, const char *path, uint32_t ranks, uint32_t rank, uint32_t some, uint64_t batch,
                         float spoilt)
{
	Data d = *from->data;
	uint64_t n = d.cases * d.inputs, first, end;
	float *x = malloc(n * sizeof *x);
	for (uint64_t i = 0; i < n; i++)
		x[i] = spoilt;
	for (uint64_t b = 0; b * batch < d.cases; b++)
		for (uint32_t r = rank; r < rank + some; r++) {
			Ranks k = { .comm = &(Comm){ .size = ranks, .rank = r % ranks } };
			rank_examples(&k, d.cases, batch, b, &first, &end);
			for (uint64_t i = first; i < end; i++)
				data_x(from->data, i, x + i * d.inputs);
		}
	for (uint64_t i = 0; i < 16; i++) { /* those that all look at */
		uint64_t at = i * ((d.cases - 1) / 15);
		data_x(from->data, at, x + at * d.inputs);
	}
	d.x = x;
	Ctx cx;
	ctx_init(&cx, NULL);
	data_write(&cx, &d, path);
	ctx_free(&cx);
	free(x);
}

static void each_looks_at_its_cases_alone(void **state)
{
	(void)state;
	enum { RANKS = 3, CASES = 5000, BATCH = 1500 };
	char path[RANKS][80];
	mp_net *net = net_new(small);
	mp_data *data = data_new(CASES, 5, 3, NULL, 0), *own[RANKS];
	for (uint32_t i = 0; i < RANKS; i++) {
		snprintf(path[i], sizeof path[i], "%s/%u-x.npy", folder, i);
		write_spoilt(data, path[i], RANKS, i, 1, BATCH, NAN);
		own[i] = shared_open(path[i]);
	}
	Rank one, rank[SOME_RANKS], like = { .net = net, .data = data, .option = pooled };
	ranks_run(1, &one, like);
	like.own = own;
	ranks_run(RANKS, rank, like);
	compare(&one, rank, RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		mp_data_close(own[i]);
	mp_data_close(data);
	mp_net_close(net);
}

static const char *const guarded_options[] = { "epochs", "2",    "until",   "never", "rate",  "0.0001", "threads", "1",
	                                           "batch",  "8000", "shuffle", "0",     "guard", "full",   NULL };

enum { FEW = 4 }; /* ranks */

/* Each has its own file, in which inputs are right for it and, some say, for others. */
static void files_run(mp_data *data, Rank like, const uint32_t *some, float spoilt, Rank *one, Rank *rank)
{
	mp_data *own[FEW];
	like.data = data;
	ranks_run(1, one, like);
	for (uint32_t i = 0; i < FEW; i++) {
		char path[80];
		snprintf(path, sizeof path, "%s/%u-x.npy", folder, i);
		write_spoilt(data, path, FEW, i + 1 + FEW - some[i], some[i], 8000, spoilt);
		own[i] = shared_open(path);
	}
	like.own = own;
	ranks_run(FEW, rank, like);
	for (uint32_t i = 0; i < FEW; i++)
		mp_data_close(own[i]);
}

/* Under guard a rank looks at its cases, and at leaves of the rank before which it computes again. */
static void guards_look_at_few_cases(void **state)
{
	(void)state;
	static const uint32_t some[FEW] = { 2, 2, 2, 2 };
	mp_net *net = net_new(small);
	mp_data *data = data_new(40000, 5, 3, NULL, 0);
	Rank one, rank[SOME_RANKS];
	files_run(data, (Rank){ .net = net, .option = guarded_options }, some, NAN, &one, rank);
	compare(&one, rank, FEW);
	for (uint32_t i = 0; i < FEW; i++) {
		assert_true(rank[i].found.data_blocks && rank[i].found.data_blocks <= one.found.data_blocks / 2);
		assert_true(rank[i].found.recomputed > 0);
		assert_int_equal(rank[i].found.rollbacks, 0);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* Rank 1 has other numbers at the places rank 0 checks, undetected; what it makes of rank 0's leaves is
 * another thing. */
static void neighbours_notice(void **state)
{
	(void)state;
	static const uint32_t some[FEW] = { 2, 1, 2, 2 };
	mp_net *net = net_new(small);
	mp_data *data = data_new(40000, 5, 3, NULL, 0);
	Rank one, rank[SOME_RANKS];
	files_run(data, (Rank){ .net = net, .option = guarded_options }, some, 0.125f, &one, rank);
	for (uint32_t i = 0; i < FEW; i++) {
		assert_true(rank[i].status == MP_FAILED || strcmp(rank[i].fingerprint, one.fingerprint) == 0);
		assert_int_equal(rank[i].found.leaves > 0, i == 0);
		assert_non_null(strstr(rank[i].said, "update 0: rank 0: leaf "));
		assert_non_null(strstr(rank[i].said, " of the batch comes out differently on core "));
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* Errors in data have the message of a single process, whichever rank has them. */
static void wrong_cases_are_told_as_by_one(void **state)
{
	(void)state;
	static const uint64_t wrong[][2] = { { 4999, 2600 }, { 0, 4000 }, { 1700, 1700 } };
	mp_net *net = net_new(small);
	mp_data *data = data_new(5000, 5, 3, NULL, 0);
	for (size_t i = 0; i < 2 * COUNT(wrong); i++) {
		char path[80], said[400];
		bool zipped = i % 2;
		Data d = *data->data;
		float *x = malloc(d.cases * d.inputs * sizeof *x);
		memcpy(x, d.x, d.cases * d.inputs * sizeof *x);
		for (int k = 0; k < 2; k++)
			x[wrong[i / 2][k] * d.inputs + 3] = INFINITY;
		d.x = x;
		snprintf(path, sizeof path, "%s/%s", folder, zipped ? "wrong.npz" : "wrong-x.npy");
		Ctx cx;
		ctx_init(&cx, NULL);
		data_write(&cx, &d, path);
		ctx_free(&cx);
		mp_data *alone, *shared = shared_open(path);
		assert_int_equal(mp_data_open(&alone, path, NULL, NULL), MP_BAD_INPUT);
		snprintf(said, sizeof said, "%s", mp_data_messages(alone));
		assert_non_null(strstr(said, "input 3 of case"));
		Rank rank[SOME_RANKS];
		ranks_run(4, rank, (Rank){ .net = net, .data = shared, .option = pooled });
		for (int k = 0; k < 4; k++) {
			assert_int_equal(rank[k].status, MP_BAD_INPUT);
			assert_string_equal(rank[k].said, said);
		}
		mp_data_close(alone);
		mp_data_close(shared);
		free(x);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* Flips a bit in the middle of a file. */
static void damage(const char *path)
{
	FILE *f = fopen(path, "r+b");
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	long middle = ftell(f) / 2;
	fseek(f, middle, SEEK_SET);
	int byte = fgetc(f);
	fseek(f, middle, SEEK_SET);
	fputc(byte ^ 1, f);
	fclose(f);
}

/* Runs on several threads, without ranks, may share data whose cases are not validated yet. */
static void runs_share_data(void **state)
{
	(void)state;
	enum { RUNS = 4 };
	static const char *const option[] = { "epochs", "1", "until", "never", "rate", "0.001", "threads", "1", NULL };
	char path[80];
	mp_net *net = net_new(small);
	mp_data *data = data_new(5000, 5, 3, NULL, 0);
	snprintf(path, sizeof path, "%s/together.npz", folder);
	assert_int_equal(mp_data_save(data, path), MP_OK);
	mp_data *shared = shared_open(path);
	assert_true(shared->data->unchecked);
	Rank rank[RUNS];
	hall_open(1);
	for (int i = 0; i < RUNS; i++)
		rank[i] = (Rank){ .net = net, .data = shared, .option = option };
	pthread_t thread[RUNS];
	for (int i = 0; i < RUNS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, rank_run, &rank[i]), 0);
	for (int i = 0; i < RUNS; i++)
		pthread_join(thread[i], NULL);
	assert_false(shared->data->unchecked);
	for (int i = 0; i < RUNS; i++) {
		assert_int_equal(rank[i].status, MP_OK);
		assert_string_equal(rank[i].fingerprint, rank[0].fingerprint);
	}
	mp_data_close(shared);
	mp_data_close(data);
	mp_net_close(net);
}

/* The checksum of a zip member, from the parts that ranks read: as dense rows, as index lists. */
static void checksums_of_parts_add_up(void **state)
{
	(void)state;
	mp_net *net = net_new(small);
	for (int lists = 0; lists < 2; lists++) {
		char path[80], said[400];
		snprintf(path, sizeof path, "%s/parts.npz", folder);
		float *x = calloc(5000 * 5, sizeof *x), *y = calloc(5000 * 3, sizeof *y);
		for (uint64_t i = 0; i < 5000 * 5; i++)
			x[i] = lists ? i % 41 == 0 : (float)random_unit(1, STREAM_DATA, i);
		mp_data *data;
		assert_int_equal(mp_data_new(&data, 5000, 5, 3, x, y, NULL, 0, NULL), MP_OK);
		assert_int_equal(data->data->x_indptr != NULL, lists);
		assert_int_equal(mp_data_save(data, path), MP_OK);
		mp_data *shared = shared_open(path);
		assert_true(shared->data->unchecked);
		assert_true(data_checksum(shared->data) == data_checksum(data->data));
		Rank one, rank[SOME_RANKS], like = { .net = net, .data = data, .option = pooled };
		ranks_run(1, &one, like);
		like.data = shared;
		ranks_run(3, rank, like);
		compare(&one, rank, 3);
		mp_data_close(shared);
		damage(path);
		mp_data *alone;
		assert_int_equal(mp_data_open(&alone, path, NULL, NULL), MP_BAD_INPUT);
		snprintf(said, sizeof said, "%s", mp_data_messages(alone));
		mp_data_close(alone);
		like.data = shared_open(path);
		ranks_run(3, rank, like);
		assert_string_equal(rank[0].said, said);
		assert_string_equal(rank[2].said, said);
		mp_data_close((mp_data *)like.data);
		mp_data_close(data);
		free(x);
		free(y);
	}
	mp_net_close(net);
}

static void other_data_is_found(void **state)
{
	(void)state;
	mp_net *net = net_new(small);
	mp_data *made[2] = { data_new(5000, 5, 3, NULL, 0), data_new(4000, 5, 3, NULL, 0) };
	mp_data *own[3] = { made[0], made[0], made[1] };
	Rank rank[SOME_RANKS], like = { .net = net, .own = own, .option = pooled };
	ranks_run(3, rank, like);
	assert_non_null(strstr(rank[0].said, "rank 2 has other data than rank 0"));
	assert_int_equal(rank[2].status, MP_BAD_INPUT);
	mp_data_close(made[0]);
	mp_data_close(made[1]);
	mp_net_close(net);
}

/* ---- seeds ---- */

/* Every seed has its result on every rank; the best has been trained again, by all ranks or by rank 0 alone. */
static void same_seeds(const Rank *one, const Rank *rank, uint32_t size)
{
	const mp_restarts *m = &one->found_seeds;
	for (uint32_t i = 0; i < size; i++) {
		const mp_restarts *n = &rank[i].found_seeds;
		assert_int_equal(n->done, m->done);
		assert_int_equal(n->lanes, m->lanes);
		assert_int_equal(n->best, m->best);
		assert_int_equal(n->solved, m->solved);
		assert_int_equal(n->failed, m->failed);
		assert_int_equal(n->epochs_median, m->epochs_median);
		for (uint64_t k = 0; k < m->done; k++)
			assert_memory_equal(&rank[i].seed[k], &one->seed[k], offsetof(mp_seed, fingerprint) + 33);
	}
	if (rank[0].status != one->status)
		print_error("%s", rank[0].said);
	assert_int_equal(rank[0].status, one->status);
	assert_string_equal(rank[0].fingerprint, one->fingerprint);
	assert_memory_equal(&rank[0].report.error, &one->report.error, sizeof(double));
}

static void seeds_are_shared(void **state)
{
	const char *given = getenv("RANK_EPOCHS"), *epochs = given ? given : "20";
	const char *const options[][11] = {
		{ "rate", "0.1", "epochs", epochs, "threads", "1" },
		{ "rate", "0.1", "epochs", epochs, "threads", "1", "batch", "1", "rule", "rprop" },
		{ "rate", "0.1", "epochs", "3", "threads", "1", "target", "ref" },
		{ "rate", "100000", "epochs", "9", "threads", "1" }, /* all fail */
		{ "rate", "0.1", "epochs", "3", "threads", "1", "guard", "light" },
	};
	static const uint64_t counts[] = { 3, 37 };
	(void)state;
	mp_net *net = net_new(small), *linear = net_new("group i 5 input\ngroup o 3 linear output\nconnect i -> o\n");
	mp_data *data = data_new(60, 5, 3, NULL, 0), *long_data = data_new(1100, 5, 3, NULL, 0);
	static Rank one[1], rank[SOME_RANKS];
	for (size_t o = 0; o < COUNT(options); o++)
		for (size_t c = 0; c < COUNT(counts); c++)
			for (int leaves = 0; leaves < 2; leaves++) { /* a batch of one leaf, or of several */
				Rank like = { .net = o == 3 ? linear : net,
					          .data = leaves ? long_data : data,
					          .option = options[o],
					          .restarts = counts[c] };
				ranks_run(1, one, like);
				assert_int_equal(one->found_seeds.done, counts[c]);
				for (uint32_t size = 2; size < 6; size += 1 + 2 * (o > 0)) {
					ranks_run(size, rank, like);
					same_seeds(one, rank, size);
				}
			}
	mp_data_close(data);
	mp_data_close(long_data);
	mp_net_close(net);
	mp_net_close(linear);
}

static void other_numbers_of_seeds_are_found(void **state)
{
	static const char *const option[] = { "rate", "0.1", "epochs", "2", NULL };
	(void)state;
	mp_net *net = net_new(small);
	mp_data *data = data_new(60, 5, 3, NULL, 0);
	static Rank rank[SOME_RANKS];
	ranks_run(3, rank, (Rank){ .net = net, .data = data, .option = option, .restarts = 7, .more_on_last = 1 });
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rank[i].status, MP_BAD_INPUT);
		assert_non_null(strstr(rank[i].said, "rank 2 has another number of restarts than rank 0"));
	}
	ranks_run(3, rank, (Rank){ .net = net, .data = data, .option = option, .restarts = 7, .last_rate = "0.2" });
	assert_non_null(strstr(rank[0].said, "rank 2 has other options than rank 0"));
	mp_data *own[3] = { data, data_new(61, 5, 3, NULL, 0), data };
	ranks_run(3, rank, (Rank){ .net = net, .own = own, .option = option, .restarts = 7 });
	assert_non_null(strstr(rank[0].said, "rank 1 has other data than rank 0"));
	mp_data_close(own[1]);
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- leaves ---- */

static void leaves_are_shared_out(void **state)
{
	(void)state;
	for (uint32_t leaves = 1; leaves < 300; leaves++)
		for (uint32_t ranks = 1; ranks < 40; ranks++) {
			uint32_t end = 0, most = 0;
			for (uint32_t i = 0; i < ranks; i++) {
				uint32_t first, last;
				rank_leaves(leaves, ranks, i, &first, &last);
				assert_int_equal(first, end);
				assert_true(last >= first);
				assert_true(subtree_count(leaves, first, last) <= MOST_SUMS);
				most = last - first > most ? last - first : most;
				end = last;
			}
			assert_int_equal(end, leaves);
			assert_true(most <= (leaves + ranks - 1) / ranks + leaves / ranks / 16);
		}
	uint32_t first, last;
	rank_leaves(4096, 3, 1, &first, &last);
	assert_true(subtree_count(4096, first, last) <= 5); /* places are chosen so that few subtrees are cut */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_are_shared_out),
		cmocka_unit_test(any_number_has_the_bits_of_one),
		cmocka_unit_test(sequences_too),
		cmocka_unit_test(a_limit_of_time_is_not_reached),
		cmocka_unit_test(a_thousand_have_the_bits_of_one),
		cmocka_unit_test(greetings_are_compared),
		cmocka_unit_test(meetings_of_any_size),
		cmocka_unit_test(one_leaf_is_for_rank_0),
		cmocka_unit_test(other_options_are_found),
		cmocka_unit_test(whoever_ends_early_is_heard),
		cmocka_unit_test(the_model_counts_what_is_sent),
		cmocka_unit_test(each_looks_at_its_cases_alone),
		cmocka_unit_test(guards_look_at_few_cases),
		cmocka_unit_test(neighbours_notice),
		cmocka_unit_test(wrong_cases_are_told_as_by_one),
		cmocka_unit_test(runs_share_data),
		cmocka_unit_test(checksums_of_parts_add_up),
		cmocka_unit_test(other_data_is_found),
		cmocka_unit_test(seeds_are_shared),
		cmocka_unit_test(other_numbers_of_seeds_are_found),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
