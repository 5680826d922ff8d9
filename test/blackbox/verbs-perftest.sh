#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on the software device: each operation, sizes, many queue pairs, one shared receive queue.
. test/blackbox/lib-verbs.sh
needs ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw

# perf SIZES PROGRAM [OPTION...]: both sides end well, the client with this many lines of results.
perf() {
	listens=tcp_listens
	case " $* " in
	*' -R '*) listens=cm_listens ;;
	esac
	sizes=$1 options="-F -d soft0 -x 0 -p 18515"
	shift
	pair "$listens 18515" "$* $options" "$* $options 127.0.0.1"
	got=$(grep -cE '^ *[0-9]+ +[0-9]+ +[0-9]' "$tmp/client")
	[ "$got" -eq "$sizes" ] || fail "$*: $got results, not $sizes"
}
perf 1 ib_send_lat -n 500
perf 1 ib_send_lat -e -n 300
perf 1 ib_send_lat -s 1024 -n 300
for what in write read atomic; do perf 1 ib_${what}_lat -n 300; done
for what in send write read atomic; do perf 1 ib_${what}_bw -n 300; done
perf 23 ib_send_bw -a -n 10
perf 1 ib_send_bw --use-srq -q 4 -n 300
perf 1 ib_write_bw -q 16 -n 300
perf 1 ib_send_bw -b -n 300
perf 1 ib_write_bw -R -n 300

# A device that perftest knows gets inline data and the calls that extend a work request.
export SOFTVERBS_VENDOR=0x02c9:4123
perf 1 ib_send_lat -n 300
perf 1 ib_write_bw -n 300

within 3 nothing_left || fail 'names of the software device are left'
echo 'perftest: send, write, read, atomic; sizes, queue pairs, a shared receive queue'
