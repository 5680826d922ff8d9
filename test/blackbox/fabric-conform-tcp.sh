#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# fabric-conform.sh with libfabric's provider tcp: requests and answers go through it.
export FABRIC=tcp
. test/blackbox/fabric-conform.sh
