/* SPDX-License-Identifier: MIT */
/* store: weights and checkpoints as files. */
#ifndef STORE_H
#define STORE_H

#include "run.h"

/* ---- background.c: checkpoints written while training goes on ---------------------------------------- */

typedef struct BackgroundSave BackgroundSave;
/* Takes the run as it stands; a thread writes it. Nothing happens if that still writes the last one, or if weights
 * are not finite: then the run is marked as diverged. */
/* best: NULL, or where the best epoch's weights go */
void background_save(Run *r, const char *path, const char *best, uint32_t keep);
Status background_status(Run *r, bool wait);  /* of the last one that was written, if nobody asked before */
const char *background_message(const Run *r); /* why the last failure was */

/* ---- checkpoint.c: weights and checkpoints, safetensors ----------------------------------------- */

Content checkpoint_image(Run *r, Arena *arena, bool best); /* the bytes of that file */
/* weights, rule state, position, options; best: those of the best epoch, without state */
void checkpoint_save(Run *r, const char *path, bool best);
void checkpoint_load(Run *r, const char *path, bool resume); /* resume: everything; else weights, scale, classes */
void checkpoint_read(Run *r, const Src *src, bool resume);   /* the same from a file already read */

/* ---- inside the module ---- */
/* Weights in files: safetensors, which links stand in which tensor, and weights from a file into a network. */

/* ---- safetensors.c: the container of weights and checkpoints ------------------------------------ */

enum {
	SAFE_F64,
	SAFE_I64,
	SAFE_U64,
	SAFE_F32,
	SAFE_I32,
	SAFE_U32,
	SAFE_F16,
	SAFE_BF16,
	SAFE_I16,
	SAFE_U16,
	SAFE_I8,
	SAFE_U8,
	SAFE_F8_E5M2,
	SAFE_F8_E4M3,
	SAFE_BOOL,
	SAFE_TYPES
};
enum { SAFE_DIMS = 8 };
typedef struct Tensor {
	const char *name;
	int type; /* SAFE_... */
	int dims;
	uint64_t dim[SAFE_DIMS];
	uint64_t count;      /* product of dim */
	uint64_t off, bytes; /* in the data, which begins after the header */
	bool used;           /* for readers: what is left over gets a note */
} Tensor;
typedef struct Meta {
	const char *key, *value;
} Meta;
typedef struct SafeFile {
	const Src *src;
	size_t data; /* where the data begins */
	Tensor *tensor;
	uint32_t tensors; /* by name */
	Meta *meta;
	uint32_t metas;
	bool sealed; /* it has a checksum, and it is right */
} SafeFile;

SafeFile *safe_read(Ctx *cx, const Src *src); /* in scratch; everything checked, the checksum if there is one */
Tensor *safe_find(const SafeFile *s, const char *name);             /* NULL: no such */
const char *safe_meta(const SafeFile *s, const char *key);          /* NULL: no such */
double safe_number(const SafeFile *s, const Tensor *t, uint64_t i); /* of floating and 32-bit integer types */
void safe_release(const SafeFile *s);              /* its pages, if it is mapped: they come again when they are read */
Loc safe_loc(const SafeFile *s, const char *name); /* where the header speaks of it */
const char *safe_type_name(int type);
bool safe_is_real(int type);                                           /* F64, F32, F16, BF16 */
struct json_t *safe_json(Ctx *cx, const SafeFile *s, const char *key); /* metadata that is JSON; freed with scratch */

/* Tensors in the given order (larger types first, so that all are aligned), as the bytes of a file, in memory or
 * written at once; `fill` gives the numbers of one, as many as it has, as often as it is asked. */
typedef struct SafeSink SafeSink;
typedef void SafeFill(void *user, uint32_t tensor, SafeSink *out);
void safe_put(SafeSink *out, double value);
Content safe_image(Ctx *cx, Arena *arena, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas, SafeFill *fill,
                   void *user);
void safe_write(Ctx *cx, const char *path, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas, SafeFill *fill,
                void *user);

/* ---- slots.c: which links stand in which tensor ------------------------------------------------- */

typedef struct Slot {
	const char *name;             /* a_to_b, b_bias */
	bool dense;                   /* one tensor [to, from] (bias: [to]); else .values, .from and .to */
	int32_t from_group, to_group; /* from_group -1: the true unit */
	uint32_t from_first, from_count, to_first, to_count; /* inside their groups */
	uint64_t links;
} Slot;
Slot *slots_make(Ctx *cx, const Net *net, uint32_t *count); /* in scratch; every link is in exactly one */
/* Links of the slot's t-th target unit are those of first .. end-1 that slot_has. */
void slot_row(const Net *net, const Slot *s, uint32_t t, uint64_t *first, uint64_t *end);
bool slot_has(const Net *net, const Slot *s, uint32_t t, uint64_t link);
/* the first link of unit whose source is not before `source` */
uint64_t link_find(const Net *net, Unit unit, Unit source);
const char *slots_text(Arena *arena, const Net *net, const Slot *slot, uint32_t count); /* JSON, as in metadata links */
Slot *slots_read(Ctx *cx, const SafeFile *f, const Net *net, uint32_t *count);          /* and back, checked */

/* ---- weights.c: weights from a file into a network, or why they do not fit ---------------------- */

const char *net_groups_text(Arena *arena, const Net *net); /* JSON, as in metadata groups */
const char *net_copies_text(Arena *arena, const Net *net);
typedef struct WeightReader WeightReader;
WeightReader *weights_open(Ctx *cx, const SafeFile *f, const Net *net); /* in scratch; fails if the file does not fit */
/* canonical order, one piece after the other, from 0 */
void weights_next(WeightReader *k, uint64_t first, uint64_t count, double *w);

#endif
