/* SPDX-License-Identifier: MIT */
/* Microcode as text parses back to the same words; syntax errors are reported with location and reason.  Traces have
 * the form that viewers require: every operation in a Kanata log starts, passes its stages and retires; events of a
 * Chrome trace that share a row do not overlap. */
#include "gf11_toy.h"

#include <dirent.h>
#include <jansson.h>
#include <unistd.h>

static void same_micro(const Micro *a, const Micro *b)
{
	assert_int_equal(a->op, b->op);
	if (a->op == GOP_NONE)
		return;
	unsigned uses = forms[ops[a->op].form].uses;
	assert_int_equal(a->rec, b->rec);
	if (uses & USES_DST)
		assert_int_equal(a->dst, b->dst);
	if (uses & USES_A)
		assert_int_equal(a->a, b->a);
	if (uses & USES_B)
		assert_int_equal(a->b, b->b);
	if (uses & (READS_CC | WRITES_CC))
		assert_int_equal(a->cc, b->cc);
	if (uses & USES_MEM)
		assert_true(a->mem.base == b->mem.base && a->mem.off == b->mem.off);
	if (uses & USES_FAR)
		assert_true(a->far.base == b->far.base && a->far.off == b->far.off);
	if (uses & USES_K)
		assert_int_equal(a->k.u, b->k.u);
}

static void same_words(const Routine *a, const Routine *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->lines, b->lines);
	assert_int_equal(a->update, b->update);
	for (uint32_t t = 0; t < a->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			same_micro(&a->line[t].slot[unit], &b->line[t].slot[unit]);
}

typedef struct Reading {
	const Machine *m;
	const Src *src;
	Routine *r;
} Reading;

static void read_it(Ctx *cx, void *arg)
{
	Reading *r = arg;
	r->r = microcode_parse(cx, r->m, r->src);
}

static Routine *words_of(Ctx *cx, const Machine *m, const char *text, size_t len)
{
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "text", .text = text, .len = len };
	Reading r = { .m = m, .src = src };
	return guarded(cx, read_it, &r) == MP_OK ? r.r : NULL;
}

/* Any words at all, whether they keep rules or not; every operation comes up. */
static Routine *random_words(Ctx *cx, const Machine *m, uint64_t seed)
{
	Dice d = { seed, 0 };
	Routine *r = NEW(&cx->keep, 1, Routine);
	*r = (Routine){ .name = "some words-2", .lines = 30 + roll(&d, 60), .update = roll(&d, 2) };
	r->line = NEW(&cx->keep, r->lines, Line);
	for (uint32_t t = 0; t < r->lines; t++) {
		for (int unit = 0; unit < UNITS; unit++) {
			Micro *u = &r->line[t].slot[unit];
			*u = (Micro){ .op = (uint8_t)roll(&d, GOPS),
				          .rec = roll(&d, 3) ? roll(&d, 100000) : UINT32_MAX,
				          .dst = (uint16_t)roll(&d, TOY_REGISTERS),
				          .a = (uint16_t)roll(&d, TOY_REGISTERS),
				          .b = (uint16_t)roll(&d, TOY_REGISTERS),
				          .cc = (uint8_t)roll(&d, TOY_CONDITIONS),
				          .mem = toy_address(&d),
				          .far = toy_address(&d),
				          .k.u = roll(&d, UINT32_MAX) };
			if (ops[u->op].unit != unit || t % 7 > 2)
				*u = (Micro){ .op = GOP_NONE, .rec = UINT32_MAX };
			else if (u->op == GOP_XFER)
				u->k.u %= (uint32_t)m->configurations;
		}
	}
	return r;
}

static void test_round_trip(void **state)
{
	(void)state;
	Machine m = toy_machine();
	bool seen[GOPS] = { false };
	for (uint64_t seed = 0; seed < 60; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		const Routine *r = random_words(&cx, &m, seed);
		Buf text = { .arena = &cx.keep }, again = { .arena = &cx.keep };
		microcode_print(&m, r, &text);
		const Routine *back = words_of(&cx, &m, text.s, text.len);
		if (!back)
			print_error("%s\n", ctx_messages(&cx));
		assert_non_null(back);
		same_words(r, back);
		microcode_print(&m, back, &again);
		assert_string_equal(text.s, again.s);
		for (uint32_t t = 0; t < r->lines; t++)
			for (int unit = 0; unit < UNITS; unit++)
				if (r->line[t].slot[unit].op < GOPS)
					seen[r->line[t].slot[unit].op] = true;
		ctx_free(&cx);
	}
	for (int op = 0; op < GOPS; op++)
		assert_true(seen[op]);
}

/* The exact look, with the recording beside it. */
static void test_print(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m = toy_machine();
	Gen *g = gen_record(&cx, &m, "sum");
	Reg x = g_load(g, (Addr){ 1, 4 }), one = g_const(g, 1);
	Cond less = g_compare(g, GOP_FLT_LT, x, one);
	g_put(g, (Addr){ 0, 7 }, one, g_select(g, less, x, one));
	g_index_limit(g, 0, 16);
	g_fetch(g, (Addr){ 1, 3 }, (Addr){ 2, 9 });
	const Code *code = gen_end(g);
	static const char text[] =
		"routine sum\nlines 19\n"
		"0 | const 0x3f800000 -> r1 (1) | load s[b1+4] -> r2 (0) | fetch d[b2+9] -> s[b1+3] (5) |\n"
		"... 4 empty\n5 | flt.lt r2, r1 -> c3 (2) | | |\n6 | | store r1 -> s[200] | |\n... 3 empty\n"
		"10 | select c3, r2, r1 -> r4 (3) | | |\n... 4 empty\n15 | | put r4 -> s[7+r1] (4) | |\n... 3 empty\n";
	Routine *r = words_of(&cx, &m, text, strlen(text));
	assert_non_null(r);
	r->code = code;
	assert_null(check_routine(&cx, &m, r));
	Buf out = { .arena = &cx.keep };
	microcode_print(&m, r, &out);
	static const char *const parts[] = {
		"\nroutine sum\nlines 19\n#     | alu ",
		"\n    0 | const 0x3f800000 -> r1 @5 (1)   | load s[b1+4] -> r2 @3 (0) | "
		"fetch d[b2+9] -> s[b1+3] @8 (5) |         "
		"# const 0x3f800000 -> v1; load s[b1+4] -> v0; fetch d[b2+9] -> s[b1+3]\n... 4 empty\n",
		"# flt.lt v0, v1 -> w0\n",
		"# spill\n",
		"# select w0, v0, v1 -> v2\n",
		"put r4 -> s[7+r1] @17 (4)",
		"# put v2 -> s[7+v1]\n",
	};
	for (size_t i = 0; i < COUNT(parts); i++) {
		if (!strstr(out.s, parts[i]))
			print_error("%s\nhas no\n%s\n", out.s, parts[i]);
		assert_non_null(strstr(out.s, parts[i]));
	}
	ctx_free(&cx);
}

/* ---- bad text ---- */

typedef struct Bad {
	const char *line, *says;
} Bad;

static const Bad bad_lines[] = {
	{ "0 | fdad r1, r2 -> r3 | | |", "bad:3:5: error: there is no operation 'fdad'" },
	{ "0 | fdad r1, r2 -> r3 | | |", "did you mean fadd?" },
	{ "0 | load s[4] -> r3 | | |", "load is no operation of unit alu" },
	{ "0 | load s[4] -> r3 | | |", "write it in column 2, port" },
	{ "0 | fadd r1, r64 -> r3 | | |", "bad:3:15: error: register 64 is too large" },
	{ "0 | fadd r1, r64 -> r3 | | |", "on this machine it goes up to 63" },
	{ "0 | fadd r1 r2 -> r3 | | |", "expected ',', found 'r2'" },
	{ "0 | fadd r1, r2 -> c3 | | |", "expected 'r', found 'c3'" },
	{ "0 | fadd r1, r2 -> r3 @6 | | |", "issued in cycle 0 is not there in cycle 6" },
	{ "0 | fadd r1, r2 -> r3 @6 | | |", "write @5, or leave it out" },
	{ "0 | fadd r1, r2 -> r3 |", "bad:3:24: error: expected '|' here" },
	{ "0 | const 1 -> r3 | | |", "like 0x3f800000 for 1.0" },
	{ "0 | | load s[256] -> r3 | |", "offset 256 is too large" },
	{ "0 | | load s[b3+0] -> r3 | |", "base 3 is too large" },
	{ "7 | | | |", "this is line 0, not 7" },
	{ "0 | | | |\n0 | | | |", "bad:4:1: error: this is line 1, not 0" },
	{ "0 | x | | |\n1 | y | | |", "bad:4:5: error: there is no operation 'y'" },
	{ "... 21 empty", "the routine has only 20 lines more, not 21" },
	{ "... 19 empty", "1 of the routine's 20 lines are missing" },
};

static void test_bad_lines(void **state)
{
	(void)state;
	Machine m = toy_machine();
	for (size_t i = 0; i < COUNT(bad_lines); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Buf text = { .arena = &cx.keep };
		buf_printf(&text, "routine a\nlines 20\n%s\n", bad_lines[i].line);
		Src src = { .name = "bad", .text = text.s, .len = text.len };
		Reading r = { .m = &m, .src = &src };
		assert_int_equal(guarded(&cx, read_it, &r), MP_BAD_INPUT);
		if (!strstr(ctx_messages(&cx), bad_lines[i].says))
			print_error("%s\nshould say %s\n", ctx_messages(&cx), bad_lines[i].says);
		assert_non_null(strstr(ctx_messages(&cx), bad_lines[i].says));
		ctx_free(&cx);
	}
}

typedef struct Named {
	const char *path;
	const Machine *m;
} Named;

static void read_file(Ctx *cx, void *arg)
{
	const Named *n = arg;
	microcode_parse(cx, n->m, src_open(cx, &cx->keep, n->path));
}

static void test_bad_files(void **state)
{
	(void)state;
	Machine m = toy_machine();
	DIR *dir = opendir(SOURCE_DIR "/test/bad/microcode");
	assert_non_null(dir);
	int count = 0;
	for (const struct dirent *e; (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		char path[512];
		snprintf(path, sizeof path, SOURCE_DIR "/test/bad/microcode/%s", e->d_name);
		Ctx cx;
		ctx_init(&cx, NULL);
		Named n = { path, &m };
		Status status = guarded(&cx, read_file, &n);
		const char *said = ctx_messages(&cx);
		if (status != MP_BAD_INPUT || !strstr(said, ": error: "))
			print_error("%s: %s\n", path, said);
		assert_int_equal(status, MP_BAD_INPUT);
		assert_true(strncmp(said, path, strlen(path)) == 0 && said[strlen(path)] == ':');
		assert_true(strchr(strstr(said, ": error: "), '\n')[1] == ' '); /* the line, or a remedy */
		count++;
		ctx_free(&cx);
	}
	closedir(dir);
	assert_true(count >= 30);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	Machine m = toy_machine();
	static const char text[] = "routine a\nlines 9\n0 || load s[1] -> r1 ||\n... 2 empty\n"
							   "3 | fadd r1, r1 -> r2 |||\n... 5 empty\n";
	Status status = MP_NO_MEMORY;
	for (long at = 1; status == MP_NO_MEMORY; at++) {
		Meter meter = { .fail_at = at };
		Alloc alloc = { .resize = meter_resize, .user = &meter };
		Ctx cx;
		ctx_init(&cx, &alloc);
		Src src = { .name = "text", .text = text, .len = strlen(text) };
		Reading r = { .m = &m, .src = &src };
		status = guarded(&cx, read_it, &r);
		ctx_free(&cx);
		assert_int_equal(meter.live, 0);
		assert_true(at < 1000);
	}
	assert_int_equal(status, MP_OK);
}

/* ---- traces ---- */

static char folder[] = "/tmp/microprop-trace-XXXXXX", path[64];

typedef struct Trace {
	const Machine *m;
	const Routine *r;
	void (*write)(Ctx *, const Machine *, const Routine *, const char *);
} Trace;

static void write_trace(Ctx *cx, void *arg)
{
	const Trace *t = arg;
	t->write(cx, t->m, t->r, path);
}

static uint32_t operations(const Routine *r)
{
	uint32_t n = 0;
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			n += r->line[t].slot[unit].op < GOPS;
	return n;
}

static void trace_to_file(Ctx *cx, const Trace *t, const char *name)
{
	snprintf(path, sizeof path, "%s/%s", folder, name);
	Trace copy = *t;
	assert_int_equal(guarded(cx, write_trace, &copy), MP_OK);
}

typedef struct Life {
	int open, stages, retired;
	uint32_t since;
} Life;

/* One record; `cycle` is where the log stands. */
static void follow(const char *line, Life *life, uint32_t count, uint32_t *born, uint32_t *retired, uint32_t *cycle)
{
	unsigned id = 0, other = 0, n = 0;
	char stage[8];
	if (sscanf(line, "I\t%u\t%u\t0", &id, &other) == 2) {
		assert_true(id == *born && id < count);
		++*born;
	} else if (sscanf(line, "S\t%u\t0\t%7s", &id, stage) == 2) {
		assert_true(id < *born && !life[id].open && !life[id].retired);
		assert_true(life[id].stages == 0 || *cycle > life[id].since);
		life[id] = (Life){ .open = 1, .stages = life[id].stages + 1, .since = *cycle };
	} else if (sscanf(line, "E\t%u\t0\t%7s", &id, stage) == 2) {
		assert_true(life[id].open && *cycle > life[id].since);
		life[id].open = 0;
	} else if (sscanf(line, "R\t%u\t%u\t0", &id, &other) == 2) {
		assert_true(life[id].stages > 0 && !life[id].open && !life[id].retired && other == *retired);
		life[id].retired = 1;
		++*retired;
	} else if (sscanf(line, "C\t%u", &n) == 1) {
		assert_true(n > 0);
		*cycle += n;
	} else {
		assert_true(sscanf(line, "L\t%u\t%u\t", &id, &other) == 2 && id < *born && other < 2);
	}
}

static void check_kanata(const Routine *r)
{
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	char line[256];
	uint32_t count = operations(r), born = 0, retired = 0, cycle = 0;
	Life *life = calloc(count + 1, sizeof *life);
	assert_true(fgets(line, sizeof line, f) && strcmp(line, "Kanata\t0004\n") == 0);
	assert_true(fgets(line, sizeof line, f) && strcmp(line, "C=\t0\n") == 0);
	while (fgets(line, sizeof line, f))
		follow(line, life, count, &born, &retired, &cycle);
	assert_int_equal(born, count);
	assert_int_equal(retired, count);
	free(life);
	fclose(f);
}

static int by_row(const void *a, const void *b)
{
	const double *x = a, *y = b;
	for (int i = 0; i < 3; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static double number(const json_t *event, const char *key)
{
	assert_true(json_is_number(json_object_get(event, key)));
	return json_number_value(json_object_get(event, key));
}

/* All operations twice: on the units' rows and in flight, where events of one row must not overlap. */
static void check_chrome(const Machine *m, const Routine *r)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error), *events = json_object_get(root, "traceEvents"), *e;
	assert_true(json_is_array(events));
	size_t i, n = 0;
	double us = m->clock / 1000, (*row)[4] = calloc(json_array_size(events), sizeof *row);
	json_array_foreach(events, i, e)
	{
		const char *ph = json_string_value(json_object_get(e, "ph"));
		if (strcmp(ph, "X") != 0) {
			assert_string_equal(ph, "M");
			continue;
		}
		const json_t *args = json_object_get(e, "args");
		const json_t *name = json_object_get(e, "name");
		double ts = number(e, "ts"), dur = number(e, "dur"), cycle = number(args, "cycle");
		assert_true(ts > cycle * us - 1e-6 && ts < cycle * us + 1e-6);
		assert_true(op_find(json_string_value(name), json_string_length(name)) >= 0);
		if (number(e, "pid") == 2) {
			double flight = (number(args, "result") - cycle) * us;
			assert_true(dur > flight - 1e-6 && dur < flight + 1e-6);
		}
		memcpy(row[n++], (double[]){ number(e, "pid"), number(e, "tid"), ts, dur }, sizeof *row);
	}
	assert_int_equal(n, 2 * operations(r));
	qsort(row, n, sizeof *row, by_row);
	for (i = 1; i < n; i++)
		if (row[i][0] == 2 && row[i][1] == row[i - 1][1] && row[i - 1][0] == 2)
			assert_true(row[i - 1][2] + row[i - 1][3] <= row[i][2] + 1e-6);
	free(row);
	json_decref(root);
}

static void test_traces(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_non_null(mkdtemp(folder));
	for (uint64_t seed = 0; seed < 8; seed++) {
		Machine m = toy_machine();
		if (seed % 2) { /* stages of one and two cycles */
			m.sram_latency = m.store_latency = 1;
			m.alu_latency = 2;
			m.clock = 12.5;
		}
		const Routine *r = random_words(&cx, &m, 100 + seed);
		trace_to_file(&cx, &(Trace){ &m, r, trace_kanata }, "log");
		check_kanata(r);
		trace_to_file(&cx, &(Trace){ &m, r, trace_chrome }, "log");
		check_chrome(&m, r);
	}
	Machine m = toy_machine();
	const Routine none = { .name = "none" };
	trace_to_file(&cx, &(Trace){ &m, &none, trace_kanata }, "log");
	check_kanata(&none);
	trace_to_file(&cx, &(Trace){ &m, &none, trace_chrome }, "log");
	check_chrome(&m, &none);
	unlink(path);
	rmdir(folder);
	snprintf(path, sizeof path, "%s/missing/log", folder);
	Trace t = { &m, &none, trace_chrome };
	assert_int_equal(guarded(&cx, write_trace, &t), MP_FAILED);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_print),         cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_traces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
