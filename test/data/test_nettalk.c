/* SPDX-License-Identifier: MIT */
/* The NETtalk corpus and lists of words; the real corpus where it is at hand. */
#include "readers.h"

static void nettalk_cases(void **state)
{
	(void)state;
	Ctx cx;
	Job j = { .text = "Some words\n\n-----\n\nab\t@b\t1<\t0\ngun\tg^n\t0\t\r\nthe\tD-x\t>>0\t0 \n" };
	Data *d = good(&cx, do_nettalk, &j);
	assert_int_equal(d->cases, 5);
	assert_int_equal(d->inputs, 203);
	assert_int_equal(d->targets, 26);
	assert_int_equal(d->code_count, 330);
	assert_non_null(strstr(ctx_messages(&cx), "t.data:6:9: note: 'gun' has no stresses"));
	assert_text(d->names[1], "ab/1");
	const uint32_t want[] = { 26, 29 + 26, 2 * 29 + 0, 3 * 29 + 1, 4 * 29 + 26, 5 * 29 + 26, 6 * 29 + 26 };
	assert_memory_equal(d->x_indices + d->x_indptr[1], want, sizeof want);
	/* b: labial, stop, voiced; < */
	Y(d, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
	for (uint32_t k = 0; k < d->code_count; k++)
		if (d->code_names[k].s[0] == 'D' && d->code_names[k].s[1] == '>')
			for (uint32_t i = 0; i < d->targets; i++)
				assert_true(d->codes[k * 26 + i] == ((const uint8_t *)d->y)[2 * 26 + i]);
	ctx_free(&cx);
	j.opt.first = 1;
	d = good(&cx, do_nettalk, &j);
	assert_int_equal(d->cases, 2);
	ctx_free(&cx);
}

static void nettalk_lists(void **state)
{
	(void)state;
	static const char corpus[] = "ab\t@b\t1<\t0\nthe\tD-x\t>>0\t0\nthe\tD-i\t>>1\t0\n";
	static const char *const lists[][2] = {
		{ "list", "Notes (by us)\n\n(THE\n AB\tthe)\r\n" },
		{ "plain", "ab\n" },
		{ "open", "(ab" },
		{ "none", "()" },
		{ "unknown", "ab zebra" },
	};
	for (size_t i = 0; i < COUNT(lists); i++)
		save(lists[i][0], lists[i][1], strlen(lists[i][1]));
	Ctx cx;
	Job j = { .text = corpus, .opt = { .words = in_folder("list") } };
	Data *d = good(&cx, do_nettalk, &j);
	assert_int_equal(d->cases, 8);
	assert_text(d->names[0], "the/0");
	assert_text(d->names[3], "ab/0");
	/* first pronunciation: x, 0 */
	Y(d, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	ctx_free(&cx);
	j.opt.first = 2;
	d = good(&cx, do_nettalk, &j);
	assert_int_equal(d->cases, 5);
	ctx_free(&cx);
	j.opt = (DataOptions){ .words = in_folder("plain") };
	d = good(&cx, do_nettalk, &j);
	assert_int_equal(d->cases, 2);
	ctx_free(&cx);
	j.opt.words = in_folder("open");
	bad(do_nettalk, j, "does not close");
	j.opt.words = in_folder("none");
	bad(do_nettalk, j, "no words in this list");
	j.opt.words = in_folder("unknown");
	bad(do_nettalk, j, "unknown:1:4: error: there is no word 'zebra'");
}

static void do_nettalk_plainly(Ctx *cx, void *arg)
{
	Job *j = arg;
	Src s = { .name = "t.data", .text = j->text, .len = strlen(j->text) };
	j->d = read_nettalk(cx, &s, NULL);
}

static void nettalk_odd_but_right(void **state)
{
	(void)state;
	Ctx cx;
	char text[4096] = "\t\t\tnot a row yet\n";
	for (int i = 0; i < 7; i++)
		strcat(text, "gunpowdergunpowdergunpowdergunpowdergunpowder\t-\t0\t\n");
	strcat(text, "a\tx\t0\t2");
	Job j = { .text = text };
	Data *d = good(&cx, do_nettalk_plainly, &j);
	assert_int_equal(d->cases, 1);
	const char *notes = ctx_messages(&cx);
	int count = 0;
	for (; (notes = strstr(notes, "note:")) != NULL; notes++)
		count++;
	assert_int_equal(count, 5); /* the rest is more of the same */
	ctx_free(&cx);
	static char words[1200 * 3 + 1];
	for (int i = 0; i < 1200; i++)
		memcpy(words + 3 * i, i & 1 ? "ab " : "AB\n", 3);
	save("long", words, strlen(words));
	j = (Job){ .text = "ab\t@b\t1<\t0\n", .opt = { .words = in_folder("long") } };
	d = good(&cx, do_nettalk, &j);
	assert_int_equal(d->cases, 2400);
	ctx_free(&cx);
	j.text = "a{\t@b\t1<\t0\n";
	bad(do_nettalk, j, "no letter");
	j.text = "ab\t@b\t1<\t/\n";
	bad(do_nettalk, j, "the flag must be");
}

/* The corpus is not shipped: found through MICROPROP_NETTALK or beside the source. */
static const char *corpus_folder(void)
{
	static const char *const beside = SOURCE_DIR "/../shared/data/nettalk";
	const char *named = getenv("MICROPROP_NETTALK");
	return named ? named : access(SOURCE_DIR "/../shared/data/nettalk/nettalk.data", R_OK) == 0 ? beside : NULL;
}

static void nettalk_corpus(void **state)
{
	(void)state;
	const char *corpus = corpus_folder();
	if (!corpus)
		skip();
	char data[1024], list[1024];
	snprintf(data, sizeof data, "%s/nettalk.data", corpus);
	snprintf(list, sizeof list, "%s/nettalk.list", corpus);
	const struct {
		uint64_t first;
		const char *words;
		uint64_t cases;
	} runs[] = {
		{ 0, NULL, 146934 },
		{ 1597, NULL, 12022 },
		{ 20007, NULL, 146934 },
		{ 0, list, 5438 },
	};
	for (size_t i = 0; i < COUNT(runs); i++) {
		Ctx cx;
		Job j = { .path = data, .opt = { .first = runs[i].first, .words = runs[i].words } };
		Data *d = good(&cx, do_open, &j);
		assert_int_equal(d->cases, runs[i].cases);
		assert_int_equal(d->inputs, 203);
		assert_int_equal(d->targets, 26);
		if (i == 0)
			assert_non_null(strstr(ctx_messages(&cx), "'gunpowder' has no stresses"));
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nettalk_cases),
		cmocka_unit_test(nettalk_lists),
		cmocka_unit_test(nettalk_odd_but_right),
		cmocka_unit_test(nettalk_corpus),
	};
	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
