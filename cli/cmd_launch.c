/* SPDX-License-Identifier: MIT */
/* launch: starts a training command, watches it, and restarts it from its last checkpoint when a process dies or
 * hangs. Prints the output of the attempt that finished: the same bits as of an undisturbed run.
 *
 * One process is started directly, several by mpirun. While they load, all processes send heartbeats, then rank 0
 * does between updates (heartbeat.c); if these stop, all are killed. Launch gives up after several attempts in a row
 * that make no progress, and after two in which no process started. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined __linux__
#include <sys/prctl.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

enum { POLL_MS = 20, GRACE = 5, MOST_NAME = 253 };
enum { NORMAL_STEPS = 20 }; /* a step that takes this many times the longest so far is late */

static const Option options[] = {
	{ "ranks", "N", "processes, -n for short; default 1, which needs no MPI" },
	{ "mpirun", "COMMAND", "starts several; default mpirun.openmpi, mpirun.mpich or mpirun, the first found" },
	{ "hosts", "LIST", "HOST[:SLOTS],... for mpirun; those that stop answering are dropped, with their ranks" },
	{ "check", "COMMAND",
	  "checks that a host answers: a program and its arguments, with blanks between and the host's name as the last; "
	  "default ssh HOST true" },
	{ "deadline", "SECONDS",
	  "kill the processes after this long without a heartbeat; default 60, or twenty times the longest step so far" },
	{ "tries", "N", "give up after N attempts without progress; default 5" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop launch -- train net.topo --run runs/1 --every 30", "one process, restarted whenever it dies" },
	{ "microprop launch -n 4 -- train net.topo --batch 4096 --run runs/1", "four ranks on this host" },
	{ "microprop launch -n 8 --hosts a:4,b:4 -- train net.topo --run runs/1",
	  "two hosts; if one is lost, four ranks go on" },
	{ NULL, NULL },
};

typedef struct Launch {
	Args *args;
	uint64_t ranks, tries;
	double deadline;
	const char *program; /* this one's file */
	const char *mpirun, *check;
	char **host;     /* [hosts] */
	uint64_t *slots; /* [hosts] */
	size_t hosts;
	const char *checkpoint;   /* that the next attempt resumes */
	bool every;               /* the command has --every */
	char heartbeat[PATH_MAX]; /* file of the heartbeats */
	double slowest;           /* time between two steps, so far */
	Heartbeat last;           /* as last read */
	int refusal;
	uint64_t refusals;       /* status of attempts in a row in which no process started, and their number */
	uint64_t attempts, idle; /* all; in a row without progress */
	uint64_t diverged;       /* in a row that diverged */
	struct stat seen;        /* the checkpoint before the attempt */
	int output;              /* file with the output of the attempt; -1: it prints to our stdout */
} Launch;

static volatile sig_atomic_t launch_signal, launch_signals; /* the last one, and how many */

static void signal_note(int number)
{
	launch_signal = number;
	launch_signals++;
}

/* Forks with signals blocked, so that none is lost before exec. */
static pid_t child_start(void)
{
	sigset_t before;
	signals_block(&before);
	fflush(NULL);
	pid_t pid = fork();
	if (!pid)
		signals_default();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* ---- what to start ---- */

static const char *train_option(const Launch *l, const char *name)
{
	size_t n = strlen(name);
	for (int i = 1; i < l->args->operands; i++) {
		const char *word = l->args->operand[i];
		if (strncmp(word, "--", 2) || strncmp(word + 2, name, n))
			continue;
		if (word[2 + n] == '=')
			return word + 3 + n;
		if (!word[2 + n])
			return i + 1 < l->args->operands ? l->args->operand[i + 1] : "";
	}
	return NULL;
}

static char *join(Args *a, const char *one, const char *two)
{
	size_t size = strlen(one) + strlen(two) + 1;
	char *both = args_alloc(a, size, 1);
	snprintf(both, size, "%s%s", one, two);
	return both;
}

static bool command_check(Launch *l)
{
	const char *run = train_option(l, "run"), *save = train_option(l, "save");
	if (strcmp(l->args->operand[0], "train")) {
		complain("write: microprop launch [OPTIONS] -- train ...", "launch starts training, not '%s'",
		         l->args->operand[0]);
		return false;
	}
	if (train_option(l, "restarts")) {
		complain("choose the seed with 'microprop train ... --restarts N', then start launch with --seed",
		         "many seeds have no checkpoint from which they could go on");
		return false;
	}
	l->every = train_option(l, "every");
	if (run)
		l->checkpoint = join(l->args, run, "/last.safetensors");
	else if (save)
		l->checkpoint = save;
	if (l->checkpoint)
		return true;
	complain("add --run DIR or --save FILE to the training command",
	         "there is no checkpoint from which it could go on");
	return false;
}

/* [USER@]HOST, each of letters, digits, '.', '_' and '-', the first a letter, a digit or '_': whatever program gets it
 * takes it for a name, not for an option or a list. */
static bool is_host(const char *name)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	const char *at = strchr(name, '@');
	for (const char *part = name; part; part = part == name && at ? at + 1 : NULL) {
		size_t n = part == name && at ? (size_t)(at - name) : strlen(part);
		if (!n || n > MOST_NAME || !strchr(first, *part) || strspn(part, others) != n)
			return false;
	}
	return true;
}

/* 1 .. 65536, in digits alone; else 0. */
static uint64_t slots_read(const char *text)
{
	uint64_t slots = strlen(text) <= 5 && text[strspn(text, "0123456789")] == '\0' ? strtoull(text, NULL, 10) : 0;
	return slots <= 65536 ? slots : 0;
}

static bool hosts_read(Launch *l)
{
	const char *list = args_text(l->args, "hosts");
	size_t most = 1;
	if (!list)
		return true;
	for (const char *s = list; *s; s++)
		most += *s == ',';
	l->host = args_alloc(l->args, most, sizeof *l->host);
	l->slots = args_alloc(l->args, most, sizeof *l->slots);
	for (char *word = args_copy(l->args, list), *next; word; word = next) {
		next = strchr(word, ',');
		if (next)
			*next++ = '\0';
		char *colon = strchr(word, ':');
		uint64_t slots = colon ? slots_read(colon + 1) : 1;
		if (colon)
			*colon = '\0';
		if (!is_host(word)) {
			complain(
				"write HOST or HOST:SLOTS, several with commas between; names have letters, digits, '.', '_' and '-'",
				"--hosts: '%.200s' is no name of a host", word);
			return false;
		}
		if (!slots) {
			complain("write HOST:SLOTS with 1 to 65536 slots", "--hosts: %s has '%.200s' slots", word, colon + 1);
			return false;
		}
		l->host[l->hosts] = word;
		l->slots[l->hosts++] = slots;
	}
	return true;
}

static const char *mpirun_find(Args *a)
{
	static const char *const names[] = { "mpirun.openmpi", "mpirun.mpich", "mpirun" };
	const char *path = getenv("PATH");
	for (size_t i = 0; i < COUNT(names); i++)
		for (const char *p = path ? path : "/usr/bin"; *p; p += strcspn(p, ":"), p += *p == ':') {
			size_t n = strcspn(p, ":"), size = n + strlen(names[i]) + 2;
			char *file = args_alloc(a, size, 1);
			snprintf(file, size, "%.*s/%s", (int)n, p, names[i]);
			if (!access(file, X_OK))
				return file;
		}
	return NULL;
}

/* ---- hosts ---- */

static bool succeeds(char **word)
{
	int status = -1;
	pid_t pid = child_start();
	if (!pid) {
		execvp(word[0], word);
		complain("check --check", "cannot start %s: %s", word[0], strerror(errno));
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		if (launch_signal)
			kill(pid, SIGTERM);
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Words of a command, with blanks between: there is no shell, quotes have no meaning. */
static size_t words_split(Args *a, const char *command, char **word)
{
	size_t n = 0;
	for (char *at = strtok(args_copy(a, command), " \t"); at; at = strtok(NULL, " \t"))
		word[n++] = at;
	return n;
}

static bool host_answers(const Launch *l, char *host)
{
	static const char ask[] = "ssh -o BatchMode=yes -o ConnectTimeout=5 --";
	const char *command = l->check ? l->check : ask;
	if (!l->check && !strcmp(host, "localhost"))
		return true;
	char **word = args_alloc(l->args, strlen(command) + 3, sizeof *word);
	size_t n = words_split(l->args, command, word);
	word[n++] = host;
	if (!l->check)
		word[n] = "true";
	return succeeds(word);
}

/* False: none is left.  After a signal, hosts are not asked. */
static bool hosts_review(Launch *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->hosts; i++) {
		if (launch_signal || host_answers(l, l->host[i]) || launch_signal) {
			l->host[kept] = l->host[i];
			l->slots[kept++] = l->slots[i];
			continue;
		}
		uint64_t lost = l->slots[i] < l->ranks ? l->slots[i] : l->ranks;
		l->ranks -= lost;
		show(stderr, "launch: %s does not answer; %s left\n", l->host[i], format_things(l->ranks, "rank").s);
	}
	bool some = !l->hosts || (kept && l->ranks);
	l->hosts = kept;
	return some;
}

/* ---- one attempt ---- */

static const char *hosts_text(const Launch *l)
{
	char *text = join(l->args, "", "");
	for (size_t i = 0; i < l->hosts; i++) {
		char slots[32];
		snprintf(slots, sizeof slots, ":%llu", (unsigned long long)l->slots[i]);
		text = join(l->args, join(l->args, join(l->args, text, i ? "," : ""), l->host[i]), slots);
	}
	return text;
}

/* Words of the command line; when it resumes, --load and --resume of the user are left out. */
static char **command_line(const Launch *l, bool resume)
{
	static const char *const begins[] = { "--load", "--resume" };
	Args *a = l->args;
	char **word = args_alloc(a, (size_t)a->operands + 24, sizeof *word), ranks[32];
	size_t n = 0;
	if (l->ranks > 1) {
		snprintf(ranks, sizeof ranks, "%llu", (unsigned long long)l->ranks);
		word[n++] = (char *)l->mpirun;
		word[n++] = "-n";
		word[n++] = join(a, ranks, "");
		if (l->hosts) {
			word[n++] = strstr(l->mpirun, "mpich") ? "-hosts" : "--host";
			word[n++] = (char *)hosts_text(l);
		}
	}
	word[n++] = (char *)l->program;
	for (int i = 0; i < a->operands; i++) {
		bool begin = false;
		for (size_t k = 0; k < COUNT(begins) && resume; k++) {
			size_t length = strlen(begins[k]);
			if (strncmp(a->operand[i], begins[k], length) || (a->operand[i][length] && a->operand[i][length] != '='))
				continue;
			begin = true;
			i += !a->operand[i][length];
			break;
		}
		if (!begin)
			word[n++] = (char *)a->operand[i];
	}
	if (!l->every)
		word[n++] = "--every=10";
	if (resume)
		word[n++] = join(a, "--resume=", l->checkpoint);
	return word;
}

static pid_t attempt_start(Launch *l, bool resume)
{
	char **word = command_line(l, resume);
	if (l->output >= 0 && (ftruncate(l->output, 0) || lseek(l->output, 0, SEEK_SET)))
		l->output = -1;
	pid_t pid = child_start();
	if (pid > 0)
		setpgid(pid, pid); /* so that all of them can be killed at once */
	if (pid)
		return pid;
	setpgid(0, 0);
#if defined __linux__
	prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
	if (l->output >= 0)
		dup2(l->output, STDOUT_FILENO);
	char attempt[32];
	snprintf(attempt, sizeof attempt, "%llu", (unsigned long long)l->attempts);
	setenv("MICROPROP_HEARTBEAT", l->heartbeat, 1);
	setenv("MICROPROP_ATTEMPT", attempt, 1);
	setenv("OMPI_MCA_mca_base_env_list", "MICROPROP_HEARTBEAT;MICROPROP_ATTEMPT", 0); /* Open MPI, other hosts */
	execvp(word[0], word);
	complain(l->ranks > 1 ? "check --mpirun" : NULL, "cannot start %s: %s", word[0], strerror(errno));
	_exit(127);
}

static void attempt_kill(pid_t pid)
{
	int status;
	kill(-pid, SIGTERM);
	for (int i = 0; i < GRACE * 1000 / POLL_MS; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
	}
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* Until it ends; false: it hung and was killed.  Times are of the local clock: that of rank 0 may differ. */
static bool attempt_watch(Launch *l, pid_t pid, int *status)
{
	double alive = wall_clock(), step = 0; /* when the last heartbeats were seen */
	int forwarded = 0;
	l->last = (Heartbeat){ 0 };
	while (waitpid(pid, status, WNOHANG) != pid) {
		if (launch_signals != forwarded) { /* a second one ends them at once */
			forwarded = launch_signals;
			/* MPICH's mpirun passes SIGTERM on to the ranks, but not SIGHUP */
			kill(-pid, l->ranks > 1 && launch_signal == SIGHUP ? SIGTERM : launch_signal);
		}
		Heartbeat heartbeat = heartbeat_read(l->heartbeat);
		double now = wall_clock(), age = now - alive;
		if (heartbeat.step != l->last.step) {
			l->slowest = step > 0 && now - step > l->slowest ? now - step : l->slowest;
			step = now;
		}
		if (heartbeat.alive != l->last.alive) {
			alive = now;
			age = 0;
		}
		l->last = heartbeat;
		double most = l->slowest * NORMAL_STEPS > l->deadline ? l->slowest * NORMAL_STEPS : l->deadline;
		if (age > most) {
			show(stderr, "launch: no heartbeat for %s; killed\n", format_time(age).s);
			attempt_kill(pid);
			l->last = heartbeat_read(l->heartbeat);
			return false;
		}
		nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
	}
	kill(-pid, SIGKILL); /* processes it left behind */
	l->last = heartbeat_read(l->heartbeat);
	return true;
}

/* ---- all attempts ---- */

static bool made_progress(Launch *l)
{
	struct stat st = { 0 };
	if (stat(l->checkpoint, &st))
		return false;
	bool further = st.st_ino != l->seen.st_ino || st.st_mtim.tv_sec != l->seen.st_mtim.tv_sec ||
	               st.st_mtim.tv_nsec != l->seen.st_mtim.tv_nsec;
	l->seen = st;
	return further;
}

static void ended_note(const Launch *l, int status, bool resumes)
{
	const char *next = resumes ? "the last checkpoint" : "the beginning";
	if (WIFSIGNALED(status))
		show(stderr, "launch: attempt %llu ended by %s; on from %s\n", (unsigned long long)l->attempts,
		     strsignal(WTERMSIG(status)), next);
	else
		show(stderr, "launch: attempt %llu ended with exit status %d; on from %s\n", (unsigned long long)l->attempts,
		     WEXITSTATUS(status), next);
}

/* Success, bad input and a signal from the user are final. The exit status that the processes recorded takes precedence
 * over that of mpirun: of several, Open MPI passes on the first, MPICH all bits combined. */
static bool is_final(const Launch *l, bool ended, int status, int *rc)
{
	bool recorded = l->last.ended != 0, exited = ended && WIFEXITED(status);
	*rc = recorded ? (int)l->last.ended - 1 : exited ? WEXITSTATUS(status) : EXIT_FAILED;
	if (launch_signal)
		*rc = 128 + launch_signal;
	return launch_signal || ((recorded || exited) && (*rc == EXIT_DONE || *rc == EXIT_USAGE));
}

/* Did mpirun end, or hang, before any process started, twice in a row and in the same way? A third attempt would not
 * differ. A process that was killed before it started does not count: Open MPI reports it as 128 + the signal, MPICH
 * as the signal. */
static bool is_refused(Launch *l, bool ended, int status)
{
	static const int killed[] = { SIGKILL, SIGTERM, 128 + SIGKILL, 128 + SIGTERM };
	int refusal = ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	bool counts = !l->last.alive && (!ended || WIFEXITED(status));
	for (size_t i = 0; i < COUNT(killed); i++)
		counts &= refusal != killed[i];
	l->refusals = !counts ? 0 : refusal == l->refusal ? l->refusals + 1 : 1;
	l->refusal = refusal;
	return l->refusals > 1;
}

/* Once may be silent data corruption; twice, it is the training. */
static bool is_diverged(Launch *l)
{
	l->diverged = l->last.diverged ? l->diverged + 1 : 0;
	return l->diverged > 1;
}

static int refused_message(const Launch *l)
{
	static const char remedy[] =
		"see its messages above, and check: are there slots for all ranks (--hosts HOST:SLOTS, or what the "
		"environment passes to mpirun), do all hosts answer by these names, is --mpirun what starts a job here";
	const char *name = l->ranks > 1 ? l->mpirun : "the program";
	if (l->refusal < 0)
		complain(remedy, "%s started no process within %s, twice", name, format_time(l->deadline).s);
	else
		complain(remedy, "%s ended with exit status %d before any process started, twice", name, l->refusal);
	return EXIT_FAILED;
}

static int attempts(Launch *l)
{
	int status = 0, rc = EXIT_FAILED;
	bool resume = false;
	stat(l->checkpoint, &l->seen);
	if (!heartbeat_begin(l->heartbeat, 1, l->deadline))
		return EXIT_FAILED;
	for (;;) {
		l->attempts++;
		pid_t pid = attempt_start(l, resume);
		if (pid < 0) {
			complain("end other programs", "cannot start a process: %s", strerror(errno));
			return EXIT_FAILED;
		}
		bool ended = attempt_watch(l, pid, &status);
		if (is_final(l, ended, status, &rc))
			return rc;
		if (!heartbeat_begin(l->heartbeat, (uint32_t)l->attempts + 1, l->deadline))
			return EXIT_FAILED;
		if (is_diverged(l)) {
			complain("train with a lower rate, or go on from the last checkpoint with one: --load FILE --rate R",
			         "training diverged twice in a row, and would again");
			return EXIT_FAILED;
		}
		bool refused = is_refused(l, ended, status), further = made_progress(l);
		resume |= further;
		l->idle = further ? 0 : l->idle + 1;
		if (l->idle >= l->tries) {
			complain("see its messages above; --tries N tries more often", "%s in a row made no progress",
			         format_things(l->idle, "attempt").s);
			return rc ? rc : EXIT_FAILED;
		}
		size_t hosts = l->hosts;
		bool some = hosts_review(l);
		if (launch_signal)
			return 128 + launch_signal;
		if (!some) {
			complain("start it again when there are hosts", "no host answers");
			return EXIT_FAILED;
		}
		if (refused && l->hosts == hosts)
			return refused_message(l);
		if (ended)
			ended_note(l, status, resume);
		if (l->idle)
			nanosleep(&(struct timespec){ .tv_nsec = 100000000L }, NULL);
	}
}

/* Of which the processes are started. */
static bool program_find(Launch *l)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self);
	if (n > 0 && (size_t)n < sizeof self) {
		self[n] = '\0';
		l->program = args_copy(l->args, self);
		return true;
	}
	complain("mount /proc, or train without launch",
	         "launch finds its own program by /proc/self/exe, which cannot be read: %s",
	         strerror(n < 0 ? errno : ENAMETOOLONG));
	return false;
}

static bool launch_read(Launch *l)
{
	Args *a = l->args;
	const char *deadline = args_text(a, "deadline");
	char *end = NULL;
	l->ranks = 1;
	l->tries = 5;
	if (!args_count(a, "ranks", &l->ranks) || !args_count(a, "tries", &l->tries))
		return false;
	l->deadline = deadline ? strtod(deadline, &end) : 60;
	if (deadline && (end == deadline || *end || !(l->deadline > 0))) {
		complain("give seconds, for example 60", "--deadline: '%s' is no time", deadline);
		return false;
	}
	if (!l->ranks || l->ranks > 65536 || !l->tries) {
		complain("give 1 or more", "--%s: there is nothing to start", l->tries ? "ranks" : "tries");
		return false;
	}
	l->check = args_text(a, "check");
	if (l->check && !l->check[strspn(l->check, " \t")]) {
		complain("name a program", "--check: there is no command");
		return false;
	}
	l->mpirun = args_text(a, "mpirun");
	if (!l->mpirun && l->ranks > 1)
		l->mpirun = mpirun_find(a);
	if (!l->mpirun && l->ranks > 1) {
		complain("install openmpi-bin or mpich, or name it with --mpirun",
		         "several ranks need mpirun, and there is none");
		return false;
	}
	return hosts_read(l) && command_check(l);
}

/* Of the last attempt only: others that were stopped may have printed their progress. */
static void output_show(const Launch *l)
{
	char text[4096];
	ssize_t n;
	off_t at = 0;
	for (; l->output >= 0 && (n = pread(l->output, text, sizeof text, at)) > 0; at += n)
		fwrite(text, 1, (size_t)n, stdout);
	if (l->output >= 0)
		close(l->output);
}

static int launch_run(Args *a)
{
	Launch l = { .args = a };
	if (!launch_read(&l))
		return EXIT_USAGE;
	if (!program_find(&l))
		return EXIT_FAILED;
	l.output = isatty(STDOUT_FILENO) ? -1 : memory_file("output");
	if (!heartbeat_create(l.heartbeat, sizeof l.heartbeat))
		return EXIT_FAILED;
	signals_catch(signal_note);
	signal(SIGCHLD, SIG_DFL); /* if it is ignored, the status of a child is lost */
	int rc = attempts(&l);
	unlink(l.heartbeat);
	output_show(&l);
	if (l.attempts > 1)
		show(stderr, "launch: %s\n", format_things(l.attempts, "attempt").s);
	return rc;
}

const Command launch_command = {
	.name = "launch",
	.operands = "[OPTIONS] -- train ...",
	.least = 2,
	.most = INT_MAX,
	.summary = "train, and restart after failures",
	.about = "Starts a training command, with several ranks if asked for, and watches it. When a process dies or its "
			 "heartbeat stops, all are killed and restarted from the last checkpoint; the result has the bits of an "
			 "undisturbed run. The training command has to write checkpoints: --run DIR, or --save FILE, and --every "
			 "says how often.\n\n"
			 "With --hosts, hosts that stop answering are dropped and fewer ranks go on. Rank 0 writes its heartbeat "
			 "to a file under TMPDIR, so it runs on this host, or TMPDIR is a folder that both see. No attempt starts "
			 "before all processes of the last one on this host are gone.\n\n"
			 "Bad input (exit 2) is not retried, nor a run that diverges twice in a row, nor an mpirun that fails "
			 "twice before any process started. Ctrl-C, SIGTERM and SIGHUP go to the processes, which save and end.",
	.group = groups,
	.example = examples,
	.run = launch_run,
};
