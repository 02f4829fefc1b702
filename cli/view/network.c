/* SPDX-License-Identifier: MIT */
/* The network of a run: weights, activations of a case, confusion matrix, worst cases.
 *
 * In: the model of a run (its last checkpoint, or one that was kept), and the cases it was trained or tested on. Out:
 * answers. One network is open at a time; it is opened again when its file changes. */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "microprop/inside.h"
#include "page.h"

enum {
	MOST_LINKS = 4 << 20,   /* of a network that is shown */
	MOST_CASES = 1 << 18,   /* of data that is measured */
	MOST_CLASSES = 200,     /* of a confusion matrix */
	MOST_CHECKPOINTS = 200, /* of one run */
	WORST = 200,            /* cases */
};

struct Network {
	Session s;
	uint32_t number;       /* of the run */
	uint64_t epoch;        /* of a checkpoint that was kept; 0: the last */
	struct timespec saved; /* its file's time */
	ino_t inode;
	bool guesses;         /* outputs name a class or a code word, not a pattern or numbers */
	char data_error[400]; /* why there are no cases; "": there are, or they were not opened yet */
	char data_name[200];
	const mp_metrics *metrics;
	uint64_t cases;
	mp_result result;
	double *outputs;       /* [cases * outputs], once measured */
	uint64_t worst[WORST]; /* cases by error, largest first */
	uint32_t worst_count;
};

static void network_clear(Network *n)
{
	session_close(&n->s);
	free(n->outputs);
	*n = (Network){ 0 };
}

void network_close(Network *n)
{
	if (n)
		network_clear(n);
	free(n);
}

/* The file of a run's model; false: there is none. */
static bool model_path(const PageRun *r, uint64_t epoch, char *path, size_t size)
{
	int n = r->model     ? snprintf(path, size, "%s", r->model)
	        : !r->folder ? -1
	        : epoch      ? snprintf(path, size, "%s/epoch-%06llu.safetensors", r->folder, (unsigned long long)epoch)
	                     : snprintf(path, size, "%s/last.safetensors", r->folder);
	return n > 0 && (size_t)n < size;
}

static mp_status model_open(Session *s, const char *path, const char **messages)
{
	mp_status status = mp_net_open(&s->net, path, NULL);
	*messages = mp_net_messages(s->net);
	if (status == MP_OK && mp_net_get_info(s->net)->open) {
		status = mp_net_resolve(s->net, NULL, path);
		*messages = mp_net_messages(s->net);
	}
	if (status == MP_OK) {
		status = mp_run_new(&s->run, s->net, NULL);
		*messages = mp_run_messages(s->run);
	}
	if (status == MP_OK) {
		status = mp_run_set(s->run, "threads", "1");
		if (status == MP_OK)
			status = mp_run_load(s->run, path);
		*messages = mp_run_messages(s->run);
	}
	return status;
}

/* The network that the query asks for, or NULL, answered. */
static Network *network_open(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	char path[4096];
	struct stat st;
	const char *messages;
	PageRun *r = query_run(p, q, a);
	uint64_t epoch = query_count(q, "epoch", 0);
	if (!r)
		return NULL;
	if (!model_path(r, epoch, path, sizeof path) || stat(path, &st) || !S_ISREG(st.st_mode)) {
		answer_error(a, 404, "this run has no checkpoint yet; one is written every ten seconds with train --run");
		return NULL;
	}
	Network *n = p->network ? p->network : (p->network = calloc(1, sizeof *n));
	if (!n) {
		answer_error(a, 500, "out of memory");
		return NULL;
	}
	uint32_t number = (uint32_t)(r - p->run);
	if (n->s.run && n->number == number && n->epoch == epoch && n->inode == st.st_ino &&
	    n->saved.tv_sec == st.st_mtim.tv_sec && n->saved.tv_nsec == st.st_mtim.tv_nsec)
		return n;
	network_clear(n);
	if (model_open(&n->s, path, &messages) != MP_OK) {
		answer_error(a, 409, "%s", messages);
		network_clear(n);
		return NULL;
	}
	if (mp_net_get_info(n->s.net)->connections > MOST_LINKS) {
		answer_error(a, 409, "the page shows networks of at most %s weights", format_count(MOST_LINKS).s);
		network_clear(n);
		return NULL;
	}
	n->number = number;
	n->epoch = epoch;
	n->saved = st.st_mtim;
	n->inode = st.st_ino;
	return n;
}

/* ---- cases --------------------------------------------------------------------------------------- */

/* What the run was tested or trained on, by its args.json. */
static void data_named(const Page *p, const PageRun *r, char *name, size_t size)
{
	char *text = run_args(r);
	json_t *args = text ? json_loads(text, 0, NULL) : NULL;
	const char *test = json_string_value(json_object_get(args, "test")),
			   *data = json_string_value(json_object_get(args, "data"));
	snprintf(name, size, "%s", p->data ? p->data : test ? test : data ? data : "");
	json_decref(args);
	free(text);
}

/* A pipe is gone, /dev/fd/9 is now something else, and a FIFO would stop the page. */
static bool is_stream(const char *name)
{
	struct stat st;
	return !strcmp(name, "-") || !strncmp(name, "/dev/fd/", 8) || !strncmp(name, "/dev/std", 8) ||
	       !strncmp(name, "/proc/", 6) || (!stat(name, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static bool data_open(Page *p, Network *n)
{
	const mp_net_info *net = mp_net_get_info(n->s.net);
	const mp_data_info *info = NULL;
	if (n->s.data || n->data_error[0])
		return !n->data_error[0];
	data_named(p, &p->run[n->number], n->data_name, sizeof n->data_name);
	const char *name = n->data_name[0] ? n->data_name : net->test ? net->test : net->data;
	if (!name) {
		snprintf(n->data_error, sizeof n->data_error, "the run names no data; give some with --data");
		return false;
	}
	if (name != n->data_name)
		snprintf(n->data_name, sizeof n->data_name, "%s", name);
	if (is_stream(name)) {
		snprintf(n->data_error, sizeof n->data_error,
		         "%s was a stream and cannot be read again; give cases with --data", name);
		return false;
	}
	mp_data_options how = { .size = sizeof how };
	how.classes = mp_run_get_classes(n->s.run, &how.class_count);
	mp_status status = mp_data_open_for(&n->s.data, name, n->s.run, &how, NULL);
	if (status == MP_OK)
		status = mp_data_get_info(n->s.data, &info);
	if (status != MP_OK)
		snprintf(n->data_error, sizeof n->data_error, "%s", n->s.data ? mp_data_messages(n->s.data) : "out of memory");
	else if (info->inputs != net->inputs)
		snprintf(n->data_error, sizeof n->data_error, "%s has other inputs than the network", name);
	else
		n->cases = info->cases;
	const char *kind = n->data_error[0] ? NULL : mp_data_get_kind(n->s.data);
	n->guesses = kind && (info->codes || !strcmp(kind, "classes") || !strcmp(kind, "binary"));
	return !n->data_error[0];
}

typedef struct Ranked {
	double error;
	uint64_t number;
} Ranked;

static int by_error(const void *a, const void *b)
{
	const Ranked *x = a, *y = b;
	return x->error != y->error ? (x->error < y->error) - (x->error > y->error)
	                            : (x->number > y->number) - (x->number < y->number);
}

/* The cases with the largest squared errors, then by the network's own error function. */
static void worst_find(Network *n, const double *outputs)
{
	uint32_t width = mp_net_get_info(n->s.net)->outputs;
	float *y = calloc(width, sizeof *y);
	Ranked *rank = calloc(n->cases, sizeof *rank);
	for (uint64_t i = 0; y && rank && i < n->cases; i++) {
		double sum = 0;
		mp_data_get_case(n->s.data, i, NULL, y);
		for (uint32_t k = 0; k < width; k++)
			sum += isnan(y[k]) ? 0 : (outputs[i * width + k] - (double)y[k]) * (outputs[i * width + k] - (double)y[k]);
		rank[i] = (Ranked){ sum, i };
	}
	n->worst_count = y && rank ? (uint32_t)(n->cases < WORST ? n->cases : WORST) : 0;
	free(y);
	if (n->worst_count)
		qsort(rank, n->cases, sizeof *rank, by_error);
	for (uint32_t i = 0; i < n->worst_count; i++) {
		const mp_case *c = mp_run_get_case(n->s.run, rank[i].number);
		rank[i].error = c && c->scored && !isnan(c->error) ? c->error : -1;
	}
	if (n->worst_count)
		qsort(rank, n->worst_count, sizeof *rank, by_error);
	for (uint32_t i = 0; i < n->worst_count; i++)
		n->worst[i] = rank[i].number;
	free(rank);
}

/* Measures all cases, once. */
static bool network_measure(Page *p, Network *n)
{
	if (!data_open(p, n) || n->cases > MOST_CASES)
		return false;
	if (n->metrics)
		return true;
	uint32_t width = mp_net_get_info(n->s.net)->outputs;
	n->result = (mp_result){ .size = sizeof n->result };
	double *outputs = n->outputs ? n->outputs : calloc(n->cases * width, sizeof *outputs);
	n->outputs = outputs;
	if (outputs && mp_run_test(n->s.run, n->s.data, &n->result, outputs) == MP_OK)
		n->metrics = mp_run_measure(n->s.run, n->s.data);
	if (n->metrics)
		worst_find(n, outputs);
	return n->metrics;
}

/* ---- confusion of code words --------------------------------------------------------------------- */

/* Where targets are code words: which is taken for which. */
typedef struct Confusion {
	char *name[MOST_CLASSES];
	uint32_t names;
	uint64_t count[MOST_CLASSES * MOST_CLASSES];
} Confusion;

static void confusion_free(Confusion *c)
{
	for (uint32_t i = 0; c && i < c->names; i++)
		free(c->name[i]);
	free(c);
}

/* MOST_CLASSES: there is no room for another one. */
static uint32_t confusion_name(Confusion *c, const char *name)
{
	uint32_t i = 0;
	while (i < c->names && strcmp(c->name[i], name) != 0)
		i++;
	if (i < c->names || i == MOST_CLASSES)
		return i;
	c->name[i] = strdup(name);
	if (!c->name[i])
		return MOST_CLASSES;
	c->names++;
	return i;
}

/* NULL: targets are no code words, or there are too many. */
static Confusion *confusion_make(Network *n)
{
	const mp_data_info *info;
	uint32_t width = mp_net_get_info(n->s.net)->outputs;
	if (mp_data_get_info(n->s.data, &info) != MP_OK || !info->codes || info->targets != width)
		return NULL;
	Confusion *c = calloc(1, sizeof *c);
	float *y = calloc(width, sizeof *y);
	double *target = calloc(width, sizeof *target);
	bool fits = c && y && target;
	for (uint64_t i = 0; fits && i < n->cases; i++) {
		mp_data_get_case(n->s.data, i, NULL, y);
		for (uint32_t k = 0; k < width; k++)
			target[k] = (double)y[k];
		uint32_t row = confusion_name(c, mp_data_get_guess(n->s.data, target));
		uint32_t column = confusion_name(c, mp_data_get_guess(n->s.data, n->outputs + i * width));
		fits = row < MOST_CLASSES && column < MOST_CLASSES;
		if (fits)
			c->count[(size_t)row * MOST_CLASSES + column]++;
	}
	free(y);
	free(target);
	if (!fits) {
		confusion_free(c);
		return NULL;
	}
	return c;
}

/* ---- answers ------------------------------------------------------------------------------------- */

/* Epochs of checkpoints that were kept (train --checkpoints-every). */
static void checkpoints_json(Json *j, const PageRun *r)
{
	struct dirent **list;
	int n = r->folder ? scandir(r->folder, &list, NULL, alphasort) : -1, found = 0;
	json_open(j, "checkpoints", '[');
	for (int i = 0; i < n; i++) {
		unsigned long long epoch;
		int end = 0;
		if (found < MOST_CHECKPOINTS && sscanf(list[i]->d_name, "epoch-%18llu.safetensors%n", &epoch, &end) == 1 &&
		    end && !list[i]->d_name[end]) {
			json_count(j, NULL, epoch);
			found++;
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	json_close(j, ']');
}

void net_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	Network *n = network_open(p, q, a);
	if (!n)
		return;
	const mp_net_info *net = mp_net_get_info(n->s.net);
	data_open(p, n);
	if (!answer_begin(a, &j))
		return;
	json_text(&j, "name", net->name);
	json_number(&j, "stamp", (double)n->saved.tv_sec + 1e-9 * (double)n->saved.tv_nsec);
	json_count(&j, "units", net->units);
	json_count(&j, "inputs", net->inputs);
	json_count(&j, "outputs", net->outputs);
	json_count(&j, "connections", net->connections);
	json_text(&j, "structure", net->fingerprint);
	json_text(&j, "fingerprint", mp_run_get_fingerprint(n->s.run));
	json_count(&j, "ticks", mp_run_get_ticks(n->s.run));
	json_count(&j, "cases", n->data_error[0] ? 0 : n->cases);
	json_text(&j, "data", n->data_name);
	json_text(&j, "data_error", n->data_error[0] ? n->data_error : NULL);
	json_open(&j, "groups", '[');
	const mp_group_info *g;
	for (uint32_t i = 0; (g = mp_net_get_group(n->s.net, i)); i++) {
		json_open(&j, NULL, '{');
		json_text(&j, "name", g->name);
		json_text(&j, "function", g->function);
		json_text(&j, "role", g->role);
		json_count(&j, "units", g->units);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "blocks", '[');
	const mp_block_info *b;
	for (uint32_t i = 0; (b = mp_net_get_block(n->s.net, i)); i++) {
		json_open(&j, NULL, '{');
		json_text(&j, "from", b->from);
		json_text(&j, "to", b->to);
		json_text(&j, "kind", b->kind);
		json_count(&j, "connections", b->connections);
		json_bool(&j, "frozen", b->frozen);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	checkpoints_json(&j, &p->run[n->number]);
	answer_end(&j, a);
}

void links_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Network *n = network_open(p, q, a);
	TextOut out = { 0 };
	if (!n)
		return;
	if (mp_run_study(n->s.run, NULL, "links", 0, NULL, text_append, &out) == MP_OK && out.text)
		*a = (ViewAnswer){ .status = 200, .type = "application/json", .body = out.text, .len = out.len };
	else
		answer_error(a, 409, "%s", mp_run_messages(n->s.run));
}

void weights_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Network *n = network_open(p, q, a);
	if (!n)
		return;
	uint64_t links = mp_net_get_info(n->s.net)->connections;
	double *w = calloc(links, sizeof *w);
	float *narrow = calloc(links, sizeof *narrow);
	if (w && narrow && mp_run_get_weights(n->s.run, w, links) == MP_OK) {
		for (uint64_t i = 0; i < links; i++)
			narrow[i] = (float)w[i];
		answer_bytes(a, "application/octet-stream", narrow, links * sizeof *narrow);
	} else {
		answer_error(a, 500, "%s", mp_run_messages(n->s.run));
	}
	free(w);
	free(narrow);
}

/* "3:0.5,17:1": inputs that are changed. */
static bool inputs_set(const char *text, float *x, uint32_t inputs)
{
	while (text && *text) {
		char *end;
		unsigned long i = strtoul(text, &end, 10);
		if (end == text || *end != ':' || i >= inputs)
			return false;
		text = end + 1;
		float v = strtof(text, &end);
		if (end == text || (*end && *end != ',') || !isfinite(v))
			return false;
		x[i] = v;
		text = *end ? end + 1 : end;
	}
	return true;
}

static void groups_json(Json *j, Network *n, const mp_data *one)
{
	const mp_group_info *g;
	json_open(j, "groups", '[');
	for (uint32_t i = 0; (g = mp_net_get_group(n->s.net, i)); i++) {
		double *v = calloc(g->units, sizeof *v);
		bool known = v && mp_run_activations(n->s.run, one, g->name, 0, v) == MP_OK;
		json_open(j, NULL, '{');
		json_text(j, "name", g->name);
		json_open(j, "values", '[');
		for (uint32_t k = 0; known && k < g->units; k++)
			json_number(j, NULL, (float)v[k]);
		json_close(j, ']');
		json_close(j, '}');
		free(v);
	}
	json_close(j, ']');
}

static void numbers_json(Json *j, const char *key, const float *v, uint32_t count)
{
	json_open(j, key, '[');
	for (uint32_t i = 0; i < count; i++)
		json_number(j, NULL, (double)v[i]);
	json_close(j, ']');
}

static void case_json(Json *j, Network *n, const float *x, const float *y, const mp_data *one)
{
	const mp_net_info *net = mp_net_get_info(n->s.net);
	double *out = calloc(net->outputs, sizeof *out), *target = calloc(net->outputs, sizeof *target);
	numbers_json(j, "inputs", x, net->inputs);
	groups_json(j, n, one);
	if (out && target && mp_run_test(n->s.run, one, NULL, out) == MP_OK) {
		json_open(j, "outputs", '[');
		for (uint32_t k = 0; k < net->outputs; k++)
			json_number(j, NULL, out[k]);
		json_close(j, ']');
		for (uint32_t k = 0; y && k < net->outputs; k++)
			target[k] = (double)y[k];
		if (y && n->guesses) {
			json_text(j, "guess", mp_data_get_guess(n->s.data, out));
			json_text(j, "target", mp_data_get_guess(n->s.data, target));
		}
		if (y)
			numbers_json(j, "targets", y, net->outputs);
	}
	free(out);
	free(target);
}

void activations_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	Network *n = network_open(p, q, a);
	if (!n)
		return;
	const mp_net_info *net = mp_net_get_info(n->s.net);
	const mp_data_info *info = NULL;
	float *x = calloc(net->inputs, sizeof *x), *y = calloc(net->outputs, sizeof *y);
	uint64_t number = query_count(q, "case", 0);
	bool cases = data_open(p, n) && mp_data_get_info(n->s.data, &info) == MP_OK;
	bool targets = cases && info->targets == net->outputs;
	if (cases && number >= n->cases) {
		answer_error(a, 404, "there are only %s cases", format_count(n->cases).s);
	} else if (x && y) {
		mp_data *one = NULL;
		if (cases)
			mp_data_get_case(n->s.data, number, x, targets ? y : NULL);
		if (!inputs_set(q->argument(q, "set"), x, net->inputs)) {
			answer_error(a, 400, "set is a list of INPUT:VALUE");
		} else if (mp_data_new(&one, 1, net->inputs, 0, x, NULL, NULL, 0, NULL) != MP_OK) {
			answer_error(a, 400, "%s", mp_data_messages(one));
		} else if (answer_begin(a, &j)) {
			json_count(&j, "case", number);
			json_text(&j, "name", cases && info->named ? mp_data_get_name(n->s.data, number) : NULL);
			case_json(&j, n, x, targets ? y : NULL, one);
			answer_end(&j, a);
		}
		mp_data_close(one);
	}
	free(x);
	free(y);
}

static void worst_json(Json *j, Network *n)
{
	char number[16];
	const mp_data_info *info;
	bool named = mp_data_get_info(n->s.data, &info) == MP_OK && info->named;
	json_open(j, "worst", '[');
	for (uint32_t i = 0; i < n->worst_count; i++) {
		const mp_case *c = mp_run_get_case(n->s.run, n->worst[i]);
		if (!c || !c->scored)
			break;
		json_open(j, NULL, '{');
		json_count(j, "case", n->worst[i]);
		json_number(j, "error", c->error);
		json_bool(j, "right", c->right);
		if (n->metrics->confusion) {
			json_text(j, "target", metrics_class(n->metrics, c->target, number));
			json_text(j, "guess", metrics_class(n->metrics, c->guess, number));
		} else if (n->guesses) {
			char wanted[64];
			snprintf(wanted, sizeof wanted, "%s", mp_data_get_guess(n->s.data, c->targets));
			json_text(j, "target", wanted);
			json_text(j, "guess", mp_data_get_guess(n->s.data, c->outputs));
		}
		json_text(j, "name", named ? mp_data_get_name(n->s.data, n->worst[i]) : NULL);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void measure_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	char number[16];
	Network *n = network_open(p, q, a);
	if (!n)
		return;
	if (!network_measure(p, n)) {
		answer_error(a, 409, "%s", n->data_error[0] ? n->data_error : "these cases cannot be measured");
		return;
	}
	const mp_metrics *m = n->metrics;
	if (!answer_begin(a, &j))
		return;
	Confusion *codes = m->confusion ? NULL : confusion_make(n);
	json_text(&j, "kind", m->kind);
	json_count(&j, "cases", m->cases);
	json_number(&j, "error", n->result.error);
	json_number(&j, "right", n->result.right);
	json_number(&j, "within", n->result.within);
	json_number(&j, "accuracy", m->accuracy);
	json_number(&j, "bits_right", m->bits_right);
	if (codes) {
		json_open(&j, "classes", '[');
		for (uint32_t i = 0; i < codes->names; i++)
			json_text(&j, NULL, codes->name[i]);
		json_close(&j, ']');
		json_open(&j, "confusion", '[');
		for (uint32_t i = 0; i < codes->names * codes->names; i++)
			json_count(&j, NULL, codes->count[(size_t)(i / codes->names) * MOST_CLASSES + i % codes->names]);
		json_close(&j, ']');
	} else if (m->confusion && m->classes <= MOST_CLASSES) {
		json_open(&j, "classes", '[');
		for (uint32_t i = 0; i < m->classes; i++)
			json_text(&j, NULL, metrics_class(m, i, number));
		json_close(&j, ']');
		json_open(&j, "confusion", '[');
		for (uint32_t i = 0; i < m->classes * m->classes; i++)
			json_count(&j, NULL, m->confusion[i]);
		json_close(&j, ']');
	}
	worst_json(&j, n);
	answer_end(&j, a);
	confusion_free(codes);
}
