/* SPDX-License-Identifier: MIT */
/* Routines against plain C, bit for bit: executed directly by the simulator; and recorded, scheduled, checked and
 * executed, fast with one and two threads, and cycle by cycle. Every row of the library has a model here that works
 * on the memory of one processor. Also the errors of the approximations. */
#include "test.h"

#include <math.h>

#include "gf11_sim.h"

enum { FEW = 6, PROCS = 70, SPACE = 2304, SRAM_AT = TABLE_WORDS, DRAM_AT = 4096 };

/* What the processors hold from the two base addresses on. */
typedef struct World {
	Cell sram[PROCS][SPACE], dram[PROCS][SPACE];
} World;

static Cell tables[TABLE_WORDS];

/* ---- models: the same operations in the same order ---- */

static float cut(float x, float low, float high)
{
	float y = high < x ? high : x;
	return x < low ? low : y;
}

static float model_sigmoid(float x)
{
	float place = cut(x, -15, 15) * 8.5f + 127.5f;
	int i = place == place ? (int)place : 0;
	return tables[TABLE_SIGMOID + i].f + (place - floorf(place)) * tables[TABLE_RISE + i].f;
}

static bool no_tables; /* the machine has fixed-address 1 */

static float model_reciprocal(float value)
{
	Cell x = { .f = value }, r;
	if (no_tables) {
		r.u = 0x7ef311c7u - x.u;
		r.f = r.f * (0x1.fffffcp0f - x.f * r.f);
	} else {
		r.u = tables[TABLE_RECIPROCAL + (x.u >> 16 & 127)].u - (x.u & 0xff800000u);
	}
	r.f = r.f * (0x1.fffffcp0f - x.f * r.f);
	return r.f + r.f * (1 - x.f * r.f);
}

static float model_sigmoid2(float x)
{
	static const float c[] = { 0x1.62e430p-1f, 0x1.ebfb52p-3f, 0x1.c6d414p-5f, 0x1.3817fcp-7f, 0x1.945094p-10f };
	float y = cut(-x, -126, 125), whole = floorf(y), h = (y - whole) * 0.5f, root = c[4];
	for (int i = 3; i >= 0; i--)
		root = root * h + c[i];
	root = root * h + 1;
	int i = y == y ? (int)(whole + 126) : 0;
	/* powers of two are the same however made */
	return model_reciprocal(1 + tables[TABLE_POWER + i].f * (root * root));
}

static void do_sigmoid(Cell *s, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		s[size[0] + i].f = model_sigmoid(s[i].f);
}

static void do_sigmoid2(Cell *s, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		s[size[0] + i].f = model_sigmoid2(s[i].f);
}

static void do_reciprocal(Cell *s, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		s[size[0] + i].f = model_reciprocal(s[i].f);
}

static void do_polynomial(Cell *s, const uint32_t *size)
{
	const Cell *x = s + size[0] + 1;
	for (uint32_t i = 0; i < size[1]; i++) {
		float sum = s[size[0]].f;
		for (int k = (int)size[0] - 1; k >= 0; k--)
			sum = sum * x[i].f + s[k].f;
		s[size[0] + 1 + size[1] + i].f = sum;
	}
}

static float model_sum(const float *v, uint32_t n)
{
	uint32_t left = (n + 1) / 2;
	return n == 1 ? v[0] : model_sum(v, left) + model_sum(v + left, n - left);
}

static void do_dot(Cell *s, const uint32_t *size)
{
	float product[256] = { 0 };
	for (uint32_t i = 0; i < size[0]; i++)
		product[i] = s[i].f * s[size[0] + i].f;
	s[2 * size[0]].f = model_sum(product, size[0]);
}

static void do_vector_sum(Cell *s, const uint32_t *size)
{
	float v[256];
	for (uint32_t i = 0; i < size[0]; i++)
		v[i] = s[i].f;
	s[size[0]].f = model_sum(v, size[0]);
}

static void do_vector_add(Cell *s, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		s[2 * size[0] + i].f = s[i].f + s[size[0] + i].f;
}

static void do_matrix_vector(Cell *s, const uint32_t *size)
{
	uint32_t n = size[0];
	for (uint32_t row = 0; row < n; row++) {
		float sum = s[row * n].f * s[n * n].f;
		for (uint32_t column = 1; column < n; column++)
			sum += s[row * n + column].f * s[n * n + column].f;
		s[n * n + n + row].f = sum;
	}
}

static void do_look_up(Cell *s, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		s[size[0] + size[1] + i] = s[size[0] + s[i].u];
}

static void do_scatter(Cell *s, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++)
		s[2 * size[0] + s[i].u] = s[size[0] + i];
}

static void do_forward(Cell *s, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Cell *net = s + sources, *weight = net + units;
	for (uint32_t k = 0; k < sources; k++)
		for (uint32_t u = 0; u < units; u++)
			net[u].f += weight[k * units + u].f * s[k].f;
}

static void do_backward(Cell *s, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Cell *error = s + sources, *back = error + units, *weight = back + sources, *change = weight + sources * units;
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t k = 0; k < sources; k++) {
			back[k].f += weight[k * units + u].f * error[u].f;
			change[k * units + u].f += error[u].f * s[k].f;
		}
}

static void do_backward_input(Cell *s, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Cell *error = s + sources, *change = error + units;
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t k = 0; k < sources; k++)
			change[k * units + u].f += error[u].f * s[k].f;
}

static void do_forward_first(Cell *s, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Cell *net = s + sources, *weight = net + units;
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t k = 0; k < sources; k++)
			net[u].f += weight[k * units + u].f * s[k].f;
}

/* Those that see more than the SRAM of one processor. */
static void do_forward_uncached(World *w, uint32_t p, const uint32_t *size)
{
	uint32_t links = size[0] * size[1];
	memcpy(w->sram[p] + size[0] + size[1], w->dram[p], links * sizeof(Cell));
	do_forward(w->sram[p], size);
}

static void do_backward_uncached(World *w, uint32_t p, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1], links = sources * units;
	Cell *s = w->sram[p], *error = s + sources, *back = error + units, *weight = back + sources,
		 *change = weight + links;
	memcpy(weight, w->dram[p], 2 * links * sizeof(Cell));
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t k = 0; k < sources; k++) {
			back[k].f += weight[u * sources + k].f * error[u].f;
			change[u * sources + k].f += error[u].f * s[k].f;
		}
	memcpy(w->dram[p] + links, change, links * sizeof(Cell));
}

static void do_block_move(World *w, uint32_t p, const uint32_t *size)
{
	memcpy(w->sram[p], w->dram[p], size[0] * sizeof(Cell));
	memcpy(w->dram[p] + size[0], w->sram[p] + size[0], size[0] * sizeof(Cell));
}

static void do_exchange(World *w, uint32_t p, const uint32_t *size)
{
	if (p & 1) /* both partners at once */
		return;
	Cell *a = w->sram[p], *b = w->sram[p + 1];
	for (uint32_t i = 1; i <= size[0]; i++) {
		Cell one = a[i], other = b[i];
		a[i] = a[0].i > 0 ? other : one;
		b[i] = b[0].i > 0 ? one : other;
	}
}

/* ---- what the processors hold before ---- */

/* Splitmix64: the library's own generator takes longer than all the rest here. */
static Cell random_word(uint64_t index)
{
	uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (Cell){ .u = (uint32_t)(z >> 32) };
}

static float random_real(uint64_t index, float low, float high)
{
	return low + (high - low) * 0x1p-32f * (float)random_word(index).u;
}

static void fill_reals(Cell *s, uint64_t from, const uint32_t *size)
{
	(void)size;
	for (uint32_t i = 0; i < SPACE; i++)
		s[i].f = random_real(from + i, -2, 2);
}

static void fill_nets(Cell *s, uint64_t from, const uint32_t *size)
{
	static const float special[] = {
		0,   -0.0f, 15,  -15,  0x1.dffffep3f, -0x1.dffffep3f, 1e30f, -1e30f, INFINITY, -INFINITY,
		125, -125,  126, -126, 0x1p-149f,     -1e-9f,         1,     -1,     NAN,
	};
	for (uint32_t i = 0; i < SPACE; i++)
		s[i].f = random_real(from + i, -20, 20);
	for (uint32_t i = 0; i < COUNT(special) && i < size[0]; i++)
		s[i].f = special[i];
}

static void fill_normal(Cell *s, uint64_t from, const uint32_t *size)
{
	(void)size;
	for (uint32_t i = 0; i < SPACE; i++) { /* exponents 1 .. 252 */
		Cell w = random_word(from + i);
		s[i].u = (w.u & 0x807fffffu) | (1 + w.u % 252) << 23;
	}
	s[0].f = 0x1p-126f;
	s[1].f = -0x1.fffffep125f;
	s[2].f = 1;
	s[3].f = 0x1.fffffep0f;
}

static void fill_indices(Cell *s, uint64_t from, const uint32_t *size)
{
	for (uint32_t i = 0; i < SPACE; i++) {
		s[i] = random_word(from + i);
		if (i < size[0])
			s[i].u %= size[1];
	}
}

static void fill_mask(Cell *s, uint64_t from, const uint32_t *size)
{
	fill_reals(s, from, size);
	s[0].i = (int32_t)(random_word(from).u % 3) - 1;
}

static const struct {
	const char *name;
	void (*fill)(Cell *s, uint64_t from, const uint32_t *size);
	void (*own)(Cell *s, const uint32_t *size); /* of one processor alone, or */
	void (*all)(World *w, uint32_t p, const uint32_t *size);
} models[] = {
	{ "forward", fill_reals, do_forward, NULL },
	{ "backward", fill_reals, do_backward, NULL },
	{ "backward-input", fill_reals, do_backward_input, NULL },
	{ "sigmoid-table", fill_nets, do_sigmoid, NULL },
	{ "sigmoid-powers", fill_nets, do_sigmoid2, NULL },
	{ "reciprocal", fill_normal, do_reciprocal, NULL },
	{ "polynomial", fill_reals, do_polynomial, NULL },
	{ "dot", fill_reals, do_dot, NULL },
	{ "matrix-vector", fill_reals, do_matrix_vector, NULL },
	{ "vector-add", fill_reals, do_vector_add, NULL },
	{ "vector-sum", fill_reals, do_vector_sum, NULL },
	{ "look-up", fill_indices, do_look_up, NULL },
	{ "scatter", fill_indices, do_scatter, NULL },
	{ "block-move", fill_reals, NULL, do_block_move },
	{ "exchange", fill_mask, NULL, do_exchange },
	{ "forward-uncached", fill_reals, NULL, do_forward_uncached },
	{ "backward-uncached", fill_reals, NULL, do_backward_uncached },
	{ "forward-first", fill_reals, do_forward_first, NULL },
	{ "backward-first", fill_reals, do_backward, NULL },
};

/* ---- the ways to run a routine ---- */

static World before, after, found;

static void world_fill(size_t model, const uint32_t *size)
{
	for (uint32_t p = 0; p < PROCS; p++) {
		models[model].fill(before.sram[p], (uint64_t)p << 20, size);
		fill_reals(before.dram[p], (uint64_t)p << 20 | 1 << 16, size);
	}
	after = before;
	for (uint32_t p = 0; p < PROCS; p++) {
		if (models[model].own)
			models[model].own(after.sram[p], size);
		else
			models[model].all(&after, p, size);
	}
}

static void world_put(Processors *p)
{
	for (uint32_t i = 0; i < p->procs; i++) {
		for (uint32_t w = 0; w < TABLE_WORDS; w++)
			p->sram[(size_t)w * p->lanes + i] = tables[w].u;
		for (uint32_t w = 0; w < SPACE; w++) {
			p->sram[(size_t)(SRAM_AT + w) * p->lanes + i] = before.sram[i][w].u;
			p->dram[(size_t)(DRAM_AT + w) * p->lanes + i] = before.dram[i][w].u;
		}
	}
}

static void world_get(const Processors *p)
{
	for (uint32_t i = 0; i < p->procs; i++)
		for (uint32_t w = 0; w < SPACE; w++) {
			found.sram[i][w].u = p->sram[(size_t)(SRAM_AT + w) * p->lanes + i];
			found.dram[i][w].u = p->dram[(size_t)(DRAM_AT + w) * p->lanes + i];
		}
}

static bool same(Cell a, Cell b)
{
	return a.u == b.u || (isnan(a.f) && isnan(b.f)); /* C does not specify the bits of a NaN */
}

static void world_compare(const Processors *p, const char *name, const char *way)
{
	for (uint32_t i = 0; i < p->procs; i++)
		for (uint32_t w = 0; w < SPACE; w++) {
			if (same(found.sram[i][w], after.sram[i][w]) && same(found.dram[i][w], after.dram[i][w]))
				continue;
			print_error("%s, %s: word %u of processor %u: SRAM %08x, should be %08x; DRAM %08x, should be %08x\n", name,
			            way, w, i, found.sram[i][w].u, after.sram[i][w].u, found.dram[i][w].u, after.dram[i][w].u);
			assert_true(false);
		}
}

/* Processors: a few for the slow ways, more than a block of them with one thread and with two. */
typedef struct Bench {
	Ctx *cx;
	const Machine *m;
	Processors *few, *one, *two;
} Bench;

static void bench_open(Ctx *cx, Bench *b)
{
	*b = (Bench){ .cx = cx, .m = machine_open(cx, "gf11") };
	Switch *sw = switch_new(cx, b->m);
	uint16_t *to = NEW(&cx->keep, sw->ports, uint16_t);
	for (uint32_t i = 0; i < sw->ports; i++)
		to[i] = (uint16_t)(i < PROCS ? i ^ 1 : NO_ROUTE);
	assert_int_equal(switch_store(cx, sw, to), 0);
	b->few = processors_new(cx, b->m, sw, FEW, 1);
	b->one = processors_new(cx, b->m, sw, PROCS, 1);
	b->two = processors_new(cx, b->m, sw, PROCS, 2);
}

static void run_simulated(Bench *b, const RoutineDef *def)
{
	uint32_t *base = NEW(&b->cx->scratch, (size_t)b->m->relocations, uint32_t);
	base[BASE_SRAM] = SRAM_AT;
	base[BASE_DRAM] = DRAM_AT;
	world_put(b->few);
	Gen *g = gen_simulate(b->cx, b->few, base);
	def->make(g, def->size);
	assert_null(gen_end(g));
	world_get(b->few);
	world_compare(b->few, def->name, "simulated");
}

static void event_count(void *user, const TraceEvent *e)
{
	uint32_t *count = user;
	(void)e;
	++*count;
}

/* How near to the lower bound the schedules that count have to come, in percent. */
static const struct {
	const char *name;
	double least;
} efficiencies[] = {
	{ "forward", 98 },
	{ "backward", 97 },
	{ "sigmoid-table", 90 },
};

static void check_report(const Report *r, const char *name)
{
	double percent = 100.0 * r->bound / r->cycles;
	for (size_t i = 0; i < COUNT(efficiencies); i++)
		if (strcmp(name, efficiencies[i].name) == 0)
			assert_true(percent >= efficiencies[i].least);
	assert_true(percent <= 100);
	assert_int_equal(r->spills, 0);
}

static void run_called(Bench *b, Processors *p, const Routine *r, bool traced, const char *way)
{
	uint32_t events = 0;
	Controller *c = controller_new(b->cx, p);
	c->traced = traced;
	c->trace = event_count;
	c->trace_user = &events;
	controller_base(c, BASE_SRAM, SRAM_AT);
	controller_base(c, BASE_DRAM, DRAM_AT);
	uint32_t number = controller_load(c, r);
	world_put(p);
	controller_call(c, number);
	world_get(p);
	world_compare(p, r->name, way);
	assert_int_equal(c->account.cycles, r->report.cycles);
	assert_int_equal(events, traced ? r->report.operations : 0);
}

static void run_scheduled(Bench *b, const RoutineDef *def)
{
	const ScheduleOptions options = { .level = 0 };
	Routine *r = schedule(b->cx, b->m, routine_record(b->cx, b->m, def), &options);
	const char *fault = check_routine(b->cx, b->m, r);
	if (fault)
		print_error("%s: %s\n", def->name, fault);
	assert_null(fault);
	check_report(&r->report, def->name);
	run_called(b, b->one, r, false, "one thread");
	run_called(b, b->two, r, false, "two threads");
	run_called(b, b->few, r, true, "traced");
}

static void each_routine(Ctx *cx, void *run)
{
	Bench b;
	bench_open(cx, &b);
	assert_int_equal(COUNT(models), routine_def_count);
	for (size_t i = 0; i < COUNT(models); i++) {
		const RoutineDef *def = routine_find(models[i].name);
		assert_non_null(def);
		world_fill(i, def->size);
		(*(void (**)(Bench *, const RoutineDef *))run)(&b, def);
	}
}

static void run_all(void (*run)(Bench *, const RoutineDef *))
{
	Ctx cx;
	ctx_init(&cx, NULL);
	tables_fill(tables);
	Status status = guarded(&cx, each_routine, &run);
	if (status)
		print_error("%s\n", ctx_messages(&cx));
	assert_int_equal(status, MP_OK);
	ctx_free(&cx);
}

static void test_simulated(void **state)
{
	(void)state;
	run_all(run_simulated);
}

static void test_scheduled(void **state)
{
	(void)state;
	run_all(run_scheduled);
}

/* ---- how good they are ---- */

static void test_tables(void **state)
{
	(void)state;
	tables_fill(tables);
	for (int i = 0; i < 256; i++) {
		double exact = 1 / (1 + exp(-(-15 + i * 30.0 / 255)));
		assert_true(fabs(tables[TABLE_SIGMOID + i].f / exact - 1) < 0x1p-23);
		assert_true(i == 255
		                ? tables[TABLE_RISE + i].u == 0
		                : tables[TABLE_RISE + i].f == tables[TABLE_SIGMOID + i + 1].f - tables[TABLE_SIGMOID + i].f);
	}
	for (int i = 0; i < 252; i++)
		assert_true(tables[TABLE_POWER + i].f == exp2(i - 126));
}

static void test_sigmoid_accuracy(void **state)
{
	(void)state;
	enum { STEPS = 300000 };
	double worst = 0, total = 0;
	tables_fill(tables);
	for (int i = 0; i <= STEPS; i++) {
		double x = -15 + i * (30.0 / STEPS), off = fabs(model_sigmoid((float)x) - unit_fns[FN_SIGMOID].value((float)x));
		worst = fmax(worst, off);
		total += off;
	}
	assert_true(worst <= 1.7e-4 && worst > 1.6e-4);
	assert_true(total / (STEPS + 1) <= 2e-5);
	for (float x = 15; x < 1e38f; x *= 3) { /* and outside */
		assert_true(fabs(model_sigmoid(x) - 1) < 1e-6);
		assert_true(fabs(model_sigmoid(-x)) < 1e-6);
	}
}

static void test_reciprocal_accuracy(void **state)
{
	(void)state;
	tables_fill(tables);
	for (uint32_t i = 0; i < 1u << 23; i += 37) {
		Cell x = { .u = 0x3f800000u | i };
		double exact = 1.0 / x.f, unit = x.f == 1 ? 0x1p-23 : 0x1p-24;
		assert_true(fabs(model_reciprocal(x.f) - exact) < unit);
	}
	assert_true(model_reciprocal(1) == 1 && model_reciprocal(-4) == -0.25f);
	assert_true(isnan(model_reciprocal(NAN)));
}

/* The machine's 1 / (1 + 2^-x) and the unit function that networks use on other targets. */
static void test_sigmoid2_accuracy(void **state)
{
	(void)state;
	tables_fill(tables);
	for (int i = -120000; i <= 120000; i += 7) {
		float x = (float)i * 1e-3f;
		double exact = unit_fns[FN_SIGMOID2].value(x);
		assert_true(fabs(model_sigmoid2(x) / exact - 1) < 3.5e-7);
	}
	assert_true(model_sigmoid2(0) == 0.5f && model_sigmoid2(INFINITY) == 1 && model_sigmoid2(-INFINITY) < 1e-37f);
}

/* Without look-up it is as good, and so is what rests on it. */
static void test_fixed_accuracy(void **state)
{
	no_tables = true;
	test_reciprocal_accuracy(state);
	test_sigmoid2_accuracy(state);
	no_tables = false;
}

/* Look-up is refused where it is recorded, and by the checker; what is left has the bits of the model. */
static void fixed_body(Ctx *cx, void *arg)
{
	static const char *const computed[] = { "sigmoid-powers", "reciprocal" };
	Bench b;
	(void)arg;
	bench_open(cx, &b);
	Machine *m = NEW(&cx->keep, 1, Machine);
	*m = *b.m;
	Routine *r = schedule(cx, b.m, routine_record(cx, b.m, routine_find("scatter")), &(ScheduleOptions){ .level = 0 });
	m->fixed_address = 1;
	assert_non_null(strstr(check_routine(cx, m, r), "no indexed addressing"));
	b.m = m;
	b.few->m = b.one->m = b.two->m = m;
	for (size_t i = 0; i < COUNT(models); i++) {
		for (size_t k = 0; k < COUNT(computed); k++) {
			if (strcmp(models[i].name, computed[k]) != 0)
				continue;
			world_fill(i, routine_find(computed[k])->size);
			run_simulated(&b, routine_find(computed[k]));
			run_scheduled(&b, routine_find(computed[k]));
		}
	}
	routine_record(cx, m, routine_find("sigmoid-table"));
}

static void test_fixed(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	tables_fill(tables);
	no_tables = true;
	assert_int_equal(guarded(&cx, fixed_body, NULL), MP_BAD_INPUT);
	no_tables = false;
	const char *said = ctx_messages(&cx);
	if (!strstr(said, "sigmoid-table: lookup needs indexed addressing"))
		print_error("%s\n", said);
	assert_non_null(strstr(said, "sigmoid-table: lookup needs indexed addressing"));
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_sigmoid_accuracy),
		cmocka_unit_test(test_reciprocal_accuracy),
		cmocka_unit_test(test_sigmoid2_accuracy),
		cmocka_unit_test(test_fixed_accuracy),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_simulated),
		cmocka_unit_test(test_scheduled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
