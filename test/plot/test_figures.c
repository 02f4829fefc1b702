/* SPDX-License-Identifier: MIT */
/* Figures are readable: labels on the canvas, none over another, whatever the classes are called and however many. */
#include <math.h>
#include <unistd.h>

#include "svg.h"

#include "microprop/table.h"
#include "microprop/tool.h"

typedef struct Job {
	uint32_t classes;
	const char *name; /* with a %u */
	uint64_t most;    /* count in a cell */
	double low, high; /* of an axis */
} Job;

static void run(void (*body)(Ctx *cx, void *arg), Job j)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, body, &j), MP_OK);
	ctx_free(&cx);
}

static void do_matrix(Ctx *cx, void *arg)
{
	const Job *j = arg;
	uint32_t n = j->classes;
	const char **name = NEW(&cx->scratch, n, const char *);
	uint64_t *count = NEW(&cx->scratch, (size_t)n * n, uint64_t);
	for (uint32_t i = 0; i < n; i++) {
		Buf b = { .arena = &cx->scratch };
		buf_printf(&b, "%s %u", j->name, i);
		name[i] = b.s;
		for (uint32_t k = 0; k < n; k++)
			count[(size_t)i * n + k] = i == k ? j->most : (i * 7 + k * 3) % 5;
	}
	Buf svg = { .arena = &cx->scratch };
	matrix_svg(&(MatrixPlot){ "Confusion matrix", name, count, n }, &svg);
	uint32_t texts = svg_check(&svg);
	assert_true(texts > 10 && texts <= 11 + 2 * n + n * n);
}

static void matrices(void **state)
{
	static const uint32_t sizes[] = { 2, 3, 5, 10, 26, 47, 100 };
	static const char *const names[] = { "", "class", "a class of a very long name, longer than any figure is wide",
		                                 "<&\">\x01\xFF\xC3\xA9" };
	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t k = 0; k < COUNT(names); k++) {
			run(do_matrix, (Job){ .classes = sizes[i], .name = names[k], .most = 87 });
			run(do_matrix, (Job){ .classes = sizes[i], .name = names[k], .most = 123456789 });
		}
}

static void do_axis(Ctx *cx, void *arg)
{
	const Job *j = arg;
	Axis a = { "x", .low = 0 };
	double tick[AXIS_TICKS];
	axis_nice(&a, j->low, j->high, tick);
	assert_true(a.low <= j->low && a.high >= j->high && a.high > a.low && a.ticks >= 3);
	assert_true(tick[0] == a.low && fabs(tick[a.ticks - 1] - a.high) <= 1e-12 * (a.high - a.low));
	Plot plot = { "T", a, a, &(Series){ "cases", PLOT_BLUE, MARK_DOT, &a.low, &a.low, 1 }, 1, 0 };
	Buf svg = { .arena = &cx->scratch };
	plot_svg(&plot, &svg);
	svg_check(&svg);
}

static void axes(void **state)
{
	static const double ends[][2] = { { 0, 1 },       { -3, 8 },       { 5, 5 },         { 0, 0 },       { 999, 1001 },
		                              { 1e-9, 3e-9 }, { -2e6, 7.5e6 }, { 1e12, 1.5e12 }, { -1200, 300 }, { 25, 346 } };
	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++)
		run(do_axis, (Job){ .low = ends[i][0], .high = ends[i][1] });
}

/* ---- of a run ---- */

typedef struct Drawn {
	char s[200000];
	size_t len;
} Drawn;

static void add(void *user, const char *text, size_t len)
{
	Drawn *t = user;
	assert_true(t->len + len < sizeof t->s);
	memcpy(t->s + t->len, text, len);
	t->s[t->len += len] = '\0';
}

/* Trains on a table for a few epochs; which of the four figures there are: bits, confusion first. */
static void draw(const char *table, const char *targets, unsigned expected)
{
	static const char *const kinds[] = { "confusion", "roc", "calibration", "predicted" };
	static Drawn topology, drawn;
	char path[64];
	mp_table *t;
	mp_data *train, *held;
	mp_net *net;
	mp_run *r;
	snprintf(path, sizeof path, "/tmp/test_figures-%d.csv", (int)getpid());
	FILE *f = fopen(path, "w");
	fputs(table, f);
	fclose(f);
	mp_data_options options = { .size = sizeof options, .targets = targets };
	assert_int_equal(mp_table_open(&t, path, &options, NULL, NULL), MP_OK);
	assert_int_equal(mp_table_cut(t, &(mp_cut){ .size = sizeof(mp_cut) }, &train, &held), MP_OK);
	topology.len = 0;
	assert_int_equal(mp_table_topology(t, &(mp_topology){ .size = sizeof(mp_topology), .hidden = "2" }, add, &topology),
	                 MP_OK);
	assert_int_equal(mp_net_parse(&net, topology.s, "figures", NULL), MP_OK);
	assert_int_equal(mp_run_new(&r, net, NULL), MP_OK);
	assert_int_equal(mp_run_set(r, "epochs", "3"), MP_OK);
	assert_int_equal(mp_run_set(r, "patience", "0"), MP_OK);
	assert_int_equal(mp_run_figure(r, "roc", 0, add, &drawn), MP_BAD_INPUT); /* not measured */
	assert_int_equal(mp_run_train(r, train, NULL, NULL, NULL), MP_OK);
	drawn.len = 0;
	assert_int_equal(mp_run_figure(r, "curve", 0, add, &drawn), MP_OK);
	svg_check(&(Buf){ .s = drawn.s, .len = drawn.len });
	assert_non_null(mp_run_measure(r, train));
	assert_int_equal(mp_run_figure(r, "pie", 0, add, &drawn), MP_BAD_INPUT);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		drawn.len = 0;
		assert_int_equal(mp_run_figure(r, kinds[i], 0, add, &drawn), MP_OK);
		assert_int_equal(drawn.len > 0, expected >> i & 1);
		if (drawn.len)
			svg_check(&(Buf){ .s = drawn.s, .len = drawn.len });
	}
	mp_run_close(r);
	mp_net_close(net);
	mp_data_close(train);
	mp_data_close(held);
	mp_table_close(t);
	remove(path);
}

static void figures_of_runs(void **state)
{
	(void)state;
	draw("a,b,y\n1,2,0\n2,1,1\n3,3,0\n4,1,1\n5,0,1\n", NULL, 7);
	draw("a,b,y\n1,2,<x>\n2,1,<y>\n3,3,a class of a rather long name\n4,1,<x>\n5,0,<y>\n6,1,a class of a rather long "
	     "name\n",
	     NULL, 7);
	draw("a,b,y of a rather long name; which\n1,2,1000.5\n2,1,2500\n3,3,-1e6\n4,1,7\n", NULL, 8);
	draw("a,b,y,z\n1,2,0,1\n2,1,1,1\n3,3,0,0\n4,1,1,1\n5,0,1,0\n", "y,z", 0); /* bits: none yet */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrices),
		cmocka_unit_test(axes),
		cmocka_unit_test(figures_of_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
