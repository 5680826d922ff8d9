#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# librpma on the software device: writes, an atomic write, a flush, reads and messages between two processes.
. test/blackbox/lib-verbs.sh
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what this program loads'
echo '#include <librpma.h>' | cc -E -o "$tmp/header" - 2>"$tmp/why" || skip 'no librpma here (Debian: librpma-dev)'
cc -O1 -o "$tmp/rpma_put" test/blackbox/rpma_put.c -lrpma -libverbs >"$tmp/cc" 2>&1 || fail 'cc'
resolves "$tmp/rpma_put" || fail 'the program does not load the drop-in'

for address in 127.0.0.1 $other; do
	pair 'cm_listens 7204' "$tmp/rpma_put server $address" "$tmp/rpma_put client $address"
	says client '^1048576 bytes: 0 bad as read, 0 as found$' || fail "$address: bytes are wrong"
done
within 3 nothing_left || fail 'names of the software device are left'
echo "librpma: $(dpkg-query -W -f '${Version}' librpma0 2>"$tmp/why")"
