/* SPDX-License-Identifier: MIT */
/* The GPU, through the driver's own library, found when the program runs. In: PTX text of kernels.
 * Out: memory and launches. Nothing of NVIDIA's toolkit is needed to build or to run.
 *
 * The driver compiles PTX for the GPU that is there. Must hold: blocks of a launch run at the same time, since they
 * wait for each other; a cooperative launch guarantees it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

enum {
	THREADS = 512,
	ATTRIBUTE_MULTIPROCESSORS = 16,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76,
	ATTRIBUTE_COOPERATIVE = 95,
	ATTRIBUTE_SHARED = 97, /* bytes that a block may ask for */
	ATTRIBUTE_CLUSTERS = 120,
	FUNCTION_SHARED = 8,
	FUNCTION_LARGE_CLUSTERS = 14,
	LAUNCH_COOPERATIVE = 2,
	LAUNCH_CLUSTER = 4,
	MOST_CLUSTER = 16,
	CLUSTER_VERSION = 12010, /* of the driver: its PTX has barriers of clusters */
	OLDEST_MAJOR = 8,
	JIT_ERROR_LOG = 5,
	JIT_ERROR_LOG_BYTES = 6
};

typedef uint64_t DeviceAddress;
/* Those of cuLaunchKernelEx. */
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

typedef struct Calls {
	int (*init)(unsigned);
	int (*version)(int *);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*attribute)(int *, int, int);
	int (*memory)(size_t *, int);
	int (*retain)(void **, int);
	int (*release)(int);
	int (*current)(void *);
	int (*load)(void **, const void *, unsigned, int *, void **);
	int (*unload)(void *);
	int (*function)(void **, void *, const char *);
	int (*set_function)(void *, int, int);
	int (*alloc)(DeviceAddress *, size_t);
	int (*drop)(DeviceAddress);
	int (*to_device)(DeviceAddress, const void *, size_t);
	int (*to_host)(void *, DeviceAddress, size_t);
	int (*set)(DeviceAddress, unsigned char, size_t, void *);
	int (*alloc_host)(void **, size_t);
	int (*drop_host)(void *);
	int (*new_stream)(void **, unsigned);
	int (*drop_stream)(void *);
	int (*wait_stream)(void *);
	int (*to_device_begin)(DeviceAddress, const void *, size_t, void *);
	int (*to_host_begin)(void *, DeviceAddress, size_t, void *);
	int (*new_event)(void **, unsigned);
	int (*drop_event)(void *);
	int (*record_event)(void *, void *);
	int (*wait_event)(void *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
	int (*launch_clusters)(const LaunchConfig *, void *, void **, void **); /* these two: NULL before CUDA 11.8 */
	int (*fitting_clusters)(int *, void *, const LaunchConfig *);
	int (*wait)(void);
	int (*error)(int, const char **);
} Calls;

static const struct {
	const char *name;
	size_t at;
	bool newer; /* older drivers do not have it */
} call_names[] = {
	{ "cuInit", offsetof(Calls, init), false },
	{ "cuDriverGetVersion", offsetof(Calls, version), false },
	{ "cuDeviceGetCount", offsetof(Calls, count), false },
	{ "cuDeviceGet", offsetof(Calls, get), false },
	{ "cuDeviceGetName", offsetof(Calls, name), false },
	{ "cuDeviceGetAttribute", offsetof(Calls, attribute), false },
	{ "cuDeviceTotalMem_v2", offsetof(Calls, memory), false },
	{ "cuDevicePrimaryCtxRetain", offsetof(Calls, retain), false },
	{ "cuDevicePrimaryCtxRelease_v2", offsetof(Calls, release), false },
	{ "cuCtxSetCurrent", offsetof(Calls, current), false },
	{ "cuModuleLoadDataEx", offsetof(Calls, load), false },
	{ "cuModuleUnload", offsetof(Calls, unload), false },
	{ "cuModuleGetFunction", offsetof(Calls, function), false },
	{ "cuFuncSetAttribute", offsetof(Calls, set_function), false },
	{ "cuMemAlloc_v2", offsetof(Calls, alloc), false },
	{ "cuMemFree_v2", offsetof(Calls, drop), false },
	{ "cuMemcpyHtoD_v2", offsetof(Calls, to_device), false },
	{ "cuMemcpyDtoH_v2", offsetof(Calls, to_host), false },
	{ "cuMemsetD8Async", offsetof(Calls, set), false },
	{ "cuMemAllocHost_v2", offsetof(Calls, alloc_host), false },
	{ "cuMemFreeHost", offsetof(Calls, drop_host), false },
	{ "cuStreamCreate", offsetof(Calls, new_stream), false },
	{ "cuStreamDestroy_v2", offsetof(Calls, drop_stream), false },
	{ "cuStreamSynchronize", offsetof(Calls, wait_stream), false },
	{ "cuMemcpyHtoDAsync_v2", offsetof(Calls, to_device_begin), false },
	{ "cuMemcpyDtoHAsync_v2", offsetof(Calls, to_host_begin), false },
	{ "cuEventCreate", offsetof(Calls, new_event), false },
	{ "cuEventDestroy_v2", offsetof(Calls, drop_event), false },
	{ "cuEventRecord", offsetof(Calls, record_event), false },
	{ "cuEventSynchronize", offsetof(Calls, wait_event), false },
	{ "cuLaunchCooperativeKernel", offsetof(Calls, launch), false },
	{ "cuLaunchKernelEx", offsetof(Calls, launch_clusters), true },
	{ "cuOccupancyMaxActiveClusters", offsetof(Calls, fitting_clusters), true },
	{ "cuCtxSynchronize", offsetof(Calls, wait), false },
	{ "cuGetErrorString", offsetof(Calls, error), false },
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
	if (d->call.error(status, &text) || !text)
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
		if (!call && !call_names[i].newer)
			gpu_refuse(d->gpu, gpu_old_driver);
		memcpy((char *)&d->call + call_names[i].at, &call, sizeof call);
	}
}

static int attribute(const Driver *d, int which)
{
	int value = 0;

	check(d, d->call.attribute(&value, which, d->device), "attribute");
	return value;
}

static void choose_device(Driver *d)
{
	Gpu *m = d->gpu;
	int count = 0;
	size_t bytes = 0;

	if (d->call.init(0) || d->call.count(&count) || !count)
		gpu_refuse(m, gpu_none);
	check(d, d->call.get(&d->device, gpu_number(m, count)), "device");
	check(d, d->call.name(m->name, sizeof m->name, d->device), "name");
	if (attribute(d, ATTRIBUTE_MAJOR) < OLDEST_MAJOR || !attribute(d, ATTRIBUTE_COOPERATIVE))
		gpu_refuse(m, "the GPU is too old: compute capability 8.0 or later is needed");
	check(d, d->call.memory(&bytes, d->device), "memory");
	m->memory = bytes;
	m->blocks = (uint32_t)attribute(d, ATTRIBUTE_MULTIPROCESSORS);
	m->emit_threads = THREADS;
	m->emit_shared = (uint32_t)attribute(d, ATTRIBUTE_SHARED);
	int version = 0;
	if (!d->call.version(&version) && version >= CLUSTER_VERSION && d->call.launch_clusters &&
	    d->call.fitting_clusters && attribute(d, ATTRIBUTE_CLUSTERS))
		m->most_cluster = MOST_CLUSTER;
	m->groups = m->most_cluster && attribute(d, ATTRIBUTE_MAJOR) == 9 && attribute(d, ATTRIBUTE_MINOR) == 0;
}

static void load_text(const Driver *d, const void *text, void **module)
{
	enum { LOG_BYTES = 4096 };
	char *log = NEW(&d->gpu->cx->scratch, LOG_BYTES, char); /* not static: threads may have a run each */
	int option[] = { JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES };
	void *value[] = { log, (void *)(uintptr_t)LOG_BYTES };

	if (d->call.load(module, text, COUNT(option), option, value)) {
		log[strcspn(log, "\n")] = 0;
		fail(d->gpu->cx, MP_BAD_INPUT, "update the NVIDIA driver, or use --target cpu",
		     "target cuda: the driver does not accept the kernel: %s", log);
	}
}

static void driver_close(void *arg)
{
	Driver *d = arg;

	if (d->context) {
		d->call.current(d->context);
		if (d->copies)
			d->call.drop_stream(d->copies);
		d->call.current(NULL);
		d->call.release(d->device);
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
	check(d, d->call.retain(&d->context, d->device), "context");
	check(d, d->call.current(d->context), "context");
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

	call->current(o->driver->context);
	switch (o->kind) {
	case OWNED_MEMORY: call->drop(o->memory); break;
	case OWNED_PINNED: call->drop_host(o->handle); break;
	case OWNED_EVENT: call->drop_event(o->handle); break;
	}
}

/* Makes the context current. The caller fills in what it got from the driver, then calls owned_keep. */
static Owned *owned_new(const Driver *d, Arena *owner, OwnedKind kind)
{
	Owned *o = NEW(owner, 1, Owned);

	d->call.current(d->context);
	*o = (Owned){ .driver = d, .kind = kind };
	return o;
}

static void owned_keep(Arena *owner, Owned *o) { arena_defer(owner, owned_free, o); }

/* NULL: the default stream, with which a non-blocking one is not ordered. Created when it is first used. */
static void *stream_of(Driver *d, GpuStream which)
{
	enum { NON_BLOCKING = 1 };

	d->call.current(d->context);
	if (which == STREAM_COMPUTE)
		return NULL;
	if (!d->copies)
		check(d, d->call.new_stream(&d->copies, NON_BLOCKING), "stream");
	return d->copies;
}

void *driver_alloc(Driver *d, Arena *owner, uint64_t bytes)
{
	Owned *o = owned_new(d, owner, OWNED_MEMORY);

	if (d->call.alloc(&o->memory, bytes))
		gpu_no_memory(d->gpu, bytes);
	owned_keep(owner, o);
	void *stream = stream_of(d, STREAM_COPY); /* the default stream may be running a job */
	check(d, d->call.set(o->memory, 0, bytes, stream), "clearing memory");
	check(d, d->call.wait_stream(stream), "clearing memory");
	return (void *)(uintptr_t)o->memory;
}

void *driver_host_memory(const Driver *d, Arena *owner, uint64_t bytes)
{
	Owned *o = owned_new(d, owner, OWNED_PINNED);

	if (d->call.alloc_host(&o->handle, bytes))
		return NULL;
	owned_keep(owner, o);
	return o->handle;
}

void driver_upload(const Driver *d, void *to, const void *from, uint64_t bytes)
{
	d->call.current(d->context);
	if (bytes)
		check(d, d->call.to_device((DeviceAddress)(uintptr_t)to, from, bytes), "copy to the device");
}

void driver_upload_begin(Driver *d, void *to, const void *from, uint64_t bytes, GpuStream stream)
{
	void *into = stream_of(d, stream);

	if (bytes)
		check(d, d->call.to_device_begin((DeviceAddress)(uintptr_t)to, from, bytes, into), "copy to the device");
}

void driver_download_begin(Driver *d, void *to, const void *from, uint64_t bytes, GpuStream stream)
{
	void *into = stream_of(d, stream);

	if (bytes)
		check(d, d->call.to_host_begin(to, (DeviceAddress)(uintptr_t)from, bytes, into), "copy from the device");
}

void driver_download(const Driver *d, void *to, const void *from, uint64_t bytes)
{
	d->call.current(d->context);
	check(d, d->call.wait(), "job");
	if (bytes)
		check(d, d->call.to_host(to, (DeviceAddress)(uintptr_t)from, bytes), "copy from the device");
}

/* ---- kernels ---- */

void driver_load(const Driver *d, const char *text, GpuKernel *k)
{
	d->call.current(d->context);
	load_text(d, text, &k->module);
	check(d, d->call.function(&k->function, k->module, "microprop_train"), "kernel");
	check(d, d->call.set_function(k->function, FUNCTION_SHARED, (int)k->shared), "memory of blocks");
}

void driver_unload(const Driver *d, GpuKernel *k)
{
	d->call.current(d->context);
	d->call.unload(k->module);
}

/* Blocks in clusters, all of which run at the same time. */
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
	d->call.current(d->context);
	if (d->call.set_function(k->function, FUNCTION_LARGE_CLUSTERS, 1))
		return false;
	return !d->call.fitting_clusters(&fit, k->function, &c) && (uint32_t)fit * k->cluster >= blocks;
}

void driver_wait(const Driver *d)
{
	d->call.current(d->context);
	check(d, d->call.wait(), "job");
}

void driver_start(Driver *d, const GpuKernel *k, const void *job, uint32_t blocks, GpuStream stream)
{
	void *argument[] = { (void *)job }, *into = stream_of(d, stream);
	LaunchAttribute attribute[2];

	if (k->cluster > 1) {
		LaunchConfig c = cluster_config(k, blocks, attribute);
		assert(stream == STREAM_COMPUTE);
		check(d, d->call.launch_clusters(&c, k->function, argument, NULL), "launch");
	} else {
		check(d, d->call.launch(k->function, blocks, 1, 1, k->threads, 1, 1, k->shared, into, argument), "launch");
	}
}

void driver_copies_wait(const Driver *d)
{
	d->call.current(d->context);
	if (d->copies)
		check(d, d->call.wait_stream(d->copies), "copy to the device");
}

void *driver_event(const Driver *d, Arena *owner)
{
	enum { NO_TIMING = 2 };
	Owned *o = owned_new(d, owner, OWNED_EVENT);

	check(d, d->call.new_event(&o->handle, NO_TIMING), "event");
	owned_keep(owner, o);
	return o->handle;
}

void driver_event_record(const Driver *d, void *event)
{
	d->call.current(d->context);
	check(d, d->call.record_event(event, NULL), "event");
}

void driver_event_wait(const Driver *d, void *event)
{
	d->call.current(d->context);
	check(d, d->call.wait_event(event), "job");
}
