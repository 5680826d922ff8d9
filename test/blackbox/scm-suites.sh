#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The suites of connections over the socket CM. Tests are skipped that need rdma_cm's sizes of private data, the
# contents of its messages, or a port that is its own qualifier; and one that expects the ends of three connections in
# order, which sockets do not guarantee.
library=libdaploscm.so.2
suites='cm_reader connect consumer_cm consumer_data counters cr csp disconnect dup_connect early_post conn_drain hammer_ep hammer_sp
	psp psp_provider reset rsp ud ep_expiry peer_killed'
# On a kernel's device those are left out that are about the library alone, or too heavy for an emulated machine.
[ -z "${VERBS_DEVICE:-}" ] || suites='connect cr csp disconnect dup_connect psp psp_provider reset rsp ud ep_expiry peer_killed'
[ -z "${QUICK:-}" ] || suites='connect peer_killed'
told="max_private_data_size=68 DAT_IB_PROVIDER_NAME=SCM DAT_IB_UD=TRUE ia_address_ptr=${DTEST_ADDRESS:-127.0.0.1}"
sizes='arguments in their order|56 bytes there|the request stays usable|consumer rejects: PEER_REJECTED|each check'
[ -n "${VERBS_DEVICE:-}" ] || export DAPL_SCM_NETDEV=lo
left_out="$sizes|read depths of a default EP|connected by socket address|a port is a qualifier|endings wait for room"
. test/blackbox/lib-suites.sh
