/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completions of the InfiniBand extensions: what was posted through them, and immediate data. */
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/evd/dto_event.h"

_Static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) ==
		       sizeof(((DAT_EVENT *)NULL)->event_extension_data),
	       "extension data");

static DAT_IB_EXT_TYPE type_of(uint32_t operation)
{
	switch (operation) {
	case DAT_IB_DTO_FETCH_ADD: return DAT_IB_FETCH_AND_ADD;
	case DAT_IB_DTO_CMP_SWAP: return DAT_IB_CMP_AND_SWAP;
	case DAT_IB_DTO_RECV_IMMED: return DAT_IB_RDMA_WRITE_IMMED_DATA;
	case DAT_IB_DTO_RECV_MSG_IMMED: return DAT_IB_RECV_IMMED_DATA;
	case DAT_IB_DTO_SEND_UD: return DAT_IB_UD_SEND;
	case DAT_IB_DTO_RECV_UD:
	case DAT_IB_DTO_RECV_UD_IMMED: return DAT_IB_UD_RECV;
	default: return DAT_IB_RDMA_WRITE_IMMED;
	}
}

static uint32_t received_as(const struct obj *ep, const struct ib_completion *completion)
{
	if (dto_end_of(ep)->datagrams)
		return completion->flags & IB_WITH_IMMEDIATE ? DAT_IB_DTO_RECV_UD_IMMED
							     : DAT_IB_DTO_RECV_UD;
	return completion->opcode == IB_RECV_WRITE ? DAT_IB_DTO_RECV_IMMED
						   : DAT_IB_DTO_RECV_MSG_IMMED;
}

static DAT_EP_COUNTERS dto_ext_counter_of(uint32_t operation)
{
	return operation == DAT_IB_DTO_RECV_IMMED	? DCNT_EP_RECV_RDMA_IMM
	       : operation == DAT_IB_DTO_RECV_MSG_IMMED ? DCNT_EP_RECV_IMM
							: DCNT_EP_RECV_UD;
}

void dto_fill_extended(struct dapl_evd *evd, struct obj *ep, const struct dto_slot *slot,
		       const struct ib_completion *completion, DAT_EVENT *event)
{
	DAT_IB_EXTENSION_EVENT_DATA *data =
		(DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
	uint32_t operation = slot->operation, length = slot->length, immediate = 0;

	if (operation == DAT_DTO_RECEIVE) {
		operation = received_as(ep, completion);
		length = completion->byte_len;
		immediate = completion->flags & IB_WITH_IMMEDIATE ? completion->immediate : 0;
		if (completion->status == DAT_DTO_SUCCESS)
			dto_count_received(ep, dto_ext_counter_of(operation), 1, length);
	}
	if (completion->status != DAT_DTO_SUCCESS)
		length = immediate = 0;
	dto_fill(evd, ep, slot->cookie, completion->status, length, operation, 0, event);
	event->event_number = (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT;
	data->type = type_of(operation);
	data->status = completion->status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	data->val.immed.data = immediate;
}
