#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# libfabric's connected endpoints on the software device, and its reliable datagrams over them.
. test/blackbox/lib-verbs.sh
command -v fi_pingpong >"$tmp/where" || skip 'no fi_pingpong here (Debian: libfabric-bin)'
[ -n "$other" ] || skip 'libfabric takes no loopback address, and there is no other here'
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what these programs load'

for kind in 'verbs;ofi_rxm -e rdm' 'verbs -e msg'; do
	pair 'tcp_listens 47592' "fi_pingpong -d soft0 -I 20 -p $kind" "fi_pingpong -d soft0 -I 20 -p $kind $other"
	says client '^1m ' || fail "no result of $kind"
done
within 3 nothing_left || fail 'names of the software device are left'
echo "libfabric: $(fi_info --version | sed -n 's/^fi_info: //p')"
