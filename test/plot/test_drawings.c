/* SPDX-License-Identifier: MIT */
/* Figures of trained networks are readable: labels on the canvas, none over another, whatever items are called and
 * however many there are. */
#include <math.h>

#include "svg.h"

typedef struct Job {
	uint32_t rows, columns;
	const char *name; /* of items, before a number */
	double scale;
} Job;

static const char *const names[] = { "", "w", "an item of a very long name, longer than any figure is wide",
	                                 "<&\">\x01\xFF\xC3\xA9" };

static void run(void (*body)(Ctx *cx, void *arg), Job j)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, body, &j), MP_OK);
	ctx_free(&cx);
}

static double number(uint64_t i) { return random_unit(11, STREAM_DATA, i) * 2 - 1; }

static const char **names_of(Ctx *cx, const Job *j, uint32_t n)
{
	const char **name = NEW(&cx->scratch, n, const char *);
	for (uint32_t i = 0; i < n; i++) {
		Buf b = { .arena = &cx->scratch };
		buf_printf(&b, "%s%u", j->name, i);
		name[i] = b.s;
	}
	return name;
}

static void do_tree(Ctx *cx, void *arg)
{
	const Job *j = arg;
	uint32_t n = j->rows;
	Merge *m = NEW(&cx->scratch, n, Merge);
	for (uint32_t i = 0; i + 1 < n; i++) /* a chain */
		m[i] = (Merge){ i ? n + i - 1 : 0, i + 1, j->scale * i };
	Buf svg = { .arena = &cx->scratch }, text = svg;
	const TreePlot t = { "Clusters", "euclidean distance of activations (average linkage)", names_of(cx, j, n), n, m };
	tree_svg(&t, &svg);
	tree_text(&t, &text);
	assert_true(svg_check(&svg) >= n);
	assert_true(text.len > n);
}

static void do_plane(Ctx *cx, void *arg)
{
	const Job *j = arg;
	uint32_t n = j->rows;
	double(*at)[2] = arena_alloc(&cx->scratch, n, sizeof *at);
	uint8_t *set = NEW(&cx->scratch, n, uint8_t);
	for (uint32_t i = 0; i < n; i++) {
		at[i][0] = j->scale * number(2 * i);
		at[i][1] = j->scale * number(2 * i + 1);
		set[i] = (uint8_t)(i % 7);
	}
	Buf svg = { .arena = &cx->scratch };
	plane_svg(&(PlanePlot){ "Principal components, group hidden, 80 cases", "component 1 (99.9 % of the variance)",
	                        "component 2 (99.9 % of the variance)", names_of(cx, j, n), at, n, set, names_of(cx, j, 7),
	                        7 },
	          &svg);
	svg_check(&svg);
}

static void do_bars(Ctx *cx, void *arg)
{
	const Job *j = arg;
	double *v = NEW(&cx->scratch, j->rows, double);
	for (uint32_t i = 0; i < j->rows; i++)
		v[i] = j->scale * number(i);
	Buf svg = { .arena = &cx->scratch };
	bars_svg(&(BarPlot){ "Contribution of units", "change of the mean error of a case without the unit",
	                     names_of(cx, j, j->rows), v, j->rows },
	         &svg);
	svg_check(&svg);
}

static void do_heat(Ctx *cx, void *arg)
{
	const Job *j = arg;
	double *v = NEW(&cx->scratch, (size_t)j->rows * j->columns, double);
	for (uint32_t i = 0; i < j->rows * j->columns; i++)
		v[i] = i % 17 ? j->scale * number(i) : (double)NAN;
	for (int squares = 0; squares < 2; squares++) {
		HeatPlot p = { .title = "Activations of meaning, case dal",
			           .rows = "unit of meaning",
			           .columns = "tick",
			           .scale = squares ? "weight" : "activation",
			           .row_name = names_of(cx, j, j->rows),
			           .column_name = names_of(cx, j, j->columns),
			           .value = v,
			           .height = j->rows,
			           .width = j->columns,
			           .squares = squares };
		Buf svg = { .arena = &cx->scratch }, text = svg;
		heat_svg(&p, &svg);
		svg_check(&svg);
		heat_text(&p, &text);
		assert_true(text.len > (size_t)j->rows * j->columns);
	}
}

static void do_bands(Ctx *cx, void *arg)
{
	const Job *j = arg;
	const char **name = names_of(cx, j, j->rows);
	const double x[] = { 0, 50, 100 }, y[] = { 100, 60, 0 }, low[] = { 100, 40, -5 }, high[] = { 100, 80, 9 };
	Series *s = NEW(&cx->scratch, j->rows, Series);
	Band *b = NEW(&cx->scratch, j->rows, Band);
	double tick[AXIS_TICKS];
	Axis axis = { 0 };
	axis_nice(&axis, 0, 100, tick);
	axis.label = "units removed (%)";
	for (uint32_t i = 0; i < j->rows; i++) {
		s[i] = (Series){ name[i], plot_colours[i % PLOT_COLOURS], MARK_LINE, x, y, 3 };
		b[i] = (Band){ low, high };
	}
	Buf svg = { .arena = &cx->scratch };
	plot_bands_svg(
		&(Plot){ "Damaged networks: mean of 20 and 95 % confidence band", axis, axis, s, j->rows, LEGEND_BELOW }, b,
		&svg);
	svg_check(&svg);
}

/* Any groups, every arrow there can be. */
static void do_network(Ctx *cx, void *arg)
{
	const Job *j = arg;
	uint32_t n = j->rows, arrows = 0;
	const char **name = names_of(cx, j, n);
	NetworkBox *box = NEW(&cx->scratch, n, NetworkBox);
	NetworkArrow *arrow = NEW(&cx->scratch, n * n, NetworkArrow);
	for (uint32_t i = 0; i < n; i++) {
		box[i] = (NetworkBox){ name[i], "1024 sigmoid, biases", i * j->columns / n, i % 2 };
		for (uint32_t k = 0; k < n; k++)
			if ((i + k) % 3 || i == k)
				arrow[arrows++] = (NetworkArrow){ i, k, i >= k, "123456" };
	}
	Buf svg = { .arena = &cx->scratch };
	network_svg(&(NetworkPlot){ "Network example, 123456 links", box, n, arrow, arrows, "from the tick before" }, &svg);
	svg_check(&svg);
}

static void drawings(void **state)
{
	static const uint32_t sizes[][2] = { { 2, 1 }, { 3, 8 }, { 12, 3 }, { 40, 26 }, { 95, 60 }, { 300, 203 } };
	static const double scales[] = { 1, 1e-4, 12345 };
	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t k = 0; k < COUNT(names); k++) {
			Job j = { sizes[i][0], sizes[i][1], names[k], scales[(i + k) % COUNT(scales)] };
			run(do_tree, j);
			run(do_plane, j);
			run(do_bars, j);
			run(do_heat, j);
			if (sizes[i][0] > 12)
				continue;
			run(do_bands, j);
			run(do_network, j);
		}
	run(do_tree, (Job){ 5, 0, "", 0 });  /* all distances 0 */
	run(do_plane, (Job){ 5, 0, "", 0 }); /* all at one point */
	run(do_bars, (Job){ 5, 0, "", 0 });
	run(do_heat, (Job){ 1, 1, "", 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(drawings) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
