/* SPDX-License-Identifier: MIT */
/* Averaging weights over processors (section 10.4). In: weights and rule state that differ between processors by
 * rounding, or are corrupt in some. Out: the same bits on all processors.
 *
 * For each word:
 *
 *   w       the processor's own; 0 if it is NaN or larger than any plausible weight
 *   middle  the median of w of three processors a third of the machine apart; the last processor broadcasts its own
 *   d       w - middle if that is at most REACH (1 + |middle|), so that w is plausible; else 0, and a fault is
 *           counted
 *   mean    middle + (sum of all d) / P, computed by the last processor and broadcast
 *
 * One corrupt processor among the three does not change the median; corrupt words elsewhere count as the median.
 * Where all processors have the same bits, d is 0 and the bits are kept.
 *
 * The broadcast runs in steps of 1, 2, 4 ... processors; all others start with zero words, which are ORed in. Sums
 * take the same steps but do not wrap past processor 0, so the last processor receives every d once. If the update
 * has owners (pipelined, halving), they take the mean of their weights too; their rule state exists once, and
 * implausible words of it become 0. */
#include <math.h>

#include "gf11_protect.h"

#define REACH   (1.0f / 64)
#define LARGEST 1e30f
enum { WAVE = 24 }; /* words processed in parallel, to fill the pipeline */

typedef struct Wave {
	Gen *g;
	const Protect *t;
	uint32_t n;
	Reg w[WAVE], middle[WAVE];
	Reg zero, one, largest, reach, share;
	Reg last, past[MOST_LEVELS]; /* masks: the last processor; processors that a step reaches without wrapping */
	Reg faults;
} Wave;

/* ---- routines ---- */

/* All ones where a < b, else 0. */
static Reg mask_less(Wave *v, Reg a, Reg b)
{
	Cond less = g_compare(v->g, GOP_INT_LT, a, b);
	Reg ones = g_const_bits(v->g, UINT32_MAX);
	return g_select(v->g, less, ones, v->zero);
}

static Wave wave_open(Gen *g, const Protect *t)
{
	uint32_t procs = t->b->o.procs;
	Wave v = { .g = g, .t = t };
	v.zero = g_const_bits(g, 0);
	v.one = g_const(g, 1);
	v.largest = g_const(g, LARGEST);
	v.reach = g_const(g, REACH);
	v.share = g_const(g, 1.0f / (float)procs);
	v.faults = g_load(g, near_word(NEAR_COUNT));
	Reg self = g_load(g, sum_word(WORD_SELF));
	v.last = mask_less(&v, g_const_bits(g, procs - 2), self);
	for (uint32_t k = 0; k < t->levels; k++)
		v.past[k] = mask_less(&v, g_const_bits(g, (1u << k) - 1), self);
	return v;
}

static Reg cleaned(Wave *v, Reg w)
{
	Cond number = g_compare(v->g, GOP_FLT_LT, g_op(v->g, GOP_FABS, w, 0), v->largest);
	return g_select(v->g, number, w, v->zero);
}

/* From a processor a third of the machine away: one configuration, or steps of the ring. */
static Reg from_afar(const Wave *v, uint32_t which, Reg w)
{
	const Protect *t = v->t;
	for (uint32_t i = t->b->m->ring_only ? t->third[which] : 1; i > 0; i--)
		w = g_xfer(v->g, t->b->m->ring_only ? t->ring : t->third[which], w);
	return w;
}

static Reg median(const Wave *v, Reg a, Reg b, Reg c)
{
	Gen *g = v->g;
	Cond order = g_compare(g, GOP_FLT_LT, a, b);
	Reg low = g_select(g, order, a, b), high = g_select(g, order, b, a);
	order = g_compare(g, GOP_FLT_LT, high, c);
	Reg upper = g_select(g, order, high, c);
	order = g_compare(g, GOP_FLT_LT, low, upper);
	return g_select(g, order, upper, low);
}

/* Broadcast from the last processor. */
static void wave_spread(Wave *v, Reg *word)
{
	for (uint32_t i = 0; i < v->n; i++)
		word[i] = g_op(v->g, GOP_AND, word[i], v->last);
	for (uint32_t k = 0; k < v->t->levels; k++)
		for (uint32_t i = 0; i < v->n; i++)
			word[i] = g_op(v->g, GOP_OR, word[i], protect_hop(v->g, v->t, k, word[i]));
}

static void wave_middle(Wave *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		Reg first = from_afar(v, 0, v->w[i]), second = from_afar(v, 1, v->w[i]);
		v->middle[i] = median(v, v->w[i], first, second);
	}
	wave_spread(v, v->middle);
}

/* w becomes its contribution d. */
static void wave_reasonable(Wave *v)
{
	Gen *g = v->g;
	Reg more = g_const_bits(g, 1);
	for (uint32_t i = 0; i < v->n; i++) {
		Reg d = g_fsub(g, v->w[i], v->middle[i]), size = g_op(g, GOP_FABS, v->middle[i], 0);
		Reg reach = g_fmul(g, v->reach, g_fadd(g, size, v->one));
		Cond near = g_compare(g, GOP_FLT_LE, g_op(g, GOP_FABS, d, 0), reach);
		v->w[i] = g_select(g, near, d, v->zero);
		v->faults = g_op(g, GOP_IADD, v->faults, g_select(g, near, v->zero, more));
	}
}

static void wave_mean(Wave *v)
{
	Gen *g = v->g;
	for (uint32_t k = 0; k < v->t->levels; k++)
		for (uint32_t i = 0; i < v->n; i++) {
			Reg come = g_op(g, GOP_AND, protect_hop(g, v->t, k, v->w[i]), v->past[k]);
			v->w[i] = g_fadd(g, v->w[i], come);
		}
	for (uint32_t i = 0; i < v->n; i++) {
		Cond same = g_compare(g, GOP_FLT_EQ, v->w[i], v->zero); /* keeps -0 */
		Reg mean = g_fadd(g, v->middle[i], g_fmul(g, v->w[i], v->share));
		v->w[i] = g_select(g, same, v->middle[i], mean);
	}
	wave_spread(v, v->w);
}

static Code *record_average(const Protect *t, uint32_t words)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "average");
	uint32_t buffer = protect_buffer(t);
	for (uint32_t k = 0; k < words; k++)
		g_fetch(g, near_word(buffer + k), (Addr){ PROTECT_FROM, k });
	Wave v = wave_open(g, t);
	for (uint32_t first = 0; first < words; first += WAVE) {
		v.n = words - first < WAVE ? words - first : WAVE;
		for (uint32_t i = 0; i < v.n; i++)
			v.w[i] = cleaned(&v, g_load(g, near_word(buffer + first + i)));
		wave_middle(&v);
		wave_reasonable(&v);
		wave_mean(&v);
		for (uint32_t i = 0; i < v.n; i++) {
			g_store(g, near_word(buffer + first + i), v.w[i]);
			g_flush(g, (Addr){ PROTECT_FROM, first + i }, near_word(buffer + first + i));
		}
	}
	g_store(g, near_word(NEAR_COUNT), v.faults);
	return sum_code(g, false);
}

/* State that only owners hold. */
static Code *record_sane(const Protect *t, uint32_t words)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "rule state");
	uint32_t buffer = protect_buffer(t);
	Wave v = { .g = g, .zero = g_const_bits(g, 0), .largest = g_const(g, LARGEST) };
	for (uint32_t k = 0; k < words; k++) {
		g_fetch(g, near_word(buffer + k), (Addr){ PROTECT_FROM, k });
		g_store(g, near_word(buffer + k), cleaned(&v, g_load(g, near_word(buffer + k))));
		g_flush(g, (Addr){ PROTECT_FROM, k }, near_word(buffer + k));
	}
	return sum_code(g, false);
}

/* ---- compiling ---- */

void average_make(Protect *t)
{
	Bp *b = t->b;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t away = b->o.procs * (i + 1) / 3;
		t->third[i] = b->m->ring_only ? away : sum_shift(b, b->o.procs, away);
	}
	/* Words of a call: a multiple of WAVE where possible. */
	uint32_t afar = b->m->ring_only ? b->o.procs : 2;
	uint32_t lines = (3 * protect_hops(t) + afar) * (uint32_t)b->m->switch_interval + 40;
	uint32_t words = min_u32(sum_lines(b) / (lines + lines / 4), b->at.scratch_words - protect_buffer(t));
	words = words > WAVE ? words / WAVE * WAVE : words;
	t->average_words = words / (uint32_t)b->m->dram_banks * (uint32_t)b->m->dram_banks;
	if (!t->average_words)
		fail(b->cx, MP_BAD_INPUT, "use a machine file with longer blocks, or set agree host",
		     "a mean over %u processors does not fit into blocks of %lld lines", b->o.procs, (long long)b->m->block);
	if (!b->at.words)
		return;
	uint32_t rest = b->at.words % t->average_words;
	t->average[0] = b->at.words >= t->average_words ? sum_load(b, record_average(t, t->average_words)) : 0;
	t->average[1] = rest ? sum_load(b, record_average(t, rest)) : 0;
	if (!sum_home(b, 0).everywhere)
		t->sane = sum_load(b, record_sane(t, b->summing->rows.own));
}

/* ---- averaging ---- */

static void average_array(Protect *t, uint32_t array)
{
	for (uint32_t first = 0; first < t->b->at.words; first += t->average_words) {
		bool whole = first + t->average_words <= t->b->at.words;
		protect_call(t, t->average[!whole], array + first, 0, 0);
	}
}

void average_all(Protect *t)
{
	const Bp *b = t->b;
	if (!b->at.words)
		return;
	sum_words_write(t->b);
	protect_clear(t);
	average_array(t, b->at.weights);
	if (sum_home(b, 0).everywhere) {
		for (uint32_t k = 0; k < state_count(b); k++)
			average_array(t, state_first(b, k));
	} else {
		shares_take(t, &t->shared[0]);
		for (uint32_t row = 0; row < b->summing->rows.rows; row++)
			for (uint32_t k = 0; k < state_count(b); k++)
				protect_call(t, t->sane, state_first(b, k) + row * b->summing->rows.own, 0, 0);
	}
	t->guard->averages++;
	for (uint32_t proc = 0; proc < b->o.procs; proc++)
		t->guard->unreasonable += protect_count(t, proc);
}

/* ---- drift ---- */

Drift protect_drift(const Bp *b)
{
	Drift d = { 0, 0 };
	uint64_t count = 0;
	for (uint64_t i = 0; i < b->net->links; i++) {
		const Cell *word = (const Cell *)(b->p->dram + (size_t)(b->at.weights + b->place[i]) * b->p->lanes);
		for (uint32_t proc = 1; proc < b->o.procs; proc++, count++) {
			double away = word[proc].u == word[0].u ? 0 : fabs((double)word[proc].f - (double)word[0].f);
			d.largest = away > d.largest || away != away ? away : d.largest;
			d.mean += away;
		}
	}
	d.mean = count ? d.mean / (double)count : 0;
	return d;
}
