/* SPDX-License-Identifier: MIT */
/* columns: what the reader of CSV files, its plan of the columns and the writer share. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "data.h"

/* columns.c: which column of a CSV file is for what */
typedef struct Column {
	Text name;
	size_t off;   /* of its name in the file */
	int64_t x, y; /* input and target column it is, counted from 0; -1: not */
	bool label;   /* target whose text is a class */
	bool plain;   /* nothing but numbers for x and y are wanted of it */
} Column;
typedef struct Columns {
	char sep;
	Column *col;
	uint32_t count;
	uint32_t *target;                /* [targets] their columns */
	uint32_t inputs, targets;        /* columns, before labels become one-of-n */
	int64_t sequence, weight, names; /* their columns; -1: none */
	size_t body;                     /* offset of the first line below the header */
} Columns;
Columns *columns_plan(Ctx *cx, const Src *s, const DataOptions *opt);
/* csv.c: one field; returns the separator or line end behind it, NULL and an error recorded if its quotes are wrong. */
const char *csv_field(Ctx *cx, const Src *s, const char *p, const char *eol, char sep, Text *t);
int class_order(Text a, Text b); /* numbers by value, then words by bytes */

#endif
