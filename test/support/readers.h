/* SPDX-License-Identifier: MIT */
/* What the tests of the data readers share: a job for a reader, the good and the bad way it may end, files of their
 * own, and that what is written comes back. */
#ifndef READERS_H
#define READERS_H

#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "formats.h"
#include "make.h"
#include "old.h"
#include "test.h"

typedef struct Job {
	const char *text; /* the file; len 0: strlen(text) */
	size_t len;
	const char *labels; /* idx */
	size_t labels_len;
	DataOptions opt;
	const char *path; /* data_open of this instead, or where to write */
	Data *d;
} Job;

static inline void do_csv(Ctx *cx, void *arg)
{
	Job *j = arg;
	Src s = { .name = "t.csv", .text = j->text, .len = j->len ? j->len : strlen(j->text) };
	j->d = read_csv(cx, &s, &j->opt);
}

static inline void do_nettalk(Ctx *cx, void *arg)
{
	Job *j = arg;
	Src s = { .name = "t.data", .text = j->text, .len = j->len ? j->len : strlen(j->text) };
	j->d = read_nettalk(cx, &s, &j->opt);
}

static inline void do_idx(Ctx *cx, void *arg)
{
	Job *j = arg;
	Src images = { .name = "t.idx", .text = j->text, .len = j->len, .binary = true };
	Src labels = { .name = "t-labels.idx", .text = j->labels, .len = j->labels_len, .binary = true };
	j->d = idx_data(cx, &images, j->labels ? &labels : NULL, &j->opt);
}

static inline void do_open(Ctx *cx, void *arg)
{
	Job *j = arg;
	j->d = data_open(cx, j->path, &j->opt);
}

static inline void do_write(Ctx *cx, void *arg)
{
	Job *j = arg;
	data_write(cx, j->d, j->path);
}

typedef void Body(Ctx *, void *);

static inline Data *good(Ctx *cx, Body *body, Job *j)
{
	ctx_init(cx, NULL);
	Status s = guarded(cx, body, j);
	if (s != MP_OK)
		print_error("%s\n", ctx_messages(cx));
	assert_int_equal(s, MP_OK);
	return j->d;
}

/* Must be refused with a message that has `words` in it. */
static inline void bad(Body *body, Job j, const char *words)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, body, &j), MP_BAD_INPUT);
	if (!strstr(ctx_messages(&cx), words))
		print_error("no \"%s\" in:\n%s\n", words, ctx_messages(&cx));
	assert_non_null(strstr(ctx_messages(&cx), words));
	ctx_free(&cx);
}

static inline void assert_x(const Data *d, uint64_t i, const float *want)
{
	float row[64];
	assert_true(d->inputs <= COUNT(row));
	data_x(d, i, row);
	for (uint32_t k = 0; k < d->inputs; k++)
		assert_float_equal(row[k], want[k], 0);
}

static inline void assert_y(const Data *d, uint64_t i, const float *want)
{
	float row[64];
	assert_true(d->targets <= COUNT(row));
	data_y(d, i, row);
	for (uint32_t k = 0; k < d->targets; k++) {
		assert_int_equal(isnan(row[k]) != 0, isnan(want[k]) != 0);
		if (!isnan(want[k]))
			assert_float_equal(row[k], want[k], 0);
	}
}
#define X(d, i, ...) assert_x(d, i, (const float[]){ __VA_ARGS__ })
#define Y(d, i, ...) assert_y(d, i, (const float[]){ __VA_ARGS__ })

static inline void assert_text(Text t, const char *want)
{
	assert_int_equal(t.len, strlen(want));
	assert_memory_equal(t.s, want, t.len);
}

static char folder[] = "/tmp/microprop-readers-XXXXXX";

static char *in_folder(const char *name)
{
	static char path[2][512];
	static int turn;
	char *p = path[turn++ & 1];
	snprintf(p, sizeof path[0], "%s/%s", folder, name);
	return p;
}

static inline void save(const char *name, const void *bytes, size_t len)
{
	FILE *f = fopen(in_folder(name), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline int folder_make(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state)
{
	(void)state;
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			unlink(in_folder(e->d_name));
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

/* Written and read again: the same cases. */
static inline void assert_same(const Data *a, const Data *b)
{
	assert_int_equal(a->cases, b->cases);
	assert_int_equal(a->inputs, b->inputs);
	assert_int_equal(a->targets, b->targets);
	assert_int_equal(a->sequences, b->sequences);
	assert_int_equal(a->weight != NULL, b->weight != NULL);
	float *row = calloc(a->inputs + a->targets, sizeof *row);
	for (uint64_t i = 0; i < a->cases; i++) {
		float other[512];
		assert_true(a->inputs <= COUNT(other) && a->targets <= COUNT(other));
		data_x(a, i, row);
		data_x(b, i, other);
		assert_memory_equal(row, other, a->inputs * sizeof *row);
		data_y(a, i, row);
		data_y(b, i, other);
		for (uint32_t k = 0; k < a->targets; k++)
			assert_true(row[k] == other[k] || (isnan(row[k]) && isnan(other[k])));
		if (a->weight)
			assert_float_equal(a->weight[i], b->weight[i], 0);
	}
	for (uint64_t i = 0; a->seq && i <= a->sequences; i++)
		assert_int_equal(a->seq[i], b->seq[i]);
	free(row);
}

static inline void round_trip(Job j, Body *body, const char *name, bool names)
{
	Ctx cx, back;
	Data *d = good(&cx, body, &j);
	Job out = { .path = in_folder(name), .d = d };
	assert_int_equal(guarded(&cx, do_write, &out), MP_OK);
	Job in = { .path = out.path };
	Data *e = good(&back, do_open, &in);
	assert_same(d, e);
	for (uint64_t i = 0; names && d->names && i < d->cases; i++) {
		assert_int_equal(d->names[i].len, e->names[i].len);
		assert_memory_equal(d->names[i].s, e->names[i].s, d->names[i].len);
	}
	for (uint32_t i = 0; names && e->codes && i < d->code_count; i++)
		assert_memory_equal(d->code_names[i].s, e->code_names[i].s, d->code_names[i].len);
	ctx_free(&back);
	ctx_free(&cx);
}

#define BYTES(...) \
	(const char[]){ __VA_ARGS__ }, sizeof(const char[]) { __VA_ARGS__ }

static inline Job idx_job(const char *x, size_t nx, const char *y, size_t ny)
{
	return (Job){ .text = x, .len = nx, .labels = y, .labels_len = ny };
}

#endif
