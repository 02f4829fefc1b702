/* SPDX-License-Identifier: MIT */
/* The program: one table of commands.
 * A new command is a file cmd_NAME.c that holds its Command, and a row below. */
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "cli.h"

const Command *const commands[] = {
	&train_command,   &tune_command,  &test_command,   &predict_command, &lesion_command,
	&analyze_command, &show_command,  &data_command,   &import_command,  &export_command,
	&gf11_command,    &model_command, &launch_command, &bench_command,   &view_command,
	&help_command,    NULL,
};

/* NULL: there is none, message shown. */
static const Command *command_find(const char *name)
{
	Guess guess = { .word = name };
	for (size_t i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
		guess_try(&guess, commands[i]->name);
	}
	if (guess.name)
		complain("see: microprop --help", "there is no command '%s'; did you mean '%s'?", name, guess.name);
	else
		complain("see: microprop --help", "there is no command '%s'", name);
	return NULL;
}

static int help_run(Args *a)
{
	const Command *c = a->operands ? command_find(a->operand[0]) : NULL;
	if (a->operands && !c)
		return EXIT_USAGE;
	if (args_flag(a, "json"))
		manual_json(c);
	else
		manual_help(stdout, c);
	return EXIT_DONE;
}

static const Option help_options[] = {
	{ "json", NULL, "print commands, options and examples as one JSON object, for other programs" },
	{ NULL, NULL, NULL },
};

const Command help_command = {
	.name = "help",
	.operands = "[COMMAND]",
	.most = 1,
	.summary = "explain a command",
	.about = "Explains a command with its options and examples; without a name, lists all commands.",
	.group = (const OptionGroup[]){ { "Options", help_options, NULL }, { 0 } },
	.example = (const Example[]){ { "microprop help train", "all options of train" }, { 0 } },
	.run = help_run,
};

static int command_run(const Command *c, int argc, char **argv, Rank *job)
{
	Args args = { 0 };
	bool help = false;
	int rc = EXIT_USAGE;
	if (args_read(&args, c, argc, argv, &help)) {
		args.job = job->job;
		args.heartbeat = job->heartbeat;
		rc = c->run(&args);
	} else if (help) {
		if (!c->tool || !args.operands || !manual_verb(stdout, c, args.operand[0]))
			manual_help(stdout, c);
		rc = EXIT_DONE;
	}
	args_free(&args);
	return rc;
}

static int version_print(const char *form)
{
	if (strcmp(form, "--json") != 0) {
		show(stdout, "microprop %s\n", mp_version());
		return EXIT_DONE;
	}
	if (mp_build_describe(show_lines, stdout) != MP_OK) {
		complain("unset MICROPROP_ISA", "MICROPROP_ISA names no instruction set of this CPU");
		return EXIT_USAGE;
	}
	show(stdout, "\n");
	return EXIT_DONE;
}

static int help_print(const char *unused)
{
	(void)unused;
	manual_help(stdout, NULL);
	return EXIT_DONE;
}

/* Options that stand before any command. */
static const struct {
	const char *name;
	bool argument;
	int (*run)(const char *argument);
} globals[] = {
	{ "--help", false, help_print },
	{ "-h", false, help_print },
	{ "--version", true, version_print },
	{ "--man", true, manual_print },
	{ "--completion", true, manual_completion },
};

static int program_run(int argc, char **argv, Rank *job)
{
	if (argc < 2) {
		manual_help(stderr, NULL);
		return EXIT_USAGE;
	}
	Guess guess = { .word = argv[1] };
	for (size_t i = 0; i < COUNT(globals); i++) {
		if (!strcmp(argv[1], globals[i].name))
			return globals[i].run(globals[i].argument && argc > 2 ? argv[2] : "");
		guess_try(&guess, globals[i].name);
	}
	if (argv[1][0] == '-') {
		complain("see: microprop --help", "there is no option '%s' before a command%s%s%s", argv[1],
		         guess.name ? "; did you mean '" : "", guess.name ? guess.name : "", guess.name ? "'?" : "");
		return EXIT_USAGE;
	}
	const Command *c = command_find(argv[1]);
	if (mp_job_rank(job->job) && c != &train_command) /* only training is shared */
		return EXIT_DONE;
	return c ? command_run(c, argc, argv, job) : EXIT_USAGE;
}

/* Kernels keep blocks of 64 KiB on the stack. A soft limit below is raised: the stack of this thread grows up to the
 * limit of the moment. */
static bool stack_suffices(void)
{
	enum { NEED = 256 << 10, WANTED = 1 << 20 };
	struct rlimit stack;
	if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur >= WANTED)
		return true;
	rlim_t before = stack.rlim_cur;
	stack.rlim_cur = stack.rlim_max < WANTED ? stack.rlim_max : WANTED;
	if (!setrlimit(RLIMIT_STACK, &stack) && stack.rlim_cur >= NEED)
		return true;
	if (before >= NEED)
		return true;
	complain("raise it: ulimit -s 8192", "a stack of %s is too small; 256 KiB are needed", format_bytes(before).s);
	return false;
}

int main(int argc, char **argv)
{
	if (!stack_suffices())
		return EXIT_USAGE;
	setlocale(LC_CTYPE, ""); /* only to know whether the terminal shows UTF-8 */
	/* a file-size limit is then an error like a full disk, and hours of training are not lost */
	signal(SIGXFSZ, SIG_IGN);
	sigbus_watch();
	Rank job;
	int rc = job_join(&job);
	if (!rc)
		rc = program_run(argc, argv, &job);
	if ((fflush(stdout) || ferror(stdout)) && rc == EXIT_DONE) {
		complain("free space on the disk, or check where the output goes", "cannot write the result");
		rc = EXIT_FAILED;
	}
	return job_leave(&job, rc);
}
