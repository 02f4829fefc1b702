/* SPDX-License-Identifier: MIT */
/* view: the web server of the page, on libmicrohttpd. One thread polls all connections, two threads (lanes) compute
 * answers, one (the ticker) wakes event streams and closes connections that take too long to send a request.
 *
 *     connection --checks--> asset | session | lane --answer--> response
 *                       \--> event stream
 *
 * In a process that trains, the server's threads have a lower priority than those that train. */
#ifndef VIEW_SERVER_H
#define VIEW_SERVER_H

#include <microhttpd.h>
#include <pthread.h>

#include "module.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum {
	CONNECTIONS = 256,    /* those beyond get 503 */
	SPARE = 64,           /* connections accepted to be told so */
	REQUEST_SECONDS = 10, /* to send a request */
	REQUEST_BYTES = 8 << 10,
	QUEUE = 64,        /* requests that wait for a lane; those beyond get 503 */
	WRONG_TOKENS = 20, /* a second; then 429 */
	EVENT_BYTES = 64 << 10,
	KEY = 32, /* digits of token and cookie: 128 bits */
};

/* One connection: since when it sends a request. */
typedef struct Peer {
	struct Peer *next, **at;
	int fd;
	double since; /* 0: a request has arrived and is being answered */
} Peer;

typedef struct Stream {
	struct Stream *next, **at;
	ViewServer *server;
	struct MHD_Connection *connection;
	bool waits; /* the connection is suspended */
	bool gone;  /* the page has closed it */
	int fd;
	double sent, looked;
	uint64_t position[VIEW_RUNS];
	char *text; /* [EVENT_BYTES] */
	size_t len, taken;
} Stream;

/* A request, from its first line to the end of its answer. */
typedef struct Exchange {
	struct Exchange *next;
	struct MHD_Connection *connection;
	ViewRequest request;
	char body[VIEW_BODY + 1];
	bool too_long, answered;
	int lane;
	ViewAnswer answer;
} Exchange;

typedef struct Lane {
	ViewServer *server;
	pthread_t thread;
	pthread_cond_t more;
	Exchange *first, **last;
	unsigned waiting;
} Lane;

struct ViewServer {
	ViewHost host;
	struct MHD_Daemon *daemon;
	pthread_t ticker;
	pthread_mutex_t lock; /* of all below */
	Lane lane[VIEW_LANES];
	Peer *peers;
	unsigned connections;
	Stream *streams;
	bool stopping;
	bool polled;    /* the polling thread has had a connection */
	unsigned wrong; /* tokens, in this second */
	double wrong_at;
	uint16_t port;
	char token[KEY + 1], cookie[KEY + 1];
	char hosts[2][32]; /* what Host may be */
};

/* ---- server.c ----------------------------------------------------------------------------------- */

double clock_now(void);

/* ---- checks.c: who may ask ---------------------------------------------------------------------- */

/* The status to refuse a request with; 0: it may be answered. The token and the cookie are compared in constant
 * time. */
unsigned check_request(const ViewServer *s, struct MHD_Connection *c, const char *method, const char *path);
bool key_make(char key[KEY + 1]);
bool key_same(const char *a, const char *b); /* b: of any length */

/* ---- respond.c: what goes back ------------------------------------------------------------------- */

enum MHD_Result respond_text(struct MHD_Connection *c, unsigned status, const char *text);
enum MHD_Result respond_answer(struct MHD_Connection *c, ViewAnswer *a); /* takes a->body */
enum MHD_Result respond_session(ViewServer *s, struct MHD_Connection *c, const char *body);
/* MHD_NO: there is no such asset, nothing was sent. */
bool respond_asset(struct MHD_Connection *c, const char *path, enum MHD_Result *result);
void respond_headers(struct MHD_Response *r, bool data);

/* ---- stream.c: server-sent events ---------------------------------------------------------------- */

enum MHD_Result stream_open(ViewServer *s, struct MHD_Connection *c);
void streams_wake(ViewServer *s, bool all); /* locked; not all: those that were silent for long */

#endif
