/* SPDX-License-Identifier: MIT */
/* Networks that settle.  In: a network whose contexts hold what groups were in the tick before.  Out: which units
 * errors go back to; microcode of what is between ticks.
 *
 * Ticks are unrolled by relocation: a case has all its words once for each tick, and the routines of bundles and units,
 * which exist once, are called for one tick after the other, on the way back in reverse.  Between them stand:
 *
 *   contexts      what their groups were in the tick before, or their start values; their errors start at zero
 *   integrate     of groups that do: the net input or the output moves from that of the tick before by dt
 *   no inputs     after the last tick that has them
 *   no targets    before the first tick that has them: the weight of the case is 0
 *   carry         on the way back: errors of contexts in the tick after, added to those of their groups
 *
 * A unit that integrates has a word more: its net input, or what its output moves to; on the way back the error of what
 * it integrates, of which a share goes to the tick before.  Bases: CASE is the tick, BACK the one before it, on the way
 * back the one after it. */
#include "gf11_net.h"

enum { PAIRS_A_CALL = 256, INPUTS_A_CALL = 2048 };
enum { FIRST, NEXT, TICKS }; /* the first tick, any other; on the way back: without, with the tick after */

typedef struct Integrate { /* of a chunk */
	BpCalls forward[TICKS], back[TICKS];
	int which; /* INTEGRATE_...; none if there is nothing to call */
} Integrate;

typedef struct BpTicks {
	Unit *from, *to; /* [pairs] */
	uint32_t pairs;
	BpCalls *contexts[TICKS], *carry; /* [calls] */
	uint32_t calls;
	BpCalls *no_inputs;
	uint32_t input_calls;
	BpCalls no_targets;
	Integrate *input, *output; /* [chunks] */
	uint32_t *kept;            /* [units] number of its word; KEPT_NONE: it does not integrate */
} BpTicks;
#define KEPT_NONE UINT32_MAX

/* ---- planning ---- */

static bool integrates(const Bp *b, Unit u)
{
	const Group *g = u ? net_group(b->net, u) : NULL;
	return g && g->role != ROLE_CONTEXT && g->integrate;
}

uint32_t ticks_kept(const Bp *b)
{
	uint32_t kept = 0;
	for (Unit u = 1; b->settling && u < b->net->units; u++)
		kept += integrates(b, u);
	return kept;
}

/* Errors go back to what is computed, and to contexts that hold such. */
static void back_find(Bp *b)
{
	const Net *net = b->net;
	b->back = NEW(&b->cx->keep, net->units, bool);
	for (Unit u = 0; u < net->units; u++)
		b->back[u] = b->plan->level_of[u] > 0;
	for (uint32_t again = 0; net->settles && b->opt->bptt != BPTT_COPY && again < net->copies; again++)
		for (uint32_t i = 0; i < net->copies; i++) {
			const Group *from = &net->group[net->copy[i].from_group], *to = &net->group[net->copy[i].to_group];
			for (uint32_t j = 0; j < to->size; j++)
				b->back[to->first + j] = b->back[from->first + j];
		}
}

void ticks_plan(Bp *b)
{
	const Net *net = b->net;
	uint32_t kept = 0;
	b->ticks = ticks_make(net, b->opt);
	back_find(b);
	if (!net->settles)
		return;
	BpTicks *s = b->settling = NEW(&b->cx->keep, 1, BpTicks);
	s->from = NEW(&b->cx->keep, net->units, Unit);
	s->to = NEW(&b->cx->keep, net->units, Unit);
	s->kept = NEW(&b->cx->keep, net->units, uint32_t);
	for (Unit u = 0; u < net->units; u++)
		s->kept[u] = integrates(b, u) ? kept++ : KEPT_NONE;
	for (uint32_t i = 0; i < net->copies; i++) {
		const Group *from = &net->group[net->copy[i].from_group], *to = &net->group[net->copy[i].to_group];
		for (uint32_t j = 0; j < to->size; j++) {
			s->from[s->pairs] = from->first + j;
			s->to[s->pairs++] = to->first + j;
		}
	}
}

/* ---- words of a tick ---- */

typedef struct Row {
	const Bp *b;
	Constants c;
	uint32_t i; /* case at hand */
} Row;

static Addr word(const Row *r, uint16_t base, uint32_t f)
{
	return (Addr){ base, f * r->b->at.stride + r->i * r->b->at.case_step };
}

static Addr out_at(const Row *r, uint16_t base, Unit u) { return word(r, base, r->b->at.case_out + u); }
static Addr net_at(const Row *r, uint16_t base, Unit u) { return word(r, base, r->b->at.case_net + r->b->net_word[u]); }
static Addr kept_at(const Row *r, uint16_t base, Unit u)
{
	return word(r, base, r->b->at.case_kept + r->b->settling->kept[u]);
}

/* ---- microcode ---- */

static void contexts_case(Row *r, const UnitsCode *u)
{
	const BpTicks *s = r->b->settling;
	Gen *g = r->c.g;
	Reg zero = constant(&r->c, K_ZERO), start = zero;
	float value = 0;
	for (uint32_t k = u->first; k < u->first + u->units; k++) {
		float starts = net_group(r->b->net, s->to[k])->start;
		if (u->kind == FIRST && starts != value)
			start = starts != 0 ? g_const(g, starts) : zero;
		value = starts;
		g_store(g, out_at(r, BP_CASE, s->to[k]), u->kind == FIRST ? start : g_load(g, out_at(r, BP_BACK, s->from[k])));
		if (r->b->back[s->to[k]])
			g_store(g, net_at(r, BP_CASE, s->to[k]), zero);
	}
}

static void carry_case(Row *r, const UnitsCode *u)
{
	const BpTicks *s = r->b->settling;
	Gen *g = r->c.g;
	for (uint32_t k = u->first; k < u->first + u->units; k++)
		if (r->b->back[s->to[k]]) {
			Reg own = g_load(g, net_at(r, BP_CASE, s->from[k])), later = g_load(g, net_at(r, BP_BACK, s->to[k]));
			g_store(g, net_at(r, BP_CASE, s->from[k]), g_fadd(g, own, later));
		}
}

static void no_inputs_case(Row *r, const UnitsCode *u)
{
	for (uint32_t k = u->first; k < u->first + u->units; k++)
		g_store(r->c.g, out_at(r, BP_CASE, r->b->input[k]), constant(&r->c, K_ZERO));
}

static void no_targets_case(Row *r, const UnitsCode *u)
{
	(void)u;
	g_store(r->c.g, word(r, BP_CASE, r->b->at.case_weight), constant(&r->c, K_ZERO));
}

/* last + dt (new - last) */
static Reg moved(Gen *g, Reg last, Reg new, float dt)
{
	return g_fadd(g, last, g_fmul(g, g_const(g, dt), g_fsub(g, new, last)));
}

static void integrate_case(Row *r, const UnitsCode *u, int which)
{
	Gen *g = r->c.g;
	for (uint32_t i = 0; i < u->k->units; i++) {
		Unit unit = u->k->unit[i].unit;
		const Group *of = net_group(r->b->net, unit);
		float dt = (float)group_dt(of, r->b->opt);
		if (of->integrate != which || (which == INTEGRATE_INPUT && !u->k->unit[i].linked))
			continue;
		bool input = which == INTEGRATE_INPUT;
		Reg new = g_load(g, input ? net_at(r, BP_CASE, unit) : out_at(r, BP_CASE, unit)), last;
		if (u->kind == NEXT)
			last = g_load(g, input ? kept_at(r, BP_BACK, unit) : out_at(r, BP_BACK, unit));
		else
			last = input || of->start == 0 ? constant(&r->c, K_ZERO) : g_const(g, of->start);
		Reg value = moved(g, last, new, dt);
		g_store(g, kept_at(r, BP_CASE, unit), input ? value : new);
		g_store(g, input ? net_at(r, BP_CASE, unit) : out_at(r, BP_CASE, unit), value);
	}
}

/* The slope of a unit that integrates its output is that of what the output moves to. */
static void integrate_back_case(Row *r, const UnitsCode *u, int which)
{
	Gen *g = r->c.g;
	for (uint32_t i = 0; i < u->k->units; i++) {
		Unit unit = u->k->unit[i].unit;
		const Group *of = net_group(r->b->net, unit);
		float dt = (float)group_dt(of, r->b->opt);
		if (of->integrate != which || (which == INTEGRATE_INPUT && !u->k->unit[i].linked))
			continue;
		Reg error = g_load(g, net_at(r, BP_CASE, unit));
		if (u->kind == NEXT)
			error = g_fadd(g, error, g_fmul(g, g_const(g, 1 - dt), g_load(g, kept_at(r, BP_BACK, unit))));
		if (which == INTEGRATE_OUTPUT)
			g_store(g, out_at(r, BP_CASE, unit), g_load(g, kept_at(r, BP_CASE, unit)));
		g_store(g, kept_at(r, BP_CASE, unit), error);
		g_store(g, net_at(r, BP_CASE, unit), g_fmul(g, g_const(g, dt), error));
	}
}

static void input_case(Row *r, const UnitsCode *u) { integrate_case(r, u, INTEGRATE_INPUT); }
static void output_case(Row *r, const UnitsCode *u) { integrate_case(r, u, INTEGRATE_OUTPUT); }
static void input_back_case(Row *r, const UnitsCode *u) { integrate_back_case(r, u, INTEGRATE_INPUT); }
static void output_back_case(Row *r, const UnitsCode *u) { integrate_back_case(r, u, INTEGRATE_OUTPUT); }

static Code *record_rows(const UnitsCode *u, uint32_t cases, const char *name, void (*one)(Row *r, const UnitsCode *u))
{
	Row r = { .b = u->b, .c.g = gen_record(u->b->cx, u->b->m, name) };
	for (r.i = 0; r.i < cases; r.i++)
		one(&r, u);
	Code *code = gen_end(r.c.g);
	return code->recs ? code : NULL;
}

static Code *contexts(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "contexts", contexts_case); }
static Code *carry(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "carry", carry_case); }
static Code *no_inputs(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "no inputs", no_inputs_case); }
static Code *no_targets(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "no targets", no_targets_case); }
static Code *input(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "integrate", input_case); }
static Code *output(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "integrate", output_case); }
static Code *input_back(const UnitsCode *u, uint32_t n) { return record_rows(u, n, "integrate back", input_back_case); }
static Code *output_back(const UnitsCode *u, uint32_t n)
{
	return record_rows(u, n, "integrate back", output_back_case);
}

/* ---- loading ---- */

/* Compiler 1989: a call for each case. */
static bool calls_load(Bp *b, BpCalls *c, const UnitsCode *u)
{
	if (b->best)
		return best_calls(b, c, u, 1);
	Code *code = u->record(u, 1);
	c->each = code ? 1 : 0;
	if (code)
		c->routine[0] = bp_load(b, code);
	return code != NULL;
}

static void pairs_load(Bp *b, BpTicks *s)
{
	uint32_t calls = (uint32_t)ceil_div(s->pairs, PAIRS_A_CALL);
	s->contexts[FIRST] = NEW(&b->cx->keep, calls, BpCalls);
	s->contexts[NEXT] = NEW(&b->cx->keep, calls, BpCalls);
	s->carry = NEW(&b->cx->keep, calls, BpCalls);
	for (uint32_t first = 0; first < s->pairs; first += PAIRS_A_CALL, s->calls++) {
		UnitsCode u = { contexts, .b = b, .first = first, .units = min_u32(s->pairs - first, PAIRS_A_CALL) };
		for (u.kind = FIRST; u.kind < TICKS; u.kind++)
			calls_load(b, &s->contexts[u.kind][s->calls], &u);
		u.record = carry;
		calls_load(b, &s->carry[s->calls], &u);
	}
}

static void integrate_load(Bp *b, const BpChunk *k, Integrate *to, int which)
{
	bool in = which == INTEGRATE_INPUT;
	UnitsCode u = { .b = b, .k = k };
	for (u.kind = FIRST; u.kind < TICKS; u.kind++) {
		u.record = in ? input : output;
		if (calls_load(b, &to->forward[u.kind], &u))
			to->which = which;
		u.record = in ? input_back : output_back;
		calls_load(b, &to->back[u.kind], &u);
	}
}

void ticks_load(Bp *b)
{
	BpTicks *s = b->settling;
	if (!s)
		return;
	pairs_load(b, s);
	s->no_inputs = NEW(&b->cx->keep, ceil_div(b->net->inputs, INPUTS_A_CALL), BpCalls);
	for (uint32_t first = 0; b->ticks.inputs_end < b->ticks.each && first < b->net->inputs; first += INPUTS_A_CALL) {
		UnitsCode u = { no_inputs, .b = b, .first = first, .units = min_u32(b->net->inputs - first, INPUTS_A_CALL) };
		calls_load(b, &s->no_inputs[s->input_calls++], &u);
	}
	if (b->ticks.targets_from)
		calls_load(b, &s->no_targets, &(UnitsCode){ no_targets, .b = b });
	s->input = NEW(&b->cx->keep, b->chunks, Integrate);
	s->output = NEW(&b->cx->keep, b->chunks, Integrate);
	for (uint32_t i = 0; ticks_kept(b) && i < b->chunks; i++) {
		integrate_load(b, &b->chunk[i], &s->input[i], INTEGRATE_INPUT);
		integrate_load(b, &b->chunk[i], &s->output[i], INTEGRATE_OUTPUT);
	}
}

/* ---- calls ---- */

/* Of the tick at hand, with another one beside it. */
static void call(Bp *b, const BpCalls *c, uint32_t other, uint32_t count, uint64_t *cycles)
{
	for (uint32_t i = 0; c->each && i < count; i += c->each) {
		uint32_t row = b->at.cases + i * b->at.case_step;
		controller_base(b->c, BP_CASE, row + tick_at(b, b->tick));
		controller_base(b->c, BP_BACK, row + tick_at(b, other));
		bp_call(b, c->routine[count - i < c->each], cycles);
	}
}

static uint32_t before(const Bp *b) { return b->tick ? b->tick - 1 : 0; }

void ticks_begin(Bp *b, uint32_t count)
{
	const BpTicks *s = b->settling;
	for (uint32_t i = 0; s && b->tick >= b->ticks.inputs_end && i < s->input_calls; i++)
		call(b, &s->no_inputs[i], b->tick, count, &b->cycles_moves);
	for (uint32_t i = 0; s && i < s->calls; i++)
		call(b, &s->contexts[b->tick ? NEXT : FIRST][i], before(b), count, &b->cycles_moves);
}

void ticks_activate(Bp *b, uint32_t chunk, bool after, uint32_t count)
{
	const BpTicks *s = b->settling;
	const Integrate *of = !s ? NULL : after ? &s->output[chunk] : &s->input[chunk];
	if (of && of->which)
		call(b, &of->forward[b->tick ? NEXT : FIRST], before(b), count, &b->cycles_units);
}

void ticks_end(Bp *b, uint32_t count)
{
	if (b->settling && b->tick < b->ticks.targets_from)
		call(b, &b->settling->no_targets, b->tick, count, &b->cycles_moves);
}

static bool is_carried(const Bp *b)
{
	return b->opt->bptt != BPTT_COPY && b->tick + 1 < b->ticks.each && ticks_carry(&b->ticks, b->tick);
}

void ticks_carry_back(Bp *b, uint32_t count)
{
	const BpTicks *s = b->settling;
	for (uint32_t i = 0; s && is_carried(b) && i < s->calls; i++)
		call(b, &s->carry[i], b->tick + 1, count, &b->cycles_units);
}

void ticks_unit_error(Bp *b, uint32_t chunk, bool after, uint32_t count)
{
	const BpTicks *s = b->settling;
	const Integrate *of = !s ? NULL : after ? &s->input[chunk] : &s->output[chunk];
	if (of && of->which)
		call(b, &of->back[is_carried(b) ? NEXT : FIRST], is_carried(b) ? b->tick + 1 : b->tick, count,
		     &b->cycles_units);
}
