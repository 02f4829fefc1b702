/* SPDX-License-Identifier: MIT */
/* Past tenses of invented verbs (after Rumelhart and McClelland 1986).  In: a seed.  Out: a case for each verb; inputs
 * are the sounds of its stem, targets those of its past tense.
 *
 * A stem is a consonant, a vowel and a consonant, one of n in each place.  Regular verbs take a suffix that the last
 * consonant chooses: -t, -d or -id.  Irregular ones change their vowel instead.  Half of each kind are frequent, with
 * a case weight of FREQUENT.  Names tell what a verb is: regular.rare.bim. */
#include <string.h>

#include "make.h"

enum { VERBS = 160, IRREGULAR_ONE_IN = 5, FREQUENT = 8 };
enum { BEGINS = 8, VOWELS = 5, ENDS = 8, SUFFIXES = 4, STEM = BEGINS + VOWELS + ENDS, ALL = BEGINS * VOWELS * ENDS };
static const char begins[] = "bdfkmnps", vowels[] = "aeiou", ends[] = "ptkbdgmn";
enum { NO_SUFFIX, SUFFIX_T, SUFFIX_D, SUFFIX_ID };
static const uint8_t suffix_after[ENDS] = { SUFFIX_T,  SUFFIX_ID, SUFFIX_T, SUFFIX_D,
	                                        SUFFIX_ID, SUFFIX_D,  SUFFIX_D, SUFFIX_D };

Data *make_past_tense(Ctx *cx, Request *q)
{
	float *x, *y;
	Data *d = set_new(cx, VERBS, STEM, STEM + SUFFIXES, &x, &y);
	Text *names = NEW(&cx->keep, VERBS, Text);
	float *weight = NEW(&cx->keep, VERBS, float);
	uint32_t stem[ALL];
	for (uint32_t i = 0; i < ALL; i++)
		stem[i] = i;
	for (uint32_t i = 0; i < VERBS; i++, x += STEM, y += STEM + SUFFIXES) {
		uint32_t k = i + draw(q, ALL - i), chosen = stem[k];
		stem[k] = stem[i];
		uint32_t begin = chosen / (VOWELS * ENDS), vowel = chosen / ENDS % VOWELS, end = chosen % ENDS;
		bool irregular = i % IRREGULAR_ONE_IN == 0, frequent = i / IRREGULAR_ONE_IN % 2 == 0;
		uint32_t past = irregular ? (vowel + 1 + draw(q, VOWELS - 1)) % VOWELS : vowel;
		x[begin] = y[begin] = 1;
		x[BEGINS + vowel] = y[BEGINS + past] = 1;
		x[BEGINS + VOWELS + end] = y[BEGINS + VOWELS + end] = 1;
		y[STEM + (irregular ? NO_SUFFIX : suffix_after[end])] = 1;
		weight[i] = frequent ? FREQUENT : 1;
		Buf name = { .arena = &cx->keep };
		buf_printf(&name, "%s.%s.%c%c%c", irregular ? "irregular" : "regular", frequent ? "frequent" : "rare",
		           begins[begin], vowels[vowel], ends[end]);
		names[i] = (Text){ name.s, (uint32_t)name.len };
	}
	d->names = names;
	d->weight = weight;
	return d;
}
