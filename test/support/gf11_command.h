/* SPDX-License-Identifier: MIT */
/* Commands of the GF11 run through the public header, with what they print kept. */
#ifndef GF11_COMMAND_H
#define GF11_COMMAND_H

#include <jansson.h>

#include "microprop/tool.h"
#include "test.h"

typedef struct Output {
	char s[1 << 20];
	size_t len;
} Output;
static Output output;

static inline void output_add(void *user, const char *text, size_t len)
{
	Output *o = user;
	assert_true(o->len + len < sizeof o->s);
	memcpy(o->s + o->len, text, len);
	o->len += len;
	o->s[o->len] = '\0';
}

/* Runs a command; words end with NULL; `says` is a part of the report or of the messages. */
static inline void command(mp_status expected, const char *says, const char *const *words)
{
	int count = 0;
	mp_tool *tool;
	while (words[count])
		count++;
	output.len = 0;
	output.s[0] = '\0';
	mp_status status = mp_tool_run(&tool, "gf11", count, words, output_add, &output, NULL);
	const char *text = status ? mp_tool_messages(tool) : output.s;
	if (status != expected || !strstr(text, says))
		print_error("status %d, '%s' is not in: %s\n", status, says, text);
	assert_int_equal(status, expected);
	assert_non_null(strstr(text, says));
	assert_true(!status || output.len == 0 || status == MP_FAILED);
	mp_tool_close(tool);
}

#define RUN(status, says, ...) command(status, says, (const char *const[]){ __VA_ARGS__, NULL })

/* Every n-th allocation fails, in the command's own context and in those of its epochs, until none does. */
static inline void fail_each(int count, const char *const *words, long step)
{
	mp_status status = MP_NO_MEMORY;
	for (long n = 1; status == MP_NO_MEMORY; n += step) {
		Meter meter = { .fail_at = n };
		mp_allocator alloc = { sizeof alloc, meter_resize, &meter };
		mp_tool *tool;
		output.len = 0;
		status = mp_tool_run(&tool, "gf11", count, words, output_add, &output, &alloc);
		mp_tool_close(tool);
		assert_int_equal(meter.live, 0);
		assert_true(n < 50000);
	}
	assert_int_equal(status, MP_OK);
}

/* ---- reports in JSON ---- */

static inline json_t *output_json(void)
{
	json_error_t error;
	json_t *j = json_loads(output.s, 0, &error);
	if (!j)
		print_error("%s\n", error.text);
	assert_non_null(j);
	return j;
}

static inline double number(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	assert_true(json_is_number(v));
	return json_number_value(v);
}

#endif
