/* SPDX-License-Identifier: MIT */
/* The workbench of the GF11: the public calls.  In: a routine as text, places, commands.  Out: words, text, SVG. */
#include <string.h>

#include "api.h"
#include "gf11_bench.h"
#include "microprop/gf11.h"

struct mp_gf11 {
	Ctx cx;
	WorkbenchSpec spec;
	Workbench *b; /* NULL: opening failed */
	Debug *debug;
	const Micro **issue; /* [issues] */
	uint32_t *cycle;     /* [issues] */
	uint32_t issues;
	mp_gf11_info info;
	mp_gf11_issue one;
	Buf text, source; /* of `one` */
};

typedef struct Call {
	mp_gf11 *g;
	const char *what, *text;
	const mp_gf11_options *opt;
	mp_write_fn *write;
	void *user;
	uint64_t count;
	uint32_t *into, *shape;
	const uint32_t *from;
} Call;

static const char *const *texts_keep(Ctx *cx, const char *const *text, size_t count)
{
	const char **kept = NEW(&cx->keep, count + 1, const char *);
	for (size_t i = 0; i < count; i++)
		kept[i] = arena_copy(&cx->keep, text[i], strlen(text[i]));
	return kept;
}

static void issues_list(mp_gf11 *g)
{
	const Routine *r = g->b->r;
	for (int pass = 0; pass < 2; pass++) {
		uint32_t n = 0;
		for (uint32_t t = 0; t < r->lines; t++)
			for (uint32_t unit = 0; unit < UNITS; unit++) {
				if (r->line[t].slot[unit].op == GOP_NONE)
					continue;
				if (pass) {
					g->issue[n] = &r->line[t].slot[unit];
					g->cycle[n] = t;
				}
				n++;
			}
		if (!pass) {
			g->issues = n;
			g->issue = NEW(&g->cx.keep, n + 1, const Micro *);
			g->cycle = NEW(&g->cx.keep, n + 1, uint32_t);
		}
	}
}

static void open_body(void *arg)
{
	Call *c = arg;
	mp_gf11 *g = c->g;
	Ctx *cx = &g->cx;
	mp_gf11_options o = { .size = sizeof o };
	if (c->opt && !api_take(&o, sizeof o, c->opt))
		fail(cx, MP_BAD_INPUT, "set mp_gf11_options.size to sizeof(mp_gf11_options)",
		     "these options are not of this version of the library");
	g->spec = (WorkbenchSpec){ .m = machine_open(cx, o.machine ? o.machine : "gf11"),
		                       .procs = o.processors,
		                       .threads = 1,
		                       .level = o.level < 0 ? 0
		                                : o.level   ? o.level
		                                            : 1,
		                       .zero = o.zero,
		                       .set = texts_keep(cx, o.set, o.sets),
		                       .base = texts_keep(cx, o.base, o.bases),
		                       .route = texts_keep(cx, o.route, o.routes),
		                       .sets = o.sets,
		                       .bases = o.bases,
		                       .routes = o.routes };
	Src *src = NEW(&cx->keep, 1, Src);
	if (c->text)
		*src = (Src){ .name = arena_copy(&cx->keep, c->what, strlen(c->what)),
			          .text = arena_copy(&cx->keep, c->text, strlen(c->text)),
			          .len = strlen(c->text) };
	Workbench *b = bench_open(cx, c->what, c->text ? src : NULL, &g->spec);
	g->debug = debug_new(b);
	g->b = b;
	g->text.arena = g->source.arena = &cx->keep;
	issues_list(g);
}

mp_status mp_gf11_open(mp_gf11 **routine, const char *what, const char *text, const mp_gf11_options *opt,
                       const mp_allocator *alloc)
{
	mp_status status = api_handle((void **)routine, sizeof **routine, alloc);
	if (status != MP_OK)
		return status;
	return api_call(&(*routine)->cx, open_body, &(Call){ .g = *routine, .what = what, .text = text, .opt = opt });
}

const char *mp_gf11_get_messages(const mp_gf11 *routine) { return api_messages(routine); }

const mp_error *mp_gf11_get_error(const mp_gf11 *routine, size_t i) { return api_error(routine, i); }

void mp_gf11_close(mp_gf11 *routine) { api_close(routine, sizeof *routine); }

/* Calls on a routine that could not be opened fail. */
static Workbench *bench_of(const Call *c)
{
	if (!c->g->b)
		fail(&c->g->cx, MP_BAD_INPUT, "look at the messages of mp_gf11_open", "there is no routine: opening it failed");
	return c->g->b;
}

const mp_gf11_info *mp_gf11_get_info(mp_gf11 *g)
{
	if (!g || !g->b)
		return NULL;
	const Report *p = &g->b->r->report;
	g->info = (mp_gf11_info){ .size = sizeof g->info,
		                      .name = g->b->r->name,
		                      .processors = g->b->w->p->procs,
		                      .lines = g->b->r->lines,
		                      .cycles = p->cycles,
		                      .operations = p->operations,
		                      .issues = g->issues,
		                      .bound = p->bound,
		                      .registers = p->registers,
		                      .spills = p->spills,
		                      .optimal = p->optimal,
		                      .cycle = bench_now(g->b),
		                      .ended = bench_ended(g->b) };
	return &g->info;
}

static void issue_body(void *arg)
{
	const Call *c = arg;
	mp_gf11 *g = c->g;
	const Micro *u = g->issue[c->count];
	const Code *code = g->b->r->code;
	bool known = code && u->rec < code->recs;
	g->text.len = g->source.len = 0;
	micro_print(u, &g->text);
	if (known)
		rec_print(code, u->rec, &g->source);
	uint32_t cycle = g->cycle[c->count];
	g->one = (mp_gf11_issue){ .size = sizeof g->one,
		                      .cycle = cycle,
		                      .done = cycle + (uint32_t)op_latency(g->b->m, u->op),
		                      .unit = ops[u->op].unit,
		                      .recorded = u->rec,
		                      .name = ops[u->op].name,
		                      .text = g->text.s,
		                      .source = known ? g->source.s : NULL };
}

const mp_gf11_issue *mp_gf11_get_issue(mp_gf11 *g, uint32_t i)
{
	if (!g || !g->b || i >= g->issues || api_call(&g->cx, issue_body, &(Call){ .g = g, .count = i }) != MP_OK)
		return NULL;
	return &g->one;
}

static void print_body(void *arg)
{
	const Call *c = arg;
	const Workbench *b = bench_of(c);
	Buf out = { .arena = &c->g->cx.scratch };
	if (strcmp(c->what, "microcode") == 0)
		microcode_print(b->m, b->r, &out);
	else if (strcmp(c->what, "operations") != 0)
		fail(&c->g->cx, MP_BAD_INPUT, "print microcode or operations", "a routine has no '%.40s'", c->what);
	else if (!b->r->code)
		fail(&c->g->cx, MP_BAD_INPUT, "open its operations instead", "%s was read as microcode", b->r->name);
	else
		operations_print(b->m, b->r->code, &out);
	c->write(c->user, out.s, out.len);
}

mp_status mp_gf11_print(mp_gf11 *g, const char *what, mp_write_fn *write, void *user)
{
	return api_call(&g->cx, print_body, &(Call){ .g = g, .what = what, .write = write, .user = user });
}

static void draw_body(void *arg)
{
	const Call *c = arg;
	const Workbench *b = bench_of(c);
	Buf out = { .arena = &c->g->cx.scratch };
	if (strcmp(c->what, "schedule") == 0 || strcmp(c->what, "dependences") == 0)
		schedule_svg(&c->g->cx, b->m, b->r, c->what[0] == 'd', &out);
	else if (strcmp(c->what, "pipeline") == 0)
		pipeline_svg(&c->g->cx, b->m, b->r, &out);
	else
		fail(&c->g->cx, MP_BAD_INPUT, "draw schedule, dependences or pipeline", "there is no drawing '%.40s'", c->what);
	c->write(c->user, out.s, out.len);
}

mp_status mp_gf11_draw(mp_gf11 *g, const char *what, mp_write_fn *write, void *user)
{
	return api_call(&g->cx, draw_body, &(Call){ .g = g, .what = what, .write = write, .user = user });
}

static void run_body(void *arg)
{
	const Call *c = arg;
	Workbench *b = bench_of(c);
	for (uint64_t i = 0; (!c->count || i < c->count) && !bench_ended(b); i++)
		bench_step(b);
}

mp_status mp_gf11_run(mp_gf11 *g, uint64_t cycles)
{
	return api_call(&g->cx, run_body, &(Call){ .g = g, .count = cycles });
}

static void restart_body(void *arg)
{
	const Call *c = arg;
	bench_of(c);
	debug_restart(c->g->debug);
}

mp_status mp_gf11_restart(mp_gf11 *g) { return api_call(&g->cx, restart_body, &(Call){ .g = g }); }

static void read_body(void *arg)
{
	const Call *c = arg;
	const Workbench *b = bench_of(c);
	Place p = place_read(&c->g->cx, b->m, b->w->p->procs, "place", c->what);
	uint32_t first = bench_address(b, &p);
	c->shape[0] = p.procs;
	c->shape[1] = p.count;
	for (uint32_t proc = 0; proc < p.procs && c->into; proc++)
		for (uint32_t i = 0; i < p.count; i++)
			c->into[(size_t)proc * p.count + i] = bench_word(b, p.memory, first + i, p.proc + proc);
}

mp_status mp_gf11_read(mp_gf11 *g, const char *place, uint32_t *words, uint32_t shape[2])
{
	return api_call(&g->cx, read_body, &(Call){ .g = g, .what = place, .into = words, .shape = shape });
}

static void write_body(void *arg)
{
	const Call *c = arg;
	Workbench *b = bench_of(c);
	Place p = place_read(&c->g->cx, b->m, b->w->p->procs, "place", c->what);
	uint32_t first = bench_address(b, &p);
	uint64_t all = (uint64_t)p.procs * p.count;
	if (c->count != p.count && c->count != all)
		fail(&c->g->cx, MP_BAD_INPUT, "give as many values as words, or as words times processors",
		     "the place has %u words of %u processors, and these are %llu values", p.count, p.procs,
		     (unsigned long long)c->count);
	for (uint32_t proc = 0; proc < p.procs; proc++)
		for (uint32_t i = 0; i < p.count; i++)
			bench_put(b, p.memory, first + i, p.proc + proc,
			          c->from[(c->count == all ? (size_t)proc * p.count : 0) + i]);
}

mp_status mp_gf11_write(mp_gf11 *g, const char *place, const uint32_t *words, uint64_t count)
{
	return api_call(&g->cx, write_body, &(Call){ .g = g, .what = place, .from = words, .count = count });
}

static void debug_body(void *arg)
{
	const Call *c = arg;
	bench_of(c);
	Buf out = { .arena = &c->g->cx.scratch };
	debug_command(c->g->debug, c->what, &out);
	if (out.len)
		c->write(c->user, out.s, out.len);
}

mp_status mp_gf11_debug(mp_gf11 *g, const char *command, mp_write_fn *write, void *user)
{
	return api_call(&g->cx, debug_body, &(Call){ .g = g, .what = command, .write = write, .user = user });
}
