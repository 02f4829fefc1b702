/* SPDX-License-Identifier: MIT */
/* Trains XOR through the library and prints what the network says.
 *
 *     cc xor.c $(pkg-config --cflags --libs microprop) -o xor && ./xor */
#include <microprop.h>
#include <stdio.h>

static const char topology[] = "defaults 1989\n"
							   "group in     2 input\n"
							   "group hidden 3 sigmoid\n"
							   "group out    1 sigmoid output\n"
							   "connect in, true     -> hidden\n"
							   "connect hidden, true -> out\n"
							   "train rate 0.5 momentum 0.9 epochs 5000\n";

int main(void)
{
	static const float x[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }, y[4] = { 0, 1, 1, 0 };
	mp_net *net = NULL;
	mp_data *data = NULL;
	mp_run *run = NULL;
	mp_result result = { .size = sizeof result };
	double out[4] = { 0 };
	int solved = mp_net_parse(&net, topology, "xor", NULL) == MP_OK &&
	             mp_data_new(&data, 4, 2, 1, *x, y, NULL, 0, NULL) == MP_OK && mp_run_new(&run, net, NULL) == MP_OK &&
	             mp_run_train(run, data, NULL, NULL, NULL) == MP_OK && mp_run_test(run, data, &result, out) == MP_OK &&
	             mp_run_get_report(run)->solved;
	for (int i = 0; i < 4 && solved; i++)
		printf("%g xor %g = %.2f\n", x[i][0], x[i][1], out[i]);
	if (!solved)
		fprintf(stderr, "not solved\n%s%s", net ? mp_net_messages(net) : "", run ? mp_run_messages(run) : "");
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
	return !solved;
}
