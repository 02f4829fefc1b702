/* SPDX-License-Identifier: MIT */
/* Rates of small batches, measured on this machine: there is one where data has a batch of that size. */
#include "test.h"

#include "formats.h"
#include "model.h"

static void alone_body(Ctx *cx, void *arg)
{
	static const char *const texts[] = {
		/* many updates in one go; one by one */
		"group in 5 input\ngroup out 3 output\nconnect in -> out\nconnect true -> out\n",
		"group in 100 input\ngroup out 3 output\nconnect in -> out\nconnect true -> out\n",
	};
	const Net *net = NULL;
	(void)arg;
	for (size_t i = COUNT(texts); i-- > 0;) {
		Src src = { .name = "small.topo", .text = texts[i], .len = strlen(texts[i]) };
		net = net_parse(cx, &src, DEFAULTS_1989);
		for (uint64_t batch = 1; batch <= 512; batch *= 8)
			assert_true(rates_alone(cx, net, NULL, 1, batch) > 0);
	}
	assert_true(rates_alone(cx, net, data_open(cx, "make:parity:5", NULL), 1, 33) == 0); /* it has 32 */
}

static void small_batches_are_measured(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, alone_body, NULL), MP_OK);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_batches_are_measured),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
