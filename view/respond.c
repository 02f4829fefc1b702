/* SPDX-License-Identifier: MIT */
/* Responses: headers that every one has, the page's files, texts, answers, the cookie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

typedef struct Asset {
	const char *path, *type, *hash;
	const unsigned char *bytes;
	size_t len;
} Asset;

static const Asset assets[] = {
#define ASSET(path, type, hash, ...) \
	{ path, type, hash, (const unsigned char[]){ __VA_ARGS__ }, sizeof((const unsigned char[]){ __VA_ARGS__ }) },
#include "view_assets.inc"
#undef ASSET
};

void respond_headers(struct MHD_Response *r, bool data)
{
	static const char *const all[][2] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri "
		  "'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "X-Frame-Options", "DENY" },
	};
	for (size_t i = 0; i < COUNT(all); i++)
		MHD_add_response_header(r, all[i][0], all[i][1]);
	MHD_add_response_header(r, "Cache-Control", data ? "no-store" : "no-cache");
}

static enum MHD_Result respond(struct MHD_Connection *c, unsigned status, struct MHD_Response *r, const char *type,
                               bool data)
{
	if (!r)
		return MHD_NO;
	if (type)
		MHD_add_response_header(r, "Content-Type", type);
	respond_headers(r, data);
	enum MHD_Result done = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return done;
}

enum MHD_Result respond_text(struct MHD_Connection *c, unsigned status, const char *text)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	if (r && status >= 400)
		MHD_add_response_header(r, "Connection", "close");
	return respond(c, status, r, "text/plain; charset=utf-8", true);
}

enum MHD_Result respond_answer(struct MHD_Connection *c, ViewAnswer *a)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(a->len, a->body, MHD_RESPMEM_MUST_FREE);
	if (r)
		a->body = NULL;
	return respond(c, (unsigned)a->status, r, a->type, true);
}

bool respond_asset(struct MHD_Connection *c, const char *path, enum MHD_Result *result)
{
	size_t i = 0;
	while (i < COUNT(assets) && strcmp(path, assets[i].path) != 0)
		i++;
	if (i == COUNT(assets))
		return false;
	const Asset *a = &assets[i];
	const char *known = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match");
	bool same = known && !strcmp(known, a->hash);
	struct MHD_Response *r =
		MHD_create_response_from_buffer(same ? 0 : a->len, (void *)(uintptr_t)a->bytes, MHD_RESPMEM_PERSISTENT);
	if (r)
		MHD_add_response_header(r, "ETag", a->hash);
	if (r && !same)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	*result = respond(c, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r, a->type, false);
	return true;
}

/* The token of a body {"token":"..."}; "": there is none. */
static void token_read(const char *body, char token[KEY + 1])
{
	const char *p = strstr(body, "\"token\"");
	token[0] = '\0';
	if (p)
		sscanf(p, "\"token\" : \"%32[0-9a-f]\"", token);
}

/* The token buys a cookie, for as long as the server runs. */
enum MHD_Result respond_session(ViewServer *s, struct MHD_Connection *c, const char *body)
{
	char token[KEY + 1], cookie[120];
	token_read(body, token);
	bool right = key_same(s->token, token);
	double now = clock_now();
	pthread_mutex_lock(&s->lock);
	if (now - s->wrong_at >= 1)
		s->wrong_at = now, s->wrong = 0;
	bool many = !right && ++s->wrong > WRONG_TOKENS;
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return many ? respond_text(c, MHD_HTTP_TOO_MANY_REQUESTS, "too many wrong tokens\n")
		            : respond_text(c, MHD_HTTP_UNAUTHORIZED, "this is not the token that was printed\n");
	snprintf(cookie, sizeof cookie, "microprop-%u=%s; HttpOnly; SameSite=Strict; Path=/", s->port, s->cookie);
	struct MHD_Response *r = MHD_create_response_from_buffer(2, (void *)(uintptr_t) "{}", MHD_RESPMEM_PERSISTENT);
	if (r)
		MHD_add_response_header(r, "Set-Cookie", cookie);
	return respond(c, MHD_HTTP_OK, r, "application/json", true);
}
