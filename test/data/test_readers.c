/* SPDX-License-Identifier: MIT */
/* Numbers, CSV, and what all readers have in common: malformed files, no memory. */
#include "readers.h"

/* ---- numbers ---- */

static void check_number(const char *text)
{
	float v = 0, want;
	char *want_end;
	const char *end = number_read(text, text + strlen(text), &v);
	want = strtof(text, &want_end);
	assert_ptr_equal(end, want_end);
	assert_memory_equal(&v, &want, sizeof v);
}

static void numbers_equal_the_c_library(void **state)
{
	(void)state;
	static const char *const hard[] = {
		"0",
		"-0",
		"+1",
		"1.",
		"-.5",
		".5e3",
		"1e",
		"1e+",
		"1e5x",
		"16777217",
		"16777219",
		"16777217.0000000000000000000000000000000000000000000001",
		"16777216.99999999999999999999999999999999",
		"3.4028235e38",
		"3.4028236e38",
		"3.5e38",
		"1e-45",
		"7e-46",
		"7.1e-46",
		"1.17549435e-38",
		"1e-400",
		"1e400",
		"0e999999999999999",
		"00000.000000",
		"inf",
		"-Infinity",
		"INF",
		"123456789012345678901234567890",
		"0.00000000000000000000000000000000000001234567",
		"1e99999999999999999999999",
		"0.1e-99999999999999999999",
		"1.000000059604644775390625",
		"1.00000005960464477539062500000000000000000001",
		"1.000000059604644775390624999999",
		"0.00000000000000000000000",
		"000000000000000000000000012.5",
	};
	for (size_t i = 0; i < COUNT(hard); i++)
		check_number(hard[i]);
	char text[400];
	memset(text, '0', 300);
	memcpy(text, "1.000000059604644775390625", 26); /* exactly between two floats */
	text[300] = '\0';
	check_number(text);
	text[299] = '1';
	check_number(text);
	for (uint64_t i = 0; i < 60000; i++) {
		uint64_t r = random_u64(5, STREAM_DATA, 2 * i), q = random_u64(5, STREAM_DATA, 2 * i + 1);
		uint32_t bits = (uint32_t)r;
		float f;
		memcpy(&f, &bits, sizeof f);
		if (!isfinite(f))
			continue;
		double middle = ((double)f + (double)nextafterf(f, INFINITY)) / 2;
		int digits = (int)(q % 40);
		switch (i % 4) {
		case 0: snprintf(text, sizeof text, "%.9g", (double)f); break;
		case 1: snprintf(text, sizeof text, "%.*e", digits, isfinite(middle) ? middle : 1); break;
		case 2: snprintf(text, sizeof text, "%.*f", digits % 20, (double)(int64_t)r / 9e18); break;
		default: snprintf(text, sizeof text, "%d.%llue%d", (int)(r % 1000), (unsigned long long)q, digits * 3 - 60);
		}
		check_number(text);
	}
}

static void numbers_refused(void **state)
{
	(void)state;
	static const char *const none[] = { "", "-", "+", ".", "-.", "e5", ".e5", "x", "na", "--1", "+-1" };
	float v;
	for (size_t i = 0; i < COUNT(none); i++)
		assert_null(number_read(none[i], none[i] + strlen(none[i]), &v));
	const char *nan = "-nAn";
	assert_ptr_equal(number_read(nan, nan + 4, &v), nan + 4);
	assert_true(isnan(v));
}

static void do_dict(Ctx *cx, void *arg)
{
	(void)arg;
	Dict d = { .arena = &cx->keep };
	uint32_t n;
	assert_false(dict_find(&d, (Text){ "a", 1 }, &n));
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 1000; i++) {
			char *text = NEW(&cx->keep, 8, char);
			assert_int_equal(dict_add(&d, (Text){ text, (uint32_t)sprintf(text, "%u", i) }), i);
		}
	}
	assert_int_equal(d.count, 1000);
	assert_true(dict_find(&d, (Text){ "777", 3 }, &n));
	assert_int_equal(n, 777);
	assert_false(dict_find(&d, (Text){ "7777", 4 }, &n));
	assert_int_equal(dict_add(&d, (Text){ "", 0 }), 1000);
	assert_int_equal(dict_add(&d, (Text){ "", 0 }), 1000);
}

static void dict_numbers_texts(void **state)
{
	(void)state;
	Ctx cx;
	good(&cx, do_dict, &(Job){ 0 });
	ctx_free(&cx);
}

/* ---- CSV ---- */

static void csv_plain(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "\xEF\xBB\xBF"
		              "a,b,y\r\n1,-2.5,3\r\n\r\n +4 , 5e-1,\n7,8,nan" };
	Data *d = good(&cx, do_csv, &j);
	assert_int_equal(d->cases, 3);
	assert_int_equal(d->inputs, 2);
	assert_int_equal(d->targets, 1);
	assert_null(d->codes);
	X(d, 0, 1, -2.5f);
	X(d, 1, 4, 0.5f);
	Y(d, 0, 3);
	Y(d, 1, NAN);
	Y(d, 2, NAN);
	ctx_free(&cx);
}

static void csv_separators_and_quotes(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "\"a;\"\"x\"\"\";b;c\n\"1\"; \"2\" ;3\n" };
	j.opt = (DataOptions){ .inputs = "\"a;\"\"x\"\"\"", .targets = "b,c" };
	Data *d = good(&cx, do_csv, &j);
	X(d, 0, 1);
	Y(d, 0, 2, 3);
	ctx_free(&cx);
	j = (Job){ .text = "a\tb\n1\t2\n" };
	d = good(&cx, do_csv, &j);
	Y(d, 0, 2);
	ctx_free(&cx);
}

static void do_csv_label(Ctx *cx, void *arg)
{
	Job *j = arg;
	j->opt.labels = "kind";
	do_csv(cx, arg);
}

static void csv_labels(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "a,kind\n1,dog\n2,cat\n3,\n4,dog\n5,ant\n" };
	Data *d = good(&cx, do_csv, &j);
	assert_int_equal(d->targets, 3);
	Y(d, 0, 0, 0, 1);
	Y(d, 1, 0, 1, 0);
	Y(d, 2, NAN, NAN, NAN);
	Y(d, 4, 1, 0, 0);
	assert_int_equal(d->code_count, 3);
	assert_text(d->code_names[0], "ant");
	assert_text(d->code_names[2], "dog");
	assert_true(d->codes[4] == 1 && d->codes[3] == 0);
	assert_int_equal(d->class_count, 3);
	assert_string_equal(d->classes[1], "cat");
	ctx_free(&cx);

	j = (Job){ .text = "a,k\n1,10\n2,9\n3,x\n", .opt = { .labels = "k" } }; /* numbers by value, before words */
	d = good(&cx, do_csv, &j);
	assert_text(d->code_names[0], "9");
	assert_text(d->code_names[1], "10");
	assert_text(d->code_names[2], "x");
	ctx_free(&cx);

	j = (Job){ .text = "a,k,v\n1,p,0.5\n2,q,\n", .opt = { .targets = "k,v" } };
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->targets, 3);
	assert_null(d->codes);
	Y(d, 0, 1, 0, 0.5f);
	Y(d, 1, 0, 1, NAN);
	ctx_free(&cx);
}

static const char *const three[] = { "dog", "ant", "cat" };

/* A list of classes decides which target is which, whatever the file has. */
static void csv_classes_given(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "a,kind\n1,cat\n2,\n3,dog\n", .opt = { .classes = three, .class_count = 3 } };
	Data *d = good(&cx, do_csv, &j);
	assert_int_equal(d->targets, 3);
	Y(d, 0, 0, 0, 1);
	Y(d, 1, NAN, NAN, NAN);
	Y(d, 2, 1, 0, 0);
	assert_int_equal(d->class_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(d->classes[i], three[i]);
		assert_text(d->code_names[i], three[i]);
	}
	ctx_free(&cx);

	j.text = "a,kind\n1,\n2,\n"; /* none of them occurs */
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->targets, 3);
	Y(d, 1, NAN, NAN, NAN);
	assert_int_equal(d->code_count, 3);
	ctx_free(&cx);

	static const char *const numbers[] = { "7", "10", "x" }; /* a first value that could be a number */
	j = (Job){ .text = "a,kind\n1,10\n2,x\n", .opt = { .classes = numbers, .class_count = 3 } };
	d = good(&cx, do_csv, &j);
	Y(d, 0, 0, 1, 0);
	Y(d, 1, 0, 0, 1);
	ctx_free(&cx);

	j.opt.class_count = 0; /* no list */
	d = good(&cx, do_csv_label, &j);
	assert_int_equal(d->targets, 2);
	ctx_free(&cx);
}

static void csv_classes_not_meant(void **state)
{
	(void)state;
	Ctx cx;
	/* Two labels, a label and a number, targets that are inputs too, no targets: each as if there were no list. */
	const struct {
		DataOptions opt;
		uint32_t targets;
	} cases[] = {
		{ { .inputs = "v", .targets = "k,l" }, 3 },
		{ { .inputs = "v", .targets = "k,v" }, 3 },
		{ { .inputs = "v", .targets = "v" }, 1 },
		{ { .inputs = "v", .unlabelled = 1 }, 0 },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		Job j = { .text = "k,l,v\np,red,1\nq,red,2\n", .opt = cases[i].opt };
		j.opt.classes = three;
		j.opt.class_count = 3;
		Data *d = good(&cx, do_csv, &j);
		assert_int_equal(d->targets, cases[i].targets);
		assert_null(d->classes);
		ctx_free(&cx);
	}
}

static void csv_classes_refused(void **state)
{
	(void)state;
	static const char *const twice[] = { "a", "b", "a" };
	Job j = { .text = "a,kind\n1,cat\n2,bird\n3,cow\n", .opt = { .classes = three, .class_count = 3 } };
	bad(do_csv, j, "t.csv:3:3: error: 'bird' is none of the 3 classes that were learnt");
	bad(do_csv, j, "t.csv:4:3: error: 'cow' is none of the 3 classes");
	bad(do_csv, j, "the classes are dog, ant, cat\n");
	j.opt.classes = twice;
	bad(do_csv, j, "class 'a' is given twice");
	static const char *many[LABEL_CLASSES + 1];
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = "c";
	j.opt.classes = many;
	j.opt.class_count = COUNT(many);
	bad(do_csv, j, "10001 classes are given");
	static const char *const ten[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
	j.opt.classes = ten;
	j.opt.class_count = 10;
	bad(do_csv, j, "the classes are 0, 1, 2, 3, 4, 5, 6, 7, ...");
	static const char zero[] = "a,kind\n1,c\0at\n2,c\0ow\n";
	bad(do_csv, (Job){ .text = zero, .len = sizeof zero - 1 }, "t.csv:2:4: error: byte 0x00 (NUL) is not text");
}

static void csv_columns(void **state)
{
	(void)state;
	static const char text[] = "a,b,c,d,e\n1,2,3,4,5\n";
	Ctx cx;
	Job j = { .text = text, .opt = { .inputs = "d,1:2" } };
	Data *d = good(&cx, do_csv, &j);
	X(d, 0, 4, 1, 2);
	Y(d, 0, 5);
	ctx_free(&cx);
	j = (Job){ .text = text, .opt = { .inputs = "e,*,a", .targets = "c" } };
	d = good(&cx, do_csv, &j);
	X(d, 0, 5, 2, 4, 1);
	Y(d, 0, 3);
	ctx_free(&cx);
	j = (Job){ .text = text, .opt = { .inputs = "b:c", .targets = "*" } };
	d = good(&cx, do_csv, &j);
	Y(d, 0, 1, 4, 5);
	ctx_free(&cx);
	j = (Job){ .text = text, .opt = { .inputs = "a:c", .targets = "a:c" } }; /* an auto-encoder */
	d = good(&cx, do_csv, &j);
	X(d, 0, 1, 2, 3);
	Y(d, 0, 1, 2, 3);
	ctx_free(&cx);
	j = (Job){ .text = text, .opt = { .unlabelled = 1 } };
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 5);
	assert_int_equal(d->targets, 0);
	ctx_free(&cx);
	j = (Job){ .text = "0,1,2\n7,8,9\n", .opt = { .targets = "0" } }; /* names that are numbers win */
	d = good(&cx, do_csv, &j);
	Y(d, 0, 7);
	ctx_free(&cx);
	j = (Job){ .text = text, .opt = { .inputs = "zebra" } };
	bad(do_csv, j, "there are 5 columns: a, b, c, d, e");
	j.opt.inputs = "a,a";
	bad(do_csv, j, "'a' twice");
	j.opt.inputs = "c:a";
	bad(do_csv, j, "no column 'c:a'");
	j.opt.inputs = "6";
	bad(do_csv, j, "no column '6'");
	j.opt.inputs = "*";
	j.opt.weight = "a,b";
	bad(do_csv, j, "no column 'a,b'");
	j.opt.weight = "*";
	bad(do_csv, j, "must be one column");
	j.opt = (DataOptions){ .inputs = "1:5" };
	bad(do_csv, j, "no column is left for the target");
	j.opt = (DataOptions){ .inputs = "a", .labels = "a" };
	bad(do_csv, j, "a label and an input");
	j.opt = (DataOptions){ .targets = "a", .unlabelled = 1 };
	bad(do_csv, j, "--unlabelled");
	j.opt = (DataOptions){ .targets = "\"a" };
	bad(do_csv, j, "does not end");
	j = (Job){ .text = "temp,a,a\n1,2,3\n", .opt = { .inputs = "tmp" } };
	bad(do_csv, j, "did you mean 'temp'?");
	j.opt.inputs = "a";
	bad(do_csv, j, "several columns are called 'a'");
}

static void csv_wide(void **state)
{
	(void)state;
	char text[4096] = "";
	for (int line = 0; line < 2; line++)
		for (int i = 0; i < 40; i++)
			sprintf(text + strlen(text), "%s%d%s", line ? "" : "a_column_with_a_name_of_over_forty_letters_", i,
			        i < 39 ? "," : "\n");
	Ctx cx;
	Job j = { .text = text, .opt = { .targets = "40" } };
	Data *d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 39);
	Y(d, 0, 39);
	ctx_free(&cx);
	j.opt.targets = "none";
	bad(do_csv, j, ", ...");
	j.opt.targets = "1,1";
	bad(do_csv, j, "twice");
}

static void do_csv_plainly(Ctx *cx, void *arg)
{
	Job *j = arg;
	Src s = { .name = "t.csv", .text = j->text, .len = strlen(j->text) };
	j->d = read_csv(cx, &s, NULL);
}

static void csv_odd_but_right(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "1,2,3\n4,5,6\n" }; /* a header that counts */
	Data *d = good(&cx, do_csv_plainly, &j);
	Y(d, 0, 6);
	ctx_free(&cx);
	/* A column without a name, names almost ours. */
	j = (Job){ .text = "a,,class1,xa1\n4,5,6,7\n", .opt = { .first = 9 } };
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 3);
	ctx_free(&cx);
	j = (Job){ .text = "a,k\n1,\n2,\n", .opt = { .labels = "k" } }; /* a label that no case has */
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->targets, 1);
	Y(d, 1, NAN);
	ctx_free(&cx);
	j = (Job){ .text = "n,a,k\n,1,1\n,2,\n", .opt = { .names = "n" } }; /* names that are all empty */
	d = good(&cx, do_csv, &j);
	assert_text(d->names[1], "");
	ctx_free(&cx);
	j = (Job){ .text = "a,k\n1,ab\n2,a\n3,inf\n4,1\n5,1.0\n", .opt = { .labels = "k" } };
	d = good(&cx, do_csv, &j);
	static const char *const order[] = { "1", "1.0", "a", "ab", "inf" };
	for (uint32_t i = 0; i < 5; i++)
		assert_text(d->code_names[i], order[i]);
	ctx_free(&cx);
	j = (Job){ .text = "x,class,class\n1,2,3\n" };
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 2);
	ctx_free(&cx);
	j = (Job){ .text = "s,a,y\nq,1,red\n", .opt = { .inputs = "a", .targets = "y", .sequence = "s" } };
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->code_count, 1);
	ctx_free(&cx);
	bad(do_csv, (Job){ .text = "a,b,y\n1,2,3\n4,\"5,6\n" }, "t.csv:3:3: error: this quoted field does not end");
	bad(do_csv, (Job){ .text = "x1,y1,weight\n1,2,inf\n3,4,\n" }, "'' is no weight");
	bad(do_csv, (Job){ .text = "x1,y1,weight\n1,2,inf\n" }, "'inf' is no weight");
	bad(do_csv, (Job){ .text = "a,y\nfour-hundred-and-forty-four-thousand-and-four,2\n" }, "is not a number");
	bad(do_csv, (Job){ .text = "a,y\nred,red\n", .opt = { .inputs = "a:y", .targets = "y" } }, "'y' is an input");
	bad(do_csv, (Job){ .text = "1,x2" }, "no cases");
	static const char *const lists[] = { "0", "99999999999999999999", "a:zz", "zz:a", "*:a" };
	for (size_t i = 0; i < COUNT(lists); i++)
		bad(do_csv, (Job){ .text = "a,b\n1,2\n", .opt = { .inputs = lists[i] } }, "no column");
	bad(do_csv, (Job){ .text = "a,b\n1,2\n", .opt = { .labels = "a", .unlabelled = 1 } }, "--unlabelled");
}

static void do_300_classes(Ctx *cx, void *arg)
{
	Buf b = { .arena = &cx->keep };
	buf_puts(&b, "x,class\n");
	for (int i = 0; i < 300; i++)
		buf_printf(&b, "%d,c%d\n", i, i);
	Job *j = arg;
	j->text = b.s;
	do_csv(cx, arg);
}

/* Data with very many classes gets no code table. */
static void many_classes_have_no_codes(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { 0 };
	Data *d = good(&cx, do_300_classes, &j);
	assert_int_equal(d->targets, 300);
	assert_null(d->codes);
	assert_int_equal(d->class_count, 300);
	assert_string_equal(d->classes[299], "c99");
	ctx_free(&cx);
}

static void csv_sequences_weights_names(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "id,s,w,x,y\np,1,1,1,2\nq,1,0.5,3,4\n,,2,5,6\nr,2,0,7,8\n",
		      .opt = { .sequence = "s", .weight = "w", .names = "id" } };
	Data *d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 1);
	assert_int_equal(d->sequences, 2);
	assert_int_equal(d->seq[1], 3);
	assert_int_equal(d->seq[2], 4);
	assert_float_equal(d->weight[1], 0.5f, 0);
	assert_text(d->names[1], "q");
	assert_text(d->names[2], "");
	assert_text(d->names[3], "r");
	ctx_free(&cx);
	j.opt.first = 2;
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->cases, 2);
	assert_int_equal(d->sequences, 1);
	ctx_free(&cx);
}

static void csv_reports_several_errors(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "a,b,y\n1,x,3\n,2,3\n1,2\n" };
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, do_csv, &j), MP_BAD_INPUT);
	assert_int_equal(cx.errors, 3);
	assert_non_null(strstr(ctx_messages(&cx), "t.csv:2:3: error: 'x' is not a number, and 'b' is an input"));
	assert_non_null(strstr(ctx_messages(&cx), "t.csv:3:1: error: input 'a' is empty here"));
	assert_non_null(strstr(ctx_messages(&cx), "t.csv:4:4: error: this line has fewer fields than the 3 columns"));
	ctx_free(&cx);
}

static void do_many_classes(Ctx *cx, void *arg)
{
	Buf b = { .arena = &cx->keep };
	buf_puts(&b, "x,class\n");
	for (int i = 0; i <= 10000; i++)
		buf_printf(&b, "1,c%d\n", i);
	*(Job *)arg = (Job){ .text = b.s, .len = b.len };
	do_csv(cx, arg);
}

static void csv_too_many_classes(void **state)
{
	(void)state;
	bad(do_many_classes, (Job){ 0 }, "more than 10000 different values");
}

static void csv_round_trips(void **state)
{
	(void)state;
	round_trip((Job){ .text = "a,b,c\n0.1,1e-38,3\n16777216,-0.333333333,\n" }, do_csv, "a.csv", true);
	round_trip((Job){ .text = "a,k\n1,dog\n2,\"c,a\"\"t\"\n3, 9 \n" }, do_csv, "b.csv", true);
	round_trip((Job){ .text = "a,k\n1,0\n2,1\n3,10\n4,2\n", .opt = { .labels = "k" } }, do_csv, "c.csv", true);
	round_trip((Job){ .text = "a,k\n1,p\n2,\n", .opt = { .labels = "k" } }, do_csv, "d.csv", true);
	round_trip((Job){ .text = "n,s,w,x,y\n\" p\",1,1,1,2\n\"q,\"\"\",1,0.5,3,4\n,2,2,5,6\n",
	                  .opt = { .sequence = "s", .weight = "w", .names = "n" } },
	           do_csv, "e.csv", true);
	round_trip((Job){ .text = "a,b\n1,2\n", .opt = { .unlabelled = 1 } }, do_csv, "f.csv", true);
	round_trip(
		(Job){ .text = "n,a,y\np;q,1,1234567\n\"r\ts\",-1e9,-0\n\"t \",2,0.1234567891\n", .opt = { .names = "n" } },
		do_csv, "j.csv", true);
	round_trip((Job){ .path = "make:letters" }, do_open, "k.csv", false);
	round_trip((Job){ .path = "make:reber" }, do_open, "g.csv", true);
	round_trip((Job){ .path = "make:temporal-xor" }, do_open, "h.csv", true);
	round_trip((Job){ .path = "make:spirals" }, do_open, "i.csv", true);
}

static void csv_own_header(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "y2,x,y1,weight\n1,2,3,4\n" };
	Data *d = good(&cx, do_csv, &j);
	X(d, 0, 2);
	Y(d, 0, 1, 3);
	assert_float_equal(d->weight[0], 4, 0);
	ctx_free(&cx);
	j.opt.unlabelled = 1;
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 1);
	assert_int_equal(d->targets, 0);
	ctx_free(&cx);
	j = (Job){ .text = "x1,x2,weight,weight\n1,2,3,4\n" }; /* not ours: the last column is the target */
	d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 3);
	ctx_free(&cx);
}

/* Naming one of our own columns leaves the others what they are. */
static void csv_own_header_with_options(void **state)
{
	(void)state;
	static const char ours[] = "x1,x2,y1,y2,sequence,weight,name\n1,2,3,4,1,0.5,p\n5,6,7,8,1,2,q\n";
	static const DataOptions options[] = {
		{ .sequence = "sequence" },
		{ .weight = "weight" },
		{ .names = "name" },
		{ .sequence = "5", .names = "7" },
		{ .sequence = "sequence", .weight = "weight", .names = "name" },
	};
	for (size_t i = 0; i < COUNT(options); i++) {
		Ctx cx;
		Job j = { .text = ours, .opt = options[i] };
		Data *d = good(&cx, do_csv, &j);
		X(d, 1, 5, 6);
		Y(d, 1, 7, 8);
		assert_int_equal(d->sequences, 1);
		assert_float_equal(d->weight[0], 0.5f, 0);
		assert_text(d->names[1], "q");
		ctx_free(&cx);
	}
	Ctx cx;
	Job j = { .text = "x1,x2,class,name,series\n1,2,a,p,1\n3,4,b,q,2\n", .opt = { .sequence = "series" } };
	Data *d = good(&cx, do_csv, &j);
	assert_int_equal(d->inputs, 2);
	assert_int_equal(d->sequences, 2);
	assert_int_equal(d->class_count, 2);
	assert_text(d->names[1], "q");
	ctx_free(&cx);
	/* Two sequences, or inputs that are chosen: not ours, the last column left is the target. */
	j = (Job){ .text = "x1,series,sequence,y1,y2\n1,2,3,4,5\n", .opt = { .sequence = "series" } };
	d = good(&cx, do_csv, &j);
	X(d, 0, 1, 3, 4);
	Y(d, 0, 5);
	ctx_free(&cx);
	j = (Job){ .text = "x1,y1,y2\n1,2,3\n", .opt = { .inputs = "x1" } };
	d = good(&cx, do_csv, &j);
	Y(d, 0, 3);
	ctx_free(&cx);
}

static void csv_cannot_hold_line_breaks(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "n,x,y\np,1,2\n", .opt = { .names = "n" } };
	Data *d = good(&cx, do_csv, &j);
	Job out = { .path = in_folder("n.csv"), .d = d };
	((Text *)(uintptr_t)d->names)[0] = (Text){ "a\rb", 3 };
	assert_int_equal(guarded(&cx, do_write, &out), MP_BAD_INPUT);
	((Text *)(uintptr_t)d->names)[0] = (Text){ "a\nb", 3 };
	assert_int_equal(guarded(&cx, do_write, &out), MP_BAD_INPUT);
	arena_free(&cx.scratch);
	assert_int_equal(access(out.path, F_OK), -1);
	ctx_free(&cx);
}

/* ---- all of them ---- */

/* A first line that holds values is a case; years and numbers that count the columns are names. */
static void csv_without_header(void **state)
{
	static const struct {
		const char *text;
		uint64_t cases;
	} files[] = {
		{ "0,2\n1,2\n", 2 },
		{ "0.1,0.2,1\n0.3,0.4,0\n", 2 },
		{ "5.1,3.5,red\n4.9,3.0,blue\n", 2 },
		{ "1,2,3\n4,5,6\n", 1 },
		{ "country,2019,2020\nmali,1,2\n", 1 },
		{ "a,1.5\n2,3\n", 1 },
		{ "0,1,2\n3,4,5\n6,7,8\n", 2 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(files); i++) {
		Ctx cx;
		Job j = { .text = files[i].text };
		if (strstr(j.text, "mali"))
			j.opt.inputs = "2019";
		Data *d = good(&cx, do_csv, &j);
		assert_int_equal(d->cases, files[i].cases);
		ctx_free(&cx);
	}
}

/* Every file of test/bad is refused with a place and a remedy. */
static void bad_files_are_refused(void **state)
{
	(void)state;
	static const char *const kinds[] = { "csv", "idx", "nettalk" };
	int files = 0;
	for (size_t k = 0; k < COUNT(kinds); k++) {
		char path[1024];
		snprintf(path, sizeof path, "%s/test/bad/%s", SOURCE_DIR, kinds[k]);
		DIR *dir = opendir(path);
		assert_non_null(dir);
		for (struct dirent *e; (e = readdir(dir)) != NULL;) {
			if (e->d_name[0] == '.')
				continue;
			char file[2048], place[4096];
			snprintf(file, sizeof file, "%s/%s", path, e->d_name);
			snprintf(place, sizeof place, "%s", file);
			if (strcmp(e->d_name, "damaged-labels.idx") == 0) /* the fault is in its partner */
				snprintf(place, sizeof place, "%s/damaged-labels-labels.idx", path);
			strncat(place, ":", sizeof place - strlen(place) - 1);
			bad(do_open, (Job){ .path = file, .opt = { .format = kinds[k] } }, place);
			files++;
		}
		closedir(dir);
	}
	assert_true(files >= 34);
}

/* Whichever allocation fails, the reader unwinds and nothing leaks. */
static void no_memory(void **state)
{
	(void)state;
	Job idx = idx_job(BYTES(0, 0, 11, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4), BYTES(0, 0, 8, 1, 0, 0, 0, 1, 1));
	const struct {
		Body *body;
		Job job;
	} jobs[] = {
		{ do_csv, { .text = "n,a,b,k\np,1,2,x\nq,3,4,\"y\"\"\"\n", .opt = { .names = "n", .sequence = "n" } } },
		{ do_csv, { .text = "a,k\n1,ant\n2,cat\n", .opt = { .classes = three, .class_count = 3 } } },
		{ do_idx, idx },
		{ do_nettalk, { .text = "ab\t@b\t1<\t0\n" } },
		{ do_open, { .path = "make:letters" } },
		{ do_open, { .path = "make:reber" } },
	};
	for (size_t i = 0; i < COUNT(jobs); i++) {
		Status s = MP_NO_MEMORY;
		for (long n = 1; s != MP_OK; n++) {
			Ctx cx;
			Meter m = { .fail_at = n };
			Job j = jobs[i].job;
			ctx_init(&cx, &(Alloc){ meter_resize, &m });
			s = guarded(&cx, jobs[i].body, &j);
			assert_true(s == MP_OK || s == MP_NO_MEMORY);
			ctx_free(&cx);
			assert_int_equal(m.live, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_equal_the_c_library),
		cmocka_unit_test(numbers_refused),
		cmocka_unit_test(dict_numbers_texts),
		cmocka_unit_test(csv_plain),
		cmocka_unit_test(csv_separators_and_quotes),
		cmocka_unit_test(csv_labels),
		cmocka_unit_test(csv_classes_given),
		cmocka_unit_test(csv_classes_not_meant),
		cmocka_unit_test(csv_classes_refused),
		cmocka_unit_test(csv_columns),
		cmocka_unit_test(csv_wide),
		cmocka_unit_test(csv_odd_but_right),
		cmocka_unit_test(many_classes_have_no_codes),
		cmocka_unit_test(csv_sequences_weights_names),
		cmocka_unit_test(csv_reports_several_errors),
		cmocka_unit_test(csv_too_many_classes),
		cmocka_unit_test(csv_round_trips),
		cmocka_unit_test(csv_own_header),
		cmocka_unit_test(csv_own_header_with_options),
		cmocka_unit_test(csv_cannot_hold_line_breaks),
		cmocka_unit_test(csv_without_header),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
