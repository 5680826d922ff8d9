/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads configuration files safely, whatever kind of file the path names. */
#ifndef UTIL_TEXT_FILE_H
#define UTIL_TEXT_FILE_H

#include <stddef.h>

/*
 * Reads all of a file into memory without ever blocking on it. A UTF-8 byte order mark is left out.
 * Returns 0 or an errno: EFBIG beyond `most` bytes, EOPNOTSUPP for a FIFO or a socket, else that of
 * the call that failed. On success *text is the caller's to free, and text[*len] is a NUL that may
 * be overwritten; on failure *text is NULL. Safe in several threads.
 */
int text_file_read(const char *path, size_t most, char **text, size_t *len);

#endif
