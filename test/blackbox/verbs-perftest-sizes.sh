#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on the software device: messages of 2 bytes to 8 MiB (acceptance rows P1, P4). perftest
# calibrates its clock for each result, which takes a quarter of a second on a quiet machine; so all 23 sizes are for FULL=1.
. test/blackbox/lib-verbs.sh
. test/blackbox/lib-perftest.sh

for what in send_bw write_bw read_bw ${FULL:+send_lat}; do
	if [ -n "${FULL:-}" ]; then
		perf 23 ib_$what -a -n 50
	else
		for size in 2 4096 65536 8388608; do perf 1 ib_$what -s $size -n 5; done
	fi
done

within 3 nothing_left || fail 'names of the software device are left'
echo 'perftest: send, write, read of 2 bytes to 8 MiB'
