/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_registry_*: list entries, add and remove providers, query HA relations of names. */
#include <stdlib.h>
#include "dat/common/handle.h"
#include "util/log.h"

/* The keys of dat.conf in file order, then providers registered without a key; NULL past the end. */
static const DAT_PROVIDER_INFO *nth_info_locked(DAT_COUNT n)
{
	const struct dr_entry *entry;
	const struct sr_key *key;

	TAILQ_FOREACH(key, &reg_static.keys, link)
		if (n-- == 0)
			return &key->info;
	TAILQ_FOREACH(entry, &reg_dynamic, link)
		if (!sr_find_locked(&entry->info) && n-- == 0)
			return &entry->info;
	return NULL;
}

/*
 * Fills a list that is too short and returns success, since programs with a small fixed maximum fail otherwise. Does
 * not access unneeded elements, since many programs pass the address of a single pointer with a larger maximum.
 */
static DAT_RETURN api_registry_list_locked(DAT_COUNT max, DAT_COUNT *entries,
					   DAT_PROVIDER_INFO *list[], DAT_COUNT *total)
{
	DAT_COUNT room, i;

	if (!entries)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (max && !list)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	while (nth_info_locked(*total))
		++*total;
	*entries = *total;
	if (max <= 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	room = max < *total ? max : *total;
	for (i = 0; i < room; i++)
		if (!list[i])
			return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	for (i = 0; i < room; i++)
		*list[i] = *nth_info_locked(i);
	*entries = room;
	return DAT_SUCCESS;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max, DAT_COUNT *entries, DAT_PROVIDER_INFO *list[])
{
	CANCEL_OFF_HERE;
	DAT_COUNT total = 0;
	DAT_RETURN ret = reg_enter();

	if (ret != DAT_SUCCESS)
		return ret;
	ret = api_registry_list_locked(max, entries, list, &total);
	reg_unlock();
	if (ret == DAT_SUCCESS && total > max)
		log_at(REG_LOG_CONSUMER, "list of providers cut from %d to %d", total, max);
	return ret;
}

static bool info_is_valid(const DAT_PROVIDER_INFO *info)
{
	return info->ia_name[0] && name_is_valid(info->ia_name);
}

/*
 * True for a provider of DAT 1, whose table is shorter than the one of DAT 2.0 and has functions with other arguments.
 * A dat.conf record for DAT 1.2 may name a library of DAT 2.0, which then registers the version of the record.
 */
static bool is_of_dat_1(const DAT_PROVIDER_INFO *info)
{
	const struct sr_record *loading = reg_loading();

	return info->dapl_version_major < 2 && !(loading && loading->is_two);
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	CANCEL_OFF_HERE;
	struct dr_entry *entry;
	DAT_RETURN ret;

	if (!provider)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!info)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	ret = reg_enter();
	if (ret != DAT_SUCCESS)
		return ret;
	if (!info_is_valid(info))
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (is_of_dat_1(info))
		ret = DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	else if (dr_find_locked(info))
		ret = DAT_ERROR(DAT_PROVIDER_ALREADY_REGISTERED, DAT_NO_SUBTYPE);
	else if (!(entry = calloc(1, sizeof(*entry))))
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (ret == DAT_SUCCESS) {
		entry->info = *info;
		entry->ia_open = provider->ia_open_func;
		entry->extended_op = provider->handle_extendedop_func;
		entry->origin = reg_loading();
		TAILQ_INSERT_TAIL(&reg_dynamic, entry, link);
	}
	reg_unlock();
	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
		log_at(REG_LOG_ERROR,
		       "%.255s: a provider of DAT %u.%u is refused, providers are of DAT 2.0",
		       info->ia_name, info->dapl_version_major, info->dapl_version_minor);
	log_at(REG_LOG_DYNAMIC, "add %.255s: %#x", info->ia_name, ret);
	return ret;
}

/*
 * Succeeds after the registry has ended: there is no entry to remove, and the caller is a provider's destructor.
 */
DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	CANCEL_OFF_HERE;
	struct dr_entry *entry;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!provider)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!info)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (reg_enter() != DAT_SUCCESS)
		return DAT_SUCCESS;
	entry = info_is_valid(info) ? dr_find_locked(info) : NULL;
	if (!entry) {
		ret = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	} else if (entry->refs) {
		ret = DAT_ERROR(DAT_PROVIDER_IN_USE, DAT_NO_SUBTYPE);
	} else {
		TAILQ_REMOVE(&reg_dynamic, entry, link);
		free(entry);
	}
	reg_unlock();
	log_at(REG_LOG_DYNAMIC, "remove %.255s: %#x", info->ia_name, ret);
	return ret;
}

/*
 * Asks an open IA of one name about its relation to the other name. Unknown if no IA is open or the provider does not
 * know.
 */
static DAT_HA_RELATIONSHIP relation_by(const char *name, const DAT_NAME_PTR other)
{
	struct ia_slot *ia = ia_acquire_named(name);
	DAT_HA_RELATIONSHIP answer = DAT_HA_UNKNOWN;
	DAT_BOOLEAN related = DAT_FALSE;

	if (!ia)
		return DAT_HA_UNKNOWN;
	if (ia->provider->ia_ha_related_func &&
	    ia->provider->ia_ha_related_func(ia->object, other, &related) == DAT_SUCCESS)
		answer = related ? DAT_HA_TRUE : DAT_HA_FALSE;
	ia_release(ia);
	return answer;
}

DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name_a, const DAT_NAME_PTR name_b,
					  DAT_HA_RELATIONSHIP *relationship)
{
	CANCEL_OFF_HERE;
	DAT_HA_RELATIONSHIP a, b;
	DAT_RETURN ret;
	bool known;

	if (!name_is_valid(name_a))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!name_is_valid(name_b))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!relationship)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	ret = reg_enter();
	if (ret != DAT_SUCCESS)
		return ret;
	known = reg_name_known_locked(name_a) && reg_name_known_locked(name_b);
	reg_unlock();
	if (!known)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);

	a = relation_by(name_a, name_b);
	b = relation_by(name_b, name_a);
	if (a == b || b == DAT_HA_UNKNOWN)
		*relationship = a;
	else
		*relationship = a == DAT_HA_UNKNOWN ? b : DAT_HA_CONFLICTING;
	return DAT_SUCCESS;
}
