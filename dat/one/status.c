/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Translates results of DAT 2.0 to DAT 1.2. Types are equal except for one number and three new types. DAT 2.0 inserted
 * two subtypes: DAT_INVALID_HANDLE_CSP (0x1a) and DAT_INVALID_STATE_SRQ_SHUTDOWN (0x58).
 */
#include "dat/one/one.h"

#define TYPE_LAST    DAT_CONN_QUAL_UNAVAILABLE
#define SUBTYPE_LAST DAT_THREAD_SAFETY_NOT_FOUND

/* Maps a type that DAT 1.2 lacks to the closest one. */
static DAT_UINT32 type_to_one(DAT_UINT32 type)
{
	switch (type) {
	case TWO_PORT_IN_USE: return DAT_CONN_QUAL_IN_USE;
	case TWO_RESERVED_LMR:
	case TWO_COMM_NOT_SUPPORTED: return DAT_MODEL_NOT_SUPPORTED;
	default: return type;
	}
}

static DAT_UINT32 subtype_to_one(DAT_UINT32 subtype)
{
	if (subtype <= TWO_INVALID_HANDLE_CSP)
		return subtype;
	if (subtype < TWO_INVALID_STATE_SRQ_SHUTDOWN)
		return subtype - 1;
	if (subtype == TWO_INVALID_STATE_SRQ_SHUTDOWN)
		return DAT_INVALID_STATE_SRQ_ERROR;
	return subtype - 2;
}

DAT_RETURN one_failure(DAT_RETURN two_status)
{
	DAT_UINT32 type = DAT_GET_TYPE(two_status), class = two_status & ~0x3fffffffu;

	/* Outcomes such as QUEUE_EMPTY, which polling programs get all the time. */
	if (two_status <= TYPE_LAST && !DAT_GET_SUBTYPE(two_status))
		return two_status;
	if (type == TWO_NOT_IMPLEMENTED)
		return (DAT_RETURN)DAT_NOT_IMPLEMENTED;
	return class | type_to_one(type) | subtype_to_one(DAT_GET_SUBTYPE(two_status));
}

/* Maps a number unknown to DAT 1.2 to one unknown to DAT 2.0. */
DAT_RETURN one_status_to_two(DAT_RETURN status)
{
	DAT_UINT32 type = DAT_GET_TYPE(status), subtype = DAT_GET_SUBTYPE(status);

	if (type == DAT_GET_TYPE(DAT_NOT_IMPLEMENTED))
		type = TWO_NOT_IMPLEMENTED;
	else if (type > TYPE_LAST)
		type = 0x0fff0000;
	if (subtype > SUBTYPE_LAST)
		subtype = 0xffff;
	else if (subtype >= DAT_PRIVILEGES_READ)
		subtype += 2;
	else if (subtype >= DAT_INVALID_HANDLE1)
		subtype += 1;
	return (status & ~0x3fffffffu) | type | subtype;
}

DAT_RETURN one_failure_of_args(DAT_RETURN two_status, const unsigned char *place, unsigned places)
{
	DAT_RETURN status = one_failure(two_status);
	DAT_UINT32 n = DAT_GET_SUBTYPE(status) - DAT_INVALID_ARG1 + 1;

	if (DAT_GET_TYPE(status) != DAT_INVALID_PARAMETER || n < 1 || n >= places)
		return status;
	return (status & ~(DAT_UINT32)DAT_SUBTYPE_MASK) | (DAT_INVALID_ARG1 + place[n] - 1u);
}

DAT_RETURN one_refuse(DAT_HANDLE handle, DAT_HANDLE_TYPE type, unsigned arg)
{
	DAT_HANDLE_TYPE found;
	DAT_RETURN subtype;

	if (two.get_handle_type(handle, &found) == DAT_SUCCESS && found == type)
		return ONE_BAD_ARG(arg);
	switch (type) {
	case DAT_HANDLE_TYPE_IA: subtype = DAT_INVALID_HANDLE_IA; break;
	case DAT_HANDLE_TYPE_SRQ: subtype = DAT_INVALID_HANDLE_SRQ; break;
	case DAT_HANDLE_TYPE_RMR: subtype = DAT_INVALID_HANDLE_RMR; break;
	default: subtype = DAT_INVALID_HANDLE_EP; break;
	}
	return ONE_ERROR(DAT_INVALID_HANDLE, subtype);
}
