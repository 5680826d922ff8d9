#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# 64 processes on 16 hosts, each connected with each other one, send to all at once. The hosts are network namespaces around
# this one, which routes. Prints what a process needs, and what it would need among 10,000.
. test/blackbox/lib-fabric.sh
# Under a sanitizer 64 processes need so much of two processors that some are silent for longer than a QP's retries last.
hosts=${SCALE_HOSTS:-$([ -n "${SAN:-}" ] && echo 4 || echo 16)} each=4 rounds=5 host_pids=
count=$((hosts * each))

# host N: its wire is 10.80.N.0/30; here is .1, there .2.
host() {
	host_new
	host_pids="$host_pids $host_pid"
	ip link add "r$1" type veth peer name wire netns $host_pid && ip address add "10.80.$1.1/30" dev "r$1" && ip link set "r$1" up &&
		$on_host ip address add "10.80.$1.2/30" dev wire && $on_host ip link set wire up &&
		$on_host ip route add default via "10.80.$1.1" || fail "host $1 has no wire"
}
echo 1 >/proc/sys/net/ipv4/ip_forward || skip 'this kernel does not route for us'

for i in $(seq "$hosts"); do host "$i"; done

# all_to_all PROVIDER: says what a process needs.
all_to_all() {
	export SOFTVERBS_FABRIC="$1"
	rm -f "$tmp"/all*
	mkdir "$tmp/$1"
	n=0 programs=
	for host_pid in $host_pids; do
		for _ in $(seq $each); do
			start "all$n" nsenter -t "$host_pid" -n "$sv" "$BUILD/test/all-to-all" "$tmp/$1" $n $count $rounds
			programs="$programs $started"
			n=$((n + 1))
		done
	done
	for program in $programs; do wait "$program" || fail "$1: a process failed"; done
	cat "$tmp"/all* >"$tmp/needs"
	[ "$(grep -c descriptors "$tmp/needs")" = $count ] || fail "$1: not each process has ended well"
	within 5 nothing_left || fail 'names of the software device are left'
	sed 's/[^0-9. ]//g' "$tmp/needs" | awk -v n=$count -v provider="$1" '
		$1 > seconds { seconds = $1 } $2 > fds { fds = $2 } $3 > kib { kib = $3 }
		END {
			if (fds > 3 * n + 60) { print fds " descriptors"; exit 1 }
			printf "%s: %.1f s, %d descriptors and %.1f MiB each, of 10,000: %.1f GiB; ", provider, seconds, fds, kib / 1024,
				kib / (n - 1) * 10000 / 1048576
		}' >"$tmp/said" || fail "$1: $(cat "$tmp/said"), more than three for each other process"
	said=$said$(cat "$tmp/said")
}
said=
all_to_all link
! has_libfabric || all_to_all tcp
echo "$count processes on $hosts hosts; ${said%; }"
