/* SPDX-License-Identifier: MIT */
/* microprop gf11 small. In: sizes of a small layer. Out: what code with trees gains over straight code, for the
 * links into it on the way forward and those out of it on the way back, with both compilers (section 10.3).
 *
 * These are the two sums that a small layer makes a chain of: its few net inputs, each over many sources, and its
 * few errors, each over many targets. */
#include <math.h>

#include "gf11_study.h"

enum { WIDE = 64, CASES_EACH = 24, MOST_UNITS = 1024 };
enum { WAY_INTO, WAY_OUT, WAYS };
static const char *const way_names[WAYS] = { "forward_into", "backward_out" };

/* a case; cycles that add or multiply; of the trees */
typedef struct Side {
	double cycles, share;
	uint32_t levels;
} Side;
typedef struct Pair {
	Side straight, tree;
} Pair;

static Side side_of(const Bp *b, int way)
{
	Side s = { 0 };
	uint64_t cycles = 0, arithmetic = 0;
	for (uint32_t i = 0; i < b->bundles; i++) {
		const BpBundle *n = &b->bundle[i];
		uint32_t routine = way == WAY_INTO ? n->forward : n->backward;
		if (n->level != (way == WAY_INTO ? 0 : 1))
			continue;
		cycles += b->c->cycles[routine];
		arithmetic += b->c->routine[routine]->report.arithmetic;
		s.levels = way == WAY_INTO ? n->levels : n->levels_back;
	}
	/* what the first bundle needs from DRAM; the forward code fetches for the next */
	if (b->best && b->best->opens && way == WAY_INTO)
		cycles += b->c->cycles[b->best->open];
	s.cycles = (double)cycles / (b->best ? b->at.group : 1);
	s.share = share_of(arithmetic, cycles);
	return s;
}

/* Compiled both ways; the cycles simulated. */
static uint64_t pairs_make(const Call *c, uint32_t units, int compiler, Pair *pair)
{
	uint64_t cycles = 0;
	for (int small = SMALL_AUTO; small <= SMALL_STRAIGHT; small++) {
		EpochSpec s = epoch_spec(c, plan_layers(c->cx, WIDE, units, WIDE), c->cases ? c->cases : CASES_EACH);
		Bp *b;
		s.o.procs = 1;
		s.o.compiler = compiler;
		s.o.small = small;
		cycles += epoch_simulate(c->cx, &s, &b).total;
		for (int way = 0; way < WAYS; way++)
			*(small == SMALL_AUTO ? &pair[way].tree : &pair[way].straight) = side_of(b, way);
	}
	return cycles;
}

static double ratio(const Pair *p) { return p->straight.cycles / p->tree.cycles; }

static void row_json(const Call *c, uint32_t units, const Pair *pair, bool first)
{
	buf_printf(c->out, "%s{\"units\": %u", first ? "" : ", ", units);
	for (int way = 0; way < WAYS; way++) {
		const Pair *p = &pair[way];
		buf_printf(c->out,
		           ", \"%s\": {\"straight\": %.6g, \"tree\": %.6g, \"ratio\": %.4g, \"share_straight\": %.4f, "
		           "\"share_tree\": %.4f, \"in_a_tree\": %u}",
		           way_names[way], p->straight.cycles, p->tree.cycles, ratio(p), p->straight.share, p->tree.share,
		           1u << p->tree.levels);
	}
	buf_puts(c->out, "}");
}

static void row_text(const Call *c, uint32_t units, const Pair *pair)
{
	buf_printf(c->out, "%5u", units);
	for (int way = 0; way < WAYS; way++) {
		const Pair *p = &pair[way];
		buf_printf(c->out, "  %6u %9.0f %7.0f %6.2f %7.1f %7.1f", 1u << p->tree.levels, p->straight.cycles,
		           p->tree.cycles, ratio(p), 100 * p->straight.share, 100 * p->tree.share);
	}
	buf_puts(c->out, "\n");
}

static void head_text(const Call *c, int compiler)
{
	buf_printf(c->out, "%scompiler %s\n%5s  %-47s  %-47s\n%5s", compiler ? "\n" : "", compiler_names[compiler], "",
	           "forward, 64 units to these", "backward, these to 64 units", "units");
	for (int way = 0; way < WAYS; way++)
		buf_printf(c->out, "  %6s %9s %7s %6s %7s %7s", "trees", "straight", "tree", "ratio", "seed %", "seed %");
	buf_puts(c->out, "\n");
}

void run_small(Call *c)
{
	const MachineRow row = { .low = 1, .high = MOST_UNITS };
	double *units;
	uint32_t count = range_read(c->cx, "--units", c->units ? c->units : "1..12,14,16,20,24,28,32", &row, &units);
	uint64_t cycles = 0;
	c->cache = schedule_cache_new(c->cx);
	if (c->json) {
		json_begin(c);
		buf_printf(c->out, "\"wide\": %d, \"cases\": %llu, ", WIDE,
		           (unsigned long long)(c->cases ? c->cases : CASES_EACH));
	}
	for (int compiler = 0; compiler < 2; compiler++) {
		if (c->json)
			buf_printf(c->out, "\"%s\": [", compiler_names[compiler]);
		else
			head_text(c, compiler);
		for (uint32_t i = 0; i < count; i++) {
			Pair pair[WAYS];
			cycles += pairs_make(c, (uint32_t)units[i], compiler, pair);
			if (c->json)
				row_json(c, (uint32_t)units[i], pair, i == 0);
			else
				row_text(c, (uint32_t)units[i], pair);
		}
		buf_puts(c->out, c->json ? "], " : "");
	}
	if (!c->json)
		buf_puts(
			c->out,
			"\n# trees: products summed in one; straight, tree: cycles a case; seed %: of them that issue an add or a "
			"multiply\n");
	report_end(c, cycles, 0);
}
