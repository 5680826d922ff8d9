/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* librdmacm.so.1 of the drop-in: the connection manager. It uses the device of libibverbs.so.1 and has no
 * copy of it. The device stays open while this library is loaded, as rdma_get_devices(3) says. */
#include "softverbs/base/settings.h"
#include "softverbs/cm/cm.h"
#include "util/log.h"

__attribute__((constructor)) static void librdmacm_begin(void)
{
	log_more((unsigned)sv_setting(SV_SET_LOG));
	sv_cm_keep_devices_open();
}
