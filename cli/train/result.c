/* SPDX-License-Identifier: MIT */
/* train: the result of a run, as a table with a learning curve, or as a JSON object. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "train_run.h"

static void restarts_json(Json *j, const mp_run *run, const mp_restarts *m)
{
	json_count(j, "restarts", m->count);
	json_count(j, "restarts_done", m->done);
	json_count(j, "solved_count", m->solved);
	json_count(j, "failed_count", m->failed);
	json_number(j, "epochs_median", m->solved ? (double)m->epochs_median : NAN);
	json_number(j, "epochs_min", m->solved ? (double)m->epochs_min : NAN);
	json_number(j, "epochs_max", m->solved ? (double)m->epochs_max : NAN);
	json_number(j, "restarts_seconds", m->seconds);
	json_number(j, "seeds_per_second", m->seeds_per_second);
	json_number(j, "restarts_mcps", m->mcps);
	json_bool(j, "lanes", m->lanes);
	json_count(j, "parallel", m->parallel);
	if (m->done)
		json_count(j, "best_seed", mp_run_get_seed(run, m->best)->seed);
	json_open(j, "results", '[');
	const mp_seed *s;
	for (uint64_t i = 0; (s = mp_run_get_seed(run, i)); i++) {
		json_open(j, NULL, '{');
		json_count(j, "seed", s->seed);
		json_bool(j, "solved", s->solved);
		json_count(j, "epochs", s->epochs);
		json_number(j, "error", s->failed ? NAN : s->error);
		json_number(j, "right", s->failed ? NAN : s->right);
		json_number(j, "within", s->failed ? NAN : s->within);
		json_text(j, "fingerprint", s->failed ? NULL : s->fingerprint);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void result_json(const Train *t, const mp_report *r)
{
	const mp_restarts *m = mp_run_get_restarts(t->s.run);
	Json j = { .f = stdout };
	json_open(&j, NULL, '{');
	json_text(&j, "target", r->target);
	json_count(&j, "connections", r->connections);
	json_count(&j, "cases", r->cases);
	json_count(&j, "epochs", r->epoch);
	json_report(&j, r);
	json_bool(&j, "solved", r->solved);
	json_text(&j, "stopped_by", r->stopped_by);
	json_text(&j, "fingerprint", r->fingerprint);
	json_text(&j, "weights_file", t->saved);
	json_members(&j, mp_run_get_figures(t->s.run));
	if (t->metrics) {
		metrics_json(&j, t->s.run, t->metrics);
		columns_json(&j, t->s.run);
		json_count(&j, "holdout_cases", t->table.held_out);
		json_number(&j, "refit_epochs", t->table.refit_epochs ? (double)t->table.refit_epochs : NAN);
		json_text(&j, "refit_fingerprint", t->table.refit_epochs ? mp_run_get_report(t->all.run)->fingerprint : NULL);
		if (t->table.folds) {
			json_open(&j, "folds", '{');
			json_number(&j, "mean", t->table.fold_mean);
			json_number(&j, "sd", t->table.fold_sd);
			json_open(&j, "scores", '[');
			for (uint32_t i = 0; i < t->table.folds; i++)
				json_number(&j, NULL, t->table.fold_score[i]);
			json_close(&j, ']');
			json_close(&j, '}');
		}
		if (t->restarts) {
			json_count(&j, "restarts", t->restarts);
			json_count(&j, "restarts_done", t->table.seeds);
			json_count(&j, "best_seed", t->table.seed);
		}
	}
	if (m)
		restarts_json(&j, t->s.run, m);
	json_end(&j);
}

static const char *why_stopped(const mp_report *r)
{
	static const struct {
		const char *by, *says;
	} why[] = {
		{ "until", "solved" },
		{ "epochs", "stopped at the limit of epochs" },
		{ "updates", "stopped at the limit of updates" },
		{ "time", "stopped at the limit of time" },
		{ "patience", "stopped, no better test error for a while," },
		{ "signal", "stopped by a signal" },
	};
	for (size_t i = 0; i < COUNT(why); i++)
		if (r->stopped_by && !strcmp(r->stopped_by, why[i].by))
			return why[i].says;
	return "stopped";
}

static void result_row(const mp_report *r, const char *name, Formatted (*word)(double), double train, double test)
{
	show(stdout, "%-12s %12s", name, word(train).s);
	if (r->tested)
		show(stdout, " %12s", word(test).s);
	show(stdout, "\n");
}

/* All seeds first, then the best of them like any other run. */
static void restarts_table(const mp_run *run, const mp_restarts *m)
{
	show(stdout, "%s, %s solved", format_things(m->done, "seed").s, format_count(m->solved).s);
	if (m->done < m->count)
		show(stdout, " of %s asked for", format_count(m->count).s);
	if (m->failed)
		show(stdout, ", %s failed: the error or a weight was not finite", format_count(m->failed).s);
	show(stdout, "\n");
	if (m->solved)
		show(stdout, "epochs to solve: %s to %s, median %s\n", format_count(m->epochs_min).s,
		     format_count(m->epochs_max).s, format_count(m->epochs_median).s);
	show(stdout, "searched for %s, %s seeds/s at %s MCPS", format_time(m->seconds).s,
	     format_real(m->seeds_per_second).s, format_real(m->mcps).s);
	if (m->lanes)
		show(stdout, ", %s in parallel", format_count(m->parallel).s);
	show(stdout, "\n");
	if (m->done)
		show(stdout, "best seed %llu\n\n", (unsigned long long)mp_run_get_seed(run, m->best)->seed);
}

/* Figures of the target, a JSON object, as text. */
static void figures_line(const char *figures)
{
	size_t end = figures ? strlen(figures) - 1 : 0; /* the object's own braces are left out */
	for (size_t i = 1; i < end; i++)
		if (figures[i] != '"' && figures[i] != ':')
			show(stdout, "%c", figures[i]);
	if (end > 1)
		show(stdout, "\n");
}

/* Of bits and numbers. Not on a simulated machine, whose clock is of the training alone, nor on one rank of several. */
static void result_metrics(const Train *t, const mp_report *r)
{
	if (r->simulated_seconds > 0 || mp_job_size(t->args->job) > 1 || stopped_by_signal())
		return;
	const mp_metrics *m = mp_run_measure(t->s.run, t->s.data);
	if (!m)
		return;
	mp_metrics train = *m;
	m = r->tested && t->s.test ? mp_run_measure(t->s.run, t->s.test) : NULL;
	if (m || !r->tested)
		metrics_rows(&train, m);
}

static void result_table(const Train *t, const mp_report *r)
{
	const mp_restarts *m = mp_run_get_restarts(t->s.run);
	if (m)
		restarts_table(t->s.run, m);
	if (m && !m->done)
		return;
	const mp_net_info *net = mp_net_get_info(t->s.net);
	show(stdout, "%s on %s: %s, %s\n\n", net->name, r->target, format_things(r->connections, "connection").s,
	     format_things(r->cases, "case").s);
	show(stdout, "%-12s %12s%s\n", t->metrics && t->s.test ? "last epoch" : "", "train",
	     r->tested ? "         test" : "");
	result_row(r, "error", format_real, r->error, r->test_error);
	if (!t->metrics) {
		result_row(r, "total error", format_real, r->total_error, r->test_total_error);
		if (right_counts(t->s.net, t->s.data))
			result_row(r, "right", format_share, r->right, r->test_right);
		else
			result_metrics(t, r);
		result_row(r, "within", format_share, r->within, r->test_within);
	}
	if (t->metrics) {
		show(stdout, "\non %s%s:\n",
		     !t->table.held_out ? "all rows"
		     : t->test          ? t->test
		                        : "the rows held out",
		     t->table.held_out ? ", with the weights of the best epoch" : "");
		metrics_show(t->s.run, t->metrics);
		if (t->table.folds)
			show(stdout, "\n%u folds: %s %s, standard deviation %s\n", t->table.folds,
			     isnan(t->metrics->r2) ? "accuracy" : "R2", format_real(t->table.fold_mean).s,
			     format_real(t->table.fold_sd).s);
		if (t->restarts)
			show(stdout, "\nbest of %s on the rows %s: seed %llu\n", format_things(t->table.seeds, "seed").s,
			     t->table.held_out ? "held out" : "it was trained on", (unsigned long long)t->table.seed);
	}
	show(stdout, "\n%s after %s, %s\n", why_stopped(r), format_things(r->epoch, "epoch").s,
	     format_things(r->updates, "update").s);
	show(stdout, "trained for %s at %s MCPS\n", format_time(r->seconds).s, format_real(r->mcps).s);
	if (r->simulated_seconds > 0)
		show(stdout, "%s of simulated time at %s MCPS\n", format_time(r->simulated_seconds).s,
		     format_real(r->simulated_mcps).s);
	figures_line(mp_run_get_figures(t->s.run));
	if (r->fingerprint)
		show(stdout, "fingerprint %s\n", r->fingerprint);
	if (t->table.refit_epochs)
		show(stdout, "trained once more on all rows for %s, as %u folds found best, fingerprint %s\n",
		     format_things(t->table.refit_epochs, "epoch").s, t->table.folds,
		     mp_run_get_report(t->all.run)->fingerprint);
	if (t->saved)
		show(stdout, "saved to %s\n", t->saved);
}

/* The history of a long run is thinned out; its last epoch is always drawn. */
static void result_curve(Train *t, const mp_report *r, const Screen *screen)
{
	Curve c = { .tested = r->tested };
	while (mp_run_get_point(t->s.run, c.points))
		c.points++;
	mp_point *point = args_alloc(t->args, c.points + 1, sizeof *point);
	for (size_t i = 0; i < c.points; i++)
		point[i] = *mp_run_get_point(t->s.run, i);
	if (c.points && point[c.points - 1].epoch < r->epoch)
		point[c.points++] = (mp_point){ sizeof *point, r->epoch, r->error, r->right, r->test_error, r->test_right };
	c.point = point;
	curve_draw(&c, screen, stdout);
}

int train_result(Train *t)
{
	const mp_report *r = mp_run_get_report(t->s.run);
	Screen screen = screen_of(STDOUT_FILENO);
	const char *curve = args_text(t->args, "curve");
	if (t->json) {
		result_json(t, r);
		return EXIT_DONE;
	}
	result_table(t, r);
	if (curve ? curve[0] == '1' : screen.terminal)
		result_curve(t, r, &screen);
	if (!t->words || stopped_by_signal())
		return EXIT_DONE;
	return transcribe_show(&t->s, t->args, t->s.test ? t->s.test : t->s.data, t->words, stdout);
}
