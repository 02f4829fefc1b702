/* SPDX-License-Identifier: MIT */
/* A small language to read: invented words with their spelling, sound and meaning.  In: a seed.  Out: a case for each
 * word; inputs are its letters, targets its sounds and features of its meaning, the same on every machine.
 *
 * A word is a consonant, a vowel and a consonant, one of n in each place.  A letter always has the same sound, but the
 * vowels of some words are long.  Meanings are random: spelling says nothing about them. */
#include "make.h"

enum { PLACES = 3, WORDS = 80, CONSONANTS = 8, VOWELS = 5, ALL = CONSONANTS * VOWELS * CONSONANTS, LONG_ONE_IN = 8 };
enum {
	LETTERS = CONSONANTS + VOWELS + CONSONANTS,
	SOUNDS = LETTERS + VOWELS, /* short vowels, then long ones */
	FEATURES = 30,
	MEANING = 5 /* features of a word */
};
static const char consonants[] = "bdfkmnps", vowels[] = "aeiou", ends[] = "bdgklmnt";

/* Numbers of the letters in the three places. */
typedef struct Spelling {
	uint32_t begin, vowel, end;
} Spelling;

static Spelling spelling_of(uint32_t word)
{
	return (Spelling){ word / (VOWELS * CONSONANTS), word / CONSONANTS % VOWELS, word % CONSONANTS };
}

static Text name_of(Ctx *cx, Spelling s)
{
	char word[PLACES + 1] = { consonants[s.begin], vowels[s.vowel], ends[s.end] };
	return (Text){ arena_copy(&cx->keep, word, PLACES), PLACES };
}

Data *make_triangle(Ctx *cx, Request *q)
{
	float *x, *y;
	Data *d = set_new(cx, WORDS, LETTERS, SOUNDS + FEATURES, &x, &y);
	Text *names = NEW(&cx->keep, WORDS, Text);
	uint32_t word[ALL];
	d->names = names;
	for (uint32_t i = 0; i < ALL; i++)
		word[i] = i;
	for (uint32_t i = 0; i < WORDS; i++, x += LETTERS, y += SOUNDS + FEATURES) {
		uint32_t k = i + draw(q, ALL - i), chosen = word[k];
		word[k] = word[i];
		Spelling s = spelling_of(chosen);
		bool is_long = draw(q, LONG_ONE_IN) == 0;
		names[i] = name_of(cx, s);
		x[s.begin] = y[s.begin] = 1;
		x[CONSONANTS + s.vowel] = 1;
		y[CONSONANTS + s.vowel + (is_long ? VOWELS : 0)] = 1;
		x[CONSONANTS + VOWELS + s.end] = y[CONSONANTS + 2 * VOWELS + s.end] = 1;
		for (uint32_t on = 0; on < MEANING;) {
			float *feature = y + SOUNDS + draw(q, FEATURES);
			on += *feature == 0;
			*feature = 1;
		}
	}
	return d;
}
