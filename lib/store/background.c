/* SPDX-License-Identifier: MIT */
/* Checkpoints written while training goes on.  In: a run between two updates.  Out: files, some time later.
 *
 * The bytes of the files are made at once, in memory; a thread of their own writes, syncs, reads back and renames
 * them, and only then is the older file gone. While it is busy nothing more is taken: training never waits for a
 * disk. What fails is remembered and told at the next call; the run is not disturbed by it.
 *
 * The thread has a context of its own: nothing of the run's is used by both. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

enum { MOST_FILES = 2 };

typedef struct Job {
	Content image;
	const char *path;
	uint32_t keep;
} Job;

struct BackgroundSave {
	Run *r;
	Ctx cx;       /* the thread's */
	Arena images; /* of the files in hand; the run's memory */
	Job job[MOST_FILES];
	uint32_t jobs;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool busy, ends, threaded;
	bool told; /* its last status was asked for */
	Status status;
	char said[2000]; /* why the last failure was */
};

/* ---- the thread ---- */

static Status write_jobs(BackgroundSave *l)
{
	jmp_buf edge;
	l->cx.edge = &edge;
	l->cx.status = MP_OK;
	l->cx.errors = 0;
	if (setjmp(edge) == 0)
		for (uint32_t i = 0; i < l->jobs; i++)
			file_save(&l->cx, l->job[i].path, l->job[i].image, l->job[i].keep);
	l->cx.edge = NULL;
	arena_free(&l->cx.scratch);
	return l->cx.status;
}

static void *work(void *arg)
{
	BackgroundSave *l = arg;
	pthread_mutex_lock(&l->mutex);
	while (!l->ends || l->busy) {
		if (!l->busy) {
			pthread_cond_wait(&l->changed, &l->mutex);
			continue;
		}
		pthread_mutex_unlock(&l->mutex);
		Status status = write_jobs(l);
		pthread_mutex_lock(&l->mutex);
		l->status = status;
		l->busy = false;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->mutex);
	return NULL;
}

/* ---- the run ---- */

static void wait_idle(BackgroundSave *l)
{
	pthread_mutex_lock(&l->mutex);
	while (l->busy)
		pthread_cond_wait(&l->changed, &l->mutex);
	pthread_mutex_unlock(&l->mutex);
}

static bool is_busy(BackgroundSave *l)
{
	pthread_mutex_lock(&l->mutex);
	bool busy = l->busy;
	pthread_mutex_unlock(&l->mutex);
	return busy;
}

static void later_end(void *arg)
{
	BackgroundSave *l = arg;
	pthread_mutex_lock(&l->mutex);
	l->ends = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->mutex);
	if (l->threaded)
		pthread_join(l->thread, NULL);
	pthread_mutex_destroy(&l->mutex);
	pthread_cond_destroy(&l->changed);
	arena_free(&l->images);
	ctx_free(&l->cx);
}

static BackgroundSave *later_new(Run *r)
{
	BackgroundSave *l = NEW(&r->cx.keep, 1, BackgroundSave);
	l->r = r;
	l->images.cx = &r->cx;
	l->told = true;
	ctx_init(&l->cx, NULL); /* whoever gave the run an allocator did not promise threads */
	pthread_mutex_init(&l->mutex, NULL);
	pthread_cond_init(&l->changed, NULL);
	arena_defer(&r->cx.keep, later_end, l);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
	l->threaded = pthread_create(&l->thread, NULL, work, l) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return l;
}

static void job_add(BackgroundSave *l, const char *path, uint32_t keep, bool best)
{
	Job *j = &l->job[l->jobs++];
	*j = (Job){ .image = checkpoint_image(l->r, &l->images, best),
		        .path = arena_copy(&l->images, path, strlen(path)),
		        .keep = keep };
}

void background_save(Run *r, const char *path, const char *best, uint32_t keep)
{
	if (!r->background)
		r->background = later_new(r);
	BackgroundSave *l = r->background;
	if (is_busy(l) || !l->told)
		return;
	r->diverged = !run_finite(r);
	if (r->diverged) /* the file that is there is better; the trainer tells */
		return;
	arena_free(&l->images);
	l->jobs = 0;
	job_add(l, path, keep, false);
	if (best && r->best_weights && r->best_at.epoch)
		job_add(l, best, 1, true);
	l->cx.io_fail_at = r->cx.io_fail_at;
	l->told = false;
	if (!l->threaded) {
		l->status = write_jobs(l);
		return;
	}
	pthread_mutex_lock(&l->mutex);
	l->busy = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->mutex);
}

Status background_status(Run *r, bool wait)
{
	BackgroundSave *l = r->background;
	if (!l || l->told)
		return MP_OK;
	if (wait)
		wait_idle(l);
	else if (is_busy(l))
		return MP_OK;
	l->told = true;
	r->cx.io_fail_at = l->cx.io_fail_at;
	if (l->status == MP_OK)
		return MP_OK;
	snprintf(l->said, sizeof l->said, "%s", ctx_messages(&l->cx));
	if (l->cx.messages.s)
		l->cx.messages.s[l->cx.messages.len = 0] = '\0';
	return l->status;
}

const char *background_message(const Run *r) { return r->background ? r->background->said : ""; }
