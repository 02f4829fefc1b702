/* SPDX-License-Identifier: MIT */
/* show --figure: the network, the weights of a block, activations over time; as SVG, or drawn with characters. */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

const Option figure_options[] = {
	{ "svg", "FILE", "draw into this file; without it figures are drawn with characters, where they can be" },
	{ "block", "'A->B'",
	  "hinton: the weights from group A to group B, or of some units, A[0:9]->B; A may be true; default the first "
	  "block" },
	{ "group", "NAME", "activations: the group; default the first hidden one" },
	{ "case", "N", "activations: the case of a settling network, the sequence, or the first of some cases; default 1" },
	{ NULL, NULL, NULL },
};

static const char *const figures[] = { "network", "hinton", "activations" };

/* Weights: of the model, or of the second operand; without one those that training would start from. */
static int weights_load(Args *a, Session *s, bool model)
{
	const char *weights = model ? a->operand[0] : a->operands > 1 ? a->operand[1] : NULL;
	int rc = weights ? session_resolve(s, NULL, weights) : EXIT_DONE;
	if (!rc)
		rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	return rc || !weights ? rc : after_run(s->run, mp_run_load(s->run, weights));
}

/* Targets are not used: what the data has fits, or not. */
static int data_load(Args *a, Session *s, bool model)
{
	int at = model ? 1 : 2;
	mp_data_options reading = { .size = sizeof reading };
	const mp_net_info *net = mp_net_get_info(s->net);
	const char *path = a->operands > at ? a->operand[at] : net->test ? net->test : net->data;
	reading.classes = mp_run_get_classes(s->run, &reading.class_count);
	if (!path)
		return EXIT_DONE;
	session_reading_file(net->test_options, net->test, path, &reading);
	session_reading_file(net->data_options, net->data, path, &reading);
	reading.scale = NULL;
	return session_data_for(s, path, &reading);
}

int figure_show(Args *a, Session *s)
{
	const char *kind = args_text(a, "figure"), *svg = args_text(a, "svg");
	bool model = mp_net_get_info(s->net)->model, known = false;
	for (size_t i = 0; i < COUNT(figures); i++)
		known |= !strcmp(kind, figures[i]);
	if (!known) {
		complain("it is network, hinton or activations", "there is no figure '%s'", kind);
		return EXIT_USAGE;
	}
	int most = strcmp(kind, "activations") ? 2 : 3;
	if (a->operands > most - model) {
		complain("write: microprop show FILE.topo WEIGHTS --figure hinton",
		         "'%s' is one operand too many for figure %s", a->operand[a->operands - 1], kind);
		return EXIT_USAGE;
	}
	int rc = output_check(a, "svg");
	if (!rc)
		rc = weights_load(a, s, model);
	if (!rc && most == 3)
		rc = data_load(a, s, model);
	TextOut text = { 0 };
	if (!rc)
		rc = study_call(a, s, kind, figure_options, text_append, &text);
	if (!rc && args_flag(a, "json")) {
		Json j = { .f = stdout };
		json_open(&j, NULL, '{');
		json_text(&j, "figure", kind);
		json_text(&j, "svg", svg);
		json_text(&j, "text", svg ? NULL : text.text ? text.text : "");
		json_end(&j);
	} else if (!rc && text.text) {
		show_lines(stdout, text.text, text.len);
	}
	free(text.text);
	return rc;
}
