/* SPDX-License-Identifier: MIT */
/* Data under guard. In: data as it is when training begins. Out: whether some examples still are as they were; if
 * not, they are put right, or training ends.
 *
 * Each array is cut into pieces, each with its seal, if it was asked for: a rank need not read the others' cases.
 * Where a piece is broken, its seal tells the bit that changed, if it was a single one. More than one cannot be put
 * right that way, but a mapped file can be read again. Must hold: nothing of an array of offsets is believed before
 * its own pieces were looked at. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard_data.h"

/* In the order in which they are looked at: offsets first. */
enum { A_SEQ, A_INDPTR, A_INDICES, A_VALUES, A_X, A_Y, A_MASK, A_WEIGHT, A_CODES, ARRAYS };
static const char *const names[ARRAYS] = {
	"offsets of sequences",     "offsets of inputs", "inputs",    "values of inputs", "inputs", "targets",
	"marks of missing targets", "weights of cases",  "code table"
};

struct DataSeals {
	Run *r;
	uint64_t bytes[ARRAYS]; /* as they were: offsets may lie */
	uint64_t *seal[ARRAYS];
	uint8_t *known[ARRAYS]; /* is there a seal of the piece? */
};

typedef struct Array {
	const uint8_t *at;
	uint64_t bytes;
} Array;

static Array array_of(const Data *d, int which)
{
	uint64_t ones = d->x_indptr ? d->x_indptr[d->cases] : 0, targets = d->cases * d->targets;
	const Array all[ARRAYS] = {
		[A_SEQ] = { (const void *)d->seq, (d->sequences + 1) * sizeof *d->seq },
		[A_INDPTR] = { (const void *)d->x_indptr, (d->cases + 1) * sizeof *d->x_indptr },
		[A_INDICES] = { (const void *)d->x_indices, ones * sizeof *d->x_indices },
		[A_VALUES] = { (const void *)d->x_values, ones * sizeof *d->x_values },
		[A_X] = { d->x, d->cases * d->inputs * dtypes[d->x_type].size },
		[A_Y] = { d->y, targets * dtypes[d->y_type].size },
		[A_MASK] = { d->mask, targets },
		[A_WEIGHT] = { (const void *)d->weight, d->cases * sizeof *d->weight },
		[A_CODES] = { (const void *)d->codes, (uint64_t)d->code_count * d->targets * sizeof *d->codes },
	};
	return all[which].at ? all[which] : (Array){ 0 };
}

static uint64_t seal(const DataSeals *s, const void *at, uint64_t bytes)
{
	return s->r->target->guard->checksum ? s->r->target->guard->checksum(s->r->program, at, bytes)
	                                     : checksum_of(at, bytes);
}

DataSeals *data_seals_new(Arena *a, const Data *d, Run *r)
{
	DataSeals *s = NEW(a, 1, DataSeals);
	s->r = r;
	for (int i = 0; i < ARRAYS; i++) {
		s->bytes[i] = array_of(d, i).bytes;
		s->seal[i] = NEW(a, checksum_blocks(s->bytes[i]), uint64_t);
		s->known[i] = NEW(a, checksum_blocks(s->bytes[i]), uint8_t);
	}
	return s;
}

/* Bytes of an array that cases first .. end - 1 need: whole ones where cases do not tell. */
static void bytes_of(const DataSeals *s, const Data *d, int which, uint64_t first, uint64_t end, uint64_t *low,
                     uint64_t *high)
{
	bool listed = which == A_INDICES || which == A_VALUES;

	*low = 0;
	*high = s->bytes[which];
	if (which == A_SEQ || which == A_CODES || !s->bytes[which])
		return;
	if (which == A_INDPTR) {
		*low = first * sizeof *d->x_indptr;
		*high = (end + 1) * sizeof *d->x_indptr;
	} else {
		*low = listed ? d->x_indptr[first] * sizeof(uint32_t) : s->bytes[which] / d->cases * first;
		*high = listed ? d->x_indptr[end] * sizeof(uint32_t) : s->bytes[which] / d->cases * end;
	}
	*high = *high < s->bytes[which] ? *high : s->bytes[which];
}

uint64_t data_seals_add(DataSeals *s, const Data *d, uint64_t first, uint64_t end)
{
	uint64_t low, high, added = 0;

	for (int i = 0; i < ARRAYS; i++) {
		const uint8_t *array = array_of(d, i).at;
		bytes_of(s, d, i, first, end, &low, &high);
		for (uint64_t at = low / CHECKSUM_BLOCK * CHECKSUM_BLOCK; at < high; at += CHECKSUM_BLOCK)
			if (!s->known[i][at / CHECKSUM_BLOCK]) {
				s->seal[i][at / CHECKSUM_BLOCK] = seal(s, array + at, checksum_block_size(s->bytes[i], at));
				s->known[i][at / CHECKSUM_BLOCK] = 1;
				added++;
			}
	}
	return added;
}

/* The seal has changed by the word's factor times a power of two.  The factor is odd, so the power is known at once. */
bool flipped_bit(uint64_t bytes, uint64_t should, uint64_t is, uint64_t *bit)
{
	uint64_t change = is - should, power = 0;

	while (change && power < 32 && !(change >> power & 1))
		power++;
	for (uint64_t word = 0; change && power < 32 && 4 * word < bytes; word++) {
		uint64_t up = checksum_factor(word) << power;
		*bit = 32 * word + power;
		if ((change == up || change == -up) && *bit < 8 * bytes)
			return true;
	}
	return false;
}

/* How the system holds this address: may it be written to, does a file stand behind it? */
static void mapping_of(const void *at, bool *writable, bool *file)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], mode[5];
	unsigned long long low, high, inode;
	*writable = *file = false;
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%llx-%llx %4s %*x %*s %llu", &low, &high, mode, &inode) == 4 && (uintptr_t)at >= low &&
		    (uintptr_t)at < high) {
			*writable = mode[1] == 'w';
			*file = inode != 0 && mode[3] == 'p';
		}
	if (maps)
		fclose(maps);
}

/* Pages of a mapped file are forgotten, and come anew when they are read. */
static void read_again(const uint8_t *at, uint64_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at / page * page;
	madvise((void *)first, (uintptr_t)at + bytes - first, MADV_DONTNEED);
}

/* Several bits of a word may change its seal as one would: then nothing is done. */
static bool flip_back(const DataSeals *s, uint8_t *here, uint64_t size, uint64_t should, uint64_t *bit)
{
	if (!flipped_bit(size, should, seal(s, here, size), bit))
		return false;
	here[*bit / 8] ^= (uint8_t)(1u << *bit % 8);
	if (seal(s, here, size) == should)
		return true;
	here[*bit / 8] ^= (uint8_t)(1u << *bit % 8);
	return false;
}

static const char *put_right(DataSeals *s, const Data *d, int which, uint64_t at, uint64_t *repaired)
{
	Ctx *cx = &s->r->cx;
	uint8_t *here = (uint8_t *)array_of(d, which).at + at;
	uint64_t size = checksum_block_size(s->bytes[which], at), should = s->seal[which][at / CHECKSUM_BLOCK], bit;
	Buf b = { .arena = &cx->scratch };
	bool writable, file;

	mapping_of(here, &writable, &file);
	if (writable && flip_back(s, here, size, should, &bit)) {
		++*repaired;
		buf_printf(&b, "bit %llu of byte %llu of the %s of %s changed by itself, and was put right",
		           (unsigned long long)bit % 8, (unsigned long long)(at + bit / 8), names[which], d->name);
		return b.s;
	}
	if (file && !writable) {
		read_again(here, size);
		if (seal(s, here, size) == should) {
			++*repaired;
			buf_printf(&b, "bytes %llu to %llu of the %s of %s changed by themselves, and were read again",
			           (unsigned long long)at, (unsigned long long)(at + size - 1), names[which], d->name);
			return b.s;
		}
	}
	fail(cx, MP_FAILED, "start again from the last checkpoint that was written before: the data has to be read anew",
	     "the %s of %s changed while they were learnt: bytes %llu to %llu", names[which], d->name,
	     (unsigned long long)at, (unsigned long long)(at + size - 1));
}

/* Bytes low .. high - 1 of an array, in whole pieces. */
static const char *look(DataSeals *s, const Data *d, int which, uint64_t low, uint64_t high, uint64_t *repaired)
{
	const uint8_t *array = array_of(d, which).at;
	const char *wrong = NULL;

	for (uint64_t at = low / CHECKSUM_BLOCK * CHECKSUM_BLOCK; at < high; at += CHECKSUM_BLOCK)
		if (s->known[which][at / CHECKSUM_BLOCK] &&
		    seal(s, array + at, checksum_block_size(s->bytes[which], at)) != s->seal[which][at / CHECKSUM_BLOCK])
			wrong = repaired ? put_right(s, d, which, at, repaired) : names[which];
	return wrong;
}

const char *data_seals_look(DataSeals *s, const Data *d, const Net *net, uint64_t first, uint64_t count,
                            uint64_t *repaired)
{
	const char *wrong = NULL;
	uint64_t low = 0, high = s->bytes[A_SEQ], begin = 0, end = d->cases, cases;

	if (count && high) {
		low = first * sizeof *d->seq;
		high = (first + count + 1) * sizeof *d->seq < high ? (first + count + 1) * sizeof *d->seq : high;
	}
	for (int i = A_SEQ; i < ARRAYS; i++) {
		if (count && i == A_SEQ + 1) { /* sequences are right by now */
			run_example(net, d, first, &begin, &cases);
			run_example(net, d, first + count - 1, &end, &cases);
			end += cases;
		}
		if (i > A_SEQ)
			bytes_of(s, d, i, begin, end, &low, &high);
		const char *what = look(s, d, i, low, high, repaired);
		wrong = what ? what : wrong;
	}
	return wrong;
}
