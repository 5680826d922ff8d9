#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dapltest: transactions, performance and quit, ours and the packaged one against each other; functional and limit tests.
. test/blackbox/lib.sh

ours=$BUILD/bin/dapltest

# session SERVER CLIENT: one server, several clients, then told to quit.
session() {
	server=$1 client=$2
	start server "$server" -T S -D ofa-v2-soft
	server_pid=$started
	within 20 says server 'Ready' || fail "$server does not get ready"
	run_client() {
		timeout -k 2 60 "$client" "$@" >"$tmp/client" 2>&1 || fail "$client $*: status $?"
	}
	run_client -T T -s 127.0.0.1 -D ofa-v2-soft -i 100 -t 1 -w 1 client SR 256 server SR 256
	run_client -T T -s 127.0.0.1 -D ofa-v2-soft -i 50 -t 2 -w 2 client SR 1024 server RW 4096 \
		server SR 256 client RR 4096 client SR 256 server SR 256
	run_client -T P -s 127.0.0.1 -D ofa-v2-soft -i 1000 -p 16 -m p RW 4096 2
	run_client -T P -s 127.0.0.1 -D ofa-v2-soft -i 200 -p 8 -m b RR 4096
	run_client -T Q -s 127.0.0.1 -D ofa-v2-soft
	within 20 not_running "$server_pid" || fail "$server does not quit"
	wait "$server_pid" || fail "$server ended with status $?"
	within 3 nothing_left || fail 'names of the software device are left'
}

not_running() {
	! kill -0 "$1" 2>/dev/null
}

session "$ours" "$ours"
if has_packaged dapltest; then
	packaged=$tmp/packaged-dapltest
	session "$packaged" "$packaged"
	session "$ours" "$packaged"
	session "$packaged" "$ours"
fi
echo 'four clients and quit, for each pair of programs'
