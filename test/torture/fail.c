/* SPDX-License-Identifier: MIT */
/* Makes a system call of a command fail, or a disk full after so many bytes. Calls are counted from its entry point on
 * (the loader, before it, is not ours), over all its threads and processes, those that the C library makes included.
 *
 * fail list                             names and errors that can be given, a line for each call
 * fail count COMMAND...                 runs it and writes how often it makes each call to the file $FAIL_COUNTS
 * fail NAME NUMBER ERROR COMMAND...     call number NUMBER, from 1, returns ERROR; `short`: it gets half the length
 * fail space BYTES ERROR COMMAND...     so many bytes can be written to files, then writes return ERROR
 *
 * The status is that of the command, 128 + signal if one ended it, and 77 where processes cannot be traced. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <linux/ptrace.h>
#include <stddef.h>
#include <sys/user.h>

typedef struct Call {
	const char *name;
	long number;
	const char *errors; /* that it may return */
} Call;
static const Call calls[] = {
	{ "read", SYS_read, "EIO EINTR short" },
	{ "pread64", SYS_pread64, "EIO EINTR short" },
	{ "write", SYS_write, "EIO ENOSPC EINTR short" },
	{ "pwrite64", SYS_pwrite64, "EIO ENOSPC EINTR short" },
	{ "openat", SYS_openat, "EIO EMFILE EACCES EINTR ENOSPC" },
	{ "close", SYS_close, "EIO EINTR" },
	{ "newfstatat", SYS_newfstatat, "EIO ENOMEM" },
	{ "fstat", SYS_fstat, "EIO ENOMEM" },
	{ "lseek", SYS_lseek, "EIO" },
	{ "fsync", SYS_fsync, "EIO ENOSPC" },
	{ "fdatasync", SYS_fdatasync, "EIO ENOSPC" },
	{ "ftruncate", SYS_ftruncate, "EIO ENOSPC" },
	{ "rename", SYS_rename, "EIO ENOSPC EACCES" },
	{ "renameat2", SYS_renameat2, "EIO ENOSPC EACCES" },
	{ "unlink", SYS_unlink, "EIO EACCES" },
	{ "link", SYS_link, "EIO ENOSPC" },
	{ "linkat", SYS_linkat, "EIO ENOSPC" },
	{ "mkdir", SYS_mkdir, "EIO ENOSPC EACCES" },
	{ "getdents64", SYS_getdents64, "EIO" },
	{ "flock", SYS_flock, "EIO ENOLCK EINTR" },
	{ "fcntl", SYS_fcntl, "EIO EMFILE" },
	{ "fadvise64", SYS_fadvise64, "EIO" },
	{ "mmap", SYS_mmap, "ENOMEM" },
	{ "mremap", SYS_mremap, "ENOMEM" },
	{ "mprotect", SYS_mprotect, "ENOMEM" },
	{ "brk", SYS_brk, "ENOMEM" },
	{ "madvise", SYS_madvise, "ENOMEM EINVAL" },
	{ "clone3", SYS_clone3, "EAGAIN ENOSYS" },
	{ "clone", SYS_clone, "EAGAIN" },
	{ "ioctl", SYS_ioctl, "EIO ENOTTY" },
	{ "sysinfo", SYS_sysinfo, "EPERM" },
	{ "getrandom", SYS_getrandom, "ENOSYS" },
	{ "access", SYS_access, "EACCES" },
	{ "readlink", SYS_readlink, "EACCES" },
	{ "sched_getaffinity", SYS_sched_getaffinity, "EPERM" },
	{ "sched_setaffinity", SYS_sched_setaffinity, "EPERM" },
	{ "prlimit64", SYS_prlimit64, "EPERM" },
};
enum { CALLS = sizeof calls / sizeof *calls, MOST_TASKS = 256 };

static int error_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} errors[] = { { "EIO", EIO },       { "EINTR", EINTR },   { "ENOSPC", ENOSPC }, { "EMFILE", EMFILE },
		           { "EACCES", EACCES }, { "ENOMEM", ENOMEM }, { "ENOLCK", ENOLCK }, { "EINVAL", EINVAL },
		           { "EAGAIN", EAGAIN }, { "ENOSYS", ENOSYS }, { "ENOTTY", ENOTTY }, { "EPERM", EPERM } };
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].number;
	fprintf(stderr, "fail: there is no error '%s'\n", name);
	exit(2);
}

typedef struct Plan {
	const Call *call; /* NULL: count, or space */
	long number;
	bool is_short, counts, space;
	int error;
	long long left; /* bytes, with space */
	long made[CALLS];
} Plan;

/* Calls under way that were changed, by thread: which register to set when they return. */
typedef struct Changed {
	pid_t task; /* 0: none */
	size_t at;
	long long value;
} Changed;
static Changed changed[MOST_TASKS];

static void set_register(pid_t task, size_t at, long long value) { ptrace(PTRACE_POKEUSER, task, at, value); }

static void on_return(pid_t task, size_t at, long long value)
{
	for (int i = 0; i < MOST_TASKS; i++)
		if (!changed[i].task) {
			changed[i] = (Changed){ task, at, value };
			return;
		}
}

static void on_exit_of(pid_t task, bool alive)
{
	for (int i = 0; i < MOST_TASKS; i++)
		if (changed[i].task == task) {
			if (alive)
				set_register(task, changed[i].at, changed[i].value);
			changed[i].task = 0;
		}
}

static void let_fail(pid_t task, int error)
{
	set_register(task, offsetof(struct user_regs_struct, orig_rax), -1);
	on_return(task, offsetof(struct user_regs_struct, rax), -error);
}

/* The caller finds its register as it was. */
static void set_argument(pid_t task, size_t at, uint64_t old, uint64_t value)
{
	set_register(task, at, (long long)value);
	on_return(task, at, (long long)old);
}

static bool is_file(pid_t task, int fd)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", task, fd);
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void on_entry(Plan *p, pid_t task, const struct ptrace_syscall_info *info)
{
	long nr = (long)info->entry.nr;
	for (int i = 0; i < CALLS; i++)
		p->made[i] += calls[i].number == nr;
	long long count = (long long)info->entry.args[2];
	if (p->space && (nr == SYS_write || nr == SYS_pwrite64) && is_file(task, (int)info->entry.args[0])) {
		if (p->left <= 0)
			let_fail(task, p->error);
		else if (count > p->left)
			set_argument(task, offsetof(struct user_regs_struct, rdx), (uint64_t)count, (uint64_t)p->left);
		p->left -= count;
	}
	if (!p->call || p->call->number != nr || p->made[p->call - calls] != p->number)
		return;
	if (nr == SYS_brk) /* a break that cannot move is returned as it is, as by brk(0) */
		set_argument(task, offsetof(struct user_regs_struct, rdi), info->entry.args[0], 0);
	else if (!p->is_short)
		let_fail(task, p->error);
	else if (count > 1)
		set_argument(task, offsetof(struct user_regs_struct, rdx), (uint64_t)count, (uint64_t)count / 2);
}

/* ---- the entry point ---- */

typedef struct Entry {
	unsigned long at;
	long code; /* that a breakpoint replaces there */
} Entry;

static void entry_stop(pid_t task, Entry *e)
{
	char path[64];
	unsigned long aux[2] = { 0 };
	snprintf(path, sizeof path, "/proc/%d/auxv", task);
	FILE *f = fopen(path, "r");
	while (f && fread(aux, sizeof aux, 1, f) == 1 && aux[0] != AT_ENTRY)
		;
	if (f)
		fclose(f);
	e->at = aux[1];
	e->code = ptrace(PTRACE_PEEKTEXT, task, e->at, 0);
	ptrace(PTRACE_POKETEXT, task, e->at, (e->code & ~0xffL) | 0xcc);
}

static bool entry_reached(pid_t task, const Entry *e)
{
	size_t rip = offsetof(struct user_regs_struct, rip);
	if (!e->at || (unsigned long)ptrace(PTRACE_PEEKUSER, task, rip, 0) != e->at + 1)
		return false;
	ptrace(PTRACE_POKETEXT, task, e->at, e->code);
	set_register(task, rip, (long long)e->at);
	return true;
}

static int watch(Plan *p, pid_t first)
{
	int status, result = 0;
	bool begun = false;
	Entry entry = { 0 };
	for (pid_t task; (task = waitpid(-1, &status, __WALL)) > 0;) {
		long deliver = 0;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			on_exit_of(task, false);
			if (task == first)
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			struct ptrace_syscall_info info = { 0 };
			ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof info, &info);
			if (begun && info.op == PTRACE_SYSCALL_INFO_ENTRY)
				on_entry(p, task, &info);
			else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
				on_exit_of(task, true);
		} else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
			if (!entry.at)
				entry_stop(task, &entry);
		} else if (!begun && WSTOPSIG(status) == SIGTRAP && entry_reached(task, &entry)) {
			begun = true;
		} else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP) {
			deliver = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, task, 0, deliver);
	}
	return result;
}

static int usage(void) { return fprintf(stderr, "usage: the head of test/torture/fail.c\n"), 2; }

static int list(void)
{
	for (int i = 0; i < CALLS; i++)
		printf("%s %s\n", calls[i].name, calls[i].errors);
	return 0;
}

static void write_counts(const Plan *p)
{
	const char *name = getenv("FAIL_COUNTS");
	FILE *out = name ? fopen(name, "w") : NULL;
	for (int i = 0; out && i < CALLS; i++)
		fprintf(out, "%s %ld\n", calls[i].name, p->made[i]);
	if (out)
		fclose(out);
}

int main(int argc, char **argv)
{
	Plan p = { 0 };
	int at = 4;
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (argc > 2 && strcmp(argv[1], "count") == 0) {
		p.counts = true;
		at = 2;
	} else if (argc > 4) {
		p.space = strcmp(argv[1], "space") == 0;
		p.number = p.left = atol(argv[2]);
		p.is_short = strcmp(argv[3], "short") == 0;
		p.error = p.is_short ? 0 : error_number(argv[3]);
		for (int i = 0; i < CALLS; i++)
			if (strcmp(calls[i].name, argv[1]) == 0)
				p.call = &calls[i];
		if (!p.space && !p.call)
			return usage();
	} else {
		return usage();
	}
	pid_t child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(77);
		raise(SIGSTOP);
		execvp(argv[at], argv + at);
		_exit(127);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return 77;
	ptrace(PTRACE_SETOPTIONS, child, 0,
	       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
	           PTRACE_O_EXITKILL);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	int result = watch(&p, child);
	if (p.counts)
		write_counts(&p);
	return result;
}
#else
int main(void) { return 77; }
#endif
