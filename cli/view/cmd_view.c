/* SPDX-License-Identifier: MIT */
/* view: serves the page to a browser on this machine until a signal ends it. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page.h"

static const Option options[] = {
	{ "port", "N", "the port; default: a free one" },
	{ "data", "DATA", "cases to show in the network; default: those that a run was tested or trained on" },
	{ "control", NULL, "let the page stop runs and resume them; default: it only reads" },
	{ "json", NULL, "print address, port and token as one JSON object" },
	{ NULL, NULL, NULL },
};

static void address_print(const Host *h, bool json)
{
	char url[100];
	snprintf(url, sizeof url, "http://127.0.0.1:%u/#%s", host_port(h), host_token(h));
	if (json) {
		Json j = { .f = stdout };
		json_open(&j, NULL, '{');
		json_text(&j, "url", url);
		json_count(&j, "port", host_port(h));
		json_text(&j, "token", host_token(h));
		json_end(&j);
	} else {
		show(stdout, "%s\n", url);
		show(stdout, "Open this address in a browser on this machine. Ctrl-C ends it.\n");
	}
	fflush(stdout);
}

static int view_wait(void)
{
	sigset_t stops;
	int number = 0;
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	while (sigwait(&stops, &number))
		;
	return number == SIGINT ? EXIT_DONE : 128 + number;
}

static int view_run(Args *a)
{
	static Page page = { .lock = PTHREAD_MUTEX_INITIALIZER };
	Page *p = &page;
	uint64_t port = 0;
	int rc = args_count(a, "port", &port) ? EXIT_DONE : EXIT_USAGE;
	if (!rc && port > 65535) {
		complain("give a number from 1 to 65535, or leave it out", "--port: there is no port %s", args_text(a, "port"));
		rc = EXIT_USAGE;
	}
	p->control = args_flag(a, "control");
	p->data = args_text(a, "data");
	for (int i = 0; i < a->operands && !rc; i++)
		rc = page_add(p, a->operand[i]);
	if (rc)
		return rc;
	page_scan(p);
	sigset_t before;
	signals_block(&before); /* in all threads: one waits for them */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* resumed runs end by themselves */
	Host *h = host_start(p, (uint16_t)port, &rc);
	if (h) {
		address_print(h, args_flag(a, "json"));
		rc = view_wait();
		host_stop(h);
	}
	network_close(p->network);
	talk_close(p->talk);
	page_close(p);
	return rc;
}

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop view runs/1 runs/2", "two runs beside each other, also while they are trained" },
	{ "microprop view runs", "all runs in a folder" },
	{ "microprop view", "the machine of 1989, and NETtalk" },
	{ "microprop view net.safetensors --data make:letters", "a trained network" },
	{ NULL, NULL },
};

const Command view_command = {
	.name = "view",
	.operands = "[RUN...]",
	.most = PAGE_OPERANDS,
	.summary = "see runs, networks, the GF11 and NETtalk in a browser",
	.about =
		"Serves a page to a browser on this machine and prints its address, which holds a token: learning curves of "
		"runs (folders of train --run) as they grow, weights and activations of their networks, the GF11, "
		"simulated, and NETtalk, trained in the page and spoken.\n\n"
		"RUN is the folder of a run, a folder that holds such folders, or a model. The server listens on 127.0.0.1 "
		"only, answers only who has the token, and reads only, unless --control is given. Ctrl-C ends it.",
	.group = groups,
	.example = examples,
	.run = view_run,
};
