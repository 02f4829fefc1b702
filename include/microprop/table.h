/* SPDX-License-Identifier: MIT */
/* Tables: files whose columns hold numbers, categories, texts and gaps, as people have them; models that know the
 * columns they were trained on; metrics.
 *
 *     mp_table_open(&table, "iris.csv", NULL, NULL, NULL);         what each column is for is found out
 *     mp_table_cut(table, &(mp_cut){ sizeof(mp_cut), .share = 0.2, .stratify = 1 }, &train, &held_out);
 *     mp_table_topology(table, &(mp_topology){ sizeof(mp_topology) }, write, user);    a network, for mp_net_parse
 *     ... train, save ...
 *     mp_net_open(&net, "iris.safetensors", NULL);                 later: the model is all that is needed
 *     mp_run_new(&run, net, NULL);  mp_run_load(run, "iris.safetensors");
 *     mp_data_open_for(&data, "new.csv", run, NULL, NULL);         columns are found by name, encoded as in training
 *
 * A table must outlive the data that is made of it. */
#ifndef MICROPROP_TABLE_H
#define MICROPROP_TABLE_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mp_table mp_table;

/* Read a file. task: "classes" or "regression"; NULL: by the values of the target. */
MP_API mp_status mp_table_open(mp_table **table, const char *path, const mp_data_options *options, const char *task,
                               const mp_allocator *alloc);
MP_API void mp_table_close(mp_table *table);
/* As for networks. */
MP_API const char *mp_table_messages(const mp_table *table);
MP_API const mp_error *mp_table_get_error(const mp_table *table, size_t i);

typedef struct mp_column {
	size_t size;
	const char *name;
	const char *role;              /* "input", "target", "name", "weight", "sequence", "unused" */
	const char *kind;              /* "number", "binary", "category"; NULL: neither input nor target */
	uint32_t units;                /* of the network that it takes */
	const char *const *categories; /* [category_count] */
	uint32_t category_count;
	double offset, factor; /* number: encoded as (value - offset) * factor */
	int indicator;         /* a further unit is 1 where the value is missing */
	int plain;             /* of data for a topology file: numbers are used as they are */
} mp_column;
typedef struct mp_table_info {
	size_t size;
	const char *name, *task; /* task: "classes", "binary", "regression", "none" */
	const char *decisions;   /* a line for each thing that was decided, and how to change it */
	uint64_t rows;
	uint32_t columns, inputs, targets; /* inputs, targets: units, before mp_table_cut at most */
	uint32_t folds;                    /* that a column tells; 0: no such column */
} mp_table_info;
MP_API const mp_table_info *mp_table_get_info(const mp_table *table);
MP_API const mp_column *mp_table_get_column(mp_table *table, uint32_t i); /* NULL past the last */

/* Which rows are held out: about `share` of them, or, folds not 0, fold `fold` of `folds`. */
typedef struct mp_cut {
	size_t size;
	double share; /* 0: none */
	uint32_t folds, fold;
	uint64_t seed;
	int stratify; /* the same share of each class */
	int balance;  /* cases to train on get weights, so that all classes count the same */
} mp_cut;
/* Cases of the two parts; scales are fitted on those to train on. *held_out is NULL if there is no such part. */
MP_API mp_status mp_table_cut(mp_table *table, const mp_cut *cut, mp_data **train, mp_data **held_out);
/* Another file, encoded as the table is that was cut. */
MP_API mp_status mp_table_encode(mp_table *table, const char *path, const mp_data_options *options, mp_data **data);
/* A network for the table as it was cut, as the text of a topology file. */
typedef struct mp_topology {
	size_t size;
	const char *hidden;   /* sizes of hidden layers, "64,32", or "0"; NULL: by the size of the data */
	const char *function; /* of hidden units; NULL: the default */
} mp_topology;
MP_API mp_status mp_table_topology(mp_table *table, const mp_topology *network, mp_write_fn *write, void *user);

/* Data for the network of a run, encoded as the table was that it was trained on; without one, as mp_data_open does. */
MP_API mp_status mp_data_open_for(mp_data **data, const char *path, const mp_run *run, const mp_data_options *options,
                                  const mp_allocator *alloc);
/* Columns of that table; NULL past the last. */
MP_API const mp_column *mp_run_get_column(mp_run *run, uint32_t i);
MP_API const char *mp_run_get_task(mp_run *run); /* as in mp_table_info; NULL: not trained on a table */
/* An output in the units of the table: numbers that were scaled are scaled back. */
MP_API double mp_run_decode(mp_run *run, uint32_t output, double value);
/* The weights of the best epoch (option keep-best) become those of the run; nothing happens if there are none. */
MP_API mp_status mp_run_use_best(mp_run *run);

typedef struct mp_class_metrics {
	size_t size;
	uint64_t cases;
	double precision, recall, f1, auc;
} mp_class_metrics;
typedef struct mp_metrics { /* NaN: not meaningful for these targets */
	size_t size;
	const char *kind; /* "classes", "binary", "bits", "numbers" */
	uint64_t cases;   /* that have a target */
	double accuracy;  /* bits: of whole patterns */
	double log_loss, auc, bits_right;
	double rmse, mae, r2;
	uint32_t classes;
	const uint64_t *confusion; /* [classes * classes]: row the target, column the guess; NULL: no classes */
	const char *const *class_names;
} mp_metrics;
/* What the targets of data are: "classes", "binary", "bits" (several of 0 and 1), "levels" (two other values),
 * "numbers"; NULL: it has none, or could not be read. */
MP_API const char *mp_data_get_kind(mp_data *data);
/* Measure the network on data with targets. The result lives until the next such call on the run; NULL: failed. */
MP_API const mp_metrics *mp_run_measure(mp_run *run, const mp_data *data);
MP_API const mp_class_metrics *mp_run_get_class_metrics(const mp_run *run, uint32_t i); /* NULL past the last */
/* One case of the data that mp_run_measure was given, which must still be open. NULL past the last; valid until the
 * next call. */
typedef struct mp_case_group { /* an output group */
	size_t size;
	const char *name;
	double error;      /* NaN: it has no target */
	int right, within; /* the largest output is that of the largest target, or all bits are; all within threshold */
	uint32_t tick;     /* as in mp_case */
	/* Where cases have names and targets are bits: the case whose targets of this group are nearest to the outputs, of
	 * equal ones this case itself or else the first; and the next that has other targets. NULL: there is none. */
	const char *guess, *rival;
} mp_case_group;
typedef struct mp_case {
	size_t size;
	int scored; /* it has a target */
	double weight;
	uint32_t target, guess;          /* classes, by number */
	int right;                       /* class, or all bits; 0 for numbers */
	double p_target, p_guess;        /* probability of these classes; NaN: outputs are no probabilities */
	double error;                    /* of the error function of the network, from the outputs */
	const double *targets, *outputs; /* [outputs of the network], in the units of the table; NaN: no target */
	int within;                      /* all outputs are within option threshold of their targets */
	/* The best guess but one, of classes or code words: its name, and how much better the guess is: difference of
	 * outputs, or of distances to the code words. NULL, NaN: there is none. */
	const char *rival;
	double margin;
	/* Reaction time of a settling network: the first tick, from option criterion-from on, at which all outputs are
	 * within option threshold of their targets; 0: they never are, or the network does not settle. */
	uint32_t tick;
	uint32_t groups;
	const mp_case_group *group; /* [groups] */
} mp_case;
MP_API const mp_case *mp_run_get_case(mp_run *run, uint64_t i);
/* The last measurement of `measured`, the same run or one that was trained on fewer rows of the table, becomes part of
 * the model: mp_run_save writes it. held_out: on rows that `measured` was not trained on. */
MP_API mp_status mp_run_keep_metrics(mp_run *run, const mp_run *measured, int held_out);
/* Those of the model that was loaded, as mp_run_measure gives them; NULL: it has none. */
MP_API const mp_metrics *mp_run_get_kept_metrics(mp_run *run, int *held_out);

#ifdef __cplusplus
}
#endif
#endif
