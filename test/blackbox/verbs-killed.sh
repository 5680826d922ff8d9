#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# SIGKILL to one side of the packaged rping: the peer is notified at once, and a server serves the next client
# (acceptance rows K1, K2, K5). Notification takes milliseconds; the deadlines allow for machines that stall for
# seconds.
. test/blackbox/lib-verbs.sh
needs rping

start server "$sv" rping -s -P -d -a 127.0.0.1
server_pid=$started
within 30 cm_listens 7174 || fail 'the server does not listen'
start client "$sv" rping -c -a 127.0.0.1 -v -C 0
client_pid=$started
within 30 says client 'ping data' || fail 'the client does not begin'
kill_program "$client_pid"
within 10 says server 'DISCONNECT' || fail 'the server hears nothing of the death of its client'
timeout -k 2 60 "$sv" rping -c -a 127.0.0.1 -C 5 -V >"$tmp/next" 2>&1 || fail "the next client: status $?"
kill_program "$server_pid"
wait "$server_pid" "$client_pid"

start server "$sv" rping -s -a 127.0.0.1
server_pid=$started
within 30 cm_listens 7174 || fail 'the second server does not listen'
start client "$sv" rping -c -a 127.0.0.1 -v -C 0
client_pid=$started
within 30 says client 'ping data' || fail 'the second client does not begin'
kill_program "$server_pid"
within 10 sh -c "! kill -0 $client_pid 2>/dev/null || grep -q ' Z ' /proc/$client_pid/stat" ||
	fail 'the client outlives its server'
wait "$client_pid"
says client 'DISCONNECT' || fail 'the client does not say why'

within 3 nothing_left || fail 'names of the software device are left'
echo 'client and server killed, the other side told'
