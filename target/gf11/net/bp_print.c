/* SPDX-License-Identifier: MIT */
/* Prints a compiled network. In: a program. Out: processors and options, memory map, use of each limit, bundles,
 * routines. */
#include "gf11_net.h"

static void print_limit(Buf *out, const char *what, uint64_t used, int64_t limit)
{
	buf_printf(out, "\t%-10s %8llu of %lld\n", what, (unsigned long long)used, (long long)limit);
}

static void print_memory(const Bp *b, Buf *out)
{
	const Layout *at = &b->at;
	uint32_t most = 0;
	for (uint32_t i = 0; i < b->c->routines; i++)
		if (b->c->routine[i]->report.registers > most)
			most = b->c->routine[i]->report.registers;
	buf_printf(out, "SRAM\n\ttables %u, weights and changes 2 x %u from %u%s\n", TABLE_WORDS, at->cache_words,
	           at->weight_cache, at->resident ? ", all of them" : ", a bundle at a time");
	buf_printf(out, "\ta group of %u cases of %u words from %u, spilled words from %u\n", at->group, at->case_words,
	           at->cases, at->spill);
	if (b->ticks.each > 1)
		buf_printf(out, "\tof these %u words for each of %u ticks, targets from tick %u on\n", at->tick_words,
		           b->ticks.each, b->ticks.targets_from + 1);
	buf_printf(out, "DRAM\n\tcases: %u of %u words from %u\n", at->slots, at->data_words, at->data);
	buf_printf(out, "\tweights, changes");
	for (int k = 0; k < b->rule->states; k++)
		buf_printf(out, ", state %s", b->rule->state[k]);
	buf_printf(out, ": %u words each, from %u, %u and %u\n", at->words, at->weights, at->changes, at->states);
	buf_printf(out, "limits\n");
	print_limit(out, "DRAM", at->dram_end, b->m->dram);
	print_limit(out, "SRAM", at->cases + (uint64_t)at->group * at->case_words, at->spill);
	print_limit(out, "microcode", b->c->lines, b->m->microcode);
	print_limit(out, "registers", most, b->m->registers);
}

static void print_bundle(const Bp *b, const BpBundle *n, Buf *out)
{
	char source[80], target[80];
	net_unit_name(b->net, n->source, source, sizeof source);
	net_unit_name(b->net, n->target, target, sizeof target);
	buf_printf(out, "\tlevel %u: %u links from %s on to %s on; forward %u, backward %u\n", n->level + 1, n->links,
	           source, target, n->forward, n->backward);
}

static void print_routine(const Bp *b, uint32_t i, Buf *out)
{
	const Routine *r = b->c->routine[i];
	buf_printf(out, "\t%4u  %-20s %7u cycles %6.1f %% of bound  %3u registers\n", i, r->name, b->c->cycles[i],
	           100.0 * r->report.bound / (r->report.cycles ? r->report.cycles : 1), r->report.registers);
}

/* Lines of all routines, had every bundle its own (section 9). */
static unsigned long long lines_unshared(const Bp *b)
{
	uint32_t *uses = NEW(&b->cx->scratch, b->c->routines, uint32_t);
	unsigned long long lines = 0;
	for (uint32_t i = 0; i < b->bundles; i++) {
		const BpBundle *n = &b->bundle[i];
		const uint32_t own[] = { n->forward, n->backward, n->fetch, n->fetch_both, n->flush };
		for (size_t k = 0; k < (b->best ? 2 : COUNT(own)); k++)
			uses[own[k]]++;
	}
	for (uint32_t i = 0; i < b->c->routines; i++)
		lines += (unsigned long long)b->c->routine[i]->lines * (uses[i] ? uses[i] : 1);
	return lines;
}

void bp_print(const Bp *b, Buf *out)
{
	buf_printf(out, "program gf11: %u processors of %s, compiler %s, sum %s, sigmoid %s, one case a processor\n",
	           b->p->procs, b->m->name, compiler_names[b->o.compiler], sum_names[b->o.sum],
	           sigmoid_names[b->o.sigmoid]);
	print_memory(b, out);
	if (b->disk)
		disk_print(b, out);
	buf_printf(out, "bundles, in the order of the forward pass\n");
	for (uint32_t i = 0; i < b->bundles; i++)
		print_bundle(b, &b->bundle[i], out);
	buf_printf(out, "routines, %u lines of microcode, %llu if bundles did not share them\n", b->c->lines,
	           lines_unshared(b));
	for (uint32_t i = 0; i < b->c->routines; i++)
		print_routine(b, i, out);
}
