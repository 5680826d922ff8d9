/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_psp_*, dat_rsp_* and dat_cr_*. */
#include "dat/one/one.h"

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qualifier, DAT_EVD_HANDLE evd,
			  DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp)
{
	return one_status(two.psp_create(ia, qualifier, evd, flags, psp));
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qualifier, DAT_EVD_HANDLE evd,
			      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp)
{
	return one_status(two.psp_create_any(ia, qualifier, evd, flags, psp));
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	return one_status(two.psp_query(psp, mask, param));
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp)
{
	return one_status(two.psp_free(psp));
}

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qualifier, DAT_EP_HANDLE ep,
			  DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *rsp)
{
	return one_status(two.rsp_create(ia, qualifier, ep, evd, rsp));
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	return one_status(two.rsp_query(rsp, mask, param));
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp)
{
	return one_status(two.rsp_free(rsp));
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	return one_status(two.cr_query(cr, mask, param));
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data)
{
	return one_status(two.cr_accept(cr, ep, size, data));
}

/* DAT 1.2 has no private data here. */
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr)
{
	return one_status(two.cr_reject(cr, 0, NULL));
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL handoff)
{
	return one_status(two.cr_handoff(cr, handoff));
}
