#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged perftest on the software device, beside minimal programs that run at the same time: half a round trip
# of 8 bytes takes at most 1.9 times that of a ring in shared memory; a write of 8 bytes takes at most 2 us, or, where
# system calls are slow, as long as one by process_vm_writev and a ring; writes of 64 KiB reach 0.7 of
# process_vm_writev. The best of three to twenty rounds counts. These are the limits with FULL=1; without it half as
# fast is enough, because the host may be busy.
. test/blackbox/lib-verbs.sh
. test/blackbox/lib-perftest.sh
[ -z "${SAN:-}" ] || skip 'measures nothing under a sanitizer'
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'

# median COMMAND...: prints the median of the command's figures.
median() {
	"$@" | sort -n | awk '{ f[NR] = $1 } END { print f[int((NR + 1) / 2)] }'
}
# column NUMBER: prints that column of the client's results.
column() {
	awk -v n="$1" '/^ *[0-9]+ +[0-9]+ +[0-9]/ { print $n }' "$tmp/client"
}

# good: the best of all rounds is within the limits, which $tmp/verdict describes. Columns: ring in ns, send and write in us,
# process_vm_writev in MB/s, write in MiB/s, a write of 8 bytes by process_vm_writev in ns.
good() {
	awk -v slack="$([ -n "${FULL:-}" ] && echo 1 || echo 2)" '
		NR == 1 || 1e3 * $2 / $1 < send { send = 1e3 * $2 / $1 }
		NR == 1 || $3 < write { write = $3 }
		NR == 1 || 1e3 * $3 / $6 < beside { beside = 1e3 * $3 / $6 }
		1.048576 * $5 / $4 > part { part = 1.048576 * $5 / $4 }
		END {
			if (!NR)
				exit 1
			printf "send of 8 bytes %.2f of a ring, write %.2f us and %.2f of a bare one, ", send, write, beside
			printf "writes of 64 KiB %.2f of process_vm_writev\n", part
			exit !(send <= 1.9 * slack && (write <= 2 * slack || beside <= slack) && part >= 0.7 / slack)
		}' "$tmp/figures" >"$tmp/verdict"
}

rounds=0
: >"$tmp/figures"
until [ $rounds -ge 3 ] && good; do
	[ $rounds -lt 20 ] || fail "$(cat "$tmp/verdict")"
	ring=$(median "$BUILD/bench/limit" lat 8)
	perf 1 ib_send_lat -s 8 -n 1000
	send=$(column 5)
	bare=$(median "$BUILD/bench/limit" lat 8 -w vmw)
	perf 1 ib_write_lat -s 8 -n 1000
	write=$(column 5)
	kernel=$(median "$BUILD/bench/limit" write 65536)
	perf 1 ib_write_bw -s 65536 -n 1000
	bandwidth=$(column 4)
	rounds=$((rounds + 1))
	# a round without a figure: lib-perftest.sh
	[ -z "$send" ] || [ -z "$write" ] || [ -z "$bandwidth" ] ||
		echo "$ring $send $write $kernel $bandwidth $bare" >>"$tmp/figures"
done
cat "$tmp/verdict"
