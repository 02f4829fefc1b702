/* SPDX-License-Identifier: MIT */
/* Restarts of a tiny network, one thread per seed. In: the network, its data as dense rows. Out: the text of a
 * kernel with two modes: initial weights of all seeds; training.
 *
 * Weights, gradients and rule state are registers; all loops over links are unrolled. If cases are few, they are
 * unrolled too, and their data is constant: an input of 0 adds nothing, one of 1 needs no multiplication. A thread
 * whose seed has ended takes the next one (persistent threads, work queue); when the launch stops, it hands its seed
 * over to the next launch. Must hold: every sum has the order of target cpu. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kern.h"
#include "lanes.h"

enum {
	SUM_LANES = 16,       /* vectors of target cpu: errors of outputs are summed in such lanes */
	UNROLLED_WORK = 1024, /* links times cases that are unrolled */
	HIDDEN_AHEAD = 24     /* hidden units of several cases that are computed first: instruction-level parallelism */
};

static Reg move_f(Emit *e, float x) { return op1(e, REG_F, "mov.f32", imm_f(x)); }
static bool is_constant(Reg r, float x) { return r.type == REG_FLOAT && r.n == imm_f(x).n; }

/* ---- initial weights ---- */

/* Second word of Philox 4x32-10 of counter (link, 0, STREAM_WEIGHTS, 0). */
static Reg philox(Emit *e, Reg link, Reg key0, Reg key1)
{
	Reg c[4] = { link, imm(0), imm(STREAM_WEIGHTS), imm(0) };

	for (uint32_t round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			if (c[i].type == REG_INT)
				c[i] = op1(e, REG_R, "mov.u32", c[i]);
		Reg high_a = op2(e, REG_R, "mul.hi.u32", c[0], imm(0xD2511F53u));
		Reg low_a = op2(e, REG_R, "mul.lo.u32", c[0], imm(0xD2511F53u));
		Reg high_b = op2(e, REG_R, "mul.hi.u32", c[2], imm(0xCD9E8D57u));
		Reg low_b = op2(e, REG_R, "mul.lo.u32", c[2], imm(0xCD9E8D57u));
		Reg next0 = op2(e, REG_R, "xor.b32", op2(e, REG_R, "xor.b32", high_b, c[1]), key0);
		Reg next2 = op2(e, REG_R, "xor.b32", op2(e, REG_R, "xor.b32", high_a, c[3]), key1);
		c[0] = next0;
		c[1] = low_b;
		c[2] = next2;
		c[3] = low_a;
		key0 = add(e, key0, imm(0x9E3779B9u));
		key1 = add(e, key1, imm(0xBB67AE85u));
	}
	return c[1];
}

static Reg seed_of(Emit *e, Reg number)
{
	Reg stride = param_load(e, REG_R, offsetof(LaneJob, stride)), d = reg(e, REG_D);

	ins(e, "mad.wide.u32 $, $, $, $", d, number, stride, param_load(e, REG_D, offsetof(LaneJob, first)));
	return d;
}

/* Initial weights and rule state of all seeds: a grid-stride loop over weights. */
static void weights_make(Emit *e, const LaneSource *s, Reg thread, Reg count, Reg threads)
{
	Reg all = mul(e, count, pitch(s)), i = reg(e, REG_R);
	uint32_t top = label(e), done = label(e);

	remark(e, "initial weights");
	ins(e, "mov.u32 $, $", i, thread);
	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", i, all), done);
	Reg number = divide(e, i, pitch(s)), link = modulo(e, i, pitch(s), number), seed = seed_of(e, number);
	Reg key0 = op1(e, REG_R, "cvt.u32.u64", seed);
	Reg key1 = op1(e, REG_R, "cvt.u32.u64", op2(e, REG_D, "shr.u64", seed, imm(32)));
	Reg bits = op2(e, REG_R, "shr.u32", philox(e, link, key0, key1), imm(8));
	Reg unit = op2(e, REG_G, "mul.rn.f64", op1(e, REG_G, "cvt.rn.f64.u32", bits), literal(e, 1 / 16777216.0));
	Reg range = place(e, param_load(e, REG_D, offsetof(LaneJob, range)), link, 16);
	Reg low = load(e, REG_G, "ld.global.nc.f64", range, 0), width = load(e, REG_G, "ld.global.nc.f64", range, 8);
	Reg w = op2(e, REG_G, "add.rn.f64", low, op2(e, REG_G, "mul.rn.f64", width, unit));
	ins(e, "st.global.f32 [$], $", place(e, param_load(e, REG_D, offsetof(LaneJob, w)), i, 4),
	    op1(e, REG_F, "cvt.rn.f32.f64", w));
	Reg start = place(e, param_load(e, REG_D, offsetof(LaneJob, start)), link, 4);
	Reg to =
		place(e, place(e, param_load(e, REG_D, offsetof(LaneJob, state)), number, s->states * pitch(s) * 4), link, 4);
	for (uint32_t v = 0; v < s->states; v++)
		ins(e, "st.global.f32 [$+#], $", to, v * pitch(s) * 4,
		    load(e, REG_F, "ld.global.nc.f32", start, v * pitch(s) * 4));
	ins(e, "@$ st.global.u32 [$], 0", same(e, link, imm(0)),
	    place(e, param_load(e, REG_D, offsetof(LaneJob, epoch)), number, 4));
	ins(e, "add.u32 $, $, $", i, i, threads);
	ins(e, "bra L#", top);
	label_here(e, done);
}

/* ---- a case ---- */

static Reg times_add(Emit *e, Reg x, Reg w, Reg sum)
{
	if (is_constant(x, 0))
		return sum;
	return is_constant(x, 1) ? op2(e, REG_F, "add.rn.ftz.f32", w, sum) : op3(e, REG_F, "fma.rn.ftz.f32", x, w, sum);
}

/* The same if inputs are not constant: those of 0 are skipped, so that the bits are those of constant data. */
static Reg input_add(Lanes *k, Unit source, Reg w, Reg sum)
{
	Emit *e = k->e;

	if (!k->nonzero || k->nonzero[source].type != REG_P)
		return times_add(e, k->act[source], w, sum);
	Reg to = op1(e, REG_F, "mov.f32", sum);
	ins(e, "@$ fma.rn.ftz.f32 $, $, $, $", k->nonzero[source], to, k->act[source], w, sum);
	return to;
}

static void unit_forward(Lanes *k, const LaneUnit *u)
{
	const Net *net = k->s->net;
	uint64_t l = net->row[u->unit], end = net->row[u->unit + 1];
	Reg sum = imm_f(0);

	if (l < end && net_source(net, u->unit, l) == 0)
		sum = k->w[l++];
	for (; l < end; l++)
		if (k->sparse && l == k->sparse->first[u->unit]) {
			sum = sparse_forward(k, u->unit, sum);
			l += net->inputs - 1;
		} else {
			sum = input_add(k, net_source(net, u->unit, l), k->w[l], sum);
		}
	if (sum.type == REG_FLOAT)
		sum = move_f(k->e, 0);
	k->net[u->unit] = sum;
	k->act[u->unit] = unit_value(k->e, (uint32_t)u->fn, sum);
}

static Reg lanes_join(Emit *e, Reg lane[SUM_LANES], uint32_t count)
{
	for (uint32_t n = SUM_LANES / 2; n; n /= 2)
		for (uint32_t i = 0; i < n && i + n < count; i++)
			lane[i] = op2(e, REG_F, "add.rn.ftz.f32", lane[i], lane[i + n]);
	return lane[0];
}

static const LaneUnit *output_unit(const LaneSource *s, uint32_t n)
{
	uint32_t i = 0;
	while (i < s->computed && s->unit[i].output != (int32_t)n)
		i++;
	assert(i < s->computed); /* every output is a unit that is computed */
	return &s->unit[i];
}

/* Output n - its target. A sigmoid is never -0, so the subtraction of 0 is left out. */
static Reg away_lane(Lanes *k, uint32_t n)
{
	const LaneUnit *u = output_unit(k->s, n);

	if (u->fn == FN_SIGMOID && is_constant(k->y[n], 0))
		return k->act[u->unit];
	return op2(k->e, REG_F, "sub.rn.ftz.f32", k->act[u->unit], k->y[n]);
}

/* The error of the case; deltas of outputs. Errors of a group are summed in SUM_LANES lanes, as target cpu does. */
Reg errors_lane(Lanes *k)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	Reg total = imm_f(0);

	for (uint32_t first = 0; first < s->net->outputs;) {
		Reg lane[SUM_LANES];
		uint32_t part = output_unit(s, first)->part, n = first;
		for (; n < s->net->outputs && output_unit(s, n)->part == part; n++) {
			const LaneUnit *u = output_unit(s, n);
			ErrorOf of = { .fn = (uint32_t)u->fn,
				           .error = (uint32_t)s->error,
				           .known_net = s->error == ERR_CROSS_ENTROPY,
				           .out = k->act[u->unit],
				           .net = k->net[u->unit],
				           .y = k->y[n] };
			uint32_t i = (n - first) % SUM_LANES;
			bool fresh = n - first < SUM_LANES;
			e->binary = s->binary;
			Reg value = s->error == ERR_SQUARED ? away_lane(k, n) : error_value(e, &of);
			e->binary = false;
			if (s->error == ERR_SQUARED)
				lane[i] = op3(e, REG_F, "fma.rn.ftz.f32", value, value, fresh ? imm_f(0) : lane[i]);
			else
				lane[i] = fresh ? value : op2(e, REG_F, "add.rn.ftz.f32", lane[i], value);
			k->delta[u->unit] = s->error == ERR_SQUARED ? value : error_slope(e, &of, imm_f(0));
			if (!u->matched) {
				Reg slope = unit_slope(e, of.fn, of.net, of.out);
				if (u->fn == FN_SIGMOID && s->offset != 0)
					slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(s->offset));
				k->delta[u->unit] = op2(e, REG_F, "mul.rn.ftz.f32", k->delta[u->unit], slope);
			}
		}
		Reg sum = lanes_join(e, lane, n - first);
		if (s->error == ERR_SQUARED)
			sum = op2(e, REG_F, "mul.rn.ftz.f32", imm_f(0.5f), sum);
		total = total.type == REG_FLOAT ? sum : op2(e, REG_F, "add.rn.ftz.f32", total, sum);
		first = n;
	}
	return total;
}

/* P: all outputs are within the threshold. Only valid for finite errors: with others, the seed has failed anyway. */
Reg within_lane(Lanes *k)
{
	Emit *e = k->e;
	Reg near = reg(e, REG_P);

	ins(e, "setp.eq.u32 $, 0, 0", near);
	for (uint32_t n = 0; n < k->s->net->outputs; n++) {
		Reg away = op1(e, REG_F, "abs.f32", away_lane(k, n));
		ins(e, "setp.le.and.ftz.f32 $, $, $, $", near, away, imm_f(k->s->threshold), near);
	}
	return near;
}

/* P: the largest output is that of the target; a single output is on the side of its target. */
Reg right_lane(Lanes *k, Reg target_class)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	uint32_t outputs = s->net->outputs;
	Reg right = reg(e, REG_P);

	if (outputs == 1) {
		Reg above = op2(e, REG_P, "setp.gt.ftz.f32", k->act[output_unit(s, 0)->unit], imm_f(s->middle));
		Reg is = op3(e, REG_R, "selp.u32", imm(1), imm(0), above);
		ins(e, "setp.eq.u32 $, $, $", right, is, target_class);
	} else if (target_class.type == REG_INT) {
		Reg best = k->act[output_unit(s, target_class.n)->unit];
		ins(e, "setp.eq.u32 $, 0, 0", right);
		for (uint32_t n = 0; n < outputs; n++)
			if (n != target_class.n)
				ins(e, n < target_class.n ? "setp.gt.and.ftz.f32 $, $, $, $" : "setp.ge.and.ftz.f32 $, $, $, $", right,
				    best, k->act[output_unit(s, n)->unit], right);
	} else {
		Reg best = k->act[output_unit(s, 0)->unit], at = imm(0);
		for (uint32_t n = 1; n < outputs; n++) {
			Reg o = k->act[output_unit(s, n)->unit], more = op2(e, REG_P, "setp.gt.ftz.f32", o, best);
			best = op3(e, REG_F, "selp.f32", o, best, more);
			at = op3(e, REG_R, "selp.u32", imm(n), at, more);
		}
		ins(e, "setp.eq.u32 $, $, $", right, at, target_class);
	}
	return right;
}

static void score_lane(Lanes *k, Reg target_class)
{
	Emit *e = k->e;
	uint32_t others = 0;

	ins(e, "@$ add.u32 $, $, 1", within_lane(k), k->within, k->within);
	if (k->counts_late && !k->s->most_epochs)
		return;
	if (k->counts_late)
		others = if_begin(e, k->is_last);
	ins(e, "@$ add.u32 $, $, 1", right_lane(k, target_class), k->right, k->right);
	if (k->counts_late)
		if_end(e, others);
}

/* Delta of a hidden unit: sum over its targets, in ascending order. */
void unit_backward(Lanes *k, const LaneUnit *u)
{
	Emit *e = k->e;
	Reg sum = imm_f(0);

	for (uint32_t i = k->out[u->unit]; i < k->out[u->unit + 1]; i++)
		sum = op3(e, REG_F, "fma.rn.ftz.f32", k->delta[k->out_to[i]], k->w[k->out_link[i]], sum);
	if (sum.type == REG_FLOAT)
		sum = move_f(e, 0);
	Reg slope = unit_slope(e, (uint32_t)u->fn, k->net[u->unit], k->act[u->unit]);
	if (u->fn == FN_SIGMOID && k->s->offset != 0)
		slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(k->s->offset));
	k->delta[u->unit] = op2(e, REG_F, "mul.rn.ftz.f32", sum, slope);
}

static void unit_gradient(Lanes *k, const LaneUnit *u)
{
	const Net *net = k->s->net;

	for (uint64_t l = net->row[u->unit]; l < net->row[u->unit + 1]; l++) {
		Reg x = k->act[net_source(net, u->unit, l)], sum = k->g[l];
		bool stored = k->sparse && k->sparse->input[net_source(net, u->unit, l)];
		if (net_block(net, u->unit, l)->frozen || is_constant(x, 0) || stored)
			continue;
		if (is_constant(x, 1))
			ins(k->e, "add.rn.ftz.f32 $, $, $", sum, k->delta[u->unit], sum);
		else
			ins(k->e, "fma.rn.ftz.f32 $, $, $, $", sum, k->delta[u->unit], x, sum);
	}
}

void lane_forward(Lanes *k, bool outputs)
{
	for (uint32_t i = 0; i < k->s->computed; i++)
		if ((k->s->unit[i].output >= 0) == outputs)
			unit_forward(k, &k->s->unit[i]);
}

/* Outputs, scores, backward pass and gradient of a case, after hidden units. */
static void case_rest(Lanes *k, Reg target_class)
{
	const LaneSource *s = k->s;

	lane_forward(k, true);
	Reg error = errors_lane(k);
	ins(k->e, "add.rn.f64 $, $, $", k->error, k->error, op1(k->e, REG_G, "cvt.f64.f32", error));
	score_lane(k, target_class);
	for (uint32_t i = s->computed; i-- > 0;)
		if (s->unit[i].output < 0)
			unit_backward(k, &s->unit[i]);
	for (uint32_t i = 0; i < s->computed; i++)
		unit_gradient(k, &s->unit[i]);
	if (k->sparse)
		sparse_gradient(k);
}

static void case_constant(Lanes *k, uint64_t c)
{
	const LaneSource *s = k->s;

	for (uint32_t i = 0; i < s->net->inputs; i++) {
		float x = s->x[c * s->net->inputs + i];
		k->act[s->input[i]] = x == 0 || x == 1 ? imm_f(x == 0 ? 0 : 1) : move_f(k->e, x);
	}
	lane_forward(k, false);
}

/* All cases, unrolled. Hidden units of several cases come first, so that more instructions are independent. */
static void cases_constant(Lanes *k)
{
	const LaneSource *s = k->s;
	uint32_t hidden = s->computed - s->net->outputs;
	uint64_t each = hidden && hidden <= HIDDEN_AHEAD ? HIDDEN_AHEAD / hidden : 1;
	Reg *act = NEW(&s->cx->scratch, each * s->net->units, Reg), *net = NEW(&s->cx->scratch, each * s->net->units, Reg);

	for (uint64_t first = 0; first < s->cases; first += each) {
		uint64_t end = min_u64(first + each, s->cases);
		for (uint64_t c = first; c < end; c++) {
			k->act = act + (c - first) * s->net->units;
			k->net = net + (c - first) * s->net->units;
			k->act[0] = imm_f(1);
			case_constant(k, c);
		}
		for (uint64_t c = first; c < end; c++) {
			k->act = act + (c - first) * s->net->units;
			k->net = net + (c - first) * s->net->units;
			for (uint32_t n = 0; n < s->net->outputs; n++)
				k->y[n] = imm_f(s->y[c * s->net->outputs + n]);
			case_rest(k, imm(s->target_class[c]));
		}
	}
}

/* Case c, whose data is loaded: the same one in all threads. */
static void case_loaded(Lanes *k, Reg c)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	Reg x = place(e, param_load(e, REG_D, offsetof(LaneJob, x)), c, s->net->inputs * 4);
	Reg y = place(e, param_load(e, REG_D, offsetof(LaneJob, y)), c, s->net->outputs * 4);

	for (uint32_t i = 0; i < s->net->inputs; i++)
		k->act[s->input[i]] = load(e, REG_F, "ld.global.nc.f32", x, 4 * i);
	for (uint32_t n = 0; n < s->net->outputs; n++)
		k->y[n] = load(e, REG_F, "ld.global.nc.f32", y, 4 * n);
	lane_forward(k, false);
	case_rest(k, load(e, REG_R, "ld.global.nc.u32",
	                  place(e, param_load(e, REG_D, offsetof(LaneJob, target_class)), c, 4), 0));
}

static void case_sparse(Lanes *k, Reg c)
{
	Reg target_class = sparse_case(k, c);

	lane_forward(k, false);
	case_rest(k, target_class);
}

/* ---- an epoch ---- */

RuleNumbers lane_numbers(Lanes *k)
{
	RuleNumbers n = { 0 };

	for (uint32_t i = 0; i < P_COUNT; i++)
		n.param[i] = move_f(k->e, (float)k->s->param[i]);
	return n;
}

Reg link_update(Lanes *k, Unit u, uint64_t l, const RuleNumbers *n, Reg g, Reg w)
{
	const LaneSource *s = k->s;
	Reg variable[2 + MAX_STATE] = { g, w };

	for (uint32_t v = 0; v < s->states; v++)
		variable[2 + v] = k->state[v][l];
	Reg rate = move_f(k->e, (float)(s->param[P_RATE] * (double)net_block(s->net, u, l)->rate));
	formula_values(k->e, s->formula, n, rate, variable);
	for (uint32_t v = 0; v < s->states; v++)
		ins(k->e, "mov.f32 $, $", k->state[v][l], variable[2 + v]);
	return variable[1];
}

static void update_lane(Lanes *k)
{
	const LaneSource *s = k->s;
	RuleNumbers n = lane_numbers(k);

	for (uint32_t i = 0; i < s->computed; i++) {
		Unit u = s->unit[i].unit;
		for (uint64_t l = s->net->row[u]; l < s->net->row[u + 1]; l++)
			if (!net_block(s->net, u, l)->frozen && !(k->sparse && k->sparse->input[net_source(s->net, u, l)]))
				ins(k->e, "mov.f32 $, $", k->w[l], link_update(k, u, l, &n, k->g[l], k->w[l]));
	}
	if (k->sparse)
		sparse_update(k, &n);
}

static void epoch_emit(Lanes *k)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;

	for (uint64_t l = 0; l < s->net->links; l++)
		ins(e, "mov.f32 $, 0f00000000", k->g[l]);
	ins(e, "mov.f64 $, 0d0000000000000000", k->error);
	ins(e, "mov.u32 $, 0", k->right);
	ins(e, "mov.u32 $, 0", k->within);
	if (k->counts_late && s->most_epochs)
		k->is_last = op2(e, REG_P, "setp.ge.u32", k->epoch, imm(s->most_epochs - 1));
	if (k->constant && !k->sparse) {
		cases_constant(k);
	} else {
		Loop l = loop_count(e, (uint32_t)s->cases);
		if (k->sparse)
			case_sparse(k, l.i);
		else
			case_loaded(k, l.i);
		loop_end(e, &l);
	}
	update_lane(k);
	ins(e, "add.u32 $, $, 1", k->epoch, k->epoch);
}

/* P: the seed ends after this epoch. */
Reg lane_ends(Lanes *k)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	Reg ends = op2(e, REG_P, "setp.ge.u32", k->right, imm(s->end_right));

	ends = op2(e, REG_P, "or.pred", ends, op2(e, REG_P, "setp.ge.u32", k->within, imm(s->end_within)));
	if (!isnan(s->until_error)) {
		Reg mean = op2(e, REG_G, "div.rn.f64", k->error, literal(e, (double)s->cases));
		ends = op2(e, REG_P, "or.pred", ends, op2(e, REG_P, "setp.lt.f64", mean, literal(e, s->until_error)));
	}
	if (s->most_epochs)
		ends = op2(e, REG_P, "or.pred", ends, op2(e, REG_P, "setp.ge.u32", k->epoch, imm(s->most_epochs)));
	Reg none = op2(e, REG_G, "sub.rn.f64", k->error, k->error);
	return op2(e, REG_P, "or.pred", ends, op2(e, REG_P, "setp.neu.f64", none, literal(e, 0)));
}

/* ---- seeds ---- */

Reg row_of(Lanes *k, size_t field, Reg number, uint32_t rows)
{
	return place(k->e, param_load(k->e, REG_D, field), number, rows * pitch(k->s) * 4);
}

static void seed_load(Lanes *k)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	Reg at = row_of(k, offsetof(LaneJob, w), k->seed, 1);
	Reg state = row_of(k, offsetof(LaneJob, state), k->seed, s->states);

	for (uint32_t l = 0; l < pitch(s); l += 4)
		load_quad_to(e, "global", k->w + l, at, 4 * l);
	for (uint32_t v = 0; v < s->states; v++)
		for (uint32_t l = 0; l < pitch(s); l += 4)
			load_quad_to(e, "global", k->state[v] + l, state, 4 * (v * pitch(s) + l));
	ins(e, "ld.global.u32 $, [$]", k->epoch, place(e, param_load(e, REG_D, offsetof(LaneJob, epoch)), k->seed, 4));
	if (k->sparse)
		sparse_put(k);
}

static void seed_hand_over(Lanes *k)
{
	Emit *e = k->e;
	const LaneSource *s = k->s;
	Reg at = row_of(k, offsetof(LaneJob, w), k->seed, 1), number = reg(e, REG_R);
	Reg state = row_of(k, offsetof(LaneJob, state), k->seed, s->states);

	if (k->sparse)
		sparse_get(k);
	for (uint32_t l = 0; l < pitch(s); l += 4)
		store_quad(e, "global", at, 4 * l, k->w + l);
	for (uint32_t v = 0; v < s->states; v++)
		for (uint32_t l = 0; l < pitch(s); l += 4)
			store_quad(e, "global", state, 4 * (v * pitch(s) + l), k->state[v] + l);
	ins(e, "st.global.u32 [$], $", place(e, param_load(e, REG_D, offsetof(LaneJob, epoch)), k->seed, 4), k->epoch);
	ins(e, "atom.global.add.u32 $, [$], 1", number, param_load(e, REG_D, offsetof(LaneJob, handed_over_count)));
	ins(e, "st.global.u32 [$], $", place(e, param_load(e, REG_D, offsetof(LaneJob, handed_over)), number, 4), k->seed);
}

void seed_store(Lanes *k)
{
	Emit *e = k->e;
	Reg number = reg(e, REG_R);

	ins(e, "atom.global.add.u32 $, [$], 1", number, param_load(e, REG_D, offsetof(LaneJob, ended)));
	Reg at = row_of(k, offsetof(LaneJob, end_w), number, 1);
	Reg to = place(e, param_load(e, REG_D, offsetof(LaneJob, result)), number, sizeof(LaneResult));
	if (k->sparse)
		sparse_get(k);
	if (k->counts_late)
		ins(e, "@$ mov.u32 $, #", op2(e, REG_P, "setp.ge.u32", k->within, imm((uint32_t)k->s->cases)), k->right,
		    (uint32_t)k->s->cases);
	for (uint32_t l = 0; l < pitch(k->s); l += 4)
		store_quad(e, "global", at, 4 * l, k->w + l);
	ins(e, "st.global.f64 [$+#], $", to, (uint32_t)offsetof(LaneResult, error), k->error);
	ins(e, "st.global.u32 [$+#], $", to, (uint32_t)offsetof(LaneResult, epochs), k->epoch);
	ins(e, "st.global.u32 [$+#], $", to, (uint32_t)offsetof(LaneResult, right), k->right);
	ins(e, "st.global.u32 [$+#], $", to, (uint32_t)offsetof(LaneResult, within), k->within);
	ins(e, "st.global.u32 [$+#], $", to, (uint32_t)offsetof(LaneResult, number), k->seed);
}

Reg seed_number(Lanes *k, Reg i)
{
	Emit *e = k->e;
	Reg goes_on = less(e, i, k->list_count), number = reg(e, REG_R);

	ins(e, "@!$ atom.global.add.u32 $, [$], 1", goes_on, number, param_load(e, REG_D, offsetof(LaneJob, next)));
	ins(e, "@$ ld.global.u32 $, [$]", goes_on, number, place(e, param_load(e, REG_D, offsetof(LaneJob, list)), i, 4));
	return number;
}

/* The seed of entry i; to label `done` if none is left. */
static void seed_take(Lanes *k, Reg i, uint32_t done)
{
	Emit *e = k->e;

	ins(e, "mov.u32 $, $", k->seed, seed_number(k, i));
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->seed, param_load(e, REG_R, offsetof(LaneJob, count))), done);
	seed_load(k);
}

Reg list_next(Lanes *k)
{
	Emit *e = k->e;
	Reg i = reg(e, REG_R);

	ins(e, "mov.u32 $, $", i, k->list_count);
	uint32_t all = if_begin(e, less(e, k->threads, k->list_count));
	ins(e, "atom.global.add.u32 $, [$], 1", i, param_load(e, REG_D, offsetof(LaneJob, list_taken)));
	ins(e, "add.u32 $, $, $", i, i, k->threads);
	if_end(e, all);
	return i;
}

/* thread: its number in the grid; adjacent warps are in different blocks, so that few seeds use all multiprocessors. */
static void train_lanes(Lanes *k, Reg thread)
{
	Emit *e = k->e;
	uint32_t top = label(e), done = label(e);
	Reg ended = param_load(e, REG_D, offsetof(LaneJob, ended)), stop = param_load(e, REG_R, offsetof(LaneJob, stop)),
		so_far = reg(e, REG_R);

	k->list_count = load(e, REG_R, "ld.global.nc.u32", param_load(e, REG_D, offsetof(LaneJob, list_count)), 0);
	seed_take(k, thread, done);
	label_here(e, top);
	ins(e, "ld.relaxed.gpu.global.u32 $, [$]", so_far, ended); /* loaded early: its latency is hidden */
	epoch_emit(k);
	Reg stops = op2(e, REG_P, "setp.ge.u32", so_far, stop), ends = lane_ends(k);
	uint32_t goes_on = if_begin(e, op2(e, REG_P, "or.pred", ends, stops));
	uint32_t open = if_begin(e, ends);
	seed_store(k);
	if_end(e, open);
	uint32_t over = if_begin(e, stops);
	uint32_t ended_too = unless_begin(e, ends);
	seed_hand_over(k);
	if_end(e, ended_too);
	ins(e, "bra L#", done);
	if_end(e, over);
	seed_take(k, list_next(k), done);
	if_end(e, goes_on);
	ins(e, "bra L#", top);
	label_here(e, done);
}

/* ---- the kernel ---- */

static Reg *registers(Lanes *k, uint64_t count)
{
	Reg *r = NEW(&k->s->cx->scratch, count + 1, Reg);

	for (uint64_t i = 0; i < count; i++)
		r[i] = reg(k->e, REG_F);
	return r;
}

static void lanes_links(Lanes *k)
{
	const Net *net = k->s->net;
	Arena *a = &k->s->cx->scratch;

	k->out = NEW(a, net->units + 2, uint32_t);
	k->out_link = NEW(a, net->links + 1, uint64_t);
	k->out_to = NEW(a, net->links + 1, uint32_t);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			k->out[net_source(net, u, l) + 1]++;
	for (Unit u = 0; u < net->units; u++)
		k->out[u + 1] += k->out[u];
	uint32_t *at = NEW(a, net->units + 1, uint32_t);
	memcpy(at, k->out, net->units * sizeof *at);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			uint32_t to = at[net_source(net, u, l)]++;
			k->out_link[to] = l;
			k->out_to[to] = u;
		}
}

Lanes lanes_begin(const LaneSource *s, Arena *a)
{
	Emit *e = NEW(a, 1, Emit);
	Lanes k = { .s = s, .e = e, .constant = s->net->links * s->cases <= UNROLLED_WORK };

	e->text.arena = a;
	lanes_links(&k);
	k.w = registers(&k, pitch(s));
	k.act = NEW(&s->cx->scratch, s->net->units + 1, Reg);
	k.net = NEW(&s->cx->scratch, s->net->units + 1, Reg);
	k.delta = NEW(&s->cx->scratch, s->net->units + 1, Reg);
	k.y = NEW(&s->cx->scratch, s->net->outputs + 1, Reg);
	k.act[0] = imm_f(1);
	k.error = reg(e, REG_G);
	k.right = reg(e, REG_R);
	k.within = reg(e, REG_R);
	k.epoch = reg(e, REG_R);
	k.seed = reg(e, REG_R);
	return k;
}

/* May right cases be counted in the last epoch only? If seeds end when all cases are within the threshold, or at a
 * limit of epochs, and a case within the threshold is right. */
static bool counts_may_be_late(const LaneSource *s)
{
	bool tells = s->binary && s->net->outputs > 1 && s->threshold < 0.5f && s->end_right == UINT32_MAX &&
	             isnan(s->until_error) && (s->end_within == s->cases || s->end_within == UINT32_MAX);

	for (uint64_t c = 0; c < s->cases; c++) {
		float sum = 0;
		for (uint32_t n = 0; n < s->net->outputs; n++)
			sum += s->y[c * s->net->outputs + n];
		tells &= sum == 1;
	}
	return tells;
}

void lanes_text(const LaneSource *s, Arena *a, Buf *out, uint32_t *shared)
{
	Lanes k = lanes_begin(s, a);
	Emit *e = k.e;

	k.g = registers(&k, pitch(s));
	for (uint32_t v = 0; v < s->states; v++)
		k.state[v] = registers(&k, pitch(s));
	Reg tid = special_register(e, "%tid.x"), block = special_register(e, "%ctaid.x");
	Reg blocks = special_register(e, "%nctaid.x"), mode = param_load(e, REG_R, offsetof(LaneJob, mode));
	Reg warp = op2(e, REG_R, "shr.u32", tid, imm(5)), lane = op2(e, REG_R, "and.b32", tid, imm(31));
	uint32_t train = unless_begin(e, op2(e, REG_P, "setp.ne.u32", mode, imm(LANES_MAKE)));
	weights_make(e, s, mad(e, block, s->threads, tid), param_load(e, REG_R, offsetof(LaneJob, count)),
	             mul(e, blocks, s->threads));
	ins(e, "ret");
	if_end(e, train);
	k.threads = mul(e, blocks, s->threads);
	k.sparse = sparse_plan(s);
	k.counts_late = counts_may_be_late(s);
	*shared = k.sparse ? k.sparse->bytes : 0;
	if (k.sparse)
		sparse_begin(&k, tid);
	train_lanes(&k, mad(e, op3(e, REG_R, "mad.lo.u32", warp, blocks, block), 32, lane));
	ins(e, "ret");
	kernel_wrap(e, out, sizeof(LaneJob), s->threads, 0);
}
