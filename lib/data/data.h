/* SPDX-License-Identifier: MIT */
/* data: cases to train and test on, their readers and writers.  Old formats are in lib/data/old, generators in
 * lib/data/make, the table of formats in lib/formats. */
#ifndef DATA_H
#define DATA_H

#include "net.h"

/* ---- types -------------------------------------------------------------------------------------- */

typedef enum DType { T_F32, T_F64, T_F16, T_U8, T_I8, T_U16, T_I16, T_U32, T_I32, T_U64, T_I64, T_BOOL, T_COUNT } DType;
typedef struct DTypeInfo { /* "f4", "float32", 4 */
	const char *npy, *name;
	uint8_t size;
} DTypeInfo;
extern const DTypeInfo dtypes[T_COUNT];

enum { SCALE_NONE, SCALE_RANGE, SCALE_ZSCORE };
typedef struct Scale { /* [inputs]: scaled = (x - offset) * factor */
	int kind;
	double *offset, *factor;
} Scale;

typedef struct Extra { /* a key of an npz file that is not ours: kept and written back */
	const char *key;
	const void *npy;
	size_t len;
} Extra;

/* The CRC of an npz member in a mapped file, checked only when its cases are read. */
enum { DEFERRED_X, DEFERRED_INDICES, DEFERRED_VALUES, DEFERRED_Y, DEFERRED_MASK, DEFERRED_WEIGHT, DEFERRED_COUNT };
typedef struct DeferredCrc {
	const Src *bytes; /* NULL: checked */
	uint64_t head;    /* bytes of it before the first case */
	uint32_t crc;
	const char *name;
	Loc where;
} DeferredCrc;

/* A column of the table that data was read from. */
enum {
	COLUMN_UNUSED,
	COLUMN_INPUT,
	COLUMN_TARGET,
	COLUMN_NAME,
	COLUMN_WEIGHT,
	COLUMN_SEQUENCE,
	COLUMN_FOLD,
	COLUMN_ROLES
};
typedef struct DataColumn {
	const char *name;
	int role;   /* COLUMN_... */
	bool label; /* target: a text that became one-of-n */
} DataColumn;

enum { SIGNS_UNKNOWN, SIGNS_PLAIN, SIGNS_NEGATIVE }; /* of targets */
typedef struct Data {
	const char *name; /* file or generator it came from */
	uint64_t cases;
	uint32_t inputs, targets; /* targets 0: unlabelled */
	/* Inputs: dense rows of some type, unaligned if they lie in a mapped file, or CSR (index lists). */
	const void *x;
	DType x_type;
	const uint64_t *x_indptr;  /* [cases + 1]; NULL: dense */
	const uint32_t *x_indices; /* ascending inside a case */
	const float *x_values;     /* NULL: all ones (binary CSR) */
	const void *y;
	DType y_type;        /* [cases * targets]; NaN = no target */
	const uint8_t *mask; /* [cases * targets] 1 = has a target; NULL: all but NaNs have one */
	const uint64_t *seq; /* [sequences + 1] offsets, first 0, last cases; NULL: no sequences */
	uint64_t sequences;
	const float *weight;    /* [cases] or NULL */
	const uint32_t *ticks;  /* [cases] in settling networks, at most MAX_TICKS; 0: as the options say; or NULL */
	const Text *names;      /* [cases] or NULL */
	const double *codes;    /* [code_count * targets] or NULL: the code table for best guesses */
	const Text *code_names; /* [code_count] or NULL */
	uint32_t code_count;
	const char *schema;         /* JSON (lib/table): how the columns of a table became this; NULL: no table */
	const char *const *classes; /* [class_count] of the label column that became the targets, in order; NULL: none */
	uint32_t class_count;
	const DataColumn *column; /* [columns] inputs in order, targets in order, the rest; NULL: they have no names */
	uint32_t columns;
	const char *groups; /* option groups that it was read with; NULL: none */
	Scale scale;        /* already applied to x */
	Extra *extra;
	uint32_t extras;
	uint64_t bytes; /* memory held, mapped arrays not counted */
	bool mapped;    /* some array lies in a mapped file */
	bool lent;      /* some array is the caller's */
	bool unchecked; /* validation of the cases is left to the ranks that train on them (validate.c) */
	DeferredCrc deferred[DEFERRED_COUNT];
	Loc at;    /* for messages about cases */
	int signs; /* SIGNS_... */
} Data;

typedef mp_data_options DataOptions;

/* ---- data.c: access -------------------------------------------------------------------- */

void data_x(const Data *d, uint64_t i, float *row); /* one case's inputs, dense */
void data_y(const Data *d, uint64_t i, float *row); /* its targets, NaN where there is none */
uint64_t data_examples(const Data *d);              /* sequences, or cases where there are none */
void data_example(const Data *d, uint64_t e, uint64_t *first, uint64_t *count); /* its cases */
void data_prefetch(const Data *d, uint64_t first, uint64_t count); /* of a mapped file: reads examples ahead */
void data_pack(Ctx *cx, Data *d);                                  /* dense 0/1 rows with few ones become CSR */
void data_count_bytes(Data *d);
int64_t row_one_of_n(const float *row, uint32_t n); /* index of the one in a one-of-n row; -1: any other row */
/* Notes what of d a format has no place for; holds: HOLDS_... or-ed. */
enum {
	HOLDS_SEQ = 1,
	HOLDS_WEIGHT = 2,
	HOLDS_NAMES = 4,
	HOLDS_CODES = 8,
	HOLDS_SCALE = 16,
	HOLDS_EXTRA = 32,
	HOLDS_COLUMNS = 64,
	HOLDS_TICKS = 128
};
void data_note_lost(Ctx *cx, const Data *d, const char *format, unsigned holds);

/* ---- validate.c: sizes, offsets, finite values -------------------------------------------------- */

/* Result over a range of cases; results of ranges merge.  An ErrorFn of NULL accepts any target. */
typedef struct Validation {
	uint64_t checksum;
	uint32_t crc[DEFERRED_COUNT];
	bool negative; /* some target is, where a case has one target */
	bool invalid;
	uint32_t check; /* the first check that failed */
	uint64_t place; /* and its lowest place */
} Validation;
void data_check(Ctx *cx, Data *d, Loc at); /* every reader calls it: all, or all but the cases if d->unchecked */
void data_validate(Ctx *cx, Data *d);      /* the cases too, if they are unchecked */
void targets_check(Ctx *cx, const Options *o, const Data *d); /* fails if one is outside the error function's range */
void cases_validate(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end, Validation *v);
void validate_signs(const Data *d, uint64_t first, uint64_t end, Validation *v);
void validation_merge(Validation *into, const Validation *v);
/* Of all cases: fails if one is invalid. */
void validation_finish(Ctx *cx, const Data *d, const ErrorFn *e, const Validation *v);

/* ---- checksum.c: of all that training sees ------------------------------------------------------ */

uint64_t data_checksum(const Data *d);
uint64_t cases_checksum(const Data *d, uint64_t first, uint64_t end); /* those of ranges add up */
uint64_t data_checksum_with(const Data *d, uint64_t of_cases);        /* with the checksum of its cases */

/* ---- split.c, scale.c, describe.c --------------------------------------------------------------- */

/* About `share` of the examples, chosen by seed, or the rest, in their original order; in cx->keep. */
Data *data_split(Ctx *cx, const Data *d, double share, uint64_t seed, bool rest);
void data_truncate(Ctx *cx, Data *d, uint64_t cases); /* to its first cases, whole sequences; 0: all */

extern const char *const scale_names[];                            /* none, range, zscore */
int scale_find(Text name);                                         /* SCALE_..., -1: no such */
void data_scale_fit(Ctx *cx, Data *d, int kind);                   /* sets d->scale and applies it */
void data_scale_apply(Ctx *cx, Arena *a, Data *d, const Scale *s); /* same scale on other data; refuses another */
Scale scale_copy(Arena *a, const Scale *s, uint32_t inputs);

void data_describe(Ctx *cx, const Data *d, mp_data_info *info); /* arrays of info in cx->keep */

/* ---- readers: the whole file to checked data in cx->keep, or failure ----------------------------- */

Data *read_npz(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_npy(Ctx *cx, const Src *s, const DataOptions *opt); /* NAME-x.npy or NAME_x.npy finds its -y partner */
Data *read_idx(Ctx *cx, const Src *s, const DataOptions *opt); /* images; labels file found by the usual MNIST names */
Data *idx_data(Ctx *cx, const Src *images, const Src *labels, const DataOptions *opt); /* labels, opt may be NULL */
Data *read_csv(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_text(Ctx *cx, const Src *s, const DataOptions *opt); /* txt.c */
Data *read_nettalk(Ctx *cx, const Src *s, const DataOptions *opt);

/* ---- writers ------------------------------------------------------------------------------------ */

void write_npz(Ctx *cx, const Data *d, const char *path);
void write_npy(Ctx *cx, const Data *d, const char *path); /* two files */
void write_idx(Ctx *cx, const Data *d, const char *path); /* two files */
void write_csv(Ctx *cx, const Data *d, const char *path);
void write_text(Ctx *cx, const Data *d, const char *path);
void write_npy_doubles(Ctx *cx, const char *path, const double *v, uint64_t rows, uint64_t cols); /* [rows, cols] */

/* ---- classes.c: the texts of a label, and the targets they became ------------------------------- */

/* The options' list of classes decides which has which number; without one, the file does. */
enum { LABEL_CLASSES = 10000, CODED_CLASSES = 256 }; /* at most; at most with a code table */
bool classes_given(const DataOptions *opt);
Dict classes_dict(Ctx *cx, const DataOptions *opt);                     /* those of the options, in order; in scratch */
void classes_unknown(Ctx *cx, Loc at, Text label, const Dict *classes); /* records the error */
void classes_set(Ctx *cx, Data *d, const Text *name, uint32_t count);   /* d->classes and, if few, the code table */
const char *const *classes_copy(Arena *a, const char *const *from, uint32_t count); /* NULL of NULL */
void classes_of_codes(Ctx *cx, Data *d); /* names of one-of-n codes are classes */
bool codes_one_of_n(const Data *d);      /* the code table is that of classes */
bool columns_numbered(const Data *d);    /* the names of columns are x1 x2 ... y1 y2 ... or class: nothing to keep */
const DataColumn *columns_copy(Arena *a, const DataColumn *from, uint32_t count); /* NULL of NULL */

/* ---- inside the module: npy.c, npy_pair.c ------------------------------------------------------- */

enum { NPY_HEADER = 256 };     /* bytes: enough for any header npy_header writes */
enum { READ_CHUNK = 1 << 22 }; /* bytes of a mapped file between releases of its pages */
typedef struct Npy {
	DType type; /* strings: T_U32 for unicode, T_U8 for bytes */
	uint64_t dim[8];
	int dims;
	bool fortran, string, swap; /* swap: big-endian */
	char *block;                /* in scratch, holds data; NULL: data lies elsewhere */
	size_t block_len;
	bool mapped;    /* data lies in a mapped file: pages can be released once copied */
	uint32_t width; /* bytes of an element */
	const uint8_t *data;
	uint64_t count;
} Npy;
Npy npy_parse(Ctx *cx, const Src *s, size_t off, size_t len); /* header and bounds checked */
bool npy_peek(const void *npy, size_t len, Npy *a);           /* false where npy_parse would fail */
size_t npy_header(DType t, const uint64_t *dim, int dims, char *out, size_t size);           /* 64-byte padded */
size_t npy_header_like(const Npy *a, const uint64_t *dim, int dims, char *out, size_t size); /* strings too */
void npy_normalize(Ctx *cx, Npy *a); /* C order, little-endian: copied to scratch if it was not */
void npy_drop(Ctx *cx, Npy *a);      /* frees its block */
/* The array as part of d: in cx->keep, or in the mapped file if the placement allows; values out of a type's range
 * saturate.  want T_COUNT: its own type, unaligned. */
const void *npy_keep(Ctx *cx, Data *d, Npy *a, int place, DType want);
const Text *npy_texts(Ctx *cx, Data *d, const Npy *a, Loc at); /* strings as UTF-8, in cx->keep */
uint32_t npy_columns(Ctx *cx, const Npy *a, Loc at);           /* elements per case; fails over MAX_UNITS */
void data_set_inputs(Ctx *cx, Data *d, Npy *x, int place);     /* as CSR where that is smaller */
/* Arrays of a file are copied; or stay in the mapped file unless CSR is smaller, because each rank needs only some
 * cases; or always stay there, because the file is larger than half the memory. */
enum { ARRAYS_COPIED, ARRAYS_SHARED, ARRAYS_MAPPED };
int array_placement(const Src *s, const DataOptions *opt);
double dtype_get(DType t, const void *base, uint64_t index); /* any alignment */
void dtype_row(DType t, const void *base, uint64_t index, uint64_t count, float *out);

/* ---- inside the module: zip.c, the container of npz --------------------------------------------- */

typedef struct ZipMember {
	const char *name;
	uint64_t at;           /* of its bytes in the file */
	uint64_t packed, size; /* in the file, and unpacked */
	uint32_t crc;
	uint16_t method; /* 0 stored, 8 deflated */
} ZipMember;
typedef struct Zip {
	const Src *src;
	ZipMember *member;
	uint32_t members;
} Zip;
Zip *zip_open(Ctx *cx, const Src *s);                     /* in scratch; members lie inside the file */
Src *zip_read(Ctx *cx, const Zip *z, const ZipMember *m); /* its bytes; deflated ones in scratch */
void zip_check(Ctx *cx, const Zip *z, const ZipMember *m, const Src *bytes); /* its CRC */
_Noreturn void zip_wrong(Ctx *cx, Loc at, const char *member);               /* fails: the CRC is wrong */
typedef struct ZipOut ZipOut;
/* wide_from: sizes from here on are written in 64 bits; UINT32_MAX, or less in a test. */
ZipOut *zip_create(Ctx *cx, const char *path, uint64_t wide_from);
/* The member's content is head, then body; 64-byte aligned in the file. */
void zip_add(ZipOut *z, const char *name, const void *head, size_t head_len, const void *body, size_t len);
void zip_commit(Ctx *cx, ZipOut *z);
void unpacked_check(Ctx *cx, Loc at, uint64_t bytes);         /* fails where memory will not hold them */
void *zlib_alloc(void *arena, unsigned count, unsigned size); /* zlib's hooks: memory of an arena */
void zlib_free(void *arena, void *block);

/* ---- inside the module: columns.c, csv.c -------------------------------------------------------- */

typedef struct CsvColumn {
	Text name;
	size_t off;   /* of its name in the file */
	int64_t x, y; /* input and target column it is, counted from 0; -1: not */
	bool label;   /* target whose text is a class */
	bool text;    /* input: its first value is no number, which was reported */
	bool plain;   /* only numbers for x and y are read from it */
} CsvColumn;
typedef struct CsvColumns {
	char sep;
	CsvColumn *col;
	uint32_t count;
	uint32_t *target;                      /* [targets] their columns */
	uint32_t inputs, targets;              /* columns, before labels become one-of-n */
	int64_t sequence, weight, names, fold; /* their columns; -1: none */
	bool header;                           /* false: the columns are called c1, c2, ... */
	bool own;                              /* roles follow from names that our writer gives */
	size_t body;                           /* offset of the first line below the header */
} CsvColumns;
CsvColumns *columns_plan(Ctx *cx, const Src *s, const DataOptions *opt);
CsvColumns *columns_header(Ctx *cx, const Src *s);             /* names only: no column has a role */
void columns_note(Ctx *cx, const Src *s, const CsvColumns *c); /* inputs whose names are those of other roles */
/* Sets mark[i] of the columns that the list names; NULL: none. */
void columns_mark(Ctx *cx, const Src *s, const CsvColumns *c, const char *option, const char *list, bool *mark);
/* The next line that is not blank; false at the end of the file. */
bool csv_line(const Src *s, size_t *off, const char **line, const char **eol);
/* A field that is a number; a decimal comma counts where commas do not separate fields. */
enum { CSV_NO_NUMBER, CSV_NUMBER, CSV_COMMA };
int csv_number(Text t, char sep, float *v);
double csv_double(Text t); /* the same number in double precision; csv_number has found it finite */
/* The weight of a case, finite and not negative; else an error is recorded. */
bool csv_weight(Ctx *cx, const Src *s, size_t off, Text t, int kind, float v);
_Noreturn void csv_no_weight(Ctx *cx, const Src *s, size_t off, Text name); /* fails: all are 0 */
void csv_note_comma(Ctx *cx, const Src *s, size_t off);                     /* once a file */
/* One field; returns the separator or line end after it, NULL and an error recorded if its quotes are wrong. */
const char *csv_field(Ctx *cx, const Src *s, const char *p, const char *eol, char sep, Text *t);
bool csv_default_roles(const DataColumn *c, uint32_t count); /* a header of these names is read with these roles */
int class_order(Text a, Text b);                             /* numbers by value, then words by bytes */

/* ---- inside the module: nettalk.c, letters.c, txt.c --------------------------------------------- */

/* Words spelt in a-z with one sound and one stress symbol per letter. */
enum { NETTALK_WINDOW = 7, NETTALK_SYMBOLS = 29, NETTALK_INPUTS = 203, NETTALK_TARGETS = 26 };
typedef struct Word {
	const char *letters, *sounds, *stresses;
	uint32_t len;
} Word;
Data *nettalk_data(Ctx *cx, const char *name, const Word *word, uint64_t words); /* a case per letter, named "word/3" */
Word *nettalk_pick(Ctx *cx, const Src *list, const Word *word, uint64_t words, uint64_t *picked); /* of a word list */

enum { TEXT_ESCAPES = 5 };
extern const char text_escapes[TEXT_ESCAPES][2]; /* letter after a backslash, and the byte it stands for */
bool text_keyword(Text line);                    /* does the line begin with a keyword of the text format? */

#endif
