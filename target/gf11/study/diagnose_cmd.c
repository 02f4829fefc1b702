/* SPDX-License-Identifier: MIT */
/* microprop gf11 diagnose. In: a network, a machine, injected faults or a number of trials. Out: approved processors,
 * located faults, and how they compare with the injected ones. */
#include <inttypes.h>
#include <string.h>

#include "gf11_diagnose.h"
#include "gf11_study.h"

/* ---- lists ---- */

static void list_end(const CommandRun *c, bool any)
{
	jw_end(c->json, ']');
	buf_puts(c->text, any ? "\n" : "none\n");
}

static void put_processors(const CommandRun *c, const char *key, const char *title, const Diagnosis *d, int low,
                           int high)
{
	uint32_t count = 0;
	jw_start(c->json, key, '[');
	buf_printf(c->text, "%-14s", title);
	for (uint32_t i = 0; i < d->processors; i++) {
		if (d->verdict[i] < low || d->verdict[i] > high)
			continue;
		jw_count(c->json, NULL, i);
		buf_printf(c->text, count++ ? ", %u (%s)" : "%u (%s)", i, verdict_names[d->verdict[i]]);
	}
	list_end(c, count);
}

static const char *fate(const Fault *f, bool found, bool changes)
{
	if (!fault_scored(f))
		return "not scored: transient";
	return found ? "found" : changes ? "MISSED" : "no effect on the program's results";
}

/* ---- scores ---- */

static void put_score(const CommandRun *c, const Score *s)
{
	const struct {
		const char *name, *text;
		uint64_t value;
	} rows[] = {
		{ "injected", "faults", s->injected },
		{ "detected", "found", s->detected },
		{ "missed", "missed", s->missed },
		{ "harmless", "no effect, not found", s->harmless },
		{ "false_alarms", "good processors refused", s->false_alarms },
		{ "approved", "processors approved", s->approved },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		jw_count(c->json, rows[i].name, rows[i].value);
		buf_printf(c->text, "%-28s %" PRIu64 "\n", rows[i].text, rows[i].value);
	}
}

/* ---- the command ---- */

static void report(CommandRun *c, Diagnosis *d)
{
	Score s = { 0 };
	uint32_t faults = d->faults ? d->faults->faults : 0;
	uint8_t *found = NEW(&c->cx->scratch, faults, uint8_t), *changes = NEW(&c->cx->scratch, faults, uint8_t);
	score_diagnosis(d, &s, found, changes);
	put_score(c, &s);
	put_processors(c, "refused", "refused", d, PROC_MEMORY, PROC_RESULT);
	put_processors(c, "lost", "lost", d, PROC_PORT, PROC_PORT);
	put_processors(c, "left_out", "left out", d, PROC_NO_ROUTE, PROC_NO_ROUTE);
	jw_start(c->json, "located", '[');
	buf_printf(c->text, "%-14s", "located");
	for (uint32_t i = 0; i < d->switches.locateds; i++) {
		Buf name = { .arena = &c->cx->scratch };
		suspects_print(d->switches.known, &d->switches.located[i], &name);
		jw_text(c->json, NULL, name.s);
		buf_printf(c->text, "%s%s", i ? ", " : "", name.s);
	}
	list_end(c, d->switches.locateds);
	static const Column columns[] = {
		{ .key = "fault" }, { .key = "scored" }, { .key = "found" }, { .key = "changes" }
	};
	Table t = json_table(c, columns, COUNT(columns));
	table_start(&t, "faults");
	for (uint32_t i = 0; i < faults; i++) {
		const Fault *f = &d->faults->fault[i];
		Buf name = { .arena = &c->cx->scratch };
		faults_print(f, &name);
		table_row(&t,
		          (TableCell[]){ tc_text(name.s), tc_flag(fault_scored(f)), tc_flag(found[i]), tc_flag(changes[i]) });
		buf_printf(c->text, "fault         %s: %s\n", name.s, fate(f, found[i], changes[i]));
	}
	table_end(&t);
	jw_count(c->json, "rounds", d->rounds);
	jw_count(c->json, "configurations_tried", d->switches.configurations);
	jw_real(c->json, "host_word_seconds", NULL, d->host_seconds);
	buf_printf(c->text, "# tests: %u of the whole, %u settings of the switch tried, %.3g s of the host for words\n",
	           d->rounds, d->switches.configurations, d->host_seconds);
	if (s.missed || s.false_alarms) {
		Buf why = { .arena = &c->cx->scratch };
		buf_printf(&why, "%" PRIu64 " faults were missed, %" PRIu64 " good processors refused", s.missed,
		           s.false_alarms);
		c->failure = why.s;
		c->remedy = "run it again: intermittent faults are not found every time";
	}
}

void run_diagnose(CommandRun *c)
{
	Diagnosis d = { .plan = plan_open(c->cx, c->operand[0]),
		            .m = c->m,
		            .o = compile_options(c),
		            .cases = c->cases ? c->cases : NETTALK_CASES,
		            .processors = procs_one(c) };
	d.opt = &d.plan->net->options;
	d.o.dry = false;
	if (c->m->ring_only && !c->sum)
		d.o.sum = SUM_RING; /* the only method possible there */
	if (c->faults) {
		d.faults = faults_new(c->cx, c->m, c->fault_seed);
		for (size_t i = 0; i < c->faults; i++)
			faults_add(d.faults, c->fault[i]);
	}
	c->used = d.processors;
	if (c->trials) {
		Score s = { 0 };
		static const char *const kinds[] = { "processors", "switch" };
		bool of_switch = c->trials_of && choice_read(c->cx, "--trials-of", c->trials_of, kinds, 2);
		diagnosis_begin(c->cx, &d);
		(of_switch ? trials_switch : trials_processors)(&d, c->trials, c->fault_seed, &s);
		put_score(c, &s);
		jw_text(c->json, "trials_of", of_switch ? "switch" : "processors");
		jw_count(c->json, "by_memory", s.by_memory);
		jw_count(c->json, "by_training", s.by_training);
		jw_count(c->json, "by_switch", s.by_switch);
		jw_count(c->json, "misplaced", s.misplaced);
		if (of_switch)
			buf_printf(c->text, "%-28s %" PRIu64 "\n", "other parts called dead", s.misplaced);
		else
			buf_printf(c->text, "%-28s %" PRIu64 " by tests of memory, %" PRIu64 " by training alone\n", "found",
			           s.by_memory, s.by_training);
	} else {
		diagnose(c->cx, &d);
		report(c, &d);
	}
	report_end(c, d.cycles, 0);
}
