/* SPDX-License-Identifier: MIT */
/* Help, its JSON form, the man page and completion for shells, all printed from the tables of commands and options. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char about[] = "microprop compiles back-propagation networks and trains them: a topology file goes in, "
							"trained weights come out.";

static const Option global_options[] = {
	{ "help", NULL, "list the commands" },
	{ "version", NULL, "print the version; with --json also build, instruction sets, targets and MPI modules" },
	{ "man", "1|options", "print the manual page (roff), or a plain list of the training options" },
	{ "completion", "bash|zsh|fish", "print a completion script for the shell" },
	{ NULL, NULL, NULL },
};

static const OptionGroup global_group = { "Options", global_options, NULL };

static const struct {
	const char *status, *says;
} exits[] = {
	{ "0", "done" },
	{ "1", "the run failed: error not finite, disk full, ..." },
	{ "2", "bad usage or input; the message says where and what would be right" },
	{ "129, 130, 143", "stopped by SIGHUP, Ctrl-C or SIGTERM, after saving" },
};

static const struct {
	const char *name, *says;
} files[] = {
	{ "args.json", "files and all options of the run" },
	{ "metrics.jsonl", "a line for every report: epoch, updates, errors, shares, rate, seconds, MCPS (million "
	                   "connections per second), the same on a simulated clock" },
	{ "last.safetensors",
	  "checkpoint, written every ten seconds, at the end and at a signal; --resume continues from it" },
	{ "best.safetensors", "weights of the best epoch: least test error, or least error if there is no test data" },
};

/* ---- help ---- */

enum { WIDTH = 100, OPTION_COLUMN = 26 };

/* Words of a text, filled into lines from `column` on; stands at column `at`. */
static void fill(FILE *f, const char *text, int column, int at)
{
	while (*text) {
		size_t n = strcspn(text, " \n");
		if (at > column && at + 1 + (int)n > WIDTH) {
			fprintf(f, "\n%*s", column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', f);
			at++;
		}
		fwrite(text, 1, n, f);
		at += (int)n;
		text += n;
		if (text[0] == '\n' && text[1] == '\n') {
			fprintf(f, "\n\n%*s", column, "");
			at = column;
		}
		text += strspn(text, " \n");
	}
	fputc('\n', f);
}

static void help_option(FILE *f, const OptionView *v)
{
	int n = fprintf(f, "  --%s%s", v->library && !v->argument ? "[no-]" : "", v->name);
	if (v->argument)
		n += fprintf(f, v->argument[0] == '[' ? "%s" : " %s", v->argument);
	if (n >= OPTION_COLUMN) {
		fputc('\n', f);
		n = 0;
	}
	fprintf(f, "%*s", OPTION_COLUMN - n, "");
	char text[sizeof v->help + 40];
	snprintf(text, sizeof text, v->standard && v->argument ? "%s [%s]" : "%s", v->help, v->standard);
	fill(f, text, OPTION_COLUMN, OPTION_COLUMN);
}

static void help_group(FILE *f, const OptionGroup *g)
{
	OptionView v;
	fprintf(f, "\n%s%s\n", g->heading, g->list ? "" : " (default in brackets; the topology file may set others)");
	for (size_t i = 0; group_view(g, i, &v); i++)
		help_option(f, &v);
}

static void help_one(FILE *f, const Command *c)
{
	fprintf(f, "usage: microprop %s %s%s\n\n", c->name, c->operands,
	        c->group->heading && !strstr(c->operands, "[OPTIONS]") ? " [OPTIONS]" : "");
	fill(f, c->about, 0, 0);
	for (const OptionGroup *g = c->group; g->heading; g++)
		help_group(f, g);
	fputs("\nExamples\n", f);
	for (const Example *e = c->example; e->line; e++)
		fprintf(f, "  %s\n      %s\n", e->line, e->says);
}

void manual_help(FILE *f, const Command *c)
{
	if (c) {
		help_one(f, c);
		return;
	}
	fputs("usage: microprop COMMAND [OPERANDS] [OPTIONS]\n\n", f);
	fill(f, about, 0, 0);
	fputs("\nCommands\n", f);
	for (size_t i = 0; commands[i]; i++)
		fprintf(f, "  %-8s %-28s %s\n", commands[i]->name, commands[i]->operands, commands[i]->summary);
	help_group(f, &global_group);
	fputs("\n'microprop COMMAND --help' explains a command, with examples. A first run:\n"
	      "  microprop train example:xor\n",
	      f);
}

/* ---- commands of a command ---- */

/* The list that the tool of a command prints: name, operand and options, with tabs between; allocated. */
static TextOut verbs_read(const Command *c)
{
	TextOut v = { 0 };
	mp_tool *tool = NULL;
	if (c->tool)
		mp_tool_run(&tool, c->tool, 1, (const char *const[]){ "commands" }, text_append, &v, NULL);
	mp_tool_close(tool);
	return v;
}

/* The next line in three parts, NULL after the last. */
static char *verb_next(char **at, char **operand, char **fits)
{
	char *line = *at, *end = line ? strchr(line, '\n') : NULL;
	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	*operand = strchr(line, '\t');
	*fits = *operand ? strchr(*operand + 1, '\t') : NULL;
	if (!*fits)
		return NULL;
	*(*operand)++ = '\0';
	*(*fits)++ = '\0';
	return line;
}

static bool verb_has(const char *fits, const char *option)
{
	size_t n = strlen(option);
	if (!strcmp(option, "machine") || !strcmp(option, "json"))
		return true;
	for (const char *p = fits; (p = strstr(p, option)); p += n)
		if (p > fits && p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

/* The paragraph of a text that begins with a name and a blank or colon. */
static void verb_about(FILE *f, const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = text; p; p = strstr(p, "\n\n") ? strstr(p, "\n\n") + 2 : NULL) {
		if (strncmp(p, name, n) || !strchr(" :", p[n]))
			continue;
		const char *end = strstr(p, "\n\n");
		char line[1000];
		snprintf(line, sizeof line, "%.*s", (int)(end ? end - p : (long)strlen(p)), p);
		fill(f, line, 0, 0);
	}
}

bool manual_verb(FILE *f, const Command *c, const char *name)
{
	TextOut verbs = verbs_read(c);
	char *at = verbs.text, *verb, *operand, *fits;
	while ((verb = verb_next(&at, &operand, &fits)) && strcmp(verb, name))
		continue;
	if (verb) {
		OptionView v;
		fprintf(f, "usage: microprop %s %s%s%s [OPTIONS]\n\n", c->name, verb, *operand ? " " : "", operand);
		verb_about(f, c->about, verb);
		fputs("\nOptions\n", f);
		for (const OptionGroup *g = c->group; g->heading; g++)
			for (size_t i = 0; group_view(g, i, &v); i++)
				if (verb_has(fits, v.name))
					help_option(f, &v);
		size_t n = strlen(verb), before = sizeof "microprop  " - 1 + strlen(c->name), shown = 0;
		for (const Example *e = c->example; e->line; e++)
			if (strlen(e->line) >= before + n && !strncmp(e->line + before, verb, n) &&
			    strchr(" ", e->line[before + n]))
				fprintf(f, "%s  %s\n      %s\n", shown++ ? "" : "\nExamples\n", e->line, e->says);
	}
	free(verbs.text);
	return verb;
}

/* ---- help for other programs ---- */

/* What a form with a field for each training option needs besides. */
static void json_library(Json *j, const mp_option *o)
{
	static const char *const types[] = { "int", "real", "choice", "flag", "text", "list" };
	json_text(j, "owner", o->owner);
	json_text(j, "type", types[o->type]);
	json_bool(j, "changes_result", o->changes_result);
	if (o->type == MP_OPTION_INT || o->type == MP_OPTION_REAL) {
		json_number(j, "min", o->min);
		json_number(j, "max", o->max);
	}
	if (!o->choices)
		return;
	json_open(j, "choices", '[');
	for (size_t i = 0; o->choices[i]; i++)
		json_text(j, NULL, o->choices[i]);
	json_close(j, ']');
}

static void json_options(Json *j, const OptionGroup *g)
{
	OptionView v;
	for (size_t i = 0; group_view(g, i, &v); i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", v.name);
		json_text(j, "argument", v.argument);
		json_text(j, "default", v.standard);
		json_text(j, "help", v.help);
		json_text(j, "heading", g->heading);
		if (v.library)
			json_library(j, v.library);
		json_close(j, '}');
	}
}

static void json_command(Json *j, const Command *c)
{
	json_text(j, "name", c->name);
	json_text(j, "operands", c->operands);
	json_text(j, "summary", c->summary);
	json_text(j, "about", c->about);
	json_open(j, "options", '[');
	for (const OptionGroup *g = c->group; g->heading; g++)
		json_options(j, g);
	json_close(j, ']');
	json_open(j, "examples", '[');
	for (const Example *e = c->example; e->line; e++) {
		json_open(j, NULL, '{');
		json_text(j, "line", e->line);
		json_text(j, "says", e->says);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void manual_json(const Command *c)
{
	Json j = { .f = stdout, .lines = true };
	json_open(&j, NULL, '{');
	if (c) {
		json_command(&j, c);
		json_end(&j);
		return;
	}
	json_text(&j, "name", "microprop");
	json_text(&j, "version", mp_version());
	json_open(&j, "options", '[');
	json_options(&j, &global_group);
	json_close(&j, ']');
	json_open(&j, "commands", '[');
	for (size_t i = 0; commands[i]; i++) {
		json_open(&j, NULL, '{');
		json_command(&j, commands[i]);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_end(&j);
}

/* ---- the man page ---- */

/* Text for roff: a backslash and a dash are written with a backslash, a dot or quote cannot start a line. */
static void roff(const char *text)
{
	bool start = true;
	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (text[0] == '\n' && text[1] == '\n') {
			fputs("\n.PP", stdout);
			continue;
		}
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
		start = *text == '\n';
	}
}

static void roff_options(const OptionGroup *g)
{
	OptionView v;
	printf(".PP\n%s:\n", g->heading);
	for (size_t i = 0; group_view(g, i, &v); i++) {
		fputs(v.library && !v.argument ? ".TP\n\\fB\\-\\-[no\\-]" : ".TP\n\\fB\\-\\-", stdout);
		roff(v.name);
		fputs("\\fR", stdout);
		if (v.argument) {
			fputs(v.argument[0] == '[' ? "\\fI" : " \\fI", stdout);
			roff(v.argument);
			fputs("\\fR", stdout);
		}
		putchar('\n');
		roff(v.help);
		if (v.standard && v.argument) {
			fputs(" (default ", stdout);
			roff(v.standard);
			putchar(')');
		}
		putchar('\n');
	}
}

static void roff_command(const Command *c)
{
	printf(".SS microprop %s ", c->name);
	roff(c->operands);
	putchar('\n');
	roff(c->about);
	putchar('\n');
	for (const OptionGroup *g = c->group; g->heading; g++)
		roff_options(g);
}

static void roff_page(void)
{
	printf(".TH MICROPROP 1 \"\" \"microprop %s\"\n.SH NAME\n", mp_version());
	puts("microprop \\- compile and train back\\-propagation networks");
	puts(".SH SYNOPSIS");
	for (size_t i = 0; commands[i]; i++) {
		printf("\\fBmicroprop %s\\fR ", commands[i]->name);
		roff(commands[i]->operands);
		puts(commands[i]->group->heading ? " [\\fIOPTIONS\\fR]\n.br" : "\n.br");
	}
	puts(".SH DESCRIPTION");
	roff(about);
	puts("\nResults go to standard output, talk to standard error.\n.SH OPTIONS");
	roff_options(&global_group);
	puts(".SH COMMANDS\nOptions are written \\fB\\-\\-name value\\fR or \\fB\\-\\-name=value\\fR; a switch has a\n"
	     "\\fB\\-\\-no\\-\\fR form. \\fB\\-\\-\\fR ends the options. Training options of a topology file\n"
	     "count less than those of the command line.");
	for (size_t i = 0; commands[i]; i++)
		roff_command(commands[i]);
	puts(".SH EXIT STATUS");
	for (size_t i = 0; i < COUNT(exits); i++) {
		printf(".TP\n.B %s\n", exits[i].status);
		roff(exits[i].says);
		putchar('\n');
	}
	puts(
		".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set and not empty, nothing is coloured.\n"
		".TP\n.B LC_ALL, LC_CTYPE, LANG\n"
		"In a UTF\\-8 locale curves are drawn in braille dots, elsewhere in ASCII.\n"
		".TP\n.B MICROPROP_ISA\nKernels of target cpu: generic, neon, avx2, avx512 or amx. Default: the best there "
		"is.\n"
		".TP\n.B MICROPROP_CUDA_DEVICE\nThe GPU of target cuda, a number from 0, where \\-\\-device is not given.\n"
		".TP\n.B MICROPROP_PIN\n0: threads are not bound to cores. Default: they are, if there is one for every core.");
	puts(".SH FILES\nThe folder of \\fBtrain \\-\\-run\\fR holds");
	for (size_t i = 0; i < COUNT(files); i++) {
		printf(".TP\n.I %s\n", files[i].name);
		roff(files[i].says);
		putchar('\n');
	}
	puts(".SH EXAMPLES");
	for (size_t i = 0; commands[i]; i++) {
		for (const Example *e = commands[i]->example; e->line; e++) {
			fputs(".TP\n\\fB", stdout);
			roff(e->line);
			fputs("\\fR\n", stdout);
			roff(e->says);
			putchar('\n');
		}
	}
	puts(".SH SEE ALSO\n.BR microprop (3),\n.BR topology (5),\n.BR microprop\\-cases (5)");
}

static void options_list(void)
{
	OptionView v;
	const OptionGroup all = { "", NULL, "*" };
	for (size_t i = 0; group_view(&all, i, &v); i++)
		printf("%s\t%s\t%s\n", v.name, v.argument ? v.argument : "on|off", v.library->default_value);
}

static int pick(const char *option, const char *word, const char *const *words, void (*const *print)(void))
{
	char list[80] = "";
	for (size_t i = 0; words[i]; i++) {
		size_t n = strlen(list);
		if (!strcmp(word, words[i])) {
			print[i]();
			return EXIT_DONE;
		}
		snprintf(list + n, sizeof list - n, "%s%s", i ? " or " : "write ", words[i]);
	}
	complain(list, "%s: there is no '%s'", option, word);
	return EXIT_USAGE;
}

int manual_print(const char *which)
{
	return pick("--man", which, (const char *const[]){ "1", "options", NULL },
	            (void (*const[])(void)){ roff_page, options_list });
}

/* ---- completion ---- */

/* The words of "all|N|1" that can be typed as they are: all, 1. */
static bool choices(const char *argument)
{
	bool any = false;
	for (const char *s = argument; s && strchr(argument, '|'); s = strchr(s, '|') ? strchr(s, '|') + 1 : NULL) {
		if (isupper((unsigned char)*s))
			continue;
		printf("%s%.*s", any ? " " : "", (int)strcspn(s, "|"), s);
		any = true;
	}
	return any;
}

static void complete_values(const Command *c)
{
	OptionView v;
	for (const OptionGroup *g = c->group; g->heading; g++) {
		for (size_t i = 0; group_view(g, i, &v); i++) {
			if (!v.argument || !strchr(v.argument, '|'))
				continue;
			printf("\t%s:--%s) list=\"", c->name, v.name);
			choices(v.argument);
			puts("\" ;;");
		}
	}
}

static void complete_options(const OptionGroup *g)
{
	OptionView v;
	for (size_t i = 0; group_view(g, i, &v); i++) {
		printf(" --%s", v.name);
		if (v.library && !v.argument)
			printf(" --no-%s", v.name);
	}
}

/* Names of a command's commands, with a blank before each. */
static void complete_verbs(const Command *c)
{
	TextOut verbs = verbs_read(c);
	char *at = verbs.text, *verb, *operand, *fits;
	while ((verb = verb_next(&at, &operand, &fits)))
		printf(" %s", verb);
	free(verbs.text);
}

/* Sets list from command, prev and cur: text that bash and zsh read alike. */
static void completion_cases(void)
{
	puts("\tcase \"$command:$prev\" in");
	for (size_t i = 0; commands[i]; i++)
		complete_values(commands[i]);
	for (size_t i = 0; commands[i]; i++) {
		if (!commands[i]->tool)
			continue;
		printf("\t%s:%s) list=\"", commands[i]->name, commands[i]->name);
		complete_verbs(commands[i]);
		puts("\" ;;");
	}
	fputs("\thelp:*|:*) list=\"", stdout);
	for (size_t i = 0; commands[i]; i++)
		printf("%s%s", i ? " " : "", commands[i]->name);
	complete_options(&global_group);
	puts("\" ;;\n\t*) [[ $cur == -* ]] && case \"$command\" in");
	for (size_t i = 0; commands[i]; i++) {
		printf("\t\t%s) list=\"--help", commands[i]->name);
		for (const OptionGroup *g = commands[i]->group; g->heading; g++)
			complete_options(g);
		puts("\" ;;");
	}
	puts("\t\tesac ;;\n\tesac");
}

static void completion_bash(void)
{
	puts("# bash completion for microprop\n"
	     "_microprop() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} list=\n"
	     "\tCOMPREPLY=()\n"
	     "\t[ \"$COMP_CWORD\" = 1 ] && command=");
	completion_cases();
	puts("\t[ -n \"$list\" ] && COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
	     "\treturn 0\n"
	     "}\n"
	     "complete -o default -o bashdefault -F _microprop microprop   # no words: names of files");
}

static void completion_zsh(void)
{
	puts("#compdef microprop\n"
	     "_microprop() {\n"
	     "\tlocal cur=$PREFIX prev=${words[CURRENT-1]} command=${words[2]} list=\n"
	     "\t(( CURRENT == 2 )) && command=");
	completion_cases();
	puts("\tif [[ -n $list ]]; then compadd -- ${=list}; else _files; fi\n"
	     "}\n"
	     "_microprop \"$@\"");
}

/* Text in single quotes. */
static void fish_text(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('\'');
}

static void fish_options(const OptionGroup *g, const char *when)
{
	OptionView v;
	for (size_t i = 0; group_view(g, i, &v); i++) {
		printf("complete -c microprop -n '%s' -l %s", when, v.name);
		if (v.argument && strchr(v.argument, '|')) {
			fputs(" -x -a '", stdout);
			choices(v.argument);
			putchar('\'');
		} else if (v.argument)
			fputs(" -r", stdout);
		fputs(" -d ", stdout);
		fish_text(v.help);
		putchar('\n');
		if (v.library && !v.argument)
			printf("complete -c microprop -n '%s' -l no-%s\n", when, v.name);
	}
}

static void completion_fish(void)
{
	puts("# fish completion for microprop");
	fish_options(&global_group, "__fish_use_subcommand");
	for (size_t i = 0; commands[i]; i++) {
		const Command *c = commands[i];
		char when[80];
		printf("complete -c microprop -n __fish_use_subcommand -f -a %s -d ", c->name);
		fish_text(c->summary);
		putchar('\n');
		snprintf(when, sizeof when, "__fish_seen_subcommand_from %s", c->name);
		for (const OptionGroup *g = c->group; g->heading; g++)
			fish_options(g, when);
		if (!c->tool)
			continue;
		printf("complete -c microprop -n '%s' -a '", when);
		complete_verbs(c);
		puts("'");
	}
}

int manual_completion(const char *shell)
{
	return pick("--completion", shell, (const char *const[]){ "bash", "zsh", "fish", NULL },
	            (void (*const[])(void)){ completion_bash, completion_zsh, completion_fish });
}
