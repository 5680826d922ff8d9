#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtestsrq between two processes: ours and the packaged one, each as server and as client.
. test/blackbox/lib.sh
ours=$BUILD/bin/dtestsrq
runs() {
	srq_pair "$1" "$2"
	srq_pair "$1" "$2" -c 10 -B 10
	srq_pair "$1" "$2" -c 100 -B 3 -b 64
	srq_pair "$1" "$2" -c 5 -B 20 -b 20000 -S 0
}
srq_pair() {
	tool_pair 'says server ready' 'SRQ Test Complete' "$@"
	said=$(cat "$tmp/server" "$tmp/client" | grep -c 'ALL [0-9]* CONNECTED')
	[ "$said" = 2 ] || fail "$said of 2 programs say that all are connected"
}

[ -n "${QUICK:-}" ] || runs "$ours" "$ours"
start alone "$ours" -s -P "$provider" --timeout 0.5
! wait "$started" || fail 'a server without a client ends with 0'
start alone "$ours" -h "$address" -P "$provider"
! wait "$started" || fail 'a client without a server ends with 0'
tool_fails() {
	"$ours" "$@" >"$tmp/usage" 2>&1
	[ $? = 244 ] || fail "$* is taken"
}
tool_fails -c 0
tool_fails -B 101
tool_fails -t -1
if [ -n "${QUICK:-}" ] && has_packaged dtestsrq; then
	srq_pair "$tmp/packaged-dtestsrq" "$tmp/packaged-dtestsrq"
	echo 'the packaged one once'
elif has_packaged dtestsrq; then
	runs "$tmp/packaged-dtestsrq" "$tmp/packaged-dtestsrq"
	runs "$ours" "$tmp/packaged-dtestsrq"
	runs "$tmp/packaged-dtestsrq" "$ours"
	echo 'four runs for each of four pairs of programs'
else
	echo 'four runs; no packaged program here (Debian: dapl2-utils)'
fi
