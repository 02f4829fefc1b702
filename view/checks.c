/* SPDX-License-Identifier: MIT */
/* Checks of a request: Host, Origin, cookie, size.
 *
 * In: a request whose headers have arrived.  Out: the status that refuses it, or 0.
 * Must hold: only what is part of the page itself, and the exchange of the token, are answered without the cookie. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server.h"

bool key_make(char key[KEY + 1])
{
	unsigned char bytes[KEY / 2];
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC); /* POSIX.1-2008 has no call */
	bool read_all = fd >= 0 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
	if (fd >= 0)
		close(fd);
	if (!read_all)
		return false;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(key + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

bool key_same(const char *a, const char *b)
{
	unsigned differ = strlen(b) != KEY;
	for (size_t i = 0; i < KEY && !(differ && !b[i]); i++)
		differ |= (unsigned)(a[i] ^ b[i]);
	return !differ;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static bool host_is_ours(const ViewServer *s, const char *host)
{
	for (size_t i = 0; host && i < COUNT(s->hosts); i++)
		if (!strcmp(host, s->hosts[i]))
			return true;
	return false;
}

/* "http://" and the Host of the same request. */
static bool origin_is_ours(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	return origin && !strncmp(origin, scheme, sizeof scheme - 1) && !strcmp(origin + sizeof scheme - 1, host);
}

static bool cookie_is_ours(const ViewServer *s, struct MHD_Connection *c)
{
	char name[24];
	snprintf(name, sizeof name, "microprop-%u", s->port);
	const char *value = MHD_lookup_connection_value(c, MHD_COOKIE_KIND, name);
	return value && key_same(s->cookie, value);
}

static enum MHD_Result bytes_add(void *total, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	*(size_t *)total += strlen(name) + (value ? strlen(value) : 0) + 4;
	return MHD_YES;
}

static unsigned check_post(struct MHD_Connection *c, const char *host)
{
	const char *type = header(c, "Content-Type");
	if (!origin_is_ours(header(c, "Origin"), host))
		return MHD_HTTP_FORBIDDEN;
	if (!type || strncmp(type, "application/json", 16) || (type[16] && type[16] != ';'))
		return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	return 0;
}

unsigned check_request(const ViewServer *s, struct MHD_Connection *c, const char *method, const char *path)
{
	const char *host = header(c, "Host"), *site = header(c, "Sec-Fetch-Site");
	bool post = !strcmp(method, "POST");
	size_t bytes = strlen(path);
	MHD_get_connection_values(c, MHD_HEADER_KIND | MHD_GET_ARGUMENT_KIND, bytes_add, &bytes);
	if (bytes > REQUEST_BYTES)
		return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
	if (!host_is_ours(s, host))
		return MHD_HTTP_MISDIRECTED_REQUEST;
	if (!post && strcmp(method, "GET") && strcmp(method, "HEAD"))
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	if (strncmp(path, "/api/", 5))
		return post ? MHD_HTTP_METHOD_NOT_ALLOWED : 0;
	if (site && strcmp(site, "same-origin") && strcmp(site, "none"))
		return MHD_HTTP_FORBIDDEN;
	unsigned refused = post ? check_post(c, host) : 0;
	if (refused || !strcmp(path, "/api/session"))
		return refused ? refused : post ? 0 : MHD_HTTP_METHOD_NOT_ALLOWED;
	return cookie_is_ours(s, c) ? 0 : MHD_HTTP_UNAUTHORIZED;
}
