/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opens the device: the door of the house. With attend.c this is its hall, which alone knows every room. */
#include "softverbs/attend.h"
#include "softverbs/verbs/context.h"

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return sv_context_open(device, &sv_data_client);
}
