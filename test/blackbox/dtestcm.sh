#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtestcm between two processes: ours and the packaged one, each as server and as client.
. test/blackbox/lib.sh
ours=$BUILD/bin/dtestcm
runs() {
	cm_pair "$1" "$2" -c 4 -b 2
	cm_pair "$1" "$2" -w -c 1000
	cm_pair "$1" "$2" -w -m -b 10 -c 100
}
cm_pair() {
	tool_pair 'listens 15828' 'Connection Test Complete' "$@"
	said=$(cat "$tmp/server" "$tmp/client" | grep -c 'ALL [0-9]* CONNECTED')
	[ "$said" = 2 ] || fail "$said of 2 programs say that all are connected"
}

runs "$ours" "$ours"
cm_pair "$ours" "$ours" -c 10 -b 4	# the last burst is shorter
start alone "$ours" -s -P ofa-v2-soft --timeout 0.5
! wait "$started" || fail 'a server without a client ends with 0'
start alone "$ours" -N -h 127.0.0.1 -P ofa-v2-soft
! wait "$started" || fail 'a client without a server ends with 0'
"$ours" -c 0 >"$tmp/usage" 2>&1
[ $? = 244 ] || fail '-c 0 is taken'
if has_packaged dtestcm; then
	runs "$tmp/packaged-dtestcm" "$tmp/packaged-dtestcm"
	runs "$ours" "$tmp/packaged-dtestcm"
	runs "$tmp/packaged-dtestcm" "$ours"
	echo 'three runs for each of four pairs of programs'
else
	echo 'three runs; no packaged program here (Debian: dapl2-utils)'
fi
