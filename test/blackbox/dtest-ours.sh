#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two processes: ours, server and client.
. test/blackbox/lib.sh
dtest_runs "$BUILD/bin/dtest" "$BUILD/bin/dtest"
dtest_pair "$BUILD/bin/dtest" "$BUILD/bin/dtest" -N -b 4096	# the client does not ask the server for its address
dtest_fails() {
	"$BUILD/bin/dtest" "$@" >"$tmp/usage" 2>&1
	[ $? = 244 ] || fail "$* is taken"
}
dtest_fails -B 0
dtest_fails -S 0
dtest_fails -a
dtest_fails -z
echo 'default, polling, ping-pong with and without checks, immediate data, notification object'
