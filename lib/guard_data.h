/* SPDX-License-Identifier: MIT */
/* What a guard does with data: seals of pieces, and a bit that changed put right.  Shared by guard.c and guard_data.c. */
#ifndef GUARD_DATA_H
#define GUARD_DATA_H

#include "guard.h"

typedef struct DataSeals DataSeals;
DataSeals *data_seals_new(Arena *a, const Data *d, Run *r);
/* NULL: examples first .. first + count - 1 (count 0: everything) are as they were.  Else what was wrong; it was put right, and
 * *repaired counts, or it fails. */
const char *data_seals_look(DataSeals *s, const Data *d, const Net *net, uint64_t first, uint64_t count, uint64_t *repaired);
/* The one bit of a piece whose change would make this of its seal, if there is one. */
bool flipped_bit(uint64_t bytes, uint64_t should, uint64_t is, uint64_t *bit);

#endif
