/* SPDX-License-Identifier: MIT */
/* The table of formats.  In: a file.  Out: a network with the weights that the file holds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "legacy.h"

typedef struct OldFormat {
	const char *name;
	bool (*looks)(const Src *src);
	Net *(*read)(const Old *o);
	void (*write)(Ctx *cx, const Net *net, const double *w, const char *path); /* NULL: it is only read */
	bool apart;                                                                /* weights are in a file of their own */
} OldFormat;

static const OldFormat formats[] = {
	{ "onnx", onnx_looks, onnx_read, NULL, false },       { "snns", snns_looks, snns_read, snns_write, false },
	{ "fann", fann_looks, fann_read, fann_write, false }, { "lens", lens_looks, lens_read, NULL, true },
	{ "tlearn", tlearn_looks, tlearn_read, NULL, true },
};

static const OldFormat *format_named(Ctx *cx, const char *name, bool write)
{
	Buf list = { .arena = &cx->scratch };
	buf_puts(&list, "the formats are");
	for (size_t i = 0, n = 0; i < COUNT(formats); i++) {
		if (write && !formats[i].write)
			continue;
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
		buf_printf(&list, "%s %s", n++ ? "," : "", formats[i].name);
	}
	fail(cx, MP_BAD_INPUT, list.s, "there is no format '%.40s' of networks to %s", name, write ? "write" : "read");
}

static const OldFormat *format_of(const Src *src)
{
	for (size_t i = 0; i < COUNT(formats); i++)
		if (formats[i].looks(src))
			return &formats[i];
	return NULL;
}

bool old_looks(const Src *src) { return format_of(src) != NULL; }

Net *old_read(Ctx *cx, const Src *src, const OldOptions *opt)
{
	static const OldOptions none;
	Old o = { .cx = cx, .src = src, .opt = opt ? opt : &none };
	const OldFormat *f = o.opt->format ? format_named(cx, o.opt->format, false) : format_of(src);
	if (!f)
		fail_at(
			cx, (Loc){ src, 0 },
			"networks of SNNS (.net), FANN (.net), LENS (.in), tlearn (.cf) and ONNX are read; say which with --format",
			"this is not a network of an older simulator");
	if (o.opt->weights && !f->apart)
		fail(cx, MP_BAD_INPUT, "leave it out", "%s holds its own weights: %s cannot be read with it", src->name,
		     o.opt->weights);
	return f->read(&o);
}

void old_write(Ctx *cx, const Net *net, const double *w, const char *path, const char *format)
{
	if (!format)
		fail(cx, MP_BAD_INPUT, "say which with --to snns or --to fann",
		     "the name %s does not tell a format: .net is that of SNNS and of FANN", path);
	if (net->options.ticks > 1)
		fail(cx, MP_BAD_INPUT, "keep it as .safetensors", "a network that settles over ticks cannot be written as %s",
		     path);
	net_refuse_gain(cx, net, format);
	format_named(cx, format, true)->write(cx, net, w, path);
}

void old_lost(const Old *o, Loc at, const char *fmt, ...)
{
	Buf b = { .arena = &o->cx->scratch };
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	if (o->opt->lossy)
		note_at(o->cx, at, NULL, "left out: %s", b.s);
	else
		error_at(o->cx, at, "microprop import --lossy leaves it out", "%s", b.s);
}
