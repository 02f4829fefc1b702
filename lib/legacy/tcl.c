/* SPDX-License-Identifier: MIT */
/* The commands of a LENS script that describe a network.  In: Tcl, of which words, braces, quotes, comments, `set` and
 * $NAME are understood.  Out: groups, projections and settings; any other command is named with its line. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lens_net.h"

enum { MAX_WORDS = 200 };
typedef struct Script {
	LensNet *n;
	Ctx *cx;
	const Src *src;
	size_t at;
	Text word[MAX_WORDS]; /* of the command, variables put in */
	Loc loc[MAX_WORDS];
	uint32_t words;
	bool opaque; /* some word holds a command in brackets, or an unknown variable */
	Text *name, *value;
	uint64_t vars, name_cap, value_cap;
} Script;

/* ---- words -------------------------------------------------------------------------------------- */

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static char byte(const Script *s, size_t at) { return at < s->src->len ? s->src->text[at] : '\0'; }

static bool continues(const Script *s, size_t at)
{
	return byte(s, at) == '\\' && (byte(s, at + 1) == '\n' || (byte(s, at + 1) == '\r' && byte(s, at + 2) == '\n'));
}

static void skip_blanks(Script *s)
{
	for (;;) {
		if (continues(s, s->at))
			s->at += byte(s, s->at + 1) == '\r' ? 3 : 2;
		else if (byte(s, s->at) == ' ' || byte(s, s->at) == '\t' || byte(s, s->at) == '\r')
			s->at++;
		else
			return;
	}
}

static const Text *variable(const Script *s, Text name)
{
	for (uint64_t i = s->vars; i-- > 0;)
		if (s->name[i].len == name.len && memcmp(s->name[i].s, name.s, name.len) == 0)
			return &s->value[i];
	return NULL;
}

/* The text with variables put in. */
static Text substitute(Script *s, Text t)
{
	Buf b = { .arena = &s->cx->scratch };
	if (!memchr(t.s, '$', t.len) && !memchr(t.s, '[', t.len))
		return t;
	buf_puts(&b, "");
	for (uint32_t i = 0; i < t.len; i++) {
		if (t.s[i] == '[')
			s->opaque = true;
		if (t.s[i] != '$') {
			buf_add(&b, &t.s[i], 1);
			continue;
		}
		bool braced = i + 1 < t.len && t.s[i + 1] == '{';
		uint32_t first = i + 1 + braced, end = first;
		while (end < t.len && (braced ? t.s[end] != '}' : is_name(t.s[end])))
			end++;
		const Text *v = variable(s, (Text){ t.s + first, end - first });
		if (v && b.len + v->len < 1 << 16)
			buf_add(&b, v->s, v->len);
		else
			s->opaque = true;
		i = end - 1 + braced;
	}
	return (Text){ b.s, (uint32_t)b.len };
}

/* {...} or [...]: where the matching bracket stands; fails if there is none. */
static size_t matching(const Script *s, size_t at, char open, char close)
{
	size_t depth = 0, from = at;
	for (; at < s->src->len; at++) {
		char c = byte(s, at);
		if (c == '\\')
			at++;
		else if (c == open)
			depth++;
		else if (c == close && --depth == 0)
			return at;
	}
	fail_at(s->cx, (Loc){ s->src, from }, "close it", "the %c does not end", open);
}

static void add_word(Script *s, size_t from, size_t to, size_t at, bool plain)
{
	if (s->words == MAX_WORDS)
		fail_at(s->cx, (Loc){ s->src, at }, "commands are shorter", "the command has more than %d words", MAX_WORDS);
	Text t = { s->src->text + from, (uint32_t)min_u64(to - from, UINT32_MAX) };
	s->loc[s->words] = (Loc){ s->src, at };
	s->word[s->words++] = plain ? t : substitute(s, t);
}

/* The next command; false at the end. */
static bool next_command(Script *s)
{
	s->words = 0;
	s->opaque = false;
	for (;;) { /* to its first word */
		skip_blanks(s);
		char c = byte(s, s->at);
		if (s->at >= s->src->len)
			return false;
		if (c == '#') {
			for (; s->at < s->src->len && byte(s, s->at) != '\n'; s->at++)
				if (continues(s, s->at))
					s->at++;
		} else if (c == '\n' || c == ';') {
			s->at++;
		} else {
			break;
		}
	}
	for (;;) {
		skip_blanks(s);
		size_t from = s->at, end;
		char c = byte(s, from);
		if (from >= s->src->len || c == '\n' || c == ';')
			return true;
		if (c == '{') {
			end = matching(s, from, '{', '}');
			add_word(s, from + 1, end, from, true);
			s->at = end + 1;
		} else if (c == '"') {
			for (end = from + 1; end < s->src->len && byte(s, end) != '"'; end++)
				if (byte(s, end) == '\\')
					end++;
			if (end >= s->src->len)
				fail_at(s->cx, (Loc){ s->src, from }, "close it", "the text in quotes does not end");
			add_word(s, from + 1, end, from, false);
			s->at = end + 1;
		} else {
			for (end = from; end < s->src->len && !strchr(" \t\r\n;", byte(s, end)) && !continues(s, end); end++)
				if (byte(s, end) == '[')
					end = matching(s, end, '[', ']');
			add_word(s, from, end, from, false);
			s->at = end;
		}
	}
}

/* ---- numbers ------------------------------------------------------------------------------------ */

static bool is_whole(Text t, uint64_t *v)
{
	*v = 0;
	for (uint32_t i = 0; i < t.len; i++) {
		if (t.s[i] < '0' || t.s[i] > '9' || *v > UINT32_MAX)
			return false;
		*v = *v * 10 + (uint64_t)(t.s[i] - '0');
	}
	return t.len > 0;
}

static bool is_real(Text t, double *v)
{
	float f;
	const char *end = t.len ? number_read(t.s, t.s + t.len, &f) : NULL;
	if (!end || end != t.s + t.len || !isfinite(f))
		return false;
	*v = number_double(t.s, end);
	return true;
}

static uint64_t need_whole(Script *s, uint32_t i, const char *what, uint64_t low, uint64_t high)
{
	uint64_t v = 0;
	if (i >= s->words)
		fail_at(s->cx, s->loc[s->words - 1], NULL, "%s should follow", what);
	if (!is_whole(s->word[i], &v) || v < low || v > high)
		fail_at(s->cx, s->loc[i], "a whole number", "%s cannot be '%s'", what, text_shown(s->cx, s->word[i]));
	return v;
}

static double need_real(Script *s, uint32_t i, const char *what)
{
	double v = 0;
	if (i >= s->words)
		fail_at(s->cx, s->loc[s->words - 1], NULL, "%s should follow", what);
	if (!is_real(s->word[i], &v))
		fail_at(s->cx, s->loc[i], "a number", "%s cannot be '%s'", what, text_shown(s->cx, s->word[i]));
	return v;
}

/* -p, -proj, -projection: any beginning of the long word. */
static bool is_flag(Text t, const char *word)
{
	return t.len >= 2 && t.s[0] == '-' && t.len - 1 <= strlen(word) && memcmp(t.s + 1, word, t.len - 1) == 0;
}

/* ---- networks and groups ------------------------------------------------------------------------ */

static LensGroupDef *need_group(Script *s, Text name, Loc at)
{
	LensGroupDef *g = lens_group(s->n, name);
	if (!g)
		fail_at(s->cx, at, "add it with addGroup first", "there is no group '%s'", text_shown(s->cx, name));
	return g;
}

static void full_links(LensNet *n, const LensGroupDef *from, const LensGroupDef *to, Loc at)
{
	lens_links(n, (uint32_t)(from - n->group), (uint32_t)(to - n->group), at)->kind = LINK_FULL;
}

static Text numbered(Script *s, const char *name, uint32_t count)
{
	Buf b = { .arena = &s->cx->scratch };
	buf_puts(&b, name);
	if (count > 1)
		buf_printf(&b, "%" PRIu32, count);
	return (Text){ b.s, (uint32_t)b.len };
}

/* One layer of addNet from word i on: units and types; returns the word after it. */
static uint32_t add_layer(Script *s, uint32_t i, bool first, uint32_t count[ROLE_COUNT], uint32_t *last)
{
	LensNet *n = s->n;
	LensGroupDef types = { .fn = -1, .error = -1 };
	Loc at = s->loc[i];
	uint64_t units = need_whole(s, i++, "the size of a group", 1, MAX_UNITS), other;
	uint32_t begin = i;
	for (; i < s->words && !is_whole(s->word[i], &other); i++) {
		types.flags |= text_is(s->word[i], "ELMAN") ? LENS_IS_ELMAN : 0;
		types.flags |= text_is(s->word[i], "INPUT") ? LENS_IS_INPUT : 0;
		types.flags |= text_is(s->word[i], "OUTPUT") ? LENS_IS_OUTPUT : 0;
	}
	bool elman = types.flags & LENS_IS_ELMAN, fixed = types.flags & (LENS_IS_INPUT | LENS_IS_OUTPUT);
	int role = (types.flags & LENS_IS_INPUT) || (first && !fixed)            ? ROLE_INPUT
	           : (types.flags & LENS_IS_OUTPUT) || (i == s->words && !fixed) ? ROLE_OUTPUT
	                                                                         : ROLE_HIDDEN;
	static const char *const names[] = { "input", "hidden", "output" };
	static const char *const contexts[] = { "inContext", "context", "outContext" };
	uint32_t context = LENS_BIAS;
	count[role]++;
	if (elman) { /* it comes before its source */
		LensGroupDef *g = lens_add_group(n, numbered(s, count[role] > 1 ? contexts[role] : "context", count[role]),
		                                 (uint32_t)units, at);
		g->flags = LENS_IS_ELMAN;
		g->source = n->groups;
		lens_finish_group(n, g);
		context = n->groups - 1;
	}
	LensGroupDef *g = lens_add_group(n, numbered(s, names[role], count[role]), (uint32_t)units, at);
	for (uint32_t k = begin; k < i; k++)
		if (!text_is(s->word[k], "ELMAN"))
			lens_type(n, g, s->word[k], s->loc[k]);
	g->flags |= role == ROLE_INPUT ? LENS_IS_INPUT : role == ROLE_OUTPUT ? LENS_IS_OUTPUT : 0;
	lens_finish_group(n, g);
	uint32_t own = n->groups - 1;
	if (context != LENS_BIAS)
		full_links(n, &n->group[context], &n->group[own], at);
	if (*last != LENS_BIAS)
		full_links(n, &n->group[*last], &n->group[own], at);
	*last = own;
	return i;
}

/* The next name of a list; false at its end. */
static bool list_next(Text *list, Text *name)
{
	while (list->len && strchr(" \t\r\n", *list->s)) {
		list->s++;
		list->len--;
	}
	*name = (Text){ list->s, 0 };
	while (name->len < list->len && !strchr(" \t\r\n", list->s[name->len]))
		name->len++;
	list->s += name->len;
	list->len -= name->len;
	return name->len > 0;
}

/* Words in braces, such as {10 TANH}, as words of their own. */
static void split_words(Script *s, uint32_t from)
{
	Text word[MAX_WORDS], left, one;
	Loc loc[MAX_WORDS];
	uint32_t words = 0;
	for (uint32_t i = from; i < s->words; i++)
		for (left = s->word[i]; list_next(&left, &one);) {
			if (from + words == MAX_WORDS)
				fail_at(s->cx, s->loc[i], "commands are shorter", "the command has more than %d words", MAX_WORDS);
			loc[words] = s->loc[i];
			word[words++] = one;
		}
	memcpy(s->word + from, word, words * sizeof *word);
	memcpy(s->loc + from, loc, words * sizeof *loc);
	s->words = from + words;
}

static void add_net(Script *s)
{
	LensNet *n = s->n;
	uint32_t i = 2, count[ROLE_COUNT] = { 0 }, last = LENS_BIAS;
	uint64_t size;
	if (n->made) {
		old_lost(n->o, s->loc[0], "a second network");
		return;
	}
	n->made = true;
	n->net_at = s->loc[0];
	if (s->words < 2)
		fail_at(s->cx, s->loc[0], "addNet NAME", "the network has no name");
	split_words(s, 2);
	for (; i < s->words && s->word[i].len && s->word[i].s[0] == '-'; i += 2) {
		uint64_t v = need_whole(s, i + 1, "a number of intervals or ticks", 1, 1000000);
		if (is_flag(s->word[i], "intervals"))
			n->intervals = v;
		else if (is_flag(s->word[i], "ticks"))
			n->ticks = v;
		else
			old_lost(n->o, s->loc[i], "the option %s", text_shown(s->cx, s->word[i]));
	}
	for (; i < s->words && !is_whole(s->word[i], &size); i++) {
		if (text_is(s->word[i], "CONTINUOUS"))
			n->continuous = true;
		else if (!text_is(s->word[i], "SRBPTT") && !text_is(s->word[i], "STANDARD"))
			old_lost(n->o, s->loc[i], "the network type %s", text_shown(s->cx, s->word[i]));
	}
	for (bool first = true; i < s->words; first = false)
		i = add_layer(s, i, first, count, &last);
}

static void add_group(Script *s)
{
	if (s->words < 3)
		fail_at(s->cx, s->loc[0], "addGroup NAME SIZE TYPE ...", "name and size of the group should follow");
	uint32_t size = (uint32_t)need_whole(s, 2, "the size of a group", 1, MAX_UNITS);
	LensGroupDef *g = lens_add_group(s->n, s->word[1], size, s->loc[1]);
	g->source = LENS_BIAS;
	for (uint32_t i = 3; i < s->words; i++)
		lens_type(s->n, g, s->word[i], s->loc[i]);
	lens_finish_group(s->n, g);
}

static void delete_groups(Script *s)
{
	for (uint32_t i = 1; i < s->words; i++)
		if (text_is(s->word[i], "bias")) { /* no group has bias links any more */
			uint64_t kept = 0;
			for (uint64_t k = 0; k < s->n->links; k++)
				if (s->n->link[k].from != LENS_BIAS)
					s->n->link[kept++] = s->n->link[k];
			s->n->links = kept;
		} else {
			old_lost(s->n->o, s->loc[i], "the deletion of group '%s'", text_shown(s->cx, s->word[i]));
		}
}

/* ---- projections -------------------------------------------------------------------------------- */

static void project(Script *s, const LensLinks *like, uint32_t from, uint32_t to)
{
	LensNet *n = s->n;
	LensLinks *l = lens_links(n, (uint32_t)from, (uint32_t)to, s->loc[0]);
	Loc at = l->at;
	*l = *like;
	l->from = from;
	l->to = to;
	l->at = at;
}

static void connect_groups(Script *s)
{
	LensNet *n = s->n;
	LensLinks like = { .kind = LINK_FULL, .mean = NAN, .range = NAN };
	uint32_t lists = 0;
	bool both = false, strong = false;
	for (uint32_t i = 1; i < s->words; i++) {
		Text w = s->word[i];
		double number;
		if (!w.len || w.s[0] != '-' || is_real(w, &number)) {
			if (lists + 1 != i)
				fail_at(s->cx, s->loc[i], "groups first, then options", "a list of groups stands after an option");
			lists++;
		} else if (is_flag(w, "bidirectional")) {
			both = true;
		} else if (is_flag(w, "projection")) {
			if (++i >= s->words)
				fail_at(s->cx, s->loc[i - 1], "FULL, RANDOM or ONE_TO_ONE", "a projection type should follow");
			Text t = s->word[i];
			bool one = t.len && memcmp(t.s, "ONE_TO_ONE", t.len < 10 ? t.len : 10) == 0;
			bool full = t.len && memcmp(t.s, "FULL", t.len < 4 ? t.len : 4) == 0 && t.len <= 4;
			bool random = t.len && memcmp(t.s, "RANDOM", t.len < 6 ? t.len : 6) == 0;
			like.kind = one ? LINK_ONE_TO_ONE : random ? LINK_RANDOM : LINK_FULL;
			if (!one && !full && !random)
				old_lost(n->o, s->loc[i], "the projection type %s%s", text_shown(s->cx, t),
				         n->o->opt->lossy ? "; FULL takes its place" : "");
			if (one) {
				like.mean = isnan(like.mean) ? 1 : like.mean;
				like.range = isnan(like.range) ? 0 : like.range;
				like.frozen = true;
			}
		} else if (is_flag(w, "strength")) {
			like.strength = need_real(s, ++i, "a strength");
			strong = true;
		} else if (is_flag(w, "mean")) {
			like.mean = need_real(s, ++i, "a mean");
		} else if (is_flag(w, "range")) {
			like.range = need_real(s, ++i, "a range");
		} else if (is_flag(w, "type")) {
			i++; /* a name for links, which only later commands would use */
		} else {
			old_lost(n->o, s->loc[i], "the option %s", text_shown(s->cx, w));
		}
	}
	if (like.kind == LINK_RANDOM && (!strong || !(like.strength >= 0 && like.strength <= 1)))
		fail_at(s->cx, s->loc[0], "-s 0.5", "a random projection has a strength from 0 to 1");
	if (lists < 2)
		fail_at(s->cx, s->loc[0], "connectGroups FROM TO", "two groups should follow");
	for (uint32_t i = 1; i < lists; i++) {
		Text left = s->word[i], from, to;
		while (list_next(&left, &from))
			for (Text right = s->word[i + 1]; list_next(&right, &to);) {
				bool bias = text_is(from, "bias") && !lens_group(n, from);
				uint32_t a = bias ? LENS_BIAS : (uint32_t)(need_group(s, from, s->loc[i]) - n->group);
				uint32_t b = (uint32_t)(need_group(s, to, s->loc[i + 1]) - n->group);
				project(s, &like, a, b);
				if (both && !bias)
					project(s, &like, b, a);
			}
	}
}

static void elman_connect(Script *s)
{
	if (s->words < 3)
		fail_at(s->cx, s->loc[0], "elmanConnect SOURCE CONTEXT", "two groups should follow");
	LensGroupDef *from = need_group(s, s->word[1], s->loc[1]), *to = need_group(s, s->word[2], s->loc[2]);
	if (!(to->flags & LENS_IS_ELMAN) || from->size != to->size)
		fail_at(s->cx, s->loc[2], "addGroup NAME SIZE ELMAN, of the size of its source",
		        "the group '%s' is no context of '%s'", to->name, from->name);
	to->source = (uint32_t)(from - s->n->group);
	for (uint32_t i = 3; i < s->words; i += 2) {
		double v = need_real(s, i + 1, "a value");
		if (is_flag(s->word[i], "initOutput"))
			from->start = v;
		else if (!is_flag(s->word[i], "reset") || v == 0)
			old_lost(s->n->o, s->loc[i], "the option %s", text_shown(s->cx, s->word[i]));
	}
}

/* ---- settings ----------------------------------------------------------------------------------- */

static void set_object(Script *s)
{
	LensNet *n = s->n;
	double v = 0;
	if (s->words < 3)
		fail_at(s->cx, s->loc[0], "setObj NAME VALUE", "name and value should follow");
	Text name = s->word[1];
	bool real = is_real(s->word[2], &v);
	const char *dot = memchr(name.s, '.', name.len);
	struct {
		const char *name;
		double *real;
		uint64_t *whole;
	} const fields[] = {
		{ "learningRate", &n->rate, NULL },      { "momentum", &n->momentum, NULL },
		{ "weightDecay", &n->decay, NULL },      { "randRange", &n->rand_range, NULL },
		{ "randMean", &n->rand_mean, NULL },     { "dt", &n->dt, NULL },
		{ "numUpdates", NULL, &n->updates },     { "batchSize", NULL, &n->batch },
		{ "backpropTicks", NULL, &n->bptt },     { "timeIntervals", NULL, &n->intervals },
		{ "ticksPerInterval", NULL, &n->ticks },
	};
	for (size_t i = 0; i < COUNT(fields); i++) {
		if (!text_is(name, fields[i].name))
			continue;
		assert(fields[i].real || fields[i].whole);
		if (!real || v < -1e6 || v > 1e9 || (fields[i].whole && (v < 0 || v != floor(v))))
			fail_at(s->cx, s->loc[2], "a number that it can have", "%s cannot be '%s'", fields[i].name,
			        text_shown(s->cx, s->word[2]));
		if (fields[i].real)
			*fields[i].real = v;
		else
			*fields[i].whole = max_u64((uint64_t)v, fields[i].whole == &n->ticks || fields[i].whole == &n->intervals);
		if (fields[i].whole == &n->bptt)
			n->bptt_at = s->loc[1];
		return;
	}
	Text field = name;
	LensGroupDef *g = NULL;
	if (dot) {
		field = (Text){ dot + 1, (uint32_t)(name.s + name.len - dot - 1) };
		g = lens_group(n, (Text){ name.s, (uint32_t)(dot - name.s) });
	}
	LensSettings *set = g ? &g->set : &n->set;
	struct {
		const char *name;
		double *value;
	} const settings[] = {
		{ "initOutput", g ? &g->start : NULL },
		{ "dtScale", g ? &g->dt : NULL },
		{ "gain", &set->gain },
		{ "errorScale", &set->error_scale },
		{ "testGroupCrit", &set->crit },
		{ "targetRadius", &set->target_radius },
		{ "zeroErrorRadius", &set->zero_radius },
		{ "weightDecay", g ? &set->decay : NULL },
		{ "learningRate", g ? &set->rate : NULL },
		{ "noiseRange", &set->noise },
	};
	for (size_t i = 0; (g || !dot) && real && v >= 0 && v <= 1e6 && i < COUNT(settings); i++)
		if (settings[i].value && text_is(field, settings[i].name)) {
			*settings[i].value = v;
			return;
		}
	/* what outputs depend on, and Tcl, is an error; anything else matters to training or to a display */
	static const char *const outputs[] = { "gain",      "clampStrength", "initInput",    "initOutput", "dtScale",
		                                   "minOutput", "maxOutput",     "ternaryShift", "noiseRange", "noiseOnInput" };
	bool lost = field.len > 4 && memcmp(field.s + field.len - 4, "Proc", 4) == 0;
	for (size_t i = 0; i < COUNT(outputs); i++)
		lost = lost || text_is(field, outputs[i]);
	if (lost)
		old_lost(n->o, s->loc[1], "the setting %s", text_shown(s->cx, name));
	else
		note_at(s->cx, s->loc[1], NULL, "left out: the setting %s", text_shown(s->cx, name));
}

/* Of links that already exist, as LENS does; without groups, of all. */
static void change_links(Script *s)
{
	LensNet *n = s->n;
	bool freeze = text_is(s->word[0], "freezeWeights");
	Text groups = { "", 0 }, name;
	double mean = n->rand_mean, range = n->rand_range;
	for (uint32_t i = 1; i < s->words; i++) {
		if (is_flag(s->word[i], "group") && i + 1 < s->words)
			groups = s->word[++i];
		else if (!freeze && is_flag(s->word[i], "mean"))
			mean = need_real(s, ++i, "a mean");
		else if (!freeze && is_flag(s->word[i], "range"))
			range = need_real(s, ++i, "a range");
		else
			old_lost(n->o, s->loc[i], "the option %s", text_shown(s->cx, s->word[i]));
	}
	for (uint64_t k = 0; k < n->links; k++) {
		LensLinks *l = &n->link[k];
		Text left = groups;
		bool chosen = !groups.len;
		while (list_next(&left, &name))
			chosen = chosen || need_group(s, name, s->loc[0]) == &n->group[l->to];
		if (!chosen || (l->frozen && !freeze))
			continue;
		l->frozen = l->frozen || freeze;
		l->mean = freeze ? l->mean : mean;
		l->range = freeze ? l->range : range;
	}
}

static void load_examples(Script *s)
{
	bool test = s->n->data[0] != NULL;
	if (s->words < 2)
		fail_at(s->cx, s->loc[0], "loadExamples FILE", "the name of a file should follow");
	for (uint32_t i = 2; i + 1 < s->words; i++) {
		if (is_flag(s->word[i], "exmode") && text_is(s->word[i + 1], "PERMUTED") && !test)
			s->n->shuffle = true;
		if (is_flag(s->word[i], "set") && text_is(s->word[i + 1], "test"))
			test = true;
	}
	if (s->n->data[test])
		old_lost(s->n->o, s->loc[1], "a third set of examples");
	s->n->data[test] = arena_copy(&s->cx->scratch, s->word[1].s, s->word[1].len);
}

static void train(Script *s)
{
	static const char *const algorithms[][2] = { { "steepestDescent", "momentum" },
		                                         { "momentumDescent", "momentum" },
		                                         { "dougsMomentum", "doug" },
		                                         { "deltaBarDelta", "delta-bar-delta" } };
	LensNet *n = s->n;
	bool plain = text_is(s->word[0], "steepestDescent");
	for (size_t k = 0; k < COUNT(algorithms); k++)
		if (text_is(s->word[0], algorithms[k][0]))
			n->rule = algorithms[k][1];
	for (uint32_t i = 1; i < s->words; i++) {
		uint64_t updates;
		if (is_whole(s->word[i], &updates)) {
			n->updates = updates;
			continue;
		}
		if (is_flag(s->word[i], "report") && i + 1 < s->words) {
			i++;
			continue;
		}
		bool known = false;
		if (is_flag(s->word[i], "algorithm") && i + 1 < s->words) {
			i++;
			for (size_t k = 0; k < COUNT(algorithms); k++)
				if (s->word[i].len >= 4 && s->word[i].len <= strlen(algorithms[k][0]) &&
				    memcmp(s->word[i].s, algorithms[k][0], s->word[i].len) == 0) { /* steepest */
					n->rule = algorithms[k][1];
					plain = k == 0;
					known = true;
				}
		}
		if (!known)
			note_at(s->cx, s->loc[i], NULL, "left out: '%s' of the training", text_shown(s->cx, s->word[i]));
	}
	if (plain)
		n->momentum = 0;
}

static void set_variable(Script *s)
{
	if (s->words != 3 || s->opaque) {
		old_lost(s->n->o, s->loc[0], "the command '%s': a value that would have to be computed", "set");
		return;
	}
	s->name = arena_reserve(&s->cx->scratch, s->name, s->vars, &s->name_cap, sizeof *s->name);
	s->value = arena_reserve(&s->cx->scratch, s->value, s->vars, &s->value_cap, sizeof *s->value);
	s->name[s->vars] = s->word[1];
	s->value[s->vars++] = s->word[2];
}

static void set_seed(Script *s) { s->n->seed = s->words > 1 ? need_whole(s, 1, "the seed", 0, UINT32_MAX) : 0; }

static void nothing(Script *s) { (void)s; }

static void noted(Script *s)
{
	note_at(s->cx, s->loc[0], NULL, "left out: the command %s, which is not about the network",
	        text_shown(s->cx, s->word[0]));
}

/* ---- the script --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(Script *s);
} commands[] = {
	{ "addNet", add_net },
	{ "addGroup", add_group },
	{ "connectGroups", connect_groups },
	{ "elmanConnect", elman_connect },
	{ "deleteGroups", delete_groups },
	{ "setObj", set_object },
	{ "setObject", set_object },
	{ "randWeights", change_links },
	{ "freezeWeights", change_links },
	{ "loadExamples", load_examples },
	{ "train", train },
	{ "steepestDescent", train },
	{ "momentumDescent", train },
	{ "dougsMomentum", train },
	{ "deltaBarDelta", train },
	{ "seed", set_seed },
	{ "set", set_variable },
	{ "resetNet", nothing },
	{ "puts", noted },
	{ "echo", noted },
	{ "autoPlot", noted },
	{ "plotRow", noted },
	{ "plotAll", noted },
	{ "drawUnits", noted },
	{ "graph", noted },
	{ "graphObj", noted },
	{ "graphObject", noted },
	{ "viewUnits", noted },
	{ "viewLinks", noted },
	{ "viewObject", noted },
	{ "useTrainingSet", noted },
	{ "useTestingSet", noted },
	{ "test", noted },
	{ "saveWeights", noted },
	{ "wait", noted },
	{ "exit", noted },
};

bool lens_looks(const Src *src)
{
	const char *p = src->text, *end = p + min_u64(src->len, 1 << 16);
	while (p < end) { /* a line that begins with addNet or addGroup */
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (end - p > 7 && memcmp(p, "addNet", 6) == 0 && (p[6] == ' ' || p[6] == '\t'))
			return true;
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			return false;
		p++;
	}
	return false;
}

void lens_script(LensNet *n)
{
	Script *s = NEW(&n->o->cx->scratch, 1, Script);
	Cursor c = cursor_open(n->o->cx, n->o->src, '\0');
	*s = (Script){ .n = n, .cx = n->o->cx, .src = c.src, .at = c.at };
	while (next_command(s)) {
		size_t i = 0;
		while (i < COUNT(commands) && !text_is(s->word[0], commands[i].name))
			i++;
		if (i == COUNT(commands))
			old_lost(n->o, s->loc[0], "the command '%s' is not understood", text_shown(s->cx, s->word[0]));
		else if (s->opaque && commands[i].run != noted && commands[i].run != set_variable)
			old_lost(n->o, s->loc[0], "the command '%s' holds a value that would have to be computed",
			         text_shown(s->cx, s->word[0]));
		else
			commands[i].run(s);
	}
}
