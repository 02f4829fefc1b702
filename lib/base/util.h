/* SPDX-License-Identifier: MIT */
/* Integer and ratio helpers that every module may use. */
#ifndef UTIL_H
#define UTIL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline int32_t min_i32(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t max_i32(int32_t a, int32_t b) { return a > b ? a : b; }
static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
	assert(b > 0);
	return a / b + (a % b != 0);
}
static inline uint64_t round_up(uint64_t a, uint64_t unit) { return ceil_div(a, unit) * unit; }
static inline double share_of(uint64_t part, uint64_t whole) /* 0 of nothing */
{
	return whole ? (double)part / (double)whole : 0;
}

#endif
