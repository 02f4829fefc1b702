/* SPDX-License-Identifier: MIT */
/* Metrics for people and for programs: accuracy and its kin, the confusion matrix, errors in the units of the table. */
#include <math.h>
#include <string.h>

#include "cli.h"

enum { MATRIX = 12, LISTED = 40, NAME = 14 }; /* classes of a matrix and of a list; characters of a name */

static const char *class_name(const mp_metrics *m, uint32_t i, char *number, size_t size)
{
	if (m->class_names)
		return m->class_names[i];
	snprintf(number, size, "%u", i);
	return number;
}

void metrics_json(Json *j, mp_run *run, const mp_metrics *m)
{
	const struct {
		const char *key;
		double value;
	} rows[] = {
		{ "accuracy", m->accuracy },
		{ "log_loss", m->log_loss },
		{ "auc", m->auc },
		{ "rmse", m->rmse },
		{ "mae", m->mae },
		{ "r2", m->r2 },
		{ "bits_right", m->bits_right },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		json_real(j, rows[i].key, rows[i].value);
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
		json_text(j, "class", class_name(m, i, number, sizeof number));
		json_count(j, "cases", c->cases);
		json_real(j, "precision", c->precision);
		json_real(j, "recall", c->recall);
		json_real(j, "f1", c->f1);
		json_real(j, "auc", c->auc);
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

static void row(const char *name, double value, Formatted (*word)(double))
{
	if (!isnan(value))
		show(stdout, "%-12s %12s\n", name, word(value).s);
}

static void class_table(mp_run *run, const mp_metrics *m)
{
	const mp_class_metrics *c;
	char number[16];
	show(stdout, "\n%-*s %8s %10s %10s %10s\n", NAME, "class", "cases", "precision", "recall", "F1");
	for (uint32_t i = 0; (c = mp_run_get_class_metrics(run, i)); i++) {
		const double shares[] = { c->precision, c->recall, c->f1 };
		show(stdout, "%-*.*s %8s", NAME, NAME, class_name(m, i, number, sizeof number), format_count(c->cases).s);
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
		show(stdout, " %8.8s", class_name(m, k, number, sizeof number));
	show(stdout, "\n");
	for (uint32_t i = 0; i < m->classes; i++) {
		show(stdout, "%-*.*s", NAME, NAME, class_name(m, i, number, sizeof number));
		for (uint32_t k = 0; k < m->classes; k++)
			show(stdout, " %8s", format_count(m->confusion[(size_t)i * m->classes + k]).s);
		show(stdout, "\n");
	}
}

void metrics_show(mp_run *run, const mp_metrics *m)
{
	row("accuracy", m->accuracy, format_share);
	row("bits right", m->bits_right, format_share);
	row("log loss", m->log_loss, format_real);
	row("AUC", m->auc, format_real);
	row("RMSE", m->rmse, format_real);
	row("MAE", m->mae, format_real);
	row("R2", m->r2, format_real);
	if (m->classes && m->classes <= LISTED)
		class_table(run, m);
	if (m->classes && m->classes <= MATRIX)
		matrix(m);
}
