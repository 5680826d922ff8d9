#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged ibverbs-utils on the software device (acceptance rows V1 to V11).
. test/blackbox/lib-verbs.sh
needs ibv_devices ibv_devinfo ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_xsrq_pingpong

"$sv" ibv_devices >"$tmp/devices" 2>&1 || fail "ibv_devices ended with status $?"
grep -Eq 'soft0[[:space:]]+[0-9a-f]*[1-9a-f][0-9a-f]*' "$tmp/devices" || fail 'ibv_devices does not list soft0'
"$sv" ibv_devinfo -v >"$tmp/devinfo" 2>&1 || fail "ibv_devinfo ended with status $?"
for line in 'hca_id:.*soft0' 'PORT_ACTIVE' 'link_layer:.*Ethernet' 'board_id:.*softverbs' 'GID\[  0\]:.*::ffff:127.0.0.1, RoCE v2'; do
	says devinfo "$line" || fail "ibv_devinfo does not say $line"
done
"$sv" ibv_devinfo -l >"$tmp/list" 2>&1 || fail "ibv_devinfo -l ended with status $?"
says list '1 HCA' || fail 'ibv_devinfo -l counts other devices'

# pingpong PROGRAM [OPTION...]: both sides transfer and check the payload.
pingpong() {
	program=$1
	shift
	pair 'tcp_listens 18515' "$program -d soft0 -g 0 $*" "$program -d soft0 -g 0 $* 127.0.0.1"
	says server 'bytes in' && says client 'bytes in' || fail "$program $*: no result"
}
n=$(rounds 1000)
for options in '' -e -N '-s 1' '-s 64' '-s 65536' '-r 1 -s 64'; do
	pingpong ibv_rc_pingpong -c -n $n $options
done
pingpong ibv_rc_pingpong -c -n "$(rounds 50)" -s 1048576
pingpong ibv_srq_pingpong -n $n
pingpong ibv_srq_pingpong -n $n -e
pingpong ibv_uc_pingpong -n $n
pingpong ibv_uc_pingpong -n $n -e -s 65536
pingpong ibv_ud_pingpong -n $n
pingpong ibv_ud_pingpong -n $n -e -s 4096

# refused WORDS PROGRAM [OPTION...]: the client and the server end with status 1, one of them with these words.
refused() {
	words=$1
	shift
	start server "$sv" "$@"
	server_pid=$started
	within 30 sh -c "grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 || ! kill -0 $server_pid 2>/dev/null"
	timeout -k 2 30 "$sv" "$@" 127.0.0.1 >"$tmp/client" 2>&1
	[ $? -eq 1 ] || fail "$*: the client is not refused"
	wait "$server_pid"
	[ $? -eq 1 ] || fail "$*: the server is not refused"
	says client "$words" || says server "$words" || fail "$* does not say: $words"
}
refused 'Failed to modify QP to RTR' ibv_rc_pingpong -d soft0
refused "timestamp capable" ibv_rc_pingpong -d soft0 -g 0 -t
refused "support dm allocation" ibv_rc_pingpong -d soft0 -g 0 -j
refused "ODP capable" ibv_rc_pingpong -d soft0 -g 0 -o
refused "Couldn't Open the XRC Domain 95" ibv_xsrq_pingpong -d soft0 -g 0

within 3 nothing_left || fail 'names of the software device are left'
echo 'devices, pingpongs over RC, UC, UD and SRQ, refusals'
