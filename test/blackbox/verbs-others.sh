#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Other makers' programs on the software device: qperf, and the interfaces that libfabric finds (acceptance rows O1,
# O2).
. test/blackbox/lib-verbs.sh
for program in qperf fi_info; do
	command -v $program >"$tmp/where" || skip "no $program here (Debian: qperf, libfabric-bin)"
	resolves "$(cat "$tmp/where")" || fail "$program does not load the drop-in"
done

start server "$sv" qperf
server_pid=$started
within 30 tcp_listens 19765 || fail 'qperf does not listen'
tests='rc_lat rc_bw rc_rdma_write_lat rc_rdma_read_bw rc_fetch_add_mr'
# measures TEST: measures for a second. The server sends its port to the client before it listens there, so the client
# may be too early and be rejected.
measures() {
	end=$(($(date +%s) + 60))
	until timeout -k 2 60 "$sv" qperf -cm 1 -t 1 127.0.0.1 "$1" >"$tmp/$1" 2>&1 || ! says "$1" 'Event rejected'; do
		[ "$(date +%s)" -lt $end ] || return 1
	done
}
# All run at the same time: each takes its second, whatever the others do.
measuring=
for test in $tests; do
	measures "$test" &
	measuring="$measuring $!"
done
pids="$pids $measuring"
for pid in $measuring; do wait "$pid" || fail 'qperf comes too early each time'; done
for test in $tests; do
	grep -A 2 "^$test:" "$tmp/$test" | grep -Eq '= +[0-9]' || fail "qperf has no number for $test"
done
kill_program "$server_pid"
wait "$server_pid"

within 3 nothing_left || fail 'names of the software device are left'

# libfabric searches for the device behind network interfaces other than the loopback one.
if [ -z "$other" ]; then
	echo "qperf: $tests; no interface for fi_info here"
	exit
fi
timeout -k 2 60 "$sv" fi_info -p verbs >"$tmp/info" 2>&1 || fail "fi_info ended with status $?"
grep -A 3 'domain: soft0' "$tmp/info" | grep -q 'FI_EP_MSG' || fail 'fi_info lists no connected endpoints of soft0'
echo "qperf: $tests; fi_info: soft0"
