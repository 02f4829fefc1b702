/* SPDX-License-Identifier: MIT */
/* The machine of the report's section 2: parameters, operations, switch, memories of the processors.
 * Types stand in the order of their use, prototypes under the name of the file that holds them. */
#ifndef GF11_MACHINE_H
#define GF11_MACHINE_H

#include "base.h"

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
typedef struct MemAccess {
	bool is, write, dram, indexed;
} MemAccess; /* a word of memory; indexed: anywhere under its base */
/* when it takes the port and SRAM */
typedef struct FormInfo {
	unsigned uses;
	uint8_t port, sram;
	MemAccess access[2];
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

/* ---- switch.c, route.c, permute.c, switch_print.c: three stages of crossbars ---------------- */

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
	const uint16_t *forced; /* stored whatever is asked for: for tests; NULL: none */
	char *why;              /* room for the reason that switch_route gives */
} Switch;
Switch *switch_new(Ctx *cx, const Machine *m);
Setting setting_new(Arena *a, const Switch *s);
void switch_copy_dead(Switch *s, const Switch *from); /* of the same dead parts */
/* Route a partial permutation (to[i] = port that port i sends to, or NO_ROUTE, for all ports); false if it is none or
 * dead parts make it impossible, with the reason in *why, until the next call.  No allocation. */
bool switch_route(const Switch *s, const uint16_t *to, Setting *out, const char **why);
bool switch_delivers(const Switch *s, const Setting *set, uint32_t port); /* nothing on its word's way is broken */
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

/* ---- processors.c: their memories and ports ------------------------------------------------------ */

/* State of all processors: lanes lie side by side, word w of memory of processor i is mem[w * lanes + i]. Registers
 * and condition codes are a routine's own, nothing in them is kept from one call to the next. */
enum { LANES = 64 }; /* processors of a block */
typedef struct Processors {
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
	uint32_t *reg;          /* registers, condition codes (0 or 1) and more rows: of each block (sim/execute.h) */
	uint32_t dram_used;     /* first word of DRAM that nobody uses; 0: it is not known */
	uint32_t blocks, slots; /* blocks that hold processors; rows in a block */
	uint32_t threads;
	struct Pool *pool;
} Processors;
Processors *processors_new(Ctx *cx, const Machine *m, Switch *sw, uint32_t procs, uint32_t threads);
/* Other processors of the machine than its first ones: port [procs], each once.  Before configurations are stored. */
void processors_map(Ctx *cx, Processors *p, const uint16_t *port);
/* Who gets what `proc` sends through a stored configuration, or NO_ROUTE. */
uint32_t processors_receiver(const Processors *p, uint32_t configuration, uint32_t proc);
/* likewise what a disk sends */
uint32_t processors_from_disk(const Processors *p, uint32_t configuration, uint32_t disk);
uint32_t processors_disk_port(const Processors *p, uint32_t disk);       /* of the switch */
bool processors_disks_send(const Processors *p, uint32_t configuration); /* is a disk part of it? */

/* ---- scan.c: what the user writes about parts of the machine: link:input:3:5, random:7, flip:1e-9 -- */

/* All of these fail at their place, with `remedy`, but those that return bool. */
typedef struct Scan {
	Ctx *cx;
	const Src *src;
	size_t at;
} Scan;
extern const char *const stage_names[3]; /* of the switch: input, middle, output */

Scan scan_spec(Ctx *cx, const char *name, const char *spec); /* of a text; name: what messages call it */
Loc scan_here(const Scan *s);
int scan_peek(const Scan *s);               /* the next byte, -1 at the end */
bool scan_word(Scan *s, const char *word);  /* skips it if it stands here */
bool scan_number(Scan *s, uint64_t *value); /* digits, saturating; false if there are none */
uint32_t scan_index(Scan *s, const char *what, uint32_t limit, const char *remedy); /* 0 .. limit - 1 */
double scan_real(Scan *s, const char *what, double low, double high, const char *remedy);
/* its name or number; 2 stages: one that links go from */
uint32_t scan_stage(Scan *s, uint32_t stages, const char *remedy);
void scan_colon(Scan *s, const char *remedy);
void scan_end(const Scan *s, const char *remedy);
void scan_blanks(Scan *s);
void scan_line(Scan *s); /* to its end */

#endif
