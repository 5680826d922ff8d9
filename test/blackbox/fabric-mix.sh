#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Local and remote peers at once: one SRQ and one CQ receive from eight connections of this host and eight of the other; a
# client serves both a server of its own host and one of the other; both hosts connect to each other at once. Three hosts in
# a ring, each with an address for either neighbour.
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

# wire NAME ADDRESS PID OTHER-NAME OTHER-ADDRESS: from the host of that process to the new one
wire() {
	{ nsenter -t "$3" -n ip link add "$1" type veth peer name "$4" netns "$host_pid" &&
		nsenter -t "$3" -n ip address add "$2/24" dev "$1" && nsenter -t "$3" -n ip link set "$1" up &&
		$on_host ip address add "$5/24" dev "$4" && $on_host ip link set "$4" up; } >"$tmp/ip" 2>&1 ||
		fail "no wire: $(cat "$tmp/ip")"
}
host_new
wire v2 10.79.1.1 $$ v3 10.79.1.2
wire v4 10.79.2.1 "$other_host" v5 10.79.2.2
serve first '' $one 7304 8
servers=$started
serve second "$there" 10.79.2.1 7304 8
servers="$servers $started"
serve third "$on_host" 10.79.1.2 7304 8
servers="$servers $started"
start ring1 $there $mix client 7304 $one
clients=$started
start ring2 $on_host $mix client 7304 10.79.2.1
clients="$clients $started"
start ring3 $mix client 7304 10.79.1.2
all $clients $started $servers
within 3 nothing_left || fail 'names of the software device are left'
echo 'local and remote connections on one SRQ; two servers of one client; both hosts at once; a ring of three'
