#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The files that the packaged rping opens on the software device: no device file and no file of the kernel's RDMA
# (acceptance row D.0).
. test/blackbox/lib-verbs.sh
needs rping
command -v strace >/dev/null || skip 'no strace here (Debian: strace)'
strace -o "$tmp/try" true 2>/dev/null || skip 'strace may not trace here'

traced="strace -f -e trace=openat,openat2,open"
start server $traced -o "$tmp/server.trace" "$sv" rping -s -C 5 -a 127.0.0.1
server_pid=$started
within 30 cm_listens 7174 || fail 'the server does not listen'
timeout -k 2 "$longest" $traced -o "$tmp/client.trace" "$sv" rping -c -C 5 -a 127.0.0.1 >"$tmp/client" 2>&1 ||
	fail "the client ended with status $?"
wait "$server_pid" || fail "the server ended with status $?"
for side in server client; do
	grep -q "$drop/libibverbs.so.1" "$tmp/$side.trace" || fail "the $side does not load the drop-in"
	! grep '/dev/infiniband\|/sys/class/infiniband\|/run/ibacm\|/etc/libibverbs' "$tmp/$side.trace" ||
		fail "the $side looks for a kernel device"
	! grep '/dev/shm' "$tmp/$side.trace" || fail "the $side uses named shared memory"
done
echo 'no access to device files or files of the kernel'
