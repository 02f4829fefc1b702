/* SPDX-License-Identifier: MIT */
/* Analyses: eigenvectors of matrices that are known, components and scaling that keep distances, trees as a plain
 * search finds them, contributions as single lesions. */
#include <jansson.h>
#include <math.h>

#include "analyze.h"
#include "api.h"
#include "microprop/inside.h"
#include "microprop/tool.h"
#include "test.h"

static double number(uint64_t i) { return random_unit(7, STREAM_DATA, i) * 2 - 1; }

static void do_eigen(Ctx *cx, void *arg)
{
	Arena *a = &cx->scratch;
	uint32_t n = *(uint32_t *)arg;
	double *m = NEW(a, n * n, double), *kept = NEW(a, n * n, double), *value = NEW(a, n, double);
	double *vector = NEW(a, n * n, double);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i; k < n; k++)
			m[i * n + k] = m[k * n + i] = kept[i * n + k] = kept[k * n + i] = number(i * n + k);
	eigen_symmetric(a, m, n, value, vector);
	for (uint32_t j = 0; j < n; j++) {
		assert_true(!j || value[j - 1] >= value[j]);
		for (uint32_t i = 0; i < n; i++) {
			double product = 0, dot = 0;
			for (uint32_t k = 0; k < n; k++) {
				product += kept[i * n + k] * vector[j * n + k];
				dot += vector[i * n + k] * vector[j * n + k];
			}
			assert_true(fabs(product - value[j] * vector[j * n + i]) < 1e-11 * n);
			assert_true(fabs(dot - (i == j)) < 1e-12 * n);
		}
	}
}

/* Distances in all dimensions are those of the items; with two units, two dimensions are all. */
static void do_planes(Ctx *cx, void *arg)
{
	enum { ITEMS = 30 };
	uint32_t units = *(uint32_t *)arg;
	double *x = NEW(&cx->scratch, ITEMS * units, double), sum = 0;
	for (uint32_t i = 0; i < ITEMS * units; i++)
		x[i] = i % units < 2 ? number(i) : 0.5;
	double *d = distances_of(cx, x, ITEMS, units, DISTANCE_EUCLIDEAN);
	Components c = components_of(cx, x, ITEMS, units);
	Scaled s = scaling_of(cx, d, ITEMS);
	for (uint32_t i = 0; i < ITEMS; i++)
		for (uint32_t k = 0; k < ITEMS; k++) {
			const double *p = c.score + i * c.count, *q = c.score + k * c.count;
			double by_pca = hypot(p[0] - q[0], p[1] - q[1]);
			double by_mds = hypot(s.at[2 * i] - s.at[2 * k], s.at[2 * i + 1] - s.at[2 * k + 1]);
			assert_true(fabs(by_pca - d[i * ITEMS + k]) < 1e-10 && fabs(by_mds - d[i * ITEMS + k]) < 1e-7);
		}
	for (uint32_t k = 0; k < c.count; k++)
		sum += c.variance[k];
	assert_true(fabs(sum - c.total) < 1e-12 && fabs(s.share - 1) < 1e-9);
}

/* Average linkage by its definition: means over all pairs of items. */
static void do_tree(Ctx *cx, void *arg)
{
	enum { N = 40 };
	(void)arg;
	double *x = NEW(&cx->scratch, N * 3, double);
	for (uint32_t i = 0; i < N * 3; i++)
		x[i] = floor(4 * number(i)); /* with ties */
	double *d = distances_of(cx, x, N, 3, DISTANCE_EUCLIDEAN);
	Merge *m = tree_of(cx, d, N);
	uint32_t of[N];
	for (uint32_t i = 0; i < N; i++)
		of[i] = i;
	for (uint32_t step = 0; step + 1 < N; step++) {
		double least = INFINITY, found = 0;
		for (uint32_t a = 0; a < N + step; a++)
			for (uint32_t b = 0; b < N + step; b++) {
				double sum = 0;
				uint32_t pairs = 0;
				for (uint32_t i = 0; i < N; i++)
					for (uint32_t k = 0; k < N; k++)
						if (of[i] == a && of[k] == b) {
							sum += d[i * N + k];
							pairs++;
						}
				if (a != b && pairs)
					least = fmin(least, sum / pairs);
				if (pairs && a == m[step].a && b == m[step].b)
					found = sum / pairs;
			}
		assert_true(fabs(m[step].distance - least) < 1e-12 && fabs(found - least) < 1e-12);
		for (uint32_t i = 0; i < N; i++)
			of[i] = of[i] == m[step].a || of[i] == m[step].b ? N + step : of[i];
	}
}

static void run(void (*body)(Ctx *cx, void *arg), uint32_t n)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, body, &n), MP_OK);
	ctx_free(&cx);
}

static void matrices(void **state)
{
	(void)state;
	static const uint32_t sizes[] = { 1, 2, 3, 10, 60 };
	for (size_t i = 0; i < COUNT(sizes); i++)
		run(do_eigen, sizes[i]);
	run(do_planes, 2);
	run(do_planes, 5);
	run(do_planes, 50); /* more units than items */
	run(do_tree, 0);
}

/* ---- a network ---- */

static const char net_text[] = "group in 8 input\ngroup hidden 3\ngroup out 8 output\nconnect in, true -> hidden\n"
							   "connect hidden, true -> out\ntrain rate 0.3 epochs 200 seed 5 prime-offset 0.1\n";

typedef struct Report {
	char s[100000];
	size_t len;
} Report;

static void add(void *user, const char *text, size_t len)
{
	Report *r = user;
	assert_true(r->len + len < sizeof r->s);
	memcpy(r->s + r->len, text, len);
	r->s[r->len += len] = '\0';
}

static void units_and_contrasts(void **state)
{
	static Report r;
	mp_net *net;
	mp_data *data;
	mp_run *run;
	(void)state;
	assert_int_equal(net_parse_1989(&net, net_text, "test.topo", NULL), MP_OK);
	assert_int_equal(mp_data_open(&data, "make:encoder:8-3", NULL, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_train(run, data, NULL, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_study(run, NULL, "links", 0, NULL, add, &r), MP_OK);
	json_t *links = json_loads(r.s, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(links, "from")), mp_net_get_info(net)->connections);
	assert_int_equal(json_array_size(json_object_get(links, "to")), mp_net_get_info(net)->connections);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(links, "from"), 0)), 0); /* the bias first */
	json_decref(links);
	r.len = 0;
	const char *const argv[] = { "--json", "--sets=low=1..4,high=5..8", "--top=2" };
	assert_int_equal(mp_run_study(run, data, "analyze", COUNT(argv), argv, add, &r), MP_OK);
	json_t *root = json_loads(r.s, 0, NULL), *units = json_object_get(root, "units");
	assert_int_equal(json_array_size(units), 3);
	assert_int_equal(json_array_size(json_object_get(root, "tree")), 7);
	double w[3 * 9 + 8 * 4], before, hidden[8 * 3], mean[2] = { 0, 0 };
	mp_result m = { .size = sizeof m };
	assert_int_equal(mp_run_get_weights(run, w, COUNT(w)), MP_OK);
	assert_int_equal(mp_run_test(run, data, &m, NULL), MP_OK);
	before = m.error;
	for (uint32_t i = 0; i < 8; i++) /* outputs come last; of each the bias first */
		w[27 + 4 * i + 1 + 2] = 0;
	assert_int_equal(mp_run_set_weights(run, w, COUNT(w)), MP_OK);
	assert_int_equal(mp_run_test(run, data, &m, NULL), MP_OK);
	const json_t *last = json_array_get(units, 2);
	double change = json_real_value(json_object_get(json_object_get(last, "contribution"), "error"));
	assert_true(fabs(change - (m.error - before)) < 1e-6);
	assert_int_equal(json_array_size(json_object_get(last, "sources")), 2);
	assert_int_equal(mp_run_activations(run, data, "hidden", 0, hidden), MP_OK); /* weights out of it do not matter */
	for (int i = 0; i < 8; i++)
		mean[i / 4] += hidden[3 * i + 2] / 4;
	const json_t *means = json_object_get(json_object_get(last, "contrast"), "mean");
	for (size_t k = 0; k < 2; k++)
		assert_true(fabs(json_real_value(json_array_get(means, k)) - mean[k]) < 1e-6);
	json_decref(root);
	static const char *const wrong[][2] = {
		{ "--group=no", "the groups are" },     { "--distance=far", "euclidean, correlation or cosine" },
		{ "--average=mode", "name or target" }, { "--contrast=a,b", "define them" },
		{ "--contrast=a", "name two sets" },    { "--top=0", "whole number" }
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(mp_run_study(run, data, "analyze", 1, &wrong[i][0], add, &r), MP_BAD_INPUT);
		assert_non_null(strstr(mp_run_messages(run), wrong[i][1]));
	}
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(matrices), cmocka_unit_test(units_and_contrasts) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
