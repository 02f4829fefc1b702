/* SPDX-License-Identifier: MIT */
/* Public calls on jobs: several processes that train one network. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "api.h"
#include "../comm/open.h"
#include "ranks.h"

struct mp_job {
	Ctx cx;
	Ranks *ranks;             /* NULL: there is no job */
	const char *folder;       /* of files that came from rank 0; NULL: none did */
	const char *file[16]; uint32_t files;
};

static void join_body(void *arg)
{
	mp_job *job = arg;
	const Comm *comm = comm_open(&job->cx);
	job->ranks = comm ? ranks_new(&job->cx, comm) : NULL;
	if (comm)
		ranks_greet(&job->cx, job->ranks);
}

mp_status mp_job_join(mp_job **job, const mp_allocator *alloc)
{
	*job = api_handle(sizeof **job, alloc);
	return *job ? api_call(&(*job)->cx, join_body, *job) : MP_NO_MEMORY;
}

const char *mp_job_messages(const mp_job *job)
{
	return job ? ctx_messages(&job->cx) : "error: out of memory\n";
}

uint32_t mp_job_rank(const mp_job *job)
{
	return job->ranks ? job->ranks->comm->rank : 0;
}

uint32_t mp_job_size(const mp_job *job)
{
	return job->ranks ? job->ranks->comm->size : 1;
}

void mp_run_share(mp_run *run, mp_job *job)
{
	run->job = job->ranks;
}

/* ---- files ---- */

typedef struct FileArgs { mp_job *job; const char *path; const char *found; } FileArgs;

static const char *own_folder(mp_job *job)
{
	if (job->folder)
		return job->folder;
	const char *parent = getenv("TMPDIR");
	Buf name = { .arena = &job->cx.keep };
	buf_printf(&name, "%s/microprop-XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp(name.s))
		fail(&job->cx, MP_FAILED, "set TMPDIR to a folder that can be written", "cannot make %s: %s", name.s, strerror(errno));
	return job->folder = name.s;
}

/* The name that rank 0 has. */
static const char *name_spread(mp_job *job, const char *path)
{
	const Comm *c = job->ranks->comm;
	uint64_t length = path ? strlen(path) : 0;
	c->spread(c->self, &length, sizeof length, 0);
	char *name = NEW(&job->cx.keep, length + 1, char);
	if (c->rank == 0 && path)
		memcpy(name, path, length);
	c->spread(c->self, name, length, 0);
	return name;
}

typedef struct Keeping { mp_job *job; const char *name; Buf path; OutFile *out; } Keeping;

static void copy_body(void *arg)
{
	Keeping *a = arg;
	const char *base = strrchr(a->name, '/');
	buf_printf(&a->path, "%s/%s", own_folder(a->job), base ? base + 1 : a->name);
	a->out = file_create(&a->job->cx, &a->job->cx.keep, a->path.s);
	if (a->job->files < COUNT(a->job->file))
		a->job->file[a->job->files++] = a->path.s;
}

/* Content of a file, from rank 0 to all; those who want it write it where they find it again.  One that cannot still listens. */
static const char *content_spread(mp_job *job, const char *name, bool wanted)
{
	const Comm *c = job->ranks->comm;
	Arena *scratch = &job->cx.scratch;
	const Src *src = c->rank == 0 ? src_open(&job->cx, scratch, name) : NULL;
	uint64_t length = src ? src->len : 0, some;
	enum { PIECE = 1 << 22 };
	char *piece = NEW(scratch, PIECE, char);
	Keeping copy = { .job = job, .name = name, .path.arena = &job->cx.keep };
	Status status = wanted ? api_call(&job->cx, copy_body, &copy) : MP_OK;
	c->spread(c->self, &length, sizeof length, 0);
	for (uint64_t done = 0; done < length; done += some) {
		some = length - done < PIECE ? length - done : PIECE;
		if (src)
			memcpy(piece, src->text + done, some);
		c->spread(c->self, piece, some, 0);
		if (copy.out)
			file_write(copy.out, piece, some);
	}
	if (status != MP_OK)
		fail(&job->cx, status, "make room there, or put the file where this rank can read it", "cannot keep a copy of %s", name);
	if (copy.out)
		file_commit(&job->cx, copy.out);
	return wanted ? copy.path.s : name;
}

static void file_body(void *arg)
{
	FileArgs *a = arg;
	mp_job *job = a->job;
	const Comm *c = job->ranks->comm;
	a->found = NULL;
	job->ranks->own = (Saying){ .same[SAME_FILE] = a->path ? XXH3_64bits(a->path, strlen(a->path)) : 0 };
	ranks_meet(&job->cx, job->ranks, SAY_FILE);
	ranks_same(&job->cx, job->ranks);
	const char *name = name_spread(job, a->path);
	struct stat st;
	bool there = stat(name, &st) == 0, some = false;
	uint8_t own = (uint8_t)(there && S_ISREG(st.st_mode)), *all = NEW(&job->cx.scratch, c->size, uint8_t);
	c->gather(c->self, &own, 1, all);
	for (uint32_t i = 0; i < c->size; i++)
		some |= !all[i];
	a->found = *name ? name : NULL;
	if (all[0] && some)
		a->found = content_spread(job, name, !own);
}

const char *mp_job_file(mp_job *job, const char *path)
{
	FileArgs a = { job, path, path };
	if (job->ranks)
		api_call(&job->cx, file_body, &a);
	return a.found;
}

/* ---- the end ---- */

int mp_job_leave(mp_job *job, int status, const char *text)
{
	Ranks *k = job->ranks;
	if (!k)
		return status;
	ranks_leave(k, status, text);
	status = k->own.status > status ? k->own.status : status;
	for (uint32_t i = 0; i < job->files; i++)
		unlink(job->file[i]);
	if (job->folder)
		rmdir(job->folder);
	k->comm->end(k->comm->self);
	job->ranks = NULL;
	return status;
}

void mp_job_close(mp_job *job)
{
	api_close(job, sizeof *job);
}
