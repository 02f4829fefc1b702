/* SPDX-License-Identifier: MIT */
/* Timeline of an epoch. In: a program while an epoch is simulated. Out: stretches of calls for the same purpose, in the
 * order of time.
 *
 * A call's purpose is the part of the account (Bp.cycles_forward, ...) that grows by it. The update is accounted for
 * as a whole: calls wait until a part has grown. */
#include <assert.h>
#include <inttypes.h>

#include "gf11_study.h"

static const struct {
	const char *name;
	size_t counter;
} parts[] = {
	{ "forward", offsetof(Bp, cycles_forward) }, { "backward", offsetof(Bp, cycles_backward) },
	{ "units", offsetof(Bp, cycles_units) },     { "memory", offsetof(Bp, cycles_moves) },
	{ "update", offsetof(Bp, cycles_update) },
};
static_assert(COUNT(parts) == TIMELINE_PARTS, "parts of an epoch");

static uint64_t part_cycles(const Bp *b, size_t part)
{
	return *(const uint64_t *)(const void *)((const char *)b + parts[part].counter);
}

static void stretch_add(Timeline *t, size_t part, uint64_t cycles)
{
	Stretch *last = t->count ? &t->stretch[t->count - 1] : NULL;
	if (!last || last->part != part) {
		if (t->count == t->capacity) {
			uint64_t capacity = 2 * t->capacity + 64;
			t->stretch = arena_grow(&t->b->cx->keep, t->stretch, t->capacity, capacity, sizeof *t->stretch);
			t->capacity = capacity;
		}
		assert(t->stretch);
		last = &t->stretch[t->count++];
		*last = (Stretch){ .part = part };
	}
	last->calls += t->waiting;
	last->cycles += cycles;
	t->waiting = 0;
}

/* Before a call, and at the end: those that were made have been accounted for, or wait for others. */
static void timeline_look(void *user)
{
	Timeline *t = user;
	for (size_t i = 0; i < COUNT(parts); i++) {
		uint64_t now = part_cycles(t->b, i);
		if (now > t->seen[i])
			stretch_add(t, i, now - t->seen[i]);
		t->seen[i] = now;
	}
	t->waiting++;
}

void timeline_start(Timeline *t, Bp *b)
{
	*t = (Timeline){ .b = b };
	for (size_t i = 0; i < COUNT(parts); i++)
		t->seen[i] = part_cycles(b, i);
	b->c->watch = timeline_look;
	b->c->watch_user = t;
}

void timeline_end(Timeline *t)
{
	timeline_look(t);
	t->b->c->watch = NULL;
}

static const Column columns[] = {
	{ "start", "from cycle", .width = 10 }, { "part", "part", .width = -8 }, { "calls", "calls", .width = 7 },
	{ "cycles", "cycles", .width = 10 },    { "host", "host", .width = 9 },
};

/* cycles: of routines; host: of their calls. */
void timeline_print(const CommandRun *c, const Timeline *t)
{
	const Table table = report_table(c, columns, COUNT(columns));
	uint64_t start = 0;
	table_start(&table, "timeline");
	for (uint64_t i = 0; i < t->count; i++) {
		const Stretch *s = &t->stretch[i];
		uint64_t host = s->calls * (uint64_t)c->m->host_call;
		table_row(&table, (const TableCell[]){ tc_count(start), tc_text(parts[s->part].name), tc_count(s->calls),
		                                       tc_count(s->cycles), tc_count(host) });
		start += s->cycles + host;
	}
	table_end(&table);
}
