/* SPDX-License-Identifier: MIT */
/* Pipeline traces of a routine.  In: microwords.  Out: a Kanata log (for Konata) or a Chrome trace (for Perfetto).
 * Timing is static: every call looks the same, so nothing is executed.
 *
 * Kanata: one row per operation; stage Is is the issue cycle, Ex the cycles in the unit, Wr the last one, which writes
 * the result; it retires in the first cycle that can use the result.
 * Chrome: process `units` shows how long each start occupies its unit, process `in flight` each operation from issue to
 * result, on as many rows as are in flight at once. */
#include <string.h>

#include "gf11_code.h"

typedef struct TraceOp {
	const Micro *micro;
	uint32_t at, done;
	int unit;
} TraceOp;
typedef struct TraceOps {
	TraceOp *op;
	uint32_t count, end;
} TraceOps; /* end: cycle of the last result */

static TraceOps list_ops(Ctx *cx, const Machine *m, const Routine *r)
{
	TraceOps f = { 0 };
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			f.count += r->line[t].slot[unit].op < GOPS;
	f.op = NEW(&cx->scratch, f.count, TraceOp);
	uint32_t n = 0;
	for (uint32_t t = 0; t < r->lines; t++) {
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op >= GOPS)
				continue;
			uint32_t done = t + (uint32_t)op_latency(m, u->op);
			f.op[n++] = (TraceOp){ u, t, done, unit };
			if (done > f.end)
				f.end = done;
		}
	}
	return f;
}

static void write_all(Ctx *cx, const char *path, const Buf *b)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	file_write(f, b->s, b->len);
	file_commit(cx, f);
}

/* ---- Kanata ------------------------------------------------------------------------------------- */

enum { STAGE_ISSUE, STAGE_EXECUTE, STAGE_WRITE, STAGE_NONE, STAGE_EVENTS };
static const char *const pipeline_names[] = { "Is", "Ex", "Wr" };

/* Short operations skip stages. */
static bool has_stage(const TraceOp *f, int s)
{
	uint32_t latency = f->done - f->at;
	const uint32_t least[STAGE_EVENTS] = { [STAGE_EXECUTE] = 3, [STAGE_WRITE] = 2 };
	return latency >= least[s];
}

static int stage_before(const TraceOp *f, int s)
{
	do
		s--;
	while (!has_stage(f, s));
	return s;
}

static void kanata_event(const Routine *r, const TraceOp *f, uint32_t id, int s, uint32_t *retired, Buf *out)
{
	if (s == STAGE_ISSUE) {
		buf_printf(out, "I\t%u\t%u\t0\nL\t%u\t0\t%u %s: ", id, id, id, f->at, unit_names[f->unit]);
		micro_print(f->micro, out);
		buf_printf(out, "\nL\t%u\t1\tresult in cycle %u", id, f->done);
		if (f->micro->rec != NOT_RECORDED)
			buf_printf(out, ", recorded operation %u", f->micro->rec);
		else if (r->code)
			buf_puts(out, ", spill");
		buf_puts(out, "\n");
	} else
		buf_printf(out, "E\t%u\t0\t%s\n", id, pipeline_names[stage_before(f, s)]);
	if (s == STAGE_NONE)
		buf_printf(out, "R\t%u\t%u\t0\n", id, (*retired)++);
	else
		buf_printf(out, "S\t%u\t0\t%s\n", id, pipeline_names[s]);
}

/* Events of a cycle form a list; those of one operation are ordered, since no two of its stages begin in one cycle. */
static uint32_t *list_events(Ctx *cx, const TraceOps *f, uint32_t *next)
{
	uint32_t *first = NEW(&cx->scratch, (size_t)f->end + 1, uint32_t);
	for (uint32_t id = f->count; id-- > 0;) {
		/* first cycle of each stage; STAGE_NONE: the cycle after the last */
		const TraceOp *o = &f->op[id];
		const uint32_t start[STAGE_EVENTS] = { o->at, o->at + 1, o->done - 1, o->done };
		for (int s = STAGE_EVENTS; s-- > 0;) {
			if (!has_stage(o, s))
				continue;
			uint32_t event = id * STAGE_EVENTS + (uint32_t)s, cycle = start[s];
			next[event] = first[cycle];
			first[cycle] = event + 1; /* 0: none */
		}
	}
	return first;
}

void trace_kanata(Ctx *cx, const Machine *m, const Routine *r, const char *path)
{
	TraceOps f = list_ops(cx, m, r);
	uint32_t *next = NEW(&cx->scratch, (size_t)f.count * STAGE_EVENTS, uint32_t);
	const uint32_t *first = list_events(cx, &f, next);
	Buf out = { .arena = &cx->scratch };
	buf_puts(&out, "Kanata\t0004\nC=\t0\n");
	uint32_t now = 0, retired = 0;
	for (uint32_t t = 0; t <= f.end; t++) {
		if (first[t] && t > now)
			buf_printf(&out, "C\t%u\n", t - now);
		if (first[t])
			now = t;
		for (uint32_t event = first[t]; event; event = next[event - 1]) {
			uint32_t id = (event - 1) / STAGE_EVENTS;
			kanata_event(r, &f.op[id], id, (int)((event - 1) % STAGE_EVENTS), &retired, &out);
		}
	}
	write_all(cx, path, &out);
}

/* ---- Chrome ------------------------------------------------------------------------------------- */

enum { PID_UNITS = 1, PID_FLIGHT, ROWS_PER_UNIT = 10000 };

/* Microseconds of simulated time, to the picosecond; integers, so that the locale does not matter. */
static void put_time(const Machine *m, const char *name, uint64_t cycles, Buf *out)
{
	uint64_t ps = (uint64_t)((double)cycles * m->clock * 1000 + 0.5);
	buf_printf(out, "\"%s\":%llu.%06llu,", name, (unsigned long long)(ps / 1000000),
	           (unsigned long long)(ps % 1000000));
}

static void put_name(const char *what, int pid, int tid, const char *name, int row, Buf *out)
{
	buf_printf(out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s", what, pid, tid,
	           name);
	if (row)
		buf_printf(out, " %d", row);
	buf_puts(out, "\"}},\n");
}

static void put_op(const Machine *m, const TraceOp *f, int pid, int tid, uint64_t cycles, Arena *arena, Buf *out)
{
	Buf text = { .arena = arena };
	micro_print(f->micro, &text);
	buf_printf(out, "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,", ops[f->micro->op].name,
	           unit_names[f->unit], pid, tid);
	put_time(m, "ts", f->at, out);
	put_time(m, "dur", cycles, out);
	buf_printf(out, "\"args\":{\"cycle\":%u,\"result\":%u,", f->at, f->done);
	if (f->micro->rec != NOT_RECORDED)
		buf_printf(out, "\"recorded\":%u,", f->micro->rec);
	buf_puts(out, "\"text\":");
	json_put(out, text.s);
	buf_puts(out, "}},\n");
}

/* How long an operation occupies its unit: events of one row do not overlap in a valid routine. */
static int64_t busy_cycles(const Machine *m, const TraceOp *f)
{
	const int64_t interval[UNITS] = { m->alu_interval, 1, m->dram_interval, m->switch_interval };
	int form = ops[f->micro->op].form;
	return form == FORM_LOOKUP || form == FORM_PUT ? 2 : interval[f->unit];
}

/* The first row of the unit that is free at issue; announces new rows. */
static int op_row(const TraceOp *f, uint32_t *free_at, int rows, Buf *out)
{
	int row = 0;
	while (row < rows - 1 && free_at[row] > f->at)
		row++;
	int tid = f->unit * ROWS_PER_UNIT + row + 1;
	if (!free_at[row])
		put_name("thread_name", PID_FLIGHT, tid, unit_names[f->unit], row + 1, out);
	free_at[row] = f->done;
	return tid;
}

void trace_chrome(Ctx *cx, const Machine *m, const Routine *r, const char *path)
{
	TraceOps f = list_ops(cx, m, r);
	/* One operation per cycle: no unit has more in flight than its longest latency. */
	uint32_t most = 1;
	for (uint32_t i = 0; i < f.count; i++)
		if (f.op[i].done - f.op[i].at > most)
			most = f.op[i].done - f.op[i].at;
	int rows = (int)most;
	uint32_t *free_at = NEW(&cx->scratch, (size_t)rows * UNITS, uint32_t);
	Buf out = { .arena = &cx->scratch };
	buf_puts(&out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	put_name("process_name", PID_UNITS, 0, "units", 0, &out);
	put_name("process_name", PID_FLIGHT, 0, "in flight", 0, &out);
	for (int unit = 0; unit < UNITS; unit++)
		put_name("thread_name", PID_UNITS, unit + 1, unit_names[unit], 0, &out);
	for (uint32_t i = 0; i < f.count; i++) {
		const TraceOp *one = &f.op[i];
		put_op(m, one, PID_UNITS, one->unit + 1, (uint64_t)busy_cycles(m, one), &cx->scratch, &out);
		int tid = op_row(one, free_at + one->unit * rows, rows, &out);
		put_op(m, one, PID_FLIGHT, tid, one->done - one->at, &cx->scratch, &out);
	}
	buf_puts(&out, "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":1,\"tid\":0,\"args\":{\"labels\":");
	json_put(&out, r->name ? r->name : "routine");
	buf_puts(&out, "}}\n]}\n");
	write_all(cx, path, &out);
}
