/* SPDX-License-Identifier: MIT */
/* The signals that end a run after it has saved: one table for train, for launch and for the text of the manual. */

#include "cli.h"

static const struct {
	int number;
	bool keep_ignored; /* if the parent had it ignored: nohup, for one; but shells ignore SIGINT in background jobs */
} stops[] = {
	{ SIGINT, false },
	{ SIGTERM, false },
	{ SIGHUP, true },
};

static bool is_taken(size_t i)
{
	struct sigaction now;
	return !stops[i].keep_ignored || sigaction(stops[i].number, NULL, &now) || now.sa_handler != SIG_IGN;
}

void signals_catch(void (*handler)(int number))
{
	struct sigaction on = { .sa_handler = handler };
	sigemptyset(&on.sa_mask);
	for (size_t i = 0; i < COUNT(stops); i++)
		if (is_taken(i))
			sigaction(stops[i].number, &on, NULL);
}

void signals_default(void)
{
	for (size_t i = 0; i < COUNT(stops); i++)
		if (is_taken(i))
			signal(stops[i].number, SIG_DFL);
}

void signals_block(sigset_t *before)
{
	sigset_t held;
	sigemptyset(&held);
	for (size_t i = 0; i < COUNT(stops); i++)
		sigaddset(&held, stops[i].number);
	sigprocmask(SIG_BLOCK, &held, before);
}
