/* SPDX-License-Identifier: MIT */
/* diagnose: find faulty parts before a program runs, and run without them (sections 8 and 10.4 of the report).
 *
 *   march        every word and register in use holds both values of every bit
 *   switch_test  host-generated words pass every configuration in use; failures are located (locate.c)
 *   survivors    ports for the program, routes around dead parts
 *   alone        every processor trains in isolation on the same cases; those with the most common result are approved
 *   diagnose     all of these, until a program for exactly the approved processors has passed
 *   trials       coverage: injected faults detected, missed, false positives */
#ifndef GF11_DIAGNOSE_H
#define GF11_DIAGNOSE_H

#include "gf11_net.h"

/* ---- diagnose.c: what the tests share ---- */

Routine *test_routine(Ctx *cx, const Machine *m, Code *code); /* scheduled and checked */
Routine *test_checked(Ctx *cx, const Machine *m, Routine *r);
Update test_update(const Options *opt); /* with nonzero rate and momentum */
uint64_t clock_on(
	Faults *faults,
	const Controller *c); /* cycles of a controller after its last call; advances the clock of the faults */

/* ---- march.c ---- */

typedef struct March {
	/* in */
	const Machine *m;
	Faults *faults; /* injected; NULL: none */
	const uint16_t *candidate;
	uint32_t candidates; /* ports of the processors to test */
	uint32_t threads;
	/* words up to sram_end and from `spill` on are in use; those of DRAM up to dram_end */
	uint32_t sram_end, spill, dram_end;
	const uint8_t *reg; /* [registers] in use */
	/* out */
	uint8_t *bad; /* [candidates] has a bad bit */
	uint64_t cycles;
	double host_seconds; /* added to */
} March;
void march_test(Ctx *cx, March *t); /* on a machine of its own, freed on return */

/* ---- locate.c ---- */

/* Fault location.
 *
 *   paths that delivered, paths that failed --evidence--> suspect parts --one more path--> one part */

/* The path of a word: sending port, middle crossbar, receiving port.  They determine the rest: crossbar from / n of the
 * first stage, to / n of the last, and the links between. */
typedef struct Trip {
	uint16_t from, middle, to;
} Trip;

/* Parts by number: ports, then crossbars of the three stages, then links of the two; index of Dead.port. */
enum { TRIP_PARTS = 7 };
uint32_t part_crossbar(const Switch *s, uint32_t stage, uint32_t x); /* stage 0 to 2 */
/* from output y of crossbar x; stage 0, 1 */
uint32_t part_link(const Switch *s, uint32_t stage, uint32_t x, uint32_t y);
uint32_t trip_parts(const Switch *s, Trip w, uint32_t part[TRIP_PARTS]); /* their number: 2 for a ring, the ports */
void part_print(const Switch *s, uint32_t part, Buf *out);               /* in the syntax of dead_add */

typedef struct Evidence {
	Ctx *cx;
	const Switch *s;
	uint8_t *good;  /* [parts] on a path that always delivered */
	uint8_t *stray; /* [ports] sent a word that arrived at another port */
	Trip *failed;
	uint32_t failures, capacity;
} Evidence;
Evidence *evidence_new(Ctx *cx, const Switch *s); /* in scratch */
void evidence_good(Evidence *e, Trip w);
void evidence_failed(Evidence *e, Trip w);
void evidence_stray(Evidence *e, uint32_t port);

/* Parts that explain the same failures: one of them is broken; the observations do not distinguish them. */
enum { MOST_ALIKE = 8 };
typedef struct Suspects {
	uint32_t part[MOST_ALIKE], parts;
} Suspects;
void suspects_print(const Switch *s, const Suspects *list, Buf *out); /* separated by `or` */
/* A small set of parts that explains all failures (greedy set cover); returns their number. */
uint32_t evidence_explain(const Evidence *e, Suspects **list); /* in scratch */
/* A path through `part`, between tested ports, whose other parts are all good; false: there is none. */
bool evidence_path(const Evidence *e, uint32_t part, const uint8_t *tested, Trip *w);

/* ---- survivors.c ---- */

/* Configurations of a program for `procs` processors, in logical numbers: to[k][i]; NO_ROUTE: nothing sent. */
typedef struct Wanted {
	uint32_t procs, count;
	uint16_t **to;
} Wanted;
typedef const Wanted *WantedFn(void *user, uint32_t procs);

/* Processors of the program and settings of the switch. Left out: good processors without a route around the dead
 * parts. */
typedef struct Placed {
	uint16_t *port;
	uint32_t procs; /* by logical processor */
	uint16_t *left_out;
	uint32_t left_outs;
	Setting *setting;
	uint16_t **to;
	uint32_t count; /* in physical ports */
} Placed;
bool port_dead(const Switch *s,
               uint32_t port); /* it, or its crossbar in the first or last stage, is known to be dead */
/* The first `most` candidates (0: all), or others if dead parts of `known` require it; as many as can be routed.  In
 * keep. */
Placed *survivors_place(Ctx *cx, const Switch *known, const uint16_t *candidate, uint32_t count, uint32_t most,
                        WantedFn *wanted, void *user);

/* ---- switch_test.c ---- */

typedef struct SwitchTest {
	/* in */
	const Machine *m;
	Faults *faults; /* injected; NULL: none */
	const uint16_t *candidate;
	uint32_t candidates; /* ports of processors that passed the memory test */
	uint32_t most;       /* processors wanted; 0: all */
	WantedFn *wanted;
	void *user;
	/* in and out: parts known to be dead */
	Switch *known;
	/* out */
	Suspects *located;
	uint32_t locateds, capacity;
	Placed *placed;                  /* all its configurations delivered */
	uint32_t configurations, rounds; /* tried, including those for locating; rounds of the program's own */
	uint64_t cycles;
	double host_seconds;
} SwitchTest;
/* Fails if words are lost and no part explains it. */
void switch_test(Ctx *cx, SwitchTest *t);
void located_add(Ctx *cx, SwitchTest *t, const Suspects *s);

/* ---- alone.c ---- */

enum { RESULT_ERROR, RESULT_OUTPUTS, RESULT_CHANGES, RESULT_UPDATES, RESULTS = RESULT_UPDATES + 4 };
typedef struct Alone {
	/* in */
	const Plan *plan;
	const Options *opt;
	const Machine *m;
	BpOptions o;
	uint64_t cases; /* of the program */
	uint32_t procs; /* that it is compiled for; at most `candidates` */
	Faults *faults;
	Switch *known; /* dead parts; those found by testing the loopback routes are added */
	const uint16_t *candidate;
	uint32_t candidates;
	/* out */
	SwitchTest loop;  /* test of the loopback routes */
	uint32_t *result; /* [candidates * RESULTS] bits to compare */
	uint8_t *reached; /* [candidates] was in a round: it has a loopback route */
	uint32_t rounds;
	uint64_t cycles;
	double host_seconds; /* added to */
	/* of the current round */
	Ctx *cx;
	uint16_t *to, *self;
	Wanted back;
	uint32_t *member, members; /* candidates by number */
} Alone;
void alone_train(Ctx *cx, Alone *t);
/* Marks processors with the most common result; returns their number, 0: another result is as common. */
uint32_t alone_common(const Alone *t, uint8_t *common);

/* ---- diagnose.c ---- */

enum { PROC_FINE, PROC_MEMORY, PROC_RESULT, PROC_PORT, PROC_NO_ROUTE, PROC_VERDICTS };
extern const char *const verdict_names[PROC_VERDICTS];

/* What a program for `procs` processors uses of each. */
typedef struct Needs {
	uint32_t procs, sram_end, spill, dram_end;
	uint8_t *reg;
	Wanted wanted;
} Needs;

typedef struct Diagnosis {
	/* in */
	const Plan *plan;
	const Options *opt;
	const Machine *m;
	BpOptions o; /* how the program will be compiled; procs: number wanted, 0: all good ones */
	uint64_t cases;
	uint32_t processors; /* number tested: the first ones of the machine */
	Faults *faults;      /* injected; NULL: none */
	/* out */
	uint8_t *verdict;    /* [processors] PROC_... */
	uint32_t refused;    /* PROC_MEMORY, PROC_RESULT */
	SwitchTest switches; /* located parts; processors and settings of the program */
	uint32_t rounds;
	uint64_t cycles;
	double host_seconds;
	/* internal */
	Ctx *cx;
	Needs **needs;
	uint32_t need_count, need_capacity;
	Needs marched; /* tested by march_test */
	bool truth_known;
	uint64_t truth[2]; /* trials.c: hashes of the results of a fault-free machine */
	bool switch_only;  /* in: the start-up test of section 8 alone, of the switch */
} Diagnosis;
/* All in keep.  Fails if no processor is left, or if no result is more common than the others. */
void diagnose(Ctx *cx, Diagnosis *d);
void diagnosis_note(Ctx *cx, const Diagnosis *d); /* a note: processors approved, refused and why */
const Needs *needs_of(Diagnosis *d, uint32_t procs);
void diagnosis_begin(Ctx *cx, Diagnosis *d); /* first step of diagnose; alone: for single tests */

/* ---- trials.c: coverage of the diagnosis: compares it with the injected faults ---- */

typedef struct Score {
	uint64_t injected, detected, missed, harmless, false_alarms;
	uint64_t approved;                          /* processors; total of all trials */
	uint64_t by_memory, by_training, by_switch; /* detected */
	uint64_t misplaced;                         /* good parts of the switch reported as dead */
} Score;
bool fault_scored(const Fault *f); /* permanent or intermittent: not flip, not disk */
void score_diagnosis(Diagnosis *d, Score *s, uint8_t *found, uint8_t *changes); /* [faults] each */
/* `trials` machines with one permanent fault each, number i drawn by fault_random_...(seed, i).  Call diagnosis_begin
 * first. */
void trials_processors(Diagnosis *d, uint64_t trials, uint64_t seed, Score *s);
void trials_switch(Diagnosis *d, uint64_t trials, uint64_t seed, Score *s);

#endif
