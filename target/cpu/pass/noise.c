/* SPDX-License-Identifier: MIT */
/* Noise, and what single groups state: gain, radii, criteria. In: a step, rows of a space. Out: values in those rows;
 * the weights of an update with noise, which passes read in place of the others. */
#include <math.h>
#include <string.h>

#include "half.h"

_Static_assert((int)NOISE_KIND_GAUSSIAN == NOISE_GAUSSIAN && (int)NOISE_KIND_UNIFORM == NOISE_UNIFORM &&
                   (int)NOISE_KIND_DROPOUT == NOISE_DROPOUT && NOISE_UNITS == 4 * LANES,
               "kernels know them by number");

static uint32_t row_number(const Slice *r, uint32_t m) { return r->at ? r->at[m] : r->first + m; }

void run_noise(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Chunk *c = &s->chunk;
	const Noise *n = st->noise;

	p->kern->noise(
		&(NoiseRows){ .of = { .rows = r->rows, .cols = st->part->count, .at = r->at, .row = p->layout->cols },
	                  .in = row_at(p, s, st->a, r, st->a_col),
	                  .out = row_at(p, s, st->c, r, st->c_col),
	                  .cases = c->cases + r->first,
	                  .tick = c->tick ? c->tick + r->first : NULL,
	                  .first = st->part->first - p->net->group[st->part->group].first,
	                  .kind = n->kind,
	                  .amount = n->amount,
	                  .scale = (float)(1 / (1 - n->exact)),
	                  .key = noise_key(p->opt, p->noise_update, st->place, (uint32_t)st->part->group) });
}

/* Net inputs, or deltas, times the gain of the group. */
void run_gain(const Program *p, Space *s, const Step *st, const Slice *r)
{
	float gain = st->offset;

	for (uint32_t m = 0; m < r->rows; m++) {
		float *v = s->rows.row[st->c] + row_number(r, m) * (size_t)p->layout->cols + st->c_col;
		for (uint32_t j = 0; j < st->part->count; j++)
			v[j] = f_mul(v[j], gain);
	}
}

/* ---- errors ---- */

/* Targets that errors count from; those of outputs that are near enough are NaN. */
void run_near(const Program *p, Space *s, const Step *st, const Slice *r)
{
	const Part *t = st->part;
	const Group *g = &p->net->group[t->group];
	uint32_t targets = p->bound->data->targets;
	const uint64_t *at;
	const float *y = targets_at(p, s, r->first, &at);

	for (uint32_t m = 0; m < r->rows; m++) {
		const float *from = y + (at ? at[m] : m) * targets + t->output;
		const float *out = s->rows.row[ROW_ACT] + (size_t)(r->first + m) * p->layout->cols + t->col;
		float *to = s->rows.near + (size_t)(r->first + m) * targets + t->output;
		for (uint32_t j = 0; j < t->count; j++)
			to[j] = (float)target_near(g, (double)out[j], (double)from[j]);
	}
}

/* Some groups have criteria of their own: within is decided here. */
void run_within(const Program *p, Space *s, const Step *st, const Slice *r)
{
	uint32_t targets = p->bound->data->targets;
	const uint64_t *at;
	const float *y = targets_at(p, s, r->first, &at);

	(void)st;
	for (uint32_t m = 0; m < r->rows; m++) {
		const float *of = y + (at ? at[m] : m) * targets;
		const float *act = s->rows.row[ROW_ACT] + (size_t)(r->first + m) * p->layout->cols;
		uint8_t *verdict = &s->rows.verdict[r->first + m];
		bool within = true;
		for (const Part *t = p->layout->part; t < p->layout->part + p->layout->parts; t++) {
			if (t->role != ROLE_OUTPUT)
				continue;
			float most = (float)group_criterion(&p->net->group[t->group], p->bound->scorer.threshold);
			for (uint32_t j = 0; j < t->count; j++)
				within &= isnan(of[t->output + j]) || fabsf(f_sub(act[t->col + j], of[t->output + j])) <= most;
		}
		*verdict =
			(uint8_t)(*verdict & VERDICT_SCORED && within ? *verdict | VERDICT_WITHIN : *verdict & ~VERDICT_WITHIN);
	}
}

/* ---- weights ---- */

static void note_link(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Program *p = arg;

	(void)unit;
	p->noisy->link[place] = (uint32_t)(p->net->tie ? p->net->tie[link] : link);
}

void noisy_take(Ctx *cx, Program *p)
{
	const Layout *l = p->layout;
	bool any = false;

	for (uint32_t i = 0; i < p->net->blocks; i++)
		any |= p->net->block[i].noise.kind != NOISE_NONE;
	p->noisy = NULL;
	if (!any)
		return;
	p->noisy = NEW(&cx->keep, 1, NoisyWeights);
	p->noisy->w = floats_take(&cx->keep, l->floats + LANES);
	p->noisy->copies = floats_take(&cx->keep, l->copy_floats + LANES);
	p->noisy->link = NEW(&cx->keep, l->floats + LANES, uint32_t);
	layout_links(l, 0, p->net->links, note_link, p);
}

Program noisy_view(const Program *p)
{
	Program view = *p;

	view.w = p->noisy->w;
	view.copies = p->noisy->copies;
	return view;
}

typedef struct NoiseWork {
	const Program *p;
	uint64_t key;
	uint32_t threads;
} NoiseWork;

/* A thread's share of a panel, in words of the bits of `real`. */
static void disturb(const NoiseWork *w, const Panel *panel, const Block *like, const uint32_t *real, uint32_t thread)
{
	const Program *p = w->p;
	uint64_t size = panel_size(panel), words = (size + 31) / 32, first = words * thread / w->threads * 32,
			 end = min_u64(words * (thread + 1) / w->threads * 32, size);

	if (!like->noise.kind || first >= end)
		return;
	p->kern->noise_weights(&(NoiseWeights){ .w = p->w + panel->at + first,
	                                        .out = p->noisy->w + panel->at + first,
	                                        .link = p->noisy->link + panel->at + first,
	                                        .real = real ? real + first / 32 : NULL,
	                                        .n = end - first,
	                                        .kind = like->noise.kind,
	                                        .amount = like->noise.amount,
	                                        .key = w->key });
}

static void noise_work(void *arg, uint32_t thread)
{
	const NoiseWork *w = arg;
	const Layout *l = w->p->layout;
	unsigned before = cpu_enter();

	for (const Panel *panel = l->panel; panel < l->panel + l->panels; panel++) {
		if (!panel->list)
			disturb(w, panel, panel->like, panel->real, thread);
		for (uint32_t i = 0; panel->list && i < panel->list->kinds; i++)
			disturb(w, panel, panel->list->kind[i].like, panel->list->kind[i].real, thread);
	}
	cpu_leave(before);
}

void noise_begin(Program *p, bool learn, uint64_t update)
{
	enum { SHARED = 16384 }; /* weights from which on threads share them */

	if (!p->net->noisy || (!learn && !p->opt->noise))
		return;
	update = learn ? update : NO_UPDATE;
	bool made = p->noise_made && p->noise_update == update;
	p->noise_update = update;
	if (!p->noisy || made)
		return;
	NoiseWork w = { .p = p,
		            .key = noise_key(p->opt, update, NOISE_AT_WEIGHT, 0),
		            .threads = p->pool && p->layout->floats >= SHARED ? p->threads : 1 };
	memcpy(p->noisy->w, p->w, p->layout->floats * sizeof *p->w);
	if (w.threads > 1)
		pool_run(p->pool, noise_work, &w);
	else
		noise_work(&w, 0);
	Program view = noisy_view(p);
	update_copies(&view);
	p->noise_made = true;
}
