/* SPDX-License-Identifier: MIT */
/* Kernels for CPUs with AVX-512 (F, BW, VL, DQ). */
#include "kern.h"

#include "vec_avx512.h"

#include "product.inc"
#include "lists.inc"
#include "links.inc"
#include "units.inc"
#include "score.inc"
#include "codes.inc"
#include "update.inc"
#include "online.inc"
#include "tiny.inc"
#include "seeds.inc"

const Kern kern_avx512 = {
	.name = "avx512",
	.product = kernel_product,
	.lists_forward = kernel_lists_forward,
	.lists_gradient = kernel_lists_gradient,
	.links_forward = kernel_links_forward,
	.links_backward = kernel_links_backward,
	.links_gradient = kernel_links_gradient,
	.units = kernel_units,
	.deltas = kernel_deltas,
	.errors = kernel_errors,
	.scores = kernel_scores,
	.halves = kernel_halves,
	.nearer = kernel_nearer,
	.update = kernel_update,
	.outer = kernel_outer,
	.catch_up = kernel_catch_up,
	.tiny = kernel_tiny,
	.seeds_load = kernel_seeds_load,
	.seeds_pass = kernel_seeds_pass,
	.seeds_due = kernel_seeds_due,
	.add = kernel_add,
	.transpose = kernel_transpose,
};
