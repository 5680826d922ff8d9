#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The suites of connections over the UD CM that do not treat an address as one of IP.
library=libdaploucm.so.2
suites='cm_reader counters disconnect early_post conn_drain hammer_ep psp reset ep_expiry peer_killed'
told='max_private_data_size=68 DAT_IB_PROVIDER_NAME=UCM DAT_IB_UD=TRUE'
left_out='arguments in their order'
export SOFTVERBS_LINK=infiniband
. test/blackbox/lib-suites.sh
