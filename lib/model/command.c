/* SPDX-License-Identifier: MIT */
/* microprop model. In: a network, a cluster, numbers of ranks, sizes of batches. Out: what an epoch would take by
 * the model of scaling.c, part by part, and the best number of ranks; as text or JSON. */
#include <inttypes.h>
#include <string.h>

#include "cluster.h"
#include "ranks.h"
#include "base.h"

enum { MOST_RANKS = 4096, MOST_THREADS = 4096, MOST_SHOWN = 64, MOST_BATCHES = 64 };

typedef struct Model {
	Ctx *cx;
	Buf *out;
	const char *operand[2]; /* network, data */
	const char *cluster, *ranks, *batch;
	uint64_t cases, threads;
	bool json;
	const Net *net;
	const Cluster *c;
	const char *on;   /* what was measured on; NULL: nothing was measured */
	const Data *data; /* that; NULL: made-up cases */
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
	{ "json", ARG_FLAG, offsetof(Model, json), 0 },
};
static const CommandArgs words = {
	.of = "model", .row = options, .rows = COUNT(options), .operands = 2, .operand_at = offsetof(Model, operand)
};
static const char *const way_names[RANK_WAYS] = {
	[WAY_TOGETHER] = "together",
	[WAY_HALVING] = "halving",
	[WAY_PARTS] = "parts",
};

/* ---- what is asked ---- */

/* Data of less than a leaf says little about longer ones. */
static const Data *data_for_rates(const Model *m)
{
	const char *path = m->operand[1] ? m->operand[1] : m->net->data;

	if (!path)
		return NULL;
	const Data *d = data_open(m->cx, path, NULL);
	run_check_data(m->cx, m->net, d, true);
	score_check(m->cx, &m->net->options, d);
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
	m->on = all_given ? NULL : d ? d->name : "made-up cases";
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

/* Of a word `all`, or as range_read takes them; several with commas between. */
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
	double closed;
} Best;

static Best best_find(const Model *m)
{
	Best b = { .one = scaling_epoch(m->c, &m->rates, &m->w, 1), .closed = scaling_optimum(m->c, &m->rates, &m->w) };

	b.best = (Scaling){ .total = 1e300 };
	for (uint32_t i = 0; i < m->rank_count; i++) {
		Scaling s = scaling_epoch(m->c, &m->rates, &m->w, (uint32_t)m->rank[i]);
		if (s.total < b.best.total)
			b.best = s;
	}
	return b;
}

/* Of a long range the powers of two, its ends and the best. */
static bool is_shown(const Model *m, const Best *b, uint32_t i)
{
	uint32_t n = (uint32_t)m->rank[i];

	return m->rank_count <= MOST_SHOWN || i == 0 || i + 1 == m->rank_count || (n & (n - 1)) == 0 || n == b->best.ranks;
}

static void row_text(const Model *m, const Best *b, const Scaling *s)
{
	double gain = b->one.total / s->total;

	buf_printf(m->out, "%5u %7u %5u %-9s %12.4g %10.4g %10.4g %10.4g %10.4g %9.3f %6.1f %10.4g\n", s->ranks, s->leaves,
	           s->sums, s->way < 0 ? "-" : way_names[s->way], s->arithmetic, s->travel, s->meeting, s->update, s->total,
	           gain, 100 * gain / s->ranks, s->mcps);
}

static void row_json(const Model *m, const Best *b, const Scaling *s)
{
	double gain = b->one.total / s->total;

	buf_printf(m->out, "{\"ranks\": %u, \"leaves\": %u, \"sums\": %u, \"way\": ", s->ranks, s->leaves, s->sums);
	buf_printf(m->out, s->way < 0 ? "null" : "\"%s\"", s->way < 0 ? "" : way_names[s->way]);
	buf_printf(m->out,
	           ", \"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"arithmetic\": %.6g, \"travel\": %.6g, "
	           "\"meeting\": %.6g, \"update\": %.6g, \"seconds\": %.6g, \"speedup\": %.6g, \"efficiency\": %.6g, "
	           "\"mcps\": %.6g}",
	           s->messages, s->bytes, s->arithmetic, s->travel, s->meeting, s->update, s->total, gain, gain / s->ranks,
	           s->mcps);
}

static void batch_report(Model *m, uint64_t batch, bool first)
{
	bool of_here = m->c->arithmetic <= 0 && m->c->updates <= 0;
	m->w.batch = batch;
	m->rates.alone =
		of_here && leaf_count(batch) == 1 ? rates_alone(m->cx, m->net, m->data, (uint32_t)m->threads, batch) : 0;
	Best b = best_find(m);
	bool pooled = batch == m->w.examples, comma = false;
	uint32_t leaves = leaf_count(batch);

	if (m->json)
		buf_printf(m->out,
		           "%s{\"batch\": %" PRIu64
		           ", \"pooled\": %s, \"leaves\": %u, \"best\": {\"ranks\": %u, \"seconds\": %.6g, "
		           "\"speedup\": %.6g}, \"closed\": %.6g, \"rows\": [\n",
		           first ? "" : ",\n", batch, pooled ? "true" : "false", leaves, b.best.ranks, b.best.total,
		           b.one.total / b.best.total, b.closed);
	else
		buf_printf(
			m->out,
			"\nbatches of %" PRIu64
			" example%s%s, %u lea%s; seconds of an epoch\n%5s %7s %5s %-9s %12s %10s %10s %10s %10s %9s %6s %10s\n",
			batch, batch == 1 ? "" : "s", pooled ? " (all)" : "", leaves, leaves < 2 ? "f: rank 0 trains alone" : "ves",
			"ranks", "leaves", "sums", "way", "arithmetic", "sums, s", "meeting", "update", "total", "speed-up",
			"eff. %", "MCPS");
	for (uint32_t i = 0; i < m->rank_count; i++) {
		if (!is_shown(m, &b, i))
			continue;
		Scaling s = scaling_epoch(m->c, &m->rates, &m->w, (uint32_t)m->rank[i]);
		buf_puts(m->out, m->json && comma ? ",\n" : "");
		comma = true;
		(m->json ? row_json : row_text)(m, &b, &s);
	}
	if (m->json)
		buf_puts(m->out, "]}");
	else
		buf_printf(m->out, "# best number of ranks: %u, %.3g times one; by calculus, if leaves could be cut: %.4g\n",
		           b.best.ranks, b.one.total / b.best.total, b.closed);
}

static void head_text(const Model *m)
{
	const Rates *r = &m->rates;

	buf_printf(m->out, "# %s: %" PRIu64 " weights; an epoch has %" PRIu64 " cases in %" PRIu64 " examples\n",
	           m->net->name, m->w.links, m->w.cases, m->w.examples);
	buf_printf(m->out, "# cluster %s: latency %g us, overhead %g us, bandwidth %g MB/s\n", m->c->name, m->c->latency,
	           m->c->overhead, m->c->bandwidth);
	buf_printf(m->out, "# a rank of %" PRIu64 " thread%s: leaves %.5g MCPS, joins %.5g M/s, update %.5g M/s%s%s\n",
	           m->threads, m->threads == 1 ? "" : "s", 1e-6 * (double)m->w.links / r->cases, 1e-6 / r->join,
	           1e-6 * (double)m->w.links / r->update, m->on ? "; what the file leaves open was measured here on " : "",
	           m->on ? m->on : "");
}

static void head_json(const Model *m)
{
	const Rates *r = &m->rates;

	buf_puts(m->out, "{\"network\": ");
	json_put(m->out, m->net->name);
	buf_printf(m->out,
	           ", \"weights\": %" PRIu64 ", \"floats\": %" PRIu64 ", \"cases\": %" PRIu64 ", \"examples\": %" PRIu64
	           ",\n\"cluster\": {\"name\": ",
	           m->w.links, m->w.floats, m->w.cases, m->w.examples);
	json_put(m->out, m->c->name);
	for (size_t i = 0; i < cluster_row_count; i++) {
		const Param *row = &cluster_rows[i];
		const void *at = (const char *)m->c + row->offset;
		buf_printf(m->out, ", \"%s\": %.10g", row->name,
		           row->real ? *(const double *)at : (double)*(const int64_t *)at);
	}
	buf_printf(m->out,
	           "},\n\"rank\": {\"threads\": %" PRIu64
	           ", \"arithmetic_mcps\": %.6g, \"joins\": %.6g, \"updates\": %.6g, \"measured_on\": ",
	           m->threads, 1e-6 * (double)m->w.links / r->cases, 1e-6 / r->join, 1e-6 * (double)m->w.links / r->update);
	if (m->on)
		json_put(m->out, m->on);
	else
		buf_puts(m->out, "null");
	buf_puts(m->out, "},\n\"batches\": [\n");
}

void cluster_tool(Ctx *cx, int argc, const char *const *argv, Buf *out)
{
	Model m = { .cx = cx, .out = out, .threads = 1, .cluster = "ethernet" };

	tool_args_read(cx, &words, argc, argv, &m);
	if (!m.operand[0])
		fail(cx, MP_BAD_INPUT, "name a topology file", "model of what network?");
	m.c = cluster_open(cx, m.cluster);
	m.net = net_parse(cx, src_open(cx, &cx->keep, m.operand[0]));
	take_ranks(&m);
	take_rates(&m);
	take_batches(&m);
	(m.json ? head_json : head_text)(&m);
	for (uint32_t i = 0; i < m.batch_count; i++)
		batch_report(&m, m.batches[i], i == 0);
	buf_puts(out, m.json ? "\n]}\n" : "");
}
