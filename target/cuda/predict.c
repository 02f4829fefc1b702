/* SPDX-License-Identifier: MIT */
/* Performance model of the GPU, for target auto. In: a workload. Out: seconds, or why this GPU cannot do it. An
 * emulated device is predicted like a GPU, so that tests reach both choices. */
#include <math.h>
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

	p->blocks = m->driver ? m->blocks : H200_BLOCKS;
	p->memory = m->memory;
}

/* NULL, or why target auto does not choose the GPU. */
static const char *cannot(const TrainingWork *w)
{
	if (wants_bf16(w->opt))
		return "its bf16 has an arithmetic of its own, which --target cuda asks for";
	return NULL;
}

/* The first error of a context, without "target cuda: ". */
static const char *reason(Ctx *cx, const Ctx *own)
{
	static const char prefix[] = "target cuda: ";
	const mp_error *e = ctx_error(own, 0);
	const char *text = e && e->text ? e->text : "there is no GPU here";

	if (strncmp(text, prefix, sizeof prefix - 1) == 0)
		text += sizeof prefix - 1;
	return arena_copy(&cx->scratch, text, strlen(text));
}

/* Measured on an H200; step is an estimate. Lanes: a thread counts as a block. */
typedef struct ShapeCost {
	double floor;      /* seconds of an update, however few cases it has */
	double block_rate; /* operations per second of a block */
	double one_leaf;   /* seconds: barriers of a cluster, if there is one leaf */
	double step;       /* seconds of each time step after the first */
} ShapeCost;
static const ShapeCost costs[SHAPES][2] = {
	[SHAPE_COLUMNS] = { { 4.8e-6, 0.3e12 }, { 2.55e-6, 1.4e12 } },
	[SHAPE_RESIDENT] = { { 12.4e-6, 0.392e12, 1.2e-6 }, { 6e-6, 1.4e12 } },
	[SHAPE_TILES] = { { 36e-6, 0.16e12 }, { 25e-6, 0.6e12 } },
	[SHAPE_GENERAL] = { { 100e-6, 0.02e12, .step = 10e-6 } },
	[SHAPE_SEEDS] = { { 3e-6, 0.14e12 }, { 3e-6, 0.39e12 } },
	[SHAPE_LANES] = { { 0, 0.34e9 } },
};
const char *const shape_names[SHAPES] = { "columns", "resident", "tiles", "general", "seeds", "lanes" };

double update_seconds(CudaShape shape, const UpdateWork *u)
{
	const ShapeCost *c = &costs[shape][u->bf16];

	return c->floor + (u->leaves == 1 ? c->one_leaf : 0) + c->step * fmax(0, u->steps - 1) +
	       u->operations / (c->block_rate * u->blocks);
}

enum { RESIDENT_LINKS = 30000 }; /* whose weights and transposes fit into shared memory */

/* The kernel that a network and its data should get: generating it would take longer than a prediction may. */
static CudaShape shape_guess(const TrainingWork *w)
{
	if (w->net->timed || w->net->settles)
		return SHAPE_GENERAL;
	if (w->net->links > RESIDENT_LINKS)
		return SHAPE_TILES;
	return w->batch <= LEAF_EXAMPLES && w->data->x_indptr && !w->data->x_values ? SHAPE_COLUMNS : SHAPE_RESIDENT;
}

/* The same of many seeds. Returns seeds that a block trains at a time; 0: seeds are trained one after the other. */
static uint32_t seeds_guess(const TrainingWork *w, CudaShape *shape)
{
	*shape = SHAPE_LANES;
	if (w->together && w->seeds >= LEAST_LANES && seed_suits_thread(w->net, w->opt, w->data))
		return LANE_THREADS;
	*shape = SHAPE_SEEDS;
	return w->together && w->seeds >= LEAST_NETWORKS && w->net->links <= RESIDENT_LINKS &&
	       seed_suits_block(w->net, w->opt, w->data);
}

/* An epoch of all seeds. */
static double epoch_seconds(const TrainingWork *w, uint32_t device_blocks)
{
	CudaShape shape;
	uint32_t each = seeds_guess(w, &shape), blocks = 1;
	double times = ceil((double)w->seeds / ((double)max_u32(each, 1) * device_blocks));

	if (!each) {
		shape = shape_guess(w);
		blocks =
			w->batch <= LEAF_EXAMPLES && shape <= SHAPE_RESIDENT ? min_u32(H200_CLUSTER, device_blocks) : device_blocks;
		times = (double)w->seeds;
	}
	UpdateWork u = { .leaves = leaf_count(w->batch),
		             .blocks = blocks,
		             .operations = w->rows / (double)w->updates * w->operations,
		             .steps = w->steps };
	return times * (double)w->updates * update_seconds(shape, &u);
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
	bool streamed = bytes > 0.4 * (double)found.memory; /* copies overlap with computation */
	p->start = opening + (streamed ? 0 : bytes / copy);
	p->epoch = w->updates ? epoch_seconds(w, found.blocks) : 0;
	if (streamed)
		p->epoch = fmax(p->epoch, (double)w->seeds * bytes / copy);
}
