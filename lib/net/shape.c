/* SPDX-License-Identifier: MIT */
/* Noise, and settings of single groups and blocks: error function, radii, gain, decay, limits, shared weights.
 *
 * In: groups and blocks as parsed.  Out: the same with settings that fit together: each block has its own decay, a tied
 * one all settings of the block whose weights it shares; which links share a weight; statements that say all this. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "net.h"

const char *const noise_names[NOISE_KINDS] = { "none", "gaussian", "uniform", "dropout" };

void group_defaults(Group *g)
{
	memset(g->noise, 0, sizeof g->noise);
	g->gain = g->error_scale = 1;
	g->error = -1;
	g->criterion = g->decay = -1;
	g->target_radius = g->zero_radius = 0;
}

void block_defaults(Block *b)
{
	b->noise = (Noise){ 0 };
	b->decay = -1;
	b->limit[0] = -INFINITY;
	b->limit[1] = INFINITY;
	b->tied = -1;
	b->transposed = false;
}

/* ---- what they mean ---- */

bool block_alike(const Block *a, const Block *b)
{
	return a->rate == b->rate && a->frozen == b->frozen && a->decay == b->decay && a->limit[0] == b->limit[0] &&
	       a->limit[1] == b->limit[1] && a->noise.kind == b->noise.kind && a->noise.exact == b->noise.exact;
}

int group_error(const Group *g, int option) { return g->error < 0 ? option : g->error; }

double group_criterion(const Group *g, double option) { return g->criterion < 0 ? option : g->criterion; }

bool group_has_radius(const Group *g) { return g->target_radius > 0 || g->zero_radius > 0; }

double target_near(const Group *g, double out, double target)
{
	double distance = out - target;
	if (fabs(distance) <= fmax(g->target_radius, g->zero_radius))
		return NAN;
	return distance > 0 ? target + g->target_radius : target - g->target_radius;
}

/* ---- ties ---- */

static uint64_t tied_link(const Net *net, const Block *b, Unit from, Unit to)
{
	const Block *m = &net->block[b->tied];
	uint32_t s = from - (b->from_group < 0 ? 0 : net->group[b->from_group].first + b->from_first);
	uint32_t t = to - (net->group[b->to_group].first + b->to_first);
	Unit first = m->from_group < 0 ? 0 : net->group[m->from_group].first + m->from_first,
		 target = net->group[m->to_group].first + m->to_first;
	uint64_t link = link_between(net, first + (b->transposed ? t : s), target + (b->transposed ? s : t));
	assert(link < net->links);
	return link;
}

uint64_t *net_ties(Arena *a, const Net *net)
{
	bool any = false;
	for (uint32_t i = 0; i < net->blocks; i++)
		any |= net->block[i].tied >= 0;
	if (!any)
		return NULL;
	uint64_t *tie = NEW(a, net->links, uint64_t);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			const Block *b = net_block(net, u, l);
			tie[l] = b->tied < 0 ? l : tied_link(net, b, net_source(net, u, l), u);
		}
	return tie;
}

/* The first of a chain of tied blocks; each was declared before those that are tied to it. */
static void tie_block(Net *net, Block *b)
{
	const Block *m = &net->block[b->tied];
	if (m->tied >= 0) { /* it has been resolved itself */
		b->transposed ^= m->transposed;
		b->tied = m->tied;
		m = &net->block[b->tied];
	}
	b->rate = m->rate;
	b->exact_rate = m->exact_rate;
	b->frozen = m->frozen;
	b->decay = m->decay;
	b->noise = m->noise;
	memcpy(b->limit, m->limit, sizeof b->limit);
}

/* ---- checks ---- */

static bool has_noise(const Group *g)
{
	return g->noise[NOISE_AT_NET].kind || g->noise[NOISE_AT_OUTPUT].kind || g->noise[NOISE_AT_DROPOUT].kind;
}

static void check_group(Ctx *cx, const Group *g)
{
	bool output = g->role == ROLE_OUTPUT, computes = output || g->role == ROLE_HIDDEN;
	bool scored = g->error >= 0 || g->error_scale != 1 || g->criterion >= 0 || group_has_radius(g);
	if (scored && !output)
		error_at(cx, g->at, "leave it out: only output groups have targets",
		         "%s group '%s' has no error: error, error-scale, criterion and radii are of output groups",
		         role_names[g->role], g->name);
	if (!computes && (g->gain != 1 || g->decay >= 0))
		error_at(cx, g->at, "leave it out", "%s group '%s' computes nothing: it has no %s", role_names[g->role],
		         g->name, g->gain != 1 ? "gain" : "decay");
	if (g->role == ROLE_CONTEXT && has_noise(g))
		error_at(cx, g->at, "disturb the group that it is a copy of",
		         "context group '%s' holds what another group was: it has no noise of its own", g->name);
	if (g->role == ROLE_INPUT && g->noise[NOISE_AT_NET].kind)
		error_at(cx, g->at, "leave 'net' out: the inputs themselves are disturbed then",
		         "input group '%s' has no net inputs", g->name);
	if (output && g->error >= 0 && !error_fits(g->error, g->fn))
		error_at(cx, g->at,
		         "squared goes with all functions, cross-entropy with sigmoid or softmax, divergence with softmax",
		         "error %s makes no sense for the %s units of '%s'", error_fns[g->error].name, unit_fns[g->fn].name,
		         g->name);
}

static bool block_shaped(const Net *net, const Block *b)
{
	return b->noise.kind || b->decay >= 0 || isfinite(b->limit[0]) || isfinite(b->limit[1]) || b->tied >= 0 ||
	       net->group[b->to_group].decay >= 0;
}

static const char *group_shaped(const Group *g)
{
	return g->noise[NOISE_AT_DROPOUT].kind ? "dropout"
	       : has_noise(g)                  ? "noise"
	       : g->gain != 1                  ? "gain"
	       : g->error >= 0                 ? "an error function of its own"
	       : g->error_scale != 1           ? "error-scale"
	       : g->criterion >= 0             ? "criterion"
	       : g->target_radius > 0          ? "target-radius"
	       : g->zero_radius > 0            ? "zero-error-radius"
	                                       : NULL;
}

bool group_is_shaped(const Group *g) { return group_shaped(g) != NULL; }

void net_shape(Ctx *cx, Net *net)
{
	for (uint32_t i = 0; i < net->groups; i++) {
		check_group(cx, &net->group[i]);
		net->noisy |= has_noise(&net->group[i]);
		net->shaped |= group_shaped(&net->group[i]) != NULL;
	}
	for (uint32_t i = 0; i < net->blocks; i++) {
		Block *b = &net->block[i];
		net->shaped |= block_shaped(net, b);
		if (b->decay < 0)
			b->decay = net->group[b->to_group].decay;
		if (b->tied >= 0)
			tie_block(net, b);
		net->noisy |= b->noise.kind != NOISE_NONE;
	}
}

void net_refuse_shaped(Ctx *cx, const Net *net, const char *target)
{
	static const char *const remedy = "train it on target cpu or ref";
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		if (group_shaped(g))
			fail_at(cx, g->at, remedy, "target %s does not have %s, which group '%s' states", target, group_shaped(g),
			        g->name);
	}
	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		if (block_shaped(net, b))
			fail_at(cx, b->at, remedy, "target %s does not have %s, which this block states", target,
			        b->tied >= 0                                     ? "shared weights"
			        : b->noise.kind                                  ? "noise of weights"
			        : isfinite(b->limit[0]) || isfinite(b->limit[1]) ? "limits of weights"
			                                                         : "decay of single blocks");
	}
}

void net_refuse_gain(Ctx *cx, const Net *net, const char *format)
{
	for (const Group *g = net->group; g < net->group + net->groups; g++)
		if (g->gain != 1)
			fail_at(cx, g->at, "multiply the weights of the links into it instead, or keep the network as .safetensors",
			        "%s files have no gain, which group '%s' states", format, g->name);
}

/* ---- as text ---- */

static void word_print(const char *word, double v, Buf *out)
{
	buf_printf(out, *word ? " %s " : " ", word);
	exact_print(out, v, false);
}

void settings_print_group(const Group *g, Buf *out)
{
	if (g->gain != 1)
		word_print("gain", g->gain, out);
	if (g->error >= 0)
		buf_printf(out, " error %s", error_fns[g->error].name);
	if (g->error_scale != 1)
		word_print("error-scale", g->error_scale, out);
	if (g->criterion >= 0)
		word_print("criterion", g->criterion, out);
	if (g->target_radius > 0)
		word_print("target-radius", g->target_radius, out);
	if (g->zero_radius > 0)
		word_print("zero-error-radius", g->zero_radius, out);
	if (g->decay >= 0)
		word_print("decay", g->decay, out);
}

/* What a tied block has, or a group states for all links into it, is not repeated. */
void settings_print_block(const Net *net, const Block *b, Buf *out)
{
	if (b->tied >= 0) {
		buf_puts(out, " tied ");
		block_state_end(net, &net->block[b->tied], false, out);
		buf_puts(out, " -> ");
		block_state_end(net, &net->block[b->tied], true, out);
		buf_puts(out, b->transposed ? " transposed" : "");
		return;
	}
	if (b->decay != net->group[b->to_group].decay)
		word_print("decay", b->decay, out);
	if (isfinite(b->limit[0]) || isfinite(b->limit[1])) {
		word_print("limits", b->limit[0], out);
		buf_puts(out, " ");
		exact_print(out, b->limit[1], false);
	}
}

/* " gaussian 0.1" */
static void noise_print(const Noise *n, Buf *out)
{
	buf_printf(out, " %s ", noise_names[n->kind]);
	exact_print(out, n->exact, false);
}

static const char *without_blank(const Buf *b) { return b->len ? b->s + 1 : ""; }

const char *group_settings(Arena *a, const Group *g)
{
	static const char *const places[NOISE_PLACES] = { " noise net", " noise", "" };
	Buf b = { .arena = a };
	settings_print_group(g, &b);
	for (int place = 0; place < NOISE_PLACES; place++)
		if (g->noise[place].kind) {
			buf_puts(&b, places[place]);
			noise_print(&g->noise[place], &b);
		}
	return without_blank(&b);
}

const char *block_settings(Arena *a, const Net *net, const Block *b)
{
	Buf out = { .arena = a };
	settings_print_block(net, b, &out);
	if (b->noise.kind) {
		buf_puts(&out, " noise");
		noise_print(&b->noise, &out);
	}
	return without_blank(&out);
}

void noise_print_all(const Net *net, Buf *out)
{
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		for (int place = 0; place < NOISE_PLACES; place++) {
			const Noise *n = &g->noise[place];
			if (!n->kind)
				continue;
			buf_printf(out, "%s %s%s", place == NOISE_AT_DROPOUT ? "dropout" : "noise", g->name,
			           place == NOISE_AT_NET ? " net" : "");
			if (place == NOISE_AT_DROPOUT)
				word_print("", n->exact, out);
			else
				noise_print(n, out);
			buf_puts(out, "\n");
		}
	}
	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		if (!b->noise.kind || b->tied >= 0)
			continue;
		buf_puts(out, "noise ");
		block_state_end(net, b, false, out);
		buf_puts(out, " -> ");
		block_state_end(net, b, true, out);
		noise_print(&b->noise, out);
		buf_puts(out, "\n");
	}
}
