/* SPDX-License-Identifier: MIT */
/* One process of several, started by mpirun or the like. Only rank 0 prints; stderr of the others is kept, and rank 0
 * prints it if they end early. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"

int memory_file(const char *name)
{
#if defined MFD_CLOEXEC
	return memfd_create(name, MFD_CLOEXEC);
#elif defined __EMSCRIPTEN__
	static unsigned count; /* all files are in memory; one without a name has no /proc/self/fd */
	char path[100];
	snprintf(path, sizeof path, "/tmp/%s-%u", name, count++);
	return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
#else
	FILE *f = tmpfile();
	(void)name;
	return f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1; /* the file is removed when the process ends */
#endif
}

static void silence(Rank *j)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	j->kept = memory_file("stderr");
	fflush(stdout);
	if (nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	if (j->kept >= 0)
		dup2(j->kept, STDERR_FILENO);
	if (nowhere >= 0)
		close(nowhere);
}

int job_join(Rank *j)
{
	*j = (Rank){ .kept = -1, .heartbeat = -1 };
	int rc = heartbeat_join(&j->heartbeat);
	if (rc)
		return rc;
	mp_status status = mp_job_join(&j->job, NULL);
	if (status != MP_OK) {
		if (!mp_job_launched_rank()) /* all have the same message */
			show_lines(stderr, mp_job_messages(j->job), strlen(mp_job_messages(j->job)));
		return status == MP_BAD_INPUT ? EXIT_USAGE : EXIT_FAILED;
	}
	if (mp_job_rank(j->job))
		silence(j);
	return EXIT_DONE;
}

int job_leave(Rank *j, int rc)
{
	char text[1000];
	ssize_t n = j->kept >= 0 ? pread(j->kept, text, sizeof text - 1, 0) : 0;
	text[n < 0 ? 0 : n] = '\0';
	if (rc == EXIT_USAGE) /* now: once a rank has ended so, its launcher may kill the others */
		heartbeat_end(j->heartbeat, rc);
	if (j->job)
		rc = mp_job_leave(j->job, rc, text);
	heartbeat_end(j->heartbeat, rc);
	mp_job_close(j->job);
	return rc;
}
