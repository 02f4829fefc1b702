/* SPDX-License-Identifier: MIT */
/* Which part of the switch is broken: what was seen of paths through it comes in, parts come out.
 *
 *   path came through, path failed --evidence--> parts that can be at fault --question: one more path--> one part */
#ifndef LOCATE_H
#define LOCATE_H

#include "gf11.h"

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

#endif
