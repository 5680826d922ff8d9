/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A provider without a device: counts its calls and behaves as its test program sets it up. */
#include <stdarg.h>
#include "test/unit/fake.h"

static DAT_PROVIDER table;

static DAT_HANDLE object_new(DAT_HANDLE_TYPE type)
{
	struct fake_object *object = calloc(1, sizeof(*object));

	object->provider = &table;
	object->type = type;
	return object;
}

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			  DAT_IA_HANDLE *ia)
{
	(void)qlen;
	if (!async_evd)
		return FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	fake.opens++;
	if (fake.in_open)
		fake.in_open(name);
	if (fake.open_result == DAT_SUCCESS)
		*ia = fake.open_as ? fake.open_as : object_new(DAT_HANDLE_TYPE_IA);
	return fake.open_result;
}

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK mask,
			   DAT_IA_ATTR *attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			   DAT_PROVIDER_ATTR *provider_attr)
{
	(void)async_evd;
	(void)provider_mask;
	(void)provider_attr;
	if (fake.in_query)
		fake.in_query(ia);
	if (mask)
		attr->extension_supported = fake.extension;
	return fake.query_result;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	(void)flags;
	if (fake.in_close)
		fake.in_close(ia);
	if (fake.close_result != DAT_SUCCESS)
		return fake.close_result;
	fake.closes++;
	free(ia);
	return DAT_SUCCESS;
}

static DAT_RETURN get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	*type = ((struct fake_object *)handle)->type;
	return DAT_SUCCESS;
}

static DAT_RETURN pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{
	(void)ia;
	*pz = object_new(DAT_HANDLE_TYPE_PZ);
	return DAT_SUCCESS;
}

static DAT_RETURN pz_free(DAT_PZ_HANDLE pz)
{
	free(pz);
	return DAT_SUCCESS;
}

static DAT_RETURN ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *related)
{
	(void)ia;
	(void)name;
	*related = fake.related;
	return fake.related_result;
}

static DAT_RETURN extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAT_HANDLE *out;
	int a;
	long b;

	switch (op) {
	case FAKE_OPEN_OP: out = va_arg(args, DAT_HANDLE *); return ia_open(handle, 0, out, out);
	case FAKE_CLOSE_OP: return ia_close(handle, DAT_CLOSE_ABRUPT_FLAG);
	case FAKE_ADD_OP:
		a = va_arg(args, int);
		b = va_arg(args, long);
		*va_arg(args, int *) = a + (int)b;
		return DAT_SUCCESS;
	default: return FAKE_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	}
}

static DAT_PROVIDER table = {
	.device_name = "fake",
	.ia_open_func = ia_open,
	.ia_query_func = ia_query,
	.ia_close_func = ia_close,
	.get_handle_type_func = get_handle_type,
	.pz_create_func = pz_create,
	.pz_free_func = pz_free,
	.ia_ha_related_func = ia_ha_related,
	.handle_extendedop_func = extended_op,
};

#pragma GCC visibility push(default)
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);
#pragma GCC visibility pop

/* Registers the name, unless the parameters say "silent"; "also NAME" adds another one. */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	DAT_PROVIDER_INFO also = *info;

	fake.inits++;
	if (strcmp(params, "silent"))
		dat_registry_add_provider(&table, info);
	if (!strncmp(params, "also ", 5)) {
		snprintf(also.ia_name, sizeof(also.ia_name), "%s", params + 5);
		dat_registry_add_provider(&table, &also);
	}
	if (fake.in_init)
		fake.in_init(info, params);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	fake.finis++;
	if (fake.in_fini)
		fake.in_fini(info);
	else
		fake.removed = dat_registry_remove_provider(&table, info);
}

__attribute__((destructor)) static void unload(void)
{
	fake.unloads++;
	if (fake.in_unload)
		fake.in_unload();
}
