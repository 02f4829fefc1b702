/* SPDX-License-Identifier: MIT */
/* Files of weights of LENS (.wt), binary or text.  In: the file and the network it belongs to.  Out: the weights.
 *
 * Binary, big-endian: 0x55555556, links, values of a link (1 to 3), updates; then floats, the weight first of those of
 * a link.  Older: 0x55555555, links, bytes of a link.  Text: the same numbers in decimal; older: [-values] links.
 * Nothing names the links: their order is that in which the script makes them. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lens_net.h"

enum { NEWER = 0x55555556, OLDER = 0x55555555 };

typedef struct Weights {
	Ctx *cx;
	const Src *src;
	Cursor c;
	bool text;
	size_t at;        /* binary */
	uint64_t links;   /* that the file counts */
	uint32_t values;  /* of a link */
	uint64_t counted; /* so far */
	double *w;
	const Net *net;
} Weights;

static uint32_t word_at(const Weights *k, size_t at)
{
	const unsigned char *p = (const unsigned char *)k->src->text + at;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static double next_value(Weights *k)
{
	if (k->text) {
		cursor_peek(&k->c);
		Loc at = cursor_loc(&k->c);
		double w = cursor_need_number(&k->c, "a weight");
		if (fabs(w) > (double)FLT_MAX)
			fail_at(k->cx, at, "weights are single-precision numbers", "a weight of %g is too large", w);
		return w;
	}
	uint32_t bits = word_at(k, k->at);
	float v;
	memcpy(&v, &bits, sizeof v);
	if (!isfinite(v))
		fail_at(k->cx, (Loc){ k->src, k->at }, "take a file of weights that are finite", "a weight is not a number");
	k->at += 4;
	return (double)v;
}

static void open_binary(Weights *k)
{
	uint32_t magic = word_at(k, 0), header = magic == NEWER ? 16 : 12;
	uint32_t values = k->src->len >= 16 ? word_at(k, 8) : 0;
	k->links = k->src->len >= 8 ? word_at(k, 4) : 0;
	k->values = magic == NEWER ? values : values / 4;
	k->at = header;
	if (k->src->len < header || k->values < 1 || k->values > 3)
		fail_at(k->cx, (Loc){ k->src, 0 }, "check that the file is complete", "the header of the weights cannot be");
	if ((k->src->len - header) / (4 * k->values) != k->links || (k->src->len - header) % (4 * k->values))
		fail_at(k->cx, (Loc){ k->src, 4 }, "check that the file is complete",
		        "%" PRIu64 " links are counted, but %zu bytes follow", k->links, k->src->len - header);
}

static void open_text(Weights *k)
{
	k->text = true;
	k->c = cursor_open(k->cx, k->src, '#');
	k->values = 1;
	uint64_t first;
	if (cursor_take(&k->c, '-')) {
		k->values = (uint32_t)cursor_need_whole(&k->c, "the number of values of a link", 1, 3);
		first = cursor_need_whole(&k->c, "the number of links", 1, MAX_LINKS);
	} else {
		first = cursor_need_whole(&k->c, "the number of links", 1, UINT32_MAX);
	}
	k->links = first;
	if (first == NEWER || first == OLDER) {
		k->links = cursor_need_whole(&k->c, "the number of links", 1, MAX_LINKS);
		uint64_t values = cursor_need_whole(&k->c, "the number of values of a link", 1, 12);
		k->values = (uint32_t)(first == OLDER ? values / 4 : values);
		if (k->values < 1 || k->values > 3)
			fail_at(k->cx, cursor_loc(&k->c), "a link has 1 to 3", "a link cannot have %" PRIu64 " values", values);
		if (first == NEWER)
			cursor_need_whole(&k->c, "the number of updates", 0, UINT64_MAX / 2);
	}
}

static void count_link(void *arg, uint64_t link)
{
	Weights *k = arg;
	(void)link;
	k->counted++;
}

static void take_link(void *arg, uint64_t link)
{
	Weights *k = arg;
	double w = next_value(k);
	for (uint32_t i = 1; i < k->values; i++)
		next_value(k);
	if (link < k->net->links)
		k->w[link] = w;
}

void lens_weights(const LensNet *n, Net *net, const char *path)
{
	Ctx *cx = n->o->cx;
	Weights k = { .cx = cx, .src = src_open(cx, &cx->keep, path), .net = net };
	bool binary = k.src->len >= 4 && (word_at(&k, 0) == NEWER || word_at(&k, 0) == OLDER);
	if (binary) {
		Src *own = NEW(&cx->keep, 1, Src);
		*own = *k.src;
		own->binary = true;
		k.src = own;
		open_binary(&k);
	} else {
		open_text(&k);
	}
	lens_each_link(n, net, count_link, &k);
	if (k.counted != k.links)
		fail_at(cx, (Loc){ k.src, 0 }, "take the script that the weights were trained with",
		        "the file has %" PRIu64 " links, the network of %s %" PRIu64, k.links, n->o->src->name, k.counted);
	k.w = NEW(&cx->keep, net->links, double);
	lens_each_link(n, net, take_link, &k);
	if (k.text && cursor_peek(&k.c))
		cursor_expected(&k.c, "the end of the file", "one line for each link");
	net->weights = k.w;
}
