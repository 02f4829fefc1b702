/* SPDX-License-Identifier: MIT */
/* A call on a machine with faults.  In: faults, a controller, a call.  Out: memory as the faulty machine leaves it,
 * and a log of the errors.
 *
 *   predict   which faults take effect in this call: register flips and ALU errors are drawn ahead; stuck bits, if the
 *             routine writes their word
 *   none      execute normally, possibly deferred
 *   a stuck bit whose word is written once and not read afterwards: corrected after the call
 *   others    affected processors are rerun cycle-accurately from their saved memory; all of them if the call has
 *             transfers
 *
 * Broken switch parts are in the routes (execute.c, translate.c).  Dead processors run with the others; their words
 * are cleared afterwards.
 * Must hold: memory and log equal those of a fully cycle-accurate run. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "footprint.h"

enum { MAX_RERUN = 64 }; /* processors rerun; beyond that, all are traced */
enum { NO_FAULT = MAX_FAULTS };

typedef struct FaultRun {
	Footprint **foot;
	uint32_t capacity; /* [routines] */
	uint16_t *first;   /* [procs] list of its faults (dead, stuck, alu, misroute); NO_FAULT: end */
	uint16_t next[MAX_FAULTS];
	uint8_t *mute; /* [procs] dead */
	uint16_t *dead;
	uint32_t deads; /* logical processors, as in all below */
	uint16_t flip[MAX_FAULTS];
	uint32_t flips; /* fault indices by kind: those that affect this program */
	uint16_t stuck[MAX_FAULTS];
	uint32_t stucks;
	uint16_t alu[MAX_FAULTS];
	uint32_t alus;
	uint16_t misroute[MAX_FAULTS];
	uint32_t misroutes;
	uint16_t broken[MAX_FAULTS];
	uint32_t brokens; /* switch parts */
	Dead parts;       /* storage of Switch.broken */
	/* The current call. */
	Faults *f;
	Controller *c;
	const Footprint *now;
	uint64_t begin, end; /* first cycle of the routine, and one past its last */
	uint8_t *watched;    /* [procs] */
	uint16_t *rerun;
	uint32_t reruns;             /* processors to rerun */
	uint8_t active[MAX_FAULTS];  /* takes effect in this call */
	uint8_t changed[MAX_FAULTS]; /* stuck: logged in this call */
	uint32_t *saved;
	size_t saved_capacity; /* [MAX_RERUN * words written by a routine, at most] */
} FaultRun;

/* ---- location of a fault ---- */

/* Its logical processor, or NO_ROUTE. */
static uint32_t lane_of(const Processors *p, const Fault *f)
{
	return f->proc < (uint32_t)p->m->processors ? p->at_port[f->proc] : NO_ROUTE;
}

static bool is_dead(const Processors *p, uint32_t lane) { return p->mute && p->mute[lane]; }

static bool in_place(const Fault *f, int place) { return f->places >> place & 1; }

static uint32_t *word_of(const Processors *p, bool dram, uint32_t addr, uint32_t lane)
{
	return (dram ? p->dram : p->sram) + (size_t)addr * p->lanes + lane;
}

static uint32_t forced(const Fault *f, uint32_t word)
{
	uint32_t bit = 1u << f->bit;
	return f->value ? word | bit : word & ~bit;
}

/* ---- attaching faults to a machine ---- */

static void dead_part(Dead *d, const Switch *s, const Fault *f)
{
	if (f->kind == FAULT_PORT)
		d->port[f->proc] = 1;
	else if (f->kind == FAULT_CROSSBAR)
		d->crossbar[f->stage][f->n] = 1;
	else
		d->link[f->stage][f->n * s->n + f->m] = 1;
}

/* Nothing broken: members are NULL, so that routes need not be traced through the crossbars. */
static void break_switch(const Faults *f, FaultRun *r, Switch *s)
{
	Dead *d = &r->parts;
	s->broken = (Dead){ 0 };
	if (!r->brokens)
		return;
	memset(d->port, 0, dead_size(s));
	for (uint32_t i = 0; i < r->brokens; i++)
		dead_part(d, s, &f->fault[r->broken[i]]);
	s->broken = *d;
}

static void fault_classify(const Faults *f, FaultRun *r, const Processors *p, uint16_t i)
{
	const Fault *fault = &f->fault[i];
	uint32_t lane = fault->kind == FAULT_FLIP || fault->kind == FAULT_DISK ? NO_ROUTE : lane_of(p, fault);
	switch (fault->kind) {
	case FAULT_FLIP: r->flip[r->flips++] = i; return;
	case FAULT_CROSSBAR:
	case FAULT_LINK:
	case FAULT_PORT: r->broken[r->brokens++] = i; return;
	}
	if (lane == NO_ROUTE)
		return;
	switch (fault->kind) {
	case FAULT_DEAD: r->dead[r->deads++] = (uint16_t)lane; break;
	case FAULT_STUCK: r->stuck[r->stucks++] = i; break;
	case FAULT_ALU: r->alu[r->alus++] = i; break;
	case FAULT_MISROUTE: r->misroute[r->misroutes++] = i; break;
	}
	uint16_t *end = &r->first[lane]; /* append: the last of contradicting faults wins, in all execution modes */
	while (*end != NO_FAULT)
		end = &r->next[*end];
	*end = i;
	r->next[i] = NO_FAULT;
}

static uint64_t place_bits(const Processors *p, int place)
{
	const int64_t words[IN_PLACES] = { p->m->registers, p->m->sram, p->m->dram };
	return 32 * (uint64_t)words[place] * p->procs;
}

/* Adds one interval to the time of the next flip. */
static void next_flip(FaultRun *r, uint16_t i, int place)
{
	const Processors *p = r->c->p;
	FaultWait *w = &r->f->wait[i];
	double rate = 1e-9 * p->m->clock * r->f->fault[i].rate * (double)place_bits(p, place);
	w->at[place] += fault_wait_cycles(r->f, i, DRAW_PLACE + 2 * place, w->flips[place]++, rate);
}

static uint64_t clock_now(const Faults *f, const Controller *c)
{
	return f->before + c->account.cycles + c->account.call_cycles;
}

static FaultRun *run_new(Controller *c)
{
	Arena *keep = &c->cx->keep;
	FaultRun *r = NEW(keep, 1, FaultRun);
	r->first = NEW(keep, c->p->procs, uint16_t);
	r->mute = NEW(keep, c->p->procs, uint8_t);
	r->watched = NEW(keep, c->p->procs, uint8_t);
	r->dead = NEW(keep, MAX_FAULTS, uint16_t);
	r->rerun = NEW(keep, c->p->procs, uint16_t);
	if (c->p->sw)
		r->parts = dead_new(keep, c->p->sw);
	return r;
}

void faults_loaded(Controller *c, uint32_t routine)
{
	FaultRun *r = c->fault_run;
	Arena *keep = &c->cx->keep;
	if (c->dry)
		return;
	if (routine >= r->capacity) {
		uint32_t capacity = c->capacity > routine ? c->capacity : routine + 1;
		r->foot = arena_grow(keep, r->foot, r->capacity, capacity, sizeof *r->foot);
		r->capacity = capacity;
	}
	if (!r->foot[routine])
		r->foot[routine] = footprint_make(c->cx, c->m, c->routine[routine]);
	size_t words = MAX_RERUN * (size_t)r->foot[routine]->written;
	if (words > r->saved_capacity) {
		r->saved = arena_grow(keep, r->saved, r->saved_capacity, words, sizeof *r->saved);
		r->saved_capacity = words;
	}
}

void faults_attach(Faults *f, Controller *c)
{
	Processors *p = c->p;
	controller_flush(c);
	if (!c->fault_run)
		c->fault_run = run_new(c);
	FaultRun *r = c->fault_run;
	c->faults = f;
	r->f = f;
	r->c = c;
	r->deads = r->flips = r->stucks = r->alus = r->misroutes = r->brokens = 0;
	for (uint32_t i = 0; i < p->procs; i++)
		r->first[i] = NO_FAULT;
	for (uint32_t i = 0; i < f->faults; i++)
		fault_classify(f, r, p, (uint16_t)i);
	memset(r->mute, 0, p->procs);
	for (uint32_t i = 0; i < r->deads; i++)
		r->mute[r->dead[i]] = 1;
	p->mute = r->deads ? r->mute : NULL;
	if (p->sw)
		break_switch(f, r, p->sw);
	for (uint32_t i = 0; i < c->routines; i++) {
		faults_loaded(c, i);
		if (!c->dry)
			execute_update_routes(p, c->prepared[i]);
	}
	for (uint32_t k = 0; k < r->flips; k++)
		for (int place = 0; place < IN_PLACES; place++) {
			FaultWait *w = &r->f->wait[r->flip[k]];
			if (w->at[place] >= 0)
				continue;
			w->at[place] = in_place(&r->f->fault[r->flip[k]], place) ? (double)clock_now(r->f, r->c) : INFINITY;
			if (w->at[place] < INFINITY)
				next_flip(r, r->flip[k], place);
		}
	if (!c->dry)
		faults_apply(f, p);
}

/* ---- permanent faults in memory ---- */

void faults_apply_words(Faults *f, Processors *p, bool dram, uint32_t addr, uint32_t count)
{
	for (uint32_t i = 0; i < f->faults; i++) {
		const Fault *fault = &f->fault[i];
		uint32_t lane = fault->kind == FAULT_DEAD || fault->kind == FAULT_STUCK ? lane_of(p, fault) : NO_ROUTE;
		if (lane == NO_ROUTE)
			continue;
		if (fault->kind == FAULT_STUCK) {
			if (!in_place(fault, dram ? IN_DRAM : IN_SRAM) || fault->addr - addr >= count)
				continue;
			uint32_t *word = word_of(p, dram, fault->addr, lane);
			f->wait[i].unlogged |= forced(fault, *word) != *word;
			*word = forced(fault, *word);
			continue;
		}
		for (uint32_t w = addr; w < addr + count; w++)
			if (*word_of(p, dram, w, lane)) /* do not map a page for a 0 */
				*word_of(p, dram, w, lane) = 0;
	}
}

void faults_apply(Faults *f, Processors *p)
{
	faults_apply_words(f, p, false, 0, (uint32_t)p->m->sram);
	faults_apply_words(f, p, true, 0, p->dram_used ? p->dram_used : (uint32_t)p->m->dram);
}

/* Clears what dead processors wrote. */
static void clear_dead(FaultRun *r, const Footprint *now, const uint32_t *base)
{
	Processors *p = r->c->p;
	for (uint32_t i = 0; i < r->deads; i++) {
		for (uint32_t k = 0; k < now->words; k++) {
			const WordUse *n = &now->word[k];
			if (n->writes)
				*word_of(p, n->far, base[n->base] + n->off, r->dead[i]) = 0;
		}
	}
}

void faults_after_call(Faults *f, Controller *c, uint32_t routine, const uint32_t *base)
{
	FaultRun *r = c->fault_run;
	clear_dead(r, r->foot[routine], base);
	if (r->foot[routine]->puts) /* faulty indices may write anywhere */
		faults_apply_words(f, c->p, false, 0, (uint32_t)c->m->sram);
}

/* ---- flips in memory: between calls ---- */

typedef struct BitAddress {
	uint32_t lane, addr;
	uint8_t bit;
} BitAddress;

static BitAddress flip_address(const FaultRun *r, uint16_t i, int place, uint64_t n)
{
	const Processors *p = r->c->p;
	uint64_t at = fault_draw(r->f, i, DRAW_PLACE + 2 * place + 1, n) % place_bits(p, place), word = at / 32;
	return (BitAddress){ (uint32_t)(word % p->procs), (uint32_t)(word / p->procs), (uint8_t)(at % 32) };
}

static bool is_stuck(const FaultRun *r, const BitAddress *s, int place)
{
	for (uint32_t i = r->first[s->lane]; i != NO_FAULT; i = r->next[i]) {
		const Fault *f = &r->f->fault[i];
		if (f->kind == FAULT_STUCK && in_place(f, place) && f->addr == s->addr && f->bit == s->bit)
			return true;
	}
	return false;
}

static void log_flip(FaultRun *r, uint16_t i, int place, const BitAddress *s)
{
	faults_log(r->f, &(FaultEvent){ .cycle = (uint64_t)r->f->wait[i].at[place],
	                                .fault = i,
	                                .proc = r->c->p->port[s->lane],
	                                .place = place,
	                                .addr = s->addr,
	                                .bit = s->bit });
}

static void flip_memory(FaultRun *r, uint16_t i, int place)
{
	Processors *p = r->c->p;
	for (FaultWait *w = &r->f->wait[i]; w->at[place] < (double)r->end; next_flip(r, i, place)) {
		BitAddress s = flip_address(r, i, place, w->flips[place]);
		if (is_dead(p, s.lane) || is_stuck(r, &s, place))
			continue;
		controller_flush(r->c);
		*word_of(p, place == IN_DRAM, s.addr, s.lane) ^= 1u << s.bit;
		log_flip(r, i, place, &s);
	}
}

/* ---- prediction: faults that take effect in this call ---- */

static void watch(FaultRun *r, uint32_t lane)
{
	if (!r->watched[lane])
		r->rerun[r->reruns++] = (uint16_t)lane;
	r->watched[lane] = 1;
}

/* Words that the processor sends in this routine. */
static uint64_t words_sent(const FaultRun *r, uint32_t lane)
{
	const Processors *p = r->c->p;
	uint64_t sent = 0;
	for (uint32_t i = 0; i < r->now->uses; i++)
		if (p->sw->to[r->now->use[i].configuration][p->port[lane]] != NO_ROUTE)
			sent += r->now->use[i].times;
	return sent;
}

enum { UNTOUCHED, WRITTEN_LAST, WITHIN };

/* How the routine uses the word of a stuck bit, which has its stuck value before the call. */
static int stuck_use(const FaultRun *r, const Fault *f, WordAccess *a)
{
	if (in_place(f, IN_REG))
		return r->now->registers[f->addr / 64] >> f->addr % 64 & 1 ? WITHIN : UNTOUCHED;
	*a = footprint_access(r->now, r->c->m, r->c->base, in_place(f, IN_DRAM), f->addr);
	if (a->put)
		return WITHIN;
	if (!a->writes)
		return UNTOUCHED;
	return a->writes == 1 && a->reads_end <= a->first_write && !a->looked_up ? WRITTEN_LAST : WITHIN;
}

static void log_stuck(FaultRun *r, uint16_t i, uint64_t cycle)
{
	const Fault *f = &r->f->fault[i];
	int place = in_place(f, IN_REG) ? IN_REG : in_place(f, IN_SRAM) ? IN_SRAM : IN_DRAM;
	faults_log(r->f, &(FaultEvent){
						 .cycle = cycle, .fault = i, .proc = f->proc, .place = place, .addr = f->addr, .bit = f->bit });
}

static bool predict_stuck(FaultRun *r, uint16_t i)
{
	const Fault *f = &r->f->fault[i];
	uint32_t lane = lane_of(r->c->p, f);
	WordAccess a;
	r->changed[i] = 0;
	r->active[i] = is_dead(r->c->p, lane) ? UNTOUCHED : (uint8_t)stuck_use(r, f, &a);
	if (r->active[i] == WITHIN || (r->active[i] && r->c->traced))
		watch(r, lane);
	return r->active[i];
}

/* True: words must be corrected after the call. */
static bool predict(FaultRun *r)
{
	bool after = false;
	for (uint32_t k = 0; k < r->flips; k++) {
		/* Finds the register flips within this call; they take effect while it runs. */
		uint16_t i = r->flip[k];
		FaultWait *w = &r->f->wait[i], kept;
		for (; w->at[IN_REG] < (double)r->begin; next_flip(r, i, IN_REG)) {
			BitAddress s = flip_address(r, i, IN_REG, w->flips[IN_REG]);
			if (!is_dead(r->c->p, s.lane))
				log_flip(r, i, IN_REG, &s); /* between calls: registers hold no values */
		}
		kept = *w;
		for (; w->at[IN_REG] < (double)r->end; next_flip(r, i, IN_REG)) {
			uint32_t lane = flip_address(r, i, IN_REG, w->flips[IN_REG]).lane;
			if (!is_dead(r->c->p, lane))
				watch(r, lane);
		}
		*w = kept;
	}
	for (uint32_t k = 0; k < r->alus; k++) {
		uint16_t i = r->alu[k];
		uint32_t lane = lane_of(r->c->p, &r->f->fault[i]);
		FaultWait *w = &r->f->wait[i];
		r->active[i] = !is_dead(r->c->p, lane) && w->left < r->now->alu;
		if (r->active[i])
			watch(r, lane);
		else if (!is_dead(r->c->p, lane))
			w->left -= r->now->alu;
	}
	for (uint32_t k = 0; k < r->misroutes && r->now->uses; k++) {
		uint16_t i = r->misroute[k];
		const Processors *p = r->c->p;
		uint32_t lane = lane_of(p, &r->f->fault[i]);
		FaultWait *w = &r->f->wait[i];
		r->active[i] = 0;
		if (is_dead(p, lane) || (p->sw->broken.port && p->sw->broken.port[p->port[lane]]))
			continue;
		uint64_t sent = words_sent(r, lane);
		r->active[i] = w->left < sent;
		if (r->active[i])
			watch(r, lane);
		else
			w->left -= sent;
	}
	for (uint32_t k = 0; k < r->stucks; k++)
		after |= predict_stuck(r, r->stuck[k]);
	return after;
}

/* ---- words lost in the switch, permanent faults: log ---- */

static bool crosses(const Fault *f, const Path *p)
{
	switch (f->kind) {
	case FAULT_PORT: return f->proc == p->from || f->proc == p->to;
	case FAULT_CROSSBAR: return p->box[f->stage] == f->n;
	default: return p->box[f->stage] == f->n && p->box[f->stage + 1] == f->m;
	}
}

static void log_lost(FaultRun *r, uint16_t i)
{
	const Processors *p = r->c->p;
	for (uint32_t k = 0; k < r->now->uses; k++)
		for (uint32_t lane = 0; lane < p->procs; lane++) {
			Path path = switch_path(p->sw, &p->sw->setting[r->now->use[k].configuration], p->port[lane]);
			if (path.to == NO_ROUTE || p->at_port[path.to] == NO_ROUTE || !crosses(&r->f->fault[i], &path))
				continue;
			faults_log(r->f,
			           &(FaultEvent){
						   .cycle = r->begin + r->now->use[k].first, .fault = i, .proc = p->port[lane], .place = -1 });
			return;
		}
}

/* ---- hooks of the interpreter ---- */

static void hook_cycle(void *user, uint64_t now)
{
	FaultRun *r = user;
	for (uint32_t k = 0; k < r->flips; k++) {
		uint16_t i = r->flip[k];
		FaultWait *w = &r->f->wait[i];
		uint64_t until = r->begin + now + 1 < r->end ? r->begin + now + 1 : r->end;
		for (; w->at[IN_REG] < (double)until; next_flip(r, i, IN_REG)) {
			BitAddress s = flip_address(r, i, IN_REG, w->flips[IN_REG]);
			if (is_dead(r->c->p, s.lane))
				continue;
			log_flip(r, i, IN_REG, &s);
			if (!is_stuck(r, &s, IN_REG))
				block_row(r->c->p, s.lane / LANES, s.addr)[s.lane % LANES] ^= 1u << s.bit;
		}
	}
}

/* True: an error occurs now; draws the next interval. */
static bool goes_wrong(FaultRun *r, uint16_t i)
{
	FaultWait *w = &r->f->wait[i];
	if (w->left--)
		return false;
	w->left = fault_wait_words(r->f, i, w->drawn++, r->f->fault[i].rate);
	return true;
}

static uint32_t hook_result(void *user, uint32_t lane, const Micro *u, uint64_t now, uint32_t word)
{
	FaultRun *r = user;
	bool comparison = ops[u->op].form == FORM_CMP;
	for (uint16_t i = r->first[lane]; i != NO_FAULT; i = r->next[i]) {
		if (r->f->fault[i].kind != FAULT_ALU || !r->active[i] || !goes_wrong(r, i))
			continue;
		uint8_t bit = comparison ? 0 : fault_draw(r->f, i, DRAW_BIT, r->f->wait[i].drawn) & 31;
		word ^= 1u << bit;
		faults_log(r->f, &(FaultEvent){ .cycle = r->begin + now,
		                                .fault = i,
		                                .proc = r->c->p->port[lane],
		                                .place = IN_REG,
		                                .addr = comparison ? u->cc : u->dst,
		                                .bit = bit });
	}
	return word;
}

static uint32_t hook_write(void *user, uint32_t lane, int place, uint32_t addr, uint64_t now, uint32_t word)
{
	FaultRun *r = user;
	if (is_dead(r->c->p, lane))
		return 0;
	for (uint16_t i = r->first[lane]; place >= 0 && i != NO_FAULT; i = r->next[i]) {
		const Fault *f = &r->f->fault[i];
		if (f->kind != FAULT_STUCK || !in_place(f, place) || f->addr != addr || forced(f, word) == word)
			continue;
		word = forced(f, word);
		if (!r->changed[i])
			log_stuck(r, i, r->begin + now);
		r->changed[i] = 1;
	}
	return word;
}

static uint32_t hook_route(void *user, uint32_t lane, uint64_t now, uint32_t port)
{
	FaultRun *r = user;
	uint32_t ports = r->c->p->sw->ports;
	for (uint16_t i = r->first[lane]; i != NO_FAULT; i = r->next[i]) {
		if (r->f->fault[i].kind != FAULT_MISROUTE || !r->active[i] || !goes_wrong(r, i) || ports < 2)
			continue;
		port = (uint32_t)((port + 1 + fault_draw(r->f, i, DRAW_TO, r->f->wait[i].drawn) % (ports - 1)) % ports);
		faults_log(r->f,
		           &(FaultEvent){
					   .cycle = r->begin + now, .fault = i, .proc = r->c->p->port[lane], .place = -1, .addr = port });
	}
	return port;
}

static void run_hooked(FaultRun *r, uint32_t routine, bool all)
{
	Controller *c = r->c;
	FaultHooks w = { .watched = r->watched,
		             .only_watched = !all,
		             .user = r,
		             .cycle = hook_cycle,
		             .result = hook_result,
		             .write = hook_write };
	if (r->misroutes && r->now->uses)
		w.route = hook_route;
	for (uint32_t i = 0; i < r->deads && all; i++)
		r->watched[r->dead[i]] = 1;
	execute_hooked(c->p, c->routine[routine], c->base, &w, c->trace, c->trace_user);
	for (uint32_t i = 0; i < r->deads && all; i++)
		r->watched[r->dead[i]] = 0;
}

/* Saves or restores what the routine writes, for the processors to rerun. */
static void save_words(FaultRun *r, bool back)
{
	const Processors *p = r->c->p;
	uint32_t *saved = r->saved;
	for (uint32_t k = 0; k < r->now->words; k++) {
		const WordUse *n = &r->now->word[k];
		if (!n->writes)
			continue;
		uint32_t *row = word_of(p, n->far, r->c->base[n->base] + n->off, 0);
		for (uint32_t i = 0; i < r->reruns; i++, saved++) {
			if (back)
				row[r->rerun[i]] = *saved;
			else
				*saved = row[r->rerun[i]];
		}
	}
}

/* ---- the call ---- */

static int earlier(const void *x, const void *y)
{
	const FaultEvent *a = x, *b = y;
	if (a->cycle != b->cycle)
		return a->cycle < b->cycle ? -1 : 1;
	if (a->fault != b->fault)
		return a->fault < b->fault ? -1 : 1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->bit - b->bit;
}

static void run_call(FaultRun *r, uint32_t routine, bool after)
{
	Controller *c = r->c;
	if (!c->traced && !r->reruns && !after) {
		controller_enqueue(c, routine);
		return;
	}
	controller_flush(c);
	if (c->traced || (r->reruns && (r->now->uses || r->now->puts || r->reruns > MAX_RERUN))) {
		run_hooked(r, routine, true);
	} else if (r->reruns) {
		save_words(r, false);
		execute_fast(c->p, c->prepared[routine], c->base);
		save_words(r, true);
		run_hooked(r, routine, false);
		clear_dead(r, r->now, c->base);
	} else {
		execute_fast(c->p, c->prepared[routine], c->base);
		faults_after_call(r->f, c, routine, c->base);
	}
	/* Corrects words whose stuck bit was written last. */
	for (uint32_t k = 0; k < r->stucks; k++) {
		uint16_t i = r->stuck[k];
		const Fault *f = &r->f->fault[i];
		uint32_t lane = lane_of(r->c->p, f);
		WordAccess a;
		if (r->active[i] != WRITTEN_LAST || r->watched[lane])
			continue;
		stuck_use(r, f, &a);
		uint32_t *word = word_of(r->c->p, in_place(f, IN_DRAM), f->addr, lane);
		if (forced(f, *word) != *word)
			log_stuck(r, i, r->begin + a.first_write);
		*word = forced(f, *word);
	}
}

void faults_call(Faults *f, Controller *c, uint32_t routine)
{
	FaultRun *r = c->fault_run;
	uint64_t first = f->events;
	r->now = r->foot[routine];
	r->begin = clock_now(f, c) + (uint64_t)c->m->host_call;
	r->end = r->begin + c->cycles[routine];
	for (uint32_t k = 0; k < r->flips; k++) {
		flip_memory(r, r->flip[k], IN_SRAM);
		flip_memory(r, r->flip[k], IN_DRAM);
	}
	r->reruns = 0;
	bool after = predict(r);
	/* Logs dead processors before their first call, stuck bits that changed a word written by the host, and words lost
	 * in broken switch parts. */
	for (uint32_t i = 0; i < r->f->faults && r->deads; i++) {
		const Fault *fault = &r->f->fault[i];
		if (fault->kind != FAULT_DEAD || r->f->wait[i].seen || lane_of(r->c->p, fault) == NO_ROUTE)
			continue;
		r->f->wait[i].seen = true;
		faults_log(r->f, &(FaultEvent){ .cycle = r->begin, .fault = i, .proc = fault->proc, .place = -1 });
	}
	for (uint32_t k = 0; k < r->stucks; k++) {
		FaultWait *w = &r->f->wait[r->stuck[k]];
		if (w->unlogged)
			log_stuck(r, r->stuck[k], r->begin);
		w->unlogged = false;
	}
	for (uint32_t k = 0; k < r->brokens; k++)
		log_lost(r, r->broken[k]);
	run_call(r, routine, after);
	for (uint32_t i = 0; i < r->reruns; i++)
		r->watched[r->rerun[i]] = 0;
	if (f->events > first + 1)
		qsort(f->event + first, f->events - first, sizeof *f->event, earlier);
}
