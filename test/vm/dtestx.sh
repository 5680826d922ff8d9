#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtestx on a real device: ours and the packaged one.
. test/blackbox/lib.sh
runs() {
	tool_pair 'listens 15828' 'immed/atomic test PASSED' "$1" "$2" -b 4096
	for side in server client; do
		for part in RDMA_WRITE_WITH_IMMEDIATE_DATA CMP_SWAP FETCH_ADD; do
			says $side "$part test - PASSED" || fail "$side: no word of $part"
		done
	done
}
[ -n "${QUICK:-}" ] || runs "$BUILD/bin/dtestx" "$BUILD/bin/dtestx"
has_packaged dtestx || skip 'no packaged dtestx here (Debian: dapl2-utils)'
runs "$tmp/packaged-dtestx" "$tmp/packaged-dtestx"
echo 'immediate data, compare and swap, fetch and add'
