#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# OFED's packaged provider libdaplofa on the software device, with OFED's registry and programs: only the drop-in is
# ours (acceptance rows U1 to U6).
. test/blackbox/lib-verbs.sh
needs dtest dtestx dtestcm dapltest

ofa=
for dir in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
	[ -e "$dir/libdaplofa.so.2" ] && ofa=$dir/libdaplofa.so.2
done
[ -n "$ofa" ] || skip 'no packaged libdaplofa here (Debian: libdapl2)'
resolves "$ofa" || fail "$ofa does not load the drop-in"
LD_LIBRARY_PATH=$drop ldd /usr/bin/dtest | grep 'libdat2.so.2 => /' | grep -qvF "$BUILD" ||
	fail "dtest is not with OFED's libdat2"
unset LD_LIBRARY_PATH
echo "ofa-soft u2.0 nonthreadsafe default $ofa dapl.2.0 \"lo 0\" \"\"" >"$tmp/dat.conf"
export DAT_OVERRIDE=$tmp/dat.conf
# the output is line-buffered, so that a test can wait for a line
export _STDBUF_O=L
sed -i 's|^exec|export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}/usr/libexec/coreutils/libstdbuf.so"\nexec|' "$sv"

# ofed READY DONE SERVER CLIENT: the programs always exit with 0, so their output is checked.
ofed() {
	ready=$1 done=$2 client=$4
	pair_again "REJ, reason=8\|$dtestx_race" "$ready" "$3" "$client"
	for side in server client; do
		says $side "$done" || fail "$client: the $side does not say: $done"
		! says $side 'FAILED\|ERR!' || fail "$client: the $side speaks of failure"
	done
}
ofed 'says server waiting' 'DAPL Test Complete. PASSED' \
	'dtest -P ofa-soft -b 64 -B 10' 'dtest -P ofa-soft -b 64 -B 10 -h 127.0.0.1'
ofed 'says server waiting' 'IB extension test.*PASSED' 'dtestx -P ofa-soft' 'dtestx -P ofa-soft -h 127.0.0.1'
n=$(rounds 1000)
ofed 'says server waiting' "ALL $n CONNECTED" "dtestcm -P ofa-soft -c $n" "dtestcm -P ofa-soft -c $n -h 127.0.0.1"
says client 'CPS' || fail 'dtestcm prints no rate'

# One server for all tests; it quits on request.
start server "$sv" dapltest -T S -D ofa-soft
server_pid=$started
within 60 says server 'Service Point Ready' || fail 'dapltest -T S does not get ready'
# script WORDS COMMAND...: the client succeeds and prints that.
script() {
	words=$1
	shift
	timeout -k 2 "$longest" "$sv" dapltest "$@" >"$tmp/client" 2>&1 || fail "dapltest $*: status $?"
	says client "$words" || fail "dapltest $* does not say: $words"
	! says client 'FAILED' || fail "dapltest $* speaks of failure"
}
transaction="-T T -s 127.0.0.1 -D ofa-soft -i $(rounds 100)"
script 'End of Work' $transaction -t 1 -w 1 client SR 256 server SR 256
script 'End of Work' $transaction -t 2 -w 2 \
	client SR 1024 server RW 4096 server SR 256 client RR 4096 client SR 256 server SR 256
script '^ *raw' -T P -s 127.0.0.1 -D ofa-soft -i $(rounds 1000) -p 16 -m p RW 4096 2
script '' -T Q -s 127.0.0.1 -D ofa-soft
wait "$server_pid" || fail "dapltest -T S ended with status $?"

within 3 nothing_left || fail 'names of the software device are left'
echo "OFED's libdaplofa on the device: dtest, dtestx, dtestcm, dapltest"
