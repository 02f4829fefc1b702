/* SPDX-License-Identifier: MIT */
/* microprop lesion.  In: a trained network, places, shares, repeats.  Out: error and accuracy of damaged networks by
 * place, share and set of cases, with their spread over repeats; as text, JSON, CSV and a figure.
 *
 * A repeat is a random order of the units (or links) of a place; a share removes the first of them.  So the damage of a
 * repeat grows with the share, and its random numbers depend on seed, place and repeat alone.  Noise is drawn once for
 * a repeat, too, and multiplied by the share. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze.h"

enum { MOST_REPEATS = 100000, MOST_NETWORKS = 10000000, MOST_SERIES = 12, MEASURES = 3 };
enum { MEASURE_RIGHT, MEASURE_WITHIN, MEASURE_ERROR };

typedef struct Lesion {
	const Subject *s;
	const char *units, *links, *shares, *sets_text, *measure, *svg, *csv;
	uint64_t repeats, seed;
	bool noise, as_json;
	Place *place;
	uint32_t places;
	double *share;
	uint32_t share_count;
	CaseSet *set;
	uint32_t sets;
	struct Job *job; /* networks that differ */
	uint64_t jobs;
	uint64_t *job_of; /* [places * shares * repeats] */
	Tally *tally;     /* [jobs * sets] */
	Spread *spread;   /* [places * shares * sets * MEASURES] */
	int drawn;        /* MEASURE_... */
	double seconds;
} Lesion;

typedef struct Job {
	uint32_t place;
	uint32_t repeat;
	double share;
} Job;

static const CommandOption options[] = {
	{ "units", ARG_TEXT, offsetof(Lesion, units), 0 },
	{ "links", ARG_TEXT, offsetof(Lesion, links), 0 },
	{ "share", ARG_TEXT, offsetof(Lesion, shares), 0 },
	{ "repeats", ARG_COUNT, offsetof(Lesion, repeats), MOST_REPEATS },
	{ "seed", ARG_COUNT, offsetof(Lesion, seed), UINT32_MAX },
	{ "noise", ARG_FLAG, offsetof(Lesion, noise), 0 },
	{ "sets", ARG_TEXT, offsetof(Lesion, sets_text), 0 },
	{ "measure", ARG_TEXT, offsetof(Lesion, measure), 0 },
	{ "svg", ARG_TEXT, offsetof(Lesion, svg), 0 },
	{ "csv", ARG_TEXT, offsetof(Lesion, csv), 0 },
	{ "json", ARG_FLAG, offsetof(Lesion, as_json), 0 },
};
static const CommandArgs words = { .of = "lesion", .row = options, .rows = COUNT(options) };
static const char *const measures[MEASURES] = { "right", "within", "error" };

/* ---- damage ---- */

static uint32_t removed_count(const Lesion *l, const Place *p, double share)
{
	return l->noise ? p->count : (uint32_t)(share * (double)p->count + 0.5);
}

/* Standard normal, number i of a stream (Box and Muller). */
static double normal(uint64_t seed, uint64_t index)
{
	uint64_t a = random_u64(seed, STREAM_LESION, 2 * index), b = random_u64(seed, STREAM_LESION, 2 * index + 1);
	double u = ((double)(a >> 11) + 1) / 9007199254740992.0, v = (double)(b >> 11) / 9007199254740992.0;
	return sqrt(-2 * arith_log(u)) * arith_cospi(2 * v);
}

/* Random numbers of a repeat, which all shares use: kept from one network to the next. */
typedef struct Drawn {
	uint32_t place, repeat; /* counted from 1 */
	uint64_t count;         /* of these are known: */
	union {
		uint32_t order[1]; /* items as they are removed, then the others; */
		double normal[1];  /* or noise, of links */
	};
} Drawn;

static void draw(const Lesion *l, const Job *j, uint64_t count, Drawn *d)
{
	const Place *p = &l->place[j->place];
	uint64_t stream = ((uint64_t)j->place * MOST_REPEATS + j->repeat) << 32;
	if (d->place != j->place + 1 || d->repeat != j->repeat + 1) {
		d->place = j->place + 1;
		d->repeat = j->repeat + 1;
		d->count = 0;
		for (uint32_t i = 0; !l->noise && i < p->count; i++)
			d->order[i] = i;
	}
	for (; d->count < count; d->count++) {
		uint64_t i = d->count;
		if (l->noise) {
			d->normal[i] = normal(l->seed, stream + i);
			continue;
		}
		uint64_t k = i + random_below(l->seed, STREAM_LESION, stream + i, p->count - i);
		uint32_t chosen = d->order[k];
		d->order[k] = d->order[i];
		d->order[i] = chosen;
	}
}

static void damage(const void *arg, uint64_t number, Damaged *net)
{
	const Lesion *l = arg;
	const Job *j = &l->job[number];
	const Place *p = &l->place[j->place];
	uint32_t count = removed_count(l, p, j->share);
	Drawn *d = net->scratch;
	draw(l, j, l->noise ? p->links : count, d);
	if (!l->noise)
		place_remove(p, d->order, count, net);
	for (net->links = l->noise ? 0 : net->links; l->noise && net->links < p->links; net->links++) {
		net->link[net->links] = p->link[net->links];
		net->weight[net->links] = l->s->w[p->link[net->links]] + j->share * p->sd * d->normal[net->links];
	}
}

/* Networks that are the same whatever the repeat are computed once. */
static void jobs_make(Lesion *l)
{
	Arena *a = &l->s->cx->scratch;
	uint64_t all = (uint64_t)l->places * l->share_count * l->repeats;
	l->job = NEW(a, all, Job);
	l->job_of = NEW(a, all, uint64_t);
	for (uint32_t p = 0; p < l->places; p++)
		for (uint32_t r = 0; r < l->repeats; r++)
			for (uint32_t k = 0; k < l->share_count; k++) {
				uint64_t *job = &l->job_of[((uint64_t)p * l->share_count + k) * l->repeats];
				uint32_t count = removed_count(l, &l->place[p], l->share[k]);
				bool same = l->noise ? l->share[k] == 0 : count == 0 || count == l->place[p].count;
				job[r] = r && same ? job[0] : l->jobs;
				if (job[r] == l->jobs)
					l->job[l->jobs++] = (Job){ p, (uint32_t)r, l->share[k] };
			}
}

static void networks_run(Lesion *l)
{
	size_t most = 0;
	for (uint32_t p = 0; p < l->places; p++)
		most = max_u64(most, l->noise ? l->place[p].links * sizeof(double) : l->place[p].count * sizeof(uint32_t));
	jobs_make(l);
	l->tally = NEW(&l->s->cx->scratch, l->jobs * l->sets, Tally);
	double began = clock_seconds();
	damage_run(l->s, &(Networks){ .count = l->jobs,
	                              .damage = damage,
	                              .arg = l,
	                              .scratch = sizeof(Drawn) + most,
	                              .set = l->set,
	                              .sets = l->sets,
	                              .tally = l->tally });
	l->seconds = clock_seconds() - began;
}

/* ---- results ---- */

static double measured(const Tally *t, int measure)
{
	double scored = (double)t->scored;
	if (measure == MEASURE_ERROR)
		return tally_mean(t);
	return t->scored ? (double)(measure == MEASURE_RIGHT ? t->right : t->within) / scored : 0;
}

static void spreads_make(Lesion *l)
{
	Arena *a = &l->s->cx->scratch;
	double *v = NEW(a, l->repeats, double);
	Spread *to = l->spread = NEW(a, (size_t)l->places * l->share_count * l->sets * MEASURES, Spread);
	for (uint64_t i = 0; i < (uint64_t)l->places * l->share_count; i++)
		for (uint32_t m = 0; m < l->sets; m++)
			for (int k = 0; k < MEASURES; k++) {
				for (uint64_t r = 0; r < l->repeats; r++)
					v[r] = measured(&l->tally[l->job_of[i * l->repeats + r] * l->sets + m], k);
				*to = spread_of(v, l->repeats);
				to->low = k == MEASURE_ERROR ? fmax(to->low, fmin(0, to->mean)) : fmax(to->low, 0);
				to->high = k == MEASURE_ERROR ? to->high : fmin(to->high, 1);
				to++;
			}
}

static const Spread *spread_at(const Lesion *l, uint32_t place, uint32_t share, uint32_t set)
{
	return &l->spread[(((size_t)place * l->share_count + share) * l->sets + set) * MEASURES];
}

/* ---- report ---- */

static const Column columns[] = {
	{ "place", "place", -24, NULL, NULL, NULL, false },
	{ "kind", NULL, 0, NULL, NULL, NULL, false },
	{ "share", "share", 6, "%.3g", "%.10g", NULL, false },
	{ "removed", "removed", 8, NULL, NULL, NULL, false },
	{ "set", "set", -14, NULL, NULL, NULL, false },
	{ "cases", NULL, 0, NULL, NULL, NULL, false },
	{ "n", "n", 5, NULL, NULL, NULL, false },
	{ "mean", "right %", 8, "%.1f", "%.10g", "right", true },
	{ "sd", "sd", 5, "%.1f", "%.10g", "right", true },
	{ "low", NULL, 0, NULL, "%.10g", "right", false },
	{ "high", NULL, 0, NULL, "%.10g", "right", false },
	{ "mean", "within %", 8, "%.1f", "%.10g", "within", true },
	{ "sd", "sd", 5, "%.1f", "%.10g", "within", true },
	{ "low", NULL, 0, NULL, "%.10g", "within", false },
	{ "high", NULL, 0, NULL, "%.10g", "within", false },
	{ "mean", "error", 10, NULL, "%.10g", "error", false },
	{ "sd", "sd", 9, NULL, "%.10g", "error", false },
	{ "low", NULL, 0, NULL, "%.10g", "error", false },
	{ "high", NULL, 0, NULL, "%.10g", "error", false },
};

static void row_print(const Lesion *l, const Table *t, uint32_t p, uint32_t k, uint32_t m)
{
	const Spread *s = spread_at(l, p, k, m);
	const Place *place = &l->place[p];
	TableCell cell[COUNT(columns)] = {
		tc_text(place->name),    tc_text(place->units ? "units" : "links"),
		tc_real(l->share[k]),    l->noise ? tc_none() : tc_count(removed_count(l, place, l->share[k])),
		tc_text(l->set[m].name), tc_count(l->set[m].cases),
		tc_count(l->repeats),
	};
	for (int i = 0; i < MEASURES; i++) {
		const double v[] = { s[i].mean, s[i].sd, s[i].low, s[i].high };
		for (int j = 0; j < 4; j++)
			cell[7 + 4 * i + j] = tc_real(v[j]);
	}
	table_row(t, cell);
}

static void head_json(const Lesion *l, JsonWriter *j)
{
	jw_start(j, NULL, '{');
	jw_text(j, "network", l->s->net->name);
	jw_text(j, "data", l->s->data->name);
	jw_text(j, "damage", l->noise ? "noise" : "removal");
	jw_count(j, "repeats", l->repeats);
	jw_count(j, "seed", l->seed);
	jw_count(j, "networks", l->jobs);
	jw_real(j, "seconds", NULL, l->seconds);
	jw_start(j, "places", '[');
	for (uint32_t i = 0; i < l->places; i++) {
		const Place *p = &l->place[i];
		jw_start(j, NULL, '{');
		jw_text(j, "place", p->name);
		jw_text(j, "kind", p->units ? "units" : "links");
		jw_count(j, "count", p->count);
		jw_count(j, "links", p->links);
		jw_real(j, "weight_sd", NULL, p->sd);
		jw_end(j, '}');
	}
	jw_end(j, ']');
}

static void report(const Lesion *l, Buf *out)
{
	Arena *a = out->arena;
	Buf text = { .arena = a }, json = text, csv = text;
	JsonWriter writer = { .out = &json };
	const Table t = { columns, COUNT(columns), &text, &writer, &csv };
	const Subject *s = l->s;
	buf_printf(&text, "# %s on %s: %" PRIu64 " networks damaged by %s, %" PRIu64 " repeat%s\n",
	           text_escaped(a, s->net->name), text_escaped(a, s->data->name), l->jobs, l->noise ? "noise" : "removal",
	           l->repeats, l->repeats == 1 ? "" : "s");
	head_json(l, &writer);
	table_start(&t, "rows");
	for (uint32_t p = 0; p < l->places; p++)
		for (uint32_t k = 0; k < l->share_count; k++)
			for (uint32_t m = 0; m < l->sets; m++)
				row_print(l, &t, p, k, m);
	table_end(&t);
	if (l->svg)
		jw_text(&writer, "figure", l->svg);
	jw_end(&writer, '}');
	buf_puts(&json, "\n");
	text_save(s->cx, l->csv, &csv);
	*out = l->as_json ? json : text;
}

/* ---- figure ---- */

static const char *label_of(const Lesion *l, uint32_t p, uint32_t m)
{
	Buf b = { .arena = &l->s->cx->scratch };
	if (l->places > 1 || l->sets == 1)
		buf_puts(&b, l->place[p].name);
	if (l->sets > 1)
		buf_printf(&b, "%s%s", l->places > 1 ? ", " : "", l->set[m].name);
	return b.s;
}

static Series series_make(const Lesion *l, uint32_t p, uint32_t m, uint32_t number, Band *band)
{
	Arena *a = &l->s->cx->scratch;
	double *x = NEW(a, l->share_count, double), *y = NEW(a, l->share_count, double);
	double *low = NEW(a, l->share_count, double), *high = NEW(a, l->share_count, double);
	double percent = l->drawn == MEASURE_ERROR ? 1 : 100;
	for (uint32_t k = 0; k < l->share_count; k++) {
		const Spread *s = &spread_at(l, p, k, m)[l->drawn];
		x[k] = l->noise ? l->share[k] : 100 * l->share[k];
		y[k] = percent * s->mean;
		low[k] = percent * s->low;
		high[k] = percent * s->high;
	}
	*band = (Band){ low, high };
	return (Series){ .label = label_of(l, p, m),
		             .colour = plot_colours[number % PLOT_COLOURS],
		             .mark = number < PLOT_COLOURS ? MARK_LINE : MARK_DASHES,
		             .x = x,
		             .y = y,
		             .points = l->share_count };
}

static void figure(const Lesion *l)
{
	Ctx *cx = l->s->cx;
	Series series[MOST_SERIES];
	Band band[MOST_SERIES];
	uint32_t count = 0, all = l->places * l->sets;
	double highest = 0, x_tick[AXIS_TICKS], y_tick[AXIS_TICKS];
	bool units = false, links = false;
	for (uint32_t p = 0; p < l->places; p++) {
		units |= l->place[p].units;
		links |= !l->place[p].units;
		for (uint32_t m = 0; m < l->sets && count < MOST_SERIES; m++, count++) {
			series[count] = series_make(l, p, m, count, &band[count]);
			for (uint32_t k = 0; k < l->share_count; k++)
				highest = fmax(highest, band[count].high[k]);
		}
	}
	Buf title = { .arena = &cx->scratch }, x = title, y = title, svg = title;
	buf_printf(&title, "Damaged networks: mean of %" PRIu64 " and 95 %% confidence band%s", l->repeats,
	           all > count ? ", some of the places" : "");
	const char *what = units && links ? "units or links" : units ? "units" : "links";
	if (l->noise)
		buf_puts(&x, "noise on the weights (standard deviations of the weights)");
	else
		buf_printf(&x, "%s removed (%%)", what);
	buf_puts(&y, l->drawn == MEASURE_RIGHT    ? "cases right (%)"
	             : l->drawn == MEASURE_WITHIN ? "cases within the threshold (%)"
	                                          : "mean error of a case");
	Plot plot = { .title = title.s, .series = series, .count = count, .corner = LEGEND_BELOW };
	double last = l->share[0];
	for (uint32_t k = 0; k < l->share_count; k++)
		last = fmax(last, l->share[k]);
	axis_nice(&plot.x, 0, l->noise ? last : 100 * last, x_tick);
	axis_nice(&plot.y, 0, l->drawn == MEASURE_ERROR ? highest : 100, y_tick);
	plot.x.label = x.s;
	plot.y.label = y.s;
	plot_bands_svg(&plot, band, &svg);
	text_save(cx, l->svg, &svg);
}

/* ---- the study ---- */

static int measure_read(const Lesion *l)
{
	if (!l->measure)
		return l->s->right ? MEASURE_RIGHT : MEASURE_WITHIN;
	for (int i = 0; i < MEASURES; i++)
		if (strcmp(l->measure, measures[i]) == 0)
			return i;
	fail(l->s->cx, MP_BAD_INPUT, "it is right, within or error", "--measure cannot be '%.40s'", l->measure);
}

void lesion_study(const Subject *s, int argc, const char *const *argv, Buf *out)
{
	Lesion l = { .s = s, .repeats = 20, .seed = 1 };
	tool_args_read(s->cx, &words, argc, argv, &l);
	const Param row = { .low = 0, .high = l.noise ? 1000 : 1, .real = true };
	l.drawn = measure_read(&l);
	l.places = places_read(s, l.units, l.links, &l.place);
	l.share_count = range_read(s->cx, "--share", l.shares ? l.shares : "0..1:0.1", &row, &l.share);
	l.sets = sets_read(s->cx, s->data, l.sets_text, &l.set);
	if ((uint64_t)l.places * l.share_count > MOST_NETWORKS / l.repeats)
		fail(s->cx, MP_BAD_INPUT, "ask for fewer repeats, shares or places", "more than %d damaged networks",
		     MOST_NETWORKS);
	networks_run(&l);
	spreads_make(&l);
	report(&l, out);
	if (l.svg)
		figure(&l);
}
