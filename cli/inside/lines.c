/* SPDX-License-Identifier: MIT */
/* Standard input, as its lines come: so that predict can be a co-process.
 *
 * In: a pipe, a terminal or a socket.  Out: whole lines that have come since the last call, with the header before
 * them, as a file that takes the place of standard input; data of it is read like that of any other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { BLOCK = 1 << 16, MOST_AT_ONCE = 1 << 20, LONGEST = 1 << 26 };

/* Reads what has come, waiting for something; false: the end, or memory ran out. */
static bool lines_read(Lines *l)
{
	if (l->cap - l->len < BLOCK) {
		char *more = realloc(l->text, l->cap + 4 * BLOCK);
		if (!more)
			return false;
		l->text = more;
		l->cap += 4 * BLOCK;
	}
	ssize_t n;
	waiting_start("-");
	do
		n = read(l->fd, l->text + l->len, BLOCK);
	while (n < 0 && errno == EINTR);
	waiting_end();
	l->ended = n <= 0;
	l->len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* A byte that the reader will refuse: nothing behind it matters. */
static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && !strchr("\t\r\n", text[i])) || !text[i] || text[i] == 127)
			return true;
	return false;
}

/* The end of the line that begins at `at`, behind its line feed; 0: it has not come yet. A line that may have no end
 * is cut short where the reader will refuse it. */
static size_t line_end(const Lines *l, size_t at)
{
	const char *end = memchr(l->text + at, '\n', l->len - at);
	if (end)
		return (size_t)(end - l->text) + 1;
	bool cut = l->ended || l->len - at > LONGEST || has_control(l->text + at, l->len - at);
	return cut && l->len > at ? l->len : 0;
}

/* Waits for the end of the line whose beginning is all that there is. Only what is new is searched: the time is in
 * proportion to the length of the line. */
static bool line_wait(Lines *l)
{
	size_t from;
	do {
		from = l->len;
		if (!lines_read(l))
			return l->ended && l->len > l->next;
	} while (l->len - l->next <= LONGEST && !memchr(l->text + from, '\n', l->len - from) &&
	         !has_control(l->text + from, l->len - from));
	return true;
}

static size_t blanks(const char *line, size_t len)
{
	size_t i = 0;
	while (i < len && line[i] && strchr(" \t\r\n", line[i]))
		i++;
	return i;
}

/* A line that ends a sequence. */
static bool is_end(const Lines *l, const char *line, size_t len)
{
	static const char word[] = "sequence";
	size_t i = blanks(line, len), n = sizeof word - 1;
	return l->sequences && (i == len || (len - i >= n && memcmp(line + i, word, n) == 0 &&
	                                     blanks(line + i + n, len - i - n) == len - i - n));
}

static bool is_case(const Lines *l, const char *line, size_t len)
{
	size_t i = blanks(line, len);
	return (i < len && line[i] != '#' && !is_end(l, line, len)) ||
	       has_control(line, len); /* for the reader to refuse */
}

bool lines_open(Lines *l)
{
	struct stat st;
	*l = (Lines){ .fd = -1, .file = -1 };
	if (fstat(STDIN_FILENO, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return false;
	if (S_ISCHR(st.st_mode) && !isatty(STDIN_FILENO))
		return false;
	l->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	size_t at = 0, end;
	for (;;) {
		while ((end = l->len ? line_end(l, at) : 0) && !is_case(l, l->text + at, end - at)) {
			at = end;
			l->line++;
		}
		if (end || l->ended || (!lines_read(l) && !l->ended) || l->len > MOST_AT_ONCE)
			break;
	}
	if (!end && l->ended && l->len > at)
		end = l->len;
	l->head = at;
	l->head_end = l->next = end ? end : l->len;
	return end > at;
}

/* Everything becomes standard input, for data that is read as a whole. */
int lines_whole(Lines *l)
{
	int rc = EXIT_DONE;
	if (l->fd >= 0 && dup2(l->fd, STDIN_FILENO) >= 0)
		rc = input_spool(l->text, l->len);
	lines_close(l);
	return rc;
}

/* Blanks instead of other separators: a line of numbers alone could be the header of a table. */
static void separate(char *text, size_t len)
{
	for (; len; text++, len--)
		if (*text == ',' || *text == ';' || *text == '\t')
			*text = ' ';
}

static bool put(Lines *l, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(l->file, text, len);
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

/* Lines that have come, up to *end; 0 of them are cases: none yet. */
static size_t lines_ready(const Lines *l, size_t *end)
{
	size_t cases = 0, next;
	*end = l->next;
	while (*end < l->len && *end - l->next < MOST_AT_ONCE && (next = line_end(l, *end))) {
		if (cases && is_end(l, l->text + *end, next - *end))
			break;
		cases += is_case(l, l->text + *end, next - *end);
		*end = next;
	}
	return cases;
}

/* Lines before `end` that are no cases are left behind. */
static void lines_skip(Lines *l, size_t end)
{
	for (size_t next; l->next < end && (next = line_end(l, l->next)) && !is_case(l, l->text + l->next, next - l->next);
	     l->next = next) {
		l->begins |= is_end(l, l->text + l->next, next - l->next);
		l->line++;
	}
}

/* In memory where the system can do that. */
static int unnamed_file(void)
{
#ifdef MFD_CLOEXEC
	return memfd_create("lines", MFD_CLOEXEC);
#else
	char path[60];
	snprintf(path, sizeof path, "/tmp/microprop-lines-%ld", (long)getpid());
	int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file >= 0)
		unlink(path);
	return file;
#endif
}

bool lines_next(Lines *l, bool header)
{
	size_t end;
	if (!header && l->head_end != l->head) /* the first line is a case */
		l->head_end = l->next = l->head;
	else if (!l->first)
		l->line++;
	l->begins = false;
	while (!lines_ready(l, &end)) {
		lines_skip(l, end);
		memmove(l->text + l->head_end, l->text + end, l->len - end);
		l->len -= end - l->head_end;
		l->next = l->head_end;
		if (l->ended || !line_wait(l))
			return false;
	}
	lines_skip(l, end);
	l->first = l->line + 1;
	bool good = (l->file = unnamed_file()) >= 0;
	if (header)
		good = good && put(l, l->text + l->head, l->head_end - l->head);
	else
		separate(l->text + l->next, end - l->next);
	for (size_t at = l->next, next; good && at < end; at = next) {
		next = line_end(l, at);
		l->line++;
		if (is_case(l, l->text + at, next - at))
			good = put(l, l->text + at, next - at);
	}
	good = good && dup2(l->file, STDIN_FILENO) >= 0 && lseek(STDIN_FILENO, 0, SEEK_SET) == 0;
	if (l->file >= 0)
		close(l->file);
	memmove(l->text + l->head_end, l->text + end, l->len - end);
	l->len -= end - l->head_end;
	l->next = l->head_end;
	return good;
}

void lines_close(Lines *l)
{
	free(l->text);
	if (l->fd >= 0)
		close(l->fd);
	*l = (Lines){ .fd = -1, .file = -1 };
}
