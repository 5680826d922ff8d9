#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# UCX on the software device, with the transport of its choice, and over datagrams alone.
. test/blackbox/lib-verbs.sh
command -v ucx_perftest >"$tmp/where" || skip 'no ucx_perftest here (Debian: ucx-utils)'
. test/blackbox/lib-uverbs.sh
[ -n "$other" ] || skip 'UCX takes no loopback address, and there is no other here'

# Where it is built with an MPI it takes that to start its two processes.
alone=$(ucx_perftest -h 2>&1 | sed -n 's/^ *-P <0|1> .* MPI mode.*/-P 0/p')
export UCX_NET_DEVICES=soft0:1 UCX_WARN_UNUSED_ENV_VARS=n
for transports in ib ud_verbs; do
	export UCX_TLS=$transports
	for test in 'tag_lat -s 64 -n 500' 'tag_bw -s 300000 -n 100' 'ucp_put_bw -s 65536 -n 100'; do
		pair 'tcp_listens 13337' "ucx_perftest $alone" "ucx_perftest 127.0.0.1 $alone -w 10 -t $test"
		says client '^Final:' || fail "$transports: no result of $test"
	done
done

# By default UCX uses shared memory between processes of a host, and opens its other devices, too.
unset UCX_TLS
pair 'tcp_listens 13337' "ucx_perftest $alone" "ucx_perftest 127.0.0.1 $alone -w 10 -t tag_lat -s 64 -n 500"
says client '^Final:' || fail 'all transports: no result'
within 3 nothing_left || fail 'names of the software device are left'
echo "ucx: $(ucx_info -v | sed -n 's/.*\([0-9]\.[0-9]*\.[0-9]*\).*/\1/p' | head -n 1)"
