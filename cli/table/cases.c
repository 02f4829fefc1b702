/* SPDX-License-Identifier: MIT */
/* Every case of a measurement: name, target, guess, whether it is right, probabilities and error; for numbers target,
 * prediction and residual, in the units of the table.  As text, CSV and JSON, all from one list of cells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "microprop/inside.h"

enum { CELL_WORD, CELL_REAL, CELL_RIGHT };
enum { MORE_CELLS = 12, GROUP_CELLS = 6 }; /* than three for each target, and six for each group */
typedef struct Cell {
	const char *key;
	const char *of; /* name of the target, where there are several numbers; NULL: else */
	int kind;
	const char *word;
	double real; /* NaN: none */
	bool right;
	bool none; /* the case has no target */
} Cell;

typedef struct CaseRow {
	uint64_t number; /* from 1 */
	Cell *cell;
	uint32_t cells;
	char name[256], word[2][64]; /* of the case, of code words */
} CaseRow;

static void add_real(CaseRow *r, const char *key, const char *of, double value)
{
	r->cell[r->cells++] = (Cell){ .key = key, .of = of, .kind = CELL_REAL, .real = value, .none = isnan(value) };
}

/* Reaction time; none: the criterion was never met. */
static void add_tick(CaseRow *r, const char *of, uint32_t tick)
{
	add_real(r, "tick", of, tick ? (double)tick : (double)NAN);
}

static void add_word_of(CaseRow *r, const char *key, const char *of, const char *word, bool none)
{
	r->cell[r->cells++] = (Cell){ .key = key, .of = of, .kind = CELL_WORD, .word = word, .none = none };
}

static void add_word(CaseRow *r, const char *key, const char *word, bool none)
{
	add_word_of(r, key, NULL, word, none);
}

static const char *target_name(const Cases *c, uint32_t target)
{
	const mp_column *column;
	for (uint32_t i = 0; (column = mp_run_get_column(c->run, i)); i++)
		if (!strcmp(column->role, "target") && target-- == 0)
			return column->name;
	return "";
}

/* Classes by name; code words by what the data calls them. */
static void add_words(const Cases *c, const mp_case *k, CaseRow *r)
{
	for (int i = 0; i < 2; i++) {
		const char *word;
		if (c->metrics->classes) {
			word = metrics_class(c->metrics, i ? k->guess : k->target, r->word[i]);
		} else {
			snprintf(r->word[i], sizeof r->word[i], "%s", mp_data_get_guess(c->data, i ? k->outputs : k->targets));
			word = r->word[i];
		}
		add_word(r, i ? "guess" : "target", word, !k->scored);
	}
}

/* Targets are floats, scaled and scaled back: further digits are noise. */
static double seven_digits(double v)
{
	char text[40];
	snprintf(text, sizeof text, "%.7g", v);
	return strtod(text, NULL);
}

static void row_make(const Cases *c, const mp_data_info *info, uint64_t i, CaseRow *r)
{
	const mp_case *k = mp_run_get_case(c->run, i);
	bool numbers = !strcmp(c->metrics->kind, "numbers");
	r->number = i + 1;
	r->cells = 0;
	if (info->named) {
		snprintf(r->name, sizeof r->name, "%s", mp_data_get_name(c->data, i));
		add_word(r, "name", r->name, false);
	}
	if (c->metrics->classes || info->codes)
		add_words(c, k, r);
	if (!numbers)
		r->cell[r->cells++] = (Cell){ .key = "right", .kind = CELL_RIGHT, .right = k->right != 0, .none = !k->scored };
	if (c->metrics->classes) {
		add_real(r, "p_target", NULL, k->scored ? k->p_target : NAN);
		add_real(r, "p_guess", NULL, k->p_guess);
	}
	for (uint32_t t = 0; numbers && t < info->targets; t++) {
		const char *of = info->targets > 1 ? target_name(c, t) : NULL;
		add_real(r, "target", of, seven_digits(k->targets[t]));
		add_real(r, "prediction", of, seven_digits(k->outputs[t]));
		add_real(r, "residual", of, seven_digits(k->targets[t] - k->outputs[t]));
	}
	add_real(r, "error", NULL, k->error);
	if (k->rival)
		add_word(r, "rival", k->rival, !k->scored);
	if (k->rival)
		add_real(r, "margin", NULL, k->scored ? k->margin : (double)NAN);
	if (mp_run_get_ticks(c->run) > 1 || k->groups > 1)
		r->cell[r->cells++] =
			(Cell){ .key = "within", .kind = CELL_RIGHT, .right = k->within != 0, .none = !k->scored };
	if (mp_run_get_ticks(c->run) > 1)
		add_tick(r, NULL, k->tick);
	for (uint32_t g = 0; k->groups > 1 && g < k->groups; g++) {
		const mp_case_group *own = &k->group[g];
		bool none = isnan(own->error);
		add_real(r, "error", own->name, own->error);
		r->cell[r->cells++] =
			(Cell){ .key = "right", .of = own->name, .kind = CELL_RIGHT, .right = own->right, .none = none };
		r->cell[r->cells++] =
			(Cell){ .key = "within", .of = own->name, .kind = CELL_RIGHT, .right = own->within, .none = none };
		if (mp_run_get_ticks(c->run) > 1)
			add_tick(r, own->name, own->tick);
		if (own->guess)
			add_word_of(r, "guess", own->name, own->guess, none);
		if (own->rival)
			add_word_of(r, "rival", own->name, own->rival, none);
	}
}

typedef struct CaseOut {
	FILE *f;
	Json *j;
	void (*row)(const struct CaseOut *o, const CaseRow *r);
} CaseOut;

static void each(const Cases *c, const CaseOut *o)
{
	const mp_data_info *info;
	if (mp_data_get_info(c->data, &info) != MP_OK || !mp_run_get_case(c->run, 0))
		return;
	const mp_case *first = mp_run_get_case(c->run, 0);
	CaseRow r = { .cell = calloc(MORE_CELLS + (size_t)3 * info->targets + (size_t)GROUP_CELLS * first->groups,
		                         sizeof *r.cell) };
	for (uint64_t i = 0; r.cell && i < info->cases; i++) {
		row_make(c, info, i, &r);
		o->row(o, &r);
	}
	free(r.cell);
}

/* target.NAME where there are several. */
static const char *key_of(const Cell *cell, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s", cell->key, cell->of ? "." : "", cell->of ? cell->of : "");
	return text;
}

/* ---- text ---- */

static int width_of(const Cell *c)
{
	return c->kind == CELL_RIGHT           ? (c->of              ? 14
	                                          : c->key[0] == 'w' ? 6
	                                                             : 5)
	       : c->kind == CELL_REAL && c->of ? 14
	       : c->kind == CELL_REAL          ? 12
	       : strcmp(c->key, "name")        ? 14
	                                       : 20;
}

static void text_row(const CaseOut *o, const CaseRow *r)
{
	char key[300];
	if (r->number == 1) {
		show(o->f, "%8s", "case");
		for (uint32_t i = 0; i < r->cells; i++) {
			const Cell *c = &r->cell[i];
			int width = width_of(c);
			show(o->f, c->kind == CELL_WORD ? "  %-*.*s" : " %*.*s", width, width, key_of(c, key, sizeof key));
		}
		show(o->f, "\n");
	}
	show(o->f, "%8llu", (unsigned long long)r->number);
	for (uint32_t i = 0; i < r->cells; i++) {
		const Cell *c = &r->cell[i];
		int width = width_of(c);
		if (c->kind == CELL_WORD)
			show(o->f, "  %-*s", width, c->none ? "-" : c->word);
		else if (c->none)
			show(o->f, " %*s", width, "-");
		else if (c->kind == CELL_RIGHT)
			show(o->f, " %*s", width, c->right ? "yes" : "no");
		else
			show(o->f, " %*.6g", width, c->real);
	}
	show(o->f, "\n");
}

void cases_text(const Cases *c, FILE *f) { each(c, &(CaseOut){ .f = f, .row = text_row }); }

/* ---- CSV ---- */

static void csv_row(const CaseOut *o, const CaseRow *r)
{
	char key[300];
	if (r->number == 1) {
		fputs("case", o->f);
		for (uint32_t i = 0; i < r->cells; i++) {
			fputc(',', o->f);
			csv_put(o->f, key_of(&r->cell[i], key, sizeof key));
		}
		fputc('\n', o->f);
	}
	fprintf(o->f, "%llu", (unsigned long long)r->number);
	for (uint32_t i = 0; i < r->cells; i++) {
		const Cell *c = &r->cell[i];
		fputc(',', o->f);
		if (c->none)
			continue;
		if (c->kind == CELL_WORD)
			csv_put(o->f, c->word);
		else if (c->kind == CELL_RIGHT)
			fputc(c->right ? '1' : '0', o->f);
		else
			number_print(o->f, c->real);
	}
	fputc('\n', o->f);
}

void cases_csv(const Cases *c, FILE *f) { each(c, &(CaseOut){ .f = f, .row = csv_row }); }

/* ---- JSON ---- */

static void json_row(const CaseOut *o, const CaseRow *r)
{
	char key[300];
	json_open(o->j, NULL, '{');
	json_count(o->j, "case", r->number);
	for (uint32_t i = 0; i < r->cells; i++) {
		const Cell *c = &r->cell[i];
		key_of(c, key, sizeof key);
		if (c->none || c->kind == CELL_WORD)
			json_text(o->j, key, c->none ? NULL : c->word);
		else if (c->kind == CELL_RIGHT)
			json_bool(o->j, key, c->right);
		else
			json_number(o->j, key, c->real);
	}
	json_close(o->j, '}');
}

void cases_json(const Cases *c, Json *j)
{
	json_open(j, "case_list", '[');
	each(c, &(CaseOut){ .j = j, .row = json_row });
	json_close(j, ']');
}
