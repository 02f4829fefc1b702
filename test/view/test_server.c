/* SPDX-License-Identifier: MIT */
/* The server of `microprop view`, from outside: what it refuses, and with which status. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static struct {
	pid_t pid;
	unsigned port;
	char token[33], cookie[100];
	char folder[40], metrics[60];
	char runs[40], added[60]; /* a folder of runs; one that test_added puts there */
} server;

static int dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                      .sin_port = htons((uint16_t)server.port),
		                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* The status of the answer, its text in `out`; 0: the connection was closed without one. */
static int answer(int fd, char *out, size_t size)
{
	size_t n = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	while (n < size - 1 && poll(&p, 1, 20000) == 1) {
		ssize_t k = recv(fd, out + n, size - 1 - n, 0);
		if (k <= 0)
			break;
		n += (size_t)k;
		out[n] = '\0';
		char *body = strstr(out, "\r\n\r\n"), *length = strstr(out, "Content-Length: ");
		if (body && length && n >= (size_t)(body + 4 - out) + strtoul(length + 16, NULL, 10))
			break;
	}
	out[n] = '\0';
	return !strncmp(out, "HTTP/1.1 ", 9) ? atoi(out + 9) : 0;
}

/* Headers end with \r\n each; NULL body: a GET. */
static int ask(const char *method, const char *path, const char *headers, const char *body, char *out, size_t size)
{
	static char request[20000];
	int fd = dial();
	int n = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\n%s", method, path, headers);
	if (!strstr(headers, "Host:"))
		n += snprintf(request + n, sizeof request - (size_t)n, "Host: 127.0.0.1:%u\r\n", server.port);
	if (body)
		n += snprintf(request + n, sizeof request - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
	n += snprintf(request + n, sizeof request - (size_t)n, "\r\n%s", body ? body : "");
	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	int status = answer(fd, out, size);
	close(fd);
	return status;
}

static int status_of(const char *method, const char *path, const char *headers, const char *body)
{
	static char out[100000];
	return ask(method, path, headers, body, out, sizeof out);
}

static const char *post_headers(const char *cookie)
{
	static char text[300];
	snprintf(text, sizeof text, "Origin: http://127.0.0.1:%u\r\nContent-Type: application/json\r\n%s", server.port,
	         cookie);
	return text;
}

/* Starts the program; what it prints on `output` has the address. The token buys the cookie. */
static void start(const char *const *words, int output)
{
	static char out[4000];
	char line[400] = "", body[80];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	server.pid = fork();
	if (!server.pid) {
		dup2(ends[1], output);
		close(ends[1]);
		execv(words[0], (char *const *)(uintptr_t)words);
		_exit(127);
	}
	close(ends[1]);
	FILE *f = fdopen(ends[0], "r");
	assert_non_null(fgets(line, sizeof line, f));
	char *address = strstr(line, "127.0.0.1:");
	assert_non_null(address);
	assert_int_equal(sscanf(address, "127.0.0.1:%u/#%32[0-9a-f]", &server.port, server.token), 2);
	fclose(f);
	snprintf(body, sizeof body, "{\"token\": \"%s\"}", server.token);
	assert_int_equal(ask("POST", "/api/session", post_headers(""), body, out, sizeof out), 200);
	char *cookie = strstr(out, "Set-Cookie: ");
	assert_non_null(cookie);
	assert_non_null(strstr(cookie, "; HttpOnly; SameSite=Strict; Path=/\r\n"));
	snprintf(server.cookie, sizeof server.cookie, "Cookie: %.*s\r\n", (int)strcspn(cookie + 12, ";"), cookie + 12);
}

static int setup(void **state)
{
	char line[400] = "";
	const char *program = getenv("MICROPROP"), *build = getenv("BUILD_DIR");
	snprintf(line, sizeof line, "%s/microprop-view.so", build ? build : ".");
	if (!program || access(line, R_OK))
		exit(77);
	snprintf(server.folder, sizeof server.folder, "/tmp/microprop-test-XXXXXX");
	assert_non_null(mkdtemp(server.folder));
	snprintf(server.runs, sizeof server.runs, "/tmp/microprop-test-XXXXXX");
	assert_non_null(mkdtemp(server.runs));
	snprintf(server.added, sizeof server.added, "%s/later", server.runs);
	snprintf(server.metrics, sizeof server.metrics, "%s/metrics.jsonl", server.folder);
	FILE *metrics = fopen(server.metrics, "w");
	assert_non_null(metrics);
	fputs("{\"epoch\": 1}\n{\"epoch\": 2}\n", metrics);
	fclose(metrics);
	start((const char *[]){ program, "view", server.folder, server.runs, "--json", *state, NULL }, STDOUT_FILENO);
	return 0;
}

static int setup_control(void **state)
{
	static char option[] = "--control";
	*state = option;
	return setup(state);
}

static void stream_text(const char *id, const char *until, char *out, size_t size)
{
	char request[400];
	int fd = dial();
	size_t n = 0;
	int len = snprintf(request, sizeof request, "GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s%s%s\r\n",
	                   server.port, server.cookie, id ? "Last-Event-ID: " : "", id ? id : "", id ? "\r\n" : "");
	assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	out[0] = '\0';
	while (!strstr(out, until) && n < size - 1 && poll(&p, 1, 20000) == 1) {
		ssize_t k = recv(fd, out + n, size - 1 - n, 0);
		if (k <= 0)
			break;
		n += (size_t)k;
		out[n] = '\0';
	}
	close(fd);
	assert_non_null(strstr(out, until));
}

static void line_write(const char *path, const char *mode, const char *line)
{
	FILE *f = fopen(path, mode);
	assert_non_null(f);
	fputs(line, f);
	fclose(f);
}

/* Lines of a run as they come; a page that comes back gets those that it does not have. */
static void test_events(void **state)
{
	static char out[10000];
	(void)state;
	stream_text(NULL, "data: 0 {\"epoch\": 2}", out, sizeof out);
	assert_non_null(strstr(out, "Content-Type: text/event-stream"));
	assert_non_null(strstr(out, "event: line\ndata: 0 {\"epoch\": 1}\n"));
	line_write(server.metrics, "a", "{\"epoch\": 3}\n{\"epoch\": 4"); /* the last one is not whole yet */
	stream_text("26", "data: 0 {\"epoch\": 3}", out, sizeof out);
	assert_null(strstr(out, "{\"epoch\": 1}"));
	assert_null(strstr(out, "{\"epoch\": 4"));
	stream_text("999999", "data: 0 {\"epoch\": 1}", out, sizeof out); /* it was cut: from the start */
	line_write(server.metrics, "w", "{\"epoch\": 1}\n{\"epoch\": 2}\n");
	assert_int_equal(ask("GET", "/api/metrics?run=0", server.cookie, NULL, out, sizeof out), 200);
	assert_non_null(strstr(out, "\r\n\r\n26\n{\"epoch\": 1}\n{\"epoch\": 2}\n"));
}

/* While a page listens, new runs are found by another thread than the one that answers. */
static void test_added(void **state)
{
	static char out[4000];
	char request[400], metrics[80];
	int fd = dial(), status = 404;
	(void)state;
	int len = snprintf(request, sizeof request, "GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n", server.port,
	                   server.cookie);
	assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
	assert_int_equal(ask("GET", "/api/metrics?run=1", server.cookie, NULL, out, sizeof out), 404);
	assert_int_equal(mkdir(server.added, 0777), 0);
	snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", server.added);
	line_write(metrics, "w", "{\"epoch\": 7}\n");
	for (int i = 0; i < 400 && status == 404; i++) {
		poll(NULL, 0, 50);
		status = ask("GET", "/api/metrics?run=1", server.cookie, NULL, out, sizeof out);
	}
	assert_int_equal(status, 200);
	assert_non_null(strstr(out, "{\"epoch\": 7}"));
	close(fd);
}

/* NETtalk is trained by one thread; another answers with the stages that it has kept. */
static void test_talk(void **state)
{
	static char out[100000];
	const char *words = "/api/talk/words?stage=1&text=cat";
	int status = 409;
	(void)state;
	assert_int_equal(status_of("GET", words, server.cookie, NULL), 409);
	assert_int_equal(status_of("POST", "/api/talk/train", post_headers(server.cookie), "{}"), 200);
	for (int i = 0; i < 400 && status == 409; i++) {
		assert_int_equal(status_of("GET", "/api/talk", server.cookie, NULL), 200);
		status = ask("GET", words, server.cookie, NULL, out, sizeof out);
		poll(NULL, 0, 50);
	}
	assert_int_equal(status, 200);
	assert_non_null(strstr(out, "\"letter\": \"c\""));
}

static int badly_stopped; /* cmocka does not count what a teardown returns; nor does it see a sanitizer's status */

static int teardown(void **state)
{
	static const char *const files[] = { "metrics.jsonl", "args.json", "last.safetensors", "best.safetensors", "pipe" };
	char path[80];
	int status = 0;
	char metrics[80];
	(void)state;
	kill(server.pid, SIGTERM);
	for (int tries = 0; !waitpid(server.pid, &status, WNOHANG); tries++) {
		if (tries == 400) /* it waits for something, for ever */
			kill(server.pid, SIGKILL);
		usleep(50000);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", server.folder, files[i]);
		unlink(path);
	}
	rmdir(server.folder);
	snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", server.added);
	unlink(metrics);
	rmdir(server.added);
	rmdir(server.runs);
	bool stopped = (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
	badly_stopped += !stopped;
	return !stopped;
}

static void test_page(void **state)
{
	static char out[300000];
	static const char *const headers[] = { "default-src 'none'; script-src 'self'",
		                                   "nosniff",
		                                   "no-referrer",
		                                   "Cross-Origin-Opener-Policy: same-origin",
		                                   "Cross-Origin-Resource-Policy: same-origin",
		                                   "ETag: \"" };
	(void)state;
	assert_int_equal(ask("GET", "/", "", NULL, out, sizeof out), 200);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		assert_non_null(strstr(out, headers[i]));
	char known[100];
	snprintf(known, sizeof known, "If-None-Match: %.34s\r\n", strstr(out, "ETag: ") + 6);
	assert_int_equal(status_of("GET", "/", known, NULL), 304);
	assert_int_equal(ask("GET", "/api/about", server.cookie, NULL, out, sizeof out), 200);
	assert_non_null(strstr(out, "Cache-Control: no-store"));
}

static void test_host(void **state)
{
	char ours[60];
	(void)state;
	snprintf(ours, sizeof ours, "Host: localhost:%u\r\n", server.port);
	assert_int_equal(status_of("GET", "/", ours, NULL), 200);
	assert_int_equal(status_of("GET", "/", "Host: evil.example\r\n", NULL), 421);
	assert_int_equal(status_of("GET", "/", "Host: 127.0.0.1\r\n", NULL), 421);
	assert_int_equal(status_of("GET", "/api/runs", "Host: evil.example\r\n", NULL), 421);
}

static void test_token(void **state)
{
	char wrong[100];
	(void)state;
	assert_int_equal(status_of("GET", "/api/runs", server.cookie, NULL), 200);
	assert_int_equal(status_of("GET", "/api/runs", "", NULL), 401);
	assert_int_equal(status_of("GET", "/api/events", "", NULL), 401);
	snprintf(wrong, sizeof wrong, "%s", server.cookie);
	wrong[strlen(wrong) - 3] ^= 1;
	assert_int_equal(status_of("GET", "/api/runs", wrong, NULL), 401);
	snprintf(wrong, sizeof wrong, "Cookie: microprop-%u=%s\r\n", server.port, server.token);
	assert_int_equal(status_of("GET", "/api/runs", wrong, NULL), 401);
	assert_int_equal(status_of("POST", "/api/session", post_headers(""), "{\"token\": \"0\"}"), 401);
	assert_int_equal(status_of("POST", "/api/session", post_headers(""), "{}"), 401);
	int many = 0;
	for (int i = 0; i < 40 && many != 429; i++)
		many = status_of("POST", "/api/session", post_headers(""), "{\"token\": \"0123\"}");
	assert_true(many == 429 || many == 401);
}

static void test_origin(void **state)
{
	static const char body[] = "{\"run\": 0, \"action\": \"stop\"}";
	char headers[300];
	(void)state;
	assert_int_equal(status_of("POST", "/api/control", post_headers(server.cookie), body), 403); /* no --control */
	snprintf(headers, sizeof headers, "Content-Type: application/json\r\n%s", server.cookie);
	assert_int_equal(status_of("POST", "/api/control", headers, body), 403);
	snprintf(headers, sizeof headers, "Origin: http://evil.example\r\nContent-Type: application/json\r\n%s",
	         server.cookie);
	assert_int_equal(status_of("POST", "/api/control", headers, body), 403);
	snprintf(headers, sizeof headers, "Origin: http://127.0.0.1:%u\r\nContent-Type: text/plain\r\n%s", server.port,
	         server.cookie);
	assert_int_equal(status_of("POST", "/api/control", headers, body), 415);
	snprintf(headers, sizeof headers, "Sec-Fetch-Site: cross-site\r\n%s", server.cookie);
	assert_int_equal(status_of("GET", "/api/runs", headers, NULL), 403);
}

static void test_paths(void **state)
{
	static const char *const bad[] = { "/../../etc/passwd",      "/%2e%2e/%2e%2e/etc/passwd",
		                               "/page/../../etc/passwd", "//etc/passwd",
		                               "/api/../etc/passwd",     "/api/metrics?run=../../x",
		                               "/api/metrics?run=-1",    "/api/nothing",
		                               "/index.html%00.js" };
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(status_of("GET", bad[i], server.cookie, NULL), 404);
	assert_int_equal(status_of("DELETE", "/", server.cookie, NULL), 405);
	assert_int_equal(status_of("POST", "/", post_headers(server.cookie), "{}"), 405);
}

static void test_large(void **state)
{
	static char body[9001], out[2000];
	(void)state;
	memset(body, ' ', sizeof body - 1);
	assert_int_equal(status_of("POST", "/api/session", post_headers(""), body), 413);
	char *header = malloc(1 << 20);
	assert_non_null(header);
	memset(header, 'x', 1 << 20);
	int n = snprintf(header, 100, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nX: ", server.port);
	header[n] = 'x';
	int fd = dial();
	size_t sent = 0;
	for (ssize_t k; sent < 1 << 20 && (k = send(fd, header + sent, (1 << 20) - sent, MSG_NOSIGNAL)) > 0;)
		sent += (size_t)k;
	int status = answer(fd, out, sizeof out); /* 0: reset before it was read */
	assert_true(status == 431 || status == 0);
	close(fd);
	free(header);
	snprintf(body, sizeof body, "X: ");
	memset(body + 3, 'y', 8200);
	memcpy(body + 8203, "\r\n", 3);
	assert_int_equal(status_of("GET", "/", body, NULL), 431);
	assert_int_equal(status_of("GET", "/", "", NULL), 200);
}

/* All are connected at the same time. */
static void clients(int count, int first)
{
	static char out[4000];
	int *fd = calloc((size_t)count, sizeof *fd), served = 0, refused = 0;
	char request[300];
	assert_non_null(fd);
	int n = snprintf(request, sizeof request, "GET /api/about HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n", server.port,
	                 server.cookie);
	for (int i = 0; i < count; i++) {
		fd[i] = dial();
		assert_int_equal(send(fd[i], request, (size_t)n, MSG_NOSIGNAL), n);
		int status = i < first ? answer(fd[i], out, sizeof out) : 0; /* it stays open */
		served += status == 200;
		refused += status == 503;
	}
	for (int i = first; i < count; i++) {
		int status = answer(fd[i], out, sizeof out);
		served += status == 200;
		refused += status == 503;
	}
	for (int i = 0; i < count; i++)
		shutdown(fd[i], SHUT_WR);
	for (int i = 0; i < count; i++) { /* until the server has seen that they are gone */
		while (recv(fd[i], out, sizeof out, 0) > 0)
			;
		close(fd[i]);
	}
	free(fd);
	assert_int_equal(served + refused, count);
	if (count <= 200)
		assert_int_equal(served, count);
	else
		assert_true(refused > 0);
}

static void test_clients(void **state)
{
	(void)state;
	clients(200, 200);
	clients(300, 256);
	assert_int_equal(status_of("GET", "/", "", NULL), 200);
}

/* A byte now and then: the whole request has ten seconds. */
static void test_slow(void **state)
{
	char c;
	(void)state;
	int fd = dial(), bytes = 0;
	assert_int_equal(send(fd, "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL), 19);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	while (bytes < 60 && poll(&p, 1, 500) == 0 && send(fd, "x", 1, MSG_NOSIGNAL) == 1)
		bytes++;
	assert_true(bytes >= 1 && bytes < 60); /* half a second each, or more on a busy machine */
	assert_true(recv(fd, &c, 1, 0) <= 0 || c == 'H');
	close(fd);
	assert_int_equal(status_of("GET", "/", "", NULL), 200);
}

/* ---- folders of unknown origin ---- */

static const char *in_folder(const char *name)
{
	static char path[80];
	snprintf(path, sizeof path, "%s/%s", server.folder, name);
	return path;
}

static void file_put(const char *name, const char *text, size_t len)
{
	FILE *f = fopen(in_folder(name), "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

/* Lines that train did not write would be other events to the page; a hole of a terabyte is not read. */
static void test_hostile_metrics(void **state)
{
	static const char lines[] = "{\"epoch\": 1}\n{\"epoch\": 2}\revent: runs\rdata: [1]\n{\"epoch\": 3}\0{}\n4\n"
								"{\"epoch\": 5}\n";
	static char out[10000];
	(void)state;
	file_put("metrics.jsonl", lines, sizeof lines - 1);
	stream_text("0", "data: 0 {\"epoch\": 5}", out, sizeof out);
	assert_null(strstr(out, "epoch\": 2"));
	assert_null(strstr(out, "epoch\": 3"));
	assert_null(strstr(out, "data: 0 4"));
	assert_int_equal(ask("GET", "/api/metrics?run=0", server.cookie, NULL, out, sizeof out), 200);
	assert_non_null(strstr(out, "\n{\"epoch\": 1}\n{\"epoch\": 5}\n"));
	assert_int_equal(truncate(server.metrics, (off_t)1 << 40), 0);
	assert_int_equal(ask("GET", "/api/metrics?run=0", server.cookie, NULL, out, sizeof out), 200);
	assert_non_null(strstr(out, "\r\n\r\n1099511627776\n"));
	line_write(server.metrics, "w", "{\"epoch\": 1}\n");
}

/* Arguments are those of a regular file of the folder itself, and no request waits for a pipe. */
static void test_hostile_files(void **state)
{
	static const char train[] = "{\"arguments\": [\"train\", \"no.topo\"]}";
	static const char resume[] = "{\"run\": 0, \"action\": \"resume\"}";
	char target[80];
	(void)state;
	assert_int_equal(mkfifo(in_folder("args.json"), 0600), 0);
	assert_int_equal(status_of("POST", "/api/control", post_headers(server.cookie), resume), 409);
	unlink(in_folder("args.json"));
	file_put("pipe", train, sizeof train - 1);
	snprintf(target, sizeof target, "%s", in_folder("pipe"));
	assert_int_equal(symlink(target, in_folder("args.json")), 0);
	assert_int_equal(status_of("POST", "/api/control", post_headers(server.cookie), resume), 409);
	unlink(in_folder("args.json"));
	unlink(target);
	assert_int_equal(mkfifo(in_folder("last.safetensors"), 0600), 0);
	assert_int_equal(status_of("GET", "/api/net?run=0", server.cookie, NULL), 404);
	unlink(in_folder("last.safetensors"));
}

/* Cases that came through a pipe are gone. */
static void test_hostile_data(void **state)
{
	static char out[20000];
	char command[400], args[200], pipe[80];
	(void)state;
	unlink(server.metrics);
	snprintf(command, sizeof command, "'%s' train example:xor --until never --epochs 2 --run %s --quiet >/dev/null",
	         getenv("MICROPROP"), server.folder);
	assert_int_equal(system(command), 0);
	snprintf(pipe, sizeof pipe, "%s", in_folder("pipe"));
	assert_int_equal(mkfifo(pipe, 0600), 0);
	const char *const names[] = { pipe, "/dev/fd/3", "/dev/stdin", "-", "/dev/zero" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int n = snprintf(args, sizeof args, "{\"data\": \"%s\"}", names[i]);
		file_put("args.json", args, (size_t)n);
		snprintf(command, sizeof command, "touch -d @%zu %s", 1000 + i, in_folder("last.safetensors"));
		assert_int_equal(system(command), 0); /* another checkpoint, for which data is opened again */
		assert_int_equal(ask("GET", "/api/net?run=0", server.cookie, NULL, out, sizeof out), 200);
		assert_non_null(strstr(out, "was a stream"));
	}
}

/* However many reports there are, the page gets a number that hardly grows. */
static void test_feed(void **state)
{
	static char out[2000000];
	unsigned long long size = 0, epoch = 0;
	(void)state;
	start((const char *[]){ getenv("MICROPROP"), "train", "example:xor", "--until", "never", "--epochs", "0", "--time",
	                        "300", "--report", "1", "--quiet", "--view", NULL },
	      STDERR_FILENO);
	for (int tries = 0; tries < 5600 && epoch < 200000; tries++) { /* some 20 s suffice, but not under qemu */
		usleep(50000);
		ask("GET", "/api/metrics?run=0", server.cookie, NULL, out, sizeof out);
		char *body = strstr(out, "\r\n\r\n"), *last = NULL;
		if (!body)
			break;
		size = strtoull(body + 4, NULL, 10);
		for (char *at = body; (at = strstr(at, "{\"epoch\": ")); at++)
			last = at;
		epoch = last ? strtoull(last + 10, NULL, 10) : 0;
	}
	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	assert_true(epoch >= 200000);
	assert_true(size < 60 * epoch); /* a line has more than 100 bytes */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),    cmocka_unit_test(test_host),  cmocka_unit_test(test_token),
		cmocka_unit_test(test_origin),  cmocka_unit_test(test_paths), cmocka_unit_test(test_large),
		cmocka_unit_test(test_events),  cmocka_unit_test(test_added), cmocka_unit_test(test_talk),
		cmocka_unit_test(test_clients), cmocka_unit_test(test_slow),
	};
	const struct CMUnitTest hostile[] = {
		cmocka_unit_test(test_hostile_metrics),
		cmocka_unit_test(test_hostile_files),
		cmocka_unit_test(test_hostile_data),
	};
	const struct CMUnitTest feed[] = { cmocka_unit_test(test_feed) };
	int failed = cmocka_run_group_tests(tests, setup, teardown);
	failed += cmocka_run_group_tests(hostile, setup_control, teardown);
	return failed + cmocka_run_group_tests(feed, NULL, NULL) + badly_stopped;
}
