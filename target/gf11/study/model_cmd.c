/* SPDX-License-Identifier: MIT */
/* microprop gf11 model and efficiency.  In: a network, a machine, numbers of processors.  Out: what the performance
 * model of section 6.1 says, beside simulated epochs and the report's measurements; and the share of cycles that the
 * compiled routines use well (section 6.2.2). */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gf11_study.h"

/* ---- model ---- */

typedef struct ModelRow {
	uint32_t procs;
	ModelOutput out;
	double bare;         /* MCPS without the host's calls: section 6.1 itself */
	double limit, paper; /* paper 0: not measured in 1989 */
	Epoch sim;           /* total 0: not asked for */
} ModelRow;

static void model_row_json(const Call *c, const ModelRow *r)
{
	const ModelOutput *o = &r->out;
	buf_printf(c->out,
	           "{\"procs\": %u, \"forward\": %.10g, \"backward\": %.10g, \"memory\": %.10g, "
	           "\"communication\": %.10g, \"host\": %.10g, \"total\": %.10g, \"mcps\": %.6g, "
	           "\"mcps_equations\": %.6g, \"limit\": %.6g",
	           r->procs, o->forward, o->backward, o->memory, o->communication, o->host, o->total, o->mcps, r->bare,
	           r->limit);
	if (r->sim.total)
		buf_printf(c->out,
		           ", \"simulated\": {\"forward\": %" PRIu64 ", \"backward\": %" PRIu64 ", \"units\": %" PRIu64
		           ", \"memory\": %" PRIu64 ", \"update\": %" PRIu64 ", \"host\": %" PRIu64 ", \"total\": %" PRIu64
		           ", \"mcps\": %.6g}",
		           r->sim.forward, r->sim.backward, r->sim.units, r->sim.moves, r->sim.update, r->sim.host,
		           r->sim.total, r->sim.mcps);
	if (r->paper > 0)
		buf_printf(c->out, ", \"measured_1989\": %g", r->paper);
	buf_puts(c->out, "}");
}

static void model_row_text(const Call *c, const ModelRow *r)
{
	const ModelOutput *o = &r->out;
	buf_printf(c->out, "%5u %11.0f %11.0f %11.0f %11.0f %11.0f %12.0f %9.4g %9.4g %7.0f", r->procs, o->forward,
	           o->backward, o->memory, o->communication, o->host, o->total, o->mcps, r->bare, r->limit);
	if (r->sim.total)
		buf_printf(c->out, " %12" PRIu64 " %9.4g", r->sim.total, r->sim.mcps);
	else if (c->simulate)
		buf_printf(c->out, " %12s %9s", "-", "-");
	if (r->paper > 0)
		buf_printf(c->out, " %6g", r->paper);
	buf_puts(c->out, "\n");
}

static void model_head_text(const Call *c, const Plan *plan, const ModelInput *in, bool paper)
{
	buf_printf(c->out, "# %s: W %.0f, Wi %.0f, U %.0f; C %.0f cases; B %.0f, M %.0f; sum %s%s%s; cycles of an epoch\n",
	           plan->net->name, in->W, in->Wi, in->U, in->C, in->B, in->M, sum_names[in->sum],
	           in->whole ? "; whole cases" : "", in->printed ? "; as printed, errata and all" : "");
	buf_printf(c->out, "%5s %11s %11s %11s %11s %11s %12s %9s %9s %7s", "procs", "forward", "backward", "memory",
	           "switch", "host", "total", "MCPS", "no host", "limit");
	if (c->simulate)
		buf_printf(c->out, " %12s %9s", "simulated", "MCPS");
	buf_puts(c->out, paper ? "   1989\n" : "\n");
}

static void model_optima(const Call *c, const ModelInput *in)
{
	ModelInput bare = *in;
	bare.host_call = 0;
	uint32_t most = in->C < 1e6 ? (uint32_t)in->C : 1000000, here = (uint32_t)c->m->processors;
	const struct {
		const char *key, *text;
		const ModelInput *in;
	} rows[] = {
		{ "optimum", "section 6.1", &bare },
		{ "optimum_with_host", "with the host's calls", in },
	};
	for (size_t i = 0; i < (in->printed ? 1 : COUNT(rows)); i++) {
		double closed = model_optimum(rows[i].in);
		uint32_t search = model_search(rows[i].in, most), machine = model_search(rows[i].in, here);
		if (c->json)
			buf_printf(c->out, "\"%s\": {\"closed\": %.6g, \"search\": %u, \"machine\": %u}, ", rows[i].key, closed,
			           search, machine);
		else
			buf_printf(c->out, "# best number of processors, %s: %.4g by calculus, %u by search, %u on %s\n",
			           rows[i].text, closed, search, machine, c->m->name);
	}
}

/* Few processors cannot hold all cases: there the model stands alone. */
static bool cases_fit(const Call *c, const Plan *plan, uint64_t cases, uint32_t procs)
{
	uint64_t words = plan->net->inputs + plan->net->outputs + 1 + (uint64_t)c->m->dram_banks;
	return (cases + procs - 1) / procs * words + 3 * plan->W + plan->W / 16 <= (uint64_t)c->m->dram;
}

static ModelRow model_row(const Call *c, const Plan *plan, uint64_t cases, ModelInput in, uint32_t procs)
{
	in.P = procs;
	ModelRow r = { .procs = procs, .out = model_epoch(&in), .limit = model_limit(plan, c->m, procs) };
	in.host_call = 0;
	r.bare = model_epoch(&in).mcps;
	if (plan_is_nettalk(plan, cases))
		r.paper = table1_mcps(procs, in.sum);
	if (c->simulate && cases_fit(c, plan, cases, procs)) {
		EpochSpec s = epoch_spec(c, plan, cases);
		s.o.procs = procs;
		r.sim = epoch_apart(c->cx, &s);
	}
	return r;
}

void run_model(Call *c)
{
	const Plan *plan = plan_open(c->cx, c->operand[0]);
	uint64_t cases = c->cases ? c->cases : NETTALK_CASES, simulated = 0;
	double *procs;
	uint32_t count = procs_read(c, &procs);
	ModelInput in;
	model_input(&in, plan, c->m, cases);
	in.sum = call_options(c).sum;
	in.printed = c->printed;
	in.whole = c->whole;
	if (c->bundle)
		in.B = (double)c->bundle;
	if (in.M <= 2 * in.B)
		fail(c->cx, MP_BAD_INPUT, "write a smaller --bundle", "two caches of %.0f words do not fit %.0f words of SRAM",
		     in.B, in.M);
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"network\": ");
		json_put(c->out, plan->net->name);
		buf_printf(c->out, ", \"W\": %.0f, \"Wi\": %.0f, \"U\": %.0f, \"cases\": %.0f, \"sum\": \"%s\", ", in.W, in.Wi,
		           in.U, in.C, sum_names[in.sum]);
	} else {
		model_head_text(c, plan, &in, plan_is_nettalk(plan, cases));
	}
	if (c->json) {
		model_optima(c, &in);
		buf_puts(c->out, "\"rows\": [");
	}
	for (uint32_t i = 0; i < count; i++) {
		ModelRow r = model_row(c, plan, cases, in, (uint32_t)procs[i]);
		simulated += r.sim.total;
		buf_puts(c->out, c->json && i ? ", " : "");
		(c->json ? model_row_json : model_row_text)(c, &r);
	}
	if (c->json)
		buf_puts(c->out, "], ");
	else
		model_optima(c, &in);
	report_end(c, simulated, 0);
}

/* ---- efficiency by shape of network ---- */

typedef struct Part {
	uint64_t arithmetic, cycles, bound;
} Part; /* over all calls */
enum { PART_FORWARD, PART_BACKWARD, PART_UNITS, PARTS };

/* The compiler gives its routines these names. */
static const struct {
	const char *name;
	int part;
} part_names[] = {
	{ "forward", PART_FORWARD },    { "backward", PART_BACKWARD }, { "activate", PART_UNITS },
	{ "output error", PART_UNITS }, { "unit error", PART_UNITS },
};

static void parts_of(const Controller *k, Part *part)
{
	for (uint32_t i = 0; i < k->routines; i++) {
		const Routine *r = k->routine[i];
		for (size_t j = 0; j < COUNT(part_names); j++) {
			if (strcmp(part_names[j].name, r->name) != 0)
				continue;
			Part *p = &part[part_names[j].part];
			p->arithmetic += k->called[i] * r->report.arithmetic;
			p->cycles += k->called[i] * k->cycles[i];
			p->bound += k->called[i] * r->report.bound;
		}
	}
}

static double share(uint64_t a, uint64_t b) { return b ? 100.0 * (double)a / (double)b : NAN; }

static uint64_t efficiency_row(const Call *c, const Plan *plan, uint32_t procs, bool first)
{
	enum { CASES_EACH = 24 }; /* as NETtalk has on 512 processors */
	static const char *const names[PARTS] = { "forward", "backward", "units" };
	static const int sums[] = { SUM_RING, SUM_TREE };
	Part part[PARTS] = { 0 };
	double update[COUNT(sums)];
	uint64_t cycles = 0;
	for (size_t i = 0; i < COUNT(sums); i++) {
		EpochSpec s = epoch_spec(c, plan, (uint64_t)CASES_EACH * procs);
		Bp *b;
		s.o.procs = procs;
		s.o.sum = sums[i];
		Epoch e = epoch_simulate(c->cx, &s, &b);
		cycles += e.total;
		update[i] = share((uint64_t)c->m->switch_interval * sum_steps(sums[i], procs) * plan->W, e.update);
		if (i == 0) {
			parts_of(b->c, part);
			assert(part[PART_FORWARD].cycles == e.forward && part[PART_BACKWARD].cycles == e.backward);
		}
	}
	if (!c->json) {
		buf_printf(c->out, "%-16s", plan->net->name);
		for (int k = 0; k < PARTS; k++)
			buf_printf(c->out, " %8.1f %7.1f", share(part[k].arithmetic, part[k].cycles),
			           share(part[k].bound, part[k].cycles));
		buf_printf(c->out, " %8.1f %8.1f\n", update[0], update[1]);
		return cycles;
	}
	buf_puts(c->out, first ? "{\"network\": " : ", {\"network\": ");
	json_put(c->out, plan->net->name);
	for (int k = 0; k < PARTS; k++)
		buf_printf(c->out, ", \"%s\": {\"seed_metric\": %.4f, \"percent_of_bound\": %.2f}", names[k],
		           share(part[k].arithmetic, part[k].cycles) / 100, share(part[k].bound, part[k].cycles));
	buf_printf(c->out, ", \"update\": {\"ring\": %.4f, \"tree\": %.4f}}", update[0] / 100, update[1] / 100);
	return cycles;
}

void run_networks(Call *c)
{
	static const uint32_t shapes[][3] = {
		{ 203, 60, 26 }, { 203, 120, 26 }, { 256, 64, 16 }, { 64, 32, 16 }, { 24, 24, 24 }, { 12, 12, 12 }, { 8, 3, 8 },
	};
	const MachineRow row = { .low = 2, .high = (double)c->m->processors };
	double *given, procs = 128 < row.high ? 128 : row.high;
	uint64_t cycles = 0;
	if (c->procs && range_read(c->cx, "--procs", c->procs, &row, &given))
		procs = given[0];
	c->cache = schedule_cache_new(c->cx);
	if (c->json) {
		json_begin(c);
		buf_printf(c->out, "\"procs\": %.0f, \"compiler\": \"%s\", \"networks\": [", procs,
		           compiler_names[call_options(c).compiler]);
	} else {
		buf_printf(c->out, "%-16s %16s %16s %16s %17s\n", "", "forward", "backward", "units", "update");
		buf_printf(c->out, "%-16s %8s %7s %8s %7s %8s %7s %8s %8s\n", "network", "seed %", "bound %", "seed %",
		           "bound %", "seed %", "bound %", "ring", "tree");
	}
	if (c->operands)
		cycles = efficiency_row(c, plan_open(c->cx, c->operand[0]), (uint32_t)procs, true);
	for (size_t i = 0; i < COUNT(shapes) && !c->operands; i++)
		cycles +=
			efficiency_row(c, plan_layers(c->cx, shapes[i][0], shapes[i][1], shapes[i][2]), (uint32_t)procs, i == 0);
	if (c->json)
		buf_puts(c->out, "], ");
	else
		buf_printf(
			c->out,
			"\n# seed %%: cycles that issue an add or a multiply; bound %%: of what no schedule can pass\n"
			"# update: cycles the switch needs, of all cycles of the update on %.0f processors (section 6.2.2)\n",
			procs);
	report_end(c, cycles, 0);
}
