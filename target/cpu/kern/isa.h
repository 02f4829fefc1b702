/* SPDX-License-Identifier: MIT */
/* What kinds of vector unit there are, which of them this CPU and its kernel let us use, and which one we do. */
#ifndef ISA_H
#define ISA_H

#include "amx.h"
#include "base.h"
#include "kern.h"

/* Those of this machine come first, and each can do what those before it can. */
#if defined __aarch64__
enum { ISA_GENERIC, ISA_NEON, ISA_AVX2, ISA_AVX512, ISA_AMX, ISA_COUNT };
#else
enum { ISA_GENERIC, ISA_AVX2, ISA_AVX512, ISA_AMX, ISA_NEON, ISA_COUNT };
#endif

/* The best there is, or the one that MICROPROP_ISA names; fails if that is none or not here. */
int isa_choose(Ctx *cx);
bool isa_has(int isa); /* a system call for amx, which also asks for its use: the answer holds for all threads */
const char *isa_name(int isa);         /* as in MICROPROP_ISA */
void cpu_describe(Ctx *cx, Buf *json); /* for mp_build_describe: the one in use, and all that are here */
const Kern *isa_kern(int isa);         /* fp32 kernels; amx has none of its own and takes those of avx512 */
const HalfKern *isa_half(int isa);     /* bf16 products; both NULL: of another machine */
int isa_fp32(int isa);                 /* the one whose kernels these are */

/* From cpu_enter to cpu_leave, for the calling thread alone, sums are rounded to nearest, nothing traps, and tiny
 * numbers count as zero where the CPU can do that: on x86 as the contract says, on ARM before rounding, elsewhere not
 * at all. So code in between uses the operations of a vec_*.h or of flush.h. cpu_leave takes what cpu_enter gave. */
unsigned cpu_enter(void);
void cpu_leave(unsigned before);

#endif
