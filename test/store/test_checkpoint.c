/* SPDX-License-Identifier: MIT */
/* Checkpoints: every kind of link and every rule there and back to the bit, damage of any byte, failing memory and
 * disks. */
#include "runs.h"
#include "store.h"

/* ---- there and back ---- */

static const char *const networks[] = {
	"group a 3 input\ngroup h 4\ngroup o 2 output\nconnect a, true -> h\nconnect h, true -> o\n",
	"group a 30 input\ngroup h 20 tanh\ngroup o 4 output\nconnect a -> h random 0.3\n"
	"connect h -> o random 0.5 seed 7\n"
	"connect true -> h random 0.5 seed 3\nconnect true -> o\n",
	"group a 5 input\ngroup h 5\ngroup o 5 linear output\nconnect a -> h one-to-one\n"
	"connect h -> o one-to-one frozen\n"
	"connect true -> o frozen rate 2\n",
	"group a 3 input\ngroup o 2 output\nconnect a[2] -> o[0]\nconnect a[0] -> o[1]\nconnect true -> o[1]\n"
	"connect a[1] -> o[0]\n",
	"group a 10 input\ngroup h 6\ngroup o 2 output\nconnect a[0:4] -> h[0:2]\nconnect a[5:9] -> h[3:5]\n"
	"connect true -> h[1:5]\n"
	"connect h[0:3] -> o[0]\nconnect h[2] -> o[1]\nconnect a[9] -> h[0:2]\nconnect a -> o\n",
	"group a 2 input\ngroup h 7\ngroup o 1 output\nconnect a, true -> h\nconnect h -> h\nconnect h, true -> o\n",
	"group a 1 input\ngroup h 3\ngroup c 3 context\ngroup o 1 output\nconnect a, c, true -> h\n"
	"connect h, true -> o\n"
	"copy h -> c start 0.5\n",
	/* names that run into one another */
	"group a 2 input\ngroup a_to_b 2\ngroup b_to_c 2 output\ngroup c 2 output\ngroup b 2\ngroup b.values 2\n"
	"group b.to 3\n"
	"connect a -> b_to_c\nconnect a -> a_to_b, b.values, b.to\nconnect a_to_b -> c\nconnect a -> b one-to-one\n"
	"connect b, b.values, b.to -> c\n",
	"group a 1 input\ngroup o 1 output\nconnect a, true -> o\n",
};

static void every_kind_of_link_round_trips(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(networks); i++) {
		mp_net *net = net_of(networks[i]);
		mp_run *run = travelled(net, "momentum", false), *loaded = run_of(net), *resumed = run_of(net);
		need(run, mp_run_save(run, in_folder("a")));
		need(loaded, mp_run_load(loaded, in_folder("a")));
		assert_string_equal(mp_run_messages(loaded), "");
		same_part(run, loaded, 0);
		assert_int_equal(loaded->at.epoch, 0);
		assert_int_equal(loaded->scale.kind, SCALE_ZSCORE);
		same_vector(loaded->scale.factor, run->scale.factor, net->net->inputs);
		need(resumed, mp_run_resume(resumed, in_folder("a")));
		same_part(run, resumed, 0);
		need(resumed, mp_run_save(resumed, in_folder("b")));
		same_files(in_folder("a"), in_folder("b"));
		mp_run_close(run);
		mp_run_close(loaded);
		mp_run_close(resumed);
		mp_net_close(net);
	}
}

static void every_rule_resumes(void **state)
{
	(void)state;
	mp_net *net = net_of(networks[1]);
	for (uint32_t k = 0; k < rule_count; k++) {
		mp_run *run = travelled(net, rules[k].name, k % 2 == 0), *resumed = run_of(net);
		need(run, mp_run_save(run, in_folder("a")));
		need(resumed, mp_run_resume(resumed, in_folder("a")));
		for (int i = 0; i <= rules[k].states; i++)
			same_part(run, resumed, i);
		assert_memory_equal(&run->at, &resumed->at, sizeof run->at);
		assert_memory_equal(&run->best_at, &resumed->best_at, sizeof run->best_at);
		if (run->best_weights)
			same_vector(run->best_weights, resumed->best_weights, net->net->links);
		else
			assert_null(resumed->best_weights);
		for (size_t i = 0; mp_option_at(i); i++) {
			char value[200];
			snprintf(value, sizeof value, "%s", mp_run_get(run, mp_option_at(i)->name));
			assert_string_equal(value, mp_run_get(resumed, mp_option_at(i)->name));
		}
		assert_true(resumed->opt.rate == 0.1 + 0.2);
		need(resumed, mp_run_save(resumed, in_folder("b")));
		same_files(in_folder("a"), in_folder("b"));
		mp_run_close(run);
		mp_run_close(resumed);
	}
	mp_net_close(net);
}

static void best_epoch_is_a_file_of_weights(void **state)
{
	(void)state;
	mp_net *net = net_of(networks[0]);
	mp_run *run = travelled(net, "adam", true), *other = run_of(net);
	need(run, mp_run_save_best(run, in_folder("best")));
	need(other, mp_run_load(other, in_folder("best")));
	double *w = malloc((net->net->links + 1) * sizeof *w);
	other->target->get(other->program, 0, 0, ALL_LINKS, w);
	same_vector(w, run->best_weights, net->net->links);
	free(w);
	mp_run_close(other);
	other = run_of(net);
	assert_int_equal(mp_run_resume(other, in_folder("best")), MP_BAD_INPUT);
	expect_words(mp_run_messages(other), "best epoch");
	mp_run_close(other);
	mp_run_close(run);
	mp_net_close(net);
}

/* Weights of a target with single precision: F32 files, that a double target loads, and the other way round. */
static void targets_exchange_weights(void **state)
{
	(void)state;
	mp_net *net = net_of(networks[1]);
	uint64_t n = net->net->links;
	mp_run *run = run_of(net), *other = run_of(net);
	double *w = malloc(n * sizeof *w), *v = malloc(n * sizeof *v);
	for (uint64_t i = 0; i < n; i++)
		w[i] = (float)random_unit(3, STREAM_DATA, i) - 0.5f;
	need(run, mp_run_set_weights(run, w, n));
	Target single = *run->target;
	single.f64 = false;
	run->target = &single;
	need(run, mp_run_save(run, in_folder("single")));
	need(other, mp_run_load(other, in_folder("single")));
	need(other, mp_run_get_weights(other, v, n));
	same_vector(w, v, n);
	need(other, mp_run_save(other, in_folder("double")));
	struct stat small, large;
	stat(in_folder("single"), &small);
	stat(in_folder("double"), &large);
	assert_true(small.st_size < large.st_size);
	need(run, mp_run_load(run, in_folder("double")));
	same_part(run, other, 0);
	free(w);
	free(v);
	mp_run_close(run);
	mp_run_close(other);
	mp_net_close(net);
}

/* ---- our own files, changed, with a new checksum ---- */

typedef struct Change {
	const char *from, *to, *key, *value, *drop, *bend;
} Change; /* bend: to two dimensions */

static void copy_numbers(void *user, uint32_t tensor, SafeSink *out)
{
	const SafeFile *f = user;
	for (uint64_t i = 0; i < f->tensor[tensor].count; i++)
		safe_put(out, safe_number(f, &f->tensor[tensor], i));
}

static int in_file_order(const void *a, const void *b)
{
	const Tensor *x = a, *y = b;
	return (x->off > y->off) - (x->off < y->off);
}

static void change_body(Ctx *cx, void *arg)
{
	Change *c = arg;
	Src *src = src_open(cx, &cx->scratch, c->from);
	src->binary = true;
	SafeFile *f = safe_read(cx, src);
	Meta *m = NEW(&cx->scratch, f->metas + 1, Meta);
	uint32_t metas = 0, tensors = 0;
	if (c->key && !safe_meta(f, c->key))
		m[metas++] = (Meta){ c->key, c->value };
	for (uint32_t i = 0; i < f->metas; i++) {
		bool same = c->key && strcmp(f->meta[i].key, c->key) == 0;
		if (strcmp(f->meta[i].key, "checksum") != 0 && !(same && !c->value))
			m[metas++] = (Meta){ f->meta[i].key, same ? c->value : f->meta[i].value };
	}
	qsort(f->tensor, f->tensors, sizeof *f->tensor, in_file_order);
	for (uint32_t i = 0; i < f->tensors; i++)
		if (!c->drop || strcmp(f->tensor[i].name, c->drop) != 0)
			f->tensor[tensors++] = f->tensor[i];
	Tensor *copy = NEW(&cx->scratch, tensors, Tensor);
	memcpy(copy, f->tensor, tensors * sizeof *copy);
	for (uint32_t i = 0; c->bend && i < tensors; i++)
		if (strcmp(copy[i].name, c->bend) == 0)
			copy[i].dim[copy[i].dims++] = 1;
	safe_write(cx, c->to, copy, tensors, m, metas, copy_numbers, f);
}

static void what_resuming_needs_is_checked(void **state)
{
	(void)state;
	static const struct {
		const char *key, *value, *drop, *words;
	} cases[] = {
		{ "format", "microprop 2", NULL, "knows 'microprop 1'" },
		{ "format", NULL, NULL, "weights alone" },
		{ "kind", NULL, NULL, "metadata kind is missing" },
		{ "kind", "weights", NULL, "best epoch" },
		{ "rng", "dice", NULL, "drew its random numbers from 'dice'" },
		{ "options", NULL, NULL, "metadata options is missing" },
		{ "options", "[]", NULL, "options is not an object" },
		{ "options", "{", NULL, "options is not JSON" },
		{ "options", "{\"rate\":1}", NULL, "rate cannot be ''" },
		{ "options", "{\"ratte\":\"1\"}", NULL, "did you mean 'rate'" },
		{ "options", "{\"target\":\"abacus\"}", NULL, "there is no target 'abacus'" },
		{ "epoch", NULL, NULL, "metadata epoch is missing" },
		{ "epoch", "-1", NULL, "metadata epoch cannot be '-1'" },
		{ "epoch", "", NULL, "metadata epoch cannot be ''" },
		{ "epoch", "99999999999999999999", NULL, "metadata epoch cannot be" },
		{ "seconds", "0.5", NULL, "metadata seconds cannot be '0.5'" },
		{ "seconds", "0x1.0000000000000p", NULL, "metadata seconds cannot be" },
		{ "seconds", "0x1.0000000000000p+9999", NULL, "metadata seconds cannot be" },
		{ "epoch", "12x", NULL, "metadata epoch cannot be" },
		{ "seconds", "0x1.0000000000000p-9999", NULL, "metadata seconds cannot be" },
		{ "seconds", "0x1.0000000000000p+1z", NULL, "metadata seconds cannot be" },
		{ "seconds", "0x1.0000000000000q+1", NULL, "metadata seconds cannot be" },
		{ "seconds", "0x1.000p+1", NULL, "metadata seconds cannot be" },
		{ "seconds", "0x1,0000000000000p+1", NULL, "metadata seconds cannot be" },
		{ "seconds", "0x2.0000000000000p+1", NULL, "metadata seconds cannot be" },
		{ "seconds", "-0x1.8000000000000p+1", NULL, NULL },
		{ "scale", "logarithmic", NULL, "metadata scale cannot be 'logarithmic'" },
		{ "groups", "{", NULL, NULL },
		{ "links", NULL, NULL, NULL },
		{ "links", "[", NULL, "metadata links is not JSON" },
		{ "links", "{}", NULL, "links differ: the file has none from true to o[0]" },
		{ "links", "[1]", NULL, "entry 0 of metadata links" },
		{ "links", "[{\"name\":\"x\",\"to\":\"q\"}]", NULL, "entry 0 of metadata links" },
		{ "links",
		  "[{\"name\":\"x\",\"to\":\"o\",\"to_first\":1,"
		  "\"to_count\":2}]",
		  NULL, "entry 0 of metadata links" },
		{ "links",
		  "[{\"name\":\"x\",\"to\":\"o\",\"to_count\":2,"
		  "\"from\":1}]",
		  NULL, "entry 0 of metadata links" },
		{ "links", "[{\"name\":\"x\",\"to\":\"o\",\"to_count\":2}]", NULL, "tensor x.values is missing" },
		{ "links",
		  "[{\"name\":\"o_bias\",\"to\":\"o\",\"to_count\":2,\"dense\":true},"
		  "{\"name\":\"o_bias\",\"to\":\"o\",\"to_count\":2,"
		  "\"dense\":true}]",
		  NULL, "has one from unit 0 to unit 0" },
		{ NULL, NULL, "state.step", "tensor state.step is missing" },
		{ NULL, NULL, "scale.factor", "tensor scale.factor is missing" },
		{ NULL, NULL, "o_bias", "tensor o_bias is missing" },
		{ NULL, NULL, NULL, "tensor state.step should hold 6 numbers" }, /* bent, see below */
		{ "links",
		  "[{\"name\":\"x\",\"to\":\"o\",\"to_first\":-1,"
		  "\"to_count\":1}]",
		  NULL, "entry 0 of metadata links" },
		{ "links",
		  "[{\"name\":\"x\",\"to\":\"o\",\"to_first\":2,"
		  "\"to_count\":1}]",
		  NULL, "entry 0 of metadata links" },
		{ "links", "[{\"name\":\"x\",\"to\":\"o\"}]", NULL, "entry 0 of metadata links" },
		{ "best_at.epoch", NULL, NULL, "metadata best_at.epoch is missing" },
		{ "network", "0", NULL, "the file belongs to another network" },
		{ "options", "{\"rule\":\"adam\"}", NULL, "tensor state.mean is missing" },
		{ "options", "{\"error\":\"divergence\"}", NULL, "divergence" },
	};
	mp_net *net = net_of(tiny);
	mp_run *run = travelled(net, "momentum", true);
	need(run, mp_run_save(run, in_folder("a")));
	for (size_t i = 0; i < COUNT(cases); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Change c = { in_folder("a"), in_folder("b"), cases[i].key,
			         cases[i].value, cases[i].drop,  cases[i].key || cases[i].drop ? NULL : "state.step" };
		assert_int_equal(guarded(&cx, change_body, &c), MP_OK);
		ctx_free(&cx);
		mp_run *other = run_of(net);
		Options before = other->opt;
		mp_status s = mp_run_resume(other, in_folder("b"));
		if (cases[i].words) {
			assert_int_equal(s, MP_BAD_INPUT);
			expect_words(mp_run_messages(other), cases[i].words);
			assert_null(other->program);
			assert_memory_equal(&other->opt, &before, sizeof other->opt);
		} else {
			need(other, s); /* not needed where the fingerprint fits */
		}
		mp_run_close(other);
	}
	mp_run_close(run);
	mp_net_close(net);
}

/* Whatever bytes a label has, it comes back; lists that cannot be are refused. */
static void classes_come_back(void **state)
{
	(void)state;
	static const char *const odd[] = { "caf\xC3\xA9, \"au lait\"", "Z\xFCrich \\xFC\\" };
	static const struct {
		const char *value, *words;
	} cases[] = {
		{ "[\"a\"]", "metadata classes is not a list of 2 names" },
		{ "[\"a\",\"b\",\"c\"]", "metadata classes is not a list of 2 names" },
		{ "{\"a\":\"b\",\"c\":\"d\"}", "metadata classes is not a list of 2 names" },
		{ "[\"a\"", "metadata classes is not JSON" },
		{ "", "metadata classes is not JSON" },
		{ "[\"a\",1]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\\\\"]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\\\x\"]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\\\xF\"]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\\\xGG\"]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\\\x00\"]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\\\n\"]", "entry 1 of metadata classes is not a name" },
		{ "[\"a\",\"\\u0000\"]", "metadata classes is not JSON" },
		{ "[\"a\",\"a\"]", "metadata classes has 'a' twice" },
		{ "[\"\",\"a\"]", NULL },
	};
	mp_net *net = net_of(tiny);
	mp_run *run = travelled(net, "momentum", true);
	need(run, mp_run_save(run, in_folder("plain")));
	run->classes = odd;
	run->class_count = 2;
	need(run, mp_run_save(run, in_folder("a")));
	need(run, mp_run_save_best(run, in_folder("best")));
	for (int k = 0; k < 3; k++) {
		mp_run *other = run_of(net);
		need(other,
		     k == 0 ? mp_run_resume(other, in_folder("a")) : mp_run_load(other, in_folder(k == 1 ? "a" : "best")));
		assert_int_equal(other->class_count, 2);
		assert_string_equal(other->classes[0], odd[0]);
		assert_string_equal(other->classes[1], odd[1]);
		if (k > 0) { /* the classes are those of the weights */
			need(other, mp_run_load(other, in_folder("plain")));
			assert_null(other->classes);
			assert_int_equal(other->class_count, 0);
		}
		mp_run_close(other);
	}
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Change c = { .from = in_folder(i % 2 ? "a" : "plain"),
			         .to = in_folder("b"),
			         .key = "classes",
			         .value = cases[i / 2].value };
		assert_int_equal(guarded(&cx, change_body, &c), MP_OK);
		ctx_free(&cx);
		mp_run *other = run_of(net);
		mp_status s = i % 3 ? mp_run_load(other, in_folder("b")) : mp_run_resume(other, in_folder("b"));
		if (cases[i / 2].words) {
			assert_int_equal(s, MP_BAD_INPUT);
			expect_words(mp_run_messages(other), cases[i / 2].words);
			assert_null(other->program);
		} else {
			need(other, s);
		}
		mp_run_close(other);
	}
	mp_run_close(run);
	mp_net_close(net);
}

/* A file of weights says what they were trained to make small. */
static void the_error_function_is_known(void **state)
{
	(void)state;
	static const struct {
		const char *options;
		int error;
	} cases[] = {
		{ "{\"error\":\"squared\"}", ERR_SQUARED },
		{ "{\"error\":\"divergence\"}", ERR_DIVERGENCE },
		{ "{\"error\":\"guesswork\"}", -1 },
		{ "{\"error\":1}", -1 },
		{ "{}", -1 },
		{ "[]", -1 },
		{ NULL, -1 },
	};
	mp_net *net = net_of(tiny);
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "error", "cross-entropy"));
	need(run, mp_run_save(run, in_folder("a")));
	mp_run *other = run_of(net);
	assert_int_equal(other->saved_error, -1);
	need(other, mp_run_load(other, in_folder("a")));
	assert_int_equal(other->saved_error, ERR_CROSS_ENTROPY);
	assert_int_equal(other->opt.error, ERR_SQUARED);
	for (size_t i = 0; i < COUNT(cases); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Change c = { .from = in_folder("a"), .to = in_folder("b"), .key = "options", .value = cases[i].options };
		assert_int_equal(guarded(&cx, change_body, &c), MP_OK);
		ctx_free(&cx);
		need(other, mp_run_load(other, in_folder("b")));
		assert_int_equal(other->saved_error, cases[i].error);
	}
	mp_run_close(other);
	other = run_of(net);
	need(other, mp_run_resume(other, in_folder("a")));
	assert_int_equal(other->saved_error, -1);
	assert_int_equal(other->opt.error, ERR_CROSS_ENTROPY);
	mp_run_close(other);
	mp_run_close(run);
	mp_net_close(net);
}

static void a_started_run_cannot_resume(void **state)
{
	(void)state;
	mp_net *net = net_of(tiny);
	mp_run *run = travelled(net, "momentum", false);
	need(run, mp_run_save(run, in_folder("a")));
	assert_int_equal(mp_run_resume(run, in_folder("a")), MP_BAD_INPUT);
	expect_words(mp_run_messages(run), "already started");
	mp_run_close(run);
	mp_net_close(net);
}

/* ---- damage ---- */

static void any_damaged_byte_is_noticed(void **state)
{
	(void)state;
	mp_net *net = net_of(tiny);
	mp_run *run = travelled(net, "momentum", false), *other = run_of(net);
	need(run, mp_run_save(run, in_folder("a")));
	size_t len;
	char *bytes = file_bytes(in_folder("a"), &len);
	for (size_t i = 0; i < len; i++) {
		char old = bytes[i];
		bytes[i] = (char)(old ^ (1 << i % 8));
		put_bytes(in_folder("b"), bytes, len);
		assert_int_equal(mp_run_load(other, in_folder("b")), MP_BAD_INPUT);
		assert_int_equal(strncmp(mp_run_messages(other), in_folder("b"), strlen(in_folder("b"))), 0);
		bytes[i] = old;
	}
	for (size_t i = 0; i < len; i += i < 100 ? 1 : 37) {
		put_bytes(in_folder("b"), bytes, i);
		assert_int_equal(mp_run_load(other, in_folder("b")), MP_BAD_INPUT);
	}
	free(bytes);
	mp_run_close(run);
	mp_run_close(other);
	mp_net_close(net);
}

static void io_may_fail_at_any_call(void **state)
{
	(void)state;
	mp_net *net = net_of(networks[1]);
	mp_run *old = travelled(net, "momentum", false), *run = travelled(net, "adam", true);
	need(old, mp_run_save(old, in_folder("old")));
	need(run, mp_run_save(run, in_folder("new")));
	for (int n = 1; run->cx.io_fail_at == 0; n++) {
		need(old, mp_run_save(old, in_folder("a")));
		run->cx.io_fail_at = n;
		mp_status s = mp_run_save(run, in_folder("a"));
		if (run->cx.io_fail_at > 0)
			assert_int_equal(s, MP_OK);
		mp_run *other = run_of(net);
		need(other, mp_run_resume(other, in_folder("a")));
		bool is_new = other->opt.rule == run->opt.rule;
		assert_true(s != MP_OK || is_new);
		same_files(in_folder("a"), is_new ? in_folder("new") : in_folder("old"));
		mp_run_close(other);
		assert_true(n < 1000);
	}
	bool failed = true;
	for (int n = 1; failed; n++) {
		mp_run *other = run_of(net);
		other->cx.io_fail_at = n;
		mp_status s = mp_run_resume(other, in_folder("new"));
		if (s == MP_OK)
			same_part(run, other, 0);
		else
			assert_string_not_equal(mp_run_messages(other), "");
		failed = other->cx.io_fail_at == 0;
		mp_run_close(other);
		assert_true(n < 1000);
	}
	mp_run_close(old);
	mp_run_close(run);
	mp_net_close(net);
}

static void memory_may_fail_at_any_call(void **state)
{
	(void)state;
	mp_net *net = net_of(networks[1]);
	mp_run *old = travelled(net, "momentum", false);
	need(old, mp_run_save(old, in_folder("old")));
	need(old, mp_run_save(old, in_folder("a")));
	for (int n = 1;; n++) {
		Meter meter = { 0 };
		mp_run *run;
		assert_int_equal(mp_run_new(&run, net, &(mp_allocator){ sizeof(mp_allocator), meter_resize, &meter }), MP_OK);
		run_start_quietly(run);
		meter.fail_at = meter.calls + n;
		mp_status s = mp_run_save(run, in_folder("a"));
		meter.fail_at = 0;
		mp_run_close(run);
		assert_int_equal(meter.live, 0);
		if (s == MP_OK)
			break;
		assert_int_equal(s, MP_NO_MEMORY);
		same_files(in_folder("old"), in_folder("a"));
		assert_true(n < 10000);
	}
	for (int n = 1;; n++) {
		Meter meter = { 0 };
		mp_run *run;
		assert_int_equal(mp_run_new(&run, net, &(mp_allocator){ sizeof(mp_allocator), meter_resize, &meter }), MP_OK);
		meter.fail_at = meter.calls + n;
		mp_status s = mp_run_resume(run, in_folder("old"));
		if (s == MP_OK)
			same_part(old, run, 0);
		mp_run_close(run);
		assert_int_equal(meter.live, 0);
		if (s == MP_OK)
			break;
		assert_int_equal(s, MP_NO_MEMORY);
		assert_true(n < 10000);
	}
	mp_run_close(old);
	mp_net_close(net);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		CASE(every_kind_of_link_round_trips),  CASE(every_rule_resumes),
		CASE(best_epoch_is_a_file_of_weights), CASE(targets_exchange_weights),
		CASE(what_resuming_needs_is_checked),  CASE(classes_come_back),
		CASE(the_error_function_is_known),     CASE(a_started_run_cannot_resume),
		CASE(any_damaged_byte_is_noticed),     CASE(io_may_fail_at_any_call),
		CASE(memory_may_fail_at_any_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
