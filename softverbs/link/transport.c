/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The transport that the runtime's client named, or one that is off. */
#include "softverbs/link/runtime.h"
#include "softverbs/link/transport.h"

static bool is_not(void)
{
	return false;
}

static void nothing(void)
{
}

static bool reaches_nothing(const union ibv_gid *gid, struct sv_ip *host)
{
	(void)gid;
	(void)host;
	return false;
}

/* What only a transport that is on is asked for is not there. */
static const struct sv_transport none = {
	.start = nothing,
	.leave = nothing,
	.stop = nothing,
	.is_on = is_not,
	.is_starting = is_not,
	.fork_prepare = nothing,
	.fork_parent = nothing,
	.fork_child = nothing,
	.reaches = reaches_nothing,
};

const struct sv_transport *sv_transport(void)
{
	const struct sv_link_client *client = sv_runtime_client();

	return client ? client->transport : &none;
}
