/* SPDX-License-Identifier: MIT */
/* The workbench of the GF11: one routine on a simulated machine, scheduled, run, stepped and drawn.
 * In libmicroprop-study, as microprop/tool.h. */
#ifndef MICROPROP_GF11_H
#define MICROPROP_GF11_H

#include <microprop.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mp_gf11 mp_gf11;

/* All but size may be 0. Lists are as the options of that name of `microprop gf11 run`. */
typedef struct mp_gf11_options {
	size_t size;
	const char *machine; /* a file, or a machine that is built in; NULL: gf11 */
	uint32_t processors; /* 0: all of the machine */
	int level;           /* search effort of the scheduler, 1 to 9; 0: 1; negative: none */
	int zero;            /* memory is 0 where the host's tables are not, instead of pseudo-random */
	const char *const *set;
	size_t sets; /* "sram:100=1.5,2" */
	const char *const *base;
	size_t bases; /* "1=2000": relocation registers */
	const char *const *route;
	size_t routes; /* "0=ring": configurations of the switch */
} mp_gf11_options;

typedef struct mp_gf11_info {
	size_t size;
	const char *name;
	uint32_t processors, lines, cycles; /* lines of microcode; cycles until the last result */
	uint32_t operations, issues;        /* recorded; issued, spills included */
	uint32_t bound;                     /* no schedule is shorter; 0: not known, the routine was read as microcode */
	uint32_t registers, spills;         /* used */
	int optimal;                        /* proven that no schedule is shorter */
	uint64_t cycle;                     /* that comes next */
	int ended;
} mp_gf11_info;

/* An operation as issued. */
typedef struct mp_gf11_issue {
	size_t size;
	uint32_t cycle, done;             /* of issue; the first that can use the result */
	uint32_t unit;                    /* 0 alu, 1 port, 2 dram, 3 switch */
	uint32_t recorded;                /* its place in program order; UINT32_MAX: a spill, or not known */
	const char *name, *text, *source; /* fadd; fadd r1, r2 -> r3; as recorded, NULL: not known */
} mp_gf11_issue;

/* A routine on a machine, at cycle 0. what: the name of a routine of the library, a file of operations or of
 * microcode, or with `text` that is not NULL the name of that text. Operations are scheduled; every routine is
 * checked against the rules of the machine. opt may be NULL. */
MP_API mp_status mp_gf11_open(mp_gf11 **routine, const char *what, const char *text, const mp_gf11_options *opt,
                              const mp_allocator *alloc);
MP_API const char *mp_gf11_get_messages(const mp_gf11 *routine);
MP_API const mp_error *mp_gf11_get_error(const mp_gf11 *routine, size_t i);
MP_API void mp_gf11_close(mp_gf11 *routine);
MP_API const mp_gf11_info *mp_gf11_get_info(mp_gf11 *routine);               /* valid until the next call */
MP_API const mp_gf11_issue *mp_gf11_get_issue(mp_gf11 *routine, uint32_t i); /* the same; NULL past the last */
/* "microcode": the listing; "operations": in program order, of routines that are not read as microcode. */
MP_API mp_status mp_gf11_print(mp_gf11 *routine, const char *what, mp_write_fn *write, void *user);
/* As SVG: "schedule" (units by cycles), "dependences" (the same with an arrow for each), "pipeline". */
MP_API mp_status mp_gf11_draw(mp_gf11 *routine, const char *what, mp_write_fn *write, void *user);
/* Executes `cycles` more, 0: all that are left. */
MP_API mp_status mp_gf11_run(mp_gf11 *routine, uint64_t cycles);
MP_API mp_status mp_gf11_restart(mp_gf11 *routine); /* at cycle 0, memory as at first */
/* Words of a place, "sram:100..107", "reg:0..7@3", "dram:b1+0": word w of its processor p is words[p * count + w].
 * NULL words: only the shape, processors and words. */
MP_API mp_status mp_gf11_read(mp_gf11 *routine, const char *place, uint32_t *words, uint32_t shape[2]);
/* count: words of the place, for every processor the same; or processors times words. */
MP_API mp_status mp_gf11_write(mp_gf11 *routine, const char *place, const uint32_t *words, uint64_t count);
/* A command of the debugger, as `microprop gf11 debug` reads it. */
MP_API mp_status mp_gf11_debug(mp_gf11 *routine, const char *command, mp_write_fn *write, void *user);

#ifdef __cplusplus
}
#endif
#endif
