/* SPDX-License-Identifier: MIT */
/* The hooks of target cuda. In: a plan, options, data; calls of the trainer. Out: jobs, weights, tallies. Must hold:
 * at any time either the device or the program of target cpu has the newest weights (device_newer, host_newer). */
#include <assert.h>
#include <string.h>

#include "cpu_layout.h"
#include "cuda.h"

extern const Target target_cuda, target_cpu;

struct Program {
	Cuda cuda;
};

Cuda *cuda_of(Program *p) { return &p->cuda; }

enum { BF16_TEST_CASES = 8192 }; /* of a job, at most: bf16 kernels hold all rows of a test */
enum {
	MAX_EPOCHS = 2048,
	BULK_EXAMPLES = 1 << 21
}; /* of a call: large, since a launch takes as long as some updates */

static void cuda_caps(Caps *caps)
{
	target_cpu.caps(caps);
	caps->target = "cuda";
	caps->bulk = BULK_EXAMPLES;
}

static void unbind_all(Cuda *c)
{
	for (int i = 0; i < DEVICE_BOUNDS; i++) {
		c->bindings[i].source = NULL;
		device_free(&c->bindings[i].memory);
	}
}

static void memory_free(void *arg)
{
	Cuda *c = arg;

	unbind_all(c);
	device_free(&c->weights);
	device_free(&c->rows);
	device_free(&c->calls);
}

static Program *cuda_compile(Ctx *cx, const Plan *plan, const Options *opt)
{
	Program *p = NEW(&cx->keep, 1, Program);
	Cuda *c = &p->cuda;

	c->cx = c->temp.cx = cx;
	c->net = plan->net;
	c->opt = opt;
	c->rule = &rules[opt->rule];
	formula_parse(cx, c->rule, &c->formula);
	c->cpu = target_cpu.compile(cx, plan, opt);
	c->bf16 = wants_bf16(opt);
	return p;
}

/* ---- data ---- */

static void attach_gpu(Ctx *cx, Cuda *c, Gpu *m)
{
	c->weights.gpu = c->rows.gpu = c->calls.gpu = m;
	for (int i = 0; i < DEVICE_BOUNDS; i++)
		c->bindings[i].memory.gpu = m;
	c->gpu = m;
	arena_defer(&cx->keep, memory_free, c); /* runs before the device is closed */
	c->device_tally = device_alloc(&c->calls, MAX_LEAVES * sizeof(Tally));
}

/* Binds new data. Target cpu may choose another layout for it: then the tables of weights are made again. */
static void bound_init(Ctx *cx, Cuda *c, DeviceBound *b, const Data *data)
{
	weights_download(c);
	c->host_newer = true;
	target_cpu.bind(cx, c->cpu, data);
	if (c->tables.layout != layout_of(c->cpu)) {
		unbind_all(c);
		lower_weights(c);
	}
	device_free(&b->memory);
	lower_data(c, b);
	b->source = data;
}

/* Makes `data` the bound data: it is bound already, or takes the place of the data that was not used last. */
static void bind_to(Ctx *cx, Cuda *c, const Data *data)
{
	if (!c->gpu)
		attach_gpu(cx, c, gpu_open(cx, cuda_own(c->opt)->device));
	for (int i = 0; i < DEVICE_BOUNDS; i++)
		if (c->bindings[i].source == data) {
			c->bound = &c->bindings[i];
			return;
		}
	DeviceBound *b = !c->bindings[0].source || c->bound == &c->bindings[1] ? &c->bindings[0] : &c->bindings[1];
	b->source = NULL;
	bound_init(cx, c, b, data);
	c->bound = b;
	row_buffers_reserve(c);
}

static void cuda_bind(Ctx *cx, Program *p, const Data *data)
{
	unbind_all(&p->cuda);
	bind_to(cx, &p->cuda, data);
}

static void cuda_rebind(Ctx *cx, Program *p, const Data *data) { bind_to(cx, &p->cuda, data); }

/* ---- running ---- */

Work batch_work(uint32_t mode, const Batch *b, Tally *tally)
{
	return (Work){ .mode = mode,
		           .examples = b->count,
		           .batch = b->count,
		           .count = 1,
		           .example = b->example,
		           .first = b->first,
		           .first_update = b->update,
		           .tally = tally,
		           .epochs = 1 };
}

static Status cuda_accumulate(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t)
{
	Cuda *c = &p->cuda;
	Tally sum = { 0 };

	assert(first == 0 && last == leaf_count(b->count));
	(void)first;
	(void)last;
	if (*stop) {
		c->pending_full = false;
		return MP_STOPPED;
	}
	Work w = batch_work(JOB_SUM, b, &sum);
	work_run(c, &w);
	guard_summed(c, &w, 0, last);
	c->pending_full = true;
	guard_pending(c);
	tally_add(t, &sum);
	return MP_OK;
}

static void cuda_apply(Program *p, const Update *u)
{
	Cuda *c = &p->cuda;
	Tally none = { 0 };

	if (!c->pending_full)
		return;
	guard_verify(c);
	work_run(c, &(Work){ .mode = JOB_APPLY,
	                     .examples = c->bound->examples,
	                     .batch = c->bound->examples,
	                     .count = 1,
	                     .update = u,
	                     .same = true,
	                     .tally = &none,
	                     .epochs = 1 });
	c->device_newer = true;
	c->pending_full = false;
}

static uint64_t cuda_run_updates(Program *p, const Updates *s)
{
	Cuda *c = &p->cuda;
	uint64_t done, first = ceil_div(s->examples - s->done, s->batch), each = ceil_div(s->examples, s->batch);
	uint64_t epochs = s->count > first ? min_u64(1 + ceil_div(s->count - first, each), MAX_EPOCHS) : 1;

	if (c->pending_full || c->guard.attached || *s->stop || !stream_fits(c, min_u64(s->batch, s->examples)))
		return 0;
	done = work_run(c, &(Work){ .mode = JOB_UPDATE,
	                            .examples = s->examples,
	                            .batch = s->batch,
	                            .done = s->done,
	                            .count = min_u64(s->count, first + (epochs - 1) * each),
	                            .example = s->example,
	                            .lazy = s->prepare ? s : NULL,
	                            .first_update = s->before,
	                            .update = s->update,
	                            .same = s->same,
	                            .until = s->until,
	                            .tally = s->tally,
	                            .epoch = s->epoch,
	                            .few_counts = s->few_counts,
	                            .epochs = (uint32_t)epochs });
	c->device_newer = true;
	return done;
}

void cpu_ready(Cuda *c)
{
	weights_download(c);
	target_cpu.rebind(c->cx, c->cpu, c->bound->source);
	weights_refresh(c);
}

/* Tallies of single cases come from target cpu, which has the same bits. */
static Status evaluate_cases(Cuda *c, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t)
{
	Status status;

	cpu_ready(c);
	target_cpu.watch->units(c->cpu, c->watch.units, c->watch.tick);
	target_cpu.watch->cases(c->cpu, c->watch.cases);
	status = target_cpu.evaluate(c->cpu, first, count, stop, out, t);
	target_cpu.watch->cases(c->cpu, NULL);
	return status;
}

/* A test; bf16: in several jobs. out: [cases][watched], or NULL */
static void test_run(Cuda *c, uint64_t first, uint64_t count, float *out, uint64_t cases, Tally *sum)
{
	uint64_t most = c->bf16 ? min_u64(BF16_TEST_CASES, (uint64_t)c->row_teams * c->job.row_capacity) : count;

	for (uint64_t at = 0; at < count; at += most) {
		uint64_t some = min_u64(most, count - at);
		Tally t = { 0 };
		work_run(c, &(Work){ .mode = JOB_TEST,
		                     .examples = some,
		                     .batch = some,
		                     .count = 1,
		                     .first = first + at,
		                     .out = out ? out + at * c->job.watched_count : NULL,
		                     .out_cases = c->bf16 ? some : cases,
		                     .tally = &t,
		                     .epochs = 1 });
		tally_add(sum, &t);
	}
}

static Status cuda_evaluate(Program *p, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t)
{
	Cuda *c = &p->cuda;
	Tally sum = { 0 };
	uint64_t cases = 0, begin, some;

	if (!count)
		return MP_OK;
	if (*stop)
		return MP_STOPPED;
	if (c->watch.cases)
		return evaluate_cases(c, first, count, stop, out, t);
	for (uint64_t e = first; out && e < first + count; e++) {
		run_example(c->net, c->bound->source, e, &begin, &some);
		cases += some;
	}
	uint64_t n = out ? cases * c->job.watched_count : 0;
	if (n > c->outputs.host_capacity) {
		c->outputs.host =
			arena_grow_raw(&c->cx->keep, c->outputs.host, c->outputs.host_capacity, n, sizeof *c->outputs.host);
		c->outputs.host_capacity = n;
	}
	test_run(c, first, count, out ? c->outputs.host : NULL, cases, &sum);
	for (uint64_t i = 0; out && i < n; i++)
		out[i] = (double)c->outputs.host[i];
	tally_add(t, &sum);
	return MP_OK;
}

/* Columns depend on the layout: if nothing is bound yet, binding looks them up. */
static void cuda_watch(Program *p, Span units, uint32_t tick)
{
	p->cuda.watch.units = units;
	p->cuda.watch.tick = tick;
	if (p->cuda.bound)
		lower_watched(&p->cuda, units);
}

static void cuda_watch_cases(Program *p, Tally *tally) { p->cuda.watch.cases = tally; }

/* ---- weights ---- */

static void cuda_get(const Program *p, int which, uint64_t first, uint64_t count, double *v)
{
	weights_download((Cuda *)&p->cuda);
	target_cpu.get(p->cuda.cpu, which, first, count, v);
}

static void cuda_set(Program *p, int which, uint64_t first, uint64_t count, const double *v)
{
	weights_download(&p->cuda);
	target_cpu.set(p->cuda.cpu, which, first, count, v);
	p->cuda.host_newer = true;
	p->cuda.infinite = false;
}

static void cuda_gradient(const Program *p, double *v)
{
	memset(v, 0, p->cuda.net->links * sizeof *v);
	if (p->cuda.pending_full)
		pending_download(&p->cuda, v);
}

static bool cuda_finite(const Program *p)
{
	const Cuda *c = &p->cuda;

	return c->device_newer ? !c->infinite : target_cpu.finite(c->cpu);
}

static void cuda_print(Ctx *cx, Program *p, const Data *data, Buf *out)
{
	Cuda *c = &p->cuda;

	if (data && !c->gpu)
		attach_gpu(cx, c, gpu_plan(cx, cuda_own(c->opt)->device));
	if (data)
		bind_to(cx, c, data);
	device_print(c, out);
	target_cpu.print(cx, c->cpu, NULL, out); /* bound by bind_to */
}

static double cuda_compile_seconds(const Program *p) { return p->cuda.compile_seconds; }

static const char *cuda_bits(const Options *o) { return wants_bf16(o) ? "bf16 of tensor cores" : "fp32"; }

static const TimeHooks cuda_times = { .predict = cuda_predict, .compile = cuda_compile_seconds };
static const WatchHooks cuda_watches = { .units = cuda_watch, .cases = cuda_watch_cases };

const Target target_cuda = {
	.name = "cuda",
	.about = "an NVIDIA GPU, with the bits of target cpu",
	.bits = cuda_bits,
	.caps = cuda_caps,
	.compile = cuda_compile,
	.print = cuda_print,
	.bind = cuda_bind,
	.rebind = cuda_rebind,
	.accumulate = cuda_accumulate,
	.apply = cuda_apply,
	.run_updates = cuda_run_updates,
	.evaluate = cuda_evaluate,
	.watch = &cuda_watches,
	.ranks = &cuda_ranks,
	.guard = &cuda_guard,
	.restarts = &cuda_restarts,
	.get = cuda_get,
	.set = cuda_set,
	.gradient = cuda_gradient,
	.finite = cuda_finite,
	.time = &cuda_times,
};
