/* SPDX-License-Identifier: MIT */
/* Parts of answers: JSON, errors, numbers of a query. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

bool answer_begin(ViewAnswer *a, Json *j)
{
	*a = (ViewAnswer){ .status = 200, .type = "application/json" };
	*j = (Json){ .f = open_memstream(&a->body, &a->len) };
	if (j->f)
		json_open(j, NULL, '{');
	return j->f;
}

void answer_empty(ViewAnswer *a)
{
	Json j;
	if (answer_begin(a, &j))
		answer_end(&j, a);
}

void answer_end(Json *j, ViewAnswer *a)
{
	json_end(j);
	if (fclose(j->f)) {
		free(a->body);
		*a = (ViewAnswer){ .status = 500 };
	}
}

void answer_error(ViewAnswer *a, int status, const char *fmt, ...)
{
	Json j;
	char text[2000];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	free(a->body);
	if (!answer_begin(a, &j))
		return;
	json_text(&j, "error", text);
	answer_end(&j, a);
	a->status = status;
}

void answer_bytes(ViewAnswer *a, const char *type, const void *bytes, size_t len)
{
	*a = (ViewAnswer){ .status = 200, .type = type, .body = malloc(len ? len : 1), .len = len };
	if (a->body && len)
		memcpy(a->body, bytes, len);
}

uint64_t query_count(const ViewRequest *q, const char *name, uint64_t otherwise)
{
	const char *text = q->argument(q, name);
	char *end;
	if (!text || !isdigit((unsigned char)text[0]))
		return otherwise;
	uint64_t n = strtoull(text, &end, 10);
	return *end ? otherwise : n;
}

PageRun *query_run(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	PageRun *r = page_run(p, query_count(q, "run", UINT64_MAX));
	if (!r)
		answer_error(a, 404, "there is no such run");
	return r;
}
