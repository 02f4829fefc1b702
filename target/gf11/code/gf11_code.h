/* SPDX-License-Identifier: MIT */
/* The microcode generator.
 *
 *   C routine --record--> Code --schedule--> Routine (microwords) --checker--> sim/control.c
 *                \--simulate--> executes the same operations at once
 *
 * Types in the order of this flow.  The scheduler's own types are in schedule.h, which the checker does not include. */
#ifndef GF11_CODE_H
#define GF11_CODE_H

#include "gf11_machine.h"

/* ---- record.c: instruction functions, called by routines ---------------------------------------- */

typedef uint32_t Reg;  /* a virtual register */
typedef uint32_t Cond; /* a virtual condition code */

typedef struct Rec { /* one recorded operation */
	uint8_t op;
	uint32_t dst, a, b; /* virtual registers; CMP: dst is a condition */
	Cond cc;            /* READS_CC */
	Addr mem, far;
	Cell k; /* constant, or switch configuration */
} Rec;

typedef struct Code {
	const char *name;
	Rec *rec;
	uint32_t recs;
	uint32_t regs, conds;  /* number of virtual registers and conditions */
	bool bases_overlap;    /* false: the caller guarantees that regions under different bases are disjoint */
	bool update;           /* the report's measure counts transfers */
	bool prescheduled;     /* recorded in nearly final order, which is tried first */
	uint32_t *index_limit; /* [relocations] of g_index_limit, 0: unknown; NULL: all unknown */
	/* [regs], [conds] as the text that it was read from names them; NULL: v and w with their number */
	const char *const *reg_name, *const *cond_name;
} Code;

typedef struct Gen Gen; /* recorder or simulator */
Gen *gen_record(Ctx *cx, const Machine *m, const char *name);
/* executes on all processors at once; base [relocations] */
Gen *gen_simulate(Ctx *cx, Processors *p, const uint32_t *base);
const Machine *gen_machine(const Gen *g);
Code *gen_end(Gen *g); /* the recording; NULL for a simulator */
/* Repeats the operations of a recording; before any other operation, so that registers keep their numbers. */
void gen_replay(Gen *g, const Code *code);

Reg g_fadd(Gen *g, Reg a, Reg b);
Reg g_fsub(Gen *g, Reg a, Reg b);
Reg g_fmul(Gen *g, Reg a, Reg b);
Reg g_op(Gen *g, int op, Reg a, Reg b);       /* any of form RR or R; form R ignores b */
Cond g_compare(Gen *g, int op, Reg a, Reg b); /* form CMP */
Reg g_select(Gen *g, Cond c, Reg a, Reg b);
void g_move_masked(Gen *g, Reg dst, Cond c, Reg a); /* read-modify-write of dst */
Reg g_const(Gen *g, float value);
Reg g_const_bits(Gen *g, uint32_t bits);
Reg g_load(Gen *g, Addr mem);
void g_store(Gen *g, Addr mem, Reg a);
Reg g_lookup(Gen *g, Addr mem, Reg index); /* index: per processor */
void g_put(Gen *g, Addr mem, Reg index, Reg a);
/* Declares that indexed accesses under this base stay within its first words.  Without it they may alias spill
 * slots, and nothing in the code can be spilled. */
void g_index_limit(Gen *g, uint16_t base, uint32_t words);
void g_fetch(Gen *g, Addr mem, Addr far); /* DRAM to SRAM */
void g_flush(Gen *g, Addr far, Addr mem); /* SRAM to DRAM */
Reg g_xfer(Gen *g, uint32_t configuration, Reg a);

/* ---- schedule.c, bound.c ------------------------------------------------------------------- */

#define NOT_RECORDED UINT32_MAX /* Micro.rec of a spill load, store or move */
typedef struct Micro {          /* one column of a microword; physical registers */
	uint8_t op;                 /* GOP_NONE: no operation */
	uint8_t cc;
	uint16_t dst, a, b;
	Addr mem, far;
	Cell k;
	uint32_t rec; /* number of the recorded operation, for the checker and listings */
} Micro;
typedef struct Line {
	Micro slot[UNITS];
} Line; /* one cycle */

typedef struct Report {
	uint32_t operations, arithmetic, transfers;            /* recorded; adds and multiplies; switch transfers */
	uint32_t cycles;                                       /* length of the routine, until the last write-back */
	uint32_t bound, bound_resource, bound_path, bound_hrt; /* best lower bound, and the three it is the maximum of */
	/* the report's measure: share of cycles that issue an add or multiply; updates: 4 x transfers / cycles */
	double report_measure;
	uint32_t registers, spills;
	bool optimal; /* proven: the length equals the bound, or the search was exhaustive */
	bool checked;
	double seconds;    /* scheduling time */
	uint32_t in_order; /* cycles in the order of the recording; 0: not computed */
} Report;

typedef struct Routine {
	const char *name;
	Line *line;
	uint32_t lines;
	Report report;
	const Code *code; /* its recording, for names and the checker */
	bool update;      /* the report's measure counts transfers */
	/* [registers + conditions] the host sets these before the call, so that reads of them are defined; NULL: none */
	const bool *given;
} Routine;

/* Level 0: list scheduling; 1 and more: search while the bound is not met, each level eight times as long.  `seconds`
 * (0: no limit) is converted to a number of placements, so that the result does not depend on the computer. */
/* No microcode: as many empty microwords as a schedule takes that has registers without limit, to count cycles with. */
enum { LEVEL_ESTIMATE = -1 };
typedef struct ScheduleOptions {
	int level;
	double seconds;
} ScheduleOptions;
/* Values without a register are spilled to SRAM under base 0, from its last word down, skipping words that the code
 * uses (report.spills counts spill operations; their `rec` is NOT_RECORDED).  Regions under other bases must lie
 * below the spill slots: execute_bad_bases checks it.  Fails if the routine exceeds machine.block lines. */
Routine *schedule(Ctx *cx, const Machine *m, Code *code, const ScheduleOptions *o);
/* operations, arithmetic, transfers and bounds */
void bound_fill(Ctx *cx, const Machine *m, const Code *code, Report *r);
/* Cycles if every operation issued in the order of the recording, as soon as its operands and units allow. */
uint32_t bound_in_order(Ctx *cx, const Machine *m, const Code *code);
double routine_measure(const Machine *m, const Routine *r); /* for report.report_measure */

/* Cache keyed by a hash of the code: equal code is scheduled once. */
typedef struct ScheduleCache ScheduleCache;
ScheduleCache *schedule_cache_new(Ctx *cx);
Routine *schedule_cached(Ctx *cx, ScheduleCache *cache, const Machine *m, Code *code, const ScheduleOptions *o);

/* ---- checker.c: shares tables with the scheduler, but no code ------------------------------------ */

/* NULL if the routine obeys every rule of the machine, else the first violation, with cycle and operation.  If
 * r->code is set, also checks that each operation reads the values that the recording reads (same data flow). */
const char *check_routine(Ctx *cx, const Machine *m, const Routine *r);

/* ---- join.c: concatenation of routines ------------------------------------------------------------ */

/* concatenated recordings */
Code *code_join(Ctx *cx, const char *name, Routine *const *part, uint32_t parts);
/* one routine that runs the parts in sequence */
Routine *routine_join(Ctx *cx, const Machine *m, const char *name, Routine *const *part, uint32_t parts);

/* ---- microcode.c: microwords as text and back; trace.c: Kanata and Chrome traces ---------------- */

void micro_print(const Micro *u, Buf *out);                  /* one operation: fadd r1, r2 -> r3 */
void rec_print(const Code *code, uint32_t number, Buf *out); /* the same as recorded: fadd v0, v1 -> v2 */
void microcode_print(const Machine *m, const Routine *r, Buf *out);
Routine *microcode_parse(Ctx *cx, const Machine *m, const Src *src);
void trace_kanata(Ctx *cx, const Machine *m, const Routine *r, const char *path);
void trace_chrome(Ctx *cx, const Machine *m, const Routine *r, const char *path);

/* ---- operations.c: operations in program order as text and back ------------------------------------ */

/* Of a text of operations, or of the comments of a listing of microcode; fails with place and remedy. */
Code *operations_parse(Ctx *cx, const Machine *m, const Src *src);
void operations_print(const Machine *m, const Code *code, Buf *out);
bool operations_are(const Src *src); /* the text is one of operations, not of microcode */
void op_example(int op, Buf *out);   /* the operation with operands: fadd v0, v1 -> v2 */
/* 1.5 (float), 7i (integer) or 0x3f800000 (bits); returns where it ends, NULL: it is none of them. */
const char *cell_read(const char *p, const char *end, Cell *cell);

/* ---- tables.c: lookup tables, written by the host to the first words of every processor's SRAM ---- */

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

/* ---- mathlib.c: functions of one value, for use in routines ------------------------------------- */

/* Constants cached in registers, each loaded from the table on first use; initialize with .g only. */
typedef struct Constants {
	Gen *g;
	Reg reg[CONSTANTS];
	bool there[CONSTANTS];
} Constants;
Reg constant(Constants *c, int k);
Reg reciprocal(Constants *c, Reg x);        /* 2^-126 <= |x| < 2^126: within 1 ulp */
Reg sigmoid_by_table(Constants *c, Reg x);  /* 1 / (1 + e^-x), error at most 1.7e-4 (section 4.3) */
Reg sigmoid_by_powers(Constants *c, Reg x); /* 1 / (1 + 2^-x) to float accuracy (section 4.3) */
Reg power_of_two(Constants *c, Reg y);      /* -126 <= y < 126, to float accuracy */
Reg polynomial(Gen *g, const Reg *coefficient, uint32_t degree, Reg x); /* Horner; coefficient[degree] leads */
Reg sum_tree(Gen *g, const Reg *v, uint32_t count); /* pairwise sum: halves first, the left one the larger */

/* ---- routines.c: a library of routines ---------------------------------------------------------- */

/* Relocation registers of data in SRAM and in DRAM.  Tables are at absolute addresses. */
enum { BASE_SRAM = 1, BASE_DRAM = 2 };
typedef struct RoutineDef {
	const char *name, *about;
	void (*make)(Gen *g, const uint32_t *size); /* size: as used by its test and the efficiency report */
	uint32_t size[4];
	bool update; /* the report's measure counts transfers */
} RoutineDef;
extern const RoutineDef routine_defs[];
extern const size_t routine_def_count;
const RoutineDef *routine_find(const char *name); /* NULL: unknown */
Code *routine_record(Ctx *cx, const Machine *m, const RoutineDef *def);

#endif
