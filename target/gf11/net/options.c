/* SPDX-License-Identifier: MIT */
/* The table of target gf11's own options. */
#include "gf11_net.h"

static const OptionEntry rows[] = {
#define OPTIONS Gf11Options
#define OWNER   "gf11"
#include "option_rows.inc"
#include "options.def"
};
const OptionTable gf11_options = { OWNER, sizeof(OPTIONS), rows, COUNT(rows) };
