#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The conformance suites whose peer is a process of its own, with that process on another host. That of atomics, with
# its 10,000 round trips, runs only with LONG_SECONDS (make check-fabric).
. test/blackbox/lib-fabric.sh
export CONFORM_PEER_NET=/proc/$other_host/ns/net CONFORM_GID=1	# the address of the wire
suites='process rdma error mr mw rnr uc ud ud_process cm_process' longest_suite=100 ran=0
[ -z "${LONG_SECONDS:-}" ] || suites="$suites atomic" longest_suite=900
for suite in $suites; do
	timeout -k 2 $longest_suite "$sv" "$BUILD/test/rdma/conform_$suite" >"$tmp/suite" 2>&1 || fail "conform_$suite over $SOFTVERBS_FABRIC: status $?"
	ran=$((ran + $(sed -n 's/^conform_[a-z_]*: \([0-9]*\) tests, 0 failed$/\1/p' "$tmp/suite" | tail -n 1)))
done
[ $ran -ge 115 ] || fail "$ran tests only"
echo "$ran tests of $(echo $suites | wc -w) suites, with the peer on another host, over $SOFTVERBS_FABRIC"
