/* SPDX-License-Identifier: MIT */
/* Performance models. model_epoch, the report's section 6.1: from a network's counts, cases, processors and machine
 * parameters to cycles of an epoch by part, and the optimal number of processors. model_program: the same cycles from
 * the compiled program, whose routines have the length of a list schedule with registers without limit.
 *
 * The report has three errors, which `printed` keeps: the tree's total ends in the ring's term 4 P W instead of
 * 4 W ceil(log2 P), MCPS is 20 / T instead of 20 W C / T, and the tree's optimum lacks the factor ln 2. The report
 * does not model host calls; host_call 0 leaves them out. */
#include <math.h>

#include "gf11_study.h"

static const double ln_2 = 0.69314718055994530942;

double model_flops(const Plan *plan) { return 4 + 2 * (double)(plan->W - plan->Wi) / (double)plan->W; }

double model_limit(const Plan *plan, const Machine *m, double procs)
{
	return procs * 1e3 / m->clock / model_flops(plan);
}

/* A tick takes the work and the memory of a case. */
double model_ticks(const Plan *plan) { return ticks_make(plan->net, &plan->net->options).each; }

void model_input(ModelInput *in, const Plan *plan, const Machine *m, uint64_t cases)
{
	*in = (ModelInput){ .W = (double)plan->W,
		                .Wi = (double)plan->Wi,
		                .U = (double)plan->U,
		                .C = (double)cases,
		                .ticks = model_ticks(plan),
		                .P = 1,
		                .B = 1000,
		                .M = (double)(m->sram - TABLE_WORDS),
		                .clock = m->clock,
		                .dram = (double)m->dram_interval,
		                .exchange = (double)m->switch_interval,
		                .host_call = (double)m->host_call };
	/* Calls per case with bundles of about B weights: each bundle and each level in both passes, the output error. */
	double B = in->B;
	double calls = 1;
	for (uint32_t i = 0; i < plan->levels; i++) {
		uint64_t links = 0;
		for (uint32_t k = 0; k < plan->level[i].bundles; k++)
			links += plan->bundle[plan->level[i].bundle + k].links;
		calls += 2 + 2 * fmax(1, floor((double)links / B + 0.5));
	}
	in->calls = calls;
}

static double floor_log2(double P)
{
	int bits;
	frexp(P, &bits);
	return bits - 1;
}

/* Switch transfers per weight. */
static double transfers(const ModelInput *in)
{
	double P = in->P, low = floor_log2(P);
	if (in->sum == SUM_TREE && !in->printed)
		return low + (ldexp(1, (int)low) < P);
	if (in->sum == SUM_PIPELINED || in->sum == SUM_HALVING) /* reduce-scatter, then all-gather: section 10.2 */
		return 2 * (P - 1) / P;
	return P;
}

/* Cases whose units fit into SRAM. */
static double group_of(const ModelInput *in) { return (in->M - 2 * in->B) / (2 * in->U); }

ModelOutput model_epoch(const ModelInput *in)
{
	double W = in->W, inner = W - in->Wi;
	double cases = in->ticks * (in->whole ? ceil(in->C / in->P) : in->C / in->P);
	double groups = in->whole ? ceil(cases / fmax(1, floor(group_of(in)))) : cases / group_of(in);
	ModelOutput out = {
		.forward = 2 * W * cases,
		.backward = (2 * in->Wi + 4 * inner) * cases,
		.memory = in->dram * (3 * W + inner) * groups,
		.communication = in->exchange * W * transfers(in),
		.host = in->printed ? 0 : in->host_call * in->calls * cases,
	};
	out.total = out.forward + out.backward + out.memory + out.communication + out.host;
	out.mcps = 1e3 / in->clock * (in->printed ? 1 : W * in->C * in->ticks) / out.total;
	return out;
}

ModelOutput model_program(Ctx *cx, EpochSpec *s)
{
	s->o.dry = s->o.estimate = true;
	Epoch e = epoch_isolated(cx, s);
	return (ModelOutput){ .forward = (double)e.forward,
		                  .backward = (double)e.backward,
		                  .units = (double)e.units,
		                  .memory = (double)e.moves,
		                  .communication = (double)e.update,
		                  .host = (double)e.host,
		                  .total = (double)e.total,
		                  .mcps = e.mcps };
}

/* Cycles of all processors without communication: the A of A / P + communication. */
static double shared_work(const ModelInput *in)
{
	ModelInput one = *in;
	one.P = 1;
	one.whole = false;
	ModelOutput out = model_epoch(&one);
	return out.total - out.communication;
}

double model_optimum(const ModelInput *in)
{
	double A = shared_work(in) / (in->exchange * in->W);
	if (in->sum == SUM_TREE)
		return in->printed ? A : A * ln_2;
	if (in->sum == SUM_RING)
		return sqrt(A);
	return in->C; /* communication does not grow with P: no optimum below C */
}

uint32_t model_search(const ModelInput *in, uint32_t most)
{
	ModelInput try = *in;
	uint32_t best = 1;
	double shortest = INFINITY;
	for (uint32_t P = 1; P <= most; P++) {
		try.P = P;
		double total = model_epoch(&try).total;
		if (total < shortest) {
			shortest = total;
			best = P;
		}
	}
	return best;
}
