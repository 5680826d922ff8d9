#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Local and remote peers at once: one SRQ and one CQ receive from eight connections of this host and eight of the other; a
# client serves both a server of its own host and one of the other; both hosts connect to each other at once.
. test/blackbox/lib-fabric.sh
one=10.79.0.1 two=10.79.0.2
mix="$sv $BUILD/test/mix"

# serve NAME HOST-PREFIX ADDRESS PORT CONNECTIONS
serve() {
	name=$1 prefix=$2
	shift 2
	start "$name" $prefix $mix server "$@"
	within 30 $prefix grep -q "c/[0-9a-f]*/$2/" /proc/net/unix || fail "the server $name does not listen"
}
# all PID...: each ends with success.
all() {
	for pid; do
		wait "$pid" || fail "a program failed"
	done
}

serve server '' $one 7301 16
server=$started
start local $mix client 7301 $one
local=$started
start remote $there $mix client 7301 $one
all $started $local $server

serve here '' $one 7302 8
servers=$started
serve there "$there" $two 7302 8
servers="$servers $started"
start client $mix client 7302 $one $two
all $started $servers

serve here '' $one 7303 8
servers=$started
serve there "$there" $two 7303 8
servers="$servers $started"
start cross1 $mix client 7303 $two
clients=$started
start cross2 $there $mix client 7303 $one
all $clients $started $servers
within 3 nothing_left || fail 'names of the software device are left'
echo 'local and remote connections on one SRQ; two servers of one client; both hosts at once'
