#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The socket CM, ours and OFED's.
library=libdaploscm.so.2 programs='dtest dtestcm dtestx dtestsrq dapltest'
[ -z "${QUICK:-}" ] || programs='dtest dtestcm'
[ -n "${VERBS_DEVICE:-}" ] || export DAPL_SCM_NETDEV=lo
. test/blackbox/lib-cm.sh
