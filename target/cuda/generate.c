/* SPDX-License-Identifier: MIT */
/* Which kernel runs a job. In: steps of bound data, the work. Out: the fastest kernel of columns/ or emit/ that covers
 * it, generated and loaded once for each key. Must hold: a key has everything that the text depends on and that changes
 * between jobs on the same data. */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "columns.h"
#include "cuda.h"

enum { MAX_TEST_LEAVES = 512 }; /* tallies of a test are joined by straight-line code */

/* What a kernel was generated for. */
typedef struct KernelKey {
	uint32_t mode; /* JOB_ */
	uint32_t teams, team_blocks;
	uint32_t leaf_counts;   /* different numbers of leaves of an update: 1 or 2, since the last batch may be smaller */
	uint32_t leaves[2];     /* these numbers */
	uint32_t slice[2];      /* bf16: rows of a slice, for each */
	uint32_t leaf_rows;     /* of a leaf, at most */
	uint32_t batch_rows;    /* of an update, at most */
	uint32_t solo;          /* each team is one block and has its own network */
	uint32_t csc_prebuilt;  /* index lists by input (CSC) of all leaves are made by a kernel before */
	uint32_t needs_general; /* no other kernel covers it: some units are watched, or leaves have several chunks */
} KernelKey;
typedef struct CachedKernel CachedKernel;
struct CachedKernel {
	CachedKernel *next;
	KernelKey key;
	GpuKernel kernel;
	GpuKernel csc_kernel; /* makes Job.images before; only if csc_bytes */
	uint32_t csc_bytes;   /* of a leaf in Job.images; 0: the kernel needs none */
	uint64_t exchange;    /* bytes of a team in Job.exchange */
	uint64_t posted;      /* bytes of Job.posted */
	bool tiled;           /* all blocks are one team */
	bool columns;         /* of columns/ */
	bool refused;         /* there is no kernel */
	XXH64_hash_t hash;    /* of the text */
};

/* Has a leaf more rows than a chunk? Only examples of several cases make such leaves. */
static bool leaf_divided(const Schedule *s)
{
	const DeviceLeaf *leaf = s->leaf.at;

	for (uint64_t i = 0; i < s->leaf.count; i++)
		if (leaf[i].chunks > 1)
			return true;
	return false;
}

static KernelKey key_of(const Cuda *c, const Work *w)
{
	KernelKey m = { .mode = w->mode, .teams = c->teams, .team_blocks = c->team_blocks, .solo = w->networks != NULL };

	m.batch_rows = (uint32_t)min_u64(min_u64(w->batch, w->examples) * c->bound->longest, UINT32_MAX / 2);
	uint64_t count[2] = { min_u64(w->batch, w->examples), w->examples % w->batch };

	m.csc_prebuilt = w->mode != JOB_TEST && w->mode != JOB_APPLY && c->bound->csr.has_padded && !c->bf16 &&
	                 c->schedule->leaf.count > (w->networks ? 1 : m.teams) && !(w->networks && w->networks->cases);
	m.needs_general =
		w->mode == JOB_APPLY || (w->mode == JOB_TEST && w->out && c->watch.units.count) || leaf_divided(c->schedule);

	for (int i = 0; i < 2; i++) {
		uint32_t leaves = count[i] ? leaf_count(count[i]) : 0;
		if (!leaves)
			continue;
		m.leaf_rows = max_u32(m.leaf_rows, (uint32_t)ceil_div(count[i], leaves));
		if (c->bound->longest > 1) /* examples of several cases */
			m.leaf_rows = LEAF_EXAMPLES;
		uint32_t slice = c->bf16 ? bf16_slice_rows(leaves) : 0;
		if (w->leaf_end)
			leaves = w->leaf_end - w->leaf_first;
		if (!m.leaf_counts || leaves != m.leaves[0]) {
			m.slice[m.leaf_counts] = slice;
			m.leaves[m.leaf_counts++] = leaves;
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

/* Loads the text, unless another kernel of this data has the same one: some texts do not depend on all of the key. */
static void text_load(Cuda *c, CachedKernel *g, const Buf *text)
{
	uint32_t shared = g->kernel.shared;

	g->hash = XXH3_64bits(text->s, text->len);
	for (const CachedKernel *o = g->next; o; o = o->next)
		if (o->hash == g->hash && o->kernel.shared == shared && o->kernel.cluster == g->kernel.cluster) {
			g->kernel = o->kernel;
			g->csc_kernel = o->csc_kernel;
			return;
		}
	gpu_load(&c->bound->memory, text->s, text->len, &g->kernel);
}

static const char *emit_text(Cuda *c, const EmitSource *s, CachedKernel *g, Buf *text)
{
	return kernel_text(s, &c->temp, text, &g->kernel.shared, &g->exchange, &g->posted, &g->csc_bytes);
}

/* The kernel that makes the index lists by input of all leaves. */
static void csc_kernel_load(Cuda *c, const EmitSource *of, CachedKernel *g)
{
	EmitSource s = *of;
	Buf text = { .arena = &c->temp };
	CachedKernel made = { .next = NULL };

	if (!g->csc_bytes || g->csc_kernel.function)
		return;
	s.makes_images = true;
	s.cluster = 0;
	emit_text(c, &s, &made, &text);
	g->csc_kernel.shared = made.kernel.shared;
	g->csc_kernel.threads = s.threads;
	gpu_load(&c->bound->memory, text.s, text.len, &g->csc_kernel);
}

/* ---- kernels, the fastest first: each function returns NULL, or why its kernel does not cover the job ---- */

/* A cluster whose blocks have columns of hidden units each. */
static const char *try_columns(Cuda *c, EmitSource *s, CachedKernel *g, Buf *text)
{
	EmitSource own = *s, lists = *s;
	CachedKernel made = { .next = NULL };
	Buf unused = { .arena = &c->temp };
	ColumnsShape shape;

	own.images = lists.images = lists.makes_images = true;
	lists.cluster = 0;
	if (!own.cluster || (!c->bound->csr.has_padded && !own.bf16))
		return "no cluster, or no index lists";
	const char *why = own.bf16 ? NULL : emit_text(c, &lists, &made, &unused);
	if (!own.bf16)
		g->csc_bytes = made.csc_bytes;
	if (!why)
		why = columns_text(&own, g->csc_bytes, &c->temp, text, &shape);
	if (why) {
		g->csc_bytes = 0;
		return why;
	}
	g->columns = true;
	g->kernel.threads = shape.threads;
	g->kernel.shared = shape.shared;
	g->exchange = 0;
	s->images |= !s->bf16;
	return NULL;
}

/* bf16: rows and weights in shared memory, with side warps for work off the critical path, or with wgmma. */
static const char *try_bf16(Cuda *c, EmitSource *s, CachedKernel *g, Buf *text)
{
	EmitSource own = *s;

	own.warpgroups = s->solo && c->gpu->has_wgmma;
	own.adds_side_warps = !own.warpgroups;
	own.threads += own.adds_side_warps ? SIDE_THREADS : 0;
	const char *why = emit_text(c, &own, g, text);
	if (!why)
		*s = own;
	return why;
}

/* Rows and weights in shared memory. */
static const char *try_resident(Cuda *c, const EmitSource *s, const char *no_columns, CachedKernel *g, Buf *text)
{
	if (s->cluster)
		buf_printf(text, "// no columns: %s\n", no_columns);
	return emit_text(c, s, g, text);
}

/* Weights in global memory, products in tiles; all blocks are one team. */
static const char *try_tiled(Cuda *c, EmitSource *s, CachedKernel *g, Buf *text)
{
	EmitSource own = *s;

	s->cluster = own.cluster = 0;
	own.tiled = true;
	own.images = false;
	own.teams = 1;
	own.team_blocks = c->gpu->blocks;
	const char *why = emit_text(c, &own, g, text);
	g->tiled = !why;
	return why;
}

/* Rows in global memory: covers everything but bf16. */
static void use_general(Cuda *c, EmitSource *s, CachedKernel *g, Buf *text)
{
	s->general = true;
	s->images = false;
	s->cluster = 0;
	emit_text(c, s, g, text);
}

/* Index lists of several leaves: three warps score rows beside those that compute. A fourth one takes more of their
 * issue slots than it saves (203-60-26, full batch: 16.7 us an update, 16.5 without). */
static uint32_t threads_of(const Cuda *c, const KernelKey *m)
{
	enum { MOST = 512, WARP = 32 };
	bool lists = c->bound->csr.has_padded && !c->bf16 && !m->solo && m->teams > 1 && m->mode != JOB_TEST;

	return c->gpu->block_threads - (lists && c->gpu->block_threads == MOST ? WARP : 0);
}

static EmitSource source_of(const Cuda *c, const Job *j, const KernelKey *key)
{
	const DeviceBound *b = c->bound;
	const LayoutTables *t = &c->tables;
	bool test = key->mode == JOB_TEST;
	EmitSource s = {
		.cx = c->cx,
		.job = j,
		.mode = key->mode,
		.list = test ? &b->test : &b->learn,
		.step = test ? b->test_step : b->learn_step,
		.test = test,
		.panel = t->panel,
		.factor = t->factor,
		.factors = t->factors,
		.step_variable = t->step_variable,
		.noisy_panel = t->noisy_panel,
		.noise_class = t->noise_class,
		.noise_classes = t->noise_classes,
		.formula = &c->formula,
		.input = t->input,
		.ones = t->ones,
		.output = t->output,
		.norm_leaves = leaf_count(c->net->links),
		.one_columns = j->one_columns,
		.kinds_of_leaves = key->leaf_counts,
		.leaves = { key->leaves[0], key->leaves[1] },
		.teams = key->teams,
		.team_blocks = key->team_blocks,
		.leaf_rows = key->leaf_rows,
		.batch_rows = key->batch_rows,
		.list_longest = b->csr.longest,
		.lists_full = b->csr.entries == b->source->cases * b->csr.longest,
		.code_sum = b->codes.sum,
		.code_element = b->codes.element,
		.code_longest = b->codes.longest,
		.code_twice = b->codes.twice,
		.code_bits = b->codes.bits,
		.threads = threads_of(c, key),
		.shared = c->gpu->block_shared,
		.copies = (uint32_t)c->transposed_floats,
		.solo = key->solo,
		.bf16 = c->bf16,
		.slice = { key->slice[0], key->slice[1] },
		.images = key->csc_prebuilt,
		.bulk = c->gpu->max_cluster != 0, /* both come with compute capability 9.0 */
	};
	if (s.teams == 1 && s.team_blocks > 1 && s.team_blocks <= c->gpu->max_cluster && !test)
		s.cluster = s.team_blocks;
	return s;
}

static void generate(Cuda *c, const Job *j, CachedKernel *g)
{
	const KernelKey *key = &g->key;
	EmitSource s = source_of(c, j, key);
	Buf text = { .arena = &c->temp };
	bool fits = key->leaves[0] <= (s.test ? MAX_TEST_LEAVES : j->sums) && key->leaf_rows <= j->row_capacity;
	bool resident = !key->needs_general && fits;
	bool can_tile = key->mode == JOB_UPDATE ? !needs_pending(&s) : c->bf16 && s.test;
	const char *why = "the job";

	g->columns = false;
	g->posted = 0;
	if (resident)
		why = try_columns(c, &s, g, &text);
	const char *no_columns = why;
	if (why && resident && s.bf16 && !s.test && !try_bf16(c, &s, g, &text))
		why = NULL;
	if (why && resident)
		why = try_resident(c, &s, no_columns, g, &text);
	if (!g->columns)
		g->kernel.threads = s.threads;
	g->refused = why && s.solo;
	if (g->refused)
		return;
	if (why && !key->needs_general && can_tile && key->batch_rows <= (uint64_t)c->row_teams * j->row_capacity)
		why = try_tiled(c, &s, g, &text);
	if (why && c->bf16 && key->mode != JOB_APPLY)
		fail(c->cx, MP_BAD_INPUT, "leave --precision out, or use --target cpu",
		     "target cuda has no bf16 kernel for this network and batch (%s)", why);
	if (why)
		use_general(c, &s, g, &text);
	g->kernel.cluster = why ? 0 : s.cluster;
	text_dump(c, &text, why);
	text_load(c, g, &text);
	if (g->kernel.cluster && !gpu_clusters_fit(c->gpu, &g->kernel, s.teams * s.team_blocks)) {
		c->gpu->max_cluster = 0; /* not all clusters would be resident: generate a kernel without */
		generate(c, j, g);
		return;
	}
	csc_kernel_load(c, &s, g);
}

static CachedKernel *find(Cuda *c, const Job *j, const KernelKey *key)
{
	for (CachedKernel *g = c->bound->kernels; g; g = g->next)
		if (memcmp(&g->key, key, sizeof *key) == 0)
			return g;
	CachedKernel *g = NEW(&c->bound->memory.arena, 1, CachedKernel);
	g->key = *key;
	g->next = c->bound->kernels;
	c->bound->kernels = g;
	double began = clock_seconds();
	generate(c, j, g);
	c->compile_seconds += clock_seconds() - began;
	return g;
}

/* Job.posted: kernels fill it when they begin. */
static void posted_reserve(Cuda *c, uint64_t bytes)
{
	if (bytes <= c->posted_capacity)
		return;
	c->job.posted = device_alloc(&c->weights, bytes);
	c->posted_capacity = bytes;
}

const GpuKernel *generated_kernel(Cuda *c, const Work *w, Job *j, const GpuKernel **csc_kernel)
{
	KernelKey key = key_of(c, w);
	const CachedKernel *g = find(c, j, &key);
	uint64_t bytes = g->exchange * key.teams;
	Schedule *s = c->schedule;

	if (g->refused)
		return NULL;
	if (bytes > c->exchange_capacity) {
		c->exchange_capacity = bytes;
		c->job.exchange = device_alloc(&c->calls, bytes);
	}
	posted_reserve(c, g->posted);
	if (g->tiled) {
		c->teams = j->teams = 1;
		c->team_blocks = j->team_blocks = c->gpu->blocks;
	}
	uint64_t needed = g->csc_bytes * s->leaf.count;
	if (needed > s->images_capacity) {
		s->images_capacity = 2 * needed;
		s->images = device_alloc(&c->calls, s->images_capacity);
	}
	*csc_kernel = g->csc_bytes ? &g->csc_kernel : NULL;
	j->images = s->images;
	j->leaves = (uint32_t)s->leaf.count;
	j->exchange = c->job.exchange;
	j->posted = c->job.posted;
	return &g->kernel;
}
