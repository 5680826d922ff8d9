/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Used in the place of <dat2/dat_ib_extensions.h>, because DAT 1.2 has no extensions; see udat.h.
 * Calls of extensions fail, and their events never come.
 */
#ifndef TEST_ONE_IB_EXTENSIONS_H
#define TEST_ONE_IB_EXTENSIONS_H

#include "udat.h"

enum {
	DAT_IB_DTO_EVENT = 0x40000,
	DAT_IB_UD_CONNECTION_REQUEST_EVENT,
	DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
	DAT_IB_UD_CONNECTION_REJECT_EVENT,
	DAT_IB_UD_CONNECTION_ERROR_EVENT
};

#define dat_ib_post_rdma_write_immed(ep, n, iov, cookie, remote, immed, flags)              \
	((void)(ep), (void)(n), (void)(iov), (void)(cookie), (void)(remote), (void)(immed), \
	 (void)(flags), (DAT_RETURN)DAT_NOT_IMPLEMENTED)

#endif
