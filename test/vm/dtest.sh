#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest on a real device: ours and the packaged one, the latter also with 4 MiB.
. test/blackbox/lib.sh
ours=$BUILD/bin/dtest
runs() {
	dtest_pair "$1" "$2" -b 16384 -B 100
	dtest_pair "$1" "$2" -b 1024 -B 100 -p
	dtest_pair "$1" "$2" -W -b 1024 -B 100
	dtest_pair "$1" "$2" -w -b 4096 -B 100
	dtest_pair "$1" "$2" -c -b 4096 -B 100
}
packaged_dtest
if [ -n "${QUICK:-}" ]; then
	dtest_pair "$tmp/packaged" "$tmp/packaged" -b 262144 -B 10
	echo 'the packaged one, with 256 KiB'
	exit
fi
runs "$ours" "$ours"
runs "$tmp/packaged" "$tmp/packaged"
dtest_pair "$tmp/packaged" "$tmp/packaged"
echo 'default, polling, ping-pong, immediate data, notification object, 4 MiB'
