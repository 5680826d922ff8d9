#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on the software device: each operation, also with blocking waits and over rdma_cm, many queue
# pairs, one shared receive queue (acceptance rows P1 to P3, P5 to P7; the sizes are in verbs-perftest-sizes.sh).
. test/blackbox/lib-verbs.sh
. test/blackbox/lib-perftest.sh

latencies
bandwidths
n=$(rounds 1000)
perf 1 ib_send_bw --use-srq -q 4 -n $n
perf 1 ib_write_bw -q 16 -n $n
perf 1 ib_send_bw -b -n $n
for what in write_bw send_lat read_bw; do perf 1 ib_$what -R -n $n; done
# Blocking waits, rdma_cm, or both, where the rows above do not cover them. perftest does not block for writes.
for what in read_lat atomic_lat send_bw atomic_bw; do perf 1 ib_$what -e -R -n $n; done
perf 1 ib_read_bw -e -n $n
perf 1 ib_write_lat -R -n $n
perf 1 ib_send_lat -c UC -n $n
perf 1 ib_write_bw -c UC -n $n
perf 1 ib_send_lat -c UD -n $n
perf 1 ib_send_bw -c UD -n $n
perf 1 ib_send_lat -c UD -R -n $n

within 3 nothing_left || fail 'names of the software device are left'
echo 'perftest: send, write, read, atomic; asleep; queue pairs, a shared receive queue, rdma_cm, UC, UD'
