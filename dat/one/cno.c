/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_cno_*. */
#include "dat/one/one.h"

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *cno)
{
	return one_status(two.cno_create(ia, agent, cno));
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	return one_status(two.cno_modify_agent(cno, agent));
}

/*
 * Queries all members, since the masks of the two versions have nothing in common. A CNO with a descriptor, which only
 * DAT 2.0 can create, has no agent.
 */
DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	bool known = !((DAT_UINT32)mask & ~(DAT_UINT32)DAT_CNO_FIELD_ALL);
	struct two_cno_param two_param = { .ia_handle = DAT_HANDLE_NULL };
	DAT_RETURN ret = one_status(two.cno_query(cno, known ? TWO_CNO_FIELD_ALL : ONE_ENUM_UNKNOWN,
						  param ? &two_param : NULL));

	if (ret != DAT_SUCCESS)
		return ret;
	if (!known)
		return ONE_BAD_ARG(2);
	if (!param)
		return DAT_SUCCESS;
	param->ia_handle = two_param.ia_handle;
	param->agent = two_param.proxy_type == TWO_PROXY_TYPE_FD ? DAT_OS_WAIT_PROXY_AGENT_NULL
								 : two_param.proxy.agent;
	return DAT_SUCCESS;
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno)
{
	return one_status(two.cno_free(cno));
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd)
{
	return one_status(two.cno_wait(cno, timeout, evd));
}
