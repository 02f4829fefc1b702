/* SPDX-License-Identifier: MIT */
/* Online learning: an update after every case, by the rule of momentum.
 *
 * In: cases, one at a time or several in one call. Out: weights after each; no gradient is ever stored. A case is a
 * list of steps, made once (online_steps.c).
 *
 * Index lists: the weights of an input that is zero have no gradient, but momentum goes on in them, case after case.
 * They are not read until the input is nonzero again, so their updates are deferred until then and done in registers,
 * starting with the gradient of the last case that had the input: its deltas are kept for some hundred cases.
 * Dense inputs: all weights of the first layer go through the cache for every case. Where the next case is known, its
 * weighted sums are formed in the update, as the weights are computed. Errors of hidden units are formed in the
 * update, too. Such weights are packed meanwhile, and transposed copies are out of date.
 *
 * Must hold: every weight and sum goes through the operations of the plain passes, in their order (or through others
 * with the same result, bit for bit); online_flush comes before anything else reads or sets weights. */
#include <math.h>
#include <string.h>

#include "online.h"

enum { LINKS_AT_ONCE = 1 << 26 }; /* about as many links are updated in one call */
/* of deferred deltas; more would leave the cache */
enum { SLOTS_MOST = 512, SLOTS_LEAST = 16, SLOTS_FLOATS = 1 << 16 };

/* ---- weights ---- */

static bool is_momentum(const Program *p) { return strcmp(p->rule->name, "momentum") == 0; }

/* The only panel of a part, from inputs: its sums can be formed in the update. */
static bool is_ahead(const Layout *l, const Panel *panel)
{
	const Part *t = &l->part[panel->part];
	bool only = t->ins == 1 + (uint32_t)(l->panel[t->in].from == 0); /* besides that of bias weights */

	return !l->index && l->inputs == 1 && from_inputs(l, panel) && only && panel->by_source && !panel->frozen;
}

/* One by target that errors go back through. */
static bool is_back(const Layout *l, uint32_t i)
{
	for (const Outlet *o = l->outlet; o < l->outlet + l->outlets; o++)
		if (o->panel == i && l->part[o->part].level)
			return !l->panel[i].by_source && !l->panel[i].frozen;
	return false;
}

static void packed_take(Ctx *cx, const Layout *l, uint32_t i, Packed *packed)
{
	const Panel *panel = &l->panel[i];

	packed->ahead = is_ahead(l, panel);
	if (!packed->ahead && !is_back(l, i))
		return;
	packed->rows = packed->ahead ? panel->sources : (uint32_t)round_up(panel->targets, LANES);
	packed->vectors = packed->ahead ? panel->row / LANES : (uint32_t)ceil_div(panel->sources, LANES);
	packed->block = floats_take(&cx->keep, 2 * (size_t)LANES * packed->rows * packed->vectors);
	if (!packed->ahead && panel->bias)
		packed->bias = floats_take(&cx->keep, 2 * (size_t)packed->rows);
}

static void lazy_take(Ctx *cx, const Panel *panel, Lazy *lazy)
{
	lazy->width = (uint32_t)round_up(panel->targets, LANES);
	lazy->slots = SLOTS_MOST;
	while (lazy->slots > SLOTS_LEAST && lazy->slots * (uint64_t)lazy->width > SLOTS_FLOATS)
		lazy->slots /= 2;
	lazy->seen = NEW(&cx->keep, panel->sources, uint32_t);
	lazy->input = NEW(&cx->keep, panel->sources, float);
	lazy->list = NEW(&cx->keep, panel->sources, uint32_t);
	lazy->delta = floats_take(&cx->keep, (size_t)lazy->slots * lazy->width);
	lazy->rate = NEW(&cx->keep, lazy->slots, float);
}

Online *online_make(Ctx *cx, const Program *p)
{
	const Layout *l = p->layout;

	if (p->opt->batch != 1 || p->net->shaped || !is_momentum(p) || l->has_links || l->own_errors || p->net->timed ||
	    cpu_own(p->opt)->precision != PRECISION_FP32)
		return NULL;
	for (uint32_t i = 0; i < l->panels; i++)
		if (l->panel[i].real)
			return NULL;
	if (l->index && p->opt->decay != 0) /* weights of inputs that are zero decay all the same */
		return NULL;
	Online *on = NEW(&cx->keep, 1, Online);
	on->packed = NEW(&cx->keep, l->panels, Packed);
	on->lazy = NEW(&cx->keep, l->panels, Lazy);
	on->step = NEW(&cx->keep, online_steps_most(l), OnlineStep);
	on->begun = NO_CASE;
	on->in_place = true;
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *panel = &l->panel[i];
		packed_take(cx, l, i, &on->packed[i]);
		on->in_place &= panel->by_source || !from_inputs(l, panel);
		if (l->index && from_inputs(l, panel) && panel->by_source && !panel->frozen)
			lazy_take(cx, panel, &on->lazy[i]);
	}
	return on;
}

static void copy_floats(float *wide, float *packed, size_t n, bool there)
{
	memcpy(there ? packed : wide, there ? wide : packed, n * sizeof *packed);
}

/* A vector of columns from `col` on; zeros after the last column stay. */
static void copy_vector(float *wide, float *packed, uint32_t col, uint32_t cols, bool there)
{
	copy_floats(wide, packed, min_u32(cols - col, LANES), there);
}

void packed_move(const Program *p, uint32_t i, bool there)
{
	const Panel *panel = &p->layout->panel[i];
	Packed *packed = &p->online->packed[i];
	uint32_t rows = panel->by_source ? panel->sources : panel->targets,
			 cols = panel->by_source ? panel->targets : panel->sources;
	float *v = packed->block;

	if (!packed->block || packed->active == there)
		return;
	for (uint32_t c = 0; c < cols; c += LANES, v += 2 * (size_t)LANES * (packed->rows - rows))
		for (uint32_t k = 0; k < rows; k++, v += 2 * LANES) {
			size_t at = panel->at + (size_t)k * panel->row + c;
			copy_vector(p->w + at, v, c, cols, there);
			copy_vector(p->state[0] + at, v + LANES, c, cols, there);
		}
	for (uint32_t k = 0; packed->bias && k < rows; k++) {
		size_t at = panel->at + (size_t)k * panel->row + panel->sources;
		copy_floats(p->w + at, packed->bias + k, 1, there);
		copy_floats(p->state[0] + at, packed->bias + packed->rows + k, 1, there);
	}
	packed->active = there;
	packed->finite = false;
}

/* ---- deferred updates ---- */

static uint32_t list_deferred(const Lazy *lazy, uint32_t rows)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < rows; r++) {
		lazy->list[count] = r;
		count += f_flush(lazy->input[r]) != 0;
	}
	return count;
}

void lazy_flush(const Program *p, uint32_t i, bool with_gradient)
{
	const Panel *panel = &p->layout->panel[i];
	const Lazy *lazy = &p->online->lazy[i];

	p->kern->lazy_rows(&(LazyRows){ .lazy = lazy,
	                                .index = with_gradient ? lazy->list : NULL,
	                                .count = with_gradient ? list_deferred(lazy, panel->sources) : panel->sources,
	                                .cols = panel->targets,
	                                .now = p->online->now,
	                                .w = p->w + panel->at,
	                                .step = p->state[0] + panel->at,
	                                .row = panel->row,
	                                .momentum = (float)p->opt->momentum });
}

static void flush_rows(const Program *p)
{
	Online *on = p->online;

	for (uint32_t i = 0; on->deferred && i < p->layout->panels; i++)
		if (on->lazy[i].seen)
			lazy_flush(p, i, false);
	on->deferred = false;
}

/* Of packed weights with their last changes: if one of those is not finite, neither is its weight. */
bool online_finite(const Program *p)
{
	const Online *on = p->online;

	if (on)
		flush_rows(p);
	for (uint32_t i = 0; on && i < p->layout->panels; i++) {
		const Packed *packed = &on->packed[i];
		if (packed->active && !p->kern->finite(packed->block, 2 * (size_t)LANES * packed->rows * packed->vectors))
			return false;
		if (packed->active && packed->bias && !p->kern->finite(packed->bias, 2 * (size_t)packed->rows))
			return false;
	}
	return true;
}

void online_flush(const Program *p)
{
	Online *on = p->online;

	if (!on || p->monitor) /* while a guard is attached, no update is deferred */
		return;
	unsigned before = cpu_enter();
	on->begun = NO_CASE;
	on->set = false;
	for (uint32_t i = 0; i < p->layout->panels; i++)
		packed_move(p, i, false);
	flush_rows(p);
	if (on->active)
		update_copies(p);
	on->active = false;
	cpu_leave(before);
}

/* ---- a case ---- */

/* Weights that errors go back through are packed; others when the next case is known. */
static void activate(const Program *p)
{
	Online *on = p->online;

	if (on->active)
		return;
	for (uint32_t i = 0; i < p->layout->panels; i++)
		if (!on->packed[i].ahead)
			packed_move(p, i, true);
	on->active = true;
}

static void case_forward(const Program *p, uint64_t i, Tally *t)
{
	Online *on = p->online;
	Space *s = &p->space[0];
	bool labelled = p->bound->data->targets != 0;

	s->chunk.cases[0] = i;
	row_load(p, s, on->in_place, labelled);
	activate(p);
	for (OnlineStep *st = on->step; st < on->step + on->forwards; st++)
		st->run(p, st);
	if (labelled)
		rows_tally(p, s, 0, 1, t);
	else
		t->cases++;
}

/* Parameters of an update go into the steps that learn. */
static void set_update(const Program *p, const Update *u)
{
	Online *on = p->online;

	if (on->set && memcmp(on->param, u->param, sizeof on->param) == 0)
		return;
	for (OnlineStep *st = on->step; st < on->step + on->forwards + on->backwards; st++) {
		if (!st->learns)
			continue;
		st->outer.rate = (float)(u->param[P_RATE] * p->layout->panel[st->panel].rate);
		st->outer.momentum = (float)u->param[P_MOMENTUM];
		st->outer.decay = (float)u->param[P_DECAY];
	}
	memcpy(on->param, u->param, sizeof on->param);
	on->set = true;
}

static void case_update(const Program *p, uint64_t next)
{
	Online *on = p->online;

	on->begun = NO_CASE;
	on->next = next;
	activate(p);
	for (OnlineStep *st = on->step + on->forwards; st < on->step + on->forwards + on->backwards; st++)
		st->run(p, st);
	on->now++;
	on->deferred = true;
}

/* ---- one case in a call ---- */

static bool is_ready(const Program *p)
{
	return p->online && !p->monitor && p->bound->index == p->layout->index && p->bound->longest == 1 &&
	       !p->pending.full;
}

bool online_accepts(const Program *p, const Batch *b) { return b->count == 1 && is_ready(p); }

void online_forward(Program *p, const Batch *b, Tally *t)
{
	unsigned before = cpu_enter();
	Online *on = p->online;

	on->next = !b->next_count ? NO_CASE : b->example ? b->example[1] : b->first + 1;
	if (b->next_count)
		case_prefetch(p->bound->data, on->next);
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

/* While a guard is attached, nothing waits. */
bool online_waits(const Program *p) { return p->online && !p->monitor && p->online->waiting; }

void online_forget(Program *p)
{
	if (p->online)
		p->online->waiting = false;
}

void online_gradient(Program *p)
{
	const List *list = &p->bound->learn;
	unsigned before = cpu_enter();

	if (!p->pending.lent)
		pending_touch(p);
	steps_run(p, &p->space[0], list, list->backward, list->stages,
	          &(Slice){ .rows = 1, .threads = 1, .fresh = true, .sum = p->pending.v });
	p->pending.full = true;
	pending_checksum(p);
	p->online->waiting = false;
	cpu_leave(before);
}

/* ---- several cases in a call ---- */

static uint64_t case_at(const Updates *s, uint64_t k)
{
	return s->example ? s->example[k] : (s->done + k) % s->examples;
}

/* Up to the end of an epoch, or to an error that is not finite. */
uint64_t online_updates(Program *p, const Updates *s)
{
	uint64_t most = LINKS_AT_ONCE / (p->net->links + 1) + 1, left = s->examples - s->done, k = 0;
	uint64_t count = min_u64(min_u64(s->count, most), left);

	if (s->batch != 1 || !is_ready(p))
		return 0;
	unsigned before = cpu_enter();
	while (k < count && !*s->stop && isfinite(s->tally->error)) {
		uint64_t next = k + 1 < s->count ? case_at(s, k + 1) : NO_CASE;
		if (next != NO_CASE)
			case_prefetch(p->bound->data, next);
		case_forward(p, case_at(s, k), s->tally);
		if (!k || !s->same)
			set_update(p, &s->update[k]);
		case_update(p, next);
		k++;
	}
	cpu_leave(before);
	return k;
}
