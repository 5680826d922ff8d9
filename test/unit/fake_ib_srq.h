/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues of the device of fake_ib.h. */
#ifndef FAKE_IB_SRQ_H
#define FAKE_IB_SRQ_H

#include "test/unit/fake_ib.h"

DAT_RETURN ib_srq_create(struct ib_pd *pd, uint32_t *max_wr, uint32_t *max_sge, void *owner,
			 struct ib_srq **srq)
{
	DAT_RETURN status = fake_refused();

	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	/* rounds up, as devices do */
	*max_wr = (*max_wr + 3) & ~3u;
	*max_sge = 3;
	*srq = fake_new(sizeof(**srq), &fake.srqs);
	(*srq)->owner = owner;
	(*srq)->max_wr = *max_wr;
	return DAT_SUCCESS;
}

DAT_RETURN ib_srq_resize(struct ib_srq *srq, uint32_t *max_wr)
{
	DAT_RETURN status = fake_refused();

	if (status != DAT_SUCCESS)
		return status;
	*max_wr = srq->max_wr = (*max_wr + 3) & ~3u;
	return DAT_SUCCESS;
}

DAT_RETURN ib_srq_limit(struct ib_srq *srq, uint32_t limit)
{
	DAT_RETURN status = fake_refused();

	if (status == DAT_SUCCESS) {
		srq->limit = limit;
		srq->arms++;
	}
	return status;
}

DAT_RETURN ib_srq_destroy(struct ib_srq *srq)
{
	DAT_RETURN status = srq ? fake_refused() : DAT_SUCCESS;

	if (status == DAT_SUCCESS && srq)
		fake.srqs--;
	if (status == DAT_SUCCESS)
		free(srq);
	return status;
}

#endif
