/* SPDX-License-Identifier: MIT */
/* The container of weights and checkpoints: safetensors, as PyTorch and others read it.
 *
 *     | header length, 8 bytes, little-endian | header: JSON, padded with spaces | data |
 *     {"__metadata__":{"checksum":"..","format":".."},"a_to_b":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}, ..}
 *
 * In: a file.  Out: its tensors and metadata, every bound checked: offsets lie in the file, fit dtype and shape, do not
 * overlap and leave no gaps.  And the inverse, written atomically.
 * The checksum is XXH3-128 over the whole file with its own 32 digits taken as '0'.  Files of other programs have none.
 * Numbers are little-endian, as in memory. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "store.h"

#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files hold little-endian numbers"
#endif

enum { LENGTH_BYTES = 8, DATA_ALIGN = 64, DIGITS = 32, MAX_HEADER = 100000000, SINK_BYTES = 1 << 16 };

/* ---- types -------------------------------------------------------------------------------------- */

/* Only types that weights or indices can have are ever read, as a DType; T_COUNT: known by its size only. */
static const struct {
	const char *name;
	uint8_t size;
	DType type;
} types[SAFE_TYPES] = {
	[SAFE_F64] = { "F64", 8, T_F64 },           [SAFE_I64] = { "I64", 8, T_I64 },
	[SAFE_U64] = { "U64", 8, T_COUNT },         [SAFE_F32] = { "F32", 4, T_F32 },
	[SAFE_I32] = { "I32", 4, T_I32 },           [SAFE_U32] = { "U32", 4, T_COUNT },
	[SAFE_F16] = { "F16", 2, T_F16 },           [SAFE_BF16] = { "BF16", 2, T_COUNT },
	[SAFE_I16] = { "I16", 2, T_COUNT },         [SAFE_U16] = { "U16", 2, T_COUNT },
	[SAFE_I8] = { "I8", 1, T_COUNT },           [SAFE_U8] = { "U8", 1, T_COUNT },
	[SAFE_F8_E5M2] = { "F8_E5M2", 1, T_COUNT }, [SAFE_F8_E4M3] = { "F8_E4M3", 1, T_COUNT },
	[SAFE_BOOL] = { "BOOL", 1, T_COUNT },
};

/* The upper half of a float. */
static double bf16_get(const void *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof v);
	uint32_t bits = (uint32_t)v << 16;
	return dtype_get(T_F32, &bits, 0);
}

const char *safe_type_name(int type) { return types[type].name; }

bool safe_is_real(int type) { return type == SAFE_F64 || type == SAFE_F32 || type == SAFE_F16 || type == SAFE_BF16; }

double safe_number(const SafeFile *s, const Tensor *t, uint64_t i)
{
	const char *at = s->src->text + s->data + t->off;
	if (t->type == SAFE_BF16)
		return bf16_get(at + 2 * i);
	assert(types[t->type].type != T_COUNT);
	return dtype_get(types[t->type].type, at, i);
}

void safe_release(const SafeFile *s)
{
	if (s->src->mapped)
		pages_release(s->src->text, s->src->len);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static const char damaged[] = "the file is damaged or cut short; use another copy, or the checkpoint before it";
static const char not_ours[] = "is it a safetensors file? microprop train --save writes one";

static void tree_free(void *arg)
{
	json_t **tree = arg;
	json_decref(*tree);
}

Loc safe_loc(const SafeFile *s, const char *name)
{
	Loc at = { s->src, LENGTH_BYTES };
	size_t len = strlen(name), end = s->data;
	const char *text = s->src->text;
	for (size_t i = LENGTH_BYTES; i + len + 2 <= end; i++) {
		const char *quote = memchr(text + i, '"', end - len - 1 - i);
		if (!quote)
			break;
		i = (size_t)(quote - text);
		if (memcmp(quote + 1, name, len) == 0 && quote[len + 1] == '"') {
			at.off = i;
			break;
		}
	}
	return at;
}

/* Text as a JSON tree, freed with scratch; NULL if it is invalid. */
static json_t *tree_load(Ctx *cx, const Src *src, const char *text, size_t len, json_error_t *error)
{
	json_t **tree = NEW(&cx->scratch, 1, json_t *);
	arena_defer(&cx->scratch, tree_free, tree);
	*tree = json_loadb(text, len, JSON_REJECT_DUPLICATES, error);
	if (!*tree && json_error_code(error) == json_error_out_of_memory)
		fail(cx, MP_NO_MEMORY, NULL, "out of memory while reading the header of %s", src->name);
	return *tree;
}

/* Keys and values of a tree, at any depth.  Values that are not names may have tabs and line ends. */
static void tree_check(Ctx *cx, Loc at, json_t *tree)
{
	const char *key;
	json_t *v;
	size_t i;
	if (json_is_string(tree))
		name_check(cx, at, "text", (Text){ json_string_value(tree), (uint32_t)json_string_length(tree) });
	json_array_foreach(tree, i, v) tree_check(cx, at, v);
	json_object_foreach(tree, key, v)
	{
		name_check(cx, at, "key", (Text){ key, (uint32_t)strlen(key) });
		if (strpbrk(key, "\t\r\n"))
			fail_at(cx, at, damaged, "key '%.40s' has a tab or line end in it", key);
		tree_check(cx, at, v);
	}
}

static json_t *read_header(Ctx *cx, const Src *src, size_t len)
{
	json_error_t error;
	Loc at = { src, LENGTH_BYTES };
	if (src->text[LENGTH_BYTES] != '{')
		fail_at(cx, at, not_ours, "the header does not begin with '{'");
	json_t *tree = tree_load(cx, src, src->text + LENGTH_BYTES, len, &error);
	at.off += error.position > 0 ? (size_t)error.position - 1 : 0;
	if (!tree)
		fail_at(cx, at, damaged, "the header is not JSON: %s", error.text);
	tree_check(cx, at, tree);
	return tree;
}

json_t *safe_json(Ctx *cx, const SafeFile *s, const char *key)
{
	const char *text = safe_meta(s, key);
	json_error_t error;
	json_t *tree = tree_load(cx, s->src, text, strlen(text), &error);
	if (!tree)
		fail_at(cx, safe_loc(s, key), damaged, "metadata %s is not JSON: %s", key, error.text);
	tree_check(cx, safe_loc(s, key), tree);
	return tree;
}

static int type_find(const char *name)
{
	for (int i = 0; i < SAFE_TYPES; i++)
		if (name && strcmp(types[i].name, name) == 0)
			return i;
	return -1;
}

static bool whole(const json_t *v, uint64_t *out)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

static void read_shape(Ctx *cx, const SafeFile *s, Tensor *t, const json_t *shape)
{
	if (!json_is_array(shape))
		fail_at(cx, safe_loc(s, t->name), damaged, "tensor %s has no shape", t->name);
	if (json_array_size(shape) > SAFE_DIMS)
		fail_at(cx, safe_loc(s, t->name), "weights have one or two", "tensor %s has %zu dimensions", t->name,
		        json_array_size(shape));
	t->dims = (int)json_array_size(shape);
	t->count = 1;
	for (int i = 0; i < t->dims; i++) {
		if (!whole(json_array_get(shape, (size_t)i), &t->dim[i]))
			fail_at(cx, safe_loc(s, t->name), damaged, "the shape of tensor %s is not made of whole numbers", t->name);
		if (t->dim[i] && t->count > UINT64_MAX / t->dim[i])
			fail_at(cx, safe_loc(s, t->name), damaged, "the shape of tensor %s is too large for any file", t->name);
		t->count *= t->dim[i];
	}
	if (t->count > UINT64_MAX / types[t->type].size)
		fail_at(cx, safe_loc(s, t->name), damaged, "the shape of tensor %s is too large for any file", t->name);
	t->bytes = t->count * types[t->type].size;
}

static void read_tensor(Ctx *cx, const SafeFile *s, Tensor *t, const json_t *v)
{
	const char *type = json_string_value(json_object_get(v, "dtype"));
	const json_t *offsets = json_object_get(v, "data_offsets");
	uint64_t begin, end, size = s->src->len - s->data;

	if (!json_is_object(v) || !type)
		fail_at(cx, safe_loc(s, t->name), damaged, "entry %s of the header is not a tensor: it has no dtype", t->name);
	t->type = type_find(type);
	if (t->type < 0)
		fail_at(cx, safe_loc(s, t->name), "save it as F32, F64, F16 or BF16", "tensor %s has the unknown dtype %s",
		        t->name, type);
	read_shape(cx, s, t, json_object_get(v, "shape"));
	if (json_array_size(offsets) != 2 || !whole(json_array_get(offsets, 0), &begin) ||
	    !whole(json_array_get(offsets, 1), &end))
		fail_at(cx, safe_loc(s, t->name), damaged, "data_offsets of tensor %s are not two whole numbers", t->name);
	if (begin > end)
		fail_at(cx, safe_loc(s, t->name), damaged, "tensor %s ends at %" PRIu64 ", before its beginning at %" PRIu64,
		        t->name, end, begin);
	if (end > size)
		fail_at(cx, safe_loc(s, t->name), damaged,
		        "tensor %s ends at byte %" PRIu64 " of the data, which has only %" PRIu64, t->name, end, size);
	if (end - begin != t->bytes)
		fail_at(cx, safe_loc(s, t->name), damaged,
		        "tensor %s takes %" PRIu64 " bytes, but its dtype and shape make %" PRIu64, t->name, end - begin,
		        t->bytes);
	t->off = begin;
}

static void read_metadata(Ctx *cx, SafeFile *s, json_t *meta)
{
	const char *key;
	json_t *v;
	if (!json_is_object(meta))
		fail_at(cx, safe_loc(s, "__metadata__"), damaged, "__metadata__ is not an object");
	s->meta = NEW(&cx->scratch, json_object_size(meta), Meta);
	json_object_foreach(meta, key, v)
	{
		if (!json_is_string(v))
			fail_at(cx, safe_loc(s, key), "every value there is a string", "metadata %s is not a string", key);
		s->meta[s->metas++] = (Meta){ key, json_string_value(v) };
	}
}

static int by_offset(const void *a, const void *b)
{
	const Tensor *x = a, *y = b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const Tensor *)a)->name, ((const Tensor *)b)->name);
}

/* Every byte of the data belongs to exactly one tensor. */
static void check_cover(Ctx *cx, const SafeFile *s)
{
	uint64_t end = 0, size = s->src->len - s->data;
	for (uint32_t i = 0; i < s->tensors; i++) {
		const Tensor *t = &s->tensor[i];
		if (t->off < end)
			fail_at(cx, safe_loc(s, t->name), damaged, "tensor %s overlaps tensor %s", t->name, s->tensor[i - 1].name);
		if (t->off > end)
			fail_at(cx, safe_loc(s, t->name), damaged, "%" PRIu64 " bytes before tensor %s belong to none",
			        t->off - end, t->name);
		end = t->off + t->bytes;
	}
	if (end != size)
		fail_at(cx, (Loc){ s->src, s->data + (size_t)end }, damaged,
		        "%" PRIu64 " bytes after the last tensor belong to none", size - end);
}

/* Our own writer puts the checksum first, at a fixed place. */
static const char checksum_start[] = "{\"__metadata__\":{\"checksum\":\"";
enum { CHECKSUM_AT = LENGTH_BYTES + sizeof checksum_start - 1 };

/* All bytes from `at` on, by chunks whose pages are released. */
static void hash_source(XXH3_state_t *state, const Src *src, size_t at)
{
	for (size_t released = 0, n; at < src->len; at += n) {
		n = min_u64(src->len - at, READ_CHUNK);
		XXH3_128bits_update(state, src->text + at, n);
		src_release(src, &released, at + n);
	}
}

static void check_sum(Ctx *cx, SafeFile *s, const char *said)
{
	static const char none[] = "00000000000000000000000000000000";
	const Src *src = s->src;
	XXH3_state_t *state = NEW(&cx->scratch, 1, XXH3_state_t);
	char found[DIGITS + 1];
	if (strlen(said) != DIGITS || s->data < CHECKSUM_AT + DIGITS || memcmp(src->text + CHECKSUM_AT, said, DIGITS) != 0)
		fail_at(cx, safe_loc(s, "checksum"), "remove 'checksum' and 'format' from its metadata to load it as it is",
		        "this file was written again by another program");
	XXH3_128bits_reset(state);
	XXH3_128bits_update(state, src->text, CHECKSUM_AT);
	XXH3_128bits_update(state, none, DIGITS);
	hash_source(state, src, CHECKSUM_AT + DIGITS);
	hash_hex(state, found);
	if (strcmp(found, said) != 0)
		fail_at(cx, safe_loc(s, "checksum"), damaged, "the checksum is %s, but the file says %s", found, said);
	s->verified = true;
}

bool safe_looks(const Src *src)
{
	uint64_t len;
	if (src->len < LENGTH_BYTES + 2)
		return false;
	memcpy(&len, src->text, sizeof len);
	return len <= MAX_HEADER && src->text[LENGTH_BYTES] == '{';
}

SafeFile *safe_read(Ctx *cx, const Src *src)
{
	SafeFile *s = NEW(&cx->scratch, 1, SafeFile);
	uint64_t len;
	s->src = src;
	if (src->len < LENGTH_BYTES + 2)
		fail_at(cx, (Loc){ src, 0 }, not_ours, "the file has only %zu bytes", src->len);
	memcpy(&len, src->text, sizeof len);
	if (len > MAX_HEADER && src->text[LENGTH_BYTES] != '{')
		fail_at(cx, (Loc){ src, 0 }, "microprop train --save writes one; data is named after it: NETWORK WEIGHTS DATA",
		        "this is not a file of weights (safetensors)");
	if (len > MAX_HEADER || len < 2)
		fail_at(cx, (Loc){ src, 0 }, not_ours, "a header of %" PRIu64 " bytes cannot be", len);
	if (len > src->len - LENGTH_BYTES)
		fail_at(cx, (Loc){ src, 0 }, src->text[LENGTH_BYTES] == '{' ? damaged : not_ours,
		        "the header should have %" PRIu64 " bytes, but the file ends after %zu", len, src->len - LENGTH_BYTES);
	s->data = LENGTH_BYTES + (size_t)len;

	json_t *tree = read_header(cx, src, (size_t)len), *v;
	const char *key;
	if (json_object_get(tree, "__metadata__"))
		read_metadata(cx, s, json_object_get(tree, "__metadata__"));
	s->tensor = NEW(&cx->scratch, json_object_size(tree), Tensor);
	json_object_foreach(tree, key, v)
	{
		if (strcmp(key, "__metadata__") == 0)
			continue;
		Tensor *t = &s->tensor[s->tensors++];
		t->name = key;
		read_tensor(cx, s, t, v);
	}
	qsort(s->tensor, s->tensors, sizeof *s->tensor, by_offset);
	check_cover(cx, s);
	qsort(s->tensor, s->tensors, sizeof *s->tensor, by_name);
	if (safe_meta(s, "checksum"))
		check_sum(cx, s, safe_meta(s, "checksum"));
	return s;
}

Tensor *safe_find(const SafeFile *s, const char *name)
{
	Tensor key = { .name = name };
	return s->tensors ? bsearch(&key, s->tensor, s->tensors, sizeof key, by_name) : NULL;
}

const char *safe_meta(const SafeFile *s, const char *key)
{
	for (uint32_t i = 0; i < s->metas; i++)
		if (strcmp(s->meta[i].key, key) == 0)
			return s->meta[i].value;
	return NULL;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* Destination of numbers: memory for all of them, or a buffer that is flushed when full. */
struct SafeSink {
	int type;
	char *at, *begin, *end;
	uint64_t before;    /* bytes flushed */
	XXH3_state_t *hash; /* of them; or NULL */
	OutFile *file;      /* written to; or NULL */
};

static void sink_empty(SafeSink *out)
{
	size_t len = (size_t)(out->at - out->begin);
	if (out->hash)
		XXH3_128bits_update(out->hash, out->begin, len);
	if (out->file)
		file_write(out->file, out->begin, len);
	out->before += len;
	out->at = out->begin;
}

static void sink_add(SafeSink *out, const void *bytes, size_t len)
{
	if ((size_t)(out->end - out->at) < len)
		sink_empty(out);
	memcpy(out->at, bytes, len);
	out->at += len;
}

void safe_put(SafeSink *out, double value)
{
	if (out->type == SAFE_F64) {
		sink_add(out, &value, sizeof value);
	} else if (out->type == SAFE_F32) {
		float single = (float)value;
		sink_add(out, &single, sizeof single);
	} else {
		int32_t index = (int32_t)value;
		sink_add(out, &index, sizeof index);
	}
}

static void put_tensor(Buf *b, const Tensor *t)
{
	buf_puts(b, ",");
	json_put(b, t->name);
	buf_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", types[t->type].name);
	for (int i = 0; i < t->dims; i++)
		buf_printf(b, "%s%" PRIu64, i ? "," : "", t->dim[i]);
	buf_printf(b, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->off, t->off + t->bytes);
}

/* Length and header, with zeros for the checksum; the data after it is aligned for vector loads. */
static void put_header(Buf *b, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas)
{
	uint64_t off = 0, len = 0;
	buf_add(b, &len, sizeof len);
	buf_printf(b, "%s%0*d\"", checksum_start, DIGITS, 0);
	for (uint32_t i = 0; i < metas; i++) {
		buf_puts(b, ",");
		json_put(b, m[i].key);
		buf_puts(b, ":");
		json_put(b, m[i].value);
	}
	buf_puts(b, "}");
	for (uint32_t i = 0; i < tensors; i++) {
		t[i].off = off;
		t[i].count = 1;
		for (int d = 0; d < t[i].dims; d++)
			t[i].count *= t[i].dim[d];
		t[i].bytes = t[i].count * types[t[i].type].size;
		off += t[i].bytes;
		put_tensor(b, &t[i]);
	}
	buf_puts(b, "}");
	while (b->len % DATA_ALIGN != 0)
		buf_puts(b, " ");
	len = b->len - sizeof len;
	memcpy(b->s, &len, sizeof len);
}

static Buf header_make(Ctx *cx, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas)
{
	Buf header = { .arena = &cx->scratch };
	put_header(&header, t, tensors, m, metas);
	if (header.len > MAX_HEADER)
		fail(cx, MP_FAILED, "join slices: connect whole groups where you can",
		     "the network has too many blocks of links for one file");
	return header;
}

static void put_data(SafeSink *out, const Tensor *t, uint32_t tensors, SafeFill *fill, void *user)
{
	uint64_t begin = out->before + (uint64_t)(out->at - out->begin);
	for (uint32_t i = 0; i < tensors; i++) {
		out->type = t[i].type;
		fill(user, i, out);
		assert(out->before + (uint64_t)(out->at - out->begin) == begin + t[i].off + t[i].bytes);
	}
	(void)begin;
}

Content safe_image(Ctx *cx, Arena *arena, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas, SafeFill *fill,
                   void *user)
{
	Buf header = header_make(cx, t, tensors, m, metas);
	char digits[DIGITS + 1];
	uint64_t data = tensors ? t[tensors - 1].off + t[tensors - 1].bytes : 0;
	Content image = { arena_alloc_raw(arena, header.len + data, 1), header.len + data };
	SafeSink out = { .at = image.at, .begin = image.at, .end = image.at + image.len };
	sink_add(&out, header.s, header.len);
	put_data(&out, t, tensors, fill, user);
	XXH3_state_t hash;
	XXH3_128bits_reset(&hash);
	XXH3_128bits_update(&hash, image.at, image.len);
	hash_hex(&hash, digits);
	memcpy(image.at + CHECKSUM_AT, digits, DIGITS);
	return image;
}

/* Two passes: the checksum comes before the data. */
void safe_write(Ctx *cx, const char *path, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas, SafeFill *fill,
                void *user)
{
	enum { BUFFER = 1 << 16 };
	Buf header = header_make(cx, t, tensors, m, metas);
	char digits[DIGITS + 1], *buffer = NEW(&cx->scratch, BUFFER, char);
	XXH3_state_t hash;
	XXH3_128bits_reset(&hash);
	XXH3_128bits_update(&hash, header.s, header.len);
	SafeSink out = { .at = buffer, .begin = buffer, .end = buffer + BUFFER, .hash = &hash };
	put_data(&out, t, tensors, fill, user);
	sink_empty(&out);
	hash_hex(&hash, digits);
	memcpy(header.s + CHECKSUM_AT, digits, DIGITS);
	out.hash = NULL;
	out.file = file_create(cx, &cx->scratch, path);
	file_verify(out.file, 1);
	file_write(out.file, header.s, header.len);
	put_data(&out, t, tensors, fill, user);
	sink_empty(&out);
	file_commit(cx, out.file);
}
