/* SPDX-License-Identifier: MIT */
/* Networks that bench trains.  In: a network, random data, options.  Out: connections per second.
 *
 * The hooks of the target are called as by a training run: the same batches, shuffled where a run would shuffle them,
 * one accumulate and one apply for each, or bulk updates if the target has them. Making the order of an epoch is not
 * timed. Learning rates are so small that weights hardly change: saturated units would take other times. */
#include <assert.h>
#include <string.h>

#include "bench.h"

/* ---- data ---- */

static Data *data_new(Ctx *cx, const Work *w, uint64_t cases, uint32_t inputs, uint32_t targets)
{
	Data *d = NEW(&cx->keep, 1, Data);

	*d = (Data){
		.name = w->name, .cases = cases, .inputs = inputs, .targets = targets, .x_type = T_F32, .y_type = T_F32
	};
	return d;
}

/* Binary CSR with `ones` inputs a case, or the same as dense rows. */
static void take_ones(Ctx *cx, Data *d, const uint32_t *at, uint32_t ones, bool index)
{
	uint64_t *indptr;
	float *x;

	if (index) {
		indptr = NEW(&cx->keep, d->cases + 1, uint64_t);
		for (uint64_t i = 0; i <= d->cases; i++)
			indptr[i] = i * ones;
		d->x_indptr = indptr;
		d->x_indices = at;
		return;
	}
	x = NEW(&cx->keep, d->cases * d->inputs, float);
	for (uint64_t i = 0; i < d->cases * ones; i++)
		x[i / ones * d->inputs + at[i]] = 1;
	d->x = x;
}

static void random_x(Ctx *cx, Data *d)
{
	float *x = NEW(&cx->keep, d->cases * d->inputs, float);

	for (uint64_t i = 0; i < d->cases * d->inputs; i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i);
	d->x = x;
}

static void random_y(Ctx *cx, Data *d)
{
	float *y = NEW(&cx->keep, d->cases * d->targets, float);

	for (uint64_t i = 0; i < d->cases * d->targets; i++)
		y[i] = (float)(random_u64(2, STREAM_DATA, i) & 1);
	d->y = y;
}

/* CSR: one of 29 letters in each of 7 positions; dense: any reals. */
static Data *make_nettalk(Ctx *cx, const Work *w, bool index)
{
	Data *d = data_new(cx, w, w->examples, NETTALK_INPUTS, NETTALK_TARGETS);
	uint64_t places = d->cases * NETTALK_WINDOW;
	uint32_t *at;

	random_y(cx, d);
	if (!index) {
		random_x(cx, d);
		return d;
	}
	at = NEW(&cx->keep, places, uint32_t);
	for (uint64_t i = 0; i < places; i++)
		at[i] = (uint32_t)(i % NETTALK_WINDOW * NETTALK_SYMBOLS + random_below(1, STREAM_DATA, i, NETTALK_SYMBOLS));
	take_ones(cx, d, at, NETTALK_WINDOW, true);
	return d;
}

/* One of eight in, the same out. */
static Data *make_encoder(Ctx *cx, const Work *w, bool index)
{
	Data *d = data_new(cx, w, w->examples, 8, 8);
	uint32_t *at = NEW(&cx->keep, d->cases, uint32_t);
	float *y = NEW(&cx->keep, d->cases * d->targets, float);

	for (uint32_t i = 0; i < d->cases; i++) {
		at[i] = i;
		y[i * d->targets + i] = 1;
	}
	d->y = y;
	take_ones(cx, d, at, 1, index);
	return d;
}

static Data *make_images(Ctx *cx, const Work *w, bool index)
{
	Data *d = data_new(cx, w, w->examples, 784, 10);

	assert(!index);
	random_x(cx, d);
	random_y(cx, d);
	return d;
}

/* Letters of words, a tenth of them on; sounds and features of meanings. */
static Data *make_words(Ctx *cx, const Work *w, bool index)
{
	enum { LETTERS = 100, ONES = 10, TARGETS = 161 };
	Data *d = data_new(cx, w, w->examples, LETTERS, TARGETS);
	uint32_t *at = NEW(&cx->keep, d->cases * ONES, uint32_t);

	for (uint64_t i = 0; i < d->cases * ONES; i++)
		at[i] = (uint32_t)(i % ONES * (LETTERS / ONES) + random_below(1, STREAM_DATA, i, LETTERS / ONES));
	random_y(cx, d);
	take_ones(cx, d, at, ONES, index);
	return d;
}

/* Sequences of 40 to 60 letters; the target is the next letter. */
static Data *make_letter_sequences(Ctx *cx, const Work *w, bool index)
{
	enum { LETTERS = 26, SHORTEST = 40, LENGTHS = 21 };
	uint64_t *seq = NEW(&cx->keep, w->examples + 1, uint64_t), cases = 0;
	uint32_t *at;
	float *y;
	Data *d;

	for (uint64_t i = 0; i < w->examples; i++) {
		cases += SHORTEST + random_below(3, STREAM_DATA, i, LENGTHS);
		seq[i + 1] = cases;
	}
	d = data_new(cx, w, cases, LETTERS, LETTERS);
	d->seq = seq;
	d->sequences = w->examples;
	at = NEW(&cx->keep, cases + 1, uint32_t);
	for (uint64_t i = 0; i <= cases; i++)
		at[i] = (uint32_t)random_below(1, STREAM_DATA, i, LETTERS);
	y = NEW(&cx->keep, cases * LETTERS, float);
	for (uint64_t i = 0; i < cases; i++)
		y[i * LETTERS + at[i + 1]] = 1;
	d->y = y;
	take_ones(cx, d, at, 1, index);
	return d;
}

/* ---- works ---- */

static const Work nettalk = {
	"nettalk",
	"203-60-26, 12,022 cases",
	"group in 203 input\ngroup hidden 60\ngroup out 26 output\n"
	"connect in -> hidden\nconnect hidden -> out\nconnect true -> hidden, out\n",
	12022,
	0.02,
	make_nettalk,
};
static const Work encoder = {
	"8-3-8",
	"8-3-8, 8 cases",
	"group in 8 input\ngroup hidden 3\ngroup out 8 output\n"
	"connect in -> hidden\nconnect hidden -> out\nconnect true -> hidden, out\n",
	8,
	0.001,
	make_encoder,
};
static const Work mlp784 = {
	"mlp784",
	"784-512-512-10, 12,800 cases",
	"group in 784 input\ngroup first 512\ngroup second 512\ngroup out 10 output\n"
	"connect in -> first\nconnect first -> second\nconnect second -> out\nconnect true -> first, second, out\n",
	12800,
	0.02,
	make_images,
};
static const Work elman = {
	"elman",
	"26-64-26 with 64 context units, 1,000 sequences of 40 to 60 cases",
	"group in 26 input\ngroup hidden 64\ngroup out 26 output\ngroup memory 64 context\ncopy hidden -> memory start "
	"0.5\n"
	"connect in, memory, true -> hidden\nconnect hidden, true -> out\n",
	1000,
	0.02,
	make_letter_sequences,
};

/* A network and the same with links back: a tick should cost no more than a case does. */
static const Work reading = {
	"reading",
	"100-100-61-20-100, 2,000 cases",
	"group letters 100 input\ngroup hidden 100\ngroup sound 61 output\ngroup cleanup 20\ngroup meaning 100 output\n"
	"connect letters, true -> hidden\nconnect hidden, true -> sound\nconnect sound, true -> cleanup\n"
	"connect hidden, sound, cleanup, true -> meaning\ntrain error cross-entropy\n",
	2000,
	0.02,
	make_words,
};
static const Work settling = {
	"settling",
	"100-100-61-20-100 with links back, 2,000 cases of 8 ticks",
	"group letters 100 input\ngroup hidden 100\ngroup sound 61 output\ngroup cleanup 20\ngroup meaning 100 output\n"
	"connect letters, true -> hidden\nconnect hidden, cleanup, meaning, true -> sound\nconnect sound, true -> cleanup\n"
	"connect hidden, sound, cleanup, meaning, true -> meaning\ntrain error cross-entropy ticks 8 targets-from 5\n",
	2000,
	0.02,
	make_words,
};

const Spec specs[] = {
	{ &nettalk, "all", false, false }, { &nettalk, "all", true, false },  { &nettalk, "512", false, false },
	{ &nettalk, "512", true, false },  { &nettalk, "1", false, false },   { &nettalk, "1", true, false },
	{ &encoder, "all", false, false }, { &encoder, "1", false, false },   { &mlp784, "256", false, false },
	{ &mlp784, "1024", false, true },  { &elman, "all", false, false },   { &elman, "all", true, false },
	{ &reading, "all", true, false },  { &settling, "all", true, false },
};
const uint32_t spec_count = COUNT(specs);

bool spec_selected(const char *only, bool gpu, const Spec *s)
{
	size_t len = strlen(s->work->name);

	if (s->gpu_only && !gpu)
		return false;
	if (!only)
		return true;
	if (strncmp(only, s->work->name, len))
		return false;
	return !only[len] || (only[len] == ':' && strcmp(only + len + 1, s->batch) == 0);
}

void only_check(Ctx *cx, const char *only, bool gpu)
{
	Buf known = { .arena = &cx->scratch };
	const Spec *last = NULL;

	buf_puts(&known, "write one of these, or the word before the colon:");
	for (uint32_t i = 0; i < spec_count; i++) {
		const Spec *s = &specs[i];
		if (spec_selected(only, gpu, s))
			return;
		if (!spec_selected(NULL, gpu, s))
			continue;
		if (!last || last->work != s->work || strcmp(last->batch, s->batch))
			buf_printf(&known, " %s:%s", s->work->name, s->batch);
		last = s;
	}
	fail(cx, MP_BAD_INPUT, known.s, "--only cannot be '%s'", only);
}

int rate_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- a row ---- */

static void row_options(Ctx *cx, Row *r)
{
	const char *remedy;

	r->opt = r->net->options;
	r->opt.target = r->target->name;
	r->opt.threads = r->threads;
	option_set(cx, &r->opt, "batch", r->spec->batch, &remedy);
	option_set(cx, &r->opt, "precision", r->bf16 ? "bf16" : "fp32", &remedy);
	r->batch = r->opt.batch == BATCH_ALL ? r->examples : (uint64_t)r->opt.batch;
	r->opt.rate = r->spec->work->rate / (double)r->batch;
}

/* As in a run. */
enum { EPOCHS_AT_ONCE = 64, EXAMPLES_AT_ONCE = 4096 };       /* unless the target says otherwise; */
enum { UPDATES_AT_ONCE = 8192, MOST_EPOCHS_AT_ONCE = 1024 }; /* a GPU takes 20 us for each, however small */
enum { ORDERED_AT_ONCE = 1 << 22 };                          /* examples: their order is made before */

/* The order of one epoch, or of those of a bulk update. */
static uint64_t *row_order(Ctx *cx, const Row *r)
{
	Order *o = order_new(&cx->scratch, r->examples, 1, true);
	uint64_t epochs = r->epochs ? r->epochs : 1, *order = NEW(&cx->keep, epochs * r->examples, uint64_t);

	for (uint64_t i = 0; i < epochs * r->examples; i++) {
		order_epoch(o, i / r->examples);
		order[i] = order_at(o, i % r->examples);
	}
	return order;
}

void row_start(Ctx *cx, Row *r)
{
	const Work *w = r->spec->work;
	Src *src = NEW(&cx->keep, 1, Src);
	double *weights;
	Plan *plan;
	Caps caps;

	*src = (Src){ .name = w->name, .text = w->text, .len = strlen(w->text) };
	r->net = net_parse(cx, src, DEFAULTS_1989);
	r->examples = w->examples;
	row_options(cx, r);
	r->target->caps(&caps);
	plan = plan_make(cx, r->net, &caps);
	r->program = r->target->compile(cx, plan, &r->opt);
	weights = NEW(&cx->scratch, r->net->links, double);
	net_weights(r->net, 1, 0, ALL_LINKS, weights);
	r->target->set(r->program, 0, 0, ALL_LINKS, weights);
	r->target->bind(cx, r->program, r->data);
	r->at_once = caps.bulk ? min_u64(ORDERED_AT_ONCE, UPDATES_AT_ONCE * r->batch) : EXAMPLES_AT_ONCE;
	r->epochs = min_u64(r->at_once / r->examples, caps.bulk ? MOST_EPOCHS_AT_ONCE : EPOCHS_AT_ONCE);
	if (caps.bulk && r->batch == r->examples) /* no order, which has a limit */
		r->epochs = MOST_EPOCHS_AT_ONCE;
	if (r->batch < r->examples)
		r->order = row_order(cx, r);
}

static const StopFlag never = 0;

/* A bulk update of some epochs or a part of one; rerepeats its cases, 0: the target has none for this network. */
static uint64_t row_updates(Row *r)
{
	Tally t[MOST_EPOCHS_AT_ONCE] = { 0 };
	Until until;
	Update u;
	Updates s = { .examples = r->examples,
		          .batch = r->batch,
		          .done = r->done,
		          .example = r->order ? r->order + r->done : NULL,
		          .update = &u,
		          .same = true,
		          .until = &until,
		          .stop = &never,
		          .tally = t,
		          .epoch = r->updates * r->batch / r->examples,
		          .few_counts = true };
	uint64_t most = r->at_once / r->batch, left = (r->examples - r->done + r->batch - 1) / r->batch;

	s.count = r->epochs ? r->epochs * left : left < most ? left : most;
	if (!s.count || (r->epochs && r->done))
		return 0;
	until_parse("never", &until);
	update_fill(&r->opt, r->updates + 1, 0, 1, &u);
	uint64_t done = r->target->run_updates(r->program, &s), cases = done * r->batch;
	r->updates += done;
	if (r->epochs)
		return done * r->data->cases / left;
	cases = cases < r->examples - r->done ? cases : r->examples - r->done;
	r->done = (r->done + cases) % r->examples;
	return cases;
}

/* One update; rerepeats its cases. */
static uint64_t row_update(Row *r)
{
	Batch b = { .first = r->done, .count = r->batch };
	Tally t = { 0 };
	Update u;

	if (b.count > r->examples - r->done)
		b.count = r->examples - r->done;
	b.next_count = r->examples - r->done - b.count;
	if (r->order)
		b.example = r->order + r->done;
	r->target->accumulate(r->program, &b, 0, leaf_count(b.count), &never, &t);
	update_fill(&r->opt, ++r->updates, 0, 1, &u);
	r->target->apply(r->program, &u);
	r->done = r->done + b.count == r->examples ? 0 : r->done + b.count;
	return t.cases;
}

double row_round(Row *r, double seconds)
{
	uint64_t cases = 0, repeats = 1;
	double began, now;

	bool bulk = row_updates(r) > 0;
	if (!bulk)
		row_update(r); /* warm up caches, wake threads */
	began = clock_seconds();
	do {
		for (uint64_t i = 0; i < repeats; i++)
			cases += bulk ? row_updates(r) : row_update(r);
		now = clock_seconds() - began;
		if (now < seconds / 64) /* read the clock rarely */
			repeats *= 2;
	} while (now < seconds);
	return 1e-6 * (double)r->net->links * (double)cases * ticks_make(r->net, &r->opt).each / now;
}

/* A weighted sum and a gradient for every connection; an error for those whose source has one. */
double row_flops(const Row *r)
{
	const Net *net = r->net;
	uint64_t back = 0;

	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			const Group *g = net_group(net, net_source(net, u, i));
			back += g && (g->role == ROLE_HIDDEN || g->role == ROLE_OUTPUT);
		}
	return 4 + 2 * (double)back / (double)net->links;
}
