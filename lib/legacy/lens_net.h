/* SPDX-License-Identifier: MIT */
/* A network script of LENS between tcl.c, which reads its commands, and lens.c, which writes a topology.
 * A header of its own: its types concern these files only. */
#ifndef LENS_NET_H
#define LENS_NET_H

#include "legacy.h"

enum {
	LENS_IS_INPUT = 1,
	LENS_IS_OUTPUT = 2,
	LENS_IS_ELMAN = 4,
	LENS_BIASED = 8,
	LENS_IN_INTEGR = 16,
	LENS_OUT_INTEGR = 32,
	LENS_IN_NOISE = 64,
	LENS_OUT_NOISE = 128
};
#define LENS_BIAS UINT32_MAX /* the bias group, as the source of links */

typedef struct LensSettings { /* of a group, or of all that state none; NaN: not stated */
	double gain, error_scale, crit, target_radius, zero_radius, decay, rate, noise;
} LensSettings;

typedef struct LensGroupDef {
	const char *name; /* as the topology has it */
	uint32_t size;
	unsigned flags, removed; /* LENS_... */
	int fn, error;           /* FN_..., ERR_...; -1: the default */
	double start;            /* initOutput; NaN: the default */
	double dt;               /* dtScale; NaN: 1 */
	LensSettings set;
	uint32_t source; /* of a context group; LENS_BIAS: none yet */
	bool biased;
	bool back; /* some projection carries what it was an event before */
	Loc at;
} LensGroupDef;

typedef struct LensLinks { /* a projection */
	uint32_t from, to;
	int kind; /* LINK_FULL, LINK_ONE_TO_ONE, LINK_RANDOM */
	double strength, mean, range;
	bool frozen;
	Loc at;
} LensLinks;

typedef struct LensNet {
	const Old *o;
	LensGroupDef *group;
	uint32_t groups;
	uint64_t group_cap;
	LensLinks *link; /* in the order in which they are made, as weights are saved */
	uint64_t links, link_cap;
	bool made, continuous;
	Loc net_at;
	uint64_t intervals, ticks;
	const char *rule;
	double rate, momentum, decay, rand_range, rand_mean, dt;
	LensSettings set;
	uint64_t batch, updates, seed, bptt;
	Loc bptt_at;
	bool shuffle;
	const char *data[2]; /* examples to train and to test on; NULL: none */
} LensNet;

/* lens.c */
LensGroupDef *lens_group(LensNet *n, Text name); /* NULL: no such */
LensGroupDef *lens_add_group(LensNet *n, Text name, uint32_t size, Loc at);
void lens_type(LensNet *n, LensGroupDef *g, Text word, Loc at);
void lens_finish_group(LensNet *n, LensGroupDef *g); /* all its types are known */
LensLinks *lens_links(LensNet *n, uint32_t from, uint32_t to, Loc at);
/* Calls fn with every link of the network in the order of LENS's files of weights. */
typedef void LensLinkFn(void *arg, uint64_t link);
void lens_each_link(const LensNet *n, const Net *net, LensLinkFn *fn, void *arg);

/* tcl.c */
void lens_script(LensNet *n);

/* lens_wt.c */
void lens_weights(const LensNet *n, Net *net, const char *path);

#endif
