/* SPDX-License-Identifier: MIT */
/* A run from options to a program with initial weights. In: a network, options, data. Out: a compiled program; whether
 * data fits; weights of the best epoch; the fingerprint. */
#include <assert.h>
#include <math.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* XXH3_state_t on the stack */
#include <xxhash.h>

#include "monitor.h"

/* ---- targets ---- */

const Target *target_find(const char *name)
{
	for (size_t i = 0; target_table[i]; i++)
		if (strcmp(target_table[i]->name, name) == 0)
			return target_table[i];
	return NULL;
}

const char *target_names(Arena *a)
{
	Buf b = { .arena = a };
	buf_puts(&b, "the targets here are:");
	for (size_t i = 0; target_table[i]; i++)
		buf_printf(&b, "%s %s", i ? "," : "", target_table[i]->name);
	buf_puts(&b, "; auto chooses one of cpu and cuda");
	return b.s;
}

void test_hook_call(const Monitor *m, int hook, void *sum, uint64_t bytes)
{
	if (m->test_hook)
		m->test_hook(m->test_user, hook, sum, bytes);
}

/* ---- starting ---- */

int run_error(const Run *r)
{
	return r->saved_error >= 0 && !r->error_set && !r->at.updates ? r->saved_error : r->opt.error;
}

/* An error function sees only outputs it is defined for. */
void run_check_error(Ctx *cx, const Net *net, int error)
{
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		int own = group_error(g, error);
		bool noisy = g->noise[NOISE_AT_OUTPUT].kind || g->noise[NOISE_AT_DROPOUT].kind;
		if (g->role == ROLE_OUTPUT && noisy && own != ERR_SQUARED)
			error_at(cx, g->at, "train with error squared, or disturb its net inputs: noise GROUP net gaussian X",
			         "error %s is not defined for the outputs of '%s' with noise, which may be any numbers",
			         error_fns[own].name, g->name);
		if (g->role == ROLE_OUTPUT && g->error < 0 && !error_fits(error, g->fn))
			error_at(cx, g->at,
			         "train with error squared; cross-entropy goes with sigmoid or softmax, divergence with softmax",
			         "error %s makes no sense for the %s units of '%s'", error_fns[error].name, unit_fns[g->fn].name,
			         g->name);
	}
	check_errors(cx);
}

void run_first_weights(Ctx *cx, const Net *net, const Target *target, Program *program, uint64_t seed)
{
	double *w = NEW(&cx->scratch, net_chunk(net, 0, CHUNK_LINKS), double);
	for (uint64_t i = 0; i < net->links; i += CHUNK_LINKS) {
		net_weights(net, seed, i, CHUNK_LINKS, w);
		target->set(program, 0, i, CHUNK_LINKS, w);
	}
	arena_drop(&cx->scratch, w, net_chunk(net, 0, CHUNK_LINKS), sizeof *w);
}

void run_start(Run *r)
{
	if (r->program)
		return;
	Ctx *cx = &r->cx;
	if (target_is_auto(&r->opt)) { /* until there is data */
		r->opt.target = "cpu";
		r->target_from = TARGET_OPEN;
	}
	r->target = target_find(r->opt.target);
	if (!r->target)
		fail(cx, MP_BAD_INPUT, target_names(&cx->scratch), "there is no target '%s'", r->opt.target);
	options_check(cx, &r->opt);
	if (option_is_set(&cx->scratch, &r->opt, "fault") && !(r->target->simulator && r->target->simulator->faults))
		fail(cx, MP_BAD_INPUT, "train with --target gf11, or leave --fault out",
		     "target %s has no machine that could be broken: fault is %s", r->target->name,
		     option_get(&cx->scratch, &r->opt, "fault"));
	run_check_error(cx, r->net, run_error(r));
	ticks_check(cx, r->net, &r->opt);
	Caps caps;
	r->target->caps(&caps);
	r->plan = plan_make(cx, r->net, &caps);
	Program *program = r->target->compile(cx, r->plan, &r->opt);
	run_first_weights(cx, r->net, r->target, program, (uint64_t)r->opt.seed);
	r->program = program;
	r->at.best = INFINITY;
}

bool run_can_move(const Run *r, const char *target)
{
	const Target *to = target_find(target);

	return to && to->bits && r->target->bits && strcmp(to->bits(&r->opt), r->target->bits(&r->opt)) == 0;
}

void run_move(Run *r)
{
	Ctx *cx = &r->cx;
	const Target *to = target_find(r->opt.target);
	double *v = NEW(&cx->scratch, net_chunk(r->net, 0, CHUNK_LINKS), double);
	Caps caps;

	assert(to);
	to->caps(&caps);
	Plan *plan = plan_make(cx, r->net, &caps);
	Program *program = to->compile(cx, plan, &r->opt);
	for (int k = 0; k <= rules[r->opt.rule].states; k++)
		for (uint64_t i = 0; i < r->net->links; i += CHUNK_LINKS) {
			r->target->get(r->program, k, i, CHUNK_LINKS, v);
			to->set(program, k, i, CHUNK_LINKS, v);
		}
	r->plan = plan;
	r->program = program;
	r->target = to;
}

void run_check_data(Ctx *cx, const Net *net, const Data *d, bool labelled)
{
	if (d->inputs != net->inputs)
		fail(cx, MP_BAD_INPUT, "change the size of the input groups, or choose the columns of the data",
		     "%s has %u inputs a case, but %s has %u input units", d->name, d->inputs, net->name, net->inputs);
	if (labelled && d->targets != net->outputs)
		fail(cx, MP_BAD_INPUT, "change the size of the output groups, or choose the columns of the data",
		     "%s has %u targets a case, but %s has %u output units", d->name, d->targets, net->name, net->outputs);
}

/* A network that remembers, and data without boundaries: all cases are one sequence. */
static bool one_sequence(const Net *net, const Data *d) { return net->copies && !net->settles && !d->seq; }

uint64_t run_examples(const Net *net, const Data *d) { return one_sequence(net, d) ? 1 : data_examples(d); }

void run_example(const Net *net, const Data *d, uint64_t example, uint64_t *first, uint64_t *count)
{
	*first = 0;
	*count = d->cases;
	if (!one_sequence(net, d))
		data_example(d, example, first, count);
}

const ErrorFn *run_domain(const Net *net, int error)
{
	for (uint32_t i = 0; i < net->groups; i++)
		if (net->group[i].error >= 0)
			return NULL;
	return &error_fns[error];
}

/* Targets of a group, from number `first` of a case on. */
static void check_group_targets(Ctx *cx, const Group *g, int error, uint32_t first, const Data *d)
{
	const ErrorFn *e = &error_fns[group_error(g, error)];
	float *y = NEW(&cx->scratch, d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, y);
		for (uint32_t k = first; k < first + g->size; k++)
			if (y[k] < e->low || y[k] > e->high)
				fail(cx, MP_BAD_INPUT, "bring the targets into that range, or train the group with error squared",
				     "%s: target %u of case %llu, of group '%s', is %g, but error %s needs targets from %g to %g",
				     d->name, k + 1, (unsigned long long)i + 1, g->name, (double)y[k], e->name, e->low, e->high);
	}
}

void run_check_targets(Ctx *cx, const Net *net, const Options *o, const Data *d)
{
	uint32_t first = 0;
	if (run_domain(net, o->error)) {
		targets_check(cx, o, d);
		return;
	}
	for (const Group *g = net->group; g < net->group + net->groups; g++)
		if (g->role == ROLE_OUTPUT) {
			check_group_targets(cx, g, o->error, first, d);
			first += g->size;
		}
}

void run_check_training(Run *r, const Data *d)
{
	run_check_data(&r->cx, r->net, d, true);
	run_check_targets(&r->cx, r->net, &r->opt, d);
}

/* ---- weights of the best epoch ---- */

uint64_t best_bytes(const Run *r) { return r->net->links * (r->target->f64 ? sizeof(double) : sizeof(float)); }

void best_put(Run *r, uint64_t first, uint64_t count, const double *w)
{
	for (uint64_t i = 0; i < count; i++) {
		if (r->target->f64)
			((double *)r->best_weights)[first + i] = w[i];
		else
			((float *)r->best_weights)[first + i] = (float)w[i];
	}
}

double best_weight(const Run *r, uint64_t link)
{
	return r->target->f64 ? ((const double *)r->best_weights)[link] : ((const float *)r->best_weights)[link];
}

void run_fingerprint(Run *r, char out[33])
{
	XXH3_state_t state;
	uint64_t piece = net_chunk(r->net, 0, CHUNK_LINKS);
	double *w = NEW(&r->cx.scratch, piece, double);
	XXH3_128bits_reset(&state);
	for (uint64_t i = 0; i < r->net->links; i += CHUNK_LINKS) {
		r->target->get(r->program, 0, i, CHUNK_LINKS, w);
		hash_weights(&state, w, net_chunk(r->net, i, CHUNK_LINKS), r->target->f64);
	}
	arena_drop(&r->cx.scratch, w, piece, sizeof *w);
	hash_hex(&state, out);
}
