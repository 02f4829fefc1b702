/* SPDX-License-Identifier: MIT */
/* What train writes every N epochs: checkpoints, and outputs of all cases.  Outputs are those of a second run that gets
 * the weights of the epoch: the first has data bound. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static int every_read(const Args *a, const char *option, uint64_t *every)
{
	if (!args_count(a, option, every))
		return EXIT_USAGE;
	if (args_text(a, option) && !*every) {
		complain("give 1 or more", "--%s cannot be 0", option);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

int epochs_check(Epochs *e, const Args *a)
{
	uint64_t report = 0;
	int rc = every_read(a, "outputs-every", &e->outputs);
	if (!rc)
		rc = every_read(a, "checkpoints-every", &e->checkpoints);
	if (rc || (!e->outputs && !e->checkpoints))
		return rc;
	e->folder = args_text(a, "run");
	e->step = common(e->outputs, e->checkpoints);
	if (!e->folder) {
		complain("give --run DIR too",
		         "--outputs-every and --checkpoints-every say when files are written, but not where");
		return EXIT_USAGE;
	}
	if (!args_count(a, "report", &report))
		return EXIT_USAGE;
	if (report && e->step % report) {
		complain("leave --report out, or give one that divides them", "files every %llu epochs, but --report %llu",
		         (unsigned long long)e->step, (unsigned long long)report);
		return EXIT_USAGE;
	}
	e->step = report ? report : e->step;
	return EXIT_DONE;
}

int epochs_prepare(Epochs *e, const Args *a, const Session *s)
{
	char step[24];
	const mp_data_info *info;
	if (!e->step)
		return EXIT_DONE;
	snprintf(step, sizeof step, "%llu", (unsigned long long)e->step);
	int rc = after_run(s->run, mp_run_set(s->run, "report", step));
	e->data = s->test ? s->test : s->data;
	if (rc || !e->outputs || (rc = after_data(e->data, mp_data_get_info(e->data, &info))))
		return rc;
	const mp_net_info *net = mp_net_get_info(s->net);
	Session second = { .net = s->net };
	rc = session_run(&second);
	e->second = second.run;
	if (!rc)
		rc = session_set(&second, a);
	e->links = net->connections;
	e->w = calloc(net->connections, sizeof *e->w);
	e->out = calloc(info->cases * net->outputs + 1, sizeof *e->out);
	e->cases = info->cases;
	if (!rc && (!e->w || !e->out)) {
		complain("close other programs", "out of memory");
		rc = EXIT_FAILED;
	}
	return rc;
}

/* DIR/outputs-000100.npy */
static const char *file_of(const Epochs *e, const char *kind, uint64_t epoch, const char *end, char *path, size_t size)
{
	snprintf(path, size, "%s/%s-%06llu.%s", e->folder, kind, (unsigned long long)epoch, end);
	return path;
}

int epochs_report(Epochs *e, mp_run *run, const mp_report *r)
{
	char path[4096];
	int rc = EXIT_DONE;
	if (e->checkpoints && r->epoch && r->epoch % e->checkpoints == 0 && r->epoch != e->saved) {
		e->saved = r->epoch;
		rc = after_run(run, mp_run_save(run, file_of(e, "epoch", r->epoch, "safetensors", path, sizeof path)));
	}
	if (rc || !e->outputs || !r->epoch || r->epoch % e->outputs || r->epoch == e->written)
		return rc;
	e->written = r->epoch;
	rc = after_run(run, mp_run_get_weights(run, e->w, e->links));
	if (!rc)
		rc = after_run(e->second, mp_run_set_weights(e->second, e->w, e->links));
	if (!rc)
		rc = after_run(e->second, mp_run_test(e->second, e->data, NULL, e->out));
	file_of(e, "outputs", r->epoch, "npy", path, sizeof path);
	return rc ? rc : after_run(e->second, mp_run_write_outputs(e->second, path, e->out, e->cases));
}

void epochs_close(Epochs *e)
{
	mp_run_close(e->second);
	free(e->w);
	free(e->out);
	*e = (Epochs){ 0 };
}
