/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The data path of the device of fake_ib.h: records the last work request. */
#ifndef FAKE_IB_POST_H
#define FAKE_IB_POST_H

#include "test/unit/fake_ib.h"

/* Reads inline data as a driver does: during the post, by address, without a check of the key. */
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

/* Errors are statuses of DAT, not errno values. */
static int fake_post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ib_send_work *work = (const struct ib_send_work *)wr;
	bool atomic = work->op == IB_OP_SWAP || work->op == IB_OP_ADD;

	(void)bad;
	fake.remote = (DAT_RMR_TRIPLET){
		.virtual_address = work->remote_address,
		.rmr_context = atomic ? work->atomic.remote_key : work->remote_key,
	};
	return (int)fake_note((struct fake_post){
		.qp = (struct ib_qp *)verbs,
		.op = work->op,
		.wr_id = work->wr_id,
		.flags = work->flags,
		.list = work->segments,
		.count = (unsigned)work->count,
		.remote = work->op == IB_OP_SEND ? NULL : &fake.remote,
		.word = work->word,
		.operand = atomic ? work->atomic.operand : 0,
		.swap = atomic ? work->atomic.swap : 0,
	});
}

static int fake_post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct ib_recv_work *work = (const struct ib_recv_work *)wr;

	(void)bad;
	return (int)fake_note((struct fake_post){ .qp = (struct ib_qp *)verbs,
						  .wr_id = work->wr_id,
						  .list = work->segments,
						  .count = (unsigned)work->count });
}

DAT_RETURN ib_post_refused(int error)
{
	return (DAT_RETURN)error;
}

void ib_work_address(struct ib_send_work *work, const struct ib_ah *ah, uint32_t qp_num)
{
	(void)ah;
	work->word = qp_num;
}

int ib_post_bind(struct ib_qp *qp, const struct ib_send_work *work, struct ib_bind *bind)
{
	DAT_RETURN status = fake_note((struct fake_post){ .qp = qp,
							  .op = IB_OP_BIND,
							  .wr_id = work->wr_id,
							  .flags = work->flags,
							  .bind = *bind });

	if (status != DAT_SUCCESS)
		return (int)status;
	bind->key = ++bind->mw->key;
	if (fake.binding)
		fake.binding();
	return 0;
}

DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count)
{
	return fake_note(
		(struct fake_post){ .srq = srq, .wr_id = wr_id, .list = segments, .count = count });
}

#endif
