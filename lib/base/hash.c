/* SPDX-License-Identifier: MIT */
/* XXH3-128 as text: fingerprints of networks and of weights. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "base.h"

static void hex(XXH128_hash_t hash, char out[33])
{
	static const char digits[] = "0123456789abcdef";
	XXH128_canonical_t bytes;
	XXH128_canonicalFromHash(&bytes, hash);
	for (size_t i = 0; i < sizeof bytes.digest; i++) {
		out[2 * i] = digits[bytes.digest[i] >> 4];
		out[2 * i + 1] = digits[bytes.digest[i] & 15];
	}
	out[2 * sizeof bytes.digest] = 0;
}

void hash_hex(const struct XXH3_state_s *hash, char out[33]) { hex(XXH3_128bits_digest(hash), out); }

void floats_fingerprint(const float *w, uint64_t n, char out[33]) { hex(XXH3_128bits(w, n * sizeof *w), out); }

void hash_weights(XXH3_state_t *state, const double *w, uint64_t n, bool f64)
{
	float single[512];
	for (uint64_t i = 0; i < n; i += COUNT(single)) {
		size_t count = min_u64(n - i, COUNT(single));
		for (size_t k = 0; k < count; k++)
			single[k] = (float)w[i + k];
		XXH3_128bits_update(state, f64 ? (const void *)(w + i) : single, count * (f64 ? sizeof *w : sizeof *single));
	}
}

void weights_fingerprint(const double *w, uint64_t n, bool f64, char out[33])
{
	XXH3_state_t state;
	XXH3_128bits_reset(&state);
	hash_weights(&state, w, n, f64);
	hash_hex(&state, out);
}
