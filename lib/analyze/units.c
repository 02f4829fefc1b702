/* SPDX-License-Identifier: MIT */
/* Single units of a group: where their strongest links come from, which items activate them, what the network loses
 * without each, and how they differ between two sets of cases. */
#include <math.h>
#include <string.h>

#include "inside.h"

/* ---- receptive fields ---- */

uint32_t sources_of(const Analysis *a, uint32_t unit, uint32_t most, Source *to)
{
	const Net *net = a->s->net;
	Unit u = a->group->first + unit;
	uint32_t count = 0;
	for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
		Source s = { net_source(net, u, l), a->s->w[l] };
		uint32_t k = count;
		for (; k > 0 && fabs(to[k - 1].weight) < fabs(s.weight); k--)
			if (k < most)
				to[k] = to[k - 1];
		if (k < most)
			to[k] = s;
		count += count < most;
	}
	return count;
}

uint32_t items_for(const Analysis *a, uint32_t unit, uint32_t most, uint32_t *to)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < a->items; i++) {
		double v = a->x[(size_t)i * a->units + unit];
		uint32_t k = count;
		for (; k > 0 && a->x[(size_t)to[k - 1] * a->units + unit] < v; k--)
			if (k < most)
				to[k] = to[k - 1];
		if (k < most)
			to[k] = i;
		count += count < most;
	}
	return count;
}

/* ---- contribution ---- */

static void without_unit(const void *arg, uint64_t number, Damaged *net)
{
	const Place *p = arg;
	uint32_t unit = (uint32_t)number;
	if (number < p->count)
		place_remove(p, &unit, 1, net);
}

void changes_make(Analysis *a)
{
	Arena *arena = &a->s->cx->scratch;
	const Data *d = a->s->data;
	if (d->targets != a->s->net->outputs || a->s->target->simulator)
		return;
	Place p;
	CaseSet *all;
	uint32_t n = a->units;
	Tally *t = NEW(arena, n + 1, Tally);
	place_units(a->s, a->group, &p);
	uint32_t sets = sets_read(a->s->cx, d, NULL, &all);
	damage_run(a->s, &(Networks){ n + 1, without_unit, &p, 0, all, sets, t }); /* the last is intact */
	a->change = NEW(arena, n, Change);
	a->intact = t[n];
	double scored = a->intact.scored ? (double)a->intact.scored : 1;
	for (uint32_t i = 0; i < n; i++)
		a->change[i] =
			(Change){ tally_mean(&t[i]) - tally_mean(&t[n]), ((double)t[i].right - (double)t[n].right) / scored,
			          ((double)t[i].within - (double)t[n].within) / scored };
}

/* ---- contrast ---- */

static void moments(const Analysis *a, const CaseSet *set, uint32_t unit, double *mean, double *sd)
{
	double sum = 0, squares = 0, n = (double)set->cases;
	for (uint64_t i = 0; i < a->s->data->cases; i++)
		sum += set->holds[i] ? a->activation[i * a->units + unit] : 0;
	*mean = sum / n;
	for (uint64_t i = 0; i < a->s->data->cases; i++)
		if (set->holds[i])
			squares += (a->activation[i * a->units + unit] - *mean) * (a->activation[i * a->units + unit] - *mean);
	*sd = set->cases > 1 ? sqrt(squares / (n - 1)) : 0;
}

static int set_named(const Analysis *a, Text name)
{
	Buf known = { .arena = &a->s->cx->scratch };
	buf_puts(&known, a->sets_text ? "the sets are:" : "define them: --sets 'regular=reg*,exception=exc*'");
	for (uint32_t i = 0; i < a->sets && a->sets_text; i++) {
		if (text_is(name, a->set[i].name))
			return (int)i;
		buf_printf(&known, "%s %s", i ? "," : "", a->set[i].name);
	}
	fail(a->s->cx, MP_BAD_INPUT, known.s, "--contrast: there is no set '%.*s'", (int)name.len, name.s);
}

void contrast_make(Analysis *a)
{
	const char *text = a->contrast_text, *comma = text ? strchr(text, ',') : NULL;
	a->contrasted[0] = a->contrasted[1] = -1;
	if (!text && a->sets_text && a->sets == 2) {
		a->contrasted[0] = 0;
		a->contrasted[1] = 1;
	} else if (text && (!comma || strchr(comma + 1, ','))) {
		fail(a->s->cx, MP_BAD_INPUT, "name two sets, with a comma between", "--contrast cannot be '%.40s'", text);
	} else if (text) {
		a->contrasted[0] = set_named(a, (Text){ text, (uint32_t)(comma - text) });
		a->contrasted[1] = set_named(a, (Text){ comma + 1, (uint32_t)strlen(comma + 1) });
	} else {
		return;
	}
	a->contrast = NEW(&a->s->cx->scratch, a->units, Contrast);
	for (uint32_t i = 0; i < a->units; i++) {
		Contrast *c = &a->contrast[i];
		double n[2], free;
		for (int k = 0; k < 2; k++) {
			const CaseSet *set = &a->set[a->contrasted[k]];
			moments(a, set, i, &c->mean[k], &c->sd[k]);
			n[k] = (double)set->cases;
		}
		free = n[0] + n[1] - 2;
		double pooled =
			free > 0 ? sqrt(((n[0] - 1) * c->sd[0] * c->sd[0] + (n[1] - 1) * c->sd[1] * c->sd[1]) / free) : 0;
		c->d = pooled > 0 ? (c->mean[0] - c->mean[1]) / pooled : 0;
	}
}

uint32_t *contrast_order(const Analysis *a)
{
	uint32_t *order = NEW(&a->s->cx->scratch, a->units, uint32_t);
	for (uint32_t i = 0; i < a->units; i++) {
		uint32_t k = i;
		for (; k > 0 && fabs(a->contrast[order[k - 1]].d) < fabs(a->contrast[i].d); k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	return order;
}
