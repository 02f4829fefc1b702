/* SPDX-License-Identifier: MIT */
/* Updates by chunks: every processor holds the total of each weight change and updates all its weights. In: how a
 * method makes totals.  Out: the calls of an update, chunk after chunk.
 *
 * SRAM scratch of a chunk of n weights: weights [n], changes [n], steps [n], and factors [n] if there are any.  Six DRAM
 * moves a weight: weight, change and step come, new weight and step go, and the change becomes zero (section 6.2.1); a
 * seventh brings its factor. */
#include "sum.h"

uint32_t chunk_words(const Bp *b)
{
	return b->factor ? 4 : 3;
}

uint32_t chunk_moves(const Bp *b)
{
	return b->factor ? CHUNK_MOVES : CHUNK_MOVES - 1;    /* MOVE_FACTOR_IN is the last */
}

void chunks_compile(Bp *b, uint32_t n, ChunkFn *make)
{
	uint32_t *routine, parts = 0;
	for (uint32_t first = 0; first < b->at.words; first += n) {
		bool rest = first + n > b->at.words;
		if (!parts || rest)
			parts = make(b, rest ? b->at.words - first : n, &routine);
		for (uint32_t i = 0; i < parts; i++) {
			SumCall call = { routine[i], { [SUM_AT] = b->at.scratch, [SUM_WEIGHTS] = b->at.weights + first,
			                               [SUM_CHANGES] = b->at.changes + first,
			                               [SUM_STEPS] = b->at.steps + first } };
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
	uint32_t chunks = (b->at.words + n - 1) / n;           /* as many, but even */
	return chunks ? round_to((b->at.words + chunks - 1) / chunks, banks) : n;
}

/* ---- one weight ---- */

Chunk chunk_open(const Bp *b, const char *name, uint32_t n)
{
	Arena *a = &b->cx->scratch;
	Gen *g = gen_record(b->cx, b->m, name);
	return (Chunk){ .g = g, .b = b, .s = b->summing, .n = n, .sum = NEW(a, n, Reg), .other = NEW(a, n, Reg),
	                .step = NEW(a, n, Reg) };
}

static Addr weight_at(const Chunk *c, uint32_t i) { (void)c; return (Addr){ SUM_AT, i }; }
static Addr change_at(const Chunk *c, uint32_t i) { return (Addr){ SUM_AT, c->n + i }; }
static Addr step_at(const Chunk *c, uint32_t i) { return (Addr){ SUM_AT, 2 * c->n + i }; }
static Addr factor_at(const Chunk *c, uint32_t i) { return (Addr){ SUM_AT, 3 * c->n + i }; }
static Kept kept_at(const Chunk *c, uint32_t i) { return (Kept){ weight_at(c, i), step_at(c, i), factor_at(c, i) }; }

void chunk_move(const Chunk *c, int move, uint32_t i)
{
	Addr weight = { SUM_WEIGHTS, i }, change = { SUM_CHANGES, i }, step = { SUM_STEPS, i };
	switch (move) {
	case MOVE_CHANGE_IN: g_fetch(c->g, change_at(c, i), change); break;
	case MOVE_WEIGHT_IN: g_fetch(c->g, weight_at(c, i), weight); break;
	case MOVE_STEP_IN: g_fetch(c->g, step_at(c, i), step); break;
	case MOVE_STEP_OUT: g_flush(c->g, step, step_at(c, i)); break;
	case MOVE_WEIGHT_OUT: g_flush(c->g, weight, weight_at(c, i)); break;
	case MOVE_FACTOR_IN: g_fetch(c->g, factor_at(c, i), sum_factor(c->b, i)); break;
	case MOVE_ZERO:
		if (!c->b->changes_start)
			g_flush(c->g, change, sum_word(WORD_ZERO));
	}
}

Reg chunk_change(const Chunk *c, uint32_t i)
{
	return g_load(c->g, change_at(c, i));
}

static void update_step(const Chunk *c, uint32_t i)
{
	Kept k = kept_at(c, i);
	c->step[i] = sum_step(c->g, &c->rates, &k, c->sum[i]);
}

static void update_weight(const Chunk *c, uint32_t i)
{
	Kept k = kept_at(c, i);
	c->sum[i] = sum_weight(c->g, &k, c->step[i]);
}

static void update_store(const Chunk *c, uint32_t i)
{
	Kept k = kept_at(c, i);
	sum_keep(c->g, &c->rates, &k, c->step[i], c->sum[i]);
}

void chunk_update(const Chunk *c, uint32_t i)
{
	update_step(c, i);
	update_weight(c, i);
	update_store(c, i);
}

/* ---- everything beside everything ---- */

enum { ACT_MOVE, ACT_LOAD, ACT_STEP, ACT_UPDATE, ACT_WEIGHT, ACT_STORE };

/* Weights go in rounds of so many that the switch is busy while one of them waits for its next step. */
typedef struct Timing { uint32_t width, steps; int64_t weight, round, latency; } Timing;

static Timing timing_of(const Chunk *c, uint32_t steps, int64_t latency)
{
	const Machine *m = c->b->m;
	int64_t sends = steps * m->switch_interval, moves = chunk_moves(c->b) * m->dram_interval;
	Timing t = { .steps = steps, .latency = latency, .weight = sends > moves ? sends : moves };
	uint32_t least = (uint32_t)(latency / m->switch_interval + 1);
	for (uint32_t rounds = c->n > least ? c->n / least : 1; rounds; rounds--) {
		t.width = (c->n + rounds - 1) / rounds;
		if ((c->n - 1) % t.width + 1 >= least)       /* the last round is wide enough, too */
			break;
	}
	t.round = t.weight * t.width;
	return t;
}

/* When a word is moved, so that all banks have their turn: changes come a round before the sums, weights and steps
 * beside them, new ones go two rounds later. */
static int64_t move_time(const Chunk *c, const Timing *t, int move, uint32_t i)
{
	static const int8_t round_of[CHUNK_MOVES] = { [MOVE_CHANGE_IN] = -1, [MOVE_STEP_OUT] = 2, [MOVE_WEIGHT_OUT] = 2 };
	uint32_t unit = (uint32_t)c->b->m->dram_banks, in_round = i % t->width;
	int64_t place = in_round / unit * unit * chunk_moves(c->b) + (uint32_t)move * unit + in_round % unit;
	return ((int64_t)(i / t->width) + round_of[move]) * t->round + place * c->b->m->dram_interval;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void plan_weight(const Chunk *c, Acts *acts, const Timing *t, uint32_t i)
{
	const Machine *m = c->b->m;
	int64_t slot = t->steps ? t->round / t->steps : t->round, at = 0, moved[CHUNK_MOVES];
	int moves = (int)chunk_moves(c->b);
	for (int move = 0; move < moves; move++)
		moved[move] = move_time(c, t, move, i);
	for (uint32_t step = 0; step < t->steps; step++) {
		at = i / t->width * t->round + step * slot + i % t->width * slot / t->width;
		acts_add(acts, at, (Act){ .what = ACT_STEP, .level = step, .i = i });
		if (!step)
			acts_add(acts, at - 1, (Act){ .what = ACT_LOAD, .i = i });
	}
	if (!t->steps)
		acts_add(acts, moved[MOVE_ZERO] - 1, (Act){ .what = ACT_LOAD, .i = i });
	at = later(at + t->latency, moved[MOVE_ZERO]);
	if (c->b->factor)
		at = later(at, moved[MOVE_FACTOR_IN] + 1);
	acts_add(acts, at, (Act){ .what = ACT_UPDATE, .i = i });
	acts_add(acts, at + 2 * m->alu_latency, (Act){ .what = ACT_WEIGHT, .i = i });
	at += 3 * m->alu_latency;
	acts_add(acts, at, (Act){ .what = ACT_STORE, .i = i });
	moved[MOVE_STEP_OUT] = later(moved[MOVE_STEP_OUT], at + 1);
	moved[MOVE_WEIGHT_OUT] = later(moved[MOVE_WEIGHT_OUT], at + 1);
	for (int move = 0; move < moves; move++)
		acts_add(acts, moved[move], (Act){ .what = ACT_MOVE, .level = (uint32_t)move, .i = i });
}

static void act_record(Chunk *c, const Act *a, StepFn *fn)
{
	switch (a->what) {
	case ACT_MOVE: chunk_move(c, (int)a->level, a->i); break;
	case ACT_LOAD: c->sum[a->i] = c->other[a->i] = chunk_change(c, a->i); break;
	case ACT_STEP: fn(c, a->level, a->i); break;
	case ACT_UPDATE: update_step(c, a->i); break;
	case ACT_WEIGHT: update_weight(c, a->i); break;
	case ACT_STORE: update_store(c, a->i); break;
	}
}

void chunk_together(Chunk *c, StepFn *fn, uint32_t steps, int64_t latency)
{
	Timing t = timing_of(c, steps, latency);
	Acts acts = { .arena = &c->b->cx->scratch };
	c->rates = sum_rates(c->g, c->b);
	for (uint32_t i = 0; i < c->n; i++)
		plan_weight(c, &acts, &t, i);
	acts_sort(&acts);
	for (uint32_t i = 0; i < acts.acts; i++)
		act_record(c, &acts.act[i], fn);
}
