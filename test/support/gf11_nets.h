/* SPDX-License-Identifier: MIT */
/* What the tests of training on the GF11 share: random networks of any kind, and one network with its cases on one
 * target. */
#ifndef GF11_NETS_H
#define GF11_NETS_H

#include <math.h>

#include "gf11_net.h"
#include "runs.h"

extern const Target target_ref, target_gf11;

/* ---- random networks ---- */

typedef struct Dice {
	uint64_t seed, count;
} Dice;

static inline uint32_t roll(Dice *d, uint32_t n) { return (uint32_t)random_below(d->seed, STREAM_DATA, d->count++, n); }

enum { MOST_GROUPS = 8 };
typedef struct Draft {
	Dice d;
	char text[4096];
	size_t len;
	uint32_t groups, inputs, first_output; /* groups; how many of them are inputs; first that is an output */
	uint32_t size[MOST_GROUPS], fn[MOST_GROUPS];
} Draft;

static inline void say(Draft *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void say(Draft *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	t->len += (size_t)vsnprintf(t->text + t->len, sizeof t->text - t->len, fmt, ap);
	va_end(ap);
	assert_true(t->len < sizeof t->text);
}

/* Units from..: all of them, or some side by side. */
static inline void say_slice(Draft *t, uint32_t group)
{
	uint32_t first = roll(&t->d, t->size[group]), last = first + roll(&t->d, t->size[group] - first);
	say(t, "g%u[%u:%u]", group, first, last);
}

static inline void say_skip(Draft *t, uint32_t from, uint32_t to)
{
	uint32_t kind = roll(&t->d, 4);
	if (kind == 0 && t->size[from] == t->size[to]) {
		say(t, "connect g%u -> g%u one-to-one\n", from, to);
		return;
	}
	if (kind == 1) {
		say(t, "connect g%u[%u] -> g%u[%u]\n", from, roll(&t->d, t->size[from]), to, roll(&t->d, t->size[to]));
		return;
	}
	say(t, "connect ");
	say_slice(t, from);
	say(t, " -> ");
	say_slice(t, to);
	say(t, "\n");
}

/* Every group is linked to the one before it, so that all are reached and used, and perhaps to others. */
static inline void say_links(Draft *t, uint32_t to)
{
	uint32_t before = to == t->inputs ? 0 : to - 1;
	bool sparse = t->size[before] * t->size[to] >= 12 && roll(&t->d, 3) == 0;
	for (uint32_t from = 0; from < to; from++) {
		bool chain = from == before || (to == t->inputs && from < t->inputs);
		if (chain && sparse)
			say(t, "connect g%u -> g%u random 0.7 seed %u\n", from, to, roll(&t->d, 1000));
		else if (chain)
			say(t, "connect g%u -> g%u\n", from, to);
		else if (roll(&t->d, 3) == 0)
			say_skip(t, from, to);
	}
	bool bounded = t->fn[to] != FN_LINEAR && t->fn[to] != FN_RELU; /* long chains of others explode */
	if (t->fn[to] != FN_SOFTMAX && t->size[to] > 1 && (bounded || t->size[to] < 8) && roll(&t->d, 4) == 0)
		say(t, "connect g%u -> g%u later\n", to, to);
	if (roll(&t->d, 4))
		say(t, "connect true -> g%u\n", to);
}

static inline const char *error_for(Draft *t)
{
	bool softmax = true, sigmoid = true;
	for (uint32_t i = t->first_output; i < t->groups; i++) {
		softmax &= t->fn[i] == FN_SOFTMAX;
		sigmoid &= t->fn[i] == FN_SIGMOID || t->fn[i] == FN_SIGMOID2;
	}
	if (softmax && roll(&t->d, 2))
		return "divergence";
	return sigmoid && roll(&t->d, 2) ? "cross-entropy" : "squared";
}

/* About `most` units, of functions 0 .. fns - 1. */
static inline void draft(Draft *t, uint64_t seed, uint32_t most, uint32_t fns)
{
	*t = (Draft){ .d = { seed, 0 } };
	t->inputs = 1 + roll(&t->d, 2);
	t->first_output = t->inputs + roll(&t->d, 4);
	t->groups = t->first_output + 1 + (roll(&t->d, 4) == 0);
	uint32_t share = most / t->groups ? most / t->groups : 1;
	for (uint32_t i = 0; i < t->groups; i++) {
		t->size[i] = 1 + roll(&t->d, 2 * share < most ? 2 * share : most);
		t->fn[i] = roll(&t->d, 3) ? roll(&t->d, fns) : FN_SIGMOID;
		const char *role = i < t->inputs ? "input" : i < t->first_output ? "" : "output";
		say(t, "group g%u %u %s %s\n", i, t->size[i], i < t->inputs ? "" : unit_fns[t->fn[i]].name, role);
	}
	for (uint32_t i = t->inputs; i < t->groups; i++)
		say_links(t, i);
	say(t, "train error %s rate 0.01 momentum 0.9\n", error_for(t));
}

/* Some of its blocks are frozen, or have a rate of their own; perhaps weights decay. */
static inline void draft_rates(Draft *t)
{
	char plain[sizeof t->text];
	memcpy(plain, t->text, t->len + 1);
	t->len = 0;
	for (char *line = strtok(plain, "\n"); line; line = strtok(NULL, "\n")) {
		bool links = strncmp(line, "connect", 7) == 0;
		uint32_t kind = links ? roll(&t->d, 6) : 0;
		say(t, "%s", line);
		if (kind > 3)
			say(t, " rate %g", (double)roll(&t->d, 9) / 4);
		if (kind == 3 || kind == 4)
			say(t, " frozen");
		say(t, "\n");
	}
	if (roll(&t->d, 2))
		say(t, "train decay %g\n", 0.001 * (1 + roll(&t->d, 50)));
}

static inline void say_context(Draft *t, uint32_t k, uint32_t size, bool used)
{
	say(t, "group c%u %u context\n", k, size);
	if (used)
		say(t, "connect c%u -> g%u\n", k, t->inputs + roll(&t->d, t->groups - t->inputs));
}

static inline void say_copy(Draft *t, const char *from, uint32_t number, uint32_t to)
{
	say(t, "copy %s%u -> c%u", from, number, to);
	if (roll(&t->d, 2))
		say(t, " start %g", (double)roll(&t->d, 9) / 4 - 1);
	say(t, "\n");
}

/* It remembers: contexts of any groups, delay lines of several contexts, perhaps a ring of them, perhaps an input that
 * is seen a case late only. */
static inline void draft_memory(Draft *t)
{
	uint32_t contexts = 0;
	if (roll(&t->d, 3) == 0) {
		say(t, "group late 3 input\n");
		say_context(t, contexts, 3, true);
		say(t, "copy late -> c%u\n", contexts++);
	}
	for (uint32_t lines = 1 + roll(&t->d, 3); lines > 0; lines--) {
		uint32_t from = roll(&t->d, t->groups), length = 1 + roll(&t->d, 3),
				 ring = roll(&t->d, 4) == 0 ? 2 + roll(&t->d, 2) : 0;
		if (from >= t->inputs && (t->fn[from] == FN_LINEAR || t->fn[from] == FN_RELU))
			length = 1; /* longer memories of these explode */
		for (uint32_t i = 0; i < length; i++)
			say_context(t, contexts + i, t->size[from], i + 1 == length || roll(&t->d, 2));
		for (uint32_t i = 0; i < length; i++)
			say_copy(t, i ? "c" : "g", i ? contexts + i - 1 : from, contexts + i);
		contexts += length;
		for (uint32_t i = 0; i < ring; i++)
			say_context(t, contexts + i, 3, true);
		for (uint32_t i = 0; i < ring; i++)
			say_copy(t, "c", contexts + (i + 1) % ring, contexts + i);
		contexts += ring;
	}
}

/* It settles: links lead back, groups integrate or have start values, in some ticks with any of their options. Units
 * without bounds would explode in a loop. */
static inline void draft_settling(Draft *t)
{
	char plain[sizeof t->text];
	uint32_t ticks = 2 + roll(&t->d, 3);
	memcpy(plain, t->text, t->len + 1);
	t->len = 0;
	for (char *line = strtok(plain, "\n"); line; line = strtok(NULL, "\n")) {
		uint32_t g = strncmp(line, "group g", 7) == 0 ? (uint32_t)(line[7] - '0') : 0, kind = roll(&t->d, 4);
		say(t, "%s", line);
		if (g >= t->inputs && kind < 2)
			say(t, " integrate %s dt %g",
			    kind && g < t->first_output && t->fn[g] != FN_GAUSSIAN && t->fn[g] != FN_SOFTMAX ? "output" : "input",
			    (double)(1 + roll(&t->d, 4)) / 4);
		say(t, g >= t->inputs && roll(&t->d, 2) ? " start 0.25\n" : "\n");
	}
	for (uint32_t from = t->inputs; from < t->groups; from++)
		for (uint32_t to = t->inputs; to <= from; to++) {
			bool bounded = t->fn[from] != FN_LINEAR && t->fn[from] != FN_RELU;
			if (bounded && (from == to || roll(&t->d, 2)) && !strstr(t->text, " later"))
				say(t, "connect g%u -> g%u\n", from, to);
		}
	say(t, "train ticks %u targets-from %u dt 1 bptt %s settle %s\n", ticks, 1 + roll(&t->d, ticks),
	    roll(&t->d, 3)   ? "full"
	    : roll(&t->d, 2) ? "2"
	                     : "copy",
	    roll(&t->d, 4) ? "ordered" : "synchronous");
	if (roll(&t->d, 3) == 0)
		say(t, "train inputs-until %u\n", 1 + roll(&t->d, ticks));
}

/* ---- one network on one target ---- */

typedef struct Side {
	Ctx cx;
	const Target *target;
	const char *text;
	Net *net;
	Options opt;
	Program *program;
	Data data;
	StopFlag stop;
} Side;

static inline void side_build(Ctx *cx, void *arg)
{
	Side *s = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = s->text, .len = strlen(s->text) };
	s->net = net_parse(cx, src, DEFAULTS_1989);
	Options machine = s->opt;
	s->opt = s->net->options;
	Gf11Options *own = gf11_own(&s->opt);
	const Gf11Options *set = gf11_own(&machine);
	own->procs = set->procs;
	own->sum = set->sum;
	own->sigmoid = set->sigmoid;
	own->compiler = set->compiler;
	own->machine = set->machine;
	own->disks = set->disks;
	s->opt.threads = machine.threads;
	s->opt.batch = machine.batch;
	Caps caps;
	s->target->caps(&caps);
	s->program = s->target->compile(cx, plan_make(cx, s->net, &caps), &s->opt);
	double *w = NEW(&cx->scratch, s->net->links, double);
	net_weights(s->net, 1, 0, ALL_LINKS, w);
	s->target->set(s->program, 0, 0, ALL_LINKS, w);
}

static inline void side_bind(Ctx *cx, void *arg)
{
	Side *s = arg;
	s->target->bind(cx, s->program, &s->data);
}

static inline void side_ok(const Side *s, Status status)
{
	if (status != MP_OK)
		print_error("%s\n%s\n", s->text, ctx_messages(&s->cx));
	assert_int_equal(status, MP_OK);
}

static inline void side_open(Side *s, const Target *target, const char *text, Options opt)
{
	*s = (Side){ .target = target, .text = text, .opt = opt };
	ctx_init(&s->cx, NULL);
	side_ok(s, guarded(&s->cx, side_build, s));
}

static inline void side_take(Side *s, const Data *d)
{
	s->data = *d;
	side_ok(s, guarded(&s->cx, side_bind, s));
}

static inline Tally side_learn(Side *s, Batch b)
{
	Tally t = { 0 };
	side_ok(s, s->target->accumulate(s->program, &b, 0, leaf_count(b.count), &s->stop, &t));
	return t;
}

static inline void side_update(Side *s, uint64_t number)
{
	Update u;
	update_fill(&s->opt, number, 0, 0, &u);
	s->target->apply(s->program, &u);
}

/* ---- cases ---- */

typedef struct Cases {
	Data d;
	float *x, *y, *weight;
	uint64_t *seq;
} Cases;

static inline Cases cases_make(Dice *d, const Net *net, uint64_t count)
{
	Cases c = { .x = calloc(count * net->inputs + 1, sizeof *c.x),
		        .y = calloc(count * net->outputs + 1, sizeof *c.y),
		        .weight = calloc(count + 1, sizeof *c.weight) };
	bool weighted = roll(d, 4) == 0, gaps = roll(d, 3) == 0;
	for (uint64_t i = 0; i < count * net->inputs; i++)
		c.x[i] = (float)roll(d, 2001) / 1000 - 1;
	for (uint64_t i = 0; i < count * net->outputs; i++)
		c.y[i] = gaps && roll(d, 6) == 0 ? NAN : 0.1f + (float)roll(d, 801) / 1000;
	for (uint64_t i = 0; i < count; i++)
		c.weight[i] = 0.5f * (float)(1 + roll(d, 4));
	c.d = (Data){ .name = "toy",
		          .cases = count,
		          .inputs = net->inputs,
		          .targets = net->outputs,
		          .x = c.x,
		          .y = c.y,
		          .x_type = T_F32,
		          .y_type = T_F32,
		          .weight = weighted ? c.weight : NULL };
	return c;
}

/* Cuts them into sequences of 1 to `most`; some are empty. */
static inline void cases_cut(Dice *d, Cases *c, uint32_t most)
{
	uint64_t at = 0, count = 0;
	c->seq = calloc(2 * c->d.cases + 2, sizeof *c->seq);
	while (at < c->d.cases) {
		uint64_t length = roll(d, 9) || count > c->d.cases ? 1 + roll(d, most) : 0;
		at = at + length < c->d.cases ? at + length : c->d.cases;
		c->seq[++count] = at;
	}
	c->d.seq = c->seq;
	c->d.sequences = count;
}

static inline void cases_free(Cases *c)
{
	free(c->seq);
	free(c->x);
	free(c->y);
	free(c->weight);
}

/* Trained in one go, or stopped after four updates, saved and resumed: the same weights and rule state. */
static inline void resuming_changes_nothing(mp_run *whole, mp_run *first, mp_run *rest, const mp_data *data)
{
	need(whole, mp_run_train(whole, data, NULL, NULL, NULL));
	need(first, mp_run_set(first, "updates", "4"));
	need(first, mp_run_train(first, data, NULL, NULL, NULL));
	need(first, mp_run_save(first, in_folder("half.safetensors")));
	need(rest, mp_run_resume(rest, in_folder("half.safetensors")));
	need(rest, mp_run_set(rest, "updates", "0"));
	need(rest, mp_run_train(rest, data, NULL, NULL, NULL));
	same_part(whole, rest, 0);
	same_part(whole, rest, 1);
}

/* Two equal runs, of which one tests on other data before and in between: weights, outputs and errors are the same. */
static inline void testing_changes_nothing(mp_run *a, mp_run *b, const mp_data *data, const mp_data *other)
{
	size_t count = other->data->cases * a->net->outputs;
	double *out = malloc(count * sizeof *out), *again = malloc(count * sizeof *again);
	mp_result first = { .size = sizeof first }, second = first;
	need(a, mp_run_test(a, other, &first, out));
	need(a, mp_run_train(a, data, other, NULL, NULL));
	need(b, mp_run_train(b, data, NULL, NULL, NULL));
	same_part(a, b, 0);
	need(a, mp_run_test(a, other, &first, out));
	need(b, mp_run_test(b, other, &second, again));
	assert_true(first.total_error == second.total_error);
	same_vector(out, again, count);
	assert_true(mp_run_get_report(a)->test_total_error == first.total_error);
	free(out);
	free(again);
}

#endif
