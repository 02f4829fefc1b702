/* SPDX-License-Identifier: MIT */
/* Processors: memories, registers, ports.  In: a machine, a switch.  Out: zeroed memory, the mapping from logical to
 * physical processors, receivers of stored configurations. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "gf11_machine.h"
#include "system.h"

typedef struct Mapping {
	void *at;
	size_t bytes;
} Mapping;

static void unmap(void *arg)
{
	Mapping *m = arg;
	munmap(m->at, m->bytes);
}

/* Zeroed memory; pages are mapped on first use. */
static void *map_memory(Ctx *cx, const char *what, uint64_t rows, uint64_t words, bool hot)
{
	uint64_t bytes = rows * words * sizeof(uint32_t); /* at most 2^24 rows of 2^13 words: no overflow */
	Mapping *m = NEW(&cx->keep, 1, Mapping);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		fail(cx, MP_NO_MEMORY, "use fewer processors, or a machine file with less memory",
		     "cannot map %llu bytes of %s: %s", (unsigned long long)bytes, what, strerror(errno));
	*m = (Mapping){ at, bytes };
	arena_defer(&cx->keep, unmap, m);
	if (hot)
		madvise(at, bytes, MADV_HUGEPAGE); /* hint: rows of a block spread over many small pages */
	return at;
}

static uint32_t port_count(const Processors *p)
{
	return (uint32_t)(p->m->switch_ports > p->m->processors ? p->m->switch_ports : p->m->processors);
}

void processors_map(Ctx *cx, Processors *p, const uint16_t *port)
{
	assert(!p->sw || !p->sw->stored);
	memset(p->at_port, 0xFF, port_count(p) * sizeof *p->at_port);
	for (uint32_t i = 0; i < p->procs; i++) {
		if (port[i] >= p->m->processors)
			fail(cx, MP_BAD_INPUT, "number the processors of the machine from 0",
			     "there is no processor %u: %s has %lld", port[i], p->m->name, (long long)p->m->processors);
		if (p->at_port[port[i]] != NO_ROUTE)
			fail(cx, MP_BAD_INPUT, "name every processor once", "processor %u of the machine is named twice", port[i]);
		p->port[i] = port[i];
		p->at_port[port[i]] = (uint16_t)i;
	}
}

/* NULL: a ring has none. */
static const Setting *setting_of(const Processors *p, uint32_t configuration)
{
	return p->sw->setting ? &p->sw->setting[configuration] : NULL;
}

uint32_t processors_receiver(const Processors *p, uint32_t configuration, uint32_t proc)
{
	uint32_t port = p->port[proc], to = p->sw->to[configuration][port];
	if (to == NO_ROUTE || (p->mute && p->mute[proc]) || !switch_delivers(p->sw, setting_of(p, configuration), port))
		return NO_ROUTE;
	return p->at_port[to];
}

uint32_t processors_disk_port(const Processors *p, uint32_t disk) { return p->sw->ports - p->disks + disk; }

uint32_t processors_from_disk(const Processors *p, uint32_t configuration, uint32_t disk)
{
	uint32_t port = processors_disk_port(p, disk), to = p->sw->to[configuration][port];
	if (to == NO_ROUTE || !switch_delivers(p->sw, setting_of(p, configuration), port))
		return NO_ROUTE;
	return p->at_port[to];
}

bool processors_disks_send(const Processors *p, uint32_t configuration)
{
	for (uint32_t i = 0; i < p->disks; i++)
		if (p->sw->to[configuration][processors_disk_port(p, i)] != NO_ROUTE)
			return true;
	return false;
}

Processors *processors_new(Ctx *cx, const Machine *m, Switch *sw, uint32_t procs, uint32_t threads)
{
	if (procs < 1 || procs > m->processors)
		fail(cx, MP_BAD_INPUT, "ask for 1 or more, and not more than the machine has", "%u processors: %s has %lld",
		     procs, m->name, (long long)m->processors);
	Processors *p = NEW(&cx->keep, 1, Processors);
	p->m = m;
	p->sw = sw;
	p->disks = sw ? machine_disks(m) : 0;
	p->procs = procs;
	p->blocks = (uint32_t)ceil_div(procs, LANES);
	p->lanes = (p->blocks | 1) * LANES; /* odd multiple: rows of a block map to all cache sets */
	/* Rows per block.  Interpreter: registers, condition codes and results in flight, some of two rows.  Fast kernels:
	 * live values, at most as many, plus operands held for fused instructions. */
	int64_t in_flight =
		m->alu_latency + m->sram_latency + m->lookup_latency + m->store_latency + m->dram_latency + m->switch_latency;
	p->slots = (uint32_t)(m->registers + m->conditions + 2 * in_flight + 1024);
	p->reg = map_memory(cx, "registers", p->blocks, (uint64_t)p->slots * LANES, true);
	p->sram = map_memory(cx, "SRAM", (uint64_t)m->sram, p->lanes, true);
	p->dram = map_memory(cx, "DRAM", (uint64_t)m->dram, p->lanes, false);
	p->port = NEW(&cx->keep, p->procs, uint16_t);
	p->at_port = NEW(&cx->keep, port_count(p), uint16_t);
	memset(p->at_port, 0xFF, port_count(p) * sizeof *p->at_port); /* NO_ROUTE */
	for (uint32_t i = 0; i < p->procs; i++)
		p->port[i] = p->at_port[i] = (uint16_t)i;
	p->pool = pool_new(cx, max_u32(1, min_u32(threads, p->blocks)));
	p->threads = pool_threads(p->pool);
	return p;
}

uint32_t *processors_register(const Processors *p, uint32_t number, uint32_t proc)
{
	return p->reg + ((size_t)(proc / LANES) * p->slots + number) * LANES + proc % LANES;
}
