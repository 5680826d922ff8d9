/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Which user has bound an abstract name. */
#ifndef SV_NAME_HOLDER_H
#define SV_NAME_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

/* `length` bytes of sun_path are the name. False: no socket has it, or the kernel does not tell. */
bool sv_name_holder(const struct sockaddr_un *name, size_t length, uid_t *uid);

#endif
