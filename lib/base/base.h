/* SPDX-License-Identifier: MIT */
/* base: memory, errors, files, text, numbers, threads.
 *
 * Errors: input errors go through fail() or fail_at(), which record a message and unwind to the setjmp of the public
 * call (api_call in api/api.c) or of a sub-context (context.c).  Code that runs a network returns a Status instead.
 * Memory: every handle has a Ctx with two arenas; `keep` lives as long as the handle, `scratch` until the public call
 * returns.  Allocation never returns NULL: it unwinds. */
#ifndef BASE_H
#define BASE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "microprop.h"
#include "microprop/text.h"
#include "util.h"

typedef mp_status Status;
typedef volatile _Atomic int StopFlag; /* not 0: stop; set by any thread or signal handler */
typedef struct Alloc {                 /* as mp_allocator */
	void *(*resize)(void *user, void *old, size_t old_size, size_t new_size);
	void *user;
} Alloc;
typedef struct Ctx Ctx;

#if defined __GNUC__
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif

/* ---- memory.c: the only file that calls malloc -------------------------------------------------- */

typedef struct Chunk Chunk;
typedef struct Cleanup Cleanup;
typedef struct Arena {
	Ctx *cx;          /* fails when memory runs out */
	Chunk *chunk;     /* small blocks are cut from the first of these */
	Chunk *big;       /* blocks with a chunk of their own: can grow in place */
	Cleanup *cleanup; /* functions to call before the memory is freed: unmap, close */
} Arena;

/* Blocks are aligned: 64 bytes and more to 64, smaller ones to 16.  Count and size of an old block are those of its
 * last allocation. */
void *arena_alloc(Arena *a, size_t count, size_t size);     /* zeroed; unwinds on failure or overflow */
void *arena_alloc_raw(Arena *a, size_t count, size_t size); /* not zeroed: pages go to the node of the first writer */
void *arena_grow(Arena *a, void *old, size_t old_count, size_t new_count, size_t size); /* realloc; the rest zeroed */
void *arena_grow_raw(Arena *a, void *old, size_t old_count, size_t new_count, size_t size); /* not zeroed */
/* Capacity for one element more than count: doubles *cap, 16 at first. */
void *arena_reserve(Arena *a, void *old, uint64_t count, uint64_t *cap, size_t size);
void *arena_trim(Arena *a, void *old, size_t old_count, size_t new_count, size_t size); /* shrinks a big block */
void *arena_move(Arena *from, Arena *to, void *block, size_t count, size_t size);       /* small ones are copied */
void arena_drop(Arena *a, void *block, size_t count, size_t size);                      /* frees a big block now */
char *arena_copy(Arena *a, const char *text, size_t len);                               /* a NUL-terminated copy */
void arena_defer(Arena *a, void (*fn)(void *), void *arg); /* fn(arg) when the arena is freed, last first */
void arena_free(Arena *a);
typedef void ArenaFn(void *arg, void *at, size_t bytes);
void arena_walk(const Arena *a, ArenaFn *fn, void *arg); /* all memory that was handed out, chunk by chunk */
#define NEW(arena, n, type) ((type *)arena_alloc(arena, n, sizeof(type)))

/* Text that grows: `s` is NUL-terminated once something was added. */
typedef struct Buf {
	Arena *arena;
	char *s;
	size_t len, cap;
} Buf;
void buf_add(Buf *b, const void *bytes, size_t len);
void buf_puts(Buf *b, const char *s);
void buf_printf(Buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(Buf *b, const char *fmt, va_list ap);

/* ---- error.c: messages with a place and a remedy ------------------------------------------------ */

/* A file that was read. */
typedef struct Src {
	const char *name; /* as the user wrote it */
	const char *text; /* a NUL follows if it came from src_open */
	size_t len;
	bool binary; /* locations are byte offsets; no line is shown */
	bool mapped; /* text is the mapped file */
} Src;

/* A byte in a file.  Line and column are computed only when a message is printed. */
typedef struct Loc {
	const Src *src;
	size_t off;
} Loc;

/* One message; `at`: where it begins in the text of all. */
typedef struct Diagnostic {
	mp_error shown;
	size_t at;
} Diagnostic;

struct Ctx {
	Alloc alloc;
	Arena keep, scratch;
	Arena fixed;         /* as keep, for tables that nothing writes to once they are made: a guard verifies them */
	Arena said;          /* messages of the handle's last call: records, and as one text */
	Diagnostic *message; /* [message_count] */
	size_t message_count, message_cap;
	Buf messages;
	int errors;    /* how many of them are errors */
	Status status; /* of the last failure */
	jmp_buf *edge; /* where failing unwinds to */
	bool starved;  /* out of memory: the only message is `last`, in last_words and last_text */
	mp_error last;
	char last_text[120], last_words[160];
	/* for tests: counts down at every open, read, write, fsync, rename and close of file.c made through this
	 * context; the call that brings it to 0 fails. 0: none does */
	int io_fail_at;
};

/* Every message says what is wrong (fmt) and what would be right (remedy, may be NULL).  error_at records and returns,
 * so that several errors are reported in one go, MAX_ERRORS at most; check_errors unwinds if there were any. */
enum { MAX_ERRORS = 20 };
void error_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
void note_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5); /* not an error */
_Noreturn void fail_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
_Noreturn void fail(Ctx *cx, Status status, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
void note(Ctx *cx, const char *remedy, const char *fmt, ...) PRINTF_LIKE(3, 4);
void check_errors(Ctx *cx);
_Noreturn void fail_recorded(Ctx *cx, Status status); /* its message is recorded already */
const char *ctx_messages(const Ctx *cx);              /* all of them as one text; "" if none */
const mp_error *ctx_error(const Ctx *cx, size_t i);   /* the i-th; NULL past the last */
void messages_drop(Ctx *cx, size_t from);             /* discards those from the one with index `from` on */
void messages_move(Ctx *to, Ctx *from);               /* appends them to those of `to` */
/* The nearest of `count` names to a misspelt one, or NULL if none is near: for "did you mean". */
const char *nearest_name(const char *word, const char *const *names, size_t count);

/* ---- context.c: contexts, and calls whose failure is caught ------------------------------------- */

void ctx_init(Ctx *cx, const Alloc *alloc); /* memory.c */
void ctx_free(Ctx *cx);

/* fn under a setjmp of its own: if it fails, its messages and memory stay, and the caller goes on. */
Status caught(Ctx *cx, void (*fn)(void *arg), void *arg);

/* A sub-context has its own memory and setjmp: a machine that is freed before the run ends, a thread. */
typedef void CtxFn(Ctx *own, void *arg);
Status subcontext_run(Ctx *own, CtxFn *fn, void *arg);            /* fn in a sub-context; frees its scratch */
void subcontext_messages(Ctx *cx, Ctx *own);                      /* moves its messages to cx */
_Noreturn void subcontext_fail(Ctx *cx, Ctx *own, Status status); /* fails cx as own failed, and frees own */
void with_subcontext(Ctx *cx, CtxFn *fn, void *arg); /* fn in a sub-context of cx that ends with the call */

/* ---- file.c: reading, and writing that survives a crash ----------------------------------------- */

/* Maps (regular files) or reads (pipes, "-" for standard input) a file; unmapped with the arena. */
Src *src_open(Ctx *cx, Arena *arena, const char *path); /* text, 64 MB at most */
/* Data, of any size; `binary` tells by its first bytes, 4,096 or more, whether it is text. Of a pipe or a device no
 * text is read past a control byte. */
typedef bool SrcBinary(const Src *head);
Src *src_open_data(Ctx *cx, Arena *arena, const char *path, SrcBinary *binary);
bool src_any(const Src *head);                    /* any bytes are accepted */
void pages_release(const void *from, size_t len); /* whole pages of a mapped file: read again on the next access */
/* A reader has come to `off`: releases pages before it, some at a time.  *released counts from 0. */
void src_release(const Src *s, size_t *released, size_t off);

/* Writes to PATH.tmp-PID-N, then fsync, rename over PATH, fsync of the directory.  Nothing appears under PATH unless
 * file_commit succeeds; every call after a failed one does nothing and file_commit reports the first failure. */
typedef struct OutFile OutFile;
OutFile *file_create(Ctx *cx, Arena *arena, const char *path); /* removed with the arena if never committed */
void file_write(OutFile *f, const void *bytes, size_t len);
void file_commit(Ctx *cx, OutFile *f); /* unwinds with MP_FAILED and the system's reason */
/* Before the first byte: read back and compare before the rename; keep - 1 older files as PATH.1, PATH.2, ... */
void file_verify(OutFile *f, uint32_t keep);
/* The whole content of a file, verified so. */
typedef struct Content {
	char *at;
	size_t len;
} Content;
void file_save(Ctx *cx, const char *path, Content whole, uint32_t keep);
double clock_seconds(void);  /* monotonic: for differences */
uint64_t memory_total(void); /* bytes of RAM; MICROPROP_MEMORY overrides, for tests */

/* ---- text.c: control bytes ---------------------------------------------------------------------- */

typedef struct Text {
	const char *s;
	uint32_t len;
} Text;

bool text_is(Text t, const char *word);
/* Every reader of a text file calls it first: fails at a control byte other than tab and line ends. */
void src_check_text(Ctx *cx, const Src *src);
/* The text begins so, after blanks and, if comment is not 0, comments that run to the end of a line. */
bool src_begins(const Src *src, const char *text, char comment);
size_t src_text_start(const Src *src);                         /* after a UTF-8 byte order mark */
void name_check(Ctx *cx, Loc at, const char *what, Text name); /* the same for a name in a binary file */
const char *control_find(const char *s, size_t len);           /* the first control byte; NULL: none */

/* ---- cursor.c: words and numbers of a text whose line breaks mean little -------------------------- */

typedef struct Cursor {
	Ctx *cx;
	const Src *src; /* ends before a Ctrl-Z; in cx->keep */
	size_t at;
	char comment;       /* from it to the end of the line is blank; 0: none */
	bool comment_lines; /* only in the first column */
} Cursor;
Cursor cursor_open(Ctx *cx, const Src *src, char comment); /* fails at control bytes */
Loc cursor_loc(const Cursor *c);
char cursor_peek(Cursor *c);         /* the next byte that is not blank; 0 at the end */
char cursor_peek_line(Cursor *c);    /* the same in this line: \n at its end */
bool cursor_take(Cursor *c, char b); /* the next byte, if it is b */
Text cursor_word(Cursor *c);         /* up to the next blank; empty at the end */
Text cursor_line(Cursor *c);         /* the rest of the line, without blanks at its ends */
/* A finite decimal number, a whole one; false: there is none, and the cursor stands before it. */
bool cursor_number(Cursor *c, double *v);
bool cursor_whole(Cursor *c, uint64_t *v);
uint64_t cursor_need_whole(Cursor *c, const char *what, uint64_t low, uint64_t high); /* or fails */
double cursor_need_number(Cursor *c, const char *what);
uint64_t cursor_numbers_left(const Cursor *c); /* as many may follow at most */
_Noreturn void cursor_expected(Cursor *c, const char *what, const char *remedy);

/* ---- escape.c: text from outside, in what is written for people ------------------------------------ */

enum { TEXT_SHOWN = MP_TEXT_SHOWN, TEXT_LINES = MP_TEXT_LINES, TEXT_JSON = MP_TEXT_JSON };
enum { MAX_SHOWN = 1024, CUT_SHOWN = 128 }; /* a longer text is cut to so many bytes */
void text_write(const char *s, size_t len, int form, mp_write_fn *write, void *user);
void buf_text(Buf *b, const char *text, size_t len, int form);
const char *text_escaped(Arena *a, const char *text);     /* TEXT_SHOWN */
const char *message_escaped(Arena *a, const char *text);  /* every word TEXT_SHOWN */
const char *text_shown(Ctx *cx, Text t);                  /* a word in a message: 40 bytes of it at most; in scratch */
size_t utf8_read(const char *s, size_t len, uint32_t *c); /* length of the character at s; 0: not UTF-8 */
bool char_is_hidden(uint32_t c);                          /* a terminal or a viewer interprets it */

/* ---- number.c, dict.c, hash.c ----------------------------------------------------------- */

/* A decimal number, nan or inf as float32, correctly rounded; returns where it ends, NULL if there is none. */
const char *number_read(const char *p, const char *end, float *v);
/* The same number in double precision; number_read has found it to end at `end`, finite. */
double number_double(const char *p, const char *end);
void number_put(Buf *b, float v); /* the fewest digits that read back as the same float */

/* Texts numbered in order of first appearance; set `arena`, the rest starts at zero. */
typedef struct Dict {
	Arena *arena;
	Text *text;
	uint32_t *slot, slots, count;
} Dict;
uint32_t dict_add(Dict *d, Text t);
bool dict_find(const Dict *d, Text t, uint32_t *number);

struct XXH3_state_s;
void hash_hex(const struct XXH3_state_s *hash, char out[33]); /* XXH3-128 so far, in hexadecimal */
/* Adds n weights, as float or, f64, as double. */
void hash_weights(struct XXH3_state_s *hash, const double *w, uint64_t n, bool f64);
void weights_fingerprint(const double *w, uint64_t n, bool f64, char out[33]);
void floats_fingerprint(const float *w, uint64_t n, char out[33]); /* the same of weights that are floats */

/* ---- json.c: JSON out --------------------------------------------------------------------------- */

void json_put(Buf *b, const char *text); /* a string, quoted and escaped */
/* A name as UTF-8: other bytes are written \xE9, and a backslash is doubled.  And back; NULL if that is invalid. */
const char *name_escape(Arena *arena, const char *name);
char *name_read(Arena *arena, const char *text);

/* Members of an object (key) or elements of an array (key NULL), with the commas between them. */
typedef struct JsonWriter {
	Buf *out;
	bool comma; /* before the next one */
} JsonWriter;
void jw_start(JsonWriter *j, const char *key, char bracket);
void jw_end(JsonWriter *j, char bracket);
void jw_text(JsonWriter *j, const char *key, const char *text); /* NULL: null */
void jw_count(JsonWriter *j, const char *key, uint64_t n);
void jw_real(JsonWriter *j, const char *key, const char *format, double v); /* format NULL: %.6g; not finite: null */
void jw_flag(JsonWriter *j, const char *key, bool flag);

/* ---- arith.c: elementary functions, the same bits on every CPU (libm picks other code where there is FMA) ---- */

double arith_exp(double x);
double arith_log(double x);
void arith_logs(const double *x, size_t n, double *y); /* many, with the same bits; y may be x */
double arith_tanh(double x);
double arith_cospi(double x); /* cos(pi x) */

/* ---- random.c: counter-based: any number of a stream without those before it -------------------- */

/* Philox 4x32-10.  The same (seed, stream, index) gives the same number in every version. */
enum {
	STREAM_WEIGHTS = 1,
	STREAM_SHUFFLE,
	STREAM_DENSITY,
	STREAM_SPLIT,
	STREAM_DATA,
	STREAM_LESION = 16,
	STREAM_NOISE = 32
};
uint64_t random_u64(uint64_t seed, uint32_t stream, uint64_t index);
double random_unit(uint64_t seed, uint32_t stream, uint64_t index); /* [0, 1), 24 bits: exact in float */
void random_units(uint64_t seed, uint32_t stream, uint64_t index, uint64_t count,
                  double *out); /* those from index on */
/* 0 .. n-1, n < 2^32; bias below n / 2^32 */
uint64_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n);
/* The key of numbers that depend on more than that, and the four words that it has for a counter. */
uint64_t random_key(uint64_t seed, uint32_t stream, uint32_t sub, uint64_t index);
void random_draws(uint64_t key, const uint32_t counter[4], uint32_t word[4]);

/* Order of examples in an epoch: blocks of 4,096 permuted, then each block inside. */
enum { SHUFFLE_BLOCK = 4096 };
typedef struct Order {
	uint64_t examples;
	uint64_t seed;
	bool shuffled;
	bool guarded;          /* what follows is hashed when it is made, and verified before it is made anew */
	uint32_t *blocks;      /* order of the blocks in this epoch */
	uint64_t *picked;      /* [capacity] the next examples, in order; NULL: none are picked ahead */
	uint64_t capacity;     /* up to here constant */
	uint64_t epoch;        /* of `blocks` */
	uint64_t short_at;     /* position of the last, shorter block in it */
	uint64_t block;        /* position in `blocks` that `inside` belongs to */
	uint64_t first, count; /* position of picked[0] in the epoch; how many */
	uint64_t hash, picked_hash;
	bool damaged; /* a hash did not match */
	uint16_t inside[SHUFFLE_BLOCK];
} Order;
Order *order_new(Arena *a, uint64_t examples, uint64_t seed, bool shuffled);
void order_epoch(Order *o, uint64_t epoch);                                 /* no allocation */
uint64_t order_at(Order *o, uint64_t position);                             /* the example at this position */
void order_copy(Order *o, uint64_t position, uint64_t count, uint64_t *to); /* those from there on */
void order_ahead(Order *o, Arena *a, uint64_t capacity);                    /* up to so many are picked ahead */
/* `count` examples from this position of the epoch on, picked ahead. */
const uint64_t *order_pick(Order *o, uint64_t position, uint64_t count);
void order_forget(Order *o); /* all is made anew */
bool order_intact(Order *o); /* if guarded: nothing has changed since it was made */
/* First example of the block at this position; its size in *count, 0 past the last. */
uint64_t order_block(const Order *o, uint64_t place, uint64_t *count);

/* ---- load.c: libraries loaded at run time ------------------------------------------------------ */

#ifdef MP_STATIC
enum { LOADS_LIBRARIES = 0 }; /* this program is linked statically */
#else
enum { LOADS_LIBRARIES = 1 };
#endif
void *library_open(const char *path, bool global,
                   const char **why);                  /* NULL: why not; global: its symbols are seen by others */
void *library_symbol(void *library, const char *name); /* NULL: it has none */
void library_close(void *library);

/* ---- launcher.c: the job that a launcher's environment describes -------------------------------- */

typedef struct LaunchedJob {
	const char *module, *variable; /* of which MPI it is; the variable that says so */
	uint32_t size, rank;
	uint32_t local; /* ranks on this host; 0: unknown */
	int contact;    /* descriptor to the launcher; -1: none */
} LaunchedJob;

bool launcher_job(LaunchedJob *job); /* false: there is none, or it has one process; then rank is 0 */
uint32_t launcher_local_ranks(void); /* ranks on this host, 1 or more */

/* ---- pool.c: a thread pool ---------------------------------------------------------------------- */

typedef struct Pool Pool;
typedef void PoolFn(void *arg, uint32_t thread);
Pool *pool_new(Ctx *cx, uint32_t threads); /* joined when cx->keep is freed; fewer threads if some cannot start */
int thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg); /* as pthread_create, with a stack of 1 MiB */
uint32_t pool_cores(void);                                                /* cores this process may use */
uint32_t pool_threads(const Pool *p);
void pool_run(Pool *p, PoolFn *fn, void *arg); /* fn(arg, i) for all i, on this thread and the others */
void pool_barrier(Pool *p);                    /* inside fn: waits for all threads */

/* ---- args.c: operands and options of a tool's command ------------------------------------------- */

/* The value of an option goes to offset `at`: a bool, a const char *, or a uint64_t from 1 to max. */
enum { ARG_FLAG, ARG_TEXT, ARG_COUNT };
typedef struct CommandOption {
	const char *name;
	int kind;
	size_t at;
	uint64_t max;
} CommandOption;
typedef struct CommandArgs {
	const char *of; /* the command, for messages */
	const CommandOption *row;
	size_t rows;
	uint32_t operands; /* at most */
	size_t operand_at; /* offset of an array of as many const char * */
} CommandArgs;
void tool_args_read(Ctx *cx, const CommandArgs *w, int argc, const char *const *argv, void *into);

/* ---- params.c: files of named numbers with unit and provenance: machines, clusters (doc/machine.md) ---- */

enum { FROM_REPORT, FROM_PUBLISHED, FROM_MEASURED, FROM_ASSUMED };
typedef struct Provenance {
	uint8_t kind;
	const char *text; /* "seed §2", "assumed (calibrated)" */
} Provenance;

/* A parameter: an int64_t, or a double if real, at this offset of the struct. */
typedef struct Param {
	const char *name, *unit, *about;
	size_t offset;
	bool real;
	double low, high;
	bool optional; /* 0 and assumed where a file does not give it: older files have no such line */
} Param;
typedef struct ParamFile { /* built into the program */
	const char *name;
	const unsigned char *text;
} ParamFile;

typedef struct ParamKind {
	const char *what;  /* "machine": what a file describes, and its suffix */
	const char *whole; /* the built-in one that others build on */
	const Param *row;
	size_t rows;
	const ParamFile *file;
	size_t files;
} ParamKind;

typedef struct Params {
	Ctx *cx;
	const ParamKind *kind;
	void *into;
	Provenance *from; /* [rows], in keep */
	Loc *at;          /* [rows] the line that gave the value */
} Params;

const Src *params_find(Ctx *cx, const ParamKind *kind, const char *name); /* a path, or one built in; or fails */
Params params_read(Ctx *cx, const ParamKind *kind, const Src *src,
                   void *into); /* every parameter has a value, or fails */
Loc param_at(const Params *p, const char *name);
const char *params_name(Ctx *cx, const Src *src); /* machines/gf11.machine is called gf11 */
/* As a file again; from NULL: all assumed. */
void params_print(const ParamKind *kind, const char *name, const Provenance *from, const void *values, Buf *out);

/* ---- ranges.c: lists of numbers on the command line --------------------------------------------- */

/* The numbers that `word` stands for: a, a..b, a..b:STEP, a..b:xFACTOR, several with commas between; in scratch.  `row`
 * gives kind and limits. */
uint32_t range_read(Ctx *cx, const char *option, const char *word, const Param *row, double **value);

#endif
