/* SPDX-License-Identifier: MIT */
/* Control bytes: no reader of text accepts one anywhere, nor a carriage return inside a line; names from binary files
 * have none either. */
#include <unistd.h>

#include "test.h"

#include "gf11_sim.h"
#include "model.h"
#include "store.h"

static char path[] = "/tmp/microprop-text-XXXXXX";

static void to_file(const Src *src)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(src->text, 1, src->len, f), src->len);
	assert_int_equal(fclose(f), 0);
}

static void topology(Ctx *cx, const Src *src) { net_parse(cx, src, DEFAULTS_1989); }

static void text_data(Ctx *cx, const Src *src) { read_text(cx, src, NULL); }

static void csv(Ctx *cx, const Src *src) { read_csv(cx, src, NULL); }

static void nettalk(Ctx *cx, const Src *src) { read_nettalk(cx, src, NULL); }

static void word_list(Ctx *cx, const Src *src)
{
	const Word known[] = { { "aback", "xb@k-", "0>1<<", 5 } };
	uint64_t picked;
	nettalk_pick(cx, src, known, 1, &picked);
}

static void machine(Ctx *cx, const Src *src) { machine_parse(cx, src); }

static void cluster(Ctx *cx, const Src *src) { cluster_parse(cx, src); }

static void microcode(Ctx *cx, const Src *src) { microcode_parse(cx, machine_open(cx, "gf11"), src); }

static void fault_file(Ctx *cx, const Src *src)
{
	to_file(src);
	faults_add(faults_new(cx, machine_open(cx, "gf11"), 1), path);
}

static void permutation(Ctx *cx, const Src *src)
{
	uint16_t to[4];
	to_file(src);
	permutation_make(cx, path, 4, 4, to);
}

typedef void Read(Ctx *, const Src *);
static const struct {
	const char *name, *text;
	Read *read;
} readers[] = {
	{ "topology", "group a 2 input # in\ngroup b 1 output\nconnect a -> b\ntrain rate \"1\"\r\n", topology },
	{ "text data", "# two\ninputs 2\n\"na\\tme\" 0 1 : 1\n1 1 : 0\r\n", text_data },
	{ "csv", "a,\"b c\",k\n1,2,\"cat\"\n3,4,cow\r\n", csv },
	{ "nettalk", "Prose\n-----\nab\t@b\t1<\t0\r\n", nettalk },
	{ "word list", "prose (aback\nABACK)\r\n", word_list },
	{ "machine", "base gf11 # all\nclock 40 ns assumed (a guess)\r\n", machine },
	{ "cluster", "base ethernet # all\r\n", cluster },
	{ "microcode", "routine a b\nlines 40\n... 40 empty\r\n", microcode },
	{ "faults", "# one\ndead:1\r\n", fault_file },
	{ "permutation", "0 1 # one\n1 0\r\n", permutation },
};

typedef struct Reading {
	Read *read;
	Src src;
} Reading;

static void read_it(Ctx *cx, void *arg)
{
	const Reading *r = arg;
	r->read(cx, &r->src);
}

/* Reads text with a byte in front of its at-th, or unchanged if byte is negative; the messages must have `words`. */
static void expect(size_t reader, int byte, size_t at, const char *words)
{
	Ctx cx;
	char text[200];
	Reading r = { readers[reader].read, { .name = "t", .text = text, .len = strlen(readers[reader].text) } };
	memcpy(text, readers[reader].text, r.src.len + 1);
	if (byte >= 0) {
		memmove(text + at + 1, text + at, r.src.len + 1 - at);
		text[at] = (char)byte;
		r.src.len++;
	}
	ctx_init(&cx, NULL);
	Status status = guarded(&cx, read_it, &r);
	const char *said = ctx_messages(&cx);
	if (status != (words ? MP_BAD_INPUT : MP_OK) || (words && !strstr(said, words))) {
		print_error("%s, byte %d at %zu: status %d, \"%s\" in\n%s\n", readers[reader].name, byte, at, (int)status,
		            words ? words : "", said);
		assert_true(false);
	}
	ctx_free(&cx);
}

static void no_reader_accepts_control_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(readers); i++) {
		size_t len = strlen(readers[i].text);
		expect(i, -1, 0, NULL);
		for (int byte = 0; byte < 128; byte++) {
			char words[40];
			if (byte == '\t' || byte == '\n' || byte == '\r' || (byte >= ' ' && byte != 127))
				continue;
			snprintf(words, sizeof words, "byte 0x%02x", (unsigned)byte);
			/* Every byte somewhere, NUL everywhere. */
			for (size_t at = byte % 7; at <= len; at += byte ? 7 : 1)
				expect(i, byte, at, words);
		}
		for (size_t at = 0; at + 2 < len; at++)
			if (readers[i].text[at] != '\n' && readers[i].text[at] != '\r')
				expect(i, '\r', at, "carriage return inside the line");
	}
}

/* A place, the byte, and what to do; a tail of zeros is named as such. */
static void messages_say_where_and_what(void **state)
{
	(void)state;
	expect(0, 0, 23, "t:2:3: error: byte 0x00 (NUL) is not text\n");
	expect(0, 27, 23, "  save the file as plain text (UTF-8)");
	expect(1, 0, strlen(readers[1].text), "the rest of the file is NUL bytes");
	expect(2, 127, 9, "t:1:10: error: byte 0x7f (DEL) is not text\n");
}

/* The check goes in blocks and slices: a byte is found wherever it stands between them. */
static void long_texts(void **state)
{
	(void)state;
	enum { LEN = (1 << 16) + 200 };
	char *text = malloc(LEN);
	memset(text, 'a', LEN);
	for (size_t at = 0; at < LEN; at += at < 300 || at > (1 << 16) - 100 ? 1 : 997) {
		text[at] = '\x1f';
		assert_ptr_equal(control_find(text, LEN), text + at);
		assert_null(control_find(text, at));
		text[at] = 'a';
	}
	free(text);
}

typedef struct Name {
	Loc at;
	Text name;
} Name;

static void check_name(Ctx *cx, void *arg)
{
	const Name *n = arg;
	name_check(cx, n->at, "member", n->name);
}

static void names_of_binary_files(void **state)
{
	(void)state;
	static const struct {
		Text name;
		const char *words;
	} names[] = {
		{ { "plain", 5 }, NULL },
		{ { "", 0 }, NULL },
		{ { "caf\xC3\xA9", 5 }, NULL },
		{ { "a\0b", 3 }, "member 'a\\x00b' has byte 0x00 (NUL) in it" },
		{ { "\x1b[31m", 5 }, "has byte 0x1b (escape) in it (at byte 7)" },
		{ { "a\x7f", 2 }, "has byte 0x7f (DEL)" },
	};
	const Src src = { .name = "t.npz", .binary = true };
	for (size_t i = 0; i < COUNT(names); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Status status = guarded(&cx, check_name, &(Name){ { &src, 7 }, names[i].name });
		assert_int_equal(status, names[i].words ? MP_BAD_INPUT : MP_OK);
		if (names[i].words)
			assert_non_null(strstr(ctx_messages(&cx), names[i].words));
		ctx_free(&cx);
	}
}

/* Every form, and words that are too long. */
static void escapes(void **state)
{
	(void)state;
	static const struct {
		int form;
		const char *text, *out;
	} rows[] = {
		{ TEXT_SHOWN, "plain \\ \"caf\xC3\xA9\" \xF0\x9F\x98\x80", "plain \\ \"caf\xC3\xA9\" \xF0\x9F\x98\x80" },
		{ TEXT_SHOWN, "a\n\r\t\x1b[31m\x7f\x01", "a\\n\\r\\t\\x1b[31m\\x7f\\x01" },
		{ TEXT_SHOWN, "\xC2\x9b\xC2\x85\xC2\xA0", "\\u009b\\u0085\xC2\xA0" },
		{ TEXT_SHOWN, "\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\x8F\xE2\x80\xA8\xD8\x9C",
		  "\\u202e\\u2066\\u200f\\u2028\\u061c" },
		{ TEXT_SHOWN, "\x80\xC3\xC0\xAF\xED\xA0\x80\xE2\x80", "\\x80\\xc3\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x80" },
		{ TEXT_LINES, "a\tb\nc\r\x1b", "a\tb\nc\\r\\x1b" },
		{ TEXT_JSON, "\"\\/\n\b\f\x1b\x7f", "\\\"\\\\/\\n\\b\\f\\u001b\\u007f" },
		{ TEXT_JSON, "\xE2\x80\xAE\xC2\x9b\x9b", "\\u202e\\u009b\xEF\xBF\xBD" },
	};
	Ctx cx;
	ctx_init(&cx, NULL);
	for (size_t i = 0; i < COUNT(rows); i++) {
		Buf b = { .arena = &cx.scratch };
		buf_text(&b, rows[i].text, strlen(rows[i].text), rows[i].form);
		assert_string_equal(b.s, rows[i].out);
	}
	char *word = NEW(&cx.scratch, 5000, char);
	memset(word, 'w', 4999);
	assert_int_equal(strlen(text_escaped(&cx.scratch, word)), CUT_SHOWN + strlen("... (4999 bytes)"));
	Buf text = { .arena = &cx.scratch };
	buf_printf(&text, "no group '%s' here", word);
	const char *cut = message_escaped(&cx.scratch, text.s);
	assert_non_null(strstr(cut, "www... (5000 bytes)' here"));
	assert_true(strlen(cut) < 200);
	assert_string_equal(text_shown(&cx, (Text){ word, 41 }), "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww... (41 bytes)");
	ctx_free(&cx);
}

static int file_make(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int file_remove(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_reader_accepts_control_bytes),
		cmocka_unit_test(messages_say_where_and_what),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(names_of_binary_files),
		cmocka_unit_test(escapes),
	};
	return cmocka_run_group_tests(tests, file_make, file_remove);
}
