/* SPDX-License-Identifier: MIT */
/* microprop gf11 diagnose. In: a network, a machine, what is broken on it, or a number of trials. Out: who is
 * approved, what was found where, and how that compares with what was broken. */
#include <inttypes.h>
#include <string.h>

#include "gf11_diagnose.h"
#include "gf11_study.h"

/* ---- lists ---- */

static void put_numbers(const Call *c, const char *name, const Diagnosis *d, int low, int high)
{
	uint32_t count = 0;
	if (c->json)
		buf_printf(c->out, "\"%s\": [", name);
	for (uint32_t i = 0; i < d->processors; i++) {
		if (d->verdict[i] < low || d->verdict[i] > high)
			continue;
		if (c->json)
			buf_printf(c->out, "%s%u", count ? ", " : "", i);
		else
			buf_printf(c->out, count ? ", %u (%s)" : "%u (%s)", i, verdict_names[d->verdict[i]]);
		count++;
	}
	buf_puts(c->out, c->json ? "], " : count ? "\n" : "none\n");
}

static void put_located(const Call *c, const SwitchTest *t)
{
	buf_puts(c->out, c->json ? "\"located\": [" : "");
	for (uint32_t i = 0; i < t->locateds; i++) {
		buf_puts(c->out, i ? ", " : "");
		buf_puts(c->out, c->json ? "\"" : "");
		suspects_print(t->known, &t->located[i], c->out);
		buf_puts(c->out, c->json ? "\"" : "");
	}
	buf_puts(c->out, c->json ? "], " : t->locateds ? "\n" : "none\n");
}

static const char *fate(const Fault *f, bool found, bool changes)
{
	if (!fault_scored(f))
		return "not scored: it comes once and goes";
	return found ? "found" : changes ? "MISSED" : "changes nothing that the program computes";
}

static void put_faults(const Call *c, const Faults *faults, const uint8_t *found, const uint8_t *changes)
{
	static const char *const truth[] = { "false", "true" };
	buf_puts(c->out, c->json ? "\"faults\": [" : "");
	for (uint32_t i = 0; faults && i < faults->faults; i++) {
		const Fault *f = &faults->fault[i];
		buf_puts(c->out, c->json ? (i ? ", {\"fault\": \"" : "{\"fault\": \"") : "fault         ");
		faults_print(f, c->out);
		if (c->json)
			buf_printf(c->out, "\", \"scored\": %s, \"found\": %s, \"changes\": %s}", truth[fault_scored(f)],
			           truth[found[i]], truth[changes[i]]);
		else
			buf_printf(c->out, ": %s\n", fate(f, found[i], changes[i]));
	}
	buf_puts(c->out, c->json ? "], " : "");
}

/* ---- scores ---- */

static void put_score(const Call *c, const Score *s)
{
	const struct {
		const char *name, *text;
		uint64_t value;
	} rows[] = {
		{ "injected", "faults", s->injected },
		{ "detected", "found", s->detected },
		{ "missed", "missed", s->missed },
		{ "harmless", "of no effect, and not found", s->harmless },
		{ "false_alarms", "good processors refused", s->false_alarms },
		{ "approved", "processors approved", s->approved },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (c->json)
			buf_printf(c->out, "\"%s\": %" PRIu64 ", ", rows[i].name, rows[i].value);
		else
			buf_printf(c->out, "%-28s %" PRIu64 "\n", rows[i].text, rows[i].value);
	}
}

static void put_trials(const Call *c, const Score *s, bool of_switch)
{
	if (c->json)
		buf_printf(c->out,
		           "\"trials_of\": \"%s\", \"by_memory\": %" PRIu64 ", \"by_training\": %" PRIu64
		           ", \"by_switch\": %" PRIu64 ", \"misplaced\": %" PRIu64 ", ",
		           of_switch ? "switch" : "processors", s->by_memory, s->by_training, s->by_switch, s->misplaced);
	else if (of_switch)
		buf_printf(c->out, "%-28s %" PRIu64 "\n", "other parts called dead", s->misplaced);
	else
		buf_printf(c->out, "%-28s %" PRIu64 " by tests of memory, %" PRIu64 " by training alone\n", "found",
		           s->by_memory, s->by_training);
}

/* ---- the command ---- */

static void report(Call *c, Diagnosis *d)
{
	Score s = { 0 };
	uint32_t faults = d->faults ? d->faults->faults : 0;
	uint8_t *found = NEW(&c->cx->scratch, faults, uint8_t), *changes = NEW(&c->cx->scratch, faults, uint8_t);
	score_diagnosis(d, &s, found, changes);
	put_score(c, &s);
	if (!c->json)
		buf_puts(c->out, "refused       ");
	put_numbers(c, "refused", d, PROC_MEMORY, PROC_RESULT);
	if (!c->json)
		buf_puts(c->out, "lost          ");
	put_numbers(c, "lost", d, PROC_PORT, PROC_PORT);
	if (!c->json)
		buf_puts(c->out, "left out      ");
	put_numbers(c, "left_out", d, PROC_NO_WAY, PROC_NO_WAY);
	if (!c->json)
		buf_puts(c->out, "located       ");
	put_located(c, &d->switches);
	put_faults(c, d->faults, found, changes);
	if (c->json)
		buf_printf(c->out, "\"rounds\": %u, \"configurations_tried\": %u, \"host_word_seconds\": %.6g, ", d->rounds,
		           d->switches.configurations, d->host_seconds);
	else
		buf_printf(c->out, "# tests: %u of the whole, %u settings of the switch tried, %.3g s of the host for words\n",
		           d->rounds, d->switches.configurations, d->host_seconds);
	if (s.missed || s.false_alarms) {
		Buf why = { .arena = &c->cx->scratch };
		buf_printf(&why, "%" PRIu64 " faults were missed, %" PRIu64 " good processors refused", s.missed,
		           s.false_alarms);
		c->failure = why.s;
		c->remedy = "run it again: faults that come now and then are found now and then";
	}
}

static void run_trials(const Call *c, Diagnosis *d)
{
	Score s = { 0 };
	static const char *const kinds[] = { "processors", "switch" };
	bool of_switch = c->trials_of && choice_read(c->cx, "--trials-of", c->trials_of, kinds, 2);
	diagnosis_begin(c->cx, d);
	(of_switch ? trials_switch : trials_processors)(d, c->trials, c->fault_seed, &s);
	put_score(c, &s);
	put_trials(c, &s, of_switch);
}

void run_diagnose(Call *c)
{
	Diagnosis d = { .plan = plan_open(c->cx, c->operand[0]),
		            .m = c->m,
		            .o = call_options(c),
		            .cases = c->cases ? c->cases : NETTALK_CASES,
		            .processors = (uint32_t)c->m->processors };
	d.opt = &d.plan->net->options;
	d.o.dry = false;
	if (c->m->ring_only && !c->sum)
		d.o.sum = SUM_RING; /* nothing else can be summed there */
	if (c->procs)
		d.processors = (uint32_t)whole_number(c, "procs", c->procs, 1, (uint64_t)c->m->processors);
	if (c->faults) {
		d.faults = faults_new(c->cx, c->m, c->fault_seed);
		for (size_t i = 0; i < c->faults; i++)
			faults_add(d.faults, c->fault[i]);
	}
	c->used = d.processors;
	if (c->json)
		json_begin(c);
	if (c->trials) {
		run_trials(c, &d);
	} else {
		diagnose(c->cx, &d);
		report(c, &d);
	}
	report_end(c, d.cycles, 0);
}
