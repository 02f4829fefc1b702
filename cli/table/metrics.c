/* SPDX-License-Identifier: MIT */
/* Metrics for people and for programs: accuracy and its kin, the confusion matrix, errors in the units of the table. */
#include <math.h>
#include <string.h>

#include "cli.h"

enum { MATRIX = 12, LISTED = 40, NAME = 14 }; /* classes of a matrix and of a list; characters of a name */

const char *metrics_class(const mp_metrics *m, uint32_t i, char number[16])
{
	if (m->class_names)
		return m->class_names[i];
	snprintf(number, 16, "%u", i);
	return number;
}

enum { FIGURES = 7 };
typedef struct Figure {
	const char *key, *title;
	Formatted (*format)(double);
	double value;
} Figure;

/* Those of all cases. */
static void figures_of(const mp_metrics *m, Figure *f)
{
	const Figure all[FIGURES] = {
		{ "accuracy", strcmp(m->kind, "bits") ? "accuracy" : "patterns right", format_share, m->accuracy },
		{ "log_loss", "log loss", format_real, m->log_loss },
		{ "auc", "AUC", format_real, m->auc },
		{ "rmse", "RMSE", format_real, m->rmse },
		{ "mae", "MAE", format_real, m->mae },
		{ "r2", "R2", format_real, m->r2 },
		{ "bits_right", "bits right", format_share, m->bits_right },
	};
	memcpy(f, all, sizeof all);
}

void metrics_json(Json *j, mp_run *run, const mp_metrics *m)
{
	Figure rows[FIGURES];
	figures_of(m, rows);
	for (size_t i = 0; i < FIGURES; i++)
		json_number(j, rows[i].key, rows[i].value);
	if (!m->classes) {
		static const char *const of_classes[] = { "classes", "confusion", "per_class" };
		for (size_t i = 0; i < COUNT(of_classes); i++)
			json_number(j, of_classes[i], NAN);
		return;
	}
	json_count(j, "classes", m->classes);
	json_open(j, "confusion", '[');
	for (uint32_t i = 0; i < m->classes; i++) {
		json_open(j, NULL, '[');
		for (uint32_t k = 0; k < m->classes; k++)
			json_count(j, NULL, m->confusion[(size_t)i * m->classes + k]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_open(j, "per_class", '[');
	const mp_class_metrics *c;
	for (uint32_t i = 0; (c = mp_run_get_class_metrics(run, i)); i++) {
		char number[16];
		json_open(j, NULL, '{');
		json_text(j, "class", metrics_class(m, i, number));
		json_count(j, "cases", c->cases);
		json_number(j, "precision", c->precision);
		json_number(j, "recall", c->recall);
		json_number(j, "f1", c->f1);
		json_number(j, "auc", c->auc);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void columns_json(Json *j, mp_run *run)
{
	json_open(j, "columns", '[');
	const mp_column *c;
	for (uint32_t i = 0; (c = mp_run_get_column(run, i)); i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", c->name);
		json_text(j, "role", c->role);
		json_text(j, "kind", c->kind);
		json_count(j, "units", c->units);
		if (c->kind && !strcmp(c->kind, "number")) {
			json_number(j, "offset", c->offset);
			json_number(j, "factor", c->factor);
		}
		if (!strcmp(c->role, "input"))
			json_bool(j, "indicator", c->indicator);
		if (c->category_count) {
			json_open(j, "categories", '[');
			for (uint32_t k = 0; k < c->category_count; k++)
				json_text(j, NULL, c->categories[k]);
			json_close(j, ']');
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void class_table(mp_run *run, const mp_metrics *m)
{
	const mp_class_metrics *c;
	char number[16];
	show(stdout, "\n%-*s %8s %10s %10s %10s\n", NAME, "class", "cases", "precision", "recall", "F1");
	for (uint32_t i = 0; (c = mp_run_get_class_metrics(run, i)); i++) {
		const double shares[] = { c->precision, c->recall, c->f1 };
		show(stdout, "%-*.*s %8s", NAME, NAME, metrics_class(m, i, number), format_count(c->cases).s);
		for (size_t k = 0; k < COUNT(shares); k++)
			show(stdout, " %10s", isnan(shares[k]) ? "-" : format_share(shares[k]).s);
		show(stdout, "\n");
	}
}

static void matrix(const mp_metrics *m)
{
	char number[16];
	show(stdout, "\nconfusion: rows are targets, columns guesses\n%-*s", NAME, "");
	for (uint32_t k = 0; k < m->classes; k++)
		show(stdout, " %8.8s", metrics_class(m, k, number));
	show(stdout, "\n");
	for (uint32_t i = 0; i < m->classes; i++) {
		show(stdout, "%-*.*s", NAME, NAME, metrics_class(m, i, number));
		for (uint32_t k = 0; k < m->classes; k++)
			show(stdout, " %8s", format_count(m->confusion[(size_t)i * m->classes + k]).s);
		show(stdout, "\n");
	}
}

/* Of a softmax also where targets are probabilities. */
static bool is_softmax(const mp_net *net)
{
	const mp_net_info *info = mp_net_get_info(net);
	bool softmax = false;
	for (uint32_t i = 0; i < info->groups; i++)
		softmax |= !strcmp(mp_net_get_group(net, i)->function, "softmax");
	return softmax;
}

bool right_counts(const mp_net *net, mp_data *data)
{
	const mp_data_info *info;
	const char *kind = mp_data_get_kind(data);
	if (!kind || mp_data_get_info(data, &info) != MP_OK)
		return true;
	return info->codes || is_softmax(net) || (strcmp(kind, "bits") && strcmp(kind, "numbers"));
}

/* Both measurements beside each other; test NULL: only one. */
void metrics_rows(const mp_metrics *train, const mp_metrics *test)
{
	Figure rows[2][FIGURES];
	figures_of(train, rows[0]);
	figures_of(test ? test : train, rows[1]);
	for (size_t i = 0; i < FIGURES; i++) {
		if (isnan(rows[0][i].value))
			continue;
		show(stdout, "%-14s %10s", rows[0][i].title, rows[0][i].format(rows[0][i].value).s);
		if (test)
			show(stdout, " %12s", rows[1][i].format(rows[1][i].value).s);
		show(stdout, "\n");
	}
}

void metrics_show(mp_run *run, const mp_metrics *m)
{
	metrics_rows(m, NULL);
	if (m->classes && m->classes <= LISTED)
		class_table(run, m);
	if (m->classes && m->classes <= MATRIX)
		matrix(m);
}

/* ---- CSV ---- */

static void csv_line(FILE *f, const char *metric, const char *class, const char *guess, double value)
{
	csv_put(f, metric);
	fputc(',', f);
	csv_put(f, class);
	fputc(',', f);
	csv_put(f, guess);
	fputc(',', f);
	if (!isnan(value))
		number_print(f, value);
	fputc('\n', f);
}

void metrics_csv(mp_run *run, const mp_metrics *m, FILE *f)
{
	Figure rows[FIGURES];
	char name[16], other[16];
	const mp_class_metrics *c;
	figures_of(m, rows);
	fputs("metric,class,guess,value\n", f);
	csv_line(f, "cases", "", "", (double)m->cases);
	for (size_t i = 0; i < FIGURES; i++)
		if (!isnan(rows[i].value))
			csv_line(f, rows[i].key, "", "", rows[i].value);
	for (uint32_t i = 0; (c = mp_run_get_class_metrics(run, i)); i++) {
		const char *class = metrics_class(m, i, name);
		csv_line(f, "cases", class, "", (double)c->cases);
		csv_line(f, "precision", class, "", c->precision);
		csv_line(f, "recall", class, "", c->recall);
		csv_line(f, "f1", class, "", c->f1);
		csv_line(f, "auc", class, "", c->auc);
	}
	for (uint32_t i = 0; i < m->classes; i++)
		for (uint32_t k = 0; k < m->classes; k++)
			csv_line(f, "confusion", metrics_class(m, i, name), metrics_class(m, k, other),
			         (double)m->confusion[(size_t)i * m->classes + k]);
}
