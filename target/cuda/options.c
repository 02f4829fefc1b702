/* SPDX-License-Identifier: MIT */
/* The table of target cuda's own options. */
#include "cuda.h"

static const OptionEntry rows[] = {
#define OPTIONS CudaOptions
#define OWNER   "cuda"
#include "option_rows.inc"
#include "options.def"
};
const OptionTable cuda_options = { OWNER, sizeof(OPTIONS), rows, COUNT(rows) };
