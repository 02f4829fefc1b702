/* SPDX-License-Identifier: MIT */
/* The public calls on data and networks: what they give, what they refuse, and that messages stay with their handle. */
#include <locale.h>
#include <math.h>
#include <unistd.h>

#include "api.h"
#include "test.h"

static const char net_text[] = "group in 2 input\ngroup out 3 softmax output\nconnect in[0], true -> out\n"
							   "connect in[1] -> out[0:1] frozen\n";

static void collect(void *user, const char *text, size_t len)
{
	Buf *b = user;
	buf_add(b, text, len);
}

static void networks_describe_themselves(void **state)
{
	(void)state;
	mp_net *net;
	assert_int_equal(mp_net_parse(&net, net_text, "n.topo", NULL), MP_OK);
	const mp_net_info *i = mp_net_get_info(net);
	assert_string_equal(i->name, "n.topo");
	assert_true(i->groups == 2 && i->units == 5 && i->inputs == 2 && i->outputs == 3 && i->levels == 1);
	assert_true(i->connections == 8 && i->input_connections == 8);
	assert_string_equal(mp_net_get_group(net, 1)->function, "softmax");
	assert_string_equal(mp_net_get_group(net, 0)->role, "input");
	assert_int_equal(i->blocks, 3);
	assert_string_equal(mp_net_get_block(net, 0)->from, "in[0]");
	assert_string_equal(mp_net_get_block(net, 1)->from, "true");
	assert_string_equal(mp_net_get_block(net, 2)->to, "out[0:1]");
	assert_true(mp_net_get_block(net, 2)->frozen && mp_net_get_block(net, 2)->connections == 2);
	mp_net_close(net);
	assert_int_equal(mp_net_open(&net, "/no/such/file.topo", NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_net_messages(net), "/no/such/file.topo"));
	mp_net_close(net);
	mp_net_close(NULL);
	assert_non_null(strstr(mp_net_messages(NULL), "memory"));
}

static void stages_are_printed(void **state)
{
	(void)state;
	Ctx cx;
	mp_net *net;
	ctx_init(&cx, NULL);
	Buf out = { .arena = &cx.keep };
	assert_int_equal(mp_net_parse(&net, net_text, "n.topo", NULL), MP_OK);
	const char *stages[] = { "net", "plan", "program" };
	for (size_t i = 0; i < COUNT(stages); i++) {
		out.len = 0;
		assert_int_equal(mp_net_print(net, stages[i], i == 2 ? "ref" : NULL, collect, &out), MP_OK);
		assert_non_null(strstr(out.s, "softmax"));
	}
	assert_int_equal(mp_net_print(net, "soup", NULL, collect, &out), MP_BAD_INPUT);
	assert_non_null(strstr(mp_net_messages(net), "the stages are"));
	assert_int_equal(mp_net_print(net, "plan", "abacus", collect, &out), MP_BAD_INPUT);
	assert_non_null(strstr(mp_net_messages(net), "abacus"));
	mp_net_close(net);
	ctx_free(&cx);
}

static void data_from_memory(void **state)
{
	(void)state;
	float x[] = { 1, 2, 3, 4, 5, 6 }, y[] = { 0, 1, NAN }, row[2], target;
	uint64_t seq[] = { 0, 1, 3 };
	mp_data *d;
	const mp_data_info *i;
	assert_int_equal(mp_data_new(&d, 3, 2, 1, x, y, seq, 2, NULL), MP_OK);
	assert_int_equal(mp_data_get_info(d, &i), MP_OK);
	assert_true(i->cases == 3 && i->inputs == 2 && i->targets == 1 && i->sequences == 2 && i->missing == 1);
	assert_true(i->min == 1 && i->max == 6 && i->density == 1);
	mp_data_get_case(d, 1, row, &target);
	assert_true(row[0] == 3 && row[1] == 4 && target == 1);
	mp_data_get_case(d, 2, NULL, NULL);
	assert_string_equal(mp_data_get_name(d, 0), "");
	double o = 0.25;
	assert_string_equal(mp_data_get_guess(d, &o), "0.25");
	assert_int_equal(mp_data_scale(d, "range", NULL), MP_OK);
	assert_int_equal(mp_data_get_info(d, &i), MP_OK);
	assert_true(i->min == 0 && i->max == 1);
	assert_string_equal(i->scale, "range");
	mp_data_close(d);
	assert_int_equal(mp_data_new(&d, 0, 2, 1, x, y, NULL, 0, NULL), MP_BAD_INPUT);
	mp_data_close(d);
	assert_int_equal(mp_data_new(&d, UINT64_MAX / 4, 2, 1, x, y, NULL, 0, NULL), MP_NO_MEMORY);
	mp_data_close(d);
	x[1] = INFINITY;
	assert_int_equal(mp_data_new(&d, 3, 2, 1, x, y, NULL, 0, NULL), MP_BAD_INPUT);
	assert_true(*mp_data_messages(d));
	mp_data_close(d);
	mp_data_close(NULL);
	assert_non_null(strstr(mp_data_messages(NULL), "memory"));
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void data_is_split_scaled_and_saved(void **state)
{
	(void)state;
	mp_data *d, *first, *rest, *other;
	const mp_data_info *a, *b;
	const char *path = "api-split.npz";
	assert_int_equal(mp_data_open(&d, "make:spirals", NULL, NULL), MP_OK);
	assert_int_equal(mp_data_split(d, 0.75, 3, &first, &rest), MP_OK);
	mp_data_get_info(first, &a);
	mp_data_get_info(rest, &b);
	assert_true(a->cases + b->cases == 194 && a->cases > 130 && a->cases < 160);
	assert_int_equal(mp_data_scale(first, "sideways", NULL), MP_BAD_INPUT);
	assert_int_equal(mp_data_scale(first, "zscore", rest), MP_OK);
	assert_int_equal(mp_data_save(first, path), MP_OK);
	assert_int_equal(mp_data_open(&other, path, NULL, NULL), MP_OK);
	mp_data_get_info(other, &a);
	assert_string_equal(a->scale, "zscore");
	mp_data_close(other);
	assert_int_equal(mp_data_open(&other, "make:xor", NULL, NULL), MP_OK);
	assert_int_equal(mp_data_save(other, "/no/such/folder/x.npz"), MP_FAILED);
	mp_data_close(other);
	assert_int_equal(mp_data_open(&other, "make:parity:3", NULL, NULL), MP_OK);
	assert_int_equal(mp_data_scale(other, "range", d), MP_BAD_INPUT); /* three inputs and two */
	mp_data_close(other);
	mp_data_close(first);
	mp_data_close(rest);
	assert_int_equal(mp_data_split(d, 2, 3, &first, &rest), MP_BAD_INPUT);
	mp_data_close(first);
	mp_data_close(rest);
	mp_data_close(d);
	unlink(path);
}

static void guesses_have_names(void **state)
{
	(void)state;
	mp_data *d;
	float y[26];
	double out[26];
	assert_int_equal(mp_data_open(&d, "make:letters", NULL, NULL), MP_OK);
	mp_data_get_case(d, 0, NULL, y);
	for (int i = 0; i < 26; i++)
		out[i] = y[i];
	assert_int_equal(strlen(mp_data_get_guess(d, out)), 2);
	assert_non_null(strstr(mp_data_get_name(d, 0), "/0"));
	mp_data_close(d);
	assert_int_equal(mp_data_open(&d, "make:encoder:4-2", NULL, NULL), MP_OK);
	double four[] = { 0.1, 0.2, 0.9, 0.3 };
	assert_string_equal(mp_data_get_guess(d, four), "2");
	mp_data_close(d);
}

/* A run remembers the classes it was trained on, so that a file with other classes is read as it was. */
static void classes_go_with_the_weights(void **state)
{
	(void)state;
	static const char text[] = "group a 1 input\ngroup o 3 softmax output\nconnect a, true -> o\n";
	const char *csv = "api-classes.csv", *weights = "api-classes.safetensors";
	mp_net *net;
	mp_run *run, *other;
	mp_data *d, *first, *rest;
	uint32_t count;
	put_file(csv, "a,kind\n1,dog\n2,cat\n3,ant\n4,dog\n");
	assert_int_equal(mp_data_open(&d, csv, NULL, NULL), MP_OK);
	assert_string_equal(mp_data_get_classes(d, &count)[2], "dog");
	assert_int_equal(count, 3);
	assert_int_equal(mp_data_split(d, 0.5, 1, &first, &rest), MP_OK);
	assert_string_equal(mp_data_get_classes(rest, &count)[0], "ant");
	assert_int_equal(count, 3);
	mp_data_close(first);
	mp_data_close(rest);

	assert_int_equal(net_parse_1989(&net, text, "c.topo", NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_null(mp_run_get_classes(run, &count));
	assert_string_equal(mp_run_get_figures(run), "{}");
	assert_int_equal(mp_run_set(run, "error", "divergence"), MP_OK);
	assert_int_equal(mp_run_set(run, "epochs", "2"), MP_OK);
	assert_int_equal(mp_run_train(run, d, NULL, NULL, NULL), MP_OK);
	mp_data_close(d);
	assert_int_equal(mp_run_save(run, weights), MP_OK);
	assert_int_equal(mp_run_new(&other, net, NULL), MP_OK);
	assert_int_equal(mp_run_load(other, weights), MP_OK);
	mp_data_options reading = { .size = sizeof reading, .classes = mp_run_get_classes(other, &count) };
	reading.class_count = count;
	assert_int_equal(count, 3);
	assert_string_equal(reading.classes[1], "cat");

	put_file(csv, "a,kind\n1,dog\n2,cat\n");
	assert_int_equal(mp_data_open(&d, csv, &reading, NULL), MP_OK);
	float y[3];
	mp_data_get_case(d, 0, NULL, y);
	assert_true(y[0] == 0 && y[1] == 0 && y[2] == 1);
	mp_result r = { .size = sizeof r };
	assert_int_equal(mp_run_test(other, d, &r, NULL), MP_OK);
	mp_data_close(d);
	put_file(csv, "a,kind\n1,dog\n2,elk\n");
	assert_int_equal(mp_data_open(&d, csv, &reading, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_data_messages(d), "api-classes.csv:3:3: error: 'elk'"));
	assert_null(mp_data_get_classes(d, &count));
	assert_int_equal(count, 0);
	mp_data_close(d);
	assert_int_equal(mp_data_open(&d, "make:xor", &reading, NULL), MP_OK); /* nothing to do with labels */
	assert_null(mp_data_get_classes(d, &count));
	mp_data_close(d);
	mp_run_close(other);
	mp_run_close(run);
	mp_net_close(net);
	unlink(csv);
	unlink(weights);
}

static void weights_go_in_and_out(void **state)
{
	(void)state;
	mp_net *net;
	mp_run *run;
	mp_data * xor ;
	double w[8], back[8];
	assert_int_equal(mp_net_parse(&net, net_text, "n.topo", NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_get_weights(run, w, 7), MP_BAD_INPUT);
	assert_int_equal(mp_run_get_weights(run, w, 8), MP_OK);
	for (int i = 0; i < 8; i++)
		w[i] = i / 4.0;
	assert_int_equal(mp_run_set_weights(run, w, 8), MP_OK);
	assert_int_equal(mp_run_get_weights(run, back, 8), MP_OK);
	assert_memory_equal(w, back, sizeof w);
	assert_null(mp_run_get(run, "colour"));
	assert_int_equal(mp_run_load(run, "/no/such.safetensors"), MP_BAD_INPUT);
	assert_int_equal(mp_run_save(run, "/no/such/folder/w.safetensors"), MP_FAILED);
	assert_int_equal(mp_data_open(&xor, "make:xor", NULL, NULL), MP_OK);
	mp_result r = { .size = sizeof r };
	assert_int_equal(mp_run_test(run, xor, &r, NULL), MP_BAD_INPUT); /* one target, three outputs */
	assert_int_equal(mp_run_write_outputs(run, "/no/such/folder/o.npy", w, 2), MP_FAILED);
	mp_data_close(xor);
	mp_run_close(run);
	mp_net_close(net);
	assert_non_null(strstr(mp_run_messages(NULL), "memory"));
}

/* A program around us may write numbers with a comma; files never do. */
static void decimal_commas_do_not_matter(void **state)
{
	(void)state;
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE" };
	bool found = false;
	for (size_t i = 0; i < COUNT(names) && !found; i++)
		found = setlocale(LC_NUMERIC, names[i]) != NULL;
	if (!found)
		skip();
	mp_net *net;
	mp_run *run;
	assert_int_equal(
		mp_net_parse(&net, "group a 1 input\ngroup b 1 output\nconnect a -> b\ntrain rate 0.25\n", "c.topo", NULL),
		MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_string_equal(mp_run_get(run, "rate"), "0.25");
	mp_run_close(run);
	mp_net_close(net);
	setlocale(LC_NUMERIC, "C");
}

static void errors_are_data(void **state)
{
	(void)state;
	mp_net *net;
	assert_int_equal(mp_net_parse(&net, "group in 2 input\ngroup out 1 output\nconnect im -> out\n", "n.topo", NULL),
	                 MP_BAD_INPUT);
	const mp_error *e = mp_net_get_error(net, 0);
	assert_true(e->size == sizeof *e && e->severity == MP_ERROR);
	assert_string_equal(e->file, "n.topo");
	assert_true(e->line == 3 && e->column == 9 && e->offset == 44);
	assert_string_equal(e->text, "there is no group 'im'");
	assert_string_equal(e->excerpt, "  connect im -> out\n          ^\n");
	assert_string_equal(e->remedy, "did you mean 'in'?");
	assert_string_equal(mp_net_messages(net), "n.topo:3:9: error: there is no group 'im'\n"
	                                          "  connect im -> out\n          ^\n  did you mean 'in'?\n");
	assert_null(mp_net_get_error(net, 1));
	mp_net_close(net);
	assert_string_equal(mp_net_get_error(NULL, 0)->text, "out of memory");
	assert_null(mp_run_get_error(NULL, 1));

	mp_data *d;
	assert_int_equal(mp_data_open(&d, "make:soup", NULL, NULL), MP_BAD_INPUT);
	assert_null(mp_data_get_error(d, 0)->file);
	assert_true(mp_data_get_error(d, 0)->line == 0 && mp_data_get_error(d, 0)->remedy);
	mp_data_close(d);

	mp_run *run;
	assert_int_equal(mp_net_parse(&net, net_text, "n.topo", NULL), MP_OK);
	assert_null(mp_net_get_error(net, 0));
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_set(run, "rate", "fast"), MP_BAD_INPUT);
	assert_string_equal(mp_run_get_error(run, 0)->text, "rate cannot be 'fast'");
	assert_int_equal(mp_run_set(run, "rate", "1"), MP_OK);
	assert_null(mp_run_get_error(run, 0));                     /* of the last call only */
	assert_int_equal(mp_run_set(run, "max-iter", "7"), MP_OK); /* a word of other programs */
	assert_string_equal(mp_run_get(run, "epochs"), "7");
	assert_string_equal(mp_run_get(run, "max-iter"), "7");
	assert_int_equal(mp_run_set(run, "hidden-layer-sizes", "7"), MP_BAD_INPUT);
	assert_int_equal(mp_run_set(run, "lr", "7"), MP_BAD_INPUT);
	assert_null(mp_run_get(run, "lr"));
	mp_run_close(run);
	mp_net_close(net);
}

/* Structs of programs that were built with another version. */
static void structs_have_a_size(void **state)
{
	(void)state;
	struct {
		mp_data_options known;
		const char *newer;
	} later = { .known = { .size = sizeof later } };
	mp_data *d;
	mp_net *net;
	assert_int_equal(mp_data_open(&d, "make:xor", &later.known, NULL), MP_OK);
	mp_data_close(d);
	later.newer = "set";
	assert_int_equal(mp_data_open(&d, "make:xor", &later.known, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_data_messages(d), "mp_data_options.size"));
	mp_data_close(d);
	assert_int_equal(mp_data_open(&d, "make:xor", &(mp_data_options){ 0 }, NULL), MP_BAD_INPUT);
	mp_data_close(d);
	/* An older one ends before `first`: what lies there is not read. */
	mp_data_options old = { .size = offsetof(mp_data_options, first), .first = 1 };
	const mp_data_info *info;
	assert_int_equal(mp_data_open(&d, "make:xor", &old, NULL), MP_OK);
	assert_int_equal(mp_data_get_info(d, &info), MP_OK);
	assert_true(info->cases == 4 && info->size == sizeof *info);
	assert_int_equal(mp_net_parse(&net, net_text, "n.topo", &(mp_allocator){ 0 }), MP_BAD_INPUT);
	assert_non_null(strstr(mp_net_messages(net), "mp_allocator.size"));
	mp_net_close(net);

	mp_run *run;
	mp_result result = { .size = offsetof(mp_result, error), .error = 17 };
	assert_int_equal(mp_net_parse(&net, "group a 2 input\ngroup b 1 output\nconnect a -> b\n", "n.topo", NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_test(run, d, &result, NULL), MP_OK);
	assert_true(result.size == offsetof(mp_result, error) && result.cases == 4 && result.error == 17);
	result.size = 0;
	assert_int_equal(mp_run_test(run, d, &result, NULL), MP_BAD_INPUT);
	assert_true(mp_run_get_report(run)->size == sizeof(mp_report));
	mp_run_close(run);
	mp_net_close(net);
	mp_data_close(d);
}

static bool has(const char *const *list, const char *word)
{
	while (*list && strcmp(*list, word) != 0)
		list++;
	return *list;
}

/* All that a form with a field for each option needs. */
static void options_describe_themselves(void **state)
{
	(void)state;
	static const char *const owners[] = { "general", "gf11", "cpu", "cuda", "ranks", NULL };
	const mp_option *o;
	for (size_t i = 0; (o = mp_option_at(i)); i++) {
		assert_true(o->size == sizeof *o && *o->name && *o->help && has(owners, o->owner));
		assert_int_equal(o->choices != NULL, o->type == MP_OPTION_CHOICE);
		assert_int_equal(o->argument == NULL, o->type == MP_OPTION_CHOICE || o->type == MP_OPTION_FLAG);
		if (o->type == MP_OPTION_CHOICE)
			assert_true(has(o->choices, o->default_value));
		if (o->type == MP_OPTION_INT || o->type == MP_OPTION_REAL)
			assert_true(o->min < o->max);
		if (!strcmp(o->name, "procs"))
			assert_true(!strcmp(o->owner, "gf11") && o->type == MP_OPTION_INT && o->max == 4096 && o->changes_result);
		if (!strcmp(o->name, "input"))
			assert_true(!strcmp(o->owner, "cpu") && has(o->choices, "dense") && !o->changes_result);
	}
}

static void the_build_describes_itself(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Buf out = { .arena = &cx.keep };
	assert_int_equal(mp_build_describe(collect, &out), MP_OK);
	assert_non_null(strstr(out.s, "\"targets\": [\"cpu\", \"ref\", \"cuda\", \"gf11\"]"));
	assert_non_null(strstr(out.s, "\"isas\": [\"generic\""));
	ctx_free(&cx);
}

/* Sizes that the file leaves open come from data or from a file of weights. */
static void sizes_come_from_the_data(void **state)
{
	(void)state;
	static const char text[] =
		"group in auto input\ngroup h 3\ngroup out auto output\nconnect in -> h\n"
		"connect h[0:1] -> out\nconnect in[0] -> h[2] weights 1 1\ndata \"make:parity:4\" first 8\n";
	mp_net *net;
	mp_data *data;
	mp_run *run;
	assert_int_equal(mp_net_parse(&net, text, "n.topo", NULL), MP_OK);
	const mp_net_info *info = mp_net_get_info(net);
	assert_true(info->open && info->data_options->first == 8);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(run), "n.topo:1:7: error: the size of input group 'in'"));
	mp_run_close(run);
	assert_int_equal(mp_net_print(net, "net", NULL, NULL, NULL), MP_BAD_INPUT);
	assert_int_equal(mp_net_resolve(net, NULL, NULL), MP_BAD_INPUT);
	assert_int_equal(mp_data_open(&data, "make:parity:4", NULL, NULL), MP_OK);
	assert_int_equal(mp_net_resolve(net, data, NULL), MP_BAD_INPUT); /* in[0] -> h[2] twice: found only now */
	mp_net_close(net);

	static const char good[] = "group in auto input\ngroup h 3\ngroup out auto output\nconnect in, true -> h\n"
							   "connect h -> out\n";
	assert_int_equal(mp_net_parse(&net, good, "n.topo", NULL), MP_OK);
	assert_int_equal(mp_net_resolve(net, data, NULL), MP_OK);
	info = mp_net_get_info(net);
	assert_true(!info->open && info->inputs == 4 && info->outputs == 1 && info->connections == 18);
	assert_int_equal(mp_net_resolve(net, NULL, NULL), MP_OK); /* nothing is open */
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_save(run, "sizes.safetensors"), MP_OK);
	mp_run_close(run);
	mp_net_close(net);

	assert_int_equal(mp_net_parse(&net, good, "n.topo", NULL), MP_OK);
	assert_int_equal(mp_net_resolve(net, NULL, "sizes.safetensors"), MP_OK);
	assert_int_equal(mp_net_get_info(net)->inputs, 4);
	unlink("sizes.safetensors");
	mp_net_close(net);
	mp_data_close(data);
}

static void words_of_other_programs(void **state)
{
	(void)state;
	const char *same;
	assert_non_null(strstr(mp_option_hint("lr", &same), "summed over the batch"));
	assert_null(same);
	assert_non_null(mp_option_hint("batch-size", &same));
	assert_string_equal(same, "batch");
	assert_null(mp_option_hint("nonsense", &same));
	const mp_option *o;
	for (size_t i = 0; (o = mp_option_at(i)); i++)
		assert_null(mp_option_hint(o->name, &same));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_come_from_the_data),
		cmocka_unit_test(words_of_other_programs),
		cmocka_unit_test(networks_describe_themselves),
		cmocka_unit_test(stages_are_printed),
		cmocka_unit_test(data_from_memory),
		cmocka_unit_test(data_is_split_scaled_and_saved),
		cmocka_unit_test(guesses_have_names),
		cmocka_unit_test(classes_go_with_the_weights),
		cmocka_unit_test(weights_go_in_and_out),
		cmocka_unit_test(decimal_commas_do_not_matter),
		cmocka_unit_test(errors_are_data),
		cmocka_unit_test(structs_have_a_size),
		cmocka_unit_test(options_describe_themselves),
		cmocka_unit_test(the_build_describes_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
