/* SPDX-License-Identifier: MIT */
/* Microseconds of a single case of 203-60-26, for bench/python: by mp_predictor, and by the exported C, which must give
 * the same outputs.
 *   exported MODEL.safetensors */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "letters.h"
#include "microprop.h"
#include "microprop/predict.h"

enum { CASES = 1000, REPEATS = 20 };
static float cases[CASES][LETTERS_INPUTS];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seven letters in a window, or any inputs. */
static void fill(int dense)
{
	for (int i = 0; i < CASES; i++)
		for (int k = 0; k < LETTERS_INPUTS; k++)
			cases[i][k] = dense ? (float)rand() / (float)RAND_MAX : (float)(k % 29 == (i * 7 + k / 29 * 11) % 29);
}

static double predictor(mp_predictor *p, double *sum)
{
	double best = 1e9;
	for (int r = 0; r < REPEATS; r++) {
		double start = now();
		for (int i = 0; i < CASES; i++) {
			float *x = mp_predictor_inputs(p);
			for (int k = 0; k < LETTERS_INPUTS; k++)
				x[k] = cases[i][k];
			*sum += mp_predictor_run(p)[i % LETTERS_OUTPUTS];
		}
		double each = (now() - start) / CASES;
		best = each < best ? each : best;
	}
	return best;
}

static double exported(double *sum)
{
	double best = 1e9;
	for (int r = 0; r < REPEATS; r++) {
		float y[LETTERS_OUTPUTS];
		double start = now();
		for (int i = 0; i < CASES; i++) {
			letters_predict(cases[i], y);
			*sum += (double)y[i % LETTERS_OUTPUTS];
		}
		double each = (now() - start) / CASES;
		best = each < best ? each : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	mp_net *net;
	mp_run *run;
	mp_predictor *p;
	if (argc != 2 || mp_net_open(&net, argv[1], NULL) || mp_run_new(&run, net, NULL) || mp_run_load(run, argv[1]) ||
	    mp_predictor_new(&p, run, NULL))
		return 2;
	for (int dense = 0; dense < 2; dense++) {
		double a = 0, b = 0;
		fill(dense);
		double library = predictor(p, &a), own = exported(&b);
		printf("C, mp_predictor_run%s %.3f\nC, exported%s %.3f\n", dense ? "" : ", letters", 1e6 * library,
		       dense ? "" : ", letters", 1e6 * own);
		if (a != b)
			return 1;
	}
	mp_predictor_close(p);
	mp_run_close(run);
	mp_net_close(net);
	return 0;
}
