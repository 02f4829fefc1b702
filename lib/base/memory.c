/* SPDX-License-Identifier: MIT */
/* Memory: arenas over the caller's allocator, and text that grows in them.
 *
 * Small blocks are cut from 64 KiB chunks; a block of a quarter chunk or more has a chunk of its own, so that the
 * allocator can resize it without a copy.  Blocks of 64 bytes and more are 64-byte aligned, ready for vector loads,
 * smaller ones 16.
 * The only file that calls malloc, realloc or free. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "system.h"

enum { HUGE_PAGE = 1 << 21 };
enum { ALIGN = 64, SMALL_ALIGN = 16, CHUNK_BYTES = 65536, BIG_BYTES = CHUNK_BYTES / 4 };

/*   malloc'ed block:  | slack | Chunk | payload, 64-byte aligned ... |
 * The header sits right before the payload; `base` is what the allocator gave. */
struct Chunk {
	Chunk *next, *prev; /* prev is kept for big chunks only */
	void *base;
	size_t base_size;  /* bytes allocated */
	size_t size, used; /* of the payload */
};

struct Cleanup {
	Cleanup *next;
	void (*fn)(void *);
	void *arg;
};

static void *default_resize(void *user, void *old, size_t old_size, size_t new_size)
{
	(void)user, (void)old_size;
	if (new_size == 0) {
		free(old);
		return NULL;
	}
	char *block = realloc(old, new_size);
	if (block && new_size >= 2 * HUGE_PAGE) { /* cases are read in any order: fewer TLB misses */
		size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)block % page;
		/* All of it: mremap cannot grow a mapping of two kinds in place. */
		madvise(block - before, round_up(before + new_size, page), MADV_HUGEPAGE);
	}
	return block;
}

static _Noreturn void out_of_memory(Arena *a, size_t size)
{
	fail(a->cx, MP_NO_MEMORY, "use a smaller network or less data, or a machine with more memory",
	     "out of memory: %zu bytes were needed", size);
}

static char *payload(Chunk *c) { return (char *)(c + 1); }

/* Header and alignment slack around a payload of `size`. */
static size_t outer_size(Arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		out_of_memory(a, size);
	return size + sizeof(Chunk) + ALIGN;
}

static Chunk *chunk_place(void *base, size_t base_size, size_t size)
{
	uintptr_t start = ((uintptr_t)base + sizeof(Chunk) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
	Chunk *c = (Chunk *)(start - sizeof(Chunk));
	c->base = base;
	c->base_size = base_size;
	c->size = size;
	return c;
}

static Chunk *chunk_new(Arena *a, size_t size)
{
	size_t outer = outer_size(a, size);
	const Alloc *alloc = &a->cx->alloc;
	void *base = alloc->resize(alloc->user, NULL, 0, outer);
	if (!base)
		out_of_memory(a, size);
	Chunk *c = chunk_place(base, outer, size);
	c->next = c->prev = NULL;
	c->used = 0;
	return c;
}

static void big_insert(Arena *a, Chunk *c)
{
	c->prev = NULL;
	c->next = a->big;
	if (a->big)
		a->big->prev = c;
	a->big = c;
}

void *arena_alloc_raw(Arena *a, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / 2 / size)
		out_of_memory(a, SIZE_MAX);
	size_t align = count * size < ALIGN ? SMALL_ALIGN : ALIGN;
	size_t need = round_up(count * size + !size + !count, align);
	if (need >= BIG_BYTES) {
		Chunk *c = chunk_new(a, need);
		c->used = need;
		big_insert(a, c);
		return payload(c);
	}
	if (!a->chunk || a->chunk->size < round_up(a->chunk->used, align) + need) {
		Chunk *c = chunk_new(a, CHUNK_BYTES);
		c->next = a->chunk;
		a->chunk = c;
	}
	size_t at = round_up(a->chunk->used, align);
	a->chunk->used = at + need;
	return payload(a->chunk) + at;
}

void *arena_alloc(Arena *a, size_t count, size_t size)
{
	return memset(arena_alloc_raw(a, count, size), 0, count * size);
}

/* Resizes a block that has a chunk of its own; `kept` bytes of it stay. The allocator may give a block of another
 * alignment: then the payload has to slide inside it. */
static void *big_resize(Arena *a, Chunk *c, size_t kept, size_t need)
{
	size_t outer = outer_size(a, need);
	size_t shift = (size_t)(payload(c) - (char *)c->base);
	Chunk *prev = c->prev, *next = c->next;
	const Alloc *alloc = &a->cx->alloc;
	char *base = alloc->resize(alloc->user, c->base, c->base_size, outer);
	if (!base)
		out_of_memory(a, need);
	uintptr_t start = ((uintptr_t)base + sizeof(Chunk) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
	if ((char *)start != base + shift)
		memmove((char *)start, base + shift, kept);
	c = chunk_place(base, outer, need);
	c->used = need;
	c->prev = prev;
	c->next = next;
	if (prev)
		prev->next = c;
	else
		a->big = c;
	if (next)
		next->prev = c;
	return payload(c);
}

void *arena_grow_raw(Arena *a, void *old, size_t old_count, size_t new_count, size_t size)
{
	size_t old_bytes = old_count * size;
	if (!old)
		return arena_alloc_raw(a, new_count, size);
	if (new_count <= old_count)
		return old;
	if (size && new_count > SIZE_MAX / 2 / size)
		out_of_memory(a, SIZE_MAX);
	if (round_up(old_bytes, ALIGN) >= BIG_BYTES)
		return big_resize(a, (Chunk *)old - 1, old_bytes, round_up(new_count * size, ALIGN));
	void *p = arena_alloc_raw(a, new_count, size);
	return memcpy(p, old, old_bytes);
}

void *arena_grow(Arena *a, void *old, size_t old_count, size_t new_count, size_t size)
{
	char *p = arena_grow_raw(a, old, old_count, new_count, size);
	size_t kept = old ? old_count * size : 0;
	if (!old || new_count > old_count)
		memset(p + kept, 0, new_count * size - kept);
	return p;
}

void *arena_reserve(Arena *a, void *old, uint64_t count, uint64_t *cap, size_t size)
{
	assert(count <= *cap);
	if (count < *cap)
		return old;
	uint64_t grown = *cap ? 2 * *cap : 16;
	void *p = arena_grow(a, old, *cap, grown, size);
	*cap = grown;
	return p;
}

/* A block that is no longer big is copied to a small one: arena_drop and arena_grow tell the two apart by size. */
void *arena_trim(Arena *a, void *old, size_t old_count, size_t new_count, size_t size)
{
	size_t old_bytes = round_up(old_count * size, ALIGN), need = round_up(new_count * size, ALIGN);
	if (old_bytes < BIG_BYTES || need >= old_bytes)
		return old;
	if (need < BIG_BYTES) {
		void *p = memcpy(arena_alloc_raw(a, new_count, size), old, new_count * size);
		arena_drop(a, old, old_count, size);
		return p;
	}
	return big_resize(a, (Chunk *)old - 1, need, need);
}

static void big_remove(Arena *a, Chunk *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		a->big = c->next;
	if (c->next)
		c->next->prev = c->prev;
}

void *arena_move(Arena *from, Arena *to, void *block, size_t count, size_t size)
{
	if (round_up(count * size, ALIGN) < BIG_BYTES)
		return memcpy(arena_alloc_raw(to, count, size), block, count * size);
	Chunk *c = (Chunk *)block - 1;
	big_remove(from, c);
	big_insert(to, c);
	return block;
}

/* Small blocks share a chunk: they stay until the arena is freed. */
void arena_drop(Arena *a, void *block, size_t count, size_t size)
{
	if (!block || round_up(count * size, ALIGN) < BIG_BYTES)
		return;
	Chunk *c = (Chunk *)block - 1;
	big_remove(a, c);
	a->cx->alloc.resize(a->cx->alloc.user, c->base, c->base_size, 0);
}

char *arena_copy(Arena *a, const char *text, size_t len)
{
	char *s = arena_alloc(a, len + 1, 1);
	return len ? memcpy(s, text, len) : s;
}

void arena_defer(Arena *a, void (*fn)(void *), void *arg)
{
	Cleanup *c = arena_alloc(a, 1, sizeof *c);
	c->fn = fn;
	c->arg = arg;
	c->next = a->cleanup;
	a->cleanup = c;
}

static void chunks_free(Arena *a, Chunk *c)
{
	const Alloc *alloc = &a->cx->alloc;
	while (c) {
		Chunk *next = c->next;
		alloc->resize(alloc->user, c->base, c->base_size, 0);
		c = next;
	}
}

void arena_free(Arena *a)
{
	for (Cleanup *c = a->cleanup; c; c = c->next)
		c->fn(c->arg);
	chunks_free(a, a->chunk);
	chunks_free(a, a->big);
	a->chunk = a->big = NULL;
	a->cleanup = NULL;
}

static void chunks_walk(Chunk *c, ArenaFn *fn, void *arg)
{
	for (; c; c = c->next)
		fn(arg, payload(c), c->used);
}

void arena_walk(const Arena *a, ArenaFn *fn, void *arg)
{
	chunks_walk(a->chunk, fn, arg);
	chunks_walk(a->big, fn, arg);
}

void ctx_init(Ctx *cx, const Alloc *alloc)
{
	memset(cx, 0, sizeof *cx);
	if (alloc)
		cx->alloc = *alloc;
	else
		cx->alloc.resize = default_resize;
	cx->keep.cx = cx->fixed.cx = cx->scratch.cx = cx->said.cx = cx;
	cx->messages.arena = &cx->said;
}

void ctx_free(Ctx *cx)
{
	arena_free(&cx->scratch);
	arena_free(&cx->said);
	arena_free(&cx->keep);
	arena_free(&cx->fixed);
}

/* ---- text ---- */

static void buf_reserve(Buf *b, size_t more)
{
	if (b->cap - b->len > more)
		return;
	size_t cap = b->cap ? b->cap * 2 : 256;
	while (cap - b->len <= more)
		cap *= 2;
	b->s = arena_grow(b->arena, b->s, b->cap, cap, 1);
	b->cap = cap;
}

void buf_add(Buf *b, const void *bytes, size_t len)
{
	buf_reserve(b, len);
	if (len)
		memcpy(b->s + b->len, bytes, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void buf_puts(Buf *b, const char *s) { buf_add(b, s, strlen(s)); }

void buf_vprintf(Buf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	if (n > 0) {
		buf_reserve(b, (size_t)n);
		vsnprintf(b->s + b->len, b->cap - b->len, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_printf(Buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}
