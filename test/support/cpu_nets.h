/* SPDX-License-Identifier: MIT */
/* What the tests of the cpu target share: random networks that have a bit of everything, cases for them, and one
 * network with its cases on one target. */
#ifndef CPU_NETS_H
#define CPU_NETS_H

#include "test.h"

#include <math.h>

#include "isa.h"
#include "target.h"

extern const Target target_ref, target_cpu;

typedef struct Dice {
	uint64_t seed, count;
} Dice;

/* One in an expression: the order of calls in arguments is not defined, and networks should be the same everywhere. */
static inline uint32_t roll(Dice *d, uint32_t n) { return (uint32_t)random_below(d->seed, STREAM_DATA, d->count++, n); }

static inline bool one_in(Dice *d, uint32_t n) { return roll(d, n) == 0; }

/* ---- random networks ---- */

/* Groups stand in the order of the flow: inputs, contexts, then those that are computed, of which the last is an
 * output. */
enum { MOST_GROUPS = 16 };
typedef struct Draft {
	Dice d;
	char text[32768];
	size_t len;
	uint32_t groups, inputs, contexts;
	uint32_t size[MOST_GROUPS], fn[MOST_GROUPS];
	uint32_t copy[MOST_GROUPS], use[MOST_GROUPS]; /* of a context: what it remembers, and who must look at it */
	bool output[MOST_GROUPS];
	bool plain;   /* nothing but groups and links, as in tiny networks */
	bool settles; /* links in all directions, groups that integrate */
	bool shaped;  /* noise, settings of single groups and blocks */
	bool all;     /* also weights with noise, ties, unit functions of other simulators */
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

/* What a block's links may be besides links. */
static inline void say_end(Draft *t)
{
	static const char *const rates[] = { "0", "0.25", "0.5", "2" };
	if (!t->plain && one_in(&t->d, 6))
		say(t, " rate %s", rates[roll(&t->d, COUNT(rates))]);
	if (!t->plain && one_in(&t->d, 8))
		say(t, " frozen");
	if (t->shaped && one_in(&t->d, 4))
		say(t, " decay 0.02");
	if (t->shaped && one_in(&t->d, 4))
		say(t, " limits -0.2 0.25");
	say(t, "\n");
}

/* connect from[a..] -> to[b..], m and n units. */
static inline void say_slices(Draft *t, uint32_t from, uint32_t a, uint32_t m, uint32_t to, uint32_t b, uint32_t n,
                              const char *kind)
{
	say(t, "connect g%u[%u:%u] -> g%u[%u:%u]%s", from, a, a + m - 1, to, b, b + n - 1, kind);
	say_end(t);
}

static inline void say_full(Draft *t, uint32_t from, uint32_t to)
{
	say(t, "connect g%u -> g%u", from, to);
	say_end(t);
}

static inline void say_one_to_one(Draft *t, uint32_t from, uint32_t to)
{
	uint32_t m = t->size[from], n = t->size[to], most = m < n ? m : n,
			 count = one_in(&t->d, 2) ? most : 1 + roll(&t->d, most);
	uint32_t b = roll(&t->d, n - count + 1), a = roll(&t->d, m - count + 1);
	say_slices(t, from, a, count, to, b, count, " one-to-one");
}

/* At least some: a block without any link is refused. */
static inline void say_random(Draft *t, uint32_t from, uint32_t to)
{
	static const double densities[] = { 0.02, 0.1, 0.3, 0.6, 0.9 };
	double pairs = (double)t->size[from] * t->size[to],
		   density = fmax(densities[roll(&t->d, COUNT(densities))], fmin(1, 12 / pairs));
	say(t, "connect g%u -> g%u random %.3f seed %u", from, to, density, roll(&t->d, 1000));
	say_end(t);
}

static inline void say_singles(Draft *t, uint32_t from, uint32_t to)
{
	uint32_t first = roll(&t->d, t->size[from]), count = 1 + roll(&t->d, 5);
	for (uint32_t i = first; i < t->size[from] && i < first + count; i++) {
		say(t, "connect g%u[%u] -> g%u[%u]", from, i, to, roll(&t->d, t->size[to]));
		say_end(t);
	}
}

static inline void say_slice(Draft *t, uint32_t from, uint32_t to)
{
	uint32_t a = roll(&t->d, t->size[from]), b = roll(&t->d, t->size[to]);
	uint32_t b_count = 1 + roll(&t->d, t->size[to] - b), a_count = 1 + roll(&t->d, t->size[from] - a);
	say_slices(t, from, a, a_count, to, b, b_count, "");
}

/* Blocks side by side, each with a rate of its own. */
static inline void say_cut_sources(Draft *t, uint32_t from, uint32_t to)
{
	uint32_t cut = 1 + roll(&t->d, t->size[from]);
	say_slices(t, from, 0, cut, to, 0, t->size[to], "");
	if (cut < t->size[from])
		say_slices(t, from, cut, t->size[from] - cut, to, 0, 1 + roll(&t->d, t->size[to]), "");
}

static inline void say_cut_targets(Draft *t, uint32_t from, uint32_t to)
{
	uint32_t cut = 1 + roll(&t->d, t->size[to]);
	say_slices(t, from, 0, t->size[from], to, 0, cut, "");
	if (cut < t->size[to])
		say_slices(t, from, 0, 1 + roll(&t->d, t->size[from]), to, cut, t->size[to] - cut, "");
}

static inline void say_pair(Draft *t, uint32_t from, uint32_t to)
{
	static void (*const kinds[])(Draft *, uint32_t, uint32_t) = {
		say_full,   say_full,    say_full,  say_one_to_one,  say_random,
		say_random, say_singles, say_slice, say_cut_sources, say_cut_targets,
	};
	kinds[roll(&t->d, COUNT(kinds))](t, from, to);
}

static inline void say_inside(Draft *t, uint32_t g)
{
	bool bounded = t->fn[g] != FN_LINEAR && t->fn[g] != FN_RELU; /* long chains of others explode */
	uint32_t n = t->size[g];
	if (t->fn[g] == FN_SOFTMAX || n < 3 || (!bounded && n > 8) || !one_in(&t->d, 5))
		return;
	switch (roll(&t->d, 3)) {
	case 0: say(t, "connect g%u -> g%u", g, g); break;
	case 1: say(t, "connect g%u[0:%u] -> g%u[1:%u] one-to-one", g, n - 2, g, n - 1); break;
	case 2: say(t, "connect g%u -> g%u random 0.5 seed %u later", g, g, roll(&t->d, 1000)); break;
	}
	say_end(t);
}

static inline void say_true(Draft *t, uint32_t g)
{
	uint32_t first = roll(&t->d, t->size[g]);
	switch (roll(&t->d, 6)) {
	case 0: return;
	case 1: say(t, "connect true -> g%u[%u:%u]", g, first, first + roll(&t->d, t->size[g] - first)); break;
	default: say(t, "connect true -> g%u", g);
	}
	say_end(t);
}

/* Every group is linked to the one before it, so that all are reached and used, and perhaps to others. */
static inline void say_links(Draft *t)
{
	uint32_t first = t->inputs + t->contexts;
	for (uint32_t to = first; to < t->groups; to++) {
		for (uint32_t from = 0; from < to; from++)
			if (from == (to == first ? 0 : to - 1) || t->use[from] == to || one_in(&t->d, 3))
				say_pair(t, from, to);
		for (uint32_t from = to; t->settles && from < t->groups; from++)
			if (one_in(&t->d, 3))
				say_pair(t, from, to);
		if (!t->settles)
			say_inside(t, to);
		say_true(t, to);
	}
}

static inline uint32_t roll_size(Dice *d, uint32_t most)
{
	static const uint32_t edges[] = { 1, 15, 16, 17, 32, 48 };
	uint32_t edge = edges[roll(d, COUNT(edges))];
	if (one_in(d, 6) && edge <= most)
		return edge;
	return 1 + roll(d, one_in(d, 2) ? most : most / 6 + 1);
}

/* Not cross-entropy of gaussian units: they are very near to 1 where their sums are small, and how near is more
 * than a float can say. */
static inline int error_for(Draft *t)
{
	int fits[ERR_COUNT], count = 0;
	for (int e = 0; e < ERR_COUNT; e++) {
		bool all = true;
		for (uint32_t g = 0; g < t->groups; g++)
			all &= !t->output[g] || (error_fits(e, (int)t->fn[g]) && (e == ERR_SQUARED || t->fn[g] != FN_GAUSSIAN));
		if (all)
			fits[count++] = e;
	}
	return fits[roll(&t->d, (uint32_t)count)];
}

static inline void say_train(Draft *t)
{
	const char *rule = one_in(&t->d, 3) ? "momentum" : rules[roll(&t->d, rule_count)].name;
	const char *bptt = one_in(&t->d, 2) ? t->settles ? "3" : "copy" : "full", *error = error_fns[error_for(t)].name;
	say(t, "train error %s rule %s bptt %s rate 0.0001 momentum 0.9 kappa 1e-5 step-start 0.01", error, rule, bptt);
	if (one_in(&t->d, 4))
		say(t, " prime-offset 0.1");
	if (one_in(&t->d, 4))
		say(t, " decay 0.001");
	say(t, "\n");
}

static inline void say_ticks(Draft *t)
{
	uint32_t ticks = 1 + roll(&t->d, 4), intervals = 1 + roll(&t->d, 2) + (ticks == 1);
	const char *settle = one_in(&t->d, 3) ? "synchronous" : "ordered";
	uint32_t from = 1 + roll(&t->d, ticks * intervals);
	say(t, "train ticks %u intervals %u targets-from %u dt 0.4 settle %s", ticks, intervals, from, settle);
	if (one_in(&t->d, 4))
		say(t, " inputs-until %u", 1 + roll(&t->d, ticks));
	say(t, "\n");
}

/* Not outputs of gaussian units, nor what divergence needs. */
static inline void say_integrate(Draft *t, uint32_t g)
{
	bool output = t->fn[g] != FN_GAUSSIAN && t->fn[g] != FN_SOFTMAX && one_in(&t->d, 2);
	if (one_in(&t->d, 2))
		say(t, " integrate %s dt %s", output ? "output" : "input", one_in(&t->d, 2) ? "0.5" : "2.25");
	if (one_in(&t->d, 2))
		say(t, " start 0.3");
}

/* Noise may leave outputs anywhere: only of those with squared errors. */
static inline void say_noise(Draft *t)
{
	for (uint32_t g = 0; g < t->groups; g++) {
		bool input = g < t->inputs, context = !input && g < t->inputs + t->contexts;
		const char *kind = one_in(&t->d, 2) ? "gaussian" : "uniform";
		if (context)
			continue;
		if (!input && one_in(&t->d, 3))
			say(t, "noise g%u net %s 0.2\n", g, kind);
		if (!t->output[g] && one_in(&t->d, 4))
			say(t, "noise g%u %s 0.1\n", g, kind);
		if (!t->output[g] && one_in(&t->d, 4))
			say(t, "dropout g%u 0.2\n", g);
	}
}

static inline void say_settings(Draft *t, uint32_t g)
{
	int error = (int)roll(&t->d, ERR_COUNT);
	if (one_in(&t->d, 3))
		say(t, " gain 1.25");
	if (one_in(&t->d, 4))
		say(t, " decay 0.01");
	if (t->output[g] && one_in(&t->d, 2) && error_fits(error, (int)t->fn[g]) &&
	    (error == ERR_SQUARED || t->fn[g] != FN_GAUSSIAN) && !(t->settles && t->fn[g] == FN_SOFTMAX))
		say(t, " error %s", error_fns[error].name);
	if (t->output[g] && one_in(&t->d, 3))
		say(t, " error-scale 0.7");
	if (t->output[g] && one_in(&t->d, 3))
		say(t, " criterion 0.3");
	if (t->output[g] && one_in(&t->d, 3))
		say(t, one_in(&t->d, 2) ? " target-radius 0.1" : " zero-error-radius 0.15");
}

/* In some order, so that units may stand before their sources. */
static inline void say_groups(Draft *t)
{
	uint32_t order[MOST_GROUPS];
	bool mixed = one_in(&t->d, 2);
	for (uint32_t i = 0; i < t->groups; i++)
		order[i] = i;
	for (uint32_t i = t->groups; mixed && i > 1; i--) {
		uint32_t k = roll(&t->d, i), last = order[i - 1];
		order[i - 1] = order[k];
		order[k] = last;
	}
	for (uint32_t i = 0; i < t->groups; i++) {
		uint32_t g = order[i], computed = t->inputs + t->contexts;
		const char *role = g < t->inputs ? "input" : g < computed ? "context" : t->output[g] ? "output" : "hidden";
		say(t, "group g%u %u %s %s", g, t->size[g], g < computed ? "" : unit_fns[t->fn[g]].name, role);
		if (t->settles && g >= computed)
			say_integrate(t, g);
		if (t->shaped && g >= computed)
			say_settings(t, g);
		say(t, "\n");
	}
	for (uint32_t g = t->inputs; g < t->inputs + t->contexts; g++)
		say(t, "copy g%u -> g%u start %s\n", t->copy[g], g, one_in(&t->d, 2) ? "0" : "0.5");
}

/* A context remembers an input, a context before it, or anything that is computed. */
static inline void roll_contexts(Draft *t)
{
	uint32_t first = t->inputs + t->contexts;
	for (uint32_t g = t->inputs; g < first; g++) {
		uint32_t which = roll(&t->d, g + t->groups - first);
		t->copy[g] = which < g ? which : which - g + first;
		t->size[g] = t->size[t->copy[g]];
		t->use[g] = first + roll(&t->d, t->groups - first);
	}
}

/* Two groups more, that share their weights. */
static inline void say_ties(Draft *t)
{
	uint32_t last = t->groups - 1, size = 1 + roll(&t->d, 4);
	say(t, "group ta %u tanh\ngroup tb %u tanh\n", size, size);
	say(t, "connect g0 -> ta\nconnect g0 -> tb tied g0 -> ta\nconnect ta -> tb one-to-one\nconnect ta -> g%u\n", last);
	say(t, "connect tb -> g%u tied ta -> g%u\n", last, last);
}

static inline void say_weight_noise(Draft *t)
{
	uint32_t first = t->inputs + t->contexts;
	for (uint32_t to = first; to < t->groups; to++)
		if (one_in(&t->d, 3))
			say(t, "noise g%u -> g%u %s 0.05\n", to == first ? 0 : to - 1, to,
			    one_in(&t->d, 2) ? "gaussian" : "uniform");
	if (one_in(&t->d, 2))
		say(t, "train noise yes\n");
}

static inline void draft_once(Draft *t, uint64_t seed, uint32_t most, const Draft *kind)
{
	bool plain = kind->plain, settles = kind->settles, shaped = kind->shaped, all = kind->all;
	*t = (Draft){ .d = { seed, 0 }, .plain = plain, .settles = settles, .shaped = shaped, .all = all };
	t->inputs = 1 + one_in(&t->d, 3);
	t->inputs += one_in(&t->d, 6);
	t->contexts = !plain && one_in(&t->d, 3) ? 1 + roll(&t->d, 3) : 0;
	t->groups = t->inputs + t->contexts + 1 + roll(&t->d, 5);
	for (uint32_t g = 0; g < t->groups; g++) {
		t->size[g] = roll_size(&t->d, most);
		t->fn[g] = roll(&t->d, plain ? FN_SOFTMAX : all ? FN_COUNT : FN_EVERYWHERE);
		if (settles && (t->fn[g] == FN_LINEAR || t->fn[g] == FN_RELU)) /* these explode in a loop */
			t->fn[g] = FN_TANH;
		t->output[g] = g + 1 == t->groups || (!plain && g >= t->inputs + t->contexts && one_in(&t->d, 4));
	}
	roll_contexts(t);
	say_groups(t);
	say_links(t);
	if (all && one_in(&t->d, 3))
		say_ties(t);
	say_train(t);
	if (settles)
		say_ticks(t);
	if (shaped)
		say_noise(t);
	if (all)
		say_weight_noise(t);
}

static inline void draft_parse(Ctx *cx, void *arg)
{
	const Draft *t = arg;
	net_parse(cx, &(Src){ .name = "toy.topo", .text = t->text, .len = t->len }, DEFAULTS_1989);
}

/* Groups of up to `most` units. Slices may happen to leave a group with no way to an output, and few links that are
 * drawn may be none, which is refused: then another. */
static inline void draft_like(Draft *t, uint64_t seed, uint32_t most, Draft kind)
{
	for (uint64_t try = 0;; try++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		draft_once(t, seed + (try << 32), most, &kind);
		Status s = guarded(&cx, draft_parse, t);
		bool fine = s == MP_OK || strstr(ctx_messages(&cx), "reaches") || strstr(ctx_messages(&cx), "has no links");
		if (!fine)
			print_error("%s%s", t->text, ctx_messages(&cx));
		ctx_free(&cx);
		assert_true(fine);
		if (s == MP_OK)
			return;
	}
}

static inline void draft_kind(Draft *t, uint64_t seed, uint32_t most, bool plain, bool settles, bool shaped)
{
	draft_like(t, seed, most, (Draft){ .plain = plain, .settles = settles, .shaped = shaped });
}

static inline void draft_some(Draft *t, uint64_t seed, uint32_t most, bool plain, bool settles)
{
	draft_kind(t, seed, most, plain, settles, false);
}

static inline void draft(Draft *t, uint64_t seed, uint32_t most, bool plain)
{
	draft_some(t, seed, most, plain, false);
}

/* ---- cases ---- */

/* The same cases with dense rows and with index lists. */
typedef struct Cases {
	Data dense, index;
	float *x, *y, *weight, *values;
	uint8_t *mask;
	uint64_t *indptr, *seq;
	uint32_t *indices, *ticks;
	double *codes;
} Cases;

/* Inputs of any value, mostly zeros and some of any value, or few ones and zeros. */
static inline void roll_inputs(Dice *d, Cases *c, uint64_t cases, uint32_t inputs)
{
	uint32_t kind = roll(d, 3), one_of = 2 + roll(d, 8);
	uint64_t n = 0;
	for (uint64_t i = 0; i < cases; i++) {
		for (uint32_t k = 0; k < inputs; k++) {
			bool zero = kind && !one_in(d, one_of);
			float v = zero ? 0 : kind == 2 ? 1 : (float)roll(d, 2001) / 1000 - 1;
			c->x[i * inputs + k] = v;
			if (v == 0)
				continue;
			c->indices[n] = k;
			c->values[n++] = v;
		}
		c->indptr[i + 1] = n;
	}
	c->dense.x = c->x;
	c->index.x_indptr = c->indptr;
	c->index.x_indices = c->indices;
	c->index.x_values = kind == 2 ? NULL : c->values;
}

/* Targets of any value, or 0 and 1, or those of a table of codes; some may be missing, marked by NaN or by a mask. */
static inline void roll_targets(Dice *d, Cases *c, uint64_t cases, uint32_t targets, bool plain)
{
	enum { CODES = 9 };
	bool coded = !plain && one_in(d, 4), binary = one_in(d, 3), gaps = !plain && one_in(d, 3), masked = one_in(d, 2);
	c->codes = calloc((size_t)CODES * targets, sizeof *c->codes);
	for (uint32_t i = 0; i < CODES * targets; i++)
		c->codes[i] = roll(d, 2);
	for (uint64_t i = 0; i < cases; i++) {
		uint32_t word = roll(d, CODES);
		for (uint32_t k = 0; k < targets; k++) {
			bool gap = gaps && one_in(d, 6);
			float v = coded    ? (float)c->codes[word * targets + k]
			          : binary ? (float)roll(d, 2)
			                   : 0.05f + (float)roll(d, 901) / 1000;
			c->y[i * targets + k] = gap && !masked ? NAN : v;
			c->mask[i * targets + k] = !gap;
		}
	}
	c->dense.y = c->y;
	c->dense.mask = gaps && masked ? c->mask : NULL;
	c->dense.codes = coded ? c->codes : NULL;
	c->dense.code_count = coded ? CODES : 0;
}

static inline void roll_sequences(Dice *d, Cases *c, uint64_t cases)
{
	uint32_t longest = 1 + roll(d, 12);
	for (uint64_t at = 0; at < cases; c->dense.sequences++) {
		uint64_t count = 1 + roll(d, longest);
		at = at + count < cases ? at + count : cases;
		c->seq[c->dense.sequences + 1] = at;
	}
	c->dense.seq = c->seq;
}

static inline Cases cases_make(Dice *d, const Net *net, uint64_t cases, bool plain)
{
	uint64_t inputs = cases * net->inputs + 1, targets = cases * net->outputs + 1;
	Cases c = { .x = calloc(inputs, sizeof *c.x),
		        .y = calloc(targets, sizeof *c.y),
		        .weight = calloc(cases, sizeof *c.weight),
		        .values = calloc(inputs, sizeof *c.values),
		        .mask = calloc(targets, 1),
		        .indptr = calloc(cases + 1, sizeof *c.indptr),
		        .seq = calloc(cases + 1, sizeof *c.seq),
		        .indices = calloc(inputs, sizeof *c.indices),
		        .ticks = calloc(cases, sizeof *c.ticks) };
	c.dense = (Data){
		.name = "toy", .cases = cases, .inputs = net->inputs, .targets = net->outputs, .x_type = T_F32, .y_type = T_F32
	};
	roll_targets(d, &c, cases, net->outputs, plain);
	if (net->copies ? !one_in(d, 6) : !plain && one_in(d, 6))
		roll_sequences(d, &c, cases);
	for (uint64_t i = 0; i < cases; i++)
		c.weight[i] = 0.5f * (float)(1 + roll(d, 4));
	c.dense.weight = !plain && one_in(d, 4) ? c.weight : NULL;
	for (uint64_t i = 0; net->settles && i < cases; i++)
		c.ticks[i] = roll(d, 6);
	c.dense.ticks = net->settles && one_in(d, 3) ? c.ticks : NULL;
	c.index = c.dense;
	roll_inputs(d, &c, cases, net->inputs);
	return c;
}

static inline void cases_free(Cases *c)
{
	void *const all[] = {
		c->x, c->y, c->weight, c->values, c->mask, c->indptr, c->seq, c->indices, c->codes, c->ticks
	};
	for (size_t i = 0; i < COUNT(all); i++)
		free(all[i]);
}

/* ---- one network on one target ---- */

/* How it runs, which must not show in what comes out. */
typedef struct Way {
	int isa, threads;
	int64_t batch; /* batch size announced to it */
	bool index;
	bool pieces; /* batches come leaf by leaf */
} Way;

typedef struct Side {
	Ctx cx;
	const Target *target;
	Way way;
	const char *text;
	Net *net;
	Options opt;
	Program *program;
	StopFlag stop;
} Side;

static inline void side_build(Ctx *cx, void *arg)
{
	Side *s = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = s->text, .len = strlen(s->text) };
	s->net = net_parse(cx, src, DEFAULTS_1989);
	s->opt = s->net->options;
	s->opt.threads = s->way.threads;
	s->opt.batch = s->way.batch;
	Caps caps;
	s->target->caps(&caps);
	s->program = s->target->compile(cx, plan_make(cx, s->net, &caps), &s->opt);
	double *w = NEW(&cx->scratch, s->net->links, double);
	net_weights(s->net, 1, 0, ALL_LINKS, w);
	s->target->set(s->program, 0, 0, ALL_LINKS, w);
}

static inline void side_ok(const Side *s, Status status)
{
	if (status != MP_OK)
		print_error("%s\n%s\n", s->text, ctx_messages(&s->cx));
	assert_int_equal(status, MP_OK);
}

static inline void side_open(Side *s, const Target *target, const char *text, Way way)
{
	*s = (Side){ .target = target, .text = text, .way = way };
	ctx_init(&s->cx, NULL);
	setenv("MICROPROP_ISA", isa_name(way.isa), 1);
	side_ok(s, guarded(&s->cx, side_build, s));
	unsetenv("MICROPROP_ISA");
}

static inline void side_close(Side *s) { ctx_free(&s->cx); }

typedef struct Binding {
	Side *s;
	const Data *data;
} Binding;

static inline void side_bind(Ctx *cx, void *arg)
{
	Binding *b = arg;
	b->s->target->bind(cx, b->s->program, b->data);
}

static inline void side_take(Side *s, const Cases *c)
{
	Binding b = { s, s->way.index ? &c->index : &c->dense };
	side_ok(s, guarded(&s->cx, side_bind, &b));
}

static inline Tally side_learn(Side *s, Batch b)
{
	uint32_t leaves = leaf_count(b.count), step = s->way.pieces ? 1 : leaves;
	Tally t = { 0 };
	for (uint32_t leaf = 0; leaf < leaves; leaf += step)
		side_ok(s, s->target->accumulate(s->program, &b, leaf, leaf + step, &s->stop, &t));
	return t;
}

static inline void side_update(Side *s, uint64_t number)
{
	Update u;
	update_fill(&s->opt, number, 0, 0, &u);
	s->target->apply(s->program, &u);
}

static inline int best_isa(void)
{
	int isa = ISA_AVX512;
	while (!isa_has(isa))
		isa--;
	return isa;
}

#endif
