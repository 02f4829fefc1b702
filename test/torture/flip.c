/* SPDX-License-Identifier: MIT */
/* Flips a bit in one object of a run after the other, at each stage of it, and says what became of the run:
 *
 *   repaired   a fault was reported, and the result has the bits of an undisturbed run
 *   harmless   nothing was reported, and the result has them, too
 *   silent     another result, or a tick that would have saved other weights, without a message
 *   ended      a message, and no result
 *   crashed    a signal, or no end: `launch` starts such a run again
 *
 * flip [--guard LEVEL] [--seed N] [--first N] [--count N] [--object NAME] [--json] [--verbose]
 *
 * Flip number N of a seed is the same in every call: object, place, stage and moment follow from both. Each runs in a
 * process of its own. Objects that doc/reliability.md lists as covered must have no silent change with guard full: else
 * the status is 1. `working memory` is what the run has allocated besides (rows of cases, threads, the guard itself),
 * `elsewhere` all writable memory of the process: stacks, libraries, the heap. */
#include "runs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"
#include "pass.h"

enum { LIMIT_S = 20, MOST_TABLES = 4096, MOST_TICKS = 4096 };

/* ---- what is trained ---- */

enum { CASES = 700, INPUTS = 20, TARGETS = 3, SEQUENCES = 60 };
static const char plain[] = "group in 20 input\ngroup mid 9 tanh\ngroup out 3 output\nconnect in -> mid\n"
							"connect mid -> out\nconnect true -> mid, out\ntrain rate 0.001 until never epochs 4\n";
static const char sparse[] =
	"group in 20 input\ngroup a 17 relu\ngroup b 17\ngroup p 1 output\ngroup q 2 output\n"
	"connect in[0:4] -> a\nconnect in[0] -> b rate 0.5\nconnect in[1:19] -> b random 0.3 seed 3\n"
	"connect a[2:4] -> p\nconnect a, b, true -> q\ntrain rate 0.0001 until never epochs 3 batch 100\n";
static const char recurrent[] =
	"group in 20 input\ngroup mid 6\ngroup before 6 context\ngroup out 3 output\ncopy mid -> before\n"
	"connect in -> mid\nconnect before -> mid\nconnect mid -> out\nconnect true -> mid, out\n"
	"train rate 0.01 until never epochs 3 batch 20\n";
static const char settling[] =
	"group in 20 input\ngroup mid 9 tanh\ngroup out 3 output\nconnect in, out, true -> mid\n"
	"connect mid, true -> out\ntrain ticks 5 targets-from 3 rate 0.001 until never epochs 3 batch 150\n";

typedef struct Setting {
	const char *net;
	bool sequences, codes, test;
	const char *option[4][2];
} Setting;
static const Setting settings[] = {
	{ plain, false, false, false, { { "batch", "200" }, { "rule", "momentum" } } },
	{ plain, false, true, false, { { "batch", "all" }, { "rule", "adam" }, { "input", "index" } } },
	{ plain, false, false, true, { { "batch", "100" }, { "keep-best", "yes" }, { "threads", "2" } } },
	{ plain, false, false, false, { { "batch", "350" }, { "precision", "bf16" } } },
	{ sparse, false, false, false, { { "rule", "rprop" } } },
	{ recurrent, true, false, false, { { "schedule", "step" } } },
	{ settling, false, false, true, { { "threads", "2" } } },
	{ plain, false, false, false, { { "batch", "20" }, { "input", "index" }, { "shuffle", "no" }, { "epochs", "2" } } },
};
typedef struct Prepared {
	mp_net *net;
	mp_data *data, *test;
	char fingerprint[33];
	uint64_t moments[HOOKS];   /* of the undisturbed run */
	uint64_t tick[MOST_TICKS]; /* hash of the weights after each update */
} Prepared;
static Prepared prepared[COUNT(settings)];

static mp_data *data_of(const Setting *s, uint64_t cases, uint32_t stream)
{
	float *x = calloc(cases * INPUTS, sizeof *x), *y = calloc(cases * TARGETS, sizeof *y);
	for (uint64_t i = 0; i < cases * INPUTS; i++)
		x[i] = random_u64(1, stream, i) % 3 ? 0 : (float)random_unit(2, stream, i);
	for (uint64_t i = 0; i < cases; i++)
		y[i * TARGETS + random_u64(3, stream, i) % TARGETS] = 1;
	uint64_t seq[SEQUENCES + 1];
	for (uint64_t i = 0; i <= SEQUENCES; i++)
		seq[i] = i * cases / SEQUENCES;
	mp_data *data;
	assert_int_equal(
		mp_data_new(&data, cases, INPUTS, TARGETS, x, y, s->sequences ? seq : NULL, s->sequences ? SEQUENCES : 0, NULL),
		MP_OK);
	if (s->codes) {
		double *codes = NEW(&data->cx.keep, TARGETS * TARGETS, double);
		for (uint32_t i = 0; i < TARGETS; i++)
			codes[i * TARGETS + i] = 1;
		data->data->codes = codes;
		data->data->code_count = TARGETS;
	}
	free(x);
	free(y);
	return data;
}

/* ---- objects ---- */

enum {
	IN_TABLES,
	IN_STATE,
	IN_SUMS,
	IN_DATA,
	IN_POSITION,
	IN_ORDER,
	IN_SNAPSHOTS,
	IN_BEST,
	IN_LISTS,
	IN_ROWS,
	COVERED,
	IN_WORK = COVERED,
	ELSEWHERE,
	OBJECTS
};
static const char *const objects[OBJECTS] = {
	"tables",
	"weights, rule state",
	"partial sums",
	"data",
	"position",
	"order of examples",
	"snapshots",
	"best weights",
	"lists made of data",
	"units that are 1",
	"working memory",
	"elsewhere",
};

enum { REPAIRED, HARMLESS, SILENT, ENDED, CRASHED, RESULTS };
static const char *const results[RESULTS] = { "repaired", "harmless", "silent", "ended", "crashed" };

typedef struct Places { /* all memory of an object */
	Region region[MOST_TABLES];
	uint64_t count;
} Places;

static void place_add(void *arg, Region r)
{
	Places *p = arg;
	if (r.at && r.bytes && p->count < MOST_TABLES)
		p->region[p->count++] = r;
}

static void block_add(void *arg, void *at, size_t bytes) { place_add(arg, (Region){ "block", at, bytes }); }

static void places_data(Places *p, const Data *d)
{
	uint64_t ones = d->x_indptr ? d->x_indptr[d->cases] : 0;
	if (d->x_indptr) {
		place_add(p, (Region){ "offsets of inputs", (void *)d->x_indptr, (d->cases + 1) * sizeof *d->x_indptr });
		place_add(p, (Region){ "inputs", (void *)d->x_indices, ones * sizeof *d->x_indices });
		place_add(p, (Region){ "values of inputs", (void *)d->x_values, ones * sizeof *d->x_values });
	} else {
		place_add(p, (Region){ "inputs", (void *)d->x, d->cases * d->inputs * sizeof(float) });
	}
	place_add(p, (Region){ "targets", (void *)d->y, d->cases * d->targets * sizeof(float) });
	if (d->seq)
		place_add(p, (Region){ "offsets of sequences", (void *)d->seq, (d->sequences + 1) * sizeof *d->seq });
	if (d->codes)
		place_add(p,
		          (Region){ "code table", (void *)d->codes, (uint64_t)d->code_count * d->targets * sizeof *d->codes });
}

/* What is set once and stays: the true unit's column, and columns of ones. */
static void places_rows(Places *p, const Program *program)
{
	const Layout *l = program->layout;
	for (uint32_t i = 0; i < program->threads; i++)
		for (uint32_t m = 0; m < program->space[i].rows.capacity && m < 64; m++) {
			float *act = program->space[i].rows.row[ROW_ACT] + (size_t)m * l->cols;
			place_add(p, (Region){ "true unit", act, sizeof *act });
			for (uint32_t k = 0; k < l->parts; k++)
				if (l->part[k].one)
					place_add(p, (Region){ "column of ones", act + l->part[k].col + l->part[k].count, sizeof *act });
		}
}

static void places_writable(Places *p)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], mode[5];
	unsigned long long low, high;
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%llx-%llx %4s", &low, &high, mode) == 3 && mode[1] == 'w' && mode[3] == 'p')
			place_add(p, (Region){ "memory", (void *)(uintptr_t)low, high - low });
	if (maps)
		fclose(maps);
}

static void places_of(Places *p, int object, mp_run *run, void *sum, uint64_t bytes)
{
	Region r[MOST_REGIONS];
	uint64_t n = 0;
	const Order *order = NULL;
	p->count = 0;
	switch (object) {
	case IN_TABLES: p->count = guard_tables(run->guard, p->region, MOST_TABLES); break;
	case IN_STATE: n = run->target->guard->regions(run->program, r); break;
	case IN_SUMS: place_add(p, (Region){ "sum", sum, bytes }); break;
	case IN_DATA: places_data(p, run->target->guard->bound_data(run->program)); break;
	case IN_POSITION: place_add(p, (Region){ "position", &run->at, sizeof run->at }); break;
	case IN_ORDER:
		n = guard_tables(run->guard, p->region, MOST_TABLES);
		for (uint64_t i = 0; i < n; i++)
			if (strcmp(p->region[i].name, "order of examples") == 0)
				order = p->region[i].at;
		n = 0;
		if (order->shuffled) {
			place_add(p, (Region){ "order", (void *)order, sizeof *order });
			place_add(p, (Region){ "blocks", order->blocks,
			                       ceil_div(order->examples, SHUFFLE_BLOCK) * sizeof *order->blocks });
			place_add(p, (Region){ "examples picked", order->picked, order->capacity * sizeof *order->picked });
		}
		break;
	case IN_SNAPSHOTS: n = guard_snapshots(run->guard, r); break;
	case IN_BEST:
		if (run->opt.keep_best)
			place_add(p, (Region){ "best weights", run->best_weights, best_bytes(run) });
		break;
	case IN_LISTS:
		if (run->program->bound->by_input)
			arena_walk(&run->program->bound->work, block_add, p);
		break;
	case IN_ROWS: places_rows(p, run->program); break;
	case IN_WORK:
		arena_walk(&run->cx.keep, block_add, p);
		arena_walk(&run->cx.scratch, block_add, p);
		break;
	default: places_writable(p);
	}
	for (uint64_t i = 0; i < n; i++)
		place_add(p, r[i]);
}

/* ---- one run ---- */

typedef struct Flip {
	uint64_t number;
	int setting, object, hook;
	uint64_t moment, random;
} Flip;

typedef struct Outcome { /* shared with the process of a flip */
	bool done, complete;
	mp_status status;
	char fingerprint[33], name[40], message[200];
	uint64_t faults, bad_ticks, offset;
	uint64_t moments[HOOKS], ticks;
} Outcome;

typedef struct Child {
	const Flip *f; /* NULL: undisturbed */
	mp_run *run;
	Outcome *out;
	Prepared *p;
	Places places;
} Child;

static void flip_now(Child *c, void *sum, uint64_t bytes)
{
	const Flip *f = c->f;
	places_of(&c->places, f->object, c->run, sum, bytes);
	if (!c->places.count)
		return;
	const Region *r = &c->places.region[f->random % c->places.count];
	uint64_t bit = f->random / c->places.count % (8 * r->bytes);
	c->out->done = true;
	c->out->offset = bit / 8;
	snprintf(c->out->name, sizeof c->out->name, "%s", r->name);
	((volatile uint8_t *)r->at)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void on_hook(void *user, int hook, void *sum, uint64_t bytes)
{
	Child *c = user;
	uint64_t seen = __atomic_fetch_add(&c->out->moments[hook], 1, __ATOMIC_RELAXED);
	if (c->f && hook == c->f->hook && seen == c->f->moment)
		flip_now(c, sum, bytes);
}

/* As if every tick saved: the weights must be those that the undisturbed run had. */
static int on_tick(void *user, mp_run *run)
{
	Child *c = user;
	static double w[4096];
	uint64_t links = run->net->links, update = run->at.updates;
	if (mp_run_get_weights(run, w, links) != MP_OK || update >= MOST_TICKS)
		return 0;
	uint64_t hash = checksum_of(w, links * sizeof *w < CHECKSUM_BLOCK ? links * sizeof *w : CHECKSUM_BLOCK);
	if (!c->f)
		c->p->tick[update] = hash;
	else
		c->out->bad_ticks += c->p->tick[update] != hash;
	return 0;
}

static const char *level = "full";

static void train(Child *c, const Setting *s)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, c->p->net, NULL), MP_OK);
	c->run = run;
	need(run, mp_run_set(run, "threads", "1"));
	need(run, mp_run_set(run, "guard", level));
	for (size_t i = 0; i < COUNT(s->option) && s->option[i][0]; i++)
		need(run, mp_run_set(run, s->option[i][0], s->option[i][1]));
	run->test_hook = on_hook;
	run->test_hook_user = c;
	mp_run_on_tick(run, 0, on_tick, c);
	Outcome *o = c->out;
	o->status = mp_run_train(run, c->p->data, c->p->test, NULL, NULL);
	snprintf(o->fingerprint, sizeof o->fingerprint, "%s", run->fingerprint);
	snprintf(o->message, sizeof o->message, "%s", mp_run_messages(run));
	if (run->guard) {
		const GuardCount *k = guard_count(run->guard);
		o->faults = k->state + k->sums + k->data + k->leaves + k->outliers + k->position + k->snapshots + k->tables +
		            k->order + k->best;
	}
	if (!c->f)
		mp_run_close(run);
}

static void prepare(void)
{
	static Child c;
	for (size_t i = 0; i < COUNT(settings); i++) {
		Prepared *p = &prepared[i];
		Outcome o = { 0 };
		p->net = net_of(settings[i].net);
		p->data = data_of(&settings[i], CASES, STREAM_DATA);
		p->test = settings[i].test ? data_of(&settings[i], 100, STREAM_SPLIT) : NULL;
		c = (Child){ .out = &o, .p = p };
		train(&c, &settings[i]);
		assert_int_equal(o.status, MP_OK);
		assert_int_equal(o.faults, 0);
		memcpy(p->fingerprint, o.fingerprint, sizeof p->fingerprint);
		memcpy(p->moments, o.moments, sizeof p->moments);
	}
}

static void limit(int what, rlim_t most) { setrlimit(what, &(struct rlimit){ most, most }); }

/* In a process of its own. False: it came to no end. */
static bool run_flip(const Flip *f, Outcome *o)
{
	int status;
	memset(o, 0, sizeof *o);
	fflush(stdout);
	pid_t child = fork();
	if (child < 0) {
		perror("flip: fork");
		exit(2);
	}
	if (!child) {
		static Child c;
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 1);
		dup2(null, 2);
		limit(RLIMIT_CORE, 0);
		limit(RLIMIT_AS, (rlim_t)4 << 30);
		alarm(LIMIT_S);
		c = (Child){ .f = f, .out = o, .p = &prepared[f->setting] };
		train(&c, &settings[f->setting]);
		o->complete = true;
		_exit(0);
	}
	waitpid(child, &status, 0);
	return o->complete && WIFEXITED(status);
}

static int judge(const Flip *f, bool ended, const Outcome *o)
{
	if (!ended)
		return CRASHED;
	if (o->status != MP_OK)
		return *o->message ? ENDED : SILENT;
	if (strcmp(o->fingerprint, prepared[f->setting].fingerprint) != 0 || o->bad_ticks)
		return SILENT;
	return o->faults ? REPAIRED : HARMLESS;
}

/* Objects round-robin, stages round-robin for each; the rest at random. */
static bool choose(uint64_t seed, uint64_t number, int only, Flip *f)
{
	uint64_t random = random_u64(seed, STREAM_SPLIT, number);
	*f = (Flip){ .number = number,
		         .object = only < 0 ? (int)(number % OBJECTS) : only,
		         .setting = (int)(number / OBJECTS % COUNT(settings)),
		         .hook = (int)(number / OBJECTS / COUNT(settings) % HOOKS),
		         .random = random_u64(seed, STREAM_DATA, number) };
	if (f->object == IN_SUMS)
		f->hook = HOOK_LEAF_STORED;
	uint64_t moments = prepared[f->setting].moments[f->hook];
	f->moment = moments ? random % moments : 0;
	return moments > 0;
}

/* ---- all of them ---- */

static int object_of(const char *name)
{
	for (int i = 0; i < OBJECTS; i++)
		if (strcmp(objects[i], name) == 0)
			return i;
	fprintf(stderr, "flip: there is no object '%s'\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, first = 0, count = 1100, made[OBJECTS][RESULTS] = { { 0 } }, all[RESULTS] = { 0 };
	bool json = false, verbose = false;
	int only = -1;
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			verbose = true;
		else if (strcmp(argv[i], "--guard") == 0)
			level = argv[++i];
		else if (strcmp(argv[i], "--object") == 0)
			only = object_of(argv[++i]);
		else if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(value, NULL, 10), i++;
		else if (strcmp(argv[i], "--first") == 0)
			first = strtoull(value, NULL, 10), i++;
		else if (strcmp(argv[i], "--count") == 0)
			count = strtoull(value, NULL, 10), i++;
		else
			return fprintf(stderr, "usage: the head of test/torture/flip.c\n"), 2;
	}
	prepare();
	Outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (o == MAP_FAILED)
		return perror("flip: mmap"), 2;
	for (uint64_t n = first; n < first + count; n++) {
		Flip f;
		if (!choose(seed, n, only, &f))
			continue;
		bool ended = run_flip(&f, o);
		if (ended && !o->done) /* the object is not there */
			continue;
		int result = judge(&f, ended, o);
		made[f.object][result]++;
		if (verbose || (result == SILENT && f.object < COVERED))
			fprintf(
				stderr,
				"flip --seed %llu --first %llu --count 1%s%s: %s, %s + %llu, setting %d, hook %d, moment %llu: %s%s\n",
				(unsigned long long)seed, (unsigned long long)n, only < 0 ? "" : " --object ",
				only < 0 ? "" : objects[only], objects[f.object], o->name, (unsigned long long)o->offset, f.setting,
				f.hook, (unsigned long long)f.moment, results[result], o->bad_ticks ? " (ticks)" : "");
	}
	printf(json ? "{" : "%-22s %9s %9s %9s %9s %9s\n", "object", results[0], results[1], results[2], results[3],
	       results[4]);
	for (int i = 0; i < OBJECTS; i++) {
		if (json)
			printf("%s\"%s\": {", i ? ", " : "", objects[i]);
		else
			printf("%-22s", objects[i]);
		for (int k = 0; k < RESULTS; k++) {
			all[k] += i < COVERED ? made[i][k] : 0;
			if (json)
				printf("%s\"%s\": %llu", k ? ", " : "", results[k], (unsigned long long)made[i][k]);
			else
				printf(" %9llu", (unsigned long long)made[i][k]);
		}
		printf(json ? "}" : "\n");
	}
	printf(json ? "}\n" : "");
	return strcmp(level, "full") == 0 && all[SILENT] > 0;
}
