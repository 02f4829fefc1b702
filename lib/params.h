/* SPDX-License-Identifier: MIT */
/* params.c: files of named numbers, each with its unit and where it comes from: machines, clusters (doc/machine.md).
 * ranges.c: numbers as the command line has them. */
#ifndef PARAMS_H
#define PARAMS_H

#include "lib.h"

/* ---- params.c ----------------------------------------------------------------------------------- */

enum { FROM_SEED, FROM_PUBLISHED, FROM_MEASURED, FROM_ASSUMED };

typedef struct Provenance {
	uint8_t kind;
	const char *text;
} Provenance; /* text: "seed §2", "assumed (calibrated)" */

/* A parameter: an int64_t, or a double if real, at this offset of the struct. */
typedef struct Param {
	const char *name, *unit, *about;
	size_t offset;
	bool real;
	double low, high;
} Param;
typedef struct ParamFile {
	const char *name;
	const unsigned char *text;
} ParamFile; /* built into the program */

typedef struct ParamKind {
	const char *what;  /* "machine": what a file describes, and how its name ends */
	const char *whole; /* the built-in one that others build on */
	const Param *row;
	size_t rows;
	const ParamFile *file;
	size_t files;
} ParamKind;

typedef struct Params {
	Ctx *cx;
	const ParamKind *kind;
	void *into;
	Provenance *from; /* [rows], in keep */
	Loc *at;          /* [rows] the line that gave the value */
} Params;

/* a path, or one of those built in; or it fails */
const Src *params_find(Ctx *cx, const ParamKind *kind, const char *name);
/* every parameter has a value; or it fails */
Params params_read(Ctx *cx, const ParamKind *kind, const Src *src, void *into);
Loc param_at(const Params *p, const char *name);
const char *params_name(Ctx *cx, const Src *src); /* machines/gf11.machine is called gf11 */
/* As a file again; from NULL: all assumed. */
void params_print(const ParamKind *kind, const char *name, const Provenance *from, const void *values, Buf *out);

/* ---- ranges.c ----------------------------------------------------------------------------------- */

/* Numbers that `word` stands for: a, a..b, a..b:STEP, a..b:xFACTOR, several with commas between; in scratch. Row
 * says what kind of number, from where to where. */
uint32_t range_read(Ctx *cx, const char *option, const char *word, const Param *row, double **value);

#endif
