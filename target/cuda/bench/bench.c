/* SPDX-License-Identifier: MIT */
/* microprop bench cuda: training speed of a GPU. In: arguments of the command. Out: rows, as text or JSON. Workloads
 * and measurement are those of bench cpu. Each row has its counterpart on one core, measured in the same run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "plot.h"

extern const Target target_cpu, target_cuda;

enum { MOST_ROUNDS = 1000, TARGETS = 2 };

typedef struct GpuBench {
	Ctx *cx;
	Buf *text;        /* the report as text, */
	JsonWriter *json; /* and as JSON: one is printed */
	bool as_json;
	const char *only; /* NULL: all */
	const char *precision;
	uint64_t rounds;
	Row *row; /* [rows][TARGETS] */
	uint32_t rows;
} GpuBench;

static const CommandOption options[] = {
	{ "json", ARG_FLAG, offsetof(GpuBench, as_json), 0 },
	{ "only", ARG_TEXT, offsetof(GpuBench, only), 0 },
	{ "precision", ARG_TEXT, offsetof(GpuBench, precision), 0 },
	{ "rounds", ARG_COUNT, offsetof(GpuBench, rounds), MOST_ROUNDS },
};
static const CommandArgs arguments = { .of = "bench of cuda", .row = options, .rows = COUNT(options) };

static const Data *row_data(const GpuBench *b, const Spec *s)
{
	for (uint32_t i = 0; i < b->rows * TARGETS; i++)
		if (b->row[i].spec->work == s->work && b->row[i].spec->index == s->index)
			return b->row[i].data;
	return s->work->make(b->cx, s->work, s->index);
}

static bool is_bf16(const GpuBench *b) { return strcmp(b->precision, "bf16") == 0; }

/* The core always computes in fp32. Networks in time have no bf16: they get no row. */
static void add_rows(GpuBench *b, const Spec *s)
{
	const Target *const target[TARGETS] = { &target_cuda, &target_cpu };
	const Data *data = row_data(b, s);

	for (uint32_t i = 0; i < TARGETS; i++) {
		Row *r = &b->row[b->rows * TARGETS + i];
		*r = (Row){ .spec = s, .target = target[i], .data = data, .threads = 1, .bf16 = is_bf16(b) && !i };
		r->mcps = NEW(&b->cx->keep, b->rounds, double);
		row_start(b->cx, r);
		if (r->bf16 && r->net->timed)
			return;
	}
	b->rows++;
}

static void measure(GpuBench *b)
{
	const double seconds = 0.1;

	b->row = NEW(&b->cx->keep, (size_t)spec_count * TARGETS, Row);
	for (uint32_t i = 0; i < spec_count; i++)
		if (spec_selected(b->only, true, &specs[i]))
			add_rows(b, &specs[i]);
	for (uint64_t i = 0; i < b->rounds; i++)
		for (uint32_t k = 0; k < b->rows * TARGETS; k++)
			b->row[k].mcps[i] = row_round(&b->row[k], seconds);
	for (uint32_t k = 0; k < b->rows * TARGETS; k++)
		qsort(b->row[k].mcps, b->rounds, sizeof(double), rate_order);
}

static const Column columns[] = {
	{ .key = "work", .title = "work", .width = -8 },
	{ .key = "batch", .title = "batch", .width = 5 },
	{ .key = "input", .title = "input", .width = -5 },
	{ .key = "precision", .title = "prec", .width = -4 },
	{ .key = "tcps", .title = "best TCPS", .width = 9, .format = "%.4g" },
	{ .key = "median", .title = "median", .width = 9, .format = "%.4g" },
	{ .key = "worst", .title = "worst", .width = 9, .format = "%.4g" },
	{ .key = "update_us", .title = "us/update", .width = 10, .format = "%.4g" },
	{ .key = "tflops", .title = "TFLOPS", .width = 8, .format = "%.3g" },
	{ .key = "ratio", .title = "/ one core", .width = 10, .format = "%.3g" },
};

static void report_print(const GpuBench *b)
{
	const Table t = { .column = columns, .columns = COUNT(columns), .text = b->text, .json = b->json };

	table_start(&t, "rows");
	for (uint32_t i = 0; i < b->rows; i++) {
		const Row *r = &b->row[i * TARGETS], *cpu = r + 1;
		double best = r->mcps[b->rounds - 1], each = (double)r->data->cases / (double)r->examples;
		double ticks = ticks_make(r->net, &r->opt).each;
		double us = (double)r->batch * each * ticks * (double)r->net->links / best;
		table_row(&t, (TableCell[]){ tc_text(r->spec->work->name), tc_text(r->spec->batch),
		                             tc_text(r->spec->index ? "index" : "dense"), tc_text(b->precision),
		                             tc_real(1e-6 * best), tc_real(1e-6 * r->mcps[b->rounds / 2]),
		                             tc_real(1e-6 * r->mcps[0]), tc_real(us), tc_real(1e-6 * best * row_flops(r)),
		                             tc_real(best / cpu->mcps[b->rounds - 1]) });
	}
	table_end(&t);
	buf_printf(b->text, "\nTCPS: 10^12 connections times cases or ticks per second; TFLOPS count dense work\n");
}

void cuda_tool(Ctx *cx, int argc, const char *const *argv, Buf *out)
{
	Buf text = { .arena = out->arena }, json = text;
	JsonWriter writer = { .out = &json };
	GpuBench b = { .cx = cx, .text = &text, .json = &writer, .precision = "fp32", .rounds = 5 };

	if (argc < 1 || strcmp(argv[0], "bench"))
		fail(cx, MP_BAD_INPUT, "its one command is bench", "cuda has no command '%s'", argc ? argv[0] : "");
	tool_args_read(cx, &arguments, argc - 1, argv + 1, &b);
	only_check(cx, b.only, true);
	if (strcmp(b.precision, "fp32") && !is_bf16(&b))
		fail(cx, MP_BAD_INPUT, "write fp32 or bf16", "--precision cannot be '%s'", b.precision);
	jw_start(&writer, NULL, '{');
	measure(&b);
	report_print(&b);
	jw_end(&writer, '}');
	buf_puts(&json, "\n");
	*out = b.as_json ? json : text;
}
