/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls for handles of any type: handle type and consumer context. */
#include "dat/common/handle.h"

DAT_RETURN dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	CANCEL_DEFER_HERE;
	struct ia_slot *ia;
	DAT_HANDLE object = handle_acquire(handle, &ia);
	DAT_RETURN ret;

	if (!object)
		return bad_handle(DAT_INVALID_HANDLE1);
	ret = provider_of(object)->set_consumer_context_func(object, context);
	handle_release(ia);
	return ret;
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	CANCEL_DEFER_HERE;
	struct ia_slot *ia;
	DAT_HANDLE object = handle_acquire(handle, &ia);
	DAT_RETURN ret;

	if (!object)
		return bad_handle(DAT_INVALID_HANDLE1);
	ret = provider_of(object)->get_consumer_context_func(object, context);
	handle_release(ia);
	return ret;
}

DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	CANCEL_DEFER_HERE;
	struct ia_slot *ia;
	DAT_HANDLE object = handle_acquire(handle, &ia);
	DAT_RETURN ret;

	if (!object)
		return bad_handle(DAT_INVALID_HANDLE1);
	ret = provider_of(object)->get_handle_type_func(object, type);
	handle_release(ia);
	return ret;
}
