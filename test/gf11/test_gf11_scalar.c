/* SPDX-License-Identifier: MIT */
/* A scalar model of training on the GF11: plain loops over floats, written from the description in doc/gf11.md, sharing
 * no code with routines, scheduler or executor.  Small networks must agree with it to the bit, on any number of
 * processors and for every summation method, traced and fast. */
#include "gf11_nets.h"

#include "gf11_sum.h"

enum { POINTS = 256, MOST_PROCS = 40 };

typedef struct Model {
	const Net *net;
	const Options *opt;
	const uint32_t *level_of; /* [units] */
	uint32_t levels;
	float value[POINTS], rise[POINTS]; /* the sigmoid */
	float *w, *step;                   /* [links] */
	float *change[MOST_PROCS];         /* [links] of each processor */
	uint32_t *row, *row_back; /* [levels + 1] sources, targets in a row whose products make a tree; 1: a chain */
	float *out, *err;         /* [units] of a case; err: net input, then error, then delta */
	float *result;            /* [outputs] */
} Model;

static float *floats(uint64_t n) { return calloc(n + 1, sizeof(float)); }

/* ---- how sums are shaped ---- */

/* Links of a level by source: what is left of the network for these sums. */
typedef struct Grid {
	uint32_t sources, targets;
	bool *linked;     /* [sources * targets] */
	bool *wants;      /* [sources] */
	uint32_t *source; /* [units] number among the sources */
	uint32_t *target; /* [units] number among the targets */
} Grid;

static Grid grid_new(const Model *m, uint32_t level)
{
	const Net *net = m->net;
	Grid g = { .source = calloc(net->units, 4), .target = calloc(net->units, 4) };
	for (Unit u = 1; u < net->units; u++)
		for (uint64_t l = net->row[u]; m->level_of[u] == level && l < net->row[u + 1]; l++)
			g.source[net_source(net, net_target(net, l), l)] = g.target[u] = 1;
	for (Unit u = 0; u < net->units; u++) {
		g.source[u] = g.source[u] ? g.sources++ : 0;
		g.target[u] = g.target[u] ? g.targets++ : 0;
	}
	g.linked = calloc((size_t)g.sources * g.targets + 1, sizeof *g.linked);
	g.wants = calloc(g.sources + 1, sizeof *g.wants);
	for (Unit u = 1; u < net->units; u++)
		for (uint64_t l = net->row[u]; m->level_of[u] == level && l < net->row[u + 1]; l++) {
			g.linked[(size_t)g.source[net_source(net, net_target(net, l), l)] * g.targets + g.target[u]] = true;
			g.wants[g.source[net_source(net, net_target(net, l), l)]] =
				m->level_of[net_source(net, net_target(net, l), l)] > 0;
		}
	return g;
}

static void grid_free(Grid *g)
{
	free(g->linked);
	free(g->wants);
	free(g->source);
	free(g->target);
}

/* 48 sources at a time: the longest sum, and an add and a multiply for each product. */
static void measure(const Grid *g, bool back, uint32_t *chain, uint32_t *work, uint32_t *longest)
{
	*chain = *work = *longest = 0;
	for (uint32_t first = 0; first < g->sources; first += 48) {
		uint32_t end = first + 48 < g->sources ? first + 48 : g->sources, here = 0;
		for (uint32_t s = first; s < end; s++) {
			uint32_t links = 0;
			for (uint32_t t = 0; t < g->targets; t++)
				links += g->linked[s * g->targets + t];
			here = back && g->wants[s] && links > here ? links : here;
			*work += links * (back && g->wants[s] ? 4 : 2);
		}
		for (uint32_t t = 0; !back && t < g->targets; t++) {
			uint32_t links = 0;
			for (uint32_t s = first; s < end; s++)
				links += g->linked[s * g->targets + t];
			here = links > here ? links : here;
		}
		*chain += here;
		*longest = here > *longest ? here : *longest;
	}
}

/* The fewest products in a tree, 2, 4, 8 or 16, with which a chain of 25 cycles an addition takes no longer than
 * the work; no more than there are, or than 192 registers hold of all sums. */
static uint32_t row_of(const Grid *g, bool back)
{
	uint32_t chain, work, longest, size = 1, levels = 0;
	measure(g, back, &chain, &work, &longest);
	while (25 * ((chain + size - 1) / size + levels) > work && size < 16 && size < longest &&
	       (back || g->targets * (levels + 2) <= 192)) {
		uint32_t before = (chain + size - 1) / size + levels, after = (chain + 2 * size - 1) / (2 * size) + levels + 1;
		if (after >= before)
			break;
		size *= 2;
		levels++;
	}
	uint32_t units = back ? g->targets : g->sources, over = back ? longest : chain;
	uint32_t row = size > 1 ? (size * units + over - 1) / over : 1;
	return row < 48 ? row : 48;
}

/* All rows are full but the first. */
static uint32_t tree_number(uint32_t i, uint32_t units, uint32_t row)
{
	uint32_t first = units % row;
	return i < first ? 0 : 1 + (i - first) / row;
}

/* Values in a row: the left part is the largest power of two that leaves something. */
static float tree_of(const float *v, uint32_t count)
{
	uint32_t left = 1;
	while (2 * left < count)
		left *= 2;
	return count == 1 ? v[0] : tree_of(v, left) + tree_of(v + left, count - left);
}

static Model model_new(const Net *net, const Plan *plan, const Options *opt)
{
	Model m = { .net = net,
		        .opt = opt,
		        .level_of = plan->level_of,
		        .levels = plan->levels,
		        .w = floats(net->links),
		        .step = floats(net->links),
		        .out = floats(net->units),
		        .err = floats(net->units),
		        .result = floats(net->outputs) };
	m.row = calloc(m.levels + 1, sizeof *m.row);
	m.row_back = calloc(m.levels + 1, sizeof *m.row_back);
	for (uint32_t level = 1; level <= m.levels; level++) {
		Grid g = grid_new(&m, level);
		m.row[level] = gf11_own(opt)->small_layers == SMALL_STRAIGHT ? 1 : row_of(&g, false);
		m.row_back[level] = gf11_own(opt)->small_layers == SMALL_STRAIGHT ? 1 : row_of(&g, true);
		grid_free(&g);
	}
	for (int i = 0; i < POINTS; i++)
		m.value[i] = (float)(1 / (1 + arith_exp(15 - i / 8.5)));
	for (int i = 0; i + 1 < POINTS; i++)
		m.rise[i] = m.value[i + 1] - m.value[i];
	for (uint32_t p = 0; p < gf11_own(opt)->procs; p++)
		m.change[p] = floats(net->links);
	return m;
}

static void model_free(Model *m)
{
	for (uint32_t p = 0; p < gf11_own(m->opt)->procs; p++)
		free(m->change[p]);
	free(m->row);
	free(m->row_back);
	free(m->w);
	free(m->step);
	free(m->out);
	free(m->err);
	free(m->result);
}

/* ---- one case ---- */

static float sigmoid(const Model *m, float x)
{
	float inside = x < -15 ? -15 : x > 15 ? 15 : x, place = inside * 8.5f + 127.5f;
	int i = (int)place;
	return m->value[i] + (place - floorf(place)) * m->rise[i];
}

static float unit_value(const Model *m, int fn, float x)
{
	switch (fn) {
	case FN_SIGMOID: return sigmoid(m, x);
	case FN_TANH: {
		float s = sigmoid(m, x + x);
		return (s + s) - 1;
	}
	case FN_RELU: return x <= 0 ? 0 : x;
	default: return x;
	}
}

static float unit_slope(const Model *m, int fn, float out)
{
	float offset = (float)m->opt->prime_offset, slope = out * (1 - out);
	switch (fn) {
	case FN_SIGMOID: return offset > 0 ? slope + offset : slope;
	case FN_TANH: return 1 - out * out;
	default: return out > 0 ? 1 : 0;
	}
}

/* Products of one sum, and the tree that each belongs to, in the order of the chain. */
typedef struct Terms {
	float *value;
	uint32_t *tree, count;
} Terms;

/* Trees first, then one after the other to what there is. */
static float terms_add(const Terms *t, bool empty, float sum)
{
	for (uint32_t i = 0, end; i < t->count; i = end) {
		for (end = i + 1; end < t->count && t->tree[end] == t->tree[i]; end++)
			;
		float part = tree_of(t->value + i, end - i);
		sum = empty ? part : sum + part;
		empty = false;
	}
	return sum;
}

static Terms terms_new(uint32_t most)
{
	return (Terms){ calloc(most + 1, sizeof(float)), calloc(most + 1, sizeof(uint32_t)), 0 };
}

static void terms_free(Terms *t)
{
	free(t->value);
	free(t->tree);
}

/* A net input: products in canonical order, rounded; the first tree starts it. */
static float net_input(const Model *m, const Grid *g, Unit u)
{
	const Net *net = m->net;
	Terms t = terms_new((uint32_t)(net->row[u + 1] - net->row[u]));
	for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
		t.value[t.count] = m->w[l] * m->out[net_source(net, net_target(net, l), l)];
		t.tree[t.count++] =
			tree_number(g->source[net_source(net, net_target(net, l), l)], g->sources, m->row[m->level_of[u]]);
	}
	float sum = terms_add(&t, true, 0);
	terms_free(&t);
	return sum;
}

static void forward(Model *m, const float *x)
{
	const Net *net = m->net;
	m->out[0] = 1;
	for (uint32_t k = 0; k < net->groups; k++)
		for (uint32_t j = 0; net->group[k].role == ROLE_INPUT && j < net->group[k].size; j++)
			m->out[net->group[k].first + j] = *x++;
	for (uint32_t level = 1; level <= m->levels; level++) {
		Grid g = grid_new(m, level);
		for (Unit u = 1; u < net->units; u++) {
			if (m->level_of[u] != level)
				continue;
			m->out[u] = unit_value(m, net_group(net, u)->fn, net_input(m, &g, u));
			m->err[u] = 0;
		}
		grid_free(&g);
	}
}

static bool is_source(const Net *net, Unit u)
{
	for (uint64_t l = 0; l < net->links; l++)
		if (net_source(net, net_target(net, l), l) == u)
			return true;
	return false;
}

/* Difference of output u from target y, times the weight of the case. */
static float difference(const Model *m, Unit u, float y, float weight)
{
	return (isnan(y) ? 0 : m->out[u] - y) * weight;
}

/* An error that cancels the slope is added to the delta, or is all of it where no link leaves the unit. */
static void delta(Model *m, Unit u, const float *y, float weight)
{
	const Group *g = net_group(m->net, u);
	bool matched = y && m->opt->error == ERR_CROSS_ENTROPY && g->fn == FN_SIGMOID;
	if (matched && !is_source(m->net, u)) {
		m->err[u] = difference(m, u, *y, weight);
		return;
	}
	if (g->fn != FN_LINEAR)
		m->err[u] = m->err[u] * unit_slope(m, g->fn, m->out[u]);
	if (matched)
		m->err[u] = m->err[u] + difference(m, u, *y, weight);
}

/* Errors of the sources of a level: each a sum over its targets in order. */
static void errors_back(Model *m, uint32_t level)
{
	const Net *net = m->net;
	Grid g = grid_new(m, level);
	for (Unit source = 1; source < net->units; source++) {
		Terms t = terms_new(g.targets);
		for (Unit u = 1; u < net->units && m->level_of[source] > 0; u++)
			for (uint64_t l = net->row[u]; m->level_of[u] == level && l < net->row[u + 1]; l++)
				if (net_source(net, net_target(net, l), l) == source) {
					t.value[t.count] = m->w[l] * m->err[u];
					t.tree[t.count++] = tree_number(g.target[u], g.targets, m->row_back[level]);
				}
		m->err[source] = terms_add(&t, false, m->err[source]);
		terms_free(&t);
	}
	grid_free(&g);
}

/* Levels from the last. */
static void backward(Model *m, const float *y, float weight, float *change)
{
	const Net *net = m->net;
	const float **target = calloc(net->units, sizeof *target);
	for (uint32_t k = 0; k < net->groups; k++)
		for (uint32_t j = 0; net->group[k].role == ROLE_OUTPUT && j < net->group[k].size; j++)
			target[net->group[k].first + j] = y++;
	for (Unit u = 0; u < net->units; u++)
		if (target[u] && !(m->opt->error == ERR_CROSS_ENTROPY && net_group(net, u)->fn == FN_SIGMOID))
			m->err[u] = difference(m, u, *target[u], weight);
	for (uint32_t level = m->levels; level > 0; level--) {
		for (Unit u = 1; u < net->units; u++)
			if (m->level_of[u] == level)
				delta(m, u, target[u], weight);
		for (Unit u = 1; u < net->units; u++)
			for (uint64_t l = net->row[u]; m->level_of[u] == level && l < net->row[u + 1]; l++)
				change[l] = change[l] + m->err[u] * m->out[net_source(net, net_target(net, l), l)];
		errors_back(m, level);
	}
	free(target);
}

/* Case i of the batch goes to processor i mod P. */
static void model_learn(Model *m, const Cases *c, const uint64_t *order, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t n = order ? order[i] : i;
		forward(m, c->x + n * m->net->inputs);
		backward(m, c->y + n * m->net->outputs, c->d.weight ? c->weight[n] : 1,
		         m->change[i % (uint64_t)gf11_own(m->opt)->procs]);
	}
}

/* ---- the update ---- */

/* What processor p has after `level` steps of the tree, in which it receives from p - 1, p - 2, p - 4, ... */
static float tree_sum(const Model *m, uint64_t l, uint32_t p, uint32_t level, uint32_t power)
{
	if (level) {
		uint32_t from = (p + power - (1u << (level - 1))) % power;
		return tree_sum(m, l, p, level - 1, power) + tree_sum(m, l, from, level - 1, power);
	}
	return p + power < (uint32_t)gf11_own(m->opt)->procs ? m->change[p][l] + m->change[p + power][l] : m->change[p][l];
}

/* As processor 0 adds them. */
static float total(const Model *m, uint64_t l)
{
	uint32_t procs = (uint32_t)gf11_own(m->opt)->procs, level = 0;
	float sum = m->change[0][l];
	while ((2u << level) <= procs)
		level++;
	if (gf11_own(m->opt)->sum == SUM_TREE)
		return tree_sum(m, l, 0, level, 1u << level);
	for (uint32_t p = procs; p-- > 1;)
		sum = sum + m->change[p][l];
	return sum;
}

/* A frozen link keeps weight and step; the rate of others is multiplied by the factor of their block first. */
static void model_update(Model *m)
{
	float momentum = (float)m->opt->momentum, decay = (float)m->opt->decay;
	for (uint64_t l = 0; l < m->net->links; l++) {
		const Block *b = net_block(m->net, net_target(m->net, l), l);
		float rate = (float)m->opt->rate * b->rate, slope = total(m, l);
		if (b->frozen)
			continue;
		if (decay > 0)
			slope = slope + decay * m->w[l];
		m->step[l] = momentum * m->step[l] - rate * slope;
		m->w[l] = m->w[l] + m->step[l];
	}
	for (uint32_t p = 0; p < gf11_own(m->opt)->procs; p++)
		memset(m->change[p], 0, m->net->links * sizeof(float));
}

/* ---- machine against model ---- */

static void same_floats(const Side *s, int which, const float *v)
{
	double *seen = calloc(s->net->links + 1, sizeof *seen);
	s->target->get(s->program, which, 0, ALL_LINKS, seen);
	for (uint64_t i = 0; i < s->net->links; i++) {
		float f = (float)seen[i];
		if (memcmp(&f, &v[i], sizeof f) != 0)
			print_error("%s%d procs, %s %llu is %a, model %a\n", s->text, (int)gf11_own(&s->opt)->procs,
			            which ? "step" : "weight", (unsigned long long)i, f, v[i]);
		assert_memory_equal(&f, &v[i], sizeof f);
	}
	free(seen);
}

static void same_outputs(Side *s, Model *m, const Cases *c)
{
	double *out = calloc(c->d.cases * s->net->outputs + 1, sizeof *out), *o = out;
	Tally t = { 0 };
	assert_int_equal(s->target->evaluate(s->program, 0, c->d.cases, &s->stop, out, &t), MP_OK);
	for (uint64_t i = 0; i < c->d.cases; i++) {
		forward(m, c->x + i * s->net->inputs);
		for (uint32_t k = 0; k < s->net->groups; k++)
			for (uint32_t j = 0; s->net->group[k].role == ROLE_OUTPUT && j < s->net->group[k].size; j++)
				assert_true(*o++ == m->out[s->net->group[k].first + j]);
	}
	free(out);
}

static void plan_body(Ctx *cx, void *arg)
{
	Plan **plan = arg;
	*plan = plan_make(cx, (*plan)->net, &(Caps){ .target = "none", .lanes = 1 });
}

/* Steps start anywhere: frozen ones must stay. */
static void steps_start(const Side *s, Model *m)
{
	double *step = calloc(s->net->links + 1, sizeof *step);
	for (uint64_t i = 0; i < s->net->links; i++)
		step[i] = m->step[i] = (float)(0.1 * random_unit(3, STREAM_DATA, i) - 0.05);
	s->target->set(s->program, 1, 0, ALL_LINKS, step);
	free(step);
}

/* `rates`: steps start anywhere. */
static void agree_on(Draft *t, Options opt, bool rates)
{
	Side s;
	uint32_t procs = (uint32_t)gf11_own(&opt)->procs;
	gf11_own(&opt)->sigmoid = SIGMOID_TABLE;
	opt.threads = 1;
	side_open(&s, &target_gf11, t->text, opt);
	Plan *plan = &(Plan){ .net = s.net };
	assert_int_equal(guarded(&s.cx, plan_body, &plan), MP_OK);
	uint64_t cases = 1 + roll(&t->d, 3 * procs), order[128], some = 1 + cases / 2;
	Cases c = cases_make(&t->d, s.net, cases);
	side_take(&s, &c.d);
	Model m = model_new(s.net, plan, &s.opt);
	double *w = calloc(s.net->links + 1, sizeof *w);
	s.target->get(s.program, 0, 0, ALL_LINKS, w);
	for (uint64_t i = 0; i < s.net->links; i++)
		m.w[i] = (float)w[i];
	if (rates)
		steps_start(&s, &m);
	for (uint64_t i = 0; i < cases; i++)
		order[i] = cases - 1 - i;
	for (uint64_t update = 1; update <= 4; update++) {
		bool all = update % 2;
		side_learn(&s, (Batch){ .example = all ? NULL : order, .count = all ? cases : some });
		side_update(&s, update);
		model_learn(&m, &c, all ? NULL : order, all ? cases : some);
		model_update(&m);
		same_floats(&s, 0, m.w);
		same_floats(&s, 1, m.step);
	}
	same_outputs(&s, &m, &c);
	free(w);
	model_free(&m);
	cases_free(&c);
	ctx_free(&s.cx);
}

static void agree(uint64_t seed, uint32_t procs, int sum, bool rates)
{
	Draft t;
	Options opt;
	options_init(&opt, DEFAULTS_1989);
	gf11_own(&opt)->procs = procs;
	gf11_own(&opt)->sum = sum;
	gf11_own(&opt)->compiler = (int)(seed / 2 % 2); /* no matter */
	draft(&t, seed, 16, FN_SOFTMAX);                /* the functions before it */
	if (seed % 5 == 0)
		say(&t, "train small-layers straight\n");
	if (roll(&t.d, 2))
		say(&t, "train prime-offset 0.1\n");
	if (rates)
		draft_rates(&t);
	agree_on(&t, opt, rates);
}

static void one_and_two_processors_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++)
		agree(seed, 1 + seed % 2, SUM_TREE, false);
}

static void tree_and_ring_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 20; seed < 32; seed++)
		agree(seed, 3 + (uint32_t)(seed * 7 % 14), seed % 2 ? SUM_TREE : SUM_RING, false);
}

static void frozen_links_rates_and_decay_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 60; seed < 80; seed++)
		agree(seed, 1 + (uint32_t)(seed * 7 % 14), seed % 3 ? SUM_TREE : SUM_RING, true);
}

/* Layers of few units between wide ones, also with links cut into several bundles: chains are the bound there. */
static void small_layers_agree(void **state)
{
	(void)state;
	static const struct {
		uint32_t size[4];
		const char *how;
	} nets[] = {
		{ { 60, 3, 40, 2 }, "" },
		{ { 37, 1, 64, 5 }, "" },
		{ { 130, 5, 7, 50 }, "random 0.4 seed 3" },
		{ { 90, 12, 12, 1 }, "" },
		{ { 64, 2, 2, 64 }, "random 0.8 seed 5" },
	};
	for (size_t i = 0; i < 4 * COUNT(nets); i++) {
		const uint32_t *size = nets[i / 4].size;
		Draft t = { .d = { i, 0 } };
		Options opt;
		options_init(&opt, DEFAULTS_1989);
		gf11_own(&opt)->procs = 1 + (int)(i % 3);
		gf11_own(&opt)->sum = SUM_TREE;
		gf11_own(&opt)->compiler = (int)(i % 2);
		say(&t, "group a %u input\ngroup b %u\ngroup c %u\ngroup d %u output\n", size[0], size[1], size[2], size[3]);
		say(&t, "connect a -> b %s\nconnect b -> c %s\nconnect c -> d\nconnect true -> b, c\n", nets[i / 4].how,
		    nets[i / 4].how);
		say(&t, "train bundle %d small-layers %s\n", i % 4 < 2 ? 0 : 70,
		    small_names[i == 3 ? SMALL_STRAIGHT : SMALL_AUTO]);
		agree_on(&t, opt, false);
	}
}

/* ---- sequences ---- */

/* Contexts, all at once, of a case that comes after the one whose outputs are `before`; NULL: none did. */
static void contexts(Model *m, const float *before)
{
	for (uint32_t k = 0; k < m->net->copies; k++) {
		const Group *from = &m->net->group[m->net->copy[k].from_group], *to = &m->net->group[m->net->copy[k].to_group];
		for (uint32_t j = 0; j < to->size; j++)
			m->out[to->first + j] = before ? before[from->first + j] : to->start;
	}
}

/* A lane of a processor: its sequences in order, and which case of them comes next. */
typedef struct Bin {
	uint64_t load, number, sequence[64], sequences, now, next;
	float *out;
} Bin;

static int fuller_first(const void *a, const void *b)
{
	const Bin *x = a, *y = b;
	if (x->load != y->load)
		return x->load > y->load ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* The longest sequence first, to the first bin of those with the fewest cases; bins from the fullest. */
static Bin *bins_fill(const Cases *c, uint32_t bins, uint32_t units)
{
	Bin *bin = calloc(bins, sizeof *bin);
	bool used[128] = { false };
	for (uint32_t i = 0; i < bins; i++)
		bin[i] = (Bin){ .number = i, .out = floats(units) };
	for (uint64_t n = 0; n < c->d.sequences; n++) {
		uint64_t longest = UINT64_MAX, least = 0;
		for (uint64_t s = 0; s < c->d.sequences; s++)
			if (!used[s] &&
			    (longest == UINT64_MAX || c->seq[s + 1] - c->seq[s] > c->seq[longest + 1] - c->seq[longest]))
				longest = s;
		for (uint32_t i = 1; i < bins; i++)
			least = bin[i].load < bin[least].load ? i : least;
		used[longest] = true;
		bin[least].sequence[bin[least].sequences++] = longest;
		bin[least].load += c->seq[longest + 1] - c->seq[longest];
	}
	qsort(bin, bins, sizeof *bin, fuller_first);
	return bin;
}

/* The next case of a bin, learnt by processor p; the outputs go to `result`.  False: it is at its end. */
static bool bin_learn(Model *m, const Cases *c, Bin *b, uint32_t p, float *result)
{
	uint64_t n;
	while (b->now < b->sequences && c->seq[b->sequence[b->now]] + b->next == c->seq[b->sequence[b->now] + 1]) {
		b->now++;
		b->next = 0;
	}
	if (b->now == b->sequences)
		return false;
	n = c->seq[b->sequence[b->now]] + b->next;
	contexts(m, b->next++ ? b->out : NULL);
	forward(m, c->x + n * m->net->inputs);
	memcpy(b->out, m->out, m->net->units * sizeof(float));
	backward(m, c->y + n * m->net->outputs, c->d.weight ? c->weight[n] : 1, m->change[p]);
	for (uint32_t k = 0, o = 0; k < m->net->groups; k++)
		for (uint32_t j = 0; m->net->group[k].role == ROLE_OUTPUT && j < m->net->group[k].size; j++)
			result[n * m->net->outputs + o++] = m->out[m->net->group[k].first + j];
	return true;
}

/* Step by step, at each over the lanes in order. */
static void model_learn_sequences(Model *m, const Cases *c, uint32_t lanes, float *result)
{
	uint32_t procs = (uint32_t)gf11_own(m->opt)->procs;
	Bin *bin = bins_fill(c, procs * lanes, m->net->units);
	for (bool any = true; any;) {
		any = false;
		for (uint32_t i = 0; i < procs * lanes; i++)
			any |= bin_learn(m, c, &bin[i], i % procs, result);
	}
	for (uint32_t i = 0; i < procs * lanes; i++)
		free(bin[i].out);
	free(bin);
}

typedef struct Memory {
	const char *text;
	const Cases *c;
	BpOptions o;
	uint32_t lanes;
	Options opt;
	Bp *b;
	uint64_t *slot; /* [cases] */
	double *w;
} Memory;

static void memory_body(Ctx *cx, void *arg)
{
	Memory *t = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = t->text, .len = strlen(t->text) };
	Net *net = net_parse(cx, src, DEFAULTS_1989);
	Plan *plan = plan_make(cx, net, &(Caps){ .target = "gf11", .lanes = 1 });
	uint64_t count = t->c->d.sequences, *length = NEW(&cx->keep, count, uint64_t), first;
	for (uint64_t i = 0; i < count; i++)
		data_example(&t->c->d, i, &first, &length[i]);
	t->o.sequences = &(BpSequences){ .length = length, .count = count, .lanes = t->lanes, .steps = t->c->d.cases };
	t->opt = net->options;
	gf11_own(&t->opt)->sigmoid = SIGMOID_TABLE;
	gf11_own(&t->opt)->procs = t->o.procs;
	t->b = bp_new(cx, plan, &t->opt, machine_open(cx, "gf11"), &t->o, 0);
	t->w = NEW(&cx->keep, net->links, double);
	net_weights(net, 1, 0, ALL_LINKS, t->w);
	bp_weights_write(t->b, 0, t->w);
	uint64_t room = (uint64_t)t->b->at.slots * t->o.procs;
	BpArranged to = { .lanes = t->lanes,
		              .steps = t->c->d.cases,
		              .wanted = NEW(&cx->keep, room, uint64_t),
		              .slot = NEW(&cx->keep, t->c->d.cases, uint64_t) };
	Packer *k = packer_new(&cx->keep, count);
	assert_int_equal(sequences_arrange(k, t->b, &t->c->d, &(Batch){ .count = count }, 0, count, &to), count);
	assert_int_equal(to.cases, t->c->d.cases);
	bp_load_cases(t->b, &t->c->d, to.wanted, to.slots);
	bp_accumulate(t->b);
	t->slot = to.slot;
}

/* Outputs of all cases, and the changes of every processor. */
static void same_memory_of(const Memory *t, Model *m)
{
	const Net *net = t->b->net;
	float *result = floats(t->c->d.cases * net->outputs);
	double *change = calloc(net->links + 1, sizeof *change);
	for (uint64_t i = 0; i < net->links; i++)
		m->w[i] = (float)t->w[i];
	model_learn_sequences(m, t->c, t->lanes, result);
	for (uint64_t i = 0; i < t->c->d.cases; i++)
		assert_memory_equal(result + i * net->outputs, bp_outputs(t->b, t->slot[i]), net->outputs * sizeof(float));
	for (uint32_t p = 0; p < t->o.procs; p++) {
		bp_weights_read(t->b, 1, p, change);
		for (uint64_t i = 0; i < net->links; i++) {
			if (change[i] != m->change[p][i])
				print_error("%s%u lanes: change %llu of processor %u is %a, model %a\n", t->text, t->lanes,
				            (unsigned long long)i, p, change[i], (double)m->change[p][i]);
			assert_true(change[i] == m->change[p][i]);
		}
	}
	free(change);
	free(result);
}

/* Any number of lanes; both compilers; traced alternately. */
static void sequences_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 124; seed++) {
		Draft t;
		Side s;
		Ctx cx;
		Options opt;
		options_init(&opt, DEFAULTS_1989);
		draft(&t, seed, 16, FN_SOFTMAX);
		draft_memory(&t);
		side_open(&s, &target_ref, t.text, opt);
		Cases c = cases_make(&t.d, s.net, 1 + roll(&t.d, 60));
		cases_cut(&t.d, &c, 7);
		Memory j = { .text = t.text, .c = &c, .lanes = 1 + roll(&t.d, 4) };
		j.o = (BpOptions){
			.procs = 1 + roll(&t.d, 6), .compiler = (int)(seed % 2), .traced = seed % 4 > 1, .threads = 1
		};
		ctx_init(&cx, NULL);
		Status status = guarded(&cx, memory_body, &j);
		if (status != MP_OK)
			print_error("%s%s", t.text, ctx_messages(&cx));
		assert_int_equal(status, MP_OK);
		Model m = model_new(j.b->net, j.b->plan, &j.opt);
		same_memory_of(&j, &m);
		model_free(&m);
		cases_free(&c);
		ctx_free(&cx);
		ctx_free(&s.cx);
	}
}

/* ---- traced and fast ---- */

typedef struct Trial {
	const char *text;
	BpOptions o;
	const Cases *c;
	Bp *b;
	Net *net;
	Options opt;
} Trial;

static void trial_body(Ctx *cx, void *arg)
{
	Trial *t = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = t->text, .len = strlen(t->text) };
	t->net = net_parse(cx, src, DEFAULTS_1989);
	t->opt = t->net->options;
	gf11_own(&t->opt)->sigmoid = SIGMOID_TABLE;
	Plan *plan = plan_make(cx, t->net, &(Caps){ .target = "gf11", .lanes = 1 });
	double *w = NEW(&cx->keep, t->net->links, double);
	net_weights(t->net, 1, 0, ALL_LINKS, w);
	t->b = bp_new(cx, plan, &t->opt, machine_open(cx, "gf11"), &t->o, t->c->d.cases);
	if (!t->b->summing)
		sum_compile(t->b);
	bp_weights_write(t->b, 0, w);
	bp_load_cases(t->b, &t->c->d, NULL, t->c->d.cases);
	for (int update = 0; update < 2; update++) {
		Update u;
		update_fill(&t->opt, 1, 0, 0, &u);
		bp_accumulate(t->b);
		sum_update(t->b, &u);
	}
}

/* All words of all processors. */
static void same_memory(const Bp *a, const Bp *b)
{
	for (uint32_t word = 0; word < a->at.dram_end; word++)
		assert_memory_equal(a->p->dram + (size_t)word * a->p->lanes, b->p->dram + (size_t)word * b->p->lanes,
		                    a->o.procs * sizeof(uint32_t));
	assert_int_equal(bp_cycles(a), bp_cycles(b));
}

static void traced_and_fast_give_the_same_bits(void **state)
{
	(void)state;
	for (int k = 0; k < 2 * SUMS; k++) {
		int sum = k / 2, compiler = k % 2;
		Draft t;
		Ctx cx[3];
		Trial trial[3];
		draft(&t, 40 + (uint64_t)sum, 14, FN_EVERYWHERE);
		draft_rates(&t);
		Side s;
		Options opt;
		options_init(&opt, DEFAULTS_1989);
		gf11_own(&opt)->sigmoid = SIGMOID_TABLE;
		gf11_own(&opt)->procs = 5;
		side_open(&s, &target_ref, t.text, opt);
		Cases c = cases_make(&t.d, s.net, 11);
		for (int i = 0; i < 3; i++) {
			trial[i] = (Trial){ .text = t.text, .c = &c };
			trial[i].o = (BpOptions){
				.procs = 5, .sum = sum, .compiler = compiler, .threads = i == 1 ? 2 : 1, .traced = i == 2
			};
			ctx_init(&cx[i], NULL);
			Status status = guarded(&cx[i], trial_body, &trial[i]);
			if (status != MP_OK)
				print_error("%s%s", t.text, ctx_messages(&cx[i]));
			assert_int_equal(status, MP_OK);
		}
		same_memory(trial[0].b, trial[1].b);
		same_memory(trial[0].b, trial[2].b);
		for (int i = 0; i < 3; i++)
			ctx_free(&cx[i]);
		cases_free(&c);
		ctx_free(&s.cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_and_two_processors_agree),
		cmocka_unit_test(tree_and_ring_agree),
		cmocka_unit_test(sequences_agree),
		cmocka_unit_test(frozen_links_rates_and_decay_agree),
		cmocka_unit_test(small_layers_agree),
		cmocka_unit_test(traced_and_fast_give_the_same_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
