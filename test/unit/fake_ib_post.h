/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The data path of the device of fake_ib.h: notes the last work request. */
#ifndef FAKE_IB_POST_H
#define FAKE_IB_POST_H

#include "test/unit/fake_ib.h"

/* As a driver reads it: at the post, by address, whatever the key. */
static void fake_read_inline(const struct fake_post *post)
{
	char copy[FAKE_INLINE];
	unsigned i;

	for (i = 0; i < post->count; i++) {
		struct iovec to = { copy, sizeof(copy) };
		struct iovec from = { (void *)(uintptr_t)post->list[i].virtual_address,
				      post->list[i].segment_length };

		fake.inline_faults +=
			process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)from.iov_len;
	}
}

static DAT_RETURN fake_note(struct fake_post post)
{
	DAT_RETURN status = fake_refused();

	if (status != DAT_SUCCESS)
		return status;
	if (post.flags & IB_POST_INLINE)
		fake_read_inline(&post);
	if (post.count)
		memcpy(post.segments, post.list, post.count * sizeof(post.segments[0]));
	fake.last = post;
	fake.posts++;
	return DAT_SUCCESS;
}

DAT_RETURN ib_post_send(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote)
{
	unsigned flags = request & ((1u << IB_OP_SHIFT) - 1);

	return fake_note((struct fake_post){ .qp = qp,
					     .op = request - flags,
					     .wr_id = wr_id,
					     .flags = flags,
					     .list = segments,
					     .count = count,
					     .remote = remote });
}

DAT_RETURN ib_post_recv(struct ib_qp *qp, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			unsigned count)
{
	return fake_note(
		(struct fake_post){ .qp = qp, .wr_id = wr_id, .list = segments, .count = count });
}

/* Its errors are DAT's. */
static int fake_post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ib_send_work *work = (const struct ib_send_work *)wr;
	unsigned op = work->opcode << IB_OP_SHIFT;

	(void)bad;
	fake.remote = (DAT_RMR_TRIPLET){ .virtual_address = work->remote_address,
					 .rmr_context = work->remote_key };
	return (int)ib_post_send((struct ib_qp *)verbs, op | work->flags, work->wr_id,
				 work->segments, (unsigned)work->count,
				 op == IB_OP_SEND ? NULL : &fake.remote);
}

static int fake_post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct ib_recv_work *work = (const struct ib_recv_work *)wr;

	(void)bad;
	return (int)ib_post_recv((struct ib_qp *)verbs, work->wr_id, work->segments,
				 (unsigned)work->count);
}

DAT_RETURN ib_post_refused(int error)
{
	return (DAT_RETURN)error;
}

DAT_RETURN ib_post_datagram(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			    const DAT_LMR_TRIPLET *segments, unsigned count, const struct ib_ah *ah,
			    uint32_t qp_num)
{
	DAT_RETURN status = ib_post_send(qp, request, wr_id, segments, count, NULL);

	(void)ah;
	if (status == DAT_SUCCESS)
		fake.last.word = qp_num;
	return status;
}

DAT_RETURN ib_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote, uint32_t word)
{
	DAT_RETURN status = ib_post_send(qp, request, wr_id, segments, count, remote);

	if (status == DAT_SUCCESS)
		fake.last.word = word;
	return status;
}

DAT_RETURN ib_post_atomic(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			  const DAT_LMR_TRIPLET *segment, const DAT_RMR_TRIPLET *remote,
			  uint64_t operand, uint64_t swap)
{
	DAT_RETURN status = ib_post_send(qp, request, wr_id, segment, 1, remote);

	if (status == DAT_SUCCESS) {
		fake.last.operand = operand;
		fake.last.swap = swap;
	}
	return status;
}

DAT_RETURN ib_post_bind(struct ib_qp *qp, unsigned flags, uint64_t wr_id,
			const struct ib_bind *bind, uint32_t *key)
{
	DAT_RETURN status = fake_note((struct fake_post){
		.qp = qp, .op = IB_OP_BIND, .wr_id = wr_id, .flags = flags, .bind = *bind });

	if (status == DAT_SUCCESS)
		*key = ++bind->mw->key;
	return status;
}

DAT_RETURN ib_post_invalidate(struct ib_qp *qp, unsigned flags, uint64_t wr_id, uint32_t key)
{
	return fake_note((struct fake_post){
		.qp = qp, .op = IB_OP_INV, .wr_id = wr_id, .flags = flags, .word = key });
}

DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count)
{
	return fake_note(
		(struct fake_post){ .srq = srq, .wr_id = wr_id, .list = segments, .count = count });
}

#endif
