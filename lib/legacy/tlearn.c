/* SPDX-License-Identifier: MIT */
/* Networks of tlearn (.cf), with a file of weights (.wts) or without.
 *
 *     NODES:       nodes = N  inputs = N  outputs = N  output nodes are LIST
 *     CONNECTIONS: groups = N  { LIST from LIST [ = SPEC ] | group LIST = SPEC }
 *     SPECIAL:     { linear | bipolar | selected = LIST | weight_limit = X }
 *     LIST         1-3,7 (nodes), i1-i4 (inputs), 0 (the bias)
 *     SPEC         fixed | group N | MIN & MAX [ fixed ] [ one-to-one ]
 *
 * Nodes are computed in the order of their numbers: a link from a node of the same or a higher number carries what that
 * node was one time step before.  A linear node that only such links leave, and fixed links enter, is a context here;
 * of any other such node a context is made that is its copy.  Contexts start at 0. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "legacy.h"

enum { LARGEST = 1 << 23 }; /* nodes times their possible sources, of which tlearn keeps a table */

typedef struct Spec { /* what is said of some links */
	bool fixed, limited;
	double low, high;
} Spec;
typedef struct CfLink {
	uint32_t from, to; /* 0 the bias, then inputs, then nodes */
	uint32_t order;    /* of the line */
	Spec spec;
	Loc at;
} CfLink;
typedef struct Reader {
	const Old *o;
	Ctx *cx;
	Cursor c;
	uint64_t nodes, inputs, outputs;
	uint64_t all; /* 1 + inputs + nodes */
	bool *chosen[2];
	bool *output, *linear, *bipolar; /* [all] */
	CfLink *link;
	uint64_t links, link_cap;
	double limit;
	Loc *node_at; /* [all] where a link first leads to it */
	OldNet net;
	uint32_t *context; /* [all] unit that holds the step before; NO_UNIT: none */
	double *weight;    /* [nodes * all]; NULL: no file of weights */
} Reader;

static const char title[] = "NODES:";

bool tlearn_looks(const Src *src) { return src_begins(src, title, '\0'); }

/* ---- words -------------------------------------------------------------------------------------- */

static Loc at_word(const Reader *r, Text t) { return (Loc){ r->c.src, (size_t)(t.s - r->c.src->text) }; }

static Text need_word(Reader *r, const char *what)
{
	cursor_peek(&r->c);
	Text t = cursor_word(&r->c);
	if (!t.len)
		cursor_expected(&r->c, what, "check that the file is complete");
	return t;
}

static void need(Reader *r, const char *word)
{
	Text t = need_word(r, word);
	if (!text_is(t, word))
		fail_at(r->cx, at_word(r, t), "NODES:, CONNECTIONS: and SPECIAL: stand in this order", "'%s' should stand here",
		        word);
}

static bool peek_is(const Reader *r, const char *word)
{
	Cursor c = r->c;
	cursor_peek(&c);
	return text_is(cursor_word(&c), word);
}

static double need_value(Reader *r, Text t, const char *what)
{
	float f;
	const char *end = number_read(t.s, t.s + t.len, &f);
	if (end != t.s + t.len || !isfinite(f))
		fail_at(r->cx, at_word(r, t), "a number", "%s cannot be '%s'", what, text_shown(r->cx, t));
	return number_double(t.s, end);
}

/* Marks the units of a list: 0 the bias, i1 .. inputs, 1 .. nodes. */
static void take_list(Reader *r, Text t, bool *mark)
{
	uint32_t i = 0;
	memset(mark, 0, r->all * sizeof *mark);
	for (bool more = true; more;) {
		uint64_t end[2] = { 0 };
		bool input[2] = { false }, range = false;
		for (int k = 0; k < 2; k++) {
			input[k] = i < t.len && t.s[i] == 'i';
			i += input[k];
			uint32_t from = i;
			for (; i < t.len && t.s[i] >= '0' && t.s[i] <= '9' && end[k] <= r->all; i++)
				end[k] = end[k] * 10 + (uint64_t)(t.s[i] - '0');
			uint64_t most = input[k] ? r->inputs : r->nodes;
			if (i == from || end[k] > most || (input[k] && !end[k]))
				fail_at(r->cx, at_word(r, t), "nodes 1-3,7, inputs i1-i4, or 0, the bias",
				        "'%s' is no list of units: there are %" PRIu64 " %s", text_shown(r->cx, t), most,
				        input[k] ? "inputs" : "nodes");
			range = k == 0 && i < t.len && t.s[i] == '-';
			if (!range)
				break;
			i++;
		}
		range = end[1] || input[1];
		if (!range) {
			end[1] = end[0];
			input[1] = input[0];
		}
		more = i < t.len && t.s[i] == ',';
		if (input[0] != input[1] || end[0] > end[1] || (i < t.len && !more))
			fail_at(r->cx, at_word(r, t), "nodes 1-3,7, inputs i1-i4, or 0, the bias", "'%s' is no list of units",
			        text_shown(r->cx, t));
		i += more;
		for (uint64_t u = end[0]; u <= end[1]; u++)
			mark[input[0] || !u ? u : r->inputs + u] = true;
	}
}

/* ---- sections ----------------------------------------------------------------------------------- */

static void read_nodes(Reader *r)
{
	struct {
		const char *name;
		uint64_t *value;
		uint64_t low;
		bool given;
	} counts[] = { { "nodes", &r->nodes, 1, false },
		           { "inputs", &r->inputs, 0, false },
		           { "outputs", &r->outputs, 1, false } };
	need(r, title);
	Loc at = cursor_loc(&r->c);
	for (int i = 0; i < 3; i++) {
		Text key = need_word(r, "nodes = N, inputs = N or outputs = N");
		size_t k = 0;
		while (k < COUNT(counts) && !text_is(key, counts[k].name))
			k++;
		if (k == COUNT(counts) || counts[k].given)
			fail_at(r->cx, at_word(r, key),
			        "nodes = N, inputs = N and outputs = N, one of each, follow NODES:", "'%s' cannot stand here",
			        text_shown(r->cx, key));
		need(r, "=");
		*counts[k].value = cursor_need_whole(&r->c, counts[k].name, counts[k].low, MAX_UNITS);
		counts[k].given = true;
	}
	r->all = 1 + r->inputs + r->nodes;
	if (r->nodes > LARGEST / r->all)
		fail_at(r->cx, at, "networks of tlearn are smaller", "%" PRIu64 " nodes and %" PRIu64 " inputs are too many",
		        r->nodes, r->inputs);
	for (int i = 0; i < 2; i++)
		r->chosen[i] = NEW(&r->cx->scratch, r->all, bool);
	r->output = NEW(&r->cx->scratch, r->all, bool);
	r->linear = NEW(&r->cx->scratch, r->all, bool);
	r->bipolar = NEW(&r->cx->scratch, r->all, bool);
	r->node_at = NEW(&r->cx->scratch, r->all, Loc);
	need(r, "output");
	Text word = need_word(r, "node");
	if (!text_is(word, "node") && !text_is(word, "nodes"))
		fail_at(r->cx, at_word(r, word), "output nodes are 4-6", "'node' or 'nodes' should stand here");
	word = need_word(r, "is");
	if (!text_is(word, "is") && !text_is(word, "are"))
		fail_at(r->cx, at_word(r, word), "output nodes are 4-6", "'is' or 'are' should stand here");
	word = need_word(r, "the output nodes");
	take_list(r, word, r->output);
	uint64_t found = 0;
	for (uint64_t u = 0; u < r->all; u++) {
		if (u <= r->inputs && r->output[u])
			fail_at(r->cx, at_word(r, word), "name nodes", "%s cannot be an output", u ? "an input" : "the bias");
		found += r->output[u];
	}
	if (found != r->outputs)
		fail_at(r->cx, at_word(r, word), "outputs = N counts them",
		        "%" PRIu64 " nodes are named, but outputs = %" PRIu64, found, r->outputs);
}

/* After =.  Groups are named and left out. */
static Spec take_spec(Reader *r)
{
	Spec s = { 0 };
	Text t = need_word(r, "fixed, group N, or MIN & MAX");
	if (text_is(t, "fixed")) {
		s.fixed = true;
	} else if (text_is(t, "group")) {
		cursor_need_whole(&r->c, "the number of a group", 0, UINT32_MAX);
		old_lost(r->o, at_word(r, t), "a group of connections that share their weight");
	} else {
		s.low = need_value(r, t, "the least weight");
		need(r, "&");
		Text high = need_word(r, "the greatest weight");
		s.high = need_value(r, high, "the greatest weight");
		s.limited = true;
		if (s.high < s.low)
			fail_at(r->cx, at_word(r, high), "MIN & MAX", "%g is less than %g", s.high, s.low);
	}
	return s;
}

static void add_link(Reader *r, uint64_t from, uint64_t to, uint32_t order, Spec spec, Loc at)
{
	if (r->links == LARGEST)
		fail_at(r->cx, at, "networks of tlearn are smaller", "there are more than %d connections", LARGEST);
	r->link = arena_reserve(&r->cx->scratch, r->link, r->links, &r->link_cap, sizeof *r->link);
	r->link[r->links++] = (CfLink){ (uint32_t)from, (uint32_t)to, order, spec, at };
	if (!r->node_at[to].src)
		r->node_at[to] = at;
}

/* LIST from LIST [ = SPEC ]; a later line replaces what an earlier one says of a link. */
static void take_connection(Reader *r, Text targets, uint32_t order)
{
	bool *to = r->chosen[0], *from = r->chosen[1], one_to_one = false;
	Spec spec = { 0 };
	Loc at = at_word(r, targets);
	take_list(r, targets, to);
	for (uint64_t u = 0; u <= r->inputs; u++)
		if (to[u])
			fail_at(r->cx, at, "TARGETS from SOURCES", "a connection leads to %s", u ? "an input" : "the bias");
	need(r, "from");
	take_list(r, need_word(r, "the sources"), from);
	if (peek_is(r, "=")) {
		need(r, "=");
		spec = take_spec(r);
		if (peek_is(r, "fixed")) {
			need(r, "fixed");
			spec.fixed = true;
		}
		if (peek_is(r, "one-to-one")) {
			need(r, "one-to-one");
			one_to_one = spec.fixed = true; /* as tlearn has it */
		}
	}
	uint64_t source = 0;
	while (source < r->all && !from[source])
		source++;
	for (uint64_t t = 0; t < r->all; t++) {
		if (!to[t])
			continue;
		if (one_to_one) {
			if (source >= r->all)
				fail_at(r->cx, at, "as many sources as targets",
				        "one-to-one connections need a source for each target");
			add_link(r, source++, t, order, spec, at);
			continue;
		}
		for (uint64_t s = 0; s < r->all; s++)
			if (from[s])
				add_link(r, s, t, order, spec, at);
	}
}

static void read_connections(Reader *r)
{
	need(r, "CONNECTIONS:");
	need(r, "groups");
	need(r, "=");
	cursor_need_whole(&r->c, "the number of groups", 0, UINT32_MAX);
	for (uint32_t order = 0; cursor_peek(&r->c) && !peek_is(r, "SPECIAL:"); order++) {
		Text t = need_word(r, "connections");
		if (!text_is(t, "group")) {
			take_connection(r, t, order);
			continue;
		}
		old_lost(r->o, at_word(r, t), "a group of connections that share their weight");
		need_word(r, "a group");
		need(r, "=");
		take_spec(r);
	}
}

static void read_special(Reader *r)
{
	if (!cursor_peek(&r->c))
		return;
	need(r, "SPECIAL:");
	while (cursor_peek(&r->c)) {
		Text key = need_word(r, "a setting");
		need(r, "=");
		Text value = need_word(r, "a value");
		bool *mark = text_is(key, "linear") ? r->linear : text_is(key, "bipolar") ? r->bipolar : NULL;
		if (mark)
			take_list(r, value, mark);
		else if (text_is(key, "weight_limit"))
			r->limit = fabs(need_value(r, value, "weight_limit"));
		else if (!text_is(key, "selected"))
			old_lost(r->o, at_word(r, key), "the setting %s", text_shown(r->cx, key));
	}
}

/* ---- weights ------------------------------------------------------------------------------------ */

static void read_weights(Reader *r, const char *path)
{
	Cursor c = cursor_open(r->cx, src_open(r->cx, &r->cx->keep, path), '#');
	Text head = cursor_line(&c);
	static const char begins[] = "NETWORK CONFIGURED BY TLEARN";
	if (head.len < strlen(begins) || memcmp(head.s, begins, strlen(begins)) != 0)
		fail_at(r->cx, (Loc){ c.src, 0 }, "give a file of weights (.wts) of tlearn",
		        "the file does not begin with '%s'", begins);
	if (r->nodes * r->all > cursor_numbers_left(&c))
		fail_at(r->cx, (Loc){ c.src, c.src->len }, "take the network that the weights were trained with",
		        "the file is too short for %" PRIu64 " nodes with %" PRIu64 " weights each", r->nodes, r->all);
	r->weight = NEW(&r->cx->scratch, r->nodes * r->all, double);
	for (uint64_t i = 0; i < r->nodes * r->all; i++)
		r->weight[i] = cursor_need_number(&c, "a weight");
	if (cursor_peek(&c))
		cursor_expected(&c, "the end of the file",
		                "for each node a weight from the bias, from every input and from every node");
}

/* Of a link; NaN: random. */
static double weight_of(const Reader *r, const CfLink *l)
{
	if (r->weight)
		return r->weight[(l->to - 1 - r->inputs) * r->all + l->from];
	return l->spec.limited && l->spec.low == l->spec.high ? l->spec.low : l->spec.fixed ? (double)NAN : 0;
}

/* ---- to units and links ------------------------------------------------------------------------- */

static int by_ends(const void *a, const void *b)
{
	const CfLink *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* One link between two units: the last that the file states. */
static void merge_links(Reader *r)
{
	uint64_t kept = 0;
	if (r->links)
		qsort(r->link, r->links, sizeof *r->link, by_ends);
	for (uint64_t i = 0; i < r->links; i++) {
		if (kept && r->link[kept - 1].to == r->link[i].to && r->link[kept - 1].from == r->link[i].from)
			kept--;
		r->link[kept++] = r->link[i];
	}
	r->links = kept;
}

static bool goes_back(const Reader *r, const CfLink *l) { return l->from > r->inputs && l->from >= l->to; }

/* Linear nodes that hold the step before for others: contexts of their own. */
static void find_contexts(Reader *r)
{
	bool *is = NEW(&r->cx->scratch, r->all, bool), *leaves = NEW(&r->cx->scratch, r->all, bool);
	for (uint64_t u = r->inputs + 1; u < r->all; u++)
		is[u] = r->linear[u] && !r->output[u];
	for (uint64_t i = 0; i < r->links; i++) {
		const CfLink *l = &r->link[i];
		bool self = l->from == l->to, enters = l->spec.fixed && (!goes_back(r, l) || self) && !isnan(weight_of(r, l));
		if (l->from && !enters)
			is[l->to] = false;
		if (!goes_back(r, l))
			is[l->from] = false;
		leaves[l->from] = leaves[l->from] || (goes_back(r, l) && !self);
	}
	for (uint64_t u = r->inputs + 1; u < r->all; u++)
		if (is[u] && leaves[u])
			r->context[u] = (uint32_t)(u - 1);
}

static void add_unit_link(Reader *r, OldLink l)
{
	r->net.link = arena_reserve(&r->cx->scratch, r->net.link, r->net.links, &r->net.link_cap, sizeof *r->net.link);
	r->net.link[r->net.links++] = l;
}

/* The unit that holds node u of the step before. */
static uint32_t context_of(Reader *r, uint32_t u, Loc at)
{
	if (r->context[u] != NO_UNIT)
		return r->context[u];
	r->net.unit[r->net.units] = (OldUnit){ .role = ROLE_CONTEXT, .fn = FN_LINEAR, .at = at };
	r->context[u] = (uint32_t)r->net.units++;
	add_unit_link(r, (OldLink){ .from = u - 1, .to = r->context[u], .weight = 1, .frozen = true, .at = at });
	return r->context[u];
}

static void make_bias(Reader *r, const CfLink *l, double w, double gain)
{
	OldUnit *u = &r->net.unit[l->to - 1];
	if (isnan(w) || (u->role == ROLE_CONTEXT && !r->weight)) {
		note_at(r->cx, l->at, NULL, "the bias of node %" PRIu64 ", which is random and not trained, is left out",
		        l->to - r->inputs);
		return;
	}
	if (l->spec.fixed && u->role != ROLE_CONTEXT && w != 0)
		old_lost(r->o, l->at, "a bias that is fixed");
	u->biased = !(l->spec.fixed && w == 0);
	u->bias = w * gain;
}

static void make_links(Reader *r)
{
	bool limited = false;
	for (uint64_t i = 0; i < r->links; i++) {
		const CfLink *l = &r->link[i];
		double gain = r->bipolar[l->to] ? 0.5 : 1, w = weight_of(r, l);
		if (l->spec.limited && !l->spec.fixed && !limited) {
			old_lost(r->o, l->at, "weights that are kept between %g and %g", l->spec.low, l->spec.high);
			limited = true;
		}
		if (!l->from) {
			make_bias(r, l, w, gain);
			continue;
		}
		OldLink link = {
			.from = l->from - 1, .to = l->to - 1, .weight = w * gain, .frozen = l->spec.fixed, .at = l->at
		};
		bool into_context = r->net.unit[link.to].role == ROLE_CONTEXT;
		if (goes_back(r, l) && !(into_context && l->from == l->to))
			link.from = context_of(r, l->from, l->at);
		add_unit_link(r, link);
	}
}

static void make_units(Reader *r)
{
	r->context = NEW(&r->cx->scratch, r->all, uint32_t);
	memset(r->context, 0xff, r->all * sizeof *r->context);
	find_contexts(r);
	r->net.unit = NEW(&r->cx->scratch, 2 * r->all, OldUnit);
	for (uint64_t u = 1; u < r->all; u++)
		r->net.unit[r->net.units++] = (OldUnit){ .role = u <= r->inputs             ? ROLE_INPUT
			                                             : r->context[u] != NO_UNIT ? ROLE_CONTEXT
			                                             : r->output[u]             ? ROLE_OUTPUT
			                                                                        : ROLE_HIDDEN,
			                                     .fn = u <= r->inputs || r->linear[u] ? FN_LINEAR
			                                           : r->bipolar[u]                ? FN_TANH
			                                                                          : FN_SIGMOID,
			                                     .at = r->node_at[u].src ? r->node_at[u] : (Loc){ r->c.src, 0 } };
	make_links(r);
	check_errors(r->cx);
}

/* tlearn reads NAME.data and NAME.teach beside NAME.cf. */
static void put_data(const Reader *r, Buf *b)
{
	const char *name = r->o->src->name, *slash = strrchr(name, '/');
	size_t n = strlen(name);
	n -= n > 3 && strcmp(name + n - 3, ".cf") == 0 ? 3 : 0;
	Buf path = { .arena = &r->cx->scratch };
	buf_add(&path, name, n);
	buf_puts(&path, ".data");
	if (access(path.s, R_OK) != 0)
		return;
	buf_puts(b, "data ");
	text_print(slash ? path.s + (slash + 1 - name) : path.s, b);
	buf_puts(b, "\n");
}

Net *tlearn_read(const Old *o)
{
	Reader *r = NEW(&o->cx->scratch, 1, Reader);
	Buf train = { .arena = &o->cx->scratch }, range = { .arena = &o->cx->scratch };
	*r = (Reader){ .o = o, .cx = o->cx, .c = cursor_open(o->cx, o->src, '\0'), .limit = 1 };
	read_nodes(r);
	read_connections(r);
	read_special(r);
	merge_links(r);
	if (o->opt->weights)
		read_weights(r, o->opt->weights);
	make_units(r);
	buf_printf(&range, " weights %.9g %.9g", -r->limit, r->limit);
	buf_puts(&train, "train rule momentum rate 0.1 momentum 0 batch 1 shuffle off error squared\n");
	put_data(r, &train);
	r->net.title = "# A network of tlearn.\n";
	r->net.train = train.s;
	r->net.range = r->weight ? NULL : range.s;
	return old_build(o, &r->net);
}
