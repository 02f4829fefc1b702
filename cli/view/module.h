/* SPDX-License-Identifier: MIT */
/* Between the program and microprop-view.so, the module with the web server and the page. The module knows HTTP and
 * nothing of networks; the program answers requests and knows nothing of HTTP. */
#ifndef VIEW_MODULE_H
#define VIEW_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VIEW_VERSION = 1,
	VIEW_RUNS = 64,         /* at most, in one page */
	VIEW_LANES = 2,         /* threads that answer: one for short work, one for simulations */
	VIEW_BODY = 8 << 10,    /* bytes of a request's body */
	VIEW_ANSWER = 64 << 20, /* bytes of an answer */
};

typedef struct ViewRequest ViewRequest;
struct ViewRequest {
	const char *path; /* "/api/runs" */
	bool post;
	const char *body; /* of a POST, as text; "" of a GET */
	size_t len;
	const char *(*argument)(const ViewRequest *q, const char *name); /* of the query; NULL: not given */
	void *connection;                                                /* the module's own */
};

typedef struct ViewAnswer {
	int status; /* 200, 400, ... */
	const char *type;
	char *body; /* from malloc; the module frees it */
	size_t len;
} ViewAnswer;

/* What the program provides. */
typedef struct ViewHost {
	void *user;
	bool trains; /* the process also trains: the server's threads get a lower priority */
	/* The thread that answers this path; -1: there is no such path. Called by the server's thread. */
	int (*lane)(void *user, const char *path, bool post);
	/* Called by the thread of the lane. */
	void (*answer)(void *user, const ViewRequest *q, ViewAnswer *a);
	/* Have there been events since the last call? Called ten times a second, while pages listen. */
	bool (*changed)(void *user);
	/* Events after the positions (bytes of each run's metrics), which advance, as text of an event stream; 0: none. */
	size_t (*events)(void *user, uint64_t position[VIEW_RUNS], char *text, size_t size);
} ViewHost;

typedef struct ViewServer ViewServer;
typedef struct ViewModule {
	/* Listens on 127.0.0.1; port 0: a free one. NULL: failed, *why says so. */
	ViewServer *(*start)(const ViewHost *host, uint16_t port, const char **why);
	uint16_t (*port)(const ViewServer *s);
	const char *(*token)(const ViewServer *s); /* 32 hexadecimal digits */
	void (*stop)(ViewServer *s);
} ViewModule;

/* "microprop_view": NULL where the versions differ. */
typedef const ViewModule *ViewModuleFn(int version);

#endif
