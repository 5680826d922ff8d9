#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtestx between two processes: immediate data and atomics over one and over several endpoints, counters, the named
# attributes. The packaged program sleeps for seconds in each run, so each test runs only once with it, and takes 20 s.
. test/blackbox/lib.sh
ours=$BUILD/bin/dtestx

meet() {
	start server "$server" -s -P ofa-v2-soft "$@"
	server_pid=$started
	within 20 listens 15828 || fail "$server does not get ready"
	timeout -k 2 "$longest" "$client" -P ofa-v2-soft -h 127.0.0.1 "$@" >"$tmp/client" 2>&1 && return
	kill "$server_pid"
	wait "$server_pid"
	return 1
}

# x_pair SERVER CLIENT [OPTION...]: both succeed and pass each part. A client that a packaged server refuses is
# started again, and so is a pair in which a packaged program raced.
may_try_again() {
	[ "$server$client" != "$ours$ours" ] || return 1
	dtestx_raced || { [ "$server" != "$ours" ] && says client 'REJECT\|!conn established: 0x4003'; }
}
x_pair() {
	server=$1 client=$2
	shift 2
	tries_begin
	until meet "$@"; do
		may_try_again && tries_left || fail "$client $* fails"
	done
	wait "$server_pid" || fail "$server $* ended with status $?"
	for side in server client; do
		for part in RDMA_WRITE_WITH_IMMEDIATE_DATA CMP_SWAP FETCH_ADD; do
			says $side "$part test - PASSED" || fail "$side $*: no word of $part"
		done
		says $side 'immed/atomic test PASSED' || fail "the $side $* did not pass"
		case " $* " in
		*' -p '*) says $side 'DCNT_EP_ACTIVE_[A-Z_]* *= *[1-9]\|DCNT_IA_[A-Z_]* *= *[1-9]' || fail "$side: nothing counted" ;;
		esac
	done
	within 3 nothing_left || fail 'names of the software device are left'
}

# query PROGRAM: checks the named attributes.
query() {
	timeout -k 2 "$longest" "$1" -P ofa-v2-soft -q >"$tmp/query" 2>&1 || fail "$1 -q ended with status $?"
	says query 'Provider Specific Attribute.*DAT_IB_RDMA_READ=TRUE' || fail "$1 -q does not name what is there"
}

x_pair "$ours" "$ours"
x_pair "$ours" "$ours" -m
x_pair "$ours" "$ours" -p -b 4096
query "$ours"
start alone "$ours" -s -P ofa-v2-soft --timeout 0.5
! wait "$started" || fail 'a server without a client ends with 0'
start alone "$ours" -N -h 127.0.0.1 -P ofa-v2-soft
! wait "$started" || fail 'a client without a server ends with 0'
"$ours" -b 0 >"$tmp/usage" 2>&1
[ $? = 244 ] || fail '-b 0 is taken'
if has_packaged dtestx; then
	x_pair "$tmp/packaged-dtestx" "$tmp/packaged-dtestx" -p -b 4096
	x_pair "$ours" "$tmp/packaged-dtestx" -p -m
	x_pair "$tmp/packaged-dtestx" "$ours"
	query "$tmp/packaged-dtestx"
	echo 'three runs of ours, one of each other pair of programs; attributes'
else
	echo 'three runs; attributes; no packaged program here (Debian: dapl2-utils)'
fi
