#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: our server, the packaged client.
. test/blackbox/lib.sh
packaged_dtest
dtest_pair "$BUILD/bin/dtest" "$tmp/packaged" -b 65536
dtest_pair "$BUILD/bin/dtest" "$tmp/packaged" -b 4096 -p
dtest_pair "$BUILD/bin/dtest" "$tmp/packaged" -W -b 1024 -B 200
echo 'three runs: default, polling, write ping-pong'
