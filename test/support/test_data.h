/* SPDX-License-Identifier: MIT */
/* What the tests of data share: a folder to write in, calls with an edge, comparisons, samples. */
#ifndef TEST_DATA_H
#define TEST_DATA_H

#include "formats.h"
#include "make.h"
#include "old.h"
#include "test.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIVE_UP(...) (print_error(__VA_ARGS__), _fail(__FILE__, __LINE__))

/* ---- a place to write, and calls with an edge ---- */

static char folder[64];

static inline const char *path_of(const char *name)
{
	static char path[4][400];
	static int next;
	next = (next + 1) % 4;
	snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
	return path[next];
}

static inline int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/microprop-data-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	(void)state;
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			unlink(path_of(e->d_name));
	closedir(dir);
	return rmdir(folder);
}

typedef struct Call {
	const char *path;
	const DataOptions *opt;
	const Data *in;
	Data *out;
	double share;
	int kind;
	const Scale *scale;
	mp_data_info info;
} Call;

static inline void do_open(Ctx *cx, void *arg)
{
	Call *c = arg;
	c->out = data_open(cx, c->path, c->opt);
}

static inline void do_write(Ctx *cx, void *arg)
{
	Call *c = arg;
	data_write(cx, c->in, c->path);
}

static inline void do_part(Ctx *cx, void *arg)
{
	Call *c = arg;
	c->out = data_split(cx, c->in, c->share, 7, c->kind);
}

static inline void do_scale(Ctx *cx, void *arg)
{
	Call *c = arg;
	if (c->scale)
		data_scale_apply(cx, &cx->keep, c->out, c->scale);
	else
		data_scale_fit(cx, c->out, c->kind);
}

static inline void do_describe(Ctx *cx, void *arg)
{
	Call *c = arg;
	data_describe(cx, c->in, &c->info);
}

/* As a public call would: old messages go first, scratch last. */
static inline Status call(Ctx *cx, void (*body)(Ctx *, void *), Call *c)
{
	cx->errors = 0;
	messages_drop(cx, 0);
	Status s = guarded(cx, body, c);
	arena_free(&cx->scratch);
	return s;
}

static inline Data *must_open(Ctx *cx, const char *path, const DataOptions *opt)
{
	Call c = { .path = path, .opt = opt };
	Status s = call(cx, do_open, &c);
	if (s != MP_OK)
		print_error("%s", ctx_messages(cx));
	assert_int_equal(s, MP_OK);
	return c.out;
}

static inline void must_write(Ctx *cx, const Data *d, const char *path)
{
	Call c = { .path = path, .in = d };
	Status s = call(cx, do_write, &c);
	if (s != MP_OK)
		print_error("%s", ctx_messages(cx));
	assert_int_equal(s, MP_OK);
}

/* Fails with bad input, and a message that has `part` in it. */
static inline void must_refuse(const char *path, const DataOptions *opt, const char *part)
{
	Ctx cx;
	Call c = { .path = path, .opt = opt };
	ctx_init(&cx, NULL);
	assert_int_equal(call(&cx, do_open, &c), MP_BAD_INPUT);
	if (!strstr(ctx_messages(&cx), part))
		GIVE_UP("'%s' is not in: %s", part, ctx_messages(&cx));
	ctx_free(&cx);
}

static inline void put_file(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

static inline void put_text(const char *path, const char *text) { put_file(path, text, strlen(text)); }

static inline char *get_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *bytes = malloc(1 << 22);
	*len = fread(bytes, 1, 1 << 22, f);
	fclose(f);
	return bytes;
}

/* ---- comparing ---- */

static inline void same_floats(const float *a, const float *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (memcmp(&a[i], &b[i], 4) != 0 && !(isnan(a[i]) && isnan(b[i])))
			GIVE_UP("%.9g is not %.9g at %u", (double)a[i], (double)b[i], i);
}

static inline void same_texts(const Text *a, const Text *b, uint64_t n)
{
	assert_int_equal(a != NULL, b != NULL);
	for (uint64_t i = 0; a && i < n; i++) {
		assert_int_equal(a[i].len, b[i].len);
		assert_memory_equal(a[i].s, b[i].s, a[i].len);
	}
}

static inline void same_cases(const Data *a, const Data *b)
{
	assert_int_equal(a->cases, b->cases);
	assert_int_equal(a->inputs, b->inputs);
	assert_int_equal(a->targets, b->targets);
	float *p = calloc(a->inputs + a->targets, sizeof *p), *q = calloc(a->inputs + a->targets, sizeof *q);
	for (uint64_t i = 0; i < a->cases; i++) {
		data_x(a, i, p), data_x(b, i, q);
		same_floats(p, q, a->inputs);
		data_y(a, i, p), data_y(b, i, q);
		same_floats(p, q, a->targets);
	}
	free(p);
	free(q);
}

static inline void same_data(const Data *a, const Data *b)
{
	same_cases(a, b);
	assert_int_equal(a->sequences, b->sequences);
	if (a->seq)
		assert_memory_equal(a->seq, b->seq, (a->sequences + 1) * 8);
	assert_int_equal(a->weight != NULL, b->weight != NULL);
	if (a->weight)
		assert_memory_equal(a->weight, b->weight, a->cases * 4);
	same_texts(a->names, b->names, a->cases);
	assert_int_equal(a->code_count, b->code_count);
	if (a->codes)
		assert_memory_equal(a->codes, b->codes, a->code_count * a->targets * 8);
	same_texts(a->code_names, b->code_names, a->code_count);
	assert_int_equal(a->scale.kind, b->scale.kind);
	if (a->scale.kind) {
		assert_memory_equal(a->scale.offset, b->scale.offset, a->inputs * 8);
		assert_memory_equal(a->scale.factor, b->scale.factor, a->inputs * 8);
	}
	assert_int_equal(a->x_indptr != NULL, b->x_indptr != NULL);
}

static inline void same_extras(const Data *a, const Data *b)
{
	assert_int_equal(a->extras, b->extras);
	for (uint32_t i = 0; i < a->extras; i++) {
		assert_string_equal(a->extra[i].key, b->extra[i].key);
		assert_int_equal(a->extra[i].len, b->extra[i].len);
		assert_memory_equal(a->extra[i].npy, b->extra[i].npy, a->extra[i].len);
	}
}

/* ---- samples ---- */

#define TEXT_OF(s)      \
	{                   \
		s, sizeof s - 1 \
	}

static const float sample_x[] = { 0,      0.1f,      -1e-30f, 3.4e38f, 1.0f / 3, -0.0f,
	                              1e-45f, 123456792, 0.5f,    2,       16777216, -7.25f };
static const float sample_y[] = { 0, NAN, 1, 0.25f, NAN, NAN, 1, 1 };
static const uint64_t sample_seq[] = { 0, 1, 4 };
static const float sample_weight[] = { 1, 0, 0.1f, 2.5f };
static const Text sample_names[] = { TEXT_OF("plain"), TEXT_OF(""), TEXT_OF("\xC3\xA4 \"q\" \\ \n"),
	                                 TEXT_OF("\xE2\x82\xAC\xF0\x9F\x98\x80 # :") };
static const double sample_codes[] = { 0, 1, 1, 0.1 };
static const Text sample_code_names[] = { TEXT_OF("no"), TEXT_OF("yes sir") };
static double sample_offset[] = { 0, 0.1, -3 }, sample_factor[] = { 1, 1.0 / 3, 1e-20 };

static inline Data sample(void)
{
	return (Data){ .name = "sample",
		           .cases = 4,
		           .inputs = 3,
		           .targets = 2,
		           .x = sample_x,
		           .x_type = T_F32,
		           .y = sample_y,
		           .y_type = T_F32,
		           .seq = sample_seq,
		           .sequences = 2,
		           .weight = sample_weight,
		           .names = sample_names,
		           .codes = sample_codes,
		           .code_names = sample_code_names,
		           .code_count = 2,
		           .scale = { SCALE_ZSCORE, sample_offset, sample_factor } };
}

static const uint64_t list_indptr[] = { 0, 2, 2, 5 };
static const uint32_t list_indices[] = { 0, 31, 4, 5, 30 };
static const float list_values[] = { 1, 0.5f, -2, 1, 1e-7f };

static inline Data sample_lists(bool valued)
{
	return (Data){ .name = "lists",
		           .cases = 3,
		           .inputs = 32,
		           .targets = 1,
		           .x_indptr = list_indptr,
		           .x_indices = list_indices,
		           .x_values = valued ? list_values : NULL,
		           .y = sample_y,
		           .y_type = T_F32 };
}

/* One array as npy bytes, with any descr and order. */
static inline size_t put_npy(char *out, const char *descr, bool fortran, const char *shape, const void *v, size_t len)
{
	size_t n = 10;
	n += (size_t)sprintf(out + n, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr,
	                     fortran ? "True" : "False", shape);
	memcpy(out, "\x93NUMPY\x01", 8);
	out[8] = (char)(n - 10);
	out[9] = 0;
	memcpy(out + n, v, len);
	return n + len;
}

#endif
