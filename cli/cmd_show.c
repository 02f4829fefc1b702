/* SPDX-License-Identifier: MIT */
/* show: a topology file comes in; the network as compiled, at any stage, goes out. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const Option options[] = {
	{ "stage", "net|plan|program", "print this stage of the compilation and nothing else" },
	{ "json", NULL, "print counts, groups and blocks as one JSON object; with --stage its text, too" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ "Machine", NULL, " target input " },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop show examples/xor.topo", "a summary and the network" },
	{ "microprop show examples/xor.topo --stage program --target ref", "as the target executes it" },
	{ "microprop show examples/xor.topo --stage program --input index",
	  "the steps of an epoch on sparse inputs (CSR)" },
	{ NULL, NULL },
};

/* On cpu it depends on the inputs: those that --input assumes, else those of the data that the topology names. */
static int program_print(Session *s, const Args *a, FILE *f)
{
	const char *data = args_text(a, "input") ? NULL : mp_net_get_info(s->net)->data;
	int rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	if (!rc && data && strcmp(mp_run_get(s->run, "target"), "cpu") == 0)
		rc = session_data(&s->data, data, mp_net_get_info(s->net)->data_options);
	return rc ? rc : after_run(s->run, mp_run_print(s->run, s->data, show_lines, f));
}

static int stage_print(Session *s, const Args *a, const char *stage, FILE *f)
{
	if (strcmp(stage, "program") == 0)
		return program_print(s, a, f);
	return after_net(s->net, mp_net_print(s->net, stage, args_text(a, "target"), show_lines, f));
}

/* text: of the stage, or both NULL. */
static void net_json(const mp_net *net, const char *stage, const char *text)
{
	const mp_net_info *n = mp_net_get_info(net);
	Json j = { .f = stdout };
	json_open(&j, NULL, '{');
	json_text(&j, "name", n->name);
	json_count(&j, "groups", n->groups);
	json_count(&j, "blocks", n->blocks);
	json_count(&j, "copies", n->copies);
	json_count(&j, "connections", n->connections);
	json_count(&j, "input_connections", n->input_connections);
	json_count(&j, "units", n->units);
	json_count(&j, "inputs", n->inputs);
	json_count(&j, "outputs", n->outputs);
	json_count(&j, "levels", n->levels);
	json_text(&j, "fingerprint", n->fingerprint);
	json_text(&j, "data", n->data);
	json_text(&j, "test", n->test);
	json_open(&j, "group_list", '[');
	for (uint32_t i = 0; i < n->groups; i++) {
		const mp_group_info *g = mp_net_get_group(net, i);
		json_open(&j, NULL, '{');
		json_text(&j, "name", g->name);
		json_count(&j, "size", g->units);
		json_text(&j, "function", g->function);
		json_text(&j, "role", g->role);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "block_list", '[');
	for (uint32_t i = 0; i < n->blocks; i++) {
		const mp_block_info *b = mp_net_get_block(net, i);
		json_open(&j, NULL, '{');
		json_text(&j, "from", b->from);
		json_text(&j, "to", b->to);
		json_text(&j, "kind", b->kind);
		json_count(&j, "connections", b->connections);
		json_bool(&j, "frozen", b->frozen);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	if (stage) {
		json_text(&j, "stage", stage);
		json_text(&j, "text", text);
	}
	json_end(&j);
}

static int stage_json(Session *s, const Args *a, const char *stage)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc = f ? stage_print(s, a, stage, f) : EXIT_FAILED;
	bool failed = !f || ferror(f);
	if ((f && fclose(f)) || failed) {
		complain("close other programs", "out of memory");
		rc = EXIT_FAILED;
	}
	if (!rc)
		net_json(s->net, stage, text);
	free(text);
	return rc;
}

static int show_summary(Session *s, const Args *a, const mp_net_info *n)
{
	show(stdout, "%s\n\n", n->name);
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "groups", n->groups },
		{ "units", n->units },
		{ "inputs", n->inputs },
		{ "outputs", n->outputs },
		{ "levels", n->levels },
		{ "blocks", n->blocks },
		{ "copies", n->copies },
		{ "connections", n->connections },
		{ "input connections", n->input_connections },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		show(stdout, "%-18s %12s\n", rows[i].name, format_count(rows[i].value).s);
	show(stdout, "\n");
	return stage_print(s, a, "net", stdout);
}

/* Sizes that are left open are those of the data that the file names. */
static int show_resolve(Session *s)
{
	const mp_net_info *net = mp_net_get_info(s->net);
	mp_data *data = NULL;
	int rc = EXIT_DONE;
	if (net->open && net->data)
		rc = session_data(&data, net->data, net->data_options);
	if (!rc)
		rc = session_resolve(s, data, NULL);
	mp_data_close(data);
	return rc;
}

static int show_steps(Session *s, const Args *a)
{
	int rc = session_net(s, a->operand[0]);
	if (!rc)
		rc = show_resolve(s);
	if (rc)
		return rc;
	const char *stage = args_text(a, "stage");
	const mp_net_info *info = mp_net_get_info(s->net);
	bool json = args_flag(a, "json");
	if (stage)
		return json ? stage_json(s, a, stage) : stage_print(s, a, stage, stdout);
	if (!json)
		return show_summary(s, a, info);
	net_json(s->net, NULL, NULL);
	return EXIT_DONE;
}

static int show_run(Args *a)
{
	Session s = { 0 };
	int rc = show_steps(&s, a);
	session_close(&s);
	return rc;
}

const Command show_command = {
	.name = "show",
	.operands = "FILE.topo",
	.least = 1,
	.most = 1,
	.summary = "the network as compiled",
	.about =
		"Prints the network of a topology file: a summary and the network itself, or one stage of its "
		"compilation: net (groups and connections; true is the bias unit), plan (the order of computation) or program "
		"(as the target executes it: on cpu for the data that the file names, or with --input as if inputs were dense "
		"or "
		"index lists).",
	.group = groups,
	.example = examples,
	.run = show_run,
};
