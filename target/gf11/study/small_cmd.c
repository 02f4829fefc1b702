/* SPDX-License-Identifier: MIT */
/* microprop gf11 small. In: sizes of a small layer. Out: the gain of tree sums over straight code, for the links into
 * the layer (forward) and out of it (backward), with both compilers (section 10.3).
 *
 * In a small layer two sums become dependency chains: its few net inputs, each over many sources, and its few errors,
 * each over many targets. */
#include <string.h>

#include "gf11_study.h"

enum { WIDE = 64, CASES_EACH = 24, WIDEST = 1024 };
enum { WAY_INTO, WAY_OUT, WAYS };
static const char *const way_names[WAYS] = { "forward_into", "backward_out" };

/* cycles per case; share that adds or multiplies; levels of the trees */
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
	/* DRAM reads of the first bundle; forward code prefetches for the next */
	for (uint32_t i = 0; b->best && i < b->best->opens && way == WAY_INTO; i++)
		cycles += b->c->cycles[b->best->open[i]];
	s.cycles = (double)cycles / (b->best ? b->at.group : 1);
	s.share = share_of(arithmetic, cycles);
	return s;
}

/* Compiles both ways; returns the cycles simulated. */
static uint64_t pairs_make(const CommandRun *c, uint32_t units, int compiler, Pair *pair)
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

enum { EACH = 6 }; /* columns of a way */

static void row_print(const Table *t, uint32_t units, const Pair *pair)
{
	TableCell cell[1 + WAYS * EACH] = { tc_count(units) };
	for (int way = 0; way < WAYS; way++) {
		const Pair *p = &pair[way];
		const TableCell each[EACH] = { tc_real(p->straight.cycles), tc_real(p->tree.cycles),
			                           tc_real(ratio(p)),           tc_real(p->straight.share),
			                           tc_real(p->tree.share),      tc_count(1u << p->tree.levels) };
		memcpy(cell + 1 + way * EACH, each, sizeof each);
	}
	table_row(t, cell);
}

void run_small(CommandRun *c)
{
	const MachineRow row = { .low = 1, .high = WIDEST };
	double *units;
	uint32_t count = range_read(c->cx, "--units", c->units ? c->units : "1..12,14,16,20,24,28,32", &row, &units);
	uint64_t cycles = 0;
	c->cache = schedule_cache_new(c->cx);
	Column column[1 + WAYS * EACH];
	Table t = report_table(c, column, COUNT(column));
	static const Column each[EACH] = {
		{ "straight", "straight", 9, .format = "%.0f" },
		{ "tree", "tree", 7, .format = "%.0f" },
		{ "ratio", "ratio", 6, "%.2f", .exact = "%.4g" },
		{ "share_straight", "report's %", 10, "%.1f", "%.4f", .percent = true },
		{ "share_tree", "report's %", 10, "%.1f", "%.4f", .percent = true },
		{ "in_a_tree", "trees of", .width = 9 },
	};
	column[0] = (Column){ "units", "units", .width = 5 };
	for (int i = 0; i < WAYS * EACH; i++) {
		column[1 + i] = each[i % EACH];
		column[1 + i].object = way_names[i / EACH];
	}
	jw_count(c->json, "wide", WIDE);
	jw_count(c->json, "cases", c->cases ? c->cases : CASES_EACH);
	for (int compiler = 0; compiler < 2; compiler++) {
		buf_printf(c->text, "%scompiler %s\n%5s %-56s %s\n", compiler ? "\n" : "", compiler_names[compiler], "",
		           "forward, 64 units to these", "backward, these to 64 units");
		table_start(&t, compiler_names[compiler]);
		for (uint32_t i = 0; i < count; i++) {
			Pair pair[WAYS];
			cycles += pairs_make(c, (uint32_t)units[i], compiler, pair);
			row_print(&t, (uint32_t)units[i], pair);
		}
		table_end(&t);
	}
	buf_puts(c->text,
	         "\n# straight, tree: cycles per case; report's %: of these, cycles that issue an add or a multiply\n"
	         "# trees of: products summed in one tree\n");
	report_end(c, cycles, 0);
}
