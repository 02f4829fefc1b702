/* SPDX-License-Identifier: MIT */
/* Microseconds that a predictor takes for one case of 203-60-26; run by bench/python. */
#include <stdio.h>
#include <time.h>

#include <microprop/predict.h>

enum { ROUNDS = 20, COUNT = 20000 };

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void)
{
	static const char text[] = "group in 203 input\ngroup hidden 60 sigmoid\ngroup out 26 sigmoid output\n"
							   "connect in, true -> hidden\nconnect hidden, true -> out\n";
	mp_net *net;
	mp_run *run;
	mp_predictor *p;
	double least = 1;
	if (mp_net_parse(&net, text, "net", NULL) || mp_run_new(&run, net, NULL) || mp_predictor_new(&p, run, NULL))
		return 1;
	float *x = mp_predictor_inputs(p);
	for (int i = 0; i < 203; i++)
		x[i] = (float)i / 203;
	for (int k = 0; k < ROUNDS; k++) {
		double begin = seconds();
		for (int i = 0; i < COUNT; i++) {
			x[i % 203] = (float)(i % 2);
			mp_predictor_run(p);
		}
		double each = (seconds() - begin) / COUNT;
		least = each < least ? each : least;
	}
	printf("%.3f\n", least * 1e6);
	mp_predictor_close(p);
	mp_run_close(run);
	mp_net_close(net);
	return 0;
}
