#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtestcm on a real device: ours and the packaged one.
. test/blackbox/lib.sh
runs() {
	for options in '-c 4 -b 2' '-w -c 100 -b 20' '-w -m -b 10 -c 50'; do
		# shellcheck disable=SC2086
		tool_pair 'listens 15828' 'Connection Test Complete' "$1" "$2" $options
		[ "$(cat "$tmp/server" "$tmp/client" | grep -c 'ALL [0-9]* CONNECTED')" = 2 ] ||
			fail "$options: not all are connected"
	done
}
[ -n "${QUICK:-}" ] || runs "$BUILD/bin/dtestcm" "$BUILD/bin/dtestcm"
has_packaged dtestcm || skip 'no packaged dtestcm here (Debian: dapl2-utils)'
runs "$tmp/packaged-dtestcm" "$tmp/packaged-dtestcm"
echo 'polling, waiting, many service points'
