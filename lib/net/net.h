/* SPDX-License-Identifier: MIT */
/* net: a topology file to a Net, and a Net to a Plan, the order of work. */
#ifndef NET_H
#define NET_H

#include "base.h"
#include "units.h"

/* ---- options.c: tables of options (options.def, one per owner), and options by name ------------- */

enum { BATCH_ALL = 0 };
enum { INT_AUTO = -1 }; /* "auto": the number is not given */
enum { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_COSINE };
enum { BPTT_FULL, BPTT_COPY }; /* else errors flow back in blocks of so many steps; one step is a copy */
enum { MAX_TICKS = 1000000 };  /* of a case */
enum { SETTLE_ORDERED, SETTLE_SYNCHRONOUS };

/* Values of all options: those of options.def as fields, then a struct for each table of another owner. */
enum { OPTIONS_OWNED = 256 };
typedef struct Options {
#include "option_fields.inc"
#include "options.def"
	_Alignas(8) unsigned char owned[OPTIONS_OWNED]; /* read by options_of */
} Options;

typedef struct OptionEntry {
	size_t offset; /* of the field in the owner's struct */
	mp_option shown;
} OptionEntry;
typedef struct OptionTable {
	const char *owner;
	size_t size; /* of its struct */
	const OptionEntry *row;
	size_t rows;
} OptionTable;
extern const OptionTable general_options;
extern const OptionTable *const option_tables[]; /* api/targets.c: ends with NULL; general_options is the first */

/* Sets of defaults (defaults.def): statement `defaults` of a topology file. */
enum {
#define SET(ID, ...) DEFAULTS_##ID,
#include "defaults.def"
	DEFAULTS_COUNT,
	DEFAULTS_NEWEST = DEFAULTS_COUNT - 1
};
typedef struct DefaultSet {
	const char *name;
	int hidden, output; /* FN_...: functions of groups that name none */
	int init;           /* INIT_...: of blocks without `weights` */
	const char *help;
} DefaultSet;
extern const DefaultSet default_sets[DEFAULTS_COUNT];

void options_init(Options *o, int defaults);                  /* all to the defaults of a set */
const char *option_default(const char *name, int defaults);   /* as text; NULL: no such option */
void *options_of(const Options *o, const OptionTable *table); /* the owner's struct */
/* NULL if valid, else what is wrong, in scratch; *remedy says what would be right. */
const char *option_set(Ctx *cx, Options *o, const char *name, const char *value, const char **remedy);
/* as text that option_set reads back; NULL: no such option */
const char *option_get(Arena *a, const Options *o, const char *name);
/* A word of another program (words.def): how to say it here, and in *same our option if it is the same, else NULL.
 * NULL: no such word. */
const char *option_hint(const char *word, const char **same);
const char *option_name(const char *name); /* the name of an option or of a word that is the same; NULL: neither */
bool option_is_set(Arena *a, const Options *o, const char *name); /* differs from its newest default */
const mp_option *option_at(size_t i);                             /* over all tables; NULL past the last */
bool option_is_fixed(const char *name);        /* changes the result: not to be set on a resumed run */
void options_check(Ctx *cx, const Options *o); /* fails on contradictory combinations */

/* Option `until`, parsed.  NaN: not given; any criterion that is met ends the run as solved. */
typedef struct Until {
	double error, right, within;
} Until;
bool until_parse(const char *text, Until *u);

/* ---- the network ------------------------------------------------------------------------------- */

/* Unit 0 is the true unit; then the units of the groups in the order of the file. */
typedef uint32_t Unit;
enum { ROLE_INPUT, ROLE_HIDDEN, ROLE_OUTPUT, ROLE_CONTEXT, ROLE_COUNT };
extern const char *const role_names[ROLE_COUNT];

enum { INTEGRATE_NONE, INTEGRATE_INPUT, INTEGRATE_OUTPUT, INTEGRATE_COUNT };
extern const char *const integrate_names[INTEGRATE_COUNT];

/* Noise of values (statement `noise`): amount times a normal deviate, or a number from -1 to 1, is added. Dropout: the
 * value is 0 with this probability, else divided by what is left of 1. */
enum { NOISE_NONE, NOISE_GAUSSIAN, NOISE_UNIFORM, NOISE_DROPOUT, NOISE_KINDS };
extern const char *const noise_names[NOISE_KINDS];
typedef struct Noise {
	int kind;
	float amount;
	double exact; /* of targets in double precision */
} Noise;
enum { NOISE_AT_NET, NOISE_AT_OUTPUT, NOISE_AT_DROPOUT, NOISE_PLACES, NOISE_AT_WEIGHT = NOISE_PLACES };

typedef struct Group {
	const char *name;
	uint32_t size;
	Unit first;
	int fn; /* FN_...; inputs and contexts are FN_LINEAR */
	int role;
	bool open;          /* its size is that of the data; 0: not known yet */
	float start;        /* contexts, and groups of settling networks: value at the start of a sequence; */
	double exact_start; /* of targets in double precision */
	int integrate;      /* INTEGRATE_...: what moves towards its new value by dt at each tick; */
	double dt_factor;   /* on option dt */
	bool before;        /* context that a settling network reads another group's last tick from: settle.c */
	bool start_stated, dt_stated;
	Noise noise[NOISE_PLACES];         /* of net inputs, then of outputs, then dropout */
	double gain;                       /* factor on net inputs */
	int error;                         /* ERR_... of an output group; -1: option error */
	double error_scale;                /* factor on its error */
	double criterion;                  /* its threshold; -1: option threshold */
	double target_radius, zero_radius; /* of its targets: net_near */
	double decay;                      /* of links into it; -1: option decay */
	Loc at;
} Group;

enum { LINK_FULL, LINK_ONE_TO_ONE, LINK_RANDOM, LINK_SINGLE, LINK_KINDS };
extern const char *const link_kinds[LINK_KINDS];
/* Range of initial weights: as stated, or -+r. With n links into the unit that do not come from `true`, and m links of
 * the block from each of its sources: r = 1 / sqrt(n), sqrt(6 / (n + m)), sqrt(6 / n); of links from `true`, under the
 * last two, r = 0. */
enum { INIT_RANGE, INIT_FAN_IN, INIT_GLOROT, INIT_HE, INIT_COUNT };
extern const char *const init_names[INIT_COUNT];
typedef struct Block { /* one `connect` of one source slice to one target slice */
	int kind;
	int32_t from_group, to_group;                        /* from_group -1: the true unit */
	uint32_t from_first, from_count, to_first, to_count; /* inside their groups */
	double density;                                      /* LINK_RANDOM */
	uint64_t seed;                                       /* LINK_RANDOM */
	int init;                                            /* INIT_... */
	float low, high;                                     /* INIT_RANGE */
	float rate;                                          /* factor on the learning rate; */
	double exact_rate;                                   /* of targets in double precision */
	bool frozen;
	bool later;      /* stated: inside one group, links to later units */
	Noise noise;     /* of its weights */
	double decay;    /* -1: that of the group that it leads to */
	double limit[2]; /* of its weights: lowest, highest */
	int64_t tied;    /* the block whose weights it shares; -1: none */
	bool transposed; /* their sources are the targets here */
	uint64_t links;  /* how many this block has */
	Loc at;
} Block;

typedef struct Copy { /* context = source at the case before, in the same sequence */
	int32_t from_group, to_group;
	Loc at;
} Copy;

typedef struct Net {
	const Arena *arena; /* of all that follows: nothing writes to it once the network is made */
	const char *name;   /* of the file */
	Group *group;
	uint32_t groups;
	Block *block;
	uint32_t blocks;
	Copy *copy;
	uint32_t copies;
	bool settles;             /* its file states more than one tick */
	bool timed;               /* it settles, or has copies: a case depends on the one before */
	bool noisy;               /* some group or block has noise, or dropout */
	bool shaped;              /* that, or a setting of shape.c: target gf11 has none of them */
	uint32_t units;           /* with the true unit */
	uint32_t inputs, outputs; /* sizes of all input and all output groups together, in file order */
	/* Links in canonical order: by target unit, then by source unit.  Links of unit u are row[u] .. row[u+1]-1. */
	uint64_t links;
	uint64_t *row; /* [units + 1] */
	/* Sources and blocks of links.  Consecutive units with equal lists share one, and so do those whose list is a
	 * prefix of the next one's: a full block takes as much as one of its targets. */
	Unit *from; /* of link l of unit u: from[l + from_at[u]], the sum modulo 2^64; likewise block_of */
	uint32_t *block_of;
	uint64_t *from_at, *block_at; /* [units] */
	uint64_t *tie;  /* [links] whose weight a link has, its own unless its block is tied; NULL: none is (net_ties) */
	const Src *src; /* what it was read from */
	int defaults;   /* DEFAULTS_...: the set that holds */
	bool defaults_stated;
	bool open;               /* sizes are missing: it has no links, and only net_resolve may use it */
	const double *weights;   /* [links] that runs start from, of a network that another simulator trained; NULL: none */
	Options options;         /* training defaults of the file */
	const char *data, *test; /* paths of `data` and `test`, resolved against the file's folder; NULL if absent */
	mp_data_options data_how, test_how; /* how to read them */
	char fingerprint[33];               /* XXH3-128 of groups, functions, links, copies: weights fit if it is equal */
} Net;

/* Limits, checked before anything is allocated for them. */
#define MAX_UNITS 16777216u
#define MAX_LINKS 1000000000u

/* ---- parse.c, lex.c, connect.c, reading.c (parse.h), link.c ---- */

/* Text to Net: calls net_link and net_check. `defaults`: the set that holds if the file states none. To net_parse a
 * group whose size is that of the data is an error; net_read leaves it open, until net_resolve reads the file again
 * with the inputs and targets of a case. */
Net *net_parse(Ctx *cx, const Src *src, int defaults);
Net *net_read(Ctx *cx, const Src *src, int defaults);
bool net_looks(const Src *src); /* a topology file, or one with errors */
Net *net_resolve(Ctx *cx, const Net *open, uint32_t inputs, uint32_t outputs);
Net *net_reread(Ctx *cx, const Net *net, int defaults); /* with the same sizes */
_Noreturn void net_open_fail(Ctx *cx, const Net *net);  /* says which size is missing */
void net_link(Ctx *cx, Net *net);                       /* blocks to canonical links; finds duplicates */
Unit net_target(const Net *net, uint64_t link);         /* the unit that it leads to */
/* Source and block of link l, which leads to unit u. */
static inline Unit net_source(const Net *net, Unit u, uint64_t l) { return net->from[l + net->from_at[u]]; }

static inline const Block *net_block(const Net *net, Unit u, uint64_t l)
{
	return &net->block[net->block_of[l + net->block_at[u]]];
}

bool net_same_sources(const Net *net, Unit u, Unit v);
int net_error(const Net *net);        /* the error function that fits its outputs best: option error auto */
bool block_is_later(const Block *b);  /* links only to later units of the same group */
uint64_t block_pairs(const Block *b); /* its links; of LINK_RANDOM, the candidates */

/* ---- settle.c ---- */

/* Blocks of a settling network that read the tick before lead from a context, which is made for it; of other networks,
 * reports what only a settling one may have. Before net_link. */
void net_settle(Ctx *cx, Net *net);
_Noreturn void net_too_large(Ctx *cx, const Block *b); /* fails: with this block it has more than MAX_LINKS links */
/* of a group that integrates */
double group_dt(const Group *g, const Options *o);

/* ---- shape.c: noise, and settings of single groups and blocks ---- */

void group_defaults(Group *g); /* of all these */
void block_defaults(Block *b);
void net_shape(Ctx *cx,
               Net *net); /* checks them; decay of groups goes to blocks, ties to their first. Before net_link */
/* Fails if the network has any of them: the target does not. */
void net_refuse_shaped(Ctx *cx, const Net *net, const char *target);
void net_refuse_gain(Ctx *cx, const Net *net, const char *format); /* fails if a group has one: files do not */
/* Weights of both change alike: they may be stored and updated together. */
bool block_alike(const Block *a, const Block *b);
bool group_is_shaped(const Group *g);        /* it has noise, or settings of its own; not decay, which is of blocks */
int group_error(const Group *g, int option); /* error function of an output group */
double group_criterion(const Group *g, double option); /* and its threshold */
/* The target that the error of an output counts from; NaN: it is near enough, and has none. */
double target_near(const Group *g, double out, double target);
bool group_has_radius(const Group *g);
/* Links that share their weight: tie[i] is that which link i gets its weight from, itself if it is not tied. NULL: none
 * is. */
uint64_t *net_ties(Arena *a, const Net *net);
void settings_print_group(const Group *g, Buf *out); /* words of its statement */
void settings_print_block(const Net *net, const Block *b, Buf *out);
const char *group_settings(Arena *a, const Group *g); /* all of them, with noise; "": none */
const char *block_settings(Arena *a, const Net *net, const Block *b);
void noise_print_all(const Net *net, Buf *out); /* statements `noise` and `dropout` */

/* ---- net.c, netprint.c ---- */

void net_check(Ctx *cx, Net *net);        /* cycles, unreachable groups, roles; sets the fingerprint */
void net_print(const Net *net, Buf *out); /* the text of --stage net */
/* Groups, links and options as a topology file that parses to the same network; NULL: it would be too long. */
enum { TEXT_STATEMENTS = 10000 };
const char *net_statements(Arena *a, const Net *net);
/* Weights are copied by chunks: all at once, in double precision, they would be the largest array of a run. */
enum { CHUNK_LINKS = 1 << 15 };
#define ALL_LINKS UINT64_MAX
/* Links there are of `count` from `first` on. */
uint64_t net_chunk(const Net *net, uint64_t first, uint64_t count);
/* initial weights, float values, canonical order */
void net_weights(const Net *net, uint64_t seed, uint64_t first, uint64_t count, double *w);
/* Initial weights of link l into unit u are (float)(low + width * random_unit(seed, STREAM_WEIGHTS, l)). */
void net_weight_range(const Net *net, Unit u, uint64_t l, double *low, double *width);
/* Fails if there is none; option: named in the message, or NULL. */
const Group *net_group_named(Ctx *cx, const Net *net, const char *option, Text name);
Group *net_group(const Net *net, Unit u); /* of unit u; NULL for the true unit */
/* A text of another program as a name of the topology language: other characters become _ . */
const char *name_made(Arena *a, Text text);
void net_unit_name(const Net *net, Unit u, char *buf, size_t size); /* hidden[3], true */
/* Longest path to every unit, 0 for true, inputs and contexts; a softmax group is one node.  `order` takes the computed
 * nodes (their first units), sources before targets; returns how many.  Cycles are recorded as errors. */
uint32_t net_levels(Ctx *cx, const Net *net, uint32_t *level, Unit *order);
void text_print(const char *text, Buf *out);                             /* in quotes, with escapes */
void reading_print(const mp_data_options *how, Buf *out);                /* reading.c: as `data` takes it */
void block_print_end(const Net *net, const Block *b, bool to, Buf *out); /* a[0:29], b[3], true */
/* the same in a statement, where the last tick of a group is the group */
void block_state_end(const Net *net, const Block *b, bool to, Buf *out);
void exact_print(Buf *b, double v, bool is_float);         /* shortest text that reads back as the same number */
uint64_t link_between(const Net *net, Unit from, Unit to); /* link.c; net->links: there is none */

/* ---- plan.c: the order of work, independent of the target ----------------------------------------------- */

typedef struct Caps { /* properties of a target that plans and the training loop depend on */
	const char *target;
	uint32_t lanes;  /* cases in flight */
	uint32_t bundle; /* maximum weights of a bundle; 0: no limit */
	uint64_t bulk;   /* examples of one call of run_updates, if they are shuffled; 0: as the loop likes */
} Caps;

typedef struct Span { /* consecutive units of one group */
	Unit first;
	uint32_t count;
	const Group *group;
} Span;
typedef struct Bundle { /* incoming links of some units of one level */
	Span units;
	uint64_t link, links;
} Bundle;
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

#endif
