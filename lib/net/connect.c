/* SPDX-License-Identifier: MIT */
/* The `connect` statement.  In: ends and options.  Out: one Block for each pair of ends, checked except for
 * duplicates and cycles, which need the whole network.  Limits are checked before anything is allocated for links. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "parse.h"

enum { GROUP_TRUE = -1 };
#define MAX_BLOCKS 16777216u

static bool end_unit(Parser *p, const Group *g, uint32_t *unit)
{
	uint64_t v;
	if (p->tok.kind != TOK_NUMBER)
		return unexpected(p, "a unit's number",
		                  remedy_printf(p, "write %s[3], or %s[0:2] for units 0, 1 and 2", g->name, g->name));
	if (!lex_whole(&p->tok, &v) || (g->size && v >= g->size)) {
		error_at(p->cx, token_at(p), g->size ? remedy_printf(p, "its units are %s[0:%u]", g->name, g->size - 1) : NULL,
		         "group '%s' has no unit '%.*s'", g->name, token_shown(&p->tok), p->tok.s);
		return false;
	}
	*unit = (uint32_t)v;
	token_next(p);
	return true;
}

/* [3] or [0:29], both included. */
static bool end_slice(Parser *p, End *e)
{
	uint32_t last;
	Token open = p->tok;
	if (e->group == GROUP_TRUE) {
		error_at(p->cx, token_at(p), "write just 'true'", "the true unit is a single unit");
		return false;
	}
	const Group *g = &p->net->group[e->group];
	token_next(p);
	if (!end_unit(p, g, &e->first))
		return false;
	last = e->first;
	if (p->tok.kind == TOK_COLON) {
		token_next(p);
		if (!end_unit(p, g, &last))
			return false;
	}
	if (p->tok.kind != TOK_CLOSE)
		return unexpected(p, "']'", "a slice is written name[FIRST:LAST]");
	if (last < e->first) {
		error_at(p->cx, (Loc){ p->lx.src, open.off }, "write the lower number first",
		         "this slice ends before it begins");
		return false;
	}
	token_next(p);
	e->count = g->size ? last - e->first + 1 : 0;
	e->sliced = true;
	return true;
}

static bool parse_end(Parser *p, End *e)
{
	*e = (End){ .group = GROUP_TRUE, .count = 1, .off = p->tok.off };
	if (!at_word(p, "true") && !(at_word(p, "bias") && !group_named(p))) {
		if (!group_find(p, &e->group))
			return false;
		e->count = p->net->group[e->group].size;
	}
	token_next(p);
	return p->tok.kind != TOK_OPEN || end_slice(p, e);
}

bool parse_ends(Parser *p, Ends *ends)
{
	for (ends->count = 0;;) {
		ends->end = arena_reserve(&p->cx->scratch, ends->end, ends->count, &ends->cap, sizeof *ends->end);
		if (!parse_end(p, &ends->end[ends->count++]))
			return false;
		if (p->tok.kind != TOK_COMMA)
			return true;
		token_next(p);
	}
}

enum {
	GIVEN_KIND = 1,
	GIVEN_LATER = 2,
	GIVEN_WEIGHTS = 4,
	GIVEN_RATE = 8,
	GIVEN_FROZEN = 16,
	GIVEN_DECAY = 32,
	GIVEN_LIMITS = 64,
	GIVEN_TIED = 128
};

static bool option_full(Parser *p, Block *b)
{
	(void)p;
	b->kind = LINK_FULL;
	return true;
}

static bool option_one_to_one(Parser *p, Block *b)
{
	(void)p;
	b->kind = LINK_ONE_TO_ONE;
	return true;
}

static bool option_random(Parser *p, Block *b)
{
	float density;
	b->kind = LINK_RANDOM;
	if (!expect_real(p, "the density", 0, 1, &density))
		return false;
	b->density = density;
	if (!at_word(p, "seed"))
		return true;
	token_next(p);
	if (!lex_whole(&p->tok, &b->seed))
		return unexpected(p, "a seed", "a seed is a whole number from 0 up");
	token_next(p);
	return true;
}

static bool option_weights(Parser *p, Block *b)
{
	size_t off = p->tok.off;
	for (int i = INIT_RANGE + 1; i < INIT_COUNT; i++) {
		if (at_word(p, init_names[i])) {
			b->init = i;
			token_next(p);
			return true;
		}
	}
	if (p->tok.kind == TOK_WORD)
		return unexpected(p, "a weight",
		                  remedy_near(p, init_names + 1, INIT_COUNT - 1,
		                              "write weights LOW HIGH, weights X, or one of: weights fan-in, glorot, he"));
	b->init = INIT_RANGE;
	if (!expect_real(p, "a weight", -HUGE_VALF, HUGE_VALF, &b->low))
		return false;
	if (p->tok.kind != TOK_NUMBER) {
		b->high = fabsf(b->low);
		b->low = 0 - b->high; /* not -b->high: minus zero would show in prints */
		return true;
	}
	if (!expect_real(p, "a weight", -HUGE_VALF, HUGE_VALF, &b->high))
		return false;
	if (b->high < b->low) {
		error_at(p->cx, (Loc){ p->lx.src, off }, "write the lower number first", "no weight is above %g and below %g",
		         b->low, b->high);
		return false;
	}
	return true;
}

static bool option_rate(Parser *p, Block *b)
{
	return expect_exact(p, "a rate factor", 0, HUGE_VALF, &b->rate, &b->exact_rate);
}

static bool option_frozen(Parser *p, Block *b)
{
	(void)p;
	b->frozen = true;
	return true;
}

static bool option_later(Parser *p, Block *b)
{
	(void)p;
	b->later = true;
	return true;
}

static bool option_decay(Parser *p, Block *b)
{
	float single;
	return expect_exact(p, "a share of each weight", 0, 1, &single, &b->decay);
}

/* LOW HIGH, or X for -X X. */
static bool option_limits(Parser *p, Block *b)
{
	size_t off = p->tok.off;
	float single;
	if (!expect_exact(p, "a limit", -HUGE_VALF, HUGE_VALF, &single, &b->limit[0]))
		return false;
	b->limit[1] = fabs(b->limit[0]);
	if (p->tok.kind != TOK_NUMBER)
		b->limit[0] = 0 - b->limit[1];
	else if (!expect_exact(p, "a limit", -HUGE_VALF, HUGE_VALF, &single, &b->limit[1]))
		return false;
	if (b->limit[0] <= b->limit[1])
		return true;
	error_at(p->cx, (Loc){ p->lx.src, off }, "write the lower number first", "no weight is above %g and below %g",
	         b->limit[0], b->limit[1]);
	return false;
}

/* FROM -> TO [transposed]: the ends of a block above. */
static bool option_tied(Parser *p, Block *b)
{
	End from, to;
	size_t off = p->tok.off;
	if (!parse_end(p, &from) || !expect_arrow(p, "write: tied FROM -> TO, the ends of a block above") ||
	    !parse_end(p, &to))
		return false;
	b->transposed = at_word(p, "transposed");
	if (b->transposed)
		token_next(p);
	for (uint32_t i = 0; i < p->net->blocks; i++) {
		const Block *m = &p->net->block[i];
		if (m->from_group == from.group && m->from_first == from.first && m->from_count == from.count &&
		    m->to_group == to.group && m->to_first == to.first && m->to_count == to.count)
			b->tied = i;
	}
	if (b->tied >= 0)
		return true;
	error_at(p->cx, (Loc){ p->lx.src, off }, "name both ends as a connect above does", "there is no such block above");
	return false;
}

typedef struct LinkOption {
	const char *word;
	unsigned given;
	bool (*read)(Parser *p, Block *b);
} LinkOption;
static const LinkOption link_options[] = {
	{ "full", GIVEN_KIND, option_full },          { "one-to-one", GIVEN_KIND, option_one_to_one },
	{ "random", GIVEN_KIND, option_random },      { "later", GIVEN_LATER, option_later },
	{ "weights", GIVEN_WEIGHTS, option_weights }, { "rate", GIVEN_RATE, option_rate },
	{ "frozen", GIVEN_FROZEN, option_frozen },    { "decay", GIVEN_DECAY, option_decay },
	{ "limits", GIVEN_LIMITS, option_limits },    { "tied", GIVEN_TIED, option_tied },
};

static bool link_option(Parser *p, Block *b, unsigned *given)
{
	const char *names[COUNT(link_options)];
	const LinkOption *o = link_options, *end = o + COUNT(link_options);
	while (o < end && !at_word(p, o->word))
		o++;
	if (o == end) {
		for (size_t i = 0; i < COUNT(link_options); i++)
			names[i] = link_options[i].word;
		const char *remedy = remedy_near(
			p, names, COUNT(names),
			"options: full one-to-one random later weights rate frozen decay limits tied; groups are separated "
			"by commas");
		return unexpected(p, "an option", remedy);
	}
	if (*given & o->given) {
		error_at(p->cx, token_at(p), "keep one of them",
		         o->given == GIVEN_KIND ? "'%s' is the second kind of links for this block" : "'%s' is given twice",
		         o->word);
		return false;
	}
	*given |= o->given;
	token_next(p);
	return o->read(p, b);
}

/* A tied block has the kind of links and the settings of the other one. */
static bool tie_fits(Parser *p, Block *b, unsigned given)
{
	const Block *m = &p->net->block[b->tied];
	if (given & ~(unsigned)GIVEN_TIED) {
		error_at(p->cx, b->at, "leave all but 'tied' out", "a tied block has the links and settings of the other one");
		return false;
	}
	b->kind = m->kind;
	b->density = m->density;
	b->seed = m->seed;
	b->init = m->init;
	b->low = m->low;
	b->high = m->high;
	uint32_t from = b->transposed ? b->to_count : b->from_count, to = b->transposed ? b->from_count : b->to_count;
	if (from != m->from_count || to != m->to_count) {
		error_at(p->cx, b->at, b->transposed ? "its left side is the right side there" : "or is it 'transposed'?",
		         "this block is %u by %u, the one that it is tied to %u by %u", b->from_count, b->to_count,
		         m->from_count, m->to_count);
		return false;
	}
	if ((b->transposed && (m->kind == LINK_RANDOM || m->from_group == GROUP_TRUE)) || block_is_later(m) ||
	    block_is_later(b)) {
		error_at(p->cx, b->at, "use full or one-to-one links between two groups",
		         "random links cannot be tied transposed, nor links inside a group at all");
		return false;
	}
	return true;
}

/* Checks one pair of ends; `b` has all but the number of links. */
static bool block_fits(Parser *p, const Block *b, unsigned given)
{
	const Net *net = p->net;
	const Group *to = &net->group[b->to_group];
	const char *from = b->from_group == GROUP_TRUE ? "true" : net->group[b->from_group].name;
	bool inside = b->from_group == b->to_group;
	assert(b->later == ((given & GIVEN_LATER) != 0));
	if (to->role == ROLE_INPUT || to->role == ROLE_CONTEXT) {
		const char *remedy = to->role == ROLE_INPUT ? "link from it, or give it another role"
		                                            : remedy_printf(p, "fill it with: copy GROUP -> %s", to->name);
		error_at(p->cx, b->at, remedy, "no links can go into %s group '%s'", role_names[to->role], to->name);
		return false;
	}
	if (b->kind == LINK_ONE_TO_ONE && b->from_count != b->to_count) {
		error_at(p->cx, b->at, "choose slices of the same size, or make it 'full'",
		         "one-to-one needs two sides of the same size: '%s' has %u here, '%s' has %u", from, b->from_count,
		         to->name, b->to_count);
		return false;
	}
	if ((given & GIVEN_LATER) && (!inside || b->kind == LINK_ONE_TO_ONE)) {
		error_at(p->cx, b->at, "leave 'later' out", "'later' is for full or random links inside one group");
		return false;
	}
	return true;
}

static void block_add(Parser *p, const Block *b)
{
	Net *net = p->net;
	p->pairs += b->links;
	if (p->pairs > MAX_LINKS)
		net_too_large(p->cx, b);
	if (net->blocks == MAX_BLOCKS)
		fail_at(p->cx, b->at, "use slices or whole groups instead of so many single links",
		        "there are more than %u blocks of links", MAX_BLOCKS);
	net->block = arena_reserve(&p->cx->keep, net->block, net->blocks, &p->block_cap, sizeof *net->block);
	net->block[net->blocks++] = *b;
}

static bool connect_pair(Parser *p, Block b, const End *from, const End *to, unsigned given)
{
	b.at = (Loc){ p->lx.src, to->off };
	if (to->group == GROUP_TRUE) {
		error_at(p->cx, b.at, "write: connect true -> GROUP", "the true unit is always 1: no links can go into it");
		return false;
	}
	if (from->count == 0 || to->count == 0)
		return false;
	b.from_group = from->group;
	b.from_first = from->first;
	b.from_count = from->count;
	b.to_group = to->group;
	b.to_first = to->first;
	b.to_count = to->count;
	bool single = from->sliced && to->sliced && from->count == 1 && to->count == 1;
	if (single && b.kind != LINK_RANDOM && b.tied < 0)
		b.kind = LINK_SINGLE;
	if ((b.tied >= 0 && !tie_fits(p, &b, given)) || !block_fits(p, &b, given))
		return false;
	b.links = block_pairs(&b);
	block_add(p, &b);
	return true;
}

bool parse_connect(Parser *p)
{
	static const char *const usage = "write: connect FROM -> TO";
	Block b = { .kind = LINK_FULL, .seed = 1, .init = default_sets[p->net->defaults].init, .rate = 1, .exact_rate = 1 };
	unsigned given = 0;
	block_defaults(&b);
	if (!parse_ends(p, &p->left) || !expect_arrow(p, usage) || !parse_ends(p, &p->right))
		return false;
	while (!at_end(p))
		if (!link_option(p, &b, &given))
			return false;
	for (size_t i = 0; i < p->left.count; i++)
		for (size_t j = 0; j < p->right.count; j++)
			if (!connect_pair(p, b, &p->left.end[i], &p->right.end[j], given))
				return false;
	return true;
}
