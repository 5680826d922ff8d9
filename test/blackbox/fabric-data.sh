#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Programs of other makers, the server on one host and the client on the other: connections and data cross. A killed server
# is noticed; what is refused is refused as within a host.
. test/blackbox/lib-fabric.sh
needs rping ucmatose ibv_rc_pingpong ibv_uc_pingpong ibv_srq_pingpong ib_send_lat ib_send_bw ib_write_bw ib_read_lat ib_atomic_bw

one=10.79.0.1

both 7174 rping -s -a $one -C 10 -V -S 60000 -- rping -c -a $one -C 10 -V -S 60000
both 7471 ucmatose -b $one -c 10 -C 20 -S 65536 -- ucmatose -s $one -c 10 -C 20 -S 65536
both tcp ibv_rc_pingpong -g 1 -- ibv_rc_pingpong -g 1 $one
both tcp ibv_rc_pingpong -g 1 -e -- ibv_rc_pingpong -g 1 -e $one
both tcp ibv_rc_pingpong -g 1 -s 3000000 -n 20 -c -- ibv_rc_pingpong -g 1 -s 3000000 -n 20 -c $one
both tcp ibv_srq_pingpong -g 1 -n 200 -- ibv_srq_pingpong -g 1 -n 200 $one
both tcp ibv_uc_pingpong -g 1 -n 200 -s 100000 -- ibv_uc_pingpong -g 1 -n 200 -s 100000 $one
for test in ib_send_lat ib_read_lat ib_atomic_bw; do
	both tcp $test -F -d soft0 -x 1 -n 500 -- $test -F -d soft0 -x 1 -n 500 $one
done
both tcp ib_write_bw -F -d soft0 -x 1 -n 50 -s 1048576 -- ib_write_bw -F -d soft0 -x 1 -n 50 -s 1048576 $one
both tcp ib_write_bw -c UC -F -d soft0 -x 1 -n 50 -s 1048576 -- ib_write_bw -c UC -F -d soft0 -x 1 -n 50 -s 1048576 $one

# Waits for sends and receives at one channel: a request is answered before its receiver sends anything in return.
for i in 1 2 3 4 5; do
	both tcp ib_send_lat -e -F -d soft0 -x 1 -n 500 -- ib_send_lat -e -F -d soft0 -x 1 -n 500 $one
done

# UC to a QP that is not ready.
mkfifo "$tmp/to-sender" "$tmp/to-receiver"
start receiver sh -c '"$0" "$@" >"'"$tmp"'/to-sender" <"'"$tmp"'/to-receiver"' $there "$sv" "$BUILD/test/uc-lost" receive
receiver=$started
timeout -k 2 "$longest" "$sv" "$BUILD/test/uc-lost" send <"$tmp/to-sender" >"$tmp/to-receiver" 2>"$tmp/sender" ||
	fail 'a UC request to a QP that is not ready does not succeed'
wait "$receiver" || fail 'no UC message after those that were lost'
rows=$((rows + 1))

# Both sides send at once, and look for each other.
both tcp ib_send_bw -b -F -d soft0 -x 1 -n 500 -- ib_send_bw -b -F -d soft0 -x 1 -n 500 $one

# The provider, at the addresses of the wire.
far_conf
dtest="$BUILD/bin/dtest -P far -b 4096 -B 5"
start server env LD_LIBRARY_PATH="$BUILD/lib" DAT_OVERRIDE="$tmp/v0.conf" $dtest
server_pid=$started
within 30 says server 'waiting for client' || fail 'dtest does not begin'
LD_LIBRARY_PATH=$BUILD/lib DAT_OVERRIDE=$tmp/v1.conf timeout -k 2 "$longest" $there $dtest -h $one >"$tmp/client" 2>&1 ||
	fail 'dtest did not succeed'
wait "$server_pid" || fail "dtest's server did not succeed"
rows=$((rows + 1))

# No listener; no process at all; no such host. The first two are one answer to a program: nothing listens there.
start server "$sv" rping -s -P -a $one
server_pid=$started
listens() {
	$there "$sv" --check $one >"$tmp/check" 2>&1
}
within 30 listens || fail 'the other host is not reached'
! $there "$sv" rping -c -a $one -p 7999 -C 1 >"$tmp/client" 2>&1 || fail 'a port without a listener was reached'
says client 'REJECTED.*error 8' || fail 'a port without a listener is not rejected with reason 8'
! SOFTVERBS_FABRIC_PORT=20516 $there "$sv" rping -c -a $one -C 1 >"$tmp/client" 2>&1 || fail 'no process, and yet a connection'
says client 'REJECTED.*error 8' || fail 'a host without the fabric is not rejected with reason 8'
! SOFTVERBS_FABRIC_KEY="$tmp/other-key" $there "$sv" rping -c -a $one -C 1 >"$tmp/client" 2>&1 || fail 'another key was taken'
says client 'UNREACHABLE.*error -13' || fail 'with another key the server is not unreachable'
$there ip neighbour add 10.79.0.77 lladdr 02:00:00:00:00:01 dev v1
! $there "$sv" rping -c -a 10.79.0.77 -C 1 >"$tmp/client" 2>&1 || fail 'a host that does not answer was reached'
says client 'UNREACHABLE.*error -110' || fail 'a host that does not answer is not unreachable'

# Each side is killed while data flow: the other one reports it.
start client $there "$sv" rping -c -a $one -v -C 0
client_pid=$started
within 30 says client 'ping data' || fail 'the client does not begin'
kill_program "$client_pid"
wait "$client_pid"
within 10 says server 'DISCONNECT' || fail 'the server hears nothing of the death of its client'
start client $there "$sv" rping -c -a $one -v -C 0
client_pid=$started
within 30 says client 'ping data' || fail 'the client does not begin'
kill_program "$server_pid"
wait "$server_pid"
ended() {
	! kill -0 "$client_pid" 2>/dev/null
}
within 20 ended || fail 'the client does not end after the death of its server'
echo "$rows pairs of programs, a host each; refusals and deaths are as within a host"
