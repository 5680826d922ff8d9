#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# softverbs-run --check between two hosts: it reaches the other one, or names what stands in the way. And the list of the
# settings that it depends on.
. test/blackbox/lib-fabric.sh
needs rping

# check STATUS WORDS COMMAND...: the check's status, and what it says.
check() {
	status=$1 words=$2
	shift 2
	timeout -k 2 60 "$@" >"$tmp/check" 2>&1
	[ $? -eq "$status" ] || fail "the check should end with $status: $words"
	says check "$words" || fail "the check does not say: $words"
}

check 1 'no process there listens on the port' $there "$sv" --check 10.79.0.1
start server "$sv" rping -s -a 10.79.0.1
listens() {
	$there "$sv" --check 10.79.0.1 >"$tmp/check" 2>&1
}
within 30 listens || fail 'the other host is not reached'
check 0 '10.79.0.1, port 20515: reached' $there "$sv" --check 10.79.0.1
check 1 'it has another key' env SOFTVERBS_FABRIC_KEY="$tmp/other-key" $there "$sv" --check 10.79.0.1
says server '10.79.0.2: refused: it has another key' || fail 'the server does not log that it refused'
check 1 'it has another key' env SOFTVERBS_FABRIC_KEY=none $there "$sv" --check 10.79.0.1
check 1 'no process there listens' env SOFTVERBS_FABRIC_PORT=20516 $there "$sv" --check 10.79.0.1
check 1 'no route to the host' $there "$sv" --check 192.0.2.1
# A neighbour that takes packets and answers none, as behind a firewall that drops.
$there ip neighbour add 10.79.0.77 lladdr 02:00:00:00:00:01 dev v1
check 1 'a firewall drops' $there "$sv" --check 10.79.0.77
check 1 'SOFTVERBS_FABRIC is off' env SOFTVERBS_FABRIC=off $there "$sv" --check 10.79.0.1
if has_libfabric; then
	check 1 'it has another SOFTVERBS_FABRIC' env SOFTVERBS_FABRIC=tcp $there "$sv" --check 10.79.0.1
	says check 'its SOFTVERBS_FABRIC is link, here it is tcp' || fail 'the check does not name both ways'
	says server 'its SOFTVERBS_FABRIC is tcp.*, here it is link' || fail 'the server does not name both ways'
	check 1 'libfabric has no such provider here' env SOFTVERBS_FABRIC=nonesuch $there "$sv" --check 10.79.0.1
else
	check 1 'built without libfabric' env SOFTVERBS_FABRIC=tcp $there "$sv" --check 10.79.0.1
fi
chmod 644 "$tmp/key"
check 1 'other users may read it' $there "$sv" --check 10.79.0.1
chmod 600 "$tmp/key"

# With the fabric a process has the port, and without it none.
has_port() {
	grep -qi ':5023 .* 0A ' /proc/net/tcp /proc/net/tcp6	# 20515, listening
}
has_port || fail 'the server has no port'
end $started
export SOFTVERBS_FABRIC=off
start local "$sv" rping -s -a 10.79.0.1
within 30 timeout -k 2 60 "$sv" rping -c -a 10.79.0.1 -C 2 >"$tmp/client" 2>&1 || fail 'local traffic without the fabric'
wait "$started"	# its port is free
start local "$sv" rping -s -P -a 10.79.0.1
within 30 timeout -k 2 60 "$sv" rping -c -a 10.79.0.1 -C 2 >"$tmp/client" 2>&1 || fail 'local traffic without the fabric'
! has_port || fail 'there is a port though the fabric is off'
export SOFTVERBS_FABRIC=link

printf 'SOFTVERBS_FABRIC_PORT = 4711 # of this test\n' >"$tmp/softverbs.conf"
SOFTVERBS_CONF="$tmp/softverbs.conf" "$sv" --settings >"$tmp/settings" 2>&1 || fail 'the settings are not listed'
says settings "^SOFTVERBS_FABRIC  *link  *environment" || fail 'a setting of the environment'
says settings "^SOFTVERBS_FABRIC_PORT  *4711  *$tmp/softverbs.conf:1" || fail 'a setting of the file'
says settings "^SOFTVERBS_EAGER  *4096  *default" || fail 'a default'
echo 'the other host is reached, and the hindrances are named'
