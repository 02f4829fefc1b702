/* SPDX-License-Identifier: MIT */
/* Links as arrays, for programs that draw them. In: a network. Out: a JSON object: groups with their first unit (unit 0
 * is `true`), and for each weight, in canonical order, the units it leads from and to. */
#include <inttypes.h>

#include "analyze.h"

static void units_list(const Net *net, bool sources, Buf *out)
{
	const char *comma = "";
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		for (Unit u = g->first; u < g->first + g->size; u++)
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++, comma = ",")
				buf_printf(out, "%s%" PRIu32, comma, (uint32_t)(sources ? net_source(net, u, l) : u));
	}
}

void links_study(const Subject *s, int argc, const char *const *argv, Buf *out)
{
	const Net *net = s->net;
	(void)argv;
	if (argc)
		fail(s->cx, MP_BAD_INPUT, "give none", "links: there are no options");
	buf_puts(out, "{\"groups\": [");
	for (uint32_t i = 0; i < net->groups; i++)
		buf_printf(out, "%s{\"name\": \"%s\", \"first\": %" PRIu32 ", \"units\": %" PRIu32 "}", i ? ", " : "",
		           text_escaped(out->arena, net->group[i].name), (uint32_t)net->group[i].first, net->group[i].size);
	buf_puts(out, "], \"from\": [");
	units_list(net, true, out);
	buf_puts(out, "], \"to\": [");
	units_list(net, false, out);
	buf_puts(out, "]}\n");
}
