/* SPDX-License-Identifier: MIT */
/* Weights on the device. In: the layout of target cpu, its weights and rule state. Out: tables for the update (panels,
 * link classes, ties, noise); weights, their transposes and bf16 forms on the device; copies back. Must hold: a weight
 * has the same place on the device as in the program of target cpu. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "pass.h"

extern const Target target_cpu;

uint32_t panel_rows(const Panel *p) { return p->by_source ? p->sources + p->bias : p->targets; }
uint32_t panel_cols(const Panel *p) { return p->by_source ? p->targets : p->sources + p->bias; }

/* Forward passes read rows by source, backward passes rows by target. Single links need no second form. */
static bool needs_transpose(const Layout *l, const Panel *p)
{
	return !p->list && (!p->by_source || l->part[p->from].error);
}

/* Classes of links: number i has rate factor, decay and limits at[i]. */
typedef struct Classes {
	LinkClass *at;
	uint32_t count;
} Classes;

static uint8_t class_of(Ctx *cx, Classes *f, double rate, const Block *like)
{
	LinkClass own = { rate, like->decay, like->limit[0], like->limit[1] };

	for (uint32_t i = 0; i < f->count; i++)
		if (memcmp(&f->at[i], &own, sizeof own) == 0)
			return (uint8_t)i;
	if (f->count == NO_LINK)
		fail(cx, MP_BAD_INPUT, "use fewer, or --target cpu",
		     "target cuda takes 255 different rate factors, decays and limits of blocks, no more");
	f->at[f->count] = own;
	return (uint8_t)f->count++;
}

static bool bit_at(const uint32_t *bits, uint64_t i) { return bits[i / 32] >> i % 32 & 1; }

/* The class of every place of a panel; NULL: all have the panel's. */
static const uint8_t *kinds_of(Cuda *c, Classes *f, const Panel *p, uint64_t size)
{
	uint8_t *kind;

	if (!p->list && !p->real)
		return NULL;
	kind = arena_alloc(&c->cx->scratch, size, 1);
	memset(kind, NO_LINK, size);
	for (uint64_t i = 0; p->real && i < size; i++)
		if (i >= (uint64_t)p->sources * p->row || bit_at(p->real, i))
			kind[i] = class_of(c->cx, f, p->rate, p->like);
	for (uint32_t k = 0; p->list && k < p->list->kinds; k++)
		for (uint64_t i = 0; !p->list->kind[k].frozen && i < p->list->links; i++)
			if (bit_at(p->list->kind[k].real, i))
				kind[i] = class_of(c->cx, f, p->list->kind[k].rate, p->list->kind[k].like);
	return device_put(&c->weights, kind, size);
}

/* Row or column of weights from the true unit. */
static uint32_t bias_of(const Panel *p)
{
	return p->list ? NO_BIAS : p->bias ? p->sources : p->from == 0 ? 0 : NO_BIAS;
}

/* Panels that are trained: frozen ones are not updated. */
static void lower_panels(Cuda *c, const Layout *l)
{
	DevicePanel *panel = NEW(&c->weights.arena, l->panels + 1, DevicePanel);
	Classes f = { .at = NEW(&c->weights.arena, NO_LINK + 1, LinkClass) };
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *p = &l->panel[i];
		DevicePanel d = {
			.at = p->at, .row = p->row, .copy = c->tables.transposed_at[i], .copy_row = c->tables.transposed_row[i]
		};
		d.bias = bias_of(p);
		d.bias_across = !p->by_source;
		if (p->frozen)
			continue;
		d.cols = p->list ? (uint32_t)p->list->links : panel_cols(p);
		d.size = p->list ? p->list->links : (uint64_t)p->row * panel_rows(p);
		d.kind = kinds_of(c, &f, p, d.size);
		d.factor = d.kind ? 0 : class_of(c->cx, &f, p->rate, p->like);
		c->tables.panel_number[i] = count;
		panel[count++] = d;
	}
	c->job.panel = device_put(&c->weights, panel, count * sizeof *panel);
	c->job.panels = count;
	c->tables.panel = panel;
	c->tables.factor = f.at;
	c->tables.factors = f.count;
	c->job.factor = device_put(&c->weights, f.at, (f.count + 1) * sizeof *f.at);
}

/* Places of links in canonical order, for the norm of the gradient. */
typedef struct Places {
	const Net *net;
	uint64_t *place;
} Places;

static void note_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Places *p = arg;

	const Block *b = net_block(p->net, unit, link);

	p->place[link] = b->frozen || b->tied >= 0 ? NO_COPY : place;
}

static void lower_norm(Cuda *c, const Layout *l)
{
	Places p = { .net = c->net, .place = NEW(&c->cx->scratch, c->net->links, uint64_t) };

	layout_links(l, 0, c->net->links, note_place, &p);
	c->job.place = device_put(&c->weights, p.place, c->net->links * sizeof *p.place);
	c->job.norm = device_alloc(&c->weights, (MAX_LEAVES + 1) * sizeof(double));
	c->job.links = c->net->links;
}

/* ---- ties ---- */

typedef struct TieAt {
	uint64_t to, from;
	uint64_t number;
} TieAt;

/* By the weight that gets the sum, then in the order of links. */
static int by_sum(const void *a, const void *b)
{
	const TieAt *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Groups ties by the weight that gets the sum. That weight is not tied to another one itself. */
static void lower_ties(Cuda *c)
{
	const Program *p = c->cpu;
	TieAt *at = NEW(&c->cx->scratch, p->ties + 1, TieAt);
	DeviceTie *tie = NEW(&c->cx->scratch, p->ties + 1, DeviceTie);
	uint64_t *tied = NEW(&c->cx->scratch, p->ties + 1, uint64_t);

	c->job.ties = 0;
	if (!p->ties)
		return;
	for (uint64_t i = 0; i < p->ties; i++)
		at[i] = (TieAt){ p->tie[i].to, p->tie[i].from, i };
	qsort(at, p->ties, sizeof *at, by_sum);
	for (uint64_t i = 0; i < p->ties; i++) {
		if (!i || at[i].to != at[i - 1].to)
			tie[c->job.ties++] = (DeviceTie){ .to = at[i].to, .first = (uint32_t)i };
		tie[c->job.ties - 1].count++;
		tied[i] = at[i].from;
	}
	c->job.tie = device_put(&c->weights, tie, c->job.ties * sizeof *tie);
	c->job.tied = device_put(&c->weights, tied, p->ties * sizeof *tied);
}

/* ---- noise ---- */

typedef struct NoisePlaces {
	uint8_t *class; /* [floats] number of the class, by place; NO_LINK: no noise */
	NoiseClass *at; /* [classes] */
	uint32_t classes;
} NoisePlaces;

static uint8_t noise_class(Ctx *cx, NoisePlaces *n, const Noise *noise)
{
	for (uint32_t i = 0; i < n->classes; i++)
		if (n->at[i].kind == noise->kind && n->at[i].amount == noise->amount)
			return (uint8_t)i;
	if (n->classes == NO_LINK)
		fail(cx, MP_BAD_INPUT, "use fewer, or --target cpu",
		     "target cuda takes 255 kinds of noise of weights, no more");
	n->at[n->classes] = (NoiseClass){ noise->kind, noise->amount };
	return (uint8_t)n->classes++;
}

static void noise_places(Cuda *c, NoisePlaces *n, const Panel *p, const Block *like, const uint32_t *real)
{
	for (uint64_t i = 0; like->noise.kind && i < panel_size(p); i++)
		if (!real || bit_at(real, i))
			n->class[p->at + i] = noise_class(c->cx, n, &like->noise);
}

/* Which places have noise. Passes then read Job.noisy, made from the weights in every update. */
static void lower_noise(Cuda *c, const Layout *l)
{
	NoisePlaces n = { .class = NEW(&c->cx->scratch, l->floats + 1, uint8_t),
		              .at = NEW(&c->weights.arena, NO_LINK, NoiseClass) };
	NoisyPanel *panel = NEW(&c->weights.arena, l->panels + 1, NoisyPanel);

	c->job.noisy = c->job.noisy_copies = NULL;
	if (!c->cpu->noisy)
		return;
	memset(n.class, NO_LINK, l->floats);
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *p = &l->panel[i];
		panel[i] = (NoisyPanel){ .at = p->at,
			                     .size = panel_size(p),
			                     .row = p->list ? (uint32_t)p->list->links : p->row,
			                     .cols = p->list ? (uint32_t)p->list->links : panel_cols(p),
			                     .copy = c->tables.transposed_at[i],
			                     .copy_row = c->tables.transposed_row[i] };
		if (!p->list)
			noise_places(c, &n, p, p->like, p->real);
		for (uint32_t k = 0; p->list && k < p->list->kinds; k++)
			noise_places(c, &n, p, p->list->kind[k].like, p->list->kind[k].real);
	}
	c->tables.noise_class = n.at;
	c->tables.noise_classes = n.classes;
	c->tables.noisy_panel = panel;
	c->job.noisy_panels = l->panels;
	c->job.noise_class = device_put(&c->weights, n.class, l->floats);
	c->job.noise_link = device_put(&c->weights, c->cpu->noisy->link, l->floats * sizeof *c->cpu->noisy->link);
	c->job.noisy = device_alloc(&c->weights, (l->floats + LANES) * sizeof(float));
	c->job.noisy_copies = device_alloc(&c->weights, (c->transposed_floats + LANES) * sizeof(float));
}

static void lower_transposes(Cuda *c, const Layout *l)
{
	LayoutTables *t = &c->tables;
	uint64_t floats = 0;

	t->transposed_at = NEW(&c->cx->keep, l->panels + 1, uint64_t);
	t->transposed_row = NEW(&c->cx->keep, l->panels + 1, uint32_t);
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *p = &l->panel[i];
		t->transposed_at[i] = needs_transpose(l, p) ? floats : NO_COPY;
		t->transposed_row[i] = (uint32_t)round_up(panel_rows(p), LANES);
		floats += needs_transpose(l, p) ? (uint64_t)t->transposed_row[i] * panel_cols(p) : 0;
	}
	c->transposed_floats = floats;
}

/* Number of the formula's variable that is the last change of a weight; 0: the rule has none. */
static uint32_t step_variable(const Rule *rule)
{
	uint32_t variable = 0;

	for (int k = 0; k < rule->states; k++)
		if (strcmp(rule->state[k], "step") == 0)
			variable = 2 + (uint32_t)k;
	return variable;
}

void lower_weights(Cuda *c)
{
	const Layout *l = c->cpu->layout;
	Job *j = &c->job;
	uint64_t bytes = (l->floats + LANES) * sizeof(float);

	device_free(&c->weights);
	c->weights.arena.cx = c->cx;
	c->tables.layout = l;
	c->tables.panel_number = NEW(&c->cx->keep, l->panels + 1, uint32_t);
	lower_transposes(c, l);
	c->floats = j->floats = l->floats;
	j->cols = l->cols;
	j->w = device_alloc(&c->weights, bytes);
	j->copies = device_alloc(&c->weights, (c->transposed_floats + LANES) * sizeof(float));
	for (int k = 0; k < c->rule->states; k++)
		j->state[k] = device_alloc(&c->weights, bytes);
	j->pending = device_alloc(&c->weights, bytes);
	j->half = c->bf16 ? device_alloc(&c->weights, bytes / 2) : NULL;
	j->needs_norm = c->rule->needs_norm;
	j->sum = j->stack = j->posted = NULL; /* allocated for the first job that needs them */
	c->posted_capacity = 0;
	j->sums = 0;
	j->input = NULL; /* lower_data makes tables of columns */
	lower_panels(c, l);
	if (c->rule->needs_norm)
		lower_norm(c, l);
	lower_ties(c);
	lower_noise(c, l);
	j->bufs = l->radii ? BUF_NEAR + 1 : l->cleans ? BUF_CLEAN + 1 : BUF_CLEAN;
	c->tables.step_variable = step_variable(c->rule);
	c->host_newer = true;
	c->device_newer = c->pending_full = false;
}

void weights_transpose(const Cuda *c, const float *w, float *to)
{
	const Layout *l = c->cpu->layout;

	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *p = &l->panel[i];
		uint32_t rows = panel_rows(p), cols = p->list ? 0 : panel_cols(p), copy_row = c->tables.transposed_row[i];
		for (uint32_t r = 0; c->tables.transposed_at[i] != NO_COPY && r < rows; r++)
			for (uint32_t n = 0; n < cols; n++)
				to[c->tables.transposed_at[i] + (size_t)n * copy_row + r] = w[p->at + (size_t)r * p->row + n];
	}
}

void weights_round(const Cuda *c, const float *w, uint16_t *to)
{
	const Layout *l = c->cpu->layout;

	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *p = &l->panel[i];
		uint32_t rows = p->list ? 0 : panel_rows(p), cols = p->list ? 0 : panel_cols(p), bias = bias_of(p);
		for (uint32_t r = 0; r < rows; r++)
			for (uint32_t n = 0; n < cols; n++) {
				uint64_t at = p->at + (uint64_t)r * p->row + n;
				to[at] = (p->by_source ? r : n) == bias ? 0 : bf16_of(w[at]);
			}
	}
}

static void weights_put(Cuda *c)
{
	uint64_t bytes = c->floats * sizeof(float);
	float *copies = NEW(&c->temp, c->transposed_floats + 1, float);

	gpu_upload(c->gpu, c->job.w, c->cpu->w, bytes);
	for (int k = 0; k < c->rule->states; k++)
		gpu_upload(c->gpu, c->job.state[k], c->cpu->state[k], bytes);
	weights_transpose(c, c->cpu->w, copies);
	gpu_upload(c->gpu, c->job.copies, copies, c->transposed_floats * sizeof *copies);
	if (c->job.half) {
		uint16_t *rounded = NEW(&c->temp, c->floats, uint16_t);
		weights_round(c, c->cpu->w, rounded);
		gpu_upload(c->gpu, c->job.half, rounded, c->floats * sizeof *rounded);
	}
}

void weights_upload(Cuda *c)
{
	if (c->host_newer)
		weights_put(c);
	c->host_newer = false;
}

void weights_download(Cuda *c)
{
	uint64_t bytes = c->floats * sizeof(float);

	if (!c->device_newer)
		return;
	gpu_download(c->gpu, c->cpu->w, c->job.w, bytes);
	for (int k = 0; k < c->rule->states; k++)
		gpu_download(c->gpu, c->cpu->state[k], c->job.state[k], bytes);
	c->device_newer = false;
}

void pending_download(const Cuda *c, double *v)
{
	Pending *pending = &c->cpu->pending;

	gpu_download(c->gpu, pending->v, c->job.pending, c->floats * sizeof(float));
	pending->full = true;
	target_cpu.gradient(c->cpu, v);
	pending->full = false;
}

void weights_refresh(Cuda *c)
{
	update_copies(c->cpu);
	c->cpu->noise_made = false;
}
