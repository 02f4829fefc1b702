/* SPDX-License-Identifier: MIT */
/* Networks of SNNS give the outputs that they gave there: compared with an evaluation of the file that shares no code
 * with the reader.  MICROPROP_OLD_FILES names a folder with SNNS's own examples in snns/, which are then tried too. */
#include "test.h"

#include <ctype.h>
#include <math.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snns_networks_give_their_outputs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
