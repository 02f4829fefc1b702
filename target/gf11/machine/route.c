/* SPDX-License-Identifier: MIT */
/* Edge colouring of a bipartite multigraph of at most 64 + 64 nodes.  In: edges, forbidden colours per node.
 * Out: a colour for every edge.  Must hold: no two edges at a node share a colour.
 * Nodes are the crossbars of the first and the last stage, edges the routes, colours the middle crossbars; forbidden
 * colours of a node are middle crossbars that it cannot reach.
 *
 * An edge takes the lowest colour free at both ends.  If there is none, some colour a is free at one end and b at the
 * other: swapping a and b along the alternating path (Kempe chain) from the second end frees a at both.  The path
 * cannot return to the first end, since it would arrive there by an a; so with nothing forbidden n colours suffice for
 * degree n (Koenig), without padding the graph to a regular one.  For 576 edges some 34 chains of 8 edges are swapped;
 * a whole permutation takes about 9 microseconds.
 *
 * A chain that would give its last node a forbidden colour cannot be swapped.  If none can, the edge takes a random
 * allowed colour and the edges that held it are coloured again: a bounded random walk with a fixed sequence. */
#include <assert.h>
#include <string.h>

#include "gf11_machine.h"

enum { MAX_FORCED = 20000 }; /* steps; an infeasible case of 576 edges ends after some 4 ms */

typedef struct Coloring {
	uint32_t n;
	const uint64_t *allow;                       /* [2n] */
	uint64_t free[2 * MAX_CROSSBAR];             /* allowed colours unused at the node */
	uint16_t at[2 * MAX_CROSSBAR][MAX_CROSSBAR]; /* edge of a colour; defined where not free */
	const uint8_t *from, *into;                  /* ends of an edge: nodes from and n + into */
	uint8_t *colour;
} Coloring;

/* Index of the lowest set bit (de Bruijn multiplication). */
static uint32_t lowest(uint64_t set)
{
	static const uint8_t place[64] = { 0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28,
		                               62, 5,  39, 46, 44, 42, 22, 9,  24, 35, 59, 56, 49, 18, 29, 11,
		                               63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
		                               51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12 };
	return place[(set & (~set + 1)) * 0x022FDD63CC95386Du >> 58];
}

static uint64_t bit(uint32_t colour) { return (uint64_t)1 << colour; }

static bool used(const Coloring *p, uint32_t node, uint32_t colour)
{
	return (p->allow[node] & ~p->free[node]) >> colour & 1;
}

static uint32_t other_end(const Coloring *p, uint32_t edge, uint32_t node)
{
	uint32_t into = p->n + p->into[edge];
	return node == into ? p->from[edge] : into;
}

static void colour_set(Coloring *p, uint32_t edge, uint32_t colour)
{
	uint32_t u = p->from[edge], v = p->n + p->into[edge];
	p->colour[edge] = (uint8_t)colour;
	p->at[u][colour] = p->at[v][colour] = (uint16_t)edge;
	p->free[u] &= ~bit(colour);
	p->free[v] &= ~bit(colour);
}

/* Can colours a and b be swapped on the chain from `node` that begins with a? */
static bool chain_swappable(const Coloring *p, uint32_t node, uint32_t a, uint32_t b)
{
	uint32_t next = b;
	for (uint32_t edge = p->at[node][a];; next = a + b - next) {
		node = other_end(p, edge, node);
		if (!used(p, node, next))
			return p->allow[node] >> next & 1;
		edge = p->at[node][next];
	}
}

static void chain_swap(Coloring *p, uint32_t node, uint32_t a, uint32_t b)
{
	uint32_t now = a, edge = p->at[node][a];
	p->free[node] ^= bit(a) | bit(b);
	for (;; now = a + b - now) { /* recolour `edge` from now to next */
		uint32_t next = a + b - now;
		p->at[node][next] = (uint16_t)edge;
		p->colour[edge] = (uint8_t)next;
		node = other_end(p, edge, node);
		uint32_t ahead = p->at[node][next];
		p->at[node][next] = (uint16_t)edge;
		if (p->free[node] & bit(next)) {
			p->free[node] ^= bit(a) | bit(b);
			return;
		}
		edge = ahead;
	}
}

/* Colours an edge whose ends share no free colour by swapping a chain; false: no chain can be swapped. */
static bool swap_any_chain(Coloring *p, uint32_t edge)
{
	uint32_t u = p->from[edge], v = p->n + p->into[edge];
	for (uint64_t left = p->free[u]; left; left &= left - 1) {
		uint32_t a = lowest(left);
		for (uint64_t right = p->free[v]; right; right &= right - 1) {
			uint32_t b = lowest(right);
			if (used(p, v, a) && chain_swappable(p, v, a, b)) {
				chain_swap(p, v, a, b);
				colour_set(p, edge, a);
				return true;
			}
			if (used(p, u, b) && chain_swappable(p, u, b, a)) {
				chain_swap(p, u, b, a);
				colour_set(p, edge, b);
				return true;
			}
		}
	}
	return false;
}

static bool colour_edge(Coloring *p, uint32_t edge)
{
	uint64_t common = p->free[p->from[edge]] & p->free[p->n + p->into[edge]];
	if (!common)
		return swap_any_chain(p, edge);
	colour_set(p, edge, lowest(common));
	return true;
}

/* Gives the edge a random allowed colour; edges that lose it are appended to the work list. */
static uint32_t force(Coloring *p, uint32_t edge, uint64_t random, uint16_t *waiting, uint32_t count)
{
	uint32_t end[2] = { p->from[edge], p->n + p->into[edge] };
	uint64_t choice = p->allow[end[0]] & p->allow[end[1]];
	uint32_t choices = 0;
	for (uint64_t c = choice; c; c &= c - 1)
		choices++;
	assert(choices > 0);
	for (random %= choices; random; random--)
		choice &= choice - 1;
	uint32_t colour = lowest(choice);
	for (uint32_t i = 0; i < 2; i++) {
		if (used(p, end[i], colour)) {
			uint32_t lost = waiting[count++] = p->at[end[i]][colour];
			p->free[p->from[lost]] |= bit(colour);
			p->free[p->n + p->into[lost]] |= bit(colour);
		}
	}
	colour_set(p, edge, colour);
	return count;
}

/* Random walk for an edge that no chain swap can colour; false after MAX_FORCED steps, with edges left uncoloured. */
static bool colour_by_force(Coloring *p, uint32_t edge, uint64_t *random)
{
	uint16_t waiting[MAX_CROSSBAR * MAX_CROSSBAR];
	uint32_t count = 1;
	if (!(p->allow[p->from[edge]] & p->allow[p->n + p->into[edge]]))
		return false;
	waiting[0] = (uint16_t)edge;
	for (uint32_t step = 0; count && step < MAX_FORCED; step++) {
		uint32_t e = waiting[--count];
		if (!colour_edge(p, e)) {
			*random = *random * 6364136223846793005u + 1442695040888963407u;
			count = force(p, e, *random >> 33, waiting, count);
		}
	}
	return !count;
}

uint32_t route_colour(uint32_t n, uint32_t edges, const uint8_t *from, const uint8_t *into,
                      const uint64_t forbid[2][MAX_CROSSBAR], uint8_t *colour)
{
	assert(n >= 1 && n <= MAX_CROSSBAR && edges <= n * n);
	Coloring p = { .n = n, .from = from, .into = into, .colour = colour };
	uint64_t allow[2 * MAX_CROSSBAR], all = ~(uint64_t)0 >> (MAX_CROSSBAR - n), random = 1;
	for (uint32_t i = 0; i < n; i++) {
		allow[i] = all & ~forbid[0][i];
		allow[n + i] = all & ~forbid[1][i];
	}
	memcpy(p.free, allow, 2 * n * sizeof *allow);
	p.allow = allow;
	for (uint32_t e = 0; e < edges; e++)
		if (!colour_edge(&p, e) && !colour_by_force(&p, e, &random))
			return e;
	return edges;
}
