/* SPDX-License-Identifier: MIT */
/* Studies of a trained network: what their commands share. */
#include <string.h>

#include "inside.h"

/* Options of the study are those of the command's first group; the others say how to open network and data. */
static int words_make(Args *a, const char **words)
{
	int count = 0;
	for (size_t i = 0; i < a->givens; i++) {
		const Given *g = &a->given[i];
		const Option *o = a->command->group[0].list;
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

int study_run(Args *a, Session *s, const char *name)
{
	const char **words = args_alloc(a, a->givens + 1, sizeof *words);
	int count = words_make(a, words);
	working_start(name);
	mp_status status = mp_run_study(s->run, s->data, name, count, words, show_lines, stdout);
	working_end();
	return after_run(s->run, status);
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
