/* SPDX-License-Identifier: MIT */
/* The network as text: a topology file in canonical form.  Reading it gives the same network, printing that the
 * same text.  Defaults are left out; derived values (links, counts, fingerprint) are comments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "net.h"

/* Of a float, as the same float. */
void exact_print(Buf *b, double v, bool is_float)
{
	char s[40];
	double again = NAN;
	float single;
	for (int digits = 6; digits <= 17 && again != v; digits++) {
		int n = snprintf(s, sizeof s, "%.*g", digits, v);
		for (int i = 0; i < n; i++) /* some locales write 0,5 */
			if (s[i] == ',')
				s[i] = '.';
		again = number_double(s, s + n);
		if (is_float && number_read(s, s + n, &single))
			again = (double)single;
	}
	buf_puts(b, s);
}

static void float_print(Buf *b, float v) { exact_print(b, (double)v, true); }

/* The group that is copied into a context. */
static const Group *copy_source(const Net *net, int32_t context)
{
	const Copy *c = net->copy;
	while (c->to_group != context)
		c++;
	return &net->group[c->from_group];
}

/* In a statement the last tick of a group is the group. */
static void end_print(const Net *net, const Block *b, bool to, bool statement, Buf *out)
{
	int32_t group = to ? b->to_group : b->from_group;
	uint32_t first = to ? b->to_first : b->from_first, count = to ? b->to_count : b->from_count;
	if (group < 0) {
		buf_puts(out, "true");
		return;
	}
	const Group *g = &net->group[group];
	if (g->before && statement)
		g = copy_source(net, group);
	buf_puts(out, g->name);
	if (count == 1 && (b->kind == LINK_SINGLE || g->size > 1))
		buf_printf(out, "[%u]", first);
	else if (count < g->size)
		buf_printf(out, "[%u:%u]", first, first + count - 1);
}

void block_print_end(const Net *net, const Block *b, bool to, Buf *out) { end_print(net, b, to, false, out); }

void block_state_end(const Net *net, const Block *b, bool to, Buf *out) { end_print(net, b, to, true, out); }

static void group_print(const Group *g, int width, Buf *out)
{
	bool computes = g->role == ROLE_HIDDEN || g->role == ROLE_OUTPUT;
	buf_printf(out, "group %-*s %u", width, g->name, g->size);
	if (computes)
		buf_printf(out, " %s", unit_fns[g->fn].name);
	if (g->role != ROLE_HIDDEN)
		buf_printf(out, " %s", role_names[g->role]);
	if (g->integrate)
		buf_printf(out, " integrate %s", integrate_names[g->integrate]);
	if (g->dt_factor != 1) {
		buf_puts(out, " dt ");
		exact_print(out, g->dt_factor, false);
	}
	if (g->start_stated) {
		buf_puts(out, " start ");
		exact_print(out, g->exact_start, false);
	}
	settings_print_group(g, out);
	buf_puts(out, "\n");
}

static void block_print_options(const Net *net, const Block *b, Buf *out)
{
	if (b->kind == LINK_ONE_TO_ONE)
		buf_puts(out, " one-to-one");
	if (b->kind == LINK_RANDOM) {
		buf_puts(out, " random ");
		float_print(out, (float)b->density);
		buf_printf(out, " seed %llu", (unsigned long long)b->seed);
	}
	if (block_is_later(b))
		buf_puts(out, " later");
	if (b->init != INIT_RANGE && b->init != default_sets[net->defaults].init) {
		buf_printf(out, " weights %s", init_names[b->init]);
	} else if (b->init == INIT_RANGE) {
		buf_puts(out, " weights ");
		float_print(out, b->low);
		buf_puts(out, " ");
		float_print(out, b->high);
	}
	if (b->exact_rate != 1) {
		buf_puts(out, " rate ");
		exact_print(out, b->exact_rate, false);
	}
	if (b->frozen)
		buf_puts(out, " frozen");
}

static void block_print(const Net *net, const Block *b, Buf *out)
{
	buf_puts(out, "connect ");
	end_print(net, b, false, true, out);
	buf_puts(out, " -> ");
	end_print(net, b, true, true, out);
	if (b->tied < 0)
		block_print_options(net, b, out);
	settings_print_block(net, b, out);
	if (b->kind != LINK_SINGLE)
		buf_printf(out, "  # %llu link%s%s", (unsigned long long)b->links, b->links == 1 ? "" : "s",
		           b->from_group >= 0 && net->group[b->from_group].before ? ", from the tick before" : "");
	buf_puts(out, "\n");
}

static void copy_print(const Net *net, const Copy *c, Buf *out)
{
	const Group *to = &net->group[c->to_group];
	buf_printf(out, "copy %s -> %s", net->group[c->from_group].name, to->name);
	if (to->exact_start != 0) {
		buf_puts(out, " start ");
		exact_print(out, to->exact_start, false);
	}
	buf_puts(out, "\n");
}

void text_print(const char *text, Buf *out)
{
	buf_puts(out, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_puts(out, "\\");
		buf_add(out, text, 1);
	}
	buf_puts(out, "\"");
}

/* Only options that were set to something else than their default. */
static void options_print(const Options *o, int defaults, Buf *out)
{
	const mp_option *option;
	for (size_t i = 0; (option = option_at(i)); i++) {
		const char *value = option_get(out->arena, o, option->name);
		if (strcmp(value, option_default(option->name, defaults)) == 0)
			continue;
		buf_printf(out, "train %s ", option->name);
		if (strpbrk(value, " \t\"#\\") || !*value)
			text_print(value, out);
		else
			buf_puts(out, value);
		buf_puts(out, "\n");
	}
}

static void path_print(const char *word, const char *path, const mp_data_options *how, Buf *out)
{
	if (!path)
		return;
	buf_printf(out, "%s ", word);
	text_print(path, out);
	reading_print(how, out);
	buf_puts(out, "\n");
}

static void statements_print(const Net *net, int width, Buf *out)
{
	buf_printf(out, "defaults %s\n", default_sets[net->defaults].name);
	for (uint32_t i = 0; i < net->groups; i++)
		if (!net->group[i].before)
			group_print(&net->group[i], width, out);
	for (uint32_t i = 0; i < net->blocks; i++)
		block_print(net, &net->block[i], out);
	for (uint32_t i = 0; i < net->copies; i++)
		if (!net->group[net->copy[i].to_group].before)
			copy_print(net, &net->copy[i], out);
	noise_print_all(net, out);
	options_print(&net->options, net->defaults, out);
}

void net_print(const Net *net, Buf *out)
{
	int width = 0;
	uint32_t groups = 0, units = 0; /* without contexts that were made for ticks */
	for (uint32_t i = 0; i < net->groups; i++) {
		groups += !net->group[i].before;
		units += net->group[i].before ? 0 : net->group[i].size;
		if (!net->group[i].before && (int)strlen(net->group[i].name) > width)
			width = (int)strlen(net->group[i].name);
	}
	buf_printf(out, "# %u groups, %u units, %llu links, %u inputs, %u outputs\n", groups, units,
	           (unsigned long long)net->links, net->inputs, net->outputs);
	buf_printf(out, "# fingerprint %s\n", net->fingerprint);
	statements_print(net, width, out);
	path_print("data", net->data, &net->data_how, out);
	path_print("test", net->test, &net->test_how, out);
}

const char *net_statements(Arena *a, const Net *net)
{
	Buf out = { .arena = a };
	if (net->groups > TEXT_STATEMENTS || net->blocks > TEXT_STATEMENTS)
		return NULL;
	statements_print(net, 0, &out);
	return out.s;
}
