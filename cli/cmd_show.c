/* SPDX-License-Identifier: MIT */
/* show: a topology file or a model comes in; the network as compiled, at any stage, and what a model knows of its data
 * go out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const Option options[] = {
	{ "stage", "net|plan|program", "print this stage of the compilation and nothing else" },
	{ "figure", "network|hinton|activations",
	  "draw the network, the weights of a block as a Hinton diagram, or activations over ticks, sequences or cases" },
	{ "json", NULL, "print counts, groups and blocks as one JSON object; with --stage its text, too" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ "Figures", figure_options, NULL },
	{ "Machine", NULL, " target input precision batch error rule " },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop show examples/xor.topo", "a summary and the network" },
	{ "microprop show iris.safetensors", "a model: columns, classes, metrics when it was saved, network" },
	{ "microprop show examples/xor.topo --stage program --target ref", "as the target executes it" },
	{ "microprop show examples/xor.topo --stage program --input index",
	  "the steps of an epoch on sparse inputs (CSR)" },
	{ "microprop show examples/letters.topo --stage program --target cuda --batch 512",
	  "shape, tiles, shared memory and steps of a kernel; no GPU is needed" },
	{ "microprop show net.topo --figure network --svg net.svg", "a drawing of groups and blocks" },
	{ "microprop show net.topo net.safetensors --figure hinton --block 'hidden->out' --svg weights.svg",
	  "a Hinton diagram of trained weights" },
	{ "microprop show net.topo net.safetensors words.npz --figure activations --group hidden --case 7 --svg heat.svg",
	  "activations over the ticks of a case, or over a sequence" },
	{ NULL, NULL },
};

/* On cpu it depends on the inputs: those that --input assumes, else those of the data that the topology names. On cuda
 * it depends on the batch, too, and so on that data. */
static int program_print(Session *s, const Args *a, FILE *f)
{
	const char *data = mp_net_get_info(s->net)->data;
	int rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	const char *target = mp_run_get(s->run, "target");
	bool cuda = strcmp(target, "cuda") == 0,
		 needs_data = cuda || (strcmp(target, "cpu") == 0 && !args_text(a, "input"));
	if (!rc && data && cuda && strncmp(data, "make:", 5) != 0 && access(data, R_OK)) {
		show(stderr, "note: %s is not there, so the kernel is not known\n", data);
		data = NULL;
	}
	if (!rc && data && needs_data)
		rc = session_data(&s->data, data, mp_net_get_info(s->net)->data_options);
	return rc ? rc : after_run(s->run, mp_run_print(s->run, s->data, show_lines, f));
}

static int stage_print(Session *s, const Args *a, const char *stage, FILE *f)
{
	if (strcmp(stage, "program") == 0)
		return program_print(s, a, f);
	return after_net(s->net, mp_net_print(s->net, stage, args_text(a, "target"), show_lines, f));
}

/* ---- models ---- */

enum { SHOWN_COLUMNS = 60, SHOWN_NAMES = 8 };

static void names_print(const char *const *name, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < SHOWN_NAMES; i++)
		show(stdout, "%s%s", i ? ", " : "", name[i]);
	if (count > SHOWN_NAMES)
		show(stdout, ", ... (%s)", format_count(count).s);
}

/* What a model knows besides its network: columns, task, classes, metrics when it was saved. */
static void model_print(Session *s)
{
	const mp_column *c;
	uint32_t classes = 0, i = 0;
	size_t width = sizeof "column";
	const char *const *names = mp_run_get_classes(s->run, &classes);
	const char *task = mp_run_get_task(s->run);
	if (task)
		show(stdout, "task: %s\n", task);
	if (names) {
		show(stdout, "%s", "classes: ");
		names_print(names, classes);
		show(stdout, "\n");
	}
	for (; i < SHOWN_COLUMNS && (c = mp_run_get_column(s->run, i)); i++) {
		size_t n = strlen(c->name);
		width = n > width ? n : width;
	}
	for (i = 0; (c = mp_run_get_column(s->run, i)); i++) {
		if (i == 0)
			show(stdout, "\n%-*s %-8s %-8s %5s  %s\n", (int)width, "column", "role", "kind", "units", "encoded as");
		if (i >= SHOWN_COLUMNS)
			continue;
		bool number = c->kind && !strcmp(c->kind, "number") && !c->plain;
		show(stdout, "%-*s %-8s %-8s %5u", (int)width, c->name, c->role, c->kind ? c->kind : "-", c->units);
		show(stdout, "%s", number || c->category_count || c->indicator ? "  " : "");
		if (number)
			show(stdout, "(value %c %.6g) * %.6g", c->offset < 0 ? '+' : '-', fabs(c->offset), c->factor);
		names_print(c->categories, c->category_count);
		show(stdout, "%s", c->indicator ? number || c->category_count ? ", or missing" : "value, or missing" : "");
		show(stdout, "\n");
	}
	if (i > SHOWN_COLUMNS)
		show(stdout, "... and %s; all of them with --json\n", format_things(i - SHOWN_COLUMNS, "column").s);
	int held_out;
	const mp_metrics *m = mp_run_get_kept_metrics(s->run, &held_out);
	if (m) {
		show(stdout, "\nwhen it was saved, on %s%s:\n", format_things(m->cases, "row").s,
		     held_out ? " held out" : ", those it was trained on");
		metrics_show(s->run, m);
	}
	if (task || names || m)
		show(stdout, "\n");
}

static void model_json(Json *j, Session *s)
{
	uint32_t classes = 0;
	int held_out;
	const char *const *names = mp_run_get_classes(s->run, &classes);
	json_text(j, "task", mp_run_get_task(s->run));
	json_open(j, "class_names", '[');
	for (uint32_t i = 0; names && i < classes; i++)
		json_text(j, NULL, names[i]);
	json_close(j, ']');
	columns_json(j, s->run);
	const mp_metrics *m = mp_run_get_kept_metrics(s->run, &held_out);
	if (!m) {
		json_text(j, "metrics", NULL);
		return;
	}
	json_open(j, "metrics", '{');
	json_count(j, "cases", m->cases);
	json_bool(j, "held_out", held_out);
	metrics_json(j, s->run, m);
	json_close(j, '}');
}

/* ---- all of it ---- */

/* text: of the stage, or both NULL. */
static void net_json(Session *s, const char *stage, const char *text)
{
	const mp_net *net = s->net;
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
		if (*g->settings)
			json_text(&j, "settings", g->settings);
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
		if (*b->settings)
			json_text(&j, "settings", b->settings);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	if (n->model && !stage)
		model_json(&j, s);
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
		net_json(s, stage, text);
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
	if (n->model)
		model_print(s);
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

/* Options that change the program and no other stage. */
static int program_options(const Args *a)
{
	static const char *const names[] = { "input", "precision", "batch", "error", "rule" };
	const char *stage = args_text(a, "stage");
	if (stage && strcmp(stage, "program") == 0)
		return EXIT_DONE;
	for (size_t i = 0; i < COUNT(names); i++)
		if (args_text(a, names[i])) {
			complain("add --stage program, or leave it out", "--%s changes the program, which is not shown", names[i]);
			return EXIT_USAGE;
		}
	return EXIT_DONE;
}

static int show_steps(Session *s, Args *a)
{
	int rc = table_refuse(a);
	if (!rc)
		rc = program_options(a);
	if (!rc)
		rc = session_net(s, a->operand[0], NULL);
	if (!rc)
		rc = show_resolve(s);
	if (rc)
		return rc;
	const char *stage = args_text(a, "stage");
	if (args_text(a, "figure"))
		return figure_show(a, s);
	if (a->operands > 1 || args_text(a, "svg")) {
		complain("write: microprop show FILE.topo WEIGHTS --figure hinton --svg FILE",
		         a->operands > 1 ? "weights and data are for --figure" : "--svg needs --figure");
		return EXIT_USAGE;
	}
	const mp_net_info *info = mp_net_get_info(s->net);
	bool json = args_flag(a, "json");
	if (stage)
		return json ? stage_json(s, a, stage) : stage_print(s, a, stage, stdout);
	if (info->model && ((rc = session_run(s)) || (rc = session_load(s, a->operand[0]))))
		return rc;
	if (!json)
		return show_summary(s, a, info);
	net_json(s, NULL, NULL);
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
	.operands = "FILE.topo | MODEL",
	.least = 1,
	.most = 3,
	.summary = "the network as compiled",
	.about =
		"Prints the network of a topology file: a summary and the network itself, or one stage of its "
		"compilation: net (groups and connections; true is the bias unit), plan (the order of computation) or program "
		"(as the target executes it: on cpu for the data that the file names, or with --input as if inputs were dense "
		"or index lists; on cuda for that data and --batch, with the predicted time of an update, for the GPU of this "
		"computer or, if there is none, an H200). Of a model, a file that train saved, also the columns of its table "
		"(role, kind, categories, "
		"scale), task, classes, and the metrics of the rows held out when it was saved.\n\n"
		"With --figure, draws the network, its weights (those of a model, or FILE.topo WEIGHTS; else those that "
		"training "
		"starts from), or activations (FILE.topo WEIGHTS [DATA], or MODEL [DATA]).",
	.group = groups,
	.example = examples,
	.run = show_run,
};
