/* SPDX-License-Identifier: MIT */
/* The plan of a kernel. In: steps, shape. Out: which columns of rows, which weights and tables are in shared memory,
 * and where; which columns blocks exchange. Must hold: all offsets are multiples of 16 bytes. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit.h"
#include "units.h"

enum { MOST_CHUNKS = 16 };

uint64_t solo_floats(const Job *j) { return round_up(j->floats, 32) + 32; }
uint64_t solo_copies(uint64_t copies) { return round_up(copies, 32) + 32; }

/* Bytes from what one network has of an array to what the next has; 0: they share it. */
static uint64_t network_bytes(const Kernel *k, size_t field)
{
	const Job *j = k->s->job;

	for (uint32_t i = 0; i < MAX_STATE; i++)
		if (field == offsetof(Job, state) + i * sizeof(float *))
			return solo_floats(j) * sizeof(float);
	switch (field) {
	case offsetof(Job, w): return solo_floats(j) * sizeof(float);
	case offsetof(Job, half): return solo_floats(j) * sizeof(uint16_t);
	case offsetof(Job, copies): return solo_copies(k->s->copies) * sizeof(float);
	case offsetof(Job, result): return sizeof(JobResult);
	case offsetof(Job, tally): return SOLO_EPOCHS * sizeof(Tally);
	case offsetof(Job, leaf_tally): return sizeof(Tally);
	}
	return 0;
}

Reg pointer(const Kernel *k, size_t field)
{
	Reg d = reg(k->e, REG_D);
	uint64_t bytes = k->s->solo ? network_bytes(k, field) : 0;

	ins(k->e, "ld.param.u64 $, [job+#]", d, (uint32_t)field);
	if (k->s->solo && (field == offsetof(Job, cases) || field == offsetof(Job, param))) {
		Reg each = reg(k->e, REG_D), team = op1(k->e, REG_D, "cvt.u64.u32", k->team);
		ins(k->e, "ld.param.u64 $, [job+#]", each,
		    (uint32_t)(field == offsetof(Job, cases) ? offsetof(Job, network_cases) : offsetof(Job, network_params)));
		return op3(k->e, REG_D, "mad.lo.u64", team, each, d);
	}
	return bytes ? op3(k->e, REG_D, "mad.wide.u32", k->team, imm((uint32_t)bytes), d) : d;
}

/* ---- columns ---- */

static void use_columns(Kernel *k, uint32_t buf, uint32_t col, uint32_t count)
{
	for (uint32_t i = col / COLUMN_BLOCK; count && i <= (col + count - 1) / COLUMN_BLOCK; i++)
		k->map[buf][i] = 0;
}

static void note_access(Access *a, uint32_t *n, uint32_t buf, uint32_t col, uint32_t count, bool writes)
{
	if (buf < BUFS)
		a[(*n)++] = (Access){ buf, col, count, writes };
}

uint32_t step_access(const Kernel *k, const DeviceStep *s, Access a[8])
{
	uint32_t n = 0;
	const DeviceStep *late = deferred_errors(k, s);

	switch (s->kind) {
	case STEP_PRODUCT:
		note_access(a, &n, s->a, s->a_col, s->depth, false);
		if (!s->start)
			note_access(a, &n, s->c, s->c_col, s->cols, false);
		if (late) {
			note_access(a, &n, late->c, late->c_col, late->cols, true);
			break;
		}
		if (s->after == AFTER_DELTAS)
			note_access(a, &n, BUF_ACT, s->c_col, s->cols, false);
		if (s->keeps_net)
			note_access(a, &n, BUF_NET, s->c_col, s->cols, false);
		note_access(a, &n, s->c, s->c_col, s->cols, true);
		if (s->after == AFTER_UNITS)
			note_access(a, &n, BUF_ACT, s->c_col, s->cols, true);
		break;
	case STEP_INDEX:
		if (!s->start)
			note_access(a, &n, s->c, s->c_col, s->cols, false);
		note_access(a, &n, s->c, s->c_col, s->cols, true);
		break;
	case STEP_ONE: note_access(a, &n, BUF_ACT, s->c_col, 1, true); break;
	case STEP_UNITS:
		note_access(a, &n, s->a, s->a_col, s->cols, false);
		note_access(a, &n, s->c, s->c_col, s->cols, true);
		break;
	case STEP_ERRORS:
	case STEP_DELTAS:
		if (is_deferred(k, s))
			break; /* its product has them */
		note_access(a, &n, BUF_ACT, s->c_col, s->cols, false);
		if (s->keeps_net)
			note_access(a, &n, BUF_NET, s->c_col, s->cols, false);
		if (s->kind == STEP_DELTAS)
			note_access(a, &n, s->c, s->c_col, s->cols, false);
		note_access(a, &n, s->c, s->c_col, s->cols, true);
		break;
	case STEP_COPY_ERROR:
	case STEP_ADD_ERROR:
		note_access(a, &n, BUF_ERROR, s->c_col, s->cols, false);
		if (s->kind == STEP_ADD_ERROR)
			note_access(a, &n, BUF_DELTA, s->c_col, s->cols, false);
		note_access(a, &n, BUF_DELTA, s->c_col, s->cols, true);
		break;
	case STEP_ZERO: note_access(a, &n, s->c, s->c_col, s->cols, true); break;
	case STEP_GRADIENT: note_access(a, &n, s->a, s->a_col, s->depth, false); /* fall through */
	case STEP_GRADIENT_INDEX:
		note_access(a, &n, s->kind == STEP_GRADIENT ? s->c : BUF_DELTA, s->c_col, s->cols, false);
		break;
	}
	return n;
}

static void step_columns(Kernel *k, const DeviceStep *s)
{
	Access a[8];
	uint32_t n = step_access(k, s, a);

	for (uint32_t i = 0; i < n; i++)
		use_columns(k, a[i].buf, a[i].col, a[i].count);
	for (uint32_t i = 0; s->kind == STEP_LOAD && i < k->s->job->input_columns; i++)
		use_columns(k, BUF_ACT, k->s->input[i].col, k->s->input[i].count);
}

static void read_columns(Kernel *k, const DeviceStep *s)
{
	Access a[8];
	uint32_t n = step_access(k, s, a);

	for (uint32_t i = 0; i < n; i++)
		if (!a[i].writes)
			use_columns(k, a[i].buf, a[i].col, a[i].count);
}

bool is_row_step(const Kernel *k, uint32_t i)
{
	const DeviceStep *s = &k->s->step[i];

	if (!k->s->tiled)
		return true;
	return i < k->s->list->gradient && !is_wide(s) && s->kind != STEP_LOAD &&
	       !(s->kind == STEP_ONE && (!i || !is_row_step(k, i - 1)));
}

/* Columns of a gradient that reads rows; or that rows_exchange reads. */
static void gradient_columns(Kernel *k, uint32_t i)
{
	const DeviceStep *s = &k->s->step[i];
	Access a[8];
	uint32_t n = step_access(k, s, a);

	if (k->s->tiled)
		return;
	if (k->local || k->cut[i - k->s->list->gradient].inlined) {
		step_columns(k, s);
		return;
	}
	for (uint32_t x = 0; x < n; x++)
		for (uint32_t col = a[x].col / 4 * 4; col < a[x].col + a[x].count; col += 4)
			if (!stored_direct(k, a[x].buf, col))
				use_columns(k, a[x].buf, col, 4);
}

/* The last step of a chunk, if nothing but gradients after all chunks reads its results: none needs to wait for it. */
static uint32_t last_step(const Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t last = NO_STEP;
	bool inlined = false;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++)
		inlined |= k->cut[i].inlined;
	for (uint32_t i = 0; i < s->list->gradient; i++)
		if (s->step[i].kind != STEP_MARK && s->step[i].kind != STEP_SCORES && s->step[i].kind != STEP_CODES &&
		    !is_deferred(k, &s->step[i]))
			last = i;
	if (!inlined || !k->deferred_scores || last == NO_STEP || s->step[last].kind != STEP_PRODUCT ||
	    !only_exchanged(k, &s->step[last]))
		return NO_STEP;
	for (uint32_t i = 0; i < k->exchanges; i++)
		for (uint32_t q = 0; q < k->exchanged[i].quads; q++)
			if (!stored_direct(k, k->exchanged[i].buf, k->exchanged[i].col + 4 * q))
				return NO_STEP;
	return last;
}

/* Steps up to the only sum of index lists, if nothing else writes activations; else 0. */
static uint32_t first_steps(const Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t ahead = 0;

	for (uint32_t i = 0; i < s->list->gradient; i++) {
		const DeviceStep *d = &s->step[i];
		Access a[8];
		uint32_t n = step_access(k, d, a);
		if (d->kind == STEP_INDEX && !ahead && d->c == BUF_ACT && d->start)
			ahead = i + 1;
		else if (!ahead && d->kind != STEP_MARK && d->kind != STEP_ONE)
			return 0;
		for (uint32_t x = 0; x < n && i + 1 != ahead && d->kind != STEP_ONE; x++)
			if (a[x].writes && a[x].buf == BUF_ACT)
				return 0;
	}
	return ahead;
}

static void plan_columns(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t blocks = (uint32_t)ceil_div(s->job->cols, COLUMN_BLOCK) + 1, used = 0;

	for (int b = 0; b < BUFS; b++) {
		k->map[b] = NEW(&s->cx->scratch, blocks, uint16_t);
		memset(k->map[b], 0xff, blocks * sizeof **k->map);
	}
	for (uint32_t i = 0; i < s->list->gradient; i++)
		if (is_row_step(k, i) && !only_exchanged(k, &s->step[i]))
			step_columns(k, &s->step[i]);
		else if (is_row_step(k, i))
			read_columns(k, &s->step[i]);
	for (uint32_t i = s->list->gradient; i < s->list->steps && !s->test; i++)
		gradient_columns(k, i);
	for (int b = 0; b < BUFS; b++) {
		for (uint32_t i = 0; i < blocks; i++)
			if (k->map[b][i] != NO_BLOCK)
				k->map[b][i] = (uint16_t)used++;
		if (b == BUF_ACT && k->next_steps) { /* a second place for them */
			k->flipped = used * COLUMN_BLOCK * 4;
			used *= 2;
		}
	}
	k->row = (used * COLUMN_BLOCK + 4) * 4; /* rows begin in different banks */
}

uint32_t column_at(const Kernel *k, uint32_t buf, uint32_t col)
{
	if (k->s->general)
		return (buf * k->s->job->cols + col) * 4;
	assert(k->map[buf][col / COLUMN_BLOCK] != NO_BLOCK);
	return (k->map[buf][col / COLUMN_BLOCK] * COLUMN_BLOCK + col % COLUMN_BLOCK) * 4;
}

/* 0: rows do not have it, and the step does not use it. */
uint32_t column_of(const Kernel *k, uint32_t buf, uint32_t col)
{
	return k->map[buf][col / COLUMN_BLOCK] == NO_BLOCK ? 0 : column_at(k, buf, col);
}

/* ---- weights ---- */

const WeightRegion *region_of(const Kernel *k, const float *from)
{
	for (uint32_t i = 0; i < k->regions; i++) {
		const WeightRegion *r = &k->region[i];
		if (from >= r->from && from < r->from + (size_t)r->row * r->rows)
			return r;
	}
	return NULL;
}

uint32_t weight_at(const Kernel *k, const float *from)
{
	const WeightRegion *r = region_of(k, from);

	assert(r);
	return r->at + (uint32_t)(from - r->from) * 4;
}

static bool add_region(Kernel *k, const float *from, uint32_t row, uint32_t rows, bool padded)
{
	if (k->regions == WEIGHT_REGIONS || row % 4)
		return false;
	k->region[k->regions++] = (WeightRegion){ from, row, rows, 0, padded };
	return true;
}

/* Weights of a product, and the row after them if sums begin with it. */
static bool plan_weights(Kernel *k, const DeviceStep *s)
{
	const float *zero = k->s->job->zero;

	if (s->b != zero && !region_of(k, s->b)) {
		bool after = s->start == s->b + (size_t)s->depth * s->b_row;
		if (!add_region(k, s->b, s->b_row, s->depth + after, s->kind == STEP_INDEX))
			return false;
	}
	if (s->start && s->start != zero && !region_of(k, s->start))
		return add_region(k, s->start, (uint32_t)round_up(s->cols, 4), 1, false);
	return true;
}

/* ---- shared memory ---- */

static uint32_t take(Kernel *k, uint64_t bytes)
{
	uint32_t at = k->bytes;

	k->bytes = (uint32_t)min_u64(k->bytes + round_up(bytes, 16), UINT32_MAX / 2);
	return at;
}

static void take_weights(Kernel *k)
{
	k->bytes = (uint32_t)round_up(k->bytes, 128); /* copies of a warp are then full lines */
	for (uint32_t i = 0; i < k->regions; i++) {
		WeightRegion *r = &k->region[i];
		r->at = take(k, (uint64_t)(r->rows + r->padded) * r->row * 4);
	}
}

static void plan_memory(Kernel *k)
{
	const EmitSource *s = k->s;
	const DeviceData *d = &s->job->data;
	bool lists = d->from != NULL;

	uint64_t words = d->code_count && !k->deferred_scores ? d->part_count[0] + d->part_count[1] : 0;
	k->at_info = take(k, 64);
	if (s->solo)
		k->at_record = take(k, 2 * record_bytes());
	k->at_cycles = take(k, 8 * (1 + SPENT_KINDS + STEPS_TIMED));
	if (any_straight(k)) {
		k->at_cases = take(k, s->leaf_rows * 4);
		k->ring.at_bars = take(k, bars_bytes(k));
		k->ahead_ring.at_bars = take(k, bars_bytes(k));
		k->at_rows_bar = take(k, 8);
	}
	if (lists && !s->test) {
		k->csc_capacity = s->leaf_rows * s->list_longest + d->inputs * (LIST_PAD - 1) + 4 * LIST_PAD;
		k->at_rank = take(k, (uint64_t)d->inputs * 4);
		k->at_csc_start = take(k, (uint64_t)d->inputs * 4);
		k->at_csc = take(k, (uint64_t)k->csc_capacity * 2);
		k->at_turns = take(k, turns_bytes(k));
	}
	k->at_outputs = take(k, s->job->output_col ? 0 : s->job->outputs * 4);
	k->at_codes = take(k, words * 8);
	k->at_elements = take(k, words * s->code_longest * 4);
	k->has_codes = words != 0;
	if (k->overlaid)
		k->bytes = (uint32_t)round_up(k->bytes, 128); /* copies of a warp are then full lines */
	k->at_staged = k->bytes;
	k->list_row = (uint32_t)round_up(s->list_longest, LIST_PAD) * 2;
	k->at_lists = take(k, lists ? (uint64_t)k->list_row * (s->leaf_rows + 8) : 0);
	k->target_row = k->y_bits ? 4 : (uint32_t)(d->targets | 1) * 4;
	uint32_t rows = k->y_bits ? s->leaf_rows : k->row_space;
	k->at_targets = take(k, (uint64_t)k->target_row * rows + 16); /* quads past the last row are read */
	k->at_own = take(k, d->code_count ? rows * sizeof(CodeOwn) : 0);
	k->deferred_row = k->deferred_scores ? (deferred_at(k, NULL, false) / 16 | 1) * 16
	                                     : 0; /* quads of adjacent rows in different banks */
	k->at_deferred = take(k, (uint64_t)k->deferred_row * k->row_space);
	uint64_t doubles = tally_bytes(k);
	k->at_doubles =
		k->chunks == 1 && !k->overlaid && doubles && doubles <= k->bytes - k->at_deferred ? k->at_deferred : 0;
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	if (!k->overlaid)
		k->at_staged = k->bytes;
	if (!k->kept)
		take_weights(k);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	k->at_rows = k->at_mask = k->bytes;
	if (!k->overlaid && !k->restaged)
		k->at_staged = k->bytes;
	if (!s->tiled)
		take(k, (uint64_t)k->row * k->row_space);
}

/* Do sums of outputs tell most nearest code words? */
static bool sums_tell(const EmitSource *s)
{
	const DeviceData *d = &s->job->data;

	return d->code_count && d->largest_output < (double)INFINITY && s->code_twice != 0;
}

/* Of steps that only the general shape has, as a user knows them. */
const char *step_words(uint32_t kind)
{
	static const char *const words[STEP_KINDS] = {
		[STEP_SCATTER] = "index lists with values",
		[STEP_LINKS] = "single links",
		[STEP_GRADIENT_LINKS] = "single links",
		[STEP_CONTEXTS] = "contexts",
		[STEP_CARRY] = "contexts",
		[STEP_INTEGRATE] = "groups that integrate",
		[STEP_INTEGRATE_BACK] = "groups that integrate",
		[STEP_NOISE] = "noise or dropout",
		[STEP_GAIN] = "a gain",
		[STEP_NEAR] = "a radius of targets",
	};

	return words[kind] ? words[kind] : "a kind of step";
}

static const char *covered(const EmitSource *s)
{
	const Job *j = s->job;

	if (j->timed)
		return "contexts or ticks";
	if (j->noisy)
		return "noise of weights";
	if (j->data.value || (j->data.from && !j->data.short_list))
		return "index lists with values, or long ones";
	if ((s->leaf_rows > 512 && !s->tiled) || j->data.inputs > 60000)
		return "numbers of 16 bits";
	if ((!j->data.targets && !s->test) || j->input_columns == 0)
		return "no targets";
	if (j->data.code_count && !sums_tell(s))
		return "code words";
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		switch (d->kind) {
		case STEP_LOAD:
		case STEP_MARK:
		case STEP_PRODUCT:
		case STEP_INDEX:
		case STEP_UNITS:
		case STEP_ONE:
		case STEP_ERRORS:
		case STEP_SCORES:
		case STEP_CODES:
		case STEP_ZERO:
		case STEP_COPY_ERROR:
		case STEP_ADD_ERROR:
		case STEP_DELTAS:
		case STEP_GRADIENT:
		case STEP_GRADIENT_INDEX: break;
		default: return step_words(d->kind);
		}
	}
	return NULL;
}

/* Dense inputs of one group; rows of a block are few. */
static const char *plan_tiled(Kernel *k)
{
	const EmitSource *s = k->s;

	if (s->job->input_columns != 1 || s->job->data.from || k->chunks > 1)
		return "inputs";
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		Access a[8];
		uint32_t n = step_access(k, d, a);
		for (uint32_t x = 0; x < n; x++)
			if ((a[x].col % 4 && d->kind != STEP_ONE) ||
			    (is_row_step(k, i) && a[x].buf == BUF_ACT && a[x].col >= s->input->col &&
			     a[x].col < s->input->col + s->input->count))
				return "columns";
	}
	for (uint32_t i = 0; i < s->kinds_of_leaves; i++)
		if (s->leaves[i] > 4)
			return "leaves";
	k->at_cases = take(k, round_up((uint64_t)s->batch_rows * 4, 128));
	k->at_rows = k->at_staged = k->bytes;
	k->bytes = max_u32(k->at_rows + k->row * k->row_space, k->at_rows + tiles_plan(k));
	return k->bytes > s->shared ? "shared memory" : NULL;
}

static bool is_within(const float *from, uint64_t floats, const WeightRegion *r, bool *apart)
{
	const float *end = r->from + (size_t)r->row * r->rows;

	*apart = from >= end || from + floats <= r->from;
	return from >= r->from && from + floats <= end;
}

/* May weights stay in shared memory for the whole job? Updates then write to the regions that they are in. */
static bool can_keep(const Kernel *k)
{
	const EmitSource *s = k->s;
	const Job *j = s->job;

	if (!k->overlaid || s->test || s->bf16 || !j->data.from || s->kinds_of_leaves > 1 || s->leaves[0] > 1)
		return false;
	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++)
		if (!k->cut[i].inlined && s->step[s->list->gradient + i].kind != STEP_GRADIENT_INDEX)
			return false; /* its operands are staged wherever there is room */
	for (uint32_t i = 0; i < k->regions; i++)
		for (uint32_t n = 0; n < j->panels; n++) {
			const DevicePanel *p = &s->panel[n];
			bool apart;
			if (!is_within(j->w + p->at, p->size, &k->region[i], &apart) && !apart)
				return false;
			if (p->copy != NO_COPY &&
			    !is_within(j->copies + p->copy, (uint64_t)p->cols * p->copy_row, &k->region[i], &apart) && !apart)
				return false;
		}
	return true;
}

/* Rows of a block in so many chunks. */
static const char *plan_chunks(Kernel *k, uint32_t chunks)
{
	const EmitSource *s = k->s;

	k->chunks = chunks;
	k->block_rows = (uint32_t)ceil_div(ceil_div(s->tiled ? s->batch_rows : s->leaf_rows, s->team_blocks), chunks);
	k->workers = s->threads - TALLY_WARP;
	k->overlaid = s->solo;
	k->restaged = !s->solo && !s->tiled && max_u32(s->leaves[0], s->leaves[1]) <= s->teams;
	k->local = s->team_blocks == 1 && chunks == 1 && !k->overlaid;
	k->row_space = k->block_rows + 9; /* threads with several rows compute some in vain; one behind all is of use */
	if (k->local || k->overlaid || s->tiled) /* gradients read full turns */
		k->row_space = (uint32_t)round_up(k->block_rows + 8, ROWS_TURN) + 1;
	k->bytes = k->regions = k->exchanges = 0;
	if (s->list->steps - s->list->gradient > MOST_GRADIENTS)
		return "too many gradients";
	plan_deferred_scores(k);
	k->y_bits = k->overlaid && k->deferred_scores && s->job->data.y_bits && s->job->outputs <= 32;
	k->last = NO_STEP;
	k->next_steps = k->flipped = 0;
	if (k->deferred_scores && !k->overlaid && chunks == 1)
		k->workers = s->threads - min_u32((uint32_t)round_up(k->block_rows, 32), max_u32(s->threads / 128, 1) * 32);
	if (!s->tiled) {
		gradient_inline(k);
		gradient_ranges(k);
		if (!s->test && !plan_exchange(k))
			return "columns that are not aligned";
		if (!s->test)
			k->last = last_step(k);
		if (k->last != NO_STEP && chunks > 1 && k->y_bits)
			k->next_steps = first_steps(k);
	}
	k->early = s->job->data.x && !s->tiled && !s->test && !k->overlaid && chunks == 1;
	plan_columns(k);
	for (uint32_t i = 0; i < s->list->gradient; i++)
		if (is_row_step(k, i) && (s->step[i].kind == STEP_PRODUCT || s->step[i].kind == STEP_INDEX) &&
		    !plan_weights(k, &s->step[i]))
			return "weights";
	if (s->tiled) {
		plan_memory(k);
		return plan_tiled(k);
	}
	for (uint32_t kept = can_keep(k), bytes = k->bytes;; kept = 0, k->bytes = bytes) {
		k->kept = kept;
		plan_memory(k);
		if (!s->test)
			gradient_cut(k);
		k->bytes = min_u32(k->bytes, UINT32_MAX / 4);
		if (kept)
			take_weights(k); /* behind all that is staged */
		if (!kept || k->bytes <= s->shared)
			break;
	}
	return k->bytes > s->shared ? "shared memory" : NULL;
}

/* Everything is in global memory. */
static void plan_general(Kernel *k)
{
	k->workers = k->s->threads - TALLY_WARP;
	k->row = k->s->job->bufs * k->s->job->cols * 4;
	k->at_info = take(k, 64);
	k->at_cycles = take(k, 8 * (1 + SPENT_KINDS + STEPS_TIMED));
	const DeviceData *d = &k->s->job->data;
	uint64_t words = d->part_count[0] + d->part_count[1], bytes = words * (8 + 4 * k->s->code_longest);
	k->has_codes = sums_tell(k->s) && bytes + k->bytes + 64 < k->s->shared;
	k->at_codes = take(k, k->has_codes ? words * 8 : 0);
	k->at_elements = take(k, k->has_codes ? words * k->s->code_longest * 4 : 0);
}

const char *kernel_plan(Kernel *k, const EmitSource *s)
{
	const char *why = s->general ? NULL : covered(s);

	k->s = s;
	k->turns = NO_STEP;
	if (s->general) {
		plan_general(k);
		return NULL;
	}
	if (s->bf16)
		return why ? why : bf16_plan(k);
	for (uint32_t chunks = 1; !why && chunks <= MOST_CHUNKS; chunks++) {
		const char *wrong = plan_chunks(k, chunks);
		if (!wrong || chunks == MOST_CHUNKS || k->block_rows < 8)
			return wrong;
	}
	return why;
}
