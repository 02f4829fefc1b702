/* SPDX-License-Identifier: MIT */
/* table: tables whose columns hold anything, and the schema that encodes them as inputs and targets of a network.
 *
 *     file -> Frame (scan.c: values by column) -> Schema (infer.c: role and kind of each column; encode.c: offsets and
 *     factors, fitted on the training rows) -> Data (encode.c)
 *
 * A trained model keeps its schema as JSON (schema.c), so that other tables are encoded alike, columns being found by
 * their names. */
#ifndef TABLE_H
#define TABLE_H

#include "data.h"

/* ---- schema.c: what the columns of a table are for ---------------------------------------------- */

enum { VALUE_NUMBER, VALUE_BINARY, VALUE_CATEGORY, VALUE_KINDS }; /* binary: 0 and 1 */
enum { TASK_NONE, TASK_CLASSES, TASK_BINARY, TASK_REGRESSION, TASK_COUNT };
extern const char *const column_roles[COLUMN_ROLES];
extern const char *const value_kinds[VALUE_KINDS];
extern const char *const task_names[TASK_COUNT];

typedef struct Field {
	const char *name;
	int role, kind;
	double offset, factor;       /* number: encoded as (value - offset) * factor */
	double fill;                 /* input: a missing number, encoded */
	bool wide;                   /* number: read in double precision, float32 would merge its values */
	const char *const *category; /* [categories] in the order of their units */
	uint32_t categories;
	bool indicator;       /* input: a further unit, 1 where the value is missing */
	uint32_t unit, units; /* its first input or target, and how many it has */
} Field;

typedef struct Schema {
	Field *column; /* in the order of the file that it was made from */
	uint32_t columns;
	uint32_t inputs, targets; /* units */
	int task;                 /* TASK_NONE: no targets */
	bool plain;               /* of a topology file's data: names and roles only, numbers are read as they are */
	int scale;                /* of inputs that are numbers: SCALE_..., for schema_fit */
} Schema;

enum { MAX_COLUMNS = 65536, MAX_CATEGORIES = 1000, MAX_FOLDS = 100 };

void schema_units(Ctx *cx, Schema *s);                   /* numbers the units; fails if there are too many */
void schema_print(const Schema *s, Buf *json);           /* as one JSON object */
Schema *schema_parse(Ctx *cx, Loc at, const char *json); /* and back, checked; in keep.  at: for messages */
Schema *schema_copy(Arena *a, const Schema *s);
bool schema_find(const Schema *s, Text name, uint32_t *column);
Schema *schema_plain(Ctx *cx, const Data *d); /* of the columns of data; NULL: it has no names, or not each its own */
const Field *schema_target(const Schema *s, uint32_t i); /* the i-th target column; NULL past the last */

/* ---- scan.c: a file as columns of values -------------------------------------------------------- */

typedef struct FrameColumn {
	Text name;
	size_t off;        /* of its name in the file */
	bool used;         /* its values are kept */
	int kind;          /* VALUE_... */
	bool weight;       /* of cases: numbers, zero or more */
	bool wide;         /* numbers are kept in double precision: float32 would merge different ones */
	float *number;     /* [rows] NaN: missing; NULL: wide, a category, or not used */
	double *exact;     /* [rows] the same of a wide column */
	uint32_t *word;    /* [rows] index in words; NO_WORD: missing */
	Dict words;        /* of a category */
	uint64_t missing;  /* rows without a value */
	uint64_t numbers;  /* rows whose value is a number */
	uint64_t texts;    /* rows whose value is another text */
	size_t first_text; /* offset of the first of them */
	uint64_t infinite; /* rows whose value is a number that float32 does not hold */
	size_t first_infinite;
	bool whole;       /* all numbers are */
	double low, high; /* of the numbers */
	bool lengthy;     /* some number has more digits than float32 always tells apart */
	bool inexact;     /* some number beyond 2^24 is not one of float32 */
	size_t rounded;   /* offset of the first whole number that is not one of float64 either; 0: none */
} FrameColumn;
#define NO_WORD UINT32_MAX

typedef struct Frame {
	const char *name;
	const Src *src; /* NULL: not a text file */
	uint64_t rows;
	FrameColumn *column;
	uint32_t columns;
	bool header;             /* the file names its columns */
	bool images;             /* inputs are pixels */
	bool comma;              /* a decimal comma was noted */
	bool wide;               /* data: some column is */
	bool unscale;            /* data: inputs are those before its scale, as their names are */
	const Data *data;        /* another format: rows are its cases, the columns its inputs, then its targets */
	uint32_t *class;         /* [rows] its one-of-n targets as numbers of classes: they are one column */
	const CsvColumns *roles; /* that options give to the columns of a CSV file; NULL: another format */
} Frame;

bool is_missing(Text t); /* nothing, NA, NaN, null, None, ? */
/* All columns that options choose, or that `schema` needs (NULL: none). In keep. */
Frame *table_open(Ctx *cx, const char *path, const DataOptions *opt, const Schema *schema);
Frame *table_csv(Ctx *cx, const Src *s, const DataOptions *opt, const Schema *schema); /* of a CSV file */
/* Values of a row: numbers, or indices of words as numbers; NaN: missing.  value: [columns] */
void row_values(const Frame *t, uint64_t row, double *value);
Loc field_at(Ctx *cx, const Frame *t, uint64_t row, uint32_t column, Text *field); /* of a CSV file */

/* ---- match.c: columns of other data, as a plain schema names them ------------------------------- */

/* Inputs, targets and the rest are found by name, in any order; options that choose columns take precedence, and files
 * without names are read by position.  In keep. */
Data *data_open_like(Ctx *cx, const char *path, const DataOptions *opt, const Schema *s);

/* ---- infer.c: roles and kinds of the columns of a table ----------------------------------------- */

typedef struct InferOptions {
	int task;       /* TASK_NONE: by the values of the target */
	int scale;      /* SCALE_... of inputs; -1: by what they are */
	Buf *decisions; /* a line for each thing that was decided; NULL: not wanted */
} InferOptions;
Schema *schema_infer(Ctx *cx, const Frame *t, const InferOptions *how); /* in keep */

/* ---- cut.c: rows to train on and rows held out -------------------------------------------------- */

enum { PART_TRAIN, PART_HELD_OUT, PART_DROPPED };
/* Marks about `share` of the rows as held out, of each class the same share if the targets are classes.  With folds,
 * those of fold `fold` of `folds` instead, or of the fold that a column tells.  Rows without a target are dropped.
 * [rows], in keep. */
typedef struct Cut {
	double share;
	uint32_t folds, fold; /* folds 0: by share */
	uint64_t seed;
	bool stratify;
	bool first; /* cut of this table: rows without a target are noted */
} Cut;
uint8_t *table_cut(Ctx *cx, const Frame *t, const Schema *s, const Cut *cut);

/* ---- encode.c: rows as cases -------------------------------------------------------------------- */

void schema_fit(Ctx *cx, Schema *s, const Frame *t, const uint8_t *part); /* offsets, factors, indicators */
/* Rows of `which` part (part NULL: all). Columns are matched by their names. In keep. */
Data *table_encode(Ctx *cx, const Frame *t, const Schema *s, const uint8_t *part, int which);
/* Case weights, times those that cases have: each class counts the same, all cases together as before. */
void data_balance(Ctx *cx, Data *d);
double target_decode(const Field *c, double encoded); /* of a number: in the units of the table */

/* ---- topology.c: a network for a table ---------------------------------------------------------- */

typedef struct NetworkFor {
	const char *data;     /* name of the table */
	uint64_t cases, rows; /* to train on; of the table */
	bool held_out;
	const char *hidden;   /* "64,32", "0" for none; NULL: by the size of the data */
	const char *function; /* of hidden units; NULL: relu */
} NetworkFor;
void topology_print(Ctx *cx, const Schema *s, const NetworkFor *n, Buf *out);

/* ---- metrics.c: outputs against targets --------------------------------------------------------- */

enum { METRICS_CLASSES, METRICS_BINARY, METRICS_BITS, METRICS_NUMBERS, METRICS_KINDS };
extern const char *const metrics_kinds[METRICS_KINDS];
typedef struct ClassMetrics {
	uint64_t cases;
	double precision, recall, f1, auc; /* auc: this class against all others */
} ClassMetrics;
typedef struct Metrics {
	int kind;
	bool held_out;                  /* record.c: measured on rows that were not trained on */
	uint64_t cases;                 /* with a target */
	double weight;                  /* of them */
	double accuracy, log_loss, auc; /* classes; accuracy of bits: whole patterns */
	double bits_right;
	double rmse, mae, r2;
	uint32_t classes;        /* 0: targets are no classes */
	uint64_t *confusion;     /* [classes * classes] row: the target, column: the guess; NULL: not recorded */
	ClassMetrics *per_class; /* [classes] */
} Metrics;
int metrics_kind(Ctx *cx, const Data *d, const Schema *s); /* of the targets; s may be NULL */
bool targets_two_valued(Ctx *cx, const Data *d);           /* such as 0.1 and 0.9, or -1 and 1 */
/* outputs [cases * targets]; s may be NULL. In keep. */
Metrics *metrics_measure(Ctx *cx, const Data *d, const Schema *s, const double *outputs);

typedef struct CaseMetrics {
	double weight;
	uint32_t target, guess;   /* classes; else 0 */
	bool right;               /* bits: all of them */
	double p_target, p_guess; /* probability of these classes; NaN: outputs are no probabilities */
} CaseMetrics;
/* One case; row takes its targets; false: it has none. */
bool metrics_case(const Data *d, int kind, const double *outputs, uint64_t i, float *row, CaseMetrics *c);
/* That the outputs of one case give to a class; NaN: they are no probabilities. */
double metrics_probability(int kind, const double *out, uint32_t outputs, uint32_t class);

/* ---- record.c: metrics as JSON in the metadata of a model --------------------------------------- */

enum { RECORDED_CLASSES = 100 }; /* with more classes their rows and the confusion matrix are left out */
void metrics_print(const Metrics *m, Buf *json);
/* And back, checked; in keep.  outputs: of the network; at: for messages. */
Metrics *metrics_copy(Arena *a, const Metrics *m);
Metrics *metrics_parse(Ctx *cx, Loc at, const char *json, uint32_t outputs);

/* ---- curves.c: points of figures ---------------------------------------------------------------- */

typedef struct CurvePoints {
	double *x, *y;
	uint32_t points;
	double area; /* ROC: under it */
} CurvePoints;
typedef struct Scored {
	double score, weight;
	bool positive;
} Scored;
/* Outputs of a class, positive where it is the target; returns how many cases have a target. s: [cases] */
uint64_t roc_scores(const Data *d, int kind, const double *outputs, uint32_t class, float *row, Scored *s);
double roc_area(Scored *s, uint64_t n,
                CurvePoints *points); /* sorts s; points: NULL, not wanted; NaN: of one sort only */
/* False positive against true positive rate of a class against all others, at most CURVE_POINTS; no points: the class
 * is in no case, or in all. In scratch. */
enum { CURVE_POINTS = 400, CALIBRATION_BINS = 10 };
CurvePoints curve_roc(Ctx *cx, const Data *d, int kind, const double *outputs, uint32_t class);
/* Mean probability of a class, or of the guess, against the share of cases that are it, in up to CALIBRATION_BINS bins
 * of equal width. */
#define CALIBRATE_GUESS UINT32_MAX
CurvePoints curve_calibration(Ctx *cx, const Data *d, int kind, const double *outputs, uint32_t class, uint64_t *count);

/* ---- inside the module: meta.c, JSON in the metadata of a model --------------------------------- */

/* The text comes from a file that anyone may have written: everything is checked. */
typedef struct MetaReader {
	Ctx *cx;
	Loc at;
	const char *what; /* "schema", "metrics" */
} MetaReader;
struct json_t;
_Noreturn void meta_wrong(const MetaReader *r, const char *why);
/* The tree of an object of this version; freed with scratch. */
struct json_t *meta_read(const MetaReader *r, const char *json, int version);
int meta_word(const MetaReader *r, const struct json_t *v, const char *const *words, int count, const char *why);

#endif
