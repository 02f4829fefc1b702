/* SPDX-License-Identifier: MIT */
/* Public calls that measure a network: metrics of data, cases one by one, metrics that a model carries. */
#include <math.h>
#include <string.h>

#include "api.h"

typedef struct MeasureArgs {
	Run *r;
	const Run *from;
	const mp_data *data;
	uint64_t i;
	bool held_out;
	const mp_metrics *metrics;
	const mp_case *one;
} MeasureArgs;

static Measurement *measured_new(Run *r)
{
	if (!r->measured)
		r->measured = NEW(&r->cx.keep, 1, Measurement);
	r->measured->data = NULL;
	return r->measured;
}

static const mp_metrics *metrics_show(Run *r, Measurement *k, Metrics *m)
{
	k->metrics = m;
	k->show = (mp_metrics){ .size = sizeof k->show,
		                    .kind = metrics_kinds[m->kind],
		                    .cases = m->cases,
		                    .accuracy = m->accuracy,
		                    .log_loss = m->log_loss,
		                    .auc = m->auc,
		                    .bits_right = m->bits_right,
		                    .rmse = m->rmse,
		                    .mae = m->mae,
		                    .r2 = m->r2,
		                    .classes = m->classes,
		                    .confusion = m->confusion,
		                    .class_names = r->class_count == m->classes ? r->classes : NULL };
	k->per_class = NEW(&r->cx.keep, m->classes, mp_class_metrics);
	for (uint32_t i = 0; i < m->classes; i++) {
		const ClassMetrics *c = &m->per_class[i];
		k->per_class[i] = (mp_class_metrics){ sizeof *k->per_class, c->cases, c->precision, c->recall, c->f1, c->auc };
	}
	return &k->show;
}

static void measure_body(void *arg)
{
	MeasureArgs *a = arg;
	Run *r = a->r;
	Ctx *cx = &r->cx;
	const Data *d = data_readable(cx, a->data);
	if (!d->targets)
		fail(cx, MP_BAD_INPUT, "give data with targets", "%s has no targets to measure by", d->name);
	run_check_data(cx, r->net, d, true);
	Measurement *k = measured_new(r);
	if (d->cases * d->targets > k->capacity) {
		k->outputs = arena_grow_raw(&cx->keep, k->outputs, k->capacity, d->cases * d->targets, sizeof *k->outputs);
		k->capacity = d->cases * d->targets;
	}
	run_test(r, d, NULL, k->outputs);
	const Schema *schema = run_schema(r);
	k->schema = schema && !schema->plain ? schema : NULL;
	a->metrics = metrics_show(r, k, metrics_measure(cx, d, k->schema, k->outputs));
	Options own = r->opt;
	own.error = run_error(r);
	scorer_init(&k->scorer, &own, d);
	scorer_shape(&k->scorer, r->net);
	k->row = NEW(&cx->keep, d->targets, float);
	k->tick = NULL;
	k->all_targets = NULL;
	k->groups = 0;
	for (uint32_t i = 0; i < r->net->groups; i++)
		k->groups += r->net->group[i].role == ROLE_OUTPUT;
	k->group = NEW(&cx->keep, k->groups, mp_case_group);
	k->words = NEW(&cx->keep, 2 * (size_t)k->groups, Buf);
	k->values = NEW(&cx->keep, (size_t)2 * d->targets, double);
	k->data = d;
}

const mp_metrics *mp_run_measure(mp_run *run, const mp_data *data)
{
	MeasureArgs a = { .r = run, .data = data };
	return api_call(&run->cx, measure_body, &a) == MP_OK ? a.metrics : NULL;
}

const mp_class_metrics *mp_run_get_class_metrics(const mp_run *run, uint32_t i)
{
	const Measurement *k = run->measured;
	return k && i < k->show.classes ? &k->per_class[i] : NULL;
}

typedef struct KindArgs {
	mp_data *data;
	const char *kind;
} KindArgs;

static void kind_body(void *arg)
{
	KindArgs *a = arg;
	Ctx *cx = &a->data->cx;
	const Data *d = data_readable(cx, a->data);
	if (!d->targets)
		return;
	int kind = metrics_kind(cx, d, NULL);
	a->kind = kind == METRICS_NUMBERS && targets_two_valued(cx, d) ? "levels" : metrics_kinds[kind];
}

const char *mp_data_get_kind(mp_data *data)
{
	KindArgs a = { data, NULL };
	return api_call(&data->cx, kind_body, &a) == MP_OK ? a.kind : NULL;
}

/* ---- cases ---- */

/* Ticks, from option criterion-from on, at which the outputs of each group, and of all, are first within the
 * threshold. */
static void reactions_find(Run *r, Measurement *k)
{
	Ctx *cx = &r->cx;
	const Data *d = k->data;
	TickPlan plan = ticks_make(r->net, &r->opt);
	uint32_t ticks = ticks_longest(&plan, d), n = k->groups + 1;
	k->tick = NEW(&cx->keep, d->cases * n, uint32_t);
	double *out = NEW(&cx->scratch, d->cases * d->targets, double);
	uint8_t *within = NEW(&cx->scratch, d->cases, uint8_t);
	for (uint32_t tick = (uint32_t)r->opt.criterion_from - 1; tick < ticks; tick++) {
		uint32_t number = 0, first = 0;
		memset(within, 1, d->cases);
		for (const Group *g = r->net->group; g < r->net->group + r->net->groups; g++) {
			if (g->role != ROLE_OUTPUT)
				continue;
			run_activations(r, d, g, tick, out);
			for (uint64_t i = 0; i < d->cases; i++) {
				bool all = true;
				data_y(d, i, k->row);
				for (uint32_t j = 0; j < g->size; j++)
					all &= isnan(k->row[first + j]) || fabs(out[i * g->size + j] - (double)k->row[first + j]) <=
					                                       group_criterion(g, r->opt.threshold);
				within[i] &= all;
				if (all && !k->tick[i * n + number])
					k->tick[i * n + number] = tick + 1;
			}
			number++;
			first += g->size;
		}
		for (uint64_t i = 0; i < d->cases; i++)
			if (within[i] && !k->tick[i * n + number])
				k->tick[i * n + number] = tick + 1;
	}
}

/* ---- guesses of groups ---- */

#define MOST_GUESSES 2e9 /* cases times cases times targets: seconds */

static void targets_find(Run *r, Measurement *k)
{
	const Data *d = k->data;
	double work = (double)d->cases * (double)d->cases * d->targets;
	if (k->all_targets || !d->names || k->metrics->kind != METRICS_BITS || k->groups < 2 || work > MOST_GUESSES)
		return;
	k->all_targets = NEW(&r->cx.keep, d->cases * d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++)
		data_y(d, i, k->all_targets + i * d->targets);
}

static const char *name_kept(Run *r, const Data *d, uint64_t i, Buf *to)
{
	*to = (Buf){ .arena = &r->cx.keep, .s = to->s, .cap = to->cap };
	if (i >= d->cases || !d->names[i].len)
		return NULL;
	buf_add(to, d->names[i].s, d->names[i].len);
	return to->s;
}

/* The two patterns of targets that are nearest to the outputs of a group. */
static void guess_find(Run *r, const Measurement *k, uint64_t own, const double *out, uint32_t first, mp_case_group *g,
                       uint32_t count)
{
	const Data *d = k->data;
	uint64_t order[2] = { d->cases, d->cases };
	double best[2] = { INFINITY, INFINITY };
	for (uint64_t n = 0; n <= d->cases; n++) { /* this case comes first */
		uint64_t i = n ? n - 1 : own;
		const float *y = k->all_targets + i * d->targets + first;
		double apart = 0;
		for (uint32_t j = 0; j < count; j++)
			apart += isnan(y[j]) ? 0 : (out[first + j] - (double)y[j]) * (out[first + j] - (double)y[j]);
		bool same =
			order[0] < d->cases && memcmp(y, k->all_targets + order[0] * d->targets + first, count * sizeof *y) == 0;
		if (same || !(apart < best[1]))
			continue;
		bool nearest = apart < best[0];
		best[1] = nearest ? best[0] : apart;
		order[1] = nearest ? order[0] : i;
		best[0] = nearest ? apart : best[0];
		order[0] = nearest ? i : order[0];
	}
	Buf *words = &k->words[2 * (g - k->group)];
	g->guess = name_kept(r, d, order[0], words);
	g->rival = name_kept(r, d, order[1], words + 1);
}

static void groups_score(Run *r, Measurement *k, uint64_t i, const double *out)
{
	uint32_t number = 0, first = 0;
	for (const Group *g = r->net->group; g < r->net->group + r->net->groups; g++) {
		if (g->role != ROLE_OUTPUT)
			continue;
		Scorer own = k->scorer;
		Tally t = { 0 };
		own.targets = g->size;
		own.code_count = 0;
		own.group = own.net ? g : NULL;
		score_case(&own, out + first, NULL, k->row + first, 1, &t);
		bool bits = k->metrics->kind == METRICS_BITS, right = bits || t.right > 0;
		for (uint32_t j = first; bits && j < first + g->size; j++)
			right &= isnan(k->row[j]) || (out[j] >= 0.5) == (k->row[j] >= 0.5f);
		k->group[number] = (mp_case_group){ .size = sizeof *k->group,
			                                .name = g->name,
			                                .error = t.scored ? t.error : (double)NAN,
			                                .right = right,
			                                .within = t.within > 0,
			                                .tick = k->tick ? k->tick[i * (k->groups + 1) + number] : 0 };
		if (k->all_targets)
			guess_find(r, k, i, out, first, &k->group[number], g->size);
		number++;
		first += g->size;
	}
}

/* The second largest output of classes, or the second nearest code word. */
static void rival_find(Run *r, Measurement *k, const double *out)
{
	const Data *d = k->data;
	bool classes = k->metrics->classes && k->metrics->classes == d->targets;
	const char *const *names = r->class_count == d->targets ? r->classes : NULL;
	uint32_t n = classes ? d->targets : d->code_names ? d->code_count : 0, order[2] = { n, n };
	double best[2] = { INFINITY, INFINITY };
	for (uint32_t i = 0; i < n; i++) {
		double v = classes ? -out[i] : 0;
		for (uint32_t j = 0; !classes && j < d->targets; j++) {
			double apart = d->codes[(size_t)i * d->targets + j] - out[j];
			v += isnan(k->row[j]) ? 0 : apart * apart;
		}
		v = classes ? v : sqrt(v);
		bool first = v < best[0];
		if (!first && !(v < best[1]))
			continue;
		best[1] = first ? best[0] : v;
		order[1] = first ? order[0] : i;
		best[0] = first ? v : best[0];
		order[0] = first ? i : order[0];
	}
	k->one.rival = NULL;
	k->one.margin = NAN;
	if (order[1] >= n)
		return;
	k->rival = (Buf){ .arena = &r->cx.keep, .s = k->rival.s, .cap = k->rival.cap };
	if (!classes)
		buf_add(&k->rival, d->code_names[order[1]].s, d->code_names[order[1]].len);
	else if (names)
		buf_puts(&k->rival, names[order[1]]);
	else
		buf_printf(&k->rival, "%u", order[1]);
	k->one.rival = k->rival.s;
	k->one.margin = best[1] - best[0];
}

static void case_body(void *arg)
{
	MeasureArgs *a = arg;
	Measurement *k = a->r->measured;
	if (!k || !k->data || a->i >= k->data->cases)
		return;
	const Data *d = k->data;
	uint32_t n = d->targets;
	const double *out = k->outputs + a->i * n;
	CaseMetrics c;
	Tally t = { 0 };
	bool scored = metrics_case(d, k->metrics->kind, k->outputs, a->i, k->row, &c);
	score_case(&k->scorer, out, NULL, k->row, 1, &t);
	for (uint32_t i = 0; i < n; i++) {
		const Field *f = k->schema && k->schema->task == TASK_REGRESSION ? schema_target(k->schema, i) : NULL;
		k->values[i] = f ? target_decode(f, (double)k->row[i]) : (double)k->row[i];
		k->values[n + i] = f ? target_decode(f, out[i]) : out[i];
	}
	k->one = (mp_case){ .size = sizeof k->one,
		                .scored = scored,
		                .weight = c.weight,
		                .target = c.target,
		                .guess = c.guess,
		                .right = k->scorer.code_count ? t.right > 0 : c.right,
		                .p_target = c.p_target,
		                .p_guess = c.p_guess,
		                .error = scored ? t.error : (double)NAN,
		                .targets = k->values,
		                .outputs = k->values + n };
	k->one.within = t.within > 0;
	rival_find(a->r, k, out);
	if (a->r->net->settles && !k->tick)
		reactions_find(a->r, k);
	targets_find(a->r, k);
	data_y(d, a->i, k->row);
	groups_score(a->r, k, a->i, out);
	k->one.groups = k->groups;
	k->one.group = k->group;
	k->one.tick = k->tick ? k->tick[a->i * (k->groups + 1) + k->groups] : 0;
	a->one = &k->one;
}

const mp_case *mp_run_get_case(mp_run *run, uint64_t i)
{
	MeasureArgs a = { .r = run, .i = i };
	return api_call(&run->cx, case_body, &a) == MP_OK ? a.one : NULL;
}

/* ---- metrics of a model ---- */

static void keep_body(void *arg)
{
	MeasureArgs *a = arg;
	Ctx *cx = &a->r->cx;
	const Measurement *from = a->from->measured;
	if (!from || !from->data)
		fail(cx, MP_BAD_INPUT, "call mp_run_measure before", "that run was not measured");
	a->r->kept_metrics = metrics_copy(&cx->keep, from->metrics);
	a->r->kept_metrics->held_out = a->held_out;
}

mp_status mp_run_keep_metrics(mp_run *run, const mp_run *measured, int held_out)
{
	return api_call(&run->cx, keep_body, &(MeasureArgs){ .r = run, .from = measured, .held_out = held_out != 0 });
}

static void kept_body(void *arg)
{
	MeasureArgs *a = arg;
	if (a->r->kept_metrics)
		a->metrics = metrics_show(a->r, measured_new(a->r), a->r->kept_metrics);
}

const mp_metrics *mp_run_get_kept_metrics(mp_run *run, int *held_out)
{
	MeasureArgs a = { .r = run };
	if (api_call(&run->cx, kept_body, &a) != MP_OK || !a.metrics)
		return NULL;
	*held_out = run->kept_metrics->held_out;
	return a.metrics;
}
