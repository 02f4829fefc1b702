/* SPDX-License-Identifier: MIT */
/* Built-in data sets: exact contents of the small ones, properties of the random ones, the same on every machine. */
#include <math.h>
#include <xxhash.h>

#include "make.h"
#include "test.h"

typedef struct Job {
	const char *spec;
	DataOptions opt;
	Data *d;
} Job;

static void do_make(Ctx *cx, void *arg)
{
	Job *j = arg;
	j->d = make_data(cx, j->spec, &j->opt);
}

static Data *make_seed(Ctx *cx, const char *spec, uint64_t seed)
{
	Job j = { .spec = spec, .opt = { .seed = seed } };
	ctx_init(cx, NULL);
	Status s = guarded(cx, do_make, &j);
	if (s != MP_OK)
		print_error("%s\n", ctx_messages(cx));
	assert_int_equal(s, MP_OK);
	return j.d;
}

static Data *make(Ctx *cx, const char *spec) { return make_seed(cx, spec, 0); }

/* All inputs and targets, as they are for any storage. */
static uint64_t fingerprint(const Data *d)
{
	XXH3_state_t *h = XXH3_createState();
	float *row = calloc(d->inputs + d->targets, sizeof *row);
	XXH3_64bits_reset(h);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		data_y(d, i, row + d->inputs);
		for (uint32_t k = 0; k < d->inputs + d->targets; k++)
			row[k] = isnan(row[k]) ? -99 : row[k]; /* NaNs have many forms */
		XXH3_64bits_update(h, row, (d->inputs + d->targets) * sizeof *row);
	}
	uint64_t v = XXH3_64bits_digest(h);
	XXH3_freeState(h);
	free(row);
	return v;
}

static void xor_and_parity(void **state)
{
	(void)state;
	Ctx cx;
	Data *d = make(&cx, "xor");
	assert_string_equal(d->name, "make:xor");
	assert_int_equal(d->cases, 4);
	for (uint64_t i = 0; i < 4; i++) {
		float x[2], y;
		data_x(d, i, x);
		data_y(d, i, &y);
		assert_float_equal(x[0], (float)(i >> 1), 0);
		assert_float_equal(x[1], (float)(i & 1), 0);
		assert_float_equal(y, (float)((i >> 1) ^ (i & 1)), 0);
	}
	ctx_free(&cx);
	d = make(&cx, "parity:11");
	assert_int_equal(d->cases, 2048);
	assert_int_equal(d->inputs, 11);
	float y;
	data_y(d, 2047, &y);
	assert_float_equal(y, 1, 0);
	ctx_free(&cx);
}

static void encoder(void **state)
{
	(void)state;
	Ctx cx;
	Data *d = make(&cx, "encoder:10-5");
	assert_int_equal(d->cases, 10);
	assert_int_equal(d->inputs, 10);
	assert_int_equal(d->targets, 10);
	for (uint64_t i = 0; i < 10; i++) {
		float x[10], y[10];
		data_x(d, i, x);
		data_y(d, i, y);
		for (uint64_t k = 0; k < 10; k++)
			assert_true(x[k] == (i == k) && y[k] == x[k]);
	}
	ctx_free(&cx);
}

static void spirals(void **state)
{
	(void)state;
	Ctx cx;
	Data *d = make(&cx, "spirals");
	assert_int_equal(d->cases, 194);
	for (uint64_t i = 0; i < 97; i++) {
		float a[2], b[2], y;
		double radius = (104.0 - (double)i) / 104, angle = (double)i * 3.14159265358979323846 / 16;
		data_x(d, 2 * i, a);
		data_x(d, 2 * i + 1, b);
		assert_true(fabs(a[0] - radius * sin(angle)) < 1e-6 && fabs(a[1] - radius * cos(angle)) < 1e-6);
		assert_true(b[0] == -a[0] && b[1] == -a[1]);
		data_y(d, 2 * i, &y);
		assert_float_equal(y, 1, 0);
		data_y(d, 2 * i + 1, &y);
		assert_float_equal(y, 0, 0);
	}
	ctx_free(&cx);
}

/* Walk the grammar again, written another way: after each symbol, what may follow. */
static void reber(void **state)
{
	(void)state;
	static const char *const arrows[] = {
		/* state, symbol, next state */
		"0B1", "1T2", "1P3", "2S2", "2X4", "3T3", "3V5", "4X3", "4S6", "5P4", "5V6", "6E7",
	};
	Ctx cx;
	Data *d = make(&cx, "reber");
	assert_int_equal(d->inputs, 7);
	assert_int_equal(d->targets, 7);
	assert_int_equal(d->sequences, 256);
	bool other_lengths = false;
	for (uint64_t s = 0; s < d->sequences; s++) {
		char at = '0';
		other_lengths |= d->seq[s + 1] - d->seq[s] != d->seq[1];
		for (uint64_t i = d->seq[s]; i < d->seq[s + 1]; i++) {
			float x[7], y[7];
			char next = 0;
			data_x(d, i, x);
			data_y(d, i, y);
			for (int k = 0; k < 7; k++)
				assert_true(x[k] == ("BTSXPVE"[k] == d->names[i].s[0]));
			for (size_t k = 0; k < COUNT(arrows); k++)
				if (arrows[k][0] == at && arrows[k][1] == d->names[i].s[0])
					next = arrows[k][2];
			assert_true(next);
			at = next;
			float legal[7] = { 0 };
			for (size_t k = 0; k < COUNT(arrows); k++)
				if (arrows[k][0] == at)
					legal[strchr("BTSXPVE", arrows[k][1]) - "BTSXPVE"] = 1;
			assert_memory_equal(y, legal, sizeof y);
		}
		assert_int_equal(at, '6'); /* only E can follow */
	}
	assert_true(other_lengths);
	ctx_free(&cx);
}

static void temporal_xor(void **state)
{
	(void)state;
	Ctx cx;
	Data *d = make(&cx, "temporal-xor");
	assert_int_equal(d->inputs, 1);
	bool other_lengths = false;
	for (uint64_t s = 0; s < d->sequences; s++) {
		assert_int_equal((d->seq[s + 1] - d->seq[s]) % 3, 0);
		other_lengths |= d->seq[s + 1] - d->seq[s] != d->seq[1];
		for (uint64_t i = d->seq[s]; i < d->seq[s + 1]; i += 3) {
			float x[3], y[3];
			for (uint64_t k = 0; k < 3; k++) {
				data_x(d, i + k, &x[k]);
				data_y(d, i + k, &y[k]);
			}
			assert_true(x[2] == (x[0] != x[1]) && y[1] == x[2]);
			assert_true(isnan(y[0]) && isnan(y[2]));
		}
	}
	assert_true(other_lengths);
	ctx_free(&cx);
}

/* What the letters spell, syllable by syllable, and whether each knows the next one. */
static void letter_sequences(void **state)
{
	(void)state;
	static const char *const spelt[] = { "ba", "dii", "guuu" };
	Ctx cx;
	Data *d = make(&cx, "letter-sequences");
	assert_int_equal(d->inputs, 6);
	assert_int_equal(d->targets, 6);
	for (uint64_t s = 0; s < d->sequences; s++)
		for (uint64_t i = d->seq[s]; i < d->seq[s + 1];) {
			const char *syllable = spelt[strchr("bdg", d->names[i].s[0]) - "bdg"];
			for (; *syllable; syllable++, i++) {
				float x[6], y[6];
				assert_true(i < d->seq[s + 1] && d->names[i].s[0] == *syllable);
				data_x(d, i, x);
				assert_true(x[0] == !strchr("aiu", *syllable) && x[1] == !x[0]);
				data_y(d, i, y);
				if (syllable[1])
					data_x(d, i + 1, x);
				for (int k = 0; k < 6; k++)
					assert_true(syllable[1] ? y[k] == x[k] : k == 3 || k == 4 ? isnan(y[k]) : y[k] == (k != 1));
			}
		}
	ctx_free(&cx);
}

static Text word_of(Text name)
{
	while (name.s[name.len - 1] != '/')
		name.len--;
	return (Text){ name.s, name.len - 1 };
}

/* The sound of the case with this name, "-" if silent. */
static char sound_at(const Data *d, uint64_t i)
{
	float y[26];
	data_y(d, i, y);
	for (uint32_t k = 0; k < d->code_count; k++) {
		uint32_t same = 0;
		while (same < d->targets && d->codes[k * d->targets + same] == (double)y[same])
			same++;
		if (same == d->targets)
			return d->code_names[k].s[0];
	}
	return '?';
}

static void letters(void **state)
{
	(void)state;
	Ctx cx;
	Data *d = make(&cx, "letters");
	assert_int_equal(d->cases, 12022);
	assert_int_equal(d->inputs, 203);
	assert_int_equal(d->targets, 26);
	assert_int_equal(d->code_count, 330);
	assert_non_null(d->x_indptr);
	assert_int_equal(d->x_indptr[d->cases], 12022 * 7);
	/* The last word is whole, and each letter stands in the middle of its window. */
	Text last = word_of(d->names[d->cases - 1]);
	assert_int_equal(strtoul(d->names[d->cases - 1].s + last.len + 1, NULL, 10), last.len - 1);
	uint32_t silent = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		Text word = word_of(d->names[i]);
		uint32_t place = (uint32_t)strtoul(word.s + word.len + 1, NULL, 10);
		assert_int_equal(d->x_indices[i * 7 + 3], 3 * 29 + (uint32_t)(word.s[place] - 'a'));
		char sound = sound_at(d, i);
		assert_true(sound != '?');
		silent += sound == '-';
		bool before_e = place + 1 < word.len && word.s[place + 1] == 'e';
		if (word.s[place] == 'c' && before_e && (place == 0 || !strchr("sc", word.s[place - 1])))
			assert_int_equal(sound, 's');
		if (word.s[place] == 'h' && place > 0 && strchr("tps", word.s[place - 1]))
			assert_int_equal(sound, '-');
	}
	assert_in_range(silent, d->cases / 10, d->cases / 3);
	ctx_free(&cx);
}

/* Windows that are the same nearly always sound the same: there is something to learn. */
static void letters_are_learnable(void **state)
{
	(void)state;
	Ctx cx;
	Data *d = make(&cx, "letters");
	enum { SLOTS = 1 << 16 };
	uint32_t *slot = calloc(SLOTS, sizeof *slot), differ = 0, again = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		const uint32_t *window = d->x_indices + i * 7;
		uint64_t at = XXH3_64bits(window, 7 * sizeof *window) % SLOTS;
		while (slot[at] && memcmp(d->x_indices + (slot[at] - 1) * 7ull, window, 7 * sizeof *window) != 0)
			at = (at + 1) % SLOTS;
		if (!slot[at]) {
			slot[at] = (uint32_t)i + 1;
			continue;
		}
		again++;
		differ += memcmp((const uint8_t *)d->y + (slot[at] - 1) * 26ull, (const uint8_t *)d->y + i * 26, 26) != 0;
	}
	free(slot);
	assert_true(again > 500);
	assert_true(differ * 50 < again);
	ctx_free(&cx);
}

static void random_sets_are_fixed(void **state)
{
	(void)state;
	const struct {
		const char *spec;
		uint64_t fingerprint;
	} sets[] = {
		{ "letters", 0x1fd7828de382de41 },
		{ "reber", 0xaa29cda7847e54cd },
		{ "temporal-xor", 0xff2502b8614139ad },
		{ "spirals", 0x61b461d400ac3ce6 },
		{ "letter-sequences", 0x562fe4f5ce6e1193 },
		{ "triangle", 0x3980e5f7f40cd0c3 },
		{ "past-tense", 0xde3d864bdb4a4a2d },
		{ "family-tree", 0x9cce1952721aee38 },
		{ "clubs", 0x13f2f02bc762f603 },
		{ "club-probes", 0x2f854a8146d7e222 },
		{ "semantics", 0xf2320764434b28e1 },
		{ "sentences", 0xd8eb80822c8548e0 },
	};
	static const char *const fixed[] = { "spirals", "family-tree", "semantics" }; /* whatever the seed */
	for (size_t i = 0; i < COUNT(sets); i++) {
		Ctx cx;
		uint64_t have = fingerprint(make(&cx, sets[i].spec));
		if (have != sets[i].fingerprint)
			print_error("%s: %016llx\n", sets[i].spec, (unsigned long long)have);
		assert_true(have == sets[i].fingerprint);
		ctx_free(&cx);
		uint64_t other = fingerprint(make_seed(&cx, sets[i].spec, 7));
		bool random = true;
		for (size_t k = 0; k < COUNT(fixed); k++)
			random = random && strcmp(sets[i].spec, fixed[k]) != 0;
		assert_true((other != have) == random);
		ctx_free(&cx);
	}
}

/* Hinton (1986): 12 persons and 52 facts in each family; an aunt or uncle may be one of two. */
static void family_trees(void **state)
{
	(void)state;
	Ctx cx;
	float x[36], y[24];
	uint32_t count[2] = { 0 }, two = 0;
	Data *d = make(&cx, "family-tree");
	assert_int_equal(d->cases, 104);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x);
		data_y(d, i, y);
		uint32_t person = 0, answers = 0;
		while (!x[person])
			person++;
		uint32_t family = person / 12;
		for (uint32_t k = 0; k < 24; k++) {
			answers += y[k] == 1;
			assert_true(y[k] == 0 || (k / 12 == family && k != person));
		}
		count[family]++;
		two += answers == 2;
		assert_in_range(answers, 1, 2);
	}
	assert_int_equal(count[0], 52);
	assert_int_equal(count[1], 52);
	assert_int_equal(two, 2 * 4);
	ctx_free(&cx);
}

static void wrong_names(void **state)
{
	(void)state;
	const struct {
		const char *spec, *words;
	} wrong[] = {
		{ "", "name one of xor, parity:N" },
		{ "xorx", "name one of" },
		{ "xo", "name one of" },
		{ "xor:2", "write xor" },
		{ "parity", "write parity:N with N from 1 to 20" },
		{ "parity:", "N from" },
		{ "parity:0", "N from" },
		{ "parity:21", "N from" },
		{ "parity:4x", "N from" },
		{ "parity:99999999999999999999999", "N from" },
		{ "parity:-1", "N from" },
		{ "encoder:8", "M, the hidden units" },
		{ "encoder:8-", "M, the" },
		{ "encoder:8-0", "M, the" },
		{ "encoder:8-9", "M, the" },
		{ "encoder:1-1", "N from 2" },
		{ "encoder:4097-3", "to 4096" },
		{ "letters:3", "write letters" },
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		Ctx cx;
		Job j = { .spec = wrong[i].spec };
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, do_make, &j), MP_BAD_INPUT);
		assert_non_null(strstr(ctx_messages(&cx), wrong[i].words));
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xor_and_parity),
		cmocka_unit_test(encoder),
		cmocka_unit_test(spirals),
		cmocka_unit_test(reber),
		cmocka_unit_test(temporal_xor),
		cmocka_unit_test(letter_sequences),
		cmocka_unit_test(letters),
		cmocka_unit_test(letters_are_learnable),
		cmocka_unit_test(random_sets_are_fixed),
		cmocka_unit_test(family_trees),
		cmocka_unit_test(wrong_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
