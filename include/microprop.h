/* SPDX-License-Identifier: MIT */
/* microprop: compiles back-propagation networks and trains them.
 *
 *     mp_net *net;  mp_data *data;  mp_run *run;
 *     mp_net_open(&net, "xor.topo", NULL);                 a topology file becomes a network
 *     mp_data_open(&data, "xor.csv", NULL, NULL);          cases to learn
 *     mp_run_new(&run, net, NULL);                         a network being trained, with the file's own options
 *     mp_run_set(run, "epochs", "500");
 *     mp_run_train(run, data, NULL, NULL, NULL);
 *     mp_run_save(run, "xor.safetensors");
 *
 * Handles. A net, a data set, a run, a job and a tool are opaque. A call that opens one always sets the handle,
 * also when it fails (unless there was not even memory for the handle: then it is NULL), so that its messages can
 * be read; close it either way. Closing NULL does nothing. A net must outlive its runs; data must outlive the calls
 * it is given to.
 *
 * Threads. Different handles may be used by different threads at the same time; one handle by one thread at a time.
 * A net and a data set may be read by many runs at once. mp_run_stop may be called from any thread or signal
 * handler.
 *
 * Errors. Calls return a status; messages (file:line:col, the line, a caret, what would be right) are kept as text
 * in the handle until its next call. The library never prints, never exits, never aborts on input. */
#ifndef MICROPROP_H
#define MICROPROP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__ && defined MP_BUILD
#define MP_API __attribute__((visibility("default")))
#else
#define MP_API
#endif

typedef struct mp_net mp_net;
typedef struct mp_data mp_data;
typedef struct mp_run mp_run;
typedef struct mp_job mp_job;

typedef enum mp_status {
	MP_OK = 0,
	MP_FAILED = 1,    /* the run failed: error or weights not finite, disk full, ... */
	MP_BAD_INPUT = 2, /* a file, an option or an argument is wrong; the messages say where and what would be right */
	MP_STOPPED = 3,   /* mp_run_stop or the report function asked for it */
	MP_NO_MEMORY = 4
} mp_status;

/* "0.1.0" */
MP_API const char *mp_version(void);

/* Memory comes from here, if given: new_size 0 frees `old` and returns NULL; old NULL allocates. Blocks must be
 * aligned as malloc's. Must be safe to call from the thread that uses the handle. */
typedef struct mp_allocator {
	void *(*resize)(void *user, void *old, size_t old_size, size_t new_size);
	void *user;
} mp_allocator;

/* ---- networks ----------------------------------------------------------------------------------- */

/* Read a topology file (see topology(5)), or text that stands for one; `name` is what messages call it. */
MP_API mp_status mp_net_open(mp_net **net, const char *path, const mp_allocator *alloc);
MP_API mp_status mp_net_parse(mp_net **net, const char *text, const char *name, const mp_allocator *alloc);
MP_API void mp_net_close(mp_net *net);
MP_API const char *mp_net_messages(const mp_net *net);

typedef struct mp_group_info {
	const char *name, *function, *role;
	uint32_t size;
} mp_group_info;
/* from: "a[0:29]" */
typedef struct mp_block_info {
	const char *from, *to, *kind;
	uint64_t connections;
	int frozen;
} mp_block_info;

typedef struct mp_net_info {
	const char *name;
	uint32_t groups, blocks, copies;
	uint32_t units;             /* of all groups; the true unit is not counted */
	uint32_t inputs, outputs;   /* units with a role at the edge: what a case must bring */
	uint32_t levels;            /* of units that are computed one after the other */
	uint64_t connections;       /* with those of the true unit */
	uint64_t input_connections; /* the report's Wi: connections of the input layer, the true unit's to it included */
	const char *fingerprint;    /* of the structure: weights fit if it is the same */
	const char *data, *test;    /* data the file names, resolved against its folder; NULL if none */
	const mp_group_info *group; /* [groups] */
	const mp_block_info *block; /* [blocks] */
} mp_net_info;
MP_API const mp_net_info *mp_net_get_info(const mp_net *net);

/* Called with pieces of text. */
typedef void mp_write_fn(void *user, const char *text, size_t len);

/* Print a stage of the compilation: "net", "plan" or "program", the last two for a target (NULL: the default). */
MP_API mp_status mp_net_print(mp_net *net, const char *stage, const char *target, mp_write_fn *write, void *user);

/* ---- data --------------------------------------------------------------------------------------- */

/* All zero is a good default: the format is told by name and content. */
typedef struct mp_data_options {
	const char *format;  /* "npz" "npy" "idx" "csv" "text" "nettalk"; NULL: tell by name and content */
	const char *inputs;  /* csv: columns that are inputs, "a,b,3:7,*"; NULL: all that are not targets */
	const char *targets; /* csv: columns that are targets; NULL: the last column */
	/* csv: columns whose text is a class, made one-of-n; NULL: target columns that are not numbers */
	const char *labels;
	const char *sequence; /* csv: column that names the sequence a case belongs to */
	const char *weight;   /* csv: column of case weights */
	const char *names;    /* csv: column of case names */
	const char *partner;  /* npy, idx: the file with the targets; NULL: found by its name */
	const char *words;    /* nettalk: file with the words to take, first pronunciation of each */
	uint64_t first;       /* only so many rows (nettalk: words) from the start; 0: all */
	uint64_t seed;        /* generators: another sample; 0 is the standard one */
	int unlabelled;       /* csv, text: there are no targets, every column is an input */
	/* csv: classes of the label column in the order of the outputs, as a run was trained on them: one that is not
	 * among them is an error; NULL: those that the file has */
	const char *const *classes;
	uint32_t class_count;
	/* several ranks of a job train on it, each on some of the cases: npz, npy and idx files are mapped, and each
	 * rank reads and checks what it needs */
	int shared;
} mp_data_options;

/* Read a file, or make a built-in set: "make:xor", "make:parity:4", "make:encoder:8-3", "make:spirals", "make:letters",
 * "make:reber", "make:temporal-xor", "make:letter-sequences". */
MP_API mp_status mp_data_open(mp_data **data, const char *path, const mp_data_options *options,
                              const mp_allocator *alloc);

/* Cases from memory, copied: x [cases * inputs], y [cases * targets] (NaN: no target), seq [sequences + 1] offsets
 * or NULL. */
MP_API mp_status mp_data_new(mp_data **data, uint64_t cases, uint32_t inputs, uint32_t targets, const float *x,
                             const float *y, const uint64_t *seq, uint64_t sequences, const mp_allocator *alloc);
MP_API void mp_data_close(mp_data *data);
MP_API const char *mp_data_messages(const mp_data *data);

typedef struct mp_data_info {
	const char *name, *storage; /* storage: "float32", "uint8", ..., "index" */
	uint64_t cases, sequences;  /* sequences 0: none */
	uint32_t inputs, targets;
	double density;  /* share of inputs that are not zero */
	double min, max; /* of the inputs */
	double target_min, target_max;
	uint64_t bytes;   /* held in memory; mapped files not counted */
	uint64_t missing; /* targets marked as none */
	int mapped, weighted, named;
	const char *scale;              /* "none", "range", "zscore" */
	uint32_t codes;                 /* size of the code table, 0 if none */
	uint32_t classes;               /* distinct target vectors if at most 1,000, else 0 */
	const uint64_t *class_cases;    /* [classes] cases of each, most frequent first: the class balance */
	const char *const *class_names; /* [classes] */
	uint32_t extras;                /* keys of the file that are kept but not used */
	const char *const *extra;       /* [extras] */
} mp_data_info;
MP_API mp_status mp_data_get_info(mp_data *data, const mp_data_info **info);

MP_API mp_status mp_data_save(mp_data *data, const char *path); /* format by name: .npz .npy .csv .txt .idx */

/* Cut into two by example, at random: about `share` of the examples into *first. */
MP_API mp_status mp_data_split(mp_data *data, double share, uint64_t seed, mp_data **first, mp_data **rest);
/* Scale the inputs to 0..1 ("range") or mean 0 and deviation 1 ("zscore"), fitted on `data`, and the same for
 * `also` (or NULL). */
MP_API mp_status mp_data_scale(mp_data *data, const char *kind, mp_data *also);

/* One case: x [inputs], y [targets]; either may be NULL.  All NaN where the file is found to be wrong. */
MP_API void mp_data_get_case(const mp_data *data, uint64_t i, float *x, float *y);
/* the case's name, "" if it has none; until the next call */
MP_API const char *mp_data_get_name(mp_data *data, uint64_t i);
/* best guess: code name, class or number; until the next call */
MP_API const char *mp_data_get_guess(mp_data *data, const double *outputs);

/* Classes of the label column, in the order of the targets they became; NULL if there was none. */
MP_API const char *const *mp_data_get_classes(const mp_data *data, uint32_t *count);

/* ---- options of a run --------------------------------------------------------------------------- */

typedef enum mp_option_type {
	MP_OPTION_INT = 0,
	MP_OPTION_REAL = 1,
	MP_OPTION_CHOICE = 2, /* one of `choices` */
	MP_OPTION_FLAG = 3,   /* "on" or "off"; also "auto" where that is the default */
	MP_OPTION_TEXT = 4,
	MP_OPTION_LIST = 5 /* several texts with commas between */
} mp_option_type;

/* One option as the topology file's `train` and mp_run_set know it. */
typedef struct mp_option {
	size_t size;
	const char *name;
	mp_option_type type;
	const char *owner;          /* "general", "ranks", or the target it is for: "cpu", "gf11" */
	const char *default_value;  /* as text */
	double min, max;            /* int, real: the range; an int whose default is "all" also takes that word */
	const char *const *choices; /* choice: the names, ends with NULL; else NULL */
	const char *argument;       /* int, real, text, list: what help calls the value: "N", "X", "FILE"; else NULL */
	const char *help;
	int changes_result; /* 1: the weights depend on it, so a resumed run cannot change it */
} mp_option;
/* The i-th option of all there are; NULL past the last. */
MP_API const mp_option *mp_option_at(size_t i);

/* ---- runs --------------------------------------------------------------------------------------- */

MP_API mp_status mp_run_new(mp_run **run, const mp_net *net, const mp_allocator *alloc);
MP_API void mp_run_close(mp_run *run);
MP_API const char *mp_run_messages(const mp_run *run);

MP_API mp_status mp_run_set(mp_run *run, const char *option, const char *value);
MP_API const char *mp_run_get(mp_run *run, const char *option); /* as text; NULL if there is no such option */
/* The target's program as text: as it trains on this data, or, data NULL, with dense inputs. */
MP_API mp_status mp_run_print(mp_run *run, const mp_data *data, mp_write_fn *write, void *user);

/* Weights from a file; or everything, so that training goes on with the very bits of the uninterrupted run.  After
 * mp_run_resume only options that do not change the result may be set, and those that end the run. */
MP_API mp_status mp_run_load(mp_run *run, const char *path);
MP_API mp_status mp_run_resume(mp_run *run, const char *path);
/* Durable and atomic: the old file is there until the new one is safe. */
MP_API mp_status mp_run_save(mp_run *run, const char *path);
/* The weights of the best epoch so far, where option keep-best is on; without what resuming needs. */
MP_API mp_status mp_run_save_best(mp_run *run, const char *path);
/* The same in the background, between two updates: the run is taken as it stands, written, read back, and only then
 * put in the place of the older file; best (may be NULL) is where the best epoch's weights go. The older keep - 1
 * files stay, as PATH.1, PATH.2, ... Does nothing while the last one is still being written. Returns how the one
 * before ended, if nobody asked. */
MP_API mp_status mp_run_save_later(mp_run *run, const char *path, const char *best, unsigned keep);
MP_API mp_status mp_run_save_wait(mp_run *run);             /* until it is written; how that ended */
MP_API const char *mp_run_save_messages(const mp_run *run); /* why one in the background failed */

/* Where a run stands.  Errors and shares are of the last full pass, measured in the pass itself, before the update. */
typedef struct mp_report {
	const char *target;
	uint64_t connections, cases;
	uint64_t epoch, epochs; /* finished, and how many at most; 0: no limit */
	uint64_t updates;
	double error, total_error; /* mean per case of the error summed over outputs; its sum */
	double right, within;      /* shares of cases, 0..1 */
	int tested;                /* the four below are set */
	double test_error, test_total_error, test_right, test_within;
	double rate;                              /* learning rate now */
	double seconds, mcps;                     /* of training passes: time, million connections per second */
	double simulated_seconds, simulated_mcps; /* the same on the clock of a simulated machine; 0 where there is none */
	int solved;                               /* the stop criterion is met */
	int best;                                 /* this epoch is the best so far (test error if there is test data) */
	const char *fingerprint;                  /* of the weights now; only in the last report */
	/* "until", "epochs", "updates", "time", "patience", "signal", "diverged"; NULL while running */
	const char *stopped_by;
} mp_report;

/* Called after an epoch, at most ten times a second or as option `report` says, and always after the last; may
 * save, and ask for or set weights, but test or train only in the last (stopped_by). Not 0: stop. */
typedef int mp_report_fn(void *user, mp_run *run, const mp_report *report);

/* Train until a criterion ends it. test may be NULL. MP_OK: ended by itself; MP_STOPPED; MP_FAILED: the error or a
 * weight is not finite. */
MP_API mp_status mp_run_train(mp_run *run, const mp_data *data, const mp_data *test, mp_report_fn *report, void *user);
MP_API const mp_report *mp_run_get_report(const mp_run *run);
/* How it went so far, oldest first: every epoch, or every second, fourth, ... of a long run, so that there are at
 * most 512. */
typedef struct mp_point {
	uint64_t epoch;
	double error, right, test_error, test_right;
} mp_point;
MP_API const mp_point *mp_run_get_history(const mp_run *run, size_t *count);
/* Classes of the labels it was trained on, also after mp_run_load; NULL if there were none. */
MP_API const char *const *mp_run_get_classes(const mp_run *run, uint32_t *count);
/* What the target alone has to report of the run so far: members of a JSON object, `"key": value`, with ", "
 * between, or "". NULL: memory ran out. */
MP_API const char *mp_run_get_figures(mp_run *run);
/* Called between two updates, at most once in so many seconds, whatever an epoch takes; not 0 stops the run. */
typedef int mp_tick_fn(void *user, mp_run *run);
MP_API void mp_run_on_tick(mp_run *run, double seconds, mp_tick_fn *fn, void *user);
MP_API void mp_run_stop(mp_run *run); /* async-signal-safe; ends at the last finished update */

/* A job: several processes, started by mpirun or the like, that train one network. All make the same calls; each
 * does its share of the leaves of every batch, and all have the weights of a single process, to the last bit. A
 * process that was not started so is a job of one. */
MP_API mp_status mp_job_join(mp_job **job, const mp_allocator *alloc); /* once in a process */
MP_API const char *mp_job_messages(const mp_job *job);
MP_API uint32_t mp_job_rank(const mp_job *job);
MP_API uint32_t mp_job_size(const mp_job *job);
/* A file, by the name that all ranks give it; *found: the name itself where there is one, else that of a copy from
 * rank 0, which goes when the job ends. */
MP_API mp_status mp_job_file(mp_job *job, const char *path, const char **found);
MP_API void mp_run_share(mp_run *run, mp_job *job); /* before training; only rank 0 reports */
/* The last call: everyone's status and, if that is not 0, words that the others get to hear. Returns the largest
 * status. */
MP_API int mp_job_leave(mp_job *job, int status, const char *text);
MP_API void mp_job_close(mp_job *job);

/* Many seeds of one network, each trained as mp_run_train would train it, to the last bit. Where the target can and
 * the network is small they go side by side, sixteen to a thread, else one after the other. */
typedef struct mp_seed {
	uint64_t seed;
	int solved; /* the stop criterion was met */
	int failed; /* the error or a weight was not finite in the epoch after `epochs`; only seed and epochs are set */
	uint64_t epochs;             /* finished */
	double error, right, within; /* of the last of them */
	char fingerprint[33];        /* of the weights at its end */
} mp_seed;

typedef struct mp_restarts {
	uint64_t count, done;    /* seeds asked for, and those that came to their end */
	uint64_t solved, failed; /* of those done */
	/* to solve it, over those solved; median: the lower of two.  0: none was */
	uint64_t epochs_min, epochs_median, epochs_max;
	double seconds, seeds_per_second; /* without the last run, that of the best */
	double mcps;                      /* million connections per second, all seeds together */
	uint64_t best;       /* number in `seed` of the best: solved in the fewest epochs, or else of least error */
	int lanes;           /* they went side by side */
	const mp_seed *seed; /* [done] by seed; NULL while it lasts, also epochs_... and best are not known then */
} mp_restarts;

/* Called at most ten times a second while it lasts.  Not 0: stop. */
typedef int mp_restarts_fn(void *user, mp_run *run, const mp_restarts *so_far);

/* Trains seeds s, s + 1, ... s + count - 1, where s is option `seed`; then the best of them is trained once more as
 * mp_run_train would, with its reports, and the run is that of this seed from then on: weights, options, history.
 * The run must be a new one. A stop ends the search, and the best of those done is taken: MP_STOPPED. MP_FAILED:
 * every seed failed. */
MP_API mp_status mp_run_restarts(mp_run *run, const mp_data *data, const mp_data *test, uint64_t count,
                                 mp_restarts_fn *progress, mp_report_fn *report, void *user);
MP_API const mp_restarts *mp_run_get_restarts(const mp_run *run); /* of the last such call; NULL if there was none */

typedef struct mp_result {
	uint64_t cases;
	double error, total_error, right, within, seconds;
} mp_result;
/* Forward only. outputs, if not NULL, takes [cases * outputs of the net]. result NULL: targets that the data may
 * have are not looked at and need not fit. */
MP_API mp_status mp_run_test(mp_run *run, const mp_data *data, mp_result *result, double *outputs);
/* A table of numbers as float64 npy, the way test --outputs and predict write it. */
MP_API mp_status mp_run_write_outputs(mp_run *run, const char *path, const double *outputs, uint64_t cases);

/* Weights in canonical order: by target unit, then by source unit, the true unit first. */
MP_API mp_status mp_run_get_weights(mp_run *run, double *w, size_t count);
MP_API mp_status mp_run_set_weights(mp_run *run, const double *w, size_t count);

#ifdef __cplusplus
}
#endif
#endif
