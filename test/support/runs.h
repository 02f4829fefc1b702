/* SPDX-License-Identifier: MIT */
/* What the tests of weights and checkpoints share: a folder of their own, networks from text, runs that have been
 * somewhere, comparing to the bit. */
#ifndef RUNS_H
#define RUNS_H

#include "test.h"

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api.h"

static char folder[] = "/tmp/microprop-checkpoint-XXXXXX";

static inline const char *in_folder(const char *name)
{
	static char path[4][512];
	static int turn;
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static inline int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/microprop-checkpoint-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	(void)state;
	DIR *dir = opendir(folder);
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			unlink(in_folder(e->d_name));
	closedir(dir);
	return rmdir(folder);
}

static inline char *file_bytes(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	struct stat st;
	assert_int_equal(fstat(fileno(f), &st), 0);
	char *bytes = malloc((size_t)st.st_size + 1);
	*len = fread(bytes, 1, (size_t)st.st_size, f);
	assert_int_equal(*len, st.st_size);
	fclose(f);
	return bytes;
}

static inline void put_bytes(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void expect_words(const char *text, const char *words)
{
	if (!strstr(text, words))
		print_error("'%s' is not in: %s", words, text);
	assert_non_null(strstr(text, words));
}

/* ---- a network, and runs on it ---- */

static const char tiny[] = "group a 2 input\ngroup o 2 output\nconnect a -> o\nconnect true -> o\n";

static inline mp_net *net_of(const char *text)
{
	mp_net *net;
	mp_status s = net_parse_1989(&net, text, "net.topo", NULL);
	if (s != MP_OK)
		print_error("%s", mp_net_messages(net));
	assert_int_equal(s, MP_OK);
	return net;
}

static inline mp_run *run_of(const mp_net *net)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_set(run, "target", "ref"), MP_OK); /* keeps every bit of a double */
	return run;
}

static inline void need(mp_run *run, mp_status s)
{
	if (s != MP_OK)
		print_error("%s", mp_run_messages(run));
	assert_int_equal(s, MP_OK);
}

/* Numbers of every kind: ordinary ones, tiny, huge, minus zero, denormal. */
static inline double odd_number(uint64_t seed, uint64_t i)
{
	static const double special[] = { 0.0, -0.0, DBL_MIN / 8, -DBL_MAX, 1.0 / 3, DBL_EPSILON };
	uint64_t r = random_u64(seed, STREAM_DATA, i);
	return r % 5 == 0 ? special[r / 5 % COUNT(special)] : ldexp((double)(int64_t)r, (int)(r % 64) - 64);
}

static inline double *odd_vector(uint64_t seed, uint64_t n)
{
	double *v = malloc((n + 1) * sizeof *v);
	for (uint64_t i = 0; i < n; i++)
		v[i] = odd_number(seed, i);
	return v;
}

static inline Position odd_position(uint64_t seed)
{
	Position p = { .epoch = 17 + seed,
		           .cases = 99,
		           .done = 3,
		           .updates = UINT64_MAX / 4,
		           .best = 0.1,
		           .best_epoch = 16,
		           .seconds = 1e-300,
		           .tally = { 0.3, 1, 2, 3, 4 },
		           .last = { INFINITY, 5, 6, 7, 8 },
		           .test = { seed % 2 ? NAN : 0x1p-1074, 9, 10, 11, 12 } };
	p.best = seed % 2 ? INFINITY : 1.0 / (double)(seed + 3);
	return p;
}

/* A run that has been somewhere: weights, rule state, position, scale, best epoch. */
static inline mp_run *travelled(const mp_net *net, const char *rule, bool best)
{
	mp_run *run = run_of(net);
	uint64_t n = net->net->links;
	double *w = odd_vector(1, n);
	need(run, mp_run_set(run, "rule", rule));
	need(run, mp_run_set(run, "rate", "0.30000000000000004"));
	need(run, mp_run_set(run, "until", "error:0.01,right:0.9"));
	need(run, mp_run_set_weights(run, w, n));
	for (int i = 0; i < rules[run->opt.rule].states; i++) {
		double *v = odd_vector(2 + (uint64_t)i, n);
		run->target->set(run->program, 1 + i, 0, ALL_LINKS, v);
		free(v);
	}
	run->at = odd_position(1);
	run->scale.kind = SCALE_ZSCORE;
	run->scale.offset = NEW(&run->cx.keep, net->net->inputs, double);
	run->scale.factor = NEW(&run->cx.keep, net->net->inputs, double);
	for (uint32_t i = 0; i < net->net->inputs; i++) {
		run->scale.offset[i] = odd_number(7, i);
		run->scale.factor[i] = odd_number(8, i);
	}
	if (best) {
		run->best_weights = NEW(&run->cx.keep, n, double);
		for (uint64_t i = 0; i < n; i++)
			((double *)run->best_weights)[i] = odd_number(9, i);
		run->best_at = odd_position(2);
	}
	free(w);
	return run;
}

/* Starts it, so that what follows is saving alone. */
static inline void run_start_quietly(mp_run *run)
{
	uint64_t n = run->net->links;
	double *w = malloc(n * sizeof *w);
	need(run, mp_run_get_weights(run, w, n));
	free(w);
}

static inline void same_vector(const double *a, const double *b, uint64_t n)
{
	assert_memory_equal(a, b, n * sizeof *a);
}

static inline void same_part(mp_run *a, mp_run *b, int which)
{
	uint64_t n = a->net->links;
	double *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
	a->target->get(a->program, which, 0, ALL_LINKS, x);
	b->target->get(b->program, which, 0, ALL_LINKS, y);
	same_vector(x, y, n);
	free(x);
	free(y);
}

static inline void same_files(const char *a, const char *b)
{
	size_t m, n;
	char *x = file_bytes(a, &m), *y = file_bytes(b, &n);
	assert_int_equal(m, n);
	assert_memory_equal(x, y, n);
	free(x);
	free(y);
}

#endif
