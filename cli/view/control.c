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

extern char **environ; /* NOLINT(readability-redundant-declaration): POSIX has it in no header */

static bool is_trained(Page *p, const PageRun *r)
{
	pthread_mutex_lock(&p->lock);
	bool trained = r->trainer != 0;
	pthread_mutex_unlock(&p->lock);
	return trained;
}

static bool run_stop(Page *p, const PageRun *r)
{
	pthread_mutex_lock(&p->lock);
	trainers_find(p); /* it may have ended, and another process have its number */
	bool done = r->trainer > 0 && !kill(r->trainer, SIGTERM);
	pthread_mutex_unlock(&p->lock);
	return done;
}

/* At its next report. */
static bool save_ask(Page *p)
{
	atomic_store(&p->save, true);
	return true;
}

/* Options of the old run that a resumed one does not take over: where it wrote other files, and how it was watched. */
static const struct {
	const char *name;
	bool value;
} dropped[] = {
	{ "--resume", true }, { "--load", true },       { "--save", true },      { "--run", true },
	{ "--svg", true },    { "--write-topo", true }, { "--fault-log", true }, { "--force", false },
	{ "--view", false },  { "--control", false },   { "--json", false },
};

/* How many words from here on are dropped. */
static size_t words_dropped(const char *word)
{
	for (size_t k = 0; k < COUNT(dropped); k++) {
		size_t len = strlen(dropped[k].name);
		if (!strncmp(word, dropped[k].name, len) && (!word[len] || word[len] == '='))
			return dropped[k].value && !word[len] ? 2 : 1;
	}
	return 0;
}

/* microprop train with the arguments of the run, from its checkpoint, in the same folder; NULL: it was no such run. */
static char **resume_words(const PageRun *r, json_t *args, char *checkpoint)
{
	json_t *given = json_object_get(args, "arguments");
	const char *first = json_string_value(json_array_get(given, 0));
	size_t n = json_array_size(given), count = 0;
	char **words = first && !strcmp(first, "train") ? calloc(n + 10, sizeof *words) : NULL;
	if (!words)
		return NULL;
	words[count++] = "microprop";
	for (size_t i = 0; i < n;) {
		const char *word = json_string_value(json_array_get(given, i));
		size_t drop = word ? words_dropped(word) : 1;
		if (!drop)
			words[count++] = (char *)(uintptr_t)word;
		i += drop ? drop : 1;
	}
	words[count++] = "--run";
	words[count++] = r->folder;
	words[count++] = "--resume";
	words[count++] = checkpoint;
	words[count++] = "--quiet";
	return words;
}

/* Signals are blocked here, but not in the trainer. */
static pid_t trainer_start(char **words)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, standard;
	pid_t child = 0;
	sigemptyset(&none);
	sigemptyset(&standard);
	sigaddset(&standard, SIGPIPE);
	sigaddset(&standard, SIGCHLD);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &standard);
	posix_spawnattr_setpgroup(&how, 0); /* Ctrl-C ends the page, not the run */
	if (posix_spawn(&child, "/proc/self/exe", &files, &how, words, environ))
		child = 0;
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return child;
}

static bool run_resume(const PageRun *r, const char **why)
{
	size_t size = strlen(r->folder) + sizeof "/last.safetensors";
	char *text = run_args(r), *checkpoint = malloc(size), **words = NULL;
	json_t *args = text ? json_loads(text, 0, NULL) : NULL;
	*why = "its args.json cannot be read, or is not that of a training run";
	if (args && checkpoint) {
		snprintf(checkpoint, size, "%s/last.safetensors", r->folder);
		words = resume_words(r, args, checkpoint);
	}
	if (words)
		*why = "the trainer cannot be started";
	bool started = words && trainer_start(words) > 0;
	free(words);
	json_decref(args);
	free(text);
	free(checkpoint);
	return started;
}

void control_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	const char *why = "no process trains it";
	if (!p->control) {
		answer_error(a, 403, "start it with --control to stop and resume runs");
		return;
	}
	json_t *body = json_loadb(q->body, q->len, 0, NULL);
	json_t *run = json_object_get(body, "run");
	const char *action = json_string_value(json_object_get(body, "action"));
	const PageRun *r = json_is_integer(run) && action ? page_run(p, (uint64_t)json_integer_value(run)) : NULL;
	bool known = r != NULL, done = false;
	if (known && !strcmp(action, "stop"))
		done = run_stop(p, r);
	else if (known && !strcmp(action, "save") && r->feed && r->folder)
		done = save_ask(p);
	else if (known && !strcmp(action, "resume") && r->folder && !r->feed && !is_trained(p, r))
		done = run_resume(r, &why);
	else
		known = false;
	json_decref(body);
	if (!known) {
		answer_error(a, 400, "send {\"run\": N, \"action\": \"stop\", \"save\" or \"resume\"}");
	} else if (!done) {
		answer_error(a, 409, "%s", why);
	} else {
		answer_empty(a);
	}
}
