/* SPDX-License-Identifier: MIT */
/* Networks that settle: a case is computed in several ticks, and links may form cycles.
 *
 * In: groups and blocks as parsed, with the options of the file.  Out: the same network without cycles.  A block whose
 * links read the tick before leads from a context group, `GROUP@before`, which is a copy of its source: from here on a
 * settling network is a recurrent one, whose sequences are the ticks of its cases.
 *
 * Links that read the tick before: with settle ordered, those from groups that do not stand earlier in the file than
 * their target, inputs apart; with settle synchronous, all.  Not those from the true unit and from contexts, which are
 * of the tick before anyway, nor those inside a group where `later` is stated.  Must hold: contexts follow all other
 * groups, so that units keep their numbers. */
#include <assert.h>
#include <string.h>

#include "net.h"

double group_dt(const Group *g, const Options *o) { return g->dt_factor * (o->dt > 0 ? o->dt : 1 / (double)o->ticks); }

void net_too_large(Ctx *cx, const Block *b)
{
	fail_at(cx, b->at, "make the groups smaller, or leave links out",
	        "the network has more than %u links, counting all that random blocks choose from", MAX_LINKS);
}

static bool reads_before(const Net *net, const Block *b)
{
	int role = b->from_group < 0 ? ROLE_CONTEXT : net->group[b->from_group].role; /* the true unit never changes */
	if (role == ROLE_CONTEXT || (b->from_group == b->to_group && b->later))
		return false;
	return net->options.settle == SETTLE_SYNCHRONOUS || (role != ROLE_INPUT && b->from_group >= b->to_group);
}

/* ---- what is allowed ---- */

static void check_block(Ctx *cx, const Net *net, const Block *b)
{
	const Group *to = &net->group[b->to_group];
	bool inside = b->from_group == b->to_group, before = net->settles && reads_before(net, b);
	bool backward = b->later && !block_is_later(b) && b->from_first > b->to_first;
	if (before)
		return;
	if (inside && to->fn == FN_SOFTMAX)
		error_at(cx, b->at, "leave these links out, or choose another function",
		         "'%s' is a softmax group: its units cannot be linked to one another", to->name);
	else if (block_pairs(b) == 0 || backward)
		error_at(cx, b->at, "link to units with higher numbers",
		         "this makes no links: no unit on the right stands later");
}

static void check_integrating(Ctx *cx, const Net *net, const Group *g)
{
	bool computes = g->role == ROLE_HIDDEN || g->role == ROLE_OUTPUT;
	double dt = group_dt(g, &net->options);
	if (g->integrate && !computes)
		error_at(cx, g->at, "leave 'integrate' out", "%s group '%s' computes nothing: it cannot integrate",
		         role_names[g->role], g->name);
	else if (g->dt_stated && !g->integrate)
		error_at(cx, g->at, "write integrate input, or integrate output", "'%s' has a dt and does not integrate",
		         g->name);
	else if (g->integrate && !(dt > 0 && dt <= 1))
		error_at(cx, g->at, "dt is above 0, at most 1: that of the network times that of the group",
		         "'%s' would integrate with a dt of %g", g->name, dt);
	else if (g->integrate == INTEGRATE_OUTPUT && g->fn == FN_GAUSSIAN)
		error_at(cx, g->at, "write integrate input, or choose another function",
		         "gaussian group '%s' cannot integrate its output: its slope is not a function of it", g->name);
}

static void check_group(Ctx *cx, const Net *net, const Group *g)
{
	if (net->settles)
		check_integrating(cx, net, g);
	else if (g->integrate || g->dt_stated || g->start_stated)
		error_at(cx, g->at, "give cases several ticks: train ticks 8; or leave it out",
		         "group '%s' has '%s', and the network does not settle", g->name,
		         g->integrate   ? "integrate"
		         : g->dt_stated ? "dt"
		                        : "start");
}

/* ---- contexts ---- */

/* The context of a group: added behind all others when it is first needed. */
static int32_t context_of(Ctx *cx, Net *net, int32_t *context, int32_t from)
{
	Group g = net->group[from];
	Buf name = { .arena = &cx->keep };
	if (context[from] >= 0)
		return context[from];
	if (g.size > MAX_UNITS - net->units)
		fail_at(cx, g.at, "make the network smaller",
		        "with the last tick of group '%s' the network has more than %u units", g.name, MAX_UNITS);
	buf_printf(&name, "%s@before", g.name);
	g.name = name.s;
	g.first = net->units;
	g.fn = FN_LINEAR;
	g.role = ROLE_CONTEXT;
	g.open = false;
	g.integrate = INTEGRATE_NONE;
	g.before = true;
	group_defaults(&g);
	net->units += g.size;
	context[from] = (int32_t)net->groups;
	net->copy[net->copies++] = (Copy){ .from_group = from, .to_group = context[from], .at = g.at };
	net->group[net->groups++] = g;
	return context[from];
}

void net_settle(Ctx *cx, Net *net)
{
	uint32_t groups = net->groups;
	uint64_t pairs = 0;
	for (uint32_t i = 0; i < groups; i++)
		check_group(cx, net, &net->group[i]);
	for (uint32_t i = 0; i < net->blocks; i++)
		check_block(cx, net, &net->block[i]);
	if (net->settles && !net->open && !cx->errors && groups) {
		int32_t *context = NEW(&cx->scratch, groups, int32_t);
		memset(context, -1, groups * sizeof *context);
		net->group = memcpy(NEW(&cx->keep, 2 * (size_t)groups, Group), net->group, groups * sizeof *net->group);
		Copy *copy = NEW(&cx->keep, (size_t)net->copies + groups, Copy);
		if (net->copies)
			memcpy(copy, net->copy, net->copies * sizeof *copy);
		net->copy = copy;
		for (uint32_t i = 0; i < net->blocks; i++) {
			Block *b = &net->block[i];
			if (reads_before(net, b))
				b->from_group = context_of(cx, net, context, b->from_group);
			b->links = block_pairs(b);
			pairs += b->links;
			if (pairs > MAX_LINKS)
				net_too_large(cx, b);
		}
	}
	net->timed = net->settles || net->copies;
}
