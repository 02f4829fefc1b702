/* SPDX-License-Identifier: MIT */
/* Kernels for the network at hand. In: the steps of bound data, the work. Out: a kernel of emit/, loaded once for each
 * shape of work. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "emit.h"

enum { MOST_LEAVES = 512 }; /* of a test: their tallies are joined by instructions */

/* What a kernel was made for. */
typedef struct Made {
	uint32_t mode, teams, team_blocks, kinds, leaves[2], leaf_rows, batch_rows;
} Made;
typedef struct Generated Generated;
struct Generated {
	Generated *next;
	Made made;
	GpuKernel kernel;
	uint64_t exchange;
	bool tiled;      /* all blocks are one team */
	const char *why; /* NULL: there is a kernel */
};

static Made made_for(const Cuda *c, const Work *w)
{
	Made m = { .mode = w->mode, .teams = c->teams, .team_blocks = c->team_blocks };

	m.batch_rows = (uint32_t)min_u64(min_u64(w->batch, w->examples) * c->now->longest, UINT32_MAX / 2);
	uint64_t count[2] = { min_u64(w->batch, w->examples), w->examples % w->batch };

	for (int i = 0; i < 2; i++) {
		uint32_t leaves = count[i] ? leaf_count(count[i]) : 0;
		if (!leaves)
			continue;
		m.leaf_rows = max_u32(m.leaf_rows, (uint32_t)ceil_div(count[i], leaves));
		if (c->now->longest > 1) /* examples of several cases */
			m.leaf_rows = LEAF_EXAMPLES;
		if (!m.kinds || leaves != m.leaves[0])
			m.leaves[m.kinds++] = leaves;
	}
	return m;
}

void text_dump(Cuda *c, const Buf *text, const char *why)
{
	const char *name = getenv("MICROPROP_CUDA_DUMP");

	if (!name)
		return;
	OutFile *f = file_create(c->cx, &c->temp, name);
	if (why)
		file_write(f, why, strlen(why));
	else
		file_write(f, text->s, text->len);
	file_commit(c->cx, f);
}

static void generate(Cuda *c, const Job *j, Generated *g)
{
	const DeviceBound *b = c->now;
	bool test = g->made.mode == JOB_TEST;
	Buf text = { .arena = &c->temp };
	EmitSource s = {
		.cx = c->cx,
		.job = j,
		.list = test ? &b->test : &b->learn,
		.step = test ? b->test_step : b->learn_step,
		.test = test,
		.panel = c->panel,
		.factor = c->factor,
		.formula = &c->formula,
		.input = c->input,
		.ones = c->ones,
		.one_columns = j->one_columns,
		.kinds_of_leaves = g->made.kinds,
		.leaves = { g->made.leaves[0], g->made.leaves[1] },
		.teams = g->made.teams,
		.team_blocks = g->made.team_blocks,
		.leaf_rows = g->made.leaf_rows,
		.batch_rows = g->made.batch_rows,
		.list_longest = b->list_longest,
		.code_longest = b->code_longest,
		.code_twice = b->code_twice,
		.threads = c->gpu->emit_threads,
		.shared = c->gpu->emit_shared,
		.copies = (uint32_t)c->copy_floats,
	};

	if (g->made.leaves[0] > (test ? MOST_LEAVES : j->sums) || g->made.leaf_rows > j->row_capacity)
		g->why = "leaves in several parts";
	else
		g->why = kernel_text(&s, &c->temp, &text, &g->kernel.shared, &g->exchange);
	if (g->why && !test &&
	    g->made.batch_rows <= (uint64_t)c->row_teams * j->row_capacity) { /* all blocks are one team */
		s.tiled = true;
		s.teams = 1;
		s.team_blocks = c->gpu->blocks;
		g->why = kernel_text(&s, &c->temp, &text, &g->kernel.shared, &g->exchange);
		g->tiled = !g->why;
	}
	text_dump(c, &text, g->why);
	if (g->why)
		return;
	g->kernel.threads = s.threads;
	gpu_load(&c->now->memory, text.s, text.len, &g->kernel);
}

static Generated *find(Cuda *c, const Job *j, const Made *m)
{
	for (Generated *g = c->now->generated; g; g = g->next)
		if (memcmp(&g->made, m, sizeof *m) == 0)
			return g;
	Generated *g = NEW(&c->now->memory.arena, 1, Generated);
	g->made = *m;
	g->next = c->now->generated;
	c->now->generated = g;
	generate(c, j, g);
	return g;
}

/* A leaf has more rows than fit, where examples have several cases. */
static bool leaf_divided(const Schedule *s)
{
	for (uint64_t i = 0; i < s->leaves; i++)
		if (s->leaf[i].chunks > 1)
			return true;
	return false;
}

const GpuKernel *generated_kernel(Cuda *c, const Work *w, Job *j)
{
	bool watches = (w->mode == JOB_TEST && w->out && c->watched.count) || w->leaf_end; /* or some leaves only */

	if ((w->mode != JOB_UPDATE && w->mode != JOB_TEST) || watches || getenv("MICROPROP_CUDA_OLD") ||
	    leaf_divided(&c->schedule))
		return NULL;
	Made m = made_for(c, w);
	const Generated *g = find(c, j, &m);
	uint64_t bytes = g->exchange * m.teams;

	if (g->why)
		return NULL;
	if (bytes > c->exchange_cap) {
		c->exchange_cap = bytes;
		c->job.exchange = device_alloc(&c->calls, bytes);
	}
	if (g->tiled) {
		c->teams = j->teams = 1;
		c->team_blocks = j->team_blocks = c->gpu->blocks;
	}
	j->exchange = c->job.exchange;
	return &g->kernel;
}
