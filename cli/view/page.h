/* SPDX-License-Identifier: MIT */
/* The program's side of the page: runs, networks, the machine, NETtalk. Answers are JSON unless they say otherwise. No
 * string of a request is ever a file name: files are those that the command line names, by number. */
#ifndef PAGE_H
#define PAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "../cli.h"
#include "module.h"

enum {
	PAGE_RUNS = VIEW_RUNS - 1, /* the last position of a stream is that of the list */
	PAGE_OPERANDS = 64,        /* of the command line */
};

/* Lines of metrics of a run that is trained by this process. */
typedef struct Feed {
	pthread_mutex_t lock;
	char *text;
	size_t len, cap;
	char *held; /* lines that found it locked; the trainer's own */
	size_t held_len;
	char *args; /* as args.json */
	bool ended; /* the page's lock is its own */
} Feed;

typedef struct PageRun {
	char *name, *folder; /* never change; folder NULL: none was asked for */
	char *model;         /* a file that is no run's; else NULL */
	Feed *feed;          /* NULL: metrics.jsonl is read */
	int fd;              /* of metrics.jsonl; -1: not open */
	uint64_t size;       /* of it, when last looked at */
	pid_t trainer;       /* 0: no process trains it now */
} PageRun;

typedef struct Network Network;
typedef struct Talk Talk;
typedef struct Page {
	pthread_mutex_t lock; /* of the list */
	PageRun run[PAGE_RUNS];
	uint32_t runs;
	uint64_t list;                     /* number of changes of runs and of which of them are trained */
	uint64_t told;                     /* of these, when page_changed last looked */
	bool full;                         /* there are more runs than are shown */
	const char *parent[PAGE_OPERANDS]; /* folders of runs */
	uint32_t parents;
	uint64_t looked; /* calls of page_changed, by one thread */
	bool control;
	atomic_bool save; /* the page asks the trainer, this process, for a checkpoint */
	bool trains;      /* this process trains runs[0] */
	const char *data; /* cases to show; NULL: those that the run was trained on */
	Network *network;
	Talk *talk;
} Page;

/* ---- host.c: the module and the table of addresses ---------------------------------------------- */

typedef struct Host Host;
Host *host_start(Page *p, uint16_t port, int *rc); /* NULL: exit status in *rc, message shown */
void host_stop(Host *h);
uint16_t host_port(const Host *h);
const char *host_token(const Host *h);

/* ---- answer.c: parts of answers ------------------------------------------------------------------ */

typedef void AnswerFn(Page *p, const ViewRequest *q, ViewAnswer *a);
/* Begins an answer: members of an object go to the Json until answer_end. false: out of memory, there is none. */
bool answer_begin(ViewAnswer *a, Json *j) __attribute__((warn_unused_result));
void answer_end(Json *j, ViewAnswer *a);
void answer_empty(ViewAnswer *a); /* {}: it is done */
void answer_error(ViewAnswer *a, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void answer_bytes(ViewAnswer *a, const char *type, const void *bytes, size_t len); /* copied */
/* A number of the query; `otherwise` where there is none or it is not one. */
uint64_t query_count(const ViewRequest *q, const char *name, uint64_t otherwise);
/* The run that the query names, or NULL, answered. */
PageRun *query_run(Page *p, const ViewRequest *q, ViewAnswer *a);

/* ---- runs.c: the list, learning curves ----------------------------------------------------------- */

int page_add(Page *p, const char *path);     /* exit status, message shown */
void page_scan(Page *p);                     /* new runs in folders of runs */
PageRun *page_run(Page *p, uint64_t number); /* NULL: there is none */
bool page_changed(void *page);
size_t page_events(void *page, uint64_t position[VIEW_RUNS], char *text, size_t size);
void page_close(Page *p);
void trainers_find(Page *p);      /* locked: which runs are being trained, and by whom */
char *run_args(const PageRun *r); /* args.json, compact; NULL: there is none; free it */
/* Does not wait for a reader: the line then goes with the next one; the last one waits. */
void feed_line(Feed *f, const char *line, size_t len, bool last);
AnswerFn about_answer, runs_answer, metrics_answer, control_answer;

/* ---- network.c: one trained network -------------------------------------------------------------- */

AnswerFn net_answer, links_answer, weights_answer, activations_answer, measure_answer;
void network_close(Network *n);

/* ---- machine.c: the GF11 ------------------------------------------------------------------------- */

AnswerFn gf11_answer;

/* ---- talk.c: NETtalk ----------------------------------------------------------------------------- */

AnswerFn talk_answer, talk_train_answer, talk_words_answer;
void talk_close(Talk *t);

#endif
