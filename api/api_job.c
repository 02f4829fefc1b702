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
#include "microprop/job.h"
#include "open.h"
#include "ranks.h"

struct mp_job {
	Ctx cx;
	Ranks *ranks;       /* NULL: there is no job */
	const char *folder; /* of files that came from rank 0; NULL: none did */
	const char *file[16];
	uint32_t files;
};

typedef struct Program {
	Ctx *cx;
	uint64_t checksum;
} Program;

/* The program's file; or, for a job on machines of different kinds, whose files differ, the release that
 * MICROPROP_RELEASE says they all are. */
static void program_body(void *arg)
{
	Program *p = arg;
	const char *release = getenv("MICROPROP_RELEASE");

	if (release && *release) {
		p->checksum = XXH3_64bits(release, strlen(release)) | 1;
		return;
	}
	const Src *src = src_open_data(p->cx, &p->cx->scratch, "/proc/self/exe", src_any);
	p->checksum = XXH3_64bits(src->text, src->len) | 1;
}

/* Collective: a rank takes part even if it cannot read its own program. */
static void join_body(void *arg)
{
	mp_job *job = arg;
	const Comm *comm = comm_open(&job->cx);
	Program own = { .cx = &job->cx };
	job->ranks = comm ? ranks_new(&job->cx, comm) : NULL;
	if (!comm)
		return;
	api_call(&job->cx, program_body, &own);
	ranks_check_program(&job->cx, job->ranks, own.checksum);
}

mp_status mp_job_join(mp_job **job, const mp_allocator *alloc)
{
	Status s = api_handle((void **)job, sizeof **job, alloc);
	return s == MP_OK ? api_call(&(*job)->cx, join_body, *job) : s;
}

const char *mp_job_messages(const mp_job *job) { return api_messages(job); }

const mp_error *mp_job_get_error(const mp_job *job, size_t i) { return api_error(job, i); }

uint32_t mp_job_launched_rank(void)
{
	LaunchedJob job;
	launcher_job(&job);
	return job.rank;
}

uint32_t mp_job_rank(const mp_job *job) { return job->ranks ? job->ranks->comm->rank : 0; }

uint32_t mp_job_size(const mp_job *job) { return job->ranks ? job->ranks->comm->size : 1; }

void mp_run_share(mp_run *run, mp_job *job) { run->job = job->ranks; }

/* ---- what all ranks must have alike ---- */

typedef struct SameArgs {
	mp_job *job;
	const char *option, *value;
} SameArgs;

static void same_body(void *arg)
{
	SameArgs *a = arg;
	Ranks *k = a->job->ranks;
	k->own = (Message){ .match[MATCH_OPTION] = a->value ? XXH3_64bits(a->value, strlen(a->value)) : 0 };
	ranks_exchange(&a->job->cx, k, MSG_SAME);
	ranks_check_option(&a->job->cx, k, a->option);
}

mp_status mp_job_same(mp_job *job, const char *option, const char *value)
{
	return job->ranks ? api_call(&job->cx, same_body, &(SameArgs){ job, option, value }) : MP_OK;
}

/* ---- files ---- */

enum { CHUNK = 1 << 22 }; /* bytes per broadcast */

typedef struct FileArgs {
	mp_job *job;
	const char *path;
	const char *found;
} FileArgs;

static const char *own_folder(mp_job *job)
{
	if (job->folder)
		return job->folder;
	const char *parent = getenv("TMPDIR");
	Buf name = { .arena = &job->cx.keep };
	buf_printf(&name, "%s/microprop-XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp(name.s))
		fail(&job->cx, MP_FAILED, "set TMPDIR to a folder that can be written", "cannot make %s: %s", name.s,
		     strerror(errno));
	return job->folder = name.s;
}

typedef struct Keeping {
	mp_job *job;
	const char *name;
	Buf path;
	OutFile *out;
} Keeping;

static void copy_body(void *arg)
{
	Keeping *a = arg;
	const char *base = strrchr(a->name, '/');
	buf_printf(&a->path, "%s/%s", own_folder(a->job), base ? base + 1 : a->name);
	a->out = file_create(&a->job->cx, &a->job->cx.keep, a->path.s);
	if (a->job->files < COUNT(a->job->file))
		a->job->file[a->job->files++] = a->path.s;
}

/* Content of a file, from rank 0 to all; those who want it write it where they find it again. One that cannot still
 * listens. */
static const char *content_spread(mp_job *job, const char *name, const Src *src, char *chunk, bool wanted)
{
	const Comm *c = job->ranks->comm;
	uint64_t length = src ? src->len : 0, some;
	Keeping copy = { .job = job, .name = name, .path.arena = &job->cx.keep };
	Status status = wanted ? api_call(&job->cx, copy_body, &copy) : MP_OK;
	c->broadcast(c->self, &length, sizeof length, 0);
	for (uint64_t done = 0; done < length; done += some) {
		some = length - done < CHUNK ? length - done : CHUNK;
		if (src)
			memcpy(chunk, src->text + done, some);
		c->broadcast(c->self, chunk, some, 0);
		if (copy.out)
			file_write(copy.out, chunk, some);
	}
	if (status != MP_OK)
		fail(&job->cx, status, "free space there, or put the file where this rank can read it",
		     "cannot keep a copy of %s", name);
	if (copy.out)
		file_commit(&job->cx, copy.out);
	return wanted ? copy.path.s : name;
}

/* How many have it, as all said when they met; *first: the first of them. */
static uint32_t votes_for(const Message *all, uint64_t word, uint32_t *first)
{
	for (int i = 0; i < VOTES && all->vote[i].ranks; i++)
		if (all->vote[i].checksum == word) {
			*first = all->vote[i].first;
			return all->vote[i].ranks;
		}
	return 0;
}

/* Whatever can fail does so before they meet: there a rank can leave, and the others hear it. */
static void file_body(void *arg)
{
	FileArgs *a = arg;
	mp_job *job = a->job;
	Ranks *k = job->ranks;
	struct stat st;
	enum { LACKS, HAS };
	char *chunk = NEW(&job->cx.scratch, CHUNK, char);
	bool has = a->path && stat(a->path, &st) == 0 && S_ISREG(st.st_mode);
	const Src *src = has && k->comm->rank == 0 ? src_open_data(&job->cx, &job->cx.scratch, a->path, src_any) : NULL;
	uint32_t first = 0;
	k->own = (Message){ .match[MATCH_FILE] = a->path ? XXH3_64bits(a->path, strlen(a->path)) : 0,
		                .vote[0] = { .checksum = has ? HAS : LACKS, .ranks = 1, .first = k->comm->rank } };
	ranks_exchange(&job->cx, k, MSG_FILE);
	ranks_check_match(&job->cx, k);
	uint32_t number = votes_for(&k->all, HAS, &first);
	a->found = a->path;
	if (number && number < k->comm->size && first == 0)
		a->found = content_spread(job, a->path, src, chunk, !has);
}

mp_status mp_job_file(mp_job *job, const char *path, const char **found)
{
	FileArgs a = { job, path, path };
	mp_status status = job->ranks ? api_call(&job->cx, file_body, &a) : MP_OK;
	*found = a.found;
	return status;
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
	k->comm->finalize(k->comm->self);
	job->ranks = NULL;
	return status;
}

void mp_job_close(mp_job *job) { api_close(job, sizeof *job); }
