/* SPDX-License-Identifier: MIT */
/* Runs: the list, their options, their metrics, as they are and as they come.
 *
 * In: run folders (args.json, metrics.jsonl), or the feed of a run that this process trains.  Out: answers and events.
 * Must hold: nothing here waits for a trainer, nor a trainer for anything here but the copy of a line. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "page.h"

enum {
	MOST_LINES = 4000,       /* of a learning curve */
	LONGEST_LINE = 16 << 10, /* of metrics.jsonl */
	LARGEST_ARGS = 1 << 20,  /* bytes of args.json */
	LARGEST_CURVE = 1 << 26, /* bytes of metrics.jsonl that a curve is made of: the last */
	LIST = VIEW_RUNS - 1,    /* position of the list in a stream */
	SCAN_EVERY = 20,         /* ticks */
	TRAINERS_EVERY = 5,
};

/* ---- the list ------------------------------------------------------------------------------------ */

static char *path_of(const char *folder, const char *name)
{
	size_t n = strlen(folder) + strlen(name) + 2;
	char *path = malloc(n);
	if (path)
		snprintf(path, n, "%s/%s", folder, name);
	return path;
}

static bool holds(const char *folder, const char *name)
{
	char *path = path_of(folder, name);
	struct stat st;
	bool there = path && !stat(path, &st) && S_ISREG(st.st_mode);
	free(path);
	return there;
}

static bool is_run(const char *folder) { return holds(folder, "metrics.jsonl") || holds(folder, "args.json"); }

static void run_add(Page *p, const char *folder, const char *model)
{
	char *whole = strdup(folder ? folder : model);
	size_t n = whole ? strlen(whole) : 0;
	while (n > 1 && whole[n - 1] == '/')
		whole[--n] = '\0';
	pthread_mutex_lock(&p->lock);
	bool known = !whole;
	for (uint32_t i = 0; i < p->runs && !known; i++)
		known = !strcmp(p->run[i].name, whole);
	p->full = p->full || (!known && p->runs == PAGE_RUNS);
	known = known || p->full;
	if (!known) {
		p->run[p->runs] = (PageRun){ .name = whole, .fd = -1 };
		if (folder)
			p->run[p->runs].folder = strdup(whole);
		else
			p->run[p->runs].model = strdup(whole);
		p->runs++;
		p->list++;
	}
	pthread_mutex_unlock(&p->lock);
	if (known)
		free(whole);
}

/* Names in order, numbers in them by their size: run-9 comes before run-10. */
static int by_name(const struct dirent **first, const struct dirent **second)
{
	static const char digits[] = "0123456789";
	const char *a = (*first)->d_name, *b = (*second)->d_name;
	while (*a && *b) {
		a += strspn(a, "0");
		b += strspn(b, "0");
		size_t n = strspn(a, digits), m = strspn(b, digits);
		if (n != m)
			return n < m ? -1 : 1;
		int order = n ? strncmp(a, b, n) : (unsigned char)*a - (unsigned char)*b;
		if (order)
			return order;
		if (!*a)
			break;
		a += n ? n : 1;
		b += n ? n : 1;
	}
	return strcmp((*first)->d_name, (*second)->d_name);
}
static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

static void folder_scan(Page *p, const char *folder)
{
	struct dirent **list;
	int n = scandir(folder, &list, visible, by_name);
	for (int i = 0; i < n; i++) {
		char *path = path_of(folder, list[i]->d_name);
		if (path && is_run(path))
			run_add(p, path, NULL);
		free(path);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

void page_scan(Page *p)
{
	for (uint32_t i = 0; i < p->parents; i++)
		folder_scan(p, p->parent[i]);
}

/* The ticker adds runs meanwhile: the lock makes a new one visible as a whole. Runs stay where they are. */
PageRun *page_run(Page *p, uint64_t number)
{
	pthread_mutex_lock(&p->lock);
	bool known = number < p->runs;
	pthread_mutex_unlock(&p->lock);
	return known ? &p->run[number] : NULL;
}

int page_add(Page *p, const char *path)
{
	struct stat st;
	if (stat(path, &st)) {
		complain("name the folder of train --run DIR, a folder of such folders, or a model", "cannot open %s: %s", path,
		         strerror(errno));
		return EXIT_USAGE;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		complain("name the folder of train --run DIR, a folder of such folders, or a model",
		         "%s is neither a folder nor a file", path);
		return EXIT_USAGE;
	}
	if (!S_ISDIR(st.st_mode))
		run_add(p, NULL, path);
	else if (is_run(path))
		run_add(p, path, NULL);
	else
		p->parent[p->parents++] = path;
	return EXIT_DONE;
}

void page_close(Page *p)
{
	for (uint32_t i = 0; i < p->runs; i++) {
		free(p->run[i].name);
		free(p->run[i].folder);
		free(p->run[i].model);
		if (p->run[i].fd >= 0)
			close(p->run[i].fd);
	}
}

/* ---- metrics ------------------------------------------------------------------------------------- */

static int metrics_fd(PageRun *r)
{
	if (r->fd >= 0 || !r->folder)
		return r->fd;
	char *path = path_of(r->folder, "metrics.jsonl");
	r->fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
	free(path);
	return r->fd;
}

static uint64_t metrics_size(PageRun *r)
{
	struct stat st;
	if (r->feed) {
		pthread_mutex_lock(&r->feed->lock);
		uint64_t n = r->feed->len;
		pthread_mutex_unlock(&r->feed->lock);
		return n;
	}
	int fd = metrics_fd(r);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_nlink)
		return (uint64_t)st.st_size;
	close(fd); /* it was removed; there may be another one by now */
	r->fd = -1;
	return 0;
}

static size_t metrics_read(PageRun *r, uint64_t at, char *text, size_t size)
{
	if (!r->feed) {
		ssize_t n = metrics_fd(r) >= 0 ? pread(r->fd, text, size, (off_t)at) : 0;
		return n > 0 ? (size_t)n : 0;
	}
	pthread_mutex_lock(&r->feed->lock);
	size_t n = at < r->feed->len ? r->feed->len - at : 0;
	n = n < size ? n : size;
	if (n)
		memcpy(text, r->feed->text + at, n);
	pthread_mutex_unlock(&r->feed->lock);
	return n;
}

static void feed_add(Feed *f, const char *text, size_t len) /* locked */
{
	if (f->len + len > f->cap) {
		size_t cap = 2 * (f->len + len) + 4096;
		char *longer = realloc(f->text, cap);
		if (!longer)
			return;
		f->text = longer;
		f->cap = cap;
	}
	memcpy(f->text + f->len, text, len);
	f->len += len;
}

void feed_line(Feed *f, const char *line, size_t len, bool last)
{
	if (last)
		pthread_mutex_lock(&f->lock);
	else if (pthread_mutex_trylock(&f->lock)) { /* a reader has it, perhaps without a CPU */
		char *longer = realloc(f->held, f->held_len + len);
		if (!longer)
			return;
		memcpy(longer + f->held_len, line, len);
		f->held = longer;
		f->held_len += len;
		return;
	}
	if (f->held_len)
		feed_add(f, f->held, f->held_len);
	f->held_len = 0;
	feed_add(f, line, len);
	pthread_mutex_unlock(&f->lock);
}

/* A line that train may have written; any other would reach the page as something else: a CR ends a line of events. */
static bool is_metrics(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ')
			return false;
	return len && line[0] == '{';
}

/* Where the last lines begin, of which a curve is made. */
static uint64_t metrics_begin(PageRun *r, uint64_t size)
{
	char text[4096];
	if (size <= LARGEST_CURVE)
		return 0;
	size_t n = metrics_read(r, size - LARGEST_CURVE, text, sizeof text);
	const char *end = memchr(text, '\n', n);
	return size - LARGEST_CURVE + (end ? (uint64_t)(end + 1 - text) : 0);
}

/* Every step-th line from `at` on, and the last; the first line is the position after them. */
static void metrics_write(PageRun *r, FILE *f, uint64_t at, uint64_t size, uint64_t step)
{
	char *text = malloc(LONGEST_LINE);
	uint64_t line = 0;
	for (size_t n; text && at < size && (n = metrics_read(r, at, text, LONGEST_LINE)) > 0;) {
		char *end = memchr(text, '\n', n), *from = text;
		if (!end && n == LONGEST_LINE)
			at += n; /* no line of ours is as long */
		else if (!end)
			break;
		for (; end; from = end + 1, end = memchr(from, '\n', n - (size_t)(from - text))) {
			size_t len = (size_t)(end + 1 - from);
			at += len;
			bool last = at >= size;
			if ((line++ % step == 0 || last) && is_metrics(from, len - 1))
				fwrite(from, 1, len, f);
		}
	}
	free(text);
}

static uint64_t metrics_lines(PageRun *r, uint64_t at, uint64_t size)
{
	char text[4096];
	uint64_t lines = 0;
	while (at < size) {
		size_t n = metrics_read(r, at, text, sizeof text);
		for (size_t i = 0; i < n; i++)
			lines += text[i] == '\n';
		at += n;
		if (!n)
			break;
	}
	return lines;
}

void metrics_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	PageRun *r = query_run(p, q, a);
	if (!r)
		return;
	*a = (ViewAnswer){ .status = 200, .type = "application/jsonl" };
	FILE *f = open_memstream(&a->body, &a->len);
	if (!f)
		return;
	pthread_mutex_lock(&p->lock);
	uint64_t size = metrics_size(r), at = metrics_begin(r, size), lines = metrics_lines(r, at, size);
	fprintf(f, "%llu\n", (unsigned long long)size);
	metrics_write(r, f, at, size, lines / MOST_LINES + 1);
	pthread_mutex_unlock(&p->lock);
	fclose(f);
}

/* ---- events -------------------------------------------------------------------------------------- */

/* Has the process this very file open? The list of locks names devices as the file system does, not as stat. */
static bool process_has(int pid, const struct stat *file)
{
	char folder[40], name[300];
	bool has = false;
	snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
	DIR *list = opendir(folder);
	for (const struct dirent *d; !has && list && (d = readdir(list));) {
		struct stat st;
		snprintf(name, sizeof name, "%s/%s", folder, d->d_name);
		has = !stat(name, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	}
	if (list)
		closedir(list);
	return has;
}

/* The process that holds a lock on metrics.jsonl trains it. */
void trainers_find(Page *p)
{
	FILE *f = fopen("/proc/locks", "re");
	pid_t trainer[PAGE_RUNS] = { 0 };
	struct stat st;
	char line[200];
	while (f && fgets(line, sizeof line, f)) {
		unsigned long long inode;
		int pid;
		if (sscanf(line, "%*s FLOCK %*s WRITE %d %*x:%*x:%llu", &pid, &inode) != 2 || pid <= 0)
			continue;
		for (uint32_t i = 0; i < p->runs; i++)
			if (p->run[i].fd >= 0 && !fstat(p->run[i].fd, &st) && st.st_ino == inode && process_has(pid, &st))
				trainer[i] = pid;
	}
	if (f)
		fclose(f);
	for (uint32_t i = 0; i < p->runs; i++) {
		if (p->run[i].feed)
			trainer[i] = p->run[i].feed->ended ? 0 : getpid();
		if (trainer[i] != p->run[i].trainer) {
			p->run[i].trainer = trainer[i];
			p->list++;
		}
	}
}

bool page_changed(void *page)
{
	Page *p = page;
	bool changed = false;
	if (p->looked++ % SCAN_EVERY == 0)
		page_scan(p);
	pthread_mutex_lock(&p->lock);
	if (p->looked % TRAINERS_EVERY == 1)
		trainers_find(p);
	for (uint32_t i = 0; i < p->runs; i++) {
		uint64_t size = metrics_size(&p->run[i]);
		changed = changed || size != p->run[i].size;
		p->run[i].size = size;
	}
	changed = changed || p->list != p->told;
	p->told = p->list;
	pthread_mutex_unlock(&p->lock);
	return changed;
}

/* "id: 10,20\n" of all runs. */
static size_t id_print(const Page *p, const uint64_t *position, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "id: ");
	for (uint32_t i = 0; i < p->runs && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%llu", i ? "," : "", (unsigned long long)position[i]);
	if (n < size)
		n += (size_t)snprintf(text + n, size - n, "\n");
	return n;
}

/* Lines of a run that have not been sent. */
static size_t run_events(Page *p, uint32_t i, uint64_t *position, char *text, size_t size)
{
	enum { HEAD = 1600 }; /* id and names of an event */
	PageRun *r = &p->run[i];
	size_t out = 0;
	char *lines = malloc(LONGEST_LINE);
	if (position[i] > metrics_size(r)) /* it was cut where a checkpoint stands */
		position[i] = 0;
	size_t n = lines ? metrics_read(r, position[i], lines, LONGEST_LINE) : 0;
	if (n == LONGEST_LINE && !memchr(lines, '\n', n))
		position[i] += n;
	char *from = lines, *end;
	while (n && (end = memchr(from, '\n', n - (size_t)(from - lines)))) {
		size_t len = (size_t)(end - from);
		if (size - out < HEAD + len)
			break;
		position[i] += len + 1;
		if (is_metrics(from, len)) {
			out += id_print(p, position, text + out, size - out);
			out += (size_t)snprintf(text + out, size - out, "event: line\ndata: %u %.*s\n\n", i, (int)len, from);
		}
		from = end + 1;
	}
	free(lines);
	return out;
}

static size_t list_event(Page *p, uint64_t *position, char *text, size_t size)
{
	if (position[LIST] == p->list + 1)
		return 0;
	position[LIST] = p->list + 1;
	size_t n = (size_t)snprintf(text, size, "event: runs\ndata: [");
	for (uint32_t i = 0; i < p->runs && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%d", i ? "," : "", p->run[i].trainer != 0);
	if (n < size)
		n += (size_t)snprintf(text + n, size - n, "]\n\n");
	return n < size ? n : 0;
}

size_t page_events(void *page, uint64_t position[VIEW_RUNS], char *text, size_t size)
{
	Page *p = page;
	pthread_mutex_lock(&p->lock);
	size_t n = list_event(p, position, text, size);
	for (uint32_t i = 0; i < p->runs; i++)
		n += run_events(p, i, position, text + n, size - n);
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* ---- answers ------------------------------------------------------------------------------------- */

void about_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	(void)q;
	if (!answer_begin(a, &j))
		return;
	json_text(&j, "version", mp_version());
	json_bool(&j, "control", p->control);
	json_bool(&j, "trains", p->trains);
	answer_end(&j, a);
}

char *run_args(const PageRun *r)
{
	char *path = r->folder && !r->feed ? path_of(r->folder, "args.json") : NULL, *text = NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
	free(path);
	struct stat st;
	json_t *args = r->feed && r->feed->args ? json_loads(r->feed->args, 0, NULL) : NULL;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= LARGEST_ARGS)
		args = json_loadfd(fd, 0, NULL);
	if (fd >= 0)
		close(fd);
	if (args)
		text = json_dumps(args, JSON_COMPACT);
	json_decref(args);
	return text;
}

static void run_json(Json *j, const PageRun *r)
{
	char *args = run_args(r);
	json_open(j, NULL, '{');
	json_text(j, "name", r->name);
	json_bool(j, "live", r->trainer != 0);
	json_bool(j, "curve", r->feed || r->fd >= 0);
	json_bool(j, "model", r->model || (r->folder && holds(r->folder, "last.safetensors")));
	if (args) {
		fputs(", \"args\": ", j->f);
		fputs(args, j->f);
	}
	json_close(j, '}');
	free(args);
}

void runs_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	(void)q;
	if (!answer_begin(a, &j))
		return;
	page_scan(p);
	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->runs; i++)
		metrics_fd(&p->run[i]);
	trainers_find(p);
	json_open(&j, "runs", '[');
	for (uint32_t i = 0; i < p->runs; i++)
		run_json(&j, &p->run[i]);
	json_close(&j, ']');
	json_bool(&j, "full", p->full);
	pthread_mutex_unlock(&p->lock);
	answer_end(&j, a);
}
