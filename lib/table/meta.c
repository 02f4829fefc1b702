/* SPDX-License-Identifier: MIT */
/* JSON in the metadata of a model.  In: its text, from any file.  Out: a tree, or an error with a place. */
#include <jansson.h>
#include <string.h>

#include "table.h"

void meta_wrong(const MetaReader *r, const char *why)
{
	fail_at(r->cx, r->at, "use the file as microprop wrote it, or train anew", "the model holds a damaged %s: %s",
	        r->what, why);
}

static void free_tree(void *tree) { json_decref(tree); }

json_t *meta_read(const MetaReader *r, const char *json, int version)
{
	json_error_t error;
	json_t *tree = json_loads(json, 0, &error);
	if (!tree)
		meta_wrong(r, "it is not JSON");
	arena_defer(&r->cx->scratch, free_tree, tree);
	if (json_integer_value(json_object_get(tree, "version")) != version)
		fail_at(r->cx, r->at, "use a newer microprop", "the %s that the model holds is of another version", r->what);
	return tree;
}

int meta_word(const MetaReader *r, const json_t *v, const char *const *words, int count, const char *why)
{
	const char *word = json_string_value(v);
	for (int i = 0; word && i < count; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	meta_wrong(r, why);
}
