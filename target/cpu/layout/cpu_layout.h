/* SPDX-License-Identifier: MIT */
/* Where units and weights are stored: parts of a row, panels of weights, lists of single links. */
#ifndef CPU_LAYOUT_H
#define CPU_LAYOUT_H

#include "kern.h"
#include "target.h"

/* ---- layout.c: where units and weights are ------------------------------------------------------ */

/* A recurrent network computes parts that lie on a way from a context back to its source step by step; what such parts
 * do not need is computed before, for all cases at once, and what nothing of them needs, after. */
enum { PHASE_BEFORE, PHASE_STEPPED, PHASE_AFTER };

/* Adjacent units of one group with the same sources. */
typedef struct Part {
	Unit first;
	uint32_t count;
	uint32_t col;   /* of its first unit; a multiple of LANES, as is the room that follows */
	uint32_t level; /* 0: not computed, but an input or a context */
	int fn, role;
	int32_t group;
	uint32_t input, output; /* number of its first unit among the inputs or outputs */
	uint32_t in, ins;       /* panels into it: panel[in] ..., by source */
	uint32_t out, outs;     /* what leads out of it: outlet[out] ..., by target */
	bool one;       /* the column after the last unit is always 1, for a panel that has the true unit's weights */
	bool error;     /* errors must reach it */
	bool own_error; /* it is an output whose units also get errors from elsewhere */
	bool gaps;      /* its units differ in their sources, and its panels have gaps */
	int phase;      /* PHASE_... */
	int integrate;  /* INTEGRATE_... */
	bool shaped;    /* its group has noise or settings of its own */
} Part;

/* Links that are too few for a matrix, one by one, in canonical order. */
typedef struct LinkBack {
	uint32_t part;
	LinkSums sums;
} LinkBack; /* those that lead out of a part, by source */
typedef struct LinkList {
	uint64_t links;
	LinkSums forward; /* targets over their sources */
	LinkBack *back;
	uint32_t backs;   /* parts that errors go back to */
	uint32_t *to;     /* [links, padded] number of the target, ascending, */
	uint16_t *begins; /* and for each vector of links a bit for every link whose target differs from the one before */
	struct LinkKind *kind;
	uint32_t kinds; /* links of blocks with the same rate */
	uint64_t room;  /* floats that kernels want to work in */
} LinkList;
/* a bit for each link, as Sweep wants it */
typedef struct LinkKind {
	const Block *like; /* one of these blocks */
	double rate;
	bool frozen;
	uint32_t *real;
} LinkKind;

/* Weights from `sources` columns to the columns of a part. By source: a row of weights for each source; by target:
 * a row for each target. Rows are padded to full vectors; the padding has no meaning. A pass that needs the other
 * form has a transposed copy, or transposes it itself. */
typedef struct Panel {
	uint32_t part, from; /* numbers of the parts it leads to and from */
	uint32_t source;     /* first column it leads from */
	uint32_t sources, targets;
	bool bias; /* the true unit's weights come after those of the sources, as one source more */
	bool by_source;
	bool frozen;
	const Block *like;  /* a block of its links: those of others are block_alike */
	double rate;        /* factor on the learning rate */
	uint64_t link;      /* of target t and source s it is net->row[t] + link + s, where `real` is NULL */
	uint64_t bias_link; /* of target t: net->row[t] + bias_link */
	uint32_t *real;     /* NULL: every place is a link; else a bit for each, as Sweep wants it */
	LinkList
		*list;     /* NULL; else it is no matrix: weights are in the order of the list; from, sources have no meaning */
	uint64_t at;   /* of its weights, in floats */
	uint32_t row;  /* floats in a row */
	uint64_t copy; /* of the other form, in `copies`; NONE: there is none */
	uint32_t copy_row;
} Panel;
#define NONE UINT64_MAX

/* A panel that leads out of a part; of a list, those of its links that do. */
typedef struct Outlet {
	uint32_t part, panel;
	const LinkSums *links;
} Outlet;

typedef struct Layout {
	const Net *net;
	Part *part;
	uint32_t parts; /* by first unit; part 0 is the true unit */
	Panel *panel;
	uint32_t panels;
	Outlet *outlet;
	uint32_t outlets;  /* by source part and, inside it, by target */
	uint32_t *forward; /* parts that are computed, sources before targets */
	uint32_t forwards;
	uint32_t cols;                /* of a row */
	uint32_t *col_of;             /* [units] */
	uint32_t inputs, outputs;     /* how many parts are inputs and outputs, */
	uint32_t input, output;       /* and which is the first of them */
	double largest_output;        /* what no output exceeds, either way; infinite if there is no such number */
	uint32_t outputs_padded;      /* units of all outputs, padded */
	uint64_t floats, copy_floats; /* of weights, and of transposed copies */
	bool index;                   /* inputs come as index lists */
	bool inputs_by_source;        /* some panel from inputs is */
	bool has_links;               /* some links are computed one by one, */
	uint64_t link_scratch;        /* with this many floats of scratch */
	bool copies_inputs;           /* some context copies inputs */
	bool own_errors;              /* some part has own_error */
	bool integrates;              /* some part does */
	bool noisy_inputs;            /* some input group has noise: inputs are not read in the data */
	bool cleans;                  /* some computed group has noise of its outputs, or dropout */
	bool radii, criteria;         /* some output group has its own */
	bool nets;                    /* net inputs must be kept beside outputs: some unit function needs them */
} Layout;

/* Are the net inputs of a part kept beside its outputs? Errors that are logarithms are made of them. Of parts that
 * integrate their outputs, what these move towards is kept there. */
static inline bool part_keeps_net(const Part *t, int error)
{
	return t->integrate || t->fn == FN_GAUSSIAN || (t->role == ROLE_OUTPUT && error != ERR_SQUARED);
}

Layout *cpu_layout(Ctx *cx, const Plan *plan, const Options *opt, bool index);
bool from_inputs(const Layout *l, const Panel *p); /* not from the true unit */
uint64_t panel_size(const Panel *p);               /* floats */
/* from p->at; source == sources: the true unit */
uint64_t panel_place(const Panel *p, uint32_t target, uint32_t source);
/* Calls fn for links first .. end - 1: its target, its number, and the place of its weight. */
typedef void LinkFn(void *arg, Unit unit, uint64_t link, uint64_t place);
void layout_links(const Layout *l, uint64_t first, uint64_t end, LinkFn *fn, void *arg);
void layout_print(const Layout *l, Buf *out);

/* ---- links.c: links that are computed one by one ------------------------------------------------ */

/* number: [cols / LANES] zeros, also on return */
LinkList *links_list(Ctx *cx, const Layout *l, const uint32_t *part_of, const Part *t, uint32_t *number);

#endif
