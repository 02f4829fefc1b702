/* SPDX-License-Identifier: MIT */
/* words.c: operands and options of a tool's command. */
#ifndef WORDS_H
#define WORDS_H

#include "lib.h"

/* Where the value of an option goes: a bool, a const char *, or a uint64_t from 1 to most. */
enum { WORD_FLAG, WORD_TEXT, WORD_COUNT };
typedef struct WordRow {
	const char *name;
	int kind;
	size_t at;
	uint64_t most;
} WordRow;
typedef struct Words {
	const char *of; /* whose words these are, for messages */
	const WordRow *row;
	size_t rows;
	uint32_t operands; /* at most */
	size_t operand_at; /* of an array of as many const char * */
} Words;
void words_read(Ctx *cx, const Words *w, int argc, const char *const *argv, void *into);

#endif
