#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# fabric-ud.sh with libfabric's provider tcp: datagrams go through it.
export FABRIC=tcp
. test/blackbox/fabric-ud.sh
