/* SPDX-License-Identifier: MIT */
/* The edge: every public call that can fail goes through api_call. */
#include "api.h"
#include "microprop/build.h"

#include <locale.h>
#include <string.h>

typedef struct Handle {
	Ctx cx;
} Handle;

Status api_call(Ctx *cx, void (*body)(void *arg), void *arg)
{
	jmp_buf here, *outer = cx->edge;
	Arena scratch = cx->scratch;
	int errors = cx->errors;
	/* Numbers in files have a decimal point, whatever the program around us chose for its users. */
	locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), theirs = uselocale(plain);
	if (!outer)
		messages_drop(cx, 0);
	cx->scratch = (Arena){ .cx = cx };
	cx->errors = 0;
	cx->starved = false;
	cx->status = MP_OK;
	cx->edge = &here;
	if (setjmp(here) == 0)
		body(arg);
	Status status = cx->status;
	arena_free(&cx->scratch);
	cx->scratch = scratch;
	cx->edge = outer;
	if (outer) {
		cx->errors = errors;
		cx->status = MP_OK;
	}
	uselocale(theirs);
	freelocale(plain);
	return status;
}

bool api_take(void *into, size_t size, const void *given)
{
	size_t known;
	memcpy(&known, given, sizeof known);
	const unsigned char *bytes = given;
	if (known < sizeof known)
		return false;
	for (size_t i = size; i < known; i++)
		if (bytes[i])
			return false;
	memset(into, 0, size);
	memcpy(into, given, min_u64(known, size));
	return true;
}

static void refuse_allocator(void *cx)
{
	fail(cx, MP_BAD_INPUT, "set mp_allocator.size to sizeof(mp_allocator), and resize to a function",
	     "this allocator is not of this version of the library");
}

Status api_handle(void **handle, size_t size, const mp_allocator *given)
{
	mp_allocator own = { .size = sizeof own };
	bool valid = !given || (api_take(&own, sizeof own, given) && own.resize);
	*handle = NULL;
	Ctx cx;
	Alloc chosen = { own.resize, own.user }, *alloc = given && valid ? &chosen : NULL;
	ctx_init(&cx, alloc);
	Handle *h = cx.alloc.resize(cx.alloc.user, NULL, 0, size);
	if (!h)
		return MP_NO_MEMORY;
	memset(h, 0, size);
	ctx_init(&h->cx, alloc);
	*handle = h;
	return valid ? MP_OK : api_call(&h->cx, refuse_allocator, &h->cx);
}

void api_close(void *handle, size_t size)
{
	Handle *h = handle;
	if (!h)
		return;
	Alloc alloc = h->cx.alloc;
	ctx_free(&h->cx);
	alloc.resize(alloc.user, h, size, 0);
}

static const mp_error no_memory = { .size = sizeof no_memory, .text = "out of memory" };

const char *api_messages(const void *handle)
{
	const Handle *h = handle;
	return h ? ctx_messages(&h->cx) : "error: out of memory\n";
}

const mp_error *api_error(const void *handle, size_t i)
{
	const Handle *h = handle;
	return h ? ctx_error(&h->cx, i) : i ? NULL : &no_memory;
}

const char *mp_version(void) { return MP_VERSION; }

const mp_option *mp_option_at(size_t i) { return option_at(i); }

const char *mp_option_hint(const char *word, const char **same) { return option_hint(word, same); }
