/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Compiled before everything else, so that a machine that is not supported gets one error. */
#if !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "uDAPL needs a 64-bit little-endian machine: x86-64 or arm64 (README.md, Platforms)"
#endif
#ifndef __linux__
#error "uDAPL needs Linux (README.md, Platforms)"
#endif
