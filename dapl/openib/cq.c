/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion queues, each with a completion channel of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "dapl/openib/openib.h"

/* Acknowledging takes a mutex in libibverbs (ibv_ack_cq_events(3) advises to batch). */
#define ACK_BATCH 64

/*
 * Spreads the interrupts of CQs over the device's vectors. Otherwise one processor would take those of all processes. The
 * process number keeps processes that start alike from using the same one.
 */
static int comp_vector(const struct ib_device *device)
{
	static _Atomic unsigned created;
	unsigned count =
		device->verbs->num_comp_vectors > 1 ? (unsigned)device->verbs->num_comp_vectors : 1;

	return (int)(((unsigned)getpid() + atomic_fetch_add(&created, 1)) % count);
}

DAT_RETURN ib_cq_create(struct ib_device *device, int entries, void *owner, struct ib_cq **cq)
{
	struct ib_cq *new = calloc(1, sizeof(*new));
	int flags;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->owner = owner;
	new->device = device;
	new->moderation = 1;
	new->channel = ibv_create_comp_channel(device->verbs);
	if (!new->channel) {
		ib_error(errno, "ibv_create_comp_channel", device->attr.device_name);
		goto free_cq;
	}
	flags = fcntl(new->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(new->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		ib_error(errno, "fcntl", "completion channel");
		goto destroy_channel;
	}
	new->cq = ibv_create_cq(device->verbs, entries, new, new->channel, comp_vector(device));
	if (!new->cq) {
		ib_error(errno, "ibv_create_cq", device->attr.device_name);
		goto destroy_channel;
	}
	new->store.cq = new->cq;
	new->store.poll = device->verbs->ops.poll_cq;
	new->store.notify = device->verbs->ops.req_notify_cq;
	*cq = new;
	return DAT_SUCCESS;

destroy_channel:
	ibv_destroy_comp_channel(new->channel);
free_cq:
	free(new);
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

DAT_RETURN ib_cq_destroy(struct ib_cq *cq)
{
	unsigned unacked;
	int error;

	if (!cq)
		return DAT_SUCCESS;
	ib_cq_unregister(cq);
	while (ib_cq_collect(cq))
		;
	unacked = atomic_exchange(&cq->unacked, 0);
	if (unacked)
		ibv_ack_cq_events(cq->cq, unacked);
	error = ibv_destroy_cq(cq->cq);
	if (error)
		return ib_error(error, "ibv_destroy_cq", "CQ");
	error = ibv_destroy_comp_channel(cq->channel);
	if (error)
		ib_error(error, "ibv_destroy_comp_channel", "completion channel");
	free(cq);
	return DAT_SUCCESS;
}

DAT_RETURN ib_cq_resize(struct ib_cq *cq, int entries)
{
	int error = ibv_resize_cq(cq->cq, entries);

	return error ? ib_error(error, "ibv_resize_cq", "CQ") : DAT_SUCCESS;
}

int ib_cq_entries(const struct ib_cq *cq)
{
	return cq->cq->cqe;
}

static uint32_t dat_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS: return DAT_DTO_SUCCESS;
	case IBV_WC_WR_FLUSH_ERR: return DAT_DTO_ERR_FLUSHED;
	case IBV_WC_LOC_LEN_ERR: return DAT_DTO_ERR_LOCAL_LENGTH;
	case IBV_WC_LOC_QP_OP_ERR: return DAT_DTO_ERR_LOCAL_EP;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_LOC_RDD_VIOL_ERR: return DAT_DTO_ERR_LOCAL_PROTECTION;
	case IBV_WC_BAD_RESP_ERR: return DAT_DTO_ERR_BAD_RESPONSE;
	case IBV_WC_REM_ACCESS_ERR: return DAT_DTO_ERR_REMOTE_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
	case IBV_WC_REM_ABORT_ERR: return DAT_DTO_ERR_REMOTE_RESPONDER;
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR: return DAT_DTO_ERR_RECEIVER_NOT_READY;
	case IBV_WC_MW_BIND_ERR: return DAT_RMR_OPERATION_FAILED;
	default: /* RETRY_EXC_ERR, the EEC kinds, FATAL_ERR, GENERAL_ERR, newer ones */
		return DAT_DTO_ERR_TRANSPORT;
	}
}

#define SAME_PLACE(dat, verbs) \
	_Static_assert(offsetof(struct ib_completion, dat) == offsetof(struct ibv_wc, verbs), #dat)

/* struct ib_completion has the layout of struct ibv_wc, so that completions need no copy. */
SAME_PLACE(wr_id, wr_id);
SAME_PLACE(status, status);
SAME_PLACE(opcode, opcode);
SAME_PLACE(byte_len, byte_len);
SAME_PLACE(immediate, imm_data);
SAME_PLACE(immediate, invalidated_rkey);
SAME_PLACE(qp_num, qp_num);
SAME_PLACE(flags, wc_flags);
_Static_assert(sizeof(struct ib_completion) == sizeof(struct ibv_wc), "completions in a row");
_Static_assert(IB_WITH_IMMEDIATE == (int)IBV_WC_WITH_IMM &&
		       IB_WITH_INVALIDATE == (int)IBV_WC_WITH_INV,
	       "flags");
_Static_assert(IB_RECV_WRITE == IBV_WC_RECV_RDMA_WITH_IMM, "opcode");
_Static_assert((int)IBV_WC_SUCCESS == (int)DAT_DTO_SUCCESS, "success");

void ib_completion_translate(struct ib_completion *completion, bool read)
{
	/* Only wr_id, status, qp_num and vendor_err are defined then (ibv_poll_cq(3)). */
	/* A responder reports a read that its QP does not allow as an invalid request; DAT reports an access error. */
	completion->status = read && completion->status == IBV_WC_REM_INV_REQ_ERR
				     ? (uint32_t)DAT_DTO_ERR_REMOTE_ACCESS
				     : dat_status(completion->status);
	completion->byte_len = completion->immediate = completion->flags = 0;
}

void ib_cq_put_flushed(struct ib_cq *cq, uint64_t wr_id, uint32_t qp_num)
{
	struct ib_cq_store *store = ib_cq_store(cq);

	store->completions[0] = (struct ib_completion){ .wr_id = wr_id,
							.status = IBV_WC_WR_FLUSH_ERR,
							.qp_num = qp_num };
	store->next = store->completions;
	store->left = 1;
}

DAT_RETURN ib_cq_arm(struct ib_cq *cq, bool solicited_only)
{
	int error = cq->store.notify(cq->cq, solicited_only);

	return error ? ib_error(error, "ibv_req_notify_cq", "CQ") : DAT_SUCCESS;
}

int ib_cq_fd(const struct ib_cq *cq)
{
	return cq->channel->fd;
}

/* A waiter and the event thread may call this concurrently. */
bool ib_cq_collect(struct ib_cq *cq)
{
	struct ibv_cq *verbs;
	void *context;

	if (ibv_get_cq_event(cq->channel, &verbs, &context)) {
		if (errno != EAGAIN && errno != EINTR)
			ib_error(errno, "ibv_get_cq_event", "completion channel");
		return false;
	}
	if (atomic_fetch_add(&cq->unacked, 1) + 1 >= ACK_BATCH)
		ibv_ack_cq_events(verbs, atomic_exchange(&cq->unacked, 0));
	return true;
}

bool ib_cq_block_begin(struct ib_cq *cq)
{
	return ibv_block_begin && ibv_block_begin(cq->cq);
}

int ib_cq_block(struct ib_cq *cq, const struct timespec *timeout)
{
	return ibv_block(cq->cq, timeout);
}

void ib_cq_block_interrupt(struct ib_cq *cq)
{
	ibv_block_interrupt(cq->cq);
}

bool ib_cq_block_end(struct ib_cq *cq)
{
	return ibv_block_end(cq->cq);
}

void ib_cq_moderate(struct ib_cq *cq, uint32_t count)
{
	const struct ib_attr *attr = &cq->device->attr;
	struct ibv_modify_cq_attr modify = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	uint32_t period = attr->max_cq_moderation_us;
	int error;

	if (count > attr->max_cq_moderation)
		count = attr->max_cq_moderation ? attr->max_cq_moderation : 1;
	if (atomic_exchange(&cq->moderation, count) == count)
		return;
	if (period > IB_CQ_MODERATION_US)
		period = IB_CQ_MODERATION_US;
	/* 0, 0: no moderation */
	modify.moderate.cq_count = (uint16_t)(count > 1 ? count : 0);
	modify.moderate.cq_period = (uint16_t)(count > 1 ? period : 0);
	error = ibv_modify_cq(cq->cq, &modify);
	if (error)
		ib_error(error, "ibv_modify_cq", "CQ");
}
