#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# fabric-conform.sh with libfabric's provider net: requests and answers go through it.
export FABRIC=net
. test/blackbox/fabric-conform.sh
