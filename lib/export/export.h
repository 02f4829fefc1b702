/* SPDX-License-Identifier: MIT */
/* export: a trained network in forms that other programs run: ONNX, C, JavaScript, arrays.
 *
 *     Model (network, weights, scale, classes) -> Recipe (recipe.c: the order of work over one array of units)
 *         -> C (c.c), JavaScript (js.c), or numbers (evaluate.c);  Model -> ONNX (onnx.c), arrays (arrays.c)
 *
 * All forms take a case as `predict` takes it: inputs before their scale; of a model trained on a table one number for
 * each input column, a category being its index, NaN a missing value. */
#ifndef EXPORT_H
#define EXPORT_H

#include "store.h"
#include "table.h"

/* ---- export.c ----------------------------------------------------------------------------------- */

typedef struct Model {
	const Net *net;
	const Options *opt;
	const double *w; /* [links] canonical order */
	const char *name;
	Scale scale;
	const char *const *classes; /* [outputs] or NULL */
	const Schema *schema;       /* NULL: none; a plain one gives names only */
	const char *fingerprint;    /* of the weights */
	uint32_t columns;           /* out: numbers of a case */
} Model;

/* What 8 bits cost: outputs with 8-bit weights against those without, over the calibration data. */
typedef struct Loss {
	uint64_t cases;
	double largest, rms;      /* difference of an output */
	double changed;           /* share of cases whose best guess changed */
	double right, right_int8; /* shares of cases; NaN: no targets */
	uint64_t bytes;           /* of the weights, */
	uint64_t bytes_int8;
} Loss;

typedef struct ExportOptions {
	const char *format; /* "onnx", "c", "js", "npz"; NULL: by the ending of the path */
	bool plain;         /* "onnx": matrix products, instead of every sum in the order of predict, each step rounded */
	const Data *calibration; /* "c": weights in 8 bits, ranges from this data; NULL: float32 */
	const char *format_used; /* out */
	const char *second;      /* out: a second file that was written, or NULL */
	Loss loss;               /* out, with calibration */
} ExportOptions;

bool export_is(const char *path);                                         /* its ending is that of a format */
void export_write(Ctx *cx, Model *m, const char *path, ExportOptions *o); /* sets m->name */

/* ---- inside the module: columns.c, what a case is ------------------------------------------------ */

/* How an input unit follows from a case. */
enum { FEED_PLAIN, FEED_NUMBER, FEED_CATEGORY, FEED_MISSING };
typedef struct Feed {
	int kind;
	uint32_t column; /* of the case */
	bool wide;       /* number: not rounded to float32 first */
	double offset, factor, fill;
	uint32_t category;
} Feed;
typedef struct Columns {
	bool table;              /* of a table: NaN is a missing value, outputs are in the units of the table */
	bool scaled;             /* some number is */
	bool wide;               /* some number has more digits than float32 */
	uint32_t count;          /* numbers of a case */
	Feed *feed;              /* [inputs] */
	const char **name;       /* [count]; NULL: they have none */
	const Field **field;     /* [count] of a table */
	double *offset, *factor; /* [outputs] of regression: out / factor + offset; NULL: none */
	const char **target;     /* [outputs] names of targets or classes; NULL: none */
	bool classes;            /* outputs are classes; else, with bits, each is a guess of 0 or 1 */
	bool bits;
} Columns;
Columns *columns_make(Ctx *cx, const Model *m); /* in scratch */
void columns_encode(const Columns *c, uint32_t inputs, const double *row, float *x);
void columns_describe(const Columns *c, const Model *m, Buf *json); /* a JSON object */

/* ---- recipe.c ----------------------------------------------------------------------------------- */

enum {
	WORK_START, /* units are weights from the true unit */
	WORK_DENSE, /* sums go on over consecutive sources */
	WORK_LINKS, /* sums go on over single links */
	WORK_UNITS, /* the unit function */
	WORK_INTEGRATE
};
typedef struct Work {
	int kind;
	Unit first;
	uint32_t count;
	size_t at;        /* START, DENSE: weights; LINKS: row */
	Unit from;        /* DENSE */
	uint32_t sources; /* DENSE */
	uint32_t stride;  /* DENSE: weights of a source: as many as units, rounded up as dense() of runtime.h has it */
	int fn;           /* UNITS */
	float dt;         /* INTEGRATE */
	uint32_t state;   /* INTEGRATE: where its last value is */
	float range;      /* DENSE, 8 bits: largest source; */
	size_t at8, scale_at;
} Work;
typedef struct Remember { /* what a step leaves to the next: unit first .. first + count - 1 = state */
	Unit from, to;        /* contexts: copied from the one to the other; integrating groups: from == to */
	uint32_t count, state;
	float start;
} Remember;
typedef struct Recipe {
	const Net *net;
	Arena *arena; /* that all of it is in */
	Work *work;
	uint32_t works;
	uint64_t work_cap;
	float *weight; /* [weights] of START and DENSE: [source][target] */
	uint64_t weights, weight_cap;
	int32_t *row; /* of LINKS */
	uint64_t rows, row_cap;
	int32_t *from;
	float *link;
	uint64_t links, link_cap, from_cap;
	Remember *remember;
	uint32_t remembers;
	uint32_t states; /* floats that steps leave */
	TickPlan ticks;
	int8_t *weight8; /* 8 bits: [target][source] of DENSE */
	uint64_t weights8;
	float *scale; /* [scales] by target */
	uint64_t scales;
	uint32_t widest; /* sources of a DENSE */
} Recipe;
Recipe *recipe_make(Ctx *cx, Arena *arena, const Model *m);
void steps_table(int fn, float out[19]); /* of stepwise functions, as steps() of runtime.h takes it */

/* ---- evaluate.c: case after case ----------------------------------------------------------------- */

typedef struct Evaluator {
	const Recipe *r;
	float *u;     /* [units] */
	float *state; /* [states] */
	int8_t *q;    /* [widest] */
	bool int8;
	float *range; /* [works] NULL, or the largest source of each DENSE so far */
} Evaluator;
Evaluator *evaluator_new(const Recipe *r, bool int8);  /* in its arena */
void evaluator_reset(Evaluator *e);                    /* a sequence begins */
void evaluate(Evaluator *e, const float *x, float *y); /* one case, all its ticks; scaled inputs */

/* ---- inside the module: quantize.c -------------------------------------------------------------- */

void recipe_quantize(Ctx *cx, Recipe *r, const Data *d, Loss *loss);

/* ---- inside the module: writers ----------------------------------------------------------------- */

typedef struct Writing {
	Ctx *cx;
	const Model *m;
	const Columns *columns;
	const char *path;
	ExportOptions *o;
} Writing;
void c_write(const Writing *w);
void js_write(const Writing *w);
void onnx_write(const Writing *w);
void arrays_write(const Writing *w);
void text_file(Ctx *cx, const char *path, const Buf *text); /* writes it */
const char *identifier(Arena *a, const char *path);         /* of a file: letters, digits and _ */
const char *runtime_text(const char *name, size_t *len);    /* a file of this folder: texts.c */

/* ---- inside the module: protobuf.c, messages out ------------------------------------------------ */

void pb_varint(Buf *b, int field, uint64_t v);
void pb_float(Buf *b, int field, float v);
void pb_bytes(Buf *b, int field, const void *bytes, size_t len);
void pb_text(Buf *b, int field, const char *text);
void pb_message(Buf *b, int field, const Buf *message);

#endif
