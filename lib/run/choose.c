/* SPDX-License-Identifier: MIT */
/* Target auto. In: a network, options, data. Out: the target of least predicted time among those that give the bits of
 * target cpu, and a note that says why. */
#include <string.h>

#include "run.h"

enum { EPOCHS_COUNTED = 100 }; /* a run without a limit, or with a high one, mostly ends before it */

bool target_is_auto(const Options *o) { return strcmp(o->target, "auto") == 0; }

/* Links whose source is an input: index lists skip them where it is 0. */
static double links_of_inputs(const Net *net)
{
	double n = 0;

	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		if (b->from_group >= 0 && net->group[b->from_group].role == ROLE_INPUT)
			n += (double)b->links;
	}
	return n;
}

double row_operations(const Net *net, const Data *data)
{
	double share = data && data->x_indptr && data->cases
	                   ? (double)data->x_indptr[data->cases] / ((double)data->cases * (double)max_u32(data->inputs, 1))
	                   : 1;

	return 4.5 * ((double)net->links - links_of_inputs(net) * (1 - share));
}

uint64_t example_rows(const Net *net, const TickPlan *ticks, const Data *data)
{
	uint64_t examples = run_examples(net, data), most = 0, first, count;

	for (uint64_t i = 0; i < examples; i++) {
		run_example(net, data, i, &first, &count);
		most = max_u64(most, ticks_example(ticks, data, first, count));
	}
	return most;
}

static TrainingWork workload_of(const Run *r, const Data *data, uint64_t seeds)
{
	TickPlan ticks = ticks_make(r->net, &r->opt);
	uint64_t examples = run_examples(r->net, data);
	uint64_t batch = r->opt.batch == BATCH_ALL ? examples : min_u64((uint64_t)r->opt.batch, examples);

	return (TrainingWork){ .net = r->net,
		                   .opt = &r->opt,
		                   .data = data,
		                   .rows = (double)ticks_example(&ticks, data, 0, data->cases),
		                   .operations = row_operations(r->net, data),
		                   .steps = (double)example_rows(r->net, &ticks, data),
		                   .batch = batch,
		                   .updates = batch ? ceil_div(examples, batch) : 0,
		                   .seeds = seeds ? seeds : 1,
		                   .together = seeds && !r->opt.patience && !r->opt.guard };
}

static void time_put(Buf *b, double seconds)
{
	if (seconds < 1e-3)
		buf_printf(b, "%.3g us", seconds * 1e6);
	else if (seconds < 1)
		buf_printf(b, "%.3g ms", seconds * 1e3);
	else
		buf_printf(b, "%.3g s", seconds);
}

void target_choose(Run *r, const Data *data)
{
	Ctx *cx = &r->cx;
	TrainingWork w = workload_of(r, data, 0);
	uint64_t epochs = r->opt.epochs ? min_u64((uint64_t)r->opt.epochs, EPOCHS_COUNTED) : EPOCHS_COUNTED;
	Buf why = { .arena = &cx->scratch };
	const Target *best = NULL;
	double least = 0;

	for (size_t i = 0; target_table[i]; i++) {
		const Target *t = target_table[i];
		Prediction p = { 0 };
		if (!t->time)
			continue;
		buf_printf(&why, "%s%s ", why.len ? "; " : "", t->name);
		t->time->predict(cx, &w, &p);
		if (p.why_not) {
			buf_printf(&why, "cannot: %s", p.why_not);
			continue;
		}
		time_put(&why, p.epoch);
		buf_puts(&why, " an epoch");
		if (p.start > 0) {
			buf_puts(&why, ", after ");
			time_put(&why, p.start);
		}
		double all = p.start + (double)epochs * p.epoch;
		if (!best || all < least) {
			best = t;
			least = all;
		}
	}
	r->opt.target = best ? best->name : "cpu";
	note(cx, NULL, "target auto is %s; predicted: %s", r->opt.target, why.s);
}
