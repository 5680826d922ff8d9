/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ia_*: an open IA occupies a slot of the handle table and holds its provider. */
#include "dat/common/handle.h"
#include "util/log.h"

static DAT_EXTENSION query_extension(DAT_IA_HANDLE object)
{
	DAT_IA_ATTR attr = { .extension_supported = DAT_EXTENSION_NONE };
	const DAT_PROVIDER *provider = provider_of(object);
	DAT_RETURN ret = provider->ia_query_func(object, NULL, DAT_IA_ALL, &attr, 0, NULL);

	if (ret == DAT_SUCCESS)
		return attr.extension_supported;
	log_at(REG_LOG_PROVIDER, "%s: no attributes, %#x", provider->device_name, ret);
	return DAT_EXTENSION_NONE;
}

/* On failure nothing of the provider is open. */
static DAT_RETURN open_held(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			    const struct reg_hold *hold, DAT_IA_HANDLE *handle)
{
	DAT_IA_HANDLE object = DAT_HANDLE_NULL;
	DAT_RETURN ret = hold->dr->ia_open(name, qlen, async_evd, &object);

	if (ret != DAT_SUCCESS)
		return ret;
	if (!provider_of(object)) {
		log_at(REG_LOG_ERROR, "%s: its provider returned %p as the IA, which is no object",
		       name, object);
		return DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	}
	if (ia_insert(object, query_extension(object), hold, handle))
		return DAT_SUCCESS;
	provider_of(object)->ia_close_func(object, DAT_CLOSE_ABRUPT_FLAG);
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *ia_handle, DAT_UINT32 major, DAT_UINT32 minor,
			DAT_BOOLEAN thread_safe)
{
	CANCEL_OFF_HERE;
	struct reg_hold hold;
	DAT_RETURN ret;

	if (ia_handle)
		*ia_handle = DAT_HANDLE_NULL; /* the value on every failure */
	if (!name_is_valid(name))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!ia_handle)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = reg_acquire(name, major, minor, thread_safe, &hold);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = open_held(name, qlen, async_evd, &hold, ia_handle);
	log_at(REG_LOG_CONSUMER, "open %s: %#x, handle %p", name, ret, *ia_handle);
	if (ret != DAT_SUCCESS)
		reg_release(&hold);
	return ret;
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_retire(ia_handle);
	struct reg_hold hold;
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	if (reg_is_gone())
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	else
		ret = PROVIDER_ANSWER(ia->provider, ia_close_func, ia->object, flags);
	log_at(REG_LOG_CONSUMER, "close %p: %#x", ia_handle, ret);
	if (ret != DAT_SUCCESS) {
		ia_revive(ia);
		return ret;
	}
	hold = ia->hold;
	ia_remove(ia);
	reg_release(&hold);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd,
			DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, ia_query_func, ia->object, async_evd, ia_mask, ia_attr,
			      provider_mask, provider_attr);
	ia_release(ia);
	return ret;
}
