/* SPDX-License-Identifier: MIT */
/* data: cases to train and test on, their readers, writers and generators. */
#ifndef DATA_H
#define DATA_H

#include "net.h"

/* ---- data.c and the readers and writers --------------------------------------------------------- */

typedef enum DType { T_F32, T_F64, T_F16, T_U8, T_I8, T_U16, T_I16, T_U32, T_I32, T_U64, T_I64, T_BOOL, T_COUNT } DType;
typedef struct DTypeInfo {
	const char *npy, *name;
	uint8_t size;
} DTypeInfo; /* "f4", "float32", 4 */
extern const DTypeInfo dtypes[T_COUNT];

enum { SCALE_NONE, SCALE_RANGE, SCALE_ZSCORE };
typedef struct Scale {
	int kind;
	double *offset, *factor;
} Scale; /* [inputs]: scaled = (x - offset) * factor */

typedef struct Extra {
	const char *key;
	const void *npy;
	size_t len;
} Extra;

/* Bytes of an npz member that nobody has read yet, so that its checksum is still to be looked at. */
enum { DEFERRED_X, DEFERRED_INDICES, DEFERRED_VALUES, DEFERRED_Y, DEFERRED_MASK, DEFERRED_WEIGHT, DEFERRED_COUNT };
typedef struct DeferredCrc {
	const Src *bytes; /* NULL: it was looked at */
	uint64_t head;    /* bytes of it before the first case */
	uint32_t crc;
	const char *name;
	Loc where;
} DeferredCrc;

enum { SIGNS_UNKNOWN, SIGNS_PLAIN, SIGNS_NEGATIVE }; /* of targets */
typedef struct Data {
	const char *name; /* file or generator it came from */
	uint64_t cases;
	uint32_t inputs, targets; /* targets 0: unlabelled */
	/* Inputs: dense rows of some type, perhaps straight from a mapped file and so of any alignment, or index lists. */
	const void *x;
	DType x_type;
	const uint64_t *x_indptr;  /* [cases + 1] if index lists, else NULL */
	const uint32_t *x_indices; /* ascending inside a case */
	const float *x_values;     /* NULL: all ones */
	const void *y;
	DType y_type;        /* [cases * targets]; NaN = no target */
	const uint8_t *mask; /* [cases * targets] 1 = has a target; NULL: all but NaNs have one */
	const uint64_t *seq; /* [sequences + 1] offsets, first 0, last cases; NULL: no sequences */
	uint64_t sequences;
	const float *weight;    /* [cases] or NULL */
	const Text *names;      /* [cases] or NULL */
	const double *codes;    /* [code_count * targets] or NULL: the code table for best guesses */
	const Text *code_names; /* [code_count] or NULL */
	uint32_t code_count;
	/* [class_count] of the label column that became the targets, in their order; NULL: none */
	const char *const *classes;
	uint32_t class_count;
	Scale scale; /* already applied to x */
	Extra *extra;
	uint32_t extras;
	uint64_t bytes; /* memory held, mapped parts not counted */
	bool mapped;    /* some array lies in a mapped file */
	bool unchecked; /* its cases: whoever trains on some of them has to look at those (validate.c) */
	DeferredCrc deferred[DEFERRED_COUNT];
	Loc at;    /* of what is wrong with cases */
	int signs; /* SIGNS_... */
} Data;

typedef mp_data_options DataOptions;

/* Reads any format, told by name and content, or makes a built-in set ("make:xor").  Opt may be NULL. */
Data *data_open(Ctx *cx, const char *path, const DataOptions *opt);
void data_write(Ctx *cx, const Data *d, const char *path); /* format by name: .npz .npy .csv .txt .idx; atomic */
void data_count_bytes(Data *d);
void data_pack(Ctx *cx, Data *d);                   /* dense 0/1 rows with few ones become index lists */
void data_x(const Data *d, uint64_t i, float *row); /* one case's inputs, dense */
void data_y(const Data *d, uint64_t i, float *row); /* its targets, NaN where there is none */
/* these examples will be wanted: reads them ahead, if mapped */
void data_prefetch(const Data *d, uint64_t first, uint64_t count);
/* One part of a split by example: about `share` of them, chosen by seed, or the rest; original order; memory in
 * cx->keep, so that each part can live in a handle of its own. */
Data *data_split(Ctx *cx, const Data *d, double share, uint64_t seed, bool rest);
void data_scale_fit(Ctx *cx, Data *d, int kind);                   /* sets d->scale and applies it */
void data_scale_apply(Ctx *cx, Arena *a, Data *d, const Scale *s); /* same scale on other data; refuses another */
Scale scale_copy(Arena *a, const Scale *s, uint32_t inputs);
void data_describe(Ctx *cx, const Data *d, mp_data_info *info); /* arrays of info in cx->keep */
/* Notes what of d a format has no place for; holds: HOLDS_... or-ed. */
enum { HOLDS_SEQ = 1, HOLDS_WEIGHT = 2, HOLDS_NAMES = 4, HOLDS_CODES = 8, HOLDS_SCALE = 16, HOLDS_EXTRA = 32 };
void data_note_lost(Ctx *cx, const Data *d, const char *format, unsigned holds);
/* checksum.c: of all that training sees; of cases, which adds up; of the data whose cases have that */
uint64_t data_checksum(const Data *d);
uint64_t cases_checksum(const Data *d, uint64_t first, uint64_t end);
uint64_t data_checksum_with(const Data *d, uint64_t of_cases);
uint64_t data_examples(const Data *d); /* sequences, or cases where there are none */
void data_example(const Data *d, uint64_t e, uint64_t *first, uint64_t *count); /* its cases */

/* validate.c: what is seen in some cases; adds up.  Error functions may be NULL: any target will do. */
typedef struct Validation {
	uint64_t checksum;
	uint32_t crc[DEFERRED_COUNT];
	bool negative; /* a target is, where a case has one target */
	bool invalid;
	uint32_t check;
	uint64_t place; /* the first thing that is, for one who looks at all cases */
} Validation;
void data_check(Ctx *cx, Data *d, Loc at); /* called by every reader: all of it, or all but the cases if d->unchecked */
void data_validate(Ctx *cx, Data *d);      /* looks at the cases too, if nobody has */
void cases_validate(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end, Validation *l);
void validate_signs(const Data *d, uint64_t first, uint64_t end, Validation *l);
void validation_merge(Validation *into, const Validation *l);
/* of all cases together: fails if something was wrong */
void validation_finish(Ctx *cx, const Data *d, const ErrorFn *e, const Validation *l);

/* One reader per format: given the whole file, returns checked data or unwinds.  All memory in cx->keep. */
Data *read_npz(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_npy(Ctx *cx, const Src *s, const DataOptions *opt); /* NAME-x.npy or NAME_x.npy finds its -y partner */
Data *read_idx(Ctx *cx, const Src *s, const DataOptions *opt); /* images; labels file found by the usual MNIST names */
Data *read_csv(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_text(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_nettalk(Ctx *cx, const Src *s, const DataOptions *opt);
void write_npz(Ctx *cx, const Data *d, const char *path);
void write_npy(Ctx *cx, const Data *d, const char *path); /* two files */
void write_idx(Ctx *cx, const Data *d, const char *path); /* two files */
void write_csv(Ctx *cx, const Data *d, const char *path);
void write_text(Ctx *cx, const Data *d, const char *path);
/* float64 [rows, cols] */
void write_npy_doubles(Ctx *cx, const char *path, const double *v, uint64_t rows, uint64_t cols);
Data *make_data(Ctx *cx, const char *spec, const DataOptions *opt); /* generate.c, letters.c: "parity:4" */

/* classes.c: texts of a label, and the targets they became.  Which class has which number is told by the list that the
 * options bring, where there is one, or else by the file. */
enum { LABEL_CLASSES = 10000, CODED_CLASSES = 256 }; /* at most so many; with a code table */
bool classes_given(const DataOptions *opt);
Dict classes_dict(Ctx *cx, const DataOptions *opt); /* those of the options, in their order; in scratch */
void classes_unknown(Ctx *cx, Loc at, Text label, const Dict *classes); /* records that it is none of them */
/* d->classes and, if they are few, the code table */
void classes_set(Ctx *cx, Data *d, const Text *name, uint32_t count);
const char *const *classes_copy(Arena *a, const char *const *from, uint32_t count); /* NULL of NULL */

/* nettalk.c, shared by nettalk and letters: words spelt in a-z with one sound and one stress symbol per letter */
enum { NETTALK_WINDOW = 7, NETTALK_SYMBOLS = 29, NETTALK_INPUTS = 203, NETTALK_TARGETS = 26 };
typedef struct Word {
	const char *letters, *sounds, *stresses;
	uint32_t len;
} Word;
Data *nettalk_data(Ctx *cx, const char *name, const Word *word, uint64_t words); /* a case per letter, named "word/3" */
/* those of a word list */
Word *nettalk_pick(Ctx *cx, const Src *list, const Word *word, uint64_t words, uint64_t *picked);

/* idx.c: labels, opt may be NULL */
Data *idx_data(Ctx *cx, const Src *images, const Src *labels, const DataOptions *opt);
Data *make_letters(Ctx *cx, uint64_t seed); /* letters.c */

/* npy.c, shared by npy, npz */
enum { NPY_HEADER = 256 }; /* room enough for any header npy_header writes */
typedef struct Npy {
	DType type; /* strings: T_U32 for unicode, T_U8 for bytes */
	uint64_t dim[8];
	int dims;
	bool fortran, string, swap; /* swap: big-endian */
	char *block;
	size_t block_len; /* NULL, or data lies in here, which is in scratch */
	bool mapped;      /* data lies in a mapped file: what was copied need not stay in memory twice */
	uint32_t width;   /* bytes of an element */
	const uint8_t *data;
	uint64_t count;
} Npy;
Npy npy_parse(Ctx *cx, const Src *s, size_t off, size_t len); /* header and bounds checked */
bool npy_peek(const void *npy, size_t len, Npy *a);           /* quiet: false where npy_parse would fail */
size_t npy_header(DType t, const uint64_t *dim, int dims, char *out, size_t size);           /* 64-byte padded */
size_t npy_header_like(const Npy *a, const uint64_t *dim, int dims, char *out, size_t size); /* strings too */
void npy_normalize(Ctx *cx, Npy *a); /* C order, little-endian: in scratch if it was not so */
void npy_drop(Ctx *cx, Npy *a);      /* its block, if it has one */
/* The array as part of d: in cx->keep, or where it lies if the place allows; values a type cannot hold become its
 * largest. want T_COUNT: as it is, at any address. */
const void *npy_keep(Ctx *cx, Data *d, Npy *a, int place, DType want);
const Text *npy_texts(Ctx *cx, Data *d, const Npy *a, Loc at); /* strings as UTF-8, in cx->keep */
uint32_t npy_columns(Ctx *cx, const Npy *a, Loc at);           /* elements per case; unwinds over MAX_UNITS */
void data_set_inputs(Ctx *cx, Data *d, Npy *x, int place);     /* as index lists where that is worth it */
/* Arrays of a file are copied; or stay where it is mapped, because each rank wants only some cases, unless index
 * lists are worth more; or stay there at any rate, because the file is larger than half the memory. */
enum { ARRAYS_COPIED, ARRAYS_SHARED, ARRAYS_MAPPED };
int array_placement(const Src *s, const DataOptions *opt);
double dtype_get(DType t, const void *base, uint64_t index); /* any alignment */
void dtype_row(DType t, const void *base, uint64_t index, uint64_t count, float *out);

/* split.c */
extern const char *const scale_names[];               /* none, range, zscore */
int scale_find(const char *name, size_t len);         /* SCALE_..., -1: no such */
void data_truncate(Ctx *cx, Data *d, uint64_t cases); /* cuts d down to its first cases, whole sequences; 0: all */

enum { TEXT_ESCAPES = 5 };
extern const char text_escapes[TEXT_ESCAPES][2]; /* txt.c: letter after a backslash, and what it stands for */
bool text_keyword(Text line);                    /* txt.c: does the line begin with a word of the text form? */

#endif
