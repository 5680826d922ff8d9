#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dapltest on a real device: transactions, performance and quit, ours and the packaged one.
. test/blackbox/lib-dapltest.sh
runs() {
	run_client -T T -i 50 -t 1 -w 1 client SR 256 server SR 256
	run_client -T T -i 20 -t 2 -w 2 client SR 1024 server RW 4096 server SR 256 client RR 4096 client SR 256 server SR 256
	run_client -T P -i 200 -p 16 -m p RW 4096 2
	run_client -T P -i 200 -p 8 -m b RR 4096
}
[ -n "${QUICK:-}" ] || session runs "$BUILD/bin/dapltest" "$BUILD/bin/dapltest"
if has_packaged dapltest; then
	session runs "$tmp/packaged-dapltest" "$tmp/packaged-dapltest"
	[ -n "${QUICK:-}" ] || session runs "$BUILD/bin/dapltest" "$tmp/packaged-dapltest"
fi
echo "$clients clients"
