/* SPDX-License-Identifier: MIT */
/* Updates.  In: the sum of weight changes that waits, and the numbers of the update.  Out: new weights and rule state, and
 * the other forms of the weights that passes need.  Threads share the rows of every panel. */
#include <math.h>

#include "half.h"

enum { SHARED_ROOM = 65536 };             /* floats, from which on sharing them pays */

typedef struct Work {
	Program *p;
	const Update *u;                  /* NULL: nothing but copies */
	float clip;
	uint32_t threads;
} Work;

static Sweep sweep_of(const Work *w, double rate)
{
	const Program *p = w->p;
	Sweep s = { .formula = &p->formula };

	for (int i = 0; i < P_COUNT; i++)
		s.param[i] = (float)w->u->param[i];
	s.param[P_RATE] = (float)(w->u->param[P_RATE] * rate);
	if (p->rule->needs_norm)
		s.param[P_CLIP] = w->clip;
	return s;
}

static void sweep_from(const Program *p, uint32_t thread, Sweep *s, uint64_t at, size_t n)
{
	float *const base[] = { p->pending, p->w, p->state[0], p->state[1], p->state[2] };

	for (int i = 0; i < 2 + p->rule->states; i++)
		s->variable[i] = base[i] + at;
	s->n = n;
	s->reach = p->watch ? &p->space[thread].reach : NULL;
	p->kern->update(s);
}

static void update_list(const Work *w, const Panel *panel, uint32_t thread)
{
	for (uint32_t i = 0; i < panel->list->kinds; i++) {
		const LinkKind *k = &panel->list->kind[i];
		if (k->frozen)
			continue;
		Sweep s = sweep_of(w, k->rate);
		s.real = k->real;
		sweep_from(w->p, thread, &s, panel->at, panel->row);
	}
}

/* Rows of a panel that are a thread's: in full sixteens, so that no two threads write into one cache line of a copy. */
static void update_panel(const Work *w, const Panel *panel, uint32_t thread)
{
	const Program *p = w->p;
	uint32_t sources = panel->sources + panel->bias, rows = panel->by_source ? sources : panel->targets;
	uint32_t blocks = (rows + LANES - 1) / LANES;
	uint32_t first = (uint32_t)((uint64_t)blocks * thread / w->threads) * LANES;
	uint32_t end = (uint32_t)((uint64_t)blocks * (thread + 1) / w->threads) * LANES;
	uint64_t at = panel->at + (uint64_t)first * panel->row;

	end = end < rows ? end : rows;
	if (first >= end)
		return;
	if (w->u && !panel->frozen) {
		Sweep s = sweep_of(w, panel->rate);
		s.real = panel->real ? panel->real + (size_t)first * panel->row / 32 : NULL;
		sweep_from(p, thread, &s, at, (size_t)(end - first) * panel->row);
	}
	if (panel->copy != NONE)
		p->kern->transpose(end - first, panel->by_source ? panel->targets : sources, p->w + at, panel->row,
		                   p->copies + panel->copy + first, panel->copy_row);
}

static void update_work(void *arg, uint32_t thread)
{
	const Work *w = arg;
	const Layout *l = w->p->layout;
	unsigned before = cpu_enter();

	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *panel = &l->panel[i];
		if (!panel->list)
			update_panel(w, panel, thread);
		else if (w->u && i % w->threads == thread)
			update_list(w, panel, thread);
	}
	cpu_leave(before);
}

static void half_work(void *arg, uint32_t thread)
{
	const Work *w = arg;

	halves_weights(w->p, w->p->half, thread, w->threads);
}

static void share_work(Work *w)
{
	Program *p = w->p;

	w->threads = p->pool && p->layout->room >= SHARED_ROOM ? p->threads : 1;
	if (w->threads > 1)
		pool_run(p->pool, update_work, w);
	else
		update_work(w, 0);
	if (p->half && w->threads > 1)
		pool_run(p->pool, half_work, w);
	else if (p->half)
		half_work(w, 0);
}

static void note_gradient(void *arg, uint64_t link, uint64_t place)
{
	const Program *p = arg;

	p->norm[link] = p->pending[place];
}

void update_apply(Program *p, const Update *u)
{
	Work w = { .p = p, .u = u };

	if (p->rule->needs_norm) {
		layout_links(p->layout, note_gradient, p);
		w.clip = (float)(1 / fmax(1, rule_norm(p->norm, p->frozen, p->net->links)));
	}
	for (uint32_t i = 0; p->watch && i < p->threads; i++)
		p->space[i].reach = 0;
	share_work(&w);
	for (uint32_t i = 0; p->watch && i < p->threads; i++)
		p->watch->reach = i && p->watch->reach > p->space[i].reach ? p->watch->reach : p->space[i].reach;
}

void update_copies(Program *p)
{
	share_work(&(Work){ .p = p });
}
