#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged rdmacm-utils on the software device (acceptance rows C1 to C6, C8, C10 to C14).
. test/blackbox/lib-verbs.sh
needs rping ucmatose udaddy rdma_server rdma_client rstream mckey

# ping OPTION...: runs a pair of rping; the client prints each line.
ping() {
	pair 'cm_listens 7174' "rping -s -C 20 -V -v $*" "rping -c -C 20 -V -v $*"
	[ "$(grep -c '^ping data' "$tmp/client")" -eq 20 ] || fail "rping $*: not 20 lines"
	says server 'DISCONNECT' || says client 'DISCONNECT' || fail "rping $*: no disconnect"
}
ping -a 127.0.0.1
ping -a 127.0.0.1 -q
ping -a 127.0.0.1 -S 65535
[ ! -e /proc/net/if_inet6 ] || ping -a ::1
[ -z "$other" ] || ping -a $other

# A server for many clients: one after the other, then together. They start one by one, because rping keeps only the
# last request.
start server "$sv" rping -s -P -a 127.0.0.1
server_pid=$started
within 30 cm_listens 7174 || fail 'rping -P does not listen'
for i in 1 2; do
	timeout -k 2 60 "$sv" rping -c -a 127.0.0.1 -C 10 -V >"$tmp/client" 2>&1 ||
		fail "client $i did not succeed"
done
clients= many=$(rounds 300)
for i in 1 2 3 4 5 6 7 8; do
	start "client$i" "$sv" rping -c -a 127.0.0.1 -C "$many" -V -v
	clients="$clients $started"
	within 30 says "client$i" 'ping data' || fail "client $i does not begin"
done
i=0
for pid in $clients; do
	i=$((i + 1))
	wait "$pid" || fail "client $i of eight did not succeed"
done
kill -0 "$server_pid" || fail 'the server is gone'
kill "$server_pid"
wait "$server_pid"
within 3 nothing_left || fail 'names of the software device are left'

# matched ADDRESS OPTION...: runs a pair of ucmatose.
matched() {
	to=$1
	shift
	pair 'cm_listens 7471' "ucmatose -b $to $*" "ucmatose -s $to $*"
	for side in server client; do
		says $side 'test complete' && says $side 'return status 0' || fail "ucmatose $*: $side"
	done
}
matched 127.0.0.1 -c 4 -C 10 -S 4096
matched 127.0.0.1 -m -c 2
[ -z "$other" ] || matched $other -c 4 -C 10 -S 60000

# datagrams COUNT SIZE: runs udaddy with that many queue pairs each way.
datagrams() {
	pair 'cm_listens 7174' "udaddy -b 127.0.0.1 -c $1 -C 10 -S $2" "udaddy -s 127.0.0.1 -c $1 -C 10 -S $2"
	for side in server client; do
		says $side 'data transfers complete' && says $side 'return status 0' || fail "udaddy: $side"
	done
}
datagrams 1 100
datagrams 4 2000
pair 'cm_listens 7471' rdma_server 'rdma_client -s 127.0.0.1'
says client 'rdma_client: end 0' || fail 'rdma_client does not end well'

# no_answer STATUS WORDS PROGRAM...: the program ends with this status and these words before a connection attempt
# would time out.
no_answer() {
	status=$1 words=$2
	shift 2
	timeout -k 2 30 "$sv" "$@" >"$tmp/client" 2>&1
	got=$?
	[ $got -eq "$status" ] || fail "$*: status $got, not $status"
	says client "$words" || fail "$* does not say: $words"
}
no_answer 255 'RDMA_CM_EVENT_REJECTED, error 8' rping -c -a 127.0.0.1 -C 1
no_answer 8 'RDMA_CM_EVENT_REJECTED, error: 8' ucmatose -s 127.0.0.1
no_answer 1 'RDMA_CM_EVENT_UNREACHABLE, error: 1' udaddy -s 127.0.0.1
no_answer 255 'Function not implemented' rstream -s 127.0.0.1
if ! ip route get 10.9.9.9 >/dev/null 2>&1; then
	no_answer 255 'Network is unreachable' ucmatose -s 10.9.9.9
fi
timeout -k 2 30 "$sv" mckey -m 224.0.0.1 -b 127.0.0.1 >"$tmp/client" 2>&1
case $? in
0 | 12[4-9] | 13[0-9]) fail 'mckey is not refused in order' ;;
esac

within 3 nothing_left || fail 'names of the software device are left'
echo 'rping, ucmatose, udaddy, rdma_client; no listener, nothing of the kind'
