/* SPDX-License-Identifier: MIT */
/* Updates. In: the sum of weight changes that waits, and the numbers of the update. Out: new weights and rule
 * state, and the other forms of the weights that passes need. Threads share the rows of every panel.
 *
 * Where a guard wants them (Monitor.before, Monitor.after), checksums of what is read and of what is written are
 * computed in the same sweep, some thousand weights at a time: these are in the first cache then, and memory is
 * read once. Must hold: every byte of every region is in the checksum of exactly one thread. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "half.h"

enum {
	SHARED_ROOM = 65536,
	TEAM_ROOM = 8192, /* floats, from which on sharing them pays; with threads that are awake */
	COPIED_ROWS = 32  /* of new weights that are still in the L2 cache when they are copied; full vectors */
};

typedef struct Work {
	const Program *p;
	const Update *u; /* NULL: nothing but copies */
	float clip;
	uint32_t threads;
	bool checked;                 /* checksums are wanted: */
	Region region[MOST_REGIONS];  /* of these, */
	uint64_t block[MOST_REGIONS]; /* number of the first block of each */
	uint32_t regions;
} Work;

/* ---- regions and their checksums ---- */

uint32_t update_regions(const Program *p, Region *r)
{
	uint32_t n = 0;

	r[n++] = (Region){ "weights", p->w, p->layout->floats * sizeof *p->w };
	r[n++] = (Region){ "transposed weights", p->copies, p->layout->copy_floats * sizeof *p->copies };
	for (int k = 0; k < p->rule->states; k++)
		r[n++] = (Region){ p->rule->state[k], p->state[k], p->layout->floats * sizeof *p->state[k] };
	r[n++] = (Region){ "row of zeros", p->zero, longest_row(p->layout) * sizeof *p->zero };
	if (p->half)
		r[n++] = (Region){ "rounded weights", p->half->w, p->half->room * sizeof *p->half->w };
	return n;
}

static void work_regions(Work *w)
{
	uint64_t blocks = 0;

	w->checked = w->u && w->p->monitor && w->p->monitor->before;
	w->regions = w->checked ? update_regions(w->p, w->region) : 0;
	for (uint32_t i = 0; i < w->regions; i++) {
		w->block[i] = blocks;
		blocks += checksum_blocks(w->region[i].bytes);
	}
}

/* Bytes from .. end - 1 of a region, in full rows of a block; checksums of parts add up, in any order. */
static void checksum_bytes(const Work *w, uint64_t *checksums, uint32_t region, uint64_t from, uint64_t end)
{
	for (uint64_t next; from < end; from = next) {
		uint64_t block = from / CHECKSUM_BLOCK, left = (block + 1) * CHECKSUM_BLOCK;
		next = end < left ? end : left;
		uint64_t part = w->p->kern->checksum((const uint8_t *)w->region[region].at + from, next - from,
		                                     (uint32_t)(from % CHECKSUM_BLOCK / CHECKSUM_ROW));
		__atomic_fetch_add(&checksums[w->block[region] + block], part, __ATOMIC_RELAXED);
	}
}

static void checksum_floats(const Work *w, uint64_t *checksums, uint32_t region, uint64_t at, uint64_t n)
{
	checksum_bytes(w, checksums, region, at * sizeof(float), (at + n) * sizeof(float));
}

/* Weights and rule state from `at` on. */
static void checksum_sweep(const Work *w, uint64_t *checksums, uint64_t at, uint64_t n)
{
	checksum_floats(w, checksums, REGION_WEIGHTS, at, n);
	for (int i = 0; i < w->p->rule->states; i++)
		checksum_floats(w, checksums, REGION_STATE + (uint32_t)i, at, n);
}

/* A thread's share of a region that is not swept. */
static void checksum_share(const Work *w, uint64_t *checksums, uint32_t region, uint32_t thread)
{
	uint64_t bytes = w->region[region].bytes, blocks = checksum_blocks(bytes);
	uint64_t end = blocks * (thread + 1) / w->threads * CHECKSUM_BLOCK;

	checksum_bytes(w, checksums, region, blocks * thread / w->threads * CHECKSUM_BLOCK, end < bytes ? end : bytes);
}

/* Regions that are not swept: other forms of the weights, and the zeros, which stay. */
static void checksum_others(const Work *w, uint64_t *checksums, uint32_t thread)
{
	checksum_share(w, checksums, REGION_COPIES, thread);
	for (uint32_t i = REGION_STATE + (uint32_t)w->p->rule->states; i < w->regions; i++)
		checksum_share(w, checksums, i, thread);
}

/* ---- weights ---- */

static Sweep sweep_of(const Work *w, const Block *like, double rate)
{
	const Program *p = w->p;
	Sweep s = { .formula = &p->formula };

	for (int i = 0; i < P_COUNT; i++)
		s.param[i] = (float)w->u->param[i];
	s.param[P_RATE] = (float)(w->u->param[P_RATE] * rate);
	if (like->decay >= 0)
		s.param[P_DECAY] = (float)like->decay;
	if (p->rule->needs_norm)
		s.param[P_CLIP] = w->clip;
	return s;
}

/* Weights that left the limits of their block; the last step, which some rules remember, is the one that was made. */
static void limit_weights(const Rule *rule, const Block *like, const Sweep *s)
{
	float low = (float)like->limit[0], high = (float)like->limit[1], *w = s->variable[1], *step = NULL;

	for (int k = 0; k < rule->states; k++)
		if (strcmp(rule->state[k], "step") == 0)
			step = s->variable[2 + k];
	for (size_t i = 0; i < s->n; i++) {
		float within = w[i] < low ? low : w[i] > high ? high : w[i];
		if (within == w[i] || (s->real && !(s->real[i / 32] >> i % 32 & 1)))
			continue;
		if (step)
			step[i] = f_add(step[i], f_sub(within, w[i]));
		w[i] = within;
	}
}

static void sweep_from(const Work *w, uint32_t thread, const Block *like, double rate, const uint32_t *real,
                       uint64_t at, size_t n)
{
	const Program *p = w->p;
	float *const base[] = { p->pending.v, p->w, p->state[0], p->state[1], p->state[2] };
	Sweep s = sweep_of(w, like, rate);

	for (int i = 0; i < 2 + p->rule->states; i++)
		s.variable[i] = base[i] + at;
	s.real = real;
	s.n = n;
	s.reach = p->monitor ? &p->space[thread].max_change : NULL;
	p->kern->update(&s);
	if (isfinite(like->limit[0]) || isfinite(like->limit[1]))
		limit_weights(p->rule, like, &s);
}

/* Weights `from` .. from + n - 1 of a panel. */
static void sweep_panel(const Work *w, uint32_t thread, const Panel *panel, uint64_t from, size_t n)
{
	if (!panel->list && !panel->frozen)
		sweep_from(w, thread, panel->like, panel->rate, panel->real ? panel->real + from / 32 : NULL, panel->at + from,
		           n);
	for (uint32_t i = 0; panel->list && i < panel->list->kinds; i++) {
		const LinkKind *k = &panel->list->kind[i];
		if (!k->frozen)
			sweep_from(w, thread, k->like, k->rate, k->real + from / 32, panel->at + from, n);
	}
}

/* The same, with checksums before and after. */
static void sweep_checked(const Work *w, uint32_t thread, const Panel *panel, uint64_t from, uint64_t n)
{
	const Program *p = w->p;

	for (uint64_t end = from + n, next; from < end; from = next) {
		next = end - from < CHECKSUM_BLOCK / sizeof(float) ? end : from + CHECKSUM_BLOCK / sizeof(float);
		p->space[thread].checksum += sum_checksum(p, p->pending.v, panel->at + from, next - from);
		checksum_sweep(w, p->monitor->before, panel->at + from, next - from);
		sweep_panel(w, thread, panel, from, next - from);
		checksum_sweep(w, p->monitor->after, panel->at + from, next - from);
	}
}

static void update_weights(const Work *w, uint32_t thread, const Panel *panel, uint64_t from, uint64_t n)
{
	if (w->checked)
		sweep_checked(w, thread, panel, from, n);
	else if (w->u)
		sweep_panel(w, thread, panel, from, n);
}

/* Rows of a panel that are a thread's: in multiples of LANES, so that no two threads write into one cache line of a
 * copy. */
static void update_panel(const Work *w, const Panel *panel, uint32_t thread)
{
	const Program *p = w->p;
	uint32_t sources = panel->sources + panel->bias, rows = panel->by_source ? sources : panel->targets;
	uint32_t blocks = (rows + LANES - 1) / LANES;
	uint32_t first = (uint32_t)((uint64_t)blocks * thread / w->threads) * LANES;
	uint32_t end = (uint32_t)((uint64_t)blocks * (thread + 1) / w->threads) * LANES;

	end = end < rows ? end : rows;
	for (uint32_t row = first, some; row < end; row += some) {
		uint64_t from = (uint64_t)row * panel->row;
		some = panel->copy == NONE || end - row < COPIED_ROWS ? end - row : COPIED_ROWS;
		update_weights(w, thread, panel, from, (uint64_t)some * panel->row);
		if (panel->copy != NONE)
			p->kern->transpose(some, panel->by_source ? panel->targets : sources, p->w + panel->at + from, panel->row,
			                   p->copies + panel->copy + row, panel->copy_row);
	}
}

/* Links of a list that are a thread's: in steps that are whole words of the bits of a kind. */
static void update_list(const Work *w, const Panel *panel, uint32_t thread)
{
	assert(w->threads > 0);
	uint64_t words = (panel->row + 31) / 32, first = words * thread / w->threads * 32,
			 end = words * (thread + 1) / w->threads * 32;

	end = end < panel->row ? end : panel->row;
	if (first < end)
		update_weights(w, thread, panel, first, end - first);
}

static void update_work(void *arg, uint32_t thread)
{
	const Work *w = arg;
	const Layout *l = w->p->layout;
	unsigned before = cpu_enter();

	if (w->checked)
		checksum_others(w, w->p->monitor->before, thread);
	if (w->checked && w->threads > 1)
		pool_barrier(w->p->pool); /* checksums of copies are by block, copies by panel */
	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *panel = &l->panel[i];
		if (panel->list)
			update_list(w, panel, thread);
		else
			update_panel(w, panel, thread);
	}
	if (w->checked && !w->p->half) {
		if (w->threads > 1)
			pool_barrier(w->p->pool);
		checksum_others(w, w->p->monitor->after, thread);
	}
	cpu_leave(before);
}

static void half_work(void *arg, uint32_t thread)
{
	const Work *w = arg;

	halves_weights(w->p, w->p->half, thread, w->threads);
}

static void checksum_work(void *arg, uint32_t thread)
{
	const Work *w = arg;

	checksum_others(w, w->p->monitor->after, thread);
}

static void on_threads(Work *w, PoolFn *fn)
{
	if (w->threads > 1)
		pool_run(w->p->pool, fn, w);
	else
		fn(w, 0);
}

static void share_work(Work *w)
{
	const Program *p = w->p;

	w->threads = p->pool && p->layout->floats >= (p->awake ? TEAM_ROOM : SHARED_ROOM) ? p->threads : 1;
	on_threads(w, update_work);
	if (p->half)
		on_threads(w, half_work);
	if (p->half && w->checked)
		on_threads(w, checksum_work);
}

/* The sum that waits, from link `first` on. */
typedef struct Gradient {
	const Program *p;
	uint64_t first;
	double *g;
	bool some; /* do not count: of frozen blocks, or tied */
} Gradient;

static void note_gradient(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Gradient *g = arg;

	const Block *b = net_block(g->p->net, unit, link);

	g->g[link - g->first] = g->some && (b->frozen || b->tied >= 0) ? 0 : g->p->pending.v[place];
}

static void some_gradient(const void *arg, uint64_t first, uint64_t count, double *g)
{
	const Gradient *all = arg;
	Gradient some = { all->p, first, g, all->some };

	layout_links(some.p->layout, first, first + count, note_gradient, &some);
}

static double gradient_length(const Program *p)
{
	Gradient all = { .p = p };

	for (uint32_t i = 0; i < p->net->blocks; i++)
		all.some |= p->net->block[i].frozen || p->net->block[i].tied >= 0;
	return rule_length(some_gradient, &all, p->net->links);
}

/* ---- ties ---- */

static void note_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	(void)unit;
	((uint64_t *)arg)[link] = place;
}

/* In the order of links. */
void ties_take(Ctx *cx, Program *p)
{
	const uint64_t *tie = p->net->tie;

	p->ties = 0;
	if (!tie)
		return;
	uint64_t *place = NEW(&cx->scratch, p->net->links, uint64_t);
	layout_links(p->layout, 0, p->net->links, note_place, place);
	p->tie = NEW(&cx->fixed, p->net->links, Tie);
	for (uint64_t i = 0; i < p->net->links; i++)
		if (tie[i] != i)
			p->tie[p->ties++] = (Tie){ place[i], place[tie[i]] };
}

static void tie_sums(Program *p)
{
	float *v = p->pending.v;
	unsigned before = cpu_enter();

	for (const Tie *t = p->tie; t < p->tie + p->ties; t++)
		v[t->to] = f_add(v[t->to], v[t->from]);
	for (const Tie *t = p->tie; t < p->tie + p->ties; t++)
		v[t->from] = v[t->to];
	cpu_leave(before);
	pending_checksum(p);
}

void update_apply(Program *p, const Update *u)
{
	Work w = { .p = p, .u = u };

	if (p->ties)
		tie_sums(p);
	if (p->rule->needs_norm)
		w.clip = (float)(1 / fmax(1, gradient_length(p)));
	for (uint32_t i = 0; p->monitor && i < p->threads; i++) {
		p->space[i].max_change = 0;
		p->space[i].checksum = 0;
	}
	work_regions(&w);
	share_work(&w);
	uint64_t summed = 0;
	for (uint32_t i = 0; p->monitor && i < p->threads; i++) {
		p->monitor->max_change =
			i && p->monitor->max_change > p->space[i].max_change ? p->monitor->max_change : p->space[i].max_change;
		summed += p->space[i].checksum;
	}
	if (p->monitor && w.checked && summed != p->pending.checksum)
		p->monitor->corrupted_sums++;
}

void update_copies(const Program *p) { share_work(&(Work){ .p = p }); }
