/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Included before everything else, so that an unsupported platform causes a single error. */
#if !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "uDAPL needs a 64-bit little-endian machine: x86-64 or arm64 (README.md, Platforms)"
#endif
#ifndef __linux__
#error "uDAPL needs Linux (README.md, Platforms)"
#endif

/* Whether other processors see the stores of a processor in the order in which it makes them. */
#ifdef __x86_64__
#define PLATFORM_STORES_IN_ORDER 1
#else
#define PLATFORM_STORES_IN_ORDER 0
#endif
