/* SPDX-License-Identifier: MIT */
/* Which kernels this computer can run.  In: cpuid or HWCAP, the registers the kernel saves, MICROPROP_ISA.  Out: one
 * kind of vector unit and its kernels.
 *
 * An x86 CPU has a feature if its bits are set in cpuid; it can be used if the kernel saves its registers, which XCR0
 * says; tiles moreover only by a process that has asked for them.  Leaf 0x1D, which describes tiles, is not read: some
 * hypervisors leave it empty although tiles work, and there is but one palette.  On ARM the kernel says in HWCAP what
 * there is. */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "isa.h"

#if defined __x86_64__ && !defined MP_PORTABLE
#define MACHINE_X86 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>
#elif defined __aarch64__ && !defined MP_PORTABLE
#define MACHINE_ARM 1
#if defined __linux__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#endif

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"microprop needs a little-endian machine: files and messages between ranks hold numbers as they are in memory");

/* Kernels that are not of this machine are not there. */
#if defined MACHINE_X86
#define ON_X86(kern) &(kern)
#else
#define ON_X86(kern) NULL
#endif
#if defined MACHINE_ARM
#define ON_ARM(kern) &(kern)
#else
#define ON_ARM(kern) NULL
#endif

typedef struct Isa {
	const char *name;
	const Kern *kern;
	const HalfKern *half;
} Isa;

static const Isa isas[ISA_COUNT] = {
	[ISA_GENERIC] = { "generic", &kern_generic, &half_generic },
	[ISA_NEON] = { "neon", ON_ARM(kern_neon), ON_ARM(half_neon) },
	[ISA_AVX2] = { "avx2", ON_X86(kern_avx2), ON_X86(half_avx2) },
	[ISA_AVX512] = { "avx512", ON_X86(kern_avx512), ON_X86(half_avx512) },
	[ISA_AMX] = { "amx", ON_X86(kern_avx512), ON_X86(half_amx) },
};

#if defined MACHINE_X86

enum { LEAF_1_ECX, LEAF_7_EBX, LEAF_7_EDX, LEAF_7_1_EAX, WORDS };

typedef struct Need {
	uint32_t cpuid[WORDS]; /* these bits of these words */
	uint32_t saved;        /* and these of XCR0 */
	bool ask;              /* and the kernel's permission */
} Need;

#define BIT(n) (1u << (n))

static const Need needs[ISA_COUNT] = {
	[ISA_AVX2] = {
		.cpuid = { [LEAF_1_ECX] = BIT(12) | BIT(27) | BIT(28),                      /* FMA, OSXSAVE, AVX */
		           [LEAF_7_EBX] = BIT(5) },                                         /* AVX2 */
		.saved = BIT(1) | BIT(2),
	},
	[ISA_AVX512] = {
		.cpuid = { [LEAF_1_ECX] = BIT(12) | BIT(27) | BIT(28),
		           [LEAF_7_EBX] = BIT(5) | BIT(16) | BIT(17) | BIT(30) | BIT(31) }, /* and F, DQ, BW, VL */
		.saved = BIT(1) | BIT(2) | BIT(5) | BIT(6) | BIT(7),
	},
	[ISA_AMX] = {
		.cpuid = { [LEAF_1_ECX] = BIT(12) | BIT(27) | BIT(28),
		           [LEAF_7_EBX] = BIT(5) | BIT(16) | BIT(17) | BIT(30) | BIT(31),
		           [LEAF_7_EDX] = BIT(22) | BIT(24),                                /* AMX-BF16, AMX-TILE */
		           [LEAF_7_1_EAX] = BIT(5) },                                       /* AVX512-BF16 */
		.saved = BIT(1) | BIT(2) | BIT(5) | BIT(6) | BIT(7) | BIT(17) | BIT(18),
		.ask = true,
	},
};

static void cpuid_words(uint32_t word[WORDS])
{
	uint32_t a, b, c, d;

	memset(word, 0, WORDS * sizeof *word);
	if (__get_cpuid(1, &a, &b, &c, &d))
		word[LEAF_1_ECX] = c;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		word[LEAF_7_EBX] = b;
		word[LEAF_7_EDX] = d;
	}
	if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
		word[LEAF_7_1_EAX] = a;
}

/* XCR0; only where cpuid has OSXSAVE, else the instruction is unknown. */
static uint32_t registers_saved(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* The kernel makes room for tiles in every thread of a process that asks. */
static bool tiles_allowed(void)
{
	enum { ARCH_GET_XCOMP_PERM = 0x1022, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
	uint64_t allowed = 0;

	if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA))
		return false;
	return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &allowed) == 0 && allowed >> XFEATURE_XTILEDATA & 1;
}

bool isa_has(int isa)
{
	const Need *need = &needs[isa];
	uint32_t word[WORDS];

	if (!isas[isa].kern)
		return false;
	cpuid_words(word);
	for (int i = 0; i < WORDS; i++)
		if ((word[i] & need->cpuid[i]) != need->cpuid[i])
			return false;
	return !need->saved || ((registers_saved() & need->saved) == need->saved && (!need->ask || tiles_allowed()));
}

unsigned cpu_enter(void)
{
	enum { MASKED_NEAREST = 0x1f80, FTZ = 0x8000, DAZ = 0x0040 };
	unsigned before = _mm_getcsr();

	_mm_setcsr(MASKED_NEAREST | FTZ | DAZ);
	return before;
}

void cpu_leave(unsigned before) { _mm_setcsr(before); }

#elif defined MACHINE_ARM

bool isa_has(int isa)
{
#if defined __linux__
	return isa == ISA_GENERIC || (isa == ISA_NEON && (getauxval(AT_HWCAP) & HWCAP_ASIMD));
#else
	return isa == ISA_GENERIC || isa == ISA_NEON; /* every system but Linux asks for it */
#endif
}

/* Flush to zero, rounding to nearest, no traps, nothing alternative. */
unsigned cpu_enter(void)
{
	const uint64_t flush = 1 << 24;
	uint64_t before;

	__asm__ volatile("mrs %0, fpcr" : "=r"(before));
	__asm__ volatile("msr fpcr, %0" : : "r"(flush));
	return (unsigned)before;
}

void cpu_leave(unsigned before) { __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)before)); }

#else

bool isa_has(int isa) { return isa == ISA_GENERIC; }

unsigned cpu_enter(void)
{
	int before = fegetround();

	fesetround(FE_TONEAREST);
	return (unsigned)before;
}

void cpu_leave(unsigned before) { fesetround((int)before); }

#endif

const char *isa_name(int isa) { return isas[isa].name; }

const Kern *isa_kern(int isa) { return isas[isa].kern; }

const HalfKern *isa_half(int isa) { return isas[isa].half; }

int isa_fp32(int isa) { return isa == ISA_AMX ? ISA_AVX512 : isa; }

/* "unset it, or set it to one of: generic avx2" */
static const char *remedy_here(Ctx *cx)
{
	Buf b = { .arena = &cx->scratch };

	buf_puts(&b, "unset it, or set it to one of:");
	for (int i = 0; i < ISA_COUNT; i++)
		if (isa_has(i))
			buf_printf(&b, " %s", isa_name(i));
	return b.s;
}

int isa_choose(Ctx *cx)
{
	const char *word = getenv("MICROPROP_ISA");
	int isa = ISA_COUNT;

	if (!word || !*word) {
		while (!isa_has(--isa))
			;
		return isa;
	}
	for (isa = 0; isa < ISA_COUNT && strcmp(word, isa_name(isa)); isa++)
		;
	if (isa == ISA_COUNT)
		fail(cx, MP_BAD_INPUT, remedy_here(cx), "MICROPROP_ISA cannot be '%s'", word);
	if (!isa_has(isa))
		fail(cx, MP_BAD_INPUT, remedy_here(cx), "MICROPROP_ISA is %s, which this CPU or its kernel does not have",
		     word);
	return isa;
}

void cpu_describe(Ctx *cx, Buf *json)
{
	buf_printf(json, ", \"isa\": \"%s\", \"isas\": [", isa_name(isa_choose(cx)));
	for (int i = 0, n = 0; i < ISA_COUNT; i++)
		if (isa_has(i))
			buf_printf(json, "%s\"%s\"", n++ ? ", " : "", isa_name(i));
	buf_puts(json, "]");
}
