/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names for the log: states, events, and reasons why a call was refused. */
#include <dat2/dat_event_extensions.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/base/names.h"
#include "util/argument.h"
#include "util/log.h"

#define NAME(prefix, name) \
	case prefix##name: return #name

const char *ep_state_name(DAT_EP_STATE state)
{
	switch (state) {
		NAME(DAT_EP_STATE_, UNCONNECTED);
		NAME(DAT_EP_STATE_, UNCONFIGURED_UNCONNECTED);
		NAME(DAT_EP_STATE_, RESERVED);
		NAME(DAT_EP_STATE_, UNCONFIGURED_RESERVED);
		NAME(DAT_EP_STATE_, PASSIVE_CONNECTION_PENDING);
		NAME(DAT_EP_STATE_, UNCONFIGURED_PASSIVE);
		NAME(DAT_EP_STATE_, ACTIVE_CONNECTION_PENDING);
		NAME(DAT_EP_STATE_, TENTATIVE_CONNECTION_PENDING);
		NAME(DAT_EP_STATE_, UNCONFIGURED_TENTATIVE);
		NAME(DAT_EP_STATE_, CONNECTED);
		NAME(DAT_EP_STATE_, DISCONNECT_PENDING);
		NAME(DAT_EP_STATE_, DISCONNECTED);
		NAME(DAT_EP_STATE_, COMPLETION_PENDING);
		NAME(DAT_EP_STATE_, CONNECTED_SINGLE_PATH);
		NAME(DAT_EP_STATE_, CONNECTED_MULTI_PATH);
	}
	return "no state";
}

const char *connection_event_name(DAT_EVENT_NUMBER event)
{
	switch (event) {
		NAME(DAT_CONNECTION_EVENT_, ESTABLISHED);
		NAME(DAT_CONNECTION_EVENT_, PEER_REJECTED);
		NAME(DAT_CONNECTION_EVENT_, NON_PEER_REJECTED);
		NAME(DAT_CONNECTION_EVENT_, ACCEPT_COMPLETION_ERROR);
		NAME(DAT_CONNECTION_EVENT_, DISCONNECTED);
		NAME(DAT_CONNECTION_EVENT_, BROKEN);
		NAME(DAT_CONNECTION_EVENT_, TIMED_OUT);
		NAME(DAT_CONNECTION_EVENT_, UNREACHABLE);
	default: return "no event of connections";
	}
}

const char *async_error_name(DAT_EVENT_NUMBER event)
{
	switch (event) {
		NAME(DAT_ASYNC_ERROR_, EVD_OVERFLOW);
		NAME(DAT_ASYNC_ERROR_, IA_CATASTROPHIC);
		NAME(DAT_ASYNC_ERROR_, EP_BROKEN);
		NAME(DAT_ASYNC_ERROR_, PROVIDER_INTERNAL_ERROR);
	default: return "no async error";
	}
}

const char *ext_op_name(DAT_EXTENDED_OP op)
{
	switch ((int)op) {
		NAME(, DAT_IB_FETCH_AND_ADD_OP);
		NAME(, DAT_IB_CMP_AND_SWAP_OP);
		NAME(, DAT_IB_RDMA_WRITE_IMMED_OP);
		NAME(, DAT_IB_UD_SEND_OP);
		NAME(, DAT_IB_UD_CM_FREE_OP);
		NAME(, DAT_IB_UD_AH_FREE_OP);
		NAME(, DAT_IB_QUERY_COUNTERS_OP);
		NAME(, DAT_IB_PRINT_COUNTERS_OP);
		NAME(, DAT_IB_START_COUNTERS_OP);
		NAME(, DAT_IB_STOP_COUNTERS_OP);
		NAME(, DAT_IB_OPEN_QUERY_OP);
		NAME(, DAT_IB_CLOSE_QUERY_OP);
		NAME(, DAT_EV_VERSION_OP);
		NAME(, DAT_EVD_GET_FD_OP);
		NAME(, DAT_EVD_ARM_OP);
		NAME(, DAT_EVD_DEQUEUE_N_OP);
		NAME(, DAT_EVD_PENDING_OP);
		NAME(, DAT_EVD_SIGNAL_OP);
		NAME(, DAT_EVD_WAIT_POLICY_OP);
		NAME(, DAT_CNO_GET_FD_OP);
		NAME(, DAT_CNO_ARM_OP);
		NAME(, DAT_CNO_SIGNAL_OP);
		NAME(, DAT_CNO_POLL_OP);
		NAME(, DAT_CNO_GET_POLLFDS_OP);
		NAME(, DAT_TRYWAIT_OP);
		NAME(, DAT_WAIT_MEM_OP);
		NAME(, DAT_PSET_CREATE_OP);
		NAME(, DAT_PSET_ADD_OP);
		NAME(, DAT_PSET_DEL_OP);
		NAME(, DAT_PSET_POLL_OP);
		NAME(, DAT_PSET_FREE_OP);
	default: return "no extension operation";
	}
}

void refusal_log(const char *call, const char *arguments, const void *handle, DAT_RETURN status)
{
	unsigned subtype = DAT_GET_SUBTYPE(status);
	const char *type, *detail;
	char name[ARGUMENT_NAME_SIZE] = "";

	dat_strerror(status, &type, &detail);
	if (subtype >= DAT_INVALID_ARG1 && subtype <= DAT_INVALID_ARG10)
		argument_name(arguments, subtype - DAT_INVALID_ARG1 + 1, name);
	log_write("%s of %p: %s%s%s%s", call, handle, type, *detail ? " " : "", detail, name);
}
