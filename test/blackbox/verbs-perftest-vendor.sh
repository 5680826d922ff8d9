#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on a device that it recognises: inline data, and the calls that extend a work request
# (acceptance row P8).
. test/blackbox/lib-verbs.sh
. test/blackbox/lib-perftest.sh

export VERBS_PRELOAD=$BUILD/test/verbs-vendor.so VERBS_VENDOR=0x02c9:4123
# Version 25.01 asks libmlx5 about a device of this vendor, and that does not know this one.
meet "tcp_listens $port" "ib_send_lat -F -d soft0 -x 0 -p $port -n 10" "ib_send_lat -F -d soft0 -x 0 -p $port -n 10 127.0.0.1" ||
	! says client 'Failed to query device capabilities' || skip 'this perftest wants a device of libmlx5'
wait "$server_pid"
latencies
! says client 'not recognized' || fail 'perftest does not know the device'
bandwidths
# All sizes take longer and are in verbs-perftest-sizes.sh.
for what in send write read; do
	if [ -n "${FULL:-}" ]; then
		perf 23 ib_${what}_bw -a -n 50
	else
		for size in 64 1048576; do perf 1 ib_${what}_bw -s $size -n 30; done
	fi
done

within 3 nothing_left || fail 'names of the software device are left'
echo 'perftest: send, write, read, atomic with inline data and ibv_wr_*'
