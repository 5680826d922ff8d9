#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# MPICH with two ranks on the software device, over UCX: with the transport of its choice, and over datagrams alone.
. test/blackbox/lib-verbs.sh
for program in mpiexec.mpich mpicc.mpich; do
	command -v $program >"$tmp/where" || skip "no $program here (Debian: mpich, libmpich-dev)"
done
. test/blackbox/lib-uverbs.sh
[ -n "$other" ] || skip 'UCX takes no loopback address, and there is no other here'

mpicc.mpich -O1 -o "$tmp/ring" test/blackbox/ring.c >"$tmp/cc" 2>&1 || fail 'mpicc.mpich'
cd "$tmp" || fail 'no folder'
export UCX_NET_DEVICES=soft0:1
for UCX_TLS in ib,self ud_verbs,self; do
	export UCX_TLS
	timeout -k 2 "$longest" "$sv" mpiexec.mpich -launcher fork -n 2 ./ring >client 2>&1 &&
		says client '^2 ranks, 21 rounds, 0 bad bytes' || fail "two ranks over $UCX_TLS"
done
within 3 nothing_left || fail 'names of the software device are left'
echo "mpich: $(mpiexec.mpich --version | sed -n 's/^ *Version: *//p')"
