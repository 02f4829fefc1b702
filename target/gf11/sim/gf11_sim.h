/* SPDX-License-Identifier: MIT */
/* Execution of routines on the simulated processors: controller and host, the fast and the traced executor, faults.
 * The compact form of a routine that the fast executor runs is in execute.h. */
#ifndef GF11_SIM_H
#define GF11_SIM_H

#include "gf11_code.h"

/* ---- execute.c: routines on processors ---------------------------------------------------------- */

typedef struct Prepared Prepared; /* a routine translated once into compact form */
Prepared *execute_prepare(Ctx *cx, const Processors *p, const Routine *r);
void execute_update_routes(const Processors *p, Prepared *r); /* after a change of Switch.broken or Processors.mute */
/* NULL, or what is wrong with these relocation registers for this routine (in buf). */
const char *execute_bad_bases(const Processors *p, const Prepared *r, const uint32_t *base, char *buf, size_t size);
/* base [relocations], [0] is 0, as execute_bad_bases lets pass; NULL: all 0 */
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
typedef struct FaultHooks {
	const uint8_t *watched; /* [procs of the program] result and write are called for these */
	bool only_watched;      /* no others are run; not for transfers */
	void *user;
	void (*cycle)(void *user, uint64_t now); /* results have arrived, nothing is issued yet */
	/* of the ALU, at its issue */
	uint32_t (*result)(void *user, uint32_t proc, const Micro *u, uint64_t now, uint32_t word);
	/* A word on its way to a place (IN_..., below), or a condition code: place is -1. */
	uint32_t (*write)(void *user, uint32_t proc, int place, uint32_t addr, uint64_t now, uint32_t word);
	/* a word sent to `port`: where it really comes */
	uint32_t (*route)(void *user, uint32_t proc, uint64_t now, uint32_t port);
} FaultHooks;
void execute_hooked(Processors *p, const Routine *r, const uint32_t *base, const FaultHooks *w, TraceFn *fn,
                    void *user);
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

typedef struct Account {                 /* where the time went; machine cycles and host time no_alias */
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
	struct CallQueue *queue;    /* calls that are put off */
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
void controller_defer_calls(Controller *c, bool calls);
void host_write(Controller *c, uint32_t proc, bool dram, uint32_t addr, const Cell *w, uint32_t count);
void host_read(Controller *c, uint32_t proc, bool dram, uint32_t addr, Cell *w, uint32_t count);
/* simulated cycles, processors, seconds, times real time */
void account_print(const Controller *c, double host_seconds, Buf *out);

/* ---- faults.c, fault_call.c: faults --------------------------------------------------------------- */

/* What is broken on a machine, and when (section 8 of the report is about finding it).
 *
 *   spec --faults_add--> Faults --controller_call: faults_call--> words that are wrong, a log of every one
 *
 * Processors, ports and crossbars are numbered as they stand in the machine. A program that leaves some out has a
 * map from its own processors to those (Processors.port). What the machine really does (`broken`) and what its
 * users know of it (Switch.dead, the processors that a program leaves out) are different things: tests find out the
 * second. */

/* dead:PROC                           all its words are 0, it sends 0
 * stuck:PROC:reg|sram|dram:ADDR:BIT[:0|1]   the bit is always so; without a value, what the seed says
 * flip:RATE[:reg|sram|dram]           any bit of these memories (default: all three) of any processor turns over,
 *                                     RATE times in a simulated second on average
 * alu:PROC:RATE                       a bit of a result of its ALU is wrong, with this probability for each
 *                                     operation
 * port:PORT                           neither sends nor receives: 0 route
 * misroute:PORT:RATE                  what it sends route at another port instead, with this probability for each
 *                                     word
 * crossbar:STAGE:N                    stage input, middle, output: nothing comes through
 * link:STAGE:N:M                      stage input or middle: output M of crossbar N
 * disk:N:RATE                         a bit of a word that disk N delivers is wrong, with this probability for each
 *                                     word
 * anything else                       a file: one of these a line, # begins a comment */
enum {
	FAULT_DEAD,
	FAULT_STUCK,
	FAULT_FLIP,
	FAULT_ALU,
	FAULT_PORT,
	FAULT_MISROUTE,
	FAULT_CROSSBAR,
	FAULT_LINK,
	FAULT_DISK,
	FAULT_KINDS
};
enum { IN_REG, IN_SRAM, IN_DRAM, IN_PLACES };
extern const char *const fault_names[FAULT_KINDS], *const place_names[IN_PLACES];

typedef struct Fault {
	int kind;
	uint32_t proc;        /* or port, or disk */
	uint32_t stage, n, m; /* crossbar, link */
	unsigned places;      /* stuck, flip: bits 1 << IN_... */
	uint32_t addr;
	uint8_t bit, value;
	double rate;
} Fault;

/* Something that happened: one word of one processor was wrong. A dead processor is logged once, with its first
 * call. Stuck bits and broken parts of the switch are logged once for each call in which they changed or swallowed
 * a word; a stuck bit that changed what the host wrote, at the beginning of the next call. */
typedef struct FaultEvent {
	uint64_t cycle; /* of the machine's clock, calls included */
	uint32_t fault; /* number of its Fault */
	uint32_t proc;  /* of the machine; of the switch: the sender; of a disk: the disk */
	int place;      /* IN_...; of alu IN_REG; of dead, the switch and disks: -1 */
	uint32_t addr;  /* misroute: the port where it arrived; disk: number of the word among those delivered together */
	uint8_t bit;    /* alu: of a comparison always 0 */
} FaultEvent;

/* How far a fault has come: what happens next depends on seed, number of the fault and how often it happened, on
 * nothing else. */
typedef struct FaultWait {
	uint64_t left;             /* alu, misroute, disk: so many operations or words are still right */
	uint64_t drawn;            /* waits drawn */
	double at[IN_PLACES];      /* flip: cycle of the next; INFINITY: never */
	uint64_t flips[IN_PLACES]; /* waits drawn, of each memory */
	bool seen;                 /* dead: logged */
	bool unlogged;             /* stuck: changed what the host wrote; logged with the next call */
} FaultWait;

typedef struct Faults {
	Ctx *cx;
	const Machine *m;
	uint64_t seed;
	Fault *fault;
	uint32_t faults;
	FaultEvent *event;
	uint64_t events, room;          /* the log; at most MAX_EVENTS are kept, all are counted */
	uint64_t happened[FAULT_KINDS]; /* events of each kind */
	uint64_t before;                /* cycles of machines before the present one: their clock goes on */
	FaultWait *wait;                /* [faults] */
} Faults;
enum { MAX_EVENTS = 1 << 20, MAX_FAULTS = 4096 };

/* ---- faults.c ---- */

Faults *faults_new(Ctx *cx, const Machine *m, uint64_t seed);
void faults_add(Faults *f, const char *spec); /* or several with commas between; fails with a sentence */
void faults_print(const Fault *f, Buf *out);  /* as a spec */
void faults_json(const Faults *f, Buf *out);  /* how often each kind happened: an object */
void fault_event_json(const Faults *f, const FaultEvent *e, Buf *out); /* one object, no line end */
void faults_write_log(Ctx *cx, const Faults *f, const char *path);     /* these, one a line */
/* One permanent fault of a processor (dead, stuck anywhere below the ends given, alu at rate 1), or of the switch
 * (port, crossbar, link): number i of the sequence that the seed begins. For experiments. */
Fault fault_random_processor(const Machine *m, uint64_t seed, uint64_t i, uint32_t procs, uint32_t sram_end,
                             uint32_t dram_end);
Fault fault_random_switch(const Machine *m, uint64_t seed, uint64_t i);
void faults_set(Faults *f, const Fault *fault, uint32_t count); /* these instead of those before; log empty */
void faults_log(Faults *f, const FaultEvent *e);
/* Words that a disk delivers in this cycle of the present machine, `step` words no_alias: bits of some of them turn
 * over. */
void faults_disk(Faults *f, uint64_t cycle, uint32_t disk, uint32_t *word, uint64_t count, size_t step);
/* Random numbers: draw n of a fault; operations or words before the next wrong one, each with probability `rate`;
 * cycles to the next of events that come `rate` times a cycle. */
/* DRAW_PLACE + 2 * IN_...: wait, and the one after it: where */
enum { DRAW_VALUE, DRAW_WAIT, DRAW_BIT, DRAW_TO, DRAW_PLACE };
uint64_t fault_draw(const Faults *f, uint32_t fault, int what, uint64_t n);
uint64_t fault_wait_words(const Faults *f, uint32_t fault, uint64_t n, double rate);
double fault_wait_cycles(const Faults *f, uint32_t fault, int what, uint64_t n, double rate);

/* ---- fault_call.c: a routine on a machine with faults ---- */

/* Joins faults and a machine: from now on controller_call is faults_call.  Again after faults_add or faults_set. */
void faults_attach(Faults *f, Controller *c);
/* What controller_call does when there are faults: all processors fast; those in which something happens during the
 * call once more, cycle by cycle, from the memory they had before. A call with transfers in which something happens
 * is run cycle by cycle on all of them. Transient faults in memory happen between calls. No allocation. */
void faults_call(Faults *f, Controller *c, uint32_t routine);
void faults_loaded(Controller *c, uint32_t routine); /* controller_load's */
/* After a fast run: stuck bits that it wrote, words of dead processors. */
void faults_after_call(Faults *f, Controller *c, uint32_t routine, const uint32_t *base);
/* What the host writes and what disks deliver goes into memory past faults, too: stuck bits stick, dead processors
 * stay 0. All memory in use, or these words of all processors; host_write does it by itself. */
void faults_apply(Faults *f, Processors *p);
void faults_apply_words(Faults *f, Processors *p, bool dram, uint32_t addr, uint32_t count);

#endif
