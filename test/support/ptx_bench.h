/* SPDX-License-Identifier: MIT */
/* Texts of kernels that tests give to the PTX emulator. */
#ifndef PTX_BENCH_H
#define PTX_BENCH_H

#include "ptx.h"
#include "test.h"

enum { MOST = 4096 };

/* Kernel k(in, out): the preamble loads tid, both pointers and the address of this thread's word of each. */
static const char head[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".extern .shared .align 16 .b8 dynamic[];\n"
	".global .align 16 .b32 table[4] = { 10, 20, -1, 0x1f };\n"
	".visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .u32 p_n)\n{\n"
	".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .f32 %f<16>; .reg .f64 %g<8>;\n"
	".reg .u32 %tid, %cta, %n; .reg .u64 %in, %out, %my_in, %my_out; .reg .b16 %h<4>;\n"
	"mov.u32 %tid, %tid.x; mov.u32 %cta, %ctaid.x; ld.param.u32 %n, [p_n];\n"
	"ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];\n"
	"mul.wide.u32 %my_in, %tid, 4; add.u64 %my_out, %my_in, %out; add.u64 %my_in, %my_in, %in;\n";

typedef struct Bench {
	Ctx cx;
	EmulatorOptions opt;
	Emulator *e;
	uint32_t *in, *out; /* [MOST] of the device */
	Launch l;
	const char *text;
	uint32_t n;
} Bench;

static inline void bench_open(Bench *b, EmulatorOptions o)
{
	memset(b, 0, sizeof *b);
	ctx_init(&b->cx, NULL);
	b->opt = o;
	b->l = (Launch){ .blocks = 1, .threads = 32 };
}

static inline void make(Ctx *cx, void *arg)
{
	Bench *b = arg;

	b->e = emulator_new(cx, &b->opt);
	b->in = emulator_alloc(b->e, MOST * sizeof *b->in);
	b->out = emulator_alloc(b->e, MOST * sizeof *b->out);
	for (uint32_t i = 0; i < MOST; i++)
		b->in[i] = i, b->out[i] = 0;
}

static inline void launch(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Buf text = { .arena = &cx->keep };
	void *param[] = { &b->in, &b->out, &b->n };

	buf_puts(&text, strstr(b->text, ".entry") ? "" : head);
	buf_puts(&text, b->text);
	buf_puts(&text, strstr(b->text, ".entry") ? "" : "\n}\n");
	Module *m = emulator_load(b->e, text.s, text.len);
	b->l.param = param;
	emulator_launch(b->e, emulator_kernel(m, "k"), &b->l);
	emulator_unload(m);
}

static inline void bench_start(Bench *b, EmulatorOptions o)
{
	bench_open(b, o);
	assert_int_equal(guarded(&b->cx, make, b), MP_OK);
}

static inline void works(Bench *b, const char *text)
{
	b->text = text;
	if (guarded(&b->cx, launch, b) != MP_OK) {
		print_error("%s\n%s\n", text, ctx_messages(&b->cx));
		assert_true(false);
	}
}

/* Fails with a message that has these words. */
static inline void fails(Bench *b, const char *text, const char *words)
{
	b->text = text;
	if (guarded(&b->cx, launch, b) == MP_OK || !strstr(ctx_messages(&b->cx), words)) {
		print_error("%s\nexpected: %s\nmessage: %s\n", text, words, ctx_messages(&b->cx));
		assert_true(false);
	}
	messages_drop(&b->cx, 0);
	b->cx.errors = 0;
}

/* The text with the n-th statement that begins with these words replaced; false: there is none. */
static inline bool mutant(char *to, const char *text, const char *words, uint32_t n, const char *instead)
{
	const char *at = text;

	for (uint32_t i = 0;; i++, at++) {
		at = strstr(at, words);
		if (!at)
			return false;
		if (i == n)
			break;
	}
	sprintf(to, "%.*s%s%s", (int)(at - text), text, instead, at + strcspn(at, ";") + 1);
	return true;
}

#endif
