/* SPDX-License-Identifier: MIT */
/* Cases, ROC and calibration by hand; metrics as text of a model and back. */
#include <math.h>

#include "test.h"

#include "table.h"

/* 3 classes, 5 cases; the last has no target */
static const float class_y[] = { 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, NAN, NAN, NAN };
static const double class_out[] = { 0.7, 0.2, 0.1, 0.1, 0.8, 0.1, 0.5, 0.4, 0.1, 0.2, 0.2, 0.6, 0, 0, 1 };
static const Data classes = { .cases = 5, .targets = 3, .y = class_y, .y_type = T_F32 };
/* scikit-learn's example of roc_curve */
static const float binary_y[] = { 0, 0, 1, 1 };
static const double binary_out[] = { 0.1, 0.4, 0.35, 0.8 };
static const Data binary = { .cases = 4, .targets = 1, .y = binary_y, .y_type = T_F32 };

typedef struct Job {
	void (*body)(Ctx *cx);
	const char *json;
} Job;

static void call(Ctx *cx, void *arg) { ((Job *)arg)->body(cx); }

static void good(void (*body)(Ctx *cx))
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, call, &(Job){ .body = body }), MP_OK);
	ctx_free(&cx);
}

static void do_cases(Ctx *cx)
{
	float row[3];
	CaseMetrics c;
	(void)cx;
	assert_true(metrics_case(&classes, METRICS_CLASSES, class_out, 2, row, &c));
	assert_true(c.target == 1 && c.guess == 0 && !c.right && c.p_target == 0.4 && c.p_guess == 0.5 && c.weight == 1);
	assert_false(metrics_case(&classes, METRICS_CLASSES, class_out, 4, row, &c));
	assert_true(metrics_case(&binary, METRICS_BINARY, binary_out, 1, row, &c));
	assert_true(c.target == 0 && c.guess == 0 && c.right && fabs(c.p_target - 0.6) < 1e-15);
	static const float bits_y[] = { 1, 1, 0, 1, NAN, 0 };
	static const double bits_out[] = { 0.9, 0.6, 0.2, 0.9, 0, 0.7 };
	Data bits = { .cases = 2, .targets = 3, .y = bits_y, .y_type = T_F32 };
	assert_true(metrics_case(&bits, METRICS_BITS, bits_out, 0, row, &c) && c.right && isnan(c.p_target));
	assert_true(metrics_case(&bits, METRICS_BITS, bits_out, 1, row, &c) && !c.right);
}

static void do_roc(Ctx *cx)
{
	static const double x[] = { 0, 0, 0.5, 0.5, 1 }, y[] = { 0, 0.5, 0.5, 1, 1 };
	CurvePoints c = curve_roc(cx, &binary, METRICS_BINARY, binary_out, 1);
	assert_true(c.area == 0.75 && c.points == 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(c.x[i] == x[i] && c.y[i] == y[i]);
	assert_true(curve_roc(cx, &binary, METRICS_BINARY, binary_out, 0).area == 0.75);
	static const float one_y[] = { 1, 1, 1, 1 };
	Data one = { .cases = 4, .targets = 1, .y = one_y, .y_type = T_F32 };
	c = curve_roc(cx, &one, METRICS_BINARY, binary_out, 1);
	assert_true(c.points == 0 && isnan(c.area)); /* no case of the other class */
	static const double nan_out[] = { NAN, 0.4, NAN, 0.8 };
	c = curve_roc(cx, &binary, METRICS_BINARY, nan_out, 1);
	assert_true(c.points > 1); /* ends */
	float *many_y = NEW(&cx->scratch, 5000, float);
	double *many = NEW(&cx->scratch, 5000, double);
	for (int i = 0; i < 5000; i++) {
		many_y[i] = i % 3 == 0;
		many[i] = (i * 37 % 5000) / 5000.0;
	}
	Data large = { .cases = 5000, .targets = 1, .y = many_y, .y_type = T_F32 };
	c = curve_roc(cx, &large, METRICS_BINARY, many, 1);
	assert_true(c.points > 100 && c.points <= CURVE_POINTS + 3 && c.x[c.points - 1] == 1 && c.y[c.points - 1] == 1);
}

static void do_calibration(Ctx *cx)
{
	uint64_t count[CALIBRATION_BINS];
	CurvePoints c = curve_calibration(cx, &binary, METRICS_BINARY, binary_out, 1, count);
	assert_true(c.points == 4 && count[0] == 1 && c.x[0] == 0.1 && c.y[0] == 0);
	assert_true(c.x[1] == 0.35 && c.y[1] == 1 && c.x[2] == 0.4 && c.y[2] == 0 && c.x[3] == 0.8 && c.y[3] == 1);
	static const double sure[] = { 1, 0, 1, 1 };
	c = curve_calibration(cx, &binary, METRICS_BINARY, sure, 1, count);
	assert_true(c.points == 2 && count[0] == 1 && count[1] == 3 && c.x[1] == 1 && fabs(c.y[1] - 2.0 / 3) < 1e-15);
}

static void cases_by_hand(void **state)
{
	(void)state;
	good(do_cases);
	good(do_roc);
	good(do_calibration);
}

static void do_text(Ctx *cx)
{
	Buf first = { .arena = &cx->keep }, second = { .arena = &cx->keep };
	Metrics *m = metrics_measure(cx, &classes, NULL, class_out);
	m->held_out = true;
	metrics_print(m, &first);
	Metrics *again = metrics_parse(cx, (Loc){ 0 }, first.s, 3);
	metrics_print(again, &second);
	assert_string_equal(first.s, second.s);
	assert_true(again->held_out && again->accuracy == m->accuracy && again->log_loss == m->log_loss &&
	            isnan(again->r2));
	assert_memory_equal(again->confusion, m->confusion, 9 * sizeof *m->confusion);
}

static void metrics_survive_text(void **state)
{
	(void)state;
	good(do_text);
}

static void do_parse(Ctx *cx, void *arg) { metrics_parse(cx, (Loc){ 0 }, ((Job *)arg)->json, 2); }

#define FIGURES                                                                                                  \
	"\"log_loss\":null,\"auc\":null,\"bits_right\":null,\"rmse\":null,\"mae\":null,\"confusion\":[[1,0],[0,1]]," \
	"\"per_class\":["
#define CLASS "{\"cases\":1,\"precision\":1,\"recall\":1,\"f1\":1,\"auc\":null}"

static void damaged_metrics_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{\"version\":2}",
		"{\"version\":1}",
		"{\"version\":1,\"kind\":\"numbers\",\"cases\":-1}",
		"{\"version\":1,\"kind\":\"numbers\",\"cases\":1.5}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":1}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":\"1\",\"r2\":null," FIGURES CLASS "," CLASS "]}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":2,\"r2\":null," FIGURES CLASS "," CLASS "]}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":1,\"r2\":1.1," FIGURES CLASS "," CLASS "]}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":3,\"accuracy\":1,\"r2\":null," FIGURES CLASS "," CLASS "]}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":1,\"r2\":null," FIGURES CLASS "]}",
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":1,\"r2\":null," FIGURES CLASS ",7]}",
	};
	static const char fine[] =
		"{\"version\":1,\"kind\":\"classes\",\"cases\":2,\"accuracy\":1,\"r2\":null," FIGURES CLASS "," CLASS "]}";
	(void)state;
	for (size_t i = 0; i <= COUNT(texts); i++) {
		Ctx cx;
		bool ok = i == COUNT(texts);
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, do_parse, &(Job){ .json = ok ? fine : texts[i] }), ok ? MP_OK : MP_BAD_INPUT);
		assert_true(ok || strstr(ctx_messages(&cx), "record of metrics"));
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_by_hand),
		cmocka_unit_test(metrics_survive_text),
		cmocka_unit_test(damaged_metrics_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
