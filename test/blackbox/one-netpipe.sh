#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# NetPIPE's module for uDAPL, a program of DAT 1.2 that others wrote, in each of its modes: among them is one that waits for the last
# byte of a receive without any call. Its source is fetched from Debian once, into the cache folder.
archive=netpipe_3.7.2.orig.tar.gz
store=${XDG_CACHE_HOME:-$HOME/.cache}/udapl
if [ -z "${OWN_NET:-}" ] && [ ! -e "$store/$archive" ] && [ -x /usr/lib/apt/apt-helper ]; then
	. tools/need.sh
	got=$(mktemp -d)
	if timeout 60 /usr/lib/apt/apt-helper -o "APT::Sandbox::User=$(id -un)" download-file "$(mirror)/pool/main/n/netpipe/$archive" \
		"$got/$archive" SHA256:13dac884ff52951636f651c421f5ff4a853218a95aa28a4a852402ee385a2ab8 >"$got/said" 2>&1; then
		mkdir -p "$store" && mv "$got/$archive" "$store/$archive.$$" && mv "$store/$archive.$$" "$store/$archive"
	fi
	rm -rf "$got"
fi
. test/blackbox/lib.sh
[ -z "${SAN:-}" ] || skip 'the sanitizers stop at mistakes of this program'
[ -e "$store/$archive" ] || skip "no $archive here, and none to be had from Debian"

tar -xzf "$store/$archive" -C "$tmp" --strip-components=1 || fail tar
${CC:-cc} -O2 -w -DDAT -DTCP -DUSE_VOLATILE_RPTR -Idat/include -o "$tmp/src/NPudapl" "$tmp/src/udapl.c" "$tmp/src/netpipe.c" \
	"$BUILD/lib/libdat.so.1" -lpthread >"$tmp/cc" 2>&1 || fail cc
sed -n 's/^ofa-v2-soft .*"\(.*libdaplsoft.so.2\)".*/OpenIB-cma-name u1.2 nonthreadsafe default \1 dapl.1.2 "soft0 1" ""/p' \
	"$DAT_OVERRIDE" >"$tmp/dat.conf"
export DAT_OVERRIDE="$tmp/dat.conf"

cd "$tmp" || exit # the program leaves a log there

# meet MODE...: the lines of the client, one a size, are in $tmp/client.
port=5001 # another one each time: the socket of the last one may wait for its end
meet() {
	port=$((port + 1))
	start server "$tmp/src/NPudapl" "$@" -P $port
	server_pid=$started
	within 20 listens $port || fail 'the server does not listen'
	start client "$tmp/src/NPudapl" "$@" -P $port -h 127.0.0.1 -o "$tmp/figures"
	client_pid=$started
	within "$longest" ended
	says client '^Disconnected' && wait "$client_pid" && wait "$server_pid"
}

ended() {
	not_running "$client_pid" || says client "unexpected event\|failed"
}

# The client may connect before the server's service point is there, and waits for ever then.
run() {
	tries_begin
	until meet "$@"; do
		says client 'unexpected event: 4003' && tries_left || fail "NPudapl $*"
		end "$client_pid" "$server_pid"
	done
	lines=$(grep -c 'Mbps in\|Integrity check passed' "$tmp/client")
	[ "$lines" -ge 20 ] || fail "NPudapl $*: $lines sizes"
	! says client 'Error\|rror:' || fail "NPudapl $* speaks of errors"
	within 3 nothing_left || fail 'names of the software device are left'
}

run -t send_recv -c local_poll -n 20 -u 16384
for way in evd_wait dq_poll cno_wait; do
	run -t send_recv -c "$way" -n 20 -u 16384
	run -t send_recv -c "$way" -n 20 -u 16384 -i
done
run -t rdma_write -c local_poll -n 20 -u 16384
run -t rdma_write -c evd_wait -n 20 -u 16384
echo 'sends and writes; waits on memory, by dequeue, by an EVD, by a CNO'
