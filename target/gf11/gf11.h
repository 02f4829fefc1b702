/* SPDX-License-Identifier: MIT */
/* target/gf11: the machine of the report's section 2, and the generator of its microcode.
 *
 *   C routine --record--> Block --schedule--> Routine (microwords) --check--> --load--> Controller --call--> Processors
 *                \--simulate (mode switch)--> the same values at once
 *
 * Types stand in the order of this flow, prototypes under the name of the file that holds them. */
#ifndef GF11_H
#define GF11_H

#include "target.h"
#include "base.h"

/* ---- options.c: the target's own options --------------------------------------------------------- */

typedef struct Gf11Options {
#include "option_fields.inc"
#include "options.def"
} Gf11Options;
extern const OptionTable gf11_options;
static inline Gf11Options *gf11_own(const Options *o) { return options_of(o, &gf11_options); }

/* ---- machine.c: parameters, from a machine file ------------------------------------------------- */

typedef struct Machine {
	const char *name;
	const Provenance *from; /* [machine_row_count]; NULL for a machine made by hand */
#define MACHINE_INT(field, ...)  int64_t field;
#define MACHINE_REAL(field, ...) double field;
#include "machine.def"
} Machine;

typedef Param MachineRow;
extern const MachineRow machine_rows[];
extern const size_t machine_row_count;

/* The machine file called `name`: a path, or one of those built in ("gf11", "gf11-356", "gf11-ring",
 * "gf11-banks16"). */
Machine *machine_open(Ctx *cx, const char *name);
Machine *machine_parse(Ctx *cx, const Src *src);
void machine_print(const Machine *m, Buf *out);
uint32_t machine_disks(const Machine *m); /* on ports that the processors leave; a ring has none */

/* ---- ops.c: operations -------------------------------------------------------------------------- */

typedef union Cell {
	float f;
	int32_t i;
	uint32_t u;
} Cell;

enum { UNIT_ALU, UNIT_PORT, UNIT_DRAM, UNIT_SWITCH, UNITS };
extern const char *const unit_names[UNITS];

/* Forms: which fields of Micro an operation uses, and what it occupies, counted from its issue cycle t.
 *
 *   RR      dst <- a, b            ALU at t
 *   R       dst <- a               ALU at t
 *   CMP     cc <- a, b             ALU at t
 *   SELECT  dst <- cc, a, b        ALU at t
 *   MASKED  dst <- cc, a ALU at t; dst keeps its word where cc is 0, so the old one is read too, at t + latency
 *   IMM     dst <- k               ALU at t
 *   LOAD    dst <- sram[mem]       port at t, SRAM at t
 *   STORE   sram[mem] <- a         port at t, SRAM at t
 *   LOOKUP  dst <- sram[mem + a]   port at t (address out) and t + 1 (word in), SRAM at t
 *   PUT     sram[mem + b] <- a     port at t (address out) and t + 1 (word out), SRAM at t + 1
 *   FETCH   sram[mem] <- dram[far] DRAM at t, its bank for dram_busy, SRAM at t + latency - 1
 *   FLUSH   dram[far] <- sram[mem] DRAM at t, its bank for dram_busy, SRAM at t
 *   XFER    dst <- a through configuration k    switch at t, port at t (out) and t + latency - 1 (in)
 *
 * ALU results all take the same time, so one result a cycle reaches the register file by itself. Operands are read
 * in cycle t; a result is there for reads in cycles >= t + latency, the old word for reads before: pipelines are
 * exposed. Memory likewise: a word read by an operation issued at t is the one there at t (FETCH reads DRAM at t).
 * The condition that CMP sets stands in dst of a Rec and in cc of a Micro. LOOKUP and PUT address the 32-bit sum
 * modulo the words of SRAM. XFER gives 0 to a processor to which nothing is sent. Arithmetic that gives a NaN gives
 * 0x7fc00000 (cell.h). */
enum {
	FORM_RR,
	FORM_R,
	FORM_CMP,
	FORM_SELECT,
	FORM_MASKED,
	FORM_IMM,
	FORM_LOAD,
	FORM_STORE,
	FORM_LOOKUP,
	FORM_PUT,
	FORM_FETCH,
	FORM_FLUSH,
	FORM_XFER,
	FORMS
};

enum {
#define OP(NAME, ...) GOP_##NAME,
#include "ops.def"
	GOPS,
	GOP_NONE = 255
};

enum { USES_DST = 1, USES_A = 2, USES_B = 4, READS_CC = 8, WRITES_CC = 16, USES_MEM = 32, USES_FAR = 64, USES_K = 128 };
enum { AT_START = 1, AT_NEXT = 2, AT_LAST = 4 }; /* cycles t, t + 1, t + latency - 1 */
typedef struct Touch {
	bool is, write, dram, indexed;
} Touch; /* a word of memory; indexed: anywhere under its base */
/* when it takes the port and SRAM */
typedef struct FormInfo {
	unsigned uses;
	uint8_t port, sram;
	Touch touch[2];
} FormInfo;
extern const FormInfo forms[FORMS];

typedef struct OpInfo {
	const char *name, *about;
	uint8_t unit, form;
	size_t latency; /* offset of the parameter in Machine */
} OpInfo;
extern const OpInfo ops[GOPS];

int64_t op_latency(const Machine *m, int op);
int op_find(const char *name, size_t len); /* -1: no such */
/* The meaning of an ALU operation for one processor: what the table says, literally. */
Cell op_value(int op, Cell a, Cell b, bool cc, Cell k);
/* The same for a row of processors; operands that it does not use may be anything. */
void op_values(int op, const uint32_t *a, const uint32_t *b, const uint32_t *cc, Cell k, uint32_t count, uint32_t *out);

/* An address that the controller relocates: base register and offset. Bases are multiples of dram_banks, so that
 * the bank of a DRAM address is known when the code is made; base 0 is always 0. */
typedef struct Addr {
	uint16_t base;
	uint32_t off;
} Addr;

/* ---- record.c: routines are C functions that call these ----------------------------------------- */

typedef uint32_t Reg;  /* a virtual register */
typedef uint32_t Cond; /* a virtual condition code */

typedef struct Rec { /* one operation as recorded */
	uint8_t op;
	uint32_t dst, a, b; /* virtual registers; CMP: dst is a condition */
	Cond cc;            /* READS_CC */
	Addr mem, far;
	Cell k; /* constant, or number of the switch configuration */
} Rec;

typedef struct Code {
	const char *name;
	Rec *rec;
	uint32_t recs;
	uint32_t regs, conds; /* virtual ones */
	bool splittable;      /* may become several routines: no register lives across .split */
	uint32_t *split;
	uint32_t splits;    /* places where it may be cut */
	bool bases_overlap; /* false: the caller promises that regions under different bases do not meet */
	bool update;        /* the seed's metric counts transfers */
	bool timed;         /* recorded about as it will run: that order is tried first */
	uint32_t *reach;    /* [relocations] of g_reach, 0: nothing was said; NULL: of no base */
} Code;

typedef struct Processors Processors;
typedef struct Gen Gen; /* a recorder, or a simulator: the mode switch */
Gen *gen_record(Ctx *cx, const Machine *m, const char *name);
/* executes at once on all processors; base [relocations] */
Gen *gen_simulate(Ctx *cx, Processors *p, const uint32_t *base);
const Machine *gen_machine(const Gen *g);
Code *gen_end(Gen *g); /* what was recorded; NULL for a simulator */
void code_print(const Code *c, Buf *out);

Reg g_fadd(Gen *g, Reg a, Reg b);
Reg g_fsub(Gen *g, Reg a, Reg b);
Reg g_fmul(Gen *g, Reg a, Reg b);
Reg g_op(Gen *g, int op, Reg a, Reg b);       /* any of form RR; form R ignores b */
Cond g_compare(Gen *g, int op, Reg a, Reg b); /* form CMP */
Reg g_select(Gen *g, Cond c, Reg a, Reg b);
void g_move_masked(Gen *g, Reg dst, Cond c, Reg a); /* changes dst */
Reg g_const(Gen *g, float value);
Reg g_const_bits(Gen *g, uint32_t bits);
Reg g_load(Gen *g, Addr mem);
void g_store(Gen *g, Addr mem, Reg a);
Reg g_lookup(Gen *g, Addr mem, Reg index); /* index: integer, of each processor's own */
void g_put(Gen *g, Addr mem, Reg index, Reg a);
/* Says that lookups and puts under this base stay in its first words. Otherwise they may lead anywhere, and no word
 * of the code can be spilled. */
void g_reach(Gen *g, uint16_t base, uint32_t words);
void g_fetch(Gen *g, Addr mem, Addr far); /* DRAM to SRAM */
void g_flush(Gen *g, Addr far, Addr mem); /* SRAM to DRAM */
Reg g_xfer(Gen *g, uint32_t configuration, Reg a);
void g_split(Gen *g); /* here the block may be cut: no register is used across */

/* ---- schedule.c, depend.c, allocate.c, bound.c, exact.c ----------------------------------------- */

typedef struct Micro { /* one column of a microword, physical registers */
	uint8_t op;        /* GOP_NONE: nothing issued */
	uint8_t cc;
	uint16_t dst, a, b;
	Addr mem, far;
	Cell k;
	uint32_t rec; /* number of the recorded operation: for reading, not for running */
} Micro;
typedef struct Line {
	Micro slot[UNITS];
} Line; /* one cycle */

typedef struct Report {
	uint32_t operations, arithmetic, transfers; /* recorded; adds and multiplies among them; switch transfers */
	uint32_t cycles;                            /* length of the routine, until the last result is there */
	uint32_t bound, bound_resource, bound_path, bound_hrt; /* best lower bound and the three it is the largest of */
	double seed_metric; /* share of cycles that issue an add or multiply; updates: 4 x transfers / cycles */
	uint32_t registers, spills;
	bool optimal; /* proven: length equals the bound, or the search was complete */
	bool checked;
	double seconds; /* of scheduling */
} Report;

typedef struct Routine {
	const char *name;
	Line *line;
	uint32_t lines;
	Report report;
	const Code *code; /* what it was made of, for names */
	bool update;      /* the seed's metric counts transfers */
} Routine;

/* Level 0: list scheduling; 1 and more: search while the bound is not met, each level eight times as long.
 * `seconds` (0: no limit) is turned into a number of placements, so that the result does not depend on the
 * computer. */
typedef struct ScheduleOptions {
	int level;
	double seconds;
} ScheduleOptions;
/* Words that find no register are spilled to SRAM from its last word downwards, under base 0, past words that the
 * code itself uses under base 0 (report.spills counts moves of words): microwords whose `rec` is UINT32_MAX. What
 * lies under other bases must keep below them, which execute_refuses sees to. Over machine.block lines it fails,
 * naming routine and number. */
Routine *schedule(Ctx *cx, const Machine *m, Code *code, const ScheduleOptions *o);
/* Cut at its split marks so that no part exceeds the block limit; `count` routines. */
Routine **schedule_split(Ctx *cx, const Machine *m, Code *code, const ScheduleOptions *o, uint32_t *count);
/* operations, arithmetic, transfers and bounds */
void bound_fill(Ctx *cx, const Machine *m, const Code *code, Report *r);

/* Schedules kept by content: equal code is scheduled once, whatever its name. */
typedef struct ScheduleCache ScheduleCache;
ScheduleCache *schedule_cache_new(Ctx *cx);
Routine *schedule_cached(Ctx *cx, ScheduleCache *cache, const Machine *m, Code *code, const ScheduleOptions *o);

/* ---- check.c: from the microwords alone; shares the tables above and no code with the scheduler ---- */

/* NULL if the routine keeps every rule of the machine, else the first fault, naming cycle and operation. With the
 * recorded code given, also that each operation reads what the recording meant it to read (data flow is the same). */
const char *check_routine(Ctx *cx, const Machine *m, const Routine *r);

/* ---- switch.c, route.c, permute.c, switchprint.c, switchcmd.c: three stages of crossbars -------- */

/* Port p is port p % n of crossbar p / n, in the first stage and in the last.  Output m of input crossbar i goes to
 * input i of middle crossbar m, output o of middle crossbar m to input m of output crossbar o.  A ring-only machine
 * has no crossbars. */
enum { NO_ROUTE = 0xFFFF, MAX_CROSSBAR = 64 };
typedef struct Dead {
	uint8_t *crossbar[3]; /* [stage][i] */
	uint8_t *link[2];     /* [0][i * n + m] input to middle, [1][m * n + o] middle to output */
	uint8_t *port;        /* [ports] neither sends nor receives */
} Dead;
/* [n * n] each: output 0 .. n-1 that crossbar x joins its input y to, at x * n + y; NO_ROUTE: none.  Ring: `in` alone,
 * [ports], and a port for each. */
typedef struct Setting {
	uint16_t *in, *middle, *out;
} Setting;
typedef struct Switch {
	const Machine *m;
	uint32_t ports, n; /* n crossbars of n ports in a stage */
	Dead dead;         /* known: no route goes there */
	Dead broken;       /* really: what is sent through it arrives as 0; members NULL: nothing is */
	Setting *setting;  /* stored configurations */
	uint16_t **to;     /* what each does: to[k][from] = port, NO_ROUTE: nothing sent */
	uint32_t stored;
	const uint16_t *instead; /* stored whatever is asked for: for tests; NULL: none */
	char *why;               /* room for the reason that switch_route gives */
} Switch;
Switch *switch_new(Ctx *cx, const Machine *m);
Setting setting_new(Arena *a, const Switch *s);
void switch_know(Switch *s, const Switch *from); /* of the same dead parts */
/* Route a partial permutation (to[i] = port that port i sends to, or NO_ROUTE, for all ports); false if it is none or
 * dead parts make it impossible, with the reason in *why, until the next call.  No allocation. */
bool switch_route(const Switch *s, const uint16_t *to, Setting *out, const char **why);
bool switch_carries(const Switch *s, const Setting *set, uint32_t port); /* nothing on its word's way is broken */
/* of a word: its ports, its crossbar in each stage (a ring: none) */
typedef struct Path {
	uint32_t from, to, box[3];
} Path;
Path switch_path(const Switch *s, const Setting *set, uint32_t port);        /* to NO_ROUTE: it has none */
bool switch_verify(const Switch *s, const uint16_t *to, const Setting *set); /* pushes a token through every crossbar */
uint32_t switch_follow(const Switch *s, const Setting *set, uint32_t port);  /* where its word comes out, or NO_ROUTE */
uint32_t switch_store(Ctx *cx, Switch *s, const uint16_t *to); /* routes and keeps; the configuration's number */
void switch_print(const Switch *s, const uint16_t *to, const Setting *set, Buf *out);
/* Colours the edges of a bipartite multigraph, from[e] to into[e], so that no node has a colour twice nor one of its
 * forbidden ones; the edge that found no colour, or `edges`. */
uint32_t route_colour(uint32_t n, uint32_t edges, const uint8_t *from, const uint8_t *into,
                      const uint64_t forbid[2][MAX_CROSSBAR], uint8_t *colour);
/* ring | tree:K | random:SEED | random:SEED:ROUTES | FILE of lines `from to`; to [ports], processors come first. */
void permutation_make(Ctx *cx, const char *spec, uint32_t procs, uint32_t ports, uint16_t *to);
void permutation_random(uint64_t seed, uint32_t ports, uint32_t routes, uint16_t *to);
void dead_add(Ctx *cx, Switch *s, const char *spec); /* crossbar:STAGE:N | link:STAGE:N:M | port:P */
/* microprop gf11 switch; spec as above, or random:FIRST..LAST[:ROUTES] for all these seeds.  NULL, or why it failed, in
 * scratch.  JSON: members, each with a comma behind it. */
const char *switch_command(Ctx *cx, const Machine *m, const char *spec, const char *const *dead, size_t deads,
                           bool json, Buf *out);

/* ---- execute.c: processors ---------------------------------------------------------------------- */

/* State of all processors: lanes lie side by side, word w of memory of processor i is mem[w * lanes + i]. Registers
 * and condition codes are a routine's own, nothing in them is kept from one call to the next. */
struct Processors {
	const Machine *m;
	Switch *sw;
	uint16_t *port;    /* [procs] number in the machine, which is its port of the switch */
	uint16_t *at_port; /* [ports] processor of the program, or NO_ROUTE */
	uint8_t *mute;     /* [procs] what it sends arrives as 0; NULL: none */
	uint32_t disks;    /* of the machine, on the last ports */
	/* words that they send during the next call: `disks` for each transfer whose configuration a disk is part of,
	 * in the order of issue; NULL: zeros */
	const uint32_t *disk;
	uint32_t procs, lanes;  /* lanes: procs rounded up to an odd multiple of 64 */
	uint32_t *sram, *dram;  /* dram pages come when touched */
	uint32_t *reg;          /* registers, condition codes (0 or 1) and more rows: of each block (execute.h) */
	uint32_t dram_used;     /* first word of DRAM that nobody uses; 0: it is not known */
	uint32_t blocks, slots; /* blocks that hold processors; rows in a block */
	uint32_t threads;
	struct Pool *pool;
};
Processors *processors_new(Ctx *cx, const Machine *m, Switch *sw, uint32_t procs, uint32_t threads);
/* Other processors of the machine than its first ones: port [procs], each once.  Before configurations are stored. */
void processors_place(Ctx *cx, Processors *p, const uint16_t *port);
/* Who gets what `proc` sends through a stored configuration, or NO_ROUTE. */
uint32_t processors_receiver(const Processors *p, uint32_t configuration, uint32_t proc);
/* likewise what a disk sends */
uint32_t processors_from_disk(const Processors *p, uint32_t configuration, uint32_t disk);
bool processors_disks_send(const Processors *p, uint32_t configuration); /* is a disk part of it? */

typedef struct Prepared Prepared; /* a routine translated once into compact form */
Prepared *execute_prepare(Ctx *cx, const Processors *p, const Routine *r);
void execute_renew_routes(const Processors *p, Prepared *r); /* after a change of Switch.broken or Processors.mute */
/* NULL, or what is wrong with these relocation registers for this routine (in buf). */
const char *execute_refuses(const Processors *p, const Prepared *r, const uint32_t *base, char *buf, size_t size);
/* base [relocations], [0] is 0, as execute_refuses lets pass; NULL: all 0 */
void execute_fast(Processors *p, const Prepared *r, const uint32_t *base);
/* Cycle by cycle, registers and memory written when their time comes; calls back for every issue.  Same values. */
typedef struct TraceEvent {
	uint64_t cycle;
	uint32_t unit;
	const Micro *micro;
	uint64_t done;
} TraceEvent;
typedef void TraceFn(void *user, const TraceEvent *e);
void execute_traced(Processors *p, const Routine *r, const uint32_t *base, TraceFn *fn, void *user);
/* The same with somebody who meddles.  `now` is a cycle of the routine. */
typedef struct Meddler {
	const uint8_t *watched; /* [procs of the program] result and write are called for these */
	bool alone;             /* no others are run; not for transfers */
	void *user;
	void (*cycle)(void *user, uint64_t now); /* results have arrived, nothing is issued yet */
	/* of the ALU, at its issue */
	uint32_t (*result)(void *user, uint32_t proc, const Micro *u, uint64_t now, uint32_t word);
	/* A word on its way to a place (IN_..., in faults.h), or a condition code: place is -1. */
	uint32_t (*write)(void *user, uint32_t proc, int place, uint32_t addr, uint64_t now, uint32_t word);
	/* a word sent to `port`: where it really comes */
	uint32_t (*arrives)(void *user, uint32_t proc, uint64_t now, uint32_t port);
} Meddler;
void execute_meddled(Processors *p, const Routine *r, const uint32_t *base, const Meddler *w, TraceFn *fn, void *user);
/* first word of SRAM that is for spilled ones; m->sram: none is */
uint32_t routine_spill_low(const Machine *m, const Routine *r);
uint32_t routine_cycles(const Machine *m, const Routine *r); /* until the last result is there */
/* A routine called again and again for so long: processor-cycles per second in the best tenth; all cycles, all
 * seconds. */
typedef struct Measured {
	double rate;
	uint64_t cycles;
	double seconds;
} Measured;
Measured execute_measure(Ctx *cx, const Machine *m, const Routine *r, uint32_t procs, uint32_t threads, double seconds);
const char *kernel_name(void); /* what the fast loop is compiled for, as this CPU allows */

/* ---- control.c: controller and host ------------------------------------------------------------- */

typedef struct Account {                 /* where the time went; machine cycles and host time apart */
	uint64_t calls, cycles, call_cycles; /* cycles of routines; of the host's calls */
	uint64_t host_words;
	double host_seconds;
} Account;
typedef struct Controller {
	Ctx *cx;
	const Machine *m;
	Processors *p;
	const Routine **routine;
	Prepared **prepared;
	uint32_t *cycles;
	uint64_t *called;
	uint32_t routines, room;
	uint32_t lines; /* of microcode in use */
	uint32_t *base; /* relocation registers */
	bool traced;
	bool dry; /* set before anything is loaded: calls are counted, not executed */
	TraceFn *trace;
	void *trace_user;
	struct Queue *queue;        /* calls that are put off */
	struct Faults *faults;      /* NULL: none; faults_attach sets it */
	struct FaultRun *fault_run; /* fault_call.c's own */
	Account account;
} Controller;
Controller *controller_new(Ctx *cx, Processors *p);
uint32_t controller_load(Controller *c, const Routine *r); /* refused by name and number over the limits */
void controller_base(Controller *c, uint32_t n, uint32_t address);
void controller_call(Controller *c, uint32_t routine);
/* true: from now on calls may wait, so that a block runs many at once; nobody looks into memory but through
 * host_read and host_write. false: all are done, and none will wait. */
void controller_put_off(Controller *c, bool calls);
void host_write(Controller *c, uint32_t proc, bool dram, uint32_t addr, const Cell *w, uint32_t count);
void host_read(Controller *c, uint32_t proc, bool dram, uint32_t addr, Cell *w, uint32_t count);
/* simulated cycles, processors, seconds, times real time */
void account_print(const Controller *c, double host_seconds, Buf *out);

/* ---- microcode.c: microwords as text and back; trace.c: Kanata and Chrome traces ---------------- */

void micro_print(const Micro *u, Buf *out); /* one operation: fadd r1, r2 -> r3 */
void microcode_print(const Machine *m, const Routine *r, Buf *out);
Routine *microcode_parse(Ctx *cx, const Machine *m, const Src *src);
void trace_kanata(Ctx *cx, const Machine *m, const Routine *r, const char *path);
void trace_chrome(Ctx *cx, const Machine *m, const Routine *r, const char *path);

/* ---- tables.c: what routines look up; the host writes it into the first words of every processor's SRAM ---- */

enum {
	TABLE_SIGMOID = 0,
	TABLE_RISE = 256,
	TABLE_POWER = 512,
	TABLE_RECIPROCAL = 768,
	TABLE_CONSTANT = 896,
	TABLE_WORDS = 1024
};
enum {
	K_ZERO,
	K_HALF,
	K_ONE,
	K_BELOW_TWO,
	K_SIGMOID_LOW,
	K_SIGMOID_HIGH,
	K_SIGMOID_SCALE,
	K_SIGMOID_MIDDLE,
	K_POWER_LOW,
	K_POWER_HIGH,
	K_POWER_FIRST,
	K_POWER_1,
	K_POWER_2,
	K_POWER_3,
	K_POWER_4,
	K_POWER_5,
	K_MANTISSA_SHIFT,
	K_MANTISSA_MASK,
	K_SIGN_EXPONENT,
	K_EXPONENT_BIAS,
	K_EXPONENT_SHIFT,
	K_RECIPROCAL_BITS,
	CONSTANTS
};
void tables_fill(Cell *word); /* [TABLE_WORDS] */

/* ---- pieces.c: arithmetic on one value, for use in routines ------------------------------------- */

/* Constants in registers, each loaded from the table when first asked for; start with all zero but .g. */
typedef struct Constants {
	Gen *g;
	Reg reg[CONSTANTS];
	bool there[CONSTANTS];
} Constants;
Reg constant(Constants *c, int k);
Reg reciprocal(Constants *c, Reg x);        /* 2^-126 <= |x| < 2^126: within one unit in the last place */
Reg sigmoid_by_table(Constants *c, Reg x);  /* 1 / (1 + e^-x), error at most 1.7e-4 (section 4.3) */
Reg sigmoid_by_powers(Constants *c, Reg x); /* 1 / (1 + 2^-x) to float accuracy (section 4.3) */
Reg power_of_two(Constants *c, Reg y);      /* -126 <= y < 126, to float accuracy */
Reg polynomial(Gen *g, const Reg *coefficient, uint32_t degree, Reg x); /* Horner; coefficient[degree] leads */
Reg sum_tree(Gen *g, const Reg *v, uint32_t count); /* halves summed first, the left one the larger */

/* ---- routines.c: a library of routines ---------------------------------------------------------- */

/* Relocation registers they use: data in SRAM, data in DRAM.  Tables stand at absolute addresses. */
enum { BASE_SRAM = 1, BASE_DRAM = 2 };
typedef struct RoutineDef {
	const char *name, *about;
	void (*make)(Gen *g, const uint32_t *size); /* size: what its test and the efficiency report use */
	uint32_t size[4];
	bool update; /* the seed's metric counts its switch transfers */
} RoutineDef;
extern const RoutineDef routine_defs[];
extern const size_t routine_def_count;
const RoutineDef *routine_find(const char *name); /* NULL: no such */
Code *routine_record(Ctx *cx, const Machine *m, const RoutineDef *def);

/* ---- commands.c: microprop gf11 ... ------------------------------------------------------------- */

/* Runs one command: argv[0] is its name, operands and options (--name=value, --flag) follow.  Result to `out`, or it
 * fails; or both, if the result is that something failed. */
void gf11_tool(Ctx *cx, int argc, const char *const *argv, Buf *out);

#endif
