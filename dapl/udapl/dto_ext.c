/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completions of the InfiniBand extensions: what was posted through them, and immediate data. */
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/dto_event.h"

_Static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) ==
	       sizeof(((DAT_EVENT *)NULL)->event_extension_data), "extension data");

static DAT_IB_EXT_TYPE type_of(uint32_t operation)
{
	switch (operation) {
	case DAT_IB_DTO_FETCH_ADD:
		return DAT_IB_FETCH_AND_ADD;
	case DAT_IB_DTO_CMP_SWAP:
		return DAT_IB_CMP_AND_SWAP;
	case DAT_IB_DTO_RECV_IMMED:
		return DAT_IB_RDMA_WRITE_IMMED_DATA;
	case DAT_IB_DTO_RECV_MSG_IMMED:
		return DAT_IB_RECV_IMMED_DATA;
	default:
		return DAT_IB_RDMA_WRITE_IMMED;
	}
}

void dto_fill_extended(struct dapl_evd *evd, struct dapl_ep *ep, const struct dto_slot *slot,
		       const struct ib_completion *completion, DAT_EVENT *event)
{
	DAT_IB_EXTENSION_EVENT_DATA *data =
		(DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
	uint32_t operation = slot->operation, length = slot->length, immediate = 0;

	if (operation == DAT_DTO_RECEIVE) {
		operation = completion->opcode == IB_RECV_WRITE ? DAT_IB_DTO_RECV_IMMED :
								  DAT_IB_DTO_RECV_MSG_IMMED;
		length = completion->byte_len;
		immediate = completion->immediate;
		dto_count_received(ep, operation == DAT_IB_DTO_RECV_IMMED ?
				   DCNT_EP_RECV_RDMA_IMM : DCNT_EP_RECV_IMM, length);
	}
	if (completion->status != DAT_DTO_SUCCESS)
		length = 0;
	dto_fill(evd, ep, slot->cookie, completion->status, length, operation, 0, event);
	event->event_number = (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT;
	data->type = type_of(operation);
	data->status = completion->status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	data->val.immed.data = immediate;
}
