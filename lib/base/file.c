/* SPDX-License-Identifier: MIT */
/* Files.  In: a path.  Out: its bytes (src_open), or a file that is replaced as a whole or not at all (file_create,
 * file_write, file_commit).
 *
 * Reading: text[len] is always NUL, so text readers may look one byte past the end; binary readers must keep to len.
 * Files of MAP_FROM bytes and more are mapped; of streams (pipes, devices) no more is read than a reader accepts.
 * Writing: PATH.tmp-PID-N is locked while its writer lives.  The next writer of PATH removes those without a lock,
 * which killed processes left. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY /* the state's size */
#include <xxhash.h>

#include "base.h"
#include "system.h"

enum { MAP_FROM = 1 << 20, READ_FIRST = 1 << 16, WRITE_BUFFER = 1 << 16, MAX_TMP = 1000 };
enum { STREAM_HEAD = 4096, STREAM_MAX = 1 << 30, DEVICE_MAX = 1 << 26, TEXT_MAX = 1 << 26 };

/* ---- system calls, each of which a test can make fail ------------------------------------------- */

static bool io_fails(Ctx *cx, int reason)
{
	if (cx->io_fail_at <= 0 || --cx->io_fail_at > 0)
		return false;
	errno = reason;
	return true;
}

static int io_open(Ctx *cx, const char *path, int flags, mode_t mode)
{
	int fd;
	if (io_fails(cx, flags & O_CREAT ? ENOSPC : EIO))
		return -1;
	do
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
	while (fd < 0 && errno == EINTR);
	return fd;
}

static ssize_t io_read(Ctx *cx, int fd, void *bytes, size_t len)
{
	ssize_t n;
	if (io_fails(cx, EIO))
		return -1;
	do
		n = read(fd, bytes, len);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t io_write(Ctx *cx, int fd, const void *bytes, size_t len)
{
	ssize_t n;
	if (io_fails(cx, ENOSPC))
		return -1;
	do
		n = write(fd, bytes, len);
	while (n < 0 && errno == EINTR);
	return n;
}

static int io_fsync(Ctx *cx, int fd)
{
	int rc;
	if (io_fails(cx, ENOSPC))
		return -1;
	do
		rc = fsync(fd);
	while (rc < 0 && errno == EINTR);
	/* Some file systems cannot sync a directory and say so; there is nothing else to call there. */
	return rc < 0 && (errno == EINVAL || errno == ENOTSUP) ? 0 : rc;
}

static int io_link(Ctx *cx, const char *from, const char *to) { return io_fails(cx, ENOSPC) ? -1 : link(from, to); }

static int io_rename(Ctx *cx, const char *from, const char *to) { return io_fails(cx, ENOSPC) ? -1 : rename(from, to); }

/* The descriptor is closed even on failure; EINTR is none. */
static int io_close(Ctx *cx, int fd)
{
	bool fails = io_fails(cx, ENOSPC);
	int rc = close(fd);
	if (fails) {
		errno = ENOSPC;
		return -1;
	}
	return rc < 0 && errno != EINTR ? -1 : 0;
}

/* ---- remedies ------------------------------------------------------------------------ */

static const struct {
	int reason;
	const char *read, *write;
} remedies[] = {
	{ ENOENT, "check the name and the folder it is looked for in", "make the folder first" },
	{ ENOTDIR, "a part of the path is a file, not a folder; check the path",
	  "a part of the path is a file; check the path" },
	{ EISDIR, "name a file in that folder", "name a file in that folder" },
	{ EACCES, "ask its owner for permission to read it", "write to a folder of your own, or change the permissions" },
	{ EROFS, NULL, "this disk is read-only; write to another" },
	{ ENOSPC, NULL, "the disk is full; free some space or write to another disk" },
	{ EFBIG, NULL, "files may not be so large here: raise the limit (ulimit -f), or write to another disk" },
	{ EDQUOT, NULL, "your quota is used up; remove some files or write to another disk" },
	{ EMFILE, "close other files, or raise the limit: ulimit -n 1024",
	  "close other files, or raise the limit: ulimit -n 1024" },
	{ ENFILE, "end other programs: the system has too many files open",
	  "end other programs: the system has too many files open" },
	{ ENAMETOOLONG, "use a shorter name", "use a shorter name" },
	{ EIO, "the disk has a fault; try a copy of the file", "the disk has a fault; write to another" },
};

static const char *remedy_for(int reason, bool writing)
{
	for (size_t i = 0; i < COUNT(remedies); i++)
		if (remedies[i].reason == reason)
			return writing ? remedies[i].write : remedies[i].read;
	return NULL;
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* Released with the arena, also when reading fails half-way. */
typedef struct Opened {
	int fd;
	bool owned;
	void *map;
	size_t map_len;
} Opened; /* standard input is not owned */

static void opened_close(void *arg)
{
	Opened *o = arg;
	if (o->map)
		munmap(o->map, o->map_len);
	if (o->owned && o->fd >= 0)
		close(o->fd);
	o->map = NULL;
	o->fd = -1;
}

/* Maps the file over an anonymous region at least one byte longer, so that a NUL follows the last byte even where the
 * file fills its last page.  False where the file cannot be mapped. */
static bool src_map(Src *src, Opened *o, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (len / page + 1) * page;
	void *map = mmap(NULL, whole, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return false;
	o->map = map;
	o->map_len = whole;
	if (mmap(map, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, o->fd, 0) == MAP_FAILED) {
		munmap(map, whole);
		o->map = NULL;
		return false;
	}
	src->text = map;
	src->len = len;
	src->mapped = true;
	return true;
}

void pages_release(const void *from, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)from + page - 1) / page * page;
	uintptr_t end = ((uintptr_t)from + len) / page * page;

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void src_release(const Src *s, size_t *released, size_t off)
{
	enum { STEP = 1 << 22 };

	if (!s->mapped || off < *released + STEP)
		return;
	pages_release(s->text + *released, off - *released);
	*released = off;
}

/* How a file that is not mapped is read. */
typedef struct Reading {
	int fd;
	size_t expected; /* bytes of a regular file; 0: a stream */
	bool device;
	SrcBinary *binary; /* NULL: the file is text, and of a kind that people write */
	bool text;         /* a stream of text: ends at the first byte that src_check_text will refuse */
	size_t checked;    /* bytes of it */
} Reading;

/* What has been read of a stream ends it here: the reader will refuse it.  An endless one would fill the memory. */
static bool stream_ends(Reading *r, const char *text, size_t len)
{
	if (r->expected || (!r->text && r->checked) || len < STREAM_HEAD)
		return false;
	if (!r->checked)
		r->text = !r->binary || !r->binary(&(Src){ .text = text, .len = len });
	bool found = r->text && control_find(text + r->checked, len - r->checked);
	r->checked = len;
	return found;
}

static void check_size(Ctx *cx, const Src *src, const Reading *r, uint64_t len)
{
	if (!r->binary && len > TEXT_MAX)
		fail(cx, MP_BAD_INPUT, "check that it is the right file",
		     "%s has more than %d MB; a file of this kind has less", src->name, TEXT_MAX >> 20);
	if (r->device && len > DEVICE_MAX)
		fail(cx, MP_BAD_INPUT, "name a file", "%s is a device that has no end: %d MB were read", src->name,
		     DEVICE_MAX >> 20);
	if (len > memory_total() / 2)
		fail(cx, MP_BAD_INPUT, "use a machine with more memory, or a smaller file",
		     "%s is larger than half the memory of this machine", src->name);
	/* A stream may have no end, and text takes several times its size once it is read. */
	uint64_t most = min_u64(STREAM_MAX, memory_total() / 8);
	if (!r->expected && len > most)
		fail(cx, MP_BAD_INPUT, "save it to a file and name that: large files are mapped, not read whole",
		     "%s is a stream of more than %llu bytes", src->name, (unsigned long long)most);
}

/* Reads to the end; the arena's memory is zeroed, so a NUL follows. */
static void src_read(Ctx *cx, Arena *arena, Src *src, Reading *r)
{
	size_t cap = r->expected < READ_FIRST ? READ_FIRST : r->expected + 2, len = 0;
	char *text = NEW(arena, cap, char);
	for (;;) {
		ssize_t n = io_read(cx, r->fd, text + len, cap - 1 - len);
		if (n < 0)
			fail(cx, errno == EISDIR ? MP_BAD_INPUT : MP_FAILED, remedy_for(errno, false), "cannot read %s: %s",
			     src->name, strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
		check_size(cx, src, r, len);
		if (stream_ends(r, text, len))
			break;
		if (cap - 1 == len) {
			text = arena_grow(arena, text, cap, cap * 2, 1);
			cap *= 2;
		}
	}
	src->text = text;
	src->len = len;
}

bool src_any(const Src *head)
{
	(void)head;
	return true;
}

Src *src_open(Ctx *cx, Arena *arena, const char *path) { return src_open_data(cx, arena, path, NULL); }

Src *src_open_data(Ctx *cx, Arena *arena, const char *path, SrcBinary *binary)
{
	bool standard = strcmp(path, "-") == 0;
	Src *src = NEW(arena, 1, Src);
	Opened *o = NEW(arena, 1, Opened);
	struct stat st;

	src->name = standard ? "<stdin>" : arena_copy(arena, path, strlen(path));
	o->fd = standard ? STDIN_FILENO : -1;
	o->owned = !standard;
	arena_defer(arena, opened_close, o);
	if (!standard && (o->fd = io_open(cx, path, O_RDONLY, 0)) < 0)
		fail(cx, MP_BAD_INPUT, remedy_for(errno, false), "cannot open %s: %s", path, strerror(errno));
	if (fstat(o->fd, &st) < 0)
		fail(cx, MP_BAD_INPUT, remedy_for(errno, false), "cannot read %s: %s", src->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		fail(cx, MP_BAD_INPUT, remedy_for(EISDIR, false), "%s is a directory", src->name);

	bool regular = S_ISREG(st.st_mode) && !standard;
	Reading r = { .fd = o->fd, .binary = binary, .device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) };
	r.expected = regular ? (size_t)st.st_size : 0;
	if (!binary)
		check_size(cx, src, &r, r.expected);
	if (r.expected < MAP_FROM || !src_map(src, o, r.expected)) {
		check_size(cx, src, &r, r.expected);
		src_read(cx, arena, src, &r);
	}
	if (o->owned)
		io_close(cx, o->fd);
	o->fd = -1;
	return src;
}

/* ---- writing ------------------------------------------------------------------------------------ */

struct OutFile {
	Ctx *cx;
	const char *path; /* the final name, symbolic links followed */
	const char *tmp;  /* the file written; NULL: path itself, or already renamed */
	bool direct;      /* path is a device, a pipe or standard output: nothing to rename or sync */
	int fd;
	int reason;       /* errno of the first failure */
	const char *step; /* what failed */
	/* [2] hash of all bytes written, and of those read back; NULL: not verified */
	XXH3_state_t *written;
	uint32_t keep; /* files in the end, older ones included */
	size_t used;
	char bytes[WRITE_BUFFER];
};

static void file_failed(OutFile *f, const char *step)
{
	if (f->reason)
		return;
	f->reason = errno ? errno : EIO;
	f->step = step;
}

static void file_abandon(void *arg)
{
	OutFile *f = arg;
	if (f->fd < 0)
		return;
	if (f->tmp)
		unlink(f->tmp);
	close(f->fd);
	f->fd = -1;
}

/* Folder of a path with its slash, "./" if it names none: length in *len, 0 meaning "./". */
static const char *folder_of(const char *path, size_t *len)
{
	const char *slash = strrchr(path, '/');
	*len = slash ? (size_t)(slash - path) + 1 : 0;
	return slash ? path : "./";
}

static const char *folder_copy(Arena *arena, const char *path)
{
	size_t len;
	const char *folder = folder_of(path, &len);
	return arena_copy(arena, folder, len ? len : 2);
}

/* Is `name` BASE.tmp-DIGITS-DIGITS? */
static bool is_tmp_of(const char *name, const char *base)
{
	size_t len = strlen(base);
	if (strncmp(name, base, len) != 0 || strncmp(name + len, ".tmp-", 5) != 0)
		return false;
	name += len + 5;
	size_t pid = strspn(name, "0123456789");
	if (pid == 0 || name[pid] != '-')
		return false;
	name += pid + 1;
	size_t n = strspn(name, "0123456789");
	return n > 0 && name[n] == '\0';
}

/* Is `name` still the file that was opened?  Its writer may have renamed it and another begun one of that name. */
static bool is_same_file(int dir, const char *name, int fd)
{
	struct stat now, then;
	return fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &then) == 0 && now.st_dev == then.st_dev &&
	       now.st_ino == then.st_ino;
}

/* Removes what killed writers of this path left.  A living writer holds a lock.  Failing here does no harm. */
static void remove_leftovers(const char *path, const char *folder)
{
	size_t len;
	folder_of(path, &len);
	DIR *dir = opendir(folder);
	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (!is_tmp_of(e->d_name, path + len))
			continue;
		int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(dirfd(dir), e->d_name, fd))
			unlinkat(dirfd(dir), e->d_name, 0);
		close(fd);
	}
	closedir(dir);
}

/* Opens and locks a new PATH.tmp-PID-N.  Another writer may remove it in between as a leftover: try the next. */
static void tmp_open(OutFile *f, Arena *arena, mode_t mode)
{
	size_t size = strlen(f->path) + 48;
	char *name = NEW(arena, size, char);
	for (int n = 0; n < MAX_TMP; n++) {
		struct stat st;
		snprintf(name, size, "%s.tmp-%ld-%d", f->path, (long)getpid(), n);
		int fd = io_open(f->cx, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			break;
		bool taken = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
		if (taken || fstat(fd, &st) < 0 || st.st_nlink == 0) {
			close(fd);
			continue;
		}
		f->tmp = name;
		f->fd = fd;
		return;
	}
	file_failed(f, "open");
}

/* Standard output under any name: a second open would overwrite from the first byte. */
static bool is_standard_output(const char *path, const struct stat *st)
{
	struct stat out;
	if (strcmp(path, "-") == 0)
		return true;
	return st && fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st->st_dev && out.st_ino == st->st_ino;
}

OutFile *file_create(Ctx *cx, Arena *arena, const char *path)
{
	OutFile *f = NEW(arena, 1, OutFile);
	char real[PATH_MAX];
	struct stat st;
	bool exists = stat(path, &st) == 0;

	f->cx = cx;
	f->fd = -1;
	f->path = arena_copy(arena, path, strlen(path));
	arena_defer(arena, file_abandon, f);
	if (is_standard_output(path, exists ? &st : NULL)) {
		f->direct = true;
		f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	} else if (exists && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
	} else if (exists && !S_ISREG(st.st_mode)) {
		f->direct = true;
		f->fd = io_open(cx, path, O_WRONLY, 0);
	} else if (!exists || access(path, W_OK) == 0) {
		if (exists && realpath(path, real))
			f->path = arena_copy(arena, real, strlen(real));
		remove_leftovers(f->path, folder_copy(arena, f->path));
		tmp_open(f, arena, 0666);
		if (f->fd >= 0 && exists && fchmod(f->fd, st.st_mode & 0777) < 0)
			file_failed(f, "chmod");
	}
	if (f->fd < 0)
		file_failed(f, "open");
	return f;
}

static void write_out(OutFile *f, const char *bytes, size_t len)
{
	while (len > 0 && !f->reason) {
		ssize_t n = io_write(f->cx, f->fd, bytes, len);
		if (n < 0) {
			file_failed(f, "write");
			return;
		}
		bytes += n;
		len -= (size_t)n;
	}
}

static void flush_out(OutFile *f)
{
	write_out(f, f->bytes, f->used);
	f->used = 0;
}

void file_verify(OutFile *f, uint32_t keep)
{
	assert(!f->written && f->used == 0);
	f->written = NEW(&f->cx->scratch, 2, XXH3_state_t);
	f->keep = keep;
	XXH3_128bits_reset(&f->written[0]);
	XXH3_128bits_reset(&f->written[1]);
}

void file_write(OutFile *f, const void *bytes, size_t len)
{
	if (f->written && len)
		XXH3_128bits_update(f->written, bytes, len);
	if (len > sizeof f->bytes - f->used)
		flush_out(f);
	if (f->reason)
		return;
	if (len >= sizeof f->bytes) {
		write_out(f, bytes, len);
		return;
	}
	if (len > 0)
		memcpy(f->bytes + f->used, bytes, len);
	f->used += len;
}

static void sync_folder(OutFile *f, const char *folder)
{
	int fd = io_open(f->cx, folder, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || io_fsync(f->cx, fd) < 0)
		file_failed(f, "sync of the folder");
	if (fd >= 0)
		io_close(f->cx, fd);
}

/* From the disk, not from the page cache. */
static bool reads_back(OutFile *f)
{
	int fd = io_open(f->cx, f->tmp, O_RDONLY, 0);
	ssize_t n;
	if (fd < 0)
		return false;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while ((n = io_read(f->cx, fd, f->bytes, sizeof f->bytes)) > 0)
		XXH3_128bits_update(&f->written[1], f->bytes, (size_t)n);
	int reason = n < 0 ? errno : EIO;
	io_close(f->cx, fd);
	errno = reason;
	return n == 0 && XXH128_isEqual(XXH3_128bits_digest(&f->written[0]), XXH3_128bits_digest(&f->written[1]));
}

static const char *older(Arena *a, const char *path, uint32_t number)
{
	Buf b = { .arena = a };
	buf_puts(&b, path);
	if (number)
		buf_printf(&b, ".%u", number);
	return b.s;
}

/* Older files get higher numbers.  The newest keeps its name as well until the rename: there is always a file. */
static bool keeps_older(OutFile *f)
{
	Arena *scratch = &f->cx->scratch;
	if (f->keep < 2 || access(f->path, F_OK) < 0)
		return true;
	for (uint32_t i = f->keep - 1; i > 1; i--)
		if (io_rename(f->cx, older(scratch, f->path, i - 1), older(scratch, f->path, i)) < 0 && errno != ENOENT)
			return false;
	const char *next = older(scratch, f->path, 1);
	unlink(next);
	if (io_link(f->cx, f->path, next) == 0)
		return true;
	/* some file systems have no hard links */
	return (errno == EPERM || errno == EOPNOTSUPP) && io_rename(f->cx, f->path, next) == 0;
}

void file_save(Ctx *cx, const char *path, Content whole, uint32_t keep)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	file_verify(f, keep);
	file_write(f, whole.at, whole.len);
	file_commit(cx, f);
}

void file_commit(Ctx *cx, OutFile *f)
{
	if (f->fd >= 0)
		flush_out(f);
	if (!f->reason && f->tmp) {
		/* Allocate before the rename: nothing may fail after it. */
		const char *folder = folder_copy(&cx->scratch, f->path);
		if (io_fsync(cx, f->fd) < 0)
			file_failed(f, "sync");
		else if (f->written && !reads_back(f))
			file_failed(f, "reading it back");
		else if (!keeps_older(f))
			file_failed(f, "keeping the older one");
		else if (io_rename(cx, f->tmp, f->path) < 0)
			file_failed(f, "rename");
		else {
			f->tmp = NULL;
			sync_folder(f, folder);
		}
	}
	if (f->fd >= 0 && !f->reason) {
		int fd = f->fd;
		f->fd = -1;
		/* After a sync, only closing a device can still fail. */
		if (io_close(cx, fd) < 0 && f->direct)
			file_failed(f, "close");
	}
	if (!f->reason)
		return;
	file_abandon(f);
	fail(cx, MP_FAILED, remedy_for(f->reason, true), "cannot write %s: %s (in %s)", f->path, strerror(f->reason),
	     f->step);
}

uint64_t memory_total(void)
{
	const char *text = getenv("MICROPROP_MEMORY");
	if (text && *text >= '0' && *text <= '9')
		return strtoull(text, NULL, 10);
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : (uint64_t)1 << 30;
}

/* ---- time --------------------------------------------------------------------------------------- */

double clock_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
