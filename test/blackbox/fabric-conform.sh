#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The conformance suites whose peer is a process of its own, with that process on another host.
own_programs=1
. test/blackbox/lib-fabric.sh
export CONFORM_PEER_NET=/proc/$other_host/ns/net CONFORM_GID=1	# the address of the wire
suites='process rdma error mr mw rnr uc ud ud_process cm_process cm_owner atomic' ran=0
for suite in $suites; do
	timeout -k 2 100 "$sv" "$BUILD/test/rdma/conform_$suite" >"$tmp/suite" 2>&1 || fail "conform_$suite over $SOFTVERBS_FABRIC: status $?"
	ran=$((ran + $(sed -n 's/^conform_[a-z_]*: \([0-9]*\) tests, 0 failed$/\1/p' "$tmp/suite" | tail -n 1)))
done
[ $ran -ge 138 ] || fail "$ran tests only"
echo "$ran tests of $(echo $suites | wc -w) suites, with the peer on another host, over $SOFTVERBS_FABRIC"
