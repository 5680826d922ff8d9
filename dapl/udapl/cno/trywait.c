/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Arms many objects before one sleep, and returns the edition of the extension. */
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/cno/cno.h"

DAT_RETURN ext_ev_version(DAT_HANDLE ia, va_list args)
{
	DAT_UINT32 *major = va_arg(args, DAT_UINT32 *), *minor = va_arg(args, DAT_UINT32 *);

	(void)ia;
	if (!major)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!minor)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	*major = DAT_EV_VERSION_MAJOR;
	*minor = DAT_EV_VERSION_MINOR;
	return DAT_SUCCESS;
}

/*
 * Returns the index of the first object that is neither an EVD nor a CNO of this library, or count
 * if all are.
 */
static DAT_COUNT first_bad(const DAT_HANDLE *handles, DAT_COUNT count)
{
	DAT_COUNT i;

	for (i = 0; i < count; i++)
		if (!obj_is_ours(handles[i]) || (!evd_from(handles[i]) && !cno_from(handles[i])))
			break;
	return i;
}

DAT_RETURN ext_trywait(DAT_HANDLE ia, va_list args)
{
	const DAT_HANDLE *handles = va_arg(args, DAT_HANDLE *);
	DAT_COUNT count = va_arg(args, DAT_COUNT), *busy = va_arg(args, DAT_COUNT *), i;
	DAT_RETURN status;

	(void)ia;
	if (!handles)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (count < 1)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	i = first_bad(handles, count);
	status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (i == count) {
		status = DAT_SUCCESS;
		for (i = 0; i < count && status == DAT_SUCCESS; i++)
			status = evd_from(handles[i]) ? evd_arm(handles[i], false, 1)
						      : cno_arm(handles[i], false);
		i--;
	}
	if (status != DAT_SUCCESS && busy)
		*busy = i;
	return status;
}
