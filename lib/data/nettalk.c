/* SPDX-License-Identifier: MIT */
/* The NETtalk corpus to Data.  In: words with a sound and a stress symbol per letter.  Out: one case per letter.
 *
 * The corpus: free text, a line of dashes, then rows of word, sounds, stresses and a flag with tabs between.  Without
 * a line of dashes the rows start at the first line that has three tabs.  A row whose stresses are left out (the
 * corpus has one) is skipped with a note; any other fault is an error.
 *
 * A case shows a window of seven letters, its own in the middle, blanks outside the word: input 29 * place + symbol is
 * one, where symbols are a-z, blank, '.', ','.  Targets are the code of the sound and of the stress (nettalk.def).
 * `codes` holds every sound with every stress, named by the two symbols.  A case is named by its word and the place of
 * its letter, counted from 0: "aback/2". */
#include <stdio.h>
#include <string.h>

#include "data.h"

enum {
	SOUND_UNITS = 21,
	STRESS_UNITS = NETTALK_TARGETS - SOUND_UNITS,
	BLANK = 26,
	HALF = NETTALK_WINDOW / 2,
	FIELDS = 4,
	MAX_NOTES = 5,
	MAX_LETTERS = 64
};

typedef struct Code {
	char symbol;
	const char *bits;
} Code;

static const Code sounds[] = {
#define SOUND(symbol, bits) { symbol, bits },
#include "nettalk.def"
};
static const Code stresses[] = {
#define STRESS(symbol, bits) { symbol, bits },
#include "nettalk.def"
};

static const Code *find_code(const Code *code, size_t count, char symbol)
{
	for (size_t i = 0; i < count; i++)
		if (code[i].symbol == symbol)
			return &code[i];
	return NULL;
}

static bool nettalk_sound(char symbol) { return find_code(sounds, COUNT(sounds), symbol) != NULL; }

static bool nettalk_stress(char symbol) { return find_code(stresses, COUNT(stresses), symbol) != NULL; }

/* ---- words to cases ---- */

static void add_codes(Ctx *cx, Data *d)
{
	d->code_count = COUNT(sounds) * COUNT(stresses);
	double *codes = NEW(&cx->keep, (size_t)d->code_count * NETTALK_TARGETS, double);
	Text *names = NEW(&cx->keep, d->code_count, Text);
	char *text = NEW(&cx->keep, d->code_count * 2, char);
	d->codes = codes;
	d->code_names = names;
	for (size_t i = 0; i < COUNT(sounds); i++) {
		for (size_t j = 0; j < COUNT(stresses); j++) {
			for (size_t k = 0; k < SOUND_UNITS; k++)
				*codes++ = sounds[i].bits[k] - '0';
			for (size_t k = 0; k < STRESS_UNITS; k++)
				*codes++ = stresses[j].bits[k] - '0';
			text[0] = sounds[i].symbol;
			text[1] = stresses[j].symbol;
			*names++ = (Text){ text, 2 };
			text += 2;
		}
	}
}

static void put_bits(const Code *code, size_t units, uint8_t *y)
{
	for (size_t k = 0; k < units; k++)
		y[k] = (uint8_t)(code->bits[k] - '0');
}

static uint32_t symbol_at(const Word *w, uint32_t place, int offset)
{
	int64_t at = (int64_t)place + offset;
	return at < 0 || at >= w->len ? BLANK : (uint32_t)(w->letters[at] - 'a');
}

/* Letters must be a-z, sounds and stresses in the table. */
Data *nettalk_data(Ctx *cx, const char *name, const Word *word, uint64_t words)
{
	enum { PLACE_DIGITS = 11 };
	uint64_t cases = 0, text_len = 0;
	for (uint64_t i = 0; i < words; i++) {
		cases += word[i].len;
		text_len += (uint64_t)word[i].len * (word[i].len + PLACE_DIGITS);
	}
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, name, strlen(name));
	d->cases = cases;
	d->inputs = NETTALK_INPUTS;
	d->targets = NETTALK_TARGETS;
	uint64_t *indptr = NEW(&cx->keep, cases + 1, uint64_t);
	uint32_t *indices = NEW(&cx->keep, cases * NETTALK_WINDOW, uint32_t);
	uint8_t *y = NEW(&cx->keep, cases * NETTALK_TARGETS, uint8_t);
	Text *names = NEW(&cx->keep, cases, Text);
	char *text = NEW(&cx->keep, text_len + 1, char);
	d->x_type = T_F32;
	d->x_indptr = indptr;
	d->x_indices = indices;
	d->y = y;
	d->y_type = T_U8;
	d->names = names;
	for (const Word *w = word; w < word + words; w++) {
		for (uint32_t i = 0; i < w->len; i++) {
			for (int k = 0; k < NETTALK_WINDOW; k++)
				*indices++ = (uint32_t)(k * NETTALK_SYMBOLS) + symbol_at(w, i, k - HALF);
			indptr[1] = indptr[0] + NETTALK_WINDOW;
			indptr++;
			put_bits(find_code(sounds, COUNT(sounds), w->sounds[i]), SOUND_UNITS, y);
			put_bits(find_code(stresses, COUNT(stresses), w->stresses[i]), STRESS_UNITS, y + SOUND_UNITS);
			y += NETTALK_TARGETS;
			int len = snprintf(text, w->len + PLACE_DIGITS + 1, "%.*s/%u", (int)w->len, w->letters, i);
			*names++ = (Text){ text, (uint32_t)len };
			text += len;
		}
	}
	add_codes(cx, d);
	return d;
}

/* ---- the corpus ---- */

typedef struct Corpus {
	Ctx *cx;
	const Src *src;
	Word *word;
	uint64_t words, cap;
	int notes; /* left to give */
} Corpus;

static Loc at_ptr(const Src *s, const char *p) { return (Loc){ s, (size_t)(p - s->text) }; }

/* The line that starts at *off, without its end; *off moves to the next. */
static bool next_line(const Src *s, size_t *off, Text *line)
{
	if (*off >= s->len)
		return false;
	const char *p = s->text + *off, *end = memchr(p, '\n', s->len - *off);
	if (!end)
		end = s->text + s->len;
	*off = (size_t)(end - s->text) + 1;
	if (end > p && end[-1] == '\r')
		end--;
	*line = (Text){ p, end - p > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)(end - p) };
	return true;
}

/* Splits a line at its tabs; returns the number of fields, of which the first FIELDS are set. */
static uint32_t cut(Text line, Text *field)
{
	uint32_t count = 0;
	for (const char *p = line.s, *end = line.s + line.len;; p++) {
		const char *tab = memchr(p, '\t', (size_t)(end - p));
		const char *to = tab ? tab : end;
		if (count < FIELDS)
			field[count] = (Text){ p, (uint32_t)(to - p) };
		count++;
		if (!tab)
			return count;
		p = tab;
	}
}

static bool is_rule(Text line)
{
	uint32_t i = 0;
	while (i < line.len && line.s[i] == '-')
		i++;
	return i == line.len && i >= 5;
}

/* Offset of the first row. */
static size_t skip_preamble(Ctx *cx, const Src *s)
{
	Text line, field[FIELDS];
	size_t row = SIZE_MAX;
	for (size_t off = 0, start = 0; next_line(s, &off, &line); start = off) {
		if (is_rule(line))
			return off;
		if (row == SIZE_MAX && cut(line, field) == FIELDS && field[0].len)
			row = start;
	}
	if (row == SIZE_MAX)
		fail_at(cx, (Loc){ s, s->len }, "rows are: word, sounds, stresses, flag, with a tab between",
		        "there are no rows of the NETtalk corpus in this file");
	return row;
}

static bool is_flag(Text t)
{
	while (t.len && t.s[t.len - 1] == ' ')
		t.len--;
	return t.len == 1 && *t.s >= '0' && *t.s <= '2';
}

static bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

/* Records an error at the first symbol of a field that is not valid. */
static bool check_symbols(Corpus *c, Text t, bool (*good)(char), const char *what, const char *remedy)
{
	for (uint32_t i = 0; i < t.len; i++) {
		if (!good(t.s[i])) {
			error_at(c->cx, at_ptr(c->src, t.s + i), remedy, "this is no %s", what);
			return false;
		}
	}
	return true;
}

static bool check_length(Corpus *c, Text word, Text t, const char *what)
{
	if (t.len == word.len)
		return true;
	error_at(c->cx, at_ptr(c->src, t.s), "write one symbol per letter, '-' for a letter without a sound of its own",
	         "'%s' has %u letters but %u %s", text_shown(c->cx, word), word.len, t.len, what);
	return false;
}

static void read_row(Corpus *c, Text line)
{
	Text f[FIELDS];
	uint32_t fields = cut(line, f);
	if (fields == FIELDS && f[3].len == 0 && is_flag(f[2]) && f[0].len > 1) {
		if (c->notes-- > 0)
			note_at(c->cx, at_ptr(c->src, f[2].s), NULL, "'%s' has no stresses; its row is left out",
			        text_shown(c->cx, f[0]));
		return;
	}
	if (fields != FIELDS) {
		error_at(c->cx, at_ptr(c->src, line.s), "rows are: word, sounds, stresses, flag, with a tab between",
		         "this row has %u fields, not %d", fields, FIELDS);
		return;
	}
	if (!f[0].len)
		error_at(c->cx, at_ptr(c->src, line.s), "start the row with a word", "this row has no word");
	else if (f[0].len > MAX_LETTERS)
		error_at(c->cx, at_ptr(c->src, line.s), "split it into words", "this word has more than %d letters",
		         MAX_LETTERS);
	else if (check_symbols(c, f[0], is_letter, "letter", "spell words with the letters a to z") &&
	         check_length(c, f[0], f[1], "sounds") && check_length(c, f[0], f[2], "stresses") &&
	         check_symbols(c, f[1], nettalk_sound, "sound", "they are listed in nettalk.names, under Phonemic Codes") &&
	         check_symbols(c, f[2], nettalk_stress, "stress", "write one of > < 0 1 2 -") && !is_flag(f[3]))
		error_at(c->cx, at_ptr(c->src, f[3].s), "write 0, 1 for an irregular word or 2 for a foreign one",
		         "the flag must be 0, 1 or 2");
	c->word = arena_reserve(&c->cx->scratch, c->word, c->words, &c->cap, sizeof *c->word);
	c->word[c->words++] = (Word){ f[0].s, f[1].s, f[2].s, f[0].len };
}

/* ---- lists of words ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The text in the last parentheses, as in nettalk.list; the whole file if there are none. */
static void find_list(Ctx *cx, const Src *list, const char **p, const char **end)
{
	*p = list->text;
	*end = list->text + list->len;
	for (const char *q = *end; q > list->text; q--) {
		if (q[-1] != '(')
			continue;
		*p = q;
		*end = memchr(q, ')', (size_t)(*end - q));
		if (!*end)
			fail_at(cx, at_ptr(list, q - 1), "end the list of words with )", "this parenthesis does not close");
		return;
	}
}

Word *nettalk_pick(Ctx *cx, const Src *list, const Word *word, uint64_t words, uint64_t *picked)
{
	Dict dict = { .arena = &cx->scratch };
	uint64_t *first = NEW(&cx->scratch, words, uint64_t);
	for (uint64_t i = 0; i < words; i++) {
		uint32_t known = dict.count;
		if (dict_add(&dict, (Text){ word[i].letters, word[i].len }) == known)
			first[known] = i;
	}
	const char *p, *end;
	src_check_text(cx, list);
	find_list(cx, list, &p, &end);
	Word *out = NULL;
	uint64_t cap = 0;
	char *lower = NEW(&cx->scratch, list->len + 1, char);
	for (*picked = 0; p < end;) {
		if (is_space(*p)) {
			p++;
			continue;
		}
		const char *from = p;
		char *at = lower;
		for (; p < end && !is_space(*p); p++)
			*at++ = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
		uint32_t number;
		Text spelt = { lower, (uint32_t)(at - lower) };
		if (!dict_find(&dict, spelt, &number)) {
			error_at(cx, at_ptr(list, from), "take it out of the list, or name the whole corpus",
			         "there is no word '%s' in the corpus", text_shown(cx, spelt));
			continue;
		}
		out = arena_reserve(&cx->scratch, out, *picked, &cap, sizeof *out);
		out[(*picked)++] = word[first[number]];
	}
	check_errors(cx);
	if (!*picked)
		fail_at(cx, (Loc){ list, list->len },
		        "write the words with blanks between, in parentheses if there is other text",
		        "there are no words in this list");
	return out;
}

Data *read_nettalk(Ctx *cx, const Src *s, const DataOptions *opt)
{
	const char *list = opt ? opt->words : NULL;
	src_check_text(cx, s);
	/* With a list no notes: a listed word without a row is an error. */
	Corpus c = { .cx = cx, .src = s, .notes = list ? 0 : MAX_NOTES };
	uint64_t limit = opt ? opt->first : 0;
	Text line;
	for (size_t off = skip_preamble(cx, s); (list || !limit || c.words < limit) && next_line(s, &off, &line);)
		if (line.len)
			read_row(&c, line);
	check_errors(cx);
	if (!c.words)
		fail_at(cx, (Loc){ s, s->len }, "rows are: word, sounds, stresses, flag, with a tab between",
		        "there are no words below the line of dashes");
	const Word *word = c.word;
	if (list)
		word = nettalk_pick(cx, src_open(cx, &cx->scratch, list), c.word, c.words, &c.words);
	if (limit && limit < c.words)
		c.words = limit;
	Data *d = nettalk_data(cx, s->name, word, c.words);
	data_check(cx, d, (Loc){ s, 0 });
	return d;
}
