/* SPDX-License-Identifier: MIT */
/* train: trains the network of a topology file; prints a table or a JSON object, writes the files asked for.
 * Signals end the run at the last finished update; weights are saved before the program ends. */
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train_run.h"

static const Option file_options[] = {
	{ "test", "DATA", "also measure on this data; default: what the topology file names as test" },
	{ "save", "FILE", "save a checkpoint here at the end (safetensors)" },
	{ "load", "FILE", "start from the weights in this file" },
	{ "resume", "FILE", "continue from this checkpoint, with the exact bits of the uninterrupted run" },
	{ "restarts", "N",
	  "train N seeds, --seed and those after it, and keep the best: solved in the fewest epochs, or else of least "
	  "error" },
	{ "run", "DIR", "write arguments, metrics, last and best checkpoint to this folder" },
	{ "every", "SECONDS",
	  "time between checkpoints, written while training goes on; default 10 with --run, with --save only at the end" },
	{ "checkpoints-every", "N", "with --run: keep a checkpoint of every N-th epoch, DIR/epoch-000100.safetensors" },
	{ "outputs-every", "N",
	  "with --run: write the outputs of all cases (of the test data, if there is any) after every N-th epoch, "
	  "DIR/outputs-000100.npy" },
	{ "svg", "FILE", "draw the learning curve into this file" },
	{ "keep", "N", "keep the last N checkpoints, older ones as FILE.1, FILE.2, ...; default 1" },
	{ "no-save", NULL, "tables: do not save the model" },
	{ "force", NULL, "overwrite the model of a table, or with --save a file that is no safetensors file" },
	{ "words-file", "FILE", "nettalk: take the words of this list, first pronunciation of each" },
	{ "scale", "none|range|zscore",
	  "scale inputs to 0..1 or to mean 0 and deviation 1, fitted on the training data; saved with the weights" },
	{ NULL, NULL, NULL },
};

static const Option output_options[] = {
	{ "json", NULL, "print the result as one JSON object" },
	{ "quiet", NULL, "show no progress" },
	{ "curve", NULL, "draw the learning curve; default on a terminal" },
	{ "words", "N", "transcribe N words at the end, if cases are letters of words" },
	{ "norms", NULL,
	  "with --run: norms of the weights, of their changes and of the gradient in DIR/metrics.jsonl; default with "
	  "--view" },
	{ "view", NULL, "serve a page that shows the run to a browser on this machine; its address goes to stderr" },
	{ "control", NULL, "with --view: let the page stop the run and save it" },
	{ NULL, NULL, NULL },
};

static const Option table_options[] = {
	{ "task", "auto|classes|regression", "what the target is; default: found from its values" },
	{ "hidden", "SIZES", "sizes of the hidden layers, such as 64,32; default 40, from 1000 rows on 100" },
	{ "holdout", "X", "share of the rows that is held out; default 0.2, none below 20 rows" },
	{ "folds", "K", "cross-validate with K folds first" },
	{ "no-refit", NULL,
	  "keep the network trained without the rows held out; default up to 2000 rows: train it once more, on all rows, "
	  "for as many epochs as folds find best" },
	{ "balance", NULL, "weight cases so that all classes count the same" },
	{ "write-topo", "FILE", "write the topology that was made" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Files", file_options, NULL },
	{ "Output", output_options, NULL },
	{ "Training", NULL, "*" },
	{ "Tables without a topology file", table_options, NULL },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop train iris.csv", "a table: makes a network for it, trains it, saves iris.safetensors" },
	{ "microprop train examples/xor.topo", "all settings from the topology file" },
	{ "microprop train net.topo cases.npz --batch 32 --rate 0.05 --save net.safetensors", "other data, mini-batches" },
	{ "microprop train net.topo --run runs/1 --test held-out.npz --patience 20",
	  "a folder with metrics and checkpoints; stops when the test error no longer falls" },
	{ "microprop train examples/xor.topo --restarts 1000", "a thousand seeds: how many solve it, in how many epochs" },
	{ "microprop train net.topo --target gf11 --procs 356", "on the simulated machine of 1989" },
	{ "microprop train net.topo --resume runs/1/last.safetensors --run runs/1 --epochs 5000", "continues" },
	{ NULL, NULL },
};

/* A signal handler has no other access to the run: the only global variables of the program. */
static _Atomic(mp_run *) signal_run; /* atomic: a handler may run on any thread */
static atomic_int signal_seen;
static atomic_int signal_late; /* there is, or soon will be, something that is not to be lost */

static void signal_stop(int number)
{
	if (signal_seen || !signal_late) /* the second one does not wait for the save */
		_exit(128 + number);
	signal_seen = number;
	mp_run *run = signal_run;
	if (run)
		mp_run_stop(run);
}

static void signal_watch(mp_run *run)
{
	signal_run = run;
	signal_late = 1;
}

bool stopped_by_signal(void) { return signal_seen != 0; }

#define HEARTBEAT 0.2 /* seconds between heartbeats */

static int train_report(void *user, mp_run *run, const mp_report *r)
{
	Train *t = user;
	norms_look(t->norms, run, r);
	if (!t->failed) /* message shown once */
		t->failed = rundir_report(&t->dir, run, r);
	if (!t->failed && t->speaks)
		t->failed = epochs_report(&t->epochs, run, r);
	if (viewer_report(t->viewer, r, t->norms) && !t->failed && t->dir.file)
		t->failed = rundir_tick(&t->dir, run);
	progress_show(&t->progress, r);
	/* a signal before the training began ends it, but for the best of the seeds that one has ended */
	return t->failed || (signal_seen && !(t->restarts && mp_run_get_restarts(run)));
}

static int train_tick(void *user, mp_run *run)
{
	Train *t = user;
	double now = wall_clock();
	heartbeat_step(t->args->heartbeat);
	if (t->dir.file && now - t->ticked >= t->dir.every) {
		t->ticked = now;
		if (!t->failed)
			t->failed = rundir_tick(&t->dir, run);
	}
	return t->failed;
}

static int train_restarts(void *user, mp_run *run, const mp_restarts *so_far)
{
	Train *t = user;
	(void)run;
	progress_restarts(&t->progress, so_far);
	return 0;
}

/* Usage errors that need no file to be read. */
static int train_check(Train *t)
{
	Args *a = t->args;
	const char *from = args_text(a, "load") ? "load" : "resume";
	if (!args_count(a, "restarts", &t->restarts))
		return EXIT_USAGE;
	if (args_flag(a, "norms") && !args_text(a, "run") && !args_flag(a, "view")) {
		complain("give --run DIR too", "--norms says what metrics.jsonl has, but not where it is");
		return EXIT_USAGE;
	}
	if (args_text(a, "restarts") && !t->restarts) {
		complain("give 1 or more", "--restarts: there are no seeds to train");
		return EXIT_USAGE;
	}
	if (t->restarts && args_text(a, from)) {
		complain("each seed starts from weights of its own; leave one of the two out",
		         "--restarts and --%s exclude each other", from);
		return EXIT_USAGE;
	}
	if (args_text(a, "load") && args_text(a, "resume")) {
		complain("--load starts anew from weights, --resume goes on; give one of them",
		         "--load and --resume exclude each other");
		return EXIT_USAGE;
	}
	if (!args_count(a, "words", &t->words))
		return EXIT_USAGE;
	static const char *const outputs[] = { "save", "fault-log", "svg", "write-topo" };
	int rc = EXIT_DONE;
	for (size_t i = 0; !rc && t->speaks && i < COUNT(outputs); i++)
		rc = output_check(a, outputs[i]);
	if (rc == EXIT_DONE && t->speaks)
		rc = model_output_check(a, args_text(a, "save"));
	if (rc == EXIT_DONE)
		rc = epochs_check(&t->epochs, a);
	return rc || !t->speaks ? rc : rundir_check(&t->dir, a);
}

static int after_job(const mp_job *job, mp_status status)
{
	if (status == MP_OK)
		return EXIT_DONE;
	show_lines(stderr, mp_job_messages(job), strlen(mp_job_messages(job)));
	return status == MP_BAD_INPUT ? EXIT_USAGE : EXIT_FAILED;
}

/* Ranks have the same files and restarts, though only rank 0 writes. The library compares its own options. */
static int train_agree(Train *t)
{
	static const Option *const compared[] = { file_options, table_options, data_reading };
	mp_job *job = t->args->job;
	int rc = EXIT_DONE;
	for (size_t i = 0; i < COUNT(compared) && mp_job_size(job) > 1; i++)
		for (const Option *o = compared[i]; o->name && !rc; o++)
			rc = after_job(job, mp_job_same(job, o->name, args_text(t->args, o->name)));
	return rc;
}

/* A file that may exist on rank 0 only. */
static int train_file(Train *t, const char **name)
{
	if (!*name || mp_job_size(t->args->job) == 1)
		return EXIT_DONE;
	return after_job(t->args->job, mp_job_file(t->args->job, *name, name));
}

/* The table, a network for it, and the file that the model goes to. */
static int train_table(Train *t)
{
	Args *a = t->args;
	const char *name = a->operand[0], *test = args_text(a, "test");
	if (a->operands > 1) {
		complain("write: microprop train TABLE, or: microprop train FILE.topo DATA",
		         "%s is a table: it needs no second operand", name);
		return EXIT_USAGE;
	}
	int rc = table_model_file(a, name, &t->table.model);
	if (!rc)
		rc = train_file(t, &name);
	if (!rc)
		rc = train_file(t, &test);
	t->data = name;
	t->test = test;
	return rc ? rc : train_table_open(&t->table, a, &t->s, name, test);
}

/* A topology file says itself what these options are about. */
static int train_topology_check(const Args *a)
{
	static const char *const more[] = { "fold", "category" };
	const char *name = args_text(a, "save") && args_flag(a, "no-save") ? "no-save" : NULL;
	for (const Option *o = table_options; !name && o->name; o++)
		name = args_text(a, o->name) ? o->name : NULL;
	for (size_t i = 0; !name && i < COUNT(more); i++)
		name = args_text(a, more[i]) ? more[i] : NULL;
	if (!name)
		return EXIT_DONE;
	complain("leave it out, or train the table alone: microprop train TABLE",
	         "--%s is for tables; here %s, a topology file, describes the network", name, a->operand[0]);
	return EXIT_USAGE;
}

/* By its name or, if no other process has to agree, by its content. */
static int train_is_table(Train *t, bool *table)
{
	const char **name = &t->args->operand[0];
	*table = is_table(*name);
	if (*table || is_example(*name) || ends_with(*name, ".topo") || mp_job_size(t->args->job) > 1)
		return EXIT_DONE;
	int rc = pipe_open(name);
	if (!rc && !strcmp(*name, "-"))
		rc = input_spool(NULL, 0);
	*table = !rc && holds_table(*name);
	return rc;
}

static int train_net(Train *t)
{
	bool table;
	int rc = train_is_table(t, &table);
	if (rc || table)
		return rc ? rc : train_table(t);
	const char *name = t->args->operand[0];
	rc = train_topology_check(t->args);
	if (!rc && !is_example(name))
		rc = train_file(t, &name);
	return rc ? rc : session_net(&t->s, name, args_text(t->args, "load"));
}

/* The run, with the weights it starts from and the options given. */
static int train_prepare(Train *t)
{
	const char *load = args_text(t->args, "load"), *resume = args_text(t->args, "resume");
	int rc = train_file(t, load ? &load : &resume);
	if (!rc)
		rc = session_run(&t->s);
	if (!rc)
		mp_run_share(t->s.run, t->args->job);
	if (!rc && t->restarts && mp_net_get_info(t->s.net)->weights) {
		complain("leave it out, or train the topology alone: microprop import OLD OUT.topo",
		         "--restarts: %s holds weights, from which every seed would start", t->args->operand[0]);
		return EXIT_USAGE;
	}
	if (!rc && resume) /* brings its own options, which those given override */
		rc = after_run(t->s.run, mp_run_resume(t->s.run, resume));
	if (!rc)
		rc = session_set(&t->s, t->args);
	if (!rc && load && !is_old_weights(load))
		rc = after_run(t->s.run, mp_run_load(t->s.run, load));
	return rc;
}

/* Data of a topology file is numbers. */
static void table_hint(const char *messages, const char *data)
{
	if (strstr(messages, "' is not a number, and '") || strstr(messages, "' is empty here"))
		show(stderr,
		     "note: with a topology file inputs are numbers; categories and missing values are encoded by: microprop "
		     "train %s\n",
		     data);
}

static int train_read(Train *t)
{
	if (t->table.table)
		return EXIT_DONE;
	const mp_net_info *net = mp_net_get_info(t->s.net);
	const char *test = args_text(t->args, "test");
	t->data = t->args->operands > 1 ? t->args->operand[1] : net->data;
	t->test = test ? test : net->test;
	if (!t->data) {
		complain("write: microprop train FILE.topo DATA, or put a line such as  data \"cases.npz\"  into it",
		         "%s names no data to train on", t->args->operand[0]);
		return EXIT_USAGE;
	}
	if (t->speaks && (input_outputs_check(t->args, t->data) || input_outputs_check(t->args, t->test)))
		return EXIT_USAGE;
	mp_data_options main_file, test_file;
	if (!session_reading(t->args, true, &main_file) || !session_reading(t->args, false, &test_file))
		return EXIT_USAGE;
	main_file.scale = args_text(t->args, "scale");
	session_reading_file(net->data_options, net->data, t->data, &main_file);
	if (t->test)
		session_reading_file(net->test_options, net->test, t->test, &test_file);
	if (t->test)
		session_reading_file(net->data_options, net->data, t->test, &test_file);
	test_file.scale = NULL; /* that of the training data */
	main_file.shared = test_file.shared = mp_job_size(t->args->job) > 1 && !t->restarts;
	int rc = train_file(t, &t->data);
	if (!rc)
		rc = train_file(t, &t->test);
	if (!rc)
		rc = train_file(t, &main_file.partner);
	if (!rc)
		rc = train_file(t, &main_file.words);
	main_file.lenient = test_file.lenient = t->test != NULL; /* the two may be of different formats */
	if (!rc)
		rc = t->s.run ? session_data_for(&t->s, t->data, &main_file) : session_data(&t->s.data, t->data, &main_file);
	if (rc == EXIT_USAGE && t->s.data)
		table_hint(mp_data_messages(t->s.data), t->data);
	if (rc || !t->test)
		return rc;
	test_file.like = t->s.data;
	test_file.classes = mp_data_get_classes(t->s.data, &test_file.class_count);
	return session_data(&t->s.test, t->test, &test_file);
}

/* Sizes that the topology file leaves open are those of the data, which is then read first. */
static int train_resolve(Train *t)
{
	if (!mp_net_get_info(t->s.net)->open)
		return EXIT_DONE;
	int rc = train_read(t);
	return rc ? rc : session_resolve(&t->s, t->s.data, NULL);
}

/* Only rank 0 writes the folder; the options it needs are set on all ranks. */
static int train_folder(Train *t)
{
	if (t->speaks)
		return rundir_prepare(&t->dir, &t->s, t->data, t->test);
	return args_text(t->args, "run") ? after_run(t->s.run, mp_run_set(t->s.run, "keep-best", "1")) : EXIT_DONE;
}

static int train_save(Train *t)
{
	const char *file = t->table.table ? t->table.model : args_text(t->args, "save");
	mp_run_save_wait(t->s.run);
	bool best = t->table.table && t->s.test; /* a model: the weights of the best epoch */
	int rc = !file                   ? EXIT_DONE
	         : t->table.refit_epochs ? after_run(t->all.run, mp_run_save(t->all.run, file))
	         : best                  ? after_run(t->s.run, mp_run_save_best(t->s.run, file))
	                                 : after_run(t->s.run, mp_run_save(t->s.run, file));
	if (!rc && t->dir.path)
		rc = rundir_save(&t->dir, t->s.run);
	if (rc)
		return rc;
	t->saved = file ? file : t->dir.last;
	if (signal_seen && t->saved)
		show(stderr, "stopped; saved to %s\n", t->saved);
	else if (signal_seen)
		show(stderr, "stopped; nothing saved, as %s was given\n",
		     args_flag(t->args, "no-save") ? "--no-save" : "neither --save nor --run");
	if (signal_seen && t->table.refit && !t->table.refit_epochs)
		show(stderr, "the network was not trained once more on all rows\n");
	return EXIT_DONE;
}

/* The last weights are lost, but not those saved before. */
static void train_diverged(Train *t)
{
	heartbeat_diverged(t->args->heartbeat);
	mp_run_save_wait(t->s.run);
	if (!t->speaks || !t->dir.path || rundir_keep(&t->dir, t->s.run))
		return;
	for (int i = 0; i < 2; i++) {
		const char *file = i ? t->dir.last : t->dir.best;
		if (!access(file, F_OK))
			show(stderr, "  %s holds %s\n", file, i ? "the last checkpoint" : "the best epoch");
	}
}

/* The best epoch is the model. */
static int train_measure(Train *t)
{
	int rc = after_run(t->s.run, mp_run_use_best(t->s.run));
	if (rc)
		return rc;
	t->metrics = mp_run_measure(t->s.run, t->s.test ? t->s.test : t->s.data);
	if (!t->metrics)
		return after_run(t->s.run, MP_FAILED);
	return after_run(t->s.run, mp_run_keep_metrics(t->s.run, t->s.run, t->s.test != NULL));
}

/* The model gets all rows, and the metrics of the network that was trained without those held out. */
static int train_refit(Train *t)
{
	if (!t->table.refit || signal_seen || mp_run_get_report(t->s.run)->simulated_seconds > 0)
		return EXIT_DONE;
	int rc = table_refit(&t->table, t->args, &t->all);
	if (rc || !t->table.refit_epochs)
		return rc;
	signal_watch(t->all.run);
	mp_status status = signal_seen ? MP_STOPPED : mp_run_train(t->all.run, t->all.data, NULL, NULL, NULL);
	signal_watch(NULL);
	if (status != MP_OK) { /* it diverged, or a signal came: the network there is remains the model */
		t->table.refit_epochs = 0;
		return EXIT_DONE;
	}
	return after_run(t->all.run, mp_run_keep_metrics(t->all.run, t->s.run, 1));
}

/* Of many seeds the one with the least error on the rows held out. */
static int train_table_seed(Train *t)
{
	char number[24];
	int rc = table_restarts(&t->table, t->args, &t->s, t->restarts);
	snprintf(number, sizeof number, "%llu", (unsigned long long)t->table.seed);
	return rc || signal_seen ? rc : after_run(t->s.run, mp_run_set(t->s.run, "seed", number));
}

static void curve_add(void *f, const char *text, size_t len) { fwrite(text, 1, len, f); }

/* The learning curve, if it is asked for. */
static int train_draw(Train *t)
{
	const char *path = args_text(t->args, "svg");
	TextFile f;
	if (!path)
		return EXIT_DONE;
	if (!text_begin(&f))
		return EXIT_FAILED;
	int rc = after_run(t->s.run, mp_run_figure(t->s.run, "curve", 0, curve_add, f.f));
	int written = text_end(&f, t->s.run, path);
	return rc ? rc : written;
}

static int train_done(void) { return signal_seen ? 128 + signal_seen : EXIT_DONE; }

static int train_steps(Train *t)
{
	Args *a = t->args;
	int rc = EXIT_DONE;
	t->json = args_flag(a, "json");
	t->speaks = mp_job_rank(a->job) == 0;
	if ((rc = train_check(t)) || (rc = train_agree(t)) || (rc = train_net(t)) || (rc = train_resolve(t)) ||
	    (rc = train_prepare(t)) || (!t->s.data && (rc = train_read(t))) || (rc = train_folder(t)))
		return rc;
	if (t->table.table && !signal_seen && t->restarts && (rc = train_table_seed(t)))
		return rc;
	bool searched = t->table.table && signal_seen; /* stopped in cross-validation, or while it searched a seed */
	if (searched && !t->table.seeds) {
		show(stderr, "stopped before the network was trained; nothing saved\n");
		return train_done();
	}
	if ((rc = epochs_prepare(&t->epochs, a, &t->s)) ||
	    (t->speaks && (rc = viewer_start(&t->viewer, &t->dir, &t->s, t->data, t->test))))
		return rc;
	if (t->speaks && (args_flag(a, "norms") || t->viewer))
		t->dir.norms = t->norms = norms_start(&t->s, mp_job_size(a->job) == 1);
	progress_start(&t->progress, args_flag(a, "quiet"), args_text(a, "report") && t->speaks && !t->json,
	               mp_run_get(t->s.run, "time"));
	t->progress.first_epoch = mp_run_get_report(t->s.run)->epoch;
	signal_watch(t->s.run);
	bool watched = a->heartbeat >= 0;
	t->ticked = wall_clock();
	if (t->speaks && (t->dir.file || watched))
		mp_run_on_tick(t->s.run, watched && t->dir.every > HEARTBEAT ? HEARTBEAT : t->dir.every, train_tick, t);
	heartbeat_send(a->heartbeat);
	mp_status status = searched                         ? MP_STOPPED
	                   : t->restarts && !t->table.table ? mp_run_restarts(t->s.run, t->s.data, t->s.test, t->restarts,
	                                                                      train_restarts, train_report, t)
	                                                    : mp_run_train(t->s.run, t->s.data, t->s.test, train_report, t);
	progress_end(&t->progress);
	if (t->table.table)
		signal_watch(NULL);
	if (t->failed) /* message shown already */
		return t->failed;
	rc = after_run(t->s.run, status);
	const char *end = mp_run_get_report(t->s.run)->stopped_by;
	if (rc && end && !strcmp(end, "diverged"))
		train_diverged(t);
	if (rc && status != MP_STOPPED)
		return rc;
	if (status == MP_STOPPED && !signal_seen) /* another rank had a signal */
		signal_seen = SIGTERM;
	const mp_restarts *seeds = mp_run_get_restarts(t->s.run);
	if (status == MP_STOPPED && seeds && !seeds->done) {
		if (t->speaks)
			show(stderr, "stopped before a seed was trained; nothing saved\n");
		return train_done();
	}
	if (!t->speaks)
		return train_done();
	rc = t->table.table ? train_measure(t) : EXIT_DONE;
	if (!rc && t->table.table)
		rc = train_refit(t);
	if (!rc)
		rc = train_save(t);
	if (!rc)
		rc = train_draw(t);
	int shown = train_result(t);
	return rc ? rc : shown ? shown : train_done();
}

static int train_run(Args *a)
{
	Train t = { .args = a, .table = { .stopped = stopped_by_signal, .watch = signal_watch } };
	signals_catch(signal_stop);
	int rc = train_steps(&t), closed = rundir_close(&t.dir);
	viewer_stop(t.viewer);
	norms_stop(t.norms);
	signals_default();
	epochs_close(&t.epochs);
	session_close(&t.s);
	session_close(&t.all);
	mp_table_close(t.table.table);
	return rc ? rc : closed;
}

const Command train_command = {
	.name = "train",
	.operands = "FILE.topo [DATA] | TABLE",
	.least = 1,
	.most = 2,
	.summary = "train a network",
	.about =
		"Trains a network. With a table (csv, tsv, npz, npy, idx, ...) instead of a topology file, what its columns "
		"hold "
		"is found out, a network is made for it, some rows are held out for early stopping, and the model is saved "
		"as NAME.safetensors: all that predict and test need.\n\n"
		"Trains the network of a topology file on DATA (by default the data the file names) until it is solved or "
		"a limit is reached. Prints the error, the accuracy (right: share of cases whose best guess is the "
		"target), the share of cases whose outputs are all within the threshold of their targets, and the speed "
		"in MCPS (million connections per second). DATA is a file, or a built-in set such as make:xor.\n\n"
		"Ctrl-C, SIGTERM and SIGHUP end the run after the current update, save what --save or --run ask for, and "
		"exit with 130, 143 or 129. A second signal ends it at once; nohup keeps SIGHUP away.",
	.group = groups,
	.example = examples,
	.run = train_run,
};
