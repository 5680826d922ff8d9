#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The conformance suites whose peer is a process of its own, with that process on another host. That of atomics is left out:
# it needs 10,000 round trips.
. test/blackbox/lib-fabric.sh
export CONFORM_PEER_NET=/proc/$other_host/ns/net CONFORM_GID=1	# the address of the wire
ran=0
for suite in process rdma error mr mw rnr uc ud ud_process; do
	timeout -k 2 100 "$sv" "$BUILD/test/rdma/conform_$suite" >"$tmp/suite" 2>&1 || fail "conform_$suite over $SOFTVERBS_FABRIC: status $?"
	ran=$((ran + $(sed -n 's/^conform_[a-z_]*: \([0-9]*\) tests, 0 failed$/\1/p' "$tmp/suite")))
done
[ $ran -ge 110 ] || fail "$ran tests only"
echo "$ran tests of 9 suites, with the peer on another host, over $SOFTVERBS_FABRIC"
