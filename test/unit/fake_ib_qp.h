/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs of the device of fake_ib.h. */
#ifndef FAKE_IB_QP_H
#define FAKE_IB_QP_H

#include "test/unit/fake_ib.h"

DAT_RETURN ib_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
			struct ib_srq *srq, struct ib_qp_caps *caps, void *owner, struct ib_qp **qp)
{
	DAT_RETURN status = fake_refused();
	struct ib_qp *new;

	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	caps->inline_data = FAKE_INLINE;
	new = fake_new(sizeof(*new), &fake.qps);
	*new = (struct ib_qp){ .owner = owner,
			       .num = fake.next_qp++,
			       .send_cq = send_cq,
			       .recv_cq = recv_cq,
			       .srq = srq };
	new->posts = (struct ib_qp_posts){ (struct ibv_qp *)new, fake_post_send, fake_post_recv };
	*qp = fake.qp = new;
	return DAT_SUCCESS;
}

DAT_RETURN ib_qp_create_datagram(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
				 struct ib_srq *srq, struct ib_qp_caps *caps, void *owner,
				 struct ib_qp **qp)
{
	return ib_qp_create(pd, send_cq, recv_cq, srq, caps, owner, qp);
}

void ib_qp_destroy(struct ib_qp *qp)
{
	if (qp)
		fake.qps--;
	free(qp);
}

void ib_qp_error(struct ib_qp *qp)
{
	/* some tests call this from another thread */
	__atomic_store_n(&qp->error, true, __ATOMIC_RELEASE);
}
bool ib_qp_is_broken(const struct ib_qp *qp)
{
	return qp->error;
}
uint32_t ib_qp_num(const struct ib_qp *qp)
{
	return qp->num;
}

#endif
