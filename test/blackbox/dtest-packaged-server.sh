#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: the packaged server, our client.
. test/blackbox/lib.sh
packaged_dtest
dtest_pair "$tmp/packaged" "$BUILD/bin/dtest" -b 65536
dtest_pair "$tmp/packaged" "$BUILD/bin/dtest" -b 4096 -p
dtest_pair "$tmp/packaged" "$BUILD/bin/dtest" -W -b 1024 -B 200
echo 'three runs: default, polling, write ping-pong'
