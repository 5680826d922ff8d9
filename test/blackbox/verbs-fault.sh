#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged rping with faults preloaded (test/fault): it survives messages that find no receive or take long, and
# both sides are notified of a cut link.
. test/blackbox/lib-verbs.sh
needs rping
export VERBS_PRELOAD=$BUILD/test/verbs-fault.so

for faults in rnr=3 delay=2000 rnr=1,delay=500; do
	VERBS_FAULT=$faults pair 'cm_listens 7174' 'rping -s -a 127.0.0.1 -C 20 -S 1000' \
		'rping -c -a 127.0.0.1 -C 20 -S 1000 -V'
done

# gone PID: the program has ended.
gone() {
	! kill -0 "$1" 2>/dev/null || grep -q ' Z ' "/proc/$1/stat"
}

VERBS_PRELOAD= start server "$sv" rping -s -a 127.0.0.1
server_pid=$started
within 30 cm_listens 7174 || fail 'the server does not listen'
start client env VERBS_FAULT=drop=20 "$sv" rping -c -a 127.0.0.1 -v -C 0
client_pid=$started
within 30 says client 'ping data' || fail 'the client does not begin'
within 30 gone "$client_pid" || fail 'the client goes on without a link'
within 1 gone "$server_pid" || fail 'the server goes on without a link'
wait "$client_pid" "$server_pid"
says client 'DISCONNECT' || fail 'the client does not say why'
says server 'DISCONNECT' || fail 'the server does not say why'
within 3 nothing_left || fail 'names of the software device are left'
echo 'messages without a receive and late ones come through; a cut link ends both sides'
