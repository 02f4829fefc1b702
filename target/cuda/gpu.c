/* SPDX-License-Identifier: MIT */
/* A device: a GPU (driver.c), its emulation (ptx/) if MICROPROP_CUDA says so, or a planned one, for which kernels are
 * only printed. In: requests for memory, copies, launches. Out: the same calls of the driver or of the emulator, which
 * has one stream and completes every call before it returns. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cuda.h"
#include "ptx.h"

/* Sizes of the emulated device: small, so that tests of small networks reach every path of a kernel. */
enum {
	EMULATED_DEVICES = 2,
	EMULATED_BLOCKS = 4,
	EMULATED_THREADS = 128,
	EMULATED_ROWS = 512,
	EMULATED_SUMS = 64,
	EMULATED_IDLE = 1 << 28, /* instructions without a store until the grid counts as hung: lanes store little */
	EMULATED_WORK = 64,
	EMULATED_SHARED = 227 * 1024
};
enum { CHUNK_ROWS = 512, MAX_SUMS = 256 };
enum { MAX_TEAM_BLOCKS = 70 }; /* a batch of 512 cases is faster on 70 blocks than on 128 */

static void sizes_from_environment(Ctx *cx, Gpu *m)
{
	m->blocks = (uint32_t)environment_number(cx, "MICROPROP_CUDA_BLOCKS", m->blocks);
	m->block_threads = (uint32_t)environment_number(cx, "MICROPROP_CUDA_THREADS", m->block_threads);
	m->block_shared = (uint32_t)environment_number(cx, "MICROPROP_CUDA_SHARED", m->block_shared);
	m->max_cluster = (uint32_t)environment_number(cx, "MICROPROP_CUDA_CLUSTER", m->max_cluster);
	m->has_wgmma = environment_number(cx, "MICROPROP_CUDA_GROUPS", m->has_wgmma) != 0;
	m->min_block_work = environment_number(cx, "MICROPROP_CUDA_WORK", m->min_block_work);
	m->memory = environment_number(cx, "MICROPROP_CUDA_MEMORY", m->memory);
}

Gpu *gpu_open(Ctx *cx, int64_t device)
{
	Gpu *m = NEW(&cx->keep, 1, Gpu);

	m->cx = cx;
	m->device = device;
	DeviceKind kind = environment_kind(cx, &m->seed);
	if (kind == DEVICE_EMULATED) {
		fault_open(m);
		gpu_number(m, EMULATED_DEVICES);
		strcpy(m->name, "emulation");
		m->blocks = EMULATED_BLOCKS;
		m->min_block_work = EMULATED_WORK;
		m->chunk_rows = EMULATED_ROWS;
		m->max_sums = EMULATED_SUMS;
		m->memory = (uint64_t)1 << 30;
		m->block_threads = EMULATED_THREADS;
		m->block_shared = EMULATED_SHARED;
		m->max_cluster = m->seed & 2 ? 0 : EMULATED_BLOCKS;
		m->has_wgmma = !(m->seed & 2);
		m->emulator = emulator_new(
			cx,
			&(EmulatorOptions){ .seed = m->seed, .races = m->seed & 1, .ahead = m->seed & 4, .idle = EMULATED_IDLE });
	} else {
		m->driver = driver_open(m);
		m->min_block_work = MIN_BLOCK_WORK;
		m->max_team_blocks = MAX_TEAM_BLOCKS;
		m->chunk_rows = CHUNK_ROWS;
		m->max_sums = MAX_SUMS;
		if (kind == DEVICE_SMALL) {
			m->min_block_work = EMULATED_WORK;
			m->chunk_rows = EMULATED_ROWS;
			m->max_sums = EMULATED_SUMS;
		}
	}
	sizes_from_environment(cx, m);
	return m;
}

/* ---- a planned device ---- */

typedef struct Sizes {
	Gpu *into;
	int64_t device;
} Sizes;

static void sizes_read(Ctx *own, void *arg)
{
	const Sizes *s = arg;

	*s->into = *gpu_open(own, s->device);
}

Gpu *gpu_plan(Ctx *cx, int64_t device)
{
	Gpu *m = NEW(&cx->keep, 1, Gpu);
	Ctx own;

	ctx_init(&own, &cx->alloc);
	if (subcontext_run(&own, sizes_read, &(Sizes){ m, device }) != MP_OK) {
		*m = (Gpu){ .name = "an H200 (there is no GPU here)",
			        .blocks = H200_BLOCKS,
			        .min_block_work = MIN_BLOCK_WORK,
			        .chunk_rows = CHUNK_ROWS,
			        .max_sums = MAX_SUMS,
			        .memory = (uint64_t)140 << 30,
			        .max_team_blocks = MAX_TEAM_BLOCKS,
			        .max_cluster = H200_CLUSTER,
			        .has_wgmma = true,
			        .block_threads = 512,
			        .block_shared = 227 * 1024 };
		sizes_from_environment(cx, m);
	}
	ctx_free(&own);
	m->cx = cx;
	m->planned = true;
	m->driver = NULL;
	m->emulator = NULL;
	return m;
}

/* Addresses that are never accessed. */
static void *planned_alloc(Gpu *m, uint64_t bytes)
{
	const uintptr_t base = (uintptr_t)1 << 40;
	uintptr_t at = base + m->allocated;

	if (bytes > m->memory - m->allocated)
		gpu_no_memory(m, bytes);
	m->allocated += bytes;
	return (void *)at;
}

/* ---- memory ---- */

typedef struct EmulatedBlock {
	struct Emulator *emulator;
	void *at;
} EmulatedBlock;

static void emulated_free(void *block)
{
	const EmulatedBlock *b = block;

	emulator_free(b->emulator, b->at);
}

static void *emulated_alloc(DeviceMemory *m, uint64_t bytes)
{
	EmulatedBlock *b = NEW(&m->arena, 1, EmulatedBlock);

	*b = (EmulatedBlock){ m->gpu->emulator, emulator_alloc(m->gpu->emulator, bytes) };
	memset(b->at, 0, bytes);
	arena_defer(&m->arena, emulated_free, b);
	return b->at;
}

void *device_alloc(DeviceMemory *m, uint64_t bytes)
{
	bytes = round_up(bytes, 64) + 64; /* kernels read whole vectors, past the last element */
	m->arena.cx = m->gpu->cx;
	if (m->gpu->planned)
		return planned_alloc(m->gpu, bytes);
	if (!m->gpu->driver) {
		fault_alloc(m->gpu, bytes);
		return emulated_alloc(m, bytes);
	}
	return driver_alloc(m->gpu->driver, &m->arena, bytes);
}

void *device_put(DeviceMemory *m, const void *from, uint64_t bytes)
{
	void *to = device_alloc(m, bytes);

	gpu_upload(m->gpu, to, from, bytes);
	return to;
}

void device_free(DeviceMemory *m)
{
	if (m->arena.cx) /* something was allocated */
		arena_free(&m->arena);
}

static void emulated_copy(Gpu *m, void *to, const void *from, uint64_t bytes, bool up)
{
	fault_call(m, "copy", up ? "copy to the device" : "copy from the device");
	assert(emulator_holds(m->emulator, up ? to : from, bytes)); /* a driver would return an error */
	memcpy(to, from, bytes);
}

void gpu_upload(Gpu *m, void *to, const void *from, uint64_t bytes)
{
	if (m->driver)
		driver_upload(m->driver, to, from, bytes);
	else if (bytes && !m->planned)
		emulated_copy(m, to, from, bytes, true);
}

void gpu_download(Gpu *m, void *to, const void *from, uint64_t bytes)
{
	if (m->driver)
		driver_download(m->driver, to, from, bytes);
	else if (bytes && !m->planned)
		emulated_copy(m, to, from, bytes, false);
}

void *gpu_host_memory(DeviceMemory *owner, uint64_t bytes)
{
	void *at = owner->gpu->driver ? driver_host_memory(owner->gpu->driver, &owner->arena, bytes) : NULL;

	return at ? at : arena_alloc_raw(&owner->arena, bytes + 1, 1);
}

/* ---- kernels ---- */

typedef struct Loaded {
	Gpu *gpu;
	GpuKernel kernel;
} Loaded;

static void unload(void *arg)
{
	Loaded *l = arg;

	if (l->gpu->driver)
		driver_unload(l->gpu->driver, &l->kernel);
	else
		emulator_unload(l->kernel.module);
}

/* MICROPROP_CUDA_DROP=N, for tests of the race checker: comments out the N-th block barrier of every kernel; N:TEXT:
 * the N-th line that begins with TEXT. */
static const char *without_line(Arena *a, const char *text, size_t len, const char *which)
{
	char *begin, *copy = arena_copy(a, text, len), *at = copy;
	unsigned long number = strtoul(which, &begin, 10);
	Buf line = { .arena = a };

	buf_printf(&line, "\t%s", *begin == ':' ? begin + 1 : "bar.sync 0;");
	for (unsigned long i = 1; (at = strstr(at, line.s)) != NULL; i++, at++)
		if (i == number) {
			at[1] = at[2] = '/';
			break;
		}
	return copy;
}

bool is_folder(const char *dump) { return *dump && dump[strlen(dump) - 1] == '/'; }

/* MICROPROP_CUDA_DUMP=FOLDER/: every text becomes a file, named after its hash. */
static void text_dump_file(DeviceMemory *owner, const char *text, size_t len)
{
	const char *folder = getenv("MICROPROP_CUDA_DUMP");
	Buf name = { .arena = &owner->arena };

	if (!folder || !is_folder(folder))
		return;
	buf_printf(&name, "%s%016llx.ptx", folder, (unsigned long long)XXH3_64bits(text, len));
	OutFile *f = file_create(owner->gpu->cx, &owner->arena, name.s);
	file_write(f, text, len);
	file_commit(owner->gpu->cx, f);
}

void gpu_load(DeviceMemory *owner, const char *text, size_t len, GpuKernel *k)
{
	Gpu *m = owner->gpu;

	text_dump_file(owner, text, len);
	if (m->planned) {
		k->text = arena_copy(&owner->arena, text, len);
		return;
	}
	Loaded *l = NEW(&owner->arena, 1, Loaded);

	if (m->driver) {
		driver_load(m->driver, text, k);
	} else {
		const char *drop = getenv("MICROPROP_CUDA_DROP");
		k->module = emulator_load(m->emulator, drop ? without_line(&m->cx->scratch, text, len, drop) : text, len);
		k->function = (void *)emulator_kernel(k->module, "microprop_train");
	}
	*l = (Loaded){ m, *k };
	arena_defer(&owner->arena, unload, l);
}

static void emulated_start(Gpu *m, const GpuKernel *k, const void *job, uint32_t blocks)
{
	void *param[] = { (void *)job };

	fault_call(m, "job", "job");
	emulator_reseed(m->emulator, m->seed++);
	emulator_launch(
		m->emulator, k->function,
		&(Launch){
			.blocks = blocks, .threads = k->threads, .cluster = k->cluster, .shared = k->shared, .param = param });
}

void gpu_start(Gpu *m, const GpuKernel *k, const void *job, uint32_t blocks, GpuStream stream)
{
	if (m->driver)
		driver_start(m->driver, k, job, blocks, stream);
	else if (!m->planned)
		emulated_start(m, k, job, blocks);
}

bool gpu_clusters_fit(Gpu *m, const GpuKernel *k, uint32_t blocks)
{
	return !m->driver || driver_clusters_fit(m->driver, k, blocks);
}

void gpu_wait(Gpu *m)
{
	if (m->driver)
		driver_wait(m->driver);
}

void gpu_upload_begin(Gpu *m, void *to, const void *from, uint64_t bytes, GpuStream stream)
{
	if (m->driver)
		driver_upload_begin(m->driver, to, from, bytes, stream);
	else
		gpu_upload(m, to, from, bytes);
}

void gpu_download_begin(Gpu *m, void *to, const void *from, uint64_t bytes, GpuStream stream)
{
	if (m->driver)
		driver_download_begin(m->driver, to, from, bytes, stream);
	else
		gpu_download(m, to, from, bytes);
}

void gpu_copies_wait(Gpu *m)
{
	if (m->driver)
		driver_copies_wait(m->driver);
}

void *gpu_event(DeviceMemory *owner)
{
	return owner->gpu->driver ? driver_event(owner->gpu->driver, &owner->arena) : NULL;
}

void gpu_event_record(Gpu *m, void *event)
{
	if (m->driver)
		driver_event_record(m->driver, event);
}

void gpu_event_wait(Gpu *m, void *event)
{
	if (m->driver)
		driver_event_wait(m->driver, event);
}
