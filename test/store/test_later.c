/* SPDX-License-Identifier: MIT */
/* Checkpoints written in the background: the bits of those written at once; older ones stay; whatever fails, there
 * is always one that can be resumed, the failure is reported, and training goes on as if nothing had been saved. */
#include "runs.h"

static const char network[] =
	"group in 12 input\ngroup mid 9\ngroup out 3 output\nconnect in -> mid\nconnect mid -> out\n"
	"connect true -> mid, out\n";

static mp_run *at_update(mp_net *net, const mp_data *data, const char *updates, const mp_allocator *alloc)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, alloc), MP_OK);
	need(run, mp_run_set(run, "updates", updates));
	need(run, mp_run_set(run, "until", "never"));
	need(run, mp_run_set(run, "batch", "2"));
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	return run;
}

static mp_data *some_data(void)
{
	float x[10 * 12], y[10 * 3];
	for (int i = 0; i < 10 * 12; i++)
		x[i] = (float)(i * 7 % 11) / 11;
	for (int i = 0; i < 10 * 3; i++)
		y[i] = (float)(i % 4 == 0);
	mp_data *data;
	assert_int_equal(mp_data_new(&data, 10, 12, 3, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

static void resumes_at(const mp_net *net, const char *path, uint64_t updates)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	need(run, mp_run_resume(run, path));
	assert_int_equal(run->at.updates, updates);
	mp_run_close(run);
}

static void same_file_as_at_once(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	mp_run *run = at_update(net, data, "7", NULL);
	need(run, mp_run_save(run, in_folder("once")));
	need(run, mp_run_save_background(run, in_folder("later"), NULL, 1));
	need(run, mp_run_save_wait(run));
	same_files(in_folder("once"), in_folder("later"));
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

static void older_ones_stay(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	for (int i = 1; i <= 6; i++) {
		char updates[8];
		snprintf(updates, sizeof updates, "%d", i);
		mp_run *run = at_update(net, data, updates, NULL);
		need(run, mp_run_save_background(run, in_folder("a"), NULL, 3));
		mp_run_close(run); /* waits for it */
	}
	resumes_at(net, in_folder("a"), 6);
	resumes_at(net, in_folder("a.1"), 5);
	resumes_at(net, in_folder("a.2"), 4);
	assert_int_equal(access(in_folder("a.3"), F_OK), -1);
	mp_data_close(data);
	mp_net_close(net);
}

static void any_call_may_fail(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	mp_run *old = at_update(net, data, "3", NULL), *run = at_update(net, data, "5", NULL);
	for (int n = 1; run->cx.io_fail_at == 0; n++) {
		need(old, mp_run_save(old, in_folder("a")));
		run->cx.io_fail_at = n;
		need(run, mp_run_save_background(run, in_folder("a"), NULL, 2));
		mp_status status = mp_run_save_wait(run);
		bool failed = run->cx.io_fail_at == 0;
		if (!failed)
			assert_int_equal(status, MP_OK);
		if (status != MP_OK)
			assert_non_null(strstr(mp_run_save_messages(run), "cannot write"));
		mp_run *other;
		assert_int_equal(mp_run_new(&other, net, NULL), MP_OK);
		need(other, mp_run_resume(other, in_folder("a")));
		assert_true(other->at.updates == 5 || (failed && other->at.updates == 3));
		mp_run_close(other);
		assert_int_equal(mp_run_save_wait(run), MP_OK); /* reported once */
		assert_true(n < 1000);
	}
	run->cx.io_fail_at = 0;
	mp_run_close(run);
	mp_run_close(old);
	mp_data_close(data);
	mp_net_close(net);
}

static void any_request_may_fail(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	mp_run *old = at_update(net, data, "3", NULL);
	need(old, mp_run_save(old, in_folder("a")));
	mp_status status = MP_NO_MEMORY;
	for (int n = 1; status != MP_OK; n++) {
		Meter meter = { 0 };
		mp_run *run = at_update(net, data, "5", &(mp_allocator){ sizeof(mp_allocator), meter_resize, &meter });
		meter.fail_at = meter.calls + n;
		status = mp_run_save_background(run, in_folder("a"), NULL, 1);
		meter.fail_at = 0;
		if (status != MP_OK) {
			assert_int_equal(status, MP_NO_MEMORY);
			resumes_at(net, in_folder("a"), 3);
			need(run, mp_run_set(run, "updates", "9"));
			need(run, mp_run_train(run, data, NULL, NULL, NULL)); /* goes on */
		}
		mp_run_close(run);
		assert_int_equal(meter.live, 0);
		assert_true(n < 1000);
	}
	resumes_at(net, in_folder("a"), 5);
	mp_run_close(old);
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- ticks ---- */

typedef struct Ticks {
	int ticks, saves;
} Ticks;

static int save_often(void *user, mp_run *run)
{
	Ticks *t = user;
	t->ticks++;
	t->saves += mp_run_save_background(run, in_folder("tick"), NULL, 2) == MP_OK;
	return t->ticks == 40;
}

static void ticks_come_between_updates(void **state)
{
	(void)state;
	mp_net *net = net_of(network);
	mp_data *data = some_data();
	mp_run *run, *quiet;
	Ticks t = { 0 };
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	need(run, mp_run_set(run, "batch", "2"));
	need(run, mp_run_set(run, "until", "never"));
	mp_run_on_tick(run, 0, save_often, &t);
	assert_int_equal(mp_run_train(run, data, NULL, NULL, NULL), MP_STOPPED);
	assert_int_equal(t.ticks, 40);
	assert_int_equal(run->at.updates, 40);
	need(run, mp_run_save_wait(run));
	need(run, mp_run_save(run, in_folder("forty")));
	quiet = at_update(net, data, "40", NULL);
	assert_string_equal(mp_run_get_report(quiet)->fingerprint, mp_run_get_report(run)->fingerprint);
	mp_run_close(quiet);
	assert_int_equal(mp_run_new(&quiet, net, NULL), MP_OK);
	need(quiet, mp_run_resume(quiet, in_folder("tick"))); /* from any of them to the same end */
	mp_run_on_tick(quiet, 0, NULL, NULL);
	need(quiet, mp_run_set(quiet, "updates", "40"));
	need(quiet, mp_run_train(quiet, data, NULL, NULL, NULL));
	assert_string_equal(mp_run_get_report(quiet)->fingerprint, mp_run_get_report(run)->fingerprint);
	mp_run_close(quiet);
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_file_as_at_once),       cmocka_unit_test(older_ones_stay),
		cmocka_unit_test(any_call_may_fail),          cmocka_unit_test(any_request_may_fail),
		cmocka_unit_test(ticks_come_between_updates),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
