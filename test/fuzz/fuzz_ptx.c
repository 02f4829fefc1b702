/* SPDX-License-Identifier: MIT */
/* PTX: whatever is accepted runs, or is refused with a message. */
#include "fuzz.h"
#include "ptx.h"

static void load_and_run(Ctx *cx, const Src *s)
{
	static const EmulatorOptions opt = { .seed = 3, .races = true, .memory = 1 << 16, .idle = 300 };
	Emulator *e = emulator_new(cx, &opt);
	void *memory = emulator_alloc(e, 4096), *param[16];

	for (uint32_t i = 0; i < COUNT(param); i++)
		param[i] = &memory;
	Module *m = emulator_load(e, s->text, s->len);
	const Kernel *k = emulator_kernel(m, "k");
	if (k && emulator_param_bytes(k) == sizeof memory && s->len < 4096)
		emulator_launch(e, k, &(Launch){ .blocks = 2, .threads = 40, .shared = 64, .param = param });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(load_and_run, data, size);
	return 0;
}
