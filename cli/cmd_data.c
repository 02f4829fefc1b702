/* SPDX-License-Identifier: MIT */
/* data: describes a file or a built-in set, or writes it in another format, scaled or split. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const Option options[] = {
	{ "make", "SET",
	  "make a built-in set instead of reading a file: xor, parity:N, encoder:N-M, spirals, letters, reber, "
	  "temporal-xor, "
	  "letter-sequences, triangle, past-tense, family-tree, clubs, club-probes, semantics, sentences" },
	{ "split", "SHARE", "cut in two at random: this share (0 to 1) of the examples goes into the first part" },
	{ "scale", "range|zscore", "scale inputs to 0..1 or to mean 0 and deviation 1, fitted on the first part" },
	{ "seed", "N", "random seed of the split and of the built-in set; default 0" },
	{ "words", "FILE", "nettalk: take the words of this list, first pronunciation of each" },
	{ "json", NULL, "print the description as one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop data cases.csv", "describes a file" },
	{ "microprop data cases.csv cases.npz --targets kind", "converts; the column 'kind' is the target" },
	{ "microprop data cases.csv cases.npz --split 0.8 --seed 1 --scale zscore",
	  "writes cases-train.npz and cases-test.npz" },
	{ "microprop data --make parity:4 parity.txt", "writes a built-in set" },
	{ "microprop data nettalk.data words.npz --words nettalk.list", "the NETtalk corpus, the words of a list" },
	{ NULL, NULL },
};

enum { CLASSES_SHOWN = 12 };

/* One part to be written. */
typedef struct Part {
	mp_data *data;
	const char *path;
} Part;

typedef struct Job {
	Args *args;
	const char *in;
	mp_data_options reading;
	const char *scale;
	double share;          /* of --split; 0: not asked for */
	Session s;             /* data: what was read */
	mp_data *first, *rest; /* the two parts of --split */
	Part part[2];
	size_t parts;
} Job;

static void describe_json(Json *j, const mp_data_info *d)
{
	json_text(j, "name", d->name);
	json_count(j, "cases", d->cases);
	json_count(j, "inputs", d->inputs);
	json_count(j, "targets", d->targets);
	json_count(j, "sequences", d->sequences);
	json_number(j, "density", d->density);
	json_number(j, "min", d->min);
	json_number(j, "max", d->max);
	json_number(j, "target_min", d->target_min);
	json_number(j, "target_max", d->target_max);
	json_count(j, "bytes", d->bytes);
	json_count(j, "missing", d->missing);
	json_text(j, "storage", d->storage);
	json_bool(j, "mapped", d->mapped);
	json_bool(j, "weighted", d->weighted);
	json_bool(j, "named", d->named);
	json_text(j, "scale", d->scale);
	json_count(j, "codes", d->codes);
	json_count(j, "classes", d->classes);
	json_open(j, "class_list", '[');
	for (uint32_t i = 0; i < d->classes; i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", d->class_names[i]);
		json_count(j, "cases", d->class_cases[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "extra", '[');
	for (uint32_t i = 0; i < d->extras; i++)
		json_text(j, NULL, d->extra[i]);
	json_close(j, ']');
}

static void describe_classes(const mp_data_info *d)
{
	show(stdout, "classes      %s", format_count(d->classes).s);
	show(stdout, d->classes > CLASSES_SHOWN ? ", the %d most frequent:\n" : "\n", CLASSES_SHOWN);
	for (uint32_t i = 0; i < d->classes && i < CLASSES_SHOWN; i++)
		show(stdout, "  %-24s %12s  %7s\n", d->class_names[i], format_count(d->class_cases[i]).s,
		     format_share((double)d->class_cases[i] / (double)d->cases).s);
}

static void describe_text(const mp_data_info *d)
{
	show(stdout, "%s\n\n", d->name);
	show(stdout, "cases        %s%s%s\n", format_count(d->cases).s, d->weighted ? ", weighted" : "",
	     d->named ? ", named" : "");
	if (d->sequences)
		show(stdout, "sequences    %s\n", format_count(d->sequences).s);
	show(stdout, "inputs       %s, from %s to %s, %s not zero\n", format_count(d->inputs).s, format_real(d->min).s,
	     format_real(d->max).s, format_share(d->density).s);
	if (d->targets)
		show(stdout, "targets      %s, from %s to %s\n", format_count(d->targets).s, format_real(d->target_min).s,
		     format_real(d->target_max).s);
	else
		show(stdout, "targets      none\n");
	if (d->missing)
		show(stdout, "no target    %s values\n", format_count(d->missing).s);
	show(stdout, "stored as    %s, %s in memory%s\n", d->storage, format_bytes(d->bytes).s,
	     d->mapped ? ", the rest mapped" : "");
	if (d->scale && strcmp(d->scale, "none"))
		show(stdout, "scaled       %s\n", d->scale);
	if (d->codes)
		show(stdout, "codes        %s\n", format_count(d->codes).s);
	for (uint32_t i = 0; i < d->extras; i++)
		show(stdout, "%-12s %s\n", i ? "" : "not used", d->extra[i]);
	if (d->classes)
		describe_classes(d);
}

static int info_get(mp_data *data, const mp_data_info **info) { return after_data(data, mp_data_get_info(data, info)); }

/* What was written, or what was read if nothing was. */
static int job_show(Job *job)
{
	const mp_data_info *info;
	Json j = { .f = stdout };
	bool json = args_flag(job->args, "json");
	int rc = info_get(job->parts == 1 ? job->part[0].data : job->s.data, &info);
	if (rc)
		return rc;
	if (json) {
		json_open(&j, NULL, '{');
		describe_json(&j, info);
		json_open(&j, "written", '[');
	} else if (!job->parts)
		describe_text(info);
	for (size_t i = 0; i < job->parts; i++) {
		if ((rc = info_get(job->part[i].data, &info)))
			return rc;
		if (json) {
			json_open(&j, NULL, '{');
			json_text(&j, "file", job->part[i].path);
			json_count(&j, "cases", info->cases);
			json_close(&j, '}');
		} else
			show(stdout, "wrote %s: %s, %s, %s\n", job->part[i].path, format_things(info->cases, "case").s,
			     format_things(info->inputs, "input").s, format_things(info->targets, "target").s);
	}
	if (json) {
		json_close(&j, ']');
		json_end(&j);
	}
	return EXIT_DONE;
}

/* "out.npz" with "-train" in it: "out-train.npz". */
static const char *part_name(Args *a, const char *path, const char *part)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	size_t stem = dot ? (size_t)(dot - path) : strlen(path), n = strlen(path) + strlen(part) + 1;
	char *name = args_alloc(a, n, 1);
	snprintf(name, n, "%.*s%s%s", (int)stem, path, part, path + stem);
	return name;
}

/* Operands and options that fit together; names the files to write. */
static int job_plan(Job *job)
{
	Args *a = job->args;
	const char *make = args_text(a, "make"), *split = args_text(a, "split");
	int used = make ? 0 : 1, outs = a->operands - used;
	job->scale = args_text(a, "scale");
	if (outs < 0) {
		complain("write: microprop data IN, or microprop data --make NAME OUT", "data needs a file to read");
		return EXIT_USAGE;
	}
	if (split) {
		char *end = NULL;
		job->share = strtod(split, &end);
		if (end == split || *end || !(job->share > 0 && job->share < 1)) {
			complain("write a share between 0 and 1, such as --split 0.8", "--split: '%s' is not a share", split);
			return EXIT_USAGE;
		}
	}
	if (!outs && (split || job->scale)) {
		complain("write: microprop data IN OUT --split 0.8", "--split and --scale need a file to write to");
		return EXIT_USAGE;
	}
	if (outs > (split ? 2 : 1)) {
		complain("two files are written only with --split", "'%s' is one file too many", a->operand[a->operands - 1]);
		return EXIT_USAGE;
	}
	job->parts = !outs ? 0 : split ? 2 : 1;
	for (int i = 0; i < outs; i++)
		job->part[i].path = a->operand[used + i];
	if (split && outs == 1) {
		job->part[1].path = part_name(a, job->part[0].path, "-test");
		job->part[0].path = part_name(a, job->part[0].path, "-train");
	}
	job->in = make ? make : a->operand[0];
	if (make && strncmp(make, "make:", 5)) {
		size_t n = strlen(make) + 6;
		char *name = args_alloc(a, n, 1);
		snprintf(name, n, "make:%s", make);
		job->in = name;
	}
	for (size_t i = 0; i < job->parts; i++)
		if (!make && overwrite_check(job->in, job->part[i].path))
			return EXIT_USAGE;
	if (job->parts == 2 && !strcmp(job->part[0].path, job->part[1].path)) {
		complain("name two files", "both parts would go to %s", job->part[0].path);
		return EXIT_USAGE;
	}
	job->reading.words = args_text(a, "words");
	return args_count(a, "seed", &job->reading.seed) ? EXIT_DONE : EXIT_USAGE;
}

static int job_write(Job *job)
{
	int rc = EXIT_DONE;
	job->part[0].data = job->s.data;
	if (job->share > 0) {
		mp_status status = mp_data_split(job->s.data, job->share, job->reading.seed, &job->first, &job->rest);
		if ((rc = after_data(job->rest ? job->rest : job->first, status)))
			return rc;
		job->part[0].data = job->first;
		job->part[1].data = job->rest;
	}
	mp_data *fitted = job->part[0].data;
	if (job->scale)
		rc = after_data(fitted, mp_data_scale(fitted, job->scale, job->rest));
	for (size_t i = 0; !rc && i < job->parts; i++) {
		Part *p = &job->part[i];
		rc = after_data(p->data, mp_data_save(p->data, p->path));
	}
	return rc;
}

static int data_run(Args *a)
{
	Job job = { .args = a };
	int rc = session_reading(a, true, &job.reading) ? job_plan(&job) : EXIT_USAGE;
	if (!rc)
		rc = session_data(&job.s.data, job.in, &job.reading);
	if (!rc)
		rc = job_write(&job);
	if (!rc)
		rc = job_show(&job);
	mp_data_close(job.first);
	mp_data_close(job.rest);
	session_close(&job.s);
	return rc;
}

const Command data_command = {
	.name = "data",
	.operands = "IN [OUT [OUT2]]",
	.least = 0,
	.most = 3,
	.summary = "describe, convert, split or scale data",
	.about = "With one file, describes it: cases, inputs, targets, sequences, range, class balance. With two, "
			 "converts IN to OUT; the format of OUT follows from its name: .npz, .npy, .csv, .txt or .idx. With "
			 "--split two files are written: OUT and OUT2, or OUT with -train and -test in its name. With --make "
			 "there is no IN.",
	.group = groups,
	.example = examples,
	.run = data_run,
};
