/* SPDX-License-Identifier: MIT */
/* microprop bench: training speed of this computer. In: arguments of the command. Out: ceilings and rows, as text or
 * JSON.
 *
 * Ceilings and rows are measured alternately, round after round, so that other load disturbs all of them alike and the
 * best of two rows can be compared.
 *
 * The share of the ceiling counts the operations of dense layers: for each connection and case 2 for the weighted sum,
 * 2 for the gradient and, if the source has an error, 2 for that (NETtalk: 4.23). The ceiling is that of fused
 * multiply-adds on as many threads; for bf16 that of tile products, if there are any. CSR inputs skip most of the first
 * layer, so their share can exceed 100 %. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "plot.h"

extern const Target target_cpu;

enum { MOST_THREADS = 4096, MOST_ROUNDS = 1000 };

enum { ONE, ALL, ASKED, TEAMS }; /* numbers of threads whose ceilings are measured */
typedef struct Team {
	uint32_t threads;
	double fma, amx;
} Team;

typedef struct Bench {
	Ctx *cx;
	Buf *text; /* the report in both forms; one is printed */
	JsonWriter *json;
	bool as_json, list;
	const char *only; /* NULL: all */
	uint64_t threads; /* 0: one and all */
	uint64_t rounds;
	int isa;
	Cpus cpus;
	Team team[TEAMS];
	double copy;
	Row *row;
	uint32_t rows;
} Bench;

/* ---- arguments ---- */

static const CommandOption options[] = {
	{ "json", ARG_FLAG, offsetof(Bench, as_json), 0 },
	{ "list", ARG_FLAG, offsetof(Bench, list), 0 },
	{ "only", ARG_TEXT, offsetof(Bench, only), 0 },
	{ "threads", ARG_COUNT, offsetof(Bench, threads), MOST_THREADS },
	{ "rounds", ARG_COUNT, offsetof(Bench, rounds), MOST_ROUNDS },
};
static const CommandArgs arguments = { .of = "bench of the cpu", .row = options, .rows = COUNT(options) };

/* ---- rows ---- */

/* Rows of one network and input format share their data. */
static const Data *row_data(const Bench *b, const Spec *s)
{
	for (uint32_t i = 0; i < b->rows; i++)
		if (b->row[i].spec->work == s->work && b->row[i].spec->index == s->index)
			return b->row[i].data;
	return s->work->make(b->cx, s->work, s->index);
}

static void add_row(Bench *b, const Spec *s, bool bf16, uint32_t threads)
{
	Row *r = &b->row[b->rows];

	*r = (Row){ .spec = s, .target = &target_cpu, .data = row_data(b, s), .bf16 = bf16, .threads = threads };
	r->isa = bf16 ? b->isa : isa_fp32(b->isa);
	r->mcps = NEW(&b->cx->keep, b->rounds, double);
	row_start(b->cx, r);
	b->rows++;
}

static void make_rows(Bench *b)
{
	enum { PRECISIONS = 2 };

	b->row = NEW(&b->cx->keep, (size_t)spec_count * PRECISIONS * TEAMS, Row);
	for (uint32_t i = 0; i < spec_count; i++)
		for (uint32_t k = 0; spec_selected(b->only, false, &specs[i]) && k < PRECISIONS; k++) {
			if (b->threads) {
				add_row(b, &specs[i], k, (uint32_t)b->threads);
				continue;
			}
			add_row(b, &specs[i], k, 1);
			if (b->cpus.count > 1)
				add_row(b, &specs[i], k, b->cpus.count);
		}
}

/* ---- measuring ---- */

/* More threads than CPUs add nothing. */
static void teams_make(Bench *b)
{
	uint32_t asked = b->threads && b->threads < b->cpus.count ? (uint32_t)b->threads : b->cpus.count;

	b->team[ONE].threads = 1;
	b->team[ALL].threads = b->cpus.count;
	b->team[ASKED].threads = asked;
}

static void measure_ceilings(Bench *b)
{
	for (Team *t = b->team; t < b->team + (b->threads ? TEAMS : ASKED); t++) {
		t->fma = fmax(t->fma, ceiling_gflops(b->cx, &b->cpus, t->threads, ceiling_of(isa_fp32(b->isa))));
		if (b->isa == ISA_AMX)
			t->amx = fmax(t->amx, ceiling_gflops(b->cx, &b->cpus, t->threads, ceiling_of(ISA_AMX)));
	}
}

static void measure(Bench *b)
{
	const double seconds = 0.2;

	b->copy = ceiling_copy(b->cx, &b->cpus, b->cpus.count);
	for (uint64_t i = 0; i < b->rounds; i++) {
		measure_ceilings(b);
		for (uint32_t k = 0; k < b->rows; k++)
			b->row[k].mcps[i] = row_round(&b->row[k], seconds);
	}
	measure_ceilings(b);
	for (uint32_t k = 0; k < b->rows; k++)
		qsort(b->row[k].mcps, b->rounds, sizeof(double), rate_order);
}

/* ---- the report ---- */

static double row_best(const Bench *b, const Row *r) { return r->mcps[b->rounds - 1]; }

static double row_share(const Bench *b, const Row *r)
{
	const Team *t = &b->team[r->threads == 1 ? ONE : b->threads ? ASKED : ALL];
	double ceiling = r->bf16 && t->amx > 0 ? t->amx : t->fma;

	return ceiling > 0 ? 100 * row_best(b, r) * 1e-3 * row_flops(r) / ceiling : 0;
}

/* The row to compare with the machines of the report: NETtalk, pooled, dense inputs. */
static const Row *row_table2(const Bench *b)
{
	const Row *found = NULL;

	for (const Row *r = b->row; r < b->row + b->rows; r++) {
		const Spec *s = r->spec;
		if (strcmp(s->work->name, "nettalk") || strcmp(s->batch, "all") || s->index || r->bf16)
			continue;
		if (!found || row_best(b, r) > row_best(b, found))
			found = r;
	}
	return found;
}

static const Column columns[] = {
	{ .key = "work", .title = "work", .width = -8 },
	{ .key = "batch", .title = "batch", .width = 5 },
	{ .key = "input", .title = "input", .width = -5 },
	{ .key = "precision", .title = "prec", .width = -4 },
	{ .key = "threads", .title = "threads", .width = 7 },
	{ .key = "isa", .title = "isa", .width = -7 },
	{ .key = "mcps", .title = "best MCPS", .width = 9, .format = "%.1f" },
	{ .key = "median", .title = "median", .width = 9, .format = "%.1f" },
	{ .key = "worst", .title = "worst", .width = 9, .format = "%.1f" },
	{ .key = "ceiling_pct", .title = "ceiling", .width = 8, .format = "%.1f %%", .exact = "%.4g" },
};

static const char *input_name(const Spec *s) { return s->index ? "index" : "dense"; }

static void rows_print(const Bench *b)
{
	const Table t = { .column = columns, .columns = COUNT(columns), .text = b->text, .json = b->json };

	table_start(&t, "rows");
	for (const Row *r = b->row; r < b->row + b->rows; r++)
		table_row(&t, (TableCell[]){ tc_text(r->spec->work->name), tc_text(r->spec->batch),
		                             tc_text(input_name(r->spec)), tc_text(r->bf16 ? "bf16" : "fp32"),
		                             tc_count(r->threads), tc_text(isa_name(r->isa)), tc_real(row_best(b, r)),
		                             tc_real(r->mcps[b->rounds / 2]), tc_real(r->mcps[0]), tc_real(row_share(b, r)) });
	table_end(&t);
}

static void report_print(const Bench *b)
{
	const double gf11 = 901; /* MCPS, Table 2 of the report */
	const Team *one = &b->team[ONE], *all = &b->team[ALL];
	const Row *best = row_table2(b);
	Buf machine = { .arena = &b->cx->scratch };

	buf_printf(b->text, "ceilings, threads 1 and %u: multiply-adds (%s) %.1f and %.1f GFLOPS, ", all->threads,
	           isa_name(isa_fp32(b->isa)), one->fma, all->fma);
	if (all->amx > 0)
		buf_printf(b->text, "tile products (bf16) %.0f and %.0f GFLOPS, ", one->amx, all->amx);
	buf_printf(b->text, "copying %.1f GB/s\n\n", b->copy);
	jw_start(b->json, "ceilings", '{');
	jw_real(b->json, "fma_gflops_1", NULL, one->fma);
	jw_real(b->json, "fma_gflops_all", NULL, all->fma);
	jw_real(b->json, "amx_gflops_1", NULL, one->amx);
	jw_real(b->json, "amx_gflops_all", NULL, all->amx);
	jw_real(b->json, "copy_gbs", NULL, b->copy);
	jw_end(b->json, '}');
	rows_print(b);
	if (!best) {
		jw_text(b->json, "table2", NULL);
		return;
	}
	buf_printf(&machine, "this computer, %u thread%s, cpu", best->threads, best->threads == 1 ? "" : "s");
	buf_printf(b->text, "\nTable 2: %s: %.0f MCPS, %.3g times the GF11\n", machine.s, row_best(b, best),
	           row_best(b, best) / gf11);
	jw_start(b->json, "table2", '{');
	jw_text(b->json, "machine", machine.s);
	jw_real(b->json, "mcps", NULL, row_best(b, best));
	jw_text(b->json, "from", "measured now");
	jw_end(b->json, '}');
}

/* ---- --list ---- */

static void list_print(const Bench *b)
{
	static const Column isas[] = {
		{ "isa", "isa", .width = -8 }, { .title = "here" }, { .key = "here" }, { .key = "used" }
	};
	static const Column works[] = {
		{ "work", "work", .width = -8 },
		{ "batch", "batch", .width = 5 },
		{ "input", "input", .width = -6 },
		{ .title = "network" },
	};
	Table t = { .column = isas, .columns = COUNT(isas), .text = b->text, .json = b->json };

	table_start(&t, "isas");
	for (int i = 0; i < ISA_COUNT; i++) {
		if (!isa_kern(i))
			continue; /* of another machine */
		const char *here = i == b->isa ? "used" : isa_has(i) ? "yes" : "no";
		table_row(&t, (TableCell[]){ tc_text(isa_name(i)), tc_text(here), tc_flag(isa_has(i)), tc_flag(i == b->isa) });
	}
	table_end(&t);
	buf_printf(b->text, "\nthreads  %u\n\n", b->cpus.count);
	jw_count(b->json, "threads", b->cpus.count);
	t.column = works;
	t.columns = COUNT(works);
	table_start(&t, "works");
	for (const Spec *s = specs; s < specs + spec_count; s++)
		if (!s->gpu_only)
			table_row(&t, (TableCell[]){ tc_text(s->work->name), tc_text(s->batch), tc_text(input_name(s)),
			                             tc_text(s->work->shape) });
	table_end(&t);
}

void cpu_tool(Ctx *cx, int argc, const char *const *argv, Buf *out)
{
	Buf text = { .arena = out->arena }, json = text;
	JsonWriter writer = { .out = &json };
	Bench b = { .cx = cx, .text = &text, .json = &writer, .rounds = 5 };

	if (argc < 1)
		fail(cx, MP_BAD_INPUT, "name a command", "no command of cpu is given");
	if (strcmp(argv[0], "bench"))
		fail(cx, MP_BAD_INPUT, "its one command is bench", "cpu has no command '%s'", argv[0]);
	tool_args_read(cx, &arguments, argc - 1, argv + 1, &b);
	only_check(cx, b.only, false);
	b.isa = isa_choose(cx);
	b.cpus = cpus_here(cx);
	jw_start(&writer, NULL, '{');
	if (b.list) {
		list_print(&b);
	} else {
		teams_make(&b);
		make_rows(&b);
		measure(&b);
		report_print(&b);
	}
	jw_end(&writer, '}');
	buf_puts(&json, "\n");
	*out = b.as_json ? json : text;
}
