/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The initiator's side of a QP whose peer is on another host: sends its requests, and takes the answers. */
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/data.h"
#include "softverbs/rc/memory.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/request.h"
#include "util/clock.h"

#define AGAIN_PAUSE (10 * NSEC_PER_MSEC) /* before a QP that was not ready is tried again */

/* ---- requests ---- */

/* Local operations are executed when they are the oldest, by the usual path. */
static bool is_local(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV;
}

static void request_describe(const struct sv_qp *qp, const struct ibv_send_wr *wr,
			     struct far_request *request)
{
	const struct sv_far *far = far_of(qp);

	*request = (struct far_request){
		.dest = far->qpn,
		.source = qp->ibv.qp_num,
		.connection = far->connection,
		.number = far->wire,
		.opcode = (uint8_t)wr->opcode,
		.flags = wr->send_flags & IBV_SEND_SOLICITED ? FAR_SOLICITED : 0,
		.rnr_retry = qp->attr.rnr_retry,
		.retry = qp->attr.retry_cnt,
		.timeout = qp->attr.timeout,
		.imm = wr->opcode == IBV_WR_SEND_WITH_INV ? htobe32(wr->invalidate_rkey)
							  : wr->imm_data,
		.length = (uint32_t)sv_wr_length(wr),
	};
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		request->addr = wr->wr.atomic.remote_addr;
		request->rkey = wr->wr.atomic.rkey;
		request->args[0] = wr->wr.atomic.compare_add;
		request->args[1] = wr->wr.atomic.swap;
	} else {
		request->addr = wr->wr.rdma.remote_addr;
		request->rkey = wr->wr.rdma.rkey;
	}
}

/* Copies [skip, skip + length) of a list into `to`. Short payload is read as the local path does; longer by the
 * kernel, so that an unmapped page is an error. */
static bool request_gather(uint8_t *to, const struct iovec *iov, unsigned count, uint64_t skip,
			   uint32_t length, bool plain)
{
	for (unsigned i = 0; i < count && length; i++) {
		struct iovec part = { (uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip };

		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		if (part.iov_len > length)
			part.iov_len = length;
		if (plain)
			memcpy(to, part.iov_base, part.iov_len);
		else if (!sv_memory_copy(&part, to, false))
			return false;
		to += part.iov_len;
		length -= (uint32_t)part.iov_len;
		skip = 0;
	}
	return true;
}

/* Sends one request. 0; EXEC_WAIT if there is no memory; else the status with which it fails. */
static int request_send(struct sv_qp *qp, const struct ibv_send_wr *wr, const struct iovec *iov)
{
	struct sv_far *far = far_of(qp);
	struct far_request request;
	struct fabric_out *out;
	uint32_t part, all;

	request_describe(qp, wr, &request);
	if (far->due.count) {
		request.flags |= FAR_ANSWERS;
		request.answer.connection = far->due.connection;
		request.answer.number = far->due.number;
	}
	all = far_brings_data(wr->opcode) ? 0 : request.length;
	do {
		part = all - request.offset < FAR_FRAGMENT ? all - request.offset : FAR_FRAGMENT;
		out = sv_fabric_out_new(WIRE_REQUEST, FAR_REQUEST_SIZE + part);
		if (!out)
			return IBV_WC_GENERAL_ERR;
		sv_far_request_write(fabric_out_payload(out), &request);
		if (!request_gather(fabric_out_payload(out) + FAR_REQUEST_SIZE, iov,
				    (unsigned)wr->num_sge, request.offset, part, all <= SQ_SHORT)) {
			free(out);
			return IBV_WC_LOC_PROT_ERR;
		}
		sv_fabric_out_send(far->peer, out); /* else the link is about to end */
		far->due.count = 0;
		request.flags &= (uint8_t)~FAR_ANSWERS;
		request.offset += part;
	} while (request.offset < all);
	return 0;
}

/* Whether one more request of that length may be sent. */
static bool window_has(const struct sv_qp *qp, uint64_t length)
{
	const struct sv_far *far = far_of(qp);
	uint64_t bytes = length;

	if (far->wire == far->done)
		return true;
	if (far->wire - far->done >= FAR_WINDOW)
		return false;
	for (uint32_t n = qp->sq.exec; n != far->sent; n++)
		bytes += sv_wr_length(&qp->sq.held[n & qp->sq.mask]);
	return bytes <= FAR_BYTES;
}

int sv_far_push_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_far *far = far_of(qp);

	if (far->again_at && clock_now() < far->again_at)
		return EXEC_WAIT(SQ_SENT);
	far->held_back = far->executing;
	if (far->held_back)
		return EXEC_WAIT(SQ_SENT);
	far->again_at = 0;
	if ((int32_t)(sq->exec - far->sent) > 0)
		far->sent = sq->exec; /* a local operation was executed */
	while (far->sent != sq->head) {
		const struct ibv_send_wr *wr = &sq->held[far->sent & sq->mask];
		unsigned need = far_brings_data(wr->opcode) ? IBV_ACCESS_LOCAL_WRITE : REGION_LOCAL;
		struct iovec iov[SV_MAX_SGE];
		uint64_t length = sv_wr_length(wr);
		int status;

		/* one that must fail does so when it is the oldest */
		if (is_local(wr) || length > SV_MAX_MSG || !window_has(qp, length) ||
		    !sv_send_resolve(qp, wr, need, iov))
			break;
		status = request_send(qp, wr, iov);
		if (status)
			return far->sent == sq->exec ? status : EXEC_WAIT(SQ_SENT);
		far->sent++;
		far->wire++;
	}
	return EXEC_WAIT(SQ_SENT);
}

/* ---- answers ---- */

/* Writes a part of the answer's data into the memory of the oldest request. */
static bool scatter(const struct sv_qp *qp, const struct ibv_send_wr *wr,
		    const struct far_done *done, const uint8_t *data, size_t size)
{
	struct iovec iov[SV_MAX_SGE];
	uint64_t skip = done->offset;

	if (done->length != sv_wr_length(wr) ||
	    !sv_send_resolve(qp, wr, IBV_ACCESS_LOCAL_WRITE, iov))
		return false;
	for (int i = 0; i < wr->num_sge && size; i++) {
		struct iovec part = { (uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip };

		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		if (part.iov_len > size)
			part.iov_len = size;
		if (!sv_memory_copy(&part, (uint8_t *)(uintptr_t)data, true))
			return false;
		data += part.iov_len;
		size -= part.iov_len;
		skip = 0;
	}
	return true;
}

/* The peer's QP is not ready: the requests are sent again later. False if that has lasted too long. */
static bool again_locked(struct sv_qp *qp)
{
	struct sv_far *far = far_of(qp);
	uint64_t now = clock_now(), period = qp->attr.timeout ? 4096ull << qp->attr.timeout : 0;

	far->sent = qp->sq.exec;
	far->wire = far->done;
	if (!far->give_up_at)
		far->give_up_at = period ? now + period * (qp->attr.retry_cnt + 1u) : CLOCK_NEVER;
	if (now >= far->give_up_at)
		return false;
	far->again_at = now + AGAIN_PAUSE;
	sv_sq_retry_at_locked(qp, far->again_at);
	return true;
}

/* The same for UC: this message is lost, and those after it are sent again, numbered anew. */
static void skip_locked(struct sv_qp *qp)
{
	struct sv_far *far = far_of(qp);

	far->connection++;
	far->sent = qp->sq.exec;
	far->wire = 0;
	far->done = UINT32_MAX; /* its end makes it 0 */
}

/* False if data are to follow. */
static bool answer_ends_locked(struct sv_qp *qp, const struct ibv_send_wr *wr,
			       const struct far_done *done, const uint8_t *data, size_t size,
			       enum ibv_wc_status *status)
{
	if (done->status == FAR_NOT_READY && qp->sq.service == SERVICE_UC) {
		*status = IBV_WC_SUCCESS;
		skip_locked(qp);
		return true;
	}
	if (done->status == FAR_NOT_READY) {
		*status = IBV_WC_RETRY_EXC_ERR;
		return !again_locked(qp);
	}
	far_of(qp)->give_up_at = 0;
	*status = (enum ibv_wc_status)done->status;
	if (*status != IBV_WC_SUCCESS || !far_brings_data(wr->opcode))
		return true;
	if (!scatter(qp, wr, done, data, size)) {
		*status = IBV_WC_LOC_PROT_ERR;
		return true;
	}
	return done->offset + size == done->length;
}

static void answer_locked(struct sv_qp *qp, const struct far_done *done, const uint8_t *data,
			  size_t size)
{
	struct sv_sq *sq = &qp->sq;
	const struct ibv_send_wr *wr = &sq->held[sq->exec & sq->mask];
	enum ibv_wc_status status;

	if (!answer_ends_locked(qp, wr, done, data, size, &status))
		return;
	far_of(qp)->done++;
	sv_sq_answered_locked(qp, status);
}

/* Completes those before that number, whose answer is that of a later one. False if one of them brings data. */
static bool answer_before_locked(struct sv_qp *qp, uint32_t number)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_far *far = far_of(qp);

	while (far->done != number) {
		const struct ibv_send_wr *wr = &sq->held[sq->exec & sq->mask];

		if (far_brings_data(wr->opcode))
			return false;
		far->give_up_at = 0;
		far->done++;
		sv_sq_complete_locked(qp, wr, IBV_WC_SUCCESS);
	}
	return true;
}

/* Whether the answer is for requests that were sent and not answered. */
static bool is_awaited(const struct sv_qp *qp, const struct fabric_peer *from,
		       const struct far_done *done)
{
	const struct sv_far *far = far_of(qp);
	bool of_one = done->status != IBV_WC_SUCCESS || done->length;

	return far && far->peer == &from->peer && far->qpn == done->source &&
	       far->connection == done->connection && qp->sq.exec != qp->sq.head &&
	       done->number - far->done < (of_one ? far->wire != far->done : far->wire - far->done);
}

/* False if the peer violates the protocol. */
static bool answer_read(struct fabric_peer *from, const struct far_done *done, const uint8_t *data,
			size_t size)
{
	struct sv_qp *qp = sv_qp_pin(qp_index_of(done->dest));
	bool sound = true;

	if (!qp)
		return true; /* destroyed in the mean time */
	lock_acquire(&qp->sq.lock);
	if (is_awaited(qp, from, done)) {
		sound = answer_before_locked(qp, done->number);
		if (sound)
			answer_locked(qp, done, data, size);
	}
	lock_release(&qp->sq.lock);
	sv_qp_unpin(qp);
	return sound;
}

bool sv_far_answer(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	struct far_done done;

	return sv_far_done_read(bytes, size, &done) &&
	       qp_peer_id_of(done.dest) == sv_runtime_peer_id() &&
	       answer_read(from, &done, bytes + FAR_DONE_SIZE, size - FAR_DONE_SIZE);
}

bool sv_far_answer_in(struct fabric_peer *from, const struct far_request *request)
{
	struct far_done done = { .dest = request->dest,
				 .source = request->source,
				 .connection = request->answer.connection,
				 .number = request->answer.number };

	return answer_read(from, &done, NULL, 0);
}
