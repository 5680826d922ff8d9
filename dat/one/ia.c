/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ia_*, and calls for handles of any type. */
#include <stdlib.h>
#include "dat/one/one.h"

/*
 * Tries the records of dat.conf for DAT 1.2 first, then those for 2.0. Opens through DAT 2.0 only listed names, since
 * it logs each request that it cannot satisfy. Of two failures it returns the more specific one: the subtypes of
 * PROVIDER_NOT_FOUND are in the order of the search.
 */
static DAT_RETURN open_either(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			      DAT_IA_HANDLE *ia, DAT_BOOLEAN thread_safe)
{
	DAT_RETURN first = DAT_SUCCESS, ret;

	if (one_is_listed(name)) {
		first = two.ia_openv(name, qlen, async_evd, ia, DAT_VERSION_MAJOR,
				     DAT_VERSION_MINOR, thread_safe);
		if (DAT_GET_TYPE(first) != DAT_PROVIDER_NOT_FOUND)
			return one_status(first);
	}
	ret = two.ia_openv(name, qlen, async_evd, ia, 2, 0, thread_safe);
	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND &&
	    DAT_GET_SUBTYPE(first) > DAT_GET_SUBTYPE(ret))
		ret = first;
	return one_status(ret);
}

/* The structures of 1.0 and 1.1 are smaller than those that this library fills in. */
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *ia, DAT_UINT32 major, DAT_UINT32 minor,
			DAT_BOOLEAN thread_safe)
{
	if (ia)
		*ia = DAT_HANDLE_NULL; /* the value on every failure */
	if (!name || strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return ONE_BAD_ARG(1);
	if (!ia)
		return ONE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (major == DAT_VERSION_MAJOR && minor == DAT_VERSION_MINOR)
		return open_either(name, qlen, async_evd, ia, thread_safe);
	log_at(LOG_ERROR, "%s: opened for DAT %u.%u, but libdat.so.1 is DAT 1.2", name, major,
	       minor);
	return ONE_ERROR(DAT_PROVIDER_NOT_FOUND,
			 major == DAT_VERSION_MAJOR ? DAT_MINOR_NOT_FOUND : DAT_MAJOR_NOT_FOUND);
}

/*
 * Removes the IA's LMRs from the table before the close, since another IA may get the handle after it. Adds them again
 * if the close fails.
 */
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	struct lmr_entry *entry = lmr_table_take_ia(ia), *next;
	DAT_RETURN ret = one_status(two.ia_close(ia, flags));

	for (; entry; entry = next) {
		next = entry->next;
		if (ret == DAT_SUCCESS)
			free(entry);
		else
			lmr_table_add(entry);
	}
	return ret;
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
			DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			DAT_PROVIDER_ATTR *provider_attr)
{
	DAT_UINT64 two_ia = one_ia_mask(ia_mask), two_provider = one_provider_mask(provider_mask);
	struct two_provider_attr two_provider_attr = { .provider_name = "" };
	struct two_ia_attr two_ia_attr = { .adapter_name = "" };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_RETURN ret = one_status(two.ia_query(ia, async_evd ? &evd : NULL, two_ia,
						 ia_attr ? &two_ia_attr : NULL, two_provider,
						 provider_attr ? &two_provider_attr : NULL));

	if (ret != DAT_SUCCESS)
		return ret;
	if (two_ia == ONE_MASK_UNKNOWN || two_provider == ONE_MASK_UNKNOWN)
		return ONE_BAD_ARG(two_ia == ONE_MASK_UNKNOWN ? 3 : 5);
	if (async_evd)
		*async_evd = evd;
	if (ia_attr && ia_mask)
		one_ia_attr(ia_attr, &two_ia_attr);
	if (provider_attr && provider_mask)
		one_provider_attr(provider_attr, &two_provider_attr);
	return DAT_SUCCESS;
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	return one_status(two.set_consumer_context(handle, context));
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	return one_status(two.get_consumer_context(handle, context));
}

DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	return one_status(two.get_handle_type(handle, type));
}
