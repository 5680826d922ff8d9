/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The fake provider as its tests see it: its counters, its settings, and a child process for each
 * dat.conf.
 */
#ifndef FAKE_H
#define FAKE_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CUnit/TestRun.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include "test/unit/unit.h"

#define FAKE_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))
#define FAKE_OPEN_OP		  0x1001
#define FAKE_CLOSE_OP		  0x2001
#define FAKE_ADD_OP		  0x4001 /* the sum of an int, a long and an int * */

/*
 * Shared with the fake provider: defined in the test program, so that the library finds it after
 * each load.
 */
struct fake_control {
	atomic_int inits, finis, unloads, opens, closes;
	DAT_RETURN open_result, query_result, close_result;
	DAT_IA_HANDLE open_as; /* if not NULL: the handle that ia_open returns */
	DAT_EXTENSION extension;
	DAT_RETURN related_result;
	DAT_BOOLEAN related;
	DAT_RETURN removed; /* result of removing the registration */
	void (*in_init)(const DAT_PROVIDER_INFO *info, const char *params);
	void (*in_fini)(const DAT_PROVIDER_INFO *info);
	void (*in_unload)(void);
	void (*in_open)(const char *name);
	void (*in_query)(DAT_IA_HANDLE object);
	void (*in_close)(DAT_IA_HANDLE object);
};

extern __attribute__((visibility("default"))) struct fake_control fake;

struct fake_object {
	const DAT_PROVIDER *provider;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
};

static inline const char *fake_path(void)
{
	const char *path = getenv("FAKE_PROVIDER");

	if (path)
		return path;
	fprintf(stderr, "FAKE_PROVIDER does not name the fake provider\n");
	exit(1);
}

/* Writes the dat.conf of this process; "@" in `text` stands for the path of the fake provider. */
static inline void fake_conf(const char *text)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/dat.conf", unit_tmpdir());
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		exit(1);
	}
	for (; *text; text++) {
		if (*text == '@')
			fputs(fake_path(), file);
		else
			fputc(*text, file);
	}
	fclose(file);
	setenv("DAT_OVERRIDE", path, 1);
}

/* Prints the failures of a child; the exit status only tells the parent that there were some. */
static inline int fake_child_status(unsigned failed_before)
{
	CU_pFailureRecord failure = CU_get_failure_list();
	unsigned failed = CU_get_number_of_failures() - failed_before;

	for (; failure && failed; failure = failure->pNext)
		fprintf(stderr, "%s:%u: %s\n", failure->strFileName, failure->uiLineNumber,
			failure->strCondition);
	return failed ? 1 : 0;
}

/*
 * Runs `body` in a child with this dat.conf, because a process reads its registry once. `body` must
 * not use fatal assertions: they would make the child continue with the next test.
 */
static inline void fake_in_child(const char *conf, void (*body)(void))
{
	unsigned before = CU_get_number_of_failures();
	int status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		alarm(10 * UNIT_PATIENCE / 1000);
		if (conf)
			fake_conf(conf);
		body();
		exit(fake_child_status(before));
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

/* A wrapper for const names, which DAT's prototype does not take. */
static inline DAT_RETURN fake_openv(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
				    DAT_BOOLEAN safe, DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_openv((DAT_NAME_PTR)name, 8, &evd, ia, major, minor, safe);
}

static inline DAT_RETURN fake_open(const char *name, DAT_IA_HANDLE *ia)
{
	return fake_openv(name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE, ia);
}

/* Captures what is written to a descriptor until fake_captured() is called. */
struct fake_capture {
	int fd, saved, file;
};

static inline struct fake_capture fake_capture(int fd)
{
	struct fake_capture capture = { .fd = fd, .saved = dup(fd) };
	char path[300];

	fflush(NULL);
	snprintf(path, sizeof(path), "%s/capture", unit_tmpdir());
	capture.file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	dup2(capture.file, fd);
	return capture;
}

static inline const char *fake_captured(struct fake_capture capture)
{
	static char text[16384];
	ssize_t len;

	fflush(NULL);
	dup2(capture.saved, capture.fd);
	close(capture.saved);
	len = pread(capture.file, text, sizeof(text) - 1, 0);
	close(capture.file);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

#endif
