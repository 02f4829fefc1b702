/* SPDX-License-Identifier: MIT */
/* microprop gf11 report. Out: the report's statements, section by section, each with a verdict and the command that
 * shows it (statements.def), as the tables of doc/report.md; errata of the print; counts. A test runs the commands. */
#include <string.h>

#include "gf11_study.h"

enum { AS_STATED, DIFFERENT, MISSING, VERDICTS };
static const char *const verdict_names[VERDICTS] = { "as stated", "different", "missing" };

typedef struct Statement {
	const char *section, *text;
	int verdict;
	const char *why; /* of a difference, or a remark */
	const char *command, *shows;
} Statement;
static const Statement statements[] = {
#define STATEMENT(section, text, verdict, why, command, shows) { section, text, verdict, why, command, shows },
#define ERRATUM(section, text)
#include "statements.def"
};

static const struct {
	const char *section, *text;
} errata[] = {
#define STATEMENT(section, text, verdict, why, command, shows)
#define ERRATUM(section, text) { section, text },
#include "statements.def"
};

static const Column columns[] = {
	{ .key = "section" }, { .key = "statement" }, { .key = "verdict" },
	{ .key = "why" },     { .key = "command" },   { .key = "shows" },
};

void run_report(CommandRun *c)
{
	uint64_t count[VERDICTS] = { 0 };
	Table t = json_table(c, columns, COUNT(columns));
	for (size_t i = 0; i < COUNT(statements); i++)
		count[statements[i].verdict]++;
	buf_printf(c->text, "%zu statements: %llu as stated, %llu different, %llu missing.\n", COUNT(statements),
	           (unsigned long long)count[AS_STATED], (unsigned long long)count[DIFFERENT],
	           (unsigned long long)count[MISSING]);
	jw_count(c->json, "statements", COUNT(statements));
	jw_count(c->json, "as_stated", count[AS_STATED]);
	jw_count(c->json, "different", count[DIFFERENT]);
	jw_count(c->json, "missing", count[MISSING]);
	buf_puts(c->text, "\n| § | statement | verdict | remark | shown by |\n|---|---|---|---|---|\n");
	table_start(&t, "rows");
	for (size_t i = 0; i < COUNT(statements); i++) {
		const Statement *s = &statements[i];
		buf_printf(c->text, "| %s | %s | %s | %s | `%s` |\n", s->section, s->text, verdict_names[s->verdict], s->why,
		           s->command);
		table_row(&t, (TableCell[]){ tc_text(s->section), tc_text(s->text), tc_text(verdict_names[s->verdict]),
		                             tc_text(s->why), tc_text(s->command), tc_text(s->shows) });
	}
	table_end(&t);
	buf_puts(c->text, "\n| § | erratum of the print |\n|---|---|\n");
	jw_start(c->json, "errata", '[');
	for (size_t i = 0; i < COUNT(errata); i++) {
		buf_printf(c->text, "| %s | %s |\n", errata[i].section, errata[i].text);
		jw_start(c->json, NULL, '{');
		jw_text(c->json, "section", errata[i].section);
		jw_text(c->json, "text", errata[i].text);
		jw_end(c->json, '}');
	}
	jw_end(c->json, ']');
	buf_puts(c->text, "\n");
	report_end(c, 0, 0);
}
