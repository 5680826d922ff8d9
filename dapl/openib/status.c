/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Translates errors of verbs and the CM to DAT return codes. */
#include <errno.h>
#include <string.h>
#include "dapl/openib/openib.h"

/* EFBIG: RLIMIT_FSIZE; EUSERS: the software device has no name left for a process. */
bool error_is_shortage(int error)
{
	return error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE ||
	       error == ENOSPC || error == ENOBUFS || error == EFBIG || error == EUSERS;
}

static DAT_RETURN translate(int error)
{
	if (error_is_shortage(error))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	switch (error) {
	case 0: return DAT_SUCCESS;
	case EACCES: return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, 0);
	case EPERM: return DAT_ERROR(DAT_PROTECTION_VIOLATION, 0);
	case EINVAL: return DAT_ERROR(DAT_INVALID_PARAMETER, 0);
	case EISCONN: return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
	case ECONNREFUSED: return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	case ETIMEDOUT: return DAT_ERROR(DAT_TIMEOUT_EXPIRED, 0);
	case ENETUNREACH:
	case EHOSTUNREACH: return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	case EAFNOSUPPORT: return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	case ENODEV: return DAT_ERROR(DAT_INVALID_ADDRESS, 0);
	case EADDRINUSE:
	case EADDRNOTAVAIL:
	case EBUSY: return DAT_ERROR(DAT_CONN_QUAL_IN_USE, 0);
	case EALREADY: return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING);
	case EINTR: return DAT_ERROR(DAT_INTERRUPTED_CALL, 0);
	case EOVERFLOW: return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	default: return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	}
}

DAT_RETURN ib_error(int error, const char *call, const char *object)
{
	if (error)
		log_at(LOG_WARN, "%s: %s: %s", object, call, strerror(error));
	return translate(error);
}
