/* SPDX-License-Identifier: MIT */
/* The table of a small network. In: a Layout, options, data. Out: a SmallNet without the arrays that are a thread's
 * own, the offset of each link's weight, and the data as dense rows.
 *
 * Weights of LANE_SEED are ordered by tile, so that a forward pass reads them from first to last. Links of a tile are
 * in the order of sums: by source forward, by target backward. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "small_net.h"

/* Links at one side of the units: those of unit u are link[first[u]] .. link[first[u + 1] - 1], ascending by the unit
 * at the other end. */
typedef struct Side {
	uint32_t *first, *link, *other;
} Side;

typedef struct Maker {
	Arena *arena;
	const Net *net;
	const Layout *layout;
	const SmallShape *shape;
	uint32_t *place_of; /* [links] */
	Side in, out;
	SmallNet *s;
	SmallPart *part;
	SmallTile *tile;
	SmallLink *link;
	uint32_t tiles, links, place;
} Maker;

static uint32_t err_row(const Maker *m, Unit u) { return m->shape->lane_of ? m->shape->lane_of[u] : u; }

/* ---- links by target and by source ---- */

static Side side_new(Arena *a, const Net *net)
{
	return (Side){ NEW(a, net->units + 2, uint32_t), NEW(a, net->links, uint32_t), NEW(a, net->links, uint32_t) };
}

static void make_sides(Maker *m)
{
	const Net *net = m->net;
	Side *in = &m->in, *out = &m->out;

	*in = side_new(m->arena, net);
	*out = side_new(m->arena, net);
	for (Unit u = 0; u < net->units; u++) {
		in->first[u + 1] = (uint32_t)net->row[u + 1];
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			in->link[i] = (uint32_t)i;
			in->other[i] = net_source(net, u, i);
			out->first[in->other[i] + 2]++;
		}
	}
	for (Unit u = 0; u < net->units; u++)
		out->first[u + 2] += out->first[u + 1];
	for (Unit u = 0; u < net->units; u++) /* ascending targets, so those of each source are ascending too */
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			uint32_t at = out->first[in->other[i] + 1]++;
			out->link[at] = (uint32_t)i;
			out->other[at] = u;
		}
}

static bool same_others(const Side *s, Unit u, Unit v)
{
	uint32_t a = s->first[u], b = s->first[v], n = s->first[u + 1] - a;

	return s->first[v + 1] - b == n && !memcmp(s->other + a, s->other + b, n * sizeof *s->other);
}

/* ---- tiles ---- */

/* LANE_SEED: forward tiles place their weights. */
static void place_weights(Maker *m, SmallTile *t)
{
	for (uint32_t k = 0; k < t->links; k++)
		for (uint32_t i = 0; i < t->count; i++) {
			uint32_t link = m->in.link[m->in.first[t->unit + i] + k];
			if (m->shape->lane == LANE_SEED) {
				m->place_of[link] = m->place;
				m->place += LANES;
			}
			t->frozen &= net_block(m->net, t->unit + i, link)->frozen;
		}
}

static void add_tile(Maker *m, Unit first, uint32_t count, bool forward)
{
	const Side *s = forward ? &m->in : &m->out;
	SmallTile *t = &m->tile[m->tiles++];

	*t = (SmallTile){ .unit = first,
		              .err = err_row(m, first),
		              .count = count,
		              .link = m->links,
		              .links = s->first[first + 1] - s->first[first],
		              .frozen = forward };
	if (forward)
		place_weights(m, t);
	for (uint32_t k = 0; k < t->links; k++) {
		uint32_t other = s->other[s->first[first] + k];
		SmallLink *l = &m->link[m->links++];
		*l = (SmallLink){ .row = (forward ? other : err_row(m, other)) * (uint32_t)m->s->step };
		for (uint32_t i = 0, place = 0; i < count; i++) {
			uint32_t last = place;
			place = m->place_of[s->link[s->first[first + i] + k]];
			if (i == 0)
				l->weight = place;
			else if (i == 1)
				l->next = place - last;
			assert(i < 2 || place - last == l->next);
		}
		t->bias |= forward && other == 0;
	}
}

static void make_tiles(Maker *m, SmallPart *p, bool forward)
{
	uint32_t most = m->shape->lane == LANE_PAIR ? PAIR_UNITS : TILE_UNITS, first = m->tiles;

	for (uint32_t i = 0, n; i < p->count; i += n) {
		for (n = 1; n < most && i + n < p->count; n++)
			if (!same_others(forward ? &m->in : &m->out, p->unit + i, p->unit + i + n))
				break;
		add_tile(m, p->unit + i, n, forward);
	}
	*(forward ? &p->tile : &p->back) = first;
	*(forward ? &p->tiles : &p->backs) = m->tiles - first;
}

/* ---- parts ---- */

static bool is_copied(const Net *net, int32_t group)
{
	for (uint32_t k = 0; k < net->copies; k++)
		if (net->copy[k].from_group == group)
			return true;
	return false;
}

static void add_part(Maker *m, const Part *t)
{
	SmallNet *s = m->s;

	m->part[s->parts++] = (SmallPart){ .unit = t->first,
		                               .err = err_row(m, t->first),
		                               .count = t->count,
		                               .fn = t->fn,
		                               .output = t->role == ROLE_OUTPUT,
		                               .context = t->role == ROLE_CONTEXT,
		                               .target = t->output,
		                               .matched = t->role == ROLE_OUTPUT && error_fns[s->error].matched == t->fn,
		                               .keeps_net = part_keeps_net(t, s->error),
		                               .is_source = t->own_error,
		                               .carried = s->full_bptt && is_copied(m->net, t->group) };
}

/* Contexts come first: they matter backward only, and there last. */
static void make_parts(Maker *m)
{
	const Layout *l = m->layout;
	SmallNet *s = m->s;

	for (uint32_t i = 0; s->full_bptt && i < l->parts; i++)
		if (l->part[i].role == ROLE_CONTEXT)
			add_part(m, &l->part[i]);
	for (uint32_t i = 0; i < l->forwards; i++)
		add_part(m, &l->part[l->forward[i]]);
	for (uint32_t i = 0; i < s->parts; i++)
		if (!m->part[i].context)
			make_tiles(m, &m->part[i], true);
	s->tiles = m->tiles;
	for (uint32_t i = 0; i < s->parts; i++)
		if (!m->part[i].output || m->part[i].is_source)
			make_tiles(m, &m->part[i], false);
}

static void make_ends(Maker *m)
{
	const Net *net = m->net;
	uint32_t *input = NEW(m->arena, net->inputs + 1, uint32_t), *output = NEW(m->arena, net->outputs + 1, uint32_t);
	SmallNet *s = m->s;

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
	SmallCopy *copy = NEW(m->arena, net->copies + 1, SmallCopy);

	for (uint32_t k = 0; k < net->copies; k++) {
		const Group *from = &net->group[net->copy[k].from_group], *to = &net->group[net->copy[k].to_group];
		copy[k] = (SmallCopy){ from->first, to->first, to->size, to->start };
	}
	m->s->copy = copy;
	m->s->copies = net->copies;
}

SmallNet small_make(Arena *arena, const Layout *l, const Options *opt, const SmallShape *shape, uint32_t *place_of)
{
	const Net *net = l->net;
	SmallNet s = { .units = net->units,
		           .chunk = shape->chunk,
		           .step = shape->lane == LANE_PAIR ? PAIR_CASES : (size_t)shape->chunk * LANES,
		           .error = opt->error,
		           .full_bptt = net->copies && opt->bptt == BPTT_FULL,
		           .offset = (float)opt->prime_offset };
	Maker m = { .arena = arena, .net = net, .layout = l, .shape = shape, .place_of = place_of, .s = &s };

	m.part = NEW(arena, l->parts + 1, SmallPart);
	m.tile = NEW(arena, 2 * (size_t)net->units, SmallTile);
	m.link = NEW(arena, 2 * net->links, SmallLink);
	make_sides(&m);
	make_parts(&m);
	make_ends(&m);
	make_copies(&m);
	s.part = m.part;
	s.tile = m.tile;
	s.link = m.link;
	return s;
}

/* ---- data ---- */

uint32_t first_largest(const float *y, uint32_t n)
{
	uint32_t at = 0;

	for (uint32_t j = 1; j < n; j++)
		if (y[j] > y[at])
			at = j;
	return at;
}

/* Targets of a case; returns whether it has any. */
static bool add_targets(SmallNet *s, const float *y, float *top)
{
	uint32_t largest = first_largest(y, s->outputs);
	bool any = false;

	for (uint32_t n = 0; n < s->outputs; n++) {
		any |= !isnan(y[n]);
		s->known &= !isnan(y[n]);
		s->binary &= isnan(y[n]) || y[n] == 0 || y[n] == 1;
	}
	top[largest] = s->outputs > 1 || y[0] > s->middle;
	return any;
}

static bool is_plain(const SmallNet *s)
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

Tally small_data(Arena *arena, SmallNet *s, const Program *p, bool uneven)
{
	const Data *d = p->bound->data;
	uint64_t rows = d->cases + 1; /* the last has no targets */
	Tally all = { .cases = d->cases };

	s->x_row = round_up(d->inputs, LANES);
	s->y_row = round_up(d->targets, LANES);
	float *x = floats_take(arena, rows * s->x_row), *y = floats_take(arena, rows * s->y_row);
	float *top = floats_take(arena, rows * s->y_row);
	s->threshold = (float)p->bound->scorer.threshold;
	s->middle = (float)p->bound->scorer.middle;
	s->score_right = !p->bound->codes;
	s->known = !uneven;
	s->binary = true;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x + i * s->x_row);
		data_y(d, i, y + i * s->y_row);
		if (!add_targets(s, y + i * s->y_row, top + i * s->y_row))
			continue;
		all.scored++;
		all.weight += d->weight ? (double)d->weight[i] : 1;
	}
	for (uint32_t n = 0; n < d->targets; n++)
		y[d->cases * s->y_row + n] = NAN;
	if (d->weight) {
		float *weight = floats_take(arena, rows);
		memcpy(weight, d->weight, d->cases * sizeof *weight);
		weight[d->cases] = 1;
		s->weight = weight;
	}
	s->x = x;
	s->y = y;
	s->top = top;
	s->plain = is_plain(s);
	return all;
}

void small_arrays(Arena *arena, SmallNet *s, const Layout *l)
{
	size_t row = (size_t)s->chunk * LANES, rows = s->units * row;

	s->act = floats_take(arena, rows + 4 * row);
	s->err = floats_take(arena, rows + LANES * row);
	s->net = l->nets || s->error != ERR_SQUARED ? floats_take(arena, rows + 4 * row) : NULL;
	s->own_err = l->own_errors ? floats_take(arena, rows) : NULL;
	s->target = floats_take(arena, s->outputs * row);
	s->target_top = floats_take(arena, s->outputs * row);
	s->case_weight = floats_take(arena, row);
	for (size_t i = 0; i < s->step; i++)
		s->act[i] = 1; /* the true unit */
}
