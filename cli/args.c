/* SPDX-License-Identifier: MIT */
/* Command lines: options that exist, with their arguments, and operands in the number the command takes.  Options of
 * the library come from mp_option_at.  Forms: --name value, --name=value, --flag, --no-flag, and -- before operands
 * that start with '-'.  A value that may be left out (its argument starts with '[') needs the '='. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct Kept {
	Kept *next;
	max_align_t bytes[];
};

void complain(const char *remedy, const char *fmt, ...)
{
	va_list ap;
	fflush(stdout);
	va_start(ap, fmt);
	show(stderr, "error: ");
	vshow(stderr, fmt, ap);
	va_end(ap);
	show(stderr, "\n");
	if (remedy)
		show(stderr, "  %s\n", remedy);
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;
	return m < c ? m : c;
}

/* Edit distance; names longer than LONGEST are far from everything. */
static size_t distance(const char *a, const char *b)
{
	enum { LONGEST = 30 };
	size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
	if (n > LONGEST || m > LONGEST)
		return SIZE_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t above = row[j];
			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[m];
}

void guess_try(Guess *g, const char *name)
{
	size_t d = distance(g->word, name);
	if (d <= strlen(g->word) / 3 + 1 && (!g->name || d < g->distance)) {
		g->name = name;
		g->distance = d;
	}
}

/* The i-th of the library's options that the group names. */
static const mp_option *library_at(const char *names, size_t i)
{
	const mp_option *o;
	for (size_t k = 0; (o = mp_option_at(k)); k++) {
		size_t n = strlen(o->name);
		bool named = !strcmp(names, "*");
		for (const char *p = names; !named && (p = strstr(p, o->name)); p += n)
			named = p > names && p[-1] == ' ' && p[n] == ' ';
		if (named && i-- == 0)
			return o;
	}
	return NULL;
}

static void library_view(const mp_option *o, OptionView *v)
{
	bool general = !strcmp(o->owner, "general");
	*v = (OptionView){ .name = o->name, .argument = o->argument, .library = o };
	v->standard = *o->default_value ? o->default_value : NULL;
	snprintf(v->help, sizeof v->help, "%s%s%s", general ? "" : o->owner, general ? "" : ": ", o->help);
	if (!o->choices)
		return;
	for (size_t i = 0, n = 0; o->choices[i] && n < sizeof v->choices; i++)
		n += (size_t)snprintf(v->choices + n, sizeof v->choices - n, "%s%s", i ? "|" : "", o->choices[i]);
	v->argument = v->choices;
}

bool group_view(const OptionGroup *group, size_t i, OptionView *v)
{
	if (group->list) {
		const Option *o = &group->list[i];
		*v = (OptionView){ .name = o->name, .argument = o->argument };
		v->list = o->name && strstr(o->help, "may be repeated"); /* what users read is the rule */
		snprintf(v->help, sizeof v->help, "%s", o->name ? o->help : "");
		return o->name;
	}
	const mp_option *o = library_at(group->from_library, i);
	if (o)
		library_view(o, v);
	return o;
}

/* Finds an option by the name as written, of `len` letters; *off: it was a flag with no- before it. */
static bool option_find(const Command *c, const char *name, size_t len, OptionView *v, bool *off)
{
	for (const OptionGroup *g = c->group; g->heading; g++) {
		for (size_t i = 0; group_view(g, i, v); i++) {
			size_t n = strlen(v->name);
			bool negated = len == n + 3 && !strncmp(name, "no-", 3) && !strncmp(name + 3, v->name, n);
			*off = negated && !v->argument;
			if (*off || (len == n && !strncmp(name, v->name, n)))
				return true;
		}
	}
	return false;
}

static void option_unknown(const Command *c, const char *written, size_t len)
{
	char remedy[80], word[64];
	OptionView v;
	snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), written);
	Guess guess = { .word = word };
	for (const OptionGroup *g = c->group; g->heading; g++)
		for (size_t i = 0; group_view(g, i, &v); i++)
			guess_try(&guess, v.name);
	snprintf(remedy, sizeof remedy, "see: microprop %s --help", c->name);
	const char *same, *hint = mp_option_hint(word, &same);
	if (hint && !same)
		complain(hint, "%s has no option '--%s'", c->name, word);
	else if (guess.name)
		complain(remedy, "%s has no option '--%s'; did you mean '--%s'?", c->name, word, guess.name);
	else
		complain(remedy, "%s has no option '--%s'", c->name, word);
}

/* A word of another program that means the same as an option that the command has. */
static bool option_same(const Command *c, const char *written, size_t len, OptionView *v)
{
	char word[64];
	bool off;
	const char *same;
	snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), written);
	return mp_option_hint(word, &same) && same && option_find(c, same, strlen(same), v, &off);
}

/* One more value for a list that was given before; false: it was not. */
static bool list_add(Args *a, const char *name, const char *value)
{
	for (size_t i = 0; i < a->givens; i++) {
		Given *g = &a->given[i];
		assert(g->name);
		if (strcmp(g->name, name))
			continue;
		size_t size = strlen(g->value) + strlen(value) + sizeof ",";
		char *both = args_alloc(a, size, 1);
		snprintf(both, size, "%s,%s", g->value, value);
		g->value = both;
		return true;
	}
	return false;
}

/* The first value would be lost. */
static bool given_twice(const Args *a, const char *name)
{
	for (size_t i = 0; i < a->givens; i++) {
		assert(a->given[i].name);
		if (strcmp(a->given[i].name, name))
			continue;
		complain("give it once", "--%s is given twice", name);
		return true;
	}
	return false;
}

/* One word that starts with "--"; *i is its place and moves on if the next word is its argument. */
static bool option_take(Args *a, int *i)
{
	const char *written = a->argv[*i] + 2, *equals = strchr(written, '=');
	size_t len = equals ? (size_t)(equals - written) : strlen(written);
	OptionView v;
	bool off = false;
	if (!option_find(a->command, written, len, &v, &off) && !option_same(a->command, written, len, &v)) {
		option_unknown(a->command, written, len);
		return false;
	}
	char remedy[120];
	const char *value = off ? "0" : "1";
	if (!v.argument && equals) {
		snprintf(remedy, sizeof remedy, "write --%s or --no-%s", v.name, v.name);
		complain(remedy, "--%s takes no value", v.name);
		return false;
	}
	if (v.argument) {
		value = equals ? equals + 1 : v.argument[0] == '[' ? "" : *i + 1 < a->argc ? a->argv[++*i] : NULL;
		if (!value) {
			snprintf(remedy, sizeof remedy, "write --%s %s", v.name, v.argument);
			complain(remedy, "--%s needs a value", v.name);
			return false;
		}
	}
	bool list = v.library ? v.library->type == MP_OPTION_LIST : v.list;
	if (!list && given_twice(a, v.name))
		return false;
	if (!v.library || !list || !list_add(a, v.name, value))
		a->given[a->givens++] = (Given){ v.name, value, v.library, !v.argument };
	return true;
}

static bool operands_check(const Args *a)
{
	const Command *c = a->command;
	char remedy[200];
	snprintf(remedy, sizeof remedy, "write: microprop %s %s", c->name, c->operands);
	if (a->operands > c->most) {
		complain(remedy, "'%s' is one operand too many for %s", a->operand[c->most], c->name);
		return false;
	}
	if (a->operands < c->least)
		complain(remedy, "%s needs %s", c->name, a->operands ? "one more operand" : "operands");
	return a->operands >= c->least;
}

/* gcc loses sight of memory that args_alloc links into a->kept, from which args_free frees it. */
#if !defined __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
bool args_read(Args *a, const Command *command, int argc, char **argv, bool *help)
{
	a->command = command;
	a->argc = argc;
	a->argv = argv;
	a->given = args_alloc(a, (size_t)argc, sizeof *a->given);
	a->operand = args_alloc(a, (size_t)argc, sizeof *a->operand);
	bool only_operands = false, off;
	OptionView short_form;
	for (int i = 2; i < argc; i++) {
		const char *word = argv[i];
		if (only_operands || word[0] != '-' || !word[1])
			a->operand[a->operands++] = word;
		else if (!strcmp(word, "--"))
			only_operands = true;
		else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			*help = true;
			return false;
		} else if (!strcmp(word, "-n") && option_find(command, "ranks", 5, &short_form, &off)) {
			argv[i] = "--ranks"; /* as mpirun calls it */
			if (!option_take(a, &i))
				return false;
		} else if (word[1] != '-') {
			complain("options have two dashes: --name", "'%s' is not an option", word);
			return false;
		} else if (!option_take(a, &i))
			return false;
	}
	return operands_check(a);
}

const char *args_text(const Args *a, const char *name)
{
	const char *value = NULL; /* the last one counts */
	for (size_t i = 0; i < a->givens; i++)
		if (!strcmp(a->given[i].name, name))
			value = a->given[i].value;
	return value;
}

bool args_flag(const Args *a, const char *name)
{
	const char *value = args_text(a, name);
	return value && value[0] == '1';
}

bool args_count(const Args *a, const char *name, uint64_t *value)
{
	const char *text = args_text(a, name);
	char *end = NULL;
	if (!text)
		return true;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno) {
		complain("write a whole number, 0 or more, in digits only", "--%s: '%s' is not a number", name, text);
		return false;
	}
	*value = v;
	return true;
}

void *args_alloc(Args *a, size_t count, size_t size)
{
	Kept *k = count < SIZE_MAX / 2 / size ? calloc(1, sizeof *k + count * size) : NULL;
	if (!k) {
		complain("close other programs, or use less data", "out of memory");
		exit(EXIT_FAILED);
	}
	k->next = a->kept;
	a->kept = k;
	return k->bytes;
}

char *args_copy(Args *a, const char *text)
{
	size_t n = strlen(text) + 1;
	return memcpy(args_alloc(a, n, 1), text, n);
}

void args_free(Args *a)
{
	for (Kept *k = a->kept, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	*a = (Args){ 0 };
}
