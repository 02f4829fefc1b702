/* SPDX-License-Identifier: MIT */
/* show --stage program. In: options, bound data, if any; the device may be a planned one. Out: as text, the shape of
 * the kernel for the batch of the options, its remarks (tiles, steps), the predicted time of an update. */
#include <string.h>

#include "columns.h"
#include "cpu_layout.h"
#include "cuda.h"

/* A network with one hidden layer may get the kernel of columns/ for batches of one leaf. */
static void columns_print(const Cuda *c, uint32_t team_blocks, Buf *out)
{
	const Layout *l = layout_of(c->cpu);
	uint32_t blocks = min_u32(c->gpu ? c->gpu->max_cluster : H200_CLUSTER, team_blocks);

	if (l->panels != 2 || blocks < 2 || l->panel[0].list || l->panel[1].list ||
	    l->part[l->panel[0].from].role != ROLE_INPUT || l->panel[1].from != l->panel[0].part)
		return;
	buf_printf(out, "\tbatch of 1 leaf, %s: columns, a cluster of %u blocks with %u of %u hidden units each\n",
	           c->bf16 ? "inputs of 0 and 1" : "index lists", blocks,
	           (c->bf16 ? bf16_columns_each : columns_each)(l->panel[0].targets, blocks), l->panel[0].targets);
}

/* Without data, only the division into teams is known. */
static void shapes_print(const Cuda *c, Buf *out)
{
	uint32_t blocks = c->gpu ? c->gpu->blocks : H200_BLOCKS, teams, team_blocks;

	buf_printf(out, "program cuda: the steps of target cpu on %u blocks of threads%s\n", blocks,
	           c->bf16 ? ", bf16 by tensor cores" : "");
	for (uint32_t leaves = 1; leaves <= 64; leaves *= 8) {
		shape_choose(c, LEAF_EXAMPLES, leaves, blocks, &teams, &team_blocks);
		if (c->bf16)
			team_blocks = min_u32(team_blocks, (uint32_t)ceil_div(LEAF_EXAMPLES, bf16_slice_rows(leaves)));
		buf_printf(out, "\tbatch of %u leaves: %u teams of %u blocks\n", leaves, teams, team_blocks);
		if (leaves == 1)
			columns_print(c, team_blocks, out);
	}
}

/* Comments of a text. Those in the first column precede all instructions. */
static void remarks_print(const char *text, Buf *out)
{
	for (const char *line = text; *line;) {
		const char *end = strchr(line, '\n'), *from = line;
		while (*from == '\t')
			from++;
		if (!end)
			end = from + strlen(from);
		if (strncmp(from, "//", 2) == 0)
			buf_printf(out, "\t%s%.*s\n", from == line ? "" : "  ", (int)(end - from - 3), from + 3);
		line = *end ? end + 1 : end;
	}
}

static CudaShape shape_of(const char *text)
{
	for (const char *line = text; strncmp(line, "// ", 3) == 0; line = strchr(line, '\n') + 1)
		for (uint32_t i = 0; i < SHAPES; i++) {
			size_t n = strlen(shape_names[i]);
			if (strncmp(line + 3, shape_names[i], n) == 0 && line[3 + n] == ':')
				return (CudaShape)i;
		}
	return SHAPE_GENERAL;
}

/* Decimals for three significant digits. */
static int places(double x) { return x < 1 ? 3 : x < 10 ? 2 : x < 100 ? 1 : 0; }

static void kernel_print(Cuda *c, Buf *out)
{
	uint64_t examples = c->bound->examples, batch = c->opt->batch == BATCH_ALL ? examples : (uint64_t)c->opt->batch;
	Tally none = { 0 };
	Update u;
	JobRun r;

	batch = min_u64(batch, examples);
	if (c->bound->streamed)
		batch = min_u64(batch, max_u64(1, c->bound->slot_cases / max_u64(1, c->bound->longest)));
	update_fill(c->opt, 1, 0, 0, &u);
	job_prepare(c,
	            &(Work){ .mode = JOB_UPDATE,
	                     .examples = batch,
	                     .batch = batch,
	                     .count = 1,
	                     .update = &u,
	                     .same = true,
	                     .tally = &none,
	                     .epochs = 1 },
	            &r);
	buf_printf(out, "program cuda: batches of %llu example%s on %s, %u multiprocessors%s\n", (unsigned long long)batch,
	           batch == 1 ? "" : "s", c->gpu->name, c->gpu->blocks, c->bf16 ? ", bf16 by tensor cores" : "");
	if (c->bound->streamed)
		buf_printf(out, "\tdata streams through %u slots of %llu cases\n", (unsigned)SLOTS,
		           (unsigned long long)c->bound->slot_cases);
	buf_printf(out, "\tteams of blocks: %u, of %u%s; leaves of a batch: %u\n", c->teams, c->team_blocks,
	           r.kernel->cluster ? " (a cluster)" : "", leaf_count(batch));
	if (!r.kernel->text)
		return;
	const Data *d = c->bound->source;
	double share = (double)batch / (double)examples, links = (double)c->net->links;
	double rows = share * (double)ticks_example(&c->bound->ticks, d, 0, d->cases);
	UpdateWork work = { .bf16 = c->bf16,
		                .leaves = leaf_count(batch),
		                .blocks = c->teams * c->team_blocks,
		                .operations = rows * row_operations(c->net, c->bound->csr.used && !c->bf16 ? d : NULL),
		                .steps = (double)example_rows(c->net, &c->bound->ticks, d) };
	double seconds = update_seconds(shape_of(r.kernel->text), &work), rate = links * rows / seconds;
	bool large = rate >= 1e11;
	double shown = rate * (large ? 1e-12 : 1e-6), us = 1e6 * seconds;
	buf_printf(out, "\tpredicted: %.*f us an update, %.*f %s\n", places(us), us, places(shown), shown,
	           large ? "TCPS" : "MCPS");
	remarks_print(r.kernel->text, out);
}

void device_print(Cuda *c, Buf *out)
{
	if (c->bound && c->bound->examples)
		kernel_print(c, out);
	else
		shapes_print(c, out);
}
