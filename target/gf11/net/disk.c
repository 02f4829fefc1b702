/* SPDX-License-Identifier: MIT */
/* Parts of the training data on their way from the disks. In: lists of cases, in the order of their use. Out: the
 * cases in the processors' memory, and an account of the time that took.
 *
 * The disks hold images of the memory that a part of the cases takes, row after row; a disk reads at its rate, into
 * a buffer of its own, while the processors do something else. Words are received
 *
 *   carried   in idle slots of bundles' routines (weave.c): no extra cycles
 *   alone     by routines that do nothing else: at the end of a part, and in between when rows arrive later than
 *             cases are trained on and buffers fill up
 *   waited    for: a stall, when the disks have not read them yet
 *
 * A routine is called only when the disks have or will have each of its words in time. What must hold: what is
 * received is what the host would have written; calls and waits are in the account of cycles. */
#include <math.h>
#include <string.h>

#include "gf11_net.h"

const char *const disks_names[3] = { "off", "auto", "on" };

enum { ALONE_LINES = 8192, ALONE_ROWS = 256 }; /* of a routine that only receives */

/* ---- compiling ---- */

static void find_disks(const Bp *b, BpDisk *d)
{
	const uint32_t first = b->sw->ports - b->p->disks;
	d->disk = NEW(&b->cx->keep, b->p->disks, uint32_t);
	for (uint32_t i = 0; i < b->p->disks && d->disks < b->o.procs; i++)
		if (!b->sw->dead.port || !b->sw->dead.port[first + i])
			d->disk[d->disks++] = i;
	if (!d->disks)
		fail(b->cx, MP_BAD_INPUT, "set disks off, or use a machine file with disks on ports that work",
		     "there is no disk on %s to load the data from", b->m->name);
}

/* All data, as images of the memory that the parts take. */
static void check_capacity(const Bp *b, const BpDisk *d)
{
	uint64_t across = (uint64_t)b->at.data_side * b->o.procs, loaded = (uint64_t)b->at.slots * b->o.procs;
	uint64_t cases = b->o.data == STREAM_ALWAYS ? loaded : max_u64(b->o.data, loaded);
	double bytes = 4.0 * (double)(ceil_div(cases, across) * b->at.data_words * b->o.procs);
	double room = 1e6 * b->m->disk_capacity * d->disks;
	if (room > 0 && bytes > room)
		fail(b->cx, MP_BAD_INPUT, "use fewer cases, or a machine file with more disk-capacity",
		     "%llu cases are %.4g GB; the %u disks of %s hold %.4g GB", (unsigned long long)cases, 1e-9 * bytes,
		     d->disks, b->m->name, 1e-9 * room);
}

static uint32_t configure(Bp *b, const BpDisk *d)
{
	uint16_t *to = NEW(&b->cx->scratch, b->sw->ports, uint16_t);
	memset(to, 0xFF, b->sw->ports * sizeof *to); /* NO_ROUTE */
	for (uint32_t i = 0; i < d->disks; i++)
		to[b->sw->ports - b->p->disks + d->disk[i]] = b->p->port[i];
	for (uint32_t i = 0; i + d->disks < b->o.procs; i++)
		to[b->p->port[i]] = b->p->port[i + d->disks];
	return switch_store(b->cx, b->sw, to);
}

/* Lines that a block of rows takes at least. */
static double block_lines(const Bp *b, const Chain *c, double spacing)
{
	return c->steps * fmax((double)b->m->switch_latency, c->side * spacing);
}

static _Noreturn void refuse_steps(const Bp *b, const BpDisk *d)
{
	fail(b->cx, MP_BAD_INPUT, "use fewer processors, or a machine file with more disks or longer blocks",
	     "a word for each of %u processors from %u disks takes %u transfers, one after the other: they do not fit into "
	     "the %lld "
	     "lines of a block of %s",
	     b->o.procs, d->disks, d->chain.steps, (long long)b->m->block, b->m->name);
}

/* The most rows up to `rows` that one call can receive; slower than the switch could, if their words would not fit
 * into the disks' buffers before. */
static Woven receive_alone(const Bp *b, const BpDisk *d, uint32_t rows)
{
	Chain c = d->chain;
	double block = (double)b->m->block, slow = ceil(1 / d->rate) + 1;
	for (; rows >= c.side && block_lines(b, &c, c.spacing) <= block; rows = rows / 2 / c.side * c.side) {
		Woven w = weave(b->cx, b->m, &c, NULL, rows, d->rate);
		if (w.routine && w.routine->lines <= b->m->block && w.need <= d->buffer)
			return w;
	}
	if (block_lines(b, &c, slow) > block)
		refuse_steps(b, d);
	c.spacing = (uint32_t)slow > c.spacing ? (uint32_t)slow : c.spacing;
	Woven w = weave(b->cx, b->m, &c, NULL, c.side, d->rate);
	if (!w.routine || w.routine->lines > b->m->block || w.need > d->buffer)
		refuse_steps(b, d);
	return w;
}

/* The routine, receiving besides; at most twice what the disks read meanwhile. */
static void make_carrier(Bp *b, BpDisk *d, uint32_t routine)
{
	const Routine *base = b->c->routine[routine];
	if (d->tried[routine] || (int64_t)b->c->lines + base->lines > b->m->microcode)
		return;
	d->tried[routine] = true;
	double blocks = ceil(2 * d->rate * base->lines / (d->chain.steps * d->chain.side));
	Woven w = weave(b->cx, b->m, &d->chain, base, (uint32_t)fmin(blocks, ALONE_ROWS) * d->chain.side, d->rate);
	if (!w.routine || w.need > d->buffer)
		return;
	d->carrier[routine] = w;
	d->carrier_routine[routine] = bp_load_routine(b, w.routine);
}

static void make_carriers(Bp *b, BpDisk *d)
{
	uint32_t routines = b->c->routines;
	d->carriers = routines;
	d->carrier = NEW(&b->cx->keep, routines, Woven);
	d->carrier_routine = NEW(&b->cx->keep, routines, uint32_t);
	d->tried = NEW(&b->cx->keep, routines, bool);
	for (uint32_t i = 0; i < b->bundles; i++) {
		make_carrier(b, d, b->bundle[i].forward);
		make_carrier(b, d, b->bundle[i].backward);
	}
}

static void take_room(Bp *b, BpDisk *d)
{
	uint64_t most = d->alone[0].rows; /* rows in a call */
	for (uint32_t i = 0; i < d->carriers; i++) {
		most = d->carrier[i].rows > most ? d->carrier[i].rows : most;
		if (d->carrier[i].rows)
			d->full = d->buffer / 8;
	}
	d->room = (uint64_t)b->at.slots * b->o.procs;
	if (b->o.dry)
		return;
	uint64_t rows = (uint64_t)b->at.data_words + d->chain.side; /* those after the last block of cases are zero */
	d->cases = NEW(&b->cx->keep, d->room, uint64_t);
	d->image = NEW(&b->cx->keep, rows * b->p->lanes, uint32_t);
	d->words = NEW(&b->cx->keep, most * d->chain.steps * b->p->disks, uint32_t);
	b->p->disk = d->words;
}

void disk_compile(Bp *b)
{
	if (b->o.disks != DISKS_ON)
		return;
	BpDisk *d = b->disk = NEW(&b->cx->keep, 1, BpDisk);
	find_disks(b, d);
	check_capacity(b, d);
	d->rate = b->m->disk_rate * 1e6 / 4 * b->m->clock * 1e-9;
	d->buffer = (double)b->m->disk_buffer;
	d->chain = (Chain){ .configuration = configure(b, d),
		                .steps = (b->o.procs + d->disks - 1) / d->disks,
		                .side = chain_side(b->m),
		                .near = b->at.disk_near,
		                .spacing = (uint32_t)b->m->switch_interval };
	uint32_t lines = d->chain.steps * (uint32_t)(b->m->switch_latency + d->chain.side * b->m->switch_interval);
	uint32_t blocks =
		(uint32_t)min_u64(ALONE_ROWS / d->chain.side, min_u64(ALONE_LINES, (uint64_t)b->m->block) / lines);
	for (int i = 0; i < ALONE; i++, blocks /= 4) {
		d->alone[i] = receive_alone(b, d, (i + 1 < ALONE && blocks ? blocks : 1) * d->chain.side);
		d->alone_routine[i] = bp_load_routine(b, d->alone[i].routine);
	}
	make_carriers(b, d);
	take_room(b, d);
}

/* ---- the disks' time ---- */

static void advance(Bp *b)
{
	BpDisk *d = b->disk;
	uint64_t now = bp_cycles(b);
	double read = fmin(d->rate * (double)(now - d->clock), fmin(d->buffer - d->ready, d->unread));
	if (read > 0) {
		d->ready += read;
		d->unread -= read;
	}
	d->clock = now;
}

static void wait_for(Bp *b, double words)
{
	BpDisk *d = b->disk;
	advance(b);
	if (d->ready >= words)
		return;
	b->cycles_wait += (uint64_t)ceil((words - d->ready) / d->rate);
	advance(b);
}

void disk_pause(Bp *b, bool pause)
{
	BpDisk *d = b->disk;
	uint64_t now = bp_cycles(b);
	if (pause) {
		advance(b);
	} else {
		d->account.aside += now - d->clock;
		d->began += now - d->clock;
		d->clock = now;
	}
	d->paused = pause;
}

/* Fewer rows are there than cases have been trained on, in parts. */
static bool is_late(const Bp *b)
{
	const BpDisk *d = b->disk;
	double elapsed = (double)(bp_cycles(b) - b->cycles_wait - d->began), expected = d->pace * (double)d->learning;
	return expected > 0 && (double)d->got * expected < elapsed * (double)d->rows;
}

/* ---- receiving ---- */

/* The image of one block of cases at a time: rows are taken in order. */
static const uint32_t *image_row(Bp *b, uint64_t row)
{
	BpDisk *d = b->disk;
	uint64_t block = row / b->at.data_words;
	if (block >= d->blocks) /* rows that fill up the last call */
		return d->image + (size_t)b->at.data_words * b->p->lanes;
	if (block != d->image_block) {
		bp_write_cases(b, d->data, d->cases, d->count, block, 1, d->image);
		d->image_block = block;
	}
	return d->image + (size_t)(row % b->at.data_words) * b->p->lanes;
}

/* What the disks send in this call, in the order of weave.c. */
static void words_fill(Bp *b, uint32_t rows)
{
	BpDisk *d = b->disk;
	const Chain *c = &d->chain;
	for (uint32_t i = 0; i < rows; i++) {
		const uint32_t *row = image_row(b, d->got + i);
		uint32_t *to = d->words + ((size_t)i / c->side * c->side * c->steps + i % c->side) * b->p->disks;
		for (uint32_t step = c->steps; step-- > 0; to += (size_t)c->side * b->p->disks)
			for (uint32_t k = 0; k < d->disks; k++) {
				uint32_t proc = step * d->disks + k;
				to[d->disk[k]] = proc < b->o.procs ? row[proc] : 0;
			}
	}
}

/* The next call receives rows. */
static void receive(Bp *b, const Woven *w)
{
	BpDisk *d = b->disk;
	uint64_t words = (uint64_t)w->rows * d->chain.steps;
	if (!b->o.dry)
		words_fill(b, w->rows);
	for (uint32_t i = 0; i < d->disks && b->o.faults && !b->o.dry; i++)
		faults_disk(b->o.faults, bp_cycles(b), d->disk[i], d->words + d->disk[i], words, b->p->disks);
	controller_base(b->c, BP_DISK, d->to + (uint32_t)d->got);
	d->got += w->rows;
	d->ready -= (double)words;
	d->account.rows += w->rows;
	d->account.words += words * d->disks;
	d->account.bytes += 4 * (uint64_t)w->rows * b->o.procs;
}

static void call_alone(Bp *b, int which)
{
	BpDisk *d = b->disk;
	uint64_t before = b->c->account.cycles;
	receive(b, &d->alone[which]);
	controller_call(b->c, d->alone_routine[which]);
	b->cycles_receive += b->c->account.cycles - before;
}

static bool on_its_way(const BpDisk *d) { return d->got < d->rows && !d->paused; }

uint32_t disk_carrier(Bp *b, uint32_t routine)
{
	BpDisk *d = b->disk;
	if (!on_its_way(d) || routine >= d->carriers)
		return routine;
	const Woven *w = &d->carrier[routine];
	advance(b);
	if (!w->rows || w->rows > d->rows - d->got || d->ready < w->need)
		return routine;
	receive(b, w);
	d->account.carried += w->rows;
	return d->carrier_routine[routine];
}

/* The routine that receives most of what is left, and of what is ready; ALONE: none. */
static int largest(const BpDisk *d, double ready)
{
	int i = 0;
	while (i < ALONE && (d->alone[i].rows > d->rows - d->got || d->alone[i].need > ready))
		i++;
	return i;
}

void disk_between(Bp *b)
{
	BpDisk *d = b->disk;
	while (on_its_way(d) && is_late(b)) {
		advance(b);
		int which = largest(d, d->ready);
		if (which == ALONE || d->ready < d->full)
			return;
		call_alone(b, which);
	}
}

/* ---- parts ---- */

void disk_order_rows(Bp *b, uint64_t rows)
{
	BpDisk *d = b->disk;
	d->rows = (rows + d->chain.side - 1) / d->chain.side * d->chain.side;
	d->got = 0;
	d->image_block = UINT64_MAX;
	d->ready = 0;
	d->unread = (double)(d->rows * d->chain.steps);
	d->clock = d->ordered_at = bp_cycles(b);
	d->ordered = true;
}

void disk_order(Bp *b, const Data *data, const uint64_t *cases, uint64_t count)
{
	BpDisk *d = b->disk;
	uint64_t together = (uint64_t)b->o.procs * b->at.data_side;
	if (count > d->room)
		fail(b->cx, MP_BAD_INPUT, "use a smaller batch, or more processors",
		     "%llu cases: there is room for %u on each of %u processors", (unsigned long long)count, b->at.slots,
		     b->o.procs);
	for (uint64_t i = 0; i < count && !b->o.dry; i++)
		d->cases[i] = cases ? cases[i] : i;
	d->data = data;
	d->count = count;
	d->to = b->at.data_buffers > 1 && b->at.data == 0 ? b->at.buffer_words : 0;
	d->blocks = (count + together - 1) / together;
	disk_order_rows(b, d->blocks * b->at.data_words);
}

bool disk_ordered(const Bp *b, const Data *data, const uint64_t *cases, uint64_t count)
{
	const BpDisk *d = b->disk;
	return d->ordered && d->data == data && d->count == count && memcmp(d->cases, cases, count * sizeof *cases) == 0;
}

void disk_take(Bp *b)
{
	BpDisk *d = b->disk;
	uint64_t start = bp_cycles(b), waited = b->cycles_wait;
	bool ahead = start > d->ordered_at;
	if (d->learning)
		d->pace = (double)(start - waited - d->began) / (double)d->learning;
	while (d->got < d->rows) {
		int which = largest(d, d->buffer);
		wait_for(b, d->alone[which].need);
		call_alone(b, which);
	}
	uint64_t now = bp_cycles(b);
	if (!ahead) {
		d->account.load += now - start;
		d->account.load_wait += b->cycles_wait - waited;
	}
	b->at.data = d->to;
	b->loaded = d->learning = d->count;
	d->began = now - b->cycles_wait;
	d->ordered = false;
}

/* ---- the account ---- */

DiskAccount disk_account(const Bp *b, const DiskAccount *before)
{
	DiskAccount a = b->disk ? b->disk->account : (DiskAccount){ 0 };
	a.rows += before->rows;
	a.words += before->words;
	a.bytes += before->bytes;
	a.carried += before->carried;
	a.load += before->load;
	a.load_wait += before->load_wait;
	a.aside += before->aside;
	a.wait = before->wait + b->cycles_wait;
	a.receive = before->receive + b->cycles_receive;
	a.cycles = before->cycles + bp_cycles(b);
	return a;
}

/* One cycle in a hundred is what a part's last words may take. */
bool disk_is_limit(const DiskAccount *a) { return 100 * (a->wait - a->load_wait) > a->cycles - a->aside - a->load; }

void disk_report(const Bp *b, const DiskAccount *before, Buf *json)
{
	DiskAccount a = disk_account(b, before);
	double cycle = 1e-9 * b->m->clock, cycles = (double)(a.cycles - a.aside), seconds = cycle * cycles;
	buf_printf(json,
	           "%s\"disk_mbs\": %.6g, \"disk_peak_mbs\": %.6g, \"disk_bytes\": %llu, \"disk_wait_share\": %.6g, "
	           "\"disk_receive_share\": %.6g, \"disk_carried_share\": %.6g, \"disk_load_seconds\": %.6g, "
	           "\"limit\": \"%s\"",
	           json->len ? ", " : "", seconds > 0 ? 1e-6 * (double)a.bytes / seconds : 0,
	           b->disk->disks * b->m->disk_rate, (unsigned long long)a.bytes, cycles > 0 ? (double)a.wait / cycles : 0,
	           cycles > 0 ? (double)a.receive / cycles : 0, share_of(a.carried, a.rows), cycle * (double)a.load,
	           disk_is_limit(&a) ? "disks" : "processors");
}

void disk_print(const Bp *b, Buf *out)
{
	const BpDisk *d = b->disk;
	uint32_t carriers = 0, rows = 0;
	for (uint32_t i = 0; i < d->carriers; i++) {
		carriers += d->carrier[i].rows > 0;
		rows += d->carrier[i].rows;
	}
	buf_printf(out,
	           "disks\n\t%u at %.4g MB/s; a word for every processor takes %u transfers through configuration %u\n",
	           d->disks, b->m->disk_rate, d->chain.steps, d->chain.configuration);
	buf_printf(out, "\t%u routines receive besides what they do, %u words for every processor if each is called once\n",
	           carriers, rows);
}
