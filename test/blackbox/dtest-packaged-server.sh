#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: the packaged server, our client.
. test/blackbox/lib.sh
packaged_dtest
dtest_runs "$tmp/packaged" "$BUILD/bin/dtest"
echo 'default, polling, ping-pong with and without checks, immediate data, notification object'
