/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_registry_*, dat_strerror and dats_get_ia_handle: the registry is that of libdat2. */
#include <stdlib.h>
#include "dat/one/one.h"

void one_log_open(void)
{
	log_open("libdat", LOG_ERROR, LOG_TO_STDERR);
	log_open("libdat", log_env("DAT_DBG_TYPE", LOG_ERROR),
		 log_env("DAT_DBG_DEST", LOG_TO_STDERR));
}

/* ---- What can be opened ---- */

/* Returns all records and their number in *total; the caller frees them. NULL if out of memory or if there are none. */
static DAT_PROVIDER_INFO *list_all(DAT_COUNT *total, DAT_RETURN *ret)
{
	DAT_PROVIDER_INFO *infos, **pointers;
	DAT_COUNT n = 0, i;

	/* A list without room is refused, and its length is returned. */
	*total = 0;
	*ret = one_status(two.registry_list_providers(0, &n, NULL));
	if (DAT_GET_TYPE(*ret) != DAT_INVALID_PARAMETER && *ret != DAT_SUCCESS)
		return NULL;
	*ret = DAT_SUCCESS;
	if (n <= 0)
		return NULL;
	infos = calloc((size_t)n, sizeof(*infos));
	pointers = calloc((size_t)n, sizeof(*pointers));
	if (infos && pointers) {
		for (i = 0; i < n; i++)
			pointers[i] = &infos[i];
		*ret = one_status(two.registry_list_providers(n, total, pointers));
	} else {
		*ret = ONE_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	free(pointers);
	if (*ret == DAT_SUCCESS)
		return infos;
	free(infos);
	return NULL;
}

/* False for a minor version below the requested one, or a higher major version. */
static bool serves_as_one(const DAT_PROVIDER_INFO *info)
{
	return info->dapl_version_major == DAT_VERSION_MAJOR &&
	       info->dapl_version_minor >= DAT_VERSION_MINOR;
}

static bool can_be_opened(const DAT_PROVIDER_INFO *info)
{
	return serves_as_one(info) || info->dapl_version_major == 2;
}

static bool is_same(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	return !a->is_thread_safe == !b->is_thread_safe && !strcmp(a->ia_name, b->ia_name);
}

/*
 * Keeps the records that can be opened, with the version 1.2. A name with both versions is kept once. Returns the
 * number of records kept.
 */
static DAT_COUNT keep_openable(DAT_PROVIDER_INFO *infos, DAT_COUNT total)
{
	DAT_COUNT kept = 0, i, k;

	for (i = 0; i < total; i++) {
		if (!can_be_opened(&infos[i]))
			continue;
		for (k = 0; k < kept && !is_same(&infos[k], &infos[i]); k++)
			;
		if (k < kept)
			continue;
		infos[kept] = infos[i];
		infos[kept].dapl_version_major = DAT_VERSION_MAJOR;
		infos[kept].dapl_version_minor = DAT_VERSION_MINOR;
		kept++;
	}
	return kept;
}

bool one_is_listed(const char *name)
{
	DAT_COUNT total, i;
	DAT_RETURN ret;
	DAT_PROVIDER_INFO *infos = list_all(&total, &ret);
	bool found = false;

	for (i = 0; i < total && infos && !found; i++)
		found = infos[i].dapl_version_major == DAT_VERSION_MAJOR &&
			!strcmp(infos[i].ia_name, name);
	free(infos);
	return found;
}

/* Follows the rules of dat_registry_list_providers() of DAT 2.0, for fewer records. */
static DAT_RETURN copy_list(const DAT_PROVIDER_INFO *infos, DAT_COUNT kept, DAT_COUNT max,
			    DAT_COUNT *entries, DAT_PROVIDER_INFO *list[])
{
	DAT_COUNT room = max < kept ? max : kept, i;

	*entries = kept;
	if (max <= 0)
		return ONE_BAD_ARG(1);
	for (i = 0; i < room; i++)
		if (!list[i])
			return ONE_BAD_ARG(3);
	for (i = 0; i < room; i++)
		*list[i] = infos[i];
	*entries = room;
	return DAT_SUCCESS;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max, DAT_COUNT *entries, DAT_PROVIDER_INFO *list[])
{
	DAT_PROVIDER_INFO *infos;
	DAT_COUNT total;
	DAT_RETURN ret;

	if (!entries)
		return ONE_BAD_ARG(2);
	if (max && !list)
		return ONE_BAD_ARG(3);
	infos = list_all(&total, &ret);
	if (ret == DAT_SUCCESS)
		ret = copy_list(infos, infos ? keep_openable(infos, total) : 0, max, entries, list);
	free(infos);
	return ret;
}

/* ---- What providers say ---- */

/*
 * A provider that was built for DAT 2.0 without naming a version of its symbols reaches this function
 * when libdat.so.1 comes first in the order of search. The table of a provider of DAT 1.2 is shorter than
 * the registry reads, and some slots take other arguments.
 */
DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	if (provider && info && info->dapl_version_major < 2) {
		log_at(LOG_ERROR,
		       "%.255s: a provider of DAT %u.%u is refused, providers are of DAT 2.0",
		       info->ia_name, info->dapl_version_major, info->dapl_version_minor);
		return ONE_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	}
	return one_status(two.registry_add_provider(provider, info));
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	return one_status(two.registry_remove_provider(provider, info));
}

DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *other)
{
	return one_status(two.get_ia_handle((DAT_IA_HANDLE)handle, other));
}

DAT_RETURN dat_strerror(DAT_RETURN value, const char **major, const char **minor)
{
	return one_status(two.strerror(one_status_to_two(value), major, minor));
}
