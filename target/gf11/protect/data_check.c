/* SPDX-License-Identifier: MIT */
/* Checksums of the training data (section 10.4). In: cases loaded by the host, with two checksums each. Out: cases
 * whose words no longer match, which are loaded again.
 *
 * For the n words w of a case, numbered from 1:
 *
 *   x = w1 ^ w2 ^ ... ^ wn
 *   b = 1 h1 + 2 h2 + ... + n hn, modulo 2^32, with h = w ^ w >> 16
 *
 * Any one, two or three wrong bits are detected. One or three change x. Two leave x unchanged only if they are the
 * same bit of two words k and l. For a low bit i < 16, h of both changes by +-2^i, and b by 2^i (+-k +-l). Since n
 * < 2^15, the parenthesis is not zero and below 2^16 in magnitude, so no power of two above 2^30 divides the
 * change: it is not 0 modulo 2^32. For a high bit i + 16, h of both changes by +-2^(i+16) +-2^i, and b by 2^i (+-k
 * +-l + a multiple of 2^16): the same holds. The expected checksums are in DRAM too, b twice. Wrong bits among them
 * cause a false positive but hide nothing: a wrong bit in the case changes x and b, two of the same kind change b,
 * and no two further bits compensate b, its copy and x.
 *
 * Processors also verify their tables, whose checksums are constants of the microcode, and the host rewrites the
 * words it writes at start-up, since a wrong bit there would persist for the whole run. */
#include <string.h>

#include "gf11_protect.h"

enum { AHEAD = 12 }; /* words fetched ahead of the summation */
enum { SHOWN_CASES = 8 };

/* ---- sums ---- */

SumPair sums_of(const uint32_t *word, uint32_t words)
{
	SumPair s = { 0, 0 };
	for (uint32_t i = 0; i < words; i++) {
		s.x ^= word[i];
		s.b += (i + 1) * (word[i] ^ word[i] >> 16);
	}
	return s;
}

Sums sums_open(Gen *g, uint32_t columns, Reg shift16)
{
	uint32_t ways = (MOST_WAYS + columns - 1) / columns;
	return (Sums){ .g = g, .ways = ways, .shift16 = shift16 };
}

void sums_add(Sums *s, Reg word, Reg number)
{
	Gen *g = s->g;
	uint32_t way = s->added++ % s->ways;
	bool first = s->added <= s->ways;
	Reg high = g_op(g, GOP_SHR, word, s->shift16);
	Reg h = g_op(g, GOP_XOR, word, high), term = g_op(g, GOP_IMUL, h, number);
	s->x[way] = first ? word : g_op(g, GOP_XOR, s->x[way], word);
	s->b[way] = first ? term : g_op(g, GOP_IADD, s->b[way], term);
}

void sums_end(Sums *s, Reg *x, Reg *b)
{
	uint32_t ways = s->added < s->ways ? s->added : s->ways;
	for (uint32_t half; ways > 1; ways = half) {
		half = (ways + 1) / 2;
		for (uint32_t i = half; i < ways; i++) {
			s->x[i - half] = g_op(s->g, GOP_XOR, s->x[i - half], s->x[i]);
			s->b[i - half] = g_op(s->g, GOP_IADD, s->b[i - half], s->b[i]);
		}
	}
	*x = s->x[0];
	*b = s->b[0];
}

/* Compares with the expected checksums, three words in SRAM. */
Cond sums_match(Gen *g, Addr expected, Reg x, Reg b)
{
	Reg wrong = g_op(g, GOP_XOR, x, g_load(g, expected));
	Reg once = g_op(g, GOP_XOR, b, g_load(g, (Addr){ expected.base, expected.off + EXPECTED_B }));
	Reg twice = g_op(g, GOP_XOR, b, g_load(g, (Addr){ expected.base, expected.off + EXPECTED_TWICE }));
	wrong = g_op(g, GOP_OR, wrong, once);
	wrong = g_op(g, GOP_OR, wrong, twice);
	return g_compare(g, GOP_INT_EQ, wrong, g_const_bits(g, 0));
}

/* Partial checksums are kept in scratch between the parts of a case. */
static void partial_join(Gen *g, uint32_t column, Reg *x, Reg *b)
{
	*x = g_op(g, GOP_XOR, *x, g_load(g, near_word(NEAR_PARTIAL + 2 * column)));
	*b = g_op(g, GOP_IADD, *b, g_load(g, near_word(NEAR_PARTIAL + 2 * column + 1)));
}

static void partial_keep(Gen *g, uint32_t column, Reg x, Reg b)
{
	g_store(g, near_word(NEAR_PARTIAL + 2 * column), x);
	g_store(g, near_word(NEAR_PARTIAL + 2 * column + 1), b);
}

static void count_add(Gen *g, Reg more)
{
	Reg count = g_load(g, near_word(NEAR_COUNT));
	g_store(g, near_word(NEAR_COUNT), g_op(g, GOP_IADD, count, more));
}

/* ---- routines over cases ---- */

typedef struct Part {
	uint32_t first, words, columns;
	bool begins, ends;
} Part;

static Addr expected_near(const Protect *t, uint32_t column, uint32_t word)
{
	return near_word(NEAR_PARTIAL + 2 * (uint32_t)t->b->m->dram_banks + EXPECTED_WORDS * column + word);
}

static void part_sums(Gen *g, const Protect *t, const Part *p, Sums *sum)
{
	const Bp *b = t->b;
	uint32_t buffer = protect_buffer(t);
	for (uint32_t k = 0; k < p->words + AHEAD; k++) {
		for (uint32_t j = 0; j < p->columns && k < p->words; j++)
			g_fetch(g, near_word(buffer + k * p->columns + j),
			        (Addr){ PROTECT_FROM, (p->first + k) * b->at.data_step + j });
		if (k < AHEAD)
			continue;
		Reg number = g_const_bits(g, p->first + k - AHEAD + 1);
		for (uint32_t j = 0; j < p->columns; j++)
			sums_add(&sum[j], g_load(g, near_word(buffer + (k - AHEAD) * p->columns + j)), number);
	}
}

static Code *record_part(const Protect *t, const Part *p)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "data sums");
	Sums *sum = NEW(&t->b->cx->scratch, p->columns, Sums);
	Reg shift16 = g_const_bits(g, 16), x, b;
	for (uint32_t j = 0; j < p->columns; j++)
		sum[j] = sums_open(g, p->columns, shift16);
	for (uint32_t i = 0; i < EXPECTED_WORDS * p->columns && p->ends; i++)
		if (i % EXPECTED_WORDS != VERDICT)
			g_fetch(g, expected_near(t, 0, i), (Addr){ PROTECT_SUMS, i });
	part_sums(g, t, p, sum);
	for (uint32_t j = 0; j < p->columns; j++) {
		sums_end(&sum[j], &x, &b);
		if (!p->begins)
			partial_join(g, j, &x, &b);
		if (p->ends) {
			Cond fine = sums_match(g, expected_near(t, j, 0), x, b);
			Reg none = g_const_bits(g, 0), one = g_const_bits(g, 1);
			Reg bad = g_select(g, fine, none, one);
			count_add(g, bad);
			g_store(g, expected_near(t, j, VERDICT), bad);
			g_flush(g, (Addr){ PROTECT_SUMS, EXPECTED_WORDS * j + VERDICT }, expected_near(t, j, VERDICT));
		} else
			partial_keep(g, j, x, b);
	}
	return sum_code(g, false);
}

/* Words of a part: limited by microcode lines and by scratch. */
static uint32_t part_words(const Protect *t, uint32_t columns)
{
	uint32_t cycles = 8 > t->b->m->dram_interval ? 8 : (uint32_t)t->b->m->dram_interval;
	uint32_t lines = sum_lines(t->b) / (columns * cycles);
	return max_u32(1, min_u32(lines, (t->b->at.scratch_words - protect_buffer(t)) / columns));
}

static uint32_t *parts_load(Protect *t, uint32_t columns, uint32_t parts)
{
	uint32_t words = layout_data(t->b), *routine = NEW(&t->b->cx->keep, parts, uint32_t);
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t first = (uint32_t)((uint64_t)words * i / parts), end = (uint32_t)((uint64_t)words * (i + 1) / parts);
		Part p = { first, end - first, columns, i == 0, i + 1 == parts };
		routine[i] = sum_load(t->b, record_part(t, &p));
	}
	return routine;
}

/* ---- routines over tables ---- */

static Code *record_tables(const Protect *t, const Cell *table, const Part *p)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "table sums");
	Sums sum = sums_open(g, 1, g_const_bits(g, 16));
	Reg x, b;
	for (uint32_t i = 0; i < p->words; i++) {
		Reg number = g_const_bits(g, p->first + i + 1);
		sums_add(&sum, g_load(g, (Addr){ 0, p->first + i }), number);
	}
	sums_end(&sum, &x, &b);
	if (!p->begins)
		partial_join(g, 0, &x, &b);
	if (p->ends) {
		SumPair right = sums_of((const uint32_t *)table, SUM_WORDS_AT);
		Reg wrong = g_op(g, GOP_XOR, x, g_const_bits(g, right.x));
		Reg other = g_op(g, GOP_XOR, b, g_const_bits(g, right.b)), none = g_const_bits(g, 0);
		Cond fine = g_compare(g, GOP_INT_EQ, g_op(g, GOP_OR, wrong, other), none);
		Reg one = g_const_bits(g, 1);
		count_add(g, g_select(g, fine, none, one));
	} else {
		partial_keep(g, 0, x, b);
	}
	return sum_code(g, false);
}

/* ---- compiling ---- */

void data_check_make(Protect *t)
{
	const Bp *b = t->b;
	DataCheck *d = &t->data;
	const Layout *at = &b->at;
	uint32_t banks = (uint32_t)b->m->dram_banks, words = layout_data(b);
	if (words > MOST_SUMMED)
		fail(b->cx, MP_BAD_INPUT, "set data-check 0, and leave out machine-memory",
		     "cases of %u words: checksums find all errors of three bits in up to %d", words, MOST_SUMMED);
	if (protect_buffer(t) + banks > at->scratch_words)
		fail(b->cx, MP_BAD_INPUT, "use a machine file with fewer banks, or set data-check 0",
		     "%u banks: checksums of as many cases do not fit in %u words of SRAM", banks, at->scratch_words);
	d->width = at->data_side < banks ? at->data_side : banks;
	d->groups = (at->data_side + d->width - 1) / d->width;
	d->stride = round_to(EXPECTED_WORDS * d->width, banks);
	uint32_t blocks = (at->slots + at->data_side - 1) / at->data_side, most = part_words(t, d->width);
	d->sums = protect_reserve(t, (uint64_t)blocks * d->groups * d->stride);
	d->parts = (words + most - 1) / most;
	uint32_t rest = at->data_side - (d->groups - 1) * d->width;
	d->routine[0] = parts_load(t, d->width, d->parts);
	d->routine[1] = rest == d->width ? d->routine[0] : parts_load(t, rest, d->parts);
	d->restore = sum_load(t->b, record_true_units(t->b));
	Cell *table = NEW(&t->b->cx->scratch, TABLE_WORDS, Cell);
	tables_fill(table);
	uint32_t limit = sum_lines(t->b) / 8, tables = SUM_WORDS_AT, calls = (tables + limit - 1) / limit;
	t->data.tables = calls;
	t->data.table = NEW(&t->b->cx->keep, calls, uint32_t);
	for (uint32_t i = 0; i < calls; i++) {
		uint32_t first = tables * i / calls, end = tables * (i + 1) / calls;
		Part p = { .first = first, .words = end - first, .begins = i == 0, .ends = i + 1 == calls };
		t->data.table[i] = sum_load(t->b, record_tables(t, table, &p));
	}
}

/* ---- checking ---- */

static uint32_t *dram_row(const Bp *b, uint32_t word) { return b->p->dram + (size_t)word * b->p->lanes; }

/* Address of the check words of the case in this slot. */
static uint32_t sums_at(const Protect *t, uint64_t slot)
{
	const DataCheck *d = &t->data;
	uint64_t side = t->b->at.data_side, column = slot % side;
	uint64_t group = slot / side * d->groups + column / d->width;
	return d->sums + (uint32_t)(group * d->stride + column % d->width * EXPECTED_WORDS);
}

/* Slots in use: whole blocks of cases. */
static uint64_t slots_used(const Protect *t)
{
	uint64_t side = t->b->at.data_side, slots = (t->count + t->b->o.procs - 1) / t->b->o.procs;
	return (slots + side - 1) / side * side;
}

static uint64_t case_of(const Protect *t, uint64_t i) { return i >= t->count ? NO_CASE : t->cases ? t->cases[i] : i; }

static void sums_write(Protect *t, uint64_t i, float *word)
{
	bp_case_words(t->b, t->loaded, case_of(t, i), word);
	SumPair s = sums_of((const uint32_t *)word, layout_data(t->b));
	uint32_t proc = (uint32_t)(i % t->b->o.procs), at = sums_at(t, i / t->b->o.procs);
	dram_row(t->b, at + EXPECTED_X)[proc] = s.x;
	dram_row(t->b, at + EXPECTED_B)[proc] = dram_row(t->b, at + EXPECTED_TWICE)[proc] = s.b;
}

/* A stuck bit persists after reloading. */
static void host_wrote(Protect *t)
{
	if (t->b->c->faults)
		faults_apply(t->b->c->faults, t->b->p);
}

void data_sums_write(Protect *t)
{
	float *word = NEW(&t->b->cx->scratch, layout_data(t->b), float);
	uint64_t all = slots_used(t) * t->b->o.procs;
	for (uint64_t i = 0; i < all; i++)
		sums_write(t, i, word);
	host_wrote(t);
}

/* Reloads the mismatching cases of this processor; returns how many, padding not counted. */
static uint64_t processor_repair(Protect *t, uint32_t proc, float *word, Buf *names)
{
	uint64_t bad = 0, slots = slots_used(t), procs = t->b->o.procs;
	for (uint64_t slot = 0; slot < slots; slot++) {
		Cell wrong;
		uint64_t i = slot * procs + proc, number = case_of(t, i);
		host_read(t->b->c, proc, true, sums_at(t, slot) + VERDICT, &wrong, 1);
		if (!wrong.u)
			continue;
		sums_write(t, i, word);
		bp_case_write(t->b, i, word);
		if (number == NO_CASE)
			continue;
		if (bad < SHOWN_CASES)
			buf_printf(names, "%s%llu", names->len ? ", " : "", (unsigned long long)(number & ~CASE_GOES_ON));
		bad++;
	}
	return bad;
}

uint64_t check_data(Protect *t, bool first)
{
	protect_clear(t);
	const DataCheck *d = &t->data;
	const Layout *at = &t->b->at;
	uint32_t blocks = (uint32_t)(slots_used(t) / at->data_side);
	for (uint32_t block = 0; block < blocks; block++)
		for (uint32_t group = 0; group < d->groups; group++)
			for (uint32_t i = 0; i < d->parts; i++)
				protect_call(t, d->routine[group + 1 == d->groups][i],
				             at->data + block * at->data_words + group * d->width, 0,
				             d->sums + (block * d->groups + group) * d->stride);
	/* Memory of an earlier run may hold other cases: no fault, and no note for each. */
	uint64_t all = 0;
	float *word = NEW(&t->b->cx->scratch, layout_data(t->b), float);
	for (uint32_t proc = 0; proc < t->b->o.procs; proc++) {
		if (!protect_count(t, proc))
			continue;
		Buf names = { .arena = &t->b->cx->scratch };
		uint64_t bad = processor_repair(t, proc, word, &names);
		all += bad;
		if (bad && !first && protect_may_note(t))
			note(t->b->cx, NULL, "processor %u: the checksum of case%s %s%s did not match; loaded again (epoch %llu)",
			     proc, bad > 1 ? "s" : "", names.s, bad > SHOWN_CASES ? " and more" : "",
			     (unsigned long long)t->guard->epochs + 1);
	}
	if (all)
		host_wrote(t);
	Cell *table = NULL;
	protect_clear(t);
	for (uint32_t i = 0; i < t->data.tables; i++)
		protect_call(t, t->data.table[i], 0, 0, 0);
	for (uint32_t proc = 0; proc < t->b->o.procs; proc++) {
		if (!protect_count(t, proc))
			continue;
		if (!table)
			tables_fill(table = NEW(&t->b->cx->scratch, TABLE_WORDS, Cell));
		host_write(t->b->c, proc, false, 0, table, SUM_WORDS_AT);
		t->guard->bad_tables++;
		if (protect_may_note(t))
			note(t->b->cx, NULL, "processor %u: the checksum of its tables did not match; written again (epoch %llu)",
			     proc, (unsigned long long)t->guard->epochs + 1);
	}
	t->b->summing->written = false;
	protect_call(t, t->data.restore, 0, 0, 0);
	return all;
}
