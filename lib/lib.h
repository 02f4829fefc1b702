/* SPDX-License-Identifier: MIT */
/* lib: everything between a topology file and trained weights that knows no machine.
 *
 * Types stand in the order of the flow, prototypes under the name of the file that holds them:
 *
 *   file.topo --parse--> Net --plan--> Plan --Target.compile--> Program --train--> weights, metrics, checkpoints
 *
 * Failing: whoever reads input calls fail() or fail_at(), which records a message and unwinds to the edge, the
 * setjmp in api/api.c. (What stands in a context of its own has an edge there: the thread of later.c, machines of
 * target/gf11.) Running code (accumulate, apply) returns a Status and never unwinds.
 * Memory: every handle has a Ctx with two arenas; `keep` lives as long as the handle, `scratch` until the public
 * call returns. Allocation never returns NULL: it unwinds. */
#ifndef LIB_H
#define LIB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "microprop.h"

typedef mp_status Status;
typedef mp_allocator Alloc;
typedef struct Ctx Ctx;

#if defined __GNUC__
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- memory.c: the only file that calls malloc -------------------------------------------------- */

typedef struct Chunk Chunk;
typedef struct Cleanup Cleanup;
typedef struct Arena {
	Ctx *cx;          /* who fails when memory runs out */
	Chunk *chunk;     /* small blocks are cut from the first of these */
	Chunk *big;       /* blocks with a chunk of their own: can grow in place */
	Cleanup *cleanup; /* what to call before the memory goes: unmap, close */
} Arena;

void *arena_alloc(Arena *a, size_t count, size_t size); /* zeroed, aligned; unwinds on failure or overflow */
/* the same, but not zeroed: pages lie near whoever writes first */
void *arena_room(Arena *a, size_t count, size_t size);
/* as realloc; new part zeroed */
void *arena_grow(Arena *a, void *old, size_t old_count, size_t new_count, size_t size);
/* the same, but not zeroed */
void *arena_grow_room(Arena *a, void *old, size_t old_count, size_t new_count, size_t size);
/* the rest goes back, if the block is large */
void *arena_trim(Arena *a, void *old, size_t old_count, size_t new_count, size_t size);
/* lives with another from now; copied if it is small */
void *arena_give(Arena *from, Arena *to, void *block, size_t count, size_t size);
char *arena_copy(Arena *a, const char *text, size_t len);  /* a NUL-terminated copy */
void arena_defer(Arena *a, void (*fn)(void *), void *arg); /* fn(arg) when the arena is freed, last first */
/* goes now, if it is large; count and size as it was taken or grew */
void arena_drop(Arena *a, void *block, size_t count, size_t size);
void arena_free(Arena *a);
#define NEW(arena, n, type) ((type *)arena_alloc(arena, n, sizeof(type)))

/* Text that grows: `s` is always NUL-terminated once something was added. */
typedef struct Buf {
	Arena *arena;
	char *s;
	size_t len, cap;
} Buf;
void buf_add(Buf *b, const void *bytes, size_t len);
void buf_puts(Buf *b, const char *s);
void buf_printf(Buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(Buf *b, const char *fmt, va_list ap);

/* ---- error.c ------------------------------------------------------------------------------------ */

/* A text or binary file as read; what a location points into. */
typedef struct Src {
	const char *name; /* as the user wrote it */
	const char *text; /* NUL-terminated for text read by src_read */
	size_t len;
	bool binary; /* locations are byte offsets, no line is shown */
	bool mapped; /* text lies in the file itself, whose pages come and go */
} Src;

/* Where: a byte in a file.  Line and column are worked out only when a message is printed. */
typedef struct Loc {
	const Src *src;
	size_t off;
} Loc;

struct Ctx {
	Alloc alloc;
	Arena keep, scratch;
	Buf messages;  /* in keep: all diagnostics of the handle's last call, one after the other */
	int errors;    /* how many of them are errors */
	Status status; /* of the last failure */
	jmp_buf *edge; /* where failing unwinds to */
	bool starved;  /* out of memory: the message is in last_words */
	char last_words[160];
	/* for tests: counts down at every open, read, write, fsync, rename and close of file.c made through this
	 * context; the call that brings it to 0 fails. 0: none does */
	int io_fail_at;
};

void ctx_init(Ctx *cx, const Alloc *alloc);
void ctx_free(Ctx *cx);

/* Every message says what is wrong (fmt) and what would be right (remedy, may be NULL). At most MAX_ERRORS are
 * kept. error_at records and returns, so that several errors are reported in one go; check_errors unwinds if there
 * were any. */
enum { MAX_ERRORS = 20 };
void error_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
void note_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5); /* not an error */
_Noreturn void fail_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
_Noreturn void fail(Ctx *cx, Status status, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
void note(Ctx *cx, const char *remedy, const char *fmt, ...) PRINTF_LIKE(3, 4);
void check_errors(Ctx *cx);
_Noreturn void fail_again(Ctx *cx, Status status); /* what is wrong has been said already */
const char *ctx_messages(const Ctx *cx);           /* all of them as one text; "" if none */
/* The nearest of `count` names to a misspelt one, or NULL if none is near: for "did you mean". */
const char *nearest_name(const char *word, const char *const *names, size_t count);

/* ---- file.c: reading, and writing so that a crash never loses what was there -------------------- */

/* Maps (regular files) or reads (pipes, "-" for standard input) a file into the arena's care. */
Src *src_open(Ctx *cx, Arena *arena, const char *path);
/* of a mapped file, whole pages: they are read again when they are wanted */
void pages_forget(const void *from, size_t len);
/* A reader of a file has come to `off`: pages before it go, some at a time, if it is mapped. *gone: up to where
 * they did, from 0. */
void src_passed(const Src *s, size_t *gone, size_t off);

/* Writes to PATH.tmp-PID-N, then fsync, rename over PATH, fsync of the directory.  Nothing appears under PATH unless
 * file_commit succeeds; every call after a failed one does nothing and file_commit reports the first failure. */
typedef struct OutFile OutFile;
OutFile *file_create(Ctx *cx, Arena *arena, const char *path); /* deferred in arena: abandoned if never committed */
void file_write(OutFile *f, const void *bytes, size_t len);
void file_commit(Ctx *cx, OutFile *f); /* unwinds with MP_FAILED and the system's reason */
/* From the first byte on: what is written will be read back before it takes the place of the old file; of that and
 * those before it keep - 1 stay, as PATH.1, PATH.2, ... */
void file_checked(OutFile *f, uint32_t keep);
/* The whole content of a file, checked so. */
typedef struct Content {
	char *at;
	size_t len;
} Content;
void file_put(Ctx *cx, const char *path, Content whole, uint32_t keep);
double clock_seconds(void);  /* of a clock that nobody sets: for differences */
uint64_t memory_total(void); /* bytes of RAM; MICROPROP_MEMORY overrides, for tests */

/* ---- random.c: counter-based, so that any part of a stream can be had without the rest ---------- */

/* Philox 4x32-10. What a stream is for goes into `stream`; the same (seed, stream, index) gives the same number for
 * ever. */
enum { STREAM_WEIGHTS = 1, STREAM_SHUFFLE, STREAM_DENSITY, STREAM_SPLIT, STREAM_DATA };
uint64_t random_u64(uint64_t seed, uint32_t stream, uint64_t index);
double random_unit(uint64_t seed, uint32_t stream, uint64_t index); /* [0, 1), 24 bits: exact in float */
/* 0 .. n-1, unbiased enough: n < 2^32 */
uint64_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n);

/* Order of examples in an epoch: blocks of 4,096 permuted, then each inside itself. */
enum { SHUFFLE_BLOCK = 4096 };
typedef struct Order {
	uint64_t examples; /* how many there are */
	uint64_t seed;
	bool shuffled;
	uint64_t epoch;    /* the epoch `blocks` is for */
	uint32_t *blocks;  /* order of the blocks in this epoch */
	uint64_t short_at; /* where the last, shorter block stands in it */
	uint64_t block;    /* which position of `blocks` `inside` is for */
	uint16_t inside[SHUFFLE_BLOCK];
} Order;
Order *order_new(Arena *a, uint64_t examples, uint64_t seed, bool shuffled);
void order_epoch(Order *o, uint64_t epoch);     /* no allocation */
uint64_t order_at(Order *o, uint64_t position); /* which example stands there */
/* first example of the block that stands there, and how many; 0: none */
uint64_t order_block(const Order *o, uint64_t place, uint64_t *count);

/* ---- pool.c: threads that wait for work --------------------------------------------------------- */

typedef struct Pool Pool;
typedef void PoolFn(void *arg, uint32_t thread);
Pool *pool_new(Ctx *cx, uint32_t threads); /* joined when cx->keep goes; fewer if need be */
uint32_t pool_cores(void);                 /* cores this process may use: how many threads are worth while */
uint32_t pool_threads(const Pool *p);
void pool_run(Pool *p, PoolFn *fn, void *arg); /* fn(arg, i) for all i, on this thread and the others */
void pool_barrier(Pool *p);                    /* inside fn: all have come */

/* ---- arith.c: elementary functions, the same bits on every CPU (libm picks other code where there is FMA) ---- */

double arith_exp(double x);
double arith_log(double x);
double arith_tanh(double x);
double arith_cospi(double x); /* cos(pi x) */

/* ---- units.c: unit functions and error functions, one table each -------------------------------- */

enum { FN_SIGMOID, FN_TANH, FN_LINEAR, FN_RELU, FN_SOFTMAX, FN_GAUSSIAN, FN_SIGMOID2, FN_COUNT };
typedef struct UnitFn {
	const char *name, *formula;
	double (*value)(double net);             /* softmax: exp, the group is divided by its sum afterwards */
	double (*slope)(double net, double out); /* softmax: not used */
	double low, high;                        /* range of the outputs */
} UnitFn;
extern const UnitFn unit_fns[FN_COUNT];

enum { ERR_SQUARED, ERR_CROSS_ENTROPY, ERR_DIVERGENCE, ERR_COUNT };
typedef struct ErrorFn {
	const char *name, *formula;
	double (*value)(double out, double target);
	double (*slope)(double out, double target); /* d value / d out */
	double low, high;                           /* outputs must lie in this range */
	int matched;                                /* the unit function whose slope cancels, -1 if none */
	bool only_matched;                          /* makes sense with that unit function alone */
} ErrorFn;
extern const ErrorFn error_fns[ERR_COUNT];
bool error_fits(int error, int fn); /* may outputs of this unit function be trained with it? */

/* ---- options.c: one table (options.def) for the topology parser, the command line, checkpoints and manuals ---- */

enum { BATCH_ALL = 0 };
enum { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_COSINE };
enum { BPTT_COPY, BPTT_FULL };
enum { PRECISION_FP32, PRECISION_BF16 };
enum { ALLREDUCE_EXACT, ALLREDUCE_MPI };
enum { INPUT_AUTO, INPUT_DENSE, INPUT_INDEX };
typedef struct Options {
#define INT(field, ...)    int64_t field;
#define REAL(field, ...)   double field;
#define CHOICE(field, ...) int field;
#define FLAG(field, ...)   int field; /* 0, 1, or -1 for the default that depends on others */
#define TEXT(field, ...)   const char *field;
#include "options.def"
} Options;

void options_init(Options *o);
/* NULL if fine, else what is wrong, in scratch; *remedy says what would be right. */
const char *option_set(Ctx *cx, Options *o, const char *name, const char *value, const char **remedy);
/* as text that option_set reads back; NULL: no such */
const char *option_get(Arena *a, const Options *o, const char *name);
const mp_option *option_at(size_t i);          /* NULL past the last */
bool option_is_fixed(const char *name);        /* changes the result: not to be set on a resumed run */
void options_check(Ctx *cx, const Options *o); /* combinations that make no sense: fails */

/* What `until` says, taken apart. */
/* NaN: not asked for; any that is met ends the run as solved */
typedef struct Until {
	double error, right, within;
} Until;
bool until_parse(const char *text, Until *u);
struct Tally;
bool until_reached(const Until *u, const struct Tally *t); /* report.c */

/* ---- net.c, lex.c, parse.c, connect.c (and parse.h), link.c, netprint.c: the network ------------ */

/* Unit 0 is the true unit; then the units of the groups in the order of the file. */
typedef uint32_t Unit;
enum { ROLE_INPUT, ROLE_HIDDEN, ROLE_OUTPUT, ROLE_CONTEXT, ROLE_COUNT };
extern const char *const role_names[ROLE_COUNT];

typedef struct Group {
	const char *name;
	uint32_t size;
	Unit first;
	int fn; /* FN_...; inputs and contexts are FN_LINEAR */
	int role;
	float start; /* contexts: value at the start of a sequence */
	Loc at;
} Group;

enum { LINK_FULL, LINK_ONE_TO_ONE, LINK_RANDOM, LINK_SINGLE, LINK_KINDS };
extern const char *const link_kinds[LINK_KINDS];
typedef struct Block { /* one `connect` of one source slice to one target slice */
	int kind;
	int32_t from_group, to_group;                        /* from_group -1: the true unit */
	uint32_t from_first, from_count, to_first, to_count; /* inside their groups */
	double density;                                      /* LINK_RANDOM */
	uint64_t seed;                                       /* LINK_RANDOM */
	float low, high; /* initial weights are drawn from here; NaN: from -+1 / sqrt(the unit's links, true not counted) */
	float rate;      /* factor on the learning rate */
	bool frozen;
	uint64_t links; /* how many this block has */
	Loc at;
} Block;

typedef struct Copy { /* context = source as it was one case ago, in the same sequence */
	int32_t from_group, to_group;
	Loc at;
} Copy;

typedef struct Net {
	const char *name; /* of the file */
	Group *group;
	uint32_t groups;
	Block *block;
	uint32_t blocks;
	Copy *copy;
	uint32_t copies;
	uint32_t units;           /* with the true unit */
	uint32_t inputs, outputs; /* sizes of all input and all output groups together, in file order */
	/* Links in canonical order: by target unit, then by source unit.  Links of unit u are row[u] .. row[u+1]-1. */
	uint64_t links;
	uint64_t *row; /* [units + 1] */
	/* Lists of sources and of blocks. Units that have the same, one after the other, share one list, and so do
	 * those whose list is the beginning of the next one's: a full block takes as much as one of its targets. */
	Unit *from; /* of link l of unit u: from[l + from_at[u]], the sum modulo 2^64; likewise block_of */
	uint32_t *block_of;
	uint64_t *from_at, *block_at; /* [units] */
	Options options;              /* training defaults of the file */
	const char *data, *test;      /* what `data` and `test` name, resolved against the file's folder; NULL if absent */
	char fingerprint[33];         /* XXH3-128 of groups, functions, links, copies: what makes weights fit */
} Net;

/* Limits, checked before anything is allocated for them. */
#define MAX_UNITS 16777216u
#define MAX_LINKS 1000000000u

Net *net_parse(Ctx *cx, const Src *src);        /* text to Net: calls net_link and net_check */
void net_link(Ctx *cx, Net *net);               /* link.c: blocks to canonical links; finds duplicates */
Unit net_target(const Net *net, uint64_t link); /* whose link it is */
/* Source and block of link l, which leads to unit u. */
static inline Unit net_source(const Net *net, Unit u, uint64_t l) { return net->from[l + net->from_at[u]]; }

static inline const Block *net_block(const Net *net, Unit u, uint64_t l)
{
	return &net->block[net->block_of[l + net->block_at[u]]];
}

bool net_same_sources(const Net *net, Unit u, Unit v);
void net_check(Ctx *cx, Net *net);        /* cycles, unreachable groups, roles; sets the fingerprint */
void net_print(const Net *net, Buf *out); /* the text of --stage net */
/* Numbers of links are asked for in pieces: all at once, in double precision, they would be the largest thing there
 * is. */
enum { PIECE_LINKS = 1 << 15 };
#define ALL_LINKS UINT64_MAX
/* so many there are of count links from `first` on */
uint64_t net_piece(const Net *net, uint64_t first, uint64_t count);
/* initial weights, float values, canonical order */
void net_weights(const Net *net, uint64_t seed, uint64_t first, uint64_t count, double *w);
Group *net_group(const Net *net, Unit u);                           /* whose unit u is; NULL for the true unit */
void net_unit_name(const Net *net, Unit u, char *buf, size_t size); /* hidden[3], true */
/* Longest path to every unit, 0 for true, inputs and contexts; a softmax group is one node.  `order` takes the computed
 * nodes (their first units), sources before targets; returns how many.  Cycles are recorded as errors. */
uint32_t net_levels(Ctx *cx, const Net *net, uint32_t *level, Unit *order);
bool block_is_later(const Block *b);  /* links only to units that stand later in the same group */
uint64_t block_pairs(const Block *b); /* links it has, or for LINK_RANDOM chooses from */
void block_print_end(const Net *net, const Block *b, bool to, Buf *out); /* a[0:29], b[3], true */

/* ---- plan.c: the order of work, without a machine ----------------------------------------------- */

typedef struct Caps { /* all the plan knows of a target */
	const char *target;
	uint32_t lanes;  /* cases in flight */
	uint32_t bundle; /* at most so many weights in a bundle; 0: no limit */
} Caps;

typedef struct Span {
	Unit first;
	uint32_t count;
} Span; /* units that stand side by side in one group */
typedef struct Bundle {
	Span units;
	uint64_t link, links;
} Bundle; /* incoming links of some units of one level */
typedef struct Level {
	uint32_t span, spans, bundle, bundles;
} Level;

typedef struct Plan {
	const Net *net;
	Caps caps;
	uint32_t *level_of; /* [units]: 0 for true, inputs, contexts */
	Level *level;
	uint32_t levels; /* that compute; level[i] holds units with level_of == i + 1 */
	Span *span;
	uint32_t spans;
	Bundle *bundle;
	uint32_t bundles;  /* forward order; backward is the reverse */
	uint64_t W, Wi, U; /* the report's counts (section 6.1): weights, those of the input layer, units */
} Plan;

Plan *plan_make(Ctx *cx, const Net *net, const Caps *caps);
void plan_print(const Plan *plan, Buf *out);

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

typedef struct Text {
	const char *s;
	uint32_t len;
} Text;
/* a key of the file that is not ours, kept */
typedef struct Extra {
	const char *key;
	const void *npy;
	size_t len;
} Extra;

/* Bytes of an npz member that nobody has read yet, so that its checksum is still to be looked at. */
enum { UNREAD_X, UNREAD_INDICES, UNREAD_VALUES, UNREAD_Y, UNREAD_MASK, UNREAD_WEIGHT, UNREADS };
typedef struct Unread {
	const Src *bytes; /* NULL: it was looked at */
	uint64_t head;    /* bytes of it before the first case */
	uint32_t crc;
	const char *name;
	Loc where;
} Unread;

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
	bool unchecked; /* its cases: whoever trains on some of them has to look at those (check.c) */
	Unread unread[UNREADS];
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
void data_ahead(const Data *d, uint64_t first, uint64_t count);
/* One part of a split by example: about `share` of them, chosen by seed, or the rest; original order; memory in
 * cx->keep, so that each part can live in a handle of its own. */
Data *data_part(Ctx *cx, const Data *d, double share, uint64_t seed, bool rest);
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
struct XXH3_state_s;
void digest_text(const struct XXH3_state_s *hash, char out[33]); /* checksum.c: XXH3-128 so far, in hexadecimal */
uint64_t data_examples(const Data *d);                           /* sequences, or cases where there are none */
void data_example(const Data *d, uint64_t e, uint64_t *first, uint64_t *count); /* its cases */

/* check.c: what is seen in some cases; adds up.  Error functions may be NULL: any target will do. */
typedef struct Glance {
	uint64_t checksum;
	uint32_t crc[UNREADS];
	bool negative; /* a target is, where a case has one target */
	bool wrong;
	uint32_t check;
	uint64_t place; /* the first thing that is, for one who looks at all cases */
} Glance;
void data_check(Ctx *cx, Data *d, Loc at); /* called by every reader: all of it, or all but the cases if d->unchecked */
void data_settle(Ctx *cx, Data *d);        /* looks at the cases too, if nobody has */
void cases_look(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end, Glance *l);
void look_signs(const Data *d, uint64_t first, uint64_t end, Glance *l);
void look_add(Glance *into, const Glance *l);
/* of all cases together: fails if something was wrong */
void look_tell(Ctx *cx, const Data *d, const ErrorFn *e, const Glance *l);

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

/* number.c: a decimal number as float32, correctly rounded; returns where it ends, NULL if there is none. Also nan,
 * inf. */
const char *number_read(const char *p, const char *end, float *v);

/* dict.c: texts numbered in order of first appearance; set `arena`, the rest starts at zero */
typedef struct Dict {
	Arena *arena;
	Text *text;
	uint32_t *slot, slots, count;
} Dict;
uint32_t dict_add(Dict *d, Text t);
bool dict_find(const Dict *d, Text t, uint32_t *number);

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
void npy_plain(Ctx *cx, Npy *a); /* C order, little-endian: in scratch if it was not so */
void npy_drop(Ctx *cx, Npy *a);  /* its block, if it has one */
/* The array as part of d: in cx->keep, or where it lies if the place allows; values a type cannot hold become its
 * largest. want T_COUNT: as it is, at any address. */
const void *npy_keep(Ctx *cx, Data *d, Npy *a, int place, DType want);
const Text *npy_texts(Ctx *cx, Data *d, const Npy *a, Loc at); /* strings as UTF-8, in cx->keep */
uint32_t npy_columns(Ctx *cx, const Npy *a, Loc at);           /* elements per case; unwinds over MAX_UNITS */
void data_take_x(Ctx *cx, Data *d, Npy *x, int place);         /* as index lists where that is worth it */
/* Arrays of a file are copied; or stay where it is mapped, because each rank wants only some cases, unless index
 * lists are worth more; or stay there at any rate, because the file is larger than half the memory. */
enum { ARRAYS_COPIED, ARRAYS_SHARED, ARRAYS_MAPPED };
int data_place(const Src *s, const DataOptions *opt);
double dtype_get(DType t, const void *base, uint64_t index); /* any alignment */
void dtype_row(DType t, const void *base, uint64_t index, uint64_t count, float *out);

/* split.c */
extern const char *const scale_names[];            /* none, range, zscore */
int scale_find(const char *name, size_t len);      /* SCALE_..., -1: no such */
void data_first(Ctx *cx, Data *d, uint64_t cases); /* cuts d down to its first cases, whole sequences; 0: all */

enum { TEXT_ESCAPES = 5 };
extern const char text_escapes[TEXT_ESCAPES][2]; /* text.c: letter after a backslash, and what it stands for */
bool text_keyword(Text line);                    /* text.c: does the line begin with a word of the text form? */

/* ---- rules.c, formula.c: update rules, one table (rules.def) ------------------------------------ */

/* A rule is a few assignments over g (gradient), w (weight), its own per-weight state and named numbers of the
 * update (rate, momentum, ...). They are parsed once into straight-line code that ref evaluates in double; cpu
 * makes a vector sweep of it and gf11 microcode. */
enum {
	OP_CONST,
	OP_PARAM,
	OP_LOAD,
	OP_STORE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_FMA,
	OP_NEG,
	OP_ABS,
	OP_SQRT,
	OP_MIN,
	OP_MAX,
	OP_LT,
	OP_LE,
	OP_SELECT,
	OP_COUNT
};
/* result of op i is value i; a, b, c are earlier values; LOAD/STORE: a = variable (0 g, 1 w, 2.. state), STORE: b =
 * value; PARAM: a = index into Update.param; SELECT: a ? b : c */
typedef struct Op {
	uint8_t op;
	uint8_t a, b, c;
	double value;
} Op;
enum { MAX_OPS = 96, MAX_STATE = 3 };
typedef struct Formula {
	Op op[MAX_OPS];
	uint32_t ops;
} Formula;

enum {
	P_RATE,
	P_MOMENTUM,
	P_DECAY,
	P_CLIP,
	P_BETA1,
	P_BETA2,
	P_FIX1,
	P_FIX2,
	P_EPSILON,
	P_MU,
	P_UP,
	P_DOWN,
	P_STEP_MIN,
	P_STEP_MAX,
	P_KAPPA,
	P_PHI,
	P_THETA,
	P_COUNT
};
extern const char *const param_names[P_COUNT];

typedef struct Rule {
	const char *name, *about, *formula;
	int states;
	const char *state[MAX_STATE]; /* names, as in checkpoints: state.<name> */
	size_t start[MAX_STATE];      /* offset in Options of the number a state starts at; 0: at zero */
	bool needs_norm;              /* P_CLIP = 1 / max(1, length of the gradient) */
	bool needs_count;             /* P_FIX1 and P_FIX2 change with every update */
} Rule;
extern const Rule rules[];
extern const uint32_t rule_count;

void formula_parse(Ctx *cx, const Rule *rule, Formula *f); /* fails on a bad table: a test parses every rule */
/* of a weight whose block has this rate factor */
double rule_start(const Rule *rule, int state, const Options *o, double factor);
void formula_print(const Rule *rule, const Formula *f, Buf *out);
/* Length of a gradient, leaf-tree order over link numbers. It is asked for links first .. first + count - 1: zero
 * where they are frozen. */
typedef void GradientFn(const void *arg, uint64_t first, uint64_t count, double *g);
double rule_length(GradientFn *gradient, const void *arg, uint64_t n);
double rule_norm(const double *g, const uint8_t *frozen, uint64_t n); /* of one in an array; frozen NULL: none is */

/* What one update needs besides the gradient: filled by the trainer from options, schedule and update count. */
typedef struct Update {
	const Rule *rule;
	double param[P_COUNT];
} Update;
/* `update` counts from 1; `epochs` have passed when it begins, and `share` of one passes with it: for schedules. */
void update_fill(const Options *o, uint64_t update, double epochs, double share, Update *u);

/* ---- leaves.c: how a batch is cut and how partial sums join ------------------------------------- */

enum { LEAF_EXAMPLES = 512, MAX_LEAVES = 4096 };
uint32_t leaf_count(uint64_t examples);
void leaf_range(uint64_t examples, uint32_t leaves, uint32_t leaf, uint64_t *first, uint64_t *count);
uint32_t leaf_split(uint32_t n); /* of n > 1 leaves, those of the left subtree */
/* of sums that begin at leaf `first` or later */
uint32_t leaf_joins_from(uint32_t leaf, uint32_t leaves, uint32_t first);
uint32_t leaf_joins(uint32_t leaf, uint32_t leaves); /* joins of the two topmost partial sums due after this leaf */

/* ---- score.c: error and shares of a case -------------------------------------------------------- */

typedef struct Tally {
	double error;
	uint64_t cases, scored, right, within;
} Tally; /* scored: cases with any target */
typedef struct Scorer {
	const ErrorFn *err;
	double threshold;
	uint32_t targets;
	double middle; /* a lone output is right on the target's side of this: 0 if any target is below 0, else 0.5 */
	const double *codes;
	uint32_t code_count;
} Scorer;
void scorer_init(Scorer *s, const Options *o, const Data *d);
void score_case(const Scorer *s, const double *out, const float *target, double weight, Tally *t);
void tally_add(Tally *into, const Tally *t);
/* of leaves first .. end - 1, a subtree, joined as it says */
Tally tally_leaves(const Tally *leaf, uint32_t first, uint32_t end);
/* The code word nearest to `out` (Euclid; the first on ties) over elements whose target is not NaN; target NULL:
 * over all. */
uint32_t code_nearest(const double *codes, uint32_t count, uint32_t width, const double *out, const float *target);
/* fails if a target lies outside what the error function takes */
void score_check(Ctx *cx, const Options *o, const Data *d);

/* ---- train.c: the loop -------------------------------------------------------------------------- */

typedef struct Batch {
	const uint64_t *example; /* NULL: first, first + 1, ... */
	uint64_t first, count;
	uint64_t more; /* so many after these are those of the next batch; 0: not known */
} Batch;

/* Updates that a target may do in one go, of one epoch or of several. It ends early after an epoch that reaches
 * `until`, and after an update whose error is not finite. It does not pass the end of an epoch that leaves weights
 * which are not: then it ends there, or nothing was done, and going update by update shows when that begins. */
typedef struct Updates {
	uint64_t examples, batch; /* of an epoch; of an update, but the last of an epoch has what is left */
	uint64_t done;            /* examples of the first epoch that came before */
	uint64_t count;           /* updates, at most */
	const uint64_t *example;  /* NULL: in their order; else those of all updates, one after the other */
	const Update *update;     /* [count] */
	bool same;                /* there is only one, for all */
	const Until *until;
	const volatile int *stop;
	Tally *tally; /* of each epoch: added to */
} Updates;

/* What a process has of a batch whose other leaves are done elsewhere. */
enum { MOST_SUMS = 2 * 12 }; /* of the largest subtrees of any run of up to MAX_LEAVES leaves */
typedef struct Share {
	float *sum[MOST_SUMS]; /* [floats] of each of these subtrees, in order */
	uint32_t sums;
	uint64_t floats;    /* a multiple of 16 */
	float *total;       /* [floats] where the sum of the whole batch has to go */
	const Tally *tally; /* of each leaf, by number; of those done here */
} Share;

/* A machine that can train: a folder in target/ and this one const struct.  Hooks marked * may be NULL. */
typedef struct Program Program;   /* what a target made of the plan; its own affair */
typedef struct Restarts Restarts; /* many seeds: below */
struct Region;
struct Watch;
typedef struct Target {
	const char *name, *about;
	void (*caps)(Caps *caps);
	Program *(*compile)(Ctx *cx, const Plan *plan, const Options *opt);
	void (*print)(const Program *p, Buf *out);
	/* data to train or test on from now; takes what buffers it needs */
	void (*bind)(Ctx *cx, Program *p, const Data *data);
	/* * The same for data to which one comes back by turns. What was made of the data before this may be kept, and
	 * used again when its turn comes: who calls this says that nothing has changed in either since the last bind.
	 * NULL: bind does. */
	void (*turn)(Ctx *cx, Program *p, const Data *data);
	/* Forward and backward over leaves [first, last) of the batch, joined into the pending sum; *stop ends it early. */
	Status (*accumulate)(Program *p, const Batch *b, uint32_t first, uint32_t last, const volatile int *stop, Tally *t);
	void (*apply)(Program *p, const Update *u); /* pending sum to weights; sum is empty afterwards */
	/* Forward only: tally and, where out is not NULL, outputs [count * outputs] of examples' cases in order. */
	Status (*evaluate)(Program *p, uint64_t first_example, uint64_t count, const volatile int *stop, double *out,
	                   Tally *t);
	/* * Leaves [first, last) alone, learnt or only tested: what other processes need of them goes to out. */
	Status (*share)(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const volatile int *stop,
	                Share *out);
	/* * as sums of leaves join; a multiple of 16 */
	void (*join)(Program *p, float *into, const float *from, uint64_t floats);
	uint64_t (*floats)(const Program *p);              /* * of a sum */
	void (*shared)(Program *p);                        /* * out.total is there: it is the pending sum */
	uint64_t (*updates)(Program *p, const Updates *s); /* * so many were done; 0: not in this way, or not these */
	/* 0 weights, 1.. rule state; canonical order, links first .. first + count - 1, or ALL_LINKS from first on. Who
	 * sets some of them goes on to the last: then they count. A piece costs its share of all, not more. */
	void (*get)(const Program *p, int which, uint64_t first, uint64_t count, double *v);
	void (*set)(Program *p, int which, uint64_t first, uint64_t count, const double *v);
	void (*gradient)(const Program *p, double *v); /* the pending sum, for checks */
	double (*clock)(const Program *p);             /* * seconds that passed so far on a simulated machine's clock */
	/* * Figures of its own about the run so far: members of a JSON object, `"key": value`, with ", " between; or
	 * nothing. */
	void (*report)(const Program *p, Buf *json);
	/* * For guards (guard.h): state that rests between updates; what is to be watched from now on, NULL: nothing,
	 * with no sum pending; a leaf once more, elsewhere, as Watch.made; the data that passes read; the seal of a
	 * piece, as seal_of. */
	uint32_t (*regions)(Program *p, struct Region *r);
	void (*watch)(Program *p, struct Watch *w);
	uint64_t (*again)(Program *p, const Batch *b, uint32_t leaf, uint32_t turn, int *core);
	const Data *(*reads)(const Program *p);
	uint64_t (*seal)(const Program *p, const void *at, uint64_t bytes);
	bool seals;                          /* apply makes Watch.was and Watch.is */
	void (*finish)(Ctx *cx, Program *p); /* * training has ended, well or not: writes what options ask for */
	/* * Many seeds on the bound data at once, each as a run by itself would go. False, and nothing was done: this
	 * network, data or option is not for it. */
	bool (*restarts)(Ctx *cx, Program *p, Restarts *all);
	bool (*finite)(const Program *p); /* * are all weights?  False: they may not be */
	bool breaks;                      /* its machine can have faults (option fault) */
	bool f64;                         /* weights are double: files hold F64 */
} Target;

/* Where a run stands: all that resuming needs besides weights and rule state. */
typedef struct Position {
	uint64_t epoch;       /* finished epochs */
	uint64_t cases, data; /* of the data it trains on: how many, checksum */
	uint64_t done;        /* examples of the current epoch already used */
	uint64_t updates;
	Tally tally; /* of the current epoch so far */
	double best; /* best value of what `best` and patience watch (error; of the test data if given) */
	uint64_t best_epoch;
	double seconds;   /* of training passes, over all resumptions */
	double simulated; /* the same on the clock of a simulated machine, if the target is one */
	Tally last;       /* of the last finished epoch */
	Tally test;       /* last measurement on test data */
} Position;

typedef struct mp_run { /* the public handle */
	Ctx cx;
	const Net *net;
	Options opt;
	const Target *target; /* NULL until the run has started */
	Plan *plan;
	Program *program;
	Position at;
	Scale scale; /* of the data it was trained on, in keep; goes into the weights file, as do the classes */
	const char *const *classes;
	uint32_t class_count;
	int saved_error; /* error function of the weights file, -1: none; what testing measures unless told otherwise */
	bool error_set;  /* told */
	mp_report report;
	volatile int stop;   /* set by mp_run_stop, also from a signal handler */
	struct Later *later; /* NULL: nothing was saved so */
	mp_tick_fn *tick;
	void *tick_user;
	double tick_seconds; /* tick NULL: nobody wants to know */
	struct Guard *guard; /* NULL: nobody looks for silent corruption */
	void (*moment)(void *user, int moment, void *sum, uint64_t bytes);
	void *moment_user;     /* for tests of it: guard.h */
	struct Ranks *job;     /* NULL: there is none */
	struct Ranks *ranks;   /* those that share the work; NULL: this process trains alone */
	mp_point history[512]; /* thinned out as it fills: every stride-th epoch */
	uint32_t points;
	uint64_t stride;
	Buf text; /* what mp_run_get was printed into */
	/* with option keep-best: those of the best epoch, float or, of a target with f64, double; and where that was */
	void *best_weights;
	Position best_at;
	bool diverged;        /* weights that were to be saved are not finite */
	bool training;        /* until its last report: other data cannot be bound */
	bool seed;            /* one of many: its weights are looked at when it ends, as those of the others are */
	char fingerprint[33]; /* of the weights, when training ended */
	mp_restarts restarts; /* count 0: no such call */
} Run;

void run_start(Run *r); /* plan, compile, initial weights: once */
void run_first_weights(Ctx *cx, const Net *net, const Target *target, Program *program, uint64_t seed);
void run_occupy(Run *r); /* sets `training` until the public call ends; fails if it is set */
Status run_train(Run *r, const Data *data, const Data *test, mp_report_fn *fn, void *user);
void run_test(Run *r, const Data *data, mp_result *result, double *outputs);
void run_check_data(Ctx *cx, const Net *net, const Data *d, bool labelled); /* sizes fit, or it fails */
void run_check_training(Run *r, const Data *d);       /* and targets are what the error function takes */
uint64_t run_examples(const Net *net, const Data *d); /* data_examples, but 1 for copies without boundaries, */
void run_example(const Net *net, const Data *d, uint64_t example, uint64_t *first, uint64_t *count); /* and its cases */
const Target *target_find(const char *name); /* api/targets.c: the table; NULL if no such */
const char *target_names(Arena *a);          /* "the targets here are: cpu, ref, gf11" */

/* ---- report.c: what is said about a run --------------------------------------------------------- */

double share_of(uint64_t part, uint64_t whole);          /* 0 of nothing */
void report_fill(Run *r, const Data *data, double rate); /* r->report, from r->at */
void report_note(Run *r);                                /* it becomes a point of the history */

/* ---- finite.c: numbers that are no longer finite ------------------------------------------------ */

bool weights_finite(const double *w, uint64_t n);
bool run_finite(Run *r); /* are all weights? */
uint64_t epochs_between_looks(const Net *net, const Data *d);
/* in this epoch, each of so many updates */
_Noreturn void run_diverged(Run *r, const Data *d, uint64_t epoch, uint64_t updates);

/* ---- restarts.c: many seeds of one network ------------------------------------------------------ */

struct Restarts {
	uint64_t first, count; /* seeds */
	mp_seed *seed;         /* [count] results, by seed; one that has not ended has no fingerprint and has not failed */
	uint64_t next;         /* the next to begin: many threads change this and the four below */
	uint64_t ended, solved, failed, epochs;
	Run *run;
	mp_restarts_fn *fn; /* may be NULL */
	void *user;
	double began, reported;
};

/* Starts the run; results in keep.  Fails if it cannot be. */
void restarts_init(Restarts *all, Run *r, uint64_t count, const Data *data, const Data *test);
bool restarts_take(Restarts *all, uint64_t *number); /* the next seed to begin, from 0; false: none, or it is to stop */
void restarts_end(Restarts *all, uint64_t number, const mp_seed *result);
void restarts_look(Restarts *all);                /* tells fn how far it is, if that is due: on the caller's thread */
void restarts_sum(Restarts *all, uint64_t cases); /* run->restarts, from all results */
void run_restart(Run *r, uint64_t seed);          /* the run as it would begin with this seed */
/* Whether a seed ends here; fills solved, epochs, error, right, within.  The tally is that of its last full epoch. */
bool seed_ends(const Options *o, const Until *u, const Tally *t, uint64_t epoch, uint64_t updates, mp_seed *result);

/* ---- safetensors.c, slots.c, weights.c have tensors.h; what others use of them ------------------ */

void json_put(Buf *b, const char *text);    /* quoted and escaped */
size_t utf8_length(const unsigned char *s); /* of the character at s; 0 if there is none */

/* ---- later.c: checkpoints written while training goes on ---------------------------------------- */

typedef struct Later Later;
/* Takes the run as it stands; a thread writes it. Nothing happens if that still writes the last one, or if weights
 * are not finite: then the run is marked as diverged. */
/* best: NULL, or where the best epoch's weights go */
void later_save(Run *r, const char *path, const char *best, uint32_t keep);
Status later_status(Run *r, bool wait); /* of the last one that was written, if nobody asked before */
const char *later_said(const Run *r);   /* why the last failure was */

/* ---- checkpoint.c: weights and checkpoints, safetensors ----------------------------------------- */

uint64_t best_bytes(const Run *r); /* of r->best_weights */
void best_put(Run *r, uint64_t first, uint64_t count, const double *w);
double best_weight(const Run *r, uint64_t link);
Content checkpoint_image(Run *r, Arena *arena, bool best); /* the bytes of that file */
/* weights, rule state, position, options; best: those of the best epoch, without state */
void checkpoint_save(Run *r, const char *path, bool best);
void checkpoint_load(Run *r, const char *path, bool resume); /* resume: everything; else weights, scale, classes */
void checkpoint_read(Run *r, const Src *src, bool resume);   /* the same from a file already read */
void weights_fingerprint(const double *w, uint64_t n, bool f64, char out[33]);
void run_fingerprint(Run *r, char out[33]); /* of the weights it has */

#endif
