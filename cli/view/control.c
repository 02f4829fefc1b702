/* SPDX-License-Identifier: MIT */
/* Stops and resumes runs, where --control allows it. A run that another process trains is stopped as by Ctrl-C: it
 * saves its checkpoint and ends. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page.h"

extern char **environ;

static bool run_stop(const PageRun *r) { return r->trainer > 0 && !kill(r->trainer, SIGTERM); }

/* microprop train with the arguments of the run, from its checkpoint, in the same folder. */
static char **resume_words(const PageRun *r, json_t *args, char *checkpoint)
{
	json_t *given = json_object_get(args, "arguments");
	const char *command = json_string_value(json_array_get(given, 0));
	size_t n = json_array_size(given), count = 0;
	char **words = calloc(n + 10, sizeof *words);
	if (!words || !command || strcmp(command, "train"))
		return words; /* a folder from elsewhere starts nothing but a trainer */
	words[count++] = "microprop";
	for (size_t i = 0; i < n; i++) {
		const char *word = json_string_value(json_array_get(given, i));
		static const char *const dropped[] = { "--resume", "--load", "--view", "--control", "--json" };
		bool drop = !word, value = false;
		for (size_t k = 0; word && k < COUNT(dropped) && !drop; k++) {
			size_t len = strlen(dropped[k]);
			drop = !strncmp(word, dropped[k], len) && (!word[len] || word[len] == '=');
			value = drop && k < 2 && !word[len];
		}
		if (!drop)
			words[count++] = (char *)(uintptr_t)word;
		i += value;
	}
	(void)r;
	words[count++] = "--resume";
	words[count++] = checkpoint;
	words[count++] = "--quiet";
	return words;
}

static bool run_resume(const PageRun *r, const char **why)
{
	size_t size = strlen(r->folder) + sizeof "/last.safetensors";
	char *file = malloc(size), *checkpoint = malloc(size);
	posix_spawn_file_actions_t quiet;
	pid_t child = 0;
	*why = "its args.json cannot be read";
	if (file && checkpoint) {
		snprintf(file, size, "%s/args.json", r->folder);
		snprintf(checkpoint, size, "%s/last.safetensors", r->folder);
		json_t *args = json_load_file(file, 0, NULL);
		char **words = args ? resume_words(r, args, checkpoint) : NULL;
		posix_spawn_file_actions_init(&quiet);
		posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
		if (words && words[0]) {
			*why = "the trainer cannot be started";
			if (posix_spawn(&child, "/proc/self/exe", &quiet, NULL, words, environ))
				child = 0;
		}
		posix_spawn_file_actions_destroy(&quiet);
		free(words);
		json_decref(args);
	}
	free(file);
	free(checkpoint);
	return child > 0;
}

void control_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	const char *why = "no process trains it";
	FILE *f;
	if (!p->control) {
		answer_error(a, 403, "start it with --control to stop and resume runs");
		return;
	}
	json_t *body = json_loadb(q->body, q->len, 0, NULL);
	json_t *run = json_object_get(body, "run");
	const char *action = json_string_value(json_object_get(body, "action"));
	json_int_t i = json_is_integer(run) ? json_integer_value(run) : -1;
	bool known = i >= 0 && i < (json_int_t)p->runs && action, done = false;
	if (known && !strcmp(action, "stop"))
		done = run_stop(&p->run[i]);
	else if (known && !strcmp(action, "resume") && p->run[i].folder && !p->run[i].trainer && !p->run[i].feed)
		done = run_resume(&p->run[i], &why);
	else
		known = false;
	json_decref(body);
	if (!known) {
		answer_error(a, 400, "send {\"run\": N, \"action\": \"stop\" or \"resume\"}");
	} else if (!done) {
		answer_error(a, 409, "%s", why);
	} else {
		Json j = answer_begin(a, &f);
		if (f)
			answer_end(&j, a);
	}
}
