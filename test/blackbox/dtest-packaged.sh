#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: the packaged one, server and client.
. test/blackbox/lib.sh
packaged_dtest
dtest_runs "$tmp/packaged" "$tmp/packaged"
[ -n "${SAN:-}" ] || dtest_pair "$tmp/packaged" "$tmp/packaged"		# 4 MiB
echo 'default, polling, ping-pong with and without checks, immediate data, notification object'
