/* SPDX-License-Identifier: MIT */
/* Machine files: the four that are shipped, bases, printing and parsing back, and every kind of error with its
 * location. */
#include <dirent.h>
#include <unistd.h>

#include "test.h"

#include "gf11_sim.h"

typedef struct Case {
	Ctx cx;
	const char *name, *text; /* one of them: opened, or parsed */
	Machine *m;
	char *print;
	Status status;
} Case;

static void case_body(Ctx *cx, void *arg)
{
	Case *c = arg;
	if (c->name) {
		c->m = machine_open(cx, c->name);
	} else {
		Src *src = NEW(&cx->keep, 1, Src);
		*src = (Src){ .name = "x.machine", .text = c->text, .len = strlen(c->text) };
		c->m = machine_parse(cx, src);
	}
	Buf b = { .arena = &cx->keep };
	machine_print(c->m, &b);
	c->print = b.s;
}

static Case *run(const char *name, const char *text)
{
	Case *c = calloc(1, sizeof *c);
	c->name = name;
	c->text = text;
	ctx_init(&c->cx, NULL);
	c->status = guarded(&c->cx, case_body, c);
	return c;
}

static void done(Case *c)
{
	ctx_free(&c->cx);
	free(c);
}

static void refused_wrongly(const char *what, Status status, const char *said)
{
	print_error("%s\ngave status %d:\n%s", what, (int)status, said);
	assert_true(false);
}

static const char *const shipped[] = { "gf11", "gf11-356", "gf11-ring", "gf11-banks16" };

static void the_gf11_has_the_reports_numbers(void **state)
{
	(void)state;
	Case *c = run("gf11", NULL);
	assert_int_equal(c->status, MP_OK);
	const Machine *m = c->m;
	assert_string_equal(m->name, "gf11");
	assert_int_equal(m->processors, 566);
	assert_true(m->clock == 50 && m->host_word == 10 && m->disk_rate == 8);
	assert_int_equal(m->registers, 256);
	assert_int_equal(m->sram, 16384);
	assert_int_equal(m->dram, 524288);
	assert_int_equal(m->alu_latency, 25);
	assert_int_equal(m->dram_interval, 4);
	assert_int_equal(m->switch_interval, 4);
	assert_int_equal(m->switch_ports, 576);
	assert_int_equal(m->configurations, 1024);
	assert_int_equal(m->microcode, 524288);
	assert_int_equal(m->block, 20480);
	assert_int_equal(m->disks, 10);
	done(c);
}

/* Unknown values must be labelled as unknown, and no others. */
static void assumptions_are_labelled(void **state)
{
	(void)state;
	static const char *const assumed[] = { "conditions",     "relocations",  "sram-latency", "lookup-latency",
		                                   "store-latency",  "dram-latency", "dram-banks",   "dram-busy",
		                                   "switch-latency", "host-call",    "host-word",    "disk-buffer",
		                                   "fixed-address" };
	Case *c = run("gf11", NULL);
	for (size_t i = 0; i < machine_row_count; i++) {
		bool expected = false;
		for (size_t k = 0; k < COUNT(assumed); k++)
			expected |= strcmp(assumed[k], machine_rows[i].name) == 0;
		assert_int_equal(c->m->from[i].kind == FROM_ASSUMED, expected);
	}
	assert_non_null(strstr(c->print, "alu-latency             25 cycles     seed \xC2\xA7"
	                                 "6.2.1"));
	done(c);
}

static size_t differences(const Machine *a, const Machine *b)
{
	size_t count = 0;
	for (size_t i = 0; i < machine_row_count; i++) /* both kinds are 8 bytes */
		count += memcmp((const char *)a + machine_rows[i].offset, (const char *)b + machine_rows[i].offset, 8) != 0;
	return count;
}

static void others_change_what_they_say(void **state)
{
	(void)state;
	Case *gf11 = run("gf11", NULL), *half = run("gf11-356", NULL);
	Case *ring = run("gf11-ring", NULL), *banks = run("gf11-banks16", NULL);
	assert_int_equal(half->m->processors, 356);
	assert_int_equal(half->m->disks, 0);
	assert_int_equal(differences(gf11->m, half->m), 2);
	assert_int_equal(ring->m->ring_only, 1);
	assert_int_equal(differences(gf11->m, ring->m), 1);
	assert_int_equal(banks->m->dram_banks, 16);
	assert_int_equal(differences(gf11->m, banks->m), 1);
	done(gf11), done(half), done(ring), done(banks);
}

static void prints_read_back_and_files_equal_built_in(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(shipped); i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/machines/%s.machine", SOURCE_DIR, shipped[i]);
		Case *a = run(shipped[i], NULL), *b = run(NULL, a->print), *c = run(path, NULL);
		assert_int_equal(b->status, MP_OK);
		assert_int_equal(differences(a->m, b->m), 0);
		assert_string_equal(strchr(a->print, '\n'), strchr(b->print, '\n'));
		assert_string_equal(a->print, c->print);
		done(a), done(b), done(c);
	}
}

/* A file of version 0.1 has no line for what was added since. */
static void older_files_are_read(void **state)
{
	(void)state;
	Case *c = run("gf11", NULL);
	char *text = strdup(c->print), *line = strstr(text, "\ndisk-capacity"), *end = line ? strchr(line + 1, '\n') : NULL;
	assert_true(c->m->disk_capacity == 450 && end);
	memmove(line, end, strlen(end) + 1);
	Case *older = run(NULL, text);
	assert_int_equal(older->status, MP_OK);
	assert_true(older->m->disk_capacity == 0 && older->m->disks == 10);
	free(text);
	done(older);
	done(c);
}

static void bases_stand_beside_their_file(void **state)
{
	(void)state;
	char dir[] = "/tmp/machine-XXXXXX", path[64], other[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/a.machine", dir);
	snprintf(other, sizeof other, "%s/b.machine", dir);
	FILE *f = fopen(path, "w");
	fputs("base b.machine\nclock 25.5 ns assumed (faster)\n", f);
	fclose(f);
	f = fopen(other, "w");
	fputs("base gf11\r\nsram 32K words published # twice\r\n", f);
	fclose(f);
	Case *c = run(path, NULL);
	assert_int_equal(c->status, MP_OK);
	assert_string_equal(c->m->name, "a");
	assert_true(c->m->clock == 25.5);
	assert_int_equal(c->m->sram, 32768);
	assert_int_equal(c->m->from[1].kind, FROM_ASSUMED);
	assert_string_equal(c->m->from[1].text, "assumed (faster)");
	assert_string_equal(c->m->from[3].text, "published");
	done(c);
	f = fopen(other, "w");
	fputs("base a.machine\n", f);
	fclose(f);
	c = run(path, NULL);
	assert_int_equal(c->status, MP_BAD_INPUT);
	assert_non_null(strstr(ctx_messages(&c->cx), "bases go round in a circle"));
	done(c);
	unlink(path), unlink(other), rmdir(dir);
}

static void faults_have_a_place_and_a_remedy(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message, *remedy;
	} faults[] = {
		{ "base gf11\nclok 50 ns assumed", "x.machine:2:1: error: a machine has no parameter 'clok'",
		  "did you mean 'clock'?" },
		{ "base gf11\nclock fast ns assumed", "x.machine:2:7: error: clock cannot be 'fast'", "from 0.001 to 1000000" },
		{ "base gf11\nclock", "x.machine:2:6: error: clock has no value", "clock takes a number" },
		{ "base gf11\nclock -1 ns assumed", "error: clock cannot be '-1'", "from 0.001" },
		{ "base gf11\nclock nan ns assumed", "error: clock cannot be 'nan'", "from 0.001" },
		{ "base gf11\nclock 0x10 ns assumed", "error: clock cannot be '0x10'", "from 0.001" },
		{ "base gf11\nsram 0.5 words assumed", "error: sram cannot be '0.5'", "whole number from 64 to 1048576" },
		{ "base gf11\nsram 99999999K words assumed", "error: sram cannot be", "whole number" },
		{ "base gf11\nclock 50 us assumed", "x.machine:2:10: error: clock is counted in ns, not 'us'", "write 'ns'" },
		{ "base gf11\nclock 50", "x.machine:2:9: error: clock is counted in ns", "write 'ns'" },
		{ "base gf11\nclock 50 ns", "x.machine:2:12: error: where does clock come from?",
		  "'published', 'measured' or 'assumed'" },
		{ "base gf11\nclock 50 ns guessed", "x.machine:2:13: error: where clock comes from cannot be 'guessed'",
		  "assumed" },
		{ "base gf11\nclock 50 ns seed", "x.machine:2:17: error: the section of the report is missing", "the section" },
		{ "base gf11\nclock 50 ns seed 2", "x.machine:2:18: error: the section of the report is missing",
		  "the section" },
		{ "base gf11\nclock 50 ns assumed really", "x.machine:2:21: error: the line does not end", "parentheses" },
		{ "base gf11\nprocessors 5 processors assumed", "error: where processors comes from cannot be", "assumed" },
		{ "base gf11\nclock 50 ns assumed\nclock 40 ns assumed",
		  "x.machine:3:1: error: clock has its value in line 2 already", "remove one of the two lines" },
		{ "clock 50 ns assumed\nbase gf11", "x.machine:2:1: error: the base stands below a parameter", "above" },
		{ "base", "x.machine:1:5: error: there is no machine ''", "built in: " },
		{ "base gf12", "x.machine:1:6: error: there is no machine 'gf12'", "did you mean 'gf11'?" },
		{ "base gf11 gf11-ring", "x.machine:1:11: error: a base is one name", "nothing behind" },
		{ "", "x.machine:1:1: error: the machine is not complete, it has no processors, clock,", "base gf11" },
		{ "base gf11\nswitch-ports 575 ports assumed", "x.machine:2:1: error: three stages of crossbars",
		  "square of crossbar" },
		{ "base gf11\nprocessors 570 assumed", "x.machine:2:1: error: 570 processors and 10 disks do not fit",
		  "switch-ports" },
		{ "base gf11\nclock 50\x01 ns assumed", "x.machine:2:9: error: byte 0x01 is not text", "plain text" },
		{ "base gf11\nmicrocode 1000 lines assumed", "gf11.machine:", "no more than microcode" },
	};
	for (size_t i = 0; i < COUNT(faults); i++) {
		Case *c = run(NULL, faults[i].text);
		const char *said = ctx_messages(&c->cx);
		if (c->status != MP_BAD_INPUT || !strstr(said, faults[i].message) || !strstr(said, faults[i].remedy))
			refused_wrongly(faults[i].text, c->status, said);
		done(c);
	}
	Case *c = run("gf12", NULL);
	assert_int_equal(c->status, MP_BAD_INPUT);
	assert_non_null(strstr(ctx_messages(&c->cx), "did you mean 'gf11'?"));
	done(c);
}

static void documentation_run(Ctx *cx, void *arg)
{
	(void)arg;
	const Src *doc = src_open(cx, &cx->keep, SOURCE_DIR "/doc/machine.md");
	for (size_t i = 0; i < machine_row_count; i++) {
		char cell[64];
		snprintf(cell, sizeof cell, "\n| `%s` |", machine_rows[i].name);
		if (!strstr(doc->text, cell))
			refused_wrongly(cell, MP_OK, "is missing in doc/machine.md");
	}
}

static void the_manual_names_every_parameter(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, documentation_run, NULL), MP_OK);
	ctx_free(&cx);
}

static void several_faults_come_together(void **state)
{
	(void)state;
	Case *c = run(NULL, "base gf11\nclok 1 ns assumed\nsram 1 words assumed\ndram 1K bytes assumed\n");
	assert_int_equal(c->cx.errors, 3);
	done(c);
}

static void malformed_files_are_refused(void **state)
{
	(void)state;
	char path[4096];
	size_t count = 0;
	DIR *dir = opendir(SOURCE_DIR "/test/bad/machine");
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/test/bad/machine/%s", SOURCE_DIR, e->d_name);
		Case *c = run(path, NULL);
		const char *said = ctx_messages(&c->cx);
		if (c->status != MP_BAD_INPUT || !strstr(said, ".machine:"))
			refused_wrongly(path, c->status, said);
		done(c);
		count++;
	}
	closedir(dir);
	assert_true(count >= 10);
}

static void running_out_of_memory_is_reported(void **state)
{
	(void)state;
	Status s = MP_NO_MEMORY;
	for (long n = 1; s == MP_NO_MEMORY; n++) {
		Meter m = { .fail_at = n };
		Case c = { .name = "gf11-356" };
		ctx_init(&c.cx, &(Alloc){ meter_resize, &m });
		s = guarded(&c.cx, case_body, &c);
		ctx_free(&c.cx);
		assert_int_equal(m.live, 0);
	}
	assert_int_equal(s, MP_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gf11_has_the_reports_numbers),
		cmocka_unit_test(assumptions_are_labelled),
		cmocka_unit_test(others_change_what_they_say),
		cmocka_unit_test(prints_read_back_and_files_equal_built_in),
		cmocka_unit_test(older_files_are_read),
		cmocka_unit_test(bases_stand_beside_their_file),
		cmocka_unit_test(faults_have_a_place_and_a_remedy),
		cmocka_unit_test(the_manual_names_every_parameter),
		cmocka_unit_test(several_faults_come_together),
		cmocka_unit_test(malformed_files_are_refused),
		cmocka_unit_test(running_out_of_memory_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
