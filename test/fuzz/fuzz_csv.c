/* SPDX-License-Identifier: MIT */
/* CSV: the first line of the input chooses columns, one letter of the option before each list ("i1:2 tcls"); the
 * rest is the file. A word "k" gives classes. What is accepted must be whole: every case can be read. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	const char *eol = memchr(s->text, '\n', s->len);
	if (!eol)
		return;
	char *line = arena_copy(&cx->scratch, s->text, (size_t)(eol - s->text)), *save = NULL;
	static const char *const classes[] = { "a", "1", "cat" };
	DataOptions opt = { .classes = classes };
	const struct {
		char letter;
		const char **list;
	} lists[] = {
		{ 'i', &opt.inputs },   { 't', &opt.targets }, { 'l', &opt.labels },
		{ 's', &opt.sequence }, { 'w', &opt.weight },  { 'n', &opt.names },
	};
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		for (size_t i = 0; i < COUNT(lists); i++)
			if (word[0] == lists[i].letter)
				*lists[i].list = word + 1;
		opt.unlabelled |= word[0] == 'u';
		opt.class_count = word[0] == 'k' ? COUNT(classes) : opt.class_count;
	}
	Src file = { .name = "fuzz.csv", .text = eol + 1, .len = s->len - (size_t)(eol + 1 - s->text) };
	fuzz_cases(cx, read_csv(cx, &file, &opt));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
