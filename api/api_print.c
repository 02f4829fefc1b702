/* SPDX-License-Identifier: MIT */
/* The program of a run as text. */
#include "api.h"

typedef struct PrintArgs {
	Run *r;
	const mp_data *data;
	mp_write_fn *write;
	void *user;
} PrintArgs;

static void print_body(void *arg)
{
	PrintArgs *a = arg;
	Run *r = a->r;
	Buf out = { .arena = &r->cx.scratch };
	const Data *data = data_readable(&r->cx, a->data);

	if (data)
		run_check_data(&r->cx, r->net, data, true);
	run_start(r);
	r->target->print(&r->cx, r->program, data, &out);
	a->write(a->user, out.s, out.len);
}

mp_status mp_run_print(mp_run *run, const mp_data *data, mp_write_fn *write, void *user)
{
	return api_call(&run->cx, print_body, &(PrintArgs){ run, data, write, user });
}
