/* SPDX-License-Identifier: MIT */
/* NETtalk in the page: a network that learns to read aloud, kept at several stages of learning, and words that it
 * transcribes at any of them.
 *
 * In: the set of letters in the program, or the corpus (--data); words of a query. Out: sounds and stresses by letter,
 * with the outputs. One thread trains; a second run, of the thread that answers, computes outputs with the weights of
 * a stage. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

enum { WINDOW = 7, SYMBOLS = 29, INPUTS = WINDOW * SYMBOLS, TARGETS = 26, BLANK = 26, MOST_LETTERS = 200 };

/* When the weights are kept: after so many updates, then after so many passes through the data. */
static const unsigned first_updates[] = { 0, 5, 20, 60, 150, 400 }, then_passes[] = { 1, 2, 4, 8, 15, 30 };
enum { FIRST = COUNT(first_updates), STAGES = FIRST + COUNT(then_passes) };

typedef struct Stage {
	uint64_t updates;
	double error, right;
	double *w;
} Stage;

struct Talk {
	pthread_mutex_t lock; /* of the stages */
	Session s, second;    /* trained; and what computes outputs */
	Stage stage[STAGES];
	uint32_t stages;
	uint64_t links;
	uint64_t epoch; /* updates of a pass */
	uint32_t seed;
	bool started; /* of the thread that answers */
	bool training, stop;
	pthread_t thread;
	char name[200], error[400];
};

static void sessions_close(Talk *t)
{
	session_close(&t->s);
	session_close(&t->second);
	for (uint32_t i = 0; i < STAGES; i++)
		free(t->stage[i].w);
}

static void talk_end(Talk *t)
{
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_mutex_unlock(&t->lock);
	if (t->started)
		pthread_join(t->thread, NULL);
	t->started = false;
}

void talk_close(Talk *t)
{
	if (!t)
		return;
	talk_end(t);
	sessions_close(t);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- training -------------------------------------------------------------------------------------- */

/* Updates of a stage; more than those of the one before, however small the data is. */
static uint64_t stage_updates(const Talk *t, uint32_t stage)
{
	uint64_t updates = stage < FIRST ? first_updates[stage] : then_passes[stage - FIRST] * t->epoch;
	uint64_t least = stage ? t->stage[stage - 1].updates + 1 : 0;
	return updates > least ? updates : least;
}

static bool stage_keep(Talk *t)
{
	mp_result now = { .size = sizeof now };
	double *w = calloc(t->links, sizeof *w);
	bool kept = w && mp_run_get_weights(t->s.run, w, t->links) == MP_OK &&
	            mp_run_test(t->s.run, t->s.data, &now, NULL) == MP_OK;
	if (!kept) {
		free(w);
		return false;
	}
	pthread_mutex_lock(&t->lock);
	t->stage[t->stages] = (Stage){ stage_updates(t, t->stages), now.error, now.right, w };
	t->stages++;
	pthread_mutex_unlock(&t->lock);
	return true;
}

static uint32_t stages_kept(Talk *t)
{
	pthread_mutex_lock(&t->lock);
	uint32_t kept = t->stages;
	pthread_mutex_unlock(&t->lock);
	return kept;
}

static int report_stop(void *user, mp_run *run, const mp_report *r)
{
	Talk *t = user;
	(void)run;
	(void)r;
	pthread_mutex_lock(&t->lock);
	bool stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

/* Trains to the next stage; the last, and one that fails, end training. */
static void stage_train(Talk *t)
{
	char limit[24];
	bool goes_on = !t->stages;
	if (t->stages && t->stages < STAGES) {
		snprintf(limit, sizeof limit, "%llu", (unsigned long long)stage_updates(t, t->stages));
		goes_on = mp_run_set(t->s.run, "updates", limit) == MP_OK &&
		          mp_run_train(t->s.run, t->s.data, NULL, report_stop, t) == MP_OK && !report_stop(t, NULL, NULL);
	}
	goes_on = goes_on && stage_keep(t) && t->stages < STAGES;
	pthread_mutex_lock(&t->lock);
	t->training = goes_on;
	pthread_mutex_unlock(&t->lock);
}

static void *talk_run(void *user)
{
	Talk *t = user;
	do
		stage_train(t);
	while (t->training);
	return NULL;
}

/* A data set of the corpus's shape; NULL: it is not one. */
static mp_data *corpus_open(const char *name)
{
	mp_data *data = NULL;
	const mp_data_info *info;
	if (mp_data_open(&data, name, NULL, NULL) == MP_OK && mp_data_get_info(data, &info) == MP_OK &&
	    info->inputs == INPUTS && info->targets == TARGETS && info->codes)
		return data;
	mp_data_close(data);
	return NULL;
}

static bool talk_prepare(Page *p, Talk *t)
{
	static const char *const options[][2] = {
		{ "threads", "1" }, { "epochs", "0" }, { "until", "never" }, { "updates", "1" }
	};
	char seed[20];
	const char *name = p->data ? p->data : "make:letters";
	t->s.data = corpus_open(name);
	if (!t->s.data)
		t->s.data = corpus_open(name = "make:letters");
	t->second.data = t->s.data ? corpus_open(name) : NULL; /* a handle for each thread */
	snprintf(t->name, sizeof t->name, "%s", name);
	snprintf(seed, sizeof seed, "%u", t->seed);
	bool made = t->s.data && t->second.data;
	for (int k = 0; k < 2 && made; k++) {
		Session *s = k ? &t->second : &t->s;
		made = !session_net(s, "example:letters", NULL) && mp_run_new(&s->run, s->net, NULL) == MP_OK;
		for (size_t i = 0; i < COUNT(options) && made; i++)
			made = mp_run_set(s->run, options[i][0], options[i][1]) == MP_OK;
		made = made && mp_run_set(s->run, "seed", seed) == MP_OK;
	}
	if (!made)
		snprintf(t->error, sizeof t->error, "%s", t->s.run ? mp_run_messages(t->s.run) : "the network cannot be made");
	else
		t->links = mp_net_get_info(t->s.net)->connections;
	const mp_data_info *info;
	uint64_t batch = made ? strtoull(mp_run_get(t->s.run, "batch"), NULL, 10) : 0;
	if (batch && mp_data_get_info(t->s.data, &info) == MP_OK)
		t->epoch = (info->cases + batch - 1) / batch;
	return made;
}

void talk_train_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	if (p->trains) {
		answer_error(a, 409, "this process trains a run; NETtalk is in the page of: microprop view");
		return;
	}
	uint32_t seed = p->talk ? p->talk->seed + 1 : 1;
	talk_close(p->talk);
	Talk *t = p->talk = calloc(1, sizeof *t);
	(void)q;
	if (!t) {
		answer_error(a, 500, "out of memory");
		return;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->seed = seed;
	if (!talk_prepare(p, t)) {
		answer_error(a, 409, "%s", t->error);
		return;
	}
	t->training = true;
	t->started = !pthread_create(&t->thread, NULL, talk_run, t); /* without threads talk_answer does it */
	answer_empty(a);
}

void talk_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	Talk *t = p->talk;
	(void)q;
	if (t && !t->started && t->training) /* no other thread writes the latter then */
		stage_train(t);
	if (!answer_begin(a, &j))
		return;
	if (t)
		pthread_mutex_lock(&t->lock);
	json_text(&j, "data", t ? t->name : NULL);
	json_bool(&j, "training", t && t->training);
	json_count(&j, "seed", t ? t->seed : 0);
	json_count(&j, "epoch", t ? t->epoch : 0);
	json_open(&j, "stages", '[');
	for (uint32_t i = 0; t && i < t->stages; i++) {
		json_open(&j, NULL, '{');
		json_count(&j, "updates", t->stage[i].updates);
		json_number(&j, "error", t->stage[i].error);
		json_number(&j, "right", t->stage[i].right);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	if (t)
		pthread_mutex_unlock(&t->lock);
	answer_end(&j, a);
}

/* ---- words ------------------------------------------------------------------------------------------- */

typedef struct Letters {
	char letter[MOST_LETTERS];
	uint32_t word[MOST_LETTERS], place[MOST_LETTERS], length[MOST_LETTERS]; /* of its word */
	uint32_t count, words;
} Letters;

/* Letters a to z, in words. */
static void letters_read(Letters *l, const char *text)
{
	uint32_t begin = 0;
	for (;; text++) {
		bool letter = isalpha((unsigned char)*text) && l->count < MOST_LETTERS;
		if (letter) {
			l->letter[l->count] = (char)tolower((unsigned char)*text);
			l->word[l->count] = l->words;
			l->place[l->count] = l->count - begin;
			l->count++;
		} else if (l->count > begin) {
			for (uint32_t i = begin; i < l->count; i++)
				l->length[i] = l->count - begin;
			begin = l->count;
			l->words++;
		}
		if (!*text || l->count == MOST_LETTERS)
			break;
	}
	for (uint32_t i = begin; i < l->count; i++)
		l->length[i] = l->count - begin;
	l->words += l->count > begin;
}

static void window_fill(const Letters *l, uint32_t i, float *x)
{
	for (int k = 0; k < WINDOW; k++) {
		int at = (int)l->place[i] + k - WINDOW / 2;
		bool inside = at >= 0 && at < (int)l->length[i];
		int symbol = inside ? l->letter[(int)i + k - WINDOW / 2] - 'a' : BLANK;
		x[k * SYMBOLS + symbol] = 1;
	}
}

/* The first case of a word of the data; UINT64_MAX: it is not there. */
static uint64_t word_find(Talk *t, const char *word, size_t len)
{
	const mp_data_info *info;
	if (mp_data_get_info(t->second.data, &info) != MP_OK)
		return UINT64_MAX;
	for (uint64_t i = 0; i < info->cases; i++) {
		const char *name = mp_data_get_name(t->second.data, i);
		if (!strncmp(name, word, len) && !strcmp(name + len, "/0"))
			return i;
	}
	return UINT64_MAX;
}

static void letter_json(Json *j, Talk *t, const Letters *l, uint32_t i, const double *out, uint64_t known)
{
	float y[TARGETS];
	double target[TARGETS];
	char letter[2] = { l->letter[i], '\0' };
	json_open(j, NULL, '{');
	json_text(j, "letter", letter);
	json_text(j, "code", mp_data_get_guess(t->second.data, out));
	if (known != UINT64_MAX) {
		mp_data_get_case(t->second.data, known + l->place[i], NULL, y);
		for (int k = 0; k < TARGETS; k++)
			target[k] = (double)y[k];
		json_text(j, "target", mp_data_get_guess(t->second.data, target));
	}
	json_open(j, "outputs", '[');
	for (int k = 0; k < TARGETS; k++)
		json_number(j, NULL, (double)(int)(out[k] * 1000 + 0.5) / 1000);
	json_close(j, ']');
	json_close(j, '}');
}

static void words_json(Json *j, Talk *t, const Letters *l, const double *out)
{
	uint64_t known = UINT64_MAX;
	json_open(j, "words", '[');
	for (uint32_t i = 0; i < l->count; i++) {
		if (!l->place[i]) {
			known = word_find(t, l->letter + i, l->length[i]);
			json_open(j, NULL, '[');
		}
		letter_json(j, t, l, i, out + (size_t)i * TARGETS, known);
		if (l->place[i] + 1 == l->length[i])
			json_close(j, ']');
	}
	json_close(j, ']');
}

/* Outputs of all letters with the weights of a stage. */
static bool letters_run(Talk *t, uint32_t stage, const Letters *l, float *x, double *out)
{
	mp_data *data = NULL;
	for (uint32_t i = 0; i < l->count; i++)
		window_fill(l, i, x + (size_t)i * INPUTS);
	pthread_mutex_lock(&t->lock);
	mp_status status = mp_run_set_weights(t->second.run, t->stage[stage].w, t->links);
	pthread_mutex_unlock(&t->lock);
	if (status == MP_OK)
		status = mp_data_new(&data, l->count, INPUTS, 0, x, NULL, NULL, 0, NULL);
	if (status == MP_OK)
		status = mp_run_test(t->second.run, data, NULL, out);
	mp_data_close(data);
	return status == MP_OK;
}

void talk_words_answer(Page *p, const ViewRequest *q, ViewAnswer *a)
{
	Json j;
	Talk *t = p->talk;
	const char *text = q->argument(q, "text");
	uint64_t stage = query_count(q, "stage", 0);
	Letters l = { 0 };
	letters_read(&l, text ? text : "");
	if (!t || stage >= stages_kept(t)) {
		answer_error(a, 409, "the network has not learnt so far");
		return;
	}
	if (!l.count) {
		answer_error(a, 400, "type words of the letters a to z");
		return;
	}
	float *x = calloc((size_t)l.count * INPUTS, sizeof *x);
	double *out = calloc((size_t)l.count * TARGETS, sizeof *out);
	if (x && out && letters_run(t, (uint32_t)stage, &l, x, out)) {
		if (answer_begin(a, &j)) {
			json_count(&j, "stage", stage);
			words_json(&j, t, &l, out);
			answer_end(&j, a);
		}
	} else {
		answer_error(a, 500, "%s", mp_run_messages(t->second.run));
	}
	free(x);
	free(out);
}
