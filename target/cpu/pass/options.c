/* SPDX-License-Identifier: MIT */
/* The table of target cpu's own options. */
#include "pass.h"

static const OptionEntry rows[] = {
#define OPTIONS CpuOptions
#define OWNER   "cpu"
#include "option_rows.inc"
#include "options.def"
};
const OptionTable cpu_options = { OWNER, sizeof(OPTIONS), rows, COUNT(rows) };
