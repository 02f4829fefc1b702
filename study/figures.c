/* SPDX-License-Identifier: MIT */
/* Figures of a measurement as SVG: confusion matrix, ROC curves, calibration, predicted against true.  In: the last
 * mp_run_measure of a run.  Out: text, through the caller's function; nothing where the targets have no such figure. */
#include <math.h>
#include <string.h>

#include "api.h"
#include "microprop/tool.h"
#include "plot.h"

enum { MOST_CURVES = 8, MOST_POINTS = 2000, LABEL = 64, LONGEST_NAME = 24, FEW_CASES = 10 };

typedef struct FigureArgs {
	Run *r;
	const char *kind;
	uint32_t i;
	mp_write_fn *write;
	void *user;
	Buf out;
} FigureArgs;

static const double shares[] = { 0, 0.2, 0.4, 0.6, 0.8, 1 };

static const char *class_label(Ctx *cx, const Measurement *k, uint32_t i)
{
	Buf b = { .arena = &cx->scratch };
	if (k->show.class_names)
		return k->show.class_names[i];
	buf_printf(&b, "%u", i);
	return b.s;
}

static const char *title_of(Ctx *cx, const Measurement *k, const char *what)
{
	Buf b = { .arena = &cx->scratch };
	buf_printf(&b, "%s, %llu cases", what, (unsigned long long)k->metrics->cases);
	if (!isnan(k->metrics->accuracy))
		buf_printf(&b, ", accuracy %.1f %%", 100 * k->metrics->accuracy);
	if (!isnan(k->metrics->r2))
		buf_printf(&b, ", R2 %.4g", k->metrics->r2);
	return b.s;
}

static const char *label(Ctx *cx, const char *name, const char *format, double value)
{
	Buf b = { .arena = &cx->scratch };
	svg_cut(&b, name, LONGEST_NAME);
	buf_printf(&b, format, value);
	return b.s;
}

static void confusion(FigureArgs *a, const Measurement *k)
{
	Ctx *cx = &a->r->cx;
	uint32_t n = k->metrics->classes;
	if (n == 0 || n > RECORDED_CLASSES)
		return;
	const char **name = NEW(&cx->scratch, n, const char *);
	for (uint32_t i = 0; i < n; i++)
		name[i] = class_label(cx, k, i);
	matrix_svg(&(MatrixPlot){ title_of(cx, k, "Confusion matrix"), name, k->metrics->confusion, n }, &a->out);
}

/* The most frequent classes first. */
static uint32_t choose(const Metrics *m, uint32_t *class)
{
	uint32_t count = 0;
	for (uint32_t i = m->kind == METRICS_BINARY; i < m->classes; i++) {
		uint32_t at = count < MOST_CURVES ? count++ : MOST_CURVES;
		for (; at > 0 && m->per_class[class[at - 1]].cases < m->per_class[i].cases; at--)
			if (at < MOST_CURVES)
				class[at] = class[at - 1];
		if (at < MOST_CURVES)
			class[at] = i;
	}
	return count;
}

static void roc(FigureArgs *a, const Measurement *k)
{
	static const char *const colours[] = { PLOT_BLUE, PLOT_ORANGE, PLOT_GREEN, PLOT_PURPLE };
	Ctx *cx = &a->r->cx;
	Series series[MOST_CURVES + 1];
	uint32_t class[MOST_CURVES], count = 0, chosen = choose(k->metrics, class);
	for (uint32_t i = 0; i < chosen; i++) {
		CurvePoints c = curve_roc(cx, k->data, k->metrics->kind, k->outputs, class[i]);
		if (!c.points)
			continue;
		series[count] = (Series){ label(cx, class_label(cx, k, class[i]), ", AUC %.4g", c.area),
			                      colours[count % COUNT(colours)],
			                      count < COUNT(colours) ? MARK_LINE : MARK_DASHES,
			                      c.x,
			                      c.y,
			                      c.points };
		count++;
	}
	if (!count)
		return;
	Buf what = { .arena = &cx->scratch };
	bool binary = k->metrics->kind == METRICS_BINARY;
	buf_puts(&what, binary ? "ROC curve" : "ROC curves, each class against the rest");
	if (count < k->metrics->classes && !binary)
		buf_printf(&what, " (%u of %u classes)", count, k->metrics->classes);
	series[count++] = (Series){ "chance", PLOT_BLACK, MARK_DASHES, (double[]){ 0, 1 }, (double[]){ 0, 1 }, 2 };
	plot_svg(&(Plot){ what.s,
	                  { "false positive rate", 0, 1, false, shares, COUNT(shares) },
	                  { "true positive rate", 0, 1, false, shares, COUNT(shares) },
	                  series,
	                  count,
	                  CORNER_RIGHT | CORNER_BOTTOM },
	         &a->out);
}

static void calibration(FigureArgs *a, const Measurement *k)
{
	Ctx *cx = &a->r->cx;
	if (!k->metrics->classes)
		return;
	bool binary = k->metrics->kind == METRICS_BINARY;
	uint64_t count[CALIBRATION_BINS];
	CurvePoints c = curve_calibration(cx, k->data, k->metrics->kind, k->outputs, binary ? 1 : CALIBRATE_GUESS, count);
	if (!c.points)
		return;
	double few[CALIBRATION_BINS];
	bool any = false;
	for (uint32_t i = 0; i < c.points; i++) {
		bool small = count[i] < FEW_CASES;
		few[i] = small ? c.y[i] : (double)NAN;
		c.y[i] = small ? (double)NAN : c.y[i];
		any |= small;
	}
	const Series series[] = {
		{ "network, in bins of 0.1", PLOT_BLUE, MARK_DISC, c.x, c.y, c.points },
		{ "perfectly calibrated", PLOT_BLACK, MARK_DASHES, (double[]){ 0, 1 }, (double[]){ 0, 1 }, 2 },
		{ "bins of fewer than 10 cases", PLOT_ORANGE, MARK_SQUARE, c.x, few, c.points },
	};
	Buf x = { .arena = &cx->scratch }, y = { .arena = &cx->scratch };
	buf_puts(&x, "mean probability of ");
	svg_cut(&x, binary ? class_label(cx, k, 1) : "the guess", LONGEST_NAME);
	buf_puts(&y, binary ? "share of cases that are " : "share of cases guessed right");
	if (binary)
		svg_cut(&y, class_label(cx, k, 1), LONGEST_NAME);
	plot_svg(&(Plot){ title_of(cx, k, "Calibration"),
	                  { x.s, 0, 1, false, shares, COUNT(shares) },
	                  { y.s, 0, 1, false, shares, COUNT(shares) },
	                  series,
	                  any ? COUNT(series) : COUNT(series) - 1,
	                  0 },
	         &a->out);
}

static void predicted(FigureArgs *a, const Measurement *k)
{
	Ctx *cx = &a->r->cx;
	const Data *d = k->data;
	if (k->metrics->kind != METRICS_NUMBERS || a->i >= d->targets)
		return;
	const Field *f = k->schema ? schema_target(k->schema, a->i) : NULL;
	uint64_t step = (d->cases + MOST_POINTS - 1) / MOST_POINTS;
	double *x = NEW(&cx->scratch, MOST_POINTS, double), *y = NEW(&cx->scratch, MOST_POINTS, double);
	double low = INFINITY, high = -INFINITY;
	uint32_t count = 0;
	for (uint64_t i = 0; i < d->cases; i += step) {
		data_y(d, i, k->row);
		double target = (double)k->row[a->i], output = k->outputs[i * d->targets + a->i];
		if (isnan(target) || !isfinite(output))
			continue;
		x[count] = f ? target_decode(f, target) : target;
		y[count] = f ? target_decode(f, output) : output;
		low = fmin(low, fmin(x[count], y[count]));
		high = fmax(high, fmax(x[count], y[count]));
		count++;
	}
	if (!count)
		return;
	Axis axis = { 0 };
	double tick[AXIS_TICKS];
	axis_nice(&axis, low, high, tick);
	Buf title = { .arena = &cx->scratch }, across = title, up = title;
	const char *name = f ? f->name : NULL;
	buf_puts(&across, name ? "true " : "target");
	buf_puts(&up, name ? "predicted " : "output");
	if (name) {
		svg_cut(&across, name, LABEL);
		svg_cut(&up, name, LONGEST_NAME + 16);
	}
	buf_puts(&title, d->targets > 1 ? "Predicted against true" : title_of(cx, k, "Predicted against true"));
	const double ends[] = { axis.low, axis.high };
	const Series series[] = {
		{ step > 1 ? "cases, some of them" : "cases", PLOT_BLUE, MARK_DOT, x, y, count },
		{ "prediction = truth", PLOT_BLACK, MARK_DASHES, ends, ends, 2 },
	};
	Plot plot = { title.s, axis, axis, series, COUNT(series), 0 };
	plot.x.label = across.s;
	plot.y.label = up.s;
	plot_svg(&plot, &a->out);
}

/* Errors of the epochs that the history holds; logarithmic where they fall by more than two powers of ten. */
static void curve(FigureArgs *a)
{
	const Run *r = a->r;
	Arena *arena = &a->r->cx.scratch;
	uint32_t n = r->points, count = 0, ticks = 0;
	double *x = NEW(arena, n + 1, double), *y[2] = { NEW(arena, n + 1, double), NEW(arena, n + 1, double) };
	double low = INFINITY, high = 0, x_tick[AXIS_TICKS], y_tick[AXIS_TICKS], power[24];
	for (uint32_t i = 0; i < n; i++) {
		x[i] = (double)r->history[i].epoch;
		y[0][i] = r->history[i].error;
		y[1][i] = r->report.tested ? r->history[i].test_error : (double)NAN;
		for (int k = 0; k < 2; k++)
			if (isfinite(y[k][i])) {
				low = y[k][i] > 0 ? fmin(low, y[k][i]) : low;
				high = fmax(high, y[k][i]);
			}
	}
	if (!n)
		return;
	Series series[2];
	series[count++] = (Series){ "training", PLOT_BLUE, n > 1 ? MARK_LINE : MARK_DISC, x, y[0], n };
	if (r->report.tested)
		series[count++] = (Series){ "test data", PLOT_ORANGE, n > 1 ? MARK_DASHES : MARK_SQUARE, x, y[1], n };
	Plot plot = { .title = "Learning curve", .series = series, .count = count, .corner = LEGEND_BELOW };
	axis_nice(&plot.x, 0, x[n - 1], x_tick);
	plot.y.log = high > 100 * low;
	if (plot.y.log) {
		double at = 1e12;
		while (at / 10 >= high)
			at /= 10;
		plot.y.high = at;
		for (; ticks < COUNT(power) && (ticks == 0 || power[ticks - 1] > low); at /= 10)
			power[ticks++] = at;
		plot.y.low = power[ticks - 1];
		plot.y.tick = power;
		plot.y.ticks = ticks;
	} else {
		axis_nice(&plot.y, 0, high, y_tick);
	}
	plot.x.label = "epoch";
	plot.y.label = plot.y.log ? "mean error of a case (logarithmic)" : "mean error of a case";
	plot_svg(&plot, &a->out);
}

static void figure_body(void *arg)
{
	static const struct {
		const char *kind;
		void (*draw)(FigureArgs *a, const Measurement *k);
	} figures[] = {
		{ "confusion", confusion }, { "roc", roc }, { "calibration", calibration }, { "predicted", predicted }
	};
	FigureArgs *a = arg;
	Ctx *cx = &a->r->cx;
	if (strcmp(a->kind, "curve") == 0) {
		a->out.arena = &cx->scratch;
		curve(a);
		if (a->out.len)
			a->write(a->user, a->out.s, a->out.len);
		return;
	}
	if (!a->r->measured || !a->r->measured->data)
		fail(cx, MP_BAD_INPUT, "call mp_run_measure before", "this run was not measured");
	for (size_t i = 0; i < COUNT(figures); i++) {
		if (strcmp(a->kind, figures[i].kind) != 0)
			continue;
		a->out.arena = &cx->scratch;
		figures[i].draw(a, a->r->measured);
		if (a->out.len)
			a->write(a->user, a->out.s, a->out.len);
		return;
	}
	fail(cx, MP_BAD_INPUT, "it is confusion, roc, calibration, predicted or curve", "there is no figure '%.40s'",
	     a->kind);
}

mp_status mp_run_figure(mp_run *run, const char *kind, uint32_t target, mp_write_fn *write, void *user)
{
	return api_call(&run->cx, figure_body,
	                &(FigureArgs){ .r = run, .kind = kind, .i = target, .write = write, .user = user });
}
