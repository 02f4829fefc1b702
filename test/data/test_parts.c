/* SPDX-License-Identifier: MIT */
/* What is done with data once it is read: packing, splitting, taking the first cases, scaling, describing. */
#include "test_data.h"

/* ---- packing ---- */

static void few_ones_are_packed(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	uint8_t x[64] = { 0 };
	Data d = { .name = "bits", .cases = 4, .inputs = 16, .x = x, .x_type = T_U8 };
	for (int ones = 0; ones <= 8; ones++) {
		memset(x, 0, sizeof x);
		for (int i = 0; i < ones; i++)
			x[i * 7 + 3] = 1;
		must_write(&cx, &d, path_of("bits.npz"));
		Data *e = must_open(&cx, path_of("bits.npz"), NULL);
		assert_int_equal(e->x_indptr != NULL, ones < 8);
		same_cases(&d, e);
	}
	memset(x, 0, sizeof x);
	x[5] = 2;
	must_write(&cx, &d, path_of("bits.npz"));
	assert_null(must_open(&cx, path_of("bits.npz"), NULL)->x_indptr);
	ctx_free(&cx);
}

/* ---- parts ---- */

static void parts_are_disjoint_and_complete(void **state)
{
	(void)state;
	enum { N = 1000 };
	Ctx cx;
	ctx_init(&cx, NULL);
	float *x = calloc(N, sizeof *x);
	uint64_t *seq = calloc(N, sizeof *seq), sequences = 0;
	for (uint32_t i = 0; i < N; i++)
		x[i] = (float)i;
	while (seq[sequences] < N) {
		uint64_t next = seq[sequences] + 1 + sequences % 5;
		seq[++sequences] = next < N ? next : N;
	}
	for (int sequenced = 0; sequenced < 2; sequenced++) {
		Data d = {
			.name = "n", .cases = N, .inputs = 1, .targets = 1, .x = x, .x_type = T_F32, .y = x, .y_type = T_F32
		};
		if (sequenced)
			d.seq = seq, d.sequences = sequences;
		uint8_t seen[N] = { 0 };
		uint64_t total = 0;
		for (int rest = 0; rest < 2; rest++) {
			Call c = { .in = &d, .share = 0.8, .kind = rest };
			assert_int_equal(call(&cx, do_part, &c), MP_OK);
			uint64_t wanted = (uint64_t)(0.8 * (double)data_examples(&d) + 0.5);
			assert_int_equal(data_examples(c.out), rest ? data_examples(&d) - wanted : wanted);
			float last = -1, v;
			for (uint64_t i = 0; i < c.out->cases; i++) {
				data_x(c.out, i, &v);
				assert_true(v > last);
				last = v;
				assert_int_equal(seen[(int)v]++, 0);
			}
			for (uint64_t e = 0; sequenced && e < c.out->sequences; e++) {
				uint64_t first, count;
				data_example(c.out, e, &first, &count);
				data_x(c.out, first, &v);
				uint64_t s = 0;
				while (seq[s] != (uint64_t)v)
					s++;
				assert_int_equal(seq[s + 1] - seq[s], count);
			}
			total += c.out->cases;
		}
		assert_int_equal(total, N);
	}
	free(x);
	free(seq);
	ctx_free(&cx);
}

static void parts_keep_what_belongs_to_them(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	char per_case[256], whole[256], names[256], turned[256], single[256], big[256];
	Extra extra[] = {
		{ "age", per_case, put_npy(per_case, "<i2", false, "(4, 1)", "\1\0\2\0\3\0\4\0", 8) },
		{ "shape", whole, put_npy(whole, "<i2", false, "(2,)", "\1\0\2\0", 4) },
		{ "who", names, put_npy(names, "|S2", false, "(4,)", "a\0bbc\0dd", 8) },
		{ "turned", turned, put_npy(turned, "|u1", true, "(4, 1)", "abcd", 4) },
		{ "single", single, put_npy(single, "|u1", false, "()", "a", 1) },
		{ "big", big, put_npy(big, ">u2", true, "(4,)", "\0\1\0\2\0\3\0\4", 8) },
		{ "notes.md", "hello", 5 },
	};
	Data d = sample();
	static const uint8_t mask[] = { 1, 1, 0, 1, 1, 0, 1, 1 };
	d.mask = mask;
	d.extra = extra;
	d.extras = COUNT(extra);
	static const char *const classes[] = { "no", "yes" };
	d.classes = classes;
	d.class_count = 2;
	for (int rest = 0; rest < 2; rest++) {
		Call c = { .in = &d, .share = 0.5, .kind = rest };
		assert_int_equal(call(&cx, do_part, &c), MP_OK);
		const Data *e = c.out;
		assert_int_equal(e->sequences, 1);
		uint64_t from = e->cases == 1 ? 0 : 1; /* the sequences have 1 and 3 cases */
		float p[3], q[3];
		for (uint64_t i = 0; i < e->cases; i++) {
			data_x(&d, from + i, p), data_x(e, i, q);
			same_floats(p, q, 3);
			data_y(&d, from + i, p), data_y(e, i, q);
			same_floats(p, q, 2);
			same_texts(&d.names[from + i], &e->names[i], 1);
			assert_true(e->weight[i] == d.weight[from + i]);
		}
		assert_memory_equal(e->codes, d.codes, sizeof sample_codes);
		same_texts(d.code_names, e->code_names, 2);
		assert_int_equal(e->class_count, 2);
		assert_string_equal(e->classes[1], "yes");
		assert_ptr_not_equal(e->classes[1], classes[1]);
		assert_int_equal(e->scale.kind, SCALE_ZSCORE);
		Npy a;
		assert_true(npy_peek(e->extra[0].npy, e->extra[0].len, &a));
		assert_int_equal(a.dim[0], e->cases);
		assert_true(dtype_get(a.type, a.data, 0) == (double)from + 1);
		assert_int_equal(e->extra[1].len, extra[1].len);
		assert_true(npy_peek(e->extra[2].npy, e->extra[2].len, &a));
		assert_int_equal(a.data[0], from ? 'b' : 'a');
		for (int k = 3; k < 5; k++) /* not by rows: the same for all parts */
			assert_memory_equal(e->extra[k].npy, extra[k].npy, extra[k].len);
		assert_true(npy_peek(e->extra[5].npy, e->extra[5].len, &a));
		assert_true(a.swap);
		assert_int_equal(a.data[1], from + 1);
		assert_int_equal(e->extra[6].len, 5);
	}
	Data lists = sample_lists(true);
	Call c = { .in = &lists, .share = 0.6 };
	assert_int_equal(call(&cx, do_part, &c), MP_OK);
	assert_non_null(c.out->x_indptr);
	assert_int_equal(c.out->cases, 2);
	lists.x_values = NULL;
	assert_int_equal(call(&cx, do_part, &c), MP_OK);
	assert_null(c.out->x_values);
	c.share = 1e-9; /* neither part is ever empty */
	assert_int_equal(call(&cx, do_part, &c), MP_OK);
	assert_int_equal(c.out->cases, 1);
	c.share = 1 - 1e-9;
	assert_int_equal(call(&cx, do_part, &c), MP_OK);
	assert_int_equal(c.out->cases, 2);
	static const double wrong[] = { 0, 1, -1, 2, NAN };
	for (size_t i = 0; i < COUNT(wrong); i++) {
		c.share = wrong[i];
		assert_int_equal(call(&cx, do_part, &c), MP_BAD_INPUT);
	}
	lists.cases = 1;
	c.share = 0.5;
	assert_int_equal(call(&cx, do_part, &c), MP_BAD_INPUT);
	ctx_free(&cx);
}

static void first_cases_only(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = sample();
	char per_case[256];
	Extra extra[] = { { "age", per_case, put_npy(per_case, "<i2", false, "(4,)", "\1\0\2\0\3\0\4\0", 8) } };
	d.extra = extra;
	d.extras = 1;
	must_write(&cx, &d, path_of("first.npz"));
	must_write(&cx, &d, path_of("first.txt"));
	Data *e = must_open(&cx, path_of("first.npz"), &(DataOptions){ .first = 3 });
	assert_int_equal(e->cases, 1); /* the second sequence does not fit */
	assert_int_equal(e->sequences, 1);
	Npy a;
	assert_true(npy_peek(e->extra[0].npy, e->extra[0].len, &a));
	assert_int_equal(a.count, 1);
	assert_int_equal(must_open(&cx, path_of("first.txt"), &(DataOptions){ .first = 9 })->cases, 4);
	put_text(path_of("plain.txt"), "1\n2\n3\n");
	assert_int_equal(must_open(&cx, path_of("plain.txt"), &(DataOptions){ .first = 2 })->cases, 2);
	put_text(path_of("long.txt"), "sequence\n1\n2\n3\n");
	must_refuse(path_of("long.txt"), &(DataOptions){ .first = 2 }, "the first sequence");
	ctx_free(&cx);
}

/* ---- scaling ---- */

static void scales_fit(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	put_text(path_of("scale.txt"), "1 5 0.1 : 0\n3 5 0.1 : 0\n5 5 0.1 : 1\n11 5 0.1 : 1\n");
	Data *d = must_open(&cx, path_of("scale.txt"), NULL);
	Call c = { .out = d, .kind = SCALE_RANGE };
	assert_int_equal(call(&cx, do_scale, &c), MP_OK);
	float x[3];
	data_x(d, 2, x);
	same_floats(x, (float[]){ 0.4f, 0, 0 }, 3);
	assert_int_equal(call(&cx, do_scale, &c), MP_BAD_INPUT); /* not twice */
	must_write(&cx, d, path_of("scaled.npz"));
	same_data(d, must_open(&cx, path_of("scaled.npz"), NULL));
	must_write(&cx, d, path_of("scaled.txt"));
	same_data(d, must_open(&cx, path_of("scaled.txt"), NULL));

	Data *other = must_open(&cx, path_of("scale.txt"), NULL);
	Call also = { .out = other, .scale = &d->scale };
	assert_int_equal(call(&cx, do_scale, &also), MP_OK);
	same_data(d, other);
	assert_int_equal(call(&cx, do_scale, &also), MP_OK); /* the same once more is no change */
	same_data(d, other);

	d = must_open(&cx, path_of("scale.txt"), NULL);
	c = (Call){ .out = d, .kind = SCALE_ZSCORE };
	assert_int_equal(call(&cx, do_scale, &c), MP_OK);
	double mean = 0, square = 0;
	for (uint64_t i = 0; i < 4; i++) {
		data_x(d, i, x);
		mean += (double)x[0];
		square += (double)x[0] * (double)x[0];
		assert_true(x[1] == 0 && x[2] == 0);
	}
	assert_true(fabs(mean) < 1e-6 && fabs(square / 4 - 1) < 1e-6);
	assert_int_equal(call(&cx, do_scale, &also), MP_OK);
	also.out = d;
	assert_int_equal(call(&cx, do_scale, &also), MP_BAD_INPUT);

	static double other_offset[] = { 1, 5, 0.25 }, other_factor[] = { 0.1, 1, 2 };
	Scale near = { SCALE_RANGE, other->scale.offset, other_factor }, far = { SCALE_RANGE, other_offset, other_factor };
	also = (Call){ .out = other, .scale = &near };
	assert_int_equal(call(&cx, do_scale, &also), MP_BAD_INPUT);
	also.scale = &far;
	assert_int_equal(call(&cx, do_scale, &also), MP_BAD_INPUT);
	also.scale = &(Scale){ 0 };
	assert_int_equal(call(&cx, do_scale, &also), MP_OK);

	Data lists = sample_lists(false);
	c = (Call){ .out = &lists, .kind = SCALE_RANGE };
	assert_int_equal(call(&cx, do_scale, &c), MP_OK);
	assert_null(lists.x_indptr);
	Data dense = sample_lists(false);
	same_cases(&dense, &lists);
	ctx_free(&cx);
}

/* ---- describing ---- */

static void descriptions_are_right(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	put_text(path_of("d.txt"), "code b 0 1\ncode a 1 0\n1 0 -2 : 1 0\n0 0 1 : 0 1\n"
	                           "3 0 0 : 1 0\n1 1 1 : ? ?\n1 1 1 : ? 0.5 weight 2\n");
	Call c = { .in = must_open(&cx, path_of("d.txt"), NULL) };
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	mp_data_info *i = &c.info;
	assert_int_equal(i->cases, 5);
	assert_int_equal(i->codes, 2);
	assert_int_equal(i->missing, 3);
	assert_true(i->min == -2 && i->max == 3 && i->target_min == 0 && i->target_max == 1);
	assert_true(fabs(i->density - 10.0 / 15) < 1e-12);
	assert_int_equal(i->weighted, 1);
	assert_int_equal(i->classes, 3);
	assert_string_equal(i->class_names[0], "a");
	assert_int_equal(i->class_cases[0], 2);
	assert_string_equal(i->class_names[1], "b");
	assert_string_equal(i->class_names[2], "? 0.5");
	assert_string_equal(i->storage, "float32");
	assert_string_equal(i->scale, "none");

	put_text(path_of("d.txt"), "0 : 0 1 0\n1 : 0 0 0\n2 : 1 1 0\n3 : 0 1 0\n");
	c.in = must_open(&cx, path_of("d.txt"), NULL);
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_string_equal(i->class_names[0], "1");
	assert_string_equal(i->class_names[1], "0 0 0");
	put_text(path_of("d.txt"), "0 : 1\n1 : 0\n2 : 1\n");
	c.in = must_open(&cx, path_of("d.txt"), NULL);
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_string_equal(i->class_names[0], "1");
	assert_int_equal(i->class_cases[0], 2);

	Data lists = sample_lists(true);
	lists.targets = 0;
	c.in = &lists;
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_true(i->min == -2 && i->max == 1);
	assert_true(fabs(i->density - 5.0 / 96) < 1e-12);
	assert_string_equal(i->storage, "index");
	assert_int_equal(i->classes, 0);

	lists.x_values = NULL;
	lists.targets = 1;
	lists.y = (float[]){ NAN, NAN, NAN };
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_true(i->min == 0 && i->max == 1 && i->target_min == 0 && i->target_max == 0);
	assert_int_equal(i->missing, 3);
	Data full = { .name = "full", .cases = 1, .inputs = 2, .x_indptr = list_indptr, .x_indices = (uint32_t[]){ 0, 1 } };
	c.in = &full;
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_true(i->min == 1 && i->density == 1);
	full.extra = &(Extra){ "k", "", 0 };
	full.extras = 1;
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_string_equal(i->extra[0], "k");

	float y[1200], long_y[80] = { 0 };
	for (int k = 0; k < 1200; k++)
		y[k] = (float)k;
	Data many = {
		.name = "many", .cases = 1000, .inputs = 1, .targets = 1, .x = y, .x_type = T_F32, .y = y, .y_type = T_F32
	};
	c.in = &many;
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_int_equal(i->classes, 1000);
	many.cases = 1001;
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_int_equal(i->classes, 0);
	many.cases = 2;
	many.targets = 40;
	many.y = long_y;
	assert_int_equal(call(&cx, do_describe, &c), MP_OK);
	assert_int_equal(i->classes, 1);
	assert_non_null(strstr(i->class_names[0], "0 0 ..."));
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_ones_are_packed),
		cmocka_unit_test(parts_are_disjoint_and_complete),
		cmocka_unit_test(parts_keep_what_belongs_to_them),
		cmocka_unit_test(first_cases_only),
		cmocka_unit_test(scales_fit),
		cmocka_unit_test(descriptions_are_right),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
