/* SPDX-License-Identifier: MIT */
/* export: a trained network as ONNX, C, JavaScript or arrays. */
#include <math.h>

#include "cli.h"
#include "microprop/export.h"

static const Option options[] = {
	{ "format", "NAME", "format of OUT, where its ending does not tell: onnx, c, js or npz" },
	{ "plain", NULL,
	  "ONNX: matrix products instead of sums in the order of predict: a smaller and faster graph, which microprop can "
	  "read again; outputs within some 1e-6 of predict, further off where weights are large" },
	{ "int8", "DATA", "C: weights in 8 bits, with ranges from these cases; prints what that costs" },
	{ "json", NULL, "print the result as one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ "Settling networks", NULL, " ticks intervals dt inputs-until " },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop export iris.safetensors iris.onnx", "for onnxruntime and other programs that read ONNX" },
	{ "microprop export iris.safetensors iris.c", "iris.c and iris.h: C99 without a library, the bits of predict" },
	{ "microprop export letters.safetensors letters.c --int8 make:letters", "weights in 8 bits" },
	{ "microprop export iris.safetensors iris.js", "an ES module for a page or node" },
	{ "microprop export net.topo net.safetensors net.npz", "weights as numpy arrays" },
	{ NULL, NULL },
};

static int calibration_open(Session *s, const Args *a, mp_data_options *reading)
{
	const char *path = args_text(a, "int8");
	const mp_net_info *net = mp_net_get_info(s->net);
	if (!path)
		return EXIT_DONE;
	session_reading_file(net->data_options, net->data, path, reading);
	reading->scale = NULL; /* the weights have theirs */
	return session_data_for(s, path, reading);
}

static void loss_json(Json *j, const mp_exported *e)
{
	json_open(j, "int8", '{');
	json_count(j, "cases", e->calibration_cases);
	json_number(j, "largest_difference", e->largest_difference);
	json_number(j, "rms_difference", e->rms);
	json_number(j, "changed", e->changed);
	json_number(j, "right", e->right);
	json_number(j, "right_int8", e->right_int8);
	json_count(j, "weight_bytes", e->bytes);
	json_count(j, "weight_bytes_int8", e->bytes_int8);
	json_close(j, '}');
}

static void export_show(const Args *a, const char *out, const mp_exported *e)
{
	Json j = { .f = stdout };
	if (args_flag(a, "json")) {
		json_open(&j, NULL, '{');
		json_text(&j, "written", out);
		json_text(&j, "second", e->second);
		json_text(&j, "format", e->format);
		json_count(&j, "inputs", e->inputs);
		json_count(&j, "outputs", e->outputs);
		if (e->calibration_cases)
			loss_json(&j, e);
		json_end(&j);
		return;
	}
	show(stdout, "wrote %s%s%s: %s, %s\n", out, e->second ? " and " : "", e->second ? e->second : "",
	     format_things(e->inputs, "input").s, format_things(e->outputs, "output").s);
	if (!e->calibration_cases)
		return;
	show(stdout, "8 bits: weights take %s, not %s; over %s\n", format_bytes(e->bytes_int8).s, format_bytes(e->bytes).s,
	     format_things(e->calibration_cases, "case").s);
	show(stdout, "outputs differ by %s (RMS), %s at most; %s of the best guesses change\n", format_real(e->rms).s,
	     format_real(e->largest_difference).s, format_share(e->changed).s);
	if (!isnan(e->right))
		show(stdout, "right %s, before %s\n", format_share(e->right_int8).s, format_share(e->right).s);
}

static int export_steps(Session *s, Args *a)
{
	mp_data_options reading = { .size = sizeof reading };
	const char *out = NULL;
	mp_export how = { .size = sizeof how, .format = args_text(a, "format"), .plain = args_flag(a, "plain") };
	mp_exported result = { .size = sizeof result };
	for (int i = 0; i + 1 < a->operands; i++)
		if (overwrite_check(a->operand[i], a->operand[a->operands - 1]))
			return EXIT_USAGE;
	if (a->operands == 2 && ends_with(a->operand[0], ".topo")) {
		complain("write: microprop export FILE.topo WEIGHTS OUT", "the weights for %s are missing", a->operand[0]);
		return EXIT_USAGE;
	}
	int rc = session_weights(s, a, &reading, &out);
	if (!rc && !out) {
		complain("write: microprop export MODEL OUT.onnx", "the file to write is missing");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = calibration_open(s, a, &reading);
	how.calibration = s->data;
	if (!rc)
		rc = after_run(s->run, mp_run_export_model(s->run, out, &how, &result));
	if (!rc)
		export_show(a, out, &result);
	return rc;
}

static int export_run(Args *a)
{
	Session s = { 0 };
	int rc = export_steps(&s, a);
	session_close(&s);
	return rc;
}

const Command export_command = {
	.name = "export",
	.operands = "MODEL OUT",
	.least = 2,
	.most = 3,
	.summary = "write a network as ONNX, C, JavaScript or arrays",
	.about =
		"Writes the network of MODEL, a file that train saved, or of FILE.topo WEIGHTS in its place, for other "
		"programs. "
		"The ending of OUT decides: .onnx (opset 13), .c (with a .h beside it; C99, no allocation, no library; the "
		"same "
		"bits as predict), .js (an ES module for pages and node), .npz (arrays of weights).\n\n"
		"A case is what predict takes: inputs before their scale; of a model trained on a table one number for each "
		"input column, a category being its index, NaN a missing value. Classes go along. A network with contexts "
		"becomes one step, with what it remembers as further inputs and outputs.",
	.group = groups,
	.example = examples,
	.run = export_run,
};
