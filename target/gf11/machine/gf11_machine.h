/* SPDX-License-Identifier: MIT */
/* The machine (report, section 2): parameters, operations, switch, processor memories.
 * Types in the order of their use, prototypes under the name of the file that defines them. */
#ifndef GF11_MACHINE_H
#define GF11_MACHINE_H

#include "base.h"

/* A list with space for one more element; its capacity doubles when it is full. */
static inline void *list_more(Arena *a, void *list, size_t count, uint32_t *capacity, size_t size)
{
	if (count < *capacity)
		return list;
	uint32_t wanted = *capacity ? 2 * *capacity : 64;
	list = arena_grow(a, list, *capacity, wanted, size);
	*capacity = wanted;
	return list;
}

/* ---- machine.c: parameters, from a machine file ------------------------------------------------- */

typedef struct Machine {
	const char *name;
	const Provenance *from; /* [machine_row_count]; NULL: built by a test */
#define MACHINE_INT(field, ...)   int64_t field;
#define MACHINE_REAL(field, ...)  double field;
#define MACHINE_LATER(field, ...) double field;
#include "machine.def"
} Machine;

enum { NO_INDEX = 1, NO_PUT }; /* fixed_address: neither lookup nor put; lookup alone */

typedef Param MachineRow;
extern const MachineRow machine_rows[];
extern const size_t machine_row_count;
const MachineRow *machine_row(const char *name); /* NULL: no such parameter */
void machine_put(Machine *m, const MachineRow *row, double v);

/* name: a path, or a built-in machine file ("gf11", "gf11-356", "gf11-ring", "gf11-banks16") */
Machine *machine_open(Ctx *cx, const char *name);
Machine *machine_parse(Ctx *cx, const Src *src);
void machine_print(const Machine *m, Buf *out);
uint32_t machine_disks(const Machine *m); /* disks with a port of their own; a ring has none */

/* ---- ops.c: operations -------------------------------------------------------------------------- */

typedef union Cell {
	float f;
	int32_t i;
	uint32_t u;
} Cell;

enum { UNIT_ALU, UNIT_PORT, UNIT_DRAM, UNIT_SWITCH, UNITS };
extern const char *const unit_names[UNITS];

/* Forms: which fields of Micro an operation uses, and which resources it occupies, relative to its issue cycle t.
 *
 *   RR      dst <- a, b            ALU at t
 *   R       dst <- a               ALU at t
 *   CMP     cc <- a, b             ALU at t
 *   SELECT  dst <- cc, a, b        ALU at t
 *   MASKED  dst <- cc, a ALU at t; where cc is 0 dst keeps its word, which is read at t + latency
 *   IMM     dst <- k               ALU at t
 *   LOAD    dst <- sram[mem]       port at t, SRAM at t
 *   STORE   sram[mem] <- a         port at t, SRAM at t
 *   LOOKUP  dst <- sram[mem + a]   port at t (address out) and t + 1 (word in), SRAM at t
 *   PUT     sram[mem + b] <- a     port at t (address out) and t + 1 (word out), SRAM at t + 1
 *   FETCH   sram[mem] <- dram[far] DRAM at t, its bank for dram_busy, SRAM at t + latency - 1
 *   FLUSH   dram[far] <- sram[mem] DRAM at t, its bank for dram_busy, SRAM at t
 *   XFER    dst <- a through configuration k    switch at t, port at t (out) and t + latency - 1 (in)
 *
 * All ALU operations have one latency, so at most one ALU result per cycle is written back.  Pipelines are exposed:
 * operands are read in cycle t; reads in cycles >= t + latency see the result, earlier ones the old word.  The same
 * holds for memory (FETCH reads DRAM at t).  CMP's condition is dst of a Rec and cc of a Micro.  LOOKUP and PUT
 * address the 32-bit sum modulo the SRAM size.  XFER yields 0 on a processor that no route leads to.  A NaN result is
 * always 0x7fc00000 (cell.h). */
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
	bool is, write, dram, indexed; /* is: the form has this access; indexed: any word under its base */
} MemAccess;
typedef struct FormInfo {
	unsigned uses;
	uint8_t port, sram; /* AT_...: cycles that occupy the register port, SRAM */
	MemAccess access[2];
} FormInfo;
extern const FormInfo forms[FORMS];

typedef struct OpInfo {
	const char *name, *meaning, *about; /* meaning: the expression of ops.def */
	uint8_t unit, form;
	size_t latency; /* offset of the parameter in Machine */
} OpInfo;
extern const OpInfo ops[GOPS];

int64_t op_latency(const Machine *m, int op);
int op_find(const char *name, size_t len); /* -1: no such */
/* Evaluates an ALU operation for one processor, exactly as ops.def writes it. */
Cell op_value(int op, Cell a, Cell b, bool cc, Cell k);
/* The same for a row of processors; unused operands may be any valid row. */
void op_values(int op, const uint32_t *a, const uint32_t *b, const uint32_t *cc, Cell k, uint32_t count, uint32_t *out);

/* Relocatable address: relocation register and offset.  Bases of DRAM addresses are multiples of dram_banks, so that
 * the bank is known at compile time; register 0 is always 0. */
typedef struct Addr {
	uint16_t base;
	uint32_t off;
} Addr;

/* ---- switch.c, route.c, permute.c, switch_print.c: three stages of crossbars ---------------- */

/* Port p is port p % n of crossbar p / n, in the first stage and in the last.  Output m of input crossbar i goes to
 * input i of middle crossbar m, output o of middle crossbar m to input m of output crossbar o.  A ring-only machine
 * has no crossbars. */
enum { NO_ROUTE = 0xFFFF, MAX_CROSSBAR = 64 };
/* One block of flags: ports, then crossbars, then links; the index from `port` on is the number of a part. */
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
/* Branching: [n * n] each, input that crossbar x joins to its output y, at x * n + y; NO_ROUTE: none. */
typedef struct Fan {
	uint16_t *in, *middle, *out;
} Fan;
typedef struct Switch {
	const Machine *m;
	uint32_t ports, n; /* n crossbars of n ports in a stage */
	Dead dead;         /* known to be broken: the router avoids these */
	Dead broken;       /* injected faults: a word routed through one arrives as 0; NULL members: none */
	Setting *setting;  /* stored configurations */
	uint16_t **to;     /* permutation of each: to[k][from] = port; NO_ROUTE: sends nothing */
	uint32_t stored;
	const uint16_t *forced; /* permutation stored instead of any other: for tests; NULL: none */
	char *why;              /* text of the last failure of switch_route */
} Switch;
Switch *switch_new(Ctx *cx, const Machine *m);
Setting setting_new(Arena *a, const Switch *s);
size_t dead_size(const Switch *s);                    /* flags in a Dead */
Dead dead_new(Arena *a, const Switch *s);             /* all parts alive */
void switch_copy_dead(Switch *s, const Switch *from); /* copies the known dead parts */
/* Routes a partial permutation (to[i]: destination of port i, or NO_ROUTE); false if it is invalid or dead parts make
 * it infeasible, with the reason in *why, valid until the next call.  Does not allocate. */
bool switch_route(const Switch *s, const uint16_t *to, Setting *out, const char **why);
bool switch_delivers(const Switch *s, const Setting *set, uint32_t port); /* no broken part on the route */
/* route of a word: ports, crossbar in each stage (unset for a ring) */
typedef struct Path {
	uint32_t from, to, box[3];
} Path;
Path switch_path(const Switch *s, const Setting *set, uint32_t port); /* .to NO_ROUTE: no route */
bool switch_verify(const Switch *s, const uint16_t *to,
                   const Setting *set); /* simulates tokens through every crossbar */
uint32_t switch_follow(const Switch *s, const Setting *set, uint32_t port); /* output port, or NO_ROUTE */
uint32_t switch_store(Ctx *cx, Switch *s, const uint16_t *to);              /* number of the new configuration */
void switch_print(const Switch *s, const uint16_t *to, const Setting *set, Buf *out);
/* multicast.c: from[q] is the port that port q receives from; a port may send to several. */
Fan fan_new(Arena *a, const Switch *s);
bool switch_multicast(const Switch *s, const uint16_t *from, Fan *out, const char **why); /* why: as switch_route */
bool multicast_verify(const Switch *s, const uint16_t *from, const Fan *set);
/* broadcast:PORT, or a file in which a port sends to several: fills from; false: it is a permutation, or a spec of
 * one. */
bool multicast_make(Ctx *cx, const char *spec, uint32_t procs, uint32_t ports, uint16_t *from);
/* Edge-colours a bipartite multigraph (edge e: from[e], into[e]) such that no two edges at a node share a colour and
 * none has a forbidden one.  Returns the first edge left uncoloured, or `edges`. */
uint32_t route_colour(uint32_t n, uint32_t edges, const uint8_t *from, const uint8_t *into,
                      const uint64_t forbid[2][MAX_CROSSBAR], uint8_t *colour);
/* ring | tree:K | random:SEED | random:SEED:ROUTES | FILE of lines `from to`; to [ports], processors come first. */
void permutation_make(Ctx *cx, const char *spec, uint32_t procs, uint32_t ports, uint16_t *to);
void permutation_random(uint64_t seed, uint32_t ports, uint32_t routes, uint16_t *to);
void dead_add(Ctx *cx, Switch *s, const char *spec); /* crossbar:STAGE:N | link:STAGE:N:M | port:P */

/* ---- processors.c: memories, registers, ports ------------------------------------------------------ */

/* State of all processors, structure of arrays: word w of processor i is mem[w * lanes + i].  Registers and condition
 * codes are undefined at the start of a call. */
enum { LANES = 64 }; /* processors in a block */
typedef struct Processors {
	const Machine *m;
	Switch *sw;
	uint16_t *port;    /* [procs] physical processor, equal to its switch port */
	uint16_t *at_port; /* [ports] logical processor, or NO_ROUTE */
	uint8_t *mute;     /* [procs] dead: the words it sends arrive as 0; NULL: none */
	uint32_t disks;    /* of the machine, on the last ports */
	/* words that disks send during the next call: `disks` words per transfer whose configuration includes a disk, in
	 * issue order; NULL: zeros */
	const uint32_t *disk;
	uint32_t procs, lanes; /* lanes: procs padded to an odd multiple of 64 */
	uint32_t *sram, *dram; /* dram: pages are mapped on first use */
	uint32_t *reg;      /* [blocks][slots][LANES]: registers, condition codes (0 or 1), temporaries (sim/execute.h) */
	uint32_t dram_used; /* end of the DRAM in use; 0: unknown */
	uint32_t blocks, slots; /* blocks of LANES processors; rows per block */
	uint32_t threads;
	struct Pool *pool;
} Processors;
Processors *processors_new(Ctx *cx, const Machine *m, Switch *sw, uint32_t procs, uint32_t threads);
/* Maps logical processors to physical ones: port [procs], distinct.  Before any configuration is stored. */
void processors_map(Ctx *cx, Processors *p, const uint16_t *port);
/* Receiver of what `proc` sends through a stored configuration, or NO_ROUTE. */
uint32_t processors_receiver(const Processors *p, uint32_t configuration, uint32_t proc);
/* the same for a disk */
uint32_t processors_from_disk(const Processors *p, uint32_t configuration, uint32_t disk);
uint32_t processors_disk_port(const Processors *p, uint32_t disk);       /* switch port of a disk */
bool processors_disks_send(const Processors *p, uint32_t configuration); /* does it route any disk? */
/* The word of a register, or, from m->registers on, of a condition code. */
uint32_t *processors_register(const Processors *p, uint32_t number, uint32_t proc);

/* ---- scan.c: scanner for specs of machine parts: link:input:3:5, random:7, flip:1e-9 ------------- */

/* Functions without a bool result fail at the current location, with `remedy`. */
typedef struct Scan {
	Ctx *cx;
	const Src *src;
	size_t at;
} Scan;
extern const char *const stage_names[3]; /* of the switch: input, middle, output */

Scan scan_spec(Ctx *cx, const char *name, const char *spec); /* name: for messages */
Loc scan_here(const Scan *s);
int scan_peek(const Scan *s);               /* the next byte, -1 at the end */
bool scan_word(Scan *s, const char *word);  /* consumes it if present */
bool scan_number(Scan *s, uint64_t *value); /* decimal, saturating; false: no digits */
uint32_t scan_index(Scan *s, const char *what, uint32_t limit, const char *remedy); /* 0 .. limit - 1 */
double scan_real(Scan *s, const char *what, double low, double high, const char *remedy);
/* name or number; stages = 2: only stages with outgoing links */
uint32_t scan_stage(Scan *s, uint32_t stages, const char *remedy);
void scan_colon(Scan *s, const char *remedy);
void scan_end(const Scan *s, const char *remedy);
void scan_blanks(Scan *s);
void scan_line(Scan *s); /* to its end */

#endif
