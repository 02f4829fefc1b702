/* SPDX-License-Identifier: MIT */
/* Networks of SNNS, tlearn and FANN give the outputs that they gave there: compared with an evaluation of the file that
 * shares no code with the reader, and with libfann.  MICROPROP_OLD_FILES names a folder with SNNS's own examples in
 * snns/, which are then tried too. */
#include "test.h"

#include <ctype.h>
#include <math.h>
#include <unistd.h>

#ifdef HAVE_FANN
#include <fann.h>
#endif

#include "api.h"
#include "microprop/import.h"

enum { UNITS = 200, LINKS = 4000, CASES = 200 };

/* ---- SNNS, evaluated by hand -------------------------------------------------------------------- */

typedef struct HandUnit {
	char kind[4], fn[40];
	double bias, value;
	bool known;
} HandUnit;
typedef struct Hand {
	HandUnit unit[UNITS];
	int units;
	int from[LINKS], to[LINKS], links;
	double weight[LINKS];
} Hand;

static char *next_cell(char **row)
{
	char *start = *row, *bar = start ? strchr(start, '|') : NULL;
	if (!start)
		return "";
	if (bar)
		*bar = '\0';
	*row = bar ? bar + 1 : NULL;
	while (isspace((unsigned char)*start))
		start++;
	for (char *end = start + strlen(start); end > start && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return start;
}

static void hand_unit(Hand *h, char *row)
{
	HandUnit *u = &h->unit[atoi(next_cell(&row))];
	bool tanhs = *next_cell(&row) != '\0'; /* the one type of our file */
	next_cell(&row);
	next_cell(&row);
	const char *bias = next_cell(&row);
	u->bias = *bias ? atof(bias) : 0.25; /* the default of our file */
	snprintf(u->kind, sizeof u->kind, "%s", next_cell(&row));
	if (!*u->kind)
		strcpy(u->kind, "h");
	next_cell(&row);
	snprintf(u->fn, sizeof u->fn, "%s", next_cell(&row));
	if (!*u->fn)
		strcpy(u->fn, tanhs ? "Act_TanH" : "Act_Logistic");
	h->units++;
}

static void hand_read(Hand *h, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[1000];
	int section = 0, target = 0;
	assert_non_null(f);
	memset(h, 0, sizeof *h);
	while (fgets(line, sizeof line, f)) {
		if (strstr(line, "section"))
			section = strstr(line, "unit definition") ? 1 : strstr(line, "connection definition") ? 2 : 0;
		char *p = line;
		while (isspace((unsigned char)*p))
			p++;
		if (!isdigit((unsigned char)*p))
			continue;
		if (section == 1)
			hand_unit(h, p);
		if (section != 2)
			continue;
		if (strchr(line, '|')) {
			target = atoi(p);
			p = strrchr(line, '|') + 1;
		}
		for (int from, n; sscanf(p, " %d :%n", &from, &n) == 1;) {
			char *end;
			h->from[h->links] = from;
			h->to[h->links] = target;
			h->weight[h->links++] = strtod(p + n, &end);
			p = end + strspn(end, " ,");
		}
	}
	fclose(f);
}

static double hand_value(Hand *h, int u)
{
	HandUnit *unit = &h->unit[u];
	if (unit->known)
		return unit->value;
	double net = 0;
	for (int i = 0; i < h->links; i++)
		if (h->to[i] == u)
			net += h->weight[i] * hand_value(h, h->from[i]);
	unit->known = true;
	return unit->value = !strcmp(unit->fn, "Act_Identity")           ? net
	                     : !strcmp(unit->fn, "Act_IdentityPlusBias") ? net + unit->bias
	                     : !strcmp(unit->fn, "Act_TanH")             ? tanh(net + unit->bias)
	                     : !strcmp(unit->fn, "Act_TanH_Xdiv2")       ? tanh((net + unit->bias) / 2)
	                                                                 : 1 / (1 + exp(-net - unit->bias));
}

/* The outputs of one case; contexts then take their next values. */
static void hand_case(Hand *h, const float *x, double *out)
{
	double next[UNITS];
	for (int u = 1; u <= h->units; u++) {
		h->unit[u].known = h->unit[u].kind[0] == 'i' || h->unit[u].kind[0] == 's';
		if (h->unit[u].kind[0] == 'i')
			h->unit[u].value = *x++;
	}
	for (int u = 1; u <= h->units; u++)
		if (h->unit[u].kind[0] == 'o')
			*out++ = hand_value(h, u);
	for (int u = 1; u <= h->units; u++) {
		next[u] = 0;
		for (int i = 0; h->unit[u].kind[0] == 's' && i < h->links; i++)
			if (h->to[i] == u)
				next[u] += h->weight[i] * hand_value(h, h->from[i]);
	}
	for (int u = 1; u <= h->units; u++)
		if (h->unit[u].kind[0] == 's')
			h->unit[u].value = next[u];
}

static void check_snns(const char *network, const char *patterns)
{
	static Hand h;
	mp_net *net;
	mp_data *data;
	mp_run *run;
	hand_read(&h, network);
	for (int u = 1; u <= h.units; u++)
		h.unit[u].value = h.unit[u].bias; /* contexts start there */
	assert_int_equal(mp_net_open(&net, network, NULL), MP_OK);
	assert_int_equal(mp_data_open(&data, patterns, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	const mp_net_info *info = mp_net_get_info(net);
	const mp_data_info *cases;
	assert_int_equal(mp_data_get_info(data, &cases), MP_OK);
	assert_true(info->weights && info->model && cases->cases <= CASES);
	double *ours = calloc(cases->cases * info->outputs, sizeof *ours), *theirs = calloc(info->outputs, sizeof *theirs);
	float *x = calloc(info->inputs, sizeof *x);
	assert_int_equal(mp_run_test(run, data, NULL, ours), MP_OK);
	for (uint64_t i = 0; i < cases->cases; i++) {
		mp_data_get_case(data, i, x, NULL);
		hand_case(&h, x, theirs);
		for (uint32_t k = 0; k < info->outputs; k++)
			assert_true(fabs(ours[i * info->outputs + k] - theirs[k]) < 2e-6);
	}
	free(ours);
	free(theirs);
	free(x);
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

#define FILES SOURCE_DIR "/test/legacy/files/"

static void snns_networks_give_their_outputs(void **state)
{
	(void)state;
	static const char *const pairs[][2] = { { "encoder", "encoder" }, { "letters", "letters" },
		                                    { "xor", "xor" },         { "eight_elman", "eight_016" },
		                                    { "watch", NULL },        { "letseq_elman", "letseq_test" } };
	const char *folder = getenv("MICROPROP_OLD_FILES");
	check_snns(FILES "layers.net", FILES "layers.pat");
	check_snns(FILES "elman.net", FILES "elman.pat");
	for (size_t i = 0; folder && i < COUNT(pairs); i++) {
		char network[500], patterns[500];
		snprintf(network, sizeof network, "%s/snns/%s.net", folder, pairs[i][0]);
		snprintf(patterns, sizeof patterns, "%s/snns/%s.pat", folder, pairs[i][1] ? pairs[i][1] : "");
		if (pairs[i][1])
			check_snns(network, patterns);
	}
}

/* ---- tlearn, evaluated by hand ------------------------------------------------------------------ */

/* Nodes one after the other, over all weights of the file: what is not connected has weight 0. */
static void tlearn_networks_give_their_outputs(void **state)
{
	(void)state;
	enum { NODES = 12, INPUTS = 3, ALL = 1 + INPUTS + NODES, OUTPUTS = 2, STEPS = 9, RESET = 5 };
	static double weight[NODES][ALL], z[ALL];
	char line[100];
	int node = -1, k = 0;
	FILE *f = fopen(FILES "srn.wts", "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, "# TO NODE", 9) == 0) {
			node = atoi(line + 9) - 1;
			k = 0;
		} else if (node >= 0) {
			weight[node][k++] = atof(line);
		}
	}
	fclose(f);
	mp_net *net;
	mp_data *data;
	mp_run *run;
	mp_import how = { .size = sizeof how, .weights = FILES "srn.wts" };
	double ours[STEPS * OUTPUTS];
	float x[INPUTS];
	assert_int_equal(mp_net_import(&net, FILES "srn.cf", &how, NULL), MP_OK);
	assert_int_equal(mp_data_open(&data, FILES "srn.data", NULL, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_test(run, data, NULL, ours), MP_OK);
	for (int t = 0; t < STEPS; t++) {
		for (int i = 0; (t == 0 || t == RESET) && i < ALL; i++)
			z[i] = i == 0;
		mp_data_get_case(data, (uint64_t)t, x, NULL);
		for (int i = 0; i < INPUTS; i++)
			z[1 + i] = (double)x[i];
		for (int i = 0; i < NODES; i++) {
			double sum = 0;
			for (int j = 0; j < ALL; j++)
				sum += weight[i][j] * z[j];
			bool linear = i >= 7 && i <= 10, bipolar = i == 4 || i == 11;
			double s = 1 / (1 + exp(-sum));
			z[1 + INPUTS + i] = linear ? sum : bipolar ? 2 * s - 1 : s;
		}
		for (int i = 0; i < OUTPUTS; i++)
			assert_true(fabs(ours[t * OUTPUTS + i] - z[1 + INPUTS + 5 + i]) < 2e-6);
	}
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- FANN --------------------------------------------------------------------------------------- */

#ifdef HAVE_FANN
static double *outputs_of(const char *network, const float *x, uint32_t cases, uint32_t inputs, uint32_t outputs)
{
	mp_net *net;
	mp_data *data;
	mp_run *run;
	double *out = calloc((size_t)cases * outputs, sizeof *out);
	mp_status opened = mp_net_open(&net, network, NULL);
	if (opened != MP_OK)
		print_message("%s", mp_net_messages(net));
	assert_int_equal(opened, MP_OK);
	assert_int_equal(mp_data_new(&data, cases, inputs, 0, x, NULL, NULL, 0, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_test(run, data, NULL, out), MP_OK);
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
	return out;
}

static void check_same(struct fann *a, const char *path, double within)
{
	enum { TRIED = 20 };
	uint32_t inputs = fann_get_num_input(a), outputs = fann_get_num_output(a);
	float *x = calloc((size_t)TRIED * inputs, sizeof *x);
	for (uint32_t i = 0; i < TRIED * inputs; i++)
		x[i] = (float)(i * 7 % 13) / 6 - 1;
	double *ours = outputs_of(path, x, TRIED, inputs, outputs);
	for (uint32_t i = 0; i < TRIED; i++) {
		const fann_type *theirs = fann_run(a, x + (size_t)i * inputs);
		for (uint32_t k = 0; k < outputs; k++)
			assert_true(fabs(ours[i * outputs + k] - (double)theirs[k]) < within);
	}
	free(x);
	free(ours);
}

/* Files of libfann give its outputs, and it reads ours. */
static void fann_networks_give_their_outputs(void **state)
{
	(void)state;
	static const unsigned functions[] = { FANN_SIGMOID_STEPWISE,           FANN_SIGMOID,  FANN_SIGMOID_SYMMETRIC,
		                                  FANN_SIGMOID_SYMMETRIC_STEPWISE, FANN_GAUSSIAN, FANN_ELLIOT,
		                                  FANN_ELLIOT_SYMMETRIC,           FANN_LINEAR };
	char from[] = "/tmp/microprop-fann-XXXXXX", back[] = "/tmp/microprop-fann-XXXXXX";
	close(mkstemp(from));
	close(mkstemp(back));
	for (unsigned i = 0; i < 3 * COUNT(functions); i++) {
		struct fann *a = i % 3 == 0   ? fann_create_standard(4, 3, 5, 4, 2)
		                 : i % 3 == 1 ? fann_create_shortcut(4, 3, 4, 3, 2)
		                              : fann_create_sparse(0.6f, 3, 3, 6, 2);
		unsigned fn = functions[i / 3], links = fann_get_total_connections(a);
		struct fann_connection *link = calloc(links, sizeof *link);
		fann_get_connection_array(a, link);
		for (unsigned k = 0; k < links; k++)
			link[k].weight = (fann_type)((k * 37 + i * 11) % 101) / 50 - 1;
		fann_set_weight_array(a, link, links);
		free(link);
		fann_set_activation_function_hidden(a, fn);
		fann_set_activation_function_output(a, fn);
		fann_set_activation_steepness_hidden(a, 0.5f + 0.1f * (float)(i % 4));
		fann_save(a, from);
		check_same(a, from, 1e-6);

		mp_net *net;
		mp_run *run;
		assert_int_equal(mp_net_open(&net, from, NULL), MP_OK);
		assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
		assert_int_equal(mp_run_export(run, back, "fann"), MP_OK);
		mp_run_close(run);
		mp_net_close(net);
		struct fann *b = fann_create_from_file(back);
		assert_non_null(b);
		check_same(b, from, 1e-6);
		fann_destroy(b);
		fann_destroy(a);
	}
	unlink(from);
	unlink(back);
}
#else
static void fann_networks_give_their_outputs(void **state)
{
	(void)state;
	skip();
}
#endif

/* ---- written for SNNS --------------------------------------------------------------------------- */

static void written_networks_are_the_same(void **state)
{
	(void)state;
	static const char *const names[] = { "layers", "elman" };
	char back[] = "/tmp/microprop-snns-XXXXXX";
	close(mkstemp(back));
	for (size_t i = 0; i < COUNT(names); i++) {
		char network[500], patterns[500];
		mp_net *net;
		mp_run *run;
		snprintf(network, sizeof network, FILES "%s.net", names[i]);
		snprintf(patterns, sizeof patterns, FILES "%s.pat", names[i]);
		assert_int_equal(mp_net_open(&net, network, NULL), MP_OK);
		assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
		assert_int_equal(mp_run_export(run, back, "snns"), MP_OK);
		mp_run_close(run);
		mp_net_close(net);
		check_snns(back, patterns);
	}
	unlink(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snns_networks_give_their_outputs),
		cmocka_unit_test(tlearn_networks_give_their_outputs),
		cmocka_unit_test(fann_networks_give_their_outputs),
		cmocka_unit_test(written_networks_are_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
