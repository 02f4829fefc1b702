/* SPDX-License-Identifier: MIT */
/* import: files of older simulators to ours, and back. */
#include <string.h>

#include "cli.h"
#include "microprop/import.h"

static const Option options[] = {
	{ "format", "NAME",
	  "format of OLD, where its content does not tell: snns, fann, lens, tlearn or onnx for a network, or a format of "
	  "data" },
	{ "lossy", NULL, "leave out what cannot be carried over, with a note for each; else that is an error" },
	{ "to", "snns|fann", "format of a network written to OUT.net" },
	{ "groups", "LIST",
	  "examples of LENS without their network: input and target groups over which they count units, 'a:3,b:2>c:4'" },
	{ "partner", "FILE", "results of SNNS: the patterns they were made from; default: found by their name" },
	{ "json", NULL, "print the result as one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop import letters.net letters.safetensors", "a network of SNNS or FANN with its weights, as a model" },
	{ "microprop import letters.net letters.topo", "the network alone, as a topology file" },
	{ "microprop import letters.pat letters.npz", "patterns" },
	{ "microprop import past.in past.wt past.safetensors", "a network script of LENS and its weights" },
	{ "microprop import past.in past.ex past.npz", "examples of LENS, counted over the groups of their network" },
	{ "microprop import xor.cf xor.2000.wts xor.safetensors", "a network of tlearn and its weights" },
	{ "microprop import mlp.onnx mlp.safetensors", "a network of ONNX" },
	{ "microprop import mlp.topo torch.safetensors mlp.safetensors",
	  "a state_dict of PyTorch, whose tensors are matched by shape, in the order of their names" },
	{ "microprop import iris.safetensors iris.net --to fann", "a model of ours for libfann" },
	{ NULL, NULL },
};

enum { OUT_TOPOLOGY, OUT_MODEL, OUT_NETWORK, OUT_DATA };

static int kind_of(const char *path)
{
	return ends_with(path, ".topo")          ? OUT_TOPOLOGY
	       : ends_with(path, ".safetensors") ? OUT_MODEL
	       : ends_with(path, ".net")         ? OUT_NETWORK
	                                         : OUT_DATA;
}

/* The network, with weights of a file of LENS (NULL: none). */
static int import_net(Session *s, const Args *a, const char *path, const char *weights)
{
	mp_import how = { .size = sizeof how,
		              .format = kind_of(a->operand[a->operands - 1]) == OUT_DATA ? NULL : args_text(a, "format"),
		              .lossy = args_flag(a, "lossy"),
		              .weights = weights };
	if (!how.format && !how.lossy && !how.weights)
		return session_net(s, path, NULL);
	mp_status status = mp_net_import(&s->net, path, &how, NULL);
	return after_net(s->net, status);
}

static int import_network(Session *s, Args *a, int kind)
{
	const char *out = a->operand[a->operands - 1], *more = a->operands > 2 ? a->operand[1] : NULL;
	bool ours = more && ends_with(more, ".safetensors");
	int rc = import_net(s, a, a->operand[0], ours ? NULL : more);
	if (rc)
		return rc;
	const mp_net_info *net = mp_net_get_info(s->net);
	if (kind == OUT_TOPOLOGY) {
		if (net->weights)
			show(stderr, "note: %s holds no weights\n  write %.*s.safetensors to keep them\n", out,
			     (int)(strlen(out) - strlen(".topo")), out);
		return after_net(s->net, mp_net_save(s->net, out));
	}
	if (!net->model && !ours) {
		complain("write OUT.topo, or name the weights: microprop import NET WEIGHTS OUT", "%s holds no weights",
		         a->operand[0]);
		return EXIT_USAGE;
	}
	rc = session_run(s);
	if (!rc)
		rc = session_load(s, ours ? more : a->operand[0]);
	if (rc)
		return rc;
	return after_run(s->run,
	                 kind == OUT_MODEL ? mp_run_save(s->run, out) : mp_run_export(s->run, out, args_text(a, "to")));
}

static int import_data(Session *s, const Args *a)
{
	bool counted = a->operands > 2; /* over the groups of a network */
	const char *out = a->operand[a->operands - 1];
	mp_data_options how = { .size = sizeof how,
		                    .format = args_text(a, "format"),
		                    .groups = args_text(a, "groups"),
		                    .partner = args_text(a, "partner"),
		                    .lossy = args_flag(a, "lossy") };
	int rc = counted ? import_net(s, a, a->operand[0], NULL) : EXIT_DONE;
	if (!rc && counted)
		rc = session_run(s);
	if (!rc)
		rc = counted ? session_data_for(s, a->operand[1], &how) : session_data(&s->data, a->operand[0], &how);
	return rc ? rc : after_data(s->data, mp_data_save(s->data, out));
}

static int import_show(const Session *s, const Args *a)
{
	const char *out = a->operand[a->operands - 1];
	const mp_net_info *net = s->net ? mp_net_get_info(s->net) : NULL;
	const mp_data_info *data = NULL;
	Json j = { .f = stdout };
	int rc = s->data ? after_data(s->data, mp_data_get_info(s->data, &data)) : EXIT_DONE;
	if (rc)
		return rc;
	if (!args_flag(a, "json")) {
		if (data)
			show(stdout, "wrote %s: %s, %s, %s\n", out, format_things(data->cases, "case").s,
			     format_things(data->inputs, "input").s, format_things(data->targets, "target").s);
		else if (net)
			show(stdout, "wrote %s: %s, %s, %s\n", out, format_things(net->groups, "group").s,
			     format_things(net->units, "unit").s, format_things(net->connections, "connection").s);
		return EXIT_DONE;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "kind", data ? "data" : "network");
	json_text(&j, "written", out);
	if (data) {
		json_count(&j, "cases", data->cases);
		json_count(&j, "inputs", data->inputs);
		json_count(&j, "targets", data->targets);
		json_count(&j, "sequences", data->sequences);
	} else if (net) {
		json_count(&j, "groups", net->groups);
		json_count(&j, "units", net->units);
		json_count(&j, "inputs", net->inputs);
		json_count(&j, "outputs", net->outputs);
		json_count(&j, "connections", net->connections);
		json_bool(&j, "weights", net->model);
	}
	json_end(&j);
	return EXIT_DONE;
}

static int import_run(Args *a)
{
	Session s = { 0 };
	int kind = kind_of(a->operand[a->operands - 1]);
	int rc = EXIT_DONE;
	for (int i = 0; !rc && i + 1 < a->operands; i++)
		rc = overwrite_check(a->operand[i], a->operand[a->operands - 1]);
	if (!rc)
		rc = kind == OUT_DATA ? import_data(&s, a) : import_network(&s, a, kind);
	if (!rc)
		rc = import_show(&s, a);
	session_close(&s);
	return rc;
}

const Command import_command = {
	.name = "import",
	.operands = "OLD [OLD2] OUT",
	.least = 2,
	.most = 3,
	.summary = "convert files of SNNS, FANN, LENS, tlearn, ONNX",
	.about =
		"Reads a file of another program and writes OUT: a network as .topo (the network alone) or .safetensors "
		"(with "
		"its weights, a model for test and predict), data as .npz, .csv or any other format that data writes. OLD is a "
		"network of SNNS (.net), FANN (.net), LENS (a .in script), tlearn (.cf) or ONNX (Gemm, MatMul, Add, Concat and "
		"activations), or data: patterns and results of "
		"SNNS (.pat, "
		".res), "
		"data of FANN and tlearn (.data), examples of LENS (.ex, .bex). What it is follows from its content. OLD2 is a "
		"file of "
		"weights "
		"(.wt of LENS, .wts of tlearn, tensors of PyTorch for a topology of ours), or examples that count units over "
		"the groups of the network OLD.\n\n"
		"What cannot be carried over is named with its line, and nothing is written unless --lossy is given. The other "
		"way, "
		"OUT.net is written with --to snns or --to fann, and data as .pat, .data or .ex.\n\n"
		"train, test and predict read these files as they are; training starts from the weights of the file.",
	.group = groups,
	.example = examples,
	.run = import_run,
};
