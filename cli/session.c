/* SPDX-License-Identifier: MIT */
/* What commands open: a net, data, a run; messages of the library go to stderr.  session_close closes all that is
 * open. */
#include <string.h>

#include "cli.h"
#include "microprop/import.h"

const Option data_reading[] = {
	{ "format", "npz|npy|idx|csv|text|nettalk|snns|snns-results|fann|lens|lens-binary|tlearn",
	  "format of the data; default: detected from name and content" },
	{ "inputs", "COLUMNS", "csv: columns that are inputs, such as a,b,3:7; default: all that are not targets" },
	{ "targets", "COLUMNS", "csv: columns that are targets; default: the last" },
	{ "labels", "COLUMNS",
	  "csv: columns whose text is a class, encoded one-hot; default: targets that are not numbers" },
	{ "sequence", "COLUMN", "csv: column that names the sequence a case belongs to" },
	{ "weight", "COLUMN", "csv: column of case weights" },
	{ "names", "COLUMN", "csv: column of case names" },
	{ "partner", "FILE",
	  "npy, idx, tlearn: file with the targets; snns-results: the patterns; default: found by its name" },
	{ "groups", "LIST",
	  "lens, tlearn: groups over which units are counted, 'a:3,b:2>c:4'; default: those of the network" },
	{ "fold", "COLUMN", "tables: column that says which fold of cross-validation a row is in" },
	{ "category", "COLUMNS", "tables: columns whose values are categories, also if they are numbers" },
	{ "first", "N", "take only the first N rows (nettalk: words)" },
	{ NULL, NULL, NULL },
};

static int status_exit(mp_status status, const char *messages)
{
	static const int exits[] = {
		[MP_OK] = EXIT_DONE,        [MP_FAILED] = EXIT_FAILED,    [MP_BAD_INPUT] = EXIT_USAGE,
		[MP_STOPPED] = EXIT_FAILED, [MP_NO_MEMORY] = EXIT_FAILED,
	};
	size_t n = strlen(messages);
	if (n) {
		fflush(stdout);
		show_lines(stderr, messages, n);
		if (messages[n - 1] != '\n')
			show(stderr, "\n");
	}
	return exits[status];
}

int after_net(const mp_net *net, mp_status status) { return status_exit(status, mp_net_messages(net)); }

int after_data(const mp_data *data, mp_status status) { return status_exit(status, mp_data_messages(data)); }

int after_run(const mp_run *run, mp_status status) { return status_exit(status, mp_run_messages(run)); }

int after_step(const mp_run *run, mp_status status) { return status == MP_OK ? EXIT_DONE : after_run(run, status); }

int after_gf11(const mp_gf11 *g, mp_status status) { return status_exit(status, mp_gf11_get_messages(g)); }

int after_tool(const mp_tool *tool, mp_status status) { return status_exit(status, mp_tool_messages(tool)); }

/* Topology files of examples/, in the program. */
static const struct {
	const char *name;
	const unsigned char *text;
} example_files[] = {
#define PARAM_FILE(name, ...) { name, (const unsigned char[]){ __VA_ARGS__, 0 } },
#include "topos.def"
#undef PARAM_FILE
};

bool is_example(const char *path) { return !strncmp(path, "example:", 8); }

static int example_net(Session *s, const char *path)
{
	const char *name = path + strlen("example:");
	char list[500] = "the examples are";
	Guess guess = { .word = name };
	for (size_t i = 0; i < COUNT(example_files); i++) {
		size_t n = strlen(list);
		snprintf(list + n, sizeof list - n, "%s %s", i ? "," : "", example_files[i].name);
		guess_try(&guess, example_files[i].name);
		if (strcmp(name, example_files[i].name))
			continue;
		mp_status status = mp_net_parse(&s->net, (const char *)example_files[i].text, path, NULL);
		return after_net(s->net, status);
	}
	complain(list, "there is no %s%s%s%s", path, guess.name ? "; did you mean example:" : "",
	         guess.name ? guess.name : "", guess.name ? "?" : "");
	return EXIT_USAGE;
}

bool is_old_weights(const char *path) { return path && (ends_with(path, ".wt") || ends_with(path, ".wts")); }

int session_net(Session *s, const char *path, const char *weights)
{
	if (is_example(path))
		return example_net(s, path);
	mp_import how = { .size = sizeof how, .weights = weights };
	waiting_start(path);
	mp_status status =
		is_old_weights(weights) ? mp_net_import(&s->net, path, &how, NULL) : mp_net_open(&s->net, path, NULL);
	waiting_end();
	return after_net(s->net, status);
}

int session_data(mp_data **data, const char *path, const mp_data_options *options)
{
	waiting_start(path);
	mp_status status = mp_data_open(data, path, options, NULL);
	waiting_end();
	return after_data(*data, status);
}

int session_data_for(Session *s, const char *path, const mp_data_options *options)
{
	waiting_start(path);
	mp_status status = mp_data_open_for(&s->data, path, s->run, options, NULL);
	waiting_end();
	return after_data(s->data, status);
}

int session_run(Session *s)
{
	mp_status status = mp_run_new(&s->run, s->net, NULL);
	return after_run(s->run, status);
}

int session_load(Session *s, const char *path)
{
	return mp_net_get_info(s->net)->weights ? EXIT_DONE : after_run(s->run, mp_run_load(s->run, path));
}

int session_set(Session *s, const Args *a)
{
	int rc = EXIT_DONE;
	for (size_t i = 0; i < a->givens; i++) { /* all of them: several errors are reported in one go */
		const Given *g = &a->given[i];
		if (!g->library)
			continue;
		int one = after_run(s->run, mp_run_set(s->run, g->name, g->value));
		rc = one > rc ? one : rc;
	}
	return rc;
}

bool session_reading(const Args *a, bool main_file, mp_data_options *o)
{
	*o = (mp_data_options){
		.size = sizeof *o,
		.format = args_text(a, "format"),
		.inputs = args_text(a, "inputs"),
		.targets = args_text(a, "targets"),
		.labels = args_text(a, "labels"),
		.sequence = args_text(a, "sequence"),
		.weight = args_text(a, "weight"),
		.names = args_text(a, "names"),
		.category = args_text(a, "category"),
		.fold = args_text(a, "fold"),
		.groups = args_text(a, "groups"),
	};
	if (!main_file) /* test data: the same columns, but all rows of its own files */
		return true;
	o->partner = args_text(a, "partner");
	o->words = args_text(a, "words-file");
	return args_count(a, "first", &o->first);
}

/* The extension of a file's name; "" if it has none. */
static const char *extension(const char *path)
{
	const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
	return dot && (!slash || dot > slash) ? dot : "";
}

void session_reading_file(const mp_data_options *file, const char *named, const char *path, mp_data_options *o)
{
	bool same = named && !strcmp(named, path);
	if (!named || (!same && strcmp(extension(named), extension(path))))
		return;
	const char **const to[] = { &o->inputs, &o->targets, &o->labels, &o->sequence, &o->weight, &o->names, &o->scale };
	const char *const from[] = { file->inputs, file->targets, file->labels, file->sequence,
		                         file->weight, file->names,   file->scale };
	for (size_t i = 0; i < COUNT(to); i++)
		if (!*to[i])
			*to[i] = from[i];
	if (!same)
		return;
	o->format = o->format ? o->format : file->format;
	o->partner = o->partner ? o->partner : file->partner;
	o->first = o->first ? o->first : file->first;
}

int session_resolve(Session *s, const mp_data *data, const char *weights)
{
	return mp_net_get_info(s->net)->open ? after_net(s->net, mp_net_resolve(s->net, data, weights)) : EXIT_DONE;
}

int session_weights(Session *s, const Args *a, mp_data_options *reading, const char **data)
{
	int rc = table_refuse(a);
	if (!rc)
		rc = session_net(s, a->operand[0], a->operands > 1 ? a->operand[1] : NULL);
	if (rc)
		return rc;
	bool model = mp_net_get_info(s->net)->model && !(a->operands > 1 && is_old_weights(a->operand[1]));
	int after = model ? 1 : 2;
	if (a->operands < after || a->operands > after + 1) {
		const char *cases = args_text(a, "cases"), *name = a->command->name;
		char usage[160];
		snprintf(usage, sizeof usage, "write: microprop %s MODEL DATA, or: microprop %s FILE.topo WEIGHTS DATA", name,
		         name);
		complain(cases && !*cases ? "write --cases=FILE if the cases go to a file" : usage,
		         model ? "%s is a model: only data can follow" : "the weights for %s are missing", a->operand[0]);
		return EXIT_USAGE;
	}
	*data = a->operands > after ? a->operand[after] : NULL;
	rc = session_resolve(s, NULL, a->operand[after - 1]);
	if (!rc)
		rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	if (!rc)
		rc = session_load(s, a->operand[after - 1]);
	if (!rc)
		reading->classes = mp_run_get_classes(s->run, &reading->class_count);
	return rc;
}

/* Only data with targets can be measured. */
static int cases_count(Session *s, uint64_t *cases)
{
	const mp_data_info *info;
	const mp_column *c;
	int rc = after_data(s->data, mp_data_get_info(s->data, &info));
	if (rc)
		return rc;
	*cases = info->cases;
	uint32_t i = 0;
	while ((c = mp_run_get_column(s->run, i)) && strcmp(c->role, "target"))
		i++;
	if (!info->targets)
		complain("give data with targets, or see its outputs with: microprop predict",
		         c ? "%s has no targets to measure by (the network was trained on '%s')"
		           : "%s has no targets to measure by",
		         info->name, c ? c->name : "");
	return info->targets ? EXIT_DONE : EXIT_USAGE;
}

int session_cases(Session *s, const Args *a, const char *data, mp_data_options *reading, uint64_t *cases)
{
	const mp_net_info *net = mp_net_get_info(s->net);
	data = data ? data : net->test ? net->test : net->data;
	if (!data) {
		char usage[100];
		snprintf(usage, sizeof usage, "write: microprop %s FILE.topo WEIGHTS DATA", a->command->name);
		complain(usage, "%s names no data to test on", a->operand[0]);
		return EXIT_USAGE;
	}
	if (input_outputs_check(a, data))
		return EXIT_USAGE;
	session_reading_file(net->test_options, net->test, data, reading);
	session_reading_file(net->data_options, net->data, data, reading);
	reading->scale = NULL; /* the weights have theirs */
	int rc = session_data_for(s, data, reading);
	return rc ? rc : cases_count(s, cases);
}

void session_close(Session *s)
{
	mp_run_close(s->run);
	mp_data_close(s->test);
	mp_data_close(s->data);
	mp_net_close(s->net);
	*s = (Session){ 0 };
}
