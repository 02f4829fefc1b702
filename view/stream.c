/* SPDX-License-Identifier: MIT */
/* Event streams: one for each page. A stream without news is suspended and costs nothing; the ticker wakes it. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* then a page that has gone is noticed when the next comment is sent */
#endif

enum { SILENCE = 15 }; /* seconds; then a comment shows that the stream lives */

/* Positions "120,0,33" of a client that comes back, or that knows the beginning. */
static void positions_read(const char *text, uint64_t position[VIEW_RUNS])
{
	char *end;
	for (size_t i = 0; text && *text && i < VIEW_RUNS; i++) {
		position[i] = strtoull(text, &end, 10);
		if (end == text || *end != ',')
			return;
		text = end + 1;
	}
}

static ssize_t stream_read(void *user, uint64_t pos, char *buf, size_t max)
{
	Stream *t = user;
	ViewServer *s = t->server;
	(void)pos;
	if (t->taken == t->len) {
		t->taken = t->len = 0;
		t->len = s->host.events(s->host.user, t->position, t->text, EVENT_BYTES);
		double now = clock_now();
		if (!t->len && now - t->sent >= SILENCE) {
			memcpy(t->text, ":\n\n", 3);
			t->len = 3;
		}
		if (t->len)
			t->sent = now;
	}
	if (t->taken == t->len) {
		pthread_mutex_lock(&s->lock);
		bool ends = s->stopping || t->gone;
		t->waits = !ends;
		if (t->waits)
			MHD_suspend_connection(t->connection);
		pthread_mutex_unlock(&s->lock);
		return ends ? MHD_CONTENT_READER_END_OF_STREAM : 0;
	}
	size_t n = t->len - t->taken < max ? t->len - t->taken : max;
	memcpy(buf, t->text + t->taken, n);
	t->taken += n;
	return (ssize_t)n;
}

static void stream_free(void *user)
{
	Stream *t = user;
	pthread_mutex_lock(&t->server->lock);
	*t->at = t->next;
	if (t->next)
		t->next->at = t->at;
	pthread_mutex_unlock(&t->server->lock);
	free(t->text);
	free(t);
}

/* Nothing reads a connection that is suspended, so that it is looked at once a second. */
static bool stream_closed(Stream *t, double now)
{
	struct pollfd p = { .fd = t->fd, .events = POLLRDHUP };
	if (now - t->looked < 1)
		return false;
	t->looked = now;
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void streams_wake(ViewServer *s, bool all)
{
	double now = clock_now();
	for (Stream *t = s->streams; t; t = t->next) {
		if (!t->waits)
			continue;
		t->gone = stream_closed(t, now);
		if (!all && !t->gone && now - t->sent < SILENCE)
			continue;
		t->waits = false;
		MHD_resume_connection(t->connection);
	}
}

enum MHD_Result stream_open(ViewServer *s, struct MHD_Connection *c)
{
	static const char beginning[] = "retry: 1000\n\n";
	const char *last = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Last-Event-ID");
	Stream *t = calloc(1, sizeof *t);
	char *text = t ? malloc(EVENT_BYTES) : NULL;
	if (!text) {
		free(t);
		return respond_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	}
	*t = (Stream){ .server = s, .connection = c, .text = text, .sent = clock_now() };
	t->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	positions_read(last ? last : MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "from"), t->position);
	memcpy(text, beginning, sizeof beginning - 1);
	t->len = sizeof beginning - 1;
	pthread_mutex_lock(&s->lock);
	t->next = s->streams;
	t->at = &s->streams;
	if (t->next)
		t->next->at = &t->next;
	s->streams = t;
	pthread_mutex_unlock(&s->lock);
	struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, t, stream_free);
	if (!r) {
		stream_free(t);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	respond_headers(r, true);
	enum MHD_Result done = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}
