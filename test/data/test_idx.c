/* SPDX-License-Identifier: MIT */
/* IDX: types, labels, gzip, partners by name, what comes back. */
#include <zlib.h>

#include "readers.h"

static void idx_labels(void **state)
{
	(void)state;
	Ctx cx;
	Job j = idx_job(BYTES(0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 9, 0, 7, -1),
	                BYTES(0, 0, 8, 1, 0, 0, 0, 2, 3, 0));
	Data *d = good(&cx, do_idx, &j);
	assert_int_equal(d->x_type, T_U8);
	X(d, 0, 9, 0);
	X(d, 1, 7, 255);
	Y(d, 0, 0, 0, 0, 1);
	Y(d, 1, 1, 0, 0, 0);
	assert_int_equal(d->code_count, 4);
	assert_text(d->code_names[3], "3");
	assert_int_equal(d->class_count, 4);
	assert_string_equal(d->classes[2], "2");
	ctx_free(&cx);
}

static void idx_classes_given(void **state)
{
	(void)state;
	static const char *const ten[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
	static const char *const turned[] = { "3", "0", "none" };
	Ctx cx;
	Job j = idx_job(BYTES(0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 9, 7), BYTES(0, 0, 8, 1, 0, 0, 0, 2, 3, 0));
	j.opt = (DataOptions){ .classes = ten, .class_count = 10 };
	Data *d = good(&cx, do_idx, &j);
	assert_int_equal(d->targets, 10);
	Y(d, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0);
	assert_string_equal(d->classes[9], "9");
	ctx_free(&cx);
	j.opt = (DataOptions){ .classes = turned, .class_count = 3 };
	d = good(&cx, do_idx, &j);
	Y(d, 0, 1, 0, 0);
	Y(d, 1, 0, 1, 0);
	ctx_free(&cx);
	j.opt = (DataOptions){ .classes = ten, .class_count = 3 };
	bad(do_idx, j, "t-labels.idx:1:9: error: '3' is none of the 3 classes that were learnt");
}

static void idx_types(void **state)
{
	(void)state;
	Ctx cx;
	Job j = idx_job(BYTES(0, 0, 9, 1, 0, 0, 0, 1, -2), BYTES(0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0, 0, 0));
	Data *d = good(&cx, do_idx, &j);
	X(d, 0, -2);
	Y(d, 0, 0.5f);
	ctx_free(&cx);
	j = idx_job(BYTES(0, 0, 11, 1, 0, 0, 0, 1, -1, -2), BYTES(0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6));
	d = good(&cx, do_idx, &j);
	X(d, 0, -2);
	Y(d, 0, 5, 6);
	ctx_free(&cx);
	j = idx_job(BYTES(0, 0, 12, 1, 0, 0, 0, 1, 0, 1, 0, 0), BYTES(0, 0, 12, 1, 0, 0, 0, 1, 0, 0, 0, 0));
	d = good(&cx, do_idx, &j);
	X(d, 0, 65536);
	Y(d, 0, 1, 0); /* two classes at least */
	ctx_free(&cx);
	j = idx_job(BYTES(0, 0, 8, 1, 0, 0, 0, 1, 1), BYTES(0, 0, 14, 1, 0, 0, 0, 1, 0x3f, -8, 0, 0, 0, 0, 0, 0));
	d = good(&cx, do_idx, &j);
	Y(d, 0, 1.5f);
	ctx_free(&cx);
	j = idx_job(BYTES(0, 0, 14, 1, 0, 0, 0, 1, 0x3f, -8, 0, 0, 0, 0, 0, 0), NULL, 0);
	d = good(&cx, do_idx, &j);
	X(d, 0, 1.5f);
	assert_int_equal(d->targets, 0);
	ctx_free(&cx);
}

static void idx_refused(void **state)
{
	(void)state;
	const char x[] = { 0, 0, 8, 1, 0, 0, 0, 1, 5 };
	bad(do_idx, idx_job(BYTES(0, 1, 8, 1, 0, 0, 0, 1, 5), NULL, 0), "no IDX file");
	bad(do_idx, idx_job(x, sizeof x, BYTES(0, 0, 8, 1, 0, 0, 0, 2, 1, 1)), "2 labels for 1 cases");
	bad(do_idx, idx_job(x, sizeof x, BYTES(0, 0, 9, 1, 0, 0, 0, 1, -1)), "label -1 of case 0");
	bad(do_idx, idx_job(x, sizeof x, BYTES(0, 0, 12, 1, 0, 0, 0, 1, 0, 1, 0, 0)), "label 65536 of case 0");
	bad(do_idx, idx_job(x, sizeof x, BYTES(0, 0, 13, 1, 0, 0, 0, 1, 0x7f, -128, 0, 0)), "not a finite");
}

static void idx_round_trips(void **state)
{
	(void)state;
	Job plain = idx_job(BYTES(0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 9, 0, 7, -1), BYTES(0, 0, 8, 1, 0, 0, 0, 2, 1, 0));
	round_trip(plain, do_idx, "p.idx", true);
	round_trip(plain, do_idx, "train-images-idx3-ubyte", true);
	round_trip(plain, do_idx, "images-of-images.idx", true);
	round_trip((Job){ .text = "a,y1,y2\n300,1,1\n-1,0,0\n", .opt = { .targets = "y1,y2" } }, do_csv, "y.idx", false);
	round_trip((Job){ .text = "a,y1,y2\n0,1,0\n1,1,0\n", .opt = { .targets = "y1,y2" } }, do_csv, "z.idx", false);
	round_trip((Job){ .text = "n,a,y\np,0,1\n", .opt = { .names = "n" } }, do_csv, "o.idx", false);
	assert_int_equal(access(in_folder("train-labels-idx1-ubyte"), F_OK), 0);
	round_trip((Job){ .text = "a,b\n0.5,\n1,2\n" }, do_csv, "q.idx", false);
	round_trip((Job){ .text = "a,b\n0.5,1\n", .opt = { .unlabelled = 1 } }, do_csv, "r.idx", false);
	round_trip((Job){ .path = "make:encoder:16-4" }, do_open, "s.idx", false);
	round_trip((Job){ .path = "make:parity:3" }, do_open, "t.idx", false);
	Ctx cx;
	Job j = { .path = "make:reber" };
	Job out = { .path = in_folder("u.idx"), .d = good(&cx, do_open, &j) };
	assert_int_equal(guarded(&cx, do_write, &out), MP_BAD_INPUT);
	assert_non_null(strstr(ctx_messages(&cx), "no place for sequences"));
	ctx_free(&cx);
	j = (Job){ .text = "w,a,y\n1,2,3\n", .opt = { .weight = "w" } };
	out.d = good(&cx, do_csv, &j);
	assert_int_equal(guarded(&cx, do_write, &out), MP_BAD_INPUT);
	assert_non_null(strstr(ctx_messages(&cx), "no place for weights"));
	out.path = in_folder("u.idx.gz");
	assert_int_equal(guarded(&cx, do_write, &out), MP_BAD_INPUT);
	ctx_free(&cx);
}

static void save_gz(const char *name, const void *bytes, unsigned len)
{
	gzFile f = gzopen(in_folder(name), "wb");
	assert_non_null(f);
	assert_int_equal(gzwrite(f, bytes, len), len);
	assert_int_equal(gzclose(f), Z_OK);
}

static void idx_gzip_and_partners(void **state)
{
	(void)state;
	enum { N = 300 };
	unsigned char x[16 + N * 4] = { 0, 0, 8, 3, 0, 0, N >> 8, N & 255, 0, 0, 0, 2, 0, 0, 0, 2 };
	unsigned char y[8 + N] = { 0, 0, 8, 1, 0, 0, N >> 8, N & 255 };
	for (int i = 0; i < N; i++) {
		memset(x + 16 + i * 4, i, 4);
		y[8 + i] = (unsigned char)(i % 10);
	}
	save_gz("t10k-images-idx3-ubyte.gz", x, sizeof x);
	save("t10k-labels-idx1-ubyte", y, sizeof y); /* the .gz may be gone from one of them */
	Ctx cx;
	Job j = { .path = in_folder("t10k-images-idx3-ubyte.gz") };
	Data *d = good(&cx, do_open, &j);
	assert_int_equal(d->cases, N);
	assert_int_equal(d->inputs, 4);
	assert_int_equal(d->targets, 10);
	X(d, 299, 43, 43, 43, 43);
	Y(d, 299, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	ctx_free(&cx);
	save_gz("v-labels.idx.gz", y, sizeof y);
	save("v.idx", x, sizeof x);
	j = (Job){ .path = in_folder("v.idx"), .opt = { .first = 5 } };
	d = good(&cx, do_open, &j);
	assert_int_equal(d->cases, 5);
	assert_int_equal(d->targets, 10);
	ctx_free(&cx);
	j.opt = (DataOptions){ .unlabelled = 1 };
	d = good(&cx, do_open, &j);
	assert_int_equal(d->targets, 0);
	assert_string_equal(ctx_messages(&cx), "");
	ctx_free(&cx);
	save("w.idx", x, sizeof x);
	j = (Job){ .path = in_folder("w.idx") };
	d = good(&cx, do_open, &j);
	assert_int_equal(d->targets, 0);
	assert_non_null(strstr(ctx_messages(&cx), "there are no labels"));
	ctx_free(&cx);
	j.opt.partner = in_folder("v-labels.idx.gz");
	d = good(&cx, do_open, &j);
	assert_int_equal(d->targets, 10);
	ctx_free(&cx);
}

/* A file larger than half the memory stays where it is. */
static void idx_in_place(void **state)
{
	(void)state;
	Ctx cx;
	Job j = idx_job(BYTES(0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 9, 0, 7, 5), BYTES(0, 0, 8, 1, 0, 0, 0, 2, 1, 0));
	setenv("MICROPROP_MEMORY", "30", 1);
	Data *d = good(&cx, do_idx, &j);
	unsetenv("MICROPROP_MEMORY");
	assert_true(d->mapped);
	assert_ptr_equal(d->x, j.text + 12);
	assert_true(d->bytes > 0);
	X(d, 1, 7, 5);
	Y(d, 0, 0, 1);
	ctx_free(&cx);
}

/* Data with very many classes gets no code table. */
static void many_classes(void **state)
{
	(void)state;
	char text[4096] = "x,class\n";
	for (int i = 0; i < 300; i++)
		sprintf(text + strlen(text), "%d,c%d\n", i, i);
	round_trip((Job){ .text = text }, do_csv, "many.idx", false);
	Ctx cx;
	Job j = idx_job(BYTES(0, 0, 8, 1, 0, 0, 0, 1, 5), BYTES(0, 0, 11, 1, 0, 0, 0, 1, 1, 44));
	Data *d = good(&cx, do_idx, &j);
	assert_int_equal(d->targets, 301);
	assert_null(d->codes);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idx_labels),   cmocka_unit_test(idx_classes_given), cmocka_unit_test(idx_types),
		cmocka_unit_test(idx_refused),  cmocka_unit_test(idx_round_trips),   cmocka_unit_test(idx_gzip_and_partners),
		cmocka_unit_test(idx_in_place), cmocka_unit_test(many_classes),
	};
	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
