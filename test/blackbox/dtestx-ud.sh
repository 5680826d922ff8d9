#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Datagrams between two processes: dtestx, ours and the packaged one, each as server and as client; dtestcm and dtestsrq.
. test/blackbox/lib.sh
ours=$BUILD/bin/dtestx

# A packaged server listens only after it has sent its address. A client that is faster is refused, and a packaged client
# may then wait forever. Nothing outside the server shows when it listens, so the client is started again: often, as on a
# busy machine it may be faster many times in a row.
meet() {
	server=$1 client=$2 patience=$longest
	[ "$server" = "$ours" ] || patience=10
	[ "$server" = "$ours" ] || [ "$provider" != ofa-v2-soft ] || patience=4
	shift 2
	start server "$server" -P "$provider" "$@"
	server_pid=$started
	within 20 says server 'waiting to snd addr' || fail "$server does not get ready"
	timeout -k 2 "$patience" "$client" -P "$provider" -c -h "$address" "$@" >"$tmp/client" 2>&1 && return
	kill "$server_pid" 2>/dev/null	# the server may have ended
	wait "$server_pid"
	return 1
}

# datagrams SERVER CLIENT [OPTION...]: both succeed and print that.
datagrams() {
	tries_begin
	until meet "$@"; do
		[ "$1" != "$ours" ] && tries_left || fail 'the client fails'
	done
	wait "$server_pid" || fail "the server ended with status $?"
	for side in server client; do
		says $side 'UD test PASSED' || fail "the $side did not pass"
	done
	within 3 nothing_left || fail 'names of the software device are left'
}

# One endpoint for all peers, one for each peer, and several; with counters.
runs() {
	datagrams "$1" "$2" -u
	datagrams "$1" "$2" -u -m
	datagrams "$1" "$2" -U 20 -p
}

[ -n "${QUICK:-}" ] || runs "$ours" "$ours"
tool_pair 'listens 15828' 'Connection Test Complete' "$BUILD/bin/dtestcm" "$BUILD/bin/dtestcm" -u -c 40
tool_pair 'says server ready' 'SRQ Test Complete' "$BUILD/bin/dtestsrq" "$BUILD/bin/dtestsrq" -u
packaged=$tmp/packaged-dtestx
if [ -n "${QUICK:-}" ] && has_packaged dtestx; then
	runs "$packaged" "$packaged"
	echo 'three runs of the packaged program; dtestcm, dtestsrq'
elif has_packaged dtestx; then
	runs "$packaged" "$packaged"
	runs "$ours" "$packaged"
	runs "$packaged" "$ours"
	echo 'three runs for each of four pairs of programs; dtestcm, dtestsrq'
else
	echo 'three runs, dtestcm, dtestsrq; no packaged program here (Debian: dapl2-utils)'
fi
