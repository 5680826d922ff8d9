/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_srq_* but the post, and dat_pz_*. */
#include "dat/one/one.h"

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
			  DAT_SRQ_HANDLE *srq)
{
	return one_status(two.srq_create(ia, pz, attr, srq));
}

/* The layouts are equal, but the numbers of the states differ; an SRQ that is being freed accepts no posts. */
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	DAT_SRQ_PARAM found = { .ia_handle = DAT_HANDLE_NULL };
	DAT_RETURN ret = one_status(two.srq_query(srq, mask, param ? &found : NULL));

	if (ret != DAT_SUCCESS || !param)
		return ret;
	found.srq_state = (int)found.srq_state == TWO_SRQ_STATE_OPERATIONAL
				  ? DAT_SRQ_STATE_OPERATIONAL
				  : DAT_SRQ_STATE_ERROR;
	*param = found;
	return DAT_SUCCESS;
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT max_recv)
{
	return one_status(two.srq_resize(srq, max_recv));
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low)
{
	return one_status(two.srq_set_lw(srq, low));
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq)
{
	return one_status(two.srq_free(srq));
}

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{
	return one_status(two.pz_create(ia, pz));
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	return one_status(two.pz_query(pz, mask, param));
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz)
{
	return one_status(two.pz_free(pz));
}
