/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_evd_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno,
			  DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, evd_create_func, ia->object, qlen, cno, flags, evd);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_query_func, evd, mask, param);
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_modify_cno_func, evd, cno);
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT qlen)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_resize_func, evd, qlen);
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_enable_func, evd);
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_disable_func, evd);
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_set_unwaitable_func, evd);
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_clear_unwaitable_func, evd);
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *more)
{
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return provider->evd_wait_func(evd, timeout, threshold, event, more);
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return provider->evd_dequeue_func(evd, event);
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event)
{
	CANCEL_DEFER_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_post_se_func, evd, event);
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(evd);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EVD_REQUEST);
	return PROVIDER_ANSWER(provider, evd_free_func, evd);
}
