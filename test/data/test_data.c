/* SPDX-License-Identifier: MIT */
/* Data files: round trips of npz, npy and text, telling formats apart, failing memory and disk, and
 * refusing what is malformed. */
#include "zips.h"

/* ---- round trips ---- */

static void npz_keeps_everything(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	char npy[256];
	size_t n = put_npy(npy, "<i2", false, "(4,)", "\1\0\2\0\3\0\4\0", 8);
	Extra extra[] = { { "colour", npy, n }, { "readme.md", "hello", 5 } };
	d.extra = extra;
	d.extras = 2;
	static const uint8_t mask[] = { 1, 1, 0, 1, 1, 0, 1, 1 };
	d.mask = mask;
	must_write(&cx, &d, path_of("all.npz"));
	Data *e = must_open(&cx, path_of("all.npz"), NULL);
	same_data(&d, e);
	same_extras(&d, e);
	assert_memory_equal(e->mask, mask, sizeof mask);
	assert_memory_equal(e->y, sample_y, sizeof sample_y); /* what the mask hides is kept */
	assert_int_equal(e->x_type, T_F32);
	assert_true(e->bytes > sizeof sample_x + sizeof sample_y);
	assert_false(e->mapped);

	must_write(&cx, e, path_of("again.npz"));
	size_t a, b;
	char *one = get_file(path_of("all.npz"), &a), *two = get_file(path_of("again.npz"), &b);
	assert_int_equal(a, b);
	assert_memory_equal(one, two, a);
	free(one);
	free(two);
	ctx_free(&cx);
}

static void npz_keeps_names_that_are_not_utf8(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	Text names[] = { TEXT_OF("\xFF"), TEXT_OF("\xC3"), TEXT_OF("\xED\xA0\x80"), TEXT_OF("\xC0\x80x") };
	d.names = names;
	must_write(&cx, &d, path_of("bytes.npz"));
	same_data(&d, must_open(&cx, path_of("bytes.npz"), NULL));
	names[1] = (Text)TEXT_OF("\t\r\n");
	names[2] = (Text)TEXT_OF("\xE2\x82");
	must_write(&cx, &d, path_of("bytes.npz"));
	same_data(&d, must_open(&cx, path_of("bytes.npz"), NULL));
	must_write(&cx, &d, path_of("bytes.txt"));
	same_data(&d, must_open(&cx, path_of("bytes.txt"), NULL));
	ctx_free(&cx);
}

static void every_type_round_trips(void **state)
{
	(void)state;
	static const struct {
		DType t;
		const char *bytes;
		double value[3];
	} types[] = {
		{ T_F32, "\0\0\x80\x3f\0\0\0\x40\0\0\0\xc0", { 1, 2, -2 } },
		{ T_F64, "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\xc0", { 1, 2, -2 } },
		{ T_F16, "\0\x3c\1\0\0\xc0", { 1, 5.9604644775390625e-8, -2 } },
		{ T_U8, "\1\2\xff", { 1, 2, 255 } },
		{ T_I8, "\1\2\xff", { 1, 2, -1 } },
		{ T_U16, "\1\0\2\0\xff\xff", { 1, 2, 65535 } },
		{ T_I16, "\1\0\2\0\xff\xff", { 1, 2, -1 } },
		{ T_U32, "\1\0\0\0\2\0\0\0\xff\xff\xff\xff", { 1, 2, 4294967295.0 } },
		{ T_I32, "\1\0\0\0\2\0\0\0\xff\xff\xff\xff", { 1, 2, -1 } },
		{ T_U64, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", { 1, 2, 9223372036854775808.0 } },
		{ T_I64, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", { 1, 2, -1 } },
		{ T_BOOL, "\1\0\1", { 1, 0, 1 } },
	};
	assert_int_equal(COUNT(types), T_COUNT);
	for (size_t i = 0; i < COUNT(types); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		DType t = types[i].t;
		Data d = { .name = "t",
			       .cases = 3,
			       .inputs = 1,
			       .targets = 1,
			       .x = types[i].bytes,
			       .x_type = t,
			       .y = types[i].bytes,
			       .y_type = t };
		static const char *const files[] = { "type.npz", "type.npy" };
		for (size_t f = 0; f < COUNT(files); f++) {
			must_write(&cx, &d, path_of(files[f]));
			Data *e = must_open(&cx, path_of(files[f]), NULL);
			assert_int_equal(e->x_type, t);
			assert_int_equal(e->y_type, t);
			assert_memory_equal(e->x, types[i].bytes, 3 * dtypes[t].size);
			same_data(&d, e);
			for (uint64_t k = 0; k < 3; k++)
				assert_true(dtype_get(t, e->x, k) == types[i].value[k]);
		}
		ctx_free(&cx);
	}
}

static void text_round_trips_to_the_bit(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	must_write(&cx, &d, path_of("all.txt"));
	Data *e = must_open(&cx, path_of("all.txt"), NULL);
	same_data(&d, e);

	enum { N = 2000 };
	float *x = calloc(N, sizeof *x);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t bits = (uint32_t)random_u64(1, STREAM_DATA, i);
		memcpy(&x[i], &bits, 4);
		if (!isfinite(x[i]))
			x[i] = (float)i / 7;
	}
	Data many = { .name = "many", .cases = N / 4, .inputs = 4, .x = x, .x_type = T_F32 };
	must_write(&cx, &many, path_of("many.txt"));
	same_data(&many, must_open(&cx, path_of("many.txt"), NULL));
	free(x);
	ctx_free(&cx);
}

static void index_lists_round_trip(void **state)
{
	(void)state;
	static const char *const files[] = { "lists.npz", "lists.txt", "lists.npy" };
	for (int valued = 0; valued < 2; valued++) {
		for (size_t f = 0; f < COUNT(files); f++) {
			Ctx cx;
			ctx_init(&cx, NULL);
			Data d = sample_lists(valued);
			must_write(&cx, &d, path_of(files[f]));
			Data *e = must_open(&cx, path_of(files[f]), NULL);
			same_cases(&d, e);
			/* npy is dense; ones come back as lists because they are few */
			assert_int_equal(e->x_indptr != NULL, f < 2 || !valued);
			assert_int_equal(e->x_values != NULL, valued && f < 2);
			ctx_free(&cx);
		}
	}
}

static void text_is_read_as_specified(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	put_text(path_of("hand.txt"),
	         "\xEF\xBB\xBF# by hand\r\n\r\ninputs 4\ncode a 1 0\ncode \"b c\" 0 1\nsequence\n"
	         "[0 2=0.5] : 1 ?   # comment\r\n\"n\\x41me\" 1 2 3 4 : nan 0 weight 2\n\tsequence\n[] : ? ?");
	Data *d = must_open(&cx, path_of("hand.txt"), NULL);
	assert_int_equal(d->cases, 3);
	assert_int_equal(d->sequences, 2);
	assert_int_equal(d->seq[1], 2);
	assert_int_equal(d->code_count, 2);
	assert_int_equal(d->code_names[1].len, 3);
	assert_memory_equal(d->names[1].s, "nAme", 4);
	assert_int_equal(d->names[0].len, 0);
	float x[4], y[2];
	data_x(d, 0, x);
	same_floats(x, (float[]){ 1, 0, 0.5f, 0 }, 4);
	data_x(d, 1, x);
	same_floats(x, (float[]){ 1, 2, 3, 4 }, 4);
	data_y(d, 1, y);
	same_floats(y, (float[]){ NAN, 0 }, 2);
	same_floats(d->weight, (float[]){ 1, 2, 1 }, 3);

	d = must_open(&cx, path_of("hand.txt"), &(DataOptions){ .unlabelled = 1 });
	assert_int_equal(d->targets, 0);
	assert_null(d->codes);
	put_text(path_of("mixed.txt"), "inputs 3\ntargets 0\n[1]\n0 2 0 # dense\n[0 2=3]\n");
	d = must_open(&cx, path_of("mixed.txt"), NULL);
	assert_non_null(d->x_indptr);
	assert_int_equal(d->x_indptr[3], 4);
	data_x(d, 1, x);
	same_floats(x, (float[]){ 0, 2, 0 }, 3);
	put_text(path_of("codes.txt"),
	         "code a 0.1000000000000000055511151231257827021181583404541015625123456789\n1 : 1\n");
	d = must_open(&cx, path_of("codes.txt"), NULL);
	assert_true(d->codes[0] == (double)0.1f); /* more digits than anyone needs: float32 */
	put_text(path_of("none.txt"), "inputs 1\ninputs 1\nscale none\n1 : NaN NAN\n");
	assert_int_equal(must_open(&cx, path_of("none.txt"), NULL)->scale.kind, SCALE_NONE);
	put_text(path_of("dense.txt"), "1 2\n[1]\n+3 -.5");
	must_refuse(path_of("dense.txt"), &(DataOptions){ .format = "npz" }, "zip directory");
	put_text(path_of("dense.txt"), "inputs 2\n1 2\n[1=3]\n+3 -.5 weight 0");
	d = must_open(&cx, path_of("dense.txt"), NULL);
	assert_int_equal(d->targets, 0);
	assert_null(d->x_indptr);
	data_x(d, 1, x);
	same_floats(x, (float[]){ 0, 3 }, 2);
	data_x(d, 2, x);
	same_floats(x, (float[]){ 3, -0.5f }, 2);
	ctx_free(&cx);
}

static void text_reports_several_errors(void **state)
{
	(void)state;
	put_text(path_of("several.txt"), "inputs 2\n0 0 : x\n0 1 2 : 1\nsequense\n1 1 : 0\n");
	must_refuse(path_of("several.txt"), NULL, "several.txt:2:7: error: 'x' is not a number");
	must_refuse(path_of("several.txt"), NULL, "several.txt:3:1: error: the case has 3 inputs");
	must_refuse(path_of("several.txt"), NULL, "did you mean 'sequence'?");
	char many[1000] = "";
	for (int i = 0; i < 50; i++)
		strcat(many, "0 : x\n");
	put_text(path_of("fifty.txt"), many);
	must_refuse(path_of("fifty.txt"), NULL, "fifty.txt:20:5:");
}

/* ---- npy pairs ---- */

static void npy_partners_are_found_by_name(void **state)
{
	(void)state;
	static const char *const names[][2] = {
		{ "p-x.npy", "p-y.npy" },
		{ "p_x.npy", "p_y.npy" },
		{ "x.npy", "y.npy" },
		{ "p.npy", "p-y.npy" },
	};
	for (size_t i = 0; i < COUNT(names); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Data d = sample();
		d.x_type = d.y_type = T_F32;
		unlink(path_of(names[i][1]));
		must_write(&cx, &d, path_of(names[i][0]));
		assert_non_null(strstr(ctx_messages(&cx), "npy has no place for case names"));
		assert_int_equal(access(path_of(names[i][1]), F_OK), 0);
		same_cases(&d, must_open(&cx, path_of(names[i][0]), NULL));
		assert_int_equal(rename(path_of(names[i][1]), path_of("elsewhere.npy")), 0);
		Data *alone = must_open(&cx, path_of(names[i][0]), NULL);
		assert_int_equal(alone->targets, 0);
		same_cases(&d, must_open(&cx, path_of(names[i][0]), &(DataOptions){ .partner = path_of("elsewhere.npy") }));
		ctx_free(&cx);
	}
}

static void npy_alone_is_unlabelled(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = { .name = "u", .cases = 4, .inputs = 3, .x = sample_x, .x_type = T_F32 };
	must_write(&cx, &d, path_of("alone.npy"));
	same_data(&d, must_open(&cx, path_of("alone.npy"), NULL));
	must_write(&cx, &d, path_of("max.npy")); /* ends in x, but is no x of a pair */
	same_data(&d, must_open(&cx, path_of("max.npy"), NULL));
	assert_int_equal(rename(path_of("max.npy"), path_of("max")), 0);
	same_data(&d, must_open(&cx, path_of("max"), NULL));
	ctx_free(&cx);
}

static void npy_masks_become_nan(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	static const uint8_t mask[] = { 1, 0, 1, 1, 1 }, y[] = { 1, 2, 3, 4, 5 }, x[] = { 0, 1, 2, 3, 4 };
	Data d = {
		.name = "m", .cases = 5, .inputs = 1, .targets = 1, .x = x, .x_type = T_U8, .y = y, .y_type = T_U8, .mask = mask
	};
	must_write(&cx, &d, path_of("masked.npy"));
	same_cases(&d, must_open(&cx, path_of("masked.npy"), NULL));
	d.targets = 0;
	Call c = { .path = path_of("masked.npy"), .in = &d };
	assert_int_equal(call(&cx, do_write, &c), MP_BAD_INPUT);
	assert_non_null(strstr(ctx_messages(&cx), "would be taken for the targets"));
	ctx_free(&cx);
}

static void do_doubles(Ctx *cx, void *arg)
{
	Call *c = arg;
	write_npy_doubles(cx, c->path, (double[]){ 1, 0.1, 1e300, -4, 5, 6 }, 3, 2);
}

static void doubles_are_written_as_npy(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Call c = { .path = path_of("doubles.npy") };
	assert_int_equal(call(&cx, do_doubles, &c), MP_OK);
	size_t len;
	char *bytes = get_file(path_of("doubles.npy"), &len);
	Npy a;
	assert_true(npy_peek(bytes, len, &a));
	assert_int_equal(a.type, T_F64);
	assert_int_equal(a.dims, 2);
	assert_int_equal(a.dim[0], 3);
	assert_int_equal((a.data - (uint8_t *)bytes) % 64, 0);
	assert_true(dtype_get(T_F64, a.data, 1) == 0.1);
	free(bytes);
	ctx_free(&cx);
}

static void npy_orders_and_shapes(void **state)
{
	(void)state;
	Ctx cx;
	char npy[512];
	ctx_init(&cx, NULL);
	/* [[1,2,3],[4,5,6]] by columns, big-endian */
	size_t n = put_npy(npy, ">i2", true, "(2, 3)", "\0\1\0\4\0\2\0\5\0\3\0\6", 12);
	put_file(path_of("fortran.npy"), npy, n);
	float x[6], y[6];
	Data *d = must_open(&cx, path_of("fortran.npy"), NULL);
	assert_int_equal(d->inputs, 3);
	data_x(d, 0, x), data_x(d, 1, x + 3);
	same_floats(x, (float[]){ 1, 2, 3, 4, 5, 6 }, 6);
	/* images are flattened per case; three dimensions in both orders */
	n = put_npy(npy, "|u1", false, "(2L, 3, 1)", "\1\2\3\4\5\6", 6);
	put_file(path_of("images.npy"), npy, n);
	d = must_open(&cx, path_of("images.npy"), NULL);
	data_x(d, 0, y), data_x(d, 1, y + 3);
	same_floats(x, y, 6);
	n = put_npy(npy, "|u1", true, "(1, 2, 3)", "\1\4\2\5\3\6", 6);
	put_file(path_of("images.npy"), npy, n);
	d = must_open(&cx, path_of("images.npy"), NULL);
	data_x(d, 0, y);
	same_floats(x, y, 6);
	/* one dimension is one input */
	n = put_npy(npy, ">f8", true, "(2,)", "\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0", 16);
	put_file(path_of("column.npy"), npy, n);
	d = must_open(&cx, path_of("column.npy"), NULL);
	assert_int_equal(d->inputs, 1);
	data_x(d, 1, x);
	assert_true(x[0] == 2);
	/* version 2 has a longer length */
	n = put_npy(npy, "<f4", false, "(1,)", "\0\0\x80\x3f", 4);
	memmove(npy + 12, npy + 10, n - 10);
	npy[6] = 2;
	npy[10] = npy[11] = 0;
	put_file(path_of("two.npy"), npy, n + 2);
	assert_int_equal(must_open(&cx, path_of("two.npy"), NULL)->cases, 1);
	ctx_free(&cx);
}

/* ---- memory ---- */

static void large_files_stay_mapped(void **state)
{
	(void)state;
	enum { N = 300000 };
	Ctx cx;
	ctx_init(&cx, NULL);
	uint16_t *x = calloc(N * 4, sizeof *x), *y = calloc(N, sizeof *y);
	for (uint32_t i = 0; i < N * 4; i++)
		x[i] = (uint16_t)(i * 7);
	for (uint32_t i = 0; i < N; i++)
		y[i] = (uint16_t)(i % 3);
	Data d = { .name = "big", .cases = N, .inputs = 4, .targets = 1, .x = x, .x_type = T_U16, .y = y, .y_type = T_U16 };
	must_write(&cx, &d, path_of("big.npz"));
	must_write(&cx, &d, path_of("big.npy"));
	setenv("MICROPROP_MEMORY", "4000000", 1);
	static const char *const files[] = { "big.npz", "big.npy" };
	for (size_t f = 0; f < COUNT(files); f++) {
		Data *e = must_open(&cx, path_of(files[f]), NULL);
		assert_true(e->mapped);
		assert_true(e->bytes < 10000);
		same_cases(&d, e);
		Call c = { .in = e, .share = 0.5 };
		assert_int_equal(call(&cx, do_part, &c), MP_OK);
		assert_false(c.out->mapped);
	}
	uint64_t *indptr = calloc(N + 1, sizeof *indptr);
	uint32_t *indices = calloc(N, sizeof *indices);
	for (uint64_t i = 0; i < N; i++) {
		indptr[i + 1] = i + 1;
		indices[i] = (uint32_t)i % 4;
	}
	Extra extra = { "note", "text", 4 };
	Data lists = {
		.name = "lists", .cases = N, .inputs = 4, .x_indptr = indptr, .x_indices = indices, .extra = &extra, .extras = 1
	};
	must_write(&cx, &lists, path_of("big-lists.npz"));
	setenv("MICROPROP_MEMORY", "6000000", 1);
	Data *l = must_open(&cx, path_of("big-lists.npz"), NULL);
	assert_true(l->mapped && l->bytes < 10000);
	same_cases(&lists, l);
	same_extras(&lists, l);
	Call scale = { .out = l, .kind = SCALE_RANGE };
	assert_int_equal(call(&cx, do_scale, &scale), MP_OK);
	assert_true(l->bytes >= N * 16);
	free(indptr);
	free(indices);
	unsetenv("MICROPROP_MEMORY");
	Data *e = must_open(&cx, path_of("big.npz"), NULL);
	assert_false(e->mapped);
	assert_true(e->bytes > N * 10);
	free(x);
	free(y);
	ctx_free(&cx);
}

static void open_and_write(Ctx *cx, void *arg)
{
	Call *c = arg;
	Data *d = data_open(cx, c->path, NULL);
	data_write(cx, d, c->kind ? path_of("copy.txt") : path_of("copy.npz"));
	data_describe(cx, d, &c->info);
	data_scale_fit(cx, data_split(cx, d, 0.5, 1, false), SCALE_NONE);
}

static void no_allocation_failure_hurts(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	must_write(&cx, &d, path_of("small.npz"));
	char npy[512];
	Bytes *z = calloc(1, sizeof *z);
	size_t n = put_npy(npy, "<f4", false, "(2,)", "\0\0\x80\x3f\0\0\0\x40", 8);
	make_zip(z, npy, n, true, true, false);
	put_file(path_of("small-deflated.npz"), z->s, z->len);
	free(z);
	static const char *const files[] = { "small.npz", "small-deflated.npz" };
	for (int kind = 0; kind < 4; kind++) {
		Call c = { .path = path_of(files[kind / 2]), .kind = kind & 1 };
		Status s = MP_NO_MEMORY;
		for (long fail_at = 1; s != MP_OK; fail_at++) {
			Meter m = { .fail_at = fail_at };
			Ctx one;
			ctx_init(&one, &(Alloc){ meter_resize, &m });
			s = call(&one, open_and_write, &c);
			assert_true(s == MP_OK || s == MP_NO_MEMORY);
			assert_true(s == MP_OK || *ctx_messages(&one));
			ctx_free(&one);
			assert_int_equal(m.live, 0);
			assert_true(fail_at < 1000);
		}
	}
	ctx_free(&cx);
}

static void no_write_failure_hurts(void **state)
{
	(void)state;
	static const char *const files[] = { "kept.npz", "kept.txt", "kept.npy" };
	for (size_t f = 0; f < COUNT(files); f++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Data d = sample(), other = sample();
		other.x = sample_x + 1;
		other.cases = 3;
		other.seq = NULL;
		must_write(&cx, &d, path_of(files[f]));
		Status s = MP_FAILED;
		for (int n = 1; s != MP_OK; n++) {
			assert_true(n < 100);
			Call c = { .path = path_of(files[f]), .in = &other };
			cx.io_fail_at = n;
			s = call(&cx, do_write, &c);
			cx.io_fail_at = 0;
			assert_true(s == MP_OK || s == MP_FAILED);
			if (s != MP_OK && f < 2) {
				Data *e = must_open(&cx, path_of(files[f]), NULL);
				assert_true(e->cases == 4 || e->cases == 3);
			}
		}
		same_cases(&other, must_open(&cx, path_of(files[f]), NULL));
		ctx_free(&cx);
	}
}

/* ---- formats ---- */

static void formats_are_told_apart(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	d.scale.kind = SCALE_NONE;
	must_write(&cx, &d, path_of("tell.npz"));
	must_write(&cx, &d, path_of("tell.npy"));
	must_write(&cx, &d, path_of("tell.txt"));
	static const char *const files[] = { "tell.npz", "tell.npy", "tell.txt" };
	for (size_t i = 0; i < COUNT(files); i++) {
		assert_int_equal(rename(path_of(files[i]), path_of("anything")), 0);
		Data *e = must_open(&cx, path_of("anything"), NULL);
		assert_int_equal(e->cases, 4);
	}
	put_text(path_of("plain"), "# numbers\n 0 1 : 1\n1 1 : 0\n");
	assert_int_equal(must_open(&cx, path_of("plain"), NULL)->targets, 1);
	put_text(path_of("semicolons"), "\n\t \r\n# comment\na;b\n1;2\n");
	must_refuse(path_of("semicolons"), &(DataOptions){ .partner = "p" }, "is read as csv");
	put_text(path_of("tabs"), "a\tb\n1\t2\n");
	assert_int_equal(must_open(&cx, path_of("tabs"), NULL)->targets, 1);
	put_text(path_of("words.data"), "Some prose\n\nab\tab\n\tx\tx\t1\nab\t@b\t1\nab\t@b\t1<\tx\nab\t@b\t1<\t0\n");
	must_refuse(path_of("words.data"), &(DataOptions){ .inputs = "a" }, "is read as nettalk");
	put_file(path_of("images"), "\0\0\x08\1\0\0\0\1\5", 9);
	must_refuse(path_of("images"), &(DataOptions){ .words = "w" }, "is read as idx");
	put_file(path_of("zipped"), "\x1f\x8b\x08", 3);
	must_refuse(path_of("zipped"), &(DataOptions){ .words = "w" }, "is read as idx");
	put_text(path_of("odd-idx3-ubyte"), "1 : 1\n");
	must_refuse(path_of("odd-idx3-ubyte"), &(DataOptions){ .words = "w" }, "is read as idx");
	static const char *const no_idx[] = { "idx.d", "idx0", "idx3-ubite" };
	for (size_t i = 0; i < COUNT(no_idx); i++) {
		put_text(path_of(no_idx[i]), "code a 1\n1 : 1\n");
		assert_int_equal(must_open(&cx, path_of(no_idx[i]), NULL)->code_count, 1);
	}
	static const char *const no_image[] = { "\0\0\x07\1", "\0\0\x08\0", "\0\0\x08\x09", "\0\1\x08\1", "PK\5\5" };
	for (size_t i = 0; i < COUNT(no_image); i++) {
		put_file(path_of("image"), no_image[i], 4);
		must_refuse(path_of("image"), NULL, "neither name nor content");
	}
	put_file(path_of("nothing"), "", 0);
	must_refuse(path_of("nothing"), NULL, "neither name nor content");
	put_file(path_of("nothing"), "PK\5\6", 4);
	must_refuse(path_of("nothing"), NULL, "zip directory");
	put_text(path_of("blank"), "\n#\n \n");
	must_refuse(path_of("blank"), NULL, "neither name nor content");
	put_text(path_of("prose"), "Dear reader\nthis is not data\n");
	must_refuse(path_of("prose"), NULL, "formats: npz, npy");
	put_file(path_of("binary"), "\1\2\0\3", 4);
	must_refuse(path_of("binary"), NULL, "neither name nor content");
	must_refuse(path_of("plain"), &(DataOptions){ .format = "txet" }, "did you mean 'text'?");
	must_refuse(path_of("plain"), &(DataOptions){ .format = "parquet" }, "formats: npz");
	must_refuse(path_of("plain"), &(DataOptions){ .targets = "a" }, "option 'targets' is for csv");
	must_refuse(path_of("absent.npz"), NULL, "absent.npz");
	must_refuse("make:nothing-like-that", NULL, "nothing-like-that");
	Call c = { .path = path_of("out.xls"), .in = &d };
	assert_int_equal(call(&cx, do_write, &c), MP_BAD_INPUT);
	ctx_free(&cx);
}

/* ---- malformed files ---- */

static void malformed_files_are_refused(void **state)
{
	(void)state;
	static const char *const kinds[] = { "npy", "npz", "text" };
	for (size_t k = 0; k < COUNT(kinds); k++) {
		char path[600];
		snprintf(path, sizeof path, SOURCE_DIR "/test/bad/%s", kinds[k]);
		DIR *dir = opendir(path);
		assert_non_null(dir);
		int files = 0;
		for (struct dirent *e; (e = readdir(dir)) != NULL;) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof path, SOURCE_DIR "/test/bad/%s/%s", kinds[k], e->d_name);
			Ctx cx;
			ctx_init(&cx, NULL);
			Call c = { .path = path };
			Status s = call(&cx, do_open, &c);
			const char *m = ctx_messages(&cx);
			const char *place = strstr(m, ": error: ");
			if (s != MP_BAD_INPUT || !place || place == m || place[-1] < '0' || place[-1] > '9')
				GIVE_UP("%s: status %d, message: %s", path, s, m);
			files++;
			ctx_free(&cx);
		}
		closedir(dir);
		assert_true(files >= 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(npz_keeps_everything),        cmocka_unit_test(npz_keeps_names_that_are_not_utf8),
		cmocka_unit_test(every_type_round_trips),      cmocka_unit_test(text_round_trips_to_the_bit),
		cmocka_unit_test(index_lists_round_trip),      cmocka_unit_test(text_is_read_as_specified),
		cmocka_unit_test(text_reports_several_errors), cmocka_unit_test(npy_partners_are_found_by_name),
		cmocka_unit_test(npy_alone_is_unlabelled),     cmocka_unit_test(npy_masks_become_nan),
		cmocka_unit_test(doubles_are_written_as_npy),  cmocka_unit_test(npy_orders_and_shapes),
		cmocka_unit_test(large_files_stay_mapped),     cmocka_unit_test(no_allocation_failure_hurts),
		cmocka_unit_test(no_write_failure_hurts),      cmocka_unit_test(formats_are_told_apart),
		cmocka_unit_test(malformed_files_are_refused),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
