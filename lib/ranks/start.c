/* SPDX-License-Identifier: MIT */
/* Ranks at the start of training. In: a run on every rank, its data. Out: data that all ranks together have validated,
 * and its checksum; a receive buffer. Fails on all ranks, naming the first that differs, unless network, options, data
 * and weights are the same on all. */
#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "ranks.h"

static uint64_t hash_text(const char *text) { return XXH3_64bits(text, strlen(text)); }

/* How a process computes: ranks may differ. */
static bool is_local(const char *option)
{
	static const char *const names[] = { "threads", "input", "device" };
	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(option, names[i]) == 0)
			return true;
	return false;
}

/* Options that change results, or when the run ends. */
static uint64_t hash_options(Ctx *cx, const Options *o)
{
	const mp_option *option;
	Buf b = { .arena = &cx->scratch };
	for (size_t i = 0; (option = option_at(i)) != NULL; i++)
		if (!is_local(option->name))
			buf_printf(&b, "%s=%s\n", option->name, option_get(&cx->scratch, o, option->name));
	assert(b.s);
	return hash_text(b.s);
}

/* Of data in a file a rank reads its own cases alone. These are the same in every epoch, unless it is shuffled. */
bool ranks_read_all(const Ranks *k, const Data *d, bool shuffled)
{
	return !d->unchecked || (shuffled && !k->root_only);
}

/* Of a few cases that every rank reads: other data hardly has the same. */
static uint64_t sample_checksum(const Data *d)
{
	enum { SAMPLES = 16 };
	Validation v = { 0 };

	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t at = i * ((d->cases - 1) / (SAMPLES - 1));
		cases_validate(d, NULL, at, at + 1, &v);
	}
	return v.checksum;
}

/* Validates this rank's cases; the result goes into the message. */
static void validate_own(const Run *r, const Data *d, int which, uint64_t batch, bool shuffled)
{
	Ranks *k = r->job;
	const ErrorFn *e = run_domain(r->net, r->opt.error);
	uint64_t batches = ceil_div(run_examples(r->net, d), batch);
	Validation *own = &k->own.validation[which];
	bool all = ranks_read_all(k, d, shuffled);

	if (all || (k->root_only && !k->comm->rank))
		cases_validate(d, e, 0, d->cases, own);
	for (uint64_t i = 0; !all && !k->root_only && i < batches; i++) {
		uint64_t begin, end;
		if (rank_cases(k, r->net, d, batch, i, &begin, &end))
			cases_validate(d, e, begin, end, own);
	}
	k->own.match[MATCH_DATA + which] = data_checksum_with(d, all ? own->checksum : sample_checksum(d));
	if (all && k->comm->rank) /* counted once, by rank 0 */
		*own = (Validation){ .invalid = own->invalid, .check = own->check, .place = own->place };
}

/* The data as all ranks together have validated it. */
static const Data *validated(Run *r, const Data *d, int which, uint64_t *checksum)
{
	Validation all;
	Data *copy = NEW(&r->cx.scratch, 1, Data);

	ranks_check_data(&r->cx, r->job, which, d, run_domain(r->net, r->opt.error), &all);
	*copy = *d;
	copy->signs = all.negative ? SIGNS_NEGATIVE : SIGNS_PLAIN;
	*checksum = data_checksum_with(d, all.checksum);
	return copy;
}

void ranks_match_run(Run *r)
{
	Message *own = &((Ranks *)r->job)->own;
	own->match[MATCH_NET] = hash_text(r->net->fingerprint);
	own->match[MATCH_OPTIONS] = hash_options(&r->cx, &r->opt);
}

uint64_t ranks_prepare(Run *r, const Data **data, const Data **test, uint64_t batch, bool shuffled)
{
	Ctx *cx = &r->cx;
	Ranks *k = r->job;
	char weights[33];
	uint64_t checksum, unused;
	run_fingerprint(r, weights);
	k->own = (Message){ .seconds = r->at.seconds };
	ranks_match_run(r);
	k->own.match[MATCH_WEIGHTS] = hash_text(weights) + r->at.updates;
	k->root_only = !r->target->ranks || leaf_count(batch) < 2;
	validate_own(r, *data, VALIDATE_DATA, batch, shuffled);
	if (*test)
		validate_own(r, *test, VALIDATE_TEST, run_examples(r->net, *test), false);
	ranks_exchange(cx, k, MSG_START);
	ranks_check_match(cx, k);
	k->seconds = k->all.seconds;
	k->stop = false;
	k->mpi_sum = ((const RanksOptions *)options_of(&r->opt, &ranks_options))->allreduce == ALLREDUCE_MPI;
	*data = validated(r, *data, VALIDATE_DATA, &checksum);
	if (*test)
		*test = validated(r, *test, VALIDATE_TEST, &unused);
	return checksum;
}

void ranks_begin(Run *r, uint64_t examples, uint64_t batch)
{
	Ctx *cx = &r->cx;
	Ranks *k = r->job;
	k->observer = NULL;
	if (!k->root_only) {
		uint64_t floats = r->target->ranks->sum_floats(r->program);
		k->capacity = 0; /* an earlier run's buffer is freed with it */
		ranks_reserve(cx, k, floats, batch);
		ranks_reserve(cx, k, floats, examples % batch);
		r->ranks = k;
		return;
	}
	if (r->restarts.count) /* they have shared the seeds; the best of them is trained again */
		return;
	if (!r->target->ranks)
		note(cx, "run it without mpirun, or with --target cpu",
		     "target %s stays in one process: rank 0 trains, the others wait", r->target->name);
	else
		note(cx, "ranks share batches of more than 512 examples",
		     "a batch of %llu examples is one leaf: rank 0 trains, the others wait", (unsigned long long)batch);
}
