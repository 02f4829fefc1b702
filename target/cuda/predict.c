/* SPDX-License-Identifier: MIT */
/* Time that training takes on a GPU, for target auto. In: a workload. Out: seconds, or why this GPU cannot do it. An
 * emulated device is predicted as if it were a GPU, so that tests see both choices. */
#include <string.h>

#include "cuda.h"
#include "monitor.h"
#include "pass.h"

typedef struct Probe {
	int64_t device;
	uint32_t blocks;
	uint64_t memory;
} Probe;

static void probe(Ctx *own, void *arg)
{
	Probe *p = arg;
	const Gpu *m = gpu_open(own, p->device);

	p->blocks = m->driver ? m->blocks : 132;
	p->memory = m->memory;
}

static const char *cannot(const TrainingWork *w)
{
	if (wants_half(w->opt))
		return "its bf16 has an arithmetic of its own, which --target cuda asks for";
	return NULL;
}

/* Its first error, without "target cuda: ". */
static const char *reason(Ctx *cx, const Ctx *own)
{
	static const char prefix[] = "target cuda: ";
	const mp_error *e = ctx_error(own, 0);
	const char *text = e && e->text ? e->text : "there is no GPU here";

	if (strncmp(text, prefix, sizeof prefix - 1) == 0)
		text += sizeof prefix - 1;
	return arena_copy(&cx->scratch, text, strlen(text));
}

/* As measured on an H200: what an update takes however few cases it has, and operations per second of a block; of one
 * leaf, what barriers of a cluster take besides. */
typedef struct ShapeCost {
	double floor, block_rate, one_leaf;
} ShapeCost;
static const ShapeCost costs[SHAPES][2] = {
	[SHAPE_COLUMNS] = { { 4.8e-6, 0.3e12 }, { 2.55e-6, 1.4e12 } },
	[SHAPE_RESIDENT] = { { 12.4e-6, 0.392e12, 1.2e-6 }, { 6e-6, 1.4e12 } },
	[SHAPE_TILES] = { { 36e-6, 0.16e12 }, { 25e-6, 0.6e12 } },
	[SHAPE_GENERAL] = { { 100e-6, 0.02e12 } },
};
const char *const shape_names[SHAPES] = { "columns", "resident", "tiles", "general" };

double update_seconds(CudaShape shape, bool half, uint32_t leaves, uint32_t blocks, double operations)
{
	const ShapeCost *c = &costs[shape][half];

	return c->floor + (leaves == 1 ? c->one_leaf : 0) + operations / (c->block_rate * blocks);
}

/* Before anything is compiled: which shape a network and its data should have. */
static CudaShape shape_guess(const TrainingWork *w, double batch)
{
	const double resident = 30000; /* links whose weights and copies fit into shared memory */

	if (w->net->timed || w->net->settles)
		return SHAPE_GENERAL;
	if ((double)w->net->links > resident)
		return SHAPE_TILES;
	return batch <= LEAF_EXAMPLES && w->data->x_indptr && !w->data->x_values ? SHAPE_COLUMNS : SHAPE_RESIDENT;
}

void cuda_predict(Ctx *cx, const TrainingWork *w, Prediction *p)
{
	const double opening = 0.8, copy = 10e9;
	Probe found = { .device = cuda_own(w->opt)->device };
	Ctx own;

	p->why_not = cannot(w);
	if (p->why_not)
		return;
	ctx_init(&own, &cx->alloc);
	if (subcontext_run(&own, probe, &found) != MP_OK)
		p->why_not = reason(cx, &own);
	ctx_free(&own);
	if (p->why_not)
		return;
	double bytes = (double)w->data->cases * 4 * (w->data->inputs + (double)w->data->targets);
	double batch = w->updates ? w->cases / (double)w->updates : 0;
	bool streamed = bytes > 0.4 * (double)found.memory; /* the data passes through it, while it computes */
	CudaShape shape = shape_guess(w, batch);
	uint32_t blocks = batch <= LEAF_EXAMPLES && shape <= SHAPE_RESIDENT ? min_u32(16, found.blocks) : found.blocks;
	p->start = opening + (streamed ? 0 : bytes / copy);
	p->epoch =
		(double)w->updates * update_seconds(shape, false, leaf_count((uint64_t)batch), blocks, batch * w->operations);
	if (streamed && p->epoch < bytes / copy)
		p->epoch = bytes / copy;
}
