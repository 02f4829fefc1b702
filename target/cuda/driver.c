/* SPDX-License-Identifier: MIT */
/* The CUDA driver API, loaded from libcuda.so.1 at run time. In: PTX text. Out: device memory, launches, copies.
 * Neither building nor running needs the CUDA toolkit: the driver compiles PTX for the GPU (JIT).
 *
 * Must hold: all blocks of a launch are resident, since they wait for each other: launches are cooperative. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

enum {
	BLOCK_THREADS = 512,
	ATTRIBUTE_MULTIPROCESSORS = 16,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76,
	ATTRIBUTE_COOPERATIVE = 95,
	ATTRIBUTE_SHARED = 97, /* bytes, opt-in maximum of a block */
	ATTRIBUTE_CLUSTERS = 120,
	FUNCTION_SHARED = 8,
	FUNCTION_LARGE_CLUSTERS = 14,
	LAUNCH_COOPERATIVE = 2,
	LAUNCH_CLUSTER = 4,
	MAX_CLUSTER = 16,        /* non-portable size */
	CLUSTER_VERSION = 12010, /* first driver that takes cluster barriers in PTX */
	OLDEST_MAJOR = 8,        /* compute capability */
	JIT_ERROR_LOG = 5,
	JIT_ERROR_LOG_BYTES = 6
};

typedef uint64_t DeviceAddress;
/* CUlaunchAttribute and CUlaunchConfig, as cuLaunchKernelEx reads them. */
typedef struct LaunchAttribute {
	int id, unused;
	union {
		int cooperative;
		unsigned cluster[3];
		char bytes[64];
	} value;
} LaunchAttribute;
typedef struct LaunchConfig {
	unsigned grid[3], block[3], shared;
	void *stream;
	LaunchAttribute *attribute;
	unsigned attributes;
} LaunchConfig;

/* Functions of the driver; call_names has their symbols. */
typedef struct Calls {
	int (*init)(unsigned);
	int (*driver_version)(int *);
	int (*device_count)(int *);
	int (*device_get)(int *, int);
	int (*device_name)(char *, int, int);
	int (*device_attribute)(int *, int, int);
	int (*total_memory)(size_t *, int);
	int (*context_retain)(void **, int);
	int (*context_release)(int);
	int (*context_set)(void *);
	int (*module_load)(void **, const void *, unsigned, int *, void **);
	int (*module_unload)(void *);
	int (*module_function)(void **, void *, const char *);
	int (*function_set_attribute)(void *, int, int);
	int (*mem_alloc)(DeviceAddress *, size_t);
	int (*mem_free)(DeviceAddress);
	int (*copy_to_device)(DeviceAddress, const void *, size_t);
	int (*copy_to_host)(void *, DeviceAddress, size_t);
	int (*memset_async)(DeviceAddress, unsigned char, size_t, void *);
	int (*mem_alloc_host)(void **, size_t);
	int (*mem_free_host)(void *);
	int (*stream_create)(void **, unsigned);
	int (*stream_destroy)(void *);
	int (*stream_synchronize)(void *);
	int (*copy_to_device_async)(DeviceAddress, const void *, size_t, void *);
	int (*copy_to_host_async)(void *, DeviceAddress, size_t, void *);
	int (*event_create)(void **, unsigned);
	int (*event_destroy)(void *);
	int (*event_record)(void *, void *);
	int (*event_synchronize)(void *);
	int (*launch_cooperative)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
	                          void **);
	int (*launch_ex)(const LaunchConfig *, void *, void **, void **); /* NULL before CUDA 11.8 */
	int (*max_active_clusters)(int *, void *, const LaunchConfig *);  /* NULL before CUDA 11.8 */
	int (*synchronize)(void);
	int (*error_string)(int, const char **);
} Calls;

static const struct {
	const char *name;
	size_t at;
	bool optional; /* CUDA 11.8 and later */
} call_names[] = {
	{ "cuInit", offsetof(Calls, init), false },
	{ "cuDriverGetVersion", offsetof(Calls, driver_version), false },
	{ "cuDeviceGetCount", offsetof(Calls, device_count), false },
	{ "cuDeviceGet", offsetof(Calls, device_get), false },
	{ "cuDeviceGetName", offsetof(Calls, device_name), false },
	{ "cuDeviceGetAttribute", offsetof(Calls, device_attribute), false },
	{ "cuDeviceTotalMem_v2", offsetof(Calls, total_memory), false },
	{ "cuDevicePrimaryCtxRetain", offsetof(Calls, context_retain), false },
	{ "cuDevicePrimaryCtxRelease_v2", offsetof(Calls, context_release), false },
	{ "cuCtxSetCurrent", offsetof(Calls, context_set), false },
	{ "cuModuleLoadDataEx", offsetof(Calls, module_load), false },
	{ "cuModuleUnload", offsetof(Calls, module_unload), false },
	{ "cuModuleGetFunction", offsetof(Calls, module_function), false },
	{ "cuFuncSetAttribute", offsetof(Calls, function_set_attribute), false },
	{ "cuMemAlloc_v2", offsetof(Calls, mem_alloc), false },
	{ "cuMemFree_v2", offsetof(Calls, mem_free), false },
	{ "cuMemcpyHtoD_v2", offsetof(Calls, copy_to_device), false },
	{ "cuMemcpyDtoH_v2", offsetof(Calls, copy_to_host), false },
	{ "cuMemsetD8Async", offsetof(Calls, memset_async), false },
	{ "cuMemAllocHost_v2", offsetof(Calls, mem_alloc_host), false },
	{ "cuMemFreeHost", offsetof(Calls, mem_free_host), false },
	{ "cuStreamCreate", offsetof(Calls, stream_create), false },
	{ "cuStreamDestroy_v2", offsetof(Calls, stream_destroy), false },
	{ "cuStreamSynchronize", offsetof(Calls, stream_synchronize), false },
	{ "cuMemcpyHtoDAsync_v2", offsetof(Calls, copy_to_device_async), false },
	{ "cuMemcpyDtoHAsync_v2", offsetof(Calls, copy_to_host_async), false },
	{ "cuEventCreate", offsetof(Calls, event_create), false },
	{ "cuEventDestroy_v2", offsetof(Calls, event_destroy), false },
	{ "cuEventRecord", offsetof(Calls, event_record), false },
	{ "cuEventSynchronize", offsetof(Calls, event_synchronize), false },
	{ "cuLaunchCooperativeKernel", offsetof(Calls, launch_cooperative), false },
	{ "cuLaunchKernelEx", offsetof(Calls, launch_ex), true },
	{ "cuOccupancyMaxActiveClusters", offsetof(Calls, max_active_clusters), true },
	{ "cuCtxSynchronize", offsetof(Calls, synchronize), false },
	{ "cuGetErrorString", offsetof(Calls, error_string), false },
};

struct Driver {
	Gpu *gpu;
	void *library;
	Calls call;
	int device;
	void *context;
	void *copies; /* STREAM_COPY; NULL: not created yet */
};

/* A call failed while data was bound or a job ran. */
static void check(const Driver *d, int status, const char *what)
{
	const char *text = NULL;

	if (!status)
		return;
	if (d->call.error_string(status, &text) || !text)
		text = "unknown error";
	gpu_failed(d->gpu, what, text);
}

/* ---- opening ---- */

static void find_calls(Driver *d)
{
	const char *why;

	d->library = library_open("libcuda.so.1", false, &why);
	if (!d->library)
		gpu_refuse(d->gpu, LOADS_LIBRARIES ? gpu_no_driver : why);
	for (uint32_t i = 0; i < COUNT(call_names); i++) {
		void *call = library_symbol(d->library, call_names[i].name);
		if (!call && !call_names[i].optional)
			gpu_refuse(d->gpu, gpu_old_driver);
		memcpy((char *)&d->call + call_names[i].at, &call, sizeof call);
	}
}

static int attribute(const Driver *d, int which)
{
	int value = 0;

	check(d, d->call.device_attribute(&value, which, d->device), "attribute");
	return value;
}

static void choose_device(Driver *d)
{
	Gpu *m = d->gpu;
	int count = 0;
	size_t bytes = 0;

	if (d->call.init(0) || d->call.device_count(&count) || !count)
		gpu_refuse(m, gpu_none);
	check(d, d->call.device_get(&d->device, gpu_number(m, count)), "device");
	check(d, d->call.device_name(m->name, sizeof m->name, d->device), "name");
	if (attribute(d, ATTRIBUTE_MAJOR) < OLDEST_MAJOR || !attribute(d, ATTRIBUTE_COOPERATIVE))
		gpu_refuse(m, "the GPU is too old: compute capability 8.0 or later is needed");
	check(d, d->call.total_memory(&bytes, d->device), "memory");
	m->memory = bytes;
	m->blocks = (uint32_t)attribute(d, ATTRIBUTE_MULTIPROCESSORS);
	m->block_threads = BLOCK_THREADS;
	m->block_shared = (uint32_t)attribute(d, ATTRIBUTE_SHARED);
	int version = 0;
	if (!d->call.driver_version(&version) && version >= CLUSTER_VERSION && d->call.launch_ex &&
	    d->call.max_active_clusters && attribute(d, ATTRIBUTE_CLUSTERS))
		m->max_cluster = MAX_CLUSTER;
	m->has_wgmma = m->max_cluster && attribute(d, ATTRIBUTE_MAJOR) == 9 && attribute(d, ATTRIBUTE_MINOR) == 0;
}

static void load_text(const Driver *d, const void *text, void **module)
{
	enum { LOG_BYTES = 4096 };
	char *log = NEW(&d->gpu->cx->scratch, LOG_BYTES, char); /* not static: threads may have a run each */
	int option[] = { JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES };
	void *value[] = { log, (void *)(uintptr_t)LOG_BYTES };

	if (d->call.module_load(module, text, COUNT(option), option, value)) {
		log[strcspn(log, "\n")] = 0;
		fail(d->gpu->cx, MP_BAD_INPUT, "update the NVIDIA driver, or use --target cpu",
		     "target cuda: the driver does not accept the kernel: %s", log);
	}
}

static void driver_close(void *arg)
{
	Driver *d = arg;

	if (d->context) {
		d->call.context_set(d->context);
		if (d->copies)
			d->call.stream_destroy(d->copies);
		d->call.context_set(NULL);
		d->call.context_release(d->device);
	}
	if (d->library)
		library_close(d->library);
}

Driver *driver_open(Gpu *m)
{
	Driver *d = NEW(&m->cx->keep, 1, Driver);

	d->gpu = m;
	arena_defer(&m->cx->keep, driver_close, d);
	find_calls(d);
	choose_device(d);
	check(d, d->call.context_retain(&d->context, d->device), "context");
	check(d, d->call.context_set(d->context), "context");
	return d;
}

/* ---- memory and launches ---- */

/* What an arena of the caller owns: freed by the driver when the arena is. */
typedef enum OwnedKind { OWNED_MEMORY, OWNED_PINNED, OWNED_EVENT } OwnedKind;
typedef struct Owned {
	const Driver *driver;
	OwnedKind kind;
	DeviceAddress memory; /* OWNED_MEMORY */
	void *handle;         /* the other kinds: address on the host, event */
} Owned;

static void owned_free(void *arg)
{
	const Owned *o = arg;
	const Calls *call = &o->driver->call;

	call->context_set(o->driver->context);
	switch (o->kind) {
	case OWNED_MEMORY: call->mem_free(o->memory); break;
	case OWNED_PINNED: call->mem_free_host(o->handle); break;
	case OWNED_EVENT: call->event_destroy(o->handle); break;
	}
}

/* Makes the context current. The caller fills in what it got from the driver, then calls owned_keep. */
static Owned *owned_new(const Driver *d, Arena *owner, OwnedKind kind)
{
	Owned *o = NEW(owner, 1, Owned);

	d->call.context_set(d->context);
	*o = (Owned){ .driver = d, .kind = kind };
	return o;
}

static void owned_keep(Arena *owner, Owned *o) { arena_defer(owner, owned_free, o); }

/* NULL: the default stream, with which a non-blocking one is not ordered. Created when it is first used. */
static void *stream_of(Driver *d, GpuStream which)
{
	enum { NON_BLOCKING = 1 };

	d->call.context_set(d->context);
	if (which == STREAM_COMPUTE)
		return NULL;
	if (!d->copies)
		check(d, d->call.stream_create(&d->copies, NON_BLOCKING), "stream");
	return d->copies;
}

void *driver_alloc(Driver *d, Arena *owner, uint64_t bytes)
{
	Owned *o = owned_new(d, owner, OWNED_MEMORY);

	if (d->call.mem_alloc(&o->memory, bytes))
		gpu_no_memory(d->gpu, bytes);
	owned_keep(owner, o);
	void *stream = stream_of(d, STREAM_COPY); /* the default stream may be running a job */
	check(d, d->call.memset_async(o->memory, 0, bytes, stream), "clearing memory");
	check(d, d->call.stream_synchronize(stream), "clearing memory");
	return (void *)(uintptr_t)o->memory;
}

void *driver_host_memory(const Driver *d, Arena *owner, uint64_t bytes)
{
	Owned *o = owned_new(d, owner, OWNED_PINNED);

	if (d->call.mem_alloc_host(&o->handle, bytes))
		return NULL;
	owned_keep(owner, o);
	return o->handle;
}

void driver_upload(const Driver *d, void *to, const void *from, uint64_t bytes)
{
	d->call.context_set(d->context);
	if (bytes)
		check(d, d->call.copy_to_device((DeviceAddress)(uintptr_t)to, from, bytes), "copy to the device");
}

void driver_upload_begin(Driver *d, void *to, const void *from, uint64_t bytes, GpuStream stream)
{
	void *into = stream_of(d, stream);

	if (bytes)
		check(d, d->call.copy_to_device_async((DeviceAddress)(uintptr_t)to, from, bytes, into), "copy to the device");
}

void driver_download_begin(Driver *d, void *to, const void *from, uint64_t bytes, GpuStream stream)
{
	void *into = stream_of(d, stream);

	if (bytes)
		check(d, d->call.copy_to_host_async(to, (DeviceAddress)(uintptr_t)from, bytes, into), "copy from the device");
}

void driver_download(const Driver *d, void *to, const void *from, uint64_t bytes)
{
	d->call.context_set(d->context);
	check(d, d->call.synchronize(), "job");
	if (bytes)
		check(d, d->call.copy_to_host(to, (DeviceAddress)(uintptr_t)from, bytes), "copy from the device");
}

/* ---- kernels ---- */

void driver_load(const Driver *d, const char *text, GpuKernel *k)
{
	d->call.context_set(d->context);
	load_text(d, text, &k->module);
	check(d, d->call.module_function(&k->function, k->module, "microprop_train"), "kernel");
	check(d, d->call.function_set_attribute(k->function, FUNCTION_SHARED, (int)k->shared), "memory of blocks");
}

void driver_unload(const Driver *d, GpuKernel *k)
{
	d->call.context_set(d->context);
	d->call.module_unload(k->module);
}

/* A cooperative launch of blocks in clusters. */
static LaunchConfig cluster_config(const GpuKernel *k, uint32_t blocks, LaunchAttribute attribute[2])
{
	attribute[0] = (LaunchAttribute){ .id = LAUNCH_CLUSTER, .value.cluster = { k->cluster, 1, 1 } };
	attribute[1] = (LaunchAttribute){ .id = LAUNCH_COOPERATIVE, .value.cooperative = 1 };
	return (LaunchConfig){ .grid = { blocks, 1, 1 },
		                   .block = { k->threads, 1, 1 },
		                   .shared = k->shared,
		                   .attribute = attribute,
		                   .attributes = 2 };
}

bool driver_clusters_fit(const Driver *d, const GpuKernel *k, uint32_t blocks)
{
	LaunchAttribute attribute[2];
	LaunchConfig c = cluster_config(k, blocks, attribute);
	int fit = 0;

	c.attributes = 1;
	d->call.context_set(d->context);
	if (d->call.function_set_attribute(k->function, FUNCTION_LARGE_CLUSTERS, 1))
		return false;
	return !d->call.max_active_clusters(&fit, k->function, &c) && (uint32_t)fit * k->cluster >= blocks;
}

void driver_wait(const Driver *d)
{
	d->call.context_set(d->context);
	check(d, d->call.synchronize(), "job");
}

void driver_start(Driver *d, const GpuKernel *k, const void *job, uint32_t blocks, GpuStream stream)
{
	void *argument[] = { (void *)job }, *into = stream_of(d, stream);
	LaunchAttribute attribute[2];

	if (k->cluster > 1) {
		LaunchConfig c = cluster_config(k, blocks, attribute);
		assert(stream == STREAM_COMPUTE);
		check(d, d->call.launch_ex(&c, k->function, argument, NULL), "launch");
	} else {
		check(d, d->call.launch_cooperative(k->function, blocks, 1, 1, k->threads, 1, 1, k->shared, into, argument),
		      "launch");
	}
}

void driver_copies_wait(const Driver *d)
{
	d->call.context_set(d->context);
	if (d->copies)
		check(d, d->call.stream_synchronize(d->copies), "copy to the device");
}

void *driver_event(const Driver *d, Arena *owner)
{
	enum { NO_TIMING = 2 };
	Owned *o = owned_new(d, owner, OWNED_EVENT);

	check(d, d->call.event_create(&o->handle, NO_TIMING), "event");
	owned_keep(owner, o);
	return o->handle;
}

void driver_event_record(const Driver *d, void *event)
{
	d->call.context_set(d->context);
	check(d, d->call.event_record(event, NULL), "event");
}

void driver_event_wait(const Driver *d, void *event)
{
	d->call.context_set(d->context);
	check(d, d->call.event_synchronize(event), "job");
}
