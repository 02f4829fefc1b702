/* SPDX-License-Identifier: MIT */
/* Built-in data sets.  In: a name such as "parity:4".  Out: Data, the same on every machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "make.h"

enum { NO_NUMBER, ONE_NUMBER, TWO_NUMBERS };
typedef struct Generator {
	const char *name, *usage;
	int numbers;
	uint64_t low, high;
	Make *make;
} Generator;

uint32_t draw(Request *q, uint32_t n) { return (uint32_t)random_below(q->seed, STREAM_DATA, q->draws++, n); }

Data *set_new(Ctx *cx, uint64_t cases, uint32_t inputs, uint32_t targets, float **x, float **y)
{
	Data *d = NEW(&cx->keep, 1, Data);
	*x = arena_alloc(&cx->keep, cases, inputs * sizeof(float));
	*y = arena_alloc(&cx->keep, cases, targets * sizeof(float));
	d->cases = cases;
	d->inputs = inputs;
	d->targets = targets;
	d->x = *x;
	d->y = *y;
	d->x_type = d->y_type = T_F32;
	return d;
}

/* ---- deterministic ---- */

/* All patterns of n bits, counted upwards, the first input the highest bit. */
static Data *make_parity(Ctx *cx, Request *q)
{
	float *x, *y;
	uint32_t n = (uint32_t)q->a;
	Data *d = set_new(cx, (uint64_t)1 << n, n, 1, &x, &y);
	for (uint64_t i = 0; i < d->cases; i++) {
		uint32_t odd = 0;
		for (uint32_t k = n; k-- > 0;) {
			uint32_t bit = (uint32_t)(i >> k) & 1;
			*x++ = (float)bit;
			odd ^= bit;
		}
		*y++ = (float)odd;
	}
	return d;
}

static Data *make_xor(Ctx *cx, Request *q)
{
	Request two = *q;
	two.a = 2;
	return make_parity(cx, &two);
}

/* Auto-association: one of n in, the same out. */
static Data *make_encoder(Ctx *cx, Request *q)
{
	float *x, *y;
	uint32_t n = (uint32_t)q->a;
	Data *d = set_new(cx, n, n, n, &x, &y);
	for (size_t i = 0; i < n; i++)
		x[i * n + i] = y[i * n + i] = 1;
	return d;
}

/* cos(k pi / 16). */
static double cos_16th(uint32_t k)
{
	static const double quarter[9] = {
		1,
		0.98078528040323044913,
		0.92387953251128675613,
		0.83146961230254523708,
		0.70710678118654752440,
		0.55557023301960222474,
		0.38268343236508977173,
		0.19509032201612826785,
		0,
	};
	k %= 32;
	if (k > 16)
		k = 32 - k;
	return k > 8 ? -quarter[16 - k] : quarter[k];
}

/* Lang and Witbrock (1988): two spirals of three turns, 97 points each, here scaled from a radius of 6.5 to 1. */
static Data *make_spirals(Ctx *cx, Request *q)
{
	enum { POINTS = 97, TURN = 32, END = 104 };
	float *x, *y;
	(void)q;
	Data *d = set_new(cx, 2 * POINTS, 2, 1, &x, &y);
	for (uint32_t i = 0; i < POINTS; i++, x += 4, y += 2) {
		double radius = (double)(END - i) / END;
		x[0] = (float)(radius * cos_16th(i + 3 * TURN / 4)); /* sin(a) = cos(a - 90 degrees) */
		x[1] = (float)(radius * cos_16th(i));
		x[2] = 0 - x[0]; /* no negative zero */
		x[3] = 0 - x[1];
		y[0] = 1;
		y[1] = 0;
	}
	return d;
}

/* ---- random sequences ---- */

/* The finite grammar of Reber (1967): from each state, two symbols at most and the states they lead to. */
enum { REBER_STRINGS = 256, REBER_LONGEST = 30, REBER_END = 7 };
static const char reber_symbols[] = "BTSXPVE";
static const struct {
	char symbol[3];
	uint8_t next[2];
} reber[REBER_END] = {
	{ "B", { 1 } },     { "TP", { 2, 3 } }, { "SX", { 2, 4 } },     { "TV", { 3, 5 } },
	{ "XS", { 3, 6 } }, { "PV", { 4, 6 } }, { "E", { REBER_END } },
};

static uint32_t reber_number(char symbol) { return (uint32_t)(strchr(reber_symbols, symbol) - reber_symbols); }

/* States a string passes through after each symbol but the last; too long a string is 0. */
static uint32_t reber_string(Request *q, uint64_t *draws, char *symbols, uint8_t *states)
{
	uint32_t len = 0;
	for (uint8_t state = 0; state != REBER_END - 1;) {
		if (len == REBER_LONGEST)
			return 0;
		uint64_t which = reber[state].symbol[1] ? random_u64(q->seed, STREAM_DATA, (*draws)++) & 1 : 0;
		symbols[len] = reber[state].symbol[which];
		state = reber[state].next[which];
		states[len++] = state;
	}
	return len;
}

/* Input: a symbol.  Target: every symbol that may come next.  Nothing comes after the E that ends a string: no case. */
static Data *make_reber(Ctx *cx, Request *q)
{
	enum { SYMBOLS = sizeof reber_symbols - 1 };
	char symbols[REBER_LONGEST];
	uint8_t states[REBER_LONGEST];
	float *x, *y;
	uint64_t draws = 0, cases = 0;
	Data *d = set_new(cx, REBER_STRINGS * REBER_LONGEST, SYMBOLS, SYMBOLS, &x, &y);
	uint64_t *seq = NEW(&cx->keep, REBER_STRINGS + 1, uint64_t);
	Text *names = NEW(&cx->keep, d->cases, Text);
	for (uint32_t i = 0; i < REBER_STRINGS;) {
		uint32_t len = reber_string(q, &draws, symbols, states);
		for (uint32_t k = 0; k < len; k++, cases++) {
			uint32_t in = reber_number(symbols[k]);
			x[cases * SYMBOLS + in] = 1;
			names[cases] = (Text){ reber_symbols + in, 1 };
			for (const char *next = reber[states[k]].symbol; *next; next++)
				y[cases * SYMBOLS + reber_number(*next)] = 1;
		}
		if (len)
			seq[++i] = cases;
	}
	d->cases = cases;
	d->seq = seq;
	d->sequences = REBER_STRINGS;
	d->names = names;
	return d;
}

/* Elman (1990), made exact: triples of bits a, b, a xor b, one bit at a time; the next bit is a target only where it
 * is determined, at the second of three. */
static Data *make_temporal_xor(Ctx *cx, Request *q)
{
	enum { SEQUENCES = 64, FEWEST = 2, MOST = 8 };
	float *x, *y;
	uint64_t draws = 0, cases = 0;
	Data *d = set_new(cx, SEQUENCES * MOST * 3, 1, 1, &x, &y);
	uint64_t *seq = NEW(&cx->keep, SEQUENCES + 1, uint64_t);
	for (uint32_t i = 0; i < SEQUENCES; i++) {
		uint64_t triples = FEWEST + random_below(q->seed, STREAM_DATA, draws++, MOST - FEWEST + 1);
		for (uint64_t k = 0; k < triples; k++, cases += 3) {
			uint64_t bits = random_u64(q->seed, STREAM_DATA, draws++);
			uint32_t a = bits & 1, b = bits >> 1 & 1;
			x[cases] = (float)a;
			x[cases + 1] = (float)b;
			x[cases + 2] = y[cases + 1] = (float)(a ^ b);
			y[cases] = y[cases + 2] = NAN;
		}
		seq[i + 1] = cases;
	}
	d->cases = cases;
	d->seq = seq;
	d->sequences = SEQUENCES;
	return d;
}

/* Elman (1990): consonants by chance, each with its vowel as often as it takes, "diibaguuubadii"; a letter is six
 * features, and the next letter's are the target. After a vowel that ends its syllable a consonant comes, which one
 * is random, so the two features by which they differ have no target. */
enum { FEATURES = 6, SYLLABLES = 3, VOWELS_MOST = 3 };
static const float letter_features[][FEATURES] = {
	/* consonant, vowel, interrupted, high, back, voiced */
	{ 1, 0, 1, 0, 0, 1 },     { 1, 0, 1, 1, 0, 1 }, { 1, 0, 1, 0, 1, 1 }, /* b, d, g */
	{ 0, 1, 0, 0, 1, 1 },     { 0, 1, 0, 1, 0, 1 }, { 0, 1, 0, 1, 1, 1 }, /* a, i, u */
	{ 1, 0, 1, NAN, NAN, 1 },                                             /* some consonant */
};
static const char letter_names[] = "bdgaiu";

static Data *make_letter_sequences(Ctx *cx, Request *q)
{
	enum { SEQUENCES = 64, FEWEST = 4, MOST = 16, ANY = 2 * SYLLABLES };
	float *x, *y;
	uint64_t draws = 0, cases = 0;
	Data *d = set_new(cx, SEQUENCES * MOST * (1 + VOWELS_MOST), FEATURES, FEATURES, &x, &y);
	uint64_t *seq = NEW(&cx->keep, SEQUENCES + 1, uint64_t);
	Text *names = NEW(&cx->keep, d->cases, Text);
	for (uint32_t i = 0; i < SEQUENCES; i++) {
		uint64_t syllables = FEWEST + random_below(q->seed, STREAM_DATA, draws++, MOST - FEWEST + 1);
		for (uint64_t k = 0; k < syllables; k++) {
			uint32_t which = (uint32_t)random_below(q->seed, STREAM_DATA, draws++, SYLLABLES), vowels = which + 1;
			for (uint32_t j = 0; j <= vowels; j++, cases++) {
				uint32_t letter = j ? SYLLABLES + which : which, next = j < vowels ? SYLLABLES + which : ANY;
				memcpy(x + cases * FEATURES, letter_features[letter], sizeof letter_features[letter]);
				memcpy(y + cases * FEATURES, letter_features[next], sizeof letter_features[next]);
				names[cases] = (Text){ letter_names + letter, 1 };
			}
		}
		seq[i + 1] = cases;
	}
	d->cases = cases;
	d->seq = seq;
	d->sequences = SEQUENCES;
	d->names = names;
	return d;
}

/* ---- names ---- */

static const Generator generators[] = {
	{ "xor", "xor", NO_NUMBER, 0, 0, make_xor },
	{ "parity", "parity:N", ONE_NUMBER, 1, 20, make_parity },
	{ "encoder", "encoder:N-M", TWO_NUMBERS, 2, 4096, make_encoder },
	{ "spirals", "spirals", NO_NUMBER, 0, 0, make_spirals },
	{ "letters", "letters", NO_NUMBER, 0, 0, make_letters },
	{ "reber", "reber", NO_NUMBER, 0, 0, make_reber },
	{ "temporal-xor", "temporal-xor", NO_NUMBER, 0, 0, make_temporal_xor },
	{ "letter-sequences", "letter-sequences", NO_NUMBER, 0, 0, make_letter_sequences },
	{ "triangle", "triangle", NO_NUMBER, 0, 0, make_triangle },
	{ "past-tense", "past-tense", NO_NUMBER, 0, 0, make_past_tense },
	{ "family-tree", "family-tree", NO_NUMBER, 0, 0, make_family_tree },
	{ "clubs", "clubs", NO_NUMBER, 0, 0, make_clubs },
	{ "club-probes", "club-probes", NO_NUMBER, 0, 0, make_club_probes },
	{ "semantics", "semantics", NO_NUMBER, 0, 0, make_semantics },
	{ "sentences", "sentences", NO_NUMBER, 0, 0, make_sentences },
};

/* The integer at *p, which is advanced; 0 if there is none or it is far too large. */
static uint64_t take_number(const char **p)
{
	uint64_t n = 0;
	for (; **p >= '0' && **p <= '9' && n < 1000000000; ++*p)
		n = n * 10 + (uint64_t)(**p - '0');
	return n;
}

/* Reads ":8-3" with as many numbers as the generator takes; false if the text differs. */
static bool read_numbers(const Generator *g, const char *p, Request *q)
{
	if (g->numbers == NO_NUMBER)
		return *p == '\0';
	if (*p++ != ':')
		return false;
	q->a = take_number(&p);
	if (g->numbers == TWO_NUMBERS) {
		if (*p++ != '-')
			return false;
		q->b = take_number(&p);
		if (q->b < 1 || q->b > q->a)
			return false;
	}
	return *p == '\0' && q->a >= g->low && q->a <= g->high;
}

static _Noreturn void no_generator(Ctx *cx, const char *spec)
{
	Buf b = { .arena = &cx->scratch };
	buf_puts(&b, "name one of");
	for (size_t i = 0; i < COUNT(generators); i++)
		buf_printf(&b, "%s %s", i ? "," : "", generators[i].usage);
	fail(cx, MP_BAD_INPUT, b.s, "there is no built-in data set '%.60s'", spec);
}

static _Noreturn void wrong_numbers(Ctx *cx, const Generator *g, const char *spec)
{
	Buf b = { .arena = &cx->scratch };
	buf_printf(&b, "write %s", g->usage);
	if (g->numbers != NO_NUMBER)
		buf_printf(&b, " with N from %u to %u", (unsigned)g->low, (unsigned)g->high);
	buf_puts(&b, g->numbers == TWO_NUMBERS ? " and M, the hidden units, from 1 to N" : "");
	fail(cx, MP_BAD_INPUT, b.s, "the built-in data set '%.60s' is not written so", spec);
}

Data *make_data(Ctx *cx, const char *spec, const DataOptions *opt)
{
	Request q = { .seed = opt ? opt->seed : 0 };
	size_t len = strcspn(spec, ":");
	for (size_t i = 0; i < COUNT(generators); i++) {
		const Generator *g = &generators[i];
		if (strlen(g->name) != len || memcmp(g->name, spec, len) != 0)
			continue;
		if (!read_numbers(g, spec + len, &q))
			wrong_numbers(cx, g, spec);
		Data *d = g->make(cx, &q);
		Buf name = { .arena = &cx->keep };
		buf_printf(&name, "make:%s", spec);
		d->name = name.s;
		data_check(cx, d, (Loc){ 0 });
		data_pack(cx, d);
		return d;
	}
	no_generator(cx, spec);
}
