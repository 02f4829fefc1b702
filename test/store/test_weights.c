/* SPDX-License-Identifier: MIT */
/* Weights as other programs see them: names and shapes, files that others wrote, files of other networks. */
#include "runs.h"
#include "store.h"

/* ---- the layout other programs see ---- */

typedef struct Peek {
	Src *src;
	SafeFile *file;
	const char *path;
} Peek;

static void peek_body(Ctx *cx, void *arg)
{
	Peek *p = arg;
	p->src = src_open(cx, &cx->scratch, p->path);
	p->src->binary = true;
	p->file = safe_read(cx, p->src);
}

static void expect_tensor(const SafeFile *f, const char *name, int type, int dims, uint64_t d0, uint64_t d1)
{
	const Tensor *t = safe_find(f, name);
	if (!t)
		print_error("no tensor %s\n", name);
	assert_non_null(t);
	assert_int_equal(t->type, type);
	assert_int_equal(t->dims, dims);
	assert_int_equal(t->dim[0], d0);
	if (dims == 2)
		assert_int_equal(t->dim[1], d1);
}

/* Weight of the link between two units, by the network's own numbering. */
static double weight_of(mp_run *run, Unit from, Unit to)
{
	const Net *net = run->net;
	double *w = malloc(net->links * sizeof *w), found = NAN;
	run->target->get(run->program, 0, 0, ALL_LINKS, w);
	for (uint64_t i = net->row[to]; i < net->row[to + 1]; i++)
		if (net_source(net, net_target(net, i), i) == from)
			found = w[i];
	free(w);
	return found;
}

static void tensors_read_naturally(void **state)
{
	(void)state;
	mp_net *net = net_of("group a 3 input\ngroup h 4\ngroup o 3 output\nconnect a -> h\nconnect true -> h\n"
	                     "connect h[0:2] -> o\nconnect h[3] -> o[1]\nconnect true -> o[2]\n"
	                     "connect a -> o one-to-one\n"
	                     "connect h[0] -> h[2]\n");
	mp_run *run = travelled(net, "momentum", true);
	need(run, mp_run_save(run, in_folder("a")));
	Ctx cx;
	ctx_init(&cx, NULL);
	Peek p = { .path = in_folder("a") };
	assert_int_equal(guarded(&cx, peek_body, &p), MP_OK);
	const SafeFile *f = p.file;
	assert_true(f->verified);
	assert_int_equal(f->data % 64, 0);
	assert_int_equal(f->tensors, 18);
	expect_tensor(f, "a_to_h", SAFE_F64, 2, 4, 3);
	expect_tensor(f, "h_bias", SAFE_F64, 1, 4, 0);
	expect_tensor(f, "h[0:2]_to_o", SAFE_F64, 2, 3, 3);
	expect_tensor(f, "h_to_o.values", SAFE_F64, 1, 1, 0);
	expect_tensor(f, "h_to_o.from", SAFE_I32, 1, 1, 0);
	expect_tensor(f, "h_to_o.to", SAFE_I32, 1, 1, 0);
	expect_tensor(f, "o_bias.values", SAFE_F64, 1, 1, 0);
	expect_tensor(f, "o_bias.to", SAFE_I32, 1, 1, 0);
	expect_tensor(f, "a_to_o.values", SAFE_F64, 1, 3, 0);
	expect_tensor(f, "h_to_h.values", SAFE_F64, 1, 1, 0);
	expect_tensor(f, "state.step", SAFE_F64, 1, net->net->links, 0);
	expect_tensor(f, "best.weights", SAFE_F64, 1, net->net->links, 0);
	expect_tensor(f, "scale.offset", SAFE_F64, 1, 3, 0);

	Unit a = net->net->group[0].first, h = net->net->group[1].first, o = net->net->group[2].first;
	for (Unit to = 0; to < 4; to++)
		for (Unit from = 0; from < 3; from++)
			assert_true(safe_number(f, safe_find(f, "a_to_h"), to * 3 + from) == weight_of(run, a + from, h + to));
	for (Unit to = 0; to < 4; to++)
		assert_true(safe_number(f, safe_find(f, "h_bias"), to) == weight_of(run, 0, h + to));
	assert_true(safe_number(f, safe_find(f, "h_to_o.values"), 0) == weight_of(run, h + 3, o + 1));
	assert_true(safe_number(f, safe_find(f, "h_to_o.from"), 0) == 3);
	assert_true(safe_number(f, safe_find(f, "h_to_o.to"), 0) == 1);
	assert_true(safe_number(f, safe_find(f, "o_bias.to"), 0) == 2);
	for (uint32_t i = 0; i < f->tensors; i++) /* aligned for its type, so that views need no copy */
		assert_int_equal(f->tensor[i].off % (f->tensor[i].bytes / f->tensor[i].count), 0);
	assert_string_equal(safe_meta(f, "format"), "microprop 1");
	assert_string_equal(safe_meta(f, "rng"), "philox4x32-10");
	assert_string_equal(safe_meta(f, "network"), net->net->fingerprint);
	assert_string_equal(safe_meta(f, "seconds"), "0x1.56e1fc2f8f359p-997");
	assert_string_equal(safe_meta(f, "epoch"), "18");
	assert_null(safe_meta(f, "nothing"));
	ctx_free(&cx);
	mp_run_close(run);
	mp_net_close(net);
}

static void fingerprints_are_of_the_stored_type(void **state)
{
	(void)state;
	double w[1000];
	float single[1000];
	char one[33], two[33], three[33];
	for (int i = 0; i < 1000; i++) {
		w[i] = 1.0 / (i + 3);
		single[i] = (float)w[i];
	}
	weights_fingerprint(w, 1000, true, one);
	weights_fingerprint(w, 1000, false, two);
	for (int i = 0; i < 1000; i++)
		w[i] = single[i];
	weights_fingerprint(w, 1000, false, three);
	assert_int_equal(strlen(one), 32);
	assert_string_not_equal(one, two);
	assert_string_equal(two, three);
	w[999] = -w[999];
	weights_fingerprint(w, 1000, false, three);
	assert_string_not_equal(two, three);
	weights_fingerprint(w, 0, true, one);
	assert_string_equal(one, "99aa06d3014798d86001c324468d497f"); /* XXH3-128 of nothing */
}

static void text_is_quoted(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Buf b = { .arena = &cx.scratch };
	json_put(&b, "a\"b\\c\n\x01 \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xFF \xC0\x80 \xED\xA0\x80 \xC3");
	json_put(&b, "\xE0\x80\x80|\xE0\xA0\x80|\xF0\x80\x80\x80|\xF0\x90\x80\x80|"
	             "\xED\x80\x80|\xF4\x80\x80\x80|\xF4\x90\x80\x80");
#define BAD "\xEF\xBF\xBD" /* U+FFFD */
	assert_string_equal(b.s, "\"a\\\"b\\\\c\\n\\u0001 \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 " BAD " " BAD BAD
	                         " " BAD BAD BAD " " BAD "\"\"" BAD BAD BAD "|\xE0\xA0\x80|" BAD BAD BAD BAD
	                         "|\xF0\x90\x80\x80|\xED\x80\x80|\xF4\x80\x80\x80|" BAD BAD BAD BAD "\"");
	ctx_free(&cx);
}

/* ---- other networks ---- */

static void expect_load(const mp_net *net, const char *path, mp_status status, const char *words)
{
	mp_run *run = run_of(net);
	mp_status s = mp_run_load(run, path);
	if (s != status)
		print_error("%s", mp_run_messages(run));
	assert_int_equal(s, status);
	expect_words(mp_run_messages(run), words);
	mp_run_close(run);
}

/* `text` with every `from` in it replaced by `to`. */
static char *edited(const char *text, const char *from, const char *to)
{
	char *out = calloc(1, 2000), *end = out;
	for (const char *at = text; *at;) {
		bool here = strncmp(at, from, strlen(from)) == 0;
		end += sprintf(end, "%.*s", here ? (int)strlen(to) : 1, here ? to : at);
		at += here ? strlen(from) : 1;
	}
	return out;
}

static void differences_are_named(void **state)
{
	(void)state;
	static const char text[] = "group a 3 input\ngroup h 6\ngroup c 6 context\ngroup o 2 output\ngroup p 2 output\n"
							   "connect a, c, true -> h\nconnect h -> o\nconnect a -> o random 0.5\nconnect h -> p\n"
							   "copy h -> c start 0.5\n";
	static const struct {
		const char *from, *to, *words;
	} cases[] = {
		{ " 6", " 5", "net.topo:3:7: error: the file has group h with 6 units, the network has 5" },
		{ "h 6", "h 6 tanh", "functions differ: group h is sigmoid in the file, tanh in the network" },
		{ "h 6", "h 6 output", "roles differ: group h is hidden in the file, output in the network" },
		{ "h", "k", "the file has no group k" },
		{ "h", "k", "the file has a group h, the network has none" },
		{ "o 2 output\ngroup p", "p 2 output\ngroup o",
		  "groups stand in another order: the file has o here, the network p" },
		{ "start 0.5", "start 0.25", "copies differ" },
		{ "h -> o", "h, true -> o", "tensor o_bias is missing" },
		{ ", true", "", "the file has links h_bias, the network has not" },
		{ "h -> o", "h[0:4] -> o", "tensor h[0:4]_to_o is missing" },
		{ " random 0.5", "", "tensor a_to_o is missing" },
		{ "a -> o random 0.5", "a[0] -> o[0]", "tensor a_to_o.values has the shape" },
	};
	mp_net *net = net_of(text);
	mp_run *run = travelled(net, "momentum", false);
	need(run, mp_run_save(run, in_folder("a")));
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *changed = edited(text, cases[i].from, cases[i].to);
		mp_net *other = net_of(changed);
		expect_load(other, in_folder("a"), MP_BAD_INPUT, cases[i].words);
		mp_run *resumed = run_of(other);
		assert_int_equal(mp_run_resume(resumed, in_folder("a")), MP_BAD_INPUT);
		expect_words(mp_run_messages(resumed), cases[i].words);
		assert_null(resumed->program);
		mp_run_close(resumed);
		mp_net_close(other);
		free(changed);
	}
	mp_run_close(run);
	mp_net_close(net);
}

static void other_sparse_links_are_named(void **state)
{
	(void)state;
	static const char *const nets[] = {
		"group a 3 input\ngroup o 3 output\nconnect a[0] -> o[0]\nconnect a[1] -> o[1]\nconnect true -> o[0]\n",
		"group a 3 input\ngroup o 3 output\nconnect a[0] -> o[0]\nconnect a[2] -> o[1]\nconnect true -> o[0]\n",
		"group a 3 input\ngroup o 3 output\nconnect a[0] -> o[0]\nconnect a[1] -> o[1]\nconnect true -> o[1]\n",
	};
	mp_net *first = net_of(nets[0]), *second = net_of(nets[1]), *third = net_of(nets[2]);
	mp_run *run = run_of(first);
	need(run, mp_run_save(run, in_folder("a")));
	expect_load(second, in_folder("a"), MP_BAD_INPUT,
	            "links differ: a_to_o of the file has one from unit 1 to unit 1, the network has not");
	expect_load(third, in_folder("a"), MP_BAD_INPUT,
	            "links differ: o_bias of the file has one from unit 0 to unit 0, the network has not");
	mp_run_close(run);
	mp_net_close(first);
	mp_net_close(second);
	mp_net_close(third);
}

/* The same links in other blocks are the same network: some frozen, say. */
static void blocks_may_be_cut_otherwise(void **state)
{
	(void)state;
	static const char *const nets[] = {
		"group a 4 input\ngroup h 3\ngroup o 2 output\nconnect a -> h\nconnect true -> h\nconnect h -> o\n",
		"group a 4 input\ngroup h 3\ngroup o 2 output\nconnect h -> o[0]\nconnect a[0:1] -> h frozen\n"
		"connect h -> o[1] rate 2\n"
		"connect a[3] -> h[1]\nconnect a[2] -> h\nconnect a[3] -> h[0]\nconnect a[3] -> h[2]\n"
		"connect true -> h[0:1]\n"
		"connect true -> h[2]\n",
	};
	for (int k = 0; k < 2; k++) {
		mp_net *first = net_of(nets[k]), *second = net_of(nets[1 - k]);
		assert_string_equal(first->net->fingerprint, second->net->fingerprint);
		mp_run *run = travelled(first, "adam", false), *other = run_of(second);
		need(run, mp_run_save(run, in_folder("a")));
		need(other, mp_run_resume(other, in_folder("a")));
		for (int i = 0; i <= 2; i++)
			same_part(run, other, i);
		mp_run_close(run);
		mp_run_close(other);
		mp_net_close(first);
		mp_net_close(second);
	}
}

/* ---- files of other programs ---- */

static void put_safetensors(const char *path, const char *header, const void *data, size_t len)
{
	char bytes[4096];
	uint64_t size = strlen(header);
	memcpy(bytes, &size, 8);
	memcpy(bytes + 8, header, size);
	memcpy(bytes + 8 + size, data, len);
	put_bytes(path, bytes, 8 + size + len);
}

static void other_programs_weights_load(void **state)
{
	(void)state;
	static const float f32[] = { 1, -2, 0.5f, 4, 0.25f, -8 };
	static const double f64[] = { 1, -2, 0.5, 4, 0.25, -8 };
	static const uint16_t f16[] = { 0x3C00, 0xC000, 0x3800, 0x4400, 0x3400, 0xC800 };
	static const uint16_t bf16[] = { 0x3F80, 0xC000, 0x3F00, 0x4080, 0x3E80, 0xC100 };
	static const struct {
		const char *type;
		const void *data;
		size_t len;
	} cases[] = {
		{ "F32", f32, sizeof f32 },
		{ "F64", f64, sizeof f64 },
		{ "F16", f16, sizeof f16 },
		{ "BF16", bf16, sizeof bf16 },
	};
	mp_net *net = net_of(tiny);
	for (size_t i = 0; i < COUNT(cases); i++) {
		char header[500];
		size_t cut = cases[i].len / 6 * 4;
		snprintf(header, sizeof header,
		         " {\"a_to_o\":{\"dtype\":\"%s\",\"shape\":[2,2],\"data_offsets\":[0,%zu]}, \"o_bias\" :"
		         "{\"shape\":[2],\"dtype\":\"%s\","
		         "\"data_offsets\":[%zu,%zu]}}   ",
		         cases[i].type, cut, cases[i].type, cut, cases[i].len);
		put_safetensors(in_folder("x"), header + 1, cases[i].data, cases[i].len);
		mp_run *run = run_of(net);
		need(run, mp_run_load(run, in_folder("x")));
		assert_string_equal(mp_run_messages(run), "");
		static const double canonical[] = { 0.25, 1, -2, -8, 0.5, 4 };
		double w[6];
		need(run, mp_run_get_weights(run, w, 6));
		same_vector(w, canonical, 6);
		mp_run_close(run);
		run = run_of(net);
		assert_int_equal(mp_run_resume(run, in_folder("x")), MP_BAD_INPUT);
		expect_words(mp_run_messages(run), "weights alone");
		mp_run_close(run);
	}
	mp_net_close(net);
}

static void halves_are_read_exactly(void **state)
{
	(void)state;
	static uint16_t f16[] = { 0x0000, 0x8000, 0x0001, 0x03FF, 0x7BFF, 0xFBFF };
	static const double value[] = { 0.0, -0.0, 0x1p-24, 0x3FFp-24, 65504, -65504 };
	static const char header[] = "{\"o_bias\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
								 "\"a_to_o\":{\"dtype\":\"F16\",\"shape\":[1,5],\"data_offsets\":[2,12]}}";
	mp_net *net = net_of("group a 5 input\ngroup o 1 output\nconnect a -> o\nconnect true -> o\n");
	put_safetensors(in_folder("x"), header, f16, sizeof f16);
	mp_run *run = run_of(net);
	need(run, mp_run_load(run, in_folder("x")));
	double w[6];
	need(run, mp_run_get_weights(run, w, 6));
	same_vector(w, value, 6);
	f16[5] = 0xFC00; /* infinite */
	put_safetensors(in_folder("x"), header, f16, sizeof f16);
	assert_int_equal(mp_run_load(run, in_folder("x")), MP_BAD_INPUT);
	mp_run_close(run);
	mp_net_close(net);
}

static void what_does_not_fit_is_named(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		size_t len;
		mp_status status;
		const char *words;
	} cases[] = {
		{ "{\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]}}",
		  16, MP_BAD_INPUT, "tensor o_bias is missing" },
		{ "{\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}",
		  24, MP_BAD_INPUT, "tensor a_to_o has the shape [4], the network needs [2, 2]" },
		{ "{\"a_to_o\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}",
		  24, MP_BAD_INPUT, "tensor a_to_o has the dtype I32" },
		{ "{\"__metadata__\":{\"format\":\"pt\"},\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
		  "\"more\":{\"dtype\":\"BOOL\",\"shape\":[3],"
		  "\"data_offsets\":[24,27]}}",
		  27, MP_OK, "tensor more is not used" },
		{ "{\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
		  "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[24,24]},\"b\":{\"dtype\":\"U8\","
		  "\"shape\":[0],\"data_offsets\":[24,24]},"
		  "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[24,24]},\"d\":{\"dtype\":\"U8\","
		  "\"shape\":[0],\"data_offsets\":[24,24]}}",
		  24, MP_OK, "1 more tensors" },
		{ "{\"__metadata__\":{\"format\":\"microprop 1\"},\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],"
		  "\"data_offsets\":[16,24]}}",
		  24, MP_BAD_INPUT, "has no checksum" },
		{ "{\"__metadata__\":{\"scale\":\"range\"},\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],"
		  "\"data_offsets\":[16,24]}}",
		  24, MP_BAD_INPUT, "tensor scale.offset is missing" },
		{ "{\"__metadata__\":{\"scale\":\"range\"},\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
		  "\"scale.offset\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[24,32]}}",
		  32, MP_BAD_INPUT, "tensor scale.offset should hold 2 numbers" },
		{ "{\"__metadata__\":{\"scale\":\"range\"},\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
		  "\"scale.offset\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32]}}",
		  32, MP_BAD_INPUT, "tensor scale.offset should hold 2 numbers" },
		/* what other programs mean by these is their affair */
		{ "{\"__metadata__\":{\"classes\":\"3\",\"options\":\"-v\"},\"a_to_o\":{\"dtype\":\"F32\",\"shape\":[2,2],"
		  "\"data_offsets\":[0,16]},"
		  "\"o_bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}",
		  24, MP_OK, "" },
		{ "{}", 0, MP_BAD_INPUT, "tensor a_to_o is missing" },
	};
	static const char zeros[64];
	mp_net *net = net_of(tiny);
	for (size_t i = 0; i < COUNT(cases); i++) {
		put_safetensors(in_folder("x"), cases[i].header, zeros, cases[i].len);
		expect_load(net, in_folder("x"), cases[i].status, cases[i].words);
	}
	expect_load(net, in_folder("missing"), MP_BAD_INPUT, "No such file");
	mp_net_close(net);
}

/* Sparse links may come in any order, with I64 indices; those that are none are named. */
static void sparse_links_of_other_programs(void **state)
{
	(void)state;
	static const char header[] = "{\"a_to_o.values\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]},"
								 "\"a_to_o.from\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[16,32]},"
								 "\"a_to_o.to\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[32,48]},"
								 "\"extra.values\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[48,48]}}";
	static const struct {
		int64_t from[2], to[2];
		const char *words;
	} cases[] = {
		{ { 2, 0 }, { 1, 0 }, "tensor extra.values is not used" },
		{ { -1, 0 }, { 1, 0 }, "from unit -1 to unit 1" },
		{ { 2, 3 }, { 1, 0 }, "from unit 3 to unit 0" },
		{ { 2, 0 }, { 1, -1 }, "from unit 0 to unit -1" },
		{ { 2, 0 }, { INT64_MAX, 0 }, "from unit 2 to unit 9223372036854775808" },
		{ { 2, 2 }, { 1, 1 }, "from unit 2 to unit 1" },
		{ { 2, 1 }, { 1, 0 }, "from unit 1 to unit 0" },
	};
	mp_net *net = net_of("group a 3 input\ngroup o 2 output\nconnect a[0] -> o[0]\nconnect a[2] -> o[1]\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		double data[6] = { 0.5, 0.25 };
		memcpy(data + 2, cases[i].from, 16);
		memcpy(data + 4, cases[i].to, 16);
		put_safetensors(in_folder("x"), header, data, sizeof data);
		expect_load(net, in_folder("x"), i ? MP_BAD_INPUT : MP_OK, cases[i].words);
	}
	mp_net_close(net);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		CASE(tensors_read_naturally),
		CASE(fingerprints_are_of_the_stored_type),
		CASE(text_is_quoted),
		CASE(differences_are_named),
		CASE(other_sparse_links_are_named),
		CASE(blocks_may_be_cut_otherwise),
		CASE(other_programs_weights_load),
		CASE(halves_are_read_exactly),
		CASE(what_does_not_fit_is_named),
		CASE(sparse_links_of_other_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
