/* SPDX-License-Identifier: MIT */
/* Tables: what their columns are taken for, how rows are cut and encoded, schemas as text, metrics by hand. */
#include <math.h>
#include <unistd.h>

#include "test.h"

#include "formats.h"
#include "table.h"

typedef struct Job {
	const char *text, *json;
	DataOptions opt;
	int task, scale; /* scale: SCALE_... + 1, 0: by the inputs */
	Cut cut;
	Frame *t;
	Schema *s;
	uint8_t *part;
	Data *data, *held_out;
	char *decisions;
} Job;

/* A file, since tables are read from files. */
static const char *file_of(const char *text)
{
	static char path[64];
	snprintf(path, sizeof path, "/tmp/test_schema-%d.csv", (int)getpid());
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void do_infer(Ctx *cx, void *arg)
{
	Job *j = arg;
	Buf decisions = { .arena = &cx->keep };
	j->t = table_open(cx, file_of(j->text), &j->opt, NULL);
	j->s = schema_infer(cx, j->t, &(InferOptions){ j->task, j->scale - 1, &decisions });
	j->decisions = decisions.s;
}

static void do_all(Ctx *cx, void *arg)
{
	Job *j = arg;
	do_infer(cx, arg);
	j->part = table_cut(cx, j->t, j->s, &j->cut);
	schema_fit(cx, j->s, j->t, j->part);
	j->data = table_encode(cx, j->t, j->s, j->part, PART_TRAIN);
	if (j->cut.share > 0 || j->cut.folds)
		j->held_out = table_encode(cx, j->t, j->s, j->part, PART_HELD_OUT);
}

static void do_parse(Ctx *cx, void *arg)
{
	Job *j = arg;
	j->s = schema_parse(cx, (Loc){ 0 }, j->json);
}

static void good(Ctx *cx, void (*body)(Ctx *, void *), Job *j)
{
	ctx_init(cx, NULL);
	if (guarded(cx, body, j) != MP_OK)
		print_error("%s", ctx_messages(cx));
	assert_int_equal(cx->status, MP_OK);
}

static void bad(void (*body)(Ctx *, void *), Job j, const char *says)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_not_equal(guarded(&cx, body, &j), MP_OK);
	if (!strstr(ctx_messages(&cx), says))
		print_error("'%s' is not in: %s", says, ctx_messages(&cx));
	assert_non_null(strstr(ctx_messages(&cx), says));
	ctx_free(&cx);
}

static const Field *field(const Schema *s, const char *name)
{
	uint32_t i;
	assert_true(schema_find(s, (Text){ name, (uint32_t)strlen(name) }, &i));
	return &s->column[i];
}

static void kinds_are_found(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "n,b,c,gap,same,word,t\n"
		              "1.5,0,red,1,7,q1,yes\n2.5,1,blue,,7,q2,no\n3,0,red,3,7,q3,yes\n4,1,NA,4,7,q4,no\n" };
	good(&cx, do_infer, &j);
	assert_int_equal(field(j.s, "n")->kind, VALUE_NUMBER);
	assert_int_equal(field(j.s, "b")->kind, VALUE_BINARY);
	assert_int_equal(field(j.s, "c")->kind, VALUE_CATEGORY);
	assert_int_equal(field(j.s, "c")->categories, 2);
	assert_true(field(j.s, "c")->indicator && field(j.s, "gap")->indicator && !field(j.s, "n")->indicator);
	assert_int_equal(field(j.s, "same")->role, COLUMN_UNUSED);
	assert_int_equal(field(j.s, "t")->role, COLUMN_TARGET);
	assert_int_equal(j.s->task, TASK_CLASSES);
	assert_non_null(strstr(j.decisions, "'same' (one value only)"));
	assert_int_equal(j.s->inputs, 1 + 1 + 3 + 2 + 4);
	ctx_free(&cx);
}

static void tasks_are_found(void **state)
{
	static const struct {
		const char *text;
		int asked, task;
	} tables[] = {
		{ "a,y\n1,0\n2,1\n3,0\n", 0, TASK_BINARY },
		{ "a,y\n1,0.5\n2,1\n3,0\n", 0, TASK_REGRESSION },
		{ "a,y\n1,2\n2,1\n3,2\n4,1\n5,1\n6,2\n7,1\n8,2\n9,2\n3,1\n", 0, TASK_CLASSES },
		{ "a,y\n1,2\n2,1\n3,2\n4,1\n5,1\n6,2\n7,1\n8,2\n9,2\n3,1\n", TASK_REGRESSION, TASK_REGRESSION },
		{ "a,y\n1,2\n2,1\n3,3\n", 0, TASK_REGRESSION },
		{ "a,y\n1,2\n2,1\n3,3\n", TASK_CLASSES, TASK_CLASSES },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(tables); i++) {
		Ctx cx;
		Job j = { .text = tables[i].text, .task = tables[i].asked };
		good(&cx, do_infer, &j);
		assert_int_equal(j.s->task, tables[i].task);
		ctx_free(&cx);
	}
	Ctx cx;
	Job two = { .text = "a,y,z\n1,0,1\n2,1,1\n3,0,0\n", .opt = { .targets = "y,z" } };
	good(&cx, do_infer, &two);
	assert_int_equal(two.s->task, TASK_BINARY);
	assert_int_equal(two.s->targets, 2);
	ctx_free(&cx);
}

static void rows_are_encoded(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "n,c,y\n1,red,10\n3,blue,20\n,red,30.5\n5,,40\n", .cut = { .seed = 1 } };
	good(&cx, do_all, &j);
	/* n: mean 3, deviation sqrt(8/3); an indicator; c: blue, red, missing */
	assert_int_equal(j.data->inputs, 5);
	float x[5], y;
	data_x(j.data, 0, x);
	assert_true(fabsf(x[0] + 2 / sqrtf(8.0f / 3)) < 1e-6f && x[1] == 0 && x[2] == 0 && x[3] == 1 && x[4] == 0);
	data_x(j.data, 2, x);
	assert_true(x[0] == 0 && x[1] == 1);
	data_x(j.data, 3, x);
	assert_true(x[2] == 0 && x[3] == 0 && x[4] == 1);
	data_y(j.data, 3, &y);
	assert_true(fabs(target_decode(schema_target(j.s, 0), (double)y) - 40) < 1e-5);
	ctx_free(&cx);
}

/* 100 rows, 3 classes of 60, 30 and 10. */
static const char *many_rows(Ctx *cx)
{
	Buf b = { .arena = &cx->keep };
	buf_puts(&b, "x,k\n");
	for (int i = 0; i < 100; i++)
		buf_printf(&b, "%d.5,%s\n", i * 7 % 31, i % 10 == 0 ? "c" : i % 10 < 4 ? "b" : "a");
	return b.s;
}

/* The missing one is the mean of the others in every scale, and stays so in the text of the schema. */
static void scales_are_chosen(void **state)
{
	(void)state;
	static const float expected[][4] = { [SCALE_NONE] = { 2, 4, 9, 5 },
		                                 [SCALE_RANGE] = { 0, 2 / 7.0F, 1, 3 / 7.0F },
		                                 [SCALE_ZSCORE] = { -1.01904933F, -0.339683110F, 1.35873244F, 0 } };
	for (int scale = SCALE_NONE; scale <= SCALE_ZSCORE; scale++) {
		Ctx cx;
		Buf json = { 0 };
		Job j = { .text = "a,b,t\n2,0,x\n4,1,y\n9,0,x\n,1,y\n", .scale = scale + 1 };
		good(&cx, do_all, &j);
		json.arena = &cx.keep;
		for (uint64_t i = 0; i < 4; i++) {
			float x[8];
			data_x(j.data, i, x);
			assert_float_equal(x[0], expected[scale][i], 1e-6F);
			assert_float_equal(x[1], i == 3, 0);
		}
		schema_print(j.s, &json);
		j.json = json.s;
		double fill = field(j.s, "a")->fill;
		do_parse(&cx, &j);
		assert_float_equal(field(j.s, "a")->fill, fill, 0);
		ctx_free(&cx);
	}
}

static void cuts_keep_the_balance(void **state)
{
	(void)state;
	Ctx own, cx;
	ctx_init(&own, NULL);
	Job j = { .text = many_rows(&own), .cut = { .share = 0.2, .seed = 3, .stratify = true } };
	good(&cx, do_all, &j);
	assert_int_equal(j.data->cases, 80);
	assert_int_equal(j.held_out->cases, 20);
	uint32_t count[3] = { 0 };
	for (uint64_t i = 0; i < 20; i++) {
		float y[3];
		data_y(j.held_out, i, y);
		count[row_one_of_n(y, 3)]++;
	}
	assert_true(count[0] == 12 && count[1] == 6 && count[2] == 2);
	ctx_free(&cx);

	uint8_t times[100] = { 0 };
	for (uint32_t fold = 0; fold < 7; fold++) {
		Job f = { .text = many_rows(&own), .cut = { .folds = 7, .fold = fold, .seed = 3, .stratify = true } };
		good(&cx, do_all, &f);
		assert_in_range(f.held_out->cases, 14, 15);
		for (int i = 0; i < 100; i++)
			times[i] += f.part[i] == PART_HELD_OUT;
		ctx_free(&cx);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(times[i], 1); /* every row is in exactly one fold */
	ctx_free(&own);
}

static void schemas_survive_text(void **state)
{
	(void)state;
	Ctx cx, again;
	Job j = { .text = "n,c \xE9,name,y\n1,\"re,d\",p,10\n3,bl\\ue,q,20\n,\"re,d\",r,30.5\n",
		      .cut = { .seed = 1 },
		      .opt = { .names = "name" } };
	good(&cx, do_all, &j);
	Buf first = { .arena = &cx.keep }, second = { .arena = &cx.keep };
	schema_print(j.s, &first);
	Job k = { .json = first.s };
	good(&again, do_parse, &k);
	schema_print(k.s, &second);
	assert_string_equal(first.s, second.s);
	assert_int_equal(k.s->inputs, j.s->inputs);
	assert_string_equal(k.s->column[1].name, "c \xE9");
	ctx_free(&again);
	ctx_free(&cx);
}

static void damaged_schemas_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"version\":1}",
		"{\"version\":2,\"task\":\"none\",\"columns\":[]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"input\"}]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"input\",\"kind\":\"number\"}]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"input\",\"kind\":\"number\","
		"\"offset\":0,\"factor\":0}]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"king\",\"kind\":\"binary\"}]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"input\",\"kind\":\"category\","
		"\"categories\":[\"x\",\"x\"]}]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\\u0007\",\"role\":\"input\",\"kind\":\"binary\"}]"
		"}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"input\",\"kind\":\"binary\"},"
		"{\"name\":\"a\",\"role\":\"input\",\"kind\":\"binary\"}]}",
		"{\"version\":1,\"task\":\"classes\",\"columns\":[{\"name\":\"a\",\"role\":\"input\",\"kind\":\"binary\"},"
		"{\"name\":\"b\",\"role\":\"target\",\"kind\":\"binary\"}]}",
		"{\"version\":1,\"task\":\"none\",\"columns\":[{\"name\":\"a\",\"role\":\"input\",\"kind\":\"binary\"},"
		"{\"name\":\"b\",\"role\":\"target\",\"kind\":\"binary\"}]}",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		bad(do_parse, (Job){ .json = texts[i] }, "schema");
}

static void tables_that_teach_nothing(void **state)
{
	(void)state;
	bad(do_infer, (Job){ .text = "a,b\n1,x\n2,x\n" }, "the same value in every row");
	bad(do_infer, (Job){ .text = "a,b\n1,\n2,\n" }, "is empty in every row");
	bad(do_infer, (Job){ .text = "a,b\n1,2\n3\n" }, "this line has 1 fields");
	bad(do_infer, (Job){ .text = "a,a,b\n1,2,3\n" }, "two columns are called 'a'");
	bad(do_infer, (Job){ .text = "v,k\n1.5,a\n2.5,b\n3.5,a\noops,b\n" }, ":5:1: error: this is not a number");
	bad(do_infer, (Job){ .text = "a,b\n5,1\n5,2\n5,3.5\n" }, "no column is of use");
	bad(do_infer, (Job){ .text = "a,b\n1,x\n2,y\n", .task = TASK_REGRESSION }, "no regression");
}

/* ---- metrics, against figures worked out by hand ---- */

static void do_metrics(Ctx *cx, void *arg)
{
	Data *d = arg;
	/* 3 classes, 5 cases; the last has no target */
	static const double out[] = { 0.7, 0.2, 0.1, 0.1, 0.8, 0.1, 0.5, 0.4, 0.1, 0.2, 0.2, 0.6, 0, 0, 1 };
	Metrics *m = metrics_measure(cx, d, NULL, out);
	assert_int_equal(m->kind, METRICS_CLASSES);
	assert_int_equal(m->cases, 4);
	assert_true(m->accuracy == 0.75);
	assert_true(fabs(m->log_loss + (log(0.7) + log(0.8) + log(0.4) + log(0.6)) / 4) < 1e-12);
	assert_int_equal(m->confusion[3], 1); /* a case of class 1 taken for class 0 */
	assert_true(m->per_class[0].precision == 0.5 && m->per_class[0].recall == 1);
	assert_true(m->per_class[1].recall == 0.5 && fabs(m->per_class[1].f1 - 2.0 / 3) < 1e-12);
	assert_true(m->per_class[0].auc == 1 && m->per_class[1].auc == 1 && m->auc == 1);
}

static void do_binary(Ctx *cx, void *arg)
{
	Data *d = arg;
	static const double out[] = { 0.1, 0.4, 0.35, 0.8 };
	Metrics *m = metrics_measure(cx, d, NULL, out);
	assert_int_equal(m->kind, METRICS_BINARY);
	assert_true(fabs(m->auc - 0.75) < 1e-12); /* scikit-learn's example */
	assert_true(m->accuracy == 0.75);
}

static void do_numbers(Ctx *cx, void *arg)
{
	Data *d = arg;
	static const double out[] = { 2.5, 0, 2, 8 };
	Metrics *m = metrics_measure(cx, d, NULL, out);
	assert_int_equal(m->kind, METRICS_NUMBERS);
	assert_true(fabs(m->r2 - 0.9486081370449679) < 1e-9); /* scikit-learn's example */
	assert_true(fabs(m->rmse - sqrt(0.375)) < 1e-12 && m->mae == 0.5);
	assert_true(isnan(m->accuracy) && isnan(m->auc));
}

static void metrics_by_hand(void **state)
{
	static const float classes[] = { 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, NAN, NAN, NAN }, binary[] = { 0, 0, 1, 1 };
	static const float numbers[] = { 3, -0.5f, 2, 7 };
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Data d = { .cases = 5, .targets = 3, .y = classes, .y_type = T_F32 };
	assert_int_equal(guarded(&cx, do_metrics, &d), MP_OK);
	Data b = { .cases = 4, .targets = 1, .y = binary, .y_type = T_F32 };
	assert_int_equal(guarded(&cx, do_binary, &b), MP_OK);
	Data n = { .cases = 4, .targets = 1, .y = numbers, .y_type = T_F32 };
	assert_int_equal(guarded(&cx, do_numbers, &n), MP_OK);
	ctx_free(&cx);
}

enum { WIDE_ROWS = 40 };

static double time_of(uint64_t i) { return 1.6e9 + (double)(i * 7 % WIDE_ROWS); }

static void do_wide(Ctx *cx, void *arg)
{
	Job *j = arg;
	static int64_t x[WIDE_ROWS][2];
	static double y[WIDE_ROWS];
	char path[64];
	snprintf(path, sizeof path, "/tmp/test_schema-%d.npz", (int)getpid());
	for (int i = 0; i < WIDE_ROWS; i++) {
		x[i][0] = (int64_t)time_of((uint64_t)i);
		x[i][1] = i % 5;
		y[i] = 1.6e9 + i % 2;
	}
	data_write(cx,
	           &(Data){ .name = "wide",
	                    .cases = WIDE_ROWS,
	                    .inputs = 2,
	                    .targets = 1,
	                    .x = x,
	                    .x_type = T_I64,
	                    .y = y,
	                    .y_type = T_F64 },
	           path);
	j->t = table_open(cx, path, &j->opt, NULL);
	remove(path);
	j->s = schema_infer(cx, j->t, &(InferOptions){ TASK_NONE, -1, NULL });
	schema_fit(cx, j->s, j->t, NULL);
	j->data = table_encode(cx, j->t, j->s, NULL, 0);
}

/* float32 holds 1.6e9 in steps of 128. */
static void large_numbers_stay_apart(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { 0 };
	good(&cx, do_wide, &j);
	assert_true(j.s->column[0].wide && !j.s->column[1].wide);
	assert_int_equal(j.s->task, TASK_CLASSES);
	assert_int_equal(j.s->targets, 2);
	assert_string_equal(j.s->column[2].category[1], "1600000001");
	float row[2];
	for (uint64_t i = 0; i < WIDE_ROWS; i++) {
		data_x(j.data, i, row);
		assert_true(fabs((double)row[0] / j.s->column[0].factor + j.s->column[0].offset - time_of(i)) < 1e-3);
	}
	Buf json = { .arena = &cx.keep };
	schema_print(j.s, &json);
	Job again = { .json = json.s };
	assert_int_equal(guarded(&cx, do_parse, &again), MP_OK);
	assert_true(again.s->column[0].wide && !again.s->column[1].wide);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scales_are_chosen),
		cmocka_unit_test(kinds_are_found),
		cmocka_unit_test(tasks_are_found),
		cmocka_unit_test(rows_are_encoded),
		cmocka_unit_test(cuts_keep_the_balance),
		cmocka_unit_test(schemas_survive_text),
		cmocka_unit_test(damaged_schemas_are_refused),
		cmocka_unit_test(tables_that_teach_nothing),
		cmocka_unit_test(metrics_by_hand),
		cmocka_unit_test(large_numbers_stay_apart),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove(file_of(""));
	return failed;
}
