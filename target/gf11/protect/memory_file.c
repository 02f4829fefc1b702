/* SPDX-License-Identifier: MIT */
/* Processor memory that persists between runs, as that of a real machine does. In: a file, the words of DRAM that
 * hold cases. Out: these words are mapped to the file, so that a run finds what the previous one left. Checksums
 * decide whether the contents are valid (data_check.c); a header line identifies the file, so that no other file is
 * overwritten.
 *
 * The file from 64 KB on, a page on every machine, is mapped over pages of DRAM. The last of these pages is shared
 * with words that are not kept, which retain their values. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gf11_protect.h"
#include "system.h"

static const char remedy[] = "name a file in a folder that can be written, or leave out machine-memory";

typedef struct Opened {
	int fd;
} Opened;

static void opened_close(void *arg) { close(((Opened *)arg)->fd); }

static const char head[] = "memory of a machine that microprop simulates\n";

/* Allocates all blocks now: a full disk would later only show as SIGBUS. */
static int file_open(Ctx *cx, const char *path, uint64_t bytes)
{
	struct stat s;
	Opened *o = NEW(&cx->scratch, 1, Opened);
	o->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (o->fd < 0)
		fail(cx, MP_BAD_INPUT, remedy, "%s: %s", path, strerror(errno));
	arena_defer(&cx->scratch, opened_close, o);
	if (fstat(o->fd, &s) != 0 || !S_ISREG(s.st_mode))
		fail(cx, MP_BAD_INPUT, remedy, "%s is not an ordinary file", path);
	/* Writes the header to a new file, verifies that of an existing one. */
	bool empty = s.st_size == 0;
	char there[sizeof head] = { 0 };
	if (empty && pwrite(o->fd, head, sizeof head - 1, 0) != (ssize_t)sizeof head - 1)
		fail(cx, MP_FAILED, remedy, "%s: %s", path, strerror(errno));
	if (!empty && (pread(o->fd, there, sizeof head - 1, 0) != (ssize_t)sizeof head - 1 || strcmp(there, head) != 0))
		fail(cx, MP_BAD_INPUT, "name a file that is not there yet, or one of an earlier run",
		     "%s holds something else, which machine-memory would destroy", path);
	int wrong = posix_fallocate(o->fd, 0, (off_t)bytes);
	if (wrong)
		fail(cx, MP_FAILED, remedy, "%s: no room for %llu bytes: %s", path, (unsigned long long)bytes, strerror(wrong));
	return o->fd;
}

void memory_keep(Ctx *cx, Processors *p, const char *path, uint64_t words)
{
	enum { LARGEST_PAGE = 65536 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = words * p->lanes * sizeof *p->dram;
	uint64_t whole = (bytes + page - 1) / page * page, all = (uint64_t)p->m->dram * p->lanes * sizeof *p->dram;
	uint64_t beyond = (whole < all ? whole : all) - bytes;
	if (!bytes)
		return;
	int fd = file_open(cx, path, LARGEST_PAGE + whole);
	char *tail = (char *)p->dram + bytes, *kept = NEW(&cx->scratch, beyond + 1, char);
	memcpy(kept, tail, beyond);
	if (mmap(p->dram, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, LARGEST_PAGE) == MAP_FAILED)
		fail(cx, MP_FAILED, remedy, "%s: %s", path, strerror(errno));
	memcpy(tail, kept, beyond);
}
