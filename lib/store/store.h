/* SPDX-License-Identifier: MIT */
/* store: weights and checkpoints as files. */
#ifndef STORE_H
#define STORE_H

#include "run.h"

/* ---- checkpoint.c: weights and checkpoints, safetensors ----------------------------------------- */

Content checkpoint_image(Run *r, Arena *arena, bool best); /* the file's content */
/* Weights, rule state, position, options; best: weights of the best epoch, without state. */
void checkpoint_save(Run *r, const char *path, bool best);
void checkpoint_load(Run *r, const char *path, bool resume); /* resume: everything; else weights, scale, classes */
/* Inputs and outputs of the network whose weights the file holds, by the names of the open groups of a network. */
void weights_sizes(Ctx *cx, const char *path, const Net *open, uint32_t *inputs, uint32_t *outputs);
void checkpoint_read(Run *r, const Src *src, bool resume); /* the same from a file already read */

/* The text of the network that a file of weights holds, to be parsed like a topology file; NULL: the file is not a
 * safetensors file.  Fails if it is one, but without that text.  In arena. */
const Src *checkpoint_topology(Ctx *cx, Arena *arena, const Src *src);

/* ---- background.c: checkpoints written by a thread while training goes on ----------------------- */

/* Takes a snapshot of the run and writes it in the background.  Does nothing while the last save is still being
 * written.  Weights that are not finite are not saved: the run is marked as diverged.  best: NULL, or the path for the
 * weights of the best epoch. */
typedef struct BackgroundSave BackgroundSave;
void background_save(Run *r, const char *path, const char *best, uint32_t keep);
Status background_status(Run *r, bool wait);  /* of the last finished save; MP_OK if it was returned before */
const char *background_message(const Run *r); /* of the last failure */

/* ---- inside the module: safetensors.c ----------------------------------------------------------- */

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
	bool used;           /* by a reader: unused tensors are noted */
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
	bool verified; /* it has a checksum, which is right */
} SafeFile;

bool safe_looks(const Src *src);              /* a safetensors file, by its first bytes */
SafeFile *safe_read(Ctx *cx, const Src *src); /* in scratch; everything checked, the checksum if there is one */
Tensor *safe_find(const SafeFile *s, const char *name);             /* NULL: no such */
const char *safe_meta(const SafeFile *s, const char *key);          /* NULL: no such */
double safe_number(const SafeFile *s, const Tensor *t, uint64_t i); /* of floating and 32-bit integer types */
void safe_release(const SafeFile *s);              /* its pages, if it is mapped; read again on access */
Loc safe_loc(const SafeFile *s, const char *name); /* of its name in the header */
const char *safe_type_name(int type);
bool safe_is_real(int type);                                           /* F64, F32, F16, BF16 */
struct json_t *safe_json(Ctx *cx, const SafeFile *s, const char *key); /* metadata that is JSON; freed with scratch */

/* Tensors in the given order (larger types first, so that all are aligned), as the content of a file, in memory or
 * written.  `fill` puts all numbers of one tensor; it may be called twice. */
typedef struct SafeSink SafeSink;
typedef void SafeFill(void *user, uint32_t tensor, SafeSink *out);
void safe_put(SafeSink *out, double value);
Content safe_image(Ctx *cx, Arena *arena, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas, SafeFill *fill,
                   void *user);
void safe_write(Ctx *cx, const char *path, Tensor *t, uint32_t tensors, const Meta *m, uint32_t metas, SafeFill *fill,
                void *user);

/* ---- inside the module: slots.c, the links of every tensor -------------------------------------- */

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
/* The first link of the unit whose source is not before `source`. */
uint64_t link_find(const Net *net, Unit unit, Unit source);
const char *slots_text(Arena *arena, const Net *net, const Slot *slot, uint32_t count); /* JSON, as in metadata links */
/* match.c: slots of a file with other names are called like its tensors, by shape and order, if all fit. */
void slots_match(Ctx *cx, const SafeFile *f, Slot *slot, uint32_t slots);
Slot *slots_read(Ctx *cx, const SafeFile *f, const Net *net, uint32_t *count); /* and back, checked */

/* ---- inside the module: weights.c, weights from a file into a network --------------------------- */

const char *net_groups_text(Arena *arena, const Net *net); /* JSON, as in metadata groups */
const char *net_copies_text(Arena *arena, const Net *net);
typedef struct WeightReader WeightReader;
WeightReader *weights_open(Ctx *cx, const SafeFile *f, const Net *net); /* in scratch; fails if the file does not fit */
/* Canonical order, chunk after chunk from 0. */
void weights_next(WeightReader *k, uint64_t first, uint64_t count, double *w);

#endif
