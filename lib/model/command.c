/* SPDX-License-Identifier: MIT */
/* microprop model. In: a network, a cluster, numbers of ranks, batch sizes. Out: the seconds of an epoch, phase by
 * phase, by the model of scaling.c, and the best number of ranks; as text or JSON. */
#include <inttypes.h>
#include <string.h>

#include "formats.h"
#include "model.h"
#include "plot.h"
#include "ranks.h"

enum { MOST_RANKS = 4096, MOST_THREADS = 4096, MOST_SHOWN = 64, MOST_BATCHES = 64 };

typedef struct Model {
	Ctx *cx;
	Buf *text; /* the report in both forms; one is printed */
	JsonWriter *json;
	const char *operand[2]; /* network, data */
	const char *cluster, *ranks, *batch;
	uint64_t cases, threads;
	bool as_json;
	const Net *net;
	const Cluster *c;
	const char *measured_on; /* name of the data; NULL: nothing was measured */
	const Data *data;        /* NULL: random cases */
	Rates rates;
	Workload w;
	uint64_t batches[MOST_BATCHES];
	uint32_t batch_count;
	double *rank;
	uint32_t rank_count;
} Model;

static const CommandOption options[] = {
	{ "cluster", ARG_TEXT, offsetof(Model, cluster), 0 },
	{ "ranks", ARG_TEXT, offsetof(Model, ranks), 0 },
	{ "batch", ARG_TEXT, offsetof(Model, batch), 0 },
	{ "cases", ARG_COUNT, offsetof(Model, cases), 1000000000000 },
	{ "threads", ARG_COUNT, offsetof(Model, threads), MOST_THREADS },
	{ "json", ARG_FLAG, offsetof(Model, as_json), 0 },
};
static const CommandArgs words = {
	.of = "model", .row = options, .rows = COUNT(options), .operands = 2, .operand_at = offsetof(Model, operand)
};
static const char *const way_names[REDUCES] = {
	[REDUCE_GATHER] = "together",
	[REDUCE_HALVING] = "halving",
	[REDUCE_SCATTER] = "parts",
};

/* ---- arguments ---- */

/* Data of less than a leaf is too little to measure the rates of more cases. */
static const Data *data_for_rates(const Model *m)
{
	const char *path = m->operand[1] ? m->operand[1] : m->net->data;

	if (!path)
		return NULL;
	const Data *d = data_open(m->cx, path, m->operand[1] ? NULL : &m->net->data_how);
	run_check_data(m->cx, m->net, d, true);
	targets_check(m->cx, &m->net->options, d);
	return m->cases && run_examples(m->net, d) < LEAF_EXAMPLES ? NULL : d;
}

static void take_rates(Model *m)
{
	const Data *d = data_for_rates(m);
	const Cluster *c = m->c;
	bool all_given = c->arithmetic > 0 && c->joins > 0 && c->updates > 0;
	Rated here = rates_measure(m->cx, m->net, d, (uint32_t)m->threads, !all_given);
	double links = (double)m->net->links;

	m->data = d;
	m->measured_on = all_given ? NULL : d ? d->name : "random cases";
	m->rates = here.rates;
	if (c->arithmetic > 0)
		m->rates.cases = 1e-6 * links / c->arithmetic;
	if (c->joins > 0)
		m->rates.join = 1e-6 / c->joins;
	if (c->updates > 0)
		m->rates.update = 1e-6 * links / c->updates;
	m->w = (Workload){ .links = m->net->links,
		               .floats = here.floats,
		               .examples = here.examples,
		               .cases = here.cases,
		               .threads = (uint32_t)m->threads };
	if (m->cases) {
		double share = (double)here.examples / (double)here.cases;
		m->w.cases = m->cases;
		m->w.examples = (uint64_t)(share * (double)m->cases + 0.5);
		m->w.examples = m->w.examples ? m->w.examples : 1;
	}
}

static void add_batch(Model *m, uint64_t examples)
{
	if (m->batch_count == MOST_BATCHES)
		fail(m->cx, MP_BAD_INPUT, "ask for fewer", "--batch: more than %d of them", MOST_BATCHES);
	m->batches[m->batch_count++] = examples < m->w.examples ? examples : m->w.examples;
}

/* `all` or ranges, separated by commas. */
static void take_batches(Model *m)
{
	static const uint64_t usual[] = { 65536, 16384, 4096, 1024 };
	const Param row = { .low = 1, .high = 1e12 };
	double *v;

	if (!m->batch) {
		add_batch(m, m->w.examples);
		for (size_t i = 0; i < COUNT(usual); i++)
			if (usual[i] < m->w.examples)
				add_batch(m, usual[i]);
		return;
	}
	for (const char *p = m->batch; p;) {
		const char *comma = strchr(p, ',');
		const char *word = arena_copy(&m->cx->scratch, p, comma ? (size_t)(comma - p) : strlen(p));
		p = comma ? comma + 1 : NULL;
		if (strcmp(word, "all") == 0) {
			add_batch(m, m->w.examples);
			continue;
		}
		for (uint32_t i = 0, n = range_read(m->cx, "--batch", word, &row, &v); i < n; i++)
			add_batch(m, (uint64_t)v[i]);
	}
}

static void take_ranks(Model *m)
{
	const Param row = { .low = 1, .high = MOST_RANKS };

	m->rank_count = range_read(m->cx, "--ranks", m->ranks ? m->ranks : "1..4096:x2", &row, &m->rank);
}

/* ---- the report ---- */

typedef struct Best {
	Scaling one, best;
	double optimum;
} Best;

static Best best_find(const Model *m)
{
	Best b = { .one = scaling_epoch(m->c, &m->rates, &m->w, 1), .optimum = scaling_optimum(m->c, &m->rates, &m->w) };

	b.best = (Scaling){ .total = 1e300 };
	for (uint32_t i = 0; i < m->rank_count; i++) {
		Scaling s = scaling_epoch(m->c, &m->rates, &m->w, (uint32_t)m->rank[i]);
		if (s.total < b.best.total)
			b.best = s;
	}
	return b;
}

/* Of a long range: powers of two, both ends and the best. */
static bool is_shown(const Model *m, const Best *b, uint32_t i)
{
	uint32_t n = (uint32_t)m->rank[i];

	return m->rank_count <= MOST_SHOWN || i == 0 || i + 1 == m->rank_count || (n & (n - 1)) == 0 || n == b->best.ranks;
}

static const Column columns[] = {
	{ .key = "ranks", .title = "ranks", .width = 5 },
	{ .key = "leaves", .title = "leaves", .width = 7 },
	{ .key = "sums", .title = "sums", .width = 5 },
	{ .key = "way", .title = "method", .width = -9 },
	{ .key = "messages" },
	{ .key = "bytes" },
	{ .key = "arithmetic", .title = "compute", .width = 12, .format = "%.4g" },
	{ .key = "travel", .title = "reduce", .width = 10, .format = "%.4g" },
	{ .key = "meeting", .title = "vote", .width = 10, .format = "%.4g" },
	{ .key = "update", .title = "update", .width = 10, .format = "%.4g" },
	{ .key = "seconds", .title = "total", .width = 10, .format = "%.4g" },
	{ .key = "speedup", .title = "speed-up", .width = 9, .format = "%.3f" },
	{ .key = "efficiency", .title = "eff. %", .width = 6, .format = "%.1f", .percent = true },
	{ .key = "mcps", .title = "MCPS", .width = 10, .format = "%.4g" },
};

static void row_print(const Table *t, const Best *b, const Scaling *s)
{
	double gain = b->one.total / s->total;

	table_row(t,
	          (TableCell[]){ tc_count(s->ranks), tc_count(s->leaves), tc_count(s->sums),
	                         tc_text(s->way < 0 ? NULL : way_names[s->way]), tc_count(s->messages), tc_count(s->bytes),
	                         tc_real(s->compute), tc_real(s->reduce), tc_real(s->vote), tc_real(s->update),
	                         tc_real(s->total), tc_real(gain), tc_real(gain / s->ranks), tc_real(s->mcps) });
}

static void batch_head(const Model *m, uint32_t leaves, const Best *b)
{
	uint64_t batch = m->w.batch;
	bool all = batch == m->w.examples;
	JsonWriter *j = m->json;

	buf_printf(m->text, "\nbatches of %" PRIu64 " example%s%s, %u lea%s; seconds of an epoch\n", batch,
	           batch == 1 ? "" : "s", all ? " (all)" : "", leaves, leaves < 2 ? "f: rank 0 trains alone" : "ves");
	jw_count(j, "batch", batch);
	jw_flag(j, "pooled", all);
	jw_count(j, "leaves", leaves);
	jw_start(j, "best", '{');
	jw_count(j, "ranks", b->best.ranks);
	jw_real(j, "seconds", NULL, b->best.total);
	jw_real(j, "speedup", NULL, b->one.total / b->best.total);
	jw_end(j, '}');
	jw_real(j, "closed", NULL, b->optimum);
}

static void batch_report(Model *m, uint64_t batch)
{
	const Table t = { .column = columns, .columns = COUNT(columns), .text = m->text, .json = m->json };
	bool measured = m->c->arithmetic <= 0 && m->c->updates <= 0;
	uint32_t leaves = leaf_count(batch);

	m->w.batch = batch;
	m->rates.alone = measured && leaves == 1 ? rates_alone(m->cx, m->net, m->data, (uint32_t)m->threads, batch) : 0;
	Best b = best_find(m);
	jw_start(m->json, NULL, '{');
	batch_head(m, leaves, &b);
	table_start(&t, "rows");
	for (uint32_t i = 0; i < m->rank_count; i++)
		if (is_shown(m, &b, i)) {
			Scaling s = scaling_epoch(m->c, &m->rates, &m->w, (uint32_t)m->rank[i]);
			row_print(&t, &b, &s);
		}
	table_end(&t);
	jw_end(m->json, '}');
	buf_printf(m->text,
	           "# best number of ranks: %u, speed-up %.3g; optimum of the formula for leaves of any size: %.4g\n",
	           b.best.ranks, b.one.total / b.best.total, b.optimum);
}

static void head_text(const Model *m)
{
	const Rates *r = &m->rates;

	buf_printf(m->text, "# %s: %" PRIu64 " weights; an epoch has %" PRIu64 " cases in %" PRIu64 " examples\n",
	           text_escaped(m->text->arena, m->net->name), m->w.links, m->w.cases, m->w.examples);
	buf_printf(m->text, "# cluster %s: latency %g us, overhead %g us, bandwidth %g MB/s\n", m->c->name, m->c->latency,
	           m->c->overhead, m->c->bandwidth);
	buf_printf(m->text, "# a rank of %" PRIu64 " thread%s: leaves %.5g MCPS, joins %.5g M/s, update %.5g M/s%s%s\n",
	           m->threads, m->threads == 1 ? "" : "s", 1e-6 * (double)m->w.links / r->cases, 1e-6 / r->join,
	           1e-6 * (double)m->w.links / r->update,
	           m->measured_on ? "; rates that the file does not give were measured here on " : "",
	           m->measured_on ? m->measured_on : "");
}

static void head_json(const Model *m)
{
	const Rates *r = &m->rates;
	JsonWriter *j = m->json;

	jw_start(j, NULL, '{');
	jw_text(j, "network", m->net->name);
	jw_count(j, "weights", m->w.links);
	jw_count(j, "floats", m->w.floats);
	jw_count(j, "cases", m->w.cases);
	jw_count(j, "examples", m->w.examples);
	jw_start(j, "cluster", '{');
	jw_text(j, "name", m->c->name);
	for (const Param *row = cluster_rows; row < cluster_rows + cluster_row_count; row++) {
		const void *at = (const char *)m->c + row->offset;
		jw_real(j, row->name, "%.10g", row->real ? *(const double *)at : (double)*(const int64_t *)at);
	}
	jw_end(j, '}');
	jw_start(j, "rank", '{');
	jw_count(j, "threads", m->threads);
	jw_real(j, "arithmetic_mcps", NULL, 1e-6 * (double)m->w.links / r->cases);
	jw_real(j, "joins", NULL, 1e-6 / r->join);
	jw_real(j, "updates", NULL, 1e-6 * (double)m->w.links / r->update);
	jw_text(j, "measured_on", m->measured_on);
	jw_end(j, '}');
	jw_start(j, "batches", '[');
}

void cluster_tool(Ctx *cx, int argc, const char *const *argv, Buf *out)
{
	Buf text = { .arena = out->arena }, json = text;
	JsonWriter writer = { .out = &json };
	Model m = { .cx = cx, .text = &text, .json = &writer, .threads = 1, .cluster = "ethernet" };

	tool_args_read(cx, &words, argc, argv, &m);
	if (!m.operand[0])
		fail(cx, MP_BAD_INPUT, "name a topology file", "no network is given");
	m.c = cluster_open(cx, m.cluster);
	m.net = net_parse(cx, src_open(cx, &cx->keep, m.operand[0]), DEFAULTS_NEWEST);
	take_ranks(&m);
	take_rates(&m);
	take_batches(&m);
	head_text(&m);
	head_json(&m);
	for (uint32_t i = 0; i < m.batch_count; i++)
		batch_report(&m, m.batches[i]);
	jw_end(&writer, ']');
	jw_end(&writer, '}');
	buf_puts(&json, "\n");
	*out = m.as_json ? json : text;
}
