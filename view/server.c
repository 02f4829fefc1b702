/* SPDX-License-Identifier: MIT */
/* The server: connections, lanes, ticker.
 *
 * Must hold: a connection that waits for a lane is suspended, so that nothing but its lane uses it; a Peer is in the
 * list until its socket is closed, so that the ticker shuts down no other socket. */
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#if defined __linux__ && defined _GNU_SOURCE
#include <sys/syscall.h>
#endif

#include "server.h"

enum { TICK_MS = 100, NICE = 10, END_MS = 500 }; /* END_MS: for streams to end when the server stops */

double clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this thread alone, as Linux has it; elsewhere it would be that of the trainer, too. */
static void priority_lower(const ViewServer *s)
{
#if defined SYS_gettid
	const struct sched_param plain = { 0 };
	if (s->host.trains && !sched_setscheduler(0, SCHED_OTHER, &plain))
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
#else
	(void)s;
#endif
}

/* ---- connections --------------------------------------------------------------------------------- */

static void peer_add(ViewServer *s, struct MHD_Connection *c, void **context)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	Peer *p = calloc(1, sizeof *p);
	*context = p;
	pthread_mutex_lock(&s->lock);
	s->connections++;
	if (p) {
		*p = (Peer){ s->peers, &s->peers, fd->connect_fd, clock_now() };
		if (p->next)
			p->next->at = &p->next;
		s->peers = p;
	}
	pthread_mutex_unlock(&s->lock);
}

static void connection_changed(void *user, struct MHD_Connection *c, void **context,
                               enum MHD_ConnectionNotificationCode code)
{
	ViewServer *s = user;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		if (!s->polled) /* by the thread that polls */
			priority_lower(s);
		s->polled = true;
		peer_add(s, c, context);
		return;
	}
	Peer *p = *context;
	pthread_mutex_lock(&s->lock);
	s->connections--;
	if (p) {
		*p->at = p->next;
		if (p->next)
			p->next->at = p->at;
	}
	pthread_mutex_unlock(&s->lock);
	free(p);
}

/* Since when it sends; 0: it does not. */
static void peer_sends(ViewServer *s, struct MHD_Connection *c, double since)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	Peer *p = info ? info->socket_context : NULL;
	pthread_mutex_lock(&s->lock);
	if (p)
		p->since = since;
	pthread_mutex_unlock(&s->lock);
}

static void peers_close_slow(ViewServer *s) /* locked */
{
	double now = clock_now();
	for (Peer *p = s->peers; p; p = p->next)
		if (p->since > 0 && now - p->since > REQUEST_SECONDS)
			shutdown(p->fd, SHUT_RDWR);
}

static void *ticker_run(void *user)
{
	ViewServer *s = user;
	struct timespec tick = { 0, TICK_MS * 1000000L };
	priority_lower(s);
	for (bool stopping = false; !stopping;) {
		nanosleep(&tick, NULL);
		pthread_mutex_lock(&s->lock);
		bool listened = s->streams != NULL;
		pthread_mutex_unlock(&s->lock);
		bool news = listened && s->host.changed(s->host.user);
		pthread_mutex_lock(&s->lock);
		stopping = s->stopping;
		streams_wake(s, news || stopping);
		peers_close_slow(s);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* ---- lanes --------------------------------------------------------------------------------------- */

static const char *request_argument(const ViewRequest *q, const char *name)
{
	return MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, name);
}

static bool lane_put(Lane *l, Exchange *x)
{
	ViewServer *s = l->server;
	pthread_mutex_lock(&s->lock);
	bool fits = l->waiting < QUEUE && !s->stopping;
	if (fits) {
		x->next = NULL;
		*l->last = x;
		l->last = &x->next;
		l->waiting++;
		MHD_suspend_connection(x->connection);
		pthread_cond_signal(&l->more);
	}
	pthread_mutex_unlock(&s->lock);
	return fits;
}

static Exchange *lane_take(Lane *l) /* locked; NULL: the server stops */
{
	while (!l->first && !l->server->stopping)
		pthread_cond_wait(&l->more, &l->server->lock);
	Exchange *x = l->first;
	if (x && !(l->first = x->next))
		l->last = &l->first;
	return x;
}

static void *lane_run(void *user)
{
	Lane *l = user;
	ViewServer *s = l->server;
	Exchange *x;
	priority_lower(s);
	pthread_mutex_lock(&s->lock);
	while ((x = lane_take(l))) {
		bool stopping = s->stopping;
		pthread_mutex_unlock(&s->lock);
		if (!stopping)
			s->host.answer(s->host.user, &x->request, &x->answer);
		x->answered = true;
		pthread_mutex_lock(&s->lock);
		l->waiting--;
		MHD_resume_connection(x->connection);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static const char *refusal(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} texts[] = {
		{ MHD_HTTP_UNAUTHORIZED, "open the address that microprop view printed, with its token\n" },
		{ MHD_HTTP_FORBIDDEN, "requests of other pages are refused\n" },
		{ MHD_HTTP_NOT_FOUND, "there is nothing here\n" },
		{ MHD_HTTP_METHOD_NOT_ALLOWED, "this method is not for this address\n" },
		{ MHD_HTTP_CONTENT_TOO_LARGE, "a request has at most 8 KB\n" },
		{ MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "a request has the type application/json\n" },
		{ MHD_HTTP_MISDIRECTED_REQUEST, "this is not the address of this server\n" },
		{ MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "a request has at most 8 KB\n" },
		{ MHD_HTTP_SERVICE_UNAVAILABLE, "too many at once; try again\n" },
	};
	for (size_t i = 0; i < COUNT(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "refused\n";
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status)
{
	return respond_text(c, status, refusal(status));
}

/* The whole request is here. */
static enum MHD_Result exchange_answer(ViewServer *s, Exchange *x, const char *path)
{
	struct MHD_Connection *c = x->connection;
	enum MHD_Result result;
	bool post = x->request.post;
	if (x->answered)
		return x->answer.body ? respond_answer(c, &x->answer) : refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE);
	if (x->too_long)
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE);
	if (strncmp(path, "/api/", 5))
		return respond_asset(c, path, &result) ? result : refuse(c, MHD_HTTP_NOT_FOUND);
	if (!strcmp(path, "/api/session"))
		return respond_session(s, c, x->body);
	if (!strcmp(path, "/api/events") && !post)
		return stream_open(s, c);
	int lane = s->host.lane(s->host.user, path, post);
	if (lane < 0)
		return refuse(c, MHD_HTTP_NOT_FOUND);
	x->request.path = path;
	x->request.body = x->body;
	return lane_put(&s->lane[lane], x) ? MHD_YES : refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE);
}

static enum MHD_Result exchange_begin(ViewServer *s, struct MHD_Connection *c, const char *method, const char *path,
                                      void **context)
{
	pthread_mutex_lock(&s->lock);
	bool crowded = s->connections > CONNECTIONS;
	pthread_mutex_unlock(&s->lock);
	unsigned refused = crowded ? MHD_HTTP_SERVICE_UNAVAILABLE : check_request(s, c, method, path);
	if (refused)
		return refuse(c, refused);
	Exchange *x = calloc(1, sizeof *x);
	if (!x)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE);
	x->connection = c;
	x->request =
		(ViewRequest){ .post = !strcmp(method, "POST"), .argument = request_argument, .body = "", .connection = c };
	*context = x;
	return MHD_YES;
}

static enum MHD_Result request_handle(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                      const char *version, const char *data, size_t *len, void **context)
{
	ViewServer *s = user;
	Exchange *x = *context;
	(void)version;
	if (!x)
		return exchange_begin(s, c, method, path, context);
	if (*len) { /* its body, in slices */
		if (x->request.len + *len > VIEW_BODY)
			x->too_long = true;
		else
			memcpy(x->body + x->request.len, data, *len);
		x->request.len += *len;
		*len = 0;
		return MHD_YES;
	}
	peer_sends(s, c, 0);
	return exchange_answer(s, x, path);
}

static void request_end(void *user, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode code)
{
	Exchange *x = *context;
	(void)code;
	peer_sends(user, c, clock_now()); /* it may send another one */
	if (x)
		free(x->answer.body);
	free(x);
	*context = NULL;
}

/* ---- start and stop ------------------------------------------------------------------------------ */

static void server_free(ViewServer *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct MHD_Daemon *daemon_start(ViewServer *s, uint16_t port)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
		                        .sin_port = htons(port),
		                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, port, NULL, NULL, request_handle,
	                        s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&here, MHD_OPTION_NOTIFY_COMPLETED, request_end,
	                        s, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, s, MHD_OPTION_CONNECTION_LIMIT,
	                        (unsigned)(CONNECTIONS + SPARE), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)REQUEST_SECONDS,
	                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(2 * REQUEST_BYTES), MHD_OPTION_END);
}

static bool streams_open(ViewServer *s)
{
	pthread_mutex_lock(&s->lock);
	bool open = s->streams;
	pthread_mutex_unlock(&s->lock);
	return open;
}

/* They have been woken, and send what is left; a client that does not read is not waited for. */
static void streams_end(ViewServer *s)
{
	const struct timespec moment = { 0, 5 * 1000000L };
	for (int ms = 0; ms < END_MS && streams_open(s); ms += 5)
		nanosleep(&moment, NULL);
}

static void server_stop(ViewServer *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	for (size_t i = 0; i < VIEW_LANES; i++)
		pthread_cond_signal(&s->lane[i].more);
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < VIEW_LANES; i++)
		pthread_join(s->lane[i].thread, NULL);
	pthread_join(s->ticker, NULL); /* it has woken all streams */
	streams_end(s);
	MHD_stop_daemon(s->daemon);
	server_free(s);
}

static void threads_start(ViewServer *s)
{
	for (size_t i = 0; i < VIEW_LANES; i++) {
		Lane *l = &s->lane[i];
		l->server = s;
		l->last = &l->first;
		pthread_cond_init(&l->more, NULL);
		pthread_create(&l->thread, NULL, lane_run, l);
	}
	pthread_create(&s->ticker, NULL, ticker_run, s);
}

static ViewServer *server_start(const ViewHost *host, uint16_t port, const char **why)
{
	ViewServer *s = calloc(1, sizeof *s);
	*why = "out of memory";
	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->host = *host;
	*why = "there are no random numbers";
	if (!key_make(s->token) || !key_make(s->cookie)) {
		server_free(s);
		return NULL;
	}
	*why = "the port is in use, or sockets are forbidden";
	s->daemon = daemon_start(s, port);
	const union MHD_DaemonInfo *bound = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!bound) {
		server_free(s);
		return NULL;
	}
	s->port = bound->port;
	snprintf(s->hosts[0], sizeof s->hosts[0], "127.0.0.1:%u", s->port);
	snprintf(s->hosts[1], sizeof s->hosts[1], "localhost:%u", s->port);
	threads_start(s);
	return s;
}

static uint16_t server_port(const ViewServer *s) { return s->port; }
static const char *server_token(const ViewServer *s) { return s->token; }

__attribute__((visibility("default"))) ViewModuleFn microprop_view;
const ViewModule *microprop_view(int version)
{
	static const ViewModule module = { server_start, server_port, server_token, server_stop };
	return version == VIEW_VERSION ? &module : NULL;
}
