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
 * This header is the core. Further areas have headers of their own: microprop/data.h (arrays as data, writing, splits
 * and scales), microprop/predict.h (single cases with the least delay), microprop/background.h (saving while
 * training goes on), microprop/restarts.h (many seeds), microprop/job.h (several processes), microprop/inside.h
 * (activations), microprop/text.h (names for a terminal), microprop/build.h (what this build can do),
 * microprop/tool.h (benchmarks, models, reports).
 *
 * Handles. A net, a data set, a run and a job are opaque. A call that opens one always sets the handle, also when it
 * fails (unless there was not even memory for the handle: then it is NULL), so that its messages can be read; close
 * it either way. Closing NULL does nothing. A net must outlive its runs; data must outlive the calls it is given to.
 *
 * Structs. Every struct begins with `size`. In one that you pass, set it to sizeof the struct: the library reads and
 * writes no further. In one that the library returns, it is the library's: a field that lies beyond it is not there.
 * So a program and a shared library of different versions (same major number) work together.
 *
 * Threads. Different handles may be used by different threads at the same time; one handle by one thread at a time.
 * A net and a data set may be read by many runs at once. mp_run_stop may be called from any thread or signal
 * handler. A call needs 256 KiB of stack.
 *
 * Errors. Calls return a status; messages (file:line:col, the line, a caret, what would be right) are kept in the
 * handle until its next call, as text and as data (mp_error). The library never prints, never exits, never aborts on
 * input.
 *
 * Terms. A case is an input and its target; an example is a case, or a whole sequence of cases. `true` is the bias
 * unit, whose output is always 1. `right` is the accuracy: the share of cases whose best guess is the target. A batch
 * of `all` examples is a full batch. MCPS: million connections per second. */
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

typedef enum mp_status {
	MP_OK = 0,
	MP_FAILED = 1,    /* the run failed: error or weights not finite, disk full, ... */
	MP_BAD_INPUT = 2, /* a file, an option or an argument is wrong; the messages say where and what would be right */
	MP_STOPPED = 3,   /* mp_run_stop or the report function asked for it */
	MP_NO_MEMORY = 4
} mp_status;

/* The version of the library, "0.2.0": major, minor, patch (semantic versioning). */
MP_API const char *mp_version(void);

/* Memory comes from here, if given: new_size 0 frees `old` and returns NULL; old NULL allocates. Blocks must be
 * aligned as malloc's. Must be safe to call from the thread that uses the handle. */
typedef struct mp_allocator {
	size_t size;
	void *(*resize)(void *user, void *old, size_t old_size, size_t new_size);
	void *user;
} mp_allocator;

typedef enum mp_severity { MP_ERROR = 0, MP_NOTE = 1 } mp_severity;

/* One message of the last call on a handle. */
typedef struct mp_error {
	size_t size;
	mp_severity severity;
	const char *file;      /* NULL: not about a place in a file */
	uint64_t line, column; /* from 1; 0: binary file, or no file */
	uint64_t offset;       /* of the byte in the file, from 0 */
	const char *text;      /* what is wrong */
	const char *excerpt;   /* the line and a caret below it, each indented and ended by a newline; NULL: none */
	const char *remedy;    /* what would be right; NULL if there is nothing to say */
} mp_error;

/* ---- networks ----------------------------------------------------------------------------------- */

/* Read a topology file (see topology(5)), the topology that a saved model holds, the network of an older simulator
 * (microprop/import.h), or text that stands for a topology file; `name` is what messages call it. */
MP_API mp_status mp_net_open(mp_net **net, const char *path, const mp_allocator *alloc);
MP_API mp_status mp_net_parse(mp_net **net, const char *text, const char *name, const mp_allocator *alloc);
/* Sizes of groups that the file leaves open (`group in auto input`): those of the cases of `data`, or if that is NULL
 * those of a file of weights. Nothing changes if there are none. */
MP_API mp_status mp_net_resolve(mp_net *net, const mp_data *data, const char *weights);
MP_API void mp_net_close(mp_net *net);
/* Messages of the last call, all as one text ("" if there are none), or the i-th (NULL past the last). */
MP_API const char *mp_net_messages(const mp_net *net);
MP_API const mp_error *mp_net_get_error(const mp_net *net, size_t i);

typedef struct mp_net_info {
	size_t size;
	const char *name;
	uint32_t groups, blocks, copies;
	uint32_t units;             /* of all groups; the bias unit `true` is not counted */
	uint32_t inputs, outputs;   /* units that take a case's inputs, and that are compared with its targets */
	uint32_t levels;            /* of units that are computed one after the other */
	uint64_t connections;       /* biases included */
	uint64_t input_connections; /* the report's Wi: connections of the input layer, its biases included */
	const char *fingerprint;    /* of the structure: weights fit if it is the same */
	const char *data, *test;    /* data the file names, resolved against its folder; NULL if none */
	int model;                  /* the file holds the weights too */
	int open;                   /* sizes are those of the data: mp_net_resolve must be called before mp_run_new */
	/* how the file says that they are to be read; fields that it does not name are 0 */
	const struct mp_data_options *data_options, *test_options;
	int weights; /* the file is that of an older simulator, with weights: runs start from them */
} mp_net_info;
MP_API const mp_net_info *mp_net_get_info(const mp_net *net);

typedef struct mp_group_info {
	size_t size;
	const char *name, *function, *role;
	uint32_t units;
	const char *settings; /* noise, gain, ... as a topology states them; "": none */
} mp_group_info;
MP_API const mp_group_info *mp_net_get_group(const mp_net *net, uint32_t i); /* NULL past the last */

typedef struct mp_block_info {
	size_t size;
	const char *from, *to, *kind; /* from: "a[0:29]" */
	uint64_t connections;
	int frozen;
	const char *settings; /* decay, limits, ties, noise; "": none */
} mp_block_info;
MP_API const mp_block_info *mp_net_get_block(const mp_net *net, uint32_t i); /* NULL past the last */

/* Called with slices of a text, one after the other. */
typedef void mp_write_fn(void *user, const char *text, size_t len);

/* Print a stage of the compilation: "net", "plan" or "program", the last two for a target (NULL: the default). */
MP_API mp_status mp_net_print(mp_net *net, const char *stage, const char *target, mp_write_fn *write, void *user);

/* ---- data --------------------------------------------------------------------------------------- */

/* How to read a file; zero, but for `size`, is the default. */
typedef struct mp_data_options {
	size_t size;
	/* "npz" "npy" "idx" "csv" "text" "nettalk" "snns" "snns-results" "fann" "lens" "lens-binary" "tlearn"; NULL:
	 * detected from name and content */
	const char *format;
	const char *inputs;  /* csv: columns that are inputs, "a,b,3:7,*"; NULL: all that are not targets */
	const char *targets; /* csv: columns that are targets; NULL: the last column */
	/* csv: columns whose text is a class, encoded one-hot; NULL: target columns that are not numbers */
	const char *labels;
	const char *sequence; /* csv: column that names the sequence a case belongs to */
	const char *weight;   /* csv: column of case weights */
	const char *names;    /* csv: column of case names */
	const char *partner;  /* npy, idx: the file with the targets; snns-results: the patterns; NULL: found by its name */
	const char *words;    /* nettalk: file with the words to take, first pronunciation of each */
	uint64_t first;       /* only this many rows (nettalk: words) from the start; 0: all */
	uint64_t seed;        /* generators: another sample; 0 is the standard one */
	int unlabelled;       /* csv, text: there are no targets, every column is an input */
	/* csv: classes of the label column in the order of the outputs, as a run was trained on them; any other class is
	 * an error; NULL: those of the file */
	const char *const *classes;
	uint32_t class_count;
	/* several ranks of a job train on it, each on some of the cases: npz, npy and idx files are mapped, and each
	 * rank reads and checks what it needs */
	int shared;
	const char *fold;     /* tables: column that says which fold of cross-validation a row is in */
	const char *category; /* tables: columns whose values are categories, also if they are numbers */
	const char *scale; /* scale the inputs as mp_data_scale does: "range" or "zscore"; NULL: leave them as they are */
	/* mp_data_open: columns are found by the names that this data has, which stays open meanwhile; NULL: not so */
	const mp_data *like;
	int lenient; /* options that the file's format does not have are left out, with a note */
	/* lens: input and target groups of the network, over which examples count units, "a:3,b:2>c:4"; NULL: those of
	 * the run (mp_data_open_for), else one of each, as large as the file needs */
	const char *groups;
	int lossy; /* what an older format holds but data has no place for is left out, with a note */
} mp_data_options;

/* Read a file, or make a built-in set: "make:xor", "make:parity:4", "make:encoder:8-3", "make:spirals", "make:letters",
 * "make:reber", "make:temporal-xor", "make:letter-sequences", "make:triangle", "make:past-tense",
 * "make:family-tree", "make:clubs", "make:club-probes", "make:semantics", "make:sentences". */
MP_API mp_status mp_data_open(mp_data **data, const char *path, const mp_data_options *options,
                              const mp_allocator *alloc);

/* Cases from memory, copied: x [cases * inputs], y [cases * targets] (NaN: no target), seq [sequences + 1] offsets
 * or NULL. */
MP_API mp_status mp_data_new(mp_data **data, uint64_t cases, uint32_t inputs, uint32_t targets, const float *x,
                             const float *y, const uint64_t *seq, uint64_t sequences, const mp_allocator *alloc);
MP_API void mp_data_close(mp_data *data);
/* As for networks. */
MP_API const char *mp_data_messages(const mp_data *data);
MP_API const mp_error *mp_data_get_error(const mp_data *data, size_t i);

typedef struct mp_data_info {
	size_t size;
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

/* One case: x [inputs], y [targets]; either may be NULL.  All NaN where the file turns out to be invalid. */
MP_API void mp_data_get_case(const mp_data *data, uint64_t i, float *x, float *y);
/* The name of a case, "" if it has none; valid until the next call. */
MP_API const char *mp_data_get_name(mp_data *data, uint64_t i);
/* What outputs stand for: nearest code name, class or number; valid until the next call. */
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
	const char *owner;          /* "general", "ranks", or the target it is for: "cpu", "cuda", "gf11" */
	const char *default_value;  /* as text, of the newest set of defaults */
	double min, max;            /* int, real: the range; an int whose argument begins with "all" also takes that word */
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
/* As for networks. */
MP_API const char *mp_run_messages(const mp_run *run);
MP_API const mp_error *mp_run_get_error(const mp_run *run, size_t i);

MP_API mp_status mp_run_set(mp_run *run, const char *option, const char *value);
MP_API const char *mp_run_get(mp_run *run, const char *option); /* as text; NULL if there is no such option */
/* The target's program as text: as it trains on this data, or, data NULL, with dense inputs. */
MP_API mp_status mp_run_print(mp_run *run, const mp_data *data, mp_write_fn *write, void *user);

/* Weights from a file; or the whole state, so that training continues with the exact bits of the uninterrupted run.
 * After mp_run_resume only options that do not change the result may be set, and those that end the run. */
MP_API mp_status mp_run_load(mp_run *run, const char *path);
MP_API mp_status mp_run_resume(mp_run *run, const char *path);
/* A checkpoint. Durable and atomic: the old file stays until the new one is on disk. */
MP_API mp_status mp_run_save(mp_run *run, const char *path);
/* The weights of the best epoch so far, where option keep-best is on; without the state that resuming needs. */
MP_API mp_status mp_run_save_best(mp_run *run, const char *path);

/* Progress of a run.  Errors and shares are of the last full pass, measured in the pass itself, before the update. */
typedef struct mp_report {
	size_t size;
	const char *target;
	uint64_t connections, cases;
	uint64_t epoch, epochs; /* finished, and how many at most; 0: no limit */
	uint64_t updates;
	/* error summed over outputs: mean over the cases that have a target, one of weight w counting w times; its sum */
	double error, total_error;
	/* Shares of cases, 0..1. right: accuracy, the best guess is the target; within: every output lies within option
	 * threshold of its target. */
	double right, within;
	int tested; /* the four below are set */
	double test_error, test_total_error, test_right, test_within;
	double rate;                              /* learning rate now */
	double seconds, mcps;                     /* of training passes: time, million connections per second */
	double simulated_seconds, simulated_mcps; /* the same on the clock of a simulated machine; 0 where there is none */
	int solved;                               /* the stop criterion is met */
	int best;                                 /* this epoch is the best so far (test error if there is test data) */
	const char *fingerprint;                  /* of the weights now; only in the last report */
	/* "until", "epochs", "updates", "time", "patience", "signal", "diverged"; NULL while running */
	const char *stopped_by;
	uint64_t best_epoch; /* with the least error so far, on test data if there is any; 0: none yet */
} mp_report;

/* Called after epochs, as option `report` says, and always after the last; may
 * save, and get or set weights, but test or train only in the last (stopped_by). Not 0: stop. */
typedef int mp_report_fn(void *user, mp_run *run, const mp_report *report);

/* Train until a criterion ends it. test may be NULL. MP_OK: ended by itself; MP_STOPPED; MP_FAILED: the error or a
 * weight is not finite. */
MP_API mp_status mp_run_train(mp_run *run, const mp_data *data, const mp_data *test, mp_report_fn *report, void *user);
MP_API const mp_report *mp_run_get_report(const mp_run *run);

/* A point of the learning curve. right: NaN where it was not counted: a GPU counts some epochs only, if the option
 * `until` is never. */
typedef struct mp_point {
	size_t size;
	uint64_t epoch;
	double error, right, test_error, test_right;
} mp_point;
/* The i-th point so far, oldest first: every epoch, or every second, fourth, ... of a long run, so that there are at
 * most 512; NULL past the last. */
MP_API const mp_point *mp_run_get_point(const mp_run *run, size_t i);
/* Classes of the labels it was trained on, also after mp_run_load; NULL if there were none. */
MP_API const char *const *mp_run_get_classes(const mp_run *run, uint32_t *count);
/* Figures that only the target has, of the run so far: a JSON object, "{}" if there are none. NULL: out of memory. */
MP_API const char *mp_run_get_figures(mp_run *run);
/* Called between two updates, at most once in `seconds`, however long an epoch takes; not 0 stops the run. */
typedef int mp_tick_fn(void *user, mp_run *run);
MP_API void mp_run_on_tick(mp_run *run, double seconds, mp_tick_fn *fn, void *user);
MP_API void mp_run_stop(mp_run *run); /* async-signal-safe; ends at the last finished update */

typedef struct mp_result {
	size_t size;
	uint64_t cases;
	double error, total_error, right, within; /* as in mp_report */
	double seconds;
} mp_result;
/* Forward only. outputs, if not NULL, takes [cases * outputs of the net]. result NULL: targets of the data are
 * ignored and need not fit. */
MP_API mp_status mp_run_test(mp_run *run, const mp_data *data, mp_result *result, double *outputs);

/* Weights in canonical order: by target unit, then by source unit, the bias first. */
MP_API mp_status mp_run_get_weights(mp_run *run, double *w, size_t count);
MP_API mp_status mp_run_set_weights(mp_run *run, const double *w, size_t count);

#ifdef __cplusplus
}
#endif
#endif
