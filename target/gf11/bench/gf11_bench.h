/* SPDX-License-Identifier: MIT */
/* The workbench: one routine on a simulated machine, with values in and out, a cycle at a time, as pictures. */
#ifndef GF11_BENCH_H
#define GF11_BENCH_H

#include "gf11_sim.h"
#include "plot.h"

/* ---- routine.c: routines of the library, of operations, of microcode; all checked ---- */

void routine_names(Buf *out); /* "the routines are: ..." */
Routine *routine_make(Ctx *cx, const Machine *m, const RoutineDef *def, int level);
Routine *routine_schedule(Ctx *cx, const Machine *m, Code *code, int level);
/* Microcode, or operations, which are scheduled. given: as in Routine, or NULL. */
Routine *routine_read(Ctx *cx, const Machine *m, const Src *src, int level, const bool *given);
Routine *routine_open(Ctx *cx, const Machine *m, const char *name, int level, const bool *given); /* or by name */

/* ---- runner.c: a machine that runs one routine ---- */

typedef struct Runner {
	Ctx *cx;
	const Machine *m;
	Switch *sw;
	Processors *p;
	uint64_t end[2];          /* of tables and the routine's data, in SRAM and DRAM */
	uint64_t result;          /* words of SRAM, spills excluded */
	bool *index;              /* [words of SRAM] loaded and used as an index */
	const char *const *route; /* [routes] K=SPEC: configuration K as permutation_make reads it; else see runner_load */
	size_t routes;
} Runner;
Runner *runner_new(Ctx *cx, const Machine *m, uint32_t procs, uint32_t threads);
/* A new controller; the routine is number 0. */
Controller *runner_load(Runner *w, const Routine *r);
void runner_fill(const Runner *w, Controller *c, bool zero); /* tables, and pseudo-random data or zeros */
uint64_t runner_checksum(const Runner *w);                   /* of SRAM, and of the DRAM that the routine addresses */

/* ---- places.c: sram:100..107@3=1.5,2, as options and commands of the debugger write it ---- */

enum { PLACE_COND = IN_PLACES, PLACES };
enum { AS_FLOAT, AS_INT, AS_HEX, AS_KINDS };
extern const char *const as_names[AS_KINDS];
typedef struct Place {
	int memory; /* IN_REG, IN_SRAM, IN_DRAM, PLACE_COND */
	uint32_t base, first, count;
	bool ranged; /* FIRST..LAST was written */
	uint32_t proc, procs;
	int as;
} Place;
typedef struct Assign {
	Place place;
	Cell *value; /* [values]; one value goes to the whole place */
	uint32_t values;
} Assign;
/* option: for messages */
Assign assign_read(Ctx *cx, const Machine *m, uint32_t procs, const char *option, const char *spec);
Place place_read(Ctx *cx, const Machine *m, uint32_t procs, const char *option, const char *spec);
/* Registers and conditions among them, for Routine.given; NULL: none. */
const bool *assigns_given(Ctx *cx, const Machine *m, const Assign *a, size_t count);

/* ---- bench.c: a routine loaded into a machine ---- */

typedef struct WorkbenchSpec {
	const Machine *m;
	uint32_t procs; /* 0: all */
	uint32_t threads;
	int level;
	bool zero;               /* memory is 0 where no table is; else pseudo-random */
	const char *const *set;  /* [sets] PLACE=VALUES */
	const char *const *base; /* [bases] N=ADDRESS: relocation registers */
	const char *const *route;
	size_t sets, bases, routes;
} WorkbenchSpec;
typedef struct Workbench {
	Ctx *cx;
	const Machine *m;
	const Routine *r;
	Runner *w;
	Controller *k;
	TracedRun *t; /* NULL: not stepped yet */
	Assign *set;  /* [spec->sets] */
	bool started; /* memory was filled */
	const WorkbenchSpec *spec;
} Workbench;
/* name: of a routine or a file; src: its text instead, or NULL. spec must live as long as the bench. */
Workbench *bench_open(Ctx *cx, const char *name, const Src *src, const WorkbenchSpec *spec);
void bench_start(Workbench *b);         /* memory filled, values set, at cycle 0 */
bool bench_step(Workbench *b);          /* one cycle; false: the routine has ended */
uint64_t bench_now(const Workbench *b); /* the cycle that comes next */
bool bench_ended(const Workbench *b);
uint32_t bench_word(const Workbench *b, int memory, uint32_t address, uint32_t proc);
void bench_put(Workbench *b, int memory, uint32_t address, uint32_t proc, uint32_t word);
void bench_assign(Workbench *b, const Assign *a);
uint32_t bench_address(const Workbench *b, const Place *p); /* of its first word; fails if it is not there */
void bench_show(Workbench *b, const Place *p, Buf *text, JsonWriter *json);

/* ---- pictures.c: a schedule and its pipeline as SVG ---- */

/* Units by cycles; with dependences, an arrow from each result to the operations that read it. */
void schedule_svg(Ctx *cx, const Machine *m, const Routine *r, bool dependences, Buf *out);
void pipeline_svg(Ctx *cx, const Machine *m, const Routine *r, Buf *out); /* a row for each operation */

/* ---- debug.c: the debugger ---- */

typedef struct Debug Debug;
Debug *debug_new(Workbench *b);
void debug_restart(Debug *d);                             /* bench_start, and nothing is written */
bool debug_command(Debug *d, const char *line, Buf *out); /* false: quit */

#endif
