/* SPDX-License-Identifier: MIT */
/* Formats of exported networks: one table.  In: a Model and a path.  Out: its file, or a sentence why the format cannot
 * express the network. */
#include <stdio.h>
#include <string.h>

#include "export.h"

static const struct {
	const char *name, *ending;
	void (*write)(const Writing *w);
} formats[] = {
	{ "onnx", ".onnx", onnx_write },
	{ "c", ".c", c_write },
	{ "js", ".js", js_write },
	{ "npz", ".npz", arrays_write },
};

static bool ends(const char *path, const char *ending)
{
	size_t n = strlen(path), k = strlen(ending);
	return n > k && strcmp(path + n - k, ending) == 0;
}

static size_t format_at(const char *name, const char *path)
{
	size_t i = 0;
	while (i < COUNT(formats) && (name ? strcmp(formats[i].name, name) != 0 : !ends(path, formats[i].ending)))
		i++;
	return i;
}

void text_file(Ctx *cx, const char *path, const Buf *text)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	file_write(f, text->s, text->len);
	file_commit(cx, f);
}

const char *identifier(Arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name);
	Buf b = { .arena = a };
	if (len == 0 || (name[0] >= '0' && name[0] <= '9'))
		buf_puts(&b, "net_");
	for (size_t i = 0; i < len && i < 60; i++) {
		char c = name[i];
		bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		buf_add(&b, fits ? &c : "_", 1);
	}
	return b.s;
}

bool export_is(const char *path) { return format_at(NULL, path) < COUNT(formats); }

void export_write(Ctx *cx, Model *m, const char *path, ExportOptions *o)
{
	size_t i = format_at(o->format, path);
	if (i == COUNT(formats) && o->format)
		fail(cx, MP_BAD_INPUT, "the formats are onnx, c, js, npz", "there is no format '%.40s' to export to",
		     o->format);
	if (i == COUNT(formats))
		fail(cx, MP_BAD_INPUT, "end it in .onnx, .c, .js or .npz, or name one with --format",
		     "the name %s does not tell a format", path);
	if (o->plain && formats[i].write != onnx_write)
		fail(cx, MP_BAD_INPUT, "leave --plain out", "--plain is for ONNX, not for %s", formats[i].name);
	if (o->calibration && formats[i].write != c_write)
		fail(cx, MP_BAD_INPUT, "export OUT.c, or leave --int8 out", "8-bit weights are written as C only, not as %s",
		     formats[i].name);
	net_refuse_gain(cx, m->net, formats[i].name);
	m->name = identifier(&cx->scratch, path);
	o->format_used = formats[i].name;
	const Columns *columns = columns_make(cx, m);
	m->columns = columns->count;
	formats[i].write(&(Writing){ .cx = cx, .m = m, .columns = columns, .path = path, .o = o });
}
