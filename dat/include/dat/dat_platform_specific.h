/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The scalar, address and socket types on which all other DAT types rest. */
#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <sys/types.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

/* DAT_COUNT is signed: DAT_WATERMARK_INFINITE and DAT_VALUE_UNKNOWN are negative. */
typedef u_int32_t DAT_UINT32;
typedef u_int64_t DAT_UINT64;
__extension__ typedef unsigned long long DAT_UVERYLONG;
typedef int DAT_COUNT;

typedef void *DAT_PVOID;
typedef DAT_UINT64 DAT_PADDR; /* a physical address */

/* DAT_SOCK_ADDR6 stays incomplete until the consumer includes <netinet/in.h>. */
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#define DAT_AF_INET  AF_INET
#define DAT_AF_INET6 AF_INET6

/* The buffer alignment, in bytes, that suits every provider. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

/*
 * If <stdint.h> came first its definition stands, and the mask constants are unsigned long instead
 * of unsigned long long.
 */
#ifndef UINT64_C
#define UINT64_C(c) c##ULL
#endif

/*
 * Kept because consumers use them; the headers themselves do not.  DAT_API marks the calling
 * convention, IN, OUT and INOUT the direction of a parameter.
 */
#define DAT_API
#define DAT_EXPORT extern

#ifndef IN
#define IN
#endif

#ifndef OUT
#define OUT
#endif

#ifndef INOUT
#define INOUT
#endif

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
