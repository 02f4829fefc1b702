/* SPDX-License-Identifier: MIT */
/* Where units and weights are. In: a Plan. Out: parts of units, panels of weights, and the forms of them that passes
 * need.
 *
 * Units of a group that have one level and the same sources make a part, and their links are cut into panels where
 * the sources are not adjacent or the blocks they come from have other rates. Where nearly every unit has
 * sources of its own, as after `connect random`, the units make one part all the same: with all their sources as
 * one matrix that has gaps, if it is not too empty, else with a list of links. Must hold: panels into a part are
 * in the order of sources, and outlets of a part in the order of targets, for that is the order of sums. */
#include <math.h>
#include <string.h>

#include "cpu_layout.h"

enum {
	WIDE = 8, /* units of a part, if a stretch is cut into several */
	SMALL_PANEL = 4,
	FEW_PANELS = 16, /* links of a panel, below which a list is better unless panels are few */
	/* At least one place in this many of a matrix with gaps must be a link, else a list is faster (doc/cpu.md). */
	SPARSEST = 4,
	LARGE = 1 << 16, /* weights of a panel that passes transpose themselves, so that no copy is kept; */
	MUCH = 32        /* it is by target, which needs one, only to save this part of its multiply-adds */
};

typedef struct Maker {
	Ctx *cx;
	const Plan *plan;
	const Net *net;
	const Options *opt;
	Layout *l;
	uint32_t *part_of; /* [units] */
	uint32_t panels;   /* capacity */
	uint32_t *strip;   /* [cols / LANES] zeros, for links_list */
} Maker;

static uint32_t padded(uint64_t n) { return (uint32_t)((n + LANES - 1) / LANES * LANES); }

/* ---- parts ---- */

/* Same sources, with weights that change alike. */
static bool same_sources(const Net *net, Unit u, Unit v)
{
	uint64_t a = net->row[u], b = net->row[v], n = net->row[u + 1] - a;

	if (!net_same_sources(net, u, v))
		return false;
	for (uint64_t i = 0; i < n && a + net->block_at[u] != b + net->block_at[v]; i++)
		if (!block_alike(net_block(net, u, a + i), net_block(net, v, b + i)))
			return false;
	return true;
}

static void add_part(Maker *m, const Group *g, Unit first, uint32_t count)
{
	Layout *l = m->l;
	Part *p = &l->part[l->parts];

	*p = (Part){ .first = first,
		         .count = count,
		         .fn = g ? g->fn : FN_LINEAR,
		         .role = g ? g->role : ROLE_INPUT,
		         .level = first ? m->plan->level_of[first] : 0,
		         .group = g ? (int32_t)(g - m->net->group) : -1,
		         .integrate = g ? g->integrate : INTEGRATE_NONE,
		         .shaped = g && group_is_shaped(g) };
	p->error = p->level > 0 || (p->role == ROLE_CONTEXT && m->opt->bptt != BPTT_COPY);
	p->col = l->cols;
	l->cols += padded(count);
	for (uint32_t i = 0; i < count; i++) {
		m->part_of[first + i] = l->parts;
		l->col_of[first + i] = p->col + i;
	}
	l->parts++;
}

/* Units first .. end - 1 have one level: parts of units with equal sources if these are wide, else one part. */
static void add_stretch(Maker *m, const Group *g, Unit first, Unit end)
{
	uint32_t runs = 1;

	for (Unit u = first + 1; u < end; u++)
		runs += !same_sources(m->net, u - 1, u);
	if (runs == 1 || g->fn == FN_SOFTMAX || (end - first) / runs < WIDE) {
		add_part(m, g, first, end - first);
		return;
	}
	for (Unit u = first; u < end; u = first) {
		while (first < end && same_sources(m->net, u, first))
			first++;
		add_part(m, g, u, first - u);
	}
}

static void make_parts(Maker *m)
{
	const Net *net = m->net;
	uint32_t input = 0, output = 0;

	m->l->part = NEW(&m->cx->fixed, net->units, Part);
	add_part(m, NULL, 0, 1);
	for (uint32_t k = 0; k < net->groups; k++) {
		const Group *g = &net->group[k];
		Unit end = g->first + g->size, u = g->first;
		uint32_t before = m->l->parts;
		while (u < end) {
			Unit next = u + 1;
			while (next < end && m->plan->level_of[next] == m->plan->level_of[u])
				next++;
			if (m->plan->level_of[u])
				add_stretch(m, g, u, next);
			else
				add_part(m, g, u, next - u);
			u = next;
		}
		for (uint32_t i = before; i < m->l->parts; i++) {
			m->l->part[i].input = input + m->l->part[i].first - g->first;
			m->l->part[i].output = output + m->l->part[i].first - g->first;
		}
		input += g->role == ROLE_INPUT ? g->size : 0;
		output += g->role == ROLE_OUTPUT ? g->size : 0;
	}
}

/* ---- panels ---- */

static Panel *add_panel(Maker *m, uint32_t part)
{
	Layout *l = m->l;

	if (l->panels == m->panels) {
		uint32_t more = m->panels ? 2 * m->panels : 64;
		l->panel = arena_grow(&m->cx->fixed, l->panel, m->panels, more, sizeof *l->panel);
		m->panels = more;
	}
	Panel *p = &l->panel[l->panels++];
	*p = (Panel){ .part = part, .targets = l->part[part].count, .copy = NONE, .by_source = true };
	l->part[part].ins++;
	return p;
}

/* How many panels the sources of a unit make. */
static uint64_t count_runs(const Maker *m, Unit u)
{
	const Net *net = m->net;
	uint64_t runs = 0;

	for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
		runs += i == net->row[u] || net_source(net, u, i) != net_source(net, u, i - 1) + 1 ||
		        m->part_of[net_source(net, u, i)] != m->part_of[net_source(net, u, i - 1)] ||
		        !block_alike(net_block(net, u, i), net_block(net, u, i - 1));
	return runs;
}

/* All units of the part have the sources of its first. */
static void regular_panels(Maker *m, uint32_t part)
{
	const Net *net = m->net;
	Unit u = m->l->part[part].first;
	Panel *p = NULL;

	for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
		Unit s = net_source(net, u, i);
		const Block *b = net_block(net, u, i);
		bool next = p && s == net_source(net, u, i - 1) + 1 && m->part_of[s] == p->from &&
		            block_alike(b, net_block(net, u, i - 1));
		if (!next) {
			p = add_panel(m, part);
			p->from = m->part_of[s];
			p->source = m->l->part[p->from].col + s - m->l->part[p->from].first;
			p->like = b;
			p->rate = b->rate;
			p->frozen = b->frozen;
			p->link = i - net->row[u];
		}
		p->sources++;
	}
}

/* The sources of all units of a part: marked from low to high - 1, and their number; none if blocks differ in rate. */
typedef struct Sources {
	uint8_t *is;
	Unit low, high;
	uint64_t count, runs;
} Sources;

static void find_sources(const Maker *m, const Part *t, Sources *s)
{
	const Net *net = m->net;
	Unit end = t->first + t->count;
	const Block *b = NULL;
	bool same = true;

	s->low = UINT32_MAX;
	s->high = 0;
	s->count = s->runs = 0;
	for (Unit u = t->first; u < end; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			Unit from = net_source(net, u, i);
			s->count += !s->is[from];
			s->is[from] = 1;
			s->low = from < s->low ? from : s->low;
			s->high = from + 1 > s->high ? from + 1 : s->high;
			b = b ? b : net_block(net, u, i);
			same = same && block_alike(net_block(net, u, i), b);
		}
	for (Unit u = s->low; u < s->high; u++)
		s->runs += s->is[u] && (u == s->low || !s->is[u - 1] || m->part_of[u] != m->part_of[u - 1]);
	if (!same)
		s->count = 0;
}

static void forget_sources(Sources *s)
{
	if (s->low < s->high)
		memset(s->is + s->low, 0, s->high - s->low);
}

/* Panels over all sources of all units, with gaps. */
static void gapped_panels(Maker *m, uint32_t part, const Sources *all)
{
	const Net *net = m->net;
	uint64_t first = net->row[m->l->part[part].first];
	const Block *b = net_block(net, net_target(net, first), first);
	Panel *p = NULL;

	for (Unit s = all->low; s < all->high; s++) {
		if (!all->is[s])
			continue;
		if (!p || !all->is[s - 1] || m->part_of[s] != p->from) {
			p = add_panel(m, part);
			p->from = m->part_of[s];
			p->source = m->l->part[p->from].col + s - m->l->part[p->from].first;
			p->like = b;
			p->rate = b->rate;
			p->frozen = b->frozen;
		}
		p->sources++;
	}
}

static bool units_alike(const Maker *m, const Part *t)
{
	for (Unit u = t->first + 1; u < t->first + t->count; u++)
		if (!same_sources(m->net, u - 1, u))
			return false;
	return true;
}

/* Is a matrix with gaps better than a list? */
static bool full_enough(const Part *t, const Sources *s, uint64_t links)
{
	uint64_t places = s->count * padded(t->count);

	return s->count && links * SPARSEST >= places && (links >= SMALL_PANEL * s->runs || s->runs <= FEW_PANELS);
}

static void part_panels(Maker *m, uint32_t i, Sources *s)
{
	Part *t = &m->l->part[i];
	uint64_t links = m->net->row[t->first + t->count] - m->net->row[t->first];

	if (units_alike(m, t)) {
		uint64_t runs = count_runs(m, t->first);
		if (links >= SMALL_PANEL * runs || runs <= FEW_PANELS) {
			regular_panels(m, i);
			return;
		}
	} else {
		find_sources(m, t, s);
		t->gaps = full_enough(t, s, links);
		if (t->gaps)
			gapped_panels(m, i, s);
		forget_sources(s);
		if (t->gaps)
			return;
	}
	LinkList *list = links_list(m->cx, m->l, m->part_of, t, m->strip);
	Panel *p = add_panel(m, i);
	p->list = list;
	p->frozen = list->kinds == 1 && list->kind->frozen;
	m->l->has_links = true;
	m->l->link_scratch = list->room > m->l->link_scratch ? list->room : m->l->link_scratch;
}

static void make_panels(Maker *m)
{
	Layout *l = m->l;
	Sources s = { .is = NEW(&m->cx->scratch, m->net->units, uint8_t) };

	for (uint32_t i = 0; i < l->parts; i++) {
		l->part[i].in = l->panels;
		if (l->part[i].level)
			part_panels(m, i, &s);
	}
}

/* ---- forms ---- */

/* The true unit's weights go with the first panel that has a free lane behind the last unit of a whole part: is
 * there one? */
static bool join_bias(Maker *m, const Part *t)
{
	Layout *l = m->l;
	const Panel *b = &l->panel[t->in];

	if (!t->ins || t->gaps || b->list || b->from != 0)
		return false;
	for (uint32_t i = 1; i < t->ins; i++) {
		Panel *p = &l->panel[t->in + i];
		Part *s = &l->part[p->from];
		if (p->sources != s->count || s->count % LANES == 0 || !block_alike(p->like, b->like))
			continue;
		p->bias = true;
		p->bias_link = b->link;
		s->one = true;
		return true;
	}
	return false;
}

/* Panels whose weights went elsewhere leave no gap. */
static void join_biases(Maker *m)
{
	Layout *l = m->l;
	uint32_t kept = 0;

	for (Part *t = l->part; t < l->part + l->parts; t++) {
		uint32_t first = t->in + join_bias(m, t), end = t->in + t->ins;
		t->in = kept;
		t->ins = end - first;
		memmove(l->panel + kept, l->panel + first, t->ins * sizeof *l->panel);
		kept += t->ins;
	}
	l->panels = kept;
}

/* Vectors of multiply-adds that a case costs in either form. */
static uint64_t cost(uint64_t rows, uint64_t cols) { return rows * padded(cols) / LANES; }

/* Are weights by source transposed in the backward pass? A square of 16 x 16 takes 64 shuffles, and its use 16
 * multiply-adds for each row: with batches of one case and with time steps rows are too few. */
static bool is_transposed(const Maker *m, const Panel *p)
{
	return (uint64_t)p->sources * p->targets >= LARGE && m->opt->batch != 1 && !m->net->timed;
}

/* A copy costs about as much as some cases do: it is made once an update. */
static bool better_by_target(const Maker *m, const Panel *p)
{
	uint64_t sources = p->sources + p->bias, batch = m->opt->batch == BATCH_ALL ? 4096 : (uint64_t)m->opt->batch;
	uint64_t copies = m->l->part[p->from].error ? 0 : 4 * cost(sources, p->targets);

	if (is_transposed(m, p) && cost(sources, p->targets) - cost(sources, p->targets) / MUCH < cost(p->targets, sources))
		return false;
	return batch * cost(p->targets, sources) + copies < batch * cost(sources, p->targets);
}

/* A panel from some columns of a part stays by source: the rows of its copy are padded with zeros, which do not change
 * the columns beside. */
static void make_forms(Maker *m)
{
	Layout *l = m->l;

	for (uint32_t i = 0; i < l->panels; i++) {
		Panel *p = &l->panel[i];
		const Part *s = &l->part[p->from];
		bool gaps = l->part[p->part].gaps, whole = p->sources == s->count;
		bool indexed = l->index && s->role == ROLE_INPUT;
		uint32_t sources = p->sources + p->bias;
		p->at = l->floats;
		if (p->list) {
			p->row = padded(p->list->links);
			l->floats += p->row;
			continue;
		}
		p->by_source = indexed || gaps || !whole || !better_by_target(m, p);
		l->inputs_by_source |= p->by_source && s->role == ROLE_INPUT;
		p->row = padded(p->by_source ? p->targets : sources);
		p->copy_row = padded(p->by_source ? sources : p->targets);
		l->floats += (uint64_t)p->row * (p->by_source ? sources : p->targets);
		if (!p->by_source || (s->error && !is_transposed(m, p))) {
			p->copy = l->copy_floats;
			l->copy_floats += (uint64_t)p->copy_row * (p->by_source ? p->targets : sources);
		}
		if (gaps)
			p->real = NEW(&m->cx->fixed, (size_t)p->sources * p->row / 32 + 1, uint32_t);
	}
}

/* ---- gaps ---- */

uint64_t panel_place(const Panel *p, uint32_t target, uint32_t source)
{
	return p->by_source ? (uint64_t)source * p->row + target : (uint64_t)target * p->row + source;
}

/* The panel of a part that leads from a column; panels are in the order of sources. */
static const Panel *panel_from(const Layout *l, const Part *t, uint32_t col)
{
	uint32_t low = t->in, high = t->in + t->ins;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (l->panel[middle].source <= col)
			low = middle;
		else
			high = middle;
	}
	return &l->panel[low];
}

/* Some links of some units of a part, counted from its first. */
typedef struct Range {
	uint64_t first, end;
	uint32_t low, high;
} Range;

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

static Range all_links(const Part *t) { return (Range){ 0, UINT64_MAX, 0, t->count }; }

static void gapped_links(const Layout *l, const Part *t, Range some, LinkFn *fn, void *arg)
{
	const Net *net = l->net;

	for (Unit u = t->first + some.low; u < t->first + some.high; u++) {
		uint64_t end = lesser(some.end, net->row[u + 1]);
		for (uint64_t k = larger(some.first, net->row[u]); k < end; k++) {
			uint32_t col = l->col_of[net_source(net, u, k)];
			const Panel *p = panel_from(l, t, col);
			fn(arg, u, k, p->at + panel_place(p, u - t->first, col - p->source));
		}
	}
}

typedef struct Marker {
	const Layout *l;
	const Part *t;
} Marker;

static void mark_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Marker *m = arg;
	const Panel *p = panel_from(m->l, m->t, m->l->col_of[net_source(m->l->net, unit, link)]);

	place -= p->at;
	p->real[place / 32] |= 1u << place % 32;
}

static void mark_real(const Maker *m)
{
	const Layout *l = m->l;

	for (const Part *t = l->part; t < l->part + l->parts; t++)
		if (t->gaps)
			gapped_links(l, t, all_links(t), mark_place, &(Marker){ l, t });
}

/* ---- who needs whom ---- */

static void add_outlet(Maker *m, Outlet o)
{
	Layout *l = m->l;

	l->outlet[l->outlets++] = o;
	l->part[o.part].outs++;
}

static uint32_t part_at(const Layout *l, uint32_t col)
{
	uint32_t low = 0, high = l->parts;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (l->part[middle].col <= col)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Panels are in the order of targets, so a stable sort by source part is enough. */
static void make_outlets(Maker *m)
{
	Layout *l = m->l;
	uint32_t most = 0;

	for (uint32_t i = 0; i < l->panels; i++)
		most += l->panel[i].list ? l->panel[i].list->backs : 1;
	l->outlet = NEW(&m->cx->scratch, most, Outlet);
	for (uint32_t i = 0; i < l->panels; i++) {
		const LinkList *list = l->panel[i].list;
		for (uint32_t k = 0; list && k < list->backs; k++)
			add_outlet(m, (Outlet){ list->back[k].part, i, &list->back[k].sums });
		if (!list && l->part[l->panel[i].from].error)
			add_outlet(m, (Outlet){ .part = l->panel[i].from, .panel = i });
	}
	Outlet *sorted = NEW(&m->cx->fixed, l->outlets, Outlet);
	uint32_t at = 0;
	for (uint32_t i = 0; i < l->parts; i++) {
		l->part[i].out = at;
		at += l->part[i].outs;
		l->part[i].outs = 0;
	}
	for (uint32_t i = 0; i < l->outlets; i++) {
		Part *p = &l->part[l->outlet[i].part];
		sorted[p->out + p->outs++] = l->outlet[i];
	}
	l->outlet = sorted;
}

/* Outputs that others build on, or that contexts remember where errors flow back through time. */
static void mark_own(Maker *m)
{
	const Net *net = m->net;

	for (Part *t = m->l->part; t < m->l->part + m->l->parts; t++) {
		bool copied = false;
		for (uint32_t k = 0; k < net->copies; k++)
			copied |= net->copy[k].from_group == t->group;
		t->own_error =
			t->role == ROLE_OUTPUT && (t->outs || (copied && m->opt->bptt != BPTT_COPY) || t->integrate || t->shaped);
		m->l->own_errors |= t->own_error;
	}
}

/* By level and, inside one, by unit. */
static void make_order(Maker *m)
{
	Layout *l = m->l;
	uint32_t levels = m->plan->levels, *at = NEW(&m->cx->scratch, levels + 2, uint32_t);

	l->forward = NEW(&m->cx->fixed, l->parts, uint32_t);
	for (uint32_t i = 0; i < l->parts; i++)
		at[l->part[i].level + 1] += l->part[i].level > 0;
	for (uint32_t k = 1; k < levels + 2; k++)
		at[k] += at[k - 1];
	for (uint32_t i = 0; i < l->parts; i++)
		if (l->part[i].level) {
			l->forward[at[l->part[i].level]++] = i;
			l->forwards++;
		}
}

/* Is one of the parts that lead into t marked?  mark: from now on all of them are. */
static bool sources_marked(const Layout *l, const Part *t, uint8_t *marked, bool mark)
{
	bool any = false;

	for (uint32_t i = t->in; i < t->in + t->ins; i++) {
		const Panel *p = &l->panel[i];
		for (uint32_t k = 0; k < (p->list ? p->list->forward.strips : 1); k++) {
			uint32_t s = p->list ? part_at(l, p->list->forward.strip[k]) : p->from;
			any |= marked[s];
			marked[s] |= mark;
		}
	}
	return any;
}

/* On a way from a context to the source of a copy: what remembers, and what is remembered. */
static void make_phases(Maker *m)
{
	Layout *l = m->l;
	const Net *net = m->net;
	uint8_t *remembers = NEW(&m->cx->scratch, l->parts, uint8_t), *remembered = NEW(&m->cx->scratch, l->parts, uint8_t);

	for (uint32_t i = 0; i < l->parts; i++) {
		remembers[i] = l->part[i].role == ROLE_CONTEXT || l->part[i].integrate;
		remembered[i] = l->part[i].integrate != INTEGRATE_NONE;
		for (uint32_t k = 0; k < net->copies; k++)
			remembered[i] |= l->part[i].group == net->copy[k].from_group;
	}
	for (uint32_t i = 0; i < l->forwards; i++)
		remembers[l->forward[i]] |= sources_marked(l, &l->part[l->forward[i]], remembers, false);
	for (uint32_t i = l->forwards; i-- > 0;)
		if (remembered[l->forward[i]])
			sources_marked(l, &l->part[l->forward[i]], remembered, true);
	for (uint32_t i = 0; i < l->forwards; i++) {
		Part *t = &l->part[l->forward[i]];
		if (remembers[l->forward[i]])
			t->phase = remembered[l->forward[i]] ? PHASE_STEPPED : PHASE_AFTER;
	}
}

static void count_shaped(Layout *l, const Part *p, const Group *g)
{
	bool noisy = g->noise[NOISE_AT_OUTPUT].kind || g->noise[NOISE_AT_DROPOUT].kind;

	l->noisy_inputs |= noisy && p->role == ROLE_INPUT;
	l->cleans |= noisy && p->role != ROLE_INPUT;
	l->radii |= group_has_radius(g);
	l->criteria |= g->criterion >= 0;
	l->nets |= p->role == ROLE_OUTPUT && g->error > ERR_SQUARED;
	if (noisy && p->role == ROLE_OUTPUT)
		l->largest_output = INFINITY;
}

static void count_ends(Layout *l, const Net *net)
{
	l->outputs_padded = padded(net->outputs);
	for (uint32_t i = 1; i < l->parts; i++) {
		const Part *p = &l->part[i];
		if (p->role == ROLE_INPUT && !l->inputs++)
			l->input = i;
		if (p->role == ROLE_OUTPUT && !l->outputs++)
			l->output = i;
		if (p->role == ROLE_OUTPUT)
			l->largest_output = fmax(l->largest_output, fmax(fabs(unit_fns[p->fn].low), fabs(unit_fns[p->fn].high)));
		l->integrates |= p->integrate != INTEGRATE_NONE;
		l->nets |= p->fn == FN_GAUSSIAN || p->integrate;
		if (p->shaped)
			count_shaped(l, p, &net->group[p->group]);
	}
}

/* Rows an odd number of cache lines long: neighbours do not fall into the same sets. */
static uint32_t row_length(uint32_t cols) { return cols / LANES % 2 ? cols : cols + LANES; }

Layout *cpu_layout(Ctx *cx, const Plan *plan, const Options *opt, bool index)
{
	Maker m = { .cx = cx, .plan = plan, .net = plan->net, .opt = opt, .l = NEW(&cx->fixed, 1, Layout) };
	Layout *l = m.l;

	l->net = plan->net;
	l->index = index;
	m.part_of = NEW(&cx->scratch, plan->net->units, uint32_t);
	l->col_of = NEW(&cx->fixed, plan->net->units, uint32_t);
	make_parts(&m);
	l->cols = row_length(l->cols);
	m.strip = NEW(&cx->scratch, l->cols / LANES, uint32_t);
	make_panels(&m);
	join_biases(&m);
	make_forms(&m);
	mark_real(&m);
	make_outlets(&m);
	mark_own(&m);
	make_order(&m);
	if (plan->net->timed)
		make_phases(&m);
	for (uint32_t k = 0; k < plan->net->copies; k++)
		l->copies_inputs |= plan->net->group[plan->net->copy[k].from_group].role == ROLE_INPUT;
	count_ends(l, plan->net);
	return l;
}

/* ---- walks ---- */

bool from_inputs(const Layout *l, const Panel *p)
{
	const Part *from = &l->part[p->from];

	return from->role == ROLE_INPUT && from->group >= 0;
}

uint64_t panel_size(const Panel *p)
{
	return p->list ? p->row : (uint64_t)p->row * (p->by_source ? p->sources + p->bias : p->targets);
}

static void panel_links(const Layout *l, const Panel *p, Range some, LinkFn *fn, void *arg)
{
	Unit first = l->part[p->part].first;
	const uint64_t *row = l->net->row + first;

	for (uint32_t t = some.low; t < some.high; t++) {
		uint64_t begin = row[t] + (p->list ? 0 : p->link),
				 end = lesser(some.end, p->list ? row[t + 1] : begin + p->sources);
		for (uint64_t k = larger(some.first, begin); k < end; k++)
			fn(arg, first + t, k, p->at + (p->list ? k - *row : panel_place(p, t, (uint32_t)(k - begin))));
		uint64_t bias = row[t] + p->bias_link;
		if (p->bias && bias >= some.first && bias < some.end)
			fn(arg, first + t, bias, p->at + panel_place(p, t, p->sources));
	}
}

void layout_links(const Layout *l, uint64_t first, uint64_t end, LinkFn *fn, void *arg)
{
	if (first >= end)
		return;
	Unit low = net_target(l->net, first), last = net_target(l->net, end - 1);
	for (const Part *t = &l->part[part_at(l, l->col_of[low])]; t < l->part + l->parts && t->first <= last; t++) {
		Range some = { first, end, low > t->first ? low - t->first : 0,
			           (uint32_t)lesser(last - t->first + 1, t->count) };
		if (t->gaps)
			gapped_links(l, t, some, fn, arg);
		for (uint32_t i = t->in; !t->gaps && i < t->in + t->ins; i++)
			panel_links(l, &l->panel[i], some, fn, arg);
	}
}

/* ---- in words ---- */

static const char *part_name(const Layout *l, const Part *p)
{
	return p->group < 0 ? "true" : l->net->group[p->group].name;
}

static void print_panel(const Layout *l, const Panel *p, Buf *out)
{
	static const char *const forms[] = { "by target", "by source" };
	const Part *s = &l->part[p->from];
	uint32_t first = p->source - s->col;

	if (p->list) {
		buf_printf(out, "\t\tW%u  %llu links, one by one\n", (unsigned)(p - l->panel),
		           (unsigned long long)p->list->links);
		return;
	}
	buf_printf(out, "\t\tW%u  from %s[%u:%u]%s, %s%s%s%s\n", (unsigned)(p - l->panel), part_name(l, s),
	           s->group < 0 ? 0 : s->first - l->net->group[s->group].first + first,
	           (s->group < 0 ? 0 : s->first - l->net->group[s->group].first + first) + p->sources - 1,
	           p->bias ? " and true" : "", forms[p->by_source], p->copy == NONE ? "" : ", with a copy ",
	           p->copy == NONE ? "" : forms[!p->by_source],
	           p->real     ? ", with gaps"
	           : p->frozen ? ", frozen"
	                       : "");
}

void layout_print(const Layout *l, Buf *out)
{
	static const char *const phases[] = { "", ", for each time step", ", after all time steps" };

	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *t = &l->part[l->forward[i]];
		Unit first = t->first - l->net->group[t->group].first;
		buf_printf(out, "\t%s[%u:%u]  %s%s\n", part_name(l, t), first, first + t->count - 1, unit_fns[t->fn].name,
		           phases[t->phase]);
		for (uint32_t k = t->in; k < t->in + t->ins; k++)
			print_panel(l, &l->panel[k], out);
	}
}
