/* SPDX-License-Identifier: MIT */
/* Fields of a Machine that tests of microwords share: pipelines so short that small programs keep them full. */
#ifndef GF11_SHORT_H
#define GF11_SHORT_H

#define SHORT_PIPELINES                                                                                              \
	.clock = 50, .alu_latency = 5, .alu_interval = 1, .sram_latency = 3, .sram_interval = 1, .lookup_latency = 4,    \
	.store_latency = 2, .dram_latency = 8, .dram_interval = 4, .dram_banks = 4, .dram_busy = 6, .switch_latency = 6, \
	.switch_interval = 4

#endif
