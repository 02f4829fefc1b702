/* SPDX-License-Identifier: MIT */
/* Environment variables, for tests and experiments. In: names. Out: values, or a failure that says what would be right.
 * An empty variable counts as not set. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

static const struct {
	const char *name;
	uint64_t least, most, multiple;
} numbers[] = {
	{ "MICROPROP_CUDA_DEVICE", 0, 1023, 1 },     { "MICROPROP_CUDA_BLOCKS", 1, 4096, 1 },
	{ "MICROPROP_CUDA_THREADS", 64, 1024, 32 },  { "MICROPROP_CUDA_SHARED", 16384, 232448, 16 },
	{ "MICROPROP_CUDA_CLUSTER", 0, 16, 1 },      { "MICROPROP_CUDA_GROUPS", 0, 1, 1 },
	{ "MICROPROP_CUDA_WORK", 1, UINT32_MAX, 1 }, { "MICROPROP_CUDA_MEMORY", 1, (uint64_t)1 << 48, 1 },
	{ "MICROPROP_CUDA_SLOT", 1, ROW_CASE, 1 },
};

/* NULL: not set, or empty. */
static const char *text_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* Digits, and nothing else. */
static bool is_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

uint64_t environment_number(Ctx *cx, const char *name, uint64_t usual)
{
	const char *text = text_of(name);
	uint64_t value;
	size_t i = 0;

	if (!text)
		return usual;
	while (strcmp(numbers[i].name, name) != 0)
		i++;
	uint64_t each = numbers[i].multiple;
	if (is_number(text, &value) && value >= numbers[i].least && value <= numbers[i].most && value % each == 0)
		return value;
	Buf right = { .arena = &cx->scratch };
	buf_printf(&right, "write a number from %llu to %llu", (unsigned long long)numbers[i].least,
	           (unsigned long long)numbers[i].most);
	if (each > 1)
		buf_printf(&right, ", a multiple of %llu", (unsigned long long)each);
	fail(cx, MP_BAD_INPUT, arena_copy(&cx->scratch, right.s, right.len), "%s is '%s'", name, text);
}

DeviceKind environment_kind(Ctx *cx, uint64_t *seed)
{
	static const char emulate[] = "emulate:";
	const char *text = text_of("MICROPROP_CUDA");

	*seed = 0;
	if (!text || strcmp(text, "gpu") == 0)
		return DEVICE_GPU;
	if (strcmp(text, "small") == 0)
		return DEVICE_SMALL;
	if (strcmp(text, "emulate") == 0)
		return DEVICE_EMULATED;
	if (strncmp(text, emulate, sizeof emulate - 1) == 0 && is_number(text + sizeof emulate - 1, seed))
		return DEVICE_EMULATED;
	fail(cx, MP_BAD_INPUT, "write emulate, emulate:SEED or gpu, which is usual", "MICROPROP_CUDA is '%s'", text);
}

static const struct {
	const char *word;
	bool counts; /* WORD:N */
} faults[] = { { "driver", false }, { "old", false }, { "none", false },
	           { "memory", true },  { "copy", true }, { "job", true } };

bool environment_fault(Ctx *cx, const char *word, uint64_t *number)
{
	const char *text = text_of("MICROPROP_CUDA_FAULT");

	*number = 0;
	if (!text)
		return false;
	for (size_t i = 0; i < COUNT(faults); i++) {
		size_t len = strlen(faults[i].word);
		bool is = strncmp(text, faults[i].word, len) == 0;
		if (is && (faults[i].counts ? text[len] == ':' && is_number(text + len + 1, number) && *number : !text[len]))
			return strcmp(faults[i].word, word) == 0;
	}
	fail(cx, MP_BAD_INPUT, "write driver, old, none, memory:N, copy:N or job:N, with N from 1 on",
	     "MICROPROP_CUDA_FAULT is '%s'", text);
}
