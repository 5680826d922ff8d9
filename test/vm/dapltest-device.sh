#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dapltest's functional and limit tests on a real device, ours and the packaged one. The packaged one always exits
# with 0 and reports each case as passed, so its lines about failed assertions and frees are checked.
. test/blackbox/lib.sh

run() {	# run PROGRAM OPTION...
	timeout -k 2 "$longest" "$@" >"$tmp/out" 2>&1 || fail "$*: status $?"
	! grep -q 'failed in file\|Result: FAIL\|can not continue' "$tmp/out" || fail "$* speaks of failures"
}

both() {
	for feature in hwconn endpoint pz mem connmgt queryinfo; do
		run "$1" -T F -D "$provider" -f $feature
		grep -q 'Result: PASS' "$tmp/out" || fail "$1 $feature: nothing passed"
	done
	run "$1" -T L -D "$provider" -m 50 limit_ia limit_pz limit_cno limit_evd limit_ep limit_rsp limit_psp limit_lmr
	[ "$(grep -c 'LimitTest: ' "$tmp/out")" -ge 8 ] || fail "$1: a limit is missing"
}

both "$BUILD/bin/dapltest"
if has_packaged dapltest; then
	both "$tmp/packaged-dapltest"
fi
echo 'six features and eight limits, ours and packaged'
