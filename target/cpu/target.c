/* SPDX-License-Identifier: MIT */
/* The hooks of the cpu target. In: a Plan, options, data. Out: what the trainer asks for; the work is done
 * elsewhere. */
#include <math.h>
#include <string.h>

#include "half.h"
#include "fast.h"

extern const Target target_cpu;

static size_t floats_full(size_t n) { return (n + LANES - 1) / LANES * LANES + LANES; }

/* The arena puts what is as long as a cache line on one. */
float *floats_take(Arena *a, size_t n) { return arena_alloc(a, floats_full(n), sizeof(float)); }

/* What nobody writes to takes no memory yet. */
static float *floats_room(Arena *a, size_t n) { return arena_alloc_raw(a, floats_full(n), sizeof(float)); }

static void floats_clear(float *v, size_t n) { memset(v, 0, floats_full(n) * sizeof *v); }

static void floats_drop(Arena *a, float *v, size_t n) { arena_drop(a, v, floats_full(n), sizeof *v); }

static void cpu_caps(Caps *caps) { *caps = (Caps){ .target = "cpu", .lanes = LANES, .bundle = 0 }; }

/* ---- weights ---- */

Form form_by_source(const Program *p, const Panel *panel)
{
	return panel->by_source ? (Form){ p->w + panel->at, panel->row, false }
	                        : (Form){ p->copies + panel->copy, panel->copy_row, false };
}

Form form_by_target(const Program *p, const Panel *panel)
{
	if (panel->by_source && panel->copy == NONE)
		return (Form){ p->w + panel->at, panel->row, true };
	return panel->by_source ? (Form){ p->copies + panel->copy, panel->copy_row, false }
	                        : (Form){ p->w + panel->at, panel->row, false };
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

/* Weights that are late become what they have been all along. */
static void cpu_get(const Program *p, int which, uint64_t first, uint64_t count, double *v)
{
	online_settle((Program *)p);
	layout_links(p->layout, first, first + net_chunk(p->net, first, count), move_out,
	             &(Move){ v, which ? p->state[which - 1] : p->w, first });
}

/* As updates left them, wherever they stand. */
static bool cpu_finite(const Program *p)
{
	unsigned before = cpu_enter();
	bool finite = online_finite((Program *)p) && p->kern->finite(p->w, p->layout->room);

	cpu_leave(before);
	return finite;
}

static void cpu_set(Program *p, int which, uint64_t first, uint64_t count, const double *v)
{
	uint64_t end = first + net_chunk(p->net, first, count);

	online_settle(p);
	layout_links(p->layout, first, end, move_in, &(Move){ (double *)v, which ? p->state[which - 1] : p->w, first });
	if (!which && end == p->net->links)
		update_copies(p);
}

static void cpu_gradient(const Program *p, double *v)
{
	if (online_waits(p))
		batch_sum((Program *)p);
	memset(v, 0, p->net->links * sizeof *v);
	if (p->has_pending)
		layout_links(p->layout, 0, p->net->links, move_out, &(Move){ v, p->pending, 0 });
}

/* ---- compiling ---- */

static uint32_t longest_row(const Layout *l)
{
	uint32_t longest = l->cols;

	for (uint32_t i = 0; i < l->panels; i++) {
		const Panel *p = &l->panel[i];
		if (p->list)
			continue;
		longest = p->row > longest ? p->row : longest;
		longest = p->copy_row > longest ? p->copy_row : longest;
	}
	return longest;
}

/* Arrays for a layout, not yet cleared: what stood in those of an older one has to be moved by whoever asks. If
 * memory runs out, all is as it was. */
static void take_weights(Ctx *cx, Program *p, Layout *l)
{
	Program made = *p;

	made.layout = l;
	made.w = floats_room(&cx->keep, l->room + LANES);
	made.copies = floats_room(&cx->keep, l->copies + LANES);
	made.zero = floats_take(&cx->keep, longest_row(l) + LANES);
	made.pending = arena_alloc_raw(&cx->keep, l->room + LANES, sizeof *made.pending);
	made.fresh = true;
	made.lent = NULL;
	made.spare = NULL;
	for (int k = 0; k < p->rule->states; k++)
		made.state[k] = floats_room(&cx->keep, l->room + LANES);
	made.half = cpu_own(p->opt)->precision == PRECISION_BF16 ? halves_make(cx, l, p->isa) : NULL;
	made.online = online_make(cx, &made);
	for (uint32_t i = 0; i < p->threads; i++)
		p->space[i] = (Space){ 0 };
	*p = made;
}

/* Weights (0) with their copies, or rule state. */
static void clear_weights(Program *p, int which)
{
	floats_clear(which ? p->state[which - 1] : p->w, p->layout->room + LANES);
	if (!which)
		floats_clear(p->copies, p->layout->copies + LANES);
}

static uint32_t threads_wanted(const Options *opt)
{
	int64_t threads = opt->threads ? opt->threads : pool_cores();

	return threads > MAX_THREADS ? MAX_THREADS : (uint32_t)threads;
}

static void bound_forget(Bound *b)
{
	b->of = NULL;
	arena_free(&b->arena);
}

static void forget_data(void *arg)
{
	Program *p = arg;

	for (int i = 0; i < BOUNDS; i++)
		bound_forget(&p->bound[i]);
}

/* Where a rule's state begins. */
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
		p->bound[i].arena.cx = cx;
	arena_defer(&cx->keep, forget_data, p);
	p->net = net;
	p->plan = plan;
	p->opt = opt;
	p->rule = &rules[opt->rule];
	formula_parse(cx, p->rule, &p->formula);
	p->isa = isa_choose(cx);
	p->kern = isa_kern(p->isa);
	p->threads = threads_wanted(opt);
	p->tally = NEW(&cx->keep, MAX_LEAVES, Tally);
	p->space = NEW(&cx->keep, p->threads, Space);
	take_weights(cx, p, cpu_layout(cx, plan, opt, false));
	for (int k = 0; k <= p->rule->states; k++)
		clear_weights(p, k);
	for (int k = 0; k < p->rule->states; k++)
		layout_links(p->layout, 0, net->links, move_start, &(Start){ p, k });
	return p;
}

static void cpu_print(const Program *p, Buf *out)
{
	buf_printf(out, "program cpu: rows of %u floats a case, sums of sixteen units at once\nforward\n", p->layout->cols);
	layout_print(p->layout, out);
	buf_printf(out, "backward\n\terror %s, the same in reverse%s\n", error_fns[p->opt->error].name,
	           !p->net->copies ? ""
	           : p->opt->bptt  ? ", back through time"
	                           : ", truncated at the copy");
	buf_printf(out, "update %s, for each of %llu links\n", p->rule->name, (unsigned long long)p->net->links);
	formula_print(p->rule, &p->formula, out);
}

/* ---- data ---- */

/* Index lists want the weights of inputs by source.  What stood in another way goes as soon as it has moved. */
static void change_layout(Ctx *cx, Program *p)
{
	double *v = NEW(&cx->scratch, net_chunk(p->net, 0, CHUNK_LINKS), double);
	online_settle(p);
	Program old = *p;

	take_weights(cx, p, cpu_layout(cx, p->plan, p->opt, true));
	arena_drop(&cx->keep, old.lent ? old.spare : old.pending, old.layout->room + LANES, sizeof *old.pending);
	floats_drop(&cx->keep, old.copies, old.layout->copies + LANES);
	for (int k = 0; k <= p->rule->states; k++) {
		clear_weights(p, k);
		for (uint64_t i = 0; i < p->net->links; i += CHUNK_LINKS) {
			cpu_get(&old, k, i, CHUNK_LINKS, v);
			cpu_set(p, k, i, CHUNK_LINKS, v);
		}
		floats_drop(&cx->keep, k ? old.state[k - 1] : old.w, old.layout->room + LANES);
	}
}

/* Dense inputs as index lists, until other data is bound. */
static const Data *indexed(Arena *a, const Data *d)
{
	Data *copy = NEW(a, 1, Data);
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

/* What is made of the data goes to the program; weights that it wants in another layout move, and what was made for
 * the old one goes. */
static void make(Ctx *cx, Program *p, Arena *a, const Data *data)
{
	if (cpu_own(p->opt)->input == INPUT_INDEX && !data->x_indptr)
		data = indexed(a, data);
	p->data = data;
	p->index = data->x_indptr && cpu_own(p->opt)->input != INPUT_DENSE && !p->half; /* halves are dense */
	if (p->index && !p->layout->index) {
		bound_forget(&p->bound[BOUND_BEFORE]);
		change_layout(cx, p);
	}
	if (!p->pool && p->threads > 1) {
		p->pool = pool_new(cx, p->threads);
		p->threads = pool_threads(p->pool);
	}
	scorer_init(&p->scorer, p->opt, data);
	p->codes = codes_make(cx, p->known, data);
	space_take(cx, p);
	if (p->half)
		p->half->kept = halves_keep(a, p, p->half);
	p->by_input = by_input_make(a, p);
	p->tiny = p->half ? NULL : tiny_make(cx, a, p);
}

static void bound_note(const Program *p, const Data *of, Bound *b)
{
	*b = (Bound){ .of = of,
		          .arena = b->arena,
		          .data = p->data,
		          .index = p->index,
		          .scorer = p->scorer,
		          .codes = p->codes,
		          .longest = p->longest,
		          .chunk = p->space[0].chunk,
		          .team_rows = p->team_rows,
		          .tiny = p->tiny,
		          .by_input = p->by_input,
		          .kept = p->half ? p->half->kept : NULL };
}

/* All as it was when it was made, but for the one option that may have changed. */
static void bound_use(Program *p, const Bound *b)
{
	p->data = b->data;
	p->index = b->index;
	p->scorer = b->scorer;
	p->scorer.threshold = p->opt->threshold;
	p->codes = b->codes;
	p->longest = b->longest;
	p->team_rows = b->team_rows;
	for (uint32_t i = 0; i < p->threads; i++)
		p->space[i].chunk = b->chunk;
	p->tiny = b->tiny;
	p->by_input = b->by_input;
	if (p->half)
		p->half->kept = b->kept;
}

/* Spaces may have grown for other data, so calls are made in any case: that is a few stores. */
static void bind_to(Ctx *cx, Program *p, const Data *data)
{
	Bound *b = &p->bound[BOUND_NOW];

	online_settle(p);
	if (b->of == data) {
		bound_use(p, b);
	} else {
		bound_forget(b);
		make(cx, p, &b->arena, data);
		bound_note(p, data, b);
	}
	if (p->online && p->index == p->layout->index)
		calls_make(p);
}

static void cpu_bind(Ctx *cx, Program *p, const Data *data)
{
	forget_data(p);
	bind_to(cx, p, data);
}

static void cpu_turn(Ctx *cx, Program *p, const Data *data)
{
	if (p->bound[BOUND_NOW].of != data) {
		Bound before = p->bound[BOUND_NOW];
		p->bound[BOUND_NOW] = p->bound[BOUND_BEFORE];
		p->bound[BOUND_BEFORE] = before;
	}
	bind_to(cx, p, data);
}

/* ---- running ---- */

static Status cpu_accumulate(Program *p, const Batch *b, uint32_t first, uint32_t last, const volatile int *stop,
                             Tally *t)
{
	if (online_waits(p))
		batch_sum(p);
	if (online_takes(p, b)) {
		online_one(p, b, t);
		return MP_OK;
	}
	online_settle(p);
	return batch_learn(p, b, first, last, stop, t);
}

static Status cpu_share(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const volatile int *stop,
                        Share *out)
{
	if (online_waits(p))
		batch_sum(p);
	online_settle(p);
	return batch_share(p, b, first, last, learn, stop, out);
}

static void cpu_join(Program *p, float *into, const float *from, uint64_t floats)
{
	unsigned before = cpu_enter();

	p->kern->add(into, from, floats);
	cpu_leave(before);
}

static uint64_t cpu_floats(const Program *p) { return p->layout->room; }

static void cpu_shared(Program *p)
{
	p->has_pending = true;
	pending_seal(p);
}

static void cpu_apply(Program *p, const Update *u)
{
	if (online_waits(p))
		online_apply(p, u);
	else if (p->has_pending)
		update_apply(p, u);
	p->has_pending = false;
}

static Status cpu_evaluate(Program *p, uint64_t first, uint64_t count, const volatile int *stop, double *out, Tally *t)
{
	if (online_waits(p))
		batch_sum(p); /* its row is needed */
	online_settle(p);
	return batch_test(p, first, count, stop, out, t);
}

static uint64_t cpu_updates(Program *p, const Updates *s)
{
	if (p->has_pending || online_waits(p))
		return 0;
	if (!p->tiny)
		return online_updates(p, s);
	online_settle(p);
	return tiny_updates(p, p->tiny, s);
}

/* ---- guards ---- */

uint32_t cpu_regions(Program *p, Region *r)
{
	uint32_t n = 0;

	r[n++] = (Region){ "weights", p->w, p->layout->room * sizeof *p->w };
	r[n++] = (Region){ "transposed weights", p->copies, p->layout->copies * sizeof *p->copies };
	for (int k = 0; k < p->rule->states; k++)
		r[n++] = (Region){ p->rule->state[k], p->state[k], p->layout->room * sizeof *p->state[k] };
	r[n++] = (Region){ "row of zeros", p->zero, longest_row(p->layout) * sizeof *p->zero };
	if (p->half)
		r[n++] = (Region){ "rounded weights", p->half->w, p->half->room * sizeof *p->half->w };
	return n;
}

/* While somebody watches, no weights are late. */
static void cpu_watch(Program *p, Watch *w)
{
	if (online_waits(p))
		online_forget(p);
	online_settle(p);
	p->has_pending = false;
	p->watch = w;
}

static const Data *cpu_reads(const Program *p) { return p->data; }

static uint64_t cpu_seal(const Program *p, const void *at, uint64_t bytes) { return p->kern->seal(at, bytes, 0); }

const Target target_cpu = {
	.name = "cpu",
	.about = "this computer's vector units, single precision",
	.caps = cpu_caps,
	.compile = cpu_compile,
	.print = cpu_print,
	.bind = cpu_bind,
	.turn = cpu_turn,
	.accumulate = cpu_accumulate,
	.apply = cpu_apply,
	.evaluate = cpu_evaluate,
	.share = cpu_share,
	.join = cpu_join,
	.floats = cpu_floats,
	.shared = cpu_shared,
	.updates = cpu_updates,
	.restarts = cpu_restarts,
	.get = cpu_get,
	.set = cpu_set,
	.gradient = cpu_gradient,
	.finite = cpu_finite,
	.regions = cpu_regions,
	.watch = cpu_watch,
	.again = batch_again,
	.reads = cpu_reads,
	.seal = cpu_seal,
	.seals = true,
};
