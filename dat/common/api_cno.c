/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_cno_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			  DAT_CNO_HANDLE *cno)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, cno_create_func, ia->object, agent, cno);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret = DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	if (ia->provider->cno_fd_create_func)
		ret = PROVIDER_ANSWER(ia->provider, cno_fd_create_func, ia->object, fd, cno);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cno);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CNO);
	return PROVIDER_ANSWER(provider, cno_modify_agent_func, cno, agent);
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cno);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CNO);
	return PROVIDER_ANSWER(provider, cno_query_func, cno, mask, param);
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd)
{
	const DAT_PROVIDER *provider = provider_of(cno);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CNO);
	return provider->cno_wait_func(cno, timeout, evd);
}

DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cno);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CNO);
	if (!provider->cno_trigger_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return provider->cno_trigger_func(cno, evd);
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cno);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CNO);
	return PROVIDER_ANSWER(provider, cno_free_func, cno);
}
