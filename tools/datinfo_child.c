/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Runs third-party libraries in a child process, because they may crash or hang, and captures their
 * output.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/datinfo.h"

/* Makes the bit mask for a library: the user's bits, and these. */
static void mask_add(const char *variable, unsigned long bits)
{
	const char *text = getenv(variable);
	char value[24];

	snprintf(value, sizeof(value), "%lu", (text ? strtoul(text, NULL, 0) : 0) | bits);
	setenv(variable, value, true);
}

/* Asks for errors on standard output, which 1 means for libdat2 and all providers. */
static void child_listen(int messages)
{
	mask_add("DAT_DBG_TYPE", REG_LOG_ERROR);
	setenv("DAT_DBG_DEST", "1", true);
	if (getenv("DAPL_DBG_TYPE"))
		mask_add("DAPL_DBG_TYPE", 1);
	setenv("DAPL_DBG_DEST", "1", true);
	dup2(messages, STDOUT_FILENO);
	dup2(messages, STDERR_FILENO);
}

static void child_wait(pid_t pid, struct child *child)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return;
	if (WIFSIGNALED(status)) {
		child->signal = WTERMSIG(status);
		child->end = child->signal == SIGALRM ? CHILD_LATE : CHILD_KILLED;
	} else if (!WEXITSTATUS(status)) {
		child->end = CHILD_RETURNED;
	}
}

FILE *memory_file(void)
{
	int fd = memfd_create("datinfo", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (file)
		return file;
	perror("datinfo");
	exit(EXIT_FAILURE);
}

char *memory_file_end(FILE *file, size_t *len)
{
	off_t size = lseek(fileno(file), 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);

	if (!text || pread(fileno(file), text, (size_t)size, 0) != size) {
		perror("datinfo");
		exit(EXIT_FAILURE);
	}
	fclose(file);
	if (len)
		*len = (size_t)size;
	return text;
}

void child_run(void (*body)(void *result), void *result, size_t size, struct child *child)
{
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FILE *messages = memory_file();
	pid_t pid;

	*child = (struct child){ .end = CHILD_FAILED };
	if (shared == MAP_FAILED) {
		perror("datinfo");
		exit(EXIT_FAILURE);
	}
	memcpy(shared, result, size);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		child_listen(fileno(messages));
		alarm(CHILD_SECONDS);
		body(shared);
		fflush(NULL);
		_exit(0);
	}
	if (pid > 0)
		child_wait(pid, child);
	if (child->end == CHILD_RETURNED)
		memcpy(result, shared, size);
	child->messages = memory_file_end(messages, NULL);
	munmap(shared, size);
}
