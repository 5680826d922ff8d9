/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What a provider library exports, and how it enters its IA names in the registry. */
#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#if !defined(_UDAT_H_) && !defined(_KDAT_H_)
#error "include <dat2/udat.h> before <dat2/dat_registry.h>"
#endif

#include <dat2/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A provider library exports it as dat_provider_init().  Called before a name of the library's is
 * opened for the first time, and again after dat_provider_fini(); by any thread, for several names
 * in turn, without any lock of the registry.  It adds a provider for exactly that provider_info, or
 * none if it fails.  instance_data is the IA parameter string of dat.conf; both arguments stay
 * valid until dat_provider_fini() has returned.  [DAT 2.0, registry]
 */
typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *provider_info,
				       const char *instance_data);

/*
 * A provider library exports it as dat_provider_fini().  Called when the last IA of the name has
 * been closed, before the library may be unloaded: it removes the provider, joins its threads and
 * frees what belongs to the name.  [DAT 2.0, registry]
 */
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *provider_info);

#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini

#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

/*
 * Enters a provider for one IA name, version and thread safety.  provider_info is copied, and so
 * are the slots ia_open_func and handle_extendedop_func; *provider itself must outlive every object
 * made through it.  [DAT 2.0, registry]
 * - ARG2: the name is empty or without NUL
 * - MODEL_NOT_SUPPORTED: a version below 2.0, from anything but a library that exports
 *   dapl_extensions, as providers of DAT 2.0 do: a table of DAT 1 is shorter than this one
 * - PROVIDER_ALREADY_REGISTERED: there is one for the same provider_info
 */
DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
				     const DAT_PROVIDER_INFO *provider_info);

/*
 * Takes the entry for provider_info out again.  [DAT 2.0, registry]
 * - PROVIDER_NOT_FOUND/NAME_NOT_REGISTERED: there is none
 * - PROVIDER_IN_USE: an IA of it is open
 */
DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					const DAT_PROVIDER_INFO *provider_info);

/* Whether two IAs share hardware, such as two ports of one device. */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE,
	DAT_HA_TRUE,
	DAT_HA_UNKNOWN,	    /* neither provider knows, or neither IA is open */
	DAT_HA_CONFLICTING, /* the two providers disagree */
	DAT_HA_EXTENSION_BASE
} DAT_HA_RELATIONSHIP;

/*
 * Asks the providers of both names, as far as they have open IAs, whether the two share hardware.
 * [DAT 2.0, high availability]
 * - ARG1, ARG2: a name that is null or too long
 * - PROVIDER_NOT_FOUND/NAME_NOT_REGISTERED: a name that is not registered
 */
DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia_name_a,
					  const DAT_NAME_PTR ia_name_b,
					  DAT_HA_RELATIONSHIP *relationship);

/*
 * For providers: the IA as the consumer knows it, given the provider's pointer to it, and the
 * other way round.  A provider hands out no IA handle that did not pass through here.
 * [compatibility]
 * - INVALID_HANDLE/IA: no open IA
 */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE ia_handle, DAT_IA_HANDLE *other_ia_handle);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
