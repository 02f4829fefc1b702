/* SPDX-License-Identifier: MIT */
/* Is a code word nearer to the outputs than the target's own? In: the code table of the data, rows of outputs. Out:
 * as code_right of lib/score.c says, in a fraction of the time.
 *
 * Of squared distances what is the same for all words is left out: 2 o c - |c|^2 is the larger the nearer. It is a
 * sum over the elements of c that are not zero, which are few, for 16 rows of outputs at once, one in
 * each lane. Many tables are all pairs of some beginnings and some endings (a sound and its stress, say): then
 * beginning and ending are nearest each by itself, and there are much fewer of both than of words. Where a sum in
 * single precision does not tell, words are measured as lib/score.c does. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "pass.h"

/* Some columns of all words, and a hash table of their contents. */
typedef struct Set {
	uint32_t from, cols;
	uint32_t count;        /* of those that differ */
	uint32_t *word;        /* [count] the first word that has it */
	uint32_t *slot, slots; /* by hash: number + 1 */
} Set;

struct Codes {
	uint32_t count, width;
	uint64_t hash;                /* of the table it was made from */
	float *word;                  /* [count][width] as targets are */
	Set whole;                    /* words */
	uint32_t parts;               /* 1: words as they are; 2: beginnings and endings */
	uint32_t *number[CODE_PARTS]; /* [count] which beginning or ending each has */
	CodeWords words[CODE_PARTS];
	double largest; /* |c|^2 of the longest */
	/* [slots of whole] words of 0 and 1, by a hash of themselves; NULL: there are others, or too long ones */
	uint64_t *bits;
	uint32_t *of_bits; /* [slots] which word it is, + 1 */
};

/* ---- sets ---- */

static Set set_take(Arena *a, const Codes *c, uint32_t from, uint32_t cols)
{
	Set s = { .from = from, .cols = cols, .slots = 4 };

	while (s.slots < 2 * c->count)
		s.slots *= 2;
	s.slot = NEW(a, s.slots, uint32_t);
	s.word = NEW(a, c->count, uint32_t);
	return s;
}

/* Its place, or the empty one where it would be. */
static uint32_t set_slot(const Codes *c, const Set *s, const float *row)
{
	uint32_t at = (uint32_t)XXH3_64bits(row + s->from, s->cols * sizeof *row) & (s->slots - 1);

	while (s->slot[at] && memcmp(c->word + (size_t)s->word[s->slot[at] - 1] * c->width + s->from, row + s->from,
	                             s->cols * sizeof *row) != 0)
		at = (at + 1) & (s->slots - 1);
	return at;
}

static uint32_t set_add(const Codes *c, Set *s, uint32_t word)
{
	uint32_t at = set_slot(c, s, c->word + (size_t)word * c->width);

	if (!s->slot[at]) {
		s->word[s->count++] = word;
		s->slot[at] = s->count;
	}
	return s->slot[at] - 1;
}

/* ---- words as bits ---- */

static uint32_t bits_slot(const Codes *c, uint64_t bits)
{
	uint32_t at = (uint32_t)(bits * 0x9e3779b97f4a7c15u >> 40) & (c->whole.slots - 1);

	while (c->of_bits[at] && c->bits[at] != bits)
		at = (at + 1) & (c->whole.slots - 1);
	return at;
}

static bool all_bits(const Codes *c)
{
	for (size_t i = 0; i < (size_t)c->count * c->width; i++)
		if (c->word[i] != 0 && c->word[i] != 1)
			return false;
	return c->width <= MOST_ONES;
}

static void take_bits(Ctx *cx, Codes *c)
{
	c->bits = NEW(&cx->fixed, c->whole.slots, uint64_t);
	c->of_bits = NEW(&cx->fixed, c->whole.slots, uint32_t);
	for (uint32_t k = 0; k < c->count; k++) {
		uint64_t bits = 0;
		for (uint32_t i = 0; i < c->width; i++)
			bits |= (uint64_t)(c->word[(size_t)k * c->width + i] == 1) << i;
		uint32_t at = bits_slot(c, bits);
		if (!c->of_bits[at])
			c->of_bits[at] = k + 1;
		c->bits[at] = bits;
	}
}

/* ---- the table ---- */

static CodeWords words_of(Ctx *cx, const Codes *c, const Set *s)
{
	uint32_t *first = NEW(&cx->fixed, s->count + 1, uint32_t);
	uint32_t *column = NEW(&cx->fixed, (size_t)s->count * s->cols, uint32_t), n = 0;
	float *twice = NEW(&cx->fixed, (size_t)s->count * s->cols, float), *start = NEW(&cx->fixed, s->count, float);
	bool ones = true;

	for (uint32_t k = 0; k < s->count; k++) {
		double square = 0;
		for (uint32_t i = s->from; i < s->from + s->cols; i++) {
			float x = c->word[(size_t)s->word[k] * c->width + i];
			if (x == 0)
				continue;
			ones = ones && x == 1;
			column[n] = i;
			twice[n++] = 2 * x;
			square += (double)x * x;
		}
		first[k + 1] = n;
		start[k] = (float)-square;
	}
	return (
		CodeWords){ .count = s->count, .first = first, .column = column, .twice = ones ? NULL : twice, .start = start };
}

/* How many different ones the columns have. */
static uint32_t count_of(const Codes *c, Set *s, uint32_t from, uint32_t cols)
{
	memset(s->slot, 0, s->slots * sizeof *s->slot);
	s->count = 0;
	s->from = from;
	s->cols = cols;
	for (uint32_t k = 0; k < c->count; k++)
		set_add(c, s, k);
	return s->count;
}

/* Where words are best cut, if they are all pairs of their parts before and after; 0: nowhere.  Only words of bits
 * are cut: others are too long for it, or too rare. */
static uint32_t best_cut(Ctx *cx, const Codes *c)
{
	Set s = set_take(&cx->scratch, c, 0, 0);
	uint32_t best = 0, least = c->whole.count;

	for (uint32_t cut = 1; c->bits && cut < c->width; cut++) {
		uint32_t begins = count_of(c, &s, 0, cut);
		assert(begins > 0);
		if (begins >= least || c->whole.count % begins)
			continue;
		uint32_t ends = count_of(c, &s, cut, c->width - cut);
		if ((uint64_t)begins * ends == c->whole.count && begins + ends < least) {
			least = begins + ends;
			best = cut;
		}
	}
	return best;
}

static void take_parts(Ctx *cx, Codes *c)
{
	uint32_t cut = best_cut(cx, c), from = 0;

	c->parts = cut ? 2 : 1;
	for (uint32_t i = 0; i < c->parts; i++) {
		Set s = set_take(&cx->scratch, c, from, cut && !i ? cut : c->width - from);
		c->number[i] = NEW(&cx->fixed, c->count, uint32_t);
		for (uint32_t k = 0; k < c->count; k++)
			c->number[i][k] = set_add(c, &s, k);
		c->words[i] = words_of(cx, c, &s);
		from += s.cols;
	}
}

Codes *codes_make(Ctx *cx, Codes *known[KNOWN_CODES], const Data *d)
{
	if (!d->code_count || !d->targets)
		return NULL;
	uint64_t hash = XXH3_64bits(d->codes, (size_t)d->code_count * d->targets * sizeof *d->codes);
	for (int i = 0; i < KNOWN_CODES; i++)
		if (known[i] && known[i]->count == d->code_count && known[i]->width == d->targets && known[i]->hash == hash)
			return known[i];
	Codes *c = NEW(&cx->fixed, 1, Codes);
	c->count = d->code_count;
	c->width = d->targets;
	c->hash = hash;
	c->word = NEW(&cx->fixed, (size_t)c->count * c->width, float);
	c->whole = set_take(&cx->fixed, c, 0, c->width);
	for (uint32_t k = 0; k < c->count; k++) {
		double square = 0;
		for (size_t i = (size_t)k * c->width; i < (size_t)(k + 1) * c->width; i++) {
			c->word[i] = (float)d->codes[i];
			square += d->codes[i] * d->codes[i];
		}
		c->largest = fmax(c->largest, square);
		set_add(c, &c->whole, k);
	}
	if (all_bits(c))
		take_bits(cx, c);
	take_parts(cx, c);
	memmove(known + 1, known, (KNOWN_CODES - 1) * sizeof *known);
	known[0] = c;
	return c;
}

/* ---- measuring ---- */

/* Squared distance over the elements that have a target; it only grows, so past `enough` it need not be known. */
static double reach(const double *word, const float *out, const float *y, uint32_t n, double enough)
{
	double sum = 0;

	for (uint32_t i = 0; i < n && !(sum >= enough); i++)
		if (!isnan(y[i]))
			sum += (word[i] - out[i]) * (word[i] - out[i]);
	return sum;
}

/* The first word that is nearest to a target that is none itself. */
static uint32_t nearest_word(const Codes *c, const double *words, const float *y)
{
	double least = INFINITY;
	uint32_t best = 0;

	for (uint32_t k = 0; k < c->count; k++) {
		double d = reach(words + (size_t)k * c->width, y, y, c->width, least);
		if (d < least) {
			least = d;
			best = k;
		}
	}
	return best;
}

/* The word whose bits the target has, or `count`. */
static uint32_t own_word(const Codes *c, const float *y, uint64_t ones)
{
	if (c->bits && ones != NO_ONES) {
		uint32_t number = c->of_bits[bits_slot(c, ones)];
		return number ? number - 1 : c->count;
	}
	uint32_t number = c->whole.slot[set_slot(c, &c->whole, y)];
	return number ? c->whole.word[number - 1] : c->count;
}

/* Is no word nearer than number `own`? near: NULL, or only words that are no further than it, less the margin, may
 * be. */
static bool measured_right(const Codes *c, const CodesArgs *a, uint32_t own, const Near *near, uint32_t lane,
                           float margin, uint32_t m)
{
	const double *words = a->scorer->codes;
	const float *out = a->out + m * a->row, *y = a->y + (size_t)m * c->width;
	double enough = reach(words + (size_t)own * c->width, out, y, c->width, INFINITY);

	for (uint32_t k = 0; k < c->count; k++) {
		bool further = false;
		for (uint32_t i = 0; near && i < c->parts; i++)
			further |= near->of[i].near[c->number[i][k] * LANES + lane] < near->of[i].most[lane] - 2 * margin;
		if (!further && reach(words + (size_t)k * c->width, out, y, c->width, enough) < enough)
			return false;
	}
	return !isnan(enough);
}

/* Twice what a chain of width + 1 roundings can amount to, for outputs whose squares add up to so much; and those of
 * lib/score.c, which sums the squares themselves. */
static float rounding(const Codes *c, double square)
{
	double own = 0x1p-24 * (c->largest + 2 * sqrt(c->largest * square)), others = 0x1p-53 * (c->largest + square);

	return (float)(4 * (c->width + 2.0) * (own + others));
}

static double squares_of(const Codes *c, const float *out)
{
	double square = 0;

	for (uint32_t i = 0; i < c->width; i++)
		square += (double)out[i] * out[i];
	return square;
}

/* ---- rows ---- */

static size_t padded(uint32_t n) { return (n + LANES - 1) / LANES * LANES; }

size_t codes_scratch(const Codes *c)
{
	size_t rows = padded(c->width);

	for (uint32_t i = 0; i < c->parts; i++)
		rows += c->words[i].count;
	return rows * LANES;
}

/* Is row m, whose sums are in this lane, right?  Only finite numbers that are far enough apart decide. */
static bool lane_right(const Codes *c, const CodesArgs *a, const Near *near, uint32_t lane, uint32_t own, float margin,
                       uint32_t m)
{
	bool nearer = false, clear = true;

	if (own == c->count)
		return measured_right(c, a, nearest_word(c, a->scorer->codes, a->y + (size_t)m * c->width), NULL, 0, 0, m);
	for (uint32_t i = 0; i < c->parts; i++) {
		const NearPart *p = &near->of[i];
		float mine = p->near[c->number[i][own] * LANES + lane];
		nearer |= p->most[lane] - mine > margin;
		clear &= mine - p->second[lane] > margin;
	}
	return !nearer && (clear || measured_right(c, a, own, near, lane, margin, m));
}

/* The rows whose sums are in the lanes, from `first` on. */
static void lanes_right(const Codes *c, const CodesArgs *a, const Near *near, float margin, uint32_t first,
                        uint32_t rows)
{
	uint64_t ones[LANES];

	if (c->bits)
		a->kern->ones(rows, c->width, a->y + (size_t)first * c->width, c->width, ones);
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t m = first + i;
		if (!(a->verdict[m] & VERDICT_SCORED))
			continue;
		uint32_t own = own_word(c, a->y + (size_t)m * c->width, c->bits ? ones[i] : NO_ONES);
		if (lane_right(c, a, near, i, own, isinf(a->most) ? rounding(c, squares_of(c, near->out[i])) : margin, m))
			a->verdict[m] |= VERDICT_RIGHT;
	}
}

void codes_right(const Codes *c, const CodesArgs *a)
{
	Near near = { .cols = c->width, .parts = c->parts, .scratch = a->scratch };
	float *room = a->scratch + padded(c->width) * LANES, margin = rounding(c, a->most * a->most * c->width);

	for (uint32_t i = 0; i < c->parts; i++) {
		near.of[i].words = &c->words[i];
		near.of[i].near = room;
		room += c->words[i].count * LANES;
	}
	for (uint32_t first = 0; first < a->rows; first += LANES) {
		uint32_t rows = a->rows - first < LANES ? a->rows - first : LANES;
		for (uint32_t i = 0; i < LANES; i++)
			near.out[i] = a->out + (first + (i < rows ? i : 0)) * a->row;
		a->kern->near(&near);
		lanes_right(c, a, &near, margin, first, rows);
	}
}

uint32_t codes_parts(const Codes *c) { return c->parts; }
const CodeWords *codes_words(const Codes *c, uint32_t part) { return &c->words[part]; }
uint32_t codes_number(const Codes *c, uint32_t part, uint32_t word) { return c->number[part][word]; }
double codes_largest(const Codes *c) { return c->largest; }

uint32_t codes_own(const Codes *c, const double *words, const float *y, bool *near)
{
	uint32_t own = own_word(c, y, NO_ONES);

	*near = own == c->count;
	return *near ? nearest_word(c, words, y) : own;
}
