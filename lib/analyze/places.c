/* SPDX-License-Identifier: MIT */
/* Places of damage.  In: names of groups and of blocks, a->b.  Out: units and links.
 *
 * A unit that is removed sends 0, as do its copies in contexts: the network is then that without the unit. An output
 * has nothing behind it: it counts as 0. An input is removed by zeroing the weights of all links that lead out of
 * it. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "analyze.h"

/* ---- units ---- */

static bool is_in(const Group *g, Unit u) { return u >= g->first && u - g->first < g->size; }

bool unit_stands_for(const Net *net, const Group *g, Unit u, uint32_t *number)
{
	for (uint32_t steps = 0; steps <= net->copies; steps++) {
		if (is_in(g, u)) {
			*number = u - g->first;
			return true;
		}
		const Copy *c = NULL;
		for (uint32_t i = 0; i < net->copies && !c; i++)
			if (is_in(&net->group[net->copy[i].to_group], u))
				c = &net->copy[i];
		if (!c)
			return false;
		u = net->group[c->from_group].first + (u - net->group[c->to_group].first);
	}
	return false;
}

static void link_remove(Damaged *net, uint64_t link)
{
	net->link[net->links] = link;
	net->weight[net->links++] = 0;
}

void place_remove(const Place *p, const uint32_t *item, uint32_t count, Damaged *net)
{
	if (!p->units) {
		assert(!p->members);
		for (uint32_t i = 0; i < count; i++)
			link_remove(net, p->link[item[i]]);
		return;
	}
	uint8_t *removed = net->removed + p->from->first;
	for (uint32_t i = 0; i < count; i++)
		removed[item[i]] = 1;
	for (uint32_t i = 0; i < p->members; i++)
		net->removed[p->unit[i]] = removed[p->member_of[i]];
	if (p->from->role != ROLE_INPUT)
		return;
	for (uint64_t i = 0; i < p->links; i++)
		if (removed[p->item[i]])
			link_remove(net, p->link[i]);
	memset(removed, 0, p->count);
}

/* ---- lists of links ---- */

static void members_find(const Subject *s, Place *p)
{
	uint32_t number = 0;
	for (int fill = 0; fill < 2; fill++) {
		p->members = 0;
		for (Unit u = 1; u < s->net->units; u++)
			if (unit_stands_for(s->net, p->from, u, &number)) {
				if (fill) {
					p->unit[p->members] = u;
					p->member_of[p->members] = number;
				}
				p->members++;
			}
		if (!fill) {
			p->unit = NEW(&s->cx->scratch, p->members, Unit);
			p->member_of = NEW(&s->cx->scratch, p->members, uint32_t);
		}
	}
}

static void links_find(const Subject *s, Place *p)
{
	const Net *net = s->net;
	uint32_t number = 0;
	for (int fill = 0; fill < 2; fill++) {
		p->links = 0;
		for (Unit u = 1; u < net->units; u++) {
			if (p->to && !is_in(p->to, u))
				continue;
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
				Unit from = net_source(net, u, l);
				if (!p->from ? from != 0 : !unit_stands_for(net, p->from, from, &number))
					continue;
				if (fill) {
					p->link[p->links] = l;
					p->item[p->links] = p->units ? number : (uint32_t)p->links;
				}
				p->links++;
			}
		}
		if (!fill) {
			p->link = NEW(&s->cx->scratch, p->links, uint64_t);
			p->item = NEW(&s->cx->scratch, p->links, uint32_t);
		}
	}
	double sum = 0, squares = 0, n = (double)p->links;
	for (uint64_t i = 0; i < p->links; i++)
		sum += s->w[p->link[i]];
	for (uint64_t i = 0; i < p->links; i++)
		squares += (s->w[p->link[i]] - sum / n) * (s->w[p->link[i]] - sum / n);
	p->sd = p->links > 1 ? sqrt(squares / (n - 1)) : 0;
}

void place_units(const Subject *s, const Group *g, Place *p)
{
	*p = (Place){ .name = g->name, .units = true, .from = g, .count = g->size };
	if (g->role != ROLE_INPUT)
		members_find(s, p);
	links_find(s, p);
}

/* a->b; the true unit is a source, too. */
static void links_add(const Subject *s, Text word, Place *p)
{
	const char *arrow = NULL;
	for (const char *c = word.s; c + 1 < word.s + word.len && !arrow; c++)
		arrow = c[0] == '-' && c[1] == '>' ? c : NULL;
	*p = (Place){ .name = arena_copy(&s->cx->scratch, word.s, word.len) };
	if (!arrow)
		fail(s->cx, MP_BAD_INPUT, "write FROM->TO, in quotes: --links 'hidden->out'",
		     "--links: '%.40s' does not say from where to where", p->name);
	Text from = { word.s, (uint32_t)(arrow - word.s) };
	Text to = { arrow + 2, (uint32_t)(word.s + word.len - arrow - 2) };
	p->from = text_is(from, "true") ? NULL : net_group_named(s->cx, s->net, "--links", from);
	p->to = net_group_named(s->cx, s->net, "--links", to);
	links_find(s, p);
	p->count = (uint32_t)p->links;
	if (!p->links)
		fail(s->cx, MP_BAD_INPUT, "see the blocks with: microprop show", "--links: there is no link %s", p->name);
}

static Text word_take(const char **list)
{
	size_t n = strcspn(*list, ",");
	Text t = { *list, (uint32_t)n };
	*list += n + ((*list)[n] == ',');
	return t;
}

static uint32_t words_in(const char *list)
{
	uint32_t n = list && *list;
	for (const char *p = list; p && *p; p++)
		n += *p == ',';
	return n;
}

uint32_t places_read(const Subject *s, const char *units, const char *links, Place **place)
{
	uint32_t count = 0, wanted_units = words_in(units), wanted_links = words_in(links);
	Place *p = *place = NEW(&s->cx->scratch, s->net->groups + wanted_units + wanted_links, Place);
	for (uint32_t i = 0; i < wanted_units; i++)
		place_units(s, net_group_named(s->cx, s->net, "--units", word_take(&units)), &p[count++]);
	for (uint32_t i = 0; i < wanted_links; i++)
		links_add(s, word_take(&links), &p[count++]);
	for (uint32_t i = 0; !count && !wanted_units && !wanted_links && i < s->net->groups; i++)
		if (s->net->group[i].role == ROLE_HIDDEN)
			place_units(s, &s->net->group[i], &p[count++]);
	if (!count)
		fail(s->cx, MP_BAD_INPUT, "name groups with --units, or blocks with --links 'a->b'",
		     "%s has no hidden group to damage", s->net->name);
	return count;
}
