/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Attributes of an IA by its name: the IA is opened without an async EVD while they are read. */
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/ia/open_query.h"

DAT_RETURN ext_open_query(DAT_HANDLE name, va_list args)
{
	DAT_HANDLE *out = va_arg(args, DAT_HANDLE *);
	DAT_IA_ATTR_MASK ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
	DAT_IA_ATTR *ia_attr = va_arg(args, DAT_IA_ATTR *);
	DAT_PROVIDER_ATTR_MASK provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
	DAT_PROVIDER_ATTR *provider_attr = va_arg(args, DAT_PROVIDER_ATTR *);
	DAT_EVD_HANDLE none = DAT_EVD_ASYNC_EXISTS;
	DAT_IA_HANDLE ia;
	DAT_RETURN status;

	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!ia_attr && !provider_attr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	status = dapl_ia_open((DAT_NAME_PTR)name, 0, &none, &ia);
	if (status != DAT_SUCCESS)
		return status;
	status = dapl_ia_query(ia, NULL, ia_attr ? ia_mask : 0, ia_attr,
			       provider_attr ? provider_mask : 0, provider_attr);
	if (status != DAT_SUCCESS) {
		dapl_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
		return status;
	}
	*out = ia;
	return DAT_SUCCESS;
}

DAT_RETURN ext_close_query(DAT_HANDLE ia, va_list args)
{
	(void)args;
	return dapl_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}
