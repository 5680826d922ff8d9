/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Finds the user that has bound an abstract name. */
#ifndef SV_LINK_NAME_HOLDER_H
#define SV_LINK_NAME_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

/* The name is the first `length` bytes of sun_path. False if no socket has it or the kernel does not report
 * it. */
bool sv_name_holder(const struct sockaddr_un *name, size_t length, uid_t *uid);

#endif
