/* SPDX-License-Identifier: MIT */
/* Validation of data: sizes fit, offsets ascend, inputs are finite, targets lie in the range of the error function.
 * In: Data as a reader left it.  Out: the same data, or a message about the first thing that is wrong.
 *
 * A rank validates only the cases that it computes: arrays with a deferred CRC lie in a mapped file, which may be
 * larger than the memory.  Validations of ranges of cases merge to that of all cases: sums and exclusive ors for
 * checksums, the lowest place for errors.
 * Must hold: offsets are checked before they are used, so their CRC is never deferred. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "data.h"

/* ---- sizes, offsets, tables: all at once ---- */

static void check_sizes(Ctx *cx, const Data *d, Loc at)
{
	if (d->cases == 0)
		fail_at(cx, at, "give it at least one case", "there are no cases in the data");
	if (d->inputs == 0)
		fail_at(cx, at, "give every case at least one input", "the cases have no inputs");
	if (d->inputs > MAX_UNITS || d->targets > MAX_UNITS)
		fail_at(cx, at, "cut it into smaller parts", "a case has more values than a network can have units (%u)",
		        MAX_UNITS);
	uint64_t wide = max_u64(d->inputs, d->targets);
	if (d->cases > INT64_MAX / 8 / wide)
		fail_at(cx, at, "cut it into smaller parts",
		        "%" PRIu64 " cases of %" PRIu64 " values are more than any memory holds", d->cases, wide);
}

static void check_offsets(Ctx *cx, const Data *d, Loc at)
{
	if (d->x_indptr[0] != 0)
		fail_at(cx, at, "the first list starts at 0", "the index lists start at %" PRIu64, d->x_indptr[0]);
	for (uint64_t i = 0; i < d->cases; i++)
		if (d->x_indptr[i] > d->x_indptr[i + 1])
			fail_at(cx, at, "offsets of index lists must ascend",
			        "the index list of case %" PRIu64 " ends before it starts", i);
}

static void check_sequences(Ctx *cx, const Data *d, Loc at)
{
	if (d->seq[0] != 0)
		fail_at(cx, at, "the first sequence starts at case 0", "the sequences start at case %" PRIu64, d->seq[0]);
	for (uint64_t i = 0; i < d->sequences; i++)
		if (d->seq[i] >= d->seq[i + 1])
			fail_at(cx, at, "every sequence has a case, and offsets ascend", "sequence %" PRIu64 " has no cases", i);
	if (d->seq[d->sequences] != d->cases)
		fail_at(cx, at, "the last offset is the number of cases",
		        "the sequences end at case %" PRIu64 ", but there are %" PRIu64 " cases", d->seq[d->sequences],
		        d->cases);
}

static void check_tables(Ctx *cx, const Data *d, Loc at)
{
	for (uint64_t i = 0; d->codes && i < (uint64_t)d->code_count * d->targets; i++)
		if (!isfinite(d->codes[i]))
			fail_at(cx, at, "give every code a number for every target",
			        "code %" PRIu64 " is not made of finite numbers", i / d->targets);
	for (uint32_t i = 0; d->scale.kind != SCALE_NONE && i < d->inputs; i++)
		if (!isfinite(d->scale.offset[i]) || !isfinite(d->scale.factor[i]) || d->scale.factor[i] == 0)
			fail_at(cx, at, "scale the original data again", "the scale of input %" PRIu32 " is not a finite number",
			        i);
}

/* ---- cases: each check finds the first invalid place in a range, or NOWHERE, and reports it ---- */

#define NOWHERE UINT64_MAX

enum { FLOATS = 256 };

/* The compiler makes vector code of a loop of known length. */
static bool all_finite(const float chunk[FLOATS])
{
	uint32_t most = 0;
	for (int k = 0; k < FLOATS; k++) {
		uint32_t bits;
		memcpy(&bits, &chunk[k], sizeof bits);
		bits &= 0x7fffffff;
		most = bits > most ? bits : most;
	}
	return most < 0x7f800000;
}

/* First element of a dense array that float32 cannot hold.  NaN counts only where nan_too. */
static uint64_t find_not_finite(DType t, const void *v, uint64_t first, uint64_t end, bool nan_too)
{
	float chunk[FLOATS] = { 0 };

	if (t != T_F32 && t != T_F64 && t != T_F16)
		return NOWHERE;
	for (uint64_t i = first; i < end; i += FLOATS) {
		uint64_t n = min_u64(end - i, FLOATS);
		dtype_row(t, v, i, n, chunk);
		if (all_finite(chunk))
			continue;
		for (uint64_t k = 0; k < n; k++)
			if (isinf(chunk[k]) || (nan_too && isnan(chunk[k])))
				return i + k;
	}
	return NOWHERE;
}

static bool list_is_wrong(const Data *d, uint64_t i, uint64_t k)
{
	bool behind = k > d->x_indptr[i] && d->x_indices[k] <= d->x_indices[k - 1];

	return behind || d->x_indices[k] >= d->inputs || (d->x_values && !isfinite(d->x_values[k]));
}

static uint64_t find_list(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end)
{
	(void)e;
	for (uint64_t i = first; d->x_indptr && i < end; i++)
		for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++)
			if (list_is_wrong(d, i, k))
				return i;
	return NOWHERE;
}

static void report_list(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t i)
{
	uint64_t k = d->x_indptr[i];

	(void)e;
	while (!list_is_wrong(d, i, k))
		k++;
	if (d->x_indices[k] >= d->inputs)
		fail_at(cx, at, "inputs are numbered from 0",
		        "case %" PRIu64 " has index %" PRIu32 ", but there are %" PRIu32 " inputs", i, d->x_indices[k],
		        d->inputs);
	if (k > d->x_indptr[i] && d->x_indices[k] <= d->x_indices[k - 1])
		fail_at(cx, at, "sort the indices of each case and leave out doubles",
		        "the indices of case %" PRIu64 " do not ascend: %" PRIu32 " after %" PRIu32, i, d->x_indices[k],
		        d->x_indices[k - 1]);
	fail_at(cx, at, "replace it by a number, or leave out the case",
	        "input %" PRIu32 " of case %" PRIu64 " is not a finite number", d->x_indices[k], i);
}

static uint64_t find_input(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end)
{
	(void)e;
	return d->x_indptr ? NOWHERE : find_not_finite(d->x_type, d->x, first * d->inputs, end * d->inputs, true);
}

static void report_input(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t i)
{
	(void)e;
	fail_at(cx, at, "replace it by a number, or leave out the case",
	        "input %" PRIu64 " of case %" PRIu64 " is %g, which is not a finite float32", i % d->inputs, i / d->inputs,
	        dtype_get(d->x_type, d->x, i));
}

static uint64_t find_target(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end)
{
	(void)e;
	return d->targets ? find_not_finite(d->y_type, d->y, first * d->targets, end * d->targets, false) : NOWHERE;
}

static void report_target(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t i)
{
	(void)e;
	fail_at(cx, at, "write NaN where there is no target",
	        "target %" PRIu64 " of case %" PRIu64 " is %g, which is not a finite float32", i % d->targets,
	        i / d->targets, dtype_get(d->y_type, d->y, i));
}

static uint64_t find_mask(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end)
{
	(void)e;
	for (uint64_t i = first * d->targets; d->mask && i < end * d->targets; i++)
		if (d->mask[i] > 1)
			return i;
	return NOWHERE;
}

static void report_mask(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t i)
{
	(void)e;
	fail_at(cx, at, "write 1 where there is a target and 0 where there is none",
	        "the mask of target %" PRIu64 " of case %" PRIu64 " is neither 0 nor 1", i % d->targets, i / d->targets);
}

static uint64_t find_weight(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end)
{
	(void)e;
	for (uint64_t i = first; d->weight && i < end; i++)
		if (!isfinite(d->weight[i]) || d->weight[i] < 0)
			return i;
	return NOWHERE;
}

static void report_weight(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t i)
{
	(void)e;
	fail_at(cx, at, "weights are 0 or more", "the weight of case %" PRIu64 " is %g", i, (double)d->weight[i]);
}

static uint64_t find_score(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end)
{
	if (!e || (isinf(e->low) && isinf(e->high)))
		return NOWHERE;
	for (uint64_t i = first * d->targets; i < end * d->targets; i++) {
		double t = dtype_get(d->y_type, d->y, i);
		if ((!d->mask || d->mask[i]) && (t < e->low || t > e->high))
			return i;
	}
	return NOWHERE;
}

static void report_score(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t i)
{
	(void)at;
	fail(cx, MP_BAD_INPUT, "bring the targets into that range, or train with error squared",
	     "%s: target %" PRIu64 " of case %" PRIu64 " is %g, but error %s needs targets from %g to %g", d->name,
	     i % d->targets + 1, i / d->targets + 1, dtype_get(d->y_type, d->y, i), e->name, e->low, e->high);
}

/* In the order in which errors are reported. */
static const struct {
	uint64_t (*find)(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end);
	void (*report)(Ctx *cx, const Data *d, const ErrorFn *e, Loc at, uint64_t place);
} checks[] = {
	{ find_list, report_list }, { find_input, report_input },   { find_target, report_target },
	{ find_mask, report_mask }, { find_weight, report_weight }, { find_score, report_score },
};
enum { SCORE_CHECK = COUNT(checks) - 1 };

/* ---- deferred CRCs ---- */

/* Offset of a case's bytes; the header belongs to case 0, and the end to the case after the last. */
static uint64_t byte_of(const Data *d, int which, uint64_t i)
{
	const DeferredCrc *u = &d->deferred[which];
	const uint64_t targets = (uint64_t)d->targets * i;
	const uint64_t bytes[DEFERRED_COUNT] = {
		[DEFERRED_X] = i * d->inputs * dtypes[d->x_type].size,
		[DEFERRED_INDICES] = d->x_indptr ? d->x_indptr[i] * sizeof *d->x_indices : 0,
		[DEFERRED_VALUES] = d->x_indptr ? d->x_indptr[i] * sizeof *d->x_values : 0,
		[DEFERRED_Y] = targets * dtypes[d->y_type].size,
		[DEFERRED_MASK] = targets,
		[DEFERRED_WEIGHT] = i * sizeof *d->weight,
	};

	return i == 0 ? 0 : i == d->cases ? u->bytes->len : u->head + bytes[which];
}

/* CRCs are linear: that of all bytes is the exclusive or of those of its ranges, each extended over the bytes after
 * it. */
static uint32_t crc_share(const Data *d, int which, uint64_t first, uint64_t end)
{
	const Src *s = d->deferred[which].bytes;
	uint64_t low = byte_of(d, which, first), high = byte_of(d, which, end);

	return (uint32_t)crc32_combine(crc32_z(0, (const Bytef *)s->text + low, high - low), 0, (z_off_t)(s->len - high));
}

/* ---- ranges of cases ---- */

void validate_signs(const Data *d, uint64_t first, uint64_t end, Validation *v)
{
	for (uint64_t i = first * d->targets; i < end * d->targets && !v->negative; i++)
		v->negative = (!d->mask || d->mask[i]) && dtype_get(d->y_type, d->y, i) < 0;
}

static void record(Validation *v, uint32_t check, uint64_t place)
{
	if (place != NOWHERE && (!v->invalid || check < v->check || (check == v->check && place < v->place))) {
		v->invalid = true;
		v->check = check;
		v->place = place;
	}
}

void validation_merge(Validation *into, const Validation *v)
{
	into->checksum += v->checksum;
	into->negative |= v->negative;
	for (int i = 0; i < DEFERRED_COUNT; i++)
		into->crc[i] ^= v->crc[i];
	record(into, v->check, v->invalid ? v->place : NOWHERE);
}

/* Runs on several threads may share data, and validate it at the same time: the flag is cleared once, and only then. */
static bool is_unchecked(const Data *d) { return __atomic_load_n(&d->unchecked, __ATOMIC_ACQUIRE); }

/* By chunks, so that every page of a mapped file is read once. */
void cases_validate(const Data *d, const ErrorFn *e, uint64_t first, uint64_t end, Validation *v)
{
	enum { CHUNK = 4096 };

	for (uint64_t i = first, next; i < end; i = next) {
		next = end - i < CHUNK ? end : i + CHUNK;
		for (uint32_t k = is_unchecked(d) ? 0 : SCORE_CHECK; k < COUNT(checks); k++)
			record(v, k, checks[k].find(d, e, i, next));
		for (int k = 0; k < DEFERRED_COUNT; k++)
			if (is_unchecked(d) && d->deferred[k].bytes)
				v->crc[k] ^= crc_share(d, k, i, next);
		if (v->invalid) /* indices may point anywhere */
			continue;
		v->checksum += cases_checksum(d, i, next);
		if (d->targets == 1) /* signs are used only then */
			validate_signs(d, i, next, v);
	}
}

static uint64_t case_of(const Data *d, const Validation *v)
{
	bool input = checks[v->check].find == find_input, target = v->check > 1 && checks[v->check].find != find_weight;

	return input ? v->place / d->inputs : target ? v->place / d->targets : v->place;
}

void validation_finish(Ctx *cx, const Data *d, const ErrorFn *e, const Validation *v)
{
	for (int k = 0; k < DEFERRED_COUNT; k++)
		if (is_unchecked(d) && d->deferred[k].bytes && d->deferred[k].crc != v->crc[k])
			zip_wrong(cx, d->deferred[k].where, d->deferred[k].name);
	if (!v->invalid)
		return;
	uint64_t i = case_of(d, v);
	if (checks[v->check].find(d, e, i, i + 1) != v->place)
		fail(cx, MP_BAD_INPUT, "give all ranks the same data",
		     "case %" PRIu64 " of %s is wrong elsewhere, but not here", i, d->name);
	checks[v->check].report(cx, d, e, d->at, v->place);
}

static void check_all(Ctx *cx, const Data *d, const ErrorFn *e, uint32_t from, uint32_t end)
{
	Validation v = { 0 };

	for (uint32_t k = from; k < end; k++)
		record(&v, k, checks[k].find(d, e, 0, d->cases));
	if (v.invalid)
		checks[v.check].report(cx, d, e, d->at, v.place);
}

void data_check(Ctx *cx, Data *d, Loc at)
{
	d->at = at;
	check_sizes(cx, d, at);
	if (d->x_indptr)
		check_offsets(cx, d, at);
	if (d->seq)
		check_sequences(cx, d, at);
	if (!d->unchecked)
		check_all(cx, d, NULL, 0, SCORE_CHECK);
	check_tables(cx, d, at);
	data_count_bytes(d);
}

void targets_check(Ctx *cx, const Options *o, const Data *d)
{
	check_all(cx, d, &error_fns[o->error], SCORE_CHECK, COUNT(checks));
}

void data_validate(Ctx *cx, Data *d)
{
	Validation v = { 0 };

	if (!is_unchecked(d))
		return;
	cases_validate(d, NULL, 0, d->cases, &v);
	validation_finish(cx, d, NULL, &v);
	bool unchecked = true; /* not written again where another thread was faster: runs may be copying it */
	__atomic_compare_exchange_n(&d->unchecked, &unchecked, false, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
