/* SPDX-License-Identifier: MIT */
/* Is a code word nearer to the outputs than the target's own?  In: the code table of the data, rows of outputs.  Out: as
 * code_right of lib/score.c says, in a fraction of the time.
 *
 * Three ways, each for what the one before leaves.  Words are most often made of 0 and 1: of all such vectors the one nearest
 * to the outputs is the outputs rounded, so if that is a word, it is the nearest.  Else squared distances to all words,
 * less what is the same for all, are one product in single precision: |c|^2 - 2 o c.  Words whose distances differ by less
 * than its rounding may be are measured as lib/score.c does. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "cpu.h"

struct Codes {
	uint32_t count, width;
	uint64_t hash;            /* of the table it was made from */
	float *word;              /* [count][width] as targets are */
	float *product;           /* [width][padded] -2 c, by element */
	float *squares;           /* [padded] |c|^2, infinite past the last */
	uint32_t padded;          /* words in full sixteens */
	double largest;           /* |c|^2 of the longest */
	uint32_t *slot, slots;    /* words by the hash of their bits, number + 1 */
	uint64_t *bits;           /* [slots] words of 0 and 1, by a hash of themselves; NULL: there are others, or too long ones */
	bool zero;                /* the word without any 1 is one, whose bits look like an empty place */
};

static uint32_t slot_of(const Codes *c, const float *y)
{
	return (uint32_t)XXH3_64bits(y, c->width * sizeof *y) & (c->slots - 1);
}

/* A word that is there already is as near as the first of them: it is never asked. */
static bool is_twin(const Codes *c, const float *word)
{
	for (uint32_t s = slot_of(c, word); c->slot[s]; s = (s + 1) & (c->slots - 1))
		if (memcmp(c->word + (size_t)(c->slot[s] - 1) * c->width, word, c->width * sizeof *word) == 0)
			return true;
	return false;
}

/* ---- words as bits ---- */

static uint32_t bits_slot(const Codes *c, uint64_t bits)
{
	return (uint32_t)(bits * 0x9e3779b97f4a7c15u >> 40) & (c->slots - 1);
}

static bool is_word(const Codes *c, uint64_t bits)
{
	if (!bits)
		return c->zero;
	for (uint32_t s = bits_slot(c, bits); c->bits[s]; s = (s + 1) & (c->slots - 1))
		if (c->bits[s] == bits)
			return true;
	return false;
}

static void add_bits(Codes *c, const float *word)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < c->width; i++)
		bits |= (uint64_t)(word[i] == 1) << i;
	if (is_word(c, bits))
		return;
	c->zero |= !bits;
	uint32_t s = bits_slot(c, bits);
	while (bits && c->bits[s])
		s = (s + 1) & (c->slots - 1);
	if (bits)
		c->bits[s] = bits;
}

static bool all_bits(const Data *d)
{
	for (size_t i = 0; i < (size_t)d->code_count * d->targets; i++)
		if (d->codes[i] != 0 && d->codes[i] != 1)
			return false;
	return d->targets <= 64;
}

/* ---- the table ---- */

static void add_word(Codes *c, const Data *d, uint32_t k)
{
	const double *word = d->codes + (size_t)k * c->width;
	double square = 0;

	for (uint32_t i = 0; i < c->width; i++) {
		c->word[(size_t)k * c->width + i] = (float)word[i];
		c->product[(size_t)i * c->padded + k] = (float)(-2 * word[i]);
		square += word[i] * word[i];
	}
	c->squares[k] = INFINITY;
	if (is_twin(c, c->word + (size_t)k * c->width))
		return;
	c->squares[k] = (float)square;
	c->largest = fmax(c->largest, square);
	uint32_t s = slot_of(c, c->word + (size_t)k * c->width);
	while (c->slot[s])
		s = (s + 1) & (c->slots - 1);
	c->slot[s] = k + 1;
}

Codes *codes_make(Ctx *cx, Codes *old, const Data *d)
{
	if (!d->code_count || !d->targets)
		return NULL;
	uint64_t hash = XXH3_64bits(d->codes, (size_t)d->code_count * d->targets * sizeof *d->codes);
	if (old && old->count == d->code_count && old->width == d->targets && old->hash == hash)
		return old;
	Codes *c = NEW(&cx->keep, 1, Codes);
	c->count = d->code_count;
	c->width = d->targets;
	c->hash = hash;
	c->word = NEW(&cx->keep, (size_t)c->count * c->width, float);
	c->padded = (c->count + LANES - 1) / LANES * LANES;
	c->product = floats_take(&cx->keep, (size_t)c->width * c->padded);
	c->squares = floats_take(&cx->keep, c->padded);
	for (uint32_t k = c->count; k < c->padded; k++)
		c->squares[k] = INFINITY;
	for (c->slots = 4; c->slots < 2 * c->count; c->slots *= 2)
		;
	c->slot = NEW(&cx->keep, c->slots, uint32_t);
	if (all_bits(d))
		c->bits = NEW(&cx->keep, c->slots, uint64_t);
	for (uint32_t k = 0; k < c->count; k++) {
		add_word(c, d, k);
		if (c->bits)
			add_bits(c, c->word + (size_t)k * c->width);
	}
	return c;
}

/* Squared distance over the elements that have a target; it only grows, so past `enough` it need not be known. */
static double reach(const double *word, const float *out, const float *y, uint32_t n, double enough)
{
	double sum = 0;

	for (uint32_t i = 0; i < n && !(sum >= enough); i++)
		if (!isnan(y[i]))
			sum += (word[i] - out[i]) * (word[i] - out[i]);
	return sum;
}

/* The first word that is nearest to the target: the one whose bits it has, or else whichever it is. */
static uint32_t own_word(const Codes *c, const double *words, const float *y, bool *exact)
{
	double least = INFINITY;
	uint32_t best = 0;

	for (uint32_t s = slot_of(c, y); c->slot[s]; s = (s + 1) & (c->slots - 1)) {
		uint32_t k = c->slot[s] - 1;
		*exact = memcmp(c->word + (size_t)k * c->width, y, c->width * sizeof *y) == 0;
		if (*exact)
			return k;
	}
	for (uint32_t k = 0; k < c->count; k++) {
		double d = reach(words + (size_t)k * c->width, y, y, c->width, least);
		if (d < least) {
			least = d;
			best = k;
		}
	}
	return best;
}

/* Of the words whose distance, as rounded, is below `most`. */
static bool measured_right(const Codes *c, const double *words, const float *rounded, float most, const float *out, const float *y)
{
	bool exact;
	uint32_t k = own_word(c, words, y, &exact);
	double own = reach(words + (size_t)k * c->width, out, y, c->width, INFINITY);

	for (uint32_t i = 0; i < c->count; i++)
		if (!(rounded[i] >= most) && reach(words + (size_t)i * c->width, out, y, c->width, own) < own)
			return false;
	return !isnan(own);
}

/* Twice what the chain of width + 1 roundings can amount to, for outputs whose squares add up to so much. */
static float rounding(const Codes *c, double square)
{
	return (float)(4 * (c->width + 2.0) * 0x1p-24 * (c->largest + 2 * sqrt(c->largest * square)));
}

static double squares_of(const Codes *c, const float *out)
{
	double square = 0;

	for (uint32_t i = 0; i < c->width; i++)
		square += (double)out[i] * out[i];
	return square;
}

size_t codes_room(const Codes *c)
{
	return (size_t)CODES_ROWS * (c->padded + c->width);
}

/* Rows `which` of out, n of them, by distances. */
static void by_distance(const Codes *c, const CodesArgs *a, const uint32_t *which, uint32_t n)
{
	uint32_t own[CODES_ROWS];
	float margin[CODES_ROWS], *distance = a->room, *out = a->room + (size_t)CODES_ROWS * c->padded;
	uint8_t nearer[CODES_ROWS];

	for (uint32_t m = 0; m < n; m++)
		memcpy(out + m * c->width, a->out + which[m] * a->row, c->width * sizeof *out);
	a->kern->product(&(Product){ .rows = n, .cols = c->padded, .depth = c->width, .a = out, .a_row = c->width, .a_step = 1, .b = c->product,
	                             .b_row = c->padded, .start = c->squares, .c = distance, .c_row = c->padded });
	for (uint32_t m = 0; m < n; m++) {
		const float *o = a->out + which[m] * a->row, *t = a->y + (size_t)which[m] * c->width;
		bool exact = false;
		own[m] = own_word(c, a->scorer->codes, t, &exact);
		margin[m] = !exact ? INFINITY : rounding(c, isinf(a->most) ? squares_of(c, o) : a->most * a->most * c->width);
	}
	a->kern->nearer(&(Nearer){ .rows = n, .cols = c->padded, .distance = distance, .row = c->padded, .own = own, .margin = margin,
	                           .verdict = nearer });
	for (uint32_t m = 0; m < n; m++) {
		const float *d = distance + (size_t)m * c->padded, *o = a->out + which[m] * a->row, *t = a->y + (size_t)which[m] * c->width;
		if (nearer[m] == NEARER_NO || (nearer[m] == NEARER_DOUBT && measured_right(c, a->scorer->codes, d, d[own[m]] + margin[m], o, t)))
			a->verdict[which[m]] |= VERDICT_RIGHT;
	}
}

void codes_right(const Codes *c, const CodesArgs *a)
{
	uint32_t which[CODES_ROWS], n = 0;
	uint64_t of_out[CODES_ROWS], of_y[CODES_ROWS];
	bool plain[CODES_ROWS];

	for (uint32_t first = 0; first < a->rows; first += CODES_ROWS) {
		uint32_t rows = a->rows - first < CODES_ROWS ? a->rows - first : CODES_ROWS;
		if (c->bits)
			a->kern->halves(&(HalfRows){ .rows = rows, .cols = c->width, .out = a->out + first * a->row, .row = a->row,
			                             .y = a->y + (size_t)first * c->width, .y_row = c->width, .of_out = of_out, .of_y = of_y, .plain = plain });
		for (uint32_t m = 0; m < rows; m++) {
			bool rounds = c->bits && plain[m] && is_word(c, of_y[m]) && (of_out[m] == of_y[m] || is_word(c, of_out[m]));
			if (!(a->verdict[first + m] & VERDICT_SCORED))
				continue;
			if (rounds && of_out[m] == of_y[m])
				a->verdict[first + m] |= VERDICT_RIGHT;
			if (!rounds)
				which[n++] = first + m;
			if (n == CODES_ROWS) {
				by_distance(c, a, which, n);
				n = 0;
			}
		}
	}
	if (n)
		by_distance(c, a, which, n);
}
