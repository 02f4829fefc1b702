/* SPDX-License-Identifier: MIT */
/* The workbench through its public header: routines from text, values in and out, steps, the debugger, pictures whose
 * texts do not overlap, messages; allocations that fail. */
#include "svg.h"

#include <unistd.h>

#include "microprop/gf11.h"
#include "microprop/tool.h"

static const char axpy[] = "routine axpy\n"
						   "load s[300] -> a\nload s[100] -> x\nload s[200] -> y\n"
						   "fmul a, x -> p\nfadd p, y -> z\nstore z -> s[200]\n";

typedef struct Out {
	char s[1 << 20];
	size_t len;
} Out;
static Out out;

static void add(void *user, const char *text, size_t len)
{
	Out *o = user;
	assert_true(o->len + len < sizeof o->s);
	memcpy(o->s + o->len, text, len);
	o->len += len;
	o->s[o->len] = '\0';
}

static mp_gf11 *open_axpy(void)
{
	static const char *const set[] = { "sram:100=1.5", "sram:200=10", "sram:300=2", "sram:100@1=4" };
	const mp_gf11_options o = { .size = sizeof o, .processors = 3, .set = set, .sets = COUNT(set) };
	mp_gf11 *g;
	assert_int_equal(mp_gf11_open(&g, "axpy", axpy, &o, NULL), MP_OK);
	return g;
}

static float word(mp_gf11 *g, const char *place, uint32_t proc)
{
	uint32_t shape[2], words[64];
	assert_int_equal(mp_gf11_read(g, place, NULL, shape), MP_OK);
	assert_true(shape[0] * shape[1] <= COUNT(words) && proc < shape[0]);
	assert_int_equal(mp_gf11_read(g, place, words, shape), MP_OK);
	return (union {
			   uint32_t u;
			   float f;
		   }){ words[proc * shape[1]] }
	    .f;
}

static void values(void **state)
{
	(void)state;
	mp_gf11 *g = open_axpy();
	const mp_gf11_info *info = mp_gf11_get_info(g);
	assert_string_equal(info->name, "axpy");
	assert_int_equal(info->operations, 6);
	assert_int_equal(info->issues, 6);
	assert_int_equal(info->processors, 3);
	assert_true(info->optimal && info->bound == info->cycles && !info->ended && info->cycle == 0);
	assert_int_equal(mp_gf11_run(g, 10), MP_OK);
	assert_int_equal(mp_gf11_get_info(g)->cycle, 10);
	assert_true(word(g, "sram:200", 0) == 10);
	assert_int_equal(mp_gf11_run(g, 0), MP_OK);
	assert_true(mp_gf11_get_info(g)->ended);
	assert_true(word(g, "sram:200", 0) == 13 && word(g, "sram:200", 1) == 18 && word(g, "sram:200@1", 0) == 18);
	assert_int_equal(mp_gf11_restart(g), MP_OK);
	assert_true(word(g, "sram:200", 1) == 10 && !mp_gf11_get_info(g)->ended);
	const float one[] = { 5 }, all[] = { 1, 2, 3 };
	assert_int_equal(mp_gf11_write(g, "sram:300", (const uint32_t *)(const void *)one, 1), MP_OK);
	assert_int_equal(mp_gf11_write(g, "sram:100", (const uint32_t *)(const void *)all, 3), MP_OK);
	assert_int_equal(mp_gf11_write(g, "sram:100", (const uint32_t *)(const void *)all, 2), MP_BAD_INPUT);
	assert_non_null(strstr(mp_gf11_get_messages(g), "1 words of 3 processors, and these are 2 values"));
	assert_int_equal(mp_gf11_run(g, 0), MP_OK);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(word(g, "sram:200", i) == 10 + 5 * all[i]);
	mp_gf11_close(g);
}

static void issues(void **state)
{
	(void)state;
	mp_gf11 *g = open_axpy();
	uint32_t last = 0, seen = 0;
	for (uint32_t i = 0; i < 6; i++) {
		const mp_gf11_issue *s = mp_gf11_get_issue(g, i);
		assert_true(s->cycle >= last && s->done > s->cycle && s->unit < 2);
		assert_true(strncmp(s->text, s->name, strlen(s->name)) == 0);
		assert_non_null(s->source);
		last = s->cycle;
		seen |= 1u << s->recorded;
	}
	assert_int_equal(seen, 63);
	assert_null(mp_gf11_get_issue(g, 6));
	out.len = 0;
	assert_int_equal(mp_gf11_print(g, "operations", add, &out), MP_OK);
	assert_string_equal(out.s, axpy);
	out.len = 0;
	assert_int_equal(mp_gf11_print(g, "microcode", add, &out), MP_OK);
	mp_gf11 *again;
	char *listing = strdup(out.s);
	assert_int_equal(mp_gf11_open(&again, "listing", listing, NULL, NULL), MP_OK);
	assert_int_equal(mp_gf11_get_info(again)->bound, 0);
	assert_int_equal(mp_gf11_print(again, "operations", add, &out), MP_BAD_INPUT);
	assert_int_equal(mp_gf11_print(again, "poetry", add, &out), MP_BAD_INPUT);
	free(listing);
	mp_gf11_close(again);
	mp_gf11_close(g);
}

static void says(mp_gf11 *g, const char *command, const char *text)
{
	out.len = 0;
	out.s[0] = '\0';
	mp_status status = mp_gf11_debug(g, command, add, &out);
	const char *said = status == MP_OK ? out.s : mp_gf11_get_messages(g);
	if (!strstr(said, text))
		print_error("'%s' says:\n%s", command, said);
	assert_non_null(strstr(said, text));
}

static void debugger(void **state)
{
	(void)state;
	mp_gf11 *g = open_axpy();
	says(g, "", "");
	says(g, "# a comment", "");
	says(g, "flight", "nothing is in flight");
	says(g, "registers", "no register is written yet");
	says(g, "step", "cycle 0\n  port   load s[300] -> r0 @4");
	says(g, "f", "port   issued 0     result in 4     load s[300] -> a");
	says(g, "s 2", "cycle 2\n");
	says(g, "until r0", "result r0 = 2 ");
	says(g, "registers", "since cycle 4     load s[300] -> a");
	says(g, "set sram:200@0=100", "set on processor 0");
	says(g, "until 3", "cycle 3 is over");
	says(g, "until sram:200", "result s[200] = 13 ");
	says(g, "print sram:200", "sram:200, processor 0\n    200  13");
	says(g, "proc 1", "processor 1 of 3 is shown");
	says(g, "p sram:200", "    200  18");
	says(g, "p sram:200@0..2", "sram:200, processor 2\n    200  13");
	says(g, "step", "the routine has ended; restart begins again");
	says(g, "restart", "at cycle 0, memory as at first");
	says(g, "p sram:200", "    200  10");
	says(g, "word 4", "fmul r");
	says(g, "list", "=>");
	says(g, "c", "the routine has ended after");
	says(g, "bases", "b0 = 0");
	says(g, "switch", "the routine sends nothing through the switch");
	says(g, "help", "  until     LINE|PLACE");
	says(g, "proc 3", "there is no processor 3: they are numbered 0 to 2");
	says(g, "print", "print what?");
	says(g, "print ram:3", "here one of sram, dram, reg and cond is missing");
	says(g, "stap", "there is no command 'stap'; did you mean 'step'?");
	says(g, "step x", "unexpected text here");
	says(g, "quit", "");
	mp_gf11_close(g);
	assert_int_equal(mp_gf11_open(&g, "exchange", NULL, NULL, NULL), MP_OK);
	says(g, "switch", "processor 0 sends     port 0 -> port 1, crossbars 0, 0, 0");
	mp_gf11_close(g);
}

static void pictures(void **state)
{
	(void)state;
	static const char *const routines[] = { "dot", "exchange", "block-move" };
	static const char *const kinds[] = { "schedule", "dependences", "pipeline" };
	static Out svg;
	for (size_t i = 0; i < COUNT(routines); i++) {
		const mp_gf11_options o = { .size = sizeof o, .processors = 2, .level = -1 };
		mp_gf11 *g;
		assert_int_equal(mp_gf11_open(&g, routines[i], NULL, &o, NULL), MP_OK);
		for (size_t k = 0; k < COUNT(kinds); k++) {
			svg.len = 0;
			assert_int_equal(mp_gf11_draw(g, kinds[k], add, &svg), MP_OK);
			svg_check(&(Buf){ .s = svg.s, .len = svg.len });
		}
		assert_int_equal(mp_gf11_draw(g, "portrait", add, &svg), MP_BAD_INPUT);
		mp_gf11_close(g);
	}
}

/* What a command draws with --svg. */
static void drawn(const char *const *words, int count)
{
	static Out svg;
	char path[] = "/tmp/gf11_XXXXXX", option[40];
	const char *all[8] = { 0 };
	int file = mkstemp(path);
	assert_true(file >= 0 && count < 7);
	memcpy(all, words, (size_t)count * sizeof *words);
	snprintf(option, sizeof option, "--svg=%s", path);
	all[count] = option;
	mp_tool *tool;
	assert_int_equal(mp_tool_run(&tool, "gf11", count + 1, all, add, &out, NULL), MP_OK);
	mp_tool_close(tool);
	out.len = 0;
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	svg.len = fread(svg.s, 1, sizeof svg.s - 1, f);
	svg.s[svg.len] = '\0';
	fclose(f);
	close(file);
	unlink(path);
	assert_true(svg_check(&(Buf){ .s = svg.s, .len = svg.len }) > 3);
}

#define DRAWN(...) drawn((const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ })))

static void commands(void **state)
{
	(void)state;
	DRAWN("switch", "ring");
	DRAWN("switch", "ring", "--machine=gf11-ring");
	DRAWN("switch", "random:7:40", "--dead=link:input:3:5", "--dead=crossbar:middle:2", "--dead=port:9");
	DRAWN("switch", "broadcast:5");
	DRAWN("steps", "ring");
	DRAWN("steps", "ring", "--procs=24");
	DRAWN("steps", "tree", "--procs=13");
	DRAWN("steps", "pipelined", "--procs=9");
	DRAWN("sweep", "procs=1,2,4,8,100", "sum=ring,tree", "--net=" SOURCE_DIR "/examples/xor.topo", "--cases=200");
	DRAWN("trace", "dot", "--level=0");
	DRAWN("microcode", "dot", "--level=0", "--dependences");
}

static void failures(void **state)
{
	(void)state;
	mp_gf11 *g;
	assert_int_equal(mp_gf11_open(&g, "mine", "load s[1] -> x\nfadd x, q -> y\n", NULL, NULL), MP_BAD_INPUT);
	const mp_error *e = mp_gf11_get_error(g, 0);
	assert_string_equal(e->file, "mine");
	assert_true(e->line == 2 && e->column == 9);
	assert_null(mp_gf11_get_info(g));
	assert_int_equal(mp_gf11_run(g, 0), MP_BAD_INPUT);
	mp_gf11_close(g);
	const mp_gf11_options future = { .size = 4 };
	assert_int_equal(mp_gf11_open(&g, "dot", NULL, &future, NULL), MP_BAD_INPUT);
	mp_gf11_close(g);
	const mp_gf11_options many = { .size = sizeof many, .processors = 600 };
	assert_int_equal(mp_gf11_open(&g, "dot", NULL, &many, NULL), MP_BAD_INPUT);
	mp_gf11_close(g);
	Meter meter = { .fail_at = 1 };
	mp_status status = MP_NO_MEMORY;
	const mp_gf11_options small = { .size = sizeof small, .processors = 1, .level = -1 };
	for (; status != MP_OK; meter.fail_at++) {
		const mp_allocator alloc = { .size = sizeof alloc, .resize = meter_resize, .user = &meter };
		meter.calls = 0;
		status = mp_gf11_open(&g, "axpy", axpy, &small, &alloc);
		if (status == MP_OK)
			status = mp_gf11_debug(g, "step 4", add, &out);
		assert_true(status == MP_OK || status == MP_NO_MEMORY);
		out.len = 0;
		mp_gf11_close(g);
		assert_int_equal(meter.live, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),   cmocka_unit_test(issues),   cmocka_unit_test(debugger),
		cmocka_unit_test(pictures), cmocka_unit_test(commands), cmocka_unit_test(failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
