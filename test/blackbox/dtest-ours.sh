#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: ours, server and client.
. test/blackbox/lib.sh
dtest_pair "$BUILD/bin/dtest" "$BUILD/bin/dtest" -b 65536
dtest_pair "$BUILD/bin/dtest" "$BUILD/bin/dtest" -b 4096 -p
dtest_pair "$BUILD/bin/dtest" "$BUILD/bin/dtest" -W -b 1024 -B 200
dtest_pair "$BUILD/bin/dtest" "$BUILD/bin/dtest" -c -b 65536
echo 'four runs: default, polling, write ping-pong, notification object'
