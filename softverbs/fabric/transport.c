/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The transport between hosts: over TCP, or over a provider of libfabric. */
#include "softverbs/fabric/pause.h"
#include "softverbs/fabric/transport.h"

const struct sv_transport sv_fabric_transport = {
	.start = sv_fabric_start,
	.leave = sv_fabric_leave,
	.stop = sv_fabric_stop,
	.is_on = sv_fabric_is_on,
	.is_starting = sv_fabric_is_opening,
	.handed = sv_fabric_handed,
	.send = sv_fabric_send,
	.peer_free = sv_fabric_peer_free,
	.fork_prepare = sv_fabric_fork_prepare,
	.fork_parent = sv_fabric_fork_parent,
	.fork_child = sv_fabric_fork_child,
	.reaches = sv_far_host,
	.path_open = sv_far_open,
	.datagram_send_locked = sv_ud_far_send_locked,
	.datagrams_end = sv_ud_far_close,
	.progress = sv_far_progress,
	.awaited = sv_fabric_pause_end,
};
