/* SPDX-License-Identifier: MIT */
/* Machine files.  In: a machine file (params.c).  Out: a Machine in which every parameter of machine.def
 * has a value in its range and a provenance.  Must hold: parameters are consistent with each other. */
#include <string.h>

#include "gf11_machine.h"

const MachineRow machine_rows[] = {
#define MACHINE_INT(f, name, unit, low, high, about)   { name, unit, about, offsetof(Machine, f), false, low, high, 0 },
#define MACHINE_REAL(f, name, unit, low, high, about)  { name, unit, about, offsetof(Machine, f), true, low, high, 0 },
#define MACHINE_LATER(f, name, unit, low, high, about) { name, unit, about, offsetof(Machine, f), true, low, high, 1 },
#include "machine.def"
};
const size_t machine_row_count = COUNT(machine_rows);

/* Files of machines/, embedded by CMake: the library needs no data directory. */
static const ParamFile built_in[] = {
#define PARAM_FILE(name, ...) { name, (const unsigned char[]){ __VA_ARGS__, 0 } },
#include "machines.def"
};

static const ParamKind machines = { "machine", "gf11", machine_rows, COUNT(machine_rows), built_in, COUNT(built_in) };

const MachineRow *machine_row(const char *name)
{
	for (size_t i = 0; i < machine_row_count; i++)
		if (strcmp(machine_rows[i].name, name) == 0)
			return &machine_rows[i];
	return NULL;
}

void machine_put(Machine *m, const MachineRow *row, double v)
{
	void *field = (char *)m + row->offset;
	if (row->real)
		*(double *)field = v;
	else
		*(int64_t *)field = (int64_t)v;
}

Machine *machine_parse(Ctx *cx, const Src *src)
{
	Machine *m = NEW(&cx->keep, 1, Machine);
	Params p = params_read(cx, &machines, src, m);
	m->name = params_name(cx, src);
	m->from = p.from;
	if (!m->ring_only && m->crossbar * m->crossbar != m->switch_ports)
		error_at(p.cx, param_at(&p, "switch-ports"), "set switch-ports to the square of crossbar",
		         "three stages of crossbars of %lld ports join %lld ports, not %lld", (long long)m->crossbar,
		         (long long)(m->crossbar * m->crossbar), (long long)m->switch_ports);
	if (!m->ring_only && m->processors + m->disks > m->switch_ports)
		error_at(p.cx, param_at(&p, "processors"), "set more switch-ports, or fewer processors or disks",
		         "%lld processors and %lld disks do not fit %lld switch ports", (long long)m->processors,
		         (long long)m->disks, (long long)m->switch_ports);
	if (m->block > m->microcode)
		error_at(p.cx, param_at(&p, "block"), "set block to no more than microcode",
		         "a block of %lld lines does not fit %lld lines of microcode", (long long)m->block,
		         (long long)m->microcode);
	check_errors(cx);
	return m;
}

Machine *machine_open(Ctx *cx, const char *name) { return machine_parse(cx, params_find(cx, &machines, name)); }

void machine_print(const Machine *m, Buf *out) { params_print(&machines, m->name, m->from, m, out); }

uint32_t machine_disks(const Machine *m)
{
	int64_t ports = m->ring_only || m->switch_ports < m->processors ? 0 : m->switch_ports - m->processors;
	return m->disk_rate > 0 ? min_u32((uint32_t)m->disks, (uint32_t)ports) : 0;
}
