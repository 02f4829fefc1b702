/* SPDX-License-Identifier: MIT */
/* Jobs. In: a request (Work) on the bound data. Out: a launch: which examples belong to which update, leaf and
 * chunk; how blocks are divided into teams; tables and parameters on the device; then its results. */
#include <assert.h>
#include <string.h>

#include "cuda.h"
#include "emit.h"

enum {
	SEQUENCES = 4,  /* networks in time: chunks have so many times as many rows, so that a time step has enough */
	LEAST_ROWS = 32 /* of a chunk, however little memory there is */
};
enum { CLUSTER_WORK = 1500000 }; /* links times rows of a block up to which a faster barrier beats more blocks */
enum {
	JOB_UPDATES = 1 << 15,    /* of a launch, at most: 5 to 20 us each */
	LISTED_UPDATES = 1 << 12, /* the same, if index lists by input are made before the launch */
	/* of a job whose order of examples is prepared while the one before runs */
	LEAST_PREPARED = 64,         /* updates */
	PREPARED_EXAMPLES = 1 << 18, /* examples, but not fewer updates than LEAST_PREPARED */
	PREPARED_GROWTH = 4          /* updates, as a multiple of all before: nothing runs beside the first jobs */
};

/* ---- shape ---- */

/* A team per leaf, while there are blocks. Blocks are divided evenly, but each has at least Gpu.min_block_work. */
void shape_choose(const Cuda *c, uint64_t rows, uint32_t leaves, uint32_t blocks, uint32_t *teams,
                  uint32_t *team_blocks)
{
	uint64_t least = c->gpu ? c->gpu->min_block_work : MIN_BLOCK_WORK;
	uint64_t useful = max_u64(1, rows * c->net->links / least);

	*teams = min_u32(leaves, blocks);
	*team_blocks = (uint32_t)min_u64(blocks / *teams, min_u64(useful, max_u64(rows, 1)));
	if (c->gpu && c->gpu->max_team_blocks)
		*team_blocks = min_u32(*team_blocks, c->gpu->max_team_blocks);
	if (c->gpu && c->gpu->max_cluster && *teams == 1 && rows * c->net->links / c->gpu->max_cluster < CLUSTER_WORK)
		*team_blocks = min_u32(*team_blocks, c->gpu->max_cluster); /* one cluster */
}

static uint64_t row_bytes(const Cuda *c) { return (uint64_t)c->job.cols * sizeof(float) * c->job.bufs + 64; }

/* Rows of a chunk: what the device is made for, or what a quarter of the memory holds. */
static uint32_t rows_wanted(const Cuda *c, uint32_t teams)
{
	uint64_t rows = c->net->timed ? max_u64(SEQUENCES * c->gpu->chunk_rows, c->bound->longest) : c->gpu->chunk_rows;
	uint64_t least = c->net->timed ? c->bound->longest : LEAST_ROWS;

	while (rows > least && rows * teams * row_bytes(c) > c->gpu->memory / 4)
		rows = max_u64(rows / 2, least);
	if (rows * teams * row_bytes(c) > c->gpu->memory / 2 || rows > UINT32_MAX / 2)
		fail(c->cx, MP_BAD_INPUT, "use --target cpu", "%s has too little memory for the activations of %llu cases",
		     c->gpu->name, (unsigned long long)(rows * teams));
	return (uint32_t)round_up(rows, 16); /* Job.row_error is read in quads */
}

void row_buffers_reserve(Cuda *c)
{
	Job *j = &c->job;
	uint32_t teams = min_u32(leaf_count(c->bound->examples), c->gpu->blocks), rows = rows_wanted(c, teams);
	uint32_t words = c->bound->csr.used ? (uint32_t)ceil_div(max_u64(rows, j->row_capacity), 32) : 0;

	if (c->row_teams < teams || j->row_capacity < rows || j->mask_words < words || !j->buf[BUF_ACT]) {
		uint64_t all;
		teams = max_u32(teams, c->row_teams);
		j->row_capacity = max_u32(rows, j->row_capacity);
		j->mask_words = max_u32(words, j->mask_words);
		all = (uint64_t)teams * j->row_capacity;
		device_free(&c->rows);
		j->buf[0] = device_alloc(&c->rows, j->bufs * all * j->cols * sizeof(float));
		for (uint32_t i = 1; i < j->bufs; i++)
			j->buf[i] = j->buf[i - 1] + all * j->cols;
		for (int i = 0; i < 2 && c->bf16; i++)
			j->half_buf[i] = device_alloc(&c->rows, (all * j->cols + 64) * sizeof(uint16_t));
		j->row_error = device_alloc(&c->rows, all * sizeof(float));
		j->verdict = device_alloc(&c->rows, all);
		j->mask = device_alloc(&c->rows, (uint64_t)teams * c->net->inputs * j->mask_words * sizeof(uint32_t));
		c->row_teams = teams;
	}
}

/* Sums of all leaves of an update, or of as many as a quarter of the memory holds: then they join in waves. */
static void sums_reserve(Cuda *c, uint32_t leaves)
{
	Job *j = &c->job;
	uint32_t slices = c->bf16 ? BF16_SLICES : 1, sums = c->bf16 ? 2 : 1; /* bf16: a sum per slice of a leaf */
	uint64_t bytes = (c->floats + 16) * sizeof(float) * slices;

	while (sums < leaves && sums < c->gpu->max_sums && (2 * sums) * bytes <= c->gpu->memory / 4)
		sums *= 2;
	if (sums > j->sums) {
		j->sum = device_alloc(&c->weights, (uint64_t)sums * slices * c->floats * sizeof(float));
		j->sums = sums;
	}
	if (leaves > j->sums && !j->stack)
		j->stack = device_alloc(&c->weights, JOIN_LEVELS * c->floats * sizeof(float));
}

/* ---- schedule ---- */

/* One more element of `size` bytes. */
static void *push(Cuda *c, HostArray *a, size_t size)
{
	if (a->count == a->capacity)
		a->at = arena_reserve(&c->cx->keep, a->at, a->count, &a->capacity, size);
	return (char *)a->at + a->count++ * size;
}

/* The place of a case in the slot of a streamed job. Ticks of one case follow each other: they share it. */
static uint64_t push_slot_case(Cuda *c, uint64_t number)
{
	HostArray *slot = &c->schedule->slot;

	if (!slot->count || ((const uint64_t *)slot->at)[slot->count - 1] != number)
		*(uint64_t *)push(c, slot, sizeof number) = number;
	return slot->count - 1;
}

/* A row: tick `tick` of `ticks` of a case, step `step` of `steps` of the sequence that the case is in. */
static void push_row(Cuda *c, uint64_t number, uint32_t tick, uint32_t ticks, uint64_t step, uint64_t steps)
{
	Schedule *s = c->schedule;
	const TickPlan *t = &c->bound->ticks;
	bool cut = step + 1 == steps || !ticks_carry(t, step), last = tick + 1 == ticks;
	bool watched = c->watch.units.count && c->watch.tick != LAST_TICK ? tick == c->watch.tick : last;
	uint64_t at = c->bound->streamed ? push_slot_case(c, number) : number;

	if (c->noise)
		*(RowNumber *)push(c, &s->number, sizeof(RowNumber)) = (RowNumber){ .number = number, .tick = tick };
	*(uint32_t *)push(c, &s->cases, sizeof(uint32_t)) =
		(uint32_t)at | (cut ? ROW_CUT : 0) | (tick < t->targets_from ? ROW_NO_TARGETS : 0) |
		(tick >= t->inputs_end ? ROW_NO_INPUTS : 0) | (last ? 0 : ROW_NOT_LAST) | (watched ? 0 : ROW_NOT_WATCHED);
}

static void push_step_at(Cuda *c)
{
	Schedule *s = c->schedule;

	*(uint32_t *)push(c, &s->step_at, sizeof(uint32_t)) = (uint32_t)s->step_row.count;
}

static void push_leaf(Cuda *c, DeviceLeaf leaf) { *(DeviceLeaf *)push(c, &c->schedule->leaf, sizeof leaf) = leaf; }
static void push_chunk(Cuda *c, DeviceChunk chunk)
{
	*(DeviceChunk *)push(c, &c->schedule->chunk, sizeof chunk) = chunk;
}

static void push_update(Cuda *c, DeviceUpdate update)
{
	*(DeviceUpdate *)push(c, &c->schedule->update, sizeof update) = update;
}

static uint64_t example_number(const Work *w, uint64_t i) { return w->example ? w->example[i] : w->first + i; }

/* The share of every block of a team, which takes whole sequences: its rows by time step. begin: [examples + 1] first
 * row of each sequence. */
static void slices_make(Cuda *c, const uint32_t *begin, uint32_t examples)
{
	Schedule *s = c->schedule;

	for (uint32_t member = 0; member < c->team_blocks; member++) {
		uint32_t first = (uint32_t)((uint64_t)examples * member / c->team_blocks);
		uint32_t end = (uint32_t)((uint64_t)examples * (member + 1) / c->team_blocks), steps = 0;
		DeviceSlice slice = { .first = begin[first], .rows = begin[end] - begin[first], .step_at = s->step_at.count };
		for (uint32_t e = first; e < end; e++)
			steps = max_u32(steps, begin[e + 1] - begin[e]);
		for (uint32_t time = 0; time < steps; time++) {
			push_step_at(c);
			for (uint32_t e = first; e < end; e++)
				if (begin[e] + time < begin[e + 1])
					*(uint32_t *)push(c, &s->step_row, sizeof(uint32_t)) = begin[e] + time;
		}
		push_step_at(c);
		slice.steps = steps;
		*(DeviceSlice *)push(c, &s->slice, sizeof slice) = slice;
	}
}

/* Is each example one row, whose number is that of its case, with the flags of any other? */
static bool rows_plain(const Cuda *c)
{
	return c->bound->longest == 1 && !c->net->timed && !c->noise && !c->bound->streamed &&
	       run_examples(c->net, c->bound->source) == c->bound->source->cases;
}

/* Examples i .. end - 1, which are plain rows, as a leaf of one chunk. */
static void leaf_plain(Cuda *c, const Work *w, uint64_t i, uint64_t end)
{
	Schedule *s = c->schedule;
	DeviceLeaf leaf = { .chunk = s->chunk.count, .chunks = 1 };
	uint64_t at = s->cases.count, first = w->first + i, rows = end - i;
	const uint64_t *from = w->example ? w->example + i : NULL;

	push_chunk(c, (DeviceChunk){ .cases = at, .rows = (uint32_t)rows, .fresh = true, .slice = s->slice.count });
	push_leaf(c, leaf);
	push_row(c, example_number(w, i), 0, 1, 0, 1);
	while (at + rows > s->cases.capacity)
		s->cases.at = arena_reserve(&c->cx->keep, s->cases.at, s->cases.capacity, &s->cases.capacity, sizeof(uint32_t));
	uint32_t *to = (uint32_t *)s->cases.at + at, flags = *to & ~ROW_CASE;
	for (uint64_t n = 1; n < rows; n++)
		to[n] = (uint32_t)(from ? from[n] : first + n) | flags;
	s->cases.count = at + rows;
}

/* Examples i .. end - 1 as a leaf. Sequences are not divided between chunks. */
static void leaf_make(Cuda *c, const Work *w, uint64_t i, uint64_t end)
{
	if (rows_plain(c) && end > i && end - i <= c->job.row_capacity) {
		leaf_plain(c, w, i, end);
		return;
	}
	Schedule *s = c->schedule;
	bool whole = c->net->timed != 0;
	uint32_t *begin = whole ? NEW(&c->temp, c->job.row_capacity + 1, uint32_t) : NULL, examples = 0;
	DeviceLeaf leaf = { .chunk = s->chunk.count };
	DeviceChunk chunk = { .cases = s->cases.count, .fresh = true };

	if (w->networks && w->networks->cases &&
	    end - i <= c->job.row_capacity) { /* numbers of cases are the network's own */
		chunk.rows = (uint32_t)(end - i);
		s->cases.count += end - i;
		i = end;
	}
	for (; i < end; i++) {
		uint64_t first, count;
		run_example(c->net, c->bound->source, example_number(w, i), &first, &count);
		uint32_t tick = 0, ticks = ticks_case(&c->bound->ticks, c->bound->source, first);
		uint64_t rows = ticks_example(&c->bound->ticks, c->bound->source, first, count);
		for (uint64_t k = 0; k < rows; k++) {
			if (chunk.rows && chunk.rows + (whole && !k ? rows : 1) > c->job.row_capacity) {
				chunk.slice = s->slice.count;
				if (whole)
					slices_make(c, begin, examples);
				push_chunk(c, chunk);
				chunk = (DeviceChunk){ .cases = s->cases.count };
				examples = 0;
			}
			if (whole && !k)
				begin[examples++] = chunk.rows;
			push_row(c, first, tick, ticks, k, rows);
			if (++tick == ticks && k + 1 < rows) {
				tick = 0;
				ticks = ticks_case(&c->bound->ticks, c->bound->source, ++first);
			}
			chunk.rows++;
			if (whole)
				begin[examples] = chunk.rows;
		}
	}
	chunk.slice = s->slice.count;
	if (whole)
		slices_make(c, begin, examples);
	push_chunk(c, chunk);
	leaf.chunks = (uint32_t)(s->chunk.count - leaf.chunk);
	push_leaf(c, leaf);
}

/* Update `number` of the job, on `count` examples from `at` on. */
static void update_make(Cuda *c, const Work *w, uint64_t at, uint64_t count, uint64_t number, bool ends)
{
	Schedule *s = c->schedule;
	uint32_t leaves = leaf_count(count), from = w->leaf_first, end = w->leaf_end ? w->leaf_end : leaves;
	DeviceUpdate u = {
		.leaf = s->leaf.count, .leaves = end - from, .param = w->same ? 0 : (uint32_t)number, .ends_epoch = ends
	};

	for (uint32_t leaf = from; leaf < end; leaf++) {
		uint64_t first, n;
		leaf_range(count, leaves, leaf, &first, &n);
		leaf_make(c, w, at + first, at + first + n);
	}
	push_update(c, u);
}

/* Is the schedule of every epoch the same? */
static bool work_repeats(const Work *w)
{
	return !w->example && !w->done && w->same && w->mode == JOB_UPDATE && !(w->networks && w->networks->cases);
}

/* `count`, rounded down to the end of an epoch if it reaches one: then the next job starts with an empty tally. */
static uint64_t epochs_cut(const Work *w, uint64_t count)
{
	uint64_t each = ceil_div(w->examples, w->batch), left = ceil_div(w->examples - w->done, w->batch);

	return count < left || !each ? count : left + (count - left) / each * each;
}

/* Does the device have the tables of this job? A schedule that repeats depends on nothing but the key. */
static bool tables_kept(Cuda *c, const Work *w)
{
	Schedule *s = c->schedule;
	const TickPlan *t = &c->bound->ticks;
	uint64_t key[SCHEDULE_KEY] = {
		w->examples,          w->batch,      min_u64(w->count, ceil_div(w->examples, w->batch)),
		w->leaf_first,        w->leaf_end,   c->job.row_capacity,
		c->watch.units.count, c->watch.tick, t->targets_from,
		t->inputs_end,
	};
	bool same = s->reusable && memcmp(s->key, key, sizeof key) == 0;

	s->reusable = work_repeats(w) && !w->networks && rows_plain(c);
	memcpy(s->key, key, sizeof key);
	return same && s->reusable;
}

/* Updates of a job with an order of examples. The next job is prepared while this one runs: that is hidden if jobs do
 * not grow too fast. */
static uint64_t prepared_updates(const Work *w)
{
	uint64_t most = max_u64(LEAST_PREPARED, PREPARED_EXAMPLES / w->batch);

	return min_u64(most, max_u64(LEAST_PREPARED, PREPARED_GROWTH * w->passed));
}

static void schedule_clear(Schedule *s)
{
	HostArray *all[] = { &s->update, &s->leaf,    &s->chunk,    &s->slice, &s->cases,
		                 &s->number, &s->step_at, &s->step_row, &s->slot };

	for (size_t i = 0; i < COUNT(all); i++)
		all[i]->count = 0;
}

/* Returns the updates of the job. If epochs are alike, the schedule has those of one. kept: the device has its
 * tables. */
static uint64_t schedule_make(Cuda *c, const Work *w, bool *kept)
{
	Schedule *s = c->schedule;
	uint64_t each = max_u64(1, w->batch * c->net->links), most = max_u64(1, (uint64_t)(JOB_WORK / (double)each));
	bool one_epoch =
		work_repeats(w) && ceil_div(w->examples, w->batch) <= LISTED_UPDATES; /* then only its lists are made */
	bool listed = c->bound->csr.has_padded && !one_epoch;
	uint64_t count = min_u64(w->count, min_u64(most, listed ? LISTED_UPDATES : JOB_UPDATES)), done = w->done, at = 0;

	if (w->networks) /* whole epochs */
		count = w->count;
	else if (w->example)
		count = epochs_cut(w, min_u64(count, prepared_updates(w)));
	else if (count < w->count) /* so that the next job can use the same schedule */
		count = epochs_cut(w, count);
	if (w->lazy)
		w->lazy->prepare(w->lazy->of, w->passed + count);

	if (c->bound->streamed && w->mode == JOB_UPDATE)
		count = min_u64(count, max_u64(1, c->bound->slot_cases / (w->batch * c->bound->longest)));

	*kept = tables_kept(c, w);
	if (*kept)
		return count;
	schedule_clear(s);
	if (w->mode == JOB_APPLY) {
		push_update(c, (DeviceUpdate){ 0 });
		return 1;
	}
	for (uint64_t k = 0; k < count; k++) {
		uint64_t n = min_u64(w->batch, w->examples - done);
		bool ends = done + n == w->examples;
		update_make(c, w, w->example ? at : done, n, k, ends);
		at += n;
		done = ends ? 0 : done + n;
		if (ends && work_repeats(w))
			break;
	}
	return count;
}

/* ---- the job ---- */

/* Parameters of updates: [count][P_COUNT]. */
static const double *params_of(Cuda *c, const Work *w, uint64_t *count)
{
	if (w->networks && w->networks->param) {
		*count = w->networks->count * w->networks->params;
		return w->networks->param;
	}
	*count = w->update ? (w->same ? 1 : min_u64(w->count, c->schedule->update.count)) : 0;
	double *param = NEW(&c->temp, *count * P_COUNT + 1, double);

	for (uint64_t k = 0; k < *count; k++)
		memcpy(param + k * P_COUNT, w->update[k].param, sizeof w->update[k].param);
	return param;
}

/* Job.counted: updates whose rows are scored (right, within). Work.few_counts: those of the last epoch that ends in the
 * job, of an epoch that ends in a later job, and of epochs whose counts are always reported. */
static const uint8_t *counted_make(Cuda *c, const Work *w, uint64_t updates)
{
	uint64_t each = ceil_div(w->examples, w->batch), left = ceil_div(w->examples - w->done, w->batch);
	uint64_t ended = updates < left ? 0 : 1 + (updates - left) / each, at = 0;
	uint8_t *counted = NEW(&c->temp, updates + 1, uint8_t);

	for (uint64_t i = 0; at < updates; i++) {
		uint64_t some = min_u64(i ? each : left, updates - at);
		memset(counted + at, !w->few_counts || i + 1 >= ended || epoch_counted(w->epoch + i + 1), some);
		at += some;
	}
	return counted;
}

/* Parts of the call, one after the other in one buffer. */
static void parts_layout(Cuda *c, const Work *w, uint64_t updates, CallPart part[PARTS])
{
	Schedule *s = c->schedule;
	uint64_t params, n = 0;
	const double *param = params_of(c, w, &params);
	const Networks *o = w->networks;
	uint64_t networks = o ? o->count : 1, cases = o && o->cases ? 0 : s->cases.count;
	const CallPart all[PARTS] = {
		[PART_RESULT] = { o ? o->result : NULL, networks * sizeof(JobResult), 0 },
		[PART_TALLY] = { o ? o->tally : w->tally, (o ? networks * SOLO_EPOCHS : w->epochs) * sizeof *w->tally, 0 },
		[PART_BARRIER] = { NULL, (2 + TEAM_BARRIERS * (uint64_t)c->teams) * sizeof(uint32_t), 0 },
		[PART_COUNTED] = { o || !w->examples ? NULL : counted_make(c, w, updates), o ? 0 : updates, 0 },
		[PART_UPDATE] = { s->update.at, s->update.count * sizeof(DeviceUpdate), 0 },
		[PART_LEAF] = { s->leaf.at, s->leaf.count * sizeof(DeviceLeaf), 0 },
		[PART_CHUNK] = { s->chunk.at, s->chunk.count * sizeof(DeviceChunk), 0 },
		[PART_SLICE] = { s->slice.at, s->slice.count * sizeof(DeviceSlice), 0 },
		[PART_CASES] = { s->cases.at, cases * sizeof(uint32_t), 0 },
		[PART_NUMBER] = { s->number.at, s->number.count * sizeof(RowNumber), 0 },
		[PART_STEP_AT] = { s->step_at.at, s->step_at.count * sizeof(uint32_t), 0 },
		[PART_STEP_ROW] = { s->step_row.at, s->step_row.count * sizeof(uint32_t), 0 },
		[PART_PARAM] = { param, params * P_COUNT * sizeof *param, 0 },
	};

	for (int i = 0; i < PARTS; i++) {
		part[i] = all[i];
		part[i].at = n;
		n = round_up(n + part[i].bytes, 64);
	}
	if (n > s->capacity) {
		s->capacity = 2 * n;
		s->device = device_alloc(&c->calls, s->capacity);
		s->host = gpu_host_memory(&c->calls, s->capacity);
		s->tables_at = 0;
	}
	s->used = n;
}

static void *part_address(const Cuda *c, const CallPart *p) { return (char *)c->schedule->device + p->at; }

/* overlapped: another job may be running. kept: the device has the tables. */
static void call_upload(Cuda *c, const CallPart part[PARTS], bool overlapped, bool kept)
{
	Schedule *s = c->schedule;
	uint64_t changing = part[PART_UPDATE].at;

	kept = kept && s->tables_at == changing;
	s->tables_at = changing;
	memset(s->host, 0, changing);
	for (int i = 0; i < (kept ? PART_UPDATE : PARTS); i++)
		if (part[i].from && part[i].bytes)
			memcpy(s->host + part[i].at, part[i].from, part[i].bytes);
	gpu_upload_begin(c->gpu, s->device, s->host, kept ? changing : s->used, overlapped ? STREAM_COPY : STREAM_COMPUTE);
}

static void output_reserve(Cuda *c, const Work *w, Job *j)
{
	uint64_t n = w->out_cases * j->watched_count, unused;

	j->out = NULL;
	if (!w->out)
		return;
	if (!c->bound->streamed) /* cases of a slot are numbered from 0 */
		run_example(c->net, c->bound->source, w->first, &j->out_first, &unused);
	if (n > c->outputs.device_capacity) {
		c->outputs.device = device_alloc(&c->calls, n * sizeof *c->outputs.device);
		c->outputs.device_capacity = n;
	}
	j->out = c->outputs.device;
}

static void job_fill(Cuda *c, const Work *w, Job *j, uint64_t updates)
{
	const DeviceBound *b = c->bound;

	j->mode = w->mode;
	j->teams = c->teams;
	j->team_blocks = c->team_blocks;
	j->list = w->mode == JOB_TEST ? b->test : b->learn;
	j->data = b->data;
	j->middle = b->middle;
	j->no_targets = b->no_targets;
	j->right_here = b->right_here;
	j->threshold = (float)c->opt->threshold;
	j->pending_full = c->pending_full && w->mode == JOB_SUM;
	j->updates = updates;
	j->updates_cycle = max_u64(1, c->schedule->update.count);
	j->until_error = w->until ? w->until->error : -1; /* never reached */
	j->until_right = j->until_within = 2;
	if (w->until) {
		j->until_right = w->until->right;
		j->until_within = w->until->within;
	}
	j->verdicts_from = w->verdicts_from;
	j->leaf_tally = c->device_tally;
	j->noise = c->noise;
	j->seed = (uint64_t)c->opt->seed;
	j->first_update = w->mode == JOB_TEST ? NO_UPDATE : w->first_update;
	if (!j->noise)
		j->noisy = j->noisy_copies = NULL;
}

/* Arrays of networks that teams train. */
static void networks_fill(const Networks *s, Job *j, uint64_t cases)
{
	j->w = s->w;
	j->copies = s->copies;
	j->half = s->half;
	memcpy(j->state, s->state, sizeof s->state);
	j->row_error = s->row_error;
	j->verdict = s->verdict;
	j->leaf_tally = s->leaf_tally;
	j->network_cases = s->cases ? cases * sizeof(uint32_t) : 0;
	j->network_params = s->param ? s->params * P_COUNT * sizeof(double) : 0;
}

/* ---- a job is prepared, started, finished ---- */

/* Updates with an order of examples are pipelined: while one job runs, the schedule of the next is made and copied to
 * the device, which makes its index lists by input. */
static bool is_pipelined(const Work *w) { return w->mode == JOB_UPDATE && w->example && !w->networks; }

static uint32_t csc_blocks(const Cuda *c, const JobRun *r) { return min_u32(c->gpu->blocks, r->job.leaves); }

/* Divides the blocks into teams. all, leaves: of an update, of those that this request is for */
static void teams_form(Cuda *c, const Work *w, uint64_t examples, uint32_t all, uint32_t leaves)
{
	if (w->networks) {
		c->teams = w->networks->count;
		c->team_blocks = 1;
		return;
	}
	shape_choose(c, examples / all * c->bound->longest, leaves, c->gpu->blocks, &c->teams, &c->team_blocks);
	if (c->bf16) { /* a block has a slice of the leaf, or more */
		uint64_t slices = ceil_div(max_u64(1, ceil_div(examples, all)), bf16_slice_rows(all));
		c->team_blocks = min_u32(c->team_blocks, (uint32_t)slices);
	}
	assert(c->teams <= c->row_teams);
}

/* Addresses of the parts of the call. */
static void parts_use(const Cuda *c, const Work *w, const CallPart part[PARTS], Job *j)
{
	j->result = part_address(c, &part[PART_RESULT]);
	j->tally = part_address(c, &part[PART_TALLY]);
	j->barrier = part_address(c, &part[PART_BARRIER]);
	j->update = part_address(c, &part[PART_UPDATE]);
	j->leaf = part_address(c, &part[PART_LEAF]);
	j->chunk = part_address(c, &part[PART_CHUNK]);
	j->slice = part_address(c, &part[PART_SLICE]);
	j->cases = w->networks && w->networks->cases ? w->networks->cases : part_address(c, &part[PART_CASES]);
	j->numbers = part_address(c, &part[PART_NUMBER]);
	j->step_at = part_address(c, &part[PART_STEP_AT]);
	j->step_row = part_address(c, &part[PART_STEP_ROW]);
	j->counted = part_address(c, &part[PART_COUNTED]);
	j->param = part_address(c, &part[PART_PARAM]);
}

/* Fills in the other one of two schedules, since a job of this one may be running. */
bool job_prepare(Cuda *c, const Work *w, JobRun *r)
{
	Job *j = &r->job;
	uint64_t count = min_u64(w->batch, w->examples);
	uint32_t all = max_u32(1, leaf_count(count)), leaves = w->leaf_end ? w->leaf_end - w->leaf_first : all;
	bool kept;

	*r = (JobRun){ .work = *w, .overlapped = is_pipelined(w) };
	c->schedule = r->schedule = &c->schedules[c->schedule == c->schedules];
	c->noise = c->net->noisy && w->mode != JOB_APPLY && (w->mode != JOB_TEST || c->opt->noise);
	teams_form(c, w, count, all, leaves);
	r->updates = schedule_make(c, w, &kept);
	if (w->mode != JOB_TEST)
		sums_reserve(c, leaves);
	*j = c->job;
	output_reserve(c, w, j);
	job_fill(c, w, j, r->updates);
	r->kernel = generated_kernel(c, w, j, &r->csc_kernel);
	if (!r->kernel) {
		arena_free(&c->temp);
		return false;
	}
	if (w->networks)
		networks_fill(w->networks, j, c->schedule->cases.count);
	parts_layout(c, w, r->updates, r->part);
	parts_use(c, w, r->part, j);
	if (c->bound->streamed)
		slot_fill(c, c->schedule == c->schedules ? 0 : 1, r->schedule->slot.at, r->schedule->slot.count, &j->data);
	call_upload(c, r->part, r->overlapped || w->networks || c->bound->streamed, kept);
	if (r->csc_kernel && r->overlapped)
		gpu_start(c->gpu, r->csc_kernel, j, csc_blocks(c, r), STREAM_COPY);
	arena_free(&c->temp);
	return true;
}

void job_start(Cuda *c, JobRun *r, const Tally *tally)
{
	if (!r->work.networks)
		weights_upload(c);
	gpu_copies_wait(c->gpu);
	const CallPart *p = &r->part[PART_TALLY];
	Schedule *s = r->schedule;
	if (tally && memcmp(s->host + p->at, tally, p->bytes) != 0) { /* changed by the job before */
		memcpy(s->host + p->at, tally, p->bytes);
		gpu_upload_begin(c->gpu, (char *)s->device + p->at, s->host + p->at, p->bytes, STREAM_COMPUTE);
	}
	if (r->csc_kernel && !r->overlapped)
		gpu_start(c->gpu, r->csc_kernel, &r->job, csc_blocks(c, r), STREAM_COMPUTE);
	gpu_start(c->gpu, r->kernel, &r->job, r->job.teams * r->job.team_blocks, STREAM_COMPUTE);
	gpu_download_begin(c->gpu, s->host, s->device, p->at + p->bytes, STREAM_COMPUTE);
	if (r->event)
		gpu_event_record(c->gpu, r->event);
}

uint64_t job_finish(Cuda *c, JobRun *r)
{
	const Work *w = &r->work;
	const CallPart *tally = &r->part[PART_TALLY];
	Schedule *s = r->schedule;
	JobResult result;

	if (r->event)
		gpu_event_wait(c->gpu, r->event);
	else
		gpu_wait(c->gpu);
	memcpy(&result, s->host, sizeof result);
	memcpy(w->networks ? w->networks->tally : w->tally, s->host + tally->at, tally->bytes);
	if (w->networks)
		memcpy(w->networks->result, s->host, r->part[PART_RESULT].bytes);
	if (w->out)
		gpu_download(c->gpu, w->out, r->job.out, w->out_cases * r->job.watched_count * sizeof *w->out);
	c->infinite |= result.infinite != 0 && !w->networks;
	c->last = result;
	return result.done;
}

uint64_t work_run(Cuda *c, const Work *w)
{
	JobRun r;

	if ((c->bound->streamed && w->mode != JOB_APPLY) || is_pipelined(w))
		return stream_run(c, w);
	bool covered = job_prepare(c, w, &r);
	assert(covered && !w->networks);
	(void)covered;
	job_start(c, &r, NULL);
	return job_finish(c, &r);
}
