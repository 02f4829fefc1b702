/* SPDX-License-Identifier: MIT */
/* microprop gf11 disks. In: a network, numbers of processors. Out: the disk bandwidth that training needs and gets
 * (section 10.1), when the disks are the bottleneck, and how long they take to fill the memories.
 *
 * An epoch is simulated twice: preloaded by the host at no cost, and with every case streamed from the disks while
 * others are trained on, as if the data exceeded the memories. If it does, the first is the second without the disk
 * cycles. */
#include <inttypes.h>
#include <math.h>

#include "gf11_study.h"

typedef struct DiskRow {
	uint32_t procs;
	Epoch loaded, streamed;        /* by the host; from disks */
	const char *why;               /* NULL, or why the simulation failed */
	double needed, given, reached; /* MB/s: needed by training, offered by the disks, achieved */
	double weights_per_word;       /* from which on the disks are not the bottleneck */
	bool disks_limit;
} DiskRow;

typedef struct Question {
	CommandRun *c;
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

/* For more cases than the memories hold: the streamed epoch without disk cycles. */
static Epoch without_disks(const Question *q, const EpochSpec *streamed)
{
	Epoch e = streamed->e;
	e.total -= e.receive + e.wait;
	e.receive = e.wait = 0;
	e.seconds = 1e-9 * streamed->m->clock * (double)e.total;
	e.mcps = mcps_of(streamed->plan, streamed->m, q->cases, (double)e.total);
	return e;
}

static DiskRow row_make(Question *q, uint32_t procs)
{
	EpochSpec s[2] = { epoch_spec(q->c, q->plan, q->cases), epoch_spec(q->c, q->plan, q->cases) };
	s[0].o.procs = s[1].o.procs = procs;
	s[1].o.disks = DISKS_ON;
	s[1].o.data = STREAM_ALWAYS;
	epochs_isolated(q->c->cx, s, 2);
	DiskRow r = { .procs = procs, .loaded = s[0].e, .streamed = s[1].e, .why = s[1].why };
	if (s[0].why && !s[1].why)
		r.loaded = without_disks(q, &s[1]);
	if (r.why)
		return r;
	double bytes = (double)r.streamed.bytes;
	r.needed = 1e-6 * bytes / r.loaded.seconds;
	r.reached = 1e-6 * bytes / r.streamed.seconds;
	r.given = 4e3 * procs / (steps_of(q->c->m, procs) * cycles_a_word(q->c->m) * q->c->m->clock);
	/* Disk cycles of one word for every processor, divided by training cycles per weight and case. */
	double each = (double)r.loaded.total / (rounds_of(q->cases, procs) * (double)q->plan->W);
	r.weights_per_word = steps_of(q->c->m, procs) * cycles_a_word(q->c->m) / each;
	r.disks_limit = 100 * r.streamed.wait > r.streamed.total;
	q->cycles += r.loaded.total + r.streamed.total;
	return r;
}

/* The smallest number of processors at which the disks are the bottleneck; 0: none, or unknown, and why. */
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

/* Seconds to load all of the data, or all of DRAM, into all processors. */
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

static void fill_print(const CommandRun *c, const Fill *f, const char *name, const char *of)
{
	Buf seconds = { .arena = &c->cx->scratch }, bytes = seconds;
	bool fits = isfinite(f->seconds);
	buf_printf(&seconds, "%s_seconds", name);
	buf_printf(&bytes, "%s_bytes", name);
	jw_real(c->json, seconds.s, NULL, f->seconds);
	jw_real(c->json, bytes.s, "%.0f", fits ? (double)f->bytes : NAN);
	if (fits)
		buf_printf(c->text, "%.4g s for %s, %.4g MB", f->seconds, of, 1e-6 * (double)f->bytes);
	else
		buf_printf(c->text, "no room for %s", of);
}

/* ---- the report ---- */

static const Column columns[] = {
	{ "procs", "processors", .width = 10 },
	{ "needed_mbs", "needed", 8, .format = "%.1f" },
	{ "given_mbs", "given", 8, .format = "%.1f" },
	{ "reached_mbs", "reached", 8, .format = "%.1f" },
	{ .key = "bytes" },
	{ .key = "cycles" },
	{ .key = "receive_cycles" },
	{ .key = "wait_cycles" },
	{ "carried_share", "overlap", 8, "%.1f", .percent = true },
	{ NULL, "alone", 8, "%.1f", .percent = true },
	{ "disk_wait_share", "waiting", 8, "%.1f", .percent = true },
	{ "mcps", "MCPS", 9, .format = "%.1f" },
	{ "mcps_loaded", "by host", 9, .format = "%.1f" },
	{ "weights_per_word", "weights", 9, .format = "%.1f" },
	{ "limit", .title = "limit" },
};

static void end_print(const Question *q, Limit limit, const Fill *data, const Fill *dram)
{
	const CommandRun *c = q->c;
	const Net *net = q->plan->net;
	double each = (double)q->plan->W / ((double)net->inputs + net->outputs + 1);
	Buf cases = { .arena = &c->cx->scratch };
	jw_real(c->json, "network_weights_per_word", NULL, each);
	buf_printf(c->text, "\nweights per word %s has %.1f weights for each word of a case\n",
	           text_escaped(c->text->arena, net->name), each);
	jw_real(c->json, "limit_procs", "%.0f", limit.procs ? limit.procs : NAN);
	if (limit.procs)
		buf_printf(c->text, "limit            the disks, from %u processors on\n", limit.procs);
	else if (limit.why)
		buf_printf(c->text, "limit            not known: %s\n", limit.why);
	else
		buf_puts(c->text, "limit            the processors, up to all of them\n");
	buf_printf(&cases, "%" PRIu64 " cases", q->cases);
	buf_puts(c->text, "loading          ");
	fill_print(c, data, "load", cases.s);
	buf_puts(c->text, "; ");
	fill_print(c, dram, "dram_load", "all of DRAM");
	buf_puts(c->text, "\n");
}

void run_disks(CommandRun *c)
{
	Question q = { .c = c,
		           .plan = plan_open(c->cx, c->operands ? c->operand[0] : NULL),
		           .cases = c->cases ? c->cases : NETTALK_CASES };
	double *procs;
	uint32_t count = procs_read(c, &procs);
	if (!machine_disks(c->m))
		fail(c->cx, MP_BAD_INPUT, "use a machine file with disks", "%s has no disks", c->m->name);
	Table t = report_table(c, columns, COUNT(columns));
	buf_printf(c->text, "%u disks of %.4g MB/s; shares in %%\n\n", machine_disks(c->m), c->m->disk_rate);
	jw_count(c->json, "cases", q.cases);
	jw_count(c->json, "disks", machine_disks(c->m));
	jw_real(c->json, "peak_mbs", NULL, machine_disks(c->m) * c->m->disk_rate);
	table_start(&t, "rows");
	for (uint32_t i = 0; i < count; i++) {
		DiskRow r = row_make(&q, (uint32_t)procs[i]);
		const Epoch *e = &r.streamed;
		table_row_failed(&t,
		                 (TableCell[]){ tc_count(r.procs), tc_real(r.needed), tc_real(r.given), tc_real(r.reached),
		                                tc_count(e->bytes), tc_count(e->total), tc_count(e->receive), tc_count(e->wait),
		                                tc_real(share_of(e->carried, e->bytes)),
		                                tc_real(share_of(e->receive, e->total)), tc_real(share_of(e->wait, e->total)),
		                                tc_real(e->mcps), tc_real(r.loaded.mcps), tc_real(r.weights_per_word),
		                                tc_text(r.disks_limit ? "disks" : "processors") },
		                 r.why ? 1 : t.columns, "refused", r.why);
	}
	table_end(&t);
	Limit limit = limit_from(&q);
	Fill data = fill(&q, false), dram = fill(&q, true);
	end_print(&q, limit, &data, &dram);
	report_end(c, q.cycles, 0);
}
