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

/* Rates as measured on an H200 (132 multiprocessors); smaller GPUs have fewer of them. A job of several leaves has more
 * barriers than one of a single leaf. */
void cuda_predict(Ctx *cx, const TrainingWork *w, Prediction *p)
{
	const double opening = 0.8, copy = 10e9, per_block = 0.15e12, one_leaf = 20e-6, leaves = 30e-6;
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
	double batch = w->updates ? w->cases / (double)w->updates : 0, floor = batch > LEAF_EXAMPLES ? leaves : one_leaf;
	bool streamed = bytes > 0.4 * (double)found.memory; /* the data passes through it, while it computes */
	p->start = opening + (streamed ? 0 : bytes / copy);
	p->epoch = w->cases * w->operations / (per_block * found.blocks) + (double)w->updates * floor;
	if (streamed && p->epoch < bytes / copy)
		p->epoch = bytes / copy;
}
