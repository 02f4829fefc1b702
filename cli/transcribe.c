/* SPDX-License-Identifier: MIT */
/* Words transcribed: for data whose cases are letters of words, named "word/position", a table of a few words, spread
 * evenly over the data, with their sounds and those of the network's outputs. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* A word: cases first .. first + count - 1. */
typedef struct Span {
	uint64_t first, count;
} Span;

/* Splits "word/position" into the word's length and whether this is its first letter; 0: not such a name. */
static size_t name_split(const char *name, bool *first)
{
	const char *slash = strrchr(name, '/');
	char *end = NULL;
	if (!slash || slash == name)
		return 0;
	unsigned long at = strtoul(slash + 1, &end, 10);
	*first = at == 0;
	return end > slash + 1 && !*end ? (size_t)(slash - name) : 0;
}

/* Finds all words; NULL if a case has no such name. */
static Span *words_find(Args *a, mp_data *data, uint64_t cases, uint64_t *count)
{
	Span *word = args_alloc(a, cases, sizeof *word);
	uint64_t n = 0;
	for (uint64_t i = 0; i < cases; i++) {
		bool first;
		if (!name_split(mp_data_get_name(data, i), &first) || (i == 0 && !first))
			return NULL;
		if (first)
			word[n++].first = i;
		word[n - 1].count++;
	}
	*count = n;
	return n ? word : NULL;
}

/* A word with its target sounds and the network's; texts that are too long are truncated. */
typedef struct Spoken {
	char word[64], target[64], guess[64];
	uint64_t letters, right;
} Spoken;

/* One sign a letter, so that sounds stand under their letters: a code's name starts with its sound, stress comes
 * after. */
static void sound_add(char *text, size_t size, const char *code)
{
	size_t n = strlen(text);
	if (n + 1 < size)
		text[n] = *code;
}

static void word_speak(mp_data *data, const Span *w, const double *outputs, uint32_t width, float *y, double *target,
                       Spoken *s)
{
	bool first;
	const char *name = mp_data_get_name(data, w->first);
	snprintf(s->word, sizeof s->word, "%.*s", (int)name_split(name, &first), name);
	s->letters = w->count;
	for (uint64_t i = w->first; i < w->first + w->count; i++) {
		char wanted[32];
		mp_data_get_case(data, i, NULL, y);
		for (uint32_t k = 0; k < width; k++)
			target[k] = (double)y[k];
		snprintf(wanted, sizeof wanted, "%s", mp_data_get_guess(data, target));
		const char *said = mp_data_get_guess(data, &outputs[i * width]);
		sound_add(s->target, sizeof s->target, wanted);
		sound_add(s->guess, sizeof s->guess, said);
		s->right += !strcmp(wanted, said);
	}
}

static int wider(int width, const char *text)
{
	int n = (int)strlen(text);
	return n > width ? n : width;
}

static void words_print(const Spoken *s, uint64_t words, FILE *f)
{
	int word = 4, sounds = 9; /* as wide as the headings */
	for (uint64_t i = 0; i < words; i++) {
		word = wider(word, s[i].word);
		sounds = wider(wider(sounds, s[i].target), s[i].guess);
	}
	show(f, "\n%-*s  %-*s  %-*s  %s\n", word, "word", sounds, "sounds", sounds, "as learnt", "letters right");
	for (uint64_t i = 0; i < words; i++)
		show(f, "%-*s  %-*s  %-*s  %s of %s\n", word, s[i].word, sounds, s[i].target, sounds, s[i].guess,
		     format_count(s[i].right).s, format_count(s[i].letters).s);
}

int transcribe_show(Session *s, Args *a, mp_data *data, uint64_t words, FILE *f)
{
	const mp_data_info *info;
	mp_result result = { .size = sizeof result };
	uint64_t count = 0;
	int rc = after_data(data, mp_data_get_info(data, &info));
	if (rc)
		return rc;
	uint32_t width = mp_net_get_info(s->net)->outputs;
	Span *word = info->named && info->targets == width ? words_find(a, data, info->cases, &count) : NULL;
	if (!word) {
		fflush(stdout);
		show(stderr, "note: no words to show: the names of the cases are not of the form word/position\n");
		return EXIT_DONE;
	}
	double *outputs = args_alloc(a, info->cases * width, sizeof *outputs);
	rc = after_run(s->run, mp_run_test(s->run, data, &result, outputs));
	if (rc)
		return rc;
	float *y = args_alloc(a, width, sizeof *y);
	double *target = args_alloc(a, width, sizeof *target);
	words = words < count ? words : count;
	Spoken *spoken = args_alloc(a, words, sizeof *spoken);
	for (uint64_t i = 0; i < words; i++)
		word_speak(data, &word[i * count / words], outputs, width, y, target, &spoken[i]);
	words_print(spoken, words, f);
	return EXIT_DONE;
}
