/* SPDX-License-Identifier: MIT */
/* Disks (section 10.1): training data that come through the switch while the processors train.
 *
 *   cases of a part --image--> words on the disks --receiving routines--> a half of the room for cases in DRAM
 *
 * Disk d sends to processor d, and every processor passes on what it got to the one `disks` further: in so many
 * steps as there are processors for each disk a row, a word for every one of them, is where it belongs. So one
 * configuration of the switch does for all, a word costs nobody an ALU operation, and in every transfer all disks
 * work. A routine receives whole blocks of DISK rows; the order of words is the same in all of them, so the disks
 * need not know which routine takes them. */
#ifndef DISK_H
#define DISK_H

#include "backprop.h"

enum { DISKS_OFF, DISKS_AUTO, DISKS_ON };
extern const char *const disks_names[3];
enum { BP_DISK = BP_SLOPE }; /* relocation register: where rows go in DRAM.  That of units: bundles do not use it */

/* ---- weave.c: receiving, in between what a routine does ----------------------------------------- */

typedef struct Chain {
	uint32_t configuration;
	uint32_t steps;   /* transfers of a row */
	uint32_t side;    /* rows of a block, which are under way together; a multiple of dram_banks */
	uint32_t near;    /* 2 * side words of SRAM */
	uint32_t spacing; /* cycles from one transfer to the next, at least */
} Chain;
uint32_t chain_side(const Machine *m);
typedef struct Woven {
	Routine *routine;
	uint32_t rows; /* received */
	double need;   /* words that each disk must have ready when it begins, if it reads `rate` words a cycle */
} Woven;
/* The routine, receiving as many rows besides, up to `most`, as its length and idle slots allow; routine NULL if
 * that is none. Base NULL: one that does nothing but receive, as fast as it can. */
Woven weave(Ctx *cx, const Machine *m, const Chain *c, const Routine *base, uint32_t most, double rate);

/* ---- disk.c ------------------------------------------------------------------------------------- */

typedef struct DiskAccount {
	/* received; words that the disks sent, those to nobody with them; bytes that arrived */
	uint64_t rows, words, bytes;
	uint64_t carried;         /* rows received during routines that do something else */
	uint64_t load, load_wait; /* cycles until parts were there that were not ordered before; waiting in them */
	uint64_t wait, receive;   /* cycles: all waiting; of routines that only receive */
	uint64_t aside;           /* cycles while it was paused */
	uint64_t cycles;          /* of the whole program */
} DiskAccount;

enum { ALONE = 4 }; /* routines that only receive */
typedef struct BpDisk {
	uint32_t disks, *disk; /* that are used, and which of the machine */
	Chain chain;
	double rate;         /* words a cycle, each */
	double buffer, full; /* words that each holds; so many are left to routines that receive besides */
	Woven alone[ALONE];
	uint32_t alone_routine[ALONE]; /* that only receive: many rows first, one block last */
	Woven *carrier;
	uint32_t *carrier_routine, carriers; /* [routines] which receive besides; rows 0: none */
	bool *tried;                         /* [routines] to make such */
	/* The part on its way. */
	const Data *data;
	uint64_t *cases, count, room;
	bool ordered;
	uint64_t ordered_at;        /* there is one; since this cycle */
	uint32_t to;                /* first word in DRAM */
	uint64_t blocks, rows, got; /* blocks of cases; rows, of which it got so many */
	uint32_t *image;
	uint64_t image_block; /* memory of all processors for one block of cases */
	uint32_t *words;      /* of a call */
	double ready, unread; /* words of each disk: read and not sent; not read, at */
	uint64_t clock;       /* this cycle */
	bool paused;          /* time that passes is not counted */
	/* How long a part takes. */
	uint64_t learning, began; /* cases of the present one, 0: there is none; when it began, waiting not counted */
	double pace;              /* cycles of a case in the part before; 0: not known */
	DiskAccount account;
} BpDisk;

void disk_compile(Bp *b); /* after all other routines; sets b->disk if there is to be one */
/* A part (as for bp_load_cases) starts on its way into the room that is not trained on. */
void disk_order(Bp *b, const Data *d, const uint64_t *cases, uint64_t count);
void disk_order_rows(Bp *b, uint64_t rows); /* so many words for each processor, where nothing is executed */
bool disk_ordered(const Bp *b, const Data *d, const uint64_t *cases, uint64_t count); /* is this part on its way? */
void disk_take(Bp *b); /* waits until it is there; it is the one to train on */
void disk_pause(Bp *b, bool pause);
uint32_t disk_carrier(Bp *b, uint32_t routine);                   /* the routine to call in its place */
void disk_between(Bp *b);                                         /* after a call: receives, if that is late */
DiskAccount disk_account(const Bp *b, const DiskAccount *before); /* so far, with that of programs before it */
bool disk_is_limit(const DiskAccount *a);                         /* did processors wait, but for the first part? */
void disk_print(const Bp *b, Buf *out);
void disk_report(const Bp *b, const DiskAccount *before, Buf *json); /* members of an object */

#endif
