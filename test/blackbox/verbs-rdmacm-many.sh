#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Many connections of the packaged rdmacm-utils: hundreds at once with few descriptors, and the rate at which they are
# made (acceptance rows C7, C9).
. test/blackbox/lib-verbs.sh
needs ucmatose cmtime mckey rstream

ulimit -n 1024
pair 'cm_listens 7471' 'ucmatose -b 127.0.0.1 -c 500 -C 2' 'ucmatose -s 127.0.0.1 -c 500 -C 2'
for side in server client; do
	says $side 'return status 0' || fail "ucmatose -c 500: $side"
done

# That of rdma-core 61 is another program of the same name.
table='its cmtime has other options'
if "$sv" cmtime -h 2>&1 | grep -q '\[-s '; then
	# The server stays alive.
	start server "$sv" cmtime -b 127.0.0.1 -c 100
	server_pid=$started
	within 30 cm_listens 7471 || fail 'cmtime does not listen'
	timeout -k 2 "$longest" "$sv" cmtime -s 127.0.0.1 -c 100 >"$tmp/client" 2>&1 || fail "cmtime ended with status $?"
	for step in 'create id' 'resolve addr' 'resolve route' '\(cm \)\?connect' 'disconnect' 'destroy'; do
		says client "^$step" || fail "cmtime prints no line for $step"
	done
	kill_program "$server_pid"
	wait "$server_pid"
	table='the table of cmtime'
fi

within 3 nothing_left || fail 'names of the software device are left'
echo "500 connections at once under 1024 descriptors; $table"
