/* SPDX-License-Identifier: MIT */
/* Data under guard.  In: data as it is when training begins.  Out: whether some examples still are as they were; if not, they are
 * put right, or training ends.
 *
 * Each array is cut into pieces, each with its seal.  Where a piece is broken, its seal tells the bit that changed, if it was a
 * single one.  More than one cannot be put right that way, but a mapped file can be read again.  Must hold: nothing of an array
 * of offsets is believed before its own pieces were looked at. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard_data.h"

/* In the order in which they are looked at: offsets first. */
enum { A_SEQ, A_INDPTR, A_INDICES, A_VALUES, A_X, A_Y, A_MASK, A_WEIGHT, A_CODES, ARRAYS };
static const char *const names[ARRAYS] = { "offsets of sequences", "offsets of inputs", "inputs", "values of inputs", "inputs", "targets",
                                           "marks of missing targets", "weights of cases", "code table" };

struct DataSeals {
	Run *r;
	uint64_t bytes[ARRAYS];   /* as they were: offsets may lie */
	uint64_t *seal[ARRAYS];
};

typedef struct Array { const uint8_t *at; uint64_t bytes; } Array;

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
	return s->r->target->seal ? s->r->target->seal(s->r->program, at, bytes) : seal_of(at, bytes);
}

DataSeals *data_seals_new(Arena *a, const Data *d, Run *r)
{
	DataSeals *s = NEW(a, 1, DataSeals);
	s->r = r;
	for (int i = 0; i < ARRAYS; i++) {
		Array array = array_of(d, i);
		s->bytes[i] = array.bytes;
		s->seal[i] = NEW(a, pieces_of(array.bytes), uint64_t);
		for (uint64_t at = 0; at < array.bytes; at += PIECE)
			s->seal[i][at / PIECE] = seal(s, array.at + at, piece_size(array.bytes, at));
	}
	return s;
}

/* The seal has changed by the word's factor times a power of two.  The factor is odd, so the power is known at once. */
bool flipped_bit(uint64_t bytes, uint64_t should, uint64_t is, uint64_t *bit)
{
	uint64_t change = is - should, power = 0;

	while (change && power < 32 && !(change >> power & 1))
		power++;
	for (uint64_t word = 0; change && power < 32 && 4 * word < bytes; word++) {
		uint64_t up = seal_factor(word) << power;
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
		if (sscanf(line, "%llx-%llx %4s %*x %*s %llu", &low, &high, mode, &inode) == 4 && (uintptr_t)at >= low && (uintptr_t)at < high) {
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
	uint64_t size = piece_size(s->bytes[which], at), should = s->seal[which][at / PIECE], bit;
	Buf b = { .arena = &cx->scratch };
	bool writable, file;

	mapping_of(here, &writable, &file);
	if (writable && flip_back(s, here, size, should, &bit)) {
		++*repaired;
		buf_printf(&b, "bit %llu of byte %llu of the %s of %s changed by itself, and was put right", (unsigned long long)bit % 8,
		           (unsigned long long)(at + bit / 8), names[which], d->name);
		return b.s;
	}
	if (file && !writable) {
		read_again(here, size);
		if (seal(s, here, size) == should) {
			++*repaired;
			buf_printf(&b, "bytes %llu to %llu of the %s of %s changed by themselves, and were read again", (unsigned long long)at,
			           (unsigned long long)(at + size - 1), names[which], d->name);
			return b.s;
		}
	}
	fail(cx, MP_FAILED, "start again from the last checkpoint that was written before: the data has to be read anew",
	     "the %s of %s changed while they were learnt: bytes %llu to %llu", names[which], d->name, (unsigned long long)at,
	     (unsigned long long)(at + size - 1));
}

/* Bytes low .. high - 1 of an array, in whole pieces. */
static const char *look(DataSeals *s, const Data *d, int which, uint64_t low, uint64_t high, uint64_t *repaired)
{
	const uint8_t *array = array_of(d, which).at;
	const char *wrong = NULL;

	high = high < s->bytes[which] ? high : s->bytes[which];
	for (uint64_t at = low / PIECE * PIECE; at < high; at += PIECE)
		if (seal(s, array + at, piece_size(s->bytes[which], at)) != s->seal[which][at / PIECE])
			wrong = put_right(s, d, which, at, repaired);
	return wrong;
}

const char *data_seals_look(DataSeals *s, const Data *d, const Net *net, uint64_t first, uint64_t count, uint64_t *repaired)
{
	const char *wrong = NULL;
	uint64_t low[ARRAYS] = { 0 }, high[ARRAYS], begin = 0, end = d->cases, unused;

	for (int i = 0; i < ARRAYS; i++)
		high[i] = UINT64_MAX;
	for (int i = 0; i < ARRAYS; i++) {
		if (count && i == A_SEQ) {
			low[i] = first * sizeof *d->seq;
			high[i] = (first + count + 1) * sizeof *d->seq;
		}
		if (count && i == A_INDPTR) {                /* sequences are right by now */
			run_example(net, d, first, &begin, &unused);
			run_example(net, d, first + count - 1, &end, &unused);
			end += unused;
			low[i] = begin * sizeof *d->x_indptr;
			high[i] = (end + 1) * sizeof *d->x_indptr;
		}
		if (count && i > A_INDPTR && i < A_CODES) {
			bool listed = (i == A_INDICES || i == A_VALUES) && s->bytes[i];
			low[i] = listed ? d->x_indptr[begin] * sizeof(uint32_t) : s->bytes[i] / d->cases * begin;
			high[i] = listed ? d->x_indptr[end] * sizeof(uint32_t) : s->bytes[i] / d->cases * end;
		}
		const char *what = look(s, d, i, low[i], high[i], repaired);
		wrong = what ? what : wrong;
	}
	return wrong;
}
