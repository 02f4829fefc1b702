/* SPDX-License-Identifier: MIT */
/* Linear checksums of memory, by blocks, that detect silent data corruption.
 *
 * A block is rows of 16 32-bit words. Its checksum is the sum of all words, each times an odd factor of its own,
 * modulo 2^64. So checksums of parts of a block add up to that of the whole, in any order, and threads may share a
 * block; and the difference of two checksums tells which bit flipped, even where the data is gone.
 * A flipped bit changes the sum by an odd number times a power of two below 2^32, which is not 0: every single flip is
 * detected. So are two in words of one column, for the factors of its rows differ; of other changes at most one in
 * 2^32 is missed.
 * checksum.c has the scalar version, target/cpu/kern/update.inc the vector ones. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stdint.h>

/* bytes of a block; words and bytes of a row; rows of a block */
enum { CHECKSUM_BLOCK = 8192, CHECKSUM_WORDS = 16, CHECKSUM_ROW = 64, CHECKSUM_ROWS = CHECKSUM_BLOCK / CHECKSUM_ROW };

/* Random, odd, all different: word i of row r counts checksum_rows[r] * checksum_words[i] times. */
static const uint32_t checksum_rows[CHECKSUM_ROWS] = {
	0x4c3ef459, 0xf5057fef, 0x1aa5148d, 0xe1eca229, 0xf41fcb29, 0xf137bdc5, 0x623dd8df, 0xb7b3ff7b, 0xe50ee169,
	0x2d752a6b, 0xe52fec15, 0x8330df69, 0x1f76663f, 0x43c243ef, 0x4744f3e1, 0x83923dd1, 0x235f461f, 0xd01e13bf,
	0x43c901ef, 0x5e97f5f9, 0xd2b6c1bb, 0xd8aaa1f7, 0xd20b52cf, 0x55bab91d, 0x38c20ebb, 0x44d09f3d, 0x5a7eff0d,
	0x9f9326bf, 0x89f8f6dd, 0x54dc7651, 0xbe77367b, 0xa557ce75, 0xdd75ef1b, 0xac9448a7, 0x27aae4a7, 0x31146645,
	0xb192e0d9, 0x2f6c72f9, 0xa4c9027d, 0xb8134e77, 0x5fac0dbb, 0xc8395aad, 0xf9524fef, 0x5372f53f, 0xdc083c35,
	0x8c0031d9, 0x573231ef, 0xabda62a9, 0x5508e051, 0x6f021483, 0xeeee7355, 0x93d544bf, 0xb9f16843, 0x749fc883,
	0xc24d025b, 0x9a181999, 0xf12ac1f1, 0xfa50dad1, 0xb5a0e105, 0xbe88c45d, 0xc3017403, 0x657bf825, 0xcedc842f,
	0xace88f9b, 0x6e509ddd, 0xd29e6869, 0xc1189867, 0x945c907b, 0xfc188d19, 0x68ceb6fb, 0xb948c159, 0x54920445,
	0x7e790031, 0x9a66c6af, 0xcc906e11, 0xe06b6ca7, 0xe1482dc5, 0x2a8ff4e9, 0xf0a3117b, 0xafee2375, 0x5747d1df,
	0x21323f33, 0x339364f9, 0xab6b0eed, 0x22229d3d, 0x54ef6e27, 0x162ef271, 0x362406a1, 0xb39b14e9, 0x40797c0d,
	0x63f96bd1, 0xdd02ae8d, 0xbea44bc1, 0x2ccaafaf, 0xe8a2c121, 0xa04b29c5, 0x83cb9775, 0xd36173af, 0x151d1f67,
	0x97d3c89b, 0x6757d343, 0x8a86387f, 0x12be0517, 0xfc90d5c5, 0xde42a8db, 0xe945af39, 0x633645b5, 0x18fbcb37,
	0x569f62a7, 0x483a045f, 0x8201010f, 0xfc500d2b, 0x1bcb9b4f, 0xfda1e09b, 0x790c080f, 0x2833c45b, 0xafe72171,
	0x81dd4c8d, 0x980d5af7, 0xd76f4677, 0xdc69c097, 0xbb27675f, 0x6d66b1e3, 0x7bea9505, 0x77a635eb, 0xbc684bdd,
	0x55081263, 0x325ed4c7,
};
static const uint64_t checksum_words[CHECKSUM_WORDS] = {
	0x1a611bbf78ad8549, 0x7ce4baba915bb3b9, 0x4efc09f5808dcdcd, 0x1b880cdaeb37c483,
	0x4e30ba5fe25d488f, 0xc0b9f94a329ca4bb, 0x9270bcdf58031931, 0xd9b302fc26399a07,
	0xda14e93356bb3d51, 0xb23ed3c66fcc435f, 0x3746d4846c4c2759, 0xa667317b33340229,
	0x60c030e1cb3aa849, 0x15565fb48388cbbb, 0x91f3f6afd4ff2f9d, 0xb73bc49e5018c5a3,
};

/* Factor of a word of a block. */
static inline uint64_t checksum_factor(uint64_t word)
{
	return checksum_rows[word / CHECKSUM_WORDS] * checksum_words[word % CHECKSUM_WORDS];
}

/* Factor of a block where checksums of several are added up: odd, and different for each. */
static inline uint64_t checksum_block_factor(uint64_t block) { return (2 * block + 1) * 0x9e3779b97f4a7c15; }

static inline uint64_t checksum_blocks(uint64_t bytes)
{
	return bytes / CHECKSUM_BLOCK + (bytes % CHECKSUM_BLOCK != 0);
}

static inline uint64_t checksum_block_size(uint64_t bytes, uint64_t at)
{
	return bytes - at < CHECKSUM_BLOCK ? bytes - at : CHECKSUM_BLOCK;
}

uint64_t checksum_of(const void *at, uint64_t bytes); /* of up to a block; GuardHooks.checksum is faster */

#endif
