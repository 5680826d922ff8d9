/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Build-time choices of the user-mode headers: interface version and thread safety. */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

/* The interface version that dat_ia_open() asks for. */
#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/*
 * The thread safety that dat_ia_open() asks for.  Frozen at DAT_FALSE; a thread-safe provider
 * satisfies it too.  A consumer that insists on one calls dat_ia_openv() with DAT_TRUE.
 */
#define DAT_THREADSAFE DAT_FALSE

#endif /* _UDAT_CONFIG_H_ */
