/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Public service points: they take any number of requests. */
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/sp/sp.h"

/* dat_psp_create_any tries these qualifiers, each of which has a port of its own. */
#define ANY_FIRST 1024u
#define ANY_COUNT (65536u - ANY_FIRST)

static DAT_RETURN psp_check(struct dapl_ia *ia, bool has_qual, struct dapl_evd *evd,
			    DAT_PSP_FLAGS flags, const DAT_PSP_HANDLE *handle)
{
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	return has_qual ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* Tries each qualifier once, beginning with the last free one. */
static DAT_RETURN listen_any(struct dapl_sp *psp, DAT_PSP_HANDLE *handle)
{
	static _Atomic uint32_t hint;
	DAT_RETURN status;
	unsigned tries;

	for (tries = 0; tries < ANY_COUNT; tries++) {
		psp->qual = ANY_FIRST + atomic_fetch_add(&hint, 1) % ANY_COUNT;
		if (!ib_cm.qual_port(psp->qual))
			continue;
		status = sp_listen_qual(psp, handle);
		if (status == DAT_SUCCESS)
			ia_count(psp->obj.ia, DCNT_IA_PSP_CREATE_ANY);
		if (DAT_GET_TYPE(status) != DAT_CONN_QUAL_IN_USE)
			return status;
	}
	return DAT_ERROR(DAT_CONN_QUAL_UNAVAILABLE, 0);
}

/* Qualifier 0 stands for any. */
static DAT_RETURN psp_build(struct dapl_ia *ia, DAT_CONN_QUAL qual, struct dapl_evd *evd,
			    DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle, struct dapl_sp **psp)
{
	DAT_RETURN status;
	struct dapl_sp *new = sp_new(ia, OBJ_PSP, evd, &status);

	if (!new)
		return status;
	new->qual = qual;
	new->flags = flags;
	status = qual ? sp_listen_qual(new, handle) : listen_any(new, handle);
	if (status != DAT_SUCCESS)
		sp_destroy(new);
	else
		*psp = new;
	return status;
}

DAT_RETURN dapl_psp_create(DAT_IA_HANDLE ia_given, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd_given,
			   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle)
{
	struct dapl_ia *ia = ia_from(ia_given);
	struct dapl_evd *evd = evd_from(evd_given);
	DAT_RETURN status = psp_check(ia, qual, evd, flags, handle);
	struct dapl_sp *psp;

	return status == DAT_SUCCESS ? psp_build(ia, qual, evd, flags, handle, &psp) : status;
}

DAT_RETURN dapl_psp_create_any(DAT_IA_HANDLE ia_given, DAT_CONN_QUAL *qual,
			       DAT_EVD_HANDLE evd_given, DAT_PSP_FLAGS flags,
			       DAT_PSP_HANDLE *handle)
{
	struct dapl_ia *ia = ia_from(ia_given);
	struct dapl_evd *evd = evd_from(evd_given);
	DAT_RETURN status = psp_check(ia, qual, evd, flags, handle);
	struct dapl_sp *psp;

	if (status == DAT_SUCCESS)
		status = psp_build(ia, 0, evd, flags, handle, &psp);
	if (status == DAT_SUCCESS)
		*qual = psp->qual;
	return status;
}

DAT_RETURN dapl_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	struct dapl_sp *psp = psp_from(handle);

	if (!psp)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~(unsigned)DAT_PSP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*param = (DAT_PSP_PARAM){
		.ia_handle = ia_handle(psp->obj.ia),
		.conn_qual = psp->qual,
		.evd_handle = psp->evd,
		.psp_flags = psp->flags,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dapl_psp_free(DAT_PSP_HANDLE handle)
{
	return sp_free(psp_from(handle), DAT_INVALID_HANDLE_PSP);
}
