/* SPDX-License-Identifier: MIT */
/* The debugger: a routine a cycle at a time.  In: commands, one a line.  Out: text.
 *
 * It shows one processor, which `proc` changes; all of them run.  A cycle first writes back the results that are due,
 * then issues its word: what a command shows is the state after that. */
#include <inttypes.h>
#include <string.h>

#include "gf11_bench.h"

enum { MOST_LINES = 60 }; /* a step over more cycles than these shows the last one alone */

typedef struct Written { /* a register or condition: the operation that wrote it, and when */
	const Micro *micro;
	uint64_t at;
} Written;
struct Debug {
	Workbench *b;
	uint32_t proc;
	Written *reg; /* [registers + conditions] */
};

Debug *debug_new(Workbench *b)
{
	Debug *d = NEW(&b->cx->keep, 1, Debug);
	*d = (Debug){ .b = b, .reg = NEW(&b->cx->keep, (size_t)(b->m->registers + b->m->conditions), Written) };
	return d;
}

void debug_restart(Debug *d)
{
	bench_start(d->b);
	memset(d->reg, 0, (size_t)(d->b->m->registers + d->b->m->conditions) * sizeof *d->reg);
}

static bool ended(const Debug *d) { return bench_ended(d->b); }

/* ---- what a cycle does ---- */

/* The operation as recorded, or as the machine has it. */
static void op_print(const Debug *d, const Micro *u, Buf *out)
{
	const Code *code = d->b->r->code;
	if (code && u->rec < code->recs)
		rec_print(code, u->rec, out);
	else
		micro_print(u, out);
}

static uint32_t absolute(const Debug *d, Addr a) { return (a.base ? d->b->k->base[a.base] : 0) + a.off; }

static void value_print(uint32_t word, Buf *out) { number_put(out, (Cell){ .u = word }.f); }

/* r3 = 1.5, of the shown processor. */
static void result_print(const Debug *d, const Micro *u, Buf *out)
{
	unsigned uses = forms[ops[u->op].form].uses;
	const MemAccess *access = forms[ops[u->op].form].access;
	const MemAccess *write = access[1].is && access[1].write ? &access[1] : &access[0];
	if (uses & WRITES_CC)
		buf_printf(out, "c%u = %u", u->cc, bench_word(d->b, PLACE_COND, u->cc, d->proc));
	else if (uses & USES_DST) {
		buf_printf(out, "r%u = ", u->dst);
		value_print(bench_word(d->b, IN_REG, u->dst, d->proc), out);
	} else if (write->indexed)
		buf_puts(out, "s[...] stored");
	else {
		uint32_t at = absolute(d, write->dram ? u->far : u->mem);
		buf_printf(out, "%c[%u] = ", write->dram ? 'd' : 's', at);
		value_print(bench_word(d->b, write->dram ? IN_DRAM : IN_SRAM, at, d->proc), out);
	}
}

/* Pads with blanks up to a column of this line. */
static void column(Buf *out, size_t line, size_t at)
{
	do
		buf_puts(out, " ");
	while (out->len - line < at);
}

static void note_write(Debug *d, const Micro *u, uint64_t now)
{
	unsigned uses = forms[ops[u->op].form].uses;
	if (uses & WRITES_CC)
		d->reg[(uint32_t)d->b->m->registers + u->cc] = (Written){ u, now };
	else if (uses & USES_DST)
		d->reg[u->dst] = (Written){ u, now };
}

static void issues_print(const Debug *d, uint64_t now, Buf *out)
{
	for (uint32_t unit = 0; unit < UNITS && now < d->b->r->lines; unit++) {
		const Micro *u = &d->b->r->line[now].slot[unit];
		if (u->op == GOP_NONE)
			continue;
		size_t line = out->len;
		buf_printf(out, "  %-6s ", unit_names[unit]);
		micro_print(u, out);
		buf_printf(out, " @%lld", (long long)now + (long long)op_latency(d->b->m, u->op));
		if (d->b->r->code && u->rec < d->b->r->code->recs) {
			column(out, line, 44);
			op_print(d, u, out);
		}
		buf_puts(out, "\n");
	}
}

/* One cycle; out NULL: silent.  False: the routine has ended. */
static bool cycle(Debug *d, Buf *out)
{
	uint64_t now = bench_now(d->b);
	const Micro *due[UNITS * 16];
	uint32_t dues = 0, flights = 0;
	const InFlight *f = d->b->t ? traced_flights(d->b->t, &flights) : NULL;
	for (uint32_t i = 0; i < flights; i++)
		if (f[i].done == now && dues < COUNT(due))
			due[dues++] = f[i].micro;
	if (!bench_step(d->b))
		return false;
	for (uint32_t i = 0; i < dues; i++)
		note_write(d, due[i], now);
	if (!out)
		return true;
	buf_printf(out, "cycle %" PRIu64 "\n", now);
	for (uint32_t i = 0; i < dues; i++) {
		size_t line = out->len;
		buf_puts(out, "  result ");
		result_print(d, due[i], out);
		column(out, line, 44);
		op_print(d, due[i], out);
		buf_puts(out, "\n");
	}
	issues_print(d, now, out);
	if (ended(d))
		buf_puts(out, "  the routine has ended\n");
	return true;
}

static bool word_is_empty(const Debug *d, uint64_t at)
{
	for (uint32_t unit = 0; unit < UNITS; unit++)
		if (d->b->r->line[at].slot[unit].op != GOP_NONE)
			return false;
	return true;
}

static void say_ended(Buf *out) { buf_puts(out, "the routine has ended; restart begins again\n"); }

/* ---- commands ---- */

static uint64_t count_read(Scan *s, uint64_t absent)
{
	uint64_t count;
	return scan_number(s, &count) ? count : absent;
}

static void cmd_step(Debug *d, Scan *s, Buf *out)
{
	uint64_t count = count_read(s, 1);
	scan_end(s, "write step, or step and a number of cycles");
	if (ended(d))
		say_ended(out);
	for (uint64_t i = 0; i < count && !ended(d); i++)
		cycle(d, count <= MOST_LINES || i + 1 == count ? out : NULL);
}

static void cmd_word(Debug *d, Scan *s, Buf *out)
{
	uint64_t count = count_read(s, 1);
	scan_end(s, "write word, or word and how many words");
	if (ended(d))
		say_ended(out);
	for (uint64_t i = 0; i < count && !ended(d); i++) {
		while (bench_now(d->b) < d->b->r->lines && word_is_empty(d, bench_now(d->b)))
			cycle(d, NULL);
		bool last = bench_now(d->b) >= d->b->r->lines;
		while (last && !ended(d))
			cycle(d, NULL);
		if (last)
			say_ended(out);
		else
			cycle(d, out);
	}
}

static void cmd_continue(Debug *d, Scan *s, Buf *out)
{
	scan_end(s, "write continue alone");
	while (!ended(d))
		cycle(d, NULL);
	buf_printf(out, "the routine has ended after %" PRIu64 " cycles\n", bench_now(d->b) - 1);
}

/* The operation writes a word of the place, on the shown processor. */
static bool writes_place(const Debug *d, const Micro *u, const Place *p, uint32_t first)
{
	unsigned uses = forms[ops[u->op].form].uses;
	uint32_t at = UINT32_MAX;
	int memory = IN_SRAM;
	if (uses & WRITES_CC)
		memory = PLACE_COND, at = u->cc;
	else if (uses & USES_DST)
		memory = IN_REG, at = u->dst;
	else if (u->op == GOP_FLUSH)
		memory = IN_DRAM, at = absolute(d, u->far);
	else if (!forms[ops[u->op].form].access[0].indexed)
		at = absolute(d, u->mem);
	return memory == p->memory && at >= first && at - first < p->count;
}

/* The operation makes the value that the text of operations names so. */
static bool makes_value(const Debug *d, const Micro *u, const char *name)
{
	const Code *code = d->b->r->code;
	unsigned uses = u->op < GOPS ? forms[ops[u->op].form].uses : 0;
	if (!code || u->rec >= code->recs || !(uses & (USES_DST | WRITES_CC)))
		return false;
	const char *const *names = uses & WRITES_CC ? code->cond_name : code->reg_name;
	return names && strcmp(names[code->rec[u->rec].dst], name) == 0;
}

static bool is_value(const Debug *d, const char *name)
{
	for (uint32_t t = 0; t < d->b->r->lines; t++)
		for (uint32_t unit = 0; unit < UNITS; unit++)
			if (makes_value(d, &d->b->r->line[t].slot[unit], name))
				return true;
	return false;
}

/* The register or condition that holds the value now; NULL: none does. */
static const Written *value_find(const Debug *d, const char *name)
{
	const Written *found = NULL;
	for (uint32_t i = 0; i < d->b->m->registers + d->b->m->conditions; i++) {
		const Written *w = &d->reg[i];
		if (w->micro && makes_value(d, w->micro, name) && (!found || w->at > found->at))
			found = w;
	}
	return found;
}

static Place read_place(const Debug *d, Scan *s)
{
	/* r3 and c0 are short for reg:3 and cond:0 */
	const char *rest = s->src->text + s->at;
	bool is_short = (rest[0] == 'r' || rest[0] == 'c') && rest[1] >= '0' && rest[1] <= '9';
	Buf spec = { .arena = &d->b->cx->scratch };
	if (is_short)
		buf_printf(&spec, "%s:%s", rest[0] == 'r' ? "reg" : "cond", rest + 1);
	else
		buf_puts(&spec, rest);
	Place p = place_read(d->b->cx, d->b->m, d->b->w->p->procs, "place", spec.s);
	if (!strchr(spec.s, '@')) {
		p.proc = d->proc;
		p.procs = 1;
	}
	return p;
}

/* A result that arrives in the next cycle: of the value, or else in the place. */
static bool due_writes(const Debug *d, const Place *p, uint32_t first, const char *value)
{
	uint32_t flights = 0;
	const InFlight *f = d->b->t ? traced_flights(d->b->t, &flights) : NULL;
	for (uint32_t i = 0; i < flights; i++)
		if (f[i].done == bench_now(d->b) &&
		    (value ? makes_value(d, f[i].micro, value) : writes_place(d, f[i].micro, p, first)))
			return true;
	return false;
}

static void cmd_until(Debug *d, Scan *s, Buf *out)
{
	uint64_t line;
	static const char form[] = "write until and a line, such as until 30, or what is written, such as until r3 or "
							   "until sram:200";
	if (scan_peek(s) < 0)
		fail_at(d->b->cx, scan_here(s), form, "until when?");
	if (ended(d)) {
		say_ended(out);
		return;
	}
	if (scan_number(s, &line)) {
		scan_end(s, form);
		if (line < bench_now(d->b))
			fail(d->b->cx, MP_BAD_INPUT, "restart goes back to the beginning", "cycle %" PRIu64 " is over", line);
		while (bench_now(d->b) < line && !ended(d))
			cycle(d, NULL);
		if (ended(d))
			buf_puts(out, "the routine has ended before\n");
		else
			buf_printf(out, "line %" PRIu64 " is next\n", bench_now(d->b));
		return;
	}
	const char *name = s->src->text + s->at;
	bool value = is_value(d, name);
	Place p = { 0 };
	if (!value)
		p = read_place(d, s);
	uint32_t first = value ? 0 : bench_address(d->b, &p);
	while (!ended(d) && !due_writes(d, &p, first, value ? name : NULL))
		cycle(d, NULL);
	if (ended(d))
		buf_puts(out, "the routine has ended: nothing more was written there\n");
	else
		cycle(d, out);
}

/* Where the columns of the units begin, in a listing of lines first to last - 1; the last: where they end. */
static void list_columns(const Debug *d, uint64_t first, uint64_t last, size_t at[UNITS + 1])
{
	at[0] = 8;
	for (uint32_t unit = 0; unit < UNITS; unit++) {
		size_t wide = strlen(unit_names[unit]);
		for (uint64_t t = first; t < last; t++) {
			const Micro *u = &d->b->r->line[t].slot[unit];
			Buf text = { .arena = &d->b->cx->scratch };
			if (u->op != GOP_NONE)
				micro_print(u, &text);
			wide = text.len > wide ? text.len : wide;
		}
		at[unit + 1] = at[unit] + wide + 3;
	}
}

static void list_line(const Debug *d, uint64_t t, const size_t *at, Buf *out)
{
	size_t line = out->len;
	buf_printf(out, "%s%5" PRIu64, t == bench_now(d->b) ? "=>" : "  ", t);
	for (uint32_t unit = 0; unit < UNITS; unit++) {
		const Micro *u = &d->b->r->line[t].slot[unit];
		column(out, line, at[unit]);
		buf_puts(out, "| ");
		if (u->op != GOP_NONE)
			micro_print(u, out);
	}
	buf_puts(out, "\n");
}

static void cmd_list(Debug *d, Scan *s, Buf *out)
{
	size_t at[UNITS + 1];
	uint64_t now = bench_now(d->b), lines = d->b->r->lines, first = count_read(s, now > 4 ? now - 4 : 0);
	scan_blanks(s);
	uint64_t count = count_read(s, 16);
	scan_end(s, "write list, list FROM or list FROM COUNT");
	if (first >= lines) {
		buf_printf(out, "the routine has %" PRIu64 " lines\n", lines);
		return;
	}
	uint64_t last = count < lines - first ? first + count : lines;
	list_columns(d, first, last, at);
	size_t head = out->len;
	for (uint32_t unit = 0; unit < UNITS; unit++) {
		column(out, head, at[unit]);
		buf_printf(out, "| %s", unit_names[unit]);
	}
	buf_puts(out, "\n");
	for (uint64_t t = first; t < last; t++) {
		uint64_t gap = 0;
		while (t + gap < lines && word_is_empty(d, t + gap))
			gap++;
		if (gap > 2) {
			buf_printf(out, "%s    ... %" PRIu64 " empty\n", now >= t && now - t < gap ? "=>" : "  ", gap);
			t += gap - 1;
			continue;
		}
		list_line(d, t, at, out);
	}
}

static void written_print(const Debug *d, uint32_t i, Buf *out)
{
	uint32_t registers = (uint32_t)d->b->m->registers;
	const Written *w = &d->reg[i];
	size_t line = out->len;
	if (i < registers) {
		uint32_t word = bench_word(d->b, IN_REG, i, d->proc);
		buf_printf(out, "  r%u", i);
		column(out, line, 7);
		value_print(word, out);
		column(out, line, 22);
		buf_printf(out, "0x%08x  since cycle %-5" PRIu64 " ", word, w->at);
	} else {
		buf_printf(out, "  c%u", i - registers);
		column(out, line, 7);
		buf_printf(out, "%u", bench_word(d->b, PLACE_COND, i - registers, d->proc));
		column(out, line, 34);
		buf_printf(out, "since cycle %-5" PRIu64 " ", w->at);
	}
	op_print(d, w->micro, out);
	buf_puts(out, "\n");
}

static void cmd_registers(Debug *d, Scan *s, Buf *out)
{
	uint32_t shown = 0;
	scan_end(s, "write registers alone; print reg:0..7 shows those that you name");
	for (uint32_t i = 0; i < d->b->m->registers + d->b->m->conditions; i++)
		if (d->reg[i].micro) {
			written_print(d, i, out);
			shown++;
		}
	if (!shown)
		buf_puts(out, "no register is written yet\n");
}

static void cmd_flight(Debug *d, Scan *s, Buf *out)
{
	uint32_t flights = 0;
	const InFlight *f = d->b->t ? traced_flights(d->b->t, &flights) : NULL;
	scan_end(s, "write flight alone");
	if (!flights)
		buf_puts(out, "nothing is in flight\n");
	for (uint32_t i = 0; i < flights; i++) {
		const Micro *u = f[i].micro;
		uint64_t latency = (uint64_t)op_latency(d->b->m, u->op);
		size_t line = out->len;
		buf_printf(out, "  %-6s issued %-5" PRIu64 " result in %-5" PRIu64 " ", unit_names[ops[u->op].unit],
		           f[i].done - latency, f[i].done);
		op_print(d, u, out);
		column(out, line, 60);
		if (forms[ops[u->op].form].uses & WRITES_CC)
			buf_printf(out, "%u\n", traced_result(d->b->t, &f[i], d->proc));
		else {
			value_print(traced_result(d->b->t, &f[i], d->proc), out);
			buf_puts(out, "\n");
		}
	}
}

static void cmd_print(Debug *d, Scan *s, Buf *out)
{
	Buf json = { .arena = &d->b->cx->scratch };
	JsonWriter writer = { .out = &json };
	if (scan_peek(s) < 0)
		fail_at(d->b->cx, scan_here(s),
		        "write print and a place, such as print sram:200..207, print r3 or print cond:0@1", "print what?");
	const char *name = s->src->text + s->at;
	if (is_value(d, name)) {
		const Written *w = value_find(d, name);
		if (w)
			written_print(d, (uint32_t)(w - d->reg), out);
		else
			buf_printf(out, "no register holds %s now\n", name);
		return;
	}
	Place p = read_place(d, s);
	bench_show(d->b, &p, out, &writer);
}

static void cmd_set(Debug *d, Scan *s, Buf *out)
{
	Assign a = assign_read(d->b->cx, d->b->m, d->b->w->p->procs, "set", s->src->text + s->at);
	bench_assign(d->b, &a);
	buf_printf(out, a.place.procs == 1 ? "set on processor %u\n" : "set on %u processors\n",
	           a.place.procs == 1 ? a.place.proc : a.place.procs);
}

static void cmd_proc(Debug *d, Scan *s, Buf *out)
{
	if (scan_peek(s) >= 0) {
		d->proc = scan_index(s, "processor", d->b->w->p->procs, "write proc and the number of a processor");
		scan_end(s, "write proc and the number of a processor");
	}
	buf_printf(out, "processor %u of %u is shown\n", d->proc, d->b->w->p->procs);
}

static void cmd_bases(Debug *d, Scan *s, Buf *out)
{
	scan_end(s, "write bases alone");
	for (uint32_t i = 0; i < d->b->m->relocations; i++)
		if (!i || d->b->k->base[i])
			buf_printf(out, "  b%u = %u\n", i, d->b->k->base[i]);
}

static void path_print(const Switch *sw, const Path *p, Buf *out)
{
	buf_printf(out, "port %u -> port %u", p->from, p->to);
	if (!sw->m->ring_only)
		buf_printf(out, ", crossbars %u, %u, %u", p->box[0], p->box[1], p->box[2]);
}

/* Every stored configuration: its routes, and those of the shown processor. */
static void cmd_switch(Debug *d, Scan *s, Buf *out)
{
	const Processors *p = d->b->w->p;
	const Switch *sw = p->sw;
	scan_end(s, "write switch alone");
	if (!sw->stored)
		buf_puts(out, "the routine sends nothing through the switch\n");
	for (uint32_t k = 0; k < sw->stored; k++) {
		uint32_t routes = 0, from = NO_ROUTE;
		for (uint32_t port = 0; port < sw->ports; port++) {
			routes += sw->to[k][port] != NO_ROUTE;
			from = sw->to[k][port] == p->port[d->proc] ? port : from;
		}
		buf_printf(out, "configuration k%u: %u routes\n", k, routes);
		Path path = switch_path(sw, &sw->setting[k], p->port[d->proc]);
		buf_printf(out, "  processor %u sends     ", d->proc);
		if (path.to == NO_ROUTE)
			buf_puts(out, "nothing");
		else
			path_print(sw, &path, out);
		buf_printf(out, "\n  processor %u receives  ", d->proc);
		path = from == NO_ROUTE ? path : switch_path(sw, &sw->setting[k], from);
		if (from == NO_ROUTE)
			buf_puts(out, "0: no port sends to it");
		else
			path_print(sw, &path, out);
		buf_puts(out, "\n");
	}
}

static void cmd_restart(Debug *d, Scan *s, Buf *out)
{
	scan_end(s, "write restart alone");
	debug_restart(d);
	buf_puts(out, "at cycle 0, memory as at first\n");
}

static void cmd_help(Debug *d, Scan *s, Buf *out);

static const struct {
	const char *name, *operands, *about;
	void (*run)(Debug *d, Scan *s, Buf *out);
} debug_commands[] = {
	{ "step", "[N]", "N cycles, or one: results that arrive, operations that are issued", cmd_step },
	{ "word", "[N]", "to the next word that issues something, or the N-th", cmd_word },
	{ "until", "LINE|PLACE", "to a line, or until a register (r3, c0), memory (sram:200) or a value (sum) is written",
	  cmd_until },
	{ "continue", "", "to the end", cmd_continue },
	{ "list", "[FROM [COUNT]]", "the microcode around the next cycle", cmd_list },
	{ "registers", "", "registers and conditions written so far, and the operation that wrote each", cmd_registers },
	{ "restart", "", "at cycle 0, memory as at first", cmd_restart },
	{ "flight", "", "operations in flight, with the results to come", cmd_flight },
	{ "print", "PLACE",
	  "words, or a value by its name: print sram:200..207, print r3, print dram:b1+0@0..3:hex, print sum", cmd_print },
	{ "set", "PLACE=VALUES", "set sram:100=1.5,2 or set reg:4@3=7i", cmd_set },
	{ "proc", "[N]", "the processor that is shown", cmd_proc },
	{ "bases", "", "relocation registers", cmd_bases },
	{ "switch", "", "configurations of the switch, and the routes of the processor", cmd_switch },
	{ "help", "", "this list", cmd_help },
	{ "quit", "", "leave", NULL },
};

static void cmd_help(Debug *d, Scan *s, Buf *out)
{
	(void)d, (void)s;
	for (size_t i = 0; i < COUNT(debug_commands); i++)
		buf_printf(out, "  %-9s %-14s %s\n", debug_commands[i].name, debug_commands[i].operands,
		           debug_commands[i].about);
	buf_puts(out, "A command may be cut short (s, w, u r3, c, l, r, f, p r3); an empty line repeats the last step.\n");
}

static int command_find(const Debug *d, Scan *s, size_t len)
{
	const char *word = s->src->text + s->at, *names[COUNT(debug_commands)];
	for (size_t i = 0; i < COUNT(debug_commands); i++) {
		names[i] = debug_commands[i].name;
		if (len && strncmp(names[i], word, len) == 0) /* the first in the list that begins so */
			return (int)i;
	}
	const char *shown = arena_copy(&d->b->cx->scratch, word, len < 40 ? len : 40);
	const char *near = nearest_name(shown, names, COUNT(names));
	fail(d->b->cx, MP_BAD_INPUT, "help lists the commands",
	     near ? "there is no command '%s'; did you mean '%s'?" : "there is no command '%s'", shown, near);
}

bool debug_command(Debug *d, const char *line, Buf *out)
{
	Scan s = scan_spec(d->b->cx, "debug", line);
	size_t len = 0;
	scan_blanks(&s);
	if (scan_peek(&s) < 0 || scan_peek(&s) == '#')
		return true;
	while (s.at + len < s.src->len && line[s.at + len] > ' ')
		len++;
	int i = command_find(d, &s, len);
	s.at += len;
	scan_blanks(&s);
	Src *src = NEW(&d->b->cx->scratch, 1, Src); /* without blanks at the end */
	*src = *s.src;
	while (src->len > s.at && (unsigned char)src->text[src->len - 1] <= ' ')
		src->len--;
	src->text = arena_copy(&d->b->cx->scratch, src->text, src->len);
	s.src = src;
	if (debug_commands[i].run)
		debug_commands[i].run(d, &s, out);
	return debug_commands[i].run;
}
