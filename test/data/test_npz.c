/* SPDX-License-Identifier: MIT */
/* Archives of arrays (.npz): every kind of zip and of number is read, damage does no harm, arrays written are
 * aligned, and what was unpacked is in memory once. */
#include "zips.h"

static void zips_of_every_kind_are_read(void **state)
{
	(void)state;
	char npy[512];
	size_t n = put_npy(npy, "<f4", false, "(2,)", "\0\0\x80\x3f\0\0\0\x40", 8);
	for (int kind = 0; kind < 8; kind++) {
		Ctx cx;
		Bytes *z = calloc(1, sizeof *z);
		ctx_init(&cx, NULL);
		make_zip(z, npy, n, kind & 1, kind & 2, kind & 4);
		put_file(path_of("kind.npz"), z->s, z->len);
		Data *d = must_open(&cx, path_of("kind.npz"), NULL);
		float x;
		data_x(d, 1, &x);
		assert_true(x == 2);
		for (size_t i = 0; i < z->len; i++) { /* cut anywhere: refused, never worse */
			put_file(path_of("cut.npz"), z->s, i);
			must_refuse(path_of("cut.npz"), NULL, "error");
		}
		ctx_free(&cx);
		free(z);
	}
}

static void do_wide(Ctx *cx, void *arg)
{
	Call *c = arg;
	char npy[256];
	ZipOut *z = zip_create(cx, c->path, (uint64_t)c->kind);
	zip_add(z, "x.npy", npy, put_npy(npy, "|u1", false, "(3,)", "\1\2\3", 3), NULL, 0);
	zip_add(z, "folder/", "", 0, NULL, 0);
	zip_add(z, "y.npy", npy, put_npy(npy, "|u1", false, "(3,)", "\1\2\3", 3), NULL, 0);
	zip_commit(cx, z);
}

static void do_odd_types(Ctx *cx, void *arg)
{
	Call *c = arg;
	static const struct {
		const char *key, *descr, *shape, *bytes;
		size_t len;
	} arrays[] = {
		{ "x_indptr.npy", "<u4", "(3,)", "\0\0\0\0\1\0\0\0\3\0\0\0", 12 },
		{ "x_indices.npy", "<u8", "(3,)", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 24 },
		{ "x_values.npy", "<i2", "(3,)", "\5\0\1\0\xff\xff", 6 },
		{ "x_shape.npy", "|u1", "(2,)", "\2\3", 2 },
		{ "y.npy", "|i1", "(2, 1, 1)", "\1\2", 2 },
		{ "mask.npy", "<f4", "(2,)", "\0\0\x80\x3f\0\0\0\0", 8 },
		{ "seq.npy", "<i8", "(2,)", "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16 },
		{ "weight.npy", "|b1", "(2,)", "\0\1", 2 },
		{ "names.npy", "|S0", "(2,)", "", 0 },
		{ "codes.npy", ">f4", "(1, 1)", "\x3f\x80\0\0", 4 },
	};
	ZipOut *z = zip_create(cx, c->path, UINT32_MAX);
	for (size_t i = 0; i < COUNT(arrays); i++) {
		char npy[256];
		size_t n = put_npy(npy, arrays[i].descr, false, arrays[i].shape, arrays[i].bytes, arrays[i].len);
		zip_add(z, arrays[i].key, npy, n, NULL, 0);
	}
	zip_commit(cx, z);
}

static void odd_types_are_converted(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Call c = { .path = path_of("odd.npz") };
	assert_int_equal(call(&cx, do_odd_types, &c), MP_OK);
	Data *d = must_open(&cx, path_of("odd.npz"), NULL);
	float x[3], y;
	data_x(d, 0, x);
	same_floats(x, (float[]){ 0, 5, 0 }, 3);
	data_x(d, 1, x);
	same_floats(x, (float[]){ 1, 0, -1 }, 3);
	data_y(d, 0, &y);
	assert_true(y == 1);
	data_y(d, 1, &y);
	assert_true(isnan(y));
	same_floats(d->weight, (float[]){ 0, 1 }, 2);
	assert_int_equal(d->names[1].len, 0);
	assert_true(d->codes[0] == 1);
	must_write(&cx, d, path_of("odd.txt")); /* codes without names get numbers */
	d = must_open(&cx, path_of("odd.txt"), NULL);
	assert_memory_equal(d->code_names[0].s, "0", 1);
	ctx_free(&cx);
}

static void wide_sizes_are_written(void **state)
{
	(void)state;
	static const int limits[] = { 0, 50, 100, 300, 1000 };
	for (size_t i = 0; i < COUNT(limits); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Call c = { .path = path_of("wide.npz"), .kind = limits[i] };
		assert_int_equal(call(&cx, do_wide, &c), MP_OK);
		Data *d = must_open(&cx, path_of("wide.npz"), NULL);
		assert_int_equal(d->cases, 3);
		assert_int_equal(d->targets, 1);
		assert_int_equal(d->extras, 0);
		ctx_free(&cx);
	}
}

static void every_damaged_byte_is_survived(void **state)
{
	(void)state;
	Data d = sample();
	Ctx cx;
	ctx_init(&cx, NULL);
	must_write(&cx, &d, path_of("whole.npz"));
	size_t len;
	char *bytes = get_file(path_of("whole.npz"), &len);
	for (size_t i = 0; i < len; i += 3) {
		char old = bytes[i];
		bytes[i] ^= (char)(1 << i % 8);
		put_file(path_of("damaged.npz"), bytes, len);
		Ctx one;
		ctx_init(&one, NULL);
		Call c = { .path = path_of("damaged.npz") };
		Status s = call(&one, do_open, &c);
		assert_true(s == MP_OK || s == MP_BAD_INPUT);
		ctx_free(&one);
		bytes[i] = old;
	}
	free(bytes);
	ctx_free(&cx);
}

static void arrays_are_aligned_in_the_file(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	must_write(&cx, &d, path_of("aligned.npz"));
	size_t len, seen = 0;
	char *bytes = get_file(path_of("aligned.npz"), &len);
	for (size_t i = 0; i + 6 < len; i++)
		if (memcmp(bytes + i, "\x93NUMPY", 6) == 0) {
			assert_int_equal(i % 64, 0);
			seen++;
		}
	assert_int_equal(seen, 10);
	free(bytes);
	ctx_free(&cx);
}

/* What was unpacked is not copied. */
static void unpacked_arrays_are_there_once(void **state)
{
	(void)state;
	enum { CASES = 200000, INPUTS = 4 };
	char *npy = malloc(512 + CASES * INPUTS);
	Bytes *z = calloc(1, sizeof *z);
	Meter m = { 0 };
	Ctx cx;
	size_t head = put_npy(npy, "|u1", false, "(200000, 4)", "", 0);
	for (size_t i = 0; i < CASES * INPUTS; i++)
		npy[head + i] = (char)(i % 5 < 3);
	make_zip(z, npy, head + CASES * INPUTS, true, false, false);
	put_file(path_of("unpacked.npz"), z->s, z->len);
	ctx_init(&cx, &(Alloc){ meter_resize, &m });
	Data *d = must_open(&cx, path_of("unpacked.npz"), NULL);
	assert_int_equal(d->cases, CASES);
	assert_memory_equal(d->x, npy + head, CASES * INPUTS);
	assert_true(m.most < CASES * INPUTS * 3 / 2);
	ctx_free(&cx);
	assert_int_equal(m.live, 0);
	free(z);
	free(npy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zips_of_every_kind_are_read),    cmocka_unit_test(odd_types_are_converted),
		cmocka_unit_test(wide_sizes_are_written),         cmocka_unit_test(every_damaged_byte_is_survived),
		cmocka_unit_test(arrays_are_aligned_in_the_file), cmocka_unit_test(unpacked_arrays_are_there_once),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
