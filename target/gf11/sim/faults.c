/* SPDX-License-Identifier: MIT */
/* Fault specs and the event log.  In: specs such as stuck:3:dram:100:7, or files of them.  Out: validated faults,
 * random event times, the log as JSON.
 * Must hold: a random number depends only on seed, fault and number of draws before it, so that a run with faults is
 * a function of program and seed for any number of threads and either execution mode. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "gf11_sim.h"

enum { STREAM_FAULT = 96, STREAM_RANDOM = 128 };

const char *const fault_names[FAULT_KINDS] = { "dead",     "stuck",    "flip", "alu", "port",
	                                           "misroute", "crossbar", "link", "disk" };
const char *const place_names[IN_PLACES] = { "reg", "sram", "dram" };

/* ---- syntax of specs ---- */

enum {
	FIELD_NONE,
	FIELD_PROC,
	FIELD_PLACE,
	FIELD_ADDR,
	FIELD_BIT,
	FIELD_VALUE,
	FIELD_RATE,
	FIELD_PLACES,
	FIELD_CHANCE,
	FIELD_PORT,
	FIELD_STAGE,
	FIELD_FROM,
	FIELD_CROSSBAR,
	FIELD_INTO,
	FIELD_DISK
};
typedef struct FaultSyntax {
	uint8_t field[5];
	const char *remedy;
} FaultSyntax;
static const FaultSyntax kinds[FAULT_KINDS] = {
	[FAULT_DEAD] = { { FIELD_PROC }, "write dead:PROC" },
	[FAULT_STUCK] = { { FIELD_PROC, FIELD_PLACE, FIELD_ADDR, FIELD_BIT, FIELD_VALUE },
	                  "write stuck:PROC:PLACE:ADDR:BIT, where PLACE is reg, sram or dram, and :0 or :1; default: "
	                  "drawn from the seed" },
	[FAULT_FLIP] = { { FIELD_RATE, FIELD_PLACES },
	                 "write flip:RATE, flips per bit and simulated second, 0 to 1, for registers "
	                 "alone 0 to 1000, and :reg, :sram or "
	                 ":dram for one memory" },
	[FAULT_ALU] = { { FIELD_PROC, FIELD_CHANCE }, "write alu:PROC:RATE, with the error probability per operation" },
	[FAULT_PORT] = { { FIELD_PORT }, "write port:PORT" },
	[FAULT_MISROUTE] = { { FIELD_PORT, FIELD_CHANCE },
	                     "write misroute:PORT:RATE, with the error probability per word" },
	[FAULT_CROSSBAR] = { { FIELD_STAGE, FIELD_CROSSBAR },
	                     "write crossbar:STAGE:N, where STAGE is input, middle or output" },
	[FAULT_LINK] = { { FIELD_FROM, FIELD_CROSSBAR, FIELD_INTO },
	                 "write link:STAGE:N:M, from crossbar N of stage input or middle" },
	[FAULT_DISK] = { { FIELD_DISK, FIELD_CHANCE }, "write disk:N:RATE, with the error probability per word" },
};
enum { ALL_PLACES = (1 << IN_PLACES) - 1 };
/* Per bit and second.  A memory that keeps words for seconds is useless at one flip per bit and second, and a
 * million words of 566 processors would flip 500 times per cycle; registers keep words for less than a millisecond. */
#define MAX_FLIP_RATE          1.0
#define MAX_REGISTER_FLIP_RATE 1000.0

static uint32_t place_words(const Machine *m, int place)
{
	const int64_t words[IN_PLACES] = { m->registers, m->sram, m->dram };
	return (uint32_t)words[place];
}

static int scan_place(Scan *s, const char *remedy)
{
	for (int i = 0; i < IN_PLACES; i++)
		if (scan_word(s, place_names[i]))
			return i;
	fail_at(s->cx, scan_here(s), remedy, "here the name of a memory is missing");
}

static int place_of(const Fault *f)
{
	int place = 0;
	while (!(f->places >> place & 1))
		place++;
	assert((size_t)place < COUNT(place_names));
	return place;
}

static uint32_t scan_disk(Scan *s, const Machine *m, const char *remedy)
{
	if (!m->disks)
		fail_at(s->cx, scan_here(s), "use a machine file with disks", "%s has no disks", m->name);
	return scan_index(s, "disk", (uint32_t)m->disks, remedy);
}

static void scan_field(Scan *s, const Machine *m, int field, const char *remedy, Fault *f)
{
	static const char *const word_of[IN_PLACES] = { "register", "SRAM word", "DRAM word" };
	uint32_t n = (uint32_t)m->crossbar;
	switch (field) {
	case FIELD_PROC: f->proc = scan_index(s, "processor", (uint32_t)m->processors, remedy); break;
	case FIELD_PORT: f->proc = scan_index(s, "port", (uint32_t)m->switch_ports, remedy); break;
	case FIELD_DISK: f->proc = scan_disk(s, m, remedy); break;
	case FIELD_PLACE:
	case FIELD_PLACES: f->places = 1u << scan_place(s, remedy); break;
	case FIELD_ADDR: f->addr = scan_index(s, word_of[place_of(f)], place_words(m, place_of(f)), remedy); break;
	case FIELD_BIT: f->bit = (uint8_t)scan_index(s, "bit", 32, remedy); break;
	case FIELD_VALUE: f->value = (uint8_t)scan_index(s, "value", 2, remedy); break;
	case FIELD_RATE: f->rate = scan_real(s, "rate", 0, MAX_REGISTER_FLIP_RATE, remedy); break;
	case FIELD_CHANCE: f->rate = scan_real(s, "rate", 0, 1, remedy); break;
	case FIELD_STAGE: f->stage = scan_stage(s, 3, remedy); break;
	case FIELD_FROM: f->stage = scan_stage(s, 2, remedy); break;
	case FIELD_CROSSBAR: f->n = scan_index(s, "crossbar", n, remedy); break;
	case FIELD_INTO: f->m = scan_index(s, "crossbar", n, remedy); break;
	}
}

static bool is_optional(int field) { return field == FIELD_VALUE || field == FIELD_PLACES; }

/* Fields after the name; value 2: draw from the seed. */
static Fault scan_fault(Scan *s, const Machine *m, int kind)
{
	const FaultSyntax *k = &kinds[kind];
	Fault f = { .kind = kind, .places = kind == FAULT_FLIP ? ALL_PLACES : 0, .value = 2 };
	Loc first = scan_here(s);
	if (m->ring_only && (kind == FAULT_CROSSBAR || kind == FAULT_LINK))
		fail_at(s->cx, scan_here(s), "write port:PORT", "%s is a ring: it has no crossbars and no links between them",
		        m->name);
	for (size_t i = 0; i < COUNT(k->field) && k->field[i]; i++) {
		if (scan_peek(s) < 0 && is_optional(k->field[i]))
			break;
		scan_colon(s, k->remedy);
		first = i ? first : scan_here(s);
		scan_field(s, m, k->field[i], k->remedy, &f);
	}
	scan_end(s, k->remedy);
	if (kind == FAULT_FLIP && f.rate > MAX_FLIP_RATE && f.places != 1u << IN_REG)
		fail_at(s->cx, first, k->remedy, "the rate %g is not between 0 and %g: no memory holds anything at more",
		        f.rate, MAX_FLIP_RATE);
	return f;
}

void faults_print(const Fault *f, Buf *out)
{
	const FaultSyntax *k = &kinds[f->kind];
	buf_puts(out, fault_names[f->kind]);
	for (size_t i = 0; i < COUNT(k->field) && k->field[i]; i++) {
		switch (k->field[i]) {
		case FIELD_PROC:
		case FIELD_PORT:
		case FIELD_DISK: buf_printf(out, ":%u", f->proc); break;
		case FIELD_PLACE: buf_printf(out, ":%s", place_names[place_of(f)]); break;
		case FIELD_PLACES: buf_printf(out, f->places == ALL_PLACES ? "" : ":%s", place_names[place_of(f)]); break;
		case FIELD_ADDR: buf_printf(out, ":%u", f->addr); break;
		case FIELD_BIT: buf_printf(out, ":%u", f->bit); break;
		case FIELD_VALUE: buf_printf(out, ":%u", f->value); break;
		case FIELD_RATE:
		case FIELD_CHANCE: buf_printf(out, ":%g", f->rate); break;
		case FIELD_STAGE:
		case FIELD_FROM: buf_printf(out, ":%s", stage_names[f->stage]); break;
		case FIELD_CROSSBAR: buf_printf(out, ":%u", f->n); break;
		case FIELD_INTO: buf_printf(out, ":%u", f->m); break;
		}
	}
}

/* ---- random numbers ---- */

uint64_t fault_draw(const Faults *f, uint32_t fault, int what, uint64_t n)
{
	return random_u64(f->seed, STREAM_FAULT + (uint32_t)what, (uint64_t)fault << 48 ^ n);
}

/* Uniform over (0, 1]. */
static double share(uint64_t random) { return (double)((random >> 11) + 1) * 0x1p-53; }

uint64_t fault_wait_words(const Faults *f, uint32_t fault, uint64_t n, double rate)
{
	if (rate >= 1)
		return 0;
	double each = rate < 1e-9 ? rate : -arith_log(1 - rate),
		   log = -arith_log(share(fault_draw(f, fault, DRAW_WAIT, n)));
	return log >= each * 0x1p62 ? (uint64_t)1 << 62 : (uint64_t)(log / each);
}

double fault_wait_cycles(const Faults *f, uint32_t fault, int what, uint64_t n, double rate)
{
	return rate > 0 ? -arith_log(share(fault_draw(f, fault, what, n))) / rate : INFINITY;
}

/* ---- the list ---- */

Faults *faults_new(Ctx *cx, const Machine *m, uint64_t seed)
{
	Faults *f = NEW(&cx->keep, 1, Faults);
	*f = (Faults){ .cx = cx, .m = m, .seed = seed };
	return f;
}

/* Allocates the whole log at once, since nothing may be allocated while cases run; pages are mapped on first use. */
static void allocate_log(Faults *f)
{
	if (f->fault)
		return;
	f->fault = NEW(&f->cx->keep, MAX_FAULTS, Fault);
	f->wait = NEW(&f->cx->keep, MAX_FAULTS, FaultWait);
	f->event = arena_alloc_raw(&f->cx->keep, MAX_EVENTS, sizeof *f->event);
	f->capacity = MAX_EVENTS;
}

static bool counts_words(int kind) { return kind == FAULT_ALU || kind == FAULT_MISROUTE || kind == FAULT_DISK; }

static void append(Faults *f, Fault one)
{
	allocate_log(f);
	uint32_t i = f->faults++;
	if (one.kind == FAULT_STUCK && one.value > 1)
		one.value = fault_draw(f, i, DRAW_VALUE, 0) & 1;
	f->fault[i] = one;
	f->wait[i] = (FaultWait){ .at = { -1, -1, -1 } }; /* flips: no wait drawn yet */
	if (counts_words(one.kind))
		f->wait[i].left = fault_wait_words(f, i, f->wait[i].drawn++, one.rate);
}

void faults_set(Faults *f, const Fault *fault, uint32_t count)
{
	assert(count <= MAX_FAULTS);
	f->faults = 0;
	f->events = 0;
	memset(f->happened, 0, sizeof f->happened);
	for (uint32_t i = 0; i < count; i++)
		append(f, fault[i]);
}

/* Kind whose name is here, before a colon or the end; -1: none. */
static int scan_kind(Scan *s)
{
	for (int k = 0; k < FAULT_KINDS; k++) {
		size_t len = strlen(fault_names[k]), left = s->src->len - s->at;
		const char *at = s->src->text + s->at;
		if (left < len || memcmp(at, fault_names[k], len) != 0 || (left > len && at[len] != ':'))
			continue;
		s->at += len;
		return k;
	}
	return -1;
}

static void add_one(Faults *f, Scan *s)
{
	Loc at = scan_here(s);
	int kind = scan_kind(s);
	if (kind < 0) {
		char name[32];
		size_t len = 0;
		for (size_t i = s->at; i < s->src->len && s->src->text[i] != ':' && len < sizeof name - 1; i++)
			name[len++] = s->src->text[i];
		name[len] = '\0';
		const char *near = nearest_name(name, fault_names, FAULT_KINDS);
		Buf right = { .arena = &s->cx->scratch };
		if (near)
			buf_printf(&right, "did you mean '%s'? ", near);
		buf_puts(&right, "there are dead, stuck, flip, alu, port, misroute, crossbar, link and disk");
		fail_at(s->cx, scan_here(s), right.s, "there is no fault '%s'", name);
	}
	if (f->faults == MAX_FAULTS)
		fail_at(s->cx, at, "leave some out", "there can be at most %d faults", MAX_FAULTS);
	append(f, scan_fault(s, f->m, kind));
}

/* ---- files ---- */

static size_t item_end(const Src *src, size_t at, const char *ends)
{
	while (at < src->len && !strchr(ends, src->text[at]))
		at++;
	return at;
}

static void add_file(Faults *f, const char *path)
{
	const Src *src = src_open(f->cx, &f->cx->scratch, path);
	src_check_text(f->cx, src);
	for (size_t at = 0; at < src->len;) {
		size_t line = item_end(src, at, "\n"), end = item_end(src, at, "#\n");
		Src item = *src;
		for (; at < end && strchr(" \t\r", src->text[at]);)
			at++;
		while (end > at && strchr(" \t\r", src->text[end - 1]))
			end--;
		item.len = end;
		if (end > at)
			add_one(f, &(Scan){ f->cx, &item, at });
		at = line + 1;
	}
}

/* An item with a colon that does not look like a path is a misspelt fault. */
static bool is_path(const char *item) { return !strchr(item, ':') || strpbrk(item, "/."); }

void faults_add(Faults *f, const char *spec)
{
	Scan all = scan_spec(f->cx, "--fault", spec);
	for (size_t at = 0, end; at < all.src->len; at = end + 1) {
		end = item_end(all.src, at, ",");
		Src item = { .name = all.src->name, .text = all.src->text, .len = end };
		Scan s = { f->cx, &item, at };
		const char *text = arena_copy(&f->cx->scratch, spec + at, end - at);
		if (scan_kind(&s) < 0 && *text && is_path(text)) {
			add_file(f, text);
			continue;
		}
		s.at = at;
		add_one(f, &s);
	}
}

/* ---- the log ---- */

void faults_log(Faults *f, const FaultEvent *e)
{
	f->happened[f->fault[e->fault].kind]++;
	if (f->events < f->capacity)
		f->event[f->events++] = *e;
}

void fault_event_json(const Faults *f, const FaultEvent *e, Buf *out)
{
	const Fault *fault = &f->fault[e->fault];
	buf_printf(out, "{\"cycle\": %llu, \"seconds\": %.9g, \"kind\": \"%s\", \"fault\": \"",
	           (unsigned long long)e->cycle, 1e-9 * f->m->clock * (double)e->cycle, fault_names[fault->kind]);
	faults_print(fault, out);
	buf_printf(out, "\", \"%s\": %u", fault->kind == FAULT_DISK ? "disk" : "processor", e->proc);
	if (e->place >= 0)
		buf_printf(out, ", \"place\": \"%s\", \"address\": %u, \"bit\": %u", place_names[e->place], e->addr, e->bit);
	else if (fault->kind == FAULT_MISROUTE)
		buf_printf(out, ", \"port\": %u", e->addr);
	else if (fault->kind == FAULT_DISK)
		buf_printf(out, ", \"word\": %u, \"bit\": %u", e->addr, e->bit);
	buf_puts(out, "}");
}

void faults_json(const Faults *f, Buf *out)
{
	uint64_t all = 0;
	buf_puts(out, "{");
	for (int k = 0; k < FAULT_KINDS; k++) {
		buf_printf(out, "\"%s\": %llu, ", fault_names[k], (unsigned long long)f->happened[k]);
		all += f->happened[k];
	}
	buf_printf(out, "\"all\": %llu}", (unsigned long long)all);
}

void faults_write_log(Ctx *cx, const Faults *f, const char *path)
{
	OutFile *file = file_create(cx, &cx->scratch, path);
	Buf line = { .arena = &cx->scratch };
	for (uint64_t i = 0; i < f->events; i++) {
		line.len = 0;
		fault_event_json(f, &f->event[i], &line);
		buf_puts(&line, "\n");
		file_write(file, line.s, line.len);
	}
	file_commit(cx, file);
}

/* ---- disks ---- */

void faults_disk(Faults *f, uint64_t cycle, uint32_t disk, uint32_t *word, uint64_t count, size_t step)
{
	for (uint32_t i = 0; i < f->faults; i++) {
		const Fault *fault = &f->fault[i];
		FaultWait *w = &f->wait[i];
		if (fault->kind != FAULT_DISK || fault->proc != disk)
			continue;
		uint64_t at = w->left;
		for (; at < count; at += 1 + fault_wait_words(f, i, w->drawn++, fault->rate)) {
			uint8_t bit = fault_draw(f, i, DRAW_BIT, w->drawn) & 31;
			word[at * step] ^= 1u << bit;
			faults_log(f, &(FaultEvent){ .cycle = f->before + cycle,
			                             .fault = i,
			                             .proc = disk,
			                             .place = -1,
			                             .addr = (uint32_t)at,
			                             .bit = bit });
		}
		w->left = at - count;
	}
}

/* ---- random faults ---- */

static uint32_t random_index(uint64_t seed, uint64_t i, uint32_t what, uint32_t limit)
{
	return (uint32_t)random_below(seed, STREAM_RANDOM + what, i, limit);
}

Fault fault_random_processor(const Machine *m, uint64_t seed, uint64_t i, uint32_t procs, uint32_t sram_end,
                             uint32_t dram_end)
{
	const uint32_t words[IN_PLACES] = { (uint32_t)m->registers, sram_end, dram_end };
	uint32_t which = random_index(seed, i, 0, 2 + IN_PLACES);
	Fault f = { .kind = which == 0   ? FAULT_DEAD
		                : which == 1 ? FAULT_ALU
		                             : FAULT_STUCK,
		        .proc = random_index(seed, i, 1, procs) };
	if (f.kind == FAULT_ALU)
		f.rate = 1;
	if (f.kind != FAULT_STUCK)
		return f;
	f.places = 1u << (which - 2);
	f.addr = random_index(seed, i, 2, words[which - 2]);
	f.bit = (uint8_t)random_index(seed, i, 3, 32);
	f.value = (uint8_t)random_index(seed, i, 4, 2);
	return f;
}

Fault fault_random_switch(const Machine *m, uint64_t seed, uint64_t i)
{
	static const int broken[] = { FAULT_PORT, FAULT_CROSSBAR, FAULT_LINK };
	uint32_t n = (uint32_t)m->crossbar;
	Fault f = { .kind = broken[m->ring_only ? 0 : random_index(seed, i, 5, COUNT(broken))] };
	if (f.kind == FAULT_PORT) {
		f.proc = random_index(seed, i, 1, (uint32_t)m->processors);
		return f;
	}
	f.stage = random_index(seed, i, 6, f.kind == FAULT_LINK ? 2 : 3);
	f.n = random_index(seed, i, 7, n);
	f.m = f.kind == FAULT_LINK ? random_index(seed, i, 8, n) : 0;
	return f;
}
