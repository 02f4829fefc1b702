/* SPDX-License-Identifier: MIT */
/* Online learning: an update after every case, by the rule of momentum.
 *
 * In: a row of outputs and deltas.  Out: weights after the update; no sum of weight changes is ever stored.  With index lists
 * there is more to save: the weights of an input that is zero get no gradient, but the last change goes on in them, case
 * after case.  Nobody looks at them until the input is on again, so they catch up then, in registers.  Without index lists
 * all weights of the first layer go through the cache for every case: where the next case is known, its weighted sums are
 * formed in the update, as the weights are made.  Such weights stand in an order of their own meanwhile.  Errors of hidden units are
 * formed in the update, too, and copies of weights in another form are not made until somebody else wants them.  Must hold: every weight
 * and sum goes through the very operations of the plain way, in their order (or through others that have the same result, bit
 * for bit); whoever reads or sets weights calls online_settle first. */
#include <string.h>

#include "cpu.h"

/* Weights of a panel whose rows may be late: how many updates each row has missed is now - stamp. */
typedef struct Late {
	uint32_t *stamp, *missed; /* [sources] */
} Late;

/* A panel that is all that a part has, from inputs: its sums can be formed in the update. */
typedef struct Early {
	float *block;             /* NULL: it is no such panel; else room for weights and last changes, as OuterAhead wants them */
	bool moved;               /* they stand there now */
	bool finite;              /* no weight is infinite or no number, as far as we know */
} Early;

/* A panel that two passes need in two forms: only one is kept up. */
typedef struct Single {
	bool finite;              /* as of Early */
	bool updated;             /* by this update already */
} Single;

struct Online {
	Single *single;           /* [panels] */
	bool alone;               /* cases come one by one: copies are out of date, but for the true unit's weights */
	const Update *update;     /* that is being made, or NULL */
	Late *late;               /* [panels] stamp NULL: never late */
	uint32_t now;             /* updates so far */
	Early *early;             /* [panels] */
	bool direct;              /* inputs may be read where they stand in the data */
	float *net;               /* [cols] such sums, of the case `known` */
	uint64_t next, known;     /* the case after the one that waits; NO_CASE: none */
	bool waiting;             /* a case waits for its update: it stands in row 0 of the first space */
	bool behind;              /* some rows may be late */
};

static bool is_momentum(const Program *p)
{
	return strcmp(p->rule->name, "momentum") == 0;
}

static bool is_early(const Layout *l, uint32_t i)
{
	const Panel *panel = &l->panel[i];
	const Part *t = &l->part[panel->part], *from = &l->part[panel->from];
	bool all = t->ins == 1 + (uint32_t)(l->panel[t->in].from == 0);   /* but the true unit's */

	return !l->index && l->inputs == 1 && from->role == ROLE_INPUT && from->group >= 0 && all && panel->by_source && !panel->frozen;
}

Online *online_make(Ctx *cx, const Program *p)
{
	const Layout *l = p->layout;

	if (p->opt->batch != 1 || !is_momentum(p) || l->lists || p->net->copies || p->opt->precision != PRECISION_FP32)
		return NULL;
	for (uint32_t i = 0; i < l->panels; i++)
		if (l->panel[i].real)
			return NULL;
	if (l->index && p->opt->decay != 0)                 /* weights of inputs that are zero decay all the same */
		return NULL;
	Online *o = NEW(&cx->keep, 1, Online);
	o->late = NEW(&cx->keep, l->panels, Late);
	o->single = NEW(&cx->keep, l->panels, Single);
	o->early = NEW(&cx->keep, l->panels, Early);
	o->net = floats_take(&cx->keep, l->cols);
	o->known = NO_CASE;
	o->direct = true;
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *panel = &l->panel[i];
		const Part *from = &l->part[panel->from];
		if (is_early(l, i))
			o->early[i].block = floats_take(&cx->keep, 2 * (size_t)panel->sources * panel->row);
		o->direct &= panel->by_source || from->role != ROLE_INPUT;
		if (l->index && from->role == ROLE_INPUT && from->group >= 0 && panel->by_source && !panel->frozen) {
			o->late[i].stamp = NEW(&cx->keep, panel->sources, uint32_t);
			o->late[i].missed = NEW(&cx->keep, panel->sources, uint32_t);
		}
	}
	return o;
}

/* Field by field: loads of what was stored in other pieces have to wait until all stores are done, and there are many. */
static void outer_fill(const Program *p, const Panel *panel, Outer *o)
{
	o->a = NULL;
	o->index = NULL;
	o->low = 0;
	o->bias = false;
	o->sources = panel->sources;
	o->w = p->w + panel->at;
	o->step = p->state[0] + panel->at;
	o->row = panel->row;
	o->momentum = (float)p->opt->momentum;
}

/* Rows of one panel that a list names, or all of them. */
static void catch_up(const Program *p, uint32_t i, const uint32_t *index, uint32_t count, uint32_t low)
{
	Online *on = p->online;
	Late *late = &on->late[i];
	Outer o;

	outer_fill(p, &p->layout->panel[i], &o);
	o.cols = p->layout->panel[i].targets;
	for (uint32_t k = 0; k < count; k++) {
		uint32_t row = index ? index[k] - low : k;
		late->missed[row] = on->now - late->stamp[row];
		late->stamp[row] = on->now;
	}
	o.rows = count;
	o.index = index;
	o.low = low;
	p->kern->catch_up(&o, late->missed);
}

/* To the order of its own, or back. */
static void move_panel(Program *p, uint32_t i, bool there)
{
	const Panel *panel = &p->layout->panel[i];
	Early *early = &p->online->early[i];
	float *block = early->block;

	if (!block || early->moved == there)
		return;
	for (uint32_t t = 0; t < panel->row; t += LANES)
		for (uint32_t k = 0; k < panel->sources; k++, block += 2 * LANES) {
			size_t at = panel->at + (size_t)k * panel->row + t;
			memcpy(there ? block : p->w + at, there ? p->w + at : block, LANES * sizeof *block);
			memcpy(there ? block + LANES : p->state[0] + at, there ? p->state[0] + at : block + LANES, LANES * sizeof *block);
		}
	early->moved = there;
	early->finite = false;
}

/* With their last changes: if one of those is not finite, its weight is not. */
bool online_finite(const Program *p)
{
	const Online *on = p->online;

	for (uint32_t i = 0; on && i < p->layout->panels; i++) {
		const Panel *panel = &p->layout->panel[i];
		if (on->early[i].moved && !p->kern->finite(on->early[i].block, 2 * (size_t)panel->sources * panel->row))
			return false;
	}
	return true;
}

/* The part of a row's list that lies in a panel. */
static const uint32_t *listed(const Program *p, const Space *s, const Panel *panel, uint32_t *low, uint32_t *count, uint32_t *skipped)
{
	const Part *from = &p->layout->part[panel->from];
	const uint32_t *index = s->index[0], *end = index + s->lengths[0];

	*low = from->input + panel->source - from->col;
	while (index < end && *index < *low)
		index++;
	*skipped = (uint32_t)(index - s->index[0]);
	*count = 0;
	while (index + *count < end && index[*count] < *low + panel->sources)
		++*count;
	return index;
}

/* Before a case goes forward: the weights of its inputs. */
void online_prepare(Program *p, const Space *s)
{
	p->online->alone = true;
	for (uint32_t i = 0; p->online->known != s->cases[0] && i < p->layout->panels; i++)
		move_panel(p, i, false);
	for (uint32_t i = 0; i < p->layout->panels; i++)
		if (p->online->late[i].stamp) {
			uint32_t low, count, skipped;
			const uint32_t *index = listed(p, s, &p->layout->panel[i], &low, &count, &skipped);
			catch_up(p, i, index, count, low);
		}
}

static void make_copies(Program *p)
{
	Online *on = p->online;

	for (uint32_t i = 0; i < p->layout->panels; i++) {
		const Panel *panel = &p->layout->panel[i];
		uint32_t sources = panel->sources + panel->bias;
		on->single[i].finite = false;
		if (panel->copy != NONE)
			p->kern->transpose(panel->by_source ? sources : panel->targets, panel->by_source ? panel->targets : sources,
			                   p->w + panel->at, panel->row, p->copies + panel->copy, panel->copy_row);
	}
	on->alone = false;
}

void online_settle(Program *p)
{
	Online *on = p->online;

	for (uint32_t i = 0; on && i < p->layout->panels; i++)
		move_panel(p, i, false);
	if (on)
		on->known = NO_CASE;
	if (on && on->alone)
		make_copies(p);
	if (!on || !on->behind)
		return;
	unsigned before = cpu_enter();
	for (uint32_t i = 0; i < p->layout->panels; i++)
		if (on->late[i].stamp)
			catch_up(p, i, NULL, p->layout->panel[i].sources, 0);
	on->behind = false;
	cpu_leave(before);
}

/* ---- updates ---- */

static void late_panel(Program *p, uint32_t i, Outer *o)
{
	const Space *s = &p->space[0];
	uint32_t skipped;

	o->index = listed(p, s, &p->layout->panel[i], &o->low, &o->rows, &skipped);
	o->a = s->values[0] ? s->values[0] + skipped : NULL;
	p->kern->outer(o);
	for (uint32_t k = 0; k < o->rows; k++)
		p->online->late[i].stamp[o->index[k] - o->low] = p->online->now + 1;
}

/* Inputs of the case after this one, if its sums can begin; NULL: they cannot. */
static const float *next_inputs(const Program *p, const Panel *panel)
{
	const Data *d = p->data;

	if (p->online->next == NO_CASE || d->x_type != T_F32 || d->x_indptr || (uintptr_t)d->x % sizeof(float))
		return NULL;
	return (const float *)d->x + p->online->next * d->inputs + panel->source - p->layout->part[panel->from].col;
}

/* The weights that sums begin with come first. */
static void early_panel(Program *p, uint32_t i, Outer *o, const float *next)
{
	const Panel *panel = &p->layout->panel[i];
	const Part *t = &p->layout->part[panel->part];
	Early *early = &p->online->early[i];
	uint32_t k = t->in;
	float *net = p->online->net + t->col;

	if (o->bias) {
		o->rows = 0;
		p->kern->outer(o);
		o->rows = panel->sources;
	}
	memcpy(net, first_weights(p, t, &k), (size_t)panel->row * sizeof *net);
	move_panel(p, i, true);
	early->finite = p->kern->outer_ahead(&(OuterAhead){
		.of = o, .block = early->block, .finite = early->finite, .next = next, .net = net });
	p->online->known = p->online->next;
}

bool online_early(const Program *p, uint64_t i, const Part *t, float *net)
{
	const Online *on = p->online;

	if (!on || on->known != i || !t->ins || !on->early[t->in + t->ins - 1].moved)
		return false;
	memcpy(net, on->net + t->col, t->count * sizeof *net);
	return true;
}

/* All of a panel by its case. */
static void case_outer(const Program *p, const Panel *panel, Outer *o)
{
	const Space *s = &p->space[0];
	const Update *u = p->online->update;
	const Part *from = &p->layout->part[panel->from];
	bool direct = s->direct && from->role == ROLE_INPUT && from->group >= 0;
	const float *act = direct ? s->direct + panel->source - from->col : s->act + panel->source;
	const float *delta = s->err + p->layout->part[panel->part].col;

	outer_fill(p, panel, o);
	o->rate = (float)(u->param[P_RATE] * panel->rate);
	o->decay = (float)u->param[P_DECAY];
	o->momentum = (float)u->param[P_MOMENTUM];
	o->bias = panel->bias && panel->by_source;
	o->rows = panel->by_source ? panel->sources : panel->targets;
	o->cols = panel->by_source ? panel->targets : panel->sources + panel->bias;
	o->a = panel->by_source ? act : delta;
	o->b = panel->by_source ? delta : act;
}

/* The true unit's weights begin sums and are wanted in a row, also where weights stand by target. */
static void copy_bias(const Program *p, const Panel *panel)
{
	const float *w = p->w + panel->at + panel->sources;
	float *to = p->copies + panel->copy + (size_t)panel->sources * panel->copy_row;

	for (uint32_t t = 0; !panel->by_source && panel->bias && t < panel->targets; t++)
		to[t] = w[(size_t)t * panel->row];
}

bool online_turned(const Program *p, const Panel *panel, const float *a, const float *start, float *c)
{
	bool back = panel->by_source;

	if (!p->online || !p->online->alone)
		return false;
	p->online->single[panel - p->layout->panel].finite = p->kern->turned(&(Turned){
		.cols = back ? panel->sources : panel->targets, .depth = back ? panel->targets : panel->sources, .a = a,
		.b = p->w + panel->at, .row = panel->row, .start = start, .c = c });
	return true;
}

bool online_back(const Program *p, uint32_t i, const float *start, float *c)
{
	const Panel *panel = &p->layout->panel[i];
	Online *on = p->online;

	if (!on || !on->update)
		return false;
	if (panel->by_source)
		return online_turned(p, panel, p->space[0].err + p->layout->part[panel->part].col, start, c);
	if (panel->frozen)
		return false;
	Outer of;
	case_outer(p, panel, &of);
	p->kern->outer_back(&(OuterBack){
		.of = &of, .finite = on->single[i].finite, .start = start, .c = c, .cols = panel->sources });
	copy_bias(p, panel);
	on->single[i].updated = true;
	return true;
}

static void update_panel(Program *p, uint32_t i)
{
	const Panel *panel = &p->layout->panel[i];
	Outer o;

	if (p->online->single[i].updated) {
		p->online->single[i].updated = false;
		return;
	}
	case_outer(p, panel, &o);
	if (p->online->late[i].stamp) {
		late_panel(p, i, &o);
		return;
	}
	const float *next = p->online->early[i].block ? next_inputs(p, panel) : NULL;
	if (next) {
		early_panel(p, i, &o, next);
	} else {
		move_panel(p, i, false);
		p->kern->outer(&o);
	}
	if (panel->copy != NONE)
		copy_bias(p, panel);
}

void online_apply(Program *p, const Update *u)
{
	unsigned before = cpu_enter();
	Online *on = p->online;

	on->known = NO_CASE;
	on->alone = true;
	on->update = u;
	rows_backward(p, &p->space[0], 0, 1);
	for (uint32_t i = 0; i < p->layout->panels; i++)
		if (!p->layout->panel[i].frozen)
			update_panel(p, i);
	on->update = NULL;
	on->now++;
	on->behind = true;
	on->waiting = false;
	cpu_leave(before);
}

bool online_waits(const Program *p)
{
	return p->online && p->online->waiting;
}

void online_wait(Program *p, uint64_t next)
{
	p->online->next = next;
	p->online->waiting = true;
}

bool online_direct(const Program *p)
{
	return p->online->direct;
}

void online_forget(Program *p)
{
	p->online->waiting = false;
}
