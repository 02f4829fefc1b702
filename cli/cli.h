/* SPDX-License-Identifier: MIT */
/* cli: the command line.  It uses the public headers and the C library, nothing of lib/.
 *
 * Results go to stdout, messages to stderr.  Prototypes stand under the name of the file that holds them. */
#ifndef CLI_H
#define CLI_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "microprop.h"
#include "microprop/background.h"
#include "microprop/build.h"
#include "microprop/data.h"
#include "microprop/job.h"
#include "microprop/restarts.h"
#include "microprop/table.h"
#include "microprop/gf11.h"
#include "microprop/tool.h"

#ifndef _GNU_SOURCE
char *realpath(const char *restrict path, char *restrict resolved); /* POSIX; headers may hide it */
#endif
#if defined __APPLE__
#define st_mtim st_mtimespec
#endif

#if defined __GNUC__
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif
#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 }; /* and 128 + signal */

/* ---- main.c: the table of commands -------------------------------------------------------------- */

/* An option of a command; argument NULL: a flag; "[=FILE]": it may be left out. */
typedef struct Option {
	const char *name, *argument, *help;
} Option;

/* Options under one heading: a list that ends with a NULL name, or (list NULL) options of the library's own table. */
typedef struct OptionGroup {
	const char *heading;
	const Option *list;
	const char *from_library; /* names with blanks between and around them, or "*" for all */
} OptionGroup;

typedef struct Example {
	const char *line, *says;
} Example;

typedef struct Args Args;
typedef struct Rank {
	mp_job *job;
	int kept;      /* file with the stderr of a rank other than 0; -1: none */
	int heartbeat; /* file descriptor (heartbeat.c); -1: not watched */
} Rank;
typedef struct Command {
	const char *name;
	const char *operands;     /* "FILE.topo [DATA]" */
	int least, most;          /* how many operands */
	const char *summary;      /* a few words, for lists */
	const char *about;        /* paragraphs, with an empty line between them */
	const OptionGroup *group; /* ends with a NULL heading */
	const Example *example;   /* ends with a NULL line */
	int (*run)(Args *args);   /* returns the exit status */
	const char *tool;         /* target whose tool lists the commands of this command; NULL: it has none */
} Command;

extern const Command *const commands[]; /* ends with NULL */
extern const Command export_command, train_command, test_command, predict_command, show_command, data_command,
	gf11_command, launch_command, model_command, bench_command, help_command, tune_command, import_command,
	lesion_command, analyze_command, view_command;

/* ---- sigbus.c: files that are truncated while they are mapped ------------------------------------ */

void sigbus_watch(void); /* from now on that ends the program with a message */

/* ---- job.c: one process of several -------------------------------------------------------------- */

int memory_file(const char *name); /* a file without a place; -1: none */
int job_join(Rank *j);             /* exit status; ranks other than 0 are silent from now on */
int job_leave(Rank *j, int rc);    /* the exit status of all */

/* ---- heartbeat.c: between launch and the processes it watches ------------------------------- */

typedef struct Heartbeat {
	uint64_t alive;    /* time of the last heartbeat; 0: none yet */
	uint64_t step;     /* time of the last one between two updates; 0: none yet */
	uint32_t attempt;  /* number of the attempt, from 1 */
	uint32_t ended;    /* 1 + exit status; 0: no rank has exited in an orderly way */
	uint32_t diverged; /* 1: because training diverged */
} Heartbeat;

int heartbeat_join(int *heartbeat); /* exit status; *heartbeat -1: this process is not watched */
void heartbeat_send(int heartbeat);
void heartbeat_step(int heartbeat); /* after an update */
void heartbeat_end(int heartbeat, int rc);
void heartbeat_diverged(int heartbeat);
bool heartbeat_create(char *path, size_t size); /* a file for all attempts; false: failed, message shown */
Heartbeat heartbeat_read(const char *path);
/* kills processes left of the attempt before; false: failed, message shown */
bool heartbeat_begin(const char *path, uint32_t attempt, double seconds);

/* ---- args.c: options in, usage errors out ------------------------------------------------------- */

typedef struct Given {
	const char *name, *value;
	bool library, flag;
} Given; /* flags: "1" or "0" */
typedef struct Kept Kept;

struct Args {
	const Command *command;
	int argc;
	char **argv; /* the whole line, for args.json */
	Given *given;
	size_t givens;
	const char **operand;
	int operands;
	Kept *kept;    /* memory that lives as long as the command */
	mp_job *job;   /* a job of one, unless several processes were started together */
	int heartbeat; /* as in Rank */
};

/* False: the line is wrong, message shown.  *help is set if --help was there. */
bool args_read(Args *a, const Command *command, int argc, char **argv, bool *help);
void args_free(Args *a);
const char *args_text(const Args *a, const char *name); /* NULL if not given */
bool args_flag(const Args *a, const char *name);
/* Leaves *value alone if it is not given; false: it is not a number, message shown. */
bool args_count(const Args *a, const char *name, uint64_t *value);
void *args_alloc(Args *a, size_t count, size_t size); /* zeroed; ends the program if there is no memory */
char *args_copy(Args *a, const char *text);

/* One option as help, manual and completion see it, whether it is ours or the library's. */
typedef struct OptionView {
	const char *name, *argument, *standard; /* standard: the default; NULL if none */
	const mp_option *library;               /* NULL: the command's own */
	bool list;                              /* may be given several times */
	char choices[80];                       /* argument of a choice: "a|b|c" */
	char help[400];                         /* after the owner: "gf11: processors that ..." */
} OptionView;
bool group_view(const OptionGroup *group, size_t i, OptionView *view); /* false past the last */

/* "error: ..." and the remedy below it, the same form as the library's messages. */
void complain(const char *remedy, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Keeps the name that is nearest to a misspelt word; names that are far from it do not count. */
typedef struct Guess {
	const char *word, *name;
	size_t distance;
} Guess;
void guess_try(Guess *g, const char *name);

/* ---- manual.c: help, man page and completion, all from the tables ------------------------------- */

/* Help on one of the commands that the tool of a command has; false: there is no such. */
bool manual_verb(FILE *f, const Command *c, const char *name);
void manual_help(FILE *f, const Command *c); /* NULL: all commands */
void manual_json(const Command *c);          /* the same for other programs, to stdout */
int manual_print(const char *which);         /* "1": microprop(1) in roff; "options": a plain list */
int manual_completion(const char *shell);

/* ---- signals.c: those that end a run after it has saved ------------------------------------------ */

void signals_catch(void (*handler)(int number));
void signals_default(void);           /* as they were before signals_catch */
void signals_block(sigset_t *before); /* until sigprocmask restores `before` */

/* ---- session.c: what the commands open, and how they fail --------------------------------------- */

typedef struct Session {
	mp_net *net;
	mp_data *data, *test;
	mp_run *run;
} Session;

/* Messages of a call on a handle go to stderr; returns the exit status for its result.  A NULL handle: out of
 * memory. */
int after_net(const mp_net *net, mp_status status);
int after_data(const mp_data *data, mp_status status);
int after_run(const mp_run *run, mp_status status);
int after_step(const mp_run *run, mp_status status); /* perhaps in a report: notes are shown when the run ends */
int after_tool(const mp_tool *tool, mp_status status);
int after_gf11(const mp_gf11 *g, mp_status status);

/* Each returns the exit status, messages shown. */
bool is_old_weights(const char *path); /* .wt of LENS, .wts of tlearn: read with their network; NULL: no */
bool is_example(const char *path);     /* example:xor, a topology file in the program */
int session_net(Session *s, const char *path, const char *weights);
int session_data(mp_data **data, const char *path, const mp_data_options *options);
int session_data_for(Session *s, const char *path, const mp_data_options *options); /* as the run was trained on */
int session_run(Session *s);                                                        /* a run of the net */
int session_load(Session *s, const char *path); /* weights; those of an older simulator came with the network */
int session_set(Session *s, const Args *a);     /* the library's options that were given */
bool session_reading(const Args *a, bool main_file, mp_data_options *o); /* false: message shown */
/* Options that the topology file gives for the data it names hold where the command line gives none: all of them for
 * that data, those about columns for other files of the same kind. */
void session_reading_file(const mp_data_options *file, const char *named, const char *path, mp_data_options *o);
/* Sizes that the topology file leaves open, from data or (NULL) a file of weights. */
int session_resolve(Session *s, const mp_data *data, const char *weights);
/* Net and weights: FILE.topo WEIGHTS, or one MODEL that holds both.  *data: the operand after them, NULL if there is
 * none.  The data is then read with the classes of the weights file. */
int session_weights(Session *s, const Args *a, mp_data_options *reading, const char **data);
/* Opens data with targets; NULL: the test data of the topology file, or its training data. */
int session_cases(Session *s, const Args *a, const char *data, mp_data_options *reading, uint64_t *cases);
void session_close(Session *s);

extern const Option data_reading[]; /* options that say how to read data */

/* ---- table.c: training on a table without a topology file --------------------------------------- */

enum { MOST_TABLE_FOLDS = 100 };
typedef struct TableRun {
	mp_table *table; /* NULL: not trained on a table */
	uint64_t held_out;
	uint32_t folds;                                          /* 0: no cross-validation */
	double fold_score[MOST_TABLE_FOLDS], fold_mean, fold_sd; /* accuracy or R2 */
	uint64_t fold_epochs[MOST_TABLE_FOLDS];                  /* the best epoch; 0: diverged */
	bool refit;                                              /* the model is trained once more, on all rows */
	uint64_t refit_epochs;                                   /* 0: that was not done */
	bool (*stopped)(void);                                   /* by a signal */
	void (*watch)(mp_run *run);                              /* a signal stops this run from now on; NULL: none */
	uint64_t seed, seeds;                                    /* with restarts: the best, and how many were trained */
	const char *model;                                       /* file that the model is saved to; NULL: none */
} TableRun;
int after_table(const mp_table *table, mp_status status);
bool table_model(mp_run *run);   /* trained on a table without a topology file */
bool is_table(const char *path); /* by its name: data, not a topology file */
/* The file of the model, NULL with --no-save; refuses to overwrite one that was not named. */
int table_model_file(Args *a, const char *path, const char **file);
/* The seed of `count` whose network has the least error on the rows held out: t->seed. After a signal net and run of
 * `s` are those of the best so far. */
int table_restarts(TableRun *t, Args *a, Session *s, uint64_t count);
/* A network and a run for all rows, and for as many epochs as cross-validation found best. Without one: no run. */
int table_refit(TableRun *t, Args *a, Session *all);
/* Opens the table, cuts it, makes a network for it; test: data to test on, NULL: rows are held out. */
int train_table_open(TableRun *t, Args *a, Session *s, const char *path, const char *test);

/* ---- waiting.c: a note where nothing comes ------------------------------------------------------- */

void waiting_start(const char *path); /* about to open and read it; "-": standard input */
void waiting_end(void);
/* Shows on a terminal that a command goes on, from its third second. */
void working_start(const char *name);
void working_end(void);

/* ---- inputs.c: files to be read ----------------------------------------------------------------- */

int pipe_open(const char **path); /* a pipe takes the place of standard input; *path becomes "-" */
/* Standard input becomes a file that can be read twice; `head`: what was read of it before. */
int input_spool(const char *head, size_t len);
bool holds_table(const char *path); /* by its first bytes: a table, not a topology file; "-": spooled */
int table_refuse(const Args *a);    /* EXIT_USAGE: a table stands where a model should, message shown */
/* A file that is read must not be written: EXIT_USAGE if these are one, message shown. */
int overwrite_check(const char *input, const char *output);
/* against operands and options that name inputs; option: whose file it is */
int output_inputs_check(const Args *a, const char *option, const char *output);
int input_outputs_check(const Args *a, const char *input); /* against options that name outputs; NULL: none */

/* ---- outputs.c: files to be written, checked before the work ------------------------------------ */

/* What the option names, if it is given; EXIT_USAGE: it could not be written, message shown. */
int output_check(Args *a, const char *option);                        /* a file */
int output_path_check(Args *a, const char *option, const char *path); /* path: also where it is not given */
int model_output_check(Args *a, const char *path);    /* a file that is no model is overwritten with --force only */
int folder_output_check(Args *a, const char *option); /* a folder, which may have to be made */
const char *remedy_for(int reason, const char *otherwise); /* reason: errno; where the file itself is not the cause */

/* A text file: printed into memory, then written as a whole or not at all. */
typedef struct TextFile {
	FILE *f;
	char *text;
	size_t len;
} TextFile;
bool text_begin(TextFile *t); /* false: out of memory, message shown */
int text_end(TextFile *t, mp_run *run, const char *path);

/* ---- cmd_gf11.c: commands of a target ----------------------------------------------------------- */

/* Runs the target's command `verb` (NULL: the first operand) with the operands after it and all options given. */
int tool_run(Args *a, const char *target, const char *verb);

/* ---- json.c: JSON out --------------------------------------------------------------------------- */

typedef struct Json {
	FILE *f;
	int depth;
	bool more, lines;
} Json; /* lines: one member a line, indented */

void json_open(Json *j, const char *key, char bracket); /* '{' or '['; key NULL inside arrays and at the top */
void json_close(Json *j, char bracket);
void json_text(Json *j, const char *key, const char *value); /* NULL: null; bytes that are not UTF-8 become U+FFFD */
void json_number(Json *j, const char *key, double value);    /* shortest that reads back the same; not finite: null */
void json_count(Json *j, const char *key, uint64_t value);
void json_bool(Json *j, const char *key, bool value);
void json_members(Json *j, const char *object); /* members of a JSON object in text; NULL: none */
void number_print(FILE *f, double value);       /* the number alone; nan and inf as such */
void json_end(Json *j);                         /* closes the object at the top, ends the line */

/* ---- metrics.c ---------------------------------------------------------------------------------- */

void metrics_json(Json *j, mp_run *run, const mp_metrics *m);
void metrics_csv(mp_run *run, const mp_metrics *m, FILE *f); /* a line for each figure */
/* The name of a class, or its number, put into `number`. */
const char *metrics_class(const mp_metrics *m, uint32_t i, char number[16]);
void columns_json(Json *j, mp_run *run); /* of the table that the run was trained on */
void metrics_show(mp_run *run, const mp_metrics *m);
void metrics_rows(const mp_metrics *train, const mp_metrics *test); /* beside each other; test NULL: only one */
/* The share of cases whose best guess is right is a figure of these targets: not of several bits without a code, nor
 * of numbers. */
bool right_counts(const mp_net *net, mp_data *data);

/* ---- cases.c: every case of a measurement ------------------------------------------------------- */

typedef struct Cases {
	mp_run *run; /* measured just now */
	mp_data *data;
	const mp_metrics *metrics;
} Cases;
void cases_text(const Cases *c, FILE *f);
void cases_csv(const Cases *c, FILE *f);
void cases_json(const Cases *c, Json *j); /* the array case_list */

/* ---- inside/epochs.c: what train writes every N epochs ------------------------------------------ */

typedef struct Epochs {
	uint64_t outputs, checkpoints; /* every so many epochs; 0: not asked for */
	uint64_t step;                 /* of reports; 0: nothing is written */
	const char *folder;
	mp_data *data;  /* whose outputs are written */
	mp_run *second; /* that computes them */
	double *w, *out;
	uint64_t links, cases, saved, written; /* saved, written: the last epochs that were */
} Epochs;
int epochs_check(Epochs *e, const Args *a); /* each returns the exit status, message shown */
int epochs_prepare(Epochs *e, const Args *a, const Session *s);
int epochs_report(Epochs *e, mp_run *run, const mp_report *r);
void epochs_close(Epochs *e);

/* ---- inside/lines.c: standard input as its lines come ------------------------------------------- */

typedef struct Lines {
	int fd, file;
	char *text;
	size_t len, cap;
	size_t head, head_end; /* the first line that is neither blank nor a comment */
	size_t next;           /* lines from here on have not been given yet */
	uint64_t line;         /* of the input, before `next` */
	uint64_t first;        /* the first line that lines_next gave */
	bool sequences;        /* blank lines, and lines `sequence`, divide cases: lines_next gives those of one */
	bool begins;           /* what lines_next gave follows such a line */
	bool ended;
} Lines;
bool lines_open(Lines *l); /* waits for the first line; false: it is a file, or nothing comes */
int lines_whole(Lines *l); /* all of it becomes standard input, as a file; closes l */
/* Waits for a line; all that have come become standard input, as a file, with the first line before them if that is a
 * header. False: no more come. */
bool lines_next(Lines *l, bool header);
void lines_close(Lines *l);

/* ---- inside/figure.c: figures of show ---------------------------------------------------------- */

extern const Option figure_options[];
int figure_show(Args *a, Session *s); /* the network is open; weights and data are further operands */

/* ---- show.c: text for people ------------------------------------------------------------------------ */

/* As fprintf, with the %s arguments escaped: names of files and of what is in them.  Texts of more than 1,024 bytes are
 * cut. */
void show(FILE *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void vshow(FILE *f, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
void show_lines(void *stream, const char *text, size_t len); /* whole lines of the library; an mp_write_fn for a FILE */
void show_json(FILE *f, const char *text);                   /* a JSON string */

/* ---- format.c: numbers for people ----------------------------------------------------------------- */

/* A number as text, by value. */
typedef struct Formatted {
	char s[40];
} Formatted;

Formatted format_count(uint64_t n);                     /* 12,022 */
Formatted format_things(uint64_t n, const char *thing); /* 1 case, 2 cases */
Formatted format_real(double v);                        /* four digits that count */
Formatted format_share(double v);                       /* 97.3 % */
Formatted format_time(double seconds);                  /* 12.3 ms, 12.3 s, 3 min 05 s, 2 h 03 min */
Formatted format_bytes(uint64_t n);                     /* 1.3 MB */
void csv_put(FILE *f, const char *text);                /* in quotes where it needs them */
bool ends_with(const char *name, const char *end);      /* in any case of letters */

/* What a library call writes, as one text; free it.  text NULL: nothing was written, or memory ran out. */
typedef struct TextOut {
	char *text;
	size_t len;
} TextOut;
void text_append(void *text_out, const char *text, size_t len); /* an mp_write_fn */

/* What the terminal at `fd` can show. */
typedef struct Screen {
	bool terminal, colour, unicode;
	bool moves; /* the cursor can: a line can be overwritten */
	int columns;
} Screen;
Screen screen_of(int fd);

/* ---- progress.c: one line on stderr, overwritten ---------------------------------------- */

typedef struct Progress {
	bool on;      /* stderr is a terminal or reports were asked for, and no --quiet */
	bool lines;   /* one for each report, not overwritten */
	double every; /* seconds between lines, at least */
	double shown; /* wall clock of the last line */
	Screen screen;
	double began; /* wall clock at the first report */
	uint64_t first_epoch;
	double time_limit; /* seconds of training, 0: none */
} Progress;

double wall_clock(void);
void progress_start(Progress *p, bool quiet, bool asked, const char *time_limit); /* asked: off a terminal too */
void progress_show(Progress *p, const mp_report *r);
void progress_restarts(Progress *p, const mp_restarts *m); /* seeds instead of epochs */
void progress_line(Progress *p, const char *line);         /* any other */
void progress_end(Progress *p);                            /* clears the line */

/* ---- curve.c: a learning curve drawn with characters -------------------------------------------- */

typedef struct Curve {
	const mp_point *point;
	size_t points;
	bool tested;
} Curve;

void curve_draw(const Curve *c, const Screen *screen, FILE *f); /* nothing, where there are not two points */

/* ---- transcribe.c: words of the data, transcribed ----------------------------------------------------------- */

int transcribe_show(Session *s, Args *a, mp_data *data, uint64_t words,
                    FILE *f); /* names of cases are "word/position" */

/* ---- rundir.c: a folder that holds all of a training run ---------------------------------------- */

typedef struct Norms Norms;
typedef struct RunDir {
	const char *path; /* NULL: none asked for */
	Args *args;
	Session *session;
	const char *data, *test; /* names, for args.json */
	bool resumed;
	bool started;            /* false until there is something to write: a run that is refused leaves no files */
	int metrics;             /* file descriptor of metrics.jsonl, once started */
	uint64_t epoch;          /* the last that has a line there */
	const char *last, *best; /* files of checkpoints */
	bool better;             /* there may have been an epoch better than those of best.safetensors */
	const char *file;        /* the checkpoint that is written during training; NULL: none */
	double every;            /* seconds between checkpoints */
	uint64_t keep;           /* files of it */
	bool incomplete;         /* a line of metrics could not be written, message shown */
	bool failing;            /* the last checkpoint could not be written, message shown */
	const Norms *norms;      /* for metrics.jsonl; NULL: not asked for */
} RunDir;

int rundir_check(RunDir *d, Args *a); /* refuses a folder that holds another run, and bad intervals */
int rundir_prepare(RunDir *d, Session *s, const char *data, const char *test); /* the run as it will start */
int rundir_report(RunDir *d, mp_run *run, const mp_report *r);                 /* a line of metrics */
int rundir_tick(RunDir *d,
                mp_run *run); /* a checkpoint is due; if that fails a message is shown and training goes on */
int rundir_save(RunDir *d, mp_run *run); /* last and best checkpoint */
int rundir_keep(RunDir *d, mp_run *run); /* the best alone, if there is one */
int rundir_close(RunDir *d);
void rundir_args(const RunDir *d, FILE *f);    /* the text of args.json */
int folders_make(Args *a, const char *path);   /* and those above it; exit status, message shown */
void json_report(Json *j, const mp_report *r); /* the keys that metrics and the result share */

/* A line of metrics; f is closed, and its text to be freed. */
bool report_line(TextFile *f, const mp_report *r, const Norms *n);

/* ---- norms.c: of weights, their change and the gradient, at reports --------------------------------- */

/* alone: this process trains on all cases. NULL: the network is too large for it. */
Norms *norms_start(const Session *s, bool alone);
void norms_look(Norms *n, mp_run *run, const mp_report *r); /* often enough; and at the last report */
void json_norms(Json *j, const Norms *n);                   /* those that norms_look has just found, if it did */
void norms_stop(Norms *n);

/* ---- view/viewer.c: the page of a run that is being trained --------------------------------------- */

typedef struct Viewer Viewer;
/* Where --view was given; exit status, message shown. */
int viewer_start(Viewer **viewer, const RunDir *dir, Session *s, const char *data, const char *test);
/* w NULL: nothing; true: the page asks for a checkpoint */
bool viewer_report(Viewer *w, const mp_report *r, const Norms *n);
void viewer_stop(Viewer *w);

#endif
