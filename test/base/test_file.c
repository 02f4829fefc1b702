/* SPDX-License-Identifier: MIT */
/* Files: reading of every kind of file, and writing that keeps the old file until the new one is safe. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/microprop-file-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void plain_write(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static size_t plain_read(const char *path, char *bytes, size_t size)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	size_t len = fread(bytes, 1, size, f);
	fclose(f);
	return len;
}

static int files_in_folder(void)
{
	int n = 0;
	DIR *dir = opendir(folder);
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/microprop-file-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	DIR *dir = opendir(folder);
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			unlink(in_folder(e->d_name));
	closedir(dir);
	return rmdir(folder);
}

/* ---- reading ---- */

typedef struct Opening {
	const char *path;
	const Src *src;
} Opening;

static void open_body(Ctx *cx, void *arg)
{
	Opening *o = arg;
	o->src = src_open_data(cx, &cx->keep, o->path, src_any);
}

static void reads_any_size(void **state)
{
	(void)state;
	/* Empty, small, one page, around the size from which files are mapped, whole pages of a mapped file. */
	static const size_t sizes[] = { 0,     1,      4095,          4096,    4097,          65535,
		                            65536, 131072, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 * 4096 + (1 << 20) };
	for (size_t i = 0; i < COUNT(sizes); i++) {
		char *bytes = malloc(sizes[i] + 1);
		for (size_t k = 0; k < sizes[i]; k++)
			bytes[k] = (char)(k * 31 + 7);
		plain_write(in_folder("x"), bytes, sizes[i]);
		Ctx cx;
		ctx_init(&cx, NULL);
		Opening o = { .path = in_folder("x") };
		assert_int_equal(guarded(&cx, open_body, &o), MP_OK);
		assert_int_equal(o.src->len, sizes[i]);
		assert_memory_equal(o.src->text, bytes, sizes[i]);
		assert_int_equal(o.src->text[sizes[i]], '\0');
		assert_string_equal(o.src->name, in_folder("x"));
		ctx_free(&cx);
		free(bytes);
	}
}

static void expect_words(const char *text, const char *words)
{
	if (!strstr(text, words))
		print_error("'%s' is not in: %s", words, text);
	assert_non_null(strstr(text, words));
}

static void expect_refused(const char *path, const char *words)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	Opening o = { .path = path };
	assert_int_equal(guarded(&cx, open_body, &o), MP_BAD_INPUT);
	expect_words(ctx_messages(&cx), words);
	ctx_free(&cx);
}

static void refuses_what_is_no_file(void **state)
{
	(void)state;
	expect_refused(in_folder("missing"), "No such file");
	expect_refused("", "No such file");
	expect_refused(folder, "is a directory");
	plain_write(in_folder("x"), "x", 1);
	expect_refused(in_folder("x/y"), "Not a directory");
	assert_int_equal(symlink("loop", in_folder("loop")), 0);
	expect_refused(in_folder("loop"), "cannot open");
	if (geteuid() != 0) {
		chmod(in_folder("x"), 0);
		expect_refused(in_folder("x"), "Permission denied");
	}
}

static void reads_standard_input(void **state)
{
	(void)state;
	char *bytes = malloc(300000);
	for (int i = 0; i < 300000; i++)
		bytes[i] = (char)i;
	int ends[2], old = dup(STDIN_FILENO);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		for (size_t at = 0; at < 300000; at += 1000)
			if (write(ends[1], bytes + at, 1000) != 1000)
				_exit(1);
		_exit(0);
	}
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	Ctx cx;
	ctx_init(&cx, NULL);
	Opening o = { .path = "-" };
	assert_int_equal(guarded(&cx, open_body, &o), MP_OK);
	assert_int_equal(o.src->len, 300000);
	assert_memory_equal(o.src->text, bytes, 300000);
	assert_int_equal(o.src->text[300000], '\0');
	assert_string_equal(o.src->name, "<stdin>");
	ctx_free(&cx);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	dup2(old, STDIN_FILENO);
	close(old);
	waitpid(child, NULL, 0);
	free(bytes);
}

static void reads_a_pipe_and_a_device(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
	pid_t child = fork();
	if (child == 0) {
		int fd = open(in_folder("pipe"), O_WRONLY);
		_exit(write(fd, "hello", 5) != 5);
	}
	Ctx cx;
	ctx_init(&cx, NULL);
	Opening o = { .path = in_folder("pipe") };
	assert_int_equal(guarded(&cx, open_body, &o), MP_OK);
	assert_string_equal(o.src->text, "hello");
	waitpid(child, NULL, 0);
	o.path = "/dev/null";
	assert_int_equal(guarded(&cx, open_body, &o), MP_OK);
	assert_int_equal(o.src->len, 0);
	assert_string_equal(o.src->text, "");
	ctx_free(&cx);
}

/* ---- writing ---- */

typedef struct Writing {
	const char *path, *piece;
	int pieces;
	bool abandon;
} Writing;

static void write_body(Ctx *cx, void *arg)
{
	Writing *w = arg;
	OutFile *f = file_create(cx, &cx->scratch, w->path);
	for (int i = 0; i < w->pieces; i++)
		file_write(f, w->piece, strlen(w->piece));
	if (!w->abandon)
		file_commit(cx, f);
}

/* The call that brings *calls to 0 fails. */
static Status write_failing(Writing w, char *messages, size_t size, int *calls)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	cx.io_fail_at = *calls;
	Status s = guarded(&cx, write_body, &w);
	*calls = cx.io_fail_at;
	snprintf(messages, size, "%s", ctx_messages(&cx));
	ctx_free(&cx);
	return s;
}

static Status write_file(Writing w, char *messages, size_t size)
{
	return write_failing(w, messages, size, &(int){ 0 });
}

static void interrupted(int signal) { (void)signal; }

/* A signal whose handler does not restart calls: reading and writing go on. */
static void signals_do_not_cut_files(void **state)
{
	(void)state;
	struct sigaction old, action = { .sa_handler = interrupted };
	struct itimerval soon = { .it_value = { .tv_usec = 2000 }, .it_interval = { .tv_usec = 2000 } }, never = { 0 };
	char *piece = malloc(100001), *pipe_path = strdup(in_folder("pipe")), messages[1000];
	memset(piece, 'x', 100000);
	piece[100000] = '\0';
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	pid_t child = fork();
	if (child == 0) { /* writes after a while, then reads after a while */
		nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
		int fd = open(pipe_path, O_WRONLY);
		bool fine = write(fd, "hello", 5) == 5;
		nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
		close(fd);
		fd = open(pipe_path, O_RDONLY);
		nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
		size_t total = 0;
		for (ssize_t n; (n = read(fd, piece, 100000)) > 0;)
			total += (size_t)n;
		_exit(!fine || total != 300000);
	}
	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &soon, NULL);
	Ctx cx;
	ctx_init(&cx, NULL);
	Opening o = { .path = pipe_path };
	Status read_status = guarded(&cx, open_body, &o);
	Status write_status =
		write_file((Writing){ .path = pipe_path, .piece = piece, .pieces = 3 }, messages, sizeof messages);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(read_status, MP_OK);
	assert_string_equal(o.src->text, "hello");
	assert_int_equal(write_status, MP_OK);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	ctx_free(&cx);
	free(piece);
	free(pipe_path);
}

static void standard_input_may_be_a_file_or_closed(void **state)
{
	(void)state;
	int old = dup(STDIN_FILENO);
	plain_write(in_folder("x"), "some text", 9);
	int fd = open(in_folder("x"), O_RDONLY);
	dup2(fd, STDIN_FILENO);
	close(fd);
	Ctx cx;
	ctx_init(&cx, NULL);
	Opening o = { .path = "-" };
	Status from_file = guarded(&cx, open_body, &o);
	close(STDIN_FILENO);
	Opening closed = { .path = "-" };
	Status from_nothing = guarded(&cx, open_body, &closed);
	/* The next file opened gets number 0: it is closed again all the same. */
	Opening zero = { .path = in_folder("x") };
	Status as_zero = guarded(&cx, open_body, &zero);
	bool left_open = fcntl(STDIN_FILENO, F_GETFD) >= 0;
	dup2(old, STDIN_FILENO);
	close(old);
	assert_int_equal(from_file, MP_OK);
	assert_string_equal(o.src->text, "some text");
	assert_int_equal(from_nothing, MP_BAD_INPUT);
	assert_int_equal(as_zero, MP_OK);
	assert_false(left_open);
	ctx_free(&cx);
}

static void endless_input_is_refused(void **state)
{
	(void)state;
	setenv("MICROPROP_MEMORY", "1000000", 1);
	assert_int_equal(memory_total(), 1000000);
	expect_refused("/dev/zero", "is a stream of more than 125000 bytes");
	unsetenv("MICROPROP_MEMORY");
	assert_true(memory_total() > 1000000);
	setenv("MICROPROP_MEMORY", "much", 1);
	assert_true(memory_total() > 1000000);
	unsetenv("MICROPROP_MEMORY");
}

static void failing_reads_give_everything_back(void **state)
{
	(void)state;
	plain_write(in_folder("x"), "some text", 9);
	for (int n = 1;; n++) {
		Meter meter = { 0 };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &meter });
		Opening o = { .path = in_folder("x") };
		cx.io_fail_at = n;
		Status s = guarded(&cx, open_body, &o);
		bool failed = cx.io_fail_at == 0;
		if (s == MP_OK)
			assert_string_equal(o.src->text, "some text");
		else
			assert_non_null(strstr(ctx_messages(&cx), "cannot"));
		ctx_free(&cx);
		assert_int_equal(meter.live, 0);
		if (!failed)
			break;
		assert_true(n < 100);
	}
	for (int n = 1;; n++) {
		Meter meter = { .fail_at = n };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &meter });
		Status s = guarded(&cx, open_body, &(Opening){ .path = in_folder("x") });
		ctx_free(&cx);
		assert_int_equal(meter.live, 0);
		if (s == MP_OK)
			break;
		assert_int_equal(s, MP_NO_MEMORY);
	}
}

static void writes_and_replaces(void **state)
{
	(void)state;
	static char text[200000], messages[1000];
	const char *path = in_folder("x");
	assert_int_equal(write_file((Writing){ .path = path, .piece = "old", .pieces = 1 }, messages, sizeof messages),
	                 MP_OK);
	assert_int_equal(plain_read(path, text, sizeof text), 3);
	assert_memory_equal(text, "old", 3);
	chmod(path, 06640); /* who may read and write stays; setuid and setgid do not */
	assert_int_equal(
		write_file((Writing){ .path = path, .piece = "0123456789", .pieces = 20000 }, messages, sizeof messages),
		MP_OK);
	assert_int_equal(plain_read(path, text, sizeof text), 200000);
	for (int i = 0; i < 200000; i++)
		assert_int_equal(text[i], '0' + i % 10);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(write_file((Writing){ .path = path, .piece = "" }, messages, sizeof messages), MP_OK);
	assert_int_equal(plain_read(path, text, sizeof text), 0);
	assert_int_equal(files_in_folder(), 1);
}

static void large_pieces_pass_the_buffer(void **state)
{
	(void)state;
	char messages[1000], *piece = malloc(100001), *text = malloc(300001);
	memset(piece, 'x', 100000);
	piece[100000] = '\0';
	assert_int_equal(
		write_file((Writing){ .path = in_folder("x"), .piece = piece, .pieces = 3 }, messages, sizeof messages), MP_OK);
	assert_int_equal(plain_read(in_folder("x"), text, 300001), 300000);
	free(piece);
	free(text);
}

static void links_are_followed(void **state)
{
	(void)state;
	char text[100], messages[1000], link_path[512];
	strcpy(link_path, in_folder("link"));
	plain_write(in_folder("real"), "old", 3);
	assert_int_equal(symlink("real", link_path), 0);
	assert_int_equal(write_file((Writing){ .path = link_path, .piece = "new", .pieces = 1 }, messages, sizeof messages),
	                 MP_OK);
	struct stat st;
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(plain_read(in_folder("real"), text, sizeof text), 3);
	assert_memory_equal(text, "new", 3);
}

static void abandoned_files_vanish(void **state)
{
	(void)state;
	char text[100], messages[1000];
	plain_write(in_folder("x"), "old", 3);
	assert_int_equal(write_file((Writing){ in_folder("x"), "new", 50000, true }, messages, sizeof messages), MP_OK);
	assert_int_equal(plain_read(in_folder("x"), text, sizeof text), 3);
	assert_int_equal(files_in_folder(), 1);
}

/* What a file holds after a failure is the old or the new, whole; up to the rename it is the old. */
static void any_call_may_fail(void **state)
{
	(void)state;
	static char text[100000], messages[1000];
	int failures = 0;
	bool seen_old = false;
	for (int n = 1;; n++) {
		plain_write(in_folder("x"), "old", 3);
		int calls = n;
		Status s = write_failing((Writing){ .path = in_folder("x"), .piece = "new", .pieces = 30000 }, messages,
		                         sizeof messages, &calls);
		bool failed = calls == 0;
		size_t len = plain_read(in_folder("x"), text, sizeof text);
		assert_true(len == 3 || len == 90000);
		assert_memory_equal(text, len == 3 ? "old" : "new", 3);
		assert_int_equal(files_in_folder(), 1);
		seen_old |= len == 3;
		if (s != MP_OK) {
			assert_int_equal(s, MP_FAILED);
			assert_non_null(strstr(messages, "cannot write"));
			failures++;
		} else {
			assert_int_equal(len, 90000);
		}
		if (!failed)
			break;
		assert_true(n < 100);
	}
	assert_true(seen_old);
	assert_true(failures >= 5); /* open, two writes, sync, rename, the folder's open and sync */
}

static void any_allocation_may_fail(void **state)
{
	(void)state;
	char text[100];
	plain_write(in_folder("x"), "old", 3);
	for (int n = 1;; n++) {
		Meter meter = { .fail_at = n };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &meter });
		Status s = guarded(&cx, write_body, &(Writing){ .path = in_folder("x"), .piece = "new", .pieces = 1 });
		ctx_free(&cx);
		assert_int_equal(meter.live, 0);
		assert_int_equal(files_in_folder(), 1);
		assert_int_equal(plain_read(in_folder("x"), text, sizeof text), 3);
		assert_memory_equal(text, s == MP_OK ? "new" : "old", 3);
		if (s == MP_OK)
			break;
		assert_int_equal(s, MP_NO_MEMORY);
	}
}

static void names_without_a_folder(void **state)
{
	(void)state;
	char messages[1000], text[10], *old = getcwd(NULL, 0);
	assert_int_equal(chdir(folder), 0);
	Status s = write_file((Writing){ .path = "x", .piece = "new", .pieces = 1 }, messages, sizeof messages);
	assert_int_equal(chdir(old), 0);
	free(old);
	assert_int_equal(s, MP_OK);
	assert_int_equal(plain_read(in_folder("x"), text, sizeof text), 3);
	assert_int_equal(files_in_folder(), 1);
}

static void expect_unwritable(const char *path, const char *words)
{
	char messages[1000];
	assert_int_equal(write_file((Writing){ .path = path, .piece = "new", .pieces = 1 }, messages, sizeof messages),
	                 MP_FAILED);
	expect_words(messages, words);
}

static void says_why_it_cannot_write(void **state)
{
	(void)state;
	expect_unwritable(in_folder("missing/x"), "make the folder first");
	expect_unwritable(folder, "Is a directory");
	expect_unwritable("/dev/full", "No space left");
	plain_write(in_folder("x"), "x", 1);
	expect_unwritable(in_folder("x/y"), "check the path");
	if (geteuid() != 0) {
		chmod(in_folder("x"), 0400);
		expect_unwritable(in_folder("x"), "Permission denied");
	}
}

static void writes_to_devices(void **state)
{
	(void)state;
	char messages[1000], text[10] = "";
	assert_int_equal(
		write_file((Writing){ .path = "/dev/null", .piece = "new", .pieces = 1 }, messages, sizeof messages), MP_OK);
	int ends[2], old = dup(STDOUT_FILENO);
	assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	static const char *const names[] = { "/dev/stdout", "-" };
	for (size_t i = 0; i < COUNT(names); i++) {
		dup2(ends[1], STDOUT_FILENO);
		Status s = write_file((Writing){ .path = names[i], .piece = "new", .pieces = 1 }, messages, sizeof messages);
		dup2(old, STDOUT_FILENO);
		assert_int_equal(s, MP_OK);
		assert_int_equal(read(ends[0], text, sizeof text), 3);
		assert_string_equal(text, "new");
	}
	close(old);
	close(ends[0]);
	close(ends[1]);
}

/* Standard output that goes to a file is not replaced under the program's feet. */
static void standard_output_keeps_its_file(void **state)
{
	(void)state;
	char messages[1000], text[20];
	int old = dup(STDOUT_FILENO), fd = open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	ssize_t n = write(STDOUT_FILENO, "before ", 7);
	Status s = write_file((Writing){ .path = "/dev/stdout", .piece = "new", .pieces = 1 }, messages, sizeof messages);
	n += write(STDOUT_FILENO, " after", 6);
	dup2(old, STDOUT_FILENO);
	close(old);
	close(fd);
	assert_int_equal(n, 13);
	assert_int_equal(s, MP_OK);
	assert_int_equal(plain_read(in_folder("out"), text, sizeof text), 16);
	assert_memory_equal(text, "before new after", 16);
}

static void leftovers_go_with_the_next_write(void **state)
{
	(void)state;
	char messages[1000];
	plain_write(in_folder("x.tmp-999999-0"), "half", 4); /* of a writer that was killed */
	plain_write(in_folder("x.tmp-1-17"), "half", 4);     /* pid 1 lives but does not hold it */
	plain_write(in_folder("x.tmp-notes"), "mine", 4);    /* looks similar, is the user's */
	plain_write(in_folder("x.tmp-1-2b"), "mine", 4);
	plain_write(in_folder("y.tmp-999999-0"), "half", 4); /* of another file */
	assert_int_equal(
		write_file((Writing){ .path = in_folder("x"), .piece = "new", .pieces = 1 }, messages, sizeof messages), MP_OK);
	assert_int_equal(access(in_folder("x.tmp-999999-0"), F_OK), -1);
	assert_int_equal(access(in_folder("x.tmp-1-17"), F_OK), -1);
	assert_int_equal(files_in_folder(), 4);
}

/* Two writers at once, the second while the first is half done: both succeed, the later commit stays. */
static void writers_do_not_disturb_each_other(void **state)
{
	(void)state;
	char messages[1000], text[10];
	Ctx cx;
	ctx_init(&cx, NULL);
	OutFile *f = file_create(&cx, &cx.scratch, in_folder("x"));
	file_write(f, "first", 5);
	assert_int_equal(
		write_file((Writing){ .path = in_folder("x"), .piece = "new", .pieces = 1 }, messages, sizeof messages), MP_OK);
	assert_int_equal(plain_read(in_folder("x"), text, sizeof text), 3);
	jmp_buf edge;
	cx.edge = &edge;
	if (setjmp(edge) == 0)
		file_commit(&cx, f);
	assert_string_equal(ctx_messages(&cx), "");
	assert_int_equal(plain_read(in_folder("x"), text, sizeof text), 5);
	ctx_free(&cx);
	assert_int_equal(files_in_folder(), 1);
}

static void *write_often(void *arg)
{
	char messages[1000];
	for (int i = 0; i < 40; i++)
		if (write_file((Writing){ .path = arg, .piece = "0123456789", .pieces = 100 }, messages, sizeof messages) !=
		    MP_OK)
			return "failed";
	return NULL;
}

static void threads_may_write_the_same_file(void **state)
{
	(void)state;
	char path[512], text[2000];
	pthread_t thread[4];
	void *result;
	strcpy(path, in_folder("x"));
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_often, path), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &result);
		assert_null(result);
	}
	assert_int_equal(plain_read(path, text, sizeof text), 1000);
	assert_int_equal(files_in_folder(), 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		CASE(reads_any_size),
		CASE(refuses_what_is_no_file),
		CASE(reads_standard_input),
		CASE(reads_a_pipe_and_a_device),
		CASE(signals_do_not_cut_files),
		CASE(standard_input_may_be_a_file_or_closed),
		CASE(names_without_a_folder),
		CASE(endless_input_is_refused),
		CASE(failing_reads_give_everything_back),
		CASE(writes_and_replaces),
		CASE(large_pieces_pass_the_buffer),
		CASE(links_are_followed),
		CASE(abandoned_files_vanish),
		CASE(any_call_may_fail),
		CASE(any_allocation_may_fail),
		CASE(says_why_it_cannot_write),
		CASE(writes_to_devices),
		CASE(standard_output_keeps_its_file),
		CASE(leftovers_go_with_the_next_write),
		CASE(writers_do_not_disturb_each_other),
		CASE(threads_may_write_the_same_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
