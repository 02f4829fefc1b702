/* SPDX-License-Identifier: MIT */
/* Errors and verdicts of rows, beside the gradient: nothing of the update depends on them. In: outputs and net inputs
 * in deferred rows, targets. Out: error and verdict of each row in global memory, with the bits of score.c: errors are
 * added as 16 lanes would. A thread has a row; sums of code words are instructions, in single precision; where these do
 * not tell, in double. */
#include <math.h>

#include "bf16_emit.h"
#include "kern.h"
#include "units.h"

enum { ROW_LANES = 16 };

/* ---- plan ---- */

enum { MOST_OUTPUTS = 64, MOST_CODE_OPS = 1500 };

/* The step that makes deltas of what an errors step leaves; NULL: none. */
static const DeviceStep *deltas_after(const Kernel *k, const DeviceStep *errors)
{
	for (const DeviceStep *s = errors + 1; s < k->s->step + k->s->list->gradient; s++)
		if (s->kind == STEP_DELTAS && s->c == errors->c && s->c_col == errors->c_col && s->cols == errors->cols)
			return s;
	return NULL;
}

/* The product that computes these outputs, if nothing but errors, deltas and verdicts reads them; else NO_STEP. */
static uint32_t outputs_product(const Kernel *k, const DeviceStep *errors)
{
	uint32_t found = NO_STEP;

	if (errors->fn == FN_SOFTMAX || errors->error == ERR_DIVERGENCE || errors->a_col % 4)
		return NO_STEP;
	for (uint32_t i = 0; i < k->s->list->steps; i++) {
		const DeviceStep *s = &k->s->step[i];
		Access a[8];
		uint32_t n = step_access(k, s, a);
		if (s->kind == STEP_PRODUCT && s->after == AFTER_UNITS && s->c_col == errors->a_col &&
		    s->cols == errors->cols && s < errors)
			found = i;
		else if (s != errors && s != deltas_after(k, errors))
			for (uint32_t x = 0; x < n; x++)
				if (!a[x].writes && (a[x].buf == BUF_ACT || a[x].buf == BUF_NET) &&
				    a[x].col < errors->a_col + errors->cols && errors->a_col < a[x].col + a[x].count)
					return NO_STEP;
	}
	return found;
}

static uint32_t code_ops(const EmitSource *s)
{
	const DeviceData *d = &s->job->data;

	return d->code_count ? (d->part_count[0] + d->part_count[1]) * (s->code_longest + 6) : 0;
}

/* Are errors and verdicts formed late, a thread for each row, beside the gradient? */
void plan_deferred_scores(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t outputs = 0, steps = 0;

	k->deferred_scores = false;
	k->fused = NEW(&s->cx->scratch, s->list->steps + 1, uint32_t);
	for (uint32_t i = 0; i <= s->list->steps; i++)
		k->fused[i] = NO_STEP;
	if (s->test || s->tiled || s->job->criteria || s->job->outputs > MOST_OUTPUTS || code_ops(s) > MOST_CODE_OPS ||
	    !has_step(k, STEP_SCORES))
		return;
	for (uint32_t i = 0; i < s->list->gradient; i++) {
		const DeviceStep *d = &s->step[i];
		if (d->kind != STEP_ERRORS)
			continue;
		if (d->scale != 1 || d->near)
			return;
		uint32_t from = outputs_product(k, d);
		if (from == NO_STEP || d->y != outputs)
			return;
		k->fused[from] = i;
		outputs += d->cols;
		steps++;
	}
	if (outputs == s->job->outputs && steps)
		k->deferred_scores = true;
}

bool is_deferred(const Kernel *k, const DeviceStep *s)
{
	if (!k->deferred_scores)
		return false;
	for (const DeviceStep *e = k->s->step; e < s; e++)
		if (e->kind == STEP_ERRORS && deltas_after(k, e) == s)
			return true;
	return s->kind == STEP_ERRORS;
}

const DeviceStep *deferred_deltas(const Kernel *k, const DeviceStep *errors) { return deltas_after(k, errors); }

const DeviceStep *deferred_errors(const Kernel *k, const DeviceStep *s)
{
	if (!k->deferred_scores || s < k->s->step || k->fused[s - k->s->step] == NO_STEP)
		return NULL;
	return &k->s->step[k->fused[s - k->s->step]];
}

/* Outputs of each errors step, then their net inputs. */
uint32_t deferred_at(const Kernel *k, const DeviceStep *errors, bool net)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < k->s->list->gradient; i++) {
		const DeviceStep *s = &k->s->step[i];
		uint32_t bytes = (uint32_t)round_up(s->cols, 4) * 4;
		if (s->kind != STEP_ERRORS)
			continue;
		if (s == errors)
			return at + (net ? bytes : 0);
		at += bytes * (s->known_net ? 2 : 1);
	}
	return at;
}

/* ---- rows ---- */

/* A row: addresses of its late outputs and targets; outputs in registers. */
typedef struct ScoredRow {
	Reg row, is_row, late, y;
	Reg *out;   /* [outputs] */
	Reg own[4]; /* CodeOwn */
	Reg error, verdict;
	Reg word;    /* targets that are bits; */
	Reg *target; /* [outputs] these as floats */
} ScoredRow;

static Reg predicate(Emit *e, bool value) { return op2(e, REG_P, "setp.ne.u32", imm(value), imm(0)); }
static void or_to(Emit *e, Reg p, Reg q) { ins(e, "or.pred $, $, $", p, p, q); }
static bool has_words(const Kernel *k) { return k->y_bits || (k->bf16 && k->bf16->y_bits); }
/* Every row has all targets. */
static bool has_all(const Kernel *k) { return has_words(k) || k->s->job->data.y_bits; }
static Reg target(Kernel *k, const ScoredRow *r, uint32_t n)
{
	return has_words(k) ? r->target[n] : load(k->e, REG_F, "ld.shared.f32", r->y, 4 * n);
}

/* All targets, from their word. */
static void targets_of(Kernel *k, ScoredRow *r)
{
	r->target = NEW(&k->s->cx->scratch, k->s->job->outputs + 1, Reg);
	for (uint32_t n = 0; n < k->s->job->outputs; n++)
		r->target[n] = y_bit(k->e, r->word, n);
}

static const DeviceStep *errors_step(const Kernel *k, uint32_t *from)
{
	for (uint32_t i = *from; i < k->s->list->gradient; i++)
		if (k->s->step[i].kind == STEP_ERRORS) {
			*from = i + 1;
			return &k->s->step[i];
		}
	return NULL;
}

static void outputs_load(Kernel *k, ScoredRow *r)
{
	uint32_t from = 0, n = 0;

	r->out = NEW(&k->s->cx->scratch, k->s->job->outputs + 4, Reg);
	for (const DeviceStep *s; (s = errors_step(k, &from)) != NULL; n += s->cols)
		for (uint32_t i = 0; i < s->cols; i += 4) {
			Reg q[4];
			load_quad(k->e, "shared", q, r->late, deferred_at(k, s, false) + 4 * i);
			for (uint32_t c = 0; c < 4 && i + c < s->cols; c++)
				r->out[n + i + c] = q[c];
		}
}

/* ---- code words ---- */

/* Squared distance from a word of the outputs in a deferred row that have a target. */
static Reg word_distance(Kernel *k, Reg late, Reg y, Reg word)
{
	Emit *e = k->e;
	uint32_t outputs = k->s->job->outputs, from = 0, n = 0;
	Reg at = place(e, POINTER(k, data.codes), word, outputs * 8), sum = literal(e, 0);

	for (const DeviceStep *s; (s = errors_step(k, &from)) != NULL;)
		for (uint32_t i = 0; i < s->cols; i++, n++) {
			Reg o = load(e, REG_F, "ld.shared.f32", late, deferred_at(k, s, false) + 4 * i);
			Reg d = op2(e, REG_G, "sub.rn.f64", load(e, REG_G, "ld.global.nc.f64", at, 8 * n),
			            op1(e, REG_G, "cvt.f64.f32", o));
			Reg known = has_words(k) ? predicate(e, true) : is_number(e, load(e, REG_F, "ld.shared.f32", y, 4 * n));
			ins(e, "@$ add.rn.f64 $, $, $", known, sum, sum, op2(e, REG_G, "mul.rn.f64", d, d));
		}
	return sum;
}

static Reg lane_value(Emit *e, Reg x, Reg lane)
{
	Reg d = reg(e, REG_R);

	ins(e, "shfl.sync.idx.b32 $, $, $, 31, 0xffffffff", d, x, lane);
	return d;
}

/* Rows of lanes where `open` holds: all lanes of the warp measure all distances from the row, one row after the other.
 * Where no word is nearer than the row's own, wrong is cleared, else set. */
static void words_measure(Kernel *k, const ScoredRow *r, Reg open, Reg wrong)
{
	Emit *e = k->e;
	uint32_t count = k->s->job->data.code_count, top = label(e), done = label(e);
	Reg left = reg(e, REG_R), lane = op2(e, REG_R, "and.b32", k->tid, imm(31));

	ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", left, open);
	label_here(e, top);
	ins(e, "@$ bra L#", same(e, left, imm(0)), done);
	Reg of = op1(e, REG_R, "clz.b32", op1(e, REG_R, "brev.b32", left));
	Reg late = lane_value(e, r->late, of), y = lane_value(e, r->y, of);
	Reg own = word_distance(k, late, y, lane_value(e, r->own[0], of)), any = reg(e, REG_P);
	Reg nearer = op2(e, REG_P, "setp.neu.f64", own, own);
	Loop words = loop_count(e, (uint32_t)ceil_div(count, 32));
	Reg w = op2(e, REG_R, "min.u32", mad(e, words.i, 32, lane), imm(count - 1));
	or_to(e, nearer, op2(e, REG_P, "setp.lt.f64", word_distance(k, late, y, w), own));
	loop_end(e, &words);
	ins(e, "vote.sync.any.pred $, $, 0xffffffff", any, nearer);
	ins(e, "@$ and.pred $, $, $", same(e, lane, of), wrong, any, any);
	ins(e, "and.b32 $, $, $", left, left, add(e, left, imm(UINT32_MAX)));
	ins(e, "bra L#", top);
	label_here(e, done);
	ins(e, "bar.warp.sync 0xffffffff"); /* errors replace outputs that others have read here */
}

/* ---- words of bits ----
 *
 * A squared distance is a sum over columns in order, of rounded additions, none of which changes which of two sums is
 * less, unless to equal ones. So the least distance of all pairs of a beginning and an ending is that of the least sum
 * over the columns of beginnings, continued with some ending. Words that begin with the same bits share sums. */

typedef struct WordTree {
	Kernel *k;
	uint64_t *word; /* bits */
	Reg *out;       /* [outputs] of type G */
	Reg least;
} WordTree;

/* Words of a part, as bits. */
static uint32_t part_bits(const EmitSource *s, uint32_t first, uint32_t count, uint64_t *word)
{
	uint32_t end = 0;

	for (uint32_t w = 0; w < count; w++) {
		const CodeSum *c = &s->code_sum[first + w];
		word[w] = 0;
		for (uint32_t i = 0; i < c->count; i++) {
			uint32_t n = s->code_element[c->first + i].output;
			word[w] |= (uint64_t)1 << n;
			end = max_u32(end, n + 1);
		}
	}
	return end;
}

/* The least sum of these words over columns n .. end - 1, after `sum`. Words are those from `word` on; their order
 * changes. */
static void tree_sums(const WordTree *t, uint64_t *word, uint32_t count, uint32_t n, uint32_t end, Reg sum)
{
	Emit *e = t->k->e;
	uint32_t ones = 0;

	if (n == end) {
		ins(e, "min.f64 $, $, $", t->least, t->least, sum);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		if (word[i] >> n & 1) {
			uint64_t other = word[ones];
			word[ones++] = word[i];
			word[i] = other;
		}
	for (uint32_t bit = 0; bit < 2; bit++) {
		uint32_t first = bit ? 0 : ones, some = bit ? ones : count - ones;
		Reg away = bit ? op2(e, REG_G, "sub.rn.f64", literal(e, 1), t->out[n]) : t->out[n];
		if (some)
			tree_sums(t, word + first, some, n + 1, end,
			          op2(e, REG_G, "add.rn.f64", sum, op2(e, REG_G, "mul.rn.f64", away, away)));
	}
}

/* Rows of lanes where `open` holds, whose targets are words: wrong is whether one is nearer. */
static void bits_measure(Kernel *k, const ScoredRow *r, Reg open, Reg wrong)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	const DeviceData *d = &s->job->data;
	uint32_t outputs = s->job->outputs, *part = (uint32_t[]){ d->part_count[0], d->part_count[1] };
	WordTree t = { .k = k, .word = NEW(&s->cx->scratch, max_u32(part[0], part[1]) + 1, uint64_t) };
	Reg any = reg(e, REG_P), own = literal(e, 0);

	ins(e, "vote.sync.any.pred $, $, 0xffffffff", any, open);
	uint32_t none = if_begin(e, any);
	t.out = NEW(&s->cx->scratch, outputs, Reg);
	for (uint32_t n = 0; n < outputs; n++) {
		t.out[n] = op1(e, REG_G, "cvt.f64.f32", r->out[n]);
		Reg away = op2(e, REG_G, "sub.rn.f64", op1(e, REG_G, "cvt.f64.f32", target(k, r, n)), t.out[n]);
		own = op2(e, REG_G, "add.rn.f64", own, op2(e, REG_G, "mul.rn.f64", away, away));
	}
	t.least = literal(e, (double)INFINITY);
	uint32_t cut = part_bits(s, 0, part[0], t.word);
	tree_sums(&t, t.word, part[0], 0, part[1] ? cut : outputs, literal(e, 0));
	if (part[1]) {
		Reg begin = t.least;
		t.least = literal(e, (double)INFINITY);
		part_bits(s, part[0], part[1], t.word);
		tree_sums(&t, t.word, part[1], cut, outputs, begin);
	}
	Reg right = op2(e, REG_P, "setp.ge.f64", t.least, own); /* false if the own distance is a NaN */
	ins(e, "@$ not.pred $, $", open, wrong, right);
	if_end(e, none);
}

/* Twice the rounding of a sum of outputs in single precision, and what distances in double may differ by. */
static float sum_margin(const EmitSource *s)
{
	const Job *j = s->job;
	double most = j->data.largest_output, twice = __builtin_fabs((double)s->code_twice), error = 0;

	for (uint32_t w = 0; w < j->data.part_count[0] + j->data.part_count[1]; w++) {
		double count = s->code_sum[w].count, start = __builtin_fabs(s->code_sum[w].start);
		double of_sum = 0x1p-24 * (twice * count * count * most + 2 * (start + twice * count * most));
		error = of_sum > error ? of_sum : error;
	}
	return (float)(4 * error + code_margin(j, 0x1p-53));
}

/* Are sums of words of bits those of outputs, twice, less the number of outputs? */
static bool sums_count(const EmitSource *s)
{
	const DeviceData *d = &s->job->data;

	for (uint32_t w = 0; w < d->part_count[0] + d->part_count[1]; w++)
		if (s->code_sum[w].start != -(double)s->code_sum[w].count)
			return false;
	return s->code_bits && s->code_twice == 2;
}

/* The sum of the row's own word in a part, from targets that are its bits. */
static Reg own_sum(Kernel *k, const ScoredRow *r, uint32_t first, uint32_t count)
{
	Emit *e = k->e;
	uint64_t bits = 0, *word = NEW(&k->s->cx->scratch, count + 1, uint64_t);
	Reg x = zero_float(e), ones;

	part_bits(k->s, first, count, word);
	for (uint32_t w = 0; w < count; w++)
		bits |= word[w];
	for (uint32_t n = 0; n < k->s->job->outputs; n++)
		if (bits >> n & 1)
			x = op3(e, REG_F, "fma.rn.ftz.f32", target(k, r, n), r->out[n], x);
	ones = op1(e, REG_R, "popc.b32", op2(e, REG_R, "and.b32", r->word, imm((uint32_t)bits)));
	Reg start = op1(e, REG_F, "neg.f32", op1(e, REG_F, "cvt.rn.f32.u32", ones));
	return op3(e, REG_F, "fma.rn.ftz.f32", imm_f(k->s->code_twice), x, start);
}

/* Sums of outputs tell of most rows whether a word is nearer than their own; first: number of the part's first sum. */
static void part_compare(Kernel *k, const ScoredRow *r, uint32_t first, uint32_t count, Reg number, Reg wrong,
                         Reg doubtful)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	float margin = sum_margin(s);
	bool counts = has_words(k) && sums_count(s);
	Reg others = op1(e, REG_F, "mov.f32", imm_f(-__builtin_inff()));
	Reg own = counts ? own_sum(k, r, first, count) : zero_float(e);

	for (uint32_t w = 0; w < count; w++) {
		const CodeSum *c = &s->code_sum[first + w];
		Reg x = imm_f(0), is_own = same(e, number, imm(w));
		for (uint32_t i = 0; i < c->count; i++) {
			Reg o = r->out[s->code_element[c->first + i].output];
			x = i ? op2(e, REG_F, "add.rn.ftz.f32", x, o) : o;
		}
		Reg start = op1(e, REG_F, "mov.f32", imm_f((float)c->start));
		Reg sum = op3(e, REG_F, "fma.rn.ftz.f32", imm_f(s->code_twice), x, start);
		if (!counts)
			ins(e, "@$ mov.f32 $, $", is_own, own, sum);
		ins(e, "@!$ max.ftz.f32 $, $, $", is_own, others, others, sum);
	}
	Reg more = op2(e, REG_F, "sub.rn.ftz.f32", others, own);
	or_to(e, wrong, op2(e, REG_P, "setp.gt.ftz.f32", more, imm_f(margin)));
	or_to(e, doubtful, op2(e, REG_P, "setp.geu.ftz.f32", more, imm_f(-margin)));
}

static Reg own_word_nearest(Kernel *k, const ScoredRow *r, Reg asked)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;
	Reg wrong = predicate(e, false), doubtful = predicate(e, false), all = r->out[0];

	for (uint32_t n = 1; n < k->s->job->outputs; n++)
		all = op2(e, REG_F, "add.rn.ftz.f32", all, r->out[n]);
	part_compare(k, r, 0, d->part_count[0], r->own[1], wrong, doubtful);
	if (d->part_count[1])
		part_compare(k, r, d->part_count[0], d->part_count[1], r->own[2], wrong, doubtful);
	or_to(e, doubtful, op2(e, REG_P, "setp.neu.ftz.f32", all, all)); /* comparisons above pass over a NaN */
	Reg open = op2(e, REG_P, "and.pred", doubtful, op1(e, REG_P, "not.pred", wrong));
	Reg none = op2(e, REG_P, "setp.ne.u32", r->own[3], imm(0)); /* the target is no word */
	if (k->s->code_bits) {
		bits_measure(k, r, op2(e, REG_P, "and.pred", open, asked), wrong);
		words_measure(k, r, op2(e, REG_P, "and.pred", none, asked), wrong);
	} else {
		words_measure(k, r, op2(e, REG_P, "and.pred", op2(e, REG_P, "or.pred", open, none), asked), wrong);
	}
	return op1(e, REG_P, "not.pred", wrong);
}

/* ---- verdicts ---- */

static Reg largest_right(Kernel *k, const ScoredRow *r, Reg count)
{
	Emit *e = k->e;
	Best wanted = best_begin(e), guess = best_begin(e);
	Reg first = op1(e, REG_R, "mov.u32", imm(UINT32_MAX)), o = zero_float(e), y = zero_float(e);
	Reg middle = param_f(k, offsetof(Job, middle));

	for (uint32_t n = 0; n < k->s->job->outputs; n++) {
		Reg t = target(k, r, n), known = is_number(e, t), at = op1(e, REG_R, "mov.u32", imm(n));
		Reg leads = op2(e, REG_P, "and.pred", known, same(e, first, imm(UINT32_MAX)));
		ins(e, "@$ mov.u32 $, $", leads, first, at);
		ins(e, "@$ mov.f32 $, $", leads, o, r->out[n]);
		ins(e, "@$ mov.f32 $, $", leads, y, t);
		best_of(e, &wanted, t, at, known);
		best_of(e, &guess, r->out[n], at, known);
	}
	Reg found = op3(e, REG_R, "selp.u32", guess.at, first, is_number(e, o)); /* a NaN that is first stays */
	Reg one = op2(e, REG_P, "xor.pred", op2(e, REG_P, "setp.gt.ftz.f32", o, middle),
	              op2(e, REG_P, "setp.gt.ftz.f32", y, middle));
	Reg several = op2(e, REG_P, "setp.gt.u32", count, imm(1)), equal = same(e, found, wanted.at);
	return op2(e, REG_P, "or.pred", op2(e, REG_P, "and.pred", several, equal),
	           op1(e, REG_P, "not.pred", op2(e, REG_P, "or.pred", several, one)));
}

/* Has the row any target? count: R, how many, if not all have one. */
static Reg is_scored(Kernel *k, const ScoredRow *r, Reg *count)
{
	Emit *e = k->e;

	*count = op1(e, REG_R, "mov.u32", imm(has_all(k) ? k->s->job->outputs : 0));
	for (uint32_t n = 0; n < k->s->job->outputs && !has_all(k); n++)
		ins(e, "@$ add.u32 $, $, 1", is_number(e, target(k, r, n)), *count, *count);
	return op2(e, REG_P, "setp.ne.u32", *count, imm(0));
}

/* Is every output within the threshold of its target? */
static Reg is_within(Kernel *k, const ScoredRow *r)
{
	Emit *e = k->e;
	Reg far = predicate(e, false), farthest = zero_float(e), threshold = param_f(k, offsetof(Job, threshold));

	for (uint32_t n = 0; n < k->s->job->outputs; n++) {
		Reg y = target(k, r, n), away = op1(e, REG_F, "abs.f32", op2(e, REG_F, "sub.rn.ftz.f32", r->out[n], y));
		if (has_all(k)) {
			farthest = op2(e, REG_F, "max.NaN.ftz.f32", farthest, away);
			continue;
		}
		Reg within = op2(e, REG_P, "setp.le.ftz.f32", away, threshold);
		ins(e, "@$ or.pred $, $, $", is_number(e, y), far, far, op1(e, REG_P, "not.pred", within));
	}
	if (has_all(k))
		ins(e, "setp.gtu.ftz.f32 $, $, $", far, farthest, threshold);
	return op1(e, REG_P, "not.pred", far);
}

/* Not all updates need verdicts. */
static bool asks_verdicts(const Kernel *k) { return k->s->solo || k->s->mode == JOB_UPDATE; }

/* 1: the update of this number, D, does. */
static Reg counted_byte(Kernel *k, Reg number)
{
	Reg at = op2(k->e, REG_D, "add.u64", POINTER(k, counted), number);

	return load(k->e, REG_R, "ld.global.nc.u8", at, 0);
}

void counted_load(Kernel *k, Reg number)
{
	if (!asks_verdicts(k))
		return;
	k->counted = counted_byte(k, number);
	k->counted_in = COUNTED_REGISTER;
}

void counted_stage(Kernel *k)
{
	Emit *e = k->e;

	if (!k->deferred_scores || k->s->solo || !asks_verdicts(k))
		return;
	uint32_t other = if_begin(e, same(e, k->tid, imm(k->s->threads - 1)));
	ins(e, "st.shared.u32 [$+#], $", k->memory, k->at_info + INFO_COUNTED, counted_byte(k, k->number));
	if_end(e, other);
	k->counted_in = COUNTED_SHARED;
}

/* P */
static Reg is_counted(Kernel *k)
{
	Emit *e = k->e;

	if (k->s->solo)
		return k->verdicts_asked;
	Reg counted = k->counted_in == COUNTED_REGISTER ? k->counted
	              : k->counted_in == COUNTED_SHARED
	                  ? load(e, REG_R, "ld.shared.u32", k->memory, k->at_info + INFO_COUNTED)
	                  : counted_byte(k, k->number);
	return op2(e, REG_P, "setp.ne.u32", counted, imm(0));
}

/* Of a row without targets it is 0. */
static void verdict_store(Kernel *k, ScoredRow *r)
{
	Emit *e = k->e;
	const Job *j = k->s->job;
	Reg count, right, scored = is_scored(k, r, &count), v = op1(e, REG_R, "mov.u32", imm(VERDICT_SCORED));

	uint32_t unasked = asks_verdicts(k) ? if_begin(e, is_counted(k)) : 0;
	Reg within = is_within(k, r);
	if (j->right_here)
		right = largest_right(k, r, count);
	else if (has_step(k, STEP_CODES))
		right = own_word_nearest(k, r, op2(e, REG_P, "and.pred", scored, r->is_row));
	else
		right = scored;
	ins(e, "or.b32 $, $, $", v, v, op3(e, REG_R, "selp.u32", imm(VERDICT_WITHIN), imm(0), within));
	ins(e, "or.b32 $, $, $", v, v, op3(e, REG_R, "selp.u32", imm(VERDICT_RIGHT), imm(0), right));
	if (asks_verdicts(k))
		if_end(e, unasked);
	v = op3(e, REG_R, "selp.u32", v, imm(0), scored);
	r->verdict = v;
	if (!k->sends_scores)
		ins(e, "@$ st.global.u8 [$], $", r->is_row, place(e, k->verdict, add(e, k->row0, r->row), 1), v);
}

/* ---- errors ---- */

/* Values of errors that take many instructions: in a loop over quads of outputs, which are computed side by side. Most
 * targets are 0 or 1: a warp that has no others takes the short way. */
static void quads_value(Kernel *k, const ScoredRow *r, const DeviceStep *s, Reg late, const Reg out[4],
                        const Reg net[4], const Reg y[4], const Reg known[4])
{
	Emit *e = k->e;
	Reg value[4];

	for (uint32_t i = 0; i < 4; i++) {
		ErrorOf of = { .fn = s->fn, .error = s->error, .known_net = s->known_net, .out = out[i], .net = net[i] };
		of.y = y[i];
		value[i] = op3(e, REG_F, "selp.f32", error_value(e, &of), imm_f(0), known[i]);
	}
	uint32_t end = if_begin(e, r->is_row);
	store_quad(e, "shared", late, deferred_at(k, s, false), value);
	if_end(e, end);
}

static void errors_replace(Kernel *k, const ScoredRow *r, const DeviceStep *s)
{
	Emit *e = k->e;
	uint32_t other = label(e), end = label(e);
	Loop l = loop_count(e, (uint32_t)ceil_div(s->cols, 4));
	Reg offset = mul(e, l.i, 16), late = add(e, r->late, offset), at_y = add(e, r->y, offset);
	Reg out[4], net[4], y[4], known[4], binary = predicate(e, true), all = reg(e, REG_P);

	load_quad(e, "shared", out, late, deferred_at(k, s, false));
	if (s->known_net)
		load_quad(e, "shared", net, late, deferred_at(k, s, true));
	for (uint32_t i = 0; i < 4; i++) {
		if (has_words(k))
			y[i] = y_bit(e, op2(e, REG_R, "shr.u32", r->word, mul(e, l.i, 4)), s->y + i);
		else
			y[i] = load(e, REG_F, "ld.shared.f32", at_y, 4 * (s->y + i));
		net[i] = s->known_net ? net[i] : out[i];
		known[i] = op2(e, REG_P, "and.pred", is_number(e, y[i]), less(e, mad(e, l.i, 4, imm(i)), imm(s->cols)));
		Reg is = op2(e, REG_P, "setp.eq.ftz.f32", op2(e, REG_F, "mul.rn.ftz.f32", y[i], y[i]), y[i]);
		is = op2(e, REG_P, "or.pred", is, op1(e, REG_P, "not.pred", known[i]));
		ins(e, "and.pred $, $, $", binary, binary, is);
	}
	ins(e, "vote.sync.all.pred $, $, 0xffffffff", all, binary);
	ins(e, "@!$ bra L#", all, other);
	e->binary = true;
	quads_value(k, r, s, late, out, net, y, known);
	e->binary = false;
	ins(e, "bra L#", end);
	label_here(e, other);
	quads_value(k, r, s, late, out, net, y, known);
	label_here(e, end);
	loop_end(e, &l);
}

/* Sum over the outputs of a group: column n by lane n % 16, then lanes i and i + 8, 4, 2, 1. */
static Reg errors_sum(Kernel *k, const ScoredRow *r, const DeviceStep *s)
{
	Emit *e = k->e;
	Reg lane[ROW_LANES], q[4];

	if (s->error != ERR_SQUARED)
		errors_replace(k, r, s);
	for (uint32_t i = 0; i < ROW_LANES; i++)
		lane[i] = zero_float(e);
	for (uint32_t n = 0; n < s->cols; n++) {
		Reg sum = lane[n % ROW_LANES];
		if (s->error == ERR_SQUARED) {
			Reg y = target(k, r, s->y + n), away = op2(e, REG_F, "sub.rn.ftz.f32", r->out[s->y + n], y);
			if (!has_all(k))
				away = op3(e, REG_F, "selp.f32", away, imm_f(0), is_number(e, y));
			ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, away, away, sum);
			continue;
		}
		if (n % 4 == 0)
			load_quad(e, "shared", q, r->late, deferred_at(k, s, false) + 4 * n);
		ins(e, "add.rn.ftz.f32 $, $, $", sum, sum, q[n % 4]);
	}
	for (uint32_t n = ROW_LANES / 2; n; n /= 2)
		for (uint32_t i = 0; i < n; i++)
			lane[i] = op2(e, REG_F, "add.rn.ftz.f32", lane[i], lane[i + n]);
	return s->error == ERR_SQUARED ? op2(e, REG_F, "mul.rn.ftz.f32", imm_f(0.5f), lane[0]) : lane[0];
}

static void error_store(Kernel *k, ScoredRow *r)
{
	Emit *e = k->e;
	Reg total = zero_float(e), weight = imm_f(1);
	uint32_t from = 0;

	if (k->s->job->data.weight) {
		Reg number = reg(e, REG_R);
		case_load(k, number, add(e, k->row0, r->row), r->is_row);
		weight = load(e, REG_F, "ld.global.nc.f32", place(e, POINTER(k, data.weight), number, 4), 0);
	}
	for (const DeviceStep *s; (s = errors_step(k, &from)) != NULL;) {
		Reg value = errors_sum(k, r, s);
		if (weight.type == REG_F)
			value = op2(e, REG_F, "mul.rn.ftz.f32", value, weight);
		total = op2(e, REG_F, "add.rn.ftz.f32", total, value);
	}
	r->error = total;
	if (!k->sends_scores)
		ins(e, "@$ st.global.f32 [$], $", r->is_row, place(e, k->row_error, add(e, k->row0, r->row), 4), total);
}

/* Is the error a number? */
static void bad_note(Kernel *k, const ScoredRow *r)
{
	Emit *e = k->e;
	Reg none = op2(e, REG_F, "sub.rn.ftz.f32", r->error, r->error);
	Reg bad = op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0));

	or_to(e, k->bad, op2(e, REG_P, "and.pred", bad, r->is_row));
	if (k->on_bad)
		k->on_bad(k->on_bad_arg, k->bad);
}

/* To where the tally is formed; it comes too late to say that an error is no number. */
static void score_send(Kernel *k, const ScoredRow *r)
{
	Emit *e = k->e;

	ins(e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$], {$, $}, [$]", r->is_row,
	    mad(e, add(e, k->row0, r->row), 8, k->scores_to), op1(e, REG_R, "mov.b32", r->error), r->verdict,
	    k->scores_bar);
}

static bool only_squared(const Kernel *k)
{
	uint32_t from = 0;

	for (const DeviceStep *s; (s = errors_step(k, &from)) != NULL;)
		if (s->error != ERR_SQUARED)
			return false;
	return true;
}

void deferred_score_row(Kernel *k, Reg row)
{
	Emit *e = k->e;
	ScoredRow r = { .is_row = less(e, row, k->my_rows) };

	/* others write to real rows: threads without one read a row behind them, where there is */
	r.row = op3(e, REG_R, "selp.u32", row, imm(k->s->bf16 ? 0 : k->row_space - 1), less(e, row, imm(k->block_rows)));
	r.late = add(e, mad(e, r.row, k->deferred_row, k->memory), imm(k->at_deferred));
	Reg cases = k->bf16 ? cases_memory(k) : k->memory;
	r.y = add(e, mad(e, r.row, k->target_row, cases), imm(k->at_targets));
	if (has_words(k))
		r.word = k->y_bits ? target_word(k, r.row) : load(e, REG_R, "ld.shared.u32", r.y, 0);
	for (uint32_t i = 0; i < 4; i++)
		r.own[i] = reg(e, REG_R);
	if (k->s->job->data.code_count)
		ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", r.own[0], r.own[1], r.own[2], r.own[3],
		    mad(e, k->y_bits ? leaf_row(k, r.row) : r.row, sizeof(CodeOwn), cases), k->at_own);
	if (has_words(k))
		targets_of(k, &r);
	outputs_load(k, &r);
	if (only_squared(k)) { /* first: targets need no registers then */
		error_store(k, &r);
		if (k->sends_scores)
			bad_note(k, &r);
	}
	verdict_store(k, &r);
	if (!only_squared(k)) { /* these replace outputs that verdicts may read */
		error_store(k, &r);
		if (k->sends_scores)
			bad_note(k, &r);
	}
	if (k->sends_scores)
		score_send(k, &r);
}

void deferred_score_rows(Kernel *k, uint32_t first, uint32_t threads)
{
	Emit *e = k->e;

	remark(e, "errors and verdicts, a thread for each row");
	Loop l = loop_count(e, (uint32_t)ceil_div(k->block_rows, threads));
	deferred_score_row(k, mad(e, l.i, threads, first ? op2(e, REG_R, "sub.u32", k->tid, imm(first)) : k->tid));
	loop_end(e, &l);
}
