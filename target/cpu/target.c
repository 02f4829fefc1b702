/* SPDX-License-Identifier: MIT */
/* The hooks of the cpu target. In: a Plan, options, data. Out: what the trainer asks for; the work is done
 * elsewhere. */
#include <string.h>

#include "half.h"
#include "fast.h"

extern const Target target_cpu;

static void cpu_caps(Caps *caps) { *caps = (Caps){ .target = "cpu", .lanes = LANES, .bundle = 0 }; }

/* ---- weights ---- */

/* All weights are in p->w, up to date, with their copies: before anything but online learning reads or sets them. */
static void flush(const Program *p) { online_flush(p); }

/* And a case that waits for its update is a pending sum: its row is needed for others. */
static void flush_case(Program *p)
{
	flush(p);
	if (online_waits(p))
		online_gradient(p);
}

/* Between canonical order, from link `first` on, and the places of a layout. */
typedef struct Move {
	double *v;
	float *place;
	uint64_t first;
} Move;

static void move_out(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Move *m = arg;
	(void)unit;
	m->v[link - m->first] = m->place[place];
}

static void move_in(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Move *m = arg;
	(void)unit;
	m->place[place] = (float)m->v[link - m->first];
}

static void cpu_get(const Program *p, int which, uint64_t first, uint64_t count, double *v)
{
	flush(p);
	layout_links(p->layout, first, first + net_chunk(p->net, first, count), move_out,
	             &(Move){ v, which ? p->state[which - 1] : p->w, first });
}

static bool cpu_finite(const Program *p)
{
	unsigned before = cpu_enter();
	bool finite = online_finite(p) && p->kern->finite(p->w, p->layout->floats);

	cpu_leave(before);
	return finite;
}

static void cpu_set(Program *p, int which, uint64_t first, uint64_t count, const double *v)
{
	uint64_t end = first + net_chunk(p->net, first, count);
	float *to = which ? p->state[which - 1] : p->w;

	flush(p);
	p->noise_made = false;
	if (!first) /* padding, too, is that of a new program: ranks whose programs have trained other seeds compare it */
		memset(to, 0, p->layout->floats * sizeof *to);
	layout_links(p->layout, first, end, move_in, &(Move){ (double *)v, to, first });
	if (!which && end == p->net->links)
		update_copies(p);
}

static void cpu_gradient(const Program *p, double *v)
{
	if (online_waits(p))
		flush_case((Program *)p);
	memset(v, 0, p->net->links * sizeof *v);
	if (p->pending.full)
		layout_links(p->layout, 0, p->net->links, move_out, &(Move){ v, p->pending.v, 0 });
}

/* ---- compiling ---- */

/* Arrays for a layout, not yet cleared; the caller moves weights of an older one. If memory runs out, the program is
 * unchanged. */
static void take_layout(Ctx *cx, Program *p, Layout *l)
{
	Program made = *p;

	weights_take(cx, &made, l);
	noisy_take(cx, &made);
	ties_take(cx, &made);
	made.online = online_make(cx, &made);
	for (uint32_t i = 0; i < p->threads; i++)
		p->space[i] = (Space){ 0 };
	*p = made;
}

static bool is_bf16(const Options *opt) { return cpu_own(opt)->precision == PRECISION_BF16; }

static uint32_t threads_wanted(const Options *opt)
{
	return (uint32_t)min_u64((uint64_t)(opt->threads ? opt->threads : pool_cores()), MAX_THREADS);
}

static void bound_forget(Bound *b)
{
	b->of = NULL;
	arena_free(&b->arena);
	arena_free(&b->work);
}

static void forget_data(void *arg)
{
	Program *p = arg;

	for (int i = 0; i < BOUNDS; i++)
		bound_forget(&p->bounds[i]);
}

/* Initial values of a rule's state. */
typedef struct Start {
	const Program *p;
	int k;
} Start;

static void move_start(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Start *s = arg;
	const Program *p = s->p;

	p->state[s->k][place] = (float)rule_start(p->rule, s->k, p->opt, net_block(p->net, unit, link)->rate);
}

static Program *cpu_compile(Ctx *cx, const Plan *plan, const Options *opt)
{
	const Net *net = plan->net;
	Program *p = NEW(&cx->keep, 1, Program);

	for (int i = 0; i < BOUNDS; i++)
		p->bounds[i].arena.cx = p->bounds[i].work.cx = cx;
	arena_defer(&cx->keep, forget_data, p);
	p->net = net;
	p->plan = plan;
	p->opt = opt;
	if (net->noisy && is_bf16(opt))
		fail(cx, MP_BAD_INPUT, "leave --precision out", "noise and dropout are computed in fp32 only");
	p->rule = &rules[opt->rule];
	formula_parse(cx, p->rule, &p->formula);
	p->isa = isa_choose(cx);
	p->kern = isa_kern(p->isa);
	p->threads = threads_wanted(opt);
	p->tally = NEW(&cx->keep, MAX_LEAVES, Tally);
	p->space = NEW(&cx->keep, p->threads, Space);
	take_layout(cx, p, cpu_layout(cx, plan, opt, cpu_own(opt)->input == INPUT_INDEX && !is_bf16(opt)));
	for (int k = 0; k <= p->rule->states; k++)
		weights_clear(p, k);
	for (int k = 0; k < p->rule->states; k++)
		layout_links(p->layout, 0, net->links, move_start, &(Start){ p, k });
	return p;
}

/* ---- data ---- */

/* Index lists need the weights of inputs by source. Old arrays are freed as soon as they have been moved. */
static void change_layout(Ctx *cx, Program *p)
{
	double *v = NEW(&cx->scratch, net_chunk(p->net, 0, CHUNK_LINKS), double);
	Program old = *p;

	take_layout(cx, p, cpu_layout(cx, p->plan, p->opt, true));
	copies_drop(cx, &old);
	for (int k = 0; k <= p->rule->states; k++) {
		weights_clear(p, k);
		for (uint64_t i = 0; i < p->net->links; i += CHUNK_LINKS) {
			cpu_get(&old, k, i, CHUNK_LINKS, v);
			cpu_set(p, k, i, CHUNK_LINKS, v);
		}
		weights_drop(cx, &old, k);
	}
}

/* Index lists of dense inputs. */
static const Data *indexed(Bound *b, const Data *d)
{
	Arena *a = &b->work; /* the guard of data verifies them */
	Data *copy = NEW(&b->arena, 1, Data);
	float *row = NEW(a, d->inputs, float);
	uint64_t *at = NEW(a, d->cases + 1, uint64_t);

	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		at[i + 1] = at[i];
		for (uint32_t k = 0; k < d->inputs; k++)
			at[i + 1] += row[k] != 0;
	}
	uint32_t *index = NEW(a, at[d->cases], uint32_t);
	float *value = NEW(a, at[d->cases], float);
	for (uint64_t i = 0, n = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			if (row[k] != 0) {
				index[n] = k;
				value[n++] = row[k];
			}
	}
	*copy = *d;
	copy->x_indptr = at;
	copy->x_indices = index;
	copy->x_values = value;
	return copy;
}

/* All that is derived from the data. Weights move if it needs another layout, and data bound before is forgotten. */
static void bound_make(Ctx *cx, Program *p, Bound *b, const Data *of)
{
	const Data *data = cpu_own(p->opt)->input == INPUT_INDEX && !of->x_indptr ? indexed(b, of) : of;

	*b = (Bound){ .arena = b->arena,
		          .work = b->work,
		          .data = data,
		          .index = data->x_indptr && cpu_own(p->opt)->input != INPUT_DENSE &&
		                   !p->half &&                 /* bf16 inputs are dense, */
		                   !p->layout->noisy_inputs }; /* and those with noise */
	if (b->index && !p->layout->index) {
		bound_forget(&p->bounds[BOUND_BEFORE]);
		change_layout(cx, p);
	}
	if (!p->pool && p->threads > 1) {
		p->pool = pool_new(cx, p->threads);
		p->threads = pool_threads(p->pool);
	}
	b->ticks = ticks_make(p->net, p->opt);
	if (p->half && !ticks_constant(&b->ticks, data))
		fail(cx, MP_BAD_INPUT, "set precision fp32, or inputs-until all", "inputs in bf16 last as long as their case");
	scorer_init(&b->scorer, p->opt, data);
	scorer_shape(&b->scorer, p->net);
	b->codes = codes_make(cx, p->known, data);
	space_take(cx, p, b);
	if (p->half)
		b->kept = halves_keep(&b->work, p, p->half);
	b->by_input = by_input_make(p, b);
	b->tiny = p->half ? NULL : tiny_make(cx, &b->work, p);
	b->learn = lower(&b->arena, p, b, LOWER_LEARN);
	b->test = lower(&b->arena, p, b, LOWER_TEST);
	if (p->online)
		b->online = lower(&b->arena, p, b, LOWER_ONLINE);
	b->of = of;
}

/* Steps of online learning point into spaces, which other data may have moved: they are made again, a few stores. */
static void bind_to(Ctx *cx, Program *p, const Data *data)
{
	Bound *b = p->bound = &p->bounds[BOUND_NOW];

	flush(p);
	if (b->of != data) {
		bound_forget(b);
		bound_make(cx, p, b, data);
	}
	b->scorer.threshold = p->opt->threshold; /* the one option that may have changed */
	if (p->online && b->index == p->layout->index)
		online_steps_make(p);
}

static void cpu_bind(Ctx *cx, Program *p, const Data *data)
{
	forget_data(p);
	bind_to(cx, p, data);
}

static void cpu_rebind(Ctx *cx, Program *p, const Data *data)
{
	if (p->bounds[BOUND_NOW].of != data) {
		Bound before = p->bounds[BOUND_NOW];
		p->bounds[BOUND_NOW] = p->bounds[BOUND_BEFORE];
		p->bounds[BOUND_BEFORE] = before;
	}
	bind_to(cx, p, data);
}

/* Without data: for dense inputs, or for binary index lists if option input says so. */
static void cpu_print(Ctx *cx, Program *p, const Data *data, Buf *out)
{
	if (data)
		cpu_bind(cx, p, data);
	Data none = { .name = "none", .inputs = p->net->inputs, .targets = p->net->outputs };
	Bound assumed = { .data = &none, .index = p->layout->index };
	const Bound *b = p->bound;

	if (!b) {
		assumed.ticks = ticks_make(p->net, p->opt);
		scorer_init(&assumed.scorer, p->opt, &none);
		assumed.learn = lower(out->arena, p, &assumed, LOWER_LEARN);
		b = &assumed;
	}
	buf_printf(out, "program cpu: rows of %u floats a case, vectors of %d floats\nparts\n", p->layout->cols, LANES);
	layout_print(p->layout, out);
	if (p->net->settles)
		buf_printf(out, "each case in %u rows: its ticks\n", b->ticks.each);
	if (b->tiny)
		buf_puts(out, "whole epochs in one kernel where no other step is needed; else:\n");
	if (p->bound && p->online && b->index == p->layout->index)
		online_print(p, out);
	else
		list_print(p, b, &b->learn, out);
	buf_printf(out, "update %s, for each of %llu links\n", p->rule->name, (unsigned long long)p->net->links);
	formula_print(p->rule, &p->formula, out);
}

/* ---- running ---- */

static Status cpu_accumulate(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t)
{
	if (online_waits(p))
		flush_case(p);
	if (online_accepts(p, b)) {
		online_forward(p, b, t);
		return MP_OK;
	}
	flush(p);
	return batch_learn(p, b, first, last, stop, t);
}

static Status cpu_partial_sums(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn,
                               const StopFlag *stop, Share *out)
{
	flush_case(p);
	return batch_share(p, b, first, last, learn, stop, out);
}

static void cpu_add(Program *p, float *into, const float *from, uint64_t floats)
{
	unsigned before = cpu_enter();

	p->kern->add(into, from, floats);
	cpu_leave(before);
}

static uint64_t cpu_sum_floats(const Program *p) { return p->layout->floats; }

static void cpu_use_total(Program *p)
{
	p->pending.full = true;
	pending_checksum(p);
}

static void cpu_apply(Program *p, const Update *u)
{
	if (online_waits(p))
		online_apply(p, u);
	else if (p->pending.full)
		update_apply(p, u);
	p->pending.full = false;
	p->noise_made = false;
}

static Status cpu_evaluate(Program *p, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t)
{
	flush_case(p);
	return batch_test(p, first, count, stop, out, t);
}

static void cpu_watch(Program *p, Span units, uint32_t tick)
{
	p->watched = units;
	p->watched_tick = tick;
}

static void cpu_watch_cases(Program *p, Tally *tally) { p->watched_cases = tally; }

static uint64_t cpu_run_updates(Program *p, const Updates *s)
{
	if (p->pending.full || online_waits(p))
		return 0;
	if (s->prepare)
		s->prepare(s->of, s->count);
	if (!p->bound->tiny)
		return online_updates(p, s);
	flush(p);
	return tiny_updates(p, p->bound->tiny, s);
}

/* ---- guards ---- */

static uint32_t cpu_regions(Program *p, Region *r) { return update_regions(p, r); }

/* A case that waits is dropped; while a guard is attached, no update is deferred. */
static void cpu_attach(Program *p, Monitor *m)
{
	online_forget(p);
	flush(p);
	by_input_forget(p);
	p->pending.full = false;
	p->monitor = m;
}

typedef struct TableFn {
	void (*fn)(void *arg, Region r);
	void *arg;
} TableFn;

static void steps_block(void *arg, void *at, size_t bytes)
{
	const TableFn *to = arg;
	to->fn(to->arg, (Region){ "steps of the program", at, bytes });
}

static uint64_t cpu_tables(Program *p, void (*fn)(void *arg, Region r), void *arg)
{
	uint64_t mended = rows_mend(p);
	if (!fn)
		return mended;
	fn(arg, (Region){ "program", p, offsetof(Program, bounds) });
	fn(arg, (Region){ "bound data", p->bound, sizeof *p->bound });
	arena_walk(&p->bound->arena, steps_block, &(TableFn){ fn, arg });
	for (uint32_t i = 0; i < p->threads; i++) {
		Space *s = &p->space[i];
		fn(arg, (Region){ "buffers of a thread", s, offsetof(Space, chunk) + offsetof(Chunk, examples) });
		if (s->half)
			fn(arg, (Region){ "buffers of a thread", s->half, offsetof(HalfSpace, rows) });
	}
	return mended;
}

static const Data *cpu_bound_data(const Program *p) { return p->bound->data; }

static uint64_t cpu_checksum(const Program *p, const void *at, uint64_t bytes)
{
	return p->kern->checksum(at, bytes, 0);
}

static const RankHooks rank_hooks = {
	.partial_sums = cpu_partial_sums,
	.add = cpu_add,
	.sum_floats = cpu_sum_floats,
	.use_total = cpu_use_total,
};

static const GuardHooks guard_hooks = {
	.regions = cpu_regions,
	.attach = cpu_attach,
	.recompute = batch_recompute,
	.bound_data = cpu_bound_data,
	.checksum = cpu_checksum,
	.fused_checksums = true,
	.tables = cpu_tables,
};

static const RestartHooks restart_hooks = { .run = cpu_restarts };

static bool cpu_damaged(Ctx *cx, Program *p, const Damages *d, Tally *tally, double *out)
{
	flush_case(p);
	return damaged_run(cx, p, d, tally, out);
}

static const WatchHooks cpu_watches = { cpu_watch, cpu_watch_cases, cpu_damaged };

/* ---- target auto ---- */

/* Of one thread, on layers of a hundred units; a share of the ceiling that microprop bench shows. */
static double thread_gflops(int isa)
{
	static const double rate[ISA_COUNT] = { [ISA_GENERIC] = 8, [ISA_AVX2] = 35, [ISA_AVX512] = 70, [ISA_AMX] = 70 };

	return rate[isa];
}

/* Threads share leaves: a batch of one example has one thread, larger ones lose some time to barriers. Of many seeds, a
 * thread trains a vector of its own, whose lanes share what a row and an update take besides arithmetic. */
static void cpu_predict(Ctx *cx, const TrainingWork *w, Prediction *p)
{
	const double per_row = 60e-9, per_update = 0.5e-6, per_barrier = 3e-6;
	double threads = w->opt->threads ? (double)w->opt->threads : pool_cores(), seeds = (double)w->seeds;
	double arithmetic = w->rows * w->operations / (thread_gflops(isa_choose(cx)) * 1e9);
	double rest = w->rows * per_row, updates = (double)w->updates * per_update;

	if (w->together && lanes_suit(w->net, w->opt, w->data, w->seeds)) {
		threads = fmin(threads, ceil(seeds / LANES));
		p->epoch = seeds * (arithmetic + (rest + updates) / LANES) / threads;
		return;
	}
	threads = w->batch < 2 ? 1 : threads;
	p->epoch = seeds * ((arithmetic + rest) / threads + updates + (threads > 1 ? (double)w->updates * per_barrier : 0));
}

static const TimeHooks cpu_times = { .predict = cpu_predict };

static const char *cpu_bits(const Options *o) { return cpu_own(o)->precision == PRECISION_BF16 ? "bf16" : "fp32"; }

const Target target_cpu = {
	.name = "cpu",
	.about = "this computer's vector units, single precision",
	.bits = cpu_bits,
	.caps = cpu_caps,
	.compile = cpu_compile,
	.print = cpu_print,
	.bind = cpu_bind,
	.rebind = cpu_rebind,
	.accumulate = cpu_accumulate,
	.apply = cpu_apply,
	.run_updates = cpu_run_updates,
	.evaluate = cpu_evaluate,
	.watch = &cpu_watches,
	.get = cpu_get,
	.set = cpu_set,
	.gradient = cpu_gradient,
	.finite = cpu_finite,
	.time = &cpu_times,
	.ranks = &rank_hooks,
	.guard = &guard_hooks,
	.restarts = &restart_hooks,
};
