/* SPDX-License-Identifier: MIT */
/* What the user writes about parts of the machine, read in small pieces: link:input:3:5, random:7, flip:1e-9. All
 * of these fail at their place, with `remedy`, but those that return bool. */
#ifndef SCAN_H
#define SCAN_H

#include "gf11.h"

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
