#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The conformance suites, linked with rdma-core's libraries, on the drop-in: what they prove of the device inside a
# program is also true through rdma-core's names and versions. conform_cm_device proves what the drop-in adds.
. test/blackbox/lib-verbs.sh
count=0
for source in test/conform/conform_*.c; do
	name=$(basename "$source" .c) suite=$BUILD/test/rdma/$(basename "$source" .c)
	resolves "$suite" || fail "$name does not load the drop-in"
	timeout -k 2 240 "$sv" "$suite" >"$tmp/$name" 2>&1 || {
		status=$?
		tail -n 30 "$tmp/$name"
		fail "$name ended with status $status"
	}
	count=$((count + 1))
done
[ $count -gt 20 ] || fail "only $count suites"
echo "$count conformance suites on the drop-in"
