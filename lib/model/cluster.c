/* SPDX-License-Identifier: MIT */
/* Clusters. In: a cluster file. Out: a Cluster in which every parameter of cluster.def has a value inside its range and
 * a provenance. */
#include "model.h"

const Param cluster_rows[] = {
#define CLUSTER_INT(f, name, unit, low, high, about) \
	{ name, unit, about, offsetof(Cluster, f), false, low, high, false },
#define CLUSTER_REAL(f, name, unit, low, high, about) \
	{ name, unit, about, offsetof(Cluster, f), true, low, high, false },
#include "cluster.def"
};
const size_t cluster_row_count = COUNT(cluster_rows);

/* The files of machines/, embedded by CMake. */
static const ParamFile built_in[] = {
#define PARAM_FILE(name, ...) { name, (const unsigned char[]){ __VA_ARGS__, 0 } },
#include "clusters.def"
};

static const ParamKind clusters = {
	"cluster", "ethernet", cluster_rows, COUNT(cluster_rows), built_in, COUNT(built_in)
};

Cluster *cluster_parse(Ctx *cx, const Src *src)
{
	Cluster *c = NEW(&cx->keep, 1, Cluster);

	c->from = params_read(cx, &clusters, src, c).from;
	c->name = params_name(cx, src);
	return c;
}

Cluster *cluster_open(Ctx *cx, const char *name) { return cluster_parse(cx, params_find(cx, &clusters, name)); }

void cluster_print(const Cluster *c, Buf *out) { params_print(&clusters, c->name, c->from, c, out); }
