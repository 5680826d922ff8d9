/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads a configuration file that may be too large, not a regular file, or marked by an editor. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/text_file.h"

#define FIRST_ROOM 16384u

/*
 * O_NONBLOCK, because opening a FIFO without a writer would wait for one, and so would reading a
 * terminal. A FIFO or socket is refused, because it cannot be read to its end without waiting for
 * its writer.
 */
static int file_open(const char *path, int *fd)
{
	struct stat is;
	int error;

	*fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd < 0)
		return errno == ENXIO ? EOPNOTSUPP : errno; /* ENXIO: a socket */
	error = fstat(*fd, &is) ? errno : S_ISFIFO(is.st_mode) ? EOPNOTSUPP : 0;
	if (error)
		close(*fd);
	return error;
}

/* Makes room for at least one byte more, and never for more than `most` and the NUL. */
static int text_grow(char **text, size_t *room, size_t most)
{
	char *grown;

	if (*room >= most)
		return EFBIG;
	*room = *room ? 2 * *room : FIRST_ROOM;
	if (*room > most)
		*room = most;
	grown = realloc(*text, *room + 1);
	if (!grown)
		return ENOMEM;
	*text = grown;
	return 0;
}

/*
 * The size of the file is not relied on: it may change, and devices have none. One byte more than
 * `most` tells a file that fits exactly from one that is too large.
 */
static int text_read(int fd, size_t most, char **text, size_t *len)
{
	size_t room = 0;
	ssize_t got;
	int error;

	for (;;) {
		if (*len == room) {
			error = text_grow(text, &room, most + 1);
			if (error)
				return error;
		}
		got = read(fd, *text + *len, room - *len);
		if (got > 0)
			*len += (size_t)got;
		else if (got == 0)
			return 0;
		else if (errno != EINTR)
			return errno;
		if (*len > most)
			return EFBIG;
	}
}

static void mark_remove(char *text, size_t *len)
{
	static const char mark[] = "\xef\xbb\xbf";
	const size_t size = sizeof(mark) - 1;

	if (*len < size || memcmp(text, mark, size))
		return;
	*len -= size;
	memmove(text, text + size, *len);
}

int text_file_read(const char *path, size_t most, char **text, size_t *len)
{
	int fd, error;

	*text = NULL;
	*len = 0;
	error = file_open(path, &fd);
	if (error)
		return error;
	error = text_read(fd, most, text, len);
	close(fd);
	if (error) {
		free(*text);
		*text = NULL;
		return error;
	}
	mark_remove(*text, len);
	(*text)[*len] = '\0';
	return 0;
}
