/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* DAT codes in words. */

#include <stdio.h>

#include "common.h"

/* Some codes come with and without the error class, so only the type is compared. */
bool dat_is(DAT_RETURN ret, DAT_RETURN_TYPE type)
{
	return DAT_GET_TYPE(ret) == (DAT_RETURN)type;
}

const char *dat_text(DAT_RETURN ret, char text[128])
{
	const char *major = "unknown code", *minor = "";

	dat_strerror(ret, &major, &minor);
	snprintf(text, 128, "%s %s (0x%08x)", major, minor, (unsigned int)ret);
	return text;
}

bool dat_ok(DAT_RETURN ret, const char *call)
{
	char text[128];

	if (ret == DAT_SUCCESS)
		return true;
	complain("Error %s: %s", call, dat_text(ret, text));
	return false;
}

struct name {
	int value;
	const char *text;
};

#define NAME(value)           \
	{                     \
		value, #value \
	}

static const char *name_find(const struct name *names, size_t count, int value, const char *other)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].value == value)
			return names[i].text;
	return other;
}

const char *event_name(DAT_EVENT_NUMBER number)
{
	static const struct name names[] = {
		NAME(DAT_DTO_COMPLETION_EVENT),
		NAME(DAT_RMR_BIND_COMPLETION_EVENT),
		NAME(DAT_CONNECTION_REQUEST_EVENT),
		NAME(DAT_CONNECTION_EVENT_ESTABLISHED),
		NAME(DAT_CONNECTION_EVENT_PEER_REJECTED),
		NAME(DAT_CONNECTION_EVENT_NON_PEER_REJECTED),
		NAME(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR),
		NAME(DAT_CONNECTION_EVENT_DISCONNECTED),
		NAME(DAT_CONNECTION_EVENT_BROKEN),
		NAME(DAT_CONNECTION_EVENT_TIMED_OUT),
		NAME(DAT_CONNECTION_EVENT_UNREACHABLE),
		NAME(DAT_ASYNC_ERROR_EVD_OVERFLOW),
		NAME(DAT_ASYNC_ERROR_IA_CATASTROPHIC),
		NAME(DAT_ASYNC_ERROR_EP_BROKEN),
		NAME(DAT_ASYNC_ERROR_TIMED_OUT),
		NAME(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR),
		NAME(DAT_SOFTWARE_EVENT),
		NAME(DAT_IB_DTO_EVENT),
		NAME(DAT_IB_UD_CONNECTION_REQUEST_EVENT),
		NAME(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED),
		NAME(DAT_IB_UD_CONNECTION_REJECT_EVENT),
		NAME(DAT_IB_UD_CONNECTION_ERROR_EVENT),
	};

	return name_find(names, sizeof(names) / sizeof(names[0]), (int)number, "unknown event");
}

const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status)
{
	static const struct name names[] = {
		NAME(DAT_DTO_SUCCESS),
		NAME(DAT_DTO_ERR_FLUSHED),
		NAME(DAT_DTO_ERR_LOCAL_LENGTH),
		NAME(DAT_DTO_ERR_LOCAL_EP),
		NAME(DAT_DTO_ERR_LOCAL_PROTECTION),
		NAME(DAT_DTO_ERR_BAD_RESPONSE),
		NAME(DAT_DTO_ERR_REMOTE_ACCESS),
		NAME(DAT_DTO_ERR_REMOTE_RESPONDER),
		NAME(DAT_DTO_ERR_TRANSPORT),
		NAME(DAT_DTO_ERR_RECEIVER_NOT_READY),
		NAME(DAT_DTO_ERR_PARTIAL_PACKET),
		NAME(DAT_RMR_OPERATION_FAILED),
	};

	return name_find(names, sizeof(names) / sizeof(names[0]), (int)status, "unknown status");
}
