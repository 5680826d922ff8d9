#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on the software device, next to what bare programs do in the same moment (acceptance row P9): half a
# round trip of 8 bytes at most twice that of a cache line, a write of 8 bytes in at most 2 us, or as long as processes take
# that write to each other and do nothing else where system calls are slow; and writes of 64 KiB at 0.6 or more of one
# thread's memcpy, or 0.7 of process_vm_writev where that alone does not reach it: in the cache of a processor memcpy is
# twice as fast. Only quiet moments count, and the best of three to twenty; without them there is no verdict. Those are the
# goals with FULL=1; without it half as fast will do, for a host may hand lines over faster than any program reads them.
. test/blackbox/lib-verbs.sh
. test/blackbox/lib-perftest.sh
[ -z "${SAN:-}" ] || skip 'measures nothing under a sanitizer'
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'

# quiet: neither processor was taken away lately, and they are not two halves of one.
quiet() {
	"$BUILD/bench/gate" gate -b 1 >"$tmp/gate" && awk '{ exit !($1 < 8 && $2 < 1.25) }' "$tmp/gate"
}
# median COMMAND...: of the figures that it prints.
median() {
	"$@" | sort -n | awk '{ f[NR] = $1 } END { print f[int((NR + 1) / 2)] }'
}
# column NUMBER: of the results of the client.
column() {
	awk -v n="$1" '/^ *[0-9]+ +[0-9]+ +[0-9]/ { print $n }' "$tmp/client"
}

# good: the best of all figures so far is as it should be; $tmp/verdict says what they are, in ns and us, MB/s and MiB/s.
good() {
	awk -v slack="$([ -n "${FULL:-}" ] && echo 1 || echo 2)" '
		NR == 1 || 1e3 * $2 / $1 < send { send = 1e3 * $2 / $1 }
		NR == 1 || $3 < write { write = $3 }
		NR == 1 || 1e3 * $3 / $7 < beside { beside = 1e3 * $3 / $7 }
		1.048576 * $6 / $4 > share { share = 1.048576 * $6 / $4 }
		1.048576 * $6 / $5 > part { part = 1.048576 * $6 / $5 }
		END {
			printf "send of 8 bytes %.2f of a cache line, ", send
			printf "write %.2f us and %.2f of a bare one, ", write, beside
			printf "writes of 64 KiB %.2f of memcpy, %.2f of process_vm_writev\n", share, part
			exit !(send <= 2 * slack && (write <= 2 * slack || beside <= slack) &&
			       (share >= 0.6 / slack || part >= 0.7 / slack))
		}' "$tmp/figures" >"$tmp/verdict"
}

rounds=0 tries=0
until [ $rounds -ge 3 ] && good; do
	[ $rounds -lt 20 ] || fail "$(cat "$tmp/verdict")"
	[ $tries -lt 60 ] || skip 'no verdict: the machine is not quiet'
	tries=$((tries + 1))
	quiet || continue
	line=$(median "$BUILD/bench/limit-line" spin)
	perf 1 ib_send_lat -s 8 -n 10000
	send=$(column 5)
	bare=$(median "$BUILD/bench/limit-send" lat-vmw 8)
	perf 1 ib_write_lat -s 8 -n 10000
	write=$(column 5)
	copy=$(median "$BUILD/bench/limit-copy" memcpy 65536)
	kernel=$(median "$BUILD/bench/limit-copy" write 65536)
	perf 1 ib_write_bw -s 65536 -n 5000
	bandwidth=$(column 4)
	quiet || { tries=$((tries + 5)); continue; }
	rounds=$((rounds + 1))
	echo "$line $send $write $copy $kernel $bandwidth $bare" >>"$tmp/figures"
done
cat "$tmp/verdict"
