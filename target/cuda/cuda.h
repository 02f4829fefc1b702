/* SPDX-License-Identifier: MIT */
/* cuda: networks on a GPU, with the bits of target cpu.
 *
 *   plan --target cpu--> its program: layout, steps --lower.c--> steps of the device
 *   data --data.c--> arrays of cases, weights --weights.c--> device memory
 *   requests --stream.c, schedule.c--> Job --generate.c--> kernel (emit/, columns/, lanes/)
 *   Job and kernel --gpu.c--> a GPU (driver.c) or its emulation (ptx/)
 *
 * A job is a launch of one persistent kernel, which makes many updates. The program of target cpu holds the weights, in
 * the same layout, while the device does not. */
#ifndef CUDA_H
#define CUDA_H

#include "job.h"
#include "target.h"

/* ---- options.c: options of this target ---------------------------------------------------------- */

typedef struct CudaOptions {
#include "option_fields.inc"
#include "options.def"
} CudaOptions;
extern const OptionTable cuda_options;
static inline CudaOptions *cuda_own(const Options *o) { return options_of(o, &cuda_options); }

/* ---- environment.c: variables for tests and experiments ---------------------------------------- */

uint64_t environment_number(Ctx *cx, const char *name, uint64_t usual); /* usual: if it is not set */
typedef enum DeviceKind {
	DEVICE_GPU,
	DEVICE_SMALL, /* a GPU, but with the limits of the emulated device */
	DEVICE_EMULATED
} DeviceKind;
DeviceKind environment_kind(Ctx *cx, uint64_t *seed);                /* MICROPROP_CUDA */
bool environment_fault(Ctx *cx, const char *word, uint64_t *number); /* is MICROPROP_CUDA_FAULT WORD, or WORD:NUMBER? */

/* ---- gpu.c, driver.c: a GPU, or its emulation ------------------------------------------------ */

typedef struct Driver Driver;
typedef struct Gpu {
	Ctx *cx;        /* its messages go there */
	int64_t device; /* number of the GPU, or INT_AUTO */
	bool planned;   /* no device: kernels are generated and printed, never run; allocations are addresses only */
	Driver *driver; /* NULL: emulated */
	char name[128];
	uint64_t memory;        /* bytes */
	uint32_t blocks;        /* that are resident at the same time: multiprocessors */
	uint32_t block_threads; /* of a launch, at most */
	uint32_t block_shared;  /* bytes of shared memory of a block, at most */
	uint32_t max_cluster;   /* blocks of a cluster; 0: no clusters, no bulk copies */
	bool has_wgmma;         /* compute capability 9.0: products of warpgroups */
	/* limits of a division of work into teams and chunks */
	uint64_t min_block_work;  /* links times rows; another block does not pay for less */
	uint32_t max_team_blocks; /* 0: any number */
	uint32_t chunk_rows;      /* rows of a chunk */
	uint32_t max_sums;        /* leaf sums that are kept at the same time: a power of two */
	/* of a planned or emulated device */
	uint64_t seed;               /* schedule of the emulated warps */
	struct Emulator *emulator;   /* NULL: a driver, or planned */
	uint64_t allocated;          /* planned: bytes handed out */
	uint64_t allocations, calls; /* emulated faults: requests and calls so far */
	bool lost;                   /* emulated faults: every later call fails */
} Gpu;
/* Where there is no GPU, plans and predictions are for an H200. */
enum {
	H200_BLOCKS = 132,
	H200_CLUSTER = 16,
	MIN_BLOCK_WORK = 16384 /* Gpu.min_block_work of GPUs */
};
Gpu *gpu_open(Ctx *cx, int64_t device); /* fails if there is none; closed with cx->keep */
Gpu *gpu_plan(Ctx *cx, int64_t device); /* sizes of that device or, if there is none, of an H200 */

/* Allocations that are freed together. */
typedef struct DeviceMemory {
	Gpu *gpu;
	Arena arena;
} DeviceMemory;
void *device_alloc(DeviceMemory *m, uint64_t bytes);                 /* zeroed; fails if there is not enough */
void *device_put(DeviceMemory *m, const void *from, uint64_t bytes); /* a copy on the device */
void device_free(DeviceMemory *m);
void gpu_upload(Gpu *m, void *to, const void *from, uint64_t bytes);
void gpu_download(Gpu *m, void *to, const void *from, uint64_t bytes);
typedef struct GpuKernel {
	void *module, *function;  /* of the driver, or of the emulator */
	uint32_t threads, shared; /* of a block; bytes */
	uint32_t cluster;         /* blocks of a cluster; 0: no clusters */
	const char *text;         /* PTX, of a planned device; else NULL */
} GpuKernel;
/* Loads PTX text. Unloaded with the arena of `owner`. */
void gpu_load(DeviceMemory *owner, const char *text, size_t len, GpuKernel *k);
bool gpu_clusters_fit(Gpu *m, const GpuKernel *k, uint32_t blocks); /* are all clusters resident at once? */
bool is_folder(const char *dump); /* MICROPROP_CUDA_DUMP ends with a slash: gpu_load writes every text there */
/* Two streams: work of one is done in the order of the calls, work of both overlaps. Calls that end in _begin, and
 * gpu_start, return at once. */
typedef enum GpuStream { STREAM_COMPUTE, STREAM_COPY } GpuStream;
void gpu_start(Gpu *m, const GpuKernel *k, const void *job, uint32_t blocks, GpuStream stream); /* job: on the host */
void gpu_upload_begin(Gpu *m, void *to, const void *from, uint64_t bytes, GpuStream stream);
void gpu_download_begin(Gpu *m, void *to, const void *from, uint64_t bytes, GpuStream stream); /* to pinned memory */
void gpu_wait(Gpu *m);                                                                         /* for both streams */
void gpu_copies_wait(Gpu *m);                                                                  /* for STREAM_COPY */
/* Events of STREAM_COMPUTE. */
void *gpu_event(DeviceMemory *owner);       /* freed with owner */
void gpu_event_record(Gpu *m, void *event); /* it is set when all work so far is done */
void gpu_event_wait(Gpu *m, void *event);
void *gpu_host_memory(DeviceMemory *owner, uint64_t bytes); /* pinned memory of the host; freed with owner */

Driver *driver_open(Gpu *m);                                 /* fills in what the device has: name, sizes, features */
void *driver_alloc(Driver *d, Arena *owner, uint64_t bytes); /* zeroed; freed with the arena */
void driver_upload(const Driver *d, void *to, const void *from, uint64_t bytes);
void driver_download(const Driver *d, void *to, const void *from, uint64_t bytes);
void driver_load(const Driver *d, const char *text, GpuKernel *k);
void driver_unload(const Driver *d, GpuKernel *k);
void driver_start(Driver *d, const GpuKernel *k, const void *job, uint32_t blocks, GpuStream stream);
void driver_upload_begin(Driver *d, void *to, const void *from, uint64_t bytes, GpuStream stream);
void driver_download_begin(Driver *d, void *to, const void *from, uint64_t bytes, GpuStream stream);
void driver_wait(const Driver *d);
void driver_copies_wait(const Driver *d);
void *driver_event(const Driver *d, Arena *owner);
void driver_event_record(const Driver *d, void *event);
void driver_event_wait(const Driver *d, void *event);
bool driver_clusters_fit(const Driver *d, const GpuKernel *k, uint32_t blocks);
void *driver_host_memory(const Driver *d, Arena *owner, uint64_t bytes); /* NULL: there is none */

/* ---- failure.c ---- */

_Noreturn void gpu_refuse(const Gpu *m, const char *why); /* the device cannot be opened */
_Noreturn void gpu_no_memory(const Gpu *m, uint64_t bytes);
_Noreturn void gpu_failed(const Gpu *m, const char *what, const char *text);    /* a call failed after it was opened */
extern const char *const gpu_no_driver, *const gpu_old_driver, *const gpu_none; /* reasons to refuse */
int gpu_number(const Gpu *m, int count);                                        /* which of `count` devices to use */
/* Emulated faults: MICROPROP_CUDA_FAULT. */
void fault_open(const Gpu *m);
void fault_alloc(Gpu *m, uint64_t bytes);
void fault_call(Gpu *m, const char *word, const char *what); /* word: copy or job; what: for the message */

/* ---- what is bound; lower.c ---- */

/* Arrays of cases, as DeviceData has them. NULL: this data has none. */
typedef struct CaseArrays {
	uint64_t cases;   /* capacity of arrays by case */
	uint64_t entries; /* capacity of index and value: numbers of all index lists */
	float *x, *value, *y, *weight;
	uint64_t *from;
	uint32_t *index, *bits, *y_bits;
	uint16_t *short_list, *xh;
	CodeOwn *own;
} CaseArrays;
/* One of the buffers that streamed data passes through. */
typedef struct DataSlot {
	CaseArrays host, device;
} DataSlot;
enum { SLOTS = 2 };

/* Index lists of cases (CSR), where inputs are such. */
typedef struct CsrShape {
	bool used;
	bool has_values;  /* else all values are 1 */
	bool has_padded;  /* also as DeviceData.short_list: 16-bit indices, padded to the same length */
	uint64_t entries; /* of all cases */
	uint32_t longest; /* entries of a case, at most */
} CsrShape;

/* Tables of code words, on the host. */
typedef struct CodeTables {
	const CodeSum *sum;
	const CodeElement *element;
	uint32_t longest; /* elements of a sum, at most */
	float twice;      /* factor that all elements have; 0: they differ */
	bool bits;        /* words are 0s and 1s, 64 at most */
	CodeOwn *own;     /* [cases]; NULL: the task has no code words */
} CodeTables;

/* Data that is bound, and what was derived from it. */
typedef struct DeviceBound {
	const Data *source; /* NULL: nothing is bound here */
	DeviceMemory memory;
	DeviceData data;
	CsrShape csr;
	CodeTables codes;
	uint64_t examples;
	uint64_t longest; /* cases of an example, at most */
	uint64_t bytes;   /* of the device, for cases */
	TickPlan ticks;
	const float *no_targets; /* device: a row of NaNs */
	float middle;            /* of the range of targets: decides a single output */
	bool right_here;         /* as in Job */
	bool has_y_bits;         /* all targets are 0 or 1, 32 at most */
	bool has_weight;         /* cases have weights */
	/* streamed: data is larger than the memory and passes through slots of slot_cases cases */
	bool streamed;
	DataSlot slot[SLOTS];
	uint64_t slot_cases;
	/* steps */
	DeviceList learn, test;
	const DeviceStep *learn_step, *test_step; /* host copies of both */
	struct CachedKernel *kernels;             /* generate.c */
} DeviceBound;
enum { DEVICE_BOUNDS = 2 }; /* training data and test data */

/* A growable array on the host. */
typedef struct HostArray {
	void *at;
	uint64_t count, capacity;
} HostArray;

/* A schedule: which examples belong to which update, leaf and chunk; rows by time step. */
enum { SCHEDULE_KEY = 10 };
typedef struct Schedule {
	HostArray update;   /* DeviceUpdate */
	HostArray leaf;     /* DeviceLeaf */
	HostArray chunk;    /* DeviceChunk */
	HostArray slice;    /* DeviceSlice */
	HostArray cases;    /* uint32_t: as Job.cases */
	HostArray number;   /* RowNumber: as cases; only with noise */
	HostArray step_at;  /* uint32_t: as Job.step_at */
	HostArray step_row; /* uint32_t: as Job.step_row */
	HostArray slot;     /* uint64_t: numbers of the cases that go to the slot; only of streamed data */
	/* parts of a call, one after the other, on the device and in pinned memory; results return to the latter */
	void *device;
	uint8_t *host;
	uint64_t capacity, used; /* bytes */
	/* Tables that are the same in the next job stay on the device. */
	bool reusable;
	uint64_t key[SCHEDULE_KEY]; /* what these tables depend on */
	uint64_t tables_at;         /* bytes: where the device has them; 0: it has none */
	uint8_t *images;            /* Job.images */
	uint64_t images_capacity;
} Schedule;

/* What the host knows of the layout of target cpu: constants of the kernels. */
typedef struct LayoutTables {
	const void *layout; /* of target cpu, that the tables were made of */
	/* [panels] by number in the layout */
	uint64_t *transposed_at;  /* place of the transposed matrix in Job.copies; NO_COPY: there is none */
	uint32_t *transposed_row; /* floats of a row there */
	uint32_t *panel_number;   /* in Job.panel */
	/* host copies of tables that Job has */
	const DevicePanel *panel;
	const NoisyPanel *noisy_panel;
	const InputColumns *input;
	const uint32_t *ones, *output;
	const LinkClass *factor; /* [factors] */
	uint32_t factors;
	const NoiseClass *noise_class; /* [noise_classes]; Job has its numbers, by place */
	uint32_t noise_classes;
	uint32_t step_variable; /* of the rule's formula: the last change of a weight; 0: the rule has none */
} LayoutTables;

typedef struct Cuda {
	Ctx *cx;
	const Net *net;
	const Options *opt;
	const Rule *rule;
	Formula formula;
	Program *cpu;               /* target cpu: layout, steps; holds the weights while the device does not */
	Gpu *gpu;                   /* NULL: nothing was bound yet */
	bool bf16;                  /* option precision */
	DeviceMemory weights;       /* weights, rule state, sums and their tables */
	DeviceMemory rows;          /* row buffers */
	DeviceMemory calls;         /* schedules, results, outputs */
	Job job;                    /* what all jobs have in common */
	uint64_t floats;            /* of the weights, with padding */
	uint64_t transposed_floats; /* of all transposed matrices */
	LayoutTables tables;
	uint32_t row_teams;         /* teams that there are row buffers for */
	uint64_t exchange_capacity; /* bytes of Job.exchange */
	uint64_t posted_capacity;   /* bytes of Job.posted */
	void *device_tally;         /* [MAX_LEAVES] tallies of the leaves of a job */
	DeviceBound bindings[DEVICE_BOUNDS], *bound;
	Schedule schedules[SLOTS]; /* alternate: one is filled while the job of the other runs */
	Schedule *schedule;        /* of the last job */
	Arena temp;                /* freed when a call ends */
	Arena temp_sums;           /* stream.c: sums of leaves on the host, freed when a call ends */
	bool noise;                /* the job that is being prepared has noise */
	/* Which copy of weights and rule state is newer than the other one. */
	bool device_newer, host_newer;
	bool pending_full; /* Job.pending holds a sum that was not applied yet */
	bool infinite;     /* some weight on the device is not finite */
	struct {
		float *device, *host;
		uint64_t device_capacity, host_capacity; /* floats */
	} outputs;                                   /* of a test */
	struct {
		Span units; /* whose activations a test returns; count 0: outputs */
		uint32_t tick;
		Tally *cases; /* NULL, or where a test returns tallies of cases */
	} watch;
	struct {
		bool attached;
		struct Monitor *monitor; /* NULL: no guard */
		float *sum;              /* host copy of a sum */
		uint64_t floats;         /* its length */
		uint64_t pending;        /* checksum of Job.pending */
	} guard;
	struct {
		Tally *leaf_tally;     /* [MAX_LEAVES] of the last batch */
		float *sum[MOST_SUMS]; /* of maximal subtrees of this rank's leaves */
		float *total;          /* of the batch */
		uint64_t floats;       /* length of each */
	} ranks;
	/* the last job */
	uint32_t teams, team_blocks;
	JobResult last;
	double compile_seconds; /* of all kernels */
} Cuda;

void lower_data(Cuda *c, DeviceBound *b); /* of the data that target cpu has bound */
void lower_watched(Cuda *c, Span units);  /* columns of Cuda.watch */
const void *layout_of(const Program *cpu);
bool wants_bf16(const Options *o); /* bf16 */
uint16_t bf16_of(float x);         /* bf16, rounded to nearest even; NaN: 0x7fff */

/* ---- data.c ---- */

struct Part;
uint32_t bf16_words(const struct Part *t); /* bf16: words of a part of inputs in a row of DeviceData.bits */
void data_put(Cuda *c, DeviceBound *b);
/* Starts copies of `count` cases to a slot, by STREAM_COPY. d gets the addresses of the slot. */
void slot_fill(Cuda *c, uint32_t slot, const uint64_t *number, uint64_t count, DeviceData *d);

/* ---- weights.c ---- */

struct Panel; /* of target cpu */
uint32_t panel_rows(const struct Panel *p);
uint32_t panel_cols(const struct Panel *p);
void lower_weights(Cuda *c);    /* weights and their tables, for the layout that target cpu has now */
void weights_upload(Cuda *c);   /* if the host's are newer */
void weights_download(Cuda *c); /* if the device's are newer */
void weights_refresh(Cuda *c);  /* forms that target cpu derives from its weights */
/* Transposed matrices, and bf16 weights (0 for weights from the true unit), of weights w. Padding of `to` is not
 * set. */
void weights_transpose(const Cuda *c, const float *w, float *to);
void weights_round(const Cuda *c, const float *w, uint16_t *to);
void pending_download(const Cuda *c, double *v); /* Job.pending, in canonical order */

/* ---- lists.c ---- */

void csr_put(Cuda *c, DeviceBound *b, const Data *d); /* CsrShape, DeviceData.rank */

/* ---- schedule.c: jobs --------------------------------------------------------------------------- */

/* A request: train, sum a gradient, apply one, or test, on some examples. */
typedef struct Work {
	uint32_t mode;                 /* JOB_ */
	uint64_t examples;             /* of an epoch */
	uint64_t batch;                /* examples of an update */
	uint64_t count;                /* updates, at most */
	const uint64_t *example;       /* numbers of the examples, update by update; NULL: file order, */
	uint64_t first;                /* from this one on */
	uint64_t done;                 /* examples of the first epoch that came before */
	const Updates *lazy;           /* NULL, or has the hook that prepares more of `example` while jobs run */
	uint64_t passed;               /* updates of this request that were done */
	uint64_t first_update;         /* updates of the run before this request: for noise */
	const Update *update;          /* [count] parameters, */
	bool same;                     /* or [1], for all updates */
	uint32_t leaf_first, leaf_end; /* leaves of the update: a subtree, or any for a test; leaf_end 0: all */
	const Until *until;
	uint64_t epoch;         /* epochs before the first, and */
	bool few_counts;        /* which epochs need counts: as in Updates */
	uint64_t verdicts_from; /* as in Job */
	Tally *tally;           /* [epochs] added to */
	uint32_t epochs;
	float *out; /* test: host [out_cases][watched], or NULL */
	uint64_t out_cases;
	const struct Networks *networks; /* NULL, or each team trains a network of its own: block_restarts.c */
} Work;
/* Networks that a job trains side by side, one per team of one block. Device arrays begin with [networks]. */
typedef struct Networks {
	uint32_t count;
	float *w, *state[MAX_STATE]; /* device: [solo_floats] */
	float *copies;               /* device: [solo_copies] transposed weights */
	uint16_t *half;              /* device: [solo_floats] bf16 weights */
	float *row_error;            /* device: [row_capacity] */
	uint8_t *verdict;            /* device: [row_capacity] */
	Tally *leaf_tally;           /* device */
	const uint32_t *cases; /* device: [cases of the job] examples in the network's order; NULL: all have the same */
	const double *param;   /* [networks][params][P_COUNT] of its updates; NULL: all have the same */
	uint64_t params;
	JobResult *result; /* [networks] */
	Tally *tally;      /* [networks][SOLO_EPOCHS] */
} Networks;
/* Parts of a call: one buffer, copied to the device at once. The first two return. */
enum {
	PART_RESULT,
	PART_TALLY,
	PART_BARRIER,
	PART_COUNTED,
	PART_PARAM,
	PART_UPDATE, /* from here on: tables of the schedule, which may be the same in the next job */
	PART_LEAF,
	PART_CHUNK,
	PART_SLICE,
	PART_CASES,
	PART_NUMBER,
	PART_STEP_AT,
	PART_STEP_ROW,
	PARTS
};
typedef struct CallPart {
	const void *from; /* NULL: zeros */
	uint64_t bytes, at;
} CallPart;

/* A job that was prepared. */
typedef struct JobRun {
	Work work;
	Schedule *schedule;
	uint64_t updates;
	Job job;
	const GpuKernel *kernel;
	const GpuKernel *csc_kernel; /* NULL, or runs before: makes Job.images */
	bool overlapped;             /* prepared while another job may be running */
	void *event;                 /* set when the job is done; NULL: waiting for the device is enough */
	CallPart part[PARTS];
} JobRun;
#define JOB_WORK 4e11 /* links times cases of a launch: a fraction of a second, after which a stop is noticed */
bool job_prepare(Cuda *c, const Work *w, JobRun *r);    /* false: networks of their own that no kernel covers */
void job_start(Cuda *c, JobRun *r, const Tally *tally); /* tally: what Work.tally is by now; NULL: unchanged */
uint64_t job_finish(Cuda *c, JobRun *r);                /* returns updates done */
uint64_t work_run(Cuda *c, const Work *w);              /* all of a request; returns updates done */
void row_buffers_reserve(Cuda *c);                      /* for the bound data */
void shape_choose(const Cuda *c, uint64_t rows, uint32_t leaves, uint32_t blocks, uint32_t *teams,
                  uint32_t *team_blocks);

/* ---- stream.c ---- */

uint64_t stream_run(Cuda *c, const Work *w);     /* a request that takes several jobs */
bool stream_fits(const Cuda *c, uint64_t batch); /* do the cases of an update fit into a slot? */

/* ---- target.c, ranks.c, guard.c ---- */

Cuda *cuda_of(Program *p);
Work batch_work(uint32_t mode, const Batch *b, Tally *tally); /* a request for all of a batch */
void cpu_ready(Cuda *c); /* gives target cpu the weights of the device, and its data */
extern const RankHooks cuda_ranks;
extern const GuardHooks cuda_guard;
/* --guard full. */
void guard_pending(Cuda *c); /* Job.pending is complete: takes its checksum, */
void guard_verify(Cuda *c);  /* and compares it before the sum is applied */
/* After the sums of leaves first .. first + count - 1: takes the checksum of the leaf that the monitor asks for. */
void guard_summed(Cuda *c, const Work *w, uint32_t first, uint32_t count);

/* ---- restarts.c, lane_restarts.c, block_restarts.c ---- */

extern const RestartHooks cuda_restarts;
uint32_t host_threads(const Cuda *c); /* of target cpu's pool */
void host_run(const Cuda *c, PoolFn *fn, void *arg);
/* A thread, or a block, per seed. False: there is no kernel for this network; nothing was done. */
bool lanes_run(Cuda *c, Restarts *all);
bool blocks_run(Cuda *c, Restarts *all);
/* As far as it is known before data is bound: is a thread, or a block, enough for such a network? */
bool seed_suits_thread(const Net *net, const Options *o, const Data *d);
bool seed_suits_block(const Net *net, const Options *o, const Data *d);
enum {
	LANE_THREADS = 256, /* of a block: 255 registers each */
	LEAST_LANES = 256,  /* with fewer seeds, target cpu is faster than a thread per seed */
	LEAST_NETWORKS = 8  /* likewise a block per seed */
};

/* ---- predict.c ---- */

void cuda_predict(Ctx *cx, const TrainingWork *w, Prediction *p);
/* Kinds of kernels. The first remark of a kernel's text begins with the name. */
typedef enum CudaShape {
	SHAPE_COLUMNS,  /* columns/ */
	SHAPE_RESIDENT, /* emit/: weights in shared memory */
	SHAPE_TILES,    /* emit/: weights in global memory */
	SHAPE_GENERAL,  /* emit/: rows in global memory, too */
	SHAPE_SEEDS,    /* emit/: a network per block */
	SHAPE_LANES,    /* lanes/ */
	SHAPES
} CudaShape;
extern const char *const shape_names[SHAPES];
/* Of an update. */
typedef struct UpdateWork {
	bool bf16;
	uint32_t leaves, blocks;
	double operations; /* floating-point, of all rows */
	double steps;      /* time steps, one after the other */
} UpdateWork;
double update_seconds(CudaShape shape, const UpdateWork *u);

/* ---- listing.c ---- */

void device_print(Cuda *c,
                  Buf *out); /* the kernel for the bound data; without data, shapes for some numbers of leaves */

/* ---- generate.c ---- */

/* The kernel of a job: generated, compiled and loaded when it is first asked for. Sets what the job needs for it. NULL:
 * networks of their own that no kernel covers. csc_kernel: NULL, or runs before, to make Job.images. */
const GpuKernel *generated_kernel(Cuda *c, const Work *w, Job *j, const GpuKernel **csc_kernel);
/* MICROPROP_CUDA_DUMP=FILE: the text is written there, with the reason if it is the general kernel. */
void text_dump(Cuda *c, const Buf *text, const char *why);

#endif
