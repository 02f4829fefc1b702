/* SPDX-License-Identifier: MIT */
/* Networks of FANN (.net), read and written.
 *
 * Lines key=value, the last two long: `neurons`, a triple (inputs, function, steepness) for each in the order of
 * layers, and `connections`, the pairs (source, weight) of the first neuron's inputs, of the second's and so on.  The
 * last neuron of the input layer, and in layered networks of every layer, is a bias neuron.
 * A steepness is a factor on the net input and goes into the weights, exactly if it is a power of two; sigmoid is
 * 1 / (1 + e^-2x) there. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "legacy.h"

static const char start[] = "FANN_";

bool fann_looks(const Src *src) { return src->len >= 5 && memcmp(src->text, start, 5) == 0; }

typedef struct FannFn {
	int fn;      /* FN_...; -1: there is none like it */
	double gain; /* of the net input, besides the steepness */
	const char *name;
} FannFn;
static const FannFn fann_fns[] = {
	{ FN_LINEAR, 1, "linear" },
	{ -1, 1, "threshold" },
	{ -1, 1, "threshold symmetric" },
	{ FN_SIGMOID, 2, "sigmoid" },
	{ FN_STEPWISE, 1, "sigmoid stepwise" },
	{ FN_TANH, 1, "sigmoid symmetric" },
	{ FN_STEPWISE_TANH, 1, "sigmoid symmetric stepwise" },
	{ FN_GAUSSIAN, 1, "gaussian" },
	{ -1, 1, "gaussian symmetric" },
	{ -1, 1, "gaussian stepwise" },
	{ FN_ELLIOTT, 1, "elliot" },
	{ FN_SOFTSIGN, 1, "elliot symmetric" },
	{ -1, 1, "linear piece" },
	{ -1, 1, "linear piece symmetric" },
	{ -1, 1, "sin symmetric" },
	{ -1, 1, "cos symmetric" },
	{ -1, 1, "sin" },
	{ -1, 1, "cos" },
	{ FN_RELU, 1, "relu" },
};

/* ---- reading ------------------------------------------------------------------------------------ */

/* Numbers of the header, by key. */
enum {
	LAYERS,
	RATE,
	TYPE,
	MOMENTUM,
	ALGORITHM,
	ERROR_FUNCTION,
	QUICK_DECAY,
	QUICK_MU,
	UP,
	DOWN,
	STEP_MIN,
	STEP_MAX,
	STEP_START,
	SCALED,
	POINT,
	KEYS
};
static const char *const keys[KEYS] = {
	"num_layers",           "learning_rate",   "network_type",     "learning_momentum",     "training_algorithm",
	"train_error_function", "quickprop_decay", "quickprop_mu",     "rprop_increase_factor", "rprop_decrease_factor",
	"rprop_delta_min",      "rprop_delta_max", "rprop_delta_zero", "scale_included",        "decimal_point"
};

typedef struct Neuron {
	uint64_t inputs;
	uint32_t unit; /* of the OldNet; NO_UNIT: a bias neuron */
	double gain;
} Neuron;

typedef struct Reader {
	const Old *o;
	Ctx *cx;
	Cursor c;
	double value[KEYS];
	Loc at[KEYS];
	bool given[KEYS];
	uint32_t *layer; /* [layers] sizes */
	uint32_t layers, neurons;
	Neuron *neuron; /* [neurons] */
	OldNet net;
	bool fixed, connected;
} Reader;

static bool is_key(Text t, const char *key) { return t.len >= strlen(key) && memcmp(t.s, key, strlen(key)) == 0; }

static void take_mark(Reader *r, char c, const char *what)
{
	if (!cursor_take(&r->c, c))
		cursor_expected(&r->c, what, "(source, weight) (source, weight)");
}

static void read_layers(Reader *r)
{
	uint64_t cap = 0, all = 0, size;
	r->layers = 0;
	while (cursor_peek_line(&r->c) != '\n') {
		Loc at = cursor_loc(&r->c);
		size = cursor_need_whole(&r->c, "the size of a layer", 1, MAX_UNITS);
		r->layer = arena_reserve(&r->cx->scratch, r->layer, r->layers, &cap, sizeof *r->layer);
		r->layer[r->layers++] = (uint32_t)size;
		all += size;
		if (all > MAX_UNITS)
			fail_at(r->cx, at, "networks are smaller", "there are more than %u neurons", MAX_UNITS);
	}
	if (r->layers < 2 || r->layer[0] < 2)
		fail_at(r->cx, cursor_loc(&r->c), "a network has an input and an output layer, the first with a bias neuron",
		        "the layer sizes cannot be");
	if (r->given[LAYERS] && r->value[LAYERS] != r->layers)
		fail_at(r->cx, r->at[LAYERS], "check that the file is complete",
		        "%.0f layers are counted here, but %" PRIu32 " sizes follow", r->value[LAYERS], r->layers);
	r->neurons = (uint32_t)all;
}

/* A neuron past the input layer. */
static void make_unit(Reader *r, Neuron *n, uint64_t fn, double steepness, int role, Loc at)
{
	bool known = fn < COUNT(fann_fns) && fann_fns[fn].fn >= 0;
	if (!known)
		old_lost(r->o, at, "the activation function %" PRIu64 " (%s): there is none like it%s", fn,
		         fn < COUNT(fann_fns) ? fann_fns[fn].name : "unknown",
		         r->o->opt->lossy ? "; sigmoid takes its place" : "");
	const FannFn *f = &fann_fns[known ? fn : 3];
	n->gain = f->gain * steepness;
	n->unit = (uint32_t)r->net.units;
	r->net.unit[r->net.units++] = (OldUnit){ .role = role, .fn = f->fn, .at = at };
}

static void read_neurons(Reader *r)
{
	Cursor *c = &r->c;
	double scale = r->fixed ? ldexp(1, -(int)r->value[POINT]) : 1;
	if (!r->layers)
		cursor_expected(c, "layer_sizes= above the neurons", "lines of the header have a fixed order");
	if (r->neurons > cursor_numbers_left(c) / 3)
		fail_at(r->cx, cursor_loc(c), "check that the file is complete",
		        "the file is too short for %" PRIu32 " neurons", r->neurons);
	r->neuron = NEW(&r->cx->scratch, r->neurons, Neuron);
	r->net.unit = NEW(&r->cx->scratch, r->neurons, OldUnit);
	bool layered = r->value[TYPE] == 0;
	for (uint32_t l = 0, k = 0; l < r->layers; l++)
		for (uint32_t i = 0; i < r->layer[l]; i++, k++) {
			Neuron *n = &r->neuron[k];
			cursor_peek(c);
			Loc at = cursor_loc(c);
			take_mark(r, '(', "a neuron (inputs, function, steepness)");
			n->inputs = cursor_need_whole(c, "the number of its inputs", 0, MAX_LINKS);
			take_mark(r, ',', "a comma");
			uint64_t fn = cursor_need_whole(c, "an activation function", 0, 1000);
			take_mark(r, ',', "a comma");
			double steepness = cursor_need_number(c, "a steepness") * scale;
			take_mark(r, ')', "a closing bracket");
			n->unit = NO_UNIT;
			bool last = i + 1 == r->layer[l];
			if (n->inputs && (l == 0 || (last && layered)))
				fail_at(r->cx, at, "input and bias neurons have no inputs", "this neuron has %" PRIu64, n->inputs);
			if (l == 0 && !last)
				make_unit(r, n, 0, 1, ROLE_INPUT, at);
			else if (l > 0 && !(last && layered))
				make_unit(r, n, fn, steepness, l + 1 == r->layers ? ROLE_OUTPUT : ROLE_HIDDEN, at);
		}
}

static void add_link(Reader *r, uint32_t k, uint64_t source, double weight, Loc at)
{
	uint32_t to = r->neuron[k].unit;
	if (r->neuron[source].unit == NO_UNIT) {
		r->net.unit[to].biased = true;
		r->net.unit[to].bias += weight;
		return;
	}
	r->net.link = arena_reserve(&r->cx->scratch, r->net.link, r->net.links, &r->net.link_cap, sizeof *r->net.link);
	r->net.link[r->net.links++] = (OldLink){ .from = r->neuron[source].unit, .to = to, .weight = weight, .at = at };
}

static void read_connections(Reader *r)
{
	Cursor *c = &r->c;
	double scale = r->fixed ? ldexp(1, -(int)r->value[POINT]) : 1;
	if (!r->neuron)
		cursor_expected(c, "neurons above the connections", "lines of the header have a fixed order");
	for (uint32_t k = 0; k < r->neurons; k++)
		for (uint64_t i = 0; i < r->neuron[k].inputs; i++) {
			cursor_peek(c);
			Loc at = cursor_loc(c);
			take_mark(r, '(', "a connection (source, weight)");
			uint64_t source = cursor_need_whole(c, "the number of a neuron", 0, r->neurons - 1);
			take_mark(r, ',', "a comma");
			double weight = cursor_need_number(c, "a weight") * scale;
			take_mark(r, ')', "a closing bracket");
			add_link(r, k, source, weight * r->neuron[k].gain, at);
		}
	r->connected = true;
}

static void read_value(Reader *r, Text key, Loc at)
{
	for (int i = 0; i < KEYS; i++) {
		if (!text_is(key, keys[i]))
			continue;
		r->at[i] = at;
		r->given[i] = true;
		r->value[i] = cursor_need_number(&r->c, keys[i]);
	}
	cursor_line(&r->c);
}

/* Everything up to = is the key. */
static void read_line(Reader *r)
{
	Cursor *c = &r->c;
	Loc at = cursor_loc(c);
	const char *p = c->src->text + c->at, *end = c->src->text + c->src->len;
	const char *eol = memchr(p, '\n', (size_t)(end - p)), *equals = memchr(p, '=', (size_t)((eol ? eol : end) - p));
	if (!equals)
		fail_at(r->cx, at, "lines are key=value", "this line has no =");
	Text key = { p, (uint32_t)min_u64((size_t)(equals - p), UINT32_MAX) };
	c->at = (size_t)(equals + 1 - c->src->text);
	if (is_key(key, "layer_sizes"))
		read_layers(r);
	else if (is_key(key, "neurons"))
		read_neurons(r);
	else if (is_key(key, "connections"))
		read_connections(r);
	else
		read_value(r, key, at);
}

static void make_train(Reader *r)
{
	Buf b = { .arena = &r->cx->scratch };
	const double *v = r->value;
	buf_puts(&b, "train error squared");
	switch (r->given[ALGORITHM] ? (int)fmin(v[ALGORITHM], 9) : -1) {
	case 0:
		buf_printf(&b, " rule momentum rate %g momentum %g batch 1 shuffle off", v[RATE],
		           fmin(fmax(v[MOMENTUM], 0), 1));
		break;
	case 1:
		buf_printf(&b, " rule momentum rate %g momentum 0 batch all", v[RATE]);
		note_at(r->cx, r->at[ALGORITHM], "divide the rate by the number of cases",
		        "FANN averages the gradient of a batch, here it is summed");
		break;
	case 2:
	case 4:
		buf_printf(&b, " rule rprop batch all up %g down %g step-min %g step-max %g step-start %g",
		           fmin(fmax(v[UP], 1), 100), fmin(fmax(v[DOWN], 0), 1), fmax(v[STEP_MIN], 0), fmax(v[STEP_MAX], 0),
		           fmax(v[STEP_START], 0));
		break;
	case 3:
		buf_printf(&b, " rule quickprop batch all rate %g mu %g decay %g", v[RATE], fmin(fmax(v[QUICK_MU], 0), 100),
		           fmin(fabs(v[QUICK_DECAY]), 1));
		break;
	default: break;
	}
	buf_puts(&b, "\n");
	r->net.train = b.s;
}

Net *fann_read(const Old *o)
{
	Reader *r = NEW(&o->cx->scratch, 1, Reader);
	*r = (Reader){ .o = o, .cx = o->cx, .c = cursor_open(o->cx, o->src, '\0') };
	Loc at = cursor_loc(&r->c);
	Text title = cursor_word(&r->c);
	r->fixed = is_key(title, "FANN_FIX_2.");
	if (!r->fixed && !is_key(title, "FANN_FLO_2."))
		fail_at(o->cx, at, "files that begin with FANN_FLO_2.1, FANN_FLO_2.0 or FANN_FIX_2 are read",
		        "'%s' does not begin a network of FANN", text_shown(o->cx, title));
	if (r->fixed)
		old_lost(o, at, "fixed-point arithmetic: weights become real numbers");
	while (cursor_peek(&r->c))
		read_line(r);
	if (!r->connected)
		fail_at(o->cx, cursor_loc(&r->c), "check that the file is complete", "the file has no connections");
	if (r->value[SCALED] != 0)
		note_at(o->cx, r->at[SCALED], "scale the data as your program did",
		        "the scale of inputs and outputs is left out: FANN applies it only when a program asks for it");
	check_errors(o->cx);
	make_train(r);
	r->net.title = "# A network of FANN.\n";
	return old_build(o, &r->net);
}

/* ---- writing ------------------------------------------------------------------------------------ */

typedef struct Writer {
	Ctx *cx;
	const Net *net;
	const double *w;
	uint32_t *level;  /* of units; outputs are on the last */
	uint32_t *number; /* of units, in the order of the file */
	Unit *unit;       /* by number; 0: a bias neuron */
	uint32_t neurons, levels;
	uint32_t *layer; /* [levels] sizes */
	Buf out;
} Writer;

static void check_groups(Writer *w)
{
	for (uint32_t i = 0; i < w->net->groups; i++) {
		const Group *g = &w->net->group[i];
		const char *why = g->role == ROLE_CONTEXT ? "context groups"
		                  : g->fn == FN_SOFTMAX   ? "softmax units"
		                  : g->fn == FN_RELU      ? "relu units before version 2.3"
		                                          : NULL;
		if (why)
			error_at(w->cx, g->at, "write another format", "group %s: FANN has no %s", g->name, why);
	}
	for (Unit u = 1; u < w->net->units; u++)
		for (uint64_t l = w->net->row[u]; l < w->net->row[u + 1]; l++) {
			const Group *from = net_group(w->net, net_source(w->net, u, l));
			if (from && from->role == ROLE_OUTPUT) {
				error_at(w->cx, net_block(w->net, u, l)->at, "write --to snns",
				         "FANN's outputs cannot feed other units");
				l = w->net->row[u + 1] - 1;
				u = w->net->units - 1;
			}
		}
	check_errors(w->cx);
}

/* Units by level, outputs last; each input layer, here the only one, ends with a bias neuron. */
static void order_units(Writer *w)
{
	const Net *net = w->net;
	w->level = NEW(&w->cx->scratch, net->units, uint32_t);
	w->number = NEW(&w->cx->scratch, net->units, uint32_t);
	w->unit = NEW(&w->cx->scratch, net->units, Unit);
	net_levels(w->cx, net, w->level, NEW(&w->cx->scratch, net->units, Unit));
	uint32_t top = 0;
	for (Unit u = 1; u < net->units; u++)
		if (net_group(net, u)->role != ROLE_OUTPUT)
			top = max_u32(top, w->level[u]);
	w->levels = top + 2;
	w->layer = NEW(&w->cx->scratch, w->levels, uint32_t);
	for (Unit u = 1; u < net->units; u++)
		if (net_group(net, u)->role == ROLE_OUTPUT)
			w->level[u] = top + 1;
	for (uint32_t l = 0; l < w->levels; l++) {
		for (Unit u = 1; u < net->units; u++) {
			if (w->level[u] != l)
				continue;
			w->number[u] = w->neurons;
			w->unit[w->neurons++] = u;
			w->layer[l]++;
		}
		if (l == 0) {
			w->number[0] = w->neurons;
			w->unit[w->neurons++] = 0;
			w->layer[l]++;
		}
	}
}

static const char head[] =
	"train_error_function=1\ntrain_stop_function=0\ncascade_output_change_fraction=0.010000\n"
	"quickprop_decay=-0.000100\nquickprop_mu=1.750000\nrprop_increase_factor=1.200000\n"
	"rprop_decrease_factor=0.500000\nrprop_delta_min=0.000000\nrprop_delta_max=50.000000\n"
	"rprop_delta_zero=0.100000\ncascade_output_stagnation_epochs=12\n"
	"cascade_candidate_change_fraction=0.010000\ncascade_candidate_stagnation_epochs=12\n"
	"cascade_max_out_epochs=150\ncascade_min_out_epochs=50\ncascade_max_cand_epochs=150\n"
	"cascade_min_cand_epochs=50\ncascade_num_candidate_groups=2\n"
	"bit_fail_limit=3.49999994039535522461e-01\ncascade_candidate_limit=1.00000000000000000000e+03\n"
	"cascade_weight_multiplier=4.00000005960464477539e-01\ncascade_activation_functions_count=1\n"
	"cascade_activation_functions=3 \ncascade_activation_steepnesses_count=1\n"
	"cascade_activation_steepnesses=5.00000000000000000000e-01 \n";

/* Function and steepness: sigmoid there is 1 / (1 + e^-2x). */
static void put_neuron(Writer *w, Unit u)
{
	const Group *g = net_group(w->net, u);
	uint64_t inputs = u ? w->net->row[u + 1] - w->net->row[u] : 0;
	uint32_t fn = 0;
	double steepness = 0;
	if (inputs) {
		int like = g->fn == FN_SIGMOID2 ? FN_SIGMOID : g->fn;
		while (fann_fns[fn].fn != like)
			fn++;
		steepness = g->fn == FN_SIGMOID2 ? 0.34657359027997264 : 1 / fann_fns[fn].gain;
	}
	buf_printf(&w->out, "(%" PRIu64 ", %" PRIu32 ", %.20e) ", inputs, fn, steepness);
}

/* A shortcut network of connection rate below 1: its connections are read as they are listed. */
void fann_write(Ctx *cx, const Net *net, const double *weights, const char *path)
{
	Writer w = { .cx = cx, .net = net, .w = weights, .out = { .arena = &cx->scratch } };
	check_groups(&w);
	order_units(&w);
	OutFile *f = file_create(cx, &cx->scratch, path);
	buf_printf(&w.out, "FANN_FLO_2.1\nnum_layers=%" PRIu32 "\nlearning_rate=%f\nconnection_rate=0.500000\n", w.levels,
	           net->options.rate);
	buf_printf(&w.out,
	           "network_type=1\nlearning_momentum=%f\ntraining_algorithm=2\n%slayer_sizes=", net->options.momentum,
	           head);
	for (uint32_t l = 0; l < w.levels; l++)
		buf_printf(&w.out, "%" PRIu32 " ", w.layer[l]);
	buf_puts(&w.out, "\nscale_included=0\nneurons (num_inputs, activation_function, activation_steepness)=");
	for (uint32_t k = 0; k < w.neurons; k++)
		put_neuron(&w, w.unit[k]);
	buf_puts(&w.out, "\nconnections (connected_to_neuron, weight)=");
	for (uint32_t k = 0; k < w.neurons; k++)
		for (uint64_t l = w.unit[k] ? net->row[w.unit[k]] : 0; w.unit[k] && l < net->row[w.unit[k] + 1]; l++)
			buf_printf(&w.out, "(%" PRIu32 ", %.20e) ", w.number[net_source(net, w.unit[k], l)], weights[l]);
	buf_puts(&w.out, "\n");
	file_write(f, w.out.s, w.out.len);
	file_commit(cx, f);
}
