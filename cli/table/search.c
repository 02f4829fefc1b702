/* SPDX-License-Identifier: MIT */
/* Successive halving over random settings.  In: a table, a number of trials, a seed.  Out: the trials, best first.
 *
 * Trial n is drawn from the seed and n alone.  A rung trains every trial that is left on every fold for some epochs,
 * with early stopping; the best third goes on to the next rung with three times the epochs.  Networks of a rung are
 * independent: threads take them one by one, each network trains in one thread, results are stored by their place.  So
 * the outcome does not depend on the number of threads.  A trial is logged when all of its folds are done; a search
 * begun again takes those of the log instead of training. */
#include "search.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST_EPOCHS = 20, RUNGS = 3, KEEP = 3 };

static const char *const hidden_values[] = { "8", "16", "32", "64", "100", "128", "32,16", "64,32", NULL };
static const char *const function_values[] = { "tanh", "relu", NULL };
static const char *const rule_values[] = { "adam", "momentum", NULL };
static const char *const rate_values[] = { "0.0003", "0.001", "0.003", "0.01", "0.03", NULL };
static const char *const batch_values[] = { "16", "32", "64", "128", "256", NULL };
static const char *const decay_values[] = { "0", "0.0001", "0.001", "0.01", "0.1", NULL };

const Parameter space[PARAMETERS] = {
	{ "hidden", hidden_values }, { "function", function_values }, { "rule", rule_values },
	{ "rate", rate_values },     { "batch", batch_values },       { "decay", decay_values },
};
enum { HIDDEN, FUNCTION, RULE, RATE, BATCH, DECAY };

static uint32_t values(const Parameter *p)
{
	uint32_t n = 0;
	while (p->value[n])
		n++;
	return n;
}

/* ---- trials ---- */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void trial_draw(Trial *t, uint64_t seed, uint32_t number)
{
	*t = (Trial){ .number = number };
	for (uint32_t i = 0; i < PARAMETERS; i++) {
		assert(values(&space[i]) > 0);
		t->choice[i] = (uint8_t)(mix(mix(seed) ^ mix((uint64_t)number * PARAMETERS + i)) % values(&space[i]));
	}
}

const char *trial_value(const Trial *t, uint32_t parameter) { return space[parameter].value[t->choice[parameter]]; }

static double mean(const double *v, uint32_t n)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += v[i];
	return sum / n;
}

double trial_score(const Search *s, const Trial *t) { return mean(t->score, s->folds); }

double trial_deviation(const Search *s, const Trial *t)
{
	double m = mean(t->score, s->folds), sum = 0;
	for (uint32_t i = 0; i < s->folds; i++)
		sum += (t->score[i] - m) * (t->score[i] - m);
	return sqrt(sum / s->folds);
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double trial_epochs(const Search *s, const Trial *t)
{
	double v[MOST_FOLDS];
	memcpy(v, t->epochs, sizeof v);
	qsort(v, s->folds, sizeof *v, by_number);
	return v[s->folds / 2];
}

/* Later rungs first, then the score, then the loss; NaN last.  The folds are the same for all trials. */
static _Thread_local const Search *sorted; /* for by_score */

static int by_score(const void *a, const void *b)
{
	const Search *s = sorted;
	const Trial *x = a, *y = b;
	if (x->rung != y->rung)
		return x->rung > y->rung ? -1 : 1;
	double p = trial_score(s, x), q = trial_score(s, y);
	if (isnan(p) || isnan(q))
		return isnan(p) != isnan(q) ? isnan(p) - isnan(q) : x->number < y->number ? -1 : 1;
	if (p != q)
		return p > q ? -1 : 1;
	p = mean(x->loss, s->folds);
	q = mean(y->loss, s->folds);
	return p != q ? p < q ? -1 : 1 : x->number < y->number ? -1 : 1;
}

/* ---- one network ---- */

int trial_topology(mp_table *table, const Trial *t, char **text)
{
	TextOut out = { 0 };
	mp_topology network = { sizeof network, trial_value(t, HIDDEN), trial_value(t, FUNCTION) };
	int rc = after_table(table, mp_table_topology(table, &network, text_append, &out));
	*text = out.text;
	return !rc && !out.text ? EXIT_FAILED : rc;
}

int trial_options(mp_run *run, const Trial *t, uint64_t seed, double epochs, bool tested)
{
	char number[32], limit[32];
	snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
	snprintf(limit, sizeof limit, "%.0f", epochs < 1 ? 1 : epochs);
	const char *const set[][2] = {
		{ "rule", trial_value(t, RULE) },
		{ "rate", trial_value(t, RATE) },
		{ "batch", trial_value(t, BATCH) },
		{ "decay", trial_value(t, DECAY) },
		{ "seed", number },
		{ "epochs", limit },
		{ "threads", "1" },
		{ "patience", tested ? "15" : "0" },
		{ "keep-best", tested ? "on" : "off" },
	};
	/* Gradients are sums over a batch: rule momentum takes the rate of a mean, as other programs do. */
	double rate = strtod(trial_value(t, RATE), NULL) / strtod(trial_value(t, BATCH), NULL);
	for (size_t i = 0; i < COUNT(set); i++)
		if (mp_run_set(run, set[i][0], set[i][1]) != MP_OK)
			return EXIT_FAILED;
	if (!strcmp(trial_value(t, RULE), "momentum")) {
		snprintf(number, sizeof number, "%.9g", rate * 10);
		if (mp_run_set(run, "rate", number) != MP_OK)
			return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static int evaluate_report(void *user, mp_run *run, const mp_report *r)
{
	const Search *s = user;
	(void)run, (void)r;
	return s->stopped();
}

/* Trains one trial on one fold; a network that diverges scores NaN. After a signal there is no score. */
static int evaluate(Search *s, Trial *t, uint32_t fold, double epochs)
{
	const Fold *f = &s->fold[fold];
	const char *text = f->network[t->choice[HIDDEN] * 2 + t->choice[FUNCTION]];
	mp_net *net = NULL;
	mp_run *run = NULL;
	int rc = EXIT_FAILED;
	t->score[fold] = t->loss[fold] = NAN;
	t->epochs[fold] = 0;
	if (mp_net_parse(&net, text, "trial", NULL) == MP_OK && mp_run_new(&run, net, NULL) == MP_OK &&
	    !trial_options(run, t, s->seed + t->number, epochs, true)) {
		mp_status status = mp_run_train(run, f->train, f->test, evaluate_report, s);
		rc = status == MP_NO_MEMORY ? EXIT_FAILED : EXIT_DONE;
		const mp_metrics *m = NULL;
		if (status == MP_OK && mp_run_use_best(run) == MP_OK && (m = mp_run_measure(run, f->test))) {
			t->score[fold] = s->regression ? m->r2 : m->accuracy;
			t->loss[fold] = s->regression ? m->rmse : m->log_loss;
			t->epochs[fold] = (double)mp_run_get_report(run)->best_epoch;
		}
	}
	mp_run_close(run);
	mp_net_close(net);
	return rc;
}

/* ---- a rung ---- */

typedef struct Rung {
	Search *s;
	Trial **pending;
	atomic_uint *left; /* [count] folds of a pending trial that are not done */
	uint32_t count, known;
	double epochs;
	uint32_t number;
	atomic_uint next;
	atomic_uint end; /* no network from here on is trained: the time is over */
	atomic_int failed;
	pthread_mutex_t lock; /* of what follows, and of the log */
	uint32_t done;        /* pending trials */
	double best;          /* mean score */
} Rung;

/* Lines of a trial, one for each fold: "rung trial fold score loss epochs". */
static void trial_log(FILE *f, const Search *s, const Trial *t)
{
	for (uint32_t i = 0; i < s->folds; i++)
		fprintf(f, "%u %u %u %.17g %.17g %.17g\n", t->rung, t->number, i, t->score[i], t->loss[i], t->epochs[i]);
	fflush(f);
}

static void trial_end(Rung *r, const Trial *t)
{
	Search *s = r->s;
	pthread_mutex_lock(&r->lock);
	if (s->log)
		trial_log(s->log, s, t);
	r->done++;
	r->best = fmax(r->best, trial_score(s, t)); /* not of NaN, if there is another */
	if (s->trial_done)
		s->trial_done(s->user, s, r->number, r->known + r->done, r->known + r->count, r->best);
	pthread_mutex_unlock(&r->lock);
}

static void *rung_work(void *arg)
{
	Rung *r = arg;
	uint32_t folds = r->s->folds, all = r->count * folds;
	for (uint32_t i; !r->failed && !r->s->stopped() && (i = atomic_fetch_add(&r->next, 1)) < all;) {
		bool begins = i % folds == 0 && i > 0;
		if (begins && r->number == 0 && r->s->deadline > 0 && wall_clock() > r->s->deadline) {
			unsigned end = r->end;
			while (i < end && !atomic_compare_exchange_weak(&r->end, &end, i))
				;
		}
		if (i >= r->end)
			break;
		Trial *t = r->pending[i / folds];
		if (evaluate(r->s, t, i % folds, r->epochs))
			r->failed = 1;
		else if (!r->s->stopped() && atomic_fetch_sub(&r->left[i / folds], 1) == 1)
			trial_end(r, t);
	}
	return NULL;
}

/* After a signal: trials that are not done are those of the rung before again; in the first rung they are dropped. */
static uint32_t rung_cut(Rung *r, const Trial *before, uint32_t count)
{
	Search *s = r->s;
	uint32_t kept = 0;
	for (uint32_t i = 0, k = 0; i < count; i++) {
		Trial *t = &s->trial[i];
		bool pending = k < r->count && r->pending[k] == t;
		bool done = !pending || !r->left[k];
		k += pending;
		if (!done && before)
			*t = before[i];
		if (done || before)
			s->trial[kept++] = *t;
	}
	if (!before)
		s->trials = kept;
	return kept;
}

static int rung_train(Rung *r)
{
	Search *s = r->s;
	pthread_t thread[64];
	uint32_t threads = s->threads < 64 ? s->threads : 64, started = 0;
	if (pthread_mutex_init(&r->lock, NULL))
		return EXIT_FAILED;
	while (started + 1 < threads && !pthread_create(&thread[started], NULL, rung_work, r))
		started++;
	rung_work(r);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&r->lock);
	if (r->failed)
		complain("use fewer threads, or smaller data", "out of memory");
	return r->failed ? EXIT_FAILED : EXIT_DONE;
}

/* *counted: trials to evaluate; afterwards those that there was time for. */
static int rung_run(Search *s, Args *a, uint32_t number, uint32_t *counted, double epochs, const Trial *known,
                    uint32_t knowns)
{
	Rung r = { .s = s, .epochs = epochs, .number = number, .best = NAN };
	uint32_t count = *counted;
	Trial *before = number ? args_alloc(a, count, sizeof *before) : NULL;
	if (before)
		memcpy(before, s->trial, count * sizeof *before);
	r.pending = args_alloc(a, count + 1, sizeof *r.pending);
	r.left = args_alloc(a, count + 1, sizeof *r.left);
	for (uint32_t i = 0; i < count; i++) {
		Trial *t = &s->trial[i];
		t->rung = number;
		const Trial *logged = NULL;
		for (uint32_t k = 0; k < knowns && !logged; k++)
			if (known[k].number == t->number && known[k].rung == number)
				logged = &known[k];
		if (logged) {
			*t = *logged;
			r.best = fmax(r.best, trial_score(s, t));
			r.known++;
			continue;
		}
		r.left[r.count] = s->folds;
		r.pending[r.count++] = t;
	}
	r.end = r.count * s->folds;
	int rc = rung_train(&r);
	if (rc)
		return rc;
	s->trained += (uint64_t)r.done * s->folds;
	if (s->stopped()) {
		count = rung_cut(&r, before, count);
	} else if (r.end < r.count * s->folds) { /* the trials before it are complete */
		r.count = r.end / s->folds;
		count = s->trials = (uint32_t)(r.count ? r.pending[r.count - 1] - s->trial + 1 : 1);
	}
	sorted = s;
	qsort(s->trial, count, sizeof *s->trial, by_score);
	*counted = count;
	if (s->progress && count)
		s->progress(s->user, s, number, count, s->trials);
	return EXIT_DONE;
}

/* ---- the log ---- */

/* Lines of an interrupted search; its first line must be that of this one. */
static int log_open(Search *s, Args *a, const char *path, Trial **known, uint32_t *knowns)
{
	char head[256], line[256];
	const mp_table_info *info = mp_table_get_info(s->table);
	snprintf(head, sizeof head, "microprop tune: %llu rows, %u columns, seed %llu, %u folds, %u trials\n",
	         (unsigned long long)info->rows, info->columns, (unsigned long long)s->seed, s->folds, s->trials);
	struct stat st;
	bool there = !stat(path, &st);
	uint64_t most = 4096 + (uint64_t)s->trials * RUNGS * s->folds * sizeof line; /* bytes; a pipe would wait for ever */
	if (there && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)) {
		complain("choose another file, or remove this one", "--log: %s cannot be the log of this search", path);
		return EXIT_USAGE;
	}
	FILE *f = fopen(path, "re");
	Trial *t = args_alloc(a, (size_t)s->trials * RUNGS + 1, sizeof *t);
	*known = t;
	*knowns = 0;
	bool begun = f && fgets(line, sizeof line, f), torn = false; /* torn: the last line has no end */
	if (begun && strcmp(line, head) != 0) {
		complain("choose another file, or remove this one", "--log: %s belongs to another search", path);
		fclose(f);
		return EXIT_USAGE;
	}
	unsigned rung, trial, fold, got = s->folds; /* got: folds of the last trial */
	double score, loss, epochs;
	while (begun && fgets(line, sizeof line, f)) {
		torn = !strchr(line, '\n');
		if (torn || sscanf(line, "%u %u %u %lg %lg %lg", &rung, &trial, &fold, &score, &loss, &epochs) != 6 ||
		    rung >= RUNGS || trial >= s->trials)
			continue;
		if (fold == 0) {
			*knowns -= got < s->folds; /* the one before lacks some */
			if (*knowns == s->trials * RUNGS)
				break;
			trial_draw(&t[(*knowns)++], s->seed, trial);
			t[*knowns - 1].rung = rung;
			got = 0;
		}
		if (got == s->folds || fold != got || t[*knowns - 1].number != trial)
			continue;
		Trial *last = &t[*knowns - 1];
		last->score[fold] = score;
		last->loss[fold] = loss;
		last->epochs[fold] = epochs;
		got++;
	}
	*knowns -= got < s->folds;
	if (f)
		fclose(f);
	s->log = fopen(path, "ae");
	if (s->log && !begun)
		fputs(head, s->log);
	if (s->log && torn)
		fputc('\n', s->log);
	if (s->log)
		fflush(s->log);
	if (s->log)
		return EXIT_DONE;
	complain("choose a file that you may write", "--log: cannot write %s: %s", path, strerror(errno));
	return EXIT_USAGE;
}

/* ---- all of it ---- */

static int fold_begin(Search *s, uint32_t fold)
{
	mp_cut cut = { .size = sizeof cut, .folds = s->folds, .fold = fold, .seed = s->seed, .stratify = 1 };
	Fold *f = &s->fold[fold];
	int rc = after_table(s->table, mp_table_cut(s->table, &cut, &f->train, &f->test));
	for (uint8_t h = 0; !rc && h < values(&space[HIDDEN]); h++)
		for (uint8_t k = 0; !rc && k < values(&space[FUNCTION]); k++)
			rc = trial_topology(s->table, &(Trial){ .choice = { [HIDDEN] = h, [FUNCTION] = k } },
			                    &f->network[h * 2 + k]);
	return rc;
}

int search_begin(Search *s, Args *a)
{
	int rc = EXIT_DONE;
	s->regression = !strcmp(mp_table_get_info(s->table)->task, "regression");
	for (uint32_t i = 0; !rc && i < s->folds; i++)
		rc = fold_begin(s, i);
	s->trial = args_alloc(a, s->trials, sizeof *s->trial);
	for (uint32_t i = 0; i < s->trials; i++)
		trial_draw(&s->trial[i], s->seed, i);
	return rc;
}

int search_run(Search *s, Args *a)
{
	Trial *known = NULL;
	uint32_t knowns = 0, count = s->trials;
	double epochs = FIRST_EPOCHS;
	const char *log = args_text(a, "log");
	int rc = log ? log_open(s, a, log, &known, &knowns) : EXIT_DONE;
	for (uint32_t rung = 0; !rc && rung < RUNGS && !s->stopped(); rung++) {
		rc = rung_run(s, a, rung, &count, epochs, known, knowns);
		count = count / KEEP ? count / KEEP : 1;
		epochs *= KEEP;
	}
	if (s->log && fclose(s->log) && !rc) {
		complain("free space on the disk", "cannot write the log");
		rc = EXIT_FAILED;
	}
	return rc;
}

void search_end(Search *s)
{
	for (uint32_t i = 0; i < s->folds; i++) {
		mp_data_close(s->fold[i].train);
		mp_data_close(s->fold[i].test);
		for (size_t k = 0; k < COUNT(s->fold[i].network); k++)
			free(s->fold[i].network[k]);
	}
	mp_table_close(s->table);
}
