#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# SIGKILL in the middle of dtest: the peer is notified and ends, no resource is left, and the next pair works.
. test/blackbox/lib.sh

long='-W -b 1024 -B 100000000'	# dtest runs until it is killed

# kill_one SIDE: starts a pair, and kills that side while both are sending.
kill_one() {
	start server "$BUILD/bin/dtest" -P "$provider" $long
	server_pid=$started
	within 20 says server waiting || fail 'the server does not get ready'
	start client "$BUILD/bin/dtest" -P "$provider" -h "$address" $long
	client_pid=$started
	within 20 says client 'RDMA WRITE PINGPONG' || fail 'the transfer does not begin'
	if [ "$1" = client ]; then
		victim=$client_pid other=$server_pid log=server
	else
		victim=$server_pid other=$client_pid log=client
	fi
	# `timeout` runs the program, so its child is the process to kill
	kill -9 "$(cat "/proc/$victim/task/$victim/children")"
	wait "$other"
	status=$?
	[ $status -eq 1 ] || fail "the $log ended with status $status"
	grep -Eq 'DISCONNECTED|BROKEN' "$tmp/$log" || fail "the $log does not say why"
	within 3 nothing_left || fail 'names of the software device are left'
}

kill_one client
kill_one server
dtest_pair "$BUILD/bin/dtest" "$BUILD/bin/dtest" -b 4096
echo 'either side killed, the other told, the next pair served'
