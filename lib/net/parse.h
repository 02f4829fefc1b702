/* SPDX-License-Identifier: MIT */
/* The parser of topology files: lex.c makes tokens, parse.c reads statements, connect.c the one about links.
 * A header of its own: its types concern these three files only. */
#ifndef PARSE_H
#define PARSE_H

#include "net.h"

/* ---- lex.c -------------------------------------------------------------------------------------- */

/* TOK_END comes between statements, where a line begins in the first column.  TOK_BAD is no token: its error is
 * recorded.  The text of a TOK_TEXT excludes its quotes. */
enum {
	TOK_WORD,
	TOK_NUMBER,
	TOK_TEXT,
	TOK_ARROW,
	TOK_COMMA,
	TOK_OPEN,
	TOK_CLOSE,
	TOK_COLON,
	TOK_END,
	TOK_EOF,
	TOK_BAD
};
typedef struct Token {
	int kind;
	const char *s;
	size_t len, off;
} Token;

typedef struct Lexer {
	Ctx *cx;
	const Src *src;
	size_t at;    /* next byte to read */
	size_t line;  /* where the current line begins */
	size_t ended; /* place of the last TOK_END */
} Lexer;

void lex_init(Lexer *lx, Ctx *cx, const Src *src);
void lex_next(Lexer *lx, Token *t);
void lex_value(Lexer *lx, Token *t); /* a text, or everything up to the next blank */
void lex_skip(Lexer *lx);            /* to the next statement */
bool lex_whole(const Token *t, uint64_t *v);
bool lex_real(const Token *t, float *v);  /* finite only */
char *lex_text(Arena *a, const Token *t); /* a text with its escapes resolved */

/* ---- parse.c ------------------------------------------------------------------------------------ */

typedef struct Open Open;
typedef struct Setting {
	const char *name;
	Loc at;
} Setting;

typedef struct End {       /* one side of a connect */
	int32_t group;         /* -1: the true unit */
	uint32_t first, count; /* count 0: invalid, the error is recorded */
	bool sliced;
	size_t off;
} End;
typedef struct Ends {
	End *end;
	uint64_t count, cap;
} Ends;

typedef struct Parser {
	Ctx *cx;
	Net *net;
	Lexer lx;
	Token tok;                 /* lookahead */
	size_t past;               /* end of the token before it */
	Open *open;                /* files being read, innermost first */
	Dict names;                /* of groups; their numbers are those of net->group */
	Ends left, right;          /* of the connect being read */
	uint32_t size[ROLE_COUNT]; /* of open groups; 0: not known */
	uint64_t group_cap, block_cap, copy_cap;
	uint64_t pairs;   /* links so far; of random blocks, all candidates */
	Setting *setting; /* options set by train, data and test, with their last place */
	uint32_t settings;
	Loc defaults;   /* the statement that chose them, if any */
	bool training;  /* an option was set */
	unsigned given; /* settings of the group being read: parse_shape.c */
	uint64_t setting_cap;
} Parser;

enum { MAX_NAME = 64 };

/* The functions that return bool record an error before they return false. */
void token_next(Parser *p);
Loc token_at(const Parser *p); /* of the lookahead */
bool at_end(const Parser *p);  /* of the statement */
bool at_word(const Parser *p, const char *word);
int token_shown(const Token *t);                                    /* length in a message: for "%.*s" */
bool unexpected(Parser *p, const char *wanted, const char *remedy); /* false; the token is not what was wanted */
bool expect_arrow(Parser *p, const char *remedy);
bool expect_real(Parser *p, const char *what, float low, float high, float *v);
/* and the same in double precision */
bool expect_exact(Parser *p, const char *what, float low, float high, float *v, double *exact);
bool group_named(const Parser *p);                                            /* does the token name a group? */
bool group_find(Parser *p, int32_t *group);                                   /* the group that the token names */
const char *remedy_printf(Parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3); /* a text in scratch */
/* "did you mean ...?" if the token is near one of the names */
const char *remedy_near(Parser *p, const char *const *names, size_t count, const char *otherwise);

bool option_once(Parser *p, const char *name, Loc at); /* once in a file; another file may set it again */
char *path_resolve(Parser *p, const char *path);       /* relative to the folder of the file that names it */
bool parse_path(Parser *p, const char *what, char **path);
bool is_statement(const Token *t);

/* ---- reading.c ---------------------------------------------------------------------------------- */

bool parse_data(Parser *p);
bool parse_test(Parser *p);

/* ---- connect.c ---------------------------------------------------------------------------------- */

bool parse_connect(Parser *p);
bool parse_ends(Parser *p, Ends *ends);

/* ---- parse_shape.c ------------------------------------------------------------------------------ */

bool group_setting(Parser *p, Group *g, bool *taken); /* *taken: the token is a word of such a setting */
bool parse_noise(Parser *p);
bool parse_dropout(Parser *p);

#endif
