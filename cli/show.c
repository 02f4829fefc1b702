/* SPDX-License-Identifier: MIT */
/* Text for people.  In: a format of ours and its arguments.  Out: the text on a stream, in which every %s argument is
 * escaped: names come from files, words from the command line, and a terminal obeys what it is sent.  Nothing else in
 * cli prints to stdout or stderr what it did not make itself; test/check/layers looks for such calls.
 *
 * Of printf it has %s %c %d %u %x %g %f %%, flags, width, precision, * and ll. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "microprop/text.h"

enum { MAX_ESCAPED = 4 * 1024 + 40 }; /* mp_text_write cuts texts of more than 1,024 bytes */

typedef struct Escaped {
	size_t len;
	char s[MAX_ESCAPED + 1];
} Escaped;

static void collect(void *user, const char *text, size_t len)
{
	Escaped *e = user;
	len = len < MAX_ESCAPED - e->len ? len : MAX_ESCAPED - e->len;
	memcpy(e->s + e->len, text, len);
	e->len += len;
}

/* A conversion: %-12.3llu. */
typedef struct Spec {
	char flags[8];
	int width, precision; /* -1: not given */
	bool wide;            /* ll */
	char type;
} Spec;

static const char *number_take(const char *p, int *value, va_list *ap)
{
	if (*p == '*') {
		*value = va_arg(*ap, int);
		return p + 1;
	}
	char *end;
	*value = (int)strtol(p, &end, 10);
	return end;
}

/* p: after the percent sign. */
static const char *spec_take(const char *p, Spec *s, va_list *ap)
{
	size_t n = strspn(p, "-+ 0#");
	*s = (Spec){ .precision = -1 };
	memcpy(s->flags, p, n < sizeof s->flags ? n : sizeof s->flags - 1);
	p = number_take(p + n, &s->width, ap);
	if (*p == '.')
		p = number_take(p + 1, &s->precision, ap);
	s->wide = strncmp(p, "ll", 2) == 0;
	p += s->wide ? 2 : 0;
	s->type = *p;
	return p + 1;
}

static void text_show(FILE *f, const Spec *s, const char *text)
{
	Escaped e;
	e.len = 0;
	mp_text_write(text, s->precision >= 0 ? strnlen(text, (size_t)s->precision) : strlen(text), MP_TEXT_SHOWN, collect,
	              &e);
	e.s[e.len] = '\0';
	fprintf(f, strchr(s->flags, '-') ? "%-*s" : "%*s", s->width, e.s);
}

static void number_show(FILE *f, const Spec *s, va_list *ap)
{
	char format[24];
	snprintf(format, sizeof format, "%%%s*.*%s%c", s->flags, s->wide ? "ll" : "", s->type);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (strchr("fgFGeE", s->type))
		fprintf(f, format, s->width, s->precision, va_arg(*ap, double));
	else if (s->wide)
		fprintf(f, format, s->width, s->precision, va_arg(*ap, unsigned long long));
	else
		fprintf(f, format, s->width, s->precision, va_arg(*ap, unsigned));
#pragma GCC diagnostic pop
}

void vshow(FILE *f, const char *fmt, va_list arguments)
{
	va_list ap;
	va_copy(ap, arguments);
	while (*fmt) {
		size_t plain = strcspn(fmt, "%");
		Spec s;
		fwrite(fmt, 1, plain, f);
		fmt += plain;
		if (!*fmt)
			break;
		fmt = spec_take(fmt + 1, &s, &ap);
		if (s.type == '%')
			fputc('%', f);
		else if (s.type == 'c')
			fputc(va_arg(ap, int), f);
		else if (s.type == 's')
			text_show(f, &s, va_arg(ap, const char *));
		else
			number_show(f, &s, &ap);
	}
	va_end(ap);
}

void show(FILE *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vshow(f, fmt, ap);
	va_end(ap);
}

static void pass(void *user, const char *text, size_t len) { fwrite(text, 1, len, user); }

void show_lines(void *stream, const char *text, size_t len) { mp_text_write(text, len, MP_TEXT_LINES, pass, stream); }

void show_json(FILE *f, const char *text)
{
	fputc('"', f);
	mp_text_write(text, strlen(text), MP_TEXT_JSON, pass, f);
	fputc('"', f);
}
