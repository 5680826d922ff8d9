#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# rdma-core's own test suite, from its Python bindings, on the software device: only tests in verbs-pyverbs.known,
# each with a reason, may fail, and no test is skipped that passed before (acceptance row V12).
. test/blackbox/lib-verbs.sh
known=test/blackbox/verbs-pyverbs.known least=89

suite=/usr/share/doc/rdma-core/tests
[ -e "$suite/run_tests.py" ] || skip "no $suite here (Debian: rdma-core)"
python=/usr/bin/python3			# the version that the packages are built for
[ -x $python ] && $python -c 'import pyverbs.device' 2>/dev/null || skip 'no pyverbs here (Debian: python3-pyverbs)'

cp -r "$suite" "$tmp/tests"
gunzip -f "$tmp"/tests/*.gz
rm -f "$tmp"/tests/test_mlx5* "$tmp"/tests/test_efa* "$tmp"/tests/test_cuda*
# Newer ones ask rdma(8) for the device's network interface, which fails where the kernel has no RDMA.
mkdir "$tmp/tools"
printf '#!/bin/sh\necho "[]"\n' >"$tmp/tools/rdma"
chmod 755 "$tmp/tools/rdma"
PATH="$tmp/tools:$PATH" timeout -k 2 "$longest" "$sv" $python "$tmp/tests/run_tests.py" -v --dev soft0 --gid 0 >"$tmp/run" 2>&1
status=$?
[ $status -le 1 ] || fail "the suite ended with status $status"
says run '^Ran 1[0-9][0-9] tests' || fail 'the suite did not run'

grep -E '^(FAIL|ERROR): ' "$tmp/run" | sed 's/^[A-Z]*: \([^ ]*\).*/\1/' | sort -u >"$tmp/failed"
sed '/^#/d; s/[[:space:]].*//; /^$/d' "$known" | sort -u >"$tmp/known"
comm -23 "$tmp/failed" "$tmp/known" >"$tmp/new"
[ ! -s "$tmp/new" ] || fail "these fail: $(tr '\n' ' ' <"$tmp/new")"
passed=$(grep -c '\.\.\. ok$' "$tmp/run")
[ "$passed" -ge $least ] || fail "only $passed tests pass, not $least"
within 3 nothing_left || fail 'names of the software device are left'
echo "$passed tests of rdma-core pass, $(wc -l <"$tmp/failed") fail for known reasons, the rest needs other devices"
