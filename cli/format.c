/* SPDX-License-Identifier: MIT */
/* Numbers as people read them, with units, and what a terminal can show. */
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

Formatted format_count(uint64_t n)
{
	char digits[24];
	Formatted w;
	size_t len = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), out = 0;
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			w.s[out++] = ',';
		w.s[out++] = digits[i];
	}
	w.s[out] = '\0';
	return w;
}

Formatted format_things(uint64_t n, const char *thing)
{
	Formatted w = format_count(n);
	size_t len = strlen(w.s);
	snprintf(w.s + len, sizeof w.s - len, " %s%s", thing, n == 1 ? "" : "s");
	return w;
}

Formatted format_real(double v)
{
	Formatted w;
	if (v >= 10000 && v < 1e15)
		return format_count((uint64_t)(v + 0.5));
	if (isnan(v))
		snprintf(w.s, sizeof w.s, "-");
	else
		snprintf(w.s, sizeof w.s, "%.4g", v);
	return w;
}

Formatted format_share(double v)
{
	Formatted w;
	double percent = v < 1 ? fmin(v * 100, 99.9) : 100; /* 100.0 % is said only of all */
	if (isnan(v))
		snprintf(w.s, sizeof w.s, "-");
	else
		snprintf(w.s, sizeof w.s, "%.1f %%", percent);
	return w;
}

Formatted format_time(double seconds)
{
	Formatted w;
	uint64_t whole = seconds > 0 && seconds < 1e15 ? (uint64_t)(seconds + 0.5) : 0;
	unsigned long long m = whole / 60, h = whole / 3600;
	if (!isfinite(seconds))
		snprintf(w.s, sizeof w.s, "-");
	else if (seconds < 1)
		snprintf(w.s, sizeof w.s, "%.3g ms", seconds * 1000);
	else if (seconds < 60)
		snprintf(w.s, sizeof w.s, "%.3g s", seconds);
	else if (m < 60)
		snprintf(w.s, sizeof w.s, "%llu min %02llu s", m, (unsigned long long)whole % 60);
	else
		snprintf(w.s, sizeof w.s, "%llu h %02llu min", h, m % 60);
	return w;
}

Formatted format_bytes(uint64_t n)
{
	static const char *const unit[] = { "bytes", "kB", "MB", "GB", "TB" };
	Formatted w;
	double v = (double)n;
	size_t u = 0;
	while (v >= 1000 && u + 1 < COUNT(unit)) {
		v /= 1000;
		u++;
	}
	snprintf(w.s, sizeof w.s, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
	return w;
}

void csv_put(FILE *f, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	for (; *text; text++)
		fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', f);
}

bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n >= m && !strcasecmp(name + n - m, end);
}

void text_append(void *text_out, const char *text, size_t len)
{
	TextOut *t = text_out;
	char *longer = realloc(t->text, t->len + len + 1);
	if (!longer)
		return;
	memcpy(longer + t->len, text, len);
	t->text = longer;
	t->len += len;
	t->text[t->len] = '\0';
}

Screen screen_of(int fd)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size = { 0 };
	/* Open MPI makes terminals of its own */
	Screen s = { .terminal = isatty(fd) && !getenv("OMPI_COMM_WORLD_SIZE"), .columns = 80 };
	s.moves = s.terminal && term && strcmp(term, "dumb");
	s.colour = s.moves && !(no_colour && *no_colour);
	s.unicode = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (s.terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		s.columns = size.ws_col;
	return s;
}
