/* SPDX-License-Identifier: MIT */
/* Arguments of the back-propagation commands. In: words of the command line. Out: networks, numbers, choices, compiler
 * options, simulated epochs; or a message with the remedy. */
#include <string.h>

#include "gf11_study.h"

/* ---- networks ---- */

static const Plan *plan_parse(Ctx *cx, const Src *src, int defaults)
{
	static const Caps caps = { .target = "gf11", .lanes = 1 };
	return plan_make(cx, net_parse(cx, src, defaults), &caps);
}

const Plan *plan_layers(Ctx *cx, uint32_t inputs, uint32_t hidden, uint32_t outputs)
{
	Buf text = { .arena = &cx->keep }, name = { .arena = &cx->keep };
	Src *src = NEW(&cx->keep, 1, Src);
	buf_printf(&text,
	           "group in %u input\ngroup hidden %u\ngroup out %u output\nconnect in -> hidden\n"
	           "connect hidden -> out\nconnect true -> hidden, out\n",
	           inputs, hidden, outputs);
	buf_printf(&name, "%u-%u-%u", inputs, hidden, outputs);
	*src = (Src){ .name = name.s, .text = text.s, .len = text.len };
	return plan_parse(cx, src, DEFAULTS_1989);
}

const Plan *plan_open(Ctx *cx, const char *path)
{
	return path ? plan_parse(cx, src_open(cx, &cx->keep, path), DEFAULTS_NEWEST) : plan_layers(cx, 203, 60, 26);
}

bool plan_is_nettalk(const Plan *plan, uint64_t cases)
{
	return plan->W == 13826 && plan->Wi == 12240 && plan->U == 289 && cases == NETTALK_CASES;
}

/* ---- words ---- */

int choice_read(Ctx *cx, const char *option, const char *word, const char *const *names, int count)
{
	Buf list = { .arena = &cx->scratch };
	buf_puts(&list, "write one of:");
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], word) == 0)
			return i;
		buf_printf(&list, " %s", names[i]);
	}
	fail(cx, MP_BAD_INPUT, list.s, "%s cannot be '%s'", option, word);
}

uint32_t procs_or(const CommandRun *c, const double *usual, uint32_t most, double **value)
{
	const MachineRow row = { .low = 1, .high = (double)c->m->processors };
	if (c->procs)
		return range_read(c->cx, "--procs", c->procs, &row, value);
	uint32_t count = 0;
	*value = NEW(&c->cx->scratch, most + 1, double);
	while (count < most && usual[count] < row.high) {
		(*value)[count] = usual[count];
		count++;
	}
	(*value)[count++] = row.high;
	return count;
}

uint32_t procs_one(const CommandRun *c)
{
	uint64_t all = (uint64_t)c->m->processors;
	return (uint32_t)(c->procs ? whole_number(c, "procs", c->procs, 1, all) : all);
}

uint32_t procs_read(const CommandRun *c, double **value)
{
	static const double usual[] = { 8, 16, 32, 64, 128, 256, 356, 512 };
	return procs_or(c, usual, COUNT(usual), value);
}

/* ---- compiling ---- */

BpOptions compile_options(const CommandRun *c)
{
	return (BpOptions){
		.sum = c->sum ? choice_read(c->cx, "--sum", c->sum, sum_names, SUMS) : SUM_TREE,
		.sigmoid = c->sigmoid ? choice_read(c->cx, "--sigmoid", c->sigmoid, sigmoid_names, 2) : SIGMOID_TABLE,
		.compiler = c->compiler ? choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) : COMPILER_1989,
		.small = c->small ? choice_read(c->cx, "--small-layers", c->small, small_names, SMALLS) : SMALL_AUTO,
		.bundle = (uint32_t)c->bundle,
		.update = (uint32_t)c->update,
		.group = (uint32_t)c->group,
		.ring = c->ring ? choice_read(c->cx, "--ring", c->ring, ring_names, RING_KINDS) : RING_CUT,
		.tree = c->tree ? choice_read(c->cx, "--tree", c->tree, tree_names, TREE_KINDS) : TREE_APART,
		.threads = c->threads ? (uint32_t)c->threads : 1,
		.dry = !c->execute,
		.cache = c->cache,
	};
}

EpochSpec epoch_spec(const CommandRun *c, const Plan *plan, uint64_t cases)
{
	return (EpochSpec){ .plan = plan, .opt = &plan->net->options, .m = c->m, .o = compile_options(c), .cases = cases };
}

EpochSpec epoch_of(const CommandRun *c, const Plan *plan, uint64_t cases, int compiler, uint32_t procs, int sum)
{
	EpochSpec s = epoch_spec(c, plan, cases);
	s.o.compiler = compiler;
	s.o.procs = procs;
	s.o.sum = sum;
	return s;
}

/* ---- isolated epochs ---- */

typedef struct EpochBatch {
	Ctx *cx;
	EpochSpec *s;
	uint32_t count;
} EpochBatch;
typedef struct EpochTry {
	Ctx *own;
	EpochSpec *s;
} EpochTry;

static void simulate_one(void *arg)
{
	EpochTry *a = arg;
	a->s->e = epoch_simulate(a->own, a->s, NULL);
}

static void simulate_all(Ctx *own, void *arg)
{
	const EpochBatch *a = arg;
	ScheduleCache *cache = schedule_cache_new(own);
	for (EpochSpec *s = a->s; s < a->s + a->count; s++) {
		s->o.cache = cache;
		s->e = (Epoch){ 0 };
		const char *why = attempt(own, simulate_one, &(EpochTry){ own, s });
		s->why = why ? arena_copy(&a->cx->scratch, why, strlen(why)) : NULL;
	}
}

void epochs_isolated(Ctx *cx, EpochSpec *s, uint32_t count)
{
	with_subcontext(cx, simulate_all, &(EpochBatch){ cx, s, count });
}

Epoch epoch_isolated(Ctx *cx, EpochSpec *s)
{
	epochs_isolated(cx, s, 1);
	if (s->why)
		fail(cx, MP_BAD_INPUT, "ask for other options or another machine", "%s", s->why);
	return s->e;
}
