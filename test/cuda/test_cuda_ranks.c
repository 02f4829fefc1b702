/* SPDX-License-Identifier: MIT */
/* A GPU for each rank, emulated: the bits of one process on target cpu, for any number of ranks. */
#include "hall.h"

static void any_number_has_the_bits_of_cpu(void **state)
{
	static const char *const options[][11] = {
		{ "rate", "0.3", "epochs", "2", "threads", "1", "batch", "all" },
		{ "rate", "0.3", "epochs", "1", "threads", "1", "batch", "1100", "rule", "adam" },
	};
	static Rank one[1], rank[SOME_RANKS];

	(void)state;
	setenv("MICROPROP_CUDA", "emulate:5", 1);
	mp_net *net = net_new("group in 5 input\ngroup hidden 4\ngroup out 3 output\n"
	                      "connect in, true -> hidden\nconnect hidden, in, true -> out\n");
	mp_data *data = data_new(2600, 5, 3, NULL, 0), *test = data_new(1030, 5, 3, NULL, 0);
	for (size_t o = 0; o < COUNT(options); o++) {
		const char *cuda[13] = { "target", "cuda" };
		memcpy(cuda + 2, options[o], sizeof options[o]);
		Rank like = { .net = net, .data = data, .test = test, .option = options[o] };
		ranks_run(1, one, like);
		like.option = cuda;
		for (uint32_t size = 1; size < 5; size++) {
			ranks_run(size, rank, like);
			if (rank[0].status != MP_OK)
				print_error("%s", rank[0].said);
			compare(one, rank, size);
			assert_null(strstr(rank[0].said, "stays in one process"));
		}
	}
	mp_data_close(data);
	mp_data_close(test);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(any_number_has_the_bits_of_cpu) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
