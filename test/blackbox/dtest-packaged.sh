#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: the packaged one, server and client.
. test/blackbox/lib.sh
packaged_dtest
dtest_pair "$tmp/packaged" "$tmp/packaged" ${SAN:+-b 65536}	# by default 4 MiB
dtest_pair "$tmp/packaged" "$tmp/packaged" -b 4096 -p
dtest_pair "$tmp/packaged" "$tmp/packaged" -W -b 1024 -B 200
dtest_pair "$tmp/packaged" "$tmp/packaged" -w -b 65536
dtest_pair "$tmp/packaged" "$tmp/packaged" -c -b 65536
echo 'five runs: default, polling, write ping-pong, immediate data, notification object'
