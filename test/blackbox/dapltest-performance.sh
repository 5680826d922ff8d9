#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dapltest -T P: both modes, both operations, sizes, segments and pipelines; the results are printed.
. test/blackbox/lib-dapltest.sh

# performance OPTION...: the statistics have a throughput and a latency above zero. On a busy machine the bandwidth of
# short segments is 0.0 MB/sec, and reaping takes 0.0 us where the other side was faster.
performance() {
	run_client -T P -i 200 "$@"
	for figure in '/Operation Throughput/p' '/^ *Latency/,/minimum/p'; do
		sed -n "$figure" "$tmp/client" | grep -q ': *[0-9.]*[1-9]' || fail "$client -T P $*: no figure $figure"
	done
	sed -n '/Time Per Reap/,/minimum/p' "$tmp/client" | grep -q 'mean *: *[0-9]' || fail "$client -T P $*: no time per reap"
}

runs() {
	for mode in b p; do
		for op in RW RR; do
			performance -m $mode -p 16 $op 1
			performance -m $mode -p 1 $op 4096
			performance -m $mode -p 64 $op 65536 4
			says client 'Bandwidth *: *[0-9.]*[1-9]' || fail "$client -T P: no bandwidth"
			performance -m $mode $op 1000 2
		done
	done
	performance RW			# all other options have their defaults
}

each_pair dapltest session runs
echo "$clients clients, $pairs"
