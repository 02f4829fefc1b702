/* SPDX-License-Identifier: MIT */
/* Networks of SNNS (.net).  In: a header of lines `key : value` and sections, tables with | between the cells and rules
 * of - around the rows.  Out: units and links.
 *
 * Context units (special, `sh`) hold at a case what their links gave at the case before; the first value is their
 * bias, which Act_Identity does not add.  The bias of any other unit is a link from `true`. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "legacy.h"

static const char title[] = "SNNS network definition file";

bool snns_looks(const Src *src) { return src_begins(src, title, '#'); }

/* ---- functions ---------------------------------------------------------------------------------- */

typedef struct ActFn {
	const char *name;
	int fn;
	double gain; /* of the net input: goes into the weights */
	bool biased;
} ActFn;
static const ActFn act_fns[] = {
	{ "Act_Logistic", FN_SIGMOID, 1, true },
	{ "Act_LogisticTbl", FN_SIGMOID, 1, true },
	{ "Act_TanH", FN_TANH, 1, true },
	{ "Act_TanH_Xdiv2", FN_TANH, 0.5, true },
	{ "Act_Elliott", FN_SOFTSIGN, 1, true },
	{ "Act_Identity", FN_LINEAR, 1, false },
	{ "Act_IdentityPlusBias", FN_LINEAR, 1, true },
};

typedef struct Learning {
	const char *name, *train;
} Learning;
static const Learning learnings[] = {
	{ "Std_Backpropagation", "rule momentum rate 0.2 momentum 0 batch 1" },
	{ "BackpropMomentum", "rule momentum rate 0.2 momentum 0.5 batch 1" },
	{ "BackpropBatch", "rule momentum rate 0.2 momentum 0 batch all" },
	{ "BackpropWeightDecay", "rule momentum rate 0.2 momentum 0 batch 1" },
	{ "Quickprop", "rule quickprop rate 0.2 mu 2 decay 0.0001 batch all" },
	{ "Rprop", "rule rprop step-start 0.1 step-max 50 batch all" },
	{ "JE_BP", "rule momentum rate 0.2 momentum 0 batch 1" },
	{ "JE_BP_Momentum", "rule momentum rate 0.2 momentum 0.5 batch 1" },
	{ "JE_Quickprop", "rule quickprop rate 0.2 mu 2 decay 0.0001 batch all" },
	{ "JE_Rprop", "rule rprop step-start 0.1 step-max 50 batch all" },
};

/* ---- lines and cells ---------------------------------------------------------------------------- */

enum { MAX_CELLS = 12 };
typedef struct Row {
	Text cell[MAX_CELLS];
	uint32_t cells;
} Row;

typedef struct SnnsUnit { /* what a row says of a unit, or of all by default */
	Text act_fn, out_fn;
	double bias;
	Text kind; /* st */
	Loc at;
} SnnsUnit;

typedef struct Reader {
	const Old *o;
	Ctx *cx;
	const Src *src;
	size_t at;
	Text line;
	OldNet net;
	SnnsUnit usual;
	SnnsUnit *row;
	uint64_t rows, row_cap;
	Text *type, *type_act, *type_out; /* [types] */
	uint64_t types, type_cap, act_cap, out_cap;
	Text *site, *site_fn; /* [sites] */
	uint64_t sites, site_cap, site_fn_cap;
	uint64_t units_said, links_said;
	Loc units_at, links_at;
	Text learning, update;
	bool delayed;    /* there is a time delay section */
	bool recurrent;  /* update function of Jordan and Elman networks */
	uint64_t target; /* of the last row of connections, from 1 */
} Reader;

static Loc loc(const Reader *r, const char *p) { return (Loc){ r->src, (size_t)(p - r->src->text) }; }

static Text trimmed(const char *s, size_t n)
{
	while (n && strchr(" \t\r", s[n - 1]))
		n--;
	while (n && strchr(" \t\r", *s)) {
		s++;
		n--;
	}
	return (Text){ s, (uint32_t)min_u64(n, UINT32_MAX) };
}

/* The next line that is not blank, without comment; false at the end. */
static bool line_next(Reader *r)
{
	while (r->at < r->src->len) {
		const char *p = r->src->text + r->at, *eol = memchr(p, '\n', r->src->len - r->at);
		size_t n = eol ? (size_t)(eol - p) : r->src->len - r->at;
		const char *comment = memchr(p, '#', n);
		r->at += n + (eol != NULL);
		r->line = trimmed(p, comment ? (size_t)(comment - p) : n);
		if (r->line.len)
			return true;
	}
	return false;
}

static bool is_rule(Text t)
{
	for (uint32_t i = 0; i < t.len; i++)
		if (t.s[i] != '-' && t.s[i] != '|')
			return false;
	return t.len > 0;
}

/* Text of the line, single blanks not counting, up to the colon. */
static bool key_is(Text line, const char *key, Text *value)
{
	uint32_t i = 0;
	for (; *key; key++) {
		if (*key == ' ')
			continue;
		while (i < line.len && (line.s[i] == ' ' || line.s[i] == '\t'))
			i++;
		if (i == line.len || line.s[i] != *key)
			return false;
		i++;
	}
	while (i < line.len && (line.s[i] == ' ' || line.s[i] == '\t'))
		i++;
	if (i == line.len || line.s[i] != ':')
		return false;
	*value = trimmed(line.s + i + 1, line.len - i - 1);
	return true;
}

static void cells_split(Text line, Row *row)
{
	const char *p = line.s, *end = line.s + line.len;
	row->cells = 0;
	for (;;) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		if (row->cells == MAX_CELLS)
			return;
		row->cell[row->cells++] = trimmed(p, (size_t)((bar ? bar : end) - p));
		if (!bar)
			return;
		p = bar + 1;
	}
}

static Text cell(const Row *row, uint32_t i) { return i < row->cells ? row->cell[i] : (Text){ "", 0 }; }

static bool text_number(Text t, double *v)
{
	float f;
	const char *end = number_read(t.s, t.s + t.len, &f);
	if (!t.len || end != t.s + t.len || !isfinite(f))
		return false;
	*v = number_double(t.s, end);
	return true;
}

static bool text_whole(Text t, uint64_t *v)
{
	*v = 0;
	for (uint32_t i = 0; i < t.len; i++) {
		if (t.s[i] < '0' || t.s[i] > '9' || *v > MAX_LINKS)
			return false;
		*v = *v * 10 + (uint64_t)(t.s[i] - '0');
	}
	return t.len > 0;
}

static bool same_text(Text a, Text b) { return a.len == b.len && (!a.len || memcmp(a.s, b.s, a.len) == 0); }

/* ---- sections ----------------------------------------------------------------------------------- */

static void row_default(Reader *r, const Row *row)
{
	double bias = 0;
	if (cell(row, 1).len && !text_number(cell(row, 1), &bias))
		fail_at(r->cx, loc(r, cell(row, 1).s), "a number", "the default bias is '%s'", text_shown(r->cx, cell(row, 1)));
	r->usual.bias = bias;
	r->usual.kind = cell(row, 2);
	r->usual.act_fn = cell(row, 5);
	r->usual.out_fn = cell(row, 6);
}

static void text_add(Reader *r, Text **list, uint64_t count, uint64_t *cap, Text t)
{
	*list = arena_reserve(&r->cx->scratch, *list, count, cap, sizeof **list);
	(*list)[count] = t;
}

static void row_type(Reader *r, const Row *row)
{
	text_add(r, &r->type, r->types, &r->type_cap, cell(row, 0));
	text_add(r, &r->type_act, r->types, &r->act_cap, cell(row, 1));
	text_add(r, &r->type_out, r->types++, &r->out_cap, cell(row, 2));
}

static void row_site(Reader *r, const Row *row)
{
	text_add(r, &r->site, r->sites, &r->site_cap, cell(row, 0));
	text_add(r, &r->site_fn, r->sites++, &r->site_fn_cap, cell(row, 1));
}

/* no. | typeName | unitName | act | bias | st | position | act func | out func | sites */
static void row_unit(Reader *r, const Row *row)
{
	uint64_t number;
	SnnsUnit u = r->usual;
	u.at = loc(r, row->cell[0].s);
	if (!text_whole(row->cell[0], &number) || number != r->rows + 1)
		fail_at(r->cx, u.at, "units are numbered 1, 2, 3 and so on", "unit %" PRIu64 " should stand here", r->rows + 1);
	if (row->cells < 7)
		fail_at(r->cx, u.at, "a row of this section has ten cells", "the row of unit %" PRIu64 " has %" PRIu32 " cells",
		        number, row->cells);
	for (uint64_t i = 0; cell(row, 1).len && i < r->types; i++)
		if (same_text(cell(row, 1), r->type[i])) {
			u.act_fn = r->type_act[i].len ? r->type_act[i] : u.act_fn;
			u.out_fn = r->type_out[i].len ? r->type_out[i] : u.out_fn;
		}
	if (cell(row, 4).len && !text_number(cell(row, 4), &u.bias))
		fail_at(r->cx, loc(r, cell(row, 4).s), "a number", "the bias is '%s'", text_shown(r->cx, cell(row, 4)));
	u.kind = cell(row, 5).len ? cell(row, 5) : u.kind;
	u.act_fn = cell(row, 7).len ? cell(row, 7) : u.act_fn;
	u.out_fn = cell(row, 8).len ? cell(row, 8) : u.out_fn;
	r->row = arena_reserve(&r->cx->scratch, r->row, r->rows, &r->row_cap, sizeof *r->row);
	if (r->rows == MAX_UNITS)
		fail_at(r->cx, u.at, "networks are smaller", "there are more than %u units", MAX_UNITS);
	r->row[r->rows++] = u;
}

static void check_site(Reader *r, Text name)
{
	for (uint64_t i = 0; name.len && i < r->sites; i++)
		if (same_text(r->site[i], name) && text_is(r->site_fn[i], "Site_WeightedSum"))
			return;
	if (name.len)
		old_lost(r->o, loc(r, name.s), "the site '%s' is not of function Site_WeightedSum", text_shown(r->cx, name));
}

/* source:weight, source:weight, ...  True if a comma says that the next line goes on. */
static bool take_links(Reader *r, Text list)
{
	const char *p = list.s, *end = p + list.len;
	for (;;) {
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (p == end)
			return list.len > 0;
		const char *start = p;
		uint64_t source;
		size_t n = strspn(p, "0123456789");
		float f;
		n = n < (size_t)(end - p) ? n : (size_t)(end - p);
		if (!text_whole((Text){ p, (uint32_t)min_u64(n, UINT32_MAX) }, &source) || !source)
			fail_at(r->cx, loc(r, start), "write source:weight, with commas between",
			        "the number of a unit should stand here");
		for (p += n; p < end && (*p == ' ' || *p == '\t'); p++) {
		}
		if (p == end || *p != ':')
			fail_at(r->cx, loc(r, p), "write source:weight, with commas between",
			        "a colon and the weight should follow");
		for (p++; p < end && (*p == ' ' || *p == '\t'); p++) {
		}
		const char *past = number_read(p, end, &f);
		if (!past || !isfinite(f))
			fail_at(r->cx, loc(r, p), "a decimal number such as 0.5", "the weight of the link is not a number");
		r->net.link = arena_reserve(&r->cx->scratch, r->net.link, r->net.links, &r->net.link_cap, sizeof *r->net.link);
		if (r->net.links == MAX_LINKS)
			fail_at(r->cx, loc(r, start), "networks are smaller", "there are more than %u links", MAX_LINKS);
		r->net.link[r->net.links++] = (OldLink){ .from = (uint32_t)min_u64(source - 1, NO_UNIT),
			                                     .to = (uint32_t)(r->target - 1),
			                                     .weight = number_double(p, past),
			                                     .at = loc(r, start) };
		for (p = past; p < end && (*p == ' ' || *p == '\t'); p++) {
		}
		if (p < end && *p == '(') {
			old_lost(r->o, loc(r, p), "a link of TACOMA has a window");
			const char *close = memchr(p, ')', (size_t)(end - p));
			p = close ? close + 1 : end;
			while (p < end && (*p == ' ' || *p == '\t'))
				p++;
		}
		if (p == end)
			return false;
		if (*p++ != ',')
			fail_at(r->cx, loc(r, p - 1), "write source:weight, with commas between",
			        "a comma or the end of the line should follow");
	}
}

/* target | site | source:weight, ...  A row without target goes on with the one before. */
static void row_links(Reader *r, const Row *row)
{
	uint32_t list = row->cells > 2 ? 2 : 1;
	Text number = row->cells > 2 ? row->cell[0] : (Text){ "", 0 };
	if (number.len && !text_whole(number, &r->target))
		fail_at(r->cx, loc(r, number.s), "the number of a unit", "the target '%s' is none", text_shown(r->cx, number));
	if (!r->target || r->target > MAX_UNITS || row->cells < 2)
		fail_at(r->cx, loc(r, row->cell[0].s), "target | site | source:weight, source:weight",
		        "the row of links has no target");
	check_site(r, row->cell[list - 1]);
	for (bool more = take_links(r, row->cell[list]); more;) {
		if (!line_next(r))
			fail_at(r->cx, (Loc){ r->src, r->src->len }, "check that the file is complete",
			        "the file ends after a comma");
		more = take_links(r, r->line);
	}
}

static void row_delay(Reader *r, const Row *row)
{
	if (!r->delayed)
		old_lost(r->o, loc(r, row->cell[0].s), "units of a time-delay network share weights over time");
	r->delayed = true;
}

static void row_nothing(Reader *r, const Row *row)
{
	(void)r;
	(void)row;
}

typedef struct Section {
	const char *title;
	void (*row)(Reader *r, const Row *row);
} Section;
static const Section sections[] = {
	{ "site definition section", row_site },        { "type definition section", row_type },
	{ "unit default section", row_default },        { "unit definition section", row_unit },
	{ "connection definition section", row_links }, { "time delay section", row_delay },
	{ "subnet definition section", row_nothing },   { "layer definition section", row_nothing },
	{ "3D translation section", row_nothing },
};

/* Column heads, a rule, rows, the rule again. */
static void read_section(Reader *r, const Section *s)
{
	Text head = r->line;
	Row row;
	if (!line_next(r) || !line_next(r) || !is_rule(r->line))
		fail_at(r->cx, loc(r, r->line.s), "a line of column heads and a rule such as ----|---- follow the title",
		        "the %s does not begin as it should", s->title);
	while (line_next(r)) {
		if (is_rule(r->line))
			return;
		cells_split(r->line, &row);
		s->row(r, &row);
	}
	fail_at(r->cx, loc(r, head.s), "check that the file is complete", "the %s does not end with a rule", s->title);
}

/* ---- header ------------------------------------------------------------------------------------- */

static void read_header(Reader *r)
{
	Text value;
	Loc at = loc(r, r->line.s);
	if (key_is(r->line, "no. of units", &value)) {
		r->units_at = at;
		if (!text_whole(value, &r->units_said))
			fail_at(r->cx, at, "a whole number", "no. of units is '%s'", text_shown(r->cx, value));
	} else if (key_is(r->line, "no. of connections", &value)) {
		r->links_at = at;
		if (!text_whole(value, &r->links_said))
			fail_at(r->cx, at, "a whole number", "no. of connections is '%s'", text_shown(r->cx, value));
	} else if (key_is(r->line, "learning function", &value)) {
		r->learning = value;
	} else if (key_is(r->line, "subordinate learning function", &value)) {
		r->learning = value;
	} else if (key_is(r->line, "update function", &value)) {
		r->update = value;
	} else if (!key_is(r->line, "network name", &value) && !key_is(r->line, "source files", &value) &&
	           !key_is(r->line, "no. of unit types", &value) && !key_is(r->line, "no. of site types", &value) &&
	           !key_is(r->line, "pruning function", &value) &&
	           !(r->line.len >= 12 && memcmp(r->line.s, "generated at", 12) == 0)) {
		fail_at(r->cx, at,
		        "lines of the header are key : value; a section has a title such as 'unit definition section :'",
		        "'%s' is no line of an SNNS network", text_shown(r->cx, r->line));
	}
}

static void read_all(Reader *r)
{
	Text value;
	line_next(r); /* the title */
	while (line_next(r)) {
		size_t i = 0;
		while (i < COUNT(sections) && !key_is(r->line, sections[i].title, &value))
			i++;
		if (i < COUNT(sections))
			read_section(r, &sections[i]);
		else
			read_header(r);
	}
	if (!r->rows)
		fail_at(r->cx, (Loc){ r->src, r->src->len }, "check that the file is complete", "the file has no units");
	if (r->units_said != r->rows)
		fail_at(r->cx, r->units_at, "check that the file is complete",
		        "%" PRIu64 " units are counted here, but %" PRIu64 " follow", r->units_said, r->rows);
	if (r->links_said != r->net.links)
		fail_at(r->cx, r->links_at, "check that the file is complete",
		        "%" PRIu64 " connections are counted here, but %" PRIu64 " follow", r->links_said, r->net.links);
}

/* ---- to units and links ------------------------------------------------------------------------- */

static const ActFn *act_fn_of(Reader *r, const SnnsUnit *u)
{
	for (size_t i = 0; i < COUNT(act_fns); i++)
		if (text_is(u->act_fn, act_fns[i].name))
			return &act_fns[i];
	old_lost(r->o, u->at, "the activation function %s: there is none like it%s", text_shown(r->cx, u->act_fn),
	         r->o->opt->lossy ? "; sigmoid takes its place" : "");
	return &act_fns[0];
}

/* Functions that leave outputs of these units as they are. */
static void check_out_fn(Reader *r, const SnnsUnit *u, int fn)
{
	bool clips = (text_is(u->out_fn, "Out_Clip_01") || text_is(u->out_fn, "Out_Clip_0_1")) && fn == FN_SIGMOID;
	bool clips_both = (text_is(u->out_fn, "Out_Clip_11") || text_is(u->out_fn, "Out_Clip_1_1")) &&
	                  (fn == FN_SIGMOID || fn == FN_TANH);
	if (!text_is(u->out_fn, "Out_Identity") && u->out_fn.len && !clips && !clips_both)
		old_lost(r->o, u->at, "the output function %s", text_shown(r->cx, u->out_fn));
}

static void make_unit(Reader *r, const SnnsUnit *u)
{
	bool special = u->kind.len && u->kind.s[0] == 's';
	char kind = u->kind.len > (special ? 1u : 0u) ? u->kind.s[special ? 1 : 0] : special ? 'h' : '?';
	OldUnit unit = { .at = u->at };
	switch (kind) {
	case 'i': unit.role = ROLE_INPUT; break;
	case 'o': unit.role = ROLE_OUTPUT; break;
	case 'h': unit.role = ROLE_HIDDEN; break;
	default:
		unit.role = ROLE_OUTPUT;
		old_lost(r->o, u->at, "a unit of kind '%s'; input (i), hidden (h), output (o) and special (s) ones are read",
		         text_shown(r->cx, u->kind));
	}
	if (unit.role != ROLE_INPUT) { /* inputs are clamped: no function, no bias */
		const ActFn *act = act_fn_of(r, u);
		unit.fn = act->fn;
		unit.biased = act->biased;
		unit.bias = u->bias * act->gain;
		check_out_fn(r, u, act->fn);
	}
	if (unit.role == ROLE_INPUT)
		unit.fn = FN_LINEAR;
	if (special && unit.role == ROLE_HIDDEN && r->recurrent) {
		unit.role = ROLE_CONTEXT;
		unit.start = unit.biased ? 0 : u->bias;
	}
	r->net.unit[r->net.units++] = unit;
}

/* Links of units that are not trained, and gains of functions. */
static void finish_links(Reader *r)
{
	for (uint64_t i = 0; i < r->net.links; i++) {
		OldLink *l = &r->net.link[i];
		if (l->from >= r->rows || l->to >= r->rows)
			fail_at(r->cx, l->at, "units are numbered from 1",
			        "the link is one of unit %" PRIu32 ", but there are %" PRIu64 " units", max_u32(l->from, l->to) + 1,
			        r->rows);
		const SnnsUnit *u = &r->row[l->to];
		l->frozen = u->kind.len && u->kind.s[0] == 's';
		for (size_t k = 0; k < COUNT(act_fns); k++)
			if (text_is(u->act_fn, act_fns[k].name))
				l->weight *= act_fns[k].gain;
	}
}

static void make_train(Reader *r)
{
	Buf b = { .arena = &r->cx->scratch };
	for (size_t i = 0; i < COUNT(learnings); i++)
		if (text_is(r->learning, learnings[i].name))
			buf_printf(&b, "train %s shuffle off error squared\n", learnings[i].train);
	if (!b.len && r->learning.len)
		note_at(r->cx, loc(r, r->learning.s), "give --rule and --rate to train on",
		        "the learning function %s is not carried over", text_shown(r->cx, r->learning));
	r->net.train = b.len ? b.s : "train error squared\n";
}

Net *snns_read(const Old *o)
{
	Reader *r = NEW(&o->cx->scratch, 1, Reader);
	Cursor c = cursor_open(o->cx, o->src, '#');
	*r = (Reader){ .o = o, .cx = o->cx, .src = c.src, .at = c.at };
	r->usual = (SnnsUnit){ .kind = { "h", 1 }, .act_fn = { "Act_Logistic", 12 }, .out_fn = { "Out_Identity", 12 } };
	if (!snns_looks(c.src))
		fail_at(o->cx, cursor_loc(&c), "give a network file (.net) of SNNS", "the file does not begin with '%s'",
		        title);
	read_all(r);
	r->recurrent = text_is(r->update, "JE_Order") || text_is(r->update, "JE_Special");
	if (!r->recurrent && r->update.len && !text_is(r->update, "Topological_Order") && !text_is(r->update, "CC_Order"))
		old_lost(o, loc(r, r->update.s), "the update function %s: units are computed in topological order",
		         text_shown(o->cx, r->update));
	r->net.unit = NEW(&o->cx->scratch, r->rows, OldUnit);
	for (uint64_t i = 0; i < r->rows; i++)
		make_unit(r, &r->row[i]);
	finish_links(r);
	check_errors(o->cx);
	make_train(r);
	Buf head = { .arena = &o->cx->scratch };
	buf_puts(&head, "# A network of SNNS.\n");
	r->net.title = head.s;
	return old_build(o, &r->net);
}
