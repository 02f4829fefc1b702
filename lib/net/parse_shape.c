/* SPDX-License-Identifier: MIT */
/* The statements `noise` and `dropout`, and what a group may state beside its function and role.  In: tokens.  Out:
 * fields of groups and blocks; shape.c checks them. */
#include <math.h>
#include <string.h>

#include "parse.h"

/* ---- words of a group ---- */

typedef struct GroupSetting {
	const char *word, *what;
	size_t offset;
	float low, high;
} GroupSetting;
static const GroupSetting settings[] = {
	{ "gain", "a gain", offsetof(Group, gain), 1e-6f, 1e6f },
	{ "error-scale", "a factor on the error", offsetof(Group, error_scale), 0, 1e6f },
	{ "criterion", "a criterion", offsetof(Group, criterion), 0, 1e9f },
	{ "target-radius", "a radius", offsetof(Group, target_radius), 0, 1e9f },
	{ "zero-error-radius", "a radius", offsetof(Group, zero_radius), 0, 1e9f },
	{ "decay", "a share of each weight", offsetof(Group, decay), 0, 1 },
};
enum { GIVEN_ERROR = 1u << COUNT(settings) };

static bool given_once(Parser *p, unsigned bit)
{
	if (p->given & bit) {
		error_at(p->cx, token_at(p), "keep one of them", "'%.*s' is given twice", token_shown(&p->tok), p->tok.s);
		return false;
	}
	p->given |= bit;
	return true;
}

static bool group_error_word(Parser *p, Group *g)
{
	const char *names[ERR_COUNT];
	if (!given_once(p, GIVEN_ERROR))
		return false;
	token_next(p);
	for (int i = 0; i < ERR_COUNT; i++) {
		names[i] = error_fns[i].name;
		if (at_word(p, names[i]))
			g->error = i;
	}
	if (g->error < 0)
		return unexpected(p, "an error function",
		                  remedy_near(p, names, ERR_COUNT, "error functions: squared, cross-entropy, divergence"));
	token_next(p);
	return true;
}

bool group_setting(Parser *p, Group *g, bool *taken)
{
	*taken = at_word(p, "error");
	if (*taken)
		return group_error_word(p, g);
	for (size_t i = 0; i < COUNT(settings); i++) {
		float single;
		if (!at_word(p, settings[i].word))
			continue;
		*taken = true;
		if (!given_once(p, 1u << i))
			return false;
		token_next(p);
		return expect_exact(p, settings[i].what, settings[i].low, settings[i].high, &single,
		                    (double *)(void *)((char *)g + settings[i].offset));
	}
	return true;
}

/* ---- noise ---- */

static bool parse_amount(Parser *p, Noise *n)
{
	for (int i = NOISE_GAUSSIAN; i <= NOISE_UNIFORM; i++)
		if (at_word(p, noise_names[i]))
			n->kind = i;
	if (!n->kind)
		return unexpected(p, "the kind of noise",
		                  "write gaussian and the standard deviation, or uniform and how far it reaches");
	token_next(p);
	if (!expect_exact(p, "an amount of noise", 0, 1e6f, &n->amount, &n->exact))
		return false;
	if (n->exact == 0)
		n->kind = NOISE_NONE;
	return true;
}

/* All blocks above that lead from a part of one end to a part of the other. */
static bool noise_of_links(Parser *p, const End *from, const End *to, const Noise *n)
{
	bool any = false;
	for (uint32_t i = 0; i < p->net->blocks; i++) {
		Block *b = &p->net->block[i];
		bool starts = b->from_group == from->group && b->from_first >= from->first &&
		              b->from_first + b->from_count <= from->first + from->count;
		if (!starts || b->to_group != to->group || b->to_first < to->first ||
		    b->to_first + b->to_count > to->first + to->count)
			continue;
		b->noise = *n;
		any = true;
	}
	if (!any)
		error_at(p->cx, (Loc){ p->lx.src, from->off }, "write it below the connect, for ends that contain its ends",
		         "there are no such links above");
	return any;
}

static bool noise_of_group(Parser *p, const End *e, int place, const Noise *n)
{
	if (e->group < 0 || e->sliced) {
		error_at(p->cx, (Loc){ p->lx.src, e->off }, "name a whole group; or write FROM -> TO for noise of weights",
		         e->group < 0 ? "the true unit is always 1" : "noise is that of a whole group");
		return false;
	}
	p->net->group[e->group].noise[place] = *n;
	return true;
}

static bool noise_of_groups(Parser *p, int place, const Noise *n)
{
	for (size_t i = 0; i < p->left.count; i++)
		if (!noise_of_group(p, &p->left.end[i], place, n))
			return false;
	return true;
}

bool parse_noise(Parser *p)
{
	static const char *const usage = "write: noise GROUP [net] gaussian X, or: noise FROM -> TO uniform X";
	Noise n = { 0 };
	if (!parse_ends(p, &p->left))
		return false;
	bool links = p->tok.kind == TOK_ARROW, net = at_word(p, "net");
	if (links) {
		token_next(p);
		if (!parse_ends(p, &p->right))
			return false;
	} else if (net || at_word(p, "output")) {
		token_next(p);
	}
	if (!parse_amount(p, &n) || (!at_end(p) && !unexpected(p, "the end of the statement", usage)))
		return false;
	if (!links)
		return noise_of_groups(p, net ? NOISE_AT_NET : NOISE_AT_OUTPUT, &n);
	for (size_t i = 0; i < p->left.count; i++)
		for (size_t k = 0; k < p->right.count; k++)
			if (!noise_of_links(p, &p->left.end[i], &p->right.end[k], &n))
				return false;
	return true;
}

bool parse_dropout(Parser *p)
{
	Noise n = { .kind = NOISE_DROPOUT };
	if (!parse_ends(p, &p->left) || !expect_exact(p, "a probability", 0, 0.999f, &n.amount, &n.exact) ||
	    (!at_end(p) && !unexpected(p, "the end of the statement", "write: dropout GROUP 0.2")))
		return false;
	if (n.exact == 0)
		n.kind = NOISE_NONE;
	return noise_of_groups(p, NOISE_AT_DROPOUT, &n);
}
