/* SPDX-License-Identifier: MIT */
/* Who computes which part of a gradient, and where its operands are. In: steps, the team. Out: k->cut. */
#include <assert.h>

#include "emit.h"

/* Rows that are staged at a time, of several pieces; of those that the device copies: rows of the first one, for which
 * all wait, and places. */
enum { MOST_PIECE = 192, FIRST_PIECE = 64, BULK_PLACES = 2 };

/* Of index lists: ranks of all inputs. */
static uint32_t matrix_rows(const Kernel *k, const DeviceStep *s)
{
	return s->kind == STEP_GRADIENT_INDEX ? k->s->job->data.inputs : s->depth;
}

/* Is the last column that of the true unit, and would it need a quad of its own? Its weights are then totals. */
static bool column_apart(const Kernel *k, const DeviceStep *s)
{
	const DevicePanel *p = &k->s->panel[s->panel];
	const GradientCut *c = &k->cut[s - k->s->step - k->s->list->gradient];

	return s->kind == STEP_GRADIENT && !c->inlined && p->bias_across && p->bias == s->cols - 1 && s->cols % 4 == 1 &&
	       s->cols > 1 && s->a == BUF_DELTA;
}

uint32_t matrix_cols(const Kernel *k, const DeviceStep *s) { return s->cols - column_apart(k, s); }
uint32_t matrix_quads(const Kernel *k, const DeviceStep *s) { return (uint32_t)ceil_div(matrix_cols(k, s), 4); }
uint32_t a_quads(const DeviceStep *s, const GradientCut *c)
{
	return s->kind == STEP_GRADIENT ? (uint32_t)ceil_div(c->rows, 4) : 0;
}

/* The cut with the least to load and to compute: a quad of 512 rows takes 128 cycles to load, a task of a row by a quad
 * 16 cycles of a multiprocessor. */
static void cut_choose(const Kernel *k, const DeviceStep *s, GradientCut *best)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t down = 1; down <= k->s->team_blocks; down++) {
		GradientCut c = { .down = down, .across = min_u32(k->s->team_blocks / down, matrix_quads(k, s)) };
		c.rows = (uint32_t)ceil_div(matrix_rows(k, s), down);
		if (down > 1 && s->kind == STEP_GRADIENT)
			c.rows = (uint32_t)round_up(c.rows, GRADIENT_HIGH); /* no thread has rows of two ranges */
		c.quads = (uint32_t)ceil_div(matrix_quads(k, s), c.across);
		c.across = (uint32_t)ceil_div(matrix_quads(k, s), c.quads); /* no range is empty: operands of none are staged */
		uint64_t cost = 128 * (uint64_t)(a_quads(s, &c) + c.quads) + 16 * (uint64_t)c.rows * c.quads;
		if (cost < least) {
			least = cost;
			*best = c;
		}
	}
}

uint32_t cut_groups(const GradientCut *c) { return (uint32_t)ceil_div(c->rows, c->high); }
uint32_t cut_tasks(const GradientCut *c) { return c->run ? c->run : c->all; }

uint32_t high_first(const GradientCut *c)
{
	uint32_t first = 1;

	while (2 * first <= c->high)
		first *= 2;
	return first;
}

/* Quads, or parts of quads, of a range. */
uint32_t cut_columns(const GradientCut *c) { return c->quads * (4 / c->wide); }

/* Threads for rows by quads. Dense ones in blocks: four lanes have two by two tiles, so that loads of both operands
 * take two wavefronts of shared memory, as rows.c has them. Of lists, lanes read rows of their own: 16 lanes or so
 * have the quads of one row, which are contiguous and meet in no bank. */
static void cut_lanes(GradientCut *c, bool list)
{
	uint32_t power = 1, columns = cut_columns(c);

	while (power < columns)
		power *= 2;
	c->blocks = !list && columns > 1;
	c->panel = list && power <= 32 && power - columns <= power / 8 ? power : columns;
	c->all = c->blocks ? (uint32_t)(4 * ceil_div(columns, 2) * ceil_div(cut_groups(c), 2)) : c->panel * cut_groups(c);
}

/* Sums of leaves are stored, and joined by the update; else the gradient is the update. */
static bool several_leaves(const EmitSource *s)
{
	return s->kinds_of_leaves > 1 || s->leaves[0] > 1 || needs_pending(s);
}

/* Cycles for a row of the leaf, measured on an H200: a load takes a wavefront of shared memory for two floats of a
 * lane; a scheduler issues some 0.75 instructions of a cycle. */
static double row_cost(const GradientCut *c)
{
	uint32_t warps = (uint32_t)ceil_div(cut_tasks(c), 32), loads = high_first(c) < c->high || c->high == 8 ? 3 : 2;
	double memory = warps * 0.6 * (c->high + c->wide);
	double issued = (c->high * c->wide + loads + 1) / 0.75 * (double)ceil_div(warps, 4);

	return memory > issued ? memory : issued;
}

/* A run of blocks of four tiles, first down, then across, for each block of the team: nearly all lanes have one. The
 * quads of two runs overlap. */
static void cut_run(const Kernel *k, const DeviceStep *s, GradientCut *c)
{
	uint32_t down = (uint32_t)ceil_div(cut_groups(c), 2), all = down * (uint32_t)ceil_div(matrix_quads(k, s), 2);
	uint32_t each = (uint32_t)ceil_div(all, c->across);

	c->blocks = true;
	c->run = 4 * each;
	c->quads = 0;
	for (uint32_t first = 0; first < all; first += each)
		c->quads = max_u32(c->quads, 2 * ((min_u32(first + each, all) - 1) / down - first / down + 1));
}

/* Rows of a thread, by at most so many warps. busy: cycles that others take anyway; then as many as that allows, so
 * that little is loaded. Rows in two runs are for sums that are stored; tiles in runs for operands that are not
 * exchanged. */
static void high_choose(const Kernel *k, const DeviceStep *s, GradientCut *c, uint32_t most, double busy)
{
	GradientCut best = *c;
	double least = 0;
	bool plain = c->inlined || k->local || k->overlaid || !several_leaves(k->s);

	for (uint32_t high = 1; high <= GRADIENT_HIGH; high++) {
		GradientCut d = *c;
		d.high = high;
		if (high_first(&d) < high && (plain || d.rows % high || high == 7))
			continue;
		cut_lanes(&d, false);
		if (d.across_x && d.down == 1 && !plain)
			cut_run(k, s, &d);
		double cost = row_cost(&d);
		bool fits = ceil_div(cut_tasks(&d), 32) <= most;
		if ((fits && (!least || cost < least || cost < busy)) || (!least && high == GRADIENT_HIGH)) {
			least = cost;
			best = d;
		}
	}
	*c = best;
}

/* Beside other work, a thread has 2 by 2 weights if so many threads are enough: alone on its scheduler, a warp takes
 * high * wide cycles a row to add and 2 (high + wide) to load. */
static bool tile_beside(GradientCut *c, uint32_t most)
{
	static const struct {
		uint32_t high, wide;
	} tiles[] = { { 2, 2 }, { 2, 4 }, { 4, 4 } };

	for (uint32_t i = 0; i < COUNT(tiles); i++) {
		c->high = tiles[i].high;
		c->wide = tiles[i].wide;
		cut_lanes(c, false);
		if (round_up(cut_tasks(c), 32) <= most)
			return true;
	}
	c->wide = 4;
	return false;
}

/* Warps that stage operands of dense gradients while others add them, if those are enough; one, if the device copies
 * them. */
static uint32_t stagers_wanted(const Kernel *k) { return rings(k) ? 1 : 4; }
static uint32_t stagers_least(const Kernel *k) { return rings(k) ? 1 : 2; }

static bool stages_apart(const Kernel *k)
{
	return !k->overlaid && !k->local && !k->s->job->data.from && several_leaves(k->s);
}

/* Rows of threads, of the largest dense gradient first. most: warps; share: of an inlined one. */
static void highs_choose(Kernel *k, uint32_t most, uint32_t share)
{
	const DeviceStep *g = k->s->step + k->s->list->gradient;
	uint32_t steps = k->s->list->steps - k->s->list->gradient, largest = 0, size = 0;

	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		if (c->ahead)
			continue;
		c->high = 1;
		if (g[i].kind == STEP_GRADIENT_INDEX && !k->overlaid && !k->local && several_leaves(k->s) && c->quads <= 16)
			c->wide = 2; /* a warp has a list: the longest one takes half the time */
		cut_lanes(c, g[i].kind == STEP_GRADIENT_INDEX);
		if (g[i].kind == STEP_GRADIENT && !c->inlined && !c->ahead && cut_tasks(c) > size) {
			largest = i;
			size = cut_tasks(c);
		}
	}
	if (size)
		high_choose(k, &g[largest], &k->cut[largest], most, 0);
	uint32_t taken = (uint32_t)ceil_div(cut_tasks(&k->cut[largest]), 32) + stagers_wanted(k);
	bool beside = size && stages_apart(k) && taken < most;
	for (uint32_t i = 0; i < steps; i++)
		if (g[i].kind == STEP_GRADIENT && k->cut[i].inlined)
			high_choose(k, &g[i], &k->cut[i], share, 0);
		else if (g[i].kind == STEP_GRADIENT && i != largest && !k->cut[i].ahead &&
		         !(beside && tile_beside(&k->cut[i], (most - taken) * 32)))
			high_choose(k, &g[i], &k->cut[i], most, k->overlaid ? 0 : row_cost(&k->cut[largest]));
}

/* Dense gradients have so many warps, totals those after them; what is left does nothing but stage operands. */
static void stagers_divide(Kernel *k, uint32_t used)
{
	uint32_t steps = k->s->list->steps - k->s->list->gradient, warps = (k->workers - k->ahead_threads) / 32;

	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		uint32_t own = (uint32_t)ceil_div(c->totals_threads, 32);
		if (c->ahead || c->inlined || !own || used + own + stagers_least(k) > warps)
			continue;
		c->totals_first = used * 32;
		used += own;
	}
	for (uint32_t i = 0; i < steps; i++)
		if (!k->cut[i].ahead && k->cut[i].totals && k->cut[i].totals_first >= used * 32)
			return;
	k->stagers = used + stagers_least(k) <= warps ? used * 32 : 0;
}

/* Side by side where threads are enough for all; else one after the other. */
static void threads_divide(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t steps = s->list->steps - s->list->gradient, lists = 0, used = 0, inlined = 0;
	uint32_t workers = k->workers - k->ahead_threads, warps = workers / 32;
	const DeviceStep *g = s->step + s->list->gradient;

	for (uint32_t i = 0; i < steps; i++) {
		lists += g[i].kind == STEP_GRADIENT_INDEX;
		inlined += k->cut[i].inlined;
	}
	uint32_t most = lists && !k->overlaid ? warps / 2 : warps;
	highs_choose(k, most, warps / 2 / max_u32(inlined, 1));
	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		if (c->inlined) { /* side by side; others give verdicts */
			c->first = k->inliners;
			c->threads = (uint32_t)round_up(cut_tasks(c), 32);
			c->rounds = 1;
			k->inliners += c->threads;
			continue;
		}
		if (c->ahead)
			continue;
		c->first = used * 32;
		if (g[i].kind == STEP_GRADIENT)
			used += (uint32_t)ceil_div(cut_tasks(c), 32);
	}
	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		bool list = g[i].kind == STEP_GRADIENT_INDEX;
		if (c->inlined || c->ahead)
			continue;
		if (used > most || k->overlaid) {
			c->first = 0;
			c->threads = workers;
		} else {
			c->first = list ? used * 32 : c->first;
			c->threads = list ? workers - used * 32 : (uint32_t)round_up(cut_tasks(c), 32);
		}
		c->rounds = (uint32_t)ceil_div(cut_tasks(c), c->threads);
		c->totals_threads = min_u32((uint32_t)round_up(c->totals, 32), workers / 32 * 32);
		c->totals_first = workers / 32 * 32 - c->totals_threads; /* lists of these are the shortest */
	}
	if (stages_apart(k) && used < most)
		stagers_divide(k, used);
	assert(k->inliners <= k->workers); /* workers store what they have added */
}

/* Operands in shared memory, of as many rows at a time as there is room for. Returns where they end. */
static uint32_t plan_staging(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t steps = s->list->steps - s->list->gradient, quads = 0, widest = 0;
	uint32_t all = (uint32_t)round_up(s->leaf_rows, ROWS_TURN), end = k->ahead_steps ? k->at_ahead : s->shared;
	const DeviceStep *g = s->step + s->list->gradient;

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t own = k->cut[i].inlined || k->cut[i].ahead ? 0 : a_quads(&g[i], &k->cut[i]) + k->cut[i].quads;
		quads = k->overlaid ? max_u32(quads, own) : quads + own;
		widest = max_u32(widest, own);
	}
	if (!quads)
		return 0;
	uint32_t ahead = READ_AHEAD * 16 * widest, room = end - min_u32(end, k->at_staged + ahead);
	k->next_at = 0;
	k->piece = all;
	k->places = 1;
	if (room / (quads * 16) < all + 1) { /* one is staged while another is added */
		bool bulk = k->stagers && rings(k);
		k->bulk |= bulk;
		k->places = bulk ? BULK_PLACES : 2;
		uint32_t each = (end - min_u32(end, k->at_staged)) / k->places;
		uint32_t fits = (each - min_u32(each, ahead)) / (quads * 16);
		uint32_t turn = bulk ? BULK_TURN : ROWS_TURN;
		k->piece = min_u32((fits - min_u32(fits, 1)) / turn * turn, MOST_PIECE);
		if (k->piece && !bulk) /* all but the last of a size */
			k->piece = (uint32_t)round_up(ceil_div(all, ceil_div(all, k->piece)), turn);
		k->next_at = quads * (k->piece + 1) * 16 + ahead;
		k->first_piece = min_u32(k->piece, FIRST_PIECE);
	}
	if (!k->piece || (k->next_at && s->job->data.from)) {
		k->bytes = UINT32_MAX; /* no room */
		return 0;
	}
	uint32_t at = k->at_staged, quad = (k->piece + 1) * 16, past = 0; /* a row of -0 follows */
	for (uint32_t i = 0; i < steps; i++) {
		if (k->cut[i].inlined || k->cut[i].ahead)
			continue;
		if (k->overlaid)
			at = k->at_staged;
		k->cut[i].at_a = at;
		k->cut[i].at_b = at += a_quads(&g[i], &k->cut[i]) * quad;
		at += k->cut[i].quads * quad;
		past = max_u32(past, at + (k->places - 1) * k->next_at + ahead);
	}
	k->bytes = max_u32(k->bytes, past);
	return past;
}

/* Dense ones that few threads are enough for, where rows come in chunks: half of the workers have at least one warp for
 * each. */
void gradient_inline(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t threads = 0, warps = 0;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++) {
		const DeviceStep *g = &s->step[s->list->gradient + i];
		GradientCut d = { .rows = g->depth, .quads = (uint32_t)ceil_div(g->cols, 4), .high = GRADIENT_HIGH, .wide = 4 };
		cut_lanes(&d, false);
		uint32_t tasks = cut_tasks(&d), own = (uint32_t)ceil_div(tasks, 32);
		bool pads = ceil_div(max_u32(g->depth, g->cols), 4) <= s->threads / ROWS_TURN; /* one quad for each thread */
		k->cut[i].inlined = k->overlaid && g->kind == STEP_GRADIENT && threads + tasks <= k->workers / 4 &&
		                    warps + own <= k->workers / 64 && pads;
		threads += k->cut[i].inlined ? tasks : 0;
		warps += k->cut[i].inlined ? own : 0;
	}
}

/* Does the data have these columns of rows as they are? The last input is followed by a 1. */
static bool find_columns(const Kernel *k, uint32_t buf, uint32_t col, uint32_t columns, uint32_t *x)
{
	const Job *j = k->s->job;

	for (uint32_t i = 0; i < j->input_columns && buf == BUF_ACT; i++) {
		const InputColumns *in = &k->s->input[i];
		uint32_t count = in->count + (in->input + in->count == j->data.inputs), past = col - in->col;
		if (col < in->col || past + columns > count || (in->input + past) % 4)
			continue;
		*x = in->input + past;
		return true;
	}
	return false;
}

/* Is one operand of a gradient that is not inlined there in the data? */
static void find_inputs(const Kernel *k, const DeviceStep *g, GradientCut *c)
{
	if (c->inlined || k->local || k->s->test || g->kind != STEP_GRADIENT || !k->s->job->data.x)
		return;
	c->straight = find_columns(k, g->a, g->a_col, g->depth, &c->x);
	if (!c->straight)
		c->straight = c->across_x = find_columns(k, g->c, g->c_col, matrix_cols(k, g), &c->x);
}

/* ---- ahead ---- */

/* The number of steps after which both operands of a gradient are there. */
static uint32_t steps_before(const Kernel *k, const DeviceStep *g)
{
	uint32_t a = last_writer(k, g->a, g->a_col, g->depth), c = last_writer(k, g->c, g->c_col, g->cols);

	return max_u32(a == NO_STEP ? 0 : a + 1, c == NO_STEP ? 0 : c + 1);
}

static bool is_candidate(const Kernel *k, uint32_t gradient)
{
	const DeviceStep *g = &k->s->step[k->s->list->gradient + gradient];

	return g->kind == STEP_GRADIENT && !k->cut[gradient].inlined && !k->cut[gradient].straight;
}

/* Threads of their own for its totals, if there are any left; else those that have the gradient. */
static void totals_apart(GradientCut *c, uint32_t most, uint32_t *used)
{
	uint32_t wanted = (uint32_t)round_up(c->totals, 32);

	c->totals_first = *used + wanted <= most ? *used : c->first;
	c->totals_threads = *used + wanted <= most ? wanted : c->threads;
	*used = max_u32(*used, c->totals_first + c->totals_threads);
}

static bool follows_product(const Kernel *k, uint32_t step)
{
	for (uint32_t i = step; i < k->s->list->gradient; i++)
		if (k->s->step[i].kind == STEP_PRODUCT)
			return true;
	return false;
}

/* Gradients whose operands are there first: a third of the workers compute them while the others go on with the
 * backward pass. Not where the gradient is the update, or all threads meet in a cluster. */
static void plan_ahead(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t steps = s->list->steps - s->list->gradient, least = s->list->gradient;
	uint32_t most = k->workers / 3 / 32 * 32;

	k->ahead_steps = k->ahead_threads = 0;
	for (uint32_t i = 0; i < steps; i++)
		k->cut[i].ahead = false;
	if (s->test || s->solo || s->cluster || k->local || k->overlaid || k->chunks > 1 || !k->deferred_scores ||
	    !several_leaves(s) || s->team_blocks == 1)
		return;
	for (uint32_t i = 0; i < steps; i++)
		if (is_candidate(k, i))
			least = min_u32(least, steps_before(k, &s->step[s->list->gradient + i]));
	if (!least || !follows_product(k, least))
		return;
	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		if (!is_candidate(k, i) || steps_before(k, &s->step[s->list->gradient + i]) > least ||
		    !tile_beside(c, most - k->ahead_threads))
			continue;
		c->ahead = true;
		c->first = k->ahead_threads;
		c->threads = (uint32_t)round_up(cut_tasks(c), 32);
		c->rounds = 1;
		k->ahead_threads += c->threads;
		totals_apart(c, most, &k->ahead_threads);
		k->ahead_steps = least;
	}
}

bool plans_ahead(const Kernel *k, uint32_t region)
{
	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient; i++)
		if (k->cut[i].ahead && (k->cut[i].from_a == region || k->cut[i].from_b == region))
			return true;
	return false;
}

/* Bytes of weights, from the first on, that no step after those reads. */
static uint32_t dead_weights(const Kernel *k)
{
	uint32_t end = k->at_rows;

	for (uint32_t i = k->ahead_steps; i < k->s->list->gradient && k->restaged; i++) {
		const DeviceStep *s = &k->s->step[i];
		bool reads = s->kind == STEP_PRODUCT || s->kind == STEP_INDEX;
		const WeightRegion *w = reads ? region_of(k, s->b) : NULL, *start = reads ? region_of(k, s->start) : NULL;
		end = min_u32(end, w ? w->at : end);
		end = min_u32(end, start ? start->at : end);
	}
	return k->restaged ? end - k->at_staged : 0;
}

/* A ring of pieces of these in so much memory: as many places as there is room for. Returns bytes of a quad of a piece;
 * if there is no room, those of all rows. */
static uint32_t ring_ahead(Kernel *k, uint32_t room)
{
	enum { PIECE = 64, LEAST_PLACES = 2 };
	const EmitSource *s = k->s;
	uint32_t all = (uint32_t)round_up(s->leaf_rows, BULK_TURN), quads = 0;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++)
		if (k->cut[i].ahead)
			quads += a_quads(&s->step[s->list->gradient + i], &k->cut[i]) + k->cut[i].quads;
	k->ahead_piece = min_u32(all, PIECE);
	uint32_t quad = (k->ahead_piece + READ_AHEAD) * 16;
	k->ahead_next = quads * quad;
	k->ahead_places = min_u32(quads ? room / k->ahead_next : 0, MOST_PLACES / 2);
	if (k->ahead_places < LEAST_PLACES)
		k->ahead_places = 0;
	return k->ahead_places ? quad : (all + READ_AHEAD) * 16;
}

/* Their operands are staged over weights that no one needs any more, or behind all else: the backward pass goes on
 * beside them. Loops read some rows past the last. None is ahead if there is no room. */
static void stage_ahead(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t steps = s->list->steps - s->list->gradient, at = k->at_staged, end = at + dead_weights(k);
	uint32_t behind = (uint32_t)round_up(k->bytes, 16);
	uint32_t quad = ((uint32_t)round_up(s->leaf_rows, ROWS_TURN) + READ_AHEAD) * 16;

	k->at_ahead = behind;
	if (rings(k))
		quad = ring_ahead(k, end - at);
	for (uint32_t i = 0; i < 2 * steps; i++) {
		GradientCut *c = &k->cut[i / 2];
		uint32_t bytes = (i % 2 ? c->quads : a_quads(&s->step[s->list->gradient + i / 2], c)) * quad;
		uint32_t *from = at + bytes <= end ? &at : &behind;
		if (!c->ahead)
			continue;
		*(i % 2 ? &c->at_b : &c->at_a) = *from;
		*from += bytes;
	}
	if (k->ahead_steps && behind <= s->shared) {
		k->bytes = behind;
		k->at_staged = at + (k->ahead_places ? (k->ahead_places - 1) * k->ahead_next : 0);
		return;
	}
	k->ahead_steps = k->ahead_threads = k->ahead_places = 0;
	for (uint32_t i = 0; i < steps; i++) {
		k->cut[i].ahead = false;
		k->cut[i].wide = 4;
	}
}

/* ---- all ---- */

void gradient_ranges(Kernel *k)
{
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++) {
		const DeviceStep *g = &s->step[s->list->gradient + i];
		bool inlined = k->cut[i].inlined;
		cut_choose(k, g, &k->cut[i]);
		k->cut[i].inlined = inlined;
		k->cut[i].wide = 4;
		k->cut[i].totals = column_apart(k, g)                          ? k->cut[i].rows
		                   : g->kind == STEP_GRADIENT_INDEX && g->bias ? k->cut[i].quads * 4
		                                                               : 0;
		find_inputs(k, g, &k->cut[i]);
	}
	plan_ahead(k);
}

bool any_straight(const Kernel *k)
{
	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient && !k->s->tiled; i++)
		if (k->cut[i].straight)
			return true;
	return false;
}

uint32_t inlined_high(const Kernel *k)
{
	uint32_t high = 0;

	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient; i++)
		high = k->cut[i].inlined ? max_u32(high, k->cut[i].high) : high;
	return high;
}

void gradient_cut(Kernel *k)
{
	const EmitSource *s = k->s;

	k->inliners = k->stagers = 0;
	k->ahead_places = 0;
	stage_ahead(k);
	k->bulk = k->ahead_places != 0;
	threads_divide(k);
	k->piece = (uint32_t)round_up(s->leaf_rows, ROWS_TURN);
	k->csc_pad = k->local ? k->row_space - 1 : k->piece;
	if (k->local || k->inliners)
		k->bytes += ROWS_TURN * k->row;
	uint32_t past = k->local ? 0 : plan_staging(k);
	if (s->job->data.from)
		k->bytes = max_u32(k->bytes, k->at_mask + masks_bytes(k) + lengths_bytes(k));
	if (k->overlaid && past && tally_bytes(k) && round_up(past, 16) + tally_bytes(k) <= k->bytes)
		k->at_doubles = (uint32_t)round_up(past, 16); /* over rows, which no one needs any more */
	plan_turns(k);
	k->at_sums = k->bytes;
	k->bytes = (uint32_t)min_u64((uint64_t)k->bytes + k->inliners * inlined_high(k) * 16, UINT32_MAX);
}
