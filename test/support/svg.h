/* SPDX-License-Identifier: MIT */
/* Checks an SVG as a reader sees it: every text lies on the canvas, no two overlap, bytes are UTF-8 without control
 * characters.  Widths are estimated: 0.6 em a character, more than Helvetica takes on average, and 0.35 em for the
 * narrow ones of numbers. */
#ifndef SVG_H
#define SVG_H

#include <stdlib.h>

#include "test.h"

#include "plot.h"

typedef struct SvgStyle {
	double size;
	char anchor; /* 's'tart, 'm'iddle, 'e'nd */
} SvgStyle;
typedef struct SvgBox {
	double left, top, right, bottom;
	char text[64];
} SvgBox;

/* The value of an attribute of the tag at p, or NULL. */
static inline const char *svg_attribute(const char *p, const char *name)
{
	const char *end = strchr(p, '>');
	char key[40];
	snprintf(key, sizeof key, " %s=\"", name);
	const char *at = strstr(p, key);
	return at && at < end ? at + strlen(key) : NULL;
}

static inline SvgStyle svg_style(const char *tag, SvgStyle from)
{
	const char *size = svg_attribute(tag, "font-size"), *anchor = svg_attribute(tag, "text-anchor");
	return (SvgStyle){ size ? atof(size) : from.size, anchor ? *anchor : from.anchor };
}

static inline SvgBox svg_box(const char *tag, SvgStyle style)
{
	SvgBox b = { 0 };
	const char *text = strchr(tag, '>') + 1, *end = strstr(text, "</text>"),
			   *transform = svg_attribute(tag, "transform");
	size_t bytes = (size_t)(end - text);
	double length = 0;
	for (const char *c = text; c < end; c++) {
		length += (*c & 0xC0) == 0x80 ? 0 : strchr(",.- ", *c) ? 0.35 : 0.6;
		if (*c == '&')
			c = strchr(c, ';');
	}
	double x, y, width = length * style.size, up = 0.75 * style.size;
	double before = style.anchor == 's' ? 0 : style.anchor == 'm' ? width / 2 : width;
	snprintf(b.text, sizeof b.text, "%.*s", (int)bytes, text);
	if (transform) { /* by -90 degrees: reads upwards */
		assert_int_equal(sscanf(transform, "translate(%lf %lf) rotate(-90)", &x, &y), 2);
		b.left = x - up, b.right = x, b.top = y - (width - before), b.bottom = y + before;
	} else {
		x = atof(svg_attribute(tag, "x")), y = atof(svg_attribute(tag, "y"));
		b.left = x - before, b.right = x - before + width, b.top = y - up, b.bottom = y;
	}
	return b;
}

static inline uint32_t svg_check(const Buf *svg)
{
	enum { MOST = 4000 };
	SvgBox *box = calloc(MOST, sizeof *box);
	SvgStyle stack[8] = { { 13, 's' } };
	double width = atof(svg_attribute(svg->s, "width")), height = atof(svg_attribute(svg->s, "height"));
	uint32_t count = 0, depth = 0, wrong = 0;
	for (size_t i = 0, step; i < svg->len; i += step) {
		uint32_t c;
		step = utf8_read(svg->s + i, svg->len - i, &c);
		assert_true(step && (c >= ' ' || c == '\n'));
	}
	for (const char *p = svg->s; (p = strchr(p, '<')); p++) {
		if (!strncmp(p, "<g", 2) && (p[2] == ' ' || p[2] == '>')) {
			stack[depth + 1] = svg_style(p, stack[depth]);
			depth++;
		} else if (!strncmp(p, "</g>", 4)) {
			depth--;
		} else if (!strncmp(p, "<text", 5)) {
			assert_true(count < MOST);
			box[count++] = svg_box(p, svg_style(p, stack[depth]));
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		const SvgBox *a = &box[i];
		if (a->left < 0 || a->top < 0 || a->right > width || a->bottom > height) {
			print_error("'%s' leaves the canvas: %.0f %.0f %.0f %.0f of %.0f x %.0f\n", a->text, a->left, a->top,
			            a->right, a->bottom, width, height);
			wrong++;
		}
		for (uint32_t k = 0; k < i; k++) {
			const SvgBox *b = &box[k];
			if (a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom) {
				print_error("'%s' overlaps '%s'\n", a->text, b->text);
				wrong++;
			}
		}
	}
	free(box);
	assert_int_equal(depth, 0);
	assert_int_equal(wrong, 0);
	return count;
}

#endif
