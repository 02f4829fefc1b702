/* SPDX-License-Identifier: MIT */
/* The checksum of checksum.h, word by word: the reference for the kernels of targets. */
#include <string.h>

#include "checksum.h"

uint64_t checksum_of(const void *at, uint64_t bytes)
{
	uint64_t sum = 0;
	for (uint64_t done = 0, n; done < bytes; done += n) {
		uint32_t word = 0;
		n = bytes - done < sizeof word ? bytes - done : sizeof word;
		memcpy(&word, (const uint8_t *)at + done, n);
		sum += word * checksum_factor(done / sizeof word);
	}
	return sum;
}
