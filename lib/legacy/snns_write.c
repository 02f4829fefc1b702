/* SPDX-License-Identifier: MIT */
/* Networks written for SNNS (.net).  In: a network and its weights.  Out: the file; units have the numbers that they
 * have here, from 1, so that patterns keep their order.  Weights have eight decimals. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "legacy.h"

static const struct {
	int fn;
	const char *name;
	double gain;
} act_fns[] = {
	{ FN_SIGMOID, "Act_Logistic", 1 },
	{ FN_TANH, "Act_TanH", 1 },
	{ FN_LINEAR, "Act_IdentityPlusBias", 1 },
	{ FN_SOFTSIGN, "Act_Elliott", 1 },
	{ FN_SIGMOID2, "Act_Logistic", 0.69314718055994530942 },
};

static size_t act_fn(int fn)
{
	size_t i = 0;
	while (i < COUNT(act_fns) && act_fns[i].fn != fn)
		i++;
	return i;
}

static void check_groups(Ctx *cx, const Net *net)
{
	for (uint32_t i = 0; i < net->groups; i++)
		if (act_fn(net->group[i].fn) == COUNT(act_fns))
			error_at(cx, net->group[i].at, "train it with sigmoid or tanh units", "group %s: SNNS has no %s units",
			         net->group[i].name, unit_fns[net->group[i].fn].name);
	check_errors(cx);
}

static const Group *copied(const Net *net, const Group *context)
{
	for (uint32_t i = 0; i < net->copies; i++)
		if (&net->group[net->copy[i].to_group] == context)
			return &net->group[net->copy[i].from_group];
	return NULL;
}

static uint64_t count_links(const Net *net)
{
	uint64_t n = 0;
	for (Unit u = 1; u < net->units; u++) {
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			n += net_source(net, u, l) != 0;
		n += net_group(net, u)->role == ROLE_CONTEXT;
	}
	return n;
}

static const char *learning(Arena *a, const Net *net)
{
	static const char *const plain[] = { "Std_Backpropagation", "JE_BP" }, *const rprop[] = { "Rprop", "JE_Rprop" },
							 *const quick[] = { "Quickprop", "JE_Quickprop" };
	const char *rule = option_get(a, &net->options, "rule");
	int je = net->copies > 0;
	return strcmp(rule, "rprop") == 0 ? rprop[je] : strcmp(rule, "quickprop") == 0 ? quick[je] : plain[je];
}

static void put_unit(Buf *b, const Net *net, const double *w, Unit u)
{
	static const char *const kinds[ROLE_COUNT] = { "i", "h", "o", "sh" };
	const Group *g = net_group(net, u);
	uint64_t first = net->row[u];
	bool biased = net->row[u + 1] > first && net_source(net, u, first) == 0;
	double bias = g->role == ROLE_CONTEXT ? g->exact_start : biased ? w[first] * act_fns[act_fn(g->fn)].gain : 0;
	const char *name = g->role == ROLE_CONTEXT || g->role == ROLE_INPUT ? "Act_Identity" : act_fns[act_fn(g->fn)].name;
	buf_printf(b,
	           "%3" PRIu32 " |          | %s_%" PRIu32 " |  0.00000 | %.8f | %-2s | %" PRIu32 ",%" PRIu32
	           ",0 | %s | Out_Identity | \n",
	           u, g->name, u - g->first, bias, kinds[g->role], 1 + u - g->first, 1 + 2 * (uint32_t)(g - net->group),
	           name);
}

static void put_links(Buf *b, const Net *net, const double *w, Unit u)
{
	enum { IN_A_LINE = 6 };
	const Group *g = net_group(net, u);
	uint32_t n = 0;
	if (g->role == ROLE_CONTEXT) {
		const Group *source = copied(net, g);
		assert(source);
		buf_printf(b, "%6" PRIu32 " |      | %" PRIu32 ": 1.00000\n", u, source->first + (u - g->first));
		return;
	}
	for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
		Unit from = net_source(net, u, l);
		if (from == 0)
			continue;
		if (!n)
			buf_printf(b, "%6" PRIu32 " |      | ", u);
		else
			buf_puts(b, n % IN_A_LINE ? ", " : ",\n                ");
		buf_printf(b, "%" PRIu32 ":%.8f", from, w[l] * act_fns[act_fn(g->fn)].gain);
		n++;
	}
	buf_puts(b, n ? "\n" : "");
}

void snns_write(Ctx *cx, const Net *net, const double *w, const char *path)
{
	static const char unit_rule[] =
		"----|----------|----------|----------|----------|----|----------|----------|----------|-------\n";
	static const char link_rule[] = "-------|------|----------------------------------------\n";
	Buf b = { .arena = &cx->scratch };
	check_groups(cx, net);
	OutFile *f = file_create(cx, &cx->scratch, path);
	buf_puts(
		&b,
		"SNNS network definition file V1.4-3D\ngenerated at a time that is not recorded\n\nnetwork name : microprop\n"
		"source files :\n");
	buf_printf(&b, "no. of units : %" PRIu32 "\nno. of connections : %" PRIu64 "\n", net->units - 1, count_links(net));
	buf_printf(&b,
	           "no. of unit types : 0\nno. of site types : 0\n\n\nlearning function : %s\nupdate function   : %s\n\n\n",
	           learning(&cx->scratch, net), net->copies ? "JE_Order" : "Topological_Order");
	buf_puts(&b, "unit default section :\n\nact      | bias     | st | subnet | layer | act func     | out func\n"
	             "---------|----------|----|--------|-------|--------------|-------------\n"
	             " 0.00000 |  0.00000 | h  |      0 |     1 | Act_Logistic | Out_Identity \n"
	             "---------|----------|----|--------|-------|--------------|-------------\n\n\n");
	buf_puts(&b, "unit definition section :\n\n"
	             "no. | typeName | unitName | act      | bias     | st | position | act func | out func | sites\n");
	buf_puts(&b, unit_rule);
	for (Unit u = 1; u < net->units; u++)
		put_unit(&b, net, w, u);
	buf_printf(&b, "%s\n\nconnection definition section :\n\ntarget | site | source:weight\n%s", unit_rule, link_rule);
	for (Unit u = 1; u < net->units; u++)
		put_links(&b, net, w, u);
	buf_puts(&b, link_rule);
	file_write(f, b.s, b.len);
	file_commit(cx, f);
}
