/* SPDX-License-Identifier: MIT */
/* microprop gf11 disks. In: a network, numbers of processors. Out: what training asks of the disks and what they
 * give (section 10.1): when they are the limit, and how long they take to fill the memories.
 *
 * An epoch is simulated twice: loaded by the host in no time, and with every case coming from the disks while
 * others are trained on, as if the data were far more than the memories hold. If it is, the first is the second
 * without what the disks take. */
#include <inttypes.h>
#include <math.h>

#include "gf11_study.h"

typedef struct DiskRow {
	uint32_t procs;
	Epoch loaded, streamed;        /* by the host; from disks */
	const char *why;               /* NULL, or why there is no figure */
	double needed, given, reached; /* MB/s: that training would take; that disks can give; that they gave */
	double weights_per_word;       /* that a network needs, so that disks are not the limit */
	bool disks_limit;
} DiskRow;

typedef struct Question {
	Call *c;
	const Plan *plan;
	uint64_t cases;
	uint64_t cycles;
} Question;

/* ---- one number of processors ---- */

static uint32_t steps_of(const Machine *m, uint32_t procs)
{
	uint32_t disks = machine_disks(m) < procs ? machine_disks(m) : procs;
	return (procs + disks - 1) / disks;
}

static double cycles_a_word(const Machine *m) { return 4e3 / (m->disk_rate * m->clock); }

static double rounds_of(uint64_t cases, uint32_t procs) { return ceil((double)cases / procs); }

/* Of more cases than the memories hold: the same parts, each of them there in no time. */
static Epoch without_disks(const Question *q, const EpochSpec *streamed)
{
	Epoch e = streamed->e;
	e.total -= e.receive + e.wait;
	e.receive = e.wait = 0;
	e.seconds = 1e-9 * streamed->m->clock * (double)e.total;
	e.mcps = mcps_of(streamed->plan, streamed->m, q->cases, (double)e.total);
	return e;
}

/* Cycles for each weight and case, as trained; a word for every processor takes so many cycles of the disks. */
static double weights_needed(const Question *q, const Epoch *e, uint32_t procs)
{
	double each = (double)e->total / (rounds_of(q->cases, procs) * (double)q->plan->W);
	return steps_of(q->c->m, procs) * cycles_a_word(q->c->m) / each;
}

static DiskRow row_make(Question *q, uint32_t procs)
{
	EpochSpec s[2] = { epoch_spec(q->c, q->plan, q->cases), epoch_spec(q->c, q->plan, q->cases) };
	s[0].o.procs = s[1].o.procs = procs;
	s[1].o.disks = DISKS_ON;
	s[1].o.data = INT64_MAX;
	epochs_apart(q->c->cx, s, 2);
	DiskRow r = { .procs = procs, .loaded = s[0].e, .streamed = s[1].e, .why = s[1].why };
	if (s[0].why && !s[1].why)
		r.loaded = without_disks(q, &s[1]);
	if (r.why)
		return r;
	double bytes = (double)r.streamed.bytes;
	r.needed = 1e-6 * bytes / r.loaded.seconds;
	r.reached = 1e-6 * bytes / r.streamed.seconds;
	r.given = 4e3 * procs / (steps_of(q->c->m, procs) * cycles_a_word(q->c->m) * q->c->m->clock);
	r.weights_per_word = weights_needed(q, &r.loaded, procs);
	r.disks_limit = 100 * r.streamed.wait > r.streamed.total;
	q->cycles += r.loaded.total + r.streamed.total;
	return r;
}

/* The smallest number of processors at which the disks are the limit; 0: at none, or not known, and why. */
typedef struct Limit {
	uint32_t procs;
	const char *why;
} Limit;

static Limit limit_from(Question *q)
{
	uint32_t low = 0, high = (uint32_t)q->c->m->processors;
	DiskRow all = row_make(q, high);
	if (!all.disks_limit)
		return (Limit){ 0, all.why };
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (row_make(q, middle).disks_limit)
			high = middle;
		else
			low = middle;
	}
	return (Limit){ high, NULL };
}

/* ---- filling memories ---- */

/* Seconds that all of the data, or all of DRAM, takes to all processors. */
typedef struct Fill {
	Question *q;
	Ctx *cx;
	bool dram;
	double seconds;
	uint64_t bytes;
} Fill;

static void fill_body(void *arg)
{
	Fill *f = arg;
	const Question *q = f->q;
	EpochSpec s = epoch_spec(q->c, q->plan, q->cases);
	s.o.disks = DISKS_ON;
	s.o.cache = NULL;
	Bp *b = bp_new(f->cx, s.plan, s.opt, s.m, &s.o, s.cases);
	disk_compile(b);
	if (f->dram)
		disk_order_rows(b, (uint64_t)s.m->dram / b->disk->chain.side * b->disk->chain.side);
	else
		disk_order(b, NULL, NULL, s.cases);
	disk_take(b);
	f->seconds = 1e-9 * s.m->clock * (double)bp_cycles(b);
	f->bytes = b->disk->account.bytes;
}

static Fill fill(Question *q, bool dram)
{
	Fill f = { .q = q, .cx = q->c->cx, .dram = dram };
	const char *why = attempt(f.cx, fill_body, &f);
	if (why)
		f.seconds = NAN;
	return f;
}

static void fill_text(const Fill *f, const char *of, Buf *out)
{
	if (isfinite(f->seconds))
		buf_printf(out, "%.4g s for %s, %.4g MB", f->seconds, of, 1e-6 * (double)f->bytes);
	else
		buf_printf(out, "no room for %s", of);
}

static void fill_json(const Fill *f, const char *name, Buf *out)
{
	if (isfinite(f->seconds))
		buf_printf(out, "\"%s_seconds\": %.6g, \"%s_bytes\": %" PRIu64 ", ", name, f->seconds, name, f->bytes);
	else
		buf_printf(out, "\"%s_seconds\": null, \"%s_bytes\": null, ", name, name);
}

/* ---- the report ---- */

static double percent(uint64_t part, uint64_t whole) { return 100 * share_of(part, whole); }

static void row_text(const Call *c, const DiskRow *r)
{
	if (r->why) {
		buf_printf(c->out, "%10u  %s\n", r->procs, r->why);
		return;
	}
	buf_printf(c->out, "%10u %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %9.1f %9.1f %9.1f  %s\n", r->procs, r->needed,
	           r->given, r->reached, percent(r->streamed.carried, r->streamed.bytes),
	           percent(r->streamed.receive, r->streamed.total), percent(r->streamed.wait, r->streamed.total),
	           r->streamed.mcps, r->loaded.mcps, r->weights_per_word, r->disks_limit ? "disks" : "processors");
}

static void row_json(const Call *c, const DiskRow *r, bool first)
{
	buf_printf(c->out, "%s{\"procs\": %u, ", first ? "" : ", ", r->procs);
	if (r->why) {
		buf_puts(c->out, "\"refused\": ");
		json_put(c->out, r->why);
		buf_puts(c->out, "}");
		return;
	}
	buf_printf(c->out,
	           "\"needed_mbs\": %.6g, \"given_mbs\": %.6g, \"reached_mbs\": %.6g, \"bytes\": %" PRIu64
	           ", \"cycles\": %" PRIu64 ", \"receive_cycles\": %" PRIu64 ", \"wait_cycles\": %" PRIu64
	           ", \"carried_share\": %.6g, \"disk_wait_share\": %.6g, \"mcps\": %.6g, \"mcps_loaded\": %.6g, "
	           "\"weights_per_word\": %.6g, \"limit\": \"%s\"}",
	           r->needed, r->given, r->reached, r->streamed.bytes, r->streamed.total, r->streamed.receive,
	           r->streamed.wait, share_of(r->streamed.carried, r->streamed.bytes),
	           share_of(r->streamed.wait, r->streamed.total), r->streamed.mcps, r->loaded.mcps, r->weights_per_word,
	           r->disks_limit ? "disks" : "processors");
}

static void end_text(const Question *q, Limit limit, const Fill *data, const Fill *dram)
{
	Buf *out = q->c->out;
	const Net *net = q->plan->net;
	double words = (double)net->inputs + net->outputs + 1;
	buf_printf(out, "\nweights a word   %s has %.1f weights for each word of a case\n", net->name,
	           (double)q->plan->W / words);
	if (limit.procs)
		buf_printf(out, "limit            the disks, from %u processors on\n", limit.procs);
	else if (limit.why)
		buf_printf(out, "limit            not known: %s\n", limit.why);
	else
		buf_puts(out, "limit            the processors, up to all of them\n");
	Buf cases = { .arena = &q->c->cx->scratch };
	buf_printf(&cases, "%" PRIu64 " cases", q->cases);
	buf_puts(out, "loading          ");
	fill_text(data, cases.s, out);
	buf_puts(out, "; ");
	fill_text(dram, "all of DRAM", out);
	buf_puts(out, "\n");
}

static void end_json(const Question *q, Limit limit, const Fill *data, const Fill *dram)
{
	Buf *out = q->c->out;
	const Net *net = q->plan->net;
	buf_printf(out, "], \"network_weights_per_word\": %.6g, ",
	           (double)q->plan->W / ((double)net->inputs + net->outputs + 1));
	if (limit.procs)
		buf_printf(out, "\"limit_procs\": %u, ", limit.procs);
	else
		buf_puts(out, "\"limit_procs\": null, ");
	fill_json(data, "load", out);
	fill_json(dram, "dram_load", out);
}

void run_disks(Call *c)
{
	Question q = { .c = c,
		           .plan = plan_open(c->cx, c->operands ? c->operand[0] : NULL),
		           .cases = c->cases ? c->cases : NETTALK_CASES };
	double *procs;
	uint32_t count = procs_read(c, &procs);
	if (!machine_disks(c->m))
		fail(c->cx, MP_BAD_INPUT, "use a machine file with disks", "%s has no disks", c->m->name);
	double peak = machine_disks(c->m) * c->m->disk_rate;
	if (c->json) {
		json_begin(c);
		buf_printf(c->out, "\"cases\": %" PRIu64 ", \"disks\": %u, \"peak_mbs\": %.6g, \"rows\": [", q.cases,
		           machine_disks(c->m), peak);
	} else {
		buf_printf(c->out, "%u disks of %.4g MB/s; shares in %%\n\n%10s %8s %8s %8s %8s %8s %8s %9s %9s %9s  limit\n",
		           machine_disks(c->m), c->m->disk_rate, "processors", "needed", "given", "reached", "carried", "alone",
		           "waiting", "MCPS", "by host", "weights");
	}
	for (uint32_t i = 0; i < count; i++) {
		DiskRow r = row_make(&q, (uint32_t)procs[i]);
		if (c->json)
			row_json(c, &r, i == 0);
		else
			row_text(c, &r);
	}
	Limit limit = limit_from(&q);
	Fill data = fill(&q, false), dram = fill(&q, true);
	(c->json ? end_json : end_text)(&q, limit, &data, &dram);
	report_end(c, q.cycles, 0);
}
