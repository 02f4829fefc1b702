/* SPDX-License-Identifier: MIT */
/* Rollback of a guarded run.  In: a fault, or an outlier to be replayed, and the latest snapshot that cannot hold it.
 * Out: the run as it was at a valid snapshot, alone or on all ranks, and a note on the fault; or the run fails. */
#include <string.h>

#include "parts.h"
#include "ranks.h"

enum { MOST_NOTES = 20, MAX_ATTEMPTS = 6 }; /* faults reported one by one; rollbacks without progress */

/* To the latest valid snapshot, alone or with all ranks.  fault: its cause; NULL: an outlier is to be replayed. */
static void restore(Guard *g, int newest, const char *fault)
{
	Run *r = g->r;
	bool give_up = fault && ++g->attempts > MAX_ATTEMPTS;
	unsigned long long update = r->at.updates;
	int which = snapshot_choose(&g->state, newest, &give_up, &g->count.snapshots);
	if (r->ranks)
		r->ranks->ended = which < 0; /* all ranks know, and fail without a message */
	if (give_up)
		fail(&r->cx, MP_FAILED, "start again from the last checkpoint, on another machine or on other cores (taskset)",
		     "update %llu fails again and again: %s", update, fault ? fault : "it jumps");
	if (which < 0)
		fail(&r->cx, MP_FAILED, "start again from the last checkpoint, on another machine",
		     "every snapshot of the weights in memory is corrupted too");
	snapshot_restore(&g->state, which);
	g->at = r->at;
	g->checksummed = true;
	g->monitor.corrupted_sums = 0;
	if (r->ranks)
		r->ranks->due = 0; /* tasks that were agreed on are void */
	order_forget(g->order);
	g->monitor.corrupted_lists = 0;
	r->target->guard->attach(r->program, &g->monitor); /* discards the current batch */
	if (which != SNAPSHOT_RECENT)
		g->state.snapshot[SNAPSHOT_RECENT].valid = false;
	if (g->in_pass && r->at.epoch < g->pass_epoch)
		g->in_pass = g->state.snapshot[SNAPSHOT_PASS].valid = false;
	if (fault) {
		g->count.rollbacks++;
		g->outlier.update = 0; /* if there was one, this was its cause */
	}
}

static const char remedy[] =
	"training goes on from a snapshot; look into the memory of this machine if it happens again";

/* A fault, with the position before it. */
static const char *fault_text(Guard *g, const char *fault)
{
	Buf b = { .arena = &g->r->cx.scratch };
	buf_printf(&b, "epoch %llu, update %llu: %s", (unsigned long long)g->r->at.epoch + 1,
	           (unsigned long long)g->r->at.updates, fault);
	return b.s;
}

/* Reports a fault_text, of this process or of a rank; returns its end, with the rank. */
static const char *report_fault(Guard *g, uint32_t rank, const char *text)
{
	Buf b = { .arena = &g->r->cx.scratch };
	int place = (int)(strchr(text, ':') - text);
	if (rank != UINT32_MAX)
		buf_printf(&b, "rank %u: ", rank);
	buf_puts(&b, text + place + 2);
	if (g->notes++ < MOST_NOTES)
		note(&g->r->cx, remedy, "silent corruption in %.*s: %s", place, text, b.s);
	return b.s;
}

/* After an exchange: a rank has requested it, or weights mismatch. All ranks do this. */
void guard_roll_back_ranks(void *self, const char *mismatch)
{
	Guard *g = self;
	const Message *all = &g->r->ranks->all;
	bool requested = all->kind == MSG_ROLLBACK;
	const char *fault = NULL;
	if (mismatch)
		fault = report_fault(g, UINT32_MAX, fault_text(g, mismatch));
	else if (requested && *all->text)
		fault = report_fault(g, all->culprit, all->text);
	restore(g, requested ? all->snapshot : SNAPSHOT_RECENT, fault);
}

/* Alone, or with all ranks in their next exchange. */
Status guard_roll_back(Guard *g, int newest, const char *fault)
{
	const char *text = fault ? fault_text(g, fault) : "";
	if (g->r->ranks) {
		ranks_request_rollback(&g->r->cx, g->r->ranks, newest, text);
		guard_roll_back_ranks(g, NULL);
	} else {
		restore(g, newest, fault ? report_fault(g, UINT32_MAX, text) : NULL);
	}
	return ROLLED_BACK;
}

Status guard_fault(Guard *g, uint64_t *count, int newest, const char *fault)
{
	++*count;
	return guard_roll_back(g, newest, fault);
}
