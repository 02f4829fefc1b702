/* SPDX-License-Identifier: MIT */
/* Random networks on the cpu target: against the oracle, against differences of the error, and against themselves
 * with other vectors, threads and forms of the inputs.
 *
 * How near single precision must come to double is written here. A gradient is a sum over cases in which much may
 * cancel, so it is measured against the largest of its network. Of 500 networks the worst were 6e-7 (outputs), 9e-6
 * (gradients), 3e-7 (errors), 2e-7 (weights), 5e-7 (twenty updates) and 4e-6 (differences). */
#include "cpu_nets.h"
#include "formula_once.h"
#include "pass.h"

#define NEAR_OUTPUT   1e-5 /* of the largest output, or of 1 */
#define NEAR_GRADIENT 2e-5 /* of the largest gradient */
#define NEAR_ERROR    1e-5 /* of the error of all cases together */
#define NEAR_WEIGHT   2e-6 /* of the largest value: weights and state after one update */
#define NEAR_PATH     1e-5 /* of the largest weight, after twenty updates */
#define NEAR_SLOPE    1e-4 /* gradients against differences, of the largest gradient */

enum { WAYS = 5, UPDATES = 3 };

typedef struct Worst {
	double output, gradient, error, weight, slope, path;
	uint64_t doubtful, cases, tiny;
} Worst;
static Worst worst; /* shown with MICROPROP_LOUD */

typedef struct Trial {
	Draft t;
	Cases c;
	Side ref, way[WAYS]; /* way 0: the best vectors, one thread, dense */
	uint32_t ways;
	uint64_t links, examples, cases, *order;
	uint32_t outputs;
	double *a, *b;                /* room for two of any vectors */
	double *g, *v[2 + MAX_STATE]; /* gradient; weights and state before an update */
	Formula formula;
} Trial;

static void show(const Trial *t, const Side *s)
{
	static const char *const inputs[] = { "dense", "index" };
	print_error("%s%s, %d threads, %s, batch %d, %llu cases, %llu examples%s\n", t->t.text, isa_name(s->way.isa),
	            s->way.threads, inputs[s->way.index], (int)s->way.batch, (unsigned long long)t->cases,
	            (unsigned long long)t->examples, s->way.pieces ? ", leaf by leaf" : "");
}

static double largest(const double *v, uint64_t n, double least)
{
	for (uint64_t i = 0; i < n; i++)
		least = fmax(least, fabs(v[i]));
	return least;
}

static bool is_frozen(const Net *net, uint64_t link) { return net_block(net, net_target(net, link), link)->frozen; }

/* |a - b| as a share of reach, the worst of all; must not pass `most`. */
static void near_all(const Trial *t, const Side *s, const char *what, const double *a, const double *b, uint64_t n,
                     double reach, double most, double *ever)
{
	uint64_t at = 0;
	double far = 0;
	for (uint64_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) / reach <= far)) {
			far = fabs(a[i] - b[i]) / reach;
			at = i;
		}
	*ever = fmax(*ever, far);
	if (far <= most)
		return;
	show(t, s);
	print_error("%s %llu is %.9g, should be %.9g, largest %g\n", what, (unsigned long long)at, a[at], b[at], reach);
	assert_true(false);
}

static void same_all(const Trial *t, const Side *s, const char *what, const double *a, const double *b, uint64_t n)
{
	uint64_t at = 0;
	while (at < n && memcmp(a + at, b + at, sizeof *a) == 0)
		at++;
	if (at == n)
		return;
	show(t, s);
	print_error("%s %llu is %.9g, but %.9g in the plain way\n", what, (unsigned long long)at, b[at], a[at]);
	assert_true(false);
}

static void same_tally(const Trial *t, const Side *s, Tally a, Tally b)
{
	bool error = s->way.pieces ? fabs(a.error - b.error) <= 1e-12 * fabs(a.error) : a.error == b.error;
	if (error && a.cases == b.cases && a.scored == b.scored && a.right == b.right && a.within == b.within)
		return;
	show(t, s);
	print_error("error %.17g, right %llu, within %llu; in the plain way %.17g, %llu, %llu\n", b.error,
	            (unsigned long long)b.right, (unsigned long long)b.within, a.error, (unsigned long long)a.right,
	            (unsigned long long)a.within);
	assert_true(false);
}

/* ---- outputs ---- */

/* Of output k. */
static double criterion(const Trial *t, uint32_t k)
{
	const Group *g = t->ref.net->group;
	for (;; g++) {
		if (g->role != ROLE_OUTPUT)
			continue;
		if (k < g->size)
			return group_criterion(g, t->ref.opt.threshold);
		k -= g->size;
	}
}

/* Could rounding change what the case counts for?  out: by the oracle. */
static bool is_doubtful(const Trial *t, const double *out, const float *y)
{
	const Data *d = &t->c.dense;
	double threshold, middle = 0.5, reach = largest(out, t->outputs, 1) * NEAR_OUTPUT, best[2] = { INFINITY, INFINITY };
	bool doubtful = false;
	for (uint32_t k = 0; k < (d->codes ? d->code_count : t->outputs); k++) {
		double x = 0; /* the two least of these decide: distances from codes, or outputs below zero */
		if (!d->codes && isnan(y[k]))
			continue;
		for (uint32_t i = 0; d->codes && i < t->outputs; i++)
			x += isnan(y[i]) ? 0 : (out[i] - d->codes[k * t->outputs + i]) * (out[i] - d->codes[k * t->outputs + i]);
		if (!d->codes) {
			x = -out[k];
			threshold = criterion(t, k);
			doubtful |= fabs(fabs(out[k] - y[k]) - threshold) <= reach || fabs(out[k] - middle) <= reach;
		}
		best[1] = fmin(best[1], fmax(best[0], x));
		best[0] = fmin(best[0], x);
	}
	for (uint32_t i = 0; d->codes && i < t->outputs; i++)
		doubtful |= fabs(fabs(out[i] - y[i]) - criterion(t, i)) <= reach;
	return doubtful || (best[0] < best[1] && best[1] - best[0] <= (d->codes ? 4 * t->outputs * reach : reach));
}

static uint64_t count_doubtful(const Trial *t, const double *out)
{
	float *y = calloc(t->outputs, sizeof *y);
	uint64_t count = 0;
	for (uint64_t i = 0; i < t->cases; i++) {
		data_y(&t->c.dense, i, y);
		count += is_doubtful(t, out + i * t->outputs, y);
	}
	free(y);
	worst.doubtful += count;
	worst.cases += t->cases;
	return count;
}

static bool about(uint64_t a, uint64_t b, uint64_t doubtful) { return (a > b ? a - b : b - a) <= doubtful; }

static Tally side_test(Side *s, uint64_t first, uint64_t count, double *out)
{
	Tally t = { 0 };
	side_ok(s, s->target->evaluate(s->program, first, count, &s->stop, out, &t));
	return t;
}

/* Outputs and scores of all examples, then of some of them. */
static void outputs_agree(Trial *t)
{
	uint64_t n = t->cases * t->outputs, some = t->examples / 3, first, unused;
	Side *plain = &t->way[0];
	Tally want = side_test(&t->ref, 0, t->examples, t->a), have = side_test(plain, 0, t->examples, t->b), half;
	near_all(t, plain, "output", t->b, t->a, n, largest(t->a, n, 1), NEAR_OUTPUT, &worst.output);
	near_all(t, plain, "error", &have.error, &want.error, 1, want.error + 1e-3 * (double)t->cases, NEAR_ERROR,
	         &worst.error);
	uint64_t doubtful = count_doubtful(t, t->a);
	if (!about(want.right, have.right, doubtful) || !about(want.within, have.within, doubtful)) {
		show(t, plain);
		print_error("%llu right, should be %llu; %llu within, should be %llu; %llu doubtful\n",
		            (unsigned long long)have.right, (unsigned long long)want.right, (unsigned long long)have.within,
		            (unsigned long long)want.within, (unsigned long long)doubtful);
	}
	assert_true(about(want.right, have.right, doubtful) && about(want.within, have.within, doubtful));
	assert_true(want.cases == have.cases && want.scored == have.scored);
	for (uint32_t k = 1; k < t->ways; k++) {
		same_tally(t, &t->way[k], have, side_test(&t->way[k], 0, t->examples, t->a));
		same_all(t, &t->way[k], "output", t->b, t->a, n);
	}
	if (!some || !t->c.dense.seq != !plain->net->copies)
		return;
	data_example(&t->c.dense, some, &first, &unused);
	half = side_test(plain, some, some, t->a);
	same_all(t, plain, "output of some examples", t->b + first * t->outputs, t->a, half.cases * t->outputs);
}

/* ---- gradients ---- */

static double error_with(Trial *t, uint64_t link, double value)
{
	double old = t->v[0][link];
	t->v[0][link] = value;
	t->ref.target->set(t->ref.program, 0, 0, ALL_LINKS, t->v[0]);
	t->v[0][link] = old;
	return side_test(&t->ref, 0, t->examples, NULL).error;
}

/* Some links: the slope of the error, by differences of it in double. Not where errors are cut off on purpose, nor
 * where the error has kinks. */
static void slopes_agree(Trial *t, double reach)
{
	const double h = 1e-5;
	const Options *o = &t->ref.opt;
	bool kinks = o->prime_offset > 0 || (t->ref.net->timed && o->bptt != BPTT_FULL);
	for (uint32_t k = 0; k < t->t.groups; k++)
		kinks |= t->t.fn[k] == FN_RELU;
	for (int i = 0; i < 4 && !kinks; i++) {
		uint64_t link = random_below(t->t.d.seed, STREAM_DATA, t->t.d.count++, t->links);
		double w = t->v[0][link], slope = (error_with(t, link, w + h) - error_with(t, link, w - h)) / (2 * h);
		if (!is_frozen(t->ref.net, link))
			near_all(t, &t->way[0], "gradient by differences", &t->g[link], &slope, 1, reach, NEAR_SLOPE, &worst.slope);
	}
	t->ref.target->set(t->ref.program, 0, 0, ALL_LINKS, t->v[0]);
}

/* Gradients of frozen links are not needed. */
static void take_gradient(const Side *s, double *g)
{
	s->target->gradient(s->program, g);
	for (uint64_t i = 0; i < s->net->links; i++)
		if (is_frozen(s->net, i))
			g[i] = 0;
}

static void gradients_agree(Trial *t, Batch b)
{
	Side *plain = &t->way[0];
	Tally want = side_learn(&t->ref, b), have = side_learn(plain, b);
	take_gradient(&t->ref, t->a);
	take_gradient(plain, t->g);
	double reach = largest(t->a, t->links, 1e-6);
	near_all(t, plain, "gradient", t->g, t->a, t->links, reach, NEAR_GRADIENT, &worst.gradient);
	near_all(t, plain, "error of a batch", &have.error, &want.error, 1, want.error + 1e-3 * (double)want.cases,
	         NEAR_ERROR, &worst.error);
	for (uint32_t k = 1; k < t->ways; k++) {
		same_tally(t, &t->way[k], have, side_learn(&t->way[k], b));
		take_gradient(&t->way[k], t->b);
		same_all(t, &t->way[k], "gradient", t->g, t->b, t->links);
	}
	if (b.count == t->examples && !b.example && !plain->net->noisy) {
		same_tally(t, plain, have, side_test(plain, 0, t->examples, NULL));
		if (!plain->net->shaped) /* test_shape has these */
			slopes_agree(t, reach);
	}
}

/* ---- updates ---- */

/* v becomes what the rule makes of it with gradient g. */
static void formula_all(Trial *t, uint64_t number)
{
	const Net *net = t->ref.net;
	const Rule *rule = &rules[t->ref.opt.rule];
	uint8_t *frozen = calloc(t->links, 1);
	Update u;
	update_fill(&t->ref.opt, number, 0, 0, &u);
	for (uint64_t i = 0; i < t->links; i++)
		frozen[i] = is_frozen(net, i);
	if (rule->needs_norm)
		u.param[P_CLIP] = 1 / fmax(1, rule_norm(t->g, frozen, t->links));
	double rate = u.param[P_RATE];
	for (int i = 0; i < P_COUNT; i++)
		u.param[i] = (float)u.param[i];
	for (uint64_t i = 0; i < t->links; i++) {
		double variable[2 + MAX_STATE] = { t->g[i], t->v[0][i] };
		for (int k = 0; k < rule->states; k++)
			variable[2 + k] = t->v[1 + k][i];
		const Block *b = net_block(net, net_target(net, i), i);
		u.param[P_RATE] = (float)(rate * b->rate);
		u.param[P_DECAY] = (float)(b->decay < 0 ? t->ref.opt.decay : b->decay);
		if (!frozen[i])
			formula_once(&t->formula, u.param, variable);
		double limited = fmin(fmax(variable[1], (float)b->limit[0]), (float)b->limit[1]);
		for (int k = 0; k < rule->states && !frozen[i]; k++)
			variable[2 + k] += strcmp(rule->state[k], "step") == 0 ? limited - variable[1] : 0;
		variable[1] = frozen[i] ? variable[1] : limited;
		for (int k = 0; k <= rule->states; k++)
			t->v[k][i] = variable[1 + k];
	}
	free(frozen);
}

/* Weights and state as in the plain way; the oracle goes on from there. */
static void same_weights(Trial *t)
{
	for (int which = 0; which <= rules[t->ref.opt.rule].states; which++) {
		t->way[0].target->get(t->way[0].program, which, 0, ALL_LINKS, t->v[which]);
		t->ref.target->set(t->ref.program, which, 0, ALL_LINKS, t->v[which]);
		for (uint32_t k = 1; k < t->ways; k++) {
			t->way[k].target->get(t->way[k].program, which, 0, ALL_LINKS, t->b);
			same_all(t, &t->way[k], which ? "state" : "weight", t->v[which], t->b, t->links);
		}
	}
}

/* The rule is worked out on the very gradient that the cpu has: many rules look at its sign alone, and the oracle's
 * may have another one where it is nearly zero. */
static void updates_agree(Trial *t, uint64_t number)
{
	side_update(&t->ref, number);
	formula_all(t, number);
	for (uint32_t k = 0; k < t->ways; k++)
		side_update(&t->way[k], number);
	for (int which = 0; which <= rules[t->ref.opt.rule].states; which++) {
		t->way[0].target->get(t->way[0].program, which, 0, ALL_LINKS, t->a);
		near_all(t, &t->way[0], which ? "state" : "weight", t->a, t->v[which], t->links,
		         largest(t->v[which], t->links, which ? 1e-3 : 0.1), NEAR_WEIGHT, &worst.weight);
	}
	same_weights(t);
}

/* Examples one by one.  The oracle goes along where its path cannot fork, that is where no rule looks at a sign. */
static void online_agrees(Trial *t, uint64_t number)
{
	const char *rule = rules[t->ref.opt.rule].name;
	bool smooth = strcmp(rule, "momentum") == 0 || strcmp(rule, "nesterov") == 0;
	for (uint64_t i = 0; i < 20; i++) {
		Batch b = { .first = (i * i + 1) % t->examples, .count = 1 };
		bool look = one_in(&t->t.d, 4);
		if (smooth) {
			side_learn(&t->ref, b);
			side_update(&t->ref, number + i);
		}
		Tally have = side_learn(&t->way[0], b);
		take_gradient(&t->way[0], t->g);
		side_update(&t->way[0], number + i);
		for (uint32_t k = 1; k < t->ways; k++) {
			Side *s = &t->way[k];
			same_tally(t, s, have, side_learn(s, b));
			if (look) {
				take_gradient(s, t->b);
				same_all(t, s, "gradient of one example", t->g, t->b, t->links);
				side_test(s, 0, 1, NULL);
			}
			side_update(s, number + i);
		}
	}
	if (smooth) {
		t->ref.target->get(t->ref.program, 0, 0, ALL_LINKS, t->a);
		t->way[0].target->get(t->way[0].program, 0, 0, ALL_LINKS, t->b);
		near_all(t, &t->way[0], "weight after examples one by one", t->b, t->a, t->links, largest(t->a, t->links, 0.1),
		         NEAR_PATH, &worst.path);
	}
	same_weights(t);
}

/* Some whole epochs, in one go where the target has a way to. */
static void epochs_agree(Trial *t, uint64_t number)
{
	enum { EPOCHS = 5 };
	Update u[EPOCHS];
	Tally tally[WAYS][EPOCHS] = { { { 0 } } };
	StopFlag never = 0;
	for (int i = 0; i < EPOCHS; i++)
		update_fill(&t->ref.opt, number + (uint64_t)i, 0, 0, &u[i]);
	for (uint32_t k = 0; k < t->ways; k++) {
		Side *s = &t->way[k];
		Updates all = { .examples = t->examples,
			            .batch = t->examples,
			            .count = EPOCHS,
			            .update = u,
			            .until = &(Until){ NAN, NAN, NAN },
			            .stop = &never,
			            .tally = tally[k] };
		uint64_t done = k ? s->target->run_updates(s->program, &all) : 0;
		worst.tiny += done > 0;
		assert_true(done == 0 || done == EPOCHS);
		for (; done < EPOCHS; done++) {
			tally[k][done] = side_learn(s, (Batch){ .count = t->examples });
			s->target->apply(s->program, &u[done]);
		}
		for (int i = 0; i < EPOCHS; i++)
			same_tally(t, s, tally[0][i], tally[k][i]);
	}
	same_weights(t);
}

/* ---- trials ---- */

static void parse_formula(Ctx *cx, void *arg)
{
	Trial *t = arg;
	formula_parse(cx, &rules[t->ref.opt.rule], &t->formula);
}

static double *numbers(uint64_t n) { return calloc(n + 1, sizeof(double)); }

/* Few cases, or enough for threads to share, or several leaves. */
static uint64_t roll_cases(Dice *d, const Net *net, bool plain)
{
	uint64_t shared = 2200000 / net->links + 1, many = shared < 1700 ? shared : 1700;
	switch (plain ? 3 : roll(d, 4)) {
	case 0: return net->copies || net->links > 2000 ? 50 : 513 + roll(d, 1200);
	case 1:
	case 2: return many + roll(d, 100);
	default: return 1 + roll(d, 60);
	}
}

static Way roll_way(Dice *d, int isa)
{
	static const int threads[] = { 1, 2, 3, 8 }, batches[] = { BATCH_ALL, 1, 1, 16 };
	return (Way){ .isa = isa,
		          .threads = threads[roll(d, 4)],
		          .batch = batches[roll(d, 4)],
		          .index = one_in(d, 2),
		          .pieces = one_in(d, 3) };
}

/* The plain way, one with every kind of vectors that there is, and one more. How many there are must not change the
 * cases that follow. */
static void open_ways(Trial *t)
{
	Dice d = { t->t.d.seed, (uint64_t)1 << 40 };
	side_open(&t->way[t->ways++], &target_cpu, t->t.text, (Way){ .isa = best_isa(), .threads = 1, .batch = BATCH_ALL });
	for (int isa = best_isa(); isa >= 0; isa--)
		side_open(&t->way[t->ways++], &target_cpu, t->t.text, roll_way(&d, isa));
	side_open(&t->way[t->ways++], &target_cpu, t->t.text, roll_way(&d, best_isa()));
}

static void open_trial(Trial *t, uint64_t seed, uint32_t most, bool plain, bool settles, bool shaped)
{
	*t = (Trial){ .ways = 0 };
	draft_kind(&t->t, seed, most, plain, settles, shaped);
	side_open(&t->ref, &target_ref, t->t.text, (Way){ .threads = 1 });
	side_ok(&t->ref, guarded(&t->ref.cx, parse_formula, t));
	open_ways(t);
	t->links = t->ref.net->links;
	t->outputs = t->ref.net->outputs;
	t->cases = roll_cases(&t->t.d, t->ref.net, plain);
	t->c = cases_make(&t->t.d, t->ref.net, t->cases, plain);
	t->examples = run_examples(t->ref.net, &t->c.dense);
	t->order = calloc(t->examples, sizeof *t->order);
	for (uint64_t i = 0; i < t->examples; i++)
		t->order[i] = (i * 7 + 3) % t->examples;
	uint64_t room = t->links > t->cases * t->outputs ? t->links : t->cases * t->outputs;
	t->a = numbers(room);
	t->b = numbers(room);
	t->g = numbers(t->links);
	for (int k = 0; k <= rules[t->ref.opt.rule].states; k++) {
		t->v[k] = numbers(t->links);
		t->way[0].target->get(t->way[0].program, k, 0, ALL_LINKS, t->v[k]);
		t->ref.target->set(t->ref.program, k, 0, ALL_LINKS, t->v[k]);
	}
	side_take(&t->ref, &t->c);
	for (uint32_t k = 0; k < t->ways; k++)
		side_take(&t->way[k], &t->c);
}

static void close_trial(Trial *t)
{
	cases_free(&t->c);
	side_close(&t->ref);
	for (uint32_t k = 0; k < t->ways; k++)
		side_close(&t->way[k]);
	free(t->order);
	free(t->a);
	free(t->b);
	free(t->g);
	for (size_t k = 0; k < COUNT(t->v); k++)
		free(t->v[k]);
}

/* Linear units that remember may learn to grow without bounds, and then nothing can be said. */
static bool is_tame(Trial *t)
{
	double error = side_test(&t->way[0], 0, t->examples, NULL).error;
	return error < 1e4 * (double)t->cases;
}

/* Updates from the same weights and state: all cases, some of them in another order, all again. */
static void agree(uint64_t seed, uint32_t most, bool plain, bool settles, bool shaped)
{
	static Trial t;
	open_trial(&t, seed, most, plain, settles, shaped);
	outputs_agree(&t);
	for (uint64_t update = 0; update < UPDATES; update++) {
		Batch all = { .count = t.examples, .update = update },
			  some = { .example = t.order, .count = 1 + t.examples / 2, .update = update };
		gradients_agree(&t, update == 1 ? some : all);
		updates_agree(&t, update + 1);
	}
	outputs_agree(&t);
	if (is_tame(&t))
		online_agrees(&t, UPDATES + 1);
	if (is_tame(&t))
		epochs_agree(&t, UPDATES + 21);
	close_trial(&t);
}

/* MICROPROP_NETWORKS=N: N more. */
static void agree_all(uint64_t count, bool settles, bool shaped)
{
	static const uint32_t sizes[] = { 60, 20, 40, 6 };
	const char *more = getenv("MICROPROP_NETWORKS"), *first = getenv("MICROPROP_SEED");
	uint64_t start = first ? strtoull(first, NULL, 10) : 1;
	for (uint64_t seed = start; seed < start + count + (more ? strtoull(more, NULL, 10) : 0); seed++) {
		if (getenv("MICROPROP_LOUD"))
			print_message("network %llu\n", (unsigned long long)seed);
		agree(seed, sizes[seed % COUNT(sizes)], !settles && seed % COUNT(sizes) == 3,
		      settles || (shaped && seed % 3 == 0), shaped);
	}
	if (getenv("MICROPROP_LOUD"))
		print_message("worst: outputs %g, gradients %g, errors %g, weights and state %g, slopes %g, paths %g; %llu of "
		              "%llu cases doubtful; "
		              "%llu times whole epochs\n",
		              worst.output, worst.gradient, worst.error, worst.weight, worst.slope, worst.path,
		              (unsigned long long)worst.doubtful, (unsigned long long)worst.cases,
		              (unsigned long long)worst.tiny);
}

static void random_networks_agree(void **state)
{
	(void)state;
	agree_all(60, false, false);
}

static void settling_networks_agree(void **state)
{
	(void)state;
	agree_all(24, true, false);
}

static void shaped_networks_agree(void **state)
{
	(void)state;
	agree_all(9, false, true);
}

/* ---- large weights ---- */

/* Of large weights there is no other form, unless batches will be of one case: passes turn them. The same bits,
 * also where a panel leads from some columns of a part, or errors of a part come from several. */
static void transposed_weights_agree(void **state)
{
	(void)state;
	static const char *const nets[] = {
		"group a 5 input\ngroup b 263\ngroup c 270 tanh\ngroup d 3 output\nconnect a, true -> b\nconnect b, true -> "
		"c\nconnect c, true -> d\n",
		"group a 9 input\ngroup b 288\ngroup c 256 output\ngroup d 257 output\nconnect a, true -> b\nconnect b[7:275], "
		"true -> c\n"
		"connect b[1:260], c[3:11] -> d\n",
		"group a 5 input\ngroup b 263\ngroup c 270 output\nconnect a, true -> b\nconnect b, true -> c\ntrain precision "
		"bf16\n",
	};
	static const Way ways[] = { { .batch = 1, .threads = 1 },
		                        { .batch = BATCH_ALL, .threads = 1 },
		                        { .batch = 45, .threads = 2 } };
	for (size_t i = 0; i < COUNT(nets); i++)
		for (int isa = ISA_GENERIC; isa <= best_isa(); isa++) {
			uint64_t copies[COUNT(ways)], links = 0;
			double *g[COUNT(ways)];
			for (size_t k = 0; k < COUNT(ways); k++) {
				Side s;
				Way way = ways[k];
				way.isa = isa;
				side_open(&s, &target_cpu, nets[i], way);
				Cases c = cases_make(&(Dice){ i + 1, 0 }, s.net, 45, true);
				links = s.net->links;
				copies[k] = s.program->layout->copy_floats;
				g[k] = calloc(links, sizeof *g[k]);
				side_take(&s, &c);
				for (uint64_t update = 1; update <= 2; update++) {
					side_learn(&s, (Batch){ .count = 45 });
					s.target->gradient(s.program, g[k]);
					side_update(&s, update);
				}
				side_close(&s);
				cases_free(&c);
			}
			for (size_t k = 1; k < COUNT(ways); k++) {
				assert_true(copies[k] < 1 << 13 && copies[0] > 1 << 16);
				assert_memory_equal(g[k], g[0], links * sizeof *g[k]);
			}
			for (size_t k = 0; k < COUNT(ways); k++)
				free(g[k]);
		}
}

/* ---- rows ---- */

/* Ticks without targets have no errors, whatever was in their rows before. */
static void rows_of_other_batches_do_not_matter(void **state)
{
	(void)state;
	enum { CASES = 9 };
	const char *net = "group a 4 input\ngroup b 6\ngroup c 3 output\nconnect a, b, true -> b\nconnect b, true -> c\n"
					  "train error squared bptt full ticks 4 targets-from 3\n";
	uint64_t other[] = { 3, 1, 2 };

	for (int isa = ISA_GENERIC; isa <= best_isa(); isa++) {
		Side used, fresh;
		Way way = { .isa = isa, .threads = 1, .batch = BATCH_ALL };
		side_open(&used, &target_cpu, net, way);
		side_open(&fresh, &target_cpu, net, way);
		Cases c = cases_make(&(Dice){ 1, 0 }, used.net, CASES, true);
		for (uint32_t i = 0; i < CASES; i++)
			c.ticks[i] = 2 + i % 3;
		memcpy(c.seq, (const uint64_t[]){ 0, 2, 5, 6, CASES }, 5 * sizeof *c.seq);
		c.dense.ticks = c.ticks;
		c.dense.seq = c.seq;
		c.dense.sequences = 4;
		side_take(&used, &c);
		side_take(&fresh, &c);
		uint64_t links = used.net->links;
		double *a = numbers(links), *b = numbers(links);
		side_learn(&used, (Batch){ .count = 4 });
		side_update(&used, 1);
		used.target->get(used.program, 0, 0, ALL_LINKS, a);
		fresh.target->set(fresh.program, 0, 0, ALL_LINKS, a);
		side_learn(&used, (Batch){ .example = other, .count = COUNT(other) });
		side_learn(&fresh, (Batch){ .example = other, .count = COUNT(other) });
		used.target->gradient(used.program, a);
		fresh.target->gradient(fresh.program, b);
		assert_memory_equal(a, b, links * sizeof *a);
		free(a);
		free(b);
		side_close(&used);
		side_close(&fresh);
		cases_free(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_agree),
		cmocka_unit_test(settling_networks_agree),
		cmocka_unit_test(shaped_networks_agree),
		cmocka_unit_test(transposed_weights_agree),
		cmocka_unit_test(rows_of_other_batches_do_not_matter),
	};
	cmocka_set_test_filter(getenv("MICROPROP_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
