/* SPDX-License-Identifier: MIT */
/* Public calls on tables, and on models that were trained on one. */
#include "microprop/table.h"

#include <string.h>

#include "api.h"

struct mp_table {
	Ctx cx;
	Frame *table; /* NULL if reading failed */
	Schema *schema;
	uint8_t *part; /* of every row; NULL: not cut */
	uint64_t cases[2];
	bool balance;
	mp_table_info info;
	mp_column column;
};

typedef struct TableArgs {
	mp_table *t;
	const char *path, *task;
	const mp_data_options *options;
	const mp_cut *cut;
	const mp_topology *network;
	mp_write_fn *write;
	void *user;
} TableArgs;

static int task_find(Ctx *cx, const char *name)
{
	if (!name || strcmp(name, "auto") == 0)
		return TASK_NONE;
	if (strcmp(name, task_names[TASK_CLASSES]) == 0)
		return TASK_CLASSES;
	if (strcmp(name, task_names[TASK_REGRESSION]) != 0)
		fail(cx, MP_BAD_INPUT, "it is auto, classes or regression", "there is no task '%.40s'", name);
	return TASK_REGRESSION;
}

static void options_take(Ctx *cx, mp_data_options *own, const mp_data_options *given)
{
	*own = (mp_data_options){ .size = sizeof *own };
	if (given && !api_take(own, sizeof *own, given))
		fail(cx, MP_BAD_INPUT, "set mp_data_options.size to sizeof(mp_data_options), and the rest to 0",
		     "these data options are not of this version of the library");
}

/* -1: by what the inputs are. */
static int input_scale(Ctx *cx, const char *name)
{
	int scale = name ? scale_find((Text){ name, (uint32_t)strlen(name) }) : -1;
	if (name && scale < 0)
		fail(cx, MP_BAD_INPUT, "scale with range (to 0..1) or zscore (mean 0, deviation 1), or write none",
		     "there is no scale '%.40s'", name);
	return scale;
}

static void open_body(void *arg)
{
	TableArgs *a = arg;
	Ctx *cx = &a->t->cx;
	mp_data_options own;
	Buf decisions = { .arena = &cx->keep };
	buf_puts(&decisions, "");
	options_take(cx, &own, a->options);
	int scale = input_scale(cx, own.scale);
	own.scale = NULL;
	Frame *t = table_open(cx, a->path, &own, NULL);
	Schema *s = schema_infer(cx, t, &(InferOptions){ task_find(cx, a->task), scale, &decisions });
	a->t->table = t;
	a->t->schema = s;
	a->t->info = (mp_table_info){ .size = sizeof a->t->info,
		                          .name = t->name,
		                          .task = task_names[s->task],
		                          .decisions = decisions.s,
		                          .rows = t->rows,
		                          .columns = s->columns,
		                          .inputs = s->inputs,
		                          .targets = s->targets };
	for (uint32_t i = 0; i < s->columns; i++)
		if (s->column[i].role == COLUMN_FOLD)
			a->t->info.folds = t->column[i].words.count;
}

mp_status mp_table_open(mp_table **table, const char *path, const mp_data_options *options, const char *task,
                        const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)table, sizeof **table, alloc);
	if (s != MP_OK)
		return s;
	return api_call(&(*table)->cx, open_body,
	                &(TableArgs){ .t = *table, .path = path, .options = options, .task = task });
}

void mp_table_close(mp_table *table) { api_close(table, sizeof *table); }

const char *mp_table_messages(const mp_table *table) { return api_messages(table); }

const mp_error *mp_table_get_error(const mp_table *table, size_t i) { return api_error(table, i); }

const mp_table_info *mp_table_get_info(const mp_table *table) { return &table->info; }

static const mp_column *column_show(const Schema *s, uint32_t i, mp_column *show)
{
	if (!s || i >= s->columns)
		return NULL;
	const Field *c = &s->column[i];
	bool unit = c->role == COLUMN_INPUT || c->role == COLUMN_TARGET;
	*show = (mp_column){ .size = sizeof *show,
		                 .name = c->name,
		                 .role = column_roles[c->role],
		                 .kind = unit ? value_kinds[c->kind] : NULL,
		                 .units = c->units,
		                 .categories = c->category,
		                 .category_count = c->categories,
		                 .offset = unit && c->kind == VALUE_NUMBER ? c->offset : 0,
		                 .factor = unit && c->kind == VALUE_NUMBER ? c->factor : 1,
		                 .indicator = c->indicator,
		                 .plain = s->plain };
	return show;
}

const mp_column *mp_table_get_column(mp_table *table, uint32_t i)
{
	return column_show(table->schema, i, &table->column);
}

/* ---- parts ---- */

static void cut_body(void *arg)
{
	TableArgs *a = arg;
	Ctx *cx = &a->t->cx;
	mp_cut own;
	if (!a->t->table)
		fail(cx, MP_BAD_INPUT, "check what mp_table_open returned", "this table could not be read");
	if (!api_take(&own, sizeof own, a->cut))
		fail(cx, MP_BAD_INPUT, "set mp_cut.size to sizeof(mp_cut)", "this cut is not of this version of the library");
	if (!(own.share >= 0 && own.share < 1))
		fail(cx, MP_BAD_INPUT, "give a share from 0 up, less than 1, such as 0.2", "%g of the rows cannot be held out",
		     own.share);
	if (own.folds == 1 || (own.folds && own.fold >= own.folds) || own.folds > a->t->table->rows)
		fail(cx, MP_BAD_INPUT, "give 2 folds or more, at most one for each row", "there cannot be %u folds", own.folds);
	Cut cut = { own.share, own.folds, own.fold, own.seed, own.stratify, !a->t->part };
	if (own.balance && a->t->schema->task != TASK_CLASSES && a->t->schema->task != TASK_BINARY)
		fail(cx, MP_BAD_INPUT, "leave it out", "only classes can be balanced, and the target of %s is a number",
		     a->t->table->name);
	a->t->balance = own.balance;
	a->t->part = table_cut(cx, a->t->table, a->t->schema, &cut);
	schema_fit(cx, a->t->schema, a->t->table, a->t->part);
	a->t->info.inputs = a->t->schema->inputs;
	memset(a->t->cases, 0, sizeof a->t->cases);
	for (uint64_t i = 0; i < a->t->table->rows; i++)
		if (a->t->part[i] != PART_DROPPED)
			a->t->cases[a->t->part[i]]++;
}

typedef struct PartArgs {
	mp_data *d;
	const mp_table *t;
	int which;
} PartArgs;

static void part_body(void *arg)
{
	PartArgs *a = arg;
	const Data *d = a->d->data = table_encode(&a->d->cx, a->t->table, a->t->schema, a->t->part, a->which);
	bool counts = !d->weight || a->which != PART_TRAIN;
	for (uint64_t i = 0; !counts && i < d->cases; i++)
		counts = d->weight[i] > 0;
	if (!counts)
		fail(&a->d->cx, MP_BAD_INPUT, "give more cases a weight above 0",
		     "all %llu cases to train on have the weight 0", (unsigned long long)d->cases);
	if (a->t->balance && a->which == PART_TRAIN)
		data_balance(&a->d->cx, a->d->data);
}

static mp_status part_new(const mp_table *t, int which, mp_data **data)
{
	mp_allocator same = { sizeof same, t->cx.alloc.resize, t->cx.alloc.user };
	mp_status s = api_handle((void **)data, sizeof **data, &same);
	return s != MP_OK ? s : api_call(&(*data)->cx, part_body, &(PartArgs){ *data, t, which });
}

typedef struct RefuseArgs {
	mp_table *t;
	mp_status status;
	const mp_data *part;
} RefuseArgs;

/* A part that failed: the message is the table's, too. */
static void refuse_body(void *arg)
{
	RefuseArgs *a = arg;
	const mp_error *e = api_error(a->part, 0);
	fail(&a->t->cx, a->status, e ? e->remedy : NULL, "%s", e ? e->text : "this table cannot be cut");
}

mp_status mp_table_cut(mp_table *table, const mp_cut *cut, mp_data **train, mp_data **held_out)
{
	*train = *held_out = NULL;
	mp_data **part = train;
	mp_status s = api_call(&table->cx, cut_body, &(TableArgs){ .t = table, .cut = cut });
	if (s != MP_OK)
		return s;
	s = part_new(table, PART_TRAIN, train);
	if (s == MP_OK && table->cases[PART_HELD_OUT]) {
		part = held_out;
		s = part_new(table, PART_HELD_OUT, held_out);
	}
	return s == MP_OK ? s : api_call(&table->cx, refuse_body, &(RefuseArgs){ table, s, *part });
}

static void topology_body(void *arg)
{
	TableArgs *a = arg;
	Ctx *cx = &a->t->cx;
	Buf out = { .arena = &cx->scratch };
	mp_topology own;
	if (!a->t->part)
		fail(cx, MP_BAD_INPUT, "call mp_table_cut before", "this table is not cut");
	if (!api_take(&own, sizeof own, a->network))
		fail(cx, MP_BAD_INPUT, "set mp_topology.size to sizeof(mp_topology)",
		     "this topology is not of this version of the library");
	topology_print(cx, a->t->schema,
	               &(NetworkFor){ a->t->table->name, a->t->cases[PART_TRAIN], a->t->table->rows,
	                              a->t->cases[PART_HELD_OUT] > 0, own.hidden, own.function },
	               &out);
	a->write(a->user, out.s, out.len);
}

mp_status mp_table_topology(mp_table *table, const mp_topology *network, mp_write_fn *write, void *user)
{
	return api_call(&table->cx, topology_body,
	                &(TableArgs){ .t = table, .network = network, .write = write, .user = user });
}

typedef struct EncodeArgs {
	mp_data *d;
	const mp_table *t;
	const char *path;
	const mp_data_options *options;
} EncodeArgs;

static void encode_body(void *arg)
{
	EncodeArgs *a = arg;
	Ctx *cx = &a->d->cx;
	mp_data_options own;
	options_take(cx, &own, a->options);
	if (!a->t->part)
		fail(cx, MP_BAD_INPUT, "call mp_table_cut before", "this table is not cut");
	Frame *t = table_open(cx, a->path, &own, a->t->schema);
	a->d->data = table_encode(cx, t, a->t->schema, NULL, 0);
}

mp_status mp_table_encode(mp_table *table, const char *path, const mp_data_options *options, mp_data **data)
{
	mp_allocator same = { sizeof same, table->cx.alloc.resize, table->cx.alloc.user };
	mp_status s = api_handle((void **)data, sizeof **data, &same);
	return s != MP_OK ? s : api_call(&(*data)->cx, encode_body, &(EncodeArgs){ *data, table, path, options });
}

/* ---- models ---- */

typedef struct ForArgs {
	mp_data *d;
	const char *path, *schema;
	const mp_data_options *options;
	const Net *net;
} ForArgs;

/* Input and target groups, as option groups has them. */
static const char *groups_text(Arena *a, const Net *net)
{
	Buf b = { .arena = a };
	for (int role = ROLE_INPUT; role <= ROLE_OUTPUT; role += ROLE_OUTPUT - ROLE_INPUT) {
		if (role == ROLE_OUTPUT)
			buf_puts(&b, ">");
		for (uint32_t i = 0; i < net->groups; i++)
			if (net->group[i].role == role)
				buf_printf(&b, "%s%s:%u", b.len && b.s[b.len - 1] != '>' ? "," : "", net->group[i].name,
				           net->group[i].size);
	}
	return b.s;
}

static void for_body(void *arg)
{
	ForArgs *a = arg;
	Ctx *cx = &a->d->cx;
	mp_data_options own;
	options_take(cx, &own, a->options);
	own.groups = own.groups ? own.groups : groups_text(&cx->keep, a->net);
	const char *text = a->schema ? a->schema : own.like && own.like->data ? own.like->data->schema : NULL;
	const Schema *s = text ? schema_parse(cx, (Loc){ 0 }, text) : NULL;
	if (!s || s->plain)
		api_data_open(a->d, a->path, &own, s);
	else
		a->d->data = table_encode(cx, table_open(cx, a->path, &own, s), s, NULL, 0);
}

mp_status mp_data_open_for(mp_data **data, const char *path, const mp_run *run, const mp_data_options *options,
                           const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)data, sizeof **data, alloc);
	return s != MP_OK ? s : api_call(&(*data)->cx, for_body, &(ForArgs){ *data, path, run->schema, options, run->net });
}

typedef struct RunArgs {
	Run *r;
	uint32_t i;
	const mp_column *column;
	const char *task;
} RunArgs;

/* Parsed once for each text. */
const Schema *run_schema(Run *r)
{
	if (r->schema && r->schema_of != r->schema) {
		r->parsed_schema = schema_parse(&r->cx, (Loc){ 0 }, r->schema);
		r->schema_of = r->schema;
	}
	return r->schema ? r->parsed_schema : NULL;
}

static void column_body(void *arg)
{
	RunArgs *a = arg;
	mp_column *show = NEW(&a->r->cx.keep, 1, mp_column);
	a->column = column_show(run_schema(a->r), a->i, show);
	if (a->column && show->plain && a->r->classes && show->kind && !strcmp(show->kind, value_kinds[VALUE_CATEGORY])) {
		show->categories = a->r->classes;
		show->units = show->category_count = a->r->class_count;
	}
}

const mp_column *mp_run_get_column(mp_run *run, uint32_t i)
{
	RunArgs a = { .r = run, .i = i };
	return api_call(&run->cx, column_body, &a) == MP_OK ? a.column : NULL;
}

double mp_run_decode(mp_run *run, uint32_t output, double value)
{
	const Schema *s = run->schema_of ? run->parsed_schema : NULL;
	if (!s && run->schema && mp_run_get_column(run, 0))
		s = run->parsed_schema;
	const Field *c = s && s->task == TASK_REGRESSION ? schema_target(s, output) : NULL;
	return c ? target_decode(c, value) : value;
}

static void best_body(void *arg)
{
	Run *r = ((RunArgs *)arg)->r;
	if (!r->best_weights || !r->best_at.epoch)
		return;
	double *w = NEW(&r->cx.scratch, net_chunk(r->net, 0, CHUNK_LINKS), double);
	for (uint64_t first = 0; first < r->net->links; first += CHUNK_LINKS) {
		uint64_t count = net_chunk(r->net, first, CHUNK_LINKS);
		for (uint64_t i = 0; i < count; i++)
			w[i] = best_weight(r, first + i);
		r->target->set(r->program, 0, first, count, w);
	}
	run_fingerprint(r, r->fingerprint);
}

mp_status mp_run_use_best(mp_run *run) { return api_call(&run->cx, best_body, &(RunArgs){ .r = run }); }

static void task_body(void *arg)
{
	RunArgs *a = arg;
	const Schema *s = run_schema(a->r);
	a->task = s && !s->plain ? task_names[s->task] : NULL;
}

const char *mp_run_get_task(mp_run *run)
{
	RunArgs a = { .r = run };
	return api_call(&run->cx, task_body, &a) == MP_OK ? a.task : NULL;
}
