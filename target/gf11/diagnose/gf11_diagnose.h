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
Update test_update(const Options *opt);                 /* in which every number counts */
uint64_t clock_on(Faults *faults, const Controller *c); /* cycles of a controller that will not be called again */

/* ---- march.c ---- */

typedef struct March {
	/* in */
	const Machine *m;
	Faults *faults; /* what is broken; NULL: nothing is */
	const uint16_t *candidate;
	uint32_t candidates; /* ports of the processors to test */
	uint32_t threads;
	/* words up to sram_end and from `spill` on are in use; those of DRAM up to dram_end */
	uint32_t sram_end, spill, dram_end;
	const uint8_t *reg; /* [registers] in use */
	/* out */
	uint8_t *bad; /* [candidates] set where something is */
	uint64_t cycles;
	double host_seconds; /* added to */
} March;
void march_test(Ctx *cx, March *t); /* on a machine of its own, gone afterwards */

/* ---- locate.c ---- */

/* Fault location: observations of paths come in, suspect parts come out.
 *
 *   path came through, path failed --evidence--> parts that can be at fault --question: one more path--> one part */

/* The way of a word: the port it comes from, its middle crossbar, the port it goes to.  These say all else: crossbar
 * from / n of the first stage, to / n of the last, and a link on either side. */
typedef struct Trip {
	uint16_t from, middle, to;
} Trip;

/* Parts by number: ports, then crossbars of the three stages, then links of the two. */
enum { TRIP_PARTS = 7 };
uint32_t part_crossbar(const Switch *s, uint32_t stage, uint32_t x); /* stage 0 to 2 */
/* from output y of crossbar x; stage 0, 1 */
uint32_t part_link(const Switch *s, uint32_t stage, uint32_t x, uint32_t y);
uint32_t trip_parts(const Switch *s, Trip w, uint32_t part[TRIP_PARTS]); /* how many: of a ring the two ports alone */
void part_print(const Switch *s, uint32_t part, Buf *out);               /* as dead_add reads it */
void part_kill(Dead *d, const Switch *s, uint32_t part);                 /* marked as dead in d */
bool part_dead(const Dead *d, const Switch *s, uint32_t part);

typedef struct Evidence {
	Ctx *cx;
	const Switch *s;
	uint8_t *good;  /* [parts] a path through it came through every time */
	uint8_t *stray; /* [ports] a word of its came out where it should not */
	Trip *failed;
	uint32_t failures, room;
} Evidence;
Evidence *evidence_new(Ctx *cx, const Switch *s); /* in scratch */
void evidence_good(Evidence *e, Trip w);
void evidence_failed(Evidence *e, Trip w);
void evidence_stray(Evidence *e, uint32_t port);

/* Parts that explain the same failures: one of them is broken, and nothing that was seen tells which. */
enum { MOST_ALIKE = 8 };
typedef struct Suspects {
	uint32_t part[MOST_ALIKE], parts;
} Suspects;
void suspects_print(const Switch *s, const Suspects *list, Buf *out); /* with `or` between */
/* The fewest parts that explain all failures, as far as taking the best first finds them; their number. */
uint32_t evidence_explain(const Evidence *e, Suspects **list); /* in scratch */
/* A path through `part` whose other parts are all good, between ports that `tested` says; false: there is none. */
bool evidence_question(const Evidence *e, uint32_t part, const uint8_t *tested, Trip *w);

/* ---- survivors.c ---- */

/* Configurations of a program of so many processors, in its own numbers: to[k][i], NO_ROUTE: nothing sent. */
typedef struct Wanted {
	uint32_t procs, count;
	uint16_t **to;
} Wanted;
typedef const Wanted *WantedFn(void *user, uint32_t procs);

/* Who the program gets, and how the switch is set for it. Left out: processors that work, but whose words would
 * find no way around what is dead. */
typedef struct Placed {
	uint16_t *port;
	uint32_t procs; /* in the order of the program's processors */
	uint16_t *left_out;
	uint32_t left_outs;
	Setting *setting;
	uint16_t **to;
	uint32_t count; /* as machine ports */
} Placed;
bool port_dead(const Switch *s, uint32_t port); /* known to be: it, or a crossbar on its only way */
/* The first `most` of the candidates (0: all), or others of them where the dead parts of `known` ask for it; as many as
 * find their ways.  In keep. */
Placed *survivors_place(Ctx *cx, const Switch *known, const uint16_t *candidate, uint32_t count, uint32_t most,
                        WantedFn *wanted, void *user);

/* ---- switch_test.c ---- */

typedef struct SwitchTest {
	/* in */
	const Machine *m;
	Faults *faults; /* what is broken; NULL: nothing is */
	const uint16_t *candidate;
	uint32_t candidates; /* ports whose processors can be trusted */
	uint32_t most;       /* processors wanted; 0: all */
	WantedFn *wanted;
	void *user;
	/* in and out: parts known to be dead */
	Switch *known;
	/* out */
	Suspects *located;
	uint32_t locateds, room;
	Placed *placed;                  /* its configurations were tested, and words came through */
	uint32_t configurations, rounds; /* tried in all, with those for locating; rounds of the program's own */
	uint64_t cycles;
	double host_seconds;
} SwitchTest;
/* Fails if words get lost and no part explains it. */
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
	uint64_t cases; /* of the program: what each processor has of them */
	uint32_t procs; /* that it is compiled for; not more than candidates */
	Faults *faults;
	Switch *known; /* dead parts; those found on the way back are added */
	const uint16_t *candidate;
	uint32_t candidates;
	/* out */
	SwitchTest ways;  /* what was found of them */
	uint32_t *result; /* [candidates * RESULTS] bits to compare */
	uint8_t *reached; /* [candidates] had a turn: its words find a way back */
	uint32_t turns;
	uint64_t cycles;
	double host_seconds; /* added to */
	/* of the present turn */
	Ctx *cx;
	uint16_t *to, *self;
	Wanted back;
	uint32_t *member, members; /* candidates by number */
} Alone;
void alone_train(Ctx *cx, Alone *t);
/* Marks those with the most common result; how many they are, 0: as many have another. */
uint32_t alone_common(const Alone *t, uint8_t *common);

/* ---- diagnose.c ---- */

enum { PROC_FINE, PROC_MEMORY, PROC_RESULT, PROC_PORT, PROC_NO_WAY, PROC_VERDICTS };
extern const char *const verdict_names[PROC_VERDICTS];

/* What a program of so many processors uses of each. */
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
	BpOptions o; /* how the program will be compiled; procs: those wanted, 0: all that are fine */
	uint64_t cases;
	uint32_t processors; /* the first so many of the machine are tested */
	Faults *faults;      /* what is broken; NULL: nothing is */
	/* out */
	uint8_t *verdict;    /* [processors] PROC_... */
	uint32_t refused;    /* PROC_MEMORY, PROC_RESULT */
	SwitchTest switches; /* parts located; who the program gets, and how */
	uint32_t rounds;
	uint64_t cycles;
	double host_seconds;
	/* in between */
	Ctx *cx;
	Needs **needs;
	uint32_t need_count, need_room;
	Needs marched; /* what has been tested */
	bool truth_known;
	uint64_t truth[2]; /* trials.c: what a machine without faults computes */
} Diagnosis;
/* All in keep.  Fails if nothing is left, or if processors differ and no result is more common than others. */
void diagnose(Ctx *cx, Diagnosis *d);
void diagnosis_tell(Ctx *cx, const Diagnosis *d); /* a note: who is approved, who is not and why */
const Needs *needs_of(Diagnosis *d, uint32_t procs);
void diagnosis_begin(Ctx *cx, Diagnosis *d); /* what diagnose does first: for tests by hand */

/* ---- trials.c: how good a diagnosis is, for those who know what is broken ---- */

typedef struct Score {
	uint64_t injected, detected, missed, harmless, false_alarms;
	uint64_t approved;                          /* processors; of trials: all together */
	uint64_t by_memory, by_training, by_switch; /* detected */
	uint64_t misplaced;                         /* parts of the switch called dead that were not */
} Score;
bool fault_scored(const Fault *f); /* it is always there, or comes again: not flip, not disk */
void score_diagnosis(Diagnosis *d, Score *s, uint8_t *found, uint8_t *changes); /* [faults] each */
/* `trials` machines with one permanent fault each, number i that of fault_random_...(seed, i).  d has been begun. */
void trials_processors(Diagnosis *d, uint64_t trials, uint64_t seed, Score *s);
void trials_switch(Diagnosis *d, uint64_t trials, uint64_t seed, Score *s);

#endif
