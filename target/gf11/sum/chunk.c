/* SPDX-License-Identifier: MIT */
/* Updates by chunks: every processor holds the total of each weight change and updates all its weights. In: how a
 * method makes totals.  Out: the calls of an update, chunk after chunk.
 *
 * SRAM scratch of a chunk of n weights: weights [n], changes [n], each state of the rule [n], and factors [n] if
 * there are any. DRAM moves of a weight: weight, change and states come, new weight and states go, and the change
 * becomes zero (section 6.2.1): six with one state; one more brings its factor. */
#include <assert.h>

#include "gf11_sum.h"

uint32_t chunk_words(const Bp *b) { return 2 + (uint32_t)b->rule->states + (b->factor != NULL); }

uint32_t chunk_moves(const Bp *b) { return 4 + 2 * (uint32_t)b->rule->states + (b->factor != NULL); }

/* Which of the moves is the number-th, MOVE_... and of which state. */
typedef struct ChunkMove {
	int what, state;
} ChunkMove;

static ChunkMove chunk_move_at(const Bp *b, uint32_t number)
{
	int n = (int)number, states = b->rule->states;
	if (n < MOVE_STATE_IN)
		return (ChunkMove){ n, 0 };
	n -= MOVE_STATE_IN;
	if (n < states)
		return (ChunkMove){ MOVE_STATE_IN, n };
	if (n == states)
		return (ChunkMove){ MOVE_ZERO, 0 };
	n -= states + 1;
	return n < states ? (ChunkMove){ MOVE_STATE_OUT, n } : (ChunkMove){ MOVE_WEIGHT_OUT + n - states, 0 };
}

/* Switch, DRAM or ALU: whichever takes longest. */
uint32_t chunk_lines(const Bp *b, uint32_t steps)
{
	uint32_t sums = steps * (uint32_t)b->m->switch_interval, moves = chunk_moves(b) * (uint32_t)b->m->dram_interval;
	uint32_t alu = steps + b->summing->rule->alu + range_alu(b), most = sums > moves ? sums : moves;
	return most > alu ? most : alu;
}

typedef struct Parts {
	Routine **routine;
	uint32_t parts, n;
} Parts;

/* For n weights, or fewer if a part is longer than a block of microcode: estimates are good but for long rules and
 * short blocks. */
static Parts parts_make(Bp *b, uint32_t n, ChunkFn *make)
{
	uint32_t banks = (uint32_t)b->m->dram_banks;
	for (;;) {
		Parts p = { .n = n };
		bool fits = true;
		p.parts = make(b, n, &p.routine);
		for (uint32_t i = 0; i < p.parts; i++)
			fits &= p.routine[i]->lines <= b->m->block;
		if (fits || n <= banks)
			return p;
		n = n / 4 * 3 > banks ? n / 4 * 3 / banks * banks : banks;
	}
}

void chunks_compile(Bp *b, uint32_t n, ChunkFn *make)
{
	Parts p = { 0 };
	uint32_t *routine = NULL;
	for (uint32_t first = 0; first < b->at.words; first += p.n) {
		uint32_t rest = b->at.words - first;
		if (!routine || rest < p.n) {
			p = parts_make(b, min_u32(rest, n), make);
			routine = NEW(&b->cx->scratch, p.parts, uint32_t);
			for (uint32_t i = 0; i < p.parts; i++)
				routine[i] = sum_load_routine(b, p.routine[i]);
		}
		for (uint32_t i = 0; i < p.parts; i++) {
			bool flags = i + 1 == p.parts && range_checked(b);
			SumCall call = { routine[i],
				             { [SUM_AT] = b->at.scratch,
				               [SUM_WEIGHTS] = b->at.weights + first,
				               [SUM_CHANGES] = b->at.changes + first,
				               [SUM_STATES] = b->at.states + first,
				               [SUM_FLAGS] = flags ? range_room(b, range_words(b, p.n)) : 0 },
				             first,
				             flags ? p.n : 0 };
			sum_call(b, &call);
		}
	}
}

uint32_t chunk_size(const Bp *b, uint32_t lines, uint32_t words, uint32_t most)
{
	uint32_t banks = (uint32_t)b->m->dram_banks, n = sum_lines(b) / lines, room = b->at.scratch_words / words;
	n = n < room ? n : room;
	n = most && most < n ? most : n;
	if (b->o.update && b->o.update < n)
		n = b->o.update;
	n = n < banks ? banks : n / banks * banks;
	uint32_t chunks = (b->at.words + n - 1) / n; /* as many, but even */
	return chunks ? round_to((b->at.words + chunks - 1) / chunks, banks) : n;
}

/* ---- one weight ---- */

Chunk chunk_open(const Bp *b, const char *name, uint32_t n)
{
	Arena *a = &b->cx->scratch;
	Gen *g = gen_record(b->cx, b->m, name);
	return (Chunk){ .g = g,
		            .b = b,
		            .s = b->summing,
		            .n = n,
		            .sum = NEW(a, n, Reg),
		            .other = NEW(a, n, Reg),
		            .weight = NEW(a, n, Reg *) };
}

/* Arrays of n words each in scratch: weights, changes, states, then factors. */
enum { IN_WEIGHTS, IN_CHANGES, IN_STATES };
static Addr near_at(const Chunk *c, int array, uint32_t i) { return (Addr){ SUM_AT, (uint32_t)array * c->n + i }; }

static Kept kept_at(const Chunk *c, uint32_t i)
{
	Kept k = { .weight = near_at(c, IN_WEIGHTS, i), .factor = near_at(c, IN_STATES + c->b->rule->states, i) };
	for (int s = 0; s < c->b->rule->states; s++)
		k.state[s] = near_at(c, IN_STATES + s, i);
	return k;
}

/* One word, DRAM to SRAM or back. */
static void chunk_move(const Chunk *c, ChunkMove move, uint32_t i)
{
	Kept near = kept_at(c, i);
	Addr weight = { SUM_WEIGHTS, i }, change = { SUM_CHANGES, i }, state = sum_state(c->b, move.state, i);
	switch (move.what) {
	case MOVE_CHANGE_IN: g_fetch(c->g, near_at(c, IN_CHANGES, i), change); break;
	case MOVE_WEIGHT_IN: g_fetch(c->g, near.weight, weight); break;
	case MOVE_STATE_IN: g_fetch(c->g, near.state[move.state], state); break;
	case MOVE_STATE_OUT: g_flush(c->g, state, near.state[move.state]); break;
	case MOVE_WEIGHT_OUT: g_flush(c->g, weight, near.weight); break;
	case MOVE_FACTOR_IN: g_fetch(c->g, near.factor, sum_factor(c->b, i)); break;
	case MOVE_ZERO:
		if (!c->b->changes_start)
			g_flush(c->g, change, sum_word(WORD_ZERO));
	}
}

void chunk_moves_all(const Chunk *c, int first, int last)
{
	for (uint32_t k = 0; k < chunk_moves(c->b); k++) {
		ChunkMove move = chunk_move_at(c->b, k);
		for (uint32_t i = 0; i < c->n && move.what >= first && move.what <= last; i++)
			chunk_move(c, move, i);
	}
}

Reg chunk_change(const Chunk *c, uint32_t i) { return g_load(c->g, near_at(c, IN_CHANGES, i)); }

/* Its words stand where the first changes were, which have been loaded long before. */
void chunk_range(Chunk *c)
{
	c->range = range_open(c->g, c->b, c->n, near_at(c, IN_CHANGES, 0), (Addr){ SUM_FLAGS, 0 });
}

void chunk_rates(Chunk *c)
{
	c->rates = sum_rates(c->g, c->b);
	chunk_range(c);
}

static void update_act(Chunk *c, uint32_t act, uint32_t i)
{
	Kept k = kept_at(c, i);
	if (!act)
		c->weight[i] = weight_open(c->b, &c->rates, c->sum[i]);
	weight_act(c->g, &c->rates, &k, c->weight[i], act);
}

void chunk_update(Chunk *c, uint32_t i)
{
	c->sum[i] = range_check(&c->range, c->sum[i], i);
	for (uint32_t act = 0; act < c->s->rule->acts; act++)
		update_act(c, act, i);
}

/* ---- sums, moves and updates overlapped ---- */

enum { ACT_MOVE, ACT_LOAD, ACT_STEP, ACT_CHECK, ACT_UPDATE };

/* Weights go in rounds of so many that the switch is busy while one of them waits for its next step. */
typedef struct Timing {
	uint32_t width, steps;
	int64_t weight, round, latency;
} Timing;

static Timing timing_of(const Chunk *c, uint32_t steps, int64_t latency)
{
	const Machine *m = c->b->m;
	Timing t = { .steps = steps, .latency = latency, .weight = chunk_lines(c->b, steps) };
	uint32_t least = (uint32_t)(latency / m->switch_interval + 1);
	for (uint32_t rounds = c->n > least ? c->n / least : 1; rounds; rounds--) {
		t.width = (c->n + rounds - 1) / rounds;
		if ((c->n - 1) % t.width + 1 >= least) /* the last round is wide enough, too */
			break;
	}
	t.round = t.weight * t.width;
	return t;
}

/* When a word is moved, so that moves cycle through the banks: changes come a round before the sums, weights and states
 * beside them, new ones go two rounds later. */
static int64_t move_time(const Chunk *c, const Timing *t, uint32_t move, uint32_t i)
{
	static const int8_t round_of[] = {
		[MOVE_CHANGE_IN] = -1, [MOVE_STATE_OUT] = 2, [MOVE_WEIGHT_OUT] = 2, [MOVE_FACTOR_IN] = 0
	};
	assert(t->width > 0);
	uint32_t unit = (uint32_t)c->b->m->dram_banks, in_round = i % t->width;
	assert(unit > 0);
	int64_t place = in_round / unit * unit * chunk_moves(c->b) + move * unit + in_round % unit;
	return ((int64_t)(i / t->width) + round_of[chunk_move_at(c->b, move).what]) * t->round +
	       place * c->b->m->dram_interval;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* The rule begins when the total is there, and all it needs; what it makes goes when it is stored. */
static void plan_rule(const Chunk *c, Acts *acts, int64_t at, int64_t *moved, uint32_t i)
{
	for (uint32_t k = 0; k < chunk_moves(c->b); k++) {
		int what = chunk_move_at(c->b, k).what;
		if (what == MOVE_ZERO || what == MOVE_FACTOR_IN)
			at = later(at, moved[k] + (what == MOVE_FACTOR_IN));
	}
	if (c->range.on)
		acts_add(acts, at, (Act){ .what = ACT_CHECK, .i = i });
	at += range_time(c->b);
	for (uint32_t act = 0; act < c->s->rule->acts; act++)
		acts_add(acts, at + rule_time(c->b, act), (Act){ .what = ACT_UPDATE, .level = act, .i = i });
	for (uint32_t k = 0; k < chunk_moves(c->b); k++) {
		int what = chunk_move_at(c->b, k).what;
		if (what == MOVE_STATE_OUT || what == MOVE_WEIGHT_OUT)
			moved[k] = later(moved[k], at + c->s->rule->length + 1);
	}
}

static void plan_weight(const Chunk *c, Acts *acts, const Timing *t, uint32_t i)
{
	assert(t->width > 0);
	int64_t slot = t->steps ? t->round / t->steps : t->round, at = 0, moved[2 * MAX_STATE + 5];
	uint32_t moves = chunk_moves(c->b), zero = (uint32_t)(MOVE_STATE_IN + c->b->rule->states);
	for (uint32_t k = 0; k < moves; k++)
		moved[k] = move_time(c, t, k, i);
	for (uint32_t step = 0; step < t->steps; step++) {
		at = i / t->width * t->round + step * slot + i % t->width * slot / t->width;
		acts_add(acts, at, (Act){ .what = ACT_STEP, .level = step, .i = i });
		if (!step)
			acts_add(acts, at - 1, (Act){ .what = ACT_LOAD, .i = i });
	}
	if (!t->steps)
		acts_add(acts, moved[zero] - 1, (Act){ .what = ACT_LOAD, .i = i });
	plan_rule(c, acts, at + t->latency, moved, i);
	for (uint32_t k = 0; k < moves; k++)
		acts_add(acts, moved[k], (Act){ .what = ACT_MOVE, .level = k, .i = i });
}

static void act_record(Chunk *c, const Act *a, StepFn *fn)
{
	switch (a->what) {
	case ACT_MOVE: chunk_move(c, chunk_move_at(c->b, a->level), a->i); break;
	case ACT_LOAD: c->sum[a->i] = c->other[a->i] = chunk_change(c, a->i); break;
	case ACT_STEP: fn(c, a->level, a->i); break;
	case ACT_CHECK: c->sum[a->i] = range_check(&c->range, c->sum[a->i], a->i); break;
	case ACT_UPDATE: update_act(c, a->level, a->i); break;
	}
}

void chunk_together(Chunk *c, StepFn *fn, uint32_t steps, int64_t latency)
{
	Timing t = timing_of(c, steps, latency);
	Acts acts = { .arena = &c->b->cx->scratch };
	chunk_rates(c);
	for (uint32_t i = 0; i < c->n; i++)
		plan_weight(c, &acts, &t, i);
	acts_sort(&acts);
	for (uint32_t i = 0; i < acts.acts; i++)
		act_record(c, &acts.act[i], fn);
	range_close(&c->range);
}
