/* SPDX-License-Identifier: MIT */
/* tune: searches the settings of a network for a table, trains the best on all rows and saves it; with --ensemble the
 * best few, as one network. */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search.h"

enum { FOLDS = 5, TRIALS = 100, MOST_TRIALS = 100000, MOST_MEMBERS = 64 };

static const Option tune_options[] = {
	{ "trials", "N", "settings to try; default 100" },
	{ "seconds", "S", "instead of a number of trials: as many as there is time for" },
	{ "folds", "K", "folds of cross-validation; default 5" },
	{ "ensemble", "N", "save the N best as one model; default 1" },
	{ "seed", "N", "random seed of settings, folds and weights; default 1" },
	{ "threads", "N", "threads; default: one per core; does not change the result" },
	{ "log", "FILE", "write results there as they come; a search begun again goes on from it" },
	{ "save", "FILE", "the model; default: NAME.safetensors" },
	{ "no-save", NULL, "save no model" },
	{ "force", NULL, "overwrite the model file" },
	{ "task", "auto|classes|regression", "what the target is; default: found from its values" },
	{ "json", NULL, "print the result as one JSON object" },
	{ "quiet", NULL, "show no progress" },
	{ NULL, NULL, NULL },
};

static const OptionGroup tune_groups[] = {
	{ "Search", tune_options, NULL },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const Example tune_examples[] = {
	{ "microprop tune iris.csv", "100 settings, 5 folds; saves the best model as iris.safetensors" },
	{ "microprop tune iris.csv --seconds 10 --ensemble 5", "ten seconds of search, five networks in one model" },
	{ "microprop tune big.csv --trials 500 --folds 3 --log big.log", "can be interrupted and begun again" },
	{ NULL, NULL },
};

/* A signal handler has no other access; atomic: it may run on any thread. */
static atomic_int signal_seen;
static atomic_int signal_late; /* the search has begun: what is found so far is saved */

static void signal_stop(int number)
{
	if (signal_seen || !signal_late) /* the second one does not wait */
		_exit(128 + number);
	signal_seen = number;
}

static bool stopped_by_signal(void) { return signal_seen != 0; }

typedef struct Tune {
	Args *args;
	Progress progress;
	Search s;
	uint64_t members; /* of the ensemble */
	const char *model;
	double seconds;
	bool quiet;
} Tune;

static void tune_trial(void *user, const Search *s, uint32_t rung, uint32_t done, uint32_t of, double best)
{
	Tune *t = user;
	char line[160];
	size_t n = (size_t)snprintf(line, sizeof line, "rung %u: %s", rung + 1, format_count(done).s);
	if (rung || !(s->deadline > 0)) /* in the first, time decides how many there are */
		n += (size_t)snprintf(line + n, sizeof line - n, " of %s", format_count(of).s);
	snprintf(line + n, sizeof line - n, " trials, best %s %s", s->regression ? "R2" : "accuracy", format_real(best).s);
	progress_line(&t->progress, line);
}

static void tune_progress(void *user, const Search *s, uint32_t rung, uint32_t done, uint32_t of)
{
	Tune *t = user;
	(void)of;
	progress_end(&t->progress);
	if (!t->quiet)
		show(stderr, "rung %u: %s, best %s %s\n", rung + 1, format_things(done, "trial").s,
		     s->regression ? "R2" : "accuracy", format_real(trial_score(s, &s->trial[0])).s);
}

static int tune_check(Tune *t)
{
	Args *a = t->args;
	uint64_t trials = TRIALS, folds = FOLDS, threads = 0;
	const char *seconds = args_text(a, "seconds");
	char *end = NULL;
	t->members = 1;
	t->s.seed = 1;
	if (!args_count(a, "trials", &trials) || !args_count(a, "folds", &folds) || !args_count(a, "threads", &threads) ||
	    !args_count(a, "ensemble", &t->members) || !args_count(a, "seed", &t->s.seed))
		return EXIT_USAGE;
	double limit = seconds ? strtod(seconds, &end) : 0;
	if (seconds && (*end || !*seconds || !(limit > 0 && limit < 1e9))) {
		complain("give a number of seconds, such as 10", "--seconds cannot be '%.40s'", seconds);
		return EXIT_USAGE;
	}
	if (trials < 1 || trials > MOST_TRIALS || folds < 2 || folds > MOST_FOLDS || t->members < 1 ||
	    t->members > MOST_MEMBERS || t->members > trials) {
		complain("give 1 to 100,000 trials, 2 to 32 folds, and an ensemble of 1 to 64, at most the trials",
		         "this search cannot be made");
		return EXIT_USAGE;
	}
	t->s.trials = seconds ? MOST_TRIALS : (uint32_t)trials;
	t->s.folds = (uint32_t)folds;
	t->s.threads = threads ? (uint32_t)threads : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	t->s.deadline = seconds ? wall_clock() + limit * 0.6 : 0; /* later rungs take about as long as half the first */
	t->quiet = args_flag(a, "quiet");
	progress_start(&t->progress, t->quiet, false, NULL);
	t->s.trial_done = tune_trial;
	t->s.progress = tune_progress;
	t->s.stopped = stopped_by_signal;
	t->s.user = t;
	int rc = output_check(a, "log");
	return rc ? rc : table_model_file(a, a->operand[0], &t->model);
}

/* ---- the model: one network, or several as one ---- */

typedef struct Member {
	mp_net *net;
	mp_run *run;
	double *weight;
} Member;

static int member_train(const Tune *t, const Trial *trial, const mp_data *data, Member *m)
{
	char *text = NULL;
	int rc = trial_topology(t->s.table, trial, &text);
	if (!rc) {
		mp_status status = mp_net_parse(&m->net, text, t->args->operand[0], NULL);
		rc = after_net(m->net, status);
	}
	free(text);
	if (!rc) {
		mp_status status = mp_run_new(&m->run, m->net, NULL);
		rc = after_run(m->run, status);
	}
	if (!rc)
		rc = trial_options(m->run, trial, t->s.seed + trial->number, trial_epochs(&t->s, trial), false);
	return rc ? rc : after_run(m->run, mp_run_train(m->run, data, NULL, NULL, NULL));
}

/* Groups in, one or more hidden of each member, out. Outputs get the mean of what each member would give them before
 * their function. */
static int ensemble_text(const Member *m, uint32_t members, char **text)
{
	size_t size;
	FILE *f = open_memstream(text, &size);
	if (!f)
		return EXIT_FAILED;
	uint32_t last = mp_net_get_info(m[0].net)->groups - 1;
	fprintf(f, "group in %u input\n", mp_net_get_group(m[0].net, 0)->units);
	for (uint32_t i = 0; i < members; i++)
		for (uint32_t g = 1; g + 1 < mp_net_get_info(m[i].net)->groups; g++)
			fprintf(f, "group m%u.%u %u %s\n", i + 1, g, mp_net_get_group(m[i].net, g)->units,
			        mp_net_get_group(m[i].net, g)->function);
	const mp_group_info *out = mp_net_get_group(m[0].net, last);
	fprintf(f, "group out %u %s output\n", out->units, out->function);
	for (uint32_t i = 0; i < members; i++) {
		uint32_t hidden = mp_net_get_info(m[i].net)->groups - 2;
		for (uint32_t g = 1; g <= hidden; g++) {
			if (g == 1)
				fprintf(f, "connect in, true -> m%u.1\n", i + 1);
			else
				fprintf(f, "connect m%u.%u, true -> m%u.%u\n", i + 1, g - 1, i + 1, g);
		}
		fprintf(f, "connect m%u.%u -> out\n", i + 1, hidden);
	}
	fprintf(f, "connect in, true -> out\ntrain until never error %s\n", mp_run_get(m[0].run, "error"));
	return fclose(f) ? EXIT_FAILED : EXIT_DONE;
}

/* Weights are in the order of their target unit, then of the source unit, the bias first. */
static int ensemble_weights(Args *a, Member *m, uint32_t members, Member *all)
{
	size_t total = (size_t)mp_net_get_info(all->net)->connections, at = 0;
	uint32_t inputs = mp_net_get_info(all->net)->inputs, outputs = mp_net_get_info(all->net)->outputs;
	double *w = args_alloc(a, total, sizeof *w);
	for (uint32_t i = 0; i < members; i++) {
		size_t n = (size_t)mp_net_get_info(m[i].net)->connections;
		m[i].weight = args_alloc(a, n, sizeof *m[i].weight);
		int rc = after_run(m[i].run, mp_run_get_weights(m[i].run, m[i].weight, n));
		if (rc)
			return rc;
		uint32_t before = mp_net_get_group(m[i].net, mp_net_get_info(m[i].net)->groups - 2)->units;
		size_t hidden = n - (size_t)outputs * (1 + inputs + before);
		memcpy(w + at, m[i].weight, hidden * sizeof *w);
		at += hidden;
		m[i].weight += hidden; /* the rest: rows of the outputs */
	}
	for (uint32_t o = 0; o < outputs; o++) {
		double *direct = &w[at]; /* bias and inputs, which all members share */
		at += 1 + inputs;
		for (uint32_t i = 0; i < members; i++) {
			uint32_t before = mp_net_get_group(m[i].net, mp_net_get_info(m[i].net)->groups - 2)->units;
			for (uint32_t k = 0; k < 1 + inputs; k++)
				direct[k] += *m[i].weight++ / members;
			for (uint32_t k = 0; k < before; k++)
				w[at++] = *m[i].weight++ / members;
		}
	}
	assert(at == total);
	return after_run(all->run, mp_run_set_weights(all->run, w, total));
}

static int ensemble_make(Tune *t, Member *m, uint32_t members, const mp_data *data, Member *all)
{
	char *text = NULL;
	int rc = ensemble_text(m, members, &text);
	if (!rc) {
		mp_status status = mp_net_parse(&all->net, text, t->args->operand[0], NULL);
		rc = after_net(all->net, status);
	}
	free(text);
	if (!rc) {
		mp_status status = mp_run_new(&all->run, all->net, NULL);
		rc = after_run(all->run, status);
	}
	/* No update: the run takes schema and classes of the data. */
	if (!rc)
		rc = after_run(all->run, mp_run_set(all->run, "epochs", "1"));
	if (!rc)
		rc = after_run(all->run, mp_run_set(all->run, "rate", "0"));
	if (!rc)
		rc = after_run(all->run, mp_run_train(all->run, data, NULL, NULL, NULL));
	return rc ? rc : ensemble_weights(t->args, m, members, all);
}

static int tune_model(Tune *t)
{
	Member m[MOST_MEMBERS] = { 0 }, all = { 0 };
	uint32_t members = (uint32_t)t->members;
	mp_data *data = NULL, *none = NULL;
	if (!t->model)
		return EXIT_DONE;
	mp_cut cut = { .size = sizeof cut };
	int rc = after_table(t->s.table, mp_table_cut(t->s.table, &cut, &data, &none));
	for (uint32_t i = 0; !rc && i < members; i++)
		rc = member_train(t, &t->s.trial[i], data, &m[i]);
	if (!rc && members > 1)
		rc = ensemble_make(t, m, members, data, &all);
	mp_run *run = members > 1 ? all.run : m[0].run;
	if (!rc)
		rc = after_run(run, mp_run_save(run, t->model));
	for (uint32_t i = 0; i < members; i++) {
		mp_run_close(m[i].run);
		mp_net_close(m[i].net);
	}
	mp_run_close(all.run);
	mp_net_close(all.net);
	mp_data_close(data);
	mp_data_close(none);
	return rc;
}

/* ---- results ---- */

/* Mean score of the trials with a value, each at the last rung it reached. */
static double value_score(const Search *s, uint32_t parameter, uint8_t value, uint32_t *count)
{
	double sum = 0;
	*count = 0;
	for (uint32_t i = 0; i < s->trials; i++) {
		double score = trial_score(s, &s->trial[i]);
		if (s->trial[i].choice[parameter] != value || isnan(score))
			continue;
		sum += score;
		++*count;
	}
	return *count ? sum / *count : NAN;
}

static void result_json(const Tune *t)
{
	const Search *s = &t->s;
	const Trial *best = &s->trial[0];
	Json j = { .f = stdout };
	json_open(&j, NULL, '{');
	json_text(&j, "metric", s->regression ? "r2" : "accuracy");
	json_number(&j, "score", trial_score(s, best));
	json_number(&j, "score_sd", trial_deviation(s, best));
	json_count(&j, "trials", s->trials);
	json_count(&j, "folds", s->folds);
	json_count(&j, "networks", s->trained);
	json_number(&j, "seconds", t->seconds);
	json_text(&j, "weights_file", t->model);
	json_count(&j, "ensemble", t->members);
	json_open(&j, "best", '[');
	for (uint32_t i = 0; i < s->trials && i < 10; i++) {
		json_open(&j, NULL, '{');
		json_count(&j, "trial", s->trial[i].number);
		json_number(&j, "score", trial_score(s, &s->trial[i]));
		json_number(&j, "sd", trial_deviation(s, &s->trial[i]));
		json_number(&j, "epochs", trial_epochs(s, &s->trial[i]));
		for (uint32_t p = 0; p < PARAMETERS; p++)
			json_text(&j, space[p].name, trial_value(&s->trial[i], p));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "parameters", '{');
	for (uint32_t p = 0; p < PARAMETERS; p++) {
		json_open(&j, space[p].name, '{');
		for (uint8_t v = 0; space[p].value[v]; v++) {
			uint32_t count;
			json_number(&j, space[p].value[v], value_score(s, p, v, &count));
		}
		json_close(&j, '}');
	}
	json_close(&j, '}');
	json_end(&j);
}

static void result_text(const Tune *t)
{
	const Search *s = &t->s;
	const char *metric = s->regression ? "R2" : "accuracy";
	show(stdout, "%s, %u folds, %s in %s\n\n", format_things(s->trials, "trial").s, s->folds,
	     format_things(s->trained, "network").s, format_time(t->seconds).s);
	show(stdout, "%8s %8s %10s %9s %9s %8s %7s %8s\n", metric, "+-", "hidden", "function", "rule", "rate", "batch",
	     "decay");
	for (uint32_t i = 0; i < s->trials && i < 5; i++) {
		const Trial *r = &s->trial[i];
		show(stdout, "%8.4f %8.4f %10s %9s %9s %8s %7s %8s\n", trial_score(s, r), trial_deviation(s, r),
		     trial_value(r, 0), trial_value(r, 1), trial_value(r, 2), trial_value(r, 3), trial_value(r, 4),
		     trial_value(r, 5));
	}
	show(stdout, "\nwhat mattered: mean of the trials with each value\n");
	for (uint32_t p = 0; p < PARAMETERS; p++) {
		show(stdout, "%-10s", space[p].name);
		for (uint8_t v = 0; space[p].value[v]; v++) {
			uint32_t count;
			double score = value_score(s, p, v, &count);
			if (count)
				show(stdout, "  %s: %.3f", space[p].value[v], score);
		}
		show(stdout, "\n");
	}
	if (t->model)
		show(stdout, "\nsaved to %s%s\n", t->model, t->members > 1 ? ", the best as one network" : "");
}

static int tune_steps(Tune *t)
{
	mp_data_options reading;
	int rc = tune_check(t);
	if (rc)
		return rc;
	if (!session_reading(t->args, true, &reading))
		return EXIT_USAGE;
	double began = wall_clock();
	mp_status status = mp_table_open(&t->s.table, t->args->operand[0], &reading, args_text(t->args, "task"), NULL);
	rc = after_table(t->s.table, status);
	if (!rc && !t->quiet && !args_flag(t->args, "json"))
		show_lines(stderr, mp_table_get_info(t->s.table)->decisions, strlen(mp_table_get_info(t->s.table)->decisions));
	if (!rc && mp_table_get_info(t->s.table)->folds)
		t->s.folds = mp_table_get_info(t->s.table)->folds;
	if (!rc && t->s.folds > MOST_FOLDS) {
		complain("use at most 32", "the column of folds has %u", t->s.folds);
		rc = EXIT_USAGE;
		t->s.folds = 0;
	}
	if (!rc)
		rc = search_begin(&t->s, t->args);
	signal_late = 1;
	if (!rc)
		rc = search_run(&t->s, t->args);
	if (!rc && !t->s.trials) {
		show(stderr, "stopped before a trial was done; nothing saved\n");
		return 128 + signal_seen;
	}
	t->members = t->members < t->s.trials ? t->members : t->s.trials;
	if (!rc && signal_seen) /* a second signal does not wait for the model */
		show(stderr, "stopped after %s; %s\n", format_things(t->s.trained, "network").s,
		     t->model ? "the best so far is trained on all rows and saved" : "nothing is saved");
	if (!rc)
		rc = tune_model(t);
	t->seconds = wall_clock() - began;
	if (rc)
		return rc;
	if (args_flag(t->args, "json"))
		result_json(t);
	else
		result_text(t);
	return signal_seen ? 128 + signal_seen : EXIT_DONE;
}

static int tune_run(Args *a)
{
	Tune t = { .args = a };
	signals_catch(signal_stop);
	int rc = tune_steps(&t);
	signals_default();
	search_end(&t.s);
	return rc;
}

const Command tune_command = {
	.name = "tune",
	.operands = "TABLE",
	.least = 1,
	.most = 1,
	.summary = "search the best settings for a table",
	.about =
		"Tries random settings of a network (hidden layers, function, rule, rate, batch, decay) by cross-validation: "
		"successive halving trains all of them for a few epochs, the best third for three times as many, and so on. "
		"Then the best is trained on all rows and saved as a model. The result is the same for any number of threads. "
		"With rule momentum the rate is ten times that of the list, divided by the batch.\n\n"
		"Ctrl-C, SIGTERM and SIGHUP end the search; the best so far is trained on all rows and saved, and the exit "
		"status "
		"is 130, 143 or 129. A second signal ends it at once.",
	.group = tune_groups,
	.example = tune_examples,
	.run = tune_run,
};
