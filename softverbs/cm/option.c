/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Options of an identifier. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"

static int option_byte(uint8_t *to, const void *value, size_t size)
{
	if (size != sizeof(*to))
		return EINVAL;
	memcpy(to, value, sizeof(*to));
	return 0;
}

/* Sets an option that decides how the port is claimed, so only before the bind. */
static int option_bool(struct cm_id *id, bool *to, const void *value, size_t size)
{
	int on;

	if (size != sizeof(on) || id->state != CM_IDLE)
		return EINVAL;
	memcpy(&on, value, sizeof(on));
	*to = on;
	return 0;
}

static int option_set_locked(struct cm_id *id, int name, const void *value, size_t size)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS: return option_byte(&id->tos, value, size);
	case RDMA_OPTION_ID_REUSEADDR: return option_bool(id, &id->reuse_addr, value, size);
	case RDMA_OPTION_ID_AFONLY: return option_bool(id, &id->addr_family_only, value, size);
	case RDMA_OPTION_ID_ACK_TIMEOUT: return option_byte(&id->ack_timeout, value, size);
	default: return ENOSYS;
	}
}

int rdma_set_option(struct rdma_cm_id *public, int level, int name, void *value, size_t size)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (level != RDMA_OPTION_ID)
		return sv_cm_fail(ENOSYS);
	if (!value)
		return sv_cm_fail(EINVAL);
	sv_cm_lock();
	error = option_set_locked(id, name, value, size);
	sv_cm_unlock();
	return error ? sv_cm_fail(error) : 0;
}
