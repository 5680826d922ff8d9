#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: our server, the packaged client.
. test/blackbox/lib.sh
packaged_dtest
dtest_runs "$BUILD/bin/dtest" "$tmp/packaged"
echo 'default, polling, ping-pong with and without checks, immediate data, notification object'
