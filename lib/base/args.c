/* SPDX-License-Identifier: MIT */
/* Arguments of a tool's command.  In: operands, and options as --name or --name=value.  Out: the fields of a struct
 * that a table names, or a message with the remedy. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static uint64_t count_read(Ctx *cx, const CommandOption *row, const char *value)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);
	Buf remedy = { .arena = &cx->scratch };

	if (value[0] >= '0' && value[0] <= '9' && !*end && n >= 1 && n <= row->max)
		return n;
	buf_printf(&remedy, "write a whole number from 1 to %" PRIu64, row->max);
	fail(cx, MP_BAD_INPUT, remedy.s, "--%s cannot be '%s'", row->name, value);
}

static const CommandOption *row_find(Ctx *cx, const CommandArgs *w, const char *word, size_t len)
{
	Buf known = { .arena = &cx->scratch };

	buf_puts(&known, "its options are:");
	for (size_t i = 0; i < w->rows; i++) {
		if (strlen(w->row[i].name) == len && memcmp(w->row[i].name, word, len) == 0)
			return &w->row[i];
		buf_printf(&known, " --%s", w->row[i].name);
	}
	fail(cx, MP_BAD_INPUT, known.s, "%s has no option '--%.*s'", w->of, (int)len, word);
}

static void option_take(Ctx *cx, const CommandArgs *w, const char *word, void *into)
{
	size_t len = strcspn(word, "=");
	const CommandOption *row = row_find(cx, w, word, len);
	void *field = (char *)into + row->at;

	if ((row->kind == ARG_FLAG) != !word[len])
		fail(cx, MP_BAD_INPUT, row->kind == ARG_FLAG ? "write it without =" : "write it after =",
		     row->kind == ARG_FLAG ? "--%s takes no value" : "--%s needs a value", row->name);
	if (row->kind == ARG_FLAG)
		*(bool *)field = true;
	else if (row->kind == ARG_COUNT)
		*(uint64_t *)field = count_read(cx, row, word + len + 1);
	else
		*(const char **)field = word + len + 1;
}

void tool_args_read(Ctx *cx, const CommandArgs *w, int argc, const char *const *argv, void *into)
{
	const char **operand = (const char **)(void *)((char *)into + w->operand_at);
	uint32_t operands = 0;

	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0)
			option_take(cx, w, argv[i] + 2, into);
		else if (operands < w->operands)
			operand[operands++] = argv[i];
		else
			fail(cx, MP_BAD_INPUT, "leave it out", "'%s' is one operand too many for %s", argv[i], w->of);
	}
}
