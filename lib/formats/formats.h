/* SPDX-License-Identifier: MIT */
/* formats: the table of data formats; opens and writes any of them. */
#ifndef FORMATS_H
#define FORMATS_H

#include "data.h"

/* Reads any format, recognized by name and content, or makes a built-in set ("make:xor").  opt may be NULL. */
Data *data_open(Ctx *cx, const char *path, const DataOptions *opt);
typedef struct DataSource {
	const char *path;
	Src *src;                    /* NULL: a built-in set */
	const struct Format *format; /* NULL likewise */
	bool csv;
} DataSource;
DataSource data_locate(Ctx *cx, const char *path, const DataOptions *opt); /* opens the file */
Data *data_load(Ctx *cx, const DataSource *from, const DataOptions *opt);
const char *data_looks(const Src *src);                    /* the format that the content is sure to be; NULL: none */
void data_write(Ctx *cx, const Data *d, const char *path); /* format by name: .npz .npy .csv .txt .idx; atomic */

#endif
