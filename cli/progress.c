/* SPDX-License-Identifier: MIT */
/* Progress on stderr: on a terminal one line, overwritten with each report; with --report N, and on terminals that
 * cannot move the cursor, a line for each report. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

double wall_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { LINE_SECONDS = 10 }; /* between lines that were not asked for */

void progress_start(Progress *p, bool quiet, bool asked, const char *time_limit)
{
	p->screen = screen_of(STDERR_FILENO);
	p->lines = !p->screen.moves;
	p->on = (p->screen.terminal || asked) && !quiet;
	p->every = asked ? 0 : LINE_SECONDS;
	p->time_limit = time_limit ? strtod(time_limit, NULL) : 0;
	p->began = wall_clock();
}

/* Seconds until the run ends by epochs or by time, whichever is first; NaN if neither is known. */
static double time_left(const Progress *p, const mp_report *r, double epochs_per_second)
{
	double by_epochs = NAN, by_time = NAN;
	if (r->epochs && epochs_per_second > 0)
		by_epochs = (double)(r->epochs - (r->epoch < r->epochs ? r->epoch : r->epochs)) / epochs_per_second;
	if (p->time_limit > 0)
		by_time = fmax(0, p->time_limit - r->seconds);
	return fmin(by_epochs, by_time);
}

static void line_show(Progress *p, const char *line)
{
	double now = wall_clock();
	if (p->lines) {
		if (now - p->shown < p->every)
			return;
		p->shown = now;
		fprintf(stderr, "%s\n", line);
		return;
	}
	p->screen = screen_of(STDERR_FILENO); /* its width may have changed */
	fprintf(stderr, "\r%s%.*s\033[K%s", p->screen.colour ? "\033[36m" : "", p->screen.columns - 1, line,
	        p->screen.colour ? "\033[0m" : "");
	fflush(stderr);
}

void progress_line(Progress *p, const char *line)
{
	if (p->on)
		line_show(p, line);
}

void progress_restarts(Progress *p, const mp_restarts *m)
{
	char line[256];
	if (!p->on)
		return;
	snprintf(line, sizeof line, "%s of %s seeds  %s solved  %s seeds/s", format_count(m->done).s,
	         format_count(m->count).s, format_count(m->solved).s, format_real(m->seeds_per_second).s);
	line_show(p, line);
}

void progress_show(Progress *p, const mp_report *r)
{
	char line[256];
	if (!p->on)
		return;
	double passed = wall_clock() - p->began;
	uint64_t epochs = r->epoch > p->first_epoch ? r->epoch - p->first_epoch : 0;
	double speed = passed > 0 ? (double)epochs / passed : 0, left = time_left(p, r, speed);
	size_t n = 0; /* what counts most comes first: narrow terminals cut the end */
	if (!isnan(left) && !p->lines)
		n += (size_t)snprintf(line, sizeof line, "%s left  ", format_time(ceil(left)).s);
	n += (size_t)snprintf(line + n, sizeof line - n, "epoch %s", format_count(r->epoch).s);
	if (r->epochs)
		n += (size_t)snprintf(line + n, sizeof line - n, " of %s", format_count(r->epochs).s);
	n += (size_t)snprintf(line + n, sizeof line - n, "  error %s  right %s", format_real(r->error).s,
	                      format_share(r->right).s);
	if (r->tested)
		n += (size_t)snprintf(line + n, sizeof line - n, "  test %s", format_share(r->test_right).s);
	n += (size_t)snprintf(line + n, sizeof line - n, "  %s epochs/s  %s MCPS", format_real(speed).s,
	                      format_real(r->mcps).s);
	if (!isnan(left) && p->lines)
		snprintf(line + n, sizeof line - n, "  %s left", format_time(ceil(left)).s);
	line_show(p, line);
}

void progress_end(Progress *p)
{
	if (p->on && !p->lines)
		fputs("\r\033[K", stderr);
}
