/* SPDX-License-Identifier: MIT */
/* legacy: networks of older simulators (SNNS, FANN, LENS, tlearn), read and written.
 *
 * A reader makes an OldNet, units and links with weights as the file has them, from which build.c makes the text of a
 * topology file and the weights; LENS describes groups, so its reader writes that text itself. */
#ifndef LEGACY_H
#define LEGACY_H

#include "data.h"

/* ---- legacy.c: formats by content ---------------------------------------------------------------- */

typedef struct OldOptions {
	const char *format;  /* "snns", "fann", "lens", "tlearn"; NULL: by content */
	bool lossy;          /* what cannot be carried over is left out, with a note */
	const char *weights; /* a file of weights beside it; NULL: none */
} OldOptions;

bool old_looks(const Src *src); /* the network of an older simulator */
/* The network, with its weights if the file has them.  opt may be NULL. */
Net *old_read(Ctx *cx, const Src *src, const OldOptions *opt);
/* Weights in canonical order; format NULL: by the name. */
void old_write(Ctx *cx, const Net *net, const double *w, const char *path, const char *format);

/* ---- inside the module ---------------------------------------------------------------------------- */

typedef struct Old { /* a file that is being read */
	Ctx *cx;
	const Src *src;
	const OldOptions *opt;
} Old;
/* Something that cannot be carried over: an error, or a note if the import may be lossy. */
void old_lost(const Old *o, Loc at, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- inside the module: build.c, units and links to a topology ---------------------------------- */

#define NO_UNIT UINT32_MAX
typedef struct OldUnit {
	int role; /* ROLE_...; inputs and outputs in the order of the data */
	int fn;   /* FN_...; of a context, of what it becomes at the next case */
	bool biased;
	double bias;  /* weight of the link from true, if biased */
	double start; /* context: value at the first case */
	Loc at;
	uint32_t level; /* build.c: longest path to it */
	uint32_t group; /* build.c, and its place in the group */
	uint32_t place;
} OldUnit;
typedef struct OldLink {
	uint32_t from, to;
	double weight;
	bool frozen;
	Loc at;
} OldLink;

typedef struct OldNet {
	OldUnit *unit;
	uint64_t units, unit_cap;
	OldLink *link; /* into contexts: from the case before */
	uint64_t links, link_cap;
	const char *title; /* comment lines of the topology */
	const char *train; /* statements below it; "" if none */
	const char *range; /* " weights LOW HIGH" of the links, where the file holds no weights: those of frozen links are
	                    * NaN if random; NULL: it does */
} OldNet;

Net *old_build(const Old *o, OldNet *n);
/* The text as a network; places in messages about it are those of the text. */
Net *old_parse(const Old *o, const char *text, size_t len);

/* ---- inside the module: onnx.c, message.c (message.h) -------------------------------------------- */

bool onnx_looks(const Src *src);
Net *onnx_read(const Old *o);

/* ---- inside the module: snns.c ------------------------------------------------------------------ */

bool snns_looks(const Src *src);
Net *snns_read(const Old *o);
void snns_write(Ctx *cx, const Net *net, const double *w, const char *path); /* snns_write.c */

/* ---- inside the module: fann.c ------------------------------------------------------------------ */

bool fann_looks(const Src *src);
Net *fann_read(const Old *o);
void fann_write(Ctx *cx, const Net *net, const double *w, const char *path);

/* ---- inside the module: lens.c, tcl.c, lens_wt.c (lens_net.h) ----------------------------------- */

bool lens_looks(const Src *src);
Net *lens_read(const Old *o);

/* ---- inside the module: tlearn.c ---------------------------------------------------------------- */

bool tlearn_looks(const Src *src);
Net *tlearn_read(const Old *o);

#endif
