/* SPDX-License-Identifier: MIT */
/* old: data of older simulators (SNNS, FANN, LENS, tlearn), read and written. */
#ifndef OLD_H
#define OLD_H

#include "data.h"

Data *read_snns(Ctx *cx, const Src *s, const DataOptions *opt); /* patterns (.pat) */
/* read: opens the patterns that they belong to. */
typedef Data *DataOpen(Ctx *cx, const char *path, const DataOptions *opt);
Data *read_snns_results(Ctx *cx, const Src *s, const DataOptions *opt, DataOpen *read);
Data *read_fann(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_lens(Ctx *cx, const Src *s, const DataOptions *opt); /* examples, text */
Data *read_lens_binary(Ctx *cx, const Src *s, const DataOptions *opt);
Data *read_tlearn(Ctx *cx, const Src *s, const DataOptions *opt); /* .data, with .teach and .reset beside it */
bool looks_snns(const Src *s);
bool looks_snns_results(const Src *s);
bool looks_fann(const Src *s);         /* counts agree with the first line */
bool starts_fann(const Src *s);        /* the first line is three whole numbers */
bool looks_fann_or_text(const Src *s); /* rows of three numbers, which agree with the first */
bool looks_lens(const Src *s);
bool looks_lens_binary(const Src *s);
bool looks_tlearn(const Src *s);

void write_snns(Ctx *cx, const Data *d, const char *path);
void write_fann(Ctx *cx, const Data *d, const char *path);
void write_lens(Ctx *cx, const Data *d, const char *path);
/* Fails if a target of case i is missing, for which the format has no place. */
void targets_all(Ctx *cx, const Data *d, const char *format, const float *row, uint64_t i);
/* Units of input and target groups, from option groups ("a:3,b:2>c:4"); false: it is NULL. */
bool groups_units(Ctx *cx, const char *groups, uint32_t units[2]);

#endif
