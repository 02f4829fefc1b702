/* SPDX-License-Identifier: MIT */
/* Sentences and the events they tell of (after St. John and McClelland 1990).  In: a seed.  Out: a sequence for each
 * sentence, a case for each word; inputs are the word, targets the whole event: agent, action, patient and instrument,
 * one of n each.  A case is named by the words so far.
 *
 * Somebody eats something with something: what they eat is mostly their own dish, and what with follows from the dish;
 * the instrument is told of in half of the sentences.  Somebody chases somebody: anyone any other, in half of the
 * sentences in the passive ("dog was-chased by cat"), so that order alone tells who did what. */
#include <stdio.h>
#include <string.h>

#include "make.h"

enum { SENTENCES = 300, LONGEST = 5, OWN_DISH_OF_8 = 7 };
enum { PERSONS = 4, DISHES = 4, TOOLS = 4, ANIMALS = 4 };
enum { EATS, CHASES, ACTIONS };
static const char *const words[] = {
	"baker", "pilot",  "nurse",      "child",  /* persons, who eat */
	"bread", "soup",   "cake",       "rice",   /* what they mostly eat, in this order */
	"knife", "spoon",  "fork",       "sticks", /* and what with, in the order of the dishes */
	"dog",   "cat",    "goose",      "goat",   /* who chase one another */
	"ate",   "chased", "was-chased", "by",     "with",
};
enum {
	WORD_PERSON,
	WORD_DISH = WORD_PERSON + PERSONS,
	WORD_TOOL = WORD_DISH + DISHES,
	WORD_ANIMAL = WORD_TOOL + TOOLS,
	WORD_ATE = WORD_ANIMAL + ANIMALS,
	WORD_CHASED,
	WORD_WAS_CHASED,
	WORD_BY,
	WORD_WITH,
	WORDS
};
enum { /* units of the targets */
	   AGENT,
	   ACTION = AGENT + PERSONS + ANIMALS,
	   PATIENT = ACTION + ACTIONS,
	   INSTRUMENT = PATIENT + DISHES + ANIMALS,
	   ROLES = INSTRUMENT + TOOLS + 1 /* none */
};

typedef struct Sentence {
	uint32_t word[LONGEST], length;
	uint32_t role[4]; /* units that are on */
} Sentence;

static Sentence eating(Request *q)
{
	uint32_t person = draw(q, PERSONS), dish = draw(q, 8) < OWN_DISH_OF_8 ? person : draw(q, DISHES);
	Sentence s = { .word = { WORD_PERSON + person, WORD_ATE, WORD_DISH + dish, WORD_WITH, WORD_TOOL + dish } };
	s.length = draw(q, 2) ? 5 : 3;
	memcpy(s.role, (uint32_t[]){ AGENT + person, ACTION + EATS, PATIENT + dish, INSTRUMENT + dish }, sizeof s.role);
	return s;
}

static Sentence chasing(Request *q)
{
	uint32_t who = draw(q, ANIMALS), whom = (who + 1 + draw(q, ANIMALS - 1)) % ANIMALS;
	Sentence s = { .word = { WORD_ANIMAL + who, WORD_CHASED, WORD_ANIMAL + whom }, .length = 3 };
	if (draw(q, 2))
		s = (Sentence){ .word = { WORD_ANIMAL + whom, WORD_WAS_CHASED, WORD_BY, WORD_ANIMAL + who }, .length = 4 };
	memcpy(s.role, (uint32_t[]){ AGENT + PERSONS + who, ACTION + CHASES, PATIENT + DISHES + whom, INSTRUMENT + TOOLS },
	       sizeof s.role);
	return s;
}

Data *make_sentences(Ctx *cx, Request *q)
{
	float *x, *y;
	uint64_t cases = 0;
	Data *d = set_new(cx, SENTENCES * LONGEST, WORDS, ROLES, &x, &y);
	uint64_t *seq = NEW(&cx->keep, SENTENCES + 1, uint64_t);
	Text *names = NEW(&cx->keep, d->cases, Text);
	for (uint32_t i = 0; i < SENTENCES; i++) {
		Sentence s = draw(q, 2) ? eating(q) : chasing(q);
		Buf told = { .arena = &cx->scratch };
		for (uint32_t k = 0; k < s.length; k++, cases++) {
			x[cases * WORDS + s.word[k]] = 1;
			for (uint32_t r = 0; r < COUNT(s.role); r++)
				y[cases * ROLES + s.role[r]] = 1;
			buf_printf(&told, "%s%s", k ? " " : "", words[s.word[k]]);
			names[cases] = (Text){ arena_copy(&cx->keep, told.s, told.len), (uint32_t)told.len };
		}
		seq[i + 1] = cases;
	}
	d->cases = cases;
	d->seq = seq;
	d->sequences = SENTENCES;
	d->names = names;
	return d;
}
