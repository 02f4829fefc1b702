/* SPDX-License-Identifier: MIT */
/* Weights and checkpoints.  In: a run.  Out: a safetensors file with its weights as named tensors (slots.c), the state
 * of its rule, and in the metadata all that resuming needs; and back.
 *
 * A checkpoint is taken between updates.  All numbers are exact: integers in decimal, others as hexadecimal floating
 * point.  doc/files.md specifies the file.
 * Loading validates everything before the run is changed: a file of another network is refused with the differences
 * (weights.c). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "store.h"
#include "table.h"

static const char format_name[] = "microprop 1";
static const char rng_name[] = "philox4x32-10";
/* Numbers of an update are rounded once, from double precision; files without this: see note_older. */
static const char arithmetic_name[] = "2";

/* ---- weights of the best epoch ------------------------------------------------------------------ */

static bool best_finite(const Run *r)
{
	double none = 0;
	for (uint64_t i = 0; i < r->net->links; i++)
		none += best_weight(r, i) - best_weight(r, i);
	return none == 0;
}

static void best_fingerprint(const Run *r, char out[33])
{
	XXH3_state_t state;
	XXH3_128bits_reset(&state);
	XXH3_128bits_update(&state, r->best_weights, best_bytes(r));
	hash_hex(&state, out);
}

/* ---- Position, as text -------------------------------------------------------------- */

enum { WHOLE, REAL, OPTIONAL }; /* optional: a real, 0 if absent */
typedef struct PositionField {
	const char *key;
	int kind;
	size_t offset;
} PositionField;

#define AT(member) offsetof(Position, member)
#define TALLY(name, member)                                                                       \
	{ name ".error", REAL, AT(member.error) }, { name ".cases", WHOLE, AT(member.cases) },        \
		{ name ".scored", WHOLE, AT(member.scored) }, { name ".right", WHOLE, AT(member.right) }, \
		{ name ".within", WHOLE, AT(member.within) },                                             \
	{                                                                                             \
		name ".weight", OPTIONAL, AT(member.weight)                                               \
	}
static const PositionField fields[] = {
	{ "epoch", WHOLE, AT(epoch) },
	{ "cases", WHOLE, AT(cases) },
	{ "data", WHOLE, AT(data) },
	{ "position", WHOLE, AT(done) },
	{ "updates", WHOLE, AT(updates) },
	{ "best", REAL, AT(best) },
	{ "best_epoch", WHOLE, AT(best_epoch) },
	{ "seconds", REAL, AT(seconds) },
	{ "simulated_seconds", OPTIONAL, AT(simulated) },
	TALLY("tally", tally),
	TALLY("last", last),
	TALLY("test", test),
};
enum { MAX_METAS = 20 + 2 * COUNT(fields) };

/* As %a prints it, but with a point in every locale: 0x1.8p+1. */
static void real_put(Buf *b, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	int exponent = (int)(bits >> 52 & 2047);
	uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
	const char *sign = bits >> 63 ? "-" : "";
	if (exponent == 2047)
		buf_printf(b, "%s%s", sign, fraction ? "nan" : "inf");
	else
		buf_printf(b, "%s0x%d.%013" PRIx64 "p%+d", sign, exponent ? 1 : 0, fraction,
		           exponent   ? exponent - 1023
		           : fraction ? -1022
		                      : 0);
}

/* Only what real_put writes: sign, 0x, one digit, point, 13 digits, p, exponent. */
static bool real_get(const char *s, double *out)
{
	bool negative = *s == '-';
	s += negative;
	char *end;
	double v = 0;
	if (strcmp(s, "inf") == 0) {
		v = INFINITY;
	} else if (strcmp(s, "nan") == 0) {
		v = NAN;
	} else {
		if (strncmp(s, "0x", 2) != 0 || (s[2] != '0' && s[2] != '1') || s[3] != '.' ||
		    strspn(s + 4, "0123456789abcdef") != 13 || s[17] != 'p')
			return false;
		uint64_t fraction = strtoull(s + 4, NULL, 16);
		long exponent = strtol(s + 18, &end, 10);
		if (end == s + 18 || *end || exponent < -1022 || exponent > 1023)
			return false;
		v = ldexp((double)(fraction + ((uint64_t)(s[2] - '0') << 52)), (int)exponent - 52);
	}
	*out = negative ? -v : v;
	return true;
}

static bool whole_get(const char *s, uint64_t *out)
{
	size_t len = strspn(s, "0123456789");
	if (len == 0 || s[len])
		return false;
	errno = 0;
	*out = strtoull(s, NULL, 10);
	return errno == 0;
}

static const char *field_text(Arena *arena, const PositionField *f, const Position *at)
{
	const char *from = (const char *)at + f->offset;
	Buf b = { .arena = arena };
	if (f->kind != WHOLE)
		real_put(&b, *(const double *)from);
	else
		buf_printf(&b, "%" PRIu64, *(const uint64_t *)from);
	return b.s;
}

static bool field_read(const PositionField *f, const char *text, Position *at)
{
	char *to = (char *)at + f->offset;
	return f->kind != WHOLE ? real_get(text, (double *)to) : whole_get(text, (uint64_t *)to);
}

/* ---- classes, as text --------------------------------------------------------------------------- */

static const char *classes_text(Arena *arena, const char *const *classes, uint32_t count)
{
	Buf b = { .arena = arena };
	for (uint32_t i = 0; i < count; i++) {
		buf_puts(&b, i ? "," : "[");
		json_put(&b, name_escape(arena, classes[i]));
	}
	buf_puts(&b, "]");
	return b.s;
}

/* ---- saving ------------------------------------------------------------------------------------- */

/* Content of a tensor.  `index` is the slot or the state. */
enum { SRC_VALUES, SRC_FROM, SRC_TO, SRC_STATE, SRC_BEST, SRC_OFFSET, SRC_FACTOR };
typedef struct Source {
	int kind;
	uint32_t index;
} Source;

typedef struct Saver {
	Run *r;
	bool best; /* weights of the best epoch, not the current ones */
	Slot *slot;
	uint32_t slots;
	Source *source;
	Tensor *tensor;
	uint32_t tensors;
	Meta meta[MAX_METAS];
	uint32_t metas;
	double *v;             /* [CHUNK_LINKS]: numbers last read from the target */
	int held;              /* weights (0) or rule state (1..); -1: none */
	uint64_t first, count; /* their links */
} Saver;

static const char *join(Arena *arena, const char *a, const char *b)
{
	Buf name = { .arena = arena };
	buf_puts(&name, a);
	buf_puts(&name, b);
	return name.s;
}

static Tensor *tensor_add(Saver *s, int kind, uint32_t index, const char *name, int type, uint64_t count)
{
	Tensor *t = &s->tensor[s->tensors];
	s->source[s->tensors++] = (Source){ kind, index };
	*t = (Tensor){ .name = name, .type = type, .dims = 1, .dim = { count } };
	return t;
}

static void add_values(Saver *s, int type)
{
	Arena *scratch = &s->r->cx.scratch;
	for (uint32_t i = 0; i < s->slots; i++) {
		const Slot *slot = &s->slot[i];
		const char *name = slot->dense ? slot->name : join(scratch, slot->name, ".values");
		Tensor *t = tensor_add(s, SRC_VALUES, i, name, type, slot->dense ? slot->to_count : slot->links);
		if (slot->dense && slot->from_group >= 0) {
			t->dims = 2;
			t->dim[1] = slot->from_count;
		}
	}
}

static void add_indices(Saver *s)
{
	Arena *scratch = &s->r->cx.scratch;
	for (uint32_t i = 0; i < s->slots; i++) {
		const Slot *slot = &s->slot[i];
		if (slot->dense)
			continue;
		if (slot->from_group >= 0)
			tensor_add(s, SRC_FROM, i, join(scratch, slot->name, ".from"), SAFE_I32, slot->links);
		tensor_add(s, SRC_TO, i, join(scratch, slot->name, ".to"), SAFE_I32, slot->links);
	}
}

/* Eight-byte types first, so that every tensor is aligned. */
static void tensors_make(Saver *s)
{
	Run *r = s->r;
	const Rule *rule = &rules[r->opt.rule];
	int type = r->target->f64 ? SAFE_F64 : SAFE_F32;
	size_t max = 3 * (size_t)s->slots + MAX_STATE + 3;
	s->source = NEW(&r->cx.scratch, max, Source);
	s->tensor = NEW(&r->cx.scratch, max, Tensor);
	if (r->scale.kind != SCALE_NONE) {
		tensor_add(s, SRC_OFFSET, 0, "scale.offset", SAFE_F64, r->net->inputs);
		tensor_add(s, SRC_FACTOR, 0, "scale.factor", SAFE_F64, r->net->inputs);
	}
	add_values(s, type);
	for (int i = 0; i < rule->states && !s->best; i++)
		tensor_add(s, SRC_STATE, (uint32_t)i, join(&r->cx.scratch, "state.", rule->state[i]), type, r->net->links);
	if (r->best_weights && r->best_at.epoch && !s->best)
		tensor_add(s, SRC_BEST, 0, "best.weights", type, r->net->links);
	add_indices(s);
}

/* Weight or rule state of a link; reads `count` from there on if it is not in the buffer. */
static double link_value(Saver *s, int which, uint64_t link, uint64_t count)
{
	if (which == 0 && s->best)
		return best_weight(s->r, link);
	if (s->held != which || link < s->first || link - s->first >= s->count) {
		s->first = link;
		s->count = net_chunk(s->r->net, link, min_u64(count, CHUNK_LINKS));
		s->held = which;
		s->r->target->get(s->r->program, which, link, s->count, s->v);
	}
	return s->v[link - s->first];
}

static void fill_slot(Saver *s, int kind, const Slot *slot, SafeSink *out)
{
	const Net *net = s->r->net;
	Unit first = net->group[slot->to_group].first + slot->to_first;
	for (uint32_t t = 0; t < slot->to_count; t++) {
		uint64_t link, end, row = net->row[first + t + 1] - net->row[first + t];
		slot_row(net, slot, t, &link, &end);
		/* if the slot has most of the row, it has most of the next ones too */
		uint64_t count = 2 * (end - link) < row ? end - link : CHUNK_LINKS;
		for (; link < end; link++) {
			if (!slot_has(net, slot, t, link))
				continue;
			if (kind == SRC_VALUES)
				safe_put(out, link_value(s, 0, link, count));
			else if (kind == SRC_TO)
				safe_put(out, t);
			else
				safe_put(out, net_source(net, first + t, link) - net->group[slot->from_group].first);
		}
	}
}

static void fill(void *user, uint32_t tensor, SafeSink *out)
{
	Saver *s = user;
	const Source *p = &s->source[tensor];
	const Tensor *t = &s->tensor[tensor];
	if (p->kind <= SRC_TO) {
		fill_slot(s, p->kind, &s->slot[p->index], out);
		return;
	}
	for (uint64_t i = 0; i < t->count; i++) {
		if (p->kind == SRC_OFFSET)
			safe_put(out, s->r->scale.offset[i]);
		else if (p->kind == SRC_FACTOR)
			safe_put(out, s->r->scale.factor[i]);
		else if (p->kind == SRC_BEST)
			safe_put(out, best_weight(s->r, i));
		else
			safe_put(out, link_value(s, 1 + (int)p->index, i, CHUNK_LINKS));
	}
}

static const char *options_text(Arena *arena, const Options *o)
{
	Buf b = { .arena = arena };
	const mp_option *option;
	for (size_t i = 0; (option = option_at(i)) != NULL; i++) {
		buf_puts(&b, i ? "," : "{");
		json_put(&b, option->name);
		buf_puts(&b, ":");
		json_put(&b, option_get(arena, o, option->name));
	}
	buf_puts(&b, "}");
	return b.s;
}

static void meta_add(Saver *s, const char *key, const char *value) { s->meta[s->metas++] = (Meta){ key, value }; }

static void metas_position(Saver *s, const char *prefix, const Position *at)
{
	Arena *scratch = &s->r->cx.scratch;
	for (size_t i = 0; i < COUNT(fields); i++)
		meta_add(s, join(scratch, prefix, fields[i].key), field_text(scratch, &fields[i], at));
}

static void metas_make(Saver *s)
{
	Run *r = s->r;
	Arena *scratch = &r->cx.scratch;
	char *digits = NEW(scratch, 33, char);
	if (s->best ? !best_finite(r) : !run_finite(r))
		fail(&r->cx, MP_FAILED, "train anew with a lower rate, from an older file if there is one",
		     "weights are not finite after update %" PRIu64 ": they are not saved", r->at.updates);
	if (s->best)
		best_fingerprint(r, digits);
	else
		run_fingerprint(r, digits);
	meta_add(s, "format", format_name);
	meta_add(s, "version", MP_VERSION);
	meta_add(s, "arithmetic", arithmetic_name);
	meta_add(s, "kind", s->best ? "weights" : "checkpoint");
	meta_add(s, "target", r->target->name);
	meta_add(s, "network", r->net->fingerprint);
	meta_add(s, "weights", digits);
	meta_add(s, "groups", net_groups_text(scratch, r->net));
	meta_add(s, "copies", net_copies_text(scratch, r->net));
	meta_add(s, "links", slots_text(scratch, r->net, s->slot, s->slots));
	meta_add(s, "options", options_text(scratch, &r->opt));
	meta_add(s, "seed", option_get(scratch, &r->opt, "seed"));
	meta_add(s, "rng", rng_name);
	meta_add(s, "rule", rules[r->opt.rule].name);
	meta_add(s, "scale", scale_names[r->scale.kind]);
	if (r->classes)
		meta_add(s, "classes", classes_text(scratch, r->classes, r->class_count));
	if (r->schema)
		meta_add(s, "schema", r->schema);
	if (r->kept_metrics) {
		Buf json = { .arena = scratch };
		metrics_print(r->kept_metrics, &json);
		meta_add(s, "metrics", json.s);
	}
	const char *topology = net_statements(scratch, r->net);
	if (topology)
		meta_add(s, "topology", topology);
	metas_position(s, "", s->best ? &r->best_at : &r->at);
	if (r->best_weights && r->best_at.epoch && !s->best)
		metas_position(s, "best_at.", &r->best_at);
}

static Saver *saver_new(Run *r, bool best)
{
	run_start(r);
	Saver *s = NEW(&r->cx.scratch, 1, Saver);
	s->r = r;
	s->best = best;
	s->held = -1;
	s->v = NEW(&r->cx.scratch, net_chunk(r->net, 0, CHUNK_LINKS), double);
	s->slot = slots_make(&r->cx, r->net, &s->slots);
	tensors_make(s);
	metas_make(s);
	return s;
}

Content checkpoint_image(Run *r, Arena *arena, bool best)
{
	Saver *s = saver_new(r, best);
	return safe_image(&r->cx, arena, s->tensor, s->tensors, s->meta, s->metas, fill, s);
}

void checkpoint_save(Run *r, const char *path, bool best)
{
	Saver *s = saver_new(r, best);
	safe_write(&r->cx, path, s->tensor, s->tensors, s->meta, s->metas, fill, s);
}

/* ---- loading ------------------------------------------------------------------------------------ */

static const char not_whole[] = "resume from a file that 'microprop train --save' wrote; --load takes weights alone";

/* A vector of `count` numbers by name. */
static const Tensor *vector_find(Ctx *cx, const SafeFile *f, const char *name, uint64_t count)
{
	Tensor *t = safe_find(f, name);
	if (!t)
		fail_at(cx, safe_loc(f, "__metadata__"), not_whole, "tensor %s is missing", name);
	if (!safe_is_real(t->type) || t->dims != 1 || t->count != count)
		fail_at(cx, safe_loc(f, name), not_whole, "tensor %s should hold %" PRIu64 " numbers", name, count);
	t->used = true;
	return t;
}

static double *vector_read(Ctx *cx, Arena *arena, const SafeFile *f, const char *name, uint64_t count)
{
	const Tensor *t = vector_find(cx, f, name, count);
	double *v = NEW(arena, count, double);
	for (uint64_t i = 0; i < count; i++)
		v[i] = safe_number(f, t, i);
	return v;
}

static const char *meta_need(Ctx *cx, const SafeFile *f, const char *key)
{
	const char *value = safe_meta(f, key);
	if (!value)
		fail_at(cx, safe_loc(f, "__metadata__"), not_whole, "metadata %s is missing", key);
	return value;
}

/* Written by this program?  Metadata of other programs is ignored. */
static bool is_ours(const SafeFile *f)
{
	const char *format = safe_meta(f, "format");
	return format && strncmp(format, "microprop ", 10) == 0;
}

static void check_format(Ctx *cx, const SafeFile *f, bool resume)
{
	const char *format = safe_meta(f, "format");
	bool ours = is_ours(f);
	if (ours && strcmp(format, format_name) != 0)
		fail_at(cx, safe_loc(f, "format"), "use a newer microprop, or save the file with this one",
		        "the file has the format '%s'; this program knows '%s'", format, format_name);
	if (ours && !f->verified)
		fail_at(cx, safe_loc(f, "__metadata__"), "remove 'format' from its metadata to load it as it is",
		        "the file says it is ours but has no checksum");
	if (!resume)
		return;
	if (!ours)
		fail_at(cx, safe_loc(f, "__metadata__"), not_whole, "this is not a checkpoint: it holds weights alone");
	if (strcmp(meta_need(cx, f, "kind"), "checkpoint") != 0)
		fail_at(cx, safe_loc(f, "kind"), not_whole,
		        "this file holds the weights of a best epoch, without the rest of the run");
	if (strcmp(meta_need(cx, f, "rng"), rng_name) != 0)
		fail_at(cx, safe_loc(f, "rng"), "resume with the program that wrote it",
		        "the run drew its random numbers from '%s', this program has %s", safe_meta(f, "rng"), rng_name);
}

/* Files before 0.2 hold no weights of tallies, and in `best` a mean over all cases, also those without a target. The
 * weights of the data are not known here: each case counts once. */
static void position_complete(Position *at)
{
	Tally *const tally[] = { &at->tally, &at->last, &at->test };
	const Tally *t = at->test.cases ? &at->test : &at->last;
	for (size_t i = 0; i < COUNT(tally); i++)
		tally[i]->weight = (double)tally[i]->scored;
	if (t->scored && t->scored < t->cases)
		at->best *= (double)t->cases / (double)t->scored;
}

static void read_position(Ctx *cx, const SafeFile *f, const char *prefix, Position *at)
{
	for (size_t i = 0; i < COUNT(fields); i++) {
		const char *key = join(&cx->scratch, prefix, fields[i].key);
		const char *text = fields[i].kind == OPTIONAL ? safe_meta(f, key) : meta_need(cx, f, key);
		if (text && !field_read(&fields[i], text, at))
			fail_at(cx, safe_loc(f, key), not_whole, "metadata %s cannot be '%s'", key, text);
	}
	if (!safe_meta(f, join(&cx->scratch, prefix, "tally.weight")))
		position_complete(at);
}

/* An unknown option is an error: it might change the result.  One that is missing has its default. */
static void read_options(Ctx *cx, const SafeFile *f, Options *o)
{
	meta_need(cx, f, "options");
	json_t *tree = safe_json(cx, f, "options"), *v;
	const char *name, *remedy;
	if (!json_is_object(tree))
		fail_at(cx, safe_loc(f, "options"), not_whole, "metadata options is not an object");
	options_init(o, DEFAULTS_1989); /* those that version 0.1 did not have are neutral there */
	json_object_foreach(tree, name, v)
	{
		if (strcmp(name, "device") == 0) /* of the computer and process that wrote it; 0 where none was given, once */
			continue;
		const char *value = json_string_value(v);
		const char *wrong = option_set(cx, o, name, value ? value : "", &remedy);
		if (wrong)
			fail_at(cx, safe_loc(f, "options"), remedy, "%s", wrong);
	}
}

static void read_scale(Ctx *cx, const SafeFile *f, uint32_t inputs, Scale *scale)
{
	const char *kind = safe_meta(f, "scale");
	*scale = (Scale){ .kind = SCALE_NONE };
	if (!kind || strcmp(kind, scale_names[SCALE_NONE]) == 0)
		return;
	for (int i = SCALE_RANGE; i <= SCALE_ZSCORE; i++)
		if (strcmp(kind, scale_names[i]) == 0)
			scale->kind = i;
	if (scale->kind == SCALE_NONE)
		fail_at(cx, safe_loc(f, "scale"), "it is one of none, range, zscore", "metadata scale cannot be '%s'", kind);
	scale->offset = vector_read(cx, &cx->fixed, f, "scale.offset", inputs);
	scale->factor = vector_read(cx, &cx->fixed, f, "scale.factor", inputs);
}

/* As many as there are outputs, all different. */
static const char *const *read_classes(Ctx *cx, const SafeFile *f, uint32_t outputs)
{
	static const char remedy[] = "it is a JSON list of names, one for each output of the network";
	if (!safe_meta(f, "classes"))
		return NULL;
	json_t *tree = safe_json(cx, f, "classes");
	if (!json_is_array(tree) || json_array_size(tree) != outputs)
		fail_at(cx, safe_loc(f, "classes"), remedy, "metadata classes is not a list of %u names", outputs);
	const char **classes = NEW(&cx->fixed, outputs, const char *);
	Dict seen = { .arena = &cx->scratch };
	for (uint32_t i = 0; i < outputs; i++) {
		const char *text = json_string_value(json_array_get(tree, i));
		classes[i] = text ? name_read(&cx->fixed, text) : NULL;
		if (!classes[i])
			fail_at(cx, safe_loc(f, "classes"), remedy, "entry %u of metadata classes is not a name", i);
		if (dict_add(&seen, (Text){ classes[i], (uint32_t)strlen(classes[i]) }) != i)
			fail_at(cx, safe_loc(f, "classes"), remedy, "metadata classes has '%.40s' twice", text);
	}
	return classes;
}

/* The columns of the table that the network was trained on. */
static Schema *read_schema(Ctx *cx, const SafeFile *f, const Net *net, const char *const *classes)
{
	static const char remedy[] = "use the file as microprop wrote it, or train anew";
	const char *text = safe_meta(f, "schema");
	if (!text)
		return NULL;
	Loc at = safe_loc(f, "schema");
	Schema *s = schema_parse(cx, at, text);
	if (s->inputs != net->inputs || (s->task != TASK_NONE && s->targets != net->outputs))
		fail_at(cx, at, remedy, "the schema of the model has %u inputs and %u targets, its network %u and %u",
		        s->inputs, s->targets, net->inputs, net->outputs);
	const Field *target = s->task == TASK_CLASSES ? schema_target(s, 0) : NULL;
	for (uint32_t i = 0; target && classes && i < net->outputs; i++)
		if (strcmp(target->category[i], classes[i]) != 0)
			fail_at(cx, at, remedy, "class %u is '%.40s' in the schema of the model and '%.40s' in its classes", i,
			        target->category[i], classes[i]);
	return s;
}

/* The error function that the weights were trained with; -1 if absent or unknown. */
static int read_error(Ctx *cx, const SafeFile *f)
{
	const char *name =
		safe_meta(f, "options") ? json_string_value(json_object_get(safe_json(cx, f, "options"), "error")) : NULL;
	for (int i = 0; name && i < ERR_COUNT; i++)
		if (strcmp(error_fns[i].name, name) == 0)
			return i;
	return -1;
}

static void note_unused(Ctx *cx, const SafeFile *f)
{
	enum { SHOWN = 3 };
	uint32_t left = 0;
	for (uint32_t i = 0; i < f->tensors; i++) {
		const Tensor *t = &f->tensor[i];
		if (t->used || strncmp(t->name, "state.", 6) == 0 || strcmp(t->name, "best.weights") == 0)
			continue;
		if (++left <= SHOWN)
			note_at(cx, safe_loc(f, t->name), NULL, "tensor %s is not used: the network has no such links", t->name);
	}
	if (left > SHOWN)
		note(cx, NULL, "%u more tensors of %s are not used", left - SHOWN, f->src->name);
}

/* Content of a checkpoint besides weights, validated before the run is changed. */
typedef struct Rest {
	Options opt;
	Position at, best_at;
	const Tensor *state[MAX_STATE];
	const Tensor *best; /* weights of the best epoch; NULL: none */
	void *best_weights; /* memory for them */
} Rest;

static void rest_read(Run *r, const SafeFile *f, Rest *rest)
{
	Ctx *cx = &r->cx;
	const char *remedy, *wrong;
	read_options(cx, f, &rest->opt);
	wrong = option_set(cx, &rest->opt, "device", option_get(&cx->scratch, &r->opt, "device"), &remedy); /* its own */
	assert(!wrong);
	(void)wrong;
	read_position(cx, f, "", &rest->at);
	const Rule *rule = &rules[rest->opt.rule];
	for (int i = 0; i < rule->states; i++)
		rest->state[i] = vector_find(cx, f, join(&cx->scratch, "state.", rule->state[i]), r->net->links);
	if (!safe_find(f, "best.weights"))
		return;
	rest->best = vector_find(cx, f, "best.weights", r->net->links);
	const Target *target = target_find(rest->opt.target); /* NULL: the run will not start */
	rest->best_weights = arena_alloc(&cx->keep, r->net->links, target && target->f64 ? sizeof(double) : sizeof(float));
	read_position(cx, f, "best_at.", &rest->best_at);
}

/* From the file by chunks, through v: weights (0), or from a vector rule state (1..) or best weights (-1). */
static void links_put(Run *r, const SafeFile *f, int which, WeightReader *weights, const Tensor *vector, double *v)
{
	for (uint64_t i = 0; i < r->net->links; i += CHUNK_LINKS) {
		uint64_t count = net_chunk(r->net, i, CHUNK_LINKS);
		if (weights)
			weights_next(weights, i, count, v);
		for (uint64_t k = 0; vector && k < count; k++)
			v[k] = safe_number(f, vector, i + k);
		if (which < 0)
			best_put(r, i, count, v);
		else
			r->target->set(r->program, which, i, count, v);
		safe_release(f);
	}
}

static void rest_put(Run *r, const SafeFile *f, const Rest *rest, double *v)
{
	const Rule *rule = &rules[rest->opt.rule];
	for (int i = 0; i < rule->states; i++)
		links_put(r, f, 1 + i, NULL, rest->state[i], v);
	if (rest->best) {
		r->best_weights = rest->best_weights;
		links_put(r, f, -1, NULL, rest->best, v);
	}
	r->at = rest->at;
	r->best_at = rest->best_at;
}

/* A run of target cpu that goes on with other bits than the version that wrote the file would have. */
static void note_older(Ctx *cx, const SafeFile *f, const Options *o)
{
	const char *target = safe_meta(f, "target"), *version = safe_meta(f, "version");
	if (safe_meta(f, "arithmetic") || !target || strcmp(target, "cpu") != 0 || !rule_numbers_changed(o))
		return;
	note_at(cx, safe_loc(f, "version"), "train anew if the run is to be repeated bit for bit",
	        "version %s rounded the constants of rule %s twice (doc/arithmetic.md): the rest of the run is more exact, "
	        "with other bits",
	        version ? version : "0.1", rules[o->rule].name);
}

/* The options of the run, restored if it cannot start with those of the file. */
typedef struct Undo {
	Run *r;
	Options opt;
	int error;
} Undo;

static void undo_options(void *arg)
{
	Undo *u = arg;
	if (u->r->program)
		return;
	u->r->opt = u->opt;
	u->r->saved_error = u->error;
}

/* error: the function that the weights were trained with, which must fit the outputs; -1: that of opt. */
static void start_with(Run *r, const Options *opt, int error)
{
	Undo *u = NEW(&r->cx.scratch, 1, Undo);
	*u = (Undo){ r, r->opt, r->saved_error };
	arena_defer(&r->cx.scratch, undo_options, u);
	r->opt = *opt;
	r->saved_error = error;
	run_start(r);
}

/* A network file of version 0.1 states no defaults; its weights fit the network that it described then. */
static void take_older_defaults(Run *r, const SafeFile *f)
{
	const char *fingerprint = safe_meta(f, "network");
	if (!fingerprint || r->net->defaults_stated || strcmp(fingerprint, r->net->fingerprint) == 0)
		return;
	const Net *older = net_reread(&r->cx, r->net, DEFAULTS_1989);
	if (strcmp(fingerprint, older->fingerprint) != 0)
		return;
	note(&r->cx, "begin the topology file with: defaults 1989",
	     "%s was trained with older defaults than %s has now: they are used", f->src->name, r->net->name);
	r->net = older;
}

void checkpoint_read(Run *r, const Src *src, bool resume)
{
	Ctx *cx = &r->cx;
	SafeFile *f = safe_read(cx, src);
	check_format(cx, f, resume);

	take_older_defaults(r, f);
	Rest *rest = NEW(&cx->scratch, 1, Rest);
	Scale scale;
	WeightReader *weights = weights_open(cx, f, r->net);
	read_scale(cx, f, r->net->inputs, &scale);
	const char *const *classes = is_ours(f) ? read_classes(cx, f, r->net->outputs) : NULL;
	Schema *schema = is_ours(f) ? read_schema(cx, f, r->net, classes) : NULL;
	const char *kept = is_ours(f) ? safe_meta(f, "metrics") : NULL;
	Metrics *metrics = kept ? metrics_parse(cx, safe_loc(f, "metrics"), kept, r->net->outputs) : NULL;
	int error = is_ours(f) ? read_error(cx, f) : -1;
	if (resume)
		rest_read(r, f, rest);
	/* from here on only run_start can fail */
	double *v = NEW(&cx->scratch, net_chunk(r->net, 0, CHUNK_LINKS), double);
	start_with(r, resume ? &rest->opt : &r->opt, resume ? -1 : error);
	links_put(r, f, 0, weights, NULL, v);
	r->scale = scale;
	r->classes = classes;
	r->class_count = classes ? r->net->outputs : 0;
	const char *text = schema ? safe_meta(f, "schema") : NULL;
	r->schema = r->schema_of = text ? arena_copy(&cx->keep, text, strlen(text)) : NULL;
	r->parsed_schema = schema;
	r->kept_metrics = metrics;
	if (resume) {
		rest_put(r, f, rest, v);
		note_older(cx, f, &rest->opt);
	} else {
		note_unused(cx, f);
	}
}

/* The length of the header, below 2^32, and its brace. */
static bool looks_safetensors(const Src *head)
{
	return head->len > 8 && !memcmp(head->text + 4, "\0\0\0", 4) && head->text[8] == '{';
}

void checkpoint_load(Run *r, const char *path, bool resume)
{
	if (resume && r->program)
		fail(&r->cx, MP_BAD_INPUT, "resume into a new run", "this run has already started");
	Src *src = src_open_data(&r->cx, &r->cx.scratch, path, looks_safetensors);
	src->binary = true;
	checkpoint_read(r, src, resume);
}

/* ---- the network ---- */

const Src *checkpoint_topology(Ctx *cx, Arena *arena, const Src *src)
{
	if (!safe_looks(src))
		return NULL;
	Src *own = NEW(&cx->scratch, 1, Src);
	*own = *src;
	own->binary = true;
	SafeFile *f = safe_read(cx, own);
	const char *text = safe_meta(f, "topology");
	if (!text)
		fail_at(cx, (Loc){ own, 0 }, "name the topology file before it: FILE.topo WEIGHTS",
		        "this file of weights does not hold the topology of its network");
	Src *topology = NEW(arena, 1, Src);
	topology->name = arena_copy(arena, src->name, strlen(src->name));
	topology->len = strlen(text);
	topology->text = arena_copy(arena, text, topology->len);
	return topology;
}
