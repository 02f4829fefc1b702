/* SPDX-License-Identifier: MIT */
/* The built-in stand-in for NETtalk: 12,022 letters of made-up words that look like English, and how they sound.
 *
 * In: a seed.  Out: Data of the corpus's shape (nettalk.c), 203 inputs and 26 targets.  Words are drawn from weighted
 * fragments, no word twice; sounds follow the rules of letters.def; stress and syllables follow from the neighbouring
 * sounds.  So the seven letters of a case determine nearly everything, but single letters do not. */
#include <stdio.h>
#include <string.h>

#include "make.h"

enum { CASES = 12022, MAX_LETTERS = 15, MIN_LETTERS = 3, MAX_WORDS = CASES / MIN_LETTERS + 1 };

typedef struct Fragment {
	const char *letters;
	uint32_t weight;
} Fragment;

static const Fragment onsets[] = {
#define ONSET(letters, weight) { letters, weight },
#include "letters.def"
};
static const Fragment nuclei[] = {
#define NUCLEUS(letters, weight) { letters, weight },
#include "letters.def"
};
static const Fragment codas[] = {
#define CODA(letters, weight) { letters, weight },
#include "letters.def"
};
static const Fragment endings[] = {
#define ENDING(letters, weight) { letters, weight },
#include "letters.def"
};

typedef struct SoundRule {
	const char *left, *letters, *right, *sounds;
} SoundRule;
static const SoundRule sound_rules[] = {
#define RULE(left, letters, right, sounds) { left, letters, right, sounds },
#include "letters.def"
};

/* ---- spelling ---- */

static const char *draw_fragment(Request *q, const Fragment *f, size_t count)
{
	uint32_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += f[i].weight;
	uint64_t at = draw(q, total);
	while (at >= f->weight)
		at -= (f++)->weight;
	return f->letters;
}

static bool in(const char *set, char c) { return c && strchr(set, c); }

/* Changes a coda that the ending cannot follow. */
static const char *fit_coda(const char *coda, const char *ending)
{
	if (!*ending)
		return coda;
	if (in("aeiouy", *ending) || strcmp(ending, "le") == 0)
		return *coda ? coda : "t";
	if (strcmp(ending, "dge") == 0 || strcmp(ending, "que") == 0)
		return "";
	return strlen(coda) > 2 ? "n" : coda;
}

/* A word of one to three syllables and an ending; 0 if it is too long.  Two nuclei never touch, and consonants never
 * pile up: no onset follows a coda of several letters. */
static uint32_t spell(Request *q, char *word, size_t size)
{
	static const uint8_t syllables[] = { 1, 1, 2, 2, 2, 3 };
	uint32_t n = syllables[draw(q, COUNT(syllables))];
	size_t len = 0;
	const char *ending = draw_fragment(q, endings, COUNT(endings)), *coda = NULL;
	for (uint32_t i = 0; i < n; i++) {
		const char *onset = draw_fragment(q, onsets, COUNT(onsets));
		const char *nucleus = draw_fragment(q, nuclei, COUNT(nuclei));
		if (coda && strlen(coda) > 1)
			onset = "";
		else if (coda && !*coda && !*onset)
			onset = "n";
		bool last = i + 1 == n;
		coda = draw_fragment(q, codas, COUNT(codas));
		if (last)
			coda = fit_coda(coda, ending);
		len += (size_t)snprintf(word + len, size - len, "%s%s%s%s", onset, nucleus, coda, last ? ending : "");
		if (len >= size)
			return 0;
	}
	return (uint32_t)len;
}

/* ---- sounds ---- */

/* Letter at a place, '$' outside the word. */
static char letter(const char *word, int len, int at) { return at < 0 || at >= len ? '$' : word[at]; }

static bool fits(char pattern, char c)
{
	static const struct {
		char pattern;
		const char *letters;
	} kinds[] = {
		{ '#', "aeiouy" },    { '^', "bcdfghjklmnpqrstvwxz" }, { '+', "eiy" }, { '&', "bdgjlmnrvwz" },
		{ '%', "cfhkpqstx" },
	};
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (kinds[i].pattern == pattern)
			return in(kinds[i].letters, c);
	return pattern == c;
}

static bool rule_fits(const SoundRule *r, const char *word, int len, int at)
{
	int n = 0;
	for (; r->letters[n]; n++)
		if (letter(word, len, at + n) != r->letters[n])
			return false;
	int left = (int)strlen(r->left);
	for (int i = 0; i < left; i++)
		if (!fits(r->left[i], letter(word, len, at - left + i)))
			return false;
	for (int i = 0; r->right[i]; i++)
		if (!fits(r->right[i], letter(word, len, at + n + i)))
			return false;
	return true;
}

/* Some rule always fits: every letter has one without a context. */
static void pronounce(const char *word, int len, char *sounds)
{
	for (int at = 0; at < len;) {
		const SoundRule *r = sound_rules;
		while (!rule_fits(r, word, len, at))
			r++;
		int n = (int)strlen(r->letters);
		memcpy(sounds + at, r->sounds, (size_t)n);
		at += n;
	}
}

/* ---- stress ---- */

static bool is_nucleus(const char *sounds, int len, int at)
{
	return at >= 0 && at < len && in("aceiouxAEIOUWY@^LNR", sounds[at]);
}

/* Does a nucleus stand in [from, to)? */
static bool any_nucleus(const char *sounds, int len, int from, int to)
{
	for (int i = from; i < to; i++)
		if (is_nucleus(sounds, len, i))
			return true;
	return false;
}

/* '>' before a nucleus, '<' behind it; between two, the last consonant belongs to the right one, and with it a stop or
 * f before l or r. */
static char side(const char *word, const char *sounds, int len, int at)
{
	if (is_nucleus(sounds, len, at + 1) || !any_nucleus(sounds, len, 0, at))
		return '>';
	bool cluster = in("bcdfgkpt", word[at]) && in("lr", letter(word, len, at + 1));
	return cluster && is_nucleus(sounds, len, at + 2) ? '>' : '<';
}

/* The first nucleus carries the stress, unless it is a weak a-: then the next one does.  Of the others, long vowels and
 * those before two consonants have the second stress. */
static char strength(const char *word, const char *sounds, int len, int at)
{
	bool first = !any_nucleus(sounds, len, 0, at), weak_start = sounds[0] == 'x';
	if (first)
		return at == 0 && weak_start ? '0' : '1';
	if (weak_start && at <= 3 && !any_nucleus(sounds, len, 1, at))
		return '1';
	if (in("xLNR", sounds[at]) || at + 1 == len)
		return '0';
	if (in("eAOWYou", sounds[at]))
		return '2';
	return fits('^', letter(word, len, at + 1)) && fits('^', letter(word, len, at + 2)) ? '2' : '0';
}

static void stress(const char *word, const char *sounds, int len, char *stresses)
{
	for (int i = 0; i < len; i++)
		stresses[i] = is_nucleus(sounds, len, i) ? strength(word, sounds, len, i) : side(word, sounds, len, i);
}

/* ---- the data set ---- */

Data *make_letters(Ctx *cx, Request *q)
{
	Arena *a = &cx->scratch;
	Dict dict = { .arena = a };
	Word *words = NEW(a, MAX_WORDS, Word);
	uint64_t count = 0;
	/* All texts in one block: letters, sounds and stresses of a word side by side. */
	char *text = NEW(a, 3 * CASES, char);
	for (uint32_t left = CASES; left;) {
		char word[MAX_LETTERS + 1];
		uint32_t len = spell(q, word, sizeof word), known = dict.count;
		/* The last words must fill what is left exactly. */
		if (len < MIN_LETTERS || len > left || (left - len > 0 && left - len < MIN_LETTERS))
			continue;
		memcpy(text, word, len);
		if (dict_add(&dict, (Text){ text, len }) != known)
			continue;
		pronounce(text, (int)len, text + len);
		stress(text, text + len, (int)len, text + 2 * len);
		words[count++] = (Word){ text, text + len, text + 2 * len, len };
		text += 3 * len;
		left -= len;
	}
	return nettalk_data(cx, "make:letters", words, count);
}
