/* SPDX-License-Identifier: MIT */
/* Background saves.  In: a run between two updates.  Out: its checkpoint files, written while training goes on.
 *
 * The content of the files is made at once, in memory; a thread writes, syncs, reads back and renames them, and only
 * then is the older file gone.  While it is busy further saves are skipped: training never waits for a disk.  A
 * failure is reported at the next call and does not stop the run.
 *
 * The thread has a context of its own and shares no memory with the run but the files' content. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

enum { MAX_FILES = 2 };

typedef struct Pending {
	Content image;
	const char *path;
	uint32_t keep;
} Pending;

struct BackgroundSave {
	Run *r;
	Ctx cx;       /* the thread's */
	Arena images; /* content and paths of the files, from the run's allocator */
	Pending file[MAX_FILES];
	uint32_t files;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool busy, ends, threaded;
	bool reported; /* its last status was returned by background_status */
	Status status;
	char message[2000]; /* of the last failure */
};

/* ---- the thread ---- */

static void write_files(Ctx *cx, void *arg)
{
	const BackgroundSave *b = arg;
	for (uint32_t i = 0; i < b->files; i++)
		file_save(cx, b->file[i].path, b->file[i].image, b->file[i].keep);
}

static void *work(void *arg)
{
	BackgroundSave *b = arg;
	pthread_mutex_lock(&b->mutex);
	while (!b->ends || b->busy) {
		if (!b->busy) {
			pthread_cond_wait(&b->changed, &b->mutex);
			continue;
		}
		pthread_mutex_unlock(&b->mutex);
		Status status = subcontext_run(&b->cx, write_files, b);
		pthread_mutex_lock(&b->mutex);
		b->status = status;
		b->busy = false;
		pthread_cond_broadcast(&b->changed);
	}
	pthread_mutex_unlock(&b->mutex);
	return NULL;
}

/* ---- the run ---- */

static void wait_idle(BackgroundSave *b)
{
	pthread_mutex_lock(&b->mutex);
	while (b->busy)
		pthread_cond_wait(&b->changed, &b->mutex);
	pthread_mutex_unlock(&b->mutex);
}

static bool is_busy(BackgroundSave *b)
{
	pthread_mutex_lock(&b->mutex);
	bool busy = b->busy;
	pthread_mutex_unlock(&b->mutex);
	return busy;
}

static void background_end(void *arg)
{
	BackgroundSave *b = arg;
	pthread_mutex_lock(&b->mutex);
	b->ends = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
	if (b->threaded)
		pthread_join(b->thread, NULL);
	pthread_mutex_destroy(&b->mutex);
	pthread_cond_destroy(&b->changed);
	arena_free(&b->images);
	ctx_free(&b->cx);
}

static BackgroundSave *background_new(Run *r)
{
	BackgroundSave *b = NEW(&r->cx.keep, 1, BackgroundSave);
	b->r = r;
	b->images.cx = &r->cx;
	b->reported = true;
	ctx_init(&b->cx, NULL); /* the run's allocator need not be thread-safe */
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->changed, NULL);
	arena_defer(&r->cx.keep, background_end, b);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the training thread */
	b->threaded = thread_start(&b->thread, work, b) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return b;
}

static void file_add(BackgroundSave *b, const char *path, uint32_t keep, bool best)
{
	Pending *f = &b->file[b->files++];
	*f = (Pending){ .image = checkpoint_image(b->r, &b->images, best),
		            .path = arena_copy(&b->images, path, strlen(path)),
		            .keep = keep };
}

void background_save(Run *r, const char *path, const char *best, uint32_t keep)
{
	if (!r->background)
		r->background = background_new(r);
	BackgroundSave *b = r->background;
	if (is_busy(b) || !b->reported)
		return;
	r->diverged = !run_finite(r);
	if (r->diverged) /* keep the older file; training reports it */
		return;
	arena_free(&b->images);
	b->files = 0;
	file_add(b, path, keep, false);
	if (best && r->best_weights && r->best_at.epoch)
		file_add(b, best, 1, true);
	b->cx.io_fail_at = r->cx.io_fail_at;
	b->reported = false;
	if (!b->threaded) {
		b->status = subcontext_run(&b->cx, write_files, b);
		return;
	}
	pthread_mutex_lock(&b->mutex);
	b->busy = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
}

Status background_status(Run *r, bool wait)
{
	BackgroundSave *b = r->background;
	if (!b || b->reported)
		return MP_OK;
	if (wait)
		wait_idle(b);
	else if (is_busy(b))
		return MP_OK;
	b->reported = true;
	r->cx.io_fail_at = b->cx.io_fail_at;
	if (b->status == MP_OK)
		return MP_OK;
	snprintf(b->message, sizeof b->message, "%s", ctx_messages(&b->cx));
	messages_drop(&b->cx, 0);
	return b->status;
}

const char *background_message(const Run *r) { return r->background ? r->background->message : ""; }
