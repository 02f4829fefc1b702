/* SPDX-License-Identifier: MIT */
/* Texts of this folder that exported files begin with. */
#include <string.h>

#include "export.h"

typedef struct RuntimeText {
	const char *name;
	const unsigned char *text;
	size_t len;
} RuntimeText;

#define PARAM_FILE(name, ...) \
	{ name, (const unsigned char[]){ __VA_ARGS__, 0 }, sizeof((const unsigned char[]){ __VA_ARGS__ }) },
static const RuntimeText texts[] = {
#include "runtimes.def"
};
#undef PARAM_FILE

const char *runtime_text(const char *name, size_t *len)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (strcmp(texts[i].name, name) == 0) {
			*len = texts[i].len;
			return (const char *)texts[i].text;
		}
	}
	*len = 0;
	return "";
}
