#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Datagrams between hosts: programs of other makers, and the provider's, the server on one host and the client on the other.
. test/blackbox/lib-fabric.sh
needs ibv_ud_pingpong udaddy ib_send_lat
one=10.79.0.1

both tcp ibv_ud_pingpong -g 1 -c -- ibv_ud_pingpong -g 1 -c $one
both tcp ibv_ud_pingpong -g 1 -e -s 4096 -n 200 -- ibv_ud_pingpong -g 1 -e -s 4096 -n 200 $one
both 7174 udaddy -b $one -c 4 -C 20 -S 1024 -- udaddy -s $one -c 4 -C 20 -S 1024
for events in '' -e; do
	both tcp ib_send_lat $events -c UD -F -d soft0 -x 1 -n 500 -- ib_send_lat $events -c UD -F -d soft0 -x 1 -n 500 $one
done

# Endpoints of the provider for datagrams: one for all peers, and several.
far_conf
for way in -u '-U 20 -p'; do
	start server env LD_LIBRARY_PATH="$BUILD/lib" DAT_OVERRIDE="$tmp/v0.conf" "$BUILD/bin/dtestx" -P far $way
	server_pid=$started
	within 30 says server 'waiting to snd addr' || fail 'dtestx does not begin'
	LD_LIBRARY_PATH=$BUILD/lib DAT_OVERRIDE=$tmp/v1.conf timeout -k 2 "$longest" $there "$BUILD/bin/dtestx" -P far -c -h $one $way \
		>"$tmp/client" 2>&1 || fail "dtestx $way did not succeed"
	wait "$server_pid" || fail "the server of dtestx $way did not succeed"
	for side in server client; do
		says $side 'UD test PASSED' || fail "dtestx $way: the $side did not pass"
	done
	rows=$((rows + 1))
done

# No listener; no process at all; another key; no such host.
start server "$sv" rping -s -P -a $one
listens() {
	$there "$sv" --check $one >"$tmp/check" 2>&1
}
within 30 listens || fail 'the other host is not reached'
# refused HOST WORDS [NAME=VALUE]: udaddy reports these words.
refused() {
	env $3 timeout -k 2 "$longest" $there "$sv" udaddy -s $1 -c 1 -C 1 >"$tmp/client" 2>&1
	says client "UNREACHABLE, error: $2" || fail "udaddy to $1 $3 does not print UNREACHABLE and error $2"
}
refused $one 1 ''
refused $one 1 SOFTVERBS_FABRIC_PORT=20516
refused $one -13 SOFTVERBS_FABRIC_KEY="$tmp/other-key"
$there ip neighbour add 10.79.0.77 lladdr 02:00:00:00:00:01 dev v1
refused 10.79.0.77 -110 ''
echo "$rows pairs of programs, a host each; refusals are as within a host"
