/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Logs refused calls: the call, its object, the bad argument and the reason. */
#include "dat/common/handle.h"
#include "util/argument.h"
#include "util/log.h"

static const char *const kinds[] = {
	[DAT_HANDLE_TYPE_CR] = "CR",   [DAT_HANDLE_TYPE_EP] = "EP",   [DAT_HANDLE_TYPE_EVD] = "EVD",
	[DAT_HANDLE_TYPE_IA] = "IA",   [DAT_HANDLE_TYPE_LMR] = "LMR", [DAT_HANDLE_TYPE_PSP] = "PSP",
	[DAT_HANDLE_TYPE_PZ] = "PZ",   [DAT_HANDLE_TYPE_RMR] = "RMR", [DAT_HANDLE_TYPE_RSP] = "RSP",
	[DAT_HANDLE_TYPE_CNO] = "CNO", [DAT_HANDLE_TYPE_SRQ] = "SRQ", [DAT_HANDLE_TYPE_CSP] = "CSP",
};

/* The type of the handle, queried from the provider, except for a handle that it has just refused. */
static const char *kind_of(const DAT_PROVIDER *provider, DAT_HANDLE handle, DAT_RETURN ret)
{
	DAT_HANDLE_TYPE type;

	if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE ||
	    provider->get_handle_type_func(handle, &type) != DAT_SUCCESS ||
	    (size_t)type >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[type])
		return "handle";
	return kinds[type];
}

DAT_RETURN refused_by_provider(const char *call, const char *arguments,
			       const DAT_PROVIDER *provider, DAT_HANDLE handle, DAT_RETURN ret)
{
	unsigned subtype = DAT_GET_SUBTYPE(ret);
	const char *type, *detail;
	char name[ARGUMENT_NAME_SIZE] = "";

	dat_strerror(ret, &type, &detail);
	if (subtype >= DAT_INVALID_ARG1 && subtype <= DAT_INVALID_ARG10)
		argument_name(arguments, subtype - DAT_INVALID_ARG1 + 1, name);
	log_write("%s of %s %p: %s%s%s%s", call, kind_of(provider, handle, ret), handle, type,
		  *detail ? " " : "", detail, name);
	return ret;
}

DAT_RETURN refused_handle(const char *call, DAT_RETURN_SUBTYPE subtype)
{
	const DAT_RETURN ret = DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	const char *type, *detail;

	if (log_on(REG_LOG_CONSUMER)) {
		dat_strerror(ret, &type, &detail);
		log_write("%s of what is no object: %s %s", call, type, detail);
	}
	return ret;
}
