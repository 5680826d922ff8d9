#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The UD CM, ours and OFED's, on a port with InfiniBand as its link layer. dapltest and dtestsrq are left out, because
# they find a peer by its host, which has no address of that CM.
library=libdaploucm.so.2 programs='dtest dtestcm dtestx'
export SOFTVERBS_LINK=infiniband
. test/blackbox/lib-cm.sh
