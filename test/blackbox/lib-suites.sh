# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests that run the $suites of connections over another connection manager than rdma_cm: its $library
# is put under the name that the suites open, over the drop-in of the software device or a kernel's device
# (VERBS_DEVICE). $left_out names the tests of features that only rdma_cm has; $told are lines of datinfo for the IA.
. test/blackbox/lib-verbs.sh
not_under_tsan

ia=${DAPL_TEST_IA:-ofa-v2-soft}
echo "$ia u2.0 nonthreadsafe default $BUILD/lib/$library dapl.2.0 \"${VERBS_DEVICE:-soft0} 1\" \"\"" >"$tmp/dat.conf"
export DAT_OVERRIDE="$tmp/dat.conf" LD_LIBRARY_PATH="${drop:+$drop:}$BUILD/lib"
export UNIT_SKIP="${UNIT_SKIP:+$UNIT_SKIP|}$left_out"	# beside those that the device cannot pass
run=0
for suite in $suites; do
	timeout -k 2 "$longest" "$BUILD/test/test_$suite" >"$tmp/$suite" 2>&1 || fail "$suite: status $?"
	passed=$(sed -n "s/^$suite: \([0-9]*\) tests, 0 failed.*/\1/p" "$tmp/$suite")
	[ -n "$passed" ] || fail "$suite does not say how many tests passed"
	run=$((run + passed))
	rm "$tmp/$suite"
done
"$BUILD/bin/datinfo" "$ia" >"$tmp/datinfo" 2>&1 || fail 'datinfo does not open the IA'
for line in $told; do
	says datinfo "$(echo "$line" | sed 's/=/: */')\$" || fail "datinfo does not say: $line"
done
echo "$run tests of connections over $library"
