/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion counters, which this device does not have: none can be created, so that none is valid. */
#include <errno.h>
#include "softverbs/base/api.h"

/* Only the queries and the creation can be called with valid arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			      size_t size)
{
	return EOPNOTSUPP;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter)
{
	return EOPNOTSUPP;
}

int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return EOPNOTSUPP;
}

int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return EOPNOTSUPP;
}

int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return EOPNOTSUPP;
}

int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return EOPNOTSUPP;
}

int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return EOPNOTSUPP;
}

int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return EOPNOTSUPP;
}

int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
			    struct ibv_qp_attach_comp_cntr_attr *attr)
{
	return EOPNOTSUPP;
}
