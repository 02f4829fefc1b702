/* SPDX-License-Identifier: MIT */
/* The machine of 1989, in the page: commands of `microprop gf11`, with --json.
 *
 * In: a query: a command, numbers, and words of the tables here. Out: the command's JSON object.
 * Must hold: no word of a query reaches a command unless it is a number or stands in a table; files that a command
 * reads (a machine with other parameters, a network of layers, a permutation) are made here, in memory. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page.h"

enum { MOST_WORDS = 40, MOST_FAULTS = 16, MOST_UNITS = 2000 };

typedef struct Call {
	const ViewRequest *q;
	const char *words[MOST_WORDS];
	int count;
	char text[4096]; /* of the words */
	size_t used;
	int file[4]; /* in memory, that words name */
	int files;
	char folder[200];  /* for files that the command writes; "": none */
	const char *wrong; /* what the query has wrong; NULL: nothing */
} Call;

static void word_add(Call *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void word_add(Call *c, const char *fmt, ...)
{
	va_list ap;
	size_t room = sizeof c->text - c->used;
	va_start(ap, fmt);
	int n = vsnprintf(c->text + c->used, room, fmt, ap);
	va_end(ap);
	if (c->count == MOST_WORDS || n < 0 || (size_t)n >= room) {
		c->wrong = "the query is too long";
		return;
	}
	c->words[c->count++] = c->text + c->used;
	c->used += (size_t)n + 1;
}

/* A copy to be taken apart; nothing is cut off: what is checked is what is passed on. */
static bool query_copy(Call *c, char *copy, size_t size, const char *text)
{
	bool fits = strlen(text) < size;
	snprintf(copy, size, "%s", fits ? text : "");
	if (!fits)
		c->wrong = "the query is too long";
	return fits;
}

/* A file in memory; its name goes after `option`. */
static void file_add(Call *c, const char *option, const char *text)
{
	int fd = c->files < (int)COUNT(c->file) ? memory_file("microprop-view") : -1;
	size_t len = strlen(text);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len) {
		c->wrong = "there is no memory for it";
		if (fd >= 0)
			close(fd);
		return;
	}
	c->file[c->files++] = fd;
	word_add(c, "%s/proc/self/fd/%d", option, fd);
}

/* Ends the text at the next mark and moves it behind that; NULL: there is no more text. */
static char *part_take(char **text, char mark)
{
	char *part = *text, *end = part ? strchr(part, mark) : NULL;
	*text = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return part;
}

static bool is_number(const char *s, bool whole)
{
	size_t n = strspn(s, whole ? "0123456789" : "0123456789.");
	return n && n <= 12 && !s[n] && isdigit((unsigned char)s[0]);
}

static bool in_list(const char *word, const char *const *list)
{
	while (*list && strcmp(*list, word) != 0)
		list++;
	return *list;
}

/* An option that is one word of a list. */
static void choice_add(Call *c, const char *name, const char *const *list)
{
	const char *value = c->q->argument(c->q, name);
	if (value && in_list(value, list))
		word_add(c, "--%s=%s", name, value);
	else if (value)
		c->wrong = "a choice is not one of those there are";
}

static void number_add(Call *c, const char *name)
{
	const char *value = c->q->argument(c->q, name);
	if (value && is_number(value, true))
		word_add(c, "--%s=%s", name, value);
	else if (value)
		c->wrong = "a number is none";
}

static void flag_add(Call *c, const char *name)
{
	if (c->q->argument(c->q, name))
		word_add(c, "--%s", name);
}

static const char *const sums[] = { "ring", "tree", "pipelined", "halving", NULL };
static const char *const compilers[] = { "1989", "best", NULL };

/* ---- a machine with other parameters, a network of layers ------------------------------------------ */

/* A member of what `gf11 COMMAND --json` prints; NULL: it failed. */
static json_t *list_read(const char *command, const char *member)
{
	const char *const words[] = { command, "--json" };
	TextOut out = { 0 };
	mp_tool *tool = NULL;
	mp_tool_run(&tool, "gf11", COUNT(words), words, text_append, &out, NULL);
	mp_tool_close(tool);
	json_t *all = out.text ? json_loads(out.text, 0, NULL) : NULL;
	json_t *list = json_incref(json_object_get(all, member));
	json_decref(all);
	free(out.text);
	return list;
}

/* "alu-latency:30,clock:25" */
static void machine_add(Call *c)
{
	const char *given = c->q->argument(c->q, "p");
	if (!given || !*given)
		return;
	char list[2000], *next = list, *one, text[4000] = "base gf11\n";
	if (!query_copy(c, list, sizeof list, given))
		return;
	json_t *known = list_read("machine", "parameters"); /* with their units */
	while ((one = part_take(&next, ',')) && !c->wrong) {
		char *value = strchr(one, ':');
		if (value)
			*value++ = '\0';
		json_t *row = value ? json_object_get(known, one) : NULL;
		const char *unit = json_string_value(json_object_get(row, "unit"));
		size_t n = strlen(text);
		if (!row || !is_number(value, false))
			c->wrong = "there is no such parameter, or its value is no number";
		else if (snprintf(text + n, sizeof text - n, "%s %s %s assumed\n", one, value, unit ? unit : "") >=
		         (int)(sizeof text - n))
			c->wrong = "the query is too long";
	}
	json_decref(known);
	if (!c->wrong)
		file_add(c, "--machine=", text);
}

/* "203-60-26": layers of a network; option: what its file goes after. */
static void layers_add(Call *c, const char *option)
{
	const char *given = c->q->argument(c->q, "layers");
	if (!given || !*given)
		return;
	char list[100], *next = list, *one, text[2000] = "defaults 1989\n";
	unsigned long units[8];
	int n = 0;
	if (!query_copy(c, list, sizeof list, given))
		return;
	while ((one = part_take(&next, '-')) && !c->wrong) {
		units[n] = is_number(one, true) ? strtoul(one, NULL, 10) : 0;
		if (!units[n] || units[n] > MOST_UNITS || ++n == (int)COUNT(units))
			c->wrong = "write layers as 203-60-26: two to seven, each of 1 to 2000 units";
	}
	if (n < 2)
		c->wrong = "write layers as 203-60-26: two to seven, each of 1 to 2000 units";
	for (int i = 0; i < n && !c->wrong; i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof text - at, "group layer%d %lu%s\n", i, units[i],
		         !i           ? " input"
		         : i == n - 1 ? " output"
		                      : "");
	}
	for (int i = 1; i < n && !c->wrong; i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof text - at, "connect layer%d, true -> layer%d\n", i - 1, i);
	}
	if (!c->wrong)
		file_add(c, option, text);
}

/* ---- the commands ---------------------------------------------------------------------------------- */

static void machine_call(Call *c) { (void)c; }

/* Without a routine: their names. */
static void microcode_call(Call *c)
{
	const char *name = c->q->argument(c->q, "routine");
	json_t *known = name ? list_read("microcode", "routines") : NULL, *row;
	size_t i;
	if (name)
		c->wrong = "there is no such routine";
	json_array_foreach(known, i, row)
	{
		const char *one = json_string_value(json_object_get(row, "name"));
		if (name && one && !strcmp(one, name)) {
			word_add(c, "%s", one);
			c->wrong = NULL;
		}
	}
	json_decref(known);
}

static void program_call(Call *c)
{
	layers_add(c, "");
	number_add(c, "procs");
	number_add(c, "cases");
	number_add(c, "routine");
	flag_add(c, "timeline");
	choice_add(c, "sum", sums);
	choice_add(c, "compiler", compilers);
}

/* procs: numbers with commas between. */
static void sweep_call(Call *c)
{
	const char *procs = c->q->argument(c->q, "procs");
	if (procs && *procs && strlen(procs) < 200 && !procs[strspn(procs, "0123456789,")])
		word_add(c, "procs=%s", procs);
	else
		c->wrong = "procs are numbers with commas between";
	layers_add(c, "--net=");
	number_add(c, "cases");
	choice_add(c, "sum", sums);
	choice_add(c, "compiler", compilers);
}

static void table1_call(Call *c) { word_add(c, "--compiler=1989"); }

/* ring, tree and halving; K is the step. */
static void switch_call(Call *c)
{
	static const char *const kinds[] = { "ring", "tree", "halving", "random", NULL };
	const char *kind = c->q->argument(c->q, "kind");
	unsigned step = (unsigned)query_count(c->q, "step", 0);
	if (!kind || !in_list(kind, kinds) || step > 9) {
		c->wrong = "a permutation is ring, tree, halving or random, with a step from 0 to 9";
	} else if (!strcmp(kind, "ring")) {
		word_add(c, "ring");
	} else if (strcmp(kind, "halving") != 0) {
		word_add(c, "%s:%u", kind, step);
	} else {
		char *text = calloc(1, 16 << 10);
		size_t n = 0;
		for (unsigned i = 0; text && i < 512; i++) /* partners exchange */
			n += (size_t)snprintf(text + n, (16 << 10) - n, "%u %u\n", i, i ^ (256u >> (step > 8 ? 8 : step)));
		file_add(c, "", text ? text : "");
		free(text);
	}
	word_add(c, "--paths");
}

/* n: a whole number, r: a rate, m: a memory, s: a stage of the switch. */
static const struct {
	const char *kind, *form;
} fault_forms[] = {
	{ "dead", "n" },      { "stuck", "nmnn" },  { "alu", "nr" },   { "port", "n" },
	{ "misroute", "nr" }, { "crossbar", "sn" }, { "link", "snn" },
};

static bool fault_fits(char *spec)
{
	static const char *const memories[] = { "reg", "sram", "dram", NULL };
	static const char *const stages[] = { "input", "middle", "output", NULL };
	char *next = spec, *kind = part_take(&next, ':');
	size_t i = 0;
	while (kind && i < COUNT(fault_forms) && strcmp(fault_forms[i].kind, kind) != 0)
		i++;
	if (!kind || i == COUNT(fault_forms))
		return false;
	for (const char *f = fault_forms[i].form; *f; f++) {
		char *part = next ? part_take(&next, ':') : NULL;
		bool fits = part && (*f == 'm'   ? in_list(part, memories)
		                     : *f == 's' ? in_list(part, stages)
		                                 : is_number(part, *f == 'n'));
		if (!fits)
			return false;
	}
	return !next;
}

static void diagnose_call(Call *c)
{
	const char *given = c->q->argument(c->q, "faults");
	char list[2000], *next = list, *one, copy[100];
	if (!query_copy(c, list, sizeof list, given ? given : ""))
		return;
	for (int n = 0; (one = part_take(&next, ',')) && *one && !c->wrong; n++) {
		if (!query_copy(c, copy, sizeof copy, one))
			return;
		if (n == MOST_FAULTS || !fault_fits(copy))
			c->wrong = "a fault is such as dead:77, stuck:77:sram:1200:3, link:input:3:5; 16 at most";
		else
			word_add(c, "--fault=%s", one);
	}
}

/* Figures 8 to 11 of the report go to files, in a folder made for them. */
static void figures_call(Call *c)
{
	uint64_t number = query_count(c->q, "n", 0);
	const char *place = getenv("TMPDIR");
	if (number < 8 || number > 11) {
		c->wrong = "the figures are 8 to 11";
		return;
	}
	snprintf(c->folder, sizeof c->folder, "%s/microprop-view-XXXXXX", place ? place : "/tmp");
	if (strlen(c->folder) > sizeof c->folder - 40 || !mkdtemp(c->folder)) {
		c->folder[0] = '\0';
		c->wrong = "no folder can be made in the folder of temporary files";
		return;
	}
	word_add(c, "%u", (unsigned)number);
	word_add(c, "--out=%s", c->folder);
}

/* The figure's numbers, as CSV; its folder is removed. */
static void figure_answer(const Call *c, ViewAnswer *a)
{
	static const char *const endings[] = { "svg", "csv" };
	char path[300], text[64 << 10];
	size_t n = 0;
	for (size_t i = 0; i < COUNT(endings); i++) {
		snprintf(path, sizeof path, "%s/figure%s.%s", c->folder, c->words[1], endings[i]);
		FILE *f = i ? fopen(path, "re") : NULL;
		if (f) {
			n = fread(text, 1, sizeof text, f);
			fclose(f);
		}
		unlink(path);
	}
	rmdir(c->folder);
	if (a->status != 200)
		return;
	free(a->body);
	answer_bytes(a, "text/csv; charset=utf-8", text, n);
}

static const struct {
	const char *name;
	void (*make)(Call *c);
} calls[] = {
	{ "machine", machine_call },   { "microcode", microcode_call }, { "program", program_call },
	{ "sweep", sweep_call },       { "table1", table1_call },       { "switch", switch_call },
	{ "diagnose", diagnose_call }, { "figures", figures_call },
};

static void call_run(const Call *c, ViewAnswer *a)
{
	TextOut out = { 0 };
	mp_tool *tool = NULL;
	mp_status status = mp_tool_run(&tool, "gf11", c->count, c->words, text_append, &out, NULL);
	if (status != MP_OK || !out.text) {
		answer_error(a, 409, "%s", tool ? mp_tool_messages(tool) : "out of memory");
		free(out.text);
	} else {
		*a = (ViewAnswer){ .status = 200, .type = "application/json", .body = out.text, .len = out.len };
	}
	mp_tool_close(tool);
}

void gf11_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	const char *name = q->argument(q, "do");
	Call c = { .q = q };
	size_t i = 0;
	(void)p;
	while (i < COUNT(calls) && (!name || strcmp(calls[i].name, name) != 0))
		i++;
	if (i == COUNT(calls)) {
		answer_error(a, 404, "the machine does no such thing");
		return;
	}
	word_add(&c, "%s", calls[i].name);
	calls[i].make(&c);
	machine_add(&c);
	word_add(&c, "--json");
	if (c.wrong)
		answer_error(a, 400, "%s", c.wrong);
	else
		call_run(&c, a);
	if (c.folder[0])
		figure_answer(&c, a);
	for (int k = 0; k < c.files; k++)
		close(c.file[k]);
}
