/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What a provider library exports, and how it enters its IA names in the registry. */
#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#if !defined(_UDAT_H_) && !defined(_KDAT_H_)
#error "include <dat/udat.h> before <dat/dat_registry.h>"
#endif

#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A provider library exports it as dat_provider_init().  Called before a name of the library's is
 * opened for the first time, and again after dat_provider_fini(); by any thread, for several names
 * in turn, without any lock of the registry.  It adds a provider for exactly that provider_info, or
 * none if it fails.  instance_data is the IA parameter string of dat.conf; both arguments stay
 * valid until dat_provider_fini() has returned.  [DAT 1.2, registry]
 */
typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *provider_info,
				       const char *instance_data);

/*
 * A provider library exports it as dat_provider_fini().  Called when the last IA of the name has
 * been closed, before the library may be unloaded: it removes the provider, joins its threads and
 * frees what belongs to the name.  [DAT 1.2, registry]
 */
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *provider_info);

#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini

#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

/*
 * Enters a provider for one IA name, version and thread safety.  libdat.so.1 has no registry of its
 * own: it passes the provider on to that of DAT 2.0, where its table must be one of DAT 2.0, which
 * begins like the one of DAT 1.2 and is longer.  [DAT 1.2, registry]
 * - ARG1, ARG2: null
 * - MODEL_NOT_SUPPORTED: provider_info has a version below 2.0, so its table cannot be used
 * - ARG2: the name is empty or without NUL
 * - PROVIDER_ALREADY_REGISTERED: there is one for the same provider_info
 */
DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
				     const DAT_PROVIDER_INFO *provider_info);

/*
 * Takes the entry for provider_info out again.  [DAT 1.2, registry]
 * - PROVIDER_NOT_FOUND/NAME_NOT_REGISTERED: there is none
 * - PROVIDER_IN_USE: an IA of it is open
 */
DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					const DAT_PROVIDER_INFO *provider_info);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
