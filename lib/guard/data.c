/* SPDX-License-Identifier: MIT */
/* Data under guard. In: data at the start of training. Out: whether some examples match their checksums; if not, they
 * are repaired, or training fails.
 *
 * Each array has a checksum for each block that was asked for: a rank need not read the others' cases. The checksum
 * of a corrupted block tells which bit flipped, if it was a single one. More cannot be repaired that way, but a mapped
 * file can be read again. Arrays of offsets are verified before they are used. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"
#include "system.h"

/* In the order of verification: offsets first. */
enum { A_SEQ, A_INDPTR, A_INDICES, A_VALUES, A_X, A_Y, A_MASK, A_WEIGHT, A_TICKS, A_CODES, ARRAYS };
static const char *const names[ARRAYS] = {
	"offsets of sequences",     "offsets of inputs", "inputs",         "values of inputs", "inputs", "targets",
	"marks of missing targets", "weights of cases",  "ticks of cases", "code table"
};

struct DataChecksums {
	Run *r;
	uint64_t bytes[ARRAYS]; /* at the start: offsets may be corrupted */
	uint64_t *checksum[ARRAYS];
	uint8_t *known[ARRAYS]; /* the block has a checksum */
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
		[A_TICKS] = { (const void *)d->ticks, d->cases * sizeof *d->ticks },
		[A_CODES] = { (const void *)d->codes, (uint64_t)d->code_count * d->targets * sizeof *d->codes },
	};
	return all[which].at ? all[which] : (Array){ 0 };
}

DataChecksums *data_checksums_new(Arena *a, const Data *d, Run *r)
{
	DataChecksums *s = NEW(a, 1, DataChecksums);
	s->r = r;
	for (int i = 0; i < ARRAYS; i++) {
		s->bytes[i] = array_of(d, i).bytes;
		s->checksum[i] = NEW(a, checksum_blocks(s->bytes[i]), uint64_t);
		s->known[i] = NEW(a, checksum_blocks(s->bytes[i]), uint8_t);
	}
	return s;
}

/* Bytes of an array that cases first .. end - 1 need; all of those that are not by case. */
static void bytes_of(const DataChecksums *s, const Data *d, int which, uint64_t first, uint64_t end, uint64_t *low,
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

uint64_t data_checksums_add(DataChecksums *s, const Data *d, uint64_t first, uint64_t end)
{
	uint64_t low, high, added = 0;

	for (int i = 0; i < ARRAYS; i++) {
		const uint8_t *array = array_of(d, i).at;
		bytes_of(s, d, i, first, end, &low, &high);
		for (uint64_t at = low / CHECKSUM_BLOCK * CHECKSUM_BLOCK; at < high; at += CHECKSUM_BLOCK)
			if (!s->known[i][at / CHECKSUM_BLOCK]) {
				s->checksum[i][at / CHECKSUM_BLOCK] =
					block_checksum(s->r, array + at, checksum_block_size(s->bytes[i], at));
				s->known[i][at / CHECKSUM_BLOCK] = 1;
				added++;
			}
	}
	return added;
}

/* The checksum has changed by the word's factor times a power of two. The factor is odd, which gives the power. */
bool flipped_bit(uint64_t bytes, uint64_t expected, uint64_t found, uint64_t *bit)
{
	uint64_t change = found - expected, power = 0;

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

/* The mapping of this address: writable, private mapping of a file. Where the system lists none (there is no /proc, or
 * an emulator leaves it out), mapped files and the caller's arrays may be read-only. */
static void mapping_of(const Data *d, const void *at, bool *writable, bool *file)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], mode[5];
	unsigned long long low, high, inode;
	*writable = !d->mapped && !d->lent;
	*file = false;
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%llx-%llx %4s %*x %*s %llu", &low, &high, mode, &inode) == 4 && (uintptr_t)at >= low &&
		    (uintptr_t)at < high) {
			*writable = mode[1] == 'w';
			*file = inode != 0 && mode[3] == 'p';
		}
	if (maps)
		fclose(maps);
}

/* Drops pages of a mapped file, so that the next access reads them from it. */
static void reread(const uint8_t *at, uint64_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at / page * page;
	madvise((void *)first, (uintptr_t)at + bytes - first, MADV_DONTNEED);
}

/* Several flips in a word may change the checksum like a single one: then nothing is changed. */
static bool flip_back(const DataChecksums *s, uint8_t *here, uint64_t size, uint64_t expected, uint64_t *bit)
{
	assert(here);
	if (!flipped_bit(size, expected, block_checksum(s->r, here, size), bit))
		return false;
	here[*bit / 8] ^= (uint8_t)(1u << *bit % 8);
	if (block_checksum(s->r, here, size) == expected)
		return true;
	here[*bit / 8] ^= (uint8_t)(1u << *bit % 8);
	return false;
}

static const char *repair(DataChecksums *s, const Data *d, int which, uint64_t at, uint64_t *repaired)
{
	Ctx *cx = &s->r->cx;
	uint8_t *here = (uint8_t *)array_of(d, which).at + at;
	uint64_t size = checksum_block_size(s->bytes[which], at), expected = s->checksum[which][at / CHECKSUM_BLOCK], bit;
	Buf b = { .arena = &cx->scratch };
	bool writable, file;

	mapping_of(d, here, &writable, &file);
	if (writable && flip_back(s, here, size, expected, &bit)) {
		++*repaired;
		buf_printf(&b, "bit %llu of byte %llu of the %s of %s changed by itself, and was repaired",
		           (unsigned long long)bit % 8, (unsigned long long)(at + bit / 8), names[which], d->name);
		return b.s;
	}
	if (file && !writable) {
		reread(here, size);
		if (block_checksum(s->r, here, size) == expected) {
			++*repaired;
			buf_printf(&b, "bytes %llu to %llu of the %s of %s changed by themselves, and were read again",
			           (unsigned long long)at, (unsigned long long)(at + size - 1), names[which], d->name);
			return b.s;
		}
	}
	fail(cx, MP_FAILED, "start again from the last checkpoint that was written before: the data has to be read anew",
	     "the %s of %s changed during training: bytes %llu to %llu", names[which], d->name, (unsigned long long)at,
	     (unsigned long long)(at + size - 1));
}

/* Bytes low .. high - 1 of an array, in whole blocks. */
static const char *verify_bytes(DataChecksums *s, const Data *d, int which, uint64_t low, uint64_t high,
                                uint64_t *repaired)
{
	const uint8_t *array = array_of(d, which).at;
	const char *mismatch = NULL;

	for (uint64_t at = low / CHECKSUM_BLOCK * CHECKSUM_BLOCK; at < high; at += CHECKSUM_BLOCK)
		if (s->known[which][at / CHECKSUM_BLOCK] &&
		    block_checksum(s->r, array + at, checksum_block_size(s->bytes[which], at)) !=
		        s->checksum[which][at / CHECKSUM_BLOCK])
			mismatch = repaired ? repair(s, d, which, at, repaired) : names[which];
	return mismatch;
}

const char *data_mismatch(DataChecksums *s, const Data *d, const Net *net, uint64_t first, uint64_t count,
                          uint64_t *repaired)
{
	const char *mismatch = NULL;
	uint64_t low = 0, high = s->bytes[A_SEQ], begin = 0, end = d->cases, cases;

	if (count && high) {
		low = first * sizeof *d->seq;
		high = (first + count + 1) * sizeof *d->seq < high ? (first + count + 1) * sizeof *d->seq : high;
	}
	for (int i = A_SEQ; i < ARRAYS; i++) {
		if (count && i == A_SEQ + 1) { /* offsets of sequences are verified by now */
			run_example(net, d, first, &begin, &cases);
			run_example(net, d, first + count - 1, &end, &cases);
			end += cases;
		}
		if (i > A_SEQ)
			bytes_of(s, d, i, begin, end, &low, &high);
		const char *what = verify_bytes(s, d, i, low, high, repaired);
		mismatch = what ? what : mismatch;
	}
	return mismatch;
}
