#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on the software device: messages of each size up to 8 MiB (acceptance rows P1, P4). It takes 20 s
# and more, because perftest calibrates its clock for each of 69 results.
. test/blackbox/lib-verbs.sh
. test/blackbox/lib-perftest.sh

# The programs calibrate their clock for each size, which takes a quarter of a second on a quiet machine.
n=5
[ -z "${FULL:-}" ] || n=50
for what in send_bw ${FULL:+send_lat}; do perf 23 ib_$what -a -n $n; done
# In these tests the servers are idle, so that two tests have a processor each.
(
	tmp=$tmp/reads port=18516 pids=
	mkdir "$tmp"
	trap cleanup EXIT
	perf 23 ib_read_bw -a -n $n
) &
reads=$!
perf 23 ib_write_bw -a -n $n
wait $reads || fail 'reads of all sizes'

within 3 nothing_left || fail 'names of the software device are left'
echo 'perftest: send, write, read of 2 bytes to 8 MiB'
