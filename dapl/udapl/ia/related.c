/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Whether another name leads to a port of the same device, for dat_registry_providers_related. */
#include <string.h>
#include "dapl/udapl/base/ia.h"
#include "dapl/udapl/base/provider.h"

/* Returns an error and leaves *answer unchanged if the name cannot be opened. */
DAT_RETURN dapl_ia_ha_related(DAT_IA_HANDLE handle, const DAT_NAME_PTR name, DAT_BOOLEAN *answer)
{
	const struct dapl_ia *ia = ia_from(handle), *other;
	DAT_EVD_HANDLE none = DAT_EVD_ASYNC_EXISTS;
	DAT_IA_HANDLE opened;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!answer)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	status = dapl_ia_open(name, 0, &none, &opened);
	if (status != DAT_SUCCESS)
		return status;
	other = ia_from(opened);
	*answer = other->attr->guid == ia->attr->guid &&
		  !strcmp(other->attr->device_name, ia->attr->device_name);
	return dapl_ia_close(opened, DAT_CLOSE_ABRUPT_FLAG);
}
