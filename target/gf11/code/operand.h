/* SPDX-License-Identifier: MIT */
/* Operations as text, shared by microcode.c and operations.c. */
#ifndef OPERAND_H
#define OPERAND_H

#include "gf11_code.h"

/* Operands in written order:
 *   d a b registers   c condition   k constant   x switch configuration   m SRAM   i j SRAM with index a, b   f DRAM */
extern const char *const op_syntax[FORMS];

/* Physical operands are named r and c, recorded ones v and w, unless their text gave them names. */
typedef struct Operands {
	char reg, cond;
	uint32_t dst, a, b, cc;
	Addr mem, far;
	Cell k;
	const char *const *reg_name, *const *cond_name;
} Operands;
void operation_print(int op, const Operands *o, Buf *out);

/* One line of a text at a time. Functions that return false have recorded an error. */
typedef struct Reader {
	Ctx *cx;
	const Machine *m;
	const Src *src;
	size_t at, end; /* rest of this line, without its comment */
	size_t next;    /* start of the next line */
} Reader;
bool reader_error(Reader *rd, size_t off, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
bool reader_line(Reader *rd); /* the next line that is not empty; false at the end of the text */
void reader_skip(Reader *rd); /* blanks */
char reader_peek(const Reader *rd);
size_t reader_word(const Reader *rd); /* length up to the next blank, comma or bar; may be 0 */
bool reader_accept(Reader *rd, const char *mark);
bool reader_expect(Reader *rd, const char *mark, const char *remedy);
bool reader_number(Reader *rd, const char *what, uint64_t limit, uint32_t *value); /* decimal, below `limit` */
bool reader_named(Reader *rd, const char *letter, const char *what, int64_t limit, uint32_t *value);
/* s[40  s[b1+40  d[b2+8, and the + of an index, which the caller reads, as the bracket that ends it */
bool reader_address(Reader *rd, bool dram, const char *remedy, bool indexed, Addr *a);
void reader_end(Reader *rd); /* nothing more is on this line */

#endif
