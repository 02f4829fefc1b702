/* SPDX-License-Identifier: MIT */
/* Studies of a trained network: what their commands share. */
#include <string.h>

#include "inside.h"

static int words_make(Args *a, const Option *list, const char **words)
{
	int count = 0;
	for (size_t i = 0; i < a->givens; i++) {
		const Given *g = &a->given[i];
		const Option *o = list;
		while (o->name && strcmp(o->name, g->name))
			o++;
		if (!o->name || (g->flag && g->value[0] == '0'))
			continue;
		size_t size = strlen(g->name) + strlen(g->value) + sizeof "--=";
		char *word = args_alloc(a, size, 1);
		snprintf(word, size, g->flag ? "--%s" : "--%s=%s", g->name, g->value);
		words[count++] = word;
	}
	return count;
}

int study_call(Args *a, Session *s, const char *name, const Option *list, mp_write_fn *write, void *user)
{
	const char **words = args_alloc(a, a->givens + 1, sizeof *words);
	int count = words_make(a, list, words);
	working_start(name);
	mp_status status = mp_run_study(s->run, s->data, name, count, words, write, user);
	working_end();
	return after_run(s->run, status);
}

int study_run(Args *a, Session *s, const char *name)
{
	return study_call(a, s, name, a->command->group[0].list, show_lines, stdout);
}

int study_open(Args *a, Session *s)
{
	mp_data_options reading;
	const char *data = NULL;
	uint64_t cases;
	if (!session_reading(a, true, &reading))
		return EXIT_USAGE;
	static const char *const files[] = { "svg", "csv" };
	int rc = EXIT_DONE;
	for (size_t i = 0; !rc && i < COUNT(files); i++)
		rc = output_check(a, files[i]);
	if (!rc)
		rc = session_weights(s, a, &reading, &data);
	return rc ? rc : session_cases(s, a, data, &reading, &cases);
}
