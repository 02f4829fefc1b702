/* SPDX-License-Identifier: MIT */
/* A network for lanes. In: a Layout, options, data. Out: Seeds, without the arrays that are a thread's own, where
 * the weight of each link stands, and the data as dense rows.
 *
 * Weights stand bunch by bunch, so that a pass goes through them once from the first to the last. Must hold: links
 * of a unit are told in canonical order forward, by target backward, for that is the order of sums. */
#include <math.h>
#include <string.h>

#include "restarts.h"

typedef struct Maker {
	Arena *arena;
	const Net *net;
	const Layout *layout;
	Seeds *s;
	SeedBunch *bunch, *back;
	uint32_t *from, *to, *place; /* as in Seeds */
	uint32_t *place_of;          /* [links] */
	uint64_t *out;               /* [units + 1] links that lead out of unit u are out_link[out[u]] ... */
	uint64_t *out_link;          /* by target */
	uint32_t *target;            /* [links] the unit a link leads to */
	uint32_t bunches, backs, froms, tos, places;
} Maker;

static uint32_t row_of(const Maker *m, Unit u) { return u * m->s->chunk * LANES; }

/* ---- forward ---- */

static void add_bunch(Maker *m, Unit first, uint32_t count)
{
	const Net *net = m->net;
	uint64_t row = net->row[first], links = net->row[first + 1] - row;
	SeedBunch *b = &m->bunch[m->bunches++];

	*b = (SeedBunch){ .unit = first,
		              .count = count,
		              .links = (uint32_t)links,
		              .other = m->froms,
		              .weight = m->places,
		              .bias = links && net_source(net, first, row) == 0,
		              .still = true };
	for (uint64_t k = 0; k < links; k++) {
		m->from[m->froms++] = row_of(m, net_source(net, first, row + k));
		for (uint32_t t = 0; t < count; t++) {
			uint64_t link = net->row[first + t] + k;
			m->place_of[link] = m->places++;
			b->still = b->still && net_block(net, first + t, link)->frozen;
		}
	}
}

static void make_bunches(Maker *m, SeedPart *p)
{
	p->bunch = m->bunches;
	for (uint32_t i = 0, n; i < p->count; i += n) {
		for (n = 1; n < BUNCH_UNITS && i + n < p->count && net_same_sources(m->net, p->unit + i, p->unit + i + n); n++)
			;
		add_bunch(m, p->unit + i, n);
	}
	p->bunches = m->bunches - p->bunch;
}

/* ---- backward ---- */

static void make_out(Maker *m)
{
	const Net *net = m->net;

	m->out = NEW(m->arena, net->units + 2, uint64_t);
	m->out_link = NEW(m->arena, net->links, uint64_t);
	m->target = NEW(m->arena, net->links, uint32_t);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
			m->out[net_source(net, u, i) + 2]++;
	for (Unit u = 0; u < net->units; u++)
		m->out[u + 2] += m->out[u + 1];
	for (Unit u = 0; u < net->units; u++) /* by target, as links are: so each source's are too */
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			m->target[i] = u;
			m->out_link[m->out[net_source(net, u, i) + 1]++] = i;
		}
}

static bool same_targets(const Maker *m, Unit u, Unit v)
{
	uint64_t a = m->out[u], b = m->out[v], n = m->out[u + 1] - a;

	if (m->out[v + 1] - b != n)
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (m->target[m->out_link[a + i]] != m->target[m->out_link[b + i]])
			return false;
	return true;
}

static void add_back(Maker *m, Unit first, uint32_t count)
{
	uint64_t links = m->out[first + 1] - m->out[first];

	m->back[m->backs++] =
		(SeedBunch){ .unit = first, .count = count, .links = (uint32_t)links, .other = m->tos, .weight = m->places };
	for (uint64_t k = 0; k < links; k++) {
		m->to[m->tos++] = row_of(m, m->target[m->out_link[m->out[first] + k]]);
		for (uint32_t t = 0; t < count; t++)
			m->place[m->places++] = m->place_of[m->out_link[m->out[first + t] + k]];
	}
}

static void make_backs(Maker *m, SeedPart *p)
{
	p->back = m->backs;
	for (uint32_t i = 0, n; i < p->count; i += n) {
		for (n = 1; n < BUNCH_UNITS && i + n < p->count && same_targets(m, p->unit + i, p->unit + i + n); n++)
			;
		add_back(m, p->unit + i, n);
	}
	p->backs = m->backs - p->back;
}

/* ---- parts ---- */

static bool is_copied(const Net *net, int32_t group)
{
	for (uint32_t k = 0; k < net->copies; k++)
		if (net->copy[k].from_group == group)
			return true;
	return false;
}

static void add_part(Maker *m, SeedPart *part, const Part *t)
{
	Seeds *s = m->s;

	part[s->parts++] = (SeedPart){ .unit = t->first,
		                           .count = t->count,
		                           .fn = t->fn,
		                           .output = t->role == ROLE_OUTPUT,
		                           .context = t->role == ROLE_CONTEXT,
		                           .target = t->output,
		                           .matched = t->role == ROLE_OUTPUT && error_fns[s->error].matched == t->fn,
		                           .own = t->own,
		                           .carried = s->full_bptt && is_copied(m->net, t->group) };
}

/* Contexts first: they come into it only backward, and there last. */
static void make_parts(Maker *m)
{
	const Layout *l = m->layout;
	SeedPart *part = NEW(m->arena, l->parts, SeedPart);

	for (uint32_t i = 0; m->s->full_bptt && i < l->parts; i++)
		if (l->part[i].role == ROLE_CONTEXT)
			add_part(m, part, &l->part[i]);
	for (uint32_t i = 0; i < l->forwards; i++)
		add_part(m, part, &l->part[l->forward[i]]);
	for (uint32_t i = 0; i < m->s->parts; i++)
		if (!part[i].context)
			make_bunches(m, &part[i]);
	m->places = 0;
	for (uint32_t i = 0; i < m->s->parts; i++)
		if (!part[i].output || part[i].own)
			make_backs(m, &part[i]);
	m->s->part = part;
}

static void make_ends(Maker *m)
{
	const Net *net = m->net;
	uint32_t *input = NEW(m->arena, net->inputs + 1, uint32_t), *output = NEW(m->arena, net->outputs + 1, uint32_t);
	Seeds *s = m->s;

	for (uint32_t k = 0; k < net->groups; k++)
		for (uint32_t i = 0; i < net->group[k].size; i++) {
			if (net->group[k].role == ROLE_INPUT)
				input[s->inputs++] = net->group[k].first + i;
			if (net->group[k].role == ROLE_OUTPUT)
				output[s->outputs++] = net->group[k].first + i;
		}
	s->input = input;
	s->output = output;
}

static void make_copies(Maker *m)
{
	const Net *net = m->net;
	SeedCopy *copy = NEW(m->arena, net->copies + 1, SeedCopy);

	for (uint32_t k = 0; k < net->copies; k++) {
		const Group *from = &net->group[net->copy[k].from_group], *to = &net->group[net->copy[k].to_group];
		copy[k] = (SeedCopy){ from->first, to->first, to->size, to->start };
	}
	m->s->copy = copy;
	m->s->copies = net->copies;
}

Seeds *seeds_make(Arena *arena, const Layout *l, const Options *opt, uint32_t chunk, uint32_t *place_of)
{
	const Net *net = l->net;
	Seeds *s = NEW(arena, 1, Seeds);
	Maker m = { .arena = arena, .net = net, .layout = l, .s = s, .place_of = place_of };

	s->units = net->units;
	s->chunk = chunk;
	s->error = opt->error;
	s->full_bptt = net->copies && opt->bptt == BPTT_FULL;
	s->offset = (float)opt->prime_offset;
	m.bunch = NEW(arena, net->units, SeedBunch);
	m.back = NEW(arena, net->units, SeedBunch);
	m.from = NEW(arena, net->links, uint32_t);
	m.to = NEW(arena, net->links, uint32_t);
	m.place = NEW(arena, net->links, uint32_t);
	make_out(&m);
	make_parts(&m);
	make_ends(&m);
	make_copies(&m);
	s->bunch = m.bunch;
	s->bunches = m.bunches;
	s->back = m.back;
	s->from = m.from;
	s->to = m.to;
	s->place = m.place;
	return s;
}

/* ---- data ---- */

float *lanes_take(Arena *arena, size_t vectors)
{
	size_t line = LANES * sizeof(float);
	char *p = arena_alloc(arena, vectors + 1, line);

	return (float *)(void *)(p + (line - (uintptr_t)p % line) % line);
}

/* The first largest target, or of a lone one whether it is above the middle. */
static void mark_wanted(const Seeds *s, const float *y, float *wanted)
{
	uint32_t top = 0;

	for (uint32_t n = 1; n < s->outputs; n++)
		if (y[n] > y[top])
			top = n;
	wanted[top] = s->outputs > 1 || y[0] > s->middle;
}

/* All targets of a case; says if there is any. */
static bool note_targets(Seeds *s, const float *y)
{
	bool any = false;

	for (uint32_t n = 0; n < s->outputs; n++) {
		any |= !isnan(y[n]);
		s->known &= !isnan(y[n]);
		s->binary &= isnan(y[n]) || y[n] == 0 || y[n] == 1;
	}
	return any;
}

static bool is_plain(const Seeds *s)
{
	uint32_t outputs = 0;
	bool matched = true;

	for (uint32_t i = 0; i < s->parts; i++) {
		outputs += s->part[i].output;
		matched &= !s->part[i].output || s->part[i].matched;
	}
	return outputs == 1 && s->known && !s->weight &&
	       (s->error == ERR_SQUARED || (s->error == ERR_CROSS_ENTROPY && matched && s->binary));
}

uint64_t seeds_data(Arena *arena, Seeds *s, const Program *p, bool uneven)
{
	const Data *d = p->data;
	uint64_t rows = d->cases + 1, scored = 0; /* the last has no targets */

	s->x_row = padded(d->inputs);
	s->y_row = padded(d->targets);
	float *x = lanes_take(arena, rows * s->x_row / LANES), *y = lanes_take(arena, rows * s->y_row / LANES);
	float *wanted = lanes_take(arena, rows * s->y_row / LANES),
		  *weight = lanes_take(arena, d->weight ? rows / LANES + 1 : 0);
	s->threshold = (float)p->scorer.threshold;
	s->middle = (float)p->scorer.middle;
	s->right = !p->codes;
	s->known = !uneven;
	s->binary = true;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x + i * s->x_row);
		data_y(d, i, y + i * s->y_row);
		scored += note_targets(s, y + i * s->y_row);
		mark_wanted(s, y + i * s->y_row, wanted + i * s->y_row);
	}
	for (uint32_t n = 0; n < d->targets; n++)
		y[d->cases * s->y_row + n] = NAN;
	if (d->weight) {
		memcpy(weight, d->weight, d->cases * sizeof *weight);
		weight[d->cases] = 1;
	}
	s->x = x;
	s->y = y;
	s->wanted = wanted;
	s->weight = d->weight ? weight : NULL;
	s->plain = is_plain(s);
	return scored;
}
