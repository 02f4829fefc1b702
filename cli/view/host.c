/* SPDX-License-Identifier: MIT */
/* Loads microprop-view.so and answers what it asks. The module is beside the program, or where it was installed. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page.h"

#if !defined MP_STATIC && !defined MP_WEB
#include <dlfcn.h>
#endif

struct Host {
	const ViewModule *module;
	ViewServer *server;
};

enum { QUICK = 0, LONG = 1 }; /* lanes */

static const struct {
	const char *path;
	AnswerFn *answer;
	int lane;
	bool post;
} addresses[] = {
	{ "/api/about", about_answer, QUICK, false },
	{ "/api/runs", runs_answer, QUICK, false },
	{ "/api/metrics", metrics_answer, QUICK, false },
	{ "/api/control", control_answer, QUICK, true },
	{ "/api/net", net_answer, QUICK, false },
	{ "/api/links", links_answer, QUICK, false },
	{ "/api/weights", weights_answer, QUICK, false },
	{ "/api/activations", activations_answer, QUICK, false },
	{ "/api/measure", measure_answer, QUICK, false },
	{ "/api/gf11", gf11_answer, LONG, false },
	{ "/api/talk", talk_answer, QUICK, false },
	{ "/api/talk/train", talk_train_answer, QUICK, true },
	{ "/api/talk/words", talk_words_answer, QUICK, false },
};

static size_t address_find(const char *path, bool post)
{
	size_t i = 0;
	while (i < COUNT(addresses) && (strcmp(addresses[i].path, path) != 0 || addresses[i].post != post))
		i++;
	return i;
}

static int host_lane(void *page, const char *path, bool post)
{
	size_t i = address_find(path, post);
	(void)page;
	return i < COUNT(addresses) ? addresses[i].lane : -1;
}

static void host_answer(void *page, const ViewRequest *q, ViewAnswer *a)
{
	addresses[address_find(q->path, q->post)].answer(page, q, a);
}

#if defined MP_WEB
ViewModuleFn microprop_view; /* web/desk.c */
static const ViewModule *module_load(void) { return microprop_view(VIEW_VERSION); }
#elif defined MP_STATIC
static const ViewModule *module_load(void)
{
	complain("build the program without MICROPROP_STATIC",
	         "the page needs a module, and this program is linked statically");
	return NULL;
}
#else
static bool module_in(const char *folder, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/microprop-view.so", folder);
	return n > 0 && n < PATH_MAX && !access(path, R_OK);
}

static bool module_find(char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n < 0 ? 0 : n] = '\0';
	char *end = strrchr(self, '/');
	if (end)
		*end = '\0';
	return (end && module_in(self, path)) || module_in(MODULE_FOLDER, path);
}

static const ViewModule *module_load(void)
{
	char path[PATH_MAX];
	if (!module_find(path)) {
		complain("install libmicrohttpd-dev and build again, or install package microprop-view",
		         "the page is in microprop-view.so, which is neither beside the program nor in %s", MODULE_FOLDER);
		return NULL;
	}
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		complain("build it together with the program", "module %s cannot be loaded: %s", path, dlerror());
		return NULL;
	}
	ViewModuleFn *get;
	*(void **)&get = dlsym(library, "microprop_view");
	const ViewModule *module = get ? get(VIEW_VERSION) : NULL;
	if (!module)
		complain("build module and program together", "%s is not for this program", path);
	return module;
}
#endif

Host *host_start(Page *p, uint16_t port, int *rc)
{
	const ViewHost callbacks = { p, p->trains, host_lane, host_answer, page_changed, page_events };
	const char *why = "out of memory";
	*rc = EXIT_USAGE;
	const ViewModule *module = module_load();
	if (!module)
		return NULL;
	*rc = EXIT_FAILED;
	Host *h = calloc(1, sizeof *h);
	ViewServer *server = h ? module->start(&callbacks, port, &why) : NULL;
	if (!server) {
		complain(port ? "leave --port out: a free port is taken" : NULL, "the page cannot be served: %s", why);
		free(h);
		return NULL;
	}
	*h = (Host){ module, server };
	*rc = EXIT_DONE;
	return h;
}

void host_stop(Host *h)
{
	if (h)
		h->module->stop(h->server);
	free(h);
}

uint16_t host_port(const Host *h) { return h->module->port(h->server); }
const char *host_token(const Host *h) { return h->module->token(h->server); }
