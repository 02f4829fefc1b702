/* SPDX-License-Identifier: MIT */
/* The module of `microprop view` where the program is WebAssembly in a worker of a page: no server, the page calls
 * desk_answer. In: what a request of the page would hold. Out: what a server would answer. */
#include <emscripten.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>

#include "module.h"

struct ViewServer {
	ViewHost host;
};

enum { TICKS = 20 };

static ViewServer desk;
static ViewAnswer answer;

static const char *desk_argument(const ViewRequest *q, const char *name)
{
	return json_string_value(json_object_get(q->connection, name));
}

/* query: a JSON object of strings. Returns the status; desk_body, desk_length and desk_type have the rest until the
 * next call. */
EMSCRIPTEN_KEEPALIVE int desk_answer(const char *path, bool post, const char *query, const char *body)
{
	json_t *arguments = json_loads(query, 0, NULL);
	size_t len = 0;
	while (body[len])
		len++;
	const ViewRequest q = { path, post, body, len, desk_argument, arguments };
	free(answer.body);
	answer = (ViewAnswer){ .status = 404 };
	if (desk.host.answer && desk.host.lane(desk.host.user, path, post) >= 0) {
		for (int i = 0; i < TICKS; i++) /* in some of which it looks for new runs */
			desk.host.changed(desk.host.user);
		desk.host.answer(desk.host.user, &q, &answer);
	}
	json_decref(arguments);
	return answer.status;
}

EMSCRIPTEN_KEEPALIVE const char *desk_body(void) { return answer.body; }
EMSCRIPTEN_KEEPALIVE size_t desk_length(void) { return answer.body ? answer.len : 0; }
EMSCRIPTEN_KEEPALIVE const char *desk_type(void) { return answer.type ? answer.type : "text/plain"; }

/* `view` waits for a signal: here the call ends, and everything stays for desk_answer. */
int sigwait(const sigset_t *restrict set, int *restrict number)
{
	(void)set, (void)number;
	emscripten_exit_with_live_runtime();
	return 0;
}

static ViewServer *desk_start(const ViewHost *host, uint16_t port, const char **why)
{
	(void)port, (void)why;
	desk.host = *host;
	return &desk;
}
static uint16_t desk_port(const ViewServer *s)
{
	(void)s;
	return 0;
}
static const char *desk_token(const ViewServer *s)
{
	(void)s;
	return "";
}
static void desk_stop(ViewServer *s) { s->host = (ViewHost){ 0 }; }

const ViewModule *microprop_view(int version)
{
	static const ViewModule module = { desk_start, desk_port, desk_token, desk_stop };
	return version == VIEW_VERSION ? &module : NULL;
}
