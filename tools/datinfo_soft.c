/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the settings of the software device mean for one-sided operations. */
#include <string.h>
#include "softverbs/base/settings.h"
#include "tools/datinfo.h"

const char *soft_rdma(const char *device)
{
	static const char *const ways[] = {
		[SV_DIRECT_OFF] = "copies (SOFTVERBS_DIRECT=off)",
		[SV_DIRECT_SHARED] = "loads and stores in shared memory; copies in private memory, "
				     "unless SOFTVERBS_DIRECT=private",
		[SV_DIRECT_PRIVATE] =
			"loads and stores in shared memory, and in private memory that is used "
			"often (SOFTVERBS_DIRECT=private)",
	};

	return strcmp(device, "soft0") ? NULL : ways[sv_setting(SV_SET_DIRECT)];
}
