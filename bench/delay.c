/* SPDX-License-Identifier: MIT */
/* A switch with long wires: frames received on one port leave on another after a delay in microseconds.
 * bench/cluster starts it where the kernel has no netem.
 *
 *   delay MICROSECONDS PORT...
 *
 * Ports are TAP devices of these names, which it makes; the script that starts it moves them into network
 * namespaces. It says "ready" when they are there, and ends with its standard input. Frames wait in one queue: the
 * wait is the same for all, so they leave as they came. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PORTS = 64, MOST_FRAMES = 1 << 15, FRAME = 2048, ADDRESS = 6 };

typedef struct Frame {
	uint64_t due;
	uint32_t port;
	uint32_t bytes;
	uint8_t body[FRAME];
} Frame;

static Frame queue[MOST_FRAMES]; /* a ring: taken .. come - 1 wait */
static uint64_t come, taken, lost;
static struct pollfd port[MOST_PORTS + 1];
static uint8_t address[MOST_PORTS][ADDRESS]; /* who was last heard there */
static uint32_t ports;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int tap_open(const char *name)
{
	struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &r) < 0) {
		fprintf(stderr, "delay: cannot make %s: %s\n", name, strerror(errno));
		exit(1);
	}
	return fd;
}

static void frames_in(uint32_t from, uint64_t wait)
{
	for (;;) {
		Frame *f = &queue[come % MOST_FRAMES];
		ssize_t n = read(port[from].fd, f->body, sizeof f->body);
		if (n < 2 * ADDRESS)
			return;
		if (come - taken == MOST_FRAMES - 1) {
			lost++;
			continue;
		}
		f->due = now() + wait;
		f->port = from;
		f->bytes = (uint32_t)n;
		memcpy(address[from], f->body + ADDRESS, ADDRESS);
		come++;
	}
}

/* To the port where its receiver was heard; to all others if that is not known. */
static void frame_out(const Frame *f)
{
	uint32_t to = 0;

	while (to < ports && memcmp(address[to], f->body, ADDRESS) != 0)
		to++;
	for (uint32_t i = 0; i < ports; i++)
		if (i != f->port && (to == ports || to == i))
			lost += write(port[i].fd, f->body, f->bytes) != (ssize_t)f->bytes;
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc - 2 > MOST_PORTS) {
		fputs("delay MICROSECONDS PORT...\n", stderr);
		return 2;
	}
	uint64_t wait = (uint64_t)(1000 * strtod(argv[1], NULL));
	ports = (uint32_t)argc - 2;
	for (uint32_t i = 0; i < ports; i++)
		port[i] = (struct pollfd){ .fd = tap_open(argv[i + 2]), .events = POLLIN };
	port[ports] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	prctl(PR_SET_TIMERSLACK, 1);
	puts("ready");
	fflush(stdout);
	while (!(port[ports].revents & (POLLIN | POLLHUP))) {
		uint64_t at = now(), next = come > taken ? queue[taken % MOST_FRAMES].due : at + 1000000000u;
		uint64_t rest = next > at ? next - at : 0;
		ppoll(port, ports + 1,
		      &(struct timespec){ .tv_sec = (time_t)(rest / 1000000000u), .tv_nsec = (long)(rest % 1000000000u) },
		      NULL);
		for (uint32_t i = 0; i < ports; i++)
			if (port[i].revents & POLLIN)
				frames_in(i, wait);
		while (come > taken && queue[taken % MOST_FRAMES].due <= now())
			frame_out(&queue[taken++ % MOST_FRAMES]);
	}
	fprintf(stderr, "%llu frames, %llu lost\n", (unsigned long long)come, (unsigned long long)lost);
	return 0;
}
