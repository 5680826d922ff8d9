#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# fabric-data.sh with libfabric's provider tcp: requests and answers go through it.
export FABRIC=tcp
. test/blackbox/fabric-data.sh
