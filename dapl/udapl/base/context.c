/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The queries of any handle: its kind, its provider, and the consumer's context. */
#include <dat2/dat_event_extensions.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/base/obj.h"
#include "dapl/udapl/base/provider.h"

/* In the order of enum obj_kind; OBJ_FREE has none. */
static const DAT_HANDLE_TYPE types[OBJ_KINDS] = {
	[OBJ_IA] = DAT_HANDLE_TYPE_IA,	   [OBJ_PZ] = DAT_HANDLE_TYPE_PZ,
	[OBJ_LMR] = DAT_HANDLE_TYPE_LMR,   [OBJ_RMR] = DAT_HANDLE_TYPE_RMR,
	[OBJ_EVD] = DAT_HANDLE_TYPE_EVD,   [OBJ_CNO] = DAT_HANDLE_TYPE_CNO,
	[OBJ_EP] = DAT_HANDLE_TYPE_EP,	   [OBJ_SRQ] = DAT_HANDLE_TYPE_SRQ,
	[OBJ_PSP] = DAT_HANDLE_TYPE_PSP,   [OBJ_RSP] = DAT_HANDLE_TYPE_RSP,
	[OBJ_CSP] = DAT_HANDLE_TYPE_CSP,   [OBJ_CR] = DAT_HANDLE_TYPE_CR,
	[OBJ_PSET] = DAT_HANDLE_TYPE_PSET, [OBJ_UD_PEER] = (DAT_HANDLE_TYPE)DAT_IB_HANDLE_TYPE_EXT,
};

static struct obj *any_from(DAT_HANDLE handle, uint32_t *kind)
{
	struct obj *obj = handle;

	if ((uintptr_t)handle < 4096 || ((uintptr_t)handle & 7))
		return NULL;
	/* acquire: pairs with the release in obj_publish */
	*kind = atomic_load_explicit(&obj->kind, memory_order_acquire);
	return *kind != OBJ_FREE && *kind < OBJ_KINDS ? obj : NULL;
}

DAT_RETURN dapl_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	uint32_t kind;
	struct obj *obj = any_from(handle, &kind);

	if (!obj)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	obj->context = context;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	uint32_t kind;
	struct obj *obj = any_from(handle, &kind);

	if (!obj)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!context)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*context = obj->context;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	uint32_t kind;

	if (!any_from(handle, &kind))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!type)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*type = types[kind];
	return DAT_SUCCESS;
}

bool obj_is_ours(DAT_HANDLE handle)
{
	const DAT_PROVIDER *const *provider = handle;

	return (uintptr_t)handle >= 4096 && !((uintptr_t)handle & 7) && *provider &&
	       (*provider)->get_handle_type_func == dapl_get_handle_type;
}
