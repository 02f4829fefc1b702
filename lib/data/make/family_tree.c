/* SPDX-License-Identifier: MIT */
/* Two families of the same shape (after Hinton 1986).  Out: a case for each fact, "this person's aunts are ...": inputs
 * are a person and a relation, targets all persons that it leads to.  A case is named by its person.
 *
 *     0 = 1                2 = 3          0 2 5 7 9 10: men
 *       |                    |
 *     +-+----+           +---+-+
 * 4 = 5      6 =========== 7   8 = 9
 *                  |
 *               +--+--+
 *              10    11 */
#include <string.h>

#include "make.h"

enum { FAMILIES = 2, PEOPLE = 12, RELATIONS = 12, FACTS = 104, NOBODY = 99 };
static const char *const people[FAMILIES * PEOPLE] = {
	"Anton", "Berta", "Carl", "Dora", "Emma", "Fritz", "Grete", "Hans", "Ida",  "Jakob", "Kurt", "Lena",
	"Aldo",  "Bice",  "Ciro", "Dina", "Elda", "Furio", "Gina",  "Ivo",  "Lola", "Mario", "Nino", "Olga",
};
static const uint8_t man[PEOPLE] = { 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0 };
static const uint8_t spouse[PEOPLE] = { 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, NOBODY, NOBODY };
static const uint8_t father[PEOPLE] = { NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, 0, 0, 2, 2, NOBODY, 7, 7 };

enum { SPOUSE, PARENT, CHILD, SIBLING, OF_PARENT, OF_SIBLING }; /* each twice: of men, of women */

static bool sibling(uint32_t a, uint32_t b) { return a != b && father[a] != NOBODY && father[a] == father[b]; }

static bool child(uint32_t a, uint32_t of)
{
	return father[a] != NOBODY && (father[a] == of || spouse[father[a]] == of);
}

/* A brother or sister of a parent, or whom they are married to. */
static bool of_parent(uint32_t a, uint32_t of)
{
	for (uint32_t p = 0; p < PEOPLE; p++)
		if (child(of, p) && (sibling(a, p) || (spouse[a] != NOBODY && sibling(spouse[a], p))))
			return true;
	return false;
}

/* Is a, in the given relation, what `of` has? */
static bool related(int relation, uint32_t a, uint32_t of)
{
	switch (relation) {
	case SPOUSE: return spouse[of] == a;
	case PARENT: return child(of, a);
	case CHILD: return child(a, of);
	case SIBLING: return sibling(a, of);
	case OF_PARENT: return of_parent(a, of);
	default: return of_parent(of, a);
	}
}

Data *make_family_tree(Ctx *cx, Request *q)
{
	enum { INPUTS = FAMILIES * PEOPLE + RELATIONS, TARGETS = FAMILIES * PEOPLE };
	float *x, *y;
	uint64_t cases = 0;
	Data *d = set_new(cx, FACTS, INPUTS, TARGETS, &x, &y);
	Text *names = NEW(&cx->keep, FACTS, Text);
	(void)q;
	for (uint32_t f = 0; f < FAMILIES; f++)
		for (uint32_t of = 0; of < PEOPLE; of++)
			for (uint32_t r = 0; r < RELATIONS; r++) {
				bool any = false;
				for (uint32_t a = 0; a < PEOPLE; a++) {
					if (man[a] != (r % 2 == 0) || !related((int)r / 2, a, of))
						continue;
					y[cases * TARGETS + f * PEOPLE + a] = 1;
					any = true;
				}
				if (!any)
					continue;
				x[cases * INPUTS + f * PEOPLE + of] = x[cases * INPUTS + FAMILIES * PEOPLE + r] = 1;
				const char *name = people[f * PEOPLE + of];
				names[cases++] = (Text){ name, (uint32_t)strlen(name) };
			}
	d->cases = cases;
	d->names = names;
	return d;
}
