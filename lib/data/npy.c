/* SPDX-License-Identifier: MIT */
/* npy: numpy's one-array files, and the arrays inside npz.
 *
 * In: bytes of a file or member.  Out: an Npy, a view whose header is valid and whose elements all lie inside the
 * bytes; from it, arrays of the types a Data holds.  Every x86 is little-endian, so '<' data needs no conversion.
 *
 *     "\x93NUMPY" | major minor | length of the header (2 bytes, from version 2 on 4) | header | elements
 *     header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded with blanks and a newline */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data.h"

/* clang-format off: a table */
const DTypeInfo dtypes[T_COUNT] = {
	[T_F32] = { "f4", "float32", 4 }, [T_F64] = { "f8", "float64", 8 }, [T_F16] = { "f2", "float16", 2 },
	[T_U8] = { "u1", "uint8", 1 },    [T_I8] = { "i1", "int8", 1 },     [T_U16] = { "u2", "uint16", 2 },
	[T_I16] = { "i2", "int16", 2 },   [T_U32] = { "u4", "uint32", 4 },  [T_I32] = { "i4", "int32", 4 },
	[T_U64] = { "u8", "uint64", 8 },  [T_I64] = { "i8", "int64", 8 },   [T_BOOL] = { "b1", "bool", 1 },
};
/* clang-format on */

/* ---- elements ---- */

static double half_get(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	double v = exponent == 0    ? ldexp(fraction, -24)
	           : exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
	                            : ldexp(1024 + fraction, exponent - 25);
	return h & 0x8000 ? -v : v;
}

#define GETTER(NAME, TYPE)                     \
	static double get_##NAME(const uint8_t *p) \
	{                                          \
		TYPE v;                                \
		memcpy(&v, p, sizeof v);               \
		return (double)v;                      \
	}
GETTER(f32, float)
GETTER(f64, double)
GETTER(u8, uint8_t)
GETTER(i8, int8_t)
GETTER(u16, uint16_t)
GETTER(i16, int16_t)
GETTER(u32, uint32_t)
GETTER(i32, int32_t)
GETTER(u64, uint64_t)
GETTER(i64, int64_t)
#undef GETTER
static double get_f16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return half_get(v);
}
static double get_bool(const uint8_t *p) { return *p != 0; }

static double (*const getters[T_COUNT])(const uint8_t *) = {
	[T_F32] = get_f32, [T_F64] = get_f64, [T_F16] = get_f16, [T_U8] = get_u8,   [T_I8] = get_i8,   [T_U16] = get_u16,
	[T_I16] = get_i16, [T_U32] = get_u32, [T_I32] = get_i32, [T_U64] = get_u64, [T_I64] = get_i64, [T_BOOL] = get_bool,
};

double dtype_get(DType t, const void *base, uint64_t index)
{
	return getters[t]((const uint8_t *)base + index * dtypes[t].size);
}

/* Blocks of 16, which the compiler vectorizes; the last block may overlap the one before. */
static void bytes_row(const uint8_t *restrict p, uint64_t count, float *restrict out)
{
	for (uint64_t i = 0; count >= 16 && i < count; i += 16) {
		uint64_t at = i + 16 <= count ? i : count - 16;
		for (int k = 0; k < 16; k++)
			out[at + k] = p[at + k];
	}
	for (uint64_t i = 0; count < 16 && i < count; i++)
		out[i] = p[i];
}

void dtype_row(DType t, const void *base, uint64_t index, uint64_t count, float *out)
{
	const uint8_t *p = (const uint8_t *)base + index * dtypes[t].size;
	if (t == T_F32) {
		if (count)
			memcpy(out, p, count * sizeof *out);
	} else if (t == T_U8) {
		bytes_row(p, count, out);
	} else {
		for (uint64_t i = 0; i < count; i++)
			out[i] = (float)getters[t](p + i * dtypes[t].size);
	}
}

/* A non-negative integer, saturated at `max`; `max` also where the element is none. */
static uint64_t get_whole(DType t, const uint8_t *p, uint64_t max)
{
	uint64_t v = max;
	if (t == T_U64) {
		memcpy(&v, p, 8);
	} else {
		double x = getters[t](p);
		if (x >= 0 && x < 9223372036854775808.0 && x == floor(x))
			v = (uint64_t)x;
		if (t == T_I64 && v != max) /* past 2^53 a double is not exact */
			memcpy(&v, p, 8);
	}
	return v < max ? v : max;
}

/* ---- the header ---- */

typedef struct Head {
	const char *text, *at, *end;
	char wrong[160];
	const char *remedy;
} Head;

static bool wrong(Head *h, const char *remedy, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool wrong(Head *h, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(h->wrong, sizeof h->wrong, fmt, ap);
	va_end(ap);
	h->remedy = remedy;
	return false;
}

static const char save_again[] = "the file is damaged or was not written by numpy.save: write it again";

static char peek(Head *h)
{
	while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t' || *h->at == '\r'))
		h->at++;
	return h->at < h->end ? *h->at : '\0';
}

static bool take(Head *h, char c)
{
	if (peek(h) != c)
		return wrong(h, save_again, "the npy header has no '%c' here", c);
	h->at++;
	return true;
}

static bool quoted(Head *h, Text *t)
{
	char quote = peek(h);
	if (quote != '\'' && quote != '"')
		return wrong(h, save_again, "the npy header has no quoted word here");
	const char *start = ++h->at;
	const char *close = memchr(start, quote, (size_t)(h->end - start));
	if (!close)
		return wrong(h, save_again, "the npy header has a word that does not end");
	*t = (Text){ start, (uint32_t)(close - start) };
	h->at = close + 1;
	return true;
}

static bool whole(Head *h, uint64_t *v)
{
	const char *start = h->at;
	*v = 0;
	for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
		uint64_t digit = (uint64_t)(*h->at - '0');
		if (*v > (INT64_MAX - digit) / 10)
			return wrong(h, save_again, "the npy header has a number over 2^63");
		*v = *v * 10 + digit;
	}
	return h->at > start || wrong(h, save_again, "the npy header has no number here");
}

static bool head_shape(Head *h, Npy *a)
{
	if (!take(h, '('))
		return false;
	while (peek(h) != ')') {
		if (a->dims == (int)COUNT(a->dim))
			return wrong(h, "reshape it before saving", "the array has more than %d dimensions", (int)COUNT(a->dim));
		if (!whole(h, &a->dim[a->dims++]))
			return false;
		if (h->at < h->end && *h->at == 'L') /* Python 2 wrote long numbers so */
			h->at++;
		if (peek(h) != ')' && !take(h, ','))
			return false;
	}
	return take(h, ')');
}

/* What numpy can write that is neither numbers nor text. */
static const struct {
	char kind;
	const char *what, *remedy;
} foreign[] = {
	{ 'O', "Python objects", "save an array of numbers: x.astype('float32')" },
	{ 'c', "complex numbers", "save real and imaginary part as two columns" },
	{ 'V', "records", "save each field as a column of one array" },
	{ 'M', "dates", "save them as numbers: x.astype('float32')" },
	{ 'm', "time spans", "save them as numbers: x.astype('float32')" },
};

static bool head_descr(Head *h, Npy *a)
{
	Text t = { 0 };
	if (peek(h) == '[')
		return wrong(h, foreign[2].remedy, "the array holds %s, not plain numbers", foreign[2].what);
	if (!quoted(h, &t))
		return false;
	h->at = t.s; /* messages point at the type */
	if (t.len < 2 || !strchr("<>|=", t.s[0]))
		return wrong(h, "save it as float32", "'%.*s' is no element type", (int)min_u64(t.len, 40), t.s);
	const char *close = t.s + t.len;
	a->swap = t.s[0] == '>';
	h->at += 2;
	for (size_t i = 0; i < COUNT(foreign); i++)
		if (t.s[1] == foreign[i].kind)
			return wrong(h, foreign[i].remedy, "the array holds %s, not plain numbers", foreign[i].what);
	if (t.s[1] == 'U' || t.s[1] == 'S') {
		uint64_t chars;
		if (!whole(h, &chars))
			return false;
		uint32_t each = t.s[1] == 'U' ? 4 : 1;
		if (h->at != close || chars > UINT32_MAX / 4)
			return wrong(h, save_again, "'%.*s' is no text type", (int)min_u64(t.len, 40), t.s);
		a->string = true;
		a->type = each == 4 ? T_U32 : T_U8;
		a->width = (uint32_t)chars * each;
		h->at = close + 1;
		return true;
	}
	for (int i = 0; i < T_COUNT; i++) {
		if (t.len == 3 && memcmp(t.s + 1, dtypes[i].npy, 2) == 0) {
			a->type = (DType)i;
			a->width = dtypes[i].size;
			h->at = close + 1;
			return true;
		}
	}
	return wrong(h, "use float16, float32, float64, bool, or integers of 8 to 64 bits",
	             "'%.*s' is no element type we know", (int)min_u64(t.len, 40), t.s);
}

static bool head_order(Head *h, Npy *a)
{
	static const char *const words[] = { "False", "True" };
	peek(h);
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(words[i]);
		if ((size_t)(h->end - h->at) >= n && memcmp(h->at, words[i], n) == 0) {
			a->fortran = i;
			h->at += n;
			return true;
		}
	}
	return wrong(h, save_again, "fortran_order is neither True nor False");
}

static const struct {
	const char *key;
	bool (*read)(Head *, Npy *);
} head_keys[] = {
	{ "descr", head_descr },
	{ "fortran_order", head_order },
	{ "shape", head_shape },
};

static bool head_dict(Head *h, Npy *a)
{
	unsigned seen = 0;
	if (!take(h, '{'))
		return false;
	while (peek(h) != '}') {
		Text t = { 0 };
		const char *start = h->at;
		if (!quoted(h, &t))
			return false;
		size_t k = 0;
		while (k < COUNT(head_keys) && !text_is(t, head_keys[k].key))
			k++;
		if (k == COUNT(head_keys) || seen & 1u << k) {
			h->at = start;
			return wrong(h, save_again, "the npy header has a key that does not belong here");
		}
		seen |= 1u << k;
		if (!take(h, ':') || !head_keys[k].read(h, a))
			return false;
		if (peek(h) != '}' && !take(h, ','))
			return false;
	}
	h->at++;
	if (seen != (1u << COUNT(head_keys)) - 1)
		return wrong(h, save_again, "the npy header lacks descr, fortran_order or shape");
	peek(h);
	return h->at == h->end || wrong(h, save_again, "the npy header goes on after its end");
}

/* Sets h to the header in `bytes`. */
static bool head_find(Head *h, const uint8_t *bytes, size_t len)
{
	h->at = h->text = (const char *)bytes;
	h->end = h->text + len;
	if (len < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
		return wrong(h, "write it with numpy.save", "this is no npy array");
	size_t lead = bytes[6] == 1 ? 10 : 12, size = bytes[8] | (size_t)bytes[9] << 8;
	if (bytes[6] < 1 || bytes[6] > 3) {
		h->at += 6;
		return wrong(h, "save it with format version 1, 2 or 3", "npy version %d is not known", bytes[6]);
	}
	if (lead == 12 && len >= lead)
		size |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
	h->at += 8;
	if (len < lead || size > len - lead)
		return wrong(h, "the file is cut short: copy or write it again", "the npy header ends after the file");
	h->at = h->text + lead;
	h->end = h->at + size;
	return true;
}

static bool npy_read(Head *h, Npy *a, const uint8_t *bytes, size_t len)
{
	memset(a, 0, sizeof *a);
	if (!head_find(h, bytes, len) || !head_dict(h, a))
		return false;
	/* A shape with a 0 must not overflow either: products of some of its dimensions are used later. */
	uint64_t product = 1;
	a->count = 1;
	for (int i = 0; i < a->dims; i++) {
		uint64_t n = a->dim[i] ? a->dim[i] : 1;
		if (product > INT64_MAX / n)
			return wrong(h, save_again, "the shape has more elements than any file holds");
		product *= n;
		a->count *= a->dim[i];
	}
	size_t left = len - (size_t)(h->end - h->text);
	h->at = h->end;
	a->data = (const uint8_t *)h->end;
	if (a->width && a->count > left / a->width)
		return wrong(h, "the file is cut short: copy or write it again",
		             "the shape asks for %" PRIu64 " elements of %" PRIu32 " bytes, but only %zu bytes follow",
		             a->count, a->width, left);
	if (a->count * a->width != left)
		return wrong(h, "save every array in a file of its own", "%zu bytes follow the last element",
		             left - (size_t)(a->count * a->width));
	return true;
}

Npy npy_parse(Ctx *cx, const Src *s, size_t off, size_t len)
{
	Head h;
	Npy a;
	if (!npy_read(&h, &a, (const uint8_t *)s->text + off, len))
		fail_at(cx, (Loc){ s, off + (size_t)(h.at - h.text) }, h.remedy, "%s", h.wrong);
	a.mapped = s->mapped;
	return a;
}

bool npy_peek(const void *npy, size_t len, Npy *a)
{
	Head h;
	return npy_read(&h, a, npy, len);
}

static size_t header_write(const char *descr, const uint64_t *dim, int dims, char *out, size_t size)
{
	Npy limit;
	assert(size >= NPY_HEADER && dims <= (int)COUNT(limit.dim));
	size_t n = 10;
	n += (size_t)snprintf(out + n, size - n, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
	for (int i = 0; i < dims; i++)
		n += (size_t)snprintf(out + n, size - n,
		                      i + 1 < dims ? "%" PRIu64 ", "
		                      : dims == 1  ? "%" PRIu64 ","
		                                   : "%" PRIu64,
		                      dim[i]);
	n += (size_t)snprintf(out + n, size - n, "), }");
	size_t total = round_up(n + 1, 64);
	assert(total <= size);
	memset(out + n, ' ', total - n - 1);
	out[total - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01", 8);
	out[8] = (char)((total - 10) & 255);
	out[9] = (char)((total - 10) >> 8);
	return total;
}

size_t npy_header(DType t, const uint64_t *dim, int dims, char *out, size_t size)
{
	char descr[8];
	snprintf(descr, sizeof descr, "%c%s", dtypes[t].size == 1 ? '|' : '<', dtypes[t].npy);
	return header_write(descr, dim, dims, out, size);
}

size_t npy_header_like(const Npy *a, const uint64_t *dim, int dims, char *out, size_t size)
{
	char descr[16];
	char order = dtypes[a->type].size == 1 ? '|' : a->swap ? '>' : '<';
	if (a->string)
		snprintf(descr, sizeof descr, "%c%c%u", order, order == '|' ? 'S' : 'U', a->width / dtypes[a->type].size);
	else
		snprintf(descr, sizeof descr, "%c%s", order, dtypes[a->type].npy);
	return header_write(descr, dim, dims, out, size);
}

/* ---- views to arrays ---- */

/* Index in Fortran order, the first dimension fastest, of element i in C order. */
static uint64_t fortran_index(const Npy *a, uint64_t i)
{
	uint64_t at = 0, stride[COUNT(a->dim)], step = 1;
	for (int k = 0; k < a->dims; k++) {
		stride[k] = step;
		step *= a->dim[k];
	}
	for (int k = a->dims; k-- > 0; i /= a->dim[k])
		at += i % a->dim[k] * stride[k];
	return at;
}

void npy_drop(Ctx *cx, Npy *a)
{
	if (a->block)
		arena_drop(&cx->scratch, a->block, a->block_len, 1);
	a->block = NULL;
}

void npy_normalize(Ctx *cx, Npy *a)
{
	bool transpose = a->fortran && a->dims > 1;
	uint32_t each = dtypes[a->type].size;
	if ((transpose || (a->swap && each > 1)) && a->count && a->width) {
		uint8_t *copy = arena_alloc(&cx->scratch, a->count, a->width);
		for (uint64_t i = 0; i < a->count; i++) {
			const uint8_t *from = a->data + (transpose ? fortran_index(a, i) : i) * a->width;
			uint8_t *to = copy + i * a->width;
			for (uint32_t k = 0; k < a->width; k++)
				to[k] = from[a->swap ? (k | (each - 1)) - (k & (each - 1)) : k];
		}
		npy_drop(cx, a);
		a->data = copy;
		a->block = (char *)copy;
		a->block_len = a->count * a->width;
		a->mapped = false;
	}
	a->fortran = a->swap = false;
}

/* Types read without conversion: a negative number becomes a very large one, which every check refuses. */
static bool same_bits(DType a, DType b)
{
	static const DType twin[T_COUNT] = {
		[T_F32] = T_F32, [T_F64] = T_F64, [T_F16] = T_F16, [T_U8] = T_U8,   [T_I8] = T_I8,   [T_U16] = T_U16,
		[T_I16] = T_I16, [T_U32] = T_U32, [T_I32] = T_U32, [T_U64] = T_U64, [T_I64] = T_U64, [T_BOOL] = T_BOOL,
	};
	return a == b || twin[a] == b;
}

static void convert(const Npy *a, DType want, void *out)
{
	enum { STEP = 1 << 16 };
	for (uint64_t i = 0; i < a->count; i++) {
		if (a->mapped && i && i % STEP == 0)
			pages_release(a->data + (i - STEP) * a->width, (size_t)STEP * a->width);
		const uint8_t *p = a->data + i * a->width;
		if (want == T_F32)
			((float *)out)[i] = (float)getters[a->type](p);
		else if (want == T_F64)
			((double *)out)[i] = getters[a->type](p);
		else if (want == T_U64)
			((uint64_t *)out)[i] = get_whole(a->type, p, UINT64_MAX);
		else if (want == T_U32)
			((uint32_t *)out)[i] = (uint32_t)get_whole(a->type, p, UINT32_MAX);
		else
			((uint8_t *)out)[i] = (uint8_t)get_whole(a->type, p, UINT8_MAX);
	}
}

int array_placement(const Src *s, const DataOptions *opt)
{
	if (s->len > memory_total() / 2)
		return ARRAYS_MAPPED;
	return opt && opt->shared && !opt->first ? ARRAYS_SHARED : ARRAYS_COPIED;
}

/* By chunks, releasing the pages of each: else the array would be in memory twice. */
static void copy_chunks(const Npy *a, uint64_t bytes, uint8_t *out)
{
	for (uint64_t at = 0; at < bytes; at += READ_CHUNK) {
		size_t n = min_u64(bytes - at, READ_CHUNK);
		memcpy(out + at, a->data + at, n);
		if (a->mapped)
			pages_release(a->data + at, n);
	}
}

const void *npy_keep(Ctx *cx, Data *d, Npy *a, int place, DType want)
{
	bool unaligned = want == T_COUNT; /* allowed for x and y; not for arrays of a fixed C type */
	if (unaligned)
		want = a->type;
	bool same = same_bits(a->type, want);
	bool fits = same && (unaligned || (uintptr_t)a->data % dtypes[want].size == 0);
	if (place && !a->block && fits) {
		d->mapped = true;
		return a->data;
	}
	if (a->block && fits) { /* a small block is copied: keep the offset of data in it */
		size_t at = (size_t)((const char *)a->data - a->block);
		char *block = arena_move(&cx->scratch, &cx->keep, a->block, a->block_len, 1);
		a->block = NULL;
		d->bytes += a->count * dtypes[want].size;
		return block + at;
	}
	void *out = arena_alloc(&cx->keep, a->count, dtypes[want].size);
	d->bytes += a->count * dtypes[want].size;
	if (!same)
		convert(a, want, out);
	else
		copy_chunks(a, a->count * dtypes[want].size, out);
	npy_drop(cx, a);
	return out;
}

/* Writes code point c as UTF-8, returns its length; 0: there is no such character. */
static uint32_t utf8(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
		return 0;
	uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (uint32_t i = n; --i > 0; c >>= 6)
		out[i] = (char)(0x80 | (c & 63));
	out[0] = (char)((0xF00u >> n & 0xF0u) | c);
	return n;
}

/* One fixed-width string, without its zero padding. */
static bool text_get(const Npy *a, uint64_t i, Buf *b)
{
	uint32_t each = dtypes[a->type].size, n = a->width / each;
	const uint8_t *p = a->data + i * a->width;
	while (n && dtype_get(a->type, p, n - 1) == 0)
		n--;
	if (each == 1) {
		buf_add(b, p, n);
		return true;
	}
	for (uint32_t k = 0; k < n; k++) {
		char bytes[4];
		uint32_t c, len;
		memcpy(&c, p + (size_t)k * 4, 4);
		len = utf8(c, bytes);
		if (!len)
			return false;
		buf_add(b, bytes, len);
	}
	return true;
}

const Text *npy_texts(Ctx *cx, Data *d, const Npy *a, Loc at)
{
	if (!a->string)
		fail_at(cx, at, "save it as an array of strings", "names are text, but this array holds %s",
		        dtypes[a->type].name);
	Text *t = NEW(&cx->keep, a->count, Text);
	size_t *start = NEW(&cx->scratch, a->count, size_t);
	Buf b = { .arena = &cx->scratch };
	for (uint64_t i = 0; i < a->count; i++) {
		start[i] = b.len;
		if (!text_get(a, i, &b))
			fail_at(cx, at, "write the strings again", "string %" PRIu64 " has a character that Unicode does not have",
			        i);
		t[i].len = (uint32_t)(b.len - start[i]);
		name_check(cx, at, "string", (Text){ b.s ? b.s + start[i] : "", t[i].len });
	}
	const char *pool = arena_copy(&cx->keep, b.len ? b.s : "", b.len);
	for (uint64_t i = 0; i < a->count; i++)
		t[i].s = pool + start[i];
	d->bytes += a->count * sizeof *t + b.len + 1;
	return t;
}
