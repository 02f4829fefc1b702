/* SPDX-License-Identifier: MIT */
/* Online learning: an update after every case, by the rule of momentum.
 *
 * In: cases, one by one or some in one go. Out: weights after each; no sum of weight changes is ever stored. What a
 * case has to go through is a list of calls, made once (calls.c). With index lists there is more to save: the
 * weights of an input that is zero get no gradient, but the last change goes on in them, case after case. Nobody
 * looks at them until the input is on again, so they catch up then, in registers, beginning with the gradient of
 * the case that had it on last: it waits for that among the deltas of some hundred cases. Without index lists all
 * weights of the first layer go through the cache for every case: where the next case is known, its weighted sums
 * are formed in the update, as the weights are made. Errors of hidden units are formed in the update, too. Such
 * weights stand in an order of their own meanwhile, and copies of weights in another form are not made until
 * somebody else wants them. Must hold: every weight and sum goes through the very operations of the plain way, in
 * their order (or through others that have the same result, bit for bit); whoever else reads or sets weights calls
 * online_settle first. */
#include <math.h>
#include <string.h>

#include "online.h"

enum { LINKS_AT_ONCE = 1 << 26 }; /* updates in one go pass over about so many */
/* of deltas that rows may owe; more would leave the cache */
enum { SLOTS_MOST = 512, SLOTS_LEAST = 16, SLOTS_FLOATS = 1 << 16 };

/* ---- weights ---- */

static bool is_momentum(const Program *p) { return strcmp(p->rule->name, "momentum") == 0; }

/* A panel that is all that a part has, from inputs: its sums can be formed in the update. */
static bool is_ahead(const Layout *l, const Panel *panel)
{
	const Part *t = &l->part[panel->part];
	bool all = t->ins == 1 + (uint32_t)(l->panel[t->in].from == 0); /* but the true unit's */

	return !l->index && l->inputs == 1 && from_inputs(l, panel) && all && panel->by_source && !panel->frozen;
}

/* One by target that errors go back through. */
static bool is_back(const Layout *l, uint32_t i)
{
	for (const Outlet *o = l->outlet; o < l->outlet + l->outlets; o++)
		if (o->panel == i && l->part[o->part].level)
			return !l->panel[i].by_source && !l->panel[i].frozen;
	return false;
}

static void take_own(Ctx *cx, const Layout *l, uint32_t i, Own *own)
{
	const Panel *panel = &l->panel[i];

	own->ahead = is_ahead(l, panel);
	if (!own->ahead && !is_back(l, i))
		return;
	own->rows = own->ahead ? panel->sources : (panel->targets + LANES - 1) / LANES * LANES;
	own->sixteens = own->ahead ? panel->row / LANES : (panel->sources + LANES - 1) / LANES;
	own->block = floats_take(&cx->keep, 2 * (size_t)LANES * own->rows * own->sixteens);
	if (!own->ahead && panel->bias)
		own->bias = floats_take(&cx->keep, 2 * (size_t)own->rows);
}

static void take_lag(Ctx *cx, const Panel *panel, Lag *lag)
{
	lag->room = (panel->targets + LANES - 1) / LANES * LANES;
	lag->slots = SLOTS_MOST;
	while (lag->slots > SLOTS_LEAST && lag->slots * (uint64_t)lag->room > SLOTS_FLOATS)
		lag->slots /= 2;
	lag->stamp = NEW(&cx->keep, panel->sources, uint32_t);
	lag->owed = NEW(&cx->keep, panel->sources, float);
	lag->owing = NEW(&cx->keep, panel->sources, uint32_t);
	lag->delta = floats_take(&cx->keep, (size_t)lag->slots * lag->room);
	lag->rate = NEW(&cx->keep, lag->slots, float);
}

Online *online_make(Ctx *cx, const Program *p)
{
	const Layout *l = p->layout;

	if (p->opt->batch != 1 || !is_momentum(p) || l->lists || l->owns || p->net->copies ||
	    cpu_own(p->opt)->precision != PRECISION_FP32)
		return NULL;
	for (uint32_t i = 0; i < l->panels; i++)
		if (l->panel[i].real)
			return NULL;
	if (l->index && p->opt->decay != 0) /* weights of inputs that are zero decay all the same */
		return NULL;
	Online *o = NEW(&cx->keep, 1, Online);
	o->own = NEW(&cx->keep, l->panels, Own);
	o->lag = NEW(&cx->keep, l->panels, Lag);
	o->call = NEW(&cx->keep, calls_most(l), Call);
	o->known = NO_CASE;
	o->in_place = true;
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *panel = &l->panel[i];
		take_own(cx, l, i, &o->own[i]);
		o->in_place &= panel->by_source || !from_inputs(l, panel);
		if (l->index && from_inputs(l, panel) && panel->by_source && !panel->frozen)
			take_lag(cx, panel, &o->lag[i]);
	}
	return o;
}

static void copy_floats(float *wide, float *own, size_t n, bool there)
{
	memcpy(there ? own : wide, there ? wide : own, n * sizeof *own);
}

/* Sixteen columns from `col` on; past the last there are zeros. */
static void own_copy(float *wide, float *own, uint32_t col, uint32_t cols, bool there)
{
	copy_floats(wide, own, cols - col < LANES ? cols - col : LANES, there);
}

void own_move(Program *p, uint32_t i, bool there)
{
	const Panel *panel = &p->layout->panel[i];
	Own *own = &p->online->own[i];
	uint32_t rows = panel->by_source ? panel->sources : panel->targets,
			 cols = panel->by_source ? panel->targets : panel->sources;
	float *v = own->block;

	if (!own->block || own->moved == there)
		return;
	for (uint32_t c = 0; c < cols; c += LANES, v += 2 * (size_t)LANES * (own->rows - rows))
		for (uint32_t k = 0; k < rows; k++, v += 2 * LANES) {
			size_t at = panel->at + (size_t)k * panel->row + c;
			own_copy(p->w + at, v, c, cols, there);
			own_copy(p->state[0] + at, v + LANES, c, cols, there);
		}
	for (uint32_t k = 0; own->bias && k < rows; k++) {
		size_t at = panel->at + (size_t)k * panel->row + panel->sources;
		copy_floats(p->w + at, own->bias + k, 1, there);
		copy_floats(p->state[0] + at, own->bias + own->rows + k, 1, there);
	}
	own->moved = there;
	own->finite = false;
}

static uint32_t find_owing(const Lag *lag, uint32_t rows)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < rows; r++) {
		lag->owing[count] = r;
		count += lag->owed[r] != 0;
	}
	return count;
}

void catch_up(Program *p, uint32_t i, bool owing)
{
	const Panel *panel = &p->layout->panel[i];
	const Online *on = p->online;
	const Lag *lag = &on->lag[i];

	p->kern->late(&(Late){ .lag = lag,
	                       .index = owing ? lag->owing : NULL,
	                       .count = owing ? find_owing(lag, panel->sources) : panel->sources,
	                       .cols = panel->targets,
	                       .now = on->now,
	                       .w = p->w + panel->at,
	                       .step = p->state[0] + panel->at,
	                       .row = panel->row,
	                       .momentum = (float)p->opt->momentum });
}

static void catch_all_up(Program *p)
{
	Online *on = p->online;

	for (uint32_t i = 0; on->behind && i < p->layout->panels; i++)
		if (on->lag[i].stamp)
			catch_up(p, i, false);
	on->behind = false;
}

/* With their last changes: if one of those is not finite, its weight is not. */
bool online_finite(Program *p)
{
	const Online *on = p->online;

	if (on)
		catch_all_up(p);
	for (uint32_t i = 0; on && i < p->layout->panels; i++) {
		const Own *own = &on->own[i];
		if (own->moved && !p->kern->finite(own->block, 2 * (size_t)LANES * own->rows * own->sixteens))
			return false;
		if (own->moved && own->bias && !p->kern->finite(own->bias, 2 * (size_t)own->rows))
			return false;
	}
	return true;
}

void online_settle(Program *p)
{
	Online *on = p->online;

	if (!on)
		return;
	unsigned before = cpu_enter();
	on->known = NO_CASE;
	on->set = false;
	for (uint32_t i = 0; i < p->layout->panels; i++)
		own_move(p, i, false);
	catch_all_up(p);
	if (on->alone)
		update_copies(p);
	on->alone = false;
	cpu_leave(before);
}

/* ---- a case ---- */

/* Those that errors go back through move to an order of their own; others when the next case is known. */
static void leave_settled(Program *p)
{
	Online *on = p->online;

	if (on->alone)
		return;
	for (uint32_t i = 0; i < p->layout->panels; i++)
		if (!on->own[i].ahead)
			own_move(p, i, true);
	on->alone = true;
}

static void run_calls(Program *p, Call *c, uint32_t count)
{
	for (Call *end = c + count; c < end; c++)
		c->run(p, c);
}

static void case_forward(Program *p, uint64_t i, Tally *t)
{
	Online *on = p->online;
	Space *s = &p->space[0];
	bool labelled = p->data->targets != 0;

	s->cases[0] = i;
	row_load(p, s, on->in_place, labelled);
	leave_settled(p);
	run_calls(p, on->call, on->forwards);
	if (labelled)
		rows_tally(s, 0, 1, t);
	else
		t->cases++;
}

/* What an update has of its own goes into the calls. */
static void set_update(Program *p, const Update *u)
{
	Online *on = p->online;

	if (on->set && memcmp(on->param, u->param, sizeof on->param) == 0)
		return;
	for (Call *c = on->call; c < on->call + on->forwards + on->backwards; c++) {
		if (!c->learns)
			continue;
		c->outer.rate = (float)(u->param[P_RATE] * p->layout->panel[c->panel].rate);
		c->outer.momentum = (float)u->param[P_MOMENTUM];
		c->outer.decay = (float)u->param[P_DECAY];
	}
	memcpy(on->param, u->param, sizeof on->param);
	on->set = true;
}

static void case_update(Program *p, uint64_t next)
{
	Online *on = p->online;

	on->known = NO_CASE;
	on->next = next;
	leave_settled(p);
	run_calls(p, on->call + on->forwards, on->backwards);
	on->now++;
	on->behind = true;
}

/* ---- cases one by one, as they come ---- */

static bool is_ready(const Program *p)
{
	return p->online && !p->watch && p->index == p->layout->index && p->longest == 1 && !p->has_pending;
}

bool online_takes(const Program *p, const Batch *b) { return b->count == 1 && is_ready(p); }

void online_one(Program *p, const Batch *b, Tally *t)
{
	unsigned before = cpu_enter();
	Online *on = p->online;

	on->next = !b->more ? NO_CASE : b->example ? b->example[1] : b->first + 1;
	if (b->more)
		case_fetch(p->data, on->next);
	case_forward(p, b->example ? b->example[0] : b->first, t);
	on->waiting = true;
	cpu_leave(before);
}

void online_apply(Program *p, const Update *u)
{
	unsigned before = cpu_enter();

	set_update(p, u);
	case_update(p, p->online->next);
	p->online->waiting = false;
	cpu_leave(before);
}

bool online_waits(const Program *p) { return p->online && p->online->waiting; }

void online_forget(Program *p) { p->online->waiting = false; }

/* ---- many of them in one go ---- */

static uint64_t case_at(const Updates *s, uint64_t k)
{
	return s->example ? s->example[k] : (s->done + k) % s->examples;
}

/* Up to the end of an epoch.  An error that is not finite is for the caller to see, at once. */
uint64_t online_updates(Program *p, const Updates *s)
{
	uint64_t most = LINKS_AT_ONCE / (p->net->links + 1) + 1, left = s->examples - s->done, k = 0;
	uint64_t count = s->count < most ? s->count : most;

	if (s->batch != 1 || !is_ready(p))
		return 0;
	count = count < left ? count : left;
	unsigned before = cpu_enter();
	while (k < count && !*s->stop && isfinite(s->tally->error)) {
		uint64_t next = k + 1 < s->count ? case_at(s, k + 1) : NO_CASE;
		if (next != NO_CASE)
			case_fetch(p->data, next);
		case_forward(p, case_at(s, k), s->tally);
		if (!k || !s->same)
			set_update(p, &s->update[k]);
		case_update(p, next);
		k++;
	}
	cpu_leave(before);
	return k;
}
