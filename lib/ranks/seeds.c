/* SPDX-License-Identifier: MIT */
/* Restarts shared by ranks. In: the same run, data and number of seeds on every rank. Out: the results of all seeds, on
 * every rank. Each rank trains its own seeds by itself, without a message; so results are those of a single process. */
#include <assert.h>

#include "ranks.h"

enum { GATHERED = 65536 }; /* seeds of all ranks in one allgather, roughly */

void ranks_share_seeds(Run *r, Restarts *all, const Data *data, const Data *test)
{
	Ranks *k = r->job;

	k->own = (Message){ .match[MATCH_RESTARTS] = all->count };
	ranks_match_run(r);
	k->own.match[MATCH_DATA] = data_checksum(data);
	k->own.match[MATCH_TEST] = test ? data_checksum(test) : 0;
	ranks_exchange(&r->cx, k, MSG_START);
	ranks_check_match(&r->cx, k);
	restarts_share(all, k->comm->rank, k->comm->size);
}

/* Results of seeds first .. first + each * ranks - 1 of this rank, and back from all. */
static void gather_some(Ranks *k, Restarts *all, uint64_t first, uint64_t each, mp_seed *own, mp_seed *gathered)
{
	const Comm *c = k->comm;

	for (uint64_t i = 0; i < each; i++) {
		uint64_t number = first + i * c->size + c->rank;
		own[i] = number < all->count ? all->seed[number] : (mp_seed){ 0 };
	}
	c->allgather(c->self, own, each * sizeof *own, gathered);
	for (uint32_t rank = 0; rank < c->size; rank++)
		for (uint64_t i = 0; i < each && rank != c->rank; i++) {
			const mp_seed *s = &gathered[rank * each + i];
			if (restarts_ended(s))
				restarts_end(all, first + i * c->size + rank, s);
		}
}

/* What can fail does so before the exchange: there a rank can leave, and the others hear of it. */
bool ranks_gather_seeds(Run *r, Restarts *all)
{
	Ranks *k = r->job;
	uint32_t size = k->comm->size;
	uint64_t each = min_u64(ceil_div(all->count, size), ceil_div(GATHERED, size));
	mp_seed *own = NEW(&r->cx.scratch, each, mp_seed), *gathered = NEW(&r->cx.scratch, each * size, mp_seed);

	assert(all->ranks == size);
	k->own = (Message){ .stop = r->stop != 0 };
	ranks_exchange(&r->cx, k, MSG_SEEDS);
	for (uint64_t first = 0; first < all->count; first += each * size)
		gather_some(k, all, first, each, own, gathered);
	return k->all.stop;
}
