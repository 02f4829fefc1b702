/* SPDX-License-Identifier: MIT */
/* Decimal numbers to float32, correctly rounded: the bits strtof gives, several times as fast, in any locale.
 *
 * In: text between p and end.  Out: the value and where the number ends, or NULL if there is none.
 *
 * Nearly always the digits fit a 64-bit integer and one double operation with a power of ten lands within 2 units of
 * the last of its 53 bits.  Rounding that to 24 bits is right unless it lies that close to the middle between two
 * floats; then, and outside the float's normal range, the C library decides on a copy of the digits. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { EXACT_DIGITS = 19, MAX_POWER = 63, KEPT = 200 };

static const double powers[MAX_POWER + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
	1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
	1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47,
	1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58, 1e59, 1e60, 1e61, 1e62, 1e63,
};

static bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* Digits from the first that is not zero on, without the point, and a power of ten: no character of it depends on the
 * locale.  Past KEPT digits only "more than nothing" matters: no midpoint of two floats has as many. */
static const char *plain_digits(char text[KEPT + 32], const char *p, const char *end, int64_t exponent)
{
	size_t n = 0;
	bool more = false;
	for (; p < end; p++) {
		if (!is_digit(*p) || (n == 0 && *p == '0')) /* the point, zeros in front */
			continue;
		if (n < KEPT) {
			text[n++] = *p;
		} else {
			more |= *p != '0';
			exponent++;
		}
	}
	if (more) {
		text[n++] = '1';
		exponent--;
	}
	snprintf(text + n, KEPT + 32 - n, "%se%lld", n ? "" : "0", (long long)exponent);
	return text;
}

static float read_hard(const char *p, const char *end, int64_t exponent)
{
	char text[KEPT + 32];
	return strtof(plain_digits(text, p, end, exponent), NULL);
}

/* True if one double operation gives w * 10^exponent correctly rounded. */
static bool read_easy(uint64_t w, int64_t exponent, float *v)
{
	if (w == 0) {
		*v = 0;
		return true;
	}
	if (exponent < -MAX_POWER || exponent > MAX_POWER)
		return false;
	double d = exponent < 0 ? (double)w / powers[-exponent] : (double)w * powers[exponent];
	if (!(d >= (double)FLT_MIN * 2 && d <= (double)FLT_MAX / 2))
		return false;
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	enum { NEAR = 8, BELOW_FLOAT = 0x1fffffff, MIDDLE = 0x10000000 };
	int64_t off = (int64_t)(bits & BELOW_FLOAT) - MIDDLE;
	*v = (float)d;
	return off < -NEAR || off > NEAR;
}

/* nan, inf, infinity in any case; p is after the sign. */
static const char *read_word(const char *p, const char *end, float *v)
{
	static const struct {
		const char *word;
		float value;
	} words[] = {
		{ "infinity", INFINITY },
		{ "inf", INFINITY },
		{ "nan", NAN },
	};
	for (size_t i = 0; i < COUNT(words); i++) {
		size_t n = 0;
		while (words[i].word[n] && p + n < end && (p[n] | 0x20) == words[i].word[n])
			n++;
		if (!words[i].word[n]) {
			*v = words[i].value;
			return p + n;
		}
	}
	return NULL;
}

/* An exponent, if a complete one follows; added to *exponent. */
static const char *read_exponent(const char *p, const char *end, int64_t *exponent)
{
	const char *q = p + 1;
	bool negative = q < end && *q == '-';
	if (q < end && (*q == '-' || *q == '+'))
		q++;
	if (q == end || !is_digit(*q))
		return p;
	int64_t value = 0;
	for (; q < end && is_digit(*q); q++)
		if (value < 1000000000000) /* beyond any length of digits that could make up for it */
			value = value * 10 + (*q - '0');
	*exponent += negative ? -value : value;
	return q;
}

/* Number of significant digits: from the first that is not zero. */
static int64_t count_digits(const char *p, const char *end)
{
	while (p < end && (*p == '0' || *p == '.'))
		p++;
	return end - p - (memchr(p, '.', (size_t)(end - p)) != NULL);
}

const char *number_read(const char *p, const char *end, float *v)
{
	bool negative = p < end && *p == '-';
	p += negative || (p < end && *p == '+');
	const char *body = p;
	uint64_t w = 0; /* wraps if there are too many digits, and is not used then */
	for (; p < end && is_digit(*p); p++)
		w = w * 10 + (uint64_t)(*p - '0');
	int64_t exponent = 0;
	ptrdiff_t point = 0;
	if (p < end && *p == '.') {
		const char *fraction = ++p;
		for (; p < end && is_digit(*p); p++)
			w = w * 10 + (uint64_t)(*p - '0');
		exponent = fraction - p;
		point = 1;
	}
	if (p - body == point) {
		p = point ? NULL : read_word(body, end, v);
		if (p && negative)
			*v = -*v;
		return p;
	}
	const char *digits_end = p;
	if (p < end && (*p | 0x20) == 'e')
		p = read_exponent(p, end, &exponent);
	bool exact = digits_end - body <= EXACT_DIGITS || count_digits(body, digits_end) <= EXACT_DIGITS;
	if (!exact || !read_easy(w, exponent, v))
		*v = read_hard(body, digits_end, exponent);
	*v = negative ? -*v : *v;
	return p;
}

double number_double(const char *p, const char *end)
{
	char text[KEPT + 32];
	bool negative = *p == '-';
	const char *digits_end = p, *point;
	int64_t exponent = 0;
	while (digits_end < end && (*digits_end | 0x20) != 'e')
		digits_end++;
	if (digits_end < end)
		read_exponent(digits_end, end, &exponent);
	point = memchr(p, '.', (size_t)(digits_end - p));
	if (point)
		exponent -= digits_end - point - 1;
	double v = strtod(plain_digits(text, p, digits_end, exponent), NULL);
	return negative ? -v : v;
}

void number_put(Buf *b, float v)
{
	char text[40];
	float back = NAN;
	if (fabsf(v) < 1e6f && v == (float)(int)v && !(v == 0 && signbit(v))) {
		buf_printf(b, "%d", (int)v);
		return;
	}
	for (int digits = 6; digits <= 9 && back != v; digits++) {
		int n = snprintf(text, sizeof text, "%.*g", digits, (double)v);
		char *comma = strchr(text, ','); /* some locales write one */
		if (comma)
			*comma = '.';
		number_read(text, text + n, &back);
	}
	buf_puts(b, text);
}
