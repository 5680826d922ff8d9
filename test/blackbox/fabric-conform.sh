#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The conformance suites whose peer is a process of its own, with that process on another host. Those of atomics and of
# datagrams between processes are left out: the one needs 10,000 round trips, the other that no datagram is ever lost.
. test/blackbox/lib-fabric.sh
export CONFORM_PEER_NET=/proc/$other_host/ns/net CONFORM_GID=1	# the address of the wire
ran=0
for suite in process rdma error mr mw rnr uc ud; do
	timeout -k 2 100 "$sv" "$BUILD/test/rdma/conform_$suite" >"$tmp/suite" 2>&1 || fail "conform_$suite over $SOFTVERBS_FABRIC: status $?"
	ran=$((ran + $(sed -n 's/^conform_[a-z]*: \([0-9]*\) tests, 0 failed$/\1/p' "$tmp/suite")))
done
[ $ran -ge 100 ] || fail "$ran tests only"
echo "$ran tests of 8 suites, with the peer on another host, over $SOFTVERBS_FABRIC"
