/* SPDX-License-Identifier: MIT */
/* Tiny networks whose updates the cpu target does in one go: the bits of the same updates one by one, on random
 * networks with all kinds of vectors and inputs; and whole runs of them: what ends them, in which order cases come,
 * stopping and going on. */
#include "cpu_nets.h"
#include "runs.h"

static const Until never_reached = { NAN, NAN, NAN };

/* ---- random networks ---- */

enum { EPOCHS = 3, MOST_CASES = 60, MOST_UPDATES = EPOCHS * MOST_CASES };

/* Some epochs in an order of their own, from inside the first on; perhaps not to the end of the last. */
typedef struct Road {
	uint64_t examples, batch, done, count;
	uint64_t example[MOST_UPDATES];
	Update update[MOST_UPDATES];
	bool shuffled, same;
} Road;

static void roll_road(Dice *d, const Options *o, uint64_t examples, Road *r)
{
	uint64_t most = examples < 12 ? examples : 12, first;
	*r = (Road){ .examples = examples,
		         .batch = one_in(d, 2) ? 1 : 1 + roll(d, (uint32_t)most),
		         .shuffled = !one_in(d, 3) };
	uint64_t in_epoch = (examples + r->batch - 1) / r->batch, left;
	r->done = one_in(d, 2) ? 0 : r->batch * roll(d, (uint32_t)in_epoch);
	left = EPOCHS * in_epoch - r->done / r->batch;
	r->count = one_in(d, 2) ? left : 1 + roll(d, (uint32_t)left);
	r->same = !rules[o->rule].needs_count && one_in(d, 2);
	for (uint64_t i = 0; i < MOST_UPDATES; i++) {
		r->example[i] = roll(d, (uint32_t)examples);
		update_fill(o, 7 + i, (double)i / 10, 0.1, &r->update[i]);
		r->update[i].param[P_RATE] *= r->same ? 1 : 1 / (1 + (double)i);
	}
	for (first = 0; !r->shuffled && first < MOST_UPDATES; first++)
		r->example[first] = (r->done + first) % examples;
}

/* One by one: tallies of the epochs. */
static void walk(Side *s, const Road *r, Tally *tally)
{
	uint64_t place = r->done, at = 0;
	for (uint64_t k = 0; k < r->count; k++) {
		uint64_t left = r->examples - place, count = left < r->batch ? left : r->batch;
		Tally t = side_learn(s, (Batch){ .example = r->example + at, .count = count });
		s->target->apply(s->program, &r->update[r->same ? 0 : k]);
		tally_add(tally, &t);
		at += count;
		place += count;
		tally += place == r->examples;
		place = place == r->examples ? 0 : place;
	}
}

/* Did the target do it in one go, or in several? */
static bool leap(Side *s, const Road *r, Tally *tally)
{
	uint64_t place = r->done, at = 0;
	for (uint64_t k = 0, done; k < r->count; k += done) {
		Updates some = { .examples = r->examples,
			             .batch = r->batch,
			             .done = place,
			             .count = r->count - k,
			             .example = r->shuffled ? r->example + at : NULL,
			             .update = r->update + (r->same ? 0 : k),
			             .same = r->same,
			             .until = &never_reached,
			             .stop = &s->stop,
			             .tally = tally };
		done = s->target->run_updates(s->program, &some);
		assert_true(done <= some.count && (done || !k));
		if (!done)
			return false;
		for (uint64_t i = 0; i < done; i++) {
			uint64_t left = r->examples - place, count = left < r->batch ? left : r->batch;
			at += count;
			place = place + count == r->examples ? 0 : place + count;
			tally += !place;
		}
	}
	return true;
}

static void same_state(const char *text, Side *a, Side *b)
{
	uint64_t n = a->net->links;
	double *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
	for (int which = 0; which <= rules[a->opt.rule].states; which++) {
		a->target->get(a->program, which, 0, ALL_LINKS, x);
		b->target->get(b->program, which, 0, ALL_LINKS, y);
		if (memcmp(x, y, n * sizeof *x))
			print_error("%s%s, %s, batch %d: other weights or state\n", text, isa_name(b->way.isa),
			            b->way.index ? "index" : "dense", (int)b->way.batch);
		assert_memory_equal(x, y, n * sizeof *x);
	}
	free(x);
	free(y);
}

/* Two roads, one after the other. */
static uint64_t travel(uint64_t seed)
{
	static Draft t;
	static Road r;
	draft(&t, seed, 6, true);
	Side plain, s;
	side_open(&plain, &target_cpu, t.text, (Way){ .isa = best_isa(), .threads = 1, .batch = BATCH_ALL });
	Cases c = cases_make(&t.d, plain.net, 1 + roll(&t.d, MOST_CASES), true);
	side_take(&plain, &c);
	uint64_t leaps = 0;
	Dice dice = t.d;
	Tally want[2][EPOCHS] = { { { 0 } } };
	for (int k = 0; k < 2; k++) {
		roll_road(&dice, &plain.opt, c.dense.cases, &r);
		walk(&plain, &r, want[k]);
	}
	for (int isa = best_isa(); isa >= 0; isa--) {
		Dice again = t.d;
		side_open(&s, &target_cpu, t.text,
		          (Way){ .isa = isa, .threads = 1, .batch = 1, .index = (seed + (uint64_t)isa) % 2 });
		side_take(&s, &c);
		for (int k = 0; k < 2; k++) {
			Tally have[EPOCHS] = { { 0 } };
			roll_road(&again, &s.opt, c.dense.cases, &r);
			bool leapt = leap(&s, &r, have);
			leaps += leapt;
			if (!leapt) {
				memset(have, 0, sizeof have);
				walk(&s, &r, have);
			}
			if (memcmp(have, want[k], sizeof have))
				print_error("%s%s, %s, network %llu: other tallies\n", t.text, isa_name(isa),
				            s.way.index ? "index" : "dense", (unsigned long long)seed);
			assert_memory_equal(have, want[k], sizeof have);
		}
		same_state(t.text, &plain, &s);
		side_close(&s);
	}
	cases_free(&c);
	side_close(&plain);
	return leaps;
}

/* Not every network is tiny, and has its inputs first. */
static void updates_in_one_go(void **state)
{
	(void)state;
	enum { NETWORKS = 400 };
	const char *more = getenv("MICROPROP_NETWORKS");
	uint64_t leaps = 0;
	for (uint64_t seed = 1; seed <= NETWORKS + (more ? strtoull(more, NULL, 10) : 0); seed++)
		leaps += travel(seed);
	assert_true(leaps > NETWORKS / 2);
}

/* ---- runs ---- */

typedef struct Trip {
	const char *option[8];
} Trip; /* names and values */

static mp_run *trip_run(const mp_net *net, const Trip *t, uint64_t number)
{
	static const char *const input[] = { "dense", "index" };
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "cpu"));
	need(run, mp_run_set(run, "input", input[number % 2]));
	for (size_t i = 0; i < COUNT(t->option) && t->option[i]; i += 2)
		need(run, mp_run_set(run, t->option[i], t->option[i + 1]));
	return run;
}

static mp_net *example(const char *name)
{
	char path[512];
	mp_net *net;
	snprintf(path, sizeof path, "%s/examples/%s.topo", SOURCE_DIR, name);
	assert_int_equal(mp_net_open(&net, path, NULL), MP_OK);
	return net;
}

static mp_data *data_of(const mp_net *net)
{
	mp_data *data;
	assert_int_equal(mp_data_open(&data, mp_net_get_info(net)->data, NULL, NULL), MP_OK);
	return data;
}

static void same_end(mp_run *a, mp_run *b)
{
	const mp_report *x = mp_run_get_report(a), *y = mp_run_get_report(b);
	for (int k = 0; k <= rules[a->opt.rule].states; k++)
		same_part(a, b, k);
	assert_string_equal(x->fingerprint, y->fingerprint);
	assert_string_equal(x->stopped_by, y->stopped_by);
	assert_true(x->total_error == y->total_error && x->right == y->right && x->within == y->within &&
	            x->rate == y->rate);
	assert_true(x->epoch == y->epoch && x->updates == y->updates && x->solved == y->solved);
	assert_memory_equal(&a->at.tally, &b->at.tally, sizeof a->at.tally);
	assert_true(a->at.done == b->at.done && a->points == b->points && a->at.best == b->at.best &&
	            a->best_at.epoch == b->best_at.epoch);
	assert_memory_equal(&a->at.test, &b->at.test, sizeof a->at.test);
	assert_memory_equal(a->history, b->history, a->points * sizeof a->history[0]);
}

static const char *const nets[] = { "xor", "encoder-8-3-8", "parity-4" };
static const Trip trips[] = {
	{ { "batch", "1", "epochs", "150" } },
	{ { "batch", "1", "updates", "101", "rule", "adam", "rate", "0.01" } },
	{ { "batch", "3", "epochs", "70", "report", "7" } },
	{ { "batch", "1", "shuffle", "off", "updates", "1001" } },
	{ { "batch", "1", "epochs", "3000", "until", "within:1" } },
	{ { "batch", "1", "epochs", "3000", "until", "error:0.05" } },
	{ { "batch", "1", "epochs", "90", "schedule", "cosine", "rate", "0.3" } },
	{ { "batch", "2", "epochs", "20", "warmup", "3.3", "rule", "rprop" } },
	{ { "batch", "1", "epochs", "40", "rule", "doug" } },
};

/* A guard wants to look at every update: such a run goes one by one. Epochs that are tested, or whose weights may
 * be kept, end alike. */
static void runs_end_alike(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(nets) * COUNT(trips); i++) {
		const Trip *t = &trips[i / COUNT(nets)];
		mp_net *net = example(nets[i % COUNT(nets)]);
		mp_data *data = data_of(net);
		setenv("MICROPROP_ISA", isa_name((int)i % (best_isa() + 1)), 1);
		mp_run *one_by_one = trip_run(net, t, i), *at_once = trip_run(net, t, i / 2);
		mp_data *test = i % 3 == 2 ? data : NULL;
		const char *best = i % 2 ? "on" : "off";
		need(one_by_one, mp_run_set(one_by_one, "guard", "light"));
		need(one_by_one, mp_run_set(one_by_one, "keep-best", best));
		need(at_once, mp_run_set(at_once, "keep-best", best));
		need(one_by_one, mp_run_train(one_by_one, data, test, NULL, NULL));
		need(at_once, mp_run_train(at_once, data, test, NULL, NULL));
		same_end(one_by_one, at_once);
		if (i % 2)
			assert_memory_equal(one_by_one->best_weights, at_once->best_weights, best_bytes(at_once));
		unsetenv("MICROPROP_ISA");
		mp_run_close(one_by_one);
		mp_run_close(at_once);
		mp_data_close(data);
		mp_net_close(net);
	}
}

/* Stopped after any number of updates, inside an epoch or not. */
static void resuming_anywhere(void **state)
{
	(void)state;
	static const Trip t = { { "batch", "1", "updates", "30" } },
					  last = { { "batch", "3", "updates", "13", "rule", "adam" } };
	mp_net *net = example("encoder-8-3-8");
	mp_data *data = data_of(net);
	for (int64_t k = 1; k < 30 + 13; k++) {
		const Trip *trip = k < 30 ? &t : &last;
		mp_run *whole = trip_run(net, trip, 0), *half = trip_run(net, trip, 1), *rest = run_of(net);
		char updates[24];
		snprintf(updates, sizeof updates, "%d", (int)(k < 30 ? k : k - 29));
		need(whole, mp_run_train(whole, data, NULL, NULL, NULL));
		need(half, mp_run_set(half, "updates", updates));
		need(half, mp_run_train(half, data, NULL, NULL, NULL));
		need(half, mp_run_save(half, in_folder("half")));
		need(rest, mp_run_resume(rest, in_folder("half")));
		need(rest, mp_run_set(rest, "updates", trip->option[3]));
		need(rest, mp_run_train(rest, data, NULL, NULL, NULL));
		rest->points = whole->points = 0; /* history is not kept in files */
		same_end(whole, rest);
		mp_run_close(whole);
		mp_run_close(half);
		mp_run_close(rest);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- long epochs ---- */

enum { LONG = 10000 };
static const char long_net[] = "group in 3 input\ngroup h 4 tanh\ngroup o 2 output\nconnect in, true -> h\nconnect in, "
							   "h, true -> o\ntrain rate 0.01 until never batch 1\n";

static mp_data *long_data(void)
{
	static float x[LONG * 3], y[LONG * 2];
	mp_data *data;
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i) - 0.5f;
	for (size_t i = 0; i < COUNT(y); i++)
		y[i] = x[i / 2 * 3] * x[i / 2 * 3 + 1 + i % 2] > 0;
	assert_int_equal(mp_data_new(&data, LONG, 3, 2, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

typedef struct Ticks {
	int ticks, inside;
} Ticks;

/* Saved wherever a tick comes; the last of them inside an epoch stays. */
static int save_inside(void *user, mp_run *run)
{
	Ticks *t = user;
	t->ticks++;
	if (run->at.done) {
		t->inside++;
		need(run, mp_run_save(run, in_folder("inside")));
	}
	return 0;
}

static void ticks_come_inside_epochs(void **state)
{
	(void)state;
	static const Trip t = { { "epochs", "3" } };
	mp_net *net = net_of(long_net);
	mp_data *data = long_data();
	mp_run *one_by_one = trip_run(net, &t, 0), *at_once = trip_run(net, &t, 1), *rest = run_of(net);
	Ticks ticks = { 0 };
	need(one_by_one, mp_run_set(one_by_one, "guard", "light"));
	need(one_by_one, mp_run_train(one_by_one, data, NULL, NULL, NULL));
	mp_run_on_tick(at_once, 1e-9, save_inside, &ticks);
	need(at_once, mp_run_train(at_once, data, NULL, NULL, NULL));
	same_end(one_by_one, at_once);
	assert_true(ticks.inside >= 3 && ticks.inside < 100); /* not update by update */
	need(rest, mp_run_resume(rest, in_folder("inside")));
	need(rest, mp_run_train(rest, data, NULL, NULL, NULL));
	one_by_one->points = rest->points = 0;
	same_end(one_by_one, rest);
	mp_run_close(one_by_one);
	mp_run_close(at_once);
	mp_run_close(rest);
	mp_data_close(data);
	mp_net_close(net);
}

static int stop_now(void *user, mp_run *run, const mp_report *r)
{
	(void)user;
	(void)run;
	return !r->stopped_by;
}

/* A report that is due comes at the end of the epoch, however many updates could go on from there. */
static void reports_are_not_passed(void **state)
{
	(void)state;
	static const Trip trips_long[] = { { { "epochs", "900" } },
		                               { { "epochs", "900", "rule", "adam" } },
		                               { { "epochs", "900", "batch", "7" } } };
	mp_net *net = net_of(long_net);
	mp_data *data = long_data();
	for (size_t i = 0; i < COUNT(trips_long); i++) {
		mp_run *run = trip_run(net, &trips_long[i], i);
		assert_int_equal(mp_run_train(run, data, NULL, stop_now, NULL), MP_STOPPED);
		assert_int_equal(mp_run_get_report(run)->epoch, 1);
		assert_int_equal(run->at.done, 0);
		mp_run_close(run);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- numbers that are none ---- */

/* A run that explodes says where, to the update; weights that are infinite while errors are not go on alike. */
static void explosions_are_told_alike(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"group in 2 input\ngroup out 1 linear output\nconnect in -> out\ntrain rate 9 until never batch 1 epochs "
		"4000\ndata \"make:xor\"\n",
		"group in 8 input\ngroup h 3 relu\ngroup o 8 linear output\nconnect in, true -> h\nconnect h, true -> o\n"
		"train rate 3 until never batch 1 epochs 900\ndata \"make:encoder:8-3\"\n",
		"group in 8 input\ngroup h 3\ngroup o 8 output\nconnect in, true -> h\nconnect h, true -> o\n"
		"train rate 1e6 decay 0.5 momentum 0.9 until never batch 1 epochs 20 error cross-entropy\ndata "
		"\"make:encoder:8-3\"\n",
		"group in 8 input\ngroup h 3\ngroup o 8 output\nconnect in, true -> h\nconnect h, true -> o\n"
		"train rate 1e6 decay 0.5 momentum 0.9 until never batch 1 epochs 20\ndata \"make:encoder:8-3\"\n",
	};
	static const Trip none = { { NULL } };
	for (size_t i = 0; i < 2 * COUNT(texts); i++) {
		mp_net *net = net_of(texts[i / 2]);
		mp_data *data = data_of(net);
		mp_run *one_by_one = trip_run(net, &none, i), *at_once = trip_run(net, &none, i);
		need(one_by_one, mp_run_set(one_by_one, "guard", "light"));
		mp_status a = mp_run_train(one_by_one, data, NULL, NULL, NULL),
				  b = mp_run_train(at_once, data, NULL, NULL, NULL);
		assert_int_equal(a, b);
		assert_string_equal(mp_run_messages(one_by_one), mp_run_messages(at_once));
		if (a == MP_OK)
			same_end(one_by_one, at_once);
		mp_run_close(one_by_one);
		mp_run_close(at_once);
		mp_data_close(data);
		mp_net_close(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(updates_in_one_go),      cmocka_unit_test(runs_end_alike),
		cmocka_unit_test(resuming_anywhere),      cmocka_unit_test(ticks_come_inside_epochs),
		cmocka_unit_test(reports_are_not_passed), cmocka_unit_test(explosions_are_told_alike),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
