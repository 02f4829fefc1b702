/* SPDX-License-Identifier: MIT */
/* Network scripts of LENS (.in) to topologies.  In: groups, projections and settings as tcl.c read them.  Out: the text
 * of a topology, and with a file of weights (lens_wt.c) the weights.
 *
 * Groups are computed in their order; a projection from a group that comes later, or from the group itself, carries
 * what that group was one event before: a context here, NAME-before.  A CONTINUOUS network settles: its links read the
 * tick before.  The bias group is `true`. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lens_net.h"

/* ---- groups ------------------------------------------------------------------------------------- */

typedef struct GroupType {
	const char *name;
	unsigned flag; /* LENS_... that it sets */
	int fn;        /* FN_..., -1: none */
	int error;     /* ERR_..., -1: none */
} GroupType;
static const GroupType group_types[] = {
	{ "INPUT", LENS_IS_INPUT, -1, -1 },
	{ "OUTPUT", LENS_IS_OUTPUT, -1, -1 },
	{ "ELMAN", LENS_IS_ELMAN, -1, -1 },
	{ "BIASED", LENS_BIASED, -1, -1 },
	{ "LOGISTIC", 0, FN_SIGMOID, -1 },
	{ "LINEAR", 0, FN_LINEAR, -1 },
	{ "TANH", 0, FN_TANH, -1 },
	{ "SOFT_MAX", 0, FN_SOFTMAX, -1 },
	{ "SUM_SQUARED", 0, -1, ERR_SQUARED },
	{ "CROSS_ENTROPY", 0, -1, ERR_CROSS_ENTROPY },
	{ "DIVERGENCE", 0, -1, ERR_DIVERGENCE },
	{ "IN_INTEGR", LENS_IN_INTEGR, -1, -1 },
	{ "OUT_INTEGR", LENS_OUT_INTEGR, -1, -1 },
	{ "IN_NOISE", LENS_IN_NOISE, -1, -1 },
	{ "OUT_NOISE", LENS_OUT_NOISE, -1, -1 },
	{ "DOT_PRODUCT", 0, -1, -1 },
	{ "HARD_CLAMP", 0, -1, -1 },
	{ "ELMAN_CLAMP", 0, -1, -1 },
	{ "STANDARD_CRIT", 0, -1, -1 },
	{ "MAX_CRIT", 0, -1, -1 },
	{ "RESET_ON_EXAMPLE", 0, -1, -1 },
	{ "USE_TARGET_HIST", 0, -1, -1 },
	{ "USE_OUT_DERIV_HIST", 0, -1, -1 },
};

LensGroupDef *lens_group(LensNet *n, Text name)
{
	const char *made = name_made(&n->o->cx->scratch, name);
	for (uint32_t i = 0; i < n->groups; i++)
		if (strcmp(n->group[i].name, made) == 0)
			return &n->group[i];
	return NULL;
}

static const LensSettings unset = { NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };

LensGroupDef *lens_add_group(LensNet *n, Text name, uint32_t size, Loc at)
{
	if (lens_group(n, name))
		fail_at(n->o->cx, at, "give it another name", "there are two groups '%s'", text_shown(n->o->cx, name));
	n->group = arena_reserve(&n->o->cx->scratch, n->group, n->groups, &n->group_cap, sizeof *n->group);
	LensGroupDef *g = &n->group[n->groups++];
	*g = (LensGroupDef){ .name = name_made(&n->o->cx->scratch, name), .size = size, .fn = -1, .error = -1, .at = at };
	g->start = g->dt = NAN;
	g->set = unset;
	return g;
}

void lens_type(LensNet *n, LensGroupDef *g, Text word, Loc at)
{
	bool remove = word.len && word.s[0] == '-';
	Text name = word.len && strchr("+-~", word.s[0]) ? (Text){ word.s + 1, word.len - 1 } : word;
	for (size_t i = 0; i < COUNT(group_types); i++) {
		const GroupType *t = &group_types[i];
		if (!text_is(name, t->name))
			continue;
		if (remove) {
			g->removed |= t->flag;
			return;
		}
		g->flags |= t->flag;
		g->fn = t->fn >= 0 ? t->fn : g->fn;
		g->error = t->error >= 0 ? t->error : g->error;
		return;
	}
	old_lost(n->o, at, "the group type %s", text_shown(n->o->cx, word));
}

/* Bias links exist from then on. */
void lens_finish_group(LensNet *n, LensGroupDef *g)
{
	unsigned clamped = g->flags & (LENS_IS_INPUT | LENS_IS_ELMAN);
	g->biased = (!clamped || (g->flags & LENS_BIASED)) && !(g->removed & LENS_BIASED);
	if (!g->biased)
		return;
	LensLinks *l = lens_links(n, LENS_BIAS, (uint32_t)(g - n->group), g->at);
	l->kind = LINK_FULL;
}

LensLinks *lens_links(LensNet *n, uint32_t from, uint32_t to, Loc at)
{
	n->link = arena_reserve(&n->o->cx->scratch, n->link, n->links, &n->link_cap, sizeof *n->link);
	LensLinks *l = &n->link[n->links++];
	*l = (LensLinks){ .from = from, .to = to, .mean = NAN, .range = NAN, .at = at };
	return l;
}

/* ---- text --------------------------------------------------------------------------------------- */

static int role_of(const LensGroupDef *g)
{
	assert(g);
	return g->flags & LENS_IS_INPUT    ? ROLE_INPUT
	       : g->flags & LENS_IS_OUTPUT ? ROLE_OUTPUT
	       : g->flags & LENS_IS_ELMAN  ? ROLE_CONTEXT
	                                   : ROLE_HIDDEN;
}

static int fn_of(const LensGroupDef *g) { return g->fn >= 0 ? g->fn : FN_SIGMOID; }

static double start_of(const LensGroupDef *g)
{
	if (!isnan(g->start))
		return g->start;
	return fn_of(g) == FN_LINEAR || fn_of(g) == FN_TANH ? 0 : 0.5;
}

/* Does the projection carry what its source was an event before? */
static bool goes_back(const LensNet *n, const LensLinks *l)
{
	return !n->continuous && l->from != LENS_BIAS && l->from >= l->to && role_of(&n->group[l->from]) != ROLE_CONTEXT &&
	       role_of(&n->group[l->from]) != ROLE_INPUT;
}

static int error_of(const LensGroupDef *g)
{
	return g->error >= 0            ? g->error
	       : fn_of(g) == FN_SOFTMAX ? ERR_DIVERGENCE
	       : fn_of(g) == FN_SIGMOID ? ERR_CROSS_ENTROPY
	                                : ERR_SQUARED;
}

/* The error function that all output groups have; -1: they differ. */
static int error_of_all(const LensNet *n)
{
	int error = -2;
	for (uint32_t i = 0; i < n->groups; i++)
		if (role_of(&n->group[i]) == ROLE_OUTPUT)
			error = error == -2 || error == error_of(&n->group[i]) ? error_of(&n->group[i]) : -1;
	return error == -2 ? ERR_SQUARED : error;
}

/* Squared errors have no factor 1/2 in LENS: their gradient is twice ours. */
static double train_rate(const LensNet *n) { return n->rate * (error_of_all(n) == ERR_SQUARED ? 2 : 1); }

/* Gaussian, of standard deviation noiseRange, which is 0.1 if it is not set. */
static void put_noise(const LensNet *n, Buf *b)
{
	for (uint32_t i = 0; i < n->groups; i++) {
		const LensGroupDef *g = &n->group[i];
		double all = isnan(n->set.noise) ? 0.1 : n->set.noise, range = isnan(g->set.noise) ? all : g->set.noise;
		unsigned flags = g->flags & ~g->removed;
		int role = role_of(g);
		bool refused = role == ROLE_CONTEXT || (role == ROLE_OUTPUT && error_of(g) != ERR_SQUARED);
		if (!(range > 0))
			continue;
		if ((flags & LENS_IN_NOISE) && (role == ROLE_HIDDEN || role == ROLE_OUTPUT))
			buf_printf(b, "noise %s net gaussian %.9g\n", g->name, range);
		if ((flags & LENS_OUT_NOISE) && refused)
			old_lost(n->o, g->at, "noise of the outputs of '%s', %s", g->name,
			         role == ROLE_CONTEXT ? "which is a copy" : "whose error is made of their logarithms");
		else if (flags & LENS_OUT_NOISE)
			buf_printf(b, "noise %s gaussian %.9g\n", g->name, range);
	}
}

/* Settings of a group.  LENS's squared error has no factor 1/2: where all groups have it, put_train doubles the rate;
 * else the group's error is scaled. */
static void put_settings(const LensNet *n, const LensGroupDef *g, Buf *b)
{
	bool output = role_of(g) == ROLE_OUTPUT, differ = error_of_all(n) < 0;
	double scale = isnan(g->set.error_scale) ? 1 : g->set.error_scale, rate = train_rate(n);
	if (output && differ)
		buf_printf(b, " error %s", error_fns[error_of(g)].name);
	if (differ && error_of(g) == ERR_SQUARED)
		scale *= 2;
	const struct {
		const char *word;
		double own, all;
		bool fits;
	} settings[] = {
		{ "gain", g->set.gain, n->set.gain, fn_of(g) == FN_SIGMOID || fn_of(g) == FN_TANH },
		{ "decay", g->set.decay >= 0 && rate > 0 ? fmin(g->set.decay / rate, 1) : (double)NAN, NAN, true },
		{ "error-scale", scale != 1 ? scale : (double)NAN, NAN, output },
		{ "criterion", g->set.crit, NAN, output },
		{ "target-radius", g->set.target_radius, n->set.target_radius, output },
		{ "zero-error-radius", g->set.zero_radius, n->set.zero_radius, output },
	};
	for (size_t i = 0; i < COUNT(settings); i++) {
		double v = isnan(settings[i].own) ? settings[i].all : settings[i].own;
		if (settings[i].fits && !isnan(v))
			buf_printf(b, " %s %.9g", settings[i].word, v);
	}
}

static void put_groups(LensNet *n, Buf *b)
{
	static const char *const roles[ROLE_COUNT] = { " input", "", " output", " context" };
	for (uint32_t i = 0; i < n->groups; i++) {
		const LensGroupDef *g = &n->group[i];
		int role = role_of(g);
		buf_printf(b, "group %s %" PRIu32, g->name, g->size);
		bool computes = role == ROLE_HIDDEN || role == ROLE_OUTPUT;
		if (computes)
			buf_printf(b, " %s", unit_fns[fn_of(g)].name);
		buf_puts(b, roles[role]);
		if (computes && n->continuous) { /* outputs integrate unless something else is said */
			bool input = g->flags & LENS_IN_INTEGR;
			if (input || !(g->removed & LENS_OUT_INTEGR))
				buf_printf(b, " integrate %s", input ? "input" : "output");
			if (!isnan(g->dt))
				buf_printf(b, " dt %.9g", fmin(fmax(g->dt, 0), 1e6));
			if (start_of(g) != 0)
				buf_printf(b, " start %.9g", start_of(g));
		}
		if (computes)
			put_settings(n, g, b);
		buf_puts(b, "\n");
	}
	for (uint32_t i = 0; i < n->groups; i++)
		if (n->group[i].back)
			buf_printf(b, "group %s-before %" PRIu32 " context\n", n->group[i].name, n->group[i].size);
}

static void put_links(LensNet *n, Buf *b)
{
	assert(n->group || !n->links);
	for (uint64_t i = 0; i < n->links; i++) {
		const LensLinks *l = &n->link[i];
		const LensGroupDef *from = l->from == LENS_BIAS ? NULL : &n->group[l->from], *to = &n->group[l->to];
		double mean = isnan(l->mean) ? n->rand_mean : l->mean, range = isnan(l->range) ? n->rand_range : l->range;
		uint32_t least = from ? min_u32(from->size, to->size) : 0;
		buf_printf(b, "connect %s%s", from ? from->name : "true", goes_back(n, l) ? "-before" : "");
		if (l->kind == LINK_ONE_TO_ONE && from && least < from->size)
			buf_printf(b, "[0:%" PRIu32 "]", least - 1);
		buf_printf(b, " -> %s", to->name);
		if (l->kind == LINK_ONE_TO_ONE && least < to->size)
			buf_printf(b, "[0:%" PRIu32 "]", least - 1);
		if (l->kind == LINK_ONE_TO_ONE)
			buf_puts(b, " one-to-one");
		if (l->kind == LINK_RANDOM)
			buf_printf(b, " random %.9g seed %" PRIu64, l->strength, i + 1);
		if (to->set.rate >= 0 && n->rate > 0)
			buf_printf(b, " rate %.9g", to->set.rate / n->rate);
		buf_printf(b, " weights %.9g %.9g%s\n", mean - range, mean + range, l->frozen ? " frozen" : "");
	}
	for (uint32_t i = 0; i < n->groups; i++) {
		const LensGroupDef *g = &n->group[i];
		if (role_of(g) == ROLE_CONTEXT) {
			if (g->source == LENS_BIAS)
				fail_at(n->o->cx, g->at, "elmanConnect SOURCE CONTEXT", "the context group '%s' has no source",
				        g->name);
			const LensGroupDef *s = &n->group[g->source];
			buf_printf(b, "copy %s -> %s start %.9g\n", s->name, g->name, start_of(s));
		}
		if (g->back)
			buf_printf(b, "copy %s -> %s-before start %.9g\n", g->name, g->name, start_of(g));
	}
}

/* LENS: change = -rate * gradient + momentum * last - decay * weight; here the decay is part of the gradient.  Its
 * squared error has no factor 1/2, so its gradient is twice ours. */
static void put_train(LensNet *n, Buf *b)
{
	int error = error_of_all(n);
	double rate = train_rate(n);
	buf_printf(b, "train rule %s rate %.9g momentum %.9g error %s\n", n->rule, rate, n->momentum,
	           error_fns[error < 0 ? ERR_SQUARED : error].name);
	if (n->decay > 0 && rate > 0)
		buf_printf(b, "train decay %.9g\n", fmin(n->decay / rate, 1));
	if (n->batch)
		buf_printf(b, "train batch %" PRIu64 "\n", n->batch);
	else
		buf_puts(b, "train batch all\n");
	buf_printf(b, "train updates %" PRIu64 " epochs 0 until never\n", n->updates);
	if (n->shuffle)
		buf_puts(b, "train shuffle on\n");
	if (n->set.crit > 0)
		buf_printf(b, "train threshold %.9g\n", n->set.crit);
	if (n->seed)
		buf_printf(b, "train seed %" PRIu64 "\n", n->seed);
	if (n->bptt > 1 && !n->continuous) {
		char text[24];
		const char *remedy;
		Options o;
		options_init(&o, DEFAULTS_NEWEST);
		snprintf(text, sizeof text, "%" PRIu64, n->bptt);
		bool truncated = option_set(n->o->cx, &o, "bptt", text, &remedy) == NULL;
		if (!truncated)
			note_at(n->o->cx, n->bptt_at, NULL, "backpropTicks: errors go back to the start of the example");
		buf_printf(b, "train bptt %s\n", truncated ? text : "full");
	}
	if (n->continuous) {
		uint64_t ticks = n->ticks > 1 ? n->ticks : n->intervals, intervals = n->ticks > 1 ? n->intervals : 1;
		buf_printf(b, "train ticks %" PRIu64 " intervals %" PRIu64 " settle synchronous\n", ticks, intervals);
		if (n->dt > 0)
			buf_printf(b, "train dt %.9g\n", fmin(n->dt, 1));
		else if (n->ticks == 1)
			buf_puts(b, "train dt 1\n");
	}
	for (int i = 0; i < 2; i++)
		if (n->data[i]) {
			buf_puts(b, i ? "test " : "data ");
			text_print(n->data[i], b);
			buf_puts(b, "\n");
		}
}

Net *lens_read(const Old *o)
{
	LensNet *n = NEW(&o->cx->scratch, 1, LensNet);
	*n = (LensNet){ .o = o,
		            .rule = "doug",
		            .rate = 0.1,
		            .momentum = 0.9,
		            .rand_range = 1,
		            .updates = 100,
		            .ticks = 1,
		            .intervals = 1,
		            .set = unset };
	lens_script(n);
	if (!n->groups)
		fail_at(o->cx, (Loc){ o->src, 0 }, "a script begins with addNet", "the script makes no network");
	if (n->ticks > 1 && !n->continuous)
		old_lost(o, n->net_at, "several ticks without the type CONTINUOUS");
	n->continuous = n->continuous && n->ticks * n->intervals > 1;
	check_errors(o->cx);
	for (uint64_t i = 0; i < n->links; i++)
		if (goes_back(n, &n->link[i]))
			n->group[n->link[i].from].back = true;
	Buf b = { .arena = &o->cx->scratch };
	buf_puts(&b, "# A network of LENS.\ndefaults 1989\n");
	put_groups(n, &b);
	put_links(n, &b);
	put_noise(n, &b);
	put_train(n, &b);
	check_errors(o->cx);
	Net *net = old_parse(o, b.s, b.len);
	if (o->opt->weights)
		lens_weights(n, net, o->opt->weights);
	return net;
}

/* ---- weights ------------------------------------------------------------------------------------ */

/* The group that links from group `from` to unit `to` read: where the network settles, one that holds the tick
 * before. */
static uint32_t tick_before(const Net *net, uint32_t from, Unit to)
{
	for (uint64_t l = net->row[to]; l < net->row[to + 1]; l++) {
		const Group *g = net_group(net, net_source(net, to, l));
		size_t n = strlen(net->group[from].name);
		if (g && strncmp(g->name, net->group[from].name, n) == 0 && strcmp(g->name + n, "@before") == 0)
			return (uint32_t)(g - net->group);
	}
	return from;
}

void lens_each_link(const LensNet *n, const Net *net, LensLinkFn *fn, void *arg)
{
	uint32_t before = n->groups; /* groups NAME-before follow the others */
	uint32_t *context = NEW(&n->o->cx->scratch, n->groups, uint32_t);
	for (uint32_t i = 0; i < n->groups; i++)
		context[i] = n->group[i].back ? before++ : 0;
	for (uint32_t g = 0; g < n->groups; g++)
		for (uint32_t u = 0; u < n->group[g].size; u++)
			for (uint64_t i = 0; i < n->links; i++) {
				const LensLinks *l = &n->link[i];
				if (l->to != g)
					continue;
				Unit to = net->group[g].first + u;
				if (l->from == LENS_BIAS) {
					fn(arg, link_between(net, 0, to));
					continue;
				}
				uint32_t from = goes_back(n, l) ? context[l->from] : l->from;
				if (n->continuous)
					from = tick_before(net, from, to);
				Unit first = net->group[from].first;
				uint32_t size = n->group[l->from].size;
				if (l->kind == LINK_ONE_TO_ONE && u < size)
					fn(arg, link_between(net, first + u, to));
				for (uint32_t k = 0; l->kind == LINK_FULL && k < size; k++)
					fn(arg, link_between(net, first + k, to));
				if (l->kind == LINK_RANDOM)
					fail_at(n->o->cx, l->at, "save the links from LENS as a Xerion file, or train anew",
					        "which links a random projection has only LENS's own random numbers tell");
			}
}
