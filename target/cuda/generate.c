/* SPDX-License-Identifier: MIT */
/* Kernels for the network at hand. In: the steps of bound data, the work. Out: a kernel of emit/, loaded once for each
 * shape of work. */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "columns.h"
#include "cuda.h"

enum { MOST_LEAVES = 512 }; /* of a test: their tallies are joined by instructions */

/* What a kernel was made for. */
typedef struct Made {
	uint32_t mode, teams, team_blocks, kinds, leaves[2], slice[2], leaf_rows, batch_rows, solo;
	uint32_t images;  /* lists by input of all leaves are made before */
	uint32_t general; /* no other kernel can do it: some units are watched, leaves have several chunks */
} Made;
typedef struct CachedKernel CachedKernel;
struct CachedKernel {
	CachedKernel *next;
	Made made;
	GpuKernel kernel, images; /* images: makes lists by input, if the other needs them */
	uint64_t exchange, posted;
	uint32_t image;    /* bytes of a leaf */
	bool tiled;        /* all blocks are one team */
	bool columns;      /* as columns.h has it */
	bool refused;      /* there is no kernel */
	XXH64_hash_t hash; /* of the text */
};

/* A leaf has more rows than fit, where examples have several cases. */
static bool leaf_divided(const Schedule *s)
{
	const DeviceLeaf *leaf = s->leaf.at;

	for (uint64_t i = 0; i < s->leaf.count; i++)
		if (leaf[i].chunks > 1)
			return true;
	return false;
}

static Made made_for(const Cuda *c, const Work *w)
{
	Made m = { .mode = w->mode, .teams = c->teams, .team_blocks = c->team_blocks, .solo = w->networks != NULL };

	m.batch_rows = (uint32_t)min_u64(min_u64(w->batch, w->examples) * c->bound->longest, UINT32_MAX / 2);
	uint64_t count[2] = { min_u64(w->batch, w->examples), w->examples % w->batch };

	m.images = w->mode != JOB_TEST && w->mode != JOB_APPLY && c->bound->csr.has_padded && !c->half &&
	           c->schedule->leaf.count > (w->networks ? 1 : m.teams) && !(w->networks && w->networks->cases);
	m.general =
		w->mode == JOB_APPLY || (w->mode == JOB_TEST && w->out && c->watch.units.count) || leaf_divided(c->schedule);

	for (int i = 0; i < 2; i++) {
		uint32_t leaves = count[i] ? leaf_count(count[i]) : 0;
		if (!leaves)
			continue;
		m.leaf_rows = max_u32(m.leaf_rows, (uint32_t)ceil_div(count[i], leaves));
		if (c->bound->longest > 1) /* examples of several cases */
			m.leaf_rows = LEAF_EXAMPLES;
		uint32_t slice = c->half ? half_slice_rows(leaves) : 0;
		if (w->leaf_end)
			leaves = w->leaf_end - w->leaf_first;
		if (!m.kinds || leaves != m.leaves[0]) {
			m.slice[m.kinds] = slice;
			m.leaves[m.kinds++] = leaves;
		}
	}
	return m;
}

void text_dump(Cuda *c, const Buf *text, const char *why)
{
	const char *name = getenv("MICROPROP_CUDA_DUMP");

	if (!name || !*name || is_folder(name)) /* of a folder, each text is kept when it is loaded */
		return;
	OutFile *f = file_create(c->cx, &c->temp, name);
	if (why) {
		file_write(f, "// general: ", 12);
		file_write(f, why, strlen(why));
		file_write(f, "\n", 1);
	}
	file_write(f, text->s, text->len);
	file_commit(c->cx, f);
}

/* Loads the text, if no kernel of this data has it already: works differ in numbers that not all texts depend on. */
static void text_load(Cuda *c, CachedKernel *g, const Buf *text)
{
	uint32_t shared = g->kernel.shared;

	g->hash = XXH3_64bits(text->s, text->len);
	for (const CachedKernel *o = g->next; o; o = o->next)
		if (o->hash == g->hash && o->kernel.shared == shared && o->kernel.cluster == g->kernel.cluster) {
			g->kernel = o->kernel;
			g->images = o->images;
			return;
		}
	gpu_load(&c->bound->memory, text->s, text->len, &g->kernel);
}

/* The kernel that makes the lists that the other needs. */
static void images_load(Cuda *c, const EmitSource *of, CachedKernel *g)
{
	EmitSource s = *of;
	Buf text = { .arena = &c->temp };
	uint64_t exchange, posted;
	uint32_t image;

	if (!g->image || g->images.function)
		return;
	s.makes_images = true;
	s.cluster = 0;
	kernel_text(&s, &c->temp, &text, &g->images.shared, &exchange, &posted, &image);
	g->images.threads = s.threads;
	gpu_load(&c->bound->memory, text.s, text.len, &g->images);
}

/* The kernel with columns of hidden units in each block, and the one that makes lists by input for it. */
static const char *columns_generate(Cuda *c, const EmitSource *of, CachedKernel *g, Buf *text)
{
	EmitSource s = *of, lists = *of;
	Buf image = { .arena = &c->temp };
	ColumnsShape shape;
	uint32_t shared;
	uint64_t exchange, posted;

	s.images = lists.images = lists.makes_images = true;
	lists.cluster = 0;
	if (!s.cluster || (!c->bound->csr.has_padded && !s.half))
		return "no cluster, or no index lists";
	const char *why = s.half ? NULL : kernel_text(&lists, &c->temp, &image, &shared, &exchange, &posted, &g->image);
	if (!why)
		why = columns_text(&s, g->image, &c->temp, text, &shape);
	if (why) {
		g->image = 0;
		return why;
	}
	g->columns = true;
	g->kernel.threads = shape.threads;
	g->kernel.shared = shape.shared;
	g->exchange = 0;
	return NULL;
}

/* Index lists of several leaves: three warps give verdicts beside those that compute. A fourth one takes more of their
 * issue slots than it saves (203-60-26, full batch: 16.7 us an update, 16.5 without). */
static uint32_t threads_of(const Cuda *c, const Made *m)
{
	enum { MOST = 512, WARP = 32 };
	bool lists = c->bound->csr.has_padded && !c->half && !m->solo && m->teams > 1 && m->mode != JOB_TEST;

	return c->gpu->block_threads - (lists && c->gpu->block_threads == MOST ? WARP : 0);
}

/* The fastest kernel that can do it: columns or rows, and weights, in shared memory; tiles; the general one. */
static void generate(Cuda *c, const Job *j, CachedKernel *g)
{
	const DeviceBound *b = c->bound;
	g->columns = false;
	g->posted = 0;
	bool test = g->made.mode == JOB_TEST;
	const char *why = "the job";
	Buf text = { .arena = &c->temp };
	EmitSource s = {
		.cx = c->cx,
		.job = j,
		.mode = g->made.mode,
		.list = test ? &b->test : &b->learn,
		.step = test ? b->test_step : b->learn_step,
		.test = test,
		.panel = c->tables.panel,
		.factor = c->tables.factor,
		.factors = c->tables.factors,
		.step_variable = c->tables.step_variable,
		.noisy_panel = c->tables.noisy_panel,
		.noise_class = c->tables.noise_class,
		.noise_classes = c->tables.noise_classes,
		.formula = &c->formula,
		.input = c->tables.input,
		.ones = c->tables.ones,
		.output = c->tables.output,
		.norm_leaves = leaf_count(c->net->links),
		.one_columns = j->one_columns,
		.kinds_of_leaves = g->made.kinds,
		.leaves = { g->made.leaves[0], g->made.leaves[1] },
		.teams = g->made.teams,
		.team_blocks = g->made.team_blocks,
		.leaf_rows = g->made.leaf_rows,
		.batch_rows = g->made.batch_rows,
		.list_longest = b->csr.longest,
		.lists_full = b->csr.entries == b->source->cases * b->csr.longest,
		.code_sum = b->codes.sum,
		.code_element = b->codes.element,
		.code_longest = b->codes.longest,
		.code_twice = b->codes.twice,
		.code_bits = b->codes.bits,
		.threads = threads_of(c, &g->made),
		.shared = c->gpu->block_shared,
		.copies = (uint32_t)c->transposed_floats,
		.solo = g->made.solo,
		.half = c->half,
		.slice = { g->made.slice[0], g->made.slice[1] },
		.images = g->made.images,
		.bulk = c->gpu->max_cluster != 0, /* of the same devices */
	};
	if (s.teams == 1 && s.team_blocks > 1 && s.team_blocks <= c->gpu->max_cluster && !test)
		s.cluster = s.team_blocks;
	bool fits = g->made.leaves[0] <= (test ? MOST_LEAVES : j->sums) && g->made.leaf_rows <= j->row_capacity;

	if (!g->made.general && fits) {
		why = columns_generate(c, &s, g, &text);
		s.images |= g->columns && !s.half;
	}
	if (why && !g->made.general && fits && s.half && !test) {
		const char *no_columns = why;
		EmitSource sided = s;
		sided.grouped = s.solo && c->gpu->has_wgmma;
		sided.sided = !sided.grouped;
		sided.threads += sided.sided ? SIDE_THREADS : 0;
		why = kernel_text(&sided, &c->temp, &text, &g->kernel.shared, &g->exchange, &g->posted, &g->image);
		if (!why)
			s = sided;
		else
			why = no_columns;
	}
	if (why && !g->made.general && fits) {
		if (s.cluster)
			buf_printf(&text, "// no columns: %s\n", why);
		why = kernel_text(&s, &c->temp, &text, &g->kernel.shared, &g->exchange, &g->posted, &g->image);
	}
	if (!g->columns)
		g->kernel.threads = s.threads;
	g->refused = why && s.solo;
	if (g->refused)
		return;
	bool can_tile = g->made.mode == JOB_UPDATE ? !needs_pending(&s) : c->half && test;
	if (why && !g->made.general && can_tile &&
	    g->made.batch_rows <= (uint64_t)c->row_teams * j->row_capacity) { /* all blocks are one team */
		EmitSource tiled = s;
		tiled.tiled = true;
		s.cluster = tiled.cluster = 0;
		tiled.images = false;
		tiled.teams = 1;
		tiled.team_blocks = c->gpu->blocks;
		why = kernel_text(&tiled, &c->temp, &text, &g->kernel.shared, &g->exchange, &g->posted, &g->image);
		g->tiled = !why;
	}
	if (why && c->half && g->made.mode != JOB_APPLY)
		fail(c->cx, MP_BAD_INPUT, "leave --precision out, or use --target cpu",
		     "target cuda has no bf16 kernel for this network and batch (%s)", why);
	if (why) {
		s.general = true;
		s.images = false;
		s.cluster = 0;
		kernel_text(&s, &c->temp, &text, &g->kernel.shared, &g->exchange, &g->posted, &g->image);
	}
	g->kernel.cluster = why ? 0 : s.cluster;
	text_dump(c, &text, why);
	text_load(c, g, &text);
	if (g->kernel.cluster && !gpu_clusters_fit(c->gpu, &g->kernel, s.teams * s.team_blocks)) {
		c->gpu->max_cluster = 0;
		generate(c, j, g);
		return;
	}
	images_load(c, &s, g);
}

static CachedKernel *find(Cuda *c, const Job *j, const Made *m)
{
	for (CachedKernel *g = c->bound->kernels; g; g = g->next)
		if (memcmp(&g->made, m, sizeof *m) == 0)
			return g;
	CachedKernel *g = NEW(&c->bound->memory.arena, 1, CachedKernel);
	g->made = *m;
	g->next = c->bound->kernels;
	c->bound->kernels = g;
	double began = clock_seconds();
	generate(c, j, g);
	c->compile_seconds += clock_seconds() - began;
	return g;
}

/* Sums that are there when they are no longer NO_SUM. A job leaves them as it finds them, but for places of no weight,
 * which no kernel of these weights waits for: they are filled once. */
static void posted_take(Cuda *c, uint64_t bytes)
{
	if (bytes <= c->posted_capacity)
		return;
	uint32_t *none = NEW(&c->temp, bytes / sizeof *none, uint32_t);
	for (uint64_t i = 0; i < bytes / sizeof *none; i++)
		none[i] = NO_SUM;
	c->job.posted = device_put(&c->weights, none, bytes);
	c->posted_capacity = bytes;
}

const GpuKernel *generated_kernel(Cuda *c, const Work *w, Job *j, const GpuKernel **images)
{
	Made m = made_for(c, w);
	const CachedKernel *g = find(c, j, &m);
	uint64_t bytes = g->exchange * m.teams;

	if (g->refused)
		return NULL;
	if (bytes > c->exchange_capacity) {
		c->exchange_capacity = bytes;
		c->job.exchange = device_alloc(&c->calls, bytes);
	}
	posted_take(c, g->posted);
	if (g->tiled) {
		c->teams = j->teams = 1;
		c->team_blocks = j->team_blocks = c->gpu->blocks;
	}
	Schedule *s = c->schedule;
	uint64_t needed = g->image * s->leaf.count;
	if (needed > s->images_capacity) {
		s->images_capacity = 2 * needed;
		s->images = device_alloc(&c->calls, s->images_capacity);
	}
	*images = g->image ? &g->images : NULL;
	j->images = s->images;
	j->leaves = (uint32_t)s->leaf.count;
	j->exchange = c->job.exchange;
	j->posted = c->job.posted;
	return &g->kernel;
}
