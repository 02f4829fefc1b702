/* SPDX-License-Identifier: MIT */
/* Topology files (doc/topology.md).  In: text.  Out: a Net with groups, blocks, copies and options, linked and checked.
 *
 * A function for each statement; each returns false after recording an error, and parsing goes on at the next
 * statement.  A group whose statement is faulty is declared with size 0, and errors about it are suppressed. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "parse.h"

enum { MAX_INCLUDES = 16, MAX_COMPARED = 10000 };

struct Open { /* a file being read */
	const Src *src;
	Loc at; /* the include that opened it */
	struct Open *up;
	int depth;
};

typedef struct Statement {
	const char *word;
	bool (*parse)(Parser *p);
} Statement;
static const Statement *statement_find(const Token *t);

/* ---- tokens and errors ---- */

Loc token_at(const Parser *p) { return (Loc){ p->lx.src, p->tok.off }; }

void token_next(Parser *p)
{
	p->past = p->lx.at;
	lex_next(&p->lx, &p->tok);
}

static bool token_is(const Token *t, const char *word)
{
	return t->len == strlen(word) && memcmp(t->s, word, t->len) == 0;
}

bool at_word(const Parser *p, const char *word) { return p->tok.kind == TOK_WORD && token_is(&p->tok, word); }

bool at_end(const Parser *p) { return p->tok.kind == TOK_END || p->tok.kind == TOK_EOF; }

const char *remedy_printf(Parser *p, const char *fmt, ...)
{
	Buf b = { .arena = &p->cx->scratch };
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	return b.s;
}

int token_shown(const Token *t) { return t->len < MAX_NAME ? (int)t->len : MAX_NAME; }

/* Is this token the first of an indented line? */
static bool is_indented(const Parser *p)
{
	size_t at = p->tok.off;
	const char *text = p->lx.src->text;
	while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t'))
		at--;
	return at < p->tok.off && (at == 0 || text[at - 1] == '\n');
}

bool unexpected(Parser *p, const char *wanted, const char *remedy)
{
	const Token *t = &p->tok;
	if (t->kind == TOK_BAD)
		return false;
	if (at_end(p))
		error_at(p->cx, (Loc){ p->lx.src, p->past }, remedy, "%s is missing here", wanted);
	else if (statement_find(t) && is_indented(p))
		error_at(p->cx, token_at(p), "start it in the first column: an indented line continues the one above",
		         "'%.*s' is indented", token_shown(t), t->s);
	else
		error_at(p->cx, token_at(p), remedy, "'%.*s' stands where %s should", token_shown(t), t->s, wanted);
	return false;
}

static bool expect_end(Parser *p, const char *remedy)
{
	return at_end(p) || unexpected(p, "the end of the statement", remedy);
}

bool expect_arrow(Parser *p, const char *remedy)
{
	if (p->tok.kind != TOK_ARROW)
		return unexpected(p, "'->'", remedy);
	token_next(p);
	return true;
}

bool expect_real(Parser *p, const char *what, float low, float high, float *v)
{
	if (p->tok.kind != TOK_NUMBER)
		return unexpected(p, what, "write a number, such as 0.5");
	if (!lex_real(&p->tok, v) || *v < low || *v > high) {
		const char *remedy = high < HUGE_VALF   ? remedy_printf(p, "it is a number from %g to %g", low, high)
		                     : low > -HUGE_VALF ? remedy_printf(p, "it is a number from %g up", low)
		                                        : "write a number, such as 0.5 or 1e-3";
		error_at(p->cx, token_at(p), remedy, "%s cannot be '%.*s'", what, token_shown(&p->tok), p->tok.s);
		return false;
	}
	token_next(p);
	return true;
}

bool expect_exact(Parser *p, const char *what, float low, float high, float *v, double *exact)
{
	Token t = p->tok;
	if (!expect_real(p, what, low, high, v))
		return false;
	*exact = number_double(t.s, t.s + t.len);
	return true;
}

/* ---- names ---- */

const char *remedy_near(Parser *p, const char *const *names, size_t count, const char *otherwise)
{
	const Token *t = &p->tok;
	const char *near = NULL;
	if (t->kind == TOK_WORD)
		near = nearest_name(arena_copy(&p->cx->scratch, t->s, t->len), names, count);
	return near ? remedy_printf(p, "did you mean '%s'?", near) : otherwise;
}

static const char *remedy_for_group(Parser *p)
{
	uint32_t count = p->net->groups < MAX_COMPARED ? p->net->groups : MAX_COMPARED;
	const char **names = NEW(&p->cx->scratch, count, const char *);
	for (uint32_t i = 0; i < count; i++)
		names[i] = p->net->group[i].name;
	return remedy_near(p, names, count,
	                   remedy_printf(p, "declare it above: group %.*s SIZE", token_shown(&p->tok), p->tok.s));
}

bool group_named(const Parser *p)
{
	uint32_t number;
	return dict_find(&p->names, (Text){ p->tok.s, (uint32_t)p->tok.len }, &number);
}

bool group_find(Parser *p, int32_t *group)
{
	const Token *t = &p->tok;
	uint32_t number;
	if (t->kind != TOK_WORD)
		return unexpected(p, "a group", "name a group that is declared above");
	if (dict_find(&p->names, (Text){ t->s, (uint32_t)t->len }, &number)) {
		*group = (int32_t)number;
		return true;
	}
	if (statement_find(t) && is_indented(p))
		return unexpected(p, "a group", NULL);
	error_at(p->cx, token_at(p), remedy_for_group(p), "there is no group '%.*s'", token_shown(t), t->s);
	return false;
}

static bool check_new_name(Parser *p)
{
	const Token *t = &p->tok;
	static const char *const rule = "a name starts with a letter and has letters, digits, '_', '-' and '.'";
	if (t->kind != TOK_WORD)
		return unexpected(p, "a name", rule);
	if (statement_find(t) && is_indented(p))
		return unexpected(p, "a name", rule);
	if ((statement_find(t) && !token_is(t, "noise") && !token_is(t, "dropout")) || token_is(t, "true")) {
		error_at(p->cx, token_at(p), "choose another name", "'%.*s' has a meaning of its own and cannot name a group",
		         token_shown(t), t->s);
		return false;
	}
	if (memchr(t->s, '+', t->len)) {
		error_at(p->cx, token_at(p), rule, "'%.*s' is not a name", token_shown(t), t->s);
		return false;
	}
	if (t->len > MAX_NAME) {
		error_at(p->cx, token_at(p), "choose a shorter one", "this name has %zu characters; %d is the limit", t->len,
		         MAX_NAME);
		return false;
	}
	return true;
}

/* ---- group ---- */

/* `integrate input|output`, `dt X` and `start X`, of settling networks. *taken: it was one of them. */
static bool group_settling(Parser *p, Group *g, bool *taken)
{
	float factor;
	bool start = at_word(p, "start") && g->role != ROLE_CONTEXT, dt = at_word(p, "dt");
	*taken = start || dt || at_word(p, "integrate");
	if (!*taken)
		return true;
	if (start ? g->start_stated : dt ? g->dt_stated : g->integrate != INTEGRATE_NONE) {
		error_at(p->cx, token_at(p), "keep one of them", "'%.*s' is given twice", token_shown(&p->tok), p->tok.s);
		return false;
	}
	token_next(p);
	g->start_stated |= start;
	g->dt_stated |= dt;
	if (start)
		return expect_exact(p, "a start value", -HUGE_VALF, HUGE_VALF, &g->start, &g->exact_start);
	if (dt)
		return expect_exact(p, "a factor on dt", 0, 1e6f, &factor, &g->dt_factor);
	for (int i = INTEGRATE_INPUT; i < INTEGRATE_COUNT; i++)
		if (at_word(p, integrate_names[i]))
			g->integrate = i;
	if (!g->integrate)
		return unexpected(p, "what is integrated", "write integrate input (the net input), or integrate output");
	token_next(p);
	return true;
}

/* Fills fn or role, whichever the word names. */
static bool group_word(Parser *p, Group *g)
{
	bool taken, fine = group_settling(p, g, &taken);
	if (!taken)
		fine = group_setting(p, g, &taken);
	if (taken)
		return fine;
	const char *names[FN_COUNT + ROLE_COUNT];
	for (int i = 0; i < FN_COUNT; i++)
		names[i] = unit_fns[i].name;
	memcpy(names + FN_COUNT, role_names, sizeof(char *) * ROLE_COUNT);
	int found = 0;
	while (found < FN_COUNT + ROLE_COUNT && !at_word(p, names[found]))
		found++;
	if (at_word(p, "logistic"))
		found = FN_SIGMOID;
	if (found == FN_COUNT + ROLE_COUNT) {
		const char *remedy = remedy_near(
			p, names, COUNT(names),
			"functions: sigmoid tanh linear relu softmax gaussian sigmoid2 elliott softsign stepwise stepwise_tanh; "
			"roles: input hidden output context; where the network settles: integrate, dt, start; gain error "
			"error-scale "
			"criterion target-radius zero-error-radius decay");
		if (at_word(p, "start"))
			remedy = remedy_printf(p, "write it in the copy: copy GROUP -> %s start 0.5", g->name);
		return unexpected(p, "a function or a role", remedy);
	}
	int *field = found < FN_COUNT ? &g->fn : &g->role;
	if (*field >= 0) {
		error_at(p->cx, token_at(p), "keep one of them", "a group has one %s, '%s' is its second",
		         found < FN_COUNT ? "function" : "role", names[found]);
		return false;
	}
	*field = found < FN_COUNT ? found : found - FN_COUNT;
	token_next(p);
	return true;
}

static bool too_many_units(Parser *p, const Group *g, Loc at)
{
	error_at(p->cx, at, "make the network smaller", "with group '%s' the network has more than %u units", g->name,
	         MAX_UNITS);
	return false;
}

/* Its size is that of the data, known when the file is read for the second time. */
static bool group_open(Parser *p, Group *g)
{
	bool taken = false;
	for (uint32_t i = 0; i < p->net->groups; i++)
		taken |= p->net->group[i].open && p->net->group[i].role == g->role;
	if (g->role != ROLE_INPUT && g->role != ROLE_OUTPUT) {
		error_at(p->cx, g->at, remedy_printf(p, "give its size: group %s SIZE", g->name),
		         "'%s' is neither an input nor an output group: the data does not say how large it is", g->name);
		return false;
	}
	if (taken) {
		error_at(p->cx, g->at, "give the sizes of all but one of them", "'%s' is the second %s group of unknown size",
		         g->name, role_names[g->role]);
		return false;
	}
	if (p->size[g->role] > MAX_UNITS - p->net->units)
		return too_many_units(p, g, g->at);
	g->size = p->size[g->role];
	p->net->open |= g->size == 0;
	return true;
}

static bool group_size(Parser *p, Group *g)
{
	uint64_t size;
	if (at_word(p, "auto")) {
		g->open = true;
		token_next(p);
		return true;
	}
	if (p->tok.kind != TOK_NUMBER)
		return unexpected(p, "the number of units",
		                  remedy_printf(p, "write: group %s SIZE, or auto for that of the data", g->name));
	if (!lex_whole(&p->tok, &size) || size == 0) {
		error_at(p->cx, token_at(p), "give a whole number from 1 up", "a group cannot have '%.*s' units",
		         token_shown(&p->tok), p->tok.s);
		return false;
	}
	if (size > MAX_UNITS || p->net->units + size > MAX_UNITS)
		return too_many_units(p, g, token_at(p));
	g->size = (uint32_t)size;
	token_next(p);
	return true;
}

static bool group_words(Parser *p, Group *g)
{
	while (!at_end(p))
		if (!group_word(p, g))
			return false;
	bool computes = g->role != ROLE_INPUT && g->role != ROLE_CONTEXT;
	if (!computes && g->fn >= 0 && g->fn != FN_LINEAR) {
		error_at(p->cx, g->at, "leave the function out", "%s group '%s' computes nothing: it cannot be %s",
		         role_names[g->role], g->name, unit_fns[g->fn].name);
		return false;
	}
	if (g->role < 0)
		g->role = ROLE_HIDDEN;
	if (g->fn < 0)
		g->fn = !computes                ? FN_LINEAR
		        : g->role == ROLE_OUTPUT ? default_sets[p->net->defaults].output
		                                 : default_sets[p->net->defaults].hidden;
	return true;
}

static bool parse_group(Parser *p)
{
	Net *net = p->net;
	uint32_t other;
	if (!check_new_name(p))
		return false;
	Text name = { p->tok.s, (uint32_t)p->tok.len };
	if (dict_find(&p->names, name, &other)) {
		error_at(p->cx, token_at(p), "choose another name", "there is already a group '%s'", net->group[other].name);
		note_at(p->cx, net->group[other].at, NULL, "it is declared here");
		return false;
	}
	Group g = {
		.name = arena_copy(&p->cx->keep, name.s, name.len), .fn = -1, .role = -1, .dt_factor = 1, .at = token_at(p)
	};
	group_defaults(&g);
	p->given = 0;
	token_next(p);
	bool fine = group_size(p, &g) && group_words(p, &g) && (!g.open || group_open(p, &g));
	if (!fine)
		g.size = 0;
	g.first = net->units;
	net->units += g.size;
	net->inputs += g.role == ROLE_INPUT ? g.size : 0;
	net->outputs += g.role == ROLE_OUTPUT ? g.size : 0;
	net->group = arena_reserve(&p->cx->keep, net->group, net->groups, &p->group_cap, sizeof *net->group);
	net->group[net->groups++] = g;
	dict_add(&p->names, (Text){ g.name, name.len });
	return fine;
}

/* ---- copy ---- */

static bool copy_group(Parser *p, int32_t *group, const Group **g)
{
	if (at_word(p, "true"))
		return unexpected(p, "a group", "write: copy GROUP -> CONTEXT");
	if (!group_find(p, group))
		return false;
	*g = &p->net->group[*group];
	token_next(p);
	if (p->tok.kind == TOK_OPEN)
		return unexpected(p, "the rest of the copy", "copy takes whole groups; give the part a group of its own");
	return true;
}

static bool copy_fits(Parser *p, const Copy *c, const Group *from, const Group *to)
{
	if (to->role != ROLE_CONTEXT) {
		error_at(p->cx, c->at, remedy_printf(p, "declare it: group %s %u context", to->name, from->size),
		         "a copy goes into a context group; '%s' has the role %s", to->name, role_names[to->role]);
		return false;
	}
	if (from == to) {
		error_at(p->cx, c->at, "copy another group into it", "'%s' cannot be a copy of itself", to->name);
		return false;
	}
	if (from->size != to->size) {
		error_at(p->cx, c->at, "give both the same size",
		         "'%s' has %u units, '%s' has %u: a copy needs the same number", from->name, from->size, to->name,
		         to->size);
		return false;
	}
	return true;
}

static bool parse_copy(Parser *p)
{
	Net *net = p->net;
	const Group *from, *to;
	Copy c = { 0 };
	float start = 0;
	double exact_start = 0;
	if (!copy_group(p, &c.from_group, &from) || !expect_arrow(p, "write: copy GROUP -> CONTEXT"))
		return false;
	c.at = token_at(p);
	if (!copy_group(p, &c.to_group, &to))
		return false;
	if (at_word(p, "start")) {
		token_next(p);
		if (!expect_exact(p, "a start value", -HUGE_VALF, HUGE_VALF, &start, &exact_start))
			return false;
	}
	if (!expect_end(p, "after the copy only 'start X' can follow") || from->size == 0 || to->size == 0)
		return false;
	if (!copy_fits(p, &c, from, to))
		return false;
	net->group[c.to_group].start = start;
	net->group[c.to_group].exact_start = exact_start;
	net->copy = arena_reserve(&p->cx->keep, net->copy, net->copies, &p->copy_cap, sizeof *net->copy);
	net->copy[net->copies++] = c;
	return true;
}

/* ---- train ---- */

bool option_once(Parser *p, const char *name, Loc at)
{
	uint32_t i = 0;
	while (i < p->settings && strcmp(p->setting[i].name, name) != 0)
		i++;
	if (i < p->settings && p->setting[i].at.src == at.src) {
		error_at(p->cx, at, "keep one of them", "'%s' is set twice in this file", name);
		note_at(p->cx, p->setting[i].at, NULL, "the first one is here");
		return false;
	}
	p->setting = arena_reserve(&p->cx->scratch, p->setting, i, &p->setting_cap, sizeof *p->setting);
	p->setting[i] = (Setting){ name, at };
	p->settings += i == p->settings;
	return true;
}

static bool train_option(Parser *p)
{
	const char *name = arena_copy(&p->cx->scratch, p->tok.s, p->tok.len), *remedy;
	bool statement = statement_find(&p->tok) && !option_get(&p->cx->scratch, &p->net->options, name);
	if (p->tok.kind != TOK_WORD || statement)
		return unexpected(p, "an option", "write: train OPTION VALUE OPTION VALUE ...");
	Loc at = token_at(p);
	p->past = p->lx.at;
	lex_value(&p->lx, &p->tok);
	if (at_end(p) || p->tok.kind == TOK_BAD)
		return unexpected(p, "the option's value", "every option takes a value; switches take on or off");
	const char *value = lex_text(&p->cx->scratch, &p->tok);
	const char *wrong = option_set(p->cx, &p->net->options, name, value, &remedy);
	if (wrong) {
		error_at(p->cx, option_get(&p->cx->scratch, &p->net->options, name) ? token_at(p) : at, remedy, "%s", wrong);
		return false;
	}
	token_next(p);
	p->training = true;
	return option_once(p, name, at);
}

static bool parse_train(Parser *p)
{
	if (at_end(p))
		return unexpected(p, "an option", "write: train OPTION VALUE OPTION VALUE ...");
	while (!at_end(p))
		if (!train_option(p))
			return false;
	return true;
}

/* ---- names of files ---- */

char *path_resolve(Parser *p, const char *path)
{
	const char *name = p->lx.src->name, *slash = strrchr(name, '/');
	Buf b = { .arena = &p->cx->keep };
	if (slash && path[0] != '/' && strncmp(path, "make:", 5) != 0)
		buf_add(&b, name, (size_t)(slash - name) + 1);
	buf_puts(&b, path);
	return b.s;
}

bool parse_path(Parser *p, const char *what, char **path)
{
	if (p->tok.kind != TOK_TEXT)
		return unexpected(p, "a file's name", remedy_printf(p, "write it in double quotes: %s \"FILE\"", what));
	char *text = lex_text(&p->cx->scratch, &p->tok);
	if (text[0] == '\0') {
		error_at(p->cx, token_at(p), "name a file", "this name is empty");
		return false;
	}
	*path = path_resolve(p, text);
	token_next(p);
	return true;
}

/* ---- defaults ---- */

static bool defaults_find(Parser *p, int *set)
{
	Buf names = { .arena = &p->cx->scratch };
	for (*set = 0; *set < DEFAULTS_COUNT; ++*set)
		if ((p->tok.kind == TOK_NUMBER || p->tok.kind == TOK_WORD) && token_is(&p->tok, default_sets[*set].name))
			return true;
	for (int i = 0; i < DEFAULTS_COUNT; i++)
		buf_printf(&names, "%sdefaults %s", i ? " or " : "write ", default_sets[i].name);
	return unexpected(p, "a set of defaults", names.s);
}

/* What it changes is read from then on: nothing of that may stand before it. */
static bool parse_defaults(Parser *p)
{
	int set;
	Loc at = token_at(p);
	if (!defaults_find(p, &set))
		return false;
	token_next(p);
	if (!expect_end(p, "the year is all that goes here"))
		return false;
	if (set == p->net->defaults && p->defaults.src)
		return true; /* an included file may state the set that holds already */
	if (p->defaults.src) {
		error_at(p->cx, at, "keep one of them", "the file has other defaults already");
		note_at(p->cx, p->defaults, NULL, "they are stated here");
		return false;
	}
	if (p->net->groups || p->training) {
		error_at(p->cx, at, "move this line to the top of the file",
		         "defaults stand before groups and training options, which they change");
		return false;
	}
	p->defaults = at;
	p->net->defaults = set;
	p->net->defaults_stated = true;
	options_init(&p->net->options, set);
	return true;
}

/* ---- include ---- */

static void parse_file(Parser *p, const Src *src, Loc at);

/* Is the file open already?  Then the cycle is shown from both ends. */
static bool include_cycle(Parser *p, const char *path, Loc at)
{
	Loc down = at;
	for (const Open *o = p->open; o; o = o->up) {
		if (strcmp(o->src->name, path) == 0) {
			error_at(p->cx, at, "take one of the includes out", "'%s' includes itself", path);
			if (down.src != at.src || down.off != at.off)
				note_at(p->cx, down, NULL, "it comes here by this include");
			return true;
		}
		down = o->at;
	}
	return false;
}

static bool parse_include(Parser *p)
{
	Loc at = token_at(p);
	char *path;
	struct stat st;
	if (!parse_path(p, "include", &path) || !expect_end(p, "one file's name is all that goes here") ||
	    include_cycle(p, path, at))
		return false;
	if (p->open->depth == MAX_INCLUDES) {
		error_at(p->cx, at, "include fewer files in one another", "includes are nested more than %d deep",
		         MAX_INCLUDES);
		return false;
	}
	int reason = stat(path, &st) < 0 ? errno : S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	if (reason) {
		error_at(p->cx, at, "a relative name starts at the folder of the including file", "cannot read '%s': %s", path,
		         strerror(reason));
		return false;
	}
	Lexer lx = p->lx;
	Token tok = p->tok;
	parse_file(p, src_open(p->cx, &p->cx->keep, path), at);
	p->lx = lx;
	p->tok = tok;
	return true;
}

/* ---- statements ---- */

static const Statement statements[] = {
	{ "connect", parse_connect }, { "group", parse_group },       { "copy", parse_copy },
	{ "train", parse_train },     { "data", parse_data },         { "test", parse_test },
	{ "include", parse_include }, { "defaults", parse_defaults }, { "noise", parse_noise },
	{ "dropout", parse_dropout },
};

static const Statement *statement_find(const Token *t)
{
	if (t->kind == TOK_WORD)
		for (size_t i = 0; i < COUNT(statements); i++)
			if (token_is(t, statements[i].word))
				return &statements[i];
	return NULL;
}

bool is_statement(const Token *t) { return statement_find(t); }

/* The first word of a file is a statement, or nearly one, or one line in four begins with one: else it is something
 * else, and an error for each of its lines would help nobody. */
bool net_looks(const Src *src)
{
	enum { LINES = 100, ONE_IN = 4, LONGEST = 12 };
	const char *names[COUNT(statements)], *p = src->text + src_text_start(src), *end = src->text + src->len;
	uint32_t lines = 0, known = 0;
	for (size_t i = 0; i < COUNT(statements); i++)
		names[i] = statements[i].word;
	for (const char *eol; p < end && lines < LINES; p = eol + 1) {
		char word[LONGEST + 1] = "";
		size_t n = 0;
		eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		while (p + n < eol && n < LONGEST && p[n] >= 'a' && p[n] <= 'z')
			n++;
		memcpy(word, p, n);
		if (p == eol || strchr(" \t\r#", *p))
			continue;
		bool is = false, near = !lines && nearest_name(word, names, COUNT(names));
		for (size_t i = 0; i < COUNT(names); i++)
			is = is || (strcmp(word, names[i]) == 0 && (p + n == eol || strchr(" \t\r", p[n])));
		if (!lines && (is || near))
			return true;
		lines++;
		known += is;
	}
	return known * ONE_IN >= lines;
}

static bool parse_statement(Parser *p)
{
	const Statement *s = statement_find(&p->tok);
	if (s && !is_indented(p)) {
		token_next(p);
		return s->parse(p);
	}
	const char *names[COUNT(statements)];
	for (size_t i = 0; i < COUNT(statements); i++)
		names[i] = statements[i].word;
	const char *remedy = remedy_near(p, names, COUNT(names),
	                                 "a line starts with group, connect, copy, noise, dropout, train, data, test, "
	                                 "include or defaults");
	return unexpected(p, "a statement", remedy);
}

static void parse_file(Parser *p, const Src *src, Loc at)
{
	Open open = { .src = src, .at = at, .up = p->open, .depth = p->open ? p->open->depth + 1 : 0 };
	p->open = &open;
	lex_init(&p->lx, p->cx, src);
	for (token_next(p); p->tok.kind != TOK_EOF;) {
		if (p->tok.kind == TOK_END) {
			token_next(p);
		} else if (!parse_statement(p) && !at_end(p)) {
			lex_skip(&p->lx);
			token_next(p);
		}
	}
	p->open = open.up;
}

/* ---- ticks ---- */

static Loc setting_at(const Parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->settings; i++)
		if (strcmp(p->setting[i].name, name) == 0)
			return p->setting[i].at;
	return (Loc){ 0 };
}

/* Errors of a settling network flow back through all ticks unless bptt says otherwise. */
static void check_ticks(Parser *p)
{
	Options *o = &p->net->options;
	p->net->settles = o->ticks > 1 || o->intervals > 1;
	if (p->net->settles && !setting_at(p, "bptt").src)
		o->bptt = BPTT_FULL;
	if (o->ticks > MAX_TICKS / o->intervals)
		error_at(p->cx, setting_at(p, o->intervals > 1 ? "intervals" : "ticks"), "set fewer ticks or intervals",
		         "%lld intervals of %lld ticks are more than %d ticks", (long long)o->intervals, (long long)o->ticks,
		         MAX_TICKS);
	else if (o->targets_from > o->ticks * o->intervals)
		error_at(p->cx, setting_at(p, "targets-from"), "name one of these ticks, or set more: train ticks 8",
		         "targets-from is %lld, and a case has %lld tick%s", (long long)o->targets_from,
		         (long long)(o->ticks * o->intervals), p->net->settles ? "s" : "");
}

/* `size`: of open groups, by role. */
static Net *read_sized(Ctx *cx, const Src *src, int defaults, const uint32_t *size)
{
	Net *net = NEW(&cx->keep, 1, Net);
	Parser p = { .cx = cx, .net = net, .names.arena = &cx->scratch };
	net->arena = &cx->keep;
	memcpy(p.size, size, sizeof p.size);
	net->name = src->name;
	net->src = src;
	net->units = 1;
	net->defaults = defaults;
	net->data_how.size = net->test_how.size = sizeof net->data_how;
	options_init(&net->options, defaults);
	parse_file(&p, src, (Loc){ 0 });
	check_ticks(&p);
	net_shape(cx, net);
	net_settle(cx, net);
	check_errors(cx);
	if (net->groups == 0)
		fail_at(cx, (Loc){ src, 0 }, "declare some, such as: group letters 203 input",
		        "there are no groups in this file");
	if (net->options.error == ERR_AUTO)
		net->options.error = net_error(net);
	if (net->open)
		return net;
	net_link(cx, net);
	net->tie = net_ties(&cx->keep, net);
	net_check(cx, net);
	check_errors(cx);
	return net;
}

Net *net_read(Ctx *cx, const Src *src, int defaults)
{
	return read_sized(cx, src, defaults, (uint32_t[ROLE_COUNT]){ 0 });
}

Net *net_parse(Ctx *cx, const Src *src, int defaults)
{
	Net *net = net_read(cx, src, defaults);
	if (net->open)
		net_open_fail(cx, net);
	return net;
}

void net_open_fail(Ctx *cx, const Net *net)
{
	const Group *g = net->group;
	while (!g->open || g->size)
		g++;
	fail_at(cx, g->at, "give a size, or train on data: its size is then that of the data",
	        "the size of %s group '%s' is that of the data, and there is none here", role_names[g->role], g->name);
}

/* What the stated sizes of a role leave of `all` for its open group. */
static uint32_t size_left(Ctx *cx, const Net *net, int role, uint32_t all)
{
	uint32_t stated = role == ROLE_INPUT ? net->inputs : net->outputs;
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		if (!g->open || g->role != role)
			continue;
		if (all <= stated)
			fail_at(cx, g->at, "give fewer units to the others, or choose the columns of the data",
			        "the data has %u %s a case, and other groups take %u: none is left for '%s'", all,
			        role == ROLE_INPUT ? "inputs" : "targets", stated, g->name);
		return all - stated;
	}
	return 0;
}

Net *net_resolve(Ctx *cx, const Net *open, uint32_t inputs, uint32_t outputs)
{
	uint32_t size[ROLE_COUNT] = { [ROLE_INPUT] = size_left(cx, open, ROLE_INPUT, inputs),
		                          [ROLE_OUTPUT] = size_left(cx, open, ROLE_OUTPUT, outputs) };
	return read_sized(cx, open->src, open->defaults, size);
}

Net *net_reread(Ctx *cx, const Net *net, int defaults)
{
	uint32_t size[ROLE_COUNT] = { 0 };
	for (uint32_t i = 0; i < net->groups; i++)
		if (net->group[i].open)
			size[net->group[i].role] = net->group[i].size;
	return read_sized(cx, net->src, defaults, size);
}
