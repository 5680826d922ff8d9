/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Files that are read whole: their size, their kind, and the byte order mark that some editors add.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "test/unit/unit.h"
#include "util/text_file.h"

static char path[300];

static void write_bytes(const char *bytes, size_t len)
{
	FILE *file;

	snprintf(path, sizeof(path), "%s/file", unit_tmpdir());
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

/* True if reading the file returns these bytes. */
static bool reads(const char *bytes, size_t len)
{
	char *text;
	size_t got;
	bool same;

	if (text_file_read(path, 1 << 20, &text, &got))
		return false;
	same = got == len && !memcmp(text, bytes, len) && !text[got];
	free(text);
	return same;
}

/* Returns the errno of a refused file; nothing is allocated then. */
static int refused(const char *name, size_t most)
{
	char *text;
	size_t len;
	int error = text_file_read(name, most, &text, &len);

	CU_ASSERT(error ? text == NULL : text != NULL);
	free(text);
	return error;
}

static void sizes(void)
{
	static const size_t around[] = { 0, 1, 16383, 16384, 16385, 100000 };
	char *bytes = malloc(100000);
	size_t i;

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	memset(bytes, 'x', 100000);
	for (i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		write_bytes(bytes, around[i]);
		CU_ASSERT(reads(bytes, around[i]));
		CU_ASSERT_EQUAL(refused(path, around[i]), 0);
		if (around[i])
			CU_ASSERT_EQUAL(refused(path, around[i] - 1), EFBIG);
	}
	free(bytes);
}

static void endless(void)
{
	CU_ASSERT_EQUAL(refused("/dev/zero", 1 << 16), EFBIG);
	CU_ASSERT_EQUAL(refused("/dev/null", 0), 0);
}

static void kinds(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char other[300];

	snprintf(other, sizeof(other), "%s/fifo", unit_tmpdir());
	CU_ASSERT_EQUAL(mkfifo(other, 0600), 0);
	CU_ASSERT_EQUAL(refused(other, 100), EOPNOTSUPP);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", unit_tmpdir());
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL(refused(at.sun_path, 100), EOPNOTSUPP);
	close(fd);
	CU_ASSERT_EQUAL(refused(unit_tmpdir(), 100), EISDIR);
	CU_ASSERT_EQUAL(refused("", 100), ENOENT);
}

static void marks(void)
{
	write_bytes("\xef\xbb\xbfname", 7);
	CU_ASSERT(reads("name", 4));
	write_bytes("\xef\xbb\xbf", 3);
	CU_ASSERT(reads("", 0));
	write_bytes("\xef\xbb", 2);
	CU_ASSERT(reads("\xef\xbb", 2));
	write_bytes("name\xef\xbb\xbf", 7); /* in the middle of a text the mark is kept */
	CU_ASSERT(reads("name\xef\xbb\xbf", 7));
}

static const struct unit_test tests[] = {
	{ "text file: every size up to the limit, none beyond", sizes },
	{ "text file: a device without an end is too large", endless },
	{ "text file: a FIFO, socket or folder is refused at once", kinds },
	{ "text file: a byte order mark is left out", marks },
};
UNIT_MAIN("text_file", tests)
