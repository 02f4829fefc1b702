/* SPDX-License-Identifier: MIT */
/* Guarded training: single bits flip in weights, other forms of them, rule state, sums of weight changes, data,
 * copies and the position. Each time the result has the bits of a run that was left alone, or the run has said so
 * and ended. And nothing is ever found where nothing was flipped.
 *
 * GUARD_FLIPS says how many flips, GUARD_STEPS how many steps without any; GUARD_TABLE=1 prints the counts. */
#include "runs.h"

#include <fcntl.h>

#include "parts.h"
#include "system.h"

static const char network[] =
	"group in 20 input\ngroup mid 9 tanh\ngroup out 3 output\nconnect in -> mid\nconnect mid -> out\n"
	"connect true -> mid, out\ntrain rate 0.001 until never epochs 4\n";
enum { CASES = 1700, MANY_CASES = 20000, INPUTS = 20, TARGETS = 3, SOME = 300 };

typedef struct Setting {
	const char *option[3][2];
} Setting;
static const Setting settings[] = {
	{ { { "batch", "600" }, { "rule", "momentum" } } },
	{ { { "batch", "all" }, { "rule", "adam" } } },
	{ { { "batch", "512" }, { "input", "index" }, { "rule", "rprop" } } },
	{ { { "batch", "1100" }, { "precision", "bf16" } } },
};

enum { IN_STATE, IN_SUMS, IN_INPUTS, IN_TARGETS, IN_POSITION, IN_COPIES, PLACES };
static const char *const place_names[PLACES] = { "weights, momentum", "partial sums", "inputs",
	                                             "targets",           "position",     "snapshots" };

typedef struct Flip {
	mp_run *run;
	uint64_t at, seen; /* moments of its kind that pass before it; so far */
	int place;
	uint64_t random;
	bool done;
} Flip;

static void flip_in(void *bytes, uint64_t size, uint64_t random)
{
	uint64_t bit = random % (8 * size);
	((uint8_t *)bytes)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void flip_region(const Region *r, uint32_t n, uint64_t random)
{
	const Region *chosen = &r[random % n];
	if (chosen->bytes)
		flip_in(chosen->at, chosen->bytes, random / n);
}

static void flip_now(Flip *f, void *sum, uint64_t bytes)
{
	const Data *d = f->run->target->guard->bound_data(f->run->program);
	Region r[MOST_REGIONS];
	uint32_t n;
	switch (f->place) {
	case IN_STATE:
		n = f->run->target->guard->regions(f->run->program, r);
		flip_region(r, n, f->random);
		break;
	case IN_SUMS: flip_in(sum, bytes, f->random); break;
	case IN_INPUTS:
		if (d->x_values)
			flip_in((void *)d->x_values, d->x_indptr[d->cases] * sizeof *d->x_values, f->random);
		else
			flip_in((void *)d->x, d->cases * d->inputs * sizeof(float), f->random);
		break;
	case IN_TARGETS: flip_in((void *)d->y, d->cases * d->targets * sizeof(float), f->random); break;
	case IN_POSITION: flip_in(&f->run->at, sizeof f->run->at, f->random); break;
	case IN_COPIES:
		n = guard_snapshots(f->run->guard, r);
		flip_in(r[0].at, r[0].bytes, f->random / 2);
		if (f->random % 2 && n > 1) { /* and weights too, so that an older copy is needed */
			n = f->run->target->guard->regions(f->run->program, r);
			flip_region(r, n, f->random / 2);
		}
		break;
	}
	f->done = true;
}

/* Sums where they rest; everything else between any two steps.  The position rests between updates. */
static void flip_moment(void *user, int moment, void *sum, uint64_t bytes)
{
	Flip *f = user;
	bool fits = f->place == IN_SUMS       ? moment == HOOK_LEAF_STORED
	            : f->place == IN_POSITION ? moment == HOOK_BATCH
	                                      : moment != HOOK_LEAF_SUM;
	if (fits && !f->done && f->seen++ == f->at)
		flip_now(f, sum, bytes);
}

/* ---- checksums ---- */

/* Every bit is seen and named; of two, both are seen. */
static void checksums_see_bits(void **state)
{
	(void)state;
	static uint8_t piece[CHECKSUM_BLOCK];
	for (size_t i = 0; i < sizeof piece; i++)
		piece[i] = (uint8_t)random_u64(8, STREAM_DATA, i);
	uint64_t checksum = checksum_of(piece, sizeof piece), found;
	for (uint64_t bit = 0; bit < 8 * sizeof piece; bit++) {
		uint64_t sign = piece[bit / 8] >> bit % 8 & 1 ? (uint64_t)-1 : 1;
		uint64_t changed = checksum + sign * (checksum_factor(bit / 32) << bit % 32);
		assert_true(flipped_bit(sizeof piece, checksum, changed, &found));
		assert_int_equal(found, bit);
		if (bit % 101)
			continue;
		flip_in(piece, sizeof piece, bit);
		assert_true(checksum_of(piece, sizeof piece) == changed);
		flip_in(piece, sizeof piece, bit);
	}
	assert_false(flipped_bit(sizeof piece, checksum, checksum, &found));
	assert_false(flipped_bit(sizeof piece, checksum, checksum + 12345, &found));
	for (int i = 0; i < CHECKSUM_ROWS; i++) {
		assert_true(checksum_rows[i] % 2);
		for (int k = 0; k < i; k++)
			assert_true(checksum_rows[i] != checksum_rows[k]);
	}
	for (int i = 0; i < CHECKSUM_WORDS; i++)
		assert_true(checksum_words[i] % 2);
	for (uint64_t n = 0; n < 1000000; n++) {
		uint64_t r = random_u64(9, STREAM_DATA, n), a = r % (8 * CHECKSUM_BLOCK), b = (r >> 20) % (8 * CHECKSUM_BLOCK);
		uint64_t one = checksum_factor(a / 32) << a % 32, other = checksum_factor(b / 32) << b % 32;
		assert_true(a == b || (one + other != 0 && one != other));
	}
}

/* ---- runs ---- */

static mp_data *data_of(uint64_t cases)
{
	static float x[MANY_CASES * INPUTS], y[MANY_CASES * TARGETS];
	for (uint64_t i = 0; i < cases * INPUTS; i++)
		x[i] = random_u64(1, STREAM_DATA, i) % 3 ? 0 : (float)random_unit(2, STREAM_DATA, i);
	for (uint64_t i = 0; i < cases * TARGETS; i++)
		y[i] = (float)(random_u64(3, STREAM_DATA, i) % 2);
	mp_data *data;
	assert_int_equal(mp_data_new(&data, cases, INPUTS, TARGETS, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

static mp_data *some_data(void) { return data_of(CASES); }

static mp_run *run_new(const mp_net *net, const Setting *s, const char *guard)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	need(run, mp_run_set(run, "threads", "1"));
	need(run, mp_run_set(run, "guard", guard));
	for (size_t i = 0; i < COUNT(s->option) && s->option[i][0]; i++)
		need(run, mp_run_set(run, s->option[i][0], s->option[i][1]));
	return run;
}

static uint64_t faults(const mp_run *run)
{
	const GuardCount *c = guard_count(run->guard);
	return c->state + c->sums + c->data + c->leaves + c->outliers + c->position + c->snapshots + c->tables + c->order +
	       c->best;
}

typedef struct Result {
	uint64_t flips, detected, harmless, ended, missed;
} Result;

static void count_result(const Flip *f, mp_status status, const char *clean, Result *to)
{
	bool same = status == MP_OK && strcmp(f->run->fingerprint, clean) == 0, found = faults(f->run) > 0;
	to->flips++;
	to->detected += same && found;
	to->harmless += same && !found;
	to->ended += status == MP_FAILED && found;
	to->missed += !same && !(status == MP_FAILED && found);
	if (!same && status != MP_FAILED)
		print_error("%s, moment %llu, random %llu: another result\n", place_names[f->place], (unsigned long long)f->at,
		            (unsigned long long)f->random);
}

static void one_flip(const mp_net *net, const mp_data *data, const Setting *s, uint64_t number, const char *clean,
                     Result *result)
{
	uint64_t checksum = data_checksum(data->data);
	Flip f = { .run = run_new(net, s, "full"),
		       .place = (int)(number % PLACES),
		       .random = random_u64(5, STREAM_SPLIT, number) >> 1 };
	f.at = random_below(6, STREAM_SPLIT, number, f.place == IN_SUMS ? 12 : f.place == IN_POSITION ? 4 : 30);
	f.run->test_hook = flip_moment;
	f.run->test_hook_user = &f;
	mp_status status = mp_run_train(f.run, data, NULL, NULL, NULL);
	if (f.done)
		count_result(&f, status, clean, &result[f.place]);
	assert_true(data_checksum(data->data) == checksum); /* what was flipped there was put right */
	mp_run_close(f.run);
}

static uint64_t wanted(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void flips_are_undone(void **state)
{
	(void)state;
	Result result[PLACES] = { { 0 } };
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	char clean[COUNT(settings)][33];
	for (size_t i = 0; i < COUNT(settings); i++) {
		mp_run *run = run_new(net, &settings[i], "off");
		need(run, mp_run_train(run, data, NULL, NULL, NULL));
		strcpy(clean[i], run->fingerprint);
		mp_run_close(run);
	}
	for (uint64_t n = 0, flips = wanted("GUARD_FLIPS", SOME); n < flips; n++) {
		size_t s = n / PLACES % COUNT(settings);
		one_flip(net, data, &settings[s], n, clean[s], result);
	}
	for (int i = 0; i < PLACES; i++) {
		const Result *r = &result[i];
		if (getenv("GUARD_TABLE"))
			print_message("%-20s flips %5llu, undone %5llu, harmless %5llu, ended %5llu, missed %llu\n", place_names[i],
			              (unsigned long long)r->flips, (unsigned long long)r->detected,
			              (unsigned long long)r->harmless, (unsigned long long)r->ended, (unsigned long long)r->missed);
		assert_true(r->flips > 0);
		assert_int_equal(r->missed, 0);
		assert_int_equal(r->ended, 0); /* single bits can all be undone */
	}
	mp_data_close(data);
	mp_net_close(net);
}

static void nothing_is_found_where_nothing_is(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	uint64_t steps = wanted("GUARD_STEPS", 400);
	char text[32];
	snprintf(text, sizeof text, "%llu", (unsigned long long)steps);
	for (size_t i = 0; i < COUNT(settings); i++) {
		static const char *const guards[] = { "off", "light", "full" };
		char fingerprint[33] = "";
		for (size_t k = 0; k < COUNT(guards); k++) {
			mp_run *run = run_new(net, &settings[i], guards[k]);
			need(run, mp_run_set(run, "epochs", "0"));
			need(run, mp_run_set(run, "updates", text));
			need(run, mp_run_train(run, data, NULL, NULL, NULL));
			if (k)
				assert_string_equal(run->fingerprint, fingerprint);
			if (run->guard)
				assert_int_equal(faults(run), 0);
			strcpy(fingerprint, run->fingerprint);
			mp_run_close(run);
		}
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* Nor in the padding after the units of a group: of one that leads to others in parts, of one whose links stand one
 * by one. */
static void padding_comes_out_the_same(void **state)
{
	(void)state;
	static const char padded[] =
		"group in 20 input\ngroup a 17 relu\ngroup b 17\ngroup p 1 output\ngroup q 2 output\n"
		"connect in[0:4] -> a\nconnect in[0] -> b rate 0.5\nconnect in[1:19] -> b random 0.3 seed 3\n"
		"connect a[2:4] -> p\nconnect a, b, true -> q\ntrain rate 0.0001 until never epochs 3 batch 600\n";
	mp_net *net = net_of(padded);
	mp_data *data = some_data();
	mp_run *run = run_new(net, &(Setting){ 0 }, "full");
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	assert_true(guard_count(run->guard)->recomputed > 0);
	assert_int_equal(faults(run), 0);
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

/* Nor in networks that settle, whose chunks have more or fewer cases from one pass to the next: full and last batches,
 * a leaf of each thread, a team, test data. */
static void settling_is_no_fault(void **state)
{
	(void)state;
	static const char settling[] =
		"group in 20 input\ngroup mid 9 tanh\ngroup out 3 output\nconnect in, out, true -> mid\n"
		"connect mid, true -> out\ntrain ticks 5 targets-from 3 rate 0.001 until never epochs 3\n";
	static const Setting batches[] = { { { { "batch", "60" } } },
		                               { { { "batch", "700" }, { "threads", "2" } } },
		                               { { { "batch", "all" }, { "threads", "3" } } } };
	static const char *const guards[] = { "off", "light", "full" };
	mp_net *net = net_of(settling);
	mp_data *data = some_data(), *test = data_of(100);
	for (size_t i = 0; i < 2 * COUNT(batches); i++) {
		char fingerprint[33] = "";
		for (size_t k = 0; k < COUNT(guards); k++) {
			mp_run *run = run_new(net, &batches[i / 2], guards[k]);
			need(run, mp_run_train(run, data, i % 2 ? test : NULL, NULL, NULL));
			if (k) {
				assert_string_equal(run->fingerprint, fingerprint);
				assert_int_equal(faults(run), 0);
			}
			strcpy(fingerprint, run->fingerprint);
			mp_run_close(run);
		}
	}
	mp_data_close(test);
	mp_data_close(data);
	mp_net_close(net);
}

/* Enough weights for threads to share updates: panels of both forms, one that is frozen, one with gaps, links one by
 * one. */
static void threads_share_checksums(void **state)
{
	(void)state;
	static const char wide[] =
		"group in 20 input\ngroup a 300 tanh\ngroup b 240\ngroup out 3 output\nconnect in -> a\nconnect a -> b\n"
		"connect in -> b frozen\nconnect b -> out\nconnect a -> out random 0.02 seed 3 rate 0.5\ngroup c 40\nconnect a "
		"-> c random 0.7\nconnect c -> out\n"
		"connect true -> a, b, out\ntrain rate 0.0001 until never epochs 2 batch 600\n";
	static const Setting rules_here[] = { { { { "rule", "momentum" } } },
		                                  { { { "rule", "adam" }, { "precision", "bf16" } } } };
	mp_net *net = net_of(wide);
	mp_data *data = some_data();
	int flips = wanted("GUARD_FLIPS", SOME) < SOME ? 3 : 8; /* 3: each number of threads, each place */
	for (size_t i = 0; i < COUNT(rules_here); i++)
		for (int n = -1; n < flips; n++) {
			static char clean[33];
			Flip f = { .run = run_new(net, &rules_here[i], n < 0 ? "off" : "full"),
				       .place = n % 2 ? IN_STATE : IN_SUMS,
				       .at = (uint64_t)n % 4,
				       .random = random_u64(7, STREAM_SPLIT, (uint64_t)(n + 1)) >> 1,
				       .done = n < 1 };
			static const char *const threads[] = { "1", "2", "3" };
			need(f.run, mp_run_set(f.run, "threads", threads[(n + 1) % 3]));
			f.run->test_hook = flip_moment;
			f.run->test_hook_user = &f;
			need(f.run, mp_run_train(f.run, data, NULL, NULL, NULL));
			assert_true(f.done);
			if (n < 0)
				strcpy(clean, f.run->fingerprint);
			else
				assert_int_equal(faults(f.run), n > 0);
			assert_string_equal(f.run->fingerprint, clean);
			mp_run_close(f.run);
		}
	mp_data_close(data);
	mp_net_close(net);
}

/* More than a bit of a mapped file, in memory; the file is as it was. */
static void spoil_page(void *user, int moment, void *sum, uint64_t bytes)
{
	Flip *f = user;
	(void)sum, (void)bytes;
	if (moment == HOOK_LEAF_SUM || f->done || f->seen++ < f->at)
		return;
	float *y = (float *)f->run->target->guard->bound_data(f->run->program)->y;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)y / page * page;
	size_t size = (uintptr_t)(y + 2) - first;
	assert_int_equal(mprotect((void *)first, size, PROT_READ | PROT_WRITE), 0);
	y[0] += 1;
	y[1] += 1;
	assert_int_equal(mprotect((void *)first, size, PROT_READ), 0);
	f->done = true;
}

/* Whether pages that were dropped come from the file again: POSIX does not say so, and qemu with pages of 64 KB does it
 * only for files of whole pages. */
static bool pages_come_again(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	size_t size = (size_t)st.st_size;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(at != MAP_FAILED);
	char first = at[0]++;
	madvise(at, 1, MADV_DONTNEED);
	bool again = *(volatile char *)at == first;
	munmap(at, size);
	return again;
}

static void mapped_data_is_read_again(void **state)
{
	(void)state;
	const mp_data_options shared = { .size = sizeof shared, .shared = 1 }; /* targets stay in the file */
	mp_net *net = net_of(network);
	mp_data *made = data_of(MANY_CASES), *data;
	assert_int_equal(mp_data_save(made, in_folder("many.npz")), MP_OK);
	assert_int_equal(mp_data_open(&data, in_folder("many.npz"), &shared, NULL), MP_OK);
	assert_true(data->data->mapped);
	if (!pages_come_again(in_folder("many.npz"))) {
		mp_data_close(data);
		mp_data_close(made);
		mp_net_close(net);
		skip();
	}
	mp_run *alone = run_new(net, &settings[0], "off"), *run = run_new(net, &settings[0], "full");
	need(alone, mp_run_set(alone, "epochs", "1"));
	need(run, mp_run_set(run, "epochs", "1"));
	need(alone, mp_run_train(alone, made, NULL, NULL, NULL));
	Flip f = { .run = run, .at = 20 };
	run->test_hook = spoil_page;
	run->test_hook_user = &f;
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	assert_true(f.done && guard_count(run->guard)->data == 1);
	expect_words(mp_run_messages(run), "changed by themselves, and were read again");
	assert_string_equal(run->fingerprint, alone->fingerprint);
	mp_run_close(run);
	mp_run_close(alone);
	mp_data_close(data);
	mp_data_close(made);
	mp_net_close(net);
}

/* A core that computes wrongly: the first leaf is always looked at. */
static void wrong_leaf(void *user, int moment, void *sum, uint64_t bytes)
{
	bool *done = user;
	if (moment == HOOK_LEAF_SUM && !*done) {
		*done = true;
		flip_in(sum, bytes, 8 * 77 + 3);
	}
}

static void a_core_is_named(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	bool done = false;
	mp_run *alone = run_new(net, &settings[2], "off"), *run = run_new(net, &settings[2], "full");
	need(alone, mp_run_train(alone, data, NULL, NULL, NULL));
	run->test_hook = wrong_leaf;
	run->test_hook_user = &done;
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	assert_int_equal(guard_count(run->guard)->leaves, 1);
	expect_words(mp_run_messages(run), "computed leaf 0 of the batch wrongly");
	assert_string_equal(run->fingerprint, alone->fingerprint);
	mp_run_close(run);
	mp_run_close(alone);
	mp_data_close(data);
	mp_net_close(net);
}

/* One case of an enormous error, once an epoch: the result is that without the guard, and few of these jumps are
 * replayed. */
static void jumps_are_not_replayed_for_ever(void **state)
{
	(void)state;
	enum { EPOCHS = 150 };
	static const Setting jumpy = { { { "batch", "20" }, { "rate", "1e-9" }, { "epochs", "150" } } };
	static const char *const guards[] = { "off", "light", "full" };
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	char fingerprint[33] = "";
	((float *)data->data->y)[700] = 1000;
	for (size_t i = 0; i < COUNT(guards); i++) {
		mp_run *run = run_new(net, &jumpy, guards[i]);
		need(run, mp_run_set(run, "shuffle", "no"));
		need(run, mp_run_train(run, data, NULL, NULL, NULL));
		if (i) {
			assert_string_equal(run->fingerprint, fingerprint);
			assert_int_equal(faults(run), 0);
			assert_in_range(guard_count(run->guard)->replays, 1, EPOCHS / 2);
		}
		strcpy(fingerprint, run->fingerprint);
		mp_run_close(run);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* Options that may be changed in the middle of a run are no faults, nor what binding data makes of them. */
static int change_options(void *user, mp_run *run, const mp_report *report)
{
	static const char *const values[] = { "0.1", "0.2", "0.3" };
	(void)user;
	need(run, mp_run_set(run, "threshold", values[report->epoch % 3]));
	return 0;
}

static int tick_nothing(void *user, mp_run *run)
{
	(void)user, (void)run;
	return 0;
}

static void options_may_change(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	static const char *const guards[] = { "off", "light", "full" };
	char fingerprint[33] = "";
	for (size_t i = 0; i < COUNT(guards); i++) {
		mp_run *run = run_new(net, &settings[0], guards[i]);
		need(run, mp_run_set(run, "report", "1"));
		need(run, mp_run_set(run, "keep-best", "yes"));
		mp_run_on_tick(run, 0, tick_nothing, NULL);
		need(run, mp_run_train(run, data, data, change_options, NULL));
		if (i) {
			assert_string_equal(run->fingerprint, fingerprint);
			assert_int_equal(faults(run), 0);
		}
		strcpy(fingerprint, run->fingerprint);
		mp_run_close(run);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* Weights flip at every update: it gives up, and says so. */
static void always(void *user, int moment, void *sum, uint64_t bytes)
{
	mp_run *run = user;
	Region r[MOST_REGIONS];
	(void)sum;
	(void)bytes;
	if (moment == HOOK_SUMMED && run->target->guard->regions(run->program, r))
		flip_in(r[0].at, r[0].bytes, 99);
}

static void what_fails_for_ever_ends(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	mp_run *run = run_new(net, &settings[0], "full");
	run->test_hook = always;
	run->test_hook_user = run;
	assert_int_equal(mp_run_train(run, data, NULL, NULL, NULL), MP_FAILED);
	expect_words(mp_run_messages(run), "fails again and again: bit 3 of number 3 of the weights changed by itself");
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_see_bits),
		cmocka_unit_test(flips_are_undone),
		cmocka_unit_test(nothing_is_found_where_nothing_is),
		cmocka_unit_test(padding_comes_out_the_same),
		cmocka_unit_test(settling_is_no_fault),
		cmocka_unit_test(threads_share_checksums),
		cmocka_unit_test(mapped_data_is_read_again),
		cmocka_unit_test(a_core_is_named),
		cmocka_unit_test(jumps_are_not_replayed_for_ever),
		cmocka_unit_test(options_may_change),
		cmocka_unit_test(what_fails_for_ever_ends),
	};
	cmocka_set_test_filter(getenv("MICROPROP_TEST"));
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
