/* SPDX-License-Identifier: MIT */
/* The host's program: the sequence of routine calls and their relocation registers (sections 2 and 5).
 * In: a compiled network and cases.  Out: in each processor the weight changes of its cases; outputs; where the cycles
 * went.
 *
 *   for each group of cases: copy from the cases before them, fetch them;
 *     for each bundle: fetch its weights, forward for each case; after a level its units;
 *     errors of the outputs; the same in reverse, weight changes fetched and flushed around it.
 *
 * Words the host looks at for reports (outputs, errors) are read beside the machine, as its data are loaded: neither
 * is part of the simulated time. */
#include <math.h>
#include <string.h>

#include "gf11_net.h"

/* ---- data ---- */

static const Cell *sram_word(const Bp *b, uint64_t word, uint32_t proc)
{
	return (const Cell *)(b->p->sram + (size_t)word * b->p->lanes + proc);
}

void bp_case_words(const Bp *b, const Data *d, uint64_t place, float *word)
{
	uint32_t inputs = b->net->inputs, outputs = b->at.outputs;
	uint64_t number = place & ~CASE_GOES_ON;
	memset(word, 0, layout_data(b) * sizeof *word);
	if (place == NO_CASE)
		return;
	data_x(d, number, word);
	for (uint32_t j = 0; j < outputs; j++)
		word[inputs + j] = NAN;
	if (d->targets)
		data_y(d, number, word + inputs);
	word[inputs + outputs] = d->weight ? d->weight[number] : 1;
	if (bp_remembers(b->net))
		word[inputs + outputs + 1] = (place & CASE_GOES_ON) != 0;
}

/* Case i of those that begin in memory. */
static void case_write(const Bp *b, uint32_t *memory, uint64_t i, const float *word)
{
	const Layout *at = &b->at;
	uint64_t slot = i / b->o.procs, first = slot / at->data_side * at->data_words + slot % at->data_side;
	Cell *to = (Cell *)(memory + (size_t)first * b->p->lanes + i % b->o.procs);
	size_t step = (size_t)b->p->lanes * at->data_step;
	for (uint32_t j = 0, words = layout_data(b); j < words; j++, to += step)
		to->f = word[j];
}

/* Lanes run out from the last. */
static void lanes_count(Bp *b, const uint64_t *cases, uint64_t count)
{
	uint64_t across = (uint64_t)b->at.group * b->o.procs;
	for (uint64_t i = 0; i < count; i++) {
		if (i % across == 0)
			b->lanes[i / across] = 0;
		if (!cases || cases[i] != NO_CASE)
			b->lanes[i / across] = (uint32_t)(i % across / b->o.procs) + 1;
	}
}

void bp_loaded(Bp *b, const uint64_t *cases, uint64_t count)
{
	if (b->lanes)
		lanes_count(b, cases, count);
	b->loaded = count;
}

/* Padding: processors without a case in the last round get one of zeros and weight 0, and so do all of them in rounds
 * that fill a block of cases side by side. */
void bp_write_cases(Bp *b, const Data *d, const uint64_t *cases, uint64_t count, uint64_t first, uint64_t blocks,
                    uint32_t *memory)
{
	uint64_t together = (uint64_t)b->o.procs * b->at.data_side, begin = first * together;
	float *word = NEW(&b->cx->scratch, layout_data(b), float);
	for (uint64_t i = begin; i < begin + blocks * together; i++) {
		bp_case_words(b, d, i >= count ? NO_CASE : cases ? cases[i] : i, word);
		case_write(b, memory, i - begin, word);
	}
}

void bp_case_write(Bp *b, uint64_t i, const float *word)
{
	case_write(b, b->p->dram + (size_t)b->at.data * b->p->lanes, i, word);
}

void bp_load_cases(Bp *b, const Data *d, const uint64_t *cases, uint64_t count)
{
	uint64_t together = (uint64_t)b->o.procs * b->at.data_side, blocks = (count + together - 1) / together;
	if (count > (uint64_t)b->at.slots * b->o.procs)
		fail(b->cx, MP_BAD_INPUT, "use a smaller batch, or more processors",
		     "%llu cases: there is room for %u on each of %u processors", (unsigned long long)count, b->at.slots,
		     b->o.procs);
	bp_write_cases(b, d, cases, count, 0, blocks, b->p->dram + (size_t)b->at.data * b->p->lanes);
	bp_loaded(b, cases, count);
	if (b->c->faults && !b->o.dry) /* faults also apply to words that the host wrote */
		faults_apply_words(b->c->faults, b->p, true, b->at.data, (uint32_t)(blocks * b->at.data_words));
}

double bp_total_error(const Bp *b)
{
	const Cell *word = sram_word(b, b->at.total, 0);
	double sum = 0;
	for (uint32_t proc = 0; proc < b->o.procs; proc++)
		sum += (double)word[proc].f;
	return sum;
}

const float *bp_outputs_at(const Bp *b, uint64_t i, uint32_t tick)
{
	return b->result + ((uint64_t)tick * b->at.slots * b->o.procs + i) * b->at.outputs;
}

const float *bp_outputs(const Bp *b, uint64_t i) { return bp_outputs_at(b, i, 0); }

uint64_t bp_cycles(const Bp *b) { return b->c->account.cycles + b->c->account.call_cycles + b->cycles_wait; }

/* Outputs of cases first .. first + count - 1 of each processor, which stand in SRAM. */
void bp_take_outputs(Bp *b, uint32_t first, uint32_t count)
{
	uint32_t outputs = b->at.outputs, procs = b->o.procs;
	controller_defer_calls(b->c, false);
	for (uint32_t i = 0; i < count && !b->o.dry; i++) {
		uint64_t slot = (uint64_t)(b->tick - b->ticks.targets_from) * b->at.slots + first + i;
		float *result = b->result + slot * procs * outputs;
		for (uint32_t k = 0; k < outputs; k++) {
			uint32_t f = b->at.case_out + b->output[k];
			const Cell *word =
				sram_word(b, b->at.cases + tick_at(b, b->tick) + f * b->at.stride + i * b->at.case_step, 0);
			for (uint32_t proc = 0; proc < procs; proc++)
				result[(size_t)proc * outputs + k] = word[proc].f;
		}
	}
	controller_defer_calls(b->c, true);
}

/* ---- calls ---- */

void bp_call(Bp *b, uint32_t routine, uint64_t *cycles)
{
	uint64_t before = b->c->account.cycles;
	controller_call(b->c, b->disk ? disk_carrier(b, routine) : routine);
	*cycles += b->c->account.cycles - before;
	if (b->disk)
		disk_between(b);
}

static uint32_t case_at(const Bp *b, uint32_t i) { return b->at.cases + tick_at(b, b->tick) + i * b->at.case_words; }

static void bases_bundle(Bp *b, const BpBundle *n)
{
	uint32_t near = b->at.resident ? n->first : 0;
	controller_base(b->c, BP_NEAR_WEIGHTS, b->at.weight_cache + near);
	controller_base(b->c, BP_NEAR_CHANGES, b->at.change_cache + near);
	controller_base(b->c, BP_FAR_WEIGHTS, b->at.weights + n->first);
	controller_base(b->c, BP_FAR_CHANGES, b->at.changes + n->first);
}

static void bases_units(Bp *b, uint32_t i, Unit out, Unit net)
{
	controller_base(b->c, BP_CASE, case_at(b, i));
	controller_base(b->c, BP_OUT, case_at(b, i) + b->at.case_out + out);
	controller_base(b->c, BP_BACK, case_at(b, i) + b->at.case_net + b->net_word[out]);
	controller_base(b->c, BP_NET, case_at(b, i) + b->at.case_net + b->net_word[net]);
}

/* Inputs may be copied, so contexts come before new inputs. */
static void fetch_cases(Bp *b, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t far = b->at.data + (first + i) * b->at.data_words;
		controller_base(b->c, BP_CASE, case_at(b, i));
		controller_base(b->c, BP_FAR_WEIGHTS, far);
		controller_base(b->c, BP_FAR_DATA, far);
		for (uint32_t k = 0; k < b->copy_calls; k++)
			bp_call(b, b->copy_call[k], &b->cycles_moves);
		for (uint32_t k = 0; k < b->fetch_cases; k++)
			bp_call(b, b->fetch_case[k], &b->cycles_moves);
	}
}

/* All weights and changes of a network that stays in SRAM; `back`: changes go back. */
static void move_resident(Bp *b, bool back)
{
	for (uint32_t i = 0; b->at.resident && i < b->bundles; i++) {
		bases_bundle(b, &b->bundle[i]);
		bp_call(b, back ? b->bundle[i].flush : b->bundle[i].fetch_both, &b->cycles_moves);
	}
}

static void forward_bundle(Bp *b, const BpBundle *n, uint32_t count)
{
	bases_bundle(b, n);
	if (!b->at.resident)
		bp_call(b, n->fetch, &b->cycles_moves);
	for (uint32_t i = 0; i < count; i++) {
		bases_units(b, i, n->source, n->target);
		bp_call(b, n->forward, &b->cycles_forward);
	}
}

static void backward_bundle(Bp *b, const BpBundle *n, uint32_t count)
{
	bases_bundle(b, n);
	if (!b->at.resident)
		bp_call(b, n->fetch_both, &b->cycles_moves);
	for (uint32_t i = 0; i < count; i++) {
		bases_units(b, i, n->source, n->target);
		bp_call(b, n->backward, &b->cycles_backward);
	}
	if (!b->at.resident)
		bp_call(b, n->flush, &b->cycles_moves);
}

static void call_units(Bp *b, const BpChunk *k, uint32_t routine, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bases_units(b, i, k->first, k->first);
		controller_base(b->c, BP_SLOPE, case_at(b, i) + b->at.case_slope + k->slope);
		bp_call(b, routine, &b->cycles_units);
	}
}

static void output_errors(Bp *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		controller_base(b->c, BP_CASE, case_at(b, i));
		for (uint32_t k = 0; k < b->output_errors; k++)
			bp_call(b, b->output_error[k], &b->cycles_units);
	}
}

/* ---- passes ---- */

/* One tick; of a network that does not settle, all. */
static void tick_forward(Bp *b, uint32_t first, uint32_t count)
{
	uint32_t n = 0, k = 0;
	if (b->best)
		best_open(b, first);
	else
		fetch_cases(b, first, count);
	ticks_begin(b, count);
	for (uint32_t level = 0; level < b->plan->levels; level++) {
		for (; n < b->bundles && b->bundle[n].level == level; n++)
			if (b->best)
				best_forward(b, n);
			else
				forward_bundle(b, &b->bundle[n], count);
		for (; k < b->chunks && b->chunk[k].level == level; k++) {
			ticks_activate(b, k, false, count);
			if (b->best)
				best_units(b, &b->chunk[k], &b->best->activate[k]);
			else
				call_units(b, &b->chunk[k], b->chunk[k].activate, count);
			ticks_activate(b, k, true, count);
		}
	}
	ticks_end(b, count);
	if (b->tick >= b->ticks.targets_from)
		bp_take_outputs(b, first, count);
}

static void group_forward(Bp *b, uint32_t first, uint32_t count)
{
	for (b->tick = 0; b->tick < b->ticks.each; b->tick++)
		tick_forward(b, first, count);
}

static void tick_backward(Bp *b, uint32_t count)
{
	uint32_t n = b->bundles, k = b->chunks;
	bool targets = b->tick >= b->ticks.targets_from;
	if (!b->best && targets)
		output_errors(b, count);
	for (uint32_t i = 0; b->best && targets && i < b->output_errors; i++)
		best_units(b, NULL, &b->best->output_error[i]);
	ticks_carry_back(b, count);
	for (uint32_t level = b->plan->levels; level-- > 0;) {
		for (; k > 0 && b->chunk[k - 1].level == level; k--) {
			ticks_unit_error(b, k - 1, false, count);
			if (b->best && b->chunk[k - 1].has_error)
				best_units(b, &b->chunk[k - 1], &b->best->unit_error[k - 1]);
			else if (b->chunk[k - 1].has_error)
				call_units(b, &b->chunk[k - 1], b->chunk[k - 1].unit_error, count);
			ticks_unit_error(b, k - 1, true, count);
		}
		for (; n > 0 && b->bundle[n - 1].level == level; n--)
			if (b->best)
				best_backward(b, n - 1);
			else
				backward_bundle(b, &b->bundle[n - 1], count);
	}
}

static void group_backward(Bp *b, uint32_t count)
{
	for (b->tick = b->ticks.each; b->tick-- > 0;) {
		if (b->best && b->tick + 1 < b->ticks.each)
			best_reopen(b);
		tick_backward(b, count);
	}
	b->tick = 0;
}

/* Over all loaded cases, a group at a time. Compiler best: routines are made for whole groups. */
static void pass(Bp *b, bool backward)
{
	uint32_t rounds = (uint32_t)ceil_div(b->loaded, b->o.procs), group = b->at.group;
	controller_defer_calls(b->c, true);
	move_resident(b, false);
	for (uint32_t first = 0; first < rounds && !(b->stop && *b->stop); first += group) {
		uint32_t count = b->best ? group : min_u32(rounds - first, b->lanes ? b->lanes[first / group] : group);
		if (b->best)
			b->best->start = backward && !b->started;
		b->processed += (uint64_t)count * b->o.procs;
		group_forward(b, first, count);
		b->started |= b->best && backward;
		if (backward)
			group_backward(b, count);
	}
	if (backward)
		move_resident(b, true);
	controller_defer_calls(b->c, false);
}

void bp_accumulate(Bp *b)
{
	bp_call(b, b->clear, &b->cycles_units);
	pass(b, true);
}

void bp_forward(Bp *b) { pass(b, false); }
