/* SPDX-License-Identifier: MIT */
/* Topology files to networks and plans: diagnostics, canonical order, levels, prints, initial weights.
 *
 * GOLDEN=write makes the program write test/golden/ anew instead of comparing; look at the difference before you
 * keep it. */
#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "test.h"

/* ---- a network from text or a file, with everything needed to look at it ---- */

typedef struct Case {
	Ctx cx;
	const char *text, *path; /* one of them */
	size_t len;
	uint32_t bundle;
	Net *net;
	Plan *plan;
	char *net_text, *plan_text;
	Status status;
} Case;

static void case_body(Ctx *cx, void *arg)
{
	Case *c = arg;
	Src *src = c->path ? src_open(cx, &cx->keep, c->path) : NEW(&cx->keep, 1, Src);
	if (c->text)
		*src = (Src){ .name = "net.topo", .text = arena_copy(&cx->keep, c->text, c->len), .len = c->len };
	c->net = net_parse(cx, src, DEFAULTS_1989);
	Caps caps = { .target = "test", .lanes = 1, .bundle = c->bundle };
	c->plan = plan_make(cx, c->net, &caps);
	Buf net = { .arena = &cx->keep }, plan = { .arena = &cx->keep };
	net_print(c->net, &net);
	plan_print(c->plan, &plan);
	c->net_text = net.s;
	c->plan_text = plan.s;
}

static void case_run(Case *c, const Alloc *alloc)
{
	ctx_init(&c->cx, alloc);
	c->status = guarded(&c->cx, case_body, c);
}

static Case *from_text(const char *text)
{
	Case *c = calloc(1, sizeof *c);
	c->text = text;
	c->len = strlen(text);
	case_run(c, NULL);
	return c;
}

static Case *from_file(const char *path, uint32_t bundle)
{
	Case *c = calloc(1, sizeof *c);
	c->path = path;
	c->bundle = bundle;
	case_run(c, NULL);
	return c;
}

static void case_free(Case *c)
{
	ctx_free(&c->cx);
	free(c);
}

static Case *good_text(const char *text)
{
	Case *c = from_text(text);
	if (c->status != MP_OK)
		print_message("%s", ctx_messages(&c->cx));
	assert_int_equal(c->status, MP_OK);
	return c;
}

static void in_folder(const char *folder)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, folder);
	assert_int_equal(chdir(path), 0);
}

/* ---- golden files ---- */

static void compare_golden(const char *name, const char *text)
{
	char path[4096];
	const char *mode = getenv("GOLDEN");
	snprintf(path, sizeof path, "%s/test/golden/%s", SOURCE_DIR, name);
	FILE *f = fopen(path, mode && strcmp(mode, "write") == 0 ? "w+" : "r");
	assert_non_null(f);
	if (mode && strcmp(mode, "write") == 0)
		fputs(text, f);
	size_t size = strlen(text) + 100000, len;
	char *expected = calloc(size, 1);
	rewind(f);
	len = fread(expected, 1, size - 1, f);
	expected[len] = '\0';
	fclose(f);
	assert_string_equal(text, expected);
	free(expected);
}

static void prints_are_golden(void **state)
{
	(void)state;
	in_folder("test/golden");
	Case *c = from_file("kinds.topo", 12);
	assert_int_equal(c->status, MP_OK);
	compare_golden("kinds.net", c->net_text);
	compare_golden("kinds.plan", c->plan_text);
	case_free(c);
	in_folder("examples");
	c = from_file("spirals.topo", 0);
	assert_int_equal(c->status, MP_OK);
	compare_golden("spirals.net", c->net_text);
	compare_golden("spirals.plan", c->plan_text);
	case_free(c);
}

/* Printing, reading and printing again gives the same text and the same network. */
static void expect_round_trip(const char *path)
{
	Case *c = from_file(path, 0);
	if (c->status != MP_OK)
		print_message("%s", ctx_messages(&c->cx));
	assert_int_equal(c->status, MP_OK);
	Case *again = good_text(c->net_text);
	assert_string_equal(c->net_text, again->net_text);
	assert_string_equal(c->plan_text, again->plan_text);
	assert_string_equal(c->net->fingerprint, again->net->fingerprint);
	double *w = calloc(c->net->links, sizeof *w), *v = calloc(c->net->links, sizeof *v);
	net_weights(c->net, 3, 0, ALL_LINKS, w);
	net_weights(again->net, 3, 0, ALL_LINKS, v);
	assert_memory_equal(w, v, c->net->links * sizeof *w);
	free(w);
	free(v);
	case_free(again);
	case_free(c);
}

static void prints_read_back(void **state)
{
	(void)state;
	in_folder("test/golden");
	expect_round_trip("kinds.topo");
	in_folder("examples");
	DIR *d = opendir(".");
	int seen = 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (strstr(e->d_name, ".topo")) {
			expect_round_trip(e->d_name);
			seen++;
		}
	}
	closedir(d);
	assert_true(seen >= 9);
}

/* ---- diagnostics ---- */

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void bad_files_are_refused(void **state)
{
	(void)state;
	char *names[500];
	size_t count = 0, at = 0, size = 1 << 20;
	char *all = calloc(size, 1);
	in_folder("test/bad/topo");
	DIR *d = opendir(".");
	for (struct dirent *e; (e = readdir(d)) && count < COUNT(names);)
		if (strstr(e->d_name, ".topo"))
			names[count++] = strdup(e->d_name);
	closedir(d);
	qsort(names, count, sizeof *names, compare_names);
	assert_true(count >= 40);
	for (size_t i = 0; i < count; i++) {
		Case *c = from_file(names[i], 0);
		const char *messages = ctx_messages(&c->cx);
		if (c->status != MP_BAD_INPUT || !strstr(messages, ": error: "))
			print_message("%s: %s\n", names[i], messages);
		assert_int_equal(c->status, MP_BAD_INPUT);
		assert_non_null(strstr(messages, ": error: "));
		at += (size_t)snprintf(all + at, size - at, "==== %s\n%s", names[i], messages);
		assert_true(at < size);
		case_free(c);
		free(names[i]);
	}
	compare_golden("bad-topo.txt", all);
	free(all);
}

static int count_of(const char *text, const char *part)
{
	int n = 0;
	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void errors_come_together(void **state)
{
	(void)state;
	in_folder("test/bad/topo");
	Case *c = from_file("several.topo", 0);
	assert_int_equal(count_of(ctx_messages(&c->cx), "error: "), 6);
	case_free(c);
	c = from_file("more-than-twenty.topo", 0);
	assert_int_equal(count_of(ctx_messages(&c->cx), "error: "), MAX_ERRORS);
	case_free(c);
}

static void remarks_do_not_refuse(void **state)
{
	(void)state;
	Case *c = good_text("group a 2 input\ngroup idle 3 input\ngroup h 4\ngroup o 1 output\n"
	                    "connect a -> h[0:2]\nconnect h -> o\n");
	assert_non_null(strstr(ctx_messages(&c->cx), "note: input group 'idle' is not used"));
	assert_non_null(strstr(ctx_messages(&c->cx), "note: 1 of the 4 units of 'h' receive no link, first h[3]"));
	case_free(c);
}

/* Cutting a file anywhere gives a network or messages, nothing else. */
static void cut_files(void **state)
{
	(void)state;
	in_folder("test/golden");
	FILE *f = fopen("kinds.topo", "r");
	char text[4096];
	size_t len = fread(text, 1, sizeof text, f);
	fclose(f);
	for (size_t n = 0; n < len; n++) {
		Case c = { .text = text, .len = n };
		case_run(&c, NULL);
		assert_true(c.status == MP_OK || (c.status == MP_BAD_INPUT && *ctx_messages(&c.cx)));
		ctx_free(&c.cx);
	}
}

static void memory_runs_out(void **state)
{
	(void)state;
	in_folder("test/golden");
	for (long n = 1;; n++) {
		Meter meter = { .fail_at = n };
		Alloc alloc = { meter_resize, &meter };
		Case c = { .path = "kinds.topo" };
		case_run(&c, &alloc);
		Status status = c.status;
		ctx_free(&c.cx);
		assert_int_equal(meter.live, 0);
		if (status == MP_OK)
			break;
		assert_int_equal(status, MP_NO_MEMORY);
	}
}

/* ---- text ---- */

#define SMALL "group a 2 input\ngroup o 1 output\nconnect a -> o\n"

static void expect_same(const char *one, const char *other)
{
	Case *a = good_text(one), *b = good_text(other);
	assert_string_equal(a->net_text, b->net_text);
	case_free(a);
	case_free(b);
}

static void layout_does_not_matter(void **state)
{
	(void)state;
	expect_same(SMALL, "\xEF\xBB\xBFgroup a 2 input\r\ngroup o 1 output\r\n\r\nconnect a -> o\r\n");
	expect_same(SMALL, "# head\ngroup\ta 2\n  input # here\n# there\n\n\tlinear\ngroup o 1 output\nconnect a->o");
	expect_same(SMALL "train rate 0.5 shuffle on\n", SMALL "train rate .5#half\ntrain\n shuffle \"on\"\n");
	expect_same(SMALL "data \"a \\\"b\\\" \\\\c\"\n", SMALL "data\n\t\"a \\\"b\\\" \\\\c\"");
	expect_same("group a 2 input\ngroup o 1 sigmoid output\nconnect a -> o full weights -0.5 0.5\n",
	            "group a 2 input\ngroup o 1 output sigmoid\nconnect a -> o weights 5e-1\n");
}

static void texts_are_quoted_where_needed(void **state)
{
	(void)state;
	Case *c = good_text(SMALL "train target \"two words\"\n"), *again = good_text(c->net_text);
	assert_non_null(strstr(c->net_text, "train target \"two words\"\n"));
	assert_string_equal(c->net_text, again->net_text);
	case_free(c);
	case_free(again);
}

static void names_start_at_the_folder(void **state)
{
	(void)state;
	in_folder("test");
	Case *c = from_file("golden/kinds.topo", 0);
	assert_int_equal(c->status, MP_OK);
	assert_string_equal(c->net->data, "golden/kinds.npz");
	assert_string_equal(c->net->test, "make:parity:4");
	assert_true(c->net->options.rate == 0.25 && c->net->options.momentum == 0.5);
	case_free(c);
}

static void units_have_names(void **state)
{
	(void)state;
	char name[32];
	Case *c = good_text("group a 2 input\ngroup h 3\ngroup o 1 output\nconnect a -> h\nconnect h -> o\n");
	net_unit_name(c->net, 0, name, sizeof name);
	assert_string_equal(name, "true");
	net_unit_name(c->net, 5, name, sizeof name);
	assert_string_equal(name, "h[2]");
	assert_null(net_group(c->net, 0));
	assert_ptr_equal(net_group(c->net, 2), &c->net->group[0]);
	assert_ptr_equal(net_group(c->net, 6), &c->net->group[2]);
	case_free(c);
}

/* ---- links ---- */

/* Does a block make the link?  Straight from doc/topology.md. */
static bool block_links(const Net *net, const Block *b, Unit from, Unit to)
{
	Unit from_base = b->from_group < 0 ? 0 : net->group[b->from_group].first + b->from_first;
	Unit to_base = net->group[b->to_group].first + b->to_first;
	if (from < from_base || from >= from_base + b->from_count || to < to_base || to >= to_base + b->to_count)
		return false;
	uint64_t i = from - from_base, j = to - to_base;
	bool share = from_base < to_base + b->to_count && to_base < from_base + b->from_count;
	if (b->kind == LINK_ONE_TO_ONE)
		return i == j;
	if (share && b->kind != LINK_SINGLE && from >= to)
		return false;
	return b->kind != LINK_RANDOM || random_unit(b->seed, STREAM_DENSITY, i * b->to_count + j) < b->density;
}

static void expect_links(const Net *net)
{
	uint64_t link = 0, *count = calloc(net->blocks, sizeof *count);
	for (Unit to = 0; to < net->units; to++) {
		assert_int_equal(net->row[to], link);
		for (Unit from = 0; from < net->units; from++) {
			for (uint32_t b = 0; b < net->blocks; b++) {
				if (block_links(net, &net->block[b], from, to)) {
					assert_int_equal(net_source(net, net_target(net, link), link), from);
					assert_int_equal((uint32_t)(net_block(net, net_target(net, link), link) - net->block), b);
					count[b]++;
					link++;
				}
			}
		}
	}
	assert_int_equal(net->links, link);
	for (uint32_t b = 0; b < net->blocks; b++)
		assert_int_equal(net->block[b].links, count[b]);
	free(count);
}

static void links_are_canonical(void **state)
{
	(void)state;
	in_folder("test/golden");
	Case *c = from_file("kinds.topo", 0);
	expect_links(c->net);
	case_free(c);
	/* Blocks that interleave by source, and slices of one group that overlap in every way. */
	c = good_text("group a 9 input\ngroup h 9\ngroup o 4 output\n"
	              "connect a[2:8] -> h random 0.4 seed 3\nconnect a[0:1], true -> h\n"
	              "connect h -> o[0:1]\n"
	              "connect h[1:4] -> h[3:7]\nconnect h[5:7] -> h[6:8]\n"
	              "connect h[8] -> h[0]\nconnect h[0] -> o[2:3]\n"
	              "connect a[0:3] -> o one-to-one\nconnect a[4:7] -> o one-to-one\nconnect a[0] -> o[1:3]\n"
	              "connect o[3] -> o[0:2]\n");
	expect_links(c->net);
	case_free(c);
}

static void order_of_lines_does_not_matter(void **state)
{
	(void)state;
	char *text = calloc(1 << 20, 1);
	int at = sprintf(text, "group a 40 input\ngroup o 30 output\n");
	for (int i = 0; i < 1200; i++) {
		int pair = i * 7 % 1200; /* 7 and 1200 have no common factor */
		at += sprintf(text + at, "connect a[%d] -> o[%d]\n", pair / 30, pair % 30);
	}
	Case *single = good_text(text), *full = good_text("group a 40 input\ngroup o 30 output\nconnect a -> o\n");
	assert_string_equal(single->net->fingerprint, full->net->fingerprint);
	assert_string_equal(single->plan_text, full->plan_text);
	assert_int_equal(single->net->blocks, 1200);
	expect_links(full->net);
	case_free(single);
	case_free(full);
	free(text);
}

static void density_is_a_share(void **state)
{
	(void)state;
	Case *c = good_text("group a 200 input\ngroup o 200 output\nconnect a -> o random 0.3 seed 5\n");
	assert_true(c->net->links > 11600 && c->net->links < 12400);
	case_free(c);
	c = good_text("group a 20 input\ngroup o 20 output\nconnect a -> o random 1\n");
	assert_int_equal(c->net->links, 400);
	case_free(c);
}

/* ---- fingerprint ---- */

#define ELMAN(size, function, options, start)                                                  \
	"group a 2 input\ngroup h " size function "\ngroup o 2 output\ngroup m " size " context\n" \
	"connect a, m -> h" options "\nconnect h -> o\ncopy h -> m" start "\n"

#define TWO_INPUTS "group a 1 input\ngroup b 1 input\ngroup m 1 context\ngroup o 1 output\nconnect a, b, m -> o\n"

static void expect_fingerprint(const char *one, const char *other, bool same)
{
	Case *a = good_text(one), *b = good_text(other);
	assert_int_equal(strlen(a->net->fingerprint), 32);
	assert_int_equal(strcmp(a->net->fingerprint, b->net->fingerprint) == 0, same);
	case_free(a);
	case_free(b);
}

static void fingerprint_is_of_the_structure(void **state)
{
	(void)state;
	const char *base = ELMAN("3", "", "", "");
	const char *other = ELMAN("3", " sigmoid", " frozen weights 1 2 rate 3", " start 0") "train rate 1\n";
	expect_fingerprint(base, other, true);
	expect_fingerprint(base, ELMAN("4", "", "", ""), false);
	expect_fingerprint(base, ELMAN("3", " tanh", "", ""), false);
	expect_fingerprint(base, ELMAN("3", "", "", " start 1"), false);
	expect_fingerprint(base, ELMAN("3", "", " random 0.5", ""), false);
	expect_fingerprint(base, ELMAN("3", "", "", "") "connect true -> h\n", false);
	expect_fingerprint(TWO_INPUTS "copy a -> m\n", TWO_INPUTS "copy b -> m\n", false);
}

/* ---- weights ---- */

static void weights_are_in_range(void **state)
{
	(void)state;
	Case *c = good_text("group a 16 input\ngroup h 9\ngroup o 3 output\n"
	                    "connect a -> h\nconnect true -> h\nconnect h[0:3] -> o\n"
	                    "connect h[4:8] -> o weights -0.1 0.3\nconnect true -> o weights 0\n"
	                    "connect a[0] -> o weights 1.5 1.5\n");
	const Net *net = c->net;
	double *w = calloc(net->links, sizeof *w), *v = calloc(net->links, sizeof *v);
	net_weights(net, 1, 0, ALL_LINKS, w);
	net_weights(net, 1, 0, ALL_LINKS, v);
	assert_memory_equal(w, v, net->links * sizeof *w);
	net_weights(net, 2, 0, ALL_LINKS, v);
	assert_memory_not_equal(w, v, net->links * sizeof *w);
	double low[6], high[6];
	for (int b = 0; b < 6; b++)
		low[b] = 9, high[b] = -9;
	for (uint64_t l = 0; l < net->links; l++) {
		uint32_t b = (uint32_t)(net_block(net, net_target(net, l), l) - net->block);
		assert_true(w[l] == (double)(float)w[l]);
		low[b] = fmin(low[b], w[l]);
		high[b] = fmax(high[b], w[l]);
	}
	/* h: 16 links besides true's; o: 10, two blocks and a[0]. */
	double r = (float)(1 / sqrt(10));
	assert_true(low[0] >= -0.25 && low[0] < -0.24 && high[0] <= 0.25 && high[0] > 0.24);
	assert_true(low[1] >= -0.25 && high[1] <= 0.25);
	assert_true(low[2] >= -r && low[2] < -0.2 && high[2] <= r && high[2] > 0.2);
	assert_true(low[3] >= (float)-0.1 && high[3] <= (float)0.3 && low[3] < 0 && high[3] > 0.2);
	assert_true(low[4] == 0 && high[4] == 0);
	assert_true(low[5] == 1.5 && high[5] == 1.5);
	/* By the link's number alone. */
	assert_true(w[7] == (float)(-0.25 + 0.5 * random_unit(1, STREAM_WEIGHTS, 7)));
	free(w);
	free(v);
	case_free(c);
}

/* A set of defaults: functions, initial weights, options; what is printed reads back. */
static void defaults_are_a_set(void **state)
{
	(void)state;
	static const char rest[] = "group a 16 input\ngroup h 8\ngroup o 4 output\nconnect a, true -> h\nconnect h -> o\n";
	char text[200];
	for (int set = 0; set < DEFAULTS_COUNT; set++) {
		snprintf(text, sizeof text, "defaults %s\n%s", default_sets[set].name, rest);
		Case *c = good_text(text), *again = good_text(c->net_text);
		assert_int_equal(c->net->defaults, set);
		assert_int_equal(c->net->group[1].fn, default_sets[set].hidden);
		assert_int_equal(c->net->group[2].fn, default_sets[set].output);
		assert_int_equal(c->net->block[0].init, default_sets[set].init);
		assert_string_equal(option_get(&c->cx.keep, &c->net->options, "rule"), option_default("rule", set));
		assert_string_equal(c->net_text, again->net_text);
		assert_null(strstr(c->net_text, "weights"));
		case_free(c);
		case_free(again);
	}
	assert_string_equal(option_default("rule", DEFAULTS_1989), "momentum");
	assert_string_equal(option_default("rate", DEFAULTS_1989), "0.1");
	assert_null(option_default("no-such", DEFAULTS_1989));
}

static void expect_error(const char *outputs, int error)
{
	char text[200];
	snprintf(text, sizeof text, "defaults 2026\ngroup a 2 input\n%s", outputs);
	Case *c = good_text(text);
	assert_int_equal(c->net->options.error, error);
	case_free(c);
}

static void error_follows_the_outputs(void **state)
{
	(void)state;
	expect_error("group o 3 softmax output\nconnect a -> o\n", ERR_DIVERGENCE);
	expect_error("group o 3 output\nconnect a -> o\n", ERR_CROSS_ENTROPY);
	expect_error("group o 3 linear output\nconnect a -> o\n", ERR_SQUARED);
	expect_error("group o 3 output\ngroup p 2 softmax output\nconnect a -> o, p\n", ERR_SQUARED);
	expect_error("group o 3 output\nconnect a -> o\ntrain error squared\n", ERR_SQUARED);
}

/* h: 16 links besides true's, each source has 100 in the block. */
static void ranges_have_names(void **state)
{
	(void)state;
	static const double r[] = { [INIT_FAN_IN] = 0.25, [INIT_GLOROT] = 0.22742941, [INIT_HE] = 0.61237244 };
	for (int init = INIT_FAN_IN; init < INIT_COUNT; init++) {
		char text[200];
		snprintf(text, sizeof text, "group a 16 input\ngroup o 100 output\nconnect a, true -> o weights %s\n",
		         init_names[init]);
		Case *c = good_text(text), *again = good_text(c->net_text);
		assert_string_equal(c->net_text, again->net_text);
		double w[1700], most = 0, bias = 0;
		net_weights(c->net, 1, 0, ALL_LINKS, w);
		for (uint64_t l = 0; l < c->net->links; l++) {
			most = l % 17 ? fmax(most, fabs(w[l])) : most;
			bias = l % 17 ? bias : fmax(bias, fabs(w[l]));
		}
		assert_true(most <= r[init] && most > 0.99 * r[init]);
		assert_true(init == INIT_FAN_IN ? bias > 0.2 : bias == 0);
		case_free(c);
		case_free(again);
	}
}

/* ---- plan ---- */

static void expect_levels(const Plan *plan)
{
	const Net *net = plan->net;
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		uint32_t deepest = 0;
		for (Unit u = g->first; u < g->first + g->size; u++) {
			uint32_t level = 0;
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
				if (plan->level_of[net_source(net, net_target(net, l), l)] > level)
					level = plan->level_of[net_source(net, net_target(net, l), l)];
			if (level > deepest)
				deepest = level;
			if (g->role == ROLE_INPUT || g->role == ROLE_CONTEXT)
				assert_int_equal(plan->level_of[u], 0);
			else if (g->fn != FN_SOFTMAX)
				assert_int_equal(plan->level_of[u], level + 1);
		}
		if (g->fn == FN_SOFTMAX)
			for (Unit u = g->first; u < g->first + g->size; u++)
				assert_int_equal(plan->level_of[u], deepest + 1);
	}
}

/* Every computed unit stands in one span and one bundle of its level, and bundles hold the limit where they can. */
static void expect_cover(const Plan *plan)
{
	const Net *net = plan->net;
	int *spans = calloc(net->units, sizeof *spans), *bundles = calloc(net->units, sizeof *bundles);
	for (uint32_t i = 0; i < plan->levels; i++) {
		const Level *level = &plan->level[i];
		for (uint32_t s = level->span; s < level->span + level->spans; s++)
			for (uint32_t u = 0; u < plan->span[s].count; u++) {
				assert_int_equal(plan->level_of[plan->span[s].first + u], i + 1);
				spans[plan->span[s].first + u]++;
			}
		for (uint32_t b = level->bundle; b < level->bundle + level->bundles; b++) {
			const Bundle *bundle = &plan->bundle[b];
			Unit first = bundle->units.first, end = first + bundle->units.count;
			assert_int_equal(bundle->link, net->row[first]);
			assert_int_equal(bundle->links, net->row[end] - net->row[first]);
			bool fits = !plan->caps.bundle || bundle->links <= plan->caps.bundle;
			assert_true(fits || bundle->units.count == 1);
			for (Unit u = first; u < end; u++) {
				assert_int_equal(plan->level_of[u], i + 1);
				bundles[u]++;
			}
		}
	}
	for (Unit u = 0; u < net->units; u++) {
		assert_int_equal(spans[u], plan->level_of[u] > 0);
		assert_int_equal(bundles[u], plan->level_of[u] > 0);
	}
	free(spans);
	free(bundles);
}

static void plans_hold_every_unit(void **state)
{
	(void)state;
	in_folder("test/golden");
	for (uint32_t bundle = 0; bundle < 60; bundle += 5) {
		Case *c = from_file("kinds.topo", bundle);
		assert_int_equal(c->status, MP_OK);
		expect_levels(c->plan);
		expect_cover(c->plan);
		case_free(c);
	}
}

static void nettalk_has_the_reports_counts(void **state)
{
	(void)state;
	in_folder("examples");
	Case *c = from_file("letters.topo", 0);
	assert_int_equal(c->plan->W, 13826);
	assert_int_equal(c->plan->Wi, 12240);
	assert_int_equal(c->plan->U, 289);
	assert_int_equal(c->plan->levels, 2);
	assert_int_equal(c->net->inputs, 203);
	assert_int_equal(c->net->outputs, 26);
	case_free(c);
}

/* A chain as long as this would overflow a recursive walk. */
static void deep_networks(void **state)
{
	(void)state;
	Case *c = good_text("group a 1 input\ngroup h 1000000\ngroup o 1 output\nconnect a -> h[0]\n"
	                    "connect h[0:999998] -> h[1:999999] one-to-one\nconnect h[999999] -> o\n");
	assert_int_equal(c->plan->levels, 1000001);
	assert_int_equal(c->net->links, 1000001);
	case_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints_are_golden),
		cmocka_unit_test(prints_read_back),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(errors_come_together),
		cmocka_unit_test(remarks_do_not_refuse),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(layout_does_not_matter),
		cmocka_unit_test(texts_are_quoted_where_needed),
		cmocka_unit_test(names_start_at_the_folder),
		cmocka_unit_test(units_have_names),
		cmocka_unit_test(links_are_canonical),
		cmocka_unit_test(order_of_lines_does_not_matter),
		cmocka_unit_test(density_is_a_share),
		cmocka_unit_test(fingerprint_is_of_the_structure),
		cmocka_unit_test(weights_are_in_range),
		cmocka_unit_test(defaults_are_a_set),
		cmocka_unit_test(error_follows_the_outputs),
		cmocka_unit_test(ranges_have_names),
		cmocka_unit_test(plans_hold_every_unit),
		cmocka_unit_test(nettalk_has_the_reports_counts),
		cmocka_unit_test(deep_networks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
