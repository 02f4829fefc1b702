/* SPDX-License-Identifier: MIT */
/* train --view: the page of the run that this process trains.
 *
 * Must hold: the trainer copies a line of metrics at each report and never waits for a browser. */
#include <stdlib.h>
#include <string.h>

#include "page.h"

/* Reports that reach the page: all of the first ones, then one in each ten-thousandth of the time so far. Some 100,000
 * in a day, as many bytes as a small model, however fast epochs are. */
enum { ALL_LINES = 10000 };

struct Viewer {
	Page page;
	Feed feed;
	Host *host;
	uint64_t lines;     /* that the feed got */
	double began, sent; /* when it got the first, and the last */
};

static void viewer_free(Viewer *w)
{
	network_close(w->page.network);
	talk_close(w->page.talk);
	page_close(&w->page);
	free(w->feed.text);
	free(w->feed.held);
	free(w->feed.args);
	free(w);
}

static char *args_text_of(const RunDir *d)
{
	TextFile f;
	if (!text_begin(&f))
		return NULL;
	rundir_args(d, f.f);
	fclose(f.f);
	return f.text;
}

int viewer_start(Viewer **viewer, const RunDir *dir, Session *s, const char *data, const char *test)
{
	Args *a = dir->args;
	int rc = EXIT_DONE;
	if (!args_flag(a, "view"))
		return EXIT_DONE;
	Viewer *w = calloc(1, sizeof *w);
	char *name = strdup(dir->path ? dir->path : a->operand[0]);
	RunDir named = *dir;
	named.session = s;
	named.data = data;
	named.test = test;
	if (!w || !name) {
		complain(NULL, "out of memory");
		free(w);
		free(name);
		return EXIT_FAILED;
	}
	pthread_mutex_init(&w->page.lock, NULL);
	pthread_mutex_init(&w->feed.lock, NULL);
	w->feed.args = args_text_of(&named);
	w->page.run[0] =
		(PageRun){ .name = name, .folder = dir->path ? strdup(dir->path) : NULL, .feed = &w->feed, .fd = -1 };
	w->page.runs = 1;
	w->page.trains = true;
	w->page.control = args_flag(a, "control");
	signal(SIGPIPE, SIG_IGN);
	w->host = host_start(&w->page, 0, &rc);
	if (!w->host) {
		viewer_free(w);
		return rc;
	}
	show(stderr, "view: http://127.0.0.1:%u/#%s\n", host_port(w->host), host_token(w->host));
	*viewer = w;
	return EXIT_DONE;
}

static bool report_counts(Viewer *w, const mp_report *r)
{
	double now = wall_clock();
	if (w->lines >= ALL_LINES && now - w->sent < (now - w->began) / ALL_LINES && !r->stopped_by)
		return false;
	w->began = w->lines ? w->began : now;
	w->sent = now;
	w->lines++;
	return true;
}

bool viewer_report(Viewer *w, const mp_report *r, const Norms *n)
{
	TextFile f;
	if (!w)
		return false;
	if (!report_counts(w, r) || !report_line(&f, r, n))
		return atomic_exchange(&w->page.save, false);
	feed_line(&w->feed, f.text, f.len, r->stopped_by);
	free(f.text);
	return atomic_exchange(&w->page.save, false);
}

void viewer_stop(Viewer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->page.lock);
	w->feed.ended = true;
	trainers_find(&w->page); /* pages hear of it as their streams end */
	pthread_mutex_unlock(&w->page.lock);
	host_stop(w->host);
	viewer_free(w);
}
