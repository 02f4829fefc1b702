/* SPDX-License-Identifier: MIT */
/* Execution on the simulated processors: controller and host, fast kernels, cycle-accurate interpreter, fault
 * injection. execute.h has the compact form that the fast kernels run. */
#ifndef GF11_SIM_H
#define GF11_SIM_H

#include "gf11_code.h"

/* ---- execute.c: routines on processors ---------------------------------------------------------- */

typedef struct Prepared Prepared; /* a routine translated to compact form */
Prepared *execute_prepare(Ctx *cx, const Processors *p, const Routine *r);
void execute_update_routes(const Processors *p, Prepared *r); /* after Switch.broken or Processors.mute changes */
/* NULL, or why these relocation registers are invalid for the routine (in buf). */
const char *execute_bad_bases(const Processors *p, const Prepared *r, const uint32_t *base, char *buf, size_t size);
/* base [relocations], checked by execute_bad_bases, [0] is 0; NULL: all 0 */
void execute_fast(Processors *p, const Prepared *r, const uint32_t *base);
/* Cycle-accurate interpreter with write-back at the end of the latency; fn is called for every issue. 
 * Bit-identical. */
typedef struct TraceEvent {
	uint64_t cycle;
	uint32_t unit;
	const Micro *micro;
	uint64_t done;
} TraceEvent;
typedef void TraceFn(void *user, const TraceEvent *e);
void execute_traced(Processors *p, const Routine *r, const uint32_t *base, TraceFn *fn, void *user);
/* The same a cycle at a time, for a debugger. */
typedef struct TracedRun TracedRun;
typedef struct InFlight { /* a result in flight: its row of temporaries, and one for an index or condition */
	const Micro *micro;
	uint64_t done;
	uint32_t row, second;
} InFlight;
TracedRun *traced_new(Ctx *cx, Processors *p, const Routine *r, const uint32_t *base);
void traced_restart(TracedRun *t, Processors *p, const Routine *r, const uint32_t *base);
bool traced_step(TracedRun *t, TraceFn *fn, void *user);             /* false: the routine has ended */
uint64_t traced_now(const TracedRun *t);                             /* the cycle that comes next */
const InFlight *traced_flights(const TracedRun *t, uint32_t *count); /* in issue order */
uint32_t traced_result(const TracedRun *t, const InFlight *f, uint32_t proc);
/* The same with fault injection hooks.  `now` is a cycle of the routine. */
typedef struct FaultHooks {
	const uint8_t *watched; /* [logical procs] result and write are called for these */
	bool only_watched;      /* execute no others; not for transfers */
	void *user;
	void (*cycle)(void *user, uint64_t now); /* after write-backs, before issue */
	/* of the ALU, at issue */
	uint32_t (*result)(void *user, uint32_t proc, const Micro *u, uint64_t now, uint32_t word);
	/* Write-back to a memory (IN_..., below) or a condition code (place -1). */
	uint32_t (*write)(void *user, uint32_t proc, int place, uint32_t addr, uint64_t now, uint32_t word);
	/* actual destination of a word sent to `port` */
	uint32_t (*route)(void *user, uint32_t proc, uint64_t now, uint32_t port);
} FaultHooks;
void execute_hooked(Processors *p, const Routine *r, const uint32_t *base, const FaultHooks *w, TraceFn *fn,
                    void *user);
/* first SRAM word of the spill slots; m->sram: none */
uint32_t routine_spill_low(const Machine *m, const Routine *r);
uint32_t routine_cycles(const Machine *m, const Routine *r); /* until the last write-back */
/* Repeats a routine for `seconds`: processor-cycles per second in the best tenth; total cycles and seconds. */
typedef struct Measured {
	double rate;
	uint64_t cycles;
	double seconds;
} Measured;
Measured execute_measure(Ctx *cx, const Machine *m, const Routine *r, uint32_t procs, uint32_t threads, double seconds);
const char *kernel_name(void); /* instruction set of the selected kernel */

/* ---- control.c: controller and host ------------------------------------------------------------- */

typedef struct Account {                 /* time by cause; machine cycles and host time separate */
	uint64_t calls, cycles, call_cycles; /* cycles of routines; overhead of calls */
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
	uint32_t routines, capacity;
	uint32_t lines; /* microcode lines in use */
	uint32_t *base; /* relocation registers */
	bool traced;
	bool dry; /* dry run: calls are counted, not executed; set before anything is loaded */
	TraceFn *trace;
	void *trace_user;
	void (*watch)(void *user); /* before every call; NULL: none */
	void *watch_user;
	struct CallQueue *queue;    /* deferred calls */
	struct Faults *faults;      /* NULL: none; set by faults_attach */
	struct FaultRun *fault_run; /* private to fault_call.c */
	Account account;
} Controller;
Controller *controller_new(Ctx *cx, Processors *p);
uint32_t controller_load(Controller *c, const Routine *r); /* fails if a limit of the machine is exceeded */
void controller_base(Controller *c, uint32_t n, uint32_t address);
void controller_call(Controller *c, uint32_t routine);
/* true: calls may be deferred, so that a block runs many at once; memory may then be accessed through host_read and
 * host_write only.  false: executes deferred calls, and defers none. */
void controller_defer_calls(Controller *c, bool calls);
void host_write(Controller *c, uint32_t proc, bool dram, uint32_t addr, const Cell *w, uint32_t count);
void host_read(Controller *c, uint32_t proc, bool dram, uint32_t addr, Cell *w, uint32_t count);
/* simulated cycles, processors, seconds, ratio to real time */
void account_print(const Controller *c, double host_seconds, Buf *out);

/* ---- faults.c, fault_call.c: fault injection --------------------------------------------------------------- */

/* Fault injection (finding faults is section 8 of the report).
 *
 *   spec --faults_add--> Faults --controller_call: faults_call--> wrong words, a log of each
 *
 * Numbers of processors, ports and crossbars are physical; Processors.port maps logical processors to them.  The actual
 * state of the machine (`broken`) and the known one (Switch.dead, processors left out) differ: diagnosis finds the
 * latter. */

/* dead:PROC                           all its words are 0, it sends 0
 * stuck:PROC:reg|sram|dram:ADDR:BIT[:0|1]   stuck bit; without a value, drawn from the seed
 * flip:RATE[:reg|sram|dram]           bit flips in these memories (default: all) of all processors, RATE per bit and
 *                                     simulated second
 * alu:PROC:RATE                       bit error in an ALU result, with this probability per operation
 * port:PORT                           neither sends nor receives: 0 arrives
 * misroute:PORT:RATE                  a word arrives at another port, with this probability per word
 * crossbar:STAGE:N                    stage input, middle, output: all words through it are lost
 * link:STAGE:N:M                      stage input or middle: output M of crossbar N
 * disk:N:RATE                         bit error in a word from disk N, with this probability per word
 * anything else                       a file: one spec per line, # begins a comment */
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

/* One wrong word of one processor.  Dead processors are logged once, at their first call.  Stuck bits and broken
 * switch parts are logged once per call in which they changed or dropped a word; a stuck bit that changed a word
 * written by the host, at the beginning of the next call. */
typedef struct FaultEvent {
	uint64_t cycle; /* machine clock, including call overhead */
	uint32_t fault; /* index of its Fault */
	uint32_t proc;  /* physical; switch: the sender; disk: the disk */
	int place;      /* IN_...; alu: IN_REG; dead, switch and disks: -1 */
	uint32_t addr;  /* misroute: actual port; disk: index of the word in its transfer */
	uint8_t bit;    /* alu: 0 for a comparison */
} FaultEvent;

/* Progress of a fault: the next event depends only on seed, index of the fault and number of events so far. */
typedef struct FaultWait {
	uint64_t left;             /* alu, misroute, disk: operations or words until the next error */
	uint64_t drawn;            /* waits drawn */
	double at[IN_PLACES];      /* flip: cycle of the next; INFINITY: never */
	uint64_t flips[IN_PLACES]; /* waits drawn, by memory */
	bool seen;                 /* dead: logged */
	bool unlogged;             /* stuck: changed a word written by the host, not yet logged */
} FaultWait;

typedef struct Faults {
	Ctx *cx;
	const Machine *m;
	uint64_t seed;
	Fault *fault;
	uint32_t faults;
	FaultEvent *event;
	uint64_t events, capacity;      /* log; at most MAX_EVENTS are kept, all are counted */
	uint64_t happened[FAULT_KINDS]; /* events by kind */
	uint64_t before;                /* cycles of earlier machines: the clock continues */
	FaultWait *wait;                /* [faults] */
} Faults;
enum { MAX_EVENTS = 1 << 20, MAX_FAULTS = 4096 };

/* ---- faults.c ---- */

Faults *faults_new(Ctx *cx, const Machine *m, uint64_t seed);
void faults_add(Faults *f, const char *spec); /* one or several, separated by commas; fails with a message */
void faults_print(const Fault *f, Buf *out);  /* as a spec */
void faults_json(const Faults *f, Buf *out);  /* events by kind, as an object */
void fault_event_json(const Faults *f, const FaultEvent *e, Buf *out); /* one object, no newline */
void faults_write_log(Ctx *cx, const Faults *f, const char *path);     /* JSON lines */
/* Number i of a random sequence of permanent faults: of a processor (dead, stuck below the given ends, alu at rate
 * 1) or of the switch (port, crossbar, link).  For experiments. */
Fault fault_random_processor(const Machine *m, uint64_t seed, uint64_t i, uint32_t procs, uint32_t sram_end,
                             uint32_t dram_end);
Fault fault_random_switch(const Machine *m, uint64_t seed, uint64_t i);
void faults_set(Faults *f, const Fault *fault, uint32_t count); /* replaces all faults and clears the log */
void faults_log(Faults *f, const FaultEvent *e);
/* Injects errors into words that a disk delivers in this cycle, `step` words apart. */
void faults_disk(Faults *f, uint64_t cycle, uint32_t disk, uint32_t *word, uint64_t count, size_t step);
/* Random numbers: draw n of a fault; number of operations or words before the next error, with probability `rate` each;
 * cycles until the next event of a Poisson process of `rate` per cycle. */
/* DRAW_PLACE + 2 * IN_...: wait; the next number: address */
enum { DRAW_VALUE, DRAW_WAIT, DRAW_BIT, DRAW_TO, DRAW_PLACE };
uint64_t fault_draw(const Faults *f, uint32_t fault, int what, uint64_t n);
uint64_t fault_wait_words(const Faults *f, uint32_t fault, uint64_t n, double rate);
double fault_wait_cycles(const Faults *f, uint32_t fault, int what, uint64_t n, double rate);

/* ---- fault_call.c: calls with faults ---- */

/* Attaches faults to a machine: controller_call becomes faults_call.  Call again after faults_add or faults_set. */
void faults_attach(Faults *f, Controller *c);
/* controller_call with faults: all processors run fast; those with an event in this call are rerun cycle-accurately
 * from their previous memory.  A call with transfers and an event runs cycle-accurately on all processors.  Bit
 * flips in memory occur between calls.  Does not allocate. */
void faults_call(Faults *f, Controller *c, uint32_t routine);
void faults_loaded(Controller *c, uint32_t routine); /* for controller_load */
/* After a fast run: applies stuck bits and dead processors to the words written. */
void faults_after_call(Faults *f, Controller *c, uint32_t routine, const uint32_t *base);
/* Applies stuck bits and dead processors to memory written by the host or disks: all memory in use, or these words
 * of all processors.  host_write does so itself. */
void faults_apply(Faults *f, Processors *p);
void faults_apply_words(Faults *f, Processors *p, bool dram, uint32_t addr, uint32_t count);

#endif
