/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection domains, memory regions and windows of the device of fake_ib.h. */
#ifndef FAKE_IB_MEMORY_H
#define FAKE_IB_MEMORY_H

#include "test/unit/fake_ib.h"

DAT_RETURN ib_pd_create(struct ib_device *device, struct ib_pd **pd)
{
	DAT_RETURN status = fake_refused();

	(void)device;
	if (status == DAT_SUCCESS)
		*pd = fake_new(sizeof(**pd), &fake.pds);
	return status;
}

DAT_RETURN ib_pd_destroy(struct ib_pd *pd)
{
	DAT_RETURN status = pd ? fake_refused() : DAT_SUCCESS;

	if (status == DAT_SUCCESS && pd)
		fake.pds--;
	if (status == DAT_SUCCESS)
		free(pd);
	return status;
}

DAT_RETURN ib_mr_create(struct ib_pd *pd, void *address, uint64_t length, uint32_t privileges,
			bool zero_based, struct ib_mr **mr, uint32_t *lkey, uint32_t *rkey)
{
	DAT_RETURN status = fake_refused();

	(void)pd;
	(void)address;
	(void)length;
	if (status != DAT_SUCCESS)
		return status;
	fake.privileges = privileges;
	fake.zero_based = zero_based;
	*lkey = FAKE_LKEY;
	*rkey = FAKE_RKEY;
	*mr = fake_new(sizeof(**mr), &fake.mrs);
	return DAT_SUCCESS;
}

DAT_RETURN ib_mr_destroy(struct ib_mr *mr)
{
	DAT_RETURN status = mr ? fake_refused() : DAT_SUCCESS;

	if (status == DAT_SUCCESS && mr)
		fake.mrs--;
	if (status == DAT_SUCCESS)
		free(mr);
	return status;
}

DAT_RETURN ib_mw_create(struct ib_pd *pd, bool type2, struct ib_mw **mw)
{
	DAT_RETURN status = fake_refused();

	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	*mw = fake_new(sizeof(**mw), &fake.mws);
	**mw = (struct ib_mw){ .key = FAKE_MW_KEY, .type2 = type2 };
	return DAT_SUCCESS;
}

void ib_mw_destroy(struct ib_mw *mw)
{
	if (mw)
		fake.mws--;
	free(mw);
}

#endif
