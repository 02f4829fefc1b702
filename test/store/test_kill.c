/* SPDX-License-Identifier: MIT */
/* kill -9 while checkpoints are being saved, hundreds of times: the file is always one whole version, never older than
 * the last one that was seen, and what the killed writers left behind goes with the next save. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

enum { ROUNDS = 200 };

static char folder[] = "/tmp/microprop-kill-XXXXXX", path[512];
static const char topology[] = "group a 90 input\ngroup h 90\ngroup o 3 output\nconnect a, true -> h\nconnect h -> o\n";

/* Version k: every weight and every number of the rule's state is k, and so is the epoch. */
static void set_version(mp_run *run, uint64_t k)
{
	uint64_t n = run->net->links;
	double *v = malloc(n * sizeof *v);
	for (uint64_t i = 0; i < n; i++)
		v[i] = (double)k;
	run->target->set(run->program, 0, 0, ALL_LINKS, v);
	run->target->set(run->program, 1, 0, ALL_LINKS, v);
	run->at.epoch = k;
	free(v);
}

/* The version a file holds; fails unless it is whole. */
static uint64_t get_version(const mp_net *net)
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	if (mp_run_resume(run, path) != MP_OK)
		print_error("%s", mp_run_messages(run));
	assert_non_null(run->program);
	uint64_t n = run->net->links, k = run->at.epoch;
	double *v = malloc(n * sizeof *v);
	for (int which = 0; which <= 1; which++) {
		run->target->get(run->program, which, 0, ALL_LINKS, v);
		for (uint64_t i = 0; i < n; i++)
			assert_true(v[i] == (double)k);
	}
	free(v);
	mp_run_close(run);
	return k;
}

/* Says when it begins, so that a slow start is not what gets killed. */
static _Noreturn void save_for_ever(mp_run *run, uint64_t k, int ready)
{
	if (write(ready, "!", 1) != 1)
		_exit(1);
	for (;; k++) {
		set_version(run, k);
		if (mp_run_save(run, path) != MP_OK)
			_exit(1);
	}
}

static int leftovers(void)
{
	int n = 0;
	DIR *dir = opendir(folder);
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		n += strstr(e->d_name, ".tmp-") != NULL;
	closedir(dir);
	return n;
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Starts a writer, lets it run for a while, kills it. */
static void write_and_die(mp_run *run, uint64_t version, uint64_t us)
{
	int ready[2], status;
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		save_for_ever(run, version, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	nanosleep(&(struct timespec){ (time_t)(us / 1000000), (long)(us % 1000000) * 1000 }, NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void file_survives_every_kill(void **state)
{
	(void)state;
	mp_net *net;
	mp_run *run;
	int found = 0;
	assert_int_equal(net_parse_1989(&net, topology, "net.topo", NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_save(run, path), MP_OK);
	set_version(run, 1);
	assert_int_equal(mp_run_save(run, path), MP_OK);

	uint64_t last = get_version(net), started = last, begun = now_us();
	assert_int_equal(mp_run_save(run, path), MP_OK);
	uint64_t longest = 2 * (now_us() - begun) + 100; /* kills come during the first saves, whatever the disk */
	for (uint64_t round = 0; round < ROUNDS; round++) {
		write_and_die(run, last + 1, random_below(1, STREAM_DATA, round, longest));
		found += leftovers();
		assert_true(leftovers() <= 1);
		uint64_t now = get_version(net);
		assert_true(now >= last);
		last = now;
	}
	assert_true(last > started);
	assert_true(found > 0); /* some kills came in the middle of a save */
	assert_int_equal(mp_run_save(run, path), MP_OK);
	assert_int_equal(leftovers(), 0);
	assert_int_equal(get_version(net), 1);
	mp_run_close(run);
	mp_net_close(net);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/run.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(file_survives_every_kill, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
