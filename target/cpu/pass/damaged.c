/* SPDX-License-Identifier: MIT */
/* Damaged copies of a network. In: which units are removed, or which weights are others. Out: tallies or outputs of all
 * cases by each of them.
 *
 * Cases times networks are rows of one batch: all networks share the weights, and masks by row zero the units that are
 * removed. Other weights are set for one network and reset after it. Ticks of a settling network alternate between two
 * blocks of rows, since only the last one counts. Must hold: a row has the bits of a test with zero weights out of the
 * units removed, for adding a product with 0 changes no sum. */
#include <string.h>

#include "pass.h"

enum {
	ROLL_BYTES = 131072, /* of the cache that two blocks of rows fill */
	LEAST_ROLLED = 52
};

typedef struct DamagedRun {
	List list;
	bool rolled;
	uint32_t rows;     /* at a time; rolled: of a block */
	uint64_t *example; /* [rows] */
	Masks masks;
	uint32_t networks; /* capacity of the masks */
	float **place;     /* [links] weights as the forward pass reads them; NULL: not needed yet */
	float *kept;       /* [links] */
} DamagedRun;

/* ---- preparing ---- */

static void places_add(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	Program *p = ((void **)arg)[0];
	float **to = ((void **)arg)[1];
	const Layout *l = p->layout;

	(void)unit;
	to[link] = p->w + place;
	for (const Panel *panel = l->panel; panel < l->panel + l->panels; panel++) {
		if (panel->by_source || panel->list || place < panel->at || place >= panel->at + panel_size(panel))
			continue;
		uint64_t target = (place - panel->at) / panel->row, source = (place - panel->at) % panel->row;
		to[link] = p->copies + panel->copy + source * panel->copy_row + target;
	}
}

static void places_make(Program *p, DamagedRun *d)
{
	float **place = NEW(&p->bound->work, p->net->links, float *);

	d->kept = NEW(&p->bound->work, p->net->links, float);
	layout_links(p->layout, 0, p->net->links, places_add, (void *[]){ p, place });
	d->place = place;
}

static uint32_t rows_wanted(const Program *p, const DamagedRun *d)
{
	const Bound *b = p->bound;
	uint64_t row = (uint64_t)p->layout->cols * sizeof(float);

	if (!d->rolled)
		return b->chunk > 256 ? b->chunk : 256;
	return (uint32_t)max_u64(ROLL_BYTES / (2 * row), LEAST_ROLLED);
}

static void damaged_make(Ctx *cx, Program *p)
{
	Bound *b = p->bound;
	DamagedRun *d = NEW(&p->bound->work, 1, DamagedRun);

	d->rolled = can_roll(p, b);
	d->rows = rows_wanted(p, d);
	space_grow(cx, p, d->rolled ? 2 * d->rows : d->rows);
	d->list = lower(&b->work, p, b, d->rolled ? LOWER_ROLLED : LOWER_DAMAGED);
	d->example = NEW(&p->bound->work, d->rows, uint64_t);
	d->masks.network = NEW(&p->bound->work, d->rows, uint32_t);
	d->masks.part = NEW(&p->bound->work, p->layout->parts, bool);
	b->damaged = d;
}

static void masks_fill(const Program *p, DamagedRun *d, const Damages *of)
{
	const Layout *l = p->layout;
	const Net *net = p->net;

	if (d->networks < of->count) {
		d->masks.factor = floats_take(&p->bound->work, (size_t)of->count * l->cols);
		d->networks = of->count;
	}
	memset(d->masks.part, 0, l->parts * sizeof *d->masks.part);
	for (uint32_t i = 0; i < l->parts; i++) {
		const Part *t = &l->part[i];
		for (uint32_t k = 0; k < of->count; k++) {
			const uint8_t *removed = of->removed + (size_t)k * net->units + t->first;
			float *factor = d->masks.factor + (size_t)k * l->cols + t->col;
			d->masks.part[i] |= memchr(removed, 1, t->count) != NULL;
			for (uint32_t j = 0; j < t->count; j++)
				factor[j] = removed[j] ? 0 : 1;
		}
	}
}

/* Is a context removed, and not what it holds? Where ticks alternate, sums read that instead. */
static bool contexts_apart(const Net *net, const Damages *of)
{
	for (uint32_t k = 0; k < of->count; k++)
		for (uint32_t i = 0; i < net->copies; i++) {
			const Group *to = &net->group[net->copy[i].to_group], *from = &net->group[net->copy[i].from_group];
			const uint8_t *removed = of->removed + (size_t)k * net->units;
			for (uint32_t j = 0; j < to->size; j++)
				if (removed[to->first + j] != removed[from->first + j])
					return true;
		}
	return false;
}

/* ---- running ---- */

/* Cases of one tick each, in block 0. Returns the rows. */
static uint32_t take_rolled(const Program *p, Space *s, const DamagedRun *d, uint32_t count)
{
	Chunk *c = &s->chunk;
	const Data *data = p->bound->data;
	uint64_t one;

	for (uint32_t m = 0; m < count; m++) {
		run_example(p->net, data, d->example[m], &c->cases[m], &one);
		c->tick[m] = (TickRow){ p->bound->ticks.each - 1, true };
		c->begin[m] = m;
	}
	c->begin[count] = c->examples = count;
	chunk_locate(p, s, count);
	c->inputs = NULL;
	return count;
}

/* Examples of networks from number `first` on, counted over all of them; returns how many. */
static uint64_t run_some(const Program *p, DamagedRun *d, uint64_t first, uint64_t end, bool scores, uint32_t *rows)
{
	Space *s = &p->space[0];
	uint64_t examples = run_examples(p->net, p->bound->data), taken = 0;
	uint32_t count = (uint32_t)min_u64(end - first, d->rows);

	for (uint32_t i = 0; i < count; i++)
		d->example[i] = (first + i) % examples;
	if (d->rolled) {
		*rows = take_rolled(p, s, d, count);
		taken = count;
	} else {
		Batch b = { .example = d->example, .count = count };
		*rows = take_examples(p, s, &b, &taken, count, d->rows);
		if (p->net->timed)
			make_time_steps(p, &s->chunk, 0, s->chunk.examples);
	}
	for (uint32_t e = 0; e < s->chunk.examples; e++)
		for (uint32_t m = s->chunk.begin[e]; m < s->chunk.begin[e + 1]; m++)
			d->masks.network[m] = (uint32_t)((first + e) / examples);
	uint32_t stages = d->list.stages - (!scores && p->bound->data->targets != 0); /* the last one scores */
	steps_run(p, s, &d->list, 0, stages, &(Slice){ .rows = *rows, .threads = 1 });
	return taken;
}

static void weights_swap(const DamagedRun *d, const Damages *of, bool damage)
{
	for (uint64_t i = 0; damage && i < of->links; i++) {
		d->kept[i] = *d->place[of->link[i]];
		*d->place[of->link[i]] = (float)of->weight[i];
	}
	for (uint64_t i = of->links; !damage && i-- > 0;)
		*d->place[of->link[i]] = d->kept[i];
}

bool damaged_run(Ctx *cx, Program *p, const Damages *of, Tally *tally, double *out)
{
	const Data *data = p->bound->data;
	uint64_t end = of->count * run_examples(p->net, data), cases = data->cases;
	Space *s = &p->space[0];
	const Chunk *c = &s->chunk;
	uint32_t rows;

	if (p->half || (p->net->noisy && p->opt->noise))
		return false;
	if (!p->bound->damaged)
		damaged_make(cx, p);
	DamagedRun *d = p->bound->damaged;
	if (d->rolled && contexts_apart(p->net, of))
		return false;
	if (of->links && !d->place)
		places_make(p, d);
	masks_fill(p, d, of);
	s->chunk.masks = &d->masks;
	unsigned before = cpu_enter();
	weights_swap(d, of, true);
	for (uint64_t at = 0, taken; at < end; at += taken) {
		taken = run_some(p, d, at, end, !out, &rows);
		for (uint32_t m = 0; m < rows; m++) {
			size_t place = d->masks.network[m] * cases + c->cases[m];
			if (!out)
				rows_tally(p, s, m, 1, &tally[place]);
			else if (!c->tick || c->tick[m].last)
				row_outputs(p, s, m, out + place * p->net->outputs);
		}
	}
	weights_swap(d, of, false);
	cpu_leave(before);
	return true;
}
