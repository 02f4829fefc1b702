/* SPDX-License-Identifier: MIT */
/* The table of options of jobs of several ranks. */
#include "ranks.h"

static const OptionEntry rows[] = {
#define OPTIONS RanksOptions
#define OWNER   "ranks"
#include "option_rows.inc"
#include "options.def"
};
const OptionTable ranks_options = { OWNER, sizeof(OPTIONS), rows, COUNT(rows) };
